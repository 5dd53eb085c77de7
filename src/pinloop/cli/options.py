"""Arguments and options that several commands share, and the one way in which commands are told.

Every command has a summary, what more there is to say, its options, examples, and exit codes.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadValue
from ..io.robot_file import RobotFile
from ..model.mechanism import Mechanism
from ..show.terminal import complain
from .completion import ROBOTS, YAMLS, files, joints

__all__ = [
    "ASSEMBLED",
    "MANY",
    "ROBOT_PANEL",
    "RUNS",
    "STOPS",
    "AsJson",
    "Force",
    "HeldJoints",
    "IgnoreLimits",
    "OpenBrowser",
    "check_target",
    "command",
    "file_option",
    "held_joints",
    "kinematics_of",
    "text_option",
]

ROBOT_PANEL, RUNS, STOPS, MANY = "Robots", "Runs", "Stops", "Many stops"
"""Groups of commands on the first page of the help."""

ASSEMBLED = "0 the robot is assembled; 1 it cannot be"
"""Exit codes of commands that close the loops of a robot."""
_MISTAKE = "2 a mistake in what was asked"


def command(
    app: typer.Typer,
    function: Callable[..., int],
    *examples: str,
    codes: str,
    panel: str | None = None,
    name: str | None = None,
) -> None:
    """Make a function a command.

    Args:
        app: the commands that it joins.
        function: its docstring is the help.
        examples: lines that show how it is called, without ``pinloop``.
        codes: exit codes but that of a mistake: ``0 done; 1 not closed``.
        panel: group of commands on the first page.
        name: name of the command; that of the function by default.
    """
    lines = [f"Example: pinloop {example}" for example in examples]
    told = sorted([*codes.split("; "), _MISTAKE], key=lambda code: int(code.split()[0]))
    epilog = "\n".join(lines) + f"\n\nExit codes: {'; '.join(told)}."
    help_text = _paragraphs(function)
    function = _with_robot_options(function)
    app.command(name, help=help_text, epilog=epilog, rich_help_panel=panel)(function)


def _with_robot_options(function: Callable[..., int]) -> Callable[..., int]:
    """The function with an argument and options for its `RobotFile`, if it has one."""
    signature = inspect.signature(function, eval_str=True)
    parameters = dict(signature.parameters)
    place = next((name for name, p in parameters.items() if p.annotation is RobotFile), None)
    if place is None:
        return function
    del parameters[place]
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("robot", kind, annotation=_Robot),
        *(parameter.replace(kind=kind) for parameter in parameters.values()),
        *(
            inspect.Parameter(name, kind, annotation=option, default=default)
            for name, (option, default) in _ROBOT_OPTIONS.items()
        ),
    ]

    @wraps(function)
    def called(**values: Any) -> int:
        options = {name: values.pop(name) for name in _ROBOT_OPTIONS}
        values[place] = RobotFile.of(values.pop("robot"), options)
        return function(**values)

    called.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return called


def kinematics_of(file: RobotFile) -> Mechanism:
    """The robot for commands that move no masses; says what loading left out."""
    robot = file.load(kinematics_only=True)
    for warning in robot.warnings:
        complain(warning, "warning", "yellow")
    return robot


def _paragraphs(function: Callable[..., int]) -> str:
    """The docstring with one line per paragraph: the terminal breaks them."""
    text = inspect.cleandoc(function.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def check_target(path: Path, option: str, inputs: Iterable[Path], *, force: bool) -> None:
    """Refuse before anything is computed what could not be written, or would destroy something.

    Args:
        path: file to write.
        option: what was given for it, as it was typed.
        inputs: files that are read.
        force: whether a file may be overwritten.

    Raises:
        BadValue: says what is wrong with it.
    """
    if not path.parent.is_dir():
        raise BadValue(f"{path} cannot be written: there is no folder '{path.parent}'")
    if os.path.realpath(path) in {os.path.realpath(one) for one in inputs}:
        raise BadValue(f"'{option}' is a file that is used already; name another")
    if path.exists() and not force:
        raise BadValue(f"{path} exists; add --force to overwrite it, or name another with -o")


def text_option(text: str, metavar: str, name: str | None = None, **more: Any) -> Any:
    """An option whose value is a word."""
    names = () if name is None else (name,)
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, **more)


def file_option(text: str, *names: str, metavar: str = "FILE", ends: tuple[str, ...] = ()) -> Any:
    """An option whose value is a file.

    Args:
        text: what it is.
        names: names of the option; that of the parameter by default.
        metavar: what stands for the value.
        ends: ends of the names of files that the shell offers; any by default.
    """
    return typer.Option(
        *names, metavar=metavar, help=text, show_default=False, autocompletion=files(*ends)
    )


def held_joints(text: str, name: str) -> Any:
    """An option that gives joints their values."""
    return text_option(text, "NAME=VALUE", name, autocompletion=joints)


_Robot = Annotated[
    Path,
    typer.Argument(
        help="Robot: URDF, SDF, MJCF, a Gepetto YAML or a screw table.",
        metavar="ROBOT",
        show_default=False,
        autocompletion=files(*ROBOTS),
    ),
]
_Loops = Annotated[
    list[Path] | None,
    file_option(
        "What closes the loops, if ROBOT does not say: a loops file, a Gepetto YAML or an SRDF. "
        "May be given several times. Files of the same name beside ROBOT are found anyway.",
        ends=(*YAMLS, ".srdf"),
    ),
]
_ModelName = Annotated[
    str | None, text_option("Model to load from an SDF that holds several.", "NAME", "--model")
]
_PackageDirs = Annotated[
    list[Path] | None,
    file_option(
        "Folder that holds the packages and models of package:// and model:// names. May be given "
        "several times.",
        "--package-dir",
        metavar="DIR",
        ends=("/",),
    ),
]
_Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="X",
        show_default=False,
        help="Turn (rad) and shift (lengths of the robot) of joint frames up to which loops count "
        "as rounded and are closed; 0: take every digit. By default 1e-4, or what the digits of "
        "the file allow.",
    ),
]
_FloatingBase = Annotated[
    bool, typer.Option("--floating-base", help="Let the root link float instead of welding it.")
]
_ROBOT_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "loops": (_Loops, None),
    "package_dirs": (_PackageDirs, None),
    "tolerance": (_Tolerance, None),
    "model": (_ModelName, None),
    "floating_base": (_FloatingBase, False),
}
"""Options of every command that reads a robot, with their defaults."""
HeldJoints = Annotated[
    list[str] | None,
    held_joints(
        "Joint and where it is held (rad, m, or with deg, mm); several coordinates are separated "
        "by commas. May be given several times.",
        "--q",
    ),
]
IgnoreLimits = Annotated[
    bool, typer.Option("--ignore-limits", help="Let joints pass their position limits.")
]
OpenBrowser = Annotated[
    bool, typer.Option("--open/--no-browser", help="Open the picture in the browser.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there, wherever it is.")]
