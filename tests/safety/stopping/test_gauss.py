"""Tests of `pinloop.dynamics.stick_slip`: against all combinations of sides, and convexity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl

from ...screw_tables import Array
from ...states import allowed, assembled, robot
from .contact_problems import (
    chosen,
    contacts,
    friction,
    random_contacts,
    random_problem,
    redundant,
    solved_problem,
)
from .enumeration import Problem, distance, exact_survivors, fulfils, survivors

often = settings(max_examples=120, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def found_by_brute_force(problem: Problem) -> list[tuple[int, ...]]:
    """Assert that all combinations that fit have the accelerations that are found; return them."""
    fitting, decision = survivors(problem), problem.solve()
    assert fitting
    for one in fitting:
        assert distance(problem, fitting[0].a, one.a) <= 1e-7
        assert distance(problem, decision.a, one.a) <= 1e-8
    fulfils(problem, decision)
    return [one.side for one in fitting]


# -- all combinations -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_the_only_acceleration_that_fits(seed: int) -> None:
    rng = np.random.default_rng(seed + 1000)
    n = int(rng.integers(1, 8))
    found_by_brute_force(random_problem(seed, n, int(rng.integers(0, min(n, 5) + 1))))


@pytest.mark.parametrize("seed", range(2))
def test_eight_contacts(seed: int) -> None:
    found_by_brute_force(random_problem(seed, 8, 8))


def test_random_problems_reach_every_case() -> None:
    """Sides, redundancy and corners occur often enough for the tests above to mean something."""
    sides: list[int] = []
    by_program = corners = 0
    for seed in range(60):
        fitting = survivors(random_problem(seed, 5, 4))
        sides += fitting[0].side
        by_program += any(one.by_program for one in fitting)
        corners += len(fitting) > 1
    assert all(sides.count(side) > 30 for side in (-1, 0, 1))
    assert by_program >= 5 and corners >= 5


@pytest.mark.parametrize("seed", range(20))
def test_torques_that_are_not_unique(seed: int) -> None:
    found_by_brute_force(redundant(seed, 4 + seed % 2, 1 + seed % 3))


@given(seed=seeds, n=st.integers(2, 12))
@often
def test_one_freedom_sticks_until_the_work_of_all_brakes_is_exceeded(seed: int, n: int) -> None:
    """Along the only motion u: the net work rate of f and the largest one of the brakes."""
    p = redundant(seed, n, 1)
    u = allowed(p.J)[:, 0]
    brakes = np.stack((u * p.contacts.low, u * p.contacts.high))
    most, least = u @ p.f + brakes.max(axis=0).sum(), u @ p.f + brakes.min(axis=0).sum()
    rate = (max(least, 0.0) + min(most, 0.0)) / (u @ p.M @ u)
    decision = p.solve()
    assert distance(p, decision.a, rate * u) <= 1e-9
    assert np.array_equal(decision.side, np.sign(rate * u))
    fulfils(p, decision)


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.999999, 1.0, 1.000001, 3.0])
def test_four_bar_with_a_brake_on_every_joint(factor: float) -> None:
    mechanism = robot("fourbar")
    q, data = assembled(mechanism, 3), mechanism.model.createData()
    J = pl.EquationsOfMotion(mechanism).terms(0.0, q, np.zeros(3))[0]
    M = pin.crba(mechanism.model, data, q)
    f = -pin.computeGeneralizedGravity(mechanism.model, data, q)
    u = allowed(J)[:, 0]
    shares = np.array([0.5, 1.0, 2.0])
    limit = shares * abs(u @ f) / (np.abs(u) @ shares)
    problem = Problem(M, f, J, np.zeros(len(J)), friction(*(factor * limit)))
    decision = problem.solve()
    rate = max(1 - factor, 0.0) * (u @ f) / (u @ M @ u)
    np.testing.assert_allclose(decision.a, rate * u, atol=1e-12)
    assert np.array_equal(decision.side, np.sign(rate * u))
    fulfils(problem, decision)


def on_robot(name: str, seed: int, k: int, speed: float) -> Problem:
    """Brakes of some joints of a robot that moves or stands, under gravity."""
    mechanism, rng = robot(name), np.random.default_rng(seed)
    model, data = mechanism.model, mechanism.model.createData()
    q = (
        assembled(mechanism, seed)
        if mechanism.loops
        else pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    )
    equations = pl.EquationsOfMotion(mechanism)
    free = allowed(equations.terms(0.0, q, np.zeros(model.nv))[0])
    v = speed * free @ rng.normal(size=free.shape[1])
    J, _, gamma = equations.terms(0.0, q, v)
    M = equations.mass(q)
    possible = np.linalg.lstsq(J, -gamma)[0] if len(J) else np.zeros(model.nv)
    possible = possible + speed * free @ rng.normal(size=free.shape[1])
    of = random_contacts(rng, M, possible, k)
    f = -pin.nonLinearEffects(model, data, q, v)
    strength = (
        np.abs(f).max() / np.abs(np.r_[of.low, of.high])[np.isfinite(np.r_[of.low, of.high])].max()
    )
    of = replace(of, low=of.low * strength, high=of.high * strength)
    return Problem(M, f, J, gamma, of)


@pytest.mark.parametrize("speed", [0.0, 2.0])
@pytest.mark.parametrize(
    ("name", "k"), [("six_axis_arm", 5), ("palletizer", 5), ("fivebar", 4), ("delta", 4)]
)
def test_shipped_robots(name: str, k: int, speed: float) -> None:
    for seed in range(2):
        found_by_brute_force(on_robot(name, seed, k, speed))


# -- exact ----------------------------------------------------------------------------------------

small = st.integers(-3, 3)


@st.composite
def whole_numbers(draw: st.DrawFn) -> Problem:
    """Small integers, so that torques often lie exactly on a bound; rows leave contacts free."""
    n = draw(st.integers(1, 3))
    m = draw(st.integers(0, n - 1))
    k = draw(st.integers(0, n - m))
    root = np.array([[draw(small) for _ in range(n)] for _ in range(n)], float)
    J = np.eye(n)[n - m :] if m else np.zeros((0, n))
    for row in J:
        row[: n - m] = [draw(small) for _ in range(n - m)]
    f, gamma = (np.array([draw(small) for _ in range(i)], float) for i in (n, m))
    ends = np.array([sorted((draw(small), draw(small))) for _ in range(k)], float).reshape(k, 2)
    infinite = [draw(st.sampled_from([(0, 0)] * 4 + [(1, 0), (0, 1), (1, 1)])) for _ in range(k)]
    ends = np.where(np.array(infinite).reshape(k, 2) > 0, [-np.inf, np.inf], ends)
    target = [float(draw(small)) for _ in range(k)]
    rotor = [[float(draw(st.integers(0, 2))) for _ in range(k)] for _ in range(2)]
    of = contacts(ends[:, 0], ends[:, 1], target, *rotor)
    return Problem(root @ root.T + np.eye(n), f, J, gamma, of)


@given(problem=whole_numbers())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_in_fractions(problem: Problem) -> None:
    """All combinations that fit agree to the last digit; the side is the exact sign."""
    decision, fitting = problem.solve(), exact_survivors(problem)
    a, torque = next(iter(fitting.values()))
    assert all(other == (a, torque) for other in fitting.values())
    np.testing.assert_allclose(decision.a, [float(x) for x in a], rtol=0, atol=1e-11)
    np.testing.assert_allclose(decision.torque, [float(x) for x in torque], rtol=0, atol=1e-10)
    ahead = [
        a[i] - int(w)
        for i, w in zip(problem.contacts.columns, problem.contacts.target, strict=True)
    ]
    assert decision.side.tolist() == [(x > 0) - (x < 0) for x in ahead]
    fulfils(problem, decision)


@given(seed=seeds, n=st.integers(1, 24))
@often
def test_problems_made_from_their_answer(seed: int, n: int) -> None:
    """More contacts than can be enumerated, a third of the pinned ones exactly at a bound."""
    problem, a, side = solved_problem(seed, n, n)
    decision = problem.solve()
    assert distance(problem, decision.a, a) <= 1e-9
    assert np.array_equal(decision.side, side)
    fulfils(problem, decision)


# -- convexity ------------------------------------------------------------------------------------


def objective(p: Problem) -> Callable[[Array], Array]:
    """What is minimised, for accelerations of shape (..., n)."""
    c = p.contacts

    def value(a: Array) -> Array:
        x = a[..., c.columns] - c.target
        ahead, behind = np.maximum(x, 0), np.maximum(-x, 0)
        with np.errstate(invalid="ignore"):
            linear = np.where(ahead > 0, -c.low * ahead, 0) + np.where(
                behind > 0, c.high * behind, 0
            )
        kinetic = 0.5 * np.einsum("...i,ij,...j->...", a, p.M, a) - a @ p.f
        quadratic = 0.5 * (c.inertia_up * ahead**2 + c.inertia_down * behind**2)
        return np.asarray(kinetic + np.sum(linear + quadratic, axis=-1))

    return value


@pytest.mark.parametrize("seed", range(20))
def test_no_other_motion_is_better(seed: int) -> None:
    """By at least half its squared distance: the objective is that convex."""
    p, rng = random_problem(seed, 6, 6), np.random.default_rng(seed)
    bounded = np.isfinite(p.contacts.low) & np.isfinite(p.contacts.high)
    p = replace(p, contacts=chosen(p.contacts, bounded))
    best, free, value = p.solve().a, allowed(p.J), objective(p)
    directions = rng.normal(size=(1000, free.shape[1])) @ free.T
    lengths = np.sqrt(np.einsum("ki,ij,kj->k", directions, p.M, directions))
    size = np.sqrt(p.f @ np.linalg.solve(p.M, p.f) + best @ p.M @ best)
    steps = directions / lengths[:, None] * size * 10 ** rng.uniform(-4, 1, (1000, 1))
    half = 0.5 * np.einsum("ki,ij,kj->k", steps, p.M, steps)
    gained = value(best + steps) - value(best)
    assert np.all(gained >= half * (1 - 1e-6) - 1e-10 * size**2)


@given(seed=seeds, n=st.integers(1, 15), change=st.sampled_from([1e-6, 1e-2, 1.0]))
@often
def test_accelerations_follow_the_forces(seed: int, n: int, change: float) -> None:
    """(a1 - a2)' (f1 - f2) >= |a1 - a2|_M^2: no jump, no second solution, whatever sticks."""
    p, rng = solved_problem(seed, n, n)[0], np.random.default_rng(seed)
    df = change * rng.normal(size=n) * np.sqrt(np.diagonal(p.M))
    da = replace(p, f=p.f + df).solve().a - p.solve().a
    bound = df @ np.linalg.solve(p.M, df)
    assert da @ p.M @ da <= da @ df + 1e-9 * bound + 1e-18 * (p.f @ np.linalg.solve(p.M, p.f))
