// Asks a built client what it speaks: the module itself, not the sources that it
// may have been built from.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Go's own loader, of the Go that builds the edge. */
export const loader = () => join(execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim(), "lib/wasm/wasm_exec.js");

/** What the client calls its protocol, see edge.Protocol. */
export async function speaks(module) {
  await import(pathToFileURL(loader())); // sets globalThis.Go
  const go = new globalThis.Go();
  const ready = new Promise((resolve) => { globalThis.starlingReady = resolve; });
  const { instance } = await WebAssembly.instantiate(module, go.importObject);
  void go.run(instance); // it never ends by itself
  await ready;
  return globalThis.starling.version;
}
