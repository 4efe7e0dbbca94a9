#!/bin/sh
# Installs the wheel of this platform where nothing else is, and holds it to what README.md says.
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null || { echo "no python3: the Python package is not tried"; exit 0; }
GO=${GO:-go}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
[ -x bin/starling ] || make -s build
platform=$("$GO" env GOOS)_$("$GO" env GOARCH)
cp bin/starling "$made/starling_0.1.0_$platform"
"$GO" run -C lab ./release/make 0.1.0 "$made" "$PWD"
wheel=$(ls "$made"/python/*.whl)
if python3 -m venv "$made/venv" >/dev/null 2>&1; then
  "$made/venv/bin/pip" install -q --no-index --disable-pip-version-check "$wheel"
  env -u STARLING "$made/venv/bin/python" deploy/python/check.py
else
  # Debian's python3 comes without venv and pip: the wheel's folders are put where pip would put them.
  python3 -m zipfile -e "$wheel" "$made/unpacked"
  mkdir "$made/unpacked/bin"
  mv "$made"/unpacked/*.data/scripts/starling "$made/unpacked/bin/"
  chmod +x "$made/unpacked/bin/starling"
  env -u STARLING PYTHONPATH="$made/unpacked" python3 deploy/python/check.py
fi
