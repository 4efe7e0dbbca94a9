"""Makes run.sh's table: each line in is a case's name, the norm as a multiple of the rule's
and the record that starling simulate --json prints, between tabs. Cells are means over seeds."""
import json
import sys

runs = {}
for line in sys.stdin:
    name, times, record = line.rstrip("\n").split("\t")
    runs.setdefault((name, float(times)), []).append(json.loads(record))

print("| data, base | rounds | runs | clip norm | times the rule | clipped | signal | noise | accuracy or exact match "
      "| macro-F1 or ANLS |")
print("|" + " --- |" * 10)
for (name, times), all in sorted(runs.items()):
    def mean(key):
        return sum(r[key] for r in all) / len(all)

    def spread(key):
        values = [100 * r.get("anls" if key == "macro_f1" else key, r[key]) for r in all]
        many = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
        return f"{sum(values) / len(values):.1f}{many} %"

    first = all[0]["rounds"][0]
    print("|", " | ".join([
        name, str(len(all[0]["rounds"])), str(len(all)), f"{first['clip_norm']:.2g}", f"{times:g}", f"{100 * mean('clipped'):.0f} %",
        f"{mean('signal_norm'):.3f}", f"{mean('noise_norm'):.4f}", spread("accuracy"), spread("macro_f1"),
    ]), "|")
