"""Commands on what standards ask for: allowed speeds, cell maps, distances, tables of vendors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..boundary.files import write_file
from ..errors import BadValue
from ..io.loading import RobotFile
from ..safety.standards.allowed_speed import allowed_speed as find_allowed_speed
from ..safety.standards.annexb import AnnexB
from ..safety.standards.annexb import annex_b as make_tables
from ..safety.standards.cell_map import Watch
from ..safety.standards.cell_map import cell_map as make_map
from ..safety.standards.editions import GUARD_EDITIONS, MONITORING_EDITIONS, edition_by_name
from ..safety.standards.guard_distance import minimum_distance as find_minimum_distance
from ..safety.standards.separation import separation as find_separation
from ..safety.standards.separation_terms import ask
from ..safety.stopping.result_document import PLANNING_AID
from ..safety.studies.studyfile import PlannedStudy, read_study
from . import Exit
from .options import (
    MANY,
    REPEATED,
    AsJson,
    Commands,
    check_targets,
    file_option,
    give_result,
    text_option,
)
from .stops import BrakesFile, Gravity, Load, brakes_for, stop_category
from .studies import Jobs, ResultsFile, StudyFile, compute_study, jobs_of
from .words import gravity_vector, length, split_word, time, vector, weight

app = Commands(MANY)

_MOST = 10.0
"""More is a mistake [s, m, m/s]."""
_MEASURED = "0 done; 130 interrupted"
Towards = Annotated[
    str | None,
    text_option("Direction from the robot to the person in the world.", "X,Y,Z", "--direction"),
]
Place = Annotated[
    str | None, text_option("Where the person stands in the world, in m.", "X,Y,Z", "--point")
]
HumanSpeed = Annotated[
    float, typer.Option(metavar="V", help="Speed of the person towards the robot in m/s.")
]
Detection = Annotated[
    str, text_option("From the approach of the person to the signal: 50ms.", "T", "--detection")
]
Intrusion = Annotated[
    str | None, text_option("How far a part of the body reaches before it is detected: 850mm.", "L")
]

Edition = Annotated[str, text_option("Edition of the standard, by its year.", "YEAR")]


def _checked(value: float, given: str, unit: str, advice: str) -> float:
    """A time, length or speed of a person, of which the unit may have been forgotten."""
    if not 0.0 <= value <= _MOST:
        raise BadValue(f"{given} is {value:g} {unit}, not 0 to {_MOST:g}; {advice}")
    return value


def _until_signal(word: str) -> float:
    """Seconds from the approach of a person to the signal."""
    seconds = time(word, "--detection")
    return _checked(seconds, f"--detection {word}", "s", "give milliseconds as in 50ms")


def _allowance(word: str | None, option: str) -> float | None:
    """A length that is added [m]."""
    if word is None:
        return None
    return _checked(length(word, option), f"{option} {word}", "m", "give millimetres as in 850mm")


def _human_speed(speed: float) -> float:
    """Speed of a person [m/s]."""
    return _checked(speed, f"--human-speed {speed:g}", "m/s", "give it in m/s, not in mm/s")


# -- speeds ---------------------------------------------------------------------------------------


@app.add(
    "allowed-speed urdf/six_axis_arm.study.yaml --within travel=250mm --within time=300ms",
    "allowed-speed urdf/six_axis_arm.study.yaml --within separation=1.5m --direction 1,0,0",
    codes="0 done; 1 not even the robot at rest stays within the limits",
)
def allowed_speed(
    file: StudyFile,
    within: Annotated[
        list[str] | None,
        text_option(
            "Limit: time, travel, clearance, separation, angle:JOINT, impulse:JOINT or gear:JOINT, "
            f"and its value, with or without a unit. {REPEATED}",
            "NAME=VALUE",
            "--within",
        ),
    ] = None,
    direction: Towards = None,
    point: Place = None,
    human_speed: HumanSpeed = 1.6,
    detection: Detection = "0",
    jobs: Jobs = None,
    as_json: AsJson = None,
) -> int:
    """Find the greatest share of its speeds with which a robot stops within limits in all cases.

    The cases are those of a study file; their speeds are scaled together. Results are sampled, not
    guaranteed.
    """
    check_targets([file], json=as_json)
    words = [split_word(word, "--within", "a limit", "travel=250mm") for word in within or ()]
    limits = dict(words)
    if not limits:
        raise BadValue("there is no limit; write for example --within travel=250mm")
    if len(limits) < len(words):
        raise BadValue("--within gives a limit twice; give each once")
    person = _person(direction, point, human_speed, detection)
    plan = read_study(file)
    result = find_allowed_speed(stop_within=limits, person=person, **_cases(plan, jobs))
    give_result(as_json, result.as_dict, result.__rich__)
    return Exit.DONE if result.share > 0.0 else Exit.FAILED


def _cases(plan: PlannedStudy, jobs: int | None) -> dict[str, Any]:
    """Robot, brakes, cases and settings of a study file, as arguments of what looks at them all."""
    arguments = {name: value for name, value in plan.arguments.items() if name != "results"}
    return arguments | {"robot": plan.robot, "jobs": jobs_of(plan, jobs)}


def _person(
    direction: str | None, point: str | None, human_speed: float, detection: str
) -> dict[str, Any]:
    """Where the person is and how they are watched, as arguments of `separation`."""
    person: dict[str, Any] = {"human_speed": _human_speed(human_speed)}
    if direction is not None:
        person["direction"] = vector(direction, "--direction")
    if point is not None:
        person["point"] = vector(point, "--point")
    return person | {"detection": _until_signal(detection)}


@app.add("cell-map urdf/six_axis_arm.study.yaml --detection 50ms --plot cell.png --csv cell.csv")
def cell_map(
    file: StudyFile,
    human_speed: HumanSpeed = 1.6,
    detection: Detection = "0",
    intrusion: Intrusion = None,
    spacing: Annotated[str, text_option("Distance of the places of the map: 100mm.", "L")] = "0.1",
    plot: Annotated[
        Path | None, file_option("Draw the map.", ends=(".png", ".svg", ".pdf"))
    ] = None,
    csv: Annotated[Path | None, file_option("Write a row per place.", ends=(".csv",))] = None,
    jobs: Jobs = None,
    as_json: AsJson = None,
) -> None:
    """Map where people may be while a robot moves at 25, 50, 75 and 100 % of its speeds.

    The cases are those of a study file. Results are sampled, not guaranteed; a planning aid, not a
    safety certificate.
    """
    check_targets([file], json=as_json, plot=plot, csv=csv)
    reach = _allowance(intrusion, "--intrusion") or 0.0
    watch = Watch(_human_speed(human_speed), _until_signal(detection), reach)
    plan = read_study(file)
    result = make_map(watch=watch, spacing=length(spacing, "--spacing"), **_cases(plan, jobs))
    written = [] if csv is None else [result.to_csv(csv)]
    if plot is not None:
        figure, kind = result.plot(), plot.suffix[1:]
        written.append(write_file(plot, lambda to: figure.savefig(to, format=kind, dpi=150)))
    give_result(as_json, result.as_dict, result.__rich__, written)


# -- distances ------------------------------------------------------------------------------------


@app.add(
    "separation urdf/six_axis_arm.study.yaml --results arm.csv --detection 50ms", codes=_MEASURED
)
def separation(
    file: StudyFile,
    direction: Towards = None,
    point: Place = None,
    human_speed: HumanSpeed = 1.6,
    detection: Detection = "0",
    intrusion: Intrusion = None,
    z_d: Annotated[
        str | None, text_option("Uncertainty of the person's place: 100mm.", "L", "--z-d")
    ] = None,
    z_r: Annotated[
        str | None, text_option("Uncertainty of the robot's place: 10mm.", "L", "--z-r")
    ] = None,
    edition: Edition = "2016",
    results: ResultsFile = None,
    jobs: Jobs = None,
    as_json: AsJson = None,
) -> int:
    """Compute the protective separation distance of a study (ISO/TS 15066, ISO 10218-2:2025).

    Every term is shown with its formula and source. Missing cases are computed first. A planning
    aid, not a safety certificate.
    """
    check_targets([file], json=as_json)
    person = _person(direction, point, human_speed, detection)
    for name, word in (("intrusion", intrusion), ("z_d", z_d), ("z_r", z_r)):
        person[name] = _allowance(word, f"--{name.replace('_', '-')}")
    # What is wrong is told before anything is computed.
    ask(**person)
    edition_by_name(edition, MONITORING_EDITIONS)
    plan = read_study(file, results)
    study, _, code = compute_study(plan, jobs)
    if code == Exit.INTERRUPTED:
        return code
    distance = find_separation(
        study,
        **person,
        edition=edition,
        search=plan.search if plan.searches else False,
        jobs=jobs_of(plan, jobs),
    )
    give_result(as_json, distance.as_dict, distance.table)
    return Exit.DONE


@app.add(
    "minimum-distance urdf/six_axis_arm.study.yaml --results arm.csv --detection 50ms",
    codes=_MEASURED,
)
def minimum_distance(
    file: StudyFile,
    detection: Detection = "0",
    intrusion: Intrusion = None,
    supplement: Annotated[
        str | None, text_option("Z of the edition of 2024: 50mm.", "L", "--supplement")
    ] = None,
    edition: Edition = "2010",
    results: ResultsFile = None,
    jobs: Jobs = None,
    as_json: AsJson = None,
) -> int:
    """Compute the minimum distance of a safeguard (ISO 13855).

    S = K T + C in the edition of 2010, S = K T + D_DS + Z in that of 2024, with --intrusion for C
    and D_DS. T is the longest stopping time of the cases of a study; missing cases are computed
    first. A planning aid, not a safety certificate.
    """
    check_targets([file], json=as_json)
    reach = _allowance(intrusion, "--intrusion") or 0.0
    added = _allowance(supplement, "--supplement") or 0.0
    until_signal = _until_signal(detection)
    edition_by_name(edition, GUARD_EDITIONS)
    plan = read_study(file, results)
    study, _, code = compute_study(plan, jobs, plan.search if plan.searches else False)
    if code == Exit.INTERRUPTED:
        return code
    distance = find_minimum_distance(
        study,
        detection=until_signal,
        intrusion=reach,
        supplement=added,
        edition=edition,
    )
    give_result(as_json, distance.as_dict, distance.table)
    return Exit.DONE


# -- tables of vendors ----------------------------------------------------------------------------


@app.add(
    "annex-b urdf/six_axis_arm.urdf --payload 10kg --csv arm.annex_b.csv",
    codes="0 every stop ends at rest; 1 some do not",
)
def annex_b(
    robot: RobotFile,
    payload: Load = None,
    brakes: BrakesFile = None,
    gravity: Gravity = None,
    category: Annotated[
        list[str] | None,
        text_option(
            "Stop category: 0, 1 or 2, or STO, SS1-r, SS2 (IEC 61800-5-2). "
            f"{REPEATED} Default: 0 and 1.",
            "N|NAME",
        ),
    ] = None,
    edition: Edition = "2011",
    csv: Annotated[Path | None, file_option("Write a row per stop.", ends=(".csv",))] = None,
    html: Annotated[
        Path | None, file_option("Write all tables as a page.", ends=(".html",))
    ] = None,
    pdf: Annotated[Path | None, file_option("Write all tables as PDF.", ends=(".pdf",))] = None,
    as_json: AsJson = None,
) -> int:
    """Compute stopping times and distances as vendors declare them (ISO 10218-1, annex B).

    For 33, 66 and 100 % of speed, payload and extension, with the poses that have it. A planning
    aid, not a safety certificate.
    """
    check_targets([*robot.inputs, brakes], json=as_json, csv=csv, html=html, pdf=pdf)
    chosen_categories = [stop_category(word) for word in category or ("0", "1")]
    load = 0.0 if payload is None else weight(payload)
    machine = robot.load()
    chosen, _ = brakes_for(machine, robot.file, brakes)
    tables = make_tables(
        machine,
        chosen,
        payload=load,
        categories=chosen_categories,
        gravity=None if gravity is None else gravity_vector(gravity),
        edition=edition,
    )
    written = [] if csv is None else [tables.to_csv(csv)]
    if html is not None:
        tables.to_html(html)
        written.append(html)
    if pdf is not None:
        written.append(tables.to_pdf(pdf))
    give_result(as_json, lambda: _tables_document(tables), tables.report, written)
    stopped = all(stop.outcome == "stopped" for stop in tables.stops)
    return Exit.DONE if stopped else Exit.FAILED


def _tables_document(tables: AnnexB) -> dict[str, Any]:
    return {
        "headline": tables.guesses.title(f"{tables.robot.name}: stops of each axis").text,
        "robot": tables.robot.name,
        "edition": tables.edition.name,
        "payload_kg": tables.payload.mass,
        "stops": tables.rows(),
        "disclaimer": PLANNING_AID,
    }
