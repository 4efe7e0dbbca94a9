// Whether this page is of one build with its coordinator. One that is older, from a
// tab that outlived the coordinator's update, would wait for ever: it is loaded
// again, once, and says in words what is wrong where that does not help.
import type { About } from "../api.js";
import { say } from "../dom.js";
import { t } from "../language/language.js";

declare const PROTOCOL: string;

const tried = "starling-reloaded";

/** Reports whether the page speaks another protocol than the coordinator; then it is being loaded again, or has said so. */
export function outdated(about: About): boolean {
  if (about.protocol === PROTOCOL) return false;
  const theirs = about.protocol ?? ""; // none, from before pages asked
  let again = false;
  try {
    again = sessionStorage.getItem(tried) !== theirs;
    sessionStorage.setItem(tried, theirs);
  } catch { /* without a memory it might load itself for ever */ }
  if (again) {
    say("connection", t("old.again"));
    location.reload();
    return true;
  }
  say("connection", t("old", { ours: PROTOCOL || t("old.none"), theirs: theirs || t("old.unnamed") }));
  return true;
}
