"""The commands `pinloop simulate` and `play`: a run that a scenario file describes, and its replay.

What has been computed when a run fails or is interrupted is written like a whole one.
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

from ..errors import BadValue, SimulationFailed
from ..scenarios.reading import PlannedRun, load_scenario
from ..scenarios.results import (
    ENDS,
    Output,
    as_document,
    check_output,
    output_of,
    run_table,
    tried_outputs,
)
from ..show.terminal import complain, write
from ..simulation.run_file import load_trajectory
from ..simulation.simulate import Limits
from ..simulation.trajectory import Trajectory
from . import Exit
from .options import (
    REPEATED,
    RUNS,
    YAMLS,
    AsJson,
    Commands,
    Html,
    OpenBrowser,
    argument,
    check_targets,
    file_option,
    flag,
    give_result,
    show_until_interrupted,
    text_option,
    warn,
    watched,
)
from .words import time

app = Commands(RUNS)


ScenarioFile = Annotated[
    Path, argument("Scenario file (docs/scenario.md).", "SCENARIO.yaml", *YAMLS)
]
Until = Annotated[
    str | None, text_option("End of the run, overriding the scenario: 2, 800ms.", "T")
]
AtLimits = Annotated[
    str | None,
    text_option(
        "What happens at position limits, overriding the scenario: warn, stop (the run ends), "
        "or 'end stop' (joints hit their limits).",
        "WHAT",
    ),
]
Outputs = Annotated[
    list[Path] | None,
    file_option(
        "File to write in addition to those of the scenario; its extension says what it holds: "
        f"{', '.join(ENDS)}. {REPEATED}",
        "--output",
        "-o",
    ),
]
ForceAny = Annotated[
    bool, flag("--force", "Overwrite any file, and write outside the folder of the scenario.")
]


@app.add(
    "simulate urdf/palletizer.scenario.yaml",
    "simulate urdf/fourbar.scenario.yaml -o run.npz -o run.csv --json",
    codes="0 the run came to its end; 1 it failed; 130 interrupted",
)
def simulate(
    scenario: ScenarioFile,
    until: Until = None,
    limits: AtLimits = None,
    output: Outputs = None,
    force: ForceAny = False,
    as_json: AsJson = None,
) -> int:
    """Run the simulation that a scenario file describes: start, forces, locks, events, outputs.

    What has been computed is written even if the run fails or is interrupted with Ctrl-C.
    """
    plan = load_scenario(
        scenario,
        until=None if until is None else _end(until),
        limits=None if limits is None else _limits(limits),
        force=force,
    )
    check_targets(plan.inputs, json=as_json)
    outputs = _outputs(plan, output or ())
    for warning in plan.robot.warnings:
        warn(warning)
    run, failure = _computed(plan)
    written, problems = tried_outputs(run, outputs, plan.every, failure)
    give_result(
        as_json,
        lambda: as_document(run, written, failure),
        lambda: run_table(run, failure),
        written,
    )
    for problem in problems:
        complain(problem)
    return _code(run, failure, written, problems)


def _end(word: str) -> float:
    end = time(word, "--until")
    if end <= 0:
        raise BadValue(f"'--until {word}' is not after the start of the run, 0 s")
    return end


def _limits(word: str) -> Limits:
    choices: tuple[Limits, ...] = ("warn", "stop", "end stop")
    for choice in choices:
        if word.replace("-", " ") == choice:
            return choice
    raise BadValue(f"'--limits {word}' is none of warn, stop, 'end stop'")


def _outputs(plan: PlannedRun, more: list[Path] | tuple[Path, ...]) -> tuple[Output, ...]:
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
    try:
        return plan.simulate(progress=watched()), ""
    except SimulationFailed as error:
        if error.trajectory is None:
            raise
        return error.trajectory, str(error)


def _code(run: Trajectory, failure: str, written: list[Path], problems: list[str]) -> int:
    """The exit code; says on standard error why it is not 0."""
    files = ", ".join(map(str, written)) or "no file: name one with --output"
    if failure:
        complain(f"{failure}; what was computed until then is in {files}", "FAILED", "bold red")
        return Exit.FAILED
    if run.message.startswith("interrupted"):
        complain(f"what was computed until then is in {files}", "interrupted", "yellow")
        return Exit.INTERRUPTED
    return Exit.MISTAKE if problems else Exit.DONE


@app.add("play run.npz --html run.html")
def play(
    run: Annotated[
        Path, argument("Saved run, from pinloop simulate or Trajectory.save.", "RUN.npz", ".npz")
    ],
    html: Html = None,
    trace: Annotated[
        list[str] | None,
        text_option(f"Frame or body whose path to draw. {REPEATED} Default: the tool.", "FRAME"),
    ] = None,
    ghost: Annotated[
        list[str] | None,
        text_option(f"Time of a pose that stays visible, translucent: 0.8, 800ms. {REPEATED}", "T"),
    ] = None,
    forces: Annotated[
        bool, flag("--forces", "Draw the forces of loop joints and locks as arrows.")
    ] = False,
    open_browser: OpenBrowser = False,
) -> None:
    """Replay a saved run in the browser; Ctrl-C ends the viewer."""
    motion = load_trajectory(run)
    wanted: dict[str, Any] = {
        "traces": trace or None,
        "ghosts": [time(word, "--ghost") for word in ghost or ()],
        "forces": forces,
    }
    if html is None:
        show_until_interrupted(
            lambda: motion.view(**wanted, announce=False), open_browser=open_browser
        )
        return
    path = motion.save_html(html, **wanted)
    write(str(path))
    if open_browser:
        webbrowser.open(path.resolve().as_uri(), new=2)
