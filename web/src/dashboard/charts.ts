// Line charts over rounds, in the page's colours.
import uPlot from "uplot";
import { byId } from "../dom.js";
import { dashes, palette } from "../palette.js";

export interface Line {
  label: string;
  values: (number | null)[];
  dash?: boolean;
}

/** The line that tells a bound from what is measured. */
const bounds = [6, 4];

const dark = matchMedia("(prefers-color-scheme: dark)");

/** A chart that is made when there is something to show, and made again where its lines change. */
export class RoundChart {
  readonly #at: HTMLElement;
  readonly #title: string;
  readonly #format: (v: number) => string;
  #plot?: uPlot;
  #shape = "";
  #last?: { rounds: number[]; lines: Line[] };

  constructor(id: string, title: string, format: (v: number) => string) {
    this.#at = byId(id);
    this.#title = title;
    this.#format = format;
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#at);
    dark.addEventListener("change", () => {
      this.#shape = "";
      if (this.#last) this.show(this.#last.rounds, this.#last.lines);
    });
  }

  show(rounds: number[], lines: Line[]): void {
    this.#last = { rounds, lines };
    this.#at.hidden = rounds.length === 0 || lines.length === 0;
    if (this.#at.hidden) return;
    const data: uPlot.AlignedData = [rounds, ...lines.map((l) => l.values)];
    const shape = lines.map((l) => l.label).join("\n");
    if (this.#plot && shape === this.#shape) {
      this.#plot.setData(data);
      return;
    }
    this.#plot?.destroy();
    this.#shape = shape;
    const ink = getComputedStyle(document.body).color;
    const grid = { stroke: dark.matches ? "#2d3541" : "#d9dee5", width: 1 };
    const colours = dark.matches ? palette.dark : palette.light;
    const looks = lines.map((l, i) => ({
      stroke: colours[i % colours.length] ?? ink,
      dash: l.dash ? bounds : dashes[Math.floor(i / colours.length) % dashes.length] ?? [],
    }));
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
    this.#plot = new uPlot({
      ...this.#size(), title: "",
      scales: { x: { time: false } },
      axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, { ...axis, size: 62, values: (_, ticks) => ticks.map((v) => this.#format(v)) }],
      legend: { markers: { width: 0, stroke: "transparent", fill: "transparent" } },
      series: [{ label: "Rounds made" }, ...lines.map((l, i) => ({
        label: l.label, ...looks[i], width: 2, spanGaps: true,
        points: { show: rounds.length < 60 && !l.dash }, value: (_: uPlot, v: number | null) => v === null ? "–" : this.#format(v),
      }))],
    }, data, this.#at);
    this.#plot.root.querySelectorAll(".u-legend .u-series:not(:first-child) .u-marker").forEach((at, i) => {
      const look = looks[i];
      if (look) at.replaceChildren(sample(look.stroke, look.dash));
    });
    this.#plot.root.querySelector("canvas")?.setAttribute("aria-hidden", "true"); // the table of rounds says the same
    this.#plot.root.setAttribute("role", "group");
    this.#plot.root.setAttribute("aria-label", this.#title);
  }

  #size(): { width: number; height: number } {
    return { width: Math.max(200, this.#at.clientWidth), height: 220 };
  }
}

/** A piece of a line for the legend, long enough to show its pattern. */
function sample(stroke: string, dash: number[]): SVGElement {
  const make = (name: string, attributes: Record<string, string>) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const svg = make("svg", { width: "30", height: "8", viewBox: "0 0 30 8", "aria-hidden": "true" });
  svg.append(make("line", { x1: "0", x2: "30", y1: "4", y2: "4", stroke, "stroke-width": "2.5", "stroke-dasharray": dash.join(" ") || "none" }));
  return svg;
}
