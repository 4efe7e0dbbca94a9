"""Makes run.sh's table of the records that starling simulate --json prints, one a line."""
import json
import sys

print("| method | epsilon | test accuracy | macro-F1 | rank | validation | clipped | signal | noise | rho | kB a device-round |")
print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
for name, line in zip(["DP-DyLoRA, ranks 1 to 8", "LoRA, rank 8, next to no noise"], sys.stdin):
    r = json.loads(line)
    share = lambda key: f"{100 * r[key]:.1f} %"
    print("|", " | ".join([
        name, f"{r['epsilon']:.3g}", share("accuracy"), share("macro_f1"), str(r["rank"]), share("validation"), share("clipped"),
        f"{r['signal_norm']:.3f}", f"{r['noise_norm']:.3f}", f"{r['rho']:.3g}", f"{(r['bytes_up'] + r['bytes_down']) / 1e3:.1f}",
    ]), "|", flush=True)
