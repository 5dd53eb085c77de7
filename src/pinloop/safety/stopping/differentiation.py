"""What a stop depends on: derivatives of its times, angles, paths and energies by its inputs.

They belong to the sequence of events of the stop: who comes to rest, comes loose, is caught, in
this order. A stop with another sequence has others, and where one becomes the other there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...constraints.relative_motion import BodyPoint
from ...dynamics.derivatives import joint_chain
from ...errors import BadValue, UnknownName
from ...model.mechanism import Mechanism
from ...tables.number_format import units_of
from ...tables.report import Table
from ...tolerances import ONE_CAUSE, TIME_SUM
from .happenings import Happening
from .history import StopHistory
from .input_changes import InputChanges
from .inputs import StopInput, distinct_names, stop_inputs
from .loads import SINKS
from .result import StopResult
from .sensitivity import StopSensitivity
from .travel import stand_since
from .variations import StopVariation, ToolSpeed

_NEAR = 0.01
"""Part by which an input may change with the sequence of events staying as it is."""
_DRIVES = "drives"
_MOST = 12
"""Inputs in a report."""


def differentiate_stop(
    stop: StopResult, of: Iterable[str] | None = None, to: Iterable[str] | None = None
) -> StopSensitivity:
    """Differentiate a stop; see `StopResult.sensitivity`."""
    if stop.outcome != "stopped":
        raise BadValue(
            f"the stop ends as '{stop.outcome}': only stops that end at rest and held have "
            "sensitivities"
        )
    history = stop.history
    outputs = _outputs(stop, of)
    inputs = stop_inputs(history, to)
    equations = history.equations()
    speeds = list(dict.fromkeys(x.speed for x in outputs if x.speed is not None))
    changes = InputChanges(history, equations, inputs)
    powers = any(x.sinks is not None for x in outputs)
    variation = StopVariation(history, equations, changes, speeds, powers=powers)
    values, rows = zip(*(output.read(variation) for output in outputs), strict=True)
    return StopSensitivity(
        tuple(output.name for output in outputs),
        tuple(output.unit for output in outputs),
        np.array(values),
        tuple(each.name for each in inputs),
        tuple(each.unit for each in inputs),
        np.array([each.value for each in inputs]),
        np.array(rows).reshape(len(outputs), len(inputs)),
        tuple(_warnings(variation, inputs, changes)),
        stop.robot.name,
    )


@public
def what_it_depends_on(stop: StopResult) -> Table:
    """Change of tool path and stopping time with 1 % more of each input, a section of reports.

    The twelve inputs that count most; see `StopResult.sensitivity` for all.
    """
    return stop.sensitivity(["path", "stopping_time"]).block("path", "stopping_time", most=_MOST)


# -- outputs --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Output:
    """Something that came out of a stop: a path, whose value is not known yet, or some work.

    Or something else, if there is neither a speed nor what takes work.
    """

    name: str
    unit: str
    value: float
    stop: StopResult
    speed: ToolSpeed | None = None
    sinks: list[int] | None = None

    def read(self, variation: StopVariation) -> tuple[float, Array]:
        """What it was, and its derivatives, shape (k,)."""
        if self.speed is not None:
            place = variation.speeds.index(self.speed)
            return float(variation.lengths[place]), variation.longer[place]
        if self.sinks is not None:
            return self.value, variation.work[self.sinks].sum(axis=0)  # others may have none
        return self.value, self._change(variation)

    def _change(self, variation: StopVariation) -> Array:
        history, kind = self.stop.history, self.name.partition(":")[0]
        if kind == "stopping_time":
            if self.value == 0.0:  # nothing moved
                return np.zeros(variation.changes.shape[1])
            since = np.where(history.train.single, stand_since(history), -np.inf)
            last = np.flatnonzero(since >= np.nanmax(since) - TIME_SUM).tolist()
            return _last_change(history, variation, last)
        if kind in ("power_off", "brakes_closed"):
            return _instant_change(variation, kind, self.value)
        joint = self.name.partition(":")[2]
        if kind == "displacement":
            return self._displacement(joint or self.stop.tool, variation)
        column = history.train.columns[joint]
        if kind == "time":
            return _time_change(history, variation, column)
        return np.asarray(variation.changes[column] - variation.inputs.initial[column])

    def _displacement(self, frame: str, variation: StopVariation) -> Array:
        """Change of the straight distance."""
        run, n = self.stop.run, self.stop.robot.nv
        places, moves = zip(
            *(_placed(self.stop.robot, frame, run.q[k]) for k in (0, -1)), strict=True
        )
        way = places[1] - places[0]
        change = moves[1] @ variation.changes[:n] - moves[0] @ variation.inputs.initial[:n]
        length = float(np.linalg.norm(way))
        return np.asarray(way @ change / length) if length else np.zeros(change.shape[1])


def _placed(robot: Mechanism, frame: str, q: Array) -> tuple[Array, Array]:
    """Place of a frame in the world, and its Jacobian, shape (3, nv)."""
    point = BodyPoint(robot, frame)
    with robot.workspace() as data:
        pin.computeJointJacobians(robot.model, data, q)
        pin.updateFramePlacements(robot.model, data)
        return point.position(data), point.jacobian(data)


def _time_change(history: StopHistory, variation: StopVariation, column: int) -> Array:
    """By how much later a coordinate comes to rest for good."""
    since, count = float(stand_since(history)[column]), variation.changes.shape[1]
    if since == history.run.t[0]:
        return np.zeros(count)
    for happening in variation.happenings:
        if happening.t == since:
            return happening.change_of(column)
    variation.notes.append(
        f"{history.train.names[column]} has no dry friction to come to rest by: its time has no "
        "derivative"
    )
    return np.full(count, np.nan)


def _instant_change(variation: StopVariation, kind: str, t: float) -> Array:
    """By how much later the power goes, or the last brake closes."""
    for happening in variation.happenings:
        if abs(happening.t - t) <= TIME_SUM:
            off = [cause.change for cause in happening.causes if cause.name == "power off"]
            return off[0] if off and kind == "power_off" else happening.change
    return np.full(variation.changes.shape[1], np.nan)


def _last_change(history: StopHistory, variation: StopVariation, last: list[int]) -> Array:
    """By how much later the last coordinates come to rest, all at once; unknown where they part."""
    every = np.array([_time_change(history, variation, column) for column in last])
    parted = ~(np.ptp(every, axis=0) <= ONE_CAUSE * np.abs(every).max(axis=0))
    if parted.any() and np.isfinite(every).all():
        names = ", ".join(history.train.names[column] for column in last)
        variation.notes.append(f"{names} come to rest at once: their last has no derivative")
    return np.where(parted, np.nan, every[0])


def measure_outcome(stop: StopResult, name: str) -> tuple[float, str]:
    """What came out of a stop by its name, see `StopResult.sensitivity`, and its unit."""
    kind, _, of = name.partition(":")
    train = stop.history.train
    if kind == "path":
        return stop.point(of or None).length, "m"
    if kind == "displacement":
        return stop.point(of or None).displacement, "m"
    if kind == "stopping_time" and not of:
        return stop.stopping_time, "s"
    if kind in ("power_off", "brakes_closed") and not of:
        when: float | None = getattr(stop, kind)
        if when is None:
            raise BadValue(f"the stop has no '{kind}': its category keeps the power on")
        return when, "s"
    if kind == "time" and of in train.columns:
        return stop.joints[of].time, "s"
    if kind == "angle" and of in train.columns:
        return stop.joints[of].angle, units_of(stop.robot, of).si
    if kind == "heat" and of in train.columns:
        return stop.joints[of].dissipated, "J"
    if kind == "energy" and of in (*SINKS, _DRIVES):
        ledger = stop.ledger
        return (ledger.drive_work if of == _DRIVES else float(ledger.dissipated[of].sum())), "J"
    every = ["path", "displacement", "stopping_time", "power_off", "brakes_closed"]
    every += [f"energy:{k}" for k in (*SINKS, _DRIVES)]
    every += [f"{what}:{joint}" for what in ("angle", "time", "heat") for joint in train.columns]
    raise UnknownName("output of a stop", name, every)


def _outputs(stop: StopResult, names: Iterable[str] | None) -> list[_Output]:
    """The outputs that are named; times, angles and the path of the tool by default."""
    columns = stop.history.train.columns
    nv, sinks = stop.robot.nv, (*SINKS, _DRIVES)
    if names is None:
        chosen = ["path", "stopping_time", *(f"angle:{name}" for name in columns)]
    else:
        chosen = [*distinct_names(names, "of")]
    outputs = []
    for name in chosen:
        kind, _, of = name.partition(":")
        if kind == "path":  # whose length is measured along with its changes
            speed = ToolSpeed(joint_chain(stop.robot), stop.robot.frame_id(of or stop.tool))
            outputs.append(_Output(name, "m", np.nan, stop, speed))
            continue
        value, unit = measure_outcome(stop, name)
        own = None
        if kind == "heat":
            own = [k * nv + columns[of] for k in range(len(SINKS))]
        elif kind == "energy":
            own = [sinks.index(of) * nv + k for k in range(nv)]
        outputs.append(_Output(name, unit, value, stop, sinks=own))
    return outputs


def _warnings(
    variation: StopVariation, inputs: Sequence[StopInput], changes: InputChanges
) -> Iterator[str]:
    """What to keep in mind of the derivatives."""
    for k in changes.unknown.nonzero()[0].tolist():
        of = inputs[k]
        if of.quantity == "speed":
            yield f"{of.joint} is at rest at the signal: there is no derivative by its speed"
        else:
            yield f"drives slow down on their path as their torque allows: none by '{of.name}'"
    yield from dict.fromkeys(variation.notes)
    yield from _about_to_change(variation.happenings, inputs)


def _about_to_change(happenings: Sequence[Happening], inputs: Sequence[StopInput]) -> Iterator[str]:
    """Inputs of which a small part more or less lets events come in another order."""
    nearest: dict[tuple[str, str], tuple[float, str]] = {}
    for before, after in pairwise(happenings):
        gap, closing = after.t - before.t, before.change - after.change
        for k, of in enumerate(inputs):
            if not np.isfinite(closing[k]) or closing[k] == 0.0 or of.value == 0.0:
                continue
            part = gap / abs(closing[k] * of.value)
            names = before.causes[0].name, after.causes[0].name
            if part < min(_NEAR, nearest.get(names, (_NEAR, ""))[0]):
                nearest[names] = part, of.name
    for (first, second), (part, name) in nearest.items():
        yield (
            f"{100.0 * part:.2g} % of '{name}' let '{first}' and '{second}' change places: beyond "
            "that other sensitivities hold"
        )
