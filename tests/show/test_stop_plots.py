"""Plots of a stop: its states, torques that brakes give by hand, marks, joints in one panel."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import pinloop as pl

from ..safety.stopping.robots_to_stop import on_axis, slider, stop, wheel
from ..states import URDF
from .test_plots import axes_of, data, marks, names, pixels

pytest.importorskip("matplotlib")

INERTIA, SPEED, TORQUE, DELAY = 2.0, 4.0, 20.0, 0.05


@cache
def wheel_stop() -> pl.StopResult:
    """A wheel whose brake has all its torque after a delay; the chain takes no time."""
    by = on_axis(dynamic_torque=TORQUE, delay=DELAY)
    return stop(wheel(INERTIA), SPEED, by, q=np.array([0.3]))


def test_the_stop_of_a_wheel_as_by_hand() -> None:
    result = wheel_stop()
    begin = result.reaction_time
    figure = result.plot()
    (line,) = (line for line in axes_of(figure, "velocity [rad/s]").get_lines()[:1])
    t, rate = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    braked = np.clip(t - begin, 0, None)
    expected = np.maximum(SPEED - TORQUE / INERTIA * braked, 0.0)
    np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-9)
    (line,) = (line for line in axes_of(figure, "angle, from start [rad]").get_lines()[:1])
    way = SPEED * t - 0.5 * TORQUE / INERTIA * braked**2
    np.testing.assert_allclose(np.asarray(line.get_ydata()), way, rtol=0, atol=1e-8)
    (line,) = (line for line in axes_of(figure, "brake torque [N m]").get_lines()[:1])
    t, torque = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert list(torque[t == begin]) in ([0.0, -TORQUE], [0.0, -TORQUE, -TORQUE])
    assert np.all(torque[t < begin] == 0.0)
    inside = (t > begin) & (t < result.stopping_time)
    np.testing.assert_allclose(torque[inside], -TORQUE, rtol=1e-12)
    kinetic = data(axes_of(figure, "energy [J]"), "kinetic")
    np.testing.assert_allclose(kinetic[:, 1], 0.5 * INERTIA * expected**2, rtol=0, atol=1e-8)


def test_marks_and_title() -> None:
    result = wheel_stop()
    figure = result.plot()
    for axes in figure.axes:
        assert result.reaction_time in marks(axes)
        assert any(abs(mark - result.stopping_time) < 1e-12 for mark in marks(axes))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert any("at rest" in text for text in texts) and any("act" in text for text in texts)
    assert figure.get_suptitle().endswith("stop of category 0, stopped")
    assert np.mean(pixels(figure) < 200) > 0.005


def test_sliding_joints_have_forces_and_ways() -> None:
    figure = stop(slider(), 1.0, on_axis(dynamic_torque=5.0)).plot()
    shown = {axes.get_ylabel() for axes in figure.axes}
    assert {"displacement, from start [m]", "velocity [m/s]", "brake force [N]"} <= shown
    assert not any("rad" in label or "N m" in label for label in shown)


def test_joints_by_name_and_drives() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    v = 0.3 * robot.model.upperVelocityLimit
    result = pl.stop(robot, robot.neutral, v, brakes=URDF / "six_axis_arm.brakes.yaml", category=1)
    figure = result.plot(["joint_2", "joint_6"])
    for label in ("angle, from start [rad]", "brake torque [N m]", "drive torque [N m]"):
        assert names(axes_of(figure, label)) == ["joint_2", "joint_6"]
    with pytest.raises(pl.UnknownName, match="nothing"):
        result.plot("nothing")
