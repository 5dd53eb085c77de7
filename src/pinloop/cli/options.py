"""What commands share: how they are made, their arguments and options, what TAB offers, results.

Every command has a summary, what more there is to say, its options, examples, and exit codes.
"""

from __future__ import annotations

import inspect
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from ..boundary.files import check_target, json_text, write_json
from ..boundary.schema import keys_of
from ..errors import PinloopError
from ..io.examples import robot_path
from ..io.loading import RobotFile
from ..model.mechanism import Mechanism
from ..show.terminal import complain, show, write

Run = TypeVar("Run", bound=Callable[..., int | None])

ROBOTS, RUNS, STOPS, MANY = "Robots", "Simulation", "Stops", "Many stops"
"""Groups of commands on the first page of the help."""
ASSEMBLED = "0 the loops are closed; 1 they cannot be"
"""Exit codes of commands that close the loops of a robot."""
REPEATED = "May be given several times."
YAMLS = (".yaml", ".yml")


# -- commands -------------------------------------------------------------------------------------


class Commands(typer.Typer):
    """Commands under one heading of the first page of the help, or of a group."""

    def __init__(self, panel: str | None = None, **settings: Any) -> None:
        super().__init__(rich_markup_mode="rich", **settings)
        self._panel = panel

    def add(self, *examples: str, codes: str = "0 done") -> Callable[[Run], Run]:
        """Make a function a command; its docstring is the help, what it returns the exit code.

        ``examples`` show how it is called, without ``pinloop``; ``codes`` are the exit codes but
        that of a mistake: ``0 done; 1 not closed``.
        """
        lines = "\n".join(f"Example: pinloop {example}" for example in examples)
        described = sorted(
            [*codes.split("; "), "2 invalid input"], key=lambda code: int(code.split()[0])
        )
        epilog = f"{lines}\n\nExit codes: {'; '.join(described)}."

        def join(function: Run) -> Run:
            # One line per paragraph: the terminal breaks them.
            paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
            text = "\n\n".join(" ".join(part.split()) for part in paragraphs)
            register = self.command(
                help=text, epilog=epilog, rich_help_panel=self._panel, cls=_Command
            )
            register(_with_robot_options(function))
            return function

        return join


class _Command(TyperCommand):
    """A command whose help shows no type behind options that take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a word for a value."""
        return _bare_flags(super().get_params(ctx))


class Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a word for a value."""
        return _bare_flags(super().get_params(ctx))


def _bare_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _with_robot_options(function: Callable[..., int | None]) -> Callable[..., int | None]:
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
        *_ROBOT_OPTIONS,
    ]

    @wraps(function)
    def called(**values: Any) -> int | None:
        options = {option.name: values.pop(option.name) for option in _ROBOT_OPTIONS}
        values[place] = RobotFile.of(robot_path(values.pop("robot")), options)
        return function(**values)

    called.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return called


def kinematics_of(file: RobotFile) -> Mechanism:
    """The robot for commands that move no masses; says what loading left out."""
    robot = file.load(kinematics_only=True)
    for warning in robot.warnings:
        warn(warning)
    return robot


# -- results --------------------------------------------------------------------------------------


def settle_words(arguments: Sequence[str]) -> list[str]:
    """The words of a command, with ``-`` for ``--json`` unless a file ending in .json follows.

    ``--q`` was called ``--pose``, and still may be.
    """
    words = [re.sub(r"^--pose(?==|$)", "--q", word) for word in arguments]
    for k, word in enumerate(words):
        following = words[k + 1] if k + 1 < len(words) else ""
        if word == "--json" and following != "-" and not following.endswith(".json"):
            words[k] = "--json=-"
    return words


def check_targets(
    inputs: Iterable[Path | None], *, force: bool = True, **targets: str | Path | None
) -> None:
    """Refuse before anything is computed what could not be written, or would destroy something.

    ``targets`` are files to write by the name of their option; "-" is standard output.
    """
    taken = [path for path in inputs if path is not None]
    for name, target in targets.items():
        if target is not None and str(target) != "-":
            check_target(Path(target), taken, f"--{name} {target}", force=force)
            taken.append(Path(target))


def give_result(
    as_json: str | None,
    document: Callable[[], Mapping[str, Any]],
    table: Callable[[], Any],
    written: Iterable[Path] = (),
) -> None:
    """Print a result: as a table, or as JSON alone; or write the JSON and print the table.

    ``as_json`` is the value of ``--json``: None, "-", or a file.
    """
    if as_json == "-":
        write(json_text(document()))
        return
    if as_json is not None:
        written = (write_json(as_json, document()), *written)
    show(table())
    for path in written:
        write(f"written: {path}")


def warn(sentence: str) -> None:
    """Print a warning on standard error."""
    complain(sentence, "warning", "yellow")


def watched() -> bool:
    """Whether somebody sees standard error, so that progress is worth showing."""
    return sys.stderr is not None and sys.stderr.isatty()


def show_until_interrupted(show: Callable[[], Any], *, open_browser: bool) -> None:
    """Open a live viewer and keep it until Ctrl-C."""
    # Whatever ends the command, the viewer is closed first.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: sys.exit(128 + number))
    try:
        with show() as viewer:
            write(f"{viewer.url}\nCtrl-C ends the viewer.")
            if open_browser and not viewer.open():
                warn("no browser found; open the address above")
            viewer.wait()
    except KeyboardInterrupt:
        return
    raise PinloopError("the viewer's server has ended by itself")


# -- what the shell is offered when TAB is pressed ------------------------------------------------
# Never fails and never writes: there is nobody to read it.

_MOST = 1000
"""So many entries of a folder are looked at."""


def _files(*suffixes: str) -> Callable[[str], list[str]]:
    """Offer folders, and files whose names end in one of some ways, in lower case."""
    return lambda incomplete: _below(incomplete, suffixes)


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


def offer_joints(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the joints of the robot on the command line, as ``NAME=``."""
    # An option that still lacks its value ends the parsing: what came before it is left over.
    left = [word for word in context.args if not word.startswith("-")]
    robot = context.params.get("robot") or next(iter(left), None)
    if robot is None or "=" in incomplete:
        return []
    try:
        file = RobotFile.of(robot_path(Path(robot)), context.params | {"tolerance": 0})
        machine = file.load(kinematics_only=True)
    except PinloopError:
        return []
    return [f"{name}=" for name in machine.joints]


