#!/bin/sh
# Times rounds of 1,000 and of 10,000 devices over real sockets on this machine:
# the coordinator in a process of its own, light devices with real keys, shares,
# masks and signatures and no training in another. Per round: wall time, the part
# of the processors that other programs took, the coordinator's and the devices'
# processor seconds, the wall time over the devices' own work (their processor
# seconds over all processors), net of what others took, and the peaks of memory.
#
#   lab/bench/fleet/run.sh [small]        small: 1,000 devices only
#
# 10,000 devices need a hard limit of 10,200 open files a process (ulimit -Hn).
set -eu
cd "$(dirname "$0")/../../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
CGO_ENABLED=0 go build -C lab -o "$tmp/fleet" ./bench/fleet

"$tmp/fleet" -devices 1000 -rounds 3 -drop 0.1
echo; echo "One device is 12 s late with its shares in every round:"; echo
"$tmp/fleet" -devices 1000 -rounds 2 -drop 0.1 -late 12s
if [ "${1:-}" != small ]; then
	echo
	"$tmp/fleet" -devices 10000 -rounds 1 -drop 0
fi
