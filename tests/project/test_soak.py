"""Campaigns of `tools.soak`: the same seed tries the same cases, and what is wrong is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from tools.soak.campaign import Case, Finding, run
from tools.soak.derivatives import _extrapolated, compare_derivatives
from tools.soak.kernel import compare_engines
from tools.soak.stops import _judge, static_excess, try_stop

import pinloop as pl

from ..safety.stopping.robots_to_stop import pendulum

URDF = Path(__file__).parents[2] / "urdf"


def test_cases_are_numbered_and_findings_counted() -> None:
    def draw(rng: np.random.Generator) -> Case:
        if (digit := int(rng.integers(10))) > 7:
            raise ValueError("too large\nby far")
        return Case("digit", (Finding("odd", str(digit)),) if digit % 2 else ())

    lines = [*run(draw, 5, 1e-3)]
    digits = [int(np.random.default_rng([5, k]).integers(10)) for k in range(9)]
    said = [f"5 {k} digit: odd: {d}" for k, d in enumerate(digits) if d % 2 and d < 8]
    said += [f"5 {k} case: crash: ValueError: too large" for k, d in enumerate(digits) if d > 7]
    assert set(said) <= set(lines)
    [again, *_] = run(draw, 5, 0.0, first=next(k for k, d in enumerate(digits) if d % 2))
    assert again in lines
    assert lines[-1].split(" cases (")[0].isdigit() and "odd" in lines[-1]


@pytest.fixture(scope="module")
def stopped() -> pl.StopResult:
    robot = pl.load(URDF / "palletizer.urdf")
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 1.0})
    return pl.stop(robot, q, v, brakes=pl.Brakes.template(robot))


def test_a_good_stop_is_good(stopped: pl.StopResult) -> None:
    assert stopped.outcome == "stopped" and _judge(stopped, 0.1) == []


def test_what_is_wrong_about_a_stop_is_noticed(stopped: pl.StopResult) -> None:
    def kinds(result: pl.StopResult, seconds: float = 0.1) -> list[str]:
        return [finding.kind for finding in _judge(result, seconds)]

    assert kinds(stopped, 2.1) == ["slow"]
    off = 1.1e-6 * stopped.ledger.turned_over
    leaky = replace(stopped)
    vars(leaky)["_measured"] = stopped.loads, replace(stopped.ledger, impacts=off)
    assert kinds(leaky) == ["energy"]
    joints = stopped.brakes.joints
    without = {name: pl.safety.JointBrake(kind="none") for name in joints}
    fallen = replace(stopped, brakes=replace(stopped.brakes, joints=without))
    assert kinds(fallen) == ["falls"] and static_excess(fallen) > 0.1
    v = np.array(stopped.run.v)
    v[-1, stopped.robot.coordinates("shoulder").v] = 2e-3
    assert kinds(replace(stopped, run=replace(stopped.run, v=v))) == ["moves"]


def test_what_hangs_may_swing_a_little() -> None:
    """What nothing holds stands where it hangs: the same load on a joint that turns would fall."""
    robot, none = pendulum(), pl.safety.JointBrake(kind="none")
    hanging = min(np.linspace(-np.pi, np.pi, 721), key=lambda angle: height(robot, angle))
    brakes = pl.Brakes({name: none for name in robot.joints})
    result = pl.stop(robot, np.array([hanging + 3e-6]), np.zeros(1), brakes=brakes)
    assert result.outcome == "stopped" and static_excess(result) > 1e-6
    assert "falls" not in [finding.kind for finding in _judge(result, 0.1)]


def height(robot: pl.Mechanism, angle: float) -> float:
    data = robot.model.createData()
    return float(pin.computePotentialEnergy(robot.model, data, np.array([angle])))


def test_a_case_is_tried() -> None:
    case = try_stop(np.random.default_rng([0, 2]))
    assert case.findings == () and case.name


def test_engines_agree_on_a_few_linkages() -> None:
    cases = [compare_engines(np.random.default_rng([1, k])) for k in range(6)]
    assert all(case.findings == () for case in cases)
    assert len({case.name for case in cases}) > 2


def test_derivatives_are_those_of_differences_on_a_few_linkages() -> None:
    cases = [compare_derivatives(np.random.default_rng([1, k])) for k in range(8)]
    assert all(case.findings == () for case in cases)
    assert {"same, on it", "same, off it"} <= {case.name for case in cases}


@pytest.mark.parametrize(("pole", "noise"), [(0.3, 0.0), (0.05, 0.0), (3e-3, 0.0), (3.0, 1e-9)])
def test_differences_know_their_error(pole: float, noise: float) -> None:
    """Of a function with a pole nearby, and of a noisy one."""
    found, error = _extrapolated(lambda x: 1.0 / (pole - x) + noise * np.sin(1e9 * x), 1)
    assert abs(float(found[0, 0]) * pole**2 - 1.0) <= max(10.0 * float(error[0]) * pole**2, 1e-12)
