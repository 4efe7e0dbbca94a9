#!/bin/sh
# Lets Debian's Chromium and Firefox join a real job and watch its dashboard.
# Installs what is missing, with nginx and Caddy for one of the tests and a sound server, without which
# Firefox hears no microphone; CHROMIUM, FIREFOX, NGINX, CADDY and PULSEAUDIO name other executables,
# BROWSERS (default "chrome firefox") chooses. Screenshots lie in test/shots.
set -eu
cd "$(dirname "$0")"

missing=
[ -n "${CHROMIUM:=$(command -v chromium || true)}" ] || missing="$missing chromium"
[ -n "${FIREFOX:=$(command -v firefox-esr || true)}" ] || missing="$missing firefox-esr"
[ -n "${PULSEAUDIO:=$(command -v pulseaudio || true)}" ] || missing="$missing pulseaudio"
[ -n "${NGINX:=$(command -v nginx || ls /usr/sbin/nginx 2>/dev/null || true)}" ] || missing="$missing nginx"
[ -n "${CADDY:=$(command -v caddy || true)}" ] || missing="$missing caddy"
if [ -n "$missing" ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq || true
  # RUNLEVEL: a package's own service is not started.
  # shellcheck disable=SC2086 # a list of words
  $sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    echo "not all of$missing could be installed: tests say what they miss"
fi
export NGINX="${NGINX:-/usr/sbin/nginx}" CADDY="${CADDY:-/usr/bin/caddy}" PULSEAUDIO="${PULSEAUDIO:-$(command -v pulseaudio)}"
export CHROMIUM="${CHROMIUM:-$(command -v chromium)}" FIREFOX="${FIREFOX:-$(command -v firefox-esr)}"
sh build.sh
make -s -C .. build
# Two files at a time, which share the npm package and the recipes' dependencies: made once, here.
node build.mjs package
[ -d test/recipes/node_modules ] || npm ci --silent --no-fund --no-audit --prefix test/recipes
PACKAGE_BUILT=1 node --test --test-concurrency=2 test/*.test.mjs
