"""Numbers with units, as people write them: ``30deg``, ``200mm``, ``800ms``. Knows no robot."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

__all__ = [
    "ANGLES",
    "LENGTHS",
    "MASSES",
    "PARTS",
    "TIMES",
    "in_units",
    "length_scale",
    "listed",
    "rates",
]

ANGLES: Mapping[str, float] = {"": 1.0, "rad": 1.0, "deg": math.pi / 180}
LENGTHS: Mapping[str, float] = {"": 1.0, "m": 1.0, "mm": 1e-3}
MASSES: Mapping[str, float] = {"": 1.0, "kg": 1.0, "g": 1e-3, "t": 1e3}
PARTS: Mapping[str, float] = {"": 1.0, "%": 0.01}
TIMES: Mapping[str, float] = {"": 1.0, "s": 1.0, "ms": 1e-3}

_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s]*)\s*")


def in_units(word: str, units: Mapping[str, float]) -> float | None:
    """A number with one of some units, in SI units; None if it is none.

    Args:
        word: the number with its unit.
        units: sizes of the units; that without a name is the SI unit.
    """
    match = _NUMBER.fullmatch(word)
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]


def length_scale(length: float) -> tuple[float, str]:
    """How many per metre, and the name, of the unit in which a small length is easy to read."""
    scales = ((1e-4, 1e3, "mm"), (1e-7, 1e6, "um"), (0.0, 1e9, "nm"))
    return next((scale, name) for least, scale, name in scales if abs(length) >= least)


def rates(units: Mapping[str, float]) -> dict[str, float]:
    """Units of a rate, from those of what changes."""
    return {f"{unit}/s" if unit else "": size for unit, size in units.items()}


def listed(units: Mapping[str, float]) -> str:
    """Names of units, as sentences have them."""
    return ", ".join(unit for unit in units if unit)
