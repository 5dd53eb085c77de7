"""Work in a child process that may not take more than its share of time and memory."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ChildDiedError", "Limits", "limit_next", "run_in_child"]


@dataclass(frozen=True)
class Limits:
    """What a process may take.

    Args:
        seconds: time of the processor for one case, before the process is ended [s].
        memory: address space beyond what the process has when it starts [bytes].
    """

    seconds: int = 120
    memory: int = 4 * 2**30


class ChildDiedError(Exception):
    """A child ended before its work did."""


def limit_next(limits: Limits) -> None:
    """Allow the process so much time from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + limits.seconds + 1, hard))


def run_in_child(work: Callable[[], Iterator[Any]], limits: Limits) -> Iterator[Any]:
    """Yield what ``work`` yields in a child process.

    Raises:
        ChildDiedError: the child was ended by a signal, or by an error in ``work``.
    """
    receiver, sender = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Other threads are those of BLAS, which are idle.
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(receiver)
        _send_all(work, sender, limits)
    os.close(sender)
    status = 0
    try:
        with os.fdopen(receiver, "rb") as pipe:
            while True:
                try:
                    yield pickle.load(pipe)
                except (EOFError, pickle.UnpicklingError):
                    break
    except GeneratorExit:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        over = f" after {limits.seconds} s of the processor" if name == "SIGXCPU" else ""
        raise ChildDiedError(f"ended by {name}{over}")
    if status:
        raise ChildDiedError("ended by an error of the campaign")


def _send_all(work: Callable[[], Iterator[Any]], sender: int, limits: Limits) -> None:
    """In the child: send what there is, and end."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        size = _address_space() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        limit_next(limits)
        with os.fdopen(sender, "wb") as pipe:
            for item in work():
                pickle.dump(item, pipe)
                pipe.flush()
        status = 0
    except BaseException:  # nothing of the child may go on in the parent's program
        traceback.print_exc()
    finally:
        os._exit(status)


def _address_space() -> int:
    """Of this process [bytes], where the system says so."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
