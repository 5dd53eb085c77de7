"""Which curves a page shows of a stop, as people read them, and what happened in it.

What happened is marked, in figures too: alike and simultaneous things together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...boundary.marks import Array
from ...safety.stopping.export import Series, series_of
from ...safety.stopping.result import StopResult
from ...safety.stopping.travel import JointStop
from ...simulation.columns import joint_positions
from ...tables.number_format import Units, listed, units_of
from ...tolerances import SAME, SAME_INSTANT
from ..plots import Chart, Instant, Line, Shape, merge_instants
from ..plots.svg import Key, shortened, ticks
from ..scene.motion import standing_spans

_POINTS, _MOST_POINTS = 320, 2000
"""Even instants beside those at which the stop was computed: as far as it is shown, and at most."""
_OTHER = "#8a94a3"
_COLORS = {
    "brake": "#d55e00",
    "dry friction": "#7a5c00",
    "viscous friction": "#e0a92e",
    "short circuit": "#cc79a7",
    "gear losses": "#5b4fa0",
    "impacts": "#222222",
    "kinetic energy at the signal": "#0072b2",
    "work done by gravity": "#3d9bd1",
    "work done by the drives": "#009e73",
    "lifting": "#3d9bd1",
    "taken by the drives": "#009e73",
    "reaction": "#b3bcc8",
    "braking": "#ed7f1f",
    "at rest": "#1f6fb5",
}


class StopCurves:
    """The charts that a page shows of a stop."""

    def __init__(self, result: StopResult) -> None:
        self.result, self.clock = result, clock_of(result)
        end = shown_until(result)
        every = max(end / _POINTS, float(result.run.t[-1]) / _MOST_POINTS)
        self._series = dense_series(result, every, end)
        self._t = self.clock.factor * self._series.t
        self._common: dict[str, Any] = {
            "x_label": f"time since the signal [{self.clock.unit}]",
            "span": (0.0, self.clock.factor * end if end > 0.0 else 1.0),
            "instants": tuple(merge_instants(instants(result, self.clock))),
        }

    @cached_property
    def _by_units(self) -> dict[Units, list[str]]:
        names: dict[Units, list[str]] = {}
        for name in self.result.joints:
            names.setdefault(units_of(self.result.robot, name), []).append(name)
        return names

    def positions(self) -> Iterator[Chart]:
        """Change of the joints' positions since the signal, by unit."""
        for units, names in self._by_units.items():
            word = "angle" if units.shown == "deg" else "position"
            changes = {name: units.factor * self._change(name) for name in names}
            label = f"change of {word} [{units.shown}]"
            yield self._chart(f"Change of {word} since the signal", label, changes)

    def velocities(self) -> Iterator[Chart]:
        """Velocities of the joints, by unit."""
        for units, names in self._by_units.items():
            rates = {n: units.factor * self._series.v[:, self._column(n)] for n in names}
            yield self._chart("Velocity", f"velocity [{units.shown}/s]", rates)

    def torques(self) -> Iterator[Chart]:
        """What brake, friction and drive exert on each joint."""
        for name in self.result.joints:
            column, unit = self._column(name), units_of(self.result.robot, name).torque
            word = "torque" if unit == "N m" else "force"
            parts = ("brake", "friction", "drive")
            torques = {part: getattr(self._series, part)[:, column] for part in parts}
            own = tuple(merge_instants(instants_of_joint(self.result, name, self.clock)))
            chart = self._chart(name, f"{word} [{unit}]", torques)
            yield replace(chart, instants=own, height=170.0, half=True)

    def power(self) -> Chart:
        """What all brakes, friction and drives give to the robot."""
        series = self._series
        parts = {"brakes": series.brake, "friction": series.friction, "drives": series.drive}
        powers = {name: np.sum(part * series.v, axis=1) for name, part in parts.items()}
        largest = max(float(np.abs(value).max(initial=0.0)) for value in powers.values())
        rest = np.sum(series.torque * series.v, axis=1) - sum(powers.values())
        if np.abs(rest).max(initial=0.0) > SAME * largest:
            powers["gears: losses and rotors"] = rest
        return self._chart("Power given to the robot", "power [W]", powers)

    def energy(self) -> Chart:
        """Kinetic energy, and potential energy since the signal."""
        potential = self._series.potential - self._series.potential[0]
        energies = {
            "kinetic energy": self._series.kinetic,
            "potential energy, since the signal": potential,
        }
        return self._chart("Kinetic and potential energy", "energy [J]", energies)

    def tool(self) -> Chart:
        """Speed of the tool."""
        name = f"Speed of {self.result.tool}"
        return self._chart(name, "speed [mm/s]", {name: 1e3 * self._series.tool_speed})

    def lanes(self) -> tuple[Chart, list[Key]]:
        """What each joint does when, and the legend."""
        factor, spans = self.clock.factor, joint_spans(self.result)
        bars = [
            Shape.in_row(
                row,
                (factor * start, factor * end),
                _COLORS[what],
                f"{name}: {what}, {factor * start:.4g} to {factor * end:.4g}",
            )
            for row, (name, own) in enumerate(spans.items())
            for what, start, end in own
        ]
        words = {what for own in spans.values() for what, *_ in own}
        keys = [_key(word) for word in ("reaction", "braking", "at rest") if word in words]
        chart = self._chart("Joints: reaction, braking, at rest", "", {})
        marks = [Instant(mark.x) for mark in chart.instants]
        return replace(chart, instants=marks, shapes=bars, rows=list(spans)), keys

    def _chart(self, title: str, label: str, values: Mapping[str, Array]) -> Chart:
        lines = [Line(name, self._t, y) for name, y in values.items()]
        return Chart(label, lines, title=title, **self._common)

    def _column(self, name: str) -> int:
        return int(self.result.robot.coordinates(name).v.start)

    def _change(self, name: str) -> Array:
        """Change of a joint's coordinate since the signal, shape (k,)."""
        _, positions = joint_positions(self.result.robot, name, self._series.q)
        return np.asarray(positions[:, 0] - positions[0, 0])


