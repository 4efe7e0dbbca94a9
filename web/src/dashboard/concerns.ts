// What anyone who is on call must see first: rules over what is known of a job. None touches
// the page.
import type { Check, Occurrence, RoundRecord, Status } from "../api.js";
import { count, duration, percent } from "../format.js";

export interface Known {
  now: number; // ms
  progress: Status;
  records: RoundRecord[]; // the oldest first
  lines: Occurrence[];
  checks: Check[];
}

export interface Concern {
  level: "alarm" | "warn";
  what: string;
  /** What may be done. */
  next?: string;
  /** The card that has more of it. */
  card?: string;
}

const recent = 5, before = 50; // rounds that are compared
const worthSaying = 0.05;      // share of devices that leave
const sigmas = 3;
const minute = 60_000, day = 24 * 60 * minute;

/** All that somebody should look at, the worst first. */
export function concerns(k: Known): Concern[] {
  const found = [...ending(k), ...failing(k), ...alarms(k), ...nothingReleased(k), ...late(k), ...leaving(k), ...convicted(k)];
  return found.sort((a, b) => Number(a.level === "warn") - Number(b.level === "warn"));
}

function* ending({ progress: p }: Known): Generator<Concern> {
  const reason = p.reason ?? "";
  if (p.state === "finished") {
    if (p.version < p.rounds) yield { level: "alarm", what: `The job has ended after ${p.version} of ${count(p.rounds, "round")}${reason ? `: ${reason}` : "."}`, card: "events" };
  } else if (p.state === "stopped") {
    yield { level: "warn", what: `The coordinator has stopped after ${p.version} of ${count(p.rounds, "round")}.`, next: "Start serve again: the job goes on where it was.", card: "events" };
  } else if (reason.startsWith("paused")) {
    yield { level: "alarm", what: `No round is drawn: ${reason}.`, card: "events" };
  } else if (p.state === "waiting" && reason) {
    yield { level: "warn", what: `It waits: ${reason}; ${count(p.connected, "device")} of ${p.enrolled.toLocaleString("en")} are connected.`, card: "fleet" };
  }
}

/** What each check that fails asks for. Of the job's own state other rules say more. */
const mends: Record<string, string> = {
  engine: "If it lasts, start serve again: it goes on where it was.",
  store: "Look at the disk of --dir and at the coordinator's log.",
  disk: "Make room in --dir before a commit does not fit.",
  clock: "Set this machine's clock: invitations expire by it.",
  rounds: "A round is over its own deadlines: look at the coordinator's log.",
};

function* failing({ checks }: Known): Generator<Concern> {
  for (const c of checks) {
    if (!c.ok && c.name !== "job") yield { level: "alarm", what: `The check of ${c.name} fails: ${c.detail}.`, ...(mends[c.name] ? { next: mends[c.name] } : {}) };
  }
}

function* alarms({ lines, now }: Known): Generator<Concern> {
  const of = lines.filter((l) => (l.what.startsWith("ALARM") || l.level === "ERROR") && now - Date.parse(l.time) < day);
  const last = of.at(-1);
  if (!last) return;
  const whats = new Set(of.map((l) => l.what));
  yield { level: "alarm", card: "events", what: `${last.what} (${new Date(last.time).toLocaleTimeString("en-GB")})` +
    (of.length > 1 ? `, and ${count(of.length - 1, "more line")} of ${whats.size > 1 ? "errors" : "the same"} within 24 hours.` : ".") };
}

function* nothingReleased({ records }: Known): Generator<Concern> {
  let n = 0;
  while (n < records.length && records[records.length - 1 - n]?.released === false) n++;
  if (n === 0) return;
  yield { level: n >= 3 ? "alarm" : "warn", card: "history", what: `${n === 1 ? "The last round" : `The last ${n} rounds`} released nothing${
    records.at(-1)?.reason ? `: ${records.at(-1)?.reason}` : "."}`, next: "If it repeats, more devices must stay, or the job's floors be lower." };
}

/** A round that takes much longer than rounds do here. */
function* late({ records, progress: p, now }: Known): Generator<Concern> {
  const ends = records.map((r) => r.ended ?? 0).filter((t) => t > 0).slice(-1 - before);
  const last = ends.at(-1);
  if (p.state === "finished" || p.state === "stopped" || p.state === "waiting" || p.state === "measuring" || last === undefined || ends.length < recent) return;
  const apart = ends.slice(1).map((t, i) => t - (ends[i] ?? t)).sort((a, b) => a - b);
  const usual = apart[Math.floor(apart.length / 2)] ?? 0, since = now / 1000 - last;
  if (since > Math.max(60, 5 * usual)) {
    yield { level: "warn", what: `No round has ended for ${duration(since)}; they usually end ${duration(usual)} apart.`, card: "history" };
  }
}

/** Devices that leave rounds more than they did: by more than chance explains, and enough to matter. */
function* leaving({ records }: Known): Generator<Concern> {
  const there = (rs: RoundRecord[]) => rs.reduce((n, r) => n + r.cohort - r.absent, 0);
  const left = (rs: RoundRecord[]) => rs.reduce((n, r) => n + r.dropped, 0);
  const of = records.slice(-recent), earlier = records.slice(-recent - before, -recent);
  const n = there(of), m = there(earlier);
  if (of.length < recent || n === 0) return;
  const share = left(of) / n;
  if (share < worthSaying) return;
  if (m === 0) {
    yield { level: "warn", what: `In the last ${recent} rounds ${percent(share)} of the devices left before the end.`, card: "turnout" };
    return;
  }
  const was = left(earlier) / m, all = (left(of) + left(earlier)) / (n + m);
  if ((share - was) / Math.sqrt(all * (1 - all) * (1 / n + 1 / m)) > sigmas) {
    yield { level: "warn", what: `More devices leave: ${percent(share)} in the last ${recent} rounds, ${percent(was)} in the ${earlier.length} before.`,
      next: "Their plots say whether they stop, are refused or are lost.", card: "turnout" };
  }
}

function* convicted({ lines, now }: Known): Generator<Concern> {
  const n = new Set(lines.filter((l) => l.what === "strike" && now - Date.parse(l.time) < day && l.details?.includes("excluded=true"))
    .map((l) => l.details?.find((d) => d.startsWith("device=")))).size;
  if (n) yield { level: "warn", what: `${count(n, "device was", "devices were")} excluded within 24 hours.`, next: "Look at why; a pardon takes one in again.", card: "fleet" };
}
