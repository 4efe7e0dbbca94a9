// The plots of a job: what each shows of the rounds' records.
import type { About, Forecast, RoundRecord } from "../api.js";
import { show } from "../dom.js";
import { bytes, count, duration, percent, significant } from "../format.js";
import { gist } from "./cards.js";
import { alignedTo, type Run } from "./compare.js";
import { eachOf, intervals, learning, rankMap, smooth, turnout, windowFor, type Interval, type Values } from "./figures.js";
import { soon } from "./frames.js";
import { partLines } from "./parts.js";
import { Plot, type Line } from "./plot.js";
import { paintSpending } from "./privacy.js";
import { RankMap } from "./rankmap.js";
import { Zoom } from "./zoom.js";

const seconds = (v: number) => v < 10 ? `${v.toFixed(1)} s` : duration(v);
const whole = (v: number) => Number.isInteger(v) ? v.toLocaleString("en") : v.toFixed(v < 10 ? 1 : 0);

/** How a smoothed line is made, in words; nothing where it is not. */
const means = (window: number) => window > 1 ? `Lines are means of ${window} rounds around.` : "";

export class Panels {
  readonly #zoom = new Zoom();
  readonly #accuracy = new Plot("accuracy-plot", { title: "Accuracy on the validation file", y: "Accuracy, %", format: percent, height: 300 }, this.#zoom);
  readonly #loss = new Plot("loss-plot", { title: "Validation loss", y: "Cross-entropy, nats", format: (v) => v.toFixed(2) }, this.#zoom);
  readonly #map = new RankMap(this.#zoom);
  readonly #privacy = new Plot("privacy-plot", { title: "Epsilon, spent and to come", y: "ε", format: significant, fromZero: true }, this.#zoom);
  readonly #turnout = new Plot("turnout-plot", { title: "Devices that left a round, by why", y: "Devices a round", format: whole, fromZero: true, whole: true, height: 280 }, this.#zoom);
  readonly #sessions = new Plot("sessions-plot", { title: "Connections and sessions refused", y: "Refused, between rounds", format: whole, fromZero: true, whole: true, height: 280 }, this.#zoom);
  readonly #traffic = new Plot("traffic-plot", { title: "Bytes of a device in a round", y: "Bytes a device", format: (v) => bytes(Math.round(v)), fromZero: true }, this.#zoom);
  readonly #time = new Plot("time-plot", { title: "Time of a round", y: "Time (s, min)", format: seconds, fromZero: true }, this.#zoom);

