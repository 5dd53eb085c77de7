"""Arguments and options that several commands share, and the one way in which commands are told.

Every command has a summary, what more there is to say, its options, examples, and exit codes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from .completion import ROBOTS, YAMLS, files, joints

__all__ = [
    "ASSEMBLED",
    "MANY",
    "ROBOT_PANEL",
    "RUNS",
    "STOPS",
    "AsJson",
    "FloatingBase",
    "Force",
    "HeldJoints",
    "IgnoreLimits",
    "Loops",
    "ModelName",
    "OpenBrowser",
    "PackageDirs",
    "Robot",
    "Tolerance",
    "command",
    "file_option",
    "held_joints",
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
    app.command(name, help=_paragraphs(function), epilog=epilog, rich_help_panel=panel)(function)


def _paragraphs(function: Callable[..., int]) -> str:
    """The docstring with one line per paragraph: the terminal breaks them."""
    text = inspect.cleandoc(function.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


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


Robot = Annotated[
    Path,
    typer.Argument(
        help="Robot: URDF, SDF, MJCF, a Gepetto YAML or a screw table.",
        metavar="ROBOT",
        show_default=False,
        autocompletion=files(*ROBOTS),
    ),
]
Loops = Annotated[
    list[Path] | None,
    file_option(
        "What closes the loops, if ROBOT does not say: a loops file, a Gepetto YAML or an SRDF. "
        "May be given several times. Files of the same name beside ROBOT are found anyway.",
        ends=(*YAMLS, ".srdf"),
    ),
]
ModelName = Annotated[
    str | None, text_option("Model to load from an SDF that holds several.", "NAME", "--model")
]
PackageDirs = Annotated[
    list[Path] | None,
    file_option(
        "Folder that holds the packages and models of package:// and model:// names. May be given "
        "several times.",
        "--package-dir",
        metavar="DIR",
        ends=("/",),
    ),
]
Tolerance = Annotated[
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
FloatingBase = Annotated[
    bool, typer.Option("--floating-base", help="Let the root link float instead of welding it.")
]
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
