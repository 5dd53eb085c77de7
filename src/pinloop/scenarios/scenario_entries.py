"""What a scenario file may say: its keys, their defaults, JSON schema and tables for the documents.

Knows no robot: whether a joint exists, and what unit its coordinate has, is for `reading` to say.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from ..boundary.yaml import Name, Number, Vector3, validated
from ..errors import BadValue
from ..integrate import MuntheKaas
from ..io.documents import NotNegative, Positive, schema_of
from ..io.entries import Entry
from ..simulation.events import EndStops
from ..simulation.stabilization import Projection
from ..units import TIMES, in_units

__all__ = [
    "TABLES",
    "EventEntry",
    "ForcesEntry",
    "MethodEntry",
    "OutputsEntry",
    "RobotEntry",
    "Scenario",
    "StabilizationEntry",
    "StartEntry",
    "Word",
    "json_schema",
]

Word = float | str
"""A number in SI units, or a text with a unit that the joint has to fit."""


def _word(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a number, or a text with a unit such as 30deg")
    if isinstance(value, str):
        return value
    if not _is_finite(value):
        raise ValueError("expected a finite number")
    return float(value)


def _is_finite(value: float) -> bool:
    """Whether a number is finite; integers may have more digits than `math.isfinite` takes."""
    return abs(value) <= sys.float_info.max


def _seconds(value: object) -> object:
    time = in_units(value, TIMES) if isinstance(value, str) else value
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise ValueError("expected a time, such as 0.8 (s) or 800ms")
    if not _is_finite(time):
        raise ValueError("expected a finite time")
    return time


def _alone(value: object) -> object:
    """One value stands for a list of one."""
    return value if isinstance(value, list | tuple) else (value,)


def _file_only(value: object) -> object:
    return value if isinstance(value, Mapping) else {"file": value}


_WORD_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "examples": ["30deg", "200mm"]}]}
_TIME_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "examples": ["800ms"]}]}

_Value = Annotated[Word, BeforeValidator(_word), WithJsonSchema(_WORD_SCHEMA)]
_Values = Annotated[
    tuple[_Value, ...], BeforeValidator(_alone, json_schema_input_type=_Value | list[_Value])
]
_ByJoint = dict[Name, _Values]
_Time = Annotated[float, BeforeValidator(_seconds), WithJsonSchema(_TIME_SCHEMA)]
_Span: Any = Annotated[float, BeforeValidator(_seconds), Field(gt=0), WithJsonSchema(_TIME_SCHEMA)]
_Names = Annotated[
    tuple[Name, ...], BeforeValidator(_alone, json_schema_input_type=Name | list[Name])
]


class RobotEntry(Entry):
    """The robot; a text alone is its file."""

    file: Name = Field(description="URDF, SDF, MJCF, Gepetto YAML or screw table")
    loops: _Names = Field((), description="files with its loops, if it does not say them")
    package_dirs: _Names = Field((), description="folders of package:// and model:// names")
    model: Name | None = Field(None, description="model to load from an SDF that holds several")
    floating_base: bool = Field(False, description="let the root link float")
    tolerance: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="turn [rad] and shift [lengths of the robot] of joint frames that count as "
        "rounding; 0: none; by default 1e-4, or what the digits of the file allow",
    )
    regularize: bool = Field(True, description="remove redundant loop rows first")
    losses: bool = Field(True, description="let damping and friction of the robot's file act")


class StartEntry(Entry):
    """The state at the start: loops are closed, and the velocity is one that they allow."""

    q: _ByJoint = Field({}, description="joints and where they are held [rad, m; deg, mm]")
    near: _ByJoint = Field(
        {},
        description="joints and where the search for closed loops begins; they may move, and they "
        "choose the branch",
    )
    v: _ByJoint = Field(
        {}, description="joints and their rates [rad/s, m/s; deg/s, mm/s]; at rest without it"
    )
    limits: bool = Field(True, description="keep inside the position limits of all joints")
    locked: _Names = Field((), description="joints that are locked")
    opened: _Names = Field((), description="loop joints that are open")


class DriveEntry(Entry):
    """A PD drive: `stiffness (target - q) + damping (rate - v)`."""

    stiffness: NotNegative = Field(description="[N m/rad, N/m]")
    damping: NotNegative = Field(0.0, description="[N m s/rad, N s/m]")
    target: _Value = Field(0.0, description="position that it holds [rad, m; deg, mm]")
    rate: _Value = Field(0.0, description="rate of the target [rad/s, m/s; deg/s, mm/s]")


class JointSpringEntry(Entry):
    """A spring at a joint: `-stiffness (q - rest)`."""

    stiffness: Number = Field(description="[N m/rad, N/m]")
    rest: _Value = Field(0.0, description="coordinate without load [rad, m; deg, mm]")


class FrictionEntry(Entry):
    """Dry friction of joints, smoothed: `-f tanh(v / speed)`. It never sticks."""

    coefficients: dict[Name, NotNegative] = Field(description="per joint [N m, N]")
    speed: Positive = Field(0.1, description="speed at which three quarters of it act [rad/s, m/s]")


_ORIGIN = (0.0, 0.0, 0.0)


class SpringEntry(Entry):
    """A straight spring between points of two frames or bodies."""

    a: Name = Field(description="frame or body at one end")
    b: Name = Field(description="frame or body at the other end")
    point_a: Vector3 = Field(_ORIGIN, description="its point at one end, in its axes [m]")
    point_b: Vector3 = Field(_ORIGIN, description="its point at the other end, likewise [m]")
    stiffness: Number = Field(description="[N/m]")
    length: NotNegative = Field(0.0, description="length without load [m]")


class DamperEntry(Entry):
    """A straight damper between points of two frames or bodies."""

    a: Name = Field(description="frame or body at one end")
    b: Name = Field(description="frame or body at the other end")
    point_a: Vector3 = Field(_ORIGIN, description="its point at one end, in its axes [m]")
    point_b: Vector3 = Field(_ORIGIN, description="its point at the other end, likewise [m]")
    damping: NotNegative = Field(description="[N s/m]")


class PointForceEntry(Entry):
    """A constant force at a point of a frame or body."""

    frame: Name = Field(description="frame or body on which it acts")
    point: Vector3 = Field(_ORIGIN, description="where it acts, in the axes of the frame [m]")
    force: Vector3 = Field(description="[N]")
    local: bool = Field(False, description="given in the frame's axes instead of the world's")


class ForcesEntry(Entry):
    """What acts besides gravity and the losses of the robot's file."""

    pd: dict[Name, DriveEntry] = Field({}, description="per joint its drive")
    torque: dict[Name, Number] = Field({}, description="per joint a constant torque [N m, N]")
    joint_spring: dict[Name, JointSpringEntry] = Field({}, description="per joint a spring")
    joint_damping: dict[Name, NotNegative] = Field(
        {}, description="per joint viscous damping [N m s/rad, N s/m]"
    )
    joint_friction: FrictionEntry | None = Field(None, description="dry friction of joints")
    spring: tuple[SpringEntry, ...] = Field((), description="springs between frames")
    damper: tuple[DamperEntry, ...] = Field((), description="dampers between frames")
    point_force: tuple[PointForceEntry, ...] = Field((), description="forces on frames")


