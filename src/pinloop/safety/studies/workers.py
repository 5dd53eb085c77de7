"""What other processes are asked to do; none of them lives on when the one that asks is killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from threading import Thread
from time import sleep
from typing import Any

from joblib import delayed

_LOOK = 1.0
"""Time between two looks whether the process that has asked still lives [s]."""


def task(function: Callable[..., Any]) -> Callable[..., Any]:
    """`joblib.delayed` for processes that end with this one."""
    return partial(delayed(_run), os.getpid(), function)


def _run(process: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    _end_with(process)
    return function(*arguments, **options)


@cache
def _end_with(process: int) -> None:
    """Let this process end with the one that has started it, if that is the given one.

    One that is killed cannot tell its workers, which would wait for it with all their memory.
    """

    def watch() -> None:
        while os.getppid() == process:
            sleep(_LOOK)
        os._exit(1)

    if os.getppid() == process:
        Thread(target=watch, daemon=True).start()
