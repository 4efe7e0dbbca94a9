import { Edge, type LoadOptions } from "./edge.js";
import type { Event } from "./event.js";
import type { Source } from "./protocol.js";

/** Where a participation stands. */
export type Standing = "starting" | "running" | "pausing" | "paused" | "stopped" | "finished" | "failed";

export interface Totals {
  /** Rounds that released a model with this device's share in it. */
  rounds: number;
  /** Bytes sent and received, pages and programs not counted. */
  up: number;
  down: number;
}

export interface ParticipationOptions extends LoadOptions {
  url: string | URL;
  token?: string;
  source: Source;
  identity: Uint8Array;
  /** What an earlier page of this participation had come to. */
  totals?: Totals;
  onChange?: (p: Participation) => void;
}

/** States in which a round holds this device's part. */
const inRound = new Set(["keying", "fetching", "training", "uploading", "collecting", "revealing"]);
/** States that end a round for this device. */
const roundOver = new Set(["committed", "abandoned", "dropped", "refused", "waiting", "backoff"]);

/**
 * One device's part in a job, over pauses: what a page shows and steers. Pausing
 * waits for the running round, so that no other device waits for this one.
 */
export class Participation {
  standing: Standing = "starting";
  /** The last event, undefined before the first. */
  event?: Event;
  /** Why it failed or paused. */
  reason = "";
  totals: Totals;

  readonly #options: ParticipationOptions;
  #edge?: Edge;
  #before: { up: number; down: number };
  #holding = false;
  #joins = 0; // a join that was left has no say any more

  constructor(options: ParticipationOptions) {
    this.#options = options;
    this.totals = options.totals ?? { rounds: 0, up: 0, down: 0 };
    this.#before = { up: this.totals.up, down: this.totals.down };
    void this.#run();
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

  /** Leaves at once and for good. */
  stop(): void {
    if (this.standing !== "finished" && this.standing !== "failed") this.#leave("stopped");
  }

  async #run(): Promise<void> {
    const { worker, program, url, token, source, identity } = this.#options;
    const join = ++this.#joins;
    this.#turn("starting");
    try {
      const edge = await Edge.load({ worker, program });
      if (join !== this.#joins) return edge.close(); // paused or stopped meanwhile
      this.#edge = edge;
      this.#turn("running");
      await edge.join({ url, token, source, identity, onEvent: (event) => this.#take(event) });
      if (join === this.#joins) this.#leave("finished");
    } catch (error) {
      if (join !== this.#joins) return; // closing it is what it rejects for
      this.reason = error instanceof Error ? error.message : String(error);
      this.#leave("failed");
    }
  }

  #take(event: Event): void {
    this.event = event;
    this.totals = {
      rounds: this.totals.rounds + (event.state === "committed" ? 1 : 0),
      up: this.#before.up + event.up, down: this.#before.down + event.down,
    };
    // A download before the first round is no round.
    if (roundOver.has(event.state)) this.#holding = false;
    else if (inRound.has(event.state) && event.round) this.#holding = true;
    if (this.standing === "pausing" && !this.#holding) return this.#leave("paused");
    this.#options.onChange?.(this);
  }

  #leave(standing: Standing): void {
    this.standing = standing;
    this.#joins++;
    this.#edge?.close();
    this.#edge = undefined;
    this.#holding = false;
    this.#options.onChange?.(this);
  }

  #turn(standing: Standing): void {
    this.standing = standing;
    this.#options.onChange?.(this);
  }
}
