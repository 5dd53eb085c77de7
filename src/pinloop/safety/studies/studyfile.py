"""The study file: YAML to the arguments of `study`; its JSON schema and the tables of its keys.

Paths in it are relative to the file. What a robot, brakes or space then refuse is told with file
and line as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pinocchio as pin
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from ...boundary.files import read_bytes
from ...boundary.yaml import Name, Number, Vector3, check_files, line_of, read_yaml, validated
from ...errors import BadValue, LoadError, UnknownName
from ...io.documents import NotNegative, Positive, key_table, schema_of
from ...io.entries import Entry
from ...io.loading import load
from ...model.mechanism import Mechanism
from ..brakes.brakes import Brakes
from ..space.obstacles import Obstacle, checked_obstacles
from ..stopping import Category1, Category2, JointTrajectory, Payload, Trigger
from ..stopping.schedule import Category
from ..stopping.usual import usual_brakes
from .sampling import Corners, Grid, Random, Sampling, Sobol
from .space import Space

__all__ = [
    "TABLES",
    "PlannedStudy",
    "StudyFile",
    "json_schema",
    "key_table",
    "read_study",
]


def _both_ends(value: object) -> object:
    """A number stands for a range with two equal ends."""
    return value if isinstance(value, list | tuple) else (value, value)


def _kind(value: object) -> str:
    return "table" if isinstance(value, Mapping) else "range"


def _mass_only(value: object) -> object:
    return value if isinstance(value, Mapping) else {"mass": value}


def _number_only(value: object) -> object:
    return value if isinstance(value, Mapping) else {"number": value}


_Ends = tuple[Number, Number]
_Range = Annotated[_Ends, BeforeValidator(_both_ends, json_schema_input_type=Number | _Ends)]
_Ranges = dict[Name, _Range]
_RangeOrRanges = Annotated[
    Annotated[_Range, Tag("range")] | Annotated[_Ranges, Tag("table")], Discriminator(_kind)
]


class CategoryEntry(Entry):
    """Category of the stops; a number alone stands for one without details."""

    number: Literal[0, 1, 2] = Field(description="0, 1 or 2")
    on_path: bool = Field(False, description="categories 1 and 2: slow down along the path")
    time_limit: Positive | None = Field(
        None, description="category 1: brakes come after this time in any case [s]"
    )

    def make(self) -> int | Category:
        """The category."""
        if self.number == 1:
            return Category1(self.on_path, self.time_limit)
        return Category2(self.on_path) if self.number == 2 else 0

    @model_validator(mode="after")
    def _fitting(self) -> CategoryEntry:
        if self.number == 0 and self.on_path:
            raise ValueError("category 0 has no drives that could keep to the path")
        if self.number != 1 and self.time_limit is not None:
            raise ValueError("only category 1 has a time limit")
        return self


class PayloadEntry(Entry):
    """What the robot carries; a number alone is the mass of a point at the tool."""

    mass: NotNegative = Field(0.0, description="[kg]; that of the space, if it has one")
    com: Vector3 = Field((0.0, 0.0, 0.0), description="centre of mass in the frame [m]")
    inertia: tuple[Vector3, Vector3, Vector3] | None = Field(
        None, description="about the centre of mass [kg m^2]; null: a point"
    )
    frame: Name | None = Field(None, description="frame or body that carries it; null: the tool")


class TriggerEntry(Entry):
    """Times from the signal on, instead of those of the brakes file."""

    sensor: NotNegative | None = Field(None, description="until the controller knows [s]")
    controller: NotNegative | None = Field(None, description="until the command [s]")
    drive_off: NotNegative | None = Field(
        None, description="from the command until the drives are off [s]"
    )


class SpaceEntry(Entry):
    """What varies. A range is `[low, high]`; a number keeps something fixed."""

    pose: _Ranges = Field(
        {}, description="per joint its coordinate [rad, m]; else anywhere in its limits"
    )
    speed: _RangeOrRanges | None = Field(
        None,
        description="for all joints in parts of their speed limits, or per joint [rad/s, m/s]; "
        "[-1, 1] by default",
    )
    payload: _Range | None = Field(None, description="mass of the payload [kg]")
    motion: Name | None = Field(
        None, description="CSV file of a recorded motion, instead of poses and speeds"
    )
    instant: _Range | None = Field(
        None, description="when the signal comes, in the time of the motion [s]; else any time"
    )
    delay: _Ranges = Field({}, description="per joint by how much its brake is late [s]")
    band: _RangeOrRanges = Field(
        {}, description="for all brakes or per joint: where in its tolerance band, -1 to 1"
    )


class SamplingEntry(Entry):
    """Which cases are looked at."""

    method: Literal["sobol", "random", "grid", "corners"] = Field(
        description="`sobol`, `random`, `grid` or `corners` (both ends of everything)"
    )
    count: int | dict[Name, int] | None = Field(
        None,
        description="number of cases; of a grid: values per variable, or a table of them "
        "(`speed.joint_1: 5`)",
    )
    seed: int | None = Field(None, description="seed of sobol and random; 0 by default")

    @model_validator(mode="after")
    def _fitting(self) -> SamplingEntry:
        if self.method in ("sobol", "random") and not isinstance(self.count, int):
            raise ValueError(f"{self.method} needs count: the number of cases")
        if self.method == "grid" and self.count is None:
            raise ValueError("grid needs count: the number of values per variable")
        if self.method == "corners" and self.count is not None:
            raise ValueError("corners have no count")
        if self.method in ("grid", "corners") and self.seed is not None:
            raise ValueError(f"{self.method} has no seed")
        return self

    def make(self) -> Sampling:
        """The sampling."""
        if self.method == "corners":
            return Corners()
        if self.method == "grid":
            return Grid(self.count)  # type: ignore[arg-type]
        kind = Sobol if self.method == "sobol" else Random
        return kind(self.count, self.seed or 0)  # type: ignore[arg-type]


class ObstacleEntry(Entry):
    """A thing that stands around the robot: one of box, sphere and mesh."""

    name: Name = Field(description="its name, unique")
    box: Vector3 | None = Field(None, description="full lengths along x, y, z [m]")
    sphere: Positive | None = Field(None, description="radius [m]")
    mesh: Name | None = Field(None, description="mesh file")
    scale: Positive = Field(1.0, description="metres per unit of the mesh")
    xyz: Vector3 = Field((0.0, 0.0, 0.0), description="place of its centre or its axes [m]")
    rpy: Vector3 = Field((0.0, 0.0, 0.0), description="roll, pitch, yaw about fixed axes [rad]")

    @model_validator(mode="after")
    def _one_shape(self) -> ObstacleEntry:
        if sum(shape is not None for shape in (self.box, self.sphere, self.mesh)) != 1:
            raise ValueError("needs one of 'box', 'sphere' and 'mesh'")
        return self

    def make(self, folder: Path) -> Obstacle:
        """The obstacle."""
        place = pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.xyz))
        if self.box is not None:
            return Obstacle.box(self.name, self.box, place)
        if self.sphere is not None:
            return Obstacle.sphere(self.name, self.sphere, self.xyz)
        return Obstacle.mesh(self.name, folder / str(self.mesh), place, self.scale)


_Category = Annotated[
    CategoryEntry, BeforeValidator(_number_only, json_schema_input_type=int | CategoryEntry)
]
_Payload = Annotated[
    PayloadEntry, BeforeValidator(_mass_only, json_schema_input_type=Number | PayloadEntry)
]


class StudyFile(Entry):
    """A study: a robot, what varies, which cases."""

    format: Literal["pinloop-study-1"] = Field(description="version of this format")
    robot: Name = Field(description="file of the robot")
    loops: tuple[Name, ...] = Field((), description="files with its loops, if it does not say them")
    tolerance: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="turn [rad] and shift [lengths of the robot] of joint frames that count as "
        "rounding; 0: none; by default 1e-4, or what the digits of the file allow",
    )
    brakes: Name | None = Field(
        None, description="brakes file; that beside the robot by default, else guessed"
    )
    category: _Category = Field(CategoryEntry(number=0), description="category of the stops")
    payload: _Payload | None = Field(None, description="what the robot carries; a number: kg")
    gravity: Vector3 | None = Field(None, description="in the robot's base [m/s^2]")
    trigger: TriggerEntry = Field(TriggerEntry(), description="other times of the signal chain")
    until: Positive = Field(10.0, description="limit of the time of each stop [s]")
    space: SpaceEntry = Field(SpaceEntry(), description="what varies")
    sampling: SamplingEntry = Field(
        SamplingEntry(method="sobol", count=256), description="which cases; 256 of Sobol by default"
    )
    obstacles: tuple[ObstacleEntry, ...] = Field((), description="what stands around the robot")
    results: Name | None = Field(
        None, description="CSV file of the results; by default named as this file, beside it"
    )
    jobs: int = Field(-1, description="number of processes; -1: all cores")
    worst: tuple[Name, ...] | None = Field(
        None, description="criteria of `pinloop worst`; all that matter by default", min_length=1
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the study file."""
    return schema_of(StudyFile)


