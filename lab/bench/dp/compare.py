"""Accuracy and time of privacy accountants on the same jobs, one process each.

usage: compare.py path/to/starling output.csv

For every job: epsilon of each accountant and, where it gives one, its lower
bound; seconds of one evaluation. Starling is timed as a whole process, start-up
included; its peers without the import of their libraries. "best" is the smallest
upper bound of all, "excess" how far an accountant is above it, relatively; for
values below starling's rigorous lower bound, "below" is printed: such a value is
not an upper bound.
"""

import csv
import importlib.util
import json
import subprocess
import os
import sys
import types
import warnings

warnings.filterwarnings("ignore")

JOBS = [  # q, z, T, delta
    (0.01, 1.0, 2000, 1e-6),
    (0.01, 1.245736, 2000, 1e-6),
    (0.01, 0.801816, 100, 1e-6),
    (0.2, 0.771484375, 10, 1e-5),
    (0.04, 1.5, 2250, 1e-5),
    (0.0001, 50.0, 100000, 1e-6),
    (0.0001, 0.6, 2000, 1e-7),
    (0.001, 0.6, 100000, 1e-9),
    (0.01, 1.0, 2000, 1e-12),
    (1.0, 5.0, 100, 1e-6),
]


def starling(binary, accountant):
    def run(q, z, t, delta):
        out = subprocess.run(
            [binary, "privacy", "epsilon", "--json", "--accountant", accountant,
             "--sampling-rate", repr(q), "--noise-multiplier", repr(z), "--rounds", str(t), "--delta", repr(delta)],
            check=True, capture_output=True, text=True).stdout
        r = json.loads(out)
        return r["epsilon"], r["epsilon_lower"] or None
    return run


def google(kind):
    import dp_accounting as dpa
    from dp_accounting import pld, rdp

    def run(q, z, t, delta):
        event = dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(q, dpa.GaussianDpEvent(z)), t)
        if q == 1:
            event = dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(z), t)
        acc = rdp.RdpAccountant() if kind == "rdp" else pld.PLDAccountant(value_discretization_interval=1e-4)
        acc.compose(event)
        return acc.get_epsilon(delta), None
    return run


def opacus(kind):
    # The accountants live in opacus.accountants; importing opacus itself pulls in
    # torch, so the package is entered by the side door.
    if "opacus" not in sys.modules:
        spec = importlib.util.find_spec("opacus")
        if spec is None:
            raise ImportError("opacus")
        for name in ("opacus", "opacus.accountants"):
            m = types.ModuleType(name)
            m.__path__ = [p + name.removeprefix("opacus").replace(".", "/") for p in spec.submodule_search_locations]
            sys.modules[name] = m
        # Named in the accountants' type hints only, and all that wants torch.
        optimizers = types.ModuleType("opacus.optimizers")
        optimizers.DPOptimizer = object
        sys.modules["opacus.optimizers"] = optimizers
    if kind == "rdp":
        from opacus.accountants.analysis import rdp as privacy_analysis
        alphas = [1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64))

        def run(q, z, t, delta):
            r = privacy_analysis.compute_rdp(q=q, noise_multiplier=z, steps=t, orders=alphas)
            return float(privacy_analysis.get_privacy_spent(orders=alphas, rdp=r, delta=delta)[0]), None
        return run
    import numpy as np
    from opacus.accountants.analysis import prv as p

    def run(q, z, t, delta):
        # As opacus.accountants.PRVAccountant does it, at its default errors.
        eps_error, delta_error = 0.01, delta / 1000
        prv = p.PoissonSubsampledGaussianPRV(q, z)
        half = p.compute_safe_domain_size(prvs=[prv], max_self_compositions=[t], eps_error=eps_error, delta_error=delta_error)
        mesh = eps_error / np.sqrt(t / 2 * np.log(12 / delta_error))
        domain = p.Domain.create_aligned(-half, half, mesh)
        truncated = p.TruncatedPrivacyRandomVariable(prv, domain.t_min, domain.t_max)
        composed = p.compose_heterogeneous([p.discretize(truncated, domain)], [t])
        lo, _, hi = composed.compute_epsilon(delta, delta_error, eps_error)
        return float(hi), float(lo)
    return run


def timed(run, job):
    """The result, and the least processor time of three calls: this process's and, for
    starling, its child's."""
    least = None
    for _ in range(3):
        before = os.times()
        result = run(*job)
        after = os.times()
        spent = sum(after[:4]) - sum(before[:4])
        least = spent if least is None else min(least, spent)
    return result, least


def main():
    binary = sys.argv[1]
    peers = {"starling tight": lambda: starling(binary, "tight"), "starling rdp": lambda: starling(binary, "rdp"),
             "google pld": lambda: google("pld"), "google rdp": lambda: google("rdp"),
             "opacus rdp": lambda: opacus("rdp"), "opacus prv": lambda: opacus("prv")}
    runs = {}
    for name, make in peers.items():
        try:
            runs[name] = make()
        except Exception as e:
            print(f"{name}: left out: {type(e).__name__}: {e}", file=sys.stderr)
    rows = []
    for job in JOBS:
        results = {}
        for name, run in runs.items():
            try:
                (hi, lo), seconds = timed(run, job)
            except Exception as e:
                print(f"{name} {job}: {type(e).__name__}: {e}", file=sys.stderr)
                continue
            results[name] = (hi, lo, seconds)
        if "starling tight" not in results:
            sys.exit(f"starling failed on {job}: nothing to compare with")
        truth = results["starling tight"][1]
        best = min(hi for hi, _, _ in results.values() if hi >= truth * (1 - 1e-9))
        for name, (hi, lo, s) in results.items():
            note = "below" if hi < truth * (1 - 1e-9) else f"{hi / best - 1:.2e}"
            rows.append([*job, name, f"{hi:.9g}", "" if lo is None else f"{lo:.9g}", note, f"{s:.3f}"])
    columns = ["q", "z", "rounds", "delta", "accountant", "epsilon", "lower", "excess", "seconds"]
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(columns)
            out.writerows(rows)
        return
    names = list(runs)
    print("| q, z, rounds, delta | " + " | ".join(names) + " |")
    print("| --- " * (len(names) + 1) + "|")
    for job in JOBS:
        cells = {r[4]: f"{r[7]}, {float(r[8]):.2g} s" for r in rows if tuple(r[:4]) == tuple(job)}
        print(f"| {', '.join(f'{v:g}' for v in job)} | " + " | ".join(cells.get(n, "-") for n in names) + " |")


if __name__ == "__main__":
    main()
