"""Corners of the space of a study, where searches begin, and its points as those of the unit cube.

Corners are ends of speeds, payload, bands and delays in combinations of Sobol's sequence, half of
them at poses in which the robot is extended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from ...boundary.marks import Array
from ..stopping import StopResult
from ..stopping.prepared_robot import tool_of
from .cases import TOOL_PLACE, Setup, Values
from .local_search import LocalSearch
from .space import Sampling, Sobol, Variable

_REACHING = 300
"""Poses that are looked at for that in which the tool is farthest away."""
_CORNER_SEED = 20
"""Of the points for corners, another one than users take."""


class Samples(Protocol):
    """What a search needs of a study."""

    @property
    def setup(self) -> Setup:
        """What all cases have in common."""

    @property
    def sampling(self) -> Sampling:
        """Which cases there are."""

    def rows(self) -> Iterator[dict[str, float | str]]:
        """The rows."""

    def values(self, case: int) -> dict[str, float]:
        """Values of the variables of a case."""

    def replay(self, case: int) -> StopResult:
        """The stop of a case."""


def corner_cases(samples: Samples, count: int) -> Iterator[dict[str, float]]:
    """Cases at ends of all ranges but those of poses and instants; half at extended poses."""
    setup = samples.setup
    moving = [variable for variable in setup.variables if variable.varies]
    names = tuple(variable.name for variable in moving)
    if not count or not names:
        return
    at_ends = np.array([variable.kind not in ("pose", "instant") for variable in moving])
    points = Sobol(count, seed=_CORNER_SEED).block(names, 0, count)
    points = np.where(at_ends, np.round(points), points)
    fixed = {variable.name: variable.low for variable in setup.variables}
    poses = list(islice(_extended_poses(samples), count))
    for k, point in enumerate(points.tolist()):
        case = {**fixed, **{v.name: v.at(share) for v, share in zip(moving, point, strict=True)}}
        yield case | (poses[k // 2 % len(poses)] if k % 2 and poses else {})


def _extended_poses(samples: Samples) -> Iterator[dict[str, float]]:
    """Poses of cases, those in which the tool is farthest from the robot's base first.

    The farthest of all comes before them, of robots without loops.
    """
    setup = samples.setup
    names = [v.name for v in setup.variables if v.kind == "pose"]
    if not names:
        return
    places = [
        [float(row[name]) for name in TOOL_PLACE] if row["outcome"] == "stopped" else [0.0] * 3
        for row in samples.rows()
    ]
    order = np.argsort(-np.linalg.norm(places, axis=1), kind="stable").tolist()
    if not setup.robot.loops and not setup.robot.couplings:
        yield _most_extended(setup, samples.values(order[0]))
    for case in order:
        values = samples.values(case)
        yield {name: values[name] for name in names}


def _most_extended(setup: Setup, values: Values) -> dict[str, float]:
    """The pose with the tool farthest away, searched for from that of a case."""
    moving = [v for v in setup.variables if v.kind == "pose" and v.varies]
    fixed = {v.name: v.low for v in setup.variables if v.kind == "pose"}
    tool, robot = tool_of(setup.robot), setup.robot
    scaling = UnitCube(moving, {**fixed, **{v.name: values[v.name] for v in moving}})

    def distance(x: Array) -> float:
        pose = {name.partition(".")[2]: at for name, at in scaling.values(x).items()}
        return float(np.linalg.norm(robot.placement(robot.configuration(pose), tool).translation))

    search = LocalSearch(distance, scaling.start, distance(scaling.start))
    search.advance(_REACHING)
    return scaling.values(search.x)


class UnitCube:
    """Points of the unit cube and values of cases; the start keeps its last digits."""

    def __init__(self, moving: Sequence[Variable], values: Values) -> None:
        self._moving, self._values = moving, values
        self.start = np.array([(values[v.name] - v.low) / (v.high - v.low) for v in moving])

    def values(self, x: Array) -> dict[str, float]:
        """The values at a point."""
        if np.array_equal(x, self.start):
            return dict(self._values)
        places = zip(self._moving, x.tolist(), strict=True)
        return {**self._values, **{variable.name: variable.at(share) for variable, share in places}}
