"""Minimum distance of a safeguard from a hazard zone by ISO 13855: S = K T + C.

The edition of 2010; in that of 2024 what is C here is called ``D_DS + Z``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...boundary.arguments import public
from ...errors import BadValue, printable
from ...tables.number_format import milliseconds
from ...tables.report import Cell, KeyValues, Notes, Report
from ..stopping import StopResult
from ..stopping.assumptions import PLANNING_AID
from ..studies.study import Study
from .distances import (
    Distance,
    Term,
    at_least_zero,
    checked_stops,
    standing_cases,
)

__all__ = ["MinimumDistance", "minimum_distance"]

_STANDARD = "ISO 13855:2010"


@public
@dataclass(frozen=True, eq=False)
class MinimumDistance(Distance):
    """A minimum distance, term by term.

    Args:
        terms: K T and C; and what is missing to the distance up to which the fast approach
            counts, where the slow one alone would give less, or to the least distance.
        time: T, from the approach to the standstill of the robot [s].
        speed: K that was used [m/s].
        notes: what was assumed and what was left out, one sentence each.
        case: of a study the case with the longest stopping time; else None.
    """

    has_simple_form = False

    terms: tuple[Term, ...]
    time: float
    speed: float
    notes: tuple[str, ...] = field(default=(), repr=False)
    case: int | None = None

    def __repr__(self) -> str:
        return f"<MinimumDistance: {1e3 * self.distance:.1f} mm>"

    def table(self) -> Report:
        """Every term with its value, its formula and where it comes from."""
        facts = [
            ("S", Cell(f"{1e3 * self.distance:.1f} mm")),
            ("T", Cell(f"{milliseconds(self.time)} from the approach to standstill")),
            ("K", Cell(f"{1e3 * self.speed:g} mm/s")),
        ]
        if self.case is not None:
            facts.append(("study", Cell(f"case {self.case}, the longest stopping time")))
        return Report(
            Cell(f"Minimum distance: {1e3 * self.distance:.0f} mm"),
            (
                KeyValues("Case", tuple(facts)),
                *self.blocks(),
                Notes("Assumptions", tuple(map(printable, self.notes)), "caution"),
            ),
            PLANNING_AID,
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "distance_m": self.distance,
            "time_s": self.time,
            "speed_m_per_s": self.speed,
            "case": self.case,
            "terms": self.rows()[:-1],
            "notes": list(self.notes),
            "disclaimer": PLANNING_AID,
        }

    @property
    def total(self) -> Term:
        """The sum as a term."""
        formula = " + ".join(term.symbol for term in self.terms)
        return Term("S", "minimum distance", self.distance, self.distance, formula, _STANDARD)


@public
def minimum_distance(
    stop: StopResult | float | Iterable[StopResult] | Study,
    *,
    detection: float = 0.0,
    intrusion: float = 0.0,
    fast: float = 2.0,
    slow: float = 1.6,
    threshold: float = 0.5,
    least: float = 0.1,
) -> MinimumDistance:
    """Minimum distance of a safeguard from the hazard zone, ``S = K T + C`` (ISO 13855).

    With the fast approach first; if that gives more than ``threshold``, with the slow one, but
    not less than ``threshold``; and never less than ``least``. The hazard zone is everything that
    the robot sweeps until it is at rest, see `pinloop.safety.space.swept.swept_volume`.

    The defaults are those for detection zones across the approach that detect 40 mm or less. For
    others (zones along the approach, single beams, mats) give ``fast`` and ``slow`` the same 1.6
    m/s and ``intrusion`` as the standard says.

    Args:
        stop: a stop, several, or a `Study`: the longest stopping time counts, and robots must
            stand and be held in all of them; or that time itself [s].
        detection: from the approach of the person until the signal of the stop [s].
        intrusion: C, how far a part of the body can reach before it is detected [m].
        fast: K for short distances [m/s].
        slow: K for long distances [m/s].
        threshold: distance up to which the fast approach counts [m].
        least: the least distance [m].

    Raises:
        BadValue: an argument is impossible, or a robot does not stand at the end.
    """
    longest, case, notes = _stopping_time(stop)
    T = longest + at_least_zero("detection", detection, "a time >= 0 in seconds")
    C = at_least_zero("intrusion", intrusion)
    fast = at_least_zero("fast", fast, "a speed >= 0 in m/s")
    slow = at_least_zero("slow", slow, "a speed >= 0 in m/s")
    threshold = at_least_zero("threshold", threshold)
    if slow > fast:
        raise BadValue(f"slow is {slow} m/s, more than fast, {fast} m/s")
    least = at_least_zero("least", least)
    near = fast * T + C <= threshold
    K = fast if near else slow
    rule = "up to" if near else "above"
    by = _STANDARD if (fast, slow, threshold, least) == (2.0, 1.6, 0.5, 0.1) else "given"
    source = f"K: {by}, S {rule} {1e3 * threshold:g} mm with {1e3 * fast:g} mm/s"
    formula = f"{1e3 * K:g} mm/s × {T:.4g} s"
    terms = [
        Term("K T", "approach until the robot is at rest", K * T, K * T, formula, source),
        Term("C", "intrusion distance", C, C, f"{1e3 * C:g} mm", "given" if C else "taken as 0"),
    ]
    floor = least if near else max(least, threshold)
    if floor > K * T + C:
        missing = floor - K * T - C
        formula = f"{1e3 * floor:g} mm - K T - C"
        terms.append(Term("rest", "not less than this", missing, missing, formula, by))
    return MinimumDistance(tuple(terms), T, K, (*notes, *_assumed(detection, C)), case)


def _assumed(detection: float, C: float) -> tuple[str, ...]:
    """What a distance rests on, one sentence each."""
    absent = [name for name, value in (("detection", detection), ("C", C)) if not value]
    notes = [
        "S counts from everything that the robot sweeps until it is at rest, not from its tool"
    ]
    if absent:
        notes.append(f"{', '.join(absent)} not given and taken as 0")
    return tuple(notes)


def _stopping_time(
    stop: StopResult | float | Iterable[StopResult] | Study,
) -> tuple[float, int | None, tuple[str, ...]]:
    """The longest stopping time [s], its case in a study, and what was left out there."""
    if isinstance(stop, (int, float)):
        return at_least_zero("the stopping time", stop, "a time >= 0 in seconds"), None, ()
    if isinstance(stop, Study):
        standing = standing_cases(stop)
        case = max(standing.times, key=standing.times.__getitem__)
        return standing.times[case], case, standing.notes
    return max(result.stopping_time for result in checked_stops(stop)), None, ()
