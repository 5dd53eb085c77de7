"""Figures of a stop for notebooks and papers: positions, velocities, torques, energy, in SI units.

The page of a stop shows its curves in other units, joint by joint: see `joint_curves`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ...safety.stopping.result import StopResult
from ..plots.charts import Line, Panel, draw_panels
from ..plots.curves import Coordinate, Fine, coordinates, lines_by_unit, velocities
from .instants import Clock, instants
from .joint_curves import dense_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_stop"]

Array = NDArray[np.float64]

_POINTS = 900


def plot_stop(result: StopResult, joints: str | Iterable[str] | None = None) -> Figure:
    """Draw a stop.

    Args:
        result: the stop.
        joints: names of the joints that are shown. By default all; where they are too many for
            one panel, those that move fastest.
    """
    maker = _Maker(result, joints)
    left = [*maker.moved(), *maker.torques("brake")]
    right = [*maker.rates(), *maker.torques("drive")]
    (right if len(right) <= len(left) else left).append(maker.energy())
    title = f"{result.robot.name}: stop of category {result.category.number}, {result.outcome}"
    events = [(mark.x, mark.label) for mark in instants(result, Clock("s", 1.0, 3))]
    return draw_panels(title, [left, right], (0.0, float(maker.series.t[-1])), events)


class _Maker:
    """Makes panels from the series of a stop."""

    def __init__(self, result: StopResult, joints: str | Iterable[str] | None) -> None:
        self.series = dense_series(result, float(result.run.t[-1]) / _POINTS)
        self._robot = result.robot
        names = [joints] if isinstance(joints, str) else joints
        self._names = list(result.joints if names is None else names)
        self._columns = {name: self._robot.coordinates(name).v.start for name in self._names}
        speeds = np.abs(self.series.v).max(axis=0, initial=0.0)
        fastest = {name: (True, float(speeds[k])) for name, k in self._columns.items()}
        self._ranks = fastest if names is None else None
        none = np.zeros(0, dtype=np.intp)
        self._states = Fine(self.series.t, self.series.q, self.series.v, none)

    def moved(self) -> Iterator[Panel]:
        """How far the joints have moved, per unit."""
        every = (x for name in self._names for x in coordinates(self._robot, name, self._states))
        moved = [x._replace(values=x.values - x.values[0]) for x in every]
        return self._panels(moved, {"rad": "angle, from start", "m": "displacement, from start"})

    def rates(self) -> Iterator[Panel]:
        """Velocities per unit."""
        rates = [x for name in self._names for x in velocities(self._robot, name, self._states)]
        return self._panels(rates, {"rad/s": "velocity", "m/s": "velocity"})

    def torques(self, part: Literal["brake", "drive"]) -> Iterator[Panel]:
        """What brakes or drives exert, per unit; nothing where they never do."""
        values: Array = getattr(self.series, part)
        linear = self._robot.is_translation
        exerted = [
            Coordinate(name, name, "N" if linear[k] else "N m", values[:, k])
            for name, k in self._columns.items()
            if values.any()
        ]
        return self._panels(exerted, {"N m": f"{part} torque", "N": f"{part} force"})

    def energy(self) -> Panel:
        """Kinetic and potential energy."""
        series = self.series
        potential = series.potential - series.potential[0]
        lines = [
            Line("kinetic", series.t, series.kinetic),
            Line("potential, from start", series.t, potential),
            Line("total", series.t, series.kinetic + potential),
        ]
        return Panel("energy [J]", lines)

    def _panels(self, shown: Iterable[Coordinate], words: Mapping[str, str]) -> Iterator[Panel]:
        for unit, (lines, notes) in lines_by_unit(self.series.t, shown, self._ranks).items():
            yield Panel(f"{words[unit]} [{unit}]", lines, notes)
