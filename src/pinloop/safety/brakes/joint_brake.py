"""Brake, gear, friction and drive of one joint, and the chain of signals before it: frozen values.

Each parameter is written down once, on its class: unit, range, default, and what it means. Files,
schema, documentation and checks are made from that. What it does to a robot is elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import numpy as np

from ...boundary.arguments import public
from ...boundary.marks import NotNegative, Positive, Range, parted
from ...boundary.schema import keys_of
from ...errors import BadValue, UnknownName
from .laws import LAWS, LawName, Share

Kind = Literal["friction", "tooth", "none"]
Side = Literal["motor", "joint"]
Source = Literal["measured", "published", "fitted", "guess"]
"""Where a number comes from: the machine; whoever made it, or the robot's file; a fit to stops;
nobody."""
Value = float | str | None
"""A number, a word, or nothing."""
Item = TypeVar("Item")


class FrozenTable(Mapping[str, Item], Generic[Item]):
    """A mapping from names that cannot be changed; it can be hashed and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Item]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class Parameter:
    """A mark of a field: it is a parameter of the brakes file.

    Args:
        unit: unit on a joint that turns.
        sliding: unit on a joint that slides, where it is another one.
        where: where it is measured: at the joint, at the motor, or on the side of the brake.
        otherwise: what None means; empty if it must be a number.
        kinds: kinds of brakes that it has an effect with.
        meaning: what it is; this and the rest is known from the field.
    """

    unit: str = ""
    sliding: str = ""
    where: Literal["joint", "motor", "brake"] = "joint"
    otherwise: str = ""
    kinds: tuple[Kind, ...] = get_args(Kind)
    meaning: str = ""
    default: Value = None
    words: tuple[str, ...] = ()
    limits: Range = Range()  # noqa: RUF009 (frozen)

    def unit_at(self, *, sliding: bool, side: str) -> str:
        """Unit on a joint that slides or turns and whose brake is on ``side``."""
        at_joint = self.where == "joint" or (self.where == "brake" and side == "joint")
        return self.sliding if sliding and at_joint and self.sliding else self.unit

    @property
    def range(self) -> str:
        """The values allowed, in words; empty for any number."""
        return " or ".join(self.words) or str(self.limits)

    def checked(self, value: object, of: str, name: str) -> Value:
        """``value`` as a float, a text or None; a `BadValue` if it is none, or out of range."""
        plain = _plain(value)
        if plain is None and value is None and self.otherwise:
            return None
        if isinstance(plain, str) and plain in self.words:
            return plain
        if isinstance(plain, float) and not self.words and self.limits.holds(plain):
            return plain
        wanted = self.range if self.words else f"a finite number, {self.range}".rstrip(", ")
        raise BadValue(f"{name} of {of} is {value!r}: it must be {wanted}")


