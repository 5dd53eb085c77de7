"""Gepetto's YAML: loops between frames, motors, and joints that change their type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pinloop.boundary.yaml import read_yaml
from pinloop.errors import LoadError, PinloopError
from pinloop.io.companions import apply_gepetto
from pinloop.model.description import GROUND, Body, Coupling, Description, Drive, Joint
from pinloop.model.pairs import align_z, make_pair

from .by_hand import about, at, joint_named, open_chain, placed

TEXT = """\
closed_loop: [['tool', 'base'], ['shoulder', wrist]]
type: ['6d', '3D']
name_mot: ['shoulder', 'elbow']
joint_name: ['wrist']
joint_type: ['SPHERICAL']
"""


def tilted() -> Description:
    """The open chain with a wrist about y, off the origins of both bodies."""
    chain = open_chain()
    turn = pin.SE3(align_z(np.array([0.0, 1.0, 0.0])), np.zeros(3))
    frames = (about("x", 0.4) * at(2, 0.1, 0) * turn, at(0, 0, 0.3) * turn)
    wrist = replace(chain.joints[2], frame_parent=frames[0], frame_child=frames[1])
    wrist = replace(wrist, lower=(-1.0,), upper=(1.0,), damping=(2.0,))
    return replace(chain, joints=(*chain.joints[:2], wrist))


def apply(text: str, description: Description | None = None) -> Description:
    data = read_yaml(text, "robot.yaml")
    assert isinstance(data, dict)
    return apply_gepetto(open_chain() if description is None else description, data, "robot.yaml")


def test_loops_and_motors() -> None:
    robot = apply(TEXT)
    assert robot.actuated == ("shoulder", "elbow")
    first, second = robot.joints[3:]
    assert (first.name, first.parent, first.child) == ("tool-base", "rocker", "base")
    assert (second.name, second.parent, second.child) == ("shoulder-wrist", "crank", "rocker")
    assert (first.pair.name, second.pair.name) == ("fixed", "spherical")
    assert first.cut is True and second.cut is True
    np.testing.assert_allclose(first.frame_parent.translation, [1, 0, 0])
    # All six directions: the tool is a metre from the base when the rocker is on it.
    np.testing.assert_allclose(
        first.pair.residual(first.frame_parent.inverse()),
        make_pair("fixed").residual(about("z", -np.pi / 2) * at(-1, 0, 0)),
    )
    assert robot.warnings == ()


def test_world_closes_too() -> None:
    robot = apply("closed_loop: [[universe, tool]]\ntype: [6d]\nname_mot: []")
    assert robot.joints[-1].parent == GROUND
    assert robot.actuated == ()


def test_spherical_keeps_place_and_axes_of_the_child() -> None:
    before = joint_named(tilted(), "wrist")
    after = joint_named(apply(TEXT, tilted()), "wrist")
    assert after.pair.name == "spherical" and after.cut is False
    identity = pin.SE3.Identity()
    assert placed(after, identity).isApprox(placed(before, identity), 1e-12)
    assert placed(after, about("y", 0.7)).isApprox(placed(before, about("z", 0.7)), 1e-12)
    np.testing.assert_allclose(after.frame_child.rotation, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(after.frame_child.translation, [0, 0, 0.3])
    assert (after.lower, after.upper, after.damping) == ((), (), ())


def test_fixed_stays_where_its_coordinate_is_zero() -> None:
    text = TEXT.replace("SPHERICAL", "FIXED")
    before, after = joint_named(tilted(), "wrist"), joint_named(apply(text, tilted()), "wrist")
    assert after.pair.name == "fixed"
    identity = pin.SE3.Identity()
    assert placed(after, identity).isApprox(placed(before, identity), 1e-12)


@pytest.mark.parametrize("axes", ["XY", "YX", "YZ", "ZX", "ZY", "XZ"])
def test_crossed_axes(axes: str) -> None:
    """The first angle turns about the first axis of the child's frame, then the second."""
    robot = apply(TEXT.replace("SPHERICAL", f"UJOINT_{axes}"), tilted())
    first, second = (joint_named(robot, f"wrist_{axis}") for axis in axes)
    assert [joint.name for joint in robot.joints[2:4]] == [first.name, second.name]
    assert (first.parent, second.child) == ("coupler", "rocker")
    assert first.child == second.parent == "wrist_cross"
    (between,) = (body.name for body in robot.bodies if body.is_between)
    assert between == "wrist_cross"
    cross = robot.bodies[-1]
    assert cross.name == "wrist_cross" and cross.mass == 0 and not cross.inertia.any()
    a, b = 0.3, -0.8
    got = placed(first, about("z", a)) * placed(second, about("z", b))
    # In the axes of the child, at a centre 0.3 m above its origin.
    at_zero = placed(joint_named(tilted(), "wrist"), pin.SE3.Identity())
    up = at(0, 0, 0.3)
    turned = about(axes[0].lower(), a) * about(axes[1].lower(), b)
    assert got.isApprox(at_zero * up * turned * up.inverse(), 1e-12)


def test_cut_joint_with_crossed_axes_leaves_its_cross_in_the_tree() -> None:
    chain = tilted()
    chain = replace(chain, joints=(*chain.joints[:2], replace(chain.joints[2], cut=True)))
    robot = apply(TEXT.replace("SPHERICAL", "UJOINT_XY"), chain)
    assert joint_named(robot, "wrist_X").cut is False
    assert joint_named(robot, "wrist_Y").cut is True


