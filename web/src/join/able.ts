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

/** What is weaker because the page came without TLS from another machine; "" otherwise. */
export function insecure(): string {
  if (isSecureContext) return "";
  return "This page came over plain http: whoever is on the way between you and the coordinator can read and change it, its " +
    "program included. The browser also keeps things from such a page: the screen cannot be kept on, and two tabs are not kept apart. " +
    "Ask whoever runs the coordinator for an https address (serve --tls).";
}
