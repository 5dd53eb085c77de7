"""A phase of a stop: who sticks, follows or slides, what pins the others, and what may happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...boundary.values import stored_fields
from ...dynamics.stick_slip import RELEASE, Contacts
from ...integrate import Coordinate, Guard
from ...simulation.modes import Mode
from .drivetrain import Drivetrain, Sliding, SlidingTorques
from .reference import Piece, rates_at


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of time in which no joint changes between sticking, following and sliding.

    Args:
        sliding: directions of motion, brakes, power.
        stuck: mask of the coordinates at rest that are held.
        follow: mask of the coordinates whose drive follows its reference.
        piece: the reference.
        gear_power_sign: sign of the torque before each gear with losses that turns a rotor, 0 for
            others.
        blocked: per coordinate the directions in which a tooth or stop blocks it: bit 1 up, bit 2
            down.
        mode: the stuck joints as locks.
        noise: torque below which what pins a coordinate is rounding [N m], shape (nv,).
        redundant: whether the torques of what is pinned are not unique.
    """

    sliding: Sliding
    stuck: Mask
    follow: Mask
    piece: Piece
    gear_power_sign: Array
    blocked: NDArray[np.int64]
    mode: Mode
    noise: Array
    redundant: bool = False

    __getstate__ = stored_fields

    @cached_property
    def pinned(self) -> Mask:
        """Mask of the coordinates whose acceleration is given."""
        return self.stuck | self.follow

    def pin_velocity(self, t: float, v: Array) -> Array:
        """Velocity with exactly that of the ground or the drive where one is pinned to it."""
        v = v.copy()
        v[self.stuck] = 0.0
        if any(self.follow.tolist()):
            v[self.follow] = self.piece.v(t)[self.follow]
        return v


def in_the_way(blocked: NDArray[np.int64], wanted: Array) -> Mask:
    """Mask of the coordinates that a tooth or stop blocks in the direction that is wanted.

    Args:
        blocked: directions that are blocked, see `Phase`.
        wanted: speeds, of which the signs count, shape (nv,).
    """
    return np.asarray(
        np.where(wanted > 0.0, blocked & 1, np.where(wanted < 0.0, blocked & 2, 0)) > 0
    )


def motor_bounds(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int = 1
) -> tuple[Array, Array]:
    """Least and largest torque before the gears of what pins a coordinate, shape (nv,).

    Args:
        train: brakes, gears, friction, drives.
        phase: what is pinned, and by what.
        t: time [s], or several of shape (k, 1).
        v: velocity, shape (nv,), or (k, nv).
        kind: 1 for what brakes hold at rest, 0 for what is left once they slide.
    """
    low, high, _ = _holding(train, phase, t, v, kind)
    return low, high


def pinned_bounds(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int = 1
) -> tuple[Array, Array]:
    """Least and largest torque at the joints of what pins a coordinate, shape (nv,).

    The least is what there is when the joint moves up, the largest when it moves down: the losses
    of a gear follow that. For the arguments see `motor_bounds`.
    """
    low, high, joint_side = _holding(train, phase, t, v, kind)
    if train.has_losses:
        up, down = breakaway_directions(phase)
        low, high = train.through_gear(low, up), train.through_gear(high, down)
    low, high = low - joint_side, high + joint_side
    if any(phase.blocked.tolist()):
        low[..., (phase.blocked & 1) > 0] = -np.inf
        high[..., (phase.blocked & 2) > 0] = np.inf
    return low, high


