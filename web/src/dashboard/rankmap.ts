// Which rank does how well, round by round, as a map: a row a rank, coloured by the
// accuracy that it was measured at last, in seven steps of one hue that the key names; a
// mark where a round drew the rank. It zooms and is read as the lines above it are.
import uPlot from "uplot";
import { byId, element, say } from "../dom.js";
import { percent } from "../format.js";
import type { RankMapCells } from "./figures.js";
import { soon } from "./frames.js";
import { inks, tabulate } from "./plot.js";
import type { Zoom } from "./zoom.js";

const steps = 7;
const mostMarks = 400; // rounds in sight, beyond which marks of what was drawn would cover the map
const mostRows = 40;
const dark = matchMedia("(prefers-color-scheme: dark)");
const ends = { light: ["#dcebf5", "#00456d"], dark: ["#24384a", "#a9dcff"] } as const;

/** The colours from the least to the greatest. */
function ramp(): string[] {
  const [a, b] = ends[dark.matches ? "dark" : "light"];
  const part = (hex: string, i: number) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  return Array.from({ length: steps }, (_, k) => `rgb(${[0, 1, 2].map((i) => Math.round(part(a, i) + (part(b, i) - part(a, i)) * k / (steps - 1))).join(",")})`);
}

const named = (rank: number) => rank ? String(rank) : "head";

