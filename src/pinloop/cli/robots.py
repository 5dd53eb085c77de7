"""The commands `check`, `assemble`, `regularize`, `convert` and `view`: a robot that is at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..assembly.assemble import assemble as close_loops
from ..boundary.files import json_text
from ..boundary.values import forward
from ..errors import BadValue, LoopNotClosed
from ..io.loading import RobotFile
from ..io.saving import SUFFIXES, written_files
from ..regularization.diagnosis import diagnose
from ..regularization.regularize import regularize as reduce_rows
from ..show.terminal import complain, write
from . import Exit, sheets
from .options import (
    ASSEMBLED,
    REPEATED,
    ROBOTS,
    AsJson,
    Commands,
    Force,
    HeldJoints,
    Html,
    IgnoreLimits,
    OpenBrowser,
    check_targets,
    count,
    file_option,
    flag,
    give_result,
    held_joints,
    kinematics_of,
    show_until_interrupted,
    text_option,
)
from .words import IGNORE, joint_values

app = Commands(ROBOTS)

Seed = Annotated[int, count("Seed of the random restarts.")]


@app.add(
    "check urdf/palletizer.urdf",
    "check urdf/delta.urdf --json",
    codes="0 the robot can be assembled; 1 it cannot",
)
def check(
    robot: RobotFile,
    kinematics_only: Annotated[
        bool, flag("--kinematics-only", "Do not warn about links without mass.")
    ] = False,
    samples: Annotated[
        int, count("Number of further configurations at which ranks are computed.")
    ] = 6,
    seed: Annotated[int, count("Seed of the random configurations.")] = 0,
    as_json: AsJson = None,
) -> int:
    """Describe a robot: loops, constraint equations, rank, mobility, redundancy, warnings."""
    check_targets(robot.inputs, json=as_json)
    machine = robot.load(kinematics_only=kinematics_only)
    report = diagnose(machine, samples=samples, seed=seed)
    give_result(as_json, report.as_dict, report.report)
    return Exit.DONE if report.assembled else Exit.FAILED


@app.add(
    "assemble urdf/palletizer.urdf --q shoulder=25deg --q elbow=0.3",
    "assemble urdf/fourbar.urdf --near joint_3=-90deg --json",
    codes=ASSEMBLED,
)
def assemble(
    robot: RobotFile,
    q: HeldJoints = None,
    near: Annotated[
        list[str] | None,
        held_joints(
            "Joint and the value it should have: kept if the loops close with it, else approached "
            f"as closely as they allow. {REPEATED}",
            "--near",
        ),
    ] = None,
    ignore_limits: IgnoreLimits = False,
    seed: Seed = 0,
    as_json: AsJson = None,
) -> int:
    """Find a configuration that closes all loops; show each joint, what moved, and the branch.

    Joints given with --q keep their values exactly; other actuated joints stay put if they can.
    If the robot cannot be assembled, the nearest configuration is shown, with what blocks it.
    """
    check_targets(robot.inputs, json=as_json)
    machine = kinematics_of(robot)
    way_out = None if ignore_limits else IGNORE
    held = joint_values(machine, q or (), "--q", way_out)
    near_values = joint_values(machine, near or (), "--near", way_out)
    for name in set(held) & set(near_values):
        raise BadValue(f"joint '{name}' is given with --q and --near; leave one out")
    start = machine.configuration({**near_values, **held})
    error: LoopNotClosed | None = None
    try:
        q_closed = close_loops(machine, near_values, held, limits=not ignore_limits, seed=seed)
    except LoopNotClosed as problem:
        error, q_closed = problem, problem.q
    result = sheets.Assembled(machine, start, q_closed, tuple(held), error)
    give_result(
        as_json, lambda: sheets.assembly_document(result), lambda: sheets.assembly_table(result)
    )
    return Exit.DONE if error is None else _not_closed(error)


def _not_closed(error: LoopNotClosed) -> int:
    complain(str(error), "NOT CLOSED", "bold red")
    return Exit.FAILED


@app.add(
    "regularize urdf/prrr3.urdf",
    "regularize urdf/fourbar.urdf --cut joint_3 -o recut.urdf",
    codes="0 done; 1 the robot cannot be assembled",
)
def regularize(
    robot: RobotFile,
    cut: Annotated[
        list[str] | None, text_option(f"Joint to cut. {REPEATED}", "JOINT", "--cut")
    ] = None,
    recut: Annotated[
        bool, flag("--recut", "Try every joint of every loop as the cut joint.")
    ] = False,
    sampled: Annotated[
        bool,
        flag(
            "--sampled",
            "Keep only as many equations as their rank on this branch: checked, not proven.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        file_option(
            "Write the robot with these cuts, as a URDF and a loops file.",
            "--output",
            "-o",
            ends=(".urdf",),
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = None,
) -> int:
    """Drop redundant loop constraints: which equations are kept, which are not, and why."""
    check_targets(robot.inputs, json=as_json)
    if output is not None:
        output = output if output.suffix == ".urdf" else output.with_name(f"{output.name}.urdf")
        for path in written_files(output):
            check_targets(robot.inputs, force=force, output=path)
    machine = kinematics_of(robot)
    try:
        reduced = reduce_rows(
            machine, cut=cut or None, recut=recut, compare_cuts=True, sampled=sampled
        )
    except LoopNotClosed as problem:
        if as_json == "-":
            write(json_text({"error": str(problem)}, indent=None))
        return _not_closed(problem)
    written = [] if output is None else [reduced.save(output)]
    give_result(
        as_json,
        lambda: sheets.reduction_document(reduced),
        lambda: sheets.reduction_table(reduced),
        written,
    )
    return Exit.DONE


@app.add("convert urdf/palletizer.urdf palletizer.xml", "convert palletizer arm.urdf --force")
def convert(
    robot: RobotFile,
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=f"File to write, by its end: {', '.join(SUFFIXES)}."),
    ],
    force: Force = False,
) -> None:
    """Write a robot in another format; say what that format cannot say of it.

    A URDF has a loops file beside it, for what URDF has no words for.
    """
    targets = written_files(output)
    for path in targets:
        check_targets(robot.inputs, force=force, OUT=path)
    kinematics_of(robot).save(output)
    for path in targets:
        write(f"written: {path}")


@app.add("view urdf/palletizer.urdf --q shoulder=0.4 --html arm.html", codes=ASSEMBLED)
def view(
    robot: RobotFile,
    html: Html = None,
    q: HeldJoints = None,
    ignore_limits: IgnoreLimits = False,
    open_browser: OpenBrowser = False,
) -> int:
    """Show a robot in the browser, with its loops closed; Ctrl-C ends the viewer.

    If the loops cannot be closed, the nearest configuration is shown.
    """
    machine = kinematics_of(robot)
    held = joint_values(machine, q or (), "--q", None if ignore_limits else IGNORE)
    code = int(Exit.DONE)
    try:
        configuration = close_loops(machine, fixed=held, limits=not ignore_limits)
    except LoopNotClosed as error:
        configuration, code = error.q, _not_closed(error)

    def show(**options: Any) -> Any:
        return forward("show.scene", "view", machine, configuration, **options)

    if html is not None:
        write(str(show(html=html, open_browser=open_browser)))
    else:
        show_until_interrupted(show, open_browser=open_browser)
    return code
