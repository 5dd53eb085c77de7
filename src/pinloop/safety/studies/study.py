"""`study`: many stops, in parallel, row by row to a file; resumable, seeded, replayable."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from numbers import Real
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from types import NoneType
from typing import Any, TypedDict, Unpack

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import ArrayLike

from ... import errors
from ...boundary.arguments import flat_numbers, public, require_jobs, require_kind
from ...boundary.files import as_target, data_frame, replace_file, require_pyarrow
from ...boundary.marks import Array
from ...boundary.values import forward, stored_fields
from ...errors import BadValue, PinloopError, PinloopWarning
from ...integrate import MuntheKaas
from ...model.mechanism import Mechanism, require_robot
from ...simulation.simulate import case_bar
from ...tables.report import Report, Section
from ...tolerances import SAME
from ..brakes.brakes import Brakes
from ..space.solids import Obstacle, checked_obstacles
from ..stopping import Payload, StopResult, Trigger
from ..stopping.categories import Category, as_category
from .case_values import case_values, each_case, varying
from .cases import CLEARANCE, Row, Setup, columns, manifest_of
from .criteria import Records
from .journal import Journal, StopFile, digest_of, read_rows
from .space import Sampling, Sobol, Space
from .workers import start_workers
from .worst import CriterionResult, Searched, WorstCase, read_search, search_file, write_search
from .worst_search import Search, search_worst

_BATCH, _LARGEST_BATCH = 4, 256
"""Cases that one task computes: at first, and at most."""
_TASKS = 4
"""Tasks per worker between two writes to the disk."""
_MOST_CASES = 10**8
"""Cases of a study; some days of computing on a large machine."""
_BLOCK = 4096
"""Rows that a Parquet file is given at a time, so that memory does not grow."""
_ROUND = 1.0
"""Time between two writes that is aimed at [s]."""


@public
@dataclass(frozen=True, eq=False)
class Study:
    """The results of a study.

    Args:
        setup: what all cases have in common.
        sampling: which cases there are.
        path: the CSV file with one row per case.
        names: names of its columns.
        done: number of cases that have been computed.
        size: number of cases of the study.
        searched: what a search found beyond the samples; None without one.
    """

    setup: Setup
    sampling: Sampling
    path: Path
    names: tuple[str, ...]
    done: int
    size: int
    searched: Searched | None = None

    def __repr__(self) -> str:
        return (
            f"<Study of '{self.setup.robot.name}': {self.done} of {self.size} cases, {self.path}>"
        )

    @property
    def complete(self) -> bool:
        """Whether all cases have been computed."""
        return self.done == self.size

    def rows(self) -> Iterator[dict[str, float | str]]:
        """The rows, one after the other, read from the file."""
        return read_rows(self.path, self.names, self.done)

    def column(self, name: str) -> Array:
        """One column of numbers, shape (done,)."""
        if name not in self.names:
            raise errors.UnknownName("column", name, self.names, self.setup.robot.name)
        return np.array([row[name] for row in self.rows()], dtype=np.float64)

    def outcomes(self) -> dict[str, int]:
        """How many cases ended how."""
        return dict(Counter(str(row["outcome"]) for row in self.rows()))

    def values(self, case: int) -> dict[str, float]:
        """Values of the variables of a case."""
        if not 0 <= case < self.size:
            raise BadValue(f"there is no case {case}; the study has cases 0 to {self.size - 1}")
        return case_values(self.setup, self.sampling, case, case + 1)[0]

    def replay(self, case: int) -> StopResult:
        """Return the stop of a case, with everything.

        As it was computed; computed again if it is not beside the results, as in studies of earlier
        versions, or if that file is full.
        """
        values, packed = self.values(case), self._stops.read(case)
        stop = None if packed is None else self.setup.unpack(packed, values)
        return self.setup.stop(values) if stop is None else stop

    @cached_property
    def _stops(self) -> StopFile:
        return StopFile(self.path, digest_of(manifest_of(self.setup, self.sampling)))

    __getstate__ = stored_fields

    def worst(self, column: str) -> int:
        """Number of the case with the largest size in a column; of clearances the smallest."""
        sizes = np.abs(self.column(column))
        if not np.isfinite(sizes).any():
            raise BadValue(f"no case has a number in column '{column}'")
        sizes = np.where(np.isinf(sizes), np.nan, sizes)
        return int(np.nanargmin(sizes) if column == CLEARANCE else np.nanargmax(sizes))

    def result(self) -> Mapping[str, CriterionResult]:
        """What came out by every criterion: samples, what a search found, and the worse of both."""
        return forward("safety.studies.headlines", "criterion_results", self)

    def save_html(
        self,
        path: str | Path,
        *,
        worst: Iterable[str] | Mapping[str, WorstCase] | None = None,
        sections: Iterable[Section] = (),
    ) -> Path:
        """Write a report as one HTML file: distributions, maps, worst cases and their replays.

        What it was made from is in it and in ``<path>.manifest.json`` beside it. The size of the
        file does not depend on the number of cases.

        Args:
            path: file to write.
            worst: criteria whose worst samples are replayed, as of `worst_case`, or what
                `worst_case` found; by default those that matter most.
            sections: further parts of your own: functions of the study that return a table.
        """
        return forward(
            "show.study_report", "write_report", self, path, worst=worst, sections=sections
        )

    def table(self) -> Report:
        """What came out, for reading: print it, or let rich or a notebook show it."""
        results: Any = forward("safety.studies.results", "results_of", self)
        return forward("safety.studies.summary", "summary_table", self, results)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def to_dataframe(self) -> Any:
        """The rows as a `pandas.DataFrame`, units in the names of the columns."""
        rows = list(self.rows())
        return data_frame({name: [row[name] for row in rows] for name in self.names})

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows to a Parquet file, block by block; units in the names of the columns."""
        pa, parquet = require_pyarrow("or read the CSV file of the study")
        kinds = {"outcome": pa.string(), "reason": pa.string()}
        schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in self.names])
        rows = self.rows()
        with replace_file(path) as file, parquet.ParquetWriter(file, schema) as writer:
            while block := list(islice(rows, _BLOCK)):
                writer.write_table(pa.Table.from_pylist(block, schema=schema))
        return Path(path)


