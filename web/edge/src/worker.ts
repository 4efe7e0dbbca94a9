// The edge client runs here, away from the page's thread: the page stays
// responsive while a step trains, and can end the client by ending the worker.
import "go-wasm-exec"; // sets globalThis.Go
import type { Edge, FromWorker, ToWorker } from "./protocol.js";

declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

interface Scope {
  starling?: Edge;
  starlingReady?: () => void;
  onmessage: ((message: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker): void;
}

const scope = globalThis as unknown as Scope;

async function start(program: string): Promise<Edge> {
  const go = new Go();
  const ready = new Promise<void>((resolve) => { scope.starlingReady = resolve; });
  const { instance } = await WebAssembly.instantiateStreaming(fetch(program), go.importObject);
  const ended = go.run(instance).then(() => { throw new Error("the edge client ended before it was ready"); });
  await Promise.race([ready, ended]);
  if (!scope.starling) throw new Error("the edge client did not announce itself");
  return scope.starling;
}

scope.onmessage = async (message) => {
  try {
    const edge = await start(message.data.program);
    const summary = await edge.join(message.data.options, (event) => scope.postMessage({ kind: "event", event }));
    scope.postMessage({ kind: "finished", summary });
  } catch (error) {
    scope.postMessage({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
  }
};
