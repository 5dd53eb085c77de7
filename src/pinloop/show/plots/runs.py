"""What is drawn of a run: states, energies, closure, momenta, reactions, as lines over time.

Units are SI, one per chart. What happened in the run is marked by vertical lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from ...boundary.arguments import public
from ...boundary.marks import Array, Indices, Mask
from ...constraints.closure import Constraints
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...simulation.analysis import EnergyBalance, LockReaction, lock_reactions, momenta, reactions
from ...simulation.columns import joint_positions
from ...simulation.stabilization import Projection
from ...simulation.trajectory import Trajectory
from . import MOST_LINES, Chart, Line, draw_charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ranks = dict[str, tuple[bool, float]]
"""By joint, and by label of its velocities: whether a drive moves it, and its largest speed."""

_LABELS = {
    "rad": "angle [rad]",
    "m": "position [m]",
    "-": "quaternion [-]",
    "rad/s": "velocity [rad/s]",
    "m/s": "velocity [m/s]",
}
_AXES = "xyz"
_POINTS = 900
"""Instants along a run: about the width of a picture in dots."""


@public
class RunPlots:
    """Plots of a run, as figures of matplotlib.

    Called, it draws an overview; its methods draw one thing each. A figure belongs to nobody:
    ``run.plot().savefig("run.png")`` writes it, a notebook shows it, ``pyplot`` is not touched.
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
        left, right = self._state_charts(joints, states)
        energies, work, error = self._energy_charts(thin_states(states))
        left.append(energies)
        right.append(work if work.lines else error)
        if self._run.robot.loops:
            right.append(self._closure_chart(None))
        return self._drawn("", left, right)

    def states(self, joints: str | Iterable[str] | None = None) -> Figure:
        """Coordinates and velocities [rad, m; rad/s, m/s], and components of quaternions.

        Args:
            joints: names of the joints that are shown; as in the overview by default.
        """
        return self._drawn("states", *self._state_charts(joints, sample_states(self._run)))

    def energy(self) -> Figure:
        """Energies [J], work done on the robot since the start [J], and the balance error."""
        energies, work, error = self._energy_charts(thin_states(sample_states(self._run)))
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
        return self._drawn("closure", [self._closure_chart(tolerance)])

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
        labels = {unit: f"generalized momentum\n[{unit}]" for unit in ("N s", "N m s")}
        charts = charts_by_unit(states.t, one_each, labels, self._ranks())
        about = "angular momentum about\ncentre of mass [N m s]"
        charts.append(_vector("linear momentum\n[N s]", states.t, result.linear))
        charts.append(_vector(about, states.t, result.angular))
        return self._drawn("momentum", charts)

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
            lock = lock_reactions(equations, name, *states[:3])
            return self._drawn(name, list(self._lock_charts(name, lock, states.t)))
        wrench = reactions(equations, run.robot, name, frame, *states[:3])
        unique = np.repeat(wrench.determined[:, None], 3, axis=1)
        charts = [
            _marked("force [N]", _AXES, wrench.t, wrench.force, unique),
            _marked("torque [N m]", _AXES, wrench.t, wrench.torque, unique),
        ]
        return self._drawn(f"{name}, in {wrench.frame}", charts)

    # -- parts --------------------------------------------------------------------------------

    def _drawn(self, what: str, *columns: list[Chart]) -> Figure:
        run = self._run
        title = f"{run.robot.name}: {what}" if what else run.robot.name
        return draw_charts(title, columns, (float(run.t[0]), float(run.t[-1])), run.events)

    def _state_charts(
        self, joints: str | Iterable[str] | None, states: Fine
    ) -> tuple[list[Chart], list[Chart]]:
        """Charts of coordinates with the limits that are passed, and of velocities."""
        robot = self._run.robot
        names = [joints] if isinstance(joints, str) else joints
        ranks = self._ranks() if names is None else None
        chosen = list(robot.joints if names is None else names)
        positions, rates = (
            [c for name in chosen for c in part(robot, name, states)]
            for part in (coordinates, velocities)
        )
        charts = charts_by_unit(states.t, positions, _LABELS, ranks, zero=False)
        return (
            [self._with_limits(chart) for chart in charts],
            charts_by_unit(states.t, rates, _LABELS, ranks),
        )

    def _with_limits(self, chart: Chart) -> Chart:
        passed: dict[str, list[tuple[float, bool]]] = {}
        for limit in self._run.limits_passed:
            several = self._run.robot.coordinates(limit.joint).nq > 1
            label = f"{limit.joint}.{limit.coordinate}" if several else limit.joint
            passed.setdefault(label, []).append((limit.limit, limit.side == "upper"))
        lines = [replace(line, passed=tuple(passed.get(line.name, ()))) for line in chart.lines]
        if not any(line.passed for line in lines):
            return chart
        return replace(chart, lines=lines, notes=[*chart.notes, "dashed: limit; wide: beyond it"])

    def _ranks(self) -> Ranks:
        robot = self._run.robot
        stored = Fine(self._run.t, self._run.q, self._run.v, np.arange(len(self._run.t)))
        ranks: Ranks = {}
        for name in robot.joints:
            rates = velocities(robot, name, stored)
            speeds = {rate.label: float(np.abs(rate.values).max()) for rate in rates}
            speeds[name] = max(speeds.values(), default=0.0)
            ranks |= {label: (name in robot.actuated, speed) for label, speed in speeds.items()}
        return ranks

    def _energy_charts(self, states: Fine) -> tuple[Chart, Chart, Chart]:
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
        error = [Line("error", run.t, balance.error)]
        return (
            _largest("energy [J]", lines),
            _largest("work on the robot [J]", list(_work(balance, states))),
            Chart("error of the balance [J]", error, logarithmic=True),
        )

    def _closure_chart(self, tolerance: float | None) -> Chart:
        """Residual norm of each loop at the stored states; nothing while it is open."""
        run = self._run
        norms = {loop.name: np.full(len(run.t), np.nan) for loop in run.robot.loops}
        for number, mode in enumerate(run.modes):
            rows = Constraints(run.system.mechanism(mode.opened), full=True)
            for k in np.flatnonzero(run.mode == number):
                for name, norm in rows.by_name(rows.residual(run.q[k])).items():
                    if name in norms:
                        norms[name][k] = norm
        lines = [Line(name, run.t, norm) for name, norm in norms.items()]
        name = "default tolerance" if tolerance is None else "tolerance"
        level = (Projection().tol if tolerance is None else tolerance), name
        chart = _largest("closure residual [m, rad]", lines)
        return replace(chart, logarithmic=True, level=level)

    def _lock_charts(self, name: str, lock: LockReaction, t: Array) -> Iterator[Chart]:
        robot = self._run.robot
        at = robot.coordinates(name.removeprefix("lock:")).v
        short = [label.removeprefix("lock:") for label in lock.labels]
        # A joint whose degrees of freedom are named has those of translation under "v".
        linear = [
            bool(robot.is_translation[at.start])
            if at.stop - at.start == 1
            else label.rpartition(".")[2].startswith("v")
            for label in short
        ]
        for kind, label in ((False, "torque of the lock [N m]"), (True, "force of the lock [N]")):
            columns = [k for k, translates in enumerate(linear) if translates is kind]
            if columns:
                names, unique = [short[k] for k in columns], lock.determined[:, columns]
                yield _marked(label, names, t, lock.effort[:, columns], unique)


