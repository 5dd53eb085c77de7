"""What brakes are like, and published stops against computed ones: tables of the pages.

Run with ``python -m tools.published_stops --write`` from the root of the repository; it needs
example-robot-data.
"""

from __future__ import annotations

from pinloop.safety.brakes.estimates import BRAKE_SHARE, DELAY, RISE, ROTOR, STOP_TIME, Estimate

from .pages import DOCS, number, print_or_write, table

__all__ = ["estimates_table"]

_ROTOR = "time in which the peak torque brings the rotor to full speed"
_ROWS = (
    ("brake torque while sliding, as a share of the peak torque of the drive", BRAKE_SHARE, 1, ""),
    *((f"{_ROTOR}, {gear} drives", own, 1e3, " ms") for gear, own in ROTOR.items()),
    ("delay of the brake", DELAY, 1e3, " ms"),
    ("rise of its torque", RISE, 1e3, " ms"),
    ("controlled stop from full speed", STOP_TIME, 1e3, " ms"),
)


def estimates_table() -> str:
    """What is guessed of a machine of which nothing is known, and where the figures come from."""
    head = ("what", "guess", "nine of ten", "figures", "sources")
    rows = [_row(*row) for row in _ROWS]
    return table(head, rows, " r r")


def _row(what: str, estimate: Estimate, factor: float, unit: str) -> list[str]:
    numbers = (estimate.value, estimate.low, estimate.high)
    value, low, high = (number(float(f"{factor * x:.2g}"), 3) for x in numbers)
    count, sources = str(estimate.count), "; ".join(estimate.sources)
    return [what, f"{value}{unit}", f"{low} to {high}{unit}", count, sources]


if __name__ == "__main__":
    print_or_write(DOCS / "brakes.md", [("estimates", estimates_table())], __doc__)
