"""SRDF: passive joints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.companions import apply_srdf
from pinloop.model.description import Description
from pinloop.model.pairs import make_pair

from .by_hand import open_chain, revolute

SRDF = """\
<robot name="chain">
  <virtual_joint name="anchor" type="fixed" parent_frame="world" child_link="base"/>
  <group name="arm"><joint name="elbow"/></group>
  <passive_joint name="anchor"/>
  <passive_joint name="wrist"/>
  <disable_collisions link1="crank" link2="rocker" reason="Never"/>
</robot>
"""


def apply(description: Description, text: str = SRDF) -> Description:
    return apply_srdf(description, parse_xml(text, "chain.srdf"))


def test_all_others_are_actuated() -> None:
    chain = open_chain()
    ball = replace(revolute("ball", "rocker", "hand"), pair=make_pair("spherical"))
    weld = replace(revolute("weld", "rocker", "plate"), pair=make_pair("fixed"))
    loop = revolute("loop", "base", "rocker", cut=True)
    free = revolute("free", "base", "rocker", cut=None)
    robot = apply(replace(chain, joints=(*chain.joints, ball, weld, loop, free)))
    assert robot.actuated == ("shoulder", "elbow", "free")
    assert robot.warnings == ()


def test_passive_joints_leave_the_actuated_ones() -> None:
    robot = apply(replace(open_chain(), actuated=("wrist", "shoulder")))
    assert robot.actuated == ("shoulder",)


def test_an_srdf_without_passive_joints_changes_nothing() -> None:
    chain = open_chain()
    assert apply(chain, "<robot><group name='a'/></robot>").actuated is None
    known = replace(chain, actuated=("wrist",), warnings=("before",))
    robot = apply(known, "<robot/>")
    assert robot.actuated == ("wrist",) and robot.warnings == ("before",)


def test_unknown_joint_is_a_warning() -> None:
    text = '<robot>\n  <passive_joint name="wirst"/>\n</robot>'
    robot = apply(open_chain(), text)
    assert robot.actuated is None
    assert robot.warnings == (
        "chain.srdf:2: <passive_joint name='wirst'> names a joint that the robot does not have; "
        "left out",
    )


def test_passive_joint_without_a_name() -> None:
    with pytest.raises(LoadError, match=r"chain.srdf:2: <passive_joint> needs an attribute 'name'"):
        apply(open_chain(), "<robot>\n<passive_joint/></robot>")