def _plain(value: object) -> Value:
    """A finite number or a text; None for all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, TypeError):
            return None
        return number if math.isfinite(number) else None
    return None


_TORQUE = Parameter("N m", "N")
_AT_MOTOR = Parameter("N m", where="motor")
_AT_BRAKE = Parameter("N m", "N", where="brake", kinds=("friction",))
_ANGLE = Parameter("rad", "m", kinds=("tooth",))
_TIME = Parameter("s")
_FRICTION = Parameter(kinds=("friction",))
_HEAT = Parameter("J", otherwise="unknown", kinds=("friction",))
_FADES = replace(_HEAT, otherwise="does not fall with heat")

_OF_BEARINGS = ("coulomb", "breakaway", "stribeck_speed", "viscous")
"""Parameters that joints without a motor have, too."""


@public
@dataclass(frozen=True)
class JointBrake:
    """Brake, gear, friction and drive of one joint with one degree of freedom.

    SI units; on a sliding joint, N for N m and m for rad wherever a number belongs to the joint
    side: `JOINT_PARAMETERS` has the units. Numbers of another kind of brake are ignored.

    Args:
        kind: what stops the joint: a friction brake; a tooth or pin that engages in a gap; none.
        side: where the brake acts: on the motor shaft or directly on the joint.
        gear_ratio: motor turns per joint turn (on a sliding joint: motor angle per joint travel).
        efficiency: efficiency of the gear; the loss follows the direction of power.
        rotor_inertia: inertia of rotor, brake disc and gear, motor side.
        dynamic_torque: torque of the brake while it slides, on the side of the brake.
        static_torque: torque that the brake holds at standstill, on the side of the brake.
        tolerance: half width of the band of both torques, as a fraction of them.
        band: where in the band this brake is: -1 low end, 0 nominal, +1 high end.
        wear: share of both torques that wear, dirt and heat may have taken, at most; no stop is
            computed with it, but bands of stops are.
        fade_share: share of dynamic_torque that is lost at very high speed.
        fade_speed: speed at which half of that share is lost, on the side of the brake.
        fade_heat: friction energy that leaves half of both torques; energy is reckoned as
            dynamic_torque times the angle slipped.
        start_heat: friction energy that is still in the brake at the signal.
        delay: time from the command to the first torque of the brake.
        rise: time from the first to the full torque, which grows linearly.
        coulomb: dry friction of gear and bearings while they slide, joint side.
        breakaway: dry friction of gear and bearings at standstill (Stribeck), joint side.
        stribeck_speed: speed v_s over which breakaway falls to coulomb, as exp(-(v/v_s)^2), joint
            side.
        viscous: viscous friction of gear and bearings, joint side.
        short_circuit: viscous torque of the motor when its terminals are shorted as the power goes,
            motor side.
        drive_torque: largest torque of the drive in a controlled stop (categories 1 and 2), motor
            side.
        law: how the drive brings the joint to rest in a controlled stop (categories 1 and 2).
        deceleration: deceleration of the joint in a controlled stop (categories 1 and 2), joint
            side.
        ramp_time: time of a controlled stop from any speed, of the laws in constant time.
        jerk: largest rate of the acceleration in a controlled stop with limited jerk, joint side.
        time_constant: time constant of an exponential controlled stop.
        torque_share: share of drive_torque that the drive brakes with, where it follows no ramp.
        peak_gear_torque: torque that the gear may carry for a moment, joint side.
        energy_per_stop: friction energy that the brake may take in one stop.
        energy_per_hour: friction energy that the brake may take in an hour.
        energy_in_life: friction energy that the brake may take before it is worn.
        pitch: tooth brake: distance of the teeth, joint side; 0: it engages at once.
        tooth_offset: tooth brake: joint coordinate of one tooth.
        impact_time: duration over which the impulse of an engagement is spread for its peak torque.
        sources: provenance per parameter that is given; what differs from its default and is not
            in it is a guess. ``band`` is a choice and has none.
        notes: remarks per parameter.
        spreads: standard deviation per parameter for which it is known, in its unit; that of
            ``dynamic_torque`` is of both torques, by the same part.
    """

    kind: Annotated[Kind, Parameter()] = "friction"
    side: Annotated[Side, _FRICTION] = "motor"
    gear_ratio: Annotated[Positive, Parameter(sliding="rad/m")] = 1.0
    efficiency: Annotated[float, Range(above=0, most=1), Parameter()] = 1.0
    rotor_inertia: Annotated[
        NotNegative | None,
        Parameter("kg m^2", where="motor", otherwise="the armature that the robot's file gives"),
    ] = None
    dynamic_torque: Annotated[NotNegative, _AT_BRAKE] = 0.0
    static_torque: Annotated[
        NotNegative | None, replace(_AT_BRAKE, otherwise="as dynamic_torque")
    ] = None
    tolerance: Annotated[float, Range(least=0, below=1), _FRICTION] = 0.0
    band: Annotated[float, Range(least=-1, most=1), _FRICTION] = 0.0
    wear: Annotated[float, Range(least=0, below=1), _FRICTION] = 0.0
    fade_share: Annotated[float, Range(least=0, most=1), _FRICTION] = 0.0
    fade_speed: Annotated[
        NotNegative, Parameter("rad/s", "m/s", where="brake", kinds=("friction",))
    ] = 0.0
    fade_heat: Annotated[Positive | None, _FADES] = None
    start_heat: Annotated[NotNegative, Parameter("J", kinds=("friction",))] = 0.0
    delay: Annotated[NotNegative, Parameter("s", kinds=("friction", "tooth"))] = 0.0
    rise: Annotated[NotNegative, replace(_TIME, kinds=("friction",))] = 0.0
    coulomb: Annotated[NotNegative, _TORQUE] = 0.0
    breakaway: Annotated[NotNegative | None, replace(_TORQUE, otherwise="as coulomb")] = None
    stribeck_speed: Annotated[NotNegative, Parameter("rad/s", "m/s")] = 0.0
    viscous: Annotated[NotNegative, Parameter("N m s/rad", "N s/m")] = 0.0
    short_circuit: Annotated[NotNegative, Parameter("N m s/rad", where="motor")] = 0.0
    drive_torque: Annotated[NotNegative | None, replace(_AT_MOTOR, otherwise="not limited")] = None
    law: Annotated[LawName, Parameter()] = "constant-deceleration"
    deceleration: Annotated[
        Positive | None,
        Parameter("rad/s^2", "m/s^2", otherwise="unknown; categories 1 and 2 need it"),
    ] = None
    ramp_time: Annotated[Positive | None, Parameter("s", otherwise="unknown")] = None
    jerk: Annotated[Positive | None, Parameter("rad/s^3", "m/s^3", otherwise="unknown")] = None
    time_constant: Annotated[Positive | None, Parameter("s", otherwise="unknown")] = None
    torque_share: Annotated[Share, Parameter()] = 1.0
    peak_gear_torque: Annotated[Positive | None, replace(_TORQUE, otherwise="unknown")] = None
    energy_per_stop: Annotated[Positive | None, _HEAT] = None
    energy_per_hour: Annotated[Positive | None, _HEAT] = None
    energy_in_life: Annotated[Positive | None, _HEAT] = None
    pitch: Annotated[NotNegative, _ANGLE] = 0.0
    tooth_offset: Annotated[float, _ANGLE] = 0.0
    impact_time: Annotated[Positive, replace(_TIME, kinds=("tooth",))] = 1e-3
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)

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
        plain = ("kind", "side", "tolerance", "band", "wear", *_OF_BEARINGS)
        return self.kind != "none" or any(
            getattr(self, name) != parameter.default
            for name, parameter in JOINT_PARAMETERS.items()
            if name not in plain
        )

    def uses(self, parameter: str) -> bool:
        """Whether a parameter has any effect with this kind of brake and these numbers."""
        if parameter in ("breakaway", "stribeck_speed"):
            return self.breakaway is not None and self.breakaway > self.coulomb
        if parameter in _NEEDS and not getattr(self, _NEEDS[parameter]):
            return False
        if parameter in HEAT_PARAMETERS and getattr(self, parameter) is None:
            return False  # no stop rests on it
        if parameter in LAW_PARAMETERS and parameter not in LAWS[self.law].numbers:
            return False
        if parameter not in JOINT_PARAMETERS:
            raise UnknownName("parameter of a brake", parameter, JOINT_PARAMETERS)
        return self.kind in JOINT_PARAMETERS[parameter].kinds


@public
@dataclass(frozen=True)
class Chain:
    """From the signal to the command [s].

    Args:
        sensor: time of the sensor or button.
        controller: time of the controller, until it commands brakes and power.
        drive_off: time from the command until the torque of the motors is gone.
        sources: provenance per parameter that is given; the others are guesses.
        notes: remarks per parameter.
        spreads: standard deviation per parameter for which it is known [s].
    """

    sensor: Annotated[NotNegative, _TIME] = 0.0
    controller: Annotated[NotNegative, _TIME] = 0.0
    drive_off: Annotated[NotNegative, _TIME] = 0.0
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, CHAIN_PARAMETERS)

    @property
    def command(self) -> float:
        """Time from the signal until brakes are commanded and power is cut [s]."""
        return self.sensor + self.controller


def _parameters_of(kind: type[JointBrake | Chain]) -> FrozenTable[Parameter]:
    """The parameters among the fields of a class."""
    parameters = {}
    for name, key in keys_of(kind).items():
        bare, marks = parted(key.kind)
        for mark in marks:
            if isinstance(mark, Parameter):
                # The range of an optional number is that of the number.
                inner = [parted(part) for part in get_args(bare) if part is not NoneType]
                marks += tuple(more for _, others in inner for more in others)
                words = get_args(bare) if bare in (Kind, Side, LawName) else ()
                limits = next((m for m in marks if isinstance(m, Range)), Range())
                parameters[name] = replace(
                    mark, meaning=key.meaning, default=key.default, words=words, limits=limits
                )
    return FrozenTable(parameters)


JOINT_PARAMETERS = _parameters_of(JointBrake)
"""Parameters of a joint, in the order of the file."""
LAW_PARAMETERS = frozenset(name for law in LAWS.values() for name in law.numbers) - {"drive_torque"}
"""Numbers of a drive that count with some laws only."""
HEAT_PARAMETERS = ("energy_per_stop", "energy_per_hour", "energy_in_life")
"""What the brake may take; it changes no stop."""
_NEEDS = (
    {"band": "tolerance", "wear": "wear"}
    | dict.fromkeys(("fade_share", "fade_speed"), "fade_share")
    | dict.fromkeys(("fade_heat", "start_heat"), "fade_heat")
)
"""Parameters without effect while another one, or they themselves, are none."""
CHAIN_PARAMETERS = _parameters_of(Chain)
"""Parameters of the chain from the signal to the command, in the order of the file."""


def first_problem(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """What two parameters of a joint contradict each other in: the one to blame and a sentence.

    ``values``: parameters of a joint that are each in range; those left out have their default.
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
    if full["fade_share"] > 0 and full["fade_speed"] == 0:
        return "fade_speed", f"must be above 0, as fade_share is {full['fade_share']:g}"
    return None


