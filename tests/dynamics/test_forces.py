"""Tests of `pinloop.dynamics.forces`: gradients of energies, powers, signs, and what users get
wrong.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.dynamics.forces import Force
from pinloop.model.description import GROUND

from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import close, moving, one_body, robot


def bound(machine: pl.Mechanism, *forces: Force) -> pl.EquationsOfMotion:
    return pl.EquationsOfMotion(machine, forces=forces)


def state(machine: pl.Mechanism, seed: int) -> tuple[Array, Array]:
    """Any configuration and velocity."""
    rng = np.random.default_rng(seed)
    return hand.random_q(machine, rng, 0.8), rng.normal(size=machine.nv)


def stored(equations: pl.EquationsOfMotion, q: Array) -> float:
    """Energy stored in all forces together."""
    return sum(equations.energies(0.3, q, np.zeros(equations.robot.nv))[2].values())


def frame_velocity(machine: pl.Mechanism, q: Array, v: Array, frame: str) -> Array:
    return np.asarray(
        hand.rate(machine, q, v, lambda q: np.array(machine.placement(q, frame).translation))
    )


# -- what stores energy -------------------------------------------------------------------

CONSERVATIVE: dict[str, tuple[str, Force]] = {
    "joint spring": ("rssr", pl.forces.JointSpring("rocker", 3.0, 0.4)),
    "slide spring": ("prrr3", pl.forces.JointSpring("slide_y", 200.0, -0.1)),
    "spring between bodies": (
        "every-pair",
        pl.forces.Spring("after_free", "after_planar", 7.0, 0.3),
    ),
    "spring to the ground": ("every-pair", pl.forces.Spring("ground", "after_universal", 7.0, 0.3)),
    "spring without length": ("rssr", pl.forces.Spring("coupler", "close/B", 5.0)),
    "spring between points": (
        "every-pair",
        pl.forces.Spring(
            ("after_free", (0.1, -0.2, 0.3)), ("after_planar", (0.3, 0.1, -0.4)), 7.0, 0.3
        ),
    ),
    "spring on a free body": ("floating-four-bar", pl.forces.Spring("base", "ground", 2.0, 1.0)),
}


@pytest.mark.parametrize("case", CONSERVATIVE)
def test_force_is_minus_the_gradient_of_the_stored_energy(case: str) -> None:
    name, force = CONSERVATIVE[case]
    machine = robot(name)
    equations = bound(machine, force)
    for seed in (1, 2, 3):
        q, v = state(machine, seed)
        tau = equations.force(0.3, q, v)
        slopes = [hand.rate(machine, q, unit, lambda q: stored(equations, q))
                  for unit in np.eye(machine.nv)]  # fmt: skip
        assert np.abs(tau).max() > 0.1
        close(tau, -np.array(slopes), 1e-9)
        assert equations.powers(0.3, q, v) == {}


def test_stored_energies_by_hand() -> None:
    body = one_body()
    q = body.neutral
    q[:3] = 3.0, 4.0, 12.0
    rest = np.zeros(6)
    spring = bound(body, pl.forces.Spring("ground", "body", 2.0, 10.0))
    assert stored(spring, q) == pytest.approx(0.5 * 2.0 * 3.0**2)
    np.testing.assert_allclose(spring.force(0, q, rest)[:3], -6.0 * np.array([3, 4, 12]) / 13)
    loose = bound(robot("planar-3R"), pl.forces.JointSpring("j2", 5.0, 0.5))
    angles = np.array([0.0, 0.7, 0.0])
    assert stored(loose, angles) == pytest.approx(0.5 * 5.0 * 0.2**2)
    np.testing.assert_allclose(loose.force(0, angles, np.zeros(3)), [0, -1.0, 0])


def test_a_spring_whose_ends_meet_pulls_nowhere() -> None:
    body = one_body()
    spring = bound(
        body, pl.forces.Spring("ground", "body", 2.0, 10.0), pl.forces.Damper("ground", "body", 3.0)
    )
    v = np.arange(6.0)
    np.testing.assert_array_equal(spring.force(0.0, body.neutral, v), np.zeros(6))
    assert stored(spring, body.neutral) == 100.0


# -- what takes or gives energy -------------------------------------------------------------

LOSSES: dict[str, tuple[str, Force]] = {
    "joint damping": ("rssr", pl.forces.JointDamping({"crank": 2.0, "ball": 0.1})),
    "joint damping of the file": ("palletizer", pl.forces.JointDamping()),
    "joint friction": ("rssr", pl.forces.JointFriction(0.1, {"crank": 2.0, "rocker": 0.3})),
    "joint friction of the file": ("delta", pl.forces.JointFriction()),
    "damper": ("every-pair", pl.forces.Damper("after_free", "after_planar", 4.0)),
    "damper to the ground": ("rssr", pl.forces.Damper("coupler", "ground", 4.0)),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_never_add_energy(case: str) -> None:
    name, force = LOSSES[case]
    machine = robot(name)
    equations = bound(machine, force)
    lost = []
    for seed in range(5):
        q, v = state(machine, seed)
        (power,) = equations.powers(0.0, q, v).values()
        assert power == pytest.approx(equations.force(0.0, q, v) @ v, rel=1e-12)
        lost.append(power)
        (back,) = equations.powers(0.0, q, -v).values()
        assert back == pytest.approx(power)  # going backwards loses as much
        assert np.abs(equations.force(0.0, q, 0 * v)).max() == 0.0
    assert max(lost) < -1e-6


def test_damper_by_hand_in_space() -> None:
    machine, force = robot("every-pair"), pl.forces.Damper("after_free", "after_planar", 4.0)
    q, v = state(machine, 6)
    ends = [np.array(machine.placement(q, f).translation) for f in ("after_free", "after_planar")]
    rates = [frame_velocity(machine, q, v, f) for f in ("after_free", "after_planar")]
    along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    closing = along @ (rates[1] - rates[0])
    assert bound(machine, force).powers(0.0, q, v) == pytest.approx(
        {"damper after_free-after_planar": -4.0 * closing**2}, rel=1e-8
    )


def test_friction_by_hand() -> None:
    machine = robot("planar-3R")
    v = np.array([1e-2, -1e-3, 50.0])
    tau = bound(machine, pl.forces.JointFriction(1e-2, {"j1": 2.0, "j2": 3.0, "j3": 0.5})).force(
        0.0, machine.neutral, v
    )
    expected = -np.array([2 * np.tanh(1.0), -3 * np.tanh(0.1), 0.5])
    np.testing.assert_allclose(tau, expected, rtol=1e-12)
    assert np.tanh(1.0) == pytest.approx(0.76, abs=0.01)  # "three quarters at speed"


def test_the_files_own_losses_are_the_default() -> None:
    machine = robot("six_axis_arm")
    v = np.linspace(1, 2, 6)
    tau = bound(machine, pl.forces.JointDamping(), pl.forces.JointFriction(1e-6)).force(
        0.0, machine.neutral, v
    )
    damping, friction = (
        np.array([joint.damping[0] if joint.damping else 0.0 for joint in _moving(machine)]),
        np.array([joint.friction[0] if joint.friction else 0.0 for joint in _moving(machine)]),
    )
    assert damping.min() > 0 and friction.min() > 0
    np.testing.assert_allclose(tau, -damping * v - friction, rtol=1e-12)


def _moving(machine: pl.Mechanism) -> list[Any]:
    joints = {joint.name: joint for joint in machine.description.joints}
    return [joints[name] for name in machine.joints]


# -- what drives ----------------------------------------------------------------------------


def test_torque_and_its_time() -> None:
    machine = robot("slider-crank")
    q, v = state(machine, 7)
    at = machine.coordinates("slide").v.start
    fixed = bound(machine, pl.Torque("slide", -3.0)).force(0.0, q, v)
    assert fixed[at] == -3.0 and np.count_nonzero(fixed) == 1
    swept = bound(machine, pl.Torque("slide", lambda t: 2 * t)).force(0.75, q, v)
    assert swept[at] == 1.5 and np.count_nonzero(swept) == 1


def test_pd_drive() -> None:
    machine = robot("planar-3R")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    constant = pl.PD("j2", 10.0, 2.0, target=0.5)
    expected = 10 * (0.5 - 0.2) + 2 * (0 - 2.0)
    np.testing.assert_allclose(bound(machine, constant).force(0.0, q, v), [0, expected, 0])
    moving = pl.PD("j2", 10.0, 2.0, target=lambda t: 3 * t, rate=lambda t: 3.0)
    expected = 10 * (1.2 - 0.2) + 2 * (3.0 - 2.0)
    np.testing.assert_allclose(bound(machine, moving).force(0.4, q, v), [0, expected, 0])
    # Not conservative: its work belongs to the balance even without damping.
    assert set(bound(machine, constant).powers(0.0, q, v)) == {"drive j2"}


def test_pd_drive_follows_its_target() -> None:
    machine = robot("planar-3R")
    drives = [pl.PD(j, 4000.0, 300.0, target=0.2, rate=0.0) for j in machine.joints]
    run = pl.simulate(
        machine, machine.neutral, until=2.0, forces=drives, method=pl.MuntheKaas(rtol=1e-6)
    )
    np.testing.assert_allclose(run.q[-1], 0.2, atol=0.02)
    assert np.abs(run.v[-1]).max() < 1e-2


@pytest.mark.parametrize("local", [False, True])
def test_a_force_on_a_point_of_a_body_is_one_on_a_frame_there(local: bool) -> None:
    body = one_body(mass=2.0)
    q, v = state(body, 4)
    at, push = np.array([0.1, -0.2, 0.3]), np.array([1.0, -2.0, 3.0])
    force = pl.forces.PointForce(("body", at), push, local)
    point = hand.rate(body, q, v, lambda q: np.array(body.placement(q, "body").act(at)))
    world = body.placement(q, "body").rotation @ push if local else push
    tau = bound(body, force).force(0.0, q, v)
    assert tau @ v == pytest.approx(float(world @ point), rel=1e-8)
    (name,) = bound(body, force).powers(0.0, q, v)
    assert name == "force on body at (0.1, -0.2, 0.3)"
    damper = pl.forces.Damper(("body", at), "ground", 3.0)
    x = np.array(body.placement(q, "body").act(at))
    along = float(point @ x) / float(np.linalg.norm(x))
    (power,) = bound(body, damper).powers(0.0, q, v).values()
    assert power == pytest.approx(-3.0 * along**2, rel=1e-7)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", ["every-pair", "floating-four-bar"])
def test_point_force_has_the_power_of_its_point(name: str, local: bool) -> None:
    machine = robot(name)
    frame = "after_planar" if name == "every-pair" else "rocker"
    q, v = state(machine, 8)
    given = np.array([1.0, -2.0, 3.0])
    force = pl.forces.PointForce(frame, lambda t: t * given, local=local)
    world = machine.placement(q, frame).rotation @ given if local else given
    expected = 0.5 * world @ frame_velocity(machine, q, v, frame)
    assert bound(machine, force).powers(0.5, q, v) == pytest.approx(
        {f"force on {frame}": expected}, rel=1e-8
    )
    constant = bound(machine, pl.forces.PointForce(frame, given, local)).force(0.0, q, v)
    np.testing.assert_allclose(constant, 2 * bound(machine, force).force(0.5, q, v), rtol=1e-12)


def test_thrust_along_the_body_and_along_the_world() -> None:
    """A quarter turn about z: force along the body's x is one along the world's y."""
    body = one_body(mass=2.0, gravity=(0, 0, 0))
    q = body.neutral
    q[3:] = 0, 0, np.sin(np.pi / 4), np.cos(np.pi / 4)
    along_body, along_world = (
        pl.EquationsOfMotion(body, forces=[pl.forces.PointForce("body", (6.0, 0, 0), local)])
        for local in (True, False)
    )
    np.testing.assert_allclose(along_body.acceleration(0, q, np.zeros(6)), [3, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(
        along_world.acceleration(0, q, np.zeros(6)), [0, -3, 0, 0, 0, 0], atol=1e-15
    )


def test_functions_of_the_state_get_copies() -> None:
    machine = robot("planar-3R")
    q, v = state(machine, 9)
    kept = q.copy(), v.copy()

    def rude(t: float, q: Array, v: Array) -> Array:
        tau = 2 * q + t * v
        q[:], v[:] = np.nan, np.nan
        return tau

    tau = bound(machine, pl.TorqueFunction(rude)).force(2.0, q, v)
    np.testing.assert_array_equal(tau, 2 * kept[0] + 2.0 * kept[1])
    np.testing.assert_array_equal([q, v], kept)


def test_forces_add_up_and_each_has_a_line_of_its_own() -> None:
    machine = robot("planar-3R")
    q, v = state(machine, 10)
    forces = [
        pl.Torque("j1", 2.0), pl.Torque("j1", 3.0), pl.forces.JointSpring("j2", 5.0),
        pl.forces.JointSpring("j2", 7.0), pl.TorqueFunction(lambda t, q, v: np.ones(3)),
        pl.TorqueFunction(lambda t, q, v: -2 * np.ones(3)), pl.forces.JointDamping({"j3": 1.0}),
    ]  # fmt: skip
    equations = bound(machine, *forces)
    single = sum(bound(machine, force).force(0.0, q, v) for force in forces)
    np.testing.assert_allclose(equations.force(0.0, q, v), single, rtol=1e-12)
    powers, energies = equations.powers(0.0, q, v), equations.energies(0.0, q, v)[2]
    assert len(powers) == 5 and len(energies) == 2
    assert sum(powers.values()) == pytest.approx(5 * v[0] - v.sum() - v[2] ** 2)
    assert sum(energies.values()) == pytest.approx(6 * q[1] ** 2)


# -- what users get wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("force", "message"),
    [
        (pl.forces.JointSpring("cranck", 1.0), "did you mean 'crank'"),
        (
            pl.forces.JointSpring("ball", 1.0),
            "JointSpring needs an axis with a coordinate of joint 'ball', which has none; act",
        ),
        (pl.Torque("ball", 1.0), "'ball', which has wx, wy, wz; give axis='wz'"),
        (pl.PD("ball", 1.0, 1.0, axis="wx"), "PD needs .* coordinate of joint 'ball'"),
        (pl.forces.JointDamping({"cranck": 1.0}), "did you mean 'crank'"),
        (pl.forces.JointFriction(coefficients={"cranck": 1.0}), "did you mean 'crank'"),
        (pl.forces.JointFriction(speed=0.0), "speed 0"),
        (pl.forces.Spring("coupler", "nowhere", 1.0), "no body or frame 'nowhere'"),
        (pl.forces.Damper("nowhere", "coupler", 1.0), "no body or frame 'nowhere'"),
        (pl.forces.PointForce("nowhere", (0, 0, 1)), "no body or frame 'nowhere'"),
        (pl.forces.PointForce("coupler", (1, 2)), "force on 'coupler' has 3 numbers, not 2"),
        (pl.forces.Spring("coupler", ("nowhere", (0, 0, 0)), 1.0), "no body or frame 'nowhere'"),
        (
            pl.forces.Spring("coupler", ("coupler", (0, 0)), 1.0),
            "the point on 'coupler' has 3 numbers, not 2",
        ),
    ],
)
def test_forces_that_cannot_be(force: Force, message: str) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        bound(robot("rssr"), force)


WRONG: dict[str, tuple[Callable[[], Force], str]] = {
    "shape": (lambda: pl.TorqueFunction(lambda t, q, v: np.zeros(2)), "has 3 numbers, not 2"),
    "number": (lambda: pl.TorqueFunction(lambda t, q, v: 1.0, "mine"), "'mine' has 3 numbers"),
    "words": (lambda: pl.TorqueFunction(lambda t, q, v: ["a", "b", "c"]), "not made of numbers"),
    "point": (lambda: pl.forces.PointForce("a", lambda t: (1.0, 2.0)), "has 3 numbers, not 2"),
    "nan": (lambda: pl.Torque("j1", lambda t: float("nan")), "'torque j1' is not finite at t = 0"),
    "inf": (lambda: pl.forces.PointForce("a", lambda t: [0, 0, np.inf]), "not finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_named(case: str) -> None:
    make, message = WRONG[case]
    machine = robot("planar-3R")
    with pytest.raises(pl.BadValue, match=message):
        bound(machine, make()).force(0.0, machine.neutral, np.zeros(3))
    with pytest.raises(pl.SimulationFailed, match=message):
        pl.simulate(machine, machine.neutral, until=0.1, forces=[make()])


def test_springs_take_wheels_that_turn_for_ever_within_half_a_turn_of_their_rest() -> None:
    wheel, hinge = one_body("revolute", coordinates="circle"), one_body("revolute")
    spring, v = pl.forces.JointSpring("joint", 3.0, rest=5.0), np.zeros(1)
    for angle in (1.0, 2.5, 4.0, 8.0):
        q = wheel.integrate(wheel.neutral, np.array([angle]))
        nearest = 5.0 + math.remainder(angle - 5.0, 2.0 * math.pi)
        expected = bound(hinge, spring).force(0.0, np.array([nearest]), v)
        np.testing.assert_allclose(bound(wheel, spring).force(0.0, q, v), expected, atol=1e-12)


def test_a_motor_may_drive_a_wheel_that_turns_for_ever() -> None:
    """Its angle is stored as cosine and sine, but it has one degree of freedom like any other."""
    wheel = one_body("revolute", coordinates="circle", inertia=(1, 1, 2.0), gravity=(0, 0, 0))
    a = bound(wheel, pl.Torque("joint", 3.0)).acceleration(0.0, wheel.neutral, np.zeros(1))
    assert a == pytest.approx(1.5)


def test_a_chain_of_springs_pulls_its_masses_together() -> None:
    """Two bodies in line, a spring between them: forces are equal and opposite."""
    entries = tables.table(
        "two carts",
        tables.joint("left", "prismatic", GROUND, "one", [0, 0, 0], [1, 0, 0]),
        tables.joint("right", "prismatic", GROUND, "two", [2, 0, 0], [1, 0, 0]),
    )
    machine = tables.build(entries)
    q = machine.configuration({"left": -1.0, "right": 2.0})
    tau = bound(machine, pl.forces.Spring("one", "two", 4.0, 1.0)).force(0.0, q, np.zeros(2))
    np.testing.assert_allclose(tau, [8.0, -8.0])
    q, v = moving(machine, 11)
    assert bound(machine, pl.forces.Damper("one", "two", 1.0)).force(
        0.0, q, v
    ).sum() == pytest.approx(0)


def test_a_run_with_forces_can_be_pickled() -> None:
    """Also with losses of the file, and with two forces of the same name."""
    machine = robot("palletizer")
    q = pl.assemble(machine)
    forces = [pl.PD("shoulder", 10.0, 1.0), pl.Torque("elbow", 3.0), pl.Torque("elbow", 2.0)]
    run = pl.simulate(machine, q, until=0.01, forces=forces)
    again = pickle.loads(pickle.dumps(run))
    ours, its = (one.system.equations(one.modes[0]) for one in (run, again))
    q, v = run.q[-1], run.v[-1]
    np.testing.assert_array_equal(its.force(0.3, q, v), ours.force(0.3, q, v))
    assert its.powers(0.3, q, v) == ours.powers(0.3, q, v)
    assert {"torque elbow", "torque elbow (2)"} <= set(its.powers(0.3, q, v))
