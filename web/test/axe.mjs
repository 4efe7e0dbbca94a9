// axe-core in the page: nothing serious or critical may be found. Its source is
// evaluated by the debugger, which the page's policy does not concern.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function accessible(tab, where) {
  await tab.evaluate(`${source}; 0`);
  const found = await tab.evaluate(async () => (await globalThis.axe.run(document)).violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join("; ")}`));
  assert.deepEqual(found, [], where);
}
