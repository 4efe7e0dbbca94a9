import type { Event, PolicyError } from "./event.js";
import type { Given, Limits, Prediction, Preview, Quote } from "./client.js";
import { PolicyRefusal, StarlingError, type ErrorCode } from "./errors.js";
import { here, host, programAt, type Thread } from "./host.js";
import { coordinatorOf, isElsewhere, needsFull } from "./job.js";
import type { Accepted, FromWorker, Input, Model, SampleKind, Source, Trial, ToWorker, WorkerJoin } from "./protocol.js";

/** One labelled text of a data source of your own. */
export interface Example {
  text: string;
  label: string;
  /** Whom the text belongs to, where you know. */
  user?: string;
  /** Whom it is about or comes from; what a job for providers protects. */
  provider?: string;
}

/** Examples as a source: JSON Lines, which is one of the formats that a device reads. */
export function sourceOf(examples: Iterable<Example>): Source {
  let lines = "";
  for (const { text, label, user, provider } of examples) lines += `${JSON.stringify({ text, label, user, provider })}\n`;
  return { fileName: "examples.jsonl", data: new TextEncoder().encode(lines) };
}

/** A sample of recordings. */
function spoken(fileName: string, lines: string): Source {
  const words = JSON.parse(lines) as { label: string; user: string; wav: string }[];
  return { fileName, recordings: words.map(({ label, user, wav }) => ({
    label, user, recording: new Blob([Uint8Array.from(atob(wav), (c) => c.charCodeAt(0))], { type: "audio/wav" }),
  })) };
}

/** Bytes that a file may have: the program takes several times that, and has 4 GiB at most. */
export const mostData = 256 << 20;

/** What is said of a file that has more. */
export const tooLarge = (name: string): StarlingError => new StarlingError("data", `${name} has more than ${mostData >> 20} MiB, which is too much for a page: ` +
  "leave rows out, or take part with the starling program");

/** The source, if it has what it needs. */
function checked(source: Source): Source { // callers in plain JavaScript
  if (typeof source !== "object" || source === null || typeof source.fileName !== "string" || source.fileName === "") {
    throw new StarlingError("options", "source is missing, or has no fileName");
  }
  if ("data" in source && !(source.data instanceof Uint8Array)) throw new StarlingError("options", "source.data is no Uint8Array");
  return source;
}

/** What a source's account goes by: its name, that of a .gz file without the end. */
const accountName = (source: Source) => "data" in source ? source.fileName.replace(/\.gz$/i, "") : source.fileName;

