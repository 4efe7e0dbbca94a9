#!/usr/bin/env python3
"""Reference epsilons of the composed sampled Gaussian, by a way that shares
nothing with the package: contour integration in 45-digit arithmetic (mpmath).

For the pair P = (1-q) N(0,z^2) + q N(1,z^2), Q = N(0,z^2), L = log P/Q,
    M(s) = E_P[exp(s L)],
    delta(eps) = 1/(2 pi i) * integral over Re s = c > 0 of
                 M(s)^T exp(-s eps) / (s (s+1)) ds        (direction "remove")
since the bilateral Laplace transform of (1 - exp(eps - l))+ in eps is
1/(s(s+1)). The trapezoidal rule with step w is exact but for the terms
exp(c m P) delta(eps + m P), P = 2 pi/w, m != 0 (Poisson summation), which the
choice of w keeps below 1e-18 relative for m < 0 (column "alias"); that those for m > 0
are as small shows by moving c and P. M is a trapezoidal sum over x (analytic,
so exponentially accurate). epsilon then by bisection. Only direction "remove",
which is the larger one in every case listed.

    python3 vectors.py > vectors.csv        (takes some minutes)
"""
import sys
from mpmath import mp, mpf, mpc, exp, log, sqrt, pi, expm1, log1p

mp.dps = 45

CASES = [  # q, z, T, delta, c, period, omega_max
    ("1e-5", "0.7", 100000, "1e-9", 5, 12, 6000),
    ("1e-5", "2", 100000, "1e-12", 60, 2, 6000),
    ("1e-4", "1", 100000, "1e-6", 12, 6, 400),
    ("0.01", "1", 2000, "1e-12", 5, 16, 60),
    ("0.01", "0.6", 300, "1e-12", 2, 40, 250),
    ("0.2", "1.5", 50, "1e-12", 3, 40, 60),
    ("0.001", "2", 5000, "1e-10", 15, 6, 900),
]


def solve(q, z, T, delta, c, period, wmax):
    q, z, delta = mpf(q), mpf(z), mpf(delta)
    # With twice the step the first case comes out 2e-7 off: exp(s L) turns fast.
    h = min(mpf("0.05") * z, mpf("0.06") * z * z)
    lo, hi = -16 * z, c + 1 + 18 * z
    n = int((hi - lo) / h) + 1
    loss, lw = [], []
    for i in range(n):
        x = lo + i * h
        l = log1p(q * expm1((2 * x - 1) / (2 * z * z)))
        loss.append(l)
        lw.append(l - x * x / (2 * z * z) + log(h / z / sqrt(2 * pi)))

    def logm(s):
        # M(s) with its size factored out
        return log(sum(exp(w + s * l) for w, l in zip(lw, loss)))

    step = 2 * pi / period
    terms = []
    peak = None
    k = 0
    while True:
        s = mpc(c, k * step)
        v = T * logm(s)
        if peak is None:
            peak = v.real
        terms.append((s, exp(v - peak) / (s * (s + 1))))
        if v.real - peak < -46 or k * step > wmax:
            break
        k += 1
    cut = abs(terms[-1][1])

    def delta_at(eps):
        total = mpf(0)
        for k, (s, t) in enumerate(terms):
            total += (1 if k else mpf(1) / 2) * (t * exp(-s * eps + peak)).real
        return total * step / pi

    lo, hi = mpf(0), mpf(1)
    while delta_at(hi) > delta:
        hi *= 2
    for _ in range(60):
        mid = (lo + hi) / 2
        if delta_at(mid) > delta:
            lo = mid
        else:
            hi = mid
    # what was cut off, at most (a bound where the tail has set in), relative
    off = cut * exp(-c * hi + peak) * len(terms) * step / delta
    alias = exp(-mpf(c) * period) / delta
    return hi, off, alias


if __name__ == "__main__":
    print("q,z,T,delta,epsilon,cut,alias", flush=True)
    for case in CASES:
        eps, off, alias = solve(*case)
        q, z, T, delta = case[:4]
        print(f"{q},{z},{T},{delta},{mp.nstr(eps, 15)},{mp.nstr(off, 2)},{mp.nstr(alias, 2)}", flush=True)
