"""Ctrl-C while modules are imported: the program ends at once and says nothing.

Python would print where in which module it was, and extensions would turn it into errors of import.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit code of what Ctrl-C ends, as shells have it."""


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """End the process on Ctrl-C while the block runs; only where Python would raise.

    A shell that starts programs in the background lets them ignore the signal: so it stays.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if before is not signal.default_int_handler or not in_main:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
