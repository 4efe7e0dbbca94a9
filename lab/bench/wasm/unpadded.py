"""The table of unpadded.sh: the least processor time of a step, engine by engine, and the goals."""

import json
import sys

names = {"tiny": "2 x 128, 8 x 64 tokens", "small": "4 x 512, 8 x 64 tokens", "minilm": "6 x 384 (MiniLM), 8 x 128 tokens",
         "vit": "ViT 12 x 384, 4 images of 196 patches", "t5": "T5-small, 4 x 256 tokens, answers of 16",
         "smollm2 b1": "30 x 576 (SmolLM2-135M), 256 tokens", "smollm2 b4": "30 x 576 (SmolLM2-135M), 4 x 256 tokens",
         "base": "12 x 768, 8 x 64 tokens"}
goals = {"tiny": (1.3, 1.0), "small": (1.7, 1.0), "smollm2 b1": (1.6, 1.0), "smollm2 b4": (1.6, 1.0)}  # exact and fused, of PyTorch's time
best, losses = {}, {}
for line in open(sys.argv[1]):
    r = json.loads(line)
    kind = r["name"].split("-")[0]
    if kind == "smollm2":
        kind += " " + r["name"].split("-")[2]
    engine = r["engine"]
    if engine.startswith("torch"):
        engine = "SDPA" if "SDPA" in engine else "eager"
    best.setdefault(kind, {}).setdefault(engine, []).append(r["cpu_ms"])
    if not engine.startswith("program"):  # a program's is its last step's
        losses.setdefault(kind, []).append(r["outputs"]["loss"][0])
print("| step | exact | fused | PyTorch, eager | PyTorch, SDPA | exact of the faster PyTorch | fused of it | goal, exact and fused | holds |")
print("|" + " --- |" * 9)
for kind, of in best.items():
    exact, fused, eager, sdpa = (min(of[e]) for e in ("program", "program.fused", "eager", "SDPA"))
    peer = min(eager, sdpa)
    goal, holds = "none set", "-"
    if kind in goals:
        a, b = goals[kind]
        goal = f"{a:.1f}, {b:.1f}"
        holds = " and ".join(f"{c}: {'yes' if v <= g else 'NO'}" for c, v, g in (("exact", exact / peer, a), ("fused", fused / peer, b)))
    print(f"| {names[kind]} | {exact:.0f} ms | {fused:.0f} ms | {eager:.0f} ms | {sdpa:.0f} ms | {exact / peer:.2f} | {fused / peer:.2f} | {goal} | {holds} |")
spread = max(max(l) - min(l) for l in losses.values())
if spread > 1e-4:
    sys.exit(f"the engines compute different things: losses of the first step differ by {spread:.2g}")
print(f"\nThe first step's losses, the program's and PyTorch's, differ by at most {spread:.1g}.")
