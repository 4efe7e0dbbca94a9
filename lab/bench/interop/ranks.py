"""Writes model/nn/testdata/ranks.json: logits and gradients of LoRA at ranks 1, 8 and 16
under both rules for its scale, by a twin in numpy that shares no line with Starling or
PyTorch. Where PEFT is installed, a cut to each rank with lora_alpha = s_b * b must give the
same logits there. Run by hand: python lab/bench/interop/ranks.py model/nn/testdata"""

import json, math, os, struct, sys

import numpy as np

folder = sys.argv[1]
bert = os.path.join(folder, "bert")
raw = open(os.path.join(bert, "model.safetensors"), "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
base = {}
for name, t in json.loads(raw[8:8 + length]).items():
    if name != "__metadata__":
        a, b = t["data_offsets"]
        base[name.removeprefix("bert.")] = np.frombuffer(raw[8 + length:][a:b], "<f4").astype(np.float64).reshape(t["shape"])
config = json.load(open(os.path.join(bert, "config.json")))
tokens = np.array(json.load(open(os.path.join(bert, "expected.json")))["tokens"])
LABELS, RANKS, RMAX, ALPHA = [0, 1, 2, 0], [1, 8, 16], 16, 8.0
hidden, heads, classes = config["hidden_size"], config["num_attention_heads"], 3
erf = np.vectorize(math.erf)


def value(i):
    """The i-th value of the adapter at r_max: exact in float32 wherever it is computed."""
    return ((i * 2654435761 % 2**32 >> 16) / 65536 - 0.5) / 2


def adapter():
    """A [r_max, in] and B [out, r_max] of each layer's query and value, then the head."""
    i, out = 0, []
    for _ in range(2 * config["num_hidden_layers"]):
        for shape in ((RMAX, hidden), (hidden, RMAX)):
            n = shape[0] * shape[1]
            out.append(np.array([value(i + k) for k in range(n)]).reshape(shape))
            i += n
    for shape in ((classes, hidden), (classes,)):
        n = int(np.prod(shape))
        out.append(np.array([value(i + k) for k in range(n)]).reshape(shape))
        i += n
    return out


def cut(parts, b):
    """Equation 5: the first b rows of A and columns of B."""
    low = len(parts) - 2
    return [p[:b] if k % 2 == 0 else p[:, :b] for k, p in enumerate(parts[:low])] + parts[low:]


def norm(x, name):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + config["layer_norm_eps"]) * base[name + ".weight"] + base[name + ".bias"]


def linear(x, name):
    return x @ base[name + ".weight"].T + base[name + ".bias"]


def forward(parts, scale):
    n, seq = tokens.shape
    mask = tokens != config["pad_token_id"]
    e = "embeddings."
    x = base[e + "word_embeddings.weight"][tokens] + base[e + "position_embeddings.weight"][:seq] + base[e + "token_type_embeddings.weight"][0]
    x = norm(x, e + "LayerNorm")
    split = lambda y: y.reshape(n, seq, heads, -1).transpose(0, 2, 1, 3)
    for layer in range(config["num_hidden_layers"]):
        p = f"encoder.layer.{layer}."
        qa, qb, va, vb = parts[4 * layer:4 * layer + 4]
        q = linear(x, p + "attention.self.query") + scale * (x @ qa.T) @ qb.T
        k = linear(x, p + "attention.self.key")
        v = linear(x, p + "attention.self.value") + scale * (x @ va.T) @ vb.T
        s = split(q) @ split(k).transpose(0, 1, 3, 2) / math.sqrt(hidden // heads)
        s = np.where(mask[:, None, None, :], s, -1e30)
        w = np.exp(s - s.max(-1, keepdims=True))
        w /= w.sum(-1, keepdims=True)
        a = (w @ split(v)).transpose(0, 2, 1, 3).reshape(n, seq, hidden)
        x = norm(x + linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        h = h * 0.5 * (1 + erf(h / math.sqrt(2)))
        x = norm(x + linear(h, p + "output.dense"), p + "output.LayerNorm")
    pooled = np.tanh(linear(x[:, 0], "pooler.dense"))
    return pooled @ parts[-2].T + parts[-1]


def loss(parts, scale):
    z = forward(parts, scale)
    return float(np.mean([math.log(np.exp(r).sum()) - r[c] for r, c in zip(z, LABELS)]))


def gradient(parts, scale, places):
    """Central differences, at places of the slice's vector."""
    flat, h, out = np.concatenate([p.ravel() for p in parts]), 1e-5, []
    shapes = [p.shape for p in parts]

    def at(v):
        again, i = [], 0
        for s in shapes:
            n = int(np.prod(s))
            again.append(v[i:i + n].reshape(s))
            i += n
        return loss(again, scale)

    for i in places:
        step = np.zeros_like(flat)
        step[i] = h
        out.append((at(flat + step) - at(flat - step)) / (2 * h))
    return out


full, cases = adapter(), []
for rule in ("rank", "constant"):
    for b in RANKS:
        scale = ALPHA / (b if rule == "rank" else RMAX)
        parts = cut(full, b)
        size = sum(p.size for p in parts)
        places = [i * 37 % size for i in range(24)]
        cases.append({"scale": rule, "rank": b, "logits": forward(parts, scale).tolist(), "places": places, "gradient": gradient(parts, scale, places)})
        print(rule, b, "loss", round(loss(parts, scale), 4))
try:
    import tempfile

    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForSequenceClassification
except ImportError:
    print("no PEFT here: the twin alone")
else:
    for case in cases:
        b = case["rank"]
        scale = ALPHA / (b if case["scale"] == "rank" else RMAX)
        model = get_peft_model(AutoModelForSequenceClassification.from_pretrained(bert), LoraConfig(
            task_type="SEQ_CLS", r=b, lora_alpha=scale * b, target_modules=["query", "value"], modules_to_save=["classifier"]))
        parts = iter(cut(full, b))
        with torch.no_grad():
            for wanted in ("lora_", "modules_to_save"):  # A before B, query before value, then the head
                for n, p in model.named_parameters():
                    if wanted in n:
                        p.copy_(torch.tensor(next(parts)))
            ids = torch.tensor(tokens)
            got = model.eval()(input_ids=ids, attention_mask=ids.ne(config["pad_token_id"]).long()).logits.numpy()
        worst = float(np.abs(got - np.array(case["logits"])).max() / np.abs(case["logits"]).max())
        assert worst < 2e-6, (case["scale"], b, worst)
        print("PEFT", case["scale"], b, f"differs by {worst:.1e}")
with open(os.path.join(folder, "ranks.json"), "w") as f:
    json.dump({"tokens": tokens.tolist(), "labels": LABELS, "r_max": RMAX, "alpha": ALPHA, "cases": cases}, f)
