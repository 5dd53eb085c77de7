"""Models and frames of SDF: names, poses, roots, nesting, includes."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.formats import make_resolver
from pinloop.io.sdf.reader import read_sdf
from pinloop.model.description import GROUND, Description

from .forward import gap, joint_named, placements, shift, turn

Array = NDArray[np.float64]

UNIT = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
MASS = f"<inertial><mass>1</mass>{UNIT}</inertial>"


def read(text: str, directory: Path | None = None, name: str | None = None) -> Description:
    root = parse_xml(text, "robot.sdf")
    return read_sdf(root, resolve=make_resolver(directory), model=name)


def model(
    text: str, version: str = "1.9", attributes: str = "", directory: Path | None = None
) -> Description:
    return read(
        f'<sdf version="{version}"><model name="m" {attributes}>{text}</model></sdf>', directory
    )


def link(name: str, pose: str = "", rest: str = MASS) -> str:
    return f'<link name="{name}">{pose and f"<pose>{pose}</pose>"}{rest}</link>'


def same(T: Array, expected: Array) -> None:
    np.testing.assert_allclose(T, expected, atol=1e-12)


def rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Roll about x, pitch about y, yaw about z, all fixed axes."""
    return turn((0, 0, 1), yaw) @ turn((0, 1, 0), pitch) @ turn((1, 0, 0), roll)


def test_a_model_floats_where_it_is() -> None:
    description = model(
        f"<pose>1 2 3 0 0 0.5</pose>{link('a', '0 0 1 0.1 0.2 0.3')}{link('b', '1 0 0 0 0 0')}"
        '<joint name="ab" type="fixed"><parent>a</parent><child>b</child></joint>'
    )
    root = joint_named(description, "root_joint")
    assert (root.pair.name, root.parent, root.child, root.cut) == ("free", GROUND, "a", False)
    base = shift((1, 2, 3)) @ turn((0, 0, 1), 0.5)
    found = placements(description, {})
    same(found["a"], base @ shift((0, 0, 1)) @ rpy(0.1, 0.2, 0.3))
    same(found["b"], base @ shift((1, 0, 0)))
    np.testing.assert_array_equal(description.gravity, (0, 0, -9.8))
    assert (description.name, description.actuated, description.warnings) == ("m", None, ())


def test_a_bare_model_and_a_world() -> None:
    bare = read(f'<model name="m">{link("a")}</model>')
    assert bare.name == "m" and bare.joints[0].name == "root_joint"
    world = read(
        f"""<sdf version="1.7"><world name="w"><gravity>0 1 -2</gravity><physics/><light name="l"/>
        <frame name="table"><pose>0 0 1 0 0 0</pose></frame>
        <model name="m"><pose relative_to="table">1 0 0 0 0 0</pose>{link("a")}</model>
        </world></sdf>"""
    )
    np.testing.assert_array_equal(world.gravity, (0, 1, -2))
    same(placements(world, {})["a"], shift((1, 0, 1)))


def test_static_and_anchored_models_do_not_float() -> None:
    text = f"<pose>1 0 0 0 0 0</pose>{link('a', '0 1 0 0 0 0')}{link('b')}"
    joint = '<joint name="ab" type="fixed"><parent>a</parent><child>b</child></joint>'
    static = model(f"<static>true</static>{text}{joint}")
    assert joint_named(static, "root_joint").pair.name == "fixed"
    same(placements(static, {})["a"], shift((1, 1, 0)))
    anchor = '<joint name="base" type="revolute"><parent>world</parent><child>a</child></joint>'
    anchored = model(text + anchor + joint)
    assert [joint.name for joint in anchored.joints] == ["base", "ab"]
    assert joint_named(anchored, "base").parent == GROUND
    same(placements(anchored, {})["a"], shift((1, 1, 0)))


