"""`simulate_many`: runs that differ in where they start, in a mode or in parameters, over threads.

What a single run does is `simulate`'s; here is only who computes which run, and what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from ..boundary.arguments import as_seconds, flat_numbers, public, require_jobs
from ..boundary.marks import Array
from ..boundary.values import stored_fields
from ..constraints.rows import Row
from ..dynamics import Formulation
from ..dynamics.forces import Force
from ..dynamics.parameters import Parameter, with_parameters
from ..errors import BadValue, PinloopError, shown
from ..integrate import MuntheKaas
from ..model.mechanism import Mechanism, require_robot
from .events import Event, JointLimits
from .modes import Mode
from .plain_runs import PlainRuns
from .simulate import Limits, check_settings, simulate
from .stabilization import Projection
from .trajectory import State, Trajectory

_TASKS = 4
"""Tasks per thread, so that none waits long for the others at the end."""


class RunSettings(TypedDict, total=False):
    """What all runs of a batch have in common, see `simulate`."""

    start: float
    tau: Callable[[float, Array, Array], ArrayLike] | None
    forces: Sequence[Force]
    rows: Sequence[Row]
    events: Sequence[Event | JointLimits]
    limits: Limits
    losses: bool
    formulation: Formulation | None
    method: MuntheKaas | None
    stabilization: Projection | None
    regularization: bool
    save_every: float | None


class BatchSettings(RunSettings, total=False):
    """The same, and whether whole trajectories are kept."""

    keep: bool


@public
@dataclass(frozen=True, eq=False)
class Batch:
    """What came out of many runs, n of them; numbers of what a run did not reach are NaN.

    Args:
        t: time of the last state of each [s], shape (n,).
        q: configuration there, shape (n, nq).
        v: velocity there, shape (n, nv).
        messages: how each ended, as `Trajectory.message` says; of one that failed, why.
        failed: mask of the runs that could not be computed to their end, shape (n,).
        evaluations: of the accelerations, shape (n,).
        samples: states at the times that were asked for, of shapes (k,), (n, k, nq) and (n, k, nv).
        trajectories: the runs, if they were asked for; None of those without a single state.
    """

    t: Array
    q: Array
    v: Array
    messages: tuple[str, ...]
    failed: NDArray[np.bool_]
    evaluations: NDArray[np.int64]
    samples: State = field(repr=False)
    trajectories: tuple[Trajectory | None, ...] = field(default=(), repr=False)

    __getstate__ = stored_fields

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        failed = int(self.failed.sum())
        return f"<Batch of {len(self)} runs, {len(self) - failed} done, {failed} failed>"

    def __str__(self) -> str:
        why = (f"run {k}: {self.messages[k]}" for k in np.flatnonzero(self.failed)[:5])
        more = int(self.failed.sum()) - 5
        return "\n".join([repr(self), *why, *([f"and {more} more"] if more > 0 else [])])


@public
def simulate_many(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    until: float | str,
    parameters: Sequence[tuple[Parameter, ArrayLike]] = (),
    modes: Mode | Sequence[Mode | None] | None = None,
    times: ArrayLike = (),
    jobs: int = -1,
    **settings: Unpack[BatchSettings],
) -> Batch:
    """Simulate a robot from many starts, in many modes or with many values of its parameters.

    Each run has the same bits as if `simulate` had computed it alone, whatever the others do and
    however many jobs there are. An array without an axis for the runs holds for all of them. A
    function of yours (``tau``, guards of events) is called from several threads.

    Parallel by joblib, in threads; under ``joblib.parallel_config(backend="loky")`` in processes,
    which start slowly, but share more than the kernel's part of the work.

    Args:
        robot: the mechanism.
        q: assembled configurations at the start, shape (n, nq), or (nq,).
        v: velocities at the start, shape (n, nv), or (nv,); at rest by default.
        until: end of the runs [s].
        parameters: parameters with their values in each run, shape (n, numbers), or (n,) of a
            single number: robot and forces are as `pl.parameters.with_parameters` gives them.
        modes: joints locked and loops open at the start: one for all, or a list of n.
        times: times at which the states of all runs are wanted [s], shape (k,).
        jobs: number of threads; all cores by default.
        settings: everything else that `simulate` takes but a progress bar; and ``keep=True`` to
            keep the whole trajectories, without which memory does not grow with their length.

    Returns:
        Arrays, with one row per run.

    Raises:
        BadValue: shapes that do not fit together, or settings that no run can have. What is wrong
            with a single run is in the batch: its other runs are there.
    """
    require_robot(robot)
    keep = settings.pop("keep", False)
    alike: RunSettings = {**settings}  # type: ignore[typeddict-unknown-key]
    until = as_seconds(until, "until")
    check_settings(robot, until=until, **alike)
    starts = _Starts.of(robot, q, v, parameters, modes, settings.get("forces", ()))
    wanted = flat_numbers(times, "times") if np.size(times) else np.zeros(0)
    require_jobs(jobs, "threads")
    size = -(-starts.count // (_TASKS * max(1, effective_n_jobs(jobs))))
    tasks = (
        delayed(_compute)(starts.part(first, first + size), until, wanted, alike, keep=keep)
        for first in range(0, starts.count, size)
    )
    parts: list[Batch] = [*Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(tasks)]
    return _joined(parts)


def _compute(
    starts: _Starts, until: float, times: Array, settings: RunSettings, *, keep: bool
) -> Batch:
    """Some runs, one after the other."""
    results = _Results(starts.robot, starts.count, times, keep=keep)
    alone = keep or len(starts.parameters) > 0
    plain = None if alone else PlainRuns.of(starts.robot, until, settings)
    for k in range(starts.count):
        q, v = starts.q[k], starts.v[k]
        run = plain.run(starts.modes[k], q, v) if plain else None
        try:
            if run is None:
                robot, mode, forces = starts.run(k, settings.get("forces", ()))
                given: RunSettings = {**settings, "forces": forces}
                run = simulate(robot, q, v, until=until, mode=mode, **given)
        except PinloopError as error:
            results.add(k, getattr(error, "trajectory", None), str(error), failed=True)
            continue
        if run.message.startswith("interrupted"):
            raise KeyboardInterrupt
        results.add(k, run, run.message)
    return results.batch()


def _joined(parts: Sequence[Batch]) -> Batch:
    """Batches, one after the other."""
    t, q, v, failed, evaluations = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("t", "q", "v", "failed", "evaluations")
    )
    messages = tuple(message for part in parts for message in part.messages)
    inside = (np.concatenate([getattr(part.samples, name) for part in parts]) for name in "qv")
    samples = State(parts[0].samples.t, *inside)
    runs = tuple(run for part in parts for run in part.trajectories)
    return Batch(t, q, v, messages, failed, evaluations, samples, runs)


@dataclass(frozen=True, eq=False)
class _Starts:
    """Where runs start, and what they have instead of what the robot's file says; row by row."""

    robot: Mechanism
    q: Array
    v: Array
    modes: tuple[Mode | None, ...]
    parameters: tuple[tuple[Parameter, Array], ...]

    @classmethod
    def of(
        cls,
        robot: Mechanism,
        q: ArrayLike,
        v: ArrayLike | None,
        parameters: Sequence[tuple[Parameter, ArrayLike]],
        modes: Mode | Sequence[Mode | None] | None,
        forces: Sequence[Force],
    ) -> _Starts:
        """All of them, see `simulate_many`."""
        still, counts = np.zeros(robot.nv) if v is None else v, dict[str, int]()
        given = [("q", q, robot.nq), ("v", still, robot.nv)]
        for parameter, values in parameters:
            labels = parameter.labels(robot)
            given.append((f"parameter '{labels[0]}'", values, len(labels)))
        rows = [_rows(what, values, size, counts) for what, values, size in given]
        if modes is not None and not isinstance(modes, Mode):
            counts["modes"] = len(modes)
        if len(set(counts.values())) > 1:
            parts = ", ".join(f"{count} of {what}" for what, count in counts.items())
            raise BadValue(f"there are {parts}; give as many of each, or one for all runs")
        count = next(iter(counts.values()), 1)
        if count == 0:
            raise BadValue("there is no run in the batch; give at least one start")
        with suppress(BadValue):  # the numbers of a run are its own matter, names are everybody's
            first = ((p, x[0]) for (p, _), x in zip(parameters, rows[2:], strict=True))
            with_parameters(robot, first, forces)
        q0, v0, *others = (np.broadcast_to(x, (count, x.shape[1])) for x in rows)
        alike = (modes,) * count if isinstance(modes, Mode | None) else tuple(modes)
        names = (parameter for parameter, _ in parameters)
        return cls(robot, q0, v0, alike, tuple(zip(names, others, strict=True)))

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.q)

    def part(self, first: int, last: int) -> _Starts:
        """Some of them."""
        at = slice(first, last)
        values = tuple((parameter, x[at]) for parameter, x in self.parameters)
        return _Starts(self.robot, self.q[at], self.v[at], self.modes[at], values)

    def run(
        self, k: int, forces: Sequence[Force]
    ) -> tuple[Mechanism, Mode | None, Sequence[Force]]:
        """Robot, mode and forces of one of them."""
        if not self.parameters:
            return self.robot, self.modes[k], forces
        values = [(parameter, x[k]) for parameter, x in self.parameters]
        robot, acting = with_parameters(self.robot, values, forces)
        return robot, self.modes[k], acting


