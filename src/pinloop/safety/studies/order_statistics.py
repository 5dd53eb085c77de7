"""What a number of samples proves about cases that were not looked at, whatever their distribution.

Of n independent cases k are below the value that a share p of all cases stays below with the
binomial probabilities of n and p. So with the confidence c at least that share is below the k-th
smallest sample if P(Bin(n, p) < k) >= c, and below the largest one if p^n <= 1 - c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from ...boundary.arguments import public
from ...boundary.marks import Array, Integers
from .space import Random, Sampling

CONFIDENCE, SHARE = 0.95, 0.99
"""What reports say: with 95 % confidence 99 % of the cases are below."""


def proven_share(count: int) -> float:
    """Share of all cases that are below the largest of so many samples."""
    return float((1.0 - CONFIDENCE) ** (1.0 / count))


def upper_bound(values: Array, share: float = SHARE) -> float | None:
    """The smallest sample below which such a share of all cases is; None if there are too few."""
    below = bdtr(np.arange(len(values), dtype=float), len(values), share)  # P(Bin < k + 1)
    ranks = np.flatnonzero(below >= CONFIDENCE) + 1
    return float(np.sort(values)[ranks[0] - 1]) if len(ranks) else None


@public
@dataclass(frozen=True)
class Sampled:
    """What the samples of a study say of a criterion, over the cases at rest and held at the end.

    Args:
        count: how many there are.
        median: half of them are better.
        most: 95 % of them are better.
        worst: the worst of them.
        case: number of that case.
        proven: share of all cases of the space that are better than the worst sample, with a
            confidence of 95 %; None for grids and corners, whose cases are not drawn.
        bound: what 99 % of all cases are better than, with a confidence of 95 %; None for fewer
            than 299 cases that were drawn.
    """

    count: int
    median: float
    most: float
    worst: float
    case: int
    proven: float | None
    bound: float | None


def describe_samples(values: Array, cases: Integers, sign: float, drawn: bool) -> Sampled:
    """What numbers of cases say, shape (k,), k > 0; bad if large times the sign.

    ``drawn``: whether the cases were drawn, which proves something about others.
    """
    sizes = sign * values
    worst = int(np.argmax(sizes))
    median, most = (sign * float(np.quantile(sizes, part)) for part in (0.5, 0.95))
    bound = upper_bound(sizes) if drawn else None
    return Sampled(
        len(sizes),
        median,
        most,
        float(values[worst]),
        int(cases[worst]),
        proven_share(len(sizes)) if drawn else None,
        None if bound is None else sign * bound,
    )


def prove(samples: Sampled, sampling: Sampling) -> str:
    """What samples prove, in a sentence; empty if nothing."""
    if samples.proven is None:
        return ""
    rider = "" if isinstance(sampling, Random) else ", if these count as drawn independently"
    return (
        f"with {100 * CONFIDENCE:g} % confidence {100 * samples.proven:.4g} % of all cases are "
        f"better than the worst of {samples.count} samples{rider}"
    )
