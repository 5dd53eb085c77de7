"""Configuration spaces side by side: a free run, a table of two columns, a picture (paper 2).

The programs that use this define the mechanisms and assert what must come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

from .pictures import drawing
from .program import start_program

__all__ = [
    "STEP",
    "Array",
    "JointDrift",
    "Panel",
    "Space",
    "draw",
    "free_run",
    "joint_drift",
    "joint_panels",
    "print_table",
    "start_program",
    "thrown",
]

Array = NDArray[np.float64]
Space = Literal["SE3", "SO3xR3", "auto"]

STEP = 1e-3
"""Of all runs [s]."""
_LEAST = 1e-17
"""Smallest value on a logarithmic scale."""


class JointDrift(NamedTuple):
    """How far a run leaves the joints and the energy over time."""

    t: Array
    opening: dict[str, Array]
    """Per joint how far its two points are apart [m]."""
    energy: Array
    """Gain of total energy over the kinetic energy of the start."""


class Panel(NamedTuple):
    """A diagram of one quantity over time."""

    title: str
    curves: tuple[Array, Array]
    """On SE(3), and on SO(3)xR3."""
    logarithmic: bool = True


def free_run(robot: pl.Mechanism, v: Array, until: float, step: float = STEP) -> pl.Trajectory:
    """Integrate a robot from neutral with RK4 and without stabilization.

    Args:
        robot: the mechanism, in absolute coordinates.
        v: initial velocity, shape (nv,).
        until: end [s].
        step: of the method [s].
    """
    method = pl.MuntheKaas("rk4", step=step)
    return pl.simulate(robot, robot.neutral, v, until=until, method=method, stabilization=None)


def thrown(
    mechanism: Callable[[], pl.Mechanism], start: Callable[[pl.Mechanism], Array]
) -> Callable[[], pl.Trajectory]:
    """What replays a mechanism on SE(3), thrown as it starts."""

    def motion() -> pl.Trajectory:
        robot = mechanism().absolute("SE3")
        return free_run(robot, start(robot), 1.0)

    return motion


def joint_drift(run: pl.Trajectory) -> JointDrift:
    """How far a run leaves each joint, and its total energy."""
    rows, energy = pl.Constraints(run.robot, full=True), run.energy()
    openings = [rows.by_name(rows.residual(q)) for q in run.q]
    opening = {name: np.array([o[name] for o in openings]) for name in openings[0]}
    return JointDrift(run.t, opening, (energy.total - energy.total[0]) / energy.kinetic[0])


def joint_panels(rigid: JointDrift, split: JointDrift) -> list[Panel]:
    """One panel per joint, and one of the energy, on SE(3) and on SO(3)xR3."""
    panels = [
        Panel(f"Violation of joint {k} [m]", (opening, split.opening[name]))
        for k, (name, opening) in enumerate(rigid.opening.items(), 1)
    ]
    energy = Panel("Energy drift, relative", (np.abs(rigid.energy), np.abs(split.energy)))
    return [*panels, energy]


def print_table(
    title: str, until: float, rows: Sequence[tuple[str, Sequence[float], str]], digits: int = 2
) -> None:
    """Print rows of a label, a number on SE(3), one on SO(3)xR3, and what the paper says."""
    head = f"{title}, {until} s, RK4 with {STEP} s"
    print(f"{head:40s}{'SE(3)':>10s}{'SO(3)xR3':>12s}   paper")
    for label, (rigid, split), paper in rows:
        print(f"{label:40s}{rigid:10.{digits}g}{split:12.{digits}g}   {paper}".rstrip())


def draw(
    path: str, t: Array, panels: Sequence[Panel], shape: tuple[int, int], size: tuple[float, float]
) -> None:
    """Draw quantities over time on both spaces.

    Args:
        path: picture to write.
        t: times [s].
        panels: one diagram each.
        shape: rows and columns of diagrams.
        size: width and height of the picture [inch].
    """
    with drawing(path, *size) as figure:
        for axes, panel in zip(figure.subplots(*shape).ravel(), panels, strict=True):
            for values, name in zip(panel.curves, ("SE(3)", "SO(3)×R³"), strict=True):
                if panel.logarithmic:
                    axes.semilogy(t[1:], np.maximum(values[1:], _LEAST), label=name)
                else:
                    axes.plot(t, values, label=name)
            axes.set(title=panel.title, xlabel="t [s]")
            axes.legend()
