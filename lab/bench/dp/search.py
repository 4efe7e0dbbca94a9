"""What a search over settings costs, by other means than package dp's: epsilons by Google's dp-accounting (its RepeatAndSelectDpEvent),
the numbers of runs by scipy. TestSearch... hold the figures, dp/accounting/testdata/search.json:

    pip install dp-accounting==0.6.0 scipy && python3 lab/bench/dp/search.py > dp/accounting/testdata/search.json
"""
import json
import math

import dp_accounting as da
import numpy as np
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy.stats import logser, nbinom, poisson

# Whole orders alone: between them dp-accounting's bound of a sampled Gaussian is not the least (it rises towards order 1), ours is.
ORDERS = list(range(2, 1001))
SHAPES = {"poisson": math.inf, "geometric": 1.0, "logarithmic": 0.0, "negative-binomial": 0.5}


def spelled(name, shape, mean):
    return f"{name}:{shape:g}:{mean:g}" if name == "negative-binomial" else f"{name}:{mean:g}"


def epsilons():
    rows = []
    for q, z, rounds, delta in [(0.01, 0.8375, 200, 1e-6), (0.01, 1.2457, 2000, 1e-6), (1, 20, 50, 1e-5), (0.2, 3, 100, 1e-5)]:
        one = da.SelfComposedDpEvent(da.PoissonSampledDpEvent(q, da.GaussianDpEvent(z)), rounds)
        if q == 1:
            one = da.SelfComposedDpEvent(da.GaussianDpEvent(z), rounds)
        accountant = rdp.RdpAccountant(ORDERS)
        accountant.compose(one)
        single, curve = accountant.get_epsilon(delta), accountant._rdp
        for name, shape in SHAPES.items():
            for mean in (2, 10, 100):
                whole = rdp._compute_rdp_repeat_and_select(ORDERS, curve, mean, shape)
                eps, _ = rdp.compute_epsilon(ORDERS, whole, delta)
                rows.append({"q": q, "z": z, "rounds": rounds, "delta": delta, "runs": spelled(name, shape, mean), "single": single, "epsilon": eps})
    return rows


def distributions():
    rows = []
    for mean in (2, 10, 100):
        for name, shape in SHAPES.items():
            k = np.array([0, 1, 2, 3, 5, 10, 30, 100, 300])
            if name == "poisson":
                below = poisson.cdf(k, mean)
            else:
                gamma = rdp._gamma_truncated_negative_binomial(shape, mean)
                if shape == 0:
                    below = logser.cdf(k, 1 - gamma)
                else:
                    none = nbinom.pmf(0, shape, gamma)
                    below = (nbinom.cdf(k, shape, gamma) - none) / (1 - none)
            rows.append({"runs": spelled(name, shape, mean), "k": k.tolist(), "below": below.tolist()})
    return rows


def lines(rows):
    return "[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]"


print('{"epsilons": %s,\n"distributions": %s}' % (lines(epsilons()), lines(distributions())))
