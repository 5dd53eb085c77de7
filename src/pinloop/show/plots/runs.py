"""What is drawn of a run: states, energies, closure, momenta, reactions.

Units are SI, one per panel. What happened in the run is marked by vertical lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from ...constraints.closure import Constraints
from ...errors import BadValue
from ...simulation.analysis import EnergyBalance, Reaction, lock_reactions, momenta, reactions
from ...simulation.stabilization import Projection
from ...simulation.trajectory import Trajectory
from .charts import MOST_LINES, Line, Panel, draw_panels
from .curves import (
    Coordinate,
    Fine,
    coordinates,
    lines_by_unit,
    sample_states,
    thin_states,
    velocities,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RunPlots"]

Array = NDArray[np.float64]

_WORDS = {
    "rad": "angle",
    "m": "position",
    "-": "quaternion",
    "rad/s": "velocity",
    "m/s": "velocity",
}
_AXES = "xyz"
_NONE = np.zeros(0, dtype=np.intp)


class RunPlots:
    """Plots of a run, as figures of matplotlib.

    Called, it draws an overview; its methods draw one thing each. A figure belongs to nobody:
    ``run.plot().savefig("run.png")`` writes it, a notebook shows it, ``pyplot`` is not touched.

    Args:
        run: the run, a `Trajectory`.
    """

    def __init__(self, run: Trajectory) -> None:
        self._run = run

    def __repr__(self) -> str:
        return (
            "<plots of a run: call it for all in one; states, energy, closure, momentum, reactions>"
        )

    def __call__(self, joints: str | Iterable[str] | None = None) -> Figure:
        """Positions, velocities, energies and closure in one figure.

        Args:
            joints: names of the joints that are shown. By default all; where they are too many
                for one panel, those with drives first, then those that move fastest.
        """
        states = sample_states(self._run)
        left, right = self._state_panels(joints, states)
        energies, work, error = self._energy_panels(thin_states(states))
        left.append(energies)
        right.append(work if work.lines else error)
        if self._run.robot.loops:
            right.append(self._closure_panel(None))
        return self._drawn("", left, right)

    def states(self, joints: str | Iterable[str] | None = None) -> Figure:
        """Coordinates and velocities [rad, m; rad/s, m/s], and components of quaternions.

        Args:
            joints: names of the joints that are shown; as in the overview by default.
        """
        return self._drawn("states", *self._state_panels(joints, sample_states(self._run)))

    def energy(self) -> Figure:
        """Energies [J], work done on the robot since the start [J], and the balance error."""
        energies, work, error = self._energy_panels(thin_states(sample_states(self._run)))
        return self._drawn("energy", [energies, *([work] if work.lines else []), error])

    def closure(self, tolerance: float | None = None) -> Figure:
        """Norm of the closure residual of each closed loop [m, rad] at the stored states.

        Args:
            tolerance: marked by a line; that of `Projection` by default.

        Raises:
            BadValue: the robot has no loops.
        """
        robot = self._run.robot
        if not robot.loops:
            raise BadValue(f"robot '{robot.name}' has no loops whose closure could be drawn")
        return self._drawn("closure", [self._closure_panel(tolerance)])

    def momentum(self) -> Figure:
        """Generalized momenta [N m s, N s], and momenta of the whole robot in world axes."""
        run, states = self._run, thin_states(sample_states(self._run))
        result = momenta(run.equations[0], *states[:3])
        one_each = [
            Coordinate(v.joint, v.label, "N s" if v.unit == "m/s" else "N m s", p)
            for name in run.robot.joints
            for v, p in zip(
                velocities(run.robot, name, states),
                result.generalized[:, run.robot.coordinates(name).v].T,
                strict=True,
            )
        ]
        sorts = lines_by_unit(states.t, one_each, self._ranks())
        panels = [
            Panel(f"generalized momentum\n[{unit}]", lines, notes=notes)
            for unit, (lines, notes) in sorts.items()
        ]
        panels.append(Panel("linear momentum\n[N s]", _vector(states.t, result.linear)))
        angular = _vector(states.t, result.angular)
        panels.append(Panel("angular momentum about\ncentre of mass [N m s]", angular))
        return self._drawn("momentum", panels)

    def reactions(self, name: str, frame: str | None = None) -> Figure:
        """Force and torque in a loop joint, or what a lock holds.

        Args:
            name: name of the loop joint: what its body B feels from its body A. Or
                ``"lock:<joint>"``: what the lock exerts on the joint.
            frame: frame in which the wrench is given; frame B of the loop joint by default.
        """
        run, states = self._run, thin_states(sample_states(self._run))
        here = run.equations
        equations = [here[k] for k in states.after]
        if name.startswith("lock:"):
            held = lock_reactions(equations, name, *states[:3])
            panels = self._lock_panels(name, held.labels, held.effort, held.determined, states)
            return self._drawn(name, panels)
        wrench = reactions(equations, run.robot, name, frame, *states[:3])
        return self._drawn(f"{name}, in {wrench.frame}", _wrench_panels(wrench))

    # -- parts --------------------------------------------------------------------------------

    def _drawn(self, what: str, *columns: list[Panel]) -> Figure:
        run = self._run
        title = f"{run.robot.name}: {what}" if what else run.robot.name
        return draw_panels(title, columns, (float(run.t[0]), float(run.t[-1])), run.events)

    def _state_panels(
        self, joints: str | Iterable[str] | None, states: Fine
    ) -> tuple[list[Panel], list[Panel]]:
        """Panels of coordinates, and of velocities."""
        robot = self._run.robot
        names = [joints] if isinstance(joints, str) else joints
        ranks = self._ranks() if names is None else None
        chosen = list(robot.joints if names is None else names)
        sorts = (
            [coordinate for name in chosen for coordinate in part(robot, name, states)]
            for part in (coordinates, velocities)
        )
        panels = tuple(
            [
                Panel(f"{_WORDS[unit]} [{unit}]", lines, notes, zero="/s" in unit)
                for unit, (lines, notes) in lines_by_unit(states.t, shown, ranks).items()
            ]
            for shown in sorts
        )
        return [self._with_limits(panel) for panel in panels[0]], panels[1]

    def _with_limits(self, panel: Panel) -> Panel:
        """A panel of coordinates with the limits that are passed."""
        passed: dict[str, list[tuple[float, bool]]] = {}
        for limit in self._run.limits_passed:
            several = self._run.robot.coordinates(limit.joint).nq > 1
            label = f"{limit.joint}.{limit.coordinate}" if several else limit.joint
            passed.setdefault(label, []).append((limit.limit, limit.side == "upper"))
        lines = [replace(line, passed=tuple(passed.get(line.name, ()))) for line in panel.lines]
        if not any(line.passed for line in lines):
            return panel
        return replace(panel, lines=lines, notes=[*panel.notes, "dashed: limit; wide: beyond it"])

    def _ranks(self) -> dict[str, tuple[bool, float]]:
        """Per velocity, by its label, and per joint: whether a drive moves it, largest speed."""
        robot, stored = self._run.robot, Fine(self._run.t, self._run.q, self._run.v, _NONE)
        ranks: dict[str, tuple[bool, float]] = {}
        for name in robot.joints:
            speeds = {
                coordinate.label: float(np.abs(coordinate.values).max())
                for coordinate in velocities(robot, name, stored)
            }
            speeds[name] = max(speeds.values(), default=0.0)
            ranks |= {label: (name in robot.actuated, speed) for label, speed in speeds.items()}
        return ranks

    def _energy_panels(self, states: Fine) -> tuple[Panel, Panel, Panel]:
        """Energies, work, and error of the balance."""
        run = self._run
        balance, here = run.energy(), run.equations
        parts = [
            here[k].energies(*state) for k, *state in zip(states.after, *states[:3], strict=True)
        ]
        kinetic, potential = (np.array([energies[part] for energies in parts]) for part in (0, 1))
        stored = {
            name: np.array([energies[2].get(name, 0.0) for energies in parts])
            for name in balance.stored
        }
        total = kinetic + potential + sum(stored.values())
        lines = [Line("kinetic", states.t, kinetic)]
        if np.ptp(potential) > 0.0:
            lines.append(Line("potential, from start", states.t, potential - potential[0]))
        lines += [Line(f"stored: {name}", states.t, values) for name, values in stored.items()]
        if len(lines) > 1:
            lines.append(Line("total", states.t, total - potential[0]))
        energies = Panel("energy [J]", *_largest(lines))
        work, notes = _largest(list(_work(balance, states)))
        error = Panel(
            "error of the balance [J]", [Line("error", run.t, balance.error)], logarithmic=True
        )
        return energies, Panel("work on the robot [J]", work, notes), error

    def _closure_panel(self, tolerance: float | None) -> Panel:
        """Residual norm of each loop at the stored states; nothing while it is open."""
        run = self._run
        norms = {loop.name: np.full(len(run.t), np.nan) for loop in run.robot.loops}
        for number, mode in enumerate(run.modes):
            rows = Constraints(run.system.mechanism(mode.opened), full=True)
            for k in np.flatnonzero(run.mode == number):
                for name, norm in rows.by_name(rows.residual(run.q[k])).items():
                    if name in norms:
                        norms[name][k] = norm
        lines, notes = _largest([Line(name, run.t, norm) for name, norm in norms.items()])
        name = "default tolerance" if tolerance is None else "tolerance"
        level = (Projection().tol if tolerance is None else tolerance), name
        return Panel("closure residual [m, rad]", lines, notes, logarithmic=True, level=level)

    def _lock_panels(
        self,
        name: str,
        labels: tuple[str, ...],
        effort: Array,
        determined: NDArray[np.bool_],
        states: Fine,
    ) -> list[Panel]:
        robot = self._run.robot
        at = robot.coordinates(name.removeprefix("lock:")).v
        short = [label.removeprefix("lock:") for label in labels]
        # A joint whose degrees of freedom are named has those of translation under "v".
        linear = [
            bool(robot.is_translation[at.start])
            if at.stop - at.start == 1
            else label.rpartition(".")[2].startswith("v")
            for label in short
        ]
        panels = []
        for kind, label in ((False, "torque of the lock [N m]"), (True, "force of the lock [N]")):
            columns = [k for k, translates in enumerate(linear) if translates is kind]
            if columns:
                names = [short[k] for k in columns]
                panels.append(
                    _marked(label, names, states.t, effort[:, columns], determined[:, columns])
                )
        return panels


def _vector(t: Array, values: Array) -> list[Line]:
    return [Line(name, t, column) for name, column in zip(_AXES, values.T, strict=True)]


def _largest(lines: list[Line]) -> tuple[list[Line], list[str]]:
    """The lines that reach farthest, in their order, and what the legend says of the others."""
    if len(lines) <= MOST_LINES:
        return lines, []
    reach = [float(np.nanmax(np.abs(line.y), initial=0.0)) for line in lines]
    chosen = sorted(np.argsort(reach)[-MOST_LINES:])
    return [lines[k] for k in chosen], [f"and {len(lines) - MOST_LINES} more"]


def _work(balance: EnergyBalance, states: Fine) -> Iterator[Line]:
    """Work since the start: known at the stored states, without overshoot between them."""
    for name, values in balance.work.items():
        y = values[states.after]
        ends = np.flatnonzero(np.diff(balance.t) <= 0.0) + 1
        for part in np.split(np.arange(len(values)), ends):
            inside = (states.after >= part[0]) & (states.after <= part[-1])
            if len(part) > 1:
                y[inside] = scipy.interpolate.PchipInterpolator(balance.t[part], values[part])(
                    states.t[inside]
                )
        yield Line(name, states.t, y)


def _wrench_panels(wrench: Reaction) -> list[Panel]:
    unique = np.repeat(wrench.determined[:, None], 3, axis=1)
    return [
        _marked(label, list(_AXES), wrench.t, values, unique)
        for label, values in (("force [N]", wrench.force), ("torque [N m]", wrench.torque))
    ]


def _marked(
    label: str, names: list[str], t: Array, values: Array, unique: NDArray[np.bool_]
) -> Panel:
    """Reactions; dotted where they are not unique."""
    lines = []
    for name, column, sure in zip(names, values.T, unique.T, strict=True):
        if sure.any():
            lines.append(Line(name, t, np.where(sure, column, np.nan)))
        if not sure.all():
            rest = np.where(sure, np.nan, column)
            lines.append(Line("" if sure.any() else name, t, rest, dotted=True))
    return Panel(label, lines, [] if unique.all() else ["dotted: not unique,", "the smallest"])
