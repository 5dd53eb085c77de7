"""Which configuration space is best for which mechanism: the answer of paper 2 as one table.

The four mechanisms of the paper (heavy top, spherical double pendulum, floating bodies, three-bar
loop), each integrated with RK4 and a step of 1 ms in absolute coordinates, without stabilization:
on SE(3), on SO(3)xR3, and on what "auto" picks per body, SE(3) where a lower pair joins the body to
the ground and SO(3)xR3 elsewhere. The paper's conclusion names such a choice as future work.

Asserted: SE(3) wins at every joint to the ground, and nowhere else does a space win by an order of
magnitude, except in the energy of the heavy top; "auto" chooses as above, keeps joints to the
ground to machine precision, and is never worse than the worse of the two.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np

import pinloop as pl
from common.pictures import drawing
from common.spaces import Space, free_run, joint_drift, start_program

SPACES: tuple[Space, ...] = ("SE3", "SO3xR3", "auto")
AUTO: dict[str, tuple[Space, ...]] = {
    "heavy_top": ("SE3",),
    "spherical_double_pendulum": ("SE3", "SO3xR3"),
    "floating_bodies": ("SO3xR3", "SO3xR3"),
    "three_bar_loop": ("SE3", "SE3"),
}
"""What "auto" must pick per body; the mechanisms are defined by the programs of these names."""
MARGIN = 10.0
"""A space wins where the other's drift is that much larger."""


class Line(NamedTuple):
    """One quantity of one mechanism in the three spaces."""

    mechanism: str
    what: str
    to_ground: bool
    drift: dict[Space, float]

    @property
    def winner(self) -> str:
        """The better of the two spaces, or "alike"."""
        rigid, split = self.drift["SE3"], self.drift["SO3xR3"]
        if max(rigid, split) < MARGIN * min(rigid, split):
            return "alike"
        return "SE3" if rigid < split else "SO3xR3"


def drifts(robot: pl.Mechanism, v: np.ndarray, until: float) -> dict[str, float]:
    """Largest violation of each joint [m], and largest drift of energy over kinetic energy."""
    drift = joint_drift(free_run(robot, v, until))
    found = {name: float(opening.max()) for name, opening in drift.opening.items()}
    return found | {"energy": float(np.abs(drift.energy).max())}


def spaces_of(robot: pl.Mechanism) -> tuple[Space, ...]:
    """Configuration space of each body of a robot in absolute coordinates."""
    kinds = [robot.model.joints[robot.coordinates(name).index].shortname() for name in robot.joints]
    return tuple("SE3" if kind == "JointModelFreeFlyer" else "SO3xR3" for kind in kinds)


def compare(name: str, until: float) -> tuple[list[Line], tuple[Space, ...]]:
    """All lines of one mechanism, and what "auto" picks for its bodies."""
    program = import_module(name)
    robots = {space: program.mechanism().absolute(space) for space in SPACES}
    found = {space: drifts(r, program.start(r), until) for space, r in robots.items()}
    auto = robots["auto"]
    ground = {"ground", auto.description.base}
    grounded = {loop.name for loop in auto.loops if {loop.body_a, loop.body_b} & ground}
    lines = [
        Line(name, what, what in grounded, {space: found[space][what] for space in SPACES})
        for what in found["SE3"]
    ]
    return lines, spaces_of(auto)


def main(until: float = 1.0, plot: str | None = None) -> list[Line]:
    """Print the table and check what it says."""
    heads = "".join(f"{space:>10s}" for space in SPACES)
    print(f"{f'largest drift in {until} s':42s}{heads}  winner")
    table: list[Line] = []
    for name, expected in AUTO.items():
        lines, chosen = compare(name, until)
        print(f"{name}; auto: {', '.join(chosen)}")
        for line in lines:
            note = "  to the ground" if line.to_ground else ""
            numbers = "".join(f"{line.drift[space]:10.1e}" for space in SPACES)
            print(f"    {line.what:20s}{note:18s}{numbers}  {line.winner}")
        assert chosen == expected
        table += lines

    for line in table:
        rigid_wins = line.to_ground or (line.mechanism, line.what) == ("heavy_top", "energy")
        assert line.winner == ("SE3" if rigid_wins else "alike"), line
        worst = max(line.drift["SE3"], line.drift["SO3xR3"])
        assert line.drift["auto"] <= 1.01 * worst + 1e-13, line
        if line.to_ground:
            assert line.drift["auto"] < 1e-13 and line.drift["SE3"] < 1e-13, line
    if plot:
        _plot(table, plot)
    return table


def _plot(table: list[Line], path: str) -> None:
    """One row per quantity, one dot per space."""
    with drawing(path, 9, 6) as figure:
        axes = figure.subplots()
        labels = [f"{line.mechanism.replace('_', ' ')}: {line.what}" for line in table]
        marks = {"SE3": ("o", 9, "SE(3)"), "SO3xR3": ("s", 8, "SO(3)×R³"), "auto": ("x", 9, "auto")}
        for space in SPACES:
            marker, size, label = marks[space]
            values = [line.drift[space] for line in table]
            axes.semilogx(values, labels, marker, ms=size, label=label, mfc="none", mew=1.8)
        axes.invert_yaxis()
        axes.set(title="Drift without stabilization", xlabel="joints [m], energy relative")
        axes.legend()


if __name__ == "__main__":
    start_program(main, "Four mechanisms in three configuration spaces.")
