"""Tests of `Trajectory.sensitivity`: against extrapolated differences of runs, and closed forms.

The oracle simulates again with other inputs and the same fixed steps: agreement is to rounding.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.special import ellipe, ellipk

import pinloop as pl
from pinloop import parameters
from pinloop.dynamics.derivatives import joint_chain
from pinloop.model.moving_tree import MovingTree
from pinloop.simulation import (
    EndStops,
    EnergyAt,
    EventTime,
    InitialState,
    PointAt,
    Sensitivity,
    StateAt,
)
from pinloop.simulation.sequence_range import Margin, input_ranges, without_rounding

from .. import states
from ..dynamics.test_derivatives import difference
from ..physics.test_dry_friction import dry
from ..physics.test_end_stops import with_ends
from ..safety.stopping.robots_to_stop import carriages, slider
from ..screw_tables import Array
from ..switching import between, falling, hanging, two_links

RK4 = pl.MuntheKaas("rk4", step=5e-3)
CLOSED = pl.Projection(tol=1e-14)
"""So that all steps are projected: a threshold would bend the slope of differences."""
EXACT = 1e-8


def end(run: pl.Trajectory, middle: Array) -> Array:
    """State at the end, positions in tangent coordinates beside others."""
    return np.append(pin.difference(run.robot.model, middle, run.q[-1]), run.v[-1])


def check(
    simulate: Callable[[Array], pl.Trajectory],
    to: Sequence[Any],
    relative: float = EXACT,
    events: Sequence[str] = (),
    first: float = 4e-3,
) -> Sensitivity:
    """The state at the end and times of events, against differences in all inputs."""
    run, of = simulate(np.zeros(0)), [StateAt(), *(EventTime(name) for name in events)]
    found = run.sensitivity(of, to)
    size = len(found.columns)

    def outcomes(x: Array) -> Array:
        other = simulate(x)
        assert other.sequence == run.sequence
        times = [
            min(t for t, label in (*other.events, *other.slips) if label == name) for name in events
        ]
        return np.append(end(other, run.q[-1]), times)

    wanted = difference(outcomes, size, first).T
    off = np.abs(found.matrix - wanted) / np.maximum(1.0, np.abs(wanted).max(axis=1))[:, None]
    assert off.max() <= relative, (off.max(), found.rows[off.max(axis=1).argmax()])
    other = run.sensitivity(of, to, order="adjoint" if size < len(found.rows) else "forward")
    np.testing.assert_allclose(other.matrix, found.matrix, 0.0, 1e-12 * np.abs(wanted).max())
    assert isinstance(found, Sensitivity)
    return found


def moved(robot: pl.Mechanism, q: Array, v: Array, x: Array, **options: Any) -> tuple[Array, Array]:
    """The state at coordinates of the chart in which an initial state is counted."""
    chart = pl.linearize(robot, q, v, **options).chart
    return chart.state(x if len(x) else np.zeros(len(chart.names)))


def assembled(name: str, **given: float) -> tuple[pl.Mechanism, Array]:
    robot = states.robot(name)
    return robot, pl.assemble(robot, given)


PALLETIZER, START = assembled("palletizer", shoulder=0.3, elbow=-0.2)
SPEED = pl.consistent_velocity(
    PALLETIZER, START, {"shoulder": 0.8, "elbow": 0.4, "base_yaw": 1.0, "wrist": -0.7}
)
PAYLOAD = parameters.PointMass("flange", (0.1, 0.2, 0.3))


def other_palletizer(parameter: parameters.Parameter, x: Array) -> pl.Mechanism:
    """The palletizer with other numbers than in its file, by so much."""
    return parameters.with_parameters(PALLETIZER, [(parameter, NOW[parameter] + x)])[0]


INERTIA, ROTOR = parameters.BodyInertia("forearm"), parameters.Armature("wrist")
FOREARM = next(body for body in PALLETIZER.description.bodies if body.name == "forearm")
NOW: dict[parameters.Parameter, Array] = {
    PAYLOAD: np.array([0.5]),
    INERTIA: np.array([
        FOREARM.mass, *FOREARM.com,
        *(FOREARM.inertia[i][k] for i, k in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))),
    ]),
    ROTOR: np.array([0.1]),
}  # fmt: skip


# -- closed forms -----------------------------------------------------------------------------


def test_a_pendulum_falls_for_a_quarter_of_its_period() -> None:
    """``T/4 = sqrt(I / m g l) K(sin^2(q0 / 2))``, by where it starts, and its speed there."""
    mass, arm, inertia = 2.0, 0.5, 0.1
    robot = hanging(mass, arm, inertia)
    down, q0 = -0.5 * np.pi, 1.2
    bottom = pl.stop_when(lambda t, q, v: q[0] - down, name="bottom")
    run = pl.simulate(
        robot, [down + q0], until=3.0, events=[bottom], method=pl.MuntheKaas(rtol=1e-11, atol=1e-11)
    )
    own, m = inertia + mass * arm**2, np.sin(0.5 * q0) ** 2
    time = np.sqrt(own / (mass * 9.81 * arm))
    assert run.t[-1] == pytest.approx(time * ellipk(m), rel=1e-9)
    by_m = (ellipe(m) / (1.0 - m) - ellipk(m)) / (2.0 * m)
    found = run.sensitivity([EventTime("bottom"), StateAt()], [InitialState()])
    wanted = time * by_m * 0.5 * np.sin(q0)
    assert found.of("time of bottom", "initial joint") == pytest.approx(wanted, rel=1e-7)
    # Energy: w^2 = w0^2 + 2 (m g l / I) (1 - cos q0), at the bottom.
    w = run.v[-1, 0]
    assert found.of("d joint", "initial joint") == pytest.approx(np.sin(q0) / time**2 / w, rel=1e-8)
    assert found.of("d joint", "initial d joint") == pytest.approx(0.0, abs=1e-9)


def test_a_ball_that_bounces() -> None:
    """Free fall from h, restitution e: ``x = e v t' - g t'^2 / 2`` a time t' after the hit."""
    g, h, e, until = 9.81, 0.6, 0.7, 0.6
    robot = between(falling(), 0.0, 5.0)
    run = pl.simulate(robot, [h], until=until, limits=EndStops(e), method=RK4)
    hit = np.sqrt(2 * h / g)
    hit_by_h = hit / (2 * h)
    found = run.sensitivity([StateAt(), EventTime("lower limit of joint")], [InitialState()])
    left = until - hit
    x = e * g * hit * left - 0.5 * g * left**2
    assert run.q[-1, 0] == pytest.approx(x, abs=1e-10)
    x_by_hit = e * g * (left - hit) + g * left
    v_by_hit = e * g + g
    assert found.matrix[2, 0] == pytest.approx(hit_by_h, rel=1e-9)
    assert found.matrix[0, 0] == pytest.approx(x_by_hit * hit_by_h, rel=1e-9)
    assert found.matrix[1, 0] == pytest.approx(v_by_hit * hit_by_h, rel=1e-9)


