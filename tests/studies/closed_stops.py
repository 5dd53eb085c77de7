"""Stops of one axis in closed form, and tables made of them; no test lives here.

Inertia I, brake torque T after a delay D, viscous torque c v from the signal on. While the brake is
still to come the speed falls as exp(-c t / I); after that v + T/c does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

import pinloop as pl


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
    inertia: float,
    speeds: Iterable[float],
    torque: float,
    delay: float = 0.0,
    viscous: float = 0.0,
) -> pl.StoppingTable:
    """Stops at some speeds."""
    rows = []
    for speed in speeds:
        time, angle = stop_of(inertia, abs(speed), torque, delay, viscous)
        rows.append(pl.Measured("axis", speed, time, angle))
    return pl.StoppingTable(tuple(rows), "closed form")


def only(one: pl.StoppingTable, *, times: bool = True, angles: bool = True) -> pl.StoppingTable:
    """The table without its times or without its angles."""
    rows = [
        replace(row, time=row.time if times else None, angle=row.angle if angles else None)
        for row in one.rows
    ]
    return pl.StoppingTable(tuple(rows), one.source)
