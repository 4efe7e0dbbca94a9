"""Masked language models of transformers, here: logits and gradients of their own head,
and what is exported."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForMaskedLM

import check


def gathered(logits, places):
    return torch.stack([row[at] for row, at in zip(logits, places)]).flatten(1)


def check_one(s, work, name, config):
    torch.manual_seed(1)
    model = AutoModelForMaskedLM.from_config(config)
    check.randomize(model, 2)
    folder = os.path.join(work, name)
    model.save_pretrained(folder)
    (check.bytelevel if config.model_type == "roberta" else check.wordpiece)(folder, config.vocab_size)
    tokens, _ = check.batch(config)
    inputs = check.Inputs.__new__(check.Inputs).take(tokens, config.pad_token_id)
    k = int(0.15 * tokens.shape[1]) + 1  # places of a text
    g = torch.Generator().manual_seed(4)
    places = torch.stack([torch.randperm(6, generator=g)[:k] + 1 for _ in tokens])
    labels = torch.randint(5, config.vocab_size, places.shape, generator=g)
    probe = {**inputs.probe, "places": places.tolist()}

    own = os.path.join(work, name + "-own")
    flags = ["--task", "pretrain", "--sequence", inputs.seq]
    s.run("import", "--base", folder, "--out", own, *flags)
    want = gathered(check.logits_of(model, inputs), places)
    check.report(name, "logits of the checkpoint's own head", check.relative(s.ask(op="logits", checkpoint=own, rank=0, **probe), want))

    def loss(m):
        logits = m(**inputs.model).logits
        return torch.nn.functional.cross_entropy(gathered(logits, places).reshape(-1, config.vocab_size), labels.flatten())

    model.zero_grad()
    loss(model).backward()
    all = max(p.grad.abs().max() for p in model.parameters())
    for method in ("full", "bitfit"):
        grads = s.ask(op="gradient", checkpoint=own, rank=0, method=method, **probe, labels=labels.flatten().tolist())
        grads.pop("loss")
        worst = 0.0
        for n, p in model.named_parameters():
            for key in (check.ours(config, n), check.ours(config, n) + ".delta"):
                if key in grads:
                    got = torch.tensor(grads.pop(key))
                    worst = max(worst, float((got - p.grad.flatten()).abs().max() / p.grad.abs().max().clamp_min(1e-3 * all)))
        check.report(name, f"{method}: tensors without a gradient in autograd", len(grads), 0)
        check.report(name, f"gradients of {method} fine-tuning", worst)

    targets = ["q_lin", "v_lin"] if config.model_type == "distilbert" else ["query", "value"]
    lora = get_peft_model(model, LoraConfig(r=4, lora_alpha=6, target_modules=targets))
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if "lora_" in n:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
    adapter, taken = os.path.join(work, name + "-peft"), os.path.join(work, name + "-taken")
    lora.save_pretrained(adapter)
    s.run("import", "--base", folder, "--adapter", adapter, "--out", taken, *flags)
    want = gathered(check.logits_of(lora, inputs), places)
    check.report(name, "logits of a PEFT adapter", check.relative(s.ask(op="logits", checkpoint=taken, rank=4, **probe), want))
    for form in ("peft", "merged"):
        worst = 0.0
        for rank in (1, 4):
            want = s.ask(op="logits", checkpoint=taken, rank=rank, **probe)
            out = os.path.join(work, f"{name}-{form}-{rank}")
            s.run("export", "--checkpoint", taken, "--rank", str(rank), "--format", form, "--out", out)
            there = AutoModelForMaskedLM.from_pretrained(os.path.join(out, "base") if form == "peft" else out)
            if form == "peft":
                there = PeftModel.from_pretrained(there, out)
            worst = max(worst, check.relative(want, gathered(check.logits_of(there, inputs), places)))
        check.report(name, f"exported {'for PEFT' if form == 'peft' else 'merged'} at ranks [1, 4]", worst)


def check_all(s, work, only):
    for name, config in check.configs():
        if ("masked-" + name).startswith(only):
            check_one(s, work, "masked-" + name, config)
