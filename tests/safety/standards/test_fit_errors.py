"""Errors of fits: rounding and weights of tables, intervals of parameters, rows that fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import pinloop as pl
from pinloop.safety.standards.fit import fitted

from ...screw_tables import Array
from ..stopping.robots_to_stop import UP, brakes, on_axis, slider, train, wheel
from ..studies.closed_stops import INERTIA, fit, stop_of, table, values

TRUE = {"dynamic_torque": 9.0, "delay": 0.04}
NAMES = ("dynamic_torque", "delay")
SPEEDS = (1.0, 2.0, 3.0)


def rounded(value: float, unit: float) -> float:
    return float(np.round(value / unit) * unit)


def inside(made: pl.safety.Fit) -> list[bool]:
    """Whether the true numbers are in their intervals."""
    ends = [(x.interval, TRUE[x.parameter]) for x in made.parameters]
    return [low <= true <= high for (low, high), true in ends]


def intervals_hold(tables: list[pl.safety.StoppingTable]) -> None:
    """In 95 % of cases: the number that fewer are in only once in a thousand."""
    by = on_axis(**TRUE)
    hits = np.array([inside(fitted(wheel(INERTIA), x, by, NAMES)) for x in tables])
    least = binom.ppf(1e-3, len(tables), 0.95)
    assert len(tables) >= 50 and (hits.sum(axis=0) >= least).all(), hits.sum(axis=0)


def test_intervals_of_rounded_tables_hold_the_truth() -> None:
    """Times to 10 ms and angles to 0.02 rad: rounding is all there is."""
    rng, tables = np.random.default_rng(0), []
    for _ in range(100):
        rows = []
        for speed in rng.uniform(1.0, 3.0, 3):
            time, angle = stop_of(INERTIA, speed, *TRUE.values())
            units = {"time": 0.005, "angle": 0.01}
            numbers = rounded(time, 0.01), rounded(angle, 0.02)
            rows.append(pl.safety.Measured("axis", speed, *numbers, rounding=units))
        tables.append(pl.safety.StoppingTable(tuple(rows)))
    intervals_hold(tables)
    made = fitted(wheel(INERTIA), tables[0], on_axis(**TRUE), NAMES)
    widths = [x.half_width / TRUE[x.parameter] for x in made.parameters]
    assert widths[0] < 0.1 and widths[1] < 0.5  # not by being wide


def test_intervals_of_tables_that_scatter_hold_the_truth() -> None:
    """Errors of 1 % besides rounding: four numbers, two parameters, Student's distribution."""
    rng, tables = np.random.default_rng(1), []
    for _ in range(50):
        rows = []
        for speed in (1.0, 3.0):
            noise = np.exp(rng.normal(0.0, 0.01, 2))
            time, angle = np.array(stop_of(INERTIA, speed, *TRUE.values())) * noise
            numbers = rounded(time, 0.001), rounded(angle, 0.001)
            units = {"time": 0.0005, "angle": 0.0005}
            rows.append(pl.safety.Measured("axis", speed, *numbers, rounding=units))
        tables.append(pl.safety.StoppingTable(tuple(rows)))
    intervals_hold(tables)


def test_rounding_alone_tells_how_exact_an_exact_fit_is() -> None:
    """``T = I v / t``: an error of 1 % in the time is one of 1 % in the torque."""
    row = pl.safety.Measured("axis", 3.0, 0.5, None, rounding={"time": 0.05})
    made = fit(pl.safety.StoppingTable((row,)), ["dynamic_torque"])
    (parameter,) = made.parameters
    assert parameter.error == pytest.approx(12.0 * 0.1 / np.sqrt(3.0), rel=1e-3)
    assert made.exact == ("axis",) and not parameter.scattered
    assert parameter.half_width == pytest.approx(1.96 * parameter.error, rel=1e-4)
    # What the fit knows goes into the brakes, and from there into stops.
    stop = row.stop(wheel(INERTIA), made.brakes)
    band = stop.intervals["stopping_time"]
    assert band.low == pytest.approx(0.5 / (1.0 + 1.96 * 0.1 / np.sqrt(3.0)), rel=1e-3)


def test_coarse_numbers_and_light_rows_count_less() -> None:
    """Two rows that contradict each other: the torque is that of the one that counts."""
    torques, speed = (8.0, 10.0), 3.0
    times = [stop_of(INERTIA, speed, torque)[0] for torque in torques]

    def torque_of(**more: list[Any]) -> float:
        rows = [
            replace(
                pl.safety.Measured("axis", speed, time, None), **{n: x[k] for n, x in more.items()}
            )
            for k, time in enumerate(times)
        ]
        with pytest.warns(pl.PinloopWarning, match="misses the table"):
            made = fit(pl.safety.StoppingTable(tuple(rows)), ["dynamic_torque"])
        return values(made)["dynamic_torque"]

    even = torque_of()
    assert even == pytest.approx(np.sqrt(80.0), rel=2e-3)
    assert torque_of(weight=[3.0, 1.0]) == pytest.approx(8.0**0.75 * 10.0**0.25, rel=2e-3)
    assert torque_of(rounding=[{"time": 1e-4}, {"time": 0.1}]) < even - 0.1


