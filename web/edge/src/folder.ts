// What a browser keeps in IndexedDB, in a folder: for Node, Deno and Bun.
import { mkdir, open, readFile, rename } from "node:fs/promises";
import type { KeptAccount } from "./account.js";

/** A file's name for anything: its hash, as what is named may hold any character. */
async function fileOf(folder: string, kind: string, name: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name)));
  return `${folder}/${kind}-${Array.from(hash.subarray(0, 16), (b) => b.toString(16).padStart(2, "0")).join("")}`;
}

/** What is kept under a name; undefined: nothing yet. */
export async function readKept(folder: string, kind: string, name: string): Promise<Uint8Array | undefined> {
  try {
    return new Uint8Array(await readFile(await fileOf(folder, kind, name)));
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Keeps bytes, for this user alone, so that they are whole or as before after a power cut. */
export async function keep(folder: string, kind: string, name: string, bytes: Uint8Array): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = await fileOf(folder, kind, name);
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

/**
 * A data set's account. What another process has written meanwhile is not written over: both take part with the data,
 * and what the other gave would be forgotten.
 */
export async function accountIn(folder: string, name: string): Promise<KeptAccount> {
  let last = await readKept(folder, "account", name);
  return {
    last,
    keep: async (account) => {
      const there = await readKept(folder, "account", name);
      if ((there === undefined) !== (last === undefined) || there?.some((b, i) => b !== last?.[i]) || there?.length !== last?.length) {
        throw new Error("another process takes part with this data and has changed its account: let one of them go on");
      }
      await keep(folder, "account", name, account);
      last = account.slice();
    },
  };
}
