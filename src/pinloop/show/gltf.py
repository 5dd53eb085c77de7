"""Runs as animations of glTF 2.0 in one binary file, for Blender, slides, web pages and engines.

Bodies move as in the run; symbols of locks, and of loop joints that open, come and go.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..boundary.files import json_text, write_file
from ..boundary.marks import Array
from ..simulation.trajectory import Trajectory
from ..version import __version__
from .scene.motion import is_within, recorded_times
from .scene.replay import Additions, Replay, make_replay, quaternions_of
from .scene.run_page import LOCKED
from .scene.scene import Part
from .scene.solids import Color

_WHOLE = 2**31
"""Bytes that meshes may take: they are not simplified."""
_Z_UP = [-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
"""Turns z, which points up in robots, to y, which does so in glTF (x, y, z, w)."""
_FLOAT, _INTEGER = 5126, 5125
_KINDS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


def write_gltf(run: Trajectory, path: str | Path, rate: float) -> Path:
    """Write a run as a binary glTF file; see `Trajectory.to_gltf`."""
    t = recorded_times(run, rate)
    # Times are stored in 24 bits, and increase there.
    t = t[np.append(True, np.diff((t - t[0]).astype(np.float32)) > 0)]
    replay = make_replay(run, times=t, additions=Additions(ghosts=()), mesh_bytes=_WHOLE)
    document = _Document()
    _draw(document, replay, run(t[:1]).q[0])
    _animate(document, replay)
    return write_file(path, lambda file: file.write(document.binary()))


class _Document:
    """A file while it is made: the lists of its JSON, and the bytes of its numbers."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self._data = bytearray()
        self._materials: dict[Color, int] = {}

    def add(self, kind: str, **entry: Any) -> int:
        """Put an entry in a list; return its number."""
        entries = self.lists.setdefault(kind, [])
        entries.append(entry)
        return len(entries) - 1

    def add_numbers(self, values: NDArray[Any], component: int = _FLOAT, **view: int) -> int:
        """Store numbers, of shape (k,) or (k, n), each in 32 bits."""
        rows = values.astype("<f4" if component == _FLOAT else "<u4").reshape(len(values), -1)
        content = rows.tobytes()
        place = {"byteOffset": len(self._data), "byteLength": len(content)}
        self._data += content
        return self.add(
            "accessors",
            bufferView=self.add("bufferViews", buffer=0, **place, **view),
            componentType=component,
            count=len(rows),
            type=_KINDS[rows.shape[1]],
            **{"min": rows.min(axis=0).tolist(), "max": rows.max(axis=0).tolist()},
        )

    def add_part(self, part: Part, color: Color) -> int:
        """Draw a part of a robot on a node of its own."""
        points, corners, normals = part.triangles()
        arrays = {"POSITION": points, "NORMAL": normals}
        primitive = {
            "attributes": {
                name: self.add_numbers(rows, target=34962) for name, rows in arrays.items()
            },
            "indices": self.add_numbers(corners.ravel(), _INTEGER, target=34963),
            "material": self._material(color),
        }
        return self.add("nodes", name=part.path, mesh=self.add("meshes", primitives=[primitive]))

    def _material(self, color: Color) -> int:
        if color not in self._materials:
            shade, alpha = np.clip(color[:3], 0.0, 1.0), float(np.clip(color[3], 0.0, 1.0))
            # Files of robots have colours as screens do, glTF as light adds up.
            low, high = shade / 12.92, ((shade + 0.055) / 1.055) ** 2.4
            linear = np.where(shade <= 0.04045, low, high).tolist()
            surface: dict[str, Any] = {"metallicFactor": 0.1, "roughnessFactor": 0.6}
            surface |= {"baseColorFactor": [*linear, alpha]}
            blend = {"alphaMode": "BLEND"} if alpha < 1 else {}
            self._materials[color] = self.add("materials", pbrMetallicRoughness=surface, **blend)
        return self._materials[color]

    def binary(self) -> bytes:
        """The file."""
        asset = {"version": "2.0", "generator": f"pinloop {__version__}"}
        buffers = [{"byteLength": len(self._data)}]
        content = {"asset": asset, "scene": 0, "scenes": [{"nodes": [0]}], "buffers": buffers}
        text = json_text(content | self.lists, indent=None).encode()
        chunks = (b"JSON", text + b" " * (-len(text) % 4)), (b"BIN\0", bytes(self._data))
        body = b"".join(_word(len(data)) + kind + data for kind, data in chunks)
        return b"glTF" + _word(2) + _word(12 + len(body)) + body


def _word(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _draw(document: _Document, replay: Replay, q: Array) -> None:
    """The robot as it is at ``q``, on nodes with the names of those of the scene."""
    scene = replay.scene
    top = document.add("nodes", name=scene.robot.name, rotation=_Z_UP, children=[])
    locks = set(chain.from_iterable(scene.marks.values()))
    matrices = np.array(scene.placements(q))
    turns = quaternions_of(matrices[None, :, :3, :3])[0]
    for k, node in enumerate(scene.nodes):
        parts = [part for part in scene.parts if part.node == k]
        drawn = [document.add_part(p, LOCKED if p.path in locks else p.color) for p in parts]
        place = {"translation": matrices[k, :3, 3].tolist(), "rotation": turns[k].tolist()}
        number = document.add(
            "nodes", name=node.path, **place, **({"children": drawn} if drawn else {})
        )
        document.lists["nodes"][top]["children"].append(number)


def _animate(document: _Document, replay: Replay) -> None:
    """Places and turns of nodes, and a size of 0 of what is not seen."""
    numbers = {node["name"]: k for k, node in enumerate(document.lists["nodes"])}
    tracks: list[tuple[str, str, str, Array]] = []
    for k, path in enumerate(replay.paths):
        tracks.append((path, "translation", "LINEAR", replay.positions[:, k]))
        tracks.append((path, "rotation", "LINEAR", replay.quaternions[:, k]))
    comes, goes = (replay.standing, replay.scene.marks), (replay.opened, replay.scene.loops)
    for (spans, paths), inside in ((comes, True), (goes, False)):
        for name, own in spans.items():
            seen = [is_within(own, float(t), float(replay.t[-1])) is inside for t in replay.t]
            sizes = np.repeat(np.array(seen, dtype=float)[:, None], 3, axis=1)
            tracks += [(path, "scale", "STEP", sizes) for path in paths[name]]
    if not tracks:
        return
    times, samplers, channels = document.add_numbers(replay.t - replay.t[0]), [], []
    for k, (path, what, kind, values) in enumerate(tracks):
        samplers.append(
            {"input": times, "interpolation": kind, "output": document.add_numbers(values)}
        )
        channels.append({"sampler": k, "target": {"node": numbers[path], "path": what}})
    name = replay.scene.robot.name
    document.add("animations", name=name, samplers=samplers, channels=channels)
