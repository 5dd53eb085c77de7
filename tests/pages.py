"""Running what a page of the documentation shows, as a reader would; no test lives here.

Blocks are run in their order, in one folder: ``<!-- file: NAME -->`` before a block writes it as a
file, blocks of Python share their names, lines of ``sh`` that begin with ``pinloop`` are run by the
command line, and a block of text after ``<!-- output -->`` is what was printed last; a line of
three dots in it stands for any lines. A viewer, which would wait for Ctrl-C, writes its page to a
file instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pinloop.cli import main as cli

__all__ = ["Block", "blocks", "rounded", "run_page", "shows"]

_BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```(\w+)[^\n]*\n(.*?)```", re.DOTALL)
_TINY = re.compile(r"\b\d(?:\.\d+)?e-(?:09|1\d|[2-9]\d)\b|(?<=energy balance error)[^\n]+")
_DOTS = re.compile(r"^ *\.\.\.\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        note: comment in the line above it; empty if there is none.
        language: word after the fence.
        body: what is in it.
        line: its first line in the page.
    """

    note: str
    language: str
    body: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """All fenced blocks of a page."""
    for found in _BLOCK.finditer(text):
        yield Block(found[1] or "", found[2], found[3], text[: found.start(3)].count("\n") + 1)


def rounded(text: str) -> str:
    """Text without numbers that are rounding errors, and differ from one machine to the next."""
    return _TINY.sub("~0", text)


def shows(block: str, printed: str) -> bool:
    """Whether a block is what was printed."""
    parts = _DOTS.split(rounded(block))
    return re.fullmatch(".*".join(map(re.escape, parts)), rounded(printed), re.DOTALL) is not None


def run_page(text: str, name: str, skip: Callable[[str], bool], printed: Callable[[], str]) -> int:
    """Run all blocks of a page in the current folder.

    Args:
        text: the page.
        name: its name, for messages.
        skip: whether a block of Python, or a command, is left out.
        printed: gives what was printed since it was called last.

    Returns:
        The number of blocks and commands that were run.
    """
    names: dict[str, object] = {"__name__": "page"}
    run, last = 0, ""
    for block in blocks(text):
        if block.note == "output":
            if not shows(block.body, last):  # equal but for what pytest shows of the difference
                assert rounded(last) == rounded(block.body), f"{name}: output in line {block.line}"
        elif block.note.startswith("file: "):
            Path(block.note.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
        elif block.language == "python" and not skip(block.body):
            # Blank lines above, so that errors name the line of the page.
            code = compile("\n" * (block.line - 1) + block.body, name, "exec", dont_inherit=True)
            exec(code, names)
            run, last = run + 1, printed()
        elif block.language == "sh":
            for line in block.body.splitlines():
                if line.startswith("pinloop ") and not skip(line):
                    code_of_exit = cli.run(_words(line))
                    last = printed()
                    assert code_of_exit == 0, f"{name}: {line}\n{last}"
                    run += 1
    return run


def _words(line: str) -> list[str]:
    """Arguments of a command that ends by itself."""
    words = shlex.split(line, comments=True)[1:]
    waits = words[0] in ("view", "play") and "--html" not in words
    return [*words, "--html", "viewer.html"] if waits else words
