#!/bin/sh
# SROIE with MiniLM: a span head that reads boxes, trained centrally on the receipts of
# four fifths of the providers and scored on those of a tenth. Prints a table.
#
#   sh lab/bench/sroie/run.sh
#   SROIE=FILE    the receipts (default: ../shared/data/sroie/receipts_dev.jsonl.gz)
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: fetched once, see lab/bench/minilm.sh)
#   SEEDS="1 2"   of the split of the providers and the order
#
# Some 6 minutes of a core for each seed.
set -eu

cd "$(dirname "$0")/../../.."
data=${SROIE:-../shared/data/sroie/receipts_dev.jsonl.gz}
[ -f "$data" ] || { echo "lab/bench/sroie: skipped, there is no $data" >&2; exit 0; }
minilm=$(sh lab/bench/minilm.sh)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$tmp/sroie" ./bench/sroie
for seed in ${SEEDS:-1 2}; do
	"$tmp/sroie" -base "$minilm" -data "$data" -seed "$seed"
done | awk 'NR < 3 || /^\| (true|false)/'
