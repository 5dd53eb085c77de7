"""The terms of a protective separation distance (ISO/TS 15066) for one stop, and its assumptions.

Lengths and times to terms with their formulas and sources. Which stop asks for the largest
distance, and what users get, is in `separation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...tables.number_format import listed
from ...tolerances import SAME
from .advance import Advance, Shapes
from .distances import Term, at_least_zero

__all__ = [
    "STANDARD",
    "WALKING",
    "Allowances",
    "Speed",
    "build_allowance_term",
    "build_human_term",
    "build_robot_terms",
    "list_assumptions",
]

Speed = float | Callable[[float], float]
Allowances = Mapping[str, tuple[float | None, str]]
"""Value [m], if it is given, and meaning by symbol."""

STANDARD = "ISO/TS 15066:2016, 5.5.4.2.3; now in ISO 10218:2025"
WALKING = 1.6
"""Speed of a person where it is not measured (ISO/TS 15066) [m/s]."""
_STEP = 1e-3
"""Interval at which a speed that is given as a function is integrated [s]."""


def build_human_term(speed: Speed, T_r: float, T_s: float) -> tuple[float, Term]:
    """The largest speed of the person [m/s], and S_h: how far they come until the robot is at rest.

    Args:
        speed: their speed [m/s], or a function of the time from the start of T_r on [s].
        T_r: until the command [s].
        T_s: from there until the robot is at rest [s].
    """
    v_h, S_h = _integrated(speed, T_r + T_s)
    whole = f"v_h (T_r + T_s) = {v_h:g} m/s × ({T_r:.4g} s + {T_s:.4g} s)"
    return v_h, Term(
        "S_h",
        "person, until the robot is at rest",
        S_h,
        v_h * (T_r + T_s),
        f"integral of v_h over T_r + T_s; simple: {whole}" if callable(speed) else whole,
        _source_of(speed),
    )


def build_robot_terms(advance: Advance, detection: float, T_r: float) -> tuple[Term, Term]:
    """S_r and S_s: advance of the robot until the command, and from there on.

    Args:
        advance: advance of the robot from the signal on.
        detection: part of T_r that is before the signal [s].
        T_r: until the command [s].
    """
    v_r = advance.speed.value
    origin, before = "largest advance of any point of the robot, computed motion", ""
    if detection > 0:
        before = f", and v_r × {detection:.4g} s before the signal"
    return (
        Term(
            "S_r",
            "robot, until the command",
            advance.reaction.value + v_r * detection,
            v_r * T_r,
            f"{origin}{before}; simple: v_r T_r = {v_r:.4g} m/s × {T_r:.4g} s",
            f"computed stop, {_by(advance.reaction.body)}",
        ),
        Term(
            "S_s",
            "robot, from the command to standstill",
            advance.stopping.value,
            advance.stopping.value,
            origin,
            f"computed stop, {_by(advance.stopping.body)}",
        ),
    )


def build_allowance_term(symbol: str, value: float | None, meaning: str) -> Term:
    """A term that is given, or taken as 0."""
    if value is None:
        return Term(symbol, meaning, 0.0, 0.0, "0", "not given: taken as 0")
    return Term(symbol, meaning, value, value, f"{1e3 * value:g} mm", "given")


def list_assumptions(shapes: Shapes, allowances: Allowances, detection: float) -> tuple[str, ...]:
    """Assumptions and omissions, one sentence each.

    Args:
        shapes: the pieces of the robot that count.
        allowances: given lengths.
        detection: part of T_r that is before the signal [s].
    """
    absent = [symbol for symbol, (value, _) in allowances.items() if value is None]
    notes = []
    if absent:
        notes.append(f"{', '.join(absent)} not given and taken as 0")
    if detection > 0:
        notes.append(
            "before the signal the robot is assumed to approach at its largest speed between "
            "signal and command"
        )
    if "joint frames" in shapes.links.shapes.values():
        notes.append("the robot has no shapes: its bodies are the hulls of their joints and frames")
    if shapes.excess > 0.5001 * shapes.tolerance:
        notes.append(
            f"round shapes cannot be approximated better: S_r and S_s may be too large by "
            f"{1e3 * (shapes.excess + 0.5 * shapes.tolerance):.2g} mm"
        )
    bare = [body for body in shapes.links.bare if body not in shapes.frames]
    if bare:
        notes.append(
            f"without shapes, and left out: {listed(bare)}; give radii about their frames with "
            "frames="
        )
    return tuple(notes)


# -- parts -------------------------------------------------------------------------------------


def _integrated(speed: Speed, T: float) -> tuple[float, float]:
    """Largest value of a speed [m/s], and its integral up to T [m] by the trapezoidal rule."""
    if not callable(speed):
        value = _checked_speed(speed)
        return value, value * T
    # Rounding errors of T must not shift the grid.
    times = np.linspace(0.0, T, max(2, int(np.ceil(T / _STEP * (1 - SAME))) + 1))
    v = np.array([_checked_speed(speed(float(t))) for t in times])
    return float(v.max()), float(np.sum(0.5 * (v[1:] + v[:-1]) * np.diff(times)))


def _source_of(speed: Speed) -> str:
    """Where the speed of the person comes from."""
    if callable(speed):
        return "v_h given as a function of time"
    return f"v_h: {STANDARD}, if not measured" if speed == WALKING else "v_h given"


def _by(body: str) -> str:
    return f"'{body}' comes farthest" if body else "nothing comes nearer"


def _checked_speed(value: Any) -> float:
    return at_least_zero("human_speed", value, "a speed >= 0 in m/s")
