"""Runs in which nothing is decided: steps from start to end, with one set-up for all of them.

No events, dry friction, end stops, or rows of the user's. Where something has to be decided after
all, such as other rows near a singular pose, a run is `simulate`'s; both have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.losses import losses_of_file
from ..errors import PinloopError
from ..integrate import MuntheKaas, Segment, Step, StepFailed, StepMemory, Stepper
from ..model.mechanism import Mechanism
from .initial_state import consistent_start
from .mode_motion import ModeMotion
from .modes import ModalSystem, Mode, RobotManifold
from .stabilization import Projection

_DECISIONS = ("tau", "rows", "events", "formulation", "save_every")
"""Settings that such runs do not have, see `simulate`."""


@dataclass(frozen=True, eq=False)
class PlainRun:
    """A run with what a batch asks of a `Trajectory`.

    Args:
        segments: its steps.
        manifold: configuration group.
        acceleration: right-hand side, for states between.
        evaluations: of the accelerations.
    """

    segments: tuple[Segment, ...]
    manifold: RobotManifold
    acceleration: Callable[[float, Array, Array], Array]
    evaluations: int
    message = "done"

    @property
    def t(self) -> tuple[float, float]:
        """Start and end [s]."""
        return float(self.segments[0].t[0]), float(self.segments[-1].t[-1])

    @property
    def q(self) -> Array:
        """The last configurations."""
        return self.segments[-1].q

    @property
    def v(self) -> Array:
        """The last velocities."""
        return self.segments[-1].v

    def __call__(self, times: Array) -> tuple[Array, Array, Array]:
        """States at some times, as a `Trajectory` has them."""
        q, v = zip(*map(self._at, times.tolist()), strict=True)
        return times, np.array(q), np.array(v)

    def _at(self, time: float) -> tuple[Array, Array]:
        number = next(k for k, x in enumerate(self.segments) if time <= x.t[-1])
        segment = self.segments[number]
        k = int(np.searchsorted(segment.t, time, side="right")) - 1
        if segment.t[k] == time:
            return segment.q[k], segment.v[k]
        q, v = self._step(number, k)(time)
        return self.manifold.normalize(q), v

    @cached_property
    def _step(self) -> Callable[[int, int], Step]:
        """A step of a segment; that which was asked for last is kept."""

        def step(number: int, k: int) -> Step:
            segment = self.segments[number]
            return replace(segment, follows=segment.follows and self.acceleration).step(k)

        return lru_cache(1)(step)


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
        # Of the run before: where it starts, too, much need not be computed again.
        self._known: dict[Mode, tuple[EquationsOfMotion, RobotManifold]] = {}

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

    def run(self, mode: Mode | None, q: Array, v: Array) -> PlainRun | None:
        """One of them; None if it is not as plain as that, or fails."""
        mode = Mode() if mode is None else mode
        try:
            return self._run(mode.without_friction, q, v) if isinstance(mode, Mode) else None
        except (PinloopError, StepFailed):
            return None

    def _run(self, mode: Mode, q: Array, v: Array) -> PlainRun | None:
        """The same; errors are for `simulate` to explain."""
        t, system, robot = self._start, self._system, self._system.robot
        q, v = robot.checked_configuration(q), robot.checked_velocity(v)
        if mode not in self._known:
            self._known[mode] = system.equations(mode), RobotManifold(robot).in_mode(mode)
        equations, manifold = self._known[mode]
        if len(rows := equations.rows) or len(rows.whole):
            equations = equations.around(t, q)
            q, v = consistent_start(equations, t, q, v)
            equations = equations.around(t, q)
        self._known[mode] = equations, manifold
        motion = ModeMotion(
            equations, self._method, self._stabilization, manifold, (t, q), lambda segment: None
        )
        try:
            return self._stepped(motion, manifold, q, v)
        finally:
            motion.release()

    def _stepped(
        self, motion: ModeMotion, manifold: RobotManifold, q: Array, v: Array
    ) -> PlainRun | None:
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
        motion.loops.look(state[0])
        follows = motion.equations.acceleration
        return PlainRun(tuple(segments), manifold, follows, stepper.evaluations)
