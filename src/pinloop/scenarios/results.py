"""What came out of a run: a document for programs, a report for people, files. Computes no motion.

The document has SI units, in the names where they do not depend on the joint. A scenario may come
from somebody else: the files that it names lie in its folder, and replace only what pinloop wrote,
unless the user says otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from ..boundary.files import check_target, may_replace, write_file, write_json
from ..constraints.rows import locked_columns
from ..errors import BadValue, PinloopError, printable
from ..model.mechanism import Mechanism
from ..simulation.analysis import EnergyBalance
from ..simulation.run_file import sampled
from ..simulation.trajectory import Trajectory
from ..simulation.transitions import Transition
from ..tables.number_format import number, shown_coordinate, units_of
from ..tables.report import Block, Cell, KeyValues, Notes, Report, Table
from ..tolerances import GOOD_CLOSURE
from ..version import __version__

_MOST = 12
"""So many events and changes of the mode are shown; the document has all of them."""

Coordinates = dict[str, list[float]]


# -- for programs ---------------------------------------------------------------------------------


def as_document(run: Trajectory, written: Iterable[Path] = (), failure: str = "") -> RunDocument:
    """A run in a few numbers, as JSON has it; SI units."""
    energy = _energy(run)
    return {
        "format": "pinloop-run-1",
        "robot": run.robot.name,
        "ended": run.message,
        "failure": failure or None,
        "warnings": list(run.warnings),
        "start_s": float(run.t[0]),
        "end_s": float(run.t[-1]),
        "states": len(run.t),
        "evaluations": run.evaluations,
        "rejected_steps": run.rejected,
        "closure_residual": float(run.closure().max()),
        "energy": None if energy is None else _energy_document(energy),
        "events": [{"t_s": float(t), "name": name} for t, name in run.events],
        "transitions": [_transition_document(run.robot, change) for change in run.transitions],
        "modes": [*dict.fromkeys(str(mode.without_friction) for mode in run.modes)],
        "first": _state_document(run, 0),
        "last": _state_document(run, -1),
        "files": [str(path) for path in written],
    }


def _energy(run: Trajectory) -> EnergyBalance | None:
    """The energy balance; None where the state at a failure has none."""
    try:
        return run.energy()
    except PinloopError:
        return None


def _energy_document(energy: EnergyBalance) -> EnergyRecord:
    return {
        "largest_kinetic_J": float(energy.kinetic.max()),
        "total_start_J": float(energy.total[0]),
        "total_end_J": float(energy.total[-1]),
        "work_J": {name: float(work[-1]) for name, work in energy.work.items()},
        "largest_error_J": float(np.abs(energy.error).max()),
    }


def _transition_document(robot: Mechanism, change: Transition) -> TransitionRecord:
    return {
        "t_s": float(change.t),
        "events": list(change.events),
        "before": str(change.before),
        "after": str(change.after),
        "energy_loss_J": float(change.energy_loss),
        "drive_work_J": float(change.drive_work),
        "regular": bool(change.regular),
        "impulses": [
            {
                "row": label,
                "impulse": float(impulse),
                "unit": _impulse_unit(robot, change, label),
                "determined": bool(unique),
            }
            for label, impulse, unique in _impulse_rows(change)
        ],
    }


def _impulse_rows(change: Transition) -> Iterator[tuple[str, float, bool]]:
    """Label, impulse, and whether it is the only one possible, of each row."""
    return zip(change.labels, change.impulse, change.determined, strict=True)


def _impulse_unit(robot: Mechanism, change: Transition, label: str) -> Literal["N s", "N m s", ""]:
    """Unit of the impulse of a row; empty if it has parts of both kinds."""
    for lock in change.after.locks:
        if label == lock.label or label.startswith(f"{lock.label}."):
            columns = locked_columns(robot, lock)
            linear = {bool(robot.is_translation[column]) for column in columns}
            return "" if len(linear) > 1 else "N s" if linear.pop() else "N m s"
    _, _, row = label.rpartition(": ")
    kind = row.partition("_")[0]
    return "N s" if kind == "v" else "N m s" if kind == "w" else ""


def _state_document(run: Trajectory, index: int) -> StateRecord:
    """Coordinates and rates by joint, SI units."""
    parts = {name: run.robot.coordinates(name) for name in run.robot.joints}
    return {
        "q": {name: run.q[index, at.q].tolist() for name, at in parts.items()},
        "v": {name: run.v[index, at.v].tolist() for name, at in parts.items()},
    }


# -- for people -----------------------------------------------------------------------------------


def run_table(run: Trajectory, failure: str = "") -> Report:
    """A run as a report."""
    short = bool(failure) or run.message.startswith("interrupted")
    title = f"{run.robot.name}: {_ended(run, failure)} at {run.t[-1]:.6g} s"
    jumps = [change for change in run.transitions if _adds_rows(change)]
    cut = max(len(run.events), len(run.transitions)) > _MOST
    blocks: list[Block] = [
        _facts(run),
        _states(run),
        _events(run),
        *(_impulses(run.robot, change) for change in jumps[:_MOST]),
        Notes.of("More", [f"Only the first {_MOST} events are shown; --json has all."] * cut),
        Notes.of("Warnings", run.warnings, "caution"),
        Notes.of("Why", [failure] if failure else [], "bad"),
    ]
    return Report.of(Cell(printable(title), "bad" if short else "title"), blocks)


def _ended(run: Trajectory, failure: str) -> str:
    """How a run ended, in few words."""
    if failure:
        return "FAILED"
    if run.message.startswith("stopped") and run.events:
        return f"stopped by '{run.events[-1][1]}'"
    return run.message.partition(" at ")[0]


def _facts(run: Trajectory) -> KeyValues:
    steps = int(np.count_nonzero(np.diff(run.t) > 0))
    counts = f"{steps}, {run.rejected} rejected; {run.evaluations} acceleration evaluations"
    entries: list[tuple[str, str | Cell]] = [
        ("time", f"{run.t[0]:g} to {run.t[-1]:.6g} s"),
        ("steps", counts),
    ]
    if run.robot.loops or run.robot.couplings:
        largest = float(run.closure().max())
        mark: Any = "good" if largest < GOOD_CLOSURE else "caution"
        entries.append(("closure", Cell(f"residual at most {largest:.1e} m, rad", mark)))
    energy = _energy(run)
    if energy is not None:
        text = f"balance error at most {np.abs(energy.error).max():.1e} J"
        text += f"; kinetic energy at most {energy.kinetic.max():.4g} J"
        entries.append(("energy", text))
    return KeyValues.of("Run", entries)


def _states(run: Trajectory) -> Table:
    """First and last state of every joint."""
    robot = run.robot
    rows = []
    for joint in robot.joints:
        at = robot.coordinates(joint)
        start, unit = shown_coordinate(robot, joint, run.q[0])
        end, _ = shown_coordinate(robot, joint, run.q[-1])
        factor, per = 1.0, f"{unit}; SI/s"
        if at.nv == 1:
            factor, per = units_of(robot, joint).factor, f"{unit}, {unit}/s"
        rate = ", ".join(number(factor * float(x), 3) for x in run.v[-1][at.v])
        rows.append((joint, start, end, rate, per))
    return Table.of("Joints at start and end", ("<joint", "start", "end", "speed", "<unit"), rows)


def _events(run: Trajectory) -> Table:
    """Everything that happened, with what a change of the mode cost."""
    headings = ("<event", "time [s]", "energy lost [J]", "<rank")
    shown = len(headings) if run.transitions else 2
    rows = []
    for t, name in run.events[:_MOST]:
        changes = (c for c in run.transitions if c.t == t and name in c.events)
        change = next(changes, None)
        lost = "" if change is None else f"{change.energy_loss if _adds_rows(change) else 0:.4g}"
        regular = "" if change is None else "regular" if change.regular else "singular"
        rank = Cell(regular, "caution" if regular == "singular" else "")
        rows.append((name, f"{t:.6g}", lost, rank)[:shown])
    return Table.of("Events", headings[:shown], rows)


def _adds_rows(change: Transition) -> bool:
    """Whether something was locked or closed: what only lets go needs no impulse."""
    return not (set(change.after.locks) <= set(change.before.locks)) or bool(
        change.before.opened - change.after.opened
    )


def _impulses(robot: Mechanism, change: Transition) -> Table:
    rows = (
        (row, f"{impulse:.5g}", _impulse_unit(robot, change, row), "yes" if unique else "no")
        for row, impulse, unique in _impulse_rows(change)
    )
    title = f"Impulses of {', '.join(change.events)} at {change.t:.6g} s"
    return Table.of(title, ("<constraint", "impulse", "<unit", "<unique"), rows)


class EventRecord(TypedDict):
    """Something that happened."""

    t_s: float
    name: str


class ImpulseRecord(TypedDict):
    """Impulse of a constraint row; its unit is empty if the row mixes forces and moments."""

    row: str
    impulse: float
    unit: Literal["N s", "N m s", ""]
    determined: bool


class TransitionRecord(TypedDict):
    """A change of what is locked or open."""

    t_s: float
    events: list[str]
    before: str
    after: str
    energy_loss_J: float
    drive_work_J: float
    regular: bool
    impulses: list[ImpulseRecord]


class EnergyRecord(TypedDict):
    """Energies, and work done on the robot by each force."""

    largest_kinetic_J: float
    total_start_J: float
    total_end_J: float
    work_J: dict[str, float]
    largest_error_J: float


class StateRecord(TypedDict):
    """Coordinates [rad, m] and rates [rad/s, m/s] by joint."""

    q: Coordinates
    v: Coordinates


class RunDocument(TypedDict):
    """A run in a few numbers. ``failure`` says why it could not go on; null if it could.

    ``warnings`` say what is odd about it, such as energy that is missing.
    """

    format: Literal["pinloop-run-1"]
    robot: str
    ended: str
    failure: str | None
    warnings: list[str]
    start_s: float
    end_s: float
    states: int
    evaluations: int
    rejected_steps: int
    closure_residual: float
    energy: EnergyRecord | None
    events: list[EventRecord]
    transitions: list[TransitionRecord]
    modes: list[str]
    first: StateRecord
    last: StateRecord
    files: list[str]


# -- files ----------------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """Ends of names of a kind of files, the mark of those that pinloop wrote, the module it needs.

    The mark is in the head or at the end of a file; a module is called like its package, if none
    is named. Kinds without a mark are not for scenarios.
    """

    ends: tuple[str, ...]
    mark: bytes | re.Pattern[bytes] = b""
    module: str = ""
    package: str = ""


_KINDS = {
    "npz": _Kind((".npz",), b"robot.npy"),
    # Times were called t [s] in earlier versions; ahead of names in Parquet stands their length.
    "csv": _Kind((".csv",), re.compile(rb"\A(t_s|t \[s\]),")),
    "parquet": _Kind((".parquet",), re.compile(rb"\x03t_s|\x05t \[s\]"), "pyarrow"),
    "html": _Kind((".html",), b"pinloop"),
    "plot": _Kind((".png", ".svg", ".pdf"), b"pinloop", "matplotlib"),
    "summary": _Kind((".json",), b'"format": "pinloop-run-'),
    "mcap": _Kind((".mcap",), module="mcap_ros2", package="mcap-ros2-support"),
    "gltf": _Kind((".glb",)),
    "rerun": _Kind((".rrd",), module="rerun", package="rerun-sdk"),
}
"""What a file may hold."""
ENDS = {end: name for name, kind in _KINDS.items() for end in kind.ends}
"""What a file holds, by the end of its name."""


@dataclass(frozen=True)
class Output:
    """A file to write."""

    kind: str
    path: Path


def output_of(path: Path) -> Output:
    """A file, by the end of its name; a `BadValue` if no file of a run is called so."""
    kind = ENDS.get(path.suffix.lower())
    if kind is None:
        raise BadValue(f"'{path}' ends in none of {', '.join(ENDS)}, which say what it holds")
    return Output(kind, path)


def check_output(output: Output, taken: Iterable[Path]) -> None:
    """Refuse what could not be written, or would destroy something, by a `BadValue`."""
    path, (ends, _, module, package) = output.path, _KINDS[output.kind]
    if output.kind in ("npz", "plot") and path.suffix.lower() not in ends:
        raise BadValue(f"'{path}' must end in {' or '.join(ends)}")
    check_target(path, taken)
    if module and find_spec(module) is None:
        raise BadValue(f"'{path}' needs {package or module}: pip install {package or module}")


def check_named(output: Output, folder: Path) -> None:
    """Refuse a file that a scenario names, but which it has no business to write.

    It lies outside the folder, or pinloop did not write what is there.
    """
    path = Path(os.path.realpath(output.path))
    way_out = "add --force (force=True in Python), or name another file"
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadValue(f"'{output.path}' is outside the folder of the scenario; {way_out}")
    if not may_replace(path, _KINDS[output.kind].mark):
        raise BadValue(f"'{output.path}' exists, and pinloop did not write it; {way_out}")


def tried_outputs(
    run: Trajectory, outputs: Sequence[Output], every: float | None, failure: str = ""
) -> tuple[list[Path], list[str]]:
    """Write as many files of a run as can be, the summary last; say what is wrong with the others.

    ``every``: interval of the states in files of states [s]; every step if None. ``failure``: why
    the run could not go on; empty if it could.
    """
    states = run if every is None else sampled(run, every)
    written: list[Path] = []
    problems: list[str] = []
    for output in sorted(outputs, key=lambda output: output.kind == "summary"):
        try:
            if output.kind == "summary":
                document = as_document(run, [*written, output.path], failure)
                write_json(output.path, document)
            else:
                _write(output.kind, output.path, run, states)
        except PinloopError as error:
            problems.append(str(error))
        else:
            written.append(output.path)
    return written, problems


def _write(kind: str, path: Path, run: Trajectory, states: Trajectory) -> None:
    writers: dict[str, Callable[[Path], Path]] = {
        "npz": states.save,
        "csv": states.to_csv,
        "parquet": states.to_parquet,
        "html": run.save_html,
        "mcap": run.to_mcap,
        "gltf": run.to_gltf,
        "rerun": run.to_rerun,
    }
    if kind in writers:
        writers[kind](path)
        return
    ending = path.suffix[1:].lower()
    by = {"Software" if ending == "png" else "Creator": f"pinloop {__version__}"}
    figure = run.plot()
    write_file(path, lambda file: figure.savefig(file, format=ending, metadata=by))