class StudySettings(TypedDict, total=False):
    """What all stops of a study have in common.

    Args:
        category: category of the stops; 0 by default.
        payload: what the robot carries [kg], or where it carries the payloads of the space.
        gravity: gravity in the robot's base [m/s^2]; that of its file by default.
        trigger: chain of signals.
        until: limit of the time of each stop [s]; 10 s by default.
        method: integrator of the stops.
        obstacles: obstacles around the robot; how near it comes is another column then.
    """

    category: int | str | Category
    payload: Payload | float | None
    gravity: ArrayLike | None
    trigger: Trigger | None
    until: float
    method: MuntheKaas | None
    obstacles: Obstacle | Iterable[Obstacle] | None


def make_setup(
    robot: Mechanism,
    brakes: Brakes | str | Path,
    space: Space | None,
    **settings: Unpack[StudySettings],
) -> Setup:
    """What all cases have in common, after checking each of its kind."""
    for name in settings:
        if name not in StudySettings.__annotations__:
            raise errors.UnknownName("argument", name, StudySettings.__annotations__)
    payload, gravity = settings.get("payload"), settings.get("gravity")
    trigger, method = settings.get("trigger"), settings.get("method")
    until, obstacles = settings.get("until", 10.0), settings.get("obstacles")
    require_robot(robot)
    require_kind(until, Real, "until", "give a time in seconds")
    require_kind(payload, (Payload, Real, NoneType), "payload", "give a mass or a pl.Payload(...)")
    require_kind(space, (Space, NoneType), "space", "give a pl.safety.Space(...)")
    require_kind(method, (MuntheKaas, NoneType), "method", "give a pl.MuntheKaas(...)")
    require_kind(trigger, (Trigger, NoneType), "trigger", "give a pl.safety.Trigger(...)")
    return Setup(
        robot,
        (brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)).for_robot(robot),
        Space() if space is None else space,
        as_category(settings.get("category", 0)),
        payload if isinstance(payload, Payload | None) else Payload(float(payload)),
        None if gravity is None else tuple(flat_numbers(gravity, "gravity", 3).tolist()),
        Trigger() if trigger is None else trigger,
        float(until),
        method or MuntheKaas(),
        obstacles=() if obstacles is None else tuple(checked_obstacles(obstacles)),
    )


