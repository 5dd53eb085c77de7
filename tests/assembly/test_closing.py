"""Tests of `pinloop.assembly.search`: where the search gets to, from where, and along which
derivative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.assembly.search import Problem, search
from pinloop.tolerances import CLOSED

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables


@pytest.mark.parametrize(
    "entries", [m.four_bar, m.slider_crank, m.rssr, m.spherical_four_bar, m.bennett, m.sarrus]
)
def test_search_succeeds_from_almost_anywhere(entries: Callable[[], tables.Table]) -> None:
    robot, rng, successes = tables.build(entries()), np.random.default_rng(56), 0
    scale = np.where(robot.is_translation, robot.length, 1.0)
    for _ in range(200):
        start = robot.integrate(robot.neutral, rng.uniform(-np.pi, np.pi, robot.nv) * scale)
        try:
            successes += hand.is_closed(robot, pl.assemble(robot, start, limits=False))
        except pl.LoopNotClosed:
            continue
    assert successes >= 190


def test_stretched_arm_is_not_stuck() -> None:
    """No direction leads from a straight arm towards its root: only another start does."""
    robot = tables.build(m.planar_3r())
    pose = pin.SE3(np.eye(3), np.array([-0.3, 0.0, 0.0]))
    q = pl.assemble(robot, targets={"c": pose})
    np.testing.assert_allclose(robot.placement(q, "c").homogeneous, pose.homogeneous, atol=1e-9)


def test_search_slides_along_limits() -> None:
    """A narrow window of the rocker is found without luck: no restarts."""
    exact, rng = m.four_bar_q(2.0), np.random.default_rng(58)
    windows = {"rocker": 0.02, "elbow": 0.06, "crank": 4.0}
    ranges = {name: (exact[name] - r, exact[name] + r) for name, r in windows.items()}
    robot, found = tables.limited(m.four_bar(), **ranges), 0
    problem = Problem(robot, pl.Constraints(robot), (), {}, limits=True)
    for _ in range(50):
        start = hand.angles(robot, exact) + rng.uniform(-1, 1, 3)
        q, error = search(problem, start, seed=0, restarts=0)
        found += error < CLOSED
        for name, (low, high) in ranges.items():
            assert low <= hand.at(robot, q, name) <= high
    assert found >= 45


def test_search_follows_the_derivative_of_what_it_closes() -> None:
    """Closure, coupling and target rows, all in numbers without unit."""
    entries = m.slider_crank(couplings=[
        {"name": "cam", "polynomials": {"slide": [0, 2.0], "crank": [0, 0.5, 0.1]}}
    ])  # fmt: skip
    robot, rng = tables.build(entries), np.random.default_rng(59)
    targets = {"piston": hand.random_se3(rng), "rod": hand.random_se3(rng)}
    problem = Problem(robot, pl.Constraints(robot), (), targets, limits=False)
    q = hand.angles(robot, m.slider_crank_q(2.0))
    scaled = rng.normal(size=robot.nv)
    # The length of the robot is the unit of length: the slider's rate is counted in it.
    v = scaled * np.where(np.array(robot.joints) == "slide", robot.length, 1.0)
    expected = hand.rate(robot, q, v, problem.residual)
    np.testing.assert_allclose(problem.jacobian(q) @ scaled, expected, atol=1e-8)
    rows = pl.Constraints(robot)
    units = np.r_[[robot.length] * 3, 1, 1, robot.length]
    np.testing.assert_allclose(problem.residual(q)[:6] * units, rows.residual(q), atol=1e-12)
    miss = pin.log6(targets["rod"].actInv(robot.placement(q, "rod"))).vector
    miss[:3] /= robot.length
    np.testing.assert_allclose(problem.residual(q)[-6:], miss, atol=1e-12)


def test_search_is_the_same_for_the_same_seed() -> None:
    """The arm that needs another start: one per seed, the same bytes every time."""
    pose = pin.SE3(np.eye(3), np.array([-0.3, 0.0, 0.0]))

    def found(seed: int) -> bytes:
        robot = tables.build(m.planar_3r())
        return pl.assemble(robot, targets={"c": pose}, seed=seed).tobytes()

    first = [found(seed) for seed in range(4)]
    assert first == [found(seed) for seed in range(4)]
    assert len(set(first)) > 1, "seeds make no difference"


def test_lengths_in_other_units_make_no_difference() -> None:
    """A four-bar a thousand times smaller is found at the same angles."""
    large = tables.build(m.four_bar())
    small = tables.build(tables.scaled(m.four_bar(), 1e-3))
    assert small.length == pytest.approx(1e-3 * large.length)
    start = np.array([0.5, -0.9, 0.7])
    np.testing.assert_allclose(pl.assemble(small, start), pl.assemble(large, start), atol=1e-7)


def test_nearby_assemblies_are_closed_and_on_the_same_branch() -> None:
    robot, rng = tables.build(m.four_bar()), np.random.default_rng(60)
    q, visited = hand.angles(robot, m.four_bar_q(2.0)), []
    for _ in range(20):
        found = nearby_assembly(robot, q, rng)
        assert found is not None
        assert hand.is_closed(robot, found)
        assert 1e-3 < np.abs(found - q).max() < 1.0
        exact = m.four_bar_q(hand.at(robot, found, "crank") + m.START)
        turned = found - hand.angles(robot, exact)
        np.testing.assert_allclose(np.cos(turned), 1, atol=1e-12)
        visited.append(hand.at(robot, found, "crank"))
        q = found
    assert np.ptp(visited) > 0.2


def test_nothing_is_near_an_assembly_that_cannot_move() -> None:
    truss = tables.table(
        "truss",
        tables.joint("left", "revolute", "ground", "left", [0, 0, 0], m.TURN),
        tables.joint("right", "revolute", "ground", "right", [1, 0, 0], m.TURN),
        tables.joint("close", "revolute", "left", "right", [0.5, 0, 0.7], m.TURN, cut=True),
    )
    robot = tables.build(truss)
    assert nearby_assembly(robot, robot.neutral, np.random.default_rng(0)) is None


@pytest.mark.parametrize(("x", "closed"), [(1.0, True), (0.9, False)])
def test_a_loop_through_fixed_joints_is_closed_or_not(x: float, closed: bool) -> None:
    robot = pl.load(
        '<robot name="r"><link name="base"/><link name="a"/><joint name="f" type="fixed">'
        '<parent link="base"/><child link="a"/></joint><loop_joint name="l" type="revolute">'
        f'<axis xyz="0 0 1"/><link1 link="base" xyz="1 0 0"/><link2 link="a" xyz="{x} 0 0"/>'
        "</loop_joint></robot>",
        kinematics_only=True,
    )
    report = pl.diagnose(robot)
    assert report.assembled is closed
    assert closed or "open by 100 mm" in report.warnings[0]
