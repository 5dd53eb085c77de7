"""Damping that explicit steps cannot follow: how fast motions die away, and why the fastest does.

With the damping ``D = -d tau / d v`` of all forces and motions ``v = F u`` that the rows allow,
disturbances of the velocity die away as the eigenvectors of ``F'DF x = rate F'MF x`` do. An
explicit step longer than a few time constants ``1 / rate`` makes them grow instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..assembly.search import null_space
from ..integrate import Decay, MuntheKaas
from ..model.mechanism import Mechanism
from .equations import EquationsOfMotion

Array = NDArray[np.float64]

MANY = 2500
"""Steps still to come with which a run is said to crawl: seconds, for robots of many joints."""
IN_BRAKES = {"viscous friction": "viscous", "short circuit": "short_circuit"}
"""Damping that the brakes of a stop give, and what it is called there."""
_LIMITED = 0.2
"""Steps that are shorter than this part of what stability allows are so for another reason."""


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

    @property
    def way_out(self) -> str:
        """What to do about it."""
        own = f"lock the joint (mode=pl.Mode(['{self.joint}'])), or "
        if self.force.startswith("joint friction"):
            return own + (
                "let the friction stick and slip, pl.forces.JointFriction() without a speed"
            )
        if self.force in IN_BRAKES:
            return f"give it the '{IN_BRAKES[self.force]}' that it has in the brakes"
        if self.force.startswith("joint damping"):
            return own + (
                "give it the damping that it has: "
                "losses=False, forces=[pl.forces.JointDamping({...})]"
            )
        return own + "take less damping"


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


def decay_at(equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Decay:
    """How velocities die away by damping alone, as it is at a state.

    Args:
        equations: equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
    """
    rows = equations.rows.scale[:, None] * equations.terms(t, q, v)[0]
    free = np.setdiff1d(np.arange(len(v)), equations.rows.locked)
    return decay_of(equations.mass(q), rows, equations.dampings(t, q, v), free)


def decay_of(M: Array, rows: Array, parts: Mapping[str, Array], free: NDArray[np.intp]) -> Decay:
    """How velocities die away by damping alone.

    Args:
        M: mass matrix, shape (nv, nv).
        rows: rows that velocities obey, in units that compare, shape (m, nv).
        parts: damping by name of the force, shape (nv, nv).
        free: velocity coordinates that do not stand still.
    """
    motions = null_space(rows[:, free])
    F = np.zeros((len(M), motions.shape[1]))
    F[free] = motions
    response = F @ np.linalg.pinv(F.T @ M @ F, hermitian=True) @ F.T
    return Decay(response, np.sum([np.zeros(M.shape), *parts.values()], axis=0))


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


def crawl_message(stiffest: StiffDamping, method: MuntheKaas, left: float, h: float) -> str | None:
    """What to say of a run that damping makes crawl; None if it does not.

    Args:
        stiffest: the stiffest damping.
        method: integrator.
        left: time still to come [s].
        h: size of the steps [s]; zero if there was none yet.
    """
    longest = longest_step(stiffest, method)
    count = left / longest
    # Fixed steps that are too long fail soon, and say why then.
    if method.step is not None or count < MANY or 0.0 < h < _LIMITED * longest:
        return None
    many = f"about {count:.2g} of them for this run"
    return f"{limit_message(stiffest, method)}: {many}; {stiffest.way_out}"


def is_too_stiff(stiffest: StiffDamping, method: MuntheKaas) -> bool:
    """Whether the steps that a method may take are too long for a damping."""
    return (method.step or 1e3 * method.smallest) > longest_step(stiffest, method)


def longest_step(stiffest: StiffDamping, method: MuntheKaas) -> float:
    """Longest explicit step that a damping allows [s]."""
    return method.tableau.real_stability * stiffest.time_constant