def dense_series(result: StopResult, every: float, end: float = np.inf) -> Series:
    """States until ``end`` [s]: those computed, with both sides of jumps, and even ones."""
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


# -- bars -----------------------------------------------------------------------------------------


def joint_spans(result: StopResult) -> dict[str, list[tuple[str, float, float]]]:
    """Per joint its reaction, braking, and when it is at rest, with their ends [s]."""
    standing, end = standing_spans(result.run), shown_until(result)
    return {
        name: [span for span in _spans(joint, standing.get(name, ()), end) if span[2] > span[1]]
        for name, joint in result.joints.items()
    }


def _spans(
    joint: JointStop, standing: Sequence[tuple[float, float]], end: float
) -> Iterator[tuple[str, float, float]]:
    inner = (min(t, end) for t in (joint.reaction_time, *(t for s in standing for t in s)))
    for start, stop in pairwise(sorted({0.0, *inner, end})):
        middle = (start + stop) / 2
        if any(a <= middle <= b for a, b in standing):
            yield "at rest", start, stop
        else:
            yield "reaction" if stop <= joint.reaction_time else "braking", start, stop


Amounts = dict[str, dict[str, float]]
"""By row of a chart its parts, in J; none is negative."""


def energy_flow(result: StopResult) -> Amounts:
    """Energies that came in, and where they went; what is given with a minus went the other way."""
    ledger = result.ledger
    given = {
        "kinetic energy at the signal": ledger.kinetic_before,
        "work done by gravity": ledger.potential_drop,
        "work done by the drives": ledger.drive_work,
    }
    taken = {name: float(heat.sum()) for name, heat in ledger.dissipated.items()}
    taken |= {
        "impacts": float(ledger.impacts),
        "kinetic energy left": ledger.kinetic_after,
        "lifting": -ledger.potential_drop,
        "taken by the drives": -ledger.drive_work,
    }
    return {"in": _positive(given), "out": _positive(taken)}


def heat_by_joint(result: StopResult) -> Amounts:
    """Per joint what its brake, friction and gear turned into heat."""
    columns = {name: result.robot.coordinates(name).v for name in result.joints}
    sinks = result.ledger.dissipated.items()
    return {
        name: _positive({sink: float(heat[own].sum()) for sink, heat in sinks})
        for name, own in columns.items()
    }


def stacked(title: str, amounts: Amounts) -> tuple[Chart, list[Key]]:
    """Energies as horizontal bars on a common axis that begins at zero, and the legend."""
    bars = []
    for row, (name, parts) in enumerate(amounts.items()):
        start = 0.0
        for part, amount in parts.items():
            label = f"{name}: {part}, {amount:.4g}"
            ends = (start, start + amount)
            bars.append(Shape.in_row(row, ends, _COLORS.get(part, _OTHER), label))
            start += amount
    largest = max((sum(parts.values()) for parts in amounts.values()), default=0.0)
    span = ticks(0.0, largest or 1.0, most=8).span
    axis: dict[str, Any] = {"x_label": "energy [J]", "span": span, "follows": False}
    chart = Chart(title=title, shapes=bars, rows=list(amounts), **axis)
    return chart, [_key(part) for part in dict.fromkeys(p for own in amounts.values() for p in own)]


