"""What all plots share, whoever draws them: colours, dashes, and labels that cover no other.

Knows neither robots nor a library that draws. Widths are in the unit of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["DASHES", "PALETTE", "Instant", "placed", "shortened_to"]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#3d9bd1", "#5b4fa0", "#222222")
"""Colours that people with any colour vision tell apart: Okabe and Ito (2008), darker for print."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""Further curves repeat the colours with these dashes."""

_MOST_ROWS = 6


@dataclass(frozen=True)
class Instant:
    """A vertical line at an instant; without a label if that is empty."""

    x: float
    label: str = ""


def shortened_to(text: str, most: int) -> str:
    """A label of no more letters than ``most``; what is cut off is marked."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def placed(
    instants: Sequence[Instant],
    scale: Callable[[float], float],
    width: float,
    letter: float,
) -> dict[int, tuple[float, int]]:
    """Where the labels of instants begin, and in which row, so that none covers another.

    A label begins at its instant, or ends there where the picture ends. Its line rises to it
    through no other label. Labels that find no room are left out.

    Args:
        instants: the instants.
        scale: from instants to places in the picture.
        width: where the picture ends.
        letter: width of a letter.

    Returns:
        By index of the instant, the place at which its label begins, and its row; the highest row
        is 0.
    """
    found: dict[int, tuple[float, int]] = {}
    taken: list[tuple[float, float, float, int]] = []
    for k, ahead in _in_turn(instants, scale, width, letter):
        x, room = scale(instants[k].x), letter * len(instants[k].label)
        begin = x + 4 if ahead else x - 4 - room
        end = begin + room
        for row in range(_MOST_ROWS):
            free = all(
                (other != row or begin >= b + 6 or end <= a - 6)
                and not (other > row and a - 3 < x < b + 3)
                and not (other < row and begin - 3 < line < end + 3)
                for a, b, line, other in taken
            )
            if free:
                taken.append((begin, end, x, row))
                found[k] = begin, row
                break
    return found


def _in_turn(
    instants: Sequence[Instant], scale: Callable[[float], float], width: float, letter: float
) -> list[tuple[int, bool]]:
    """Instants with labels, outer ones first, and whether there is room ahead of them.

    A line that rises higher then stands outside of the labels below its own.
    """
    labelled = [k for k, instant in enumerate(instants) if instant.label]
    ahead = {
        k: scale(instants[k].x) + 4 + letter * len(instants[k].label) <= width for k in labelled
    }
    forward = sorted((k for k in labelled if ahead[k]), key=lambda k: instants[k].x)
    backward = sorted((k for k in labelled if not ahead[k]), key=lambda k: -instants[k].x)
    return [(k, False) for k in backward] + [(k, True) for k in forward]
