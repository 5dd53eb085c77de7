"""Mesh files: checked before they are read, and read by one function."""

from __future__ import annotations

import bz2
import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trimesh

import pinloop as pl
from pinloop.boundary import meshes
from pinloop.boundary.meshes import read_mesh_parts
from pinloop.safety.space.solids import collect_pieces


def with_mesh(mesh: Path) -> pl.Mechanism:
    shape = f'<geometry><mesh filename="{mesh}"/></geometry>'
    return pl.load(
        f"""<robot name="r"><link name="base"/><link name="arm">
        <inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <visual>{shape}</visual><collision>{shape}</collision></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    )


USES: dict[str, Callable[[Path], object]] = {
    "links": lambda mesh: collect_pieces(with_mesh(mesh), 0.001),
    "obstacle": lambda mesh: pl.Obstacle.mesh("table", mesh),
    "masses": lambda mesh: pl.load(
        f"""<mujoco><asset><mesh name="m" file="{mesh}"/></asset><worldbody><body name="arm">
        <joint name="j"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    ),
}


@pytest.mark.parametrize("use", USES)
def test_what_is_too_large_is_refused_unread(use: str, tmp_path: Path) -> None:
    huge = tmp_path / "huge.stl"
    with huge.open("wb") as file:
        file.truncate(2**27 + 1)  # takes no room on the disk
    with pytest.raises(pl.PinloopError, match=r"huge\.stl: is larger than 128 MiB"):
        USES[use](huge)


def test_pinocchio_gets_no_huge_mesh(tmp_path: Path) -> None:
    huge = tmp_path / "huge.stl"
    with huge.open("wb") as file:
        file.truncate(2**27 + 1)
    models = pl.to_pinocchio(with_mesh(huge))
    assert sum("is larger than 128 MiB" in sentence for sentence in models.cannot) == 2


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
def test_pipes_and_devices_are_no_meshes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.stl"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(pl.BadValue, match="is a pipe or a device; a mesh is a file"):
            read_mesh_parts(path)
    mesh = tmp_path / "box.obj"
    trimesh.creation.box().export(mesh)
    mesh.write_text(f"mtllib pipe.mtl\n{mesh.read_text()}")
    os.mkfifo(tmp_path / "pipe.mtl")
    assert len(read_mesh_parts(mesh)[0].faces) == 12  # without its material


def test_too_many_triangles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = tmp_path / "ball.stl"
    trimesh.creation.icosphere(2).export(mesh)
    monkeypatch.setattr(meshes, "_MOST", 300)
    with pytest.raises(pl.BadValue, match="has 320 triangles, more than 300; give a simplified"):
        read_mesh_parts(mesh)


@pytest.mark.parametrize("ending", ["stl", "obj", "ply"])
def test_equal_triangles_are_taken_once(ending: str, tmp_path: Path) -> None:
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    mesh = tmp_path / f"box.{ending}"
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(12), 50))
    trimesh.Trimesh(box.vertices, box.faces[order], process=False).export(mesh)
    (part,) = read_mesh_parts(mesh)
    assert len(part.faces) == 12 and part.is_watertight
    assert part.volume == pytest.approx(0.006)
    assert len(read_mesh_parts(mesh, exactly=True)[0].faces) == 600


def test_triangles_whose_sums_are_equal_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "_MIXERS", np.zeros(9, dtype=np.uint64))
    triangles = np.arange(36.0).reshape(4, 3, 3)
    assert meshes._first_of_equal(triangles).all()
    assert meshes._first_of_equal(triangles[[0, 0, 0]]).tolist() == [True, False, False]


def packed(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def triangle() -> bytes:
    return bytes(trimesh.Trimesh(np.eye(3), [[0, 1, 2]]).export(file_type="stl"))


@pytest.mark.parametrize("ending", ["zip", "3mf", "zae"])
def test_archives_are_limited_by_what_is_in_them(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meshes, "_LARGEST", 2**20)
    path = packed(tmp_path / f"m.{ending}", {"a.stl": bytes(2**19), "b.stl": bytes(2**19 + 1)})
    assert path.stat().st_size < 2**12
    with pytest.raises(pl.BadValue, match="holds more than 1 MiB when unpacked"):
        read_mesh_parts(path)


def test_an_archive_cannot_hold_more_than_it_declares(tmp_path: Path) -> None:
    path = packed(tmp_path / "m.zip", {"a.stl": bytes(2**20)})
    size = (2**20).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (84).to_bytes(4, "little")))
    with pytest.raises(pl.BadValue, match="Bad CRC-32"):
        read_mesh_parts(path)


def test_ways_of_packing(tmp_path: Path) -> None:
    (part,) = read_mesh_parts(packed(tmp_path / "good.zip", {"a.stl": triangle()}))
    assert len(part.faces) == 1
    inside = packed(tmp_path / "inside.zip", {"a.stl": triangle()}).read_bytes()
    for path, problem in (
        (packed(tmp_path / "m.zip", {"a.zip": inside}), "holds another archive, 'a.zip'"),
        (packed(tmp_path / "x.zip", {"a.stl": triangle()}, zipfile.ZIP_LZMA), "by deflate"),
    ):
        with pytest.raises(pl.BadValue, match=problem):
            read_mesh_parts(path)
    for whole in ("a.stl.bz2", "a.tar.gz"):
        path = tmp_path / whole
        path.write_bytes((bz2 if whole.endswith("bz2") else gzip).compress(triangle()))
        with pytest.raises(pl.BadValue, match="is compressed as a whole; unpack it"):
            read_mesh_parts(path)


def mujoco_mesh(folder: Path, cut: int = 0) -> Path:
    """A box of 1 x 2 x 3 in MuJoCo's binary form, with normals and texture coordinates."""
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    counts = [len(box.vertices), len(box.vertices), len(box.vertices), len(box.faces)]
    content = b"".join(
        np.asarray(part, dtype=kind).tobytes()
        for part, kind in (
            (counts, "<i4"), (box.vertices, "<f4"), (box.vertex_normals, "<f4"),
            (np.zeros((len(box.vertices), 2)), "<f4"), (box.faces, "<i4"),
        )
    )  # fmt: skip
    path = folder / "box.msh"
    path.write_bytes(content[: len(content) - cut])
    return path


def test_meshes_of_mujoco(tmp_path: Path) -> None:
    path = mujoco_mesh(tmp_path)
    (part,) = read_mesh_parts(path)
    assert part.volume == pytest.approx(6.0) and len(part.faces) == 12
    robot: pl.Mechanism = USES["masses"](path)  # type: ignore[assignment]
    assert robot.description.bodies[0].mass == pytest.approx(6000.0)
    with pytest.raises(pl.BadValue, match="not that of a mesh of MuJoCo"):
        read_mesh_parts(mujoco_mesh(tmp_path, cut=4))