  /** Shows records, the oldest first, a plot a frame. */
  show(records: RoundRecord[], about: About | undefined, forecast: Forecast | undefined, other: Run | undefined): void {
    const last = records.at(-1)?.round ?? 1;
    this.#zoom.extent({ from: records[0]?.round ?? 1, to: Math.max(last, 2) });
    const pieces: Record<string, () => void> = {
      accuracy: () => this.#learning(records, other),
      map: () => this.#map.show(rankMap(records)),
      spending: () => paintSpending(this.#privacy, records, forecast, about, other),
      turnout: () => this.#stay(records),
      traffic: () => this.#bytes(records, other),
      time: () => this.#times(records, other),
    };
    for (const [name, piece] of Object.entries(pieces)) soon(`panel ${name}`, piece);
  }

  #learning(records: RoundRecord[], other: Run | undefined): void {
    const l = learning(records), measured = l.best.filter((v) => v !== null).length;
    const told = (i: Interval, colour: number): Line[] => i.values.some((v) => v !== null) ?
      [{ label: "Devices' own examples", values: i.values, colour, dash: 2, band: { low: i.low, high: i.high } }] : [];
    const own = told(l.fleet, 2), ownLoss = told(l.fleetLoss, 2);
    const noisy = own.length + ownLoss.length ? "Devices score examples that they never train on; its band is the 95 % interval of the noise in their sum." : "";
    show("accuracy-empty", measured + own.length + ownLoss.length === 0);
    if (measured === 0) {
      const now = l.fleet.values.findLast((v) => v !== null);
      gist("accuracy", now === undefined || now === null ? "not measured" : `${percent(now)} on devices' own examples`);
      this.#accuracy.show(own.length ? l.x : [], own, noisy);
      return this.#loss.show(ownLoss.length ? l.x : [], ownLoss, noisy);
    }
    const window = windowFor(measured), best = smooth(l.best, window), drawn = smooth(l.drawn, window);
    const around = intervals(best, l.bestOf), of = l.bestOf.at(-1) ?? 0;
    const lines: Line[] = [
      { label: "Best rank", values: best, colour: 0, ...(around.known ? { band: { low: around.low, high: around.high } } : {}) },
      { label: "Drawn rank", values: drawn, colour: 1, dash: 1 },
    ];
    if (window > 1) lines.push({ label: "Drawn, each round", values: l.drawn, colour: 1, kind: "points" });
    if (other) lines.push({ label: "The other run", values: smooth(alignedTo(l.x, other, other.accuracy), window), kind: "other" });
    lines.push(...own);
    this.#accuracy.show(l.x, lines, [noisy, "Best is the highest of the ranks, each as it was measured last.", means(window),
      around.known ? `The band is Wilson's 95 % interval for ${count(of, "document")}: all rounds are measured on the same ones, so that means make it no narrower.`
        : "These records do not say on how many documents: no interval is drawn."].filter(Boolean).join(" "));
    const now = l.best.findLast((v) => v !== null), rank = l.bestRank.findLast((v) => v !== null);
    gist("accuracy", now === undefined || now === null ? "" : `${percent(now)} ${rank ? `at rank ${rank}` : "with the head alone"}`);
    const losses = l.bestLoss.some((v) => v !== null);
    this.#loss.show(losses ? l.x : [], [{ label: "Best rank", values: smooth(l.bestLoss, window), colour: 0 }, { label: "Drawn rank", values: smooth(l.drawnLoss, window), colour: 1, dash: 1 }, ...ownLoss],
      `${noisy} The mean cross-entropy of the right labels on the same public file. ${noisy ? "" : "What a device loses in training stays on it. "}${means(window)}`.trim());
  }

  #stay(records: RoundRecord[]): void {
    const t = turnout(records), window = windowFor(t.x.length);
    show("turnout-empty", t.x.length === 0);
    const of = (v: Values) => smooth(v, window);
    this.#turnout.show(t.x, [
      { label: "Not there", values: of(t.absent), colour: 5, dash: 3 }, { label: "Lost or silent", values: of(t.lost), colour: 0 }, { label: "Stopped", values: of(t.stopped), colour: 3, dash: 1 },
      { label: "Declined by owners' limits", values: of(t.declined), colour: 2, dash: 2 }, { label: "Refused for what they sent", values: of(t.refused), colour: 1 },
    ], `Lost: their connection broke, they said nothing in time, or their shard failed. ${means(window)}`.trim());
    this.#sessions.show(t.x, [{ label: "Refused", values: of(t.sessions), colour: 1 }], `Strangers', those of other versions, of the excluded, and those beyond limits. ${means(window)}`.trim());
    const last = records.slice(-20), there = last.reduce((n, r) => n + r.cohort - r.absent, 0), left = last.reduce((n, r) => n + r.dropped, 0);
    gist("turnout", there ? `${percent(left / there)} left the last ${last.length === 1 ? "round" : `${last.length} rounds`}` : "");
  }

  #bytes(records: RoundRecord[], other: Run | undefined): void {
    const made = records.filter((r) => r.released), x = made.map((r) => r.round), all = made.map((r) => eachOf(r.bytes_up + r.bytes_down, r));
    this.#traffic.show(x, [{ label: "All that crossed sockets", values: all, colour: 6 }, ...partLines(made).map((l, i) => ({ ...l, colour: [0, 2, 1][i] ?? 0, dash: i + 1 })),
      ...(other ? [{ label: "All, the other run", values: alignedTo(x, other, other.bytes), kind: "other" as const }] : [])],
    "Divided among the devices that were there. All has what devices that join meanwhile fetch once (base, programs), too.");
  }

  #times(records: RoundRecord[], other: Run | undefined): void {
    const made = records.filter((r) => r.released), x = made.map((r) => r.round), window = windowFor(x.length), each = made.map((r) => r.seconds);
    this.#time.show(x, [{ label: "From the draw to the release", values: smooth(each, window), colour: 0 },
      ...(window > 1 ? [{ label: "Each round", values: each, colour: 0, kind: "points" as const }] : []),
      ...(other ? [{ label: "The other run", values: smooth(alignedTo(x, other, other.seconds), window), kind: "other" as const }] : [])], `Of rounds that released something. ${means(window)}`.trim());
  }
}

/** This run, as another would be. */
export function asRun(records: RoundRecord[]): Run {
  const made = records.filter((r) => r.released);
  const best = (r: RoundRecord) => r.accuracy?.length ? Math.max(...r.accuracy.map((a) => a.accuracy)) : null;
  return { name: "This run", x: made.map((r) => r.round), accuracy: made.map(best), drawn: made.map((r) => r.accuracy?.find((a) => a.rank === r.rank)?.accuracy ?? null),
    epsilon: made.map((r) => r.simulated?.epsilon ?? r.delivered?.epsilon ?? null), seconds: made.map((r) => r.seconds), bytes: made.map((r) => eachOf(r.bytes_up + r.bytes_down, r)) };
}
