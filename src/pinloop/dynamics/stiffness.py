"""Damping that explicit steps cannot follow: how fast motions die away, and why the fastest does.

With the damping ``D = -d tau / d v`` of all forces and motions ``v = F u`` that the rows allow,
disturbances of the velocity die away as the eigenvectors of ``F'DF x = rate F'MF x`` do. An
explicit step longer than a few time constants ``1 / rate`` makes them grow instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..assembly.search import null_space
from ..boundary.marks import Array
from ..errors import PinloopWarning
from ..integrate import WHEN_STIFF, MuntheKaas, Slopes
from ..model.mechanism import Mechanism
from ..tolerances import TINY
from .equations import EquationsOfMotion

_BY_DAMPING = 2.0
"""Time constants by damping alone up to which, over the least one, damping is what is stiff."""


@dataclass(frozen=True)
class StiffMotion:
    """The fastest motion that does not grow by itself.

    Args:
        joint: joint that moves most in it; in which most power is lost, if damping makes it fast.
        time_constant: time in which it changes by its own size, or falls to a third [s].
        damping: what makes it fast, as part of a sentence; empty if it is not damping alone.
    """

    joint: str
    time_constant: float
    damping: str = ""

    def __str__(self) -> str:
        has = f"{self.damping} has" if self.damping else f"joint '{self.joint}' has a motion with"
        return f"{has} a time constant of {self.time_constant:.2g} s"


def stiff_motion(robot: Mechanism, slopes: Slopes, damping: StiffMotion | None) -> StiffMotion:
    """What is stiff where explicit steps were found too long; ``damping`` if that is why."""
    rates, motions = slopes.motions()
    rates = np.where(rates.real > 0.0, 0.0, rates)
    fastest = int(np.argmax(np.abs(rates)))
    time = 1.0 / max(float(np.abs(rates[fastest])), TINY)
    if damping is not None and damping.time_constant < _BY_DAMPING * time:
        return damping
    unit = np.where(robot.is_translation, robot.length, 1.0)
    return StiffMotion(largest_at(robot, np.abs(motions[: robot.nv, fastest]) / unit), time)


def largest_at(robot: Mechanism, values: Array) -> str:
    """The joint with the largest of some values per velocity coordinate, shape (nv,)."""
    return max(robot.joints, key=lambda name: float(values[robot.coordinates(name).v].max()))


def way_out(method: MuntheKaas, *, tried: bool) -> str:
    """What to do about a motion too fast for the steps of a method, also if those are implicit."""
    if tried:
        return "make it less stiff, or lock the joint"
    better = f"take pl.MuntheKaas('{WHEN_STIFF}')"
    return better if method.when_stiff == "switch" else f"leave when_stiff='warn' out, or {better}"


class StiffnessNotes:
    """Says when implicit steps take over from those of a method, or should, and when they end.

    Args:
        robot: the mechanism.
        method: the method.

    Attributes:
        motion: what is stiff; None while nothing is.
    """

    def __init__(self, robot: Mechanism, method: MuntheKaas) -> None:
        self._robot, self._method = robot, method
        self.motion: StiffMotion | None = None

    def look(
        self,
        t: float,
        slopes: Slopes | None,
        damping: Callable[[], StiffMotion | None],
        left: tuple[float, float],
    ) -> str:
        """What is to be said after a step; most often nothing.

        There are slopes if the motion is stiff there. ``left``: time to come, and size of the step.
        """
        if (slopes is None) == (self.motion is None):
            return ""
        name, switches = self._method.tableau.name, self._method.when_stiff == "switch"
        if slopes is None:
            self.motion = None
            return f"steps of '{name}' go on" if switches else ""
        self.motion = motion = stiff_motion(self._robot, slopes, damping())
        if switches:
            return (
                f"implicit steps ('{WHEN_STIFF}') took over from '{name}': {motion}; "
                f"pl.MuntheKaas('{WHEN_STIFF}') takes them from the start, when_stiff='warn' never"
            )
        warnings.warn(
            f"robot '{self._robot.name}' at t = {t:.6g} s: {motion}: about "
            f"{left[0] / left[1]:.2g} steps of '{name}' are still to come; "
            f"{way_out(self._method, tried=False)}",
            PinloopWarning,
            stacklevel=9,
        )
        return ""


def stiffest_damping(
    equations: EquationsOfMotion, t: float, q: Array, v: Array
) -> StiffMotion | None:
    """What brings the fastest motion to rest at a state; None without damping.

    Forces whose damping is not known (functions of the user's) are left out.
    """
    parts = equations.dampings(t, q, v)
    if not parts:
        return None
    M, _, J, _, _ = equations.system(t, q, v)
    return fastest_decay(equations.robot, M, equations.rows.scale[:, None] * J, parts)


def fastest_decay(
    robot: Mechanism, M: Array, rows: Array, parts: Mapping[str, Array]
) -> StiffMotion | None:
    """The fastest motion that damping, by name of the force, brings to rest; None without any.

    Rows are those that velocities obey, in units that compare.
    """
    D = np.sum([*parts.values()], axis=0)
    F = null_space(rows)
    if F.shape[1] == 0:
        return None
    try:
        root = np.linalg.inv(np.linalg.cholesky(F.T @ M @ F))
    except np.linalg.LinAlgError:
        return None  # what lacks mass is said where accelerations are computed
    own = root @ (F.T @ D @ F) @ root.T
    rates, motions = np.linalg.eigh(0.5 * (own + own.T))
    if not rates[-1] > 0.0:
        return None
    x = F @ (root.T @ motions[:, -1])
    lost = x * (D @ x)
    joint = max(robot.joints, key=lambda name: float(np.sum(lost[robot.coordinates(name).v])))
    at = robot.coordinates(joint).v
    x /= np.linalg.norm(x[at])
    force = max(parts, key=lambda name: float(x @ parts[name] @ x))
    units = ("N s/m", "kg") if robot.is_translation[at.start] else ("N m s/rad", "kg m^2")
    damping, inertia = float(x @ D @ x), float(x @ M @ x)
    what = f"{damping:.3g} {units[0]} on {inertia:.3g} {units[1]}"
    return StiffMotion(joint, inertia / damping, f"'{force}' of joint '{joint}' ({what})")
