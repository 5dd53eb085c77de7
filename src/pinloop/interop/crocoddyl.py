r"""Looped robots in Crocoddyl's optimal control problems; no solver lives here.

States are Crocoddyl's own: configuration and velocity of the tree, `StateMultibody`, so that its
costs, actuations, integrators and solvers work as they do for a robot without loops. Accelerations
keep the loops, and so does `ActionModelClosed` after each step. It closes them along dependent
coordinates ``D``, chosen at the state before the step: with ``(q~, v~)`` the state that Crocoddyl's
integrator reaches,

    q = q~ (+) d,     g(q) = 0,          d zero outside D
    v = v~ + e,       J(q) v = b,        e zero outside D.

What is derived from these two lines is exact however far the step has left the loops open. Gains
that pull them closed would instead be forces that the optimum exploits, and coordinates of the
manifold would need costs of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array
from ..dynamics.derivatives import acceleration_at, derivatives_at, joint_chain, jump_derivatives_at
from ..dynamics.equations import EquationsOfMotion
from ..dynamics.independence import dependent_coordinates
from ..errors import BadValue, PinloopError
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..tolerances import CLOSED, LEAST_SQUARES

try:
    import crocoddyl
except ImportError:
    raise BadValue("crocoddyl is not installed: pip install 'pinloop[crocoddyl]'") from None

_NEWTON_STEPS = 30
_FARTHEST = 0.1
"""Steps that leave loops farther open [rad, lengths] may close on another branch of the motion."""


class ActuationModelDrives(crocoddyl.ActuationModelAbstract):
    """Torques of a robot's drives as controls, in the order of `Mechanism.actuated`.

    Args:
        state: of the tree of the robot.
        robot: the mechanism; its actuated joints are joints of the tree.
    """

    @public
    def __init__(self, state: Any, robot: Mechanism) -> None:
        at = [robot.coordinates(joint).v for joint in robot.actuated]
        self._columns = [k for part in at for k in range(part.start, part.stop)]
        super().__init__(state, len(self._columns))

    def calc(self, data: Any, x: Array, u: Array) -> None:
        """Give the drives' coordinates their torques."""
        data.tau[self._columns] = u

    def calcDiff(self, data: Any, x: Array, u: Array) -> None:
        """Nothing changes: derivatives are set in `createData`."""

    def commands(self, data: Any, x: Array, tau: Array) -> None:
        """Read controls off generalised forces."""
        data.u[:] = tau[self._columns]

    def torqueTransform(self, data: Any, x: Array, u: Array) -> None:
        """Nothing changes: it is set in `createData`."""

    def createData(self) -> Any:
        """Data with the constant derivatives."""
        data = crocoddyl.ActuationDataAbstract(self)
        chosen = np.zeros((self.state.nv, self.nu))
        chosen[self._columns, range(self.nu)] = 1.0
        data.dtau_du[:] = chosen.reshape(data.dtau_du.shape)
        data.Mtau[:] = chosen.T.reshape(data.Mtau.shape)
        data.tau_set = [column in self._columns for column in range(self.state.nv)]
        return data


