#!/bin/sh
# Holds the files here against the tools that load them: Prometheus' rules and their own tests, HAProxy's configuration
# and how much of the machine the unit leaves to the service. Installs what is missing.
set -eu
cd "$(dirname "$0")"

missing=
command -v promtool >/dev/null || missing="$missing prometheus"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
command -v haproxy >/dev/null || missing="$missing haproxy"
if [ -n "$missing" ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq
  # RUNLEVEL: a package's own service is not started.
  # shellcheck disable=SC2086 # a list of words
  $sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
haproxy -c -q -f haproxy/haproxy.cfg
promtool check rules prometheus/alerts.yml
promtool check config --syntax-only prometheus/prometheus.yml
promtool check config --syntax-only prometheus/gateways.yml
(cd prometheus && promtool test rules alerts_test.yml)
# In tenths: at most 2.0 of 10 is exposed.
systemd-analyze security --offline=yes --threshold=20 systemd/starling.service | tail -1
