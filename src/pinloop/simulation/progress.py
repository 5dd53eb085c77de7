"""Progress bars: simulated time of a run, finished cases of a study; time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import printable


@contextmanager
def progress_bar(span: float, name: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on standard error; yields the function that takes the simulated time [s].

    Args:
        span: length of the run [s].
        name: name of the robot.
    """
    with _bar("{task.completed:.3f} / {task.total:.3f} s") as bar:
        task = bar.add_task(escape(printable(name)), total=span)
        yield lambda t: bar.update(task, completed=t)


@contextmanager
def case_bar(done: int, size: int, name: str) -> Iterator[Callable[[int], None]]:
    """Show finished cases, their rate and the time left on standard error.

    Yields the function that takes the number of finished cases.

    Args:
        done: number of cases that were finished before.
        size: number of cases.
        name: name of the robot.
    """
    with _bar("{task.completed:.0f} / {task.total:.0f} stops", "{task.fields[rate]}") as bar:
        task = bar.add_task(escape(printable(name)), total=size, completed=done, rate="")

        def report(count: int) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = (count - done) / elapsed if elapsed > 0 else 0.0
            bar.update(task, completed=count, rate=f"{rate:.0f} per s")

        yield report


def _bar(*texts: str) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), *map(TextColumn, texts)
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
