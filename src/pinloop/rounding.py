"""Geometry that was meant to be special and lost it to rounding, made exact again.

A mechanism that moves although it has more rows than coordinates does so because axes are parallel,
meet or stand square, or lengths are equal: nobody draws that by chance. Its file has rounded
numbers, with which its loops cannot be closed or cannot move. Within a tolerance this is recognised
and mended: the joint frames are moved by the least change with which the loops close wherever they
go (`fitting`). Everything behind then sees one exact robot: regularization, ranks, formulations,
absolute coordinates, stops.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .closing import TOLERANCE, Problem, search
from .constraints import Constraints
from .description import Joint, Rounding
from .errors import BadValue, LoopNotClosed
from .fitting import Fit, LoopCluster, fit_frames, loop_clusters, walk
from .mechanism import Mechanism, build

__all__ = ["DEFAULT_TOLERANCE", "with_exact_geometry", "written_tolerance"]

Array = NDArray[np.float64]

DEFAULT_TOLERANCE = 1e-4
"""Radians, and parts of the robot's length, by which a frame may be off and count as rounded."""
_CLOSED = 1e-12
"""Residual up to which loops are closed as they are."""
_ZERO = 1e-11
"""Singular values of rows that depend on each other exactly stay below this."""
_CLOSED_ANYWHERE = 1e-10
"""Residual up to which loops count as closed at configurations that were not fitted."""
_MARGIN = 10.0
"""How much more than its frames a loop may be off: errors of several frames add up."""
_STIFF = 0.1
"""Singular values above this part of the largest one resist, however much is tolerated."""
_RESTARTS = 8


def with_exact_geometry(robot: Mechanism, tolerance: float) -> Mechanism:
    """Return the robot with the special geometry that its loops have but for rounding.

    Args:
        robot: the mechanism.
        tolerance: largest turn [rad] or shift [lengths of the robot] of a joint frame; 0 leaves
            everything as it is.

    Returns:
        The robot itself if its loops are closed and free to move, or if they are off by more.
    """
    if tolerance <= 0 or not robot.loops:
        return robot
    fits, _, _ = _fits(robot, tolerance, tolerance)
    return _rebuilt(robot, fits, tolerance, "closes; its numbers are rounded") if fits else robot


def fitted(robot: Mechanism, tolerance: float) -> Mechanism:
    """Return the robot with its joint frames moved by the least that closes its loops.

    Args:
        robot: the mechanism.
        tolerance: largest turn [rad] or shift [lengths of the robot] of a joint frame.

    Raises:
        BadValue: the tolerance is no small number.
        LoopNotClosed: no change of the frames within the tolerance closes the loops.
    """
    if not 0 < tolerance < 1:
        raise BadValue(f"tolerance is {tolerance!r}; it must be a number between 0 and 1")
    fits, q, error = _fits(robot, tolerance, DEFAULT_TOLERANCE)
    changed = _rebuilt(robot, fits, tolerance, "was fitted") if fits else robot
    left = Problem(changed, Constraints(changed, full=True), (), {}, limits=False)
    if fits:
        q, error = search(left, q, seed=0, restarts=_RESTARTS)
    if error > TOLERANCE:
        raise LoopNotClosed(
            f"robot '{robot.name}': no change of its joint frames by up to {tolerance:g} rad and "
            f"lengths of the robot closes its loops; {error:.2g} is left",
            q=q,
            residuals=left.constraints.by_name(left.constraints.residual(q)),
        )
    return changed


def _fits(robot: Mechanism, tolerance: float, floor: float) -> tuple[list[Fit], Array, float]:
    """Fits of all clusters that need one, the pose nearest to closed, and what is open there."""
    problem = Problem(robot, Constraints(robot, full=True), (), {}, limits=True)
    near = min(_MARGIN * tolerance, 0.3)
    q, error = search(problem, robot.neutral, seed=0, restarts=_RESTARTS, enough=near)
    meant = (_meant(cluster, q, tolerance, floor) for cluster in loop_clusters(robot))
    return [fit for fit in meant if fit is not None], q, error


