"""What a device's own coin shows by more than the sum, where devices drop out, computed apart from package dp.

Usage: python hits.py > ../../../dp/accounting/testdata/hits.json   (numpy and scipy from PyPI)

small   a few dozen devices, one group: every outcome of the others' coins and dropouts is enumerated, the adversary is
        told them, and the device stays. Per case the exact probability that its coin decides whether its shard is
        released, and the exact epsilon of T rounds: of the pair of one round with the device's vector at the norm and
        with zeros, composed by a Fourier transform of its loss.
before  what jobs sold as epsilon 2 delivered before devices were dealt into groups and hits were accounted: shards of at
        most 64 cut from whoever is drawn, each released if its threshold answers, 5 % corrupted, 2^-40 a round, all
        members there at the draw, a share of them dropping out behind the cut. T q P(hit), and epsilon under zero-out.
"""
import json
from functools import lru_cache
from math import ceil, log2

import numpy as np
from scipy.stats import binom, norm

from losses import composed


DELTA = 1e-6


@lru_cache(None)
def threshold(n, corrupt, bits):
    """The least t above half of n with P[2t - n or more corrupted] at most 2^-bits."""
    for t in range(n // 2 + 1, n + 1):
        if binom.sf(2 * t - n - 1, n, corrupt) <= 2.0**-bits:
            return t
    return None


def exact(ready, rate, dropout, floor, table):
    """Probabilities, over the others, that the shard is released whatever the device does, and that its coin decides."""
    both = tip = 0.0
    for g in range(ready):
        chance = binom.pmf(g, ready - 1, rate)
        for s in range(g + 1):
            p = chance * binom.pmf(s, g, 1 - dropout)
            with_it = g + 1 >= floor and s + 1 >= table[g + 1]
            without = g >= floor and s >= table[g]
            both += p * (with_it and without)
            tip += p * (with_it != without)
    return both, tip


def pair(rate, z, both, tip):
    """One round: masses of (outcome, release) with the device's vector at the norm, and with zeros."""
    x = np.arange(-12 * z, 12 * z + 1, 0.004)
    zeros, ones = norm.pdf(x, 0, z) * 0.004, norm.pdf(x, 1, z) * 0.004
    nothing = np.array([1 - both - tip + tip * (1 - rate)])
    p = np.concatenate([both * ((1 - rate) * zeros + rate * ones), tip * rate * ones, nothing])
    q = np.concatenate([both * zeros, tip * rate * zeros, nothing])
    return p, q


def epsilon(rate, z, both, tip, rounds):
    p, q = pair(rate, z, both, tip)
    return max(composed(p, q, rounds, DELTA), composed(q, p, rounds, DELTA))


def small():
    for ready, rate, dropout, floor, corrupt, bits, z, rounds in [
        (200, 0.1, 0.1, 3, 0.05, 8, 1.0, 50), (150, 0.1, 0.2, 4, 0.02, 10, 1.5, 100), (120, 0.25, 0.1, 5, 0.05, 12, 1.5, 40), (48, 0.25, 0.05, 3, 0.0, 1, 1.2, 100),
        (300, 0.05, 0.3, 3, 0.05, 8, 1.0, 200),
    ]:
        table = [ready + 2] * (ready + 2)
        for n in range(2, ready + 2):
            table[n] = max(threshold(n, corrupt, bits) or ready + 2, floor)
        both, tip = exact(ready, rate, dropout, floor, table)
        yield {"ready": ready, "rate": rate, "dropout": dropout, "floor": floor, "thresholds": " ".join(map(str, table)), "noise": z, "rounds": rounds,
               "tip": tip, "epsilon": epsilon(rate, z, both, tip, rounds), "without_hits": epsilon(rate, z, 1, 0, rounds)}


def before(members, dropout, size=64, rate=0.01, rounds=200, z=0.83751):
    bits = 40 + ceil(log2(max(1, ceil(2 * members * rate / size))))
    both = tip = 0.0
    for others in range(1, int(members * rate * 2.5)):
        chance = binom.pmf(others, members - 1, rate)
        if chance < 1e-14:
            continue
        n = others + 1
        k = -(-n // size)
        small, large = n // k, n % k
        for g, share in ((small, (k - large) * small / n), (small + 1, large * (small + 1) / n)):
            if share > 0 and (t := threshold(g, 0.05, bits)):
                tip += chance * share * binom.pmf(t - 1, g - 1, 1 - dropout)
                both += chance * share * binom.sf(t - 1, g - 1, 1 - dropout)
    return {"members": members, "dropout": dropout, "tqh": rounds * rate * tip, "epsilon": epsilon(rate, z, 1 - tip, tip, rounds)}


if __name__ == "__main__":
    print(json.dumps({"delta": DELTA, "small": list(small()),
                      "before": [before(n, d) for n in (4000, 10000, 20000) for d in (0.05, 0.1, 0.2, 0.3)]}, indent=1))
