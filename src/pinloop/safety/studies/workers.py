"""The processes that compute cases; none of them lives on when the one that asks is killed."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from threading import Thread
from time import sleep
from typing import Any

from joblib import Parallel

_LOOK = 1.0
"""Time between two looks whether the process that has asked still lives [s]."""


def start_workers(jobs: int, **options: Any) -> Parallel:
    """`joblib.Parallel` with so many processes, which end with this one."""
    return Parallel(n_jobs=jobs, initializer=_end_with, initargs=(os.getpid(),), **options)


def _end_with(process: int) -> None:
    """Let this process end with the one that has started it, if that is the given one.

    One that is killed cannot tell its workers, which would wait for it with all their memory. It
    may be gone before they have come this far.
    """

    def watch() -> None:
        while os.getppid() == process:
            sleep(_LOOK)
        os._exit(1)

    parent = parent_process()
    if parent is not None and parent.pid == process:
        Thread(target=watch, daemon=True).start()
