// The log's lines, with what an operator may do about them.
import type { Occurrence } from "../api.js";
import { byId, element } from "../dom.js";
import { gist } from "./cards.js";
import { soon } from "./frames.js";

/** What to do, by how a line begins. */
const nextSteps: [string, string][] = [
  ["round abandoned", "Nothing was released. If it repeats, more devices must be connected, or the job's floors be lower."],
  ["device is out of the round", "One device sent something wrong. The round goes on without it."],
  ["shard failed", "Too few of a shard's devices answered. Longer deadlines or larger shards help if it repeats."],
  ["session refused", "Somebody could not prove the secret or spoke another version. Compare its join link and version."],
  ["enrolment failed", "The store could not be written. Look at the disk of the coordinator's folder."],
  ["recovered", "The last process ended in mid-round; what it owed was charged."],
  ["strike", "A device misbehaved. After three such rounds, or one that proves it, it is excluded: see the fleet."],
  ["pardoned", "It is in the draws again."],
  ["by the operator", "It counts from the next round."],
  ["ALARM", "A sum was out of range: some device is hostile or broken. The round was charged and released nothing."],
  ["stopped", "The coordinator has ended the job. Start the same command again to go on."],
  ["delta", "Delta is large for so few members. Lower privacy.delta in the job file."],
];

const kept = 200;
let lines: Occurrence[] = [];
let rows: HTMLElement[] = []; // of lines, as far as they were painted

let old = false; // what is here is told again from the start

export function addEvents(more: Occurrence[]): void {
  if (old) {
    old = false;
    lines = [];
    rows = [];
    byId("events").replaceChildren();
  }
  lines.push(...more);
  soon("events", paintEvents);
}

/** The last lines, the oldest first. */
export const knownEvents = () => lines;

/** Lets what is shown stand until the stream begins anew. */
export function forgetEvents(): void {
  old = true;
}

/** Adds what is new at the top and takes what is too old from the bottom: most rows stay as they are. */
export function paintEvents(): void {
  const list = byId("events");
  for (const l of lines.slice(rows.length)) {
    const made = row(l);
    rows.push(made);
    list.prepend(made);
  }
  const over = lines.length - kept;
  if (over > 0) {
    for (const old of rows.splice(0, over)) old.remove();
    lines.splice(0, over);
  }
  const only = byId<HTMLInputElement>("warnings").checked;
  list.classList.toggle("only-warnings", only);
  const shown = only ? lines.filter((l) => l.level !== "INFO").length : lines.length;
  const attention = lines.filter((l) => l.level !== "INFO").length;
  gist("events", lines.length ? `${lines.length} kept, ${attention || "none"} with a warning` : "none yet");
  byId("events-empty").hidden = shown > 0;
  byId("events-empty").textContent = lines.length ? "Nothing needs attention." : "Nothing has happened yet.";
  list.hidden = shown === 0;
}

function row(l: Occurrence): HTMLElement {
  const said = element("span", {}, element("b", {}, l.what), l.details?.length ? ` ${l.details.join(", ")}` : "");
  const made = element("li", { class: l.level }, element("time", { datetime: l.time }, new Date(l.time).toLocaleTimeString("en-GB")), said);
  const next = l.level === "INFO" ? undefined : nextSteps.find(([begin]) => l.what.startsWith(begin));
  if (next) made.append(element("span", { class: "next" }, next[1]));
  return made;
}
