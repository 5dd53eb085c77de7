"""A robot as the arrays that the native kernel is made from; no motion is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..constraints.rows import RowSet
from ..errors import PinloopError
from ..model.mechanism import Mechanism
from ..model.moving_tree import simple_joints
from ..model.workspace import remembered
from .independence import has_regular_mass

HAS_KERNEL = find_spec("pinloop._kernel") is not None  # not if there was no compiler


def require_built_from(folder: Path, digest: str) -> None:
    """Refuse a kernel of other sources than those in a folder; installed ones lie in none."""
    files = sorted(folder.glob("*.[ch]pp"))
    own = "".join(sha256(file.read_bytes()).hexdigest() for file in files)
    if files and sha256(own.encode()).hexdigest() != digest:
        raise PinloopError(
            f"the native kernel was built from other sources than those in {folder}, and would "
            "compute wrongly; build it again: pip install --no-deps -e ."
        )


if HAS_KERNEL:
    from .._kernel import SOURCES_DIGEST, StopDynamics, Tables, rows_at

    require_built_from(Path(__file__).parents[2] / "native", SOURCES_DIGEST)

Tie = tuple[int, pin.SE3, int, pin.SE3, Sequence[float], Sequence[tuple[str, Array]]]
"""Joint that carries frame A and the frame's place there, the same of B; what the pair leaves free,
as `Tables` has it; what each row takes of the motion of B relative to A, see `Pair.components`."""
Coupling = Sequence[tuple[int, int, Sequence[float]]]
"""Coordinate in q and in v of each joint of a coupling, and its polynomial, the constant first."""

Links = tuple[Array, Array, list[int]]
"""A line per link and per velocity, and per joint its link."""

_TIES = "twist", "point", "offset", "rod", "angle"
"""What rows take, by their numbers in the kernel; a point, too, is rows of a twist to a pair."""
_MOTIONS = {
    "JointModelTranslation": 2,
    "JointModelSpherical": 3,
    "JointModelFreeFlyer": 4,
    "JointModelPlanar": 5,
}
"""Numbers of motions in the kernel, see `tables.hpp`; 0 is a screw, 1 a circle."""


@remembered
def tables_of_rows(
    robot: Mechanism, *, whole: bool = True, comparable: bool = True
) -> Tables | None:
    """A robot and its rows as the kernel sees them, if it can.

    Args:
        robot: the mechanism.
        whole: all rows of its pairs; else those that regularization has left.
        comparable: whether those are in units that compare, and balls hold points. Where a step has
            opened a loop, these are held at both their places, which turns no slender rod.
    """
    rows, frames = Constraints(robot, full=whole), robot.model.frames
    if not HAS_KERNEL:
        return None
    unit = np.where(rows.angular, 1.0, 1 / robot.length if comparable and not whole else 1.0)
    ties, couplings = list[Tie](), []
    for loop in robot.loops:
        a, b = frames[loop.frame_a], frames[loop.frame_b]
        components = rows.components(loop)
        if components is None:
            return None
        point = comparable and np.array_equal(
            [x for kind, x in components if kind == "twist"], np.eye(6)[:3]
        )
        units = unit[rows.rows_of[loop.name]]
        along = list[tuple[str, Array]]()
        along += [(kind, s * x) for (kind, x), s in zip(components, units, strict=True)]
        if point and not between_free_bodies(robot.model, a, b):
            along[:3] = [("point", x) for _, x in along[:3]]
        pair = loop.pair
        free = [len(pair.turns), *(float(axis in pair.slides) for axis in "xyz"), pair.advance]
        ties.append((a.parentJoint, a.placement, b.parentJoint, b.placement, free, along))
    for coupling in rows.couplings:
        if robot.tree_joints(coupling.joints) != coupling.joints:
            return None
        at = [robot.coordinates(joint) for joint in coupling.joints]
        scale = unit[rows.rows_of[coupling.name]][0]
        sums = zip(at, coupling.polynomials, strict=True)
        couplings.append([(x.q.start, x.v.start, [scale * c for c in p]) for x, p in sums])
    return tables_of(robot.model, ties, couplings, links_of(robot))


def stop_dynamics(rows: RowSet, rank: int | None) -> StopDynamics | None:
    """The kernel with the rows of a robot for one thread, if it can do these.

    ``rank``: number of independent rows; where it is less than all, it is open which to hold.
    """
    if not len(rows) == rank == len(rows.loops) or not has_regular_mass(rows.robot):
        return None
    tables = tables_of_rows(rows.robot, whole=False)
    return None if tables is None else StopDynamics(tables)


def loop_tables(rows: RowSet) -> Tables | None:
    """The tables of the rows of loops as Python has them, if the kernel can do these."""
    lower = len(rows.loops.constant) == len(rows.robot.loops)
    return tables_of_rows(rows.robot, whole=False, comparable=False) if lower else None


def evaluate_rows(tables: Tables, count: int, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """``J``, ``gamma`` and residuals of the rows of tables, ``count`` of them, at states."""
    room = np.empty((len(q), count, v.shape[1] + 2))
    rows_at(tables, q, v, room)
    return room[:, :, :-2], room[:, :, -2], room[:, :, -1]


def between_free_bodies(model: pin.Model, a: pin.Frame, b: pin.Frame) -> bool:
    """Whether a loop ties bodies in absolute coordinates.

    Where a loop is open, a tied point differs from the rows of its pair by the turning of A. By
    these rows alone integration on SE(3) keeps such loops closed (paper 2), so they get frames.
    """
    return all(
        joint == 0 or (model.nvs[joint] == 6 and model.parents[joint] == 0)
        for joint in (a.parentJoint, b.parentJoint)
    )


def tables_of(
    model: pin.Model,
    ties: Sequence[Tie] = (),
    couplings: Sequence[Coupling] = (),
    tree: Links | None = None,
) -> Tables | None:
    """The tables of a model, its loops and couplings, whose rows are numbered in this order.

    None if there is a joint that the kernel does not know. ``tree``: links of the model.
    """
    tree = tree or _links(model)
    if tree is None:
        return None
    links, twists, carried = tree
    loops, rows = list[list[float]](), list[list[float]]()
    for number, (a, place_a, b, place_b, free, along) in enumerate(ties):
        ends = (carried[a], *frame_numbers(place_a)), (carried[b], *frame_numbers(place_b))
        loops.append([*ends[0], *ends[1], *free])
        rows += [[number, _TIES.index(kind), *row] for kind, row in along]
    terms = list[tuple[int, int, int, Sequence[float]]]()
    for coupling in couplings:
        terms += [(len(rows), *term) for term in coupling]
        rows.append([-1, 0, *[0.0] * 6])
    arrays = links, twists, _lines(loops, 31), _lines(rows, 8)
    return Tables((model.nq, model.nv), np.array(model.gravity.linear), arrays, terms)


@remembered
def links_of(robot: Mechanism) -> Links | None:
    """Those of the model, once for all choices of rows."""
    return _links(robot.model)


def link_of(robot: Mechanism, frame: pin.Frame) -> int:
    """The link that carries a frame, -1 for the world, of a robot that the kernel knows."""
    tree = links_of(robot)
    assert tree is not None
    return tree[2][int(frame.parentJoint)]


def _links(model: pin.Model) -> Links | None:
    """The links of a model; None if there is a joint that is not known."""
    links, twists, carried = list[list[float]](), list[list[float]](), [-1]
    neutral = pin.neutral(model)
    for number in range(1, model.njoints):
        joint, body, parent = model.joints[number], model.inertias[number], model.parents[number]
        chain = _chain(joint, model.jointPlacements[number], neutral)
        if chain is None:
            return None
        before, q = carried[parent], joint.idx_q
        for motion, count, place, axes in chain:
            # The last link of the chain is the body, the others are massless.
            links.append([before, motion, q, *frame_numbers(place), *axes[0], *[0.0] * 10])
            twists += axes
            before, q = len(links) - 1, q + count
        moments = body.inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]].tolist()
        links[-1][-10:] = [body.mass, *body.lever, *moments]
        carried.append(before)
    return _lines(links, 31), _lines(twists, 6), carried


def _lines(lines: Sequence[Sequence[float]], width: int) -> Array:
    return np.array(lines, dtype=float).reshape(-1, width)


def frame_numbers(place: pin.SE3) -> list[float]:
    """Axes of a frame, and its origin."""
    return [*place.rotation.T.ravel().tolist(), *place.translation.tolist()]


def _chain(
    joint: pin.JointModel, place: pin.SE3, neutral: Array
) -> list[tuple[int, int, pin.SE3, list[list[float]]]] | None:
    """A joint as joints of the kernel, one after another; None if one of them is not known.

    Of each its motion, number of coordinates, place in the link that carries it, and twists.
    """
    chain = []
    for part, at, twists in simple_joints(joint, place, neutral):
        motion = _MOTIONS.get(part.shortname())
        if motion is None and part.nv == 1 and part.nq <= 2:
            motion = part.nq - 1
        if motion is None:
            return None
        chain.append((motion, part.nq, at, twists.T.tolist()))
    return chain