def _holding(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int
) -> tuple[Array, Array, Array]:
    """Least and largest torque before the gears, and what holds at the joints beside them."""
    sliding, follow = phase.sliding, phase.follow
    helping = phase.stuck & sliding.drives & (sliding.saturated_drive_sign == 0.0)
    hold, joint_side = train.hold(t, sliding, kind, helping)
    low, high = -hold, hold
    if any(sliding.saturated_drive_sign.tolist()):
        dragged = train.dragged(sliding)
        low, high = dragged + low, dragged + high
    if any(follow.tolist()):
        brake = train.motor_brake[0]
        engaged = sliding.engaged(t)
        if (fade := train.fade(sliding, follow)) is not None:
            engaged = engaged * fade.left(None, v)
        rest = train.shorted(v, sliding) - sliding.direction * engaged * brake
        if train.has_losses:
            rest = rest - train.lossy * rates_at(phase.piece, t)
        drive = train.drive(sliding)
        low, high = np.where(follow, rest - drive, low), np.where(follow, rest + drive, high)
        joint_side = np.where(follow, 0.0, joint_side)
    return low, high, joint_side


def breakaway_directions(phase: Phase) -> tuple[Array, Array]:
    """Direction of the motion if what pins a coordinate gives way upwards, and downwards."""
    up, direction = np.ones(len(phase.follow)), phase.sliding.direction
    return np.where(phase.follow, direction, up), np.where(phase.follow, direction, -up)


Known = tuple[SlidingTorques, Array]
"""Torques of what slides, and least and largest ones of what is pinned, (2, nv), at the start."""


