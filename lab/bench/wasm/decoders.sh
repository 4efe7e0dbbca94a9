#!/bin/sh
# unpadded.sh of decoders' steps, of long texts and of others that have goals: see there for its variables.
#
#   sh lab/bench/wasm/decoders.sh
set -eu
cd "$(dirname "$0")/../../.."
export CASES="${CASES-minilm-full-b8-s128 base-full-b2-s128 t5-full-b4-s256 smollm2-full-b1-s256 smollm2-1g-b1-s256 smollm2-full-b4-s256 smollm2-2g-b4-s256 qwen2-nf4-b1-s128}"
export MEMORY="${MEMORY-base-full-b2-s512 smollm2-nf4-b1-s256 smollm2-nf4-b4-s256}"
exec sh lab/bench/wasm/unpadded.sh
