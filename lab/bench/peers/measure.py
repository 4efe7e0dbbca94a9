"""Times each simulator over a few rounds and over more, and says what the rounds in
between cost: start-up and compilation are in neither. Processor time is that of all
processes of a simulator (Flower has several), memory the peak of their sum, shared
pages counted once (PSS). Every simulator does so with one step a client and with
MORE of them: what the others cost more is a step, and what is left of a client with one
is all else that the simulator does for it. Simulators take turns, REPEATS times over;
of each figure the median is printed.

    measure.py STARLING BASE DATA

STARLING_PJRT names an XLA plugin, where the program was built with XLA. CLIENTS a
round and ROUNDS are the workload's size."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import psutil

CLIENTS, REPEATS = (int(os.environ.get(name, default)) for name, default in (("CLIENTS", 100), ("REPEATS", 3)))
FEW, MANY = 2, int(os.environ.get("ROUNDS", 8)) + 2
MORE = 5  # steps of a client, to tell a step from the rest
here = os.path.dirname(os.path.abspath(__file__))


def starling(rounds, steps, *more):
    args, out = sys.argv[1:], tempfile.mkdtemp()
    return [args[0], "simulate", "--base", args[1], "--data", args[2], "--population", "1000000", "--cohort", str(CLIENTS),
            "--examples", "16", "--every", "0", "--validation", "8", "--rounds", str(rounds), "--set", f"training.steps={steps}",
            "--set", "training.batch=16", "--set", "adapter.sequence=32", "--set", "adapter.rank_min=8", "--set", "adapter.rank_max=8",
            "--set", "training.arithmetic=exact", "--out", out, "--json", *more]


def peer(script, *environment):
    return lambda rounds, steps: ["env", f"STEPS={steps}", *environment, sys.executable, os.path.join(here, script), str(rounds)]


def run(command):
    """Wall and processor seconds, peak bytes, and standard output."""
    began = time.time()
    log = tempfile.TemporaryFile()
    p = psutil.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=here)
    spent, peak = {}, 0
    while True:
        total = 0
        for q in [p, *p.children(recursive=True)]:
            try:
                t = q.cpu_times()
                spent[q.pid] = t.user + t.system
                total += q.memory_full_info().pss
            except (psutil.Error, FileNotFoundError):
                pass
        peak = max(peak, total)
        try:
            out, _ = p.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            pass
    if p.returncode != 0:
        log.seek(0)
        sys.exit(f"{' '.join(command)}: exit {p.returncode}\n{log.read().decode()[-2000:]}")
    return time.time() - began, sum(spent.values()), peak, out


def clients(name, rounds, out):
    """Clients that were trained: Poisson cohorts differ from round to round."""
    if name.startswith("starling"):
        return sum(r["cohort"] for r in json.loads(out)["rounds"])
    return rounds * CLIENTS


def measure(name, command, steps):
    """Clients a second, processor milliseconds a client, and peak MiB, with so many steps."""
    few, many = run(command(FEW, steps)), run(command(MANY, steps))
    n = clients(name, MANY, many[3]) - clients(name, FEW, few[3])
    wall, cpu = many[0] - few[0], many[1] - few[1]
    print(f"{name}: {n} clients of {steps} steps, {wall:.1f} s, {cpu:.1f} s of processor", file=sys.stderr)
    return n / wall, 1000 * cpu / n, many[2] / 2**20


def main():
    commands = [("starling", starling),
                ("starling, fused", lambda rounds, steps: starling(rounds, steps, "--set", "training.arithmetic=fused")),
                ("PyTorch alone, one thread", peer("pytorch.py")), ("pfl-research, one thread", peer("pfl_research.py", "PFL_THREADS=1")),
                ("pfl-research, a thread a core", peer("pfl_research.py", f"PFL_THREADS={os.cpu_count()}")), ("flower", peer("flower.py")),
                ("flower, a model for each client", peer("flower.py", "FLOWER_KEEPS=0"))]
    if os.environ.get("STARLING_PJRT"):
        commands.insert(2, ("starling on XLA", lambda rounds, steps: starling(rounds, steps, "--engine", "xla")))
    seen = {name: [] for name, _ in commands}
    for turn in range(REPEATS):
        print(f"turn {turn + 1} of {REPEATS}", file=sys.stderr)
        for name, command in commands:
            speed, cpu, peak = measure(name, command, 1)
            step = (measure(name, command, MORE)[1] - cpu) / (MORE - 1)
            seen[name].append((speed, cpu, step, cpu - step, peak))
    rows = {name: [statistics.median(column) for column in zip(*all)] for name, all in seen.items()}
    exact, fused = rows["starling"], rows["starling, fused"]
    print(f"{CLIENTS} clients a round, {MANY - FEW} rounds, {REPEATS} turns.\n")
    print("| simulator | processor ms a client | of it a step | the rest | over starling's | over fused starling's "
          "| clients per second | starling's over it | fused starling's over it | peak memory |")
    print("|" + " --- |" * 10)
    for name, (speed, cpu, step, rest, peak) in rows.items():
        print(f"| {name} | {cpu:.1f} | {step:.1f} | {rest:.1f} | {cpu / exact[1]:.2f} | {cpu / fused[1]:.2f} "
              f"| {speed:.1f} | {exact[0] / speed:.2f} | {fused[0] / speed:.2f} | {peak:.0f} MiB |")
    pfl = min(rows[name][1] for name in rows if name.startswith("pfl"))
    print(f"\nThe goals, by processor time: of Flower's with a kept model exact takes 1/{rows['flower'][1] / exact[1]:.2f} and fused "
          f"1/{rows['flower'][1] / fused[1]:.2f} (goal 3), of pfl-research's at its best number of threads 1/{pfl / exact[1]:.2f} "
          f"and 1/{pfl / fused[1]:.2f} (goal 1).")
    whole = rows["flower"][1]
    print(f"\nWere a step all that a client costs, fused starling would be {whole / fused[2]:.2f} times as fast as Flower is; "
          f"with Flower's own step and nothing else, a simulator would be {whole / rows['flower'][2]:.2f} times as fast.")


main()
