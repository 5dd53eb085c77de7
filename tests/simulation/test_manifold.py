"""Tests of `RobotManifold`: which joints are curved, and what is kept to the last bit."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.simulation.modes import RobotManifold


def _mixed() -> pl.Mechanism:
    """A hinge, a hinge stored as cosine and sine, and a ball, one after another."""
    model = pin.Model()
    kinds = pin.JointModelRX(), pin.JointModelRUBY(), pin.JointModelSpherical()
    parent = 0
    for name, kind in zip(("hinge", "wheel", "ball"), kinds, strict=True):
        parent = model.addJoint(parent, kind, pin.SE3.Identity(), name)
        model.addJointFrame(parent)
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
        model.addBodyFrame(f"{name}_body", parent, pin.SE3.Identity(), -1)
    return pl.load(model)


def test_cosine_and_sine_are_a_vector_space_for_steps() -> None:
    robot = _mixed()
    manifold = RobotManifold(robot)
    assert manifold.curved.tolist() == [False, False, True, True, True]
    assert not manifold.flat
    rng = np.random.default_rng(0)
    q, psi, v = pin.normalize(robot.model, rng.normal(size=robot.nq)), *rng.normal(size=(2, 5))
    rate = manifold.dexp_inv(q, psi, v)
    np.testing.assert_array_equal(rate[:2], v[:2])
    np.testing.assert_allclose(manifold.dexp(q, psi, rate), v, rtol=0, atol=1e-14)
    # The ball by finite differences: where q (+) psi goes with velocity v, psi goes with rate.
    eps = 1e-6
    ahead = pin.integrate(robot.model, pin.integrate(robot.model, q, psi), eps * v)
    moved = pin.integrate(robot.model, q, psi + eps * rate)
    assert np.abs(ahead - moved).max() < 1e-10


@pytest.mark.parametrize("held", ["hinge", "wheel", "ball"])
def test_what_is_held_stays_to_the_last_bit(held: str) -> None:
    robot = _mixed()
    manifold = RobotManifold(robot)
    rng = np.random.default_rng(1)
    q = pin.normalize(robot.model, rng.normal(size=robot.nq)) * (1 + 1e-9)
    at = robot.coordinates(held).q
    held_still = manifold.in_mode(pl.Mode(held))
    step = 1e-3 * rng.normal(size=robot.nv)
    for moved in (held_still.integrate(q, step), held_still.normalize(q)):
        assert moved[at].tobytes() == q[at].tobytes()
        others = np.delete(np.arange(robot.nq), np.arange(robot.nq)[at])
        assert (moved[others] != q[others]).any()
    assert (manifold.integrate(q, step)[at] != q[at]).any()
