"""What one would write without pinloop: Pinocchio's solvers of loops in ``solve_ivp``.

Loops are closed by points, one for a ball joint or a planar loop and two on the axis of a hinge,
with the gains of Baumgarte against drift. Redundant points need the proximal solver with
``mu > 0``. Of ``constraintDynamics`` and ``lcaba`` with several settings, the fastest one is taken
that gives the accelerations of pinloop.
"""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from .scene import Poses, Scene

Array = NDArray[np.float64]

PROXIMAL = ((0.0, 1), (1e-10, 1), (1e-10, 2), (1e-8, 1), (1e-8, 2), (1e-8, 5), (1e-6, 10),
            (1e-4, 20), (1e-3, 50))  # fmt: skip
"""``mu`` and largest number of iterations that are tried."""
SETTINGS = [
    (solver, mu, iterations)
    for solver in ("constraintDynamics", "lcaba")
    for mu, iterations in PROXIMAL
    if mu > 0.0 or solver == "constraintDynamics"
]
RIGHT = 1e-6
"""Relative error of accelerations that are called right."""


class Pinocchio:
    """A robot in Pinocchio with point constraints for its loops.

    Args:
        model: the tree.
        scene: the loops and the start.
        length: distance of the two points that hold a hinge [m].
    """

    def __init__(self, model: pin.Model, scene: Scene, length: float) -> None:
        self.model, self.scene = model, scene
        self.points = pin.StdVec_RigidConstraintModel()
        for tie in scene.ties:
            for offset in tie.points(length):
                lift = pin.SE3(np.eye(3), np.array([0.0, 0.0, offset]))
                point = pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, model, tie.a + 1, tie.frame_a * lift, tie.b + 1,
                    tie.frame_b * lift, pin.ReferenceFrame.LOCAL,
                )  # fmt: skip
                self.points.append(point)
        self.use(*SETTINGS[0])
        self.evaluations = 0

    def pull_back(self, rate: float) -> None:
        """Set the rate at which drift is pulled back [1/s]."""
        for point in self.points:
            point.m_baumgarte_parameters.Kp = rate**2
            point.m_baumgarte_parameters.Kd = 2 * rate
        self.use(*self.setting)

    def use(self, solver: str, mu: float, iterations: int) -> None:
        """Set the solver and its proximal iterations.

        Each solver has its own data: `lcaba` leaves those of the constraints as
        `constraintDynamics` cannot use them.
        """
        self.setting = solver, mu, iterations
        self._proximal = pin.ProximalSettings(1e-14, mu, iterations)
        self._solve = pin.aba if len(self.points) == 0 else getattr(pin, solver)
        self._states = pin.StdVec_RigidConstraintData()
        for point in self.points:
            self._states.append(point.createData())
        self._data = self.model.createData()
        if len(self.points) == 0:
            self._rest: tuple[object, ...] = ()
            return
        self._rest = self.points, self._states, self._proximal
        if solver == "lcaba":
            pin.computeJointMinimalOrdering(self.model, self._data, self.points)
        else:
            pin.initConstraintDynamics(self.model, self._data, self.points, self._states)

    def acceleration(self, q: Array, v: Array) -> Array:
        """Of the solver that is set; of ``aba`` where there are no loops."""
        tau = self.scene.torques if not self.scene.lines else self._load(q)
        return np.asarray(self._solve(self.model, self._data, q, v, tau, *self._rest))

    def _load(self, q: Array) -> Array:
        """Torques of motors and springs."""
        tau, data = self.scene.torques.copy(), self._data
        pin.computeJointJacobians(self.model, data, q)
        for line in self.scene.lines:
            ends = ((line.a, line.point_a), (line.b, line.point_b))
            (_, a), (_, b) = places = [
                (k, data.oMi[k + 1].act(point) if k >= 0 else point) for k, point in ends
            ]
            length = float(np.linalg.norm(b - a))
            pull = line.stiffness * (1.0 - line.length / length) * (b - a)
            for (k, place), force in zip(places, (pull, -pull), strict=True):
                if k >= 0:
                    J = pin.getJointJacobian(
                        self.model, data, k + 1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
                    )
                    lever = place - data.oMi[k + 1].translation
                    tau += J.T @ np.concatenate([force, np.cross(lever, force)])
        return tau

    def tune(
        self, states: list[tuple[Array, Array]], wanted: list[Array], right: float = RIGHT
    ) -> float:
        """Take the fastest setting that gives the wanted accelerations; returns its error.

        Args:
            states: configurations and velocities.
            wanted: acceleration at each.
            right: relative error that is good enough; if no setting has it, the best is taken.
        """
        if len(self.points) == 0:
            return self._error(states, wanted)
        tried: list[tuple[float, float, tuple[str, float, int]]] = []
        for setting in SETTINGS:
            self.use(*setting)
            error = self._error(states, wanted)
            tried.append((self._time(*states[0]) if error < right else np.inf, error, setting))
        _, error, setting = min(tried)
        self.use(*setting)
        return error

    def _time(self, q: Array, v: Array) -> float:
        """Of a hundred accelerations, the least of five turns [s]."""
        turns = []
        for _ in range(5):
            begin = time.process_time()
            for _ in range(100):
                self.acceleration(q, v)
            turns.append(time.process_time() - begin)
        return min(turns)

    def rates(self, q: Array, v: Array) -> Array:
        """Time derivative of the coordinates."""
        if len(q) == len(v):
            return v
        rates, i, k = np.empty(len(q)), 0, 0
        for part in self.scene.parts:
            kind = part.motions[0][0]
            if kind == "free":  # the linear velocity is in the axes of the body
                turn = pin.Quaternion(q[i + 3 : i + 7])
                rates[i : i + 3] = turn.toRotationMatrix() @ v[k : k + 3]
                i, k = i + 3, k + 3
            if kind in ("free", "ball"):
                x, y, z, w = q[i : i + 4]
                table = ((w, -z, y), (z, w, -x), (-y, x, w), (-x, -y, -z))
                rates[i : i + 4] = 0.5 * np.array(table) @ v[k : k + 3]
                i, k = i + 4, k + 3
            else:
                count = len(part.motions)
                rates[i : i + count] = v[k : k + count]
                i, k = i + count, k + count
        return rates

    def _error(self, states: list[tuple[Array, Array]], wanted: list[Array]) -> float:
        worst = 0.0
        for (q, v), a in zip(states, wanted, strict=True):
            size = max(float(np.abs(a).max()), 1e-9)
            off = float(np.abs(self.acceleration(q, v) - a).max()) / size
            worst = max(worst, off if np.isfinite(off) else np.inf)
        return worst

    def run(
        self, until: float, method: Literal["RK45", "DOP853"], rtol: float, atol: float
    ) -> Array:
        """Configuration at the end; quaternions are integrated as coordinates and normalised."""
        model, nq = self.model, self.model.nq
        self.evaluations = 0

        def rate(t: float, y: Array) -> Array:
            self.evaluations += 1
            q, v = y[:nq], y[nq:]
            if model.nq > model.nv:
                q = pin.normalize(model, q)
            return np.concatenate([self.rates(q, v), self.acceleration(q, v)])

        start = np.concatenate([self.scene.q, self.scene.v])
        done = solve_ivp(
            rate, (0.0, until), start, method=method, rtol=rtol, atol=atol,
            t_eval=[until],
        )  # fmt: skip
        if not done.success:
            return np.full(nq, np.nan)
        return np.asarray(pin.normalize(model, done.y[:nq, -1]))


def poses_of(model: pin.Model, q: Array) -> Poses:
    """Where the parts are at a configuration; NaN for a run that failed."""
    if not np.all(np.isfinite(q)):
        return np.full((model.njoints - 1, 3), np.nan), np.full((model.njoints - 1, 3, 3), np.nan)
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    placed = [data.oMi[k] for k in range(1, model.njoints)]
    return np.array([one.translation for one in placed]), np.array([one.rotation for one in placed])
