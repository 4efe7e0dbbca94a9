// What survives a reload: the device's identity, and a join that runs, with its
// file. Both stay in this browser; a join is forgotten when it ends or is stopped.
import type { Accepted, Source, Totals } from "../../edge/src/index.js";
import { table } from "./table.js";

const identityKey = "starling-identity";

/**
 * The identity lets a device be enrolled once. It is made and kept before the
 * first join, so that a page that is closed in mid-job comes back as the same
 * device; without storage (a private window) each visit is a new one.
 */
export function deviceIdentity(): Uint8Array {
  try {
    const hex = localStorage.getItem(identityKey) ?? "";
    if (/^[0-9a-f]{64}$/.test(hex)) return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  } catch {
    // Storage is off.
  }
  const made = crypto.getRandomValues(new Uint8Array(32));
  try {
    localStorage.setItem(identityKey, Array.from(made, (b) => b.toString(16).padStart(2, "0")).join(""));
  } catch {
    // The next visit will enrol again.
  }
  return made;
}

export interface SavedJoin {
  job: string;
  /** About.id of the job; left out by pages that went by its name. */
  id?: string;
  token: string;
  source: Source;
  totals: Totals;
  accepted: Accepted;
  paused: boolean;
}

const key = "join";

const store = table("starling", "joins");

// A browser without storage takes part all the same; it only forgets.
export const saved = {
  load: (): Promise<SavedJoin | undefined> => store("readonly", (s) => s.get(key)).catch(() => undefined),
  keep: (join: SavedJoin): Promise<unknown> => store("readwrite", (s) => s.put(join, key)).catch(() => undefined),
  forget: (): Promise<unknown> => store("readwrite", (s) => s.delete(key)).catch(() => undefined),
};

/**
 * Runs while no other tab of this browser takes part: two with one identity
 * would cut each other off. `busy` is called where another one does; it runs
 * then as soon as that one ends.
 */
export async function alone(busy: () => void, run: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return run();
  const first = await navigator.locks.request("starling-join", { ifAvailable: true }, async (lock) => {
    if (lock) await run();
    return lock !== null;
  });
  if (first) return;
  busy();
  await navigator.locks.request("starling-join", run);
}
