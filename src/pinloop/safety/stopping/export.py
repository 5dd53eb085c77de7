"""A stop over time, and as files: its time series as CSV, all that went in and came out as JSON."""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pinocchio as pin
import scipy
import yaml
from numpy.typing import NDArray

from ...boundary.csv import write_rows
from ...boundary.files import write_json as write_document
from ...boundary.marks import Array
from ...boundary.values import origin
from ...errors import BadValue
from ...io.writers.urdf import loops_document, write_urdf
from ...model.description import Description
from ...model.mechanism import Mechanism
from ...simulation.columns import joint_columns
from ...tables.number_format import units_of
from ...units import column_name
from ...version import __version__
from ..brakes.brakes import Assumption, Brakes
from ..brakes.joint_brake import Chain
from .categories import Category
from .drivetrain import Drivetrain
from .loads import energies_along, sink_torques
from .phase import Phase
from .prepared_robot import Payload, payload_of
from .result import StopResult
from .result_document import (
    FORMAT,
    PLANNING_AID,
    BrakesRecord,
    CategoryRecord,
    ChainRecord,
    Document,
    IntervalRecord,
    JointRecord,
    LedgerRecord,
    ParameterRecord,
    PayloadRecord,
    RobotRecord,
    StateRecord,
    ToolRecord,
)
from .stop_equations import StopEquations
from .stop_table import headline_of
from .travel import JointStop, checked_interval, point_motion

Record = TypeVar("Record")

_UNIT = re.compile("_(s|J|m|m_per_s)$")


# -- time series --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Series:
    """A stop over time. Sliding joints: m and N for rad and N m.

    Torques are those at the joints. While a joint moves, ``brake`` and ``drive`` are taken before
    the losses of its gear. Where a joint stands, what holds it together is split in proportion
    to what brake, dry friction and drive could hold. ``torque`` is the sum of the three, plus
    what gears with losses take and their rotors need.

    Args:
        t: times [s], shape (k,).
        q: configurations, shape (k, nq).
        v: velocities, shape (k, nv).
        torque: of brake, friction, gear and drive together [N m], shape (k, nv).
        brake: of the brake [N m], shape (k, nv).
        friction: of bearings and gear, dry and viscous [N m], shape (k, nv).
        drive: of the drive, also when its motor is shorted [N m], shape (k, nv).
        tool: place of the tool in the world [m], shape (k, 3).
        tool_speed: its speed [m/s], shape (k,).
        kinetic: kinetic energy, rotors included [J], shape (k,).
        potential: potential energy [J], shape (k,).
    """

    t: Array
    q: Array
    v: Array
    torque: Array
    brake: Array
    friction: Array
    drive: Array
    tool: Array
    tool_speed: Array
    kinetic: Array
    potential: Array


def series_of(result: StopResult, every: float | None = 1e-3) -> Series:
    """Evaluate a stop at even times and at its end.

    Args:
        result: the stop.
        every: interval [s]; None: the states that were computed. Where something changes at once
            these have two rows with the same time, before and after; of even times it is the
            state after.
    """
    history, robot = result.history, result.robot
    stored, times = _instants(result.run.t, every)
    equations = history.equations()
    q, v = np.zeros((len(times), robot.nq)), np.zeros((len(times), robot.nv))
    torques = np.zeros((4, len(times), robot.nv))
    for row, (k, t) in enumerate(zip(stored.tolist(), times.tolist(), strict=True)):
        run = history.run
        inside = t != run.t[k]
        q[row], v[row] = history.step(k)(t) if inside else (run.q[k], run.v[k])
        history.enter(equations, k, inside=inside)
        torques[:, row] = _torques(equations, t, q[row], v[row])
    tool, speed = point_motion(robot, result.tool, q, v)
    energies = energies_along(equations, q, v)
    torque, brake, friction, drive = torques
    return Series(times, q, v, torque, brake, friction, drive, tool, speed, *energies)


def _instants(stored: Array, every: float | None) -> tuple[NDArray[np.intp], Array]:
    """The stored state that each instant follows on, and the instants."""
    if every is None:
        return np.arange(len(stored)), np.asarray(stored)
    end = float(stored[-1])
    interval = checked_interval(every, end, ", or None for the states that were computed")
    # Neither accumulated nor with the last bits of a product, which nobody wants to read.
    times = np.array([round(k * interval, 12) for k in range(int(end / interval) + 2)])
    times = np.append(times[times < end], end)
    return np.searchsorted(stored, times, side="right") - 1, times


