"""Screw tables against the product of exponentials they stand for (paper 1, eq. 11)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm

from pinloop.boundary.yaml import read_yaml
from pinloop.errors import LoadError, PinloopError
from pinloop.io.screws import read_screws
from pinloop.model.description import GROUND, Coupling, Description, Joint

from .by_hand import free_twists, joint_named, placed

Array = NDArray[np.float64]

TEXT = """\
name: press
gravity: [0, 0, -9.8]
bodies:
  - name: crank
    mass: 2
    com: [0.1, 0, 0.2]
    inertia: [[1, 0.1, 0], [0.1, 1.5, 0], [0, 0, 1.2]]
  - {name: ram, mass: 3, com: [1, 0, 0], inertia: [[2, 0, 0], [0, 2, 0], [0, 0, 2]]}
joints:
  - {name: pivot, pair: revolute, parent: ground, child: crank, point: [0, 0, 1], axis: [0, 2, 0],
     limits: {lower: -1, upper: 2, effort: 30, velocity: 4}}
  - {name: screw, pair: helical, parent: crank, child: ram, point: [1, 2, 3], axis: [1, 1, 0],
     pitch: 0.05}
  - {name: guide, pair: prismatic, parent: ground, child: ram, axis: [0, 0, 1], cut: true}
actuated: [pivot]
couplings:
  - {name: gear, joint: screw, source: pivot, ratio: 3}
