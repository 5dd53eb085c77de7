"""Protective distances as sums of terms, and the cases of a study that they are measured on.

A distance is a function of one stop: terms of different cases are not added up. That of ISO/TS
15066 is in `separation_terms`, that of ISO 13855 in `guard_distance`. What editions call the terms
is in `editions`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from joblib import delayed, effective_n_jobs

from ...boundary.arguments import flat_numbers, public, require_jobs
from ...boundary.csv import write_rows
from ...errors import BadValue
from ...tables.number_format import number
from ...tables.report import Block, Cell, KeyValues, Mark, Notes, Report, Reported, Table
from ..stopping import StopResult
from ..stopping.intervals import Guesses, Interval
from ..stopping.result_document import PLANNING_AID
from ..studies.study import Study
from ..studies.workers import start_workers

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
