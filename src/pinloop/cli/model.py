"""The commands `pinloop check`, `assemble` and `regularize`: what a robot is, before it moves.

Turns words into calls and results into text and exit codes: 0 done, 1 the robot cannot be
assembled, 2 invalid input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..assembly.assemble import assemble as close_loops
from ..boundary.json import json_text
from ..errors import BadValue, LoopNotClosed
from ..io.robot_file import RobotFile
from ..regularization.diagnosis import diagnose
from ..regularization.regularize import regularize as reduce_rows
from ..show.terminal import complain, write
from .options import (
    ASSEMBLED,
    REPEATED,
    ROBOT_PANEL,
    AsJson,
    Force,
    HeldJoints,
    IgnoreLimits,
    check_json,
    check_target,
    command,
    file_option,
    give_result,
    held_joints,
    kinematics_of,
    text_option,
)
from .sheets import (
    Assembled,
    assembly_document,
    assembly_table,
    reduction_document,
    reduction_table,
)
from .words import IGNORE, check_limits, joint_values

app = typer.Typer(rich_markup_mode="rich")
"""The commands of this file."""

_NOT_ASSEMBLED = 1


def check(
    robot: RobotFile,
    kinematics_only: Annotated[
        bool, typer.Option("--kinematics-only", help="Do not warn about links without mass.")
    ] = False,
    samples: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Number of further configurations at which ranks are taken."
        ),
    ] = 6,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the random configurations.")
    ] = 0,
    as_json: AsJson = None,
) -> int:
    """Describe a robot: loops, constraint equations, rank, mobility, redundancy, warnings."""
    check_json(as_json, robot.inputs)
    machine = robot.load(kinematics_only=kinematics_only)
    report = diagnose(machine, samples=samples, seed=seed)
    give_result(as_json, report.as_dict, report.report)
    return 0 if report.assembled else _NOT_ASSEMBLED


def assemble(
    robot: RobotFile,
    q: HeldJoints = None,
    near: Annotated[
        list[str] | None,
        held_joints(
            "Joint and the coordinate it should have: kept if the loops close with it, else "
            f"approached as far as they allow. {REPEATED}",
            "--near",
        ),
    ] = None,
    ignore_limits: IgnoreLimits = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random restarts.")] = 0,
    as_json: AsJson = None,
) -> int:
    """Find a configuration that closes all loops; show each joint, what moved, and the branch.

    What is given with --q is kept exactly; other actuated joints stay where they are if they can.
    If the robot cannot be assembled, the nearest configuration is shown, with what blocks it.
    """
    check_json(as_json, robot.inputs)
    machine = kinematics_of(robot)
    held = joint_values(machine, q or (), "--q")
    near_values = joint_values(machine, near or (), "--near")
    for name in set(held) & set(near_values):
        raise BadValue(f"joint '{name}' is given with --q and --near; leave one out")
    if not ignore_limits:
        check_limits(machine, held, "--q", IGNORE)
    start = machine.configuration({**near_values, **held})
    error: LoopNotClosed | None = None
    try:
        q_closed = close_loops(machine, near_values, held, limits=not ignore_limits, seed=seed)
    except LoopNotClosed as problem:
        error, q_closed = problem, problem.q
    result = Assembled(machine, start, q_closed, tuple(held), error)
    give_result(as_json, lambda: assembly_document(result), lambda: assembly_table(result))
    if error is not None:
        complain(str(error), "NOT CLOSED", "bold red")
    return 0 if error is None else _NOT_ASSEMBLED


def regularize(
    robot: RobotFile,
    cut: Annotated[
        list[str] | None,
        text_option(f"Joint to cut. {REPEATED}", "JOINT", "--cut"),
    ] = None,
    recut: Annotated[
        bool, typer.Option("--recut", help="Try every joint of every loop as the cut joint.")
    ] = False,
    sampled: Annotated[
        bool,
        typer.Option(
            "--sampled",
            help="Keep only as many equations as their rank on this branch: checked, not proven.",
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
    check_json(as_json, robot.inputs)
    written = None if output is None else _target(output, robot.inputs, force=force)
    machine = kinematics_of(robot)
    try:
        reduced = reduce_rows(machine, cut=cut or None, recut=recut, sampled=sampled)
    except LoopNotClosed as problem:
        complain(str(problem), "NOT CLOSED", "bold red")
        if as_json == "-":
            write(json_text({"error": str(problem)}, indent=None))
        return _NOT_ASSEMBLED
    if written is not None:
        written = reduced.save(written)
    give_result(as_json, lambda: reduction_document(reduced), lambda: reduction_table(reduced))
    if written is not None and as_json != "-":
        write(f"written: {written}")
    return 0


def _target(output: Path, inputs: tuple[Path, ...], *, force: bool) -> Path:
    """The URDF to write; refused, as the loops file beside it, before anything is computed."""
    urdf = output if output.suffix == ".urdf" else output.with_name(f"{output.name}.urdf")
    for path in (urdf, urdf.with_suffix(".loops.yaml")):
        check_target(path, f"--output {output}", inputs, force=force)
    return urdf


command(
    app,
    check,
    "check urdf/palletizer.urdf",
    "check urdf/delta.urdf --json",
    codes="0 the robot can be assembled; 1 it cannot",
    panel=ROBOT_PANEL,
)
command(
    app,
    assemble,
    "assemble urdf/palletizer.urdf --q shoulder=25deg --q elbow=0.3",
    "assemble urdf/fourbar.urdf --near joint_3=-90deg --json",
    codes=ASSEMBLED,
    panel=ROBOT_PANEL,
)
command(
    app,
    regularize,
    "regularize urdf/prrr3.urdf",
    "regularize urdf/fourbar.urdf --cut joint_3 -o recut.urdf",
    codes="0 done; 1 the robot cannot be assembled",
    panel=ROBOT_PANEL,
)
