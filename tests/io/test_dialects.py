"""Dialects in which people close loops, and slips in files that other tools forgive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl

MASS = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'


def hinge(name: str, parent: str, child: str, xyz: str, rpy: str = "0 0 0", more: str = "") -> str:
    return (
        f'<joint name="{name}" type="continuous" {more}><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/></joint>\n'
    )


def bars(closing: str, *, rocker: str = "0 0 0", more: str = "") -> str:
    """A parallelogram of bars without its fourth hinge; its second short bar may be turned."""
    links = "".join(f'<link name="{name}">{MASS}</link>' for name in ("crank", "coupler", "rocker"))
    return (
        f'<robot name="bars"><link name="base"/>{links}\n'
        + hinge("j1", "base", "crank", "0 0 0", more=more)
        + hinge("j2", "crank", "coupler", "0 1 0", more=more)
        + hinge("j3", "base", "rocker", "2 0 0", rocker, more=more)
        + f"{closing}</robot>"
    )


def assert_closed(robot: pl.Mechanism, pair: str = "revolute") -> None:
    """The one loop is the parallelogram's fourth hinge, closed at zero and for other angles."""
    (loop,) = robot.loops
    assert loop.pair.name == pair
    rows = pl.Constraints(robot, full=True)
    for angle in (0.0, 0.3, -0.7):
        q = robot.configuration({"j1": angle, "j2": -angle, "j3": angle})
        np.testing.assert_allclose(rows.residual(q), 0, atol=1e-9)
    assert np.linalg.norm(rows.residual(robot.configuration({"j1": 0.3}))) > 0.1


def ends(first: str = 'xyz="2 0 0"', second: str = 'xyz="0 1 0"', inside: str = "") -> str:
    return (
        f'<loop_joint name="close" type="revolute"><axis xyz="0 0 1"/>{inside}'
        f'<link1 link="coupler" {first}/><link2 link="rocker" {second}/></loop_joint>'
    )


def test_the_ends_of_a_loop_joint_have_attributes_or_an_origin() -> None:
    assert_closed(pl.load(bars(ends())))
    inner = ends().replace(
        'link="coupler" xyz="2 0 0"/>', 'link="coupler"><origin xyz="2 0 0"/></link1>'
    )
    robot = pl.load(bars(inner))
    assert robot.warnings == ()
    assert_closed(robot)
    with pytest.raises(pl.LoadError, match=r"<link1> has two origins; give one"):
        pl.load(bars(inner.replace('link="coupler"', 'link="coupler" xyz="2 0 0"')))


@pytest.mark.parametrize(
    ("closing", "said"),
    [
        (ends('pos="2 0 0"'), "<link1> has an attribute 'pos' that is not read; <link1> has link"),
        (
            ends('rpyy="0 0 1"'),
            "<link1> has an attribute 'rpyy' that is not read; did you mean 'rpy'",
        ),
        (ends(inside="<orgin/>"), "<orgin> in <loop_joint> is not read"),
        (
            ends().replace("loop_joint", "loop-joint"),
            "<loop-joint name='close'> in <robot> is not read; did you mean 'loop_joint'?",
        ),
    ],
)
def test_what_a_loop_joint_says_and_nobody_reads_is_reported(closing: str, said: str) -> None:
    (warning,) = pl.load(bars(closing)).warnings
    assert f"<text>:5: {said}" in warning


def test_the_two_link1_of_the_manual_of_isaac_sim() -> None:
    robot = pl.load(bars(ends().replace("link2", "link1")))
    assert robot.warnings == ()
    assert_closed(robot)


@pytest.mark.parametrize(("side", "axis"), [("parent", "0 0 1"), ("child", "0 1 0")])
def test_fusion_says_in_which_frame_the_axis_is(side: str, axis: str) -> None:
    # The rocker's frame is turned about x: its y axis is the z axis of the others.
    closing = (
        '<loop_joint name="close" type="revolute"><parent link="coupler"/><child link="rocker"/>'
        '<parent_origin xyz="2 0 0"/><child_origin xyz="0 0 -1"/>'
        f'<axis xyz="{axis}" frame="{side}"/></loop_joint>'
    )
    text = bars(closing, rocker="1.5707963267948966 0 0").replace(
        '<axis xyz="0 0 1"/></joint>\n<loop', '<axis xyz="0 1 0"/></joint>\n<loop'
    )
    robot = pl.load(text)
    assert robot.warnings == ()
    assert_closed(robot)
    with pytest.raises(pl.LoadError, match="frame 'top'; it must be parent or child"):
        pl.load(text.replace(f'frame="{side}"', 'frame="top"'))


