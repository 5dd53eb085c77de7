"""Mesh files: the one place that hands them to trimesh. Knows no robot.

What is read is checked before (`files`): a regular file up to a size that the message names, since
a mesh is read more than once; so are the materials and pictures beside it that it names.
"""

from __future__ import annotations

import logging
import stat
import warnings
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import lazy_loader
import numpy as np

from ..errors import BadValue, LoadError, PinloopError, shown
from .files import read_bytes
from .marks import Array, Integers, Mask

trimesh = lazy_loader.load("trimesh")
# It logs what is wrong with a file, with tracebacks, before it reads the file in another way.
logging.getLogger("trimesh").addHandler(logging.NullHandler())

_LARGEST = 2**27
"""Bytes of a mesh file."""
_MOST = 2_000_000
"""Triangles of a mesh file: it takes 0.1 kB per triangle to read, and 1 kB to work with."""
_FARTHEST = 1e10
"""Largest coordinate of a mesh: trimesh merges points in steps of 1e-8, counted in 64 bits."""
_ARCHIVES = (".zip", ".3mf", ".3dxml", ".zae", ".gz", ".bz2", ".xz", ".tar", ".usdz")
"""Ends of names of files that hold others."""
_MIXERS = np.random.default_rng(0).integers(2**63, size=9, dtype=np.uint64) | np.uint64(1)
"""Odd factors by which the nine numbers of a triangle are added up."""


def read_mesh_file(path: str | Path) -> bytes:
    """Return the content of a mesh file, which is a regular one; a `LoadError` says why not."""
    try:
        regular = stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):
        regular = True  # the reader says why
    if not regular and not Path(path).is_dir():
        raise LoadError("is a pipe or a device; a mesh is a file", source=str(path))
    return read_bytes(path, "mesh file", _LARGEST)


def read_mesh_parts(path: Path, *, exactly: bool = False) -> list[Any]:
    """Return the parts of a mesh file that have triangles, placed as the file says.

    Each is a ``trimesh.Trimesh`` in the unit of the file, whose points are finite. Equal vertices
    are merged, and of triangles that are there several times one is left, unless it is to be read
    ``exactly``. A `BadValue` says why the file cannot be read.
    """
    try:
        content = read_mesh_file(path)
        _check_archive(content, path)
        if path.suffix.lower() == ".msh" and not content.startswith(b"$MeshFormat"):
            parts = [_mujoco_mesh(content)]
        else:
            parts = _trimesh_parts(content, path)
        for part in parts:
            _check_part(part)
    except PinloopError as error:
        raise BadValue(f"the mesh cannot be read: {error}") from None
    except Exception as error:
        # Each of the many mesh formats fails in its own way.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadValue(f"the mesh {path} cannot be read: {reason}") from None
    count = sum(len(part.faces) for part in parts)
    if count > _MOST:
        raise BadValue(
            f"the mesh {path} has {count} triangles, more than {_MOST}; give a simplified one"
        )
    if not exactly:
        for part in parts:
            part.update_faces(_first_of_equal(part.triangles))
            part.process(validate=False)
    parts = [part for part in parts if len(part.faces)]
    if not parts:
        raise BadValue(f"the mesh {path} holds no triangles")
    return parts


def _check_part(part: Any) -> None:
    """Refuse what readers of trimesh let through."""
    vertices, faces = np.asarray(part.vertices), np.asarray(part.faces)
    if vertices.shape[1:] != (3,):
        raise ValueError("its points do not have three coordinates each")
    if not np.all(np.abs(vertices) < _FARTHEST):
        raise ValueError(f"it has points farther than {_FARTHEST:g} from its origin")
    if faces.size and not 0 <= faces.min() <= faces.max() < len(vertices):
        raise ValueError("it has faces of other than its vertices")