TABLES: Mapping[str, type[Entry]] = {
    "the file": StudyFile,
    "category": CategoryEntry,
    "payload": PayloadEntry,
    "trigger": TriggerEntry,
    "space": SpaceEntry,
    "sampling": SamplingEntry,
    "obstacles": ObstacleEntry,
}
"""The tables of the file, by what the documentation calls them."""


@dataclass(frozen=True, eq=False)
class PlannedStudy:
    """What a study file asks for.

    Args:
        robot: the robot.
        arguments: all else that `study` takes.
        worst: criteria of worst cases; None: all that matter.
        guessed: whether the brakes are guessed from the robot's file.
    """

    robot: Mechanism
    arguments: Mapping[str, Any]
    worst: tuple[str, ...] | None
    guessed: bool


def read_study(path: str | Path, results: Path | None = None) -> PlannedStudy:
    """Read a study file, and the files that it names.

    Args:
        path: the study file.
        results: CSV file of the results, wherever that is; as the study file says by default.

    Raises:
        LoadError: names file, line and key.
    """
    source, folder = str(path), Path(path).parent
    data = read_yaml(read_bytes(path, "study file"), source)
    file = validated(StudyFile, data, source)
    robot_file = folder / file.robot
    loops = [folder / one for one in file.loops]
    named = [(("loops", index), path) for index, path in enumerate(loops)]
    check_files(data, source, [(("robot",), robot_file), *named])
    robot = load(robot_file, loops=loops or None, tolerance=file.tolerance)
    if file.brakes is None:
        brakes, beside = usual_brakes(robot, robot_file)
        guessed = not beside
    else:
        brakes, guessed = Brakes.from_yaml(folder / file.brakes), False
    trigger = Trigger(**file.trigger.model_dump())
    with _told(source, data, "brakes"):
        brakes.for_robot(robot)
    with _told(source, data, "space"):
        space = _space(file.space, folder)
        variables = space.variables(robot, brakes, trigger.chain(brakes.chain))
    with _told(source, data, "sampling"):
        sampling = file.sampling.make()
        sampling.size(tuple(one.name for one in variables if one.varies))
    obstacles: list[Obstacle] = []
    for k, one in enumerate(file.obstacles):
        with _told(source, data, "obstacles", k):
            obstacles = checked_obstacles([*obstacles, one.make(folder)])
    arguments: dict[str, Any] = {
        "brakes": brakes,
        "space": space,
        "sampling": sampling,
        "category": file.category.make(),
        "payload": None if file.payload is None else Payload(**file.payload.model_dump()),
        "gravity": file.gravity,
        "trigger": trigger,
        "until": file.until,
        "results": _results(file, Path(path), source) if results is None else results,
        "jobs": file.jobs,
        "obstacles": obstacles or None,
    }
    return PlannedStudy(robot, arguments, file.worst, guessed)


