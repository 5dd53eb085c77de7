"""`<replicate>` and `<attach>` of MJCF."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.errors import LoadError
from pinloop.model.description import GROUND, Description

from . import mjcf_by_hand
from .forward import placements, shift, turn
from .mjcf_by_hand import MASS


def read(text: str, directory: Path | None = None) -> Description:
    return mjcf_by_hand.read(f"<mujoco>{text}</mujoco>", directory)


def names(description: Description) -> list[str]:
    return [body.name for body in description.bodies]


def test_replicas_stand_one_step_after_another() -> None:
    description = read(
        f"""<worldbody><replicate count="3" offset="1 0 0" euler="0 0 90" sep="-">
        <body name="a" pos="0 2 0">{MASS}<joint name="j"/><site name="s"/></body></replicate>
        </worldbody>"""
    )
    assert names(description) == ["a-0", "a-1", "a-2"]
    assert [joint.name for joint in description.joints] == ["j-0", "j-1", "j-2"]
    assert [frame.name for frame in description.frames] == ["s-0", "s-1", "s-2"]
    step = shift((1, 0, 0)) @ turn((0, 0, 1), np.pi / 2)
    found = placements(description, {})
    for k in range(3):
        expected = np.linalg.matrix_power(step, k) @ shift((0, 2, 0))
        np.testing.assert_allclose(found[f"a-{k}"], expected, atol=1e-12)
    ten = read(
        f'<worldbody><replicate count="10"><body name="a">{MASS}</body></replicate></worldbody>'
    )
    assert names(ten)[:2] == ["a00", "a01"]


def test_what_refers_to_replicas_is_replicated() -> None:
    """As `MjSpec.to_xml` of MuJoCo 4.0.0 shows it, where equalities that reach out are gone."""
    description = read(
        f"""<worldbody><body name="base">{MASS}<joint name="jb"/></body>
        <replicate count="2" sep="_"><body name="a">{MASS}<joint name="ja"/>
        <replicate count="2"><body name="b">{MASS}<joint name="j2"/></body></replicate>
        <body name="c">{MASS}<joint name="jc"/></body></body></replicate></worldbody>
        <tendon><fixed name="t"><joint joint="ja" coef="1"/><joint joint="jb" coef="2"/></fixed>
        </tendon><equality><connect name="in" body1="a" body2="c" anchor="0 0 0"/>
        <connect name="out" body1="a" body2="base" anchor="0 0 0"/>
        <connect name="world" body1="b" body2="world" anchor="0 0 0"/>
        <joint name="jj" joint1="ja" joint2="jc"/><tendon name="tt" tendon1="t"/></equality>
        <actuator><motor joint="j2"/><motor joint="jb"/></actuator>"""
    )
    assert names(description) == [
        "base",
        *(f"{n}_{k}" for k in (0, 1) for n in ("a", "b0", "b1", "c")),
    ]
    loops = [joint for joint in description.joints if joint.cut]
    assert [(loop.name, loop.parent, loop.child) for loop in loops] == [
        ("in_0", "a_0", "c_0"),
        ("in_1", "a_1", "c_1"),
        *((f"world{n}_{k}", f"b{n}_{k}", GROUND) for n in (0, 1) for k in (0, 1)),
    ]
    assert [(row.name, row.joints) for row in description.couplings] == [
        ("jj_0", ("ja_0", "jc_0")),
        ("jj_1", ("ja_1", "jc_1")),
        ("tt_0", ("ja_0", "jb")),
        ("tt_1", ("ja_1", "jb")),
    ]
    assert set(description.actuated or ()) == {"jb", "j20_0", "j21_0", "j20_1", "j21_1"}
    (left_out,) = description.warnings
    assert "<connect name='out'> joins what a <replicate> copies with something else" in left_out


def test_a_part_of_the_model_is_attached_once_more() -> None:
    description = read(
        f"""<default><default class="k"><joint damping="3"/></default></default>
        <worldbody><body childclass="k"><body name="a" pos="0 0 2">{MASS}<joint name="ja"/>
        <body name="b">{MASS}<joint name="jb"/></body></body>{MASS}</body>
        <body name="base">{MASS}<frame pos="0 1 0"><attach body="a" prefix="p_"/></frame></body>
        </worldbody><equality><joint name="jj" joint1="ja" joint2="jb"/></equality>
        <actuator><motor joint="ja"/></actuator>"""
    )
    assert names(description)[1:] == ["a", "b", "base", "p_a", "p_b"]
    np.testing.assert_allclose(placements(description, {})["p_a"], shift((0, 1, 2)))
    assert [row.joints for row in description.couplings] == [("ja", "jb"), ("p_ja", "p_jb")]
    assert description.actuated == ("ja", "p_ja")
    assert all(j.damping == (3.0,) for j in description.joints if j.pair.name == "revolute")


MISSING = '<mesh name="m" file="box.stl"/>'
HAND = f"""<mujoco model="hand"><compiler angle="radian" settotalmass="50"/>
<default><joint damping="2"/><default class="k"><geom size="0.3"/></default></default>
<asset>{MISSING}<model name="tip" file="tip.xml"/></asset>
<worldbody><geom name="plate" type="box" size="1 1 0.1" density="1"/><site name="sw" pos="1 0 0"/>
<body name="palm" pos="0 0 2" euler="0.5 0 0">{MASS}<joint name="j1" axis="0 1 0"/>
  <site name="sp" pos="0 0 1"/>
  <body name="finger" pos="1 0 0"><joint name="j2" ref="0.1"/><geom class="k" density="1"/>
    <attach model="tip" prefix="t_"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon>
