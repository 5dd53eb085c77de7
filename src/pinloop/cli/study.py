"""The commands `pinloop study` and `pinloop worst`: many stops from a study file.

Turns words into calls and results into text, files and exit codes. Exit codes: 0 every case stopped
and holds, 1 some case did not, 2 invalid input, 130 interrupted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadValue
from ..safety.studies import Study, WorstCase, worst_case
from ..safety.studies import study as run_study
from ..safety.studies.studyfile import PlannedStudy, read_study
from ..safety.studies.summary import (
    Summary,
    as_document,
    summarised,
    summary_table,
    worst_document,
    worst_table,
)
from ..show.terminal import complain, write
from .completion import YAMLS, files, folders
from .options import (
    MANY,
    REPEATED,
    AsJson,
    check_json,
    command,
    file_option,
    give_result,
    text_option,
)

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

_NOT_STOPPED, _INTERRUPTED = 1, 130


StudyArgument = Annotated[
    Path,
    typer.Argument(
        help="Study file (docs/studies.md).",
        metavar="STUDY.yaml",
        show_default=False,
        autocompletion=files(*YAMLS),
    ),
]
Results = Annotated[
    Path | None,
    file_option("CSV file of the results. Default: as the study file says.", ends=(".csv",)),
]
Jobs = Annotated[
    int | None,
    text_option("Number of processes; -1: all cores. Default: as the study file says.", "N"),
]


def study(
    file: StudyArgument,
    results: Results = None,
    jobs: Jobs = None,
    html: Annotated[
        Path | None,
        file_option(
            "Write a report with distributions, maps and replays of worst cases.", ends=(".html",)
        ),
    ] = None,
    as_json: AsJson = None,
) -> int:
    """Simulate stops from many states: how times and distances are distributed, worst samples.

    Started again, it continues where it was interrupted. Sampled, not guaranteed.
    """
    if html is not None and html.is_dir():
        raise BadValue(f"'--html {html}' is a folder; name a file in it")
    check_json(as_json, [file])
    plan = read_study(file, results)
    done, summary = _done(plan, jobs)
    report = None if html is None else done.save_html(html, worst=plan.worst)
    give_result(as_json, lambda: as_document(done, summary), lambda: summary_table(done, summary))
    if report is not None and as_json != "-":
        write(f"written: {report}")
    return _exit_code(done, summary)


def worst(
    file: StudyArgument,
    criterion: Annotated[
        list[str] | None,
        text_option(
            "What to make worst: time, travel, clearance, angle:JOINT, impulse:JOINT, gear:JOINT. "
            f"{REPEATED} Default: as the study file says, else all that are not zero.",
            "NAME",
        ),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Samples to start from, per criterion."),
    ] = 3,
    evaluations: Annotated[int, typer.Option(min=1, metavar="N", help="Stops per start.")] = 200,
    results: Results = None,
    jobs: Jobs = None,
    html: Annotated[
        Path | None,
        text_option(
            "Write a report of each worst case into this folder.", "DIR", autocompletion=folders
        ),
    ] = None,
    stops: Annotated[
        Path | None,
        text_option(
            "Write each worst case as JSON into this folder.", "DIR", autocompletion=folders
        ),
    ] = None,
    as_json: AsJson = None,
) -> int:
    """Search for the worst case of a study for each criterion, starting from its worst samples.

    Cases of the study that are still missing are computed first. Sampled, not guaranteed.
    """
    for name, folder in (("html", html), ("stops", stops)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BadValue(f"'--{name} {folder}' is a file; name a folder")
    check_json(as_json, [file])
    plan = read_study(file, results)
    done, summary = _done(plan, jobs)
    if not done.complete:
        return _exit_code(done, summary)
    wanted = criterion or plan.worst
    cases = worst_case(done, wanted, starts=starts, evaluations=evaluations, jobs=_jobs(plan, jobs))
    written = _write_stops(cases, html, stops)
    give_result(
        as_json,
        lambda: as_document(done, summary) | {"worst": worst_document(cases)},
        lambda: worst_table(done.setup, cases),
    )
    if as_json != "-":
        for path in written:
            write(f"written: {path}")
    return _exit_code(done, summary)


def _done(plan: PlannedStudy, jobs: int | None) -> tuple[Study, Summary]:
    """The study, made or gone on with."""
    arguments = dict(plan.arguments) | {"jobs": _jobs(plan, jobs)}
    if plan.guessed:
        complain(
            "no brakes file was given or found beside the robot: its brakes are guessed",
            "warning",
            "yellow",
        )
    watched = sys.stderr is not None and sys.stderr.isatty()
    done = run_study(plan.robot, **arguments, progress=watched)
    return done, summarised(done)


def _jobs(plan: PlannedStudy, jobs: int | None) -> int:
    return int(plan.arguments["jobs"]) if jobs is None else jobs


def _exit_code(done: Study, summary: Summary) -> int:
    """The exit code; says on standard error why it is not 0."""
    if not done.complete:
        return _INTERRUPTED
    if summary.not_stopped:
        others = {name: count for name, count in summary.outcomes.items() if name != "stopped"}
        bad = ", ".join(f"{count} {outcome}" for outcome, count in others.items())
        complain(
            f"{summary.not_stopped} of {done.size} cases did not end with the robot at rest and "
            f"held: {bad}",
            "warning",
            "yellow",
        )
        return _NOT_STOPPED
    return 0


def _write_stops(
    cases: Mapping[str, WorstCase], html: Path | None, stops: Path | None
) -> list[Path]:
    """A report and a document per worst case, as far as they are asked for."""
    written: list[Path] = []
    for folder, suffix in ((html, "html"), (stops, "json")):
        if folder is None:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadValue(f"folder '{folder}' cannot be made: {error.strerror}") from None
        for name, case in cases.items():
            path = folder / f"{_file_name(name)}.{suffix}"
            save: Any = case.stop.save_html if suffix == "html" else case.stop.save_json
            written.append(save(path))
    return written


def _file_name(criterion: str) -> str:
    """A criterion as the name of a file on any system."""
    return re.sub(r"[^\w.-]", "-", criterion)


_STUDIED = "0 every case stopped and holds; 1 some case did not; 130 interrupted"

command(
    app,
    study,
    "study urdf/six_axis_arm.study.yaml --results arm.csv",
    codes=_STUDIED,
    panel=MANY,
)
command(
    app,
    worst,
    "worst urdf/six_axis_arm.study.yaml --results arm.csv --html worst",
    codes=_STUDIED,
    panel=MANY,
)