export class RankMap {
  readonly #zoom: Zoom;
  readonly #host = byId("rank-map");
  readonly #canvas = element("div", { class: "canvas", tabindex: "0", role: "group",
    "aria-label": "Map: accuracy of each rank by round. Left and right read it round by round, plus and minus zoom, 0 shows all." });
  readonly #key = element("ul", { class: "key" });
  readonly #at = element("p", { class: "small map-at" });
  readonly #table = element("details", { class: "values" }, element("summary", {}, "The same as a table"));
  #plot?: uPlot;
  #map?: RankMapCells;
  #levels: number[] = []; // the least of each step
  #shape = "";
  #stale = false;
  #read: number | null = null;
  #said = 0;

  constructor(zoom: Zoom) {
    this.#zoom = zoom;
    this.#host.append(element("h3", {}, "Accuracy of each rank, by round"),
      element("p", { class: "soft small" }, "A rank keeps its colour until it is measured again: while rounds run, only the rank that a round drew is measured. Squares mark what was drawn."),
      this.#key, this.#canvas, this.#at, this.#table);
    new ResizeObserver(() => {
      const width = this.#canvas.clientWidth;
      if (width && this.#stale) this.#ask();
      else if (width && this.#plot && this.#plot.width !== width) this.#plot.setSize({ width, height: this.#plot.height });
    }).observe(this.#canvas);
    dark.addEventListener("change", () => { this.#shape = ""; this.#ask(); });
    zoom.watch(() => this.#ask());
    this.#canvas.addEventListener("keydown", (event) => this.#pressed(event));
    this.#table.addEventListener("toggle", () => this.#tabulate());
  }

  /** Shows a map; one rank alone is a line, and has none. */
  show(map: RankMapCells): void {
    this.#map = map;
    this.#host.hidden = map.ranks.length < 2;
    if (!this.#host.hidden) this.#ask();
  }

  #ask(): void {
    this.#stale = true;
    soon("rank-map", () => this.#draw());
  }

  #draw(): void {
    const map = this.#map;
    if (!map || !this.#stale || this.#host.hidden || this.#canvas.clientWidth === 0) return;
    this.#stale = false;
    let least = Infinity, most = -Infinity;
    for (const row of map.cells) for (const v of row) if (v !== null) { least = Math.min(least, v); most = Math.max(most, v); }
    this.#levels = Array.from({ length: steps }, (_, k) => least + (most - least) * k / steps);
    const colours = ramp();
    this.#key.replaceChildren(...(most > least ? colours.map((c, k) => {
      const swatch = element("i", { "aria-hidden": "true" });
      swatch.style.background = c;
      return element("li", {}, swatch, k === 0 ? `below ${percent(this.#levels[1] ?? 0)}` : `from ${percent(this.#levels[k] ?? 0)}`);
    }) : [element("li", {}, `${percent(least)} everywhere`)]));
    const data: uPlot.AlignedData = [map.x, map.drawn.map((r) => { const row = map.ranks.indexOf(r); return row < 0 ? null : row; })];
    const shape = `${map.ranks.join()} ${this.#canvas.clientWidth}`;
    if (this.#plot && shape === this.#shape) this.#plot.setData(data, false);
    else this.#make(data, shape, map);
    const range = this.#zoom.range, first = map.x[0] ?? 0, last = map.x.at(-1) ?? 1;
    this.#plot?.setScale("x", range ? { min: range.from, max: range.to } : { min: first, max: Math.max(last, first + 1) });
    this.#tell();
    this.#tabulate();
  }

  #make(data: uPlot.AlignedData, shape: string, { ranks }: RankMapCells): void {
    this.#plot?.destroy();
    this.#shape = shape;
    const { ink, grid } = inks(), font = "12px system-ui, sans-serif";
    const axis = { stroke: ink, ticks: { stroke: grid, width: 1 }, font, labelFont: font, labelSize: 20 };
    const every = Math.ceil(ranks.length / 12);
    this.#plot = new uPlot({
      width: this.#canvas.clientWidth, height: Math.min(340, 90 + 22 * ranks.length), title: "", legend: { show: false },
      scales: { x: { time: false }, y: { range: () => [-0.5, ranks.length - 0.5] } },
      axes: [{ ...axis, label: "Round", size: 34, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] },
        { ...axis, label: "Rank", size: 58, grid: { show: false }, splits: () => ranks.map((_, i) => i).filter((i) => i % every === 0), values: (_, at) => at.map((i) => named(ranks[i] ?? 0)) }],
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "rounds", setSeries: false },
        bind: { dblclick: () => () => { this.#zoom.set(undefined); return null; } }, points: { show: false } },
      hooks: {
        drawClear: [(u) => this.#paint(u)],
        setSelect: [(u) => {
          if (u.select.width > 6) this.#zoom.set({ from: u.posToVal(u.select.left, "x"), to: u.posToVal(u.select.left + u.select.width, "x") });
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
        setCursor: [(u) => { if ((u.cursor.idx ?? null) !== this.#read) { this.#read = u.cursor.idx ?? null; this.#tell(); } }],
      },
      series: [{}, { label: "drawn", stroke: ink, paths: () => null, points: { show: false } }],
    }, data, this.#canvas);
    this.#canvas.querySelector("canvas")?.setAttribute("aria-hidden", "true");
  }

  /** Draws the cells that are in sight: those of one colour side by side are one rectangle. */
  #paint(u: uPlot): void {
    const map = this.#map;
    if (!map) return;
    const { ctx, bbox } = u, colours = ramp();
    const x = (v: number) => u.valToPos(v, "x", true);
    const from = Math.max(0, map.x.findIndex((v) => v >= (u.scales.x?.min ?? 0)) - 1);
    let to = map.x.findIndex((v) => v > (u.scales.x?.max ?? Infinity));
    if (to < 0) to = map.x.length;
    const least = this.#levels[0] ?? 0, wide = (this.#levels[1] ?? least) - least;
    const level = (v: number) => wide > 0 ? Math.min(steps - 1, Math.floor((v - least) / wide)) : steps - 1;
    const edge = (i: number) => x(i < map.x.length ? (map.x[i] ?? 0) - 0.5 : (map.x.at(-1) ?? 0) + 0.5);
    const high = bbox.height / map.ranks.length;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    map.cells.forEach((row, k) => {
      const top = bbox.top + bbox.height - (k + 1) * high;
      for (let i = from; i < to;) {
        const v = row[i];
        if (v === null || v === undefined) { i++; continue; }
        const of = level(v);
        let end = i + 1;
        for (let next = row[end]; end < to && next !== null && next !== undefined && level(next) === of; next = row[end]) end++;
        ctx.fillStyle = colours[of] ?? "";
        ctx.fillRect(edge(i), top + 1, Math.max(1, edge(end) - edge(i)), high - 2);
        i = end;
      }
    });
    if (to - from <= mostMarks) {
      const size = Math.max(2, Math.min(9 * devicePixelRatio, (edge(to) - edge(from)) / (to - from) - 1, high - 6));
      for (let i = from; i < to; i++) {
        const k = map.ranks.indexOf(map.drawn[i] ?? -1);
        if (k < 0) continue;
        const left = x(map.x[i] ?? 0) - size / 2, top = bbox.top + bbox.height - (k + 0.5) * high - size / 2;
        ctx.fillStyle = dark.matches ? "#fff" : "#000";
        ctx.fillRect(left - 1, top - 1, size + 2, size + 2);
        ctx.fillStyle = dark.matches ? "#d55e00" : "#f0c04a"; // seen on each step of the ramp, by its frame at the least
        ctx.fillRect(left, top, size, size);
      }
    }
    ctx.restore();
  }

  #words(i: number): string {
    const map = this.#map;
    if (!map) return "";
    const all = map.ranks.map((rank, k) => ({ rank, v: map.cells[k]?.[i] ?? null })).filter((c) => c.v !== null).sort((a, b) => (b.v ?? 0) - (a.v ?? 0));
    const told = all.slice(0, 4).map((c) => `${c.rank ? `rank ${c.rank}` : "head alone"} ${percent(c.v ?? 0)}`).join(", ");
    return `Round ${map.x[i]}, drawn ${map.drawn[i]}: ${told || "nothing measured yet"}${all.length > 4 ? `, ${all.length - 4} lower` : ""}`;
  }

  #tell(): void {
    const n = this.#map?.x.length ?? 0;
    const text = n ? this.#words(this.#read ?? n - 1) : "";
    if (this.#at.textContent !== text) this.#at.textContent = text;
  }

  #pressed(event: KeyboardEvent): void {
    const map = this.#map, u = this.#plot;
    if (!map || !u || event.ctrlKey || event.metaKey || event.altKey) return;
    const range = this.#zoom.range, shown = map.x.flatMap((v, i) => !range || v >= range.from && v <= range.to ? [i] : []);
    const now = this.#read === null ? -1 : shown.indexOf(this.#read), here = this.#read === null ? undefined : map.x[this.#read];
    const to = { ArrowRight: now < 0 ? shown[0] : shown[Math.min(now + 1, shown.length - 1)], ArrowLeft: now < 0 ? shown.at(-1) : shown[Math.max(now - 1, 0)],
      Home: shown[0], End: shown.at(-1) }[event.key];
    if (event.shiftKey && event.key.startsWith("Arrow")) this.#zoom.pan(event.key === "ArrowRight" ? 0.25 : -0.25);
    else if (to !== undefined) {
      u.setCursor({ left: u.valToPos(map.x[to] ?? 0, "x"), top: 10 });
      clearTimeout(this.#said);
      this.#said = setTimeout(() => say("readout", this.#words(to)), 120);
    } else if (event.key === "+" || event.key === "=") this.#zoom.by(0.5, here);
    else if (event.key === "-") this.#zoom.by(2, here);
    else if (event.key === "0") this.#zoom.set(undefined);
    else return;
    event.preventDefault();
  }

  #tabulate(): void {
    const map = this.#map;
    if (!this.#table.open || !map) return;
    const range = this.#zoom.range, shown = map.x.flatMap((v, i) => !range || v >= range.from && v <= range.to ? [i] : []);
    const step = Math.max(1, Math.ceil(shown.length / mostRows)), rows = shown.filter((_, k) => (shown.length - 1 - k) % step === 0);
    tabulate(this.#table, "Table: accuracy of each rank",
      element("table", {}, element("caption", { class: "soft" }, `Accuracy of each rank as it was measured last${step > 1 ? `: one of ${step} rounds; zoom in for all` : ""}`),
        element("thead", {}, element("tr", {}, ...["Round", "Drawn", ...map.ranks.map((r) => r ? `Rank ${r}` : "Head")].map((t) => element("th", { scope: "col" }, t)))),
        element("tbody", {}, ...rows.map((i) => element("tr", {}, element("th", { scope: "row" }, String(map.x[i])), element("td", {}, String(map.drawn[i])),
          ...map.cells.map((row) => element("td", {}, row[i] == null ? "–" : percent(row[i]))))))));
  }
}
