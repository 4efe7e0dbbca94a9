// What plots show, computed from the rounds' records: nothing here touches the page, and a
// test holds it to figures computed elsewhere.
import type { Forecast, RoundRecord } from "../api.js";

export type Values = (number | null)[];

/** The interval of Wilson for a share of n, both ends: what other documents would plausibly give, at 95 %. */
export function wilson(share: number, n: number): [number, number] {
  const z = 1.959963984540054;
  const centre = (share + z * z / (2 * n)) / (1 + z * z / n);
  const half = z / (1 + z * z / n) * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

/** How many measurements a smoothed point is the mean of at most: none is smoothed where there are few. */
export function windowFor(n: number): number {
  if (n < 10) return 1;
  return Math.min(51, 2 * Math.ceil(n / 24) + 1);
}

/** The mean of the window around each point, of what there is in it; where nothing was measured there is none. */
export function smooth(values: Values, window: number): Values {
  const half = (window - 1) / 2;
  const at = values.flatMap((v, i) => v === null ? [] : [i]);
  const sums = [0];
  for (const i of at) sums.push((sums.at(-1) ?? 0) + (values[i] ?? 0));
  const out: Values = values.map(() => null);
  at.forEach((i, k) => {
    const from = Math.max(0, k - half), to = Math.min(at.length, k + half + 1);
    out[i] = ((sums[to] ?? 0) - (sums[from] ?? 0)) / (to - from);
  });
  return out;
}

export interface Learning {
  x: number[];
  /** The highest of the ranks, each as it was measured last. */
  best: Values;
  bestRank: Values;
  /** At the rank that the round drew. */
  drawn: Values;
  /** Losses at the same. */
  bestLoss: Values;
  drawnLoss: Values;
  /** Documents that best and drawn were measured on; 0: the record does not say. */
  bestOf: number[];
  drawnOf: number[];
  /** What the round's devices found on their own held-out examples, with the interval of its noise. */
  fleet: Interval;
  fleetLoss: Interval;
}

export interface Interval {
  values: Values;
  low: Values;
  high: Values;
}

/** Standard deviations of noise that hold 95 %. */
const confident = 1.96;

/** Accuracy over the rounds that released something. */
export function learning(records: RoundRecord[]): Learning {
  const out: Learning = { x: [], best: [], bestRank: [], drawn: [], bestLoss: [], drawnLoss: [], bestOf: [], drawnOf: [],
    fleet: { values: [], low: [], high: [] }, fleetLoss: { values: [], low: [], high: [] } };
  const put = (to: Interval, of: { mean: number; noise: number } | undefined) => {
    to.values.push(of ? of.mean : null);
    to.low.push(of ? of.mean - confident * of.noise : null);
    to.high.push(of ? of.mean + confident * of.noise : null);
  };
  const last = new Map<number, { accuracy: number; loss?: number; of?: number }>();
  for (const r of records) {
    if (!r.released) continue;
    for (const a of r.accuracy ?? []) last.set(a.rank, a);
    let rank: number | null = null;
    for (const [of, a] of last) {
      const than = rank === null ? undefined : last.get(rank);
      if (rank === null || than === undefined || a.accuracy > than.accuracy || a.accuracy === than.accuracy && of < rank) rank = of;
    }
    const best = rank === null ? undefined : last.get(rank), drawn = r.accuracy?.find((a) => a.rank === r.rank);
    const measured = (r.accuracy?.length ?? 0) > 0; // where nothing was, no point is made up
    out.x.push(r.round);
    out.best.push(measured && best ? best.accuracy : null);
    out.bestRank.push(measured ? rank : null);
    out.bestLoss.push(measured ? best?.loss ?? null : null);
    out.bestOf.push(best?.of ?? 0);
    out.drawn.push(drawn?.accuracy ?? null);
    out.drawnLoss.push(drawn?.loss ?? null);
    out.drawnOf.push(drawn?.of ?? 0);
    put(out.fleet, r.fleet?.accuracy);
    put(out.fleetLoss, r.fleet?.loss);
  }
  return out;
}

/** Wilson's interval around smoothed shares. All rounds are measured on the same documents: that several are averaged makes it no narrower. */
export function intervals(shares: Values, of: number[]): { low: Values; high: Values; known: boolean } {
  const low: Values = [], high: Values = [];
  let known = false;
  shares.forEach((s, i) => {
    const n = of[i] ?? 0;
    const [a, b] = s === null || n === 0 ? [null, null] : wilson(s, n);
    known ||= a !== null;
    low.push(a);
    high.push(b);
  });
  return { low, high, known };
}

export interface RankMapCells {
  x: number[];
  ranks: number[];
  /** By rank, by round: the accuracy as it was measured last; null before the first time. */
  cells: Values[];
  drawn: number[];
}

/** What each rank was measured at, over the rounds. */
export function rankMap(records: RoundRecord[]): RankMapCells {
  const made = records.filter((r) => r.released);
  const ranks = [...new Set(made.flatMap((r) => r.accuracy?.map((a) => a.rank) ?? []))].sort((a, b) => a - b);
  const cells = ranks.map((rank) => {
    let last: number | null = null;
    return made.map((r) => last = r.accuracy?.find((a) => a.rank === rank)?.accuracy ?? last);
  });
  return { x: made.map((r) => r.round), ranks, cells, drawn: made.map((r) => r.rank) };
}

export interface Turnout {
  x: number[];
  lost: Values;
  stopped: Values;
  declined: Values;
  refused: Values;
  absent: Values;
  sessions: Values;
}

/** Who left rounds, by why: lost are those of the dropped who neither said something nor sent what was refused. */
export function turnout(records: RoundRecord[]): Turnout {
  const of = (f: (r: RoundRecord) => number): Values => records.map(f);
  return {
    x: records.map((r) => r.round),
    lost: of((r) => Math.max(0, r.dropped - (r.stopped ?? 0) - (r.declined ?? 0) - (r.refused ?? 0))),
    stopped: of((r) => r.stopped ?? 0), declined: of((r) => r.declined ?? 0), refused: of((r) => r.refused ?? 0),
    absent: of((r) => r.absent), sessions: of((r) => r.sessions_refused ?? 0),
  };
}

export interface Spending {
  x: number[];
  spent: Values;
  foretold: Values;
}

type Bound = "delivered" | "simulated" | "public" | "coalition" | "visible" | "untrusted";

/** Epsilon by round: as it was accounted, and as it goes on if each further round releases something. */
export function spending(records: RoundRecord[], bound: Bound, forecast: Forecast | undefined): Spending {
  const out: Spending = { x: [], spent: [], foretold: [] };
  for (const r of records) {
    out.x.push(r.round);
    out.spent.push(r[bound]?.epsilon ?? null);
    out.foretold.push(null);
  }
  if (!forecast) return out;
  const round = records.at(-1)?.round ?? 0, epsilon = records.at(-1)?.[bound]?.epsilon;
  if (epsilon !== undefined && forecast.left > 0) out.foretold[out.foretold.length - 1] = epsilon;
  // Rounds may have ended since it was foretold.
  const charged = Math.max(forecast.charged, records.filter((r) => r[bound]).length);
  for (const p of forecast.points) {
    const further = p.rounds - charged;
    if (further <= 0 || p.rounds - forecast.charged > forecast.affords) continue;
    out.x.push(round + further);
    out.spent.push(null);
    out.foretold.push(p[bound]?.epsilon ?? null);
  }
  return out;
}

/** Bytes of a device in a round: of those who were there. */
export const eachOf = (v: number, r: RoundRecord) => v / Math.max(1, r.cohort - r.absent);
