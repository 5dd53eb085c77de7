"""Runs as animations of glTF: read by the rules of its specification, and by trimesh."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.model.mechanism import build
from pinloop.show.gltf import _Document
from pinloop.show.scene.solids import (
    Solid,
    box,
    capsule,
    cylinder,
    ellipsoid,
    ring,
    tessellate,
    triangles,
    tube,
)

Array = NDArray[np.float64]

UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Turns z to y, which points up in glTF."""


class Document:
    """A binary glTF file as section 4 and chapter 3 of the specification have it."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        magic, version, length = data[:4], *np.frombuffer(data[4:12], "<u4")
        assert (magic, version, length) == (b"glTF", 2, len(data)) and length % 4 == 0
        size = int(np.frombuffer(data[12:16], "<u4")[0])
        assert data[16:20] == b"JSON" and size % 4 == 0
        self.content = json.loads(data[20 : 20 + size])
        rest = data[20 + size :]
        assert rest[4:8] == b"BIN\0" and int(np.frombuffer(rest[:4], "<u4")[0]) == len(rest) - 8
        self.numbers = rest[8:]
        (buffer,) = self.content["buffers"]
        assert buffer["byteLength"] == len(self.numbers)
        self.nodes = {node["name"]: node for node in self.content["nodes"]}
        assert len(self.nodes) == len(self.content["nodes"])

    def read(self, accessor: int) -> Array:
        """Numbers of an accessor, which are in its bounds."""
        entry = self.content["accessors"][accessor]
        view = self.content["bufferViews"][entry["bufferView"]]
        assert view["byteOffset"] % 4 == 0
        kind = {5126: "<f4", 5125: "<u4"}[entry["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[entry["type"]]
        part = self.numbers[view["byteOffset"] :][: view["byteLength"]]
        values = np.frombuffer(part, kind).reshape(entry["count"], width)
        assert values.min(axis=0).tolist() == entry["min"]
        assert values.max(axis=0).tolist() == entry["max"]
        return np.asarray(values, dtype=float)

    def tracks(self) -> dict[tuple[str, str], tuple[str, Array, Array]]:
        """Interpolation, times and values by name of the node and what changes of it."""
        (animation,) = self.content["animations"]
        tracks = {}
        for channel in animation["channels"]:
            sampler = animation["samplers"][channel["sampler"]]
            node = self.content["nodes"][channel["target"]["node"]]["name"]
            times, values = (self.read(sampler[name]) for name in ("input", "output"))
            tracks[node, channel["target"]["path"]] = (
                sampler["interpolation"],
                times[:, 0],
                values,
            )
        return tracks


def turned(quaternion: Array) -> Array:
    """Rotation by a quaternion (x, y, z, w): what turns ``a`` to ``a + 2 u x (u x a + w a)``."""
    *u, w = quaternion
    cross = np.cross(np.eye(3), u)
    return np.asarray(np.eye(3) + 2 * (cross @ cross + w * cross))


@pytest.fixture(scope="module")
def run() -> pl.Trajectory:
    robot = pl.regularize(pl.example("palletizer"))
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"elbow": 0.5})
    events = [
        pl.lock("shoulder", at=0.123),
        pl.open_loop("front_level_loop", at=0.2),
        pl.unlock("shoulder", at=0.2 + 1e-9),  # an instant that 24 bits do not tell apart
    ]
    return pl.simulate(robot, q, v, until=0.3, events=events)


@pytest.fixture(scope="module")
def document(run: pl.Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Document:
    return Document(run.to_gltf(tmp_path_factory.mktemp("gltf") / "run.glb", rate=50))


def test_key_frames_are_the_poses_of_the_run(run: pl.Trajectory, document: Document) -> None:
    tracks, robot, count = document.tracks(), run.robot, 0
    for body in robot.bodies:
        if (f"robot/{body}", "translation") not in tracks:
            continue
        kind, times, places = tracks[f"robot/{body}", "translation"]
        other, at, turns = tracks[f"robot/{body}", "rotation"]
        assert kind == other == "LINEAR" and np.all(at == times) and np.all(np.diff(times) > 0)
        assert times[0] == 0 and len(times) >= 41
        assert times[-1] == np.float32(0.3)
        assert np.sum(turns[1:] * turns[:-1], axis=1).min() > 0  # no turn the long way round
        assert_allclose(np.linalg.norm(turns, axis=1), 1, atol=1e-6)
        for t, place, turn in zip(times, places, turns, strict=True):
            expected = robot.placement(run(min(t, 0.3)).q, body)
            assert_allclose(place, expected.translation, atol=1e-6)
            assert_allclose(turned(turn), expected.rotation, atol=1e-6)
            count += 1
    assert count > 8 * 41


def test_locks_and_open_loops_come_and_go(run: pl.Trajectory, document: Document) -> None:
    sizes = {name: track for (name, what), track in document.tracks().items() if what == "scale"}
    locks = {name for name in sizes if name.startswith("joints/")}
    loops = {name for name in sizes if name.startswith("loops/front_level_loop/")}
    assert locks and loops and {*locks, *loops} == set(sizes)
    for name, (kind, times, values) in sizes.items():
        assert kind == "STEP" and np.all(values == values[:, :1])
        last = np.float32(0.2)
        seen = (times >= np.float32(0.123)) & (times < last) if name in locks else times < last
        at_change = times == last  # two modes begin there for 24 bits; either may be shown
        np.testing.assert_array_equal(values[~at_change, 0], seen[~at_change].astype(float))


def test_trimesh_sees_the_robot_upright(
    run: pl.Trajectory, document: Document, tmp_path: Path
) -> None:
    scene: Any = trimesh.load(run.to_gltf(tmp_path / "run.glb"))
    robot, q = run.robot, run.q[0]
    for body in ("forearm", "upper_arm"):
        matrix, _ = scene.graph.get(f"robot/{body}")
        expected = robot.placement(q, body)
        assert_allclose(matrix[:3, :3], UP @ expected.rotation, atol=1e-6)
        assert_allclose(matrix[:3, 3], UP @ expected.translation, atol=1e-6)
    for mesh in scene.geometry.values():
        mesh.merge_vertices(merge_norm=True, merge_tex=True)
        assert mesh.is_watertight and mesh.volume > 0  # anticlockwise from outside
        outward = mesh.vertex_normals - mesh.vertices.mean(axis=0)
        assert np.isfinite(outward).all()


def test_colours_are_those_of_light() -> None:
    """Of a colour of screens glTF stores the light, as IEC 61966-2-1 has it: 0.5 is 0.2140."""
    drawn = _Document()
    number = drawn._material((0.5, 0.0, 1.0, 0.25))
    surface = drawn.lists["materials"][number]
    assert surface["alphaMode"] == "BLEND"
    color = surface["pbrMetallicRoughness"]["baseColorFactor"]
    assert_allclose(color, [0.21404, 0.0, 1.0, 0.25], atol=1e-5)
    assert drawn._material((0.5, 0.0, 1.0, 0.25)) == number


def test_a_run_without_motion_is_a_picture(tmp_path: Path) -> None:
    floating = replace(pl.example("planar_3r").description, gravity=np.zeros(3))
    robot = build(floating)
    rest = pl.simulate(robot, robot.neutral, [0.0] * 3, until=0.01)
    content = Document(rest.to_gltf(tmp_path / "rest.glb")).content
    assert "animations" not in content and len(content["meshes"]) > 3


# -- solids as triangles ----------------------------------------------------------------------

BALL = 4 / 3 * np.pi
LINE = np.linspace([0.0, 0, 0], [0, 0, 2.0], 5)
SOLIDS: list[tuple[Solid, float]] = [
    (box(1.0, 2.0, 3.0), 6.0),
    (ellipsoid(0.001, 0.002, 0.003), BALL * 6e-9),
    (cylinder(0.5, 2.0), np.pi / 2),
    (cylinder(0.5, 2.0, tip=0.0), np.pi / 6),
    (capsule(0.5, 2.0), BALL / 8 + np.pi / 2),
    (ring(2.0, 0.5), np.pi**2),
]


@pytest.mark.parametrize(("solid", "volume"), SOLIDS)
def test_solids_have_their_volume(solid: Solid, volume: float) -> None:
    """By the divergence theorem; 48 flat sides of a circle have 0.3 % less, of a tube 16 2.6 %."""
    vertices, faces = tessellate(solid)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    inside = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    assert inside == pytest.approx(volume, rel=0.03) and inside <= volume * (1 + 1e-12)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    corners = solid.corners
    assert_allclose([low, high], [corners.min(axis=0), corners.max(axis=0)], rtol=5e-3, atol=1e-9)


def test_meshes_stay_what_they_are() -> None:
    solid = tube(LINE, 0.1)
    vertices, faces = tessellate(solid)
    again = triangles(vertices, faces)
    assert again.geometry["data"]["index"] == solid.geometry["data"]["index"]
