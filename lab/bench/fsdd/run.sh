#!/bin/sh
# Spoken digits of a speaker whom nobody trained on (FSDD, six speakers, one left out at a time): a small base that has
# heard generated voices alone (base.sh), trained whole or adapted by LoRA on the other five speakers' recordings, in one
# place and as a federation of a million devices at a simulated epsilon of 2. Each device holds what one of the five said.
# Prints a table. The base, the clip norm and the rounds of the runs of all values were chosen by models of four speakers
# on the two that they left out (jackson and nicolas; george and lucas).
#
#   sh lab/bench/fsdd/run.sh
#   FSDD=FILE     the archive (default: ../shared/data/fsdd/fsdd_subset.tar.gz)
#   BASE=DIR      the base (default: made here by base.sh, once, into the user's cache; needs espeak-ng and flite)
#   OUT=DIR       where runs lie, a folder for each: an interrupted one goes on
#   SEEDS=1       runs of each speaker left out: draws, noise and order differ
set -eu

cd "$(dirname "$0")/../../.."
data=${FSDD:-../shared/data/fsdd/fsdd_subset.tar.gz}
[ -f "$data" ] || { echo "lab/bench/fsdd: skipped, there is no $data" >&2; exit 0; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/starling/fsdd
mkdir -p "$cache"
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$cache/starling" ./cmd/starling
base=${BASE:-$cache/base}
[ -f "$base/config.json" ] || STARLING=$cache/starling sh lab/bench/fsdd/base.sh "$base" >&2
speakers=$(python3 lab/bench/fsdd/folds.py "$data" "$cache/folds")
out=${OUT:-$cache/runs}
run() { # name, partition, flags
	name=$1 partition=$2
	shift 2
	for seed in $(seq "${SEEDS:-1}"); do
		for who in $speakers; do
			echo "lab/bench/fsdd: $name, without $who, seed $seed" >&2
			printf '%s\t%s\t' "$name" "$who"
			"$cache/starling" simulate --json --base "$base" --data "$cache/folds/train-$who.jsonl" \
				--test "$cache/folds/test-$who.jsonl" --partition "$cache/folds/$partition-$who.json" --every 0 --validation 0 \
				--seed "$seed" --set adapter.sequence=40 --set training.batch=16 --set training.arithmetic=fused \
				--set training.learning_rate=0.005 --set training.head_learning_rate=0.01 --out "$out" "$@"
		done
	done
}
{
	run "in one place, all values" central --population 2 --cohort 1 --sampling-rate 0.5 --rounds 8 --set training.steps=40 \
		--set cohort.sampling=fixed --set shard.corrupt=0 --set privacy.none=true --set adapter.method=full \
		--set training.learning_rate=0.001 --set training.head_learning_rate=0.001 --set training.end_factor=0.1 --set server.optimizer=fedavg
	run "in one place, LoRA of rank 8" central --population 2 --cohort 1 --sampling-rate 0.5 --rounds 12 --set training.steps=40 \
		--set cohort.sampling=fixed --set shard.corrupt=0 --set privacy.none=true --set adapter.rank_min=8 --set adapter.rank_max=8 \
		--set server.optimizer=fedavg
	run "federated, all values" clients --population 1000000 --cohort 28 --rounds 16 --set training.steps=4 --set training.batch=8 \
		--set privacy.clip_norm=1 --epsilon 2 --set adapter.method=full --set training.learning_rate=0.001 \
		--set training.head_learning_rate=0.001 --set training.end_factor=0.1
	run "federated, DP-DyLoRA, ranks 1 to 8" clients --population 1000000 --cohort 28 --rounds 24 --set training.steps=4 --set privacy.clip_norm=3 --epsilon 2
	run "the same without noise" clients --population 1000000 --cohort 28 --rounds 24 --set training.steps=4 --set privacy.clip_norm=3 --set privacy.none=true
} | python3 lab/bench/fsdd/table.py
