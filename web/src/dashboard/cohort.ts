// The running round's devices as a map: a square each, coloured by standing,
// browsers with a ring. One canvas holds thousands, of which a frame draws some.
import { byId, element } from "../dom.js";
import { soon } from "./frames.js";

interface Standing { name: string; light: string; dark: string }

/** By the characters of Overview.cohort, in the order of a round. */
const standings: Record<string, Standing> = {
  ".": { name: "absent", light: "#c6ccd5", dark: "#3a4452" },
  j: { name: "joined", light: "#7d8fb3", dark: "#8499c4" },
  t: { name: "training", light: "#b9770e", dark: "#e8b450" },
  m: { name: "masked", light: "#1f6662", dark: "#63c2b8" },
  r: { name: "revealed", light: "#1d7443", dark: "#6fd08c" },
  a: { name: "away", light: "#8d5fa8", dark: "#c39be0" },
  x: { name: "dropped", light: "#a33025", dark: "#f08a7d" },
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const gap = 2, least = 6, largest = 22, highest = 320;
const atOnce = 3000; // squares of one frame

export class CohortMap {
  readonly #canvas = byId<HTMLCanvasElement>("cohort");
  #cohort = "";
  #browsers = "";
  /** What is on the canvas: cells that have not changed since stay as they are. */
  #drawn = { cohort: "", browsers: "", look: "" };

  constructor() {
    dark.addEventListener("change", () => this.#ask());
    new ResizeObserver(() => this.#ask()).observe(this.#canvas.parentElement ?? this.#canvas);
  }

  show(cohort: string, browsers: string): void {
    if (cohort === this.#cohort && browsers === this.#browsers) return;
    this.#cohort = cohort;
    this.#browsers = browsers;
    this.#ask();
  }

  #ask(): void {
    soon("cohort", () => this.#draw());
  }

  #draw(): void {
    const n = this.#cohort.length;
    const canvas = this.#canvas, room = canvas.parentElement?.clientWidth ?? 0;
    if (room === 0) return; // what is hidden is drawn once it is shown
    canvas.hidden = n === 0;
    byId("cohort-empty").hidden = n > 0;
    const counts = new Map<string, number>();
    for (const c of this.#cohort) counts.set(c, (counts.get(c) ?? 0) + 1);
    const inBrowsers = [...this.#browsers].filter((b) => b === "b").length;
    const present = Object.entries(standings).filter(([c]) => counts.has(c));
    byId("legend").replaceChildren(...present.map(([c, s]) => {
      const swatch = element("i", { "aria-hidden": "true" });
      swatch.style.background = dark.matches ? s.dark : s.light;
      return element("li", {}, swatch, `${counts.get(c)} ${s.name}`);
    }), ...(inBrowsers ? [element("li", {}, `${inBrowsers} in browsers (ringed)`)] : []));
    if (n === 0) return;
    canvas.setAttribute("aria-label", `${n} devices: ${present.map(([c, s]) => `${counts.get(c)} ${s.name}`).join(", ")}; ${inBrowsers} in browsers`);
    const width = room - 36;
    let size = largest;
    const rowsAt = (s: number) => Math.ceil(n / Math.max(1, Math.floor(width / (s + gap))));
    while (size > least && rowsAt(size) * (size + gap) > highest) size--;
    const columns = Math.max(1, Math.floor(width / (size + gap)));
    const ratio = devicePixelRatio || 1;
    const height = Math.ceil(n / columns) * (size + gap);
    const to = canvas.getContext("2d");
    if (!to) return;
    const look = [n, width, height, size, ratio, dark.matches].join(" ");
    const anew = look !== this.#drawn.look;
    if (anew) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = `${height}px`;
      to.scale(ratio, ratio);
    }
    const was = this.#drawn;
    const changed: number[] = [];
    for (let i = 0; i < n && changed.length < atOnce; i++) if (anew || this.#cohort[i] !== was.cohort[i] || this.#browsers[i] !== was.browsers[i]) changed.push(i);
    const at = (i: number) => [(i % columns) * (size + gap), Math.floor(i / columns) * (size + gap)] as const;
    // One colour after the other: to change it costs more than a square.
    for (const [c, s] of Object.entries(standings)) {
      to.fillStyle = dark.matches ? s.dark : s.light;
      for (const i of changed) if (this.#cohort[i] === c) to.fillRect(...at(i), size, size);
    }
    to.strokeStyle = dark.matches ? "#fff" : "#000";
    for (const i of changed) {
      const [x, y] = at(i);
      if (this.#browsers[i] === "b") to.strokeRect(x + 1.5, y + 1.5, size - 3, size - 3);
    }
    const end = changed.length < atOnce ? n : (changed.at(-1) ?? 0) + 1;
    // What is left has its turn in the next frame: until then it is as it was, or not there.
    const so = (now: string, before: string) => now.slice(0, end) + (anew ? "" : before.slice(end));
    this.#drawn = { cohort: so(this.#cohort, was.cohort), browsers: so(this.#browsers, was.browsers), look };
    if (end < n) this.#ask();
  }
}
