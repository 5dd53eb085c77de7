"""Tests of `pinloop.stopping.clearance`: swings past obstacles in closed form, folding chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import trimesh

import pinloop as pl
from pinloop.description import GROUND, Geometry
from pinloop.stopping.clearance import Approach, clearance, self_collisions
from pinloop.stopping.nearest import TOUCH
from pinloop.stopping.obstacles import Obstacle

from ..states import robot
from ..tables import Array
from .moving_bodies import at, chain, fling, shape

LENGTH, THICK, SPEED = 0.8, 0.03, 6.0
X_AXIS = (1.0, 0, 0)


def rod(body: str, length: float = LENGTH) -> Geometry:
    """Capsule along x from the origin of the body."""
    return shape(body, "capsule", (THICK, length), at(length / 2, 0, 0, X_AXIS))


def swing(angle: float = 2.5, speed: float = SPEED) -> pl.Trajectory:
    """A rod turns about z at constant speed, from the x axis: hardly any state is stored."""
    return pl.simulate(chain("revolute", geometry=(rod("a"),)), [0.0], [speed], until=angle / speed)


def ball(distance: float, radius: float = 0.05, angle: float = 1.1) -> Obstacle:
    centre = distance * np.array([np.cos(angle), np.sin(angle), 0])
    return Obstacle.sphere("ball", radius, centre)


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
    geometry = (
        rod("a"),
        shape("b", "capsule", (THICK, 0.3), at(0.15, 0, 0, X_AXIS)),
    )
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
        pl.Prescribed("j1", lambda t: (0.5 + t, 1.0, 0.0)),
        pl.Prescribed("j2", lambda t: (-0.9 + 6 * t, 6.0, 0.0)),
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


def brute_force(run: pl.Trajectory, solids: list[Any], placements: list[pin.SE3]) -> float:
    """Least distance of the robot's boxes and cylinders from solids on a grid of 300 instants."""
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


# -- obstacles ---------------------------------------------------------------------------------


def box_mesh(size: Any, file: Path | None = None) -> Any:
    mesh = trimesh.creation.box(size)
    if file is None:
        return mesh
    mesh.export(str(file))
    return file


def test_a_box_by_any_name(tmp_path: Path) -> None:
    """A box, its mesh (convex: solid), a file of it, in millimetres, and an open one."""
    size, where = np.array([0.2, 0.3, 0.4]), pin.SE3(pin.exp3(np.array([0.3, 0.2, 1.0])),
                                                       np.array([0.75, 0.75, 0.1]))  # fmt: skip
    opened = box_mesh(size)
    opened.update_faces(np.arange(len(opened.faces)) != 3)
    obstacles = [
        Obstacle.box("box", size, where),
        Obstacle.mesh("mesh", box_mesh(size), where),
        Obstacle.mesh("file", box_mesh(size, tmp_path / "box.stl"), where),
        Obstacle.mesh("mm", str(box_mesh(1000 * size, tmp_path / "mm.ply")), where, scale=0.001),
    ]
    found = list(clearance(swing(), obstacles).values())
    assert found[0].distance > 0.01
    for one in found[1:]:
        assert one.distance == pytest.approx(found[0].distance, abs=1e-5)
        assert one.t == pytest.approx(found[0].t, abs=1e-3)


def ring() -> Any:
    """A tube about z, 0.4 m high, that a rod of 0.8 m length turns in with 2 cm to spare."""
    return trimesh.creation.annulus(r_min=0.85 / np.cos(np.pi / 128), r_max=1.0, height=0.4,
                                    sections=128)  # fmt: skip


def test_a_hole_stays_open() -> None:
    """The rod turns inside a tube whose hull it lies in."""
    found = clearance(swing(), Obstacle.mesh("tube", ring()))["tube"]
    # The tube is a prism: its sides are 0.85 m away in their middles.
    assert found.distance == pytest.approx(0.85 - LENGTH - THICK, abs=0.0012)
    assert found.at_least > 0.018