def _vector(label: str, t: Array, values: Array) -> Chart:
    lines = [Line(name, t, column) for name, column in zip(_AXES, values.T, strict=True)]
    return Chart(label, lines)


def _largest(label: str, lines: Sequence[Line]) -> Chart:
    """The lines that reach farthest, in their order; the legend counts the others."""
    if len(lines) <= MOST_LINES:
        return Chart(label, lines)
    reach = [float(np.nanmax(np.abs(line.y), initial=0.0)) for line in lines]
    chosen = sorted(np.argsort(reach)[-MOST_LINES:])
    notes = [f"and {len(lines) - MOST_LINES} more"]
    return Chart(label, [lines[k] for k in chosen], notes=notes)


def _work(balance: EnergyBalance, states: Fine) -> Iterator[Line]:
    """Work since the start: known at the stored states, without overshoot between them."""
    for name, values in balance.work.items():
        y = values[states.after]
        ends = np.flatnonzero(np.diff(balance.t) <= 0.0) + 1
        for part in np.split(np.arange(len(values)), ends):
            inside = (states.after >= part[0]) & (states.after <= part[-1])
            if len(part) > 1:
                between = scipy.interpolate.PchipInterpolator(balance.t[part], values[part])
                y[inside] = between(states.t[inside])
        yield Line(name, states.t, y)


