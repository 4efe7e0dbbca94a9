#!/bin/sh
# Times the compiled training programs beside their peers, all in one run, on one
# thread and on two, and prints markdown: matrix products against OpenBLAS, training steps
# against GoMLX's Go backend (plain and with GOEXPERIMENT=simd), PyTorch and
# TensorFlow.js, and whether the hosts computed the same bits.
#
#   sh bench/wasm/run.sh            everything; peers are installed under $WORK
#   PEERS=0 sh bench/wasm/run.sh    no downloads: programs and GoMLX only
#   WORK=DIR                        where to work (default: a temporary directory,
#                                   removed at the end); PYTHON=... a Python that
#                                   already has torch and numpy
set -eu

cd "$(dirname "$0")/../.."
GO=${GO:-go}
PEERS=${PEERS:-1}
STEPS=${STEPS:-5}
if [ -z "${WORK:-}" ]; then
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
here=$PWD/bench/wasm
out=$WORK/results.jsonl
: >"$out"
say() { echo "bench/wasm: $*" >&2; }

say "building"
$GO build -o "$WORK/steps" ./bench/wasm/steps
simd=1
GOEXPERIMENT=simd $GO build -o "$WORK/steps-simd" ./bench/wasm/steps || simd=0
"$WORK/steps" emit "$WORK"

python=${PYTHON:-}
tfjs=$WORK/tfjs
if [ "$PEERS" = 1 ]; then
	if [ -z "$python" ]; then
		say "installing PyTorch and numpy into a throw-away environment (some 5 GB)"
		{ python3 -m venv "$WORK/venv" && "$WORK/venv/bin/pip" install -q torch numpy; } >&2 && python=$WORK/venv/bin/python ||
			say "PyTorch did not install; its rows are left out"
	fi
	if [ ! -d "$tfjs/node_modules/@tensorflow/tfjs-backend-wasm" ]; then
		say "installing TensorFlow.js"
		mkdir -p "$tfjs"
		(cd "$tfjs" && npm init -y >/dev/null && npm i --silent --no-audit --no-fund @tensorflow/tfjs@4.22.0 @tensorflow/tfjs-backend-wasm@4.22.0) >&2 ||
			{ say "TensorFlow.js did not install; its rows are left out"; rm -rf "$tfjs"; }
	fi
else
	rm -rf "$tfjs"
fi

# Relaxed SIMD is behind a flag in node 20 and on from 22; where it is missing, or rounds twice, its rows are left out.
relaxed=none
for flag in "" --experimental-wasm-relaxed-simd; do
	# shellcheck disable=SC2086
	if [ $relaxed = none ] && node $flag "$here/fuses.mjs" 2>/dev/null; then relaxed=$flag; fi
done
[ "$relaxed" = none ] && say "this node has no fused relaxed SIMD; its rows are left out"
fused_node() { # CASE STEPS WARM [WORKERS]
	[ "$relaxed" = none ] && return
	# shellcheck disable=SC2086
	node $relaxed "$here/run_program.mjs" "$WORK/$1.fused.v8.wasm" "$WORK/$1.bin" --warm "$3" --steps "$2" --cores "${4:-1}" --json
}

"$WORK/steps" wazero "$WORK/peak-mul-add.wasm" "$WORK/peak-mul-add.bin" -warm 3 -steps 100 >>"$out"
node "$here/run_program.mjs" "$WORK/peak-mul-add.wasm" "$WORK/peak-mul-add.bin" --warm 20 --steps 100 --json >>"$out"
for shape in 512,512,512 512,512,16 512,16,512; do
	case=gemm-$(echo $shape | tr , x)
	say "$case"
	if [ -n "$python" ]; then OPENBLAS_NUM_THREADS=1 "$python" "$here/gemm.py" $shape >>"$out"; fi
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 3 -steps 50 >>"$out"
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 3 -steps 50 -kernel twin >>"$out"
	"$WORK/steps" wazero "$WORK/$case.fused.wazero.wasm" "$WORK/$case.bin" -warm 3 -steps 50 >>"$out"
	node "$here/run_program.mjs" "$WORK/$case.v8.wasm" "$WORK/$case.bin" --warm 20 --steps 50 --json >>"$out"
	fused_node "$case" 50 20 >>"$out"
