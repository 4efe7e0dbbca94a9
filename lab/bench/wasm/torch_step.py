"""Times the benchmark's training step in PyTorch on the CPU, one thread by default.

    python torch_step.py DIR CASE [--steps N] [--warm N] [--reference STATE.bin]

It reads the same inputs as the program (DIR/CASE.bin in the layout of the
manifest in DIR/CASE.json) and computes the same model: a post-norm
encoder with LoRA on query and value, a frozen base, masked mean pooling, an
affine pooler, cross entropy, AdamW; torch_families.py has a ViT and a T5. --reference compares the trained tensors
after ONE step with those of a program (run_program.mjs --state), so that the
timing is known to be of the same mathematics.
"""

import argparse
import json
import math
import resource
import time

import numpy as np
import torch
import torch.nn.functional as F

import torch_families


# What 4-bit codes stand for (Dettmers et al. 2023, appendix E).
LEVELS = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                   -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                   0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1], np.float32)


def read_tensors(m, path):
    """Reads frozen, state and inputs in manifest order."""
    data, at, out = open(path, "rb").read(), 0, {}
    for role in ("frozen", "state", "inputs"):
        for t in m.get(role, []):
            n = math.prod(t["shape"])
            if "nf4" in t:
                codes = np.frombuffer(data, np.uint8, (n + 1) // 2, at)
                blocks = -(-n // t["nf4"]["block"])
                scales = np.frombuffer(data, np.float32, blocks, at + len(codes))
                at += len(codes) + 4 * blocks
                values = LEVELS[np.stack([codes >> 4, codes & 15], 1).reshape(-1)[:n]]
                out[t["name"]] = (values * np.repeat(scales, t["nf4"]["block"])[:n]).reshape(t["shape"])
                continue
            kind = np.int32 if t["dtype"] == "i32" else np.float32
            out[t["name"]] = np.frombuffer(data, kind, n, at).reshape(t["shape"]).copy()
            at += 4 * n
    return out


class Model:
    def __init__(self, spec, tensors, state, sdpa=False):
        self.sdpa, self.whole = sdpa, "tokens" in tensors and bool((tensors["tokens"] != 0).all())
        self.spec, self.t = spec, {k: torch.from_numpy(v) for k, v in tensors.items()}
        self.trained = [t["name"] for t in state if not t["name"].endswith((".adam_m", ".adam_v"))]
        for name in self.trained:
            self.t[name].requires_grad_()

    def dense(self, x, name):
        return F.linear(x, self.t[name + ".weight"], self.t[name + ".bias"])

    def adapted(self, x, name, scale):
        low = F.linear(x, self.t[name + ".lora_A.weight"])
        return self.dense(x, name) + scale * F.linear(low, self.t[name + ".lora_B.weight"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.t[name + ".weight"], self.t[name + ".bias"], 1e-12)

    def loss(self):
        family = {"vit": torch_families.vit, "t5": torch_families.t5, "llama": torch_families.llama, "qwen2": torch_families.llama}.get(self.spec["Config"]["model_type"])
        if family:
            return family(self)
        t, cfg = self.t, self.spec["Config"]
        tokens = t["tokens"].long()
        b, s = tokens.shape
        h, heads = cfg["hidden_size"], cfg["num_attention_heads"]
        scale = self.spec["Method"]["alpha"] / self.spec["Rank"]
        x = F.embedding(tokens, t["embeddings.word_embeddings.weight"]) + t["embeddings.position_embeddings.weight"][:s]
        x = self.norm(x, "embeddings.LayerNorm")
        keep = (tokens != 0).float()
        bias = ((1 - keep) * -1e4)[:, None, None, :]

        def split(v):
            return v.view(b, s, heads, h // heads).transpose(1, 2)

        for i in range(cfg["num_hidden_layers"]):
            p = f"encoder.layer.{i}."
            q = self.adapted(x, p + "attention.self.query", scale)
            k = self.dense(x, p + "attention.self.key")
            v = self.adapted(x, p + "attention.self.value", scale)
            if self.sdpa:  # without a mask where nothing is padded, which is its fastest
                mask = None if self.whole else bias
                a = F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask)
            else:
                scores = split(q) @ split(k).transpose(-1, -2) / math.sqrt(h // heads) + bias
                a = scores.softmax(-1) @ split(v)
            a = a.transpose(1, 2).reshape(b, s, h)
            x = self.norm(x + self.dense(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            f = F.gelu(self.dense(x, p + "intermediate.dense"), approximate="tanh")
            x = self.norm(x + self.dense(f, p + "output.dense"), p + "output.LayerNorm")
        share = keep / (keep.sum(-1, keepdim=True) + 1e-9)
        pooled = (share[:, None, :] @ x)[:, 0]
        logits = self.dense(self.dense(pooled, "pooler.dense"), "classifier")
        ce = F.cross_entropy(logits, t["labels"].long(), reduction="none")
        return (ce * t["weights"]).sum() / (t["weights"].sum() + 1e-9)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dir")
    ap.add_argument("case")
    ap.add_argument("--steps", type=int, default=5)
    ap.add_argument("--warm", type=int, default=2)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--reference")
    ap.add_argument("--sdpa", action="store_true", help="attention by scaled_dot_product_attention")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    base = f"{args.dir}/{args.case}"
    case = json.load(open(base + ".json"))
    spec, m = case["step"], case["manifest"]
    model = Model(spec, read_tensors(m, base + ".bin"), m["state"], args.sdpa)
    rate = float(model.t["learning_rate"])
    params = [model.t[n] for n in model.trained]
    start = [p.detach().clone() for p in params]
    opt = torch.optim.AdamW(params, lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=spec["WeightDecay"])
    engine = f"torch {torch.__version__}" + (f", {args.threads} threads" if args.threads > 1 else "") + (", SDPA" if args.sdpa else "")
    report = {"name": args.case, "engine": engine, "steps": args.warm + args.steps, "outputs": {}}
    times, cpu = [], []
    for i in range(args.warm + args.steps):
        t0, c0 = time.perf_counter(), time.process_time()
        opt.zero_grad()
        loss = model.loss()
        loss.backward()
        opt.step()
        if i >= args.warm:
            times.append(1e3 * (time.perf_counter() - t0))
            cpu.append(1e3 * (time.process_time() - c0))
        if i == 0:
            report["outputs"]["loss"] = [float(loss.detach())]
            if args.reference:
                report["delta_error"] = compare(args.reference, m, dict(zip(model.trained, params)), dict(zip(model.trained, start)))
    times.sort()
    report |= {"min_ms": times[0], "cpu_ms": min(cpu), "median_ms": times[len(times) // 2]}
    report["peak_rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(report))


def compare(path, m, now, start):
    """Relative L2 error of a program's update against this one's."""
    data, at, diff, norm = open(path, "rb").read(), 0, 0.0, 0.0
    for t in m["state"]:
        n = math.prod(t["shape"])
        v = torch.frombuffer(bytearray(data[at : at + 4 * n]), dtype=torch.float32).reshape(t["shape"])
        at += 4 * n
        if t["name"] in now:
            ours, theirs = v - start[t["name"]], now[t["name"]].detach() - start[t["name"]]
            diff += float(((ours - theirs).double() ** 2).sum())
            norm += float((theirs.double() ** 2).sum())
    return math.sqrt(diff / norm)


if __name__ == "__main__":
    main()
