"""Protective distances as sums of terms, and the minimum distance ``S = K T + C`` (ISO 13855).

A distance is a function of one stop: terms of different cases are not added up. That of ISO/TS
15066 is in `separation`. What editions call the terms is in `editions`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from joblib import delayed, effective_n_jobs

from ...boundary.arguments import flat_numbers, public, require_jobs
from ...boundary.csv import write_rows
from ...boundary.values import stored_fields
from ...errors import BadValue
from ...tables.number_format import milliseconds, number
from ...tables.report import Block, Cell, KeyValues, Mark, Notes, Report, Reported, Table
from ..stopping import StopResult
from ..stopping.intervals import Guesses, Interval
from ..stopping.result_document import PLANNING_AID
from ..studies.study import Study
from ..studies.workers import start_workers
from ..studies.worst import interval_document
from .editions import GUARD_EDITIONS, Edition, edition_by_name

Row = dict[str, str | float]


@dataclass(frozen=True)
class Term:
    """A term of a distance.

    Args:
        symbol: its symbol in the standard.
        value: how long it is [m].
        simple: how long it is in the simple form [m].
        formula: how the value was computed, with numbers.
    """

    symbol: str
    meaning: str
    value: float
    simple: float
    formula: str
    source: str


@public
class Distance(Reported):
    """A distance that is the sum of its terms."""

    terms: tuple[Term, ...]
    has_simple_form: ClassVar[bool]
    """Whether the standard has a simple form of it, with other values."""
    stop: StopResult | None
    """The stop that it belongs to; None if only its time is known."""

    @property
    @abstractmethod
    def interval(self) -> Interval | None:
        """Its 95 % interval, as brake data are uncertain; None where they are not."""

    @property
    @abstractmethod
    def named(self) -> tuple[str, str, str]:
        """Symbol and meaning of the sum, and its standard."""

    @abstractmethod
    def table(self) -> Report:
        """Every term with its value, its formula and where it comes from."""

    def __rich__(self) -> Report:
        return self.table()

    def __getitem__(self, symbol: str) -> Term:
        """A term by its symbol, e.g. ``"S_s"``."""
        by_symbol = {term.symbol: term for term in self.terms}
        if symbol not in by_symbol:
            raise BadValue(f"there is no term '{symbol}'; there are: {', '.join(by_symbol)}")
        return by_symbol[symbol]

    @property
    def distance(self) -> float:
        """The sum of the terms [m]."""
        return sum(term.value for term in self.terms)

    @property
    def simple(self) -> float:
        """The same by its simple form [m]."""
        return sum(term.simple for term in self.terms)

    @property
    def total(self) -> Term:
        """The sum as a term."""
        (symbol, meaning, standard), formula = self.named, " + ".join(x.symbol for x in self.terms)
        return Term(symbol, meaning, self.distance, self.simple, formula, standard)

    def rows(self) -> list[Row]:
        """The terms and their sum, a row each, units in the names."""
        rows: list[Row] = []
        for term in (*self.terms, self.total):
            row: Row = {"term": term.symbol, "meaning": term.meaning, "value_m": term.value + 0.0}
            if self.has_simple_form:
                row["simple_value_m"] = term.simple + 0.0
            rows.append(row | {"formula": term.formula, "source": term.source})
        return rows

    def to_csv(self, path: str | Path) -> Path:
        """Write the terms and their sum as CSV, units in the column names."""
        rows = self.rows()
        return write_rows(path, rows[0], (row.values() for row in rows))

    def report(self, name: str, facts: Sequence[tuple[str, str]], notes: Iterable[str]) -> Report:
        """The distance for reading: what it is of, its terms and formulas, assumptions.

        ``facts``: the distance itself first.
        """
        both, terms, own = self.has_simple_form, (*self.terms, self.total), self.interval
        band = () if own is None else [("95 % interval", f"{own.text}, by {own.made_by}")]
        rows = []
        for term in terms:
            mark: Mark = "title" if term is terms[-1] else ""
            lengths = (term.value, term.simple) if both else (term.value,)
            values = [number(1e3 * length, 1) for length in lengths]
            rows.append([Cell(text, mark) for text in (term.symbol, *values, term.meaning)])
        forms = ("integral [mm]", "simple [mm]") if both else ("value [mm]",)
        blocks: list[Block] = [
            KeyValues.of("Case", [*facts[:1], *band, *facts[1:]]),
            Table.of("Terms", ("<term", *forms, "<what it is"), rows),
            KeyValues.of("Formulas", ((x.symbol, f"{x.formula} [{x.source}]") for x in terms)),
            Notes.of("Assumptions", notes, "caution"),
        ]
        title = f"{name}: {1e3 * self.distance:.0f} mm"
        if own is not None:
            title += f" ({own.text})"
        guesses = Guesses(()) if self.stop is None else self.stop.guesses
        return Report.of(guesses.title(title), blocks, PLANNING_AID)


# -- stops and numbers -----------------------------------------------------------------------


def checked_stops(stop: StopResult | Iterable[StopResult]) -> list[StopResult]:
    """Return one stop or several as a list after checking that the robots are at rest and held."""
    stops: list[Any] = [stop]
    if not isinstance(stop, StopResult):
        stops = list(stop) if isinstance(stop, Iterable) else []
    if not stops or not all(isinstance(result, StopResult) for result in stops):
        raise BadValue(f"{stop!r} is no stop; give the result of pl.stop, several, or a study")
    for result in stops:
        if not result.holds:
            raise BadValue(
                f"the stop of robot '{result.robot.name}' ends as '{result.outcome}': no distance "
                "protects from a robot that does not come to rest and hold"
            )
    return stops


def at_least_zero(what: str, value: Any, wanted: str = "a length >= 0 in metres") -> float:
    """Return a number after checking that it is one and not negative."""
    number = flat_numbers(value, what, 1)[0]
    if number < 0:
        raise BadValue(f"{what} is {value!r}; it must be {wanted}")
    return float(number)


# -- cases of a study ------------------------------------------------------------------------


D = TypeVar("D", bound=Distance)

_TASKS = 4
"""Tasks per worker: cases take different times."""


@dataclass(frozen=True)
class Standing:
    """The cases of a study in which the robot stands at the end and is held.

    ``times``: stopping time [s] by number of the case, in rising order of the numbers; ``notes``:
    what was left out, one sentence each.
    """

    times: Mapping[int, float]
    notes: tuple[str, ...]


def standing_cases(study: Study) -> Standing:
    """Return the cases that count for a distance; those that could not be computed do not.

    A `BadValue` if in some case the robot does not come to rest and hold, or none was computed.
    """
    times: dict[int, float] = {}
    failed: dict[int, str] = {}
    loose: dict[int, str] = {}
    for row in study.rows():
        case, outcome = int(row["case"]), str(row["outcome"])
        if outcome == "stopped":
            times[case] = float(row["stopping_time_s"])
        elif outcome == "failed":
            failed[case] = str(row["reason"])
        else:
            loose[case] = outcome
    name = study.setup.robot.name
    if loose:
        case, outcome = next(iter(loose.items()))
        others = f" (and {len(loose) - 1} others do not stop either)" if len(loose) > 1 else ""
        raise BadValue(
            f"case {case} of the study of robot '{name}' ends as '{outcome}'{others}: no distance "
            "protects from a robot that does not come to rest and hold; give it stronger brakes, "
            "or make a study of states from which it stops"
        )
    if not times:
        raise BadValue(
            f"no case of the study of robot '{name}' could be computed: there is no distance"
        )
    notes = [
        f"sampled, not guaranteed: the largest of {len(times)} cases; one that was not looked at "
        "may ask for more"
    ]
    if not study.complete:
        notes.append(f"the study is not finished: {study.done} of {study.size} cases are done")
    if failed:
        case, reason = next(iter(failed.items()))
        notes.append(
            f"{len(failed)} of {study.done} cases could not be computed and are left out, first "
            f"case {case}: {reason}"
        )
    return Standing(times, tuple(notes))


def measure_cases(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], D], jobs: int
) -> tuple[list[tuple[float, float]], D]:
    """What each of some cases asks for, in parallel.

    Each distance and its simple form [m], in the order of the cases; and the first of those with
    the largest distance, with everything.
    """
    require_jobs(jobs, "processes")
    bare = replace(study, searched=None)  # what a search found need not go to every worker
    size = -(-len(cases) // (_TASKS * max(1, effective_n_jobs(jobs))))
    batches = start_workers(jobs)(
        delayed(_batch)(bare, cases[k : k + size], measure) for k in range(0, len(cases), size)
    )
    pairs = [pair for pairs, _ in batches for pair in pairs]
    return pairs, max((largest for _, largest in batches), key=lambda each: each.distance)


def _batch(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], D]
) -> tuple[list[tuple[float, float]], D]:
    """What a worker computes; a mistake is told with its case."""
    pairs, largest = [], None
    for case in cases:
        try:
            distance = measure(study.replay(case))
        except BadValue as error:
            raise BadValue(f"case {case} of the study: {error}") from None
        pairs.append((distance.distance, distance.simple))
        if largest is None or distance.distance > largest.distance:
            largest = distance
    assert largest is not None, "a batch has at least one case"
    return pairs, largest


# -- ISO 13855 -------------------------------------------------------------------------------


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
