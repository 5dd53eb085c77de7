"""Tests of `pinloop.stopping.motionbounds` and `leaves`: against differences along the motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.stopping.leaves import Leaves

from ..states import robot
from ..tables import Array
from .moving_bodies import fling

ROBOTS = ("every-pair", "spinning-rods", "palletizer", "six_axis_arm", "screw-jack")


def coarse(bounds: list[Any]) -> Any:
    return np.ones(len(bounds[0].turn), dtype=bool)


def short(bounds: list[Any]) -> Any:
    return np.max([bound.turn for bound in bounds], axis=0) < 0.4


def placements(leaves: Leaves, leaf: int, u: float) -> list[pin.SE3]:
    data = leaves.robot.model.createData()
    pin.forwardKinematics(leaves.robot.model, data, leaves.configuration(leaf, u))
    return [placement.copy() for placement in data.oMi]


def runs(name: str) -> pl.Trajectory:
    more: dict[str, Any] = {}
    if name == "every-pair":
        # Steps so long that the curvature of the groups matters.
        more = {"method": pl.MuntheKaas("rk4", step=0.15), "drag": 0.0, "speed": 6.0}
    return fling(robot(name), seed=5, until=0.3, **more)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("fine", [coarse, short])
def test_leaves_are_the_dense_output(name: str, fine: Any) -> None:
    run = runs(name)
    leaves = Leaves(run, fine)
    assert np.all(leaves.times[1:, 0] == leaves.times[:-1, 1])
    assert (leaves.times[0, 0], leaves.times[-1, 1]) == (run.t[0], run.t[-1])
    rng = np.random.default_rng(0)
    for leaf in rng.integers(leaves.count, size=40):
        u = rng.uniform()
        q = run(leaves.time(leaf, u)).q
        error = pin.difference(run.robot.model, leaves.configuration(int(leaf), u), q)
        assert np.abs(error).max() < 1e-9
    at_nodes = run(np.append(leaves.times[:, 0], run.t[-1])).q
    data = run.robot.model.createData()
    for node in rng.integers(leaves.count + 1, size=20):
        pin.forwardKinematics(run.robot.model, data, at_nodes[node])
        for joint, placement in enumerate(data.oMi):
            assert np.allclose(leaves.rotations[node, joint], placement.rotation, atol=1e-8)
            assert np.allclose(leaves.origins[node, joint], placement.translation, atol=1e-8)


@pytest.mark.parametrize("name", ROBOTS)
def test_bounds_hold(name: str) -> None:
    """Speeds and accelerations by central differences over the leaf's parameter."""
    leaves = Leaves(runs(name), coarse)
    joints = leaves.robot.model.njoints
    rng, e = np.random.default_rng(1), 1e-3
    sharpest = 0.0
    for _ in range(60):
        leaf = int(rng.integers(leaves.count))
        u = rng.uniform(e, 1 - e)
        before, now, after = (placements(leaves, leaf, u + step) for step in (-e, 0.0, e))
        joint, other = (int(k) for k in rng.choice(joints, 2, replace=False))
        seen = leaves.relative(joint, other)
        direction = rng.normal(size=3)
        point = rng.uniform(0, 0.5) * direction / np.linalg.norm(direction)
        x0, x1, x2 = (T[other].actInv(T[joint].act(point)) for T in (before, now, after))
        speed = np.linalg.norm(x2 - x0) / (2 * e)
        acceleration = np.linalg.norm(x2 - 2 * x1 + x0) / e**2
        R0, R2 = ((T[other].actInv(T[joint])).rotation for T in (before, after))
        turn = np.linalg.norm(pin.log3(R0.T @ R2)) / (2 * e)
        radius = float(np.linalg.norm(point))
        size = float(seen.acceleration(radius)[leaf])
        assert speed <= seen.velocity(radius)[leaf] * (1 + 1e-4) + 1e-9
        assert turn <= seen.turn[leaf] * (1 + 1e-4) + 1e-9
        # Rounding makes a second difference uncertain by some 1e-16 / e^2.
        assert acceleration <= size * (1 + 1e-3) + 1e-9
        sharpest = max(sharpest, float(acceleration) / size if size > 1e-6 else 0.0)
    assert sharpest > 0.05  # the bounds say something


@pytest.mark.parametrize("name", ROBOTS)
def test_from_the_ground_is_relative_to_the_ground(name: str) -> None:
    leaves = Leaves(runs(name), coarse)
    for joint, bounds in enumerate(leaves.from_ground()):
        seen = leaves.relative(joint, 0)
        for one, other in zip(vars(bounds).values(), vars(seen).values(), strict=True):
            assert np.allclose(one, other)


def _evenly(q: float, v: float) -> Callable[[float], tuple[float, float, float]]:
    return lambda t: (q + v * t, v, 0.0)


def test_what_carries_both_does_not_matter() -> None:
    """Two joints of an arm whose base spins: relative bounds do not know of it."""
    arm = robot("six_axis_arm")
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    found: list[Array] = []
    for spin in (0.0, 40.0):
        v = np.array([spin, 0, 1.0, 0, 0, 0])
        rows = [pl.Prescribed(name, _evenly(q[k], v[k])) for k, name in enumerate(arm.joints)]
        method = pl.MuntheKaas("rk4", step=0.01)
        run = pl.simulate(arm, q, v, until=0.01, losses=False, rows=rows, method=method)
        leaves = Leaves(run, coarse)
        found.append(leaves.relative(6, 2).acceleration(0.3))
        assert leaves.from_ground()[6].turn[0] > 0.39 if spin else True
    assert np.allclose(found[0], found[1], rtol=1e-6)
