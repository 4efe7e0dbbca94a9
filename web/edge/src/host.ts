import { StarlingError } from "./errors.js";
import { policyName, trusted } from "./trusted.js";

/** What of a browser's Worker is used. */
export interface Thread {
  postMessage(message: unknown): void;
  terminate(): unknown;
  onmessage: ((message: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** What differs between a browser and other hosts, whose entry puts its own in place. */
export interface Host {
  /** Starts worker.js, of this package where no address is given. folder: see LoadOptions. */
  start(address?: string | URL, folder?: string): Thread;
  /** The identity kept for a coordinator, made at the first call; undefined: nothing can be kept here. */
  identity(coordinator: string, folder?: string): Promise<Uint8Array | undefined>;
}

/** What relative addresses are relative to; undefined where there is no page. */
export const here = (): string | undefined => globalThis.location?.href;

/** The program beside this module, as bundlers find it. */
export const programAt = (full: boolean): URL =>
  full ? new URL("./edge-full.bin.gz", import.meta.url) : new URL("./edge.bin.gz", import.meta.url);

export const host: Host = {
  start(address) {
    if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
      throw new StarlingError("unsupported", "this browser has no WebAssembly or no workers");
    }
    const url = new URL(address ?? new URL("./worker.js", import.meta.url), here());
    // Only a page's own origin may be a worker's address: one from elsewhere is loaded by one of ours.
    const own = url.origin === location.origin || url.protocol === "blob:";
    return new Worker(trusted(own ? url.href : trampoline(url.href)), { name: "starling" });
  },
  identity: kept,
};

/**
 * A worker that loads another. In a page that requires Trusted Types it needs the policy, too: it inherits the page's rules, by which
 * the policy can be made once: the loaded script finds it.
 */
const loader = (script: string) => `const policy = self.starlingPolicy = self.trustedTypes?.createPolicy(${JSON.stringify(policyName)}, { createScriptURL: (a) => a });
importScripts(policy ? policy.createScriptURL(${JSON.stringify(script)}) : ${JSON.stringify(script)})`;

const trampolines = new Map<string, string>();

/** A worker's address that loads another; helpers start from it, too, so it is never revoked. */
function trampoline(script: string): string {
  let address = trampolines.get(script);
  if (!address) {
    address = URL.createObjectURL(new Blob([loader(script)], { type: "text/javascript" }));
    trampolines.set(script, address);
  }
  return address;
}

const stored = "identities";

/** Identities in IndexedDB, beside the accounts of data: a device is enrolled once for each coordinator. */
function kept(coordinator: string): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    let opening: IDBOpenDBRequest;
    try {
      opening = indexedDB.open("starling-identities", 1);
    } catch {
      return resolve(undefined); // some private windows
    }
    opening.onupgradeneeded = () => opening.result.createObjectStore(stored);
    opening.onerror = () => resolve(undefined);
    opening.onsuccess = () => {
      const db = opening.result;
      const t = db.transaction(stored, "readwrite", { durability: "strict" }); // one tab at a time
      const asked = t.objectStore(stored).get(coordinator);
      let seed: Uint8Array;
      asked.onsuccess = () => {
        seed = asked.result instanceof Uint8Array && asked.result.length === 32 ? asked.result : crypto.getRandomValues(new Uint8Array(32));
        if (seed !== asked.result) t.objectStore(stored).put(seed, coordinator);
      };
      t.oncomplete = () => { db.close(); resolve(seed); };
      t.onabort = t.onerror = () => { db.close(); resolve(undefined); };
    };
  });
}
