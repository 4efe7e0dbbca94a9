// Whether this page can take part in the job at all, said before anything is asked for.
import type { About } from "../api.js";
import { wordsOf } from "./tasks.js";

/** Why this browser cannot take part; "" where it can. */
export function unable(about: About): string {
  if (!isSecureContext) {
    return "This page came over plain http from another machine: whoever is on the way between you and the coordinator can read and change it, " +
      "its program included. A device does not take part like that. Ask whoever runs the coordinator for its https address (starling serve --tls).";
  }
  const words = wordsOf(about);
  if (!words) return `This page does not know the task “${about.task}”: the starling program on a computer may (starling join).`;
  const missing = [
    typeof WebAssembly === "object" ? "" : "WebAssembly",
    typeof Worker === "function" ? "" : "workers",
    typeof indexedDB === "object" ? "" : "storage in the page",
    words.kind !== "pictures" || typeof OffscreenCanvas === "function" ? "" : "canvases in a worker",
  ].filter(Boolean);
  return missing.length ? `This browser lacks ${missing.join(" and ")}, which taking part needs.` : "";
}
