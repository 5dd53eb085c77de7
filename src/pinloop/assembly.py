"""Consistent configurations and velocities: close the loops, keep what is fixed, reach targets.

Kinematics only: nothing here knows masses or forces.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from .constraints import Constraints
from .errors import BadValue, InconsistentVelocity, LoopNotClosed, PinloopWarning
from .mechanism import Mechanism

__all__ = ["assemble", "consistent_velocity", "nearby_assembly", "scaled_jacobian"]

Array = NDArray[np.float64]

_TOLERANCE = 1e-10
"""Residual below which a configuration counts as assembled (lengths over the robot's length)."""
_ITERATIONS = 80
_RESTARTS = 40


def assemble(
    robot: Mechanism,
    guess: ArrayLike | Mapping[str, ArrayLike] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    targets: Mapping[str, pin.SE3] | None = None,
    *,
    limits: bool = True,
    seed: int = 0,
) -> Array:
    """Find a configuration that closes every loop.

    Gauss-Newton steps of least change on the configuration manifold, damped and with line search;
    if they get stuck, restarts from random configurations. The first assembly found from the guess
    is the one near it.

    Args:
        robot: the mechanism.
        guess: where to start, shape (nq,), neutral by default. Or values by joint: they stay as
            given if the loops can close with them, otherwise they are the start, and a
            `PinloopWarning` names the joints that had to move.
        fixed: values by joint that must be kept exactly [rad, m].
        targets: placements that bodies or frames must reach in the world (inverse kinematics).
        limits: respect the joints' position limits.
        seed: seed of the restarts.

    Returns:
        The configuration, shape (nq,).

    Raises:
        LoopNotClosed: carries the closest configuration, the residuals, and what blocks it.
    """
    fixed = dict(fixed or {})
    wanted: dict[str, ArrayLike] = {}
    start = robot.neutral
    if isinstance(guess, Mapping):
        wanted = {name: value for name, value in guess.items() if name not in fixed}
        start = robot.configuration(wanted)
    elif guess is not None:
        start = robot.checked_configuration(guess)
    start = robot.configuration(fixed, start)
    for name, pose in (targets or {}).items():
        if not isinstance(pose, pin.SE3):
            raise BadValue(f"target of '{name}' must be a pin.SE3, not {type(pose).__name__}")
    problem = _Problem(robot, Constraints(robot), tuple(fixed), dict(targets or {}), limits)
    _check_fixed(problem, start)
    if wanted:
        kept = replace(problem, held=(*fixed, *wanted))
        _check_fixed(kept, start)
        q, error = _search(kept, start, seed, restarts=_RESTARTS // 2)
        if error < _TOLERANCE:
            return q
    q, error = _search(problem, start, seed, restarts=_RESTARTS)
    if error >= _TOLERANCE:
        raise _not_closed(problem, start, q, seed)
    moved = [name for name in wanted if not _same(robot, name, q, start)]
    if moved:
        values = ", ".join(f"'{name}' at {_value(robot, name, q)}" for name in moved)
        warnings.warn(
            f"robot '{robot.name}' cannot be assembled with the joints as given: {values}; "
            "pass fixed= to insist",
            PinloopWarning,
            stacklevel=2,
        )
    return q


def consistent_velocity(robot: Mechanism, q: ArrayLike, rates: Mapping[str, ArrayLike]) -> Array:
    """Find the velocity that has the given joint rates and keeps every loop closed.

    What rates and loops leave free is as small as possible (radians and characteristic lengths).

    Args:
        robot: the mechanism.
        q: an assembled configuration, shape (nq,).
        rates: rates by joint [rad/s, m/s]; kept exactly.

    Returns:
        The velocity, shape (nv,).

    Raises:
        LoopNotClosed: ``q`` is not assembled.
        InconsistentVelocity: the loops do not allow these rates.
    """
    q = robot.checked_configuration(q)
    problem = _Problem(robot, Constraints(robot), (), {}, limits=False)
    if np.linalg.norm(problem.residual(q)) > 1e-6:
        raise LoopNotClosed(
            f"{_gaps(problem, q)}; assemble the robot first",
            q=q,
            residuals=problem.constraints.by_name(problem.constraints.residual(q)),
        )
    given = robot.velocity(rates)
    held = _rows(robot, tuple(rates))
    scale = problem.column_scale
    jacobian = problem.jacobian(q)
    rest, *_ = np.linalg.lstsq(jacobian[:, ~held], -jacobian @ (given / scale), rcond=1e-10)
    v = given.copy()
    v[~held] = rest * scale[~held]
    left = jacobian @ (v / scale)
    largest = max(1.0, float(np.max(np.abs(given / scale), initial=0.0)))
    if np.linalg.norm(left) > 1e-8 * largest:
        worst = problem.constraints.labels[int(np.argmax(np.abs(left)))]
        asked = ", ".join(f"'{name}' at {value!s}" for name, value in rates.items())
        raise InconsistentVelocity(
            f"robot '{robot.name}': the loops do not allow {asked} together; row '{worst}' would "
            f"open at {np.max(np.abs(left)):.3g} per second; give fewer rates",
            v=v,
            residual=float(np.linalg.norm(left)),
        )
    return v


def nearby_assembly(robot: Mechanism, q: Array, rng: np.random.Generator) -> Array | None:
    """Another assembled configuration on the branch of ``q``, or None if none was found.

    A random motion that the loops allow at first order, up to half a radian, then closed again.

    Args:
        robot: the mechanism.
        q: an assembled configuration, shape (nq,).
        rng: source of the motion.
    """
    problem = _Problem(robot, Constraints(robot), (), {}, limits=False)
    _, values, directions = np.linalg.svd(problem.jacobian(q), full_matrices=True)
    rank = int(np.sum(values > 1e-8 * max(values[0], 1e-300))) if values.size else 0
    null = directions[rank:]
    if len(null) == 0:
        return None
    motion = rng.normal(size=len(null)) @ null
    motion *= rng.uniform(0.1, 0.5) / max(np.abs(motion))
    start = pin.integrate(robot.model, q, motion * problem.column_scale)
    closed, error = _descend(problem, start)
    return closed if error < _TOLERANCE else None


def scaled_jacobian(robot: Mechanism, constraints: Constraints, q: Array) -> Array:
    """Constraint Jacobian in numbers without unit: lengths over the characteristic length."""
    return _Problem(robot, constraints, (), {}, limits=False).jacobian(q)


@dataclass(frozen=True)
class _Problem:
    """Closure and targets as one residual without unit: lengths over ``robot.length``."""

    robot: Mechanism
    constraints: Constraints
    held: tuple[str, ...]
    targets: dict[str, pin.SE3]
    limits: bool

    @property
    def column_scale(self) -> Array:
        """Velocity per unit of scaled velocity: the characteristic length for linear ones."""
        return np.where(self.robot.is_translation, self.robot.length, 1.0)

    @property
    def row_scale(self) -> Array:
        """Factor of each closure row: one over the length for linear ones."""
        factors = [
            1.0 if is_angle(label) else 1 / self.robot.length
            for loop in self.robot.loops
            for label in loop.pair.labels
        ]
        for coupling in self.robot.couplings:
            lead = self.robot.coordinates(coupling.joints[0])
            factors.append(1 / self.column_scale[lead.v.start])
        return np.array(factors)

    def residual(self, q: Array) -> Array:
        """Scaled closure residuals, then ``log6`` of each target's error."""
        parts = [self.row_scale * self.constraints.residual(q)]
        for name, pose in self.targets.items():
            error = pin.log6(pose.actInv(self.robot.placement(q, name))).vector
            parts.append(self._unit(error))
        return np.concatenate(parts)

    def jacobian(self, q: Array) -> Array:
        """Derivative of the residual with respect to the scaled velocity."""
        parts = [self.row_scale[:, None] * self.constraints.jacobian(q)]
        model = self.robot.model
        for name, pose in self.targets.items():
            frame = self.robot.frame_id(name)
            data = model.createData()
            jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
            error = pose.actInv(self.robot.placement(q, name))
            parts.append(self._unit(pin.Jlog6(error) @ jacobian))
        return np.vstack(parts) * self.column_scale

    def _unit(self, rows: Array) -> Array:
        rows = rows.copy()
        rows[:3] /= self.robot.length
        return rows


def is_angle(label: str) -> bool:
    """Whether a row of a pair measures an angle rather than a length."""
    return label.startswith("w")


def _rows(robot: Mechanism, joints: tuple[str, ...]) -> NDArray[np.bool_]:
    """Mask of the velocity coordinates of the named joints."""
    mask = np.zeros(robot.nv, dtype=bool)
    for name in joints:
        mask[robot.coordinates(name).v] = True
    return mask


def _search(problem: _Problem, start: Array, seed: int, restarts: int) -> tuple[Array, float]:
    """Best configuration from the start and, if need be, from random ones around it."""
    rng = np.random.default_rng(seed)
    best, least = _descend(problem, _clamped(problem, start))
    for attempt in range(restarts):
        if least < _TOLERANCE:
            break
        spread = min(np.pi, 0.2 * (attempt + 1))
        q, error = _descend(problem, _clamped(problem, _scattered(problem, start, spread, rng)))
        if error < least:
            best, least = q, error
    return best, least


def _scattered(problem: _Problem, q: Array, spread: float, rng: np.random.Generator) -> Array:
    """A random configuration around ``q``; held joints stay."""
    step = rng.uniform(-spread, spread, problem.robot.nv) * problem.column_scale
    step[_rows(problem.robot, problem.held)] = 0.0
    return np.asarray(pin.integrate(problem.robot.model, q, step))


def _descend(problem: _Problem, q: Array) -> tuple[Array, float]:
    """Damped Gauss-Newton from ``q`` until nothing is gained."""
    residual = problem.residual(q)
    error = float(np.linalg.norm(residual))
    for _ in range(_ITERATIONS):
        if error < 1e-14:
            break
        step = _step(problem, q, residual, error)
        gained = False
        size = 1.0
        while size > 1e-4:
            trial = _clamped(problem, pin.integrate(problem.robot.model, q, size * step))
            rest = problem.residual(trial)
            if np.linalg.norm(rest) < (1 - 1e-3 * size) * error:
                q, residual, error, gained = trial, rest, float(np.linalg.norm(rest)), True
                break
            size /= 2
        if not gained:
            break
    return np.asarray(pin.normalize(problem.robot.model, q)), error


def _step(problem: _Problem, q: Array, residual: Array, error: float) -> Array:
    """Step of least change that reduces the linearised residual, within the joint limits.

    Damping by the squared residual keeps the quadratic convergence also where rows are redundant
    (the rank of J drops on the manifold only). A coordinate that would leave its limits is taken
    out and the step computed again.
    """
    jacobian = problem.jacobian(q)
    free = ~_rows(problem.robot, problem.held)
    for _ in range(problem.robot.nv):
        J = jacobian[:, free]
        gram = J @ J.T + min(error**2, 1e-2) * np.eye(len(J)) * max(1.0, np.sum(J**2) / len(J))
        multiplier, *_ = np.linalg.lstsq(gram, -residual, rcond=1e-15)
        step = np.zeros(problem.robot.nv)
        step[free] = J.T @ multiplier
        step *= problem.column_scale
        blocked = _leaving(problem, q, step) & free
        if not blocked.any():
            return step
        free &= ~blocked
        if not free.any():
            return np.zeros(problem.robot.nv)
    return step


def _limited(robot: Mechanism) -> list[tuple[int, int, float, float]]:
    """Indices in q and v and limits of the coordinates that have position limits."""
    lower, upper = robot.model.lowerPositionLimit, robot.model.upperPositionLimit
    found = []
    for name in robot.joints:
        at = robot.coordinates(name)
        if at.nq != at.nv:
            continue
        for k in range(at.nq):
            i, j = at.q.start + k, at.v.start + k
            if lower[i] > -np.inf or upper[i] < np.inf:
                found.append((i, j, float(lower[i]), float(upper[i])))
    return found


def _leaving(problem: _Problem, q: Array, step: Array) -> NDArray[np.bool_]:
    """Mask of the coordinates at a limit that the step would push further out."""
    mask = np.zeros(problem.robot.nv, dtype=bool)
    if problem.limits:
        for i, j, low, high in _limited(problem.robot):
            mask[j] = (q[i] <= low and step[j] < 0) or (q[i] >= high and step[j] > 0)
    return mask


def _clamped(problem: _Problem, q: Array) -> Array:
    """``q`` with every free coordinate moved into its limits."""
    q = np.array(q)
    if problem.limits:
        held = _rows(problem.robot, problem.held)
        for i, j, low, high in _limited(problem.robot):
            if not held[j]:
                q[i] = min(max(q[i], low), high)
    return q


def _check_fixed(problem: _Problem, q: Array) -> None:
    """A fixed value beyond a limit is a contradiction of the user's own."""
    if not problem.limits:
        return
    held = _rows(problem.robot, problem.held)
    for i, j, low, high in _limited(problem.robot):
        if held[j] and not low - 1e-12 <= q[i] <= high + 1e-12:
            name = next(n for n in problem.held if problem.robot.coordinates(n).v.start <= j
                        < problem.robot.coordinates(n).v.stop)  # fmt: skip
            raise BadValue(
                f"joint '{name}' shall be at {q[i]:.6g}, outside its limits [{low:.6g}, "
                f"{high:.6g}]; pass limits=False to ignore them"
            )


def _same(robot: Mechanism, joint: str, q0: Array, q1: Array) -> bool:
    """Whether a joint stands at the same place in two configurations."""
    change = pin.difference(robot.model, q0, q1)[robot.coordinates(joint).v]
    return bool(np.all(np.abs(change) < 1e-12))


def _value(robot: Mechanism, joint: str, q: Array) -> str:
    return ", ".join(f"{x:.4g}" for x in q[robot.coordinates(joint).q])


def _gaps(problem: _Problem, q: Array) -> str:
    """Which loops, couplings and targets are open, and by how much, in mm and degrees."""
    residual = problem.constraints.residual(q)
    texts = []
    for loop in problem.robot.loops:
        part = residual[problem.constraints.rows_of[loop.name]]
        angular = np.array([is_angle(label) for label in loop.pair.labels], dtype=bool)
        shift, turn = np.linalg.norm(part[~angular]), np.linalg.norm(part[angular])
        if shift > 1e-9 * problem.robot.length or turn > 1e-9:
            texts.append(
                f"loop '{loop.name}': the {loop.pair.name} pair between '{loop.body_a}' and "
                f"'{loop.body_b}' is open by {1e3 * shift:.3g} mm and {np.degrees(turn):.3g} deg"
            )
    for coupling in problem.robot.couplings:
        miss = float(residual[problem.constraints.rows_of[coupling.name]][0])
        if abs(miss) > 1e-9:
            texts.append(f"coupling '{coupling.name}' is off by {miss:.3g}")
    for name, pose in problem.targets.items():
        error = pin.log6(pose.actInv(problem.robot.placement(q, name))).vector
        shift, turn = np.linalg.norm(error[:3]), np.linalg.norm(error[3:])
        if shift > 1e-9 * problem.robot.length or turn > 1e-9:
            texts.append(
                f"'{name}' misses its target by {1e3 * shift:.3g} mm and {np.degrees(turn):.3g} deg"
            )
    return f"robot '{problem.robot.name}': " + "; ".join(texts)


def _not_closed(problem: _Problem, start: Array, q: Array, seed: int) -> LoopNotClosed:
    """The error with the closest configuration and what had to be released to close the loops."""
    reason, blocked_by = _blockers(problem, start, seed)
    residuals = problem.constraints.by_name(problem.constraints.residual(q))
    for name, pose in problem.targets.items():
        error = pin.log6(pose.actInv(problem.robot.placement(q, name))).vector
        residuals[f"target {name}"] = float(np.linalg.norm(error))
    return LoopNotClosed(
        f"{_gaps(problem, q)}; {reason}", q=q, residuals=residuals, blocked_by=blocked_by
    )


def _blockers(problem: _Problem, start: Array, seed: int) -> tuple[str, tuple[str, ...]]:
    """Release one thing after another until the loops close; say which one it was."""

    def closes(**changes: object) -> Array | None:
        q, error = _search(replace(problem, **changes), start, seed, restarts=_RESTARTS // 4)  # type: ignore[arg-type]
        return q if error < _TOLERANCE else None

    if problem.limits and (q := closes(limits=False)) is not None:
        names = _beyond_limits(problem.robot, q)
        return f"joint limits block it ({', '.join(map(repr, names))})", names
    for name in problem.held:
        if closes(held=tuple(other for other in problem.held if other != name)) is not None:
            return f"it is over-fixed: it closes when joint '{name}' is released", (name,)
    if problem.held and closes(held=()) is not None:
        listed = ", ".join(map(repr, problem.held))
        return f"it is over-fixed: it closes when the joints {listed} are released", problem.held
    if problem.targets and closes(targets={}) is not None:
        names = tuple(problem.targets)
        return f"the loops close, but {', '.join(map(repr, names))} is out of reach", names
    return "out of reach: no configuration was found in which it closes", ()


def _beyond_limits(robot: Mechanism, q: Array) -> tuple[str, ...]:
    """Joints that stand outside their limits."""
    outside = {j for i, j, low, high in _limited(robot) if not low <= q[i] <= high}
    return tuple(
        name
        for name in robot.joints
        if outside & set(range(robot.coordinates(name).v.start, robot.coordinates(name).v.stop))
    )
