"""What every example understands on its command line, besides running and checking its physics."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path

import pinloop as pl

__all__ = ["start_program"]


def start_program(
    main: Callable[..., object],
    description: str,
    *,
    motion: Callable[[], pl.Trajectory] | None = None,
    flags: Mapping[str, str] | None = None,
) -> None:
    """Call the ``main`` of a program with what its command line says.

    Args:
        main: the program; draws into the file that is given as ``plot``.
        description: for its help.
        motion: what ``--view`` replays in the browser.
        flags: further switches that ``main`` takes, and what they do.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--plot", metavar="FILE", help="draw a picture (needs matplotlib)")
    parser.add_argument("--show", action="store_true", help="draw a picture and open it")
    if motion is not None:
        parser.add_argument("--view", action="store_true", help="replay the motion in the browser")
    for name, what in (flags or {}).items():
        parser.add_argument(f"--{name}", action="store_true", help=what)
    given = parser.parse_args()
    path = given.plot
    if given.show and path is None:
        path = str(Path(tempfile.mkdtemp(prefix="pinloop-")) / f"{Path(parser.prog).stem}.png")
    main(plot=path, **{name: getattr(given, name) for name in flags or ()})
    if given.show:
        webbrowser.open(Path(path).resolve().as_uri())
    if motion is not None and given.view:
        motion().view(open_browser=True).wait()
