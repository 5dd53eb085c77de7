"""The commands `pinloop compare` and `pinloop fit`: computed stops beside measured ones.

Turns words into calls and results into text, files and exit codes: 0 done, 2 invalid input. How
well stops agree is reported, not judged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..io.robot_file import RobotFile
from ..model.mechanism import Mechanism
from ..safety.brakes.brakes import Brakes
from ..safety.standards.axisfit import FITTABLE
from ..safety.standards.comparison import compare as compare_stops
from ..safety.standards.fit import fitted
from ..safety.standards.published import StoppingTable
from ..show.terminal import write
from .completion import YAMLS, files
from .options import (
    MANY,
    AsJson,
    Force,
    check_json,
    check_target,
    command,
    file_option,
    give_result,
    text_option,
)
from .stop import BrakesFile, Fact, brakes_for

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

Table = Annotated[
    Path,
    typer.Argument(
        help="Table of stops (CSV), a row per stop of one axis.",
        metavar="TABLE.csv",
        show_default=False,
        autocompletion=files(".csv"),
    ),
]


def _fittable(incomplete: str) -> list[str]:
    return list(FITTABLE)


def compare(
    robot: RobotFile,
    table: Table,
    brakes: BrakesFile = None,
    as_json: AsJson = None,
) -> int:
    """Compare simulated stops with published or measured ones: time, distance, shape d / (v0 t).

    A planning aid, not a safety certificate.
    """
    check_json(as_json, [*robot.inputs, table])
    machine, rows, chosen, facts = _read(robot, table, brakes)
    comparison = compare_stops(rows.stops(machine, chosen), rows)
    give_result(
        as_json,
        lambda: _with_brakes(comparison.as_dict(), chosen, facts),
        lambda: comparison.table(facts),
    )
    return 0


def fit(
    robot: RobotFile,
    table: Table,
    parameter: Annotated[
        list[str] | None,
        text_option(
            f"Parameter to fit for each axis of the table: {', '.join(FITTABLE)}. May be given "
            "several times. Default: dynamic_torque.",
            "NAME",
            autocompletion=_fittable,
        ),
    ] = None,
    brakes: BrakesFile = None,
    output: Annotated[
        Path | None,
        file_option("Brakes file to write.", "--output", "-o", ends=YAMLS),
    ] = None,
    force: Force = False,
    as_json: AsJson = None,
) -> int:
    """Fit brake parameters to published or measured stops; say which these do not determine.

    All other numbers are those of the brakes file, at which the search also starts. A planning aid,
    not a safety certificate.
    """
    inputs = [*robot.inputs, table]
    check_json(as_json, inputs)
    if output is not None:
        check_target(output, f"--output {output}", inputs, force=force)
    machine, rows, start, facts = _read(robot, table, brakes)
    result = fitted(machine, rows, start, parameter or ("dynamic_torque",))
    if output is not None:
        result.brakes.to_yaml(output)
    give_result(
        as_json,
        lambda: _with_brakes(result.as_dict(), start, facts),
        lambda: result.table(facts),
    )
    if output is not None and as_json != "-":
        write(f"written: {output}")
    return 0


def _read(
    robot: RobotFile, table: Path, brakes: Path | None
) -> tuple[Mechanism, StoppingTable, Brakes, list[Fact]]:
    """Robot, table and brakes, and a line on where these come from."""
    rows = StoppingTable.from_csv(table)
    machine = robot.load()
    chosen, remarks = brakes_for(machine, robot.file, brakes)
    facts = [("brakes", chosen.source if chosen.source != "template" else "guessed"), *remarks]
    return machine, rows, chosen, facts


def _with_brakes(document: dict[str, Any], brakes: Brakes, facts: list[Fact]) -> dict[str, Any]:
    """A document that says with which brakes the stops began."""
    remark = "; ".join(text for name, text in facts if not name)
    return {**document, "brakes": {"source": brakes.source, "remark": remark}}


command(
    app,
    compare,
    "compare ur5_robot.urdf examples/ur5_stops.csv",
    codes="0 done, however well they agree",
    panel=MANY,
)
command(
    app,
    fit,
    "fit ur5_robot.urdf examples/ur5_stops.csv --parameter viscous -o ur5.brakes.yaml",
    codes="0 done, however well it fits",
    panel=MANY,
)
