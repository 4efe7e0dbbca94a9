// What a page and its worker say to each other, and what the edge
// (cmd/starling-web) offers inside the worker.
import type { Event, PolicyError } from "./event.js";
import type { Help } from "./threads.js";

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

/** What a data set has given to one job, as seen from this device. */
export interface Given {
  name: string;
  /** Rounds that the job announced; beyond them the device stops. */
  promised: number;
  /** Rounds in which an update was handed over. */
  contributed: number;
  /** Of these, what the coordinator said it released. */
  committed: number;
  /** Seconds since 1970. */
  last: number;
  /** What all of it costs if the noise is as announced; left out where none is. */
  epsilon?: number;
  delta?: number;
}

/** The model that a job has come to, in the worker. */
export interface Model {
  /** Rounds in it. */
  version: number;
  /** Rank of its adapter; 0: the head alone. */
  rank: number;
  /** A zip of the adapter for other software, a PEFT folder where it is one. */
  archive: Uint8Array;
  /** All of it, to be kept and opened again; left out where its base is large. */
  kept?: Record<"job" | "adapter" | "program" | "base", Uint8Array>;
}

export interface Prediction {
  label: string;
  /** A softmax, not calibrated. */
  probability: number;
}

/** Limits of the default policy that the owner widens, by key, as a PolicyError names them. */
export type Accepted = Record<string, string>;

export interface WorkerJoin extends Source {
  url: string;
  token?: string;
  identity?: Uint8Array;
  accept?: Accepted;
  /** Workers that compute, this one included, where they can share memory. */
  cores: number;
}

/** The object that cmd/starling-web sets in the worker's global scope. */
export interface Client {
  version: string;
  preview(source: Source): Promise<string>;
  sample(n: number): Promise<string>;
  join(
    options: WorkerJoin & { account?: Uint8Array; keep?: (account: Uint8Array) => Promise<unknown> },
    on: (event: string, given?: string) => void,
  ): Promise<{ identity: Uint8Array; model: Model | null }>;
  predict(text: string): Promise<string>;
  open(model: Model): Promise<null>;
  stop(): void;
}

export type ToWorker =
  | { kind: "load"; program: string }
  | { kind: "preview"; id: number; source: Source }
  | { kind: "sample"; id: number; n: number }
  | { kind: "predict"; id: number; text: string }
  | { kind: "open"; id: number; model: Model }
  | { kind: "join"; options: WorkerJoin }
  | { kind: "help"; given: Help };

export type FromWorker =
  | { kind: "loaded"; version: string }
  | { kind: "answer"; id: number; json: string }
  | { kind: "refused"; id: number; reason: string }
  | { kind: "event"; event: Event }
  | { kind: "given"; given: Given[]; kept: boolean }
  | { kind: "finished"; identity: Uint8Array; model?: Model }
  | { kind: "failed"; reason: string; limits?: PolicyError[] };
