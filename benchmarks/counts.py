"""How much Python runs for one answer: counts of calls, the same on every machine and every time.

A call is one of a Python function or of a function of the interpreter's C interface. They stand
for the time here because what pinloop adds to Pinocchio and LAPACK is such calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import numpy as np

import pinloop as pl

from .righthand import moving_state
from .robots import MOTIONS, RIGHT_HAND_SIDES, URDF

__all__ = ["all_counts", "calls"]


def calls(function: Callable[[], object]) -> int:
    """Calls that one evaluation makes, its own included."""
    function()  # whatever is done once, is done now
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count - 1  # the one that ends the counting


def all_counts() -> dict[str, int]:
    """Every count, by name."""
    found = {}
    for name in RIGHT_HAND_SIDES:
        robot = pl.regularize(RIGHT_HAND_SIDES[name][1]())
        q, v = moving_state(robot)
        # As a run calls it; `acceleration` looks at what it is given first.
        for locks in ((), robot.joints[:1]):
            side = pl.EquationsOfMotion(robot, locks=locks).right_hand_side()
            label = f"calls per right-hand side, {name}" + (", a joint locked" if locks else "")
            found[label] = calls(
                lambda side=side, q=q, v=v: side(0.0, q, v)  # type: ignore[misc]
            )
    for name in MOTIONS:
        found |= _run_counts(name)
    return found | _stop_counts() | _batch_counts()


def _run_counts(name: str) -> dict[str, int]:
    """Calls per fixed step, and evaluations of a run with controlled ones."""
    motion = MOTIONS[name]
    robot, q, v = motion.start()
    step = min(1e-3, motion.until / 650)

    def run(until: float, method: pl.MuntheKaas) -> pl.Trajectory:
        forces = motion.loads.forces
        return pl.simulate(robot, q, v, until=until, method=method, losses=False, forces=forces)

    def fixed(steps: int) -> Callable[[], pl.Trajectory]:
        method = pl.MuntheKaas("rk4", step=step)
        return lambda: run(steps * step, method)

    # Every 640 steps a run looks once whether they are short enough.
    per_step = (calls(fixed(650)) - calls(fixed(10))) / 640
    method = pl.MuntheKaas("dop853", rtol=1e-8, atol=1e-8)
    done = run(motion.until, method)
    return {
        f"calls per rk4 step, {name}": round(per_step),
        f"evaluations of dop853 at 1e-8, {name}": done.evaluations,
    }


def _stop_counts() -> dict[str, int]:
    """A stop of category 0 at half of the speeds."""
    robot, brakes = pl.load(URDF / "six_axis_arm.urdf"), URDF / "six_axis_arm.brakes.yaml"
    read = pl.Brakes.from_yaml(brakes)
    v = 0.5 * robot.model.upperVelocityLimit * np.array([1.0, -1.0] * (robot.nv // 2))
    result = pl.stop(robot, robot.neutral, v, brakes=read)
    return {
        "calls per stop, six_axis_arm": calls(
            lambda: pl.stop(robot, robot.neutral, v, brakes=read)
        ),
        "evaluations per stop, six_axis_arm": result.run.evaluations,
    }


def _batch_counts() -> dict[str, int]:
    """A run of a batch in which nothing is decided: all that is not the kernel's holds a lock."""
    robot = pl.load(URDF / "six_axis_arm.urdf")

    def runs(count: int) -> Callable[[], pl.Batch]:
        v = np.linspace(0.1, 1.0, count)[:, None] * robot.model.upperVelocityLimit
        return lambda: pl.simulate_many(robot, robot.neutral, v, until=0.5, losses=False, jobs=1)

    return {"calls per run of a batch, six_axis_arm": (calls(runs(44)) - calls(runs(4))) // 40}
