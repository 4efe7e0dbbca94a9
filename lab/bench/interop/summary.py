"""Write docs/INTEROP.md's table from docs/results/interop.csv: one row for each kind of case.

    python3 lab/bench/interop/summary.py docs/results/interop.csv
"""
import csv
import re
import sys

# kinds are what the names of cases begin with, the first that fits; and what was checked there.
kinds = [
    (r"tokenizers|sentencepiece|spiece|unigram", "tokenizers: WordPiece, byte-level BPE, SentencePiece unigram and BPE", "ids, text by text"),
    (r"tag-|span-|masked-|multilabel-", "encoders for tags, spans, masked words, several labels", "logits, losses, gradients, adapters both ways"),
    (r"bert|roberta|distilbert|xlm|camembert|minilm|older|case", "encoders for classes: BERT, RoBERTa, DistilBERT, XLM-R, CamemBERT, MiniLM", "logits, gradients of LoRA, BitFit and everything, adapters both ways"),
    (r"vit|pictures", "vision transformers", "logits, gradients, adapters both ways, pictures as tensors"),
    (r"t5", "T5, with boxes and patches", "losses, gradients, answers, adapters both ways"),
    (r"strange|targets|normal", "unusual configurations, targets and normalizers", "the same, or the same refusal"),
    (r"", "Starling's own bases", "exports read by transformers"),
]


def main():
    rows = list(csv.reader(open(sys.argv[1], newline="")))[1:]
    print("| kind | compared | checks | failed | worst |\n| --- | --- | --- | --- | --- |")
    for i, (pattern, kind, compared) in enumerate(kinds):
        mine = [r for r in rows if next(j for j, k in enumerate(kinds) if re.match(k[0], r[0])) == i]
        worst = max((float(r[2]) for r in mine if re.fullmatch(r"[0-9.]+e-?[0-9]+", r[2])), default=0)
        print(f"| {kind} | {compared} | {len(mine)} | {sum(r[3] != 'ok' for r in mine)} | {f'{worst:.1e}' if worst else 0} |")


if __name__ == "__main__":
    main()