def test_errors_of_a_fit_go_together() -> None:
    """A larger torque with a longer delay explains nearly the same times."""
    noisy = replace(table(INERTIA, SPEEDS, *TRUE.values()))
    rng = np.random.default_rng(4)
    rows = [
        replace(row, time=row.time * f, angle=row.angle * g)
        for row, (f, g) in zip(noisy.rows, np.exp(rng.normal(0, 0.005, (3, 2))), strict=True)
    ]
    made = fit(replace(noisy, rows=tuple(rows)), NAMES)
    (pair,) = made.brakes.correlations
    assert pair.between == ("dynamic_torque:axis", "delay:axis") and pair.coefficient > 0.5
    spreads = made.brakes.joints["axis"].spreads
    for x in made.parameters:
        assert spreads[x.parameter] == pytest.approx(x.half_width / 1.96, rel=1e-4)

    # A table computed by the fitted brakes' distribution scatters as the intervals say.
    def time(torque: float, delay: float) -> Array:
        return np.array(stop_of(INERTIA, 2.0, torque, delay))

    sizes = np.array([spreads[name] for name in NAMES])
    R = np.array([[1.0, pair.coefficient], [pair.coefficient, 1.0]])
    at = [x.value for x in made.parameters]
    slopes = np.stack([(time(at[0] + h, at[1] + k) - time(*at)) / 1e-6
                       for h, k in ((1e-6, 0.0), (0.0, 1e-6))], axis=1)  # fmt: skip
    sigma = np.sqrt(np.diag(slopes @ (np.outer(sizes, sizes) * R) @ slopes.T))
    stop = pl.safety.Measured("axis", 2.0, None, None).stop(wheel(INERTIA), made.brakes)
    for name, half in zip(("stopping_time", "angle:axis"), 1.96 * sigma, strict=True):
        band = stop.intervals[name]
        assert 0.5 * (band.high - band.low) == pytest.approx(half, rel=0.02)


# -- rows that fail -------------------------------------------------------------------------------


def test_comparing_goes_on_after_a_row_that_fails() -> None:
    rows = (
        pl.safety.Measured("nowhere", 1.0, 0.5, None),
        pl.safety.Measured("axis", 3.0, 0.5, 0.6),
    )
    published = pl.safety.StoppingTable(rows)
    made = pl.safety.compare(
        published.attempt(wheel(INERTIA), on_axis(dynamic_torque=8.0)), published
    )
    assert [row.measured.joint for row in made.rows] == ["axis"] and made.robot == "mechanism"
    (failed,) = made.failed
    assert failed.joint == "nowhere" and "no joint 'nowhere'" in failed.reason
    assert "Left out" in str(made) and made.as_dict()["failed"][0]["reason"]


def test_fitting_goes_on_after_a_row_that_fails() -> None:
    """One axis is not there, and one row asks for a stop that gravity does not allow."""
    robot, by = slider(2.0, UP), on_axis(dynamic_torque=30.0)
    up = [pl.safety.Measured("axis", v, v / (15.0 + 9.81), None) for v in (1.0, 2.0)]
    rows = (*up, pl.safety.Measured("nowhere", 1.0, 0.5, None))
    made = fit(pl.safety.StoppingTable(rows), ["dynamic_torque"], by, robot)
    assert values(made)["dynamic_torque"] == pytest.approx(30.0, rel=1e-3)
    assert [x.joint for x in made.comparison.failed] == ["nowhere"]
    assert "Left out" in str(made)


def test_an_axis_goes_on_without_the_row_in_which_it_does_not_stop() -> None:
    """Only the delay is fitted: a brake with less than gravity stops nothing that falls."""
    robot, by = slider(2.0, UP), on_axis(dynamic_torque=15.0, static_torque=25.0, delay=0.01)
    rows = (
        pl.safety.Measured("axis", 2.0, 0.05 + (2.0 - 9.81 * 0.05) / (7.5 + 9.81), None),
        pl.safety.Measured("axis", -1.0, 0.3, None),
    )
    made = fit(pl.safety.StoppingTable(rows), ["delay"], by, robot)
    assert values(made)["delay"] == pytest.approx(0.05, rel=1e-3)
    (failed,) = made.comparison.failed
    assert [x.measured for x in made.comparison.rows] == [
        rows[0]
    ] and "do not bring joint 'axis' to rest" in failed.reason
    with pytest.raises(pl.BadValue, match="do not bring joint 'axis' to rest"):
        fit(pl.safety.StoppingTable(rows[1:]), ["delay"], by, robot)


def test_a_table_of_nothing_that_can_be_computed(tmp_path: Path) -> None:
    file = tmp_path / "stops.csv"
    file.write_text("joint,speed_rad_per_s,time_s\nx,1,0.5\ny,1,0.5\n")
    by = brakes(a={"dynamic_torque": 50.0})
    with pytest.raises(pl.LoadError, match=r"stops.csv:2: .*'x'"):
        fit(pl.safety.StoppingTable.from_csv(file), ["dynamic_torque"], by, train(4.0, 1.0))
