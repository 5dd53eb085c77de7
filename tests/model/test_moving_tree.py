"""How velocities, accelerations, wrenches and loads of a tree change with its state.

The oracle is Pinocchio at displaced states, on trees with every kind of joint in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from pinloop.linalg.dense import slopes
from pinloop.model.moving_tree import JointChain, MovingTree

Array = Any
TOLERANCE = 1e-9


def composite(*parts: Any) -> Any:
    joint = pin.JointModelComposite()
    for part in parts:
        joint.addJoint(part)
    return joint


TILTED = np.array([0.6, 0.0, 0.8])
STEADY: dict[str, Callable[[], Any]] = {
    "revolute": pin.JointModelRX,
    "tilted revolute": lambda: pin.JointModelRevoluteUnaligned(TILTED),
    "prismatic": pin.JointModelPX,
    "helical": lambda: pin.JointModelHX(0.1),
    "circle": pin.JointModelRUBZ,
    "spherical": pin.JointModelSpherical,
    "planar": pin.JointModelPlanar,
    "translation": pin.JointModelTranslation,
    "free": pin.JointModelFreeFlyer,
    "cylindrical": lambda: composite(pin.JointModelPZ(), pin.JointModelRZ()),
}
TURNING: dict[str, Callable[[], Any]] = {
    "Euler angles": pin.JointModelSphericalZYX,
    "universal": lambda: pin.JointModelUniversal(np.array([0.0, 0, 1]), np.array([1.0, 0, 0])),
    "pin in slot": lambda: composite(pin.JointModelPX(), pin.JointModelRZ()),
    "turn and slide": lambda: composite(pin.JointModelRZ(), pin.JointModelPX()),
    "SO3xR3": lambda: composite(pin.JointModelTranslation(), pin.JointModelSpherical()),
}
"""Joints whose twists move in the body that they carry."""
KINDS = STEADY | TURNING


class Tree:
    """Two branches behind a joint, in motion, with a frame at the end of each."""

    def __init__(self, kind: str, seed: int = 1) -> None:
        pin.seed(seed)
        rng = np.random.default_rng(seed)
        self.model = model = pin.Model()
        middle = 0
        for number, joint in enumerate((pin.JointModelRY(), KINDS[kind](), pin.JointModelRX())):
            middle = model.addJoint(middle, joint, pin.SE3.Random(), f"joint {number}")
            model.appendBodyToJoint(middle, pin.Inertia.Random(), pin.SE3.Identity())
        side = model.addJoint(2, pin.JointModelPX(), pin.SE3.Random(), "side")
        model.appendBodyToJoint(side, pin.Inertia.Random(), pin.SE3.Identity())
        self.a, self.b = (
            model.addFrame(pin.Frame(name, joint, 0, pin.SE3.Random(), pin.FrameType.OP_FRAME))
            for name, joint in (("A", side), ("B", middle))
        )
        self.q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
        self.v, self.acc = rng.normal(size=(2, model.nv))
        self.wrench, self.force, self.offset = (rng.normal(size=n) for n in (6, 3, 3))
        self.data = model.createData()

    def moving(self, **movable: Any) -> MovingTree:
        return MovingTree(JointChain(self.model, **movable), self.q, self.v, self.acc)

    def by_q(self, function: Callable[[Array, Array], Array]) -> Array:
        """Derivatives by positions, one row per coordinate."""
        model = self.model
        return slopes(lambda s: function(pin.integrate(model, self.q, s), self.v), model.nv)

    def by_v(self, function: Callable[[Array, Array], Array]) -> Array:
        return slopes(lambda s: function(self.q, self.v + s), self.model.nv)

    def at(self, q: Array, v: Array) -> None:
        pin.forwardKinematics(self.model, self.data, q, v, self.acc)
        pin.computeJointJacobians(self.model, self.data)
        pin.updateFramePlacements(self.model, self.data)

    def loads(self, q: Array, v: Array) -> Array:
        return np.array(pin.rnea(self.model, self.data, q, v, self.acc))

    def relative(self, q: Array, v: Array) -> Array:
        """Twist of B relative to A in B, and its rate there."""
        self.at(q, v)
        (V_a, V_b), (A_a, A_b) = (
            [get(self.model, self.data, frame, pin.LOCAL) for frame in (self.a, self.b)]
            for get in (pin.getFrameVelocity, pin.getFrameAcceleration)
        )
        to_b = self.data.oMf[self.b].actInv(self.data.oMf[self.a])
        carried = to_b.act(V_a)
        V = V_b - carried
        return np.concatenate([V.vector, (A_b - to_b.act(A_a) + V.cross(carried)).vector])

    def jacobian(self, frame: int) -> Array:
        return pin.getFrameJacobian(self.model, self.data, frame, pin.LOCAL)

    def wrench_loads(self, q: Array, v: Array) -> Array:
        """Generalised forces of a wrench that B feels, and of its opposite on A."""
        self.at(q, v)
        to_b = self.data.oMf[self.b].actInv(self.data.oMf[self.a]).toActionMatrix()
        return (self.jacobian(self.b) - to_b @ self.jacobian(self.a)).T @ self.wrench

    def force_loads(self, q: Array, v: Array) -> Array:
        """Generalised forces of a force in the world on a point of B."""
        self.at(q, v)
        rotation = self.data.oMf[self.b].rotation
        J = self.jacobian(self.b)
        return (rotation @ (J[:3] - pin.skew(self.offset) @ J[3:])).T @ self.force


@pytest.mark.parametrize("kind", KINDS)
def test_loads_have_the_slopes_of_inverse_dynamics(kind: str) -> None:
    tree = Tree(kind)
    by_q, by_v = tree.moving().load_slopes()
    size = np.abs(by_q).max()
    np.testing.assert_allclose(by_q, tree.by_q(tree.loads).T, atol=TOLERANCE * size)
    np.testing.assert_allclose(by_v, tree.by_v(tree.loads).T, atol=TOLERANCE * size)


@pytest.mark.parametrize("kind", TURNING)
def test_pinocchio_takes_the_twists_of_each_joint_for_constant(kind: str) -> None:
    """When this fails, Pinocchio has mended it, and `simple_joints` may go."""
    tree = Tree(kind)
    by_q = pin.computeRNEADerivatives(tree.model, tree.data, tree.q, tree.v, tree.acc)[0]
    wanted = tree.by_q(tree.loads).T
    assert np.abs(by_q - wanted).max() > 1e-2 * np.abs(wanted).max()


@pytest.mark.parametrize("kind", KINDS)
def test_relative_motion_has_the_slopes_of_pinocchios(kind: str) -> None:
    tree = Tree(kind)
    found = tree.moving().relative([(tree.a, tree.b)])
    here = tree.relative(tree.q, tree.v)
    np.testing.assert_allclose(np.append(found.V[0], found.A[0]), here, atol=1e-12)
    by_q, by_v = tree.by_q(tree.relative), tree.by_v(tree.relative)
    np.testing.assert_allclose(np.hstack([found.V_q[0], found.A_q[0]]), by_q, atol=TOLERANCE)
    np.testing.assert_allclose(np.hstack([found.motion[0], found.A_v[0]]), by_v, atol=TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_wrenches_and_forces_have_the_slopes_of_their_loads(kind: str) -> None:
    tree = Tree(kind)
    moving = tree.moving()
    of_wrench = moving.wrench_slope([(tree.a, tree.b)], [tree.wrench])
    np.testing.assert_allclose(of_wrench, tree.by_q(tree.wrench_loads).T, atol=TOLERANCE)
    of_force = moving.point_force_slope(tree.b, tree.offset, tree.force)
    np.testing.assert_allclose(of_force, tree.by_q(tree.force_loads).T, atol=TOLERANCE)


def test_places_that_can_be_moved_are_coordinates_at_rest() -> None:
    tree = Tree("universal")
    chain = JointChain(tree.model, ["joint 2", "B"])
    moving = MovingTree(chain, tree.q, tree.v, tree.acc)
    plain = tree.moving()
    own = np.ix_(chain.columns, chain.columns)
    for part, wanted in zip(moving.load_slopes(), plain.load_slopes(), strict=True):
        np.testing.assert_allclose(part[own], wanted, atol=1e-12)

    def moved(name: str, step: Array) -> Array:
        model = tree.model.copy()
        if name == "B":
            model.frames[tree.b].placement = model.frames[tree.b].placement * pin.exp6(step)
        else:
            index = model.getJointId(name)
            model.jointPlacements[index] = model.jointPlacements[index] * pin.exp6(step)
        data = model.createData()
        loads = pin.rnea(model, data, tree.q, tree.v, tree.acc)
        original, tree.model, tree.data = (tree.model, tree.data), model, data
        relative = tree.relative(tree.q, tree.v)
        tree.model, tree.data = original
        return np.append(loads, relative)

    found = moving.relative([(tree.a, tree.b)])
    for name in ("joint 2", "B"):
        at = chain.moved[name]
        wanted = slopes(partial(moved, name), 6)
        loads = moving.load_slopes()[0][np.ix_(chain.columns, at)].T
        motion = np.hstack([found.V_q[0][at], found.A_q[0][at]])
        np.testing.assert_allclose(np.hstack([loads, motion]), wanted, atol=1e-8)
