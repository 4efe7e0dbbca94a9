#!/bin/sh
# Builds the pages and the browser's edge into dist/, which the program embeds.
# usage: build.sh [pages|edge]; both without an argument.
set -eu
cd "$(dirname "$0")"
[ -x node_modules/.bin/esbuild ] || npm ci --silent --no-fund --no-audit
node_modules/.bin/tsc -p .
node build.mjs "$@"
