// Runs a training program in node and prints the step time and the hash of its
// state: the check that V8 computes the same bits as wazero.
//
//   node run_program.mjs PROGRAM.wasm INPUTS.bin [--steps N] [--warm N] [--cores N] [--label S] [--json]
//     [--state OUT.bin]
//
// INPUTS.bin is what (*wasm.Instance).Snapshot writes: the bytes of the frozen,
// state and input tensors, in this order and in manifest order, as they lie in
// memory (NF4 tensors: codes, then scales). "-" leaves everything zero. The same
// inputs serve every step. The --warm steps (default 0) count as steps but are
// not timed. The state hash is taken after all steps, over the state tensors'
// bytes in manifest order: (*wasm.Instance).StateSHA256. --cores N has N - 1 worker
// threads beside this one compute parts of products, as a browser does. --label adds
// to the engine's name.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { callsOf, manifestOf } from "./manifest.mjs";
import { startTeam } from "./team.mjs";

function usage(message) {
  console.error(`run_program: ${message}\nusage: node run_program.mjs PROGRAM.wasm INPUTS.bin [--steps N] [--warm N] [--cores N] [--label S] [--json] [--state OUT.bin]`);
  process.exit(2);
}

function parseArgs(argv) {
  const args = { steps: 1, warm: 0, cores: 1, json: false, label: "", state: "", files: [] };
  for (let i = 0; i < argv.length; i++) {
    switch (argv[i]) {
      case "--steps":
      case "--warm":
      case "--cores": {
        const n = Number(argv[i + 1]);
        if (!Number.isInteger(n) || n < 0) usage(`${argv[i]} wants a number, got ${argv[i + 1]}`);
        args[argv[i++].slice(2)] = n;
        break;
      }
      case "--json":
        args.json = true;
        break;
      case "--label":
        args.label = argv[++i] ?? usage("--label wants a text");
        break;
      case "--state":
        args.state = argv[++i] ?? usage("--state wants a file");
        break;
      default:
        if (argv[i].startsWith("--")) usage(`unknown flag ${argv[i]}`);
        args.files.push(argv[i]);
    }
  }
  if (args.files.length !== 2) usage("want a program and an inputs file");
  return args;
}

// sizes gives the [offset, bytes] spans of a tensor.
function spans(t) {
  const n = t.shape.reduce((a, b) => a * b, 1);
  if (!t.nf4) return [[t.offset, 4 * n]];
  return [
    [t.offset, Math.ceil(n / 2)],
    [t.nf4.scales, 4 * Math.ceil(n / t.nf4.block)],
  ];
}

function fill(memory, manifest, file) {
  const data = readFileSync(file);
  let at = 0;
  for (const role of ["frozen", "state", "inputs"]) {
    for (const t of manifest[role]) {
      for (const [offset, size] of spans(t)) {
        if (at + size > data.length) throw new Error(`${file} ends within ${t.name}: ${data.length} bytes`);
        memory.set(data.subarray(at, at + size), offset);
        at += size;
      }
    }
  }
  if (at !== data.length) throw new Error(`${file} has ${data.length} bytes, the manifest asks for ${at}`);
}

function outputs(buffer, manifest) {
  const out = {};
  for (const t of manifest.outputs) {
    const n = t.shape.reduce((a, b) => a * b, 1);
    const View = t.dtype === "i32" ? Int32Array : Float32Array;
    out[t.name] = Array.from(new View(buffer, t.offset, Math.min(n, 16)));
  }
  return out;
}

const args = parseArgs(process.argv.slice(2));
const bytes = readFileSync(args.files[0]);

let t0 = performance.now();
const module = await WebAssembly.compile(bytes);
const compileMs = performance.now() - t0;

const manifest = manifestOf(module);

t0 = performance.now();
const calls = callsOf(manifest);
// Each round of a product of a repeat is one that workers share.
const shareable = new Map(manifest.products.filter((p) => p.parts.length).map((p) => [p.first, p]));
const products = calls.flatMap(({ segment, round }, at) => {
  const p = shareable.get(segment);
  return p ? [{ first: p.first, count: p.count, parts: p.parts, round, at }] : [];
});
const team = args.cores > 1 ? await startTeam(bytes, products, args.cores - 1) : undefined;
const { exports } = team ?? await WebAssembly.instantiate(module);
const startMs = performance.now() - t0;

const { fuel } = exports;
const memory = team ?? exports.memory; // both have a buffer
const shared = new Map(team ? products.map((p, i) => [p.at, { ...p, i }]) : []);
if (args.files[1] !== "-") fill(new Uint8Array(memory.buffer), manifest, args.files[1]);

// The native host grants what the segment's static cost leaves of 2^30; for a
// measurement the whole limit is as good.
function run(prefix, calls) {
  for (let i = 0; i < calls.length; i++) {
    if (calls[i].when && !new Uint8Array(memory.buffer)[calls[i].when]) continue;
    const product = prefix === "s" ? shared.get(i) : undefined;
    if (product) {
      team.run(product.i);
      i += product.count - 1;
      continue;
    }
    if (fuel) fuel.value = 1n << 30n;
    exports[prefix + calls[i].segment](calls[i].round);
  }
}

t0 = performance.now();
run("p", manifest.prepare.map((_, segment) => ({ segment, round: 0 })));
const prepareMs = performance.now() - t0;

const times = [];
let cpuMs = Infinity; // processor time, all threads: what a busy machine does not stretch
for (let i = 0; i < args.warm + args.steps; i++) {
  const cpu0 = process.cpuUsage();
  t0 = performance.now();
  run("s", calls);
  const ms = performance.now() - t0;
  const cpu = process.cpuUsage(cpu0);
  if (i >= args.warm) {
    times.push(ms);
    cpuMs = Math.min(cpuMs, (cpu.user + cpu.system) / 1000);
  }
}
times.sort((a, b) => a - b);

const hash = createHash("sha256");
const state = [];
for (const t of manifest.state) {
  for (const [offset, size] of spans(t)) {
    const part = Buffer.from(memory.buffer, offset, size);
    hash.update(part);
    state.push(part);
  }
}
if (args.state) writeFileSync(args.state, Buffer.concat(state));

team?.close();

const report = {
  name: manifest.name,
  engine: `node ${manifest.fused ? "fused " : ""}${process.version}${team ? `, ${args.cores} workers` : ""}${args.label && ", "}${args.label}`,
  bytes: bytes.length,
  memory_bytes: memory.buffer.byteLength,
  compile_ms: compileMs,
  start_ms: startMs,
  prepare_ms: prepareMs,
  steps: args.warm + args.steps,
  min_ms: times[0] ?? 0,
  cpu_ms: times.length ? cpuMs : 0,
  median_ms: times[Math.floor(times.length / 2)] ?? 0,
  flops: manifest.flops,
  gflops: manifest.flops && times.length ? manifest.flops / cpuMs / 1e6 : 0,
  peak_rss_bytes: process.resourceUsage().maxRSS * 1024,
  outputs: outputs(memory.buffer, manifest),
  state_sha256: hash.digest("hex"),
};
if (args.json) {
  console.log(JSON.stringify(report));
} else {
  for (const [k, v] of Object.entries(report)) {
    console.log(`${k.padEnd(14)} ${typeof v === "object" ? JSON.stringify(v) : typeof v === "number" && !Number.isInteger(v) ? v.toFixed(3) : v}`);
  }
}
