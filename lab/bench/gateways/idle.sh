#!/bin/sh
# Connections that wait for a round, over gateways and NATS to one coordinator: resident memory of each process, and
# its processor time over half a minute. Devices are pinged every 25 s, as ever.
#
#   lab/bench/gateways/idle.sh [devices [gateways [minutes]]]
#
# A gateway has an open file for each of its connections (ulimit -Hn), and each process of at most 10,000 devices has one
# for each of these. Those that have not joined within so many minutes are not waited for.
set -eu
cd "$(dirname "$0")/../../.."
devices=${1:-5000} gateways=${2:-2} minutes=${3:-30}
tmp=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT INT TERM
export CGO_ENABLED=0
go build -C lab -o "$tmp/starling" ./cmd/starling
go build -C lab -o "$tmp/nats" github.com/nats-io/nats-server/v2
cat >"$tmp/job.yaml" <<JOB
name: idle
labels: [a, b]
rounds: 2
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: $((2 * devices)), floor: 3, max_connected: $((2 * devices))}
shard: {size: 16, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {noise_multiplier: 0.001, epsilon: 1.0e+15}
JOB
nats=127.0.0.1:43110
"$tmp/nats" -a 127.0.0.1 -p 43110 >/dev/null 2>&1 & pids="$! $pids" broker=$!
sleep 1
"$tmp/starling" serve --job "$tmp/job.yaml" --dir "$tmp/state" --nats nats://$nats --tls --url https://127.0.1.1:43111 2>"$tmp/serve.log" &
owner=$! pids="$! $pids"
processes=$owner names=serve by= health=
# Each at an address of its own: between two addresses there are no more connections than ports.
for i in $(seq "$gateways"); do
	"$tmp/starling" gateway --nats nats://$nats --name "gateway$i" --listen "127.0.$i.1:43111" --health "127.0.$i.1:43112" 2>"$tmp/gateway$i.log" &
	pids="$! $pids" processes="$processes $!" names="$names,gateway $i" by="$by --by 127.0.$i.1:43111" health="$health 127.0.$i.1:43112"
done
processes="$processes $broker" names="$names,NATS"
until grep -q 'join with' "$tmp/serve.log"; do
	kill -0 $owner || { cat "$tmp/serve.log"; exit 1; }
	sleep 1
done
sed -n 's/^join with: starling join \(starling2_[^ ]*\).*/\1/p' "$tmp/serve.log" >"$tmp/token"
left=$devices
while [ $left -gt 0 ]; do
	some=$((left < 10000 ? left : 10000)) left=$((left > 10000 ? left - 10000 : 0))
	"$tmp/starling" loadtest "@$tmp/token" --devices $some $by --for 2h >/dev/null 2>&1 & pids="$! $pids"
done
joined() { for at in $health; do curl -s "http://$at/metrics" | sed -n 's/^starling_gateway_connections //p'; done | awk '{ n += $1 } END { print n + 0 }'; }
until=$(($(date +%s) + 60 * minutes))
until [ "$(joined)" -ge "$devices" ] || [ "$(date +%s)" -ge $until ]; do sleep 2; done
sleep 10
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
there=$(joined)
for p in $processes; do cpu "$p"; done >"$tmp/before"
sleep 30
for p in $processes; do cpu "$p"; done >"$tmp/after"
echo "$there connections that wait, of $devices devices:"
echo
echo "| process | resident MB | kB a connection | % of a core |"
echo "| --- | --- | --- | --- |"
for p in $processes; do awk '/^VmRSS/ { print $2 }' "/proc/$p/status"; done |
	paste "$tmp/before" "$tmp/after" - | awk -v n="$there" -v names="$names" -v gateways="$gateways" -v ticks="$(getconf CLK_TCK)" 'BEGIN { split(names, name, ",") }
	{ printf "| %s | %.0f | %.1f | %.1f |\n", name[NR], $3 / 1024, $3 / (name[NR] ~ /^gateway/ ? n / gateways : n), ($2 - $1) / ticks / 30 * 100; rss += $3; cpu += $2 - $1 }
	END { printf "| all | %.0f | %.1f | %.1f |\n", rss / 1024, rss / n, cpu / ticks / 30 * 100 }'