# -- arguments and options ------------------------------------------------------------------------


def argument(text: str, metavar: str, *ends: str) -> Any:
    """An argument that is a file whose name ends in one of some ways."""
    return typer.Argument(
        help=text, metavar=metavar, show_default=False, autocompletion=_files(*ends)
    )


def text_option(text: str, metavar: str, *names: str, **more: Any) -> Any:
    """An option whose value is a word."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, **more)


def file_option(text: str, *names: str, metavar: str = "FILE", ends: tuple[str, ...] = ()) -> Any:
    """An option whose value is a file; it is called like its parameter by default.

    ``ends``: ends of the names of files that the shell offers; any by default, "/" for folders.
    """
    return text_option(text, metavar, *names, autocompletion=_files(*ends))


def flag(name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text)


def count(text: str, least: int = 0) -> Any:
    """An option whose value is a whole number."""
    return typer.Option(min=least, metavar="N", help=text)


def held_joints(text: str, *names: str) -> Any:
    """An option that gives joints their values."""
    return text_option(text, "NAME=VALUE", *names, autocompletion=offer_joints)


_Robot = Annotated[
    Path,
    argument(
        "Robot: URDF, SDF, MJCF, a Gepetto YAML, a screw table, or the name of an example.",
        "ROBOT",
        *(".urdf", ".sdf", ".xml", ".mjcf", *YAMLS),
    ),
]


def _robot_option(key: str, kind: Any, name: str, **more: Any) -> inspect.Parameter:
    """The option for a field of `RobotFile`, which says what it is."""
    field = keys_of(RobotFile)[key]
    repeated = f" {REPEATED}" if isinstance(field.default, tuple) else ""
    text = f"{field.meaning[0].upper()}{field.meaning[1:]}.{repeated}"
    return inspect.Parameter(
        key,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if kind is bool else None,
        annotation=Annotated[kind, typer.Option(name, help=text, show_default=False, **more)],
    )


_ROBOT_OPTIONS = (
    _robot_option(
        "loops",
        list[Path] | None,
        "--loops",
        metavar="FILE",
        autocompletion=_files(*YAMLS, ".srdf"),
    ),
    _robot_option(
        "package_dirs",
        list[Path] | None,
        "--package-dir",
        metavar="DIR",
        autocompletion=_files("/"),
    ),
    _robot_option("tolerance", float | None, "--tolerance", metavar="X"),
    _robot_option("model", str | None, "--model", metavar="NAME"),
    _robot_option("floating_base", bool, "--floating-base"),
)
"""Options of every command that reads a robot."""
HeldJoints = Annotated[
    list[str] | None,
    held_joints(
        "Joint and the value to hold it at, in rad or m, or with a unit, deg or mm; commas "
        f"separate several coordinates. {REPEATED}",
        "--q",
    ),
]
IgnoreLimits = Annotated[bool, flag("--ignore-limits", "Let joints exceed their position limits.")]
Html = Annotated[
    Path | None, file_option("Write one self-contained HTML page and exit.", ends=(".html",))
]
OpenBrowser = Annotated[bool, flag("--open/--no-browser", "Open the browser.")]
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
Force = Annotated[bool, flag("--force", "Overwrite existing files.")]
