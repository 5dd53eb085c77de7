"""One line of the tables of ``docs/validation.md``, and how two numbers are compared.

A line is a quantity, what the paper says of it (a number, or its words), what came out here, and
how the two compare: a difference where both are numbers, else whether the claim holds.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_NUMBER", "Line", "both", "claim", "equal", "within"]

NO_NUMBER = "no number"
"""Where a paper names a thing only."""


@dataclass(frozen=True)
class Line:
    """One quantity.

    Args:
        quantity: what it is, with its unit.
        paper: what the paper says.
        ours: what came out here.
        difference: how the two compare, in words or as a number.
    """

    quantity: str
    paper: str | float
    ours: str | float | int
    difference: str


def equal(quantity: str, paper: int, ours: int) -> Line:
    """Counts."""
    return Line(quantity, paper, int(ours), f"{ours - paper:d}")


def within(quantity: str, paper: float, ours: float, half: float) -> Line:
    """A number that is printed with a rounding error of up to ``half``."""
    off = abs(ours - paper)
    words = f"{off:.1g}, within rounding" if off <= half else f"{off:.1g}"
    return Line(quantity, paper, float(ours), words)


def claim(quantity: str, paper: str | float, ours: str | float, holds: bool) -> Line:
    """What is said in words, or as a bound, and whether it holds here."""
    return Line(quantity, paper, ours, "holds" if holds else "does not hold")


def both(a: float, b: float) -> str:
    """Two numbers."""
    return f"{a:.1e} and {b:.1e}"
