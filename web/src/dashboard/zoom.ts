// The rounds that all plots show: one range for all, so that what is looked at in one is
// seen in the others.
import { byId, say } from "../dom.js";

export interface Range {
  from: number;
  to: number;
}

const least = 4; // rounds that are shown at least

export class Zoom {
  #range: Range | undefined; // undefined: all
  #all: Range = { from: 1, to: 1 };
  readonly #watchers: (() => void)[] = [];

  constructor() {
    const act: Record<string, () => void> = {
      "zoom-in": () => this.by(0.5), "zoom-out": () => this.by(2), "zoom-back": () => this.pan(-0.5), "zoom-on": () => this.pan(0.5), "zoom-all": () => this.set(undefined),
    };
    for (const [id, done] of Object.entries(act)) byId(id).addEventListener("click", done);
    this.#say();
  }

  /** What is chosen; undefined: all. */
  get range(): Range | undefined { return this.#range; }

  watch(told: () => void): void { this.#watchers.push(told); }

  /** Says which rounds there are. */
  extent(all: Range): void {
    this.#all = all;
    this.#say();
  }

  set(range: Range | undefined): void {
    if (range) {
      const wide = Math.max(least, range.to - range.from), all = this.#all;
      const from = Math.max(all.from, Math.min(range.from, all.to - wide));
      range = wide >= all.to - all.from ? undefined : { from, to: Math.min(all.to, from + wide) };
    }
    this.#range = range;
    this.#say();
    for (const told of this.#watchers) told();
  }

  /** Shows so many times as many rounds, around the middle or a round. */
  by(factor: number, around?: number): void {
    const { from, to } = this.#range ?? this.#all, wide = (to - from) * factor;
    const at = around ?? (from + to) / 2, share = to > from ? (at - from) / (to - from) : 0.5;
    this.set({ from: at - share * wide, to: at + (1 - share) * wide });
  }

  /** Moves by a share of what is shown. */
  pan(share: number): void {
    if (!this.#range) return;
    const { from, to } = this.#range, by = (to - from) * share;
    this.set({ from: from + by, to: to + by });
  }

  #say(): void {
    const { from, to } = this.#range ?? this.#all;
    say("zoom-said", this.#range ? `Rounds ${Math.ceil(from)} to ${Math.floor(to)}` : "All rounds");
    const whole = this.#range === undefined;
    for (const id of ["zoom-out", "zoom-all"]) byId<HTMLButtonElement>(id).disabled = whole;
    byId<HTMLButtonElement>("zoom-back").disabled = whole || from <= this.#all.from;
    byId<HTMLButtonElement>("zoom-on").disabled = whole || to >= this.#all.to;
    byId<HTMLButtonElement>("zoom-in").disabled = to - from <= least;
  }
}
