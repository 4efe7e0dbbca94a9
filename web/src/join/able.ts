// Whether this page can take part in the job at all, said before anything is asked for.
import type { About } from "../api.js";

/** What a page cannot do yet, by the job's task. */
const tasks: Record<string, string> = {
  tag: "labels every word of a text",
  answer: "answers questions about documents",
  span: "finds answers in documents",
  image: "sorts pictures",
};

/** Why this browser cannot take part; "" where it can. */
export function unable(about: About): string {
  if (!isSecureContext) {
    return "This page came over plain http from another machine: whoever is on the way between you and the coordinator can read and change it, " +
      "its program included. A device does not take part like that. Ask whoever runs the coordinator for its https address (starling serve --tls).";
  }
  const task = tasks[about.task];
  if (task) {
    return `This job ${task}. A browser cannot take part in that yet: the starling program on a computer can (starling join).`;
  }
  if (about.task !== "classify") return `This page does not know the task “${about.task}”: the starling program on a computer may (starling join).`;
  const missing = [
    typeof WebAssembly === "object" ? "" : "WebAssembly",
    typeof Worker === "function" ? "" : "workers",
    typeof indexedDB === "object" ? "" : "storage in the page",
  ].filter(Boolean);
  return missing.length ? `This browser lacks ${missing.join(" and ")}, which taking part needs.` : "";
}
