#!/bin/sh
# Times secure aggregation on one core, natively and in wasm under node, and
# Flower's SecAgg+ arithmetic on the same sizes in the same run; recomputes the
# transcript vectors with the independent script. Processor time throughout. The
# table goes to standard output, everything else to standard error.
#
#   lab/bench/secagg/run.sh            needs go, python3 with venv; node for the wasm part
#
# Python packages go to a temporary folder that is removed at the end.
set -eu
cd "$(dirname "$0")/../../.."
FLWR=${FLWR:-1.41.0}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

say() { echo "$*" >&2; }

say "== secagg, native (shard 64, d=135,176, 11-bit ring; unmask: cohort 1,000) =="
CGO_ENABLED=0 go test -run '^$' -bench 'Client|Unmask|AddMasks' -benchtime 5x -cpu 1 ./secagg | tee "$tmp/native" >&2

say "== secagg client, wasm under node =="
if command -v node >/dev/null; then
	GOOS=js GOARCH=wasm go test -exec "$(go env GOROOT)/lib/wasm/go_js_wasm_exec" \
		-run '^$' -bench 'Client/suite=1' -benchtime 3x ./secagg | tee "$tmp/wasm" >&2
else
	say "node is not there: not measured"
	: >"$tmp/wasm"
fi

say "== Flower $FLWR, its own SecAgg+ functions, same sizes =="
if python3 -m venv "$tmp/venv" && "$tmp/venv/bin/pip" -q install "flwr==$FLWR" >&2; then
	"$tmp/venv/bin/python" lab/bench/secagg/flower.py | tee "$tmp/flower" >&2
	"$tmp/venv/bin/python" secagg/testdata/transcript.py --check >&2 && say "transcript.json: recomputed, identical"
else
	say "flwr could not be installed: not measured"
fi
[ -s "$tmp/flower" ] || : >"$tmp/flower"

awk '
	FILENAME ~ /flower$/ { split($0, f, "\t"); fl[f[1]] = f[2]; next }
	/^Benchmark/ {
		where = FILENAME; sub(/.*\//, "", where)
		for (i = 3; i < NF; i++) v[$(i + 1)] = $i
		if ($1 ~ /Client\/suite=1/) {
			mask[where] = v["mask-ms"]
			all[where] = v["advertise-ms"] + v["share-ms"] + v["deliver-ms"] + v["mask-ms"] + v["confirm-ms"] + v["reveal-ms"]
			up = v["upload-overhead-B"]
		}
		if ($1 ~ /Client\/suite=2/) hybrid = v["advertise-ms"] + v["share-ms"] + v["deliver-ms"] + v["mask-ms"] + v["confirm-ms"] + v["reveal-ms"]
		if ($1 ~ /shard=64\/dropped=0%/) whole = v["cpu-ms"]
		if ($1 ~ /shard=64\/dropped=10%/) unmask = v["cpu-ms"]
		if ($1 ~ /semihonest/) semi = v["cpu-ms"]
	}
	function show(x) { return x ? sprintf("%.3g ms", x) : "-" }
	function row(name, ours, goal, theirs) {
		printf "| %s | %s | %s | %s | %s |\n", name, show(ours), goal ? goal " ms" : "", show(theirs), theirs && ours ? sprintf("%.0fx", theirs / ours) : ""
	}
	END {
		print "| what | ours | goal | Flower, its own functions | ratio |"
		print "| --- | --- | --- | --- | --- |"
		row("client: mask, native", mask["native"], "40", fl["client mask"])
		row("client: all five turns, native", all["native"], "120", fl["client total"])
		row("the same, hybrid suite (ML-KEM-768 + X25519)", hybrid, "", 0)
		row("client: mask, wasm in node", mask["wasm"], "400", 0)
		row("client: all five turns, wasm in node", all["wasm"], "", 0)
		row("server: unmask 1,000 in 16 shards, none dropped", whole, "", 0)
		row("the same, 10 % dropped after sharing", unmask, "1000", fl["server unmask 16 shards"])
		row("server: unmask 1,000 in 8 shards of 125, 30 % dropped, semi-honest", semi, "4000", 0)
		printf "| upload beyond the packed vector | %d B | 12000 B | | |\n", up
		printf "| packed vector | %d B | | %s B (int64) | %.1fx |\n", (135176 * 11 + 7) / 8, fl["upload vector bytes"], fl["upload vector bytes"] / int((135176 * 11 + 7) / 8)
	}' "$tmp/native" "$tmp/wasm" "$tmp/flower"
