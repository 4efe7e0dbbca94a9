"""The tables of unpadded.sh: the least processor time of a step, engine by engine, the goals, and memory."""

import json
import sys

names = {"tiny-full-b8-s64": "2 x 128, 8 x 64 tokens", "small-full-b8-s64": "4 x 512, 8 x 64 tokens",
         "minilm-full-b8-s128": "6 x 384 (MiniLM), 8 x 128 tokens", "base-full-b8-s64": "12 x 768, 8 x 64 tokens",
         "base-full-b2-s128": "12 x 768, 2 x 128 tokens", "base-full-b2-s512": "12 x 768, 2 x 512 tokens",
         "vit-full-b4-s197": "ViT 12 x 384, 4 images of 196 patches", "t5-full-b4-s256": "T5-small, 4 x 256 tokens, answers of 16",
         "smollm2-full-b1-s256": "30 x 576 (SmolLM2-135M), 256 tokens", "smollm2-full-b4-s256": "30 x 576 (SmolLM2-135M), 4 x 256 tokens",
         "smollm2-1g-b1-s256": "the same within 1,024 MiB, 256 tokens", "smollm2-2g-b4-s256": "the same within 2,048 MiB, 4 x 256 tokens",
         "smollm2-nf4-b1-s256": "30 x 576 (SmolLM2-135M) in NF4, 256 tokens", "smollm2-nf4-b4-s256": "30 x 576 (SmolLM2-135M) in NF4, 4 x 256 tokens",
         "qwen2-nf4-b1-s128": "24 x 896 (Qwen2.5-0.5B) in NF4, 128 tokens"}
goals = {"tiny-full-b8-s64": (1.3, 1.0), "small-full-b8-s64": (1.7, 1.0), "minilm-full-b8-s128": (None, 0.85), "base-full-b2-s128": (None, 0.85),
         "t5-full-b4-s256": (None, 0.9), "smollm2-full-b1-s256": (None, 1.0), "smollm2-full-b4-s256": (None, 1.0), "smollm2-1g-b1-s256": (None, 1.0), "smollm2-2g-b4-s256": (None, 1.0),
         "qwen2-nf4-b1-s128": (1.6, 1.0)}  # exact and fused, of PyTorch's time
best, losses, memory = {}, {}, {}
for line in open(sys.argv[1]):
    r = json.loads(line)
    case, engine = r["name"], r["engine"]
    peak = memory.setdefault(case, {})
    kind = "torch" if engine.startswith("torch") else "fused" if ".fused" in engine else "program"
    peak[kind] = min(peak.get(kind, 1e18), r["peak_rss_bytes"])
    if kind != "torch":
        peak["needs"] = r["memory_bytes"]
    if engine.startswith("memory"):
        continue
    if engine.startswith(("torch", "first")):  # a program's is its last step's
        losses.setdefault(case, []).append(r["outputs"]["loss"][0])
    if engine == "first":
        continue
    cores = 2 if "2 threads" in engine or engine.endswith(", 2") else 1
    column = kind if kind != "torch" else "SDPA" if "SDPA" in engine else "eager"
    best.setdefault((case, cores), {}).setdefault(column, []).append(r["cpu_ms"])
if best:
    print("| step | cores | exact | fused | PyTorch, eager | PyTorch, SDPA | exact of the faster PyTorch | fused of it | goal, exact and fused | holds |")
    print("|" + " --- |" * 10)
for (case, cores), of in best.items():
    if len(of) < 4:
        continue  # the run was stopped within its first turn
    exact, fused, eager, sdpa = (min(of[e]) for e in ("program", "fused", "eager", "SDPA"))
    peer = min(eager, sdpa)
    goal, holds = "none set", "-"
    if case in goals:
        told = [(c, v / peer, g) for c, v, g in (("exact", exact, goals[case][0]), ("fused", fused, goals[case][1])) if g]
        goal = ", ".join(f"{g}" if g else "-" for g in goals[case])
        holds = " and ".join(f"{c}: {'yes' if v <= g else 'NO'}" for c, v, g in told)
    print(f"| {names[case]} | {cores} | {exact:.0f} ms | {fused:.0f} ms | {eager:.0f} ms | {sdpa:.0f} ms | {exact / peer:.2f} | {fused / peer:.2f} | {goal} | {holds} |")
spread = max([max(l) - min(l) for l in losses.values()], default=0)
if spread > 1e-4:
    sys.exit(f"the engines compute different things: losses of the first step differ by {spread:.2g}")
if losses:
    print(f"\nThe first step's losses, the program's and PyTorch's, differ by at most {spread:.1g}.")
print("\n| step | the program's memory | its process at most | PyTorch's process at most |\n|" + " --- |" * 4)
for case, of in memory.items():
    torch = f"{of['torch'] / 1e6:.0f} MB" if "torch" in of else "not measured"
    print(f"| {names[case]} | {of['needs'] / 1e6:.0f} MB | {max(of['program'], of['fused']) / 1e6:.0f} MB | {torch} |")
