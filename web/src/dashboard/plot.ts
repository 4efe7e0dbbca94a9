// Plots over rounds: lines with bands, in the page's colours, with axis titles, a key that
// says the values, one zoom for all, the keyboard, and a table of the same figures. What
// is in a folded card is drawn when it is unfolded.
import uPlot from "uplot";
import { byId, element, say } from "../dom.js";
import { dashes, palette } from "../palette.js";
import type { Values } from "./figures.js";
import { soon } from "./frames.js";
import type { Zoom } from "./zoom.js";

export interface Line {
  label: string;
  values: Values;
  /** Which of the palette's colours; the line's place where it says none. */
  colour?: number;
  /** Which of the patterns: who does not tell colours apart tells lines by it. Whole where it says none. */
  dash?: number;
  /** A bound or another run's line, which is no measurement of this run. */
  kind?: "bound" | "other" | "points";
  /** Around the line; it has no row in the table of its own. */
  band?: { low: Values; high: Values };
}

export interface Look {
  title: string;
  /** What stands beside the vertical axis, with the unit. */
  y: string;
  format: (v: number) => string;
  /** The vertical axis begins at nothing. */
  fromZero?: boolean;
  /** What is counted: ticks are whole numbers. */
  whole?: boolean;
  /** How high, in pixels. */
  height?: number;
}

const patterns = { bound: [6, 4], other: [2, 2.5], points: [] as number[] };
const mostRows = 60; // of a table
const dark = matchMedia("(prefers-color-scheme: dark)");
const font = "12px system-ui, sans-serif";

export const colourOf = (i: number) => (dark.matches ? palette.dark : palette.light)[i % palette.light.length] ?? "#808080";
export const inks = () => dark.matches ? { ink: "#e6eaf0", grid: "#2d3541" } : { ink: "#1c2430", grid: "#d9dee5" };

interface Drawn { x: number[]; lines: Line[]; note: string }

export class Plot {
  readonly #look: Look;
  readonly #zoom: Zoom;
  readonly #id: string;
  readonly #host: HTMLElement;
  readonly #canvas = element("div", { class: "canvas", tabindex: "0", role: "group" });
  readonly #key = element("ul", { class: "key" });
  readonly #note = element("p", { class: "soft small" });
  readonly #table = element("details", { class: "values" }, element("summary", {}, "The same as a table"));
  #plot?: uPlot;
  #shape = "";
  #last?: Drawn;
  #stale = false;
  #at: number | null = null; // the index that is read
  #said = 0;