@pytest.mark.parametrize("friction", [0.6, 0.4])
def test_a_block_on_an_incline_stops_and_slides_back(friction: float) -> None:
    mass, slope, v0, until = 2.0, 0.5, 1.5, 1.0
    weight, grip = mass * 9.81 * np.sin(slope), friction * mass * 9.81 * np.cos(slope)
    rubs = dry(axis=grip)
    run = pl.simulate(slider(mass, slope), [0.1], [v0], until=until, forces=[rubs], method=RK4)
    to = [InitialState(), parameters.ForceParameter(rubs, "coefficients", "axis")]
    found = run.sensitivity([StateAt()], to)
    braking, release = (weight + grip) / mass, max(0.0, weight - grip) / mass
    stop, left = v0 / braking, until - v0 / braking
    # x = x0 + v0^2 / 2 b - r (T - v0 / b)^2 / 2
    by_v0 = v0 / braking + release * left / braking
    by_grip = -0.5 * stop**2 / mass - release * left * v0 / braking**2 / mass
    by_grip += 0.5 * left**2 / mass if release else 0.0
    assert found.matrix[0] == pytest.approx([1.0, by_v0, by_grip], rel=1e-8)


# -- with fixed steps: to rounding ------------------------------------------------------------


@pytest.mark.parametrize("method", ["heun", "rk4", "dopri5", "dop853", "radau5"])
def test_a_four_bar_with_a_lock_that_opens(method: str) -> None:
    robot, q = assembled("four-bar")
    v = pl.consistent_velocity(robot, q, {"crank": 3.0})
    steps = pl.MuntheKaas(method, step=1e-2)
    events = [pl.lock("crank", at=0.033), pl.unlock("crank", at=0.05)]

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot,
            *moved(robot, q, v, x),
            until=0.1,
            method=steps,
            stabilization=CLOSED,
            events=events,
        )

    check(simulate, [InitialState()])