def test_what_the_changed_joint_loses() -> None:
    robot = replace(tilted(), drives=(Drive("wrist"), Drive("elbow")), actuated=("wrist", "elbow"))
    text = TEXT.replace("name_mot: ['shoulder', 'elbow']", "")
    changed = apply(text, robot)
    assert changed.drives == (Drive("elbow"),)
    assert changed.actuated == ("elbow",)
    assert changed.warnings == ("robot.yaml: joint 'wrist' changes its type and loses its drive",)


def test_old_files_with_parts_of_names() -> None:
    text = "closed_loop: []\ntype: []\nname_mot: ould\nrotule_name: ris\nLidmot: [0, 1]\n"
    robot = apply(text)
    assert robot.actuated == ("shoulder",)
    assert joint_named(robot, "wrist").pair.name == "spherical"
    assert robot.warnings == ("robot.yaml:5: key 'Lidmot' is not read",)


def test_missing_and_odd_types() -> None:
    robot = apply("closed_loop: [[tool, base]]")
    assert robot.joints[-1].pair.name == "fixed" and robot.actuated is None
    assert robot.warnings == (
        "robot.yaml: no 'type' of the loops is given; all six directions close",
    )
    robot = apply("closed_loop: [[tool, base]]\ntype:\n- 7d")
    assert robot.joints[-1].pair.name == "fixed"
    assert robot.warnings == ("robot.yaml:3: type '7d' of loop tool-base is taken as '6d'",)
    assert apply("closed_loop:\njoint_name:\njoint_type:").warnings == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("['6d', '3D']", "['6d']", 2, "'closed_loop' has 2 pairs of frames, but 'type' has 1"),
        ("['SPHERICAL']", "[]", 5, "'joint_name' has 1 joints, but 'joint_type' has 0"),
        ("'tool'", "'tol'", 1, r"closed_loop\[0\]: no body, frame or joint 'tol'; did you mean"),
        ("'base'", "'wrist'", 1, r"closed_loop\[0\]: 'tool' and 'wrist' are on one body, 'rocker'"),
        ("wrist]", "base, tool]", 1, r"closed_loop\[1\] is .*: 3 items where 2 are needed"),
        ("'shoulder', 'elbow'", "'sholder'", None, "name_mot: no joint 'sholder'; did you mean"),
        ("['wrist']", "['wirst']", None, "joint_name: no joint 'wirst'; did you mean 'wrist'"),
        ("SPHERICAL", "CARDAN", 5, r"joint_type\[0\] is 'CARDAN' for joint 'wrist'; known are"),
        ("SPHERICAL", "UJOINT_XX", 5, r"joint_type\[0\] is 'UJOINT_XX'"),
        ("SPHERICAL", "UJOINT_XYZ", 5, r"joint_type\[0\] is 'UJOINT_XYZ'"),
        ("['wrist']", "[3]", 4, r"joint_name\[0\] is 3: expected a text"),
        ("[['tool', 'base'],", "[['tool', 'base'], [tool, base],", None, "type"),
        ("['6d', '3D']", "3d", 2, "type is '3d': expected a list"),
    ],
)
def test_mistakes(old: str, new: str, line: int | None, words: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(LoadError, match=words) as info:
        apply(text)
    if line is not None:
        assert info.value.line == line
    assert info.value.source == "robot.yaml"


def test_more_mistakes() -> None:
    split = TEXT.replace("SPHERICAL", "UJOINT_XY")
    with pytest.raises(LoadError, match="did you mean 'wrist_Y' or 'wrist_X'"):
        apply(split.replace("'elbow'", "'wrist'").replace("'shoulder', wrist", "'shoulder', elbow"))
    with pytest.raises(LoadError, match="joint 'tool-base' is there twice"):
        apply("closed_loop: [[tool, base], [tool, base]]\ntype: [6d, 6d]")
    coupled = replace(open_chain(), couplings=(Coupling.linear("gear", "wrist", "elbow", 2.0),))
    with pytest.raises(LoadError, match="changes its type, but coupling 'gear' uses it"):
        apply(TEXT, coupled)
    crowded = replace(open_chain(), bodies=(*open_chain().bodies, Body("wrist_cross")))
    with pytest.raises(LoadError, match="body 'wrist_cross' is there twice"):
        apply(split, crowded)
    with pytest.raises(LoadError, match="closed_loop is missing"):
        apply_gepetto(open_chain(), {"type": []}, "f")
    chain = open_chain()
    rod = Joint(
        "rod", make_pair("rod", length=1.0), "base", "rocker", at(0, 0, 0), at(0, 0, 0), cut=True
    )
    with pytest.raises(LoadError, match="the rod 'rod' cannot change its type"):
        apply(TEXT.replace("['wrist']", "[rod]"), replace(chain, joints=(*chain.joints, rod)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_mutated_files(data: st.DataObject) -> None:
    document: dict[str, Any] = yaml.safe_load(TEXT)
    key = data.draw(st.sampled_from([*document, "rotule_name"]))
    names = st.sampled_from(["wrist", "tool", "base", "3d", "FIXED", "UJOINT_YX", "elbow", ""])
    document[key] = data.draw(
        st.one_of(
            st.none(),
            names,
            st.floats(),
            st.lists(names, max_size=3),
            st.lists(st.lists(names, min_size=2, max_size=2), max_size=3),
            st.dictionaries(names, names),
        )
    )
    try:
        apply_gepetto(tilted(), document, "robot.yaml")
    except PinloopError as error:
        assert "robot.yaml" in str(error)
