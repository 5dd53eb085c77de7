"""Physics of dry friction in runs: closed forms, all combinations of stick and slip, balances."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.simulation.modes import AxisFriction

from .. import screw_tables as tables
from ..mechanisms import gear_pair
from ..random_linkages import parallel_mechanism
from ..safety.stopping.robots_to_stop import (
    G,
    brakes,
    carriages,
    made,
    pendulum,
    slider,
    solid,
    train,
    two_links,
)
from ..screw_tables import Array, joint
from ..states import moving, one_body, robot

TIGHT = pl.MuntheKaas(rtol=1e-11, atol=1e-11)
Forces = list[pl.forces.Force]


def dry(**coefficients: float) -> pl.forces.JointFriction:
    return pl.forces.JointFriction(coefficients=coefficients)


def states_after(run: pl.Trajectory, t: float) -> tuple[Array, Array]:
    late = run.t >= t
    return run.q[late], run.v[late]


def closes(run: pl.Trajectory, tolerance: float = 1e-8) -> bool:
    return bool(np.abs(run.energy().error).max() <= tolerance)


# -- one axis in closed form --------------------------------------------------------------------


@pytest.mark.parametrize("method", [TIGHT, pl.MuntheKaas("rk4", step=0.013)])
@pytest.mark.parametrize(("friction", "holds"), [(0.6, True), (0.4, False)])
def test_a_block_on_an_incline(method: pl.MuntheKaas, friction: float, holds: bool) -> None:
    """It stops where the closed form says, and stays if friction holds it, else slides back."""
    mass, slope, v0 = 2.0, 0.5, 1.5
    weight = mass * G * np.sin(slope)
    f = friction * mass * G * np.cos(slope)
    assert holds == (f > weight)
    run = pl.simulate(
        slider(mass, slope), [0.1], [v0], until=1.0, forces=[dry(axis=f)], method=method
    )
    braking, release = (weight + f) / mass, max(0.0, weight - f) / mass
    stop = v0 / braking
    top = 0.1 + 0.5 * v0 * stop
    at_top = int(np.argmax(run.q[:, 0]))
    assert run.t[at_top] == pytest.approx(stop, abs=1e-9)
    assert run.q[at_top, 0] == pytest.approx(top, abs=1e-9)
    assert run.q[-1, 0] == pytest.approx(top - 0.5 * release * (1.0 - stop) ** 2, abs=1e-9)
    assert closes(run)
    if holds:
        q, v = states_after(run, stop + 1e-8)
        assert len(set(q[:, 0])) == 1  # not by the last bit
        assert not v.any()
        assert [name for _, name in run.slips] == ["axis sticks"]
        assert run.modes[-1].sticking == ("axis",)


def test_what_is_at_rest_below_the_limit_stays_to_the_last_bit() -> None:
    machine = pendulum()
    q = [0.3]
    load = 2.0 * G * 0.5 * np.cos(0.3)
    held = pl.simulate(machine, q, until=10.0, forces=[dry(axis=1.0001 * load)])
    assert (held.q == 0.3).all()
    assert not held.v.any()
    assert len(held.t) < 20
    falls = pl.simulate(machine, q, until=0.1, forces=[dry(axis=0.9999 * load)])
    assert falls.q[-1, 0] < 0.3 - 1e-7


def test_a_slider_on_a_spring_loses_the_same_amplitude_in_each_half_swing() -> None:
    """``x -> -x + 2 f / k`` per half swing of duration ``pi / w``, until ``k |x| <= f``."""
    mass, k, f, x = 1.5, 60.0, 2.0, 0.5
    run = pl.simulate(
        slider(mass),
        [x],
        until=4.0,
        forces=[pl.forces.JointSpring("axis", k), dry(axis=f)],
        method=TIGHT,
    )
    half, t = np.pi / np.sqrt(k / mass), 0.0
    while k * abs(x) > f:
        t, x = t + half, -(x - np.sign(x) * 2 * f / k)
        assert run(t).q[0] == pytest.approx(x, abs=1e-8)
        assert run(t).v[0] == pytest.approx(0.0, abs=1e-6)
    q, v = states_after(run, t + 1e-6)
    assert (q == q[0]).all()
    assert not v.any()
    assert closes(run)
    assert run.energy().work["joint friction"][-1] == pytest.approx(0.5 * k * (x**2 - 0.25))


def test_a_pendulum_swings_by_its_energy() -> None:
    """At each rest, potential energy plus what friction took over the path is conserved."""
    mass, length, f = 2.0, 0.5, 0.7
    run = pl.simulate(pendulum(), [0.0], until=6.0, forces=[dry(axis=f)], method=TIGHT)
    turns = [k for k in range(1, len(run.t) - 1) if run.v[k, 0] == 0.0]
    angles = [0.0]
    for k in turns:
        angle = float(run.q[k, 0])
        if abs(angle - angles[-1]) > 1e-6:
            lost = f * abs(angle - angles[-1])
            fallen = mass * G * length * (np.sin(angles[-1]) - np.sin(angle))
            assert fallen == pytest.approx(lost, abs=1e-8)
            angles.append(angle)
    assert len(angles) > 4


def test_a_torque_that_grows_releases_at_its_instant() -> None:
    """A ramp passes the friction exactly when it should, also in one long step."""
    run = pl.simulate(
        slider(2.0),
        [0.0],
        until=2.0,
        forces=[pl.forces.Torque("axis", lambda t: 3.0 * t), dry(axis=2.4)],
        method=TIGHT,
    )
    ((t, what),) = run.slips
    assert t == pytest.approx(0.8, abs=1e-9)
    assert what == "axis slides"
    assert run.q[-1, 0] == pytest.approx(3.0 * 1.2**3 / 12.0, abs=1e-9)


@pytest.mark.parametrize(("peak", "width"), [(0.125, 0.05), (0.16, 0.03)])
def test_a_push_that_peaks_inside_a_step_releases(peak: float, width: float) -> None:
    """At both ends of the step, and in its middle, friction holds it."""
    push = pl.forces.Torque("axis", lambda t: 1.02 * np.exp(-(((t - peak) / width) ** 2)))
    method = pl.MuntheKaas("rk4", step=0.1)
    run = pl.simulate(slider(2.0), [0.0], until=0.3, forces=[push, dry(axis=1.0)], method=method)
    t, what = run.slips[0]
    assert what == "axis slides"
    assert t == pytest.approx(peak - width * np.sqrt(np.log(1.02)), abs=1e-9)


def test_a_rotor_that_turns_twice_in_a_step_shakes_its_carriage_loose() -> None:
    """Its force along the rail is nothing at the ends of the step, and in its middle."""
    mass, e, turns = 1.0, 0.01, 2
    w = 2 * np.pi * turns / 0.1
    machine = made(
        [solid("carriage", 2.0), solid("rotor", mass, [e, 0, 0])],
        [
            joint("axis", "prismatic", GROUND, "carriage", [0, 0, 0], [1, 0, 0]),
            joint("spin", "revolute", "carriage", "rotor", [0, 0, 0], [0, 0, 1]),
        ],
    )
    most = mass * e * w**2
    method = pl.MuntheKaas("rk4", step=0.1)
    friction = dry(axis=0.6 * most)
    run = pl.simulate(
        machine, [0.0, np.pi / 2], [0.0, w], until=0.1, forces=[friction], method=method
    )
    t, what = run.slips[0]
    assert what == "axis slides"
    assert t == pytest.approx(np.arcsin(0.6) / w, abs=1e-9)


# -- several axes -------------------------------------------------------------------------------


def by_brute_force(M: Array, f: Array, limit: Array, v: Array) -> list[int]:
    """Of all combinations of stick and slip the one that fits."""
    fits = []
    for signs in product((-1, 0, 1), repeat=len(v)):
        s = np.array(signs)
        if (s * v < 0).any() or ((v != 0) & (s == 0)).any():
            continue
        free = np.flatnonzero(s)
        a = np.zeros(len(v))
        a[free] = np.linalg.solve(M[np.ix_(free, free)], (f - s * limit)[free])
        torque = M @ a - f
        sticks = (s == 0) & (np.abs(torque) <= limit)
        slides = (s != 0) & ((v != 0) | (s * a > 0))
        if (sticks | slides).all():
            fits.append([int(x) for x in signs])
    (one,) = fits
    return one


@pytest.mark.parametrize("seed", range(12))
def test_who_sticks_is_who_can(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masses = rng.uniform(0.5, 3.0, 4)
    machine = train(*masses)
    M = np.array([[masses[max(i, j) :].sum() for j in range(4)] for i in range(4)])
    f, limit = rng.normal(size=4) * 4.0, rng.uniform(0.2, 4.0, 4)
    v = rng.normal(size=4) * rng.integers(0, 2, 4)
    names = machine.joints
    run = pl.simulate(
        machine,
        np.zeros(4),
        v,
        until=1e-6,
        forces=[
            dry(**dict(zip(names, limit, strict=True))),
            *(pl.forces.Torque(name, x) for name, x in zip(names, f, strict=True)),
        ],
    )
    expected = by_brute_force(M, f, limit, v)
    assert run.modes[0].friction == tuple(
        AxisFriction(name, "", s) for name, s in zip(names, expected, strict=True)
    )


def test_a_chain_that_sticks_as_a_whole_is_one_body() -> None:
    """Only its first joint slides: the others follow as if they were welded."""
    machine = train(1.0, 2.0, 3.0)
    strong = dry(a=0.5, b=50.0, c=50.0)
    run = pl.simulate(machine, np.zeros(3), [2.0, 0.0, 0.0], until=1.0, forces=[strong])
    assert not run.q[:, 1:].any()
    assert run.q[-1, 0] == pytest.approx(2.0 - 0.5 * 0.5 / 6.0, abs=1e-9)


def test_smoothed_friction_converges_to_it() -> None:
    machine = two_links()
    start = [0.2, -0.4], [1.0, -2.0]
    names = {"j1": 6.0, "j2": 2.0}
    exact = pl.simulate(machine, *start, until=0.6, forces=[dry(**names)], method=TIGHT)
    errors = []
    for speed in (1e-1, 1e-2, 1e-3):
        smoothed = pl.forces.JointFriction(speed, names)
        run = pl.simulate(machine, *start, until=0.6, forces=[smoothed])
        errors.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < 0.3 * errors[1]
    assert errors[2] < 1e-3


# -- loops, cut joints, absolute coordinates ----------------------------------------------------


def test_all_formulations_and_absolute_coordinates_agree() -> None:
    machine = robot("four-bar")
    names = {"crank": 0.4, "rocker": 0.3}
    q, _ = moving(machine, 1)
    ends = []
    for form in (None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()):
        run = pl.simulate(
            machine, q, until=1.2, forces=[dry(**names)], formulation=form, method=TIGHT
        )
        assert closes(run)
        ends.append((run.q[-1], len(run.slips)))
    for end, count in ends[1:]:
        assert np.allclose(end, ends[0][0], atol=1e-8)
        assert count == ends[0][1]


def test_redundant_friction_holds_together() -> None:
    """In a four-bar all joints share the load: it slips where the sum of what they give ends."""
    machine = robot("four-bar")
    q, _ = moving(machine, 1)
    rates = pl.EquationsOfMotion(machine).closure(0.0, q)[0]
    u = np.linalg.svd(rates)[2][-1]
    still = np.zeros(machine.nv)
    _, f, *_ = pl.EquationsOfMotion(machine).system(0.0, q, still)
    share = abs(u @ f) / np.abs(u).sum()
    for factor, moves in ((1.001, False), (0.999, True)):
        forces = [dry(**dict.fromkeys(machine.joints, factor * share))]
        run = pl.simulate(machine, q, until=0.05, forces=forces)
        assert bool(run.v.any()) == moves


@pytest.mark.parametrize("ratio", [-0.25, -1e-3])
def test_a_gear_gives_in_in_one_step_to_its_instant(ratio: float) -> None:
    """Pinion and wheel share the load, whose rounding is far larger at one than at the other."""
    table = gear_pair()
    table["couplings"][0] |= {"ratio": ratio, "offset": 0.0}
    machine = tables.build(table)
    push = pl.forces.Torque("pinion", lambda t: 3.0 * t + 2.0 * t**3)
    friction = dry(pinion=1.0, wheel=0.5 / abs(ratio))
    run = pl.simulate(machine, [0.0, 0.0], until=1.0, forces=[push, friction])
    due = brentq(lambda t: 3.0 * t + 2.0 * t**3 - 1.5, 0.0, 1.0)
    assert sorted(what for _, what in run.slips) == ["pinion slides", "wheel slides"]
    assert [t for t, _ in run.slips] == pytest.approx([due, due], abs=1e-9)
    assert not ((due - 1e-2 < run.t) & (run.t < due - 1e-8)).any()


def test_a_gear_that_gives_in_leaves_another_at_rest() -> None:
    """The other one holds, though its pinion could not do so with an equal share of the load."""
    one, other = gear_pair(), gear_pair()
    renamed = {"name": "second", "joint": "wheel 2", "source": "pinion 2"}
    table = one | {
        "bodies": one["bodies"] + [b | {"name": b["name"] + " 2"} for b in other["bodies"]],
        "joints": one["joints"]
        + [j | {"name": j["name"] + " 2", "child": j["child"] + " 2"} for j in other["joints"]],
        "couplings": one["couplings"] + [other["couplings"][0] | renamed],
    }
    machine = tables.build(table)
    pushes = [pl.forces.Torque("pinion", lambda t: 3.0 * t), pl.forces.Torque("pinion 2", 1.2)]
    friction = dry(**{"pinion": 1.0, "wheel": 2.0, "pinion 2": 1.0, "wheel 2": 2.0})
    run = pl.simulate(machine, pl.assemble(machine), until=1.0, forces=[*pushes, friction])
    assert {what for _, what in run.slips} == {"pinion slides", "wheel slides"}
    assert [t for t, _ in run.slips] == pytest.approx([0.5, 0.5], abs=1e-9)


def test_what_slides_drags_along_what_holds_redundantly() -> None:
    """A rotor slows down on the shaft of a pinion: its friction adds to the load of the gear."""
    table = gear_pair()
    rotor = solid("rotor", 1.0) | {"inertia": 5.0 * np.eye(3)}
    spin = joint("spin", "revolute", "pinion", "rotor", [0, 0, 0], [0, 0, 1])
    table |= {"bodies": [*table["bodies"], rotor], "joints": [*table["joints"], spin]}
    machine = tables.build(table)
    push = pl.forces.Torque("pinion", lambda t: 3.0 * t)
    friction = dry(pinion=1.0, wheel=2.0, spin=0.4)
    q, v = pl.assemble(machine), np.zeros(machine.nv)
    v[machine.coordinates("spin").v] = 50.0
    run = pl.simulate(machine, q, v, until=0.6, forces=[push, friction])
    assert [t for t, _ in run.slips] == pytest.approx(2 * [1.1 / 3.0], abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_legs_that_stick_are_as_if_locked(seed: int) -> None:
    """Four axes hold a platform in two ways while its third leg moves: no step is shorter for it.

    Inside a step loops are closed but for its error, which those that stick must not feel.
    """
    machine = tables.build(parallel_mechanism(193))
    q, v = moving(machine, seed, speed=1.0)
    locks = ["l1j0", "l2j0"]
    v = v + pl.EquationsOfMotion(machine, locks=locks).jump(0.0, q, v).a
    friction = dry(l1j0=5.0, l1j1=50.0, l1j2=0.5, l2j0=20.0)
    run = pl.simulate(machine, q, v, until=0.6, forces=[friction])
    locked = pl.simulate(machine, q, v, until=0.6, mode=pl.Mode(locks))
    assert not run.slips
    assert len(run.t) <= len(locked.t) + 3
    assert np.allclose(run.q[-1], locked.q[-1], atol=1e-7)


@pytest.mark.parametrize("friction", [0.5, 5.8])
def test_an_axis_that_its_loops_hold_does_not_come_loose(friction: float) -> None:
    """Its pose is nearly singular: reactions, and their rounding, are 400 times the loads."""
    machine = tables.build(parallel_mechanism(6001))
    q, v = moving(machine, 6001, speed=0.22)
    run = pl.simulate(machine, q, v, until=0.3, forces=[dry(l0j3=friction)])
    assert not run.slips
    assert len(run.t) < 20


# -- besides locks, end stops, other runs -------------------------------------------------------


def test_a_lock_closes_on_an_axis_that_sticks() -> None:
    machine = two_links()
    run = pl.simulate(
        machine,
        [0.2, 0.3],
        until=0.5,
        forces=[dry(j1=1.0, j2=100.0)],
        events=[pl.lock("j2", at=0.1), pl.unlock("j2", at=0.3)],
        method=TIGHT,
    )
    assert (run.q[:, 1] == 0.3).all()
    assert [str(change.after) for change in run.transitions] == ["lock:j2", "free"]
    assert all(change.energy_loss == 0.0 for change in run.transitions)
    locked = [mode for mode in run.modes if mode.locks]
    assert [lock.label for mode in locked for lock in mode.locks] == ["lock:j2"]
    assert closes(run)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("slope", "holds"), [(0.4, False), (0.08, True)])
def test_an_end_stop_and_friction(slope: float, holds: bool, side: int) -> None:
    """A carriage hits its end at v^2 = v0^2 + 2 a s; then the stop holds what friction cannot."""
    mass, f = 2.0, 3.0
    description = slider(mass, -side * slope).description
    lower, upper = sorted((-1.0 * side, 0.3 * side))
    rail = replace(description.joints[0], lower=(lower,), upper=(upper,))
    machine = build(replace(description, joints=(rail,)))
    run = pl.simulate(
        machine, [0.0], [3.0 * side], until=1.0, forces=[dry(axis=f)], limits="end stop",
        method=TIGHT,
    )  # fmt: skip
    a, load = G * np.sin(slope) - f / mass, mass * G * np.sin(slope)
    assert run.transitions[0].v_minus[0] ** 2 == pytest.approx(9.0 + 2 * a * 0.3, rel=1e-9)
    assert run.q[-1, 0] == pytest.approx(0.3 * side, abs=1e-9)
    assert (load < f) == holds == (run.modes[-1].sticking == ("axis",))
    if not holds:
        reaction = run.reactions("lock:axis")
        assert isinstance(reaction, pl.simulation.LockReaction)
        assert reaction.effort[-1, 0] == pytest.approx(-side * (load - f), rel=1e-9)
    assert closes(run)


def test_an_end_stop_lets_go_where_friction_gives_in() -> None:
    """A torque away from the stop that grows: it must pass what friction holds, not zero."""
    description = slider(2.0).description
    rail = replace(description.joints[0], lower=(0.0,), upper=(1.0,))
    machine = build(replace(description, joints=(rail,)))
    pull = pl.forces.Torque("axis", lambda t: 10.0 * t - 4.0)
    run = pl.simulate(
        machine, [0.0], until=1.0, forces=[pull, dry(axis=3.0)], limits="end stop", method=TIGHT
    )
    away = float(run.t[np.argmax(run.q[:, 0] > 0.0) - 1])
    assert away == pytest.approx(0.7, abs=1e-6)
    assert run.q[-1, 0] == pytest.approx(10.0 * 0.3**3 / 12.0, abs=1e-9)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize(("v", "push"), [(0.0, 1.0), (0.0, 2.0), (1.0, 1.0)])
def test_an_end_stop_feels_the_friction_of_other_joints(v: float, push: float, way: int) -> None:
    """Carriage b stays at its end on carriage a, which sticks, or is braked by its friction."""
    description = train(1.0, 1.0).description
    ends = {"a": sorted((0.0, 9.0 * way)), "b": sorted((-1.0 * way, 0.0))}
    joints = tuple(
        replace(x, lower=(ends[x.name][0],), upper=(ends[x.name][1],)) for x in description.joints
    )
    machine = build(replace(description, joints=joints))
    pushes = [pl.forces.Torque("a", way * push), pl.forces.Torque("b", way * 0.5)]
    run = pl.simulate(
        machine, [0.0, 0.0], [way * v, 0.0], until=0.1, forces=[*pushes, dry(a=3.0)],
        limits="end stop", method=TIGHT,
    )  # fmt: skip
    assert not run.q[:, 1].any()
    assert run.q[-1, 0] == pytest.approx(way * (0.1 * v - v * 0.5 * 0.01), abs=1e-9)
    reaction = run.reactions("lock:b")
    assert isinstance(reaction, pl.simulation.LockReaction)
    assert reaction.effort[-1, 0] == pytest.approx(way * (-0.5 - v), abs=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_a_loop_comes_loose_at_its_instant(way: int) -> None:
    """A crank whose loop makes it far lighter or heavier than it is by itself."""
    machine = robot("four-bar")
    q, _ = moving(machine, 1)
    still = np.zeros(machine.nv)
    equations = pl.EquationsOfMotion(machine, locks=["crank"])
    hold = equations.motion(0.0, q, still)
    load = -float(hold.multipliers[equations.rows.labels.index("lock:crank")])
    push = pl.forces.Torque("crank", lambda t: way * 5.0 * t)
    f = abs(load) + 1.0
    run = pl.simulate(machine, q, until=3.0, forces=[push, dry(crank=f)], method=TIGHT)
    t, what = run.slips[0]
    assert what == "crank slides"
    assert t == pytest.approx((f - way * load) / 5.0, abs=1e-8)
    assert np.sign(run(t + 1e-3).v[machine.coordinates("crank").v.start]) == way


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
@pytest.mark.parametrize("name", ["four-bar", "rssr", "slider-crank"])
def test_a_load_that_hardly_grows_does_not_chatter(name: str, method: str) -> None:
    """It passes its bound by rounding for a long time, with accelerations below their own.

    The four-bar is next to a dead point: it moves its rocker a ten-thousandth as much as the rocker
    alone would move, and its load changes by 1e-7 N m with the rounding of the pose. In the end the
    load grows for good.
    """
    machine, joint = robot(name), {"four-bar": "rocker", "rssr": "crank"}.get(name, "slide")
    q, _ = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine, locks=[joint])
    hold = equations.motion(0.0, q, np.zeros(machine.nv))
    load = -float(hold.multipliers[equations.rows.labels.index(f"lock:{joint}")])
    f, column = abs(load) + 1.0, machine.coordinates(joint).v.start
    away = pl.stop_when(lambda t, q, v: v[column] - 1e-8, 1)
    for rate in 10.0 ** np.arange(-9.0, 0.5, 0.5):

        def growing(t: float, rate: float = float(rate)) -> float:
            return f - load + rate * (t - 0.5) + float(np.exp(80.0 * (t - 1.0)))

        push = pl.forces.Torque(joint, growing)
        forces = [push, dry(**{joint: f})]
        run = pl.simulate(
            machine, q, until=1.0, forces=forces, events=[away], method=pl.MuntheKaas(method)
        )
        told = [what for _, what in run.slips]
        # A load that grows by less than rounding moves it may let go, hold again, and let go.
        rounded = name == "four-bar" and rate < 1e-5
        assert told[::2] == [f"{joint} slides"] * (2 if rounded and len(told) == 3 else 1)
        assert len(told) == 1 or told[1] == f"{joint} sticks"
        assert run.v[-1, column] == pytest.approx(1e-8, rel=0.1)


def test_saved_runs_say_what_stuck(tmp_path: Path) -> None:
    machine = carriages(1.0, 2.0)
    run = pl.simulate(machine, [0, 0], [1.0, 0.5], until=2.0, forces=[dry(a=2.0, b=0.1)])
    path = run.save(tmp_path / "run.npz")
    again = pl.load_trajectory(path)
    assert again.modes == run.modes
    assert again.slips == run.slips
    assert all(not mode.locks for mode in again.modes)


def test_a_stop_without_brakes_is_a_run_with_friction() -> None:
    machine, start = two_links(), ([0.2, -0.4], [3.0, -5.0])
    names = {"j1": 25.0, "j2": 9.0}
    given = brakes(**{name: {"kind": "none", "coulomb": f} for name, f in names.items()})
    stop = pl.stop(machine, *start, brakes=given, method=TIGHT).run
    run = pl.simulate(machine, *start, until=1.5, forces=[dry(**names)], method=TIGHT)
    for t in np.linspace(0.0, stop.t[-1], 20):
        assert np.allclose(run(t).q, stop(t).q, atol=1e-8)
    assert np.allclose(run.q[-1], stop.q[-1], atol=1e-8)
    assert not run.v[-1].any()


# -- joints that close loops, absolute coordinates, several axes, rows that move -------------------


def test_absolute_coordinates_give_the_same_motion() -> None:
    """There all joints close loops, and what sticks is held by a row."""
    machine = two_links()
    start = machine.checked_configuration([0.2, -0.4]), np.array([3.0, -5.0])
    friction = dry(j1=25.0, j2=9.0)
    relative = pl.simulate(machine, *start, until=1.0, forces=[friction], method=TIGHT)
    absolute = machine.absolute()
    bodies = machine.to_absolute(*start)
    run = pl.simulate(absolute, *bodies, until=1.0, forces=[friction], method=TIGHT)
    assert [name for _, name in run.slips] == [name for _, name in relative.slips]
    assert [t for t, _ in run.slips] == pytest.approx([t for t, _ in relative.slips], abs=1e-8)
    for t in (0.02, 0.1, 1.0):
        q, _ = machine.from_absolute(run(t).q, run(t).v)
        assert np.allclose(q, relative(t).q, atol=1e-7)
    assert closes(run)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "five-bar", "spinning-rods"])
@pytest.mark.parametrize("seed", [1, 2])
def test_energy_balances_with_random_friction_at_every_joint(name: str, seed: int) -> None:
    """Also at joints with several axes and at those that close loops; every run ends."""
    machine = robot(name)
    rng = np.random.default_rng(seed)
    joints = [joint.name for joint in machine.description.joints if joint.pair.dof]
    friction = dry(**{joint: float(10 ** rng.uniform(-2, 0.5)) for joint in joints})
    q, v = moving(machine, seed)
    run = pl.simulate(machine, q, v, until=1.0, forces=[friction], losses=False, method=TIGHT)
    assert closes(run)
    lost = run.energy().work["joint friction"]
    assert lost[-1] < 0.0
    assert (np.diff(lost) <= 1e-12).all()


def test_a_ball_joint_sticks_about_one_axis_and_turns_about_another() -> None:
    ball = one_body("spherical")
    joint = ball.joints[0]
    push = pl.forces.TorqueFunction(lambda t, q, v: np.array([0.3, 0.0, 2.0]))
    run = pl.simulate(ball, ball.neutral, until=0.2, forces=[dry(**{joint: 1.0}), push])
    assert f"{joint}.wx" in run.modes[-1].sticking
    assert not run.v[:, 0].any()
    assert run.v[-1, 2] > 0.0


def test_a_locked_axis_leaves_the_others_their_friction() -> None:
    """One turns back where it comes to rest, one sticks: ``I w' = 2 - sign(w)``."""
    ball = one_body("spherical")
    joint = ball.joints[0]
    push = pl.forces.TorqueFunction(lambda t, q, v: np.array([0.3, 0.0, 2.0]))
    lock = pl.Mode(pl.simulation.Locked(joint, ("wy",)))
    forces = [dry(**{joint: 1.0}), push]
    run = pl.simulate(ball, ball.neutral, [0.0, 0.0, -0.5], until=0.3, mode=lock, forces=forces)
    assert run.modes[-1].sticking == (f"{joint}.wx",)
    assert run.v[-1] == pytest.approx([0.0, 0.0, 0.3 - 0.5 / 3.0], abs=1e-9)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("holds", [False, True])
