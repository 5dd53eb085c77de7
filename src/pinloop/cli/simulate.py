"""The command `pinloop simulate`: a run that a scenario file describes.

Turns words into calls and results into text, files and exit codes. What has been computed when a
run fails or is interrupted is written like a whole one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadValue, SimulationFailed
from ..scenarios import PlannedRun, load_scenario
from ..scenarios.outputs import Output, check_output, output_of, tried_outputs
from ..scenarios.run_summary import as_document, run_table
from ..show.terminal import complain, write
from ..simulation.simulate import Limits
from ..simulation.trajectory import Trajectory
from .completion import YAMLS, files
from .options import (
    REPEATED,
    RUNS,
    AsJson,
    check_json,
    command,
    file_option,
    give_result,
    text_option,
)
from .words import time

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

_FAILED, _MISTAKE, _INTERRUPTED = 1, 2, 130


def simulate(
    scenario: Annotated[
        Path,
        typer.Argument(
            help="Scenario file (docs/scenario.md).",
            metavar="SCENARIO.yaml",
            show_default=False,
            autocompletion=files(*YAMLS),
        ),
    ],
    until: Annotated[
        str | None, text_option("End of the run instead of that in the file: 2, 800ms.", "T")
    ] = None,
    limits: Annotated[
        str | None,
        text_option(
            "At position limits, instead of what the file says: warn, stop the run, or 'end stop', "
            "which joints hit.",
            "WHAT",
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        file_option(
            "File to write besides those of the scenario; the end of its name says what it holds: "
            f".npz, .csv, .parquet, .html, .png, .svg, .pdf, .json. {REPEATED}",
            "--output",
            "-o",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Overwrite files of others, and write outside the scenario's folder."
        ),
    ] = False,
    as_json: AsJson = None,
) -> int:
    """Simulate a robot as a scenario file describes: start, forces, locks, events, output files.

    What has been computed is written even if the run fails or is interrupted with Ctrl-C.
    """
    plan = load_scenario(
        scenario,
        until=None if until is None else _end(until),
        limits=None if limits is None else _limits(limits),
        force=force,
    )
    check_json(as_json, plan.inputs)
    outputs = _outputs(plan, output or ())
    for warning in plan.robot.warnings:
        complain(warning, "warning", "yellow")
    run, failure = _computed(plan)
    written, problems = tried_outputs(run, outputs, plan.every, failure)
    give_result(
        as_json, lambda: as_document(run, written, failure), lambda: run_table(run, failure)
    )
    if as_json != "-":
        for path in written:
            write(f"written: {path}")
    for problem in problems:
        complain(problem)
    return _code(run, failure, written, problems)


def _end(word: str) -> float:
    end = time(word, "--until")
    if end <= 0:
        raise BadValue(f"'--until {word}' is not after the start of the run, 0 s")
    return end


def _limits(word: str) -> Limits:
    choices: dict[str, Limits] = {"warn": "warn", "stop": "stop", "end stop": "end stop"}
    if word.replace("-", " ") not in choices:
        raise BadValue(f"'--limits {word}' is none of warn, stop, 'end stop'")
    return choices[word.replace("-", " ")]


def _outputs(plan: PlannedRun, more: list[Path] | tuple[Path, ...]) -> tuple[Output, ...]:
    """The files of the scenario and those of the command."""
    outputs = list(plan.outputs)
    inputs = plan.inputs
    for path in more:
        try:
            output = output_of(path)
            check_output(output, [*inputs, *(other.path for other in outputs)])
        except BadValue as error:
            raise BadValue(f"--output: {error}") from None
        outputs.append(output)
    return tuple(outputs)


def _computed(plan: PlannedRun) -> tuple[Trajectory, str]:
    """The run as far as it came, and why it did not come further."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    try:
        return plan.simulate(progress=watched), ""
    except SimulationFailed as error:
        if error.trajectory is None:
            raise
        return error.trajectory, str(error)


def _code(run: Trajectory, failure: str, written: list[Path], problems: list[str]) -> int:
    """The exit code; says on standard error why it is not 0."""
    files = ", ".join(map(str, written)) or "no file: name one with --output"
    if failure:
        complain(f"{failure}; what was computed until then is in {files}", "FAILED", "bold red")
        return _FAILED
    if run.message.startswith("interrupted"):
        complain(f"what was computed until then is in {files}", "interrupted", "yellow")
        return _INTERRUPTED
    return _MISTAKE if problems else 0


command(
    app,
    simulate,
    "simulate urdf/palletizer.scenario.yaml",
    "simulate urdf/fourbar.scenario.yaml -o run.npz -o run.csv --json",
    codes="0 the run came to its end; 1 it failed; 130 interrupted",
    panel=RUNS,
)
