"""The tree of MJCF: bodies, joints, sites; what is not read; mistakes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.errors import LoadError
from pinloop.model.description import GROUND, Body, Description
from pinloop.model.mechanism import build

from .forward import about, joint_named, placements, shift, turn
from .mjcf_by_hand import MASS, model, read

Array = NDArray[np.float64]


def body(description: Description, name: str) -> Body:
    return next(body for body in description.bodies if body.name == name)


def same(T: Array, expected: Array) -> None:
    np.testing.assert_allclose(T, expected, atol=1e-12)


def quaternion(w: float, x: float, y: float, z: float) -> Array:
    """Rotation of a quaternion: about (x, y, z) by twice the angle that it makes with w."""
    return turn((x, y, z), 2 * np.arctan2(np.linalg.norm((x, y, z)), w))


def test_a_hinge_turns_about_its_axis_through_its_position() -> None:
    description = model(
        f"""<body name="a" pos="1 2 3" quat="0.8 0.6 0 0">{MASS}
        <joint name="j" pos="0.1 -0.2 0.3" axis="1 2 -2" range="-0.5 1.5"/></body>"""
    )
    start = shift((1, 2, 3)) @ quaternion(0.8, 0.6, 0, 0)
    for q in (0.0, 0.7, -2.0):
        expected = start @ about((0.1, -0.2, 0.3), (1, 2, -2), q)
        same(placements(description, {"j": q})["a"], expected)
    joint = joint_named(description, "j")
    assert joint.pair.name == "revolute" and joint.cut is False
    assert (joint.parent, joint.child) == (GROUND, "a")
    assert (joint.lower, joint.upper) == ((-0.5,), (1.5,))


def test_a_slide_moves_along_its_axis() -> None:
    description = model(
        f"""<body name="a" pos="1 0 0" axisangle="0 0 1 0.5">{MASS}
        <joint name="j" type="slide" axis="3 0 4" pos="9 9 9"/></body>"""
    )
    start = shift((1, 0, 0)) @ turn((0, 0, 1), 0.5)
    same(placements(description, {"j": 0.2})["a"], start @ shift((0.12, 0, 0.16)))


def test_joints_of_one_body_act_in_order_and_in_its_frame() -> None:
    description = model(
        f"""<body name="a" pos="0 0 1">{MASS}
        <joint name="h" axis="0 1 0" pos="0 0 0.5"/>
        <joint name="s" type="slide" axis="1 0 0"/>
        <joint name="b" type="ball" pos="0.3 0 0"/>
        <body name="c" pos="0 1 0">{MASS}<joint axis="1 0 0"/></body></body>"""
    )
    ball = turn((1, 1, 0), 0.4)
    chain = shift((0, 0, 1)) @ about((0, 0, 0.5), (0, 1, 0), 0.3) @ shift((0.2, 0, 0))
    found = placements(description, {"h": 0.3, "s": 0.2, "b": ball, "c_hinge": -0.6})
    last = chain @ about((0.3, 0, 0), (1, 1, 0), 0.4)
    same(found["a"], last)
    same(found["a@s"], chain)
    same(found["c"], last @ shift((0, 1, 0)) @ turn((1, 0, 0), -0.6))
    names = [body.name for body in description.bodies]
    assert names == ["a@h", "a@s", "a", "c"]
    assert all(body(description, name).mass == 0 for name in ("a@h", "a@s"))
    # They are not in the file, and nothing is to be said of them.
    assert not build(description).warnings


def test_ref_is_the_coordinate_of_the_initial_pose() -> None:
    description = model(
        f"""<body name="a" pos="1 0 0">{MASS}<joint name="h" axis="0 0 1" ref="0.4" range="0 1"/>
        <body name="b" pos="1 0 0">{MASS}<joint name="s" type="slide" axis="0 1 0" ref="-2"/>
        </body></body>"""
    )
    found = placements(description, {"h": 0.4, "s": -2.0})
    same(found["a"], shift((1, 0, 0)))
    same(found["b"], shift((2, 0, 0)))
    found = placements(description, {"h": 0.1, "s": 1.0})
    same(found["b"], shift((1, 0, 0)) @ turn((0, 0, 1), -0.3) @ shift((1, 3, 0)))
    joint = joint_named(description, "h")
    assert (joint.lower, joint.upper) == ((0.0,), (1.0,))
    assert any("'h', 's' have a ref" in warning for warning in description.warnings)


def test_a_free_body_floats_from_its_pose_in_the_file() -> None:
    description = model(
        f"""<body name="a" pos="1 2 3" quat="0 1 0 0"><freejoint name="f"/>{MASS}</body>
        <body name="b" pos="0 0 5"><joint type="free" damping="0.2"/>{MASS}</body>"""
    )
    start = shift((1, 2, 3)) @ turn((1, 0, 0), np.pi)
    moved = shift((0.1, 0.2, 0.3)) @ turn((0, 1, 0), 0.5)
    same(placements(description, {})["a"], start)
    same(placements(description, {"f": moved})["a"], start @ moved)
    assert joint_named(description, "f").pair.name == "free"
    assert joint_named(description, "b_free").damping == (0.2,) * 6
    assert joint_named(description, "b_free").parent == GROUND


def test_siblings_keep_their_order_and_axes_are_z_by_default() -> None:
    description = model(
        f"""<body name="a">{MASS}<body name="b">{MASS}<body name="c">{MASS}</body></body>
        <frame><body name="d">{MASS}<joint name="j"/></body><body name="e">{MASS}</body></frame>
        </body>"""
    )
    assert [body.name for body in description.bodies] == ["a", "b", "c", "d", "e"]
    same(placements(description, {"j": 0.3})["d"], turn((0, 0, 1), 0.3))


def test_bodies_without_joints_are_welded_and_all_roots_are_kept() -> None:
    description = model(
        f"""<body name="a" pos="1 0 0"><body pos="0 1 0">{MASS}</body></body>
        <body pos="0 0 2">{MASS}</body><site name="s" pos="1 1 1"/>"""
    )
    assert [body.name for body in description.bodies] == ["a", "body", "body_2"]
    assert [joint.pair.name for joint in description.joints] == ["fixed"] * 3
    found = placements(description, {})
    same(found["body"], shift((1, 1, 0)))
    same(found["body_2"], shift((0, 0, 2)))
    assert description.frames[0].body == GROUND


def test_angles_are_degrees_by_default() -> None:
    description = model(
        f"""<body name="a" axisangle="0 0 1 90">{MASS}
        <joint name="h" ref="30" range="-90 180" axis="1 0 0"/>
        <joint name="s" type="slide" ref="30" range="-90 180"/></body>""",
        before="",
    )
    hinge, slide = joint_named(description, "h"), joint_named(description, "s")
    np.testing.assert_allclose((*hinge.lower, *hinge.upper), (-np.pi / 2, np.pi))
    assert (slide.lower, slide.upper) == ((-90.0,), (180.0,))
    same(placements(description, {"h": np.pi / 6, "s": 30.0})["a"], turn((0, 0, 1), np.pi / 2))


def test_frames_move_what_they_hold() -> None:
    description = model(
        """<frame pos="1 0 0" axisangle="0 0 1 1"><frame pos="0 1 0"><body name="a" pos="0 0 1">
        <frame pos="0.5 0 0" axisangle="1 0 0 0.5"><joint name="j" pos="0 0 0.2" axis="0 1 0"/>
        <inertial pos="0 0.3 0" mass="2" diaginertia="1 2 3"/><site name="s" pos="0 0.1 0"/></frame>
        </body></frame></frame>"""
    )
    start = shift((1, 0, 0)) @ turn((0, 0, 1), 1.0) @ shift((0, 1, 1))
    inner = shift((0.5, 0, 0)) @ turn((1, 0, 0), 0.5)
    hinge = inner @ about((0, 0, 0.2), (0, 1, 0), 0.7) @ np.linalg.inv(inner)
    same(placements(description, {"j": 0.7})["a"], start @ hinge)
    same(description.frames[0].placement.homogeneous, inner @ shift((0, 0.1, 0)))
    R = inner[:3, :3]
    np.testing.assert_allclose(body(description, "a").com, (inner @ (0, 0.3, 0, 1))[:3])
    np.testing.assert_allclose(body(description, "a").inertia, R @ np.diag((1, 2, 3)) @ R.T)


def test_limits_need_a_range_and_permission() -> None:
    joints = """<joint name="auto" range="-1 2"/><joint name="empty" range="0 0"/>
        <joint name="off" range="-1 2" limited="false"/>
        <joint name="on" range="1 1" limited="true"/>
        <joint name="ball" type="ball" range="0 1"/>"""
    description = model(f"<body>{MASS}{joints}</body>")
    lower = {joint.name: joint.lower for joint in description.joints}
    assert lower == {"auto": (-1.0,), "empty": (), "off": (), "on": (1.0,), "ball": ()}
    assert any("limits the angle of a ball" in warning for warning in description.warnings)
    with pytest.raises(LoadError, match="autolimits is off"):
        model(f'<body>{MASS}<joint range="-1 2"/></body>', '<compiler autolimits="false"/>')
    with pytest.raises(LoadError, match="limited, but its range is not given"):
        model(f'<body>{MASS}<joint limited="true"/></body>')
    (warning,) = model(f'<body>{MASS}<joint type="ball" limited="true"/></body>').warnings
    assert "limits the angle of a ball" in warning
    assert model(f'<body>{MASS}<joint type="ball" limited="false"/></body>').warnings == ()


def test_a_body_called_ground_is_not_the_world() -> None:
    description = read(
        f"""<mujoco><worldbody><body name="ground"><freejoint name="f"/>{MASS}</body>
        <body name="b">{MASS}</body></worldbody>
        <equality><weld body1="b" body2="ground"/></equality></mujoco>"""
    )
    assert [body.name for body in description.bodies] == ["ground_body", "b"]
    (warning,) = description.warnings
    assert warning == "body 'ground' is called 'ground_body' here, as that is the world"
    assert (description.joints[-1].parent, description.joints[-1].child) == ("b", "ground_body")


def test_what_joins_soft_parts_is_left_out_with_them() -> None:
    soft = '<composite type="cable" count="9 1 1"><geom type="capsule"/></composite>'
    text = f"""<mujoco><worldbody><body name="a">{MASS}</body>{{soft}}</worldbody>
        <equality><weld body1="B_last" body2="a"/></equality></mujoco>"""
    description = read(text.format(soft=soft))
    assert not any(joint.cut for joint in description.joints)
    assert "<weld> joins what is soft; it is left out" in description.warnings[-1]
    with pytest.raises(LoadError, match="names the body 'B_last', which does not exist"):
        read(text.format(soft=""))


def test_springs_and_odd_damping_are_said_not_to_be_read() -> None:
    description = model(
        f"""<body>{MASS}<joint name="a" stiffness="3"/><joint name="b" axis="1 0 0"
        springdamper="1 1"/><joint name="c" axis="0 1 0" damping="1 2 0"/></body>
        <body>{MASS}<joint damping="1 0 0"/></body>"""
    )
    warnings = "\n".join(description.warnings)
    assert "robot.xml: the springs of joints 'a', 'b' are not read" in warnings
    assert "robot.xml:2: <joint name='c'> has damping that is not linear" in warnings
    assert len(description.warnings) == 2
    assert joint_named(description, "c").damping == (1.0,)


def test_sites_are_frames() -> None:
    description = model(
        f"""<body name="a">{MASS}<site name="tip" pos="1 0 0" axisangle="0 0 1 0.5"/><site/>
        <site name="a"/><site name="rod" type="capsule" size="0.1" fromto="1 0 1 1 0 0"/></body>"""
    )
    frames = {frame.name: frame for frame in description.frames}
    assert list(frames) == ["tip", "a_site", "rod"]
    same(frames["tip"].placement.homogeneous, shift((1, 0, 0)) @ turn((0, 0, 1), 0.5))
    # z points from the second point of fromto to the first.
    same(frames["rod"].placement.homogeneous, shift((1, 0, 0.5)))
    assert any("it is called '<name>_site'" in warning for warning in description.warnings)


def test_what_is_not_read_is_said_once_with_file_and_line() -> None:
    description = read(
        f"""<mujoco><option wind="1 0 0" density="0"/><visual/><statistic/><size/><sensor/>
