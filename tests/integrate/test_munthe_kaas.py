"""Tests of the Munthe-Kaas stepper: dexpinv, orders of convergence, fixed steps, determinism."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import bernoulli

import pinloop as pl
from pinloop.integrate import METHODS, Attempt, ImplicitSteps, Iterated, MuntheKaas, get_tableau
from pinloop.simulation.modes import RobotManifold

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import close, moving, robot
from .orders import CASES, ORDERS, SPACES, errors, four_bar

EXPLICIT = [name for name in METHODS if not get_tableau(name).implicit]
every_space = pytest.mark.parametrize("space", SPACES)


# -- dexpinv --------------------------------------------------------------------------------


def ad(space: str, psi: Array) -> Array:
    """Matrix of the bracket with ``psi``, linear part first."""
    if space == "ball joint":
        return hand.skew(psi)
    if space == "plane":
        x, y, w = psi
        return np.array([[0, -w, y], [w, 0, -x], [0, 0, 0.0]])
    found = np.zeros((6, 6))
    found[3:, 3:] = hand.skew(psi[3:])
    if space == "SE3":
        found[:3, :3], found[:3, 3:] = hand.skew(psi[3:]), hand.skew(psi[:3])
    return found


def dexp_inv_series(space: str, psi: Array, v: Array) -> Array:
    """``dexpinv(-psi) v`` as the sum of ``B_k / k! ad(-psi)^k v``."""
    found, term = np.zeros_like(v), v.copy()
    for k, number in enumerate(bernoulli(40)):
        found += number / factorial(k) * term
        term = ad(space, -psi) @ term
    return found


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "ball joint", "plane"])
@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.1, 1.5])
def test_dexp_inv_is_the_series_of_bernoulli(space: str, size: float) -> None:
    machine = SPACES[space]
    manifold, rng = RobotManifold(machine), np.random.default_rng(1)
    for _ in range(5):
        psi, v = rng.normal(size=(2, machine.nv))
        psi *= size / np.linalg.norm(psi)
        found = manifold.dexp_inv(machine.neutral, psi, v)
        close(found, dexp_inv_series(space, psi, v), 1e-11)


@every_space
def test_dexp_inv_is_the_rate_of_the_algebra(space: str) -> None:
    """``q (+) psi(t)`` moves with v if psi changes at ``dexpinv(-psi) v``."""
    machine = SPACES[space]
    manifold, rng = RobotManifold(machine), np.random.default_rng(2)
    q = hand.random_q(machine, rng, 1.0)
    psi, v = 0.4 * rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    there = manifold.integrate(q, psi)
    expected = hand.slope(lambda t: machine.difference(q, machine.integrate(there, t * v)))
    close(manifold.dexp_inv(q, psi, v), expected, 1e-9)
    assert manifold.dexp_inv(q, 0 * psi, v) == pytest.approx(v, abs=1e-15)


def test_inputs_of_a_step_stay_as_they_are() -> None:
    machine = SPACES["all pairs"]
    manifold = RobotManifold(machine)
    q, v = moving(machine, 3)
    psi = 0.1 * v
    copies = [part.copy() for part in (q, v, psi)]
    manifold.dexp_inv(q, psi, v)[:] = np.nan
    manifold.integrate(q, psi)[:] = np.nan
    pl.MuntheKaas("rk4", step=0.1).attempt(manifold, lambda t, q, v: -v, 0.0, 0.1, (q, v, -v))
    for part, copy in zip((q, v, psi), copies, strict=True):
        np.testing.assert_array_equal(part, copy)


# -- a group without robots -----------------------------------------------------------------


@dataclass
class Turns:
    """Rotation matrices, written with SciPy's matrix exponential and logarithm."""

    flat: bool = False

    def integrate(self, q: Array, step: Array) -> Array:
        return np.asarray(q @ expm(hand.skew(step)))

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        columns = [dexp_inv_series("ball joint", psi, unit) for unit in np.eye(3)]
        return np.asarray(np.linalg.solve(np.column_stack(columns), rate))

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        return dexp_inv_series("ball joint", psi, v)


def cone(t: float) -> tuple[Array, Array, Array]:
    """A rotation that turns about two axes, its body rates and their rates."""
    a, b = np.array([0.0, 0.0, 1.7]), np.array([0.9, 0.0, 0.6])
    A, B = expm(hand.skew(a * t)), expm(hand.skew(b * t))
    w = B.T @ a + b
    return np.asarray(A @ B), w, np.cross(B.T @ a, b)


def tried(
    name: str, manifold: Any, f: Any, t: float, h: float, state: tuple[Array, Array, Array]
) -> Attempt:
    """One step of any method."""
    method, unit = MuntheKaas(name, step=h), np.ones(len(state[1]))
    if not method.tableau.implicit:
        return method.attempt(manifold, f, t, h, state)
    attempt, _ = ImplicitSteps(method, unit).attempt(manifold, f, t, h, state, Iterated())
    assert attempt is not None
    return attempt