def _rows(what: str, values: ArrayLike, size: int, counts: dict[str, int]) -> Array:
    """Numbers of each run, shape (n, size), or (1, size) of all; how many runs they are for."""
    try:
        rows = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(values)}, which is not made of numbers") from None
    if size == 1 and rows.ndim < 2 and what not in ("q", "v"):
        rows = rows[..., None]
    if rows.ndim not in (1, 2) or rows.shape[-1] != size:
        raise BadValue(f"{what} has shape {rows.shape}; it must be (n, {size}) or ({size},)")
    if rows.ndim == 2:
        counts[what] = len(rows)
    return np.atleast_2d(rows)


class _Results:
    """Arrays with a row for each run, which its thread fills."""

    def __init__(self, robot: Mechanism, count: int, times: Array, *, keep: bool) -> None:
        nq, nv = robot.nq, robot.nv
        self._t, self._failed = np.full(count, np.nan), np.zeros(count, dtype=bool)
        self._q, self._v = np.full((count, nq), np.nan), np.full((count, nv), np.nan)
        self._evaluations = np.zeros(count, dtype=np.int64)
        self._messages, self._times = [""] * count, times
        self._samples = tuple(np.full((count, len(times), n), np.nan) for n in (nq, nv))
        self._runs: list[Trajectory | None] = [None] * count if keep else []

    def add(self, k: int, run: Trajectory | None, message: str, *, failed: bool = False) -> None:
        """Take the results of a run; None if there is not a single state."""
        self._messages[k], self._failed[k] = message, failed
        if run is None:
            return
        self._t[k], self._q[k], self._v[k] = run.t[-1], run.q[-1], run.v[-1]
        self._evaluations[k] = run.evaluations
        inside = (self._times >= run.t[0]) & (self._times <= run.t[-1])
        if inside.any():
            _, self._samples[0][k, inside], self._samples[1][k, inside] = run(self._times[inside])
        if self._runs:
            self._runs[k] = run

    def batch(self) -> Batch:
        """What came out."""
        return Batch(
            self._t,
            self._q,
            self._v,
            tuple(self._messages),
            self._failed,
            self._evaluations,
            State(self._times, *self._samples),
            tuple(self._runs),
        )