def test_the_canonical_link_or_what_carries_it_floats() -> None:
    text = f"{link('a')}{link('b')}{link('c')}{link('d')}"
    joints = """<joint name="ba" type="ball"><parent>b</parent><child>a</child></joint>
        <joint name="cd" type="ball"><parent>c</parent><child>d</child></joint>"""
    description = model(text + joints, attributes='canonical_link="d"')
    roots = [(joint.name, joint.child) for joint in description.joints if joint.parent == GROUND]
    assert roots == [("root_joint", "c"), ("root_joint_b", "b")]


def test_poses_refer_to_links_joints_frames_and_models() -> None:
    description = model(
        f"""<pose>0 0 9 0 0 0</pose>
        {link("a", "1 0 0 0 0 1.5707963267948966")}
        <link name="b"><pose relative_to="a">1 0 0 0 0 0</pose>{MASS}</link>
        <link name="c"><pose relative_to="j">0 0 1 0 0 0</pose>{MASS}</link>
        <link name="d"><pose relative_to="f">0 0 1 0 0 0</pose>{MASS}</link>
        <joint name="j" type="fixed"><pose>0 2 0 0 0 0</pose><parent>a</parent><child>b</child>
        </joint>
        <frame name="f" attached_to="j"><pose>0 0 0 0 0 1</pose></frame>
        <frame name="g"><pose relative_to="a">0 0 1 0 0 0</pose></frame>
        <frame name="h" attached_to="g"/><frame name="w" attached_to="world"/>
        <joint name="ac" type="fixed"><parent>a</parent><child>c</child></joint>
        <joint name="ad" type="fixed"><parent>a</parent><child>d</child></joint>"""
    )
    found = placements(description, {})
    a = shift((0, 0, 9)) @ shift((1, 0, 0)) @ turn((0, 0, 1), np.pi / 2)
    j = a @ shift((1, 2, 0))
    f = j @ turn((0, 0, 1), 1.0)
    same(found["b"], a @ shift((1, 0, 0)))
    same(found["c"], j @ shift((0, 0, 1)))
    same(found["d"], f @ shift((0, 0, 1)))
    frames = {frame.name: frame for frame in description.frames}
    assert {name: frame.body for name, frame in frames.items()} == {
        "f": "b",
        "g": "a",
        "h": "a",
        "w": GROUND,
    }
    same(found["b"] @ frames["f"].placement.homogeneous, f)
    same(found["a"] @ frames["h"].placement.homogeneous, a @ shift((0, 0, 1)))
    same(frames["w"].placement.homogeneous, np.eye(4))


@pytest.mark.parametrize(
    ("pose", "expected"),
    [
        ("<pose>1 2 3 0.4 -0.5 0.6</pose>", shift((1, 2, 3)) @ rpy(0.4, -0.5, 0.6)),
        (
            '<pose degrees="true">1 2 3 30 0 -90</pose>',
            shift((1, 2, 3)) @ rpy(np.pi / 6, 0, -np.pi / 2),
        ),
        (
            '<pose rotation_format="quat_xyzw">1 2 3 0 0.6 0 0.8</pose>',
            shift((1, 2, 3)) @ turn((0, 1, 0), 2 * np.arctan2(0.6, 0.8)),
        ),
        ("<pose/>", np.eye(4)),
        ('<pose frame=""/>', np.eye(4)),
    ],
)
def test_forms_of_poses(pose: str, expected: Array) -> None:
    same(placements(model(f'<link name="a">{pose}{MASS}</link>'), {})["a"], expected)


