"""Sensitivities of runs in which loops close: in all formulations, with gaps, by where frames sit.

Before they close such robots move as if the loop were not there, so that more coordinates start
freely; the oracle is that of `test_sensitivity`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop import parameters
from pinloop.simulation import EventTime, InitialState

from .. import states
from ..screw_tables import Array
from ..switching import G, couple, moving_in
from .test_sensitivity import CLOSED, PALLETIZER, PAYLOAD, START, check, other_palletizer

FORMULATIONS = (None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA())
COARSE = pl.MuntheKaas("rk4", step=1e-2)


def thrown(robot: pl.Mechanism, loop: str, q: Array, v: Array, since: float) -> tuple[Array, Array]:
    """Where a robot is some time before it comes, with a loop open, to a state."""
    back = pl.simulate(robot, q, -v, until=since, mode=pl.Mode(opened=loop), losses=False)
    return back.q[-1], -back.v[-1]


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_a_four_bar_catches_its_rocker(formulation: Any) -> None:
    """Frames pass each other at 4 mm; they are brought together, and the velocity jumps."""
    bar, mode = states.robot("four-bar"), pl.Mode(opened="close")
    closed = pl.assemble(bar, {"crank": 0.3})
    v = pl.consistent_velocity(bar, closed, {"crank": 3.0}) + np.array([0.9, -1.3, 1.1])
    q, v = thrown(bar, "close", closed + np.array([0.01, -0.02, 0.015]), v, 0.06)

    def simulate(x: Array) -> pl.Trajectory:
        x = x if len(x) else np.zeros(6)
        return pl.simulate(
            bar, q + x[:3], v + x[3:], until=0.12, mode=mode, method=COARSE, stabilization=CLOSED,
            events=[pl.close_loop("close", tolerance=0.1)], formulation=formulation,
        )  # fmt: skip

    (jump,) = simulate(np.zeros(0)).transitions
    assert jump.energy_loss > 0.1
    assert np.linalg.norm(pl.Constraints(bar, full=True).residual(jump.q)) < 1e-10
    check(simulate, [InitialState()], 1e-7, ["close close"])


def test_two_pendulums_that_dock_where_they_meet() -> None:
    pair = couple("revolute", "spherical", gravity=G, offset=0.3)
    q, v = np.array([-0.5, 0.4]), np.array([3.0, -1.0])

    def simulate(x: Array) -> pl.Trajectory:
        x = x if len(x) else np.zeros(4)
        return pl.simulate(
            pair, q + x[:2], v + x[2:], until=0.6, mode=pl.Mode(opened="coupling"), method=COARSE,
            events=[pl.close_loop("coupling")], stabilization=CLOSED,
        )  # fmt: skip

    check(simulate, [InitialState()], events=["close coupling"])


def test_a_palletizer_that_locks_closes_a_loop_and_unlocks() -> None:
    loop = "front_level_loop"
    mode = pl.Mode(opened=loop)
    q, v = thrown(PALLETIZER, loop, START, moving_in(PALLETIZER, START, mode, 3, 1.0), 0.03)
    events = [
        pl.lock("wrist", at=0.01), pl.close_loop(loop, tolerance=0.05), pl.unlock("wrist", at=0.05)
    ]  # fmt: skip

    def simulate(x: Array) -> pl.Trajectory:
        robot = other_palletizer(PAYLOAD, x if len(x) else np.zeros(1))
        return pl.simulate(
            robot, q, v, until=0.07, mode=mode, events=events, method=COARSE, stabilization=CLOSED,
            losses=False,
        )  # fmt: skip

    found = check(simulate, [PAYLOAD], 1e-7, [f"close {loop}"], first=0.1)
    assert found.sequence == ("lock wrist", f"close {loop}", "unlock wrist")


def test_the_time_at_which_a_loop_closes() -> None:
    """Later, its frames are elsewhere."""
    bar = states.robot("four-bar")
    closed = pl.assemble(bar, {"crank": 0.3})
    v = pl.consistent_velocity(bar, closed, {"crank": 3.0}) + np.array([0.9, -1.3, 1.1])
    q, v = thrown(bar, "close", closed, v, 0.06)

    def simulate(x: Array) -> pl.Trajectory:
        at = 0.0612 + (x[0] if len(x) else 0.0)
        return pl.simulate(
            bar, q, v, until=0.12, mode=pl.Mode(opened="close"), method=COARSE,
            stabilization=CLOSED, events=[pl.close_loop("close", at=at, tolerance=0.1)],
        )  # fmt: skip

    found = check(simulate, [EventTime("close close")], 1e-7, first=1e-3)
    assert np.abs(found.matrix).max() > 0.5


@pytest.mark.parametrize("place", ["close/A", "close/B", "rocker"])
def test_where_the_frames_of_a_loop_sit_that_closes(place: str) -> None:
    """Before, its frames are nowhere; when they are nearest, and to what, depends on them."""
    robot, parameter = states.robot("rssr"), parameters.Placement(place)
    closed, v = states.moving(robot, 4)
    v = v + np.random.default_rng(1).normal(size=robot.nv)
    q, v = thrown(robot, "close", closed, v, 0.06)

    def simulate(x: Array) -> pl.Trajectory:
        other, _ = parameters.with_parameters(robot, [(parameter, x if len(x) else np.zeros(6))])
        return pl.simulate(
            other, q, v, until=0.12, mode=pl.Mode(opened="close"), method=COARSE, losses=False,
            events=[pl.close_loop("close", tolerance=0.01)], stabilization=CLOSED,
            regularization=False, formulation=pl.Augmented(),
        )  # fmt: skip

    found = check(simulate, [parameter], 1e-6, ["close close"], first=1e-3)
    assert np.abs(found.matrix[-1]).max() > 0.1
