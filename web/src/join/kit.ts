// What a bundle of its own is lent by its page: words in the page's language, and elements
// that are written again where that changes.
import type * as dom from "../dom.js";
import type * as language from "../language/language.js";
import type * as amounts from "./amounts.js";

export type Kit = Pick<typeof dom, "element" | "message" | "Sorry"> & Pick<typeof language, "t"> & Pick<typeof amounts, "seconds">;

let lent: Kit | undefined;

/** Takes them; before anything else is called. */
export const use = (kit: Kit): void => { lent = kit; };

export function kit(): Kit {
  if (!lent) throw new Error("the page lends no words");
  return lent;
}
