"""The command line: a file per group of commands, and what they share; nothing is computed here.

Commands turn words into calls, and results into text, files and exit codes. This file imports
nothing of pinloop: it is what runs while the rest is imported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum


class Exit(IntEnum):
    """How a command ends; the last two as shells have it."""

    DONE = 0
    FAILED = 1  # the robot cannot be assembled, does not stop, or a run failed
    MISTAKE = 2
    DEFECT = 70  # of pinloop
    INTERRUPTED = 130
    UNREAD = 141  # whoever read the output has gone


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """End the process on Ctrl-C with one line while the block runs, if Python would raise then.

    Python would print where in which module it was, and extensions would turn it into errors of
    import. A shell that starts programs in the background lets them ignore the signal: so it stays.
    """
    before = signal.getsignal(signal.SIGINT)
    handled = before is signal.default_int_handler
    with suppress(ValueError):  # only the main thread can handle signals, and gets them
        if handled:
            signal.signal(signal.SIGINT, lambda *_: _end_interrupted())
    try:
        yield
    finally:
        with suppress(ValueError):
            if handled:
                signal.signal(signal.SIGINT, before)


def _end_interrupted() -> None:
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(Exit.INTERRUPTED)


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C while the block runs in one of `quiet_interrupts`."""
    before = signal.getsignal(signal.SIGINT)
    ended = callable(before) and getattr(before, "__module__", "") == __name__
    with suppress(ValueError):
        if ended:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        with suppress(ValueError):
            if ended:
                signal.signal(signal.SIGINT, before)
