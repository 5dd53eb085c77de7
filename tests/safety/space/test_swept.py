"""Tests of `pinloop.safety.space.swept`: nothing is left out, and not too much is put in.

That a volume holds the robot is tested with points of the shapes themselves, carried by Pinocchio
along the dense output. That it is not too large is tested where the swept set has a closed form.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import trimesh

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.safety.space.swept import swept_volume

from ... import mechanisms as m
from ... import screw_tables as tables
from ...screw_tables import Array
from ...states import robot
from .moving_bodies import at, chain, dressed, fling, places, shape, wardrobe

FLOATING = [("double-pendulum", 1), ("every-pair", 2), ("floating-four-bar", 3)]


def random_times(run: pl.Trajectory, rng: np.random.Generator) -> Array:
    """200 times, stored ones among them."""
    inner = rng.uniform(run.t[0], run.t[-1], 190)
    return np.concatenate([inner, [run.t[0], run.t[-1]], rng.choice(run.t, 8)])


# -- nothing is left out ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("planar_3r", 0.005), ("six_axis_arm", 0.01), ("palletizer", 0.02), ("stewart", 0.05)],
)
def test_it_holds_the_robot(name: str, tolerance: float) -> None:
    run = fling(robot(name), seed=3, until=0.3)
    rng = np.random.default_rng(5)
    volume = swept_volume(run, tolerance=tolerance)
    points = places(run, random_times(run, rng), rng)
    assert len(points) >= 10_000
    assert np.all(volume.contains(points))
    assert 0.0 < volume.excess <= volume.tolerance == tolerance


@pytest.mark.parametrize(("name", "seed"), FLOATING)
def test_it_holds_all_kinds_of_shapes_on_all_kinds_of_joints(
    name: str, seed: int, tmp_path: Path
) -> None:
    run = fling(wardrobe(robot(name), tmp_path, seed), seed, until=0.2, drag=0.05)
    rng = np.random.default_rng(seed)
    volume = swept_volume(run, tolerance=0.02)
    points = places(run, random_times(run, rng), rng)
    assert np.all(volume.contains(points))
    assert volume.excess <= 0.02


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_it_holds_a_thrown_box(space: Any) -> None:
    free = robot("planar_3r").absolute(space).without_loops(["joint_1", "joint_2", "joint_3"])
    geometry = tuple(shape(body, "box", (0.4, 0.1, 0.2), at(0.2, 0.1, 0)) for body in free.bodies)
    run = fling(dressed(free, geometry), seed=1, until=0.4, speed=9.0, drag=0.3)
    rng = np.random.default_rng(0)
    volume = swept_volume(run)
    assert np.all(volume.contains(places(run, random_times(run, rng), rng)))
    assert volume.excess <= 0.005


def test_velocities_may_jump() -> None:
    arm = robot("six_axis_arm")
    locks = [pl.lock(arm.joints[1], at=0.1), pl.lock(arm.joints[0], at=0.13)]
    run = fling(arm, seed=4, until=0.2, events=locks)
    assert len(run.transitions) == 2
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.uniform(0.095, 0.135, 150), [0.1, 0.13]])
    volume = swept_volume(run, tolerance=0.02)
    assert np.all(volume.contains(places(run, near, rng)))
    assert volume.excess <= 0.02


def test_configurations_may_jump_where_a_loop_closes() -> None:
    run = fling(robot("six_axis_arm"), seed=4, until=0.05)
    q = run.q.copy()
    k = len(q) // 2
    shifted = q[k:] + 0.2  # as if all joints had slipped at once
    jumped = replace(
        run,
        t=np.insert(run.t, k, run.t[k]),
        q=np.vstack([q[: k + 1], shifted]),
        v=np.insert(run.v, k, run.v[k], axis=0),
        a=np.insert(run.a, k, run.a[k], axis=0),
        psi=np.insert(run.psi, k, 0.0, axis=0),
        inner=None,
        mode=np.insert(run.mode, k, 0),
    )
    rng = np.random.default_rng(0)
    volume = swept_volume(jumped, tolerance=0.02)
    before = run.t[k] - (run.t[k] - run.t[k - 1]) * np.geomspace(1e-6, 0.5, 50)
    times = np.concatenate([before, random_times(jumped, rng)])
    assert np.all(volume.contains(places(jumped, times, rng)))


def test_a_body_that_trembles() -> None:
    """Over many tiny steps it goes to and fro by 0.4 mm; where it was at their ends is not all."""
    robot = chain("prismatic", geometry=(shape("a", "box", (0.2, 0.2, 0.2), at(0, 0, 0)),))
    given = pl.simulate(robot, [0.0], until=9.9e-4, method=pl.MuntheKaas("rk4", step=1e-5))
    q = np.zeros_like(given.q)
    q[1::3], q[2::3] = 4e-4, -4e-4
    still = np.zeros_like(q)
    run = replace(given, q=q, v=still, a=still, psi=np.diff(q, axis=0), inner=None)
    volume = swept_volume(run, tolerance=0.288)
    assert len(volume.parts["a"]) < 5
    assert np.all(np.abs(volume.bounds[:, 2]) >= 0.1004)
    assert np.all(np.abs(volume.bounds[:, 2]) <= 0.1004 + volume.excess)


def test_where_it_was_before_a_jump_is_not_lost() -> None:
    """A box slides up by 1 m and is then 0.5 m below its start."""
    slider = chain("prismatic", geometry=(shape("a", "box", (0.2, 0.2, 0.2), at(0, 0, 0)),))
    slid = pl.simulate(slider, [0.0], [2.0], until=0.5, method=pl.MuntheKaas("rk4", step=0.5))
    jumped = replace(
        slid,
        t=np.append(slid.t, 0.5),
        q=np.vstack([slid.q, [[-0.5]]]),
        v=np.vstack([slid.v, [[0.0]]]),
        a=np.vstack([slid.a, [[0.0]]]),
        psi=np.vstack([slid.psi, [[0.0]]]),
        inner=None,
        mode=np.append(slid.mode, 0),
    )
    assert np.allclose(swept_volume(jumped).bounds[:, 2], [-0.6, 1.1], atol=1e-5)


def test_steps_far_shorter_than_needed() -> None:
    method = pl.MuntheKaas("rk4", step=2e-5)
    run = fling(robot("planar_3r"), seed=2, until=0.015, speed=20.0, method=method)
    rng = np.random.default_rng(0)
    volume = swept_volume(run)
    assert len(run.t) == 751
    assert volume.triangles < 10_000
    assert np.all(volume.contains(places(run, random_times(run, rng), rng)))
    assert volume.excess <= 0.005


def test_a_run_of_one_state_sweeps_the_robot_itself() -> None:
    run = fling(chain("revolute", geometry=(shape("a", "box", (1, 2, 3), at(0, 0, 0)),)), seed=0)
    still = replace(
        run, t=run.t[:1], q=run.q[:1], v=run.v[:1], a=run.a[:1], psi=run.psi[:0],
        mode=run.mode[:1],
    )  # fmt: skip
    volume = swept_volume(still)
    assert volume.volume == pytest.approx(6.0, rel=1e-3)
    assert volume.triangles == 12
    assert volume.excess < 1e-6


# -- and not too much is put in ----------------------------------------------------------------

LENGTH, WIDTH, HEIGHT, ANGLE, SPEED = 1.0, 0.1, 0.06, 2.0, 5.0


def turning_bar(where: float = LENGTH / 2, angle: float = ANGLE) -> pl.Trajectory:
    """A bar along x turns about z at constant speed.

    Args:
        where: distance of its middle from the axis [m].
        angle: by how much [rad].
    """
    bar = shape("a", "box", (LENGTH, WIDTH, HEIGHT), at(where, 0, 0))
    return pl.simulate(chain("revolute", geometry=(bar,)), [0.0], [SPEED], until=angle / SPEED)


@pytest.mark.parametrize("tolerance", [0.02, 0.002])
def test_a_bar_turning_about_its_end_sweeps_a_sector(tolerance: float) -> None:
    """Its corners go around at R; beyond them lie the halves of the first and the last bar."""
    volume = swept_volume(turning_bar(), tolerance=tolerance)
    e = volume.excess
    assert e <= tolerance
    half = WIDTH / 2
    R, corner = np.hypot(LENGTH, half), np.arctan2(half, LENGTH)
    area = R**2 * (ANGLE + 2 * corner) / 2 + LENGTH * half
    # An area grows by at most its outline times e, and pi e^2, if it is made thicker by e.
    outline = R * (ANGLE + 2 * corner) + 2 * LENGTH + 2 * WIDTH
    largest = (area + outline * e + np.pi * e**2) * (HEIGHT + 2 * e)
    assert area * HEIGHT * 0.997 < volume.volume < largest * 1.003
    exact = np.array(
        [[R * np.cos(ANGLE + corner), -half, -HEIGHT / 2], [R, R, HEIGHT / 2]]
    )  # fmt: skip
    outside = (volume.bounds - exact) * [[-1], [1]]
    assert np.all(outside > 0)
    assert np.all(outside <= e)
    # No corner of the volume stands out of the sector by more than it says.
    corners = volume.mesh().vertices
    turned = corners @ pin.exp3(ANGLE * np.array([0, 0, 1.0]))  # as the last bar sees them
    assert np.linalg.norm(corners[:, :2], axis=1).max() <= R + e
    assert np.all(np.abs(corners[:, 2]) <= HEIGHT / 2 + e)
    before = (corners[:, 1] < -half - e) & (corners[:, 0] > 0)
    after = (turned[:, 1] > half + e) & (turned[:, 0] > 0)
    assert not np.any(before | after)


def test_a_bar_turning_about_its_middle_leaves_the_sides_free() -> None:
    """What two poses have between them is swept here only near the axis."""
    volume = swept_volume(turning_bar(where=0.0, angle=0.5), tolerance=0.005)
    assert volume.excess <= 0.005
    # The right half moves up and the left half down: under the right half of the first bar, and
    # over the right half of the last one, nothing comes nearer than their sides.
    away = WIDTH / 2 + 0.0055
    under = np.array([(x, -away, 0.0) for x in (0.04, 0.1, 0.2, 0.3, 0.45)])
    over = under * [1, -1, 1] @ pin.exp3(0.5 * np.array([0, 0, 1.0])).T
    assert not np.any(volume.contains(np.vstack([under, -under, over, -over])))
    inside = [(r * np.cos(a), r * np.sin(a), z) for r in (-0.49, -0.2, 0.3, 0.5)
              for a in np.linspace(0, 0.5, 7) for z in (-0.03, 0.03)]  # fmt: skip
    assert np.all(volume.contains(inside))


def test_a_box_that_slides_sweeps_a_box() -> None:
    sizes = np.array([0.3, 0.2, 0.1])
    box = shape("a", "box", sizes, at(0, 0, 0))
    run = pl.simulate(chain("prismatic", geometry=(box,)), [0.0], [2.0], until=0.5)
    volume = swept_volume(run)
    assert len(volume.parts["a"]) == 1
    assert np.allclose(volume.bounds, [-sizes / 2, sizes / 2 + [0, 0, 1.0]], atol=1e-6)
    assert volume.volume == pytest.approx(0.3 * 0.2 * 1.1, rel=1e-3)
    assert volume.excess < 1e-6


def test_a_roller_turning_about_its_axis_sweeps_little_more_than_itself() -> None:
    roller = shape("a", "cylinder", (0.2, 0.4), at(0, 0, 0))
    run = pl.simulate(chain("revolute", geometry=(roller,)), [0.0], [10.0], until=0.2)
    volume = swept_volume(run, tolerance=0.01)
    reach = 0.2 + volume.excess
    assert volume.excess <= 0.01
    assert np.all(np.linalg.norm(volume.mesh().vertices[:, :2], axis=1) <= reach)
    assert np.pi * 0.2**2 * 0.4 < volume.volume * 1.003
    assert volume.volume < np.pi * reach**2 * (0.4 + 2 * volume.excess)


def test_random_corners_of_the_volume_are_near_the_robot() -> None:
    """Distance from boxes at 1,000 instants; it is exact to half a step of the fastest point."""
    geometry = tuple(
        shape(body, "box", (0.5, 0.08, 0.12), at(0.25, 0, 0)) for body in ("a", "b", "c")
    )
    run = fling(chain("revolute", "universal", "spherical", geometry=geometry), seed=8, drag=0.0)
    volume = swept_volume(run, tolerance=0.01)
    rng = np.random.default_rng(0)
    corners = rng.permutation(volume.mesh().vertices)[:400]
    nearest = np.full(len(corners), np.inf)
    data = run.robot.model.createData()
    half, step = np.array([0.25, 0.04, 0.06]), (run.t[-1] - run.t[0]) / 1000
    states = run(run.t[0] + step * (np.arange(1000) + 0.5))
    fastest = 0.0
    for q, v in zip(states.q, states.v, strict=True):
        pin.forwardKinematics(run.robot.model, data, q, v)
        pin.updateFramePlacements(run.robot.model, data)
        for body in ("a", "b", "c"):
            frame = run.robot.frame_id(body)
            placement = data.oMf[frame] * at(0.25, 0, 0)
            local = (corners - placement.translation) @ placement.rotation
            out = np.linalg.norm(np.maximum(np.abs(local) - half, 0), axis=1)
            nearest = np.minimum(nearest, out)
            twist = pin.getFrameVelocity(run.robot.model, data, frame)
            speeds = np.linalg.norm(twist.linear), np.linalg.norm(twist.angular)
            fastest = max(fastest, float(sum(speeds)))
    assert nearest.max() <= volume.excess + fastest * step / 2
    assert nearest.max() > 0.1 * volume.excess  # the bound says something


# -- what it is made of ------------------------------------------------------------------------


def test_collision_shapes_come_before_visual_ones() -> None:
    small, large = (0.1, 0.1, 0.1), (0.4, 0.4, 0.4)
    geometry = (
        shape("a", "box", large, at(0, 0, 0), role="visual"),
        shape("a", "box", small, at(0, 0, 0)),
        shape("b", "box", small, at(0, 0, 0), role="visual"),
        shape(GROUND, "box", (9, 9, 9), at(0, 0, 0)),
    )
    run = fling(chain("revolute", "revolute", "revolute", geometry=geometry), seed=1)
    volume = swept_volume(run)
    assert volume.shapes == {"a": "collision", "b": "visual"}
    assert volume.bare == ("c",)
    assert set(volume.parts) == {"a", "b"}
    assert np.all(np.abs(volume.mesh("a").bounds) < 0.1)


def test_the_hull_stands_for_a_mesh_with_many_corners(tmp_path: Path) -> None:
    path = tmp_path / "ball.stl"
    trimesh.creation.icosphere(subdivisions=4, radius=0.25).export(str(path))
    ball = shape("a", "mesh", (1.0, 2.0, 1.0), at(0.5, 0, 0), path=path)
    run = pl.simulate(chain("revolute", geometry=(ball,)), [0.0], [4.0], until=0.25)
    volume = swept_volume(run, tolerance=0.01)
    rng = np.random.default_rng(0)
    assert np.all(volume.contains(places(run, np.linspace(0, 0.25, 50), rng)))
    assert volume.excess <= 0.01
    # 2562 corners are on its hull; those of the polyhedra at both ends of an interval are fewer.
    assert all(len(hull.vertices) < 1200 for hull in volume.parts["a"])
    # (0.5 + 0.25 c)^2 + (0.5 s)^2 is largest at c = 2 / 3.
    far = np.linalg.norm(volume.mesh().vertices, axis=1).max()
    assert np.sqrt(7 / 12) < far + 1e-3 <= np.sqrt(7 / 12) + 0.011


def test_frames_bring_their_paths() -> None:
    arm = robot("six_axis_arm")
    run = fling(arm, seed=6)
    tip = np.array([arm.placement(run(t).q, "tool0").translation for t in np.linspace(0, 0.5, 99)])
    rng = np.random.default_rng(0)
    around = rng.normal(size=(99, 3))
    around /= np.linalg.norm(around, axis=1)[:, None]
    assert not np.all(swept_volume(run, tolerance=0.02).contains(tip + 0.2999 * around))
    volume = swept_volume(run, tolerance=0.02, frames={"tool0": 0.3})
    assert np.all(volume.contains(tip + 0.2999 * around))
    assert volume.shapes["tool0"] == "frame"
    low, high = volume.mesh("tool0").bounds
    assert np.all(low >= tip.min(axis=0) - 0.3 - 0.02)
    assert np.all(high <= tip.max(axis=0) + 0.3 + 0.02)


@pytest.mark.parametrize("thickness", [None, 0.04])
def test_a_robot_without_shapes(thickness: float | None) -> None:
    plain = tables.build(m.arm_6r())
    run = fling(plain, seed=2)
    volume = swept_volume(run, tolerance=0.02, thickness=thickness)
    assert set(volume.shapes.values()) == {"joint frames"}
    radius = 0.02 * plain.length if thickness is None else thickness
    # Joints and centres of mass, and what lies between them, with room around.
    points = []
    for t in np.linspace(0, 0.5, 40):
        q = run(t).q
        for joint, body in zip(plain.joints, plain.description.bodies, strict=True):
            seat = plain.placement(q, joint).translation
            centre = plain.placement(q, body.name).act(np.array(body.com))
            for point in (seat, centre, (seat + centre) / 2):
                points.append(point + 0.99 * radius * np.eye(3))
    assert np.all(volume.contains(np.vstack(points)))
    assert volume.excess <= volume.tolerance == 0.02
    assert radius < np.min(volume.bounds[1] - np.max(points, axis=(0, 1))) + radius < radius + 0.02


# -- triangles and arguments -------------------------------------------------------------------


def test_fewer_triangles_are_had_for_a_larger_tolerance() -> None:
    run = fling(robot("six_axis_arm"), seed=3, until=0.1)
    fine = swept_volume(run)
    rough = swept_volume(run, max_triangles=fine.triangles // 4)
    assert rough.triangles <= fine.triangles // 4
    assert rough.tolerance > fine.tolerance == 0.005
    assert 0.005 < rough.excess <= rough.tolerance
    rng = np.random.default_rng(0)
    assert np.all(rough.contains(places(run, random_times(run, rng), rng)))


def test_too_few_triangles_are_refused() -> None:
    run = fling(robot("planar_3r"), seed=3)
    with pytest.raises(pl.BadValue, match=r"max_triangles is 20, .* needs \d+ at least"):
        swept_volume(run, max_triangles=20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0; it must be a length > 0"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"tolerance": True}, "tolerance is True"),
        ({"max_triangles": 0}, "max_triangles is 0; it must be a number > 0"),
        ({"frames": ["tool"]}, "give radii by name"),
        ({"frames": {"a": -1.0}}, "the radius about frame 'a' is -1.0"),
        ({"frames": {"tip": 0.1}}, "no body or frame 'tip'"),
        ({"tolerance": 1e-9}, "the tolerance is too small for this motion"),
    ],
)
def test_impossible_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        swept_volume(turning_bar(), **arguments)


def test_no_run() -> None:
    with pytest.raises(pl.BadValue, match="is no trajectory; give the result of"):
        swept_volume(robot("planar_3r"))  # type: ignore[arg-type]


def test_a_mesh_that_cannot_be_had(tmp_path: Path) -> None:
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid of nothing")
    for path, message in ((broken, "cannot be read|holds no triangles"), (None, "was not found")):
        mesh = shape("a", "mesh", (1.0, 1.0, 1.0), at(0, 0, 0), path=path)
        run = fling(chain("revolute", geometry=(mesh,)), seed=0)
        with pytest.raises(pl.BadValue, match=rf"shape 'a mesh ' of body 'a'.*({message})"):
            swept_volume(run)