def palletizer(x: Array, events: Sequence[Any], **options: Any) -> pl.Trajectory:
    robot = other_palletizer(PAYLOAD, x[-1:] if len(x) else np.zeros(1))
    q, v = moved(PALLETIZER, START, SPEED, x[:-1])
    return pl.simulate(
        robot,
        q,
        v,
        until=0.15,
        method=RK4,
        stabilization=CLOSED,
        events=events,
        losses=False,
        **options,
    )


def test_a_palletizer_that_locks_and_unlocks_by_guards() -> None:
    events = [
        pl.when(
            lambda t, q, v: q[PALLETIZER.coordinates("shoulder").q][0] - 0.35,
            pl.lock("wrist"),
            name="on",
        ),
        pl.when(
            lambda t, q, v: np.sin(q[PALLETIZER.coordinates("base_yaw").q][0]) + 0.3 * t - 0.12,
            pl.unlock("wrist"),
            name="off",
        ),
    ]
    found = check(lambda x: palletizer(x, events), [InitialState(), PAYLOAD], events=("on", "off"))
    assert found.sequence == ("on", "off") and not found.warnings
    assert abs(found.of("time of on", "initial shoulder")) > 1.0


def test_the_time_of_a_lock() -> None:
    def simulate(x: Array) -> pl.Trajectory:
        at = 0.042 + (x[0] if len(x) else 0.0)
        return palletizer(
            np.zeros(0), [pl.lock("shoulder", at=at), pl.unlock("shoulder", at=0.0733)]
        )

    found = check(simulate, [EventTime("lock shoulder")])
    assert np.abs(found.matrix).max() > 0.1


def in_space(name: str) -> tuple[pl.Mechanism, Array, Array]:
    """Robots with curved joints, of which projections move parts, and a state of each."""
    if name == "four-bar of free bodies":
        small, q = assembled("four-bar")
        robot = small.absolute("SE3")
        v = pl.consistent_velocity(small, q, {"crank": 3.0})
        return robot, *states.carried(small, q, v, robot)
    com, inertia = [0.3, 0.1, 0.2], (0.3, 0.2, 0.1)
    robot = {
        "heavy top": states.one_body("spherical", mass=2.0, com=com, inertia=inertia),
        "free body": states.one_body(mass=2.0, com=com, inertia=inertia),
        "rssr": states.robot("rssr"),
    }[name]
    q, v = states.moving(robot, 4)
    return robot, q, v if robot.loops else v + np.random.default_rng(2).normal(size=robot.nv)


@pytest.mark.parametrize("name", ["heavy top", "free body", "rssr", "four-bar of free bodies"])
def test_bodies_that_turn_in_space(name: str) -> None:
    """With one formulation all along: off closed loops in space another one is not the same."""
    robot, q, v = in_space(name)

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot, *moved(robot, q, v, x), until=0.05, method=RK4, stabilization=CLOSED,
            formulation=pl.Augmented(),
        )  # fmt: skip

    check(simulate, [InitialState()])


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_end_stops_of_a_robot_with_loops(e: float) -> None:
    shoulder = float(START[PALLETIZER.coordinates("shoulder").q.start])
    robot = with_ends(PALLETIZER, shoulder=(-2.0, shoulder + 0.06), wrist=(-0.03, 2.0))

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot, *moved(robot, START, SPEED, x), until=0.15, method=RK4, stabilization=CLOSED,
            limits=EndStops(e), losses=False,
        )  # fmt: skip

    names = ["upper limit of shoulder", "lower limit of wrist"]
    found = check(simulate, [InitialState()], 1e-7, names)
    assert set(names) <= set(found.sequence)


def test_what_rests_on_an_end_stop_is_let_go() -> None:
    """A pull that grows with time lifts a mass off its end stop; where, its stiffness decides."""
    robot = between(falling(), 0.0, 5.0)
    spring = pl.forces.JointSpring("joint", 40.0, 0.4)

    def simulate(x: Array) -> pl.Trajectory:
        h, v0, k = x if len(x) else np.zeros(3)
        own = replace(spring, stiffness=spring.stiffness + k)
        return pl.simulate(
            robot, [0.05 + h], [v0], until=1.0, method=RK4, limits=EndStops(0.0),
            tau=lambda t, q, v: [20.0 * t - 15.0], forces=[own],
        )  # fmt: skip

    found = check(simulate, [InitialState(), parameters.ForceParameter(spring, "stiffness")])
    assert len(found.sequence) == 2


