"""Damping that explicit steps cannot follow: how fast motions die away, and why the fastest does.

With the damping ``D = -d tau / d v`` of all forces and motions ``v = F u`` that the rows allow,
disturbances of the velocity die away as the eigenvectors of ``F'DF x = rate F'MF x`` do. An
explicit step longer than a few time constants ``1 / rate`` makes them grow instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..assembly.search import null_space
from ..boundary.marks import Array
from ..integrate import WHEN_STIFF, MuntheKaas, Slopes
from ..model.mechanism import Mechanism
from .equations import EquationsOfMotion

_BY_DAMPING = 2.0
"""Time constants by damping alone up to which, over the least one, damping is what is stiff."""


@dataclass(frozen=True)
class StiffDamping:
    """The fastest motion that damping alone would bring to rest.

    Args:
        joint: joint in which most power is lost.
        force: name of the force that takes most of it.
        linear: whether the joint's coordinate is a length.
        damping: of the motion, per unit of that joint's speed [N m s/rad, N s/m].
        inertia: of the motion, likewise [kg m^2, kg].
    """

    joint: str
    force: str
    linear: bool
    damping: float
    inertia: float

    @property
    def time_constant(self) -> float:
        """Time in which the motion falls to a third [s]."""
        return self.inertia / self.damping

    def __str__(self) -> str:
        units = ("N s/m", "kg") if self.linear else ("N m s/rad", "kg m^2")
        return (
            f"'{self.force}' of joint '{self.joint}' ({self.damping:.3g} {units[0]} on "
            f"{self.inertia:.3g} {units[1]}) has a time constant of {self.time_constant:.2g} s"
        )


def stiff_motion(robot: Mechanism, slopes: Slopes, damping: StiffDamping | None) -> str:
    """What is stiff where explicit steps were found too long; ``damping`` if that is why."""
    rates, motions = slopes.motions()
    rates = np.where(rates.real > 0.0, 0.0, rates)
    fastest = int(np.argmax(np.abs(rates)))
    time = 1.0 / float(np.abs(rates[fastest]))
    if damping is not None and damping.time_constant < _BY_DAMPING * time:
        return str(damping)
    unit = np.where(robot.is_translation, robot.length, 1.0)
    share = np.abs(motions[: robot.nv, fastest]) / unit
    joint = max(robot.joints, key=lambda name: float(share[robot.coordinates(name).v].max()))
    return f"joint '{joint}' has a motion with a time constant of {time:.2g} s"


def switch_note(motion: str, method: MuntheKaas) -> str:
    """What to say where implicit steps take over."""
    return (
        f"implicit steps ('{WHEN_STIFF}') took over from '{method.tableau.name}': {motion}; "
        f"pl.MuntheKaas('{WHEN_STIFF}') takes them from the start, when_stiff='warn' never"
    )


def crawl_warning(motion: str, method: MuntheKaas, left: float, h: float) -> str:
    """What to say where they would, with a time still to come and the size of steps [s]."""
    many = f"about {left / h:.2g} steps of '{method.tableau.name}' are still to come"
    return f"{motion}: {many}; leave when_stiff='warn' out, or take pl.MuntheKaas('{WHEN_STIFF}')"


def stiffest_damping(
    equations: EquationsOfMotion, t: float, q: Array, v: Array
) -> StiffDamping | None:
    """What brings the fastest motion to rest at a state; None without damping.

    Forces whose damping is not known (functions of the user's) are left out.

    Args:
        equations: equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
    """
    parts = equations.dampings(t, q, v)
    if not parts:
        return None
    M, _, J, _, _ = equations.system(t, q, v)
    return fastest_decay(equations.robot, M, equations.rows.scale[:, None] * J, parts)


def fastest_decay(
    robot: Mechanism, M: Array, rows: Array, parts: Mapping[str, Array]
) -> StiffDamping | None:
    """The fastest motion that damping brings to rest; None if there is no damping.

    Args:
        robot: the mechanism.
        M: mass matrix, shape (nv, nv).
        rows: rows that velocities obey, in units that compare, shape (m, nv).
        parts: damping by name of the force, shape (nv, nv), at least one.
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
    linear = bool(robot.is_translation[at.start])
    return StiffDamping(joint, force, linear, float(x @ D @ x), float(x @ M @ x))


def limit_message(stiffest: StiffDamping, method: MuntheKaas) -> str:
    """How short explicit steps must be, and for which damping."""
    longest = longest_step(stiffest, method)
    return f"{stiffest}, and explicit steps must be shorter than {longest:.2g} s"


def is_too_stiff(stiffest: StiffDamping, method: MuntheKaas) -> bool:
    """Whether the steps that a method may take are too long for a damping."""
    return (method.step or 1e3 * method.smallest) > longest_step(stiffest, method)


def longest_step(stiffest: StiffDamping, method: MuntheKaas) -> float:
    """Longest explicit step that a damping allows [s]."""
    return method.tableau.real_stability * stiffest.time_constant
