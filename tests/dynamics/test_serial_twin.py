"""Serial twins: closed forms of linkages, differences, virtual work, the robot with its loops."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import SerialTwin
from pinloop.model.description import Drive
from pinloop.model.mechanism import build

from ..papers.programs import program
from ..screw_tables import Array
from ..states import allowed, close, robot

robots: Any = program("common.serial_robots")
ANKLE = {"pitch": (-0.45, 0.3), "roll": (-0.2, 0.18)}
FINGERS = ("left_knuckle", "left_tip", "right_knuckle", "right_tip")


@pytest.fixture(scope="module")
def ankle() -> SerialTwin:
    return pl.serial(robots.ankle(), ["pitch", "roll"], ranges=ANKLE)


def places(twin: SerialTwin, count: int, seed: int) -> Array:
    """Random positions of the joints."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.uniform(twin.ranges[:, 0], twin.ranges[:, 1], (count, len(twin.joints))))


def mass(machine: pl.Mechanism, q: Array) -> Array:
    """Mass matrix of a tree."""
    M = np.triu(pin.crba(machine.model, machine.model.createData(), q))
    M = M + np.triu(M, 1).T
    return np.asarray(M)


def slope(function: Any, x: Array, k: int, h: float = 2e-3) -> Array:
    """Derivative by coordinate k, differences of fourth order."""
    e = h * np.eye(len(x))[k]
    near = np.asarray(function(x + e)) - function(x - e)
    far = np.asarray(function(x + 2 * e)) - function(x - 2 * e)
    return np.asarray((8 * near - far) / (12 * h))


# -- positions ------------------------------------------------------------------------------------


def test_ankle_has_its_closed_form(ankle: SerialTwin) -> None:
    for y in places(ankle, 25, 1):
        motors = robots.ankle_motors(*y)
        pose = ankle.at_joints(y)
        close(pose.motors, motors, 1e-9)
        close(pose.joints, y, 1e-12)
        close(ankle.at_motors(motors).joints, y, 1e-9)
        named = ankle.at_joints(dict(zip(ankle.joints, y, strict=True)))
        np.testing.assert_array_equal(named.motors, pose.motors)
        for j in range(2):
            close(pose.jacobian[:, j], slope(lambda y: robots.ankle_motors(*y), y, j), 1e-9)


def test_knee_has_its_closed_form() -> None:
    twin = pl.serial(robots.knee(), ["bend"], margin=0.1)
    assert (twin.joints, twin.motors) == (("bend",), ("motor",))
    for y in places(twin, 20, 2):
        pose = twin.at_joints(y)
        assert pose.motors[0] == pytest.approx(robots.knee_motor(y[0]), abs=1e-9)
        ratio = slope(lambda y: robots.knee_motor(y[0]), y, 0)
        assert pose.jacobian[0, 0] == pytest.approx(ratio, abs=1e-7)


def test_wrist_has_its_closed_form() -> None:
    twin = pl.serial(robots.wrist(), ["bend", "turn"])
    mix, rotor = robots.BEVEL * np.array([[1.0, 1.0], [1.0, -1.0]]), 3e-5
    for y in places(twin, 5, 3):
        pose = twin.at_joints(y)
        close(pose.motors, mix @ y, 1e-12)
        close(pose.jacobian, mix, 1e-12)
        close(pose.inertia, rotor * mix.T @ mix, 1e-15)
        close(pose.inertia_slopes, np.zeros((2, 2, 2)), 1e-15)
    # 3 N m each way at both motors: a square that stands on its corner, counterclockwise.
    close(pose.torque_polygon, [[0, -12], [12, 0], [0, 12], [-12, 0]], 1e-12)
    close(pose.speed_polygon, [[0, -10], [10, 0], [0, 10], [-10, 0]], 1e-12)
    close(twin.torque_box, [6.0, 6.0], 1e-12)
    close(twin.speed_box, [5.0, 5.0], 1e-12)


@pytest.mark.parametrize("parallel", [True, False])
def test_fingers_follow_one_motor(parallel: bool) -> None:
    machine = robots.gripper(parallel=parallel)
    twin = pl.serial(machine, FINGERS)
    assert (twin.joints, twin.motors, twin.followers) == (FINGERS[:1], FINGERS[:1], FINGERS[1:])
    serial = twin.robot
    assert not serial.loops and serial.joints == FINGERS and serial.actuated == FINGERS[:1]
    kinds = [coupling.name.partition(":")[2] for coupling in serial.couplings]
    assert kinds == [
        "mimic" if parallel else "follows",
        "mimic",
        "mimic" if parallel else "follows",
    ]
    for y in places(twin, 6, 4):
        pose = twin.at_joints(y)
        by_loops = pl.assemble(machine, {"left_knuckle": float(y[0])})
        named = machine.named(by_loops)
        close(pose.followers, [named[name] for name in FINGERS[1:]], 1e-9)
        by_rows = serial.named(pl.assemble(serial, {"left_knuckle": float(y[0])}))
        close([by_rows[name] for name in FINGERS[1:]], pose.followers, 1e-9 if parallel else 3e-3)


