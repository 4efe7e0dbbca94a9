"""Every single target of LoRA and every pair, of every architecture: what Starling exports PEFT loads onto the same
modules and no other, and what PEFT saves of it Starling takes back."""

import itertools
import os
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model

import check

FAMILIES = {
    "bert": ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"],
    "distilbert": ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "ffn.lin1", "ffn.lin2"],
    "vit": ["attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", "mlp.fc1", "mlp.fc2"],
}
FAMILIES["roberta"] = FAMILIES["bert"]


def check_one(s, family, config, chosen, folder, inputs):
    """An adapter of PEFT's on some maps in every layer, to Starling, to PEFT, to Starling."""
    cls = check.auto("", config)
    pattern = r".*layers?\.\d+\.(" + "|".join(c.replace(".", r"\.") for c in chosen) + ")"
    heads = ["pre_classifier", "classifier"] if family == "distilbert" else ["classifier"]
    lora = get_peft_model(cls.from_pretrained(folder), LoraConfig(r=2, lora_alpha=3, target_modules=pattern, modules_to_save=heads))
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if p.requires_grad:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
    want = check.logits_of(lora, inputs)
    adapter, worst = folder + "-adapter", 0.0
    lora.save_pretrained(adapter)
    for _ in range(2):
        taken, out = folder + "-taken", folder + "-out"
        s.run("import", "--base", folder, "--adapter", adapter, "--labels", "a,b,c", "--sequence", inputs.seq, "--out", taken)
        worst = max(worst, check.relative(s.ask(op="logits", checkpoint=taken, rank=2, **inputs.probe), want))
        s.run("export", "--checkpoint", taken, "--rank", "2", "--format", "peft", "--out", out)
        loaded = PeftModel.from_pretrained(cls.from_pretrained(os.path.join(out, "base")), out)
        worst = max(worst, check.relative(check.logits_of(loaded, inputs), want))
        # Beyond the maps that PEFT trained there are only updates of zero, of the layers' own maps.
        extra = [n for n, p in loaded.named_parameters() if ".lora_B." in n and float(p.abs().max()) > 0
                 and not any(f".{c}.lora_B" in n for c in chosen)]
        stray = [n for n, m in loaded.named_modules() if n.endswith("lora_A") and not (".layer" in n)]
        if extra or stray:
            raise SystemExit(f"{family} {chosen}: PEFT has {extra + stray}")
        shutil.rmtree(adapter)
        loaded.save_pretrained(adapter)
        shutil.rmtree(taken), shutil.rmtree(out)
    shutil.rmtree(adapter)
    return worst


def check_all(s, work, only):
    if not "targets".startswith(only):
        return
    for family, names in FAMILIES.items():
        _, config = next((n, c) for n, c in [*check.configs(), *check.image_configs()] if c.model_type == family)
        folder = os.path.join(work, "targets-" + family)
        torch.manual_seed(1)
        model = check.auto("", config).from_config(config)
        check.randomize(model, 2)
        model.save_pretrained(folder)
        if family != "vit":
            (check.bytelevel if family == "roberta" else check.wordpiece)(folder, config.vocab_size)
        inputs = check.Inputs(config)
        cases = [[n] for n in names] + [list(p) for p in itertools.combinations(names, 2)]
        worst = max(check_one(s, family, config, chosen, folder, inputs) for chosen in cases)
        check.report("targets", f"{family}: {len(cases)} single targets and pairs, to Starling and PEFT twice: logits", worst)