def test_a_constraint_may_be_called_a_joint_and_have_no_name() -> None:
    closing = (
        '<constraint type="spherical_joint"><parent link="coupler"/><child link="rocker"/>'
        '<parent_origin xyz="2 0 0"/><child_origin xyz="0 1 0"/></constraint>'
    )
    robot = pl.load(bars(closing))
    assert robot.loops[0].name == "coupler-rocker"
    assert_closed(robot, "spherical")


def raisim(inside: str, nominal: str = "") -> str:
    return bars(f"<constraints {nominal}>{inside}</constraints>")


def test_a_pin_of_raisim_holds_where_the_nominal_configuration_has_it() -> None:
    pin = '<pin body1="coupler" body2="rocker" anchor="2 0 0"/>'
    assert_closed(pl.load(raisim(pin)), "spherical")
    # Depth first: the crank, the coupler on it, the rocker; a floating base comes before.
    nominal = np.array([0.4, -0.9, 0.2])
    for text in ("0.4 -0.9 0.2", "0 0 1 1 0 0 0 0.4 -0.9 0.2"):
        robot = pl.load(raisim(pin, f'nominal_config="{text}"'))
        q = robot.configuration(dict(zip(("j1", "j2", "j3"), nominal, strict=True)))
        np.testing.assert_allclose(pl.Constraints(robot, full=True).residual(q), 0, atol=1e-12)
    with pytest.raises(pl.LoadError, match="2 numbers in nominal_config; the robot has 3"):
        pl.load(raisim(pin, 'nominal_config="0 0"'))


@pytest.mark.parametrize("axes", [[(1, 2, 0)], [(1, 0, 0), (1, 1, 0)], [(0, 0, 1), (0, 3, 0.1)]])
def test_an_equality_of_raisim_holds_the_directions_of_its_axes(axes: list[Any]) -> None:
    lines = "".join(f'<axis xyz="{x} {y} {z}"/>' for x, y, z in axes)
    robot = pl.load(
        raisim(f'<equality body1="coupler" body2="rocker" anchor="2 0 0">{lines}</equality>')
    )
    rows = pl.Constraints(robot, full=True)
    held = np.linalg.qr(np.array(axes, dtype=float).T)[0]
    for angles in ((0.1, 0.2, 0.3), (-0.5, 1.0, 0.2)):
        q = robot.configuration(dict(zip(("j1", "j2", "j3"), angles, strict=True)))
        first, second = robot.placement(q, "coupler"), robot.placement(q, "rocker")
        gap = first.actInv(second.act(np.array([0.0, 1.0, 0.0]))) - np.array([2.0, 0.0, 0.0])
        expected = np.linalg.norm(held.T @ gap)
        assert np.linalg.norm(rows.residual(q)) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(pl.LoadError, match="an <equality> one or two"):
        pl.load(raisim('<equality body1="coupler" body2="rocker" anchor="2 0 0"/>'))


def drake(kind: str, first: str, second: str) -> str:
    tag = f"drake:{kind}_constraint"
    symbol = "X" if kind == "weld" else "p"
    return (
        f'<{tag}><{tag}_body_A name="coupler"/><{tag}_{symbol}_AP value="{first}"/>'
        f'<{tag}_body_B name="rocker"/><{tag}_{symbol}_BQ value="{second}"/></{tag}>'
    )


