"""Placements and rates of all joints in many states, against Pinocchio one after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import Coordinates
from pinloop.model.mechanism import build
from pinloop.safety.space.interval_tree import difference_each, integrate_each
from pinloop.safety.space.joint_motions import compute_joint_motions, compute_joint_poses

from ... import mechanisms
from ... import screw_tables as tables
from ...states import robot

OTHER: dict[str, Coordinates] = {"revolute": "circle", "spherical": "zyx", "free": "SO3xR3"}
"""Other coordinates of some pairs than the usual ones."""


def check(robot: pl.Mechanism, seed: int) -> None:
    """Placements of all joints at random configurations."""
    model, data = robot.model, robot.model.createData()
    rng, start = np.random.default_rng(seed), robot.neutral
    q = np.array([pin.integrate(model, start, rng.uniform(-3, 3, robot.nv)) for _ in range(7)])
    v, points = rng.uniform(-2, 2, (7, robot.nv)), rng.uniform(-1, 1, (3, 3))
    motions = compute_joint_motions(robot, q, v)
    R, p = compute_joint_poses(robot, q)
    np.testing.assert_array_equal(motions.rotations, R)
    np.testing.assert_array_equal(motions.origins, p)
    for k in range(len(q)):
        pin.forwardKinematics(model, data, q[k], v[k])
        for joint in range(model.njoints):
            M, twist = data.oMi[joint], data.v[joint]
            rates = [M.rotation @ (twist.linear + np.cross(twist.angular, x)) for x in points]
            found = motions.velocities(joint, points)[k]
            np.testing.assert_allclose(found, rates, rtol=0, atol=3e-12)
    assert R.shape == (7, model.njoints, 3, 3) and p.shape == (7, model.njoints, 3)
    for one, turns, places in zip(q, R, p, strict=True):
        pin.forwardKinematics(model, data, one)
        expected = list(data.oMi)
        np.testing.assert_allclose(turns, [M.rotation for M in expected], rtol=0, atol=1e-13)
        np.testing.assert_allclose(places, [M.translation for M in expected], rtol=0, atol=2e-13)


@pytest.mark.parametrize("other", [False, True], ids=["usual", "other-coordinates"])
@pytest.mark.parametrize("reverse", [False, True], ids=["along", "against"])
def test_every_pair(reverse: bool, other: bool) -> None:
    """A chain of all pairs along skew axes, joints described from either end."""
    made = tables.build(mechanisms.every_pair(reverse))
    if other:
        joints = tuple(
            replace(joint, coordinates=OTHER.get(joint.pair.name, ""))
            for joint in made.description.joints
        )
        made = build(replace(made.description, joints=joints))
    check(made, 1 + reverse)


@pytest.mark.parametrize("name", ["palletizer", "six_axis_arm", "screw-jack", "delta"])
def test_robots(name: str) -> None:
    """Branched trees, and couplings: a coupled joint has a coordinate of its own."""
    check(robot(name), 5)


def test_two_robots_in_turns() -> None:
    """What is kept of one robot is not taken for another one of the same size."""
    long, short = (tables.build(mechanisms.every_pair(reverse)) for reverse in (False, True))
    for seed in (3, 4):
        check(long, seed)
        check(short, seed)


def test_one_state_and_none() -> None:
    """Any number of configurations."""
    arm = robot("six_axis_arm")
    R, p = compute_joint_poses(arm, np.zeros((0, arm.nq)))
    assert R.shape == (0, 7, 3, 3) and p.shape == (0, 7, 3)
    R, p = compute_joint_poses(arm, arm.neutral[None])
    assert R.shape == (1, 7, 3, 3) and p.shape == (1, 7, 3)


@pytest.mark.parametrize("name", ["every-pair", "six_axis_arm"])
def test_configurations_moved_and_compared(name: str) -> None:
    """What `moved` adds, `differences` finds again, as Pinocchio does."""
    one = robot(name)
    model, rng = one.model, np.random.default_rng(8)
    psi = rng.uniform(-1, 1, (5, one.nv))
    q = np.array([pin.integrate(model, one.neutral, rng.uniform(-1, 1, one.nv)) for _ in psi])
    ends = integrate_each(one, q, psi)
    expected = [pin.integrate(model, *pair) for pair in zip(q, psi, strict=True)]
    np.testing.assert_allclose(ends, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(difference_each(one, q, ends), psi, rtol=0, atol=1e-12)
    assert integrate_each(one, q[:0], psi[:0]).shape == (0, one.nq)
    assert difference_each(one, q[:0], q[:0]).shape == (0, one.nv)
