#!/bin/sh
# Makes DATE/folder.zip: the folder of a job that an earlier program ran, and was killed in, for
# TestUpgrade, beside those that are there. Run it with the program of a release before its
# successor changes what it keeps.
#
#   sh make.sh /path/to/starling "the commit it was built from"
set -eu
program=$1
here=$(cd "$(dirname "$0")" && pwd)/$(date +%F)
mkdir -p "$here"
dir=$(mktemp -d)
trap 'kill -9 $running 2>/dev/null || true; rm -rf "$dir"' EXIT
running=
cd "$dir"
cat >job.yaml <<'JOB'
name: golden
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 4
adapter: {rank_min: 1, rank_max: 2, sequence: 16}
training: {steps: 2, batch: 4}
cohort: {population: 3, floor: 3}
shard: {size: 4, floor: 2, corrupt: 0, breach_bits: 0}
privacy: {epsilon: 1000000, noise_multiplier: 0.01, delta: 0.001}
deadlines: {min: 2s}
JOB
"$program" lab invoices --out data --clients 3 >/dev/null 2>&1 || "$program" invoices --out data --clients 3 >/dev/null
"$program" serve --job job.yaml --dir state 2>serve.err &
server=$!
running=$server
until token=$(grep -o 'starling2_[A-Za-z0-9_-]*' serve.err | head -1) && [ -n "$token" ]; do sleep 0.2; done
for i in 0 1 2; do
  "$program" join "$token" --data data/train-$i.jsonl --identity id$i.pem --shard 2 --cache cache --accounts accounts >/dev/null 2>&1 &
  running="$running $!"
done
until grep -q '2/4' serve.err; do sleep 0.1; done
# As after a power cut: nothing is closed, what was written last stands in the write-ahead log.
kill -9 $running
rm -rf state/checkpoint/base state/starling.db-shm # the base is the program's own
mkdir copy
cp -r state copy/
"$program" privacy ledger --json copy/state >ledger.json
rm -f "$here/folder.zip"
zip -q -r "$here/folder.zip" job.yaml ledger.json state id0.pem id1.pem id2.pem
printf "%s\n%s\n" "$("$program" version)" "$2" >"$here/made-by.txt"