# -- rates, torques, inertia ----------------------------------------------------------------------


def test_rates_and_torques_do_the_same_work(ankle: SerialTwin) -> None:
    rng = np.random.default_rng(5)
    for y in places(ankle, 5, 5):
        pose, rates, torques = ankle.at_joints(y), *rng.normal(size=(2, 2))
        motor_rates = pose.motor_rates(rates)
        v = pl.consistent_velocity(
            ankle.looped, pose.q, dict(zip(ankle.joints, rates, strict=True))
        )
        rates_of_robot = ankle.looped.named_rates(v)
        close(motor_rates, [rates_of_robot[name] for name in ankle.motors], 1e-9)
        close(pose.joint_rates(motor_rates), rates, 1e-12)
        motor_torques = pose.motor_torques(torques)
        assert motor_torques @ motor_rates == pytest.approx(torques @ rates, abs=1e-12)
        close(pose.joint_torques(motor_torques), torques, 1e-12)


def test_motors_hold_the_weight(ankle: SerialTwin) -> None:
    """The torques that hold the robot with its loops hold the serial one and the linkage."""
    model = ankle.robot.model
    for y in places(ankle, 5, 6):
        pose, rest = ankle.at_joints(y), np.zeros(ankle.looped.nv)
        motors = pl.inverse_dynamics(ankle.looped, pose.q, rest, rest)
        needed = pin.rnea(model, model.createData(), y, np.zeros(2), np.zeros(2)) - pose.weight
        close(pose.motor_torques(needed), motors, 1e-9)
        assert np.abs(pose.weight).max() > 0.05


@pytest.mark.parametrize("name", ["ankle", "knee"])
def test_inertia_is_what_loops_project(name: str) -> None:
    """Of the whole mass matrix on the motions of the loops, less the serial robot's."""
    joints = ["pitch", "roll"] if name == "ankle" else ["bend"]
    machine = getattr(robots, name)()
    twin = pl.serial(machine, joints, ranges=ANKLE if name == "ankle" else None)
    at = [machine.coordinates(joint).v.start for joint in joints]
    bare = pl.serial(machine, joints, ranges=ANKLE if name == "ankle" else None).robot
    for y in places(twin, 4, 7):
        pose = twin.at_joints(y)
        T = allowed(pl.Constraints(machine).jacobian(pose.q))
        M = T.T @ mass(machine, pose.q) @ T
        # The least energy at rates of the joints, whatever spins.
        whole = np.linalg.inv(T[at] @ np.linalg.solve(M, T[at].T))
        own = mass(bare, y) - np.diag(bare.model.armature)
        close(pose.inertia, whole - own, 1e-12)
        close(
            own + pose.inertia, pl.reflected_inertia(machine, pose.q, actuated=joints).matrix, 1e-9
        )
    close(bare.model.armature, twin.at_joints(np.zeros(len(joints))).inertia.diagonal(), 1e-12)


def test_rotors_count(ankle: SerialTwin) -> None:
    drives = tuple(Drive(name, 20.0, 1e-5 * (k + 1)) for k, name in enumerate(ankle.motors))
    geared = build(replace(ankle.looped.description, drives=drives), kinematics_only=True)
    twin, y = pl.serial(geared, ["pitch", "roll"], ranges=ANKLE), places(ankle, 1, 8)[0]
    pose, bare = twin.at_joints(y), ankle.at_joints(y)
    rotors = np.diag([400e-5, 800e-5])
    close(pose.inertia, bare.inertia + bare.jacobian.T @ rotors @ bare.jacobian, 1e-12)
    assert not twin.robot.drives
    # A rotor on a joint that stays is the serial robot's own.
    joints = tuple(
        replace(x, armature=(0.01,)) if x.name == "pitch" else x
        for x in ankle.looped.description.joints
    )
    machine = build(replace(ankle.looped.description, joints=joints), kinematics_only=True)
    own = pl.serial(machine, ["pitch", "roll"], ranges=ANKLE)
    close(own.at_joints(y).inertia, bare.inertia, 1e-12)
    close(own.robot.model.armature, ankle.robot.model.armature + np.array([0.01, 0.0]), 1e-12)


