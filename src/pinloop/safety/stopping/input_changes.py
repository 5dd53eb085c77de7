"""How the start of a stop, its times and its loads change with its inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...boundary.marks import Array
from ...dynamics.derivatives import joint_chain
from ...dynamics.parameters import PointMass
from ...errors import BadValue
from ...model.moving_tree import MovingTree
from ...tolerances import FOLLOWED_JOINTS, INPUT_STEP, LEAST_SQUARES
from .history import StopHistory
from .inputs import StopInput, recorded_motion
from .plan_changes import PlanChanges
from .prepared_robot import payload_of, tool_of
from .stop_equations import StopEquations
from .train_changes import TrainChanges


class InputChanges:
    """How all that acts in a stop changes with its inputs, k of them.

    Attributes:
        inputs: the inputs.
        train: of brakes, gears, friction and drives.
        initial: changes of position and velocity at the signal, shape (2 nv, k).
        command: of the time of the command [s/unit], shape (k,).
        drive_off: of the time from the command until the drives are off, shape (k,).
        plan: of what drives follow.
        unknown: mask of inputs with which the stop changes in a way that is not known, shape (k,).
    """

    def __init__(
        self, history: StopHistory, equations: StopEquations, inputs: Sequence[StopInput]
    ) -> None:
        self.inputs, self._history = tuple(inputs), history
        self._equations = equations
        self.train = TrainChanges(history.train, inputs)
        self.unknown = np.zeros(len(inputs), dtype=bool)
        self.initial = self._initial()
        sensor, controller, self.drive_off = (
            np.array([float(x.quantity == name) for x in inputs])
            for name in ("sensor", "controller", "drive_off")
        )
        self.command = sensor + controller
        self.plan = PlanChanges(history, equations, inputs, self.initial)
        self.unknown |= not self.plan.known
        self._payload = [k for k, of in enumerate(inputs) if of.quantity == "payload"]
        load, robot = payload_of(history.train.robot, history.robot), history.train.robot
        com = (0.0, 0.0, 0.0) if load is None else tuple(np.asarray(load.com).tolist())
        self._mass = PointMass(str(tool_of(robot) if load is None else load.frame), com)

    def _initial(self) -> Array:
        """Changes of the state at the signal; joints that do not lead follow by the loops."""
        history, equations = self._history, self._equations.equations
        q, v, n = history.run.q[0], history.run.v[0], history.robot.nv
        changes, rest = np.zeros((2 * n, len(self.inputs))), np.zeros(n)
        tree = MovingTree(joint_chain(history.robot), q, v, rest)
        rows = equations.rows.slopes(tree, (0.0, q, v, rest), np.zeros(len(equations.rows)))
        own = tree.chain.columns
        J, turning = rows.J[:, own], rows.rate_q[:, own]
        for k, of in enumerate(self.inputs):
            if of.quantity == "instant":
                motion = recorded_motion(history)
                assert motion is not None
                changes[:n, k] = v
                h = INPUT_STEP
                ahead, behind = (
                    motion.motion.state(history.robot, motion.signal + step)[1] for step in (h, -h)
                )
                changes[n:, k] = (ahead - behind) / (2.0 * h)
            elif of.quantity == "speed" and not of.joint:
                changes[n:, k] = v
            elif of.quantity in ("speed", "pose"):
                column = history.train.robot.coordinates(of.joint).v.start
                lead = history.plan.reference.follows.copy()
                lead[column] = True
                unit = (np.arange(n) == column)[lead].astype(float)
                rows_of = np.vstack([J, np.eye(n)[lead]])
                motion_of = _followed_by(rows_of, np.append(np.zeros(len(J)), unit), of.name)
                if of.quantity == "speed":
                    changes[n:, k] = motion_of
                    self.unknown[k] = of.value == 0.0  # to and fro are two different stops
                    continue
                changes[:n, k] = motion_of
                values = np.append(-turning @ motion_of, np.zeros(int(lead.sum())))
                changes[n:, k] = _followed_by(rows_of, values, of.name)
        return changes

    def begin(self, brake: Array | None) -> Array:
        """Changes of the times at which brakes begin to act, shape (k, nv).

        ``brake``: of that at which they are commanded, shape (k,); None while it is not known.
        """
        later = np.zeros(len(self.inputs)) if brake is None else brake
        return np.asarray(later[:, None] + self.train.delay)

    # -- loads ------------------------------------------------------------------------------

    def loads(self, equations: StopEquations, t: float, q: Array, v: Array, a: Array) -> Array:
        """Changes of ``M a + nle`` by payload and rotors at fixed accelerations, shape (nv, k)."""
        loads = ((self.train.reflected - self.train.lossy) * a).T.copy()
        if self._payload:
            loads[:, self._payload] = self._mass.loads(equations.equations, t, q, v, a)
        return np.asarray(loads)


def _followed_by(rows: Array, values: Array, name: str) -> Array:
    """The motion with given values of some rows."""
    motion = np.linalg.lstsq(rows, values, rcond=LEAST_SQUARES)[0]
    if np.abs(rows @ motion - values).max(initial=0.0) > FOLLOWED_JOINTS:
        raise BadValue(f"'{name}' follows from other joints by the loops; name those")
    return np.asarray(motion)
