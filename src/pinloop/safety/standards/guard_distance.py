"""Minimum distance of a safeguard from the hazard zone, ``S = K T + C`` (ISO 13855)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...boundary.arguments import public
from ...boundary.values import stored_fields
from ...errors import BadValue
from ...tables.number_format import milliseconds
from ...tables.report import Report
from ..stopping import StopResult
from ..stopping.intervals import Interval
from ..stopping.result_document import PLANNING_AID
from ..studies.study import Study
from ..studies.worst import interval_document
from .distances import Distance, Term, at_least_zero, checked_stops, standing_cases
from .editions import GUARD_EDITIONS, Edition, edition_by_name


@public
@dataclass(frozen=True)
class ApproachSpeed:
    """How fast people come to a safeguard: K, by the distance that comes out.

    The defaults are those for detection zones across the approach that detect 40 mm or less. For
    others (zones along the approach, single beams, mats): ``ApproachSpeed(fast=1.6)``.

    Args:
        fast: K for short distances [m/s].
        slow: K for long distances [m/s].
        threshold: distance up to which the fast approach counts [m].
        least: the least distance [m].
    """

    fast: float = 2.0
    slow: float = 1.6
    threshold: float = 0.5
    least: float = 0.1

    def __post_init__(self) -> None:
        for name in ("fast", "slow"):
            at_least_zero(name, getattr(self, name), "a speed >= 0 in m/s")
        for name in ("threshold", "least"):
            at_least_zero(name, getattr(self, name))
        if self.slow > self.fast:
            raise BadValue(f"slow is {self.slow} m/s, more than fast, {self.fast} m/s")


@public
@dataclass(frozen=True, eq=False)
class MinimumDistance(Distance):
    """A minimum distance, term by term.

    Args:
        terms: K T, and C (D_DS and Z in the edition of 2024); and what is missing to the distance
            up to which the fast approach counts, where the slow one alone would give less, or to
            the least distance.
        time: T, from the approach to the standstill of the robot [s].
        speed: K that was used [m/s].
        stop: the stop that takes longest; None where only its time is given.
        approach: speeds of the approach, and to which distances they apply.
        notes: what was assumed and what was left out, one sentence each.
        case: of a study the case with the longest stopping time; None if its search found it.
        edition: edition of ISO 13855.
    """

    has_simple_form = False

    terms: tuple[Term, ...]
    time: float
    speed: float
    stop: StopResult | None = field(repr=False)
    approach: ApproachSpeed
    notes: tuple[str, ...] = field(default=(), repr=False)
    case: int | None = None
    edition: Edition = GUARD_EDITIONS["ISO 13855:2010"]

    __getstate__ = stored_fields

    @cached_property
    def interval(self) -> Interval | None:
        """Its 95 % interval, that of the stopping time; a few stops more, when first asked for."""
        bands = () if self.stop is None else self.stop.bands(of=["stopping_time"])
        for band in bands:
            added = [(x.symbol, x.meaning, x.value) for x in self.terms[1:] if x.symbol != _REST]
            low, high = (
                sum(x.value for x in _sum(self.time + end - band.value, self.approach, added)[1])
                for end in (band.low, band.high)
            )
            return Interval("minimum_distance", "m", self.distance, low, high, band.shares)
        return None

    @property
    def named(self) -> tuple[str, str, str]:
        """Symbol and meaning of the sum, and its standard."""
        meaning = "minimum distance" if "2010" in self.edition.name else "separation distance"
        return "S", meaning, self.edition.cited

    def __repr__(self) -> str:
        return f"<MinimumDistance: {1e3 * self.distance:.1f} mm>"

    def table(self) -> Report:
        """Every term with its value, its formula and where it comes from."""
        facts = [
            ("S", f"{1e3 * self.distance:.1f} mm"),
            ("T", f"{milliseconds(self.time)} from the approach to standstill"),
            ("K", f"{1e3 * self.speed:g} mm/s"),
        ]
        if self.case is not None:
            facts.append(("study", f"case {self.case}, the longest stopping time"))
        facts.append(("edition", self.edition.cited))
        return self.report(self.named[1].capitalize(), facts, self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "headline": self.table().title.text,
            "distance_m": self.distance,
            "time_s": self.time,
            "speed_m_per_s": self.speed,
            "case": self.case,
            "edition": self.edition.name,
            "terms": self.rows()[:-1],
            "interval": interval_document(self.interval),
            "notes": list(self.notes),
            "disclaimer": PLANNING_AID,
        }


@public
def minimum_distance(
    stop: StopResult | float | Iterable[StopResult] | Study,
    *,
    detection: float = 0.0,
    intrusion: float = 0.0,
    supplement: float = 0.0,
    approach: ApproachSpeed = ApproachSpeed(),
    edition: str = "ISO 13855:2010",
) -> MinimumDistance:
    """Minimum distance of a safeguard from the hazard zone (ISO 13855).

    ``S = K T + C`` in the edition of 2010; in that of 2024 ``S = K T + D_DS + Z``, the separation
    distance. With the fast approach first; if that gives more than the threshold, with the slow
    one, but not less than the threshold; and never less than the least distance. The hazard zone is
    everything that the robot sweeps until it is at rest, see `pinloop.safety.swept_volume`.

    Args:
        stop: a stop, several, or a `Study`: the longest stopping time counts, and robots must
            stand and be held in all of them; or that time itself [s].
        detection: from the approach of the person until the signal of the stop [s].
        intrusion: C, or D_DS: how far a part of the body can reach before it is detected, by the
            device and how it is mounted [m].
        supplement: Z of the edition of 2024 [m].
        approach: K, the speed of the approach, and to which distances it applies.
        edition: "ISO 13855:2010" or "ISO 13855:2024", or the year alone.

    Raises:
        BadValue: an argument is impossible, or a robot does not stand at the end.
    """
    chosen = edition_by_name(edition, GUARD_EDITIONS)
    longest, result, case, notes = _stopping_time(stop)
    T = longest + at_least_zero("detection", detection, "a time >= 0 in seconds")
    added = [("C", "intrusion distance", at_least_zero("intrusion", intrusion))]
    Z = at_least_zero("supplement", supplement)
    if "2010" not in chosen.name:
        reach = "distance of the protective device, for reaching over, through and under it"
        added = [("D_DS", reach, added[0][2]), ("Z", "supplemental distance", Z)]
    elif Z > 0.0:
        raise BadValue(f"supplement is a term of ISO 13855:2024; {chosen.name} has none")
    K, terms = _sum(T, approach, added)
    whole = "S counts from everything that the robot sweeps until it is at rest, not from its tool"
    notes = (*notes, whole)
    given = [("detection", detection), *((symbol, value) for symbol, _, value in added)]
    if absent := [name for name, value in given if not value]:
        notes = (*notes, f"{', '.join(absent)} not given and taken as 0")
    notes = (*notes, *chosen.notes)
    return MinimumDistance(terms, T, K, result, approach, notes, case, chosen)


def _sum(
    T: float, approach: ApproachSpeed, added: Sequence[tuple[str, str, float]]
) -> tuple[float, tuple[Term, ...]]:
    """K [m/s] and the terms for a time [s]; ``added``: symbols, meanings, lengths of others [m]."""
    C = sum(value for _, _, value in added)
    near = approach.fast * T + C <= approach.threshold
    K, rule = (approach.fast, "up to") if near else (approach.slow, "above")
    by = "ISO 13855:2010" if approach == ApproachSpeed() else "given"
    limits = f"{1e3 * approach.threshold:g} mm with {1e3 * approach.fast:g} mm/s"
    formula = f"{1e3 * K:g} mm/s × {T:.4g} s"
    meaning, source = "approach until the robot is at rest", f"K: {by}, S {rule} {limits}"
    terms = [Term("K T", meaning, K * T, K * T, formula, source)]
    for symbol, what, x in added:
        terms.append(Term(symbol, what, x, x, f"{1e3 * x:g} mm", "given" if x else "taken as 0"))
    floor = approach.least if near else max(approach.least, approach.threshold)
    if floor > K * T + C:
        missing = floor - K * T - C
        formula = " - ".join([f"{1e3 * floor:g} mm", *(term.symbol for term in terms)])
        terms.append(Term(_REST, "not less than this", missing, missing, formula, by))
    return K, tuple(terms)


_REST = "rest"
"""Symbol of what is missing to a least distance."""


def _stopping_time(
    stop: StopResult | float | Iterable[StopResult] | Study,
) -> tuple[float, StopResult | None, int | None, tuple[str, ...]]:
    """The longest stopping time [s], its stop, its case in a study, and what was left out there."""
    if isinstance(stop, (int, float)):
        return at_least_zero("the stopping time", stop, "a time >= 0 in seconds"), None, None, ()
    if isinstance(stop, Study):
        standing = standing_cases(stop)
        case = max(standing.times, key=standing.times.__getitem__)
        longest, notes = standing.times[case], standing.notes
        found = stop.searched.cases.get("time") if stop.searched is not None else None
        if found is None:
            notes = (*notes, "no search went on from them to longer times")
        elif found.value > longest:
            text = f"the longest of the samples is {milliseconds(longest)}, a search found more"
            return found.value, found.stop, None, (*notes, text)
        return longest, stop.replay(case), case, notes
    result = max(checked_stops(stop), key=lambda each: each.stopping_time)
    return result.stopping_time, result, None, ()
