"""The cases of a study: what all share, values to a stop, and a stop to a row of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from threading import local
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import scipy

from ...assembly.assemble import assemble, consistent_velocity, reach
from ...boundary.marks import Array
from ...errors import PinloopError
from ...integrate import FINE, MuntheKaas
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...regularization.regularize import regularize
from ...tables.number_format import Units, units_of
from ...tolerances import TRAVEL
from ...units import column_name
from ...version import __version__
from ..brakes.brakes import Brakes
from ..brakes.template import driven_joints
from ..space.clearance import clearance
from ..space.solids import Obstacle, triangles_of
from ..stopping import Payload, Standstill, StopResult, Trigger
from ..stopping.categories import Category
from ..stopping.intervals import Guesses
from ..stopping.prepared_robot import PreparedRobot, prepare_robot, tool_of
from ..stopping.stop import stop_prepared
from ..stopping.uncertain_brakes import find_guesses
from .journal import digest, pack_stop, unpack_stop
from .space import Sampling, Space, Variable, drawn

Values = Mapping[str, float]
"""Value of every variable, by name."""
Row = dict[str, float | str]


@dataclass(frozen=True, eq=False)
class Setup:
    """What all cases of a study have in common.

    Args:
        payload: what the robot carries, where the space does not say; where it does, its place.
        gravity: gravity in the robot's base [m/s^2]; that of its file by default.
        until: limit of the time of a stop [s].
    """

    robot: Mechanism
    brakes: Brakes
    space: Space
    category: Category
    payload: Payload | None
    gravity: tuple[float, float, float] | None
    trigger: Trigger
    until: float
    method: MuntheKaas
    standstill: Standstill = field(default_factory=Standstill)
    obstacles: tuple[Obstacle, ...] = ()
    _ready: local = field(default_factory=local, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """The machine of a thread stays there: other threads and processes prepare their own."""
        return {key: value for key, value in self.__dict__.items() if key != "_ready"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _ready=local())

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, fixed ones included."""
        chain = self.trigger.chain(self.brakes.chain)
        return self.space.variables(self.robot, self.brakes, chain)

    @property
    def guesses(self) -> Guesses:
        """Brake data that are guesses."""
        return find_guesses(self.robot, self.brakes, self.category)

    def stop(self, values: Values) -> StopResult:
        """Make the stop of a case."""
        machine = self._machine(values)
        trigger, q, v = self.trigger, None, None
        if self.space.motion is not None:
            trigger = replace(trigger, motion=self.space.motion, at=values["instant"])
        else:
            q, v = self._state(machine.robot, values)
        return stop_prepared(
            machine, trigger, self.category, q, v, self.until, self.method, self.standstill
        )

    def evaluate(self, number: int, values: Values) -> tuple[Row, StopResult | None]:
        """The row of a case and its stop; the reason, and no stop, if it cannot be computed."""
        row: Row = {"case": float(number)}
        row |= {variable.column: float(values[variable.name]) for variable in self.variables}
        try:
            stop = self.stop(values)
            near = {CLEARANCE: self.clearance(stop)} if self.obstacles else {}
            return row | {"outcome": "", "reason": ""} | stop_numbers(stop) | near, stop
        except PinloopError as error:
            reason = str(error)
        except (ArithmeticError, ValueError, RuntimeError) as error:
            # What numerics raise: one such case must not end a study of thousands.
            reason = f"{type(error).__name__}: {error}"
        return row | {"outcome": "failed", "reason": " ".join(reason.split())}, None

    def pack(self, stop: StopResult, values: Values) -> bytes:
        """The stop of a case as bytes, without what all stops of the study share."""
        return pack_stop(stop, self._shared(values))

    def unpack(self, data: bytes, values: Values) -> StopResult | None:
        """The stop of a case from its bytes; None if they cannot be read."""
        return unpack_stop(data, self._shared(values))

    def _shared(self, values: Values) -> dict[str, object]:
        """What belongs to all stops with the robot of a case, by name."""
        machine = self._machine(values)
        shared = {
            "prepared robot": machine.robot,
            "robot": machine.equations.robot,
            "all rotors": machine.system.robot,
            "equations": machine.system,
            "train": machine.train,
            "brakes": machine.train.brakes,
            "category": self.category,
            "motion": self.space.motion,
        }
        return {name: value for name, value in shared.items() if value is not None}

    def clearance(self, stop: StopResult) -> float:
        """How near a stop comes to the obstacles [m]; 0 if it touches one."""
        return min(nearest.distance for nearest in clearance(stop.run, self.obstacles).values())

    @cached_property
    def _regular(self) -> Mechanism:
        """The robot without redundant rows, which are the same whatever it carries."""
        robot = self.robot
        return regularize(robot) if robot.loops and robot.regularization is None else robot

    def _machine(self, values: Values) -> PreparedRobot:
        """The robot with the payload and the brakes of a case."""
        own = tuple(v for name, v in values.items() if name.split(".")[0] in _OF_MACHINE)
        # One is enough: cases that share a machine come together.
        if getattr(self._ready, "own", None) != own:
            brakes = self.brakes
            for name, value in values.items():
                kind, _, joint = name.partition(".")
                if kind == "delay" and value:
                    brakes = brakes.late(joint, value)
                elif kind == "band":
                    brakes = brakes.at_band({joint: value})
            machine = prepare_robot(self._regular, brakes, self._load(values), self.gravity)
            self._ready.own, self._ready.machine = own, machine
        prepared: PreparedRobot = self._ready.machine
        return prepared

    def _load(self, values: Values) -> Payload | None:
        if "payload" not in values:
            return self.payload
        place = self.payload or Payload(0.0)
        return replace(place, mass=values["payload"]) if values["payload"] > 0 else None

    def draws_again(self, sampling: Sampling) -> bool:
        """Whether poses that cannot be assembled are drawn again."""
        loops = bool(self.robot.loops or self.robot.couplings)
        return (
            loops and drawn(sampling) and any(v.kind == "pose" and v.varies for v in self.variables)
        )

    def configuration(self, values: Values) -> Array:
        """Configuration of a case, with loops closed."""
        robot = self._machine(values).robot
        pose = {name: values[f"pose.{name}"] for name in driven_joints(robot)}
        # One is enough: whether it can be assembled is asked just before its stop is made.
        if getattr(self._ready, "pose", None) != pose:
            looped = robot.loops or robot.couplings
            q = assemble(robot, fixed=pose) if looped else robot.configuration(pose)
            self._ready.pose, self._ready.q = pose, q
        return np.array(self._ready.q)

    def can_be_assembled(self, values: Values) -> bool:
        """Whether the loops close in the pose of a case; its `configuration` is then at hand."""
        pose = {name: values[f"pose.{name}"] for name in driven_joints(self.robot)}
        q = reach(self._regular, pose)
        if q is not None:
            self._ready.pose, self._ready.q = pose, q
        return q is not None

    def _state(self, robot: Mechanism, values: Values) -> tuple[Array, Array]:
        """Configuration and velocity of a case, with loops closed."""
        speed = {name: values[f"speed.{name}"] for name in driven_joints(robot)}
        q = self.configuration(values)
        if not robot.loops and not robot.couplings:
            return q, robot.velocity(speed)
        return q, consistent_velocity(robot, q, speed)


