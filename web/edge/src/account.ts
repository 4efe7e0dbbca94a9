// What each data set has given, kept in this browser: the device reads it before
// it takes part and writes it before a round is answered, so that a coordinator
// that asks for more rounds than it announced is stopped over reloads, too. A
// file is known by its name, as the native device knows it by its place.

export interface KeptAccount {
  /** What was kept last; undefined: nothing yet. */
  last?: Uint8Array;
  /** Settles when it would survive a power cut. */
  keep(account: Uint8Array): Promise<unknown>;
}

const stored = "accounts";

function database(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("starling-edge", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(stored);
    opening.onerror = () => reject(opening.error ?? new Error("no storage"));
    opening.onsuccess = () => resolve(opening.result);
  });
}

/** What a request in a transaction of its own comes to. */
function asked<T>(db: IDBDatabase, mode: IDBTransactionMode, ask: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const work = db.transaction(stored, mode, { durability: "strict" });
    const request = ask(work.objectStore(stored));
    work.oncomplete = () => resolve(request.result);
    work.onabort = work.onerror = () => reject(work.error ?? new Error("the data's account cannot be read or kept"));
  });
}

/** The names of the files that have an account in this browser; none where it stores nothing. */
export async function accountNames(): Promise<string[]> {
  try {
    const db = await database();
    const names = await asked(db, "readonly", (s) => s.getAllKeys());
    db.close();
    return names.filter((name) => typeof name === "string");
  } catch {
    return [];
  }
}

/** Undefined where this browser stores nothing, as in some private windows. Other hosts open accounts in their own way. */
export async function openAccount(name: string): Promise<KeptAccount | undefined> {
  const { starlingAccount } = globalThis as { starlingAccount?: (name: string) => Promise<KeptAccount> };
  if (starlingAccount) return starlingAccount(name);
  let db: IDBDatabase;
  try {
    db = await database();
  } catch {
    return undefined;
  }
  const last = await new Promise<unknown>((resolve, reject) => {
    const asked = db.transaction(stored).objectStore(stored).get(name);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("the data's account cannot be read"));
  });
  // What cannot be read is no account to begin anew.
  if (last !== undefined && !(last instanceof Uint8Array)) throw new Error("the data's account cannot be read");
  return {
    last,
    keep: (account) => new Promise<void>((resolve, reject) => {
      const writing = db.transaction(stored, "readwrite", { durability: "strict" });
      writing.oncomplete = () => resolve();
      writing.onabort = writing.onerror = () => reject(writing.error ?? new Error("the data's account cannot be kept"));
      writing.objectStore(stored).put(account, name);
    }),
  };
}

/** Changes an account that is kept, while nobody takes part with the file: who does would write over it. */
export async function changeAccount(name: string, change: (account: Uint8Array) => Promise<Uint8Array>): Promise<void> {
  const run = async () => {
    const kept = await openAccount(name);
    if (!kept?.last) throw new Error("this file has no account here");
    await kept.keep(await change(kept.last));
  };
  if (!globalThis.navigator?.locks) return run();
  await navigator.locks.request(lockOf(name), { ifAvailable: true }, async (lock) => {
    if (!lock) throw new Error("this file takes part now: stop it first");
    await run();
  });
}

const lockOf = (name: string) => `starling-account-${name}`;

/** Runs while no other tab of this site takes part with the file: it waits for its turn. */
export async function whileAlone(name: string, run: () => Promise<void>): Promise<void> {
  if (globalThis.navigator?.locks) await navigator.locks.request(lockOf(name), run);
  else await run();
}