def test_friction_that_sticks_and_slips_again() -> None:
    rubs, coarse = dry(axis=3.0), pl.MuntheKaas("rk4", step=2e-2)

    def simulate(x: Array) -> pl.Trajectory:
        q0, v0, f = x if len(x) else np.zeros(3)
        return pl.simulate(
            slider(2.0), [q0], [1.0 + v0], until=3.4, method=coarse,
            tau=lambda t, q, v: [5.0 * np.sin(4.0 * t) + q[0]], forces=[dry(axis=3.0 + f)],
        )  # fmt: skip

    to = [InitialState(), parameters.ForceParameter(rubs, "coefficients", "axis")]
    found = check(simulate, to, events=["axis sticks", "axis slides"])
    assert found.sequence == 2 * ("axis sticks", "axis slides") and not found.warnings


def test_friction_in_a_robot_with_loops() -> None:
    """Joints of the palletizer stick and slip, one that closes a loop, too."""
    rubs, coarse = dry(wrist=8.0, drive_loop=40.0, base_yaw=200.0), pl.MuntheKaas("rk4", step=1e-2)

    def simulate(x: Array) -> pl.Trajectory:
        f = float(x[0]) if len(x) else 0.0
        force = dry(wrist=8.0, drive_loop=40.0 + f, base_yaw=200.0)
        return pl.simulate(
            PALLETIZER, *moved(PALLETIZER, START, SPEED, x[1:]), until=0.2, method=coarse,
            stabilization=CLOSED, losses=False, forces=[force],
        )  # fmt: skip

    to = [parameters.ForceParameter(rubs, "coefficients", "drive_loop"), InitialState()]
    found = check(simulate, to, 1e-7)
    assert found.sequence == ("wrist sticks", "drive_loop sticks", "drive_loop slides")


def test_what_comes_to_rest_on_an_end_stop_while_something_else_sticks() -> None:
    """Friction and end stops are decided together, and what leaves leaves by both."""
    robot, rubs = between(falling(), -0.2, 5.0), dry(joint=2.0)

    def simulate(x: Array) -> pl.Trajectory:
        h, v0, f = x if len(x) else np.zeros(3)
        return pl.simulate(
            robot, [0.05 + h], [0.3 + v0], until=1.6, method=RK4, limits=EndStops(0.3),
            tau=lambda t, q, v: [9.81 + 6.0 * np.sin(4.0 * t + q[0])], forces=[dry(joint=2.0 + f)],
        )  # fmt: skip

    to = [InitialState(), parameters.ForceParameter(rubs, "coefficients", "joint")]
    run = simulate(np.zeros(0))
    assert run.modes[0].sticking or run.v[0].any()
    check(simulate, to, 1e-7)


@pytest.mark.parametrize("parameter", [INERTIA, ROTOR], ids=lambda x: type(x).__name__)
def test_parameters_through_a_lock(parameter: Any) -> None:
    chart, events = pl.linearize(PALLETIZER, START, SPEED).chart, [pl.lock("shoulder", at=0.04)]

    def simulate(x: Array) -> pl.Trajectory:
        robot = other_palletizer(parameter, x if len(x) else np.zeros(len(NOW[parameter])))
        at = replace(chart, equations=pl.EquationsOfMotion(pl.regularize(robot)))
        q, v = at.state(np.zeros(len(chart.names)))
        return pl.simulate(
            robot, q, v, until=0.08, method=RK4, stabilization=CLOSED, events=events, losses=False
        )

    check(simulate, [parameter], 1e-7, first=1e-3)


