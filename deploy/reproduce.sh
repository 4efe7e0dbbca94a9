#!/bin/sh
# Two builds of one source are one program: here, and from a copy in another folder with an
# empty build cache.
#
#   sh deploy/reproduce.sh [GOOS/GOARCH]
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
target=${1:-linux/amd64}
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/elsewhere"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$tmp/elsewhere"
# compile FOLDER FILE: as deploy/release.sh does, the smaller program alone.
compile() {
  (cd "$1" && GOOS=${target%/*} GOARCH=${target#*/} GOFLAGS= GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0 "$GO" build -trimpath -buildvcs=false \
    -ldflags '-s -w -buildid= -X main.version=same' -o "$2" ./cmd/starling-edge)
}
compile . "$tmp/here"
GOCACHE="$tmp/cache" compile "$tmp/elsewhere" "$tmp/there"
if ! cmp "$tmp/here" "$tmp/there"; then
  echo "reproduce: two builds of starling-edge for $target differ" >&2
  exit 1
fi
echo "starling-edge for $target: two builds are the same $(wc -c <"$tmp/here") bytes"
