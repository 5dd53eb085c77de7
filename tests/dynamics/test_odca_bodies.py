"""Tests of what is said of single bodies and joints: accelerations, wrenches.

Oracles: Newton's and Euler's laws of point masses, Pinocchio's kinematics, multipliers of loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Joint
from pinloop.model.pairs import MotionGroup
from pinloop.simulation.modes import ModalSystem

from .. import linkages as ll
from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array, mass_points
from ..states import SHIPPED, SMALL, body_motion, close, moving, regularized, robot
from .odca_equations import every_block, odca, push

every_small_robot = pytest.mark.parametrize("name", [*SMALL])


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_accelerations_of_bodies_are_those_of_the_joints(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 2)
    equations = odca(machine, forces=[push(machine)])
    found = equations.body_motion(0.2, q, v).accelerations
    expected = body_motion(machine, q, v, equations.acceleration(0.2, q, v))
    size = max(1.0, *(float(np.abs(one[2].vector).max()) for one in expected.values()))
    assert list(found) == list(machine.bodies)
    for body, acceleration in found.items():
        close(acceleration.vector, expected[body][2].vector, 1e-9, size)


def needed(machine: pl.Mechanism, q: Array, v: Array, a: Array) -> dict[str, Array]:
    """Wrench that each body needs from its joints, at the world's origin, force first.

    Sums of ``m (x'' - g)`` of its point masses, accelerations by second differences.
    """
    h = 2e-3

    def points(t: float) -> dict[str, Array]:
        here = hand.placements(machine, machine.integrate(q, t * v + 0.5 * t * t * a))
        return {b: mass_points(b)[1] @ T[:3, :3].T + T[:3, 3] for b, T in here.items()}

    at = {k: points(k * h) for k in (-2, -1, 0, 1, 2)}
    found = {}
    for body in machine.bodies:
        x = at[0][body]
        second = (16 * (at[1][body] + at[-1][body]) - at[2][body] - at[-2][body] - 30 * x) / 12
        force = mass_points(body)[0][:, None] * (second / h**2 - machine.gravity)
        found[body] = np.concatenate([force.sum(axis=0), np.cross(x, force).sum(axis=0)])
    return found


def seat(machine: pl.Mechanism, q: Array, joint: Joint) -> Any:
    """Placement in the world of a joint's frame on its child."""
    return machine.placement(q, joint.child) * joint.frame_child


@every_small_robot
@pytest.mark.parametrize(
    ("reduced", "block"),
    [(False, 64), (True, 64), (False, 1), (True, 3), (False, 0), (True, 0)],
    ids=["all rows", "regularized", "all rows, bodies alone", "regularized, small blocks",
         "all rows, by matrices", "regularized, by matrices"],
)  # fmt: skip
def test_wrenches_of_all_joints_obey_newton_and_euler(name: str, reduced: bool, block: int) -> None:
    machine = regularized(name) if reduced else robot(name)
    assert_newton_and_euler(machine, *moving(robot(name), 3, speed=1.0), block)


def test_wrench_of_a_loop_joint_that_regularization_turned_over() -> None:
    plain = tables.build(ll.turned_over(m.sarrus(), "b3"))
    machine = pl.regularize(plain)
    declared = next(one for one in machine.description.joints if one.name == "b3")
    assert next(one for one in machine.loops if one.name == "b3").body_b == declared.parent
    assert_newton_and_euler(machine, *moving(plain, 3, speed=1.0))


@every_block
def test_wrench_of_a_joint_that_is_fixed_to_something_that_spins(block: int) -> None:
    machine = tables.build(
        tables.table(
            "arm with a flange",
            tables.joint("turn", "revolute", GROUND, "arm", [0, 0, 0], [0.3, 0.2, 1.0]),
            tables.joint("flange", "fixed", "arm", "tool", [0.5, 0, 0]),
            tables.joint("wrist", "spherical", "tool", "hand", [0.7, 0.1, 0]),
        )
    )
    rng = np.random.default_rng(12)
    for _ in range(2):
        q = hand.random_q(machine, rng)
        assert_newton_and_euler(machine, q, 2 * rng.normal(size=machine.nv), block)


