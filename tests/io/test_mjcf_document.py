"""The grammar of MJCF: orientations, default classes, includes, options."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import pinloop as pl
from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.formats import make_resolver
from pinloop.io.mjcf.reader import read_mjcf

from .forward import joint_named, placements, shift, turn
from .mjcf_by_hand import MASS, model, read

Array = NDArray[np.float64]


def same(T: Array, expected: Array) -> None:
    np.testing.assert_allclose(T, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('quat="2 0 0 2"', turn((0, 0, 1), np.pi / 2)),
        ('axisangle="0 3 0 0.3"', turn((0, 1, 0), 0.3)),
        ('euler="0.1 0.2 0.3"', None),
        ('xyaxes="0 1 0 -1 5 0"', turn((0, 0, 1), np.pi / 2)),
        ('zaxis="1 0 1"', turn((0, 1, 0), np.pi / 4)),
        ('zaxis="0 1 1"', turn((1, 0, 0), -np.pi / 4)),
        ('zaxis="0 0 -2"', turn((1, 0, 0), np.pi)),
        ("", np.eye(4)),
    ],
)
def test_orientations(attributes: str, expected: Array | None) -> None:
    if expected is None:
        expected = turn((1, 0, 0), 0.1) @ turn((0, 1, 0), 0.2) @ turn((0, 0, 1), 0.3)
    description = model(f'<body name="a" pos="1 2 3" {attributes}>{MASS}</body>')
    same(placements(description, {})["a"], shift((1, 2, 3)) @ expected)


@pytest.mark.parametrize("sequence", ["zyx", "XYZ", "xYz", "ZxZ"])
def test_euler_sequences(sequence: str) -> None:
    R = np.eye(4)
    for letter, angle in zip(sequence, (30, -40, 50), strict=True):
        step = turn(np.eye(3)["xyz".index(letter.lower())], np.radians(angle))
        R = R @ step if letter.islower() else step @ R
    description = model(
        f'<body name="a" euler="30 -40 50">{MASS}</body>', f'<compiler eulerseq="{sequence}"/>'
    )
    same(placements(description, {})["a"], R)


DEFAULTS = f"""<mujoco><compiler angle="radian"/><default>
  <joint damping="1" axis="1 0 0"/>
  <default class="arm"><joint armature="2" frictionloss="0.5"/><geom type="box" size="1 1 1"/>
    <default class="hand"><joint damping="3"/></default></default>
  <default class="leg"><joint range="-1 1" type="slide"/></default>
</default><default class="main"><joint armature="7"/></default><worldbody>
<body><joint name="top"/>{MASS}</body>
<body childclass="arm"><joint name="in_arm"/>{MASS}<geom/>
  <body><joint name="below" damping="9"/>{MASS}<joint name="own" class="leg"/>
    <body childclass="hand"><joint name="in_hand"/>{MASS}
    <frame childclass="leg"><body><joint name="in_frame"/>{MASS}</body></frame></body></body></body>
