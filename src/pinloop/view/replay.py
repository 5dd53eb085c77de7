"""A motion to be played: what is drawn, where it is over time, which joints stand when.

Data only, made from a run; the page that plays it is in `player`. Poses are kept at even times and
where the run changes its mode, as whole numbers of 16 bits: 0.03 mm on 2 m, 0.002 degrees.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..trajectory import Trajectory
from .commands import Command, packed, phong, set_object
from .lighter import lighter
from .scene import Node, Scene, make_scene
from .solids import Color, facets, tube
from .stage import stage

__all__ = ["Layer", "Replay", "Trace", "frame_times", "make_replay", "standing_spans"]

Array = NDArray[np.float64]

_RATE, _FEWEST, _MOST = 60.0, 40, 2400
"""Frames per second of motion, and how many there are at least and at most."""
_MESH_BYTES = 4_500_000
"""What the meshes of a robot may take; base64 adds a third."""
_STILL = 1e-9
"""What moves less than this [m, 1] does not move."""


@dataclass(frozen=True)
class Trace:
    """The path of a point, drawn as a line.

    Args:
        frame: the frame or body whose origin it is.
        color: its colour.
        start: from then on [s].
        end: until then [s].
    """

    frame: str
    color: Color
    start: float = -np.inf
    end: float = np.inf


@dataclass(frozen=True, eq=False)
class Layer:
    """A translucent surface that does not move.

    Args:
        label: what it is, for the switch that shows it.
        vertices: points in the world [m], shape (n, 3).
        faces: three points each, anticlockwise from outside, shape (m, 3).
        color: its colour and opacity.
    """

    label: str
    vertices: Array
    faces: NDArray[np.int64]
    color: Color


@dataclass(frozen=True, eq=False)
class Replay:
    """A motion to be played; made by `make_replay`.

    Args:
        name: name of the robot.
        commands: what draws the scene as it is at the start.
        t: times of the frames [s], shape (k,).
        paths: nodes that move, n of them.
        positions: their places in the world [m], shape (k, n, 3).
        quaternions: their orientations (x, y, z, w), shape (k, n, 4).
        standing: per marked joint the spans of time [s] in which it is locked.
        marks: per marked joint the paths of its symbols.
        ghost: groups that are drawn once more, as they are at the start; empty for no ghost.
        layers: paths, labels and opacities of translucent surfaces.
        traces: whether there are traces.
        cell: size of the cells in which vertices of meshes were joined to save space [m], or 0.
    """

    name: str
    commands: tuple[Command, ...]
    t: Array
    paths: tuple[str, ...]
    positions: Array
    quaternions: Array
    standing: dict[str, tuple[tuple[float, float], ...]]
    marks: dict[str, tuple[str, ...]]
    ghost: tuple[str, ...]
    layers: tuple[tuple[str, str, float], ...]
    traces: bool
    cell: float

    def data(self) -> dict[str, Any]:
        """Everything for the page, in what JSON knows."""
        low = self.positions.min(axis=0, initial=np.inf) if self.paths else np.zeros((0, 3))
        step = (self.positions.max(axis=0) - low) / 65535 if self.paths else np.zeros((0, 3))
        cells = np.round((self.positions - low) / np.where(step > 0, step, 1.0)).astype("<u2")
        turns = np.round(32767 * self.quaternions).astype("<i2")
        return {
            "commands": [_text(packed(command)) for command in self.commands],
            "times": self.t.tolist(),
            "paths": list(self.paths),
            "low": low.tolist(),
            "step": step.tolist(),
            "positions": _text(cells.tobytes()),
            "quaternions": _text(turns.tobytes()),
            "joints": [
                {
                    "name": name,
                    "paths": list(self.marks[name]),
                    "standing": [list(s) for s in spans],
                }
                for name, spans in self.standing.items()
            ],
            "ghost": list(self.ghost),
            "layers": [
                {"path": path, "label": label, "opacity": opacity}
                for path, label, opacity in self.layers
            ],
            "traces": self.traces,
        }


def make_replay(
    run: Trajectory,
    *,
    until: float = np.inf,
    marked: Iterable[str] | None = None,
    traces: Sequence[Trace] = (),
    layers: Sequence[Layer] = (),
    ghost: bool = True,
) -> Replay:
    """Make a replay of a run.

    Args:
        run: the motion.
        until: end of what is played [s], if the run lasts longer.
        marked: joints whose symbols show whether they stand; by default those that are locked at
            some time.
        traces: paths of points.
        layers: translucent surfaces.
        ghost: whether the pose at the start is shown too.
    """
    spans = standing_spans(run)
    names = tuple(spans) if marked is None else tuple(marked)
    scene = make_scene(run.robot, marked=names)
    parts, cell = lighter(scene.parts, _MESH_BYTES)
    scene = replace(scene, parts=parts)
    t = frame_times(run, until)
    q = run(t).q
    matrices = np.array([scene.placements(one) for one in q]).reshape(len(t), -1, 4, 4)
    moves = np.flatnonzero(np.ptp(matrices, axis=0).max(axis=(1, 2)) > _STILL)
    moving = matrices[:, moves]
    points = np.vstack([scene.points(one) for one in q[[0, len(t) // 2, -1]]])
    thickness = 0.003 * max(float(np.ptp(points, axis=0).max()), 1e-3)
    drawn = [
        (f"traces/{k}", tube(_path(run, t, trace), thickness), trace.color)
        for k, trace in enumerate(traces)
    ]
    points = np.vstack([points, *(solid.corners for _, solid, _ in drawn)])
    return Replay(
        name=run.robot.name,
        commands=(
            *stage(points),
            *scene.drawing(),
            *scene.placing(q[0]),
            *(set_object(path, solid, _paint(color), np.eye(4)) for path, solid, color in drawn),
            *(_surface(f"layers/{k}", layer) for k, layer in enumerate(layers)),
        ),
        t=t,
        paths=tuple(scene.nodes[k].path for k in moves),
        positions=moving[:, :, :3, 3],
        quaternions=_quaternions(moving[:, :, :3, :3]),
        standing={name: spans.get(name, ()) for name in names},
        marks={name: scene.marks[name] for name in names},
        ghost=_groups(scene) if ghost else (),
        layers=tuple((f"layers/{k}", one.label, one.color[3]) for k, one in enumerate(layers)),
        traces=bool(drawn),
        cell=cell,
    )


def frame_times(run: Trajectory, until: float = np.inf) -> Array:
    """Times of the frames of a run [s]: even ones, and those at which its mode changes."""
    start, end = float(run.t[0]), max(min(float(run.t[-1]), until), float(run.t[0]))
    count = int(np.clip(np.ceil(_RATE * (end - start)), _FEWEST, _MOST))
    changes = run.t[1:][np.diff(run.mode) != 0]
    changes = changes[changes < end][:: 1 + len(changes) // _MOST]
    return np.union1d(np.linspace(start, end, count + 1), changes)


def standing_spans(run: Trajectory) -> dict[str, tuple[tuple[float, float], ...]]:
    """Per joint that is locked as a whole at some time the spans in which it is, in s."""
    found: dict[str, list[tuple[float, float]]] = {}
    ends = np.append(run.t[1:], run.t[-1])
    for number, start, end in zip(run.mode, run.t, ends, strict=True):
        for lock in run.modes[number].locks:
            if lock.axes:
                continue
            spans = found.setdefault(lock.joint, [])
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], float(end))
            else:
                spans.append((float(start), float(end)))
    # A joint that sticks for no time at all, because others decide otherwise, does not stand.
    last = float(run.t[-1])
    kept = {
        name: tuple((a, b) for a, b in spans if b > a or a == last) for name, spans in found.items()
    }
    return {name: kept[name] for name in run.robot.joints if kept.get(name)}


def _groups(scene: Scene) -> tuple[str, ...]:
    """Groups of nodes that are the robot itself."""
    names = dict.fromkeys(node.path.split("/")[0] for node in scene.nodes)
    return tuple(name for name in names if name != "joints")


def _quaternions(rotations: Array) -> Array:
    """Quaternions (x, y, z, w), each in the half space of the one before it.

    Args:
        rotations: shape (k, n, 3, 3).
    """
    found = np.array([[pin.Quaternion(R).coeffs() for R in frame] for frame in rotations])
    found = found.reshape(*rotations.shape[:2], 4)
    signs = np.where(np.sum(found[1:] * found[:-1], axis=2) < 0, -1.0, 1.0)
    found[1:] *= np.cumprod(signs, axis=0)[:, :, None]
    return found


def _path(run: Trajectory, t: Array, trace: Trace) -> Array:
    """Path of a point [m], shape (m, 3)."""
    start, end = max(trace.start, float(t[0])), min(trace.end, float(t[-1]))
    times = np.unique([start, *t[(t > start) & (t < end)], max(start, end)])
    point = Scene(run.robot, (Node("", run.robot.frame_id(trace.frame)),), (), ())
    return np.array([point.placements(q)[0][:3, 3] for q in run(times).q])


def _paint(color: Color) -> dict[str, Any]:
    """Material of a line: the same from all sides, over whatever hides it."""
    return phong(color, in_front=True) | {"type": "MeshBasicMaterial"}


def _surface(path: str, layer: Layer) -> Command:
    """The command that draws a translucent surface."""
    material = phong(layer.color) | {"flatShading": True}
    return set_object(path, facets(layer.vertices, layer.faces), material, np.eye(4))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
