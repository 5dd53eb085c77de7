"""The protective separation distance of one stop (ISO/TS 15066), term by term.

    S_p = S_h + S_r + S_s + C + Z_d + Z_r                                (ISO/TS 15066)
    S_h = int_0^(T_r + T_s) v_h dt,   S_r = int_0^T_r v_r dt,   S_s = int_T_r^(T_r + T_s) v_s dt
    S_p = v_h (T_r + T_s) + v_r T_r + S_s + C + Z_d + Z_r                (simple form)

How far a robot comes towards a person is measured in `advance`; of many stops `separation` takes
the worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import flat_numbers, public, unit_vector
from ...boundary.values import stored_fields
from ...errors import BadValue
from ...tables.number_format import listed, milliseconds
from ...tables.report import Report
from ...tolerances import SAME
from ..space.solids import require_length
from ..stopping import StopResult
from ..stopping.intervals import Interval
from ..stopping.result_document import PLANNING_AID
from ..studies.cases import Values
from ..studies.criteria import DISPLACEMENT, SEPARATION, Criterion
from ..studies.worst import interval_document
from .advance import Advance, Person, Shapes, collect_shapes, measure_advance
from .distances import Distance, Term, at_least_zero
from .editions import MONITORING_EDITIONS, Edition

Speed = float | Callable[[float], float]

WALKING = 1.6
"""Speed of a person where it is not measured (ISO/TS 15066) [m/s]."""
_STEP = 1e-3
"""Interval at which a speed that is given as a function is integrated [s]."""
_ALLOWANCES = {
    "C": ("intrusion", "intrusion distance"),
    "Z_d": ("z_d", "uncertainty of the person's place"),
    "Z_r": ("z_r", "uncertainty of the robot's place"),
}
"""Argument and meaning by symbol."""


@public
@dataclass(frozen=True, eq=False)
class Separation(Distance):
    """A protective separation distance, term by term.

    Args:
        terms: S_h, S_r, S_s, C, Z_d, Z_r, in this order.
        reaction_time: T_r, from when the person is where they are measured to the command [s].
        stopping_time: T_s, from the command until the robot is at rest for good [s].
        human_speed: v_h, the largest if it varies [m/s].
        robot_speed: v_r, largest speed of any point of the robot towards the person in the
            reaction time [m/s].
        towards: where the person is, in words.
        stop: the stop that it belongs to: of several that with the largest distance.
        distances: S_p of each stop that was given, or of each case of ``cases`` [m].
        notes: what was assumed and what was left out, one sentence each.
        criterion: the distance as something to be measured on a stop.
        case: of a study the case with the largest distance; None if a search found it, or without
            a study.
        cases: of a study the cases that stopped.
        results: of a study the file of its results.
        edition: standard that asks for it.
        sampled: the largest distance of its cases [m]; None without a search.
        searched: stops that the search made.
        values: values of the variables of the case that the search found.
    """

    has_simple_form = True

    terms: tuple[Term, ...]
    reaction_time: float
    stopping_time: float
    human_speed: float
    robot_speed: float
    towards: str
    stop: StopResult = field(repr=False)
    distances: tuple[float, ...]
    notes: tuple[str, ...] = field(repr=False)
    criterion: Criterion = field(repr=False)
    case: int | None = None
    cases: tuple[int, ...] = ()
    results: str = ""
    edition: Edition = MONITORING_EDITIONS["ISO/TS 15066:2016"]
    sampled: float | None = None
    searched: int = 0
    values: Values = field(default_factory=dict)

    __getstate__ = stored_fields

    @cached_property
    def interval(self) -> Interval | None:
        """Its 95 % interval, as brake data are uncertain; a few stops more, when asked for."""
        return self.criterion.interval(self.stop)

    @property
    def named(self) -> tuple[str, str, str]:
        """Symbol and meaning of the sum, and its standard."""
        return "S_p", "protective separation", self.edition.cited

    def __repr__(self) -> str:
        return f"<Separation of '{self.stop.robot.name}': {1e3 * self.distance:.1f} mm>"

    def table(self) -> Report:
        """Every term with its value, its formula and where it comes from."""
        stop, count = self.stop, len(self.distances)
        facts = [
            ("S_p", f"{1e3 * self.distance:.1f} mm, simple form {1e3 * self.simple:.1f} mm"),
            ("robot", f"{stop.robot.name}, stop of category {stop.category.number}"),
            ("person", self.towards),
            ("T_r", f"{milliseconds(self.reaction_time)} until the command"),
            ("T_s", f"{milliseconds(self.stopping_time)} from the command to standstill"),
            ("v_h", f"{self.human_speed:g} m/s"),
            ("v_r", f"{self.robot_speed:.4g} m/s, largest in the reaction time"),
            ("edition", self.edition.cited),
        ]
        if self.case is not None:
            text = f"case {self.case}, the largest distance of {count} cases in {self.results}"
            facts.append(("study", text))
        elif self.values and self.sampled is not None:
            text = (
                f"found by a search of {self.searched} stops from {count} cases in {self.results}, "
                f"of which the worst asks for {1e3 * self.sampled:.1f} mm"
            )
            facts.append(("study", text))
        elif count > 1:
            facts.append(("stops", f"{count}; this is the one with the largest distance"))
        return self.report("Protective separation distance", facts, self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "headline": self.table().title.text,
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
            "case": self.case,
            "cases": list(self.cases),
            "results": self.results or None,
            "edition": self.edition.name,
            "worst_sampled_m": self.sampled,
            "search_stops": self.searched,
            "values": dict(self.values),
            "interval": interval_document(self.interval),
            "terms": self.rows()[:-1],
            "notes": list(self.notes),
            "disclaimer": PLANNING_AID,
        }


def _person(direction: ArrayLike | None, point: ArrayLike | None) -> Person:
    if direction is not None and point is not None:
        raise BadValue("give either the direction of the person or the point, not both")
    if point is not None:
        return Person(point=flat_numbers(point, "the point where the person is", 3))
    if direction is not None:
        return Person(direction=unit_vector(direction, "the direction of the person"))
    return Person()


ASKED: dict[str, Any] = {
    **dict.fromkeys(("direction", "point", "intrusion", "z_d", "z_r", "frames", "thickness")),
    **{"human_speed": WALKING, "detection": 0.0, "tolerance": 0.001},
}
"""Arguments that say what is asked of each stop, and their defaults."""


def ask(**given: Any) -> Question:
    """What is asked of each stop, after checking the arguments; see `separation`."""
    asked = ASKED | given
    allowances = {symbol: asked[name] for symbol, (name, _) in _ALLOWANCES.items()}
    return Question(
        _person(asked["direction"], asked["point"]),
        asked["human_speed"],
        at_least_zero("detection", asked["detection"], "a time >= 0 in seconds"),
        {
            symbol: None if value is None else at_least_zero(_ALLOWANCES[symbol][0], value)
            for symbol, value in allowances.items()
        },
        require_length("tolerance", asked["tolerance"]),
        asked["frames"] or {},
        asked["thickness"],
    )


# -- of one stop ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of each stop; see `separation` for the arguments.

    Args:
        allowances: C, Z_d and Z_r by symbol [m]; None where not given.
    """

    person: Person
    human_speed: Speed
    detection: float
    allowances: Mapping[str, float | None]
    tolerance: float
    frames: Mapping[str, float]
    thickness: float | None

    def criterion(self) -> Criterion:
        """The distance as something that can be worst; its derivatives are those of the tool."""
        speed = WALKING if callable(self.human_speed) else self.human_speed
        outputs = {"stopping_time": speed, DISPLACEMENT: 1.0}
        return Criterion(SEPARATION, "separation_m", outputs, self.measure)

    def measure(self, stop: StopResult) -> float:
        """The distance for one stop [m]."""
        return self.answer(stop).distance

    def answer(self, stop: StopResult) -> Separation:
        """The distance for one stop."""
        shapes = collect_shapes(stop.run, self.tolerance, self.frames, self.thickness)
        advance = measure_advance(stop, self.person, shapes)
        command = stop.chain.command
        T_r, T_s = self.detection + command, max(0.0, stop.stopping_time - command)
        v_h, S_h = self._human_term(T_r, T_s)
        allowances = (_allowance_term(*item) for item in self.allowances.items())
        terms = (S_h, *self._robot_terms(advance, T_r), *allowances)
        notes, v_r = tuple(self._assumptions(shapes)), advance.speed.value
        whom, own = str(self.person), self.criterion()
        return Separation(terms, T_r, T_s, v_h, v_r, whom, stop, (), notes, own)

    def _human_term(self, T_r: float, T_s: float) -> tuple[float, Term]:
        """The largest speed of the person [m/s], and how far they come until the robot is at rest.

        A speed that is a function of time is integrated by the trapezoidal rule.
        """
        T, speed = T_r + T_s, self.human_speed
        if callable(speed):
            # Rounding errors of T must not shift the grid.
            times = np.linspace(0.0, T, max(2, int(np.ceil(T / _STEP * (1 - SAME))) + 1))
            v = np.array([_checked_speed(speed(float(t))) for t in times])
            v_h, S_h = float(v.max()), float(np.sum(0.5 * (v[1:] + v[:-1]) * np.diff(times)))
            source = "v_h given as a function of time"
        else:
            v_h = _checked_speed(speed)
            S_h = v_h * T
            source = (
                "v_h: ISO/TS 15066:2016, 5.5.4.2.3, if not measured"
                if speed == WALKING
                else "v_h given"
            )
        whole = f"v_h (T_r + T_s) = {v_h:g} m/s × ({T_r:.4g} s + {T_s:.4g} s)"
        formula = f"integral of v_h over T_r + T_s; simple: {whole}" if callable(speed) else whole
        meaning = "person, until the robot is at rest"
        return v_h, Term("S_h", meaning, S_h, v_h * T, formula, source)

    def _robot_terms(self, advance: Advance, T_r: float) -> tuple[Term, Term]:
        """Advance of the robot until the command, and from there on."""
        v_r, detection = advance.speed.value, self.detection
        origin, before = "largest advance of any point of the robot, computed motion", ""
        if detection > 0:
            before = f", and v_r × {detection:.4g} s before the signal"
        bodies = (advance.reaction.body, advance.stopping.body)
        nearest = (
            f"'{body}' comes farthest" if body else "nothing comes nearer" for body in bodies
        )
        by_reaction, by_stopping = (f"computed stop, {text}" for text in nearest)
        S_r, S_s = advance.reaction.value + v_r * detection, advance.stopping.value
        formula = f"{origin}{before}; simple: v_r T_r = {v_r:.4g} m/s × {T_r:.4g} s"
        return (
            Term("S_r", "robot, until the command", S_r, v_r * T_r, formula, by_reaction),
            Term("S_s", "robot, from the command to standstill", S_s, S_s, origin, by_stopping),
        )

    def _assumptions(self, shapes: Shapes) -> Iterator[str]:
        """Assumptions and omissions, one sentence each."""
        if absent := [symbol for symbol, value in self.allowances.items() if value is None]:
            yield f"{', '.join(absent)} not given and taken as 0"
        if self.detection > 0:
            yield (
                "before the signal the robot is assumed to approach at its largest speed between "
                "signal and command"
            )
        if "joint frames" in shapes.links.shapes.values():
            yield "the robot has no shapes: its bodies are the hulls of their joints and frames"
        if shapes.excess > 0.5001 * shapes.tolerance:
            yield (
                f"round shapes cannot be approximated better: S_r and S_s may be too large by "
                f"{1e3 * (shapes.excess + 0.5 * shapes.tolerance):.2g} mm"
            )
        if bare := [body for body in shapes.links.bare if body not in shapes.frames]:
            yield (
                f"without shapes, and left out: {listed(bare)}; give radii about their frames with "
                "frames="
            )


def _allowance_term(symbol: str, value: float | None) -> Term:
    """A term that is given, or taken as 0."""
    meaning = _ALLOWANCES[symbol][1]
    if value is None:
        return Term(symbol, meaning, 0.0, 0.0, "0", "not given: taken as 0")
    return Term(symbol, meaning, value, value, f"{1e3 * value:g} mm", "given")


def _checked_speed(value: Any) -> float:
    return at_least_zero("human_speed", value, "a speed >= 0 in m/s")