def test_the_constraints_of_drake() -> None:
    assert_closed(pl.load(bars(drake("ball", "2 0 0", "0 1 0"))), "spherical")
    robot = pl.load(bars(drake("weld", "2 0 0 0 0 0.3", "0 1 0 0 0 0.3")))
    (loop,) = robot.loops
    assert loop.pair.name == "fixed"
    np.testing.assert_allclose(
        pl.Constraints(robot, full=True).residual(robot.neutral), 0, atol=1e-12
    )
    # A parallelogram with a rigid corner does not move.
    assert pl.diagnose(robot).mobility == 0
    (warning,) = pl.load(bars("<drake:linear_bushing_rpy/>")).warnings
    assert "<drake:linear_bushing_rpy> in <robot> is not read" in warning


def test_a_world_that_is_not_declared_is_the_ground_and_other_roots_float() -> None:
    text = bars("").replace('<link name="base"/>', f'<link name="base">{MASS}</link>')
    floor = (
        '<link name="floor"/><joint name="weld" type="fixed"><parent link="world"/>'
        '<child link="floor"/></joint>'
    )
    robot = pl.load(text.replace("</robot>", f"{floor}</robot>"))
    assert robot.nv == 6 + 3
    (warning,) = robot.warnings
    assert "<link name='base'> has no parent and floats" in warning
    # The only root is the world: nothing floats, with floating_base neither.
    weld = '<joint name="w" type="fixed"><parent link="world"/><child link="base"/></joint></robot>'
    held = text.replace("</robot>", weld)
    assert pl.load(held).nv == 3
    with pytest.raises(pl.BadValue, match="no base"):
        pl.load(held, floating_base=True)


PLUGIN = (
    '<plugin filename="gz-sim-detachable-joint-system" name="gz::sim::systems::DetachableJoint">'
    "<parent_link>rocker</parent_link><child_model>{model}</child_model>"
    "<child_link>pin</child_link></plugin>"
)


def test_links_that_gazebo_welds_are_welded_in_the_pose_of_the_file() -> None:
    pin = f'<link name="pin">{MASS}</link>' + hinge("j4", "coupler", "pin", "2 0 0")
    for model in ("bars", "__model__"):
        robot = pl.load(bars(f"{pin}<gazebo>{PLUGIN.format(model=model)}</gazebo>"))
        assert robot.warnings == () and robot.loops[0].pair.name == "fixed"
        residual = pl.Constraints(robot, full=True).residual(robot.neutral)
        np.testing.assert_allclose(residual, 0, atol=1e-12)
        assert pl.diagnose(robot).mobility == 1
    other = pl.load(bars(f"{pin}<gazebo>{PLUGIN.format(model='cube')}</gazebo>"))
    assert other.loops == ()
    assert "attaches the model 'cube', which is not this robot" in other.warnings[0]


def test_links_and_joints_that_only_gazebo_knows() -> None:
    extra = """<gazebo><link name="nut"><pose>0.5 0.2 0.3 0 0 0</pose><inertial><mass>2</mass>
    <inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
    <joint name="slide" type="prismatic"><parent>base</parent><child>nut</child>
    <axis><xyz>1 0 0</xyz><limit><lower>0</lower><upper>1.79769e+308</upper></limit></axis></joint>
    <joint name="turn" type="screw"><parent>nut</parent><child>crank</child></joint></gazebo>"""
    robot = pl.load(bars(extra))
    assert "nut" in robot.bodies and robot.nv == 4
    np.testing.assert_allclose(
        robot.placement(robot.configuration({"slide": 0.1}), "nut").translation, (0.6, 0.2, 0.3)
    )
    index = robot.coordinates("slide").q
    limits = robot.model.lowerPositionLimit[index], robot.model.upperPositionLimit[index]
    assert limits == (0.0, np.inf)
    warning, rigid = robot.warnings
    assert "'turn' can be closed, but cannot move" in rigid
    assert "<joint name='turn'> has no <screw_thread_pitch>; SDF's default of 1 m/turn" in warning
    assert robot.loops[0].pair.parameters["pitch"] == pytest.approx(1 / (2 * np.pi))


def test_a_joint_that_is_dependent_on_nothing_is_reported() -> None:
    (warning,) = pl.load(bars("", more='independent="false"')).warnings
    assert "<joint name='j1'> is declared dependent" in warning
    assert "likewise 'j2', 'j3'" in warning
    assert pl.load(bars(ends(), more='independent="false"')).warnings == ()
    gear = (
        '<coupling name="c"><predecessor link="crank"/><successor link="rocker"/>'
        '<ratio value="2"/></coupling>'
    )
    (warning,) = pl.load(bars(gear, more='independent="false"')).warnings
    assert "<joint name='j2'> is declared dependent" in warning and "likewise" not in warning


