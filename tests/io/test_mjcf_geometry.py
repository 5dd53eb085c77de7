"""Geoms and meshes of MJCF as shapes to be seen and collided with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pinloop.boundary.xml import parse_xml
from pinloop.errors import LoadError
from pinloop.io.formats import make_resolver
from pinloop.io.mjcf.reader import read_mjcf
from pinloop.model.description import GROUND, Description, Geometry

from .forward import shift, turn
from .mjcf_by_hand import MASS


def read(geoms: str, before: str = "", directory: Path | None = None) -> Description:
    text = f"""<mujoco><compiler angle="radian"/>{before}<worldbody>
        <body name="a">{MASS}{geoms}</body></worldbody></mujoco>"""
    resolve = make_resolver(directory)
    return read_mjcf(parse_xml(text, "robot.xml"), resolve=resolve)


def seen(description: Description) -> list[Geometry]:
    return [shape for shape in description.geometry if shape.role == "visual"]


@pytest.mark.parametrize(
    ("geom", "kind", "size", "placement"),
    [
        ('size="0.2" pos="1 2 3"', "sphere", (0.2,), shift((1, 2, 3))),
        (
            'type="box" size="1 2 3" axisangle="0 0 1 0.5"',
            "box",
            (2.0, 4.0, 6.0),
            turn((0, 0, 1), 0.5),
        ),
        ('type="cylinder" size="1 2"', "cylinder", (1.0, 4.0), np.eye(4)),
        ('type="capsule" size="1 2"', "capsule", (1.0, 4.0), np.eye(4)),
        ('type="ellipsoid" size="1 2 3"', "ellipsoid", (1.0, 2.0, 3.0), np.eye(4)),
        (
            'type="capsule" size="0.1" fromto="5 1 0 1 1 0" pos="9 9 9"',
            "capsule",
            (0.1, 4.0),
            shift((3, 1, 0)) @ turn((0, 1, 0), np.pi / 2),
        ),
        (
            'type="cylinder" size="0.5 99" fromto="0 0 4 0 0 1"',
            "cylinder",
            (0.5, 3.0),
            shift((0, 0, 2.5)),
        ),
        ('type="box" size="0.5" fromto="0 0 4 0 0 1"', "box", (1.0, 1.0, 3.0), shift((0, 0, 2.5))),
        (
            'type="ellipsoid" size="0.5" fromto="0 0 1 0 0 -1"',
            "ellipsoid",
            (0.5, 0.5, 1.0),
            np.eye(4),
        ),
    ],
)
def test_primitives(
    geom: str, kind: str, size: tuple[float, ...], placement: np.ndarray[tuple[int, ...]]
) -> None:
    (shape,) = seen(read(f'<geom name="g" {geom}/>'))
    assert (shape.name, shape.body, shape.shape.kind) == ("g", "a", kind)
    np.testing.assert_allclose(shape.shape.size, size)
    np.testing.assert_allclose(shape.placement.homogeneous, placement, atol=1e-12)


def test_roles_follow_contacts_and_groups() -> None:
    description = read(
        """<geom name="both" size="1"/><geom name="one" size="1" conaffinity="0"/>
        <geom name="shown" size="1" contype="0" conaffinity="0" group="2"/>
        <geom name="hidden" size="1" contype="0" conaffinity="0" group="3"/>
        <geom name="solid" size="1" group="3"/>"""
    )
    roles: dict[str, list[str]] = {}
    for shape in description.geometry:
        roles.setdefault(shape.name, []).append(shape.role)
    assert roles == {
        "both": ["visual", "collision"],
        "one": ["visual", "collision"],
        "shown": ["visual"],
        "hidden": ["visual"],
        "solid": ["collision"],
    }


def test_geoms_of_the_world_and_without_names() -> None:
    description = read(
        '<geom size="1"/><geom name="a_geom" size="1"/><frame pos="1 0 0"><geom size="1"/></frame>',
        '<worldbody><geom size="2"/></worldbody>',
    )
    shapes = seen(description)
    assert [shape.name for shape in shapes] == ["ground_geom1", "a_geom1", "a_geom", "a_geom3"]
    assert shapes[0].body == GROUND
    np.testing.assert_array_equal(shapes[3].placement.translation, (1, 0, 0))


def test_colours() -> None:
    description = read(
        """<geom size="1"/><geom size="1" material="red"/><geom size="1" material="bare"/>
        <geom size="1" material="red" rgba="0 0 1 0.5"/>
        <geom size="1" material="red" rgba="0.5 0.5 0.5 1"/><geom size="1" material="dull"/>""",
        """<default><default class="d"><material rgba="0.1 0.2 0.3 1"/></default></default>
        <asset><material name="red" rgba="1 0 0 1"/><material name="bare"/>
        <material name="dull" class="d"/><texture name="t"/></asset>""",
    )
    red, blue, dull = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.5), (0.1, 0.2, 0.3, 1.0)
    assert [shape.color for shape in seen(description)] == [None, red, None, blue, red, dull]
    assert description.warnings == ()


def test_meshes(tmp_path: Path) -> None:
    for name in ("one.stl", "two.obj"):
        (tmp_path / name).write_text("not looked into, because the body has a mass")
    description = read(
        """<geom type="mesh" mesh="one" pos="1 0 0" axisangle="0 0 1 0.5"/>
        <geom type="mesh" mesh="turned"/><geom type="mesh" mesh="plain" material="red"/>""",
        """<default><mesh scale="0.001 0.001 0.001"/></default>
        <asset><mesh file="deep/one.stl" material="red"/><material name="red" rgba="1 0 0 1"/>
        <mesh name="turned" file="two.obj" scale="2 3 4" refpos="1 2 3" refquat="1 0 0 1"/>
        <mesh name="plain" file="two.obj" scale="1 1 1"/></asset><compiler strippath="true"/>""",
        tmp_path,
    )
    one, turned, plain = seen(description)
    assert (one.shape.kind, one.shape.path) == ("mesh", tmp_path / "one.stl")
    np.testing.assert_allclose(one.shape.size, (1e-3, 1e-3, 1e-3))
    expected = shift((1, 0, 0)) @ turn((0, 0, 1), 0.5)
    np.testing.assert_allclose(one.placement.homogeneous, expected, atol=1e-15)
    assert one.color == plain.color == (1.0, 0.0, 0.0, 1.0)
    assert plain.shape.size == (1.0, 1.0, 1.0)
    # A vertex is shifted by refpos, turned back by refquat, then scaled.
    vertex = np.array((0.3, -0.4, 0.5))
    x, y, z = vertex - (1, 2, 3)
    shown = turned.placement.act(np.array(turned.shape.size) * vertex)
    np.testing.assert_allclose(shown, (2 * y, 3 * -x, 4 * z), atol=1e-12)


@pytest.mark.parametrize("folder", ["parts", "parts/"])
def test_meshdir_is_relative_or_absolute(tmp_path: Path, folder: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.stl").write_text("")
    for where in (f'meshdir="{folder}"', f'assetdir="{tmp_path}/{folder}"'):
        before = f'<compiler {where}/><asset><mesh file="one.stl"/></asset>'
        description = read('<geom type="mesh" mesh="one"/>', before, tmp_path)
        assert seen(description)[0].shape.path == tmp_path / "parts" / "one.stl"
    description = read(
        '<geom type="mesh" mesh="one"/>', '<asset><mesh file="parts/one.stl"/></asset>', tmp_path
    )
    assert seen(description)[0].shape.path == tmp_path / "parts" / "one.stl"


def test_what_cannot_be_shown_is_said() -> None:
    description = read(
        """<geom type="plane" size="1 1 1"/><geom type="hfield" hfield="h"/>
        <geom type="mesh" mesh="lost" name="g"/><geom type="box" mesh="inline"/>
        <geom type="mesh" mesh="inline"/><geom type="mesh" mesh="none"/>""",
        """<asset><mesh file="lost.stl"/><mesh name="inline" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
        <mesh name="none"/><wood/></asset>""",
    )
    assert description.geometry == ()
    expected = [
        "mesh file 'lost.stl' not found; geoms of such meshes are left out",
        "<mesh name='none'> has neither file nor vertices",
        "<wood> in <asset> is not read",
        "<geom> is a hfield, which is not read",
        "<geom> is a box fitted to a mesh",
        "<geom> has a mesh without a file",
    ]
    found = [warning.split(": ", 1)[1] for warning in description.warnings]
    assert len(found) == len(expected)
    for text, start in zip(sorted(found), sorted(expected), strict=True):
        assert text.startswith(start)


def test_files_of_meshes_that_lack_together_are_one_warning() -> None:
    meshes = "".join(f'<mesh file="{k}.stl"/>' for k in range(9))
    geoms = "".join(f'<geom type="mesh" mesh="{k}"/>' for k in [*range(9), 0, 1])
    (warning,) = read(geoms, f"<asset>{meshes}</asset>").warnings
    assert "mesh file '0.stl' not found; likewise '1.stl'," in warning
    assert "'6.stl' and 2 more; geoms of such meshes are left out, and their mass" in warning


def test_a_mesh_stretched_askew_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "one.stl").write_text("")
    before = '<asset><mesh file="one.stl" refquat="1 0.2 0 0" scale="1 2 3"/></asset>'
    description = read('<geom type="mesh" mesh="one"/>', before, tmp_path)
    assert description.geometry == ()
    assert "stretched askew" in description.warnings[0]


@pytest.mark.parametrize(
    ("geoms", "message"),
    [
        ('<geom type="box" size="1 1"/>', "a box needs 3 numbers"),
        ('<geom size="0"/>', "must be positive"),
        ('<geom type="tube" size="1"/>', "type 'tube'; it must be one of"),
        ("<geom/>", "needs an attribute 'size'"),
        ('<geom type="mesh" mesh="m"/>', "mesh 'm', which is not among the assets"),
        ('<geom size="1" material="m"/>', "material 'm', which is not defined"),
        ('<geom type="capsule" size="1" fromto="1 1 1 1 1 1"/>', "zero length fromto"),
        ('<geom name="g" size="1"/><geom name="g" size="1"/>', "already taken"),
    ],
)
def test_mistakes(geoms: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        read(geoms)
