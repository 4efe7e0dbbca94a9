"""How the next token is drawn, against transformers' processors of scores. Run by hand it writes
internal/app/generation/testdata/sampling.json: python sampling.py FILE"""

import json
import sys

import torch
from transformers import LogitsProcessorList, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

g = torch.Generator().manual_seed(3)
cases = []
for i, (t, k, p, r) in enumerate([(1, 0, 1, 1), (0.5, 0, 1, 1), (1.7, 4, 1, 1), (1, 0, 0.8, 1), (0.7, 6, 0.6, 1.3), (2, 3, 0.99, 0.5), (1, 100, 0.01, 1), (1, 2, 1, 1)]):
    scores, text = torch.randn(12, generator=g) * 2, torch.randint(0, 12, (5,), generator=g)
    if i == 7:
        scores[3] = scores[8] = scores.sort(descending=True).values[1]  # as likely as the last that is kept
    made = LogitsProcessorList()
    if r != 1:
        made.append(RepetitionPenaltyLogitsProcessor(float(r)))
    made.append(TemperatureLogitsWarper(float(t)))
    if k:
        made.append(TopKLogitsWarper(k))
    if p < 1:
        made.append(TopPLogitsWarper(p))
    cases.append({"temperature": t, "top_k": k, "top_p": p, "repetition_penalty": r, "scores": scores.tolist(), "text": text.tolist(),
                  "probabilities": made(text[None], scores[None].clone()).softmax(-1)[0].tolist()})
with open(sys.argv[1], "w") as f:
    json.dump({"from": "transformers 5.23, by lab/bench/interop/sampling.py", "cases": cases}, f)
    f.write("\n")
