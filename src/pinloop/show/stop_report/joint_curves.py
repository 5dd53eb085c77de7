"""Which curves a report shows of a stop, in the units in which people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...safety.stopping.joint_stop import JointStop
from ...safety.stopping.result import StopResult
from ...safety.stopping.series import Series, series_of
from ...simulation.trajectory import joint_positions
from ...tables.number_format import Units, units_of
from ...tolerances import SAME
from ..plots.chart_shapes import Lane, Part, Span, Stack
from ..plots.charts import Line, merge_instants
from ..plots.svg import Plot
from ..scene.motion import standing_spans
from .instants import Clock, instants, instants_of_joint, shown_until

__all__ = ["Curves", "curves_of", "dense_series", "energy_stacks", "heat_stacks", "joint_lanes"]

Array = NDArray[np.float64]

_POINTS, _MOST_POINTS = 320, 2000
"""Even instants beside those at which the stop was computed: as far as it is shown, and at most."""
_HALF = 440.0
_SINKS = {
    "brake": "#d55e00",
    "dry friction": "#7a5c00",
    "viscous friction": "#e0a92e",
    "short circuit": "#cc79a7",
    "gear losses": "#5b4fa0",
}
_OTHER = "#8a94a3"
_GIVEN = {
    "kinetic energy at the signal": "#0072b2",
    "work done by gravity": "#3d9bd1",
    "work done by the drives": "#009e73",
}


@dataclass(frozen=True, eq=False)
class Curves:
    """The plots of a stop.

    Args:
        positions: change of the joints' positions since the signal, by unit.
        velocities: of the joints, by unit.
        torques: per joint what its brake, friction and drive exert.
        power: what brakes, friction and drives give to the robot.
        energy: kinetic and potential energy.
        tool: speed of the tool.
    """

    positions: tuple[Plot, ...]
    velocities: tuple[Plot, ...]
    torques: tuple[Plot, ...]
    power: Plot
    energy: Plot
    tool: Plot


def curves_of(result: StopResult, clock: Clock) -> Curves:
    """Make the plots of a stop."""
    maker = _Maker(result, clock)
    by_units: dict[Units, list[str]] = {}
    for name in result.joints:
        by_units.setdefault(units_of(result.robot, name), []).append(name)
    return Curves(
        tuple(maker.positions(names, units) for units, names in by_units.items()),
        tuple(maker.velocities(names, units) for units, names in by_units.items()),
        tuple(maker.torques(name) for name in result.joints),
        maker.power(),
        maker.energy(),
        maker.tool(),
    )


class _Maker:
    """Makes plots from the series of a stop."""

    def __init__(self, result: StopResult, clock: Clock) -> None:
        self.result, self.clock = result, clock
        end = shown_until(result)
        every = max(end / _POINTS, float(result.run.t[-1]) / _MOST_POINTS)
        self.series = dense_series(result, every, end)
        self.x = clock.factor * self.series.t
        self.span = _span(clock, result)
        self.instants = tuple(merge_instants(instants(result, clock)))

    def positions(self, names: Sequence[str], units: Units) -> Plot:
        """Change of position since the signal."""
        word = "angle" if units.shown == "deg" else "position"
        changes = [units.factor * self._moved(name) for name in names]
        return self._plot(
            f"Change of {word} since the signal",
            f"change of {word} [{units.shown}]",
            self._curves(names, changes),
        )

    def velocities(self, names: Sequence[str], units: Units) -> Plot:
        """Velocities."""
        values = [units.factor * self.series.v[:, self._column(name)] for name in names]
        unit = f"{units.shown}/s"
        return self._plot("Velocity", f"velocity [{unit}]", self._curves(names, values))

    def torques(self, name: str) -> Plot:
        """What acts on a joint."""
        column, units = self._column(name), units_of(self.result.robot, name)
        word = "torque" if units.torque == "N m" else "force"
        parts = ("brake", "friction", "drive")
        values = [getattr(self.series, part)[:, column] for part in parts]
        return Plot(
            name,
            self._x_label(),
            f"{word} [{units.torque}]",
            self._curves(parts, values),
            self.span,
            tuple(merge_instants(instants_of_joint(self.result, name, self.clock))),
            width=_HALF,
            height=170.0,
        )

    def power(self) -> Plot:
        """What all brakes, friction and drives give to the robot."""
        series = self.series
        names, values = ["brakes", "friction", "drives"], []
        values = [np.sum(part * series.v, axis=1) for part in (series.brake, series.friction)]
        values.append(np.sum(series.drive * series.v, axis=1))
        rest = np.sum(series.torque * series.v, axis=1) - sum(values)
        largest = max(float(np.abs(value).max(initial=0.0)) for value in values)
        if np.abs(rest).max(initial=0.0) > SAME * largest:
            names.append("gears: losses and rotors")
            values.append(rest)
        return self._plot("Power given to the robot", "power [W]", self._curves(names, values))

    def energy(self) -> Plot:
        """Kinetic energy, and potential energy since the signal."""
        series = self.series
        values = [series.kinetic, series.potential - series.potential[0]]
        names = ("kinetic energy", "potential energy, since the signal")
        return self._plot("Kinetic and potential energy", "energy [J]", self._curves(names, values))

    def tool(self) -> Plot:
        """Speed of the tool."""
        speed = 1e3 * self.series.tool_speed
        name = f"Speed of {self.result.tool}"
        return self._plot(name, "speed [mm/s]", self._curves([name], [speed]))

    def _plot(self, title: str, label: str, curves: list[Line]) -> Plot:
        return Plot(title, self._x_label(), label, curves, self.span, self.instants)

    def _curves(self, names: Sequence[str], values: Sequence[Array]) -> list[Line]:
        return [Line(name, self.x, y) for name, y in zip(names, values, strict=True)]

    def _x_label(self) -> str:
        return f"time since the signal [{self.clock.unit}]"

    def _column(self, name: str) -> int:
        return int(self.result.robot.coordinates(name).v.start)

    def _moved(self, name: str) -> Array:
        """Change of a joint's coordinate since the signal, shape (k,)."""
        _, positions = joint_positions(self.result.robot, name, self.series.q)
        return np.asarray(positions[:, 0] - positions[0, 0])