<equality><connect name="w" body1="finger" anchor="0 0 0"/><weld name="ss" site1="sw" site2="sp"/>
<joint name="jj" joint1="j1" joint2="j2"/><tendon name="tt" tendon1="t"/></equality>
<actuator><motor name="m" joint="j1"/></actuator></mujoco>"""
TIP = f"""<mujoco model="t"><compiler angle="degree"/><worldbody>
<body name="tip" euler="90 0 0">{MASS}<joint name="j3" range="-90 90"/></body></worldbody>
</mujoco>"""


def arm(tmp_path: Path, attach: str, rest: str = "") -> Description:
    (tmp_path / "hands").mkdir(exist_ok=True)
    (tmp_path / "hands" / "hand.xml").write_text(HAND)
    (tmp_path / "hands" / "tip.xml").write_text(TIP)
    return read(
        f"""<asset><model name="hand" file="hands/hand.xml"/></asset><worldbody>
        <body name="base" pos="3 0 0"><geom size="0.1" mass="5"/><joint name="jb"/>
        <frame pos="0 1 0" euler="0 0 90"><attach model="hand" {attach}/></frame></body></worldbody>
        {rest}""",
        tmp_path,
    )


def test_a_model_is_attached_with_the_settings_of_its_own_file(tmp_path: Path) -> None:
    description = arm(
        tmp_path,
        'prefix="r_"',
        '<equality><joint name="own" joint1="jb" joint2="r_j2"/></equality>',
    )
    assert names(description) == ["base", "r_palm", "r_finger", "r_t_tip"]
    joints = {joint.name: joint for joint in description.joints}
    assert [joints[name].damping for name in ("jb", "r_j1", "r_t_j3")] == [(), (2.0,), ()]
    np.testing.assert_allclose(joints["r_t_j3"].upper, np.pi / 2)
    at = shift((3, 1, 0)) @ turn((0, 0, 1), np.pi / 2)
    palm = at @ shift((0, 0, 2)) @ turn((1, 0, 0), 0.5)
    found = placements(description, {"r_j2": 0.1})
    np.testing.assert_allclose(found["r_palm"], palm, atol=1e-12)
    tip = palm @ shift((1, 0, 0)) @ turn((1, 0, 0), np.pi / 2)
    np.testing.assert_allclose(found["r_t_tip"], tip, atol=1e-12)
    # The plate weighs 2 x 2 x 0.2 kg on the base; the total of the attached file does not count.
    base, palm_body = description.bodies[:2]
    np.testing.assert_allclose((base.mass, palm_body.mass), (5.8, 1.0))
    np.testing.assert_allclose(base.com, np.array((0, 1, 0)) * 0.8 / 5.8, atol=1e-12)
    world = joints["r_w"]
    assert (world.parent, world.child) == ("r_finger", GROUND)
    np.testing.assert_allclose(world.frame_child.translation, found["r_finger"][:3, 3], atol=1e-12)
    sites = joints["r_ss"]
    assert (sites.parent, sites.child) == ("base", "r_palm")
    np.testing.assert_allclose(sites.frame_parent.translation, (0, 2, 0), atol=1e-12)
    assert [row.name for row in description.couplings] == ["own", "r_jj", "r_tt"]
    assert description.actuated == ("r_j1",)


def test_a_body_of_a_model_is_attached_alone(tmp_path: Path) -> None:
    description = arm(tmp_path, 'body="finger" prefix="r_"')
    assert names(description) == ["base", "r_finger", "r_t_tip"]
    at = shift((3, 1, 0)) @ turn((0, 0, 1), np.pi / 2) @ shift((1, 0, 0))
    found = placements(description, {"r_j2": 0.1})
    np.testing.assert_allclose(found["r_finger"], at, atol=1e-12)
    assert [joint.name for joint in description.joints if joint.cut] == ["r_w"]
    assert not description.couplings and description.actuated is None
    np.testing.assert_allclose(description.bodies[0].mass, 5.0)


def test_a_scene_attaches_a_robot_that_floats(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(
        f"""<mujoco model="r"><worldbody><body name="a">{MASS}<freejoint/></body></worldbody>
        </mujoco>"""
    )
    scene = """<mujoco><asset><model file="r.xml"/></asset><worldbody><attach model="r" prefix=""/>
        {}</worldbody></mujoco>"""
    (tmp_path / "scene.xml").write_text(scene.format(""))
    assert pl.load(tmp_path / "scene.xml").nv == 6
    inside = f'<body name="b">{MASS}<attach model="r" prefix="y"/></body>'
    (tmp_path / "scene.xml").write_text(scene.format(inside))
    with pytest.raises(LoadError, match="is free, but the model it is in is attached to the body"):
        pl.load(tmp_path / "scene.xml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<replicate count="0"/>', "whole number above 0"),
        ('<replicate count="2.5"/>', "whole number above 0"),
        ('<replicate count="1000000"/>', "copies of more than 200000 elements"),
        ('<attach prefix="p"/>', "needs an attribute 'frame'"),
        ('<attach body="x" prefix="p"/>', "names the body 'x', which does not exist"),
        ('<attach body="z"/>', "needs an attribute 'prefix'"),
        (f'<body name="a">{MASS}<attach body="a" prefix="p"/></body>', "which it copies"),
        ('<attach body="z" prefix=""/>', "already taken"),
        ('<attach body="z" frame="f" prefix="p"/>', "both a body and a frame"),
        ('<attach model="x" prefix="p"/>', "names the model 'x', which is not among the assets"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        read(f'<worldbody><body name="z">{MASS}</body>{text}</worldbody>')


def test_copies_of_copies_are_bounded() -> None:
    text = f'<body name="b0">{MASS}</body>'
    for k in range(30):
        pair = "".join(f'<attach body="b{k}" prefix="{side}"/>' for side in "lr")
        text += f'<body name="b{k + 1}">{MASS}{pair}</body>'
    with pytest.raises(LoadError, match="copies of more than 200000 elements"):
        read(f"<worldbody>{text}</worldbody>")


def test_a_model_does_not_attach_itself(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(
        f"""<mujoco model="r"><asset><model file="r.xml"/></asset><worldbody>
        <body name="a">{MASS}<attach model="r" prefix="p"/></body></worldbody></mujoco>"""
    )
    with pytest.raises(LoadError, match=r"attaches 'r\.xml' inside itself"):
        pl.load(tmp_path / "r.xml")
