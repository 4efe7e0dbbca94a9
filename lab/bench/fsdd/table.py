"""Makes run.sh's table: each line in is a method's name, a tab, the speaker left out, a tab and the record that starling
simulate --json prints. A speaker's figure is the mean over the seeds; behind it stand mean, standard deviation, least
and greatest over the speakers."""

import json, statistics, sys

runs = {}
for line in sys.stdin:
    name, who, record = line.split("\t", 2)
    runs.setdefault(name, {}).setdefault(who, []).append(json.loads(record))

people = sorted({who for of in runs.values() for who in of})
print("| method | seeds | epsilon |", " | ".join(people), "| mean | standard deviation | least, greatest | kB a device-round |")
print("|" + " --- |" * (len(people) + 7))
for name, of in runs.items():
    every = [r for rs in of.values() for r in rs]
    means = {who: statistics.mean(100 * r["accuracy"] for r in rs) for who, rs in of.items()}
    spread = statistics.stdev(means.values()) if len(means) > 1 else 0
    print("|", " | ".join([
        name, str(len(every) // len(of)), f"{every[0]['epsilon']:.3g}" if every[0]["epsilon"] else "none",
        *(f"{means[w]:.1f}" if w in means else "-" for w in people), f"{statistics.mean(means.values()):.1f} %", f"{spread:.1f}",
        f"{min(means.values()):.1f}, {max(means.values()):.1f}",
        f"{statistics.mean((r['bytes_up'] + r['bytes_down']) / 1e3 for r in every):.0f}",
    ]), "|", flush=True)
