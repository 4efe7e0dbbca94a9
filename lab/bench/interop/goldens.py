"""Writes model/nn/testdata: a tiny checkpoint of every architecture as transformers
saves it, and the logits that transformers computes. Go's tests hold Starling to them
where there is no PyTorch. Run by hand: python goldens.py FOLDER"""

import json, os, sys

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, DistilBertConfig, ElectraConfig, RobertaConfig

shape = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24)
base = dict(vocab_size=60, num_labels=3)
for name, config in {
    "bert": BertConfig(**base, **shape, max_position_embeddings=14, type_vocab_size=2),
    "roberta": RobertaConfig(**base, **shape, max_position_embeddings=16, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5),
    "electra": ElectraConfig(**base, **shape, embedding_size=16, max_position_embeddings=14, type_vocab_size=2),
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

from t5 import greedy, logits_of, randomized  # noqa: E402
from transformers import T5Config  # noqa: E402

config = T5Config(vocab_size=40, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_decoder_layers=1, num_heads=2, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                  relative_attention_num_buckets=8, relative_attention_max_distance=10, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
model = randomized(config, "own").eval()
g = torch.Generator().manual_seed(4)
tokens = torch.randint(3, 40, (4, 14), generator=g)
decoder = torch.randint(3, 40, (4, 32), generator=g)
decoder[:, 0] = 0
for r in range(4):
    tokens[r, 14 - 3 * r:] = 0
folder = os.path.join(sys.argv[1], "t5")
model.save_pretrained(folder)
with open(os.path.join(folder, "tokenizer.json"), "w") as f:
    f.write("{}")
answers = greedy(model, tokens)
with open(os.path.join(folder, "expected.json"), "w") as f:
    json.dump({"tokens": tokens.tolist(), "decoder": decoder.tolist(), "logits": logits_of(model, tokens, decoder).flatten(1).tolist(),
               "answers": [a for a, _ in answers], "confidence": [p for _, p in answers]}, f)

# An image encoder: pixels in place of tokens.
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(1)
model = ViTForImageClassification(ViTConfig(**shape, num_labels=3, image_size=8, patch_size=2, num_channels=3)).eval()
g = torch.Generator().manual_seed(2)
with torch.no_grad():
    for p in model.parameters():
        p.add_(torch.randn(p.shape, generator=g) * 0.15)
    pixels = torch.rand((4, 3, 8, 8), generator=g)
    logits = model(pixel_values=(pixels - 0.5) / 0.5).logits
folder = os.path.join(sys.argv[1], "vit")
model.save_pretrained(folder)
with open(os.path.join(folder, "expected.json"), "w") as f:
    json.dump({"pixels": pixels.flatten(1).tolist(), "logits": logits.tolist()}, f)

# SentencePiece's own files: small models of every option, with the ids that sentencepiece gives. Beside the others:
# python goldens.py FOLDER writes FOLDER/sentencepiece.json, which lies in data/tokenizer/testdata.
import base64, tempfile  # noqa: E401, E402

import check  # noqa: E402
import pieces  # noqa: E402
import sentencepiece  # noqa: E402

lines = ["", " ", "the company said", "  two  spaces ", "\u2581typed \u2581 signs\u2581", "gg ggg abab", "a<sep>b <sep> gg", "日本 漢字 🙂 é e\u0301",
         "profit rose 8.5 pct", "\ttab\nline", "<unk> </s> <0x41>", "aaaa\x00\x01z"]
rules = []
for name, options in {"plain": {}, "ties": dict(round_to=0.5), "bytes": dict(byte_fallback=True, vocab=420), "unused": dict(edit=pieces.unused),
                      "user-defined": dict(user_defined_symbols=["<sep>", "gg", "ab", "b <"]), "suffix": dict(treat_whitespace_as_suffix=True),
                      "all spaces": dict(remove_extra_whitespaces=False), "no prefix": dict(add_dummy_prefix=False),
                      "spaces as they are": dict(edit=pieces.unescaped)}.items():
    with tempfile.TemporaryDirectory() as work:
        path, _ = pieces.train(work, "m", **{"vocab": 130, "normalization_rule_name": "identity", "lines": check.CORPUS[:3], **options})
        there = sentencepiece.SentencePieceProcessor(model_file=path)
        rules.append({"name": name, "model": base64.b64encode(open(path, "rb").read()).decode(), "ids": [there.encode(t) for t in lines],
                      "decoded": [there.decode(there.encode(t)) for t in lines]})
with open(os.path.join(sys.argv[1], "sentencepiece.json"), "w") as f:
    json.dump({"texts": lines, "models": rules}, f, indent=0)