def assert_newton_and_euler(machine: pl.Mechanism, q: Array, v: Array, block: int = 64) -> None:
    # Couplings act on several joints at once: their torques are in the joints too.
    forces = [push(machine)]
    by_matrices = pl.EquationsOfMotion(machine, forces=forces)
    equations = odca(machine, block=block, forces=forces) if block else by_matrices
    wrenches = equations.body_motion(0.0, q, v).wrenches
    joints = {joint.name: joint for joint in machine.description.joints}
    assert set(wrenches) == set(joints)
    left = needed(machine, q, v, equations.acceleration(0.0, q, v))
    size = max(1.0, *(float(np.abs(wrench).max()) for wrench in left.values()))
    for joint_name, joint in joints.items():
        world = seat(machine, q, joint).act(wrenches[joint_name]).vector
        for body, sign in ((joint.child, -1.0), (joint.parent, 1.0)):
            if body in left:
                left[body] = left[body] + sign * world
    for wrench in left.values():
        close(wrench, np.zeros(6), 1e-6, size)


@every_small_robot
@pytest.mark.parametrize("formulation", [pl.ODCA(), pl.Automatic(), pl.Projected()])
def test_joints_that_nobody_drives_carry_nothing_along_their_motions(
    name: str, formulation: Any
) -> None:
    machine = robot(name)
    driven = {joint for coupling in machine.couplings for joint in coupling.joints}
    q, v = moving(machine, 4)
    equations = pl.EquationsOfMotion(machine, formulation=formulation)
    wrenches = equations.body_motion(0.0, q, v).wrenches
    for joint in machine.description.joints:
        if isinstance(joint.pair, MotionGroup) and joint.name not in driven:
            wrench = wrenches[joint.name].vector
            along = joint.pair.free.T @ wrench
            close(along, np.zeros(len(along)), 1e-9, max(1.0, float(np.abs(wrench).max())))


@pytest.mark.parametrize("name", ["delta", "palletizer", "stewart", "rssr"])
def test_wrenches_of_loop_joints_are_those_of_the_multipliers(name: str) -> None:
    machine = regularized(name)
    q, v = moving(robot(name), 5)
    equations = odca(machine)
    motion, wrenches = equations.motion(0.0, q, v), equations.body_motion(0.0, q, v).wrenches
    compared = 0
    for loop in machine.loops:
        rows = equations.rows.loops.rows_of[loop.name]
        if motion.determined[rows].all():
            expected = equations.loop_wrench(q, loop.name, motion.multipliers[rows])
            close(wrenches[loop.name].vector, expected, 1e-8)
            compared += 1
    assert compared > 0


@every_block
def test_hanging_weight_pulls_at_its_joint(block: int) -> None:
    machine = robot("double-pendulum")
    joints = {joint.name: joint for joint in machine.description.joints}
    locks = ModalSystem(machine, formulation=pl.ODCA(block)).equations(
        pl.Mode(list(machine.joints))
    )
    rest = np.zeros(machine.nv)
    wrenches = locks.body_motion(0.0, machine.neutral, rest).wrenches
    first = machine.joints[0]
    world = seat(machine, machine.neutral, joints[first]).rotation @ wrenches[first].linear
    weight = sum(body.mass for body in machine.description.bodies) * 9.81
    np.testing.assert_allclose(world, [0, 0, weight], rtol=1e-12, atol=1e-9)


def test_formulations_on_matrices_have_no_sweeps() -> None:
    equations = pl.EquationsOfMotion(robot("four-bar"))
    q, v = moving(robot("four-bar"), 1)
    with pytest.raises(pl.BadValue, match=r"pl\.ODCA"):
        equations.closed(0.0, q, v)