@pytest.mark.parametrize(
    "closing",
    [
        '<loop_constraint name="c"><parent link="coupler"/><parent_origin xyz="2 0 0"/>'
        '<child link="rocker"/><child_origin xyz="0 1 0"/></loop_constraint>',
        '<constraint name="c" type="position"><predecessor link="coupler"><origin xyz="2 0 0"/>'
        '</predecessor><successor link="rocker"><origin xyz="0 1 0"/></successor></constraint>',
    ],
    ids=["loop_constraint", "position"],
)
def test_early_loops_of_urdf_plus_hold_two_points_together(closing: str) -> None:
    robot = pl.load(bars(closing, more='independent="false"'))
    assert robot.warnings == ()
    assert_closed(robot, "spherical")
    assert pl.diagnose(robot).mobility == 1


@pytest.mark.parametrize(
    "closing",
    [
        '<joint_constraint name="c"><parent link="crank"/><child link="rocker"/>'
        '<gear_ratio value="6"/></joint_constraint>',
        '<constraint name="c" type="rolling"><predecessor link="crank"/><successor link="rocker"/>'
        '<ratio value="6"/></constraint>',
    ],
    ids=["joint_constraint", "rolling"],
)
def test_early_couplings_of_urdf_plus_turn_the_second_link_by_the_ratio(closing: str) -> None:
    robot = pl.load(bars(closing))
    assert robot.warnings == () and robot.loops == ()
    q = robot.configuration({"j1": 0.1, "j2": 0.7, "j3": 0.6})
    np.testing.assert_allclose(pl.Constraints(robot).residual(q), 0, atol=1e-12)
    off = robot.configuration({"j1": 0.6, "j2": 0.7, "j3": 0.1})
    assert np.abs(pl.Constraints(robot).residual(off)).max() > 0.1


def test_slips_in_what_depends_and_in_inertias_are_reported() -> None:
    text = bars(ends(), more='independent="fasle"')
    (warning,) = pl.load(text).warnings
    assert "has independent 'fasle', which is neither true nor false" in warning
    (warning,) = pl.load(bars(ends()).replace(' iyy="0.1"', "")).warnings[:1]
    assert "<link name='crank'> has an inertia without iyy, taken as 0" in warning


def test_what_is_there_is_not_proposed_for_what_is_unknown() -> None:
    limit = '<limit velocity="1" gear_velocity="9"/></joint>'
    (warning,) = pl.load(bars(ends()).replace("</joint>", limit)).warnings
    assert "<limit> has an attribute 'gear_velocity' that is not read" in warning
    assert "did you mean" not in warning


def test_joint_properties_are_losses() -> None:
    text = bars("").replace("</joint>", '<joint_properties damping="0.5" friction="0.2"/></joint>')
    model = pl.load(text).model
    np.testing.assert_array_equal(model.damping, 0.5)
    np.testing.assert_array_equal(model.upperDryFrictionLimit, 0.2)


def test_slips_of_xml_that_other_readers_take() -> None:
    text = bars(ends()).replace("<link name=", "<!-- a -- b\n-- c --><link name=", 1)
    for late in (
        text,
        f'\n\n<?xml version="1.0"?>{text}',
        f'\n<?xml version="1.0"?>{text}'.encode(),
        f'<!-- of -- whom -->\n<!--?xml?-->\n<?xml version="1.0" ?>{text}',
    ):
        assert_closed(pl.load(late))
    broken = f'\n\n<?xml version="1.0"?>{text}'.replace("</robot>", "</robt>")
    line = broken.count("\n") + 1
    with pytest.raises(pl.LoadError, match=f"<text>:{line}: malformed XML: mismatched tag"):
        pl.load(broken)
    # What a CDATA section holds is no comment.
    inside = text.replace("</robot>", "<![CDATA[<!-- -->]]></robot>")
    assert_closed(pl.load(inside))