@pytest.mark.parametrize("value", [None, 0.8])
def test_momentum_that_is_kept_hangs_on_masses(value: float | None) -> None:
    """A start fits any value of its own; where one is given, rates follow it."""
    robot, q = states.robot("planar-3R"), np.array([0.4, 0.3, -0.5])
    row = pl.constraints.AngularMomentum((0.3, 0.1, 1.0), value)
    rows, mass = () if value is None else (row,), parameters.PointMass("c", (0.3, 0.1, 0.2))
    loaded, _ = parameters.with_parameters(robot, [(mass, 0.5)])
    start = moved(loaded, q, np.array([0.7, -0.2, 0.9]), np.zeros(0), rows=rows)
    chart = pl.linearize(loaded, *start, rows=rows).chart
    others = len(chart.names)

    def simulate(x: Array) -> pl.Trajectory:
        x = x if len(x) else np.zeros(others + 1)
        other, _ = parameters.with_parameters(robot, [(mass, 0.5 + x[others:])])
        at = replace(chart, equations=pl.EquationsOfMotion(other, rows=rows))
        return pl.simulate(
            other, *at.state(x[:others]), until=0.015, method=RK4, stabilization=CLOSED,
            events=[pl.lock("j3", at=0.005)], losses=False, rows=[row],
        )  # fmt: skip

    found = check(simulate, [InitialState(), mass])
    assert np.abs(found.matrix[:, others]).max() > 1e-3


@pytest.mark.parametrize("place", ["close/B", "close/A", "rocker"])
def test_where_joints_sit(place: str) -> None:
    """Independent coordinates start where they are, the others elsewhere."""
    robot, parameter = states.robot("rssr"), parameters.Placement(place)
    q, v = states.moving(robot, 4)
    chart = pl.linearize(robot, q, v).chart

    def simulate(x: Array) -> pl.Trajectory:
        other, _ = parameters.with_parameters(robot, [(parameter, x if len(x) else np.zeros(6))])
        at = replace(chart, equations=pl.EquationsOfMotion(other))
        return pl.simulate(
            other, *at.state(np.zeros(len(chart.names))), until=0.05, method=RK4,
            stabilization=CLOSED, formulation=pl.Augmented(), regularization=False,
        )  # fmt: skip

    check(simulate, [parameter], first=1e-3)


def test_energies_by_parameters_are_those_of_other_robots() -> None:
    equations = pl.EquationsOfMotion(PALLETIZER)
    for parameter in (PAYLOAD, INERTIA, ROTOR):

        def energy(x: Array, parameter: parameters.Parameter = parameter) -> Array:
            other = pl.EquationsOfMotion(other_palletizer(parameter, x))
            kinetic, potential, _ = other.energies(0.0, START, SPEED)
            return np.array(kinetic + potential)

        if parameter is INERTIA:  # cubic in its numbers: where it is
            continue
        found = parameter.energy_slopes(equations, 0.0, START, SPEED)
        wanted = difference(energy, len(found), first=2e-2)
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


@pytest.mark.parametrize("place", ["close/B", "rocker"])
def test_energies_by_places_are_the_work_of_moving_what_they_carry(place: str) -> None:
    """Gravity and a spring by their forces there; kinetic energy by ``v' d(M v) / 2``."""
    robot, parameter = states.robot("rssr"), parameters.Placement(place)
    (q, v), (a, b) = states.moving(robot, 4), robot.bodies[:2]
    if place == "close/B":  # where an end of the spring is, too
        a = place
    spring = pl.forces.Spring(a, (b, (0.3, 0.1, -0.2)), 70.0, 0.2)
    found = parameter.energy_slopes(pl.EquationsOfMotion(robot, forces=[spring]), 0.0, q, v)
    chain = joint_chain(robot, (place,))
    tree, rest = MovingTree(chain, q, v, 0.0 * v), 0.0 * v
    load, weight = (MovingTree(chain, q, rest, x).load_slopes()[0] for x in (v, rest))
    at = chain.moved[place].astype(int)
    wanted = 0.5 * chain.velocity(v) @ (load - weight)[:, at]
    data = chain.model.createData()
    wanted += pin.computeGeneralizedGravity(chain.model, data, chain.configuration(q))[at]
    near, far = (
        tree.point(robot.frame_id(a), np.zeros(3)),
        tree.point(robot.frame_id(b), np.array([0.3, 0.1, -0.2])),
    )
    between = far[0] - near[0]
    pull = 70.0 * (1.0 - 0.2 / np.linalg.norm(between)) * between
    wanted += pull @ (far[1] - near[1])[:, at]
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_points_energies_and_states_at_times_between_steps() -> None:
    steps, spring = pl.MuntheKaas("rk4", step=1e-2), pl.forces.JointSpring("elbow", 300.0, 0.1)
    at = 0.0773  # inside a step, after the lock
    of = [PointAt("tool0", (0.0, 0.1, 0.2), t=at), EnergyAt(at), StateAt(at)]
    to = [InitialState(), parameters.ForceParameter(spring, "stiffness")]

    def simulate(x: Array, until: float = 0.1) -> pl.Trajectory:
        x = x if len(x) else np.zeros(9)
        return pl.simulate(
            PALLETIZER, *moved(PALLETIZER, START, SPEED, x[:-1]), until=until, method=steps,
            stabilization=CLOSED, events=[pl.lock("wrist", at=0.05)], losses=False,
            forces=[replace(spring, stiffness=spring.stiffness + x[-1])],
        )  # fmt: skip

    def outcomes(x: Array) -> Array:
        run = simulate(x, at)  # whose last step ends there
        place = PALLETIZER.placement(run.q[-1], "tool0") * np.array([0.0, 0.1, 0.2])
        kinetic, potential, stored = run.equations[-1].energies(at, run.q[-1], run.v[-1])
        return np.concatenate([
            place, [kinetic + potential + sum(stored.values())], run.q[-1], run.v[-1]
        ])  # fmt: skip

    run = simulate(np.zeros(0))
    found = run.sensitivity(of, to)
    np.testing.assert_allclose(found.values, outcomes(np.zeros(0)), rtol=0.0, atol=1e-8)
    wanted = difference(outcomes, 9, 4e-3).T
    size = np.maximum(1.0, np.abs(wanted).max(axis=1))[:, None]
    np.testing.assert_allclose(found.matrix / size, wanted / size, rtol=0.0, atol=1e-7)
    assert found.row_units[:4] == ("m", "m", "m", "J") and found.rows[0] == "tool0: x at 0.0773 s"


