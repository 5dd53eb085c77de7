"""Guesses among the brake data of a stop, and between what outcomes are likely to be: values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...boundary.arguments import public
from ...errors import UnknownName
from ...tables.number_format import listed
from ...tables.report import Block, Cell, Mark, Report, Reported, Table
from ...units import shown_unit

_DIGITS = 2
"""Digits of the ends of an interval: more would pretend to be known."""
_COUNTS = 0.05
"""Share of an interval that is worth naming, besides the largest."""
_FEW = 3
"""So many shares, and joints, are named; of more joints, the number is said."""


@public
@dataclass(frozen=True)
class Interval:
    """Between what an outcome of a stop is likely to be.

    Args:
        output: name of the outcome, as of `StopResult.sensitivity`.
        unit: its unit.
        value: what was computed.
        low: lower end.
        high: upper end; infinite where the robot may not be held.
        shares: what makes it: which number of the brakes, and its share of the variance, the
            largest first.
    """

    output: str
    unit: str
    value: float
    low: float
    high: float
    shares: tuple[tuple[str, float], ...]

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def text(self) -> str:
        """Both ends and their unit, with few digits."""
        unit, factor = shown_unit(self.unit)
        unit, factor = {"s": ("ms", 1e3), "m": ("mm", 1e3)}.get(self.unit, (unit, factor))
        low, high = (_rounded(factor * end) for end in (self.low, self.high))
        if math.isinf(self.low) or math.isinf(self.high):
            return f"{low if math.isinf(self.high) else high} {unit} or more"
        return f"{low} to {high} {unit}"

    @property
    def made_by(self) -> str:
        """What makes most of it, in words."""
        named = [
            f"{name} {100.0 * share:.0f} %"
            for k, (name, share) in enumerate(self.shares[:_FEW])
            if k == 0 or share >= _COUNTS
        ]
        return ", ".join(named)


def _rounded(value: float) -> str:
    return f"{float(f'{value:.{_DIGITS}g}'):g}"


@public
@dataclass(frozen=True)
class StopBands(Reported):
    """Intervals of outcomes of a stop: print them, or let rich or a notebook show them.

    Args:
        intervals: the intervals; none if no number of the brakes is uncertain, or the robot did not
            come to rest and hold.
        level: how many of such stops are within each, as a part of all.
        robot: name of the robot.
    """

    intervals: tuple[Interval, ...]
    level: float = 0.95
    robot: str = ""

    def __getitem__(self, output: str) -> Interval:
        """The interval of an outcome."""
        for interval in self.intervals:
            if interval.output == output:
                return interval
        raise UnknownName("interval of a stop", output, [x.output for x in self.intervals])

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __contains__(self, output: object) -> bool:
        return any(interval.output == output for interval in self.intervals)

    def __rich__(self) -> Report:
        return self.table()

    def table(self) -> Report:
        """All intervals, and what makes them."""
        title = f"{self.robot or 'stop'}: between what the stop is likely to be"
        return Report.of(title, self.blocks())

    def blocks(self) -> tuple[Block, ...]:
        """The table alone; nothing if there are no intervals."""
        if not self.intervals:
            return ()
        rows = [
            (x.output, x.text, x.shares[0][0], f"{100.0 * x.shares[0][1]:.0f}")
            for x in self.intervals
        ]
        headings = ("<outcome", "<interval", "<mostly by", "share [%]")
        return (Table.of(f"{100.0 * self.level:g} % intervals", headings, rows),)


@public
@dataclass(frozen=True)
class Guesses:
    """Guesses among the brake data of a stop; what they leave open is in `StopResult.bands`.

    Args:
        parameters: parameters of the brakes file that are guessed for some joint.
        missing: joints without rotor inertia in either file; none is taken, which is too little.
    """

    parameters: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is guessed."""
        return bool(self.parameters or self.missing)

    @property
    def headline(self) -> str:
        """What is to be said of them ahead of all else; empty if nothing is guessed."""
        if not self:
            return ""
        partly = "" if "dynamic_torque" in self.parameters else "partly "
        return f"brake data are {partly}guesses"

    def title(self, text: str, mark: Mark = "") -> Cell:
        """A first line that says so; nothing is good news then."""
        if not self:
            return Cell(text, mark)
        return Cell(f"{text}; {self.headline}", "bad" if mark == "bad" else "caution")

    @property
    def details(self) -> str:
        """Which they are; empty if nothing is guessed."""
        sentences = [", ".join(self.parameters)] if self.parameters else []
        if self.missing:
            many = f"{len(self.missing)} joints"
            who = many if len(self.missing) > _FEW else listed(self.missing)
            sentences.append(
                f"rotor_inertia of {who} is missing, which makes stops too short ('pinloop brakes "
                "init' estimates it)"
            )
        return "; ".join(sentences)
