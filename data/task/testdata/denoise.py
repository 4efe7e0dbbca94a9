"""Writes denoise.json: what self-pretraining makes of documents, by the definition of
"Federated Document Visual Question Answering: A Pilot Study" (section 3.3), written down
once more and without Starling. The selection M is injected.

    python3 denoise.py > denoise.json

TM   in  <text_l> <loc x0> <loc y0> <loc x1> <loc y1>   out  <text_l> t
LM   in  <layout_l> t </layout_l>                       out  <layout_l> <loc x0> <loc y0> <loc x1> <loc y1>
TLM  in  <text_layout_l>                                out  <text_layout_l> t <loc x0> <loc y0> <loc x1> <loc y1>

All of these tokens have the box 0, so that no place stands there that is asked for. Of a
coordinate c in [0, 1], <loc_k> has k = round(500 c), halves up. Behind what is read and what
is written stands the end, 1; the rest is padding, 0, left out here. A document that became too long is cut
before the first token, or hidden token, that has no room beside the end.
"""
import json
import math
import random

END, START = 1, 0
TEXT, LAYOUT, CLOSE, BOTH, LOC = 1000, 1100, 1200, 1300, 1400  # 100, 100, 100, 100 and 501 ids


def loc(box):
    return [LOC + math.floor(500 * (c / 1000) + 0.5) for c in box]


def hide(task, l, token, box):
    if task == "TM":
        return [TEXT + l] + loc(box), [TEXT + l, token]
    if task == "LM":
        return [LAYOUT + l, token, CLOSE + l], [LAYOUT + l] + loc(box)
    return [BOTH + l], [BOTH + l, token] + loc(box)


def example(task, tokens, boxes, hidden, sequence, written):
    source, target = [], []
    l = 0
    for i, token in enumerate(tokens):
        if i in hidden:
            read, said = hide(task, l, token, boxes[i])
            read = [(t, [0, 0, 0, 0]) for t in read]
            l += 1
        else:
            read, said = [(token, boxes[i])], []
        if len(source) + len(read) > sequence - 1:
            break
        source += read
        target += said
    return {
        "tokens": [t for t, _ in source] + [END],
        "boxes": [b for _, b in source] + [[0, 0, 0, 0]],
        "decoder_tokens": ([START] + target + [END])[:written],
        "labels": target + [END],
    }


def main():
    rng = random.Random(27)
    out = []
    for n in range(21):
        task = ["TM", "LM", "TLM"][n % 3]
        share = {"TM": 0.5, "LM": 0.75, "TLM": 0.15}[task]
        length = [1, 7, 40, 60, 140][n % 5]
        tokens = [rng.randrange(2, 1000) for _ in range(length)]
        boxes = []
        for _ in tokens:
            x, y = sorted(rng.sample(range(1001), 2)), sorted(rng.sample(range(1001), 2))
            boxes.append([x[0], y[0], x[1], y[1]])
        hidden = [i for i in range(length) if rng.random() < share] or [0]
        hidden = sorted(rng.sample(hidden, min(len(hidden), 100)))
        sequence, written = [(256, 640), (64, 640)][n % 2]
        case = {"objective": task, "ids": tokens, "places": boxes, "hidden": hidden, "sequence": sequence, "answer": written}
        case["want"] = example(task, tokens, boxes, set(hidden), sequence, written)
        out.append(case)
    print("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in out) + "]")


main()
