import { Edge, type LoadOptions } from "./edge.js";
import { asError, PolicyRefusal, StarlingError } from "./errors.js";
import { typedTarget } from "./events.js";
import { host } from "./host.js";
import { coordinatorOf, needsFull } from "./job.js";
import type { Event, PolicyError } from "./event.js";
import type { Given, Prediction } from "./client.js";
import type { Accepted, Input, Model, Source, Trial } from "./protocol.js";

/** Where a participation stands; "refused": the job asks for more than the owner's policy allows, see limits. */
export type Standing = "starting" | "running" | "pausing" | "paused" | "refused" | "stopped" | "finished" | "failed";

export interface Totals {
  /** Rounds that released a model with this device's share in it. */
  rounds: number;
  /** Rounds for which it sent zeros, because training came to nothing; left out where there were none. */
  zeros?: number;
  /** Bytes sent and received, pages and programs not counted. */
  up: number;
  down: number;
}

export interface ParticipationOptions extends LoadOptions {
  url: string | URL;
  token?: string;
  source: Source;
  /** 32 bytes that say which device this is; where they are left out, those that this browser keeps for the coordinator. */
  identity?: Uint8Array;
  /** What an earlier page of this participation had come to, and what its owner had accepted. */
  totals?: Totals;
  accepted?: Accepted;
  /** The coordinator is the owner's own, on this machine: see JoinOptions. */
  trustLocal?: boolean;
  /** Workers that train, see JoinOptions. */
  cores?: number;
  onChange?: (p: Participation) => void;
}

/** What a participation tells its listeners, each with its detail. */
export interface ParticipationEvents {
  /** Anything of it has changed; itself. */
  change: CustomEvent<Participation>;
  standing: CustomEvent<Standing>;
  /** Each line of progress. */
  progress: CustomEvent<Event>;
  /** What the data has given, where that has changed. */
  given: CustomEvent<Given[]>;
}

/** States in which a round holds this device's part. */
const inRound = new Set(["keying", "fetching", "training", "uploading", "collecting", "revealing"]);
/** States that end a round for this device. */
const roundOver = new Set(["committed", "abandoned", "dropped", "refused", "waiting", "backoff"]);

/**
 * One device's part in a job, over pauses: what a page shows and steers. Pausing
 * waits for the running round, so that no other device waits for this one.
 */
export class Participation extends typedTarget<ParticipationEvents>() {
  standing: Standing = "starting";
  /** The last event, undefined before the first. */
  event?: Event;
  /** What the log of enrolled keys proved of this device's last shard; undefined before the first, and without a log. */
  peers?: Event["peers"];
  /** Why it failed or paused. */
  reason = "";
  /** Why training came to nothing in the last round, for which zeros were sent; "" where it did not. */
  zeroed = "";
  /** What it failed or was refused with; its code is for programs. */
  error?: Error;
  /** Which device this is, once that is known. */
  identity?: Uint8Array;
  totals: Totals;
  /** What the job, or its last round, asks for beyond the policy: accept takes it, and takes part again. */
  limits: PolicyError[] = [];
  /** What the owner has accepted beyond the default policy. */
  accepted: Accepted;
  /** What the data has given, the latest job first; undefined until its account is read, which a pause does not put off. */
  given?: Given[];
  /** Why what was given cannot be read; "" where it can. */
  unread = "";
  /** Whether this browser remembers what was given. */
  kept = true;
  /** The model, once the job is over and where it offers one; see predict. */
  model?: Model;

  /** Settles at the end: with this, or with a StarlingError, or with the signal's reason. A pause is no end. */
  readonly finished: Promise<Participation>;

  readonly #options: ParticipationOptions;
  #settle!: { resolve(part: Participation): void; reject(error: Error): void };
  #edge?: Edge;
  #before: { up: number; down: number };
  #holding = false;
  #zeros = 0; // the last round of which zeros were sent
  #joins = 0; // a join that was left has no say any more

