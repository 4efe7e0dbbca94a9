// What the page and its worker say to each other, and what the edge client
// (cmd/starling-web) offers inside the worker.

export interface JoinOptions {
  url: string;
  token?: string;
  fileName: string;
  data: Uint8Array;
  identity?: Uint8Array;
}

export interface EdgeEvent {
  type: "state" | "round" | "error" | "done";
  state?: string;
  round?: number;
  rank?: number;
  bytesUp?: number;
  bytesDown?: number;
  progress?: number;
  text?: string;
}

export interface JoinSummary {
  rounds: number;
  bytesUp: number;
  bytesDown: number;
  identity: Uint8Array;
}

export interface Edge {
  version: string;
  join(options: JoinOptions, onEvent: (event: EdgeEvent) => void): Promise<JoinSummary>;
  stop(): void;
}

export type ToWorker = { kind: "join"; program: string; options: JoinOptions };

export type FromWorker =
  | { kind: "event"; event: EdgeEvent }
  | { kind: "finished"; summary: JoinSummary }
  | { kind: "failed"; reason: string };
