"""Tests of `pinloop.integrate.tangents`: against differences of what steps and events compute."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import (
    AccelerationSlopes,
    Carry,
    Flow,
    GuardSlopes,
    StepMemory,
    Stepper,
    TangentGroup,
    follow_step,
    guard_slopes,
)
from pinloop.simulation.modes import RobotManifold

from ..screw_tables import Array
from ..states import one_body
from .groups_by_hand import Space

METHODS = ("euler", "heun", "rk4", "bs32", "dopri5", "dop853", "radau5", "radau9")
every_method = pytest.mark.parametrize("name", METHODS)
SPAN = 0.3, 0.42


class Line(Space):
    """A vector space, whose changes can be followed."""

    def __init__(self, size: int) -> None:
        self.curved = np.zeros(size, dtype=bool)

    def integrate_slopes(self, q: Array, step: Array) -> tuple[Array, Array]:
        return np.eye(len(q)), np.eye(len(q))


class Motion:
    """Accelerations with a parameter, and their derivatives by differences."""

    def __init__(self, manifold: TangentGroup, q: Array, v: Array) -> None:
        self.manifold, self.q, self.v = manifold, q, v
        rng = np.random.default_rng(len(v))
        n = len(v)
        self.matrices = rng.normal(size=(3, n, n))

    def acceleration(self, t: float, q: Array, v: Array, p: float = 0.4) -> Array:
        A, B, C = self.matrices
        pull = 3.0 * np.sin(A @ q[: len(v)] + 2.0 * t)
        return np.asarray(pull - (1.0 + p * p) * np.sin(B @ v) + np.cos(C @ v))

    def slopes(self, t: float, q: Array, v: Array) -> AccelerationSlopes:
        f, n = self.acceleration, len(v)
        return AccelerationSlopes(
            f(t, q, v),
            central(lambda s: f(t + s, q, v)),
            columns(lambda x: f(t, self.manifold.integrate(q, x), v), n),
            columns(lambda x: f(t, q, v + x), n),
            central(lambda s: f(t, q, v, 0.4 + s))[:, None],
        )

    def step(self, name: str, t0: float, t1: float, q: Array, v: Array, p: float = 0.4) -> Array:
        """End of a step of the integrator: psi from the unchanged start's end, and velocity."""
        stepper = Stepper(pl.MuntheKaas(name, step=1.0, when_stiff="warn"), np.ones(len(v)))

        def f(t: float, q: Array, v: Array) -> Array:
            return self.acceleration(t, q, v, p)

        flow = Flow(f, self.manifold, lambda t, q, v: (q, v, False))
        step, _ = stepper.fixed(flow, StepMemory(taken=1), t0, t1, (q, v, f(t0, q, v)))
        return np.concatenate([step.q1, step.v1])


def central(function: Callable[[float], Array], h: float = 1e-2) -> Array:
    """Derivative at 0: central differences, extrapolated three times."""
    rows = [(function(x) - function(-x)) / (2 * x) for x in (h, h / 2, h / 4, h / 8)]
    for k in (4.0, 16.0, 64.0):
        rows = [(k * fine - coarse) / (k - 1) for coarse, fine in pairwise(rows)]
    return np.asarray(rows[0])


def columns(function: Callable[[Array], Array], size: int) -> Array:
    """Derivatives at 0 of a function of a vector, one column per entry."""

    def along(unit: Array) -> Array:
        return central(lambda s: function(s * unit))

    return np.column_stack([along(unit) for unit in np.eye(size)])


def motions() -> dict[str, Motion]:
    """A motion on a vector space, and those of a ball joint and of a free body."""
    rng = np.random.default_rng(3)
    cases = {"space": Motion(Line(3), rng.normal(size=3), rng.normal(size=3))}
    for pair, size in (("spherical", 3), ("floating", 6)):
        body = one_body() if pair == "floating" else one_body(pair)
        manifold = RobotManifold(body)
        q = manifold.integrate(body.neutral, rng.normal(size=size))
        cases[pair] = Motion(manifold, q, 2.0 * rng.normal(size=size))
    return cases


MOTIONS = motions()
every_motion = pytest.mark.parametrize("where", MOTIONS)


Start = tuple[float, float, Array, Array, float]


