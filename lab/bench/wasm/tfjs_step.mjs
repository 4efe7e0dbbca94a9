// Times the benchmark's training step in TensorFlow.js 4 on its WebAssembly
// backend (SIMD, one thread) in node.
//
//   node tfjs_step.mjs DIR CASE [--steps N] [--warm N] [--explicit]
//
// The library's own gradient of a product asks its backend for a product with a
// transposed operand, which it computes at a tenth of the speed. --explicit gives
// the dense layers a gradient that transposes first: the best one gets.
//
// Run it where @tensorflow/tfjs and @tensorflow/tfjs-backend-wasm are installed.
// It reads the same inputs as the program and computes the same model; the loss
// of the first step is printed so that one can see that.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

const require = createRequire(path.join(process.cwd(), "index.js"));
const tf = require("@tensorflow/tfjs");
const wasm = require("@tensorflow/tfjs-backend-wasm");

const [dir, name, ...rest] = process.argv.slice(2);
const option = (flag, fallback) => (rest.includes(flag) ? Number(rest[rest.indexOf(flag) + 1]) : fallback);
const steps = option("--steps", 3);
const warm = option("--warm", 1);

wasm.setWasmPaths(path.join(path.dirname(require.resolve("@tensorflow/tfjs-backend-wasm/package.json")), "wasm-out") + path.sep);
wasm.setThreadsCount(1);
await tf.setBackend("wasm");
await tf.ready();

const base = path.join(dir, name);
const { step: spec, manifest } = JSON.parse(readFileSync(base + ".json", "utf8"));
const data = readFileSync(base + ".bin");

const t = {};
const trained = [];
let at = 0;
for (const role of ["frozen", "state", "inputs"]) {
  for (const info of manifest[role] ?? []) {
    const n = info.shape.reduce((a, b) => a * b, 1);
    const bytes = data.buffer.slice(data.byteOffset + at, data.byteOffset + at + 4 * n);
    at += 4 * n;
    const ints = info.dtype === "i32";
    let value = tf.tensor(ints ? new Int32Array(bytes) : new Float32Array(bytes), info.shape, ints ? "int32" : "float32");
    // Matrices are kept as TensorFlow keeps them, [in, out]: its backend has a fast
    // product for that alone.
    if (info.shape.length === 2 && !ints && !info.name.startsWith("embeddings.")) value = tf.transpose(value);
    if (role === "state" && !/\.adam_[mv]$/.test(info.name)) {
      t[info.name] = tf.variable(value, true, info.name);
      trained.push(t[info.name]);
    } else {
      t[info.name] = value;
    }
  }
}

const cfg = spec.Config;
const [b, s] = t.tokens.shape;
const h = cfg.hidden_size;
const heads = cfg.num_attention_heads;
const scale = spec.LoRA.alpha / spec.Rank;

const explicit = tf.customGrad((x, w, save) => {
  save([x, w]);
  return {
    value: tf.matMul(x, w),
    gradFunc: (dy, [x, w]) => [tf.matMul(dy, tf.transpose(w)), tf.matMul(tf.transpose(x), dy)],
  };
});
// Frozen weights are constants: their gradient is never asked for in the library's
// own form, and is left out here too.
const frozenProduct = (x, w) =>
  tf.customGrad((x, save) => {
    save([]);
    return { value: tf.matMul(x, w), gradFunc: (dy) => tf.matMul(dy, tf.transpose(w)) };
  })(x);
