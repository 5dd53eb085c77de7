"""Tests of `pinloop.assembly.rounding.fitting`: parts of a robot close as they do in the whole."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.rounding.fitting import loop_groups
from pinloop.assembly.search import Problem
from pinloop.linalg.dense import block_matrix
from pinloop.model.description import GROUND

from ..known_linkages import robot_called
from ..mechanisms import TURN
from ..screw_tables import joint, table


def problem_of(robot: pl.Mechanism) -> Problem:
    return Problem.closure(robot)


@pytest.mark.parametrize(
    "name",
    ["palletizer", "delta", "stewart", "sevenbar", "floating four-bar", "geared five-bar",
     "universal delta", "cardan", "screw jack"],
)  # fmt: skip
def test_a_cluster_is_its_part_of_the_robot(name: str) -> None:
    robot = robot_called(name)
    whole = problem_of(robot)
    q = pin.integrate(robot.model, robot.neutral, np.random.default_rng(0).normal(size=robot.nv))
    for group in loop_groups(robot):
        rows, columns = group.part(whole)
        cluster = group.cluster()
        assert cluster.robot.length == robot.length
        part = group.configuration(cluster, q)
        assert len(rows) == len(cluster.residual(part)) and len(columns) == cluster.robot.nv
        # The cluster has its own order of loops and joints.
        names = [*(loop.name for loop in cluster.robot.loops), *group.couplings]
        rows = np.concatenate(
            [np.arange(whole.constraints.rows_of[n].start, whole.constraints.rows_of[n].stop)
             for n in names]
        )  # fmt: skip
        np.testing.assert_allclose(cluster.residual(part), whole.residual(q)[rows], atol=1e-12)
        columns = np.concatenate(
            [np.arange(robot.coordinates(n).v.start, robot.coordinates(n).v.stop)
             for n in cluster.robot.joints]
        )  # fmt: skip
        np.testing.assert_allclose(
            cluster.jacobian(part), whole.jacobian(q)[np.ix_(rows, columns)], atol=1e-12
        )


@pytest.mark.parametrize(
    "name", ["palletizer", "prrr3", "bennett", "double cardan", "rssr", "geared five-bar"]
)
def test_the_derivative_by_frames_is_that_of_moved_frames(name: str) -> None:
    robot = robot_called(name)
    q = pl.assemble(robot)
    step = 1e-6
    for group in loop_groups(robot):
        cluster = group.cluster()
        part = group.configuration(cluster, q)
        shape = len(cluster.residual(part)), 6 * len(cluster.frames)
        derivative = block_matrix(shape, cluster.frame_blocks(part))
        for shift in np.random.default_rng(1).normal(size=(3, 6 * len(cluster.frames))):
            ahead, back = (cluster.moved(h * shift).residual(part) for h in (step, -step))
            np.testing.assert_allclose(
                derivative @ shift, (ahead - back) / (2 * step), atol=1e-8 * np.abs(shift).sum()
            )


def test_loops_that_share_no_joint_are_clusters_of_their_own() -> None:
    robot = robot_called("stewart")
    assert [len(group.loops) for group in loop_groups(robot)] == [len(robot.loops)]
    joints = []
    for k in range(2):
        x, y, z, foot = f"x{k}", f"y{k}", f"z{k}", np.array([k, 0.0, 0.0])
        joints += [
            joint(f"a{k}", "revolute", GROUND, x, foot, TURN),
            joint(f"b{k}", "revolute", GROUND, y, foot + np.array([0.4, 0, 0]), TURN),
            joint(f"c{k}", "revolute", x, z, foot + np.array([0.1, 0, 0.3]), TURN),
            joint(f"d{k}", "revolute", z, y, foot + np.array([0.5, 0, 0.4]), TURN, cut=True),
        ]
    pair = pl.from_screws(table("two", *joints))
    groups = loop_groups(pair)
    assert sorted(sorted(group.joints) for group in groups) == [
        ["a0", "b0", "c0"], ["a1", "b1", "c1"],
    ]  # fmt: skip
