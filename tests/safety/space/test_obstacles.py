"""Tests of `pinloop.safety.space.solids`: boxes and meshes, seen by a rod that swings past
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import trimesh

import pinloop as pl
from pinloop.safety.space.clearance import clearance
from pinloop.safety.space.solids import Obstacle

from .moving_bodies import LENGTH, THICK, swing


def box_mesh(size: Any, file: Path | None = None) -> Any:
    mesh = trimesh.creation.box(size)
    if file is None:
        return mesh
    mesh.export(str(file))
    return file


def test_a_box_by_any_name(tmp_path: Path) -> None:
    """A box, its mesh (convex: solid), a file of it, and one in millimetres."""
    size, where = np.array([0.2, 0.3, 0.4]), pin.SE3(pin.exp3(np.array([0.3, 0.2, 1.0])),
                                                       np.array([0.75, 0.75, 0.1]))  # fmt: skip
    obstacles = [
        Obstacle.box("box", size, where),
        Obstacle.mesh("mesh", box_mesh(size), where),
        Obstacle.mesh("file", box_mesh(size, tmp_path / "box.stl"), where),
        Obstacle.mesh("mm", str(box_mesh(1000 * size, tmp_path / "mm.ply")), where, scale=0.001),
    ]
    found = list(clearance(swing(), obstacles).values())
    assert found[0].distance > 0.01
    for one in found[1:]:
        assert one.distance == pytest.approx(found[0].distance, abs=1e-5)
        assert one.t == pytest.approx(found[0].t, abs=1e-3)


def ring() -> Any:
    """A tube about z, 0.4 m high, that a rod of 0.8 m length turns in with 2 cm to spare."""
    return trimesh.creation.annulus(r_min=0.85 / np.cos(np.pi / 128), r_max=1.0, height=0.4,
                                    sections=128)  # fmt: skip


def test_a_hole_stays_open() -> None:
    """The rod turns inside a tube whose hull it lies in."""
    found = clearance(swing(), Obstacle.mesh("tube", ring()))["tube"]
    # The tube is a prism: its sides are 0.85 m away in their middles.
    assert found.distance == pytest.approx(0.85 - LENGTH - THICK, abs=0.0012)
    assert found.at_least > 0.018


def test_what_is_inside_a_closed_mesh_touches_it() -> None:
    """The rod, shorter than the walls are thick, starts between them and never meets them."""
    thick = trimesh.creation.annulus(r_min=0.6, r_max=3.0, height=2.0, sections=64)
    assert not thick.is_convex
    move = pin.SE3(np.eye(3), np.array([1.0, 1.2, 0.0]))
    inside = clearance(swing(angle=0.2), Obstacle.mesh("walls", thick, move))["walls"]
    assert inside.touches
    assert inside.t == 0.0
    hole = clearance(swing(angle=0.2), Obstacle.mesh("walls", thick, (0.4, 0, 0)))["walls"]
    assert 0.1 < hole.distance < 0.2  # there it stays in the hole


def test_faces_that_look_inward_are_a_room() -> None:
    room = box_mesh((2.0, 3.0, 1.0))
    room.invert()
    found = clearance(swing(), Obstacle.mesh("room", room))["room"]
    assert found.distance == pytest.approx(1.0 - LENGTH - THICK, abs=0.001)


def test_placements_and_names() -> None:
    turned = pin.SE3(pin.exp3(np.array([0, 0, np.pi / 4])), np.array([1.0, 0, 0]))
    found = clearance(swing(angle=0.5), Obstacle.box("b", (0.2, 0.2, 1), turned))["b"]
    # The corner of the turned box points to the origin.
    assert found.distance == pytest.approx(1 - 0.1 * np.sqrt(2) - LENGTH - THICK, abs=0.001)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Obstacle.box("b", (1, 2)), r"size of obstacle 'b' has 3 numbers, not 2"),
        (lambda: Obstacle.box("b", (1, 2, 0)), "all lengths must be > 0"),
        (lambda: Obstacle.box("b", (1, 2, np.inf)), "size of obstacle 'b' is not finite"),
        (lambda: Obstacle.box("b", (1, 1, 1), "there"), "placement of obstacle 'b' is 'there'"),
        (lambda: Obstacle.sphere("s", -1.0, (0, 0, 0)), "the radius of obstacle 's' is -1.0"),
        (lambda: Obstacle.sphere("", 1.0, (0, 0, 0)), "the name of an obstacle is ''"),
        (lambda: Obstacle.mesh("m", "nowhere.stl"), "obstacle 'm': there is no mesh file 'nowhere"),
        (lambda: Obstacle.mesh("m", 3), "obstacle 'm' is int; give a file or a trimesh.Trimesh"),
        (
            lambda: Obstacle.mesh("m", box_mesh((1, 1, 1)), scale=0),
            "the scale of obstacle 'm' is 0",
        ),
        (lambda: Obstacle.mesh("m", trimesh.Trimesh()), "its mesh has no triangles"),
    ],
)
def test_impossible_obstacles(make: Any, message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        make()


def test_a_mesh_file_that_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.obj"
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(pl.BadValue, match=r"obstacle 'm'.*empty\.obj"):
        Obstacle.mesh("m", path)