class DifferentialActionModelLooped(crocoddyl.DifferentialActionModelAbstract):
    """Dynamics of a robot with loops and locks, for Crocoddyl's integrators.

    Forces and rows that depend on time are taken at time 0.

    Args:
        equations: equations of motion, with what is locked and what acts besides the controls.
        costs: sum of costs on ``crocoddyl.StateMultibody(robot.model)``.
        actuation: how controls become torques; `ActuationModelDrives` if None.
    """

    @public
    def __init__(self, equations: EquationsOfMotion, costs: Any, actuation: Any = None) -> None:
        robot, state = equations.robot, costs.state
        _check_state(robot, state)
        if actuation is None:
            actuation = ActuationModelDrives(state, robot)
        if costs.nu != actuation.nu:
            raise BadValue(
                f"the costs have {costs.nu} controls, and the actuation of robot '{robot.name}' "
                f"{actuation.nu}; give both the same number"
            )
        super().__init__(state, actuation.nu, costs.nr)
        self.equations, self.costs, self.actuation = equations, costs, actuation

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Acceleration and cost; cost alone without controls."""
        if u is None:
            self.costs.calc(data.costs, x)
        else:
            self.actuation.calc(data.actuation, x, u)
            q, v = np.split(x, [self.state.nq])
            try:
                data.xout[:] = acceleration_at(self.equations, 0.0, q, v, data.actuation.tau)
            except PinloopError:
                data.xout[:] = np.nan  # for which solvers of Crocoddyl try a shorter step
            self.costs.calc(data.costs, x, u)
        data.cost = data.costs.cost

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Derivatives of both, by tangent coordinates and controls; `calc` has to go before."""
        if u is None:
            self.costs.calcDiff(data.costs, x)
            return
        given, (q, v) = data.actuation, np.split(x, [self.state.nq])
        self.actuation.calcDiff(given, x, u)
        slopes = derivatives_at(self.equations, 0.0, q, v, np.array(given.tau))
        data.Fx[:] = np.hstack([slopes.ddq_dq, slopes.ddq_dv]) + slopes.ddq_dtau @ given.dtau_dx
        chosen = np.reshape(given.dtau_du, (self.state.nv, self.nu))
        data.Fu[:] = (slopes.ddq_dtau @ chosen).reshape(data.Fu.shape)
        self.costs.calcDiff(data.costs, x, u)

    def createData(self) -> Any:
        """Work space of one node.

        Raises:
            BadValue: a cost wants what Crocoddyl reads from a `pin.Data`.
        """
        return _DynamicsData(self)


def _check_state(robot: Mechanism, state: Any) -> None:
    if (state.nq, state.nv) != (robot.nq, robot.nv):
        raise BadValue(
            f"the state has nq = {state.nq}, nv = {state.nv}, and robot '{robot.name}' {robot.nq}, "
            f"{robot.nv}; make it of robot.model"
        )


class _DynamicsData(crocoddyl.DifferentialActionDataAbstract):
    """Work space of `DifferentialActionModelLooped`."""

    def __init__(self, model: DifferentialActionModelLooped) -> None:
        super().__init__(model)
        self.actuation = model.actuation.createData()
        shared = crocoddyl.DataCollectorActuation(self.actuation)
        try:
            self.costs = model.costs.createData(shared)
        except Exception as error:  # a class of Crocoddyl's that it does not export
            reason = str(error).strip().splitlines()[-1]
            raise BadValue(
                f"a cost cannot be used here ({reason}): Crocoddyl 3.2 does not read a pin.Data of "
                "Pinocchio 4.1 right; take ResidualModelFrame, or a residual of your own"
            ) from None
        self.costs.shareMemory(self)


class ResidualModelFrame(crocoddyl.ResidualModelAbstract):
    """How far a frame is from a target, by Pinocchio itself.

    Args:
        state: of the tree of the robot.
        robot: the mechanism.
        frame: name of a frame or body.
        target: `pin.SE3` for a residual of six numbers, the logarithm from target to frame in axes
            of the target; or a point, shape (3,), for the distance in axes of the world.
        nu: number of controls.
    """

    @public
    def __init__(self, state: Any, robot: Mechanism, frame: str, target: Any, nu: int) -> None:
        if not isinstance(target, pin.SE3):
            target = flat_numbers(target, "target", 3)
        super().__init__(state, 6 if isinstance(target, pin.SE3) else 3, nu, True, False, False)
        self._model, self._data = robot.model, robot.model.createData()
        self._frame, self._target = robot.frame_id(frame), target

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Residual."""
        pin.framesForwardKinematics(self._model, self._data, x[: self._model.nq])
        place = self._data.oMf[self._frame]
        if self.nr == 3:
            data.r[:] = place.translation - self._target
        else:
            data.r[:] = pin.log6(self._target.actInv(place)).vector

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Its derivative."""
        model, q = self._model, x[: self._model.nq]
        frames = pin.LOCAL_WORLD_ALIGNED if self.nr == 3 else pin.LOCAL
        slope = pin.computeFrameJacobian(model, self._data, q, self._frame, frames)
        if self.nr == 6:
            pin.framesForwardKinematics(model, self._data, q)
            slope = pin.Jlog6(self._target.actInv(self._data.oMf[self._frame])) @ slope
        data.Rx[:, : model.nv] = slope[: self.nr]