  constructor(id: string, look: Look, zoom: Zoom) {
    this.#id = id;
    this.#look = look;
    this.#zoom = zoom;
    this.#host = byId(id);
    this.#host.hidden = true;
    this.#canvas.setAttribute("aria-label", `Plot: ${look.title}. Arrow keys read it round by round, plus and minus zoom, 0 shows all.`);
    this.#host.append(element("h3", {}, look.title), this.#note, this.#key, this.#canvas, this.#table);
    new ResizeObserver(() => this.#resized()).observe(this.#canvas);
    dark.addEventListener("change", () => { this.#shape = ""; this.#ask(); });
    zoom.watch(() => this.#ask());
    this.#canvas.addEventListener("keydown", (event) => this.#pressed(event));
    this.#canvas.addEventListener("blur", () => { this.#read(null); });
    this.#table.addEventListener("toggle", () => this.#tabulate());
  }

  show(x: number[], lines: Line[], note = ""): void {
    this.#last = { x, lines, note };
    this.#host.hidden = x.length === 0 || lines.length === 0;
    if (!this.#host.hidden) this.#ask();
  }

  #ask(): void {
    this.#stale = true;
    soon(this.#id, () => this.#draw());
  }

  #resized(): void {
    if (this.#stale) this.#ask();
    else this.#fit();
  }

  #fit(): void {
    const width = this.#canvas.clientWidth;
    if (this.#plot && width > 0 && this.#plot.width !== width) this.#plot.setSize({ width, height: this.#height() });
  }

  #height(): number { return this.#look.height ?? 240; }

  #draw(): void {
    if (!this.#last || !this.#stale || this.#host.hidden || this.#canvas.clientWidth === 0) return; // a folded one waits
    this.#stale = false;
    const { x, lines, note } = this.#last;
    if (this.#note.textContent !== note) this.#note.textContent = note;
    const data: uPlot.AlignedData = [x, ...lines.map((l) => l.values), ...lines.flatMap((l) => l.band ? [l.band.low, l.band.high] : [])];
    const shape = lines.map((l) => `${l.label} ${l.kind ?? ""} ${l.band ? "band" : ""} ${x.length < 60}`).join("\n");
    if (this.#plot && shape === this.#shape) {
      this.#fit(); // it may have been resized while there was something to draw
      this.#plot.setData(data, false);
    } else this.#make(data, shape, lines);
    const range = this.#zoom.range, first = x[0] ?? 0, last = x.at(-1) ?? 1;
    this.#plot?.setScale("x", range ? { min: range.from, max: range.to } : { min: first, max: Math.max(last, first + 1) });
    this.#write();
    this.#tabulate();
  }

  #make(data: uPlot.AlignedData, shape: string, lines: Line[]): void {
    this.#plot?.destroy();
    this.#shape = shape;
    const { ink, grid } = inks();
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font, labelFont: font, labelSize: 20 };
    const looks = lines.map((l, i) => looksOf(l, i));
    const bands = lines.map((l, i) => ({ l, i })).filter(({ l }) => l.band);
    const none = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
    const few = (data[0]?.length ?? 0) < 60;
    this.#plot = new uPlot({
      width: this.#canvas.clientWidth, height: this.#height(), title: "", legend: { show: false },
      scales: { x: { time: false }, y: this.#look.fromZero ? { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } : {} },
      axes: [
        { ...axis, label: "Round", size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] },
        { ...axis, label: this.#look.y, size: 64, ...(this.#look.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000] } : {}), values: (_, ticks) => ticks.map((v) => this.#look.format(v)) },
      ],
      cursor: {
        drag: { x: true, y: false, setScale: false }, sync: { key: "rounds", setSeries: false },
        bind: { dblclick: () => () => { this.#zoom.set(undefined); return null; } }, points: { size: 7 },
      },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width > 6) this.#zoom.set({ from: u.posToVal(u.select.left, "x"), to: u.posToVal(u.select.left + u.select.width, "x") });
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
        setCursor: [(u) => { if ((u.cursor.idx ?? null) !== this.#at) { this.#at = u.cursor.idx ?? null; this.#write(); } }],
      },
      bands: bands.map(({ i }, k) => ({ series: [lines.length + 2 * k + 2, lines.length + 2 * k + 1], fill: `${looks[i]?.stroke ?? ink}2e` })),
      series: [{}, ...lines.map((l, i) => l.kind === "points"
        ? { label: l.label, stroke: `${looks[i]?.stroke}80`, paths: () => null, points: { show: true, size: few ? 5 : 3, fill: `${looks[i]?.stroke}80`, width: 0 } }
        : { label: l.label, ...looks[i], width: 2, spanGaps: true, points: { show: few && !l.kind } }),
      ...bands.flatMap(() => [{ ...none }, { ...none }])],
    }, data, this.#canvas);
    this.#canvas.querySelector("canvas")?.setAttribute("aria-hidden", "true");
    this.#key.replaceChildren(...lines.map((l, i) => element("li", {}, sample(looks[i] ?? { stroke: ink, dash: [] }, l), element("span", {}, l.label), element("b", {}))),
      element("li", { class: "at" }));
  }

  /** Writes the values of the round that is pointed at, or the last ones, into the key. */
  #write(): void {
    if (!this.#last) return;
    const { x, lines } = this.#last;
    const rows = this.#key.children;
    lines.forEach((l, i) => {
      const v = this.#at === null ? l.values.findLast((v) => v !== null) : l.values[this.#at];
      const to = rows[i]?.lastElementChild;
      const text = v === null || v === undefined ? "–" : this.#look.format(v);
      if (to && to.textContent !== text) to.textContent = text;
    });
    const at = rows[lines.length], text = this.#at === null ? "last" : `round ${x[this.#at]}`;
    if (at && at.textContent !== text) at.textContent = text;
  }

  // ---- the keyboard

  #pressed(event: KeyboardEvent): void {
    if (!this.#last || !this.#plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const { x } = this.#last, range = this.#zoom.range;
    const shown = x.flatMap((v, i) => !range || v >= range.from && v <= range.to ? [i] : []);
    const now = this.#at === null ? -1 : shown.indexOf(this.#at);
    const here = this.#at === null ? undefined : x[this.#at];
    const to = { ArrowRight: now < 0 ? shown.at(0) : shown[Math.min(now + 1, shown.length - 1)], ArrowLeft: now < 0 ? shown.at(-1) : shown[Math.max(now - 1, 0)],
      Home: shown[0], End: shown.at(-1) }[event.key];
    if (event.shiftKey && event.key.startsWith("Arrow")) this.#zoom.pan(event.key === "ArrowRight" ? 0.25 : -0.25);
    else if (to !== undefined) this.#read(to);
    else if (event.key === "+" || event.key === "=") this.#zoom.by(0.5, here);
    else if (event.key === "-") this.#zoom.by(2, here);
    else if (event.key === "0") this.#zoom.set(undefined);
    else if (event.key === "Escape") this.#read(null);
    else return;
    event.preventDefault();
  }

  #read(index: number | null): void {
    const u = this.#plot;
    if (!u || !this.#last) return;
    const x = index === null ? undefined : this.#last.x[index];
    u.setCursor(x === undefined ? { left: -10, top: -10 } : { left: u.valToPos(x, "x"), top: u.over.clientHeight / 2 });
    if (x === undefined || index === null) return;
    clearTimeout(this.#said);
    const text = `Round ${x}: ${this.#last.lines.filter((l) => l.kind !== "points").map((l) => `${l.label} ${l.values[index] == null ? "not measured" : this.#look.format(l.values[index])}`).join(", ")}`;
    this.#said = setTimeout(() => say("readout", text), 120); // not each of those that a held key passes
  }

  // ---- the table

  #tabulate(): void {
    if (!this.#table.open || !this.#last) return;
    const { x, lines } = this.#last, range = this.#zoom.range;
    const shown = x.flatMap((v, i) => !range || v >= range.from && v <= range.to ? [i] : []);
    const step = Math.max(1, Math.ceil(shown.length / mostRows));
    const rows = shown.filter((_, k) => (shown.length - 1 - k) % step === 0); // the last is among them
    const columns = lines.flatMap((l) => [{ label: l.label, values: l.values }, ...(l.band ? [{ label: `${l.label}, from`, values: l.band.low }, { label: "to", values: l.band.high }] : [])]);
    const table = element("table", {}, element("caption", { class: "soft" }, `${this.#look.title}${step > 1 ? `: one of ${step} rounds; zoom in for all` : ""}`),
      element("thead", {}, element("tr", {}, ...["Round", ...columns.map((c) => c.label)].map((t) => element("th", { scope: "col" }, t)))),
      element("tbody", {}, ...rows.map((i) => element("tr", {}, element("th", { scope: "row" }, String(x[i])),
        ...columns.map((c) => element("td", {}, c.values[i] == null ? "–" : this.#look.format(c.values[i])))))));
    tabulate(this.#table, `Table: ${this.#look.title}`, table);
  }
}

/** Puts a table under a summary, in place of an earlier one: where that was scrolled to stays, and so does the keyboard. */
export function tabulate(under: HTMLElement, label: string, table: HTMLElement): void {
  const region = under.querySelector(".table");
  if (region) region.replaceChildren(table);
  else under.append(element("div", { class: "table", tabindex: "0", role: "region", "aria-label": label }, table));
}

function looksOf(l: Line, i: number): { stroke: string; dash: number[] } {
  const colour = l.colour ?? i;
  if (l.kind === "other") return { stroke: inks().ink, dash: patterns.other };
  if (l.kind === "bound") return { stroke: colourOf(colour), dash: patterns.bound };
  return { stroke: colourOf(colour), dash: dashes[(l.dash ?? 0) % dashes.length] ?? [] };
}

/** A piece of a line for the key, long enough to show its pattern. */
function sample({ stroke, dash }: { stroke: string; dash: number[] }, l: Line): SVGElement {
  const make = (name: string, attributes: Record<string, string>) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const svg = make("svg", { width: "30", height: "10", viewBox: "0 0 30 10", "aria-hidden": "true" });
  if (l.band) svg.append(make("rect", { x: "0", y: "0", width: "30", height: "10", fill: stroke, "fill-opacity": ".2" }));
  if (l.kind === "points") svg.append(...[5, 15, 25].map((cx) => make("circle", { cx: String(cx), cy: "5", r: "2", fill: stroke })));
  else svg.append(make("line", { x1: "0", x2: "30", y1: "5", y2: "5", stroke, "stroke-width": "2.5", "stroke-dasharray": dash.join(" ") || "none" }));
  return svg;
}