def test_commas_between_numbers_are_no_decimal_commas() -> None:
    robot = pl.load(bars(ends().replace("2 0 0", "2, 0, 0.0")))
    assert_closed(robot)
    for slip in ("2,0,0", "2,5 0 0", "2, 0"):
        with pytest.raises(pl.LoadError, match=r"list of numbers|where 3 are needed"):
            pl.load(bars(ends().replace("2 0 0", slip)))


def test_a_link_that_is_not_declared_is_named_with_line_and_likeness() -> None:
    with pytest.raises(
        pl.LoadError, match=r"<text>:3: <joint name='j2'> .* no link 'crnak'; did you"
    ):
        pl.load(bars("").replace('<parent link="crank"/>', '<parent link="crnak"/>'))


def test_xacro_is_expanded_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bars.urdf.xacro"
    macro = '<xacro:property name="long" value="2"/>'
    text = bars(ends()).replace(
        '<robot name="bars">', f'<robot name="bars" xmlns:xacro="x">{macro}'
    )
    path.write_text(text.replace('xyz="2 0 0"', 'xyz="${long} 0 0"'))

    class Expanded:
        """Stands for the package: the document without its macro."""

        def toprettyxml(self, indent: str) -> str:
            return text.replace(macro, "")

    class Package:
        @staticmethod
        def process_file(file: str) -> Expanded:
            if "lost" in file:
                raise ValueError("no such property\n'long'")
            return Expanded()

    monkeypatch.setitem(sys.modules, "xacro", Package)
    assert_closed(pl.load(path))
    lost = path.rename(tmp_path / "lost.urdf.xacro")
    with pytest.raises(pl.LoadError, match="cannot be expanded by xacro: no such property 'long'"):
        pl.load(lost)
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(pl.LoadError, match=r"install xacro \(pip install 'pinloop\[xacro\]'\)"):
        pl.load(lost)


def test_the_real_xacro(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    macro = '<xacro:property name="long" value="${1+1}"/>'
    text = bars(ends()).replace(
        '<robot name="bars">', f'<robot name="bars" xmlns:xacro="http://ros.org/wiki/xacro">{macro}'
    )
    path = tmp_path / "bars.urdf.xacro"
    path.write_text(text.replace('xyz="2 0 0"', 'xyz="${long} 0 0"'))
    assert_closed(pl.load(path))


def test_xacro_finds_packages_where_meshes_are_looked_for(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    parts = tmp_path / "spare parts" / "arm_parts"
    (parts / "urdf").mkdir(parents=True)
    (parts / "package.xml").write_text("<package/>")
    named = '<robot name="bars" xmlns:xacro="http://ros.org/wiki/xacro">'
    macro = '<xacro:property name="long" value="2"/>'
    (parts / "urdf" / "sizes.xacro").write_text(f"{named}{macro}</robot>")
    path = tmp_path / "bars.xacro"
    include = '<xacro:include filename="$(find arm_parts)/urdf/sizes.xacro"/>'
    text = bars(ends()).replace('<robot name="bars">', named + include)
    path.write_text(text.replace('xyz="2 0 0"', 'xyz="${long} 0 0"'))
    for folder in (parts, parts.parent):
        assert_closed(pl.load(path, package_dirs=folder))
    assert "ament_index_python.packages" not in sys.modules
    with pytest.raises(pl.LoadError, match="package 'arm_parts' is not found; name the folder"):
        pl.load(path)
    # Among the folders above that of the robot.
    assert_closed(pl.load(path.rename(parts / "urdf" / "bars.xacro")))


def test_values_of_a_file_do_not_part_its_warnings() -> None:
    text = "".join(
        f'<transmission name="t{k}"><joint name="j{k}"/><actuator name="m{k}">'
        f"<mechanicalReduction>1:{k}</mechanicalReduction></actuator></transmission>"
        for k in (1, 2, 3)
    )
    (warning,) = pl.load(bars(text), kinematics_only=True).warnings
    assert "<transmission name='t1'> has the reduction '1:1', which is no number" in warning
    assert warning.endswith("likewise 't2', 't3'")