def test_second_derivatives_are_differences(ankle: SerialTwin) -> None:
    rates = np.array([0.7, -1.3])
    for y in places(ankle, 4, 9):
        y *= 0.9
        pose = ankle.at_joints(y)
        for k in range(2):
            inertia = slope(lambda y: ankle.at_joints(y).inertia, y, k)
            close(pose.inertia_slopes[:, :, k], inertia, 1e-9)
            jacobian = slope(lambda y: ankle.at_joints(y).jacobian, y, k)
            close(pose.hessian[:, :, k], jacobian, 1e-7)
        change = slope(lambda t, y=y: ankle.at_joints(y + t[0] * rates).inertia, np.zeros(1), 0)
        close(pose.inertia_rate(rates), change, 1e-9)


def test_accelerations_are_those_of_the_robot_with_loops(ankle: SerialTwin) -> None:
    rng, serial = np.random.default_rng(10), ankle.robot
    own = serial.model.copy()
    own.armature[:] = 0.0
    for y in places(ankle, 5, 10):
        pose, rates, torques = ankle.at_joints(y), *rng.normal(size=(2, 2))
        looped = ankle.looped
        v = pl.consistent_velocity(looped, pose.q, dict(zip(ankle.joints, 5 * rates, strict=True)))
        # Rods that spin about themselves store energy: they spin as little as can be.
        v = least_energy(looped, pose.q, v, ankle.joints)
        forces = [pl.Torque(name, x) for name, x in zip(ankle.motors, torques, strict=True)]
        a = pl.EquationsOfMotion(looped, forces=forces).acceleration(0.0, pose.q, v)
        at = [looped.coordinates(name).v.start for name in (*ankle.joints, *ankle.motors)]
        needed = pin.rnea(own, own.createData(), y, v[at[:2]], a[at[:2]])
        needed += pose.inertia @ a[at[:2]] + pose.coriolis(v[at[:2]]) - pose.weight
        close(needed, pose.joint_torques(torques), 1e-8)
        close(pose.motor_accelerations(v[at[:2]], a[at[:2]]), a[at[2:]], 1e-6)


def least_energy(machine: pl.Mechanism, q: Array, v: Array, joints: tuple[str, ...]) -> Array:
    """The velocity with the same rates of some joints that has the least energy."""
    at = [machine.coordinates(name).v.start for name in joints]
    T = allowed(np.vstack([pl.Constraints(machine).jacobian(q), np.eye(machine.nv)[at]]))
    M = mass(machine, q)
    return np.asarray(v - T @ np.linalg.solve(T.T @ M @ T, T.T @ M @ v))


# -- limits ---------------------------------------------------------------------------------------


def inside(polygon: Array, points: Array) -> Array:
    """Whether points are left of all edges of a counterclockwise polygon."""
    edges = np.roll(polygon, -1, axis=0) - polygon
    to = points[:, None] - polygon
    return np.asarray((edges[:, 0] * to[..., 1] - edges[:, 1] * to[..., 0] >= 0).all(axis=1))


def test_polygons_are_what_motors_can(ankle: SerialTwin) -> None:
    rng = np.random.default_rng(11)
    limits, speeds = np.array([40.0, 30.0]), np.array([12.0, 11.0])
    for y in places(ankle, 4, 11):
        pose = ankle.at_joints(y)
        torques = rng.uniform(-150, 150, (400, 2))
        able = [bool((np.abs(pose.motor_torques(x)) <= limits).all()) for x in torques]
        assert inside(pose.torque_polygon, torques).tolist() == able and 0 < sum(able) < 400
        rates = rng.uniform(-20, 20, (400, 2))
        able = [bool((np.abs(pose.motor_rates(x)) <= speeds).all()) for x in rates]
        assert inside(pose.speed_polygon, rates).tolist() == able and 0 < sum(able) < 400
        corners = {tuple(np.round(pose.joint_torques(x), 9)) for x in product((-40, 40), (-30, 30))}
        assert {tuple(np.round(x, 9)) for x in pose.torque_polygon} == corners


