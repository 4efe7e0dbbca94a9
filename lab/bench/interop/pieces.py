"""SentencePiece's own files against sentencepiece, and Unigram models in tokenizer.json against tokenizers: many
scripts, emoji, combining marks, control characters, and scores so round that ties decide."""

import json
import os
import random
import shutil

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

import check

LINES = ["the company said quarterly profit rose 8.5 pct to 1.2 mln dlrs, don't stop; it's 3:30 pm",
         "Łódź café naïve résumé Ångström über alles — „Straße“ «où» ¿qué? İstanbul Ağrı žluťoučký kůň",
         "日本語のテキストと漢字、ｶﾀｶﾅ。 中文文本，全角ＡＢＣ１２３ 한국어 텍스트 각", "русский текст и українська мова ёж Ѐ ελληνικά Ά ϐ ᾀ",
         "العربية نَصّ ﻻ ﷺ فارسی عِبְרִית עברית हिन्दी क्षत्रिय தமிழ் ไทย น้ำ ພາສາ မြန်မာ ខ្មែរ",
         "👍🏽 👩‍👩‍👧‍👦 🇩🇪 ☺️ ♥ ① Ⅷ ½ ㎏ ﬁ ﬃ ™ x² H₂O ℕ ½½ …"]
ODD = ["e\u0301", "a\u0308\u0301", "\u0301", "q\u0323\u0307", "\u1100\u1161\u11a8", "각", "\u200b", "\u200d", "\u200c", "\u00ad", "\ufeff",
       "\ufffd", "\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\x85", "\u2028", "\u3000", "\u00a0", "\u2003", "\u180e", "\ue000", "\U000e0041",
       "\ufe0f", "\u20e3", "1\ufe0f\u20e3", "ﬁ\u0301", "①\u0308", "ﷺ", "\u0344", "Ω", "K", "ʼn", "ſ", "ẛ̣", "<unk>", "</s>", "<pad>", "<s>", "<0x41>",
       "<extra_id_0>", "<sep>", "[x]", "\u2581", "\u2581\u2581", "_", "gg", "ggg", "aaaa", "abab", "0000", "\U0001f468\u200d\U0001f4bb", "𝒜", "𐍈", "ﬀ", "ǆ"]


def texts(n, seed=3):
    rng = random.Random(seed)
    words = " ".join(LINES).split() + ODD * 2
    spaces = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "", "", ""]
    out = ["", " ", "  \t ", "\u200b", "\u2581", *LINES, *ODD]
    for _ in range(n):
        out.append("".join(rng.choice(words) + rng.choice(spaces) for _ in range(rng.randrange(9))))
        out.append(rng.choice(spaces) + "".join(rng.choice("gaub01 e\u0301漢") for _ in range(rng.randrange(24))))
        out.append("".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xa0, 0x600), rng.randrange(0x900, 0xd7ff),
                                           rng.randrange(0x1f300, 0x1faff)])) for _ in range(rng.randrange(12))))
    return out


def train(folder, name, vocab=500, round_to=None, edit=None, lines=None, **options):
    """A model of LINES or of the lines given: its path, and what it holds."""
    corpus = os.path.join(folder, "lines.txt")
    with open(corpus, "w") as f:
        f.write("\n".join((lines or LINES + check.CORPUS[:6]) * 20))
    prefix = os.path.join(folder, name)
    spec = dict(vocab_size=vocab, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=2, character_coverage=0.98)
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, **{**spec, **options})
    path = prefix + ".model"
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(path, "rb").read())
    for p in proto.pieces if round_to else []:
        p.score = round(p.score / round_to) * round_to
    if edit:
        edit(proto)
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())
    return path, proto


def unused(proto):
    for i, p in enumerate(proto.pieces):
        if p.type == 1 and i % 7 == 0:
            p.type = 5


def unescaped(proto):
    proto.normalizer_spec.escape_whitespaces = False
    for p in proto.pieces:
        p.piece = p.piece.replace("\u2581", " ")


def differ(s, case, what, path, want, lines):
    got = s.ask(op="ids", base=path, texts=lines)
    wrong = [(t, g, w) for t, g, w in zip(lines, got, want, strict=True) if g != w]
    check.report(case, f"{what}: texts of {len(lines)} whose ids differ{': ' + repr(wrong[0]) if wrong else ''}", len(wrong), 0)


