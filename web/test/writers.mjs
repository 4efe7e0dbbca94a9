// A small untrained decoder whose tokens are bytes, written here: what tests of writing need.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { weights } from "./images.mjs";

/** GPT-2's alphabet: a character for each byte. */
function alphabet() {
  const plain = (b) => b >= 33 && b <= 126 || b >= 161 && b !== 173;
  let next = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(plain(b) ? b : next++));
}

/** A llama of one layer, as a model folder. */
export function llama(dir) {
  const h = 32, wide = 64, layer = "model.layers.0.";
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "config.json"), JSON.stringify({ model_type: "llama", vocab_size: 257, hidden_size: h, intermediate_size: wide, num_hidden_layers: 1, num_attention_heads: 2,
    num_key_value_heads: 2, max_position_embeddings: 128, rms_norm_eps: 1e-5, rope_theta: 10000, hidden_act: "silu", tie_word_embeddings: true, bos_token_id: 256, eos_token_id: 256, pad_token_id: 256 }));
  writeFileSync(join(dir, "tokenizer.json"), JSON.stringify({ added_tokens: [{ id: 256, content: "<|endoftext|>", special: true }],
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    model: { type: "BPE", vocab: Object.fromEntries(alphabet().map((c, b) => [c, b])), merges: [] } }));
  const shapes = { "model.embed_tokens.weight": [257, h], "model.norm.weight": [h], [`${layer}input_layernorm.weight`]: [h], [`${layer}post_attention_layernorm.weight`]: [h] };
  for (const name of ["q", "k", "v", "o"]) shapes[`${layer}self_attn.${name}_proj.weight`] = [h, h];
  for (const name of ["gate", "up"]) shapes[`${layer}mlp.${name}_proj.weight`] = [wide, h];
  shapes[`${layer}mlp.down_proj.weight`] = [h, wide];
  weights(dir, shapes);
}
