"""Tests of the step control: errors, factors, limits, and methods that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import (
    Flow,
    MuntheKaas,
    NoBranch,
    StepControl,
    StepFailed,
    StepMemory,
    Stepper,
)
from pinloop.simulation.modes import RobotManifold

from ..screw_tables import Array
from ..states import robot
from .orders import free_body

every_controlled = pytest.mark.parametrize("name", ["bs32", "dopri5", "dop853"])


@every_controlled
def test_error_falls_with_the_tolerance(name: str) -> None:
    case = free_body("")
    found, evaluations = [], []
    for tolerance in (1e-4, 1e-6, 1e-8):
        run = pl.simulate(
            case.robot, case.q, case.v, until=case.until,
            method=MuntheKaas(name, rtol=tolerance, atol=tolerance),
        )  # fmt: skip
        found.append(case.error(run.q[-1], run.v[-1]))
        evaluations.append(run.evaluations)
        assert found[-1] < 1e3 * tolerance
    assert found[0] > 3 * found[1] > 9 * found[2]
    assert evaluations == sorted(evaluations) and evaluations[0] < evaluations[2]


@every_controlled
def test_the_first_try_knows_the_error_of_a_step(name: str) -> None:
    """The estimate is of the size of the true error of one step of the lower formula or larger."""
    case = free_body("")
    method = MuntheKaas(name)
    manifold = RobotManifold(case.robot)
    equations = pl.EquationsOfMotion(case.robot)
    state = case.q, case.v, equations.acceleration(0.0, case.q, case.v)
    estimates, true = [], []
    for h in (0.1, 0.05):
        attempt = method.attempt(manifold, equations.acceleration, 0.0, h, state)
        fine = state
        for k in range(20):
            part = MuntheKaas("dop853").attempt(
                manifold, equations.acceleration, k * h / 20, h / 20, fine
            )
            fine = part.q, part.v, equations.acceleration((k + 1) * h / 20, part.q, part.v)
        estimates.append(max(np.abs(e[1]).max() for e in attempt.errors))
        true.append(float(np.abs(attempt.v - fine[1]).max()))
        if name == "dop853":  # its estimates do without the derivative at the end
            assert attempt.a is None
            continue
        assert attempt.a is not None
        np.testing.assert_allclose(
            attempt.a, equations.acceleration(h, attempt.q, attempt.v), rtol=1e-12
        )
    assert estimates[0] > true[0] and estimates[1] > true[1]
    lowest = {"bs32": 3, "dopri5": 5, "dop853": 4}[name]
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(lowest, abs=0.7)


def kick(at: float, size: float) -> Callable[[float, Array, Array], Array]:
    """Torques that jump at a time."""
    return lambda t, q, v: size * (t > at) * np.ones(len(v))


def test_steps_stay_within_the_largest() -> None:
    machine = robot("planar_3r")
    method = MuntheKaas(rtol=1e-3, atol=1e-3, largest=0.013)
    run = pl.simulate(machine, machine.neutral, until=0.5, method=method)
    assert np.diff(run.t).max() <= 0.013 * (1 + 1e-12)
    assert np.diff(run.t).max() > 0.0129


def test_steps_below_the_smallest_fail_with_what_there_is() -> None:
    machine = robot("planar_3r")
    with pytest.raises(pl.SimulationFailed, match=r"step fell below 0\.001 s") as caught:
        pl.simulate(
            machine, machine.neutral, until=0.5, tau=kick(0.2, 1e4),
            method=MuntheKaas(smallest=1e-3, rtol=1e-6),
        )  # fmt: skip
    assert caught.value.reason == "step too small"
    run = caught.value.trajectory
    assert 0.1 < run.t[-1] <= 0.2 and len(run.t) > 3 and run.rejected > 0
    assert np.all(np.diff(run.t) >= 1e-3)


def test_steps_shrink_at_a_jump_and_grow_again() -> None:
    machine = robot("planar_3r")
    run = pl.simulate(machine, machine.neutral, until=0.5, tau=kick(0.2, 500.0))
    steps = np.diff(run.t)
    at = int(np.argmin(np.abs(run.t - 0.2)))
    assert steps[at - 1 : at + 1].min() < 0.1 * np.median(steps[: at // 2])
    assert steps[-3] > 10 * steps[at - 1 : at + 1].min()
    assert run.rejected > 0


def test_the_first_step_is_cautious() -> None:
    control = StepControl(MuntheKaas("dopri5", rtol=1e-8), np.ones(2))
    rest, fast = (
        control.first_step(np.zeros(2), np.zeros(2), 10.0),
        control.first_step(np.array([1e3, 0.0]), np.zeros(2), 10.0),
    )
    assert 0 < fast < 1e-3 * rest and rest <= 1.0
    assert control.first_step(np.zeros(2), np.array([0.0, 1e8]), 10.0) < 1e-4
    small = StepControl(MuntheKaas("dopri5", largest=1e-7), np.ones(2))
    assert small.first_step(np.zeros(2), np.zeros(2), 10.0) == 1e-7


def test_factors_of_the_control() -> None:
    control = StepControl(MuntheKaas("dopri5"), np.ones(1))
    first = control.FIRST_ERROR
    assert control.grow(1e-9, first) == (5.0, first)
    assert control.shrink(1e9) == control.shrink(np.nan) == 0.2
    assert 0.2 <= control.shrink(2.0) < 0.9
    assert control.grow(1.0, first)[0] < 1.0 == control.grow(1.0, first)[1]
    # A step whose error grows makes the next one shorter than one whose error stays.
    assert control.grow(0.5, 0.1)[0] < control.grow(0.5, 0.5)[0]
    e = np.array([[[2e-8], [0.0]]])
    assert control.error(e, np.zeros(1), np.zeros(1)) == pytest.approx(2 / 2, rel=1e-12)
    # Velocities are judged relative to their size: 1e-8 + 1e-8 * 99.
    e = np.array([[[0.0], [2e-6]]])
    assert control.error(e, np.array([99.0]), np.zeros(1)) == pytest.approx(2.0, rel=1e-12)


def test_the_two_estimates_of_dop853_are_combined() -> None:
    """``e5^2 / sqrt(e5^2 + 0.01 e3^2)`` (Hairer, Norsett, Wanner, II.10)."""
    control = StepControl(MuntheKaas("dop853"), np.ones(1))
    none = np.zeros(1)

    def error(fifth: float, third: float) -> float:
        pairs = np.array([[[2e-8 * e], none] for e in (fifth, third)])
        return control.error(pairs, none, none)

    assert error(3.0, 40.0) == pytest.approx(9 / 5)
    assert error(0.1, 0.0) == pytest.approx(0.1)
    assert error(0.0, 5.0) == 0.0 and error(0.0, 0.0) == 0.0


def test_lengths_are_judged_in_characteristic_lengths() -> None:
    """The same machine ten times as large, at the same angles, takes the same steps."""
    control = [StepControl(MuntheKaas("dopri5"), np.array([1.0, scale])) for scale in (1.0, 10.0)]
    small = np.array([[[1e-7, 2e-7], [3e-7, 1e-7]]])
    large = small * [1, 10]
    v = np.array([2.0, 3.0])
    assert control[0].error(small, v, v) == pytest.approx(
        control[1].error(large, v * [1, 10], v * [1, 10])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rk5"}, "no method 'rk5'; known: euler"),
        ({"name": "rk4"}, "no error estimate; give it a step"),
        ({"name": "euler"}, "no error estimate"),
        ({"step": 0.0}, "step is 0"),
        ({"step": -1.0}, "step is -1"),
        ({"step": np.inf}, "step is inf"),
        ({"step": np.nan}, "step is nan"),
        ({"rtol": -1e-3}, "rtol is -0.001"),
        ({"atol": 0.0}, "atol is 0"),
        ({"atol": np.nan}, "atol is nan"),
        ({"smallest": -1.0}, "smallest is -1"),
        ({"largest": 0.0}, "largest is 0"),
        ({"smallest": 1.0, "largest": 0.1}, "in order"),
    ],
)
def test_methods_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        MuntheKaas(**options)


def test_a_last_step_that_cannot_be_taken_fails() -> None:
    """Close to its end too: a step below the smallest is tried once, not for ever."""
    body, tries = robot("six_axis_arm"), []

    def nowhere(t: float, q: Array, v: Array) -> Array:
        tries.append(t)
        assert len(tries) < 1000, "the step is tried for ever"
        return np.full(body.nv, 1e30 * len(tries))

    flow = Flow(nowhere, RobotManifold(body), lambda t, q, v: (q, v, False))
    stepper = Stepper(MuntheKaas(), np.ones(body.nv))
    state = body.neutral, np.zeros(body.nv), np.zeros(body.nv)
    with pytest.raises(StepFailed, match="fell below"):
        stepper.controlled(flow, StepMemory(), 1.0, 1e-3, 1.0 + 5e-13, state)


# -- where branches meet --------------------------------------------------------------------


class Even(NamedTuple):
    """Constraints that are as independent everywhere."""

    regularity: float
    steepest: float = 0.0

    def regularity_at(self, t: float, q: Array) -> float:
        return self.regularity


class Meeting:
    """Constraints that depend on each other at some times."""

    regularity, steepest = 1.0, 10.0

    def __init__(self, at: tuple[float, ...]) -> None:
        self._at = at

    def regularity_at(self, t: float, q: Array) -> float:
        return min(abs(t - at) for at in self._at)


def crossing(*at: float, fails: bool = False) -> tuple[Flow, list[str]]:
    """A motion whose constraints degenerate at times, and what has been asked for, in order."""
    body, rows, asked = robot("six_axis_arm"), Meeting(at), []

    def project(t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        rows.regularity = rows.regularity_at(t, q)
        return q, v, False

    def plain(t: float, q: Array, v: Array) -> Array:
        asked.append("rows")
        return np.zeros(body.nv)

    def along(t: float, q: Array, v: Array) -> Array:
        asked.append("branch")
        return np.zeros(body.nv)

    def branch(t: float, q: Array, v: Array) -> Flow:
        asked.append(f"opened at {t:.1f}")
        if fails:
            raise NoBranch("there is none")
        return replace(flow, acceleration=along, branch=None)

    flow = Flow(plain, RobotManifold(body), project, rows, branch)
    return flow, asked


def walk(
    flow: Flow,
    method: MuntheKaas,
    h: float,
    count: int,
    memory: StepMemory = StepMemory(taken=1),  # noqa: B008 (frozen)
) -> StepMemory:
    body, t = robot("six_axis_arm"), 0.0
    stepper = Stepper(method, np.ones(body.nv))
    for _ in range(count):
        state = body.neutral, np.ones(body.nv), np.zeros(body.nv)
        if method.step is not None:
            step, memory = stepper.fixed(flow, memory, t, t + h, state)
        else:
            step, _, memory = stepper.controlled(flow, memory, t, h, 10.0, state)
        t = step.t1
    return memory


@pytest.mark.parametrize("method", [MuntheKaas(), MuntheKaas("rk4", step=0.5)])
def test_a_step_that_ends_near_other_branches_is_taken_again_on_its_own(method: MuntheKaas) -> None:
    """From there on steps follow the branch, until one starts where the rows are regular again."""
    flow, asked = crossing(1.0)
    memory = walk(flow, method, 0.5, 4)
    order = [name for k, name in enumerate(asked) if k == 0 or asked[k - 1] != name]
    assert order == ["rows", "opened at 0.5", "branch", "rows"] and memory.branch is None
    # Two steps before the pose, of which one is taken again; two behind, of which one starts there.
    stages = asked.count("rows") // 3
    assert asked.count("rows") == 3 * stages and asked.count("branch") == 2 * stages


@pytest.mark.parametrize("method", [MuntheKaas(), MuntheKaas("rk4", step=0.95)])
@pytest.mark.parametrize("at", [0.97, 1.1, 1.425, 1.6, 1.88])
def test_a_step_that_leads_across_is_taken_on_its_branch(at: float, method: MuntheKaas) -> None:
    """However far from where branches meet it begins and ends."""
    flow, asked = crossing(at)
    walk(flow, method, 0.95, 2)
    assert "opened at 0.9" in asked or "opened at 0.0" in asked
    assert asked[-1] == "branch"


def test_a_step_that_would_lead_across_without_a_branch_ends_before() -> None:
    flow, asked = crossing(1.6, fails=True)
    memory = walk(flow, MuntheKaas(), 0.95, 2)
    assert memory.branch is None and memory.regularity == pytest.approx(1.6 - 1.425)
    assert asked.count("opened at 0.9") == 1


def test_a_mode_begins_without_knowledge_of_branches() -> None:
    flow, _ = crossing(1.0)
    memory = walk(flow, MuntheKaas(), 0.5, 2)
    assert memory.branch is not None and memory.flow(flow) is memory.branch
    assert memory.in_new_mode.branch is None and memory.in_new_mode.error == memory.error


def test_without_a_branch_steps_go_on_unless_they_end_where_branches_meet() -> None:
    flow, asked = crossing(1.0, fails=True)
    assert walk(flow, MuntheKaas(), 0.95, 2).branch is None
    assert asked.count("opened at 0.0") == 1
    with pytest.raises(StepFailed, match=r"t = 1 s: branches of the motion meet there") as caught:
        walk(flow, MuntheKaas(), 0.5, 2)
    assert caught.value.reason == "bifurcation"


def test_a_branch_is_looked_for_again_before_the_next_pose_where_others_meet() -> None:
    """Without one through the first, beside which steps have ended closer than to the next."""
    flow, asked = crossing(0.965, 1.125, fails=True)
    memory = walk(flow, MuntheKaas("rk4", step=0.08), 0.08, 14)
    assert [name for name in asked if name != "rows"] == [
        f"opened at {t}" for t in (0.8, 0.9, 1.0, 1.0)
    ]
    assert memory.refused == pytest.approx(0.005)


@pytest.mark.parametrize("method", [MuntheKaas(), MuntheKaas("rk4", step=0.5)])
@pytest.mark.parametrize("was_on_branch", [False, True])
def test_a_motion_beside_poses_to_which_it_does_not_lead_follows_the_rows(
    was_on_branch: bool, method: MuntheKaas
) -> None:
    """And leaves the branch on which it came there; beside a pose where branches meet it does not.

    It is as if no branch had been looked for: the next pose is not missed.
    """
    flow, asked = crossing(1e9)
    flow = replace(flow, constraints=Even(0.05))
    assert flow.branch is not None
    before = StepMemory(regularity=0.05, branch=flow.branch(0.0, np.zeros(0), np.zeros(0)))
    asked.clear()
    memory = walk(flow, method, 0.5, 4, before if was_on_branch else StepMemory(taken=1))
    assert set(asked) == {"rows"} and memory.branch is None
    assert memory.regularity == 0.05 and memory.refused == np.inf
    very_near = replace(flow, constraints=Even(0.9e-3))
    assert walk(very_near, method, 0.5, 1).branch is not None


@pytest.mark.parametrize("regularity", [1e-3, 0.5])
@pytest.mark.parametrize("fails", [False, True])
def test_a_step_that_cannot_be_projected_is_taken_again_on_its_branch(
    regularity: float, fails: bool
) -> None:
    """Where others are near; elsewhere it is the rows that contradict each other."""
    flow, asked = crossing(-5.0, fails=fails)

    def project(t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        if "branch" not in asked:
            raise pl.BadValue("the rows cannot be closed")
        return q, v, False

    flow = replace(flow, project=project, constraints=Even(regularity))
    if regularity < 0.1 and not fails:
        assert walk(flow, MuntheKaas(), 0.5, 1).branch is not None
    else:
        with pytest.raises(pl.BadValue, match="cannot be closed"):
            walk(flow, MuntheKaas(), 0.5, 1)


def test_a_step_changes_nothing_but_what_it_returns() -> None:
    """The same state and memory give the same bits, whatever has been stepped in between."""
    case = free_body("")
    acceleration = pl.EquationsOfMotion(case.robot).acceleration
    flow = Flow(acceleration, RobotManifold(case.robot), lambda t, q, v: (q, v, False))
    stepper = Stepper(MuntheKaas(), np.ones(case.robot.nv))
    state, memory = (case.q, case.v, acceleration(0.0, case.q, case.v)), StepMemory()
    first = stepper.controlled(flow, memory, 0.0, 0.1, 1.0, state)
    for start in (0.3, 0.7):
        stepper.controlled(flow, first[2], start, 0.1, 1.0, state)
    again = stepper.controlled(flow, memory, 0.0, 0.1, 1.0, state)
    assert first[1:] == again[1:] and memory == StepMemory() != first[2]
    for name in ("t1", "psi", "q1", "v1", "a1"):
        assert np.array_equal(getattr(first[0], name), getattr(again[0], name))
