"""A stop as files: a time series as CSV, everything that went in and came out as JSON."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import scipy
import yaml
from numpy.typing import NDArray

from ...boundary.csv import write_rows
from ...boundary.json import write_json as write_document
from ...boundary.registry import origin
from ...errors import BadValue
from ...io.saving import loops_document, write_urdf
from ...model.description import Description
from ...model.mechanism import Mechanism
from ...simulation.trajectory import joint_columns
from ...tables.number_format import units_of
from ...units import column_name
from ...version import __version__
from ..brakes.brakes import Assumption, Brakes
from .assumptions import PLANNING_AID
from .plan import Category
from .prepared_robot import payload_of
from .result import StopResult
from .result_document import (
    FORMAT,
    BrakesRecord,
    CategoryRecord,
    Document,
    JointRecord,
    LedgerRecord,
    ParameterRecord,
    PayloadRecord,
    RobotRecord,
    StateRecord,
    ToolRecord,
)
from .series import series_of
from .travel import JointStop

__all__ = [
    "as_document",
    "brakes_record",
    "category_record",
    "columns_of",
    "robot_record",
    "versions",
    "write_csv",
    "write_json",
]

Array = NDArray[np.float64]


# -- time series --------------------------------------------------------------------------------


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


def write_json(
    result: StopResult,
    path: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    stamp: bool = False,
) -> Path:
    """Write everything about a stop as JSON, see `StopResult.save_json`."""
    document = as_document(result, settings)
    if stamp:
        document["created"] = datetime.now(UTC).isoformat(timespec="seconds")
    return write_document(path, document)


def as_document(result: StopResult, settings: Mapping[str, str] | None = None) -> Document:
    """Everything about a stop as a document, see `result_document`."""
    chain = result.chain
    return {
        "format": FORMAT,
        "disclaimer": PLANNING_AID,
        "versions": versions(),
        "settings": dict(settings or {}),
        "robot": robot_record(result.history.train.robot),
        "brakes": brakes_record(result.brakes, result.assumptions),
        "category": category_record(result.category),
        "chain": {
            "sensor_s": chain.sensor,
            "controller_s": chain.controller,
            "drive_off_s": chain.drive_off,
            "command_s": chain.command,
        },
        "payload": _payload(result),
        "gravity_m_per_s2": _numbers(result.robot.gravity),
        "signal": _state(result, 0),
        "end": _state(result, -1),
        "outcome": result.outcome,
        "stopping_time_s": result.stopping_time,
        "reaction_time_s": result.reaction_time,
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
    if category.controlled:
        record["on_path"] = category.on_path
    if category.brakes_at_rest or category.time_limit is not None:
        record["time_limit_s"] = category.time_limit
    if where := origin(type(category)):
        record["defined_in"] = where
    return record


def _payload(result: StopResult) -> PayloadRecord | None:
    load = payload_of(result.history.train.robot, result.robot)
    if load is None:
        return None
    return {
        "frame": load.frame or "",
        "mass_kg": load.mass,
        "com_m": _numbers(load.com),
        "inertia_kg_m2": [_numbers(row) for row in np.asarray(load.inertia)],
    }


def _state(result: StopResult, k: int) -> StateRecord:
    robot, run = result.robot, result.run
    at = {name: robot.coordinates(name) for name in robot.joints}
    return {
        "q": {name: _numbers(run.q[k, place.q]) for name, place in at.items()},
        "v": {name: _numbers(run.v[k, place.v]) for name, place in at.items()},
    }


def _joint(result: StopResult, joint: JointStop) -> JointRecord:
    turns = units_of(result.robot, joint.name).si == "rad"
    return {
        "unit": "rad" if turns else "m",
        "torque_unit": "N m" if turns else "N",
        "reaction_time_s": joint.reaction_time,
        "braking_time_s": joint.braking_time,
        "time_s": joint.time,
        "reaction_angle": joint.reaction_angle,
        "braking_angle": joint.braking_angle,
        "angle": joint.angle,
        "travel": joint.travel,
        "excursion": joint.excursion,
        "peak_speed": joint.peak_speed,
        "impulse": float(joint.impulse),
        "peak_torque": joint.peak_torque,
        "peak_gear_torque": joint.peak_gear_torque,
        "gear_limit": joint.gear_limit,
        "gear_use": joint.gear_use,
        "dissipated_J": joint.dissipated,
        "slips": joint.slips,
        "load": joint.load,
        "hold": _finite(joint.hold),
        "margin": _finite(joint.margin),
        "state": joint.state,
    }


def _tool(result: StopResult) -> ToolRecord:
    point = result.point()
    return {
        "frame": point.frame,
        "start_m": _numbers(point.path[0]),
        "end_m": _numbers(point.path[-1]),
        "reaction_length_m": point.reaction_length,
        "braking_length_m": point.braking_length,
        "length_m": point.length,
        "displacement_m": point.displacement,
        "peak_speed_m_per_s": point.peak_speed,
    }


def _ledger(result: StopResult) -> LedgerRecord:
    ledger, robot = result.ledger, result.robot
    columns = {name: robot.coordinates(name).v for name in robot.joints}
    heat = {
        sink: {name: float(values[at].sum()) for name, at in columns.items()}
        for sink, values in ledger.dissipated.items()
    }
    return {
        "kinetic_before_J": ledger.kinetic_before,
        "potential_drop_J": ledger.potential_drop,
        "drive_work_J": ledger.drive_work,
        "dissipated_J": heat,
        "impacts_J": float(ledger.impacts),
        "kinetic_after_J": ledger.kinetic_after,
        "error_J": ledger.error,
        "relative_error": ledger.relative_error,
    }


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in np.asarray(values, dtype=float)]


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if math.isfinite(value) else None
