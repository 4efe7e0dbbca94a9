#!/bin/sh
# Times quantization on one core, natively, without assembly and in wasm under
# node, and bitsandbytes' NF4 on the CPU in the same run; recomputes the golden
# vectors with bitsandbytes. The summary is in processor time on both sides.
#
#   lab/bench/quant/run.sh              needs go; node for the wasm part
#   PYTHON=... lab/bench/quant/run.sh   a Python that already has torch; without one, torch is
#                                   installed (large) unless PEERS=0
#
# The table goes to standard output, everything else to standard error; what it
# installs to a temporary folder that is removed at the end.
set -eu
cd "$(dirname "$0")/../../.."
PEERS=${PEERS:-1}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
say() { echo "$*" >&2; }
bench='BenchmarkEncode|BenchmarkDecodeMean|BenchmarkNF4'

say "== quant, native (d = 135,176; encode is rotate + round + pack) =="
CGO_ENABLED=0 go test -run '^$' -bench "$bench" -cpu 1 ./quant | tee "$tmp/native" >&2

say "== quant, without assembly (-tags purego) =="
CGO_ENABLED=0 go test -tags purego -run '^$' -bench "$bench" -cpu 1 ./quant | tee "$tmp/plain" >&2

say "== quant, wasm under node =="
if command -v node >/dev/null; then
	GOOS=js GOARCH=wasm go test -exec "$(go env GOROOT)/lib/wasm/go_js_wasm_exec" \
		-run '^$' -bench "$bench" ./quant | tee "$tmp/wasm" >&2
else
	say "node is not there: not measured"
	: >"$tmp/wasm"
fi

say "== bitsandbytes on the CPU, one thread, GB/s of float32 =="
: >"$tmp/peer"
if [ "$PEERS" = 1 ]; then
	python3 -m venv "$tmp/venv"
	pip="$tmp/venv/bin/pip -q install"
	if [ -n "${PYTHON:-}" ]; then
		PYTHONPATH=$("$PYTHON" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
		export PYTHONPATH
		$pip --no-deps bitsandbytes packaging || PEERS=0
	else
		$pip torch bitsandbytes || PEERS=0
	fi
fi
if [ "$PEERS" = 1 ]; then
	"$tmp/venv/bin/python" lab/bench/quant/nf4.py time 2>/dev/null | tee "$tmp/peer" >&2
	"$tmp/venv/bin/python" lab/bench/quant/nf4.py golden 2>/dev/null >"$tmp/golden"
	"$tmp/venv/bin/python" - "$tmp/golden" >&2 <<'PY'
import json, sys
new, old = (json.load(open(p))["cases"] for p in (sys.argv[1], "quant/testdata/bitsandbytes.json"))
print("testdata/bitsandbytes.json: recomputed,", "identical" if new == old else "DIFFERENT")
PY
else
	say "bitsandbytes could not be installed: not measured"
fi

awk '
	FILENAME ~ /peer$/ { peer[$1] = $2; next }
	/^Benchmark/ {
		name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
		where = FILENAME; sub(/.*\//, "", where)
		for (i = 4; i <= NF; i++) if ($i == "cpu-ms" || $i == "cpu-GB/s") v[where, name] = $(i - 1)
	}
	function show(x) { return x ? sprintf("%.3g", x) : "-" }
	function row(label, name, unit, target, theirs) {
		printf "| %-34s | %7s | %7s | %7s | %-5s | %-22s | %s |\n", label, show(v["native", name]), show(v["plain", name]), show(v["wasm", name]), unit, target,
			theirs ? sprintf("%s, ratio %.3g", theirs, v["native", name] / theirs) : "-"
	}
	END {
		print "| | native | plain Go | wasm | unit | target | bitsandbytes, native/theirs |"
		print "| --- | --- | --- | --- | --- | --- | --- |"
		row("rotate, round, pack: nf4", "Encode/nf4", "ms", "4 native, 30 wasm", "")
		row("rotate, round, pack: int4", "Encode/int4", "ms", "4 native, 30 wasm", "")
		row("decode the mean", "DecodeMean", "ms", "", "")
		row("NF4 encode", "NF4/encode", "GB/s", "1", peer["encode"])
		row("NF4 decode", "NF4/decode", "GB/s", "1", peer["decode"])
		row("NF4 encode, double quantization", "NF4/encode-dq", "GB/s", "1", peer["encode-dq"])
		row("NF4 decode, double quantization", "NF4/decode-dq", "GB/s", "1", "")
	}' "$tmp/peer" "$tmp/native" "$tmp/plain" "$tmp/wasm"