class WhenEntry(Entry):
    """The instant at which the coordinate or the rate of a joint passes a value."""

    joint: Name = Field(description="joint with one coordinate")
    q: _Value | None = Field(None, description="its coordinate there [rad, m; deg, mm]")
    v: _Value | None = Field(None, description="or its rate there [rad/s, m/s; deg/s, mm/s]")
    direction: Literal["rising", "falling", "both"] = Field(
        "both", description="`rising`, `falling` or `both`"
    )

    @model_validator(mode="after")
    def _one_value(self) -> WhenEntry:
        if (self.q is None) == (self.v is None):
            raise ValueError("needs one of 'q' and 'v'")
        return self


ACTIONS = ("lock", "unlock", "open_loop", "close_loop", "stop", "report", "limits")
"""Keys of an event that say what happens."""


class EventEntry(Entry):
    """What happens, and when: one of the first seven keys, with `at` or `when`."""

    lock: Name | None = Field(None, description="joint that is locked where it is then")
    unlock: Name | None = Field(None, description="joint that is released")
    open_loop: Name | None = Field(None, description="loop joint that lets go")
    close_loop: Name | None = Field(
        None, description="loop joint that closes; by default when its frames meet"
    )
    stop: Name | None = Field(None, description="end the run; the text names the event")
    report: Name | None = Field(None, description="only note that it happened, under this name")
    limits: _Names | None = Field(
        None, description="note when these joints come to a limit; `all`: every limited one"
    )
    at: _Time | None = Field(None, description="when [s; ms]")
    when: WhenEntry | None = Field(None, description="or at the value of a joint")
    axes: _Names = Field((), description="lock: its degrees of freedom (vx, wz, ...); else all")
    tolerance: Positive = Field(
        1e-4, description="close_loop: residual up to which frames count as met [m, rad]"
    )

    @property
    def kind(self) -> str:
        """Which of the actions it is."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _complete(self) -> EventEntry:
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of {', '.join(ACTIONS)}")
        instants = sum(instant is not None for instant in (self.at, self.when))
        if self.limits is not None:
            if instants:
                raise ValueError("limits are watched all the time; leave 'at' and 'when' out")
        elif instants != 1 and not (self.close_loop is not None and instants == 0):
            raise ValueError("needs one of 'at' and 'when'")
        for key, action in (("axes", "lock"), ("tolerance", "close_loop")):
            if key in self.model_fields_set and given != [action]:
                raise ValueError(f"'{key}' belongs to {action}, not to {given[0]}")
        return self


def _kind_only(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


class LimitsEntry(Entry):
    """What happens at the position limits of joints."""

    kind: Literal["warn", "stop", "end stop"] = Field(
        "end stop", description="`warn`, `stop` or `end stop`"
    )
    restitution: float = Field(
        0.0, ge=0.0, le=1.0, description="part of the speed with which joints bounce back, 0 to 1"
    )
    joints: _Names | None = Field(None, description="joints whose limits are hit; else all")

    @model_validator(mode="after")
    def _hit(self) -> LimitsEntry:
        more = self.model_fields_set - {"kind"}
        if self.kind != "end stop" and more:
            raise ValueError(f"'{min(more)}' belongs to end stops, not to {self.kind}")
        return self

    def make(self) -> Literal["warn", "stop"] | EndStops:
        """What `simulate` is told."""
        return EndStops(self.restitution, self.joints) if self.kind == "end stop" else self.kind


_METHOD = MuntheKaas()


class MethodEntry(Entry):
    """The integrator: a Runge-Kutta method on the configuration group."""

    name: Literal["euler", "heun", "rk4", "bs32", "dopri5", "dop853"] = Field(
        "dopri5", description="`euler`, `heun`, `rk4`, `bs32`, `dopri5` or `dop853`"
    )
    step: _Span | None = Field(
        None, description="fixed step [s; ms]; controlled by the error without it"
    )
    rtol: NotNegative = Field(_METHOD.rtol, description="tolerated relative error")
    atol: Positive = Field(
        _METHOD.atol, description="tolerated absolute error: rad, characteristic lengths"
    )
    smallest: _Span = Field(_METHOD.smallest, description="smallest step [s; ms]")
    largest: _Span | None = Field(None, description="largest step [s; ms]")

    def make(self) -> MuntheKaas:
        """The method."""
        if self.step is None and self.name in ("euler", "heun", "rk4"):
            raise BadValue(f"{self.name} has no error estimate; give it a step")
        largest = np.inf if self.largest is None else self.largest
        return MuntheKaas(self.name, self.step, self.rtol, self.atol, self.smallest, largest)


class StabilizationEntry(Entry):
    """Back to the constraint manifold after each step that left it."""

    tolerance: Positive = Field(
        Projection().tol, description="residual above which states are projected"
    )
    coordinates: _Names = Field(
        ("optimal",), description="what is corrected: `optimal`, `mass`, or a list of joints"
    )

    def make(self) -> Projection:
        """The projection."""
        named: Any = self.coordinates
        single = len(named) == 1 and named[0] in ("optimal", "mass")
        return Projection(self.tolerance, named[0] if single else named)


class OutputsEntry(Entry):
    """Files that are written."""

    npz: Name | None = Field(None, description="the run, for `pinloop play` and `load_trajectory`")
    csv: Name | None = Field(None, description="coordinates and velocities over time")
    parquet: Name | None = Field(None, description="the same as Parquet (extra `parquet`)")
    html: Name | None = Field(None, description="page that replays the run in any browser")
    plot: _Names = Field(
        (), description="overview as `.png`, `.svg` or `.pdf`, one or several (extra `plot`)"
    )
    summary: Name | None = Field(None, description="what is printed, as JSON")
    every: _Span | None = Field(
        None, description="interval of the states in npz, csv and parquet [s; ms]; every step else"
    )


class Scenario(Entry):
    """A run: a robot, its start, what acts, what happens, how it is computed, what is kept."""

    format: Literal["pinloop-scenario-1"] = Field(description="version of this format")
    robot: Annotated[
        RobotEntry, BeforeValidator(_file_only, json_schema_input_type=Name | RobotEntry)
    ] = Field(description="the robot, or just its file")
    start: StartEntry = Field(StartEntry(), description="state at the start; neutral, at rest")
    until: _Span = Field(1.0, description="end of the run [s; ms]")
    gravity: Vector3 | None = Field(
        None, description="in the world [m/s^2]; as in the robot's file"
    )
    forces: ForcesEntry = Field(ForcesEntry(), description="what acts besides gravity")
    events: tuple[EventEntry, ...] = Field((), description="what happens, and when")
    limits: Annotated[
        LimitsEntry, BeforeValidator(_kind_only, json_schema_input_type=Name | LimitsEntry)
    ] = Field(
        LimitsEntry(kind="warn"),
        description="at position limits: `warn`, `stop` the run, or an `end stop` that is hit",
    )
    formulation: Literal["augmented", "projected", "voronets", "odca"] | None = Field(
        None, description="`augmented`, `projected`, `voronets` or `odca`; else the fastest"
    )
    method: MethodEntry = Field(MethodEntry(), description="integrator")
    stabilization: StabilizationEntry | None = Field(
        StabilizationEntry(), description="projection to the loops; null: let the drift be seen"
    )
    outputs: OutputsEntry = Field(OutputsEntry(), description="files that are written")

    def __init__(self, **entries: Any) -> None:
        validated(type(self), entries, "scenario")
        super().__init__(**entries)

    # Whoever reads files validates tables by the fields, and says which line does not fit.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the scenario file."""
    return schema_of(Scenario)


TABLES: Mapping[str, type[Entry]] = {
    "the file": Scenario,
    "robot": RobotEntry,
    "start": StartEntry,
    "forces": ForcesEntry,
    "pd": DriveEntry,
    "joint_spring": JointSpringEntry,
    "joint_friction": FrictionEntry,
    "spring": SpringEntry,
    "damper": DamperEntry,
    "point_force": PointForceEntry,
    "events": EventEntry,
    "when": WhenEntry,
    "limits": LimitsEntry,
    "method": MethodEntry,
    "stabilization": StabilizationEntry,
    "outputs": OutputsEntry,
}
"""The tables of the file, by what the documentation calls them."""