</worldbody></mujoco>"""


def test_default_classes() -> None:
    description = read(DEFAULTS)
    expected = {
        # name: (pair, damping, armature, friction)
        "top": ("revolute", (1.0,), (7.0,), ()),
        "in_arm": ("revolute", (1.0,), (2.0,), (0.5,)),
        "below": ("revolute", (9.0,), (2.0,), (0.5,)),
        "own": ("prismatic", (1.0,), (), ()),
        "in_hand": ("revolute", (3.0,), (2.0,), (0.5,)),
        "in_frame": ("prismatic", (1.0,), (), ()),
    }
    for name, values in expected.items():
        joint = joint_named(description, name)
        assert (joint.pair.name, joint.damping, joint.armature, joint.friction) == values, name
        np.testing.assert_array_equal(joint.frame_child.rotation[:, 2], (1, 0, 0))
    assert joint_named(description, "own").lower == (-1.0,)
    assert description.geometry[0].shape.kind == "box"


def test_an_own_orientation_replaces_that_of_the_class() -> None:
    description = read(
        f"""<mujoco><default><site euler="0 90 0" pos="0 0 1"/><default class="c">
        <site zaxis="0 -1 0"/></default></default><worldbody><body>{MASS}
        <site name="own" quat="1 1 0 0"/><site name="class"/><site name="nested" class="c"/>
        </body></worldbody></mujoco>"""
    )
    own, inherited, nested = (frame.placement.homogeneous for frame in description.frames)
    same(nested, own)
    same(own, shift((0, 0, 1)) @ turn((1, 0, 0), np.pi / 2))
    same(inherited, shift((0, 0, 1)) @ turn((0, 1, 0), np.pi / 2))


def test_a_plain_model_gives_no_warnings() -> None:
    assert read(DEFAULTS).warnings == ()
    assert read(DEFAULTS).actuated is None


def test_includes_are_found_beside_the_file_that_includes_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "arm.xml").write_text('<x><include file="hand.xml"/></x>')
    (tmp_path / "sub" / "hand.xml").write_text(f'<x><body name="hand">{MASS}</body></x>')
    text = '<mujoco><worldbody><include file="sub/arm.xml"/></worldbody></mujoco>'
    (tmp_path / "robot.xml").write_text(text)

    def bodies() -> list[str]:
        return [body.name for body in pl.load(tmp_path / "robot.xml").description.bodies]

    assert bodies() == ["hand"]
    # The folder of the main file goes first.
    (tmp_path / "hand.xml").write_text(f'<x><body name="other">{MASS}</body></x>')
    assert bodies() == ["other"]


def test_includes_are_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "arm.xml").write_text(
        f'<x><body name="arm">{MASS}<joint class="c"/><include file="hand.xml"/></body></x>'
    )
    (tmp_path / "hand.xml").write_text(
        f'<x><body name="hand" pos="0 0 1">{MASS}</body><body name="cup"/></x>'
    )
    (tmp_path / "defaults.xml").write_text(
        '<mujocoinclude><default class="c"><joint damping="4"/></default></mujocoinclude>'
    )
    text = """<mujoco model="two files"><default><include file="defaults.xml"/></default><worldbody>
        <include file="sub/arm.xml"/><body name="last"/></worldbody></mujoco>"""
    description = read(text, tmp_path)
    assert description.name == "two files"
    assert [body.name for body in description.bodies] == ["arm", "hand", "cup", "last"]
    assert joint_named(description, "hand_fixed").parent == "arm"
    assert joint_named(description, "arm_hinge").damping == (4.0,)
    (tmp_path / "hand.xml").write_text('<x><include file="hand.xml"/></x>')
    with pytest.raises(LoadError, match=r"hand.xml:1: .* a second time"):
        read(text, tmp_path)
    (tmp_path / "hand.xml").unlink()
    with pytest.raises(LoadError, match=r"arm.xml:1: .*'hand.xml', which does not exist"):
        read(text, tmp_path)


def test_names_of_files_are_relative_to_the_directory(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(f'<x><body name="a">{MASS}</body></x>')
    root = parse_xml('<mujoco><worldbody><include file="a.xml"/></worldbody></mujoco>', "m.xml")
    description = read_mjcf(root, resolve=make_resolver(tmp_path))
    assert description.bodies[0].name == "a"


def gravity(options: str) -> ArrayLike:
    return model(f"<body>{MASS}</body>", options).gravity


def test_gravity() -> None:
    np.testing.assert_array_equal(gravity(""), (0, 0, -9.81))
    np.testing.assert_array_equal(gravity('<option gravity="1 2 3"/>'), (1, 2, 3))
    off = '<option gravity="1 2 3"/><option><flag gravity="disable"/></option>'
    np.testing.assert_array_equal(gravity(off), (0, 0, 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot/>", "must be <mujoco>"),
        ('<mujoco><compiler coordinate="global"/></mujoco>', "global coordinates"),
        ('<mujoco><compiler eulerseq="xyw"/></mujoco>', "three letters"),
        ('<mujoco><compiler angle="grad"/></mujoco>', "angle 'grad'; it must be one of"),
        ("<mujoco><default><default/></default></mujoco>", "needs an attribute 'class'"),
        (
            '<mujoco><default><default class="a"/><default class="a"/></default></mujoco>',
            "'a' a second time",
        ),
    ],
)
def test_mistakes_in_the_document(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        read(text)
