"""The loops file: what it adds to a tree, and what it says when it cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.schemas import schema_of

from pinloop.boundary.schema import read_data
from pinloop.boundary.yaml import read_yaml
from pinloop.errors import LoadError, PinloopError, UnknownName
from pinloop.io.loopsfile import LoopsFile, apply_loops
from pinloop.io.quantities import locate
from pinloop.model.description import GROUND, Body, Coupling, Description, Drive
from pinloop.model.pairs import make_pair

from .by_hand import QUARTER_X, QUARTER_Z, about, at, joint_named, open_chain, placed, revolute

CHAIN = ["shoulder", "elbow", "wrist"]
TEXT = """\
format: pinloop-loops-1
loops:
  - name: closing
    pair: revolute
    a: {body: ground, xyz: [4, 0, 0]}
    b: {frame: tool}
  - name: brace
    pair: rod
    length: 0.5
    a: {frame: elbow, xyz: [0.5, 0, 0]}
    b: {body: rocker, rpy: [1.5707963267948966, 0, 0]}
couplings:
  - {name: belt, joint: elbow, source: shoulder, ratio: -2, offset: 0.1}
  - name: cam
    polynomials: {wrist: [0, 1], shoulder: [0.3, 0, 5]}
actuated: [shoulder]
drives:
  shoulder: {reduction: 50, rotor_inertia: 1e-4}
