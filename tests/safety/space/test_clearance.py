"""Tests of `pinloop.safety.space.clearance`: swings past obstacles in closed form, folding
chains.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.safety.space.clearance import clearance, self_collisions
from pinloop.safety.space.solids import Obstacle
from pinloop.tolerances import TOUCH

from ...states import robot
from .moving_bodies import LENGTH, SPEED, THICK, X_AXIS, at, ball, chain, fling, rod, shape, swing

# -- a rod past a ball -------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0.2, 0.003, 2e-5])
@pytest.mark.parametrize("angle", [0.7, 1.1])
def test_a_near_miss_between_stored_states(gap: float, angle: float) -> None:
    run = swing()
    assert np.all(np.abs(SPEED * run.t - angle) > 0.02)
    found = clearance(run, ball(LENGTH + THICK + gap + 0.05, angle=angle))["ball"]
    assert not found.touches
    assert gap - 1e-6 <= found.distance <= gap + 0.001
    assert 0 < found.at_least <= gap
    assert found.at_least >= found.distance - 0.0011
    # The distance is d(t) = |r e(beta) - L e(w t)| - rho - c.
    r = LENGTH + THICK + gap + 0.05
    law = np.sqrt(r**2 + LENGTH**2 - 2 * r * LENGTH * np.cos(SPEED * found.t - angle))
    assert found.distance == pytest.approx(law - THICK - 0.05, abs=1e-6)
    tip = LENGTH * np.array([np.cos(SPEED * found.t), np.sin(SPEED * found.t), 0])
    assert np.linalg.norm(found.point - tip) == pytest.approx(THICK, abs=1e-5)
    apart = np.linalg.norm(found.point - found.other_point)
    assert apart == pytest.approx(found.distance, abs=1e-6)
    assert (found.body, found.other) == ("a", "ball")


@pytest.mark.parametrize("overlap", [0.04, 1e-4])
def test_a_touch_between_stored_states(overlap: float) -> None:
    run = swing(speed=60.0)
    r = LENGTH + THICK + 0.05 - overlap
    found = clearance(run, ball(r))["ball"]
    assert found.touches
    assert (found.distance, found.at_least) == (0.0, 0.0)
    cosine = (LENGTH**2 + r**2 - (THICK + 0.05) ** 2) / (2 * LENGTH * r)
    first = (1.1 - np.arccos(cosine)) / 60.0
    # It counts as a touch at 10 micrometres; the tip comes near at its speed times the slope.
    slope = r * np.sin(np.arccos(cosine)) / (THICK + 0.05)
    assert first - 2 * TOUCH / (60 * LENGTH * slope) <= found.t <= first + 1e-9
    assert "touch at t = 0.0" in repr(found)


def test_the_body_that_touches_first_is_named() -> None:
    """Two rods on one hinge axis, one behind the other: the first one comes first."""
    geometry = (rod("a"), shape("b", "capsule", (THICK, 0.3), at(0.15, 0, 0, X_AXIS)))
    links = chain("revolute", "revolute", geometry=geometry, length=0.0)
    run = pl.simulate(
        links, [0.0, -0.5], [SPEED, 0.0], until=0.3, mode=pl.Mode(["j2"]), losses=False
    )
    both = clearance(run, [ball(0.25), ball(0.6, angle=0.3)][:1])["ball"]
    assert both.touches
    assert both.body == "a"
    behind = clearance(run, ball(0.25), ignore="a")["ball"]
    assert behind.body == "b"
    assert behind.t == pytest.approx(both.t + 0.5 / SPEED, abs=1e-5)


def test_a_body_that_starts_nearer_may_touch_later() -> None:
    """Both rods pass the ball at 0.25 m; they touch where it is their radii off their lines."""
    geometry = (rod("a"), shape("b", "capsule", (THICK, 0.3), at(0.15, 0, 0, X_AXIS)))
    links = chain("revolute", "revolute", geometry=geometry, length=0.0)
    rows = [
        pl.constraints.Prescribed("j1", lambda t: (0.5 + t, 1.0, 0.0)),
        pl.constraints.Prescribed("j2", lambda t: (-0.9 + 6 * t, 6.0, 0.0)),
    ]
    run = pl.simulate(links, [0.5, -0.9], [1.0, 6.0], until=0.5, rows=rows, losses=False)
    found = clearance(run, ball(0.25))["ball"]
    before = np.arcsin((THICK + 0.05) / 0.25)
    assert found.body == "b"
    assert found.t == pytest.approx((1.5 - before) / 7, abs=1e-5)
    later = clearance(run, ball(0.25), ignore="b")["ball"]
    assert later.t == pytest.approx(0.6 - before, abs=5e-5)


def test_what_is_certain_with_a_rough_tolerance() -> None:
    """The rod passes at 30 mm; a ball at its axis is far away and must not raise the bound."""
    geometry = (rod("a"), shape("a", "sphere", (0.05,), at(0, 0, 0)))
    run = pl.simulate(chain("revolute", geometry=geometry), [0.0], [SPEED], until=0.4)
    found = clearance(run, ball(LENGTH + THICK + 0.03 + 0.05), tolerance=0.1)["ball"]
    assert found.distance > 0.03 + 1e-4
    assert 0 < found.at_least <= 0.03


def test_nearest_body_of_several_and_obstacles_by_name() -> None:
    run = fling(robot("six_axis_arm"), seed=3)
    wall = Obstacle.box("wall", (0.1, 6, 6), (2.2, 0, 0))
    far = Obstacle.sphere("far", 0.3, (0, 0, 9.0))
    found = clearance(run, [wall, far])
    assert list(found) == ["wall", "far"]
    both = found["wall"]
    least = brute_force(run, [wall.solid], [wall.placement])
    assert both.at_least <= least
    assert both.distance <= least + 0.001
    assert both.distance > least - 0.02  # the grid in time is what is coarse
    assert both.other_point[0] == pytest.approx(2.15)
    assert found["far"].distance > 5.0


def test_what_is_kept_of_a_robot_among_obstacles_is_not_mixed_up() -> None:
    """Runs, obstacles, bodies and tolerances in turns give what each gives alone."""
    arms = [robot("six_axis_arm"), robot("palletizer")]
    walls = [Obstacle.box("wall", (0.1, 6, 6), (x, 0, 0)) for x in (2.2, 2.6)]
    cases = [(arm, wall, size) for arm in arms for wall in walls for size in (0.01, 0.02)]

    def distance(case: tuple[pl.Mechanism, Obstacle, float], seed: int) -> float:
        arm, wall, tolerance = case
        return clearance(fling(arm, seed=seed), wall, tolerance=tolerance)["wall"].distance

    alone = []
    for case in cases:
        case[0].memory.clear()
        import_module("pinloop.safety.space.clearance")._geometry_model.cache_clear()
        alone.append([distance(case, seed) for seed in (3, 4)])
    in_turns = [[distance(case, seed) for case in cases] for seed in (3, 4)]
    np.testing.assert_array_equal(np.transpose(in_turns), alone)
    assert len(np.unique(alone)) > 7


def brute_force(run: pl.Trajectory, solids: list[Any], placements: list[pin.SE3]) -> float:
    """Minimum distance of the robot's boxes and cylinders from solids on a grid of 300 instants."""
    import coal

    shapes = [one for one in run.robot.geometry if run.robot.model.frames[
        run.robot.frame_id(one.body)].parentJoint]  # fmt: skip
    kinds = {"box": coal.Box, "cylinder": coal.Cylinder, "sphere": coal.Sphere}
    made = [kinds[one.shape.kind](*one.shape.size) for one in shapes]
    data, least = run.robot.model.createData(), np.inf
    for t in np.linspace(run.t[0], run.t[-1], 300):
        pin.framesForwardKinematics(run.robot.model, data, run(t).q)
        for one, mine in zip(shapes, made, strict=True):
            T = data.oMf[run.robot.frame_id(one.body)] * one.placement
            for solid, where in zip(solids, placements, strict=True):
                result = coal.DistanceResult()
                a, b = (coal.Transform3s(P.rotation, P.translation) for P in (T, where))
                coal.distance(mine, a, solid, b, coal.DistanceRequest(), result)
                least = min(least, result.min_distance)
    return float(least)


