#!/bin/sh
# Times the compiled training programs beside their peers, all in one run, on one
# thread and on two, and prints markdown: matrix products against OpenBLAS, training steps
# against GoMLX's Go backend (plain and with GOEXPERIMENT=simd), PyTorch and
# TensorFlow.js, and whether the hosts computed the same bits. Some eight minutes of
# two quiet processors, downloads left out.
#
#   sh lab/bench/wasm/run.sh            everything; peers are installed under $WORK
#   PEERS=0 sh lab/bench/wasm/run.sh    no downloads: programs and GoMLX only
#   ROUNDS=2 STEPS=5                how often the programs and PyTorch take turns, and
#                                   timed steps of each turn
#   CASES="tiny-b8-s64"             training steps of these alone
#   WORK=DIR                        where to work (default: a temporary directory,
#                                   removed at the end); PYTHON=... a Python that
#                                   already has torch and numpy
set -eu

cd "$(dirname "$0")/../../.."
GO=${GO:-go}
PEERS=${PEERS:-1}
STEPS=${STEPS:-5}
ROUNDS=${ROUNDS:-2}
if [ -z "${WORK:-}" ]; then
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
here=$PWD/lab/bench/wasm
out=$WORK/results.jsonl
: >"$out"
say() { echo "lab/bench/wasm: $*" >&2; }
cases=${CASES:-tiny-b8-s64 tiny-b16-s32 small-b8-s64 small-nf4-b8-s64}

say "building"
$GO build -C lab -o "$WORK/steps" ./bench/wasm/steps
simd=1
GOEXPERIMENT=simd $GO build -C lab -o "$WORK/steps-simd" ./bench/wasm/steps || simd=0
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

native() { # CASE[.fused] STEPS [OPTION...]
	program=$WORK/$1.wazero.wasm inputs=$WORK/${1%.fused}.bin
	n=$2
	shift 2
	"$WORK/steps" wazero "$program" "$inputs" -steps "$n" "$@"
}
exact_node() { # CASE STEPS WARM [WORKERS [LABEL]]
	node "$here/run_program.mjs" "$WORK/$1.v8.wasm" "$WORK/$1.bin" --warm "$3" --steps "$2" --cores "${4:-1}" --label "${5:-}" --json
}

"$WORK/steps" wazero "$WORK/peak-mul-add.wasm" "$WORK/peak-mul-add.bin" -warm 3 -steps 100 >>"$out"
node "$here/run_program.mjs" "$WORK/peak-mul-add.wasm" "$WORK/peak-mul-add.bin" --warm 20 --steps 100 --json >>"$out"
for shape in 512,512,512 512,512,16 512,16,512; do
	case=gemm-$(echo $shape | tr , x)
	say "$case"
	for round in $(seq "$ROUNDS"); do
		if [ -n "$python" ]; then OPENBLAS_NUM_THREADS=1 "$python" "$here/gemm.py" $shape >>"$out"; fi
		native "$case" 50 -warm 3 >>"$out"
		native "$case" 50 -warm 3 -kernel twin >>"$out"
		native "$case.fused" 50 -warm 3 >>"$out"
		exact_node "$case" 50 20 >>"$out"
		fused_node "$case" 50 20 >>"$out"
	done
done

for case in $cases; do
	say "$case"
	together=$((STEPS * 3)) # steps of two processes at once: most of them beside the other's
	case $case in tiny*) together=$((STEPS * 20)) ;; esac
	for round in $(seq "$ROUNDS"); do
		for class in "" .fused; do
			native "$case$class" "$STEPS" >>"$out"
			native "$case$class" "$STEPS" -cores 2 >>"$out"
		done
		native "$case" "$STEPS" -kernel twin >>"$out"
		for workers in 1 2; do
			exact_node "$case" "$STEPS" 3 $workers >>"$out"
			fused_node "$case" "$STEPS" 3 $workers >>"$out"
		done
		exact_node "$case" $together 3 1 "one of two processes" >"$WORK/beside" &
		beside=$!
		exact_node "$case" $together 3 1 "one of two processes" >>"$out"
		wait $beside
		cat "$WORK/beside" >>"$out"
		case $case in *nf4*) continue ;; esac
		if [ -n "$python" ]; then
			node "$here/run_program.mjs" "$WORK/$case.v8.wasm" "$WORK/$case.bin" --steps 1 --state "$WORK/$case.state" >/dev/null
			"$python" "$here/torch_step.py" "$WORK" $case --steps "$STEPS" --reference "$WORK/$case.state" >>"$out"
			"$python" "$here/torch_step.py" "$WORK" $case --steps "$STEPS" --threads 2 >>"$out"
		fi
	done
	case $case in *nf4*) continue ;; esac
	if [ $simd = 1 ]; then
		"$WORK/steps-simd" gomlx "$WORK" $case -steps 3 -label "gomlx simd" >>"$out"
		"$WORK/steps-simd" gomlx "$WORK" $case -steps 3 -smooth -label "gomlx simd, expm1 for exp" >>"$out"
	fi
	"$WORK/steps" gomlx "$WORK" $case -steps 2 -label "gomlx plain" >>"$out"
	if [ -d "$tfjs" ]; then
		(cd "$tfjs" && node "$here/tfjs_step.mjs" "$WORK" $case) | tail -n 1 >>"$out"
		(cd "$tfjs" && node "$here/tfjs_step.mjs" "$WORK" $case --explicit) | tail -n 1 >>"$out"
	fi
done

echo "## WebAssembly programs, one run ($(uname -sm), $($GO version | cut -d' ' -f3), node $(node --version))"
"$WORK/steps" report "$WORK"

say "the same bits"
echo
echo "### Bit-identity: SHA-256 of the state after 20 steps"
echo
echo "Empty: not on this machine; -: left out, as it would take minutes, or, of fused programs, as there is no twin."
echo
echo "| program | class | native, 2 cores | avx2 | plain Go | twin, wazero | node, 2 workers |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
hash() { sed 's/.*"state_sha256":"\([0-9a-f]*\)".*/\1/' | cut -c1-16; }
bits() { native "$1" 20 -warm 0 $2 2>/dev/null | hash; } # CASE[.fused] OPTIONS
different=0
last=
row() { # CASE CLASS HASH...
	echo "| $1 | $2 | $3 | $4 | $5 | $6 | $7 |"
	first=$3
	[ -n "$first" ] && [ "$first" != "$last" ] || different=1 # the classes' bits are not each other's
	shift 2
	for h; do
		[ -z "$h" ] || [ "$h" = - ] || [ "$h" = "$first" ] || different=1
	done
	last=$first
}
for case in $cases; do
	go=- fusedgo=-
	case $case in tiny*) go=$(bits "$case" "-kernel go") ;; esac
	case $case in tiny-b16*) fusedgo=$(bits "$case.fused" "-kernel go") ;; esac
	row "$case" exact "$(bits "$case" "-cores 2")" "$(bits "$case" "-kernel avx2")" "$go" "$(bits "$case" "-kernel twin")" \
		"$(exact_node "$case" 20 0 2 | hash)"
	row "$case" fused "$(bits "$case.fused" "-cores 2")" "$(bits "$case.fused" "-kernel avx2")" "$fusedgo" - \
		"$(fused_node "$case" 20 0 2 | hash)"
done
[ $different = 0 ] || { say "the hosts disagree"; exit 1; }
