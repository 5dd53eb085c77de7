"""Brakes fitted to tables of robots with several axes, and where the search may lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.standards.axis_fit import AxisFit

from ...papers.programs import program
from ...screw_tables import Array
from ...states import URDF
from ...states import robot as loaded
from ..stopping.robots_to_stop import brakes, on_axis, two_links, wheel
from ..studies.closed_stops import INERTIA, fit, table, values


def made_table(
    robot: pl.Mechanism, by: pl.Brakes, rows: Sequence[pl.safety.Measured]
) -> pl.safety.StoppingTable:
    """The table that a robot with some brakes would have."""
    filled = []
    for row in rows:
        joint = row.stop(robot, by).joints[row.joint]
        filled.append(replace(row, time=joint.time, angle=abs(joint.angle)))
    return pl.safety.StoppingTable(tuple(filled), "made")


def test_the_six_axis_arm() -> None:
    """Table with known brakes; the fit starts from weaker and later ones."""
    robot, true = loaded("six_axis_arm"), pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    rows = [
        pl.safety.Measured("joint_1", speed, None, None, payload=8.0, pose={"joint_2": 0.5})
        for speed in (-1.0, 2.5)
    ]
    published = made_table(robot, true, rows)
    brake = true.joints["joint_1"]
    off = replace(brake, dynamic_torque=5.0, static_torque=6.0, delay=0.06)
    start = replace(true, joints={**true.joints, "joint_1": off})
    made = fit(published, ["dynamic_torque", "delay"], start, robot)
    assert values(made) == pytest.approx({"dynamic_torque": 10.0, "delay": 0.03}, rel=1e-4)
    fitted = made.brakes.joints["joint_1"]
    assert fitted.static_torque == pytest.approx(12.0, rel=1e-4)  # the ratio stays 1.2
    assert made.brakes.joints["joint_2"] == true.joints["joint_2"]


def test_axes_that_influence_each_other() -> None:
    """Each joint slips while the other one stops, so that neither can be fitted by itself."""
    robot = two_links(gravity=[0.0, 0.0, 0.0])
    true = brakes(j1={"dynamic_torque": 9.0}, j2={"dynamic_torque": 2.0})
    rows = [pl.safety.Measured("j1", 4.0, None, None), pl.safety.Measured("j2", -8.0, None, None)]
    slipping = [row.stop(robot, true).joints for row in rows]
    assert abs(slipping[0]["j2"].angle) > 0.4 and abs(slipping[1]["j1"].angle) > 0.4
    published = made_table(robot, true, rows)
    start = brakes(j1={"dynamic_torque": 60.0}, j2={"dynamic_torque": 60.0})
    made = fit(published, ["dynamic_torque"], start, robot)
    assert {one.joint: one.value for one in made.parameters} == pytest.approx(
        {"j1": 9.0, "j2": 2.0}, rel=1e-3
    )
    for row in made.comparison.rows:
        assert (row.time_ratio, row.angle_ratio) == pytest.approx((1.0, 1.0), rel=1e-3)


def test_the_published_numbers_of_a_ur5() -> None:
    """As the program of docs/stopping.md finds them: torque, and that of a shorted motor."""
    try:
        path = program("ur_stopping").example_urdf("ur5_robot.urdf")
    except SystemExit:
        pytest.skip("example-robot-data is not installed")
    robot = pl.load(path)
    published = pl.safety.StoppingTable.from_csv(URDF.parent / "examples" / "ur5_stops.csv")
    assert [round(row.shape or 0.0, 3) for row in published.rows] == [0.398, 0.414, 0.420]
    strong = pl.safety.JointBrake(side="joint", dynamic_torque=1000.0)
    by = pl.Brakes(dict.fromkeys(robot.joints, strong))
    for row, torque, short in zip(
        published.rows, (51.6, 116.7, 53.1), (40.7, 17.6, 10.2), strict=True
    ):
        made = fit(pl.safety.StoppingTable((row,)), ["dynamic_torque", "viscous"], by, robot)
        assert values(made) == pytest.approx(
            {"dynamic_torque": torque, "viscous": short}, abs=0.051
        )


def test_derivatives_at_the_edge_of_what_stops() -> None:
    """A stop is followed for ten times the time of the table; a later brake would not end it.

    Then ``t = D + I v / T`` is near ten times that of the table, s: d log t / d(D / s) = s / t.
    """
    row = pl.safety.Measured("axis", 3.0, 0.1, None)
    names, by = ("delay", "dynamic_torque"), on_axis(dynamic_torque=4.0)
    axis = AxisFit(wheel(INERTIA), by, "axis", [row], names, {})
    assert axis.scale == pytest.approx([0.1, INERTIA * 3.0 / 0.1])
    x = np.array([(0.9 - 5e-6) / 0.1, 1.0])
    later = x + np.array([1e-4, 0.0])
    assert np.all(np.isfinite(axis.errors(x))) and np.all(np.isinf(axis.errors(later)))
    # And d log t / d(T / T0) = -(I v / T) / t for T = T0.
    np.testing.assert_allclose(axis.sensitivity(x), [[0.1, -0.1]], rtol=1e-3)


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_neither_more_nor_less_stops(start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the brake itself, nothing beside it: no derivative, and a sentence instead."""
    numbers = np.full(1, 0.3)

    def errors(axis: AxisFit, x: Array) -> Array:
        return numbers if float(x[0]) == start else np.full(1, np.inf)

    monkeypatch.setattr(AxisFit, "errors", errors)
    rows = [pl.safety.Measured("axis", 1.0, 0.1, None)]
    axis = AxisFit(wheel(), on_axis(dynamic_torque=5.0), "axis", rows, ("delay",), {})
    with pytest.raises(pl.BadValue, match="fit of delay of joint 'axis' has come to the edge"):
        axis.differences(np.array([start]))