def test_what_is_inside_a_closed_mesh_touches_it() -> None:
    """The rod, shorter than the walls are thick, starts between them and never meets them."""
    thick = trimesh.creation.annulus(r_min=0.6, r_max=3.0, height=2.0, sections=64)
    assert not thick.is_convex
    move = pin.SE3(np.eye(3), np.array([1.0, 1.2, 0.0]))
    inside = clearance(swing(angle=0.2), Obstacle.mesh("walls", thick, move))["walls"]
    assert inside.touches
    assert inside.t == 0.0
    hole = clearance(swing(angle=0.2), Obstacle.mesh("walls", thick, (0.4, 0, 0)))["walls"]
    assert 0.1 < hole.distance < 0.2  # there it stays in the hole


def test_faces_that_look_inward_are_a_room() -> None:
    room = box_mesh((2.0, 3.0, 1.0))
    room.invert()
    found = clearance(swing(), Obstacle.mesh("room", room))["room"]
    assert found.distance == pytest.approx(1.0 - LENGTH - THICK, abs=0.001)


def test_placements_and_names() -> None:
    turned = pin.SE3(pin.exp3(np.array([0, 0, np.pi / 4])), np.array([1.0, 0, 0]))
    found = clearance(swing(angle=0.5), Obstacle.box("b", (0.2, 0.2, 1), turned))["b"]
    # The corner of the turned box points to the origin.
    assert found.distance == pytest.approx(1 - 0.1 * np.sqrt(2) - LENGTH - THICK, abs=0.001)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Obstacle.box("b", (1, 2)), r"size of obstacle 'b' is \(1, 2\); give three"),
        (lambda: Obstacle.box("b", (1, 2, 0)), "all lengths must be > 0"),
        (lambda: Obstacle.box("b", (1, 2, np.inf)), "three finite numbers"),
        (lambda: Obstacle.box("b", (1, 1, 1), "there"), "placement of obstacle 'b' is 'there'"),
        (lambda: Obstacle.sphere("s", -1.0, (0, 0, 0)), "the radius of obstacle 's' is -1.0"),
        (lambda: Obstacle.sphere("", 1.0, (0, 0, 0)), "the name of an obstacle is ''"),
        (lambda: Obstacle.mesh("m", "nowhere.stl"), "obstacle 'm': there is no mesh file 'nowhere"),
        (lambda: Obstacle.mesh("m", 3), "obstacle 'm' is int; give a file or a trimesh.Trimesh"),
        (
            lambda: Obstacle.mesh("m", box_mesh((1, 1, 1)), scale=0),
            "the scale of obstacle 'm' is 0",
        ),
        (lambda: Obstacle.mesh("m", trimesh.Trimesh()), "its mesh has no triangles"),
    ],
)
def test_impossible_obstacles(make: Any, message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        make()


def test_a_mesh_file_that_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.obj"
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(pl.BadValue, match=r"obstacle 'm'.*empty\.obj"):
        Obstacle.mesh("m", path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"obstacles": []}, "there is no obstacle"),
        ({"obstacles": 3}, "obstacles are 3"),
        ({"obstacles": ["wall"]}, "obstacle 'wall' is none"),
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


# -- with itself -------------------------------------------------------------------------------

UPPER, LAST = 0.5, 0.6


def folding(spin: float, until: float = 0.8) -> pl.Trajectory:
    """Three rods; the first along x, the second upright, the third folds down onto the first.

    Args:
        spin: speed at which the whole chain turns [rad/s].
        until: end [s].
    """
    rods = (rod("a"), rod("b", UPPER), rod("c", LAST))
    links = chain("revolute", "revolute", "revolute", length=UPPER, geometry=rods)
    given = (
        lambda t: (spin * t, spin, 0.0),
        lambda t: (np.pi / 2, 0.0, 0.0),
        lambda t: (0.2 + 5 * t, 5.0, 0.0),
    )
    rows = [pl.Prescribed(f"j{k + 1}", motion) for k, motion in enumerate(given)]
    return pl.simulate(
        links, [0.0, np.pi / 2, 0.2], [spin, 0.0, 5.0], until=until, rows=rows, losses=False,
        save_every=until / 3,
    )  # fmt: skip


