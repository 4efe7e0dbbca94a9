#!/bin/sh
# What the default clip norm is worth over three bases: simulated federations at the rule's
# norm (job.DefaultClipNorm) and at multiples of it, all else as the rule has it, at a
# simulated epsilon of 2 for a million devices. The embedded base on generated invoices, the
# embedded base for documents on generated questions, MiniLM on R8. Prints a table.
#
#   sh lab/bench/clip/run.sh
#   R8=FILE       R8's training file (default: ../shared/data/r8/R8.train.txt.gz); left out
#                 where it is not there
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: as lab/bench/r8/run.sh)
#   OUT=DIR       where runs lie: what is done is not run again
#   SEEDS=2       runs of each, with seeds from 1; MiniLM has one
#
# Some 12 minutes of a core.
set -eu

cd "$(dirname "$0")/../../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/starling/clip
mkdir -p "$cache"
out=${OUT:-$cache/runs}
bin=$cache/starling
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$bin" ./cmd/starling
data=${R8:-../shared/data/r8/R8.train.txt.gz}

# each NAME SEEDS ARGS...: the rule's norm is read from the record of the run that has it.
each() {
	name=$1
	seeds=$2
	shift 2
	for seed in $(seq "$seeds"); do
		rule=
		for times in 1 0.5 2; do
			echo "lab/bench/clip: $name, $times times the rule, seed $seed" >&2
			norm=
			[ -z "$rule" ] || norm=--set=privacy.clip_norm=$(awk "BEGIN { print $times * $rule }")
			record=$("$bin" simulate --json --every 0 --out "$out" --seed "$seed" $norm "$@")
			[ -n "$rule" ] || rule=$(printf '%s' "$record" | sed 's/.*"clip_norm":\([0-9.e-]*\).*/\1/')
			printf '%s\t%s\t%s\n' "$name" "$times" "$record"
		done
	done
}
{
	each "invoices, embedded base" "${SEEDS:-2}" --rounds 12 --cohort 60
	questions=$cache/questions
	"$bin" invoices --questions --out "$questions" --clients 96 --per-client 64 --providers 8 >&2
	cat "$questions"/*.jsonl >"$cache/questions.jsonl"
	each "questions, embedded base for documents" "${SEEDS:-2}" --base model/base/documents --data "$cache/questions.jsonl" \
		--set task=answer --rounds 8 --cohort 28 --examples 64 --set adapter.sequence=96 --set adapter.answer=16 \
		--set adapter.rank_min=8 --set adapter.rank_max=8 --set 'adapter.targets=[q, k, v, o, wi, wo]' \
		--set training.batch=8 --set training.steps=8
	if [ -f "$data" ]; then
		minilm=$(sh lab/bench/minilm.sh)
		each "R8, MiniLM" 1 --base "$minilm" --data "$data" --rounds 4 --cohort 28 --examples 183 \
			--set adapter.sequence=48 --set adapter.rank_min=8 --set adapter.rank_max=8 \
			--set training.batch=4 --set training.steps=6
	else
		echo "lab/bench/clip: R8 is left out, there is no $data" >&2
	fi
} | python3 lab/bench/clip/table.py
