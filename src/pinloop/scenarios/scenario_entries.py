"""What a scenario file may say: its keys, their defaults, JSON schema and tables for the documents.

Knows no robot: whether a joint exists, and what unit its coordinate has, is for `reading` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from ..boundary.marks import (
    As,
    Duration,
    Instant,
    Name,
    NotNegative,
    Positive,
    Range,
    Short,
    Vector3,
    finite,
)
from ..errors import BadValue
from ..integrate import MuntheKaas
from ..io.loading import Names, Paths, RobotFile
from ..simulation.events import EndStops
from ..simulation.stabilization import Projection

Quantity = float | str
"""A number in SI units, or a text with a unit that the joint has to fit."""


def _quantity(value: object) -> Quantity:
    if isinstance(value, str):
        return value
    return finite(value, "a number, or a text with a unit such as 30deg")


_Value = Annotated[
    Quantity,
    As(
        Any,
        _quantity,
        {"anyOf": [{"type": "number"}, {"type": "string", "examples": ["30deg", "200mm"]}]},
    ),
]
_ByJoint = Mapping[Name, Annotated[tuple[_Value, ...], Short(_Value, lambda value: (value,))]]


@dataclass(frozen=True, kw_only=True)
class RobotEntry(RobotFile):
    """The robot of a run; a text alone is its file."""

    regularize: Annotated[bool, "remove redundant loop rows first"] = True
    losses: Annotated[bool, "let damping and friction of the robot's file act"] = True


@dataclass(frozen=True, kw_only=True)
class StartEntry:
    """The state at the start: loops are closed, and the velocity is one that they allow."""

    q: Annotated[_ByJoint, "joints and where they are held [rad, m; deg, mm]"] = field(
        default_factory=dict
    )
    near: Annotated[
        _ByJoint,
        "joints and where the search for closed loops begins; they may move, and they "
        "choose the branch",
    ] = field(default_factory=dict)
    v: Annotated[
        _ByJoint, "joints and their rates [rad/s, m/s; deg/s, mm/s]; at rest without it"
    ] = field(default_factory=dict)
    limits: Annotated[bool, "keep inside the position limits of all joints"] = True
    locked: Annotated[Names, "joints that are locked"] = ()
    opened: Annotated[Names, "loop joints that are open"] = ()


@dataclass(frozen=True, kw_only=True)
class DriveEntry:
    """A PD drive: `stiffness (target - q) + damping (rate - v)`."""

    stiffness: Annotated[NotNegative, "[N m/rad, N/m]"]
    damping: Annotated[NotNegative, "[N m s/rad, N s/m]"] = 0.0
    target: Annotated[_Value, "position that it holds [rad, m; deg, mm]"] = 0.0
    rate: Annotated[_Value, "rate of the target [rad/s, m/s; deg/s, mm/s]"] = 0.0


@dataclass(frozen=True, kw_only=True)
class JointSpringEntry:
    """A spring at a joint: `-stiffness (q - rest)`."""

    stiffness: Annotated[float, "[N m/rad, N/m]"]
    rest: Annotated[_Value, "coordinate without load [rad, m; deg, mm]"] = 0.0


@dataclass(frozen=True, kw_only=True)
class FrictionEntry:
    """Dry friction of joints, by stick and slip; smoothed if a `speed` is given."""

    coefficients: Annotated[Mapping[Name, NotNegative], "per joint [N m, N]"]
    speed: Annotated[
        Positive | None, "smooths it: speed at which three quarters of it act [rad/s, m/s]"
    ] = None


_ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """Points of two frames or bodies."""

    a: Annotated[Name, "frame or body at one end"]
    b: Annotated[Name, "frame or body at the other end"]
    point_a: Annotated[Vector3, "its point at one end, in its axes [m]"] = _ORIGIN
    point_b: Annotated[Vector3, "its point at the other end, likewise [m]"] = _ORIGIN


@dataclass(frozen=True, kw_only=True)
class SpringEntry(_Ends):
    """A straight spring between points of two frames or bodies."""

    stiffness: Annotated[float, "[N/m]"]
    length: Annotated[NotNegative, "length without load [m]"] = 0.0


@dataclass(frozen=True, kw_only=True)
class DamperEntry(_Ends):
    """A straight damper between points of two frames or bodies."""

    damping: Annotated[NotNegative, "[N s/m]"]


@dataclass(frozen=True, kw_only=True)
class PointForceEntry:
    """A constant force at a point of a frame or body."""

    frame: Annotated[Name, "frame or body on which it acts"]
    point: Annotated[Vector3, "where it acts, in the axes of the frame [m]"] = _ORIGIN
    force: Annotated[Vector3, "[N]"]
    local: Annotated[bool, "given in the frame's axes instead of the world's"] = False


@dataclass(frozen=True, kw_only=True)
class ForcesEntry:
    """What acts besides gravity and the losses of the robot's file."""

    pd: Annotated[Mapping[Name, DriveEntry], "per joint its drive"] = field(default_factory=dict)
    torque: Annotated[Mapping[Name, float], "per joint a constant torque [N m, N]"] = field(
        default_factory=dict
    )
    joint_spring: Annotated[Mapping[Name, JointSpringEntry], "per joint a spring"] = field(
        default_factory=dict
    )
    joint_damping: Annotated[
        Mapping[Name, NotNegative], "per joint viscous damping [N m s/rad, N s/m]"
    ] = field(default_factory=dict)
    joint_friction: Annotated[FrictionEntry | None, "dry friction of joints"] = None
    spring: Annotated[tuple[SpringEntry, ...], "springs between frames"] = ()
    damper: Annotated[tuple[DamperEntry, ...], "dampers between frames"] = ()
    point_force: Annotated[tuple[PointForceEntry, ...], "forces on frames"] = ()