def _mujoco_mesh(content: bytes) -> Any:
    """A mesh in MuJoCo's own binary form: four counts, and what they count, in 4 bytes each.

    These are vertices, normals, texture coordinates, and faces (three indices).
    """
    counts = np.frombuffer(content[:16], dtype="<i4").astype(np.int64)
    lengths = counts * (3, 3, 2, 3)
    if len(counts) != 4 or counts.min() < 0 or 16 + 4 * lengths.sum() != len(content):
        raise ValueError("its length is not that of a mesh of MuJoCo")
    vertices = np.frombuffer(content, "<f4", lengths[0], 16).reshape(-1, 3)
    faces = np.frombuffer(content, "<i4", lengths[3], 16 + 4 * lengths[:3].sum()).reshape(-1, 3)
    return trimesh.Trimesh(vertices.astype(float), faces.astype(np.int64), process=False)


def _check_archive(content: bytes, path: Path) -> None:
    """Refuse compressed files that would not fit into memory once they are unpacked.

    What is unpacked is at most what the directory of an archive declares: `zipfile` stops there.
    """
    if content.startswith((b"BZh", b"\x1f\x8b")):
        raise LoadError("is compressed as a whole; unpack it", source=str(path))
    if not content.startswith(b"PK\x03\x04"):
        return
    with ZipFile(BytesIO(content)) as archive:
        members = archive.infolist()
    if sum(member.file_size for member in members) > _LARGEST:
        raise LoadError(f"holds more than {_LARGEST >> 20} MiB when unpacked", source=str(path))
    for member in members:
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise LoadError("is not compressed by deflate; pack it so", source=str(path))
        if PurePath(member.filename).suffix.lower() in _ARCHIVES:
            raise LoadError(f"holds another archive, {shown(member.filename)}", source=str(path))


def _trimesh_parts(content: bytes, path: Path) -> list[Any]:
    with warnings.catch_warnings():
        # What a reader of meshes deprecates is not this user's concern.
        warnings.simplefilter("ignore")
        scene = trimesh.load_scene(
            BytesIO(content), file_type=path.suffix[1:], resolver=_Beside(path), process=False
        )
        return [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]


def join_meshes(meshes: Iterable[tuple[Array, Integers]]) -> tuple[Array, Integers]:
    """Several meshes as one: points, shape (n, 3), and triangles, shape (m, 3)."""
    points, faces = trimesh.util.append_faces(*zip(*meshes, strict=True))
    return points, faces.astype(np.int64)


def outward_faces(hull: Any) -> Integers:
    """Triangles of a ``scipy.spatial.ConvexHull``, anticlockwise from outside, shape (m, 3)."""
    faces = np.asarray(hull.simplices, dtype=np.int64)
    a, b, c = (hull.points[faces[:, corner]] for corner in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward, ::-1]
    return faces


def mesh_unit(path: Path, part: Any) -> float:
    """Metres per unit of a mesh file: COLLADA says it, the other formats are taken for metres."""
    words = str(part.metadata.get("units", "meters")).split("*")
    return float(words[0]) if path.suffix.lower() == ".dae" and len(words) == 2 else 1.0


def _first_of_equal(triangles: Array) -> Mask:
    """Mark the triangles, shape (n, 3, 3), that are there for the first time, corner by corner."""
    rows = np.ascontiguousarray(triangles.reshape(-1, 9), dtype=float) + 0.0
    # Signs and exponents are the highest bits, which a product would lose if they were not folded.
    bits = rows.view(np.uint64)
    sums = ((bits ^ (bits >> np.uint64(32))) * _MIXERS).sum(axis=1, dtype=np.uint64)
    _, first, numbers = np.unique(sums, return_index=True, return_inverse=True)
    # Different triangles with equal sums are not to be expected, but nothing may be lost by them.
    same = (bits == bits[first[numbers]]).all(axis=1)
    marks = ~same
    marks[first] = True
    return np.asarray(marks)


class _Beside:
    """Files beside a mesh that it names: materials, pictures, buffers."""

    def __init__(self, path: Path) -> None:
        self.file_name = path.name
        self._folder = path.parent.resolve()

    def get(self, name: str) -> bytes:
        """Return the content of a file in the folder of the mesh; asked for by trimesh."""
        given = name.strip()
        for candidate in (given, given.lstrip("/"), given.replace("\\", "/").rpartition("/")[2]):
            path = (self._folder / candidate).resolve()
            if path.is_relative_to(self._folder) and path.exists():
                return read_mesh_file(path)
        raise FileNotFoundError(name)

    __getitem__ = get
