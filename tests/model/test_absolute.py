"""Tests of absolute coordinates: the same machine, whatever the coordinates (paper 2).

The strong test takes a state of the robot in relative coordinates, carries it over body by body,
solves the equations of motion in both with NumPy and compares the bodies' accelerations: it holds
only if Jacobian, gamma, mass matrix and joint models all agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array

UNIT = pin.SE3.Identity()
SPACES: tuple[Literal["SE3", "SO3xR3", "auto"], ...] = ("SE3", "SO3xR3", "auto")

MECHANISMS: dict[str, Callable[[], tables.Table]] = {
    "four-bar": m.four_bar,
    "ball loop": m.ball_loop,
    "rssr": m.rssr,
    "slider-crank": m.slider_crank,
    "spherical four-bar": m.spherical_four_bar,
    "bennett": m.bennett,
    "sarrus": m.sarrus,
    "screw jack": m.screw_jack,
    "double cardan": m.double_cardan,
    "tip on plane": m.tip_on_plane,
    "rod pendulums": m.rod_pendulums,
    "double pendulum": m.double_pendulum,
    "six-axis arm": m.arm_6r,
}
every_space = pytest.mark.parametrize("space", SPACES)
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


# -- a state carried over body by body ------------------------------------------------------


@dataclass
class Moving:
    """Kinematics of a robot at a state, read body by body."""

    robot: pl.Mechanism
    q: Array
    v: Array

    def kinematics(self, a: Array) -> dict[str, tuple[Any, Any, Any]]:
        """Placement in the world, twist and spatial acceleration in the body, of every body."""
        model = self.robot.model
        data = model.createData()
        pin.forwardKinematics(model, data, self.q, self.v, a)
        pin.updateFramePlacements(model, data)
        found = {}
        for name in self.robot.bodies:
            frame = model.getFrameId(name, pin.FrameType.BODY)
            found[name] = (
                data.oMf[frame].copy(),
                pin.getFrameVelocity(model, data, frame, pin.LOCAL),
                pin.getFrameAcceleration(model, data, frame, pin.LOCAL),
            )
        return found

    def accelerations(self, wrenches: dict[str, Array]) -> Array:
        """Joint accelerations under gravity and wrenches on bodies (in the body, linear first).

        Solves ``M a + nle = Q + J' lam``, ``J a + gamma = 0`` in the least-squares sense.
        """
        model, nv = self.robot.model, self.robot.nv
        data = model.createData()
        forces = -np.asarray(pin.nonLinearEffects(model, data, self.q, self.v))
        for name, wrench in wrenches.items():
            frame = model.getFrameId(name, pin.FrameType.BODY)
            jacobian = pin.computeFrameJacobian(model, data, self.q, frame, pin.LOCAL)
            forces += jacobian.reshape(6, nv).T @ wrench
        rows = pl.Constraints(self.robot)
        J, M = rows.jacobian(self.q), hand.mass_matrix(self.robot, self.q)
        saddle = np.block([[M, -J.T], [J, np.zeros((len(rows), len(rows)))]])
        right = np.r_[forces, -rows.gamma(self.q, self.v)]
        solution = np.linalg.lstsq(saddle, right, rcond=1e-11)[0]
        assert np.abs(saddle @ solution - right).max() < 1e-7 * max(1.0, np.abs(right).max())
        return np.asarray(solution[:nv])

    def energy(self) -> float:
        return float(0.5 * self.v @ hand.mass_matrix(self.robot, self.q) @ self.v)


def carried_over(here: Moving, there: pl.Mechanism) -> Moving:
    """The same placements and twists of all bodies in the coordinates of ``there``."""
    q, v = there.neutral, np.zeros(there.nv)
    bodies = here.kinematics(np.zeros(here.robot.nv))
    for joint in there.joints:
        body = joint.removesuffix("@ground")
        at = there.coordinates(joint)
        frame = there.model.frames[there.model.getFrameId(body, pin.FrameType.BODY)]
        placement, twist, _ = bodies[body]
        on_body = frame.placement.inverse()  # of the joint's frame
        joint_placement = there.model.jointPlacements[at.index].actInv(placement * on_body)
        q[at.q] = pin.SE3ToXYZQUAT(joint_placement)
        local = on_body.actInv(twist)
        v[at.v] = local.vector
        if "Composite" in there.model.joints[at.index].shortname():
            v[at.v][:3] = joint_placement.rotation @ local.linear
    return Moving(there, q, v)


def moving(robot: pl.Mechanism, seed: int, moved: bool = True) -> Moving:
    """A robot on its way: somewhere on its manifold, at a velocity that its loops allow."""
    rng = np.random.default_rng(seed)
    q = robot.neutral
    if moved:
        q = pl.assemble(robot, robot.integrate(q, 0.1 * rng.normal(size=robot.nv)))
    jacobian = pl.Constraints(robot).jacobian(q)
    values, directions = np.linalg.svd(jacobian)[1:]
    rank = int(np.sum(values > 1e-9 * max(values, default=0.0)))
    v = rng.normal(size=robot.nv - rank) @ directions[rank:]
    return Moving(robot, q, 3.0 * v / np.linalg.norm(v))


def wrenches_on(robot: pl.Mechanism, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-20, 20, 6) for name in robot.bodies}


@every_mechanism
@every_space
def test_state_carried_over_satisfies_the_constraints_with_the_same_energy(
    name: str, space: Any
) -> None:
    here = moving(tables.build(MECHANISMS[name]()), seed=41)
    there = carried_over(here, here.robot.absolute(space))
    rows = pl.Constraints(there.robot)
    assert np.abs(rows.residual(there.q)).max() < 1e-9
    assert np.abs(rows.jacobian(there.q) @ there.v).max() < 1e-8
    assert there.energy() == pytest.approx(here.energy(), rel=1e-10)
    assert np.linalg.norm(here.v) == pytest.approx(3.0)


@every_mechanism
@every_space
def test_bodies_accelerate_alike_in_all_coordinates(name: str, space: Any) -> None:
    here = moving(tables.build(MECHANISMS[name]()), seed=42)
    there = carried_over(here, here.robot.absolute(space))
    wrenches = wrenches_on(here.robot, seed=43)
    expected = here.kinematics(here.accelerations(wrenches))
    actual = there.kinematics(there.accelerations(wrenches))
    size = max(np.abs(a.vector).max() for _, _, a in expected.values())
    assert size > 1.0
    for body, parts in expected.items():
        for mine, theirs in zip(parts, actual[body], strict=True):
            if isinstance(mine, pin.SE3):
                np.testing.assert_allclose(theirs.homogeneous, mine.homogeneous, atol=1e-11)
            else:
                np.testing.assert_allclose(theirs.vector, mine.vector, atol=1e-8 * size)


def test_energy_changes_by_the_power_of_the_forces() -> None:
    """An independent check of the accelerations themselves: d(T + U)/dt is what the wrenches do."""
    robot = tables.build(m.rssr())
    here = moving(robot, seed=44)
    wrenches = wrenches_on(robot, seed=45)
    a = here.accelerations(wrenches)

    def energy(t: float) -> float:
        q = robot.integrate(here.q, t * here.v)
        v = here.v + t * a
        return 0.5 * float(v @ hand.mass_matrix(robot, q) @ v) + hand.potential_energy(robot, q)

    twists = here.kinematics(a)
    power = sum(wrenches[name] @ twists[name][1].vector for name in robot.bodies)
    assert hand.slope(energy) == pytest.approx(power, rel=1e-7)


# -- what the robot is in absolute coordinates ----------------------------------------------


@every_mechanism
@every_space
def test_mobility_is_a_matter_of_the_machine(name: str, space: Any) -> None:
    robot = tables.build(MECHANISMS[name]())
    absolute = robot.absolute(space)
    assert absolute.nv == 6 * len(robot.bodies)
    assert len(absolute.loops) == len(robot.description.joints)

    def mobility(state: Moving) -> int:
        J = pl.Constraints(state.robot).jacobian(state.q)
        return state.robot.nv - int(np.linalg.matrix_rank(J, tol=1e-8))

    here = moving(robot, seed=46)
    assert mobility(carried_over(here, absolute)) == mobility(here)


def hanging(reverse: bool) -> pl.Mechanism:
    """Every pair, welds on the ground and on a body, a base, and a pose away from the world."""
    rng = np.random.default_rng(47)
    chain = tables.build(m.every_pair(reverse)).description
    seat, lid = hand.random_se3(rng), hand.random_se3(rng)
    extra = (
        Joint("lid", make_pair("fixed"), "after_spherical", "lid", seat, lid),
        Joint("bolt", make_pair("fixed"), "base", "post", lid, seat),
        Joint("hinge", make_pair("revolute"), "post", "gate", seat, UNIT),
    )
    bodies = (*chain.bodies, *(tables.described(name) for name in ("lid", "base", "post", "gate")))
    joints = tuple(
        replace(joint, frame_parent=joint.frame_parent * hand.random_se3(rng))
        for joint in chain.joints
    )
    return build(replace(chain, bodies=bodies, joints=(*joints, *extra), base="base"))


@every_space
@pytest.mark.parametrize("reverse", [False, True])
def test_neutral_puts_every_body_where_it_is(space: Any, reverse: bool) -> None:
    robot = hanging(reverse)
    absolute = robot.absolute(space)
    assert absolute.bodies == robot.bodies
    expected = hand.placements(robot, robot.neutral)
    for name, T in hand.placements(absolute, absolute.neutral).items():
        np.testing.assert_allclose(T, expected[name], atol=1e-12)
    assert np.abs(pl.Constraints(absolute).residual(absolute.neutral)).max() < 1e-9
    # Free joints sit at the centres of mass in world axes: the mass matrix is block diagonal.
    groups = [[name] for name in robot.bodies if name not in ("lid", "base", "post")]
    groups = [g for g in groups if g != ["after_fixed"]]
    next(g for g in groups if g == ["after_spherical"]).append("lid")
    assert absolute.joints == tuple(f"{group[0]}@ground" for group in groups)
    for joint, group in zip(absolute.joints, groups, strict=True):
        at = absolute.coordinates(joint)
        placement = absolute.placement(absolute.neutral, joint)
        mass = sum(tables.mass_points(name)[0].sum() for name in group)
        centre = sum(
            (tables.mass_points(name)[0] @ (tables.mass_points(name)[1] @ expected[name][:3, :3].T
                                          + expected[name][:3, 3]) for name in group),
            np.zeros(3),
        ) / mass  # fmt: skip
        np.testing.assert_allclose(placement.rotation, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(placement.translation, centre, atol=1e-12)
        block = hand.mass_matrix(absolute, absolute.neutral)[at.v, at.v]
        np.testing.assert_allclose(block[:3, :3], mass * np.eye(3), atol=1e-10)
        np.testing.assert_allclose(block[:3, 3:], 0, atol=1e-10)


@every_space
def test_joints_of_the_tree_become_loops_and_free_ones_loops_without_rows(space: Any) -> None:
    robot = hanging(reverse=False)
    absolute = robot.absolute(space)
    loops = {loop.name: loop.pair.name for loop in absolute.loops}
    moving_pairs = {pair: pair for pair in m.TREE_PAIRS if pair != "fixed"}
    assert loops == moving_pairs | {"hinge": "revolute"}
    assert len(pl.Constraints(absolute)) == sum(6 - robot.coordinates(name).nv for name in loops)


def kinds(robot: pl.Mechanism) -> dict[str, str]:
    """Kind of joint of each body, seen from how far it flies while it turns."""
    found = {}
    for joint in robot.joints:
        v = np.zeros(robot.nv)
        v[robot.coordinates(joint).v] = (1, 0, 0, 0, 0, np.pi)
        before = robot.placement(robot.neutral, joint).translation
        after = robot.placement(robot.integrate(robot.neutral, v), joint).translation
        flight = np.linalg.norm(after - before)
        assert flight == pytest.approx(1.0) or flight == pytest.approx(2 / np.pi)
        found[joint.removesuffix("@ground")] = "SO3xR3" if flight > 0.9 else "SE3"
    return found


def test_auto_gives_a_screw_motion_to_what_a_lower_pair_hangs_on_the_ground() -> None:
    """Paper 2: the flow of a constant twist stays in a motion group, on no other pair."""
    expected = {
        "four-bar": {"crank": "SE3", "coupler": "SO3xR3", "rocker": "SE3"},
        "slider-crank": {"crank": "SE3", "rod": "SO3xR3", "piston": "SE3"},
        "ball loop": {"upper": "SE3", "lower": "SO3xR3"},
        "tip on plane": {"upper": "SE3", "lower": "SO3xR3"},
        "bennett": {"one": "SE3", "two": "SO3xR3", "three": "SE3"},
        "rod pendulums": {"left": "SE3", "right": "SE3"},
    }
    for name, spaces in expected.items():
        assert kinds(tables.build(MECHANISMS[name]()).absolute()) == spaces, name
    gimbal = tables.build(
        tables.table(
            "gimbal", tables.joint("u", "universal", GROUND, "ring", [0, 0, 0], m.X, axis2=m.Y)
        )
    )
    flying = tables.build(
        tables.table("flying", tables.joint("f", "free", GROUND, "bird", [0, 0, 0]))
    )
    assert kinds(gimbal.absolute()) == {"ring": "SO3xR3"}
    assert kinds(flying.absolute()) == {"bird": "SO3xR3"}


def test_auto_looks_through_welds() -> None:
    """A lid bolted on a body that is hinged on a post bolted to the ground."""
    weld, hinge, ball = make_pair("fixed"), make_pair("revolute"), make_pair("spherical")
    robot = build(
        Description(
            "welds",
            tuple(tables.described(name) for name in ("post", "lid", "door", "bell")),
            (
                Joint("w1", weld, GROUND, "post", UNIT, UNIT),
                Joint("h", hinge, "lid", "post", UNIT, UNIT),
                Joint("w2", weld, "lid", "door", UNIT, UNIT),
                Joint("b", ball, "door", "bell", UNIT, UNIT),
            ),
        )
    )
    assert kinds(robot.absolute()) == {"lid": "SE3", "bell": "SO3xR3"}


def test_named_spaces_are_what_they_say() -> None:
    robot = tables.build(m.four_bar())
    assert set(kinds(robot.absolute("SE3")).values()) == {"SE3"}
    assert set(kinds(robot.absolute("SO3xR3")).values()) == {"SO3xR3"}
    with pytest.raises(pl.BadValue, match="'SE2'"):
        robot.absolute("SE2")  # type: ignore[arg-type]


def test_a_group_without_mass_sits_at_its_own_origin() -> None:
    at = pin.SE3(np.eye(3), np.array([1.0, 2.0, 3.0]))
    joints = (
        Joint("j", make_pair("revolute"), GROUND, "light", at, UNIT),
        Joint("k", make_pair("revolute"), "light", "heavy", UNIT, UNIT),
    )
    heavy = Body("heavy", 1.0, constant(np.zeros(3)), constant(np.eye(3)))
    robot = build(Description("r", (Body("light"), heavy), joints))
    absolute = robot.absolute()
    placement = absolute.placement(absolute.neutral, "light@ground")
    np.testing.assert_allclose(placement.translation, [1, 2, 3])


def test_limits_and_losses_of_joints_are_not_lost_silently() -> None:
    plain = tables.build(m.planar_3r()).description
    joints = tuple(
        replace(joint, lower=(-1.0,), upper=(1.0,), armature=(0.2,), damping=(0.1,))
        for joint in plain.joints
    )
    absolute = build(replace(plain, joints=joints)).absolute()
    assert np.all(absolute.model.upperPositionLimit == np.inf)
    for joint in joints:
        lost, unknown = [text for text in absolute.warnings if f"'{joint.name}'" in text]
        assert lost.endswith("; not used: position limits, armature")
        assert unknown.endswith("; not used in stops: damping")


def test_absolute_of_absolute_is_the_same_robot() -> None:
    once = tables.build(m.four_bar()).absolute("SE3")
    twice = once.absolute("SE3")
    assert (twice.nq, len(twice.loops)) == (once.nq, len(once.loops))
    rows = pl.Constraints(twice)
    assert np.abs(rows.residual(twice.neutral)).max() < 1e-14
