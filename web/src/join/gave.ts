// What this browser's files have given, job by job: a picture over time, the numbers, a file
// to take along, and forgetting. It is read from the accounts that the browser's edge keeps.
// A part of the script that is fetched where there is something to show.
import type { Edge, Given } from "../../edge/src/index.js";
import { brief, byId, element, message, say, show } from "../dom.js";
import { date, listed, spoken, t, Told, whenTold } from "../language/language.js";
import { bound, bytes, significant } from "./amounts.js";
import { letGo } from "./keep.js";
import { useless } from "./words.js";

interface Gave { file: string; given: Given }

let load: (() => Promise<Edge>) | undefined;
let all: Gave[] = [];

/** Shows the section; its jobs are read once it is opened, and again where it is offered again. */
export function offerGave(client: () => Promise<Edge>): void {
  const again = load !== undefined;
  load = client;
  show("gave", true);
  if (again) {
    if (byId<HTMLDetailsElement>("gave-details").open) void read();
    return;
  }
  byId("gave-details").addEventListener("toggle", () => { if (byId<HTMLDetailsElement>("gave-details").open) void read(); });
  byId("gave-json").addEventListener("click", () => download("starling-given.json", "application/json", `${JSON.stringify(all, undefined, "\t")}\n`));
  byId("gave-csv").addEventListener("click", () => download("starling-given.csv", "text/csv", csv(all)));
  whenTold(() => { if (all.length) paint(); }); // pictures are drawn with dates
}

async function read(): Promise<void> {
  say("gave-state", t("gave.reading"));
  byId("gave-state").classList.remove("failed");
  try {
    const edge = await load!();
    const found: Gave[] = [];
    for (const file of await edge.sources()) for (const given of await edge.givenBy(file)) found.push({ file, given });
    all = found.sort((a, b) => b.given.last - a.given.last);
    say("gave-state", all.length ? "" : t("gave.none"));
    paint();
  } catch (error) {
    say("gave-state", message(error));
    byId("gave-state").classList.add("failed");
  }
}

function paint(): void {
  byId("gave-list").replaceChildren(...all.map(row));
  show("gave-files", all.length > 0);
}

function row({ file, given: g }: Gave): HTMLElement {
  const pair = (name: Told, value: Told | string) => [element("dt", {}, name), element("dd", {}, value)];
  const name = g.forgotten ? t("gave.forgotten", { id: g.id.slice(0, 8) }) : listed([brief(g.name, 120)]);
  return element("li", {},
    element("h3", {}, element("bdi", {}, name)),
    element("p", { class: "soft small" }, g.last ? t("gave.file.until", { file: brief(file, 120), date: date(1000 * g.last) }) : t("gave.file", { file: brief(file, 120) })),
    ...picture(g),
    element("dl", {},
      ...pair(t("gave.rounds"), t("account.rounds", { n: g.promised, given: g.contributed })),
      ...(g.up || g.down ? pair(t("gave.bytes"), t("gave.moved", { sent: bytes(g.up ?? 0), received: bytes(g.down ?? 0) })) : []),
      ...pair(t("gave.epsilon"), g.epsilon && g.delta ? limit(g.epsilon, g.delta) : g.contributed ? t("account.no.bound") : t("account.nothing")),
      ...pair(t("gave.lies"), g.untrusted && g.delta && g.bits ? t("gave.alone", { bound: limit(g.untrusted, g.delta), bits: significant(g.bits), one: significant(g.example_bits ?? g.bits) }) : t("gave.lies.nothing"))),
    ...(g.forgotten ? [] : [forgetting(file, g)]));
}

/** A bound, with a word where it limits nothing. */
function limit(epsilon: number, delta: number): Told {
  const of = bound({ epsilon, delta });
  return epsilon > useless ? t("gave.useless", { bound: of }) : of;
}

/** A question before it is forgotten, with what that means. */
function forgetting(file: string, g: Given): HTMLElement {
  const yes = element("button", { type: "button", class: "quiet small" }, t("gave.forget.yes"));
  yes.addEventListener("click", () => void forget(file, g));
  return element("details", { class: "small" }, element("summary", {}, t("gave.forget")), element("p", {}, t("gave.forget.means")), element("p", {}, yes));
}

async function forget(file: string, g: Given): Promise<void> {
  try {
    await (await load!()).forget(file, g.id);
    await read();
    say("gave-state", t("gave.forgot"));
    byId("gave-title").focus(); // the button is gone
    await letGo();
  } catch (error) {
    say("gave-state", message(error));
    byId("gave-state").classList.add("failed");
  }
}

const width = 320, height = 72;

const drawn = (tag: string, attributes: Record<string, string | number>) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
};

/** How the rounds came about, as a line that rises; nothing of a single moment. */
function picture(g: Given): Node[] {
  const h = g.history ?? [], first = h[0], last = h.at(-1);
  if (!first || !last || last.at === first.at) return [];
  const rightward = document.documentElement.dir !== "rtl";
  const x = (at: number) => { const share = (at - first.at) / (last.at - first.at); return (rightward ? share : 1 - share) * width; };
  const y = (rounds: number) => height - 4 - (height - 8) * rounds / last.rounds;
  const line = h.map((m, i) => `${i ? `H${x(m.at).toFixed(1)}V` : `M${x(m.at).toFixed(1)} `}${y(m.rounds).toFixed(1)}`).join("");
  const told = t("gave.picture", { n: last.rounds, from: date(1000 * first.at, "short"), until: date(1000 * last.at, "short") });
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "gave", role: "img", "aria-label": told.render(), lang: spoken() });
  svg.append(drawn("path", { d: `${line}V${height - 4}H${x(first.at).toFixed(1)}Z`, class: "area" }), drawn("path", { d: line, class: "line" }));
  return [svg, element("p", { class: "soft small" }, told)];
}

/** A table with a line for each moment. What another calls its job begins no formula. */
function csv(list: Gave[]): string {
  const cell = (v: string | number | undefined) => {
    const text = String(v ?? ""), safe = typeof v === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = [["file", "job", "id", "time", "rounds", "promised", "bytes_sent", "bytes_received", "epsilon", "delta", "untrusted_epsilon", "bits_at_most", "example_bits_at_most"]];
  for (const { file, given: g } of list) {
    const history = g.history?.length ? g.history : [{ at: g.last, rounds: g.contributed, up: g.up ?? 0, down: g.down ?? 0 }];
    for (const [i, m] of history.entries()) {
      const cost = i === history.length - 1 ? [g.epsilon, g.delta, g.untrusted, g.bits, g.example_bits] : ["", "", "", "", ""];
      lines.push([file, g.name, g.id, m.at ? new Date(1000 * m.at).toISOString() : "", m.rounds, g.promised, m.up, m.down, ...cost].map(cell));
    }
  }
  return lines.map((l) => `${l.join(",")}\r\n`).join("");
}

function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