@dataclass(frozen=True, kw_only=True)
class WhenEntry:
    """The instant at which the coordinate or the rate of a joint passes a value."""

    joint: Annotated[Name, "joint with one coordinate"]
    q: Annotated[_Value | None, "its coordinate there [rad, m; deg, mm]"] = None
    v: Annotated[_Value | None, "or its rate there [rad/s, m/s; deg/s, mm/s]"] = None
    direction: Annotated[Literal["rising", "falling", "both"], "`rising`, `falling` or `both`"] = (
        "both"
    )

    def __post_init__(self) -> None:
        if (self.q is None) == (self.v is None):
            raise BadValue("needs one of 'q' and 'v'")


_ACTIONS = ("lock", "unlock", "open_loop", "close_loop", "stop", "report", "limits")
"""Keys of an event that say what happens."""


@dataclass(frozen=True, kw_only=True)
class EventEntry:
    """What happens, and when: one of the first seven keys, with `at` or `when`."""

    lock: Annotated[Name | None, "joint that is locked where it is then"] = None
    unlock: Annotated[Name | None, "joint that is released"] = None
    open_loop: Annotated[Name | None, "loop joint that lets go"] = None
    close_loop: Annotated[
        Name | None, "loop joint that closes; by default when its frames meet"
    ] = None
    stop: Annotated[Name | None, "end the run; the text names the event"] = None
    report: Annotated[Name | None, "only note that it happened, under this name"] = None
    limits: Annotated[
        Names | None, "note when these joints come to a limit; `all`: every limited one"
    ] = None
    at: Annotated[Instant | None, "when [s; ms]"] = None
    when: Annotated[WhenEntry | None, "or at the value of a joint"] = None
    axes: Annotated[Names, "lock: its degrees of freedom (vx, wz, ...); else all"] = ()
    tolerance: Annotated[
        Positive | None,
        "close_loop: residual up to which frames count as met [m, rad]; 1e-4 by default",
    ] = None

    def __post_init__(self) -> None:
        given = [name for name in _ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise BadValue(f"needs one of {', '.join(_ACTIONS)}")
        instants = sum(instant is not None for instant in (self.at, self.when))
        if self.limits is not None:
            if instants:
                raise BadValue("limits are watched all the time; leave 'at' and 'when' out")
        elif instants != 1 and not (self.close_loop is not None and instants == 0):
            raise BadValue("needs one of 'at' and 'when'")
        for key, action in (("axes", "lock"), ("tolerance", "close_loop")):
            if getattr(self, key) and given != [action]:
                raise BadValue(f"'{key}' belongs to {action}, not to {given[0]}")


@dataclass(frozen=True, kw_only=True)
class LimitsEntry:
    """What happens at the position limits of joints."""

    kind: Annotated[Literal["warn", "stop", "end stop"], "`warn`, `stop` or `end stop`"] = (
        "end stop"
    )
    restitution: Annotated[
        float, Range(least=0, most=1), "part of the speed with which joints bounce back, 0 to 1"
    ] = 0.0
    joints: Annotated[Names | None, "joints whose limits are hit; else all"] = None

    def __post_init__(self) -> None:
        for key in ("joints", "restitution"):
            if self.kind != "end stop" and getattr(self, key):
                raise BadValue(f"'{key}' belongs to end stops, not to {self.kind}")

    def make(self) -> Literal["warn", "stop"] | EndStops:
        """The argument of `simulate`."""
        return EndStops(self.restitution, self.joints) if self.kind == "end stop" else self.kind


@dataclass(frozen=True, kw_only=True)
class StabilizationEntry:
    """Back to the constraint manifold after each step that left it."""

    tolerance: Annotated[Positive, "residual above which states are projected"] = Projection().tol
    coordinates: Annotated[Names, "what is corrected: `optimal`, `mass`, or a list of joints"] = (
        "optimal",
    )

    def make(self) -> Projection:
        """The projection."""
        named: Any = self.coordinates
        single = len(named) == 1 and named[0] in ("optimal", "mass")
        return Projection(self.tolerance, named[0] if single else named)


@dataclass(frozen=True, kw_only=True)
class OutputsEntry:
    """Files that are written."""

    npz: Annotated[Path | None, "the run, for `pinloop play` and `load_trajectory`"] = None
    csv: Annotated[Path | None, "coordinates and velocities over time"] = None
    parquet: Annotated[Path | None, "the same as Parquet (extra `parquet`)"] = None
    html: Annotated[Path | None, "page that replays the run in any browser"] = None
    plot: Annotated[
        Paths, "overview as `.png`, `.svg` or `.pdf`, one or several (extra `plot`)"
    ] = ()
    summary: Annotated[Path | None, "what is printed, as JSON"] = None
    every: Annotated[
        Duration | None, "interval of the states in npz, csv and parquet [s; ms]; every step else"
    ] = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A run: a robot, its start, what acts, what happens, how it is computed, what is kept."""

    format: Annotated[Literal["pinloop-scenario-1"], "version of this format"]
    robot: Annotated[RobotEntry, Short(Name, "file"), "the robot, or just its file"]
    start: Annotated[StartEntry, "state at the start; neutral, at rest"] = field(
        default_factory=StartEntry
    )
    until: Annotated[Duration, "end of the run [s; ms]"] = 1.0
    gravity: Annotated[Vector3 | None, "in the world [m/s^2]; as in the robot's file"] = None
    forces: Annotated[ForcesEntry, "what acts besides gravity"] = field(default_factory=ForcesEntry)
    events: Annotated[tuple[EventEntry, ...], "what happens, and when"] = ()
    limits: Annotated[
        LimitsEntry,
        Short(Name, "kind"),
        "at position limits: `warn`, `stop` the run, or an `end stop` that is hit",
    ] = LimitsEntry(kind="warn")
    formulation: Annotated[
        Literal["augmented", "projected", "voronets", "odca"] | None,
        "`augmented`, `projected`, `voronets` or `odca`; else the fastest",
    ] = None
    method: Annotated[MuntheKaas, "integrator"] = field(default_factory=MuntheKaas)
    stabilization: Annotated[
        StabilizationEntry | None, "projection to the loops; null: let the drift be seen"
    ] = field(default_factory=StabilizationEntry)
    outputs: Annotated[OutputsEntry, "files that are written"] = field(default_factory=OutputsEntry)
