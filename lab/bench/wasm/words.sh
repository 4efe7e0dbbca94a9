#!/bin/sh
# The step of DistilHuBERT over four recordings of a second beside PyTorch's on one core, engine by engine in turns: the least
# processor time of each. Its convolutions are frozen. "kept" is the step where what they make of these recordings was
# computed before (the device's usual case), which PyTorch's has no counterpart for.
#
#   sh lab/bench/wasm/words.sh
#   PYTHON=FILE  a Python with torch, transformers and peft (default: python3)
#   TURNS=3
set -eu
cd "$(dirname "$0")/../../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$dir/steps" ./bench/wasm/steps
mkdir "$dir/programs"
"$dir/steps" emit "$dir/programs" laptop words-distilhubert-b4-1s kept-distilhubert-b4-1s >&2
for turn in $(seq "${TURNS:-3}"); do
	for case in words kept; do
		name=$case-distilhubert-b4-1s
		for class in exact fused; do
			program=$dir/programs/$name$(case $class in fused) echo .fused ;; esac).wazero.wasm
			printf '%s %s %s\n' "$case" "$class" "$("$dir/steps" wazero "$program" "$dir/programs/$name.bin" -steps 3 |
				sed 's/.*"cpu_ms":\([0-9]*\).*/\1/')"
		done
	done
	for attention in eager sdpa; do
		printf 'torch %s %s\n' "$attention" "$("${PYTHON:-python3}" lab/bench/wasm/words.py "$attention" 4 3)"
	done
done | awk '{k = $1 " " $2; if (!(k in best) || $3 < best[k]) best[k] = $3}
	END {peer = best["torch eager"] < best["torch sdpa"] ? best["torch eager"] : best["torch sdpa"]
		print "| step | ms of a core | of the faster PyTorch |\n| --- | --- | --- |"
		for (k in best) printf "| %s | %d | %.2f |\n", k, best[k], best[k] / peer}'
