"""`load_scenario`: from a YAML file to a run that is ready to start.

Paths in the file are relative to it. Whatever is wrong is said in one sentence with file, line and
key, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assembly.assemble import assemble, consistent_velocity
from ..assembly.search import outside_limits
from ..boundary.arguments import public
from ..boundary.schema import Document
from ..dynamics import ODCA, Augmented, Projected, Voronets
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..simulation.limits import joint_ends
from ..simulation.modes import ModalSystem, Mode
from ..simulation.simulate import Limits, simulate
from ..simulation.trajectory import Trajectory
from ..simulation.watching import limited_ends
from .binding import BoundScenario, events_of, forces_of
from .outputs import Output, check_named, check_output, write_outputs
from .scenario_entries import Scenario, StartEntry

Array = NDArray[np.float64]

_FORMULATIONS = {
    "augmented": Augmented,
    "projected": Projected,
    "voronets": Voronets,
    "odca": ODCA,
}


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that a scenario file describes.

    Args:
        scenario: what the file says.
        source: the file.
        robot: the mechanism.
        q: assembled configuration at the start, shape (nq,).
        v: velocity at the start that all loops allow, shape (nv,).
        arguments: all else that `simulate` takes.
        outputs: files to write.
        every: interval of the states in files of states [s]; every step if None.
    """

    scenario: Scenario
    source: Path
    robot: Mechanism
    q: Array
    v: Array
    arguments: Mapping[str, Any]
    outputs: tuple[Output, ...]
    every: float | None

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that are read: the scenario, the robot's, those of its loops."""
        return (self.source, *self.scenario.robot.inputs)

    def simulate(self, *, progress: bool = False) -> Trajectory:
        """Compute the run, with every step of it.

        Args:
            progress: show a progress bar on standard error.

        Raises:
            SimulationFailed: the run could not go on; carries the trajectory so far.
        """
        return simulate(self.robot, self.q, self.v, **self.arguments, progress=progress)

    def write(self, run: Trajectory) -> tuple[Path, ...]:
        """Write the files that the scenario asks for.

        Args:
            run: the run, or a part of it.

        Raises:
            BadValue: one of them cannot be written; the others are.
        """
        return write_outputs(run, self.outputs, self.every)


@public
def load_scenario(
    path: str | Path,
    *,
    until: float | None = None,
    limits: Limits | None = None,
    force: bool = False,
) -> PlannedRun:
    """Read a scenario file, the robot in it, and find its state at the start.

    Args:
        path: the YAML file.
        until: end of the run instead of that in the file [s].
        limits: what happens at position limits instead of what the file says; see `simulate`.
        force: let the scenario name files outside its folder, and files that are there and that
            pinloop did not write.

    Raises:
        LoadError: names file, line and key.
    """
    document = Document.open(path, "scenario file")
    file = document.read(Scenario)
    end = file.until if until is None else until
    robot = file.robot.load(gravity=file.gravity)
    scenario = BoundScenario(document, robot)
    mode = _mode(file.start, scenario)
    q, v = _state(file.start, scenario, mode)
    arguments = {
        "until": end,
        "forces": tuple(forces_of(file.forces, scenario)),
        "events": tuple(events_of(file.events, scenario, end)),
        "limits": _limits(file, scenario) if limits is None else limits,
        "mode": mode,
        "losses": file.robot.losses,
        "formulation": _FORMULATIONS[file.formulation]() if file.formulation else None,
        "method": file.method,
        "stabilization": _stabilization(file, scenario),
        "regularization": file.robot.regularize,
    }
    outputs = _outputs(file, scenario, force)
    return PlannedRun(file, Path(path), robot, q, v, arguments, outputs, file.outputs.every)


def _mode(start: StartEntry, scenario: BoundScenario) -> Mode:
    """What is locked and open at the start."""
    system = ModalSystem(scenario.robot, regularization=False)
    for key, names in (("locked", start.locked), ("opened", start.opened)):
        for k, name in enumerate(names):
            with scenario.at("start", key, k):
                system.check(Mode(name) if key == "locked" else Mode((), name))
    with scenario.at("start", "locked"):
        return Mode(start.locked, start.opened)


def _state(start: StartEntry, scenario: BoundScenario, mode: Mode) -> tuple[Array, Array]:
    """The assembled configuration and the velocity that the loops allow."""
    robot = scenario.robot
    closed = robot.without_loops(mode.opened) if mode.opened else robot
    held = scenario.values(start.q, "start", "q")
    near = scenario.values(start.near, "start", "near")
    if start.limits:
        for joint, values in held.items():
            with scenario.at("start", "q", joint):
                _within_limits(robot, joint, values)
    with scenario.at("start", *(("q",) if held else ())):
        guess = robot.configuration({**near, **held})
        q = assemble(closed, guess, held, limits=start.limits)
    asked = scenario.values(start.v, "start", "v", rates=True)
    still = {lock.joint: np.zeros(robot.coordinates(lock.joint).nv) for lock in mode.locks}
    for joint in asked:
        with scenario.at("start", "v", joint):
            _moves(joint, still)
    with scenario.at("start", *(("v",) if asked else ())):
        return q, consistent_velocity(closed, q, {**asked, **still})


def _within_limits(robot: Mechanism, joint: str, values: list[float]) -> None:
    q = robot.configuration({joint: values})
    for _, value, low, high in outside_limits(robot, q, (joint,)):
        raise BadValue(
            f"joint '{joint}' is set to {value:.9g}, outside its limits, {low:.9g} to {high:.9g}; "
            "write 'limits: false' under start to ignore them"
        )


def _moves(joint: str, still: Mapping[str, object]) -> None:
    if joint in still:
        raise BadValue(f"joint '{joint}' is locked at the start; give it no rate, or unlock it")


def _limits(file: Scenario, scenario: BoundScenario) -> Limits:
    """What happens at position limits; checks the joints that are named."""
    for k, joint in enumerate(file.limits.joints or ()):
        with scenario.at("limits", "joints", k):
            limited_ends(joint_ends(scenario.robot), scenario.robot, (joint,))
    return file.limits.make()


def _stabilization(file: Scenario, scenario: BoundScenario) -> Any:
    """The projection, if there is one; checks the joints that it names."""
    if file.stabilization is None:
        return None
    projection = file.stabilization.make()
    if not isinstance(projection.coordinates, str):
        for k, joint in enumerate(projection.coordinates):
            with scenario.at("stabilization", "coordinates", k):
                scenario.robot.coordinates(joint)
    return projection


def _outputs(file: Scenario, scenario: BoundScenario, force: bool) -> tuple[Output, ...]:
    """The files to write; refuses before the run what would fail after it."""
    path = scenario.document.path
    taken = [path, *file.robot.inputs]
    outputs: list[Output] = []
    for kind in ("npz", "csv", "parquet", "html", "plot", "summary"):
        given = getattr(file.outputs, kind)
        for target in given if isinstance(given, tuple) else (given,):
            if target is None:
                continue
            output = Output(kind, target)
            with scenario.at("outputs", kind):
                check_output(output, [*taken, *(other.path for other in outputs)])
                if not force:
                    check_named(output, path.parent)
            outputs.append(output)
    return tuple(outputs)
