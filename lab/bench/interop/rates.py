"""Measures the rule of job.DefaultLocal: LoRA of rank 8 on query and value and a head,
trained centrally on labelled text at the rule's learning rates and at multiples of them,
over an encoder and over its first layers. Prints validation accuracy in markdown.

    python rates.py ENCODER_FOLDER LABELLED.tsv [--steps 60] [--layers 6,3]
"""

import argparse, math, random, sys, time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModel, AutoTokenizer

p = argparse.ArgumentParser()
p.add_argument("encoder")
p.add_argument("data")
p.add_argument("--steps", type=int, default=60)
p.add_argument("--layers", default="6,3")
p.add_argument("--times", default="0.3,1,3,17")
a = p.parse_args()
torch.set_num_threads(1)
tok = AutoTokenizer.from_pretrained(a.encoder)
rows = [line.rstrip("\n").split("\t", 1) for line in open(a.data)]
random.Random(1).shuffle(rows)
names = sorted({r[0] for r in rows})


def batch(part):
    e = tok([r[1] for r in part], padding="max_length", truncation=True, max_length=40, return_tensors="pt")
    return e, torch.tensor([names.index(r[0]) for r in part])


class Mean(torch.nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.classifier = encoder, torch.nn.Linear(encoder.config.hidden_size, len(names))
        torch.nn.init.zeros_(self.classifier.weight), torch.nn.init.zeros_(self.classifier.bias)

    def forward(self, e):
        x = self.encoder(**e).last_hidden_state
        m = e["attention_mask"].unsqueeze(-1)
        return self.classifier((x * m).sum(1) / m.sum(1))


print(f"{a.steps} AdamW steps of 16, 40 tokens, validation on 320 texts\n")
print("| layers | learning rate | times the rule | accuracy |\n| --- | --- | --- | --- |")
test = [batch(rows[i:i + 32]) for i in range(0, 320, 32)]
for layers in map(int, a.layers.split(",")):
    for times in map(float, a.times.split(",")):
        torch.manual_seed(1)
        encoder = AutoModel.from_pretrained(a.encoder, add_pooling_layer=False)
        encoder.encoder.layer = encoder.encoder.layer[:layers]
        h = encoder.config.hidden_size
        lora = get_peft_model(encoder, LoraConfig(r=8, lora_alpha=8 * min(2, max(0.5, h / 128)), target_modules=["query", "value"]))
        model = Mean(lora)
        rate, head = min(0.03, 3.84 / (h * layers)), min(0.03, 0.24 / math.sqrt(h))
        opt = torch.optim.AdamW([{"params": [q for q in lora.parameters() if q.requires_grad], "lr": rate * times},
                                 {"params": model.classifier.parameters(), "lr": min(0.03, head * times)}], weight_decay=0.0)
        model.eval()  # no dropout, as Starling's steps have none
        for step in range(a.steps):
            at = 320 + step * 16
            e, y = batch(rows[at:at + 16])
            loss = torch.nn.functional.cross_entropy(model(e), y)
            opt.zero_grad(), loss.backward(), opt.step()
        with torch.no_grad():
            right = sum(int((model(e).argmax(1) == y).sum()) for e, y in test)
        print(f"| {layers} | {rate * times:.2g} | {times:g} | {100 * right / 320:.1f} % |", flush=True)
