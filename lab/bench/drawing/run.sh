#!/bin/sh
# What a round's draw costs beside so many that are enrolled, in SQLite and PostgreSQL.
#
#   lab/bench/drawing/run.sh [enrolled]
set -eu
cd "$(dirname "$0")/../../.."
go test -run='^$' -bench=Drawing -benchtime=5x -timeout=2h ./coordinator/store ./coordinator -args -enrolled="${1:-10000000}"
