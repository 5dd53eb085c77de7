"""What a stop takes, and where that goes: steps, events, decisions, the rest.

Functions of pinloop are timed while they run, each without the time of those timed within it; the
timing itself takes about a tenth.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

from .robots import URDF

__all__ = ["stop_times"]

Array = NDArray[np.float64]

_TURNS = 3
_STOPPING = "pinloop.safety.stopping"
_PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "accelerations": (
        (f"{_STOPPING}.stop_equations", "StopEquations", "solve"),
        (f"{_STOPPING}.stop_equations", "StopEquations", "solve_all"),
    ),
    "steps in the kernel, with events": ((f"{_STOPPING}.native_phases", "NativePhases", "take"),),
    "steps in Python": (
        ("pinloop.integrate.stepping", "Stepper", "controlled"),
        ("pinloop.integrate.stepping", "Stepper", "prolonged"),
        ("pinloop.integrate.stepping", "Stepper", "begin"),
    ),
    "looking for events": (
        ("pinloop.integrate.event_location", "Guards", "locate"),
        ("pinloop.integrate.event_location", "Guards", "look"),
    ),
    "decisions": ((f"{_STOPPING}.simulation", "StopSimulation", "_decided"),),
    "set-up, start, plan": (
        (f"{_STOPPING}.stop", "", "prepare_robot"),
        (f"{_STOPPING}.stop", "", "_start"),
        (f"{_STOPPING}.stop", "", "make_plan"),
    ),
    "result": ((f"{_STOPPING}.stop", "", "_make_result"),),
    "loads and ledger, where asked for": (
        (f"{_STOPPING}.result", "", "measure_loads"),
        (f"{_STOPPING}.result", "", "energy_ledger"),
    ),
}


def stop_times(count: int) -> list[dict[str, Any]]:
    """CPU time of stops of category 0 with defaults, and its parts, per robot [s]."""
    found = []
    for name, draw in (("six_axis_arm", _arm_state), ("palletizer", _palletizer_state)):
        robot, rng = pl.load(URDF / f"{name}.urdf"), np.random.default_rng(0)
        brakes = pl.Brakes.from_yaml(URDF / f"{name}.brakes.yaml")
        states = [draw(robot, rng) for _ in range(count)]
        times, results = [], []
        for state in states:
            turns = []
            for _ in range(_TURNS):
                begin = thread_time()
                stop = pl.stop(robot, *state, brakes=brakes)
                turns.append(thread_time() - begin)
            times.append(min(turns))
            results.append(stop)
        with _timed() as parts:
            begin = thread_time()
            for state in states:
                assert pl.stop(robot, *state, brakes=brakes).ledger
            whole = thread_time() - begin
        parts["all else"] = whole - sum(parts.values())
        found.append(
            {
                "robot": name,
                "time": statistics.median(times),
                "parts": {name: part / count for name, part in parts.items()},
                "phases": statistics.mean(len(x.history.phases) for x in results),
                "evaluations": statistics.mean(x.run.evaluations for x in results),
                "load": os.getloadavg()[0],
            }
        )
    return found


def _arm_state(robot: pl.Mechanism, rng: np.random.Generator) -> tuple[Array, Array]:
    """Within four fifths of the limits, at any speed."""
    model = robot.model
    q = rng.uniform(0.8 * model.lowerPositionLimit, 0.8 * model.upperPositionLimit)
    return q, model.upperVelocityLimit * rng.uniform(-1.0, 1.0, robot.nv)


def _palletizer_state(robot: pl.Mechanism, rng: np.random.Generator) -> tuple[Array, Array]:
    """An assembled pose within 0.3 rad of the reference, its drives at up to 1 rad/s."""
    drives = "base_yaw", "shoulder", "elbow", "wrist"
    q = pl.assemble(robot, {name: float(rng.uniform(-0.3, 0.3)) for name in drives})
    speeds = {name: float(rng.uniform(-1.0, 1.0)) for name in drives}
    return q, pl.consistent_velocity(robot, q, speeds)


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    """The time of each part [s], as long as the block lasts."""
    parts, inner, before = dict.fromkeys(_PARTS, 0.0), [0.0], []

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            inner.append(0.0)
            begin = thread_time()
            try:
                return function(*arguments, **options)
            finally:
                taken = thread_time() - begin
                parts[part] += taken - inner.pop()
                inner[-1] += taken

        return call

    try:
        for part, functions in _PARTS.items():
            for module, kind, name in functions:
                owner = getattr(import_module(module), kind) if kind else import_module(module)
                before.append((owner, name, getattr(owner, name)))
                setattr(owner, name, timed(part, getattr(owner, name)))
        yield parts
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
