"""Checkpoints that hold a tokenizer as transformers' Python tokenizers saved it."""

import json
import os
import shutil

import transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import check


def check_one(s, work, name, config, options):
    folder = os.path.join(work, name)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    new = os.path.join(folder, "tokenizer.json")
    if config.model_type == "roberta":
        check.bytelevel(folder, config.vocab_size)
        model = json.load(open(new))["model"]
        json.dump(model["vocab"], open(os.path.join(folder, "vocab.json"), "w"))
        with open(os.path.join(folder, "merges.txt"), "w") as f:
            f.write("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
    else:
        check.wordpiece(folder, config.vocab_size)
        vocab = json.load(open(new))["model"]["vocab"]
        with open(os.path.join(folder, "vocab.txt"), "w") as f:
            f.write("".join(p + "\n" for p in sorted(vocab, key=vocab.get)))
    os.remove(new)
    if options is not None:
        json.dump(options, open(os.path.join(folder, "tokenizer_config.json"), "w"))
    own = os.path.join(work, name + "-own")
    s.run("import", "--base", folder, "--labels", "a,b,c", "--out", own)
    tok = AutoTokenizer.from_pretrained(folder)
    texts = check.noise(500) + check.CORPUS[:6]
    got = s.ask(op="ids", base=os.path.join(own, "base", "tokenizer.json"), texts=texts)
    wrong = sum(g != tok(t, add_special_tokens=False).input_ids for t, g in zip(texts, got, strict=True))
    check.report(name, f"texts of {len(texts)} whose ids differ", wrong, 0)
    shutil.rmtree(folder)


def check_all(s, work, only):
    shape = dict(num_labels=3, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    bert = transformers.BertConfig(**shape, vocab_size=120, max_position_embeddings=24)
    distil = transformers.DistilBertConfig(num_labels=3, dim=32, n_layers=1, n_heads=2, hidden_dim=64, vocab_size=120)
    roberta = transformers.RobertaConfig(**shape, vocab_size=420, max_position_embeddings=26, type_vocab_size=1, pad_token_id=1)
    for name, config, options in [("older-bert", bert, None), ("older-bert-cased", bert, {"do_lower_case": False}),
                                  ("older-distilbert", distil, {"do_lower_case": True}), ("older-roberta", roberta, None),
                                  ("older-roberta-prefix", roberta, {"add_prefix_space": True})]:
        if name.startswith(only):
            check_one(s, work, name, config, options)