def quantity(value: Value, unit: str, parameter: Parameter) -> tuple[str, str]:
    """Value of a parameter and its unit, which is empty if there is none; times in ms."""
    if value is None:
        return parameter.otherwise, ""
    if isinstance(value, str):
        return value, ""
    if unit == "s":
        return f"{1e3 * value:g}", "ms"
    return f"{value:g}", unit


_WITHOUT_SPREAD = (
    *("tolerance", "band", "wear", "gear_ratio", "peak_gear_torque"),
    *("pitch", "tooth_offset", "impact_time", *HEAT_PARAMETERS),
)
"""Numbers that have none: chosen, counted, or without any effect on a motion that is smooth."""
_ABOUT: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("sources", get_args(Source).__contains__, f"one of: {', '.join(get_args(Source))}"),
    ("notes", lambda text: isinstance(text, str), "one of: a text"),
    ("spreads", lambda x: isinstance(_plain(x), float) and 0.0 < x < math.inf, "a size above 0"),
)
"""What is said about parameters: in which field, which values it may have, and these in words."""


def _freeze(record: JointBrake | Chain, parameters: Mapping[str, Parameter]) -> None:
    """Check every parameter by itself and keep plain floats and frozen tables."""
    of = "a brake" if isinstance(record, JointBrake) else "the chain"
    for name, parameter in parameters.items():
        value = parameter.checked(getattr(record, name), of, name)
        object.__setattr__(record, name, value)
    for key, valid, wanted in _ABOUT:
        table = dict(getattr(record, key))
        for name, value in table.items():
            if name not in parameters:
                raise BadValue(f"{key} of {of} names '{name}', which is no parameter")
            if not valid(value):
                raise BadValue(f"{key} of {of}: {name} is {value!r}, not {wanted}")
        object.__setattr__(record, key, FrozenTable(table))
    for name in record.spreads:
        if name in _WITHOUT_SPREAD or parameters[name].words:
            raise BadValue(f"spreads of {of}: no stop depends on {name} smoothly; take it out")
    # What is there has been given by somebody, who did not say where it comes from.
    changed = [n for n, parameter in parameters.items() if getattr(record, n) != parameter.default]
    sources = {**dict.fromkeys((*changed, *record.notes), "guess"), **record.sources}
    sources.pop("band", None)
    object.__setattr__(record, "sources", FrozenTable(sources))
