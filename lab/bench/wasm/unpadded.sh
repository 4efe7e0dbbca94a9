#!/bin/sh
# Training steps without padding beside PyTorch, eager and with scaled_dot_product_attention, on one thread and on two.
# Programs leave padding out and PyTorch computes it, so rows without any are the fair ones. Engines take turns; of each
# the least processor time of a step counts. PyTorch has an NF4 program's weights decoded. Prints Markdown.
#
#   sh lab/bench/wasm/unpadded.sh
#   ROUNDS=2 STEPS=3   turns, and timed steps of each
#   CORES="1 2"        how many, one run after the other
#   CASES="..."        some of those below, by their names
#   RESULTS=FILE       where to gather what is measured: a file that is there is added to, and printed with the rest
#   MEMORY="..."       cases of which memory alone is measured, in a step of each program
#   PYTHON=...         a Python with torch and numpy (default: python3)
set -eu

cd "$(dirname "$0")/../../.."
GO=${GO:-go}
python=${PYTHON:-python3}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
results=${RESULTS:-$WORK/results.jsonl}
cases=${CASES-tiny-full-b8-s64 small-full-b8-s64 minilm-full-b8-s128 base-full-b8-s64 base-full-b2-s128 vit-full-b4-s197 t5-full-b4-s256}
memory=${MEMORY-}
export OMP_WAIT_POLICY=passive # a thread that waits takes no processor time: ours sleep, too
"$python" -c 'import torch, numpy' || { echo "lab/bench/wasm: $python has no torch and numpy" >&2; exit 1; }
$GO build -C lab -o "$WORK/steps" ./bench/wasm/steps
for case in $memory; do
	"$WORK/steps" emit "$WORK" laptop "$case"
	for class in "" .fused; do
		"$WORK/steps" wazero "$WORK/$case$class.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 1 -label "memory$class" >>"$results"
	done
	rm "$WORK/$case".*
done
for case in $cases; do # case by case: inputs of a large base are half a gigabyte
	"$WORK/steps" emit "$WORK" laptop "$case"
	# The loss of the first step, which PyTorch has to have too.
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 1 -label first >>"$results"
	for cores in ${CORES:-1 2}; do
		for round in $(seq "${ROUNDS:-2}"); do
			echo "lab/bench/wasm: $case, cores $cores, round $round" >&2
			for class in "" .fused; do
				"$WORK/steps" wazero "$WORK/$case$class.wazero.wasm" "$WORK/$case.bin" -steps "${STEPS:-3}" -cores "$cores" \
					-label "program$class, $cores" >>"$results"
			done
			for attention in "" --sdpa; do
				"$python" lab/bench/wasm/torch_step.py "$WORK" "$case" --steps "${STEPS:-3}" --threads "$cores" $attention >>"$results"
			done
		done
	done
	rm "$WORK/$case".*
done
"$python" lab/bench/wasm/unpadded.py "$results"
