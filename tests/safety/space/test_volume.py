"""Tests of `pinloop.safety.space.swept`: meshes, files, points, and the volume of known unions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

import pinloop as pl
from pinloop.safety.space.hulls import build_hull
from pinloop.safety.space.swept import SweptVolume, swept_volume

from ...screw_tables import Array
from .moving_bodies import at, chain, shape


def box(low: Array, high: Array) -> Array:
    """Corners of a box."""
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1])
                     for z in (low[2], high[2])])  # fmt: skip


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_the_volume_of_boxes_that_overlap(axes: tuple[int, ...]) -> None:
    """Two boxes with one corner in each other, one inside both, one apart: whichever way round."""
    pairs = [
        ((0, 0, 0), (1, 2, 0.5)), ((0.5, 1, 0.2), (1.5, 3, 0.7)),
        ((0.6, 1.2, 0.3), (0.8, 1.4, 0.4)), ((3, 0, 0), (3.5, 0.5, 0.1)),
    ]  # fmt: skip
    hulls = [build_hull(box(*np.array(pair, float)[:, axes])) for pair in pairs]
    volume = SweptVolume({"a": tuple(hulls[:2]), "b": tuple(hulls[2:])}, 0.0, 0.0, {})
    exact = 1.0 + 1.0 - 0.5 * 1 * 0.3 + 0.025
    assert volume.volume == pytest.approx(exact, rel=0.01)
    assert volume.triangles == 48


def test_the_volume_of_a_ball_in_many_pieces() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    # Slices that overlap; their union is the ball, less what lies between its points.
    slices = [
        build_hull(points[np.abs(points @ [0.6, 0, 0.8] - middle) < 0.2])
        for middle in np.linspace(-1, 1, 21)
    ]
    volume = SweptVolume({"a": tuple(slices)}, 0.0, 0.0, {})
    assert volume.volume == pytest.approx(4 / 3 * np.pi, rel=0.01)


@pytest.fixture(scope="module")
def small() -> SweptVolume:
    bar = shape("a", "box", (1.0, 0.1, 0.06), at(0.5, 0, 0))
    turning = pl.simulate(chain("revolute", geometry=(bar,)), [0.0], [5.0], until=0.08)
    return swept_volume(turning, tolerance=0.01)


def test_meshes_are_convex_and_closed(small: SweptVolume) -> None:
    assert [len(pieces) for pieces in small.meshes.values()] == [len(small.parts["a"])]
    for piece in small.meshes["a"]:
        assert piece.is_watertight
        assert piece.is_convex
        assert piece.volume > 0
    assert len(small.mesh().faces) == small.triangles
    assert np.allclose(small.mesh().bounds, small.bounds)


@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "glb", "STL"])
def test_files(small: SweptVolume, suffix: str, tmp_path: Path) -> None:
    path = small.export(tmp_path / f"swept.{suffix}")
    read = trimesh.load_scene(str(path))
    assert np.allclose(read.bounds, small.bounds, atol=1e-6)
    assert sum(len(part.faces) for part in read.geometry.values()) == small.triangles
    if suffix == "glb":
        assert list(read.geometry) == ["a"]


def test_an_unknown_suffix(small: SweptVolume, tmp_path: Path) -> None:
    with pytest.raises(pl.BadValue, match=r"'swept\.step'; use \.stl, \.ply, \.obj, \.glb"):
        small.export(tmp_path / "swept.step")


def test_points_that_are_none(small: SweptVolume) -> None:
    assert small.contains([0.5, 0.05, 0.0]).tolist() == [True]
    for wrong in ([1.0, 2.0], "here", [[0.0, np.nan, 0.0]]):
        with pytest.raises(pl.BadValue, match="points"):
            small.contains(wrong)
    with pytest.raises(pl.BadValue, match="'b' has no part in the swept volume; known: a"):
        small.mesh("b")
