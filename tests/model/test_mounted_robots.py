"""One robot mounted on another: every body is where both robots say, names and roles come along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.errors import BadValue, LoadError

SEAT = pin.SE3(pin.utils.rpyToMatrix(0.3, -0.4, 1.1), np.array([0.2, -0.1, 0.5]))


def random_pose(robot: pl.Mechanism, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    names = [name for name in robot.actuated if robot.coordinates(name).nv == 1]
    rates = robot.velocity({name: rng.uniform(-0.2, 0.2) for name in names})
    start = {name: float(rates[robot.coordinates(name).v.start]) for name in names}
    return pl.assemble(robot, start, limits=False)


@pytest.mark.parametrize("carrier", ["six_axis_arm", "palletizer", "delta"])
@pytest.mark.parametrize("rider", ["six_axis_arm", "palletizer", "delta", "planar_3r"])
def test_bodies_are_where_both_say(carrier: str, rider: str) -> None:
    below, above = pl.example(carrier), pl.example(rider)
    frame = below.bodies[-1]
    both = below.with_robot(above, "on_", frame, SEAT)
    q0, q1 = random_pose(below, 0), random_pose(above, 1)
    values = {name: below.named(q0)[name] for name in below.joints}
    values |= {f"on_{name}": above.named(q1)[name] for name in above.joints}
    q = both.configuration(values)
    assert np.abs(pl.Constraints(both).residual(q)).max(initial=0.0) < 1e-9
    world = below.placement(q0, frame) * SEAT
    for body in below.bodies:
        assert both.placement(q, body).isApprox(below.placement(q0, body), 1e-12)
    for body in above.bodies:
        assert both.placement(q, f"on_{body}").isApprox(world * above.placement(q1, body), 1e-9)
    assert both.actuated == (*below.actuated, *(f"on_{name}" for name in above.actuated))
    assert len(both.loops) == len(below.loops) + len(above.loops)
    assert len(both.geometry) == len(below.geometry) + len(above.geometry)
    masses = [sum(body.mass for body in robot.description.bodies) for robot in (below, above, both)]
    assert masses[2] == pytest.approx(masses[0] + masses[1])


def test_what_stands_on_the_ground_stands_on_the_carrier() -> None:
    """Also joints whose child is the ground, couplings, drives and frames of the ground."""
    bodies = [{"name": name, "mass": 1, "com": [0.1, 0, 0]} for name in ("a", "b")]
    turn = {"pair": "revolute", "axis": [0, 0, 1], "point": [0, 0, 0]}
    joints = [
        turn | {"name": "first", "parent": "a", "child": "ground"},
        turn | {"name": "second", "parent": "ground", "child": "b"},
    ]
    geared = {"name": "gear", "joint": "second", "source": "first", "ratio": 2.0}
    mark = {"name": "mark", "body": "ground", "point": [0, 0, 1]}
    table = {"name": "t", "bodies": bodies, "joints": joints, "couplings": [geared]}
    other = pl.from_screws(table | {"frames": [mark]})
    arm = pl.example("six_axis_arm")
    both = arm.with_robot(other, "x_", "tool0", SEAT)
    q = both.configuration({"joint_2": 0.4, "x_first": 0.3, "x_second": 0.6})
    world = arm.placement(q[:6], "tool0") * SEAT
    assert both.placement(q, "x_mark").isApprox(world * pin.SE3(np.eye(3), np.array([0, 0, 1.0])))
    spun = other.configuration({"first": 0.3, "second": 0.6})
    for body in ("a", "b"):
        there = world * other.placement(spun, body)
        assert both.placement(q, f"x_{body}").isApprox(there, 1e-12)
    (coupling,) = both.couplings
    assert (coupling.name, coupling.joints) == ("x_gear", ("x_second", "x_first"))
    assert np.abs(pl.Constraints(both).residual(q)).max() < 1e-14
    drives = pl.load(
        pl.example_file("six_axis_arm.urdf"), loops={"drives": {"joint_1": {"reduction": 50}}}
    )
    assert arm.with_robot(drives, "y_").drives["y_joint_1"].reduction == 50


def test_it_is_saved_and_read_back(tmp_path: Path) -> None:
    both = pl.example("palletizer").with_robot(pl.example("six_axis_arm"), "arm_", "tool0", SEAT)
    again = pl.load(both.save(tmp_path / "both.urdf"))
    q = random_pose(both, 3)
    back = again.configuration(both.named(q))
    for body in both.bodies:
        assert again.placement(back, body).isApprox(both.placement(q, body), 1e-9)


def test_names_that_are_taken_are_said() -> None:
    arm = pl.example("six_axis_arm")
    with pytest.raises(LoadError, match="names must be unique"):
        arm.with_robot(arm, "")
    brakes = pl.Brakes.template(arm)
    with pytest.raises(BadValue, match="both brakes have a joint 'joint_1'"):
        brakes.with_brakes(brakes)
    with pytest.raises(BadValue, match="other"):
        arm.with_robot("arm.urdf", "b_")  # type: ignore[arg-type]


def test_brakes_come_along() -> None:
    arm = pl.example("six_axis_arm")
    left = pl.Brakes.template(arm)
    right = left.missing("joint_2")
    both = left.with_brakes(right, "right_")
    assert both.joints["joint_2"].kind == "friction" and both.joints["right_joint_2"].kind == "none"
    assert both.faults == ("brake of right_joint_2 missing",)
    both.for_robot(arm.with_robot(arm, "right_"))
