// A table of this browser's own database.

/** A table of the named database, by itself in it: runs a request and gives its result once that is on the disk. */
export function table(database: string, name: string) {
  return <T>(mode: IDBTransactionMode, use: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(name);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const work = db.transaction(name, mode);
      const request = use(work.objectStore(name));
      // Kept is what is on the disk, not what was asked for.
      work.oncomplete = () => { db.close(); resolve(request.result); };
      work.onabort = () => { db.close(); reject(work.error ?? new Error("the browser has no room")); };
    };
  });
}
