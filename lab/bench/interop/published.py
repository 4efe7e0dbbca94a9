"""Published tokenizers against tokenizers: python published.py FOLDER NAME=tokenizer.json ... writes FOLDER/NAME.json, which
STARLING_TOKENIZERS=FOLDER go test -run TestPublishedFiles ./data/tokenizer reads. 6,300 texts each: parts of many scripts put
together, characters of all of Unicode, and lines of docs/MODELS.md."""

import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

from words import PARTS

MARKS = ["<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<mask>", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "<0x41>",
         "<start_of_turn>", "<table>", "<unused3>", "[multimodal]", "<|eot_id|>", "<think>", "</think>", "<tool_call>", "<|fim_prefix|>"]
MORE = ["▁", "▁▁", "▁a", "\x01", "\x04", "\x1b", "\x7f", "\x80", "\ufffd", "\ufdfa", "ẞ", "가", "각", "①", "㍿", "ﾊﾝｶｸ", "Ａ", "\U000e0041", "İ", "ςΣ", "Straße", "naïve", "\ufeff",
        "привет", "Ж", "مرحبا", "שלום", "ไทย", "𝔘", "𐐀", "\U00031350", "\U00013460", "\u1c89", "\u0897", "HTTPServer", "camelCase", "snake_case", "#include <a.h>", "x=1;", "100,000.5",
        "def f(x):\n\treturn x\n", "fffffff", "a" * 39]


def main():
    rng = random.Random(11)
    parts = PARTS + MARKS + MORE
    texts = ["".join(rng.choice(parts) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 21, 40]))) for _ in range(4500)]
    texts += [f"a {chr(c)}{chr(c)}b" for c in rng.sample(range(1, 0x110000), 1500) if not 0xD800 <= c < 0xE000]
    texts += [x for x in (Path(__file__).parents[3] / "docs/MODELS.md").read_text().split("\n") if x][:300]
    for argument in sys.argv[2:]:
        name, path = argument.split("=")
        t = Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        t.encode_special_tokens = True
        ids = [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
        t.encode_special_tokens = False
        marked = [e.ids for e in t.encode_batch(texts[:1500], add_special_tokens=False)]
        with open(Path(sys.argv[1]) / f"{name}.json", "w") as f:
            json.dump({"Name": name, "Path": path, "Texts": texts, "IDs": ids, "Marked": marked}, f)


main()
