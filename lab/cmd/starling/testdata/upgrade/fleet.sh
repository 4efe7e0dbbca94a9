#!/bin/sh
# Makes DATE/fleet.zip: the folder of a server of two jobs over one fleet, which an earlier program ran and
# was killed in, for TestUpgradeFleet. Run it as make.sh.
#
#   sh fleet.sh /path/to/starling "the commit it was built from"
set -eu
program=$1
here=$(cd "$(dirname "$0")" && pwd)/$(date +%F)
mkdir -p "$here"
dir=$(mktemp -d)
trap 'kill -9 $running 2>/dev/null || true; rm -rf "$dir"' EXIT
running=
cd "$dir"
for name in first second; do
  cat >$name.yaml <<JOB
name: $name
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 4
adapter: {rank_min: 1, rank_max: 2, sequence: 16}
training: {steps: 2, batch: 4}
cohort: {population: 3, floor: 3}
shard: {size: 4, floor: 2, corrupt: 0, breach_bits: 0}
privacy: {epsilon: 1000000, noise_multiplier: 0.01, delta: 0.001}
deadlines: {min: 2s}
JOB
  "$program" job submit --dir state $name.yaml >/dev/null
done
"$program" lab invoices --out data --clients 3 >/dev/null 2>&1 || "$program" invoices --out data --clients 3 >/dev/null
"$program" serve --dir state --fleet-epsilon 1e9 --fleet-delta 0.01 --log text 2>serve.err &
running=$!
until [ "$(grep -c 'join with: starling join' serve.err)" -ge 2 ]; do sleep 0.2; done
tokens=$(sed -n 's/^job [a-z]*: join with: starling join \(starling2_[A-Za-z0-9_-]*\).*/\1/p' serve.err)
for i in 0 1 2; do
  # shellcheck disable=SC2086 # two tokens
  "$program" join $tokens --data data/train-$i.jsonl --identity id$i.pem --shard 2 --cache cache --accounts accounts >/dev/null 2>&1 &
  running="$running $!"
done
until [ "$(grep -c 'msg=committed' serve.err)" -ge 3 ]; do sleep 0.1; done
# As after a power cut: nothing is closed, what was written last stands in the write-ahead log.
kill -9 $running
find state -name base -prune -exec rm -rf {} + # the program's own
find state -name '*.db-shm' -delete
mkdir copy
cp -r state copy/
"$program" job ledger --json --dir copy/state >ledger.json
for name in first second; do
  "$program" privacy ledger --json copy/state/jobs/$name >$name.json
done
rm -f "$here/fleet.zip"
zip -q -9 -r "$here/fleet.zip" ledger.json first.json second.json state id0.pem id1.pem id2.pem
printf "%s\n%s\n" "$("$program" version)" "$2" >"$here/fleet-made-by.txt"
