"""Computed beside published stops: ratios and shapes against closed forms."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import pinloop as pl

from ..stopping.robots_to_stop import brakes, carriages, on_axis, slider, stop, train, wheel
from ..studies.closed_stops import stop_of, table

INERTIA, SPEED = 2.0, 3.0


def compared(
    one: pl.safety.StoppingTable, by: pl.Brakes, robot: pl.Mechanism | None = None
) -> pl.safety.Comparison:
    return pl.safety.compare(one.stops(robot or wheel(INERTIA), by), one)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_ratios_and_shapes(way: float) -> None:
    """Delay and constant torque beside a published stop that is shorter than half of v t."""
    published = pl.safety.StoppingTable(
        (pl.safety.Measured("axis", way * SPEED, 0.5, 0.6),), "manual"
    )
    comparison = compared(published, on_axis(dynamic_torque=8.0, delay=0.05))
    (row,) = comparison.rows
    time, angle = stop_of(INERTIA, SPEED, 8.0, 0.05)
    assert (row.time, row.angle) == pytest.approx((time, angle))
    assert row.time_ratio == pytest.approx(time / 0.5)
    assert row.angle_ratio == pytest.approx(angle / 0.6)
    assert row.shape == pytest.approx(angle / (SPEED * time))
    assert row.shape is not None and row.shape > 0.5
    assert row.published_shape == pytest.approx(0.4)
    assert (row.outcome, row.unit, comparison.source) == ("stopped", "rad", "manual")


def test_viscous_losses_bring_the_shape_below_half() -> None:
    published = table(INERTIA, [SPEED], torque=3.0, viscous=6.0)
    (row,) = compared(published, on_axis(dynamic_torque=3.0, viscous=6.0)).rows
    # A time t = I/c log(1 + c v / T), a way v I/c - T t/c.
    t = np.log1p(6.0 * SPEED / 3.0) / 3.0
    assert row.shape == pytest.approx((SPEED / 3.0 - t / 2.0) / (SPEED * t))
    assert row.shape == pytest.approx(row.published_shape)
    assert row.shape is not None and row.shape < 0.4
    assert (row.time_ratio, row.angle_ratio) == pytest.approx((1.0, 1.0))


def test_numbers_that_are_not_published_have_no_ratio() -> None:
    rows = (
        pl.safety.Measured("axis", SPEED, 0.5, None),
        pl.safety.Measured("axis", SPEED, None, 0.6),
    )
    first, second = compared(pl.safety.StoppingTable(rows), on_axis(dynamic_torque=8.0)).rows
    assert first.angle_ratio is None and second.time_ratio is None
    assert first.published_shape is None and second.published_shape is None
    assert first.shape == pytest.approx(0.5)
    assert first.time_ratio == pytest.approx(1.5) and second.angle_ratio == pytest.approx(1.875)


def test_rows_keep_their_own_axis() -> None:
    """Each carriage by itself."""
    robot = train(4.0, 1.0)
    by = brakes(a={"dynamic_torque": 50.0}, b={"dynamic_torque": 16.0})
    rows = (pl.safety.Measured("b", 1.0, 0.0625, 0.03125), pl.safety.Measured("a", -1.0, 0.1, 0.05))
    first, second = compared(pl.safety.StoppingTable(rows), by, robot).rows
    assert (first.time, first.angle) == pytest.approx((0.0625, 0.03125)) and first.unit == "m"
    assert (second.time, second.angle) == pytest.approx((0.1, 0.05))


def test_one_stop_for_all_rows() -> None:
    """Its shape is that of its own speed, not of the published one."""
    robot = train(4.0, 1.0)
    by = brakes(a={"dynamic_torque": 50.0}, b={"dynamic_torque": 40.0})
    rows = (pl.safety.Measured("a", 1.5, 0.1, 0.1), pl.safety.Measured("b", 2.0, 0.1, 0.1))
    result = stop(robot, [1.0, 0.0], by)
    comparison = pl.safety.compare(result, pl.safety.StoppingTable(rows))
    assert [row.measured.joint for row in comparison.rows] == ["a", "b"]
    assert comparison.rows[0].shape == pytest.approx(0.5) and comparison.rows[0].speed == 1.0
    assert comparison.rows[1].shape is None  # it did not move
    text = " ".join(str(comparison).split())
    assert "axis 'a' moves at 1000 mm/s in the computed stop, at 1500 mm/s in the table" in text
    assert "axis 'b' moves at 0 mm/s in the computed stop, at 2000 mm/s in the table" in text
    assert len(comparison.as_dict()["warnings"]) == 2
    assert "axis &#39;a&#39; moves" in comparison._repr_html_()


def test_a_stop_of_another_category_is_told() -> None:
    by = on_axis(dynamic_torque=8.0, deceleration=4.0)
    rows = tuple(pl.safety.Measured("axis", SPEED, 0.75, 1.125, category=k) for k in (0, 1))
    published = pl.safety.StoppingTable(rows)
    stops = published.stops(wheel(INERTIA), by)
    assert pl.safety.compare(stops, published).warnings == ()
    assert "Not comparable" not in str(pl.safety.compare(stops, published))
    (told, other) = pl.safety.compare(stops[::-1], published).warnings
    assert "computed in category 1, the table has category 0" in told and "category 0, the" in other
    rounded = pl.safety.StoppingTable((pl.safety.Measured("axis", 1.005 * SPEED, 0.75, 1.125),))
    assert pl.safety.compare(stops[0], rounded).warnings == ()


def test_times_are_those_of_the_axis() -> None:
    """Not of the whole robot: b slides three times as long as a."""
    by = brakes(a={"dynamic_torque": 50.0}, b={"dynamic_torque": 8.0})
    result = stop(carriages(4.0, 1.0), [1.0, -2.0], by)
    rows = (pl.safety.Measured("a", 1.0, 0.1, 0.1), pl.safety.Measured("b", -2.0, 0.1, 0.1))
    first, second = pl.safety.compare(result, pl.safety.StoppingTable(rows)).rows
    assert (first.time, second.time) == pytest.approx((0.08, 0.25))
    assert (first.angle, second.angle) == pytest.approx((0.04, 0.25))


def test_what_does_not_fit_together() -> None:
    published = table(INERTIA, [1.0, 2.0], torque=4.0)
    stops = published.stops(wheel(INERTIA), on_axis(dynamic_torque=4.0))
    with pytest.raises(pl.BadValue, match="1 stops for 2 rows"):
        pl.safety.compare(stops[:1], published)
    bare = replace(stops[0], brakes=pl.Brakes({}))
    with pytest.raises(pl.BadValue, match=r"joint 'axis', for which the brakes .* no entry"):
        pl.safety.compare(bare, published)


def test_a_stop_that_does_not_end_is_told() -> None:
    published = table(INERTIA, [SPEED], torque=4.0)
    stops = published.stops(wheel(INERTIA), on_axis(dynamic_torque=4.0), until=0.1)
    comparison = pl.safety.compare(stops, published)
    assert comparison.rows[0].outcome == "time-out" and "time-out" in str(comparison)


def test_what_is_printed() -> None:
    published = pl.safety.StoppingTable(
        (pl.safety.Measured("axis", SPEED, 0.5, 0.6, payload=0.5),), "a manual"
    )
    text = re.sub(r" +", " ", str(compared(published, on_axis(dynamic_torque=8.0))))
    # The payload is a point on the axis of the wheel: 0.75 s and 64.46 deg.
    assert "published a manual" in text and "Axes that turn" in text
    assert "\n axis 171.9 0.5 750.0 500.0 +50.0 64.46 34.38 +87.5 0.500 0.400 stopped" in text
    assert "[deg/s]" in text and "stopping distance [deg]" in text and "Axes that slide" not in text
    assert "not a safety certificate" in text


def test_what_is_printed_of_axes_that_slide() -> None:
    published = pl.safety.StoppingTable((pl.safety.Measured("axis", -1.0, None, 0.0250001),))
    text = re.sub(r" +", " ", str(compared(published, on_axis(dynamic_torque=40.0), slider(2.0))))
    assert "Axes that slide" in text and "Axes that turn" not in text
    assert "axis -1000 0 50.00 - - 25.00 25.00 +0.0 0.500 - stopped" in text
    assert "[mm/s]" in text and "stopping distance [mm]" in text


def test_as_json() -> None:
    published = pl.safety.StoppingTable(
        (pl.safety.Measured("axis", SPEED, 0.5, None, pose={"axis": 0.1}),), "me"
    )
    document = compared(published, on_axis(dynamic_torque=8.0)).as_dict()
    (row,) = json.loads(json.dumps(document, allow_nan=False))["rows"]
    assert (document["source"], row["joint"], row["unit"]) == ("me", "axis", "rad")
    assert row["pose"] == {"axis": 0.1} and row["outcome"] == "stopped"
    assert row["time_s"] == pytest.approx(0.75) and row["published_time_s"] == 0.5
    assert row["time_ratio"] == pytest.approx(1.5) and row["angle_ratio"] is None
    assert row["angle"] == pytest.approx(1.125) and row["shape"] == pytest.approx(0.5)
    assert row["published_shape"] is None and row["speed"] == SPEED