def test_frames_are_looked_at_too() -> None:
    arm = robot("six_axis_arm")
    run = fling(arm, seed=3)
    wall = Obstacle.box("wall", (0.1, 6, 6), (2.2, 0, 0))
    found = clearance(run, wall, frames={"tool0": 0.4})["wall"]
    tip = max(arm.placement(run(t).q, "tool0").translation[0] for t in np.linspace(0, 0.5, 400))
    assert found.body == "tool0"
    assert found.distance == pytest.approx(2.15 - tip - 0.4, abs=0.0011)


def test_a_robot_without_shapes_is_made_of_its_joint_frames() -> None:
    links = chain("revolute", "revolute")
    run = pl.simulate(links, [0.0, 0.0], [SPEED, 0.0], until=0.4, mode=pl.Mode(["j2"]))
    # The farthest point of body "b" is its centre of mass, 0.25 m beyond the joint at 0.5 m.
    found = clearance(run, ball(1.0), thickness=0.02)["ball"]
    assert found.body == "b"
    assert found.distance == pytest.approx(1.0 - 0.05 - 0.75 - 0.02, abs=0.0025)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"obstacles": []}, "there is no obstacle"),
        ({"obstacles": 3}, "obstacles are 3"),
        ({"obstacles": ["wall"]}, "'wall' is not an obstacle"),
        ({"obstacles": [ball(1), ball(2)]}, "two obstacles are called 'ball'"),
        ({"tolerance": -0.1}, "tolerance is -0.1"),
        ({"ignore": "b"}, "no body 'b' in robot 'chain'"),
        ({"ignore": ["a"]}, "no body that moves and is not ignored"),
        ({"frames": {"a": 0}}, "the radius about frame 'a' is 0"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        clearance(swing(), **({"obstacles": ball(1)} | arguments))


def test_no_run() -> None:
    for function in (lambda: clearance(3, ball(1)), lambda: self_collisions("run")):  # type: ignore[arg-type]
        with pytest.raises(pl.BadValue, match="is no trajectory"):
            function()


def test_a_run_of_one_state_is_where_it_is() -> None:
    run = swing()
    still = replace(
        run, t=run.t[:1], q=run.q[:1], v=run.v[:1], a=run.a[:1], psi=run.psi[:0],
        mode=run.mode[:1],
    )  # fmt: skip
    found = clearance(still, ball(2.0, angle=0.0))["ball"]
    assert found.distance == pytest.approx(2.0 - 0.05 - LENGTH - THICK, abs=1e-9)
    assert found.t == 0.0
    assert self_collisions(still).approaches == ()
