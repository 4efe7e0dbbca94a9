"""Writes banded.json: banded noise by brute force, with numpy and scipy; none of Starling's code.

For each small mechanism all sets of rows that a device may take part in (rows of two at least the separation apart) are
tried, with all signs of its updates: the largest squared norm of what they move is the squared sensitivity. epsilon is
that of one Gaussian mechanism (Balle and Wang 2018, theorem 8).
"""

import itertools
import json
from fractions import Fraction
from math import ceil, exp, log

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import norm


def coefficients(band, eighths):
    """Of (1-x)^-(eighths/8), times 2^16, rounded up; exact."""
    out, c = [], Fraction(1)
    for i in range(band):
        if i:
            c *= Fraction(8 * (i - 1) + eighths, 8 * i)
        out.append(ceil(c * 2**16))
    return out


def sensitivity2(rows, band, separation, eighths):
    c = coefficients(band, eighths)
    m = np.zeros((rows, rows), dtype=object)
    for t in range(rows):
        for i in range(min(band, rows - t)):
            m[t + i, t] = c[i]
    most = 0
    for pattern in itertools.product((0, 1), repeat=rows):
        at = [t for t in range(rows) if pattern[t]]
        if any(b - a < separation for a, b in zip(at, at[1:])):
            continue
        for signs in itertools.product((1, -1), repeat=max(0, len(at) - 1)):
            u = np.zeros(rows, dtype=object)
            for t, sign in zip(at, (1,) + signs):
                u[t] = sign
            y = m @ u
            most = max(most, int(sum(v * v for v in y)))
    return most


def epsilon(mu, delta):
    def f(e):
        return norm.cdf(mu / 2 - e / mu) - exp(e + log_ndtr(-mu / 2 - e / mu)) - delta

    return brentq(f, 0, mu * mu / 2 + 10 * mu, xtol=1e-13)


def main():
    cases = []
    for rows, band, separation, eighths in [
        (1, 1, 1, 4), (5, 1, 1, 4), (6, 2, 2, 4), (7, 2, 3, 4), (8, 3, 3, 4), (9, 3, 4, 5), (10, 4, 4, 5),
        (10, 2, 5, 4), (11, 4, 5, 4), (12, 5, 5, 4), (12, 3, 5, 7), (13, 6, 6, 1), (13, 13, 13, 4), (12, 4, 11, 4),
        (14, 5, 7, 5),
    ]:
        s2 = sensitivity2(rows, band, separation, eighths)
        z = 2.5
        cases.append({
            "rows": rows, "band": band, "separation": separation, "eighths": eighths, "sensitivity2": s2,
            "noise_multiplier": z, "delta": 1e-6, "epsilon": epsilon((s2 / 2**32) ** 0.5 / z, 1e-6),
        })
    table = {str(e): [coefficients(4096, e)[i] for i in (0, 1, 2, 3, 10, 99, 1000, 4095)] for e in range(1, 8)}
    with open("dp/testdata/banded.json", "w") as f:  # from the root of the repository
        f.write('{"coefficients": ' + json.dumps(table) + ', "cases": [\n')
        f.write(",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


main()
