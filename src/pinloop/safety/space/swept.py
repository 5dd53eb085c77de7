"""What a moving robot sweeps: a volume that certainly holds it, as convex pieces per body.

How close pieces may come to anything is asked in `clearance`.

**Why it holds the robot.** Take a convex piece and an interval of time cut into leaves (see
`leaves`). A point ``x(t)`` of the piece has the acceleration ``|x''| <= A`` within a leaf, by the
leaf's parameter; so it stays within ``A / 8`` of the chord between its places at the leaf's ends.
Those places lie within ``e`` of the points that divide, in the ratio of the way passed, the chord
between its places at the ends of the whole interval; ``e`` is measured there, for every corner,
and is largest at a corner because it is a norm of a linear function of the point. So ``x(t)``
stays within ``room = e + max A / 8`` of its chord over the interval, which lies in the convex hull
of the piece at both ends. Neither the velocity nor the acceleration needs to be continuous.

**How far it stands out.** A point of that hull is ``z = (1 - s) x_0(a) + s x_1(b)`` with points
``a, b`` of the piece. At the instant ``t`` when the fraction ``s`` of the way has been passed, the
piece holds ``y = x_t((1 - s) a + s b)``, and ``z - y`` is the distance of ``x_t(a)`` from its
chord plus ``s (R_1 - R_t)(b - a)``; the same holds with ``(1 - s) (R_0 - R_t)(a - b)`` and ``b``.
Of two numbers ``s f`` and ``(1 - s) g`` the smaller one is at most ``s (1 - s) (f + g)``. Hence

    |z - y| <= room + max s (1 - s) (D_t1 + D_t0)

where ``D`` bounds how much the difference of two points of the piece turns meanwhile. All of it,
what polyhedra stand out of round shapes and the room around the hull, stays within the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...errors import BadValue
from ...model.description import GROUND
from ...simulation.trajectory import Trajectory
from ...tolerances import SLACK
from .hulls import CUBE, Hull, with_room
from .interval_tree import Leaves
from .joint_motions import Bounds
from .shapes import Links, Piece, frame_pieces, positive, robot_links
from .steps import checked_run
from .volume import SweptVolume

__all__ = ["SweptVolume", "swept_volume"]

Array = NDArray[np.float64]

_SHAPE, _BEND, _TURN, _ROOM = 1 / 4, 1 / 32, 1 / 4, 1 / 8
"""Shares of the tolerance: round shapes, bending and turning within a leaf, room by stretching."""


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
            about it [m] by name of the frame.
        max_triangles: if the volume would have more, the tolerance is raised.
        thickness: of a robot without shapes: how thick its bodies are about their frames [m]; a
            fiftieth of its characteristic length by default.

    Raises:
        BadValue: an argument is impossible, a mesh cannot be had, or not even the coarsest volume
            has so few triangles.
    """
    run = checked_run(run)
    tolerance = positive("tolerance", tolerance)
    if isinstance(max_triangles, bool) or not isinstance(max_triangles, int) or max_triangles < 1:
        raise BadValue(f"max_triangles is {max_triangles!r}; it must be a number > 0")
    coarsest = np.inf
    while True:
        links = robot_links(run.robot, _SHAPE * tolerance, thickness)
        points = frame_pieces(run.robot, frames or {}, _SHAPE * tolerance)
        pieces = [piece for piece in links.pieces if piece.body != GROUND] + list(points)
        if not pieces:
            raise BadValue(f"robot '{run.robot.name}' has no shapes, joints or masses to sweep")
        intervals = _intervals(run, pieces, tolerance)
        expected = sum(
            2 * len(piece.points) * len(found)
            for piece, found in zip(pieces, intervals, strict=True)
        )
        count = expected
        if expected <= 2 * max_triangles:
            volume = _volume_of(pieces, intervals, tolerance, links, frames or {})
            count = volume.triangles
            if count <= max_triangles:
                return volume
        if sum(len(found) for found in intervals) == len(pieces) and count >= coarsest:
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

    Args:
        ends: corners of the piece at both ends [m], shape (2 m, 3).
        room: how far the piece may leave their hull [m].
        excess: how far their hull stands out of what is swept [m].
    """

    ends: Array
    room: float
    excess: float


def _intervals(run: Trajectory, pieces: list[Piece], tolerance: float) -> list[list[_Interval]]:
    """Per piece the intervals into which its motion is divided."""

    def fine(bounds: list[Bounds]) -> NDArray[np.bool_]:
        good = np.ones(len(bounds[0].turn), dtype=bool)
        for piece in pieces:
            seen = bounds[piece.joint]
            good &= seen.acceleration(piece.radius) / 8 <= _BEND * tolerance
            good &= seen.turn * piece.diameter / 4 <= _TURN * tolerance
        return good

    leaves = Leaves(run, fine)
    bounds = leaves.from_ground
    nodes = _nodes(bounds, pieces, _BEND * tolerance)
    firsts, whole = nodes[:-1], np.diff(nodes) == 1
    found = []
    for piece in pieces:
        seen, R = bounds[piece.joint], leaves.rotations[:, piece.joint]
        # ||R_1 - R_0||, and what w may do within the leaf, bound the angle turned through.
        chord = np.linalg.norm(R[1:] - R[:-1], axis=(1, 2)) / np.sqrt(2)
        turn = np.minimum(seen.turn, chord + (2 * seen.bend + seen.turn**2) / 4)
        # On a way of the length l nothing is farther than l / 2 from a point of the chord.
        ways = np.add.reduceat(seen.velocity(piece.radius), firsts)
        bend = np.where(whole, seen.acceleration(piece.radius)[firsts] / 8, ways / 2)
        path = _Path(
            leaves.points(piece.joint, piece.points, nodes=nodes),
            bend,
            np.add.reduceat(turn, firsts) * piece.diameter,
        )
        found.append(path.divided(tolerance * (1 - _ROOM) - piece.excess))
    return found


def _nodes(bounds: list[Bounds], pieces: list[Piece], longest: float) -> NDArray[np.int64]:
    """Nodes without those between tiny leaves, over which no piece goes farther than `longest`."""
    ways = np.max([bounds[piece.joint].velocity(piece.radius) for piece in pieces], axis=0)
    kept, since = [0], 0.0
    for leaf, way in enumerate(ways.tolist()):
        if leaf > kept[-1] and since + way > longest:
            kept.append(leaf)
            since = 0.0
        since += way
    return np.array([*kept, len(ways)])


class _Path:
    """Corners of a piece at the nodes, to be divided into intervals.

    Args:
        corners: at the nodes [m], shape (n + 1, m, 3).
        bend: how far a point may leave its chord in each leaf [m], shape (n,).
        turn: how much the difference of two points may turn in each leaf [m], shape (n,).
    """

    def __init__(self, corners: Array, bend: Array, turn: Array) -> None:
        # Nodes last: what is done for all of them at once then runs along the memory.
        self._x = np.ascontiguousarray(corners.transpose(2, 1, 0))
        self._bend, self._turn = bend, turn
        step = np.sqrt(_largest_square(np.diff(self._x, axis=2)))
        self._way = np.concatenate([[0.0], np.cumsum(step + 8 * bend)])

    def divided(self, budget: float) -> list[_Interval]:
        """Intervals, as long as their excess allows, from the first node to the last one."""
        last, first, stride, found = len(self._way) - 1, 0, 1, []
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
            found.append(best)
            first = fits
        return found

    def _interval(self, i: int, j: int) -> _Interval:
        """The interval from node i to node j (see the module's docstring)."""
        x, bend = self._x[:, :, i : j + 1], self._bend[i:j]
        way = self._way[i : j + 1] - self._way[i]
        s = way / way[-1] if way[-1] > 0 else np.zeros(len(way))
        since = x - x[:, :, :1]
        off = since - since[:, :, -1:] * s
        room = float(np.sqrt(np.max(_largest_square(off))) + bend.max())
        turned = _spread(since)[:-1] + _spread(since[:, :, -1:] - since)[1:]
        nearest_half = np.clip(0.5, s[:-1], s[1:])
        weight = nearest_half * (1 - nearest_half)
        excess = room + float(np.max(weight * (self._turn[i:j] + turned)))
        ends = [x[:, :, 0].T, x[:, :, -1].T] if room > 0 else [x[:, :, 0].T]
        return _Interval(np.vstack(ends), room, excess)


def _largest_square(vectors: Array) -> Array:
    """Largest square of a vector at each node; vectors of shape (3, m, k)."""
    return np.asarray(np.sum(vectors * vectors, axis=0).max(axis=0))


def _spread(moved: Array) -> Array:
    """How much the difference of two points may have changed, given how all have moved.

    Args:
        moved: displacements [m], shape (3, m, k).

    Returns:
        Diagonals of the boxes that hold the displacements [m], shape (k,).
    """
    return np.asarray(np.linalg.norm(moved.max(axis=1) - moved.min(axis=1), axis=0))


def _volume_of(
    pieces: list[Piece],
    intervals: list[list[_Interval]],
    tolerance: float,
    links: Links,
    frames: Mapping[str, float],
) -> SweptVolume:
    """The polyhedra around all intervals."""
    parts: dict[str, list[Hull]] = {}
    worst = 0.0
    for piece, found in zip(pieces, intervals, strict=True):
        for interval in found:
            hull, out = with_room(interval.ends, interval.room + SLACK, _ROOM * tolerance)
            worst = max(worst, piece.excess + interval.excess + out)
            parts.setdefault(piece.body, []).append(hull)
    shapes = {body: shape for body, shape in links.shapes.items() if body != GROUND}
    shapes |= {name: "frame" for name in frames if name not in shapes}
    return SweptVolume(
        {name: tuple(hulls) for name, hulls in parts.items()}, tolerance, worst, shapes, links.bare
    )
