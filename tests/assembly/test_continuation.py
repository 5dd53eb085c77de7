"""Assemblies that follow continuously from one another, against every step by itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.assembly.continuation import LoopContinuation

Array = NDArray[np.float64]
URDF = Path(__file__).parents[2] / "urdf"


@cache
def palletizer() -> pl.Mechanism:
    return pl.load(URDF / "palletizer.urdf")


def led(q: Array, goal: Array, part: float) -> Array:
    """Shoulder and elbow on a straight line to their goal, waist where it is."""
    robot = palletizer()
    for k, joint in enumerate(("shoulder", "elbow")):
        q[robot.coordinates(joint).q] = part * goal[k]
    return q


def test_led_joints_are_exactly_where_they_are_led() -> None:
    robot, goal = palletizer(), np.array([0.3, -0.2])
    loops = LoopContinuation(robot, limits=True)
    home = pl.assemble(robot)
    held = ("shoulder", "elbow")
    passed: list[float] = []

    def lead(q: Array, part: float) -> Array:
        passed.append(part)
        return led(q, goal, part)

    q, part = loops.follow(home, lead, lambda q: (held,), 7)
    assert part == 1.0 and passed == [k / 7 for k in range(1, 8)]
    assert loops.is_closed(q) and not loops.is_free
    for k, joint in enumerate(held):
        assert q[robot.coordinates(joint).q] == goal[k]
    # The search for an assembly with these values, from anywhere near, finds the same branch.
    assert q == pytest.approx(pl.assemble(robot, q, {"shoulder": 0.3, "elbow": -0.2}), abs=1e-9)


def test_it_goes_as_far_as_its_branch() -> None:
    """A parallelogram that is folded across comes to a dead centre, by searches of their own."""
    robot = pl.load(URDF / "fourbar.urdf")
    loops = LoopContinuation(robot, limits=False)
    at = robot.coordinates("joint_2").q

    def lead(q: Array, part: float) -> Array:
        q[at] = 2 * np.pi * part
        return q

    count, finest, leap = 40, 1e-3, 0.6
    q, part = loops.follow(
        pl.assemble(robot), lead, lambda q: (("joint_2",),), count, leap=leap, finest=finest
    )
    assert 0.04 < part < 0.06 and loops.is_closed(q) and q[at] == 2 * np.pi * part
    # The least step is the last halving above a thousandth of the first.
    for ahead in (finest / count, 2 * finest / count):
        beyond = lead(q.copy(), part + ahead)
        with pytest.raises(pl.LoopNotClosed):
            pl.assemble(robot, beyond, {"joint_2": beyond[at]}, limits=False)


def test_the_first_set_that_closes_is_held() -> None:
    robot, goal = palletizer(), np.array([0.1, 0.1])
    loops = LoopContinuation(robot, limits=True)
    home = pl.assemble(robot)
    asked: list[tuple[str, ...]] = []

    def held(q: Array) -> list[tuple[str, ...]]:
        asked.append(robot.joints)
        # All joints at once cannot be anywhere but where the loops have them.
        return [robot.joints, ("shoulder", "elbow")]

    q, part = loops.follow(home, lambda q, part: led(q, goal, part), held, 2)
    assert part == 1.0 and len(asked) == 2 and loops.is_closed(q)


def test_nothing_to_close() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    loops = LoopContinuation(robot, limits=True)
    q, part = loops.follow(robot.neutral, lambda q, part: q + part, lambda q: ((),), 1)
    assert loops.is_free and part == 1.0 and q == pytest.approx(robot.neutral + 1.0)
