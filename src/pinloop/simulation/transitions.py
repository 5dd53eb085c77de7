"""Velocity jump and impulse when the mode changes, momentum kept (paper 4)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..assembly.continuation import nearby_assembly
from ..assembly.search import jacobian_rank, null_space
from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..dynamics import Augmented, EquationsOfMotion, Formulation, Projected, Voronets
from ..errors import BadValue, InconsistentVelocity, PinloopWarning
from ..linalg.saddle import Elimination, Saddle
from ..model.mechanism import Mechanism
from ..tolerances import ACTIVATED, CONSISTENT, CONTRADICTION, RANK
from .modes import ModalSystem, Mode

Ranks = tuple[int, int]


@public
@dataclass(frozen=True, eq=False)
class Transition:
    """A change of the mode at one instant.

    Args:
        t: time [s].
        q: configuration, shape (nq,); it does not jump.
        v_minus: velocity before, shape (nv,).
        v_plus: velocity after, shape (nv,).
        before: mode before.
        after: mode after.
        labels: label of each row after the change.
        impulse: impulse of each row [N m s, N s]; the smallest one where rows are redundant.
        determined: per row, whether its impulse is unique.
        wrenches: impulsive wrench of each closed loop joint on its body B, at and in frame B, force
            first [N s, N m s], shape (6,).
        determined_wrenches: per closed loop joint, whether its wrench is unique. Rows that
            regularization drops are redundant: they make the impulses of the others unique, but
            not the wrench.
        energy_loss: kinetic energy that the impulses destroy, ``0.5 dv' M dv`` [J]; never negative.
        drive_work: work of prescribed motions during the jump [J]; zero without any.
        momentum_before: generalised momenta ``M v`` before, shape (nv,).
        momentum_after: generalised momenta after.
        rank_before: independent rows before, and in general around q.
        rank_after: independent rows after, and in general around q.
        events: names of the events that caused it.
    """

    t: float
    q: Array
    v_minus: Array
    v_plus: Array
    before: Mode
    after: Mode
    labels: tuple[str, ...]
    impulse: Array
    determined: NDArray[np.bool_]
    wrenches: dict[str, Array]
    determined_wrenches: dict[str, bool]
    energy_loss: float
    drive_work: float
    momentum_before: Array
    momentum_after: Array
    rank_before: tuple[int, int]
    rank_after: tuple[int, int]
    events: tuple[str, ...] = ()

    @property
    def regular(self) -> bool:
        """Whether the ranks of the rows before and after are constant around q (definition 1)."""
        return (
            self.rank_before[0] == self.rank_before[1] and self.rank_after[0] == self.rank_after[1]
        )

    def impulse_of(self, label: str) -> Array:
        """Impulses of the rows whose label starts with a name, e.g. ``"lock:elbow"``."""
        starts = (f"{label}.", f"{label}:")
        rows = [k for k, name in enumerate(self.labels) if name == label or name.startswith(starts)]
        if not rows:
            raise BadValue(f"no row is called '{label}'; rows: {', '.join(self.labels)}")
        return self.impulse[rows]


@public
def transition(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    before: Mode,
    after: Mode,
    form: Formulation | None = None,
) -> Transition:
    """Velocity after a change of locks and loops, with the momentum balance kept.

    ``M dv = J+' L``, ``J+ (v + dv) = 0``: the velocity after is the one nearest to ``v`` in the
    kinetic metric that the rows after the change allow.

    Args:
        robot: the mechanism.
        q: assembled configuration, shape (nq,).
        v: velocity before, shape (nv,).
        before: mode before.
        after: mode after.
        form: `Augmented` (paper 4, eq. 22), `Projected` (eq. 32) or `Voronets` (eq. 37); they give
            the same velocity.

    Raises:
        InconsistentVelocity: ``v`` is no velocity of the mode before.
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    for mode in (before, after):
        if not isinstance(mode, Mode):
            raise BadValue(f"{mode!r} is no mode; give pl.Mode(locks=('elbow',))")
    if form is not None and not isinstance(form, (Augmented, Projected, Voronets)):
        raise BadValue(f"form is {form!r}; give pl.Augmented(), pl.Projected() or pl.Voronets()")
    system = ModalSystem(robot, regularization=robot.regularization is not None)
    before, after = (system.renewed(mode, q) for mode in (before, after))
    J, b, _ = system.equations(before).terms(0.0, q, v)
    off = float(np.linalg.norm(J @ v - b))
    if off > CONSISTENT * max(1.0, float(np.abs(v).max(initial=0.0))):
        raise InconsistentVelocity(
            f"robot '{robot.name}': this is no velocity of the mode before ({before}): its rows "
            f"are violated by {off:.3g}",
            v=v,
            residual=off,
        )
    return make_transition(system, 0.0, q, v, before, after, form)


