"""Protective separation distance from stops (ISO/TS 15066), term by term.

What standards make of times and ways, term by term. How far a robot comes towards a person is
measured in `advance`; how terms are printed is in `terms`.

    S_p = S_h + S_r + S_s + C + Z_d + Z_r                                (ISO/TS 15066)
    S_h = int_0^(T_r + T_s) v_h dt,   S_r = int_0^T_r v_r dt,   S_s = int_T_r^(T_r + T_s) v_s dt
    S_p = v_h (T_r + T_s) + v_r T_r + S_s + C + Z_d + Z_r                (simple form)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import flat_numbers, unit_vector
from ..errors import BadValue
from ..stopping import StopResult
from ..stopping.figures import listed, milliseconds
from ..stopping.links import positive
from ..stopping.remarks import PLANNING_AID
from ..stopping.sheet import Block, Cell, Facts, Notes, Sheet, printable
from .advance import Person, Shapes, shapes_of, ways_towards
from .arguments import at_least_zero, checked_stops
from .terms import Row, Term, term_grids, term_rows, write_terms

__all__ = ["Separation", "Term", "separation"]

Array = NDArray[np.float64]
Speed = float | Callable[[float], float]
Allowances = Mapping[str, tuple[float | None, str]]
"""Value [m], if it is given, and meaning by symbol."""

_TS = "ISO/TS 15066:2016, 5.5.4.2.3; now in ISO 10218:2025"
_WALKING = 1.6
"""Speed of a person where it is not measured (ISO/TS 15066) [m/s]."""
_STEP = 1e-3
"""Interval at which a speed that is given as a function is integrated [s]."""


@dataclass(frozen=True, eq=False)
class Separation:
    """A protective separation distance, term by term.

    Args:
        terms: S_h, S_r, S_s, C, Z_d, Z_r, in this order.
        reaction_time: T_r, from when the person is where they are measured to the command [s].
        stopping_time: T_s, from the command until the robot stands for good [s].
        human_speed: v_h, the largest if it varies [m/s].
        robot_speed: v_r, largest speed of any point of the robot towards the person in the
            reaction time [m/s].
        towards: where the person is, in words.
        stop: the stop that it belongs to: of several that with the largest distance.
        distances: S_p of each stop that was given [m].
        notes: what was assumed and what was left out, one sentence each.
    """

    terms: tuple[Term, ...]
    reaction_time: float
    stopping_time: float
    human_speed: float
    robot_speed: float
    towards: str
    stop: StopResult = field(repr=False)
    distances: tuple[float, ...]
    notes: tuple[str, ...] = field(repr=False)

    def __repr__(self) -> str:
        return f"<Separation of '{self.stop.robot.name}': {1e3 * self.distance:.1f} mm>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __getitem__(self, symbol: str) -> Term:
        """A term by its symbol, e.g. ``"S_s"``."""
        for term in self.terms:
            if term.symbol == symbol:
                return term
        known = ", ".join(term.symbol for term in self.terms)
        raise BadValue(f"there is no term '{symbol}'; there are: {known}")

    @property
    def distance(self) -> float:
        """S_p with the speeds integrated [m]."""
        return sum(term.value for term in self.terms)

    @property
    def simple(self) -> float:
        """S_p in its simple form, with the largest speeds [m]."""
        return sum(term.simple for term in self.terms)

    def table(self) -> Sheet:
        """Every term with its value, its formula and where it comes from."""
        stop = self.stop
        facts = [
            ("S_p", Cell(f"{1e3 * self.distance:.1f} mm, simple form {1e3 * self.simple:.1f} mm")),
            (
                "robot",
                Cell(printable(f"{stop.robot.name}, stop of category {stop.category.number}")),
            ),
            ("person", Cell(self.towards)),
            ("T_r", Cell(f"{milliseconds(self.reaction_time)} until the command")),
            ("T_s", Cell(f"{milliseconds(self.stopping_time)} from the command to standstill")),
            ("v_h", Cell(f"{self.human_speed:g} m/s")),
            ("v_r", Cell(f"{self.robot_speed:.4g} m/s, largest in the reaction time")),
        ]
        if len(self.distances) > 1:
            count = len(self.distances)
            facts.append(("stops", Cell(f"{count}; this is the one with the largest distance")))
        blocks: list[Block] = [
            Facts("Case", tuple(facts)),
            *term_grids(self.terms, self._total, both=True),
        ]
        if self.notes:
            blocks.append(Notes("Assumptions", tuple(map(printable, self.notes)), "caution"))
        title = Cell(f"Protective separation distance: {1e3 * self.distance:.0f} mm")
        return Sheet(title, tuple(blocks), PLANNING_AID)

    def rows(self) -> list[Row]:
        """The terms and their sum, a row each, units in the names."""
        return term_rows(self.terms, self._total)

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "distance_m": self.distance,
            "simple_distance_m": self.simple,
            "reaction_time_s": self.reaction_time,
            "stopping_time_s": self.stopping_time,
            "human_speed_m_per_s": self.human_speed,
            "robot_speed_m_per_s": self.robot_speed,
            "robot": self.stop.robot.name,
            "category": self.stop.category.number,
            "person": self.towards,
            "distances_m": list(self.distances),
            "terms": term_rows(self.terms, self._total)[:-1],
            "notes": list(self.notes),
            "disclaimer": PLANNING_AID,
        }

    def to_csv(self, path: str | Path) -> Path:
        """Write the terms and their sum as CSV, units in the column names."""
        return write_terms(path, self.rows())

    @property
    def _total(self) -> Term:
        formula = " + ".join(term.symbol for term in self.terms)
        return Term("S_p", "protective separation", self.distance, self.simple, formula, _TS)


def separation(
    stop: StopResult | Iterable[StopResult],
    *,
    direction: ArrayLike | None = None,
    point: ArrayLike | None = None,
    human_speed: Speed = _WALKING,
    detection: float = 0.0,
    intrusion: float | None = None,
    z_d: float | None = None,
    z_r: float | None = None,
    tolerance: float = 0.001,
    frames: Mapping[str, float] | None = None,
    thickness: float | None = None,
) -> Separation:
    """Protective separation distance that a stop asks for, term by term.

    The robot is all of its bodies, not its tool: S_r and S_s are the largest advances of any point
    of any body, from the start of the reaction and from the command on. Bodies are made of their
    collision shapes, or of the visual ones where there are no others; meshes count as their
    convex hulls. A point that comes nearer first and goes back later counts where it was nearest.

    Where the person is decides what counts as advance: along ``direction``; how much nearer any
    body comes to ``point``, where the person stands; or, if neither is given, horizontally in
    whichever direction is worst (in any direction where there is no gravity).

    Args:
        stop: a stop, or several: the largest distance counts. Robots must stand and be held.
        direction: direction from the robot to the person in the world, shape (3,).
        point: where the person is in the world [m], shape (3,).
        human_speed: speed of the person towards the robot [m/s], or a function of the time from
            the start of the reaction on [s]; 1.6 m/s where it is not measured (ISO/TS 15066).
        detection: from when the person is where they are measured until the signal of the stop
            [s]; together with the chain of the stop up to its command it is T_r. The robot
            is taken to be as fast in it as it is at most between signal and command.
        intrusion: C, how far a part of the body can reach before it is detected [m] (ISO 13855).
        z_d: uncertainty of the place of the person [m].
        z_r: uncertainty of the place of the robot [m].
        tolerance: how far S_r and S_s may lie above the true values [m].
        frames: further points of the robot (of its tool, corners of a payload): radius about it
            [m] by name of the frame.
        thickness: of a robot without shapes: how thick its bodies are about their frames [m].

    Raises:
        BadValue: an argument is impossible, a robot does not stand at the end, or it reaches the
            point where the person is.
    """
    stops = checked_stops(stop)
    meanings = {
        "C": ("intrusion", intrusion, "intrusion distance"),
        "Z_d": ("z_d", z_d, "uncertainty of the person's place"),
        "Z_r": ("z_r", z_r, "uncertainty of the robot's place"),
    }
    allowances = {
        symbol: (None if value is None else at_least_zero(name, value), meaning)
        for symbol, (name, value, meaning) in meanings.items()
    }
    before = at_least_zero("detection", detection, "a time >= 0 in seconds")
    person = _person(direction, point)
    found = [
        _separation(
            one,
            person,
            human_speed,
            before,
            allowances,
            shapes_of(one.run, positive("tolerance", tolerance), frames or {}, thickness),
        )
        for one in stops
    ]
    worst = max(found, key=lambda one: one.distance)
    return replace(worst, distances=tuple(one.distance for one in found))


# -- terms ------------------------------------------------------------------------------------


def _separation(
    stop: StopResult,
    person: Person,
    human_speed: Speed,
    detection: float,
    allowances: Allowances,
    shapes: Shapes,
) -> Separation:
    """The distance for one stop."""
    command = stop.chain.command
    T_r, T_s = detection + command, max(0.0, stop.stopping_time - command)
    v_h, S_h = _integrated(human_speed, T_r + T_s)
    ways = ways_towards(stop, person, shapes)
    v_r = ways.speed.value
    gone, before = "largest advance of any point of the robot, computed motion", ""
    if detection > 0:
        before = f", and v_r × {detection:.4g} s before the signal"
    whole = f"v_h (T_r + T_s) = {v_h:g} m/s × ({T_r:.4g} s + {T_s:.4g} s)"
    terms = (
        Term(
            "S_h",
            "person, until the robot stands",
            S_h,
            v_h * (T_r + T_s),
            f"integral of v_h over T_r + T_s; simple: {whole}" if callable(human_speed) else whole,
            _source_of(human_speed),
        ),
        Term(
            "S_r",
            "robot, until the command",
            ways.reaction.value + v_r * detection,
            v_r * T_r,
            f"{gone}{before}; simple: v_r T_r = {v_r:.4g} m/s × {T_r:.4g} s",
            f"computed stop, {_by(ways.reaction.body)}",
        ),
        Term(
            "S_s",
            "robot, from the command to standstill",
            ways.stopping.value,
            ways.stopping.value,
            gone,
            f"computed stop, {_by(ways.stopping.body)}",
        ),
        *(_allowance(symbol, *given) for symbol, given in allowances.items()),
    )
    notes = _notes(shapes, allowances)
    return Separation(terms, T_r, T_s, v_h, v_r, str(person), stop, (), notes)


def _integrated(speed: Speed, T: float) -> tuple[float, float]:
    """Largest value of a speed [m/s], and its integral up to T [m] by the trapezoidal rule."""
    if not callable(speed):
        value = _checked_speed(speed)
        return value, value * T
    times = np.linspace(0.0, T, max(2, int(np.ceil(T / _STEP)) + 1))
    v = np.array([_checked_speed(speed(float(t))) for t in times])
    return float(v.max()), float(np.sum(0.5 * (v[1:] + v[:-1]) * np.diff(times)))


def _source_of(speed: Speed) -> str:
    """Where the speed of the person comes from."""
    if callable(speed):
        return "v_h given as a function of time"
    return f"v_h: {_TS}, if not measured" if speed == _WALKING else "v_h given"


def _allowance(symbol: str, value: float | None, meaning: str) -> Term:
    if value is None:
        return Term(symbol, meaning, 0.0, 0.0, "0", "not given: taken as 0")
    return Term(symbol, meaning, value, value, f"{1e3 * value:g} mm", "given")


def _by(body: str) -> str:
    return f"'{body}' comes farthest" if body else "nothing comes nearer"


def _notes(shapes: Shapes, allowances: Allowances) -> tuple[str, ...]:
    """What was assumed, and what was left out."""
    absent = [symbol for symbol, (value, _) in allowances.items() if value is None]
    found = []
    if absent:
        found.append(f"{', '.join(absent)} not given and taken as 0")
    if "joint frames" in shapes.links.shapes.values():
        found.append("the robot has no shapes: the hulls of its joints and frames stand for it")
    if shapes.excess > 0.5001 * shapes.tolerance:
        found.append(
            f"round shapes cannot be had more exactly: S_r and S_s may be too large by "
            f"{1e3 * (shapes.excess + 0.5 * shapes.tolerance):.2g} mm"
        )
    bare = [body for body in shapes.links.bare if body not in shapes.frames]
    if bare:
        found.append(
            f"without shapes, and not looked at: {listed(bare)}; give radii about frames of theirs "
            "with frames="
        )
    return tuple(found)


# -- arguments --------------------------------------------------------------------------------


def _person(direction: ArrayLike | None, point: ArrayLike | None) -> Person:
    if direction is not None and point is not None:
        raise BadValue("give either the direction of the person or the point, not both")
    if point is not None:
        return Person(point=flat_numbers(point, "the point where the person is", 3))
    if direction is not None:
        return Person(direction=unit_vector(direction, "the direction of the person"))
    return Person()


def _checked_speed(value: Any) -> float:
    return at_least_zero("human_speed", value, "a speed >= 0 in m/s")
