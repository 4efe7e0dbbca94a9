#!/bin/sh
# Makes run.sh's base: a small HuBERT that tells the 30 words of Speech Commands, digits among them, of generated voices.
# First it hears 1,203 that espeak-ng computes by rule, then 400 of which 200 are flite's, whose voices are made of what
# four people read aloud for them. (The base whose figures MODELS.md has heard 1,224 in the first part, since their making
# was cut short.) An interrupted one goes on. A recording takes some 16 ms of processor time, a step 76 ms.
#
#   sh lab/bench/fsdd/base.sh DIR
#   STARLING=FILE  the program (default: bin/starling)
#   VOICES=DIR     recordings that are there, in espeak and flite (default: made beside DIR)
set -eu
out=$1
starling=${STARLING:-bin/starling}
voices=${VOICES:-$out-voices}
if [ -z "${VOICES:-}" ]; then
	"$starling" voices --out "$voices/espeak" --speakers 1503 --each 20 --rate 8000 --seed 7
	"$starling" voices --out "$voices/flite" --flite --speakers 500 --each 20 --rate 8000 --seed 7
fi
pretrain() { # recordings, base, steps, flags
	recordings=$1 base=$2 steps=$3
	shift 3
	[ -f "$base/config.json" ] || "$starling" pretrain --architecture hubert --recordings "$voices/$recordings" --out "$base" \
		--steps "$steps" --format bf16 "$@"
}
pretrain espeak "$out-1" 3000
pretrain flite "$out-2" 1500 --from "$out-1"
pretrain flite "$out" 2500 --from "$out-2"
