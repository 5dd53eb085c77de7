"""Who sticks and who slides from now on: all joints are decided together (STOPPING: 6, 7).

What stands still against the ground, or runs with its drive, sticks if the torque that this takes
is within what pins it, at standstill. Those that break away have only what is left while they
slide, and then the others are looked at again: the set of those that slide only grows.

What is decided agrees with the motion after it. Let ``e_i`` be the rounding error of the load of
coordinate i, plus what its bounds change within the rounding of an instant (`Phase.noise`), M
positive definite, and loads continuous within a phase, as they are
where the rows keep their rank. Then, at the start of a phase:

1. What sticks has its load at most ``e_i`` beyond its bounds, computed by what ends the phase, at
   the same state; what has more lets go (`giving_in`), and the others are decided again. It comes
   loose ``2 e_i`` beyond them (`RELEASE`). So it stays until its load has changed by ``e_i``: for
   a positive time. A load that rests on its bound, but for rounding, never comes loose.
2. What leaves rest in direction s has, by Gauss' principle, an acceleration of sign s that is more
   than rounding: by continuity for a positive time, in which it moves away from rest.
3. Where loads pass their bounds by hardly more than rounding, the signs of 2 may be wrong;
   and where a brake comes that grows faster than a tiny load can move its joint, the time of 2 may
   be shorter than times are told apart. Then a coordinate is back at rest at the very instant at
   which it left. It is *refuted*, and sticks for that instant, its ``e_i`` as large as its load is
   beyond its bounds. So at one instant a coordinate leaves rest once and is held once, and after at
   most two decisions per coordinate time goes on.
4. The power in a gear with losses that turns a rotor has one sign in a phase. The phase ends when
   the torque behind the gear has the other one by ``2 e_i``, and that is its sign in the next
   phase, which hence lasts until the torque has changed by ``4 e_i``: for a positive time.
5. What nothing grips, neither brake nor dry friction nor drive, takes no part: such a joint is
   free. Whether it rests means nothing for its torques, and its speed may pass zero at any time.

The one exception is a singular pose without a branch that goes on: there loads are not continuous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...constraints.rows import Locked
from ...dynamics.stick_slip import (
    RELEASE,
    Contacts,
    giving_in,
    holding_noise,
    solve_stick_slip,
)
from ...linalg.saddle import Saddle, factor_mass
from ...simulation.modes import Mode
from ...tolerances import BOUND_INSTANT
from .drivetrain import Drivetrain, Sliding, SlidingTorques
from .phase import (
    Known,
    Phase,
    breakaway_directions,
    gear_contacts,
    in_the_way,
    motor_bounds,
    pinned_bounds,
)
from .reference import Piece
from .stop_equations import StopEquations

Forces = tuple[Array, Array, Array]
"""Mass matrix, forces without those of the contacts, and rows, see `EquationsOfMotion.system`."""


@dataclass(frozen=True, eq=False)
class PhaseStart:
    """What is known at the instant at which a phase begins.

    Args:
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,); exactly that of the ground or the drive where one is met.
        ramp: part of the brake torque, shape (nv,).
        slope: its rate from now on [1/s].
        piece: reference of the drives from now on.
        drives: mask of the coordinates with a drive that has power.
        limited: whether the torque of the drives is limited.
        shorted: whether the motors are shorted.
        blocked: directions blocked by teeth and stops, see `Phase`.
        reversing_gears: those in whose gear the power has just turned round, with the new sign.
        slipped: by how much brakes have slipped [rad, m], shape (nv,).
        refuted: coordinates that came loose at this very instant, and came to rest at once.
    """

    t: float
    q: Array
    v: Array
    ramp: Array
    slope: Array
    piece: Piece
    drives: Mask
    limited: bool
    shorted: bool
    blocked: NDArray[np.int64]
    reversing_gears: Mapping[int, int]
    slipped: Array
    refuted: frozenset[int] = frozenset()


def decide_phase(equations: StopEquations, now: PhaseStart) -> Phase:
    """Decide who sticks, who follows and who slides, all together."""
    train = equations.train
    phase = _as_if_all_stuck(train, now)
    if not (train.has_losses or any(phase.pinned.tolist())):
        return phase  # there is nothing to decide
    slide = train.sliding_torques(phase.sliding, phase.follow)
    M, f, J, gamma, _ = equations.system(now.t, now.q, now.v)
    ends = _ends(train, phase, now.t, now.v, kind=1)
    bounds = ends[:2]
    if held := _all_held(equations, phase, now, (slide, bounds), (M, f, J)):
        return held
    with_rotors = train.with_rotors(M)
    # The rows stand in for inertia that the tree lacks.
    whole = factor_mass(with_rotors, J)[0]
    broken: dict[int, int] = {}
    loose: dict[int, int] = {}
    while True:
        contacts, force = _contacts(train, phase, now, slide, f, ends, broken)
        torque, side, reaction = _decided(M, force, J, gamma, contacts)
        new = {
            column: way
            for column, way in zip(contacts.columns.tolist(), side.tolist(), strict=True)
            if way and phase.pinned[column] and column not in broken and column not in now.refuted
        }
        broken |= new
        if new:
            continue
        noise = _noise(equations, now, (whole, f, J), bounds, reaction)
        settled = _settled(train, phase, now, contacts, (torque, side), loose, noise)
        settled = _marked_redundant(settled, with_rotors, J)
        # What still sticks has the bounds that it had.
        same = settled.sliding is phase.sliding
        own = slide if same else train.sliding_torques(settled.sliding, settled.follow)
        equations.enter(settled, (own, bounds))
        at, ends_at = contacts.columns, (torque - contacts.low, contacts.high - torque)
        if not len(J) and (np.minimum(*ends_at) > RELEASE * noise[at])[side == 0].all():
            return settled  # without loops nothing is heavier than it looks from its own joint
        beyond = equations.breaking_away(now.t, now.q, now.v)
        back = list(now.refuted)
        noise[back] = np.maximum(noise, np.abs(beyond))[back]
        way = np.sign(beyond[at])
        inside = np.abs(np.where(way > 0, *ends_at))
        gone = giving_in(np.abs(beyond[at]), inside, noise[at])
        if not gone.any():
            return replace(settled, noise=noise) if back else settled
        loose |= dict(zip(at[gone].tolist(), way[gone].astype(int).tolist(), strict=True))
        broken |= loose


def _all_held(
    equations: StopEquations, phase: Phase, now: PhaseStart, known: Known, system: Forces
) -> Phase | None:
    """The phase in which all sticks that may, if its bounds are farther off than noise.

    So it is most often, and then nothing has to be searched: the motion is that of the phase.
    """
    train = equations.train
    if equations.kernel is None or equations.passage or train.has_losses or now.refuted:
        return None
    equations.enter(phase, known)
    unique = equations.solve_uniquely(now.t, now.q, now.v)
    if unique is None:
        return None
    solved, reaction = unique
    noise = _noise(equations, now, system, known[1], reaction)
    (low, high), torque = known[1], solved.holding_torque
    room = np.minimum(torque - low, high - torque) - RELEASE * noise
    if not min(room[phase.pinned].tolist()) > 0.0:
        return None
    phase.noise[:] = noise
    equations.settle(now.v, solved)
    return phase


def _noise(
    equations: StopEquations, now: PhaseStart, system: Forces, bounds: Array, reaction: Array
) -> Array:
    """Rounding of what holds the coordinates, see `Phase`, shape (nv,)."""
    noise = holding_noise(*system, bounds, reaction, equations.weight)
    if any(now.slope.tolist()):
        # What brakes that engage hold more, by the time that is one with this instant.
        noise += BOUND_INSTANT * now.slope * equations.train.static_brake
    return noise


def _decided(
    M: Array, f: Array, J: Array, gamma: Array, contacts: Contacts
) -> tuple[Array, NDArray[np.int64], Array]:
    """Torque of each contact, its side, and the reactions of the rows, see `Decision`."""
    # Where nothing can move away, whatever it takes.
    if len(J) == 0 and np.isinf(contacts.low).all() and np.isinf(contacts.high).all():
        k = len(contacts.columns)
        return np.zeros(k), np.zeros(k, dtype=np.int64), np.zeros(0)
    decision = solve_stick_slip(M, f, J, gamma, contacts)
    return decision.torque, decision.side, decision.multipliers


def _as_if_all_stuck(train: Drivetrain, now: PhaseStart) -> Phase:
    """The phase in which everything sticks that has no speed against ground or drive."""
    with_drive = follow = now.drives
    drive_sign, power, noise = np.zeros((3, len(now.v)))
    drives = any(now.drives.tolist())
    if drives:
        reference, rate = now.piece.v(now.t), now.piece.a(now.t)
        with_drive = now.drives & (now.v == reference)
        # A drive that stands still and shall stay so helps to hold, and so does one that presses
        # its joint against a stop; one that starts is followed.
        follow = with_drive & ((reference != 0.0) | (rate != 0.0) | now.piece.may_reverse)
        presses = (now.v == 0.0) & in_the_way(now.blocked, reference)
        moves_alone = now.drives & ~(with_drive | presses)
        drive_sign = np.where(moves_alone, np.sign(reference - now.v), 0.0)
    # Where nothing resists, direction and rest mean nothing: such a joint is free.
    resists = train.resists(now.ramp, now.slope)
    stuck = (now.v == 0.0) & (resists | (now.blocked > 0))
    if drives:
        stuck = (now.v == 0.0) & (resists | with_drive | (now.blocked > 0)) & ~follow
    direction = np.where(resists & ~stuck, np.sign(now.v), 0.0)
    if drives and any(follow.tolist()):
        direction[follow] = np.where(reference != 0.0, np.sign(reference), np.sign(rate))[follow]
    sliding = Sliding(
        direction,
        drive_sign,
        now.t,
        now.ramp,
        now.slope,
        now.drives,
        now.limited,
        now.shorted,
        now.slipped,
        train.travel(now.q),
    )
    mode = _locking(train, stuck)
    return Phase(sliding, stuck, follow, now.piece, power, now.blocked, mode, noise)


def _contacts(
    train: Drivetrain,
    phase: Phase,
    now: PhaseStart,
    slide: SlidingTorques,
    f: Array,
    ends: Array,
    broken: Mapping[int, int],
) -> tuple[Contacts, Array]:
    """Contacts of what may stick and of gears with losses; and the forces of everything else."""
    t, v, sliding = now.t, now.v, phase.sliding
    at = phase.pinned.nonzero()[0]
    fallen = [column for column in broken if phase.stuck[column]]
    if fallen:
        ends = ends.copy()
        ends[:, fallen] = _ends(train, phase, t, v, kind=0)[:, fallen]
    target = np.zeros(len(at))
    if any(phase.follow.tolist()):
        target = np.where(phase.follow, now.piece.a(t), 0.0)[at]
    joint_side, before = slide.torques(t, now.q, v)
    contacts = Contacts(at, target, *ends.take(at, 1))
    if train.has_losses:
        gears = ((train.lossy > 0) & ~phase.pinned).nonzero()[0]
        rotors = gear_contacts(train, gears, before, sliding.direction)
        pairs = zip(vars(contacts).values(), vars(rotors).values(), strict=True)
        contacts = Contacts(*map(np.concatenate, pairs))
        before[gears] = 0.0
    before[at] = 0.0
    return contacts, f + joint_side + train.through_gear(before, sliding.direction)


def _ends(train: Drivetrain, phase: Phase, t: float, v: Array, kind: int) -> Array:
    """What pins: least and largest torque, rotors behind lossy gears, shape (4, nv).

    The rotors are those that have to be accelerated once a joint moves up, or down.
    """
    bounds = pinned_bounds(train, phase, t, v, kind)
    if not train.has_losses:
        ends = np.zeros((4, len(v)))
        ends[0], ends[1] = bounds
        return ends
    rotors = (
        train.lossy * train.gain(np.sign(end), way)
        for end, way in zip(
            motor_bounds(train, phase, t, v, kind), breakaway_directions(phase), strict=True
        )
    )
    return np.array([*bounds, *rotors])


def _settled(
    train: Drivetrain,
    phase: Phase,
    now: PhaseStart,
    contacts: Contacts,
    decided: tuple[Array, NDArray[np.int64]],
    loose: Mapping[int, int],
    noise: Array,
) -> Phase:
    """The phase in which those that broke away slide."""
    torque, side = decided
    if not (loose or train.has_losses or any(side.tolist())):
        same = phase.piece, phase.gear_power_sign, phase.blocked, _locking(train, phase.stuck)
        return Phase(phase.sliding, phase.stuck, phase.follow, *same, noise)
    stuck, follow, gear_power = phase.stuck.copy(), phase.follow.copy(), np.zeros(len(noise))
    sliding = phase.sliding
    direction, drive_sign = sliding.direction.copy(), sliding.saturated_drive_sign.copy()
    # What holds a joint besides its gear has no part in the power that flows through that.
    joint_side = np.where(stuck, train.hold(now.t, sliding, 0, stuck)[1], 0.0)
    grips = train.grips(now.ramp, now.slope)
    for k, column in enumerate(contacts.columns.tolist()):
        if not (stuck[column] or follow[column]):
            # Beyond the kink the rotor takes more than all else gives.
            gear_power[column] = -int(side[k]) or now.reversing_gears.get(column, 1)
            continue
        way = 0 if column in now.refuted else int(side[k]) or loose.get(column, 0)
        if way == 0 and not (grips[column] or contacts.low[k] < contacts.high[k]):
            way = -1 if column in now.refuted else 1  # a gear with losses goes either way
        if way == 0:
            continue
        if now.drives[column] and drive_sign[column] == 0.0:
            drive_sign[column] = -way
        if stuck[column]:
            direction[column] = way
        stuck[column] = follow[column] = False
        if train.lossy[column] > 0:
            # A joint that starts to move is dragged by its load, or by a drive at its limit.
            output = torque[k] + way * joint_side[column]
            large = abs(output) > RELEASE * noise[column]
            gear_power[column] = np.sign(output) if large else -way
    sliding = replace(sliding, direction=direction, saturated_drive_sign=drive_sign)
    rest = phase.piece, gear_power, phase.blocked, _locking(train, stuck)
    return Phase(sliding, stuck, follow, *rest, noise)


def _locking(train: Drivetrain, stuck: Mask) -> Mode:
    """The mode in which some coordinates are locked."""
    return _mode(tuple(train.names[column] for column in stuck.nonzero()[0].tolist()))


@lru_cache
def _mode(locked: tuple[str, ...]) -> Mode:
    """The mode in which some joints are locked; few of them come again and again."""
    return Mode([Locked(name) for name in locked])


def _marked_redundant(phase: Phase, M: Array, J: Array) -> Phase:
    """The phase, knowing whether the torques of what is pinned are unique."""
    pinned, free = phase.pinned.nonzero()[0], (~phase.pinned).nonzero()[0]
    if len(J) == 0 or len(pinned) == 0:
        return phase
    if len(J) <= len(free) and Saddle(M[free[:, None], free], J[:, free]).rank == len(J):
        return phase  # nor without what is pinned do any depend on each other
    rows = np.vstack([J, np.eye(J.shape[1])[pinned]])
    independent = Saddle(M, J).rank + len(pinned)
    return replace(phase, redundant=Saddle(M, rows).rank < independent)
