// axe-core in the page: nothing may be found that WCAG 2.2 AA forbids, and nothing else that is
// serious or critical. Its source is evaluated by the debugger, which the page's policy does not concern.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function accessible(tab, where) {
  await tab.evaluate(`${source}; 0`);
  const found = await tab.evaluate(async () => (await globalThis.axe.run(document, { rules: { "target-size": { enabled: true } } })).violations
    .filter((v) => ["serious", "critical"].includes(v.impact) || v.tags.some((t) => /^wcag2\d?a{1,2}$/.test(t)))
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join("; ")}`));
  assert.deepEqual(found, [], where);
}
