"""Equality constraints and actuators of MJCF."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.mjcf.reader import read_mjcf
from pinloop.model.description import GROUND, Description, Drive

from .forward import gap, joint_named, placements, shift, turn
from .mjcf_by_hand import MASS

Array = NDArray[np.float64]

BODIES = f"""<worldbody>
  <body name="a" pos="1 0 0" axisangle="0 0 1 0.5">{MASS}<joint name="ja" axis="0 1 0"/>
    <site name="sa" pos="0 0.3 0" axisangle="1 0 0 0.2"/>
    <body name="b" pos="0 0 1" axisangle="1 0 0 0.3">{MASS}<joint name="jb" axis="1 0 0" ref="0.4"/>
    </body></body>
  <body name="c" pos="0 2 0" axisangle="0 1 0 -0.7">{MASS}<joint name="jc" type="slide" ref="0.1"/>
    <site name="sc" pos="0 0.1 0.2"/>
    <body name="d">{MASS}<joint name="jd" type="ball"/></body></body>
</worldbody>"""
POSE_A = shift((1, 0, 0)) @ turn((0, 0, 1), 0.5)
POSE_B = POSE_A @ shift((0, 0, 1)) @ turn((1, 0, 0), 0.3)
POSE_C = shift((0, 2, 0)) @ turn((0, 1, 0), -0.7)
START = {"jb": 0.4, "jc": 0.1}
"""Coordinates of the pose in the file, where they are not zero."""


def read(rest: str) -> Description:
    text = f'<mujoco><compiler angle="radian"/>{BODIES}\n{rest}</mujoco>'
    return read_mjcf(parse_xml(text, "robot.xml"), resolve=lambda name: None)


def equality(text: str) -> Description:
    return read(f"<equality>{text}</equality>")


def test_a_connect_holds_in_the_initial_pose() -> None:
    description = equality('<connect name="c1" body1="b" body2="c" anchor="0.1 0.2 0.3"/>')
    joint = joint_named(description, "c1")
    assert joint.cut is True and joint.pair.name == "spherical"
    assert (joint.parent, joint.child) == ("b", "c")
    np.testing.assert_array_equal(joint.frame_parent.translation, (0.1, 0.2, 0.3))
    anchor = np.linalg.inv(POSE_C) @ POSE_B @ (0.1, 0.2, 0.3, 1)
    np.testing.assert_allclose(joint.frame_child.translation, anchor[:3])
    closed = gap(description, "c1", placements(description, START))
    np.testing.assert_allclose(closed, np.eye(4), atol=1e-12)
    opened = gap(description, "c1", placements(description, {**START, "jc": 0.6}))
    np.testing.assert_allclose(np.linalg.norm(opened[:3, 3]), 0.5)


def test_a_connect_to_the_world_and_between_sites() -> None:
    description = equality(
        """<connect body1="b" anchor="0.1 0.2 0.3"/><connect site1="sa" site2="sc"/>
        <connect name="ja" body1="a" anchor="0 0 0"/>"""
    )
    world, sites, renamed = (joint for joint in description.joints if joint.cut)
    assert (world.name, world.child) == ("connect_b", GROUND)
    at = (POSE_B @ (0.1, 0.2, 0.3, 1))[:3]
    np.testing.assert_allclose(world.frame_child.translation, at)
    assert (sites.name, sites.parent, sites.child) == ("connect_sa_sc", "a", "c")
    np.testing.assert_array_equal(sites.frame_parent.translation, (0, 0.3, 0))
    np.testing.assert_array_equal(sites.frame_child.translation, (0, 0.1, 0.2))
    assert renamed.name == "ja_2"
    assert any("it is called 'ja_2'" in warning for warning in description.warnings)


def test_a_weld_without_relpose_holds_in_the_initial_pose() -> None:
    description = equality('<weld name="w" body1="a" body2="c" anchor="0.1 0.2 0.3"/>')
    joint = joint_named(description, "w")
    assert joint.pair.name == "fixed" and joint.cut is True
    np.testing.assert_array_equal(joint.frame_child.homogeneous, shift((0.1, 0.2, 0.3)))
    expected = np.linalg.inv(POSE_A) @ POSE_C @ shift((0.1, 0.2, 0.3))
    np.testing.assert_allclose(joint.frame_parent.homogeneous, expected, atol=1e-12)


def test_what_a_weld_may_leave_out() -> None:
    description = equality(
        '<weld name="w" body1="a"/><weld name="v" body1="a" body2="c" relpose="1 2 3 2 0 0 0"/>'
    )
    to_world, turned = joint_named(description, "w"), joint_named(description, "v")
    assert (to_world.pair.name, to_world.child) == ("fixed", GROUND)
    np.testing.assert_array_equal(to_world.frame_child.homogeneous, np.eye(4))
    expected = np.linalg.inv(POSE_A)
    np.testing.assert_allclose(to_world.frame_parent.homogeneous, expected, atol=1e-12)
    np.testing.assert_array_equal(turned.frame_parent.homogeneous, shift((1, 2, 3)))


def test_a_weld_with_relpose() -> None:
    description = equality(
        """<weld name="w" body1="a" body2="c" relpose="1 2 3 1 0 0 1" anchor="0 0 5"/>
        <weld name="s" site1="sa" site2="sc"/><weld name="p" body1="a" torquescale="0"/>"""
    )
    joint = joint_named(description, "w")
    expected = shift((1, 2, 3)) @ turn((0, 0, 1), np.pi / 2)
    np.testing.assert_allclose(joint.frame_parent.homogeneous, expected, atol=1e-12)
    np.testing.assert_array_equal(joint.frame_child.homogeneous, shift((0, 0, 5)))
    sites = joint_named(description, "s")
    expected = shift((0, 0.3, 0)) @ turn((1, 0, 0), 0.2)
    np.testing.assert_allclose(sites.frame_parent.homogeneous, expected, atol=1e-12)
    assert joint_named(description, "p").pair.name == "spherical"


@pytest.mark.parametrize("polycoef", ["0.1 -2 0.3 0.4 0.5", "0.1 -2", "0.7", "", "0 0 0 0 0"])
def test_a_coupling_counts_from_the_references(polycoef: str) -> None:
    given = f'polycoef="{polycoef}"' if polycoef else ""
    description = equality(f'<joint name="gear" joint1="jb" joint2="jc" {given}/>')
    (coupling,) = description.couplings
    assert (coupling.name, coupling.joints) == ("gear", ("jb", "jc"))
    numbers = [float(word) for word in polycoef.split()]
    a = numbers + [0.0, 1.0, 0.0, 0.0, 0.0][len(numbers) :]
    rng = np.random.default_rng(3)
    for y, x in rng.normal(size=(5, 2)):
        row = sum(
            sum(c * q**power for power, c in enumerate(polynomial))
            for polynomial, q in zip(coupling.polynomials, (y, x), strict=True)
        )
        expected = (y - 0.4) - sum(a[k] * (x - 0.1) ** k for k in range(5))
        np.testing.assert_allclose(row, expected, atol=1e-12)


def test_a_coupling_of_one_joint_locks_it() -> None:
    (coupling,) = equality('<joint joint1="jb" polycoef="0.2 9"/>').couplings
    assert coupling.joints == ("jb",)
    np.testing.assert_allclose(coupling.polynomials, [(-0.6, 1.0)])


def test_equalities_that_are_left_out() -> None:
    description = read(
        """<default><default class="off"><equality active="false"/></default></default><equality>
