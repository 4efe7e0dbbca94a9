"""What a floor on the devices that are there does to a sampled job, computed apart from package dp.

Usage: python floor.py > ../../../dp/accounting/testdata/floor.json   (numpy, scipy and dp-accounting from PyPI)

N = 10000 devices, q = 0.01, T = 200 rounds, delta = 1e-6, z calibrated to epsilon 2; a round goes on only with at least
8 of its cohort there. Three rules for a round with fewer:

  redraw   it costs nothing and is drawn again: the rounds that are released hold a device with its probability given
           that a round was released; epsilon by dp-accounting at that rate
  charge   it is paid for and releases noise only, however few are there: the exact pair of one round, others' vectors
           being w each, composed by a Fourier transform of its loss distribution (not by dp, not by dp-accounting).
           A lower bound: other data may be worse.
  quorum   as charge, and nobody is drawn before `quorum` devices are there; the same exact pair at that number, others'
           vectors chosen as before, and the bound on what the floor adds to delta

And what trimming shards would take here: devices cut into groups before the coins, a group's drawn a shard of 8 to 128.
The other groups' sums are where trimming leaves this group's in, so that one round is the pair of `charge` among the
group's members: with 7 others drawn a device's coin decides over all of their sum.
"""
import json

import numpy as np
from losses import composed
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom, norm

Q, T, DELTA, Z, FLOOR, N = 0.01, 200, 1e-6, 0.83751, 8, 10_000
DRAWS, SHARE = T + (T + 3) // 4, 0.01
FLOORED_Z = 0.8377762  # calibrated at the 99 % of delta that the floors leave


def accounted(q, z=Z):
    d = pld.from_gaussian_mechanism(z, sampling_prob=q, value_discretization_interval=1e-4)
    return d.self_compose(T).get_epsilon_for_delta(DELTA)


def included(others):
    """Chance that a device that is there is in a released round."""
    with_it, without = binom.sf(FLOOR - 2, others, Q), binom.sf(FLOOR - 1, others, Q)
    return Q * with_it / (Q * with_it + (1 - Q) * without)


def pair(others, w, z):
    """One round seen by who knows that every other vector is w and the device's is 1: with it, and without."""
    n = np.arange(0, others + 1)
    chance = binom.pmf(n, others, Q)
    n, chance = n[chance > 1e-14], chance[chance > 1e-14]
    lo, hi = min(0, n.max() * w) - 12 * z - 2, max(0, n.max() * w) + 12 * z + 2
    x = np.arange(lo, hi, 0.01)
    with_it, without = np.zeros_like(x), np.zeros_like(x)
    for k, c in zip(n, chance):
        none = norm.pdf(x, 0, z)
        plain = norm.pdf(x, k * w, z) if k >= FLOOR else none
        without += c * plain
        joined = norm.pdf(x, k * w + 1, z) if k + 1 >= FLOOR else none
        with_it += c * ((1 - Q) * plain + Q * joined)
    return with_it / with_it.sum(), without / without.sum()


def worst(others, z=Z):
    best = (0.0, 0.0)
    for w in (-1.0, -0.5, 0.0, 0.5, 1.0):
        p, q = pair(others, w, z)
        best = max(best, (composed(p, q, T, DELTA), w), (composed(q, p, T, DELTA), w))
    return best


def floor_delta(members):
    return Q * DRAWS * binom.cdf(FLOOR - 1, members - 1, Q)


quorum = next(m for m in range(FLOOR, N + 1) if floor_delta(m) <= SHARE * DELTA)
out = {"q": Q, "rounds": T, "delta": DELTA, "noise_multiplier": Z, "floor": FLOOR, "draws": DRAWS, "sold": accounted(Q), "online": []}
for share in (0.06, 0.03):
    others = int(share * N)
    e, w = worst(others)
    out["online"].append({"share": share, "others": others, "included": included(others), "redraw": accounted(included(others)),
                          "charge_at_least": e, "charge_w": w})
e, w = worst(quorum - 1, FLOORED_Z)
out["quorum"] = {"members": quorum, "floor_delta": floor_delta(quorum), "floor_delta_one_less": floor_delta(quorum - 1),
                 "noise_multiplier": FLOORED_Z, "epsilon": e, "w": w}
SIZE = 128
out["groups"] = []
for devices, groups in ((2_400, 3), (10_000, 3), (50_000, 9)):
    members = devices // groups
    e, w = worst(members - 1)
    out["groups"].append({"devices": devices, "groups": groups, "size": SIZE, "epsilon_at_least": e, "w": w,
                          "delta": floor_delta(members) + Q * DRAWS * binom.sf(SIZE - 1, members - 1, Q)})
print(json.dumps(out, indent=1))