# -- rows that are not holonomic, or move -----------------------------------------------------


@pytest.mark.parametrize("ends", [False, True])
def test_a_crank_that_is_driven(ends: bool) -> None:
    """A prescribed motion, which depends on time, and a lock or an end at a time that changes."""
    robot, q = assembled("five-bar")
    joint = robot.joints[0]
    at = float(q[robot.coordinates(joint).q.start])

    def motion(t: float) -> tuple[float, float, float]:
        return at + 0.2 * np.sin(5.0 * t), np.cos(5.0 * t), -5.0 * np.sin(5.0 * t)

    rows = [pl.constraints.Prescribed(joint, motion)]
    v = pl.consistent_velocity(robot, q, {joint: 1.0})

    def value(t: float, q: Array, v: Array) -> float:
        return float(np.sin(v[2]) + 0.5 * v[0] + q[0] - 1.15)

    lock = pl.when(value, pl.lock("m2"), name="on")
    guard = pl.stop_when(value, name="on") if ends else lock

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot, *moved(robot, q, v, x, rows=rows), until=0.2, method=RK4, stabilization=CLOSED,
            rows=rows, events=[guard], losses=False,
        )  # fmt: skip

    check(simulate, [InitialState()], 1e-7, ["on"])


def test_a_ball_that_rolls() -> None:
    robot = states.robot("double-pendulum")
    rolling = pl.constraints.Rolling(robot.description.bodies[-1].name, 0.1)
    equations = pl.EquationsOfMotion(robot, rows=[rolling])
    q = robot.neutral
    J = equations.terms(0.0, q, np.zeros(robot.nv))[0]
    v = states.allowed(J) @ np.ones(states.allowed(J).shape[1])

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot, *moved(robot, q, v, x, rows=[rolling]), until=0.1, method=RK4,
            stabilization=CLOSED, rows=[rolling],
        )  # fmt: skip

    check(simulate, [InitialState()], 1e-7)


@pytest.mark.parametrize("coordinates", ["mass", ["rocker", "elbow"]])
def test_other_projections(coordinates: Any) -> None:
    robot, q = assembled("four-bar")
    v = pl.consistent_velocity(robot, q, {"crank": 3.0})
    closed = pl.Projection(1e-14, coordinates)

    def simulate(x: Array) -> pl.Trajectory:
        return pl.simulate(
            robot, *moved(robot, q, v, x), until=0.1, method=RK4, stabilization=closed
        )

    check(simulate, [InitialState()])


# -- adaptive steps ---------------------------------------------------------------------------


