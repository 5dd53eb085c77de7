"""What the digits of a robot's files say about how far its numbers were rounded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["DEFAULT_TOLERANCE", "written_tolerance"]

DEFAULT_TOLERANCE = 1e-4
"""Radians, and parts of the robot's length, by which a frame may be off and count as rounded."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?![\w.])")
_EVIDENCE, _SHARE = 20, 0.7
"""How many numbers must tell, and how many of them have all digits: nine of ten have if rounded."""


def written_tolerance(texts: Iterable[str]) -> float:
    """Tolerance for a robot whose numbers are all written with few digits.

    A file in which every number has at most ``n`` significant digits, and most have all of them,
    was rounded to ``n`` digits: its frames are off by some ``10^(1 - n)``. Short numbers alone say
    nothing: 0.3 is what somebody meant.

    Args:
        texts: what the robot was read from.
    """
    counts: Counter[int] = Counter()
    for text in texts:
        for match in _NUMBER.finditer(text):
            digits = len(match[1].replace(".", "").strip("0"))
            if _rounding(digits) < DEFAULT_TOLERANCE:
                return DEFAULT_TOLERANCE  # whatever the other numbers are
            counts[digits] += 1
    most = max(counts, default=0)
    long = sum(counts[n] for n in counts if n > 1)
    if most < 3 or long < _EVIDENCE or counts[most] < _SHARE * long:
        return DEFAULT_TOLERANCE
    return max(DEFAULT_TOLERANCE, _rounding(most))


def _rounding(digits: int) -> float:
    """By how much frames are off in a file of so many significant digits."""
    return 3 * 10.0 ** (1 - digits)
