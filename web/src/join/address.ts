// Where this page is, and where its join token says that the coordinator is. A page may
// speak to the address that it came from alone, and what a browser keeps, the device's
// identity and what its files gave, it keeps by address: under two of them one person
// would be two devices.

/** The coordinator's address as this page was opened, with a slash at the end. */
export const here = (): string => new URL(".", location.href.replace(/[?#].*/, "")).href;

/** The address that a token names; "" where the token is none, or is not whole. */
function addressOf(token: string): string {
  try {
    const packed = /^starling[12]_([\w-]+)$/.exec(token)?.[1] ?? "";
    const bytes = Uint8Array.from(atob(packed.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    // CBOR: an array of 3 or 5, a text and byte strings or none, each with its length in its head or in one or two bytes behind it.
    let at = 1;
    const parts = Array.from({ length: bytes[0]! & 31 }, (_, i) => {
      const head = bytes[at++] ?? 0, short = head & 31, wide = { 24: 1, 25: 2 }[short] ?? 0;
      if (i && head === 0xf6) return new Uint8Array();
      if (head >> 5 !== (i ? 2 : 3) || (short > 23 && !wide)) throw new Error("no token");
      const length = wide ? bytes.slice(at, at += wide).reduce((n, b) => 256 * n + b, 0) : short;
      return bytes.slice(at, at += length);
    });
    if ((bytes[0] !== 0x83 && bytes[0] !== 0x85) || at !== bytes.length) return "";
    if (parts.some((p, i) => i && i !== 2 && p.length && p.length !== 32)) return ""; // what is no address and no secret is a hash or a key
    const url = new URL(new TextDecoder("utf-8", { fatal: true }).decode(parts[0]));
    return /^https?:$/.test(url.protocol) ? url.href.replace(/\/*$/, "/") : "";
  } catch {
    return "";
  }
}

/** Whether a link's token was cut or changed on its way. */
export const damaged = (token: string): boolean => token !== "" && addressOf(token) === "";

/** Where the token's coordinator is, where that is not here; "" otherwise. */
export function elsewhere(token: string): string {
  const there = addressOf(token);
  return there === here() ? "" : there;
}
