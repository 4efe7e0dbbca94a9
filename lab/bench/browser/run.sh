#!/bin/sh
# Counts what a visitor's browser (Chromium) transfers to join, at the socket, how long
# the page's thread was busy, and what a training step takes beside node; prints tables.
# Needs node and Chromium.
set -eu
cd "$(dirname "$0")/../../.."
{ make -s web && make -s build && (cd web && npm ci --no-audit --no-fund); } >&2
said=$(cd web && node --test --test-reporter=tap test/transfer.test.mjs)
echo "$said" >&2
echo "$said" | sed -n 's/.*# page \([0-9]*\) B, client \([0-9]*\) B, to the first round \([0-9]*\) B besides the base.s \([0-9]*\), second visit \([0-9]*\) B/\1 \2 \3 \4 \5/p' |
	awk '{
		print "| what | bytes | goal |"
		print "| --- | --- | --- |"
		printf "| page, its script and style, the job | %d | |\n", $1
		printf "| the client (WebAssembly, brotli) and its worker | %d | |\n", $2
		printf "| from Join to the first committed round, without the base | %d | |\n", $3
		printf "| all of it | %d | 1500000, then 1200000 |\n", $1 + $2 + $3
		printf "| the base | %d | |\n", $4
		printf "| a second visit up to Join | %d | 20000 |\n", $5
		found = 1
	} END { exit !found }'
echo
echo "$said" | sed -n 's/.*# interactive after \([0-9]*\) ms, \(.*\)/Interactive after \1 ms (wall); \2./p'

steps=$(mktemp -d)
trap 'rm -rf "$steps"' EXIT
words="words-demo-b16-1s words-small-b8-1s kept-small-b8-1s words-distilhubert-b4-1s kept-distilhubert-b4-1s"
# shellcheck disable=SC2086 # a list of names
{ go build -C lab -o "$steps/steps" ./bench/wasm/steps && "$steps/steps" emit "$steps" && "$steps/steps" emit "$steps" $words; } >&2
for case in tiny-b16-s32 small-nf4-b8-s64; do
	printf '\nA training step, %s:\n\n' "$case"
	node lab/bench/browser/step.mjs "$steps/$case.v8.wasm" "$steps/$case.bin" --turns 5 --steps 2
done
for case in $words; do
	batch=${case#*-b}
	printf '\nA training step over recordings of one second, %s:\n\n' "$case"
	node lab/bench/browser/step.mjs "$steps/$case.v8.wasm" "$steps/$case.bin" --turns 5 --steps 2 --examples "${batch%-1s}"
done
