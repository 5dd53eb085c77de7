"""The commands `pinloop compare` and `pinloop fit`: computed stops beside measured ones.

Turns words into calls and results into text, files and exit codes: 0 done, 2 a mistake in what was
asked. How well stops agree is told, not judged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..boundary.json import json_text
from ..io.robot_file import RobotFile
from ..model.mechanism import Mechanism
from ..safety.brakes.brakes import Brakes
from ..safety.standards.axisfit import FITTABLE
from ..safety.standards.comparison import compare as compare_stops
from ..safety.standards.fit import fitted
from ..safety.standards.published import StoppingTable
from ..show.terminal import show, write
from .completion import YAMLS, files
from .options import (
    MANY,
    AsJson,
    Force,
    check_target,
    command,
    file_option,
    text_option,
)
from .stop import BrakesFile, Fact, brakes_for

__all__ = ["app", "compare", "fit"]

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
    as_json: AsJson = False,
) -> int:
    """Set computed stops beside published or measured ones: time, distance, shape d / (v0 t).

    A planning aid, not a safety certificate.
    """
    machine, rows, chosen, facts = _read(robot, table, brakes)
    made = compare_stops(rows.stops(machine, chosen), rows)
    if as_json:
        _write_json(made.as_dict(), chosen, facts)
    else:
        show(made.table(facts))
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
    as_json: AsJson = False,
) -> int:
    """Fit brakes to published or measured stops, and say what these do not identify.

    All other numbers are those of the brakes file, where the search also starts. A planning aid, no
    safety certificate.
    """
    if output is not None:
        check_target(output, f"--output {output}", [*robot.inputs, table], force=force)
    machine, rows, start, facts = _read(robot, table, brakes)
    made = fitted(machine, rows, start, parameter or ("dynamic_torque",))
    if output is not None:
        made.brakes.to_yaml(output)
    if as_json:
        _write_json(made.as_dict(), start, facts)
        return 0
    show(made.table(facts))
    if output is not None:
        write(f"written: {output}")
    return 0


def _read(
    robot: RobotFile, table: Path, brakes: Path | None
) -> tuple[Mechanism, StoppingTable, Brakes, list[Fact]]:
    """Robot, table and brakes, and a line on where these come from."""
    rows = StoppingTable.from_csv(table)
    machine = robot.load()
    chosen, said = brakes_for(machine, robot.file, brakes)
    facts = [("brakes", chosen.source if chosen.source != "template" else "guessed")]
    facts += said
    return machine, rows, chosen, facts


def _write_json(document: dict[str, Any], brakes: Brakes, facts: list[Fact]) -> None:
    """Print a document, and which brakes the stops began with."""
    said = "; ".join(text for name, text in facts if not name)
    document = {**document, "brakes": {"source": brakes.source, "remark": said}}
    write(json_text(document))


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
