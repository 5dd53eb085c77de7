"""A stop as files: a time series as CSV, everything that went in and came out as JSON."""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pinocchio as pin
import scipy
import yaml
from numpy.typing import NDArray

from ...boundary.csv import write_rows
from ...boundary.json import write_json as write_document
from ...boundary.values import origin
from ...errors import BadValue
from ...io.saving import loops_document, write_urdf
from ...model.description import Description
from ...model.mechanism import Mechanism
from ...simulation.trajectory import joint_columns
from ...tables.number_format import units_of
from ...units import column_name
from ...version import __version__
from ..brakes.brakes import Assumption, Brakes
from ..brakes.joint_brake import Chain
from .assumptions import PLANNING_AID
from .plan import Category
from .prepared_robot import Payload, payload_of
from .result import StopResult
from .result_document import (
    FORMAT,
    BrakesRecord,
    CategoryRecord,
    ChainRecord,
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

Array = NDArray[np.float64]
Record = TypeVar("Record")

_UNIT = re.compile("_(s|J|m|m_per_s)$")


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
    load = payload_of(result.history.train.robot, result.robot)
    return {
        "format": FORMAT,
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
    turns = units_of(result.robot, joint.name).si == "rad"
    units = {"unit": "rad", "torque_unit": "N m"} if turns else {"unit": "m", "torque_unit": "N"}
    return _filled(JointRecord, joint, units)


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
