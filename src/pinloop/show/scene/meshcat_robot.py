"""A robot or a run in the MeshCat viewer of the user, beside whatever else is in it.

Everything is below one path; camera, light and background of the viewer stay as they are. Pages
of pinloop's own are elsewhere: `live` and `replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike
from pinocchio.visualize import MeshcatVisualizer

from ...boundary.arguments import public, require_kind
from ...boundary.marks import Array
from ...errors import UnknownName
from ...model.mechanism import Mechanism, require_robot
from ...model.pairs import align_z
from ...simulation.trajectory import Trajectory
from ...tolerances import NO_LOAD
from .commands import Command, look_at, look_from, paint, set_object, set_property, set_transform
from .motion import force_names, is_within, round_scale
from .replay import ARROW, FORCE, MOMENT, Replay, draw_path, quaternions_of
from .run_page import LINES, LOCKED, ReplayOptions, run_replay, traced_frames
from .scene import Scene, make_collision_scene, make_scene, node_name
from .solids import Color, cylinder, meshcat

_GHOST: Color = (0.36, 0.48, 0.65, 0.26)
_BEHIND = {
    **{"depthWrite": False, "polygonOffset": True},
    **{"polygonOffsetFactor": 1, "polygonOffsetUnits": 4},
}
"""Of surfaces: a little farther away than they are, so that the robot itself hides its ghosts."""
_JUST_BEFORE = 1 - 2.0**-20
"""Share of the time of a jump at which its first value still holds; the page has 24 bits."""


@public
class MeshcatRobot(MeshcatVisualizer):
    """A robot with its loop joints in a ``meshcat.Visualizer``; a visualizer of Pinocchio's.

    It has the methods of ``pinocchio.visualize.MeshcatVisualizer`` and takes its place in loops
    that display configurations, those of Pink and Crocoddyl among them. Everything is drawn below
    one path of the viewer, which is ``pinloop/<name of the robot>`` unless `loadViewerModel` gets
    another one.

    Args:
        viewer: a ``meshcat.Visualizer``, or a part of one, e.g. ``viewer["left"]``.
        robot: the robot.

    Attributes:
        viewer: the viewer.
        robot: the robot.
        model: its ``pin.Model``; ``data`` is where its bodies are.
    """

    def __init__(self, viewer: Any, robot: Mechanism) -> None:
        _require_viewer(viewer)
        require_robot(robot)
        super().__init__(robot.model, pin.GeometryModel(), pin.GeometryModel())
        self.robot = robot
        super().initViewer(viewer)
        self.viewerRootNodeName: str | None = None
        self._scenes: dict[str, Scene] = {}
        self._shown: dict[str, bool] = {}

    @property
    def nq(self) -> int:
        """Number of coordinates, as ``pin.RobotWrapper`` has it for Crocoddyl."""
        return self.robot.nq

    @property
    def viz(self) -> MeshcatRobot:
        """Itself, as ``pin.RobotWrapper`` has its visualizer."""
        return self

    def setVisualizer(self, visualizer: Any, init: bool = True) -> None:
        """Nothing: where a ``pin.RobotWrapper`` is given a visualizer, this one has it already."""

    def initViewer(
        self,
        viewer: Any = None,
        open: bool = False,
        loadModel: bool = False,
        zmq_url: str | None = None,
    ) -> None:
        """Change to another viewer, if one or its address is given; open it, draw the robot."""
        same = viewer is None and zmq_url is None
        super().initViewer(self.viewer if same else viewer, open, loadModel, zmq_url)

    def loadViewerModel(
        self,
        rootNodeName: str | None = None,
        color: Sequence[float] | None = None,
        collision_color: Sequence[float] | None = None,
        visual_color: Sequence[float] | None = None,
    ) -> None:
        """Draw the robot where there was nothing, or draw it anew.

        Args:
            rootNodeName: path below that of the viewer.
            color: red, green, blue and opacity in [0, 1] of everything, instead of the file's.
            collision_color: of the collision shapes, which `displayCollisions` shows.
            visual_color: of all other shapes.
        """
        root = rootNodeName or default_root(self.robot)
        self.viewer[root].delete()
        self._shown = {}
        super().loadViewerModel(root)
        pairs = {edge.joint.name: edge.joint.pair for edge in self.robot.tree.edges}
        lockable = [name for name in self.robot.joints if pairs[name].rows]  # the free ones are not
        scene = make_scene(self.robot, marked=lockable)
        hull = make_collision_scene(self.robot)
        self._scenes = {
            self.viewerVisualGroupName: _painted(scene, visual_color or color),
            self.viewerCollisionGroupName: _painted(hull, collision_color or color),
        }
        for group, drawn in self._scenes.items():
            self._send(group, drawn.drawing())
        self._mark((), ())

    def display(
        self, q: ArrayLike | None = None, *, locked: Iterable[str] = (), opened: Iterable[str] = ()
    ) -> None:
        """Show the robot.

        Args:
            q: configuration, shape (nq,); by default where ``data`` has the bodies.
            locked: joints that get the blue symbol of a lock.
            opened: loop joints that are open: their symbol vanishes.
        """
        self._load()
        super().display(None if q is None else self.robot.checked_configuration(q))
        pin.updateFramePlacements(self.model, self.data)
        for group, scene in self._scenes.items():
            self._send(group, scene.placing_in(self.data))
        self._mark(locked, opened)

    def displayGhosts(self, configurations: Iterable[ArrayLike]) -> None:
        """Show the robot once more per configuration, shape (nq,), translucent, in place of others.

        Args:
            configurations: where the ghosts are.
        """
        group = f"{self._visuals()}/ghosts"
        self.viewer[group].delete()
        ghost = _painted(make_scene(self.robot, marked=()), _GHOST)
        own = (part for part in ghost.parts if not part.path.startswith("loops/"))
        ghost = replace(ghost, parts=tuple(own))
        for k, q in enumerate(configurations):
            self._send(f"{group}/{k}", [*ghost.drawing(**_BEHIND), *ghost.placing(q)])

    def displayTraces(
        self, frames: str | Iterable[str], configurations: Iterable[ArrayLike]
    ) -> None:
        """Draw the paths of frames or bodies along configurations, in place of those before.

        Args:
            frames: names of frames or bodies.
            configurations: the configurations, each of shape (nq,).
        """
        group, robot = f"{self._visuals()}/traces", self.robot
        self.viewer[group].delete()
        names = (frames,) if isinstance(frames, str) else tuple(frames)
        q = [robot.checked_configuration(each) for each in configurations]
        for k, name in enumerate(names if q else ()):
            points = np.array([robot.placement(each, name).translation for each in q])
            color = LINES[k % len(LINES)]
            self._send(group, [draw_path(node_name(name), points, color, robot.length)])

    def displayForces(
        self,
        forces: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        moments: bool = False,
        scale: float | None = None,
    ) -> None:
        """Draw forces as green arrows, or moments as violet ones with two tips.

        Args:
            forces: per name where the arrow starts [m] and what it is [N, N m], in world axes.
                Arrows of other names vanish.
            moments: they are moments.
            scale: N or N m per metre of arrow; by default one that suits the largest.
        """
        kind = "moments" if moments else "forces"
        given = {name: np.asarray(pair, dtype=float) for name, pair in forces.items()}
        largest = max((float(np.linalg.norm(pair[1])) for pair in given.values()), default=0.0)
        per_metre = scale or (round_scale(largest, ARROW * self.robot.length) if largest else 1.0)
        group = self._visuals()
        paths = {name: f"{kind}/{node_name(name)}" for name in given}
        for path in self._shown:
            if path.startswith(f"{kind}/") and path not in paths.values():
                self._show(path, False)
        for name, (start, vector) in given.items():
            path, length = paths[name], float(np.linalg.norm(vector)) / per_metre
            if path not in self._shown:
                self._send(group, _arrow(path, moments, self.robot.length))
            self._show(path, length > 0)
            if length > 0:
                matrix = _arrow_placement(start, vector)
                self._send(group, [set_transform(path, _scaled(matrix, length))])

    def captureImage(self, w: int | None = None, h: int | None = None) -> Any:
        """What the browser shows, as an array of red, green and blue, shape (h, w, 3).

        It waits for a browser to be connected. A picture of another size is scaled.
        """
        image = self.viewer.get_image().convert("RGB")
        if w is not None or h is not None:
            image = image.resize((w or image.width, h or image.height))
        return np.asarray(image)

    def setCameraTarget(self, target: ArrayLike) -> None:
        """Let the camera look at, and turn about, a point in the world [m], shape (3,)."""
        self._send(None, look_at(np.asarray(target, dtype=float)))

    def setCameraPosition(self, position: ArrayLike) -> None:
        """Put the camera at a place [m] from its target, in world axes, shape (3,)."""
        self._send(None, [look_from(np.asarray(position, dtype=float))])

    def setCameraZoom(self, zoom: float) -> None:
        """Set the zoom of the camera."""
        self._send(None, [set_property("/Cameras/default/rotated/<object>", "zoom", zoom)])

    def _visuals(self) -> str:
        """Path below which everything is that has to do with the robot as it is seen."""
        self._load()
        return str(self.viewerVisualGroupName)

    def _load(self) -> None:
        if not self._scenes:
            self.loadViewerModel()

    def _mark(self, locked: Iterable[str], opened: Iterable[str]) -> None:
        """Show symbols of the joints that are locked, and of the loop joints that are not open."""
        scene = self._scenes[self.viewerVisualGroupName]
        for kind, names, own, shows in (
            ("joint that locks", locked, scene.marks, True),
            ("loop joint", opened, scene.loops, False),
        ):
            chosen = {names} if isinstance(names, str) else set(names)
            for name in sorted(chosen - own.keys()):
                raise UnknownName(kind, name, own, self.robot.name)
            for name, paths in own.items():
                for path in paths:
                    self._show(path, (name in chosen) is shows)

    def _show(self, path: str, visible: bool) -> None:
        """Show or hide what is drawn at a path of the visual group."""
        if self._shown.get(path, True) is not visible:
            group = str(self.viewerVisualGroupName)
            self._send(group, [set_property(path, "visible", visible)])
        self._shown[path] = visible

    def _send(self, group: str | None, commands: Iterable[Command]) -> None:
        """Send commands about nodes below a group, or about the viewer itself."""
        base = () if group is None else self.viewer[group].path.entries
        for command in commands:
            command.path = meshcat.path.Path(base + command.path.entries)
            self.viewer.window.send(command)


def default_root(robot: Mechanism) -> str:
    """Path at which a robot is drawn."""
    return f"pinloop/{node_name(robot.name)}"


def _painted(scene: Scene, color: Sequence[float] | None) -> Scene:
    """A scene with locks in their colour, and everything else of the robot in one, if given."""
    own: Color | None = None
    if color is not None:
        red, green, blue, opacity = color
        own = red, green, blue, opacity
    marks = {path for paths in scene.marks.values() for path in paths}
    parts = []
    for part in scene.parts:
        chosen = LOCKED if part.path in marks else part.color
        if own is not None and not part.path.startswith(("joints/", "loops/")):
            chosen = own
        parts.append(replace(part, color=chosen))
    return replace(scene, parts=tuple(parts))


# -- arrows ---------------------------------------------------------------------------------------


def _arrow(path: str, moment: bool, size: float) -> list[Command]:
    """Draw an arrow of 1 m along z, to be scaled; ``size`` is the length of the robot."""
    color = paint(MOMENT if moment else FORCE, in_front=True)
    tip = cylinder(0.05, 0.16, tip=0.0)
    solids = [("shaft", cylinder(0.016, 0.84), 0.42), ("tip", tip, 0.92), ("second", tip, 0.76)]
    drawing = []
    for name, solid, height in solids[: 3 if moment else 2]:
        lifted = pin.SE3(np.eye(3), np.array([0.0, 0.0, height])).homogeneous
        drawing.append(set_object(f"{path}/{name}", solid, color, lifted @ solid.matrix))
    return drawing


def _arrow_placement(start: Array, vector: Array) -> Array:
    return np.asarray(pin.SE3(align_z(vector), start).homogeneous)


def _scaled(matrix: Array, length: float) -> Array:
    return np.asarray(matrix @ np.diag([length, length, length, 1.0]))


# -- runs -----------------------------------------------------------------------------------------


def show_run(run: Trajectory, viewer: Any, **options: Any) -> MeshcatRobot:
    """Draw a run in a viewer and play it; ``options`` are the fields of `ReplayOptions`."""
    wanted, display = ReplayOptions(**options), MeshcatRobot(viewer, run.robot)
    replay = run_replay(run, wanted)
    arrows, ends = replay.additions.arrows, (float(replay.t[0]), float(replay.t[-1]))
    display.displayGhosts(run(np.array(replay.ghosts)).q if replay.ghosts else ())
    display.displayTraces(traced_frames(run.robot, wanted), run(replay.t).q)
    for moments in (False, True):
        at_first = {a.name: (a.start[0], a.vector[0]) for a in arrows if a.moment is moments}
        display.displayForces(at_first, moments=moments, scale=replay.scales[moments])
    display.display(
        run(replay.t[:1]).q[0],
        locked=[name for name, spans in replay.standing.items() if is_within(spans, *ends)],
        opened=[name for name, spans in replay.opened.items() if is_within(spans, *ends)],
    )
    viewer.set_animation(_animation(run, replay, viewer.path, wanted))
    return display


def _require_viewer(viewer: Any) -> None:
    way_out = "give a meshcat.Visualizer, or leave it out"
    require_kind(viewer, meshcat.Visualizer, "viewer", way_out)


def animate(run: Trajectory, viewer: Any = None, **options: Any) -> Any:
    """A run as an animation of meshcat; ``options`` are the fields of `ReplayOptions`."""
    wanted = ReplayOptions(**options)
    force_names(run, wanted.forces)
    if viewer is not None:
        _require_viewer(viewer)
    path = meshcat.path.Path(("meshcat",)) if viewer is None else viewer.path
    return _animation(run, run_replay(run, wanted), path, wanted)


def _animation(run: Trajectory, replay: Replay, path: Any, wanted: ReplayOptions) -> Any:
    """What moves and what comes and goes, as tracks of the nodes below a path."""
    root = path.append(f"{default_root(run.robot)}/visuals")
    frames = wanted.rate * (replay.t - replay.t[0])
    animation = meshcat.animation.Animation(default_framerate=wanted.rate)

    def add(node: str, name: str, kind: str, keys: Array, values: Any) -> None:
        clip = animation.clips.setdefault(
            root.append(node), meshcat.animation.AnimationClip(fps=wanted.rate)
        )
        track = meshcat.animation.AnimationTrack(name, kind, keys.tolist(), values)
        clip.tracks[name] = track

    for k, node in enumerate(replay.paths):
        add(node, "position", "vector3", frames, replay.positions[:, k].tolist())
        add(node, "quaternion", "quaternion", frames, replay.quaternions[:, k].tolist())
    for spans, paths, inside in (
        (replay.standing, replay.scene.marks, True),
        (replay.opened, replay.scene.loops, False),
    ):
        for name, own in spans.items():
            seen = [is_within(own, float(t), float(run.t[-1])) is inside for t in replay.t]
            for node in paths[name]:
                add(node, "visible", "boolean", frames, seen)
    # A force jumps where the mode changes: its track has the value just before, too.
    order = np.sort(np.concatenate([np.arange(len(frames)), np.array(replay.jumps, int) - 1]))
    keys = frames[order]
    for k, (first, second) in enumerate(pairwise(order)):
        if first == second:
            keys[k + 1] = _JUST_BEFORE * frames[second + 1]
    for arrow in replay.additions.arrows:
        node = f"{'moments' if arrow.moment else 'forces'}/{node_name(arrow.name)}"
        lengths = np.linalg.norm(arrow.vector, axis=1) / replay.scales[arrow.moment]
        safe = np.where(lengths[:, None] > 0, arrow.vector, [0.0, 0.0, 1.0])
        places = np.array([_arrow_placement(*pair) for pair in zip(arrow.start, safe, strict=True)])
        turns = quaternions_of(places[:, None, :3, :3])[:, 0]
        add(node, "position", "vector3", keys, arrow.start[order].tolist())
        add(node, "quaternion", "quaternion", keys, turns[order].tolist())
        add(node, "scale", "vector3", keys, np.repeat(lengths[order, None], 3, 1).tolist())
        add(node, "visible", "boolean", keys, (lengths[order] > NO_LOAD).tolist())
    return animation
