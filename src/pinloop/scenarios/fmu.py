"""Robots as units of a co-simulation by FMI 3.0: written by `export_fmu`, run by `RobotUnit`.

A unit is an archive that other tools load. It holds the robot and its start as files and a few
lines of Python that make a `RobotUnit` of them, which moves the robot from one communication point
to the next. What FMI asks for besides is the business of ``pythonfmu3``.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..boundary.arguments import public
from ..boundary.files import as_target, write_file, write_json, write_text
from ..dynamics.forces import Torque
from ..dynamics.joint_axes import JointAxes
from ..errors import BadValue
from ..io.loading import load
from ..model.mechanism import Mechanism
from ..regularization.regularize import regularize
from ..simulation.events import lock, unlock
from ..simulation.modes import Mode
from ..simulation.simulate import simulate
from ..tables.report import render


@public
def export_fmu(
    robot: Mechanism,
    path: str | Path,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    driven: Sequence[str] | None = None,
) -> Path:
    """Write a robot as a unit of a co-simulation by FMI 3.0.

    Inputs are ``<joint>.torque`` [N m, N] and ``<joint>.locked`` of the driven joints, outputs
    ``<joint>.position`` and ``<joint>.velocity`` of all joints with one coordinate. From one
    communication point to the next inputs keep their values; a joint that is to be locked locks at
    the first, with the jump of all velocities. The unit runs where a Python with pinloop is.

    Args:
        robot: the mechanism.
        path: file to write, ``name.fmu``.
        q: configuration at the start, shape (nq,).
        v: velocity at the start, shape (nv,); at rest by default.
        driven: names of the driven joints; those of the robot by default.

    Returns:
        The path.
    """
    target = as_target(path)
    if target.suffix != ".fmu" or not target.stem.isidentifier() or keyword.iskeyword(target.stem):
        raise BadValue(f"'{target.name}' must be a name of letters, digits and _, and end in .fmu")
    try:
        builder = import_module("pythonfmu3.builder").FmuBuilder
    except ImportError:
        raise BadValue("FMI needs pythonfmu3: pip install 'pinloop[fmi]'") from None
    q = robot.checked_configuration(q)
    v = np.zeros(robot.nv) if v is None else robot.checked_velocity(v)
    names = list(JointAxes(robot, robot.actuated if driven is None else driven).joints)
    for name in names:
        Torque(name, 0.0).bind(robot)  # needs a joint with one axis
    simulate(robot, q, v, until=1e-3)  # says what is wrong with the start
    with TemporaryDirectory() as folder:
        script = Path(folder) / f"{target.stem}.py"
        write_text(script, render("scenarios/templates/unit.py.txt", name=target.stem))
        files = [robot.save(Path(folder) / "robot.urdf"), Path(folder) / "robot.loops.yaml"]
        start = {
            name: [q[robot.coordinates(name).q].tolist(), v[robot.coordinates(name).v].tolist()]
            for name in robot.joints
        }
        files.append(write_json(Path(folder) / "start.json", {"start": start, "driven": names}))
        unit = builder.build_FMU(script, dest=Path(folder) / "out", project_files=files)
        return write_file(target, lambda file: file.write(unit.read_bytes()))


class RobotUnit:
    """A robot between two communication points. What it says of itself are variables."""

    time = 0.0

    def start(self, folder: Path) -> list[tuple[Any, ...]]:
        """Read the robot; return its variables: name, kind, causality, how to get and to set."""
        document = json.loads((folder / "start.json").read_text(encoding="utf-8"))
        self._robot = robot = regularize(load(folder / "robot.urdf"))
        self._q, self._v, self._mode = robot.neutral, np.zeros(robot.nv), Mode()
        for name, (q, v) in document["start"].items():
            at = robot.coordinates(name)
            self._q[at.q], self._v[at.v] = q, v
        self._torques = dict.fromkeys(document["driven"], 0.0)
        self._locked = dict.fromkeys(document["driven"], False)
        variables = list[tuple[Any, ...]]()
        for name in document["driven"]:
            for quantity, kind, values in (
                ("torque", "number", self._torques),
                ("locked", "truth", self._locked),
            ):
                access = partial(values.get, name), partial(values.__setitem__, name)
                variables.append((f"{name}.{quantity}", kind, "input", *access))
        for name in robot.joints:
            at = robot.coordinates(name)
            if at.nv == at.nq == 1:
                read = partial(self._read, "_q", at.q.start), partial(self._read, "_v", at.v.start)
                variables.append((f"{name}.position", "number", "output", read[0], None))
                variables.append((f"{name}.velocity", "number", "output", read[1], None))
        return variables

    def _read(self, values: str, index: int) -> float:
        return float(getattr(self, values)[index])

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Move to the next communication point."""
        held = {held.joint for held in self._mode.locks}
        events = [
            (lock if wanted else unlock)(name, at=current_time)
            for name, wanted in self._locked.items()
            if wanted != (name in held)
        ]
        torques = [Torque(name, value) for name, value in self._torques.items() if value]
        run = simulate(
            self._robot,
            self._q,
            self._v,
            start=current_time,
            until=current_time + step_size,
            forces=torques,
            events=events,
            mode=self._mode,
        )
        self._q, self._v, self._mode = run.q[-1], run.v[-1], run.modes[run.mode[-1]]
        self.time = current_time + step_size
        return True