done

for case in tiny-b8-s64 tiny-b16-s32 small-b8-s64 small-nf4-b8-s64; do
	say "$case"
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -steps "$STEPS" >>"$out"
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -steps "$STEPS" -cores 2 >>"$out"
	"$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -steps "$STEPS" -kernel twin >>"$out"
	"$WORK/steps" wazero "$WORK/$case.fused.wazero.wasm" "$WORK/$case.bin" -steps "$STEPS" >>"$out"
	"$WORK/steps" wazero "$WORK/$case.fused.wazero.wasm" "$WORK/$case.bin" -steps "$STEPS" -cores 2 >>"$out"
	for workers in 1 2; do
		node "$here/run_program.mjs" "$WORK/$case.v8.wasm" "$WORK/$case.bin" --warm 3 --steps "$STEPS" --cores $workers --json >>"$out"
		fused_node "$case" "$STEPS" 3 $workers >>"$out"
	done
	case $case in *nf4*) continue ;; esac
	if [ $simd = 1 ]; then
		"$WORK/steps-simd" gomlx "$WORK" $case -steps "$STEPS" -label "gomlx simd" >>"$out"
		"$WORK/steps-simd" gomlx "$WORK" $case -steps "$STEPS" -smooth -label "gomlx simd, expm1 for exp" >>"$out"
	fi
	"$WORK/steps" gomlx "$WORK" $case -steps 2 -label "gomlx plain" >>"$out"
	if [ -n "$python" ]; then
		node "$here/run_program.mjs" "$WORK/$case.v8.wasm" "$WORK/$case.bin" --steps 1 --state "$WORK/$case.state" >/dev/null
		"$python" "$here/torch_step.py" "$WORK" $case --steps "$STEPS" --reference "$WORK/$case.state" >>"$out"
		"$python" "$here/torch_step.py" "$WORK" $case --steps "$STEPS" --threads 2 >>"$out"
	fi
	if [ -d "$tfjs" ]; then
		(cd "$tfjs" && node "$here/tfjs_step.mjs" "$WORK" $case) | tail -n 1 >>"$out"
		(cd "$tfjs" && node "$here/tfjs_step.mjs" "$WORK" $case --explicit) | tail -n 1 >>"$out"
	fi
done

echo "## WebAssembly programs, one run ($(uname -sm), $($GO version | cut -d' ' -f3), node $(node --version))"
"$WORK/steps" report "$WORK"

echo
echo "### Bit-identity: SHA-256 of the state after 20 steps"
echo
echo "| program | native, 2 cores | wazero | wazero, interpreter | node, 2 workers | fused: native, 2 cores | avx2 | node, 2 workers |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
hash() { sed 's/.*"state_sha256":"\([0-9a-f]*\)".*/\1/' | cut -c1-16; }
same=0
for case in tiny-b8-s64 tiny-b16-s32 small-b8-s64 small-nf4-b8-s64; do
	n=$("$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 20 -cores 2 | hash)
	a=$("$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 20 -kernel twin | hash)
	b=-
	case $case in tiny-b16*) b=$("$WORK/steps" wazero "$WORK/$case.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 20 -interpreter | hash) ;; esac
	c=$(node "$here/run_program.mjs" "$WORK/$case.v8.wasm" "$WORK/$case.bin" --steps 20 --cores 2 --json | hash)
	f=$("$WORK/steps" wazero "$WORK/$case.fused.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 20 -cores 2 | hash)
	g=$("$WORK/steps" wazero "$WORK/$case.fused.wazero.wasm" "$WORK/$case.bin" -warm 0 -steps 20 -kernel avx2 2>/dev/null | hash)
	h=$(fused_node "$case" 20 0 2 | hash)
	echo "| $case | $n | $a | $b | $c | $f | ${g:--} | ${h:--} |"
	[ "$n" = "$a" ] && [ "$a" = "$c" ] && { [ "$b" = - ] || [ "$a" = "$b" ]; } &&
		[ "$f" = "${g:-$f}" ] && [ "$f" = "${h:-$f}" ] && [ "$f" != "$a" ] || same=1
done
[ $same = 0 ] || { say "the hosts disagree"; exit 1; }
