"""The table of run.sh: own noise and a run's JSON a line in, means with t intervals out."""

import json
import math
import statistics
import sys

T = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # two-sided 95 %, by the number of runs

runs = {}
for line in sys.stdin:
    v, record = line.split("\t", 1)
    runs.setdefault(v, []).append(json.loads(record))


def interval(values):
    if len(values) not in T:
        return f"{statistics.mean(values):.1f} (n = {len(values)}: no interval)"
    half = T[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    return f"{mean:.1f} ({mean - half:.1f} to {mean + half:.1f})"


print("| own noise | runs | test accuracy | minus central, paired | macro-F1 | minus central, paired | signal | noise |")
print("| --- | --- | --- | --- | --- | --- | --- | --- |")
central = runs["0"]
for v, own in runs.items():
    row = ["central" if v == "0" else f"0{v}", str(len(own))]
    for key in ("accuracy", "macro_f1"):
        row.append(interval([100 * r[key] for r in own]))
        row.append("" if v == "0" else interval([100 * (r[key] - c[key]) for r, c in zip(own, central)]))
    row += [f"{statistics.mean(r[key] for r in own):.3f}" for key in ("signal_norm", "noise_norm")]
    print("| " + " | ".join(row) + " |")
