// What a page and its worker say to each other, and what the edge
// (cmd/starling-web) offers inside the worker.
import type { Given } from "./client.js";
import type { ErrorCode } from "./errors.js";
import type { Event, PolicyError } from "./event.js";
import type { Help } from "./threads.js";

/** A labelled file. Its name's end decides the format: .tsv, .csv, .jsonl, .txt, each also .gz. */
export interface FileSource {
  fileName: string;
  data: Uint8Array;
  /** The column, or key, of the texts; "text" where it is left out. */
  textColumn?: string;
  /** The column, or key, of the labels; "label" where it is left out. */
  labelColumn?: string;
  /** For a job that pretrains: labels may be missing, and those that are there are left out. */
  unlabelled?: boolean;
}

/** A picture that the browser can show, as a PNG or JPEG, with its label. */
export interface LabelledPicture {
  label: string;
  picture: Blob;
  /** What errors call it. */
  name?: string;
  /** Whom it belongs to, where you know. */
  user?: string;
  /** Whom it is about or comes from; what a job for providers protects. */
  provider?: string;
}

/** Pictures, read one after another where a job is prepared. */
export interface PictureSource {
  /** What their account goes by. */
  fileName: string;
  pictures: LabelledPicture[];
}

/** A recording as a WAV or FLAC file, with its label or what is said in it. */
export interface LabelledRecording {
  label?: string;
  /** What is said, for a job that transcribes: of all recordings or of none. */
  text?: string;
  recording: Blob;
  /** What errors call it. One as Speech Commands has them, SPEAKER_nohash_0.wav, says whom it belongs to. */
  name?: string;
  /** Whom it belongs to, where you know. */
  user?: string;
  /** Whom it is about or comes from; what a job for providers protects. */
  provider?: string;
}

/** Recordings, read one after another where a job is prepared; edge-full.wasm reads them. */
export interface RecordingSource {
  /** What their account goes by. */
  fileName: string;
  recordings: LabelledRecording[];
}

export type Source = FileSource | PictureSource | RecordingSource;

/** How a model is tried. */
export interface Trial {
  /** Whether its base is to answer alone, as it was before the job: what there is to compare with. */
  untrained?: boolean;
  /** Called with the text as it grows, where the model writes one: an answer to a question, or what follows a text. */
  onText?: (text: string) => void;
  /** Ends a text that is being written when it aborts, and rejects with its reason. */
  signal?: AbortSignal;
}

/** What a model is tried on: a text; a picture; a recording, as a WAV or FLAC file; or a document's text and a question about it. */
export type Input = string | { text?: string; question?: string; picture?: Blob; recording?: Blob };

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

/** Limits of the policy that the owner widens, by key, as a PolicyError names them. */
export type Accepted = Record<string, string>;

export type WorkerJoin = Source & {
  url: string;
  token?: string;
  identity?: Uint8Array;
  trustLocal?: boolean;
  accept?: Accepted;
  /** Workers that compute, this one included, where they can share memory. */
  cores: number;
};

/** What makes pixels of pictures, see picture.ts. */
export interface Decoder {
  decode(picture: Blob): Promise<{ width: number; height: number; pixels: Uint8Array }>;
}

/** What a round is tried with: the coordinator, and workers that compute. */
export interface RoundTrial {
  url: string;
  token?: string;
  trustLocal?: boolean;
  cores: number;
}

/** What a job is judged by: the coordinator, and the data as far as they are chosen. */
export interface Judged {
  url: string;
  token?: string;
  trustLocal?: boolean;
  /** What the data's account goes by. */
  fileName?: string;
  /** How many the data has. */
  examples?: number;
}

/** A generated set: labelled invoices, digits, or words as they are said, which edge-full.wasm makes. */
export type SampleKind = "texts" | "pictures" | "recordings";

/** The object that cmd/starling-web sets in the worker's global scope. */
export interface Client {
  version: string;
  preview(source: Source & Decoder): Promise<string>;
  sample(n: number, kind: SampleKind): Promise<string>;
  given(account: Uint8Array | undefined): Promise<string>;
  forget(account: Uint8Array, id: string): Promise<Uint8Array>;
  quote(options: RoundTrial): Promise<string>;
  limits(options: Judged & { account?: Uint8Array }): Promise<string>;
  join(
    options: WorkerJoin & Decoder & { account?: Uint8Array; keep?: (account: Uint8Array) => Promise<unknown> },
    on: (event: string, given?: string) => void,
  ): Promise<{ identity: Uint8Array; model: Model | null }>;
  predict(input: string | (Exclude<Input, string> & Decoder), untrained: boolean, written: (text: string) => Promise<boolean>): Promise<string>;
  open(model: Model): Promise<null>;
  stop(): void;
}

export type ToWorker =
  | { kind: "load"; program: string }
  | { kind: "preview"; id: number; source: Source }
  | { kind: "sample"; id: number; n: number; of: SampleKind }
  | { kind: "account"; id: number; fileName: string }
  | { kind: "accounts"; id: number }
  | { kind: "forget"; id: number; fileName: string; job: string }
  | { kind: "quote"; id: number; trial: RoundTrial }
  | { kind: "limits"; id: number; of: Judged }
  | { kind: "predict"; id: number; input: Input; untrained: boolean }
  | { kind: "enough"; of: number }
  | { kind: "open"; id: number; model: Model }
  | { kind: "join"; options: WorkerJoin }
  | { kind: "help"; given: Help };

export type FromWorker =
  | { kind: "loaded"; version: string }
  | { kind: "answer"; id: number; json: string }
  | { kind: "refused"; id: number; reason: string; code: ErrorCode; limits?: PolicyError[] }
  | { kind: "written"; id: number; text: string }
  | { kind: "event"; event: Event }
  | { kind: "given"; given: Given[]; kept: boolean }
  | { kind: "finished"; identity: Uint8Array; model?: Model }
  | { kind: "failed"; reason: string; code: ErrorCode; limits?: PolicyError[] };
