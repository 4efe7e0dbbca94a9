"""Makes run.sh's table: each line in is a method's name, a tab and the record that starling
simulate --json prints. Where a method has several runs a cell is their mean and, in brackets,
the least and the greatest."""
import json
import sys

runs = {}
for line in sys.stdin:
    name, _, record = line.partition("\t")
    runs.setdefault(name, []).append(json.loads(record))

print("| method | runs | epsilon | test accuracy | macro-F1 | rank | validation | clipped | signal | noise | rho "
      "| kB a device-round |")
print("|" + " --- |" * 12)
for name, all in runs.items():
    def spread(value, form="{:.1f}", unit=""):
        values = [value(r) for r in all]
        mean = form.format(sum(values) / len(values))
        if len(set(values)) == 1:
            return mean + unit
        return f"{mean} ({form.format(min(values))} to {form.format(max(values))}){unit}"

    share = lambda key: spread(lambda r: 100 * r[key], unit=" %")
    print("|", " | ".join([
        name, str(len(all)), f"{all[0]['epsilon']:.3g}", share("accuracy"), share("macro_f1"),
        ", ".join(str(r["rank"]) for r in all), share("validation"), share("clipped"),
        spread(lambda r: r["signal_norm"], "{:.3f}"), spread(lambda r: r["noise_norm"], "{:.3f}"),
        spread(lambda r: r["rho"], "{:.3g}"), spread(lambda r: (r["bytes_up"] + r["bytes_down"]) / 1e3),
    ]), "|", flush=True)
