// What a page and its worker say to each other, and what the edge client
// (cmd/starling-web) offers inside the worker.
import type { Event } from "./event.js";

/** A labelled file. Its name's end decides the format: .tsv, .csv, .jsonl, .txt, each also .gz. */
export interface Source {
  fileName: string;
  data: Uint8Array;
  /** The column, or key, of the texts; "text" where it is left out. */
  textColumn?: string;
  /** The column, or key, of the labels; "label" where it is left out. */
  labelColumn?: string;
}

/** What a file holds, for its owner to look at. */
export interface Preview {
  examples: number;
  /** Most frequent first. */
  labels: { name: string; count: number }[];
  /** The first rows, their texts cut. */
  rows: { label: string; text: string }[];
  /** Users or providers that the file names. */
  groups: number;
}

export interface WorkerJoin extends Source {
  url: string;
  token?: string;
  identity?: Uint8Array;
}

/** The object that cmd/starling-web sets in the worker's global scope. */
export interface Client {
  version: string;
  preview(source: Source): Promise<string>;
  sample(n: number): Promise<string>;
  join(options: WorkerJoin, on: (event: string) => void): Promise<{ identity: Uint8Array }>;
  stop(): void;
}

export type ToWorker =
  | { kind: "load"; program: string }
  | { kind: "preview"; id: number; source: Source }
  | { kind: "sample"; id: number; n: number }
  | { kind: "join"; options: WorkerJoin };

export type FromWorker =
  | { kind: "loaded"; version: string }
  | { kind: "answer"; id: number; json: string }
  | { kind: "refused"; id: number; reason: string }
  | { kind: "event"; event: Event }
  | { kind: "finished"; identity: Uint8Array }
  | { kind: "failed"; reason: string };
