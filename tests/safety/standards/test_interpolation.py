"""Between the cells of tables: exact where the physics is a polynomial, else within bounds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import pinloop as pl
from pinloop.errors import BadValue
from pinloop.safety.standards.interpolation import StopInterpolation, interpolate_stops

from ..studies.arms_to_declare import REACTION, THIRDS, brakes, limits
from .test_annexb import ECCENTRIC, TORQUE, table, turntable

FULL = 1.5
"""Speed of the turntable [rad/s]."""


@cache
def between(checks: int = 12) -> StopInterpolation:
    return interpolate_stops(table(), 0, "axis", checks=checks)


def exact(speed: float, load: float) -> tuple[float, float]:
    """Time and angle of the turntable, which slows down by T / I."""
    v, inertia = FULL * speed, 2.0 + load * 4.0 * 0.5**2
    return REACTION + v * inertia / TORQUE, v * REACTION + v**2 * inertia / (2 * TORQUE)


def test_a_turntable_is_met_everywhere() -> None:
    """Time and angle are polynomials of speed and mass of degree two: nothing is missed."""
    found = between()
    for speed, load in ((0.4, 0.5), (0.33, 1.0), (0.9, 0.34), (1.0, 0.77)):
        estimate = found(speed, payload=load)
        assert estimate[:2] == pytest.approx(exact(speed, load), rel=1e-7)
    assert found.time_bound < 1e-8 and found.distance_bound < 1e-8
    assert found.proven == pytest.approx(0.05 ** (1 / 12))


def test_it_goes_through_the_table() -> None:
    found = between()
    for stop in table().select(category=0):
        estimate = found(stop.speed_share, stop.extension_share, stop.payload_share)
        assert estimate[:2] == pytest.approx((stop.time, stop.distance), rel=1e-12)
    assert found.as_dict()["stopping_time_s"] == found.times.tolist()
    assert "stops between the cells" in str(found) and "12 computed stops" in str(found)


def test_the_bound_holds_for_other_stops() -> None:
    """An arm under gravity with viscous friction, whose stops are no polynomials."""
    turning = turntable(np.array([0.0, 1.0, 0.0]), **limits(-3, 3))
    annex = pl.safety.annex_b(
        turning,
        brakes(axis={"dynamic_torque": 60.0, "viscous": 6.0}),
        payload=ECCENTRIC,
        speeds={"axis": 4.0},
        shares={0: THIRDS},
        categories=(0,),
    )
    found = interpolate_stops(annex, 0, "axis", checks=40, seed=1)
    fresh = interpolate_stops(annex, 0, "axis", checks=60, seed=2)
    assert found.time_bound > 1e-6 and found.proven > 0.92
    for name in ("time", "distance"):
        errors = np.array([abs(getattr(check, f"{name}_error")) for check in fresh.checks])
        share = np.mean(errors <= getattr(found, f"{name}_bound"))
        # Of 60 stops, each within with at least that probability; three standard deviations.
        assert share >= found.proven - 3 * np.sqrt(found.proven * (1 - found.proven) / 60)


def test_mistakes() -> None:
    with pytest.raises(BadValue, match=r"speed is 0\.2; the table of axis 'axis' goes from 0\.33"):
        between()(0.2)
    with pytest.raises(BadValue, match="no table of category 2"):
        interpolate_stops(table(), 2, "axis")
    with pytest.raises(BadValue, match="checks is 0"):
        interpolate_stops(table(), 0, "axis", checks=0)
    one = pl.safety.annex_b(
        turntable(),
        brakes(axis={"dynamic_torque": TORQUE}),
        payload=ECCENTRIC,
        speeds={"axis": FULL},
        categories=(0,),
    )
    with pytest.raises(BadValue, match="stops at 100 % only"):
        interpolate_stops(one, 0, "axis")
