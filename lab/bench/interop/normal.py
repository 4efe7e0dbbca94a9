"""Normalizers of Unicode and tokens that were added for texts, against tokenizers. Run by hand it writes
data/tokenizer/testdata/normal.json, to which Go's tests hold Starling where there are no tokenizers: python normal.py FILE"""

import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ["ab", "taxi", "Taxi", "cab", "TAXI", "re\u0301sume\u0301", "résumé", "Ångström", "A\u030angstro\u0308m", "ﬁne", "ＡＢ", "①", "½", "İstanbul", "ﷺ", "각",
         "\u1112\u1161\u11ab", "漢字", "字", "日本taxi", "q\u0323\u0307", "q\u0307\u0323", "é", "e\u0301", "ẛ̣", "ǆ", "don't", "x-y", "new york", "new  york", "<v1>", "<v1>x",
         "NEW", "\u00a0", "\u3000", "\u200b", "\x07", "\x0b", "\x85", "ß", "_", "__taxi", "taxi_", "9taxi", "taxis", "a\u0301taxi", "Ω", "㎏", "हिन्दी", "عَر", "🙂", "taxi🙂"]
SPACES = [" ", " ", " ", "  ", "", "", "\t", "\n", "\u00a0"]


def texts(n, seed):
    rng = random.Random(seed)
    return ["", " ", "taxi", " taxi ", "\t<v1>\n", *WORDS] + ["".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randrange(9))) for _ in range(n)]


ALPHABET = sorted({c for w in WORDS for c in w if c.strip()} | set("abcdefghijklmnopqrstuvwxyzNEWTAXI'-<>1"))
ADDED = [AddedToken("taxi"), AddedToken("new york", single_word=True), AddedToken("<v1>", normalized=False), AddedToken("résumé", lstrip=True),
         AddedToken("漢字", rstrip=True, normalized=False), AddedToken("tax", single_word=True, normalized=False), AddedToken("TAXI", rstrip=True, lstrip=True, normalized=False)]


def wordpiece(normalizer, added=()):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "taxi", "tax", "##is", "ta", "##xi", "new", "york", "istanbul", "İstanbul"]
    pieces += [p for c in ALPHABET for p in (c, "##" + c)]
    tok = Tokenizer(models.WordPiece({p: i for i, p in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]"))
    tok.normalizer, tok.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tok.add_special_tokens(pieces[:5])
    tok.add_tokens(list(added))
    return tok


def bpe(normalizer, added=(), prefix=False):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "a"), ("x", "i"), ("ta", "xi"), ("Ġ", "taxi"), ("n", "e"), ("Ã", "©")]
    vocab = {p: i for i, p in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet, *[a + b for a, b in merges]])}
    tok = Tokenizer(models.BPE(vocab, merges))
    tok.normalizer, tok.pre_tokenizer = normalizer, pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tok.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    tok.add_tokens(list(added))
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=prefix)
    return tok


def unigram(normalizer, added=(), before=None):
    pieces = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0), ("<s>", 0.0), ("</s>", 0.0), ("\u2581", -2.0), ("\u2581taxi", -3.0), ("taxi", -4.5),
              ("xi", -3.5), ("\u2581new", -4.0), ("york", -4.0), ("漢a", -7.0)] + [(c, -5.0 - i / 16) for i, c in enumerate(ALPHABET) if c not in "漢ß"]
    tok = Tokenizer(models.Unigram(list(dict(pieces).items()), unk_id=3))
    tok.normalizer = normalizer
    tok.pre_tokenizer = before or pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tok.add_special_tokens(["<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED", "<s>", "<pad>", "</s>", "<unk>"])
    tok.add_tokens(list(added))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 5), ("</s>", 6)])
    return tok


def cases():
    n = normalizers
    bert = n.BertNormalizer
    for lower in (False, True):
        for strip in (None, False, True):
            yield f"BERT, lower case {lower}, strip_accents {strip}", wordpiece(bert(lowercase=lower, strip_accents=strip))
    yield "BERT, unclean", wordpiece(bert(lowercase=True, clean_text=False))
    yield "BERT, ideographs within words", wordpiece(bert(lowercase=False, handle_chinese_chars=False))
    yield "WordPiece, NFKC and BERT", wordpiece(n.Sequence([n.NFKC(), bert(lowercase=False)]))
    yield "WordPiece, NFC alone", wordpiece(n.NFC())
    yield "WordPiece, NFD, lower case, no accents", wordpiece(n.Sequence([n.NFD(), n.Lowercase(), n.StripAccents()]))
    yield "WordPiece, none", wordpiece(None)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield f"BPE, {form}", bpe(getattr(n, form)())
        yield f"Unigram, {form}", unigram(getattr(n, form)())
    yield "BPE, NFKC, lower case, no accents", bpe(n.Sequence([n.NFKC(), n.Lowercase(), n.StripAccents()]), prefix=True)
    yield "Unigram, NFKD, no accents, lower case", unigram(n.Sequence([n.NFKD(), n.StripAccents(), n.Lowercase(), n.Replace(Regex(" {2,}"), " ")]))
    yield "Unigram, none, its special pieces score worst", unigram(None)
    meta = pre_tokenizers.Metaspace
    for name, tok in (("BERT", wordpiece(bert(), ADDED)), ("BERT, cased", wordpiece(bert(lowercase=False), ADDED)), ("WordPiece, NFKC", wordpiece(n.NFKC(), ADDED)),
                      ("BPE", bpe(None, ADDED)), ("BPE, NFKC, prefix", bpe(n.NFKC(), ADDED, prefix=True)), ("Unigram", unigram(None, ADDED)),
                      ("Unigram, NFKC", unigram(n.NFKC(), ADDED)), ("Unigram, the first alone", unigram(n.Lowercase(), ADDED, meta(prepend_scheme="first"))),
                      ("Unigram, unsplit", unigram(None, ADDED, meta(prepend_scheme="never", split=False)))):
        yield f"added tokens: {name}", tok