def test_a_slider_on_a_whirling_arm(absolute: bool, holds: bool) -> None:
    """Friction holds it or not against ``m r w^2``, also where its rail closes a loop."""
    mass, r, w = 1.5, 0.4, 6.0
    machine = made(
        [solid("arm", 3.0), solid("mass", mass, [r, 0, 0])],
        [
            joint("hinge", "revolute", GROUND, "arm", [0, 0, 0], [0, 0, 1]),
            joint("rail", "prismatic", "arm", "mass", [0, 0, 0], [1, 0, 0]),
        ],
    )
    state = np.zeros(2), np.array([w, 0.0])
    f = mass * r * w**2 * (1.01 if holds else 0.99)
    whole = machine.absolute() if absolute else machine
    q, v = machine.to_absolute(*state) if absolute else state
    run = pl.simulate(whole, q, v, until=0.3, forces=[dry(rail=f)], method=TIGHT)
    last = machine.from_absolute(run.q[-1], run.v[-1])[0] if absolute else run.q[-1]
    assert abs(last[1]) < 1e-9 if holds else last[1] > 1e-3
    assert run.modes[0].sticking == (("rail",) if holds else ())


def test_what_rows_move_does_not_stick() -> None:
    """A carriage at rest that is driven along a path from some time on: friction acts then."""
    machine = carriages(2.0)

    def path(t: float) -> tuple[float, float, float]:
        s = max(0.0, t - 0.5)
        return s**3, 3 * s**2, 6 * s

    rows = [pl.constraints.Prescribed("a", path)]
    run = pl.simulate(machine, [0.0], until=1.0, rows=rows, forces=[dry(a=3.0)], method=TIGHT)
    assert run.q[-1, 0] == pytest.approx(0.125, abs=1e-9)
    assert run.energy().work["joint friction"][-1] == pytest.approx(-3.0 * 0.125, rel=1e-6)
