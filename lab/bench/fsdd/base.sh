#!/bin/sh
# Makes run.sh's base: a small HuBERT that tells the 30 words of Speech Commands, digits among them, of 1,503 generated
# voices, which espeak-ng speaks (16 ms of processor time a recording). An interrupted one goes on. A step takes 76 ms of
# processor time.
#
#   sh lab/bench/fsdd/base.sh DIR
#   STARLING=FILE  the program (default: bin/starling)
#   VOICES=DIR     recordings that are there (default: made beside DIR)
#   STEPS=N        steps of 32 recordings
set -eu
out=$1
starling=${STARLING:-bin/starling}
voices=${VOICES:-$out-voices}
[ -n "${VOICES:-}" ] || "$starling" voices --out "$voices" --speakers 1503 --each 20 --rate 8000 --seed 7
"$starling" pretrain --architecture hubert --recordings "$voices" --out "$out" --steps "${STEPS:-3000}" --format bf16
