"""Composition of a round's pair of distributions, by a Fourier transform of its privacy losses."""
import numpy as np


def composed(p, q, rounds, target):
    """Epsilon at delta = target of so many rounds of the pair (p, q) of masses over one grid, by the hockey stick of the composed loss."""
    h, half = 2e-4, 1 << 20
    ok = (p > 1e-300) & (q > 1e-300)
    loss = np.log(p[ok] / q[ok])
    infinite = p[~ok].sum()
    k = np.rint(loss / h).astype(np.int64)
    keep = np.abs(k) < half
    infinite += p[ok][~keep].sum()
    mass = np.zeros(2 * half)
    np.add.at(mass, k[keep] % (2 * half), p[ok][keep])
    total = np.fft.irfft(np.fft.rfft(mass) ** rounds, 2 * half)
    total = np.clip(np.concatenate([total[half:], total[:half]]), 0, None)
    values = (np.arange(2 * half) - half) * h
    tail = 1 - (1 - infinite) ** rounds

    def delta(eps):
        above = values > eps
        return (total[above] * -np.expm1(eps - values[above])).sum() + tail

    if tail > target:
        return float("inf")
    lo, hi = 0.0, values[-1]
    for _ in range(60):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if delta(mid) > target else (lo, mid)
    return hi