def _meant(cluster: LoopCluster, q: Array, tolerance: float, floor: float) -> Fit | None:
    """The change after which a cluster moves as it was meant to; None if there is none to make.

    Changes up to ``floor`` are taken for rounding whatever the others are; those beyond only if
    they are of the size of what it takes to close the loops at all.
    """
    values = np.linalg.svd(cluster.jacobian(q), compute_uv=False)
    unit = max(1.0, float(values.max(initial=0.0)))
    stiff = int(np.sum(values > min(_MARGIN * tolerance, _STIFF) * unit))
    rank = int(np.sum(values > _ZERO * unit))
    if np.linalg.norm(cluster.residual(q)) > _CLOSED:
        # Loops that are open may also be rigid.
        rank = min(rank, len(cluster.rows) - 1) + 1
    # The lower the rank, the more special the geometry: the most special in reach is the one meant.
    fits: list[Fit] = []
    for candidate in range(stiff, rank):
        fit = _fit(cluster, q, candidate, tolerance)
        if fit is not None:
            fits.append(fit)
            if fit.size <= floor:
                break
    least = min((fit.size for fit in fits), default=0.0)
    return next((fit for fit in fits if fit.size <= max(floor, _MARGIN * least)), None)


def _fit(cluster: LoopCluster, q: Array, rank: int, limit: float) -> Fit | None:
    """The least change with which the loops move with rows of a given rank."""
    rng = np.random.default_rng(0)
    allowed = min(_MARGIN * limit, 0.5 * _STIFF)
    places = walk(cluster, q, rank, allowed, rng)
    if places is None:
        return None
    for meeting in (True, False):
        fit = fit_frames(cluster, places, rank, limit, meeting=meeting)
        # Closed where it was fitted, and closed elsewhere.
        if fit is not None and walk(fit.cluster, places[-1], rank, _CLOSED_ANYWHERE, rng):
            return fit if fit.size > _CLOSED else None
    return None


def _rebuilt(robot: Mechanism, fits: list[Fit], tolerance: float, word: str) -> Mechanism:
    """The robot with the frames of all fits, and a warning that starts with ``word``."""
    joints = {joint.name: joint for joint in robot.description.joints}
    moves: list[tuple[float, float, str]] = []
    for fit in fits:
        moved: dict[str, Joint] = {j.name: j for j in fit.cluster.robot.description.joints}
        for (name, _), part in zip(fit.cluster.frames, fit.shift, strict=True):
            joints[name] = moved[name]
            shift, turn = np.linalg.norm(part.reshape(2, 3), axis=1).tolist()
            moves.append((shift * robot.length, turn, name))
    rounding = Rounding(
        tolerance=tolerance,
        shift=max(shift for shift, _, _ in moves),
        turn=max(turn for _, turn, _ in moves),
        joint=max(moves, key=lambda move: max(move[0] / robot.length, move[1]))[2],
    )
    description = replace(
        robot.description,
        joints=tuple(joints.values()),
        rounding=rounding,
        warnings=(*robot.warnings, f"robot '{robot.name}' {word}: {rounding}"),
    )
    return replace(build(description, kinematics_only=True), given_length=robot.length)


_NUMBER = re.compile(r"(?<![\w.])[-+]?(\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?![\w.])")
_EVIDENCE, _SHARE = 20, 0.7
"""How many numbers must tell, and how many of them have all digits: nine of ten have if rounded."""


def written_tolerance(texts: Iterable[str]) -> float:
    """Tolerance for a robot whose numbers are all written with few digits.

    A file in which every number has at most ``n`` significant digits, and most have all of them,
    was rounded to ``n`` digits: its frames are off by some ``10^(1 - n)``. Short numbers alone say
    nothing: 0.3 is what somebody meant.

    Args:
        texts: what the robot was read from.
    """
    counts: Counter[int] = Counter()
    for text in texts:
        for number in _NUMBER.findall(text):
            counts[len(number.replace(".", "").strip("0"))] += 1
    most = max(counts, default=0)
    long = sum(counts[n] for n in counts if n > 1)
    if most < 3 or long < _EVIDENCE or counts[most] < _SHARE * long:
        return DEFAULT_TOLERANCE
    return max(DEFAULT_TOLERANCE, 3 * 10.0 ** (1 - most))
