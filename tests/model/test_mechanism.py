"""Tests of `pinloop.model.mechanism`: coordinates by name, placements, payloads, and what is
refused.

With it `pinloop.model.tree`, `pinloop.boundary.arguments` and the payloads of
`pinloop.model.transformations`.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Drive, Joint, NamedFrame, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array

ROOT = Path(__file__).parents[2]

UNIT = pin.SE3.Identity()
HALF = np.sqrt(0.5)


@pytest.fixture(scope="module")
def mixed() -> pl.Mechanism:
    """A chain with every kind of coordinate, a weld and a loop joint."""
    rng = np.random.default_rng(31)
    kinds: list[tuple[str, Any]] = [
        ("revolute", ""), ("revolute", "circle"), ("spherical", ""), ("planar", ""),
        ("fixed", ""), ("free", "SO3xR3"), ("prismatic", ""),
    ]  # fmt: skip
    bodies, joints, near = [], [], GROUND
    for k, (pair, coordinates) in enumerate(kinds):
        name = f"{pair}{k}"
        places = hand.random_se3(rng), hand.random_se3(rng)
        joints.append(Joint(name, make_pair(pair), near, f"b{k}", *places, coordinates=coordinates))
        near = f"b{k}"
        bodies.append(tables.described(near))
    joints.append(Joint("loop", make_pair("spherical"), "b0", near, UNIT, UNIT, cut=True))
    return build(Description("mixed", tuple(bodies), tuple(joints)))


# -- coordinates by name --------------------------------------------------------------------


def test_joints_stand_in_q_and_v_one_after_the_other(mixed: pl.Mechanism) -> None:
    assert mixed.joints == (
        "revolute0", "revolute1", "spherical2", "planar3", "free5", "prismatic6",
    )  # fmt: skip
    sizes = [(1, 1), (2, 1), (4, 3), (4, 3), (7, 6), (1, 1)]
    start_q = start_v = 0
    for name, (nq, nv) in zip(mixed.joints, sizes, strict=True):
        at = mixed.coordinates(name)
        assert (at.name, at.nq, at.nv) == (name, nq, nv)
        assert (at.q, at.v) == (slice(start_q, start_q + nq), slice(start_v, start_v + nv))
        assert mixed.model.names[at.index] == name
        start_q, start_v = start_q + nq, start_v + nv
    assert (mixed.nq, mixed.nv) == (start_q, start_v) == (19, 15)


def test_configuration_sets_what_is_named_and_keeps_the_rest(mixed: pl.Mechanism) -> None:
    q = mixed.configuration(
        {"revolute0": 0.3, "revolute1": 2.0, "spherical2": [HALF, 0, 0, HALF],
         "planar3": [1, 2, 0, -1]}
    )  # fmt: skip
    expected = [0.3, np.cos(2.0), np.sin(2.0), HALF, 0, 0, HALF, 1, 2, 0, -1,
                0, 0, 0, 0, 0, 0, 1, 0]  # fmt: skip
    np.testing.assert_array_equal(q, expected)
    start = q.copy()
    changed = mixed.configuration({"prismatic6": 7, "revolute1": [0.6, -0.8]}, start)
    expected[1:3], expected[18] = [0.6, -0.8], 7
    np.testing.assert_array_equal(changed, expected)
    np.testing.assert_array_equal(start, q, err_msg="the start must not change")


def test_velocity_sets_what_is_named_and_leaves_the_rest_at_rest(mixed: pl.Mechanism) -> None:
    v = mixed.velocity({"revolute1": -2, "planar3": (1, 2, 3), "prismatic6": [9.0]})
    np.testing.assert_array_equal(v, [0, -2, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 9])


def test_neutral_is_a_new_array_each_time(mixed: pl.Mechanism) -> None:
    mixed.neutral[:] = 5
    np.testing.assert_array_equal(mixed.neutral, pin.neutral(mixed.model))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"revolute0": [1, 2]}, "'revolute0' has 1"),
        ({"spherical2": 0.5}, "'spherical2' has 4"),
        ({"revolute1": [1.0, 2.0]}, "unit length"),
        ({"spherical2": [0, 0, 0, 0]}, "unit length"),
        ({"free5": [0, 0, 0, 0, 0, 0, 1.1]}, "unit length"),
        ({"revolute0": np.nan}, "not finite"),
        ({"revolute0": "quick"}, "no number, with or without a unit"),
        ({"fixed4": 1.0}, "fixed"),
        ({"loop": 1.0}, "closes a loop of robot .*; those that have one are 'revolute0', "),
    ],
)
def test_configuration_refuses_what_does_not_fit(
    mixed: pl.Mechanism, values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(pl.BadValue, match=problem):
        mixed.configuration(values)


@pytest.mark.parametrize(
    ("rates", "problem"),
    [
        ({"revolute1": [1.0, 2.0]}, "'revolute1'"),
        ({"spherical2": [0, 0, 0, 1]}, "'spherical2'"),
        ({"prismatic6": np.inf}, "not finite"),
        ({"loop": 1.0}, "closes a loop"),
    ],
)
def test_velocity_refuses_what_does_not_fit(
    mixed: pl.Mechanism, rates: dict[str, Any], problem: str
) -> None:
    with pytest.raises(pl.BadValue, match=problem):
        mixed.velocity(rates)


def test_unknown_names_come_with_suggestions(mixed: pl.Mechanism) -> None:
    with pytest.raises(
        pl.UnknownName, match=r"no joint 'prismatic'.*mixed.*'prismatic6'"
    ) as caught:
        mixed.configuration({"prismatic": 0.0})
    assert caught.value.name == "prismatic"
    for ask in (lambda: mixed.velocity({"shoulder": 1}), lambda: mixed.coordinates("universe")):
        with pytest.raises(pl.UnknownName, match="known: revolute0"):
            ask()
    with pytest.raises(pl.UnknownName, match=r"no body or frame 'b55'.*did you mean 'b5'"):
        mixed.placement(mixed.neutral, "b55")


def test_states_of_wrong_size_or_kind_are_refused(mixed: pl.Mechanism) -> None:
    q, v = mixed.neutral, np.zeros(mixed.nv)
    ask: dict[str, tuple[Callable[[Any], object], ...]] = {
        "q": (mixed.checked_configuration, lambda q: mixed.integrate(q, v),
              lambda q: mixed.difference(q, mixed.neutral), lambda q: mixed.placement(q, "b0"),
              lambda q: mixed.difference(mixed.neutral, q), lambda q: mixed.configuration({}, q)),
        "v": (mixed.checked_velocity, lambda v: mixed.integrate(q, v)),
    }  # fmt: skip
    bad: dict[str, tuple[object, ...]] = {
        "q": (q[:-1], np.r_[q, 0], q[None], np.where(q == 1, 1.1, q), q * np.nan, {"a": 1},
              "q", [*q.tolist()[:-1], "x"]),
        "v": (v[:-1], np.r_[v, 0], v[:, None], v + np.inf, None, {"a": 1}, "v"),
    }  # fmt: skip
    for kind, functions in ask.items():
        for function in functions:
            for value in bad[kind]:
                with pytest.raises(pl.BadValue):
                    function(value)


def test_difference_is_the_way_that_integrate_goes(mixed: pl.Mechanism) -> None:
    rng = np.random.default_rng(32)
    q, v = hand.random_q(mixed, rng, 1.0), rng.uniform(-1, 1, mixed.nv)
    end = mixed.integrate(q, v)
    np.testing.assert_allclose(mixed.difference(q, end), v, atol=1e-12)
    at = mixed.coordinates("revolute1")
    angle = np.arctan2(q[at.q][1], q[at.q][0]) + v[at.v][0]
    np.testing.assert_allclose(end[at.q], [np.cos(angle), np.sin(angle)], atol=1e-14)


def test_placement_walks_down_the_chain(mixed: pl.Mechanism) -> None:
    """Whole chain against exponentials, joint after joint."""
    rng = np.random.default_rng(33)
    q, T = hand.random_q(mixed, rng), np.eye(4)
    for joint in mixed.description.joints[:-1]:
        cells = q[mixed.coordinates(joint.name).q] if joint.pair.dof else np.zeros(0)
        N = hand.pair_motion(joint.pair.name, cells, 0.0, joint.coordinates)
        T = T @ joint.frame_parent.homogeneous @ N @ np.linalg.inv(joint.frame_child.homogeneous)
        actual = mixed.placement(q, joint.child).homogeneous
        np.testing.assert_allclose(actual, T, atol=1e-12)


# -- what a robot says of itself ------------------------------------------------------------


def test_properties_say_what_the_description_says() -> None:
    plain = tables.build(m.four_bar(actuated=["crank", "close"]))
    drives = (Drive("crank", 50.0, 1e-4),)
    robot = build(replace(plain.description, drives=drives, warnings=("odd",)))
    assert robot.name == "four-bar"
    assert robot.bodies == ("crank", "coupler", "rocker")
    assert robot.actuated == ("crank", "close")
    assert robot.drives == {"crank": drives[0]}
    assert robot.warnings == ("odd",)
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])
    (loop,) = robot.loops
    assert (loop.name, loop.pair.name, loop.body_a, loop.body_b) == (
        "close", "revolute", "coupler", "rocker",
    )  # fmt: skip
    assert (loop.loop.chain_a, loop.loop.chain_b) == (("crank", "elbow"), ("rocker",))
    assert "nq=3" in repr(robot)
    assert "1 loops" in repr(robot)


def test_one_axis_tree_joints_that_follow_nothing_are_actuated_by_default() -> None:
    assert tables.build(m.gear_pair()).actuated == ("pinion",)
    assert tables.build(m.rssr()).actuated == ("crank", "rocker")


def test_characteristic_length_is_the_spread_of_the_joints() -> None:
    """Two joints and both ends of one cut: pivots at 0, 1 and twice at 2 on a line."""
    robot = tables.build(
        tables.table(
            "line",
            tables.joint("a", "revolute", GROUND, "p", [0, 0, 0], m.Y),
            tables.joint("b", "revolute", "p", "q", [1, 0, 0], m.Y),
            tables.joint("c", "revolute", "q", GROUND, [2, 0, 0], m.Y, cut=True),
        )
    )
    assert robot.length == pytest.approx(np.std([0, 1, 2, 2]))
    lone = tables.build(
        tables.table("one", tables.joint("a", "revolute", GROUND, "p", [3, 0, 0], m.Y))
    )
    assert lone.length == 1.0


def test_translations_are_told_from_rotations(mixed: pl.Mechanism) -> None:
    expected = [False] * 2 + [False] * 3 + [True, True, False] + [True] * 3 + [False] * 3 + [True]
    assert mixed.is_translation.tolist() == expected
    helical = tables.build(
        tables.table("h", tables.joint("h", "helical", GROUND, "b", [0, 0, 0], m.X, pitch=9))
    )
    assert helical.is_translation.tolist() == [False], "it turns, however far it goes"


def test_a_robot_cannot_be_changed() -> None:
    robot = tables.build(m.four_bar())
    for thing, name in ((robot, "model"), (robot, "loops"), (robot, "extra"),
                        (robot.loops[0], "pair"), (robot.description, "joints"),
                        (robot.coordinates("crank"), "q"), (robot.tree, "cuts")):  # fmt: skip
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, None)
    with pytest.raises(ValueError, match="read-only"):
        robot.gravity[2] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        robot.description.bodies[0].com[0] = 1.0


def test_a_robot_survives_pickling() -> None:
    for entries in (m.spinning_rods(), m.gear_pair(), m.every_pair(reverse=True), m.screw_jack()):
        robot = tables.build(entries)
        twin = pickle.loads(pickle.dumps(robot))
        q, v = hand.random_q(robot, np.random.default_rng(34)), np.ones(robot.nv)
        assert (twin.name, twin.joints, twin.frames) == (robot.name, robot.joints, robot.frames)
        assert twin.model == robot.model
        np.testing.assert_array_equal(hand.mass_matrix(twin, q), hand.mass_matrix(robot, q))
        ours, theirs = pl.Constraints(robot), pl.Constraints(twin)
        assert ours.labels == theirs.labels
        np.testing.assert_array_equal(ours.residual(q), theirs.residual(q))
        np.testing.assert_array_equal(ours.gamma(q, v), theirs.gamma(q, v))


# -- payloads -------------------------------------------------------------------------------


def body_energy(robot: pl.Mechanism, q: Array, v: Array, name: str, mass: float, com: Array,
                inertia: Array) -> float:  # fmt: skip
    """Kinetic energy of a rigid body by the parallel-axis theorem, from the motion of a frame."""
    here = robot.placement(q, name)
    centre = hand.rate(robot, q, v, lambda q: robot.placement(q, name).act(com))
    turning = hand.rate(
        robot, q, v, lambda q: pin.log3(here.rotation.T @ robot.placement(q, name).rotation)
    )
    return float(0.5 * mass * centre @ centre + 0.5 * turning @ inertia @ turning)


@pytest.mark.parametrize("frame", ["b5", "flange", "weld", "hook", "loop/B"])
def test_payload_adds_its_energy_and_weight_wherever_it_sits(frame: str) -> None:
    """On a body, a named frame, a body on a weld, and the end of a loop joint."""
    rng = np.random.default_rng(35)
    arm, place = tables.build(m.arm_6r()), [hand.random_se3(rng) for _ in range(4)]
    robot = build(
        replace(
            arm.description,
            bodies=(*arm.description.bodies, tables.described("weld")),
            joints=(
                *arm.description.joints,
                Joint("welded", make_pair("fixed"), "weld", "b6", place[0], place[1]),
                Joint("loop", make_pair("free"), "b2", "b6", place[1], place[2], cut=True),
            ),
            frames=(NamedFrame("flange", "b6", place[0]), NamedFrame("hook", "weld", place[3])),
        )
    )
    mass, com = 3.5, rng.uniform(-1, 1, 3)
    root = rng.uniform(-1, 1, (3, 3))
    spread = root @ root.T
    inertia = np.trace(spread) * np.eye(3) - spread
    loaded = robot.with_payload(frame, mass, com, inertia)
    assert loaded.bodies == (*robot.bodies, "payload")
    q, v = hand.random_q(robot, rng), rng.normal(size=robot.nv)
    assert loaded.placement(q, "payload").isApprox(robot.placement(q, frame), 1e-12)
    gain = hand.mass_matrix(loaded, q) - hand.mass_matrix(robot, q)
    expected = body_energy(robot, q, v, frame, mass, com, inertia)
    assert 0.5 * v @ gain @ v == pytest.approx(expected, rel=1e-8)
    # The other way round: without the payload the robot is what it was.
    assert robot.bodies == (*arm.bodies, "weld")


def test_payload_is_a_point_by_default_and_payloads_add_up() -> None:
    robot = tables.build(m.planar_3r())
    once = robot.with_payload("c", 2.0, (0.3, 0, 0))
    twice = once.with_payload("c", 1.0, (0, 0, 0.1)).with_payload("ground", 5.0)
    assert twice.bodies[-3:] == ("payload", "payload_2", "payload_3")
    q = np.array([0.2, -0.4, 0.9])
    levers = [np.array([0.3, 0, 0]) - [0.9, 0, 0], np.array([0, 0, 0.1]) - [0.9, 0, 0]]
    gains = [
        hand.mass_matrix(other, q)[2, 2] - hand.mass_matrix(robot, q)[2, 2]
        for other in (once, twice)
    ]
    assert gains[0] == pytest.approx(2.0 * levers[0] @ levers[0])
    assert gains[1] == pytest.approx(gains[0] + 1.0 * levers[1] @ levers[1])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"mass": -1.0}, "-1"), ({"mass": np.nan}, "mass"), ({"mass": np.inf}, "mass"),
        ({"mass": "heavy"}, "mass"), ({"com": (1, 2)}, "centre of mass"),
        ({"com": (1, 2, np.nan)}, "centre of mass"), ({"inertia": np.eye(2)}, "inertia"),
        ({"inertia": -np.eye(3)}, "inertia"), ({"inertia": np.triu(np.ones((3, 3)))}, "inertia"),
        ({"inertia": "round"}, "inertia"),
    ],
)  # fmt: skip
def test_impossible_payloads_are_refused(arguments: dict[str, Any], problem: str) -> None:
    robot = tables.build(m.planar_3r())
    with pytest.raises(pl.BadValue, match=problem):
        robot.with_payload("c", **({"mass": 1.0} | arguments))


def test_payload_on_an_unknown_frame_is_refused() -> None:
    with pytest.raises(pl.UnknownName, match="'tip'"):
        tables.build(m.planar_3r()).with_payload("tip", 1.0)


def test_variants_do_not_repeat_warnings() -> None:
    flat = Body("plate", 1.0, constant(np.zeros(3)), constant(np.diag([0.1, 0.1, 0.5])))
    joint = Joint("j", make_pair("revolute"), GROUND, "plate", UNIT, UNIT)
    robot = build(Description("odd", (flat,), (joint,)))
    assert len(robot.warnings) == 1
    assert "triangle inequality" in robot.warnings[0]
    assert robot.absolute().warnings == robot.warnings
    assert len(set(robot.with_payload("plate", 0.0).warnings)) == len(
        robot.with_payload("plate", 0.0).warnings
    )


def test_loops_can_be_taken_out_without_touching_the_tree() -> None:
    robot = tables.build(m.spinning_rods() | {"actuated": ["crank", "close2"]})
    opened = robot.without_loops(["close2"])
    assert [loop.name for loop in opened.loops] == ["close1"]
    assert (opened.joints, opened.actuated) == (robot.joints, ("crank",))
    q = hand.random_q(robot, np.random.default_rng(36))
    np.testing.assert_array_equal(
        pl.Constraints(opened).jacobian(q), pl.Constraints(robot).jacobian(q)[:3]
    )
    np.testing.assert_array_equal(hand.mass_matrix(opened, q), hand.mass_matrix(robot, q))
    with pytest.raises(pl.UnknownName, match=r"no loop joint 'close3'.*'close1'"):
        robot.without_loops(["close1", "close3"])


def test_a_pickle_is_the_same_whatever_was_asked_of_the_robot() -> None:
    robot = pl.regularize(pl.load(ROOT / "urdf" / "palletizer.urdf"))
    before = pickle.dumps(robot)
    q = pl.assemble(robot)
    pl.diagnose(robot)
    pl.EquationsOfMotion(robot).motion(0.0, q, np.zeros(robot.nv))
    assert (robot.length, robot.clusters, robot.is_translation.any()) and robot.actuated
    assert pickle.dumps(robot) == before


def test_arrays_of_a_robot_cannot_be_written_to_nor_can_a_copys() -> None:
    inertia = np.eye(3)
    plate = Body("plate", 1.0, np.zeros(3), inertia)
    inertia[0, 0] = 7.0
    np.testing.assert_array_equal(plate.inertia, np.eye(3))
    robot = pl.regularize(pl.load(ROOT / "urdf" / "palletizer.urdf"))
    for one in (robot, pickle.loads(pickle.dumps(robot)), copy.copy(robot)):
        assert one.regularization is not None
        arrays = [one.gravity, one.is_translation, one.regularization.loops[0].selection]
        arrays += [value for body in one.description.bodies for value in (body.com, body.inertia)]
        assert not any(array.flags.writeable for array in arrays)