def make_transition(
    system: ModalSystem,
    t: float,
    q: Array,
    v: Array,
    before: Mode,
    after: Mode,
    form: Formulation | None = None,
    events: tuple[str, ...] = (),
) -> Transition:
    """The transition between two modes of a system; see `transition`."""
    old, new = system.equations(before), system.equations(after)
    M = new.mass(q)
    J, b, _ = new.terms(t, q, v)
    change = new.jump(t, q, v)
    dv, impulse = change.a, change.multipliers
    if form is not None and not isinstance(form, Augmented):
        dv, impulse = _jump(form, old, new, t, q, v)
    v_plus = v + dv
    energy, work = 0.5 * float(dv @ M @ dv), float(impulse @ b)
    jump = Jump(v_plus, new.rows.labels, J, impulse, change.determined, energy, work)
    transition = recorded(
        system, (t, q, v), jump, (before, after), ranks_of(system, (before, after), q), events
    )
    warn_if_singular(system, transition, float(np.linalg.norm(new.rows.scale * (J @ v_plus - b))))
    return transition


class Jump(NamedTuple):
    """A jump of the velocity and what made it: rows and their impulses; see `Transition`."""

    v_plus: Array
    labels: tuple[str, ...]
    J: Array
    impulse: Array
    determined: NDArray[np.bool_]
    energy_loss: float
    drive_work: float


def recorded(
    system: ModalSystem,
    state: tuple[float, Array, Array],
    jump: Jump,
    modes: tuple[Mode, Mode],
    ranks: tuple[Ranks, Ranks],
    events: tuple[str, ...],
) -> Transition:
    """A jump as a transition, with all that follows from it.

    Its rows are those of the loops of the mode after, then others; ``ranks``: see `ranks_of`.
    """
    t, q, v = state
    new = system.equations(modes[1])
    M, loops = new.mass(q), len(new.rows.loops)
    return Transition(
        t,
        q.copy(),
        v.copy(),
        jump.v_plus,
        *modes,
        jump.labels,
        jump.impulse,
        jump.determined,
        _wrenches(new, q, jump.impulse[:loops]),
        _determined(new, jump.J, M, q),
        jump.energy_loss,
        jump.drive_work,
        M @ v,
        M @ jump.v_plus,
        *ranks,
        events,
    )


def warn_if_singular(system: ModalSystem, transition: Transition, left: float) -> None:
    """Warn where the rows of a transition lose rank, or are not met."""
    if transition.regular and left <= CONTRADICTION * max(
        1.0, float(np.abs(transition.v_minus).max(initial=0.0))
    ):
        return
    warnings.warn(
        f"robot '{system.robot.name}' at t = {transition.t:.6g} s: the change from mode "
        f"'{transition.before}' to '{transition.after}' is singular (ranks "
        f"{transition.rank_before} and {transition.rank_after} here and around); the velocity "
        "after is the least-squares one",
        PinloopWarning,
        stacklevel=5,
    )