def end_at(motion: Motion, name: str, start: Start) -> Callable[[Start], Array]:
    """End of a step from other starts, in tangent coordinates at the end from one of them."""
    nq, middle = len(motion.q), motion.step(name, *start)

    def end(start: Start) -> Array:
        there = motion.step(name, *start)
        psi = motion.manifold.difference(middle[:nq], there[:nq])
        return np.concatenate([psi, there[nq:]])

    return end


@every_motion
@every_method
def test_the_tangent_of_a_step(name: str, where: str) -> None:
    """By the state, both times and a parameter, for all methods on all kinds of groups."""
    motion = MOTIONS[where]
    q, v, (t0, t1), manifold = motion.q, motion.v, SPAN, motion.manifold
    got = follow_step(pl.MuntheKaas(name, step=1.0).tableau, manifold, motion.slopes, SPAN, (q, v))
    end = motion.step(name, t0, t1, q, v)
    assert np.allclose(np.concatenate([got.q, got.v]), end, 0.0, 1e-11)
    there, n = end_at(motion, name, (t0, t1, q, v, 0.4)), len(v)
    wanted = [
        columns(lambda x: there((t0, t1, manifold.integrate(q, x), v, 0.4)), n),
        columns(lambda x: there((t0, t1, q, v + x, 0.4)), n),
        central(lambda s: there((t0 + s, t1, q, v, 0.4))),
        central(lambda s: there((t0, t1 + s, q, v, 0.4))),
        central(lambda s: there((t0, t1, q, v, 0.4 + s))),
    ]
    by_time, by_state, by_p = np.split(got.by_start, [1, 1 + 2 * n], 1)
    found = [*np.split(by_state, 2, 1), by_time[:, 0], got.by_end, by_p[:, 0]]
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.allclose(ours, theirs, 0.0, 1e-9 * max(1.0, np.abs(theirs).max()))


def test_an_implicit_step_without_solution_is_told() -> None:
    """The parabola ``v = 1 + h (1 + v^2)`` is nowhere zero for a step of 1 s."""

    def slopes(t: float, q: Array, v: Array) -> AccelerationSlopes:
        zero = np.zeros((1, 1))
        return AccelerationSlopes(1.0 + v**2, np.zeros(1), zero, np.diag(2.0 * v), zero)

    tableau = pl.MuntheKaas("radau5", step=1.0).tableau
    state = np.zeros(1), np.ones(1)
    with pytest.raises(pl.BadValue, match=r"implicit step of 1 s .* off after 20 iterations; let"):
        follow_step(tableau, Line(1), slopes, (0.0, 1.0), state)
    step = follow_step(tableau, Line(1), slopes, (0.0, 0.1), state)
    assert abs(step.v[0] - np.tan(np.pi / 4 + 0.1)) < 1e-5


# -- events -----------------------------------------------------------------------------------


def bounced(x: Array) -> Array:
    """A ball hits a rising floor; its state after 2 s, and the instant of the hit.

    ``x``: height and speed at the start, restitution, speed of the floor, which starts at zero.
    """
    height, speed, e, rise = x
    g = 9.81
    hit = (speed - rise + np.sqrt((speed - rise) ** 2 + 2 * g * height)) / g
    after = rise - e * (speed - g * hit - rise)
    left = 2.0 - hit
    return np.array([rise * hit + after * left - 0.5 * g * left**2, after - g * left, hit])


def falling(t: float, q: Array, v: Array) -> AccelerationSlopes:
    zero = np.zeros((1, 1))
    return AccelerationSlopes(np.array([-9.81]), np.zeros(1), zero, zero, np.zeros((1, 2)))


