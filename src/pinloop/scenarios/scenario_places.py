"""Where in a scenario file something is that a robot refuses, and its values in SI units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..boundary.yaml import line_of
from ..errors import BadValue, InconsistentVelocity, LoadError, LoopNotClosed, UnknownName
from ..model.mechanism import Mechanism
from ..units import ANGLES, LENGTHS, in_units, listed, rates
from .scenario_entries import Word

__all__ = ["Place", "Words"]

Place = tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class Words:
    """A scenario file as it was written, beside the robot that it is about.

    Args:
        source: name of the file.
        data: what YAML made of it.
        robot: the robot.
    """

    source: str
    data: object
    robot: Mechanism

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Tell what the robot refuses with the file and the line of a place in it."""
        try:
            yield
        except (BadValue, UnknownName, LoopNotClosed, InconsistentVelocity) as error:
            line = line_of(self.data, place)
            where = _named(place)
            said = str(error)
            said = said if said.startswith(where) else f"{where}: {said}"
            raise LoadError(said, source=self.source, line=line) from None

    def position(self, joint: str, word: Word, *place: str | int) -> float:
        """Coordinate of a joint [rad, m]."""
        units = self._units(joint)
        with self.at(*place):
            return self._value(word, place, units)

    def rate(self, joint: str, word: Word, *place: str | int) -> float:
        """Rate of a joint [rad/s, m/s]."""
        units = rates(self._units(joint))
        with self.at(*place):
            return self._value(word, place, units)

    def positions(
        self, table: Mapping[str, Sequence[Word]], *place: str | int
    ) -> dict[str, list[float]]:
        """Coordinates by joint [rad, m]."""
        return self._table(table, place, speed=False)

    def speeds(
        self, table: Mapping[str, Sequence[Word]], *place: str | int
    ) -> dict[str, list[float]]:
        """Rates by joint [rad/s, m/s]."""
        return self._table(table, place, speed=True)

    def _table(
        self, table: Mapping[str, Sequence[Word]], place: Place, *, speed: bool
    ) -> dict[str, list[float]]:
        found = {}
        for joint, words in table.items():
            here = (*place, joint)
            with self.at(*here):
                units = self._units(joint)
                units = rates(units) if speed else units
                found[joint] = [self._value(word, here, units) for word in words]
                at = self.robot.coordinates(joint)
                if speed and len(words) != at.nv:
                    raise BadValue(f"joint '{joint}' has {at.nv} rates, not {len(words)}")
                if not speed:
                    at.part(found[joint])
        return found

    def _units(self, joint: str) -> Mapping[str, float]:
        """Units of the coordinate of a joint; those of several axes have none but SI."""
        at = self.robot.coordinates(joint)
        if at.nv > 1:
            return {"": 1.0}
        return LENGTHS if self.robot.is_translation[at.v.start] else ANGLES

    def _value(self, word: Word, place: Place, units: Mapping[str, float]) -> float:
        value = in_units(word, units) if isinstance(word, str) else word
        if value is None:
            known = listed(units)
            if not known:
                raise BadValue(
                    f"{_named(place)} is '{word}': a joint with several axes takes plain numbers"
                )
            raise BadValue(
                f"{_named(place)} is '{word}': no number, with or without a unit ({known}); write "
                f"for example 30{known.split(', ')[-1]}"
            )
        return value


def _named(place: Sequence[str | int]) -> str:
    """A place as messages name it: ``events[1].lock``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")
