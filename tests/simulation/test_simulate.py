"""Tests of `pinloop.simulate`: what acts, what is kept, that it is repeatable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND

from .. import mechanisms as m
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import carried, close, moving, robot

BAR = robot("four-bar")
RATE = pl.consistent_velocity(BAR, BAR.neutral, {"crank": 3.0})


# -- what is kept -----------------------------------------------------------------------------


def test_accelerations_and_steps_are_kept() -> None:
    run = pl.simulate(BAR, BAR.neutral, RATE, until=0.5)
    n = len(run.t)
    assert run.q.shape == run.v.shape == run.a.shape == (n, 3) and run.psi.shape == (n - 1, 3)
    assert run.mode.shape == (n,) and not run.mode.any() and run.message == "done"
    equations = pl.EquationsOfMotion(BAR)
    for k in (0, n // 2, n - 1):
        expected = equations.acceleration(run.t[k], run.q[k], run.v[k])
        close(run.a[k], expected, 1e-9)
    np.testing.assert_allclose(run.q[0] + np.cumsum(run.psi, axis=0), run.q[1:], atol=1e-9)
    assert np.all(np.diff(run.t) > 0) and run.t[0] == 0.0 and run.t[-1] == 0.5
    # Twelve evaluations per step, one more after a projection.
    assert 12 * (n - 1) <= run.evaluations <= 14 * (n - 1 + run.rejected) + 2


@pytest.mark.parametrize("start", [0.0, 0.7])
def test_saved_states_stand_at_equal_intervals(start: float) -> None:
    full = pl.simulate(BAR, BAR.neutral, RATE, until=start + 1.0, start=start)
    run = pl.simulate(BAR, BAR.neutral, RATE, until=start + 1.0, start=start, save_every=0.1)
    np.testing.assert_array_equal(run.t[:10], [start + k * 0.1 for k in range(10)])
    assert len(run.t) == 11 and run.t[-1] == start + 1.0
    np.testing.assert_array_equal(run.q, full(run.t).q)
    np.testing.assert_array_equal(run.v, full(run.t).v)
    for k in (0, 4, 10):
        close(run.a[k], pl.EquationsOfMotion(BAR).acceleration(0, run.q[k], run.v[k]), 1e-9)
    assert run.psi.shape == (10, 3) and run.mode.shape == (11,)
    # Four more in each step that has samples inside.
    more, rest = divmod(run.evaluations - full.evaluations, 4)
    assert rest == 0 and 0 < more <= 9


def test_the_end_is_saved_even_between_the_intervals() -> None:
    run = pl.simulate(BAR, BAR.neutral, until=0.25, save_every=0.1)
    np.testing.assert_allclose(run.t, [0, 0.1, 0.2, 0.25])
    assert run.t[-1] == 0.25
    assert pl.simulate(BAR, BAR.neutral, until=0.25, save_every=7.0).t.tolist() == [0, 0.25]
    third = pl.simulate(BAR, BAR.neutral, until=1.0, save_every=1 / 3)
    assert len(third.t) == 4 and third.t[-1] == 1.0


def test_starting_later_is_only_another_clock() -> None:
    early = pl.simulate(BAR, BAR.neutral, RATE, until=0.5)
    late = pl.simulate(BAR, BAR.neutral, RATE, start=8.0, until=8.5)
    np.testing.assert_allclose(late.q[-1], early.q[-1], atol=1e-7)
    swing = pl.Torque("crank", lambda t: 3 * np.sin(4 * t))
    shifted = pl.Torque("crank", lambda t: 3 * np.sin(4 * (t - 8.0)))
    early = pl.simulate(BAR, BAR.neutral, RATE, until=0.5, forces=[swing])
    late = pl.simulate(BAR, BAR.neutral, RATE, start=8.0, until=8.5, forces=[shifted])
    np.testing.assert_allclose(late.q[-1], early.q[-1], atol=1e-7)


def test_kept_accelerations_are_those_of_the_projected_states() -> None:
    """Where a projection moves the end of a step, what was computed before is not used again."""
    loose = pl.MuntheKaas(rtol=1e-3, atol=1e-3)
    run = pl.simulate(BAR, BAR.neutral, RATE, until=1.0, method=loose)
    equations = pl.EquationsOfMotion(BAR)
    for t, q, v, a in zip(run.t, run.q, run.v, run.a, strict=True):
        close(a, equations.acceleration(t, q, v), 1e-9)


# -- what acts --------------------------------------------------------------------------------


def test_losses_of_the_file_act_unless_they_are_switched_off() -> None:
    machine = robot("fivebar")
    v = pl.consistent_velocity(machine, machine.neutral, {"base_left": 1.0, "base_right": -1.0})
    lossy = pl.simulate(machine, machine.neutral, v, until=0.3)
    pure = pl.simulate(machine, machine.neutral, v, until=0.3, losses=False)
    assert set(lossy.energy().work) == {"joint damping", "joint friction"}
    assert pure.energy().work == {}
    assert lossy.energy().total[-1] < pure.energy().total[-1] - 1e-3
    by_hand = pl.simulate(
        machine, machine.neutral, v, until=0.3, losses=False,
        forces=[pl.forces.JointDamping(), pl.forces.JointFriction()],
    )  # fmt: skip
    np.testing.assert_allclose(by_hand.q[-1], lossy.q[-1], atol=1e-9)
    assert not pl.simulate(BAR, BAR.neutral, until=0.01).energy().work  # nothing to lose there


def test_tau_is_a_force_like_any_other() -> None:
    def tau(t: float, q: Array, v: Array) -> Array:
        return np.array([np.cos(3 * t), -q[1], 0.1 * v[2]])

    one = pl.simulate(BAR, BAR.neutral, RATE, until=0.3, tau=tau)
    other = pl.simulate(BAR, BAR.neutral, RATE, until=0.3, forces=[pl.TorqueFunction(tau)])
    np.testing.assert_array_equal(one.q, other.q)
    assert list(one.energy().work) == ["tau"]


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    run = pl.simulate(BAR, BAR.neutral, until=0.1, progress=True)
    shown = capsys.readouterr()
    assert "four-bar" in shown.err and "0.100 / 0.100 s" in shown.err and not shown.out
    np.testing.assert_array_equal(run.q, pl.simulate(BAR, BAR.neutral, until=0.1).q)
    assert capsys.readouterr().err == ""


# -- regularization ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four-bar", "delta", "prrr3", "sarrus", "spherical_fourbar"])
def test_regularization_changes_the_rows_but_not_the_motion(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 3)
    runs = [
        pl.simulate(machine, q, v, until=0.2, losses=False, regularization=flag)
        for flag in (True, False)
    ]
    np.testing.assert_allclose(machine.difference(runs[0].q[-1], runs[1].q[-1]), 0, atol=1e-6)
    rows = [len(run.equations[0].rows) for run in runs]
    assert rows[0] <= rows[1] == len(pl.Constraints(machine))
    for run in runs:
        assert run.closure().max() < 1e-9


def test_an_own_regularization_is_respected() -> None:
    reduced = pl.regularize(BAR)
    run = pl.simulate(reduced, BAR.neutral, RATE, until=0.1)
    assert len(run.equations[0].rows) == 2
    assert len(pl.simulate(BAR, BAR.neutral, RATE, until=0.1).equations[0].rows) == 2


# -- other starts -----------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
def test_absolute_coordinates_start_alike(space: Any) -> None:
    machine = robot("rssr")
    q, v = moving(machine, 5)
    there = machine.absolute(space)
    run = pl.simulate(there, *carried(machine, q, v, there), until=0.05)
    here = pl.simulate(machine, q, v, until=0.05)
    for body in machine.bodies:
        one, other = run.placement(body)[-1], here.placement(body)[-1]
        np.testing.assert_allclose(one.homogeneous, other.homogeneous, atol=1e-7)


def test_robots_without_anything_to_close() -> None:
    cart = tables.build(
        tables.table("cart", tables.joint("x", "prismatic", GROUND, "cart", [0, 0, 0], m.X))
    )
    run = pl.simulate(cart, [0.0], [2.0], until=1.5)
    assert run.q[-1] == pytest.approx(3.0, abs=1e-9)
    door = robot("door")  # one coordinate, five idle rows
    swung = pl.simulate(door, door.neutral, [1.0], until=0.5, regularization=False)
    assert swung.q[-1] == pytest.approx(0.5, abs=1e-9)


PROGRAM = """
import hashlib, pinloop as pl
robot = pl.load("urdf/palletizer.urdf")
v = pl.consistent_velocity(robot, robot.neutral, {"shoulder": 0.5})
run = pl.simulate(robot, robot.neutral, v, until=0.05)
digest = hashlib.sha256(run.q.tobytes() + run.v.tobytes() + run.t.tobytes()).hexdigest()
print(digest)
"""


@pytest.mark.parametrize("name", ["four-bar", "palletizer"])
def test_runs_are_repeatable_to_the_last_bit(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 6)
    one, two = (pl.simulate(machine, q, v, until=0.1) for _ in range(2))
    for part in ("t", "q", "v", "a", "psi"):
        assert getattr(one, part).tobytes() == getattr(two, part).tobytes()


def test_runs_are_repeatable_in_another_process() -> None:
    """Whatever the seed of Python's hashes is."""
    root = Path(__file__).parents[2]
    here: dict[str, Any] = {}
    exec(PROGRAM.replace("urdf/", f"{root}/urdf/"), here)
    environment = os.environ | {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
        check=True, cwd=root,
    )  # fmt: skip
    assert result.stdout.strip() == here["digest"]
