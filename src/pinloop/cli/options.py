"""Arguments and options that several commands share, and the one way in which commands are made.

Every command has a summary, what more there is to say, its options, examples, and exit codes.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ..boundary.json import json_text, write_json
from ..boundary.schema import keys_of
from ..errors import BadValue
from ..io.robot_file import RobotFile
from ..model.mechanism import Mechanism
from ..show.terminal import complain, show, write
from .completion import ROBOTS, YAMLS, files, joints

ROBOT_PANEL, RUNS, STOPS, MANY = "Robots", "Simulation", "Stops", "Many stops"
"""Groups of commands on the first page of the help."""

ASSEMBLED = "0 the loops are closed; 1 they cannot be"
"""Exit codes of commands that close the loops of a robot."""
_MISTAKE = "2 invalid input"
REPEATED = "May be given several times."


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
    described = sorted([*codes.split("; "), _MISTAKE], key=lambda code: int(code.split()[0]))
    epilog = "\n".join(lines) + f"\n\nExit codes: {'; '.join(described)}."
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


def settle_json(arguments: Sequence[str]) -> list[str]:
    """The words of a command, with ``-`` for ``--json`` unless a file ending in .json follows."""
    words = list(arguments)
    for k, word in enumerate(words):
        following = words[k + 1] if k + 1 < len(words) else ""
        if word == "--json" and following != "-" and not following.endswith(".json"):
            words[k] = "--json=-"
    return words


def check_json(as_json: str | None, inputs: Iterable[Path]) -> None:
    """Refuse before anything is computed a file for JSON that could not be written."""
    if as_json not in (None, "-"):
        check_target(Path(str(as_json)), f"--json {as_json}", inputs, force=True)


def give_result(
    as_json: str | None, document: Callable[[], Mapping[str, Any]], table: Callable[[], Any]
) -> None:
    """Print a result: as a table, or as JSON alone; or write the JSON and print the table.

    Args:
        as_json: value of ``--json``: None, "-", or a file.
        document: makes what JSON has.
        table: makes the table.
    """
    if as_json != "-":
        show(table())
    if as_json is None:
        return
    if as_json == "-":
        write(json_text(document()))
    else:
        write(f"written: {write_json(as_json, document())}")


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
    if os.path.realpath(path) in {os.path.realpath(other) for other in inputs}:
        raise BadValue(f"'{option}' is a file that is used already; name another")
    if path.exists() and not force:
        raise BadValue(f"{path} exists; add --force to overwrite it, or name another with -o")


def text_option(text: str, metavar: str, *names: str, **more: Any) -> Any:
    """An option whose value is a word."""
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


def held_joints(text: str, *names: str) -> Any:
    """An option that gives joints their values."""
    return text_option(text, "NAME=VALUE", *names, autocompletion=joints)


_Robot = Annotated[
    Path,
    typer.Argument(
        help="Robot: URDF, SDF, MJCF, a Gepetto YAML or a screw table.",
        metavar="ROBOT",
        show_default=False,
        autocompletion=files(*ROBOTS),
    ),
]
_KEYS = keys_of(RobotFile)


def _robot_option(key: str, name: str, **more: Any) -> Any:
    """The option for a field of `RobotFile`, which says what it is."""
    text = _KEYS[key].meaning
    repeated = f" {REPEATED}" if isinstance(_KEYS[key].default, tuple) else ""
    return typer.Option(
        name, help=f"{text[0].upper()}{text[1:]}.{repeated}", show_default=False, **more
    )


_ROBOT_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "loops": (
        Annotated[
            list[Path] | None,
            _robot_option(
                "loops", "--loops", metavar="FILE", autocompletion=files(*YAMLS, ".srdf")
            ),
        ],
        None,
    ),
    "package_dirs": (
        Annotated[
            list[Path] | None,
            _robot_option(
                "package_dirs", "--package-dir", metavar="DIR", autocompletion=files("/")
            ),
        ],
        None,
    ),
    "tolerance": (
        Annotated[float | None, _robot_option("tolerance", "--tolerance", metavar="X")],
        None,
    ),
    "model": (Annotated[str | None, _robot_option("model", "--model", metavar="NAME")], None),
    "floating_base": (Annotated[bool, _robot_option("floating_base", "--floating-base")], False),
}
"""Options of every command that reads a robot, with their defaults."""
HeldJoints = Annotated[
    list[str] | None,
    held_joints(
        "Joint and the coordinate it is held at: rad, m, or with a unit, deg or mm; several "
        f"coordinates are separated by commas. {REPEATED}",
        "--q",
    ),
]
IgnoreLimits = Annotated[
    bool, typer.Option("--ignore-limits", help="Let joints exceed their position limits.")
]
OpenBrowser = Annotated[bool, typer.Option("--open/--no-browser", help="Open the browser.")]
AsJson = Annotated[
    str | None,
    file_option(
        "Print the result as JSON and nothing else; with FILE.json, write it there and print the "
        "table.",
        "--json",
        metavar="[FILE.json]",
        ends=(".json",),
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
