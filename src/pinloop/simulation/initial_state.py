"""Is an initial state one that the rows allow, and does the motion go on with it?

What is nearly allowed is projected, for what is not the nearest state is offered. Where rows lose
rank, branches of the motion cross: ``J v = b`` then also allows what lies between the tangents of
the branches, and a motion that starts so loses its speed in the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..assembly.assemble import assemble
from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..errors import InconsistentVelocity, LoopNotClosed
from ..linalg.dense import norm
from ..linalg.saddle import Saddle
from ..tolerances import CLOSED, CONSISTENT, CONTRADICTION, NO_SPEED, RANK, SAME, Regularity
from .stabilization import Projection, Projector

_CLOSED = 1e-3 * CLOSED
"""Residual of a start configuration that is left as it is, in the same units."""
_CLOSING = Projection(tol=_CLOSED, coordinates="mass")
_AMPLIFIED = 1e3
"""How often the residual the velocity may be that is projected away silently."""


def consistent_start(
    equations: EquationsOfMotion, t: float, q: Array, v: Array
) -> tuple[Array, Array]:
    """The start state on the manifold; an error that offers it if the given one is far off."""
    rows = equations.rows
    if not (len(rows) or len(rows.whole)):
        return q, v
    q, J, b = _closed(equations, t, q)
    if len(rows) > len(rows.loops):
        J, b, _ = equations.terms(t, q, v)  # some rows take what they keep from this velocity
    v = _allowed(equations, t, q, v, J, b)
    if len(J) and not equations.are_independent(t, q):
        _require_tangent(equations, t, q, v)
    return q, v


def _closed(equations: EquationsOfMotion, t: float, q: Array) -> tuple[Array, Array, Array]:
    """The configuration on the manifold, and ``J`` and ``b`` of the rows there."""
    robot, rows = equations.robot, equations.rows
    J, b, residual = equations.closure_at_start(t, q)
    gap, full = residual[: len(rows.loops)], rows.whole
    if full is not rows.loops:
        gap = equations.residual_of_whole(q)
    if norm(np.where(full.angular, 1.0, 1 / robot.length) * gap) > CONSISTENT:
        raise LoopNotClosed(
            f"robot '{robot.name}': the start configuration is not assembled (residual "
            f"{np.linalg.norm(gap):.3g}); start from pl.assemble(robot, q), which this error "
            "carries as .q",
            q=assemble(robot, q),
            residuals=full.by_name(gap),
        )
    off = norm((rows.scale * residual)[rows.holonomic])
    if off <= _CLOSED:
        return q, J, b
    near, _ = Projector(equations, _CLOSING).position(t, q)
    if off > CONSISTENT:
        raise LoopNotClosed(
            f"robot '{robot.name}': the rows contradict the start configuration (residual "
            f"{off:.3g}); start where prescribed motions start",
            q=near,
            residuals=dict(zip(rows.labels, equations.residual(t, q), strict=True)),
        )
    return near, *equations.closure(t, near)[:2]


def _allowed(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, J: Array, b: Array
) -> Array:
    """The velocity that rows with ``J v = b`` allow."""
    robot, rows = equations.robot, equations.rows

    def missed(v: Array) -> Array:
        return np.asarray(rows.scale * (J @ v - b))

    size = max(1.0, *map(abs, v.tolist() + b.tolist()))
    off = norm(missed(v))
    if off <= _CLOSED * size and not any(v[rows.locked].tolist()):
        return v
    near = v.copy()
    near[rows.locked] = 0.0
    if norm(missed(near)) > _CLOSED * size:
        near += equations.jump(t, q, near).a
    left = norm(missed(near))
    if left > CONTRADICTION * size:
        raise InconsistentVelocity(
            f"robot '{robot.name}': the rows contradict each other at the start: no velocity "
            "meets them all; take one out",
            v=near,
            residual=left,
        )
    if off > CONSISTENT * size:
        worst = rows.labels[int(np.argmax(np.abs(missed(v))))]
        raise InconsistentVelocity(
            f"robot '{robot.name}': the start velocity violates row '{worst}' (residual "
            f"{off:.3g}); use pl.consistent_velocity, or the nearest one, which this error "
            "carries as .v",
            v=near,
            residual=off,
        )
    unit = np.where(robot.is_translation, robot.length, 1.0)
    taken, speed = norm((near - v) / unit), norm(v / unit)
    if taken > max(Regularity.TURNED * speed, _AMPLIFIED * off):
        worst = rows.labels[int(np.argmax(np.abs(missed(v))))]
        raise InconsistentVelocity(
            f"robot '{robot.name}': beside a singular pose the start velocity violates row "
            f"'{worst}' (residual {off:.3g}), and to meet it takes {taken / speed:.0%} of the "
            "speed; start from the singular pose itself, from a pose farther off, or with the "
            "nearest velocity, which this error carries as .v",
            v=near,
            residual=off,
        )
    return near


def _require_tangent(equations: EquationsOfMotion, t: float, q: Array, v: Array) -> None:
    """Raise if no acceleration meets the rows: the motion does not go on with this velocity.

    Independent rows are met by some.
    """
    trouble = obstacle(equations, t, q, v)
    if trouble is None:
        if not v.any():
            _require_tangent_load(equations, t, q)
        return
    if trouble.resting:
        advice = "take one out"
    elif trouble.v.any():
        advice = (
            "start with a velocity along one of the branches, such as the nearest one found, which "
            "this error carries as .v, or from another pose"
        )
    else:
        advice = "start at rest or from another pose"
    raise InconsistentVelocity(
        f"robot '{equations.robot.name}' at the start: {trouble}; {advice}",
        v=trouble.v,
        residual=trouble.residual,
    )


def _require_tangent_load(equations: EquationsOfMotion, t: float, q: Array) -> None:
    """Raise if what rests in a singular pose is driven along none of the branches that meet there.

    Then neither its velocity nor its loads tell on which of them it goes on.
    """
    a = equations.acceleration(t, q, np.zeros(equations.robot.nv))
    # As far as rest is one: half a second of this acceleration is a speed.
    trouble = obstacle(equations, t, q, a) if np.abs(a).max(initial=0.0) > CONSISTENT else None
    if trouble is None or trouble.resting:
        return
    raise InconsistentVelocity(
        f"robot '{equations.robot.name}' rests in a singular pose, where branches of its motion "
        "meet, and its loads drive it along none of them; start beside this pose, or with a "
        f"velocity along one of the {meeting(equations, t, q)}",
        v=trouble.v,
        residual=trouble.residual,
    )


def meeting(equations: EquationsOfMotion, t: float, q: Array) -> str:
    """Name branches that meet in a singular pose, by the rates of their joints, and the pose."""
    robot = equations.robot
    at = {name: robot.coordinates(name) for name in robot.joints}
    pose = _listed({name: q[part.q] for name, part in at.items()})
    rates = [
        _listed({name: v[k.v] for name, k in at.items() if np.abs(v[k.v]).max() > _STILL})
        for v in _branches(equations, t, q)
    ]
    return f"branches such as {'; '.join(rates) or 'one that is known'} in the pose {pose}"


def _listed(values: Mapping[str, Array]) -> str:
    """Values of joints."""
    parts = [f"'{name}' {' '.join(f'{x:.3g}' for x in some)}" for name, some in values.items()]
    return f"({', '.join(parts)})"


def _branches(equations: EquationsOfMotion, t: float, q: Array) -> list[Array]:
    """Some velocities of size one with which motions go on from a singular pose."""
    J, M = equations.closure(t, q)[0], equations.mass(q)
    left = Saddle(M, J, equations.rows.scale, tolerance=Regularity.BASE).dependencies
    null = _allowed_velocities(equations, J, M, len(left))
    defect = partial(_defect, equations, t, q, left)
    rng = np.random.default_rng(0)
    branches: list[Array] = []
    for _ in range(_TRIES):
        start = null @ rng.standard_normal(null.shape[1])
        allowed = RANK * float(np.linalg.norm(defect(start)))
        v = _tangent(defect, null, start, allowed, keep=not equations.rows.moving)
        if not v.any():
            continue
        # Of rates that are as large the first one, so that rounding does not choose the sign.
        v = v / v[np.argmax(np.abs(v) > (1.0 - _STILL) * np.abs(v).max())]
        if all(np.abs(v - other).max() > _STILL for other in branches):
            branches.append(v)
        if len(branches) == _LISTED:
            break
    return branches


_ITERATIONS = 50
_TRIES, _LISTED = 50, 4
"""Random velocities from which branches are looked for, and how many of them are listed."""
_STILL = 1e-3
"""Part of the largest velocity that is none, and by which branches differ."""
_SLOWEST = 1e-2
"""Part of the speed below which the way to a tangent counts as the way to rest."""


@dataclass(frozen=True, eq=False)
class Obstacle:
    """Why no acceleration meets the rows.

    Args:
        row: label of the row that is missed most.
        residual: norm of what is left of ``J a + gamma``: rad/s^2, characteristic lengths per s^2.
        resting: whether the rows contradict each other also if nothing moves.
        v: a velocity nearby with which the motion goes on, shape (nv,); zeros if none was found.
    """

    row: str
    residual: float
    resting: bool
    v: Array

    def __str__(self) -> str:
        if self.resting:
            return (
                f"the rows contradict each other: no acceleration meets them all (row '{self.row}' "
                f"is missed, residual {self.residual:.3g})"
            )
        return (
            "the pose is singular, and the rows allow this velocity to first order only: no "
            f"acceleration meets row '{self.row}' with it (residual {self.residual:.3g})"
        )


def obstacle(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, before: Array | None = None
) -> Obstacle | None:
    """Why no acceleration meets the rows at a state that obeys them; None if there is one.

    ``before``: velocity before a jump to ``v``, which may be what rounding has left of it.
    """
    J, _, gamma = equations.terms(t, q, v)
    if len(J) == 0:
        return None
    rows, robot = equations.rows, equations.robot
    M = equations.mass(q)
    left = Saddle(M, J, rows.scale).dependencies  # the rank is that of the accelerations
    if len(left) == 0:
        return None
    unit = np.where(robot.is_translation, robot.length, 1.0)
    scaled = rows.scale[:, None] * J * unit
    missed = left.T @ (left @ (rows.scale * gamma))
    speed, size = float(np.linalg.norm(v / unit)), max(1.0, float(np.linalg.norm(scaled)))
    if before is not None:
        speed = max(speed, SAME * float(np.linalg.norm(before / unit)))
    terms = size * speed**2 + float(np.linalg.norm(rows.scale * gamma))
    allowed = CONSISTENT * terms + size * NO_SPEED**2
    residual = float(np.linalg.norm(missed))
    if residual <= allowed:
        return None

    defect = partial(_defect, equations, t, q, left)
    resting = bool(np.linalg.norm(defect(np.zeros(robot.nv))) > allowed)
    near = np.zeros(robot.nv)
    if not resting:
        null = _allowed_velocities(equations, J, M, len(left))
        near = _tangent(defect, null, v, 1e-3 * allowed, keep=not rows.moving)
    return Obstacle(rows.labels[int(np.argmax(np.abs(missed)))], residual, resting, near)


def _allowed_velocities(equations: EquationsOfMotion, J: Array, M: Array, lost: int) -> Array:
    """Velocities that rows allow to first order, orthonormal in the kinetic metric, (nv, d).

    So many of the rows depend on others as are ``lost``.
    """
    robot = equations.robot
    unit = np.where(robot.is_translation, robot.length, 1.0)[:, None]
    scaled = equations.rows.scale[:, None] * J * unit.T
    null = np.linalg.svd(scaled)[2][len(J) - lost :].T * unit
    root = np.linalg.cholesky(null.T @ M @ null)
    return np.asarray(np.linalg.solve(root, null.T).T)


def _defect(equations: EquationsOfMotion, t: float, q: Array, left: Array, v: Array) -> Array:
    """What no acceleration can make up for: ``left J = 0``, but ``left gamma`` is left over."""
    return np.asarray(left @ (equations.rows.scale * equations.terms(t, q, v)[2]))


def _tangent(
    defect: Callable[[Array], Array], null: Array, v: Array, allowed: float, *, keep: bool
) -> Array:
    """A velocity near ``v`` on a tangent, by Newton's method; zeros if none is reached.

    To ``keep`` the speed, steps are at right angles to the velocity: the way to rest, where the
    defect is least, is no way to a tangent on which branches touch.
    """
    u = v.copy()
    if null.shape[1] == 0:
        return np.zeros(len(v))
    for _ in range(_ITERATIONS):
        left = defect(u)
        if np.linalg.norm(left) <= allowed:
            return u if np.linalg.norm(u) > _SLOWEST * np.linalg.norm(v) else np.zeros(len(v))
        # The defect is of second order in velocities: differences of any size are exact.
        slope = np.column_stack([(defect(u + w) - defect(u - w)) / 2 for w in null.T])
        ahead = np.linalg.lstsq(null, u)[0]
        slope -= np.outer(slope @ ahead, ahead) / (ahead @ ahead) if keep else 0.0
        u = u - null @ np.linalg.lstsq(slope, left, rcond=RANK)[0]
    return np.zeros(len(v))