/** A .gz source as what is in it: the browser has a decompressor, the program none. */
async function gunzipped(source: Source): Promise<Source> {
  checked(source);
  if (!("data" in source)) return source;
  if (source.data.length > mostData) throw tooLarge(source.fileName);
  if (!/\.gz$/i.test(source.fileName)) return source;
  if (typeof DecompressionStream !== "function") throw new StarlingError("unsupported", "this browser cannot read .gz: decompress the file first");
  let size = 0;
  const bounded = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, to) {
      size += chunk.length;
      if (size > mostData) to.error(tooLarge(source.fileName));
      else to.enqueue(chunk);
    },
  });
  const plain = new Blob([source.data as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(bounded);
  try {
    return { ...source, fileName: accountName(source), data: new Uint8Array(await new Response(plain).arrayBuffer()) };
  } catch {
    throw size > mostData ? tooLarge(source.fileName) : new StarlingError("data", `${source.fileName} is no gzip file, or a damaged one`);
  }
}

export interface LoadOptions {
  /** Address of worker.js; where it is left out, of this package's, as your bundler finds it. */
  worker?: string | URL;
  /**
   * Address of the program, edge.bin.gz or edge-full.bin.gz, packed or not; where it is left out, of this package's. The
   * full one is for jobs of which /v1/job says `"full": true`.
   */
  program?: string | URL;
  /** Whether the full program is loaded where program is left out. */
  full?: boolean;
  /** In Node, Deno and Bun: a folder where identity and accounts of data are kept; without it nothing is. */
  folder?: string;
  /** Ends the device when it aborts, and rejects with its reason. */
  signal?: AbortSignal;
}

export interface JoinOptions {
  /** The coordinator's address, http(s) or ws(s). */
  url: string | URL;
  /** The join token, where the coordinator asks for one. */
  token?: string;
  source: Source;
  /** 32 bytes that say which device this is; an earlier join returned them. */
  identity?: Uint8Array;
  /**
   * The device's owner says that the coordinator is their own, on this machine: its limits are laxer. An address alone,
   * localhost too, says nothing of who runs it, since a port may be forwarded. Of an address elsewhere it is refused.
   */
  trustLocal?: boolean;
  /** What the device's owner accepts beyond the policy. */
  accept?: Accepted;
  /**
   * Workers that train, 1 to 16: by default half of the machine's cores, 4 at most. More than one takes a page that is
   * isolated from other origins (crossOriginIsolated); elsewhere it has no effect.
   */
  cores?: number;
  /** Ends the device when it aborts, and rejects with its reason. */
  signal?: AbortSignal;
  /** Called at every change. */
  onEvent?: (event: Event) => void;
  /** Called with what the data has given, job by job, the latest first; kept: this browser remembers it. */
  onGiven?: (given: Given[], kept: boolean) => void;
}

const mostCores = 4; // as many parts has a product

const usualCores = () => Math.max(1, Math.min(mostCores, (globalThis.navigator?.hardwareConcurrency ?? 1) >> 1));

/** A join that has come to its end. */
export interface Joined {
  identity: Uint8Array;
  /** The model to take along, where the job ends with one on offer. */
  model?: Model;
}

/** What the program says no with, as it is thrown. */
const refusal = ({ reason, code, limits }: { reason: string; code: ErrorCode; limits?: PolicyError[] }) =>
  limits ? new PolicyRefusal(reason, limits) : new StarlingError(code, reason);

/**
 * A device in a worker of its own. One join may run at a time; to leave, close
 * it: whatever round it was in goes on without it.
 */
export class Edge {
  readonly #worker: Thread;
  readonly #asked = new Map<number, { resolve(json: string): void; reject(e: Error): void; onText?: Trial["onText"] }>();
  #next = 0;
  #loaded?: { resolve(version: string): void; reject(e: Error): void };
  #joined?: { resolve(j: Joined): void; reject(e: Error): void } & Pick<JoinOptions, "onEvent" | "onGiven">;
  #over?: Error;

  private constructor(worker: Thread) {
    this.#worker = worker;
    worker.onmessage = (message: MessageEvent<FromWorker>) => this.#take(message.data);
    worker.onerror = (event) => this.#end(new StarlingError("not-loaded", `the worker failed: ${event.message || "it could not be loaded"}`));
  }

  /** Ends it when a signal aborts; the result lets go of the signal. */
  #follow(signal: AbortSignal | undefined): () => void {
    const aborted = () => this.#end(signal?.reason as Error);
    signal?.addEventListener("abort", aborted, { once: true });
    return () => signal?.removeEventListener("abort", aborted);
  }

  /** Whether it has ended: nothing can be asked of it any more. */
  get over(): boolean {
    return this.#over !== undefined;
  }

  /** Fetches the edge and starts it. */
  static async load({ worker, program, full = false, folder, signal }: LoadOptions = {}): Promise<Edge> {
    signal?.throwIfAborted();
    const edge = new Edge(host.start(worker, folder));
    const unfollow = edge.#follow(signal);
    try {
      await new Promise<string>((resolve, reject) => {
        edge.#loaded = { resolve, reject };
        edge.#send({ kind: "load", program: new URL(program ?? programAt(full), here()).href });
      });
    } finally {
      unfollow();
    }
    return edge;
  }

  /** Reads a source as join would. Nothing leaves the page. */
  async preview(source: Source): Promise<Preview> {
    const plain = await gunzipped(source);
    return JSON.parse(await this.#ask((id) => ({ kind: "preview", id, source: plain }))) as Preview;
  }

  /** One of a thousand generated sets, of labelled invoices, of digits or of words as they are said, for a first try. */
  async sample(of: SampleKind = "texts", n = Math.floor(1000 * Math.random())): Promise<Source> {
    const lines = await this.#ask((id) => ({ kind: "sample", id, n, of }));
    if (of === "recordings") return spoken(`sample-${n}`, lines);
    return { fileName: `sample-${n}.${of === "texts" ? "jsonl" : "csv"}`, data: new TextEncoder().encode(lines) };
  }

  /** What a source has given so far, job by job, the latest first; kept: this browser remembers it. */
  async given(source: Source): Promise<{ given: Given[]; kept: boolean }> {
    const fileName = accountName(checked(source));
    return JSON.parse(await this.#ask((id) => ({ kind: "account", id, fileName }))) as { given: Given[]; kept: boolean };
  }

  /** The names of all sources that have given something, as far as this browser remembers; see given. */
  async sources(): Promise<string[]> {
    return JSON.parse(await this.#ask((id) => ({ kind: "accounts", id }))) as string[];
  }

  /** What a source has given, by its name alone. */
  async givenBy(fileName: string): Promise<Given[]> {
    const { given } = JSON.parse(await this.#ask((id) => ({ kind: "account", id, fileName }))) as { given: Given[] };
    return given;
  }

  /**
   * Forgets what tells of a job in a source's account: its name, when, how many bytes. The
   * numbers that protect the source stay, so that the job cannot ask for its rounds again.
   */
  async forget(fileName: string, job: string): Promise<void> {
    await this.#ask((id) => ({ kind: "forget", id, fileName, job }));
  }

  /**
   * Tries for a second what a round of a job takes in this page, with made-up weights and examples. Nobody joins by it. A
   * PolicyRefusal lists the limits of memory and work that the job's program is beyond.
   */
  async quote({ url, token, trustLocal, cores }: Pick<JoinOptions, "url" | "token" | "trustLocal" | "cores">): Promise<Quote> {
    const at = coordinatorOf(url), trial = { url: at.base, token: token ?? at.token, trustLocal, cores: cores ?? usualCores() };
    return JSON.parse(await this.#ask((id) => ({ kind: "quote", id, trial }))) as Quote;
  }

  /**
   * What this device's policy says of a job, and how much could leave at most, before anybody joins: what is to be asked
   * of the owner. With a source it counts what that has given elsewhere, and knows what was accepted for it before.
   */
  async limits({ url, token, trustLocal, source, examples }: Pick<JoinOptions, "url" | "token" | "trustLocal"> & { source?: Source; examples?: number }): Promise<Limits> {
    const at = coordinatorOf(url), of = { url: at.base, token: token ?? at.token, trustLocal, fileName: source && accountName(checked(source)), examples };
    return JSON.parse(await this.#ask((id) => ({ kind: "limits", id, of }))) as Limits;
  }

  /** What the model says that join has ended with: its labels, the likeliest first, a label of each word, an answer, or what it writes. */
  async predict(input: Input, { untrained = false, onText, signal }: Trial = {}): Promise<Prediction[]> {
    signal?.throwIfAborted();
    const of = this.#next; // its number
    const asked = this.#ask((id) => ({ kind: "predict", id, input, untrained }), onText);
    const aborted = () => {
      this.#asked.get(of)?.reject(signal?.reason as Error);
      this.#asked.delete(of);
      this.#send({ kind: "enough", of });
    };
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      return JSON.parse(await asked) as Prediction[];
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  /** Takes a model that an earlier join has ended with, to predict with it; one without kept is refused. */
  async open(model: Model): Promise<void> {
    await this.#ask((id) => ({ kind: "open", id, model }));
  }

  /** Takes part until the job is over. */
  async join({ url, token, source, identity, trustLocal, accept, cores, signal, onEvent, onGiven }: JoinOptions): Promise<Joined> {
    signal?.throwIfAborted();
    if (this.#over) throw this.#over;
    const at = coordinatorOf(url);
    if (isElsewhere(at.base)) await needsFull(at.base, signal); // a socket does not say why it does not open
    cores ??= usualCores();
    const options: WorkerJoin = { ...await gunzipped(source), url: at.base, token: token ?? at.token, identity, trustLocal, accept, cores };
    const unfollow = this.#follow(signal);
    try {
      return await new Promise((resolve, reject) => {
        if (this.#over) return reject(this.#over);
        signal?.throwIfAborted();
        if (this.#joined) return reject(new StarlingError("busy", "this device takes part already"));
        this.#joined = { resolve, reject, onEvent, onGiven };
        this.#send({ kind: "join", options });
      });
    } finally {
      unfollow();
    }
  }

  /** Ends the device and whatever it was doing. */
  close(): void {
    this.#end(new StarlingError("closed", "closed"));
  }

  #ask(question: (id: number) => ToWorker, onText?: Trial["onText"]): Promise<string> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      this.#asked.set(id, { resolve, reject, onText });
      this.#send(question(id));
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #take(said: FromWorker): void {
    switch (said.kind) {
      case "loaded":
        this.#loaded?.resolve(said.version);
        return;
      case "answer":
        this.#asked.get(said.id)?.resolve(said.json);
        this.#asked.delete(said.id);
        return;
      case "refused":
        this.#asked.get(said.id)?.reject(refusal(said));
        this.#asked.delete(said.id);
        return;
      case "written":
        this.#asked.get(said.id)?.onText?.(said.text);
        return;
      case "event":
        this.#joined?.onEvent?.(said.event);
        return;
      case "given":
        this.#joined?.onGiven?.(said.given, said.kept);
        return;
      case "finished":
        this.#joined?.resolve({ identity: said.identity, model: said.model });
        this.#joined = undefined;
        return;
      case "failed":
        this.#end(refusal(said));
    }
  }

  #end(why: Error): void {
    this.#over ??= why;
    this.#worker.terminate();
    this.#loaded?.reject(why);
    this.#joined?.reject(why);
    this.#joined = undefined;
    for (const { reject } of this.#asked.values()) reject(why);
    this.#asked.clear();
  }
}