class ActionModelClosed(crocoddyl.ActionModelAbstract):
    """A step of one of Crocoddyl's integrators, after which the loops are closed.

    Args:
        integrated: ``crocoddyl.IntegratedActionModelRK(...)`` of a `DifferentialActionModelLooped`,
            or another of Crocoddyl's integrated models of it.
    """

    def __init__(self, integrated: Any) -> None:
        dynamics = getattr(integrated, "differential", None)
        if not isinstance(dynamics, DifferentialActionModelLooped):
            raise BadValue(
                f"ActionModelClosed takes a step of DifferentialActionModelLooped, such as "
                f"crocoddyl.IntegratedActionModelRK(...), not {integrated!r}"
            )
        super().__init__(integrated.state, integrated.nu, integrated.nr)
        self.integrated, self.equations = integrated, dynamics.equations
        self.u_lb, self.u_ub = integrated.u_lb, integrated.u_ub

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Next state, closed, and cost; cost alone without controls."""
        if u is None:
            self.integrated.calc(data.integrated, x)
        else:
            self.integrated.calc(data.integrated, x, u)
            columns = _dependent(self.equations, x[: self.state.nq])
            try:
                data.closed = _close(self.equations, data.integrated.xnext, columns)
                data.xnext[:] = data.closed.x
            except PinloopError:
                data.xnext[:] = np.nan  # for which solvers of Crocoddyl try a shorter step
        data.cost = data.integrated.cost

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Derivatives of both; `calc` has to go before."""
        inner = data.integrated
        if u is None:
            self.integrated.calcDiff(inner, x)
        else:
            self.integrated.calcDiff(inner, x, u)
            slope = _slope(self.equations, inner.xnext, data.closed)
            data.Fx[:], data.Fu[:] = slope @ inner.Fx, slope @ inner.Fu
            data.Lu[:], data.Luu[:], data.Lxu[:] = inner.Lu, inner.Luu, inner.Lxu
        data.Lx[:], data.Lxx[:] = inner.Lx, inner.Lxx

    def createData(self) -> Any:
        """Work space of one node."""
        return _StepData(self)


class _StepData(crocoddyl.ActionDataAbstract):
    """Work space of `ActionModelClosed`: that of the step, and how it was closed last."""

    def __init__(self, model: ActionModelClosed) -> None:
        super().__init__(model)
        self.integrated = model.integrated.createData()
        self.closed: _Closed | None = None


class ActionModelJump(crocoddyl.ActionModelAbstract):
    """The jump of the velocity where joints lock or loops close; it takes no time and no controls.

    Args:
        equations: equations of motion after the jump.
        state: ``crocoddyl.StateMultibody(robot.model)`` of the problem.
    """

    @public
    def __init__(self, equations: EquationsOfMotion, state: Any) -> None:
        _check_state(equations.robot, state)
        super().__init__(state, 0, 0)
        self.equations = equations

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The same configuration, with the velocity that the equations allow."""
        q, v = x[: self.state.nq], x[self.state.nq :]
        data.xnext[:] = np.append(q, v + self.equations.jump(0.0, q, v).a)

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Its derivatives."""
        nq, nv = self.state.nq, self.state.nv
        jump = jump_derivatives_at(self.equations, 0.0, x[:nq], x[nq:])
        stays = np.hstack([np.eye(nv), np.zeros((nv, nv))])
        data.Fx[:] = np.vstack([stays, np.hstack([jump.v_plus_dq, jump.v_plus_dv])])


# -- closing --------------------------------------------------------------------------------


class _Dependent(NamedTuple):
    """Velocity coordinates along which positions and velocities are closed."""

    positions: NDArray[np.intp]
    rates: NDArray[np.intp]


class _Closed(NamedTuple):
    """A closed state, the step of the configuration that closed it, and along what."""

    x: Array
    step: Array
    columns: _Dependent


def _holonomic(equations: EquationsOfMotion) -> NDArray[np.intp]:
    """The rows that restrict positions; locked coordinates are left as they are."""
    return np.flatnonzero(equations.rows.holonomic[: equations.rows.unlocked])


