"""What devices' own noise is worth, by another way than package dp's: sums of discrete Gaussians by Fourier transforms of their
masses, epsilons by Fourier transforms of privacy losses and by the closed form of a Gaussian. TestSumRatio and TestOwnEpsilon hold
the figures.

    python3 lab/bench/dp/own.py
"""
import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from losses import composed


def ratio(sigma, n):
    """The largest |log| of the masses of a sum of n discrete Gaussians over those of one of n times the variance, where they are above
    1e-9, and the bound of Kairouz, Liu, Steinke 2021, theorem 1."""
    half = int(12 * sigma * np.sqrt(n)) + 20
    x = np.arange(-half, half + 1)

    def masses(variance):
        m = np.exp(-x.astype(np.float64) ** 2 / (2 * variance))
        return m / m.sum()

    one = np.fft.rfft(np.fft.ifftshift(masses(sigma**2)))
    total = np.fft.fftshift(np.fft.irfft(one**n, len(x)))
    want = masses(n * sigma**2)
    ok = want > 1e-9
    k = np.arange(1, n)
    return np.abs(np.log(total[ok] / want[ok])).max(), 10 * np.exp(-2 * np.pi**2 * sigma**2 * k / (k + 1)).sum()


def gaussian(mu, delta):
    """Epsilon of a Gaussian whose means are mu standard deviations apart (Balle, Wang 2018, theorem 8)."""
    return brentq(lambda e: norm.cdf(mu / 2 - e / mu) - np.exp(e + norm.logcdf(-mu / 2 - e / mu)) - delta, 0, mu * mu + 40 * mu)


def cell(z, mean):
    x = np.linspace(-30 * z, 30 * z + 1, 1 << 18)
    return np.exp(norm.logpdf(x, mean, z)) * (x[1] - x[0])


def hidden(q, z, rounds, delta):
    p = (1 - q) * cell(z, 0) + q * cell(z, 1)
    o = cell(z, 0)
    return max(composed(p, o, rounds, delta), composed(o, p, rounds, delta))


def seen(q, z, rounds, delta):
    nothing = np.array([1 - q])
    p, o = np.concatenate([nothing, q * cell(z, 1)]), np.concatenate([nothing, q * cell(z, 0)])
    return max(composed(p, o, rounds, delta), composed(o, p, rounds, delta))


if __name__ == "__main__":
    for sigma, n in [(0.5, 2), (0.5, 100), (0.7, 2), (0.7, 100), (1.0, 2), (1.0, 10000)]:
        print("sigma %.1f, %5d devices: log ratio %.3g, bound %.3g" % (sigma, n, *ratio(sigma, n)))
    delta, rounds = 1e-6, 200
    z, q = 0.83751, 0.01
    print("hidden coins, z %.5f: %.5f" % (z, hidden(q, z, rounds, delta)))
    print("seen coins, z %.5f: %.4f" % (z, seen(q, z, rounds, delta)))
    for v, apart in [(0.2, 21), (0.2, 1), (0.84, 1), (0.0094, 41)]:
        mu = 1 / (v * np.sqrt(apart))
        print("own noise %.4f of %2d devices: one round %.4f, %d rounds %.3f" % (v, apart, gaussian(mu, delta), rounds, gaussian(mu * np.sqrt(rounds), delta)))
