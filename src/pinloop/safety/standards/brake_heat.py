"""Heat of brakes: what stops put into each of them, and how many stops its data allow.

Data sheets of holding brakes say what a brake may take in one stop, in an hour, and before it is
worn (`energy_per_stop`, `energy_per_hour`, `energy_in_life` in the brakes file). With the energy E
of a stop, ``energy_per_hour / E`` stops an hour and ``energy_in_life / E`` in all are allowed.
How warm a brake becomes, and how its torque changes with that, is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue
from ...tables.number_format import number
from ...tables.report import Cell, KeyValues, Mark, Notes, Report, Reported, Table
from ..stopping import StopResult
from ..stopping.result_document import PLANNING_AID
from ..studies.study import Study


@dataclass(frozen=True)
class BrakeWork:
    """The heat of one brake. Limits that the brakes file does not have are None.

    Args:
        joint: whose brake it is.
        energy: most that one of the stops puts into it [J].
        mean: mean of all stops [J].
        case: number of the stop, or of the case of a study, with most.
        per_stop: what it may take in one stop [J].
        per_hour: what it may take in an hour [J].
        in_life: what it may take before it is worn [J].
    """

    joint: str
    energy: float
    mean: float
    case: int
    per_stop: float | None
    per_hour: float | None
    in_life: float | None

    @property
    def utilisation(self) -> float | None:
        """Most of one stop over what it may take in one."""
        return None if self.per_stop is None else self.energy / self.per_stop

    @property
    def stops_per_hour(self) -> float | None:
        """How many of the stop with most it may make in an hour."""
        return _share(self.per_hour, self.energy)

    @property
    def stops_in_life(self) -> float | None:
        """How many of the stop with most it may make before it is worn."""
        return _share(self.in_life, self.energy)


def _share(limit: float | None, energy: float) -> float | None:
    if limit is None:
        return None
    return limit / energy if energy > 0.0 else math.inf


@public
@dataclass(frozen=True, eq=False)
class BrakeHeat(Reported):
    """The heat of all friction brakes of a robot.

    Args:
        robot: name of the robot.
        brakes: the heat of each brake.
        stops: number of the stops.
    """

    robot: str
    brakes: tuple[BrakeWork, ...]
    stops: int

    @property
    def stops_per_hour(self) -> float | None:
        """How many stops the brake that allows least allows in an hour; None: no limit is known."""
        known = [x.stops_per_hour for x in self.brakes if x.stops_per_hour is not None]
        return min(known, default=None)

    @property
    def within(self) -> bool:
        """Whether no brake takes more in one stop than it may, as far as that is known."""
        return all((brake.utilisation or 0.0) <= 1.0 for brake in self.brakes)

    def __rich__(self) -> Report:
        heads = ("<brake", "energy | most [J]", "energy | mean [J]", "in stop")
        limits = ("may take | in a stop [J]", "may take | in an hour [J]", "may take | in life [J]")
        allowed = ("stops | an hour", "stops | in life")
        hourly = self.stops_per_hour
        facts = [
            ("stops", f"{self.stops}"),
            ("stops an hour", "not known" if hourly is None else f"{_count(hourly)} at most"),
        ]
        blocks = (
            KeyValues.of("Heat of the brakes", facts),
            Table.of("Energy per stop", (*heads, *limits, *allowed), map(_row, self.brakes)),
            Notes.of("Notes", self._notes(), "caution"),
        )
        over = [brake.joint for brake in self.brakes if (brake.utilisation or 0.0) > 1.0]
        mark: Mark = "bad" if over else "title"
        what = f"too hot in one stop: {', '.join(over)}" if over else "heat of the brakes"
        return Report.of(Cell(f"{self.robot}: {what}", mark), blocks, PLANNING_AID)

    def _notes(self) -> list[str]:
        keys = {"energy_per_stop": "per_stop", "energy_per_hour": "per_hour"}
        notes = []
        for key, name in keys.items():
            if bare := [brake.joint for brake in self.brakes if getattr(brake, name) is None]:
                notes.append(f"{key} is not given for {', '.join(bare)}")
        notes.append(
            "numbers of stops are of the one that puts most into each brake, from a cool one; the "
            "temperature is not computed, nor how the torque changes with it"
        )
        return notes

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "robot": self.robot,
            "stops": self.stops,
            "stops_per_hour": self.stops_per_hour,
            "brakes": [
                asdict(brake)
                | {"stops_per_hour": brake.stops_per_hour, "stops_in_life": brake.stops_in_life}
                for brake in self.brakes
            ],
            "notes": self._notes(),
            "disclaimer": PLANNING_AID,
        }


def _row(brake: BrakeWork) -> list[str | Cell]:
    mark: Mark = "bad" if (brake.utilisation or 0.0) > 1.0 else ""
    limits = (brake.per_stop, brake.per_hour, brake.in_life)
    return [
        brake.joint,
        Cell(number(brake.energy, 1), mark),
        number(brake.mean, 1),
        str(brake.case),
        *("-" if limit is None else number(limit, 0) for limit in limits),
        *(_count(n) for n in (brake.stops_per_hour, brake.stops_in_life)),
    ]


def _count(stops: float | None) -> str:
    """A number of stops, rounded down: a part of one is none."""
    if stops is None:
        return "-"
    return "any" if math.isinf(stops) else f"{math.floor(stops)}"


@public
def brake_heat(stops: StopResult | Iterable[StopResult] | Study) -> BrakeHeat:
    """Find out how much heat stops put into the brakes, and how many stops their data allow.

    Args:
        stops: a stop, several, or a `Study`, of which cases that could not be computed are left
            out. Stops that do not end at rest, and held, count with what they have taken so far.

    Raises:
        BadValue: there is no stop, or stops of different brakes.
    """
    if isinstance(stops, StopResult):
        chosen = {0: stops}
    elif isinstance(stops, Study):
        rows = ((int(row["case"]), row["outcome"]) for row in stops.rows())
        chosen = {case: stops.replay(case) for case, outcome in rows if outcome != "failed"}
    else:
        chosen = dict(enumerate(stops))
    if not chosen:
        raise BadValue("there is no stop whose brakes could become hot")
    first = next(iter(chosen.values()))
    brakes = {n: b for n, b in first.brakes.joints.items() if b.kind == "friction"}
    if any({*stop.brakes.joints} != {*first.brakes.joints} for stop in chosen.values()):
        raise BadValue("the stops are of robots with different brakes; give those of one robot")
    energies = {case: stop.brake_energy for case, stop in chosen.items()}
    works = []
    for name, brake in brakes.items():
        column = np.array([energy[name] for energy in energies.values()])
        most = int(column.argmax())
        case = [*energies][most]
        limits = (brake.energy_per_stop, brake.energy_per_hour, brake.energy_in_life)
        works.append(BrakeWork(name, float(column[most]), float(column.mean()), case, *limits))
    return BrakeHeat(first.robot.name, tuple(works), len(chosen))
