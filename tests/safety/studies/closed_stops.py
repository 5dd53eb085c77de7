"""Stops of one axis in closed form, tables made of them and fits to these; no test lives here.

Inertia I, brake torque T after a delay D, viscous torque c v from the signal on. While the brake is
still to come the speed falls as exp(-c t / I); after that v + T/c does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

import pinloop as pl

from ..stopping.robots_to_stop import on_axis, wheel

INERTIA = 2.0
"""Of the wheel that is fitted [kg m^2]."""


def stop_of(
    inertia: float, speed: float, torque: float, delay: float = 0.0, viscous: float = 0.0
) -> tuple[float, float]:
    """Time [s] and angle [rad]."""
    if viscous == 0.0:
        time = delay + inertia * speed / torque
        return time, speed * delay + inertia * speed**2 / (2 * torque)
    rate = viscous / inertia
    slower = speed * np.exp(-rate * delay)
    braking = np.log1p(viscous * slower / torque) / rate
    angle = (speed - slower) / rate + (inertia * slower - torque * braking) / viscous
    return float(delay + braking), float(angle)


def table(
    inertia: float, speeds: Iterable[float], torque: float, delay: float = 0.0, viscous: float = 0.0
) -> pl.safety.StoppingTable:
    """Stops at some speeds."""
    rows = []
    for speed in speeds:
        time, angle = stop_of(inertia, abs(speed), torque, delay, viscous)
        rows.append(pl.safety.Measured("axis", speed, time, angle))
    return pl.safety.StoppingTable(tuple(rows), "closed form")


def only(
    one: pl.safety.StoppingTable, *, times: bool = True, angles: bool = True
) -> pl.safety.StoppingTable:
    """The table without its times or without its angles."""
    rows = [
        replace(row, time=row.time if times else None, angle=row.angle if angles else None)
        for row in one.rows
    ]
    return pl.safety.StoppingTable(tuple(rows), one.source)


def values(made: pl.safety.Fit) -> dict[str, float]:
    return {one.parameter: one.value for one in made.parameters}


def fit(
    one: pl.safety.StoppingTable,
    names: Sequence[str],
    by: pl.Brakes | None = None,
    robot: pl.Mechanism | None = None,
) -> pl.safety.Fit:
    """A fit that has nothing to warn of."""
    return pl.safety.fit_brakes(
        robot or wheel(INERTIA), one, by or on_axis(dynamic_torque=1.0), parameters=names
    )
