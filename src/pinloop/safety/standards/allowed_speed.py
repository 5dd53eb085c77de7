"""How fast a robot may go so that each of its stops stays within limits, over many poses.

All speeds of a case are scaled by one share. The largest share is looked for below which no share
that was tried breaks a limit; between two of them nothing is known. Sampled, not guaranteed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from joblib import delayed

from ...boundary.arguments import flat_numbers, public, require_kind
from ...boundary.values import forward
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...tables.number_format import number
from ...tables.report import KeyValues, Mark, Notes, Report, Reported, Table
from ...tolerances import SPEED_SHARE
from ...units import ANGLES, LENGTHS, TIMES, column_unit, shown_unit
from ..brakes.brakes import Brakes
from ..stopping import StopResult
from ..stopping.result_document import PLANNING_AID
from ..studies.case_values import case_values
from ..studies.cases import CLEARANCE, TOOL_PLACE, Setup, Values
from ..studies.criteria import criteria, known_criteria
from ..studies.order_statistics import proven_share
from ..studies.space import Sampling, Sobol, Space
from ..studies.study import StudySettings, checked_size, make_setup
from ..studies.workers import start_workers
from .separation import separation

SEPARATION = "separation"
"""The limit on the protective separation distance, which needs to know where the person is."""
_COLUMN = "separation_m"
_TRIED = 8
"""Shares that are tried up to the first that breaks a limit, at equal distances."""
_LISTED = 5


@dataclass(frozen=True)
class CaseSpeed:
    """How fast the robot may go in one case.

    Args:
        case: number of the case.
        share: largest share of its speeds [1]; 0 if not even the robot at rest stays within.
        binding: the limit that is broken first; empty if none is at full speed.
        tool: place of the tool in the world [m].
        problem: why nothing could be computed; empty if it could.
    """

    case: int
    share: float
    binding: str
    tool: tuple[float, ...]
    problem: str = ""


@public
@dataclass(frozen=True, eq=False)
class AllowedSpeed(Reported):
    """The largest share of the speeds with which the robot stops within limits.

    Args:
        setup: what all cases have in common.
        stop_within: the limits by criterion [SI].
        values: of every case the values of its variables, speeds at full share.
        cases: of every case what is allowed.
        person: where the person is, for `separation`.
    """

    setup: Setup = field(repr=False)
    stop_within: Mapping[str, float]
    values: tuple[Values, ...] = field(repr=False)
    cases: tuple[CaseSpeed, ...] = field(repr=False)
    person: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> tuple[CaseSpeed, ...]:
        """The cases that could be computed."""
        return tuple(case for case in self.cases if not case.problem)

    @property
    def share(self) -> float:
        """The share that is allowed in all cases [1]."""
        return self.worst.share

    @property
    def worst(self) -> CaseSpeed:
        """The case in which least is allowed."""
        return min(self.known, key=lambda case: case.share)

    @property
    def proven(self) -> float:
        """Share of all cases that allow as much, with a confidence of 95 % (order statistics).

        Of n cases drawn at random the least is below the share p of all with a probability of
        1 - p^n.
        """
        return proven_share(len(self.known))

    def stop(self, case: CaseSpeed | None = None) -> StopResult:
        """The stop of a case with the share that is allowed; of the worst one by default."""
        chosen = self.worst if case is None else case
        return self.setup.stop(scaled(self.values[chosen.case], chosen.share))

    def __rich__(self) -> Report:
        worst, robot = self.worst, self.setup.robot
        facts = [
            ("allowed", f"{_percent(self.share)} of the speeds in all of {len(self.known)} cases"),
            ("limits", "; ".join(self._limit(name) for name in self.stop_within)),
            ("least in", f"case {worst.case}: {worst.binding or 'no limit is reached'}"),
            ("category", self.setup.category.title),
        ]
        shares = np.array([case.share for case in self.known])
        parts = ((f"{100 * p:.0f} %", _percent(np.quantile(shares, p))) for p in (0, 0.05, 0.5))
        counts = Counter(case.binding or "none at full speed" for case in self.known)
        least = sorted(self.known, key=lambda case: case.share)[:_LISTED]
        rows = (
            (str(c.case), _percent(c.share), c.binding, *(number(1e3 * x, 0) for x in c.tool))
            for c in least
        )
        tool = ("tool | x [mm]", "tool | y [mm]", "tool | z [mm]")
        blocks = (
            KeyValues.of("Allowed speed", facts),
            Table.of("Share that is allowed", ("cases that allow less", "share"), parts),
            Table.of(
                "Limits that bind", ("<limit", "cases"), ((k, str(n)) for k, n in counts.items())
            ),
            Table.of("Least allowed", ("case", "share", "<limit", *tool), rows),
            Notes.of("Notes", self._notes()),
        )
        mark: Mark = "good" if self.share > 0.0 else "bad"
        title = f"{robot.name}: {_percent(self.share)} of the speeds allowed"
        return Report.of(self.setup.guesses.title(title, mark), blocks, PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """Everything that is in the table, in SI units."""
        return {
            "format": "pinloop-allowed-speed-1",
            "headline": self.__rich__().title.text,
            "disclaimer": PLANNING_AID,
            "robot": self.setup.robot.name,
            "category": self.setup.category.number,
            "stop_within": dict(self.stop_within),
            "share": self.share,
            "case": self.worst.case,
            "values": dict(self.values[self.worst.case]),
            "share_of_cases_proven": self.proven,
            "cases": [
                {**asdict(case), "tool": list(case.tool)}
                if not case.problem
                else {"case": case.case, "problem": case.problem}
                for case in self.cases
            ],
            "notes": self._notes(),
        }

    def _limit(self, name: str) -> str:
        unit, factor = shown_unit(column_unit(_columns(self.setup)[name]))
        sign = ">=" if name == "clearance" else "<="
        return f"{name} {sign} {factor * self.stop_within[name]:.6g} {unit}".rstrip()

    def _notes(self) -> list[str]:
        notes = [
            f"sampled: with 95 % confidence {100 * self.proven:.1f} % of all cases allow this "
            "share, if these were drawn at random",
            f"in each case {_TRIED} shares up to full speed were tried, and those beside the limit",
        ]
        if not any(case.binding for case in self.known):
            notes.append("no case comes to any limit; are the limits in the right units?")
        problems = Counter(case.problem for case in self.cases if case.problem)
        return notes + [f"left out, {n} x {why}" for why, n in problems.most_common(_LISTED)]

    def plot(self, plane: str = "xz") -> Any:
        """Draw the shares at the places of the tool at the signal, seen along an axis.

        Args:
            plane: the plane of the picture: "xy", "xz" or "yz".
        """
        if plane not in ("xy", "xz", "yz"):
            raise BadValue(f"plane is {plane!r}; give 'xy', 'xz' or 'yz'")
        columns = ["xyz".index(axis) for axis in plane]
        points = np.array([case.tool for case in self.known])[:, columns]
        shares = 100.0 * np.array([case.share for case in self.known])
        labels = f"{plane[0]} [m]", f"{plane[1]} [m]"
        name, count = self.setup.robot.name, len(self.known)
        title = f"{name}: {_percent(self.share)} of the speeds allowed in all of {count} cases"
        unit = "share of the speeds allowed, at the place of the tool [%]"
        shown = title, labels, points, shares, unit
        return forward("show.plots", "by_matplotlib", "draw_map", *shown)


@public
def allowed_speed(
    robot: Mechanism,
    brakes: Brakes | str | Path,
    stop_within: Mapping[str, float | str],
    space: Space | None = None,
    sampling: Sampling = Sobol(32),  # noqa: B008 (frozen)
    *,
    person: Mapping[str, Any] | None = None,
    jobs: int = -1,
    **settings: Unpack[StudySettings],
) -> AllowedSpeed:
    """Find the greatest share of its speeds with which a robot stops within limits in all cases.

    The speeds of each case of the space are scaled together, from full speed down. A stop that
    does not end at rest, and held, is within no limit.

    Args:
        robot: the mechanism.
        brakes: its brakes, or their file.
        stop_within: limits by criterion, in SI units or as a text with a unit: ``"time"``,
            ``"travel"`` of the tool, ``"angle:JOINT"``, ``"impulse:JOINT"``, ``"gear:JOINT"``;
            ``"clearance"`` to the obstacles is kept at least, ``"separation"`` from a person is
            needed at most.
        space: poses, and speeds at full share.
        sampling: which cases.
        person: where the person is and how fast: arguments of `separation`.
        jobs: number of processes; all cores by default.
        settings: further arguments of `study`: category, payload, obstacles, ...

    Returns:
        The share for all cases, and of each case.
    """
    setup = make_setup(robot, brakes, space, **settings)
    if setup.space.motion is not None:
        raise BadValue("speeds of a recorded motion are what they are; give poses and speeds")
    limits = _limits(setup, stop_within, person)
    values = tuple(case_values(setup, sampling, 0, checked_size(setup, sampling, jobs)))
    known = _columns(setup)
    columns = {known[name]: limit for name, limit in limits.items()}
    tasks = (
        delayed(_allowed_in)(_Judge(setup, k, case, columns, person or {}))
        for k, case in enumerate(values)
    )
    cases = tuple(start_workers(jobs)(tasks))
    if all(case.problem for case in cases):
        raise BadValue(f"no case could be computed; the first one: {cases[0].problem}")
    names = {column: name for name, column in known.items()}
    cases = tuple(replace(case, binding=names.get(case.binding, case.binding)) for case in cases)
    return AllowedSpeed(setup, limits, values, cases, dict(person or {}))


def _columns(setup: Setup) -> dict[str, str]:
    """Criteria and the columns that measure them."""
    return criteria(setup) | {SEPARATION: _COLUMN}


def _limits(
    setup: Setup, given: Mapping[str, float | str], person: Mapping[str, Any] | None
) -> dict[str, float]:
    """The limits in SI units, after checking names and signs."""
    require_kind(given, Mapping, "stop_within", "give limits by name, such as {'travel': 0.2}")
    if not given:
        raise BadValue("stop_within is empty; give a limit, such as {'travel': '200 mm'}")
    known = _columns(setup)
    limits = {}
    for name, value in given.items():
        if name == SEPARATION:
            if person is None:
                raise BadValue("a limit on the separation needs person={...}, see pl.separation")
        else:
            known_criteria(setup, [name])
        sizes = {"rad": ANGLES, "m": LENGTHS, "s": TIMES}.get(column_unit(known[name]), {"": 1.0})
        (limits[name],) = flat_numbers(value, f"the limit of {name}", 1, sizes).tolist()
        if limits[name] <= 0.0:
            raise BadValue(f"the limit of {name} is {value}; it must be positive")
    if limits.get("time", 0.0) > setup.until:
        raise BadValue(
            f"the limit of time is {limits['time']:g} s, longer than any stop is followed "
            f"({setup.until:g} s); give milliseconds with their unit, as in '250 ms'"
        )
    return limits


# -- of one case ----------------------------------------------------------------------------------


def scaled(values: Values, share: float) -> dict[str, float]:
    """The values of a case with all speeds scaled."""
    return {
        name: share * value if name.startswith("speed.") else value
        for name, value in values.items()
    }


@dataclass
class _Judge:
    """Holds the stops of one case against limits, and remembers what broke them last.

    Args:
        limits: by column.
        tool: place of the tool at the signal [m].
        binding: the column, or what else is wrong.
        problem: why the last stop could not be computed; empty if it could.
    """

    setup: Setup
    number: int
    values: Values
    limits: Mapping[str, float]
    person: Mapping[str, Any]
    tool: tuple[float, ...] = (np.nan,) * 3
    binding: str = ""
    problem: str = ""

    def keeps(self, share: float) -> bool:
        """Whether the stop with a share of the speeds stays within all limits."""
        row, stop = self.setup.evaluate(self.number, scaled(self.values, share))
        self.problem = "" if stop is not None else str(row["reason"])
        if stop is None or stop.outcome != "stopped":
            self.binding = self.problem or _ENDS[str(row["outcome"])]
            return False
        self.tool = tuple(float(row[name]) for name in TOOL_PLACE)
        if _COLUMN in self.limits:
            row[_COLUMN] = separation(stop, **self.person).distance
        for column, limit in self.limits.items():
            size, sign = float(row[column]), -1.0 if column == CLEARANCE else 1.0
            if sign * (size - limit) > 0.0:
                self.binding = column
                return False
        return True


_ENDS = {"does not hold": "the robot is not held", "time-out": "the robot does not come to rest"}


def _allowed_in(judge: _Judge) -> CaseSpeed:
    """What is allowed in one case."""
    if not judge.keeps(0.0):
        share = np.nan if judge.problem else 0.0
        return CaseSpeed(judge.number, share, judge.binding, judge.tool, judge.problem)
    share = largest_share(judge.keeps)
    return CaseSpeed(judge.number, share, judge.binding if share < 1.0 else "", judge.tool)


def largest_share(keeps: Callable[[float], bool]) -> float:
    """The largest share below which all that are tried keep the limits, to `SPEED_SHARE`.

    Shares at equal distances are tried from the smallest on. Between the first that is too much and
    the one before the limit is found by halving; what is returned has been tried.
    """
    low = 0.0
    for high in np.linspace(0.0, 1.0, _TRIED + 1)[1:].tolist():
        if not keeps(high):
            break
        low = high
    else:
        return 1.0
    while high - low > SPEED_SHARE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _percent(share: float) -> str:
    return f"{100.0 * float(share):.1f} %"
