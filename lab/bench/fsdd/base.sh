#!/bin/sh
# Makes run.sh's base: a small HuBERT that tells sixty words of generated voices, which espeak-ng speaks. An interrupted
# one goes on.
#
#   sh lab/bench/fsdd/base.sh DIR
#   STARLING=FILE  the program (default: bin/starling)
#   VOICES=DIR     recordings that are there (default: made beside DIR)
#   STEPS=N        steps of 16 recordings
set -eu
out=$1
starling=${STARLING:-bin/starling}
voices=${VOICES:-$out-voices}
[ -n "${VOICES:-}" ] || "$starling" voices --out "$voices" --words lab/bench/fsdd/words.txt --speakers 240 --each 20 --rate 8000 --seed 7
"$starling" pretrain --architecture hubert --recordings "$voices" --out "$out" --steps "${STEPS:-3000}" --format bf16