def dense_series(result: StopResult, every: float, end: float = np.inf) -> Series:
    """States of a stop: those that were computed, with both sides of jumps, and even ones between.

    Args:
        result: the stop.
        every: distance of the even ones [s].
        end: until when [s].
    """
    stored = series_of(result, None)
    if min(end, stored.t[-1]) <= 0.0:
        return stored
    even = series_of(result, every)
    # Of even instants at a jump it is the state after it, which the stable order leaves last.
    t = np.concatenate([stored.t, even.t])
    order = np.argsort(t, kind="stable")
    order = order[t[order] <= end * (1 + SAME)]
    pairs = zip(vars(stored).values(), vars(even).values(), strict=True)
    return Series(*(np.concatenate(pair)[order] for pair in pairs))


def _span(clock: Clock, result: StopResult) -> tuple[float, float]:
    """Ends of the axis of time, in the unit of the clock."""
    end = clock.factor * shown_until(result)
    return 0.0, end if end > 0.0 else 1.0


# -- bars ---------------------------------------------------------------------------------------


def joint_lanes(result: StopResult, clock: Clock) -> tuple[list[Lane], tuple[float, float]]:
    """Per joint its reaction, braking, and when it stands; and the ends of the axis."""
    standing, end = standing_spans(result.run), shown_until(result)
    lanes = [
        Lane(
            name,
            tuple(
                Span(what, clock.factor * start, clock.factor * stop, color)
                for what, start, stop, color in _spans(joint, standing.get(name, ()), end)
                if stop > start
            ),
        )
        for name, joint in result.joints.items()
    ]
    return lanes, _span(clock, result)


def _spans(
    joint: JointStop, standing: Sequence[tuple[float, float]], end: float
) -> Iterator[tuple[str, float, float, str]]:
    """Spans of a joint in seconds; those in which it stands between the others."""
    inner = (min(t, end) for t in (joint.reaction_time, *(t for s in standing for t in s)))
    marks = sorted({0.0, *inner, end})
    for start, stop in pairwise(marks):
        middle = (start + stop) / 2
        if any(a <= middle <= b for a, b in standing):
            yield "at rest", start, stop, "#1f6fb5"
        elif stop <= joint.reaction_time:
            yield "reaction", start, stop, "#b3bcc8"
        else:
            yield "braking", start, stop, "#ed7f1f"


def energy_stacks(result: StopResult) -> list[Stack]:
    """Energies that came in, and where they went; what is given with a minus went the other way."""
    ledger = result.ledger
    given = {
        "kinetic energy at the signal": ledger.kinetic_before,
        "work done by gravity": ledger.potential_drop,
        "work done by the drives": ledger.drive_work,
    }
    turned = {"work done by gravity": "lifting", "work done by the drives": "taken by the drives"}
    taken = [
        Part(name, float(heat.sum()), _SINKS.get(name, _OTHER))
        for name, heat in ledger.dissipated.items()
    ]
    taken += [Part("impacts", float(ledger.impacts), "#222222")]
    taken += [Part("kinetic energy left", ledger.kinetic_after, _OTHER)]
    taken += [
        Part(turned[name], -value, _GIVEN[name])
        for name, value in given.items()
        if value < 0 and name in turned
    ]
    came = tuple(Part(name, value, _GIVEN[name]) for name, value in given.items() if value > 0)
    return [Stack("in", came), Stack("out", tuple(part for part in taken if part.amount > 0))]


def heat_stacks(result: StopResult) -> list[Stack]:
    """Per joint what its brake, friction and gear turned into heat."""
    robot = result.robot
    bars = []
    for name in result.joints:
        at = robot.coordinates(name).v
        parts = (
            Part(sink, float(heat[at].sum()), _SINKS.get(sink, _OTHER))
            for sink, heat in result.ledger.dissipated.items()
        )
        bars.append(Stack(name, tuple(part for part in parts if part.amount > 0)))
    return bars
