"""States of runs as named columns with units: what tables of them hold, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boundary.csv import write_rows
from ..boundary.files import require_pyarrow, write_file
from ..boundary.marks import Array
from ..model.mechanism import Mechanism
from ..units import column_name


class JointMotion(NamedTuple):
    """The motion of one joint over time: a number per state, or a row where it has several axes.

    Args:
        t: times [s], shape (k,).
        position: its coordinates [rad, m]; an angle over more than a turn if it made one.
        velocity: its rates [rad/s, m/s].
        acceleration: [rad/s^2, m/s^2].
    """

    t: Array
    position: Array
    velocity: Array
    acceleration: Array


def joint_motion(
    robot: Mechanism, joint: str, t: Array, states: tuple[Array, Array, Array]
) -> JointMotion:
    """The motion of a joint, from configurations, velocities and accelerations at times."""
    q, *rates = states
    parts = joint_positions(robot, joint, q)[1], *(x[:, robot.coordinates(joint).v] for x in rates)
    return JointMotion(t, *(x[:, 0] if x.shape[1] == 1 else x for x in parts))


def columns(
    robot: Mechanism, t: Array, q: Array, v: Array, mode: NDArray[np.int64]
) -> dict[str, Array]:
    """Time, coordinates, velocities and number of the mode as named columns with units."""
    table: dict[str, Array] = {"t_s": t}
    for name in robot.joints:
        table |= joint_columns(robot, name, q, v)
    return table | {"mode": mode.astype(float)}


def joint_columns(robot: Mechanism, joint: str, q: Array, v: Array) -> dict[str, Array]:
    """Coordinates and velocities of a joint by the names of their columns."""
    at = robot.coordinates(joint)
    units, positions = joint_positions(robot, joint, q)
    rates = ["m/s" if linear else "rad/s" for linear in robot.is_translation[at.v]]
    return {
        column_name(joint, quantity, str(k) if len(kinds) > 1 else "", unit=unit): values[:, k]
        for quantity, kinds, values in (
            ("position", units, positions),
            ("velocity", rates, v[:, at.v]),
        )
        for k, unit in enumerate(kinds)
    }


def joint_positions(robot: Mechanism, joint: str, q: Array) -> tuple[list[str], Array]:
    """Coordinates of a joint for people: their units, and values of shape (k, number of units).

    An angle that is stored as cosine and sine is an angle here, over more than a turn if it made
    one; components of a quaternion, after the translations of the joint, have the unit "".
    """
    at = robot.coordinates(joint)
    units = ["m" if linear else "rad" for linear in robot.is_translation[at.v]]
    values, lengths = q[:, at.q], units.count("m")
    if at.nq == at.nv:
        return units, values
    if at.nv - lengths > 1:
        return ["m"] * lengths + [""] * (at.nq - lengths), values
    angle = np.unwrap(np.arctan2(values[:, lengths + 1], values[:, lengths]))
    return units, np.column_stack([values[:, :lengths], angle])


def write_csv(table: dict[str, Array], path: str | Path) -> Path:
    """Write a table as CSV, numbers to the last bit."""
    return write_rows(path, table, zip(*table.values(), strict=True))


def write_parquet(table: dict[str, Array], path: str | Path) -> Path:
    """Write a table as Parquet (needs the extra ``parquet``)."""
    pyarrow, parquet = require_pyarrow("or use to_csv")
    content = pyarrow.table(table)
    return write_file(path, lambda file: parquet.write_table(content, file))