@pytest.mark.parametrize("spin", [0.0, 25.0])
def test_a_chain_folds_onto_itself(spin: float) -> None:
    """The tip of c is at the height 0.5 + 0.6 cos(angle); a is touched at twice the radius."""
    found = self_collisions(folding(spin))
    (touch,) = found.touching
    assert {touch.body, touch.other} == {"a", "c"}
    angle = np.arccos((2 * THICK - UPPER) / LAST)
    assert touch.t == pytest.approx((angle - 0.2) / 5, abs=2e-5)
    assert found.excluded == {("a", "b"): "a joint joins them", ("b", "c"): "a joint joins them"}
    assert found.approaches == (touch,)


@pytest.mark.parametrize("spin", [0.0, 25.0])
def test_how_near_a_chain_comes_to_itself(spin: float) -> None:
    until = 0.3
    found = self_collisions(folding(spin, until))
    (nearest,) = found.approaches
    assert found.touching == ()
    # Points of the middle line of c, and their distance from that of a.
    angles, along = 0.2 + 5 * np.linspace(0, until, 2001), np.linspace(0, LAST, 401)
    x = UPPER - np.outer(np.sin(angles), along)
    y = UPPER + np.outer(np.cos(angles), along)
    beyond = np.maximum(np.maximum(x - LENGTH, -x), 0)
    law = float(np.hypot(beyond, y).min() - 2 * THICK)
    assert nearest.distance == pytest.approx(law, abs=0.0015)
    assert nearest.at_least <= law + 1e-5


def test_pairs_that_are_left_out() -> None:
    geometry = (
        rod("a", 0.4),
        rod("b", 0.4),
        shape("c", "box", (0.6, 0.02, 0.02), at(-0.2, 0, 0.06)),
        shape("d", "box", (0.1, 0.1, 0.1), at(0.2, 0, 0)),
        shape(GROUND, "box", (0.2, 0.2, 0.2), at(0.0, -1.7, 0)),
    )
    run = pl.simulate(
        chain("revolute", "revolute", "revolute", "fixed", geometry=geometry),
        [0, 0, 0], [-3.0, 0, 0], until=0.6, mode=pl.Mode(["j2", "j3"]), losses=False,
    )  # fmt: skip
    found = self_collisions(run)
    assert found.excluded == {
        ("a", "b"): "a joint joins them",
        ("b", "c"): "a joint joins them",
        ("c", "d"): "they are welded to each other",
        ("a", GROUND): "a joint joins them",
    }
    pairs = {(one.body, one.other) for one in found.approaches}
    assert pairs == {("a", "c"), ("a", "d"), ("b", "d"), ("b", GROUND), ("c", GROUND),
                     ("d", GROUND)}  # fmt: skip
    assert [one.body for one in found.touching] == ["d"]


def test_bodies_that_overlap_at_the_start_are_left_out() -> None:
    geometry = (rod("a"), rod("b", 0.1), rod("c", 0.3))
    links = chain("revolute", "revolute", "revolute", geometry=geometry, length=0.4)
    run = pl.simulate(links, [0, 0, 0], [1.0, 0, 0], until=0.1, losses=False)
    assert self_collisions(run).excluded["a", "c"] == "they overlap at the start"


def test_loop_joints_join_bodies_too() -> None:
    linkage = robot("palletizer")
    found = self_collisions(fling(linkage, seed=2, until=0.05), tolerance=0.01)
    for loop in linkage.loops:
        pair = loop.body_a, loop.body_b
        if pair in found.excluded or pair[::-1] in found.excluded:
            reason = found.excluded.get(pair) or found.excluded.get(pair[::-1])
            assert reason == "a joint joins them"
        assert all({one.body, one.other} != set(pair) for one in found.approaches)
    assert found.approaches == tuple(sorted(found.approaches, key=lambda one: one.distance))


def test_approaches_print() -> None:
    here: Array = np.zeros(3)
    near = Approach("arm", "wall", 0.0123, 0.012, 0.5, here, here)
    assert repr(near) == "<Approach: 'arm' and 'wall' 12.3 mm apart at t = 0.5 s>"