  constructor(options: ParticipationOptions) {
    super();
    this.#options = options;
    this.identity = options.identity;
    this.finished = new Promise((resolve, reject) => { this.#settle = { resolve, reject }; });
    this.finished.catch(() => {}); // who listens to standing need not wait for it, too
    const { signal } = options;
    signal?.addEventListener("abort", () => this.#abort(signal), { once: true });
    this.totals = options.totals ?? { rounds: 0, up: 0, down: 0 };
    this.accepted = options.accepted ?? {};
    this.#before = { up: this.totals.up, down: this.totals.down };
    if (signal?.aborted) this.#abort(signal);
    else void this.#run();
  }

  /** Accepts what limits names, knowingly: the policy is its owner's. */
  accept(): void {
    if (this.limits.length === 0 || this.#ended) return;
    for (const { key, have } of this.limits) this.accepted = { ...this.accepted, [key]: have };
    this.limits = [];
    this.#leave("paused");
    this.resume();
  }

  /** What the model says, see Edge.predict. Rejects with the code `no-model` before there is one. */
  async predict(input: Input, trial?: Trial): Promise<Prediction[]> {
    if (!this.#edge || !this.model) throw new StarlingError("no-model", "no model here: the job is not over, offers none, or the model was closed");
    return this.#edge.predict(input, trial);
  }

  /** Releases the model; before the end it stops first. */
  close(): void {
    this.stop();
    this.model = undefined;
    this.#edge?.close();
    this.#edge = undefined;
  }

  /** Leaves after the running round; at once where none runs. */
  pause(reason = ""): void {
    if (this.standing !== "running" && this.standing !== "starting") return;
    this.reason = reason;
    if (this.#holding) this.#turn("pausing");
    else this.#leave("paused");
  }

  /** Takes part again. */
  resume(): void {
    this.reason = "";
    if (this.standing === "pausing") return this.#turn("running");
    if (this.standing !== "paused") return;
    this.#before = { up: this.totals.up, down: this.totals.down };
    this.standing = "starting";
    void this.#run();
  }

  get #ended(): boolean {
    return this.standing === "finished" || this.standing === "failed" || this.standing === "stopped";
  }

  /** Leaves at once and for good. Once it has ended, another call changes nothing. */
  stop(): void {
    if (this.#ended) return;
    this.#leave("stopped");
    this.#settle.reject(new StarlingError("closed", "stopped"));
  }

  /** Ends what its page has aborted, without another word of why. */
  #abort(signal: AbortSignal): void {
    this.#settle.reject(signal.reason as Error);
    this.stop();
  }

  async #run(): Promise<void> {
    const { worker, program, folder, url, token, source, trustLocal, cores } = this.#options;
    const join = ++this.#joins;
    this.error = undefined;
    this.#turn("starting");
    if (join !== this.#joins) return; // a listener has paused or stopped it
    try {
      const { base } = coordinatorOf(url);
      const full = this.#options.full ?? (program === undefined && await needsFull(base));
      this.identity ??= await host.identity(base, folder);
      const edge = await Edge.load({ worker, program, full, folder });
      await this.#recall(edge);
      if (join !== this.#joins) return edge.close(); // paused or stopped meanwhile
      this.#edge = edge;
      this.#turn("running");
      if (join !== this.#joins) return;
      const { model, identity } = await edge.join({
        url, token, source, identity: this.identity, trustLocal, cores, accept: this.accepted, onEvent: (event) => this.#take(event),
        onGiven: (given, kept) => { this.#give(given, kept); },
      });
      if (join !== this.#joins) return;
      this.model = model;
      this.identity = identity;
      this.#leave("finished");
      this.#settle.resolve(this);
    } catch (thrown) {
      if (join !== this.#joins) return; // closing it is what it rejects for
      const error = asError(thrown);
      this.error = error;
      this.reason = error.message;
      if (error instanceof PolicyRefusal) this.limits = error.limits;
      this.#leave(error instanceof PolicyRefusal ? "refused" : "failed");
      if (this.standing === "failed") this.#settle.reject(error);
    }
  }

  /** Reads what was given before, for whoever looks at a participation that is paused, too. */
  async #recall(edge: Edge): Promise<void> {
    if (this.given) return;
    try {
      const { given, kept } = await edge.given(this.#options.source);
      this.#give(this.given ?? given, kept);
    } catch (error) {
      this.unread = asError(error).message; // a join fails of it, too
    }
    this.#changed();
  }

  #give(given: Given[], kept: boolean): void {
    this.given = given;
    this.kept = kept;
    this.dispatchEvent(new CustomEvent("given", { detail: given }));
  }

  #changed(): void {
    try {
      this.#options.onChange?.(this);
    } catch (error) { // a page's own fault ends no round, and is reported as a listener's is
      if (typeof reportError === "function") reportError(error);
      else queueMicrotask(() => { throw error; });
    }
    this.dispatchEvent(new CustomEvent("change", { detail: this as Participation }));
  }

  #take(event: Event): void {
    const join = this.#joins;
    this.event = event;
    this.dispatchEvent(new CustomEvent("progress", { detail: event }));
    if (join !== this.#joins) return; // a listener has left, or joined anew
    if (event.peers) this.peers = event.peers;
    if (event.limits) this.limits = event.limits;
    else if (inRound.has(event.state) && event.round) this.limits = []; // a round that is within them
    const zeros = (this.totals.zeros ?? 0) + (event.zeros && event.round !== this.#zeros ? 1 : 0); // each provider of a round says so
    if (event.zeros) [this.zeroed, this.#zeros] = [event.text ?? "", event.round ?? 0];
    else if (roundOver.has(event.state) && event.round && event.round !== this.#zeros) this.zeroed = "";
    this.totals = {
      rounds: this.totals.rounds + (event.state === "committed" ? 1 : 0),
      ...(zeros ? { zeros } : {}),
      up: this.#before.up + event.up, down: this.#before.down + event.down,
    };
    // A download before the first round is no round.
    if (roundOver.has(event.state)) this.#holding = false;
    else if (inRound.has(event.state) && event.round) this.#holding = true;
    if (this.standing === "pausing" && !this.#holding) return this.#leave("paused");
    this.#changed();
  }

  #leave(standing: Standing): void {
    this.#joins++;
    if (!this.model) { // which is in the edge
      this.#edge?.close();
      this.#edge = undefined;
    }
    this.#holding = false;
    this.#turn(standing);
  }

  #turn(standing: Standing): void {
    this.standing = standing;
    this.dispatchEvent(new CustomEvent("standing", { detail: standing }));
    this.#changed();
  }
}