def _positive(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _key(name: str) -> Key:
    return Key(name, _COLORS.get(name, _OTHER), area=True)


# -- what happened when ---------------------------------------------------------------------------

_LONGEST = 230.0
"""Width of the longest label."""
_MOST = 24
"""So many lines make a plot unreadable if there are more."""

_PLAIN = {
    "signal": "signal",
    "a ramp ends": "a ramp of the drives ends",
    "command": "command",
    "power off": "drives off",
    "drives stand": "drives have brought the robot to rest",
    "time limit": "time limit of the drives",
    "teeth engage": "teeth engage",
}
_OF_JOINT = {
    "brake of {} engages": "brake acts",
    "brake of {} has its full torque": "full brake torque",
    "{} comes to rest": "comes to rest",
    "{} comes loose": "comes loose",
    "{} meets its drive": "meets its drive",
    "{} hits a tooth": "hits a tooth",
    "power turns round in the gear of {}": "power turns round in its gear",
}
_QUIET = frozenset(
    {
        "signal",
        "a ramp of the drives ends",
        "comes to rest",
        "power turns round in its gear",
        "meets its drive",
    }
)
"""Listed, but not marked in plots; of joints that come to rest, the last time is."""


@dataclass(frozen=True)
class Clock:
    """How times are shown: "ms" or "s", the factor from seconds to that, and decimals."""

    unit: str
    factor: float
    places: int

    def number(self, seconds: float) -> str:
        """A time without its unit."""
        return f"{self.factor * seconds:.{self.places}f}"


@dataclass(frozen=True)
class Happening:
    """What happened when [s], and to which joints; to none if it concerns the whole robot."""

    t: float
    what: str
    joints: tuple[str, ...] = ()


def clock_of(result: StopResult) -> Clock:
    """How times of a stop are shown."""
    long = float(result.run.t[-1]) >= 10.0
    return Clock("s", 1.0, 3) if long else Clock("ms", 1e3, 1)


def shown_until(result: StopResult) -> float:
    """Until when a stop is shown [s]: a little beyond the last thing that happens."""
    last = max([result.stopping_time, *(t for t, _ in result.events)])
    return min(float(result.run.t[-1]), 1.04 * last) or float(result.run.t[-1])


def happenings(result: StopResult) -> list[Happening]:
    """The events of a stop, those of several joints at one instant together."""
    known = {text: (words, "") for text, words in _PLAIN.items()}
    for name in result.robot.joints:
        known |= {form.format(name): (words, name) for form, words in _OF_JOINT.items()}
    return _together((t, *known.get(text, (text, ""))) for t, text in result.events)


def _together(events: Iterable[tuple[float, str, str]]) -> list[Happening]:
    """Things with their joints, in order; the same thing at the same instant once."""
    groups: list[Happening] = []
    for t, what, joint in events:
        joints = (joint,) if joint else ()
        for k, group in enumerate(groups):
            if group.what == what and abs(t - group.t) <= SAME_INSTANT:
                groups[k] = replace(group, joints=tuple(dict.fromkeys((*group.joints, *joints))))
                break
        else:
            groups.append(Happening(t, what, joints))
    return groups


def instants(result: StopResult, clock: Clock) -> list[Instant]:
    """Lines for charts of the whole robot, in the unit of the clock."""
    ends, events = _ends(result), _marked(result)
    if len(events) + len(ends) > _MOST:
        events = [event for event in events if event.what != "comes loose"][: _MOST - len(ends)]
    every = {name for name, brake in result.brakes.joints.items() if brake.kind != "none"}
    return [
        Instant(clock.factor * event.t, shortened(_label(event, every), _LONGEST))
        for event in [*events, *ends]
    ]


def instants_of_joint(result: StopResult, name: str, clock: Clock) -> list[Instant]:
    """Lines for charts of one joint, in the unit of the clock."""
    own = [event for event in _marked(result) if name in event.joints][:_MOST]
    own += [event for event in _ends(result) if name in event.joints]
    return [Instant(clock.factor * event.t, event.what) for event in own]


def _marked(result: StopResult) -> list[Happening]:
    return [event for event in happenings(result) if event.what not in _QUIET]


def _ends(result: StopResult) -> list[Happening]:
    """When the joints that moved come to rest for good."""
    joints = [j for j in result.joints.values() if j.state != "moving" and j.time != 0.0]
    ends = ((j.time, "at rest", j.name) for j in sorted(joints, key=lambda joint: joint.time))
    return _together(ends)


def _label(event: Happening, every: set[str]) -> str:
    """The text of a line; what happens to all brakes at once names none of them."""
    if not event.joints:
        return event.what
    names, several = listed(event.joints, 2), len(event.joints) > 1
    whole = several and set(event.joints) >= every
    if event.what == "brake acts":
        single = f"brake of {names} acts"
        return "brakes act" if whole else f"brakes of {names} act" if several else single
    if event.what == "full brake torque":
        return event.what if whole else f"full torque: {names}"
    return f"{names} at rest" if event.what == "at rest" else f"{names}: {event.what}"