_OF_MACHINE = ("payload", "delay", "band")
"""Kinds of variables that make another machine."""
_HALVINGS = 24
"""How often a piece of a path is halved, at most."""
CLEARANCE = "clearance_m"
"""Column of how near the robot comes to obstacles."""
TOOL_PLACE = ("tool_x_m", "tool_y_m", "tool_z_m")
"""Columns of the place of the tool in the world at the signal."""
_OF_STOP = (
    *("stopping_time_s", "reaction_time_s", "tool_travel_m", "tool_peak_speed_m_per_s"),
    *(*TOOL_PLACE, "kinetic_energy_J", "ledger_error"),
)
"""Columns of what is kept of a stop beside that of its joints."""

_OF_JOINT = {
    "time": ("time", "s"),
    "reaction_angle": ("reaction", "{angle}"),
    "braking_angle": ("braking", "{angle}"),
    "excursion": ("excursion", "{angle}"),
    "beyond_limit": ("beyond_limit", "{angle}"),
    "peak_speed": ("peak_speed", "{angle}/s"),
    "peak_torque": ("peak_torque", "{torque}"),
    "peak_gear_torque": ("peak_gear_torque", "{torque}"),
    "impulse": ("impulse", "{torque} s"),
    "slips": ("slips", ""),
    "margin": ("margin", ""),
}
"""What is kept of a `JointStop`: the quantity in the names of columns, and its unit."""


def columns(setup: Setup) -> list[str]:
    """Names of the columns of all rows, with units."""
    names = ["case", *(variable.column for variable in setup.variables), "outcome", "reason"]
    names += [*_OF_STOP, *([CLEARANCE] if setup.obstacles else [])]
    for name in setup.brakes.joints:
        names += joint_columns(setup.robot, name).values()
    return names


def joint_columns(robot: Mechanism, joint: str) -> Mapping[str, str]:
    """The columns of a joint, by the attribute of `JointStop` that each holds."""
    return _columns_of(joint, units_of(robot, joint))


@lru_cache(maxsize=1024)
def _columns_of(joint: str, units: Units) -> Mapping[str, str]:
    return {
        attribute: column_name(
            joint, quantity, unit=unit.format(angle=units.si, torque=units.torque)
        )
        for attribute, (quantity, unit) in _OF_JOINT.items()
    }


