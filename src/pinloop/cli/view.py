"""The commands `pinloop view` and `pinloop play`: a robot, or a run of it, in the browser.

Turns words into calls and addresses into text; what is shown is made in `view`. The viewer's server
ends with the command.
"""

from __future__ import annotations

import signal
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

from ..assembly.assemble import assemble
from ..errors import LoopNotClosed, PinloopError
from ..io.robot_file import RobotFile
from ..model.mechanism import Mechanism
from ..show.terminal import complain, write
from ..simulation.run_file import load_trajectory
from .completion import files
from .options import (
    ASSEMBLED,
    REPEATED,
    ROBOT_PANEL,
    RUNS,
    HeldJoints,
    IgnoreLimits,
    OpenBrowser,
    command,
    file_option,
    kinematics_of,
    text_option,
)
from .words import IGNORE, check_limits, joint_values, time

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

_NOT_ASSEMBLED = 1

Html = Annotated[
    Path | None, file_option("Write one self-contained HTML page and exit.", ends=(".html",))
]


def view(
    robot: RobotFile,
    html: Html = None,
    q: HeldJoints = None,
    ignore_limits: IgnoreLimits = False,
    open_browser: OpenBrowser = False,
) -> int:
    """Show a robot in the browser, with its loops closed; Ctrl-C ends the viewer.

    If the loops cannot be closed, the nearest configuration is shown.
    """
    machine = kinematics_of(robot)
    held = joint_values(machine, q or (), "--q")
    if not ignore_limits:
        check_limits(machine, held, "--q", IGNORE)
    configuration, code = _assembled(machine, held, limits=not ignore_limits)
    from ..show.scene import view as show

    if html is not None:
        write(str(show(machine, configuration, html=html, open_browser=open_browser)))
    else:
        _show_until_interrupted(lambda: show(machine, configuration), open_browser=open_browser)
    return code


def play(
    run: Annotated[
        Path,
        typer.Argument(
            help="Saved run, of pinloop simulate or Trajectory.save.",
            metavar="RUN.npz",
            show_default=False,
            autocompletion=files(".npz"),
        ),
    ],
    html: Html = None,
    trace: Annotated[
        list[str] | None,
        text_option(
            f"Frame or body whose path is drawn. {REPEATED} Default: the tool.",
            "FRAME",
        ),
    ] = None,
    ghost: Annotated[
        list[str] | None,
        text_option(f"Time of a pose that stays visible, translucent: 0.8, 800ms. {REPEATED}", "T"),
    ] = None,
    forces: Annotated[
        bool, typer.Option("--forces", help="Draw the forces of loop joints and locks as arrows.")
    ] = False,
    open_browser: OpenBrowser = False,
) -> int:
    """Replay a saved run in the browser; Ctrl-C ends the viewer."""
    motion = load_trajectory(run)
    wanted: dict[str, Any] = {
        "traces": trace or None,
        "ghosts": [time(word, "--ghost") for word in ghost or ()],
        "forces": forces,
    }
    if html is None:
        _show_until_interrupted(
            lambda: motion.view(**wanted, announce=False), open_browser=open_browser
        )
        return 0
    path = motion.save_html(html, **wanted)
    write(str(path))
    if open_browser:
        webbrowser.open(path.resolve().as_uri(), new=2)
    return 0


def _assembled(
    robot: Mechanism, held: dict[str, list[float]], *, limits: bool
) -> tuple[NDArray[Any], int]:
    """The configuration to show and the exit code; the nearest one if the loops cannot close."""
    try:
        return assemble(robot, fixed=held, limits=limits), 0
    except LoopNotClosed as error:
        complain(str(error), "NOT CLOSED", "bold red")
        return error.q, _NOT_ASSEMBLED


def _show_until_interrupted(show: Callable[[], Any], *, open_browser: bool) -> None:
    """Open a live viewer and keep it until Ctrl-C."""
    # Whatever ends the command, the viewer is closed first.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _terminate)
    try:
        with show() as viewer:
            write(f"{viewer.url}\nCtrl-C ends the viewer.")
            if open_browser and not viewer.open():
                complain("no browser found; open the address above", "warning", "yellow")
            viewer.wait()
    except KeyboardInterrupt:
        return
    raise PinloopError("the viewer's server has ended by itself")


def _terminate(number: int, frame: object) -> None:
    sys.exit(128 + number)


command(
    app,
    view,
    "view urdf/palletizer.urdf --q shoulder=0.4 --html arm.html",
    codes=ASSEMBLED,
    panel=ROBOT_PANEL,
)
command(app, play, "play run.npz --html run.html", codes="0 done", panel=RUNS)
