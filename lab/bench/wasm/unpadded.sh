#!/bin/sh
# Training steps without padding beside PyTorch, eager and with scaled_dot_product_attention, on one thread each. Programs
# leave padding out and PyTorch computes it, so rows without any are the fair ones. Engines take turns; of each the least
# processor time of a step counts. Prints Markdown.
#
#   sh lab/bench/wasm/unpadded.sh
#   ROUNDS=2 STEPS=3   turns, and timed steps of each
#   CASES="..."        some of those below, by their names
#   PYTHON=...         a Python with torch and numpy (default: python3)
set -eu

cd "$(dirname "$0")/../../.."
GO=${GO:-go}
python=${PYTHON:-python3}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cases=${CASES:-tiny-full-b8-s64 small-full-b8-s64 minilm-full-b8-s128 base-full-b8-s64 vit-full-b4-s197 t5-full-b4-s256 smollm2-full-b1-s256 smollm2-full-b4-s256}
"$python" -c 'import torch, numpy' || { echo "lab/bench/wasm: $python has no torch and numpy" >&2; exit 1; }
$GO build -C lab -o "$WORK/steps" ./bench/wasm/steps
# shellcheck disable=SC2086
"$WORK/steps" emit "$WORK" $cases
for case in $cases; do # the loss of the first step, which PyTorch has to have too
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 1 -label first >>"$WORK/results.jsonl"
done
for round in $(seq "${ROUNDS:-2}"); do
	for case in $cases; do
		echo "lab/bench/wasm: round $round, $case" >&2
		for class in "" .fused; do
			"$WORK/steps" wazero "$WORK/$case$class.wazero.wasm" "$WORK/$case.bin" -steps "${STEPS:-3}" -label "program$class" >>"$WORK/results.jsonl"
		done
		"$python" lab/bench/wasm/torch_step.py "$WORK" "$case" --steps "${STEPS:-3}" >>"$WORK/results.jsonl"
		"$python" lab/bench/wasm/torch_step.py "$WORK" "$case" --steps "${STEPS:-3}" --sdpa >>"$WORK/results.jsonl"
	done
done
"$python" lab/bench/wasm/unpadded.py "$WORK/results.jsonl"
