"""What happens at its time in a stop: commands, brakes, power, ramps; and when drives stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .brake_times import BrakeTimes
from .drivetrain import Drivetrain
from .plan import Plan

__all__ = ["PendingInstants"]


class PendingInstants:
    """The instants of a stop, as far as they are known.

    Args:
        plan: the plan of the stop.
        train: delays and rises of the brakes.

    Attributes:
        brake_times: when brakes are commanded and power goes; infinite while not known.
        done: time up to which everything has happened [s].
    """

    def __init__(self, plan: Plan, train: Drivetrain) -> None:
        self._plan, self._train = plan, train
        self._brakes_follow = plan.category.brakes_at_rest or np.isfinite(self._limit)
        # The command to cut the power changes nothing yet: no phase begins with it.
        self._at_once = not plan.category.controlled
        self.brake_times: BrakeTimes = plan.brake_times
        self.done = -1.0
        self._breaks = self._all_breaks()

    @property
    def reference_ends(self) -> float:
        """When the last piece of the reference begins, in which all stand if they are to [s]."""
        return self._plan.reference.starts[-1]

    def breaks(self) -> list[float]:
        """Instants at which something changes by itself, in order [s]."""
        return self._breaks

    def _all_breaks(self) -> list[float]:
        waiting = [] if np.isfinite(self.brake_times.brake) else [self._limit]
        instants = {*self.brake_times.breaks(self._train), *self._plan.reference.starts, *waiting}
        if not self._at_once:
            instants.add(self.brake_times.command)
        return sorted(instant for instant in instants if np.isfinite(instant))

    def passed(self, t: float) -> list[tuple[float, str]]:
        """What has come without changing anything, and has not been said."""
        command = self.brake_times.command
        return [(command, "command")] if self._at_once and self.done < command <= t else []

    def due(self, t: float) -> list[float]:
        """Instants that have come and have not been dealt with."""
        return [instant for instant in self.breaks() if self.done < instant <= t]

    def waiting(self, t: float) -> bool:
        """Whether something is still to come after ``t``."""
        later = any(instant > t for instant in self.breaks())
        return later or (self._brakes_follow and not np.isfinite(self.brake_times.brake))

    def brakes_due(self, t: float, *, stand: bool) -> list[str]:
        """Command the brakes of a controlled stop, if it is time; says why.

        Args:
            t: time [s].
            stand: whether the drives have brought all to rest.
        """
        if not self._brakes_follow or np.isfinite(self.brake_times.brake):
            return []
        late = self._limit <= t
        if not late and not (stand and self._plan.category.brakes_at_rest):
            return []
        full = (t + self._train.delay + self._train.rise)[self._train.has_brake].max(initial=t)
        off = t + self._plan.chain.drive_off if late else float(full)
        self.brake_times = replace(self.brake_times, brake=t, off=off)
        self._breaks = self._all_breaks()
        return ["time limit" if late else "drives stand"]

    def named(self, due: list[float]) -> list[str]:
        """What happens at some instants."""
        begin, full = self.brake_times.engagement(self._train)
        names = []
        for instant in due:
            if instant == self.brake_times.command and not self._at_once:
                names.append("command")
            elif instant in self._plan.reference.starts and 0 < instant != self.brake_times.off:
                names.append("a ramp ends")
            if instant == self.brake_times.off:
                names.append("power off")
            for column in self._train.has_brake.nonzero()[0].tolist():
                if begin[column] == instant:
                    names.append(f"brake of {self._train.names[column]} engages")
                elif full[column] == instant:
                    names.append(f"brake of {self._train.names[column]} has its full torque")
        return names

    @property
    def _limit(self) -> float:
        """When brakes come in any case [s]."""
        limit = self._plan.category.time_limit
        return np.inf if limit is None else self._plan.chain.command + limit
