"""Editions of the standards by name: their words, and what is to be looked up in one's own copy.

The standards themselves are for sale. What is said here of newer editions rests on public sources,
which are named; what these do not say is taken from the edition before, and said to be so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...boundary.arguments import require_kind
from ...errors import UnknownName


@dataclass(frozen=True)
class Edition:
    """An edition of a standard.

    Args:
        name: as it is cited, "ISO 13855:2024".
        place: clause or annex, if public sources say it.
        supported: what of it is used here, and the public source of that.
        own_copy: what public sources do not say: one sentence each.
    """

    name: str
    place: str = ""
    supported: str = ""
    own_copy: tuple[str, ...] = ()

    @property
    def cited(self) -> str:
        """Name and place."""
        return f"{self.name}, {self.place}" if self.place else self.name

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result with this edition rests on, one sentence each."""
        notes = [f"{self.name}: {self.supported}"] if self.supported else []
        return (*notes, *(f"look up in your copy of {self.name}: {each}" for each in self.own_copy))


_GUARDS = (
    Edition("ISO 13855:2010"),
    Edition(
        "ISO 13855:2024",
        supported="S = K T + D_DS + Z, with the overall system response time T, the distance D_DS "
        "of the protective device and the supplemental distance Z (GT Engineering, EN ISO 13855, "
        "5)",
        own_copy=(
            "K, and up to which distance each K counts; those here are of the edition of 2010",
            "D_DS of the device (reaching over, through and under its detection zone), and Z",
            "how T is measured, and by how much a computed time has to be increased",
        ),
    ),
)
_MONITORED = (
    Edition("ISO/TS 15066:2016", "5.5.4.2.3"),
    Edition(
        "ISO 10218-2:2025",
        supported="has taken in what ISO/TS 15066 asked for (Safetics, ISO 10218-2:2025 Revision "
        "Guide)",
        own_copy=(
            "whether terms and v_h = 1.6 m/s are still those of ISO/TS 15066:2016, as here",
            "C: it refers to ISO 13855, where the edition of 2024 has D_DS and Z",
        ),
    ),
)
_ROBOTS = (
    Edition("ISO 10218-1:2011", "annex B"),
    Edition(
        "ISO 10218-1:2025",
        supported="replaces the edition of 2011 (GT Engineering, EN ISO 10218-1)",
        own_copy=(
            "axes, categories, shares, poses and payload for which times and distances are "
            "declared; those here are of annex B of the edition of 2011",
        ),
    ),
)
GUARD_EDITIONS, MONITORING_EDITIONS, ROBOT_EDITIONS = (
    {edition.name: edition for edition in editions} for editions in (_GUARDS, _MONITORED, _ROBOTS)
)
"""Editions for the positions of safeguards, for speed and separation monitoring, for robots."""


def edition_by_name(word: Any, editions: dict[str, Edition]) -> Edition:
    """The edition called "ISO 13855:2024", or "2024" for short."""
    names = [*editions]
    require_kind(word, str, "edition", f"give {' or '.join(repr(name) for name in names)}")
    short = {name.partition(":")[2]: name for name in names}
    name = short.get(word, word)
    if name not in editions:
        raise UnknownName("edition", word, names)
    return editions[name]
