"""Decoders against transformers and PEFT. Run by hand it writes model/nn/testdata/causal: of every family a tiny checkpoint as
transformers saves it, its logits, a LoRA adapter as PEFT saves it, the loss with it and the adapter's gradients, to which
Go's tests hold Starling where there is no PyTorch: python causal.py FOLDER"""

import json
import os
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

SHAPE = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
SCALED = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def configs():
    """Name, configuration, PEFT's targets, how it is saved."""
    yield "gpt2", GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=64, n_inner=24, bos_token_id=1, eos_token_id=2, resid_pdrop=0.0, embd_pdrop=0.0,
                             attn_pdrop=0.0), ["c_attn", "c_proj"], {}
    yield "llama", LlamaConfig(**SHAPE, tie_word_embeddings=True), ["q_proj", "v_proj"], {}
    yield "llama-3", LlamaConfig(**{**SHAPE, "num_key_value_heads": 1, "eos_token_id": [2, 3]}, head_dim=6, rope_parameters=SCALED, attention_bias=True, mlp_bias=True), "all-linear", \
        dict(dtype=torch.bfloat16, max_shard_size="6KB")
    yield "mistral", MistralConfig(**SHAPE, sliding_window=5), ["q_proj", "k_proj", "down_proj"], dict(dtype=torch.float16)
    yield "qwen2", Qwen2Config(**SHAPE, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6}), "all-linear", {}
    yield "qwen3", Qwen3Config(**SHAPE, head_dim=8, tie_word_embeddings=True), ["q_proj", "o_proj", "gate_proj"], {}
    yield "gemma3_text", Gemma3TextConfig(**{**SHAPE, "num_hidden_layers": 3}, head_dim=8, query_pre_attn_scalar=6, sliding_window=4,
                                          layer_types=["sliding_attention", "full_attention", "sliding_attention"]), "all-linear", {}


def randomized(config, seed=1):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    g = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * 0.15)
    return model


def greedy(model, prompt, n):
    """The likeliest token again and again, whatever ends a text; and the scores of the last one."""
    ids = prompt.clone()[None]
    with torch.no_grad():
        for _ in range(n):
            scores = model(input_ids=ids).logits[0, -1]
            ids = torch.cat([ids, scores.argmax()[None, None]], 1)
    return ids[0, len(prompt):].tolist(), scores.tolist()


def main(folder):
    for name, config, targets, saved in configs():
        out = os.path.join(folder, name)
        shutil.rmtree(out, ignore_errors=True)
        model = randomized(config)
        if "dtype" in saved:  # what is computed with is what is saved
            model.to(saved["dtype"]).save_pretrained(out, max_shard_size=saved.get("max_shard_size", "1GB"))
            model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32, attn_implementation="eager").eval()
        else:
            model.save_pretrained(out)
        g = torch.Generator().manual_seed(4)
        tokens = torch.randint(4, config.vocab_size, (3, 12), generator=g)
        counted = torch.rand((3, 11), generator=g) < 0.6
        counted[:, 4] = True
        counted[1, 7:] = False  # what lies behind the last is not looked at
        with torch.no_grad():
            logits = model(input_ids=tokens).logits[:, :-1]
        written = []
        for n in (1, 5, 40):  # one token, less than a chunk, more than one
            prompt = torch.randint(4, config.vocab_size, (n,), generator=torch.Generator().manual_seed(n))
            out_ids, scores = greedy(model, prompt, 12)
            written.append({"prompt": prompt.tolist(), "tokens": out_ids, "scores": [float(f"{v:.7g}") for v in scores]})
        adapted = get_peft_model(model, LoraConfig(r=2, lora_alpha=3, target_modules=targets, task_type="CAUSAL_LM", lora_dropout=0.0))
        with torch.no_grad():
            for n, p in adapted.named_parameters():
                if "lora_" in n:
                    p.copy_(torch.randn(p.shape, generator=g) * 0.2)
        labels = tokens.clone()
        labels[:, 1:][~counted] = -100
        labels[:, 0] = -100
        loss = adapted(input_ids=tokens, labels=labels).loss
        loss.backward()
        adapted.save_pretrained(os.path.join(out, "adapter"))
        save_file({n.replace(".default", ""): p.grad.clone() for n, p in adapted.named_parameters() if "lora_" in n}, os.path.join(out, "gradients.safetensors"))
        with torch.no_grad():
            after = adapted(input_ids=tokens).logits[:, :-1]
        for extra in ("generation_config.json", "adapter/README.md"):
            if os.path.exists(os.path.join(out, extra)):
                os.remove(os.path.join(out, extra))
        with open(os.path.join(out, "tokenizer.json"), "w") as f:
            f.write("{}")
        with open(os.path.join(out, "expected.json"), "w") as f:
            digits = lambda x: [[float(f"{v:.7g}") for v in row] for row in x.flatten(1).tolist()]  # noqa: E731
            json.dump({"tokens": tokens.tolist(), "counted": counted.int().tolist(), "logits": digits(logits), "adapted": digits(after), "loss": loss.item(), "written": written}, f)
            f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
