"""The report of a study: one HTML file with distributions, maps, worst cases and their replays.

Its size does not depend on the number of cases: pictures show bins, and only the worst cases are
replayed. Nothing is fetched when it is opened. Beside it stands the manifest, a JSON file with
everything that it takes to repeat the study, in SI units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ...boundary.files import as_target, json_text, json_values, may_replace, write_text
from ...errors import BadValue
from ...safety.space.solids import Obstacle
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
    PLANNING_AID,
    BrakesRecord,
    CategoryRecord,
    ChainRecord,
    Digest,
    Numbers,
    PayloadRecord,
    RobotRecord,
)
from ...safety.studies.cases import manifest_of
from ...safety.studies.headlines import criterion_results
from ...safety.studies.results import results_of
from ...safety.studies.study import Study
from ...safety.studies.summary import SAMPLED, how_worst
from ...safety.studies.worst import WorstCase
from ...tables.report import Section, render, section_blocks
from ..plots.svg import figure, legend
from ..scene.commands import viewer_script
from ..stop_report import provenance_of
from . import distributions, overview
from .maps import maps_of, surface

__all__ = ["write_report"]


def write_report(
    study: Study,
    path: str | Path,
    *,
    worst: Iterable[str] | Mapping[str, WorstCase] | None = None,
    sections: Iterable[Section] = (),
) -> Path:
    """Write the report of a study as one HTML file; see `Study.save_html`.

    What it was made from is in the page and in a file beside it, ``<path>.manifest.json``; its form
    is that of docs/schemas/study-manifest.schema.json. The same study gives the same bytes.
    """
    target = as_target(path)
    beside = target.with_name(f"{target.name}.manifest.json")
    if not may_replace(beside, FORMAT.encode()):
        raise BadValue(f"'{beside}' exists, and pinloop did not write it; name another report")
    manifest = manifest_document(study)
    write_text(target, _page_of(study, manifest, worst, sections))
    write_text(beside, json_text(manifest, ascii_only=False) + "\n")
    return target


def _page_of(
    study: Study,
    manifest: Manifest,
    worst: Iterable[str] | Mapping[str, WorstCase] | None,
    sections: Iterable[Section],
) -> str:
    own, setup, results = section_blocks(study, sections), study.setup, results_of(study)
    measures = distributions.measures_of(results, setup)
    cases = overview.choose_cases(study, results, measures, worst)
    shared: dict[str, int] = {}
    numbers = list(overview.cards(study, results, measures))
    chain = setup.trigger.chain(setup.brakes.chain)
    bands = any(v.kind in ("band", "delay") and v.varies for v in setup.variables)
    middle = "Bands and delays of brakes varied, see above; the numbers are those in the middle "
    return render(
        "show/study_report/templates/study.html",
        robot=setup.robot.name,
        stops="1 stop" if study.done == 1 else f"{study.done} stops",
        category=setup.category.number,
        sentence=f"{SAMPLED} {PLANNING_AID}",
        badge=overview.badge(study, results),
        cards=numbers,
        across=4 if len(numbers) % 3 == 1 or len(numbers) == 8 else 3,
        links={case.number: case.key for case in cases if case.number is not None},
        warnings=overview.warnings(study, results, measures, [case.stop for case in cases]),
        failures=results.failures,
        cases=list(overview.shown_cases(study, cases, shared)),
        shared=shared,
        most_live=overview.MOST_LIVE,
        maps=maps_of(results, measures, setup.obstacles, tool_of(setup.robot)),
        measures=measures,
        whole=list(distributions.whole_charts(measures)),
        angles=distributions.angle_charts(measures),
        numbers=list(distributions.table_rows(measures, study.searched)),
        searched=study.searched is not None,
        proofs=how_worst(study, criterion_results(study, results)),
        influences=distributions.influence_of(results, measures, setup.variables),
        influence_legend=legend(distributions.KEYS),
        figure=figure,
        own=own,
        ranges=overview.ranges(setup),
        facts=overview.facts(study),
        provenance=provenance_of(setup.brakes.assumptions(setup.robot, chain), setup.brakes),
        more=[f"{middle}of the bands."] if bands else [],
        manifest=manifest,
        viewer=viewer_script(),
    )


# -- the manifest ---------------------------------------------------------------------------------

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
        PayloadRecord | None, "null: none, or that of the variables as a point at the tool"
    ]
    gravity_m_per_s2: Annotated[Numbers | None, "null: that of the robot's file"]
    until_s: float
    method: Annotated[str, "integrator with its tolerances"]
    standstill: Annotated[str, "what counts as standing still"]
    motion: NotRequired[MotionRecord]
    obstacles: list[ObstacleRecord]
    results: ResultsRecord
    resume: Annotated[
        dict[str, Any], "the manifest beside the results, by which a study knows them again"
    ]


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
        "brakes": brakes_record(setup.brakes, setup.brakes.assumptions(setup.robot, chain)),
        "variables": [
            VariableRecord(name=v.name, column=v.column, low=v.low, high=v.high, unit=v.unit)
            for v in setup.variables
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
    return {"file": str(study.path), "sha256": digest, "cases": study.done, "size": study.size}