def _torques(equations: StopEquations, t: float, q: Array, v: Array) -> Array:
    """All torques together, and those of brakes, friction and drives, shape (4, nv)."""
    train, phase, solved = equations.train, equations.phase, equations.solve(t, q, v)
    against = sink_torques(train, phase.sliding, phase.follow, (t, q, v), solved)
    brake, dry, viscous, shorted, _, drive = against
    parts = np.array([-brake, -dry - viscous, drive - shorted])
    held = _shares(train, phase, t) * solved.holding_torque
    return np.vstack([solved.torque, np.where(phase.stuck & ~phase.follow, held, parts)])


def _shares(train: Drivetrain, phase: Phase, t: float) -> Array:
    """What brake, dry friction and drive could hold at rest, as parts of one, shape (3, nv)."""
    sliding = phase.sliding
    motor, joint = train.resting_brake(t, sliding, 1)
    brake = motor / train.efficiency + joint
    brake = np.where(phase.blocked > 0, np.inf, brake)
    powered = sliding.drives & (sliding.saturated_drive_sign == 0.0)
    drive = np.where(powered, train.drive(sliding) / train.efficiency, 0.0)
    able = np.array([brake, train.friction(np.zeros(len(brake))), drive])
    endless = np.isinf(able)
    able = np.where(endless.any(axis=0), endless.astype(float), able)
    whole = able.sum(axis=0)
    # Nothing can hold, so nothing is held: the part does not matter.
    return np.asarray(able / np.where(whole > 0, whole, 1.0))


def write_csv(result: StopResult, path: str | Path, every: float | None = 1e-3) -> Path:
    """Write a stop over time as CSV, see `StopResult.to_csv`."""
    table = columns_of(result, every)
    return write_rows(path, table, zip(*table.values(), strict=True))


def columns_of(result: StopResult, every: float | None = 1e-3) -> dict[str, Array]:
    """The columns of the CSV file by name."""
    robot, series = result.robot, series_of(result, every)
    table: dict[str, Array] = {"t_s": series.t}
    for name in robot.joints:
        table |= joint_columns(robot, name, series.q, series.v)
        if name not in result.brakes.joints:
            continue
        column, unit = robot.coordinates(name).v.start, units_of(robot, name).torque
        kind = "torque" if unit == "N m" else "force"
        parts = {
            "": series.torque,
            "brake": series.brake,
            "friction": series.friction,
            "drive": series.drive,
        }
        table |= {
            column_name(name, part, kind, unit=unit): values[:, column]
            for part, values in parts.items()
        }
    table |= {f"tool_{axis}_m": series.tool[:, k] for k, axis in enumerate("xyz")}
    return table | {
        "tool_speed_m_per_s": series.tool_speed,
        "kinetic_energy_J": series.kinetic,
        "potential_energy_J": series.potential,
    }


# -- document -----------------------------------------------------------------------------------


def write_json(result: StopResult, path: str | Path, *, stamp: bool = False) -> Path:
    """Write everything about a stop as JSON, see `StopResult.save_json`."""
    document = as_document(result)
    if stamp:
        document["created"] = datetime.now(UTC).isoformat(timespec="seconds")
    return write_document(path, document)


def as_document(result: StopResult, settings: Mapping[str, str] | None = None) -> Document:
    """Everything about a stop as a document, see `result`."""
    load = payload_of(result.history.train.robot, result.robot)
    return {
        "format": FORMAT,
        "headline": headline_of(result).text,
        "disclaimer": PLANNING_AID,
        "versions": versions(),
        "settings": dict(settings or {}),
        "robot": robot_record(result.history.train.robot),
        "brakes": brakes_record(result.brakes, result.assumptions),
        "category": category_record(result.category),
        "chain": chain_record(result.chain),
        "payload": None if load is None else payload_record(load, load.frame or ""),
        "gravity_m_per_s2": _numbers(result.robot.gravity),
        "signal": _state(result, 0),
        "end": _state(result, -1),
        "outcome": result.outcome,
        "stopping_time_s": result.stopping_time,
        "reaction_time_s": result.reaction_time,
        "power_off_s": result.power_off,
        "brakes_closed_s": result.brakes_closed,
        "guesses": {
            "parameters": list(result.guesses.parameters),
            "missing": list(result.guesses.missing),
        },
        "intervals": [
            _filled(IntervalRecord, x, {"shares": dict(x.shares)}) for x in result.intervals
        ],
        "joints": {name: _joint(result, joint) for name, joint in result.joints.items()},
        "tool": _tool(result),
        "ledger": _ledger(result),
        "events": [{"t_s": float(t), "what": what} for t, what in result.events],
        "warnings": list(result.warnings),
    }


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "pinloop": __version__,
        "pinocchio": pin.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def robot_record(robot: Mechanism) -> RobotRecord:
    """What a robot is."""
    file, digest = _file(robot.description.source)
    content = _content(robot.description)
    return {"name": robot.name, "file": file, "sha256": digest, "content_sha256": content}


