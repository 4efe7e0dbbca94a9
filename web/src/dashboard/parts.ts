// What the bytes were for, for one device: what it fetches once, and what each of
// its rounds takes.
import type { Bytes, Parts, RoundRecord, Status } from "../api.js";
import { byId, element, show } from "../dom.js";
import { bytes } from "../format.js";
import type { Line } from "./charts.js";

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

/** The table of parts, from the coordinator's start. */
export function paintParts(p: Status, records: RoundRecord[]): void {
  const present = rows.filter((r) => any(p.parts[r.part]));
  show("parts", present.length > 0);
  // A round's devices are those that stayed in it.
  const rounds = records.reduce((n, r) => n + r.cohort - r.dropped, 0);
  byId("parts-rows").replaceChildren(...present.map((r) => {
    const b = p.parts[r.part];
    const among = { device: p.enrolled, round: rounds, browser: 0, none: 0 }[r.per];
    const each = (v: number) => among > 0 ? bytes(Math.round(v / among)) : "–";
    return element("tr", {}, element("td", {}, r.name), element("td", {}, whens[r.per]), element("td", {}, each(b.up)),
      element("td", {}, each(b.down)), element("td", {}, bytes(b.up + b.down)));
  }));
}

/** What a device of each round moved, by the parts that every round has. */
export function partLines(made: RoundRecord[]): Line[] {
  const each = (v: number, r: RoundRecord) => v / Math.max(1, r.cohort);
  return [
    { label: "Slice, down", values: made.map((r) => each(r.parts.slices.down, r)) },
    { label: "Turns, up and down", values: made.map((r) => each(r.parts.turns.up + r.parts.turns.down, r)) },
    { label: "Update, up", values: made.map((r) => each(r.parts.updates.up, r)) },
  ];
}
