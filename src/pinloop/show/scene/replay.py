"""A motion to be played: what is drawn, where it is over time, and the player in a page.

Poses are kept at even times and where the run changes its mode, as whole numbers of 16 bits: 0.03
mm on 2 m, 0.002 degrees. Forces are kept likewise, as parts of the largest one. The page's side is
``assets/player.js``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...boundary.marks import Array, Integers
from ...simulation.trajectory import Trajectory
from ...tables.report import Markup, render
from ...tolerances import SLIDER_STEP, STILL
from .commands import Command, encoded, light_scene, paint, set_object
from .motion import (
    Arrow,
    Spans,
    frame_times,
    mode_spans,
    modes_at,
    opened_spans,
    round_scale,
    standing_spans,
)
from .scene import Node, Scene, make_scene
from .solids import Color, cylinder, decimate, triangles, tube

MESH_BYTES = 4_500_000
"""What the meshes of a robot may take; base64 adds a third."""
_TRACE_POINTS = 1600
"""Points of all lines together: what a picture can show."""
FORCE: Color = (0.04, 0.49, 0.24, 1.0)
MOMENT: Color = (0.48, 0.24, 0.72, 1.0)
"""Colours of arrows."""
ARROW = 0.35
"""Length of the longest arrow over that of the robot."""
_SPEEDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
_FAST_SPEEDS = (100.0, 20.0, 5.0)
"""Offered where a replay in real time would be too long to wait for."""
_LONG = 20.0
"""A replay is long from here on [s]."""


@dataclass(frozen=True)
class Trace:
    """The path of the origin of a frame or body, drawn as a line between two times [s]."""

    frame: str
    color: Color
    start: float = -np.inf
    end: float = np.inf


@dataclass(frozen=True, eq=False)
class Layer:
    """A translucent surface that does not move, and its label for the switch that shows it.

    Vertices are in the world [m], shape (n, 3), faces anticlockwise from outside, shape (m, 3).
    """

    label: str
    vertices: Array
    faces: Integers
    color: Color


@dataclass(frozen=True, eq=False)
class Additions:
    """What is shown besides the robot in motion.

    Args:
        ghosts: times at which the robot is drawn once more [s]; the start by default.
        arrows: forces and moments at the times of the frames.
        events: what is marked on the bar of time, and when [s].
    """

    traces: Sequence[Trace] = ()
    layers: Sequence[Layer] = ()
    ghosts: Sequence[float] | None = None
    arrows: Sequence[Arrow] = ()
    events: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, eq=False)
class Replay:
    """A motion to be played; made by `make_replay`.

    Args:
        commands: what draws everything as it is at the start.
        t: times of the frames [s], shape (k,).
        paths: nodes that move, n of them.
        positions: their places in the world [m], shape (k, n, 3).
        quaternions: their orientations (x, y, z, w), shape (k, n, 4).
        standing: per marked joint the spans of time [s] in which it is locked.
        opened: per loop joint that opens the spans of time [s] in which it is open.
        additions: what is shown besides, its ghosts filled in.
        scales: N and N m per m of an arrow, or 0 where there is none.
        modes: when what is locked and open changes [s], and what it is from then on.
        jumps: frames at which the mode is another one than just before.
        size: length of everything that is shown [m].
        cell: size of the cells in which vertices of meshes were joined to save space [m], or 0.
    """

    scene: Scene
    commands: tuple[Command, ...]
    t: Array
    paths: tuple[str, ...]
    positions: Array
    quaternions: Array
    standing: dict[str, Spans]
    opened: dict[str, Spans]
    additions: Additions
    scales: tuple[float, float]
    modes: Sequence[tuple[float, str]]
    jumps: tuple[int, ...]
    size: float
    cell: float

    @property
    def ghosts(self) -> Sequence[float]:
        """Times at which the robot is drawn once more [s]."""
        return self.additions.ghosts or ()

    @property
    def ghost(self) -> tuple[str, ...]:
        """Groups of nodes that are the robot itself, if it is drawn once more."""
        names = dict.fromkeys(node.path.split("/")[0] for node in self.scene.nodes)
        return tuple(name for name in names if name != "joints") if self.ghosts else ()

    def data(self) -> dict[str, Any]:
        """Everything for the page, in what JSON knows."""
        marks, loops = self.scene.marks, self.scene.loops
        return {
            "commands": list(encoded(self.commands)),
            "times": self.t.tolist(),
            "paths": self.paths,
            **_in_cells(self.positions, "positions"),
            "quaternions": _parts(self.quaternions),
            "joints": [
                {"name": name, "paths": marks[name], "standing": spans}
                for name, spans in self.standing.items()
            ],
            "loops": [
                {"name": name, "paths": loops[name], "open": spans}
                for name, spans in self.opened.items()
            ],
            "ghost": self.ghost,
            "ghosts": self.ghosts,
            "layers": [
                {"path": f"layers/{k}", "label": layer.label, "opacity": layer.color[3]}
                for k, layer in enumerate(self.additions.layers)
            ],
            "traces": bool(self.additions.traces),
            "arrows": [
                {
                    "name": arrow.name,
                    "moment": arrow.moment,
                    **_in_cells(arrow.start, "start"),
                    "vector": _parts(arrow.vector / (arrow.largest or 1.0)),
                    "largest": arrow.largest,
                    "scale": self.scales[arrow.moment],
                }
                for arrow in self.additions.arrows
            ],
            "events": self.additions.events,
            "modes": self.modes,
            "jumps": self.jumps,
            "size": self.size,
        }

    def player(
        self,
        *,
        trace_label: str = "path",
        ghost_label: str = "start",
        words: tuple[str, str] = ("at rest", "moving"),
        opens: float | None = None,
        shared: dict[str, int] | None = None,
    ) -> Markup:
        """Picture, controls and data for a page that has the scripts of the player.

        Labels are for the switches; ``words`` are said of a marked joint that is locked, and of one
        that is not; the page ``opens`` at a time [s], the end by default. ``shared`` has numbers of
        the commands that several replays of the page have in common; it gathers those that draw
        this one.
        """
        data, duration = self.data(), float(self.t[-1] - self.t[0])
        if shared is not None:
            data["commands"] = [shared.setdefault(text, len(shared)) for text in data["commands"]]
        layers = (
            (f"layer-{k}", layer.label, True) for k, layer in enumerate(self.additions.layers)
        )
        return render(
            "show/scene/templates/player.html",
            name=self.scene.robot.name,
            data=data,
            opens=float(self.t[-1]) if opens is None else opens,
            words=words,
            step=max(duration / 1000, SLIDER_STEP),
            speeds=list(_speeds(duration)),
            switches=[
                ("ghost", ghost_label, self.ghost),
                ("traces", trace_label, data["traces"]),
                ("marks", "joints", self.standing),
                ("arrows", "forces", data["arrows"]),
                *layers,
            ],
        )


def make_replay(
    run: Trajectory,
    *,
    times: Array | None = None,
    marked: Iterable[str] | None = None,
    additions: Additions | None = None,
    mesh_bytes: int = MESH_BYTES,
) -> Replay:
    """Make a replay of a run.

    Frames are at the times of `frame_times` by default. Symbols of ``marked`` joints show whether
    they stand, by default of those that are locked at some time. What is shown besides is the pose
    at the start by default. Meshes take ``mesh_bytes`` at most.
    """
    spans, besides = standing_spans(run), additions or Additions()
    names = tuple(spans) if marked is None else tuple(marked)
    scene = make_scene(run.robot, marked=names)
    solids, cell = decimate([part.solid for part in scene.parts], mesh_bytes)
    pairs = zip(scene.parts, solids, strict=True)
    parts = (replace(part, solid=solid) for part, solid in pairs if solid is not None)
    scene = replace(scene, parts=tuple(parts))
    t = frame_times(run) if times is None else times
    besides = besides if besides.ghosts is not None else replace(besides, ghosts=(float(t[0]),))
    q = run(t).q
    matrices = scene.placements_over(q)
    moves = np.flatnonzero(np.ptp(matrices, axis=0).max(axis=(1, 2)) > STILL)
    moving = matrices[:, moves]
    points = np.vstack([scene.points(pose) for pose in q[[0, len(t) // 2, -1]]])
    size = max(float(np.ptp(points, axis=0).max()), 1e-3)
    lines = [_path(run, t, trace, len(besides.traces)) for trace in besides.traces]
    points = np.vstack([points, *lines])
    return Replay(
        scene=scene,
        commands=(
            *light_scene(points),
            *scene.drawing(),
            *scene.placing(q[0]),
            *_drawing(besides, lines, size),
        ),
        t=t,
        paths=tuple(scene.nodes[k].path for k in moves),
        positions=moving[:, :, :3, 3],
        quaternions=quaternions_of(moving[:, :, :3, :3]),
        standing={name: spans.get(name, ()) for name in names},
        opened=opened_spans(run),
        additions=besides,
        scales=(_scale(besides.arrows, False, size), _scale(besides.arrows, True, size)),
        modes=mode_spans(run),
        jumps=tuple((np.flatnonzero(np.diff(modes_at(run, t))) + 1).tolist()),
        size=size,
        cell=cell,
    )


def draw_path(path: str, points: Array, color: Color, size: float) -> Command:
    """Draw a line through points [m], (k, 3), seen over whatever hides it, in a scene of a size."""
    flat = paint(color, "MeshBasicMaterial", in_front=True)
    return set_object(path, tube(points, 0.003 * size), flat, np.eye(4))


def _drawing(besides: Additions, lines: Sequence[Array], size: float) -> Iterator[Command]:
    """Commands that draw paths, surfaces and arrows."""
    for k, (trace, line) in enumerate(zip(besides.traces, lines, strict=True)):
        yield draw_path(f"traces/{k}", line, trace.color, size)
    for k, layer in enumerate(besides.layers):
        surface = triangles(layer.vertices, layer.faces)
        yield set_object(f"layers/{k}", surface, paint(layer.color, flatShading=True), np.eye(4))
    shaft, tip = cylinder(0.006 * size, 1.0), cylinder(0.018 * size, 0.06 * size, tip=0.0)
    for k, arrow in enumerate(besides.arrows):
        color = paint(MOMENT if arrow.moment else FORCE, in_front=True)
        parts = {"shaft": shaft, "tip": tip} | ({"second": tip} if arrow.moment else {})
        for name, solid in parts.items():
            yield set_object(f"arrows/{k}/{name}", solid, color, solid.matrix)


def _scale(arrows: Sequence[Arrow], moment: bool, size: float) -> float:
    """N or N m per m of the arrows."""
    largest = max((arrow.largest for arrow in arrows if arrow.moment is moment), default=0.0)
    return round_scale(largest, ARROW * size) if largest > 0 else 0.0


def _in_cells(points: Array, name: str) -> dict[str, Any]:
    """Points (k, ...) in 16 bits: least value and step of each column, and numbers by a name."""
    if points.size == 0:
        empty = points[:1].reshape(-1, 3).tolist()
        return {"low": empty, "step": empty, name: ""}
    low = points.min(axis=0)
    step = (points.max(axis=0) - low) / 65535
    cells = np.round((points - low) / np.where(step > 0, step, 1.0)).astype("<u2")
    return {"low": low.tolist(), "step": step.tolist(), name: _text(cells)}


def _parts(values: Array) -> str:
    """Numbers between -1 and 1 in 16 bits."""
    return _text(np.round(32767 * values).astype("<i2"))


def _text(content: NDArray[Any]) -> str:
    return base64.b64encode(content.tobytes()).decode()


def quaternions_of(rotations: Array) -> Array:
    """Quaternions (x, y, z, w) of (k, n, 3, 3), each in the half space of the one before it."""
    if rotations.size == 0:
        return np.zeros((*rotations.shape[:2], 4))
    flat = scipy.spatial.transform.Rotation.from_matrix(rotations.reshape(-1, 3, 3))
    quaternions = flat.as_quat().reshape(*rotations.shape[:2], 4)
    signs = np.where(np.sum(quaternions[1:] * quaternions[:-1], axis=2) < 0, -1.0, 1.0)
    quaternions[1:] *= np.cumprod(signs, axis=0)[:, :, None]
    return np.asarray(quaternions)


def _path(run: Trajectory, t: Array, trace: Trace, count: int) -> Array:
    """Path of a point, one of ``count`` [m], shape (m, 3)."""
    start, end = max(trace.start, float(t[0])), min(trace.end, float(t[-1]))
    inner = t[(t > start) & (t < end)]
    times = np.unique([start, *inner[:: 1 + count * len(inner) // _TRACE_POINTS], max(start, end)])
    point = Scene(run.robot, (Node("", run.robot.frame_id(trace.frame)),), (), ())
    return np.asarray(point.placements_over(run(times).q)[:, 0, :3, 3])


def _speeds(duration: float) -> Iterator[tuple[str, str, bool]]:
    for value in (*_FAST_SPEEDS, *_SPEEDS) if duration > _LONG else _SPEEDS:
        name = f"{value:g} times real time" if value > 1.0 else f"1/{1 / value:.0f} of real time"
        yield f"{value:g}", "real time" if value == 1.0 else name, value == 1.0
