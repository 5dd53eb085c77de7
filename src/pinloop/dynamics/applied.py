"""What a force is, and all that act on a robot together.

Each knows its generalised force and, if it is conservative, its stored energy; the work of the
others is integrated along a trajectory by `analysis`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..errors import BadValue, PinloopError
from ..linalg.dense import slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree

Kinematics = Callable[[pin.Data, Array, Array], None]
"""Brings work space to a configuration and a velocity."""


Slopes = tuple[Array, Array] | None
"""Derivatives of a generalised force by positions and velocities."""


class Force(ABC):
    """Something that acts on a robot."""

    @abstractmethod
    def bind(self, robot: Mechanism) -> BoundForce:
        """Return the force for a robot; checks names."""


class BoundForce(ABC):
    """A force on a certain robot.

    Attributes:
        name: name in energy balances.
        conservative: whether all its work is stored in `energy`.
        needs_kinematics: whether it looks at ``data`` at all.
    """

    name: str
    conservative: bool = False
    needs_kinematics: bool = True

    @abstractmethod
    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Generalised force, shape (nv,), at the kinematics in ``data``."""

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        """Stored energy [J]; zero for what stores none."""
        return 0.0

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        """``-d torque / d v``, shape (nv, nv); None where it is zero or not known."""
        return None

    def slopes(self, tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        """Derivatives of the torque by positions and velocities, shape (n, n) each.

        By the n coordinates of a tree at the state; None leaves them to differences.
        """
        return None


class ForceOfFunctions(BoundForce):
    """A force given by functions; pickled as what was bound to which robot."""

    def __init__(
        self,
        force: Force,
        robot: Mechanism,
        name: str,
        torque: Callable[[float, Array, Array, pin.Data], Array],
        energy: Callable[[Array, pin.Data], float] | None = None,
        damping: Callable[[Array, Array, pin.Data], Array] | None = None,
        slopes: Callable[[MovingTree, float, Array, Array, pin.Data], Slopes] | None = None,
        needs_kinematics: bool = True,
    ) -> None:
        self._bound, self.name, self.conservative = (force, robot), name, energy is not None
        self._torque, self._energy, self._damping = torque, energy, damping
        self._slopes, self.needs_kinematics = slopes, needs_kinematics

    def __reduce__(self) -> tuple[Callable[..., BoundForce], tuple[Force, Mechanism, str]]:
        return _bound_again, (*self._bound, self.name)

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """See `BoundForce`, as the following."""
        return self._torque(t, q, v, data)

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        """Of the function, if there is one."""
        return 0.0 if self._energy is None else self._energy(q, data)

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        """Of the function, if there is one."""
        return None if self._damping is None else self._damping(q, v, data)

    def slopes(self, tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        """Of the function, if there is one."""
        return None if self._slopes is None else self._slopes(tree, t, q, v, data)


def _bound_again(force: Force, robot: Mechanism, name: str) -> BoundForce:
    """A force bound to a robot, under the name that it had."""
    bound = force.bind(robot)
    bound.name = name
    return bound


class AppliedForces:
    """The forces on a robot, at the kinematics that a `pin.Data` holds.

    Attributes:
        bound: the forces, each with a name of its own.
        need_kinematics: whether one of them looks at the kinematics.
    """

    def __init__(self, robot: Mechanism, forces: Sequence[Force]) -> None:
        self._robot = robot
        self.bound = _with_unique_names([force.bind(robot) for force in forces])
        self.need_kinematics = any(force.needs_kinematics for force in self.bound)

    def with_force(self, force: BoundForce) -> AppliedForces:
        """The same forces and one more."""
        other = copy(self)
        other.bound = _with_unique_names([*self.bound, force])
        other.need_kinematics = self.need_kinematics or force.needs_kinematics
        return other

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Sum of the generalised forces, shape (nv,)."""
        total = np.zeros(self._robot.nv)
        for force in self.bound:
            try:
                tau = force.torque(t, q, v, data)
            except PinloopError:
                raise
            except Exception as error:
                raise BadValue(
                    f"force '{force.name}' raised {type(error).__name__} at t = {t:.6g} s: {error}"
                ) from error
            if not np.isfinite(tau).all():
                raise BadValue(f"force '{force.name}' is not finite at t = {t:.6g} s")
            total += tau
        return total

    def powers(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, float]:
        """Power of each force that does not store its work [W]."""
        return {
            force.name: float(force.torque(t, q, v, data) @ v)
            for force in self.bound
            if not force.conservative
        }

    def energies(self, t: float, q: Array, data: pin.Data) -> dict[str, float]:
        """Stored energy of each force that stores its work [J]."""
        return {f.name: f.energy(t, q, data) for f in self.bound if f.conservative}

    def dampings(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, Array]:
        """``-d torque / d v`` of each force of which it is known, shape (nv, nv)."""
        by_force = {force.name: force.damping(t, q, v, data) for force in self.bound}
        return {name: D for name, D in by_force.items() if D is not None}

    def slopes(
        self, tree: MovingTree, t: float, q: Array, v: Array, kinematics: Kinematics
    ) -> tuple[Array, Array]:
        """Derivatives of the sum by positions and velocities of a tree, shape (n, n) each.

        Args:
            tree: the robot at the state.
            t: time [s].
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            kinematics: brings work space to a state.
        """
        n = len(tree.twists)
        by_q, by_v = np.zeros((n, n)), np.zeros((n, n))
        if not self.bound:
            return by_q, by_v
        others = []
        with self._robot.workspace() as data:
            kinematics(data, q, v)
            for force in self.bound:
                known = force.slopes(tree, t, q, v, data)
                if known is None:
                    others.append(force)
                else:
                    by_q, by_v = by_q + known[0], by_v + known[1]
            if others:
                own = np.ix_(tree.chain.columns, tree.chain.columns)
                parts = self._differences(others, (t, q, v), data, kinematics)
                by_q[own] += parts[0]
                by_v[own] += parts[1]
        return by_q, by_v

    def _differences(
        self,
        forces: Sequence[BoundForce],
        state: tuple[float, Array, Array],
        data: pin.Data,
        kinematics: Kinematics,
    ) -> tuple[Array, Array]:
        """Derivatives of forces that do not know their own."""
        t, q, v = state

        def torque(q: Array, v: Array) -> Array:
            kinematics(data, q, v)
            return sum((force.torque(t, q, v, data) for force in forces), np.zeros(len(v)))

        model, n = self._robot.model, self._robot.nv
        by_q = slopes(lambda step: torque(pin.integrate(model, q, step), v), n)
        return by_q.T, slopes(lambda change: torque(q, v + change), n).T


def _with_unique_names(forces: list[BoundForce]) -> tuple[BoundForce, ...]:
    """Number forces of the same name, so that each has its own line in energy balances."""
    seen: dict[str, int] = {}
    for force in forces:
        seen[force.name] = seen.get(force.name, 0) + 1
        if seen[force.name] > 1:
            force.name = f"{force.name} ({seen[force.name]})"
    return tuple(forces)
