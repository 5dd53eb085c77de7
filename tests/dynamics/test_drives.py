"""Torques of drives: fed back, in balance with energies, optimal, within limits, and in time."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import scipy

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.constraints.relative_motion import JointMotion
from pinloop.constraints.rows import Locked

from .. import mechanisms as m
from .. import random_linkages
from ..motion_by_hand import potential_energy, rate
from ..screw_tables import Array, build
from ..states import SHIPPED, SMALL, allowed, assembled, close, one_body, robot
from .test_inverse import planned, spin

minimize: Any = scipy.optimize.minimize
REDUNDANT = {
    "four-bar": ("crank", "elbow", "rocker"),
    "five-bar": ("m1", "m2", "e1", "e2"),
    "planar-3-RRR": ("a0", "a1", "a2", "b0", "b1"),
}


def motion(
    machine: pl.Mechanism, seed: int, equations: pl.EquationsOfMotion | None = None
) -> tuple[Array, Array, Array]:
    """A state and an acceleration that the rows of some equations allow."""
    equations = equations or pl.EquationsOfMotion(machine)
    rng, q = np.random.default_rng(seed), assembled(machine, seed)
    J = equations.terms(0.0, q, np.zeros(machine.nv))[0]
    free = allowed(J)
    v = free @ rng.normal(size=free.shape[1])
    gamma = equations.terms(0.0, q, v)[2]
    a = free @ rng.normal(size=free.shape[1])
    return q, v, a - (np.linalg.lstsq(J, gamma, rcond=1e-9)[0] if len(J) else 0.0)


def constant(total: Array, t: float, q: Array, v: Array) -> Array:
    return total


def forces_of(machine: pl.Mechanism, joints: Sequence[str], tau: Array) -> list[Any]:
    """Torques on axes of joints, each a force of its own, also on joints that close loops."""
    values = iter(tau.tolist())
    acting: list[Any] = []
    for joint in joints:
        axes = JointMotion(machine, joint).axes
        if len(axes) == 1:
            acting.append(pl.Torque(joint, next(values)))
            continue
        at, total = machine.coordinates(joint).v, np.zeros(machine.nv)
        total[at] = [next(values) for _ in axes]
        acting.append(pl.TorqueFunction(partial(constant, total)))
    assert next(values, None) is None
    return acting


def drivable(machine: pl.Mechanism) -> list[str]:
    """All joints of the tree, and those of loops with one axis that stands still."""
    loops = [x.name for x in machine.loops if x.pair.dof == 1]
    return [*machine.joints, *loops]


# -- the equations of motion give it back -------------------------------------------------------


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_torques_fed_back_give_the_acceleration(name: str) -> None:
    machine = robot(name)
    joints = drivable(machine)
    drives = pl.DriveTorques(machine, actuated=joints, losses=False)
    q, v, a = motion(machine, 3)
    load = drives(q, v, a)
    acting = forces_of(machine, joints, load.torque)
    back = pl.EquationsOfMotion(machine, forces=acting).acceleration(0.0, q, v)
    close(back, a, 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_on_random_mechanisms_of_all_pairs(seed: int) -> None:
    """Some of the joints are driven, among them ones that close loops, and some are locked."""
    machine = build(random_linkages.graph(seed))
    rng = np.random.default_rng(seed)
    if nearby_assembly(machine, machine.neutral, rng) is None:
        return  # it cannot move
    joints = drivable(machine)
    free = [joint for joint in machine.joints if machine.coordinates(joint).nv == 1]
    locks = tuple(Locked(joint) for joint in free[: seed % 2])
    equations = pl.EquationsOfMotion(machine, locks=locks).around(0.0, assembled(machine, seed))
    q, v, a = motion(machine, seed, equations)
    if not np.abs(v).max(initial=0.0) > 0.0:
        return  # nor can it like this
    weights = dict(zip(joints, rng.uniform(0.2, 5.0, len(joints)).tolist(), strict=True))
    drives = pl.DriveTorques(machine, actuated=joints, weights=weights, locks=locks, losses=False)
    tau = drives(q, v, a).torque
    acting = forces_of(machine, joints, tau)
    fed = pl.EquationsOfMotion(machine, locks=locks, forces=acting).around(0.0, q)
    close(fed.acceleration(0.0, q, v), a, 1e-10, size=max(1.0, float(np.abs(tau).max())))


@pytest.mark.parametrize("name", ["palletizer", "fivebar", "stewart", "planar-3-RRR", "rssr"])
def test_power_of_the_drives_is_what_energy_and_losses_take(name: str) -> None:
    """Along a motion: the rate of kinetic and potential energy by differences, and the losses."""
    machine = robot(name)
    q, v, a = motion(machine, 5)
    losses = [pl.forces.JointDamping(), pl.forces.JointFriction()]
    spring = pl.forces.JointSpring(machine.actuated[0], 30.0, 0.1)
    drives = pl.DriveTorques(machine, actuated=machine.joints, forces=[spring])
    equations = pl.EquationsOfMotion(machine, forces=[spring, *losses])

    def energy(t: float) -> float:
        there = pin.integrate(machine.model, q, t * v + 0.5 * t**2 * a)
        kinetic, potential, stored = equations.energies(0.0, there, v + t * a)
        return kinetic + potential + sum(stored.values())

    h = 1e-3
    coarse, fine = ((energy(x) - energy(-x)) / (2 * x) for x in (2 * h, h))
    lost = sum(equations.powers(0.0, q, v).values())
    load = drives(q, v, a)
    np.testing.assert_allclose(load.power, load.torque * v, rtol=1e-12)
    size = float(np.abs(load.power).max())
    assert load.power.sum() == pytest.approx((4 * fine - coarse) / 3 - lost, abs=1e-7 * size)


# -- optimal, within limits ---------------------------------------------------------------------


@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_torques_with_reactions_as_unknowns(name: str, seed: int) -> None:
    """Another formulation: torques and multipliers together, by SLSQP, without a null space."""
    machine, joints = robot(name), REDUNDANT[name]
    q, v, a = planned(machine, seed)
    columns = [machine.coordinates(joint).v.start for joint in joints]
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 3.0, len(joints))
    named = dict(zip(joints, weights.tolist(), strict=True))
    free = pl.DriveTorques(machine, actuated=joints, weights=named)
    wanted = free(q, v, a).torque
    largest = 0.85 * float(np.abs(wanted).max())  # the cheapest without limits is beyond them
    limits = dict.fromkeys(joints, largest)
    load = pl.DriveTorques(machine, actuated=joints, weights=named, limits=limits)(q, v, a)
    J, _, _ = pl.EquationsOfMotion(machine).terms(0.0, q, v)
    k, rows = len(joints), np.linalg.svd(J, full_matrices=False)[2][: np.linalg.matrix_rank(J)]
    balance = np.hstack([np.eye(machine.nv)[:, columns], rows.T])
    data = machine.model.createData()
    needed = pin.rnea(machine.model, data, q, v, a)
    start = np.linalg.lstsq(balance, needed, rcond=None)[0]
    other = minimize(
        lambda x: 0.5 * weights @ x[:k] ** 2 / largest**2,
        start,
        bounds=[(-largest, largest)] * k + [(None, None)] * len(rows),
        constraints=scipy.optimize.LinearConstraint(balance / largest, *2 * [needed / largest]),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    if load.feasible:
        assert other.success
        close(load.torque, other.x[:k], 1e-5, size=largest)
        assert np.abs(load.torque).max() <= largest * (1 + 1e-9) and not load.exceeded
        left = needed - balance[:, :k] @ load.torque
        close(rows.T @ (rows @ left), left, 1e-9)
    else:
        assert not other.success and load.exceeded and load.slowdown > 1.0


@pytest.mark.parametrize("name", REDUNDANT)
def test_what_exceeds_limits_does_so_by_the_least_fraction(name: str) -> None:
    machine, joints = robot(name), REDUNDANT[name]
    q, v, a = planned(machine, 3)
    limits = {joint: (-0.02 * (k + 1), 0.03) for k, joint in enumerate(joints)}
    load = pl.DriveTorques(machine, actuated=joints, limits=limits)(q, v, a)
    low, high = np.array([*limits.values()]).T
    size = np.maximum(-low, high)
    fraction = float((np.maximum(load.torque - high, low - load.torque) / size).max())
    F = allowed(pl.Constraints(machine).jacobian(q))
    columns = [machine.coordinates(joint).v.start for joint in joints]
    idle = allowed(F[columns].T)  # torques that hold each other
    for seed in range(200):
        other = load.torque + idle @ np.random.default_rng(seed).normal(size=idle.shape[1])
        assert np.max(np.maximum(other - high, low - other) / size) >= fraction - 1e-9
    assert fraction > 0 and set(load.exceeded) <= set(joints) and load.exceeded
    np.testing.assert_allclose(load.torque - load.excess, np.clip(load.torque, low, high))


# -- in time ------------------------------------------------------------------------------------


def feasible_rates(drives: pl.DriveTorques, state: tuple[Array, Array, Array]) -> Array:
    """Rates of time at which a motion is feasible, by brute force."""
    q, v, a = state
    rates = np.linspace(1e-3, 1.0, 1000)
    return np.array([s for s in rates if drives(q, s * v, s * s * a).feasible])


@pytest.mark.parametrize("case", ["palletizer", "fivebar", "four-bar", "planar-3-RRR"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slower_as_much_as_it_takes(case: str, seed: int) -> None:
    machine = robot(case)
    joints = REDUNDANT.get(case, machine.actuated)
    q, v, a = planned(machine, seed)
    rest = np.zeros(machine.nv)
    free = pl.DriveTorques(machine, actuated=joints)
    # What a slow motion takes, and some more.
    slow = np.abs(free(q, 0.1 * v, 0.01 * a).torque)
    limits = dict(zip(joints, (1.2 * slow + 1e-2).tolist(), strict=True))
    assert not free(q, rest, rest).exceeded
    drives = pl.DriveTorques(machine, actuated=joints, limits=limits)
    fast = next(x for x in range(4, 40, 4) if drives(q, x * v, x * x * a).exceeded)
    state = q, fast * v, fast**2 * a
    load = drives(*state)
    assert not load.feasible and 1.0 < load.slowdown < np.inf
    s = 1.0 / load.slowdown
    assert drives(q, s * state[1], s * s * state[2]).feasible
    rates = feasible_rates(drives, state)
    assert rates.max() <= s + 1e-9 and rates.max() >= s - 2e-3


def test_slower_with_forces_that_follow_no_parabola() -> None:
    machine = robot("five-bar")
    q, v, a = planned(machine, 2)
    drag = pl.TorqueFunction(lambda t, q, v: -5.0 * np.abs(v) ** 2.5 * np.sign(v))
    limits = dict.fromkeys(("m1", "m2"), 25.0)
    drives = pl.DriveTorques(machine, actuated=("m1", "m2"), limits=limits, forces=[drag])
    load = drives(q, 2 * v, 4 * a)
    s = 1.0 / load.slowdown
    assert s < 1 and drives(q, 2 * s * v, 4 * s * s * a).feasible
    assert not drives(q, 2.02 * s * v, 4.0804 * s * s * a).feasible


def test_no_slower_motion_helps_what_cannot_be_held() -> None:
    machine = robot("five-bar")
    q, v, a = planned(machine, 2)
    load = pl.DriveTorques(machine, actuated=("m1", "m2"), limits={"m1": 0.01, "m2": 0.01})(q, v, a)
    assert load.slowdown == np.inf and not load.feasible
    assert "However slow" in str(load)


def test_friction_and_weight_do_not_fall_with_the_speed() -> None:
    """One wheel: ``tau = I a s^2 + friction + weight``, solved by hand."""
    flat = one_body("revolute", inertia=(1.0, 1.0, 3.0), gravity=(0.0, 0.0, 0.0))
    rub = [pl.forces.JointFriction(coefficients={"joint": 2.0})]
    wheel = pl.DriveTorques(flat, actuated=["joint"], limits={"joint": 5.0}, forces=rub)
    load = wheel(np.zeros(1), np.array([1.0]), np.array([4.0]))
    assert load.torque[0] == pytest.approx(14.0) and load.slowdown == pytest.approx(2.0)
    stuck = pl.DriveTorques(flat, actuated=["joint"], limits={"joint": 2.0}, forces=rub)
    assert stuck(np.zeros(1), np.array([1.0]), np.array([4.0])).slowdown == np.inf
    braking = wheel(np.zeros(1), np.array([1.0]), np.array([-4.0]))
    assert braking.torque[0] == pytest.approx(-10.0)
    assert braking.slowdown == pytest.approx(np.sqrt(12.0 / 7.0))


def test_a_state_that_only_speed_allows() -> None:
    """A bar that falls needs no torque, and more than there is when it falls slowly."""
    bar = one_body("revolute", com=(0.5, 0.0, 0.0), gravity=(0.0, -10.0, 0.0))
    inertia, weight = 1.0 + 0.25, 5.0
    fall = -weight / inertia
    drives = pl.DriveTorques(bar, actuated=["joint"], limits={"joint": 4.0})
    q, v = np.zeros((2, 1)), np.ones((2, 1))
    alone = drives(q[0], v[0], np.array([fall]))
    assert alone.feasible and alone.torque[0] == pytest.approx(0.0, abs=1e-12)
    down = drives(q[0], v[0], np.array([2.2 * fall]))  # -6 of the drive: faster than it falls
    assert down.slowdown == pytest.approx(np.sqrt(2.2 * weight / (weight + 4.0)))
    # As slow as the second has to be, the first is allowed as well.
    both = drives.along(q, v, np.array([[fall], [2.2 * fall]]))
    assert both.slowdown == pytest.approx(down.slowdown)
    # And where nearly nothing is left of the speed, the first one is not allowed any more.
    both = drives.along(q, v, np.array([[fall], [50.0 * fall]]))
    assert both.slowdown == np.inf


def test_along_a_motion_the_slowest_state_decides() -> None:
    machine = robot("palletizer")
    q0 = pl.assemble(machine, {"shoulder": 0.3})
    run = pl.simulate(machine, q0, until=0.3, losses=False)
    limits = {"shoulder": 900.0, "elbow": 900.0, "wrist": 40.0}
    drives = pl.DriveTorques(machine, limits=limits, losses=False)
    lifted = 2.0 * run.a  # so that the drives have something to do
    picked = slice(None, None, max(1, len(run.t) // 12))
    q, v = run.q[picked], run.v[picked] * np.sqrt(2.0)
    whole = drives.along(q, v, lifted[picked])
    alone = [drives(*state) for state in zip(q, v, lifted[picked], strict=True)]
    np.testing.assert_allclose(whole.torque, [load.torque for load in alone], rtol=1e-12)
    s = 1.0 / whole.slowdown
    assert whole.slowdown >= max(load.slowdown for load in alone) > 1.0
    slower = drives.along(q, s * v, s * s * lifted[picked])
    assert slower.feasible
    faster = 1.001 * s
    assert not drives.along(q, faster * v, faster**2 * lifted[picked]).feasible
    assert whole.torque.shape == whole.power.shape == whole.excess.shape == (len(q), 4)
    with pytest.raises(pl.BadValue, match="one of each for every instant"):
        drives.along(q, v, lifted[:1])


# -- losses -------------------------------------------------------------------------------------


def test_dry_friction_opposes_the_motion_and_the_one_that_begins() -> None:
    machine = robot("fivebar")
    q = pl.assemble(machine, {})
    rest = np.zeros(machine.nv)
    friction = {"base_left": 2.0, "elbow_left": 0.3}
    forces = [pl.forces.JointFriction(coefficients=friction)]
    with_it = pl.DriveTorques(machine, forces=forces, losses=False)
    without = pl.DriveTorques(machine, losses=False)
    v = pl.consistent_velocity(machine, q, {"base_left": 0.5, "base_right": 0.0})
    J, _, gamma = pl.EquationsOfMotion(machine).terms(0.0, q, v)
    a = np.linalg.lstsq(J, -gamma, rcond=None)[0]
    more = with_it(q, v, a).power.sum() - without(q, v, a).power.sum()
    at = [machine.coordinates(joint).v.start for joint in friction]
    assert more == pytest.approx(np.abs(v[at]) @ [2.0, 0.3], rel=1e-9)
    # At rest: nothing while nothing begins, and against the beginning.
    np.testing.assert_array_equal(with_it(q, rest, rest).torque, without(q, rest, rest).torque)
    begin = pl.consistent_velocity(machine, q, {"base_left": -3.0, "base_right": 1.0})
    extra = with_it(q, rest, begin).torque - without(q, rest, begin).torque
    works = pl.consistent_velocity(machine, q, {"base_left": -3.0, "base_right": 1.0})
    assert extra @ [-3.0, 1.0] == pytest.approx(np.abs(works[at]) @ [2.0, 0.3], rel=1e-9)


def test_a_run_breaks_away_with_the_torques_found() -> None:
    """The simulation decides which axes stick: with these torques none does."""
    machine = robot("palletizer")
    q = pl.assemble(machine, {"shoulder": 0.2})
    wanted = pl.consistent_velocity(
        machine, q, {"base_yaw": 1.0, "shoulder": -0.5, "elbow": 0.4, "wrist": 0.2}
    )
    load = pl.DriveTorques(machine)(q, np.zeros(machine.nv), wanted)
    acting = [pl.Torque(joint, float(x)) for joint, x in zip(load.drives, load.torque, strict=True)]
    run = pl.simulate(machine, q, until=1e-4, forces=acting)
    np.testing.assert_allclose(run.v[-1] / run.t[-1], wanted, atol=2e-3)


def test_friction_of_a_joint_that_closes_a_loop() -> None:
    machine = robot("four-bar")
    q, v, a = planned(machine, 4)
    drives = {
        x: pl.DriveTorques(
            machine,
            actuated=["crank"],
            forces=[pl.forces.JointFriction(coefficients={"close": x})],
            losses=False,
        )
        for x in (0.0, 1.5)
    }
    closing = v[machine.coordinates("rocker").v] - v[machine.coordinates("crank").v]
    closing -= v[machine.coordinates("elbow").v]
    more = drives[1.5](q, v, a).power - drives[0.0](q, v, a).power
    assert more == pytest.approx(1.5 * np.abs(closing), rel=1e-9)


# -- closed forms -------------------------------------------------------------------------------


def test_slider_crank_by_virtual_work() -> None:
    """The piston's force times its travel is the crank's torque times its turn."""
    machine = build(m.slider_crank())
    crank = 1.1
    q = machine.configuration(m.slider_crank_q(crank))
    rest = np.zeros(machine.nv)
    weight = pl.DriveTorques(machine, actuated=["crank"])(q, rest, rest).torque[0]
    push = pl.Torque("slide", 50.0)
    loaded = pl.DriveTorques(machine, actuated=["crank"], forces=[push])(q, rest, rest).torque[0]
    lean = m.SHAFT * np.sin(crank)
    travel = -lean * (1 + m.SHAFT * np.cos(crank) / np.sqrt(m.ROD**2 - lean**2))
    assert loaded - weight == pytest.approx(-50.0 * travel, rel=1e-9)
    along = pl.consistent_velocity(machine, q, {"crank": 1.0})
    fall = rate(machine, q, along, lambda q: potential_energy(machine, q))
    assert weight == pytest.approx(fall, rel=1e-8)


# -- the value ----------------------------------------------------------------------------------


def test_limits_of_the_file_and_given_ones() -> None:
    machine = robot("palletizer")
    drives = pl.DriveTorques(machine, limits={"shoulder": (-10.0, 20.0), "wrist": np.inf})
    np.testing.assert_array_equal(drives.bounds.low, [-5500, -10, -5500, -np.inf])
    np.testing.assert_array_equal(drives.bounds.high, [5500, 20, 5500, np.inf])
    # A limit of zero in a file says that there is none.
    unlimited = pl.DriveTorques(machine, actuated=[*machine.joints])
    assert np.isinf(unlimited.bounds.high).sum() == machine.nv - 4


def test_values_can_be_pickled_and_called_in_any_order() -> None:
    machine = robot("palletizer")
    drives = pl.DriveTorques(machine)
    states = [planned(machine, seed) for seed in (1, 2)]
    loads = [drives(*state) for state in states]
    again = pickle.loads(pickle.dumps(drives))
    for load, state in [*zip(loads, states, strict=True)][::-1]:
        np.testing.assert_array_equal(load.torque, again(*state).torque)
    before = pickle.dumps(loads[0])
    assert loads[0].feasible and "palletizer" not in str(loads[0]) and loads[0].exceeded == {}
    assert pickle.dumps(loads[0]) == before
    assert all(a.drives == b.drives == machine.actuated for a, b in pairwise(loads))


def test_locked_drives_need_no_torque() -> None:
    machine = robot("palletizer")
    equations = pl.EquationsOfMotion(machine, locks=["shoulder"])
    q, v, a = motion(machine, 6, equations)
    load = pl.DriveTorques(machine, locks=["shoulder"], losses=False)(q, v, a)
    assert load.torque[1] == pytest.approx(0.0, abs=1e-9) and abs(load.rate[1]) < 1e-15
    acting = forces_of(machine, machine.actuated, load.torque)
    fed = pl.EquationsOfMotion(machine, locks=["shoulder"], forces=acting)
    close(fed.acceleration(0.0, q, v), a, 1e-9)


def test_table_and_refusals() -> None:
    machine = robot("palletizer")
    q, v, a = planned(machine, 1)
    load = pl.DriveTorques(machine, limits={"shoulder": 50.0})(q, v, a)
    assert "times as long" in str(load) or "However slow" in str(load)
    assert "shoulder" in load.exceeded and "beyond" in str(load)
    for options, text in (
        ({"limits": {"elbw": 3.0}}, "elbow"),
        ({"limits": {"elbow": (3.0, 1.0)}}, r"pair \(low, high\)"),
        ({"limits": {"elbow": -3.0}}, "number >= 0"),
        ({"weights": {"elbow": 0.0}}, "must be > 0"),
        ({"weights": {"elbow": "much"}}, "give a number"),
        ({"actuated": "elbow"}, "give a list"),
    ):
        with pytest.raises(pl.PinloopError, match=text):
            pl.DriveTorques(machine, **options)
    delta = robot("delta")
    q, v, a = planned(delta, 7)
    a += 1e4 * spin(delta, q)
    with pytest.raises(pl.BadValue, match="9 degrees of freedom here"):
        pl.DriveTorques(delta)(q, v, a)
    # What its rods do by themselves, the arms need not determine.
    a = pl.EquationsOfMotion(delta, forces=[pl.Torque("arm_1", 3.0)]).acceleration(0.0, q, v)
    np.testing.assert_allclose(
        pl.DriveTorques(delta, losses=False)(q, v, a).torque, [3.0, 0.0, 0.0], atol=1e-7
    )
