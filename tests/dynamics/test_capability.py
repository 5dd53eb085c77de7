"""Inertia at drives, forces and speeds of tools: against states, linear programs, virtual work."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import scipy

import pinloop as pl
from pinloop.model.mechanism import build as build_robot

from .. import mechanisms as m
from ..screw_tables import Array, build
from ..states import allowed, assembled, close, moving, robot

linprog: Any = scipy.optimize.linprog


def jacobian(machine: pl.Mechanism, q: Array, frame: str) -> Array:
    """Of the velocity of a frame's origin in the world's axes."""
    data, index = machine.model.createData(), machine.frame_id(frame)
    kind = pin.LOCAL_WORLD_ALIGNED
    return np.array(pin.computeFrameJacobian(machine.model, data, q, index, kind))[:3]


def columns(machine: pl.Mechanism, joints: tuple[str, ...]) -> list[int]:
    return [machine.coordinates(joint).v.start for joint in joints]


# -- inertia --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["palletizer", "fivebar", "delta", "stewart", "six_axis_arm"])
def test_inertia_is_what_torques_have_to_accelerate(name: str) -> None:
    """From rest, by the equations of motion: what each unit torque adds to the accelerations."""
    machine, rest = robot(name), np.zeros(robot(name).nv)
    q = assembled(machine, 2)
    inertia = pl.reflected_inertia(machine, q)
    at = columns(machine, machine.actuated)

    def acceleration(*forces: Any) -> Array:
        return pl.EquationsOfMotion(machine, forces=forces).acceleration(0.0, q, rest)[at]

    still = acceleration()
    response = np.array([acceleration(pl.Torque(x, 1.0)) - still for x in machine.actuated]).T
    close(response @ inertia.matrix, np.eye(len(at)), 1e-7)
    assert inertia.independent == len(at)
    np.testing.assert_allclose(inertia.matrix, inertia.matrix.T, atol=1e-12)


@pytest.mark.parametrize("name", ["palletizer", "fivebar", "stewart", "prrr3"])
def test_twice_the_kinetic_energy(name: str) -> None:
    machine = robot(name)
    for seed in (1, 2, 3):
        q, v = moving(machine, seed)
        twice = 2.0 * pl.EquationsOfMotion(machine).energies(0.0, q, v)[0]
        w = v[columns(machine, machine.actuated)]
        J = pl.Constraints(machine).jacobian(q)
        if allowed(J).shape[1] == len(w):  # no motion but that of the drives
            assert w @ pl.reflected_inertia(machine, q).matrix @ w == pytest.approx(twice, rel=1e-8)


def test_more_drives_than_degrees_of_freedom() -> None:
    machine, joints = robot("planar-3-RRR"), ("a0", "a1", "a2", "b0", "b1")
    q, v = moving(machine, 4)
    inertia = pl.reflected_inertia(machine, q, actuated=joints)
    w = v[columns(machine, joints)]
    twice = 2.0 * pl.EquationsOfMotion(machine).energies(0.0, q, v)[0]
    assert w @ inertia.matrix @ w == pytest.approx(twice, rel=1e-8)
    assert inertia.independent == 3 and len(inertia.matrix) == 5


def test_rotors_come_through_gears() -> None:
    bare = robot("palletizer")
    drives = tuple(
        replace(drive, rotor_inertia=1e-3 * (k + 1)) for k, drive in enumerate(bare.drives.values())
    )
    geared = build_robot(replace(bare.description, drives=drives), kinematics_only=True)
    q = pl.assemble(bare, {"shoulder": 0.3})
    load, whole = (pl.reflected_inertia(x, q) for x in (bare, geared))
    by_joint = {drive.joint: drive for drive in drives}
    reductions = np.array([by_joint[name].reduction for name in whole.drives])
    rotors = np.array([by_joint[name].rotor_inertia or 0.0 for name in whole.drives])
    close(whole.matrix, load.matrix + np.diag(reductions**2 * rotors), 1e-9, size=200.0)
    np.testing.assert_allclose(whole.rotors, reductions**2 * rotors)
    np.testing.assert_allclose(whole.at_motors.diagonal(), rotors * (1 + whole.load_ratio))
    assert np.isinf(load.load_ratio).all() and (np.abs(whole.coupling) <= 1 + 1e-12).all()
    bar = robot("five-bar")
    plain = pl.reflected_inertia(bar, bar.neutral, actuated=["m1", "close"])
    np.testing.assert_array_equal(plain.at_motors, plain.matrix)  # no gear is known
    assert "coupling" in str(whole) and "shoulder" in whole._repr_html_()


def test_inertia_of_a_locked_robot_and_without_end() -> None:
    """The slide of a slider-crank has a dead point, where it cannot move."""
    machine = build(m.slider_crank())
    straight = machine.configuration(m.slider_crank_q(0.0))
    with pytest.raises(pl.BadValue, match="cannot move 'slide' in this pose"):
        pl.reflected_inertia(machine, straight, actuated=["slide"])
    arm = robot("palletizer")
    q = pl.assemble(arm, {"shoulder": 0.3})
    one = pl.reflected_inertia(arm, q, actuated=["elbow"], locks=["shoulder", "base_yaw", "wrist"])
    v = pl.consistent_velocity(arm, q, {"elbow": 1.0, "shoulder": 0, "base_yaw": 0, "wrist": 0})
    twice = 2.0 * pl.EquationsOfMotion(arm).energies(0.0, q, v)[0]
    assert one.matrix[0, 0] == pytest.approx(twice, rel=1e-8)


# -- forces and speeds -----------------------------------------------------------------------------


def by_linear_programs(
    drives: pl.DriveTorques, q: Array, tool: str, direction: Array, limits: tuple[Array, Array]
) -> tuple[float, float]:
    """Greatest force and speed with reactions, and all velocities, as unknowns."""
    machine, (torque, speed) = drives.robot, limits
    J, T = pl.Constraints(machine).jacobian(q), jacobian(machine, q, tool)
    at = columns(machine, drives.axes.joints)
    k, rows = len(at), len(J)
    weight = pin.computeGeneralizedGravity(machine.model, machine.model.createData(), q)
    goal = np.zeros(k + rows + 1)
    goal[-1] = -1.0
    balance = np.column_stack([np.eye(machine.nv)[:, at], J.T, -T.T @ direction])
    ends = [*zip(-torque, torque, strict=True), *[(None, None)] * rows, (0, None)]
    force = linprog(goal, A_eq=balance, b_eq=weight, bounds=ends)
    motion = np.block([[J, np.zeros((rows, 1))], [T, -direction[:, None]]])
    ends = [(None, None)] * machine.nv + [(0, None)]
    for column, limit in zip(at, speed, strict=True):
        ends[column] = (-limit, limit)
    goal = np.eye(machine.nv + 1)[-1]
    fast = linprog(-goal, A_eq=motion, b_eq=np.zeros(rows + 3), bounds=ends)
    return (
        float(force.x[-1]) if force.status == 0 else (np.inf if force.status == 3 else np.nan),
        float(fast.x[-1]) if fast.status == 0 else np.inf,
    )


@pytest.mark.parametrize(
    ("name", "tool", "joints"),
    [
        ("palletizer", "tool0", None),
        ("delta", "platform", None),
        ("stewart", "platform", None),
        ("planar-3-RRR", "platform", ("a0", "a1", "a2", "b0", "b1")),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_forces_and_speeds_by_linear_programs(
    name: str, tool: str, joints: tuple[str, ...] | None, seed: int
) -> None:
    machine, rng = robot(name), np.random.default_rng(seed)
    q, driven = assembled(machine, seed), joints or machine.actuated
    k, rest = len(driven), np.zeros(machine.nv)
    hold = np.abs(pl.DriveTorques(machine, actuated=driven)(q, rest, rest).torque)
    torque, speed = hold + rng.uniform(1.0, 500.0, k), rng.uniform(0.1, 3.0, k)
    named = [dict(zip(driven, x.tolist(), strict=True)) for x in (torque, speed)]
    drives = pl.DriveTorques(machine, actuated=driven, limits=named[0])
    directions = rng.normal(size=(5, 3))
    if name == "planar-3-RRR":
        directions[:, 1] = 0.0  # it lies in this plane
    can = pl.tool_capability(drives, tool, q, directions=directions, speeds=named[1])
    for d, force, fast in zip(can.directions, can.force[0], can.speed[0], strict=True):
        expected = by_linear_programs(drives, q, tool, d, (torque, speed))
        assert (force, fast) == pytest.approx(expected, rel=1e-6)
        assert fast > 0


def test_five_bar_by_its_jacobian() -> None:
    """Two drives, two directions: a parallelogram of forces and one of speeds, by differences."""
    machine = build(m.five_bar())
    tip = np.array([0.5, 0.0, 1.1])
    q = pl.assemble(machine, {"m1": 0.1, "m2": -0.1})
    start = machine.placement(machine.neutral, "l2").actInv(tip)
    h = 1e-5

    def place(m1: float, m2: float) -> Array:
        near = pl.assemble(machine, q, fixed={"m1": m1, "m2": m2})
        return np.asarray(machine.placement(near, "l2").act(start)[[0, 2]])

    a, b = 0.1, -0.1
    slopes = np.column_stack([
        (place(a + h, b) - place(a - h, b)) / (2 * h), (place(a, b + h) - place(a, b - h)) / (2 * h)
    ])  # fmt: skip
    rest = np.zeros(machine.nv)
    hold = pl.DriveTorques(machine, actuated=["m1", "m2"])(q, rest, rest).torque
    limits, speeds = {"m1": 30.0, "m2": 20.0}, {"m1": 2.0, "m2": 3.0}
    drives = pl.DriveTorques(machine, actuated=["m1", "m2"], limits=limits)
    angle = 0.7
    d = np.array([np.cos(angle), 0.0, np.sin(angle)])
    can = pl.tool_capability(drives, ("l2", start), q, directions=[d, -d], speeds=speeds)
    torque = slopes.T @ d[[0, 2]]  # per newton, by virtual work
    for sign, force in zip((1.0, -1.0), can.force[0], strict=True):
        room = (np.sign(sign * torque) * [30.0, 20.0] - hold) / (sign * torque)
        assert force == pytest.approx(room.min(), rel=1e-6)
    rates = np.linalg.solve(slopes, d[[0, 2]])
    expected = (np.array([2.0, 3.0]) / np.abs(rates)).min()
    np.testing.assert_allclose(can.speed[0], expected, rtol=1e-6)


def test_power_of_one_degree_of_freedom() -> None:
    """Without weight, what goes in comes out: force times speed is torque times rate."""
    table = {**m.slider_crank(), "gravity": (0, 0, 0)}
    machine = build(table)
    q = machine.configuration(m.slider_crank_q(1.0))
    drives = pl.DriveTorques(machine, actuated=["crank"], limits={"crank": 7.0})
    can = pl.tool_capability(drives, "piston", q, speeds={"crank": 3.0})
    power = can.of("force", "+x") * can.of("speed", "+x")
    assert power == pytest.approx(21.0, rel=1e-9)
    # Across, the slide takes all and moves nothing.
    assert can.of("force", "+y")[0] == np.inf and can.of("speed", "+y")[0] == 0.0


def test_at_the_end_of_the_reach() -> None:
    """At its dead point a slider-crank pushes without end, and does not move."""
    machine = build({**m.slider_crank(), "gravity": (0, 0, 0)})
    drives = pl.DriveTorques(machine, actuated=["crank"], limits={"crank": 7.0})
    near = machine.configuration(m.slider_crank_q(1e-4))
    can = pl.tool_capability(drives, "piston", near, speeds={"crank": 3.0})
    assert can.of("force", "+x")[0] > 1e5 and can.of("speed", "+x")[0] < 1e-3


def test_what_the_greatest_force_asks_of_the_drives() -> None:
    """Torques for that force are within limits; for a little more they are not."""
    machine, rest = robot("palletizer"), np.zeros(robot("palletizer").nv)
    q = pl.assemble(machine, {"shoulder": 0.5, "elbow": 0.2})
    can = pl.tool_capability(machine, "tool0", q)
    for name, d, force in zip(can.names, can.directions, can.force[0], strict=True):
        for share, feasible in ((0.999, True), (1.001, False)):
            push = pl.forces.PointForce("tool0", -share * force * d)
            load = pl.DriveTorques(machine, forces=[push])(q, rest, rest)
            assert load.feasible == feasible, name


# -- over a workspace ------------------------------------------------------------------------------


def test_reachable_poses_are_closed_within_limits_and_in_order() -> None:
    machine = robot("palletizer")
    grid = {"shoulder": np.linspace(-0.9, 1.7, 7), "elbow": np.linspace(-0.6, 1.6, 5)}
    poses = pl.reachable_poses(machine, grid)
    at = [machine.coordinates(name).q.start for name in grid]
    J = pl.Constraints(machine)
    assert 8 < len(poses) < 30
    low, high = machine.model.lowerPositionLimit, machine.model.upperPositionLimit
    assert ((poses >= low - 1e-9) & (poses <= high + 1e-9)).all()
    assert max(float(np.abs(J.residual(q)).max()) for q in poses) < 1e-9
    places = [tuple(q[at].tolist()) for q in poses]
    assert places == sorted(places) and set(poses[:, at[0]]) <= set(grid["shoulder"])
    arm = robot("six_axis_arm")
    first = arm.joints[1]
    end = float(arm.model.upperPositionLimit[1])
    assert len(pl.reachable_poses(arm, {first: [0.0, 0.5 * end, 1.1 * end]})) == 2
    # Each one by itself: what is left out can be closed by no pose within the limits.
    alone = set()
    for a in grid["shoulder"]:
        for b in grid["elbow"]:
            try:
                pl.assemble(machine, fixed={"shoulder": a, "elbow": b})
            except (pl.LoopNotClosed, pl.BadValue):
                continue
            alone.add((float(a), float(b)))
    assert set(places) == alone


def test_coarse_grids_stay_on_the_branch_of_fine_ones() -> None:
    machine = robot("five-bar")
    coarse, fine = (
        pl.reachable_poses(machine, {x: np.linspace(-1.6, 1.6, n) for x in ("m1", "m2")}, q)
        for n, q in ((3, machine.neutral), (17, machine.neutral))
    )
    assert len(coarse) == 9
    for q in coarse:
        assert np.abs(fine - q).max(axis=1).min() < 1e-8


def test_a_table_and_a_map() -> None:
    machine = robot("palletizer")
    poses = pl.reachable_poses(machine, {"shoulder": [0.0, 0.4], "elbow": [0.0, 0.3]})
    can = pl.tool_capability(machine, "tool0", poses)
    assert can.force.shape == can.speed.shape == (4, 6) and can.held.all()
    assert "+z" in str(can) and "4 poses" in str(can)
    np.testing.assert_array_equal(can.of("force"), can.force.min(axis=1))
    np.testing.assert_allclose(can.places[0], machine.placement(poses[0], "tool0").translation)
    figure = can.plot("speed", "+z")
    assert figure.get_axes()[0].get_xlabel() == "x [m]"
    assert [text.get_text() for text in figure.texts] or figure.get_suptitle()
    before = pickle.dumps(can)
    assert pickle.dumps(can) == before
    with pytest.raises(pl.BadValue, match="direction 'up'"):
        can.of("force", "up")
    with pytest.raises(pl.BadValue, match="give two axes"):
        can.plot(plane="x")
    with pytest.raises(pl.BadValue, match="'force' or 'speed'"):
        can.of("power")  # type: ignore[arg-type]


def test_poses_that_cannot_be_held() -> None:
    machine = robot("palletizer")
    q = pl.assemble(machine, {"shoulder": 0.8})
    can = pl.tool_capability(pl.DriveTorques(machine, limits={"shoulder": 1.0}), "tool0", q)
    assert np.isnan(can.force).all() and not can.held.any() and "cannot hold" in str(can)
    assert (can.speed > 0).all()


def test_a_point_that_moves_while_drives_stand() -> None:
    machine = robot("five-bar")
    drives = pl.DriveTorques(machine, actuated=["m1", "m2"])
    loose = pl.DriveTorques(machine, actuated=["m1"], locks=[])
    q = machine.neutral
    assert np.isfinite(pl.tool_capability(drives, "l2", q, speeds={"m1": 1, "m2": 1}).speed).all()
    with pytest.raises(pl.BadValue, match="do not determine"):
        pl.tool_capability(loose, "l2", q)
    floating = build({**m.five_bar(), "gravity": (0, 0, 0)})
    loose = pl.DriveTorques(floating, actuated=["m1"])
    can = pl.tool_capability(loose, ("l2", (0.1, 0.2, 0.3)), q, speeds={"m1": 1.0})
    assert np.isnan(can.speed).all()
