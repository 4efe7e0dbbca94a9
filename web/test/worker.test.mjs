// The worker's script around a program that the test plays.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as esbuild from "esbuild";

test("a program that ends by itself is said to have, and does not leave its page waiting", async () => {
  const root = new URL("..", import.meta.url).pathname;
  const built = await esbuild.build({ entryPoints: ["edge/src/worker.ts"], bundle: true, format: "iife", write: false, absWorkingDir: root,
    plugins: [{ name: "loader", setup: (b) => {
      b.onResolve({ filter: /^go-wasm-exec$/ }, () => ({ path: "loader", namespace: "played" }));
      b.onLoad({ filter: /./, namespace: "played" }, () => ({ contents: "" }));
    } }] });
  const said = [];
  let end;
  const scope = {
    Go: class {
      importObject = {};
      run() {
        scope.starling = { version: "1", preview: () => new Promise(() => {}) };
        scope.starlingReady();
        return new Promise((resolve) => { end = resolve; });
      }
    },
    fetch: async () => new Response(Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), { headers: { "Content-Type": "application/wasm" } }),
    postMessage: (message) => said.push(message),
  };
  new Function("globalThis", "Go", "fetch", built.outputFiles[0].text)(scope, scope.Go, scope.fetch);
  const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
  scope.onmessage({ data: { kind: "load", program: "x" } });
  for (let i = 0; i < 1000 && !said.length; i++) await settled();
  assert.deepEqual(said.splice(0), [{ kind: "loaded", version: "1" }]);
  scope.onmessage({ data: { kind: "preview", id: 1, source: {} } });
  await settled();
  assert.deepEqual(said, []);
  end(); // as Go's loader does when the program exits, for want of memory or by a fault
  for (let i = 0; i < 1000 && !said.length; i++) await settled();
  assert.equal(said[0].kind, "failed");
  assert.match(said[0].reason, /program in this page has ended: it needs more memory/);
});
