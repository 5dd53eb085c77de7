"""Accelerations along one run, whose loops the same rows hold from step to step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..errors import PinloopError
from ..model.mechanism import Mechanism
from ..model.workspace import WorkSpaces
from .independence import explained
from .pinocchio_solver import ConstraintDynamics, HeldRows, InKernel


class RightHandSide:
    """Accelerations along one run, in one thread.

    Loops are held by the same rows in all evaluations until `advance`: inside a step another choice
    is another motion. Where they are no good choice the matrices of the equations answer.

    Args:
        robot: the mechanism.
        solver: what solves for the accelerations where its rows are good; None if nothing does.
        spaces: work spaces, if any are needed.
        loads: applied forces, if there are any, by work space, t, q and v.
        otherwise: accelerations and reactions by the equations themselves, likewise.

    Attributes:
        held: the rows that hold the loops; None where none of them are good.
    """

    __slots__ = (
        "_kernel", "_loads", "_otherwise", "_rest", "_robot", "_spaces", "_stale", "held", "solver",
    )  # fmt: skip

    def __init__(
        self,
        robot: Mechanism,
        solver: ConstraintDynamics | None,
        spaces: WorkSpaces | None,
        loads: Callable[[pin.Data, float, Array, Array], Array] | None,
        otherwise: Callable[[pin.Data | None, float, Array, Array], tuple[Array, Array]],
    ) -> None:
        self._robot, self.solver, self._spaces = robot, solver, spaces
        self._loads, self._otherwise, self._rest = loads, otherwise, np.zeros(robot.nv)
        self.held: HeldRows | None = None if solver is None else solver.home
        self._stale = False
        self._kernel: InKernel | None = None

    def advance(self, q: Array) -> None:
        """Hold other rows from here, the end of a step, if the last evaluation asked for it."""
        if self._stale and self.solver is not None:
            with self._robot.workspace() as data:
                self.held = self.solver.choose(q, data)
            self._stale = False

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration at a state that is not checked, shape (nv,)."""
        held, solver = self.held, self.solver
        if held is None or solver is None or solver.tables is None or self._loads is not None:
            return self.once(t, q, v)
        if self._kernel is None or self._kernel.held is not held:
            self._kernel = solver.kernel(held)
        a = np.empty(len(v))
        if self._kernel.dynamics.acceleration(q, v, self._rest, a) == 0:
            self._stale = False
            return a
        return self.once(t, q, v)

    def once(self, t: float, q: Array, v: Array) -> Array:
        """The same, in a work space that others use, too."""
        spaces, space, solver = self._spaces, None, self.solver
        try:
            if spaces is None:
                return self._otherwise(None, t, q, v)[0]
            try:  # as `take` does, a call less
                space = spaces.free.pop()
            except IndexError:
                space = spaces.take(self._robot.model)
            if solver is not None:
                tau = self._rest if self._loads is None else self._loads(space.data, t, q, v)
                a, self._stale = solver.acceleration(space, self.held, q, v, tau)
                if a is not None:
                    return a
            return self._otherwise(space.data, t, q, v)[0]
        except (PinloopError, np.linalg.LinAlgError) as error:
            raise explained(error, t, q, v) from error.__cause__
        finally:
            if space is not None and spaces is not None:
                spaces.free.append(space)
