// What the join page and the package's consent form have in common of how they put things.
import type { PolicyError } from "./event.js";

/** Turns the text around it, or is not to be seen: control characters, and those that override or isolate a direction. */
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A coordinator's or a file's words, which cannot change how others are read. */
export const visible = (text: string): string => text.replace(hidden, "\ufffd");

/** Whose limit is no amount and no list: the sentence before it says all. */
const unsaid = new Set(["semi_honest", "unlogged", "not_private"]);

/** The device's own limit: a message with an amount, the device's words where it is none, undefined where it need not be said. */
export function ownLimit({ key, want }: PolicyError): { message: "limit.chance" | "limit.least" | "limit.most"; limit: string } | string | undefined {
  if (unsaid.has(key)) return undefined;
  const [, which, limit] = /^at (least|most) (\S+)/.exec(want) ?? [];
  if (!limit) return want;
  return { message: key === "breach_bits" ? "limit.chance" : which === "least" ? "limit.least" : "limit.most", limit };
}
