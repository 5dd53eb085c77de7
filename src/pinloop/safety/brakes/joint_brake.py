"""Brake, gear, friction and drive of one joint, and the chain of signals before it: frozen values.

Numbers, their checks and their provenance. What they do to a robot is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ...boundary.arguments import public
from ...errors import BadValue
from .parameters import CHAIN_PARAMETERS, JOINT_PARAMETERS, FrozenTable, Parameter, Value

__all__ = ["Chain", "JointBrake", "Kind", "Side", "Source", "first_problem"]

Kind = Literal["friction", "tooth", "none"]
Side = Literal["motor", "joint"]
Source = Literal["measured", "datasheet", "robot", "assumed"]
"""Where a number comes from; "robot": from the robot's file."""

_OF_BEARINGS = ("coulomb", "breakaway", "stribeck_speed", "viscous")
"""Parameters that joints without a motor have, too."""


@public
@dataclass(frozen=True)
class JointBrake:
    """Brake, gear, friction and drive of one joint with one degree of freedom.

    SI units; on a sliding joint, N for N m, m for rad wherever a number belongs to the joint side.

    Args:
        kind: friction brake, tooth (or pin), or none. Numbers of another kind of brake are ignored.
        side: where the brake (and its torques) acts.
        gear_ratio: motor turns per joint turn [-] (rad/m on a sliding joint).
        efficiency: of the gear, in (0, 1]; the loss follows the direction of power.
        rotor_inertia: motor side [kg m^2]; None: the armature that the robot's file gives.
        dynamic_torque: brake torque while it slides, at its side [N m].
        static_torque: at standstill, at its side [N m]; None: as ``dynamic_torque``.
        tolerance: half width of the band of both torques, a fraction in [0, 1).
        band: where in the band this brake is: -1 low end, 0 nominal, +1 high end.
        delay: from the command to the first torque [s].
        rise: from the first to the full torque, linearly [s].
        coulomb: dry friction of gear and bearings while sliding, joint side [N m].
        breakaway: dry friction at standstill, joint side [N m]; None: as ``coulomb``.
        stribeck_speed: speed over which breakaway falls to coulomb, exp(-(v/vs)^2), joint side
            [rad/s].
        viscous: joint side [N m s/rad].
        short_circuit: viscous torque of the shorted motor, motor side [N m s/rad].
        drive_torque: largest torque of the drive, motor side [N m]; None: not limited.
        deceleration: in stops of category 1 and 2, joint side [rad/s^2].
        peak_gear_torque: what the gear may carry for a moment, joint side [N m].
        pitch: distance of the teeth, joint side [rad]; 0: a tooth engages at once.
        tooth_offset: joint coordinate of one tooth [rad].
        impact_time: duration over which an impulse is spread for the peak torque [s].
        sources: provenance per parameter that is given; what differs from its default and is not
            in it is assumed. ``band`` is a choice and has none.
        notes: remarks per parameter.
    """

    kind: Kind = "friction"
    side: Side = "motor"
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    rotor_inertia: float | None = None
    dynamic_torque: float = 0.0
    static_torque: float | None = None
    tolerance: float = 0.0
    band: float = 0.0
    delay: float = 0.0
    rise: float = 0.0
    coulomb: float = 0.0
    breakaway: float | None = None
    stribeck_speed: float = 0.0
    viscous: float = 0.0
    short_circuit: float = 0.0
    drive_torque: float | None = None
    deceleration: float | None = None
    peak_gear_torque: float | None = None
    pitch: float = 0.0
    tooth_offset: float = 0.0
    impact_time: float = 1e-3
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, JOINT_PARAMETERS)
        problem = first_problem({name: getattr(self, name) for name in JOINT_PARAMETERS})
        if problem is not None:
            name, sentence = problem
            raise BadValue(f"{name} of a brake is {getattr(self, name)!r}: {sentence}")

    @property
    def factor(self) -> float:
        """What both torques are multiplied with, by the place in the band."""
        return 1.0 + self.band * self.tolerance

    @property
    def static(self) -> float:
        """Torque at standstill, nominal, on the side of the brake [N m]."""
        return self.dynamic_torque if self.static_torque is None else self.static_torque

    @property
    def has_motor(self) -> bool:
        """Whether there is a brake, or any number of a brake, gear or motor."""
        plain = ("kind", "side", "tolerance", "band", *_OF_BEARINGS)
        return self.kind != "none" or any(
            getattr(self, name) != parameter.default
            for name, parameter in JOINT_PARAMETERS.items()
            if name not in plain
        )

    def uses(self, parameter: str) -> bool:
        """Whether a parameter has any effect with this kind of brake and these numbers."""
        if parameter in ("breakaway", "stribeck_speed"):
            return self.breakaway is not None and self.breakaway > self.coulomb
        if parameter == "band" and self.tolerance == 0:
            return False
        return self.kind in JOINT_PARAMETERS[parameter].kinds