def check_files(s, work, lines):
    """SentencePiece's own files."""
    for name, options in {
        "plain": {}, "ties": dict(round_to=0.5), "thirds": dict(round_to=1 / 3), "byte_fallback": dict(byte_fallback=True, vocab=600),
        "user-defined": dict(user_defined_symbols=["<sep>", "[x]", "ab", "gg", "漢"], control_symbols=["<ctl>"]),
        "user-defined and ties": dict(user_defined_symbols=["<sep>", "a", "\u2581the", "gg"], round_to=0.5, byte_fallback=True, vocab=600),
        "suffix": dict(treat_whitespace_as_suffix=True), "all spaces": dict(remove_extra_whitespaces=False),
        "no prefix": dict(add_dummy_prefix=False), "no prefix, all spaces": dict(add_dummy_prefix=False, remove_extra_whitespaces=False),
        "suffix, all spaces": dict(treat_whitespace_as_suffix=True, remove_extra_whitespaces=False),
        "identity": dict(normalization_rule_name="identity"), "nfkc_cf": dict(normalization_rule_name="nfkc_cf"),
        "pieces across words": dict(split_by_whitespace=False, max_sentencepiece_length=24), "unused pieces": dict(edit=unused),
        "spaces as they are": dict(edit=unescaped),
    }.items():
        path, _ = train(work, "spm-" + name.replace(" ", "-"), **options)
        there = sentencepiece.SentencePieceProcessor(model_file=path)
        differ(s, "sentencepiece", name, path, [there.encode(t) for t in lines], lines)


def check_json(s, work, lines):
    """The same models as tokenizer.json, which tokenizers rounds, parts and normalizes in its own way."""
    meta, fields = pre_tokenizers.Metaspace, pre_tokenizers.WhitespaceSplit
    squeeze = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")]
    for name, options, rules, before in [
        ("T5's", {}, [], pre_tokenizers.Sequence([fields(), meta()])), ("with ties", dict(round_to=0.5), [], pre_tokenizers.Sequence([fields(), meta()])),
        ("Metaspace alone", {}, [], meta()), ("Strip and Replace", {}, squeeze, meta(prepend_scheme="first")),
        ("never a prefix", {}, [], meta(prepend_scheme="never")), ("unsplit", dict(split_by_whitespace=False), squeeze, meta(split=False)),
        ("byte_fallback", dict(byte_fallback=True, vocab=600), [], pre_tokenizers.Sequence([fields(), meta()])),
        ("without a map", dict(normalization_rule_name="identity"), None, pre_tokenizers.Sequence([fields(), meta()])),
    ]:
        _, proto = train(work, "json", **options)
        tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=2, byte_fallback=proto.trainer_spec.byte_fallback))
        if rules is not None:
            tok.normalizer = normalizers.Sequence([normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), *rules])
        tok.pre_tokenizer = before
        path = os.path.join(work, "unigram.json")
        # Text becomes special tokens there, never here: the names are added only for us.
        want = [tok.encode(t, add_special_tokens=False).ids for t in lines]
        tok.add_special_tokens(["<pad>", "</s>", "<unk>"])
        tok.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        tok.save(path)
        differ(s, "unigram", name, path, want, lines)


def check_folder(s, work, lines):
    """A T5 whose folder has spiece.model and no tokenizer.json, as it comes, as a base and as it is exported."""
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    for name, options, extra in (("spiece", {}, None), ("spiece-few", {}, 7), ("spiece-bytes", dict(byte_fallback=True, vocab=600, user_defined_symbols=["<sep>", "gg"]), 0)):
        folder, own, out = (os.path.join(work, name + end) for end in ("", "-own", "-out"))
        os.makedirs(folder)
        path, proto = train(work, name + "-model", **options)
        there = sentencepiece.SentencePieceProcessor(model_file=path)
        pieces = len(proto.pieces)
        T5ForConditionalGeneration(T5Config(vocab_size=pieces + 128, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0)).save_pretrained(folder)
        shutil.copy(path, os.path.join(folder, "spiece.model"))
        if extra is not None:
            json.dump({"tokenizer_class": "T5Tokenizer", "extra_ids": extra}, open(os.path.join(folder, "tokenizer_config.json"), "w"))
        s.run("import", "--base", folder, "--sequence", "16", "--out", own)
        s.run("export", "--checkpoint", own, "--rank", "1", "--format", "merged", "--out", out)
        differ(s, name, "spiece.model alone", os.path.join(own, "base"), [there.encode(t) for t in lines], lines)
        same = open(os.path.join(out, "spiece.model"), "rb").read() == open(path, "rb").read()
        check.report(name, "spiece.model that an export changes", int(not same), 0)
        before, after = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(out)
        wrong = sum(before(t).input_ids != after(t).input_ids for t in lines)
        check.report(name, f"texts of {len(lines)} whose ids differ in transformers after the export", wrong, 0)
        n = 100 if extra is None else extra
        ids = [t.convert_tokens_to_ids(f"<extra_id_{i}>") for t in (before, after) for i in range(n)]
        check.report(name, "sentinels of transformers that lie elsewhere", sum(i != pieces + n - 1 - k % n for k, i in enumerate(ids)), 0)


def check_all(s, work, only):
    lines = texts(1200) + [" ".join(LINES) * 400]  # behind whose score float32 has no digits left
    if "spiece".startswith(only):
        check_folder(s, work, lines)
    if "sentencepiece".startswith(only):
        check_files(s, work, lines)
    if "unigram".startswith(only):
        check_json(s, work, [t for t in lines if not any(x in t for x in ("<pad>", "</s>", "<unk>"))])