def test_nested_models_have_names_of_their_own() -> None:
    description = model(
        f"""{link("a")}
        <model name="arm" placement_frame="grip"><pose>0 0 1 0 0 0.5</pose>
          {link("a", "1 0 0 0 0 0")}{link("b", "0 0 2 0 0 0")}<frame name="grip" attached_to="a"/>
          <joint name="j" type="revolute"><parent>a</parent><child>b</child></joint></model>
        <model name="tool"><pose relative_to="arm::b">0 1 0 0 0 0</pose>{link("t")}</model>
        <frame name="f" attached_to="arm"/>
        <joint name="j" type="fixed"><parent>a</parent><child>arm::grip</child></joint>
        <joint name="k" type="fixed"><parent>arm::b</parent><child>tool::t</child></joint>"""
    )
    assert [body.name for body in description.bodies] == ["a", "arm::a", "arm::b", "tool::t"]
    assert {joint.name for joint in description.joints} == {"root_joint", "j", "k", "arm::j"}
    found = placements(description, {})
    grip = shift((0, 0, 1)) @ turn((0, 0, 1), 0.5)
    same(found["arm::a"], grip)
    same(found["arm::b"], grip @ shift((-1, 0, 2)))
    same(found["tool::t"], grip @ shift((-1, 1, 2)))
    assert joint_named(description, "j").child == "arm::a"
    assert joint_named(description, "k").parent == "arm::b"
    frames = {frame.name: frame.body for frame in description.frames}
    assert frames == {"arm::grip": "arm::a", "f": "arm::a"}


def test_included_models(tmp_path: Path) -> None:
    (tmp_path / "hand" / "meshes").mkdir(parents=True)
    (tmp_path / "hand" / "meshes" / "palm.stl").write_text("")
    mesh = "<geometry><mesh><uri>meshes/palm.stl</uri></mesh></geometry>"
    (tmp_path / "hand" / "hand.sdf").write_text(
        f"""<sdf version="1.4"><model name="hand"><pose>9 9 9 0 0 0</pose>
        <link name="palm">{MASS}<visual name="v">{mesh}</visual></link>
        {link("finger", "0 0 1 0 0 1.5707963267948966")}
        <joint name="j" type="revolute"><parent>palm</parent><child>finger</child>
        <axis><xyz>1 0 0</xyz></axis></joint></model></sdf>"""
    )
    config = "<model><sdf version='1.2'>old.sdf</sdf><sdf version='1.4'>hand.sdf</sdf></model>"
    (tmp_path / "hand" / "model.config").write_text(config)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "model.sdf").write_text(f"<model name='plain'>{link('p')}</model>")
    description = model(
        f"""{link("a")}<include><uri>model://hand</uri><name>left</name>
        <pose>0 1 0 0 0 0</pose></include><include><uri>plain</uri></include>
        <joint name="w" type="fixed"><parent>a</parent><child>left::palm</child></joint>
        <joint name="x" type="fixed"><parent>a</parent><child>plain::p</child></joint>""",
        directory=tmp_path,
    )
    found = placements(description, {"left::j": 0.4})
    same(found["left::palm"], shift((0, 1, 0)))
    # The included file is of version 1.4, whose axes are in the model frame.
    expected = shift((0, 1, 1)) @ turn((1, 0, 0), 0.4) @ turn((0, 0, 1), np.pi / 2)
    same(found["left::finger"], expected)
    assert description.geometry[0].shape.path == tmp_path / "hand" / "meshes" / "palm.stl"
    direct = model("<include><uri>plain/model.sdf</uri></include>", directory=tmp_path)
    assert [body.name for body in direct.bodies] == ["plain::p"]
    with pytest.raises(LoadError, match=r"robot.sdf:1: .*'model://foot', which is not found"):
        model(f"{link('a')}<include><uri>model://foot</uri></include>", directory=tmp_path)
    (tmp_path / "plain" / "model.sdf").write_text(
        f"<model name='p'>{link('p')}<include><uri>model://plain</uri></include></model>"
    )
    with pytest.raises(LoadError, match="which includes this file"):
        model("<include><uri>plain</uri></include>", directory=tmp_path)
    two = f"<sdf><model name='p'>{link('p')}</model><model name='q'/></sdf>"
    (tmp_path / "plain" / "model.sdf").write_text(two)
    with pytest.raises(LoadError, match="may hold one"):
        model("<include><uri>plain</uri></include>", directory=tmp_path)


