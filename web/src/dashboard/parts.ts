// What the bytes were for, for one device: what it fetches once, and what each of
// its rounds takes.
import type { Bytes, Parts, RoundRecord, Status } from "../api.js";
import { byId, element, show } from "../dom.js";
import { bytes } from "../format.js";
import { eachOf } from "./figures.js";
import type { Line } from "./plot.js";

interface Row {
  part: keyof Parts;
  name: string;
  /** Among how many its bytes are divided: devices, browsers or devices and rounds. */
  per: "device" | "browser" | "round" | "none";
}

const rows: Row[] = [
  { part: "page", name: "Page and browser's edge", per: "browser" },
  { part: "base", name: "Base", per: "device" },
  { part: "programs", name: "Programs", per: "device" },
  { part: "slices", name: "Adapter slices", per: "round" },
  { part: "turns", name: "Secure aggregation's turns", per: "round" },
  { part: "updates", name: "Masked updates", per: "round" },
  { part: "model", name: "The finished model", per: "browser" },
  { part: "rest", name: "Handshakes, framing", per: "none" },
];

const whens: Record<Row["per"], string> = { device: "once", browser: "once", round: "every round", none: "" };

const any = (b: Bytes) => b.up + b.down > 0;

/** The devices of a round that stayed in it. */
export const stayed = (r: RoundRecord) => r.cohort - r.dropped - r.absent;

/** The table of parts, since the job began. What a round takes is of the rounds that are told, and divided among theirs. */
export function paintParts(p: Status, records: RoundRecord[]): void {
  const present = rows.filter((r) => any(p.parts[r.part]));
  show("parts", present.length > 0);
  const sum = (of: (r: RoundRecord) => number) => records.reduce((n, r) => n + of(r), 0);
  const rounds = sum(stayed);
  byId("parts-rows").replaceChildren(...present.map((r) => {
    const all = p.parts[r.part];
    const [of, among] = r.per === "round"
      ? [{ up: sum((x) => x.parts[r.part].up), down: sum((x) => x.parts[r.part].down) }, rounds]
      : [all, r.per === "device" ? p.enrolled : 0];
    const each = (v: number) => among > 0 ? bytes(Math.round(v / among)) : "–";
    return element("tr", {}, element("td", {}, r.name), element("td", {}, whens[r.per]), element("td", {}, each(of.up)),
      element("td", {}, each(of.down)), element("td", {}, bytes(all.up + all.down)));
  }));
}

/** What a device of each round moved, by the parts that every round has. */
export function partLines(made: RoundRecord[]): Line[] {
  return [
    { label: "Slice, down", values: made.map((r) => eachOf(r.parts.slices.down, r)) },
    { label: "Turns, up and down", values: made.map((r) => eachOf(r.parts.turns.up + r.parts.turns.down, r)) },
    { label: "Update, up", values: made.map((r) => eachOf(r.parts.updates.up, r)) },
  ];
}
