#!/bin/sh
# What own noise costs a device in a round of 150,000 values, natively, under Node's engine
# and in Chromium, in processor time: the median of five runs on one core. Prints a table of
# Markdown. Needs node and Chromium.
set -eu
cd "$(dirname "$0")/../../.."
bench() { go test ./dp -run xxx -bench OwnNoise -benchtime 20x -count 5 -cpu 1 "$@"; }
row() { # name, goal
	awk -v name="$1" -v goal="$2" '/ms\/round/ { for (i = 2; i <= NF; i++) if ($i == "ms/round") print $(i-1) }' | sort -n |
		awk -v name="$1" -v goal="$2" '{ x[NR] = $1 } END { if (NR != 5) exit 1; printf "| %s | %.0f ms (%.0f to %.0f) | %s |\n", name, x[3], x[1], x[5], goal }'
}
echo '| where | 150,000 values, processor time, median of five (least to greatest) | goal |'
echo '| --- | --- | --- |'
bench | row 'natively' '60 ms'
# The check for leaks takes the engine's own goroutine for one, after the figure.
{ GOOS=js GOARCH=wasm bench -exec "$(go env GOROOT)/lib/wasm/go_js_wasm_exec" || true; } | row "under Node's engine" '150 ms'
page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT
{ GOOS=js GOARCH=wasm go test -c -o "$page/dp.wasm" ./dp && { test -d web/node_modules/puppeteer-core || (cd web && npm ci --no-audit --no-fund); }; } >&2
node lab/bench/own/browser.mjs "$page/dp.wasm" "$(go env GOROOT)/lib/wasm/wasm_exec.js" | row 'in Chromium' '150 ms'
