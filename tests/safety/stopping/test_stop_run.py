"""Tests of `StopResult.run`: the trajectory knows what brakes, friction, gears and drives exert."""

from __future__ import annotations

import inspect

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from ...screw_tables import Array
from ...states import URDF
from ...states import robot as loaded
from .robots_to_stop import drawn_stop, stop, wild_stop


def palletizer_stop(category: int = 0) -> pl.StopResult:
    robot = loaded("palletizer")
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 1.0, "elbow": 0.5})
    by = URDF / "palletizer.brakes.yaml"
    return pl.stop(robot, q, v, brakes=by, category=category, payload=40.0)


def balanced(result: pl.StopResult) -> None:
    """Assert that the energy balance of the run closes at every state, and moves energy at all."""
    energy = result.run.energy()
    turned_over = float(sum(np.abs(line).max() for line in energy.work.values()))
    assert turned_over > 0.5 * abs(energy.kinetic[0])
    assert np.abs(energy.error).max() < 1e-6 * max(turned_over, energy.kinetic[0])


@pytest.mark.parametrize("category", [0, 1, 2])
def test_energy_of_a_looped_robot_balances(category: int) -> None:
    balanced(palletizer_stop(category))


@pytest.mark.parametrize("seed", range(12))
def test_energy_of_random_arms_balances(seed: int) -> None:
    """Gears with losses, teeth that are hit, drives that follow, payloads, faults."""
    wild = wild_stop(seed)
    result = pl.stop(
        wild.robot, wild.q, wild.v, brakes=wild.by, payload=wild.payload, category=wild.category,
        until=0.4,
    )  # fmt: skip
    balanced(result)


def test_energy_counts_every_impact_once() -> None:
    hits = 0
    for seed in range(6):
        drawn = drawn_stop(seed, teeth=1.0)
        result = stop(drawn.robot, drawn.v, drawn.by, q=drawn.q, until=0.4)
        lost = sum(made.energy_loss for made in result.run.transitions)
        impulses = result.run.energy().work["impulses"]
        np.testing.assert_allclose(impulses[-1], -lost, rtol=1e-12)
        hits += len(result.run.transitions)
        balanced(result)
    assert hits > 10


def test_work_is_what_the_ledger_says() -> None:
    """Two integrals of different powers: per sink and joint, and of one torque over all joints."""
    result = palletizer_stop(1)
    work = result.run.energy().work["brakes, friction, drives"][-1]
    book = result.ledger
    np.testing.assert_allclose(work, book.drive_work - book.heat, rtol=1e-8)


def tree_torques(result: pl.StopResult, k: int, loops: list[str]) -> Array:
    """Torques at the tree joints at state k by Newton and Euler, loop joints cut.

    The bodies feel the wrenches that the run reports for its loop joints.
    """
    run, model = result.run, result.run.system.robot.model
    data = model.createData()
    q, v = run.q[k], run.v[k]
    a = run.equations[k].motion(run.t[k], q, v).a
    pin.framesForwardKinematics(model, data, q)
    outside = pin.StdVec_Force([pin.Force.Zero() for _ in range(model.njoints)])
    for name in loops:
        felt = run.reactions(name, f"{name}/B")
        wrench = pin.Force(felt.force[k], felt.torque[k])
        world = data.oMf[run.robot.frame_id(f"{name}/B")].act(wrench)
        for side, sign in (("B", 1.0), ("A", -1.0)):
            body = model.frames[run.robot.frame_id(f"{name}/{side}")].parentJoint
            outside[body] += data.oMi[body].actInv(pin.Force(sign * world.vector))
    return np.asarray(pin.rnea(model, data, q, v, a, outside))


def lock_torque(run: pl.Trajectory, name: str, k: int) -> float:
    held = run.reactions(f"lock:{name}")
    assert isinstance(held, pl.simulation.LockReaction)
    return float(held.effort[k, 0])


def test_reactions_of_loops_and_locks_move_the_robot() -> None:
    """Hinges without brake carry nothing but their damping; motors carry torque or lock."""
    result = palletizer_stop()
    run, robot = result.run, result.run.robot
    loops = [loop.name for loop in robot.loops]
    passive = [name for name in robot.joints if name not in result.brakes.joints]
    assert len(loops) == 3 and len(passive) > 2
    for k in (0, len(run.t) // 2, len(run.t) - 1):
        tau = tree_torques(result, k, loops)
        size = np.abs(tau).max()
        for name in robot.joints:
            column = robot.coordinates(name).v.start
            wanted = -robot.model.damping[column] * run.v[k, column]
            if name in result.brakes.joints:
                torque = run.equations[k].force(run.t[k], run.q[k], run.v[k])[column]
                held = f"lock:{name}" in run.equations[k].rows.labels
                wanted = lock_torque(run, name, k) if held else torque
            assert abs(tau[column] - wanted) < 1e-7 * size, (k, name)


def test_lock_holds_gravity_at_the_end() -> None:
    robot = loaded("six_axis_arm")
    q = robot.configuration({"joint_2": 0.6, "joint_3": -0.3})
    v = robot.velocity({"joint_1": 2.0, "joint_2": 1.5, "joint_3": 1.0})
    result = pl.stop(robot, q, v, brakes=URDF / "six_axis_arm.brakes.yaml", payload=10.0)
    model = result.robot.model
    weight = pin.computeGeneralizedGravity(model, model.createData(), result.run.q[-1])
    for name, torque in zip(robot.joints, weight, strict=True):
        np.testing.assert_allclose(lock_torque(result.run, name, -1), torque, atol=1e-6)
        np.testing.assert_allclose(result.joints[name].load, torque, atol=1e-6)


def test_thin_methods_look_at_the_run() -> None:
    result = palletizer_stop()
    box = pl.Obstacle.box("wall", size=(0.1, 1.0, 1.0), placement=(4.0, 0.0, 1.0))
    near = result.clearance(box)["wall"].distance
    assert near == pl.clearance(result.run, box)["wall"].distance > 0.0
    assert result.joint_limits() == pl.safety.joint_limits(result.run)
    own = [pair.distance for pair in result.self_collisions().approaches]
    assert own == [pair.distance for pair in pl.safety.self_collisions(result.run).approaches]
    volume = result.swept_volume(tolerance=0.1)
    assert volume.triangles == pl.safety.swept_volume(result.run, tolerance=0.1).triangles > 0


@pytest.mark.parametrize("name", ["swept_volume", "clearance", "self_collisions", "joint_limits"])
def test_thin_methods_take_what_the_functions_take(name: str) -> None:
    method, function = (inspect.signature(getattr(of, name)) for of in (pl.StopResult, pl.safety))
    assert [*method.parameters.values()][1:] == [*function.parameters.values()][1:]
    assert method.return_annotation == function.return_annotation
