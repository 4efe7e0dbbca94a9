// How fast rounds come, and when the job would be over at that pace.
import type { RoundRecord, Status } from "../api.js";
import { duration } from "../format.js";

const recent = 20; // releases whose distances count

export interface Pace {
  /** Seconds from one release to the next: the median, and the quartiles around it. */
  usual: number;
  fast: number;
  slow: number;
}

/** Of records, the oldest first; undefined before the third release. The time that nobody ran the coordinator in is in it, as one long distance among many. */
export function pace(records: RoundRecord[]): Pace | undefined {
  const ends = records.filter((r) => r.released && r.ended).slice(-recent - 1).map((r) => r.ended ?? 0);
  // A record's end is in whole seconds. Where rounds are shorter only many of them say anything.
  const apart = ends.slice(1).map((t, i) => t - (ends[i] ?? t)).sort((a, b) => a - b);
  const first = ends[0], last = ends.at(-1);
  if (apart.length < 2 || first === undefined || last === undefined) return undefined;
  const at = (q: number) => apart[Math.round(q * (apart.length - 1))] ?? 0;
  if (at(0.5) < 2) {
    const mean = (last - first) / apart.length;
    return { usual: mean, fast: mean, slow: mean };
  }
  return { usual: at(0.5), fast: at(0.25), slow: at(0.75) };
}

const between = ["waiting", "committed", "abandoned", "measuring", "finished", "stopped"]; // states in which no round runs

/** How many rounds are made. Numbers count those that released nothing, too: they are told where they are fewer. */
export function made(p: Status): string {
  const nothing = Math.max(0, p.round - p.version - (between.includes(p.state) ? 0 : 1));
  return `${p.version} of ${p.rounds} made${nothing ? `; ${nothing} released nothing` : ""}`;
}

/** Whether no more rounds come from this coordinator, and then what became of the job. */
export function ended(p: Status): string | undefined {
  if (p.state === "stopped") return `The coordinator has stopped after ${p.version} of ${p.rounds} rounds. The job goes on when it is served again.`;
  if (p.state !== "finished") return undefined;
  return p.version < p.rounds ? `The job ended early, after ${p.version} of ${p.rounds} rounds` : "The job is over";
}

/** Time left, and how it is known. */
export function remaining(p: Status, records: RoundRecord[]): { left: string; how: string } {
  const rounds = p.rounds - p.version, of = pace(records);
  if (p.state === "stopped") return { left: "–", how: "the coordinator has stopped" };
  if (p.state === "finished" && rounds > 0) return { left: "–", how: `the job ended early${p.reason ? `: ${p.reason}` : ""}` };
  if (p.state === "finished" || rounds <= 0) return { left: "–", how: "the job is over" };
  if (!of) return { left: "–", how: "left, told after three releases" };
  const [least, most] = [duration(rounds * of.fast), duration(rounds * of.slow)];
  return { left: duration(rounds * of.usual), how: `left at the pace of the last ${Math.min(recent, records.length)} releases${least === most ? "" : ` (${least} to ${most})`}` };
}