def test_what_included_and_nested_models_say_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "part.sdf").write_text(
        f'<sdf version="1.9"><model name="part">{link("p")}<wing/></model></sdf>'
    )
    include = "<include><uri>part.sdf</uri></include>"
    nested = f'<model name="n">{link("q")}<tail/></model>'
    tied = "".join(
        f'<joint name="j{k}" type="fixed"><parent>a</parent><child>{end}</child></joint>'
        for k, end in enumerate(("part::p", "n::q"))
    )
    assert model(link("a") + include + nested + tied, directory=tmp_path).warnings == (
        "robot.sdf:1: <tail> in <model> is not read",
        "part.sdf:1: <wing> in <model> is not read",
    )


def test_a_world_may_hold_scenery(tmp_path: Path) -> None:
    floor = f'<model name="floor"><static>1</static>{link("f")}</model>'
    robot = f'<model name="robot">{link("a")}</model>'
    sun = "<include><uri>model://sun</uri></include>"
    plane = sun.replace("sun", "ground_plane")
    world = f'<sdf version="1.6"><world name="w">{sun}{plane}{floor}{robot}</world></sdf>'
    description = read(world)
    assert description.name == "robot"
    scenery = [text for text in description.warnings if "scenery" in text]
    assert len(scenery) == 2
    assert "robot.sdf:1: <model name='floor'> is not part of the robot; left out" in (
        description.warnings
    )
    several = world.replace("</world>", robot.replace('"robot"', '"other"') + "</world>")
    with pytest.raises(LoadError, match=re.escape("2 models ('robot', 'other')")):
        read(several)
    assert read(several, name="other").name == "other"
    with pytest.raises(LoadError, match=re.escape("no model 'othr'; did you mean 'other'?")):
        read(several, name="othr")
    (tmp_path / "sun").mkdir()
    (tmp_path / "sun" / "model.sdf").write_text('<sdf version="1.6"><light name="sun"/></sdf>')
    text = f'<sdf version="1.6"><world name="w">{sun}{robot}</world></sdf>'
    assert read(text, tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no <link>"),
        (link("a") + link("a"), "already taken"),
        ('<frame name="world"/>' + link("a"), "a name that SDF reserves"),
        (link("__a__"), "a name that SDF reserves"),
        (f'<model name="n" placement_frame="world">{link("a")}</model>', "not inside it"),
        (
            f"""<model name="n" placement_frame="f">{link("a")}<frame name="f"><pose
            relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame></model>""",
            "not inside it",
        ),
        (link("a", "1 2 3"), "3 numbers where 6 are needed"),
        ('<link name="a"><pose rotation_format="axis"/></link>', "it is euler_rpy or quat_xyzw"),
        ('<link name="a"><pose relative_to="x"/></link>', "frame 'x', which does not exist"),
        ('<link name="a"><pose relative_to="a"/></link>', "relative to itself"),
        (link("a") + '<frame name="f" attached_to="f"/>', "attached to itself"),
        (
            link("a") + '<frame name="f" attached_to="g"><pose relative_to="a"/></frame>'
            '<frame name="g" attached_to="f"><pose relative_to="a"/></frame>',
            "attached to itself",
        ),
        ("<static>maybe</static>" + link("a"), "must be true or false"),
        ('<include merge="true"><uri>x</uri></include>', "drop merge='true'"),
    ],
)
def test_mistakes_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)) as caught:
        model(text)
    assert (caught.value.source, caught.value.line) == ("robot.sdf", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot/>", "must be <sdf> or <model>"),
        ('<sdf version="1.9"/>', "holds no <model>"),
        ('<sdf version="new"><model name="m"/></sdf>', "version 'new'"),
        ('<sdf version="1.x"><model name="m"/></sdf>', "version '1.x'"),
        ('<sdf><world name="a"/><world name="b"/></sdf>', "the second world"),
        (f'<sdf><model name="m">{link("a")}</model><model name="n"/></sdf>', "2 models ('m', 'n')"),
        (
            '<sdf><model name="floor"><static>1</static></model><model name="m"/><model name="n"/>'
            "</sdf>",
            "2 models ('m', 'n'); name the one to load with model='m'",
        ),
        (
            '<sdf><model name="a"><static>1</static></model><model name="b"><static>1</static>'
            "</model></sdf>",
            "2 models ('a', 'b'); name the one to load with model='a'",
        ),
    ],
)
def test_mistakes_in_the_file(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        read(text)


def test_a_link_called_world_with_nothing_in_it_is_the_world() -> None:
    description = model(
        f"""<pose>0 0 0.3 3 0 0</pose><link name="world"/>{link("a", "0 0 1 0 0 0")}
        <joint name="j" type="prismatic"><parent>world</parent><child>a</child>
        <axis><xyz>0 0 1</xyz></axis></joint>"""
    )
    assert [body.name for body in description.bodies] == ["a"]
    (joint,) = description.joints
    assert (joint.parent, joint.pair.name) == (GROUND, "prismatic")
    same(placements(description, {})["a"], shift((0, 0, 0.3)) @ rpy(3, 0, 0) @ shift((0, 0, 1)))
    assert "it is taken for the world itself" in description.warnings[0]


def test_a_link_called_world_that_is_solid_is_a_link() -> None:
    description = model(
        f"""{link("world")}{link("a", "0 0 1 0 0 0")}
        <joint name="j" type="prismatic"><parent>world</parent><child>a</child>
        <axis><xyz>0 0 1</xyz></axis></joint>"""
    )
    assert [body.name for body in description.bodies] == ["world", "a"]
    root, joint = description.joints
    assert (root.parent, root.child, root.pair.name) == (GROUND, "world", "free")
    assert (joint.parent, joint.child) == ("world", "a")
    assert "in its model this name means the link" in description.warnings[0]


def test_models_of_one_name_are_not_told_apart() -> None:
    twice = f'<model name="m">{link("a")}</model>' * 2
    with pytest.raises(LoadError, match="has the name of another model; rename one"):
        read(f"<sdf version='1.6'><world name='w'>{twice}</world></sdf>", name="m")


def test_a_name_may_start_like_a_reserved_one() -> None:
    assert model(link("__a")).bodies[0].name == "__a"


def test_models_do_not_nest_without_end() -> None:
    text = '<model name="n">' * 100 + link("a") + "</model>" * 100
    with pytest.raises(LoadError, match="nested deeper"):
        model(text)


def cassie_folder() -> Path:
    """Folder of the Cassie models in the example-robot-data wheel."""
    try:
        named = files("example-robot-data") or []
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    for file in named:
        if file.name == "cassie.sdf":
            return Path(str(file.locate())).resolve().parent
    pytest.skip("example-robot-data has no Cassie")


@pytest.mark.parametrize(
    ("name", "bodies", "loops", "couplings"),
    [
        ("cassie", 35, 6, 10),
        ("cassie_v2", 23, 4, 0),
        ("cassie_simple", 23, 4, 0),
        ("cassie_reduced", 23, 4, 0),
        ("cassie_wo_gearbox_spring", 23, 4, 0),
    ],
)
def test_cassie(name: str, bodies: int, loops: int, couplings: int) -> None:
    folder = cassie_folder()
    path = folder / f"{name}.sdf"
    description = read_sdf(parse_xml(path.read_bytes(), path.name), resolve=make_resolver(folder))
    assert len(description.bodies) == bodies
    assert len(description.couplings) == couplings
    cut = [joint.name for joint in description.joints if joint.cut]
    assert len(cut) == loops and "left-plantar-foot-joint" in cut
    assert len(description.joints) == bodies + loops
    found = placements(description, {})
    np.testing.assert_allclose(found["left-achilles-rod"][:3, 3], (-0.049, 0.09, 0.92), atol=1e-12)
    for loop in cut:
        same(gap(description, loop, found), np.eye(4))
    said = [text for text in description.warnings if "springs" not in text]
    assert all("damping, which is not read for type 'ball'" in text for text in said)
    assert all(
        shape.shape.path is None or shape.shape.path.is_file() for shape in description.geometry
    )