def test_steps_that_are_chosen() -> None:
    """As accurate as the run; the steps of neighbours are others."""
    fine = pl.MuntheKaas(rtol=1e-11, atol=1e-11)
    shoulder = PALLETIZER.coordinates("shoulder").q.start
    events = [pl.when(lambda t, q, v: q[shoulder] - 0.36, pl.lock("wrist"), name="on")]

    def simulate(x: Array, method: pl.MuntheKaas = fine) -> pl.Trajectory:
        return pl.simulate(
            PALLETIZER, *moved(PALLETIZER, START, SPEED, x), until=0.15, method=method,
            events=events, losses=False,
        )  # fmt: skip

    check(simulate, [InitialState()], 1e-6, ["on"])
    default = simulate(np.zeros(0), pl.MuntheKaas()).sensitivity([StateAt()], [InitialState()])
    tight = simulate(np.zeros(0)).sensitivity([StateAt()], [InitialState()])
    np.testing.assert_allclose(default.matrix, tight.matrix, atol=1e-6)


def test_steps_that_became_implicit() -> None:
    """A stiff spring and damper on one joint of two."""
    robot = two_links()
    q, joint = robot.neutral, robot.joints[-1]
    fine = pl.MuntheKaas(rtol=1e-10, atol=1e-10)
    stiff = [pl.forces.JointSpring(joint, 1e6, 0.0), pl.forces.JointDamping({joint: 3e3})]

    def simulate(x: Array) -> pl.Trajectory:
        x = x if len(x) else np.zeros(2 * robot.nv)
        at = pin.integrate(robot.model, q, x[: robot.nv])
        return pl.simulate(robot, at, x[robot.nv :], until=0.3, forces=stiff, method=fine)

    accuracy = simulate(np.zeros(0)).accuracy
    assert accuracy and accuracy.switched
    check(simulate, [InitialState()], 1e-6)


# -- what is said -----------------------------------------------------------------------------


def test_what_happens_at_one_instant_or_hardly_is_said() -> None:
    robot = slider(2.0)
    spring = [pl.forces.JointSpring("axis", 50.0, 0.0)]

    def run(level: float, *more: Any) -> Any:
        events = [pl.when(lambda t, q, v: q[0] - level, pl.lock("axis"), 1, name="on"), *more]
        steps = pl.MuntheKaas("rk4", step=1e-2)
        done = pl.simulate(
            robot, [0.0], [1.0], until=0.5, forces=spring, events=events, method=steps
        )
        return done.sensitivity([StateAt()], [InitialState()])

    top = float(np.sqrt(2.0 / 50.0))  # 0.2 m
    assert not run(0.15).warnings
    (hardly,) = run(top - 1e-8).warnings
    assert hardly.startswith("'on' at t = 0.31") and "hardly" in hardly
    (nearly,) = run(top + 1e-5).warnings
    assert nearly.startswith("'on' nearly happens at t = 0.31")
    twice = run(0.15, pl.stop_when(lambda t, q, v: 2.0 * q[0] - 0.3, name="off"))
    assert "happen together" in twice.warnings[0]


def test_how_far_inputs_may_change_until_events_coincide() -> None:
    """A carriage passes 0.1 m at 0.1 s and stops the other one; its own brake comes at 0.15 s."""
    events = [pl.when(lambda t, q, v: q[1] - 0.1, pl.lock("a"), name="on"), pl.lock("b", at=0.15)]

    def simulate(x: float) -> pl.Trajectory:
        return pl.simulate(carriages(2.0, 3.0), [0, x], [0.5, 1], until=0.4, events=events)

    s = simulate(0.0).sensitivity([StateAt(), EventTime("on")], [InitialState()])
    for column in ("initial a", "initial d a"):
        free = s.range_of(column)
        assert (free.lower, free.upper) == (-np.inf, np.inf)
    ahead = s.range_of("initial b")
    assert (ahead.lower, ahead.upper) == pytest.approx((-0.05, 0.1))
    assert ahead.below == "'on' and 'lock b' come together" and "the start" in ahead.above
    assert s.range_of("initial d b").lower == pytest.approx(-0.5)  # t = 0.1 (1 - d), to first order
    same = s.replay(simulate, "initial b", 0.9 * ahead.lower)
    assert same.same and not same.note
    np.testing.assert_allclose(same.values, same.predicted, atol=1e-12)
    np.testing.assert_allclose(same.differences, s.matrix[:, 1], atol=1e-11)
    other = s.replay(simulate, "initial b", 1.1 * ahead.lower)
    assert not other.same and np.isnan(other.values[-1])
    assert "event 1 is 'lock b', was 'on'; differences across that are no" in other.note
    assert "was 'on'" in str(other) and "up to" in str(s)


