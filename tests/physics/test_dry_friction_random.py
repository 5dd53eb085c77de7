"""Runs of random arms with dry friction against a loop over events of its own.

The oracle tries all combinations of stick and slip by brute force, integrates by SciPy's DOP853 in
short steps, and bisects where a combination ends.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import DOP853

import pinloop as pl

from .. import screw_tables as tables
from ..random_linkages import entry, placement
from ..screw_tables import Array

EPS = 1e-10
Signs = dict[int, int]


def arm(seed: int) -> pl.Mechanism:
    """One to three joints in a chain or a tree."""
    rng = np.random.default_rng(seed)
    bodies, joints = ["ground"], []
    for k in range(rng.integers(1, 4)):
        pair = "revolute" if rng.random() < 0.7 else "prismatic"
        kind = (pair, rng.uniform(-0.5, 0.5, 3), rng.normal(size=3), None)
        parent = bodies[-1] if rng.random() < 0.8 else str(rng.choice(bodies))
        joints.append(entry(f"t{k}", (parent, f"b{k}"), kind, placement(rng, 0.5), False))
        bodies.append(f"b{k}")
    return tables.build(tables.table("arm", *joints))


class ByHand:
    """An arm whose joints stick or slide.

    Args:
        robot: the arm.
        limit: dry friction of each joint.
        load: torques of the drives as a function of time.
    """

    def __init__(self, robot: pl.Mechanism, limit: Array, load: Callable[[float], Array]) -> None:
        self.model, self.data = robot.model, robot.model.createData()
        self.limit, self.load, self.n = limit, load, robot.nv

    def torques(self, signs: Array, t: float, y: Array) -> tuple[Array, Array]:
        """Accelerations, and what friction gives."""
        q, v = y[: self.n], y[self.n :]
        upper = np.triu(pin.crba(self.model, self.data, q))
        M = upper + np.triu(upper, 1).T
        f = self.load(t) - pin.nonLinearEffects(self.model, self.data, q, v)
        a, free = np.zeros(self.n), np.flatnonzero(signs)
        a[free] = np.linalg.solve(M[np.ix_(free, free)], (f - signs * self.limit)[free])
        return a, M @ a - f

    def chosen(self, t: float, y: Array, forced: Signs) -> Array:
        """Of all combinations of stick and slip the one that violates least."""
        v, best, least = y[self.n :], np.zeros(self.n), np.inf
        for signs in map(np.array, product((-1, 0, 1), repeat=self.n)):
            moves = np.abs(v) > EPS
            if (moves & (signs * v <= 0)).any() or any(signs[i] != s for i, s in forced.items()):
                continue
            a, torque = self.torques(signs, t, y)
            held = np.where(signs == 0, np.abs(torque) - self.limit, 0.0)
            starts = np.where((signs != 0) & ~moves, -signs * a, 0.0)
            if (worst := max(0.0, held.max(), starts.max())) < least - 1e-13:
                best, least = signs, worst
        return best

    def run(self, y: Array, until: float) -> Array:
        """State at the end."""
        t = 0.0
        forced: Signs = {}
        for _ in range(200):
            signs = self.chosen(t, y, forced)
            y[self.n :][signs == 0] = 0.0
            t, y = self._until_change(signs, t, y, until)
            if t == until:
                return y
            y[self.n :][np.abs(y[self.n :]) < 10 * EPS] = 0.0
            torque = self.torques(signs, t, y)[1]
            loose = np.flatnonzero((signs == 0) & (np.abs(torque) >= self.limit))
            forced = {int(i): -int(np.sign(torque[i])) for i in loose}
        raise AssertionError("the oracle does not come to an end")

    def _until_change(self, signs: Array, t: float, y: Array, until: float) -> tuple[float, Array]:
        """Where a combination ends."""

        def left(t: float, y: Array) -> Array:
            room = self.limit - np.abs(self.torques(signs, t, y)[1])
            return np.where(signs == 0, room, signs * y[self.n :])

        def slope(t: float, y: Array) -> Array:
            return np.concatenate([y[self.n :], self.torques(signs, t, y)[0]])

        solver = DOP853(slope, t, y, until, rtol=1e-12, atol=1e-13, max_step=0.01)
        armed = (signs == 0) | (left(t, y) > 10 * EPS)
        while solver.status == "running":
            solver.step()
            dense = solver.dense_output()
            times = np.linspace(solver.t_old, solver.t, 9)
            for early, late in pairwise(times):
                if ((left(late, dense(late)) < 0) & armed).any():
                    for _ in range(70):
                        middle = 0.5 * (early + late)
                        ended = ((left(middle, dense(middle)) < 0) & armed).any()
                        early, late = (early, middle) if ended else (middle, late)
                    return float(late), dense(late)
                armed |= left(late, dense(late)) > 10 * EPS
        return until, solver.y


@pytest.mark.parametrize("seed", [0, 4, 6, 7, 9, 10])
@pytest.mark.parametrize(
    ("method", "error"), [(None, 1e-6), (pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11), 1e-9)]
)
def test_random_arms_move_as_by_hand(seed: int, method: pl.MuntheKaas | None, error: float) -> None:
    rng, robot = np.random.default_rng([seed, 3]), arm(seed)
    n = robot.nv
    q, v = rng.uniform(-1, 1, n), rng.normal(size=n) * 2 * rng.integers(0, 2, n)
    rest = np.zeros(n)
    size = np.abs(pin.rnea(robot.model, robot.model.createData(), q, rest, rest)) + 0.3
    limit = size * 10 ** rng.uniform(-1.2, 0.5, n)
    swing, rate, phase = size * rng.uniform(0, 2, n), rng.uniform(2, 15, n), rng.uniform(0, 6, n)
    until = float(rng.uniform(0.3, 1.0))

    def load(t: float) -> Array:
        return np.asarray(swing * np.sin(rate * t + phase))

    friction = pl.forces.JointFriction(coefficients=dict(zip(robot.joints, limit, strict=True)))
    run = pl.simulate(
        robot, q, v, until=until, tau=lambda t, q, v: load(t), forces=[friction], method=method
    )
    want = ByHand(robot, limit, load).run(np.concatenate([q, v]), until)
    assert run.slips
    assert np.concatenate([run.q[-1], run.v[-1]]) == pytest.approx(want, abs=error)