def _results(file: StudyFile, path: Path, source: str) -> Path:
    """Where the rows go: beside the study file or below, whoever wrote it."""
    results = path.parent / (file.results or path.with_suffix(".csv").name)
    if not Path(os.path.realpath(results)).is_relative_to(os.path.realpath(path.parent)):
        raise LoadError(
            f"results is '{file.results}', outside the folder of the study; give --results "
            "(results= in Python) to write there",
            source=source,
        )
    return results


@contextmanager
def _told(source: str, data: object, *place: str | int) -> Iterator[None]:
    """Tell what is wrong with file and line; of ranges with that of the joint that is named."""
    try:
        yield
    except (BadValue, UnknownName) as error:
        table: Any = data.get("space") if isinstance(data, Mapping) else None
        if place == ("space",) and isinstance(table, Mapping):
            place = _place(table, str(error))
        raise LoadError(str(error), source=source, line=line_of(data, place)) from None


def _place(space: Mapping[str, Any], said: str) -> tuple[str, ...]:
    """Where in the space something is that a sentence names."""
    for key in ("pose", "speed", "delay", "band"):
        ranges = space.get(key)
        for joint in ranges if isinstance(ranges, Mapping) else ():
            if f"'{joint}'" in said and (key in said or said.startswith("no ")):
                return "space", key, joint
    named = [key for key in ("instant", "motion", "payload", "speed", "band") if key in said]
    return ("space", *(key for key in named[:1] if key in space))


def _space(entry: SpaceEntry, folder: Path) -> Space:
    given: dict[str, Any] = {"band": entry.band, "delay": entry.delay, "payload": entry.payload}
    if entry.pose:
        given["pose"] = entry.pose
    if entry.speed is not None:
        given["speed"] = entry.speed
    if entry.motion is not None:
        given["motion"] = JointTrajectory.from_csv(folder / entry.motion)
    return Space(**given, instant=entry.instant)
