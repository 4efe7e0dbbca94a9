// What a data set has given, kept in a folder by Node, Deno and Bun.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as esbuild from "esbuild";

test("of two processes that take part with one file none forgets what the other gave", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "starling-folder-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const built = await esbuild.build({ entryPoints: ["edge/src/folder.ts"], bundle: true, platform: "node", format: "esm", write: false,
    absWorkingDir: new URL("..", import.meta.url).pathname });
  const { accountIn } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
  const one = await accountIn(folder, "my.csv"), two = await accountIn(folder, "my.csv");
  await one.keep(Uint8Array.of(1));
  await one.keep(Uint8Array.of(1, 2));
  await assert.rejects(two.keep(Uint8Array.of(3)), /another process/);
  assert.deepEqual((await accountIn(folder, "my.csv")).last, Uint8Array.of(1, 2));
  const next = await accountIn(folder, "my.csv");
  await next.keep(Uint8Array.of(1, 2, 3));
  await assert.rejects(one.keep(Uint8Array.of(4)), /another process/);
});
