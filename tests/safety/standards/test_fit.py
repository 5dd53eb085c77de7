"""Brakes fitted to tables: what is recovered, what is not identified, how large the errors are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

import pinloop as pl
from pinloop.safety.standards.axis_fit import AxisFit

from ...screw_tables import Array
from ..stopping.robots_to_stop import on_axis, slider, wheel
from ..studies.closed_stops import INERTIA, fit, only, stop_of, table, values

TRUE = {"dynamic_torque": 9.0, "delay": 0.04, "viscous": 1.5}


def warned(
    one: pl.safety.StoppingTable, names: Sequence[str], part: str, by: pl.Brakes
) -> pl.safety.Fit:
    """A fit with one warning."""
    with pytest.warns(pl.PinloopWarning, match=part) as caught:
        made = fit(one, names, by)
    assert [str(warning.message) for warning in caught] == list(made.warnings)
    assert len(caught) == 1
    return made


def not_identified(made: pl.safety.Fit) -> list[str]:
    return [one.parameter for one in made.parameters if one.error == np.inf]


# -- one joint, closed forms ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "speeds"),
    [
        (["dynamic_torque"], [3.0]),
        (["dynamic_torque", "delay"], [-3.0]),
        (["dynamic_torque", "viscous"], [3.0]),
        (["viscous", "dynamic_torque", "delay"], [1.0, -3.0]),
    ],
)
def test_parameters_are_recovered(names: list[str], speeds: list[float]) -> None:
    given = {name: TRUE[name] for name in names}
    published = table(INERTIA, speeds, given["dynamic_torque"], given.get("delay", 0.0),
                      given.get("viscous", 0.0))  # fmt: skip
    made = fit(published, names)
    assert values(made) == pytest.approx(given, rel=1e-4)
    assert [one.parameter for one in made.parameters] == names and made.warnings == ()
    for row in made.comparison.rows:
        assert (row.time_ratio, row.angle_ratio) == pytest.approx((1.0, 1.0), rel=1e-5)
    # With more numbers than parameters the fit knows how exact it is; without, it says so.
    spare = 2 * len(speeds) - len(names)
    errors = [one.error for one in made.parameters]
    assert np.isnan(errors).all() if spare == 0 else np.max(errors) < 1e-3


@pytest.mark.parametrize("start", [0.01, 1000.0])
def test_the_start_does_not_matter(start: float) -> None:
    published = table(INERTIA, [1.0, 3.0], 9.0, 0.04)
    made = fit(published, ["dynamic_torque", "delay"], on_axis(dynamic_torque=start, delay=0.2))
    assert values(made) == pytest.approx({"dynamic_torque": 9.0, "delay": 0.04}, rel=1e-4)


def test_a_robot_that_the_first_brakes_do_not_stop() -> None:
    """Down a slope gravity is stronger than the brake that the search starts with."""
    slope, mass, force, v = 0.5, 2.0, 15.0, 2.0
    robot, by = slider(mass, slope), on_axis(dynamic_torque=5.0)
    rate = force / mass - 9.81 * np.sin(slope)
    published = pl.safety.StoppingTable(
        (pl.safety.Measured("axis", -v, v / rate, v**2 / (2 * rate)),)
    )
    made = fit(published, ["dynamic_torque"], by, robot)
    assert values(made)["dynamic_torque"] == pytest.approx(force, rel=1e-5)
    with pytest.raises(pl.BadValue, match="do not bring joint 'axis' to rest"):
        fit(published, ["delay"], by, robot)


def test_axes_that_slide() -> None:
    """Newtons and meters; motor side with a gear: ``F = N T``."""
    by = on_axis(side="motor", gear_ratio=50.0, dynamic_torque=1.0, rotor_inertia=0.0)
    published = table(4.0, [0.5, 1.0], torque=60.0, viscous=20.0)
    made = fit(published, ["dynamic_torque", "short_circuit"], by, slider(4.0))
    assert values(made) == pytest.approx(
        {"dynamic_torque": 60.0 / 50.0, "short_circuit": 20.0 / 50.0**2}, rel=1e-4
    )
    assert [one.unit for one in made.parameters] == ["N m", "N m s/rad"]
    direct = fit(published, ["dynamic_torque", "viscous"], None, slider(4.0))
    assert [one.unit for one in direct.parameters] == ["N", "N s/m"]


def test_a_rise() -> None:
    """In the rise the speed falls by ``T s^2 / 2 r I``."""
    torque, rise = 8.0, 0.3
    rows = []
    for v in (2.0, 4.0):
        left = v - torque * rise / (2 * INERTIA)
        angle = v * rise - torque * rise**2 / (6 * INERTIA) + left**2 * INERTIA / (2 * torque)
        rows.append(pl.safety.Measured("axis", v, rise + left * INERTIA / torque, angle))
    made = fit(pl.safety.StoppingTable(tuple(rows)), ["dynamic_torque", "rise"])
    assert values(made) == pytest.approx({"dynamic_torque": torque, "rise": rise}, rel=1e-4)


def test_what_is_not_fitted_stays() -> None:
    """The chain of 15 ms leaves 25 ms of 40 ms for the delay."""
    by = on_axis(pl.safety.Chain(0.005, 0.01), dynamic_torque=1.0, peak_gear_torque=50.0)
    made = fit(table(INERTIA, [3.0, 1.0], 9.0, 0.04), ["dynamic_torque", "delay"], by)
    assert values(made) == pytest.approx({"dynamic_torque": 9.0, "delay": 0.025}, rel=1e-4)
    assert made.brakes.chain == by.chain and made.brakes.joints["axis"].peak_gear_torque == 50.0


# -- what the data tells --------------------------------------------------------------------------

BY = on_axis(dynamic_torque=4.0, delay=0.03)


def test_three_parameters_from_one_stop() -> None:
    published = table(INERTIA, [3.0], 9.0, 0.04, 1.5)
    part = r"joint 'axis': 1 stop with 2 numbers do not identify .*fix one of them"
    made = warned(published, ["dynamic_torque", "delay", "viscous"], part, BY)
    assert not_identified(made) == ["dynamic_torque", "delay", "viscous"]
    # It fits all the same, and the file says that its numbers are not to be trusted.
    assert made.comparison.rows[0].time_ratio == pytest.approx(1.0, rel=1e-4)
    assert made.comparison.rows[0].angle_ratio == pytest.approx(1.0, rel=1e-4)
    brake = made.brakes.joints["axis"]
    assert {brake.sources[name] for name in TRUE} == {"guess"}
    assert "does not identify it" in brake.notes["delay"]


@pytest.mark.parametrize("which", ["times", "angles"])
def test_torque_and_delay_from_one_speed_and_from_two(which: str) -> None:
    """``t = D + I v / T`` at one speed is one number, however often it is measured."""
    kept = {"times": which == "times", "angles": which == "angles"}
    names = ["dynamic_torque", "delay"]
    once = only(table(INERTIA, [3.0, 3.0, -3.0], 9.0, 0.04), **kept)
    part = "3 stops with 3 numbers do not identify dynamic_torque and delay"
    assert not_identified(warned(once, names, part, BY)) == names
    twice = only(table(INERTIA, [3.0, 1.0, -1.0], 9.0, 0.04), **kept)
    made = fit(twice, names, BY)
    assert values(made) == pytest.approx({"dynamic_torque": 9.0, "delay": 0.04}, rel=1e-4)
    assert not_identified(made) == []


def test_time_and_angle_at_one_speed_tell_torque_and_delay() -> None:
    """``D = 2 d / v - t``."""
    row = pl.safety.Measured("axis", 3.0, 0.5, 0.8)
    made = fit(pl.safety.StoppingTable((row,)), ["dynamic_torque", "delay"], BY)
    delay = 2 * 0.8 / 3.0 - 0.5
    assert values(made) == pytest.approx(
        {"dynamic_torque": INERTIA * 3.0 / (0.5 - delay), "delay": delay}, rel=1e-4
    )
    # Two numbers for two parameters: nothing is left that could tell how exact they are.
    assert all(np.isnan(one.error) for one in made.parameters) and "not known" in str(made)
    text = " ".join(str(made).split())
    assert "axis: as many numbers as parameters: fits exactly, proves nothing" in text
    assert made.exact == ("axis",) and made.as_dict()["exact"] == ["axis"]
    ramp = (0.5 - delay) * 2.0 / 3.0
    other = pl.safety.Measured("axis", 2.0, delay + ramp, 2.0 * delay + ramp)
    more = pl.safety.StoppingTable((row, other))
    assert fit(more, ["dynamic_torque", "delay"], BY).exact == ()


def test_what_acts_alike_cannot_be_told_apart() -> None:
    published = table(INERTIA, [1.0, 2.0, 3.0], 9.0)
    part = "6 numbers do not identify dynamic_torque and coulomb"
    made = warned(published, ["dynamic_torque", "coulomb"], part, on_axis(dynamic_torque=4.0))
    assert not_identified(made) == ["dynamic_torque", "coulomb"]
    with pytest.warns(pl.PinloopWarning, match="viscous and short_circuit: other"):
        made = fit(table(INERTIA, [1.0, 3.0], 9.0, 0.0, 1.5),
                   ["dynamic_torque", "viscous", "short_circuit"])  # fmt: skip
    assert not_identified(made) == ["viscous", "short_circuit"]
    assert values(made)["dynamic_torque"] == pytest.approx(9.0, rel=1e-3)


def test_a_fit_may_come_to_where_a_parameter_shows_no_more() -> None:
    """Power goes at 100 ms: a shorter delay changes nothing, which who starts there is told."""
    chain = pl.safety.Chain(sensor=0.0, controller=0.0, drive_off=0.1)
    by = replace(on_axis(dynamic_torque=4.0, delay=0.05), chain=chain)
    row = pl.safety.Measured("axis", 3.0, 0.6, 0.9)
    names = ("dynamic_torque", "delay")
    axis = AxisFit(wheel(INERTIA), by, "axis", [row], names, {})
    with pytest.raises(pl.BadValue, match="its delay: its brake acts before the power goes"):
        axis.solve()
    _, delay = axis.solve(anew=False).parameters
    assert not delay.identified


@pytest.mark.parametrize(
    ("category", "name", "why"),
    [
        (1, "dynamic_torque", "the drive brings it to rest before brakes come and power goes"),
        ("SS2", "viscous", "the drive brings it to rest before brakes come and power goes"),
        (1, "drive_torque", "the drive follows its ramp, and has the torque for it"),
        ("STO", "deceleration", "in category 0 the power is cut at once"),
    ],
)
def test_what_the_stops_do_not_show_is_refused(category: int | str, name: str, why: str) -> None:
    """In a stop of category 1 the brake comes when all stand: only the drive is seen."""
    by = on_axis(dynamic_torque=4.0, deceleration=5.0, drive_torque=50.0)
    row = pl.safety.Measured("axis", 3.0, 0.6, 0.9, category=category)
    part = f"no stop of joint 'axis' in the table depends on its {name}: {why}"
    with pytest.raises(pl.BadValue, match=part):
        fit(pl.safety.StoppingTable((row,)), [name], by)


def test_what_a_drive_that_lacks_torque_lets_through_is_fitted() -> None:
    """The drive gives all it has: the stop shows its torque, and friction beside it."""
    by = on_axis(dynamic_torque=4.0, deceleration=50.0, drive_torque=3.0)
    rows = [pl.safety.Measured("axis", v, INERTIA * v / 9.0, None, category=1) for v in (1.0, 2.0)]
    made = fit(pl.safety.StoppingTable(tuple(rows)), ["drive_torque"], by)
    assert values(made)["drive_torque"] == pytest.approx(9.0, rel=1e-4)


def test_times_of_power_and_brakes_are_numbers_too() -> None:
    """SS1-r: the power goes when brakes hold what stands; the brake is seen by its times alone."""
    by = on_axis(pl.safety.Chain(controller=0.01), dynamic_torque=40.0, deceleration=2.0)
    rows = []
    for v in (1.0, 2.0):
        time = 0.01 + v / 5.0
        row = pl.safety.Measured("axis", v, time, 0.01 * v + v**2 / 10.0, category="SS1-r")
        rows.append(replace(row, power_off=time + 0.04, brakes_closed=time + 0.04))
    made = fit(pl.safety.StoppingTable(tuple(rows)), ["deceleration", "delay"], by)
    assert values(made) == pytest.approx({"deceleration": 5.0, "delay": 0.04}, rel=1e-4)
    assert "power off" in str(made) and made.warnings == ()
    first = made.comparison.as_dict()["rows"][0]
    assert first["power_off_s"] == pytest.approx(first["published_power_off_s"], rel=1e-4)


def test_a_law_that_cannot_explain_the_table() -> None:
    """The shape of 0.4 is out of reach of a constant torque: too long and too short at once."""
    row = pl.safety.Measured("axis", 3.0, 0.5, 0.6)
    made = warned(pl.safety.StoppingTable((row,)), ["dynamic_torque"], "cannot explain", on_axis())
    # Both are proportional to 1/T, shape 0.5: the best is 1/T off by the same part in each.
    low, high = np.log(0.5 * 9.0 / (INERTIA * 3.0)), np.log(0.6 * 9.0 / (INERTIA * 4.5))
    expected = 9.0 * np.exp(-(low + high) / 2)
    assert values(made)["dynamic_torque"] == pytest.approx(expected, rel=1e-6)
    assert f"misses the table by {100 * (high - low) / -2:.2g} %" in made.warnings[0]
    # One number too much: the misfit of both is the standard error of each.
    (error,) = (one.error for one in made.parameters)
    assert error == pytest.approx(expected * abs(high - low) / np.sqrt(2) / np.sqrt(2), rel=1e-3)


def test_rows_without_numbers_do_not_count() -> None:
    rows = (*table(INERTIA, [3.0], 9.0).rows, pl.safety.Measured("axis", 2.0, None, None))
    made = fit(pl.safety.StoppingTable(rows), ["dynamic_torque"])
    assert values(made)["dynamic_torque"] == pytest.approx(9.0)
    assert len(made.comparison.rows) == 2 and made.comparison.rows[1].time_ratio is None


# -- bounds ---------------------------------------------------------------------------------------


def test_a_parameter_that_is_zero() -> None:
    part = "joint 'axis': viscous is fitted to zero"
    published = table(INERTIA, [1.0, 2.0, 3.0], 9.0, 0.1)
    # A viscous loss shortens times and ways of fast stops; here they are longer.
    rows = tuple(replace(row, angle=row.angle * (1.0 + 0.01 * row.speed))  # type: ignore[operator]
                 for row in published.rows)  # fmt: skip
    made = warned(pl.safety.StoppingTable(rows), ["dynamic_torque", "viscous"], part, BY_DELAYED)
    assert values(made)["viscous"] == 0.0 and made.brakes.joints["axis"].viscous == 0.0
    assert values(made)["dynamic_torque"] == pytest.approx(9.0, rel=0.05)
    assert all(np.isfinite(one.error) for one in made.parameters)


BY_DELAYED = on_axis(dynamic_torque=4.0, delay=0.1)


def test_a_delay_beyond_the_published_time() -> None:
    """The brake comes too late whatever its torque: the delay is what is wrong."""
    published = table(INERTIA, [3.0], 9.0, 0.0)
    with pytest.warns(pl.PinloopWarning):
        made = fit(published, ["dynamic_torque"], on_axis(dynamic_torque=9.0, delay=0.9))
    blind, misses = made.warnings
    assert "do not identify dynamic_torque" in blind and "cannot explain it" in misses
    assert values(made)["dynamic_torque"] > 9.0


# -- noise ----------------------------------------------------------------------------------------

SIGMA = 0.01
SPEEDS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])


def by_hand(data: Array) -> tuple[Array, float]:
    """Torque and delay from the closed form, and the spread; data in the order of the rows."""

    def errors(x: Array) -> Array:
        pairs = [stop_of(INERTIA, float(v), 9.0 * x[0], 0.04 * x[1]) for v in SPEEDS]
        return np.asarray(np.log(pairs) - np.log(data)).ravel()

    done = least_squares(errors, [1.0, 1.0], xtol=1e-12, ftol=1e-12)
    return np.array([9.0, 0.04]) * done.x, float(np.sqrt(2 * done.cost / (data.size - 2)))


def noisy(rng: np.random.Generator) -> Array:
    exact = np.array([stop_of(INERTIA, float(v), 9.0, 0.04) for v in SPEEDS])
    return np.asarray(exact * (1.0 + SIGMA * rng.normal(size=exact.shape)))


def test_standard_errors() -> None:
    """The scatter of 400 fits by hand is that which one fit tells of itself."""
    rng = np.random.default_rng(11)
    fits = [by_hand(noisy(rng)) for _ in range(400)]
    scatter = np.std([x for x, _ in fits], axis=0)
    data = noisy(rng)
    expected, spread = by_hand(data)
    rows = tuple(
        pl.safety.Measured("axis", float(v), float(time), float(angle))
        for v, (time, angle) in zip(SPEEDS, data, strict=True)
    )
    made = fit(pl.safety.StoppingTable(rows), ["dynamic_torque", "delay"])
    assert list(values(made).values()) == pytest.approx(expected, rel=1e-3)
    assert 0.5 * SIGMA < spread < 1.5 * SIGMA
    found = np.array([one.error for one in made.parameters])
    # The scatter is that of the true spread; 400 draws tell it to 4 %.
    np.testing.assert_allclose(found, scatter * spread / SIGMA, rtol=0.12)
    assert np.all(np.abs(expected - [9.0, 0.04]) < 3 * found)


# -- what comes out -------------------------------------------------------------------------------


def test_the_brakes_file(tmp_path: Path) -> None:
    by = on_axis(dynamic_torque=4.0, static_torque=5.0, coulomb=1.0)
    published = replace(table(INERTIA, [1.0, 3.0], 8.0), source="bench.csv")
    made = fit(published, ["dynamic_torque"], by)
    brake = pl.Brakes.from_yaml(made.brakes.to_yaml(tmp_path / "fitted.yaml")).joints["axis"]
    assert brake.dynamic_torque == pytest.approx(7.0)  # the other newton meter is dry friction
    assert brake.static_torque == pytest.approx(8.75)
    assert brake.sources["dynamic_torque"] == "fitted"
    assert brake.notes["dynamic_torque"] == "fitted to bench.csv"
    assert brake.sources["static_torque"] == "guess"
    assert brake.notes["static_torque"].startswith("1.25 times dynamic_torque")
    assert brake.sources["coulomb"] == "guess" and "coulomb" not in brake.notes


def test_a_brake_that_is_not_in_the_middle_of_its_band() -> None:
    """9 N m brake; at the low end of a band of 25 % a nominal brake of 12 N m does that."""
    by = on_axis(dynamic_torque=5.0, tolerance=0.25).at_band(-1.0)
    with pytest.warns(pl.PinloopWarning, match=r"at -1 in its tolerance band; .* is 0\.75 times"):
        made = fit(table(INERTIA, [3.0], 9.0), ["dynamic_torque"], by)
    assert values(made)["dynamic_torque"] == pytest.approx(12.0)
    assert not fit(table(INERTIA, [3.0], 9.0), ["dynamic_torque"], by.at_band(0.0)).warnings


def test_static_torques_without_a_dynamic_one() -> None:
    made = fit(table(INERTIA, [3.0], 9.0), ["dynamic_torque"], on_axis(static_torque=2.0))
    assert made.brakes.joints["axis"].static_torque == pytest.approx(9.0)


def test_breakaway_is_never_below_coulomb() -> None:
    by = on_axis(kind="none", coulomb=1.0, breakaway=1.0, stribeck_speed=0.1)
    brake = fit(table(INERTIA, [3.0], 9.0), ["coulomb"], by).brakes.joints["axis"]
    assert brake.coulomb == pytest.approx(9.0) and brake.breakaway == brake.coulomb
    assert "raised" in brake.notes["breakaway"]


def test_friction_alone_from_nothing() -> None:
    made = fit(table(INERTIA, [3.0, 1.0], 9.0), ["coulomb"], on_axis(kind="none"))
    assert values(made)["coulomb"] == pytest.approx(9.0, rel=1e-4)


def test_what_is_printed_and_its_json() -> None:
    published = table(INERTIA, [3.0], 9.0, 0.04, 1.5)
    with pytest.warns(pl.PinloopWarning):
        made = fit(published, ["dynamic_torque", "delay", "viscous"], BY)
    text = re.sub(r"\s+", " ", str(made))
    assert "brakes fitted to stops" in text and "fitted to closed form" in text
    assert f"axis dynamic_torque {values(made)['dynamic_torque']:.4g} not identified - N m" in text
    assert "stopping time [ms]" in text and f"- {made.warnings[0]}" in text
    document = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    assert document["warnings"] == list(made.warnings)
    assert document["comparison"]["source"] == "closed form"
    assert document["parameters"][1] == {
        "joint": "axis", "parameter": "delay", "value": values(made)["delay"], "unit": "s",
        "error": None, "identified": False, "interval": None, "spare": 0, "scattered": False,
    }  # fmt: skip


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "by", "part"),
    [
        (["static_torque"], BY, "'static_torque' cannot be fitted; dynamic_torque, short_circuit"),
        ([], BY, "name a parameter"),
        (["dynamic_torque"], pl.Brakes({}), "brakes have no entry for joint 'axis'"),
        (["dynamic_torque"], on_axis(kind="none"), "brake of kind none: it has no dynamic_torque"),
        (["rise"], on_axis(kind="tooth"), "kind tooth: it has no rise"),
    ],
)
def test_mistakes(names: list[str], by: pl.Brakes, part: str) -> None:
    with pytest.raises(pl.BadValue, match=part):
        fit(table(INERTIA, [3.0], 9.0), names, by)


def test_tables_that_cannot_be_fitted() -> None:
    with pytest.raises(pl.BadValue, match="neither a time nor an angle: nothing"):
        fit(
            pl.safety.StoppingTable((pl.safety.Measured("axis", 1.0, None, None),)), ["viscous"], BY
        )
    with pytest.raises(pl.BadValue, match="no joint 'axos'"):
        fit(pl.safety.StoppingTable((pl.safety.Measured("axos", 1.0, 0.1, None),)), ["viscous"], BY)
    with pytest.raises(pl.BadValue, match="'payload' is given by each row"):
        pl.safety.fit_brakes(wheel(), table(INERTIA, [3.0], 9.0), BY, payload=3.0)