@public
def study(
    robot: Mechanism,
    brakes: Brakes | str | Path,
    space: Space | None = None,
    sampling: Sampling = Sobol(256),  # noqa: B008 (frozen)
    *,
    search: Search | bool = True,
    results: str | Path | None = None,
    jobs: int = -1,
    progress: bool = False,
    **settings: Unpack[StudySettings],
) -> Study:
    """Stop a robot from many states, and search for worse ones. Sampled, not guaranteed.

    Cases that cannot be computed are rows with the reason. Parallel by joblib, in processes; under
    ``joblib.parallel_config(backend="dask")`` and the like wherever that sends them: the results
    are the same to the last digit. Started again with the same ``results``, it goes on where it
    ended.

    Args:
        robot: the mechanism.
        brakes: its brakes, or their file.
        space: what varies; poses and speeds of all driven joints by default.
        sampling: which cases: `Grid`, `Sobol`, `Random`, `Corners`.
        search: how it goes on from the worst samples; by default with 64 stops for each of time,
            travel, clearance and angles; False: samples only.
        results: CSV file for the rows; a temporary one by default.
        jobs: number of processes; all cores by default.
        progress: show finished cases, their rate and the time left.
        settings: what all stops have in common, see `StudySettings`.

    Returns:
        The study; with the cases done so far, if it is interrupted with Ctrl-C.
    """
    setup = make_setup(robot, brakes, space, **settings)
    size = checked_size(setup, sampling, jobs)
    require_kind(search, (Search, bool), "search", "give a pl.safety.Search(...), True or False")
    plan = Search() if search is True else search or None
    if plan is not None:
        plan.chosen(setup)  # says which criterion is unknown before anything is computed
    _warn_of_speeds(setup)
    if results is None:
        results = Path(mkdtemp(prefix="pinloop-study-")) / "study.csv"
    path = as_target(results, "results")
    journal = Journal(path, columns(setup), manifest_of(setup, sampling))
    if journal.done > size:
        raise PinloopError(
            f"the results file '{path}' holds {journal.done} cases, but the study has only {size}; "
            "move it away to start anew"
        )
    with _progress(progress, journal.done, size, robot.name) as report:
        _run_on(setup, sampling, journal, size, jobs, report)
    done = Study(setup, sampling, path, tuple(journal.names), journal.done, size)
    if plan is not None and done.complete and done.outcomes().get("stopped"):
        return replace(done, searched=_search(done, plan, jobs, progress))
    return done


def _search(study: Study, search: Search, jobs: int, progress: bool) -> Searched | None:
    """What the search of a study finds, or found before; None if it is interrupted."""
    setup, path = study.setup, search_file(study.path)
    key = digest_of(manifest_of(setup, study.sampling))
    if (before := read_search(path, key, repr(search), setup)) is not None:
        return before
    chosen = search.chosen(setup)
    most = search.corners + len(chosen) * search.evaluations
    try:
        with _progress(progress, 0, most, "search") as report:
            searched = search_worst(study, chosen, search, jobs, report)
    except KeyboardInterrupt:
        warnings.warn(
            "the search for worse cases was interrupted; the results are those of the samples",
            PinloopWarning,
            stacklevel=4,
        )
        return None
    write_search(path, key, repr(search), searched)
    return searched


def _run_on(
    setup: Setup, sampling: Sampling, journal: Journal, size: int, jobs: int, report: Any
) -> None:
    """All cases that are still to be done, as far as nothing interrupts them."""
    try:
        _run(setup, sampling, journal, size, jobs, report)
    except KeyboardInterrupt:
        journal.recount()
        warnings.warn(
            f"interrupted after {journal.done} of {size} cases; the same study with "
            f"results='{journal.path}' goes on from there",
            PinloopWarning,
            stacklevel=4,
        )
    except BrokenExecutor as error:
        raise PinloopError(
            "a process of the study ended by itself, for want of memory perhaps; "
            f"{journal.done} of {size} cases are in '{journal.path}': start the same study again, "
            "with fewer jobs, and it goes on from there"
        ) from error


