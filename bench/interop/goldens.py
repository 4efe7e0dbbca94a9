"""Writes model/nn/testdata: a tiny checkpoint of every architecture as transformers
saves it, and the logits that transformers computes. Go's tests hold Starling to them
where there is no PyTorch. Run by hand: python goldens.py FOLDER"""

import json, os, sys

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, DistilBertConfig, RobertaConfig

shape = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24)
base = dict(vocab_size=60, num_labels=3)
for name, config in {
    "bert": BertConfig(**base, **shape, max_position_embeddings=14, type_vocab_size=2),
    "roberta": RobertaConfig(**base, **shape, max_position_embeddings=16, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5),
    "distilbert": DistilBertConfig(**base, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=14),
}.items():
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * 0.15)
        tokens = torch.randint(5, 60, (4, 12), generator=g)
        for r in range(4):
            tokens[r, 12 - 3 * r:] = config.pad_token_id
        logits = model(input_ids=tokens, attention_mask=tokens.ne(config.pad_token_id).long()).logits
    folder = os.path.join(sys.argv[1], name)
    model.save_pretrained(folder)
    for extra in ("tokenizer.json",):
        with open(os.path.join(folder, extra), "w") as f:
            f.write("{}")
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump({"tokens": tokens.tolist(), "logits": logits.tolist()}, f)
