"""What a moving robot sweeps: a volume that certainly holds it, as convex pieces per body.

How close pieces may come to anything is asked in `clearance`.

**Why it holds the robot.** Take a convex piece and an interval of time cut into leaves (see
`interval_tree`). A point ``x(t)`` of the piece has the acceleration ``|x''| <= A`` within a leaf,
by the leaf's parameter; so it stays within ``A / 8`` of the chord between its places at the leaf's
ends. Those places lie within ``e`` of the points that divide, in the ratio of the travel, the chord
between its places at the ends of the whole interval; ``e`` is measured there, for every corner, and
is largest at a corner because it is a norm of a linear function of the point. So ``x(t)`` stays
within ``room = e + max A / 8`` of its chord over the interval, which lies in the convex hull of the
piece at both ends. Neither the velocity nor the acceleration needs to be continuous.

**How far it stands out.** A point of that hull is ``z = (1 - s) x_0(a) + s x_1(b)`` with points
``a, b`` of the piece. At the instant ``t`` when the fraction ``s`` of the travel has been covered,
the piece holds ``y = x_t((1 - s) a + s b)``, and ``z - y`` is the distance of ``x_t(a)`` from its
chord plus ``s (R_1 - R_t)(b - a)``; the same holds with ``(1 - s) (R_0 - R_t)(a - b)`` and ``b``.
Of two numbers ``s f`` and ``(1 - s) g`` the smaller one is at most ``s (1 - s) (f + g)``. Hence

    |z - y| <= room + max s (1 - s) (D_t1 + D_t0)

where ``D`` bounds how much the difference of two points of the piece turns meanwhile. All of it,
what polyhedra stand out of round shapes and the room around the hull, stays within the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import public
from ...boundary.files import as_target, write_file
from ...boundary.marks import Array, Integers, Mask
from ...boundary.meshes import join_meshes
from ...errors import BadValue
from ...model.description import GROUND
from ...simulation.trajectory import Trajectory
from ...tolerances import SLACK
from .hulls import CUBE, Hull, hull_contains, inflate_hull, union_volume
from .interval_tree import IntervalTree, checked_run, limit_sag
from .joint_motions import FrameBounds
from .solids import Piece, RobotPieces, collect_pieces, require_length

trimesh = lazy_loader.load("trimesh")


_SHAPE, _SAG, _TURN, _ROOM = 1 / 4, 1 / 32, 1 / 4, 1 / 8
"""Shares of the tolerance: round shapes, sag and turning within a leaf, room by stretching."""


_FORMATS = (".stl", ".ply", ".obj", ".glb")


@public
@dataclass(frozen=True, eq=False)
class SweptVolume:
    """A volume that a robot does not leave during a run; made by `swept_volume`.

    Args:
        parts: convex polyhedra per body (or frame), in the world; their union is the volume.
        tolerance: tolerance that was used [m]: larger than requested if triangles were limited.
        excess: no point of the volume is farther than this from a point where a piece of the
            robot has been [m]. A mesh counts as its convex hull.
        shapes: what each body was made of: "collision" or "visual" shapes, "joint frames" (hulls
            of joints, frames and centres of mass, of a robot without shapes), or "frame".
        bare: bodies without any shape, which are not in the volume.
    """

    parts: Mapping[str, tuple[Hull, ...]]
    tolerance: float
    excess: float
    shapes: Mapping[str, str] = field(repr=False)
    bare: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<SweptVolume of {len(self.parts)} bodies: {self.triangles} triangles, at most "
            f"{1000 * self.excess:.1f} mm too large>"
        )

    @property
    def triangles(self) -> int:
        """Number of triangles."""
        return sum(len(hull.faces) for hull in self._hulls)

    @property
    def bounds(self) -> Array:
        """Lower and upper corner of the box that holds it [m], shape (2, 3)."""
        points = np.vstack([hull.vertices for hull in self._hulls])
        return np.array([points.min(axis=0), points.max(axis=0)])

    @cached_property
    def meshes(self) -> dict[str, tuple[Any, ...]]:
        """Per body (or frame) its convex pieces, each a `trimesh.Trimesh`."""
        return {
            name: tuple(_trimesh(hull.vertices, hull.faces) for hull in hulls)
            for name, hulls in self.parts.items()
        }

    def mesh(self, body: str | None = None) -> Any:
        """All pieces in one `trimesh.Trimesh`; they overlap, with all inner faces.

        ``body``: only the pieces of this body or frame.
        """
        if body is not None and body not in self.parts:
            known = ", ".join(self.parts)
            raise BadValue(f"'{body}' has no part in the swept volume; known: {known}")
        hulls = self._hulls if body is None else self.parts[body]
        return _trimesh(*join_meshes((hull.vertices, hull.faces) for hull in hulls))

    def contains(self, points: ArrayLike) -> Mask:
        """Whether points lie in the volume.

        ``points``: points in the world [m], shape (n, 3), or one of shape (3,).

        Returns:
            One value per point, shape (n,).
        """
        asked = np.atleast_2d(np.asarray(points, dtype=float))
        if asked.ndim != 2 or asked.shape[1] != 3 or not np.all(np.isfinite(asked)):
            raise BadValue(f"points of shape {asked.shape} are not n points with finite x, y, z")
        contained = np.zeros(len(asked), dtype=bool)
        for hull in self._hulls:
            left = np.flatnonzero(~contained)
            contained[left[hull_contains(hull, asked[left])]] = True
        return contained

    @cached_property
    def volume(self) -> float:
        """Volume of the union [m^3], an estimate by parallel lines.

        On each of a grid of lines along the shortest side of `bounds`, up to 256 of them across the
        longest side (fewer if there are very many pieces), the length inside the pieces is exact.
        The error is that of the grid: about a percent where the volume is some ten lines wide,
        less where it is wider.
        """
        return union_volume(self._hulls, self.bounds)

    def export(self, path: str | Path) -> Path:
        """Write the volume as STL, PLY, OBJ or GLB (there with one node per body).

        ``path``: the file; its suffix chooses the format.
        """
        target = as_target(path)
        if target.suffix.lower() not in _FORMATS:
            known = ", ".join(_FORMATS)
            raise BadValue(f"a swept volume cannot be written as '{target.name}'; use {known}")
        content = self.mesh()
        if target.suffix.lower() == ".glb":
            content = trimesh.Scene({name: self.mesh(name) for name in self.parts})
        kind = target.suffix[1:].lower()
        return write_file(target, lambda file: content.export(file_obj=file, file_type=kind))

    @cached_property
    def _hulls(self) -> tuple[Hull, ...]:
        return tuple(hull for hulls in self.parts.values() for hull in hulls)


def _trimesh(vertices: Array, faces: Integers) -> Any:
    return trimesh.Trimesh(vertices, faces, process=False)


@public
def swept_volume(
    run: Trajectory,
    *,
    tolerance: float = 0.005,
    frames: Mapping[str, float] | None = None,
    max_triangles: int = 1_000_000,
    thickness: float | None = None,
) -> SweptVolume:
    """Return a volume that holds all bodies of the robot at every instant of a run.

    Bodies are made of their collision shapes, or of the visual ones where there are no others;
    meshes count as their convex hulls. Shapes of the ground are left out.

    Args:
        run: the run.
        tolerance: how far the volume may stand out of what is swept [m].
        frames: further points whose paths are included (tool points, corners of a payload): radius
            about each [m] by name of the frame.
        max_triangles: if the volume would have more, the tolerance is raised.
        thickness: of a robot without shapes: how thick its bodies are about their frames [m]; a
            fiftieth of its characteristic length by default.

    Raises:
        BadValue: an argument is impossible, a mesh cannot be read, or even the coarsest volume
            has more triangles.
    """
    run = checked_run(run)
    tolerance = require_length("tolerance", tolerance)
    if isinstance(max_triangles, bool) or not isinstance(max_triangles, int) or max_triangles < 1:
        raise BadValue(f"max_triangles is {max_triangles!r}; it must be a number > 0")
    coarsest = np.inf
    while True:
        links = collect_pieces(run.robot, _SHAPE * tolerance, thickness, frames)
        pieces = [piece for piece in links.pieces if piece.body != GROUND]
        if not pieces:
            raise BadValue(f"robot '{run.robot.name}' has no shapes, joints or masses to sweep")
        intervals = _intervals(run, pieces, tolerance)
        expected = sum(
            2 * len(piece.points) * len(parts)
            for piece, parts in zip(pieces, intervals, strict=True)
        )
        count = expected
        if expected <= 2 * max_triangles:
            volume = _enclose(pieces, intervals, tolerance, links)
            count = volume.triangles
            if count <= max_triangles:
                return volume
        if sum(map(len, intervals)) == len(pieces) and count >= coarsest:
            raise BadValue(
                f"max_triangles is {max_triangles}, but robot '{run.robot.name}' with its "
                f"{len(pieces)} shapes needs {count} at least"
            )
        coarsest = min(coarsest, count)
        tolerance *= min(4.0, max(1.2, count / max_triangles))


# -- intervals ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Interval:
    """A stretch of time over which a piece is swept at once.

    ``ends``: corners of the piece at both ends [m], shape (2 m, 3); ``room``: how far the piece may
    leave their hull [m]; ``excess``: how far their hull stands out of what is swept [m].
    """

    ends: Array
    room: float
    excess: float


def _intervals(run: Trajectory, pieces: list[Piece], tolerance: float) -> list[list[_Interval]]:
    """Per piece the intervals into which its motion is divided."""
    sags_little = limit_sag(pieces, _SAG * tolerance)

    def fine(bounds: list[FrameBounds]) -> Mask:
        good = sags_little(bounds)
        for piece in pieces:
            good &= bounds[piece.joint].angular_velocity * piece.diameter / 4 <= _TURN * tolerance
        return good

    leaves = IntervalTree(run, fine)
    bounds = leaves.from_ground
    nodes = _nodes(bounds, pieces, _SAG * tolerance)
    firsts, whole = nodes[:-1], np.diff(nodes) == 1
    intervals = []
    for piece in pieces:
        seen, R = bounds[piece.joint], leaves.rotations[:, piece.joint]
        # ||R_1 - R_0||, and what w may do within the leaf, bound the angle turned through.
        chord = np.linalg.norm(R[1:] - R[:-1], axis=(1, 2)) / np.sqrt(2)
        W, A = seen.angular_velocity, seen.angular_acceleration
        turn = np.minimum(W, chord + (2 * A + W**2) / 4)
        # On a path of the length l nothing is farther than l / 2 from a point of the chord.
        travel = np.add.reduceat(seen.point_velocity(piece.radius), firsts)
        sag = np.where(whole, seen.point_acceleration(piece.radius)[firsts] / 8, travel / 2)
        path = _Path(
            leaves.points(piece.joint, piece.points, nodes=nodes),
            sag,
            np.add.reduceat(turn, firsts) * piece.diameter,
        )
        intervals.append(path.divide(tolerance * (1 - _ROOM) - piece.excess))
    return intervals


def _nodes(bounds: list[FrameBounds], pieces: list[Piece], longest: float) -> Integers:
    """Nodes without those between tiny leaves, over which no piece travels more than `longest`."""
    speeds = np.max([bounds[piece.joint].point_velocity(piece.radius) for piece in pieces], axis=0)
    nodes, since = [0], 0.0
    for leaf, travel in enumerate(speeds.tolist()):
        if leaf > nodes[-1] and since + travel > longest:
            nodes.append(leaf)
            since = 0.0
        since += travel
    return np.array([*nodes, len(speeds)])


class _Path:
    """Corners of a piece at the nodes, to be divided into intervals.

    ``corners``: at the nodes [m], shape (n + 1, m, 3); ``sag``: how far a point may leave its
    chord in each leaf [m], shape (n,); ``turn``: how much the difference of two points may turn in
    each leaf [m], shape (n,).
    """

    def __init__(self, corners: Array, sag: Array, turn: Array) -> None:
        # Nodes last: operations on all of them at once then run along the memory.
        self._x = np.ascontiguousarray(corners.transpose(2, 1, 0))
        self._sag, self._turn = sag, turn
        step = np.sqrt(_largest_square(np.diff(self._x, axis=2)))
        self._travel = np.concatenate([[0.0], np.cumsum(step + 8 * sag)])

    def divide(self, budget: float) -> list[_Interval]:
        """Intervals, as long as their excess allows, from the first node to the last one."""
        last, first, stride, intervals = len(self._travel) - 1, 0, 1, []
        while first < last:
            fits, fails, reach = first + 1, last + 1, stride
            best = self._interval(first, fits)
            while fails - fits > 1:
                trial = min(first + reach, fails - 1)
                if trial <= fits:
                    trial = (fits + fails) // 2
                tried = self._interval(first, trial)
                if tried.excess + CUBE * (tried.room + SLACK) <= budget:
                    best, fits, reach = tried, trial, 2 * (trial - first)
                else:
                    fails = trial
                    reach = (fits + fails) // 2 - first
            stride = fits - first
            intervals.append(best)
            first = fits
        return intervals

    def _interval(self, i: int, j: int) -> _Interval:
        """The interval from node i to node j (see the module's docstring)."""
        x, sag = self._x[:, :, i : j + 1], self._sag[i:j]
        travel = self._travel[i : j + 1] - self._travel[i]
        s = travel / travel[-1] if travel[-1] > 0 else np.zeros(len(travel))
        since = x - x[:, :, :1]
        off = since - since[:, :, -1:] * s
        room = float(np.sqrt(np.max(_largest_square(off))) + sag.max())
        turned = _spread(since)[:-1] + _spread(since[:, :, -1:] - since)[1:]
        nearest_half = np.clip(0.5, s[:-1], s[1:])
        weight = nearest_half * (1 - nearest_half)
        excess = room + float(np.max(weight * (self._turn[i:j] + turned)))
        ends = [x[:, :, 0].T, x[:, :, -1].T] if room > 0 else [x[:, :, 0].T]
        return _Interval(np.vstack(ends), room, excess)


def _largest_square(vectors: Array) -> Array:
    """Largest square of a vector at each node; vectors of shape (3, m, k)."""
    return np.asarray(np.sum(vectors * vectors, axis=0).max(axis=0))


def _spread(displacements: Array) -> Array:
    """How much the difference of two points may have changed, by their displacements (3, m, k).

    Diagonals of the boxes that hold the displacements [m], shape (k,).
    """
    return np.asarray(np.linalg.norm(displacements.max(axis=1) - displacements.min(axis=1), axis=0))


def _enclose(
    pieces: list[Piece], intervals: list[list[_Interval]], tolerance: float, links: RobotPieces
) -> SweptVolume:
    """The polyhedra around all intervals."""
    parts: dict[str, list[Hull]] = {}
    worst = 0.0
    for piece, own in zip(pieces, intervals, strict=True):
        for interval in own:
            hull, out = inflate_hull(interval.ends, interval.room + SLACK, _ROOM * tolerance)
            worst = max(worst, piece.excess + interval.excess + out)
            parts.setdefault(piece.body, []).append(hull)
    shapes = {body: shape for body, shape in links.shapes.items() if body != GROUND}
    return SweptVolume(
        {name: tuple(hulls) for name, hulls in parts.items()}, tolerance, worst, shapes, links.bare
    )
