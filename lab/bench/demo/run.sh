#!/bin/sh
# Runs the demo several times and prints a table of what it reached and took.
set -eu
cd "$(dirname "$0")/../../.."
make -s build >&2
exec go run -C lab ./bench/demo "$@"
