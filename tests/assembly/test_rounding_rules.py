"""Tests of `pinloop.assembly.rounding.rules`: their derivatives, and what is found.

A derivative with a flipped sign would let fits crawl or fail: each is compared with differences of
the values, taken with frames that were really moved.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.rounding.fitting import LoopCluster, loop_groups
from pinloop.assembly.rounding.rules import (
    End,
    Rule,
    alignments_of,
    axes_by_link,
    equalities_of,
    equations,
)
from pinloop.linalg.dense import block_matrix
from pinloop.model.description import GROUND

from .. import rounded
from ..known_linkages import robot_called
from ..screw_tables import Array, joint, table

LOOSE = 0.05
"""A limit within which nearly everything counts as aligned, so that all kinds of rules occur."""


def cluster_of(robot: pl.Mechanism) -> LoopCluster:
    (group,) = loop_groups(robot)
    return group.cluster()


def rules_of(cluster: LoopCluster) -> list[Rule]:
    aligned = alignments_of(cluster.robot, cluster.ends, LOOSE)
    return [*aligned, *equalities_of(cluster.robot, cluster.ends, LOOSE)]


@pytest.mark.parametrize(
    "name",
    ["four-bar", "spherical four-bar", "bennett", "goldberg", "universal delta", "rssr", "bricard"],
)
def test_derivatives_are_those_of_moved_frames(name: str) -> None:
    drawn = rounded.drawn_off(robot_called(name), np.random.default_rng(3), 0.02, 0.02)
    cluster = cluster_of(drawn)
    rules = rules_of(cluster)
    blocks, values = equations(cluster.robot, rules, cluster.frames)
    derivative = block_matrix((len(values), 6 * len(cluster.frames)), blocks)
    step = 1e-6
    for shift in np.random.default_rng(4).normal(size=(3, 6 * len(cluster.frames))):
        ahead, back = (
            equations(cluster.moved(h * shift).robot, rules, cluster.frames)[1]
            for h in (step, -step)
        )
        slope = (ahead - back) / (2 * step)
        np.testing.assert_allclose(derivative @ shift, slope, atol=2e-8 * np.abs(shift).sum())


def test_all_kinds_of_rules_have_been_compared() -> None:
    kinds: set[str] = set()
    for name in ("bennett", "universal delta", "spherical four-bar", "bricard"):
        drawn = rounded.drawn_off(robot_called(name), np.random.default_rng(3), 0.02, 0.02)
        kinds |= {rule.kind for rule in rules_of(cluster_of(drawn))}
    assert kinds == {"parallel", "meeting", "square", "angle", "gap", "distance", "foot"}


def test_opposite_sides_of_a_parallelogram_are_equal() -> None:
    cluster = cluster_of(robot_called("parallelogram"))
    links = axes_by_link(cluster.robot, cluster.ends).values()
    assert sorted(len(axes) for axes in links) == [2, 2, 2, 2]
    found = equalities_of(cluster.robot, cluster.ends, 1e-9)
    # Two pairs of opposite sides: sides are 0.5 and 1 long.
    assert [rule.kind for rule in found] == ["distance", "distance"]
    values = equations(cluster.robot, found, cluster.frames)[1]
    assert np.abs(values).max() < 1e-15


def test_the_axes_of_a_universal_joint_are_square_wherever_it_goes() -> None:
    robot = robot_called("cardan")
    ends: list[End] = [("cross", "frame_parent"), ("cross", "frame_child")]
    axes = axes_by_link(robot, ends)
    q = pin.integrate(robot.model, robot.neutral, np.full(robot.nv, 0.4))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    first, second = (
        data.oMi[link].rotation @ axis.direction for link in axes for axis in axes[link].values()
    )
    assert abs(first @ second) < 1e-12


def test_opposite_sides_of_bennetts_linkage_are_equal() -> None:
    # Whichever side of the other an axis is on: gaps have no sign.
    cluster = cluster_of(robot_called("bennett"))
    kinds = sorted(rule.kind for rule in equalities_of(cluster.robot, cluster.ends, 1e-9))
    assert kinds == ["angle"] * 2 + ["foot"] * 4 + ["gap"] * 2


def test_sides_that_differ_are_not_equal() -> None:
    points: list[Array] = [
        np.array(p, float) for p in ([0, 0, 0], [0, 0, 1], [2, 0, 1.5], [3, 0, 0])
    ]
    bodies = [GROUND, "a", "b", "c", GROUND]
    joints = [
        joint(f"j{k}", "revolute", bodies[k], bodies[k + 1], points[k], [0, 1, 0], cut=k == 3)
        for k in range(4)
    ]
    cluster = cluster_of(pl.from_screws(table("four-bar", *joints)))
    assert equalities_of(cluster.robot, cluster.ends, 1e-3) == []


def test_centres_of_balls_have_distances_too() -> None:
    cluster = cluster_of(robot_called("rssr"))
    links = axes_by_link(cluster.robot, cluster.ends).values()
    centres = [end for axes in links for end, axis in axes.items() if not axis.direction.any()]
    assert len(centres) == 4  # both frames of two balls
    assert not any(
        {*rule.ends} & {*centres} for rule in alignments_of(cluster.robot, cluster.ends, LOOSE)
    )
