"""Mesh files: size, unit, colour, mirror, edges; and what happens to a file that is none."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from numpy.testing import assert_allclose

from pinloop.errors import PinloopWarning
from pinloop.show.scene.scene import make_scene
from pinloop.show.scene.solids import MeshFiles, crease_normals

from .scenes import Played, arm, at, visual

SIZE = (0.2, 0.4, 0.6)


def write_block(path: Path, **more: object) -> Path:
    """A block with its lowest corner in the origin."""
    block = trimesh.creation.box(SIZE)
    block.apply_translation(np.array(SIZE) / 2)
    for name, value in more.items():
        setattr(block.visual, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        block.export(str(path))
    return path


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb", "dae", "off"])
def test_every_format_gives_the_same_block(tmp_path: Path, suffix: str) -> None:
    (solid,) = MeshFiles().solids(write_block(tmp_path / f"block.{suffix}"), (1.0, 2.0, 0.5))
    assert_allclose(solid.corners.min(axis=0), 0, atol=1e-6)
    assert_allclose(solid.corners.max(axis=0), (0.2, 0.8, 0.3), atol=1e-6)


def test_collada_says_its_unit(tmp_path: Path) -> None:
    path = write_block(tmp_path / "block.dae")
    text = path.read_text()
    assert "</asset>" in text
    assert "<unit" not in text or 'meter="1' in text
    head, _, tail = text.partition("</asset>")
    head = head.split("<unit")[0] + '<unit name="inch" meter="0.0254"/>'
    if "<up_axis" not in head:
        head += "<up_axis>Z_UP</up_axis>"
    path.write_text(head + "</asset>" + tail)
    (solid,) = MeshFiles().solids(path, (1.0, 1.0, 1.0))
    assert_allclose(solid.corners.max(axis=0), np.array(SIZE) * 0.0254, rtol=1e-5)


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (-2.0, -1.0, -3.0)])
def test_a_mirrored_mesh_still_has_its_outside_outside(
    tmp_path: Path, scale: tuple[float, float, float]
) -> None:
    shape = visual(
        "block", "link", "mesh", scale, at(0, 0, 0), path=write_block(tmp_path / "block.stl")
    )
    robot = arm(shape)
    page = Played(make_scene(robot).commands(robot.neutral))
    path = ("robot", "link", "block")
    points, normals = page.attribute("position", *path), page.attribute("normal", *path)
    middle = np.array(SIZE) * scale / 2
    assert np.all(np.einsum("ij,ij->i", points - middle, normals) > 0)
    corners = points[page.faces(*path)]
    winding = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.all(np.einsum("ij,ij->i", corners.mean(axis=1) - middle, winding) > 0)


def test_the_edges_of_a_block_stay_sharp() -> None:
    block = trimesh.creation.box(SIZE)
    vertices, faces, normals = crease_normals(
        np.asarray(block.vertices), np.asarray(block.faces, dtype=np.int64)
    )
    assert len(vertices) == 24
    assert_allclose(np.abs(normals).max(axis=1), 1, atol=1e-6)
    assert len(faces) == 12


def test_a_ball_is_shaded_smooth() -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    vertices, _, normals = crease_normals(
        np.asarray(ball.vertices), np.asarray(ball.faces, dtype=np.int64)
    )
    assert len(vertices) < 1.5 * len(ball.vertices)
    assert np.einsum("ij,ij->i", vertices, normals).min() > np.cos(np.radians(3))


def test_colour_of_the_file_unless_the_robot_says_otherwise(tmp_path: Path) -> None:
    path = write_block(tmp_path / "block.ply", face_colors=[255, 0, 102, 255])
    given = (0.0, 1.0, 0.0, 1.0)
    robot = arm(
        visual("own", "link", "mesh", (1.0, 1.0, 1.0), at(0, 0, 0), path=path),
        visual("given", "link", "mesh", (1.0, 1.0, 1.0), at(0, 0, 0), path=path, color=given),
    )
    page = Played(make_scene(robot).commands(robot.neutral))
    assert page.material("robot", "link", "own")["color"] == 0xFF0066
    assert page.material("robot", "link", "given")["color"] == 0x00FF00


def test_each_part_of_a_file_has_its_own_colour(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    for index, color in enumerate(([255, 0, 0, 255], [0, 0, 255, 255])):
        part = trimesh.creation.box((1, 1, 1))
        part.visual = trimesh.visual.TextureVisuals(
            material=trimesh.visual.material.PBRMaterial(baseColorFactor=color)
        )
        scene.add_geometry(
            part, transform=trimesh.transformations.translation_matrix([index, 0, 0])
        )
    path = tmp_path / "two.glb"
    scene.export(str(path))
    solids = MeshFiles().solids(path, (1.0, 1.0, 1.0))
    assert {solid.color for solid in solids} == {(1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)}
    middles = sorted(float(solid.corners.mean(axis=0)[0]) for solid in solids)
    assert_allclose(middles, (0, 1), atol=1e-6)


def test_a_mesh_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_block(tmp_path / "block.stl")
    calls: list[str] = []
    load_scene = trimesh.load_scene

    def counted(file: Any, **options: Any) -> trimesh.Scene:
        calls.append(file)
        return load_scene(file, **options)

    monkeypatch.setattr(trimesh, "load_scene", counted)
    shapes = [
        visual(str(i), "link", "mesh", (1.0 + i, 1.0, 1.0), at(0, 0, 0), path=path)
        for i in range(3)
    ]
    assert len(make_scene(arm(*shapes)).parts) >= 3
    assert len(calls) == 1


@pytest.mark.parametrize("content", [b"", b"not a mesh", b"solid x\nendsolid x\n"])
def test_what_is_no_mesh_is_named_and_left_out(tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "broken.stl"
    broken.write_bytes(content)
    shapes = (
        visual("bad", "link", "mesh", (1.0, 1.0, 1.0), at(0, 0, 0), path=broken),
        visual("good", "link", "sphere", (0.1,), at(0, 0, 0)),
    )
    with pytest.warns(PinloopWarning, match=r"the mesh .*broken\.stl .*is not shown"):
        scene = make_scene(arm(*shapes))
    assert [part.path for part in scene.parts if part.path.startswith("robot")] == [
        "robot/link/good"
    ]


def test_a_mesh_that_was_not_found_is_left_out() -> None:
    shape = visual("lost", "link", "mesh", (1.0, 1.0, 1.0), at(0, 0, 0), path=None)
    scene = make_scene(arm(shape))
    assert not [part for part in scene.parts if part.path.startswith("robot")]
    assert not scene.hidden
