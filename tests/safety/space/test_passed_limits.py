"""Tests of `pinloop.safety.joint_limits`: motions with extremes in closed form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.space.interval_tree import joint_limits
from pinloop.simulation.limits import LimitPassed

from .moving_bodies import chain

ACCELERATION = 3.0


def thrown(v: float, until: float, start: float = 0.0, **limits: Any) -> tuple[LimitPassed, ...]:
    """Limits passed by ``q = v t - 3/2 t^2``, in a single step."""
    robot = chain("prismatic", limits=limits)
    run = pl.simulate(
        robot, [0.0], [v], start=start, until=start + until, tau=lambda t, q, v: [-ACCELERATION],
        method=pl.MuntheKaas("rk4", step=until),
    )  # fmt: skip
    assert len(run.t) == 2
    return joint_limits(run)


@pytest.mark.parametrize("start", [0.0, 100.0])
def test_an_excursion_between_stored_states(start: float) -> None:
    """At both ends of the step the joint is within its limits; at v / a it is not."""
    (passed,) = thrown(3.0, 2.0, start, lower=(-0.1,), upper=(1.2,))
    assert (passed.joint, passed.coordinate) == ("j1", 0)
    assert (passed.kind, passed.side, passed.limit) == ("position", "upper", 1.2)
    first = 1 - np.sqrt(1 - 2 * 1.2 / 3)
    assert passed.t == pytest.approx(start + first, abs=1e-5)
    assert passed.by == pytest.approx(1.5 - 1.2, abs=1e-9)
    assert passed.worst_t == pytest.approx(start + 1.0, abs=1e-6)


def test_both_ends_and_velocities_in_order_of_time() -> None:
    """It rises to 1.5 m at 1 s and falls to -4.5 m at 3 s; its velocity goes from 3 to -6 m/s."""
    found = thrown(3.0, 3.0, lower=(-1.0,), upper=(1.0,), velocity=(2.5,))
    assert [(one.kind, one.side) for one in found] == [
        ("velocity", "upper"), ("position", "upper"), ("velocity", "lower"), ("position", "lower"),
    ]  # fmt: skip
    times = 0.0, 1 - np.sqrt(1 / 3), 1 + 2.5 / 3, 1 + np.sqrt(1 + 2 / 3)
    assert [one.t for one in found] == pytest.approx(times, abs=1e-5)
    assert [one.by for one in found] == pytest.approx([0.5, 0.5, 3.5, 3.5], abs=1e-9)
    assert [one.worst_t for one in found] == pytest.approx([0.0, 1.0, 3.0, 3.0], abs=1e-6)


def test_limits_that_are_passed_all_the_time() -> None:
    """Both limits lie far on the other side of zero."""
    (upper,) = thrown(3.0, 2.0, lower=(-9.0,), upper=(-5.0,))
    assert (upper.side, upper.t) == ("upper", 0.0)
    assert upper.by == pytest.approx(1.5 + 5.0) and upper.worst_t == pytest.approx(1.0, abs=1e-6)
    (lower,) = thrown(3.0, 2.0, lower=(5.0,), upper=(9.0,))
    assert lower.side == "lower" and lower.by == pytest.approx(5.0)


def test_limits_that_are_kept_or_only_touched() -> None:
    assert thrown(3.0, 2.0, lower=(-0.1,), upper=(1.5,), velocity=(3.0,)) == ()
    assert thrown(3.0, 2.0) == ()


def test_many_steps_and_several_joints() -> None:
    """Two joints that do not feel each other, with the default method."""
    robot = chain("prismatic", "prismatic", limits={"lower": (-5.0,), "upper": (1.0,)})
    run = pl.simulate(
        robot,
        [0.0, 0.9],
        [3.0, 2.7],
        until=2.0,
        rows=[
            pl.constraints.Prescribed("j1", lambda t: (3 * t - 1.5 * t * t, 3 - 3 * t, -3.0)),
            pl.constraints.Prescribed(
                "j2",
                lambda t: (0.9 + 0.3 * np.sin(9 * t), 2.7 * np.cos(9 * t), -24.3 * np.sin(9 * t)),
            ),
        ],
    )
    assert len(run.t) > 10
    second, first = joint_limits(run)
    assert (second.joint, first.joint) == ("j2", "j1")
    assert second.t == pytest.approx(np.arcsin(1 / 3) / 9, abs=1e-5)
    assert second.by == pytest.approx(0.2, abs=1e-6)
    assert first.t == pytest.approx(1 - np.sqrt(1 / 3), abs=1e-5)
    assert first.by == pytest.approx(0.5, abs=1e-7)


def test_coordinates_of_a_quaternion() -> None:
    """A ball joint turns about z at constant speed: its quaternion is (0, 0, sin, cos)."""
    limits = {"lower": (-1.0,) * 4, "upper": (1.0, 1.0, 0.6, 1.0), "velocity": (9.0, 9.0, 1.5)}
    robot = chain("spherical", limits=limits)
    run = pl.simulate(robot, [0, 0, 0, 1.0], [0, 0, 2.0], until=2.0, losses=False)
    velocity, position = joint_limits(run)
    assert (velocity.kind, velocity.coordinate, velocity.t) == ("velocity", 2, 0.0)
    assert velocity.by == pytest.approx(0.5, abs=1e-6)
    assert (position.kind, position.coordinate) == ("position", 2)
    assert position.t == pytest.approx(np.arcsin(0.6), abs=1e-4)
    assert position.by == pytest.approx(0.4, abs=1e-4)
    assert position.worst_t == pytest.approx(np.pi / 2, abs=1e-2)


def test_very_short_steps_are_judged_by_their_ends() -> None:
    """The slope between two states that differ by rounding only says nothing."""
    robot = chain("revolute", limits={"velocity": (1.0,)})
    run = pl.simulate(robot, [0.5], [0.9], until=0.1, method=pl.MuntheKaas("rk4", step=0.05))
    k, h = 1, 1e-10
    short = replace(
        run,
        t=np.insert(run.t, k + 1, run.t[k] + h),
        q=np.insert(run.q, k + 1, run.q[k] + 2 * h, axis=0),
        v=np.insert(run.v, k + 1, run.v[k], axis=0),
        a=np.insert(run.a, k + 1, run.a[k], axis=0),
        psi=np.insert(run.psi, k, 2 * h, axis=0),
        inner=None,
        mode=np.insert(run.mode, k + 1, 0),
    )
    assert abs(short(short.t[k] + h / 2).v[0]) > 1.0
    assert joint_limits(short) == ()


def test_bad_arguments() -> None:
    run = pl.simulate(chain("revolute"), [0.0], until=0.1)
    assert joint_limits(run) == ()
    with pytest.raises(pl.BadValue, match="tolerance is -1; it must be a number >= 0"):
        joint_limits(run, tolerance=-1)
    with pytest.raises(pl.BadValue, match="is no trajectory"):
        joint_limits(None)  # type: ignore[arg-type]
