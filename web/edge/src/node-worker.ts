// A thread of Node, Deno or Bun as the scope that worker.js expects of a browser, which it then runs in.
import { readFile } from "node:fs/promises";
import { parentPort, Worker as NodeThread, workerData } from "node:worker_threads";
import { accountIn } from "./folder.js";

const { folder } = workerData as { folder?: string };

const define = (name: string, value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

const scope = globalThis as unknown as { onmessage?: ((message: { data: unknown }) => void) | null };

/** Threads that help this one. */
class Helper {
  readonly #thread: NodeThread;
  onerror?: (event: { preventDefault(): void }) => void;

  constructor(address: string) {
    this.#thread = new NodeThread(new URL(address), { workerData: {}, name: "starling helper" });
    this.#thread.on("error", () => this.onerror?.({ preventDefault() {} }));
  }

  postMessage(message: unknown): void {
    this.#thread.postMessage(message);
  }

  terminate(): void {
    void this.#thread.terminate();
  }
}

const fetchThere = globalThis.fetch;
define("fetch", async (address: string | URL, options?: RequestInit) =>
  String(address).startsWith("file:") ? new Response(await readFile(new URL(address))) : fetchThere(address, options));
define("location", { href: import.meta.url });
define("Worker", Helper);
define("postMessage", (message: unknown) => parentPort.postMessage(message));
// A network that goes away is noticed by the connection alone.
if (!("addEventListener" in globalThis)) {
  define("addEventListener", () => {});
  define("removeEventListener", () => {});
}
if (folder !== undefined) {
  define("starlingAccount", (name: string) => accountIn(folder, name));
}
const early: unknown[] = []; // what came before worker.js was there
scope.onmessage = ({ data }) => { early.push(data); };
const waiting = scope.onmessage;
parentPort.on("message", (data) => scope.onmessage?.({ data }));
await import(new URL("./worker.js", import.meta.url).href);
if (scope.onmessage !== waiting) for (const data of early) scope.onmessage?.({ data });