def _marked(label: str, names: Sequence[str], t: Array, values: Array, unique: Mask) -> Chart:
    """Reactions; dotted where they are not unique."""
    lines = []
    for name, column, sure in zip(names, values.T, unique.T, strict=True):
        if sure.any():
            lines.append(Line(name, t, np.where(sure, column, np.nan)))
        if not sure.all():
            rest = np.where(sure, np.nan, column)
            lines.append(Line("" if sure.any() else name, t, rest, dotted=True))
    notes = [] if unique.all() else ["dotted: not unique,", "the smallest"]
    return Chart(label, lines, notes=notes)


# -- states over time ------------------------------------------------------------------------------


class Fine(NamedTuple):
    """States of a run as close together as a picture shows them.

    The stored ones are among them, two at one time where there is a jump.
    """

    t: Array
    q: Array
    v: Array
    after: Indices
    """The stored state that each follows on, or is."""


def sample_states(run: Trajectory, points: int = _POINTS) -> Fine:
    """States of a run: the stored ones, and others between them, ``points`` at least."""
    t, part = run.t, (run.t[-1] - run.t[0]) / points
    steps = np.diff(t)
    extra = np.ceil(steps / part).astype(int) - 1 if part > 0 else np.zeros(len(steps), dtype=int)
    extra = np.append(np.maximum(extra, 0), 0)
    after = np.repeat(np.arange(len(t)), extra + 1)
    place = np.arange(len(after)) - np.repeat(np.cumsum(extra + 1) - extra - 1, extra + 1)
    step = np.append(steps, 0.0)[after]
    times = t[after] + step * place / (extra[after] + 1)
    q, v, inner = run.q[after].copy(), run.v[after].copy(), place > 0
    if inner.any():
        _, q[inner], v[inner] = run(times[inner])
    return Fine(times, q, v, after)


def thin_states(states: Fine, most: int = 4 * _POINTS) -> Fine:
    """No more states than a picture shows, for what takes time; both sides of jumps stay."""
    chosen = np.zeros(len(states.t), dtype=bool)
    chosen[:: -(-len(chosen) // most)] = chosen[-1] = True
    jumps = np.flatnonzero(np.diff(states.t) <= 0.0)
    chosen[jumps] = chosen[jumps + 1] = True
    return Fine(states.t[chosen], states.q[chosen], states.v[chosen], states.after[chosen])


class Coordinate(NamedTuple):
    """A coordinate or velocity of a joint over time."""

    joint: str
    label: str
    """As in the columns of `Trajectory.columns`: joint, and number where it has several."""
    unit: str
    values: Array


def coordinates(robot: Mechanism, joint: str, states: Fine) -> list[Coordinate]:
    """Coordinates of a joint [rad, m], components of a quaternion [-].

    What is stored as cosine and sine is shown as an angle, over more than a turn if it made one.
    """
    units, values = joint_positions(robot, joint, states.q)
    return list(_named(joint, [unit or "-" for unit in units], values))


def velocities(robot: Mechanism, joint: str, states: Fine) -> list[Coordinate]:
    """Velocities of a joint [rad/s, m/s]."""
    at = robot.coordinates(joint)
    units = ["m/s" if linear else "rad/s" for linear in robot.is_translation[at.v]]
    return list(_named(joint, units, states.v[:, at.v]))


def _named(joint: str, units: Sequence[str], columns: Array) -> Iterator[Coordinate]:
    for k, (unit, values) in enumerate(zip(units, columns.T, strict=True)):
        yield Coordinate(joint, joint if len(units) == 1 else f"{joint}.{k}", unit, values)


def charts_by_unit(
    t: Array,
    shown: Iterable[Coordinate],
    labels: Mapping[str, str],
    ranks: Ranks | None,
    *,
    zero: bool = True,
) -> list[Chart]:
    """A chart per unit of coordinates over times [s], shape (k,), with the label of the unit.

    Where there are too many for one chart, those with the highest ranks are shown, if they are
    given.
    """
    by_unit: dict[str, list[Coordinate]] = {}
    for coordinate in shown:
        by_unit.setdefault(coordinate.unit, []).append(coordinate)
    charts = []
    for unit, alike in by_unit.items():
        chosen = alike
        if ranks is not None and len(alike) > MOST_LINES:
            order = sorted(alike, key=lambda c: ranks.get(c.label, ranks[c.joint]), reverse=True)
            first = {coordinate.label for coordinate in order[:MOST_LINES]}
            chosen = [coordinate for coordinate in alike if coordinate.label in first]
        lines = [Line(c.label, t, c.values) for c in chosen]
        notes = [f"and {len(alike) - len(chosen)} more"] if len(chosen) < len(alike) else []
        charts.append(Chart(labels[unit], lines, notes=notes, zero=zero))
    return charts