"""


def table(**changes: Any) -> dict[str, Any]:
    data = copy.deepcopy(read_yaml(TEXT, "t"))
    assert isinstance(data, dict)
    return data | changes


def one_joint(**joint: Any) -> Joint:
    """The joint of a table with the ground, two bodies, and a spherical joint between them."""
    entry = {"name": "j", "parent": "ground", "child": "crank"} | joint
    other = {"name": "k", "pair": "ball", "parent": "crank", "child": "ram", "point": [0, 0, 0]}
    joints = [entry, other]
    description = read_screws(table(joints=joints, actuated=None, couplings=[]), "t")
    return joint_named(description, "j")


def screw_motion(axis: Array, point: Array, pitch: float, angle: float) -> Array:
    """Matrix exponential of the screw ``(w, p x w + h w)`` of paper 1, remark 3."""
    w = axis / np.linalg.norm(axis)
    v = np.cross(point, w) + pitch * w
    x, y, z = w
    twist = np.array([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0]])
    return np.asarray(expm(twist * angle))


def free_motion(joint: Joint, *coordinates: float) -> Array:
    """Child in parent after the motion along the columns of the free twists, one by one."""
    motion = pin.SE3.Identity()
    for column, value in zip(free_twists(joint.pair).T, coordinates, strict=True):
        motion = motion * pin.exp6(column * value)
    return np.asarray(placed(joint, motion).homogeneous)


def test_what_is_read() -> None:
    robot = read_screws(table(), "press.yaml")
    assert (robot.name, robot.base, robot.source) == ("press", None, "press.yaml")
    assert [body.name for body in robot.bodies] == ["crank", "ram"]
    crank = robot.bodies[0]
    assert crank.mass == 2 and crank.com.tolist() == [0.1, 0, 0.2]
    assert crank.inertia.tolist() == [[1, 0.1, 0], [0.1, 1.5, 0], [0, 0, 1.2]]
    assert [(joint.parent, joint.child) for joint in robot.joints] == [
        (GROUND, "crank"),
        ("crank", "ram"),
        (GROUND, "ram"),
    ]
    assert [joint.cut for joint in robot.joints] == [None, None, True]
    assert robot.actuated == ("pivot",)
    assert robot.couplings == (Coupling.linear("gear", "screw", "pivot", 3.0),)
    assert robot.gravity.tolist() == [0, 0, -9.8]
    pivot = robot.joints[0]
    assert (pivot.lower, pivot.upper, pivot.effort, pivot.velocity) == ((-1,), (2,), (30,), (4,))
    assert robot.warnings == ()


def test_defaults() -> None:
    small = {key: table()[key] for key in ("bodies", "joints")}
    robot = read_screws(small, "t")
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert robot.actuated is None and robot.couplings == ()


AXES = [(0, 0, 1), (0, 1, 0), (-1, 0, 0), (1, -2, 0.5), (1e-7, 0, 2)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(
    ("pair", "pitch"), [("revolute", 0.0), ("continuous", 0.0), ("helical", -0.3), ("screw", 2.0)]
)
def test_screw_of_a_turning_joint(axis: tuple[float, ...], pair: str, pitch: float) -> None:
    point = np.array([0.3, -0.2, 0.9])
    parameters = {"pitch": pitch} if pitch else {}
    joint = one_joint(pair=pair, axis=axis, point=point, **parameters)
    for angle in (0.0, 0.4, -2.5, 7.0):
        expected = screw_motion(np.array(axis), point, pitch, angle)
        np.testing.assert_allclose(free_motion(joint, angle), expected, atol=1e-12)


@pytest.mark.parametrize("axis", AXES)
def test_sliding_and_cylindrical_joints(axis: tuple[float, ...]) -> None:
    unit = np.array(axis) / np.linalg.norm(axis)
    slide = one_joint(pair="prismatic", axis=axis)
    expected = np.eye(4)
    expected[:3, 3] = 0.7 * unit
    np.testing.assert_allclose(free_motion(slide, 0.7), expected, atol=1e-15)
    point = np.array([1.0, 2.0, 3.0])
    both = one_joint(pair="cylindrical", axis=axis, point=point)
    turned = expected @ screw_motion(unit, point, 0.0, 0.5)
    np.testing.assert_allclose(free_motion(both, 0.7, 0.5), turned, atol=1e-12)


def test_universal_turns_about_axis_then_axis2() -> None:
    axis, axis2, point = np.array([0, 0, 2.0]), np.array([0, -3.0, 0]), np.array([1.0, 0, 0.5])
    joint = one_joint(pair="universal", axis=axis, axis2=axis2, point=point)
    expected = screw_motion(axis, point, 0, 0.6) @ screw_motion(axis2, point, 0, -0.9)
    np.testing.assert_allclose(free_motion(joint, 0.6, -0.9), expected, atol=1e-12)
    assert joint.frame_parent == joint.frame_child


def test_joints_without_axis() -> None:
    ball = one_joint(pair="spherical", point=[1, 2, 3])
    np.testing.assert_allclose(ball.frame_parent.homogeneous, ball.frame_child.homogeneous)
    np.testing.assert_allclose(ball.frame_parent.rotation, np.eye(3))
    np.testing.assert_allclose(ball.frame_parent.translation, [1, 2, 3])
    for pair in ("free", "spatial_translation", "fixed"):
        joint = one_joint(pair=pair)
        np.testing.assert_allclose(joint.frame_child.homogeneous, np.eye(4))
    turned = one_joint(pair="spherical", point=[1, 2, 3], axis=[1, 0, 0])
    np.testing.assert_allclose(turned.frame_child.rotation[:, 2], [1, 0, 0])


@pytest.mark.parametrize("pair", ["point_on_line", "point_on_plane", "planar", "schoenflies"])
def test_contacts_and_planes(pair: str) -> None:
    """The axis is the line, or the normal of the plane; at the reference everything is closed."""
    joint = one_joint(pair=pair, point=[0, 1, 0], axis=[0, 3, 4])
    for frame in (joint.frame_parent, joint.frame_child):
        np.testing.assert_allclose(frame.rotation[:, 2], [0, 0.6, 0.8])
        np.testing.assert_allclose(frame.translation, [0, 1, 0])


def test_moving_along_the_line_keeps_the_contact() -> None:
    joint = one_joint(pair="point_on_line", point=[0, 1, 0], axis=[1, 1, 0])
    for shift, gap in (([2, 2, 0], 0.0), ([0, 0, 0.5], 0.5), ([1, 0, 0], np.sqrt(0.5))):
        moved = pin.SE3(np.eye(3), np.array(shift, dtype=float))
        T = joint.frame_parent.actInv(moved * joint.frame_child)
        assert np.linalg.norm(joint.pair.residual(T)) == pytest.approx(gap, abs=1e-15)


def test_rod_between_two_points() -> None:
    rod = one_joint(pair="rod", point=[1, 0, 0], point2=[1, 3, 4])
    assert rod.pair.parameters == {"length": 5.0}
    np.testing.assert_allclose(rod.frame_parent.translation, [1, 0, 0])
    np.testing.assert_allclose(rod.frame_child.translation, [1, 3, 4])
    for frame in (rod.frame_parent, rod.frame_child):
        np.testing.assert_allclose(frame.rotation[:, 2], [0, 0.6, 0.8])
    relative = rod.frame_parent.actInv(rod.frame_child)
    np.testing.assert_allclose(rod.pair.residual(relative), 0, atol=1e-15)


def test_rod_of_another_length_is_a_warning() -> None:
    rod: dict[str, Any] = {"name": "r", "pair": "rod", "parent": "ground", "child": "ram"}
    rod |= {"point": [0, 0, 0], "point2": [0, 0, 2], "length": 2.5}
    robot = read_screws(table(joints=[*table()["joints"], rod]), "t")
    assert robot.warnings == (
        "t: rod 'r' has length 2.5 m, but its points give 2 m; the mechanism is open there",
    )
    assert joint_named(robot, "r").pair.parameters == {"length": 2.5}
    close = rod | {"length": 2.0 + 1e-9}
    assert read_screws(table(joints=[*table()["joints"], close]), "t").warnings == ()


def test_a_closed_chain_of_screws() -> None:
    """A four-bar closed at its reference stays so along the path of its exact solution.

    Bars of 1, 2, 1 and 2 m in the plane z = 0: a parallelogram, whose coupler does not turn.
    """
    points = {"a": [0, 0, 0], "b": [0, 1, 0], "c": [2, 1, 0], "d": [2, 0, 0]}
    ends = {"a": ("ground", "crank"), "b": ("crank", "coupler"), "c": ("coupler", "rocker"),
            "d": ("rocker", "ground")}  # fmt: skip
    bodies = [
        {"name": name, "mass": 1, "com": [0, 0, 0], "inertia": np.eye(3)}
        for name in ("crank", "coupler", "rocker")
    ]
    joints = [
        {"name": n, "pair": "revolute", "parent": p, "child": c, "point": points[n],
         "axis": np.array([0, 0, 1])}
        for n, (p, c) in ends.items()
    ]  # fmt: skip
    robot = read_screws({"bodies": bodies, "joints": joints}, "t")
    q = 0.8
    whole = np.eye(4)
    for name, angle in (("a", q), ("b", -q), ("c", q), ("d", -q)):
        whole = whole @ free_motion(joint_named(robot, name), angle)
    np.testing.assert_allclose(whole, np.eye(4), atol=1e-14)


def with_body(**changes: Any) -> Description:
    bodies = table()["bodies"]
    return read_screws(table(bodies=[bodies[0] | changes, bodies[1]]), "t")


def test_inertia_of_a_table_with_few_digits() -> None:
    thin = with_body(inertia=[[1, 0, 0], [0, 0.333333, 0], [0, 0, 1.33334]])
    assert thin.bodies[0].inertia[2, 2] == 1.33334
    skew = with_body(inertia=[[1, 0.1000001, 0], [0.1, 1, 0], [0, 0, 1]])
    assert skew.bodies[0].inertia[0, 1] == skew.bodies[0].inertia[1, 0]
    rod = with_body(inertia=[[1.5e-6, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert rod.bodies[0].inertia[0, 0] == 1.5e-6


def test_bodies_may_lack_what_a_mechanism_does_not_need() -> None:
    """No mass, a point mass, one moment for motion in a plane, a thin rod, a rotor alone."""
    bare = table()["bodies"][0]
    light = read_screws(table(bodies=[{"name": "crank"}, table()["bodies"][1]]), "t").bodies[0]
    assert light.mass == 0 and not light.com.any() and not light.inertia.any()
    point = {key: bare[key] for key in ("name", "mass", "com")}
    body = read_screws(table(bodies=[point, table()["bodies"][1]]), "t").bodies[0]
    assert body.mass == 2 and not body.inertia.any()
    np.testing.assert_array_equal(body.com, (0.1, 0, 0.2))
    for moments in ((0, 0, 0.3), (0, 1, 1), (0, 0, 0)):
        inertia = ROTATION @ np.diag(moments) @ ROTATION.T
        np.testing.assert_allclose(
            with_body(inertia=inertia).bodies[0].inertia, inertia, atol=1e-15
        )
    rotor = with_body(mass=0, com=None).bodies[0]
    assert rotor.mass == 0 and rotor.inertia[1, 1] == 1.5


def test_pieces_of_mass_add_up() -> None:
    body = with_body(
        pieces=[
            {"mass": 3, "com": [1, 0, 0], "inertia": np.diag([0.3, 0.2, 0.4])},
            {"mass": 5, "com": [0, 2, 0]},
        ]
    ).bodies[0]
    pieces = [
        pin.Inertia(
            2, np.array((0.1, 0, 0.2)), np.array([[1, 0.1, 0], [0.1, 1.5, 0], [0, 0, 1.2]])
        ),
        pin.Inertia(3, np.array((1.0, 0, 0)), np.diag([0.3, 0.2, 0.4])),
        pin.Inertia(5, np.array((0.0, 2, 0)), np.zeros((3, 3))),
    ]
    whole = pieces[0] + pieces[1] + pieces[2]
    assert body.mass == 10
    np.testing.assert_allclose(body.com, whole.lever, atol=1e-15)
    np.testing.assert_allclose(body.inertia, whole.inertia, atol=1e-13)


def test_frames_of_a_table() -> None:
    frames = [
        {"name": "eye", "body": "ram", "point": [1, 2, 3], "axis": [1, 0, 0]},
        {"name": "wall", "body": "ground", "point": [4, 5, 6]},
    ]
    eye, wall = read_screws(table(frames=frames), "t").frames
    assert (eye.name, eye.body, wall.body) == ("eye", "ram", GROUND)
    np.testing.assert_array_equal(eye.placement.translation, (1, 2, 3))
    np.testing.assert_allclose(eye.placement.rotation[:, 2], (1, 0, 0), atol=1e-15)
    np.testing.assert_array_equal(wall.placement.homogeneous[:3, :3], np.eye(3))
    with pytest.raises(LoadError, match="frame 'eye': no body 'rum'; did you mean 'ram'"):
        read_screws(table(frames=[{**frames[0], "body": "rum"}]), "t")


ROTATION = pin.rpy.rpyToMatrix(0.3, -0.5, 1.1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mass": -1}, r"bodies\[0\].mass is -1"),
        ({"mass": float("nan")}, r"bodies\[0\].mass is nan: expected a finite number"),
        ({"com": None}, r"bodies\[0\].*: has a mass; it needs its centre, too: com"),
        ({"pieces": [{"mass": 1}]}, r"bodies\[0\].pieces\[0\].com is missing"),
        ({"pieces": [{"mass": -1, "com": [0, 0, 0]}]}, r"pieces\[0\].mass is -1"),
        ({"com": [0, 0]}, r"bodies\[0\].com is \[0, 0\]: it has too few items"),
        ({"name": "ram"}, "body 'ram' is there twice"),
        ({"name": "ground"}, r"bodies\[0\].name is 'ground': the ground is there already"),
        ({"name": "krank"}, "joint 'pivot': no body 'crank'; did you mean 'krank'"),
        ({"inertia": [[1, 0, 0], [0.1, 1, 0], [0, 0, 1]]}, "symmetric"),
        ({"inertia": np.diag([1.0, 1.0, -1.0])}, "must not be negative"),
        ({"inertia": np.diag([1.0, 2.0, 0.0])}, "triangle inequality"),
        ({"inertia": ROTATION @ np.diag([1.0, 1.0, 2.1]) @ ROTATION.T}, "triangle inequality"),
        ({"inertia": np.eye(2)}, r"bodies\[0\].inertia\[0\] is \[1.0, 0.0\]"),
        ({"inertia": np.diag([1.0, 1.0, np.inf])}, "expected a finite number"),
        ({"inertia": [1, 1, 1]}, r"bodies\[0\].inertia\[0\] is 1: expected a list"),
    ],
)
def test_bad_body(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        with_body(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"pair": "revolut"},
            r"joints\[0\].pair is 'revolut': unknown pair 'revolut'; known pairs",
        ),
        ({"axis": [0, 0, 0]}, r"joints\[0\].axis is \[0, 0, 0\]: a zero vector"),
        ({"axis": [0, 0, float("inf")]}, "expected a finite number"),
        ({"axis": None}, r"joints\[0\]: a revolute pair needs an axis"),
        ({"point": None}, r"joints\[0\]: a revolute pair needs a point"),
        ({"pair": "helical"}, r"joints\[0\]: a helical pair needs its pitch"),
        ({"pitch": 1}, "a revolute pair has no pitch"),
        ({"parent": "grund"}, "joint 'pivot': no body 'grund'; did you mean 'ground'"),
        ({"child": "ground"}, "joins 'ground' with itself"),
        ({"name": "screw"}, "joint or coupling 'screw' is there twice"),
        ({"name": "gear"}, "joint or coupling 'gear' is there twice"),
        ({"point2": [0, 0, 0]}, "a revolute pair has no point2"),
        ({"pair": "universal", "limits": None}, "needs its second axis"),
        ({"pair": "universal", "axis2": [0, 1, 1e-2], "limits": None}, "deg apart"),
        ({"pair": "universal", "axis2": [0, -1, 1e-2], "limits": None}, "deg apart"),
        (
            {"pair": "universal", "axis2": [1e-2, 1, 0], "axis": [1, 0, 0]},
            "apart; they must be perpendicular",
        ),
        ({"limits": {"lower": 3, "upper": 2}}, "is above upper limit"),
        ({"limits": {"lower": [1, 2], "upper": [3, 4]}}, "2 position limits do not fit a revolute"),
        ({"limits": {"effort": [1, 2]}}, "joint 'pivot': effort has 2 values for 1 degrees"),
        ({"limits": {"efort": 1}}, r"joints\[0\].limits.efort is not a known key; did you mean"),
        ({"pair": "ball", "limits": {"lower": [1, 1, 1]}}, "3 position limits do not fit a spher"),
        ({"cut": "perhaps"}, r"joints\[0\].cut is 'perhaps'"),
    ],
)
def test_bad_joint(changes: dict[str, Any], words: str) -> None:
    data = table()
    data["joints"][0] |= changes
    with pytest.raises(LoadError, match=words):
        read_screws(data, "t")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"point": [0, 0, 0]}, "a rod pair needs point2"),
        ({"point": [0, 0, 0], "point2": [0, 0, 0]}, "joint 'j': a rod of length 0.0 m"),
        ({"point": [0, 0, 0], "point2": [0, 0, 1], "axis": [0, 0, 1]}, "a rod has no axis"),
        ({"point2": [0, 0, 1]}, "a rod pair needs a point"),
    ],
)
def test_bad_rod(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        one_joint(pair="rod", **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bodies": []}, r"bodies is \[\]: 0 items where 1 are needed"),
        ({"joints": 3}, "joints is 3: expected a list"),
        ({"actuated": ["pivit"]}, "actuated: no joint 'pivit'; did you mean 'pivot'"),
        ({"gravity": "down"}, "gravity is 'down': expected a list"),
        (
            {"couplings": [{"name": "c", "polynomials": {"a": [0, 1]}}]},
            "coupling 'c': no joint 'a'",
        ),
        ({"links": []}, "links is not a known key"),
    ],
)
def test_bad_table(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        read_screws(table(**changes), "t")


def test_lines_of_mistakes() -> None:
    data = read_yaml(TEXT.replace("parent: crank", "parent: crnk"), "press.yaml")
    assert isinstance(data, dict)
    with pytest.raises(LoadError, match=r"^press.yaml:12: joint 'screw': no body 'crnk'"):
        read_screws(data, "press.yaml")
    data = read_yaml(TEXT.replace("pitch: 0.05", "pitsch: 0.05"), "press.yaml")
    assert isinstance(data, dict)
    with pytest.raises(LoadError, match=r"^press.yaml:13: joints\[1\].pitsch is not a known key"):
        read_screws(data, "press.yaml")


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["rod", "universal", "planar", "ground", "ram", "pivot"]),
    st.lists(st.floats(), max_size=3),
    st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=3, max_size=3),
    st.builds(np.full, st.integers(0, 3), st.floats()),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_mutated_tables(data: st.DataObject) -> None:
    document = table()
    parts = [document, *document["bodies"], *document["joints"]]
    for _ in range(data.draw(st.integers(1, 2))):
        part = data.draw(st.sampled_from(parts))
        keys = ["axis", "axis2", "point", "point2", "pair", "length", *part]
        part[data.draw(st.sampled_from(keys))] = data.draw(values)
    try:
        robot = read_screws(document, "t")
    except PinloopError as error:
        assert str(error).startswith("t:")
        return
    for joint in robot.joints:
        for frame in (joint.frame_parent, joint.frame_child):
            assert np.all(np.isfinite(frame.homogeneous))
            np.testing.assert_allclose(frame.rotation @ frame.rotation.T, np.eye(3), atol=1e-9)
