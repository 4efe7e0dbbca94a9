// The entry for Node, Deno and Bun: the same package over their threads, with a folder in place of IndexedDB.
import { Worker as NodeThread } from "node:worker_threads";
import { keep, readKept } from "./folder.js";
import { StarlingError } from "./errors.js";
import { host, type Thread } from "./host.js";

host.start = (address, folder) => {
  if (typeof WebSocket !== "function") {
    throw new StarlingError("unsupported", "this JavaScript runtime has no WebSocket: it takes Node 22, Deno 2 or Bun 1");
  }
  const thread = new NodeThread(new URL(address ?? new URL("./node-worker.js", import.meta.url)), { workerData: { folder }, name: "starling" });
  const started: Thread = {
    postMessage: (message) => thread.postMessage(message),
    terminate: () => thread.terminate(),
    onmessage: null,
    onerror: null,
  };
  thread.on("message", (data) => started.onmessage?.({ data } as MessageEvent));
  thread.on("error", (error) => started.onerror?.({ message: error.message } as ErrorEvent));
  return started;
};

host.identity = async (coordinator, folder) => {
  if (folder === undefined) return undefined;
  let seed = await readKept(folder, "identity", coordinator);
  if (seed?.length !== 32) await keep(folder, "identity", coordinator, seed = crypto.getRandomValues(new Uint8Array(32)));
  return seed;
};

export * from "./index.js";
