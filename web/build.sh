#!/bin/sh
# Builds the pages (TypeScript -> static/*.js, in git) and the browser's edge
# (cmd/starling-web -> static/starling.wasm.gz, not in git).
# usage: build.sh [pages|edge]; both without an argument.
set -eu
cd "$(dirname "$0")"
what=${1:-all}

if [ "$what" != edge ]; then
  [ -x node_modules/.bin/tsc ] || npm ci --silent --no-fund --no-audit
  node_modules/.bin/tsc -p .
fi

if [ "$what" != pages ]; then
  GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o static/starling.wasm ../cmd/starling-web
  gzip -9 -n -f static/starling.wasm
  cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" static/wasm_exec.js
  printf 'web/static/starling.wasm.gz: %s bytes\n' "$(wc -c < static/starling.wasm.gz)"
fi
