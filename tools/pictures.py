"""Pictures of robots in the documentation, drawn by the viewer in a browser without a screen.

Run with ``python -m tools.pictures`` from the root of the repository; needs Chromium.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from tests.pages import blocks
from tests.show.browser import Browser

import pinloop as pl

from .pages import DOCS, ROOT

__all__ = ["main"]

SIZE = (1280, 800)
_WITHOUT_HINT = (
    "[...document.querySelectorAll('*')].filter(e => !e.children.length && "
    "e.textContent.startsWith('drag:')).forEach(e => e.hidden = true)"
)


def crank(folder: Path) -> tuple[pl.Trajectory, list[float]]:
    """The robot of the first page, and the times of its ghosts."""
    text = (DOCS / "getting_started.md").read_text(encoding="utf-8")
    source = next(block.body for block in blocks(text) if block.note == "file: crank.urdf")
    (folder / "crank.urdf").write_text(source, encoding="utf-8")
    robot = pl.load(folder / "crank.urdf")
    q = pl.assemble(robot, {"motor": 0.3})
    v = pl.consistent_velocity(robot, q, {"motor": 12.0})
    return pl.simulate(robot, q, v, until=0.5), [0.06, 0.12, 0.2]


def palletizer(folder: Path) -> tuple[pl.Trajectory, list[float]]:
    """A palletizer whose shoulder locks while it falls."""
    robot = pl.load(ROOT / "urdf" / "palletizer.urdf")
    q = pl.assemble(robot, {"shoulder": -0.2})
    v = pl.consistent_velocity(robot, q, {"base_yaw": 1.2, "shoulder": 1.0, "elbow": -0.6})
    events = [pl.lock("shoulder", at=0.3)]
    return pl.simulate(robot, q, v, until=0.6, events=events), [0.2, 0.4, 0.6]


def main() -> None:
    """Draw and write them to ``docs/assets``."""
    for make in (crank, palletizer):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run, ghosts = make(folder)
            page = run.save_html(folder / "run.html", ghosts=ghosts)
            with Browser(page, folder / "profile", SIZE) as browser:
                browser.value(_WITHOUT_HINT)
                browser.value("new Promise(r => setTimeout(r, 3000))")
                seen = browser.picture("canvas").astype(np.uint8)
            Image.fromarray(seen).save(DOCS / "assets" / f"{make.__name__}.png", optimize=True)


if __name__ == "__main__":
    main()
