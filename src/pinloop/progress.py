"""A progress bar for runs: simulated time, speed, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(span: float, name: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on standard error; yields the function that is told the simulated time.

    Args:
        span: length of the run [s].
        name: name of the robot.
    """
    from rich.console import Console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.3f} / {task.total:.3f} s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=span)
        yield lambda t: bar.update(task, completed=t)
