"""Links of SDF: mass properties, shapes, colours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.formats import make_resolver
from pinloop.io.sdf.reader import read_sdf
from pinloop.model.description import Description

from .forward import shift, turn

Array = NDArray[np.float64]

UNIT = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
MASS = f"<inertial><mass>1</mass>{UNIT}</inertial>"


def read(text: str, directory: Path | None = None) -> Description:
    return read_sdf(parse_xml(text, "robot.sdf"), resolve=make_resolver(directory))


def model(text: str, directory: Path | None = None) -> Description:
    return read(f'<sdf version="1.9"><model name="m">{text}</model></sdf>', directory)


def link(name: str, pose: str = "", rest: str = MASS) -> str:
    return f'<link name="{name}">{pose and f"<pose>{pose}</pose>"}{rest}</link>'


def same(T: Array, expected: Array) -> None:
    np.testing.assert_allclose(T, expected, atol=1e-12)


def test_mass_properties() -> None:
    inertial = """<inertial><pose>1 2 3 0 0 1.5707963267948966</pose><mass>2</mass><inertia>
        <ixx>1</ixx><iyy>2</iyy><izz>3</izz><ixy>0.1</ixy><ixz>0.2</ixz><iyz>0.3</iyz></inertia>
        </inertial>"""
    (body,) = model(link("a", rest=inertial)).bodies
    R = turn((0, 0, 1), np.pi / 2)[:3, :3]
    own = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 3]])
    assert body.mass == 2
    np.testing.assert_array_equal(body.com, (1, 2, 3))
    np.testing.assert_allclose(body.inertia, R @ own @ R.T, atol=1e-12)


def test_parts_of_an_inertial_that_are_missing() -> None:
    first, second = model(
        link("a", rest="<inertial><mass>2</mass><inertia><ixx>2</ixx></inertia></inertial>")
        + link("b", rest=f"<inertial>{UNIT}</inertial>")
    ).bodies
    np.testing.assert_array_equal(first.inertia, np.diag((2, 1, 1)))
    assert (first.mass, second.mass) == (2.0, 1.0)


def test_missing_masses_are_one_and_said() -> None:
    text = link("a", rest="") + link("b", rest="<inertial><mass>3</mass></inertial>")
    description = model(
        text + '<joint name="j" type="fixed"><parent>a</parent><child>b</child></joint>'
    )
    assert [body.mass for body in description.bodies] == [1.0, 3.0]
    np.testing.assert_array_equal(description.bodies[0].com, np.zeros(3))
    for body in description.bodies:
        np.testing.assert_array_equal(body.inertia, np.eye(3))
    assert "robot.sdf:1: <link name='a'> has no <inertial>" in description.warnings[0]
    assert "robot.sdf:1: <link name='b'> has no inertia" in description.warnings[1]
    with pytest.raises(LoadError, match="auto='true'"):
        model(link("a", rest='<inertial auto="true"/>'))
    mesh = visual("<mesh><uri>a.stl</uri></mesh>", tag="collision")
    with pytest.raises(LoadError, match="is a mesh, whose inertia is not computed"):
        model(link("a", rest=f'<inertial auto="true"/>{mesh}'))
    with pytest.raises(LoadError, match=r"mass -1.0 kg"):
        model(link("a", rest="<inertial><mass>-1</mass></inertial>"))


@pytest.mark.parametrize(("mass", "scale"), [("", 1.0), ("<mass>180</mass>", 2.0)])
def test_inertias_that_are_to_be_computed_come_from_the_collisions(mass: str, scale: float) -> None:
    box = "<box><size>0.2 0.3 0.5</size></box>"
    parts = (
        visual(box, "<density>2000</density>", name="low", tag="collision")
        + visual(box, "<pose>0 0 1 0 0 0</pose>", name="high", tag="collision")
        # Planes have no volume.
        + visual("<plane><normal>0 0 1</normal><size>1 1</size></plane>", name="f", tag="collision")
    )
    inertial = f'<inertial auto="true"><density>1000</density>{mass}</inertial>'
    (body,) = model(link("a", rest=inertial + parts)).bodies
    # Boxes of 60 and 30 kg, a metre apart: the common centre is a third of the way up.
    assert body.mass == pytest.approx(90.0 * scale)
    np.testing.assert_allclose(body.com, (0, 0, 1 / 3), atol=1e-15)
    own = 90.0 / 12 * np.array([0.3**2 + 0.5**2, 0.2**2 + 0.5**2, 0.2**2 + 0.3**2])
    apart = 60 * 30 / 90 * np.array([1.0, 1.0, 0.0])
    np.testing.assert_allclose(body.inertia, scale * np.diag(own + apart), atol=1e-12)


def visual(shape: str, rest: str = "", name: str = "v", tag: str = "visual") -> str:
    return f'<{tag} name="{name}">{rest}<geometry>{shape}</geometry></{tag}>'


@pytest.mark.parametrize(
    ("shape", "kind", "size"),
    [
        ("<box><size>1 2 3</size></box>", "box", (1.0, 2.0, 3.0)),
        ("<sphere><radius>2</radius></sphere>", "sphere", (2.0,)),
        ("<cylinder><radius>1</radius><length>4</length></cylinder>", "cylinder", (1.0, 4.0)),
        ("<capsule><radius>1</radius><length>4</length></capsule>", "capsule", (1.0, 4.0)),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", "ellipsoid", (1.0, 2.0, 3.0)),
    ],
)
def test_shapes(shape: str, kind: str, size: tuple[float, ...]) -> None:
    pose = "<pose>1 0 0 0 0 0.5</pose>"
    (seen, solid) = model(
        link("a", rest=MASS + visual(shape, pose) + visual(shape, tag="collision"))
    ).geometry
    assert (seen.name, seen.role, seen.shape.kind, seen.shape.size) == ("v", "visual", kind, size)
    same(seen.placement.homogeneous, shift((1, 0, 0)) @ turn((0, 0, 1), 0.5))
    assert (solid.role, solid.shape.size) == ("collision", size)


def test_meshes_colours_and_names(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_text("")
    ball = "<sphere><radius>1</radius></sphere>"
    mesh = "<mesh><uri>a.stl</uri><scale>1 2 3</scale></mesh>"
    red = "<material><ambient>0 1 0 1</ambient><diffuse>1 0 0 0.5</diffuse></material>"
    green = "<material><ambient>0 1 0</ambient></material><transparency>0.25</transparency>"
    relative = '<pose relative_to="b">0 0 1 0 0 0</pose>'
    description = model(
        link("a", "1 0 0 0 0 0", MASS + visual(mesh, red) + visual(ball, green + relative))
        + link("b", "5 0 0 0 0 0", MASS + visual(ball))
        + '<joint name="j" type="fixed"><parent>a</parent><child>b</child></joint>',
        directory=tmp_path,
    )
    first, second, third = description.geometry
    assert (first.shape.kind, first.shape.size) == ("mesh", (1.0, 2.0, 3.0))
    assert first.shape.path == tmp_path / "a.stl"
    assert [shape.name for shape in description.geometry] == ["v", "a::v", "b::v"]
    assert first.color == (1.0, 0.0, 0.0, 0.5)
    assert second.color == (0.0, 1.0, 0.0, 0.75)
    assert third.color is None
    same(second.placement.homogeneous, shift((4, 0, 1)))
    twice = visual("<mesh><uri>a.stl</uri></mesh>")
    shapes = model(link("a", rest=MASS + 3 * twice + visual(ball, tag="collision")), tmp_path)
    names = [(shape.role, shape.name) for shape in shapes.geometry]
    assert names == [("visual", "v"), ("visual", "a::v"), ("visual", "a::v_2"), ("collision", "v")]
    assert shapes.geometry[0].shape.size == (1.0, 1.0, 1.0)


def test_what_is_not_read_is_said() -> None:
    plane = visual("<plane><normal>0 0 1</normal></plane>", name="p")
    lost = visual("<mesh><uri>model://x/lost.dae</uri></mesh>", name="l")
    description = read(
        f"""<sdf version="1.9"><model name="m"><plugin/><self_collide/>
