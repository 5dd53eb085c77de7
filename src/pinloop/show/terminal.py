"""What the command line prints: sentences, and a report as tables on a terminal.

Knows streams and rich; decides nothing. Off a terminal everything is plain text.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..errors import PinloopError, printable
from ..regularization.diagnosis import Diagnosis

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ReaderGone", "complain", "print_report", "show", "show_warning", "write"]


class ReaderGone(Exception):  # noqa: N818 - says what happened
    """Whoever read the output has stopped, as ``pinloop check robot.urdf | head`` does."""


def write(text: str, *, error: bool = False, rendered: bool = False) -> None:
    """Print a text at once. Whatever else is printed goes through here.

    Args:
        text: what to print, in one line or several.
        error: whether it goes to standard error.
        rendered: whether it comes from rich, with colours; else a terminal obeys nothing in it.

    Raises:
        ReaderGone: nobody reads any more.
        PinloopError: it cannot be written for another reason, such as a full disk.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    if not rendered:
        text = "\n".join(map(printable, text.split("\n")))
    # Names of files and links may hold what the terminal cannot show.
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(shown, file=stream, flush=True)
    except OSError as problem:
        # Python flushes once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(problem, BrokenPipeError):
            raise ReaderGone from None
        raise PinloopError(f"the output cannot be written: {problem.strerror}") from None


def _rendered(*parts: Any, error: bool = False) -> str:
    """What rich makes of something, in colour on a terminal."""
    console = Console(stderr=error, highlight=False, soft_wrap=error)
    with console.capture() as capture:
        console.print(*parts)
    return capture.get().rstrip("\n")


def complain(sentence: str, label: str = "error", style: str = "bold red") -> None:
    """Print a sentence on stderr."""
    text = Text.assemble((f"{label}:", style), " ", printable(sentence))
    try:
        write(_rendered(text, error=True), error=True, rendered=True)
    except (ReaderGone, PinloopError):
        return  # There is nobody left to tell.


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as `warnings.showwarning` would, but for people."""
    complain(" ".join(str(message).split()), "warning", "yellow")


def show(thing: Any) -> None:
    """Print what rich can render on a terminal, and its text elsewhere."""
    if Console().is_terminal:
        write(_rendered(thing), rendered=True)
    else:
        write(str(thing))


def print_report(report: Diagnosis) -> None:
    """Tables on a terminal, plain lines elsewhere."""
    if not Console().is_terminal:
        write(str(report))
        return
    parts: list[Any] = [Text(printable(report.name), style="bold"), _facts(report)]
    if report.loops:
        parts += [Text(), _loops(report)]
    if report.warnings:
        parts.append(Text())
        parts += [
            Text(printable(f"warning: {warning}"), style="yellow") for warning in report.warnings
        ]
    write(_rendered(Group(*parts)), rendered=True)


def _facts(report: Diagnosis) -> Table:
    """What the robot is, a line each."""
    table = Table(box=box.ROUNDED, show_header=False, border_style="dim")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for label, text in report.facts():
        value = Text(printable(text))
        value.highlight_regex(r"^closed", "green")
        value.highlight_regex(r"^NOT CLOSED", "bold red")
        table.add_row(label, value)
    return table


def _loops(report: Diagnosis) -> Table:
    """The loop joints, a line each."""
    table = Table(box=box.ROUNDED, border_style="dim", header_style="cyan")
    for heading in ("loop joint", "pair", "equations", "between", "through"):
        table.add_column(heading, justify="right" if heading == "equations" else "left")
    table.add_column("open at neutral", justify="right")
    for loop in report.loops:
        cells = (
            loop.name,
            loop.pair,
            str(loop.rows),
            " - ".join(loop.bodies),
            ", ".join(loop.joints),
            f"{loop.neutral_error:.1e}",
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
