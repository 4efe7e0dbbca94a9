"""Masked language models of transformers, here: logits and gradients of their own head,
and what is exported."""

import json
import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import AddedToken, decoders
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast, pipeline

import check

ROBERTAS = ("roberta", "xlm-roberta", "camembert")


def gathered(logits, places):
    return torch.stack([row[at] for row, at in zip(logits, places)]).flatten(1)


OPEN = ["the company said {} rose to 1.2 mln dlrs", "{}", "{} and corn {}", "it's  {}, not {}!", "a b{}c d", "Łódź café {} naïve"]


def strip_left(path):
    file = json.load(open(path))
    for token in file["added_tokens"]:
        token["lstrip"] |= token["content"] == "<mask>"
    json.dump(file, open(path, "w"))


def check_fill(s, work, name, config, folder, own, model):
    """What a text leaves open: transformers' fill-mask beside starling predict."""
    mask, pad = ("<mask>", "<pad>") if config.model_type in ROBERTAS else ("[MASK]", "[PAD]")
    texts = [t.format(*[mask] * t.count("{}")) for t in OPEN]
    tok = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"), pad_token=pad,
                                  mask_token=AddedToken(mask, lstrip=config.model_type in ROBERTAS, special=True))
    if config.model_type == "roberta":  # whose files name it
        tok.backend_tokenizer.decoder = decoders.ByteLevel()
    there = pipeline("fill-mask", model=model.eval(), tokenizer=tok, top_k=4)
    fitting = [t for t in texts if len(tok(t).input_ids) <= int(config.max_position_embeddings) - 2]
    here = [json.loads(line) for line in s.run("predict", "--json", "--checkpoint", own, "--top", "4", input="\n".join(fitting)).splitlines()]
    wrong, worst = 0, 0.0
    for text, got in zip(fitting, here, strict=True):
        want = there(text)
        want = want if isinstance(want[0], list) else [want]
        for g, w in zip(got["masks"], want, strict=True):
            wrong += [t["id"] for t in g["top"]] != [t["token"] for t in w]
            # Ids that the model has beyond the tokenizer's have no spelling.
            wrong += any(a["token"].strip() != b["token_str"].strip() for a, b in zip(g["top"], w) if a["id"] < len(tok))
            worst = max([worst] + [abs(t["probability"] / v["score"] - 1) for t, v in zip(g["top"], w)])
    check.report(name, f"masks of {len(fitting)} texts filled otherwise than by fill-mask", wrong, 0)
    check.report(name, "probabilities of fill-mask", worst)


def check_one(s, work, name, config):
    torch.manual_seed(1)
    model = AutoModelForMaskedLM.from_config(config)
    check.randomize(model, 2)
    folder = os.path.join(work, name)
    model.save_pretrained(folder)
    check.tokenizer_for(folder, config)
    if config.model_type in ROBERTAS:  # as RoBERTa's own: the mask takes the space before it
        strip_left(os.path.join(folder, "tokenizer.json"))
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

    longest = config.max_position_embeddings - (2 if config.model_type in ROBERTAS else 0)
    whole = os.path.join(work, name + "-whole")
    s.run("import", "--base", folder, "--out", whole, "--task", "pretrain", "--sequence", str(longest))
    check_fill(s, work, name, config, folder, whole, model)

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
            if n == "lm_head.decoder.weight":  # tied, and named so where the head comes first
                n = "roberta.embeddings.word_embeddings.weight"
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
    for name, config in [*check.configs(), *(f for f in check.families() if "-" not in f[0].removeprefix("xlm-"))]:
        if ("masked-" + name).startswith(only):
            check_one(s, work, "masked-" + name, config)