def test_boxes_are_within_all_polygons(ankle: SerialTwin) -> None:
    """And touch one of those over which they were taken."""
    for box, name in ((ankle.torque_box, "torque_polygon"), (ankle.speed_box, "speed_polygon")):
        corners = np.array(list(product(*([-x, x] for x in box))))
        polygons = [getattr(pose, name) for pose in ankle.grid]
        assert all(inside(polygon, (1 - 1e-9) * corners).all() for polygon in polygons)
        assert not all(inside(polygon, (1 + 1e-6) * corners).all() for polygon in polygons)
    joint = next(x for x in ankle.robot.description.joints if x.name == "roll")
    assert (joint.effort, joint.velocity) == ((ankle.torque_box[1],), (ankle.speed_box[1],))
    assert (joint.lower, joint.upper) == ((-0.2,), (0.18,))


def test_limits_that_are_given(ankle: SerialTwin) -> None:
    twin = pl.serial(
        robots.knee(), ["bend"], torques={"motor": (-10.0, 20.0)}, speeds={"motor": np.inf}
    )
    pose = twin.at_joints([0.2])
    close(pose.torque_polygon.ravel(), pose.jacobian[0, 0] * np.array([-10.0, 20.0]), 1e-12)
    assert np.isinf(twin.speed_box).all()
    with pytest.raises(pl.BadValue, match=r"motor 'motor' has no speed limit; give it: "):
        _ = pose.speed_polygon


# -- where it ends --------------------------------------------------------------------------------


def test_ranges_end_before_singular_poses() -> None:
    """The knee's crank and rod, or rod and lever, come in line: its own trigonometry says where."""
    twin = pl.serial(robots.knee(), ["bend"], margin=0.05)
    assert twin.ranges.tolist() == [[-0.3, 0.9]] and not twin.ends
    with pytest.raises(pl.BadValue, match=r"'bend' at 1 is beyond the range of the twin, -0.3 to"):
        twin.at_joints([1.0])
    bent = robots.knee(2.2)
    ratio = slope(lambda y: robots.knee_motor(y[0]), np.zeros(1), 0)
    for margin in (0.5, 0.05):
        twin = pl.serial(bent, ["bend"], margin=margin)
        low, high = twin.ranges[0]
        at_end = slope(lambda y: robots.knee_motor(y[0]), np.array([high]), 0, 1e-4) / ratio
        assert low == -0.3 and margin <= at_end < margin + 0.02
        with pytest.raises(pl.BadValue, match=r"range .*where the motors hold joint 'bend' with 0"):
            twin.at_joints([1.3])
    for beyond in (1.0, 1.4, 2.2):
        with pytest.raises(pl.BadValue, match=rf"on the way to bend = {beyond:g} .*singular pose"):
            pl.serial(bent, ["bend"], ranges={"bend": (-0.3, beyond)}, margin=0.05)
    with pytest.raises(pl.BadValue, match=r"on the way to bend = 1 joint 'bend' passes its limits"):
        pl.serial(robots.knee(), ["bend"], ranges={"bend": (-0.3, 1.0)}, margin=0.01)


def test_ankle_ends_where_rods_are_stretched() -> None:
    twin = pl.serial(robots.ankle(), ["pitch", "roll"], margin=0.3)
    home = ankle_slopes(np.zeros(2))
    values = []
    for corner in product(*twin.ranges):
        relative = ankle_slopes(np.array(corner)) @ np.linalg.inv(home)
        sizes = np.linalg.svd(relative, compute_uv=False)
        values.append(min(sizes[-1], 1 / sizes[0]))
        assert twin.at_joints(corner).regularity == pytest.approx(values[-1], rel=1e-5)
    assert 0.3 <= min(values) < 0.4 and "turn of the motors moves joint" in twin.ends
    assert twin.at_joints([0.0, 0.0]).regularity == pytest.approx(1.0)


def ankle_slopes(y: Array) -> Array:
    """Jacobian of the closed form."""
    return np.column_stack([slope(lambda y: robots.ankle_motors(*y), y, k, 1e-4) for k in (0, 1)])


def test_motors_beyond_their_limits(ankle: SerialTwin) -> None:
    twin = pl.serial(robots.ankle(), ["pitch", "roll"], margin=0.05)
    with pytest.raises(pl.BadValue, match=r"on the way to these positions of the motors"):
        twin.at_motors([1.6, 1.6])
    with pytest.raises(pl.BadValue, match=r"the joints of the twin are 'pitch', 'roll'"):
        ankle.at_joints({"pitch": 0.1})


# -- what a twin is of ----------------------------------------------------------------------------