def test_how_far_inputs_may_change_until_guards_are_reached_or_missed() -> None:
    """A mass on a spring gets 0.2 m far, by ``v0 / 5``."""
    spring = [pl.forces.JointSpring("axis", 50.0, 0.0)]

    def ranges(level: float, forces: Sequence[Any] = spring) -> Sequence[Any]:
        event = pl.when(lambda t, q, v: q[0] - level, pl.lock("axis"), 1, name="on")
        steps = pl.MuntheKaas("rk4", step=1e-3)
        run = pl.simulate(
            slider(2.0), [0], [1], until=0.5, forces=forces, events=[event], method=steps
        )
        sensitivity: Sensitivity = run.sensitivity([StateAt()], [InitialState()])
        return sensitivity.ranges

    missed = ranges(0.199)[1]
    assert missed.lower == pytest.approx(-0.005, rel=0.03) and "does not happen" in missed.below
    reached = ranges(0.201)[1]
    assert reached.upper == pytest.approx(0.005, rel=1e-3) and reached.lower == -np.inf
    assert reached.above == "'on' happens at t = 0.31425 s"
    # Without the spring it has come 0.5 m at the end.
    place, speed = ranges(0.6, [])
    assert (place.upper, speed.upper) == pytest.approx((0.1, 0.2))
    # Before its start another event lies at hand.
    assert ranges(-0.02, [])[0].lower == pytest.approx(-0.02)


def test_what_hangs_on_an_input_by_rounding_alone_limits_it_nowhere() -> None:
    margins = (Margin("a", 0.1, ()), Margin("b", 0.2, ()))
    first, second, third = input_ranges(margins, np.array([[2.0, 1e-15, 0], [1e-17, 0, np.nan]]))
    assert (first.lower, first.upper) == pytest.approx((-0.05, np.inf))
    for nowhere in (second, third):
        assert (nowhere.lower, nowhere.upper, nowhere.below) == (-np.inf, np.inf, "")
    lines = without_rounding(np.array([[3.0, -1e-12, -1e-11], [0.0, 1e-20, 0.0]]))
    np.testing.assert_array_equal(lines, [[3.0, 0.0, -1e-11], [0.0, 1e-20, 0.0]])


def test_runs_that_have_no_sensitivities_say_why() -> None:
    robot, q, v = slider(2.0), [0.0], [1.0]
    run = pl.simulate(robot, q, v, until=0.1, events=[pl.lock("axis", at=0.05)])
    of, to = [StateAt()], [InitialState()]
    assert run.sensitivity(of, to).of("axis", "initial axis") == pytest.approx(1.0)
    few = pl.simulate(robot, q, v, until=0.1, save_every=0.05)
    other: Any = "backward"
    idle = parameters.ForceParameter(pl.forces.JointSpring("axis", 1.0, 0.0), "stiffness")
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: pickle.loads(pickle.dumps(run)).sensitivity(of, to), "simulate it again"),
        (lambda: few.sensitivity(of, to), "without save_every"),
        (lambda: run.sensitivity([], to), "of is"),
        (lambda: run.sensitivity(of, [StateAt()]), "to has StateAt"),
        (lambda: run.sensitivity([StateAt(0.2)], to), "outside the run"),
        (lambda: run.sensitivity([EventTime("kick")], to), "'kick' happens 0 times"),
        (lambda: run.sensitivity(of, [EventTime("kick")]), "'kick'"),
        (lambda: run.sensitivity(of, [idle]), "JointSpring"),
        (lambda: run.sensitivity(of, to).of("elbow", "initial axis"), r"no outcome .* 'elbow'"),
        (lambda: run.sensitivity(of, to, order=other), "order"),
    ]
    for wrong, message in cases:
        with pytest.raises(pl.PinloopError, match=message):
            wrong()
    assert "initial axis" in str(run.sensitivity(of, to))


def test_reactions_that_are_not_unique_let_go_at_no_certain_instant() -> None:
    """Two locks by friction in one loop of a four-bar share its load as they like."""
    robot, q = assembled("four-bar")
    rubs = dry(crank=3.0, elbow=3.0, rocker=3.0)
    run = pl.simulate(
        robot, q, until=1.0, tau=lambda t, q, v: [20.0 * t, 0.0, 0.0], forces=[rubs],
        losses=False, method=pl.MuntheKaas("rk4", step=1e-2),
    )  # fmt: skip
    assert run.slips
    with pytest.raises(pl.BadValue, match="not unique"):
        run.sensitivity([StateAt()], [parameters.PointMass("coupler")])
