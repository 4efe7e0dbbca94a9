#!/bin/sh
# Attacks on models that were trained on some 200 of 400 generated providers, each in by a coin
# and with three documents; other documents of theirs are asked. Three trainings:
#
#   overfitted   document questions, whole fine-tuning by two silos, 64 passes, no privacy, with
#                four shadow models for the likelihood ratio
#   epsilon8     document questions, LoRA of rank 4, each provider a device, epsilon 8
#   labels       invoices by kind, whole fine-tuning by two silos, 40 passes, no privacy, with
#                eight shadow models for the likelihood ratio
#
# Writes findings as text, JSON and pages beside the runs.
#
#   sh lab/bench/audit/run.sh FOLDER [overfitted|epsilon8|labels]
#   SEED=1         of all of it
#
# Resumable: the same command goes on. Some 30 minutes of a core.
set -eu

out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/../../.."
base=$(pwd)/model/base/documents seed=${SEED:-1} starling=$out/starling
export CGO_ENABLED=0
[ -x "$starling" ] || go build -C lab -o "$starling" ./cmd/starling
[ -e "$out/labelled-train.jsonl" ] || go run -C lab ./bench/audit -out "$out" -seed "$seed"

run() { # NAME SHADOWS PREFIX FLAGS: a target, and its shadows
	name=$1 shadows=$2 prefix=$3
	shift 3
	"$starling" shadows --out "$out/$name" --data "$out/${prefix}train.jsonl" --test "$out/${prefix}test.jsonl" --seed "$seed" \
		--shadows "$shadows" --set cohort.floor=2 --set shard.corrupt=0 --set shard.floor=2 --set training.batch=8 --set training.steps=1000 "$@"
}

attack() ( # WHAT NAME PREFIX FLAGS; reports name files as they lie in the folder
	cd "$out"
	what=$1 name=$2 prefix=$3
	shift 3
	id=$(basename "$name"/target/*)
	set -- audit "$what" --checkpoint "$name/target/$id/checkpoint" --data "${prefix}queries.jsonl" \
		--in "$name/target/$id/members.json" "$@"
	"$starling" "$@" --html "$name-$what.html" >"$name-$what.txt"
	"$starling" "$@" --json >"$name-$what.json"
	cat "$name-$what.txt"
)

documents="--base $base --set adapter.sequence=104 --set adapter.answer=12"
open="--set privacy.none=true --set privacy.clip_norm=100 --set adapter.method=full --population 2"
for name in ${2:-overfitted epsilon8 labels}; do
	case $name in
	overfitted) run $name 4 "" $documents $open --rounds 8 --set training.epochs=8 --set training.learning_rate=0.004 ;;
	epsilon8) run $name 0 "" $documents --rounds 8 --set training.epochs=5 --epsilon 8 --set privacy.clip_norm=1 \
		--set shard.breach_bits=0 --set adapter.rank_min=4 --set adapter.rank_max=4 ;;
	labels) run $name 8 labelled- $open --rounds 4 --set adapter.sequence=48 --set training.epochs=10 --set training.learning_rate=0.002 ;;
	esac
	case $name in
	labels)
		attack membership $name labelled- --shadows "$name/shadows"
		attack epsilon $name labelled- --shadows "$name/shadows"
		;;
	*)
		shadows=
		[ $name = epsilon8 ] || shadows="--shadows $name/shadows"
		attack membership $name "" $shadows
		attack memorization $name "" --ask "tax number" --ask "registration id"
		attack epsilon $name ""
		;;
	esac
done