def _run(
    setup: Setup, sampling: Sampling, journal: Journal, size: int, jobs: int, report: Any
) -> None:
    """All cases that are still to be done, in order."""
    workers, batch, records = max(1, effective_n_jobs(jobs)), _BATCH, Records(setup)
    with start_workers(jobs) as parallel:
        while journal.done < size:
            first, begin = journal.done, perf_counter()
            last = min(size, first + workers * _TASKS * batch)
            parts = range(first, last, batch)
            # Where the disk has room, every stop is kept.
            worst = None if (room := journal.has_room) else records.worst
            tasks = (
                delayed(_batch)(setup, sampling, k, min(last, k + batch), worst) for k in parts
            )
            cases = [case for cases in parallel(tasks) for case in cases]
            kept = [
                (k, packed)
                for k, (row, packed) in enumerate(cases, start=first)
                if (records.takes(row) or room) and packed
            ]
            journal.append([row for row, _ in cases], kept)
            report(journal.done)
            share = _ROUND / max(perf_counter() - begin, 1e-3)
            batch = int(min(max(1.0, batch * min(share, 4.0)), _LARGEST_BATCH))


def _batch(
    setup: Setup, sampling: Sampling, first: int, last: int, worst: Mapping[str, float] | None
) -> list[tuple[Row, bytes]]:
    """Rows of consecutive cases with packed stops: those worse than ``worst``; all if it is None.

    What a worker of a process computes.
    """
    cases, records = [], Records(setup, worst)
    for k, case in enumerate(each_case(setup, sampling, first, last), start=first):
        row, stop = setup.evaluate(k, case)
        wanted = worst is None or records.takes(row)
        cases.append((row, setup.pack(stop, case) if wanted and stop is not None else b""))
    return cases


def checked_size(setup: Setup, sampling: Sampling, jobs: int) -> int:
    """Number of cases, after checking what would make a study pointless."""
    require_jobs(jobs, "processes")
    require_kind(sampling, Sampling, "sampling", "give for example pl.safety.Sobol(64)")
    if setup.trigger.motion is not None:
        raise BadValue("a study varies the instant: give the motion to the space, not the trigger")
    if not 0 < setup.until < np.inf:
        raise BadValue(f"until is {setup.until} s; it must be positive")
    names = varying(setup)
    size = sampling.size(names)
    if size > _MOST_CASES:
        raise BadValue(
            f"the study has {size:.3g} cases; give it fewer points or variables, {_MOST_CASES:.0e} "
            "cases are the most"
        )
    if not names and size > 1:
        raise BadValue(
            f"nothing varies in this study of robot '{setup.robot.name}': its {size} cases would "
            "be the same; give the space a range, or use pl.stop"
        )
    return size


def _warn_of_speeds(setup: Setup) -> None:
    """Speeds above the limits of the robot are no mistake, but worth a word."""
    top = setup.robot.model.upperVelocityLimit
    for variable in setup.variables:
        if variable.kind == "speed":
            limit = float(top[setup.robot.coordinates(variable.joint).v.start])
            fastest = max(abs(variable.low), abs(variable.high))
            if fastest > limit * (1 + SAME) > 0:
                warnings.warn(
                    f"speeds of joint '{variable.joint}' go to {fastest:g} {variable.unit}, above "
                    f"its limit of {limit:g}",
                    PinloopWarning,
                    stacklevel=4,
                )
    if setup.space.motion is not None:
        setup.space.motion.check(setup.robot)
        for sentence in setup.space.motion.speeds_above_limits(setup.robot):
            warnings.warn(sentence, PinloopWarning, stacklevel=4)


def _progress(show: bool, done: int, size: int, name: str) -> Any:
    return case_bar(done, size, name) if show else nullcontext(lambda count: None)
