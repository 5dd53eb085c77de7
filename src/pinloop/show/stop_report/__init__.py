"""The report of a stop: one HTML file with numbers, plots, assumptions and a replay.

Everything in it comes from the result; nothing is fetched when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...boundary.files import write_text
from ...safety.stopping.result import StopResult
from ...tables.report import Section
from .report_page import page_of

__all__ = ["write_report"]


def write_report(
    result: StopResult,
    path: str | Path,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> Path:
    """Write the report of a stop as one HTML file that any browser shows without a network.

    The same stop gives the same bytes, unless it is stamped.

    Args:
        result: the stop.
        path: file to write.
        swept: whether the replay shows the volume that the robot sweeps.
        facts: further lines about what was stopped: a name and what it is.
        sections: further parts of one's own.
        stamp: say when it was written.

    Returns:
        The path of the file.

    Raises:
        BadValue: the file cannot be written.
    """
    text = page_of(result, swept=swept, facts=facts, sections=sections, stamp=stamp)
    write_text(path, text)
    return Path(path)
