"""Tests of `pinloop.simulate`: starts, ends, interruptions, failures, what is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.description import GROUND, Body, Description, Joint, constant
from pinloop.dynamics import Formulation
from pinloop.dynamics.formulations import BoundFormulation
from pinloop.mechanism import build
from pinloop.pairs import make_pair

from . import mechanisms as m
from . import tables
from .states import carried, close, moving, one_body, robot
from .tables import Array

BAR = robot("four-bar")
RATE = pl.consistent_velocity(BAR, BAR.neutral, {"crank": 3.0})


# -- where a run starts -----------------------------------------------------------------------


def test_what_the_caller_gave_stays_as_it_is() -> None:
    q, v = BAR.neutral, RATE.copy()
    run = pl.simulate(BAR, q, v, until=0.1)
    np.testing.assert_array_equal(q, BAR.neutral)
    np.testing.assert_array_equal(v, RATE)
    assert run.robot is BAR or run.robot.name == BAR.name
    assert BAR.regularization is None


def test_lists_and_missing_velocities_will_do() -> None:
    run = pl.simulate(BAR, [0.0, 0.0, 0.0], until=0.1)
    assert not run.v[0].any() and run.v[-1].any()
    again = pl.simulate(BAR, BAR.neutral, [0, 0, 0], until=0.1)
    np.testing.assert_array_equal(again.q, run.q)


def test_a_start_that_is_slightly_open_is_closed_silently() -> None:
    q = BAR.neutral + np.array([1e-7, -1e-7, 2e-7])
    run = pl.simulate(BAR, q, RATE + 1e-8, until=0.1)
    assert np.abs(pl.Constraints(BAR).residual(run.q[0])).max() < 1e-12
    assert np.abs(pl.Constraints(BAR).jacobian(run.q[0]) @ run.v[0]).max() < 1e-11
    assert np.abs(run.q[0] - q).max() < 1e-6


@pytest.mark.parametrize("regularization", [False, True])
def test_a_start_that_is_open_is_refused_with_the_nearest_closed_one(regularization: bool) -> None:
    with pytest.raises(pl.LoopNotClosed, match=r"not assembled.*pl\.assemble") as caught:
        pl.simulate(BAR, [0.1, 0.0, 0.0], until=0.1, regularization=regularization)
    error = caught.value
    assert set(error.residuals) == {"close"} and error.residuals["close"] > 1e-3
    assert np.abs(pl.Constraints(BAR).residual(error.q)).max() < 1e-9
    pl.simulate(BAR, error.q, until=0.05)


def test_a_velocity_that_opens_a_loop_is_refused_with_the_nearest_allowed_one() -> None:
    v = np.array([3.0, 0.0, 0.0])
    with pytest.raises(pl.InconsistentVelocity, match=r"violates row 'close: v_[xy]'") as caught:
        pl.simulate(BAR, BAR.neutral, v, until=0.1)
    error = caught.value
    assert error.residual > 0.1
    J = pl.Constraints(BAR).jacobian(BAR.neutral)
    assert np.abs(J @ error.v).max() < 1e-10
    # Nearest in the kinetic metric: what is missing cannot be had along the allowed motion.
    M = pl.EquationsOfMotion(BAR).mass(BAR.neutral)
    assert RATE @ M @ (v - error.v) == pytest.approx(0, abs=1e-9)
    pl.simulate(BAR, BAR.neutral, error.v, until=0.05)


def test_rows_have_a_say_in_the_start_velocity() -> None:
    sled = one_body("planar")
    blade = pl.NoSlip("body", (0, 1, 0))
    with pytest.raises(pl.InconsistentVelocity, match="violates row 'no slip of body'") as caught:
        pl.simulate(sled, sled.neutral, [1.0, 0.5, 0.3], until=0.1, rows=[blade])
    np.testing.assert_allclose(caught.value.v, [1.0, 0.0, 0.3], atol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        [pl.Prescribed("crank", lambda t: (t, 1.0, 0.0)),
         pl.Prescribed("crank", lambda t: (2 * t, 2.0, 0.0))],
        [pl.Prescribed("crank", lambda t: (t, 1.0, 0.0)),
         pl.Prescribed("rocker", lambda t: (t, 1.0, 0.0))],
    ],
)  # fmt: skip
def test_rows_that_contradict_each_other_are_refused(rows: list[pl.Prescribed]) -> None:
    with pytest.raises(pl.InconsistentVelocity, match="contradict each other") as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=0.1, rows=rows)
    assert caught.value.residual > 1e-3


def test_prescribed_motions_start_where_the_robot_stands() -> None:
    row = pl.Prescribed("crank", lambda t: (0.5 + t, 1.0, 0.0))
    with pytest.raises(pl.LoopNotClosed, match="start where prescribed motions start"):
        pl.simulate(BAR, BAR.neutral, RATE / 3, until=0.1, rows=[row])
    q = BAR.configuration(m.four_bar_q(m.START + 0.5))
    v = pl.consistent_velocity(BAR, q, {"crank": 1.0})
    run = pl.simulate(BAR, q, v, until=0.1, rows=[row])
    assert run.q[-1][0] == pytest.approx(0.6, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": [0.0, 0.0]}, "3 numbers, not 2"),
        ({"q": [0.0, np.nan, 0.0]}, "not finite at index 1"),
        ({"q": "home"}, "not made of numbers"),
        ({"q": np.zeros((1, 3))}, r"shape \(1, 3\)"),
        ({"v": [1.0]}, "3 numbers, not 1"),
        ({"v": [0.0, 0.0, np.inf]}, "not finite at index 2"),
        ({"until": 0.0}, "end must come after"),
        ({"until": -1.0}, "end must come after"),
        ({"until": np.nan}, "end must come after"),
        ({"until": np.inf}, "end must come after"),
        ({"until": "later"}, "until"),
        ({"start": 2.0}, "end must come after"),
        ({"start": np.nan}, "end must come after"),
        ({"save_every": 0.0}, "save_every is 0"),
        ({"save_every": -0.1}, "save_every is -0.1"),
        ({"save_every": np.nan}, "save_every is nan"),
        ({"save_every": np.inf}, "save_every is inf"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"q": BAR.neutral, "until": 0.1} | arguments
    with pytest.raises(pl.BadValue, match=message):
        pl.simulate(BAR, **given)


def test_quaternions_that_are_no_rotations_are_refused() -> None:
    machine = robot("double-pendulum")
    with pytest.raises(pl.BadValue, match="unit length"):
        pl.simulate(machine, 2 * machine.neutral, until=0.1)


@pytest.mark.parametrize(
    "until", [np.float64(0.1), np.float32(0.125), np.int64(1), 1, Fraction(1, 8)]
)
def test_times_may_be_any_numbers(until: Any) -> None:
    run = pl.simulate(BAR, BAR.neutral, until=until, method=pl.MuntheKaas("rk4", step=0.05))
    assert run.t[-1] == float(until)


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
    # Six evaluations per step, one more after a projection.
    assert 6 * (n - 1) <= run.evaluations <= 8 * (n - 1 + run.rejected) + 2


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
    assert run.evaluations == full.evaluations


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
        forces=[pl.JointDamping(), pl.JointFriction()],
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


# -- interrupted and failed runs --------------------------------------------------------------


def stopping(at: float, reason: Callable[[], Any]) -> Callable[[float, Array, Array], Array]:
    """Torques that do something else after a time."""

    def tau(t: float, q: Array, v: Array) -> Array:
        value = reason() if t > at else 0.0
        return np.full(len(v), value)

    return tau


def interrupt() -> float:
    raise KeyboardInterrupt


def assert_usable(run: pl.Trajectory, least: float, most: float) -> None:
    """A part of the run that can be looked at like a whole one."""
    assert least < run.t[-1] <= most
    assert len(run.t) == len(run.q) == len(run.v) == len(run.a) == len(run.psi) + 1
    assert np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))
    whole = pl.simulate(BAR, BAR.neutral, RATE, until=0.5)
    np.testing.assert_allclose(run.q[-1], whole(run.t[-1]).q, atol=1e-7)
    assert run.closure().max() < 1e-10 and run(run.t[-1] / 2).q.shape == (3,)


def test_ctrl_c_returns_what_there_is() -> None:
    with pytest.warns(pl.PinloopWarning, match="interrupted at t = 0.[23]"):
        run = pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, interrupt))
    assert_usable(run, 0.2, 0.3)
    assert run.message.startswith("interrupted at t = 0.")


def test_ctrl_c_with_saved_states() -> None:
    with pytest.warns(pl.PinloopWarning):
        run = pl.simulate(
            BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, interrupt), save_every=0.05
        )
    np.testing.assert_allclose(run.t[:5], 0.05 * np.arange(5))
    assert 0.2 < run.t[-1] <= 0.3


def test_ctrl_c_before_the_first_state_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(-1.0, interrupt))


@pytest.mark.parametrize("method", [pl.MuntheKaas(), pl.MuntheKaas("rk4", step=0.01)], ids=str)
@pytest.mark.parametrize("save_every", [None, 0.05])
def test_a_force_that_is_not_a_number_fails_with_what_there_is(
    method: pl.MuntheKaas, save_every: float | None
) -> None:
    with pytest.raises(
        pl.SimulationFailed, match=r"at t = 0\.(3|29\d+) s: .*'tau' is not finite"
    ) as caught:
        pl.simulate(
            BAR, BAR.neutral, RATE, until=1.0, method=method,
            tau=stopping(0.3, lambda: np.nan), save_every=save_every,
        )  # fmt: skip
    assert_usable(caught.value.trajectory, 0.25, 0.3001)
    assert caught.value.reason == "BadValue"


def test_a_force_that_is_wrong_from_the_start_has_no_trajectory() -> None:
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(-1.0, lambda: np.nan))
    assert caught.value.trajectory is None


def test_errors_of_the_users_own_code_do_not_lose_the_run() -> None:
    def broken() -> float:
        raise ZeroDivisionError("mine")

    with pytest.raises(pl.SimulationFailed, match="raised ZeroDivisionError: mine") as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, broken))
    assert_usable(caught.value.trajectory, 0.2, 0.3)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_fixed_step_that_is_too_long_says_so() -> None:
    stiff = pl.PD("crank", 1e8, 1e5, target=1.0)
    with pytest.raises(pl.SimulationFailed, match="take a smaller step") as caught:
        pl.simulate(
            BAR, BAR.neutral, until=10.0, forces=[stiff], stabilization=None,
            regularization=False, method=pl.MuntheKaas("rk4", step=0.1),
        )  # fmt: skip
    run = caught.value.trajectory
    assert run is not None and np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))


def massless() -> pl.Mechanism:
    """A body without mass on a slide: good for kinematics only."""
    unit = pin.SE3.Identity()
    bodies = (
        Body("cart", 1.0, constant(np.zeros(3)), constant(np.eye(3))),
        Body("ghost", 0.0, constant(np.zeros(3)), constant(np.zeros((3, 3)))),
    )
    joints = (
        Joint("x", make_pair("prismatic"), GROUND, "cart", unit, unit),
        Joint("y", make_pair("prismatic"), "cart", "ghost", unit, unit),
    )
    return build(Description("massless", bodies, joints), kinematics_only=True)


@pytest.mark.parametrize("formulation", [pl.Augmented(), pl.Projected(), pl.Voronets()], ids=str)
def test_a_singular_mass_matrix_fails(formulation: Any) -> None:
    with pytest.raises(pl.SimulationFailed, match="not positive definite") as caught:
        pl.simulate(massless(), [0.0, 0.0], until=1.0, formulation=formulation)
    assert caught.value.reason == "SingularMass" and caught.value.trajectory is None


class Careful(Formulation, BoundFormulation):
    """Refuses a mass matrix that is close to singular."""

    def bind(self, scale: Array) -> BoundFormulation:
        return self

    def solve(self, M: Array, J: Array, f: Array, gamma: Array) -> tuple[Array, Array]:
        if np.linalg.eigvalsh(M)[0] < 1e-3:
            raise pl.SingularMass("the mass matrix is close to singular")
        return pl.Augmented().bind(np.ones(len(J))).solve(M, J, f, gamma)


def test_running_into_a_singular_mass_matrix_keeps_what_there_is() -> None:
    """A body on three angles, of which two become one at 90 degrees of pitch."""
    body = one_body("spherical", inertia=(0.1, 0.2, 0.3), coordinates="zyx", gravity=(0, 0, 0))
    with pytest.raises(pl.SimulationFailed, match="close to singular") as caught:
        pl.simulate(
            body, body.neutral, [0.0, 1.0, 0.0], until=4.0, formulation=Careful(),
            method=pl.MuntheKaas(largest=0.05),
        )  # fmt: skip
    run = caught.value.trajectory
    assert caught.value.reason == "SingularMass"
    assert 1.2 < run.t[-1] < np.pi / 2 and run.q[-1][1] == pytest.approx(run.t[-1], abs=1e-7)


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
    root = Path(__file__).parents[1]
    here: dict[str, Any] = {}
    exec(PROGRAM.replace("urdf/", f"{root}/urdf/"), here)
    environment = os.environ | {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
        check=True, cwd=root,
    )  # fmt: skip
    assert result.stdout.strip() == here["digest"]
