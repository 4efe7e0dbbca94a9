"""How decoders' tokenizers cut texts, against tokenizers: the patterns of Llama 3, Qwen 2 and SmolLM, and byte fallback. Run by
hand it writes data/tokenizer/testdata/words.json, to which Go's tests hold Starling where there are no tokenizers: python words.py FILE"""

import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST

PARTS = ["hello", "world", "don't", "DON'T", "we'Re", "'LL", "'ſx", "'", "''s", "I'm", "x'd", "12", "1234567", "½", "²³", "Ⅷ", "٣٤", "3.14", "a1b2", "!", "...", "?!", "-", "$", "_",
         "\n", "\n\n", "\r\n", "\r", "\t", " ", " ", " ", "  ", "   ", "\u00a0", "\u3000", "\u2028", "\x85", "\x0b", "漢字", "日本", "हिन्दी", "عربي", "é", "e\u0301", "🙂", "👩‍👧", "}\n", "{\n\t", "==",
         "\x00", "\u200b", "ß", "ǅ", "ª", "\u0345"]


def texts(n, seed):
    rng = random.Random(seed)
    return ["", *PARTS] + ["".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 12))) for _ in range(n)]


def model(ignore=False):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("Ġ", "Ġ"), ("Ċ", "Ċ"), ("1", "2"), ("3", "4"), ("12", "34"), ("'", "t"), (".", "."), ("..", "."), ("Ã", "©")]
    vocab = {p: i for i, p in enumerate([*alphabet, *[a + b for a, b in merges], "world", "Ġworld"])}  # two that no merges make
    return models.BPE(vocab, merges, ignore_merges=ignore)


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def tokenizers():
    llama = Tokenizer(model(ignore=True))
    llama.pre_tokenizer = split(LLAMA)
    llama.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = llama.token_to_id("<|begin_of_text|>")
    llama.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    qwen = Tokenizer(model())
    qwen.normalizer, qwen.pre_tokenizer = normalizers.NFC(), split(QWEN)
    qwen.post_processor = processors.ByteLevel(trim_offsets=False)
    qwen.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    qwen.add_tokens([AddedToken("<tool_call>", normalized=False)])
    smol = Tokenizer(model())
    smol.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    smol.add_special_tokens(["<|endoftext|>"])
    return {"llama 3": llama, "qwen 2": qwen, "smollm": smol, "llama 2": fallback(True), "gemma": fallback(False)}


def fallback(prefix):
    """SentencePiece's BPE with byte fallback, as its conversions for Llama 2 and Gemma write it."""
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("▁", "▁"), ("▁", "hello"), ("w", "o"), ("1", "2"), (".", "."), ("\n", "\n"), ("漢", "字")]
    chars = dict.fromkeys("".join(a + b for a, b in merges) + "rdnt'xabIm3é!?")
    pieces = ["<unk>", "<s>", "</s>", *[f"<0x{b:02X}>" for b in range(256)], *chars, *[a + b for a, b in merges]]
    tok = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    if not prefix:
        tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tok.add_special_tokens(pieces[:3])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tok


def main(path):
    cases = []
    for name, tok in tokenizers().items():
        tok.encode_special_tokens = True
        given = texts(100, 7)
        framed = tok.encode("hello").ids
        special = [t.content for t in tok.get_added_tokens_decoder().values()]
        rng = random.Random(11)
        marked = ["".join(rng.choice([rng.choice(special), rng.choice(PARTS), "hello world"]) for _ in range(rng.randrange(1, 9))) for _ in range(60)]
        tok.encode_special_tokens = False
        found = [tok.encode(t, add_special_tokens=False).ids for t in marked]
        tok.encode_special_tokens = True
        cases.append({"marked": marked, "found": found, "name": name, "tokenizer": json.loads(tok.to_str()), "texts": given, "framed": framed,
                      "ids": [tok.encode(t, add_special_tokens=False).ids for t in given]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"from": "lab/bench/interop/words.py", "cases": cases}, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
