#!/bin/sh
# Lets Debian's Chromium and Firefox join a real job and watch its dashboard.
# Installs what is missing; CHROMIUM and FIREFOX name other executables,
# BROWSERS (default "chrome firefox") chooses. Screenshots lie in test/shots.
set -eu
cd "$(dirname "$0")"

missing=
[ -n "${CHROMIUM:=$(command -v chromium || true)}" ] || missing="$missing chromium"
[ -n "${FIREFOX:=$(command -v firefox-esr || true)}" ] || missing="$missing firefox-esr"
if [ -n "$missing" ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq
  # shellcheck disable=SC2086 # a list of words
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
export CHROMIUM="${CHROMIUM:-$(command -v chromium)}" FIREFOX="${FIREFOX:-$(command -v firefox-esr)}"
sh build.sh
make -s -C .. build
node --test --test-concurrency=1 test/*.test.mjs
