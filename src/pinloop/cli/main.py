"""The command line: what commands there are, and how mistakes end.

The commands are in the other files of this folder, each imported when it is asked for.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.main import get_command, get_group

from ..boundary.files import json_text
from ..errors import BadValue, PinloopError, PinloopWarning, SimulationFailed, StopFailed
from ..show.terminal import ReaderGone, complain, show_warning, write
from ..version import __version__
from . import Exit, quiet_interrupts, raised_interrupts
from .options import Group, settle_words

_MODULES = {
    command: module
    for module, commands in (
        ("robots", "check assemble regularize convert view"),
        ("examples", "examples"),
        ("runs", "simulate play"),
        ("stops", "stop"),
        ("studies", "study worst"),
        ("standards", "allowed-speed cell-map separation minimum-distance annex-b"),
        ("studies", "compare fit"),
        ("stops", "swept brakes"),
    )
    for command in commands.split()
}
"""The commands, in the order of the help, and the files of this folder that hold them."""


class _LazyCommands(UserDict[str, Any]):
    """Commands by name; a module is imported when the first of its commands is looked up."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, str):
            with quiet_interrupts():
                module = import_module(f".{command}", __package__)
            command = self.data[name] = get_group(module.app).commands[name]
        return command


class _Commands(Group):
    """The group of all commands: `pinloop check` loads neither stops nor the viewer."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LazyCommands(_MODULES)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let ``--json`` be a flag or take a file; see `settle_words`."""
        return super().parse_args(ctx, settle_words(args))


_ABOUT = "Robots with closed loops: analyse, view, simulate and stop them."

app = typer.Typer(
    name="pinloop",
    cls=_Commands,
    help=_ABOUT,
    epilog="Example: pinloop check urdf/palletizer.urdf\n\n"
    "pinloop COMMAND --help shows more; pinloop --install-completion enables TAB completion.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line by the words after the program's name, and return its exit code."""
    try:
        with raised_interrupts(), warnings.catch_warnings():
            warnings.simplefilter("always", PinloopWarning)
            warnings.showwarning = show_warning
            code = get_command(app)(
                args=list(arguments), prog_name="pinloop", standalone_mode=False
            )
            if code == Exit.INTERRUPTED and not isinstance(code, Exit):
                raise KeyboardInterrupt  # typer has taken it, and says nothing
        return int(code or 0)
    except (PinloopError, typer.TyperException) as error:
        words = settle_words(arguments)
        return _failed(error, as_json="--json=-" in words or ("--json", "-") in pairwise(words))
    except (KeyboardInterrupt, typer.Abort):
        write("interrupted", error=True)
        return Exit.INTERRUPTED
    except ReaderGone:
        return Exit.UNREAD
    except Exception:
        traceback.print_exc()
        complain("this is a defect of pinloop, not of your robot; please report the lines above")
        return Exit.DEFECT


def _failed(error: PinloopError | typer.TyperException, *, as_json: bool) -> int:
    """Say what is wrong, in one sentence."""
    text = _meaning(error) if isinstance(error, typer.TyperException) else str(error)
    # What typer says of a wrong word begins with the class of an error.
    sentence = " ".join(text.replace("Value error, ", "").split())
    try:
        if as_json:
            write(json_text({"error": sentence}, indent=None))
    except ReaderGone:
        return Exit.UNREAD
    complain(sentence)
    return Exit.FAILED if isinstance(error, StopFailed | SimulationFailed) else Exit.MISTAKE


_WANTED = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "{ge} or more",
}
"""What the value of an option should be, by what typer's checks call the mistake."""


def _meaning(error: typer.TyperException) -> str:
    """What is wrong with the words of a command."""
    check: list[Any] = getattr(error.__cause__, "errors", list)()
    if check and check[0]["type"] in _WANTED and isinstance(error, typer.BadParameter):
        wanted = _WANTED[check[0]["type"]].format(**check[0].get("ctx", {}))
        assert error.param is not None
        return f"'{error.param.opts[0]} {check[0]['input']}' is not {wanted}"
    return error.format_message()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a Python module first, such as one with your own pairs or robot formats.",
        ),
    ] = None,
) -> None:
    """Print the help if nothing is asked for."""
    for module in modules or ():
        _import(module)
    if version:
        write(f"pinloop {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        write(context.get_help(), rendered=True)


def _import(module: str) -> None:
    """Import a module of the user's, from the current folder too, as ``python -m`` would."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        import_module(module)
    except PinloopError:
        raise
    except ModuleNotFoundError as error:
        raise BadValue(f"--import {module}: there is no module '{error.name}'") from None
    except Exception as error:
        raise BadValue(f"--import {module}: {type(error).__name__}: {error}") from None