class PhaseTables:
    """What follows from a phase alone.

    Attributes:
        free: coordinates that move.
        held: those that are pinned.
        rotors: those whose gear with losses turns a rotor.
        slack: by how much torques are beyond what ends the phase, see `violations`.
        follows: whether any follow their drives.
        slide: torques of what slides.
        linear: whether what pins is linear in time, whatever the speed.

    Args:
        train: brakes, gears, friction, drives.
        phase: the phase.
        armature: rotors in the mass matrix, shape (nv,).
        known: torques of what slides, and bounds of what is pinned at its start, if at hand.
    """

    def __init__(
        self, train: Drivetrain, phase: Phase, armature: Array, known: Known | None = None
    ) -> None:
        self._train, self._phase, pinned, n = train, phase, phase.pinned, len(armature)
        self.free, self.held = (~pinned).nonzero()[0], pinned.nonzero()[0]
        self.rotors = phase.gear_power_sign.nonzero()[0]
        self.follows, self._none = any(phase.follow.tolist()), np.zeros(n)
        slide, bounds = known or (train.sliding_torques(phase.sliding, phase.follow), None)
        torques, rotors = np.zeros((13, n)), self._none
        torques[:2], torques[4:6], torques[8:10] = slide.rest, slide.viscous, 1.0
        if slide.rate is not None:
            torques[2:4] = slide.rate
        torques[1:6:2, self.held] = 0.0  # what pins acts instead, whatever it takes
        if slide.extra is not None:
            torques[6], torques[7] = slide.extra, 1.0 / slide.shape
        rate = None if slide.rate is None else torques[2:4]
        parts = torques[:2], rate, torques[4:6], slide.extra, slide.shape
        brakes = slide.brakes
        if brakes is not None:
            brakes = brakes.copy()
            brakes[:, 1, self.held] = 0.0
        self.slide = SlidingTorques(slide.start, *parts, slide.fade, brakes)
        # What holds grows with its brake, and so linearly in time; not so if drives follow, or pull
        # against a brake, through gears with losses.
        self.linear = slide.fade is None or not self.follows
        if train.has_losses:
            drags = any(phase.sliding.saturated_drive_sign[self.held].tolist())
            self.linear &= not (self.follows or drags)
            up, torques[9] = self.gain(np.ones(n)), self.gain(-np.ones(n))
            torques[8] = up
            torques[10] = rotors = np.where(phase.gear_power_sign != 0.0, up * train.lossy, 0.0)
        if self.follows:
            torques[11], torques[12] = (
                np.where(phase.follow, x(slide.start), 0.0) for x in (phase.piece.v, phase.piece.a)
            )
        self._armature, self._torques = armature + rotors if len(self.rotors) else armature, torques
        self._finite: NDArray[np.bool_] | None = None
        self._rate: Array | None = None
        self._table = self._bounds(bounds) if self.linear else np.zeros((0, 4))
        self.slack = np.zeros(2 * len(self.held) + len(self.rotors))
        if any(phase.noise.tolist()):
            self.settle()

    @property
    def in_kernel(self) -> tuple[list[int], Array, Array, float, Array]:
        """What is pinned, rotors in the mass matrix, torques, start, ends: see `Torques` there."""
        ends = self._table if self._finite is None else self._table[self._finite]
        return self.held.tolist(), self._armature, self._torques, self.slide.start, ends

    def settle(self) -> None:
        """Take the noise of the phase, where it was not known yet."""
        noise = self._phase.noise
        held = noise[self.held]
        self.slack = RELEASE * np.concatenate([held, held, noise[self.rotors]])
        if self.linear:
            self._table[:, 2] -= self.slack

    @cached_property
    def free_free(self) -> NDArray[np.intp]:
        """Places of the mass matrix of what moves."""
        return self.free[:, None] * len(self._none) + self.free

    @cached_property
    def free_held(self) -> NDArray[np.intp]:
        """Places of what is between that and what is pinned."""
        return self.free[:, None] * len(self._none) + self.held

    def given(self, t: float) -> Array:
        """Accelerations of what is pinned, shape (nv,)."""
        if not self.follows:
            return self._none
        return np.where(self._phase.follow, self._phase.piece.a(t), 0.0)

    def gain(self, before: Array) -> Array:
        """Torque behind the gears over that before them."""
        power = self._phase.gear_power_sign
        sign = np.where(power != 0.0, power, np.sign(before))
        return self._train.gain(sign, self._phase.sliding.direction)

    def bounds(self, t: float | Array, v: Array) -> tuple[Array, Array]:
        """See `pinned_bounds`."""
        return pinned_bounds(self._train, self._phase, t, v)

    def _bounds(self, bounds: Array | None) -> Array:
        """What ends the phase as the kernel has it: places in a solution, factors, and limits.

        The limits are what `violations` are of zero torques at the start, and their rates.
        """
        held, rotors, k, n = self.held, self.rotors, len(self.held), len(self._none)
        low, high = self.bounds(self.slide.start, self._none) if bounds is None else bounds
        table = np.zeros((2 * k + len(rotors), 4))
        table[:k, 0] = table[k : 2 * k, 0] = 3 * n + held
        table[:k, 1], table[k : 2 * k, 1] = -1.0, 1.0
        table[:k, 2], table[k : 2 * k, 2] = low[held], -high[held]
        if len(rotors):
            table[2 * k :, 0] = 2 * n + rotors
            table[2 * k :, 1] = -self._phase.gear_power_sign[rotors]
        now = table[:, 2]
        finite = np.isfinite(now)
        if any(self._phase.sliding.slope[held].tolist()):
            low, high = self.bounds(self.slide.start + 1.0, self._none)
            later = np.concatenate([low[held], -high[held], self._none[rotors]])
            self._rate = np.subtract(later, now, out=table[:, 3], where=finite)
        self._now = now
        if np.count_nonzero(finite) < len(finite):
            self._finite = finite
        return table

    def violations(self, t: float | Array, v: Array, torque: Array, output: Array) -> Array:
        """How far torques are beyond what ends the phase, at one instant or several [N m].

        Those of what is pinned beyond their lower bounds, then those beyond their upper ones, then
        those behind gears that turn a rotor beyond zero.
        """
        held, rotors = torque[..., self.held], output[..., self.rotors]
        sign = self._phase.gear_power_sign[self.rotors]
        parts = np.concatenate([-held, held, -sign * rotors], axis=-1)
        if not self.linear:
            low, high = (limit[..., self.held] for limit in self.bounds(t, v))
            return np.asarray(parts + np.concatenate([low, -high, 0.0 * rotors], -1) - self.slack)
        return np.asarray(parts + self._now + self.growth(t))

    def growth(self, t: float | Array) -> Array | float:
        """What of that grows evenly with time, from the start of the phase on [N m]."""
        if self._rate is None or not self.linear:
            return 0.0
        return self._rate * (t - self.slide.start)


