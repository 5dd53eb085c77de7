"""Every pair with everything that acts on joints: in the tree, cut, and in absolute coordinates.

Oracles: the same robot cut elsewhere; powers and stored energies against differences of the
placement along the motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.relative_motion import JointMotion
from pinloop.dynamics.derivatives import derivatives_at
from pinloop.dynamics.forces import Force
from pinloop.model.description import GROUND
from pinloop.model.pairs import PAIR_NAMES, make_pair
from pinloop.model.transformations import carried_state

from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import body_motion, close
from .test_derivatives import difference

PITCH: dict[str, dict[str, float]] = {"helical": {"pitch": 0.3}, "rod": {"length": 0.5}}
TREE = [name for name in PAIR_NAMES if make_pair(name, **PITCH.get(name, {})).carries_bodies]
MOVING = [name for name in TREE if name != "fixed"]
POINTS = ["point_on_line", "point_on_plane"]
COORDINATES = {
    "revolute": "wz", "prismatic": "vz", "helical": "wz", "cylindrical": "vz wz",
    "universal": "wz wx", "planar": "wz", "planar_translation": "vx vy",
    "spatial_translation": "vx vy vz", "schoenflies": "vx vy vz wz", "spherical": "", "free": "",
    "point_on_line": "vz", "point_on_plane": "vx vy",
}  # fmt: skip
"""Axes with a coordinate."""
PLACES = "cut", "absolute", "SO3xR3"
AXES = [(pair, axis) for pair in [*MOVING, *POINTS] for axis in COORDINATES[pair].split()]


def machine(pair: str, cut: bool) -> pl.Mechanism:
    """An arm that swings, and a body on it by a pair; by a free joint, too, if that is cut."""
    more = PITCH.get(pair, {}) if pair != "rod" else {}
    where = {} if pair in ("free", "spatial_translation") else {"axis": [0.2, 0.3, 1.0]}
    if pair == "universal":
        where = {"axis": [0.0, 0.0, 1.0], "axis2": [1.0, 0.0, 0.0]}
    if pair == "spherical":
        where = {}
    if pair == "rod":
        where = {"point2": [0.6, 0.5, 0.5]}
    held = tables.joint("held", pair, "arm", "body", [0.3, 0.1, 0.5]) | where | more
    joints = [tables.joint("swing", "revolute", GROUND, "arm", [0, 0, 1], [0, 1, 0.2]), held]
    if cut:
        joints[1]["cut"] = True
        joints.append(tables.joint("loose", "free", GROUND, "body", [0, 0, 0]) | {"cut": False})
    return tables.build(tables.table("held", *joints))


def placed(pair: str, place: str) -> pl.Mechanism:
    if place in ("cut", "tree"):
        return machine(pair, place == "cut")
    return machine(pair, pair in POINTS).absolute("SE3" if place == "absolute" else "SO3xR3")


def start(pair: str, seed: int = 3) -> tuple[pl.Mechanism, Array, Array]:
    """The robot with its joint in the tree, if it can be there, at a random assembled state."""
    robot, rng = machine(pair, pair in POINTS), np.random.default_rng(seed)
    q = robot.integrate(robot.neutral, 0.5 * rng.normal(size=robot.nv))
    if pair in POINTS:
        q = pl.assemble(robot, q)
    v = rng.normal(size=robot.nv)
    if pair in POINTS:
        J = pl.Constraints(robot).jacobian(q)
        v -= np.linalg.pinv(J) @ (J @ v)
    return robot, q, v


def same(pair: str, place: str, forces: list[Force], **options: object) -> None:
    """Bodies accelerate alike; powers and energies agree."""
    robot, q, v = start(pair)
    there = placed(pair, place)
    other, rates = carried_state(robot.model, q, v, there.model)
    ours, its = (pl.EquationsOfMotion(x, forces=forces, **options) for x in (robot, there))  # type: ignore[arg-type]
    expected = body_motion(robot, q, v, ours.acceleration(0.2, q, v))
    actual = body_motion(there, other, rates, its.acceleration(0.2, other, rates))
    for body in ("arm", "body"):
        close(actual[body][2].vector, expected[body][2].vector, 1e-8, 10.0)
    for here, elsewhere in (
        (ours.powers(0.2, q, v), its.powers(0.2, other, rates)),
        (ours.energies(0.2, q, v)[2], its.energies(0.2, other, rates)[2]),
    ):
        assert elsewhere == pytest.approx(here, rel=1e-9, abs=1e-12)


MEASURED: dict[str, Callable[[str], Force]] = {
    "torque": lambda axis: pl.Torque("held", lambda t: 3.0 + t, axis),
    "spring": lambda axis: pl.forces.JointSpring("held", 40.0, 0.3, axis),
    "drive": lambda axis: pl.PD("held", 30.0, 2.0, lambda t: 0.4 + t, 1.0, axis),
}


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize(("pair", "axis"), AXES)
@pytest.mark.parametrize("place", PLACES)
def test_forces_along_axes(pair: str, axis: str, place: str, kind: str) -> None:
    force = MEASURED[kind](axis)
    if pair in POINTS and place == "cut":  # where there is nothing to compare with
        power_and_energy(pair, axis, force)
    else:
        same(pair, place, [force])


def power_and_energy(pair: str, axis: str, force: Force) -> None:
    """Power is torque times rate, stored energy falls by the power, both by differences."""
    robot, q, v = start(pair)
    equations = pl.EquationsOfMotion(robot, forces=[force])
    power = float(equations.force(0.2, q, v) @ v)
    if isinstance(force, pl.forces.JointSpring):
        stored = [
            sum(equations.energies(0.2, robot.integrate(q, s * v), v)[2].values())
            for s in (-1e-4, 1e-4)
        ]
        close(np.array(-power), np.array((stored[1] - stored[0]) / 2e-4), 1e-6)
    along = "xyz".index(axis[1])
    ahead, behind, here = (
        float(robot.placement(robot.integrate(q, s * v), "held/A").actInv(
            robot.placement(robot.integrate(q, s * v), "held/B")).translation[along])
        for s in (1e-4, -1e-4, 0.0)
    )  # fmt: skip
    rate = (ahead - behind) / 2e-4
    effort = {
        "Torque": 3.2, "JointSpring": -40.0 * (here - 0.3),
        "PD": 30.0 * (0.6 - here) + 2.0 * (1.0 - rate),
    }[type(force).__name__]  # fmt: skip
    close(np.array(power), np.array(effort * rate), 1e-6)


@pytest.mark.parametrize("pair", [*MOVING, *POINTS])
@pytest.mark.parametrize("place", PLACES)
def test_torques_about_axes_without_coordinate_and_losses(pair: str, place: str) -> None:
    robot = machine(pair, pair in POINTS)
    axes = JointMotion(robot, "held").axes
    same(pair, place, [pl.Torque("held", 2.0 + k, axis) for k, axis in enumerate(axes)])
    same(pair, place, [pl.forces.JointDamping({"held": 0.7})])
    same(pair, place, [pl.forces.JointFriction(0.3, {"held": 0.7})])


@pytest.mark.parametrize("pair", [*MOVING, *POINTS])
@pytest.mark.parametrize("place", PLACES)
def test_locks_of_every_axis(pair: str, place: str) -> None:
    robot, q, v = start(pair)
    axes = JointMotion(robot, "held").axes
    there = placed(pair, place)
    other, rates = carried_state(robot.model, q, v, there.model)
    for held in [(axis,) for axis in axes] + [()]:
        lock = pl.simulation.Locked("held", held)
        mode = pl.Mode([lock])
        ends = []
        for x, state in ((robot, (q, v)), (there, (other, rates))):
            change = pl.transition(x, *state, pl.Mode(), mode)
            after = body_motion(x, state[0], change.v_plus)
            ends.append((change.energy_loss, after["body"][1].vector, after["arm"][1].vector))
        assert ends[0][0] > 1e-6
        for here, elsewhere in zip(*ends, strict=True):
            close(np.array(elsewhere), np.array(here), 1e-8)


def leaving(at: float, rate: float, t: float) -> tuple[float, float, float]:
    """Motion from a coordinate and a rate at a constant acceleration."""
    return at + rate * t + 4.0 * t * t, rate + 8.0 * t, 8.0


@pytest.mark.parametrize(("pair", "axis"), AXES)
@pytest.mark.parametrize("place", PLACES)
def test_prescribed_axes(pair: str, axis: str, place: str) -> None:
    """Where they shall be after some time, with the work that the rest of the robot takes."""
    robot, q, v = start(pair)
    there = placed(pair, place)
    ends = []
    for x, state in (
        (robot, (q, v)),
        (there, carried_state(robot.model, q, v, there.model)),
    ):
        motion = JointMotion(x, "held")
        k = motion.axis(axis, "test", measured=True)
        with x.workspace() as data:
            pin.forwardKinematics(x.model, data, *state, np.zeros(x.nv))
            pin.computeJointJacobians(x.model, data)
            pin.updateFramePlacements(x.model, data)
            at, rate = motion.position(state[0], data, 0.0, k), motion.speeds(data, state[1])[k]
        row = pl.constraints.Prescribed("held", partial(leaving, at, float(rate)), axis)
        run = pl.simulate(x, *state, until=0.2, rows=[row], losses=False,
                          method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10))  # fmt: skip
        with x.workspace() as data:
            pin.framesForwardKinematics(x.model, data, run.q[-1])
            end = motion.position(run.q[-1], data, at, k)
        assert math.remainder(end - at - 0.2 * rate - 0.16, 2 * math.pi) == pytest.approx(
            0, abs=1e-7
        )
        assert np.abs(run.energy().error).max() < 1e-6 * np.abs(run.energy().kinetic).max()
        ends.append(body_motion(x, run.q[-1], run.v[-1])["body"])
    close(ends[1][0].homogeneous, ends[0][0].homogeneous, 1e-7)
    close(ends[1][1].vector, ends[0][1].vector, 1e-6)


@pytest.mark.parametrize(("pair", "axis"), AXES)
@pytest.mark.parametrize("place", ["tree", "absolute"])
def test_slopes_of_forces_along_axes(pair: str, axis: str, place: str) -> None:
    robot, q, v = start(pair)
    there = robot if place == "tree" else placed(pair, place)
    other, rates = carried_state(robot.model, q, v, there.model)
    forces = [MEASURED[kind](axis) for kind in MEASURED]
    equations = pl.EquationsOfMotion(there, forces=forces).around(0.0, other)
    found = derivatives_at(equations, 0.2, other, rates, np.zeros(there.nv))
    for name, moved in (
        ("ddq_dq", lambda s: equations.acceleration(0.2, there.integrate(other, s), rates)),
        ("ddq_dv", lambda s: equations.acceleration(0.2, other, rates + s)),
    ):
        close(getattr(found, name), difference(moved, there.nv, 2e-3).T, 1e-6)


@pytest.mark.parametrize("place", ["cut", "absolute"])
def test_axes_that_are_not_there_are_refused_by_name(place: str) -> None:
    for pair, force, message in (
        (
            "spherical",
            pl.forces.JointSpring("held", 1.0, 0.0, "wx"),
            "which has none; act by pl.forces.Torq",
        ),
        (
            "spherical",
            pl.Torque("held", 1.0),
            "Torque needs an axis of joint 'held', .* wx, wy, wz",
        ),
        ("cylindrical", pl.PD("held", 1.0, 1.0, axis="vx"), "which has vz, wz; give axis='wz'"),
        ("planar", pl.forces.JointSpring("held", 1.0, 0.0, "vx"), "which has wz; give axis='wz'"),
        ("point_on_line", pl.forces.JointSpring("held", 1.0, 0.0, "wx"), "has vz; give axis='vz'"),
        ("rod", pl.Torque("held", 1.0), "a rod pair has no axes of its own; .*pl.forces.Spring"),
    ):
        robot = machine(pair, True)
        with pytest.raises(pl.BadValue, match=message):
            pl.EquationsOfMotion(robot if place == "cut" else robot.absolute(), forces=[force])
