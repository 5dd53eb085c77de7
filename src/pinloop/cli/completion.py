"""What the shell is offered when TAB is pressed: files of the right kind, joints of the robot.

Never fails and never writes: there is nobody to read it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from ..errors import PinloopError
from ..io.robot_file import RobotFile

ROBOTS = (".urdf", ".sdf", ".xml", ".mjcf", ".yaml", ".yml")
YAMLS = (".yaml", ".yml")
_MOST = 1000
"""So many entries of a folder are looked at."""


def files(*suffixes: str) -> Callable[[str], list[str]]:
    """Offer files whose names end in one of some ways, and folders.

    Args:
        suffixes: ends of names, in lower case; any file without them.
    """

    def offered(incomplete: str) -> list[str]:
        return _below(incomplete, suffixes)

    return offered


def folders(incomplete: str) -> list[str]:
    """Offer folders."""
    return _below(incomplete, ("/",))


def _below(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(head + slash) if slash else Path()
    try:
        entries = sorted(folder.expanduser().iterdir())[:_MOST]
    except (OSError, RuntimeError):
        return []
    names = []
    for entry in entries:
        if not entry.name.startswith(tail) or (entry.name.startswith(".") and not tail):
            continue
        name = f"{head}{slash}{entry.name}"
        if entry.is_dir():
            names.append(f"{name}/")
        elif not suffixes or entry.name.lower().endswith(suffixes):
            names.append(name)
    # A lone folder would be followed by a blank: what is in it is offered instead.
    if len(names) == 1 and names[0].endswith("/") and names[0] != incomplete:
        return _below(names[0], suffixes) or names
    return names


def joints(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the joints of the robot on the command line, as ``NAME=``."""
    # An option that still lacks its value ends the parsing: what came before it is left over.
    left = [word for word in context.args if not word.startswith("-")]
    robot = context.params.get("robot") or next(iter(left), None)
    if robot is None or "=" in incomplete:
        return []
    try:
        file = RobotFile.of(robot, context.params | {"tolerance": 0})
        machine = file.load(kinematics_only=True)
    except PinloopError:
        return []
    return [f"{name}=" for name in machine.joints]
