"""Tests of `pinloop.model.tree` against matrix exponentials and point masses of
`motion_by_hand`.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm

import pinloop as pl
from pinloop.model import workspace
from pinloop.model.description import GROUND, Body, Description, Drive, Joint, NamedFrame, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import Pair, make_pair
from pinloop.model.workspace import TreeKinematics

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables

PITCH = -0.15
VARIANTS = [(pair, "") for pair in m.TREE_PAIRS] + [
    ("revolute", "circle"),
    ("spherical", "zyx"),
    ("free", "SO3xR3"),
]
every_variant = pytest.mark.parametrize(("pair", "coordinates"), VARIANTS)
both_ways = pytest.mark.parametrize("forward", [True, False], ids=["forward", "backward"])

# Axis-aligned joints have models of their own in Pinocchio: turn z to x, y, -z and somewhere.
AXES = {"z": (0, 0, 1), "x": (1, 0, 0), "y": (0, 1, 0), "-z": (0, 0, -1), "skew": (1, 2, -2)}


def pair_of(name: str) -> Pair:
    return make_pair(name, pitch=PITCH if name == "helical" else None)


def seat(axis: tuple[int, int, int], seed: int) -> Any:
    """Placement whose z axis lies along ``axis``; seed 0 puts it at the origin."""
    z = np.array(axis) / np.linalg.norm(axis)
    helper = np.eye(3)[np.argmin(np.abs(z))]
    x = np.cross(helper, z) / np.linalg.norm(np.cross(helper, z))
    rng = np.random.default_rng(seed)
    shift = rng.uniform(-1, 1, 3) if seed else np.zeros(3)
    return pin.SE3(np.column_stack([x, np.cross(z, x), z]), shift)


def one_joint(pair: str, coordinates: Any, forward: bool, A: Any, B: Any, **more: Any) -> Any:
    """Robot with one body on one joint, and the joint."""
    ends = (GROUND, "body") if forward else ("body", GROUND)
    joint = Joint("joint", pair_of(pair), *ends, A, B, coordinates=coordinates, **more)
    return build(Description("one", (tables.described("body"),), (joint,)))


@every_variant
@both_ways
@pytest.mark.parametrize("axis", AXES)
def test_placement_is_the_product_of_exponentials(
    pair: str, coordinates: str, forward: bool, axis: str
) -> None:
    rng = np.random.default_rng(11)
    A, B = hand.random_se3(rng), seat(AXES[axis], 3)
    if not forward:
        A, B = B, A
    robot = one_joint(pair, coordinates, forward, A, B)
    for _ in range(4):
        q = hand.random_q(robot, rng)
        N = (hand.pair_motion if forward else hand.backwards)(pair, q, PITCH, coordinates)
        near, far = (A, B) if forward else (B, A)
        expected = near.homogeneous @ N @ np.linalg.inv(far.homogeneous)
        np.testing.assert_allclose(robot.placement(q, "body").homogeneous, expected, atol=1e-12)


@pytest.mark.parametrize("pair", sorted({*m.TREE_PAIRS} - {"fixed", "planar", *hand.TURNING}))
def test_coordinates_keep_their_sign_and_change_their_order_when_walked_backwards(
    pair: str,
) -> None:
    """B relative to A is the same for the same coordinates, whichever end is the ground."""
    rng = np.random.default_rng(12)
    A, B = hand.random_se3(rng), hand.random_se3(rng)
    ahead = one_joint(pair, "", True, A, B)
    back = one_joint(pair, "", False, A, B)
    for _ in range(3):
        q = hand.random_q(ahead, rng)
        of_b = A.inverse() * ahead.placement(q, "body") * B
        of_a = B.inverse() * back.placement(q[::-1], "body") * A
        np.testing.assert_allclose(of_b.homogeneous, of_a.inverse().homogeneous, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_chain_of_all_pairs_multiplies_up_and_starts_at_the_world(reverse: bool) -> None:
    robot = tables.build(m.every_pair(reverse))
    assert robot.joints == m.TREE_PAIRS[1:]
    for T in hand.placements(robot, robot.neutral).values():
        np.testing.assert_allclose(T, np.eye(4), atol=1e-14)
    rng, step = np.random.default_rng(13), hand.backwards if reverse else hand.pair_motion
    q, T = hand.random_q(robot, rng), np.eye(4)
    for joint in robot.description.joints:
        cells = np.zeros(0) if joint.name == "fixed" else q[robot.coordinates(joint.name).q]
        F = joint.frame_parent.homogeneous
        T = T @ F @ step(joint.name, cells, 0.07) @ np.linalg.inv(F)
        actual = robot.placement(q, f"after_{joint.name}").homogeneous
        np.testing.assert_allclose(actual, T, atol=1e-11)


def test_velocity_of_a_free_body_is_a_twist_or_moves_in_a_straight_line() -> None:
    """SE(3) turns the direction of flight with the body, SO(3) x R3 does not (paper 2)."""
    rng = np.random.default_rng(14)
    A, v = hand.random_se3(rng), rng.normal(size=6)
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hand.skew(v[3:]), v[:3]
    for coordinates in ("", "SO3xR3"):
        robot = one_joint("free", coordinates, True, A, pin.SE3.Identity())
        q = hand.random_q(robot, rng)
        start = A.inverse().homogeneous @ robot.placement(q, "body").homogeneous
        end = A.inverse().homogeneous @ robot.placement(robot.integrate(q, v), "body").homogeneous
        expected = start @ np.asarray(expm(twist))
        if coordinates:
            expected[:3, 3] = start[:3, 3] + v[:3]
        np.testing.assert_allclose(end, expected, atol=1e-12)


# -- what a joint brings beside its motion --------------------------------------------------


def values(count: int, start: float) -> tuple[float, ...]:
    return tuple(start + k for k in range(count))


@every_variant
@both_ways
def test_losses_and_limits_stand_at_their_degree_of_freedom(
    pair: str, coordinates: str, forward: bool
) -> None:
    """Values come in the order of the coordinates: reversed where a joint is walked backwards."""
    dof = pair_of(pair).dof
    given = {
        name: values(dof, start)
        for name, start in (("damping", 1.0), ("friction", 11.0), ("armature", 21.0),
                            ("velocity", 31.0), ("effort", 41.0))
    }  # fmt: skip
    robot = one_joint(pair, coordinates, forward, pin.SE3.Identity(), pin.SE3.Identity(), **given)
    as_described = forward or (pair in hand.TURNING and coordinates != "zyx")
    order = list(range(dof))[:: 1 if as_described else -1]
    model = robot.model
    for actual, name in (
        (model.damping, "damping"),
        (model.upperDryFrictionLimit, "friction"),
        (-model.lowerDryFrictionLimit, "friction"),
        (model.armature, "armature"),
        (model.upperVelocityLimit, "velocity"),
        (-model.lowerVelocityLimit, "velocity"),
        (model.upperEffortLimit, "effort"),
        (-model.lowerEffortLimit, "effort"),
    ):
        np.testing.assert_array_equal(actual, np.array(given[name])[order], err_msg=name)


@every_variant
def test_a_joint_without_values_is_free_of_loss_and_unlimited(pair: str, coordinates: str) -> None:
    robot = one_joint(pair, coordinates, True, pin.SE3.Identity(), pin.SE3.Identity())
    model = robot.model
    for zero in (model.damping, model.armature, model.upperDryFrictionLimit,
                 model.lowerDryFrictionLimit):  # fmt: skip
        assert not np.any(zero)
    for limit in (model.upperVelocityLimit, model.upperEffortLimit, model.upperPositionLimit,
                  -model.lowerVelocityLimit, -model.lowerEffortLimit,
                  -model.lowerPositionLimit):  # fmt: skip
        assert np.all(limit == np.inf)


@both_ways
@pytest.mark.parametrize(
    "pair",
    ["revolute", "prismatic", "helical", "cylindrical", "universal", "planar_translation",
     "spatial_translation", "schoenflies"],
)  # fmt: skip
def test_position_limits_hold_for_the_pair_whichever_way_it_is_walked(
    pair: str, forward: bool
) -> None:
    """The corners of the limits are the same placements of B in A, forward and backward."""
    dof = pair_of(pair).dof
    lower = tuple(-0.2 - 0.3 * k for k in range(dof))
    upper = values(dof, 0.1)
    A, B = seat(AXES["skew"], 1), seat(AXES["x"], 2)
    robot = one_joint(pair, "", forward, A, B, lower=lower, upper=upper)
    box = np.array([robot.model.lowerPositionLimit, robot.model.upperPositionLimit])
    corners, expected = [], []
    for choice in np.ndindex(*(2,) * dof):
        q = np.array([box[side, k] for k, side in enumerate(choice)])
        T = robot.placement(q, "body")
        corners.append(A.actInv(T * B) if forward else (B.actInv(T * A)).inverse())
        named = np.array([(lower, upper)[side][k] for k, side in enumerate(choice)])
        expected.append(hand.pair_motion(pair, named, PITCH))
    for matrix in expected:
        apart = [np.abs(corner.homogeneous - matrix).max() for corner in corners]
        assert min(apart) < 1e-12, f"{pair} must reach {matrix}"


@every_variant
@both_ways
def test_limits_are_used_or_named(pair: str, coordinates: str, forward: bool) -> None:
    """A joint with a quaternion or a circle has no place for them: then a warning says so."""
    dof = pair_of(pair).dof
    limits = {"lower": (-1.0,) * dof, "upper": (1.0,) * dof}
    robot = one_joint(pair, coordinates, forward, pin.SE3.Identity(), pin.SE3.Identity(), **limits)
    finite = np.isfinite(robot.model.lowerPositionLimit)
    assert finite.all() or not finite.any()
    warned = any("'joint'" in text and "limits" in text for text in robot.warnings)
    assert warned == (dof > 0 and not finite.all())


def test_drive_reflects_its_rotor_into_the_mass_matrix() -> None:
    """The kinetic energy of the rotor is half its inertia times the reduced speed squared."""
    entry = m.planar_3r()
    plain = tables.build(entry)
    reduction, rotor = 80.0, 2e-4
    drives = (Drive("j2", reduction, rotor), Drive("j3", -5.0))
    driven = build(replace(plain.description, drives=drives))
    q = np.array([0.3, -0.7, 1.1])
    gain = hand.mass_matrix(driven, q) - hand.mass_matrix(plain, q)
    expected = np.diag([0.0, 80.0 * 80.0 * 2e-4, 0.0])
    np.testing.assert_allclose(gain, expected, atol=1e-12)
    np.testing.assert_array_equal(driven.model.rotorGearRatio[1:], [80.0, -5.0])
    np.testing.assert_array_equal(driven.model.rotorInertia, [0.0, rotor, 0.0])


def test_armature_that_the_file_gives_is_not_replaced_by_the_drive() -> None:
    plain = tables.build(m.planar_3r())
    joints = tuple(replace(joint, armature=(0.25,)) for joint in plain.description.joints)
    drives = (Drive("j1", 10.0, 1.0),)
    robot = build(replace(plain.description, joints=joints, drives=drives))
    np.testing.assert_array_equal(robot.model.armature, [0.25] * 3)


# -- masses ---------------------------------------------------------------------------------

ROBOTS = {
    "every pair": lambda: tables.build(m.every_pair()),
    "every pair, backwards": lambda: tables.build(m.every_pair(reverse=True)),
    "double pendulum": lambda: tables.build(m.double_pendulum()),
    "rssr": lambda: tables.build(m.rssr()),
    "four-bar": lambda: tables.build(m.four_bar()),
    "SO3xR3": lambda: tables.build(m.four_bar()).absolute("SO3xR3"),
}


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> pl.Mechanism:
    return ROBOTS[request.param]()


def test_mass_matrix_gives_the_kinetic_energy_of_all_points(robot: pl.Mechanism) -> None:
    rng = np.random.default_rng(15)
    for _ in range(3):
        q, v = hand.random_q(robot, rng), rng.normal(size=robot.nv)
        energy = 0.5 * v @ hand.mass_matrix(robot, q) @ v
        assert energy == pytest.approx(hand.kinetic_energy(robot, q, v), rel=1e-7)


def test_generalized_gravity_is_the_gradient_of_the_potential(robot: pl.Mechanism) -> None:
    robot = build(replace(robot.description, gravity=constant([1.0, -2.0, -9.0])))
    rng = np.random.default_rng(16)
    q, data = hand.random_q(robot, rng), robot.model.createData()
    gravity = pin.computeGeneralizedGravity(robot.model, data, q)
    for k, unit in enumerate(np.eye(robot.nv)):
        slope = hand.rate(robot, q, unit, lambda q: hand.potential_energy(robot, q))
        assert gravity[k] == pytest.approx(slope, abs=1e-6)


def test_bodies_of_one_group_weigh_together() -> None:
    """A body on a fixed joint moves with its carrier, also when the joint points the other way."""
    rng = np.random.default_rng(17)
    at, on = hand.random_se3(rng), hand.random_se3(rng)
    turn = Joint("turn", make_pair("revolute"), GROUND, "a", at, on)
    fixed = make_pair("fixed")
    for weld, expected in (
        (Joint("weld", fixed, "a", "b", at, on), at * on.inverse()),
        (Joint("weld", fixed, "b", "a", at, on), on * at.inverse()),
    ):
        robot = build(
            Description("pair", (tables.described("a"), tables.described("b")), (turn, weld))
        )
        q = np.array([0.7])
        relative = robot.placement(q, "a").actInv(robot.placement(q, "b"))
        np.testing.assert_allclose(relative.homogeneous, expected.homogeneous, atol=1e-12)
        energy = 0.5 * hand.mass_matrix(robot, q)[0, 0]
        assert energy == pytest.approx(hand.kinetic_energy(robot, q, np.ones(1)), rel=1e-7)
        assert robot.placement(q, "weld").isApprox(robot.placement(q, "b"))


# -- frames ---------------------------------------------------------------------------------


def test_named_frames_and_ends_of_loops_sit_where_they_were_described() -> None:
    rng = np.random.default_rng(18)
    A, B, tool, mark = (hand.random_se3(rng) for _ in range(4))
    unit = pin.SE3.Identity()
    revolute = make_pair("revolute")
    robot = build(
        Description(
            "frames",
            (tables.described("a"), tables.described("b"), tables.described("c")),
            (
                Joint("j", revolute, GROUND, "a", unit, unit),
                Joint("w", make_pair("fixed"), "a", "b", tool, unit),
                Joint("k", revolute, "b", "c", unit, tool),
                Joint("close", make_pair("free"), "c", "b", A, B, cut=True),
            ),
            frames=(NamedFrame("tool", "b", tool), NamedFrame("mark", GROUND, mark)),
        )
    )
    q = np.array([0.4, -1.3])
    b, c = robot.placement(q, "b"), robot.placement(q, "c")
    for name, expected in (
        ("tool", b * tool), ("mark", mark), ("close/A", c * A), ("close/B", b * B),
        ("ground", unit), ("world", unit), ("universe", unit), ("k", c * tool),
    ):  # fmt: skip
        actual = robot.placement(q, name)
        if name == "k":  # only the place of a joint is its own, its axes are the child's
            np.testing.assert_allclose(actual.translation, expected.translation, atol=1e-12)
            continue
        np.testing.assert_allclose(actual.homogeneous, expected.homogeneous, atol=1e-12)
    (loop,) = robot.loops
    assert [robot.frames[loop.frame_a], robot.frames[loop.frame_b]] == ["close/A", "close/B"]


def test_base_is_the_ground_and_what_hangs_on_it_still_moves() -> None:
    unit = pin.SE3.Identity()
    robot = build(
        Description(
            "based",
            (tables.described("base"), tables.described("arm")),
            (Joint("j", make_pair("prismatic"), "base", "arm", unit, unit),),
            base="base",
        )
    )
    assert robot.joints == ("j",)
    q = np.array([0.5])
    assert robot.placement(q, "base").isIdentity()
    np.testing.assert_allclose(robot.placement(q, "arm").translation, [0, 0, 0.5])
    assert hand.mass_matrix(robot, q)[0, 0] == pytest.approx(tables.mass_points("arm")[0].sum())


def test_names_of_loop_ends_are_taken() -> None:
    """A frame, body or joint called like the end of a loop would be mistaken for it."""
    unit, revolute = pin.SE3.Identity(), make_pair("revolute")

    def three(body: str, joint: str, frames: tuple[NamedFrame, ...] = ()) -> pl.Mechanism:
        return build(
            Description(
                "clash",
                (tables.described(body), tables.described("far")),
                (
                    Joint(joint, revolute, GROUND, body, unit, unit),
                    Joint("next", revolute, body, "far", unit, unit),
                    Joint("close", revolute, GROUND, "far", unit, unit, cut=True),
                ),
                frames=frames,
            )
        )

    assert three("near", "first").nq == 2
    for body, joint, frames in (
        ("close/A", "first", ()),
        ("near", "close/B", ()),
        ("near", "first", (NamedFrame("close/A", "near", unit),)),
    ):
        with pytest.raises(pl.LoadError, match="close/"):
            three(body, joint, frames)


def test_massless_body_between_others_adds_nothing() -> None:
    unit, at = pin.SE3.Identity(), pin.SE3(np.eye(3), np.array([0.0, 1.0, 0.0]))
    joints = (
        Joint("j", make_pair("revolute"), GROUND, "a", unit, unit),
        Joint("w", make_pair("fixed"), "a", "tip", at, unit),
    )
    robot = build(Description("tip", (tables.described("a"), Body("tip")), joints))
    alone = build(Description("tip", (tables.described("a"),), joints[:1]))
    q = np.array([0.3])
    np.testing.assert_array_equal(hand.mass_matrix(robot, q), hand.mass_matrix(alone, q))
    expected = [-np.sin(0.3), np.cos(0.3), 0]
    np.testing.assert_allclose(robot.placement(q, "tip").translation, expected, atol=1e-15)


# -- kinematics without a pin.Data ----------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_kinematics_of_large_trees(
    reverse: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_MANY", limit)
    for robot in (tables.build(m.every_pair(reverse)), tables.build(m.four_bar())):
        model, data = robot.model, robot.model.createData()
        found, rng = TreeKinematics(model), np.random.default_rng(4)
        for _ in range(3):
            q = hand.random_q(robot, rng)
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            assert found.update(q) is found
            again = pickle.loads(pickle.dumps(found)).update(q)
            np.testing.assert_array_equal(again.J, found.J)
            np.testing.assert_allclose(found.J, np.reshape(data.J, (6, -1)), atol=1e-13)
            for mine, exact in ((found.oMi, data.oMi), (found.oMf, data.oMf)):
                assert len(mine) == len(exact)
                for one, other in zip(mine, exact, strict=True):
                    assert one.isApprox(other, 1e-13)


@pytest.mark.parametrize("limit", [0, 1000])
def test_a_configuration_is_placed_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_MANY", limit)
    robot = tables.build(m.four_bar())
    at = TreeKinematics(robot.model)
    first, other = robot.neutral, robot.neutral + 0.1
    placed = at.update(first).oMi
    assert at.update(first.copy()).oMi is placed
    moved = at.update(other).J.copy()
    other += 0.1  # what was given is not kept
    assert np.abs(at.update(other).J - moved).max() > 0.01


def test_links_without_joints_that_move_are_placed() -> None:
    model = pin.Model()
    model.addFrame(pin.Frame("tip", 0, 0, pin.SE3.Random(), pin.FrameType.OP_FRAME))
    assert len(TreeKinematics(model).update(np.zeros(0)).oMf) == model.nframes