@pytest.mark.parametrize("name", METHODS)
def test_order_on_a_group_that_is_no_robot(name: str) -> None:
    """Only a group and a right-hand side are needed."""
    found = []
    counts = {
        1: (64, 128),
        2: (32, 64),
        3: (16, 32),
        4: (16, 32),
        5: (16, 32),
        8: (2, 4),
        9: (2, 4),
    }
    for n in counts[ORDERS[name]]:
        h = 1.0 / n
        R, w, a = cone(0.0)
        for k in range(n):
            attempt = tried(name, Turns(), lambda t, q, v: cone(t)[2], k * h, h, (R, w, a))
            R, w, a = attempt.q, attempt.v, cone((k + 1) * h)[2]
        found.append(np.abs(R - cone(1.0)[0]).max() + np.abs(w - cone(1.0)[1]).max())
    assert np.log2(found[0] / found[1]) == pytest.approx(ORDERS[name], abs=0.4)


@pytest.mark.parametrize("name", METHODS)
def test_a_screw_motion_is_met_by_every_method(name: str) -> None:
    """A constant twist is one exponential, whatever the step: no group error at all."""
    machine = SPACES["SE3"]
    v = np.array([1.0, -2.0, 0.5, 0.3, 2.0, -1.0])
    q = hand.random_q(machine, np.random.default_rng(4))
    still = np.zeros(6)
    attempt = tried(name, RobotManifold(machine), lambda t, q, v: still, 0.0, 0.9, (q, v, still))
    np.testing.assert_allclose(attempt.psi, 0.9 * v, rtol=1e-12)
    np.testing.assert_allclose(attempt.q, machine.integrate(q, 0.9 * v), atol=1e-12)


# -- order of convergence -------------------------------------------------------------------


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("case", CASES)
def test_order_of_convergence(case: str, name: str) -> None:
    if name == "radau9" and case.startswith("four-bar"):
        return  # its second step is as good as the reference: see below
    coarse, fine = errors(CASES[case](), name)
    assert fine > 1e-13  # or rounding would be measured
    assert np.log2(coarse / fine) == pytest.approx(ORDERS[name], abs=0.35)


@pytest.mark.parametrize("stabilization", [None, pl.Projection(1e-14, "mass"), pl.Projection()])
def test_radau9_keeps_its_order_on_loops(stabilization: pl.Projection | None) -> None:
    """Three times as far as the other methods go, or nothing but rounding would be left."""
    start, until = four_bar(), 0.6

    def end(name: str, count: int, **options: Any) -> Array:
        method = MuntheKaas(name, step=until / count)
        run = pl.simulate(start.robot, start.q, start.v, until=until, method=method, **options)
        return np.concatenate([run.q[-1], run.v[-1]])

    reference = end("dop853", 240)
    coarse, fine = (
        np.abs(end("radau9", count, stabilization=stabilization) - reference).max()
        for count in (8, 16)
    )
    assert fine > 5e-12
    assert np.log2(coarse / fine) == pytest.approx(8.6, abs=0.3)


# -- fixed steps ----------------------------------------------------------------------------


def fixed(until: float, step: float, start: float = 0.0, **options: Any) -> pl.Trajectory:
    machine = robot("planar_3r")
    method = MuntheKaas("rk4", step=step)
    return pl.simulate(machine, machine.neutral, until=until, start=start, method=method, **options)


@pytest.mark.parametrize("start", [0.0, -2.5, 1000.0])
def test_fixed_steps_are_multiples_not_sums(start: float) -> None:
    run = fixed(start + 0.1, 1e-3, start)
    assert len(run.t) == 101
    expected = [start + k * 1e-3 for k in range(100)]
    np.testing.assert_array_equal(run.t[:-1], expected)
    assert run.t[-1] == start + 0.1


def test_the_last_fixed_step_ends_at_the_end() -> None:
    run = fixed(0.1, 0.03)
    np.testing.assert_allclose(run.t, [0, 0.03, 0.06, 0.09, 0.1], rtol=1e-15)
    assert run.t[-1] == 0.1
    assert fixed(0.1, 0.1 / 3).t.tolist() == [0, 0.1 / 3, 2 * (0.1 / 3), 0.1]
    assert fixed(0.1, 5.0).t.tolist() == [0, 0.1]


@pytest.mark.parametrize("name", EXPLICIT)
def test_number_of_evaluations(name: str) -> None:
    """One per stage; the first one is the last one of the step before."""
    method = MuntheKaas(name, step=0.01)
    machine = robot("planar_3r")
    run = pl.simulate(machine, machine.neutral, until=0.1, method=method)
    looked = 1 + 2 * machine.nv  # once at the start, whether the steps are short enough
    assert run.evaluations == 10 * method.tableau.stages + 1 + looked
    assert run.rejected == 0


# -- determinism ----------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", [pl.Augmented(), pl.Projected(), pl.Voronets()], ids=str)
def test_the_same_input_gives_the_same_bytes(formulation: Any) -> None:
    machine = robot("rssr")
    q, v = moving(machine, 8)
    runs = [pl.simulate(machine, q, v, until=0.3, formulation=formulation) for _ in range(2)]
    for part in ("t", "q", "v", "a", "psi"):
        assert getattr(runs[0], part).tobytes() == getattr(runs[1], part).tobytes()
    assert runs[0].evaluations == runs[1].evaluations
