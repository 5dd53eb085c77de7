"""Tests of `pinloop.safety.space.hulls`: polyhedra that hold what they stand for, and by how
much.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

import pinloop as pl
from pinloop.safety.space.hulls import build_hull, hull_contains, inflate_hull
from pinloop.safety.space.swept import swept_volume

from ...screw_tables import Array
from .moving_bodies import at, chain, shape


def points(kind: str, rng: np.random.Generator) -> Array:
    """Points that fill a ball, lie in a plane, or close to a line."""
    cloud = rng.normal(size=(60, 3))
    return cloud * {"ball": (1, 1, 1), "flat": (1, 0, 1), "thin": (1, 0.002, 0.003)}[kind]


@pytest.mark.parametrize("kind", ["ball", "flat", "thin"])
@pytest.mark.parametrize("room", [1e-6, 0.05, 2.0])
@pytest.mark.parametrize("slight", [0.0, 10.0])
def test_room_around_a_hull(kind: str, room: float, slight: float) -> None:
    """It holds what is no farther than the room from any point between the given ones."""
    rng = np.random.default_rng(1)
    given = points(kind, rng)
    hull, out = inflate_hull(given, room, slight)
    between = rng.dirichlet(np.full(len(given), 0.05), 300) @ given
    between[:60] = given
    away = rng.normal(size=(300, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    assert np.all(hull_contains(hull, between + 0.999999 * room * away))
    assert out <= max(slight, np.sqrt(3) * room)
    # No corner stands out by more than it says, not even in its own direction.
    reach = np.max(given @ hull.vertices.T, axis=0)
    over = np.sum(hull.vertices**2, axis=1) - reach
    assert np.all(over <= (out + 2e-6) * np.linalg.norm(hull.vertices, axis=1) + 1e-9)


def test_planes_and_faces_agree() -> None:
    hull = build_hull(points("ball", np.random.default_rng(2)))
    mesh = trimesh.Trimesh(hull.vertices, hull.faces, process=False)
    assert mesh.is_watertight
    assert np.allclose(mesh.face_normals, hull.planes[:, :3])
    off = np.einsum("ij,ij->i", mesh.triangles_center, hull.planes[:, :3]) + hull.planes[:, 3]
    assert np.allclose(off, 0.0)


ROUND: dict[str, tuple[Any, Any]] = {
    "sphere": ((0.3,), lambda x: np.linalg.norm(x, axis=1) - 0.3),
    "capsule": (
        (0.2, 0.5),
        lambda x: np.linalg.norm(x - np.clip(x, -0.25, 0.25) * [0, 0, 1], axis=1) - 0.2,
    ),
    "cylinder": (
        (0.2, 0.5),
        lambda x: np.hypot(
            np.maximum(np.hypot(x[:, 0], x[:, 1]) - 0.2, 0), np.maximum(np.abs(x[:, 2]) - 0.25, 0)
        ),
    ),
    "mesh": ((0.3, 0.3, 0.3), lambda x: np.linalg.norm(x, axis=1) - 0.3),
}


@pytest.mark.parametrize("kind", ROUND)
@pytest.mark.parametrize("tolerance", [0.05, 0.01])
def test_how_far_polyhedra_stand_out_of_round_shapes(
    kind: str, tolerance: float, tmp_path: Path
) -> None:
    """Of a body that hardly moves: its corners are not farther out than the excess says."""
    size, distance = ROUND[kind]
    path = tmp_path / "ball.ply"
    trimesh.creation.icosphere(subdivisions=4).export(str(path))
    file = path if kind == "mesh" else None
    links = chain("revolute", geometry=(shape("a", kind, size, at(0, 0, 0), path=file),))
    volume = swept_volume(pl.simulate(links, [0.0], until=0.1), tolerance=tolerance)
    out = distance(volume.mesh().vertices)
    assert np.all(out <= volume.excess + (5e-4 if kind == "mesh" else 1e-9))
    assert out.max() > 0.5 * volume.excess
    assert volume.excess <= tolerance
