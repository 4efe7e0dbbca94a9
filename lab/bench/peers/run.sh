#!/bin/sh
# The same model, clients and rounds in starling simulate, in Flower's simulation and
# in pfl-research, both from PyPI: CLIENTS of 16 examples, one AdamW step each,
# LoRA of rank 8 over two layers 128 wide, 32 tokens. What a client costs, how much of it
# is the step, clients per second, and memory.
#
#   sh lab/bench/peers/run.sh
#   CLIENTS=100   clients a round
#   ROUNDS=8      rounds that are timed
#   REPEATS=3     turns that the simulators take
#   WORK=DIR      where the environment is installed once (default: a folder of its own in
#                 the user's cache; some 5 GB with PyTorch)
#   PYTHON=...    a Python that already has what requirements.txt names
#   XLA=1         starling on XLA's CPU plugin (make xla) too
#
# starling runs twice: in exact arithmetic, and with fused multiply-add as PyTorch's
# products have it (training.arithmetic). It also clips, quantizes and adds noise, as a deployment would; the peers add
# up plain updates. Flower has an actor a core (with a model kept, and with one for each client), pfl-research one process, with one thread and with a
# thread a core.
set -eu

cd "$(dirname "$0")/../../.."
here=lab/bench/peers
WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/starling/peers}
mkdir -p "$WORK"
say() { echo "lab/bench/peers: $*" >&2; }

python=${PYTHON:-}
if [ -z "$python" ]; then
	python=$WORK/venv/bin/python
	if ! cmp -s "$here/requirements.txt" "$WORK/installed.txt"; then
		say "installing PyTorch, Flower and pfl-research into $WORK/venv"
		python3 -m venv "$WORK/venv"
		"$WORK/venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt" >&2 ||
			{ say "skipped: the peers cannot be installed here"; exit 0; }
		cp "$here/requirements.txt" "$WORK/installed.txt"
	fi
fi
say "building"
xla=
if [ -n "${XLA:-}" ]; then
	STARLING_PJRT=${STARLING_PJRT:-$(sh model/xla/plugin.sh)}
	xla=1
else
	STARLING_PJRT=
fi
export STARLING_PJRT
CGO_ENABLED=${xla:-0} ${GO:-go} build -C lab ${xla:+-tags xla} -o "$WORK/starling" ./cmd/starling
# A base of the shape, which one step of pretraining makes, and labelled texts of more
# than 32 tokens by 140 users.
if [ ! -f "$WORK/base/model.safetensors" ]; then
	"$python" - "$WORK" <<'PY'
import json, random, sys
r = random.Random(1)
words = ["".join(r.choice("aeioubdfgklmnprst") for _ in range(r.randint(3, 8))) for _ in range(6000)]
text = lambda n: " ".join(r.choice(words) for _ in range(n))
with open(sys.argv[1] + "/corpus.txt", "w") as f:
    f.writelines(text(40) + "\n" for _ in range(3000))
with open(sys.argv[1] + "/data.jsonl", "w") as f:
    for user in range(140):
        for k in range(16):
            print(json.dumps({"user": f"u{user}", "label": f"class {(user + k) % 8}", "text": text(40)}), file=f)
PY
	"$WORK/starling" pretrain --corpus "$WORK/corpus.txt" --hidden 128 --layers 2 --vocab 4096 --seq 64 --steps 1 --format f32 \
		--out "$WORK/base" >&2
fi
export OMP_WAIT_POLICY=PASSIVE # PyTorch's threads would spin on a machine that others use too
exec "$python" "$here/measure.py" "$WORK/starling" "$WORK/base" "$WORK/data.jsonl"
