"""Would frozen weights in 8 bits, with integer products, keep a training's accuracy?

    python integers.py MINILM_DIR R8.train.txt.gz [--steps N] [--seeds N] [--batch N] [--seq N]

LoRA (r = 8 on query and value) and a head on R8's topics over all-MiniLM-L6-v2, AdamW, in PyTorch, with every
product of a frozen matrix simulated in integers, forward and backward: weights of 8 bits with a scale for each
output, the other operand of so many bits with a scale for each row of it, chosen as it comes. The gradient is
multiplied by the weights' scales before it is rounded, as its product is summed over them. Sums are float32's, of
integers times their scales: their own roundings are far smaller. Adapters, the head and attention stay float32. Same
seeds, same batches. Needs torch and transformers.
"""

import argparse
import gzip
import random

import torch
from transformers import AutoTokenizer, BertModel

WAYS = {"float32": None, "8 x 13 bits": 13, "8 x 8 bits": 8}


def rounded(x, bits):
    """Rounds every row to integers of so many bits, sign included, times the row's scale; 0: not at all."""
    if not bits:
        return x
    top = 2 ** (bits - 1) - 1
    scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-30) / top
    return (x / scale).round() * scale


class Product(torch.autograd.Function):
    """y = x W^T for a W of integers times a scale a row."""

    @staticmethod
    def forward(ctx, x, w, scale, bits):
        ctx.save_for_backward(w, scale)
        ctx.bits = bits
        return rounded(x, bits) @ w.T * scale

    @staticmethod
    def backward(ctx, dy):
        w, scale = ctx.saved_tensors
        return rounded(dy * scale, ctx.bits) @ w, None, None, None


class Frozen(torch.nn.Module):
    """A frozen linear layer, with an adapter where rank is not 0."""

    def __init__(self, layer, bits, rank):
        super().__init__()
        w, self.bits, self.bias = layer.weight.detach(), bits, layer.bias.detach()
        self.scale = torch.ones(w.shape[0])
        if bits is not None:
            self.scale = w.abs().amax(1) / 127
            w = (w / self.scale[:, None]).round()
        self.w, self.a = w, None
        if rank:
            self.a = torch.nn.Parameter(torch.randn(rank, w.shape[1]) / w.shape[1] ** 0.5)
            self.b = torch.nn.Parameter(torch.zeros(w.shape[0], rank))

    def forward(self, x):
        y = Product.apply(x, self.w, self.scale, self.bits or 0) + self.bias
        return y if self.a is None else y + 2 * (x @ self.a.T @ self.b.T)


class Classifier(torch.nn.Module):
    def __init__(self, folder, bits, classes):
        super().__init__()
        self.bert = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager")
        self.bert.requires_grad_(False)
        for module in list(self.bert.encoder.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(module, name, Frozen(child, bits, 8 if name in ("query", "value") else 0))
        self.head = torch.nn.Linear(self.bert.config.hidden_size, classes)

    def forward(self, batch):
        x = self.bert(**batch).last_hidden_state
        keep = batch["attention_mask"].unsqueeze(-1).float()
        return self.head((x * keep).sum(1) / keep.sum(1))


def train(args, bits, seed, rows, labels):
    torch.manual_seed(seed)
    model = Classifier(args.folder, bits, len(labels)).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.folder)

    def batch(part):
        enc = tokenizer([t for _, t in part], padding=True, truncation=True, max_length=args.seq, return_tensors="pt")
        return dict(enc), torch.tensor([labels.index(label) for label, _ in part])

    rnd = random.Random(seed)
    order = rnd.sample(rows, len(rows))
    held, order = order[: args.held], order[args.held :]
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.rate, weight_decay=0.01)
    losses = []
    for step in range(args.steps):
        x, y = batch(rnd.sample(order, args.batch))
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        right = 0
        for at in range(0, len(held), 32):
            x, y = batch(held[at : at + 32])
            right += int((model(x).argmax(-1) == y).sum())
    last = losses[-args.steps // 4 :]
    return right / len(held), sum(last) / len(last)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder")
    ap.add_argument("data")
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--seeds", type=int, default=2)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--seq", type=int, default=32)
    ap.add_argument("--held", type=int, default=300)
    ap.add_argument("--rate", type=float, default=1e-3)
    args = ap.parse_args()
    torch.set_num_threads(1)
    rows = [line.rstrip("\n").split("\t", 1) for line in gzip.open(args.data, "rt", encoding="utf-8")]
    labels = sorted({label for label, _ in rows})
    print("| products of frozen weights | held-out accuracy, each seed | mean | mean loss of the last quarter |")
    print("| --- | --- | --- | --- |", flush=True)
    for name, bits in WAYS.items():
        runs = [train(args, bits, seed, rows, labels) for seed in range(1, args.seeds + 1)]
        mean = [sum(r[i] for r in runs) / len(runs) for i in range(2)]
        print(f"| {name} | {', '.join(f'{acc:.3f}' for acc, _ in runs)} | {mean[0]:.3f} | {mean[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