<keyframe><key/></keyframe><keyframe/>
<tendon><spatial/></tendon>
<contact/><deformable/>
<worldbody><body name="b" mocap="true" gravcomp="1" color="red">{MASS}<camera/>
<flexcomp/><flexcomp rigid="true"/></body><light/><geom type="plane" size="0 0 1"/></worldbody>
</mujoco>"""
    )
    expected = [
        "robot.xml:1: <option> has wind",
        "robot.xml:4: <deformable> holds soft bodies",
        "robot.xml:5: <body name='b'> has an attribute 'color'",
        "robot.xml:5: <body name='b'> is moved by motion capture",
        "robot.xml:5: <body name='b'> has gravcomp",
        "robot.xml:6: <flexcomp> is soft; it is left out with its mass",
    ]
    assert len(description.warnings) == len(expected)
    for start in expected:
        assert sum(warning.startswith(start) for warning in description.warnings) == 1, start


def test_chains_may_be_long() -> None:
    count = 1500
    text = "".join(f"<body><joint/>{MASS}" for _ in range(count)) + "</body>" * count
    assert len(model(text).bodies) == count


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (f'<body>{MASS}<joint class="arn"/></body>', "default class 'arn', which is not defined"),
        (f'<body>{MASS}<joint axis="0 0 0"/></body>', "zero axis"),
        (f'<body>{MASS}<joint type="screw"/></body>', "type 'screw'; it must be one of: hinge"),
        (f'<body quat="1 0 0">{MASS}</body>', "3 numbers where 4 are needed"),
        (f'<body quat="1 0 0 0" euler="0 0 0">{MASS}</body>', "has both quat and euler"),
        (f'<body>{MASS}<joint range="2 1" limited="true"/></body>', "must be the smaller one"),
        ('<body><inertial mass="1"/></body>', "needs an attribute 'pos'"),
        ('<body><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>', "mass -1.0 kg"),
        (f'<body name="a">{MASS}</body><body name="a">{MASS}</body>', "already taken"),
        (f'<body name="world">{MASS}</body>', "means the world"),
        (f"<body>{MASS}{MASS}</body>", "second one of its body"),
        (f"<body>{MASS}<freejoint/><joint/></body>", "can have no other joint"),
        (f"<body>{MASS}<body>{MASS}<freejoint/></body></body>", "not a child of the world"),
        (f"<joint/><body>{MASS}</body>", "only a <body> can have one"),
        (f'<frame scale="2"><body>{MASS}</body></frame>', "scales its contents"),
        ("", "has no <body>"),
    ],
)
def test_mistakes_name_file_and_line(bodies: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)) as caught:
        model(f"\n{bodies}\n")
    if bodies:
        assert (caught.value.source, caught.value.line) == ("robot.xml", 2)


def test_bodies_that_are_in_no_file_are_not_blamed() -> None:
    hinges = '<joint axis="0 1 0"/><joint axis="0 1 0"/>'
    text = f'<mujoco><worldbody><body name="a">{hinges}{{}}</body></worldbody></mujoco>'
    for inside, said in ((MASS, "without mass or inertia"), ("", "link 'a' lacks mass or inertia")):
        robot = pl.load(text.format(inside))
        with pytest.raises(pl.PinloopError, match=said) as error:
            pl.simulate(robot, robot.neutral, until=0.1)
        assert "a@" not in str(error.value)
