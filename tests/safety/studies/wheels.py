"""A wheel and two carriages whose stops are known in closed form, for studies; no test lives here.

Wheel of inertia I [kg m^2] on a vertical axis, command at c, brake delay d, brake torque T: it
turns on for c + d, then slows down by T / I.
"""

from __future__ import annotations

from pathlib import Path

import pinloop as pl

from ..stopping.robots_to_stop import train, wheel

INERTIA, TORQUE, TOLERANCE = 2.0, 10.0, 0.25
COMMAND, DELAY = 0.02, 0.05
FASTEST = 3.0

BRAKES = pl.Brakes(
    {
        "axis": pl.safety.JointBrake(
            side="joint", dynamic_torque=TORQUE, tolerance=TOLERANCE, delay=DELAY
        )
    },
    pl.safety.Chain(sensor=0.005, controller=0.015),
)
SPACE = pl.safety.Space(
    speed={"axis": (-FASTEST, FASTEST)}, delay={"axis": (0.0, 0.04)}, band={"axis": (-1.0, 1.0)}
)
"""Speed, delay and band; the pose does nothing."""


def robot() -> pl.Mechanism:
    return wheel(INERTIA)


def study(
    sampling: pl.safety.Grid | pl.safety.Random | pl.safety.Sobol | pl.safety.Corners,
    results: Path | None = None,
    jobs: int = 1,
    space: pl.safety.Space = SPACE,
    search: pl.safety.Search | bool = False,
) -> pl.Study:
    return pl.study(robot(), BRAKES, space, sampling, results=results, jobs=jobs, search=search)


def stopping(speed: float, late: float = 0.0, band: float = 0.0) -> tuple[float, float]:
    """Time [s] and angle [rad] of the wheel's stop."""
    torque = TORQUE * (1.0 + band * TOLERANCE)
    free = COMMAND + DELAY + late
    return free + abs(speed) * INERTIA / torque, abs(speed) * free + speed**2 * INERTIA / 2 / torque


# -- two carriages --------------------------------------------------------------------------------

MASSES, FORCES, BAND = (4.0, 1.0), (60.0, 5.0), 0.4

CARRIAGES_BRAKES = pl.Brakes(
    {
        name: pl.safety.JointBrake(side="joint", dynamic_torque=force, tolerance=BAND)
        for name, force in zip("ab", FORCES, strict=True)
    }
)
CARRIAGES_SPACE = pl.safety.Space(
    pose={"a": 0.0, "b": 0.0},
    speed={"a": (0.5, 2.0), "b": 0.0},
    band={"a": (-1.0, 1.0), "b": (-1.0, 1.0)},
)


def carriages() -> pl.Mechanism:
    """Carriage b on top of carriage a, along the same line."""
    return train(*MASSES)


def sliding(speed: float, band_a: float, band_b: float) -> tuple[float, float, float]:
    """Time of the stop, way of a, and way of b on a, which shoots forward as a brakes.

    The brake of b pushes a forward: a slows down by (F_a - F_b) / m_a, b by F_b / m_b.
    """
    force_a, force_b = FORCES[0] * (1 + BAND * band_a), FORCES[1] * (1 + BAND * band_b)
    slow_a, slow_b = (force_a - force_b) / MASSES[0], force_b / MASSES[1]
    assert slow_a > slow_b, "b would stick to a"
    way_a, way_b = speed**2 / 2 / slow_a, speed**2 / 2 / slow_b
    return speed / slow_b, way_a, way_b - way_a
