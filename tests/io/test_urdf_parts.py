"""What a URDF says besides links and joints: mimics, motors, frames, shapes, unknown elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.errors import LoadError

from .urdf_by_hand import INERTIAL, joint, link, pose, robot, two_joints


@pytest.mark.parametrize(
    ("attributes", "ratio", "offset"),
    [('multiplier="-2" offset="0.3"', -2.0, 0.3), ('offset="0.3"', 1.0, 0.3), ("", 1.0, 0.0)],
)
def test_a_mimic_joint_is_a_coupling_and_follows(
    attributes: str, ratio: float, offset: float
) -> None:
    loaded = pl.load(two_joints(f'<mimic joint="j" {attributes}/>'))
    assert loaded.actuated == ("j",)
    constraints = pl.Constraints(loaded)
    assert len(constraints) == 1
    for q in ([0.7, ratio * 0.7 + offset], [-0.2, ratio * -0.2 + offset]):
        np.testing.assert_allclose(constraints.residual(q), [0.0], atol=1e-15)
    assert abs(constraints.residual([0.7, ratio * 0.7 + offset + 0.01])[0]) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("text", "still"),
    [
        (two_joints('<mimic joint="none"/>'), "mimics 'none', which does not move"),
        (two_joints('<mimic joint="j"/>', kind="fixed"), "mimics 'j', which does not move"),
        (
            two_joints(kind="fixed").replace("</joint>", '<mimic joint="k"/></joint>', 1),
            "<joint name='j'> does not move",
        ),
    ],
)
def test_a_mimic_joint_without_partner_is_left_out_with_a_warning(text: str, still: str) -> None:
    loaded = pl.load(text)
    assert loaded.couplings == ()
    (warning,) = (w for w in loaded.warnings if "mimic" in w)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "<mimic" in row)
    assert f"<text>:{line}:" in warning and still in warning


TRANSMISSIONS: list[tuple[str, float, float | None]] = [
    ('<transmission name="t"><joint name="j"/><actuator name="m">'
     "<mechanicalReduction>50</mechanicalReduction></actuator></transmission>", 50.0, None),
    ('<transmission name="t"><joint name="j"><mechanicalReduction>-7.5</mechanicalReduction>'
     '</joint><actuator name="m"/></transmission>', -7.5, None),
    ('<transmission name="t"><joint name="j"/><mechanicalReduction>3</mechanicalReduction>'
     "</transmission>", 3.0, None),
    ('<transmission name="t"><joint name="j"/></transmission>', 1.0, None),
    ('<ros2_control name="c" type="system"><transmission name="t"><plugin>p</plugin>'
     '<joint name="j"><mechanical_reduction>30</mechanical_reduction></joint></transmission>'
     "</ros2_control>", 30.0, None),
    ('<transmission name="t"><joint name="j"/><actuator name="m"><drake:gear_ratio value="40"/>'
     '<drake:rotor_inertia value="0.001"/></actuator></transmission>', 40.0, 0.001),
]  # fmt: skip


@pytest.mark.parametrize(("block", "reduction", "rotor"), TRANSMISSIONS)
def test_a_transmission_says_who_drives_and_with_which_gear(
    block: str, reduction: float, rotor: float | None
) -> None:
    loaded = pl.load(two_joints(extra=block))
    assert loaded.actuated == ("j",)
    drive = loaded.drives["j"]
    assert (drive.reduction, drive.rotor_inertia) == (reduction, rotor)
    assert loaded.model.rotorGearRatio[0] == reduction
    # The rotor turns `reduction` times as fast: the joint feels its inertia by the square.
    assert loaded.model.armature[0] == pytest.approx(reduction**2 * (rotor or 0.0))
    assert loaded.model.armature[1] == 0


def test_control_interfaces_name_the_motors() -> None:
    control = (
        '<ros2_control name="c" type="system"><joint name="k"><command_interface name="effort"/>'
        '</joint><joint name="j"><state_interface name="position"/></joint></ros2_control>'
    )
    assert pl.load(two_joints(extra=control)).actuated == ("k",)
    plus = two_joints().replace('<joint name="k"', '<joint independent="True" name="k"')
    assert pl.load(plus).actuated == ("k",)
    assert pl.load(two_joints()).actuated == ("j", "k")


@pytest.mark.parametrize(
    "block",
    [
        '<transmission name="t"><joint name="none"/></transmission>',
        '<ros2_control name="c"><joint name="none"><command_interface name="x"/></joint>'
        "</ros2_control>",
    ],
)
def test_a_motor_on_a_joint_that_is_not_there_is_warned_of(block: str) -> None:
    loaded = pl.load(two_joints(extra=block))
    assert loaded.drives == {} and loaded.actuated == ("j", "k")
    (warning,) = (w for w in loaded.warnings if "'none'" in w)
    assert "<text>:7:" in warning


def test_named_frames_of_our_own() -> None:
    frame = '<frame name="tool" link="q" xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
    loaded = pl.load(two_joints(extra=frame))
    q = [0.3, -0.8]
    expected = loaded.placement(q, "q") * pose((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    np.testing.assert_allclose(
        loaded.placement(q, "tool").homogeneous, expected.homogeneous, atol=1e-15
    )


def test_a_root_called_ground_is_the_world() -> None:
    text = two_joints().replace('"base"', '"ground"')
    assert pl.load(text).bodies == ("p", "q")
    assert pl.load(text).placement([0.0, 0.0], "ground").isIdentity()


SHAPES = [
    ('<box size="1 2 3"/>', "box", (1, 2, 3)),
    ('<sphere radius="0.5"/>', "sphere", (0.5,)),
    ('<cylinder radius="0.5" length="2"/>', "cylinder", (0.5, 2)),
    ('<capsule radius="0.5" length="2"/>', "capsule", (0.5, 2)),
    ('<ellipsoid radii="1 2 3"/>', "ellipsoid", (1, 2, 3)),
]


@pytest.mark.parametrize(("shape", "kind", "size"), SHAPES)
@pytest.mark.parametrize("role", ["visual", "collision"])
def test_shapes_are_kept(role: str, shape: str, kind: str, size: tuple[float, ...]) -> None:
    inside = (
        f'<{role}><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry>{shape}</geometry></{role}>'
        f"<{role}><geometry>{shape}</geometry></{role}>"
    )
    first, second = pl.load(robot(link("base", inside))).geometry
    assert (first.body, first.role) == ("base", role)
    assert (first.shape.kind, first.shape.size) == (kind, size)
    expected = pose((1, 2, 3), (0.1, 0.2, 0.3)).homogeneous
    np.testing.assert_allclose(first.placement.homogeneous, expected, atol=1e-15)
    assert second.placement.isIdentity() and second.name != first.name
    assert first.color is None


def test_colors_come_from_the_visual_or_by_name() -> None:
    def visual(material: str) -> str:
        return f'<visual><geometry><sphere radius="1"/></geometry>{material}</visual>'

    red = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
    blue = '<material name="own"><color rgba="0 0 1 1"/></material>'
    inside = visual('<material name="red"/>') + visual(blue) + visual('<material name="own"/>')
    inside += visual('<material name="none"/>') + visual("")
    colors = [shape.color for shape in pl.load(robot(link("base", inside), red)).geometry]
    assert colors == [(1, 0, 0, 0.5), (0, 0, 1, 1), (0, 0, 1, 1), None, None]
    # A colour of its own counts, even under a name that means another one.
    other = '<material name="red"><color rgba="0 1 0 1"/></material>'
    unnamed = '<material><color rgba="0.1 0.2 0.3 1"/></material>'
    inside = visual(other) + visual(unnamed)
    inside += visual('<material name="red"><color rgba="1 1 0 1"/></material>')
    colors = [shape.color for shape in pl.load(robot(link("base", inside), red)).geometry]
    assert colors == [(0, 1, 0, 1), (0.1, 0.2, 0.3, 1), (1, 1, 0, 1)]


def test_meshes_are_looked_up_and_a_missing_one_is_no_failure(tmp_path: Path) -> None:
    def mesh(name: str, scale: str = "") -> str:
        return f'<visual><geometry><mesh filename="{name}" {scale}/></geometry></visual>\n'

    (tmp_path / "part.stl").write_bytes(b"solid")
    inside = mesh("part.stl", 'scale="1 -1 0.001"') + mesh("part.stl") + mesh("lost.stl")
    (tmp_path / "r.urdf").write_text(robot(link("base", inside)))
    loaded = pl.load(tmp_path / "r.urdf")
    first, second = loaded.geometry
    assert first.shape.path == (tmp_path / "part.stl").resolve()
    assert (first.shape.size, second.shape.size) == ((1, -1, 0.001), (1, 1, 1))
    (warning,) = loaded.warnings
    assert (
        warning.startswith("r.urdf:4:")
        and "looked in the folder" in warning
        and "'lost.stl' not found" in warning
    )


UNKNOWN = [
    ("<robot>", two_joints(extra="<wheel/>"), "wheel", 7),
    ("<link>", two_joints().replace("<inertial>", "<motor/><inertial>", 1), "motor", 3),
    ("<joint>", two_joints("<spring/>"), "spring", 6),
    (
        "<visual>",
        robot(link("base", '<visual>\n<geometry><box size="1 1 1"/></geometry><glow/></visual>')),
        "glow",
        3,
    ),
    ("<inertial>", two_joints().replace("<mass", "<density/><mass", 1), "density", 3),
    (
        "<loop_joint>",
        two_joints(
            extra='<loop_joint name="l" type="fixed"><link1 link="p"/><link2 link="base"/>'
            "<rubber/></loop_joint>"
        ),
        "rubber",
        7,
    ),
]


@pytest.mark.parametrize(
    ("parent", "text", "tag", "line"), UNKNOWN, ids=[case[0] for case in UNKNOWN]
)
def test_an_element_that_is_not_understood_is_named(
    parent: str, text: str, tag: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(text)
    warning, *rigid = pl.load(path).warnings
    assert len(rigid) == (parent == "<loop_joint>")  # a fixed loop cannot move
    assert warning.startswith(f"odd.urdf:{line}:") and f"<{tag}>" in warning and parent in warning


def test_what_is_known_to_say_nothing_of_mechanics_is_silent() -> None:
    silent = (
        '<material name="m"/><gazebo reference="p"><material>x</material></gazebo>'
        '<gazebo><plugin name="p"/></gazebo>'
    )
    assert pl.load(two_joints("<safety_controller/><calibration/>", silent)).warnings == ()


def test_a_shape_that_is_not_known_is_left_out_with_a_warning() -> None:
    for inside, said in (
        ("<visual><geometry><torus/></geometry></visual>", "<torus>"),
        ("<visual><geometry/></visual>", "no geometry"),
        ("<collision/>", "no geometry"),
    ):
        loaded = pl.load(robot(link("base", inside)))
        assert loaded.geometry == ()
        (warning,) = loaded.warnings
        assert "<text>:2:" in warning and said in warning, warning


def test_a_robot_without_a_name_is_one_still() -> None:
    loaded = pl.load(robot(link("base", "")).replace('name="robot"', ""))
    assert loaded.name == "robot" and any("no name" in warning for warning in loaded.warnings)
    assert pl.load(robot(link("base", ""), name="arm")).name == "arm"


def test_masses_of_links_that_do_not_move_are_optional() -> None:
    still = robot(link("base", ""), link("tip", ""), joint("j", "base", "tip", "fixed"))
    assert pl.load(still).warnings == ()
    light = two_joints().replace(INERTIAL, "", 1)
    (warning,) = pl.load(light).warnings
    assert "link 'p' moves but has no mass" in warning


def branching(coupling: str, kind: str = "continuous") -> str:
    """Chain t, a1, a2 to link q and branch b1, b2 off t to link s; w is welded to q."""
    return robot(
        *(link(name) for name in ("base", "t", "p", "q", "r", "s", "w")),
        joint("t", "base", "t"),
        joint("a1", "t", "p"),
        joint("a2", "p", "q"),
        joint("b1", "t", "r", kind),
        joint("b2", "r", "s"),
        joint("on_q", "q", "w", "fixed"),
        coupling,
    )


COUPLED = [
    ("p", "r", 2.0, {"a1": 1.0, "b1": 2.0}),
    ("p", "r", -0.5, {"a1": 1.0, "b1": -0.5}),
    # Angles add up on the way from t, which both have in common.
    ("q", "s", 3.0, {"a1": 0.4, "a2": -0.1, "b1": 1.0, "b2": -0.1}),
    ("w", "s", 3.0, {"a1": 0.4, "a2": -0.1, "b1": 1.0, "b2": -0.1}),
    # t carries p: the angle of t over itself is zero.
    ("t", "p", 5.0, {"a1": 0.0}),
    ("base", "t", 5.0, {"t": 0.0}),
    ("p", "base", 1.0, {"t": 0.3, "a1": -0.3}),
]


@pytest.mark.parametrize(("first", "second", "ratio", "values"), COUPLED)
def test_a_coupled_successor_turns_by_the_ratio(
    first: str, second: str, ratio: float, values: dict[str, float]
) -> None:
    text = (
        f'<coupling name="c"><predecessor link="{first}"/><successor link="{second}"/>'
        f'<ratio value="{ratio}"/></coupling>'
    )
    loaded = pl.load(branching(text))
    constraints = pl.Constraints(loaded)
    assert len(constraints) == 1
    q = loaded.configuration(values)
    np.testing.assert_allclose(constraints.residual(q), 0, atol=1e-15)
    for name in loaded.joints:
        # Every joint of the two ways matters, and no other.
        moved = loaded.configuration({name: q[loaded.coordinates(name).q] + 0.1}, q)
        assert (abs(constraints.residual(moved)[0]) > 1e-3) == (name in values), name


def test_the_successor_follows_and_the_predecessor_leads() -> None:
    text = (
        '<coupling name="c"><predecessor link="p"/><successor link="r"/><ratio value="2"/>'
        "</coupling>"
    )
    assert pl.load(branching(text)).actuated == ("t", "a1", "a2", "b2")
    slide = pl.load(branching(text, "prismatic"))
    q = slide.configuration({"a1": 0.2, "b1": 0.4})
    np.testing.assert_allclose(pl.Constraints(slide).residual(q), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("count", "others"),
    [
        (1, ""),
        (2, "; likewise 'package://kit/1.stl'"),
        (
            9,
            "; likewise "
            + ", ".join(f"'package://kit/{k}.stl'" for k in range(1, 7))
            + " and 2 more",
        ),
    ],
)
def test_meshes_that_lack_together_are_one_warning(tmp_path: Path, count: int, others: str) -> None:
    shapes = "".join(
        f'<visual><geometry><mesh filename="package://kit/{k}.stl"/></geometry></visual>\n'
        for k in range(count)
    )
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r">\n<link name="base">\n{shapes}</link></robot>')
    (warning,) = pl.load(path).warnings
    assert warning == (
        f"r.urdf:3: mesh 'package://kit/0.stl' not found; left out{others}; name the folder that "
        "holds the package 'kit' with package_dirs, on the command line with --package-dir"
    )


def test_folders_of_packages_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text('<robot name="r"><link name="base"/></robot>')
    with pytest.raises(pl.LoadError, match=r"lost: no such folder for packages"):
        pl.load(path, package_dirs=tmp_path / "lost")
    with pytest.raises(pl.LoadError, match=r"lost: no such folder for packages"):
        pl.load(path, package_dirs=[tmp_path, tmp_path / "lost"])


def test_an_inertial_without_a_mass_has_none() -> None:
    inertia = '<inertia ixx="2" iyy="2" izz="3" ixy="0" ixz="0" iyz="0"/>'
    text = two_joints().replace(INERTIAL, f"<inertial>{inertia}</inertial>", 1)
    loaded = pl.load(text)
    body = next(body for body in loaded.description.bodies if body.name == "p")
    assert body.mass == 0
    np.testing.assert_array_equal(body.inertia, np.diag([2.0, 2.0, 3.0]))
    assert any("has an <inertial> without <mass>, taken as 0" in w for w in loaded.warnings)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ('<mesh filename="a.stl" scale="1 1 1 1"/>', "4 numbers where 3 are needed"),
        ('<box size="a b c"/>', "not a list of numbers"),
        ("<sphere/>", "needs an attribute 'radius'"),
    ],
)
@pytest.mark.parametrize("role", ["visual", "collision"])
def test_a_shape_that_is_wrong_stops_nothing(
    role: str, shape: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "a.stl").touch()
    part = f"<{role}><geometry>{shape}</geometry></{role}>"
    (tmp_path / "r.urdf").write_text(robot(link("a", part) + link("b") + joint("j", "a", "b")))
    loaded = pl.load(tmp_path / "r.urdf")
    assert loaded.model.nv == 1 and not loaded.description.geometry
    assert any(f"<{role}> is left out: " in w and problem in w for w in loaded.warnings)


@pytest.mark.parametrize(
    ("inertia", "warned"),
    [('ixy="0.1" iyx="0.1"', False), ('ixy="0.1" iyx="0.2"', True), ('ixy="0.1"', False)],
)
def test_a_moment_that_is_given_twice(inertia: str, warned: bool) -> None:
    tensor = f'<inertia ixx="1" iyy="1" izz="1" ixz="0" iyz="0" {inertia}/>'
    text = two_joints().replace(INERTIAL, f'<inertial><mass value="1"/>{tensor}</inertial>', 1)
    loaded = pl.load(text)
    assert any(body.inertia[0, 1] == 0.1 for body in loaded.description.bodies)
    assert any("iyx" in warning for warning in loaded.warnings) == warned


@pytest.mark.parametrize(("xyz", "warned"), [("0 0 0", False), ("0 0 0.1", True)])
def test_an_origin_of_a_link_says_nothing_where_it_is_zero(xyz: str, warned: bool) -> None:
    text = robot(
        link("a") + link("b", f'<origin xyz="{xyz}" rpy="0 -0 0"/>') + joint("j", "a", "b")
    )
    assert any("<origin>" in warning for warning in pl.load(text).warnings) == warned


def test_the_angle_of_a_ball_joint_is_limited_by_nobody() -> None:
    limit = '<limit lower="0.2" upper="0.8" effort="100" velocity="1"/>'
    ball = '<joint name="j" type="spherical"><parent link="a"/><child link="b"/>' + limit
    loaded = pl.load(robot(link("a") + link("b") + ball + "</joint>"))
    assert loaded.model.nv == 3
    (warning,) = (w for w in loaded.warnings if "limits" in w)
    assert "<joint name='j'> limits the angle of a ball joint, which is not read" in warning


def one_joint(limit: str = "", origin: str = "") -> str:
    """A slider k whose elements `<limit>` and `<origin>` are written out."""
    ends = '<parent link="base"/><child link="p"/>'
    slider = f'<joint name="k" type="prismatic">{ends}<limit {limit}/><origin {origin}/></joint>'
    return robot(link("base", ""), link("p"), slider)


@pytest.mark.parametrize(
    ("slip", "mended"),
    [
        ({"limit": 'lower="-1.57." upper="1"'}, {"limit": 'lower="-1.57" upper="1"'}),
        ({"origin": 'rpy="0.1 0.2 0.3 0"'}, {"origin": 'rpy="0.1 0.2 0.3"'}),
        ({"origin": 'xyz="0.1 .2. 3 4 5"'}, {"origin": 'xyz="0.1 .2 3"'}),
    ],
)
def test_slips_with_one_meaning_are_mended_with_a_warning(
    slip: dict[str, str], mended: dict[str, str]
) -> None:
    loaded, right = pl.load(one_joint(**slip)), pl.load(one_joint(**mended))
    assert sum("which is read as" in warning for warning in loaded.warnings) == 1
    assert not any("which is read as" in warning for warning in right.warnings)
    (joint,), (other,) = loaded.description.joints, right.description.joints
    assert (joint.lower, joint.upper) == (other.lower, other.upper)
    np.testing.assert_array_equal(joint.frame_parent.homogeneous, other.frame_parent.homogeneous)


@pytest.mark.parametrize("slip", ["1..5", "1.5.2", "1,5.", "1.5.x", "x.5."])
def test_other_slips_are_refused(slip: str) -> None:
    with pytest.raises(LoadError, match="is not a number"):
        pl.load(one_joint(f'lower="{slip}" upper="3"'))


def test_an_expression_of_xacro_is_no_number() -> None:
    with pytest.raises(LoadError, match="expression of xacro: run xacro on the file"):
        pl.load(one_joint(origin='xyz="$(optenv WHERE 0.19 0 0.149)"'))
