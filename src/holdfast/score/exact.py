"""Exact limits of a rate, also where the number of tries is not whole. Pure."""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log

TAIL = 0.025
"""What is left on either side of a 95 % interval."""
_HALVINGS = 30
"""To a billionth: reports show a ten-thousandth."""
_STEPS = 1000
_ENOUGH = 1e-14
_TINY = 1e-300


@lru_cache(maxsize=4096)
def exact_limits(c: float, n: float, tail: float = TAIL) -> tuple[float, float]:
    """Clopper and Pearson's limits of c successes in n tries, 0 to 1: they miss at most `tail` on either side."""
    low = 0.0 if c <= 0 else _beta_quantile(tail, c, n - c + 1)
    high = 1.0 if c >= n else _beta_quantile(1 - tail, c + 1, n - c)
    return low, high


def _beta_quantile(share: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if regularised_beta(middle, a, b) < share else (low, middle)
    return (low + high) / 2


def regularised_beta(x: float, a: float, b: float) -> float:
    """The share of a beta distribution that lies below x."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):  # there the fraction converges fast; else the other tail's does
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, from its front to its end."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            break
    return value


def _away(x: float) -> float:
    """Never zero, so that it can be divided by."""
    return x if abs(x) > _TINY else _TINY
