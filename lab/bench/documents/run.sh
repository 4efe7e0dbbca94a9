#!/bin/sh
# Answers about generated documents, from the embedded base: trained centrally, whole,
# and by a simulated federation with DP-DyLoRA's noise, LoRA r = 8 on every map, on
# documents of the same senders; both scored on senders that neither has seen. Prints a
# table.
#
#   sh lab/bench/documents/run.sh
#   ROUNDS=12     of the federation
#
# Some 4 minutes of a core.
set -eu

cd "$(dirname "$0")/../../.."
{
	CGO_ENABLED=0 ${GO:-go} run -C lab ./bench/documents -method full -steps 1200
	CGO_ENABLED=0 ${GO:-go} run -C lab ./bench/documents -method lora -rounds "${ROUNDS:-12}" -cohort 28 -local 8
} | awk 'NR < 3 || /^\| (full|lora)/'
