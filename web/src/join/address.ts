// Where this page is, and where its join token says that the coordinator is. A page may
// speak to the address that it came from alone, and what a browser keeps, the device's
// identity and what its files gave, it keeps by address: under two of them one person
// would be two devices.

/** The coordinator's address as this page was opened, with a slash at the end. */
export const here = (): string => new URL(".", location.href.replace(/[?#].*/, "")).href;

/** The address that a token names; "" where it cannot be read, which a join says in words. */
function addressOf(token: string): string {
  try {
    const packed = /^starling[12]_([\w-]+)$/.exec(token)?.[1] ?? "";
    const bytes = Uint8Array.from(atob(packed.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    // CBOR: an array of 3 or 5, and in it first of all a text, its length in the head or in one or two bytes behind it.
    const [array = 0, head = 0, ...rest] = bytes;
    if ((array !== 0x83 && array !== 0x85) || head >> 5 !== 3) return "";
    const short = head & 31, wide = { 24: 1, 25: 2 }[short] ?? 0;
    if (short > 23 && !wide) return "";
    const length = wide ? rest.slice(0, wide).reduce((n, b) => 256 * n + b, 0) : short;
    if (rest.length < wide + length) return "";
    const url = new URL(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(rest.slice(wide, wide + length))));
    return /^https?:$/.test(url.protocol) ? url.href.replace(/\/*$/, "/") : "";
  } catch {
    return "";
  }
}

/** Where the token's coordinator is, where that is not here; "" otherwise. */
export function elsewhere(token: string): string {
  const there = addressOf(token);
  return there === here() ? "" : there;
}
