// Another run beside this one: its table of rounds (rounds.csv), from a file or, by the
// link of its own dashboard, from a coordinator of the same origin. What it says is a
// stranger's until it is read: bounded, and refused by line and column.
import { byId, element, message, say, show } from "../dom.js";
import { bytes, duration, percent, significant } from "../format.js";
import type { Values } from "./figures.js";

export interface Run {
  name: string;
  x: number[];
  accuracy: Values;
  drawn: Values;
  epsilon: Values;
  seconds: Values;
  /** Of a device that was there, up and down. */
  bytes: Values;
}

export const mostBytes = 4 << 20, mostRounds = 20_000;

const needed = ["round", "cohort", "absent", "released", "accuracy", "seconds", "bytes_up", "bytes_down"] as const;

/** Fields of a line of CSV; a quoted one may hold commas and quotes. */
function fields(line: string): string[] {
  const out: string[] = [];
  for (const m of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) out.push(m[1]?.replaceAll('""', '"') ?? m[2] ?? "");
  return out;
}

/** Reads a table of rounds. */
export function readRun(name: string, text: string): Run {
  if (text.length > mostBytes) throw new Error(`it has more than ${bytes(mostBytes)}`);
  const lines = text.split(/\r?\n/).filter(Boolean);
  const head = fields(lines[0] ?? "");
  const lacking = needed.filter((n) => !head.includes(n));
  if (lacking.length) throw new Error(`it is no table of rounds (rounds.csv): it has no column ${lacking.join(", ")}`);
  if (lines.length - 1 > mostRounds) throw new Error(`it has ${lines.length - 1} rounds, at most ${mostRounds} are read`);
  const run: Run = { name, x: [], accuracy: [], drawn: [], epsilon: [], seconds: [], bytes: [] };
  lines.slice(1).forEach((line, k) => {
    const of = fields(line);
    if (of.length !== head.length) throw new Error(`line ${k + 2} has ${of.length} fields, its head ${head.length}`);
    const text = (column: string) => of[head.indexOf(column)] ?? "";
    const number = (column: string): number | null => {
      if (text(column) === "") return null;
      const v = Number(text(column));
      if (!Number.isFinite(v) || v < 0) throw new Error(`line ${k + 2}: ${column} is no number that can be: ${text(column).slice(0, 20)}`);
      return v;
    };
    if (text("released") !== "true") return;
    const there = Math.max(1, (number("cohort") ?? 0) - (number("absent") ?? 0)), round = number("round");
    if (round === null || round <= (run.x.at(-1) ?? 0)) throw new Error(`line ${k + 2}: rounds must go up`);
    run.x.push(round);
    run.accuracy.push(number("accuracy"));
    run.drawn.push(number("accuracy_drawn"));
    run.epsilon.push(number("epsilon_simulated") ?? number("epsilon_delivered"));
    run.seconds.push(number("seconds"));
    run.bytes.push(((number("bytes_up") ?? 0) + (number("bytes_down") ?? 0)) / there);
  });
  if (run.x.length === 0) throw new Error("none of its rounds has released anything");
  return run;
}

/** Values at the rounds of x: another run has rounds of its own. */
export function alignedTo(x: number[], run: Run, values: Values): Values {
  const at = new Map(run.x.map((r, i) => [r, values[i] ?? null]));
  return x.map((r) => at.get(r) ?? null);
}

/** Where a link of a dashboard, or of a table itself, leads; undefined token: none is shown. */
export function source(link: string, here: string): { url: string; token?: string } {
  let at: URL;
  try { at = new URL(link.trim(), here); } catch { throw new Error("that is no address"); }
  if (at.origin !== new URL(here).origin) throw new Error("another server's pages are out of reach from here: download its rounds.csv and open the file");
  const token = at.hash.slice(1);
  at.hash = "";
  if (!at.pathname.endsWith(".csv")) at.pathname = at.pathname.replace(/\/(dashboard(\.html)?)?$/, "/v1/admin/rounds.csv");
  return { url: at.href, ...(token ? { token } : {}) };
}

