"""Tests of the bounds in `joint_motions` and `interval_tree`: against differences along motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.integrate import Bernstein
from pinloop.safety.space.interval_tree import IntervalTree
from pinloop.safety.space.joint_motions import (
    JointFactor,
    JointFactors,
    bound_factors,
    joint_factors,
)

from ... import screw_tables as tables
from ...screw_tables import Array, Table
from ...states import robot
from .moving_bodies import fling

ROBOTS = ("every-pair", "spinning-rods", "palletizer", "six_axis_arm", "screw-jack")


def coarse(bounds: list[Any]) -> Any:
    return np.ones(len(bounds[0].angular_velocity), dtype=bool)


def short(bounds: list[Any]) -> Any:
    return np.max([bound.angular_velocity for bound in bounds], axis=0) < 0.4


def placements(leaves: IntervalTree, leaf: int, u: float) -> list[pin.SE3]:
    data = leaves.robot.model.createData()
    pin.forwardKinematics(leaves.robot.model, data, leaves.configuration(leaf, u))
    return [placement.copy() for placement in data.oMi]


def runs(name: str) -> pl.Trajectory:
    more: dict[str, Any] = {}
    if name == "every-pair":
        # Steps so long that the curvature of the groups matters.
        more = {"method": pl.MuntheKaas("rk4", step=0.15), "drag": 0.0, "speed": 6.0}
    if name == "spinning-rods":
        more = {"method": pl.MuntheKaas("dop853", rtol=1e-4, atol=1e-4)}
    return fling(robot(name), seed=5, until=0.3, **more)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("fine", [coarse, short])
def test_leaves_are_the_dense_output(name: str, fine: Any) -> None:
    run = runs(name)
    leaves = IntervalTree(run, fine)
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
    leaves = IntervalTree(runs(name), coarse)
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
        size = float(seen.point_acceleration(radius)[leaf])
        assert speed <= seen.point_velocity(radius)[leaf] * (1 + 1e-4) + 1e-9
        assert turn <= seen.angular_velocity[leaf] * (1 + 1e-4) + 1e-9
        # Rounding makes a second difference uncertain by some 1e-16 / e^2.
        assert acceleration <= size * (1 + 1e-3) + 1e-9
        sharpest = max(sharpest, float(acceleration) / size if size > 1e-6 else 0.0)
    assert sharpest > 0.05  # the bounds say something


@pytest.mark.parametrize("name", ROBOTS)
def test_from_the_ground_is_relative_to_the_ground(name: str) -> None:
    leaves = IntervalTree(runs(name), coarse)
    for joint, bounds in enumerate(leaves.from_ground):
        seen = leaves.relative(joint, 0)
        for one, other in zip(vars(bounds).values(), vars(seen).values(), strict=True):
            assert np.allclose(one, other)


# -- term by term ------------------------------------------------------------------------------


def part_of(name: str) -> JointFactor:
    """The first part of a joint of `every_pair`."""
    chain = robot("every-pair")
    index = chain.coordinates(name).index
    part = next(part for part in joint_factors(chain).factors if part.joint == index)
    columns = part.columns - part.columns[0]
    return replace(part, columns=columns, lengths=np.zeros(0, dtype=np.int64), offset=0.0)


@pytest.mark.parametrize("name", ["free", "spherical", "planar", "helical", "revolute"])
@pytest.mark.parametrize("degree", [1, 2, 5, 8])
def test_one_joint_that_moves_by_an_exponential(name: str, degree: int) -> None:
    """``exp(psi(u))`` with large random ``psi``; rates by differences of placements."""
    part = part_of(name)
    screws = {
        "free": np.eye(6), "spherical": np.eye(6)[:, 3:], "planar": np.eye(6)[:, [0, 1, 5]],
        "helical": 0.07 * np.eye(6)[:, [2]] + np.eye(6)[:, [5]], "revolute": np.eye(6)[:, [5]],
    }[name]  # fmt: skip
    e, tightest, basis = 1e-4, np.zeros(4), Bernstein.of(max(degree, 5))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        powers = rng.normal(size=(degree + 1, screws.shape[1])) * rng.choice([0.1, 1.0, 2.0])
        psi = np.polynomial.polynomial.polyval(basis.even, powers, tensor=True).T
        alone = replace(part, lengths=np.zeros(np.count_nonzero(part.slide), dtype=np.int64))
        (part_bounds,) = bound_factors(
            JointFactors((alone,), 1, len(part.columns)),
            np.zeros((1, 1)),
            (basis.control @ psi)[None],
        )
        for u in rng.uniform(2 * e, 1 - 2 * e, 8):
            T = [
                pin.exp6(screws @ np.polynomial.polynomial.polyval(u + step, powers))
                for step in (-e, 0.0, e)
            ]
            p0, p1, p2 = (placement.translation for placement in T)
            w0, w1 = (
                T[1].rotation @ pin.log3(T[1].rotation.T @ placement.rotation) / e
                for placement in (T[0], T[2])
            )
            measured = np.array([
                np.linalg.norm(w1 - w0) / 2,
                np.linalg.norm(w1 + w0) / e,
                np.linalg.norm(p2 - p0) / (2 * e),
                np.linalg.norm(p2 - 2 * p1 + p0) / e**2,
            ])  # fmt: skip
            bounds = np.concatenate([part_bounds.w, part_bounds.dw, part_bounds.p, part_bounds.dp])
            assert np.all(measured <= bounds * (1 + 1e-4) + 1e-5)
            assert np.linalg.norm(p1) <= part_bounds.rho[0] + 1e-12
            tightest = np.maximum(tightest, measured / np.maximum(bounds, 1e-3))
    assert tightest[0] > 0.9


def turntable(*joints: Table) -> pl.Mechanism:
    return tables.build(tables.table("turntable", *joints))


def joint(name: str, pair: str, parent: str, point: Any, axis: Any) -> Table:
    return tables.joint(name, pair, parent, f"on_{name}", point, axis)


def one_step(robot: pl.Mechanism, q: Any, v: Any, until: float = 1e-3) -> IntervalTree:
    """Leaves of a run in which all joints move evenly."""
    rows = [
        pl.constraints.Prescribed(name, _evenly(float(q[k]), float(v[k])))
        for k, name in enumerate(robot.joints)
    ]
    method = pl.MuntheKaas("rk4", step=until)
    return IntervalTree(pl.simulate(robot, q, v, until=until, rows=rows, method=method), coarse)


X, Y, Z = np.eye(3)
H = 1e-3


def test_a_slider_on_a_turntable() -> None:
    """Its acceleration is w^2 q towards the axis, and 2 w v across."""
    robot = turntable(
        joint("turn", "revolute", "ground", [0, 0, 0], Z),
        joint("slide", "prismatic", "on_turn", [0, 0, 0], X),
    )
    for q, v, until in ((0.0, 3.0, H), (2.0, 0.0, H), (0.0, 2000.0, H), (-1.0, 2.0, H)):
        bounds = one_step(robot, [0, q], [5.0, v], until).relative(2, 0)
        farthest = max(abs(q), abs(q + v * until))
        exact = np.hypot(25.0 * farthest, 2 * 5.0 * v) * until**2
        assert exact * (1 - 1e-9) <= bounds.acceleration[0] <= exact * np.sqrt(2) * 1.01
        speed = np.hypot(5.0 * farthest, v) * until
        assert speed * (1 - 1e-9) <= bounds.velocity[0] <= speed * np.sqrt(2) * 1.01


def test_two_turns_at_right_angles() -> None:
    """The second one has the angular acceleration ``w1 w2``."""
    robot = turntable(
        joint("one", "revolute", "ground", [0, 0, 0], Z),
        joint("two", "revolute", "on_one", [0.4, 0, 0], X),
        joint("three", "prismatic", "on_two", [0.4, 0, 0.3], Y),
    )
    leaves = one_step(robot, [0, 0, 0], [3.0, 4.0, 0.0])
    bounds = leaves.relative(2, 0)
    assert bounds.angular_acceleration[0] == pytest.approx(12.0 * H**2, rel=1e-6)
    assert bounds.angular_velocity[0] == pytest.approx(7.0 * H, rel=1e-6)
    assert bounds.acceleration[0] == pytest.approx(9.0 * 0.4 * H**2, rel=1e-6)
    assert bounds.velocity[0] == pytest.approx(3.0 * 0.4 * H, rel=1e-6)
    # A point 0.3 off the second axis: w1^2 and w2^2 and 2 w1 w2, bounded by (w1 + w2)^2 + w1 w2.
    assert leaves.relative(3, 2).velocity[0] == pytest.approx(0.0, abs=1e-12)
    offset = 0.3 * ((7.0 * H) ** 2 + 12 * H**2)
    assert leaves.relative(3, 0).acceleration[0] == pytest.approx(
        bounds.acceleration[0] + offset, rel=1e-6
    )


def test_the_centre_of_a_universal_joint_stands_still() -> None:
    """Its offset from the ground counts once."""
    robot = turntable({**joint("cross", "universal", "ground", [0.5, 0, 0], Z), "axis2": X})
    run = fling(robot, seed=1, until=0.1, drag=0.0)
    bounds = IntervalTree(run, coarse).relative(1, 0)
    assert np.all(bounds.velocity == 0.0)
    assert np.all(bounds.angular_velocity > 0.0)


def test_a_carrier_seen_from_what_it_carries() -> None:
    """Seen from the slider, the axis of the table goes round at w q and away at v."""
    robot = turntable(
        joint("turn", "revolute", "ground", [0, 0, 0], Z),
        joint("slide", "prismatic", "on_turn", [0, 0, 0], X),
        joint("knee", "revolute", "on_slide", [0, 0, 0], Z),
    )
    bounds = one_step(robot, [0, 2.0, 0], [0.0, 3.0, 5.0]).relative(1, 3)
    speed, kick = np.hypot(10.0, 3.0) * H, np.hypot(25.0 * 2, 2 * 5 * 3.0) * H**2
    assert speed <= bounds.velocity[0] <= 1.5 * speed
    assert kick <= bounds.acceleration[0] <= 1.5 * kick


def _evenly(q: float, v: float) -> Callable[[float], tuple[float, float, float]]:
    return lambda t: (q + v * t, v, 0.0)


def test_what_carries_both_does_not_matter() -> None:
    """Two joints of an arm whose base spins: relative bounds do not know of it."""
    arm = robot("six_axis_arm")
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    found: list[Array] = []
    for spin in (0.0, 40.0):
        v = np.array([spin, 0, 1.0, 0, 0, 0])
        rows = [
            pl.constraints.Prescribed(name, _evenly(q[k], v[k]))
            for k, name in enumerate(arm.joints)
        ]
        method = pl.MuntheKaas("rk4", step=0.01)
        run = pl.simulate(arm, q, v, until=0.01, losses=False, rows=rows, method=method)
        leaves = IntervalTree(run, coarse)
        found.append(leaves.relative(6, 2).point_acceleration(0.3))
        assert leaves.from_ground[6].angular_velocity[0] > 0.39 if spin else True
    assert np.allclose(found[0], found[1], rtol=1e-6)
