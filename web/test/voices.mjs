// Recordings and a small untrained HuBERT, written here: tests of recordings need both.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noise, weights } from "./images.mjs";

/** A WAV file of 16 bits and one channel. */
export function wav(samples, rate) {
  const out = Buffer.alloc(44 + 2 * samples.length);
  out.write("RIFF", 0, "latin1");
  out.writeUInt32LE(36 + 2 * samples.length, 4);
  out.write("WAVEfmt ", 8, "latin1");
  for (const [at, v] of [[16, 16], [24, rate], [28, 2 * rate]]) out.writeUInt32LE(v, at);
  for (const [at, v] of [[20, 1], [22, 1], [32, 2], [34, 16]]) out.writeUInt16LE(v, at);
  out.write("data", 36, "latin1");
  out.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((v, i) => out.writeInt16LE(Math.round(32767 * Math.max(-1, Math.min(1, v))), 44 + 2 * i));
  return out;
}

/** A cyclic redundancy check of so many bits, the highest first, over bytes. */
const crc = (bits, polynomial, bytes) => bytes.reduce((sum, byte) => {
  sum ^= byte << (bits - 8);
  for (let i = 0; i < 8; i++) sum = (sum & 1 << (bits - 1) ? sum << 1 ^ polynomial : sum << 1) & (1 << bits) - 1;
  return sum;
}, 0);

/** A FLAC file of 16 bits and one channel in one verbatim frame (RFC 9639). */
export function flac(samples, rate) {
  const n = samples.length;
  const about = Buffer.alloc(42);
  about.write("fLaC", 0, "latin1");
  about.set([0x80, 0, 0, 34], 4);
  about.writeUInt16BE(n, 8);
  about.writeUInt16BE(n, 10);
  about.writeUInt32BE(rate << 12 | 15 << 4, 18); // one channel, 16 bits
  about.writeUInt32BE(n, 22);
  const head = [0xff, 0xf8, 0x70, 0x08, 0, n - 1 >> 8, n - 1 & 255];
  const frame = Buffer.concat([Buffer.from([...head, crc(8, 0x07, head), 0x02]), Buffer.alloc(2 * n + 2)]);
  samples.forEach((v, i) => frame.writeInt16BE(Math.round(32767 * v), head.length + 2 + 2 * i));
  frame.writeUInt16BE(crc(16, 0x8005, frame.subarray(0, -2)), frame.length - 2);
  return Buffer.concat([about, frame]);
}

export const words = ["high", "low"];

/** A word of the number, high ones for even numbers: a tone over some noise. */
export function said(i, seconds = 0.5, rate = 11_025) {
  const next = noise(i), pitch = (i % 2 ? 300 : 1200) * (1 + (i % 7) / 30);
  return wav(Array.from({ length: Math.round(seconds * rate) }, (_, t) => 0.4 * Math.sin(2 * Math.PI * pitch * t / rate) + (next() - 127.5) / 2000), rate);
}

/** An untrained HuBERT that hears 8,000 samples a second, fifty frames of them, as a model folder; letters, where it has them, are what it writes. */
export function hubert(dir, letters = "") {
  const h = 32, wide = 64, width = 16, kernel = [20, 16], stride = [10, 16], positions = 8, groups = 4;
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "config.json"), JSON.stringify({ model_type: "hubert", hidden_size: h, num_hidden_layers: 1, num_attention_heads: 1, intermediate_size: wide,
    hidden_act: "gelu", layer_norm_eps: 1e-5, conv_dim: [width, width], conv_kernel: kernel, conv_stride: stride, conv_bias: false, num_feat_extract_layers: 2,
    feat_extract_norm: "group", feat_extract_activation: "gelu", feat_proj_layer_norm: true, num_conv_pos_embeddings: positions, num_conv_pos_embedding_groups: groups,
    classifier_proj_size: 16, ...(letters && { vocab_size: letters.length + 5, pad_token_id: 0 }) }));
  if (letters) writeFileSync(join(dir, "vocab.json"), JSON.stringify(Object.fromEntries(["<pad>", "<s>", "</s>", "<unk>", "|", ...letters].map((c, i) => [c, i]))));
  writeFileSync(join(dir, "preprocessor_config.json"), JSON.stringify({ feature_size: 1, sampling_rate: 8000, do_normalize: true, padding_value: 0, padding_side: "right", return_attention_mask: false }));
  const shapes = { "encoder.pos_conv_embed.conv.bias": [h], "encoder.pos_conv_embed.conv.parametrizations.weight.original0": [1, 1, positions],
    "encoder.pos_conv_embed.conv.parametrizations.weight.original1": [h, h / groups, positions] };
  const pair = (name, ...shape) => { shapes[`${name}.weight`] = shape; shapes[`${name}.bias`] = shape.slice(0, 1); };
  kernel.forEach((k, i) => { shapes[`feature_extractor.conv_layers.${i}.conv.weight`] = [width, i ? width : 1, k]; });
  pair("feature_extractor.conv_layers.0.layer_norm", width);
  pair("feature_projection.layer_norm", width);
  pair("feature_projection.projection", h, width);
  pair("encoder.layer_norm", h);
  const layer = "encoder.layers.0.";
  for (const name of ["q_proj", "k_proj", "v_proj", "out_proj"]) pair(`${layer}attention.${name}`, h, h);
  for (const name of ["layer_norm", "final_layer_norm"]) pair(layer + name, h);
  pair(`${layer}feed_forward.intermediate_dense`, wide, h);
  pair(`${layer}feed_forward.output_dense`, h, wide);
  weights(dir, shapes);
}

/** Folders of WAV files, one folder a word; the first of the browser's is FLAC where one is given. */
export const recordings = (keys = "") => async (dir, devices) => {
  hubert(join(dir, "hubert"));
  const folder = (name, from, n) => {
    for (const w of words) mkdirSync(join(dir, name, w), { recursive: true });
    for (let i = from; i < from + n; i++) writeFileSync(join(dir, name, words[i % 2], `${i}.wav`), said(i));
    return join(dir, name);
  };
  return {
    files: Array.from({ length: devices }, (_, i) => folder(`device ${i}`, 100 * i, 12)), validation: folder("validation", 5000, 20),
    keys: `task: listen\nbase: hubert\nlabels: [${words.join(", ")}]\n${keys}`,
  };
};

/** Recordings of the words with what is said in them, as lines of JSON beside their folder. */
export const transcripts = async (dir, devices) => {
  hubert(join(dir, "hubert"), "ghilow");
  const lines = (name, from, n) => {
    mkdirSync(join(dir, name), { recursive: true });
    const all = Array.from({ length: n }, (_, k) => from + k).map((i) => {
      writeFileSync(join(dir, name, `${i}.wav`), said(i));
      return JSON.stringify({ audio: `${name}/${i}.wav`, text: words[i % 2] });
    });
    writeFileSync(join(dir, `${name}.jsonl`), `${all.join("\n")}\n`);
    return join(dir, `${name}.jsonl`);
  };
  return { files: Array.from({ length: devices }, (_, i) => lines(`device-${i}`, 100 * i, 12)), validation: lines("validation", 5000, 20), keys: "task: transcribe\nbase: hubert\n" };
};
