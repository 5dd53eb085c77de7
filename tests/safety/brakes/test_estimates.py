"""The table of brakes and rotors of other machines: means, ends, and what it says of known ones."""

from __future__ import annotations

import numpy as np
import pytest

from pinloop.safety.brakes import estimates
from pinloop.safety.brakes.estimates import BRAKE_SHARE, DELAY, RISE, ROTOR, STOP_TIME, spreads

ALL = (BRAKE_SHARE, DELAY, RISE, STOP_TIME, *ROTOR.values())


def test_a_source_with_many_figures_counts_like_one_with_few() -> None:
    """Three figures at 1 and one at 100: the mean is 10, not 10^0.5; all lie a decade from it."""
    rows = [estimates.Figure("a", 1.0)] * 3 + [estimates.Figure("b", 100.0)]
    estimate = estimates._estimate(rows)
    assert estimate.value == pytest.approx(10.0) and estimate.count == 4
    deviation = np.log(10.0) * np.sqrt(4 / 3)
    ends = 10.0 * np.exp(1.6448536 * deviation * np.array([-1.0, 1.0]))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(ends), rel=1e-3)


def test_ends_hold_nine_of_ten_of_what_the_mean_is_of() -> None:
    """Drawn anew, from a normal distribution of logarithms with 40 sources of one figure each."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        drawn = np.exp(rng.normal(-3.0, 0.8, 41))
        rows = [estimates.Figure(str(k), x) for k, x in enumerate(drawn[:-1])]
        estimate = estimates._estimate(rows)
        inside.append(estimate.low < drawn[-1] < estimate.high)
    assert 0.86 < np.mean(inside) < 0.94


def test_rotors_do_not_depend_on_the_gear() -> None:
    """J N^2, T N, n / N: a gear between leaves the time as it is."""
    motor = estimates.Motor("x", 2e-4, 3.0, 400.0)
    geared = estimates.Motor("x", 2e-4 * 80**2, 3.0 * 80, 400.0 / 80)
    assert geared.figure == pytest.approx(motor.figure) == pytest.approx(2e-4 * 400 / 3)


def test_every_estimate_is_a_guess_with_sources_and_ends() -> None:
    for estimate in ALL:
        assert 0.0 < estimate.low < estimate.value < estimate.high
        assert estimate.count >= 4 and len(estimate.sources) >= 2 and all(estimate.sources)
        low, high = estimate.factors()
        assert low * high == pytest.approx(1.0)
        assert str(estimate).startswith(f"{estimate.count} figures of {len(estimate.sources)} so")
    for gear in ROTOR:
        known = spreads("servo" if gear == "servo" else "strain wave")
        assert known["rotor_inertia"] == ROTOR[gear].factors()


def test_what_it_says_of_known_machines() -> None:
    """By hand from their sheets, which no code here has read."""
    # FHA-25C-100: 3.4 kg m^2 at the output, 230 N m, 45 rpm.
    own = ROTOR["strain wave"].value * 230 / (45 * 2 * np.pi / 60)
    assert 0.4 < own / 3.4 < 1.0
    # HG-KN 73B: 1.39e-4 kg m^2, 7.2 N m, 5000 rpm, behind a gear of 100.
    own = ROTOR["servo"].value * 720 / (50 * 2 * np.pi / 60)
    assert 0.7 < own / 1.39 < 1.4
    # Brakes of servo motors hold 1 to 2.4 times their rated torque, a third of the peak; the
    # shoulder of a UR5 is stopped by 136 N m and more, its drive has 150 N m.
    assert 1.0 < BRAKE_SHARE.value * 1.15 * 3 < 2.4 and BRAKE_SHARE.high > 136 / 150
    assert DELAY.low < 0.010 and DELAY.high > 0.100
