"""What the command line prints: sentences, and a report as tables on a terminal.

Knows streams and rich; decides nothing. Off a terminal everything is plain text.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.text import Text

from ..errors import PinloopError, printable
from ..tables.report import Report, block_lines, wrapped

_FRAME = 4
"""What the frame of a block takes from the width of a terminal."""
_STYLES = {
    "title": "bold",
    "heading": "cyan",
    "good": "bold green",
    "bad": "bold red",
    "caution": "yellow",
}


class ReaderGone(Exception):  # noqa: N818 - says what happened
    """Whoever read the output has stopped, as ``pinloop check robot.urdf | head`` does."""


def write(text: str, *, error: bool = False, rendered: bool = False) -> None:
    """Print a text at once. Whatever else is printed goes through here.

    A terminal obeys nothing in the text but what is ``rendered`` by rich. A `ReaderGone` if nobody
    reads any more, a `PinloopError` if it cannot be written for another reason, such as a full
    disk.
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


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as `warnings.showwarning` would, but for people."""
    complain(" ".join(str(message).split()), "warning", "yellow")


def show(thing: Any) -> None:
    """Print what rich can render on a terminal, and its text elsewhere."""
    if Console().is_terminal:
        write(_rendered(thing), rendered=True)
    else:
        write(str(thing))


@dataclass(frozen=True)
class Framed:
    """A report as rich shows it: each block in a frame, all frames of one width."""

    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, room = self.report, max(20, options.max_width - _FRAME)
        bodies = [block_lines(block, room) for block in report.blocks]
        widths = [cell_len("".join(text for text, _ in line)) for body in bodies for line in body]
        widest = max([0, *widths, *(cell_len(block.title) + 2 for block in report.blocks)])
        yield Text(report.title.text, style=_STYLES.get(report.title.mark, "bold"))
        for block, lines in zip(report.blocks, bodies, strict=True):
            parts = (
                Text.assemble(*((text, _STYLES.get(mark, "")) for text, mark in line))
                for line in lines
            )
            yield Panel(
                Text("\n", no_wrap=False).join(parts),
                box=box.ROUNDED,
                title=Text(block.title, style="bold"),
                title_align="left",
                border_style="dim",
                width=min(widest, room) + _FRAME,
            )
        if report.closing:
            sentence = "\n".join(wrapped(report.closing, min(widest, room)))
            yield Text(sentence, style=_STYLES["caution"])
