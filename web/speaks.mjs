// Asks a built client what it speaks: the module itself, not the sources that it
// may have been built from.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** What the client calls its protocol, see edge.Protocol. */
export async function speaks(module) {
  const root = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
  await import(pathToFileURL(join(root, "lib/wasm/wasm_exec.js"))); // sets globalThis.Go
  const go = new globalThis.Go();
  const ready = new Promise((resolve) => { globalThis.starlingReady = resolve; });
  const { instance } = await WebAssembly.instantiate(module, go.importObject);
  void go.run(instance); // it never ends by itself
  await ready;
  return globalThis.starling.version;
}
