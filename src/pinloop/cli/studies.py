"""The commands `pinloop study`, `worst`, `compare` and `fit`: many stops, computed and measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..boundary.csv import read_table_rows
from ..errors import BadValue
from ..io.loading import RobotFile
from ..model.mechanism import Mechanism
from ..safety.brakes.brakes import Brakes
from ..safety.brakes.laws import LAWS
from ..safety.standards.axis_fit import FITTABLE
from ..safety.standards.comparison import compare as compare_stops
from ..safety.standards.fit import Fit, fitted
from ..safety.standards.fit_law import LawFits, fit_law
from ..safety.standards.published import StoppingTable
from ..safety.standards.trace_fit import TraceFit, fit_traces
from ..safety.standards.traces import Overlay, Overlays, StopTraces, align_each
from ..safety.studies.cases import CLEARANCE
from ..safety.studies.headlines import worst_case
from ..safety.studies.results import Results, results_of
from ..safety.studies.study import Study
from ..safety.studies.study import study as run_study
from ..safety.studies.studyfile import PlannedStudy, read_study
from ..safety.studies.summary import (
    as_document,
    beyond_text,
    search_problems,
    summary_table,
    worst_document,
    worst_table,
)
from ..safety.studies.worst import WorstCase
from ..safety.studies.worst_search import Search
from . import Exit
from .options import (
    MANY,
    REPEATED,
    YAMLS,
    AsJson,
    Commands,
    Force,
    argument,
    check_targets,
    count,
    file_option,
    give_result,
    text_option,
    warn,
    watched,
)
from .stops import BrakesFile, Fact, brakes_for
from .words import time, weight

app = Commands(MANY)

StudyFile = Annotated[Path, argument("Study file (docs/studies.md).", "STUDY.yaml", *YAMLS)]
ResultsFile = Annotated[
    Path | None,
    file_option("CSV file of the results. Default: as the study file says.", ends=(".csv",)),
]
Jobs = Annotated[
    int | None,
    text_option("Number of processes; -1: all cores. Default: as the study file says.", "N"),
]
Searching = Annotated[
    bool | None,
    typer.Option(
        "--search/--no-search",
        help="Search on from the worst samples. Default: as the study file says, else yes.",
    ),
]
Tables = Annotated[
    list[Path],
    argument(
        "Table of stops (CSV), a row per stop of one axis; or recorded motions, each of one stop, "
        "with times and joints.",
        "TABLE.csv...",
        ".csv",
    ),
]

At = Annotated[
    list[str] | None,
    text_option(
        "Recorded motion: when the signal came, by its clock; of several, once for each. "
        f"{REPEATED} Default: found.",
        "T",
    ),
]
Loads = Annotated[
    list[str] | None,
    text_option(
        f"Recorded motion: payload, such as 5kg; of several, once for all or for each. {REPEATED}",
        "M",
    ),
]
Picture = Annotated[
    Path | None,
    file_option(
        "Recorded motion: draw it over the computed stop; of several, FILE-1.png and so on.",
        "--plot",
        ends=(".png",),
    ),
]

_STUDIED = (
    "0 every case stopped and holds, within limits of joints and clear of obstacles; "
    "1 some case did not; 130 interrupted"
)


@app.add("study urdf/six_axis_arm.study.yaml --results arm.csv", codes=_STUDIED)
def study(
    file: StudyFile,
    results: ResultsFile = None,
    jobs: Jobs = None,
    html: Annotated[
        Path | None,
        file_option(
            "Write a report with distributions, maps and replays of worst cases.", ends=(".html",)
        ),
    ] = None,
    search: Searching = None,
    as_json: AsJson = None,
) -> int:
    """Simulate stops from many states, and search for worse ones: times, distances, worst cases.

    Run it again to continue where it was interrupted. Results are sampled, not guaranteed.
    """
    check_targets([file], json=as_json, html=html)
    plan = read_study(file, results)
    searching = plan.search if (plan.searches if search is None else search) else False
    done, summary, code = compute_study(plan, jobs, searching)
    written = [done.save_html(html, worst=plan.worst)] if html and done.done else []
    give_result(
        as_json, lambda: as_document(done, summary), lambda: summary_table(done, summary), written
    )
    return code


@app.add("worst urdf/six_axis_arm.study.yaml --results arm.csv --html worst", codes=_STUDIED)
def worst(
    file: StudyFile,
    criterion: Annotated[
        list[str] | None,
        text_option(
            "What to search by: time, travel, displacement, displacement:x, clearance, separation, "
            f"angle:JOINT, impulse:JOINT, gear:JOINT. {REPEATED} Default: as the study file says, "
            "else all that are not zero.",
            "NAME",
        ),
    ] = None,
    starts: Annotated[int, count("Cases to start from, per criterion.", 1)] = 3,
    evaluations: Annotated[int, count("Stops per criterion.", 1)] = 400,
    results: ResultsFile = None,
    jobs: Jobs = None,
    html: Annotated[
        Path | None,
        file_option(
            "Write a report of each worst case into this folder.", metavar="DIR", ends=("/",)
        ),
    ] = None,
    stops: Annotated[
        Path | None,
        file_option("Write each worst case as JSON into this folder.", metavar="DIR", ends=("/",)),
    ] = None,
    as_json: AsJson = None,
) -> int:
    """Search longer for the worst case of a study, from its worst samples and from corners.

    Missing cases of the study are computed first. Results are sampled, not guaranteed.
    """
    for name, folder in (("html", html), ("stops", stops)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BadValue(f"'--{name} {folder}' is a file; name a folder")
    check_targets([file], json=as_json)
    plan = read_study(file, results)
    if criterion:
        plan.check_criteria(criterion)
    done, summary, code = compute_study(plan, jobs)
    if not done.complete:
        return code
    wanted = criterion or plan.worst
    cases = worst_case(
        done,
        wanted,
        starts=starts,
        evaluations=evaluations,
        person=plan.search.person,
        jobs=jobs_of(plan, jobs),
    )
    written = _write_stops(cases, html, stops)
    give_result(
        as_json,
        lambda: as_document(done, summary) | {"worst": worst_document(cases)},
        lambda: worst_table(done.setup, cases),
        written,
    )
    return code


def compute_study(
    plan: PlannedStudy, jobs: int | None, search: Search | bool = False
) -> tuple[Study, Results, Exit]:
    """The study, made or gone on with, what came out, and how a command on it ends."""
    arguments = dict(plan.arguments) | {"jobs": jobs_of(plan, jobs), "search": search}
    if plan.guessed:
        warn("no brakes file was given or found beside the robot: its brakes are guessed")
    done = run_study(plan.robot, **arguments, progress=watched())
    results = results_of(done)
    return done, results, _exit_code(done, results)


def jobs_of(plan: PlannedStudy, jobs: int | None) -> int:
    """How many processes are to work: as on the command line, else as the file says."""
    return int(plan.arguments["jobs"]) if jobs is None else jobs


def _exit_code(done: Study, summary: Results) -> Exit:
    """The exit code; says on standard error why it is not 0."""
    if not done.complete:
        return Exit.INTERRUPTED
    problems = [*_problems(done, summary)]
    for sentence in problems:
        warn(sentence)
    return Exit.FAILED if problems else Exit.DONE


def _problems(done: Study, summary: Results) -> Iterator[str]:
    """What makes a study fail: cases that do not stop, pass limits of joints, or collide."""
    if summary.not_stopped:
        others = {name: count for name, count in summary.outcomes.items() if name != "stopped"}
        bad = ", ".join(f"{count} {outcome}" for outcome, count in others.items())
        yield (
            f"{summary.not_stopped} of {done.size} cases did not end with the robot at rest and "
            f"held: {bad}"
        )
    yield from (beyond_text(done.setup, joint) for joint in summary.beyond)
    near = summary.columns.get(CLEARANCE)
    if near is not None and (hits := summary.cases[near == 0.0]).size:
        yield f"the robot touches an obstacle in {hits.size} of the cases, first in case {hits[0]}"
    yield from search_problems(done)


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
            stem = re.sub(r"[^\w.-]", "-", name)  # a name that any system takes
            path = folder / f"{stem}.{suffix}"
            save: Any = case.stop.save_html if suffix == "html" else case.stop.save_json
            written.append(save(path))
    return written


# -- computed beside measured stops ---------------------------------------------------------------


@app.add(
    "compare ur5_robot.urdf examples/ur5_stops.csv",
    codes="0 done, however well they agree; 1 some stop cannot be read or computed",
)
def compare(
    robot: RobotFile,
    table: Tables,
    brakes: BrakesFile = None,
    signal: At = None,
    payload: Loads = None,
    plot: Picture = None,
    as_json: AsJson = None,
) -> int:
    """Compare simulated stops with published or measured ones: time, distance, shape d / (v0 t).

    A planning aid, not a safety certificate.
    """
    pictures = _pictures(plot, robot, table, as_json)
    measured = _measured(table, signal, payload, plot)
    machine, chosen, facts = _machine(robot, brakes)
    if not isinstance(measured, StoppingTable):
        overlays = align_each(machine, measured, chosen)
        result = overlays.each[0] if len(table) == 1 else overlays
        return _give_traces(result, overlays, facts, pictures, as_json)
    comparison = compare_stops(measured.attempt(machine, chosen), measured)
    give_result(
        as_json,
        lambda: _with_brakes(comparison.as_dict(), chosen, facts),
        lambda: comparison.table(facts),
    )
    return Exit.FAILED if comparison.failed else Exit.DONE


@app.add(
    "fit ur5_robot.urdf examples/ur5_stops.csv --parameter viscous -o ur5.brakes.yaml",
    codes="0 done, however well it fits; 1 some stop cannot be read or computed",
)
def fit(
    robot: RobotFile,
    table: Tables,
    law: Annotated[
        str | None,
        text_option(
            f"Law of controlled stops to fit, with all its numbers: {', '.join(LAWS)}, or all, to "
            "see which predicts rows best that are held out.",
            "NAME",
            autocompletion=lambda incomplete: ["all", *LAWS],
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        text_option(
            f"Parameter to fit for each axis of the table: {', '.join(FITTABLE)}. May be given "
            "several times. Default: dynamic_torque.",
            "NAME",
            autocompletion=lambda incomplete: list(FITTABLE),
        ),
    ] = None,
    brakes: BrakesFile = None,
    output: Annotated[
        Path | None, file_option("Brakes file to write.", "--output", "-o", ends=YAMLS)
    ] = None,
    signal: At = None,
    payload: Loads = None,
    plot: Picture = None,
    force: Force = False,
    as_json: AsJson = None,
) -> int:
    """Fit brake parameters to published or measured stops; say which of them stay undetermined.

    All other values are those of the brakes file, where the search also starts. A planning aid, not
    a safety certificate.
    """
    pictures = _pictures(plot, robot, table, as_json)
    check_targets([*robot.inputs, *table], force=force, output=output)
    measured = _measured(table, signal, payload, plot)
    machine, start, facts = _machine(robot, brakes)
    if not isinstance(measured, StoppingTable):
        if law is not None:
            raise BadValue("'--law' is fitted to tables of stops; leave it out")
        made = fit_traces(machine, measured, start, parameter or ("dynamic_torque",))
        more = [] if output is None else [made.brakes.to_yaml(output)]
        return _give_traces(
            made, Overlays(made.overlays, made.failed), facts, pictures, as_json, more
        )
    result: Fit | LawFits
    if law is None:
        result = fitted(machine, measured, start, parameter or ("dynamic_torque",))
    elif parameter:
        raise BadValue("'--law' fits all numbers of the law: leave out --parameter")
    else:
        result = fit_law(machine, measured, start, list(LAWS) if law == "all" else [law])
    give_result(
        as_json,
        lambda: _with_brakes(result.as_dict(), start, facts),
        lambda: result.table(facts),
        [] if output is None else [result.brakes.to_yaml(output)],
    )
    best = result if isinstance(result, Fit) else result.best.fit
    return Exit.FAILED if best is not None and best.comparison.failed else Exit.DONE


def _measured(
    files: list[Path], signal: list[str] | None, payload: list[str] | None, plot: Path | None
) -> StopTraces | StoppingTable:
    """What files have: recordings of stops, or a table of stops."""
    given, tables = {"signal": signal, "payload": payload}, list(filter(_is_table, files))
    if tables and len(files) > 1:
        raise BadValue(f"{tables[0]} is a table of stops: give it alone, or several recordings")
    if tables:
        for name, word in (given | {"plot": plot}).items():
            if word is not None:
                raise BadValue(
                    f"'--{name}' is of a recorded motion; {files[0]} is a table of stops"
                )
        return StoppingTable.from_csv(files[0])
    for name, words in given.items():
        if words and len(words) not in (1, len(files)):
            raise BadValue(f"'--{name}' is given {len(words)} times for {len(files)} recordings")
    if len(files) > 1 and signal and len(signal) == 1:
        raise BadValue("'--signal' is by the clock of one recording: give it once for each")
    signals: list[float | None] = [time(word, "--signal") for word in signal or ()]
    signals = signals or [None] * len(files)
    loads = [weight(word) for word in payload or ("0",)]
    loads *= len(files) if len(loads) == 1 else 1
    return StopTraces.from_csv(files, signals, loads)


def _is_table(file: Path) -> bool:
    """Whether a file is a table of stops, and no recording."""
    lines = (row.cells for row in read_table_rows(file, "table of stops"))
    return "joint" in next((cells for cells in lines if not cells[0].startswith("#")), ["joint"])


def _pictures(
    plot: Path | None, robot: RobotFile, tables: list[Path], as_json: str | None
) -> list[Path]:
    """Where the overlays of recordings are drawn; checks these files, and that of the JSON."""
    pictures = [] if plot is None else [plot]
    if plot is not None and len(tables) > 1:
        pictures = [plot.with_stem(f"{plot.stem}-{k + 1}") for k in range(len(tables))]
    for picture in pictures or (None,):
        check_targets([*robot.inputs, *tables], json=as_json, plot=picture)
    return pictures


def _give_traces(
    result: Overlay | Overlays | TraceFit,
    overlays: Overlays,
    facts: list[Fact],
    pictures: Sequence[Path],
    as_json: str | None,
    written: Sequence[Path] = (),
) -> int:
    """Print what came out of recordings, and draw them."""
    for laid, path in zip(overlays.each, pictures, strict=False):
        laid.plot().savefig(path)
    files = [*written, *pictures]
    give_result(as_json, result.as_dict, lambda: result.table(facts), files)
    return Exit.FAILED if overlays.failed else Exit.DONE


def _machine(robot: RobotFile, brakes: Path | None) -> tuple[Mechanism, Brakes, list[Fact]]:
    """Robot and brakes, and a line on where these come from."""
    machine = robot.load()
    chosen, remarks = brakes_for(machine, robot.file, brakes)
    facts = [("brakes", chosen.source if chosen.source != "template" else "guessed"), *remarks]
    return machine, chosen, facts


def _with_brakes(document: dict[str, Any], brakes: Brakes, facts: list[Fact]) -> dict[str, Any]:
    """A document that says with which brakes the stops began."""
    remark = "; ".join(text for name, text in facts if not name)
    return {**document, "brakes": {"source": brakes.source, "remark": remark}}