def test_a_ball_on_a_rising_floor() -> None:
    """Closed form: start, restitution and the floor's speed, a parameter of guard and jump."""
    start, e, rise = np.array([1.2, 1.0]), 0.7, 0.1
    rk4, line = pl.MuntheKaas("rk4", step=1.0).tableau, Line(1)
    given = np.array([*start, e, rise])
    hit, wanted = bounced(given)[2], columns(lambda x: bounced(given + x), 4)
    before = follow_step(rk4, line, falling, (0.0, hit), (start[:1], start[1:]))

    def gap(t: float, q: Array, v: Array) -> float:
        return float(q[0] - rise * t)

    guard = guard_slopes(line, gap, (hit, before.q, before.v), 2)
    assert not guard.by_parameters.any()
    guard = guard._replace(by_parameters=np.array([0.0, -hit]))
    relative = before.v[0] - rise
    assert np.isclose(before.passing_rate(guard), relative, 1e-9)
    jump = Carry.at_instant(np.zeros(2), np.diag([1.0, -e]), np.array([[0, 0], [-relative, 1 + e]]))
    v_plus = np.array([rise - e * relative])
    after = follow_step(rk4, line, falling, (hit, 2.0), (before.q, v_plus))
    parts = [before.until(guard), jump, after.planned()]
    changes, parameters = np.eye(3, 4, -1), np.eye(2, 4, 2)
    changes[:, 2:] = 0.0
    for k, part in enumerate(parts):
        changes = part.forward(changes, parameters)
        if k == 0:
            assert np.allclose(changes[0], wanted[2], 0.0, 1e-10)
    assert np.allclose(changes[0], 0.0)
    assert np.allclose(changes[1:], wanted[:2], 0.0, 1e-9)
    weights, gradient = np.eye(3)[1:], np.zeros((2, 2))
    for part in reversed(parts):
        weights, gradient = part.backward(weights, gradient)
    assert np.allclose(np.column_stack([weights[:, 1:], gradient]), changes[1:], 0.0, 1e-12)


def test_what_follows_a_step_at_its_end() -> None:
    """A projection after a step is part of it, whatever its end depends on."""
    motion, rng = MOTIONS["space"], np.random.default_rng(8)
    rk4 = pl.MuntheKaas("rk4", step=1.0).tableau
    step = follow_step(rk4, motion.manifold, motion.slopes, SPAN, (motion.q, motion.v))
    after = Carry.at_instant(rng.normal(size=6), rng.normal(size=(6, 6)), rng.normal(size=(6, 1)))
    changes, p, later = rng.normal(size=(7, 4)), rng.normal(size=(1, 4)), np.array([0.7])
    whole = step.then(after).planned(later).forward(changes, p)
    parts = after.forward(step.planned(later).forward(changes, p), p)
    assert np.allclose(whole, parts, 0.0, 1e-13) and np.allclose(whole[0], 0.7 * p)


def test_saltation_is_the_limit_of_short_steps() -> None:
    """``R_x + (R_x f- + R_t - f+) dt/dx`` of two accelerations and a jump that turns with time."""
    rng = np.random.default_rng(5)
    f_minus, f_plus, v = rng.normal(size=(3, 2))
    zero = np.zeros((2, 2))

    def constant(a: Array) -> Callable[[float, Array, Array], AccelerationSlopes]:
        return lambda t, q, v: AccelerationSlopes(a, np.zeros(2), zero, zero, np.zeros((2, 0)))

    q, line, rk4 = rng.normal(size=2), Line(2), pl.MuntheKaas("rk4", step=1.0).tableau
    by_time, matrix = rng.normal(size=4), rng.normal(size=(4, 4))
    matrix[:2], by_time[:2] = np.eye(4)[:2], 0.0
    guard = GuardSlopes(0.3, rng.normal(size=4), np.zeros(0))
    short = 1e-7
    before = follow_step(rk4, line, constant(f_minus), (0.0, short), (q, v))
    v_plus = rng.normal(size=2)
    after = follow_step(rk4, line, constant(f_plus), (short, 2 * short), (before.q, v_plus))
    jump = Carry.at_instant(by_time, matrix, np.zeros((4, 0)))
    changes, nothing = np.vstack([np.zeros(4), np.eye(4)]), np.zeros((0, 4))
    for part in (before.until(guard), jump, after.planned()):
        changes = part.forward(changes, nothing)
    rate_minus, rate_plus = np.concatenate([v, f_minus]), np.concatenate([v_plus, f_plus])
    dt = -guard.by_state / (guard.by_time + guard.by_state @ rate_minus)
    saltation = matrix + np.outer(matrix @ rate_minus + by_time - rate_plus, dt)
    assert np.allclose(changes[1:], saltation, 0.0, 1e-5)
