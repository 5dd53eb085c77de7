"""Tests of what acts on joints by name, in the tree and where they close loops.

Oracle: the same robot in relative coordinates, in which the joint has a coordinate of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.relative_motion import JointMotion
from pinloop.dynamics.forces import Force
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.model.pairs import MotionGroup
from pinloop.model.transformations import carried_state

from .. import linkages as ll
from .. import mechanisms as m
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array, Table
from ..states import SPACES, Space, body_motion, carried, close, moving, robot

ROBOTS = {"four-bar": "crank", "rssr": "rocker", "prrr3": "slide_y", "slider-crank": "slide"}
"""Robots, and a joint with one axis."""

FORCES: dict[str, Callable[[str], Force]] = {
    "torque": lambda joint: pl.Torque(joint, lambda t: 3.0 + t),
    "spring": lambda joint: pl.forces.JointSpring(joint, 40.0, 0.3),
    "drive": lambda joint: pl.PD(joint, 30.0, 2.0, target=0.4, rate=lambda t: 1.0 + t),
    "damping": lambda joint: pl.forces.JointDamping({joint: 3.0}),
    "friction": lambda joint: pl.forces.JointFriction(0.5, {joint: 4.0}),
}


def same_motion(
    machine: pl.Mechanism, there: pl.Mechanism, q: Array, v: Array, forces: list[Force]
) -> None:
    """Bodies accelerate alike with forces in both coordinates, which take the same power."""
    other, rates = carried(machine, q, v, there)
    ours, its = (pl.EquationsOfMotion(one, forces=forces) for one in (machine, there))
    expected = body_motion(machine, q, v, ours.acceleration(0.2, q, v))
    actual = body_motion(there, other, rates, its.acceleration(0.2, other, rates))
    size = max(1.0, *(np.abs(motion[2].vector).max() for motion in expected.values()))
    for body, motion in expected.items():
        close(actual[body][2].vector, motion[2].vector, 1e-8, size)
    for one, two in (
        (ours.powers(0.2, q, v), its.powers(0.2, other, rates)),
        (ours.energies(0.2, q, v)[2], its.energies(0.2, other, rates)[2]),
    ):
        assert one == pytest.approx(two, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", FORCES)
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("space", SPACES)
def test_forces_on_a_joint_in_absolute_coordinates(name: str, space: Space, kind: str) -> None:
    machine, force = robot(name), FORCES[kind](ROBOTS[name])
    q, v = moving(machine, 4)
    without = pl.EquationsOfMotion(machine).acceleration(0.2, q, v)
    acting = pl.EquationsOfMotion(machine, forces=[force]).acceleration(0.2, q, v)
    assert np.abs(acting - without).max() > 1e-3
    same_motion(machine, machine.absolute(space), q, v, [force])


def test_forces_of_many_axes_and_those_of_the_file() -> None:
    """Ball joints too, with coefficients that the file gives."""
    base = robot("rssr")
    lossy = [replace(joint, damping=(2.0,) * joint.pair.dof, friction=(1.0,) * joint.pair.dof)
             for joint in base.description.joints]  # fmt: skip
    machine = build(replace(base.description, joints=tuple(lossy)))
    q, v = moving(machine, 5)
    forces: list[Force] = [pl.forces.JointDamping(), pl.forces.JointFriction(0.3)]
    same_motion(machine, machine.absolute(), q, v, forces[:1])
    run = pl.simulate(machine.absolute(), *carried(machine, q, v, machine.absolute()), until=0.01)
    assert set(run.energy().work) >= {"joint damping", "joint friction"}


@pytest.mark.parametrize("cut", ["crank", "elbow", "rocker", "close"])
def test_the_coordinate_of_a_joint_is_the_same_wherever_the_loop_is_cut(cut: str) -> None:
    """Angle, rate and drift of every joint, and of the one that was cut."""
    entries = m.four_bar()
    for joint in entries["joints"]:
        joint["cut"] = joint["name"] == cut
    machine, base = tables.build(entries), robot("four-bar")
    for seed in (1, 2):
        q0, v0 = moving(base, seed)
        states = body_motion(base, q0, v0)
        names = [joint["name"] for joint in entries["joints"]]
        start = {name: angle_of(base, q0, name) for name in names if name != cut}
        q = machine.configuration(start)
        v = machine.velocity({name: rate_of(base, q0, v0, name) for name in start})
        assert set(states) == set(machine.bodies)
        for name in names:
            close(angle_of(machine, q, name), angle_of(base, q0, name), 1e-10)
            close(rate_of(machine, q, v, name), rate_of(base, q0, v0, name), 1e-10)
            ahead, behind = (machine.integrate(q, s * 1e-4 * v) for s in (1, -1))
            turned = angle_of(machine, ahead, name) - angle_of(machine, behind, name)
            close(turned / 2e-4, rate_of(machine, q, v, name), 1e-6)
            slope = (rate_of(machine, ahead, v, name) - rate_of(machine, behind, v, name)) / 2e-4
            close(drift_of(machine, q, v, name), slope, 1e-5)


def test_a_joint_that_regularization_turned_over_moves_as_described() -> None:
    plain = tables.build(ll.turned_over(m.sarrus(), "b3"))
    machine = pl.regularize(plain)
    loop, joint = machine.loop("b3"), next(x for x in plain.description.joints if x.name == "b3")
    assert (loop.body_a, loop.body_b) == (joint.child, joint.parent)
    q, v = moving(plain, 3)
    close(angle_of(machine, q, "b3"), angle_of(plain, q, "b3"), 1e-12)
    close(rate_of(machine, q, v, "b3"), rate_of(plain, q, v, "b3"), 1e-12)
    assert abs(rate_of(plain, q, v, "b3")) > 0.1
    close(drift_of(machine, q, v, "b3"), drift_of(plain, q, v, "b3"), 1e-12)


def kinematics(machine: pl.Mechanism, data: pin.Data, q: Array, v: Array) -> None:
    pin.forwardKinematics(machine.model, data, q, v, np.zeros(machine.nv))
    pin.computeJointJacobians(machine.model, data, q)
    pin.updateFramePlacements(machine.model, data)


def angle_of(machine: pl.Mechanism, q: Array, joint: str) -> float:
    with machine.workspace() as data:
        kinematics(machine, data, q, np.zeros(machine.nv))
        return JointMotion(machine, joint).position(q, data)


def rate_of(machine: pl.Mechanism, q: Array, v: Array, joint: str) -> float:
    with machine.workspace() as data:
        kinematics(machine, data, q, v)
        return float(JointMotion(machine, joint).jacobian(data)[0] @ v)


def drift_of(machine: pl.Mechanism, q: Array, v: Array, joint: str) -> float:
    with machine.workspace() as data:
        kinematics(machine, data, q, v)
        return float(JointMotion(machine, joint).drift(data)[0])


@pytest.mark.parametrize(("name", "joint"), [("four-bar", "crank"), ("five-bar", "m1")])
def test_a_prescribed_joint_in_absolute_coordinates(name: str, joint: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 6)
    x, rate = angle_of(machine, q, joint), rate_of(machine, q, v, joint)
    row = pl.constraints.Prescribed(joint, lambda t: (x + rate * t + t * t, rate + 2 * t, 2.0))
    there = machine.absolute()
    ends = []
    for one, start in ((machine, (q, v)), (there, carried(machine, q, v, there))):
        run = pl.simulate(one, *start, until=0.2, rows=[row], losses=False,
                          method=pl.MuntheKaas("dopri5", rtol=1e-9, atol=1e-9))  # fmt: skip
        assert angle_of(one, run.q[-1], joint) == pytest.approx(x + 0.2 * rate + 0.04, abs=1e-8)
        ends.append((body_motion(one, run.q[-1], run.v[-1]), run.energy().work))
    for body, (placement, twist, _) in ends[0][0].items():
        close(ends[1][0][body][0].homogeneous, placement.homogeneous, 1e-6)
        close(ends[1][0][body][1].vector, twist.vector, 1e-5)
    driven = [work["prescribed motion"][-1] for _, work in ends]
    assert driven[0] == pytest.approx(driven[1], rel=1e-5) and abs(driven[0]) > 1e-3


@pytest.mark.parametrize("axes", [("wz",), ("wx",), ()])
def test_axes_that_move_with_their_joint(axes: tuple[str, ...]) -> None:
    """Of a universal joint that closes a loop: damped, and locked about some of them."""
    machine, joint = robot("double-cardan"), "u1"
    there, lock = machine.absolute(), pl.simulation.Locked(joint, axes)
    q, _ = moving(machine, 4)
    v = s.moving_in(machine, q, pl.Mode([lock]), 5)
    at, ends = machine.coordinates(joint).v, []
    for one, start in ((machine, (q, v)), (there, carried(machine, q, v, there))):
        equations = pl.EquationsOfMotion(
            one, forces=[pl.forces.JointDamping({joint: 0.7})], locks=[lock]
        )
        motion = equations.motion(0.0, *start)
        held = [x.startswith("lock:") for x in equations.rows.labels]
        with one.workspace() as data:
            kinematics(one, data, *start)
            axis = JointMotion(one, joint)
            assert axis.axes == ("wz", "wx")
            close(axis.jacobian(data) @ start[1], v[at], 1e-9)
            rate = axis.jacobian(data) @ motion.a + axis.drift(data)
        power = sum(equations.powers(0.0, *start).values())
        # Both axes hold each other, too: of that the smallest reactions are another matter here.
        reaction = np.where(motion.determined, motion.multipliers, 0.0)[held]
        ends.append((rate, np.array([power]), reaction))
    for here, other in zip(*ends, strict=True):
        close(other, here, 1e-7)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "five-bar", "delta"])
def test_a_lock_of_a_joint_in_absolute_coordinates(name: str) -> None:
    """The run, the impulse and the reaction are those of the lock of a coordinate."""
    machine = robot(name)
    there, joint = machine.absolute(), machine.joints[-1]
    q, v = moving(machine, 7)
    events = [pl.lock(joint, at=0.03), pl.unlock(joint, at=0.07)]
    runs = [
        pl.simulate(one, *start, until=0.1, events=events, losses=False,
                    method=pl.MuntheKaas("dopri5", rtol=1e-9, atol=1e-9))
        for one, start in ((machine, (q, v)), (there, carried(machine, q, v, there)))
    ]  # fmt: skip
    for k, change in enumerate(runs[0].transitions):
        other = runs[1].transitions[k]
        close(other.impulse_of(f"lock:{joint}") if k == 0 else 0,
              change.impulse_of(f"lock:{joint}") if k == 0 else 0, 1e-6)  # fmt: skip
        assert other.energy_loss == pytest.approx(change.energy_loss, rel=1e-6, abs=1e-9)
    ends = [body_motion(run.robot, run.q[-1], run.v[-1]) for run in runs]
    for body, (placement, twist, _) in ends[0].items():
        close(ends[1][body][0].homogeneous, placement.homogeneous, 1e-6)
        close(ends[1][body][1].vector, twist.vector, 1e-5)
    efforts = [run.reactions(f"lock:{joint}") for run in runs]
    held = [np.flatnonzero(run.mode == 1)[-1] for run in runs]
    assert all(isinstance(effort, pl.simulation.LockReaction) for effort in efforts)
    found = [effort.effort[k] for effort, k in zip(efforts, held, strict=True)]  # type: ignore[union-attr]
    if efforts[0].determined.all():
        close(found[1], found[0], 1e-5)


@pytest.mark.parametrize("name", ["every-pair", "four-bar", "rssr", "delta", "stewart", "cardan"])
@pytest.mark.parametrize("space", SPACES)
def test_states_go_to_absolute_coordinates_and_back(name: str, space: Space) -> None:
    machine = robot(name)
    q, v = moving(machine, 8)
    there = machine.absolute(space)
    other, rates = machine.to_absolute(q, v, space)
    expected, rate = carried(machine, q, v, there)
    close(there.difference(expected, other), np.zeros(there.nv), 1e-12)
    close(rates, rate, 1e-12)
    back, again = machine.from_absolute(other, rates, space)
    for body, (placement, twist, _) in body_motion(machine, q, v).items():
        found = body_motion(machine, back, again)[body]
        close(found[0].homogeneous, placement.homogeneous, 1e-9)
        close(found[1].vector, twist.vector, 1e-9)


@pytest.mark.parametrize("name", ["bennett", "rssr", "every-pair", "sarrus"])
def test_rates_and_drifts_of_joints_in_space_are_derivatives(name: str) -> None:
    """Of coordinates along any motion, and of rates at constant velocity, by differences."""
    machine = robot(name).absolute()
    q, _ = carried(robot(name), *moving(robot(name), 9), machine)
    v = np.random.default_rng(2).normal(size=machine.nv)
    largest = 0.0
    for loop in machine.loops:
        if not isinstance(loop.pair, MotionGroup) or not loop.pair.dof:
            continue
        motion = JointMotion(machine, loop.name)

        def at(s: float, motion: JointMotion = motion) -> tuple[float, Array, Array]:
            with machine.workspace() as data:
                here = machine.integrate(q, s * v)
                kinematics(machine, data, here, v)
                place = motion.position(here, data) if len(motion.axes) == 1 else 0.0
                return place, motion.jacobian(data) @ v, motion.drift(data)

        (low, slow, _), (_, rate, drift), (high, fast, _) = at(-1e-5), at(0.0), at(1e-5)
        close((fast - slow) / 2e-5, drift, 1e-5)
        if len(motion.axes) == 1:
            close((high - low) / 2e-5, rate[0], 1e-6)
        largest = max(largest, float(np.abs(drift).max()))
    assert largest > 0.1


def test_a_prescribed_joint_in_space_has_its_acceleration() -> None:
    base = robot("every-pair")
    there, joint = base.absolute(), "helical"
    q, _ = carried(base, *moving(base, 3), there)
    v = np.random.default_rng(4).normal(size=there.nv)  # with which the axis turns and tilts
    row = pl.constraints.Prescribed(joint, lambda t: (0.0, 0.0, 2.5))
    a = pl.EquationsOfMotion(there, rows=[row]).acceleration(0.0, q, v)
    with there.workspace() as data:
        kinematics(there, data, q, v)
        motion = JointMotion(there, joint)
        drift = motion.drift(data)
        assert abs(drift[0]) > 0.1
        close(motion.jacobian(data) @ a + drift, np.array([2.5]), 1e-8)


# -- pairs that always close loops ----------------------------------------------------------------


def on_a_shoe(entries: Table, slide: str) -> pl.Mechanism:
    """The robot whose last body slides in a shoe without mass, by joints that have coordinates."""
    first, middle, touch = entries["joints"]
    shoe = {"name": "shoe", "mass": 0.0, "com": np.zeros(3), "inertia": np.zeros((3, 3))}
    at, axis = touch["point"], touch["axis"]
    joints = [
        first | {"cut": True},
        middle,
        tables.joint("slide", slide, GROUND, "shoe", at, axis),
        tables.joint("ball", "spherical", "shoe", "lower", at),
    ]
    return tables.build(entries | {"joints": joints, "bodies": [*entries["bodies"], shoe]})


TIED = {"bottom": (m.ball_loop, "prismatic"), "touch": (m.tip_on_plane, "planar_translation")}
"""Robots with a point on a line and on a plane, and what the shoe slides by."""


@pytest.mark.parametrize("held", ["", "slide", "ball", "slide ball"])
@pytest.mark.parametrize("name", TIED)
def test_points_on_lines_and_planes_slide_and_turn(name: str, held: str) -> None:
    """Damped, and locked, as the joints of a shoe without mass that slides and carries a ball."""
    draw, slide = TIED[name]
    shoe, machine = on_a_shoe(draw(), slide), tables.build(draw())
    locks, damped = held.split(), {"slide": 3.0, "ball": 0.4}
    q, _ = moving(shoe, 4)
    v = s.moving_in(shoe, q, pl.Mode(locks=locks), 5)
    assert np.abs(v).max(initial=0.0) > 0.1 or held == "slide ball"
    other, rates = carried_state(shoe.model, q, v, machine.model)
    slides = JointMotion(machine, name).axes[:-3]
    axes = {"slide": slides, "ball": ("wx", "wy", "wz")}
    lock = pl.simulation.Locked(name, tuple(axis for joint in locks for axis in axes[joint]))
    same_acceleration(
        pl.EquationsOfMotion(shoe, forces=[pl.forces.JointDamping(damped)], locks=locks),
        pl.EquationsOfMotion(
            machine,
            forces=[pl.forces.JointDamping({name: 3.0}), *turning_less(name, machine, 2.6)],
            locks=[lock] if locks else [],
        ),
        (q, v),
        (other, rates),
    )


def turning_less(joint: str, machine: pl.Mechanism, less: float) -> list[Force]:
    """Drive of the turns of a joint, against damping that is too much by ``less``."""
    axis = JointMotion(machine, joint)

    def torque(t: float, q: Array, v: Array) -> Array:
        with machine.workspace() as data:
            kinematics(machine, data, q, v)
            J = axis.jacobian(data)[-3:]
            return np.asarray(less * J.T @ (J @ v))

    return [pl.forces.TorqueFunction(torque)]


def same_acceleration(
    ours: pl.EquationsOfMotion,
    its: pl.EquationsOfMotion,
    state: tuple[Array, Array],
    other: tuple[Array, Array],
) -> None:
    """Bodies that both robots have accelerate alike."""
    expected = body_motion(ours.robot, *state, ours.acceleration(0.0, *state))
    actual = body_motion(its.robot, *other, its.acceleration(0.0, *other))
    for body, motion in actual.items():
        close(motion[1].vector, expected[body][1].vector, 1e-9)
        close(motion[2].vector, expected[body][2].vector, 1e-9, 10.0)


@pytest.mark.parametrize("axes", [("vz",), ()])
def test_a_lock_of_a_point_on_a_line_in_a_run(axes: tuple[str, ...]) -> None:
    """What moves on, and the energy that is lost, are those of the lock of a slide."""
    shoe, machine = on_a_shoe(m.ball_loop(), "prismatic"), tables.build(m.ball_loop())
    q, v = moving(shoe, 7)
    starts = (q, v), carried_state(shoe.model, q, v, machine.model)
    locks = (
        [pl.lock("slide", at=0.03)] if axes else [pl.lock(x, at=0.03) for x in ("slide", "ball")]
    )
    events = locks, [pl.lock("bottom", axes=axes, at=0.03)]
    runs = [
        pl.simulate(one, *start, until=0.1, events=changes, losses=False,
                    method=pl.MuntheKaas("dopri5", rtol=1e-9, atol=1e-9))
        for one, start, changes in zip((shoe, machine), starts, events, strict=True)
    ]  # fmt: skip
    losses = [sum(change.energy_loss for change in run.transitions) for run in runs]
    assert losses[1] == pytest.approx(losses[0], rel=1e-7) and losses[0] > 1e-3
    ends = [body_motion(run.robot, run.q[-1], run.v[-1]) for run in runs]
    for body, (placement, twist, _) in ends[1].items():
        close(ends[0][body][0].homogeneous, placement.homogeneous, 1e-7)
        close(ends[0][body][1].vector, twist.vector, 1e-6)


def test_a_rod_is_locked_as_a_whole() -> None:
    """Then its ends are welded together, as by a lock of the ball between both bodies."""
    machine = tables.build(tables.table(
        "tied",
        tables.joint("hinge", "revolute", GROUND, "a", [0, 0, 1], [0, 1, 0]),
        tables.joint("ball", "spherical", "a", "b", [0.5, 0.1, 0.7]),
        tables.joint("tie", "rod", "a", "b", [0.1, 0, 0.5], point2=[0.9, 0.3, 0.4], cut=True),
    ))  # fmt: skip
    q, v = moving(machine, 3)
    runs = [
        pl.simulate(machine, q, v, until=0.2, events=[pl.lock(joint, at=0.05)])
        for joint in ("ball", "tie")
    ]
    losses = [run.transitions[0].energy_loss for run in runs]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9) and losses[0] > 1e-3
    close(runs[1].q[-1], runs[0].q[-1], 1e-8)
    close(runs[1].v[-1], runs[0].v[-1], 1e-7)
    with pytest.raises(pl.BadValue, match="a rod pair has no axes of its own; lock it as a whole"):
        pl.EquationsOfMotion(machine, forces=[pl.forces.JointDamping({"tie": 1.0})])
    with pytest.raises(pl.BadValue, match="no axes of its own"):
        pl.EquationsOfMotion(machine, locks=[pl.simulation.Locked("tie", ("wx",))])


@pytest.mark.parametrize("name", TIED)
def test_rates_and_drifts_of_points_are_derivatives(name: str) -> None:
    """Off the manifold, too."""
    machine = tables.build(TIED[name][0]())
    rng, axis = np.random.default_rng(3), JointMotion(machine, name)
    q, v = (
        machine.integrate(machine.neutral, rng.normal(size=machine.nv)),
        rng.normal(size=machine.nv),
    )

    def at(h: float) -> tuple[Array, Array]:
        with machine.workspace() as data:
            kinematics(machine, data, machine.integrate(q, h * v), v)
            return axis.jacobian(data) @ v, axis.drift(data)

    (slow, _), (_, drift), (fast, _) = at(-1e-5), at(0.0), at(1e-5)
    close((fast - slow) / 2e-5, drift, 1e-5)
    assert (np.abs(drift) > 0.1).all()