<link name="a"><sensor/><light/><gravity>false</gravity><kinematic>1</kinematic>{MASS}
{plane}
{lost}{visual("<empty/>", name="e")}
<wings/><velocity_decay><linear>1</linear></velocity_decay></link>
<gizmo/></model></sdf>"""
    )
    assert description.geometry == ()
    expected = [
        "robot.sdf:2: <link name='a'> switches gravity off",
        "robot.sdf:2: <link name='a'> is kinematic",
        "robot.sdf:5: <velocity_decay> is not read",
        "robot.sdf:4: <mesh> names the file 'model://x/lost.dae', which does not exist",
        "robot.sdf:6: <gizmo> in <model> is not read",
        "robot.sdf:5: <wings> in <link> is not read",
    ]
    assert len(description.warnings) == len(expected)
    for text, start in zip(description.warnings, expected, strict=True):
        assert text.startswith(start)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (visual("<box><size>-1 1 1</size></box>"), "no number may be negative"),
        ("<visual name='v'/>", "needs a <geometry>"),
        ("<visual name='v'><geometry/></visual>", "give it a shape"),
        (visual("<mesh/>"), "needs a <uri>"),
        (visual("<box/>"), "needs a <size>"),
        (visual("<sphere/>"), "needs a <radius>"),
        (visual("<cylinder><radius>1</radius></cylinder>"), "needs a <length>"),
        (visual("<ellipsoid/>"), "needs a <radii>"),
        (visual("<empty/>", "<pose>1</pose>") + "<gravity>x</gravity>", "must be true or false"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        model(link("a", rest=MASS + text))