/** The figures of one run that are compared. */
export interface Summary {
  rounds: number;
  accuracy?: number;
  best?: number;
  epsilon?: number;
  seconds?: number;
  bytes?: number;
}

const median = (values: Values): number | undefined => {
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)];
};

export function summary(run: Run): Summary {
  const known = run.accuracy.filter((v) => v !== null);
  const of: Summary = { rounds: run.x.length };
  const put = (key: Exclude<keyof Summary, "rounds">, v: number | null | undefined) => { if (v !== null && v !== undefined) of[key] = v; };
  put("accuracy", known.at(-1));
  put("best", known.length ? Math.max(...known) : undefined);
  put("epsilon", run.epsilon.findLast((v) => v !== null));
  put("seconds", median(run.seconds));
  put("bytes", median(run.bytes));
  return of;
}

const rows: [string, keyof Summary, (v: number) => string][] = [
  ["Rounds released", "rounds", String], ["Accuracy, the last measured", "accuracy", percent], ["Accuracy, the highest measured", "best", percent],
  ["Epsilon spent", "epsilon", significant], ["Seconds a round, the median", "seconds", (v) => v < 10 ? `${v.toFixed(1)} s` : duration(v)],
  ["Bytes of a device in a round, the median", "bytes", (v) => bytes(Math.round(v))],
];

/** Lets an operator choose another run; changed is told of it, undefined for none. */
export class Comparison {
  #run?: Run;
  readonly #changed: (run: Run | undefined) => void;

  constructor(changed: (run: Run | undefined) => void) {
    this.#changed = changed;
    const file = byId<HTMLInputElement>("compare-file");
    file.addEventListener("change", () => void this.#take(async () => {
      const of = file.files?.[0];
      if (!of) return undefined;
      if (of.size > mostBytes) throw new Error(`it has ${bytes(of.size)}, at most ${bytes(mostBytes)} are read`);
      const text = await of.text();
      file.value = ""; // the same file may be chosen again, mended
      return readRun(of.name, text);
    }));
    byId("compare-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const input = byId<HTMLInputElement>("compare-link");
      void this.#take(async () => {
        const { url, token } = source(input.value, location.href);
        input.value = ""; // it may hold a token
        const response = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {}, redirect: "error", cache: "no-store" });
        if (!response.ok) throw new Error(response.status === 401 ? "its coordinator does not know the token behind the #" : `the server answers ${response.status}`);
        if (Number(response.headers.get("Content-Length") ?? 0) > mostBytes) throw new Error(`it has more than ${bytes(mostBytes)}`);
        return readRun(new URL(url).pathname, await response.text());
      });
    });
    byId("compare-drop").addEventListener("click", () => {
      this.#set(undefined);
      byId("compare-file").focus();
    });
  }

  get run(): Run | undefined { return this.#run; }

  async #take(read: () => Promise<Run | undefined>): Promise<void> {
    say("compare-said", "");
    try {
      const run = await read();
      if (run) this.#set(run);
    } catch (error) {
      say("compare-said", `Not read: ${message(error)}.`);
    }
  }

  #set(run: Run | undefined): void {
    this.#run = run;
    show("compare-shown", run !== undefined);
    say("compare-said", run ? `${run.name} is laid over the plots, dotted.` : "It is gone from the plots.");
    this.#changed(run);
  }

  /** Shows the figures of both. */
  paint(own: Run): void {
    const other = this.#run;
    if (!other) return;
    const [a, b] = [summary(own), summary(other)];
    byId("compare-rows").replaceChildren(...rows.map(([name, key, format]) => element("tr", {}, element("th", { scope: "row" }, name),
      ...[a, b].map((s) => element("td", {}, s[key] === undefined ? "–" : format(s[key]))))));
    say("compare-name", other.name);
  }
}
