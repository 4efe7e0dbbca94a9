// The models that jobs have ended with, kept in this browser until their owner
// forgets them: a reload after the end loses none.
import type { Model } from "../../edge/src/index.js";

export interface KeptModel {
  /** Name of its job. */
  job: string;
  /** When it was kept, ms since 1970. */
  at: number;
  model: Model;
}

const most = 4; // models; the oldest goes first

function store<T>(mode: IDBTransactionMode, use: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("starling-models", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("models");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const work = db.transaction("models", mode);
      const request = use(work.objectStore("models"));
      // Kept is what is on the disk, not what was asked for.
      work.oncomplete = () => { db.close(); resolve(request.result); };
      work.onabort = () => { db.close(); reject(work.error ?? new Error("the browser has no room")); };
    };
  });
}

/** What is kept, the latest first; nothing where the browser keeps nothing. */
export async function keptModels(): Promise<KeptModel[]> {
  try {
    return (await store<KeptModel[]>("readonly", (s) => s.getAll())).sort((a, b) => b.at - a.at);
  } catch {
    return [];
  }
}

/** Keeps a job's model in place of an earlier one of that name; whether the browser took it. */
export async function keepModel(kept: KeptModel): Promise<boolean> {
  try {
    await store("readwrite", (s) => s.put(kept, kept.job));
    for (const old of (await keptModels()).slice(most)) await forgetModel(old.job);
    return true;
  } catch {
    return false;
  }
}

export const forgetModel = (job: string): Promise<unknown> => store("readwrite", (s) => s.delete(job)).catch(() => undefined);
