"""Tests of the step control: errors, factors, limits, and methods that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import Flow, MuntheKaas, StepControl, StepFailed, StepMemory, Stepper
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


# -- beside a bifurcation -------------------------------------------------------------------


class Stretches(Stepper):
    """Steps from rest to rest of what is remembered between them."""

    def __init__(self, flow: Flow, method: MuntheKaas) -> None:
        super().__init__(method, np.ones(robot("six_axis_arm").nv))
        self.flow, self.memory = flow, StepMemory()


def straight(regular: Callable[[float], float]) -> Stretches:
    """Steps in which nothing accelerates but at one second, with the regularity over time."""
    body, seen = robot("six_axis_arm"), [1.0]

    def acceleration(t: float, q: Array, v: Array) -> Array:
        return np.full(body.nv, 1.0 if abs(t - 1.0) < 0.01 else 0.0)

    def project(t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        seen[0] = regular(t)
        return q, v, False

    flow = Flow(acceleration, RobotManifold(body), project, regularity=lambda: seen[0])
    return Stretches(flow, MuntheKaas())


def stretch(steps: Stretches, h: float, start: float = 0.0) -> float:
    body = robot("six_axis_arm")
    state = body.neutral, np.ones(body.nv), np.zeros(body.nv)
    step, _, steps.memory = steps.controlled(steps.flow, steps.memory, start, h, 10.0, state)
    return step.t1


def test_a_step_does_not_end_beside_a_bifurcation() -> None:
    """Here at three seconds: a longer step passes it, a shorter one stays away."""
    stepper = straight(lambda t: abs(t - 3.0))
    assert stretch(stepper, 0.5) == 0.5 and stepper.rejected == 0
    assert stretch(stepper, 0.995, 2.0) == pytest.approx(2 + 1.3 * 0.995)
    assert stepper.rejected == 1
    wide = straight(lambda t: 1.0 if t < 0.8 or t > 2.0 else 1e-5)
    assert stretch(wide, 0.9) == pytest.approx(0.63) and wide.rejected == 3


def test_the_end_that_is_farthest_off_is_taken() -> None:
    """One try that brings little is enough, unless the best end is close to where it branches."""
    growing = straight(lambda t: 1e-3 * t)
    assert stretch(growing, 0.8) == pytest.approx(1.3 * 0.8) and growing.rejected == 1
    much = straight(lambda t: 1e-3 if t < 1.0 else 4.5e-3 * t)
    assert stretch(much, 0.8) == pytest.approx(1.7 * 0.8) and much.rejected == 2
    falling = straight(lambda t: 1e-3 / (1 + t))
    assert stretch(falling, 0.8) == 0.8 and falling.rejected == 1
    close = straight(lambda t: 1e-5 / (1 + t))
    assert stretch(close, 0.8) == pytest.approx(0.4 * 0.8) and close.rejected == 4


def test_a_step_that_starts_near_a_bifurcation_is_not_made_shorter_before_it_is_made_longer() -> (
    None
):
    for regular, end in ((0.05, 0.5 + 1.3 * 0.5), (0.2, 0.5 + 0.2 * 0.5)):
        stepper = straight(lambda t, regular=regular: regular)  # type: ignore[misc]
        assert stretch(stepper, 0.5) == 0.5
        assert stretch(stepper, 0.5, 0.5) == pytest.approx(end) and stepper.rejected == 1


def test_a_step_that_cannot_end_elsewhere_is_taken_unless_rounding_decides() -> None:
    assert stretch(straight(lambda t: 1e-5), 0.8) == 0.8
    with pytest.raises(StepFailed, match=r"branches at t = 0.8 s, and rounding decides"):
        stretch(straight(lambda t: 1e-7), 0.8)


def test_an_end_with_too_large_an_error_does_not_stop_the_search_for_a_better_one() -> None:
    """The second end lies on the kick at one second, the third one passes."""
    stepper = straight(lambda t: 1e-3 if t < 1.2 else 1.0)
    assert stretch(stepper, 1 / 1.3) == pytest.approx(1.7 / 1.3) and stepper.rejected == 2


def test_a_run_that_only_comes_nearer_to_a_bifurcation_is_told_so_soon() -> None:
    body, rough = robot("six_axis_arm"), [False]

    def acceleration(t: float, q: Array, v: Array) -> Array:
        return np.full(body.nv, np.nan if rough[0] else 0.0)

    flow = Flow(
        acceleration, RobotManifold(body), lambda t, q, v: (q, v, False), regularity=lambda: 5e-3
    )
    stepper = Stretches(flow, MuntheKaas(smallest=1e-300))
    stretch(stepper, 0.5)
    before, rough[0] = stepper.rejected, True
    with pytest.raises(StepFailed, match="branches at t = 0 s"):
        stretch(stepper, 0.5)
    assert stepper.rejected - before == 301


def test_a_mode_begins_without_knowledge_of_branches() -> None:
    """A step that is too large is made shorter, not longer, whatever the mode before met."""
    stepper = straight(lambda t: 0.05)
    assert stretch(stepper, 0.5) == 0.5
    stepper.memory = stepper.memory.in_new_mode
    assert stretch(stepper, 0.5, 0.5) == pytest.approx(0.5 + 0.2 * 0.5)


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
