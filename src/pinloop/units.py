"""Units: numbers as people write them, units that tables show, names of columns. Knows no robot.

A column of a file is called ``name_quantity_unit``: ``joint_1_peak_torque_N_m``. Its numbers are in
SI units; files from others may have any unit of `UNITS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_DEGREE = math.pi / 180
UNITS: Mapping[str, tuple[str, float]] = {
    "rad": ("rad", 1.0),
    "mrad": ("rad", 1e-3),
    "radians": ("rad", 1.0),
    "deg": ("rad", _DEGREE),
    "degrees": ("rad", _DEGREE),
    "°": ("rad", _DEGREE),
    "m": ("m", 1.0),
    "cm": ("m", 1e-2),
    "mm": ("m", 1e-3),
    "s": ("s", 1.0),
    "sec": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "μs": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "kg": ("kg", 1.0),
    "g": ("kg", 1e-3),
    "t": ("kg", 1e3),
    "%": ("", 0.01),
}
"""The SI unit and the size of every unit that is read."""


def _sizes(*units: str) -> Mapping[str, float]:
    """Sizes of some units; that without a name is the SI unit."""
    return {"": 1.0} | {unit: UNITS[unit][1] for unit in units}


ANGLES = _sizes("rad", "deg")
LENGTHS = _sizes("m", "mm")
MASSES = _sizes("kg", "g", "t")
PARTS = _sizes("%")
TIMES = _sizes("s", "ms")

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


def degrees_hint(value: float, low: float, high: float) -> str:
    """What to write for an angle beyond its limits [rad] that in degrees is within them."""
    if not low <= value * _DEGREE <= high:
        return ""
    return f"; {value:.9g} degrees are within them: write '{value:.9g}deg'"


def rates(units: Mapping[str, float]) -> dict[str, float]:
    """Units of a rate, from those of what changes."""
    return {f"{unit}/s" if unit else "": size for unit, size in units.items()}


def listed(units: Mapping[str, float]) -> str:
    """Names of units, as sentences have them."""
    return ", ".join(unit for unit in units if unit)


# -- tables ---------------------------------------------------------------------------------------

_SHOWN = {"rad": ("deg", 180.0 / math.pi), "m": ("mm", 1e3), "s": ("ms", 1e3)}


def shown_unit(unit: str) -> tuple[str, float]:
    """The unit in which tables show what is computed in an SI unit, and the factor to it."""
    base, per, rest = unit.partition("/")
    name, factor = _SHOWN.get(base, (base, 1.0))
    return f"{name}{per}{rest}", factor


def length_scale(length: float) -> tuple[float, str]:
    """How many per metre, and the name, of the unit in which a length is easy to read."""
    scales = ((1.0, 1.0, "m"), (1e-4, 1e3, "mm"), (1e-7, 1e6, "um"), (0.0, 1e9, "nm"))
    return next((scale, name) for least, scale, name in scales if abs(length) >= least)


# -- columns --------------------------------------------------------------------------------------

_RATES = [f"{unit}/s" for unit in ("rad", "deg", "m", "mm")]
_SPELLED = {
    unit.replace("/", "_per_").replace(" ", "_"): unit
    for unit in (*_RATES, "N m s", "N m", "N s", "rad", "deg", "mm", "m", "ms", "s", "kg", "N", "J")
}
"""Units by how names of columns spell them, none ahead of one that ends as it does."""


def column_name(*words: str, unit: str = "") -> str:
    """Name of a column: ``name_quantity_unit``.

    Args:
        words: what the number belongs to, and the quantity; what is empty is left out.
        unit: its unit, such as "rad/s"; empty if it has none.
    """
    spelled = unit.replace("/", "_per_").replace(" ", "_")
    return "_".join(filter(None, (*words, spelled)))


def split_column(name: str) -> tuple[str, str]:
    """The name of a column without its unit, and the unit; empty if it names none."""
    for spelled, unit in _SPELLED.items():
        if name.endswith(f"_{spelled}"):
            return name.removesuffix(f"_{spelled}"), unit
    return name, ""


def column_unit(name: str) -> str:
    """The unit in the name of a column."""
    return split_column(name)[1]