def test_twin_of_a_part_of_a_robot() -> None:
    """Two ankles on an arm: one after the other, with their masses where they hang."""
    arm = robot("planar_3r")
    both = arm.with_robot(robots.ankle(), "left_", "bar_3").with_robot(
        robots.ankle(), "right_", "bar_2"
    )
    left = pl.serial(
        both, ["left_pitch", "left_roll"], ranges={f"left_{k}": x for k, x in ANKLE.items()}
    )
    assert left.motors == ("left_left_motor", "left_right_motor") and len(left.robot.loops) == 2
    ranges = {f"right_{k}": x for k, x in ANKLE.items()}
    right = pl.serial(left.robot, ["right_pitch", "right_roll"], ranges=ranges)
    serial = right.robot
    named = {*arm.joints, *left.joints, *right.joints}
    assert not serial.loops and set(serial.joints) == named == set(serial.actuated)
    alone = pl.serial(robots.ankle(), ["pitch", "roll"], ranges=ANKLE)
    for twin in (left, right):
        close(twin.at_joints([0.1, -0.1]).inertia, alone.at_joints([0.1, -0.1]).inertia, 1e-12)
    # With the ankles at rest at home, the arm feels the same masses.
    q = pl.assemble(both)
    columns = [both.coordinates(name).v.start for name in arm.joints]
    whole = mass(both, q)[np.ix_(columns, columns)]
    at = [serial.coordinates(name).v.start for name in arm.joints]
    close(mass(serial, serial.neutral)[np.ix_(at, at)], whole, 1e-9)
    assert sum(body.mass for body in serial.description.bodies) == pytest.approx(
        sum(body.mass for body in both.description.bodies)
    )


def test_a_linkage_leaves_its_mass_where_it_is_at_home() -> None:
    """Also where its bodies have moved from where the file has them; gravity feels it there."""
    arm = robot("planar_3r")
    both = arm.with_robot(robots.ankle(), "a_", "bar_3")
    home = pl.assemble(both, {"a_pitch": 0.3, "a_roll": -0.2})
    ranges = {"a_pitch": (0.2, 0.4), "a_roll": (-0.3, -0.1)}
    serial = pl.serial(both, ["a_pitch", "a_roll"], ranges=ranges, start=home).robot
    q = pl.assemble(serial, {"a_pitch": 0.3, "a_roll": -0.2})
    before, after = (
        pin.centerOfMass(x.model, x.model.createData(), at) for x, at in ((both, home), (serial, q))
    )
    close(after, before, 1e-12)
    at, whole = ([x.coordinates(name).v.start for name in arm.joints] for x in (serial, both))
    close(mass(serial, q)[np.ix_(at, at)], mass(both, home)[np.ix_(whole, whole)], 1e-9)


def test_values_stay_as_they_are(ankle: SerialTwin) -> None:
    before = pickle.dumps(ankle)
    table = str(ankle.table(3))
    assert "d motor / d joint" in table and "pitch" in str(ankle) and "left_motor" in str(ankle)
    assert pickle.dumps(ankle) == before
    again = pickle.loads(before)
    np.testing.assert_array_equal(again.at_joints([0.1, 0.1]).q, ankle.at_joints([0.1, 0.1]).q)


def test_what_cannot_be_a_twin() -> None:
    machine, gripper = robots.ankle(), robots.gripper()
    for joints, options, message in (
        (["pitch"], {}, "do not determine each other: 2 and 1 of them move independently"),
        (["pitch", "roll"], {"motors": ["left_motor"]}, "do not determine each other: 1 and 2"),
        (["pitch", "roll"], {"margin": 1.5}, "the margin is 1.5; it lies between 0 and 1"),
        (["pitch", "roll"], {"ranges": {"yaw": (0, 1)}}, "'yaw' is none of the joints"),
        (["pitch", "roll"], {"ranges": {"roll": (1, 0)}}, "joint 'roll' has no range"),
        (["pitch", "left_knee"], {}, "joint 'left_knee' has several coordinates"),
        (["pitch", "left_heel"], {}, "joint 'left_heel' closes a loop"),
        (["pitch", "roll", "left_motor"], {}, "joints 'left_motor' follow several others"),
    ):
        with pytest.raises(pl.BadValue, match=message):
            pl.serial(machine, joints, **options)
    with pytest.raises(pl.BadValue, match="no loop of robot 'planar_3r' moves joint 'joint_1'"):
        pl.serial(robot("planar_3r"), ["joint_1"])
    with pytest.raises(pl.BadValue, match="'left_tip' is carried by 'left_bar', which belongs"):
        pl.serial(gripper, ["left_tip"])
    with pytest.raises(pl.UnknownName):
        pl.serial(machine, ["pich", "roll"])
