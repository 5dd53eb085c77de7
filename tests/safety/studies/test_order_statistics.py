"""What samples prove, against the binomial in closed form and by drawing many studies."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.studies.order_statistics import (
    describe_samples,
    prove,
    proven_share,
    upper_bound,
)


@pytest.mark.parametrize(("count", "share"), [(59, 0.95), (299, 0.99), (2995, 0.999)])  # Wilks 1941
def test_counts_that_are_known(count: int, share: float) -> None:
    assert proven_share(count) >= share > proven_share(count - 1)


@pytest.mark.parametrize("count", [20, 93, 124, 208])
def test_the_rank_is_that_of_the_binomial(count: int) -> None:
    """By the sum of its terms: fewer than k of n cases are below with a probability of 95 %."""
    share, values = 0.95, np.arange(1.0, count + 1.0)

    def fewer(k: int) -> float:
        return sum(comb(count, j) * share**j * (1 - share) ** (count - j) for j in range(k))

    ranks = [k for k in range(1, count + 1) if fewer(k) >= 0.95]
    assert upper_bound(values[::-1], share) == (float(ranks[0]) if ranks else None)


def test_it_holds_as_often_as_it_says() -> None:
    """Of 4,000 studies of 120 cases each bound is too low in at most 5 %, and in nearly as many."""
    generator = np.random.default_rng(3)
    studies = generator.random((4000, 120))
    worst = np.mean(studies.max(axis=1) < proven_share(120))
    assert worst == pytest.approx(0.05, abs=0.01)
    bounds = [upper_bound(values, 0.95) for values in studies]
    low = np.mean([bound is not None and bound < 0.95 for bound in bounds])
    exact = sum(comb(120, j) * 0.95**j * 0.05 ** (120 - j) for j in range(119, 121))
    assert low == pytest.approx(exact, abs=0.01) and low <= 0.05


def test_words() -> None:
    values, cases = np.array([3.0, 1.0, 2.0]), np.array([0, 4, 7])
    samples = describe_samples(values, cases, 1.0, drawn=True)
    assert (samples.count, samples.worst, samples.case, samples.median) == (3, 3.0, 0, 2.0)
    assert samples.bound is None
    text = "with 95 % confidence 36.84 % of all cases are better than the worst of 3 samples"
    assert prove(samples, pl.safety.Random(3)) == text
    assert prove(samples, pl.safety.Sobol(3)) == f"{text}, if these count as drawn independently"
    near = describe_samples(values, cases, -1.0, drawn=False)
    assert (near.worst, near.case, near.proven, near.median) == (1.0, 4, None, 2.0)
    assert near.most == pytest.approx(1.1)  # 95 % of them are larger, between the lower two
    assert prove(near, pl.safety.Grid()) == ""
