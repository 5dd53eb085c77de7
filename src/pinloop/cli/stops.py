"""The commands `pinloop stop`, `swept` and `brakes init`.

What is taken where nothing is given is chosen in `safety.stopping.defaults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..boundary.files import write_text
from ..boundary.values import forward
from ..errors import BadValue, LoadError
from ..io.examples import examples_folder
from ..io.loading import RobotFile
from ..model.mechanism import Mechanism
from ..safety.brakes.brakes import Brakes
from ..safety.brakes.file import brakes_text
from ..safety.brakes.laws import StopLaw, law_by_name
from ..safety.space.swept import SweptVolume
from ..safety.stopping import JointTrajectory, StopResult, Trigger
from ..safety.stopping import stop as compute_stop
from ..safety.stopping.categories import Category, as_category
from ..safety.stopping.defaults import default_brakes, default_pose, default_velocity
from ..safety.stopping.export import as_document, write_csv
from ..safety.stopping.result_document import PLANNING_AID
from ..safety.stopping.safety_functions import SafetyFunction, function_by_name
from ..safety.stopping.stop_table import stop_table
from ..show.terminal import write
from ..tables.number_format import listed, milliseconds, number
from ..tables.report import KeyValues, Notes, Report
from ..units import in_units
from . import Exit
from .options import (
    REPEATED,
    STOPS,
    YAMLS,
    AsJson,
    Commands,
    Force,
    Group,
    check_targets,
    file_option,
    flag,
    give_result,
    held_joints,
    offer_joints,
    text_option,
    warn,
)
from .words import gravity_vector, joint_values, length, speeds, time, weight, with_faults

app = Commands(STOPS)

Fact = tuple[str, str]
Band = Literal["low", "nominal", "high"]
_PLACES: dict[Band, float] = {"low": -1.0, "nominal": 0.0, "high": 1.0}
"""Where in their bands the torques of brakes are."""

Pose = Annotated[
    list[str] | None,
    held_joints(
        "Joint and its position at the signal, in rad or m, or with a unit, deg or mm. "
        f"{REPEATED} Default: zero, inside the limits, loops closed.",
        "--q",
    ),
]
Speed = Annotated[
    list[str] | None,
    text_option(
        "Speed of all motors in percent of their limits, or a joint and its speed, in rad/s or "
        f"m/s, or with a unit, deg/s, mm/s or %. {REPEATED} Default: 100%.",
        "PART%|NAME=VALUE",
        autocompletion=offer_joints,
    ),
]
Load = Annotated[str | None, text_option("Payload at the tool: 5kg, 500g.", "MASS", "--payload")]
Number = Annotated[
    str,
    typer.Option(
        "--category",
        metavar="N|NAME",
        help="Stop category: 0, 1 or 2, or STO, SS1-r, SS1-t, SS2 (IEC 61800-5-2).",
    ),
]
By = Annotated[
    str | None,
    text_option(
        "Categories 1 and 2: how drives slow down: constant-deceleration, constant-time, "
        "jerk-limited, first-order, drive-torque; with numbers for all joints, e.g. "
        "constant-time:ramp_time=0.3. Default: as the brakes file says.",
        "LAW",
        "--law",
    ),
]
Limit = Annotated[
    str | None,
    text_option(
        "Category 1: brakes and power off this long after the command.", "T", "--time-limit"
    ),
]
OnPath = Annotated[bool, flag("--on-path", "Categories 1 and 2: slow down along the path.")]
BrakesFile = Annotated[
    Path | None,
    file_option(
        "Brakes file. Default: ROBOT.brakes.yaml beside the robot, else guessed.",
        "--brakes",
        ends=YAMLS,
    ),
]
Motion = Annotated[
    Path | None,
    file_option(
        "Recorded motion instead of --q and --speed: a CSV file with times and joints.",
        "--trajectory",
        metavar="FILE.csv",
        ends=(".csv",),
    ),
]
At = Annotated[
    str | None, text_option("Time of the signal in the recorded motion: 0.8, 800ms.", "T")
]
Gravity = Annotated[
    str | None, text_option("Gravity in the frame of the robot's base, m/s^2: 0,0,-9.81.", "X,Y,Z")
]
Fault = Annotated[
    list[str] | None,
    text_option(
        "Joint and the fault of its brake: missing, late:0.1 (s), weak:0.5 (fraction of its "
        f"torque). {REPEATED}",
        "NAME=FAULT",
        autocompletion=offer_joints,
    ),
]
InBand = Annotated[
    Band | None,
    typer.Option(help="Where all brake torques lie in their tolerance bands.", show_default=False),
]
EndStops = Annotated[
    bool, flag("--end-stops", "Let joints hit their position limits instead of passing them.")
]
Until = Annotated[str, typer.Option(metavar="T", help="Longest time to simulate after the signal.")]
Html = Annotated[
    Path | None, file_option("Write a report with plots and a replay.", ends=(".html",))
]
Csv = Annotated[
    Path | None, file_option("Write positions, speeds and torques over time.", ends=(".csv",))
]


@app.add(
    "stop urdf/six_axis_arm.urdf --payload 5kg --csv stop.csv",
    codes="0 the robot is at rest and held; 1 it is not",
)
def stop(
    robot: RobotFile,
    q: Pose = None,
    speed: Speed = None,
    payload: Load = None,
    category: Number = "0",
    on_path: OnPath = False,
    law: By = None,
    time_limit: Limit = None,
    brakes: BrakesFile = None,
    trajectory: Motion = None,
    at: At = None,
    gravity: Gravity = None,
    fault: Fault = None,
    band: InBand = None,
    until: Until = "10",
    end_stops: EndStops = False,
    html: Html = None,
    csv: Csv = None,
    as_json: AsJson = None,
) -> int:
    """Simulate an emergency stop: time and angle per joint, tool path, loads, holding.

    A planning aid, not a safety certificate.
    """
    check_targets([*robot.inputs, brakes, trajectory], html=html, json=as_json, csv=csv)
    how = stop_category(category, on_path=on_path, law=law, time_limit=time_limit)
    machine = robot.load(gravity=None if gravity is None else gravity_vector(gravity))
    load = None if payload is None else weight(payload)
    chosen, facts = brakes_for(machine, robot.file, brakes, load or 0.0)
    if band is not None:
        chosen = chosen.at_band(_PLACES[band])
    chosen = with_faults(chosen, fault or ())
    state, more = state_at_signal(machine, q or (), speed or (), trajectory, at)
    result = compute_stop(
        machine,
        **state,
        brakes=chosen,
        category=how,
        payload=load,
        until=time(until, "--until"),
        limits="end stop" if end_stops else "warn",
    )
    facts = [*facts, *more]
    named = {name or "brakes": text for name, text in facts}
    written = [] if csv is None else [write_csv(result, csv)]
    if html is not None:
        written.append(forward("show.stop_report", "write_report", result, html, facts=facts))
    give_result(
        as_json, lambda: as_document(result, named), lambda: stop_table(result, facts), written
    )
    return Exit.DONE if result.holds else Exit.FAILED


def stop_category(
    word: str, *, on_path: bool = False, law: str | None = None, time_limit: str | None = None
) -> Category:
    """The category of a stop, from options of the command line."""
    limit = None if time_limit is None else time(time_limit, "--time-limit")
    function = function_by_name(word)
    if word not in ("0", "1", "2") and function is None:
        raise BadValue(
            f"'--category {word}' is not a category of a stop: 0, 1 or 2, or "
            f"{', '.join(x for x in SafetyFunction if x.category is not None)}"
        )
    if function is SafetyFunction.SS1_T and limit is None:
        raise BadValue(f"'--category {word}' cuts the power after a fixed time; add --time-limit")
    if word == "0" or function is SafetyFunction.STO:
        given = [name for name, value in (("--on-path", on_path), ("--law", law)) if value]
        if given:
            raise BadValue(f"'{given[0]}' needs the drives; add --category 1 or --category 2")
    how = None if law is None else law_from(law)
    number = word if function else int(word)
    return as_category(number, on_path=on_path, law=how, time_limit=limit)


def law_from(word: str) -> StopLaw:
    """A law with numbers for all joints, e.g. ``constant-time:ramp_time=0.3``."""
    name, _, numbers = word.partition(":")
    law, given = law_by_name(name), {}
    for part in filter(None, numbers.split(",")):
        key, _, value = part.partition("=")
        names = [x.name for x in fields(law)]
        if key not in names or in_units(value, {"": 1.0}) is None:
            raise BadValue(
                f"'--law {word}': '{part}' is not a number of the law {name} in SI units; write "
                f"for example {name}:{names[0]}=0.5; it has {', '.join(names)}"
            )
        given[key] = float(value)
    return replace(law, **given)


def brakes_for(
    machine: Mechanism, robot: Path, file: Path | None, payload: float = 0.0
) -> tuple[Brakes, list[Fact]]:
    """The brakes, and a line on where they come from; guessed ones hold a payload [kg]."""
    init = f"pinloop brakes init {robot}"
    if file is not None:
        if not file.exists():
            raise LoadError(
                f"no such file; a first one to be edited is written by: {init} -o {file}",
                source=str(file),
            )
        return Brakes.from_yaml(file).for_robot(machine), []
    chosen, beside = default_brakes(machine, robot, payload)
    if beside:
        return chosen.for_robot(machine), [("", "found beside the robot")]
    return chosen, [
        ("", f"no brakes file was given or found beside the robot; write one with: {init}")
    ]


def state_at_signal(
    machine: Mechanism,
    pose: Sequence[str],
    speed: Sequence[str],
    trajectory: Path | None,
    at: str | None,
) -> tuple[dict[str, Any], list[Fact]]:
    """State or motion at the signal, as arguments of `stop`, and lines on how it was chosen."""
    if trajectory is None:
        if at is not None:
            raise BadValue("'--at' is a time in a recording; add --trajectory FILE.csv")
        held = joint_values(machine, pose, "--q")
        q, posed = default_pose(machine, held)
        v, moving = default_velocity(machine, q, *speeds(machine, speed))
        return {"q": q, "v": v}, [("pose", posed), ("speed", moving)]
    if pose or speed:
        raise BadValue(
            "'--trajectory' says where joints are and how they move: leave out --q and --speed"
        )
    motion = JointTrajectory.from_csv(trajectory)
    if at is None:
        raise BadValue(
            f"say when the signal comes, with --at: {trajectory} runs from {motion.start:g} s to "
            f"{motion.end:g} s"
        )
    instant = time(at, "--at")
    facts = [("motion", f"{trajectory} at {instant:g} s")]
    for sentence in motion.speeds_above_limits(machine):
        warn(sentence)
    return {"trigger": Trigger(motion, instant)}, facts


# -- room that a stop takes ---------------------------------------------------------------------


@app.add(
    "swept six_axis_arm --q joint_2=30deg --speed 80% -o swept.stl",
    codes="0 the robot is at rest and held; 1 it is not",
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
    how = stop_category(category)
    machine, load = robot.load(), None if payload is None else weight(payload)
    chosen, _ = brakes_for(machine, robot.file, brakes, load or 0.0)
    state, _ = state_at_signal(machine, q or (), speed or (), None, None)
    result = compute_stop(machine, **state, brakes=chosen, category=how, payload=load)
    volume = result.swept_volume(tolerance=length(accuracy, "--accuracy"))
    written = [] if output is None else [volume.export(output)]
    give_result(
        as_json, lambda: _document(result, volume), lambda: _report(result, volume), written
    )
    return Exit.DONE if result.holds else Exit.FAILED


def _document(result: StopResult, volume: SweptVolume) -> dict[str, Any]:
    return {
        "headline": _report(result, volume).title.text,
        "robot": result.robot.name,
        "outcome": result.outcome,
        "stopping_time_s": result.stopping_time,
        "bounds_m": volume.bounds.tolist(),
        "volume_m3": volume.volume,
        "excess_m": volume.excess,
        "triangles": volume.triangles,
        "bare": list(volume.bare),
        "disclaimer": PLANNING_AID,
    }


def _report(result: StopResult, volume: SweptVolume) -> Report:
    low, high = volume.bounds
    spans = zip("xyz", low, high, strict=True)
    facts = [
        ("stop", f"{result.outcome} after {milliseconds(result.stopping_time)}"),
        *((axis, f"{number(1e3 * a, 0)} to {number(1e3 * b, 0)} mm") for axis, a, b in spans),
        ("volume", f"about {volume.volume:.3g} m^3"),
        ("too large by", f"{1e3 * volume.excess:.1f} mm at most"),
        ("pieces", f"{sum(map(len, volume.parts.values()))}, {volume.triangles} triangles"),
    ]
    bare = [f"without shapes, and left out: {listed(volume.bare)}"] if volume.bare else []
    blocks = KeyValues.of("Swept volume", facts), Notes.of("Notes", bare, "caution")
    title = result.guesses.title(f"{result.robot.name}: what the stop sweeps")
    return Report.of(title, blocks, PLANNING_AID)


# -- brakes -------------------------------------------------------------------------------------

brakes_app = Commands(
    name="brakes",
    cls=Group,
    help="Brakes files: what a stop depends on but a robot file does not say.",
    epilog="Example: pinloop brakes init urdf/delta.urdf -o my.brakes.yaml",
    invoke_without_command=True,
)


@brakes_app.callback()
def _group(context: typer.Context) -> None:
    """Brakes files: what a stop depends on but a robot file does not say."""
    if context.invoked_subcommand is None:
        write(context.get_help(), rendered=True)


@brakes_app.add("brakes init urdf/delta.urdf -o my.brakes.yaml")
def init(
    robot: RobotFile,
    output: Annotated[
        Path | None,
        file_option(
            "File to write; - prints it. Default: ROBOT.brakes.yaml beside the robot, or in the "
            "current folder for an example.",
            "--output",
            "-o",
            ends=YAMLS,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a brakes file to start from, guessed from the robot file.

    Each number in it is marked as a guess or, if the robot file has it, as published; replace
    guesses with values from data sheets and measurements.
    """
    beside = robot.file.with_suffix(".brakes.yaml")
    if robot.file.parent == examples_folder():  # what was installed stays as it is
        beside = Path(beside.name)
    target = beside if output is None else output
    check_targets(robot.inputs, force=force, output=target)
    machine = robot.load()
    guess = Brakes.template(machine)
    text = brakes_text(guess)
    if str(target) == "-":
        write(text.rstrip("\n"))
        return
    write_text(target, text)
    plural = "" if len(guess.joints) == 1 else "s"
    given = "" if target.parent == robot.file.parent and output is None else f" --brakes {target}"
    write(
        f"{target}\nguessed brakes of {len(guess.joints)} joint{plural}: edit the file, then run "
        f"pinloop stop {robot.file}{given}"
    )


app.add_typer(brakes_app, rich_help_panel=STOPS)
