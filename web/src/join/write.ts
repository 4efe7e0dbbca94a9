// Data without a file: texts that are typed or pasted, a spreadsheet's rows too, each with its
// label in place. They stay in this page.
import type { FileSource } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { brief, byId, element, say, show, Sorry } from "../dom.js";
import { t } from "../language/language.js";

interface Written { text: string; label: string }

/** Bytes of one paste: what is more is a file. */
const mostPasted = 4 << 20;

let all: Written[] = [];
let of: About;
let unlabelled = false;
let changed: (source: FileSource | undefined) => void;

/** Opens the place to write; told is called with all that was written, undefined where that is nothing. */
export function write(about: About, without: boolean, told: typeof changed): void {
  const first = changed === undefined;
  [of, unlabelled, changed] = [about, without, told];
  show("writing", true);
  show("writing-label-part", !unlabelled);
  byId<HTMLSelectElement>("writing-label").replaceChildren(element("option", { value: "" }, t("data.naming.choose")), ...about.labels.map((l) => element("option", { value: l }, l)));
  if (first) byId("writing-form").addEventListener("submit", (event) => {
    event.preventDefault();
    add(byId<HTMLTextAreaElement>("writing-text").value);
  });
  byId("writing-text").focus();
}

/** Adds a text, or rows as a spreadsheet copies them; says what is missing. */
export function add(pasted: string): void {
  say("writing-state", "");
  try {
    const rows = rowsOf(pasted, unlabelled ? undefined : of.labels, byId<HTMLSelectElement>("writing-label").value);
    if (!rows.length) return;
    all = [...all, ...rows];
    byId<HTMLTextAreaElement>("writing-text").value = "";
    paint();
  } catch (error) {
    if (!(error instanceof Sorry)) throw error;
    say("writing-state", error.told);
  }
}

/** Forgets what was written: other data were chosen. */
export function forgetWritten(): void {
  all = [];
  byId("writing-list").replaceChildren();
  show("writing", false);
}

/** The rows of a text: one where nothing in it is a spreadsheet's. labels: what a row has one of; undefined where it has none. */
export function rowsOf(pasted: string, labels: string[] | undefined, otherwise: string): Written[] {
  if (pasted.length > mostPasted) throw new Sorry(t("data.write.long"));
  const table = pasted.includes("\t"), lines = (table ? pasted.split(/\r?\n|\r/) : [pasted]).map((l) => l.trim() ? l : "").filter(Boolean);
  const rows = lines.map((line) => {
    const cells = table ? line.split("\t").map((c) => c.trim().replace(/^"(.*)"$/s, (_, inner: string) => inner.replace(/""/g, '"'))) : [line.trim()];
    const at = labels ? cells.findIndex((c) => labels.includes(c)) : -1;
    const text = cells.filter((_, i) => i !== at).reduce((a, b) => b.length > a.length ? b : a, "");
    return { text, label: at >= 0 ? cells[at]! : otherwise };
  });
  // A first row without a label, above rows that have one, is the columns' names.
  const named = table && labels && rows.length > 1 && !labels.some((l) => lines[0]!.split("\t").map((c) => c.trim()).includes(l)) && rows.slice(1).every((r) => r.label !== otherwise);
  const found = (named ? rows.slice(1) : rows).filter((r) => r.text);
  const missing = labels ? found.filter((r) => !labels.includes(r.label)).length : 0;
  if (missing) throw new Sorry(t("data.write.unlabelled", { n: missing }));
  return found;
}

function paint(): void {
  byId("writing-list").replaceChildren(...all.map(row));
  const lines = all.map(({ text, label }) => `${JSON.stringify(unlabelled ? { text } : { text, label })}\n`).join("");
  changed(all.length ? { fileName: "written.jsonl", data: new TextEncoder().encode(lines), unlabelled } : undefined);
}

/** At most so many are listed; all are taken, and the preview counts them. */
const mostListed = 100;

function row(r: Written, i: number): HTMLElement {
  if (i >= mostListed) return element("li", { hidden: "" });
  const remove = element("button", { type: "button", class: "link" }, t("data.write.remove"));
  remove.addEventListener("click", () => {
    all = all.filter((other) => other !== r);
    paint();
    byId("writing-text").focus(); // the button is gone
  });
  const parts: Node[] = [element("bdi", {}, brief(r.text, 200)), remove];
  if (!unlabelled) {
    const label = element("select", { "aria-label": t("data.write.of", { text: brief(r.text, 60) }) }, ...of.labels.map((l) => element("option", { value: l }, l)));
    label.value = r.label;
    label.addEventListener("change", () => {
      r.label = label.value;
      paint();
      byId("writing-list").querySelectorAll<HTMLSelectElement>("select")[i]?.focus();
    });
    parts.splice(1, 0, label);
  }
  return element("li", {}, ...parts);
}
