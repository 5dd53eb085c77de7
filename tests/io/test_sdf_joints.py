"""Joints of SDF: types, axes, limits, gears, loops."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.sdf.reader import read_sdf
from pinloop.model.description import GROUND, Description

from .forward import about, gap, joint_named, placements, shift, turn

Array = NDArray[np.float64]

UNIT = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
MASS = f"<inertial><mass>1</mass>{UNIT}</inertial>"
POSE = "<pose>0 0 1 0.3 0 0</pose>"
PLACE = shift((0, 0, 1)) @ turn((1, 0, 0), 0.3)
"""Placement of the model."""
LINK_B = PLACE @ shift((1, 0, 0)) @ turn((0, 0, 1), np.pi / 2)


def model(text: str, links: str = "", version: str = "1.9") -> Description:
    """A model with link a at its origin, b at (1, 0, 0) turned by 90 deg about z, and others."""
    text = f"""<sdf version="{version}"><model name="m">{POSE}<link name="a">{MASS}</link>
<link name="b"><pose>1 0 0 0 0 1.5707963267948966</pose>{MASS}</link>{links}
{text}</model></sdf>"""
    return read_sdf(parse_xml(text, "robot.sdf"), resolve=lambda name: None)


def joint(kind: str, rest: str = "", name: str = "j", ends: str = "ab") -> str:
    parent, child = ("world" if end == "w" else end for end in ends)
    return f"""<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>
{rest}</joint>"""


def link(name: str) -> str:
    return f'<link name="{name}">{MASS}</link>'


def axis(xyz: str, rest: str = "", tag: str = "axis") -> str:
    return f"<{tag}><xyz>{xyz}</xyz>{rest}</{tag}>"


def same(T: Array, expected: Array) -> None:
    np.testing.assert_allclose(T, expected, atol=1e-12)


def limit(text: str) -> str:
    return f"<limit>{text}</limit>"


def test_a_revolute_joint_turns_its_child_about_the_joint_frame() -> None:
    description = model(joint("revolute", "<pose>0 0 2 0 0 0.4</pose>" + axis("1 2 0")))
    found = placements(description, {"j": 0.7})
    same(found["a"], PLACE)
    frame = shift((0, 0, 2)) @ turn((0, 0, 1), 0.4)
    same(found["b"], LINK_B @ frame @ turn((1, 2, 0), 0.7) @ np.linalg.inv(frame))
    same(placements(description, {})["b"], LINK_B)
    found_joint = joint_named(description, "j")
    assert (found_joint.parent, found_joint.child, found_joint.cut) == ("a", "b", False)


def test_the_axis_is_z_by_default() -> None:
    for rest in ("", "<axis/>"):
        description = model(joint("revolute", rest))
        same(placements(description, {"j": 0.7})["b"], LINK_B @ turn((0, 0, 1), 0.7))


@pytest.mark.parametrize(
    ("version", "text", "frame"),
    [
        ("1.9", "<xyz>1 0 0</xyz>", LINK_B),
        ("1.9", '<xyz expressed_in="a">1 0 0</xyz>', PLACE),
        ("1.9", '<xyz expressed_in="__model__">1 0 0</xyz>', PLACE),
        ("1.6", "<xyz>1 0 0</xyz>", LINK_B),
        ("1.5", "<xyz>1 0 0</xyz>", LINK_B),
        ("1.5", "<xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame>", PLACE),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>false</use_parent_model_frame>", LINK_B),
        ("1.4", "<xyz>1 0 0</xyz>", PLACE),
        ("1.4", "<xyz>1 0 0</xyz><use_parent_model_frame>0</use_parent_model_frame>", LINK_B),
    ],
)
def test_where_axes_are_expressed(version: str, text: str, frame: Array) -> None:
    description = model(joint("prismatic", f"<axis>{text}</axis>"), version=version)
    moved = placements(description, {"j": 0.5})["b"]
    np.testing.assert_allclose(moved[:3, 3] - LINK_B[:3, 3], 0.5 * frame[:3, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("pitch", "advance"),
    [
        # Metres per turn, right-handed.
        ("<screw_thread_pitch>0.2</screw_thread_pitch>", 0.2),
        ("<thread_pitch>7</thread_pitch><screw_thread_pitch>-0.2</screw_thread_pitch>", -0.2),
        # Radians per metre, left-handed: a turn takes 2 pi / 50 m backwards.
        ("<thread_pitch>50</thread_pitch>", -2 * np.pi / 50),
    ],
)
def test_a_screw_advances(pitch: str, advance: float) -> None:
    description = model(joint("screw", pitch + axis("0 0 1")))
    moved = placements(description, {"j": 2 * np.pi})["b"]
    same(moved, LINK_B @ shift((0, 0, advance)))
    quarter = placements(description, {"j": np.pi / 2})["b"]
    same(quarter, LINK_B @ shift((0, 0, advance / 4)) @ turn((0, 0, 1), np.pi / 2))


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
def test_a_universal_joint_turns_about_axis_then_axis2(kind: str) -> None:
    friction = "<dynamics><friction>1</friction></dynamics>"
    rest = axis("0 3 0", friction + limit("<lower>-1</lower>")) + axis(
        "1 0 0", "<dynamics><damping>2</damping></dynamics>" + limit("<effort>5</effort>"), "axis2"
    )
    description = model(joint(kind, "<pose>0 0 1 0 0 0</pose>" + rest))
    at = LINK_B @ shift((0, 0, 1))
    expected = at @ turn((0, 1, 0), 0.4) @ turn((1, 0, 0), -0.8) @ shift((0, 0, -1))
    same(placements(description, {"j": (0.4, -0.8)})["b"], expected)
    found = joint_named(description, "j")
    assert (found.lower, found.upper) == ((-1.0, -np.inf), (np.inf, np.inf))
    assert (found.effort, found.damping) == ((np.inf, 5.0), (0.0, 2.0))
    assert found.friction == (1.0, 0.0)


def test_axes_that_are_nearly_perpendicular_are_made_so() -> None:
    description = model(joint("universal", axis("0 0 1") + axis("1 0 5e-5", tag="axis2")))
    R = joint_named(description, "j").frame_child.rotation
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(R, np.eye(3), atol=1e-4)


def test_ball_and_fixed_joints() -> None:
    description = model(
        joint("ball", "<pose>0 1 0 0 0 0</pose>") + joint("fixed", name="k", ends="bc"), link("c")
    )
    turned = turn((1, 1, 1), 0.9)
    found = placements(description, {"j": turned})
    same(found["b"], LINK_B @ about((0, 1, 0), (1, 1, 1), 0.9))
    same(found["c"], found["b"] @ np.linalg.inv(LINK_B) @ PLACE)


def test_limits_and_dynamics() -> None:
    text = limit("<lower>-1</lower><upper>2</upper><effort>3</effort><velocity>4</velocity>")
    text += "<dynamics><damping>5</damping><friction>6</friction></dynamics>"
    for kind, lower, upper in (("revolute", (-1.0,), (2.0,)), ("continuous", (), ())):
        found = joint_named(model(joint(kind, axis("0 0 1", text))), "j")
        assert found.pair.name == "revolute" and found.coordinates == ""
        assert (found.lower, found.upper) == (lower, upper)
        assert (found.effort, found.velocity) == ((3.0,), (4.0,))
        assert (found.damping, found.friction) == ((5.0,), (6.0,))


def test_limits_may_be_one_sided_or_zero() -> None:
    text = limit("<lower>-inf</lower><upper>0.5</upper><effort>0</effort>")
    description = model(joint("revolute", axis("0 0 1", text + "<dynamics/>")))
    found = joint_named(description, "j")
    assert (found.lower, found.upper, found.effort) == ((-np.inf,), (0.5,), (0.0,))
    assert (found.damping, description.warnings) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "<lower>-1e16</lower><upper>1e16</upper><effort>-1</effort><velocity>-1</velocity>",
        "<lower>-inf</lower><upper>inf</upper><effort>inf</effort><velocity>1e17</velocity>",
        "",
    ],
)
def test_ways_to_say_unlimited(text: str) -> None:
    found = joint_named(model(joint("revolute", axis("0 0 1", limit(text)))), "j")
    assert (found.lower, found.upper, found.effort, found.velocity) == ((), (), (), ())


def test_springs_and_damping_of_balls_are_said_not_to_be_read() -> None:
    spring = "<dynamics><spring_stiffness>1</spring_stiffness></dynamics>"
    damping = "<dynamics><damping>1</damping></dynamics>"
    description = model(
        joint("revolute", axis("0 0 1", spring))
        + joint("ball", axis("0 0 1", damping), "k", "bc")
        + joint("revolute", "<motor/>", "l", "cd"),
        link("c") + link("d"),
    )
    assert description.warnings == (
        "robot.sdf:4: <joint name='k'> has damping, which is not read for type 'ball'",
        "the springs of joints 'j' are not read",
        "robot.sdf:6: <motor> in <joint> is not read",
    )


def test_a_child_with_two_parents_closes_a_loop() -> None:
    description = model(
        joint("fixed", name="base", ends="wa")
        + joint("revolute", name="ab", ends="ab")
        + joint("revolute", name="ac", ends="ac")
        + joint("prismatic", "<pose>1 1 0 0.2 0 0</pose>" + axis("1 0 0"), "cb", "cb")
        + joint("ball", name="wb", ends="wb"),
        link("c"),
    )
    cuts = {joint.name: joint.cut for joint in description.joints}
    assert cuts == {"base": False, "ab": False, "ac": False, "cb": True, "wb": True}
    start = placements(description, {})
    for name in ("cb", "wb"):
        same(gap(description, name, start), np.eye(4))
    loop = joint_named(description, "cb")
    assert (loop.parent, loop.child) == ("c", "b")
    slide = start["b"] @ loop.frame_child.homogeneous
    np.testing.assert_allclose(slide[:3, 2], LINK_B[:3, :3] @ (1, 0, 0), atol=1e-12)
    moved = {**start, "b": start["b"] @ shift((0.3, 0, 0))}
    same(gap(description, "cb", moved), shift((0, 0, 0.3)))


def test_a_ring_is_cut_where_it_closes() -> None:
    ring = joint("revolute", name="ab", ends="ab") + joint("revolute", name="bc", ends="bc")
    description = model(ring + joint("revolute", name="ca", ends="ca"), link("c"))
    assert joint_named(description, "ca").cut is True
    assert joint_named(description, "root_joint").child == "a"


def test_a_link_that_only_loops_reach_may_hang_on_one() -> None:
    joints = joint("fixed", name="base", ends="wa") + joint("revolute", name="ab", ends="ab")
    description = model(joints + joint("ball", name="cb", ends="cb"), link("c"))
    assert joint_named(description, "cb").cut is None
    assert [joint.name for joint in description.joints if joint.parent == GROUND] == ["base"]


def test_a_joint_may_be_forced_to_close_a_loop() -> None:
    forced = "<physics><simbody><must_be_loop_joint>1</must_be_loop_joint></simbody></physics>"
    description = model(joint("revolute", forced))
    assert joint_named(description, "j").cut is True
    roots = {joint.name: joint.child for joint in description.joints if joint.parent == GROUND}
    assert roots == {"root_joint": "a", "root_joint_b": "b"}


def test_a_fixed_joint_may_name_the_world_as_child() -> None:
    description = model(joint("fixed", ends="aw") + joint("fixed", name="k"))
    found = joint_named(description, "j")
    assert (found.parent, found.child) == (GROUND, "a")
    same(placements(description, {})["b"], LINK_B)


def gearbox(first: str, second: str, axes: str) -> Description:
    """A gearbox from b to c with ratio 2 and reference a; the joints are written as given."""
    box = f"""<gearbox_reference_body>a</gearbox_reference_body><gearbox_ratio>2</gearbox_ratio>
        {axes}"""
    return model(first + second + joint("gearbox", box, "box", "bc"), link("c"))


def in_a(xyz: str, tag: str = "axis") -> str:
    return f'<{tag}><xyz expressed_in="a">{xyz}</xyz></{tag}>'


@pytest.mark.parametrize(
    ("first", "second", "axes", "ratio"),
    [
        # theta_2 = -2 theta_1, with theta from a to b and from a to c.
        (("ab", "0 1 0"), ("ac", "0 1 0"), ("0 1 0", "0 1 0"), -2.0),
        (("ab", "0 -1 0"), ("ac", "0 1 0"), ("0 1 0", "0 1 0"), 2.0),
        (("ab", "0 1 0"), ("ac", "0 1 0"), ("0 1 0", "0 -1 0"), 2.0),
        (("ab", "0 1 0"), ("ac", "1 0 0"), ("0 -1 0", "-1 0 0"), -2.0),
        (("ab", "0 1 0"), ("ca", "0 1 0"), ("0 1 0", "0 1 0"), 2.0),
    ],
)
def test_a_gearbox_couples_the_angles_to_its_reference(
    first: tuple[str, str], second: tuple[str, str], axes: tuple[str, str], ratio: float
) -> None:
    description = gearbox(
        joint("revolute", in_a(first[1]), "first", first[0]),
        joint("revolute", in_a(second[1]), "second", second[0]),
        in_a(axes[0]) + in_a(axes[1], "axis2"),
    )
    (coupling,) = description.couplings
    assert (coupling.name, coupling.joints) == ("box", ("second", "first"))
    # The row q_second - ratio q_first.
    np.testing.assert_array_equal(coupling.polynomials, [(0, 1), (0, -ratio)])
    assert {joint.name for joint in description.joints} == {"first", "second", "root_joint"}


def test_a_gearbox_has_ratio_one_by_default() -> None:
    box = "<gearbox_reference_body>a</gearbox_reference_body>"
    joints = joint("revolute", name="ab") + joint("continuous", name="ac", ends="ac")
    description = model(joints + joint("gearbox", box, "box", "bc"), link("c"))
    np.testing.assert_array_equal(description.couplings[0].polynomials, [(0, 1), (0, 1)])


def test_a_gearbox_without_its_joints_is_not_read() -> None:
    first = joint("revolute", in_a("0 1 0"), "first", "ab")
    for second in (
        joint("revolute", in_a("1 0 0"), "second", "ac"),
        joint("prismatic", in_a("0 1 0"), "second", "ac"),
        joint("revolute", in_a("0 1 0"), "second", "bc"),
    ):
        description = gearbox(first, second, in_a("0 1 0") + in_a("0 1 0", "axis2"))
        assert description.couplings == ()
        assert "no revolute joint about its axis2 joins 'c' to 'a'" in description.warnings[0]


def test_a_mimic_couples_two_joints() -> None:
    mimic = """<mimic joint="j"><multiplier>3</multiplier><offset>0.5</offset>
        <reference>0.2</reference></mimic>"""
    description = model(
        joint("revolute")
        + joint("prismatic", axis("0 0 1", mimic), "k", "bc")
        + joint("ball", name="l", ends="cd")
        + joint("revolute", axis("0 0 1", '<mimic joint="l"/>'), "n", "de")
        + joint("revolute", axis("0 0 1", '<mimic joint="j"/>'), "o", "ef"),
        link("c") + link("d") + link("e") + link("f"),
    )
    coupling, plain = description.couplings
    np.testing.assert_array_equal(plain.polynomials, [(0, 1), (0, -1)])
    assert (coupling.name, coupling.joints) == ("k_mimics_j", ("k", "j"))
    # q_k = 3 (q_j - 0.2) + 0.5
    np.testing.assert_allclose(coupling.polynomials, [(0.1, 1.0), (0.0, -3.0)])
    assert "<mimic> is not read: both joints must have one" in description.warnings[0]


def test_joints_between_models_stand_in_the_world() -> None:
    text = f"""<sdf version="1.10"><world name="w"><model name="m">{link("a")}</model>
        <joint name="j" type="revolute"><parent>world</parent><child>m::a</child>
        <axis><xyz>0 1 0</xyz></axis></joint></world></sdf>"""
    description = read_sdf(parse_xml(text, "robot.sdf"), resolve=lambda name: None)
    assert [joint.name for joint in description.joints] == ["j"]
    same(placements(description, {"j": 0.5})["a"], turn((0, 1, 0), 0.5))


def test_before_1_7_a_link_may_have_the_name_of_a_joint() -> None:
    text = joint("revolute", axis("0 0 1"), "c", "ab") + joint("fixed", name="k", ends="bc")
    description = model(text, link("c"), version="1.6")
    assert joint_named(description, "k").child == "c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (joint("piston"), "type 'piston'; it must be one of: revolute"),
        (joint("screw", "<thread_pitch>0</thread_pitch>"), "thread_pitch 0 rad/m"),
        (joint("revolute", ends="aw"), "make the world the parent"),
        (joint("revolute", ends="ax"), "frame 'x', which does not exist"),
        (joint("revolute", axis("0 0 0")), "zero axis"),
        (joint("revolute", axis("0 1")), "2 numbers where 3 are needed"),
        (
            joint("revolute2", axis("0 0 1") + axis("1 0 1", tag="axis2")),
            "are 45 deg apart; they must be perpendicular",
        ),
        (joint("universal", axis("0 0 1")), "are 0 deg apart"),
        (joint("gearbox"), "needs a <gearbox_reference_body>"),
        ('<joint name="j" type="fixed"><parent>a</parent></joint>', "needs a <child>"),
        ('<joint name="j"><parent>a</parent><child>b</child></joint>', "attribute 'type'"),
        (joint("revolute", axis("0 0 1", limit("<lower>x</lower>"))), "'x', which is not a number"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)) as caught:
        model(text)
    assert caught.value.source == "robot.sdf" and caught.value.line in (3, 4)


@pytest.mark.parametrize("most", ["1.79769e+308", "1e16", "inf"])
def test_the_largest_numbers_are_no_limits(most: str) -> None:
    ends = f"<limit><lower>-{most}</lower><upper>{most}</upper><effort>{most}</effort></limit>"
    found = joint_named(model(joint("revolute", axis("0 0 1", ends), ends="wa")), "j")
    assert (found.lower, found.upper, found.effort) == ((), (), ())


def test_limits_in_the_wrong_order_are_swapped() -> None:
    ends = "<limit><lower>2</lower><upper>-1</upper><velocity>-1</velocity></limit>"
    description = model(joint("revolute", axis("0 0 1", ends), ends="wa"))
    found = joint_named(description, "j")
    assert (found.lower, found.upper, found.velocity) == ((-1.0,), (2.0,), ())
    assert "<joint name='j'> has its lower limit above the upper one" in description.warnings[0]


def test_a_screw_without_pitch_has_the_default_of_sdf() -> None:
    description = model(joint("screw", ends="wa"))
    found = joint_named(description, "j")
    # One metre per turn, a right-hand thread.
    assert found.pair.parameters["pitch"] == pytest.approx(1 / (2 * np.pi))
    assert "has no <screw_thread_pitch>; SDF's default of 1 m/turn" in description.warnings[0]


def detachable(child_model: str, child: str = "c") -> str:
    return (
        '<plugin name="gz::sim::systems::DetachableJoint" filename="x"><parent_link>a</parent_link>'
        f"<child_model>{child_model}</child_model><child_link>{child}</child_link></plugin>"
    )


def test_a_detachable_joint_welds_links_in_their_initial_pose() -> None:
    tree = joint("fixed", name="wa", ends="wa") + joint("revolute", name="ab", ends="ab")
    tree += joint("revolute", name="bc", ends="bc")
    third = f'<link name="c"><pose>1 2 3 0.1 0.2 0.3</pose>{MASS}</link>'
    for name in ("m", "__model__"):
        description = model(tree + detachable(name), third)
        weld = joint_named(description, "a-c")
        assert (weld.pair.name, weld.parent, weld.child, weld.cut) == ("fixed", "a", "c", True)
        same(gap(description, "a-c", placements(description, {})), np.eye(4))
        open_ = gap(description, "a-c", placements(description, {"bc": 0.3}))
        assert np.abs(open_ - np.eye(4)).max() > 0.1
    inner = model(tree + detachable("n", "d"), third + f'<model name="n">{link("d")}</model>')
    assert joint_named(inner, "a-n::d").pair.name == "fixed"
    other = model(tree + detachable("cube"), third)
    assert not [one for one in other.joints if one.cut]
    assert "attaches the model 'cube', which is not loaded; left out" in other.warnings[0]
    both = model(tree + detachable("cube") + detachable("ball"), third)
    assert both.warnings[0].endswith("'cube', which is not loaded; left out; likewise 'ball'")
