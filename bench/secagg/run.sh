#!/bin/sh
# Times secure aggregation on one core, natively and in wasm under node, and
# Flower's SecAgg+ arithmetic on the same sizes in the same run; recomputes the
# transcript vectors with the independent script. Processor time throughout.
#
#   bench/secagg/run.sh            needs go, python3 with venv; node for the wasm part
#
# Python packages go to a temporary folder that is removed at the end.
set -eu
cd "$(dirname "$0")/../.."
FLWR=${FLWR:-1.41.0}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

echo "== secagg, native (shard 64, d=135,176, 11-bit ring; unmask: cohort 1,000) =="
CGO_ENABLED=0 go test -run '^$' -bench 'Client|Unmask|AddMasks' -benchtime 5x -cpu 1 ./secagg | tee "$tmp/native"

echo "== secagg client, wasm under node =="
if command -v node >/dev/null; then
	GOOS=js GOARCH=wasm go test -exec "$(go env GOROOT)/lib/wasm/go_js_wasm_exec" \
		-run '^$' -bench 'Client/suite=1' -benchtime 3x ./secagg | tee "$tmp/wasm"
else
	echo "node is not there: not measured"
fi

echo "== Flower $FLWR, its own SecAgg+ functions, same sizes =="
if python3 -m venv "$tmp/venv" && "$tmp/venv/bin/pip" -q install "flwr==$FLWR"; then
	"$tmp/venv/bin/python" bench/secagg/flower.py | tee "$tmp/flower"
	"$tmp/venv/bin/python" secagg/testdata/transcript.py --check && echo "transcript.json: recomputed, identical"
else
	echo "flwr could not be installed: not measured"
fi

echo "== summary (milliseconds of processor time, one core; ratio Flower/ours) =="
awk '
	/^Benchmark/ {
		for (i = 3; i < NF; i++) v[$(i + 1)] = $i
		if ($1 ~ /Client\/suite=1/) {
			mask = v["mask-ms"]
			all = v["advertise-ms"] + v["share-ms"] + v["deliver-ms"] + v["mask-ms"] + v["confirm-ms"] + v["reveal-ms"]
			up = v["upload-overhead-B"]
		}
		if ($1 ~ /shard=64\/dropped=10%/) unmask = v["cpu-ms"]
		if ($1 ~ /semihonest/) semi = v["cpu-ms"]
	}
	FNR == NR { next }
	{ split($0, f, "\t"); fl[f[1]] = f[2] }
	function row(name, ours, target, theirs) {
		printf "%-44s %9.1f  target %6s  Flower %9s  %s\n", name, ours, target, theirs ? theirs : "-", theirs ? sprintf("%.0fx", theirs / ours) : ""
	}
	END {
		row("client mask", mask, "40", fl["client mask"])
		row("client, all turns", all, "120", fl["client total"])
		row("unmask, 16 shards, 10% dropped", unmask, "1000", fl["server unmask 16 shards"])
		row("unmask, 8 shards of 125, 30%, semi-honest", semi, "4000", "")
		printf "upload beyond the packed vector: %d bytes (target 12000); vector %d bytes, Flower %s\n", up, (135176 * 11 + 7) / 8, fl["upload vector bytes"]
	}' "$tmp/native" "$([ -s "$tmp/flower" ] && echo "$tmp/flower" || echo /dev/null)"
cat <<'END'
Published, for reference (Bonawitz et al. 2017, Xeon E5-1650 v3, d = 100,000, complete graph, n = 500):
client 0.85 s; server 2 s / 62 s / 143 s at 0 / 10 / 30 % dropped; upload 1.73 times the data at n = 2^10, d = 2^20, 16 bits.
Flower's masks come from a generator seeded with 32 bits (flower#7522): equal work is not equal strength.
END
