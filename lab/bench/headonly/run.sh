#!/bin/sh
# Remakes the head-only figures that the demo quotes: the same jobs, training the
# classification head alone. R8 is measured where the data set stands beside the
# repository. Build again afterwards: the figures are embedded.
set -eu
cd "$(dirname "$0")/../../.."
make -s build
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bin/starling demo --head-only --out "$out" --record internal/app/demo/headonly.json
r8=../shared/data/r8/R8.train.txt.gz
if [ -f "$r8" ]; then
  bin/starling demo --head-only --out "$out" --data "$r8" --record internal/app/demo/headonly.json
fi