@public
@dataclass(frozen=True)
class Chain:
    """From the signal to the command.

    Args:
        sensor: time of the sensor or button [s].
        controller: time of the controller [s].
        drive_off: from the command until the torque of the motors is gone [s].
        sources: provenance per parameter that is given; the others are assumed.
        notes: remarks per parameter.
    """

    sensor: float = 0.0
    controller: float = 0.0
    drive_off: float = 0.0
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, CHAIN_PARAMETERS)

    @property
    def command(self) -> float:
        """Time from the signal until brakes are commanded and power is cut [s]."""
        return self.sensor + self.controller


def first_problem(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """What two parameters of a joint contradict each other in.

    Args:
        values: parameters of a joint that are each in range; those left out have their default.

    Returns:
        The parameter to blame and a sentence, or None if nothing is wrong.
    """
    full = {name: parameter.default for name, parameter in JOINT_PARAMETERS.items()} | dict(values)
    static, dynamic = full["static_torque"], full["dynamic_torque"]
    if static is not None and static < dynamic:
        return "static_torque", (
            f"must be at least dynamic_torque ({dynamic:g}), what it slides with"
        )
    breakaway, coulomb = full["breakaway"], full["coulomb"]
    if breakaway is not None and breakaway < coulomb:
        return "breakaway", f"must be at least coulomb ({coulomb:g})"
    if breakaway is not None and breakaway > coulomb and full["stribeck_speed"] == 0:
        return "stribeck_speed", f"must be above 0, as breakaway ({breakaway:g}) is above coulomb"
    return None


def _freeze(record: JointBrake | Chain, parameters: Mapping[str, Parameter]) -> None:
    """Check every parameter by itself and keep plain floats and frozen tables."""
    of = "a brake" if isinstance(record, JointBrake) else "the chain"
    for name, parameter in parameters.items():
        given = getattr(record, name)
        try:
            value: Value = parameter.plain(given)
        except BadValue:
            value = float("nan")
        if not parameter.allows(value):
            number = "" if parameter.words else "a finite number"
            wanted = ", ".join(part for part in (number, parameter.range) if part)
            raise BadValue(f"{name} of {of} is {given!r}: it must be {wanted}")
        object.__setattr__(record, name, value)
    for key in ("sources", "notes"):
        table = dict(getattr(record, key))
        for name, text in table.items():
            if name not in parameters:
                raise BadValue(f"{key} of {of} names '{name}', which is no parameter")
            if not isinstance(text, str) or (key == "sources" and text not in get_args(Source)):
                words = ", ".join(get_args(Source)) if key == "sources" else "a text"
                raise BadValue(f"{key} of {of}: {name} is {text!r}, not one of: {words}")
        object.__setattr__(record, key, FrozenTable(table))
    # What is there has been given by somebody, who did not say where it comes from.
    changed = [n for n, parameter in parameters.items() if getattr(record, n) != parameter.default]
    sources = {**dict.fromkeys((*changed, *record.notes), "assumed"), **record.sources}
    sources.pop("band", None)
    object.__setattr__(record, "sources", FrozenTable(sources))