SPELLED = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<extra_id_0>", "<extra_id_1>", "<unk><unk>", "<unk>🙂", "🙂<unk>", "<unk", "</s", "<0x41>", "a", "taxi", "new york", "Ω🙂", "🙂"]


def published(name, pieces, behind, ordinary=(), before=None, fallback=False):
    """A file as T5's or XLM-R's is: special tokens are pieces of the model, which tokenizers makes of a text even where it is told to
    leave special tokens alone. Those in ordinary are marked as ordinary."""
    pieces = [(p, 0.0) for p in pieces]
    unk = [p for p, _ in pieces].index("<unk>")
    if fallback:
        pieces += [(f"<0x{b:02X}>", 0.0) for b in range(256)]
    pieces += [("\u2581", -2.0), ("\u2581taxi", -3.0), ("taxi", -4.5), ("\u2581new", -4.0), ("york", -4.0)] + [(c, -5.0 - i / 16) for i, c in enumerate("atxinewyork</s>up0")]
    tok = Tokenizer(models.Unigram(list(dict(pieces).items()), unk_id=unk, byte_fallback=fallback))
    tok.pre_tokenizer = before or pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    special = [t for t in ("<s>", "<pad>", "</s>", "<unk>", *behind) if t not in ordinary and (t in behind or t in dict(pieces))]
    tok.add_special_tokens(special)
    tok.add_tokens([AddedToken(t, normalized=False) for t in ordinary])
    return name, tok


def spelled():
    t5, xlmr = ["<pad>", "</s>", "<unk>"], ["<s>", "<pad>", "</s>", "<unk>"]
    yield published("special tokens in texts: T5", t5, ["<extra_id_1>", "<extra_id_0>"])
    yield published("special tokens in texts: T5, sentinels in the model", [*t5, "<extra_id_0>", "<extra_id_1>"], [])
    yield published("special tokens in texts: XLM-R", xlmr, ["<mask>"])
    yield published("ordinary tokens: T5", t5, ["<extra_id_0>"], ["</s>", "<unk>"])
    yield published("ordinary tokens: XLM-R", xlmr, [], ["<s>", "<unk>", "</s>", "<mask>"])
    yield published("special tokens in texts: whole, bytes", xlmr, [], before=pre_tokenizers.Metaspace(split=False), fallback=True)
    yield published("ordinary tokens: whole, bytes", xlmr, ["<mask>"], ["<unk>"], before=pre_tokenizers.Metaspace(prepend_scheme="first"), fallback=True)


def spellings(n, seed):
    rng = random.Random(seed)
    return SPELLED + ["".join(rng.choice(SPELLED) + rng.choice(SPACES) for _ in range(rng.randrange(9))) for _ in range(n)]


def wanted(tok, lines):
    """Special tokens are left alone, but for those that a model makes."""
    tok.encode_special_tokens = True
    return [tok.encode(t, add_special_tokens=False).ids for t in lines]


def check_all(s, work, only):
    import check
    import pieces

    if not "normal".startswith(only):
        return
    for name, tok, lines in [(*c, texts(3000, 2)) for c in cases()] + [(*c, spellings(3000, 2)) for c in spelled()]:
        path = os.path.join(work, "normal.json")
        tok.save(path)
        pieces.differ(s, "normal", name, path, wanted(tok, lines), lines)


if __name__ == "__main__":
    made = []
    for name, tok, lines in [(*c, texts(12, i)) for i, c in enumerate(cases())] + [(*c, spellings(40, i)) for i, c in enumerate(spelled())]:
        made.append({"name": name, "tokenizer": json.loads(tok.to_str()), "texts": lines, "ids": wanted(tok, lines)})
    with open(sys.argv[1], "w") as f:
        f.write('{"source": "tokenizers 0.23.3, by lab/bench/interop/normal.py", "cases": [\n' + ",\n".join(json.dumps(m, ensure_ascii=True, separators=(",", ":")) for m in made) + "\n]}\n")
