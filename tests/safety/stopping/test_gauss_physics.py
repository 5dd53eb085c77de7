"""Tests of `pinloop.dynamics.stick_slip`: cases by hand; other ways to ask for the same answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import pinloop as pl
from pinloop.dynamics.stick_slip import Contacts, Decision, solve_stick_slip

from ...screw_tables import Array
from ...states import allowed
from .contact_problems import (
    chosen,
    contacts,
    friction,
    random_mass,
    random_problem,
    redundant,
    solved_problem,
)
from .enumeration import Problem, distance, fulfils, survivors

often = settings(max_examples=100, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
sizes = st.integers(1, 7)
INF = np.inf
G = 9.81


def serial(M: ArrayLike, f: ArrayLike, of: Contacts) -> Decision:
    """Decide without rows."""
    mass = np.atleast_2d(np.asarray(M, float))
    force = np.atleast_1d(np.asarray(f, float))
    return solve_stick_slip(mass, force, np.zeros((0, len(mass))), np.zeros(0), of)


def expect(decision: Decision, a: ArrayLike, torque: ArrayLike, side: ArrayLike) -> None:
    np.testing.assert_allclose(decision.a, np.atleast_1d(a), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(decision.torque, np.atleast_1d(torque), rtol=1e-12, atol=1e-12)
    assert decision.side.tolist() == np.atleast_1d(side).tolist()


def without_contacts(p: Problem) -> Array:
    """Acceleration in a basis of ``J a = 0``, away from one that fits."""
    N = allowed(p.J)
    fitting = np.linalg.lstsq(p.J, -p.gamma)[0] if len(p.J) else np.zeros(len(p.f))
    return np.asarray(fitting + N @ np.linalg.solve(N.T @ p.M @ N, N.T @ (p.f - p.M @ fitting)))


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize(
    ("push", "a", "torque", "side"),
    [(0, 0, 0, 0), (5, 0, -5, 0), (7, 0, -7, 0), (7.001, 0.0005, -7, 1), (9, 1, -7, 1)],
)
def test_block_on_a_table(push: float, a: float, torque: float, side: int, way: int) -> None:
    """2 kg with a friction of 7 N."""
    expect(serial(2.0, way * push, friction(7.0)), way * a, way * torque, way * side)


def test_hoist_whose_brake_is_too_weak_falls_slower_than_freely() -> None:
    expect(serial(10.0, -10 * G, friction(100.0)), 0.0, 10 * G, 0)
    expect(serial(10.0, -10 * G, friction(80.0)), -G + 8.0, 80.0, -1)


# Outstretched horizontal arm of two massless 1 m links with 1 kg at the elbow and at the tip.
ARM = np.array([[5.0, 2.0], [2.0, 1.0]])
WEIGHT = -G * np.array([3.0, 1.0])


def test_elbow_that_holds_while_the_arm_falls_slips_when_the_shoulder_holds() -> None:
    """Falling, the elbow carries g/5 upside down; with the shoulder held, g."""
    expect(serial(ARM, WEIGHT, friction(0.0, 0.5 * G)), [-0.6 * G, 0], [0, -0.2 * G], [-1, 0])
    expect(serial(ARM, WEIGHT, friction(9 * G, 0.5 * G)), [0, -G / 2], [2 * G, G / 2], [0, -1])
    expect(serial(ARM, WEIGHT, friction(9 * G, G)), [0, 0], [3 * G, G], [0, 0])


@pytest.mark.parametrize(
    ("f", "bounds", "a", "torque", "side"),
    [
        ((6, 2.5), (10, 2), (0, 0.5), (-5.5, -2), (0, 1)),
        # The first slides and thereby relieves the second, which alone would slip.
        ((6, 2.5), (4, 2), (1, 0), (-4, -1.5), (1, 0)),
        # The second slips and thereby loads the first, which alone would hold.
        ((-3, 6), (4, 2), (-3, 7), (4, -2), (-1, 1)),
        ((3, 2), (4, 2), (0, 0), (-3, -2), (0, 0)),
    ],
)
def test_two_coupled_joints(
    f: ArrayLike, bounds: tuple[float, float], a: ArrayLike, torque: ArrayLike, side: ArrayLike
) -> None:
    expect(serial([[2, 1], [1, 1]], f, friction(*bounds)), a, torque, side)


@pytest.mark.parametrize(("push", "a"), [(6.0, 0.0), (7.0, 0.0), (11.0, 1.0), (-15.0, -2.0)])
def test_two_sliders_tied_by_a_rod(push: float, a: float) -> None:
    """1 kg and 3 kg, frictions 2 N and 5 N: only their sum matters, the split is not unique."""
    problem = Problem(
        np.diag([1.0, 3.0]), np.array([push, 0]), np.array([[1.0, -1.0]]), np.zeros(1),
        friction(2.0, 5.0),
    )  # fmt: skip
    decision = problem.solve()
    np.testing.assert_allclose(decision.a, a, rtol=0, atol=1e-13)
    assert decision.side.tolist() == [np.sign(a)] * 2
    assert decision.torque.sum() == pytest.approx(4 * a - push, abs=1e-12)
    if a != 0:
        np.testing.assert_allclose(decision.torque, -np.sign(a) * np.array([2.0, 5.0]))
    # The second slider feels only its friction and the rod.
    assert decision.multipliers[0] == pytest.approx(decision.torque[1] - 3 * a, abs=1e-12)
    fulfils(problem, decision)


@pytest.mark.parametrize("lever", [1e-2, 2e-6])
@pytest.mark.parametrize(("push", "a"), [(2.5, 0.0), (5.0, 2.0), (-6.0, -3.0)])
def test_strong_brake_on_a_short_lever(lever: float, push: float, a: float) -> None:
    """Near a dead centre a brake of 2 N / lever does what one of 2 N does beside the 1 N there."""
    J = np.array([[lever, -1.0]])
    of = friction(1.0, 2.0 / lever)
    decision = solve_stick_slip(np.eye(2), np.array([push, 0.0]), J, np.zeros(1), of)
    expected = a / (1 + lever**2) * np.array([1, lever])
    np.testing.assert_allclose(decision.a, expected, rtol=1e-9, atol=1e-9)
    assert decision.side.tolist() == [np.sign(a)] * 2


def test_ball_on_the_ground_and_freewheel() -> None:
    """An infinite bound: torques of any size against one direction, none against the other."""
    ground, freewheel = contacts(0.0, INF), contacts(-INF, 0.0)
    expect(serial(2.0, -2 * G, ground), 0.0, 2 * G, 0)
    expect(serial(2.0, 3.0, ground), 1.5, 0.0, 1)
    expect(serial(2.0, 3.0, freewheel), 0.0, -3.0, 0)
    expect(serial(2.0, -3.0, freewheel), -1.5, 0.0, -1)


def test_drive_follows_its_reference_as_far_as_its_torque_allows() -> None:
    """Load of 1 N m against it, inertia 2: following 3 rad/s^2 takes 7 N m."""
    expect(serial(2.0, -1.0, contacts(-10.0, 10.0, target=3.0)), 3.0, 7.0, 0)
    expect(serial(2.0, -1.0, contacts(-5.0, 5.0, target=3.0)), 2.0, 5.0, -1)
    expect(serial(2.0, -1.0, contacts(-5.0, 5.0, target=-4.0)), -3.0, -5.0, 1)


@pytest.mark.parametrize(
    ("f", "target", "a", "torque", "side"),
    [
        (10, 0, 2, -8, 1),  # (1 + 3) a = 10 - 2
        (-10, 0, -4, 6, -1),  # (1 + 1) a = -10 + 2
        (10, 1, 2.75, -7.25, 1),  # (1 + 3) (a - 1) = 10 - 2 - 1
        (-10, -2, -5, 5, -1),  # (1 + 1) (a + 2) = -10 + 2 + 2
        (1, 0, 0, -1, 0),
    ],
)
def test_rotor_behind_a_lossy_gear(
    f: float, target: float, a: float, torque: float, side: int
) -> None:
    of = contacts(-2.0, 2.0, target=target, up=3.0, down=1.0)
    expect(serial(1.0, f, of), a, torque, side)


@pytest.mark.parametrize("coordinate", [3.0, 0.0, -4.0])
def test_coordinate_that_the_rows_prescribe(coordinate: float) -> None:
    """The contact has no say, but it has its torque, and the row carries it."""
    of = contacts(-2.0, 5.0, up=1.0, down=0.5)
    problem = Problem(np.eye(1) * 2, np.array([1.0]), np.eye(1), np.array([-coordinate]), of)
    decision = problem.solve()
    assert decision.a[0] == pytest.approx(coordinate, abs=1e-14)
    assert decision.side.tolist() == [np.sign(coordinate)]
    if coordinate != 0:
        torque = -2 - coordinate if coordinate > 0 else 5 - 0.5 * coordinate
        assert decision.torque[0] == pytest.approx(torque)
    fulfils(problem, decision)


@pytest.mark.parametrize("n", [3, 6, 9])
def test_rounding_of_the_rows_is_not_motion(n: int) -> None:
    """Nothing pushes, the rows move some coordinates fast and hold the others: these stand."""
    rng = np.random.default_rng(n)
    mixing, still = rng.normal(size=(n, n)), rng.random(n) < 0.5
    a = np.where(still, 0.0, 1e3 * rng.normal(size=n))
    of = contacts(np.full(still.sum(), -1.0), 1.0, columns=np.flatnonzero(still))
    M = random_mass(rng, n)
    decision = Problem(M, np.zeros(n), mixing, -mixing @ a, of).solve()
    np.testing.assert_allclose(decision.a, a, rtol=0, atol=1e-6)
    assert not decision.side.any()


@pytest.mark.parametrize("low", [0.0, -0.0])
def test_contacts_without_torque_change_nothing(low: float) -> None:
    p = random_problem(3, 5, 0)
    of = contacts(np.full(5, low), np.full(5, -low))
    expected = without_contacts(p)
    decision = replace(p, contacts=of).solve()
    assert distance(p, decision.a, expected) <= 1e-10
    assert np.array_equal(decision.torque, np.zeros(5))
    assert np.array_equal(decision.side, np.sign(expected))


def test_nothing_pushes() -> None:
    p = redundant(2, 5, 2)
    decision = replace(p, f=np.zeros(5)).solve()
    assert not decision.a.any() and not decision.side.any()


def test_no_contacts() -> None:
    p = random_problem(4, 4, 0)
    decision = p.solve()
    assert distance(p, decision.a, without_contacts(p)) <= 1e-10
    assert decision.torque.shape == decision.side.shape == (0,)


@pytest.mark.parametrize("coupled", [False, True])
def test_teeth_that_contradict_the_rows(coupled: bool) -> None:
    """One tooth on a coordinate that a row moves, or two on coordinates that move alike."""
    J, gamma, target = np.array([[1.0, 0.0]]), np.array([-1.0]), np.array([0.0, 0.0])
    if coupled:
        J, gamma, target = np.array([[1.0, -1.0]]), np.zeros(1), np.array([0.0, 1.0])
    teeth = contacts([-INF, -INF], [INF, INF], target=target)
    with pytest.raises(pl.PinloopError, match="rows"):
        solve_stick_slip(np.eye(2), np.zeros(2), J, gamma, teeth)


def test_strong_coupling_leaves_one_acceleration() -> None:
    """No Painleve paradox: the friction does not depend on the reaction, however skew M is."""
    M = np.array([[1.0, 1 - 1e-6], [1 - 1e-6, 1.0]])
    for push in np.random.default_rng(5).uniform(-3, 3, (40, 2)):
        problem = Problem(M, push, np.zeros((0, 2)), np.zeros(0), friction(1.0, 1.0))
        fitting, decision = survivors(problem), problem.solve()
        assert len(fitting) == 1 and fitting[0].side == tuple(decision.side.tolist())
        assert distance(problem, decision.a, fitting[0].a) <= 1e-10


# -- other ways to ask for the same answer --------------------------------------------------------


def mirrored(p: Problem) -> Problem:
    c = p.contacts
    other = Contacts(c.columns, -c.target, -c.high, -c.low, c.inertia_down, c.inertia_up)
    return Problem(p.M, -p.f, p.J, -p.gamma, other)


@given(seed=seeds, n=sizes)
@often
def test_mirrored(seed: int, n: int) -> None:
    p = random_problem(seed, n, n)
    one, other = p.solve(), mirrored(p).solve()
    assert distance(p, one.a, -other.a) <= 1e-11
    assert np.array_equal(one.side, -other.side)


@given(seed=seeds, n=st.integers(2, 12))
@often
def test_order_does_not_matter(seed: int, n: int) -> None:
    """Neither that of the contacts nor those of coordinates and rows."""
    p, rng = solved_problem(seed, n, n)[0], np.random.default_rng(seed)
    one, order = p.solve(), rng.permutation(n)
    shuffled = replace(p, contacts=chosen(p.contacts, order)).solve()
    assert distance(p, one.a, shuffled.a) <= 1e-12
    assert np.array_equal(one.side[order], shuffled.side)
    rows, back = rng.permutation(len(p.J)), np.argsort(order)
    of = replace(p.contacts, columns=back[p.contacts.columns])
    moved = Problem(p.M[np.ix_(order, order)], p.f[order], p.J[rows][:, order], p.gamma[rows], of)
    renamed = moved.solve()
    assert distance(moved, one.a[order], renamed.a) <= 1e-9
    assert np.array_equal(one.side, renamed.side)


@given(seed=seeds, n=sizes)
@often
def test_units_do_not_matter(seed: int, n: int) -> None:
    """Some coordinates and rows in mm, others in m."""
    p, rng = random_problem(seed, n, n), np.random.default_rng(seed)
    unit, rows = 1000.0 ** -rng.integers(0, 2, n), 1000.0 ** rng.integers(0, 2, len(p.J))
    c, own = p.contacts, unit[p.contacts.columns]
    of = Contacts(
        c.columns, c.target / own, c.low * own, c.high * own,
        c.inertia_up * own**2, c.inertia_down * own**2,
    )  # fmt: skip
    M, J = unit[:, None] * p.M * unit, rows[:, None] * p.J * unit
    one, other = (p.solve(), Problem(M, unit * p.f, J, rows * p.gamma, of).solve())
    assert distance(p, one.a, unit * other.a) <= 1e-7
    # A contact that only the rows hold at its target moves by rounding.
    clear = np.abs(one.a[c.columns] - c.target) > 1e-7 * np.abs(one.a).max()
    assert np.array_equal(one.side[clear], other.side[clear])


@given(seed=seeds, n=sizes)
@often
def test_rows_said_twice(seed: int, n: int) -> None:
    p = random_problem(seed, n, n)
    twice = replace(p, J=np.vstack((p.J, -2 * p.J)), gamma=np.r_[p.gamma, -2 * p.gamma])
    assert distance(p, p.solve().a, twice.solve().a) <= 1e-8
    fulfils(twice, twice.solve())


@given(seed=seeds, n=sizes)
@often
def test_constant_torques_and_inertias_are_part_of_the_body(seed: int, n: int) -> None:
    """A contact with one bound and one inertia for both directions is no contact."""
    p, rng = random_problem(seed, n, n), np.random.default_rng(seed)
    c = replace(p.contacts, inertia_down=p.contacts.inertia_up)
    bound = rng.normal(size=n) * np.sqrt(np.diagonal(p.M)[c.columns])
    plain = rng.random(n) < 0.5
    c = replace(c, low=np.where(plain, bound, c.low), high=np.where(plain, bound, c.high))
    if np.any(np.isinf(np.r_[c.low, c.high])):
        c = replace(c, target=-np.linalg.pinv(p.J)[c.columns] @ p.gamma)
    rotor, push = np.zeros(n), np.zeros(n)
    rotor[c.columns[plain]] = c.inertia_up[plain]
    push[c.columns[plain]] = (bound + c.inertia_up * c.target)[plain]
    merged = Problem(p.M + np.diag(rotor), p.f + push, p.J, p.gamma, chosen(c, ~plain))
    assert distance(p, replace(p, contacts=c).solve().a, merged.solve().a) <= 1e-8


@given(seed=seeds, n=sizes)
@often
def test_teeth_are_rows(seed: int, n: int) -> None:
    p, rng = random_problem(seed, n, n), np.random.default_rng(seed)
    a = np.linalg.lstsq(p.J, -p.gamma)[0] if len(p.J) else np.zeros(n)
    k = int(rng.integers(0, n + 1))
    infinite = np.full(k, INF)
    of = contacts(-infinite, infinite, target=a[:k])
    locked = np.vstack((p.J, np.eye(n)[:k])), np.r_[p.gamma, -a[:k]]
    expected = without_contacts(replace(p, J=locked[0], gamma=locked[1]))
    problem = replace(p, contacts=of)
    assert distance(p, problem.solve().a, expected) <= 1e-7
    fulfils(problem, problem.solve())


@pytest.mark.parametrize("inertia", [1e-300, 1e-18, 1e-13, 1e-9])
def test_a_rotor_too_light_to_matter(inertia: float) -> None:
    for seed in range(25):
        p = random_problem(seed, 5, 5)
        none, light = np.zeros(5), np.diagonal(p.M)[p.contacts.columns] * inertia
        without = p.with_rotors(none).solve()
        tiny = p.with_rotors(light)
        assert distance(p, without.a, tiny.solve().a) <= 1e-9 + 1e6 * inertia
        fulfils(tiny, tiny.solve())


def test_a_rotor_too_heavy_to_move() -> None:
    for seed in range(10):
        p = redundant(seed, 5, 2)
        heavy = np.full(5, 100.0) * np.diagonal(p.M)
        problem = p.with_rotors(heavy)
        decision = problem.solve()
        assert distance(p, decision.a, np.zeros(5)) <= 1e-2
        assert decision.side.any() == p.solve().side.any()  # whether anything moves
        fulfils(problem, decision)


def test_arguments_stay_as_they_are() -> None:
    p = random_problem(7, 6, 6)
    arrays = [p.M, p.f, p.J, p.gamma, *vars(p.contacts).values()]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    decision = p.solve()
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies, strict=True))
    assert np.array_equal(decision.a, p.solve().a)
