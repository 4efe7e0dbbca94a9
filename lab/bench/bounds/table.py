"""The table of run.sh: a name and a run's JSON a line in; the largest share of each bound that a start reached out."""

import json
import sys

KEYS = ["a", "b", "head", "bias", "whole", "modules"]
SCALED = 0.949  # to which an honest coordinator takes a tensor back

print("| base | rounds | device-rounds | " + " | ".join(f"`bounds.{k}`" for k in KEYS) + " | scaled back | accuracy |")
print("| --- " * (5 + len(KEYS)) + "|")
failed = False
for line in sys.stdin:
    name, record = line.split("\t", 1)
    run = json.loads(record)
    rounds = run["rounds"]
    reached = {k: max(r.get("reach", {}).get(k, 0) for r in rounds) for k in KEYS}
    scaled = sum(max(r["reach"].values()) > SCALED for r in rounds)
    failed |= scaled > 0
    row = [name, str(len(rounds)), f"{sum(r['cohort'] for r in rounds):,}"]
    row += [f"{100 * reached[k]:.0f} %" if reached[k] else "–" for k in KEYS]
    row += [str(scaled), f"{100 * run['accuracy']:.1f} %"]
    print("| " + " | ".join(row) + " |")
sys.exit(1 if failed else 0)
