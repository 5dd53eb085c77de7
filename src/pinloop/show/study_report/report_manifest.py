"""What a report of a study was made from, as JSON: everything that it takes to repeat the study.

SI units, in the names where they do not depend on the joint.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ...boundary.json import json_schema_of, json_text, json_values
from ...errors import BadValue
from ...safety.space.solids import Obstacle
from ...safety.stopping.assumptions import PLANNING_AID, assumptions_with
from ...safety.stopping.export import (
    brakes_record,
    category_record,
    chain_record,
    payload_record,
    robot_record,
    versions,
)
from ...safety.stopping.prepared_robot import tool_of
from ...safety.stopping.result_document import (
    BrakesRecord,
    CategoryRecord,
    ChainRecord,
    Digest,
    Numbers,
    PayloadRecord,
    RobotRecord,
)
from ...safety.studies.journal import manifest_of
from ...safety.studies.study import Study
from ...safety.studies.summary import SAMPLED
from .maps import surface

FORMAT: Literal["pinloop-study-manifest-1"] = "pinloop-study-manifest-1"
"""Version tag of the document."""


class VariableRecord(TypedDict):
    """Something that varies between the cases, or is kept fixed: then both ends are equal."""

    name: str
    column: Annotated[str, "column of the results"]
    low: float
    high: float
    unit: str


class SamplingRecord(TypedDict):
    """Which cases there are."""

    method: str
    arguments: Annotated[dict[str, Any], "counts and the seed, as in Python"]


class MotionRecord(TypedDict):
    """The recorded motion whose instants are looked at."""

    joints: list[str]
    samples: int
    start_s: float
    end_s: float
    sha256: Annotated[Digest, "of joints, times and values"]


class ObstacleRecord(TypedDict):
    """What stands around the robot."""

    name: str
    low_m: Annotated[Numbers, "corner of the box around it, in the world"]
    high_m: Numbers
    sha256: Annotated[Digest, "of its points and triangles in the world"]


class ResultsRecord(TypedDict):
    """The rows."""

    file: str
    sha256: Annotated[Digest, "of the file, when this was written"]
    cases: Annotated[int, "number of rows"]
    size: Annotated[int, "number of cases of the whole study"]


class Manifest(TypedDict):
    """A study of stops: what went in. Sampled; a planning aid, no certificate."""

    format: Literal["pinloop-study-manifest-1"]
    disclaimer: str
    versions: dict[str, str]
    robot: RobotRecord
    tool: Annotated[str, "frame that is taken for the tool"]
    brakes: Annotated[BrakesRecord, "in the middle of their bands"]
    variables: list[VariableRecord]
    sampling: SamplingRecord
    category: CategoryRecord
    chain: ChainRecord
    payload: Annotated[
        PayloadRecord | None,
        "null: none, or that of the variables as a point at the tool",
    ]
    gravity_m_per_s2: Annotated[Numbers | None, "null: that of the robot's file"]
    until_s: float
    method: Annotated[str, "integrator with its tolerances"]
    standstill: Annotated[str, "what counts as standing still"]
    motion: NotRequired[MotionRecord]
    obstacles: list[ObstacleRecord]
    results: ResultsRecord
    resume: Annotated[
        dict[str, Any],
        "the manifest beside the results, by which a study knows them again",
    ]


def manifest_text(document: Manifest) -> str:
    """The text of the file."""
    return json_text(document, ascii_only=False) + "\n"


def manifest_document(study: Study) -> Manifest:
    """Everything that a study was made from."""
    setup = study.setup
    chain, load = setup.trigger.chain(setup.brakes.chain), setup.payload
    document: Manifest = {
        "format": FORMAT,
        "disclaimer": f"{SAMPLED} {PLANNING_AID}",
        "versions": versions(),
        "robot": robot_record(setup.robot),
        "tool": tool_of(setup.robot),
        "brakes": brakes_record(setup.brakes, assumptions_with(setup.brakes, setup.robot, chain)),
        "variables": [
            {
                "name": variable.name,
                "column": variable.column,
                "low": variable.low,
                "high": variable.high,
                "unit": variable.unit,
            }
            for variable in setup.variables
        ],
        "sampling": {
            "method": type(study.sampling).__name__.lower(),
            "arguments": json_values(dict(vars(study.sampling))),
        },
        "category": category_record(setup.category),
        "chain": chain_record(chain),
        "payload": None
        if load is None
        else payload_record(load, load.frame or tool_of(setup.robot)),
        "gravity_m_per_s2": None if setup.gravity is None else list(setup.gravity),
        "until_s": setup.until,
        "method": repr(setup.method),
        "standstill": repr(setup.standstill),
        "obstacles": [_obstacle(obstacle) for obstacle in setup.obstacles],
        "results": _results(study),
        "resume": json_values(manifest_of(setup, study.sampling)),
    }
    motion = setup.space.motion
    if motion is not None:
        document["motion"] = {
            "joints": list(motion.joints),
            "samples": len(motion.t),
            "start_s": float(motion.start),
            "end_s": float(motion.end),
            "sha256": document["resume"]["motion_sha256"],
        }
    return document


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the document."""
    return json_schema_of(Manifest)


def _obstacle(obstacle: Obstacle) -> ObstacleRecord:
    points, faces = surface(obstacle)
    digest = hashlib.sha256(repr((points.tolist(), faces.tolist())).encode()).hexdigest()
    return {
        "name": obstacle.name,
        "low_m": points.min(axis=0).tolist(),
        "high_m": points.max(axis=0).tolist(),
        "sha256": digest,
    }


def _results(study: Study) -> ResultsRecord:
    try:
        with Path(study.path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadValue(
            f"the results file '{study.path}' cannot be read: {error.strerror}"
        ) from None
    return {
        "file": str(study.path),
        "sha256": digest,
        "cases": study.done,
        "size": study.size,
    }