def _dependent(equations: EquationsOfMotion, q: Array) -> _Dependent:
    """The coordinates that are best expressed by the others; they may move, locked ones may not."""
    rows = equations.rows
    J, M = rows.scale[:, None] * equations.closure(0.0, q)[0], equations.mass(q)
    J, free = J[: rows.unlocked], np.setdiff1d(np.arange(len(M)), rows.locked)
    rank = None if equations.max_rank is None else equations.max_rank - len(rows.locked)
    M, J, held = M[np.ix_(free, free)], J[:, free], _holonomic(equations)
    rates = free[dependent_coordinates(M, J, max_rank=rank)[0]]
    if len(held) == len(J):
        return _Dependent(rates, rates)
    return _Dependent(free[dependent_coordinates(M, J[held])[0]], rates)


def _close(equations: EquationsOfMotion, x: Array, columns: _Dependent) -> _Closed:
    """The state near ``x`` on the manifold.

    Raises:
        BadValue: Newton's method does not close the loops along these coordinates.
    """
    robot, rows, step = equations.robot, equations.rows, np.zeros(equations.robot.nv)
    q, held, n, at = x[: robot.nq], _holonomic(equations), rows.unlocked, columns.positions
    scale, size = rows.scale, np.inf
    for _ in range(_NEWTON_STEPS):
        end = pin.integrate(robot.model, q, step)
        J, b, residual = equations.closure(0.0, end)
        missing, before = scale[held] * residual[held], size
        size = float(np.linalg.norm(missing))
        # Newton's method doubles the digits until only rounding is left.
        if not size < np.inf or (size < CLOSED and size > 0.1 * before) or size == 0.0:
            break
        moves = pin.dIntegrate(robot.model, q, step, pin.ARG1)[:, at]
        step[at] -= _least_squares(scale[held, None] * J[held] @ moves, missing)
    unit = np.where(robot.is_translation, robot.length, 1.0)
    if not (size < CLOSED and np.abs(step / unit).max(initial=0.0) < _FARTHEST):
        raise BadValue(f"the loops of robot '{robot.name}' are not near to closed after this step")
    v = x[robot.nq :].copy()
    v[rows.locked] = 0.0
    rates = scale[:n] * (b - J @ v)[:n]
    v[columns.rates] += _least_squares(scale[:n, None] * J[:n][:, columns.rates], rates)
    return _Closed(np.append(end, v), step, columns)


def _slope(equations: EquationsOfMotion, x: Array, closed: _Closed) -> Array:
    """Derivative of `_close` by the state, tangent to tangent, shape (2 nv, 2 nv)."""
    robot, rows, n = equations.robot, equations.rows, equations.rows.unlocked
    y, step, columns = closed
    (q, v), held, scale = np.split(y, [robot.nq]), _holonomic(equations), rows.scale[:, None]
    J, _, _ = equations.closure(0.0, q)
    by_q = pin.dIntegrate(robot.model, x[: robot.nq], step, pin.ARG0)
    moves = pin.dIntegrate(robot.model, x[: robot.nq], step, pin.ARG1)[:, columns.positions]
    J_q, D = scale[held] * J[held], columns.rates
    dq = by_q - moves @ _least_squares(J_q @ moves, J_q @ by_q)
    chain, rest = joint_chain(robot), np.zeros(robot.nv)
    turning = rows.slopes(MovingTree(chain, q, v, rest), (0.0, q, v, rest), np.zeros(n)).rate_q
    J_v = scale[:n] * J[:n]
    slope = np.zeros((2 * robot.nv, 2 * robot.nv))
    still = np.eye(robot.nv)
    still[rows.locked] = 0.0
    slope[: robot.nv, : robot.nv], slope[robot.nv :, robot.nv :] = dq, still
    missing = np.hstack([scale[:n] * turning[:, chain.columns] @ dq, J_v @ still])
    slope[robot.nv + D] -= _least_squares(J_v[:, D], missing)
    return slope


def _least_squares(A: Array, b: Array) -> Array:
    return np.asarray(np.linalg.lstsq(A, b, rcond=LEAST_SQUARES)[0])
