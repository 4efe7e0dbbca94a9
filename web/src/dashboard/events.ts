// The log's lines, with what an operator may do about them.
import type { Occurrence } from "../api.js";
import { byId, element } from "../dom.js";

/** What to do, by how a line begins. */
const nextSteps: [string, string][] = [
  ["round abandoned", "Nothing was released. If it repeats, more devices must be connected, or the job's floors be lower."],
  ["device is out of the round", "One device sent something wrong. The round goes on without it."],
  ["shard failed", "Too few of a shard's devices answered. Longer deadlines or larger shards help if it repeats."],
  ["session refused", "Somebody could not prove the secret or spoke another version. Compare its join link and version."],
  ["enrolment failed", "The store could not be written. Look at the disk of the coordinator's folder."],
  ["recovered", "The last process ended in mid-round; what it owed was charged."],
  ["ALARM", "A sum was out of range: some device is hostile or broken. The round was charged and released nothing."],
  ["stopped", "The coordinator has ended the job. Start the same command again to go on."],
  ["delta", "Delta is large for so few members. Lower privacy.delta in the job file."],
];

const kept = 200;
let lines: Occurrence[] = [];

export function addEvents(more: Occurrence[]): void {
  lines = [...lines, ...more].slice(-kept);
  paintEvents();
}

export function forgetEvents(): void {
  lines = [];
}

export function paintEvents(): void {
  const wanted = byId<HTMLInputElement>("warnings").checked ? lines.filter((l) => l.level !== "INFO") : lines;
  byId("events-empty").hidden = wanted.length > 0;
  byId("events-empty").textContent = lines.length ? "Nothing needs attention." : "Nothing has happened yet.";
  byId("events").hidden = wanted.length === 0;
  byId("events").replaceChildren(...wanted.toReversed().map((l) => {
    const time = new Date(l.time);
    const said = element("span", {}, element("b", {}, l.what), l.details?.length ? ` ${l.details.join(", ")}` : "");
    const row = element("li", { class: l.level }, element("time", { datetime: l.time }, time.toLocaleTimeString("en-GB")), said);
    const next = l.level === "INFO" ? undefined : nextSteps.find(([begin]) => l.what.startsWith(begin));
    if (next) row.append(element("span", { class: "next" }, next[1]));
    return row;
  }));
}
