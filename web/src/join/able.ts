// Whether this page can take part in the job at all, said before anything is asked for.
import type { About } from "../api.js";
import { list, t, type Told } from "../language/language.js";
import { wordsOf } from "./tasks.js";

/** Whether there is storage; where a browser denies it to pages they take part without. */
function stores(): boolean {
  try {
    return typeof indexedDB === "object";
  } catch {
    return true;
  }
}

/** Why this browser cannot take part; undefined where it can. */
export function unable(about: About): Told | undefined {
  if (!isSecureContext) return t("unable.http");
  const words = wordsOf(about);
  if (!words) return t("unable.task", { task: about.task });
  const missing = [
    typeof WebAssembly === "object" ? "" : "WebAssembly",
    typeof Worker === "function" ? "" : t("lacks.workers"),
    stores() ? "" : t("lacks.storage"),
    words.kind !== "pictures" || typeof OffscreenCanvas === "function" ? "" : t("lacks.canvases"),
  ].filter((what) => what !== "");
  return missing.length ? t("unable.lacks", { missing: list(missing) }) : undefined;
}
