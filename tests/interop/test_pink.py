"""Pink moves tools of looped robots; where their loops are is asked of Pinocchio alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pink
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.interop.pink import LoopTask

from .. import states
from .test_upstream import parallelogram

Array = Any


def gap(robot: pl.Mechanism, q: Array) -> float:
    """Largest distance of the two points that a loop joint holds together [m]."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    ends = [(data.oMf[loop.frame_a], data.oMf[loop.frame_b]) for loop in robot.loops]
    return float(max(np.linalg.norm(a.translation - b.translation) for a, b in ends))


class Motion:
    """A tool led along half an ellipse and back, in 200 steps of Pink."""

    def __init__(self, robot: pl.Mechanism, task: LoopTask, reach: Array, *, soft: bool) -> None:
        q = pl.assemble(robot, {"shoulder": 0.3} if robot.name == "palletizer" else None)
        model = pin.Model(robot.model)
        here = pink.Configuration(model, model.createData(), q)
        tool = pink.tasks.FrameTask("tool0", position_cost=1.0, orientation_cost=0.0)
        start = here.get_transform_frame_to_world("tool0")
        self.gaps, self.errors, self.turns = [], [], [q]
        for k in range(200):
            angle = np.pi * (k + 1) / 200
            shift = reach * np.array([np.sin(angle), np.sin(angle), 1.0 - np.cos(angle)])
            goal = pin.SE3(start.rotation, start.translation + shift)
            tool.set_target(goal)
            more: dict[str, Any] = (
                {"limits": None} if soft else {"limits": [], "constraints": [task]}
            )
            tasks = [tool, task] if soft else [tool]
            v = pink.solve_ik(here, tasks, 0.01, solver="daqp", **more)
            here.integrate_inplace(v, 0.01)
            place = here.get_transform_frame_to_world("tool0")
            self.gaps.append(gap(robot, here.q))
            self.errors.append(np.linalg.norm(place.translation - goal.translation))
            self.turns.append(here.q)


REACHES = {
    "palletizer": (0.2, 0.3, -0.2),
    "fivebar": (0.05, 0.0, 0.06),
    "delta": (0.05, 0.04, 0.05),
}


@pytest.mark.parametrize("name", REACHES)
@pytest.mark.parametrize("regular", [True, False])
def test_tools_move_with_loops_closed(name: str, regular: bool) -> None:
    robot = states.regularized(name) if regular else states.robot(name)
    task = LoopTask(pl.EquationsOfMotion(robot))
    motion = Motion(robot, task, np.array(REACHES[name]), soft=False)
    step = np.abs(np.diff(motion.turns, axis=0)).max()
    assert 0.001 < step < 0.05
    # What a step leaves open is of second order, and the next one closes it.
    assert max(motion.gaps) < step**2 and max(motion.errors) < step**2


def test_a_locked_joint_stays() -> None:
    robot = states.robot("palletizer")
    task = LoopTask(pl.EquationsOfMotion(robot, locks=("base_yaw",)))
    motion = Motion(robot, task, np.array([-0.1, 0.0, -0.2]), soft=False)
    at = robot.coordinates("base_yaw").q
    assert np.abs(np.array(motion.turns)[:, at] - motion.turns[0][at]).max() < 1e-12
    assert max(motion.errors) < 1e-3 and max(motion.gaps) < 1e-4


def test_loops_weigh_against_other_tasks_by_their_cost() -> None:
    """A tool that cannot get where it should opens the loops, less the more they cost."""
    robot = states.regularized("fivebar")
    gaps = []
    for cost in (1.0, 10.0, 100.0):
        task = LoopTask(pl.EquationsOfMotion(robot), cost=cost)
        motion = Motion(robot, task, np.array([-0.5, 0.0, 0.0]), soft=True)
        gaps.append(motion.gaps[99])  # where the target is farthest, and slow
    assert gaps[0] > 10.0 * gaps[1] > 100.0 * gaps[2] > 0.0, gaps


def test_the_task_is_what_pink_takes_it_for() -> None:
    """Its Jacobian is the derivative of its error, where the loops are closed."""
    robot = states.robot("fivebar")
    task, q = LoopTask(pl.EquationsOfMotion(robot), cost=2.0, gain=0.5), pl.assemble(robot)
    model = pin.Model(robot.model)

    def at(q: Array) -> Any:
        return pink.Configuration(model, model.createData(), q)

    J, h = task.compute_jacobian(at(q)), 1e-6
    assert J.shape == (2, 4) and np.linalg.matrix_rank(J) == 2
    assert np.allclose(task.compute_error(at(q)), 0.0, atol=1e-9)
    scale = task.equations.rows.scale
    step = np.random.default_rng(0).normal(size=4)
    open_ = scale * pl.Constraints(robot).residual(q + h * step)
    assert np.linalg.norm(task.compute_error(at(q + h * step))) == pytest.approx(
        np.linalg.norm(open_), rel=1e-4
    )
    assert np.linalg.norm(J @ (h * step)) == pytest.approx(np.linalg.norm(open_), rel=1e-4)
    assert repr(task) == "LoopTask('fivebar', cost=2.0, gain=0.5)"


def test_rows_that_a_singular_pose_loses_are_left_out() -> None:
    model, ties = parallelogram()
    robot = pl.load(model, loops=list(ties))
    task = LoopTask(pl.EquationsOfMotion(robot))
    for turn, rank in ((0.3, 2), (np.pi / 2, 1)):  # at a right angle all links lie on one line
        q = np.array([turn, np.pi / 2 - turn, turn])
        here = pink.Configuration(model, model.createData(), q)
        assert task.compute_jacobian(here).shape == (rank, 3)
        assert task.compute_error(here) == pytest.approx(np.zeros(rank), abs=1e-12)
