// What the filter rewrites must come back bit for bit, whoever made it, and nothing that
// is damaged may hang a page.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { filter, unfilter } from "../edge/src/filter.js";

const assets = fileURLToPath(new URL("../dist/assets/", import.meta.url));
const client = () => brotliDecompressSync(readFileSync(`${assets}${readdirSync(assets).find((f) => /^edge-[0-9a-f]{12}\.bin\.br$/.test(f))}`));
const brotli = (b) => brotliCompressSync(b, { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 } }).length;

const leb = (v) => { const out = []; for (; v >= 128; v >>>= 7) out.push(v & 127 | 128); return [...out, v]; };
const signed = (v) => { const out = []; for (;;) { const low = v & 127; v >>= 7; if (v === 0 && !(low & 64) || v === -1 && low & 64) return [...out, low]; out.push(low | 128); } };
const section = (id, body) => [id, ...leb(body.length), ...body];

/** A module of functions from i32 to i64, exported as f0, f1, ...; each is the bytes of its instructions. */
function moduleOf(...codes) {
  const bodies = codes.map((code) => [0, ...code, 0x0b]);
  return Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...section(1, [1, 0x60, 1, 0x7f, 1, 0x7e]), ...section(3, [codes.length, ...codes.map(() => 0)]),
    ...section(7, [codes.length, ...codes.flatMap((_, i) => [2, 0x66, 0x30 + i, 0, i])]), ...section(10, [codes.length, ...bodies.flatMap((b) => [...leb(b.length), ...b])])]);
}

/** Three blocks left by a table; each falls to a return of an address of function self. */
const table = (self) => [0x02, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 2, 0, 2, 1, 0x0b,
  0x42, ...signed((0x1000 + self) * 0x10000 + 9), 0x0f, 0x0b, 0x42, ...signed((0x1000 + self) * 0x10000 + 3), 0x0f, 0x0b, 0x42, ...signed(-5)];
/** Counts down from 300 in a loop, by way of the first local, with branches of both kinds. */
const count = [0x41, ...signed(300), 0x21, 0, 0x02, 0x40, 0x03, 0x40, 0x20, 0, 0x45, 0x0d, 1, 0x20, 0, 0x41, 1, 0x6b, 0x21, 0, 0x0c, 0, 0x0b, 0x0b,
  0x20, 0, 0xac, 0x42, ...signed(77), 0x7c];

test("a module comes back as it was, and a call is the same bytes in every function", async () => {
  const plain = moduleOf(table(0), count, table(2));
  const small = filter(plain);
  assert.deepEqual(unfilter(small), plain);
  const { instance: { exports } } = await WebAssembly.instantiate(unfilter(small));
  assert.equal(exports.f1(5), 77n);
  assert.deepEqual([0, 1, 7].map((x) => exports.f2(x)), [0x1002_0009n, -5n, 0x1002_0003n]);
  const hex = Buffer.from(small).toString("hex"), first = Buffer.from(filter(moduleOf(table(0)))).toString("hex");
  const alike = first.slice(first.indexOf("0240")); // all of the function's code
  assert.equal(hex.split(alike).length, 3, "the same code of two functions differs");
  assert.ok(!Buffer.from(plain).toString("hex").includes(alike), "the module was alike before");
});

test("the client that is built is smaller by it, after compression", () => {
  const small = client(), plain = unfilter(small);
  assert.ok(WebAssembly.validate(plain));
  assert.deepEqual(Buffer.from(filter(plain)), small);
  const share = brotli(small) / brotli(plain);
  assert.ok(share < 0.87, `${share.toFixed(3)} of the module's size`);
});

test("what the filter cannot restore is refused when it is made", () => {
  const vector = moduleOf([0xfd, 0x0c, ...Array(16).fill(0), 0xfd, 0x1d, 0]);
  assert.ok(WebAssembly.validate(vector));
  assert.throws(() => filter(vector), /does not know: 0xfd/);
  const padded = moduleOf([0x02, 0x40, 0x0c, 0x80, 0x00, 0x0b, 0x42, 0]); // a label in two bytes
  assert.ok(WebAssembly.validate(padded));
  assert.throws(() => filter(padded), /does not restore|ends too soon|longer/);
});

test("damage ends in an error or another module, and never in a loop", { timeout: 60_000 }, () => {
  const good = filter(moduleOf(table(0), count, table(2)));
  for (let cut = 0; cut < good.length; cut++) assert.throws(() => unfilter(good.subarray(0, cut)), /ends too soon|no filtered/);
  for (let at = 0; at < good.length; at++) {
    for (const byte of [0, 0x7f, 0x80, 0xff, 0xf0, 0xf1, good[at] ^ 1]) {
      const bad = good.slice();
      bad[at] = byte;
      try {
        const made = unfilter(bad);
        assert.equal(made.length, new DataView(bad.buffer).getUint32(8, true));
      } catch (error) {
        assert.match(error.message, /ends too soon|no filtered|does not know|longer than|at most/, `byte ${at} as ${byte}: ${error.stack}`);
      }
    }
  }
});

test("numbers without an end and code upon code cost a page nothing", { timeout: 60_000 }, () => {
  const good = filter(moduleOf(count));
  const behind = (...bytes) => Uint8Array.from([...good, ...bytes]);
  for (const fill of [0x80, 0xff]) { // as a section's size it would be infinite
    assert.throws(() => unfilter(behind(0, ...Array(200).fill(fill), 1)), /longer than 10 bytes/);
  }
  // As the distance of an address: i64.const is an address there.
  const inside = [...good], at = inside.lastIndexOf(0x42);
  inside.splice(at, 2, 0xf0, ...Array(200).fill(0xff), 1);
  assert.throws(() => unfilter(Uint8Array.from(inside)), /longer than 10 bytes/);
  const many = good.slice(0);
  new DataView(many.buffer).setUint32(8, 1 << 26, true);
  assert.throws(() => unfilter(Uint8Array.from([...many, ...Array(1000).fill([10, 0]).flat()])), /code twice/);
});
