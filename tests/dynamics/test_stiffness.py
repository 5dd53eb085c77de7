"""What explicit steps cannot follow takes implicit ones, and is named with its joint.

Oracles: closed forms of one hinge, finite differences of torques and accelerations, counted steps,
and explicit steps of high accuracy.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.dynamics.forces import Force
from pinloop.dynamics.stiffness import stiffest_damping
from pinloop.integrate.tableaux import get_tableau
from pinloop.model.description import GROUND

from .. import screw_tables as tables
from ..mechanisms import TURN, X, four_bar
from ..screw_tables import joint
from ..states import allowed, moving, one_body, robot

MOMENT = 0.1
"""Moment of inertia of the hinge [kg m^2]."""


def hinge(damping: float = 0.0, friction: float = 0.0) -> pl.Mechanism:
    machine = one_body("revolute", inertia=(MOMENT, MOMENT, MOMENT), gravity=(0.0, 0.0, 0.0))
    machine.model.damping = np.array([damping])
    machine.model.upperDryFrictionLimit = np.array([friction])
    return machine


FORCES: list[Force] = [
    pl.forces.JointDamping({"crank": 0.3, "rocker": 0.7}),
    pl.forces.JointFriction(0.5, {"elbow": 2.0, "crank": 1.0}),
    pl.PD("crank", 5.0, 0.8),
    pl.forces.Damper("coupler", "ground", 0.9),
]


@pytest.mark.parametrize("force", FORCES, ids=lambda force: type(force).__name__)
def test_damping_is_the_slope_of_the_torque(force: Any) -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 3)
    equations = pl.EquationsOfMotion(machine, forces=[force])
    (found,) = equations.dampings(0.0, q, v).values()
    step = 1e-6
    slopes = [
        (equations.force(0.0, q, v - step * e) - equations.force(0.0, q, v + step * e)) / (2 * step)
        for e in np.eye(machine.nv)
    ]
    assert np.abs(found).max() > 1e-2
    np.testing.assert_allclose(found, np.array(slopes).T, atol=1e-8)


def test_time_constant_of_a_hinge() -> None:
    machine = hinge(damping=25.0)
    equations = pl.EquationsOfMotion(
        machine, forces=[pl.forces.JointDamping(), pl.PD("joint", 0.0, 15.0)]
    )
    found = stiffest_damping(equations, 0.0, np.zeros(1), np.zeros(1))
    assert found is not None
    assert found.joint == "joint"
    assert found.damping == "'joint damping' of joint 'joint' (40 N m s/rad on 0.1 kg m^2)"
    assert found.time_constant == pytest.approx(MOMENT / 40.0)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "double-pendulum"])
def test_rates_of_loops_are_those_of_their_accelerations(name: str) -> None:
    """At rest ``a`` falls with the velocity by the rate, along the motion that falls fastest."""
    machine = robot(name)
    q, _ = moving(machine, 3)
    coefficients = {joint: 10.0 * (k + 1) for k, joint in enumerate(machine.joints)}
    equations = pl.EquationsOfMotion(machine, forces=[pl.forces.JointDamping(coefficients)])
    found = stiffest_damping(equations, 0.0, q, np.zeros(machine.nv))
    assert found is not None
    F, step = allowed(pl.Constraints(machine).jacobian(q)), 1e-6

    def a(u: Any) -> Any:
        return F.T @ equations.acceleration(0.0, q, step * F @ u)

    slopes = np.array([(a(-u) - a(u)) / (2 * step) for u in np.eye(F.shape[1])]).T
    fastest = max(np.linalg.eigvals(slopes).real)
    assert 1 / found.time_constant == pytest.approx(fastest, rel=1e-6)


def test_robots_without_damping_have_none() -> None:
    for forces in (
        [],
        [pl.forces.JointSpring("joint", 3.0)],
        [pl.TorqueFunction(lambda t, q, v: -v)],
    ):
        equations = pl.EquationsOfMotion(hinge(), forces=forces)
        assert stiffest_damping(equations, 0.0, np.zeros(1), np.zeros(1)) is None


@pytest.mark.parametrize(
    ("method", "limit"), [("euler", 2.0), ("heun", 2.0), ("rk4", 2.785), ("dopri5", 3.307)]
)
def test_stability_limits_are_those_of_the_textbook(method: str, limit: float) -> None:
    """Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.2."""
    z = np.array([1e-3 - limit, -1e-3 - limit]).astype(np.complex128)
    inside, outside = np.abs(get_tableau(method).amplification(z))
    assert inside < 1.0 < outside


@pytest.mark.parametrize("name", ["dopri5", "dop853"])
def test_a_run_that_crawls_says_so(name: str) -> None:
    machine, method = hinge(damping=1e6), pl.MuntheKaas(name, when_stiff="warn")
    with pytest.warns(pl.PinloopWarning) as caught:
        run = pl.simulate(machine, np.zeros(1), np.ones(1), until=1e-3, method=method)
    (warning,) = caught
    message = str(warning.message)
    assert warning.filename == __file__
    assert "'joint damping' of joint 'joint' (1e+06 N m s/rad on 0.1 kg m^2)" in message
    assert "a time constant of 1e-07 s" in message and "pl.MuntheKaas('radau9')" in message
    found = re.search(rf"about (\S+) steps of '{name}' are still to come", message)
    assert found and float(found[1]) == pytest.approx(len(run.t), rel=0.3)


def test_damping_that_steps_can_follow_is_not_worth_a_word() -> None:
    run = pl.simulate(hinge(damping=1e3), np.zeros(1), np.ones(1), until=1e-2)
    assert run.v[-1, 0] == pytest.approx(0.0, abs=1e-7)


def test_a_run_that_begins_to_crawl_says_so_then() -> None:
    """Smoothed friction is stiff only near standstill, which is reached on the way."""
    machine = hinge()
    friction = pl.forces.JointFriction(1e-6, {"joint": 50.0})
    equations = pl.EquationsOfMotion(machine, forces=[friction])
    found = stiffest_damping(equations, 0.0, np.zeros(1), np.full(1, 0.5))
    assert found is None
    start, standstill = (np.zeros(1), np.full(1, 0.5)), 0.5 * MOMENT / 50.0
    with pytest.raises(pl.SimulationFailed, match="'joint friction' of joint 'joint'") as caught:
        pl.simulate(
            machine, *start, until=0.01, forces=[friction],
            method=pl.MuntheKaas(when_stiff="warn"),
        )  # fmt: skip
    assert caught.value.trajectory.t[-1] == pytest.approx(standstill, rel=0.1)
    # By default it goes on from there, at rest.
    run = pl.simulate(machine, *start, until=0.01, forces=[friction])
    assert run.message == "done" and not run.warnings
    assert run.q[-1, 0] == pytest.approx(0.5 * 0.5 * standstill, rel=1e-4)
    assert abs(run.v[-1, 0]) < 1e-9 and len(run.t) < 1500


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
def test_a_state_that_becomes_infinite_is_told_with_the_joint() -> None:
    method = pl.MuntheKaas("rk4", step=1e-4, when_stiff="warn")
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(hinge(damping=1e6), np.zeros(1), np.ones(1), until=0.1, method=method)
    message = str(caught.value)
    assert "the state became infinite at t = 0.00" in message
    assert "'joint damping' of joint 'joint'" in message and "constant of 1e-07 s" in message
    assert "leave when_stiff='warn' out, or take pl.MuntheKaas('radau9')" in message


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("damping", [1e11, 1e13])
def test_damping_beyond_all_steps_is_no_singular_mass(damping: float) -> None:
    machine = tables.build(four_bar())
    machine.model.damping = np.full(machine.nv, damping)
    q, v = machine.neutral, pl.consistent_velocity(machine, machine.neutral, {"crank": 1.0})
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(machine, q, v, until=1e-3)
    message = str(caught.value)
    assert "mass matrix" not in message and "'joint damping' of joint" in message
    assert "make it less stiff, or lock the joint" in message


@pytest.mark.parametrize("name", ["dopri5", "dop853", "bs32", "radau5", "radau9"])
@pytest.mark.parametrize("damping", [1e6, 1e9])
def test_a_hinge_in_thick_oil(damping: float, name: str) -> None:
    """``v = v0 exp(-t / tau)``, and it turns by ``v0 tau``."""
    method = pl.MuntheKaas(name)
    run = pl.simulate(hinge(damping=damping), np.zeros(1), np.ones(1), until=2e-3, method=method)
    tau = MOMENT / damping
    gone = np.exp(-run.t / tau)
    np.testing.assert_allclose(run.v[:, 0], gone, rtol=0, atol=5e-8)
    np.testing.assert_allclose(run.q[:, 0], tau * (1 - gone), rtol=5e-8, atol=1e-16)
    most = {"dopri5": 120, "dop853": 80, "radau5": 250, "radau9": 60}
    assert len(run.t) < most.get(name, 1000)
    balance = run.energy()
    assert np.abs(balance.error).max() < 1e-6 * balance.kinetic[0] and not run.warnings


@pytest.mark.parametrize("name", ["euler", "rk4", "dopri5", "radau5"])
def test_fixed_steps_that_would_diverge_are_implicit(name: str) -> None:
    """What is left of the speed after a step of ``z`` time constants is about ``1 / z``."""
    tau, h = MOMENT / 1e9, 1e-5
    run = pl.simulate(
        hinge(damping=1e9), np.zeros(1), np.ones(1), until=2e-3, method=pl.MuntheKaas(name, step=h)
    )
    assert run.v[1, 0] == pytest.approx(0.0, abs=20 * tau / h)
    assert run.v[5, 0] == pytest.approx(0.0, abs=1e-15)
    assert run.q[-1, 0] == pytest.approx(tau, rel=0.01)
    switched = run.accuracy is not None and run.accuracy.switched
    assert bool(switched) == (name != "radau5")


@pytest.mark.parametrize(
    "machine",
    [robot(name) for name in ("four-bar", "palletizer", "bennett", "every-pair")],
    ids=repr,
)
def test_it_is_the_motion_of_explicit_steps(machine: pl.Mechanism) -> None:
    q, v = moving(machine, 2)
    forces = [
        pl.forces.JointDamping({joint: 50.0 + 20 * k for k, joint in enumerate(machine.joints)}),
        pl.forces.JointFriction(0.3, dict.fromkeys(machine.joints, 2.0)),
        pl.forces.Damper(machine.bodies[-1], "ground", 3.0),
    ]
    ends = [
        pl.simulate(
            machine,
            q,
            v,
            until=0.05,
            forces=forces,
            method=pl.MuntheKaas(name, rtol=tolerance, atol=tolerance, when_stiff="warn"),
        )
        for name, tolerance in (("dopri5", 1e-10), ("radau9", 1e-9))
    ]
    unit = np.where(machine.is_translation, machine.length, 1.0)
    apart = machine.difference(ends[0].q[-1], ends[1].q[-1]) / unit
    assert np.abs(apart).max() < 1e-8
    np.testing.assert_allclose(ends[1].v[-1] / unit, ends[0].v[-1] / unit, rtol=0, atol=1e-7)
    balance = ends[1].energy()
    assert np.abs(balance.error).max() < 1e-6 * float(np.abs(balance.kinetic).max())
    assert not ends[1].warnings


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
def test_fingers_with_the_damping_and_friction_of_public_hands(seed: int) -> None:
    """Links of grams, damping from 0.1 to 7, friction from 0.01 to 5: it runs, without a word."""
    rng = np.random.default_rng(seed)
    links = [GROUND, "palm", "first", "second", "tip"]
    finger = tables.table("finger", *[
        joint(f"j{k}", "revolute", links[k], links[k + 1], 0.04 * k * X, TURN) for k in range(4)
    ])  # fmt: skip
    for k, body in enumerate(finger["bodies"]):
        body["mass"], body["inertia"] = 0.02, 4e-6 * np.eye(3)
        body["com"] = (0.04 * k + 0.02) * X
    machine = tables.build(finger)
    machine.model.damping = np.exp(rng.uniform(np.log(0.1), np.log(7.0), machine.nv))
    machine.model.upperDryFrictionLimit = np.exp(rng.uniform(np.log(0.01), np.log(5.0), machine.nv))
    push = pl.Torque(machine.joints[1], 0.02)
    run = pl.simulate(machine, machine.neutral, until=0.2, forces=[push])
    assert run.message == "done" and not run.warnings and len(run.t) < 300
    # Without inertia: friction, damping and the push hold each other, or it sticks.
    for k in np.flatnonzero(run.t > 0.1).tolist():
        equations = run.equations[k]
        _, f, _, _, _ = equations.system(float(run.t[k]), run.q[k], run.v[k])
        loose = np.setdiff1d(np.arange(machine.nv), equations.rows.locked)
        assert np.abs(f[loose]).max(initial=0.0) < 1e-6


def test_a_spring_too_stiff_to_move_follows_its_load() -> None:
    """``q = load / stiffness`` without inertia; what is stiff is said with the run."""
    load = pl.Torque("joint", lambda t: np.sin(3.0 * t))
    forces = [pl.forces.JointSpring("joint", 1e7), pl.forces.JointDamping({"joint": 4e3}), load]
    run = pl.simulate(hinge(), np.zeros(1), np.zeros(1), until=2.0, forces=forces)
    assert run.q[-1, 0] == pytest.approx(np.sin(6.0) / 1e7, abs=2e-9)
    assert "note: from t = " in str(run) and "'joint damping' of joint 'joint'" in str(run)
    assert len(run.t) < 400


def test_locked_joints_stay_where_they_are() -> None:
    machine = robot("six-axis-arm")
    first, *others = machine.joints
    v = np.eye(machine.nv)[1]
    run = pl.simulate(
        machine, machine.neutral, v, until=0.1, mode=pl.Mode([first]),
        forces=[pl.forces.JointDamping(dict.fromkeys([first, *others], 1e8))],
    )  # fmt: skip
    at = machine.coordinates(first)
    assert run.accuracy is not None and "'joint damping'" in run.accuracy.switched
    assert not run.v[:, at.v].any() and np.ptp(run.q[:, at.q]) == 0.0


@pytest.mark.parametrize(
    "formulation", [None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()], ids=str
)
def test_infinite_states_are_no_singular_mass(formulation: Any) -> None:
    machine = robot("four-bar")
    equations = pl.EquationsOfMotion(machine, formulation=formulation)
    q, v = moving(machine, 1)
    equations.acceleration(0.0, q, v)
    with pytest.raises(pl.NotFinite, match=r"infinite at t = 0\.5 s"):
        equations.acceleration(0.5, np.full(machine.nq, np.nan), v)


# -- what is too fast for fixed steps -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "constants"),
    [("rk4", 2.0), ("rk4", 2.7), ("heun", 1.5), ("rk4", 30.0), ("radau5", 10.0), ("radau9", 100.0)],
)
@pytest.mark.parametrize("save_every", [None, 0.02])
def test_fixed_steps_say_what_they_leave(
    name: str, constants: float, save_every: float | None
) -> None:
    """What the first step leaves of ``v0`` less ``exp(-h / tau)`` is what the warning says."""
    h = 1e-3
    run = pl.simulate(
        hinge(damping=constants * MOMENT / h), np.zeros(1), np.ones(1), until=0.02,
        method=pl.MuntheKaas(name, step=h), save_every=save_every,
    )  # fmt: skip
    assert run.accuracy is not None
    found = re.fullmatch(
        r"a step of 0\.001 s is too long for a motion of joint 'joint': (\S+) of the largest "
        r"speed is wrong after it; take a smaller step, or tolerances instead of one",
        run.accuracy.unresolved,
    )
    assert found is not None and run.accuracy.unresolved in run.warnings
    if save_every is None:
        missed = abs(run.v[1, 0] - np.exp(-constants))
        assert float(found[1]) == pytest.approx(missed, rel=0.06)


@pytest.mark.parametrize(("name", "constants"), [("rk4", 0.9), ("radau9", 3.0), ("radau9", 1e6)])
def test_fixed_steps_that_are_short_or_leave_nothing_say_nothing(
    name: str, constants: float
) -> None:
    run = pl.simulate(
        hinge(damping=constants * MOMENT / 1e-3), np.zeros(1), np.ones(1), until=0.02,
        method=pl.MuntheKaas(name, step=1e-3),
    )  # fmt: skip
    assert np.abs(run.v[:, 0] - np.exp(-1e3 * constants * run.t)).max() < 1e-2
    assert run.accuracy is not None and not run.accuracy.unresolved


def test_what_is_too_fast_after_an_event_is_found_there() -> None:
    """A tooth is let go under load: only then is there a motion that a step cannot follow."""
    machine, h = hinge(damping=20.0 * MOMENT / 1e-3), 1e-3
    push = pl.Torque("joint", 100.0)
    run = pl.simulate(
        machine, np.zeros(1), until=0.05, mode=pl.Mode(["joint"]), forces=[push],
        events=[pl.unlock("joint", at=0.02)], method=pl.MuntheKaas("rk4", step=h),
    )  # fmt: skip
    settled, first = 100.0 / 2000.0, int(np.searchsorted(run.t, 0.021 - 1e-9))
    missed = abs(run.v[first, 0] / settled - 1.0)
    assert run.accuracy is not None and missed > 0.01
    assert f": {missed:.2g} of the largest speed" in run.accuracy.unresolved


def test_a_lightly_damped_spring_is_named_too() -> None:
    """``omega h = 2.5``: stable with "rk4", and wrong from the first step on."""
    spring = pl.forces.JointSpring("joint", MOMENT * 2500.0**2)
    run = pl.simulate(
        hinge(), np.full(1, 1e-4), until=0.02, forces=[spring],
        method=pl.MuntheKaas("rk4", step=1e-3),
    )  # fmt: skip
    assert run.accuracy is not None and "joint 'joint'" in run.accuracy.unresolved


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("step", [None, 1e-4])
def test_failures_from_stiff_springs_name_joint_and_way_out(step: float | None) -> None:
    """``1 / omega``: 3.2e-7 s, and 1e-13 s, which no step may be shorter than."""
    stiffness = 1e12 if step else 1e25
    method = pl.MuntheKaas("rk4" if step else "dopri5", step=step, when_stiff="warn")
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(
            hinge(), np.full(1, 1e-3), np.ones(1), until=0.1, method=method,
            forces=[pl.forces.JointSpring("joint", stiffness)],
        )  # fmt: skip
    time = f"{np.sqrt(MOMENT / stiffness):.2g}"
    assert str(caught.value).endswith(
        f"joint 'joint' has a motion with a time constant of {time} s; "
        "leave when_stiff='warn' out, or take pl.MuntheKaas('radau9')"
    )


def test_a_step_too_long_for_the_motion_itself_is_left_to_its_method() -> None:
    """A pendulum in steps of two time constants: iterations do not converge, it is not stiff."""
    machine = one_body("revolute", com=(0.0, 0.5, 0.0), gravity=(0.0, -9.81, 0.0))
    spring = pl.TorqueFunction(lambda t, q, v: -400.0 * np.sin(20.0 * q))
    run = pl.simulate(
        machine, np.full(1, 0.3), np.full(1, 4.0), until=1.0, forces=[spring],
        method=pl.MuntheKaas("rk4", step=0.05),
    )  # fmt: skip
    assert run.message == "done" and len(run.t) == 21


# -- and back -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dopri5", "dop853", "bs32"])
def test_explicit_steps_go_on_where_a_brake_lets_go(name: str) -> None:
    """A damper that acts for some 10 ms of 3 s."""
    machine = robot("six_axis_arm")
    q, v = moving(machine, 2)

    def brake(t: float, q: Any, v: Any) -> Any:
        return -1e5 * v * np.exp(-(((t - 1.005) / 2e-3) ** 2)) if 0.98 < t < 1.03 else 0.0 * v

    def run(until: float = 3.0, **options: Any) -> pl.Trajectory:
        return pl.simulate(machine, q, v, until=until, tau=brake, losses=False, **options)

    tolerance = 1e-6 if name == "bs32" else 1e-8
    found = run(method=pl.MuntheKaas(name, rtol=tolerance, atol=tolerance))
    assert found.accuracy is not None
    started, ended = map(float, re.findall(r"from t = (\S+) s on", found.accuracy.switched))
    assert 0.99 < started < 1.01 < ended < 1.02
    assert f"implicit steps ('radau9') took over from '{name}'" in found.accuracy.switched
    assert found.accuracy.switched.endswith(f"s on steps of '{name}' go on")
    # Without the brake it takes about as many evaluations: implicit ones are a part of them.
    plain = pl.simulate(
        machine, q, v, until=3.0, losses=False,
        method=pl.MuntheKaas(name, rtol=tolerance, atol=tolerance),
    )  # fmt: skip
    assert found.evaluations < 2.0 * plain.evaluations
    fine = run(method=pl.MuntheKaas("radau9", rtol=1e-11, atol=1e-11))
    np.testing.assert_allclose(found.q[-1], fine.q[-1], rtol=0, atol=1e3 * tolerance)
    assert not any("balance" in warning for warning in found.warnings)


def test_many_changes_are_counted() -> None:
    """A damper that comes and goes."""
    machine = hinge()
    comes = pl.TorqueFunction(lambda t, q, v: -3e4 * np.sin(np.pi * t) ** 40 * v + np.cos(20 * t))
    run = pl.simulate(machine, np.zeros(1), np.ones(1), until=8.0, forces=[comes])
    assert run.accuracy is not None
    assert run.accuracy.switched.count("from t = ") == 4
    assert re.search(r"; and \d+ times more$", run.accuracy.switched)
    reference = pl.simulate(
        machine, np.zeros(1), np.ones(1), until=8.0, forces=[comes],
        method=pl.MuntheKaas("radau9", rtol=1e-11, atol=1e-11),
    )  # fmt: skip
    assert run.q[-1, 0] == pytest.approx(reference.q[-1, 0], abs=1e-6)
