"""Torques of brakes, gears, friction and drives, as functions of time and speed.

They are over all velocity coordinates; a joint without entry has the friction and the damping of
its file. Which joints stick is decided elsewhere: here it is given.

Between motor and joint is a gear of ratio N and efficiency eta. What the motor side gives,
``S = N (torques of brake and drive) - N^2 (rotor inertia) a``, reaches the joint as

    f(S) = eta S     where the power flows to the joint (S v > 0),
    f(S) = S / eta   where it flows to the motor (S v < 0).

Without loss (eta = 1) the rotor is part of the mass matrix, as its armature.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...tolerances import COMPLEX_STEP, NO_ACCELERATION
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import JointBrake
from ..brakes.laws import DriveTorque
from .fading import Fading, PhaseFade

STEP: Any = 1j * COMPLEX_STEP
"""By what something is larger that is differentiated: all laws here are analytic in a phase."""

_DAMPING = "viscous friction", "short circuit"
_WITHOUT_BRAKE = dict.fromkeys(("extra", "short", "delay", "rise", "pitch", "tooth"), 0.0)
_WITHOUT_BRAKE |= {"efficiency": 1.0, "pull": 1.0, "shape": np.inf, "limit": np.inf}
"""What is not in the file of a robot, and what joints without brake have of it."""


@dataclass(frozen=True, eq=False)
class Sliding:
    """What stays the same while no joint changes between sticking and sliding.

    Arrays may have leading axes, for many instants at once.

    Args:
        direction: sign of the motion of each coordinate against the ground, 0 at rest.
        saturated_drive_sign: sign of the torque of a drive that cannot follow, 0 otherwise.
        start: time at which it begins [s].
        ramp: part of the brake torque at ``start``, 0 to 1, shape (nv,).
        slope: its rate [1/s].
        drives: mask of the coordinates whose drive has power.
        limited: whether the torque of the drives is; before the command they do whatever it takes.
        shorted: whether the motors are shorted.
        slipped: by how much brakes have slipped until ``start`` [rad, m], as far as it heats them.
        place: travel of the joints at ``start`` [rad, m].
    """

    direction: Array
    saturated_drive_sign: Array
    start: float | Array
    ramp: Array
    slope: Array
    drives: NDArray[np.bool_]
    limited: bool | NDArray[np.bool_]
    shorted: bool | NDArray[np.bool_]
    slipped: Array
    place: Array

    def engaged(self, t: Array | float) -> Array:
        """Part of the brake torque at time ``t``."""
        return np.asarray(self.ramp + self.slope * (t - self.start))

    @property
    def heating(self) -> Array:
        """Part of their travel by which joints heat their brakes, with the sign of the motion.

        While torques rise, it is half of it.
        """
        return np.asarray(np.where(self.slope.real > 0.0, 0.5, self.ramp.real) * self.direction)

    def at(self, rows: NDArray[np.intp]) -> Sliding:
        """Some of many instants."""
        return Sliding(*(np.asarray(getattr(self, field.name))[rows] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class SlidingTorques:
    """Torques while it is settled what slides and in which direction: functions of time and speed.

    Arrays of shape (2, nv) hold what acts at the joints, and through the gears, before losses.

    Args:
        start: time at which it begins to hold [s].
        rest: torques at ``start``, at rest [N m], shape (2, nv).
        rate: their rates [N m/s], shape (2, nv); None if all stay.
        viscous: viscous coefficients, of shorted motors those through the gears, shape (2, nv).
        extra: what dry friction is larger at rest than in motion, shape (nv,); None if nowhere.
        shape: speed over which that vanishes, shape (nv,).
        fade: what is left of the torques of brakes; None if they do not fall.
        brakes: these at ``start``, and their rates, shape (2, 2, nv), if they fall.
    """

    start: float
    rest: Array
    rate: Array | None
    viscous: Array
    extra: Array | None
    shape: Array
    fade: PhaseFade | None = None
    brakes: Array | None = None

    def torques(self, t: float | complex, q: Array, v: Array) -> tuple[Array, Array]:
        """Torque of what acts at the joints, and of what acts through the gears [N m]."""
        torques = self.rest - self.viscous * v
        if self.rate is not None:
            torques = torques + self.rate * (t - self.start)
        if self.fade is not None:
            assert self.brakes is not None
            whole = self.brakes[0] + self.brakes[1] * (t - self.start)
            torques = torques + whole * (self.fade.left(q, v) - 1.0)
        joint, motor = torques
        if self.extra is not None:
            joint = joint - self.extra * np.exp(-((v / self.shape) ** 2))
        return joint, motor

    def slopes(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Derivatives of both by the travel, the speed, and time, shape (2, nv) each."""
        by_travel, by_speed, by_time = (
            imaginary(np.array(self.torques(*at)))
            for at in ((t, q + STEP, v), (t, q, v + STEP), (t + STEP, q, v))
        )
        return by_travel, by_speed, by_time


