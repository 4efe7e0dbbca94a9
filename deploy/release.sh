#!/bin/sh
# Builds what is released: starling and starling-edge for six targets, what each is made of (CycloneDX), archives, .deb
# and .rpm, Python wheels, a Homebrew formula, manifests for winget, an OCI image of starling for those of Linux, the
# version's notes, and the checksums of all of it.
#
#   sh deploy/release.sh VERSION FOLDER     TARGETS="linux/amd64 ..." for fewer
#                                           SIGNING_KEY=FILE signs the checksums (ssh-keygen -Y verify -n starling)
#
# Whoever has the same source, toolchain and pages (make web) makes the same bytes:
# deploy/reproduce.sh holds that for one of them.
set -eu
cd "$(dirname "$0")/.."
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
GO=${GO:-go}
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 # the newest of which the module proxy has every part
SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 # kept by the format's own project
export CGO_ENABLED=0

# build MODULE PACKAGE NAME GOOS/GOARCH: nothing of this machine, its folders or the time is in it.
build() {
  os=${4%/*} arch=${4#*/} suffix=
  [ "$os" = windows ] && suffix=.exe
  file="$3_${version}_${os}_$arch$suffix"
  GOOS=$os GOARCH=$arch GOFLAGS= GOAMD64=v1 GOARM64=v8.0 "$GO" build -C "$1" -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X main.version=$version" -o "$out/$file" "$2"
  # What it is made of is read from the program itself. The time would be the only thing in it
  # that another build has not.
  GOFLAGS= "$GO" run "$SBOM" bin -json -noserial -std -version "$version" "$out/$file" 2>/dev/null | sed '/^ *"timestamp":/d' >"$out/$file.cdx.json"
  [ -s "$out/$file.cdx.json" ] || { echo "release: no list of what $file is made of" >&2; exit 1; }
  echo "$file"
}

for target in ${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
  build lab ./cmd/starling starling "$target"
  build . ./cmd/starling-edge starling-edge "$target"
done
case " ${TARGETS:-linux/} " in *" linux/"*) GOFLAGS= "$GO" run -C lab ./image/pack "$version" "$out" ;; esac

# The manual and completions are the same for all targets: this machine's program writes them.
manual=$(mktemp -d)
trap 'rm -rf "$manual"' EXIT
GOFLAGS=-trimpath "$GO" build -C lab -o "$manual/starling" ./cmd/starling
"$manual/starling" man "$manual/man"
for shell in bash zsh fish; do "$manual/starling" completion $shell >"$manual/starling.$shell"; done
GOFLAGS= "$GO" run -C lab ./release/make "$version" "$out" "$PWD" "$manual"
for settings in "$out"/nfpm/*.yaml; do
  [ -e "$settings" ] || continue
  for kind in deb rpm; do SOURCE_DATE_EPOCH=315532800 GOFLAGS= "$GO" run "$NFPM" package -f "$settings" -p $kind -t "$out" >/dev/null; done
done
rm -rf "$out/nfpm"

cd "$out"
rm -f SHA256SUMS SHA256SUMS.sig
for file in starling* python/* homebrew/* winget/*; do
  [ -e "$file" ] || continue
  if command -v sha256sum >/dev/null; then sha256sum "$file"; else shasum -a 256 "$file"; fi
done >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
if [ -n "${SIGNING_KEY:-}" ]; then ssh-keygen -q -Y sign -f "$SIGNING_KEY" -n starling SHA256SUMS; fi