def stop_numbers(stop: StopResult) -> Row:
    """Everything of a stop that a study keeps."""
    tool, ledger = tool_of(stop.robot), stop.ledger
    place = stop.robot.placement(stop.run.q[0], tool).translation.tolist()
    times = (stop.stopping_time, stop.reaction_time)
    numbers = (*times, *tool_travel(stop, tool), *place)
    energies = (ledger.kinetic_before, ledger.relative_error)
    row: Row = {"outcome": stop.outcome}
    row |= dict(zip(_OF_STOP, (*numbers, *energies), strict=True))
    for name, joint in stop.joints.items():
        for attribute, column in joint_columns(stop.robot, name).items():
            row[column] = float(getattr(joint, attribute))
    return row


def tool_travel(stop: StopResult, frame: str) -> tuple[float, float]:
    """Length of the path of a frame's origin [m], and its largest speed [m/s].

    The speed is followed over the dense output, on the pieces of `MovingSteps`, which are halved
    where it turns sharply: where the tool nearly comes to rest.
    """
    model, index = stop.robot.model, stop.robot.frame_id(frame)
    data, moving = create_data(model), stop.history.moving

    def speeds(q: Array, v: Array) -> Array:
        values = []
        for state in zip(q.reshape(-1, model.nq), v.reshape(-1, model.nv), strict=True):
            pin.forwardKinematics(model, data, *state)
            values.append(math.hypot(*pin.getFrameVelocity(model, data, index, pin.LOCAL).linear))
        return np.array(values).reshape(q.shape[:-1])

    pieces, travel, whole, peak = moving.pieces, 0.0, 0.0, 0.0
    for halving in range(_HALVINGS + 1):
        if not len(pieces.rows):
            break
        inside = speeds(*moving.inside(pieces.rows, pieces.parts(FINE.points)))
        times = moving.h[pieces.rows] * pieces.width
        whole = whole or float(times @ (inside @ FINE.weights))
        done = times * FINE.missed(inside[..., None])[:, 0] <= TRAVEL * whole
        done |= halving == _HALVINGS
        travel += float((times * (inside @ FINE.weights))[done].sum())
        # No polynomial is larger than all its coefficients together: few pieces have the peak.
        peak = max(peak, float(inside.max()))
        higher = np.abs(inside @ FINE.coefficients.T).sum(axis=1) > peak
        peak = max(peak, float(FINE.largest(inside[higher, :, None]).max(initial=0.0)))
        pieces = pieces.without(done).halves()
    return travel, peak


# -- what makes a study the same study ------------------------------------------------------------


def manifest_of(setup: Setup, sampling: Sampling) -> dict[str, Any]:
    """The manifest of a study: versions, digests, ranges, seed."""
    load, motion = setup.payload, setup.space.motion
    return {
        "pinloop": __version__,
        "pinocchio": pin.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "robot": setup.robot.name,
        "robot_sha256": _robot(setup.robot),
        "brakes_sha256": digest(setup.brakes.joints, setup.brakes.chain),
        "variables": [[item.column, item.low, item.high] for item in setup.variables],
        "sampling": repr(sampling),
        "category": repr(setup.category),
        "payload": load
        and [
            float(load.mass),
            np.asarray(load.com, dtype=float).tolist(),
            None if load.inertia is None else np.asarray(load.inertia, dtype=float).tolist(),
            load.frame,
        ],
        "gravity": setup.gravity,
        "trigger": repr(setup.trigger),
        "motion_sha256": motion
        and digest(motion.joints, motion.t.tolist(), motion.values.tolist()),
        "until": setup.until,
        "method": repr(setup.method),
        "standstill": repr(setup.standstill),
        "obstacles": {item.name: _obstacle(item) for item in setup.obstacles},
    } | ({"poses": "drawn again where loops do not close"} if setup.draws_again(sampling) else {})


def _robot(robot: Mechanism) -> str:
    """Kinematics, masses, limits, and what closes loops."""
    return digest(
        robot.model.saveToString(),
        [(loop.name, loop.pair, loop.body_a, loop.body_b) for loop in robot.loops],
        robot.couplings,
        robot.actuated,
        [(frame.name, np.array(frame.placement).tolist()) for frame in robot.model.frames],
    )


def _obstacle(obstacle: Obstacle) -> str:
    """Shape and place."""
    solid = obstacle.solid
    if isinstance(solid, coal.Box):
        shape = solid.halfSide.tolist()
    elif isinstance(solid, coal.Sphere):
        shape = solid.radius
    elif isinstance(solid, coal.BVHModelBase):
        shape = [np.asarray(solid.vertices()).tolist(), triangles_of(solid)]
    else:
        shape = np.asarray(solid.points()).tolist()
    return digest(type(solid).__name__, shape, np.array(obstacle.placement).tolist())
