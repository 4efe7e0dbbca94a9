// PNG files and a small untrained ViT, written here: tests of pictures need both.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";

/** A PNG of 8-bit pixels: 1 channel is grey, 3 colour, 4 colour with alpha. */
export function png(width, height, channels, pixels) {
  const chunk = (type, body) => {
    const out = Buffer.alloc(12 + body.length);
    out.writeUInt32BE(body.length);
    out.write(type, 4, "latin1");
    body.copy(out, 8);
    out.writeUInt32BE(crc32(out.subarray(4, 8 + body.length)), 8 + body.length);
    return out;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, { 1: 0, 3: 2, 4: 6 }[channels]], 8);
  const rows = [];
  for (let y = 0; y < height; y++) rows.push(0, ...pixels.slice(y * width * channels, (y + 1) * width * channels));
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(Buffer.from(rows))), chunk("IEND", Buffer.alloc(0))]);
}

/** Bytes that look random and are the same each time. */
export function noise(seed) {
  let state = seed + 1;
  return () => {
    state = Math.imul(state ^ state >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
    return (state >>> 24);
  };
}

/** An untrained ViT for pictures of 8 by 8 pixels in colour, as a model folder. */
export function vit(dir) {
  const h = 32, side = 8, patch = 4, wide = 64;
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "config.json"), JSON.stringify({ model_type: "vit", hidden_size: h, num_hidden_layers: 1, num_attention_heads: 1,
    intermediate_size: wide, hidden_act: "gelu", layer_norm_eps: 1e-12, image_size: side, patch_size: patch, num_channels: 3 }));
  writeFileSync(join(dir, "preprocessor_config.json"), JSON.stringify({ image_mean: [0.5, 0.5, 0.5], image_std: [0.5, 0.5, 0.5], size: side, do_resize: true, do_normalize: true }));
  const layer = "encoder.layer.0.";
  const shapes = { "embeddings.cls_token": [1, 1, h], "embeddings.position_embeddings": [1, 1 + (side / patch) ** 2, h],
    "embeddings.patch_embeddings.projection.weight": [h, 3, patch, patch], "embeddings.patch_embeddings.projection.bias": [h] };
  const pair = (name, ...shape) => { shapes[`${name}.weight`] = shape; shapes[`${name}.bias`] = shape.slice(0, 1); };
  for (const name of ["layernorm_before", "layernorm_after"]) pair(layer + name, h);
  for (const name of ["attention.attention.query", "attention.attention.key", "attention.attention.value", "attention.output.dense"]) pair(layer + name, h, h);
  pair(`${layer}intermediate.dense`, wide, h);
  pair(`${layer}output.dense`, h, wide);
  pair("layernorm", h);
  weights(dir, shapes);
}

/** Random weights of such shapes as a model folder has them; gains of norms are 1. */
export function weights(dir, shapes) {
  const header = {}, values = [], next = noise(7);
  for (const [name, shape] of Object.entries(shapes)) {
    const n = shape.reduce((a, b) => a * b, 1), from = 4 * values.length;
    for (let i = 0; i < n; i++) values.push(/norm.*weight|original0/.test(name) ? 1 : (next() - 127.5) / 700);
    header[name] = { dtype: "F32", shape, data_offsets: [from, 4 * values.length] };
  }
  const json = Buffer.from(JSON.stringify(header)), size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  writeFileSync(join(dir, "model.safetensors"), Buffer.concat([size, json, Buffer.from(new Float32Array(values).buffer)]));
}
