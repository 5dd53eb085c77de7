"""The study file: YAML to the arguments of `study`; its JSON schema and the tables of its keys.

Paths in it are relative to the file. What a robot, brakes or space then refuse comes with file
and line as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pinocchio as pin

from ...boundary.marks import Name, NotNegative, Positive, Short, Vector3, existing, nonempty
from ...boundary.schema import Document
from ...errors import BadValue, LoadError, UnknownName
from ...io.loading import RobotFile
from ...model.mechanism import Mechanism
from ..brakes.brakes import Brakes
from ..brakes.laws import LawName, law_by_name
from ..space.solids import Obstacle, checked_obstacles
from ..stopping import Payload, Trigger
from ..stopping.categories import Category, as_category
from ..stopping.defaults import default_brakes
from ..stopping.safety_functions import StopName
from .criteria import known_criteria
from .space import Corners, Grid, Random, Sampling, Sobol, Space
from .study import StudySettings, make_setup
from .worst_search import Search


@dataclass(frozen=True, kw_only=True)
class CategoryEntry:
    """Category of the stops; a number alone is one without details."""

    number: Annotated[StopName, "0, 1 or 2, or the name of a safety function"]
    on_path: Annotated[bool, "categories 1 and 2: slow down along the path"] = False
    time_limit: Annotated[
        Positive | None, "category 1: brakes come after this time in any case [s]"
    ] = None
    law: Annotated[LawName | None, "how drives slow down; null: as the brakes file says"] = None

    def __post_init__(self) -> None:
        self.make()

    def make(self) -> Category:
        """The category."""
        law = None if self.law is None else law_by_name(self.law)
        limit = self.time_limit
        return as_category(self.number, on_path=self.on_path, law=law, time_limit=limit)


_METHODS = {"sobol": Sobol, "random": Random, "grid": Grid, "corners": Corners}


@dataclass(frozen=True, kw_only=True)
class SamplingEntry:
    """Which cases are looked at."""

    method: Annotated[
        Literal["sobol", "random", "grid", "corners"],
        "`sobol`, `random`, `grid` or `corners` (both ends of everything)",
    ]
    count: Annotated[
        int | Mapping[Name, int] | None,
        "number of cases; of a grid: values per variable, or a table of them (`speed.joint_1: 5`)",
    ] = None
    seed: Annotated[int | None, "seed of sobol and random; 0 by default"] = None

    def __post_init__(self) -> None:
        if self.method in ("sobol", "random") and not isinstance(self.count, int):
            raise BadValue(f"{self.method} needs count: the number of cases")
        if self.method == "grid" and self.count is None:
            raise BadValue("grid needs count: the number of values per variable")
        if self.method == "corners" and self.count is not None:
            raise BadValue("corners have no count")
        if self.method in ("grid", "corners") and self.seed is not None:
            raise BadValue(f"{self.method} has no seed")

    def make(self) -> Sampling:
        """The sampling."""
        given = (value for value in (self.count, self.seed) if value is not None)
        sampling: Sampling = _METHODS[self.method](*given)
        return sampling


@dataclass(frozen=True, kw_only=True)
class ObstacleEntry:
    """An obstacle around the robot: one of box, sphere and mesh."""

    name: Annotated[Name, "its name, unique"]
    box: Annotated[Vector3 | None, "full lengths along x, y, z [m]"] = None
    sphere: Annotated[Positive | None, "radius [m]"] = None
    mesh: Annotated[Path | None, "mesh file"] = None
    scale: Annotated[Positive, "metres per unit of the mesh"] = 1.0
    xyz: Annotated[Vector3, "position of its centre, of a mesh of its axes [m]"] = (0.0, 0.0, 0.0)
    rpy: Annotated[Vector3, "roll, pitch, yaw about fixed axes [rad]"] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if sum(shape is not None for shape in (self.box, self.sphere, self.mesh)) != 1:
            raise BadValue("needs one of 'box', 'sphere' and 'mesh'")

    def make(self) -> Obstacle:
        """The obstacle."""
        placement = pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.xyz))
        if self.box is not None:
            return Obstacle.box(self.name, self.box, placement)
        if self.sphere is not None:
            return Obstacle.sphere(self.name, self.sphere, self.xyz)
        return Obstacle.mesh(self.name, self.mesh, placement, self.scale)


@dataclass(frozen=True, kw_only=True)
class PersonEntry:
    """Where a person is and how they approach, for the criterion `separation`."""

    direction: Annotated[Vector3 | None, "from the robot to the person, in the world"] = None
    point: Annotated[Vector3 | None, "where the person stands in the world [m]"] = None
    human_speed: Annotated[Positive, "speed towards the robot [m/s]"] = 1.6
    detection: Annotated[NotNegative, "from the approach to the signal [s]"] = 0.0
    intrusion: Annotated[NotNegative, "reach before the person is detected [m]"] = 0.0
    z_d: Annotated[NotNegative, "uncertainty of the person's place [m]"] = 0.0
    z_r: Annotated[NotNegative, "uncertainty of the robot's place [m]"] = 0.0


@dataclass(frozen=True, kw_only=True)
class SearchEntry:
    """How the study goes on from its worst samples; `false` for samples only."""

    on: Annotated[bool, "whether it does"] = True
    evaluations: Annotated[int, "stops per criterion"] = 64
    starts: Annotated[int, "cases to start from, per criterion"] = 3
    corners: Annotated[int, "cases at ends of ranges that are looked at first"] = 32
    person: Annotated[PersonEntry | None, "where a person is, for `separation`"] = None

    def __post_init__(self) -> None:
        self.make(None)

    def make(self, criteria: tuple[str, ...] | None) -> Search:
        """The search."""
        person = None if self.person is None else vars(self.person)
        return Search(criteria, self.evaluations, self.starts, self.corners, person)


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """A study: a robot, what varies, which cases."""

    format: Annotated[Literal["pinloop-study-1"], "version of this format"]
    robot: Annotated[RobotFile, Short(Name, "file"), "the robot, or just its file"]
    brakes: Annotated[
        Annotated[Path, existing] | None,
        "brakes file; that beside the robot by default, else guessed",
    ] = None
    category: Annotated[CategoryEntry, Short(StopName, "number"), "category of the stops"] = (
        CategoryEntry(number=0)
    )
    payload: Annotated[
        Annotated[Payload, Short(float, "mass")] | None, "what the robot carries; a number: kg"
    ] = None
    gravity: Annotated[Vector3 | None, "in the robot's base [m/s^2]"] = None
    trigger: Annotated[Trigger, "other times of the signal chain"] = field(default_factory=Trigger)
    until: Annotated[Positive, "limit of the time of each stop [s]"] = 10.0
    space: Annotated[Space, "what varies"] = field(default_factory=Space)
    sampling: Annotated[SamplingEntry, "which cases; 256 of Sobol by default"] = SamplingEntry(
        method="sobol", count=256
    )
    obstacles: Annotated[tuple[ObstacleEntry, ...], "obstacles around the robot"] = ()
    results: Annotated[
        Name | None, "CSV file of the results; by default named as this file, beside it"
    ] = None
    jobs: Annotated[int, "number of processes; -1: all cores"] = -1
    worst: Annotated[
        Annotated[tuple[Name, ...], nonempty] | None,
        "what to search by; time, travel, clearance and angles by default",
    ] = None
    search: Annotated[SearchEntry, Short(bool, "on"), "how it goes on from the worst samples"] = (
        SearchEntry()
    )


@dataclass(frozen=True, eq=False)
class PlannedStudy:
    """What a study file asks for.

    ``robot``: the robot; ``arguments``: all that `study` takes but the search; ``worst``: criteria
    of worst cases; None: all that matter; ``guessed``: whether the brakes are guessed from the
    robot's file; ``search``: how to search by them; ``searches``: whether `study` does.
    """

    robot: Mechanism
    arguments: Mapping[str, Any]
    worst: tuple[str, ...] | None
    guessed: bool
    search: Search
    searches: bool

    def check_criteria(self, names: Sequence[str]) -> None:
        """Refuse criteria of worst cases that this study does not have."""
        settings = {x: self.arguments[x] for x in StudySettings.__annotations__ if x != "method"}
        setup = make_setup(
            self.robot, self.arguments["brakes"], self.arguments["space"], method=None, **settings
        )
        known_criteria(setup, names, self.search.person)


def read_study(path: str | Path, results: Path | None = None) -> PlannedStudy:
    """Read a study file, and the files that it names; a `LoadError` names file, line and key.

    ``results``: CSV file of the results, wherever that is; as the study file says by default.
    """
    document = Document.open(path, "study file")
    file = document.read(StudyFile)
    robot = file.robot.load()
    if file.brakes is None:
        brakes, beside = default_brakes(robot, file.robot.file)
    else:
        brakes, beside = Brakes.from_yaml(file.brakes), True
    with document.at("brakes"):
        try:
            brakes.for_robot(robot)
        except LoadError as error:  # where these are named is said as well
            raise BadValue(str(error)) from None
    with _at_range(document):
        variables = file.space.variables(robot, brakes, file.trigger.chain(brakes.chain))
    with document.at("sampling"):
        sampling = file.sampling.make()
        sampling.size(tuple(variable.name for variable in variables if variable.varies))
    obstacles: list[Obstacle] = []
    for k, entry in enumerate(file.obstacles):
        with document.at("obstacles", k):
            obstacles = checked_obstacles([*obstacles, entry.make()])
    arguments: dict[str, Any] = {
        "brakes": brakes,
        "space": file.space,
        "sampling": sampling,
        "category": file.category.make(),
        "payload": file.payload,
        "gravity": file.gravity,
        "trigger": file.trigger,
        "until": file.until,
        "results": _results(file, document) if results is None else results,
        "jobs": file.jobs,
        "obstacles": obstacles or None,
    }
    search = file.search.make(file.worst)
    plan = PlannedStudy(robot, arguments, file.worst, not beside, search, file.search.on)
    for k, name in enumerate(file.worst or ()):
        with document.at("worst", k):
            plan.check_criteria([name])
    return plan


def _results(file: StudyFile, document: Document) -> Path:
    """Where the rows go: beside the study file or below, whoever wrote it."""
    path = document.path
    results = path.parent / (file.results or path.with_suffix(".csv").name)
    if not Path(os.path.realpath(results)).is_relative_to(os.path.realpath(path.parent)):
        raise LoadError(
            f"results is '{file.results}', outside the folder of the study; give --results "
            "(results= in Python) to write there",
            source=str(path),
        )
    return results


@contextmanager
def _at_range(document: Document) -> Iterator[None]:
    """Say of what the space refuses which of its ranges it comes from, by what is named."""
    try:
        yield
    except (BadValue, UnknownName) as error:
        with document.at(*_place(document.data.get("space") or {}, str(error))):
            raise


def _place(space: Mapping[str, Any], problem: str) -> tuple[str, ...]:
    """Where in the space something is that a sentence names."""
    for key in ("pose", "speed", "delay", "band"):
        ranges = space.get(key)
        for joint in ranges if isinstance(ranges, Mapping) else ():
            if f"'{joint}'" in problem and (key in problem or problem.startswith("no ")):
                return "space", key, joint
    named = [key for key in ("instant", "motion", "payload", "speed", "band") if key in problem]
    return ("space", *(key for key in named[:1] if key in space))