function product(x, name) {
  if (!rest.includes("--explicit")) return tf.matMul(x, t[name]);
  return t[name] instanceof tf.Variable ? explicit(x, t[name]) : frozenProduct(x, t[name]);
}
const dense = (x, p) => tf.add(product(x, p + ".weight"), t[p + ".bias"]);
const adapted = (x, p) => {
  const low = product(x, p + ".lora_A.weight");
  return tf.add(dense(x, p), tf.mul(product(low, p + ".lora_B.weight"), scale));
};
const norm = (x, p) => {
  const centred = tf.sub(x, tf.mean(x, -1, true));
  const variance = tf.mean(tf.mul(centred, centred), -1, true);
  return tf.add(tf.mul(tf.div(centred, tf.sqrt(tf.add(variance, 1e-12))), t[p + ".weight"]), t[p + ".bias"]);
};
const split = (x) => tf.transpose(tf.reshape(x, [b, s, heads, h / heads]), [0, 2, 1, 3]);
const gelu = (x) => {
  const cube = tf.mul(tf.mul(x, x), x);
  return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(tf.mul(tf.add(x, tf.mul(cube, 0.044715)), Math.sqrt(2 / Math.PI))), 1));
};

function loss() {
  let x = tf.reshape(tf.gather(t["embeddings.word_embeddings.weight"], tf.reshape(t.tokens, [-1])), [b, s, h]);
  x = tf.add(x, tf.slice(t["embeddings.position_embeddings.weight"], [0, 0], [s, h]));
  x = norm(tf.reshape(x, [b * s, h]), "embeddings.LayerNorm");
  const keep = tf.cast(tf.notEqual(t.tokens, 0), "float32");
  const bias = tf.reshape(tf.mul(tf.sub(1, keep), -1e4), [b, 1, 1, s]);
  for (let i = 0; i < cfg.num_hidden_layers; i++) {
    const p = `encoder.layer.${i}.`;
    const q = split(adapted(x, p + "attention.self.query"));
    const k = split(dense(x, p + "attention.self.key"));
    const v = split(adapted(x, p + "attention.self.value"));
    const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(h / heads)), bias);
    const a = tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), [0, 2, 1, 3]), [b * s, h]);
    x = norm(tf.add(x, dense(a, p + "attention.output.dense")), p + "attention.output.LayerNorm");
    const f = gelu(dense(x, p + "intermediate.dense"));
    x = norm(tf.add(x, dense(f, p + "output.dense")), p + "output.LayerNorm");
  }
  const share = tf.div(keep, tf.add(tf.sum(keep, -1, true), 1e-9));
  const pooled = tf.reshape(tf.matMul(tf.reshape(share, [b, 1, s]), tf.reshape(x, [b, s, h])), [b, h]);
  const logits = dense(dense(pooled, "pooler.dense"), "classifier");
  const ce = tf.neg(tf.sum(tf.mul(tf.oneHot(t.labels, spec.Classes), tf.logSoftmax(logits)), -1));
  return tf.div(tf.sum(tf.mul(ce, t.weights)), tf.add(tf.sum(t.weights), 1e-9));
}

// Adam stands for AdamW here: the decay is one multiplication more.
const optimizer = tf.train.adam(t.learning_rate.dataSync()[0], 0.9, 0.999, 1e-8);
const times = [];
let first;
let cpuMs = Infinity;
for (let i = 0; i < warm + steps; i++) {
  const cpu0 = process.cpuUsage();
  const t0 = performance.now();
  const cost = optimizer.minimize(loss, true, trained);
  const value = cost.dataSync()[0];
  trained[0].dataSync();
  cost.dispose();
  const ms = performance.now() - t0;
  const cpu = process.cpuUsage(cpu0);
  if (i >= warm) {
    times.push(ms);
    cpuMs = Math.min(cpuMs, (cpu.user + cpu.system) / 1000);
  }
  first ??= value;
}
times.sort((a, b) => a - b);
console.log(JSON.stringify({
  name, engine: `tfjs ${tf.version.tfjs} ${tf.getBackend()}${rest.includes("--explicit") ? ", explicit transposes" : ""}`, steps: warm + steps, min_ms: times[0], cpu_ms: cpuMs,
  median_ms: times[Math.floor(times.length / 2)], peak_rss_bytes: process.resourceUsage().maxRSS * 1024, outputs: { loss: [first] },
}));