def _file(name: str) -> tuple[str | None, str | None]:
    """Name and digest of a file, if there is one of this name."""
    path = Path(name)
    try:
        if not name or not path.is_file():
            return None, None
        return name, hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadValue(f"{name} cannot be read again: {error.strerror}") from None


def _content(description: Description) -> str | None:
    """Digest of what a robot is, without its looks: URDF and loops as `Mechanism.save` has them."""
    bare = replace(description, geometry=())
    try:
        text = write_urdf(bare) + yaml.safe_dump(loops_document(bare))
    except BadValue:  # a name that XML cannot hold: the document says null
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def brakes_record(brakes: Brakes, assumptions: Iterable[Assumption]) -> BrakesRecord:
    """Brakes with all their numbers."""
    file, digest = _file(brakes.source)
    chain: dict[str, ParameterRecord] = {}
    joints: dict[str, dict[str, ParameterRecord]] = {name: {} for name in brakes.joints}
    for row in assumptions:
        record = brakes.joints[row.joint] if row.joint else brakes.chain
        table = joints[row.joint] if row.joint else chain
        table[row.parameter] = _parameter(row, record.notes.get(row.parameter))
    return {
        "robot": brakes.robot,
        "file": file,
        "sha256": digest,
        "faults": list(brakes.faults),
        "chain": chain,
        "joints": joints,
    }


def _parameter(row: Assumption, note: str | None) -> ParameterRecord:
    record: ParameterRecord = {
        "value": row.value,
        "unit": row.unit,
        "source": row.source,
        "given": row.given,
    }
    if note is not None:
        record["note"] = note
    return record


def category_record(category: Category) -> CategoryRecord:
    """A category with its settings."""
    record: CategoryRecord = {"number": category.number}
    if category.function is not None:
        record["safety_function"] = category.function.value
    if category.controlled:
        record["on_path"] = category.on_path
        if category.law is not None:
            record["law"] = category.law.name
    if category.brakes_at_rest or category.time_limit is not None:
        record["time_limit_s"] = category.time_limit
    if where := origin(type(category)):
        record["defined_in"] = where
    return record


def chain_record(chain: Chain) -> ChainRecord:
    """A signal chain."""
    return _filled(ChainRecord, chain, {})


def payload_record(load: Payload, frame: str) -> PayloadRecord:
    """What a robot carries in a frame, a point mass if nothing else is said."""
    inertia = np.zeros((3, 3)) if load.inertia is None else np.asarray(load.inertia)
    return {
        "frame": frame,
        "mass_kg": float(load.mass),
        "com_m": _numbers(load.com),
        "inertia_kg_m2": [_numbers(row) for row in inertia],
    }


def _state(result: StopResult, k: int) -> StateRecord:
    robot, run = result.robot, result.run
    at = {name: robot.coordinates(name) for name in robot.joints}
    return {
        "q": {name: _numbers(run.q[k, place.q]) for name, place in at.items()},
        "v": {name: _numbers(run.v[k, place.v]) for name, place in at.items()},
    }


def _joint(result: StopResult, joint: JointStop) -> JointRecord:
    units = units_of(result.robot, joint.name)
    return _filled(JointRecord, joint, {"unit": units.si, "torque_unit": units.torque})


def _tool(result: StopResult) -> ToolRecord:
    point = result.point()
    ends = {"start_m": _numbers(point.path[0]), "end_m": _numbers(point.path[-1])}
    return _filled(ToolRecord, point, ends)


def _ledger(result: StopResult) -> LedgerRecord:
    columns = {name: result.robot.coordinates(name).v for name in result.robot.joints}
    heat = {
        sink: {name: float(values[at].sum()) for name, at in columns.items()}
        for sink, values in result.ledger.dissipated.items()
    }
    return _filled(LedgerRecord, result.ledger, {"dissipated_J": heat})


def _filled(kind: type[Record], value: object, given: Mapping[str, Any]) -> Record:
    """A record of what is given, and of the attributes that its keys name, but for their units."""
    attributes = {key: _UNIT.sub("", key) for key in kind.__annotations__}
    return kind(
        **{
            key: given[key] if key in given else _plain(getattr(value, name))
            for key, name in attributes.items()
        }
    )


def _plain(value: Any) -> Any:
    """A number as JSON has it, which knows no infinity; all else as it is."""
    if not isinstance(value, float | np.floating):
        return value
    return float(value) if math.isfinite(value) else None


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in np.asarray(values, dtype=float)]
