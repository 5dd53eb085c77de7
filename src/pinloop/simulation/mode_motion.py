"""The smooth motion of a robot in one mode: its equations, projections, branches, closed loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.independence import INFINITE
from ..errors import NotFinite
from ..integrate import Flow, ManySteps, MuntheKaas, Segment, Step
from ..tolerances import Regularity
from .accuracy import SpeedLoss, speed_loss
from .closing_loops import LoopWatch
from .modes import RobotManifold
from .native_steps import NativeSteps
from .passages import open_passage
from .stabilization import Projection, Projector

_WATCHED = 8
"""Loops stay torn once they are: it is enough to look at every eighth step, and at the end."""


class ModeMotion:
    """What a run follows from one change of its mode to the next.

    Args:
        equations: equations of motion.
        method: how steps are taken.
        stabilization: what puts states back on the constraint manifold; None if nothing does.
        manifold: configuration group.
        start: time and configuration where it begins.
        record: takes notice of steps that the kernel has taken; None if it is to take none.

    Attributes:
        flow: the motion, for steps.
        along: accelerations along it.
        engine: what computes them.
        loops: what sees that loops stay closed.
    """

    def __init__(
        self,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        stabilization: Projection | None,
        manifold: RobotManifold,
        start: tuple[float, Array],
        record: Callable[[Segment], None] | None,
    ) -> None:
        self.equations, self.along = equations, equations.right_hand_side()
        self._slack = 0.0 if stabilization is None else stabilization.tol
        self._projected = 0
        projector: Projector | None = None
        if stabilization is not None and (equations.rows.unlocked or len(equations.rows.whole)):
            projector = Projector(equations, stabilization, manifold)
            projector.begin(*start)
        self._projector = projector
        self.loops = LoopWatch(equations, projects=projector is not None)
        self._native = native = record and NativeSteps.of(
            self.along, equations, method, manifold, projector
        )
        self.flow = Flow(
            self.along if method.step is None else self._checked,
            manifold,
            self._project,
            projector,
            None if projector is None else self._on_branch,
            None if projector is None else self._loss,
            fine=True,
            many=ManySteps(native.take, record) if native and record else None,
        )
        if projector and not native:
            projector.choose(*start)  # the kernel does it itself
        self.engine = "native" if native else equations.engine

    def release(self) -> None:
        """Give the kernel back that has taken the steps."""
        if self._native is not None:
            self._native.release()
            self._native = None

    def catch_up(self, segment: Segment) -> None:
        """Be where the kernel is after steps that it has taken."""
        t, q, v = float(segment.t[-1]), segment.q[-1], segment.v[-1]
        self.loops.look(q)  # once torn they stay so
        if segment.counts[-1, 2]:
            self.along(t, q, v)  # which finds out whether to hold other rows
            self.along.advance(q)

    def _checked(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration with what only fixed steps need."""
        # Not if one of them is NaN. Configurations follow velocities; Python's floats do not warn.
        if not sum(map(abs, v.tolist())) < INFINITE:
            raise NotFinite(f"the state became infinite at t = {t:.6g} s; take a smaller step")
        return self.along(t, q, v)

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        if self._projector is None:
            return q, v, False
        self._projected += 1
        moved = self._projector.apply(t, q, v)
        if self._projected % _WATCHED == 0:
            self.loops.look(moved[0])
        return moved

    def _on_branch(self, t: float, q: Array, v: Array) -> Flow:
        """The motion beside a singular pose, on the branch of a state; at rest, of its loads."""
        along = v if v.any() else self.equations.acceleration(t, q, v)
        passage = open_passage(self.equations, t, q, along)

        def project(t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
            q, v = passage.project(t, q, v)
            if self._projector is not None:
                self._projector.look(t, q)
            return q, v, True

        return replace(
            self.flow, acceleration=passage.acceleration, project=project, branch=None, loss=None
        )

    def _loss(self, step: Step, before: Array, tolerance: Array | None) -> SpeedLoss | None:
        """Why the projection at the end of a step takes more than its error, if it does."""
        v, slack = (step.v0, before, step.v1), 0.0
        if self._projector is not None:
            slack = self._slack / max(self._projector.regularity, Regularity.AT)
        return speed_loss(self.equations, step.t1, step.q1, v, tolerance, slack)