def _jump(
    form: Formulation, old: EquationsOfMotion, new: EquationsOfMotion, t: float, q: Array, v: Array
) -> tuple[Array, Array]:
    """Velocity jump and impulses of all rows after the change."""
    M, (J, b, _) = new.mass(q), new.terms(t, q, v)
    u, scale, still = new.rows.unlocked, new.rows.scale, -v[new.rows.locked]
    free = Elimination(new.rows.locked, len(v))
    M_ff, f, J_f, rates = free.reduce(M, np.zeros(len(v)), J[:u], (b - J @ v)[:u], still)
    J_f, rates = scale[:u, None] * J_f, scale[:u] * rates
    # Persistent rows hold before and after: locked coordinates stop without leaving them.
    persistent = np.array([label in old.rows.labels for label in new.rows.labels[:u]], dtype=bool)
    J1, J2 = J_f[persistent], J_f[~persistent]
    plus = Saddle(M_ff, J1)
    first, _ = plus.solve(f, rates[persistent])
    wanted = rates[~persistent] - J2 @ first
    # Activated rows that depend on persistent ones leave rounding noise, which is no row.
    size = float(np.linalg.norm(J2 @ np.linalg.solve(M_ff, J2.T), 2)) if len(J2) else 0.0
    floor = ACTIVATED * np.sqrt(size)
    if isinstance(form, Projected):
        N1 = np.eye(len(M_ff)) - plus.solve(np.zeros(M_ff.shape), J1)[0]
        then, _ = Saddle(M_ff, J2 @ N1, floor=floor).solve(np.zeros(len(M_ff)), wanted)
    else:
        F = null_space(J1)
        du, _ = Saddle(F.T @ M_ff @ F, J2 @ F, floor=floor).solve(np.zeros(F.shape[1]), wanted)
        then = F @ du
    dv = free.restore(first + then, still)
    impulse = np.linalg.lstsq((scale[:, None] * J).T, M @ dv, rcond=RANK)[0]
    return dv, scale * impulse


def ranks_of(system: ModalSystem, modes: tuple[Mode, Mode], q: Array) -> tuple[Ranks, Ranks]:
    """Per mode the rank of its rows at q, and the largest one at configurations around."""
    return _ranks(system, modes[0], q), _ranks(system, modes[1], q)


def _ranks(system: ModalSystem, mode: Mode, q: Array) -> Ranks:
    """Rank of the rows of a mode at q, and the largest one at configurations around."""
    equations = system.equations(mode)
    rest = np.zeros(system.robot.nv)

    def rank(place: Array) -> int:
        J = equations.rows.scale[:, None] * equations.terms(0.0, place, rest)[0]
        return jacobian_rank(J)

    here = rank(q)
    rng = np.random.default_rng(0)
    whole = {lock.joint for lock in mode.locks if not lock.axes}
    locked = [name for name in system.robot.joints if name in whole]
    around = here
    for _ in range(3):
        near = nearby_assembly(equations.robot, q, rng, held=tuple(locked), reach=1e-2)
        if near is not None:
            around = max(around, rank(near))
    return here, around


def _determined(equations: EquationsOfMotion, J: Array, M: Array, q: Array) -> dict[str, bool]:
    """Whether the wrench of every closed loop joint is unique."""
    full = Constraints(equations.robot, full=True)
    saddle = Saddle(M, np.vstack([full.jacobian(q), J[len(equations.rows.loops) :]]))
    return {
        loop.name: bool(saddle.determined[full.rows_of[loop.name]].all())
        for loop in equations.robot.loops
    }


def _wrenches(equations: EquationsOfMotion, q: Array, impulse: Array) -> dict[str, Array]:
    """Impulsive wrench of every closed loop joint."""
    rows = equations.rows.loops
    return {
        loop.name: equations.loop_wrench(q, loop.name, impulse[rows.rows_of[loop.name]])
        for loop in equations.robot.loops
    }
