// Merging a module's data segments must leave its memory as it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeData } from "../mergedata.mjs";

// (memory (export "m") 2) with data at 70000, 8 and 200, out of order.
function sample(segments) {
  const leb = (v) => { const out = []; for (;;) { const low = v & 127; v >>= 7; if (v === 0 && !(low & 64)) return [...out, low]; out.push(low | 128); } };
  const section = (id, body) => [id, ...leb(body.length).map((b, i, a) => i === a.length - 1 ? b & 127 : b), ...body];
  const data = [segments.length];
  for (const [at, bytes] of segments) data.push(0, 0x41, ...leb(at), 0x0b, bytes.length, ...bytes);
  return Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...section(5, [1, 0, 2]), ...section(7, [1, 1, 0x6d, 2, 0]), ...section(11, data)]);
}

async function memory(module) {
  const { instance } = await WebAssembly.instantiate(module);
  return new Uint8Array(instance.exports.m.buffer);
}

test("merged data is the same memory", async () => {
  const plain = sample([[70000, [1, 2, 3]], [8, [4]], [200, [5, 6]]]);
  const merged = mergeData(plain);
  assert.deepEqual(await memory(merged), await memory(plain));
  assert.ok(merged.length > 69000, "the segments were not merged");
});

test("overlapping segments are refused", () => {
  assert.throws(() => mergeData(sample([[8, [1, 2, 3]], [9, [4]]])), /overlap/);
});