class Drivetrain:
    """Brakes, gears, friction and drives of a robot.

    Args:
        robot: the mechanism.
        brakes: the brakes, of joints with one degree of freedom.

    Attributes:
        names: joint of each velocity coordinate.
        columns: velocity coordinate by name of the joints with an entry.
        single: mask of the coordinates of joints with one degree of freedom, shape (nv,).
        reflected: inertia of the rotors at the joints [kg m^2], shape (nv,).
        lossy: inertia of the rotors behind gears with losses [kg m^2], shape (nv,); not in the
            mass matrix.
        efficiency: of the gears, shape (nv,).
        has_losses: whether any gear has losses.
        has_peaks: whether dry friction is larger at rest than in motion anywhere (Stribeck).
        delay: from the command to the first torque [s], shape (nv,).
        rise: from the first to the full torque [s], shape (nv,).
        limit: largest torque of the drive at the joint, before losses [N m], shape (nv,).
        pull: what of it the drive gives where it cannot follow, or follows no ramp, shape (nv,).
        teeth: mask of the coordinates with a tooth brake.
        dry: mask of the coordinates that may stick, or whose losses depend on the direction.
        static_brake: torque of the brakes at rest, behind their gears [N m], shape (nv,).
        fading: how the torques of brakes fall.
        fades: whether any does.
    """

    def __init__(self, robot: Mechanism, brakes: Brakes) -> None:
        self.robot, self.brakes = robot, brakes
        self.columns = {name: robot.coordinates(name).v.start for name in brakes.joints}
        self.names = [name for name in robot.joints for _ in range(robot.coordinates(name).nv)]
        nv = robot.nv
        self.single = np.array([robot.coordinates(name).nv == 1 for name in self.names], dtype=bool)
        own = {name: np.full(nv, number) for name, number in _WITHOUT_BRAKE.items()}
        own["coulomb"] = np.where(self.single, robot.model.upperDryFrictionLimit, 0.0)
        own["viscous"] = np.array(robot.model.damping)
        own["reflected"] = np.array(robot.model.armature)
        own["brakes"], own["fading"] = np.zeros((2, 2, nv)), np.zeros((4, nv))
        own["fading"][1] = 1.0
        self.teeth, self._places = np.zeros(nv, dtype=bool), np.zeros(nv, np.intp)
        for name, brake in brakes.joints.items():
            _require_angle(robot, name, brake)
            i = self.columns[name]
            for key, number in drive_numbers(brake).items():
                own[key][..., i] = number
            self.teeth[i] = brake.kind == "tooth"
            if robot.coordinates(name).nv == 1:
                self._places[i] = robot.coordinates(name).q.start
        self._take(own)
        self.has_losses = bool((self.efficiency < 1.0).any())
        self.has_peaks = bool(self._extra.any())
        self._braked = self.motor_brake[1] + self.joint_brake[1] > 0.0
        self._rubs, self._loses = self._breakaway > 0.0, self.efficiency < 1.0
        self.dry = self._braked | self._rubs | self._loses
        self.has_brake = self._braked | self.teeth
        self.static_brake = self.motor_brake[1] / self.efficiency + self.joint_brake[1]
        self.fades = bool(self.fading.some.any())

    def _take(self, own: dict[str, Array]) -> None:
        """Take the numbers of all joints."""
        self._numbers = own
        self._coulomb, self._extra, self._shape = own["coulomb"], own["extra"], own["shape"]
        self._viscous, self._short, self.reflected = own["viscous"], own["short"], own["reflected"]
        self.efficiency, self.limit, self.pull = own["efficiency"], own["limit"], own["pull"]
        self.delay, self.rise = own["delay"], own["rise"]
        self.pitch, self.tooth = own["pitch"], own["tooth"]
        self.joint_brake, self.motor_brake = own["brakes"]
        share, speed, rate, begun = own["fading"]
        self.fading = Fading(share, speed, rate, begun, self._places)
        self.lossy = np.where(self.efficiency.real < 1.0, self.reflected, 0.0)
        self._sliding_brakes = -np.array([self.joint_brake[0], self.motor_brake[0]])
        self._dampings = np.array([self._viscous, self._short])
        self._breakaway = self._coulomb + self._extra

    def beside(self, changes: dict[str, Array]) -> Drivetrain:
        """The same with numbers that are larger by `STEP`: by k changes of each, (..., k, nv)."""
        train, old = copy(self), self._numbers
        train._take({x: old[x][..., None, :] + STEP * changes.get(x, 0.0) for x in old})
        return train

    def friction(self, v: Array) -> Array:
        """Size of the dry friction at a speed (Stribeck), [N m]."""
        if not self.has_peaks:
            return self._coulomb
        return np.asarray(self._coulomb + self._extra * np.exp(-((v / self._shape) ** 2)))

    def viscous(self, v: Array) -> Array:
        """Viscous torque at the joint [N m]."""
        return -self._viscous * v

    def shorted(self, v: Array, sliding: Sliding) -> Array:
        """Torque of shorted motors, at the joint and before losses [N m]."""
        return np.asarray(-self._short * v * sliding.shorted)

    def dampings(self, sliding: Sliding) -> dict[str, Array]:
        """What damps the joints linearly, by name, shape (nv, nv)."""
        parts = self._viscous, self._short * sliding.shorted
        return {
            name: np.diag(part) for name, part in zip(_DAMPING, parts, strict=True) if part.any()
        }

    def with_rotors(self, M: Array) -> Array:
        """A mass matrix with the rotors behind gears with losses, too."""
        return M + np.diag(self.lossy) if self.has_losses else M

    def travel(self, q: Array) -> Array:
        """Travel of the joints that heats brakes [rad, m], shape (..., nv); zero if none fades."""
        return (
            q[..., self.fading.places] if self.fades else np.zeros((*q.shape[:-1], len(self.dry)))
        )

    def fade(self, sliding: Sliding, follow: NDArray[np.bool_]) -> PhaseFade | None:
        """What is left of the torques of brakes; None if nothing that slides has brakes that fade.

        What follows its drive has the heat that it had when the phase began: its torque is no force
        of the motion, and that time is short.
        """
        if not self.fades or not (sliding.heating * self.fading.some).any():
            return None
        heating = np.where(follow, 0.0, sliding.heating)
        return PhaseFade(self.fading, sliding.slipped, sliding.place, heating)

    def sliding_brake(
        self, t: float | Array, q: Array, v: Array, sliding: Sliding, follow: NDArray[np.bool_]
    ) -> Array:
        """Torques of the brakes that slide, at joints and before gears, shape (2, ..., nv)."""
        fade, part = self.fade(sliding, follow), sliding.engaged(t)
        part = part if fade is None else part * fade.left(q, v)
        return np.array([part * self.joint_brake[0], part * self.motor_brake[0]])

    def drive(self, sliding: Sliding) -> Array:
        """Largest torque of the drives at the joints, before losses [N m]."""
        return np.where(sliding.limited, self.limit, np.inf)

    def grips(self, ramp: Array, slope: Array) -> NDArray[np.bool_]:
        """Mask of the coordinates that a brake or dry friction holds at rest, now or at once.

        ``ramp``: part of the brake torque, shape (nv,). ``slope``: its rate [1/s].
        """
        return np.asarray(((ramp + slope > 0.0) & self._braked) | self._rubs)

    def resists(self, ramp: Array, slope: Array) -> NDArray[np.bool_]:
        """Mask of the coordinates for which rest means anything: those, and gears with losses."""
        grips = self.grips(ramp, slope)
        return grips | self._loses if self.has_losses else grips

    def dragged(self, sliding: Sliding) -> Array:
        """Torque of drives that cannot follow, at the joints and before losses [N m]."""
        sign = sliding.saturated_drive_sign
        return np.asarray(sign * self.pull * np.where(sign == 0.0, 0.0, self.drive(sliding)))

    def sliding_torques(self, sliding: Sliding, follow: NDArray[np.bool_]) -> SlidingTorques:
        """The torques of everything that slides, as long as that stays so."""
        direction, fade = sliding.direction, self.fade(sliding, follow)
        brakes = direction * self._sliding_brakes
        rest = sliding.ramp * brakes
        rest[0] -= direction * self._coulomb
        if any(sliding.saturated_drive_sign.tolist()):
            rest[1] += self.dragged(sliding)
        viscous = self._dampings.copy()
        viscous[1] *= sliding.shorted
        return SlidingTorques(
            start=float(sliding.start),
            rest=rest,
            rate=sliding.slope * brakes if any(sliding.slope.tolist()) else None,
            viscous=viscous,
            extra=direction * self._extra if self.has_peaks else None,
            shape=self._shape,
            fade=fade,
            brakes=None
            if fade is None
            else np.array([sliding.ramp, sliding.slope])[:, None] * brakes,
        )

    def through_gear(self, S: Array, direction: Array) -> Array:
        """What of a torque before the gears arrives at the joints, shape (nv,)."""
        if not self.has_losses:
            return S
        return np.asarray(S * self.gain(np.sign(S.real), direction))

    def before_gear(self, f: Array, direction: Array) -> Array:
        """What has to act before the gears for a torque at the joints, shape (nv,)."""
        # f(S) has the sign of S: the direction of power is the same on both sides of the gear.
        return np.asarray(f / self.gain(np.sign(f.real), direction))

    def driven(self, brake: Array, sliding: Sliding, before: Array, a: Array) -> Array:
        """Torque of the motors, shorted or not, for one before the gears, shape (nv,) [N m].

        ``brake``: that of the brakes before the gears, see `sliding_brake`.
        """
        return np.asarray(before + sliding.direction * brake + self.lossy * a)

    def gain(self, power: Array, direction: Array) -> Array:
        """Torque behind the gears over that before them.

        ``power``: sign of the torque before the gears, shape (nv,). ``direction``: sign of the
        motion, shape (nv,).
        """
        return np.where(power * direction > 0, self.efficiency, 1.0 / self.efficiency)

    def longest_step(self, v: Array, a: Array) -> float:
        """Step that does not pass over the peak of Stribeck's friction unseen [s].

        Speeds far above the peak may fall to it in one step, those within it by half its width.
        """
        if not self.has_peaks:
            return np.inf
        change = np.maximum(np.abs(v) - 4.0 * self._shape, 0.5 * self._shape)
        return float((change / np.maximum(np.abs(a), NO_ACCELERATION)).min())

    def resting_brake(self, t: Array | float, sliding: Sliding, kind: int) -> tuple[Array, Array]:
        """Torques of brakes of joints at rest, before gears and at the joints, see `hold`."""
        part = sliding.engaged(t)
        if self.fades:
            part = part * self.fading.at_rest(sliding.slipped)
        return part * self.motor_brake[kind], part * self.joint_brake[kind]

    def hold(
        self, t: Array | float, sliding: Sliding, kind: int, powered: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """Torques up to which a joint at rest is held: before its gear, and at the joint [N m].

        ``kind``: 1 for what holds at rest, 0 for what is left once it slides. ``powered``: per
        coordinate, whether its drive helps to hold.
        """
        motor, joint = self.resting_brake(t, sliding, kind)
        if np.count_nonzero(powered):
            motor = motor + np.where(powered, self.drive(sliding), 0.0)
        return motor, joint + self._breakaway


def imaginary(values: Array) -> Array:
    """The derivatives of what was evaluated beside by `STEP`."""
    return np.asarray(values.imag / COMPLEX_STEP)


def drive_numbers(brake: JointBrake) -> dict[str, Any]:
    """What a joint has in a drive train by its brake; what is not in it is as without one.

    Among it are torques of the brake at the joint and before the gear, sliding and at rest, and how
    they fall: share, speed, rate, heat at the begin. Numbers may be complex, see `TrainChanges`.
    """
    ratio, on_motor = brake.gear_ratio, brake.side == "motor"
    numbers: dict[str, Any] = {
        "coulomb": brake.coulomb,
        "viscous": brake.viscous,
        "efficiency": brake.efficiency,
        "short": ratio**2 * brake.short_circuit,
    }
    if brake.breakaway is not None and brake.breakaway.real > brake.coulomb.real:
        numbers |= {"extra": brake.breakaway - brake.coulomb, "shape": brake.stribeck_speed}
    if brake.rotor_inertia is not None:
        numbers["reflected"] = ratio**2 * brake.rotor_inertia
    if brake.drive_torque is not None:
        numbers["limit"] = ratio * brake.drive_torque
    if brake.law == DriveTorque.name:
        numbers["pull"] = brake.torque_share
    if brake.kind == "tooth":
        numbers |= {"delay": brake.delay, "pitch": brake.pitch, "tooth": brake.tooth_offset}
    if brake.kind == "friction":
        lever = ratio if on_motor else 1.0
        torques = tuple(lever * brake.factor * x for x in (brake.dynamic_torque, brake.static))
        fall = [0.0, 1.0, 0.0, 0.0]
        if brake.fade_share.real > 0.0:
            fall[:2] = brake.fade_share, brake.fade_speed / lever
        if brake.fade_heat is not None:
            fall[2:] = torques[0] / brake.fade_heat, brake.start_heat / brake.fade_heat
        numbers |= {"delay": brake.delay, "rise": brake.rise, "fading": fall}
        numbers["brakes"] = ((0.0, 0.0), torques) if on_motor else (torques, (0.0, 0.0))
    return numbers


def _require_angle(robot: Mechanism, name: str, brake: JointBrake) -> None:
    """Raise if teeth with play are on a joint whose angle does not count turns."""
    if brake.kind == "tooth" and brake.pitch > 0 and robot.coordinates(name).nq != 1:
        raise BadValue(
            f"the tooth brake of joint '{name}' needs an angle that counts turns; the joint is "
            "stored as cosine and sine: give it pitch 0, or load it as 'continuous'"
        )
