"""The only loop over time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from .assembly import assemble
from .closing import TOLERANCE
from .constraints import Constraints
from .dynamics import EquationsOfMotion, Formulation
from .errors import (
    BadValue,
    InconsistentVelocity,
    LoopNotClosed,
    PinloopError,
    PinloopWarning,
    SimulationFailed,
)
from .forces import Force, JointDamping, JointFriction, TorqueFunction
from .integrate import Attempt, MuntheKaas, StepControl
from .manifold import RobotManifold
from .mechanism import Mechanism
from .regularize import regularize
from .rows import Row
from .stabilization import Projection, Projector
from .trajectory import Trajectory

__all__ = ["simulate"]

Array = NDArray[np.float64]
Report = Callable[[float], None]

_CONSISTENT = 1e-6
"""Residual of a start state up to which it is projected silently: rad, characteristic lengths."""
_TORN = 1e-6
"""Closure residual of the full rows at which loops count as torn."""


def simulate(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    until: float,
    start: float = 0.0,
    tau: Callable[[float, Array, Array], ArrayLike] | None = None,
    forces: Sequence[Force] = (),
    rows: Sequence[Row] = (),
    losses: bool = True,
    formulation: Formulation | None = None,
    method: MuntheKaas | None = None,
    stabilization: Projection | None = Projection(),  # noqa: B008 (frozen)
    regularization: bool = True,
    save_every: float | None = None,
    progress: bool = False,
) -> Trajectory:
    """Integrate the equations of motion of a robot.

    Args:
        robot: the mechanism.
        q: assembled configuration at the start, shape (nq,).
        v: velocity at the start that all rows allow, shape (nv,); at rest by default.
        until: end of the run [s].
        start: start of the run [s].
        tau: generalised force as a function of t, q, v.
        forces: what acts besides gravity.
        rows: constraint rows beyond loops and couplings.
        losses: let the damping and (smoothed) dry friction of the robot's file act.
        formulation: how reactions are eliminated; `Augmented` by default.
        method: integrator; Dormand-Prince 5(4) with tolerance 1e-8 by default.
        stabilization: projection to the constraint manifold; None to see the drift.
        regularization: remove redundant loop rows first.
        save_every: interval of the stored states [s]; every step by default.
        progress: show a progress bar.

    Returns:
        The trajectory; what has been computed, if the run is interrupted with Ctrl-C.

    Raises:
        LoopNotClosed: ``q`` is not assembled; carries the nearest assembled configuration.
        InconsistentVelocity: the rows do not allow ``v``; carries the nearest velocity.
        SimulationFailed: the run could not go on; carries the trajectory so far.
    """
    span = _span(start, until, save_every)
    if regularization and robot.loops and robot.regularization is None:
        robot = regularize(robot)
    acting = [*forces]
    if losses:
        acting += _losses(robot)
    if tau is not None:
        acting.append(TorqueFunction(tau))
    equations = EquationsOfMotion(robot, rows=rows, forces=acting, formulation=formulation)
    q0 = robot.checked_configuration(q).copy()
    v0 = np.zeros(robot.nv) if v is None else robot.checked_velocity(v).copy()
    q0, v0 = _consistent(equations, start, q0, v0)
    equations.rows.begin(q0, v0)
    run = _Run(equations, method or MuntheKaas(), stabilization, start, until, save_every)
    with _progress(progress, span, robot.name) as report:
        return run.go(q0, v0, report)


def _span(start: float, until: float, save_every: float | None) -> float:
    """Length of the run, after checking its ends."""
    for name, value in (("start", start), ("until", until)):
        if not isinstance(value, (int, float)):
            raise BadValue(f"{name} is {value!r}; it must be a time in seconds")
    if not (np.isfinite(start) and np.isfinite(until) and until > start):
        raise BadValue(f"until is {until} s and start is {start} s; the end must come after")
    if save_every is not None and not 0 < save_every < np.inf:
        raise BadValue(f"save_every is {save_every} s; it must be positive")
    return float(until - start)


def _losses(robot: Mechanism) -> list[Force]:
    """Damping and friction of the file, where there is any."""
    found: list[Force] = []
    if np.any(robot.model.damping):
        found.append(JointDamping())
    if np.any(robot.model.upperDryFrictionLimit):
        found.append(JointFriction())
    return found


def _consistent(equations: EquationsOfMotion, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """The start state on the manifold; an error that offers it if the given one is far off."""
    robot, rows = equations.robot, equations.rows
    full = Constraints(robot, full=True)
    gap = full.residual(q)
    if np.linalg.norm(np.where(full.angular, 1.0, 1 / robot.length) * gap) > _CONSISTENT:
        near = assemble(robot, q)
        raise LoopNotClosed(
            f"robot '{robot.name}': the start configuration is not assembled (residual "
            f"{np.linalg.norm(gap):.3g}); start from pl.assemble(robot, q), which this error "
            "carries as .q",
            q=near,
            residuals=full.by_name(gap),
        )
    projector = Projector(equations, Projection(tol=TOLERANCE * 1e-3, coordinates="mass"))
    gap = (rows.scale * equations.residual(t, q))[rows.holonomic]
    near, _ = projector.position(t, q)
    if np.linalg.norm(gap) > _CONSISTENT:
        raise LoopNotClosed(
            f"robot '{robot.name}': the rows contradict the start configuration (residual "
            f"{np.linalg.norm(gap):.3g}); start where prescribed motions start",
            q=near,
            residuals=dict(zip(rows.labels, equations.residual(t, q), strict=True)),
        )
    q = near
    J, b, _ = equations.terms(t, q, v)
    near, _ = projector.velocity(t, q, v)
    size = max(1.0, float(np.abs(v).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    if np.linalg.norm(rows.scale * (J @ near - b)) > 1e-8 * size:
        raise InconsistentVelocity(
            f"robot '{robot.name}': the rows contradict each other at the start: no velocity "
            "meets them all; take one out",
            v=near,
            residual=float(np.linalg.norm(rows.scale * (J @ near - b))),
        )
    off = float(np.linalg.norm(rows.scale * (J @ v - b)))
    if off > _CONSISTENT * size:
        worst = rows.labels[int(np.argmax(np.abs(rows.scale * (J @ v - b))))]
        raise InconsistentVelocity(
            f"robot '{robot.name}': the start velocity violates row '{worst}' (residual "
            f"{off:.3g}); use pl.consistent_velocity, or the nearest one, which this error "
            "carries as .v",
            v=near,
            residual=off,
        )
    return q, near


class _Run:
    """State of a run: where it is, how large the next step is, what is kept."""

    def __init__(
        self,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        stabilization: Projection | None,
        start: float,
        until: float,
        save_every: float | None,
    ) -> None:
        self.equations, self.method = equations, method
        self.start, self.until, self.save_every = start, until, save_every
        robot = equations.robot
        self.manifold = RobotManifold(robot)
        self.projector = None if stabilization is None else Projector(equations, stabilization)
        self.scale = np.where(robot.is_translation, robot.length, 1.0)
        self.control = StepControl(method, self.scale)
        report = robot.regularization
        reduced = report is not None and report.rows < report.full_rows
        self.watch = Constraints(robot, full=True) if reduced else None
        self.evaluations, self.rejected = 0, 0
        self.kept: list[tuple[float, Array, Array, Array]] = []
        self.psi: list[Array] = []

    def go(self, q: Array, v: Array, report: Report) -> Trajectory:
        """Step until the end, a failure, or Ctrl-C."""
        try:
            self._steps(q, v, report)
        except KeyboardInterrupt:
            if not self.kept:
                raise
            t = self.kept[-1][0]
            warnings.warn(f"interrupted at t = {t:.6g} s", PinloopWarning, stacklevel=3)
            return self._trajectory(f"interrupted at t = {t:.6g} s")
        except _StepFailed as failure:
            raise self._failed(str(failure), failure.reason) from None
        except SimulationFailed:
            raise
        except PinloopError as error:
            raise self._failed(str(error), type(error).__name__) from error
        return self._trajectory("done")

    def _steps(self, q: Array, v: Array, report: Report) -> None:
        t, count = self.start, 0
        a = self._acceleration(t, q, v)
        self._keep(t, q, v, a, None)
        h = self.method.step or self.control.first_step(v, a, self.until - t)
        while t < self.until:
            if self.method.step is not None:
                count += 1
                t_next = min(self.start + count * self.method.step, self.until)
                if self.until - t_next < 1e-9 * self.method.step:
                    t_next = self.until
                attempt = self._attempt(t, t_next - t, (q, v, a))
            else:
                t_next, attempt, h = self._controlled(t, h, (q, v, a))
            psi, q, v = attempt.psi, attempt.q, attempt.v
            a_next = attempt.a
            q_projected, v_projected, moved = self._project(t_next, q, v)
            if moved:
                shift = pin.difference(self.equations.robot.model, q, q_projected)
                # First order in the shift, which is as small as the error of the step.
                psi = psi + self.manifold.dexp_inv(self.kept[-1][1], psi, shift)
                q, v, a_next = q_projected, v_projected, None
            self._watch_loops(t_next, q)
            a = self._acceleration(t_next, q, v) if a_next is None else a_next
            t = t_next
            self._keep(t, q, v, a, psi)
            report(t)

    def _controlled(
        self, t: float, h: float, state: tuple[Array, Array, Array]
    ) -> tuple[float, Attempt, float]:
        """One accepted step of controlled size; returns its end, the attempt, the next size."""
        while True:
            h = min(h, self.method.largest)
            last = t + h >= self.until - 1e-12 * max(abs(t), h)
            t_next = self.until if last else t + h
            if t_next - t < self.method.smallest and not last:
                raise _StepFailed(
                    f"the step fell below {self.method.smallest:g} s; the motion is too stiff or "
                    "jumps (loosen rtol and atol, or look for a discontinuous force)",
                    "step too small",
                )
            attempt = self._attempt(t, t_next - t, state)
            error = self.control.error(attempt.errors, state[1], attempt.v)
            if np.isfinite(error) and error <= 1.0:
                grown = h * self.control.factor(error, accepted=True)
                return t_next, attempt, grown
            self.rejected += 1
            shrink = self.control.factor(error, accepted=False) if np.isfinite(error) else 0.2
            h = (t_next - t) * shrink

    def _attempt(self, t: float, h: float, state: tuple[Array, Array, Array]) -> Attempt:
        attempt = self.method.attempt(self.manifold, self._acceleration, t, h, state)
        if self.method.step is not None and not np.all(np.isfinite(attempt.v)):
            raise _StepFailed("the state became infinite; take a smaller step", "not finite")
        return attempt

    def _acceleration(self, t: float, q: Array, v: Array) -> Array:
        self.evaluations += 1
        return self.equations.acceleration(t, q, v)

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        normal = pin.normalize(self.equations.robot.model, q)
        if self.projector is None:
            return normal, v, False
        return self.projector.apply(t, normal, v)

    def _watch_loops(self, t: float, q: Array) -> None:
        """Rows that regularization dropped must stay closed by themselves."""
        if self.watch is None or self.projector is None:
            return
        residual = self.watch.residual(q)
        if np.linalg.norm(residual) > _TORN * max(1.0, self.equations.robot.length):
            names = self.watch.by_name(residual)
            worst = max(names, key=lambda name: names[name])
            raise _StepFailed(
                f"loop '{worst}' is torn apart (residual {names[worst]:.3g}) although its "
                "regularized rows are closed; simulate with regularization=False",
                "loop torn apart",
            )

    def _keep(self, t: float, q: Array, v: Array, a: Array, psi: Array | None) -> None:
        self.kept.append((t, q.copy(), v.copy(), a.copy()))
        if psi is not None:
            self.psi.append(psi.copy())

    def _trajectory(self, message: str) -> Trajectory:
        robot = self.equations.robot
        psi = np.array(self.psi).reshape(-1, robot.nv)
        t, q, v, a = (np.array([state[k] for state in self.kept]) for k in range(4))
        run = Trajectory(
            robot, t, q, v, a, psi, np.zeros(len(t), dtype=np.int64), message,
            self.equations, self.evaluations, self.rejected,
        )  # fmt: skip
        return run if self.save_every is None else _sampled(run, self.save_every)

    def _failed(self, message: str, reason: str) -> SimulationFailed:
        t = self.kept[-1][0] if self.kept else self.start
        name = self.equations.robot.name
        return SimulationFailed(
            f"robot '{name}' at t = {t:.6g} s: {message}",
            trajectory=self._trajectory(reason) if self.kept else None,
            reason=reason,
        )


class _StepFailed(Exception):  # noqa: N818
    """A step cannot be taken; turned into `SimulationFailed` with the trajectory."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def _sampled(run: Trajectory, every: float) -> Trajectory:
    """The run at equal intervals; ``t_k = t0 + k every``."""
    count = int(np.floor((run.t[-1] - run.t[0]) / every * (1 + 1e-12)))
    t = run.t[0] + every * np.arange(count + 1)
    if run.t[-1] - t[-1] > 1e-9 * every:
        t = np.append(t, run.t[-1])
    t[-1] = run.t[-1]
    _, q, v = run(t)
    a = np.array([run.equations.acceleration(*state) for state in zip(t, q, v, strict=True)])
    model = run.robot.model
    psi = np.array([pin.difference(model, q[k], q[k + 1]) for k in range(len(t) - 1)])
    return Trajectory(
        run.robot, t, q, v, a, psi.reshape(-1, run.robot.nv), np.zeros(len(t), dtype=np.int64),
        run.message, run.equations, run.evaluations, run.rejected,
    )  # fmt: skip


def _progress(show: bool, span: float, name: str) -> AbstractContextManager[Any]:
    """A progress bar with simulated time and time left, or nothing."""
    if not show:
        return nullcontext(lambda t: None)
    from .progress import progress_bar

    return progress_bar(span, name)
