// Whether this page is of one build with its coordinator. One that is older, from a
// tab that outlived the coordinator's update, would wait for ever: it is loaded
// again, once, and says in words what is wrong where that does not help.
import type { About } from "../api.js";
import { say } from "../dom.js";

declare const PROTOCOL: string;

const tried = "starling-reloaded";

/** Reports whether the page speaks another protocol than the coordinator; then it is being loaded again, or has said so. */
export function outdated(about: About): boolean {
  if (about.protocol === PROTOCOL) return false;
  const theirs = about.protocol || "one that it does not name"; // from before pages asked
  let again = false;
  try {
    again = sessionStorage.getItem(tried) !== theirs;
    sessionStorage.setItem(tried, theirs);
  } catch { /* without a memory it might load itself for ever */ }
  if (again) {
    say("connection", "This page is older than its coordinator: it is loaded again.");
    location.reload();
    return true;
  }
  say("connection", `This page speaks protocol ${PROTOCOL || "of no edge"}, its coordinator ${theirs}: neither reads the other. ` +
    "Reload the page; if that does not help, whoever runs the coordinator must build its pages anew (make web, then make build).");
  return true;
}
