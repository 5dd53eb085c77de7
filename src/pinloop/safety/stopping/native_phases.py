"""Steps of a stop by the native kernel, up to what ends a phase; decisions are made elsewhere.

What is not plain ends a call of the kernel, and Python takes that step: a torque near its bound, a
coordinate that turns round beside its level, a singular pose on the way. Python is the reference,
too: the kernel takes the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from ...boundary.marks import Array
from ...dynamics.kernel_tables import HAS_KERNEL
from ...integrate import INNER, Bernstein, MuntheKaas, Segment, State
from ...integrate.polynomials import hermite, refined, slope_powers, value_powers
from ...simulation.modes import RobotManifold
from ...simulation.native_steps import Kernel, create_kernel, take_steps
from ...simulation.stabilization import Projector
from .phase import DriveSpeed, Watched
from .reference import EvenPiece
from .stop_equations import StopEquations

if HAS_KERNEL:
    from ..._kernel import StopSteps


class NativePhases:
    """The kernel for the steps of a stop.

    Args:
        equations: equations of the stop.
        method: integrator, explicit, with control of its steps.
        projector: what projects states; None if nothing does.
    """

    def __init__(
        self, equations: StopEquations, method: MuntheKaas, projector: Projector | None
    ) -> None:
        assert equations.kernel is not None
        self._equations, self._projector = equations, projector
        self._manifold = RobotManifold(equations.equations.robot)
        self._watched = list[Watched]()
        self._fine = method.tableau.outruns_quintics
        make = partial(StopSteps, equations.kernel, dense=_dense(self._fine))
        self._steps = create_kernel(make, equations.equations, method, projector)

    @classmethod
    def of(
        cls, equations: StopEquations, method: MuntheKaas, projector: Projector | None
    ) -> NativePhases | None:
        """The kernel, if it takes such steps."""
        tableau, train = method.tableau, equations.train
        robot = equations.equations.robot
        flat = bool(train.single.all()) and robot.nq == robot.nv > 0
        explicit = method.step is None and not tableau.implicit and len(tableau.errors) <= 2
        if equations.kernel is None or not (flat and explicit):
            return None
        return cls(equations, method, projector)

    def enter(
        self,
        state: tuple[float, Array, Array],
        watched: Sequence[Watched],
        tiny: float,
        slow: float,
    ) -> bool:
        """Let the phase begin that the equations have entered; says whether the kernel steps in it.

        Args:
            state: time, configuration and velocity where it begins.
            watched: what is looked for, beside torques at their bounds.
            tiny: speed that counts as zero [rad/s, m/s].
            slow: speed below which each state is looked at before the next step [rad/s, m/s].
        """
        equations, phase, rows = self._equations, self._equations.phase, list[list[float]]()
        start, moving = equations.tables.slide.start, bool(equations.tables.follows)
        for x in watched:
            rate = 0.0
            if isinstance(x.level, DriveSpeed):
                moving, rate = True, float(phase.piece.a(start)[x.column])
            rows.append([x.column, x.q_index is None, x.sign, x.at(start), rate])
        even = not moving or isinstance(phase.piece, EvenPiece)
        if not (equations.tables.linear and even and equations.lets_kernel_step(*state)):
            return False
        self._watched = [*watched]
        table, pinned = np.array(rows, dtype=float).reshape(-1, 5), equations.tables.held.tolist()
        self._steps.watch(table, pinned, tiny, slow)
        return True

    def project(self, q: Array, v: Array) -> tuple[Array, Array, bool] | None:
        """A state on the manifold, and whether it was moved; None if that is not plain."""
        projector, q, v = self._projector, q.copy(), v.copy()
        assert projector is not None
        self._steps.recall(projector.known)
        done, moved, regularity, best = self._steps.close(q, v)
        if not done:
            return None
        projector.remember(regularity, best, self._steps.block())
        return q, v, moved

    def take(
        self,
        start: tuple[float, float, float, float, float],
        state: State,
        asked: list[int],
        most: int,
    ) -> Segment | None:
        """At most so many steps, see `ManySteps`, to the first thing that happens."""
        inside = len(INNER) if self._fine else 0
        kernel = Kernel(self._steps, self._projector, self._manifold, inside, self._events)
        return take_steps(kernel, start, state, [], asked, most)

    def _events(self) -> tuple[Watched, ...]:
        """What has happened where the last step ends."""
        return tuple(self._watched[k] for k in self._steps.hits)


@cache
def _dense(fine: bool) -> tuple[Array, Array, Array]:
    """Dense output as the kernel has it, see `Dense` there: of a step with `Step.bends`, or not."""
    ends, bends = np.eye(8)[:5], np.eye(8)[5:]
    if not fine:
        basis = Bernstein.of(5).of_powers
        return np.zeros((0, 12)), hermite(*np.eye(5)), basis
    quintic = hermite(*ends)
    middle, whole = refined(quintic, INNER[1:2], bends[1:2]), refined(quintic, INNER, bends)
    before, half, behind = INNER.tolist()
    rows = []
    points = (half, 6, quintic), (before, 5, middle), (behind, 7, middle), (half, 6, whole)
    for part, place, p in points:
        powers = value_powers(part, len(p)), slope_powers(part, len(p))
        rows.append(np.concatenate([[part, place], *(x @ p for x in powers)]))
    return np.array(rows), whole, Bernstein.of(8).of_powers
