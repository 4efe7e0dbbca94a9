// What a training step takes in Chromium, beside node: processor time of the thread that
// computes, in turns, of the same program with the same inputs. Prints a markdown table.
//
//   node lab/bench/browser/step.mjs PROGRAM.wasm INPUTS.bin [--turns N] [--steps N] [--examples N]
//
// With the examples of a step it says how many a second the browser trains on, too.
//
// Both are what lab/bench/wasm/steps emits for browsers; see lab/bench/wasm/run_program.mjs.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { callsOf, manifestOf } from "../wasm/manifest.mjs";

const require = createRequire(new URL("../../../web/package.json", import.meta.url));
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const [file, data, ...rest] = process.argv.slice(2);
const option = (name, otherwise) => rest.includes(name) ? Number(rest[rest.indexOf(name) + 1]) : otherwise;
const turns = option("--turns", 7), steps = option("--steps", 5), examples = option("--examples", 0);
const program = readFileSync(file), inputs = readFileSync(data);

/** Makes an instance whose run does steps; it has to stand for itself, as a page gets its source. */
async function prepared(bytes, inputs, manifest, calls) {
  const module = await WebAssembly.compile(bytes);
  const { exports } = await WebAssembly.instantiate(module);
  const memory = new Uint8Array(exports.memory.buffer);
  let at = 0;
  for (const t of ["frozen", "state", "inputs"].flatMap((role) => manifest[role])) {
    const n = t.shape.reduce((a, b) => a * b, 1);
    const parts = t.nf4 ? [[t.offset, Math.ceil(n / 2)], [t.nf4.scales, 4 * Math.ceil(n / t.nf4.block)]] : [[t.offset, 4 * n]];
    for (const [offset, size] of parts) memory.set(inputs.subarray(at, at += size), offset);
  }
  const run = (prefix, calls) => {
    for (const { segment, round, when } of calls) {
      if (when && !memory[when]) continue;
      if (exports.fuel) exports.fuel.value = 1n << 30n;
      exports[prefix + segment](round);
    }
  };
  run("p", manifest.prepare.map((_, segment) => ({ segment, round: 0 })));
  return (n) => { for (let i = 0; i < n; i++) run("s", calls); };
}

// Fused programs have relaxed SIMD, which node before 21 has behind a flag.
if (!WebAssembly.validate(program)) setFlagsFromString("--experimental-wasm-relaxed-simd");
const manifest = manifestOf(new WebAssembly.Module(program));
const calls = callsOf(manifest);
const here = await prepared(program, inputs, manifest, calls);
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"] });
// Inputs of a large base are more than a debugger's message holds.
const server = createServer((request, response) => response.end({ "/program": program, "/inputs": inputs }[request.url] ?? "<!doctype html>"));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
try {
  const tab = await browser.newPage();
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  const bytes = (name) => `new Uint8Array(await (await fetch("${name}")).arrayBuffer())`;
  await tab.evaluate(`(async () => { globalThis.run = await (${prepared})(${bytes("program")}, ${bytes("inputs")}, ${JSON.stringify(manifest)}, ${JSON.stringify(calls)}); })()`);
  const thread = await tab.createCDPSession();
  await thread.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await thread.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000;
  const ratios = [], mine = [], theirs = [];
  for (let turn = -2; turn < turns; turn++) { // the first two compile
    const before = process.cpuUsage();
    here(steps);
    const { user, system } = process.cpuUsage(before);
    const begun = await busy();
    await tab.evaluate((n) => globalThis.run(n), steps);
    const there = await busy() - begun;
    if (turn < 0) continue;
    mine.push((user + system) / 1000 / steps);
    theirs.push(there / steps);
    ratios.push(theirs.at(-1) / mine.at(-1));
  }
  const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
  console.log(`| a step, ms of processor | node ${process.versions.node} | ${await browser.version()} | ratio |\n| --- | --- | --- | --- |`);
  console.log(`| median of ${turns} turns of ${steps} | ${median(mine).toFixed(1)} | ${median(theirs).toFixed(1)} | ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}) |`);
  if (examples) console.log(`\n${(1000 * examples / median(theirs)).toFixed(1)} examples a second of the processor in Chromium.`);
} finally {
  server.close();
  server.closeAllConnections();
  await browser.close();
}