<connect name="x" body1="a" anchor="0 0 0" active="false"/>
<weld body1="a" class="off"/><weld body1="a" class="off" active="true"/>
<tendon tendon1="t"/>
<spring/></equality><tendon><spatial name="t"/></tendon>"""
    )
    assert [joint.name for joint in description.joints if joint.cut] == ["weld_a"]
    starts = [
        "robot.xml:11: <connect name='x'> is not active",
        "robot.xml:12: <weld> is not active",
        "robot.xml:13: <tendon> is on a tendon that runs over sites",
        "robot.xml:14: <spring> in <equality> is not read",
    ]
    said = [warning for warning in description.warnings if " ref:" not in warning]
    assert len(said) == len(starts)
    assert all(text.startswith(start) for text, start in zip(said, starts, strict=True))


TENDONS = """<tendon>
  <fixed name="t1"><joint joint="ja" coef="2"/><joint joint="jb" coef="-1"/></fixed>
  <fixed name="t2"><joint joint="jc" coef="4"/><joint joint="ja" coef="0.5"/></fixed>
  <fixed name="t3"><joint joint="jc" coef="3"/></fixed>
  <fixed name="zero"><joint joint="jc" coef="3"/><joint joint="jc" coef="-3"/></fixed>
  <spatial name="rope" stiffness="3"/><fixed name="elastic" range="0 1" damping="1"/></tendon>"""


def test_fixed_tendons_are_coupled() -> None:
    description = read(
        TENDONS
        + """<equality><tendon name="one" tendon1="t1"/>
        <tendon name="two" tendon1="t1" tendon2="t2" polycoef="0.7 3"/>
        <tendon tendon1="t1" tendon2="t3" polycoef="0.1 2 5 0 1"/>
        <tendon tendon1="t1" tendon2="t2" polycoef="0 1 1"/><tendon tendon1="rope"/>
        <tendon tendon1="zero"/></equality>"""
    )
    one, two, three = description.couplings
    assert (one.name, two.name, three.name) == ("one", "two", "tendon_t1_t3")
    q = {"ja": 0.3, "jb": -0.8, "jc": 0.25}
    first = 2 * q["ja"] - (q["jb"] - START["jb"])
    second = 4 * (q["jc"] - START["jc"]) + 0.5 * q["ja"]
    third = 3 * (q["jc"] - START["jc"])
    for coupling, expected in (
        (one, first),
        (two, first - 0.7 - 3 * second),
        (three, first - (0.1 + 2 * third + 5 * third**2 + third**4)),
    ):
        rows = zip(coupling.joints, coupling.polynomials, strict=True)
        value = sum(np.polynomial.Polynomial(row)(q[joint]) for joint, row in rows)
        np.testing.assert_allclose(value, expected, atol=1e-12)
    said = "\n".join(description.warnings)
    for text in (
        "is a polynomial of degree 2 in several joints",
        "is on a tendon that runs over sites",
        "is on a tendon whose length is constant",
        "<spatial name='rope'> has stiffness, which is not read",
        "<fixed name='elastic'> has damping and range, which is not read",
    ):
        assert text in said


def test_mistakes_of_tendons() -> None:
    for tendon, equality_of, message in (
        ("", '<tendon tendon1="x"/>', "tendon 'x', which does not exist"),
        ('<fixed name="a"/><fixed name="a"/>', "", "already taken"),
        ('<fixed name="a"><joint joint="jd" coef="1"/></fixed>', "", "no hinge or slide"),
        ('<fixed name="a"><joint joint="x" coef="1"/></fixed>', "", "joint 'x', which does not"),
        ('<fixed name="a"><joint joint="ja"/></fixed>', "", "needs an attribute 'coef'"),
    ):
        with pytest.raises(LoadError, match=re.escape(message)):
            read(f"<tendon>{tendon}</tendon><equality>{equality_of}</equality>")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<connect body1="x" anchor="0 0 0"/>', "body 'x', which does not exist"),
        ('<connect body1="a"/>', "needs an attribute 'anchor'"),
        ('<connect body1="a" body2="a" anchor="0 0 0"/>', "body 'a' to itself"),
        ('<connect site1="sa" site2="x"/>', "site 'x', which does not exist"),
        ('<weld body1="a" relpose="0 0 0 1"/>', "4 numbers where 7 are needed"),
        ('<joint joint1="x"/>', "joint 'x', which does not exist"),
        ('<joint joint1="jd"/>', "'jd', which is no hinge or slide"),
        ('<joint joint1="ja" joint2="ja"/>', "couples the joint 'ja' to itself"),
        ('<joint joint1="ja" polycoef="1 2 3 4 5 6"/>', "at most 5"),
        ('<weld body1="a" active="1"/>', "active '1'; it must be one of: false, true"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        equality(text)


def test_motors_make_drives_and_efforts() -> None:
    description = read(
        """<default><motor gear="10"/><default class="x"><position forcerange="-2 1"/></default>
        </default><actuator>
        <motor joint="ja" ctrlrange="-3 2"/>
        <position joint="jb" gear="-4" class="x" ctrlrange="-99 99" armature="0.5"/>
        <motor jointinparent="jc" forcerange="-5 5" ctrlrange="-1 1" gear="2 0 0 0 0 0"/>
        </actuator>"""
    )
    assert description.actuated == ("ja", "jb", "jc")
    drives = (Drive("ja", 10.0), Drive("jb", -4.0, 0.5), Drive("jc", 2.0))
    assert description.drives == drives
    effort = {name: joint_named(description, name).effort for name in ("ja", "jb", "jc", "jd")}
    assert effort == {"ja": (30.0,), "jb": (8.0,), "jc": (2.0,), "jd": ()}
    assert joint_named(description, "jb").armature == (8.0,)


def test_motors_of_one_joint_add_up() -> None:
    description = read(
        """<worldbody><body><joint name="je" actuatorfrcrange="-7 3" armature="1"/></body>
        </worldbody><actuator><motor joint="ja" forcerange="-1 1" gear="2" damping="0.5"/>
        <velocity joint="ja" forcerange="-1 1" gear="3" armature="0.1"/><position joint="jb"/>
        <motor joint="jb" forcerange="-1 1"/>
        <general joint="je" forcerange="-1 1" armature="0.1" gear="10"/></actuator>"""
    )
    ja, jb, je = (joint_named(description, name) for name in ("ja", "jb", "je"))
    assert (ja.effort, jb.effort, je.effort) == ((5.0,), (), (7.0,))
    np.testing.assert_allclose((*ja.armature, *ja.damping, *je.armature), (0.9, 2.0, 11.0))
    assert description.actuated == ("ja", "jb", "je")
    assert any("drives 'ja' with another gear" in warning for warning in description.warnings)


def test_an_orientation_servo_drives_a_ball() -> None:
    description = read('<actuator><orientation joint="jd"/></actuator>')
    assert (description.actuated, description.drives) == (("jd",), ())


def test_a_motor_on_a_fixed_tendon_pulls_its_joints_with_their_coefficients() -> None:
    tendons = """<tendon><fixed name="one"><joint joint="ja" coef="-0.5"/></fixed>
    <fixed name="two"><joint joint="jb" coef="0.5"/><joint joint="jc" coef="3"/></fixed>
    <spatial name="rope"/></tendon>"""
    description = read(
        f"""{tendons}<actuator><motor tendon="one" gear="4" forcerange="-5 5" armature="0.1"/>
        <motor joint="jb" forcerange="-1 1"/>
        <motor name="m" tendon="two" gear="2" forcerange="-5 5" armature="0.1"/>
        <motor name="r" tendon="rope"/></actuator>"""
    )
    # A force F at the tendon is c F at the joint: virtual work of L = sum c q.
    assert description.actuated == ("ja", "jb", "jc")
    assert description.drives == (Drive("ja", -2.0, 0.1), Drive("jb", 1.0))
    ja, jb, jc = (joint_named(description, name) for name in ("ja", "jb", "jc"))
    assert (ja.effort, jb.effort, jc.effort) == ((10.0,), (6.0,), (30.0,))
    assert ja.armature == pytest.approx((0.4,)) and (jb.armature, jc.armature) == ((), ())
    said = "\n".join(description.warnings)
    assert (
        "<motor name='m'> pulls several joints; each counts as actuated, without its armature"
        in said
    )
    assert "<motor name='r'> does not act on a joint; it is not read" in said


def test_actuators_that_are_not_read() -> None:
    description = read(
        """<actuator><motor name="t" tendon="x"/><motor joint="jd"/><damper joint="ja"/>
        <engine/></actuator>"""
    )
    assert description.actuated == ()
    said = "\n".join(description.warnings)
    for text in ("'t'> does not act on a joint", "one direction of 'jd'", "can only brake"):
        assert text in said
    assert "<engine> in <actuator> is not read" in said
    assert read("").actuated is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<motor joint="x"/>', "joint 'x', which does not exist"),
        ('<motor joint="ja" gear="0"/>', "must not be 0"),
        ('<motor joint="ja" forcerange="1"/>', "1 numbers where 2 are needed"),
    ],
)
def test_mistakes_of_actuators(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        read(f"<actuator>{text}</actuator>")