gravity: [0, -9.81, 0]
"""


def apply(text: str, description: Description | None = None) -> Description:
    chain = open_chain() if description is None else description
    return apply_loops(
        chain, read_data(LoopsFile, read_yaml(text, "x.loops.yaml"), "x.loops.yaml"), "x"
    )


def loop(**entry: Any) -> Description:
    """The open chain with one loop between the world and the rocker."""
    entry = {"name": "l", "a": {"body": "world"}, "b": {"body": "rocker"}} | entry
    return apply_loops(open_chain(), read_data(LoopsFile, {"loops": [entry]}, "dict"), "dict")


def test_everything_is_added() -> None:
    before = open_chain()
    robot = apply(TEXT, before)
    assert [joint.name for joint in robot.joints] == [*CHAIN, "closing", "brace"]
    closing = joint_named(robot, "closing")
    assert (closing.parent, closing.child, closing.cut) == (GROUND, "rocker", True)
    assert closing.pair.name == "revolute"
    assert robot.couplings[0] == Coupling.linear("belt", "elbow", "shoulder", -2, 0.1)
    assert robot.couplings[1] == Coupling("cam", ("wrist", "shoulder"), ((0, 1), (0.3, 0, 5)))
    assert robot.actuated == ("shoulder",)
    assert robot.drives == (Drive("shoulder", 50.0, 1e-4),)
    assert robot.gravity.tolist() == [0, -9.81, 0]
    assert not robot.gravity.flags.writeable
    assert robot.bodies == before.bodies and robot.base == "base"
    assert before.actuated is None and len(before.joints) == 3


def test_frames_of_the_loops() -> None:
    robot = apply(TEXT)
    closing = joint_named(robot, "closing")
    np.testing.assert_allclose(closing.frame_parent.translation, [4, 0, 0])
    np.testing.assert_allclose(closing.frame_parent.rotation[:, 2], [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(closing.frame_child.translation, [1, 0, 0])
    # The same axes in A and B: what the frames had between them, a quarter turn, remains.
    between = closing.frame_parent.rotation.T @ closing.frame_child.rotation
    np.testing.assert_allclose(between, QUARTER_Z, atol=1e-15)
    brace = joint_named(robot, "brace")
    # The name of a joint means the frame of the body that it carries.
    assert (brace.parent, brace.child) == ("coupler", "rocker")
    assert brace.pair.parameters == {"length": 0.5}
    np.testing.assert_allclose(brace.frame_parent.translation, [0.5, 0, 0])
    np.testing.assert_allclose(brace.frame_child.rotation, QUARTER_X, atol=1e-15)


def test_placement_is_relative_to_the_named_frame() -> None:
    """Half a metre along y of the tool, which is turned by a quarter, is back along the rocker."""
    joint = joint_named(loop(pair="fixed", b={"frame": "tool", "xyz": [0, 0.5, 0]}), "l")
    np.testing.assert_allclose(joint.frame_child.translation, [0.5, 0, 0], atol=1e-15)
    np.testing.assert_allclose(joint.frame_child.rotation, QUARTER_Z, atol=1e-15)


def test_the_straight_chain_is_closed() -> None:
    """At zero the chain of 1, 2 and 1 m ends where the ground holds it, but turned by a quarter."""
    closing = joint_named(apply(TEXT), "closing")
    rocker = at(3, 0, 0)
    T = closing.frame_parent.actInv(rocker * closing.frame_child)
    np.testing.assert_allclose(closing.pair.residual(T), 0, atol=1e-15)
    assert abs(joint_named(apply(TEXT), "brace").pair.residual(at(0, 2.0, 0))[0] - 1.5) < 1e-15


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, -2, 0), (0.3, 0.4, -1.2)])
def test_axis_is_z_of_both_frames(axis: tuple[float, float, float]) -> None:
    robot = loop(pair="prismatic", axis=axis, b={"body": "rocker", "rpy": [np.pi / 2, 0, 0]})
    joint = joint_named(robot, "l")
    unit = np.array(axis) / np.linalg.norm(axis)
    np.testing.assert_allclose(joint.frame_parent.rotation[:, 2], unit, atol=1e-15)
    np.testing.assert_allclose(joint.frame_child.rotation[:, 2], QUARTER_X @ unit, atol=1e-15)
    between = joint.frame_parent.rotation @ joint.frame_child.rotation.T
    np.testing.assert_allclose(between, QUARTER_X.T, atol=1e-15)


@pytest.mark.parametrize(
    ("axis", "axis2"), [((0, 2, 0), (0, 0, 3)), ((0, 1, 0), (0, 1, 0)), ((1, 1, 0), (0, 1, 5))]
)
def test_universal(axis: tuple[float, ...], axis2: tuple[float, ...]) -> None:
    joint = joint_named(loop(pair="universal", axis=axis, axis2=axis2), "l")
    a, b = joint.frame_parent.rotation, joint.frame_child.rotation
    np.testing.assert_allclose(a[:, 2], np.array(axis) / np.linalg.norm(axis), atol=1e-15)
    np.testing.assert_allclose(b[:, 0], np.array(axis2) / np.linalg.norm(axis2), atol=1e-15)
    for rotation in (a, b):
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-15)
        assert np.linalg.det(rotation) == pytest.approx(1.0)
    if np.dot(axis, axis2) == 0:
        np.testing.assert_allclose(a, b, atol=1e-15)


def test_names_of_frames() -> None:
    robot = open_chain()
    assert locate(robot, "crank")[0] == "crank"
    assert locate(robot, "tool")[0] == "rocker"
    assert locate(robot, "wrist")[0] == "rocker"
    np.testing.assert_array_equal(locate(robot, "wrist")[1].homogeneous, np.eye(4))
    for name in ("ground", "world", "universe"):
        assert locate(robot, name)[0] == GROUND
    shadowed = replace(robot, bodies=(*robot.bodies, Body("world"), Body("tool"), Body("wrist")))
    for name in ("world", "tool", "wrist"):
        assert locate(shadowed, name)[0] == name
    with pytest.raises(UnknownName, match="did you mean 'tool'"):
        locate(robot, "tol")


def test_a_joint_means_its_child_body_even_if_it_sits_elsewhere() -> None:
    robot = open_chain()
    moved = replace(robot.joints[2], frame_child=at(5, 0, 0))
    robot = replace(robot, joints=(*robot.joints[:2], moved))
    np.testing.assert_array_equal(locate(robot, "wrist")[1].translation, np.zeros(3))


def test_values_of_a_loop_joint() -> None:
    robot = loop(
        pair="cylindrical",
        cut=None,
        limits={"lower": [-1, -2], "velocity": [3, 4]},
        losses={"damping": [0.1, 0.2], "armature": [1, 2]},
    )
    joint = joint_named(robot, "l")
    assert joint.cut is None
    assert joint.lower == (-1, -2) and joint.upper == (np.inf, np.inf)
    assert joint.velocity == (3, 4) and joint.effort == ()
    assert joint.damping == (0.1, 0.2) and joint.armature == (1, 2) and joint.friction == ()
    one = joint_named(loop(pair="revolute", limits={"upper": 2, "effort": 9}, coordinates=""), "l")
    assert (one.lower, one.upper, one.effort) == ((-np.inf,), (2,), (9,))


def test_limits_instead_of_those_of_the_tree() -> None:
    chain = open_chain()
    wrist = replace(chain.joints[2], lower=(-1.0,), upper=(2.0,), velocity=(3.0,), effort=(4.0,))
    chain = replace(chain, joints=(*chain.joints[:2], wrist))

    def limited(text: str) -> list[tuple[float, ...]]:
        joint = joint_named(apply(f"limits: {{wrist: {text}}}", chain), "wrist")
        return [joint.lower, joint.upper, joint.velocity, joint.effort]

    assert limited("{effort: 9}") == [(-1,), (2,), (3,), (9,)]
    assert limited("{lower: -.inf, velocity: .inf}") == [(-np.inf,), (2,), (), (4,)]
    assert limited("{lower: -.inf, upper: .inf}") == [(), (), (3,), (4,)]
    assert joint_named(apply("limits: {elbow: {upper: 1}}"), "elbow").lower == (-np.inf,)
    assert joint_named(apply("limits: {elbow: {lower: 1}}"), "elbow").upper == (np.inf,)


def test_cut_frees_the_other_loop_joints() -> None:
    first = apply(TEXT)
    text = "cut: [wrist]\nloops:\n- {name: n, pair: spherical, a: {body: base}, b: {body: rocker}}"
    cuts = {joint.name: joint.cut for joint in apply(text, first).joints}
    assert cuts == {
        "shoulder": False,
        "elbow": False,
        "wrist": True,
        "closing": None,
        "brace": None,
        "n": None,
    }
    both = {joint.name: joint.cut for joint in apply("cut: [wrist, closing]", first).joints}
    assert both["closing"] is True and both["brace"] is None


def test_free_and_order() -> None:
    robot = apply("free: [elbow, closing]\norder: [wrist, closing]", apply(TEXT))
    order = [joint.name for joint in robot.joints]
    assert order == ["wrist", "closing", "shoulder", "elbow", "brace"]
    cuts = {joint.name: joint.cut for joint in robot.joints}
    assert cuts["elbow"] is None and cuts["closing"] is None and cuts["brace"] is True


def test_reversed() -> None:
    wrist = joint_named(apply("reversed: [wrist]"), "wrist")
    assert (wrist.parent, wrist.child) == ("rocker", "coupler")
    before = joint_named(open_chain(), "wrist")
    turned = placed(wrist, about("z", 0.4)) * placed(before, about("z", 0.4))
    np.testing.assert_allclose(turned.homogeneous, np.eye(4), atol=1e-15)


def test_passive_joints() -> None:
    assert apply("passive: [wrist]").actuated == ("shoulder", "elbow")
    some = replace(open_chain(), actuated=("elbow", "wrist"))
    assert apply("passive: [wrist]", some).actuated == ("elbow",)
    assert apply("actuated: []", some).actuated == ()
    assert apply("gravity: [0, 0, 0]", some).actuated == ("elbow", "wrist")
    assert apply("actuated: [wrist]\npassive: [elbow]", some).actuated == ("wrist",)


def test_drives_replace_those_of_the_same_joint() -> None:
    robot = replace(open_chain(), drives=(Drive("elbow", 3.0), Drive("wrist", 4.0)))
    assert apply("drives: {elbow: {reduction: -7}}", robot).drives == (
        Drive("wrist", 4.0),
        Drive("elbow", -7.0),
    )


def test_coupling_rows_have_two_coefficients() -> None:
    robot = apply("couplings: [{name: c, polynomials: {wrist: [], elbow: [1, 2], shoulder: [3]}}]")
    assert robot.couplings[0].polynomials == ((0, 0), (1, 2), (3, 0))


BASE = {"name": "l", "pair": "revolute", "a": {"body": "world"}, "b": {"body": "rocker"}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pair": "sperical"}, r"loops\[0\].pair is 'sperical': unknown pair 'sperical'; known"),
        ({"pair": "helical"}, r"loops\[0\]: a helical pair needs its pitch"),
        ({"pair": "rod"}, "a rod pair needs its length"),
        ({"pair": "rod", "length": 0}, "does not exist"),
        ({"pitch": 0.1}, "a revolute pair has no pitch; leave it out"),
        ({"length": 0.1}, "a revolute pair has no length"),
        ({"axis2": [1, 0, 0]}, "a revolute pair has no axis2"),
        ({"pair": "universal"}, "needs its second axis: axis2"),
        ({"pair": "ball", "axis": [1, 0, 0]}, "a spherical pair has no axis"),
        ({"axis": [0, 0, 0]}, r"loops\[0\].axis is \[0, 0, 0\]: a zero vector"),
        ({"a": {"body": "base", "frame": "tool"}}, r"loops\[0\].a: needs either"),
        ({"a": {"xyz": [1, 0, 0]}}, r"loops\[0\].a: needs either"),
        ({"a": {"body": "bse"}}, "loop 'l', a: no body, frame or joint 'bse'; did you mean 'base'"),
        ({"a": {"body": "wrist"}}, "loop 'l' joins 'rocker' with itself"),
        ({"a": {"body": "base", "xyz": [1, 2]}}, r"loops\[0\].a.xyz is \[1, 2\]: it has too few"),
        ({"name": "elbow"}, "joint 'elbow' is there twice"),
        ({"name": 7}, r"loops\[0\].name is 7: expected a text"),
        ({"nme": "x"}, r"loops\[0\].nme is not a known key; did you mean 'name'"),
        ({"limits": {"lower": 2, "upper": 1}}, "is above upper limit"),
        ({"limits": {"lower": [1, 1], "upper": 1}}, "as many lower limits"),
        ({"limits": {"effort": -1}}, "must not be negative"),
        ({"limits": {"effort": [1, 2]}}, "joint 'l': effort has 2 values for 1 degrees"),
        ({"limits": {"effort": True}}, "expected a number, not yes or no"),
        ({"limits": {"effort": np.nan}}, "expected a number"),
        ({"coordinates": "polar"}, r"loops\[0\].coordinates is 'polar'"),
    ],
)
def test_bad_loop(change: dict[str, Any], words: str) -> None:
    with pytest.raises(LoadError, match=words) as info:
        loop(**(BASE | change))
    assert info.value.source == "dict"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("actuated: [sholder]", "actuated: no joint 'sholder'; did you mean 'shoulder'"),
        ("actuated: [wrist, wrist]", "actuated: joint 'wrist' is there twice"),
        ("actuated: [wrist]\npassive: [wrist]", "both actuated and passive"),
        ("passive: [a]", "passive: no joint 'a'"),
        ("cut: [a]", "cut: no joint 'a'"),
        ("free: [a]", "free: no joint 'a'"),
        ("cut: [wrist]\nfree: [wrist]", "both 'cut' and 'free'"),
        ("limits: {a: {}}", "limits: no joint 'a'"),
        ("limits: {wrist: {effort: [1, 2]}}", "joint 'wrist': effort has 2 values"),
        ("reversed: [a]", "reversed: no joint 'a'"),
        ("order: [a]", "order: no joint 'a'"),
        ("drives: {a: {}}", "drives: no joint 'a'"),
        ("drives: {wrist: {reduction: 0}}", "does not turn"),
        ("drives: {wrist: {rotor_inertia: -1}}", r"drives.wrist.rotor_inertia is -1"),
        ("format: pinloop-loops-2", "format is 'pinloop-loops-2': expected 'pinloop-loops-1'"),
        ("couplings: [{name: c, joint: a, source: wrist, ratio: 1}]", "'c': no joint 'a'"),
        ("couplings: [{name: c, joint: wrist, source: wrist, ratio: 1}]", "with itself"),
        ("couplings: [{name: c, joint: wrist, ratio: 1}]", "needs 'joint', 'source' and 'ratio'"),
        ("couplings: [{name: c, offset: 1, polynomials: {wrist: [0, 1]}}]", "beside 'joint'"),
        ("couplings: [{name: c, polynomials: {wrist: [1]}}]", "beyond the constant"),
        ("couplings: [{name: c, polynomials: {}}]", "beyond the constant"),
        ("couplings: [{name: wrist, polynomials: {wrist: [0, 1]}}]", "'wrist' is there twice"),
        ("couplings: [{name: c, joint: ball, source: wrist, ratio: 1}]", "has 3 degrees of free"),
        ("cycles: 3", "cycles is not a known key"),
        ("loops:\n- name: x\n  pair: revolt\n  a: {body: rocker}\n  b: {body: hand}", None),
    ],
)
def test_bad_file(text: str, words: str | None) -> None:
    ball = replace(revolute("ball", "rocker", "hand"), pair=make_pair("spherical"))
    robot = open_chain()
    robot = replace(robot, joints=(*robot.joints, ball), bodies=(*robot.bodies, Body("hand")))
    with pytest.raises(LoadError, match=words) as info:
        apply(text, robot)
    if words is None:
        assert str(info.value).startswith("x.loops.yaml:3: loops[0].pair is 'revolt'")


def test_schema_says_what_the_file_may_say() -> None:
    schema = schema_of("loops")
    assert schema["additionalProperties"] is False
    assert {"loops", "couplings", "actuated", "cut", "drives", "gravity", "passive"} <= set(
        schema["properties"]
    )
    entry = schema["$defs"]["LoopEntry"]
    assert set(entry["required"]) == {"name", "pair", "a", "b"}
    assert all("description" in field for field in entry["properties"].values())


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["wrist", "elbow", "rocker", "ground", "rod", "universal", "helical", "planar"]
    ),
    st.lists(st.one_of(st.floats(), st.sampled_from(["wrist", "elbow"])), max_size=4),
    st.dictionaries(st.sampled_from(["wrist", "a", "body"]), st.floats() | st.lists(st.floats())),
)


def paths(data: Any) -> list[tuple[Any, Any]]:
    """All containers in ``data`` with their keys or indices."""
    items = list(data.items()) if isinstance(data, dict) else list(enumerate(data))
    found = [(data, key) for key, _ in items]
    for _, value in items:
        if isinstance(value, dict | list):
            found += paths(value)
    return found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_mutated_documents(data: st.DataObject) -> None:
    document = yaml.safe_load(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(paths(document)))
        container[key] = data.draw(values)
        if not paths(document):
            break
    try:
        robot = apply_loops(open_chain(), read_data(LoopsFile, document, "dict"), "dict")
    except PinloopError:
        return
    for joint in robot.joints:
        for frame in (joint.frame_parent, joint.frame_child):
            assert np.all(np.isfinite(frame.homogeneous))
            np.testing.assert_allclose(frame.rotation @ frame.rotation.T, np.eye(3), atol=1e-9)
