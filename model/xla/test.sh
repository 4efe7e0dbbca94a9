#!/bin/sh
# Holds XLA against the compiled program, on this machine's CPU: make xla.
set -eu
cd "$(dirname "$0")/../.."
command -v gcc >/dev/null || command -v cc >/dev/null || { echo "xla: skipped, no C compiler"; exit 0; }
export CGO_ENABLED=1
${GO:-go} vet -tags xla ./model/xla
${GO:-go} vet -C lab -tags xla ./cmd/starling
if [ -z "${STARLING_PJRT:-}" ]; then
	STARLING_PJRT=$(sh model/xla/plugin.sh) || { [ $? = 3 ] && echo "xla: skipped, no plugin" && exit 0; exit 1; }
	export STARLING_PJRT
fi
echo "xla: $STARLING_PJRT"
${GO:-go} test -tags xla -run 'XLA|Agree|Workers|Refused|refused' -count 1 ./model/xla
exec ${GO:-go} test -C lab -tags xla -run 'XLA|Agree|Workers|Refused|refused' -count 1 ./cmd/starling