def test_stops_that_cannot_be_computed_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search starts where stops fail, and comes back."""
    right = pl.safety.Measured.stop

    def failing(
        row: pl.safety.Measured, robot: pl.Mechanism, by: pl.Brakes, **more: Any
    ) -> pl.StopResult:
        result = right(row, robot, by, **more)
        if by.joints["axis"].dynamic_torque > 30.0:
            raise pl.StopFailed("chatter", result)
        return result

    monkeypatch.setattr(pl.safety.Measured, "stop", failing)
    made = fit(table(INERTIA, [3.0, 1.0], 9.0), ["dynamic_torque"], on_axis(dynamic_torque=99.0))
    assert values(made)["dynamic_torque"] == pytest.approx(9.0, rel=1e-4)


# -- how many stops it takes ----------------------------------------------------------------------

LONG_AGO = {
    ("dynamic_torque",): ([3.0], 12),
    ("dynamic_torque", "delay"): ([-3.0], 25),
    ("dynamic_torque", "viscous"): ([3.0], 29),
    ("viscous", "dynamic_torque", "delay"): ([1.0, -3.0], 68),
}
"""Parameters, speeds, and the stops that a fit with differences made of them."""


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The joints of stops of a table that have been made."""
    right, joints = pl.safety.Measured.stop, list[str]()

    def counted(row: pl.safety.Measured, *given: Any, **more: Any) -> pl.StopResult:
        joints.append(row.joint)
        return right(row, *given, **more)

    monkeypatch.setattr(pl.safety.Measured, "stop", counted)
    return joints


@pytest.mark.parametrize("names", LONG_AGO)
def test_a_fifth_of_the_stops(names: tuple[str, ...], stops: list[str]) -> None:
    """Derivatives come with each stop, and no stop is made twice."""
    speeds, before = LONG_AGO[names]
    true = {"dynamic_torque": 9.0, "delay": 0.04, "viscous": 1.5}
    delay, viscous = (true[key] if key in names else 0.0 for key in ("delay", "viscous"))
    made = fit(table(INERTIA, speeds, 9.0, delay, viscous), names)
    assert values(made) == pytest.approx({name: true[name] for name in names}, rel=1e-4)
    assert len(stops) <= before / 5


@pytest.mark.parametrize(("noise", "less"), [(0.0, 8), (0.01, 6)])
def test_axes_are_fitted_together(noise: float, less: int, stops: list[str]) -> None:
    """Two speeds each; with differences SciPy's least squares made 252 stops of them."""
    robot, true = loaded("six_axis_arm"), pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    axes = ("joint_1", "joint_2", "joint_3")
    rng, rows = np.random.default_rng(5), list[pl.safety.Measured]()
    for joint in axes:
        rows += [pl.safety.Measured(joint, speed, None, None, payload=4.0) for speed in (0.7, 1.5)]
    exact = made_table(robot, true, rows)
    factors = 1.0 + noise * rng.normal(size=(len(rows), 2))
    noisy = [
        replace(row, time=row.time * by[0], angle=row.angle * by[1])
        for row, by in zip(exact.rows, factors.tolist(), strict=True)
        if row.time is not None and row.angle is not None
    ]
    joints = dict(true.joints)
    for joint, torque, delay in zip(axes, (1.3, 2.3, 0.5), (1.9, 1.7, 0.6), strict=True):
        own = joints[joint]
        joints[joint] = replace(
            own, dynamic_torque=own.dynamic_torque * torque, static_torque=None,
            delay=own.delay * delay,
        )  # fmt: skip
    start = replace(true, joints=joints)
    stops.clear()
    made = pl.safety.fit_brakes(
        robot, replace(exact, rows=tuple(noisy)), start, ["dynamic_torque", "delay"]
    )
    assert len(stops) <= 252 / less
    for value in made.parameters:
        wanted = getattr(true.joints[value.joint], value.parameter)
        assert value.value == pytest.approx(wanted, rel=5.0 * noise + 1e-4)
        assert noise == 0.0 or abs(value.value - wanted) < 1.5 * value.half_width


def test_slopes_are_those_by_differences() -> None:
    """Of a static torque in proportion, of a brake in its band, of dry friction at its bound."""
    by = on_axis(
        dynamic_torque=6.0, static_torque=7.0, tolerance=0.2, band=-1.0, coulomb=0.5, delay=0.02
    )
    rows = [pl.safety.Measured("axis", v, 0.8 * abs(v), 1.1) for v in (1.0, -2.0)]
    names = ("dynamic_torque", "coulomb", "viscous", "delay", "rise")
    axis = AxisFit(wheel(INERTIA), by, "axis", rows, names, {})
    x = np.array([by.joints["axis"].dynamic_torque, 0.5, 0.0, 0.02, 0.0]) / axis.scale
    np.testing.assert_allclose(axis.sensitivity(x), axis.differences(x), rtol=2e-3, atol=1e-5)
