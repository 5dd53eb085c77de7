"""Steps of a run by the native kernel: what `Stepper` and `Projector` do, as far as they are sure.

What would have to be decided anew ends a call of the kernel, and they do it: other dependent
coordinates or rows, a step near a bifurcation, one that shrinks to nothing.
"""

from __future__ import annotations

import numpy as np

from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..dynamics import EquationsOfMotion
from ..dynamics.pinocchio_solver import HAS_KERNEL, HeldRows, RightHandSide
from ..integrate import CRAWLS, MANY, MuntheKaas, Segment, State, StepControl
from ..model.pairs import MotionGroup
from ..tolerances import (
    CONTRADICTION,
    GRAM_NOISE,
    LEAST_ERROR,
    PROJECTED_TRIFLE,
    SPEED_ROUNDING,
    TIME_SUM,
    Regularity,
)
from .accuracy import COARSE_SPEED, MOST_TAKEN
from .modes import RobotManifold
from .stabilization import CURVED, Projector

if HAS_KERNEL:
    from .._kernel import Steps


class NativeSteps:
    """The kernel for the steps of a run in one mode.

    Args:
        along: accelerations along the run, in the kernel.
        equations: equations of motion that they are of.
        method: integrator.
        manifold: configuration group, which may hold joints.
        projector: what projects states; None if nothing does.
    """

    def __init__(
        self,
        along: RightHandSide,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        manifold: RobotManifold,
        projector: Projector | None,
    ) -> None:
        assert along.solver is not None and along.solver.tables is not None
        self._along, self._manifold, self._projector = along, manifold, projector
        self._held: HeldRows | None = None
        robot, rows, tableau = equations.robot, equations.rows, method.tableau
        unit = np.where(robot.is_translation, robot.length, 1.0)
        arrays, locked = (tableau.a, tableau.b, tableau.error_weights), rows.locked.tolist()
        settings = _settings(method)
        self._steps = Steps(along.solver.tables, arrays, settings, unit, locked)
        if projector is not None:
            settings |= _settings_of(projector, equations)
            scale, units = rows.scale[: rows.unlocked], (unit, np.array(robot.model.armature))
            self._steps.project(_pairs(rows.loops), scale, settings, units, locked)

    @staticmethod
    def can(
        along: RightHandSide,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        projector: Projector | None,
    ) -> bool:
        """Whether the kernel takes such steps."""
        tableau, groups = method.tableau, [loop.pair for loop in equations.robot.loops]
        return (
            along.is_native
            and not tableau.implicit
            and len(tableau.errors) <= 2
            and all(isinstance(pair, MotionGroup) for pair in groups)
            and (projector is None or projector.chooses)
        )

    def take(
        self,
        start: tuple[float, float, float, float],
        state: State,
        times: list[float],
        asked: list[int],
    ) -> Segment | None:
        """See `ManySteps`."""
        held, solver, steps = self._along.held, self._along.solver, self._steps
        if held is None or solver is None:
            return None
        if held is not self._held:
            limits = held.stale.tolist(), held.bad.tolist()
            steps.hold(held.chosen.tolist(), *limits, solver.armature)
            self._held = held
        if self._projector is not None:
            steps.recall(self._projector.known)
        # The state that is given is the first one.
        t, notes, counts = np.empty(MANY + 1), np.empty((MANY, 5)), np.empty((MANY, 3), np.int64)
        q, v, a = (np.empty((MANY + 1, len(x))) for x in state)
        psi = np.empty((MANY, len(state[1])))
        t[0], q[0], v[0], a[0] = start[0], *state
        rooms = q[1:], v[1:], a[1:], psi
        count = steps.take(start, state, times, asked, (notes, counts), rooms)
        t[1:] = notes[:, 0]
        whole = Segment(self._manifold, t, q, v, a, psi, notes[:, 1:], counts)
        return whole.part(0, count) if count else None


def _settings(method: MuntheKaas) -> dict[str, float]:
    """Numbers of a method and its control of steps."""
    alpha, beta = StepControl.exponents(method.tableau)
    return {
        "rtol": method.rtol,
        "atol": method.atol,
        "smallest": method.smallest,
        "largest": method.largest,
        "alpha": alpha,
        "beta": beta,
        "first_error": StepControl.FIRST_ERROR,
        "least_error": LEAST_ERROR,
        "time_sum": TIME_SUM,
        "crawls": CRAWLS,
        "trifle": PROJECTED_TRIFLE,
    }


def _settings_of(projector: Projector, equations: EquationsOfMotion) -> dict[str, float]:
    """Numbers of a projection; a rank of -1 is not known."""
    rank = equations.rank
    return {
        "tol": projector.tol,
        "rank": -1 if rank is None else rank - len(equations.rows.locked),
        "near": Regularity.NEAR,
        "worse": Regularity.WORSE,
        "worst": Regularity.WORST,
        "curved": CURVED,
        "contradiction": CONTRADICTION,
        "noise": GRAM_NOISE,
        "rounding": SPEED_ROUNDING,
        "most": MOST_TAKEN,
        "coarse": COARSE_SPEED,
    }


def _pairs(loops: Constraints) -> list[tuple[int, int, str, float, Array]]:
    """Per loop its place, free rotations and slides, pitch, and rows on twists."""
    pairs = [loop.pair for loop in loops.robot.loops if isinstance(loop.pair, MotionGroup)]
    rows = [*loops.constant.values()]
    return [
        (k, len(pair.turns), pair.slides, pair.advance, rows[k]) for k, pair in enumerate(pairs)
    ]
