"""The command line: what commands there are, and how mistakes end.

The commands are in the modules `cli_*`; whatever measures or draws lives in the package. Exit
codes: 0 done; 1 the robot cannot be assembled, does not stop, or a run failed, 2 a mistake in what
was asked, 130 interrupted, 141 the reader of the output has gone, 70 a defect of pinloop.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import typer
from typer.main import get_command

from ..errors import PinloopError, PinloopWarning, SimulationFailed, StopFailed
from ..show.terminal import ReaderGone, complain, show_warning, write
from ..version import __version__
from .compare import compare, fit
from .model import assemble, check, regularize
from .options import MANY, ROBOT_PANEL, RUNS, STOPS, command
from .simulate import simulate
from .stop import brakes_app, stop
from .study import study, worst
from .view import play, view

__all__ = ["app", "main", "run"]

_FAILED, _MISTAKE = 1, 2
_DEFECT, _INTERRUPTED, _UNREAD = 70, 130, 141

_ABOUT = "Robots with closed loops: find out what a mechanism is, see it, move it, and stop it."

app = typer.Typer(
    name="pinloop",
    help=_ABOUT,
    epilog="Example: pinloop check urdf/palletizer.urdf\n\n"
    "pinloop COMMAND --help tells more; pinloop --install-completion lets TAB complete words.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: the words after the program's name.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", PinloopWarning)
            warnings.showwarning = show_warning
            code = get_command(app)(
                args=list(arguments), prog_name="pinloop", standalone_mode=False
            )
        return int(code or 0)
    except (PinloopError, typer.TyperException) as error:
        return _failed(error, as_json=_prints_json(arguments))
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except ReaderGone:
        return _UNREAD
    except Exception:
        traceback.print_exc()
        complain("this is a defect of pinloop, not of your robot; please report the lines above")
        return _DEFECT


def _prints_json(arguments: Sequence[str]) -> bool:
    """Whether JSON is asked for on standard output, where even a mistake must be JSON."""
    if "stop" in arguments[:1]:
        return "--json=-" in arguments or ("--json", "-") in pairwise(arguments)
    return "--json" in arguments


def _failed(error: PinloopError | typer.TyperException, *, as_json: bool) -> int:
    """Say what is wrong, in one sentence."""
    text = error.format_message() if isinstance(error, typer.TyperException) else str(error)
    # What typer says of a wrong word begins with the class of an error.
    sentence = " ".join(text.replace("Value error, ", "").split())
    try:
        if as_json:
            write(json.dumps({"error": sentence}))
    except ReaderGone:
        return _UNREAD
    complain(sentence)
    return _FAILED if isinstance(error, StopFailed | SimulationFailed) else _MISTAKE


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Print the help if nothing is asked for."""
    if version:
        write(f"pinloop {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        write(context.get_help(), rendered=True)


_ASSEMBLED = "0 the robot is assembled; 1 it cannot be"
_STUDIED = "0 every case stopped and holds; 1 some case did not; 130 interrupted"

command(
    app,
    check,
    "check urdf/palletizer.urdf",
    "check urdf/delta.urdf --json",
    codes="0 the robot can be assembled; 1 it cannot",
    panel=ROBOT_PANEL,
)
command(
    app,
    assemble,
    "assemble urdf/palletizer.urdf --q shoulder=25deg --q elbow=0.3",
    "assemble urdf/fourbar.urdf --near joint_3=-90deg --json",
    codes=_ASSEMBLED,
    panel=ROBOT_PANEL,
)
command(
    app,
    regularize,
    "regularize urdf/prrr3.urdf",
    "regularize urdf/fourbar.urdf --cut joint_3 -o recut.urdf",
    codes="0 done; 1 the robot cannot be assembled",
    panel=ROBOT_PANEL,
)
command(
    app,
    view,
    "view urdf/palletizer.urdf --q shoulder=0.4 --html arm.html",
    codes=_ASSEMBLED,
    panel=ROBOT_PANEL,
)
command(
    app,
    simulate,
    "simulate urdf/palletizer.scenario.yaml",
    "simulate urdf/fourbar.scenario.yaml -o run.npz -o run.csv --json",
    codes="0 the run came to its end; 1 it failed; 130 interrupted",
    panel=RUNS,
)
command(app, play, "play run.npz --html run.html", codes="0 done", panel=RUNS)
command(
    app,
    stop,
    "stop urdf/six_axis_arm.urdf --payload 5kg --csv stop.csv",
    codes="0 the robot stands and is held; 1 it is not",
    panel=STOPS,
)
app.add_typer(brakes_app, rich_help_panel=STOPS)
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


if __name__ == "__main__":
    main()
