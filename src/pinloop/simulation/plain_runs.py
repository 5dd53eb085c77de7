"""Runs in which nothing is decided: steps from start to end, with one set-up for all of them.

No events, dry friction, end stops, or rows of the user's. Where something has to be decided after
all, such as other rows near a singular pose, a run is `simulate`'s; both have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..boundary.marks import Array
from ..dynamics.losses import losses_of_file
from ..errors import PinloopError
from ..integrate import INNER, MuntheKaas, Segment, States, StepFailed, StepMemory, Stepper
from ..model.mechanism import Mechanism
from .initial_state import consistent_start
from .mode_motion import ModeMotion
from .modes import FREE, ModalSystem, Mode, RobotManifold
from .stabilization import Projection
from .trajectory import Trajectory

_DECISIONS = ("tau", "rows", "events", "formulation", "save_every")
"""Settings that such runs do not have, see `simulate`."""


class PlainRuns:
    """What such runs of a robot have in common, for one thread.

    Args:
        system: equations of motion by mode.
        method: how steps are taken.
        stabilization: what puts states back on the constraint manifold; None if nothing does.
        span: start and end [s].
    """

    def __init__(
        self,
        system: ModalSystem,
        method: MuntheKaas,
        stabilization: Projection | None,
        span: tuple[float, float],
    ) -> None:
        self._system, self._method, self._stabilization = system, method, stabilization
        self._start, self._until = span
        self._unit = np.where(system.robot.is_translation, system.robot.length, 1.0)
        self._group = RobotManifold(system.robot)

    @classmethod
    def of(cls, robot: Mechanism, until: float, settings: Mapping[str, Any]) -> PlainRuns | None:
        """Runs with some settings of `simulate`; None if these ask for more."""
        method = settings.get("method") or MuntheKaas()
        asked = any(settings.get(name) for name in _DECISIONS) or method.step is not None
        if asked or settings.get("limits", "warn") != "warn":
            return None
        losses = losses_of_file(robot) if settings.get("losses", True) else []
        system = ModalSystem(
            robot,
            forces=[*settings.get("forces", ()), *losses],
            regularization=settings.get("regularization", True),
        )
        if system.friction or system.renews:
            return None
        projection = settings.get("stabilization", Projection())
        return cls(system, method, projection, (settings.get("start", 0.0), until))

    def run(self, mode: Mode | None, q: Array, v: Array) -> Trajectory | None:
        """One of them; None if it is not as plain as that, or fails."""
        mode = FREE if mode is None else mode
        try:
            return self._run(mode.without_friction, q, v) if isinstance(mode, Mode) else None
        except (PinloopError, StepFailed):
            return None

    def _run(self, mode: Mode, q: Array, v: Array) -> Trajectory | None:
        """The same; errors are for `simulate` to explain."""
        t, robot = self._start, self._system.robot
        q, v = robot.checked_configuration(q), robot.checked_velocity(v)
        equations = self._system.near(mode, t, q)
        closed, v = consistent_start(equations, t, q, v)
        if closed is not q:
            equations, q = self._system.near(mode, t, closed), closed
        manifold = self._group.in_mode(mode)
        motion = ModeMotion(
            equations, self._method, self._stabilization, manifold, (t, q), lambda segment: None
        )
        try:
            return self._stepped(motion, mode, q, v)
        finally:
            motion.release()

    def _stepped(self, motion: ModeMotion, mode: Mode, q: Array, v: Array) -> Trajectory | None:
        """Steps of the kernel until the end; None if one of them is not for it."""
        t, flow, stepper = self._start, motion.flow, Stepper(self._method, self._unit)
        if flow.many is None:
            return None
        state, memory = stepper.begin(flow, StepMemory(), t, q, v)
        h, segments = stepper.first_step(*state[1:], self._until - t), list[Segment]()
        while t < self._until:
            segment = stepper.many(flow, memory, (t, h, self._until), state, [])
            if segment is None:
                return None
            memory = stepper.account(segment, memory)
            t, h = float(segment.t[-1]), float(segment.notes[-1, 0])
            state = segment.q[-1], segment.v[-1], segment.a[-1]
            motion.catch_up(segment)
            segments.append(segment)

        def ends(name: str) -> Array:
            return np.concatenate([getattr(x, name)[min(k, 1) :] for k, x in enumerate(segments)])

        psi = np.concatenate([x.psi for x in segments])
        bends = np.full((len(psi), len(INNER), len(v)), np.nan) if segments[0].follows else None
        modes = np.zeros(len(psi) + 1, dtype=np.int64)
        states = States(ends("t"), ends("q"), ends("v"), ends("a"), psi, modes, bends)
        return Trajectory(
            robot=self._system.robot,
            **states._asdict(),
            modes=(mode,),
            message="done",
            system=self._system,
            evaluations=stepper.evaluations,
        )
