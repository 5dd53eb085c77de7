"""Runs the examples; keeps pictures and what is printed in ``docs/gallery/``, ``docs/gallery.md``.

Run with ``python -m tools.gallery`` from the root of the repository, or with names of examples to
renew only those. The page says by marks which example stands where. Pictures are small and, by the
same versions of the libraries, the same bytes each time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import os
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import pinloop as pl

from .pages import DOCS, ROOT, put

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXAMPLES", "LARGEST", "PAGE", "PICTURES", "main", "small", "told"]

PAGE, PICTURES = DOCS / "gallery.md", DOCS / "gallery"
EXAMPLES = tuple(sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
LARGEST = 150_000
"""So many bytes a picture may have."""
_WIDTH, _COLORS = 1100, 256
"""Of pictures: dots, and colours."""


def run_overview() -> str:
    """Draw the overview of a run; returns what was simulated."""
    robot = pl.load(ROOT / "urdf" / "palletizer.urdf")
    locks = [pl.lock("shoulder", at=0.5), pl.lock("elbow", at=0.75)]
    run = pl.simulate(robot, pl.assemble(robot, {"shoulder": 0.4}), until=1.5, events=locks)
    _keep(run.plot(), "run_overview")
    lost = sum(change.energy_loss for change in run.transitions)
    return (
        f"The palletizer falls from rest, {run.t[-1]:g} s, and two joints lock on the way. "
        f"Impulses take {lost:.0f} J, the balance is off by "
        f"{abs(run.energy().error).max():.0e} J, loops stay closed to {run.closure().max():.0e}."
    )


def stop_overview() -> str:
    """Draw the overview of a stop; returns what was stopped."""
    robot = pl.load(ROOT / "urdf" / "six_axis_arm.urdf")
    speeds = 0.5 * robot.model.upperVelocityLimit
    brakes = ROOT / "urdf" / "six_axis_arm.brakes.yaml"
    stop = pl.stop(robot, robot.neutral, speeds, brakes=brakes, category=0)
    _keep(stop.plot(), "stop_overview")
    return (
        f"A stop of category {stop.category.number} of the six-axis arm at half its rated speeds: "
        f"{1e3 * stop.stopping_time:.0f} ms, of which {1e3 * stop.reaction_time:.0f} ms pass "
        f"before the first brake acts; the energies close to {stop.ledger.relative_error:.0e} of "
        "what was in motion."
    )


def capability_overview() -> str:
    """Draw how fast a tool can move over the workspace; returns what was computed."""
    robot = pl.load(ROOT / "urdf" / "palletizer.urdf")
    grid = {"shoulder": np.linspace(-0.69, 1.39, 25), "elbow": np.linspace(-0.34, 1.39, 25)}
    can = pl.tool_capability(robot, "tool0", pl.reachable_poses(robot, grid))
    _keep(can.plot("speed"), "capability_overview")
    return (
        f"Straight speeds of the palletizer's tool in the slowest direction of each of "
        f"{len(can.poses)} poses: {can.of('speed').min():.2g} to {can.of('speed').max():.2g} m/s. "
        f"Its drives lift {can.of('force', '+z').min() / 9.81:.0f} kg and more at the tool."
    )


OVERVIEWS = {
    "run_overview": run_overview,
    "stop_overview": stop_overview,
    "capability_overview": capability_overview,
}


def told(name: str) -> str:
    """Run an example with a picture; returns its part of the page."""
    folder = str(ROOT / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    program = importlib.import_module(name)
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(printed):
        drawn = Path(scratch) / f"{name}.png"
        program.main(plot=str(drawn))
        small(drawn, PICTURES / f"{name}.png")
    title, _, text = inspect.cleandoc(program.__doc__ or "").partition("\n")
    lines = [line.rstrip() for line in printed.getvalue().strip().splitlines()]
    return "\n".join([
        f"### {title.rstrip('.')}", "", f"![{title.rstrip('.')}](gallery/{name}.png)", "",
        text.strip(), "", "```sh", f"python examples/{name}.py --show", "```", "",
        '<details markdown="1"><summary>What it prints</summary>', "",
        "```text", *lines, "```", "", "</details>", "",
    ])  # fmt: skip


def small(drawn: Path, kept: Path) -> None:
    """Write a picture again, with few colours and at most so wide that a page shows all of it."""
    from PIL import Image

    with Image.open(drawn) as picture:
        plain = picture.convert("RGB")
    if plain.width > _WIDTH:
        height = round(plain.height * _WIDTH / plain.width)
        plain = plain.resize((_WIDTH, height), Image.Resampling.LANCZOS)
    cover = Image.Quantize.MAXCOVERAGE  # keeps colours of thin lines apart
    flat = plain.quantize(_COLORS, method=cover, kmeans=1, dither=Image.Dither.NONE)
    kept.parent.mkdir(exist_ok=True)
    flat.save(kept, optimize=True)
    size = kept.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{kept.name} has {size} bytes, more than {LARGEST}")


def _keep(figure: Figure, name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch) / f"{name}.png"
        figure.savefig(drawn, dpi=110)
        small(drawn, PICTURES / f"{name}.png")


def main(names: Sequence[str] = ()) -> None:
    """Renew the parts of the page that are named; all by default."""
    os.chdir(ROOT)
    for name in names or (*OVERVIEWS, *EXAMPLES):
        print(name, file=sys.stderr)
        if name in OVERVIEWS:
            title = name.replace("_", " ")
            text = textwrap.fill(OVERVIEWS[name](), 100)
            put(PAGE, name, f"\n![{title}](gallery/{name}.png)\n\n{text}\n")
        else:
            put(PAGE, name, f"\n{told(name)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="examples to renew; all by default")
    main(parser.parse_args().names)
