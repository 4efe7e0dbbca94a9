#!/bin/sh
# How near honest jobs come to the published bounds of what a round begins with: 500 rounds of 30 clients over
# several bases, with the noise of epsilon 2 for a simulated million. Prints a table of Markdown, and fails where a
# start was scaled back. An interrupted run goes on; each round is told on standard error.
#
#   sh lab/bench/bounds/run.sh
#   ONLY="minilm" sh ...                some of: default documents commands minilm
#   MINILM=DIR                          its folder (default: lab/bench/minilm.sh's)
#   R8=FILE SHAKESPEARE=FILE            data sets, .txt.gz
#   OUT=DIR ROUNDS=500 SEED=1 STARLING=PROGRAM
#
# Some 20 minutes of a core for MiniLM.
set -eu
cd "$(dirname "$0")/../../.."
only=${ONLY:-default documents commands minilm}
r8=${R8:-../shared/data/r8/R8.train.txt.gz}
shakespeare=${SHAKESPEARE:-../shared/data/tinyshakespeare/input.txt.gz}
out=${OUT:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/bounds}
mkdir -p "$out"
starling=${STARLING:-bin/starling}
[ -n "${STARLING:-}" ] || make -s build >&2
wants() { case " $only " in *" $1 "*) ;; *) return 1 ;; esac; }
run() { # name, further flags
	name=$1
	shift
	printf '%s\t' "$name"
	"$starling" simulate --json --population 1000000 --cohort 30 --examples 8 --rounds "${ROUNDS:-500}" --every 0 --validation 40 \
		--workers 1 --seed "${SEED:-1}" --set adapter.rank_min=8 --set training.batch=8 --set training.steps=1 --out "$out/$name" "$@"
}
{
	if wants default; then
		run default --data "$r8" --set adapter.sequence=16
	fi
	if wants documents; then
		"$starling" lab federation --generated 60 --out "$out/federation" >&2
		run documents --base model/base/documents --data "$out/federation/train.jsonl" --test "$out/federation/test.jsonl" \
			--set task=answer --set adapter.sequence=64
	fi
	if wants commands; then
		gzip -dc "$shakespeare" | grep -v '^$' | grep -v ':$' | head -4000 >"$out/lines.txt"
		run commands --base model/base/llama/commands --data "$out/lines.txt" --unlabelled --set task=causal --set adapter.sequence=16
	fi
	if wants minilm; then
		run minilm --base "${MINILM:-$(sh lab/bench/minilm.sh)}" --data "$r8" --set adapter.sequence=16
	fi
} >"$out/records"
python3 lab/bench/bounds/table.py <"$out/records"
