#!/bin/sh
# Compares starling's accountants with Google's dp-accounting and with Opacus, both
# from PyPI, in one run: epsilon and time for the same jobs. Python packages go
# into a throw-away environment. Needs python3 with venv, and go.
#
#     lab/bench/dp/run.sh [output.csv]      without a file: a table on standard output
#
# The PyPI packages are not part of this repository and are never imported by it.
set -eu
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -C lab -o "$work/starling" ./cmd/starling
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check "dp-accounting==0.6.0" numpy scipy
# Opacus depends on torch, its accountants do not use it: take the package alone.
"$work/venv/bin/pip" -q install --disable-pip-version-check --no-deps opacus==1.5.4 || echo "opacus could not be installed; it is left out" >&2
"$work/venv/bin/python" lab/bench/dp/compare.py "$work/starling" "$@"
