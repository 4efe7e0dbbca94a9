#!/bin/sh
# Connections that wait for a round, over two gateways and NATS to one coordinator: resident memory of each process, and
# its processor time over half a minute. Devices are pinged every 25 s, as ever.
#
#   lab/bench/gateways/idle.sh [devices]
#
# Each gateway needs half as many open files (ulimit -Hn).
set -eu
cd "$(dirname "$0")/../../.."
devices=${1:-5000}
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
nats=127.0.0.1:43110 one=127.0.0.1:43111 two=127.0.0.1:43112 health=127.0.0.1:43113 health2=127.0.0.1:43114
"$tmp/nats" -a 127.0.0.1 -p 43110 >/dev/null 2>&1 & pids="$! $pids" broker=$!
sleep 1
"$tmp/starling" serve --job "$tmp/job.yaml" --dir "$tmp/state" --nats nats://$nats --tls --url https://$one 2>"$tmp/serve.log" &
owner=$! pids="$! $pids"
"$tmp/starling" gateway --nats nats://$nats --name one --listen $one --health $health 2>/dev/null & first=$! pids="$! $pids"
"$tmp/starling" gateway --nats nats://$nats --name two --listen $two --health $health2 2>/dev/null & second=$! pids="$! $pids"
until grep -q 'join with' "$tmp/serve.log"; do
	kill -0 $owner || { cat "$tmp/serve.log"; exit 1; }
	sleep 1
done
sed -n 's/^join with: starling join \(starling2_[^ ]*\).*/\1/p' "$tmp/serve.log" >"$tmp/token"
left=$devices
while [ $left -gt 0 ]; do
	some=$((left < 10000 ? left : 10000)) left=$((left > 10000 ? left - 10000 : 0))
	"$tmp/starling" loadtest "@$tmp/token" --devices $some --by $one --by $two --for 2h >/dev/null 2>&1 & pids="$! $pids"
done
joined() { for at in $health $health2; do curl -s "http://$at/metrics" | sed -n 's/^starling_gateway_connections //p'; done | awk '{ n += $1 } END { print n + 0 }'; }
until [ "$(joined)" -ge "$devices" ]; do sleep 2; done
sleep 10
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
for p in $owner $first $second $broker; do cpu "$p"; done >"$tmp/before"
sleep 30
for p in $owner $first $second $broker; do cpu "$p"; done >"$tmp/after"
echo "$(joined) connections that wait:"
echo
echo "| process | resident MB | kB a connection | % of a core |"
echo "| --- | --- | --- | --- |"
for p in $owner $first $second $broker; do awk '/^VmRSS/ { print $2 }' "/proc/$p/status"; done |
	paste "$tmp/before" "$tmp/after" - | awk -v n="$devices" -v ticks="$(getconf CLK_TCK)" 'BEGIN { split("serve,gateway one,gateway two,NATS", name, ",") }
	{ printf "| %s | %.0f | %.1f | %.1f |\n", name[NR], $3 / 1024, $3 / (NR == 2 || NR == 3 ? n / 2 : n), ($2 - $1) / ticks / 30 * 100; rss += $3; cpu += $2 - $1 }
	END { printf "| all | %.0f | %.1f | %.1f |\n", rss / 1024, rss / n, cpu / ticks / 30 * 100 }'
