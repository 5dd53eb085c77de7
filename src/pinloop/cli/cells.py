"""Commands on the room that a stopping robot takes: `pinloop cell-map` and `pinloop swept`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..boundary.files import write_file
from ..io.loading import RobotFile
from ..safety.space.swept import SweptVolume
from ..safety.standards.cell_map import Watch
from ..safety.standards.cell_map import cell_map as make_map
from ..safety.stopping import StopResult
from ..safety.stopping import stop as compute_stop
from ..safety.stopping.result_document import PLANNING_AID
from ..safety.studies.studyfile import read_study
from ..tables.number_format import listed, milliseconds, number
from ..tables.report import KeyValues, Notes, Report
from . import Exit
from .options import (
    MANY,
    STOPS,
    AsJson,
    Force,
    check_targets,
    command,
    file_option,
    give_result,
    text_option,
)
from .standards import Detection, HumanSpeed, Intrusion, settings_of
from .stops import BrakesFile, Load, Number, Pose, Speed, brakes_for, state_at_signal, stop_category
from .studies import Jobs, StudyFile, jobs_of
from .words import length, time, weight

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

PICTURES = (".png", ".svg", ".pdf")


@command(
    app,
    "cell-map urdf/six_axis_arm.study.yaml --detection 50ms --plot cell.png --csv cell.csv",
    codes="0 done",
    panel=MANY,
)
def cell_map(
    file: StudyFile,
    human_speed: HumanSpeed = 1.6,
    detection: Detection = "0",
    intrusion: Intrusion = None,
    spacing: Annotated[str, text_option("Distance of the places of the map: 100mm.", "L")] = "0.1",
    plot: Annotated[Path | None, file_option("Draw the map.", ends=PICTURES)] = None,
    csv: Annotated[Path | None, file_option("Write a row per place.", ends=(".csv",))] = None,
    jobs: Jobs = None,
    as_json: AsJson = None,
) -> int:
    """Map where people may be while a robot moves at 25, 50, 75 and 100 % of its speeds.

    The cases are those of a study file. Results are sampled, not guaranteed; a planning aid, not a
    safety certificate.
    """
    check_targets([file], json=as_json, plot=plot, csv=csv)
    plan = read_study(file)
    reach = 0.0 if intrusion is None else length(intrusion, "--intrusion")
    result = make_map(
        plan.robot,
        plan.arguments["brakes"],
        plan.arguments["space"],
        plan.arguments["sampling"],
        watch=Watch(human_speed, time(detection, "--detection"), reach),
        spacing=length(spacing, "--spacing"),
        jobs=jobs_of(plan, jobs),
        **settings_of(plan),
    )
    written = [] if csv is None else [result.to_csv(csv)]
    if plot is not None:
        figure, kind = result.plot(), plot.suffix[1:]
        written.append(write_file(plot, lambda to: figure.savefig(to, format=kind, dpi=150)))
    give_result(as_json, result.as_dict, result.__rich__, written)
    return Exit.DONE


@command(
    app,
    "swept six_axis_arm --q joint_2=30deg --speed 80% -o swept.stl",
    codes="0 the robot is at rest and held; 1 it is not",
    panel=STOPS,
)
def swept(
    robot: RobotFile,
    output: Annotated[
        Path | None,
        file_option(
            "File to write; its ending says which kind.",
            "--output",
            "-o",
            ends=(".stl", ".ply", ".obj", ".glb"),
        ),
    ] = None,
    q: Pose = None,
    speed: Speed = None,
    payload: Load = None,
    category: Number = "0",
    brakes: BrakesFile = None,
    accuracy: Annotated[
        str, text_option("How far the volume may stand out: 10mm.", "L", "--accuracy")
    ] = "0.005",
    force: Force = False,
    as_json: AsJson = None,
) -> int:
    """Compute a volume that the robot does not leave from the signal until it is at rest.

    For CAD: overlapping convex pieces. A planning aid, not a safety certificate.
    """
    check_targets([*robot.inputs, brakes], force=force, json=as_json, output=output)
    how = stop_category(category, on_path=False, law=None, time_limit=None)
    machine, load = robot.load(), None if payload is None else weight(payload)
    chosen, _ = brakes_for(machine, robot.file, brakes, load or 0.0)
    state, _ = state_at_signal(machine, q or (), speed or (), None, None)
    stop = compute_stop(machine, **state, brakes=chosen, category=how, payload=load)
    volume = stop.swept_volume(tolerance=length(accuracy, "--accuracy"))
    written = [] if output is None else [volume.export(output)]
    give_result(as_json, lambda: _document(stop, volume), lambda: _report(stop, volume), written)
    return Exit.DONE if stop.holds else Exit.FAILED


def _document(stop: StopResult, volume: SweptVolume) -> dict[str, Any]:
    return {
        "robot": stop.robot.name,
        "outcome": stop.outcome,
        "stopping_time_s": stop.stopping_time,
        "bounds_m": volume.bounds.tolist(),
        "volume_m3": volume.volume,
        "excess_m": volume.excess,
        "triangles": volume.triangles,
        "bare": list(volume.bare),
        "disclaimer": PLANNING_AID,
    }


def _report(stop: StopResult, volume: SweptVolume) -> Report:
    """Extents of the volume."""
    low, high = volume.bounds
    spans = zip("xyz", low, high, strict=True)
    facts = [
        ("stop", f"{stop.outcome} after {milliseconds(stop.stopping_time)}"),
        *((axis, f"{number(1e3 * a, 0)} to {number(1e3 * b, 0)} mm") for axis, a, b in spans),
        ("volume", f"about {volume.volume:.3g} m^3"),
        ("too large by", f"{1e3 * volume.excess:.1f} mm at most"),
        ("pieces", f"{sum(map(len, volume.parts.values()))}, {volume.triangles} triangles"),
    ]
    bare = [f"without shapes, and left out: {listed(volume.bare)}"] if volume.bare else []
    blocks = KeyValues.of("Swept volume", facts), Notes.of("Notes", bare, "caution")
    return Report.of(f"{stop.robot.name}: what the stop sweeps", blocks, PLANNING_AID)
