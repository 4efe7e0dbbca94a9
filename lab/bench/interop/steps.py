"""Each step that a tokenizer.json may have, against tokenizers: pre-tokenizers with all that they may be told, normalizers, and what a
vocabulary lacks. Run by hand it writes data/tokenizer/testdata/steps.json: python steps.py FILE"""

import json
import random
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from words import PARTS, model

MORE = ["▁", "▁▁", "a▁b", " ▁", "-", "--", "a-b", "«»", "x=1;", "_", "<s>", "1 2", "\x04", "日本-語", "  12ab!! "]
BEHAVIORS = ["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"]


def characters(drop=(), **more):
    """A model of characters, of which some are missing."""
    merges = [("h", "e"), ("l", "l"), ("▁", "h"), ("▁", "▁"), ("1", "2"), ("-", "-"), ("a", "1")]
    chars = dict.fromkeys(c for c in "".join(a + b for a, b in merges) + "".join(PARTS + MORE) if c not in drop)
    pieces = ["<unk>", *([f"<0x{b:02X}>" for b in range(256)] if "byte_fallback" in more else []), *chars, *[a + b for a, b in merges]]
    return models.BPE({p: i for i, p in enumerate(dict.fromkeys(pieces))}, merges, **more)


def cases():
    p = pre_tokenizers
    for behavior in BEHAVIORS:
        yield f"punctuation {behavior}", characters(), None, p.Punctuation(behavior)
        for invert in (False, True):
            yield f"split {behavior} {invert}", characters(), None, p.Split(Regex(r"\d+|-"), behavior, invert)
            yield f"split text {behavior} {invert}", characters(), None, p.Split("▁", behavior, invert)
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"metaspace {scheme} {split}", characters(), None, p.Metaspace(prepend_scheme=scheme, split=split)
            if split:
                yield f"fields, metaspace {scheme}", characters(), None, p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme=scheme, split=split)])
    for individual in (True, False):
        yield f"digits {individual}", characters(), None, p.Digits(individual)
    yield "whitespace", characters(), None, p.Whitespace()
    yield "fields", characters(), None, p.WhitespaceSplit()
    yield "delimiter", characters(), None, p.CharDelimiterSplit("-")
    yield "bert", characters(), None, p.BertPreTokenizer()
    yield "none", characters(), None, None
    yield "bytes with a space", model(), None, p.ByteLevel(add_prefix_space=True)
    yield "digits, bytes with spaces", model(), None, p.Sequence([p.Digits(True), p.ByteLevel(add_prefix_space=True)])
    yield "bytes alone", model(), None, p.ByteLevel(add_prefix_space=False, use_regex=False)
    yield "prepend", characters(), normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None
    yield "replace", characters(), normalizers.Replace(Regex(r"(?<=\d)-?(?=\d)|l+"), "1"), None
    for missing in ("", "é", "éI字漢"):
        for fuse in (True, False):
            for unk in ({}, {"unk_token": "<unk>"}):
                yield f"lacks {missing} {fuse} {unk}", characters(missing, fuse_unk=fuse, **unk), None, None
    yield "byte fallback", characters("é字漢", byte_fallback=True, unk_token="<unk>", fuse_unk=True), None, None
    lacking = json.loads(model().__getstate__())
    for symbol in "Ą¿ĠÃ":
        lacking["vocab"].pop(symbol, None)
    lacking["merges"] = [m for m in lacking["merges"] if not set("".join(m)) & set("Ą¿ĠÃ")]
    for unk in ({}, {"unk_token": "!"}):
        yield f"bytes lacking {unk}", models.BPE(lacking["vocab"], [tuple(m) for m in lacking["merges"]], **unk), None, p.ByteLevel(add_prefix_space=False)


def main():
    rng = random.Random(5)
    parts = PARTS + MORE
    texts = ["", *["".join(rng.choice(parts) for _ in range(rng.randrange(1, 9))) for _ in range(30)]]
    out = []
    for name, of, normalizer, steps in cases():
        t = Tokenizer(of)
        if normalizer is not None:
            t.normalizer = normalizer
        if steps is not None:
            t.pre_tokenizer = steps
        out.append({"name": name, "tokenizer": json.loads(t.to_str()), "texts": texts, "ids": [t.encode(x).ids for x in texts]})
    with open(sys.argv[1], "w") as f:
        json.dump({"Cases": out}, f, ensure_ascii=True, separators=(",", ":"))


main()
