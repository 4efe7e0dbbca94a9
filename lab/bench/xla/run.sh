#!/bin/sh
# Training steps of MiniLM's shape in the compiled program: its own code alone, with native
# kernels, exact and fused, for its products, and on XLA's CPU plugin (model/xla/plugin.sh fetches one, or STARLING_PJRT names another): in turns, on one
# processor and on two.
#
#   sh lab/bench/xla/run.sh
#   ROUNDS=6      turns; each is 12 steps of every engine
set -eu

cd "$(dirname "$0")/../../../xla"
say() { echo "lab/bench/xla: $*" >&2; }
STARLING_PJRT=${STARLING_PJRT:-$(sh plugin.sh)} || { say "skipped: no plugin"; exit 0; }
export STARLING_PJRT
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
CGO_ENABLED=1 ${GO:-go} test -c -tags xla -o "$work/bench" .
echo "| processors | engine | processor ms a step | wall ms a step | program over it, processor time | wall | exact over it, processor time | wall |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for cores in 0 0,1; do
	say "processors $cores"
	taskset -c "$cores" "$work/bench" -test.run '^$' -test.bench MiniLM -test.benchtime "${ROUNDS:-6}x" >"$work/out"
	cat "$work/out" >&2
	awk -v cores="$cores" '/^BenchmarkMiniLM/ {
		for (i = 3; i < NF; i += 2) v[$(i + 1)] = $i
		n = split("program exact fused xla", names, " ")
		for (k = 1; k <= n; k++) {
			c = v[names[k] "-cpu-ms"]; w = v[names[k] "-wall-ms"]
			printf "| %d | %s | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f |\n", split(cores, x, ","), names[k], c, w,
				v["program-cpu-ms"] / c, v["program-wall-ms"] / w, v["exact-cpu-ms"] / c, v["exact-wall-ms"] / w
		}
	}' "$work/out"
done
