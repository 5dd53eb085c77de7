"""The command line: `check` and `view`; others in `cli_stop`, `cli_study` and `cli_compare`.

Turns words into calls and results into text and exit codes; whatever measures or draws lives in
the package. Exit codes: 0 done, 1 the robot cannot be assembled or does not stop, 2 a mistake in
what was asked, 130 interrupted, 141 the reader of the output has gone, 70 a defect of pinloop.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from .assembly import assemble
from .cli_compare import compare, fit
from .cli_options import File, FloatingBase, Loops, PackageDirs
from .cli_stop import brakes_app, stop
from .cli_study import study, worst
from .diagnosis import diagnose
from .errors import BadValue, LoopNotClosed, PinloopError, PinloopWarning, StopFailed
from .loading import load
from .mechanism import Mechanism
from .terminal import ReaderGone, complain, print_report, show_warning, write
from .version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["app", "main", "run"]

_NOT_ASSEMBLED, _NOT_STOPPED, _MISTAKE = 1, 1, 2
_DEFECT, _INTERRUPTED, _UNREAD = 70, 130, 141

app = typer.Typer(
    name="pinloop",
    help="Robots with closed loops: find out what a mechanism is, see it, and stop it.",
    epilog="Example: pinloop check urdf/palletizer.urdf",
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
    sentence = " ".join(text.split())
    try:
        if as_json:
            write(json.dumps({"error": sentence}))
    except ReaderGone:
        return _UNREAD
    complain(sentence)
    return _NOT_STOPPED if isinstance(error, StopFailed) else _MISTAKE


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Robots with closed loops: find out what a mechanism is, see it, and stop it."""
    if version:
        write(f"pinloop {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        write(context.get_help())


@app.command(epilog="Example: pinloop check urdf/delta.urdf --json")
def check(
    file: File,
    loops: Loops = None,
    package_dir: PackageDirs = None,
    floating_base: FloatingBase = False,
    kinematics_only: Annotated[
        bool, typer.Option("--kinematics-only", help="Accept moving links without mass.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else.")
    ] = False,
    samples: Annotated[
        int, typer.Option(min=0, help="Number of further configurations to take ranks at.")
    ] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random configurations.")] = 0,
) -> int:
    """Report what a robot is: loops, constraint rows and rank, mobility, idle joints, warnings.

    Exits with 0 if the robot can be assembled, 1 if it cannot, 2 if it cannot be read.
    """
    robot = load(
        file,
        loops=loops or None,
        package_dirs=package_dir or (),
        floating_base=floating_base,
        kinematics_only=kinematics_only,
    )
    report = diagnose(robot, samples=samples, seed=seed)
    if as_json:
        write(json.dumps(report.as_dict(), indent=2, allow_nan=False))
    else:
        print_report(report)
    return 0 if report.assembled else _NOT_ASSEMBLED


@app.command(epilog="Example: pinloop view urdf/palletizer.urdf --q shoulder=0.4 --html arm.html")
def view(
    file: File,
    loops: Loops = None,
    package_dir: PackageDirs = None,
    floating_base: FloatingBase = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write one self-contained HTML file and exit.", show_default=False),
    ] = None,
    q: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Joint and the coordinate that it is held at (rad, m); several coordinates are "
            "separated by commas. May be given several times.",
            show_default=False,
        ),
    ] = None,
    ignore_limits: Annotated[
        bool, typer.Option("--ignore-limits", help="Let joints pass their position limits.")
    ] = False,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the picture in the browser.")
    ] = False,
) -> int:
    """Show a robot, assembled, in the browser; Ctrl-C ends the viewer.

    Exits with 1 if the robot cannot be assembled: then it is shown as near to it as it comes.
    """
    robot = load(
        file,
        loops=loops or None,
        package_dirs=package_dir or (),
        floating_base=floating_base,
        kinematics_only=True,
    )
    for warning in robot.warnings:
        complain(warning, "warning", "yellow")
    configuration, code = _assembled(robot, _held(q or ()), limits=not ignore_limits)
    if html is not None:
        from .view import view as show

        path = show(robot, configuration, html=html, open_browser=open_browser)
        write(str(path))
    else:
        _show_until_interrupted(robot, configuration, open_browser=open_browser)
    return code


def _held(words: Sequence[str]) -> dict[str, list[float]]:
    """Joints and their coordinates from words such as ``elbow=0.3`` or ``ball=0,0,0,1``."""
    held = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            held[name.strip()] = [float(number) for number in value.split(",")]
        except ValueError:
            raise BadValue(
                f"'--q {word}' is not a joint and its value; write for example --q elbow=0.3"
            ) from None
    return held


def _assembled(
    robot: Mechanism, held: dict[str, list[float]], *, limits: bool
) -> tuple[NDArray[Any], int]:
    """The configuration to show and the exit code; the nearest one if the loops cannot close."""
    try:
        return assemble(robot, fixed=held, limits=limits), 0
    except LoopNotClosed as error:
        complain(str(error), "NOT CLOSED", "bold red")
        return error.q, _NOT_ASSEMBLED


def _show_until_interrupted(
    robot: Mechanism, configuration: NDArray[Any], *, open_browser: bool
) -> None:
    """Open the live viewer and keep it until Ctrl-C."""
    from .view import view as show

    # The viewer's server is a process of its own: it must end with this one, however that ends.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _terminate)
    try:
        with show(robot, configuration) as viewer:
            write(f"{viewer.url}\nCtrl-C ends the viewer.")
            if open_browser and not viewer.open():
                complain("no browser found; open the address above", "warning", "yellow")
            viewer.wait()
    except KeyboardInterrupt:
        return
    raise PinloopError("the viewer's server has ended by itself")


def _terminate(number: int, frame: object) -> None:
    sys.exit(128 + number)


app.command(epilog="Example: pinloop stop urdf/six_axis_arm.urdf --payload 5kg --csv stop.csv")(
    stop
)
app.command(epilog="Example: pinloop study urdf/six_axis_arm.study.yaml --results arm.csv")(study)
app.command(
    epilog="Example: pinloop worst urdf/six_axis_arm.study.yaml --results arm.csv --html worst"
)(worst)
app.command(epilog="Example: pinloop compare ur5_robot.urdf examples/ur5_stops.csv")(compare)
app.command(
    epilog="Example: pinloop fit ur5_robot.urdf examples/ur5_stops.csv --parameter dynamic_torque "
    "--parameter viscous -o ur5.brakes.yaml"
)(fit)
app.add_typer(brakes_app)


if __name__ == "__main__":
    main()
