"""Epsilon against colluding devices that tell each other who is in their shards, computed apart from package dp.

Usage: python coalition.py > ../../../dp/accounting/testdata/coalition.json   (numpy and scipy from PyPI)

Per case: the exact pair of one round of a small or large fleet. Every drawn number k of colluding devices in the
device's group is enumerated: with k > 0 the coalition knows the device's coin (it sees it in its roster, or does not),
with k = 0 it is in doubt. Composed by a Fourier transform of the losses.
"""
import json

import numpy as np
from scipy.stats import binom, norm

from losses import composed

DELTA = 1e-6


def pair(rate, z, sees):
    h = 0.002
    x = np.arange(-12 * z, 12 * z + 1, h)
    zeros, ones = norm.pdf(x, 0, z) * h, norm.pdf(x, 1, z) * h
    out = np.array([sees * (1 - rate)])  # seen, and not drawn: nothing of it is in the sum
    p = np.concatenate([(1 - sees) * ((1 - rate) * zeros + rate * ones), sees * rate * ones, out])
    q = np.concatenate([(1 - sees) * zeros, sees * rate * zeros, out])
    return p, q


cases = []
for hostile, rate, groups, z, rounds in [
    (3, 0.3, 1, 3.0, 20), (20, 0.01, 2, 0.8375, 200), (200, 0.01, 2, 0.8375, 200), (1000, 0.01, 2, 0.8375, 200), (500, 0.01, 2, 4.0, 200),
]:
    sees = sum(binom.pmf(k, hostile, rate / groups) for k in range(1, hostile + 1))
    p, q = pair(rate, z, sees)
    eps = max(composed(p, q, rounds, DELTA), composed(q, p, rounds, DELTA))
    cases.append(dict(hostile=hostile, rate=rate, groups=groups, z=z, rounds=rounds, sees=sees, epsilon=eps))
print(json.dumps(cases, indent=1))
