#!/bin/sh
# How the operator's dashboard keeps up in Chromium: cohorts of 1,000 and 10,000 devices
# that change five times a second, after 2,000 rounds, in a fleet of 10,000. Prints a table.
# Needs node and Chromium.
set -eu
cd "$(dirname "$0")/../../.."
{ [ -f web/dist/built.json ] || make -s web; (cd web && { [ -x node_modules/.bin/esbuild ] || npm ci --no-audit --no-fund; } && node build.mjs pages); } >&2
said=$(cd web && node --test --test-reporter=tap --test-name-pattern='a cohort of' test/many.test.mjs) || { echo "$said" >&2; exit 1; }
echo "$said" >&2
echo "| devices | longest task, ms of processor (by the wall) | the same while it loads | the page's thread, % of the time | frames a second | a frame, ms: median, 95th percentile |"
echo "| --- | --- | --- | --- | --- | --- |"
echo "$said" | sed -n 's/.*# row: //p'
