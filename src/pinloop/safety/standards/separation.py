"""Protective separation distance from stops or a study (ISO/TS 15066), term by term.

Which stop asks for the largest distance, and what users get. The terms of one stop are made in
`protective`; how far a robot comes towards a person is measured in `advance`, which cases of a
study count is in `casewise`, how terms are printed in `terms`.

    S_p = S_h + S_r + S_s + C + Z_d + Z_r                                (ISO/TS 15066)
    S_h = int_0^(T_r + T_s) v_h dt,   S_r = int_0^T_r v_r dt,   S_s = int_T_r^(T_r + T_s) v_s dt
    S_p = v_h (T_r + T_s) + v_r T_r + S_s + C + Z_d + Z_r                (simple form)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike

from ...boundary.arguments import flat_numbers, public, unit_vector
from ...errors import BadValue, printable
from ...tables.number_format import milliseconds
from ...tables.report import Block, Cell, KeyValues, Notes, Report
from ..space.solids import require_length
from ..stopping import StopResult
from ..stopping.assumptions import PLANNING_AID
from ..studies.study import Study
from .advance import Person, collect_shapes, measure_advance
from .distances import (
    Distance,
    Term,
    at_least_zero,
    checked_stops,
    measure_cases,
    standing_cases,
)
from .iso15066 import (
    STANDARD,
    WALKING,
    Allowances,
    Speed,
    build_allowance_term,
    build_human_term,
    build_robot_terms,
    list_assumptions,
)

__all__ = ["Separation", "Term", "separation"]


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
        case: of a study the case with the largest distance; else None.
        cases: of a study the cases that stopped.
        results: of a study the file of its results.
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
    case: int | None = None
    cases: tuple[int, ...] = ()
    results: str = ""

    def __repr__(self) -> str:
        return f"<Separation of '{self.stop.robot.name}': {1e3 * self.distance:.1f} mm>"

    def table(self) -> Report:
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
        count = len(self.distances)
        if self.case is not None:
            text = f"case {self.case}, the largest distance of {count} cases in {self.results}"
            facts.append(("study", Cell(printable(text))))
        elif count > 1:
            facts.append(("stops", Cell(f"{count}; this is the one with the largest distance")))
        blocks: list[Block] = [
            KeyValues("Case", tuple(facts)),
            *self.blocks(),
        ]
        if self.notes:
            blocks.append(Notes("Assumptions", tuple(map(printable, self.notes)), "caution"))
        title = Cell(f"Protective separation distance: {1e3 * self.distance:.0f} mm")
        return Report(title, tuple(blocks), PLANNING_AID)

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
            "case": self.case,
            "cases": list(self.cases),
            "results": self.results or None,
            "terms": self.rows()[:-1],
            "notes": list(self.notes),
            "disclaimer": PLANNING_AID,
        }

    @property
    def total(self) -> Term:
        """The sum as a term."""
        formula = " + ".join(term.symbol for term in self.terms)
        return Term("S_p", "protective separation", self.distance, self.simple, formula, STANDARD)


@public
def separation(
    stop: StopResult | Iterable[StopResult] | Study,
    *,
    direction: ArrayLike | None = None,
    point: ArrayLike | None = None,
    human_speed: Speed = WALKING,
    detection: float = 0.0,
    intrusion: float | None = None,
    z_d: float | None = None,
    z_r: float | None = None,
    tolerance: float = 0.001,
    frames: Mapping[str, float] | None = None,
    thickness: float | None = None,
    jobs: int = -1,
) -> Separation:
    """Protective separation distance that a stop, or the worst of many, asks for, term by term.

    The robot is all of its bodies, not its tool: S_r and S_s are the largest advances of any point
    of any body, from the start of the reaction and from the command on. Bodies are made of their
    collision shapes, or of the visual ones where there are no others; meshes count as their
    convex hulls. A point that comes nearer first and goes back later counts where it was nearest.

    Where the person is decides what counts as advance: along ``direction``; how much nearer any
    body comes to ``point``, where the person stands; or, if neither is given, horizontally in
    whichever direction is worst (in any direction where there is no gravity).

    The distance is that of one stop. Of several stops, or of the cases of a study, it is the
    largest one, computed for each by itself, and all terms are those of that stop: the longest
    time and the longest way of different stops are not added.

    Args:
        stop: a stop, several, or a `Study`: the largest distance counts. Robots must stand and be
            held in all of them; cases of a study that could not be computed are left out, and a
            note says so.
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
        jobs: number of processes for the cases of a study; all cores by default.

    Raises:
        BadValue: an argument is impossible, a robot does not stand at the end, or it reaches the
            point where the person is.
    """
    meanings = {
        "C": ("intrusion", intrusion, "intrusion distance"),
        "Z_d": ("z_d", z_d, "uncertainty of the person's place"),
        "Z_r": ("z_r", z_r, "uncertainty of the robot's place"),
    }
    allowances = {
        symbol: (None if value is None else at_least_zero(name, value), meaning)
        for symbol, (name, value, meaning) in meanings.items()
    }
    wanted = _Wanted(
        _person(direction, point),
        human_speed,
        at_least_zero("detection", detection, "a time >= 0 in seconds"),
        allowances,
        require_length("tolerance", tolerance),
        frames or {},
        thickness,
    )
    if isinstance(stop, Study):
        return _of_study(wanted, stop, jobs)
    separations = [wanted.of(each) for each in checked_stops(stop)]
    pairs = [(each.distance, each.simple) for each in separations]
    number, more = _largest(pairs, "stop", range(len(pairs)))
    return replace(
        separations[number],
        distances=tuple(each.distance for each in separations),
        notes=(*more, *separations[number].notes),
    )


def _of_study(wanted: _Wanted, study: Study, jobs: int) -> Separation:
    """The largest distance of the cases of a study."""
    standing = standing_cases(study)
    pairs, worst = measure_cases(study, standing.cases, wanted.of, jobs)
    number, more = _largest(pairs, "case", standing.cases)
    case = standing.cases[number]
    return replace(
        worst,
        distances=tuple(distance for distance, _ in pairs),
        notes=(*standing.notes, *more, *worst.notes),
        case=case,
        cases=standing.cases,
        results=str(study.path),
    )


def _largest(
    pairs: Sequence[tuple[float, float]], what: str, numbers: Sequence[int]
) -> tuple[int, tuple[str, ...]]:
    """Where the largest distance is, and a sentence if the simple form is larger elsewhere.

    Args:
        pairs: distances and their simple forms [m].
        what: what they belong to, for messages.
        numbers: their numbers, for messages.
    """
    first = max(range(len(pairs)), key=lambda k: pairs[k][0])
    other = max(range(len(pairs)), key=lambda k: pairs[k][1])
    if pairs[other][1] <= pairs[first][1]:
        return first, ()
    return first, (
        f"the simple form is largest for {what} {numbers[other]}: {1e3 * pairs[other][1]:.1f} mm",
    )


# -- of one stop ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Wanted:
    """What is asked of each stop; see `separation` for the arguments."""

    person: Person
    human_speed: Speed
    detection: float
    allowances: Allowances
    tolerance: float
    frames: Mapping[str, float]
    thickness: float | None

    def of(self, stop: StopResult) -> Separation:
        """The distance for one stop."""
        shapes = collect_shapes(stop.run, self.tolerance, self.frames, self.thickness)
        advance = measure_advance(stop, self.person, shapes)
        command = stop.chain.command
        T_r, T_s = self.detection + command, max(0.0, stop.stopping_time - command)
        v_h, S_h = build_human_term(self.human_speed, T_r, T_s)
        terms = (
            S_h,
            *build_robot_terms(advance, self.detection, T_r),
            *(build_allowance_term(symbol, *given) for symbol, given in self.allowances.items()),
        )
        notes = list_assumptions(shapes, self.allowances, self.detection)
        v_r = advance.speed.value
        return Separation(terms, T_r, T_s, v_h, v_r, str(self.person), stop, (), notes)


# -- arguments --------------------------------------------------------------------------------


def _person(direction: ArrayLike | None, point: ArrayLike | None) -> Person:
    if direction is not None and point is not None:
        raise BadValue("give either the direction of the person or the point, not both")
    if point is not None:
        return Person(point=flat_numbers(point, "the point where the person is", 3))
    if direction is not None:
        return Person(direction=unit_vector(direction, "the direction of the person"))
    return Person()
