import { StarlingError } from "./errors.js";
import { here } from "./host.js";

/** What of a coordinator's address and a token is used. */
export interface Coordinator {
  /** Its address, over http(s), without a slash at its end. */
  base: string;
  /** The join token, where the address has one behind its #, as invitations do. */
  token?: string;
}

/** Reads an address: http(s) or ws(s), of the coordinator or of an invitation. */
export function coordinatorOf(address: string | URL): Coordinator {
  let url: URL;
  if (typeof address !== "string" && !(address instanceof URL)) throw new StarlingError("options", "url is missing: the coordinator's address");
  try {
    url = new URL(address, here());
  } catch (cause) {
    throw new StarlingError("options", `the coordinator's address ${String(address)} is none`, { cause });
  }
  const token = /^#(starling\d+_.+)$/.exec(url.hash)?.[1];
  url.hash = url.search = "";
  const base = url.href.replace(/^ws/, "http").replace(/\/+$/, "").replace(/\/v1\/join$/, "");
  if (!/^https?:/.test(base)) throw new StarlingError("options", `the coordinator's address ${base} is not one of http, https, ws or wss`);
  return { base, token };
}

/** Whether a page's browser asks the coordinator as another origin's. */
export const isElsewhere = (base: string): boolean => globalThis.location !== undefined && new URL(base).origin !== location.origin;

/** Whether a job needs the full program. Asks the coordinator, and says why it does not answer. */
export async function needsFull(base: string, signal?: AbortSignal): Promise<boolean> {
  let answer: Response;
  try {
    answer = await fetch(`${base}/v1/job`, { signal, credentials: "omit", redirect: "error" });
  } catch (cause) {
    signal?.throwIfAborted();
    throw await silence(base, cause);
  }
  if (!answer.ok) throw new StarlingError("unreachable", `${base} answers ${answer.status} to a question for its job: it is no coordinator, or is called otherwise`);
  try {
    return (await answer.json() as { full?: boolean }).full === true;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new StarlingError("unreachable", `${base} does not say what its job is: it is no coordinator`, { cause });
  }
}

/**
 * Why a question got no answer. A browser does not tell a page whether nobody is there or somebody does not answer its
 * origin; but a page may ask without reading, and is told then whether somebody was there.
 */
async function silence(base: string, cause: unknown): Promise<StarlingError> {
  const there = isElsewhere(base) && await fetch(`${base}/healthz`, { mode: "no-cors", credentials: "omit" }).then(() => true, () => false);
  return there
    ? new StarlingError("wrong-origin", `the coordinator at ${base} does not answer pages of ${location.origin}: ` +
      `its operator can allow them (serve --allow-origin ${location.origin})`, { cause })
    : new StarlingError("unreachable", `no coordinator answers at ${base}`, { cause });
}
