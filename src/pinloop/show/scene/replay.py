"""A motion to be played: what is drawn, where it is over time, which joints stand when.

Data only, made from a run; the page that plays it is in `player`. Poses are kept at even times and
where the run changes its mode, as whole numbers of 16 bits: 0.03 mm on 2 m, 0.002 degrees. Forces
are kept likewise, as parts of the largest one.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...simulation.trajectory import Trajectory
from ...tolerances import STILL
from .arrows import Arrow, round_scale
from .commands import Command, packed, phong, set_object
from .decimation import decimate
from .lighting import light_scene
from .motion import frame_times, mode_spans, modes_at, opened_spans, standing_spans
from .scene import Node, Scene, make_scene
from .solids import Color, Solid, cone, cylinder, facets, tube

__all__ = ["FORCE", "MESH_BYTES", "MOMENT", "Layer", "Replay", "Trace", "make_replay"]

Array = NDArray[np.float64]

MESH_BYTES = 4_500_000
"""What the meshes of a robot may take; base64 adds a third."""
_TRACE_POINTS = 1600
"""Points of all lines together: what a picture can show."""
FORCE: Color = (0.04, 0.49, 0.24, 1.0)
MOMENT: Color = (0.48, 0.24, 0.72, 1.0)
"""Colours of arrows."""
_ARROW = 0.35
"""Length of the longest arrow over that of the robot."""


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
        opened: per loop joint that opens the spans of time [s] in which it is open.
        loops: per loop joint that opens the paths of its symbols.
        ghost: groups that are drawn once more; empty for no ghost.
        ghosts: times at which they are drawn once more [s].
        layers: paths, labels and opacities of translucent surfaces.
        traces: whether there are traces.
        arrows: forces and moments at the times of the frames.
        scales: N and N m per m of an arrow, or 0 where there is none.
        events: what happened when [s].
        modes: when what is locked and open changes [s], and what it is from then on.
        jumps: frames at which the mode is another one than just before.
        size: length of everything that is shown [m].
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
    opened: dict[str, tuple[tuple[float, float], ...]]
    loops: dict[str, tuple[str, ...]]
    ghost: tuple[str, ...]
    ghosts: tuple[float, ...]
    layers: tuple[tuple[str, str, float], ...]
    traces: bool
    arrows: tuple[Arrow, ...]
    scales: tuple[float, float]
    events: tuple[tuple[float, str], ...]
    modes: tuple[tuple[float, str], ...]
    jumps: tuple[int, ...]
    size: float
    cell: float

    def data(self) -> dict[str, Any]:
        """Everything for the page, in what JSON knows."""
        low, step, cells = _in_cells(self.positions)
        turns = np.round(32767 * self.quaternions).astype("<i2")
        return {
            "commands": [_text(packed(command)) for command in self.commands],
            "times": self.t.tolist(),
            "paths": list(self.paths),
            "low": low.tolist(),
            "step": step.tolist(),
            "positions": cells,
            "quaternions": _text(turns.tobytes()),
            "joints": [
                {
                    "name": name,
                    "paths": list(self.marks[name]),
                    "standing": [list(s) for s in spans],
                }
                for name, spans in self.standing.items()
            ],
            "loops": [
                {"name": name, "paths": list(self.loops[name]), "open": [list(s) for s in spans]}
                for name, spans in self.opened.items()
            ],
            "ghost": list(self.ghost),
            "ghosts": list(self.ghosts),
            "layers": [
                {"path": path, "label": label, "opacity": opacity}
                for path, label, opacity in self.layers
            ],
            "traces": self.traces,
            "arrows": [self._arrow(arrow) for arrow in self.arrows],
            "events": [list(event) for event in self.events],
            "modes": [list(mode) for mode in self.modes],
            "jumps": list(self.jumps),
            "size": self.size,
        }

    def _arrow(self, arrow: Arrow) -> dict[str, Any]:
        """An arrow for the page: its vector in metres as parts of the largest one."""
        low, step, cells = _in_cells(arrow.start)
        scale = self.scales[arrow.moment]
        parts = np.round(32767 * arrow.vector / (arrow.largest or 1.0)).astype("<i2")
        return {
            "name": arrow.name,
            "moment": arrow.moment,
            "low": low.tolist(),
            "step": step.tolist(),
            "start": cells,
            "vector": _text(parts.tobytes()),
            "largest": arrow.largest,
            "scale": scale,
        }


def make_replay(
    run: Trajectory,
    *,
    until: float = np.inf,
    times: Array | None = None,
    marked: Iterable[str] | None = None,
    traces: Sequence[Trace] = (),
    layers: Sequence[Layer] = (),
    ghosts: Sequence[float] | None = None,
    arrows: Sequence[Arrow] = (),
    events: Sequence[tuple[float, str]] = (),
    mesh_bytes: int = MESH_BYTES,
) -> Replay:
    """Make a replay of a run.

    Args:
        run: the motion.
        until: end of what is played [s], if the run lasts longer.
        times: times of the frames [s], shape (k,); by default those of `frame_times`.
        marked: joints whose symbols show whether they stand; by default those that are locked at
            some time.
        traces: paths of points.
        layers: translucent surfaces.
        ghosts: times of poses that are shown too [s]; the start by default.
        arrows: forces at the times of the frames.
        events: what is marked on the bar of time.
        mesh_bytes: what the meshes may take.
    """
    spans, opened = standing_spans(run), opened_spans(run)
    names = tuple(spans) if marked is None else tuple(marked)
    scene = make_scene(run.robot, marked=names)
    parts, cell = decimate(scene.parts, mesh_bytes)
    scene = replace(scene, parts=parts)
    t = frame_times(run, until) if times is None else times
    q = run(t).q
    matrices = scene.placements_over(q)
    moves = np.flatnonzero(np.ptp(matrices, axis=0).max(axis=(1, 2)) > STILL)
    moving = matrices[:, moves]
    points = np.vstack([scene.points(pose) for pose in q[[0, len(t) // 2, -1]]])
    size = max(float(np.ptp(points, axis=0).max()), 1e-3)
    ways = [tube(_path(run, t, trace, len(traces)), 0.003 * size) for trace in traces]
    points = np.vstack([points, *(way.corners for way in ways)])
    shown = ghosts if ghosts is not None else (float(t[0]),)
    picture = [*light_scene(points), *scene.drawing(), *scene.placing(q[0])]
    picture += [_line(k, *path) for k, path in enumerate(zip(ways, traces, strict=True))]
    picture += [_surface(f"layers/{k}", layer) for k, layer in enumerate(layers)]
    picture += [command for k, arrow in enumerate(arrows) for command in _drawn(k, arrow, size)]
    return Replay(
        name=run.robot.name,
        commands=tuple(picture),
        t=t,
        paths=tuple(scene.nodes[k].path for k in moves),
        positions=moving[:, :, :3, 3],
        quaternions=_quaternions(moving[:, :, :3, :3]),
        standing={name: spans.get(name, ()) for name in names},
        marks={name: scene.marks[name] for name in names},
        opened=opened,
        loops={name: scene.loops[name] for name in opened},
        ghost=_groups(scene) if shown else (),
        ghosts=tuple(shown),
        layers=tuple(
            (f"layers/{k}", layer.label, layer.color[3]) for k, layer in enumerate(layers)
        ),
        traces=bool(ways),
        arrows=tuple(arrows),
        scales=(_scale(arrows, False, size), _scale(arrows, True, size)),
        events=tuple(events),
        modes=tuple(mode_spans(run)),
        jumps=tuple(int(k) + 1 for k in np.flatnonzero(np.diff(modes_at(run, t)))),
        size=size,
        cell=cell,
    )


def _scale(arrows: Sequence[Arrow], moment: bool, size: float) -> float:
    """N or N m per m of the arrows."""
    largest = max((arrow.largest for arrow in arrows if arrow.moment is moment), default=0.0)
    return round_scale(largest, _ARROW * size) if largest > 0 else 0.0


def _in_cells(points: Array) -> tuple[Array, Array, str]:
    """Points as whole numbers of 16 bits: the least, the step and the numbers as text.

    Args:
        points: shape (k, ...); each column gets a range of its own.
    """
    if points.size == 0:
        return points[:1].reshape(-1, 3), points[:1].reshape(-1, 3), ""
    low = points.min(axis=0)
    step = (points.max(axis=0) - low) / 65535
    cells = np.round((points - low) / np.where(step > 0, step, 1.0)).astype("<u2")
    return low, step, _text(cells.tobytes())


def _groups(scene: Scene) -> tuple[str, ...]:
    """Groups of nodes that are the robot itself."""
    names = dict.fromkeys(node.path.split("/")[0] for node in scene.nodes)
    return tuple(name for name in names if name != "joints")


def _quaternions(rotations: Array) -> Array:
    """Quaternions (x, y, z, w), each in the half space of the one before it.

    Args:
        rotations: shape (k, n, 3, 3).
    """
    if rotations.size == 0:
        return np.zeros((*rotations.shape[:2], 4))

    quaternions = scipy.spatial.transform.Rotation.from_matrix(
        rotations.reshape(-1, 3, 3)
    ).as_quat()
    quaternions = quaternions.reshape(*rotations.shape[:2], 4)
    signs = np.where(np.sum(quaternions[1:] * quaternions[:-1], axis=2) < 0, -1.0, 1.0)
    quaternions[1:] *= np.cumprod(signs, axis=0)[:, :, None]
    return quaternions


def _path(run: Trajectory, t: Array, trace: Trace, count: int) -> Array:
    """Path of a point, one of ``count`` [m], shape (m, 3)."""
    start, end = max(trace.start, float(t[0])), min(trace.end, float(t[-1]))
    inner = t[(t > start) & (t < end)]
    times = np.unique([start, *inner[:: 1 + count * len(inner) // _TRACE_POINTS], max(start, end)])
    point = Scene(run.robot, (Node("", run.robot.frame_id(trace.frame)),), (), ())
    return np.asarray(point.placements_over(run(times).q)[:, 0, :3, 3])


def _line(number: int, way: Solid, trace: Trace) -> Command:
    """The command that draws a path: the same from all sides, over whatever hides it."""
    paint = phong(trace.color, in_front=True) | {"type": "MeshBasicMaterial"}
    return set_object(f"traces/{number}", way, paint, np.eye(4))


def _surface(path: str, layer: Layer) -> Command:
    """The command that draws a translucent surface."""
    material = phong(layer.color) | {"flatShading": True}
    return set_object(path, facets(layer.vertices, layer.faces), material, np.eye(4))


def _drawn(number: int, arrow: Arrow, size: float) -> Iterator[Command]:
    """The commands that draw an arrow: a shaft of unit length, and a tip, or two of a moment."""
    material = phong(MOMENT if arrow.moment else FORCE, in_front=True)
    parts = {"shaft": cylinder(0.006 * size, 1.0), "tip": cone(0.018 * size, 0.06 * size)}
    if arrow.moment:
        parts["second"] = parts["tip"]
    for name, solid in parts.items():
        yield set_object(f"arrows/{number}/{name}", solid, material, solid.matrix)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