def gear_contacts(
    train: Drivetrain, columns: NDArray[np.intp], before: Array, direction: Array
) -> Contacts:
    """Gears with losses as contacts: torque zero at a kink, another inertia on each side of it.

    The torque ``S = S0 - I a`` before the gear changes its sign at ``a = S0 / I``.

    Args:
        train: brakes, gears, friction, drives.
        columns: the coordinates, which all move.
        before: torque before the gears without that of the rotors, shape (nv,).
        direction: sign of the motion, shape (nv,).
    """
    inertia, none = train.lossy, np.zeros(len(columns))
    return Contacts(
        columns,
        before[columns] / inertia[columns],
        none,
        none,
        (inertia * train.gain(-np.ones_like(direction), direction))[columns],
        (inertia * train.gain(np.ones_like(direction), direction))[columns],
    )


@dataclass(frozen=True, eq=False)
class DriveSpeed:
    """The speed of a drive over time.

    Args:
        piece: its reference.
        column: velocity coordinate.
    """

    piece: Piece
    column: int

    def __call__(self, t: float) -> float:
        """The speed at a time."""
        return float(self.piece.v(t)[self.column])


@dataclass(frozen=True, eq=False)
class Watched:
    """A coordinate that is watched: ``sign (x - level(t))`` is positive until something happens.

    Args:
        column: velocity coordinate.
        q_index: its coordinate in q, if the angle is watched; None for the speed.
        sign: see above.
        level: value at which something happens, or a function of time.
        name: what happens then.
    """

    column: int
    q_index: int | None
    sign: float
    level: float | DriveSpeed
    name: str

    def at(self, t: float) -> float:
        """The level at a time."""
        return self.level if isinstance(self.level, float) else self.level(t)

    def guard(self, band: float) -> Guard[PhaseEvent]:
        """Where it happens; within the band, a speed or an angle, it starts at its level."""
        value: Callable[[float, Array, Array], float]
        if isinstance(self.level, float):
            value = Coordinate(self.column, self.q_index, self.sign, self.level)
        else:

            def value(t: float, q: Array, v: Array) -> float:
                return float(self.sign * (v[self.column] - self.at(t)))

        return Guard(self, value, -1, one_sided=True, slack=band, enough=1e-3 * band)


PhaseEvent = Watched | Literal["bound passed", "time", "touch"]
"""What ends a phase: a coordinate at its level; what pins another, or turns a gear, at its bound;
instants of the plan; end stops at which joints start."""


def watched_joints(phase: Phase, train: Drivetrain, band: float) -> list[Watched]:
    """What may happen to the joints in a phase besides coming loose or hitting a tooth.

    Args:
        phase: the phase.
        train: names of the joints, and which have friction or losses.
        band: speeds that count as zero.
    """
    watched, sliding, names = [], phase.sliding, train.names
    ways, drives = sliding.direction.tolist(), sliding.saturated_drive_sign.tolist()
    for column in (~phase.pinned).nonzero()[0].tolist():
        if way := ways[column]:
            watched.append(_coming_to_rest(column, way, names[column]))
        if drive_sign := drives[column]:
            level, name = DriveSpeed(phase.piece, column), f"{names[column]} meets its drive"
            watched.append(Watched(column, None, -drive_sign, level, name))
    if not any(phase.follow.tolist()):
        return watched
    # Friction and losses of what follows its drive turn round with it.
    for column in (phase.follow & phase.piece.may_reverse & train.dry).nonzero()[0].tolist():
        for way in (-1.0, 1.0):
            if ways[column] != -way:
                name = f"{names[column]} turns round"
                watched.append(Watched(column, None, way, -2.0 * way * band, name))
    return watched


@lru_cache(maxsize=1024)
def _coming_to_rest(column: int, way: float, joint: str) -> Watched:
    """What many phases watch."""
    return Watched(column, None, way, 0.0, f"{joint} comes to rest")
