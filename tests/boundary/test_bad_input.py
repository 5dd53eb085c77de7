"""Mistakes a user makes: each is refused with the element, the value and, in a file, the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import pinloop as pl

from ..io.every_format import LOOPS, SCREWS, URDF, URDF_TREE
from ..io.urdf_by_hand import INERTIAL, inertial, joint, link, pair_of_arms, robot, two_joints


def loop(text: str) -> str:
    """A robot with one more element, in line 11."""
    return pair_of_arms(text)


def loop_joint(kind: str = "revolute", link2: str = "s", inside: str = "", more: str = "") -> str:
    return loop(
        f'<loop_joint name="l" type="{kind}" {more}>{inside}<link1 link="q"/>'
        f'<link2 link="{link2}"/></loop_joint>'
    )


def massive(values: str) -> str:
    """Two joints, and the inertial of the last link with other values."""
    text = two_joints()
    at = text.rindex(INERTIAL)
    return text[:at] + values + text[at + len(INERTIAL) :]


SPHERE = np.diag([1.0, 1.0, 1.0])

BAD_LINKS: list[tuple[str, tuple[str, ...]]] = [
    (loop_joint(link2="z"), ("<loop_joint name='l'>", "no link 'z'", "known:")),
    (loop('<loop name="l" type="fixed"><predecessor link="q"/><successor link="z"/></loop>'),
     ("<text>:11:", "<loop name='l'>", "'z'")),
    (loop('<constraint name="l" type="fixed"><parent link="z"/><child link="s"/></constraint>'),
     ("<text>:11:", "<constraint name='l'>", "'z'")),
    (loop('<gazebo><joint name="l" type="fixed"><parent>z</parent><child>s</child></joint>'
          "</gazebo>"), ("<text>:11:", "<joint name='l'>", "'z'")),
    (loop('<drake:ball_constraint name="l"><drake:ball_constraint_body_A name="z"/>'
          '<drake:ball_constraint_p_AP value="0 0 0"/><drake:ball_constraint_body_B name="s"/>'
          '<drake:ball_constraint_p_BQ value="0 0 0"/></drake:ball_constraint>'),
     ("<text>:11:", "<drake:ball_constraint name='l'>", "'z'")),
    (loop('<coupling name="l"><predecessor link="z"/><successor link="s"/><ratio value="1"/>'
          "</coupling>"), ("<text>:11:", "<coupling name='l'>", "'z'")),
    (loop('<frame name="tool" link="z"/>'), ("'tool'", "'z'")),
    (loop_joint(link2="q"), ("joint 'l'", "'q'", "itself")),
    (two_joints().replace('<parent link="p"/>', '<parent link="z"/>'),
     ("<text>:6:", "<joint name='k'>", "no link 'z'")),
    (two_joints().replace('<child link="q"/>', '<child link="p"/>'), ("root links", "'q'")),
    (loop('<coupling name="l"><predecessor link="q"/><successor link="q"/><ratio value="1"/>'
          "</coupling>"), ("<text>:11:", "<coupling name='l'>", "do not move")),
]  # fmt: skip

BAD_AXES: list[tuple[str, tuple[str, ...]]] = [
    (two_joints().replace('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0 0 0"/>'),
     ("<text>:6:", "zero axis (0, 0, 0)")),
    (loop_joint(inside='<axis xyz="0 0 0"/>'), ("<text>:11:", "zero axis")),
    (loop_joint(inside='<axis xyz="0 1e-12 0"/>'), ("<text>:11:", "zero axis", "1e-12")),
    (loop_joint("universal"), ("<text>:11:", "<loop_joint name='l'>", "<axis2>")),
    (two_joints().replace('"continuous" ', '"universal" ', 1), ("<text>:5:", "<axis2>")),
    (two_joints('<axis2 xyz="0 1 1"/>').replace('name="k" type="continuous"',
                                              'name="k" type="universal"'),
     ("<text>:6:", "<joint name='k'>", "perpendicular")),
    (loop_joint("wobbly"), ("<text>:11:", "<loop_joint name='l'>", "'wobbly'",
                            "known pairs: cylindrical,", "point_on_plane")),
    (two_joints(kind="wobbly"), ("<text>:5:", "<joint name='j'>", "'wobbly'", "known pairs")),
    (loop_joint("helical"), ("<text>:11:", "<loop_joint name='l'>", "pitch")),
    (loop_joint("rod"), ("<text>:11:", "<loop_joint name='l'>", "length")),
    (loop_joint("rod", more='length="-2"'), ("<text>:11:", "<loop_joint name='l'>", "-2")),
    (two_joints(kind="rod").replace('type="rod"', 'type="rod" length="1"'), ("'j'", "rod")),
]  # fmt: skip

BAD_MASSES: list[tuple[str, tuple[str, ...]]] = [
    (massive(inertial(-2, SPHERE)), ("<text>:4:", "<link name='q'>", "mass -2.0 kg; it must not")),
    (massive('<inertial><mass value="heavy"/></inertial>'), ("<text>:4:", "<mass>", "'heavy'")),
    (massive('<inertial><mass/></inertial>'), ("<text>:4:", "<mass>", "'value'")),
]  # fmt: skip

BAD_TOPOLOGY: list[tuple[str, tuple[str, ...]]] = [
    (robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
     ("<text>:1:", "cycle", "'j'", "'k'", "<loop_joint>")),
    (robot(link("r"), link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
     ("'a'", "'b'", "'j'")),
    (robot(link("r", ""), link("a", ""), link("b", ""), joint("j", "a", "b", "fixed"),
           joint("k", "b", "a", "fixed"), '<coupling name="c"><predecessor link="a"/>'
           '<successor link="r"/><ratio value="1"/></coupling>'), ("'c'",)),
    (robot(link("a"), link("b")), ("<text>:1:", "2 root links", "'a'", "'b'")),
    (two_joints().replace('"q"', '"p"'), ("<text>:3:", "<link name='p'>", "twice")),
    (two_joints().replace('"k"', '"j"'), ("'j'", "unique")),
    (loop_joint().replace('name="l"', 'name="a2"'), ("'a2'", "unique")),
    (loop('<frame name="f" link="p"/><frame name="f" link="q"/>'), ("'f'", "unique")),
    (loop('<frame name="l/A" link="p"/><loop_joint name="l" type="fixed"><link1 link="q"/>'
          '<link2 link="s"/></loop_joint>'), ("'l/A'",)),
    (two_joints('<mimic joint="k"/>'), ("'k:mimic'", "different joints")),
]  # fmt: skip

BAD_NUMBERS: list[tuple[str, tuple[str, ...]]] = [
    (URDF.replace('xyz="2 0 0" rpy', 'xyz="2 nan 0" rpy'), ("<origin>", "'2 nan 0'", "not finite")),
    (URDF.replace('xyz="2 0 0" rpy', 'xyz="2 1e400 0" rpy'), ("'2 1e400 0'", "not finite")),
    (URDF.replace('xyz="2 0 0" rpy', 'xyz="2 1e200 0" rpy'), ("<origin>", "1e200")),
    (URDF.replace('xyz="2 0 0" rpy', 'xyz="2 0" rpy'), ("'2 0'", "2 numbers where 3")),
    (URDF.replace('xyz="2 0 0" rpy', 'xyz="two 0 0" rpy'), ("'two 0 0'", "not a list of numbers")),
    (URDF.replace('lower="-2"', 'lower="nan"', 1), ("<limit>", "'nan'", "lower")),
    (URDF.replace('lower="-2"', 'lower="low"', 1), ("<limit>", "'low'", "lower")),
    (URDF.replace('damping="0.1"', 'damping="-0.1"', 1), ("<text>:7: joint 'j1'", "damping -0.1;")),
    (URDF.replace('damping="0.1"', 'damping="1 2"', 1), ("joint 'j1'", "2 values of damping")),
    (URDF.replace(">50<", ">0<"), ("joint 'j1'", "reduction 0.0")),
    (two_joints('<mimic joint="j" multiplier="much"/>'), ("<text>:6:", "<mimic>", "'much'")),
    (two_joints(extra='<frame name="f" link="p" quat_xyzw="0 0 0 0"/>'),
     ("<text>:7:", "<frame name='f'>", "zero quaternion")),
    (URDF.replace('type="revolute"', 'type="revolute" coordinates="polar"', 1),
     ("<joint name='j1'>", "'polar'", "circle")),
    (robot(link("a"), '<material name="m"><color rgba="1 0 0"/></material>'),
     ("<text>:3:", "<color>", "'1 0 0'")),
]  # fmt: skip

BAD_XML: list[tuple[str, tuple[str, ...]]] = [
    (URDF.replace("</link>", "</lnk>", 1), ("<text>:4:", "malformed XML", "mismatched tag")),
    (URDF.replace("<parent ", "<parent & ", 1), ("<text>:9:", "malformed XML")),
    (two_joints().replace('name="p"', ""), ("<text>:3:", "<link>", "'name'")),
    (two_joints().replace('<child link="q"/>', ""), ("<text>:6:", "<joint name='k'>", "<child>")),
    (two_joints().replace('type="continuous"', ""), ("<text>:5:", "<joint name='j'>", "'type'")),
    (loop('<loop_joint name="l" type="fixed"><link1 link="q"/></loop_joint>'),
     ("<text>:11:", "<loop_joint name='l'>", "<link2>")),
    (loop('<loop_joint type="fixed"><link1 link="q"/><link2 link="s"/></loop_joint>'),
     ("<text>:11:", "<loop_joint>", "'name'")),
    (loop('<coupling name="c"><predecessor link="q"/><successor link="s"/></coupling>'),
     ("<text>:11:", "<coupling name='c'>", "<ratio>")),
]  # fmt: skip

ALL = [*BAD_LINKS, *BAD_AXES, *BAD_MASSES, *BAD_TOPOLOGY, *BAD_NUMBERS, *BAD_XML]


@pytest.mark.parametrize(("text", "said"), ALL, ids=[" ".join(said) for _, said in ALL])
def test_a_urdf_with_a_mistake_is_refused_by_name(text: str, said: tuple[str, ...]) -> None:
    with pytest.raises(pl.LoadError) as caught:
        pl.load(text)
    for words in ("<text>", *said):
        assert words in str(caught.value)


ODD: list[tuple[str, tuple[str, ...]]] = [
    (massive(""), ("link 'q' moves but has no mass",)),
    (massive(inertial(0, 0 * SPHERE)), ("link 'q' moves but has no mass",)),
    (massive(inertial(1, np.diag([1, 1, -0.5]))), ("link 'q'", "not positive definite", "-0.5")),
    (massive(inertial(1, np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]]))),
     ("link 'q'", "not positive definite", "principal moments -1, 1, 3")),
    (massive(inertial(1, 0 * SPHERE)), ("link 'q'", "not positive definite")),
    (two_joints().replace('"j"', '"universe"'), ("joint 'universe' is called 'universe_joint'",)),
    (URDF.replace('lower="-2"', 'lower="5"', 1), ("<joint name='j1'>", "lower limit above")),
    (URDF.replace('effort="40"', 'effort="-40"', 1), ("<joint name='j1'>", "negative effort")),
    (URDF.replace('velocity="3"', 'velocity="-3"', 1), ("<joint name='j1'>", "negative velocity")),
    (URDF.replace(">50<", ">fast<"), ("<transmission", "'fast'", "1 is taken")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), ODD, ids=[" ".join(said) for _, said in ODD])
def test_what_other_tools_take_is_warned_of(text: str, said: tuple[str, ...]) -> None:
    (warning,) = pl.load(text).warnings
    for words in said:
        assert words in warning


def test_the_file_is_named_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(BAD_AXES[0][0])
    with pytest.raises(pl.LoadError, match="zero axis") as caught:
        pl.load(path)
    assert str(caught.value).startswith(f"{path}:6: ")
    assert (caught.value.source, caught.value.line) == (str(path), 6)


BAD_YAML = [
    ("pair: revolute", "pair: wobbly", ("loops[0].pair", "'wobbly'", "known pairs: cylindrical,")),
    ("axis: [0, 0, 1]", "axis: [0, 0, 0]", ("loops[0].axis", "[0, 0, 0]", "zero")),
    ("axis: [0, 0, 1]", "axis: [0, .nan, 1]", ("loops[0].axis", "nan", "finite")),
    ("body: coupler", "body: copler", ("loop 'close'", "'copler'", "did you mean 'coupler'")),
    ("body: rocker", "body: coupler", ("loop 'close'", "'coupler'", "itself")),
    ("source: j1", "source: j9", ("coupling 'gear'", "'j9'")),
    ("ratio: 1.0", "ratio: fast", ("couplings[0].ratio", "'fast'")),
    ("name: cam", "name: gear", ("'gear'", "twice")),
    ("name: close", "name: j1", ("'j1'", "twice")),
    ("actuated: [j1]", "actuated: [j7]", ("actuated", "'j7'")),
    ("reduction: 50", "reduction: 0", ("drives.j1.reduction", "0")),
    ("gravity: [0, 0, -9.81]", "gravity: [0, 0]", ("gravity",)),
    ("gravity:", "gravty:", ("gravty", "did you mean 'gravity'?")),
]


@pytest.mark.parametrize(("old", "new", "said"), BAD_YAML, ids=[new for _, new, _ in BAD_YAML])
def test_a_loops_file_with_a_mistake_is_refused_by_name(
    old: str, new: str, said: tuple[str, ...], tmp_path: Path
) -> None:
    assert old in LOOPS
    path = tmp_path / "bars.loops.yaml"
    path.write_text(LOOPS.replace(old, new, 1))
    with pytest.raises(pl.LoadError) as caught:
        pl.load(URDF_TREE, loops=path)
    for words in (str(path), *said):
        assert words in str(caught.value)


def test_malformed_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bars.loops.yaml"
    for broken, line in ((LOOPS.replace("[0, 0, 1]", "[0, 0, 1", 1), 6), (LOOPS + "\t- x\n", 15)):
        path.write_text(broken)
        with pytest.raises(pl.LoadError, match="malformed YAML") as caught:
            pl.load(URDF_TREE, loops=path)
        assert caught.value.line == line and str(caught.value).startswith(f"{path}:{line}: ")


BAD_SCREWS = [
    ("mass: 1.5", "mass: -1.5", ("bodies[0].mass", "-1.5")),
    ("    mass: 1.5\n", "", ("bodies[0]", "has com and inertia, but no mass")),
    ("inertia: [[0.1,", "inertia: [[-0.1,", ("bodies[0].inertia", "negative")),
    ("inertia: [[0.1,", "inertia: [[0.9,", ("bodies[0].inertia", "triangle inequality")),
    ("axis: [0, 0, 1], point: [0, 0, 0]", "axis: [0, 0, 0], point: [0, 0, 0]",
     ("joints[0].axis", "zero")),
    ("parent: crank", "parent: krank", ("joint 'j2'", "'krank'", "did you mean 'crank'")),
    ("pair: revolute", "pair: wobbly", ("joints[0].pair", "'wobbly'", "known pairs")),
    ("name: crank\n", "name: rocker\n", ("'rocker'", "twice")),
    ("{name: j2", "{name: j1", ("'j1'", "twice")),
    ("com: [0,", "com: [.inf,", ("bodies[0].com", "inf", "finite")),
    ("ground, child: crank", "crank, child: crank", ("joints[0]", "'crank'", "itself")),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), BAD_SCREWS, ids=[new for _, new, _ in BAD_SCREWS])
def test_a_screw_table_with_a_mistake_is_refused_by_name(
    old: str, new: str, said: tuple[str, ...]
) -> None:
    assert old in SCREWS
    broken = SCREWS.replace(old, new, 1)
    for source in (broken, yaml.safe_load(broken)):
        with pytest.raises(pl.LoadError) as caught:
            pl.load(source)
        for words in said:
            assert words in str(caught.value)


BAD_Q: list[tuple[Any, tuple[str, ...]]] = [
    ([0.0, 0.0], ("'bars'", "3 numbers, not 2")),
    (np.zeros(4), ("'bars'", "3 numbers, not 4")),
    (np.zeros((3, 1)), ("shape (3, 1)",)),
    ([0.0, np.nan, 0.0], ("not finite at index 1",)),
    ("straight", ("'straight'",)),
    ([None, 1, 2], ("not finite at index 0",)),
    ({"j1": 1.0}, ("'bars'", "array, not a table of joints", "robot.configuration")),
]


@pytest.mark.parametrize(("q", "said"), BAD_Q, ids=[said[0] for _, said in BAD_Q])
def test_a_configuration_that_does_not_fit_is_refused(q: Any, said: tuple[str, ...]) -> None:
    loaded = pl.load(URDF)
    constraints = pl.Constraints(loaded)
    for use in (constraints.residual, constraints.jacobian, lambda q: loaded.placement(q, "crank")):
        with pytest.raises(pl.BadValue) as caught:
            use(q)
        for words in said:
            assert words in str(caught.value)


def test_names_that_the_robot_does_not_have_are_refused_with_the_nearest() -> None:
    loaded = pl.load(URDF)
    with pytest.raises(pl.UnknownName, match=r"no joint 'j11' in robot 'bars'; did you mean"):
        loaded.configuration({"j11": 1.0})
    with pytest.raises(pl.UnknownName, match=r"no body or frame 'crnk'.*'crank'"):
        loaded.placement(loaded.neutral, "crnk")
    with pytest.raises(pl.BadValue, match=r"joint 'close' .*closes a loop"):
        loaded.configuration({"close": 1.0})


def test_a_joint_that_closes_a_loop_may_be_coupled() -> None:
    """A mimic on the second parent of a link: the same robot, wherever its loop is cut."""
    text = robot(
        *(link(name) for name in "abc"),
        joint("j", "a", "b"),
        joint("k", "a", "c"),
        joint("m", "b", "c", inside='<mimic joint="j"/>'),
    )
    cuts = pl.load(text), pl.load(text, loops={"cut": ["k"]})
    assert [[loop.name for loop in cut.loops] for cut in cuts] == [["m"], ["k"]]
    assert [len(cut.couplings) for cut in cuts] == [1, 1]
    assert pl.diagnose(cuts[0]).mobility == pl.diagnose(cuts[1]).mobility


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('<limit lower="0 0" upper="1" velocity="1"/>', "has 2 lower and 1 upper position limits"),
        ('<limit lower="0" upper="1" velocity="1 2"/>', "has 2 values of velocity"),
        ('<dynamics damping="1 2 3"/>', "has 3 values of damping"),
    ],
)
def test_numbers_that_do_not_fit_a_joint_are_refused_with_the_line(line: str, said: str) -> None:
    links = '<link name="a"/><link name="b"/>'
    text = (
        f'<robot name="r">{links}\n<joint name="j" type="revolute">'
        f'<parent link="a"/><child link="b"/>{line}</joint></robot>'
    )
    with pytest.raises(pl.LoadError, match=f"<text>:2: joint 'j' {said}") as caught:
        pl.load(text)
    assert caught.value.line == 2


def test_an_odd_inertia_is_reported_with_file_and_line_also_in_a_file_that_is_included(
    tmp_path: Path,
) -> None:
    odd = '<body name="b"><joint/>\n<inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/></body>'
    (tmp_path / "arm.xml").write_text(f"<mujocoinclude>\n\n{odd}</mujocoinclude>")
    main = tmp_path / "main.xml"
    compiler = '<compiler boundmass="0"/>'
    body = '<worldbody><include file="arm.xml"/></worldbody>'
    main.write_text(f"<mujoco>{compiler}{body}</mujoco>")
    (warning,) = pl.load(main).warnings
    assert warning.startswith("arm.xml:3: link 'b' has an inertia that no distribution of mass")
