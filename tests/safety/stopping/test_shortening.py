"""Tests of `pinloop.integrate.Stepper`: steps that go on for an instant, in stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import StepMemory
from pinloop.safety.stopping.simulation import StopSimulation

from ...states import URDF
from ...states import robot as loaded
from .robots_to_stop import wild_stop


def simulations(monkeypatch: pytest.MonkeyPatch) -> list[StopSimulation]:
    """Simulations of a looped robot and of arms, some with joints in space."""
    robot = loaded("palletizer")
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 1.0, "elbow": 0.5})
    run, found = StopSimulation.go, []

    def go(self: StopSimulation, *arguments: Any) -> bool:
        found.append(self)
        return run(self, *arguments)

    monkeypatch.setattr(StopSimulation, "go", go)
    for category in (0, 1):
        pl.stop(robot, q, v, brakes=URDF / "palletizer.brakes.yaml", category=category)
    for seed in (0, 3, 5):
        wild = wild_stop(seed)
        pl.stop(wild.robot, wild.q, wild.v, brakes=wild.by, until=0.4)
    return found


@pytest.mark.parametrize("part", [1e-8, -1e-8])
def test_an_instant_more_is_as_good_as_the_step_taken_again(
    part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States, ways and accelerations are those that the method gives; speeds change at all."""
    seen = 0
    for simulation in simulations(monkeypatch):
        run = simulation.recording.states()
        phases = simulation.phases
        moving = np.flatnonzero((np.diff(run.t) > 0.0) & (run.v[:-1].any(1) | run.v[1:].any(1)))
        for k in moving[::4].tolist():
            phase = phases[run.mode[k]]
            simulation.phase = phase
            simulation.equations.enter(phase)
            manifold = simulation.group.in_mode(phase.mode)
            flow = replace(simulation.flow(phase), manifold=manifold)
            simulation.projector = None  # a correction of the loops is larger than an instant
            t, h = run.t[k], run.t[k + 1] - run.t[k]
            start = run.q[k], run.v[k], run.a[k]
            step, _ = simulation.stepper.fixed(flow, StepMemory(), t, t + h, start)
            end = step.t1 + part * h
            again, _ = simulation.stepper.fixed(flow, StepMemory(), t, end, start)
            more = simulation.stepper.prolonged(flow, StepMemory(), step, end)
            assert (more.t0, more.t1) == (t, end)
            for name in ("q0", "v0", "a0"):
                np.testing.assert_array_equal(getattr(more, name), getattr(step, name))
            for name in ("psi", "q1", "v1", "a1"):
                given, expected = getattr(more, name), getattr(again, name)
                size = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(given, expected, rtol=0, atol=3e-13 * size)
            assert np.all(more.v1[phase.stuck] == 0.0)
            change = abs(part) * h * np.abs(step.a1).max()
            seen += bool(np.abs(more.v1 - step.v1).max() > 0.5 * change > 1e-12)
    assert seen > 5
