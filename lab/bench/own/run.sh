#!/bin/sh
# What devices' own noise costs in accuracy: R8 for a simulated million of clients of whom 1 %
# are drawn, at a simulated epsilon of 2, with central noise and with the noise that 10,000
# drawn devices of own_noise .05 and .1 come to. Their sum is made of as many shares as the
# largest cohort has, 10,553, so that a scaled simulation has it as central noise of the
# multiplier v*sqrt(10553); see docs/PRIVACY.md, section 14.
#
#   sh lab/bench/own/run.sh
#   BASE=DIR      folder of another base (default: the embedded one); ROUNDS=60, FLAGS= for more of simulate
#   SEEDS=5       runs of each, with seeds from 1
#   OUT=DIR       where runs lie: an interrupted one goes on
#
# Some 30 seconds a run of two cores with the embedded base, five minutes with MiniLM.
set -eu
cd "$(dirname "$0")/../../.."
data=${R8:-../shared/data/r8/R8.train.txt.gz}
[ -f "$data" ] || { echo "lab/bench/own: skipped, there is no $data" >&2; exit 0; }
out=${OUT:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/own}
mkdir -p "$out"
make -s build >&2
for seed in $(seq "${SEEDS:-5}"); do
	for v in 0 .05 .1; do
		noise=$(awk -v v="$v" 'BEGIN { if (v > 0) printf "--set privacy.noise_multiplier=%.4g", v * sqrt(10553) }')
		printf '%s\t' "$v"
		# shellcheck disable=SC2086 # several words, or none
		bin/starling simulate --json ${BASE:+--base "$BASE"} --data "$data" --population 1000000 --cohort 28 --examples 183 \
			--every 5 --validation 160 --rounds "${ROUNDS:-60}" --seed "$seed" --set adapter.sequence=64 --set training.batch=4 \
			--set training.steps=6 --set server.momentum=0.8 ${FLAGS:-} $noise --out "$out"
	done
done | python3 lab/bench/own/table.py
