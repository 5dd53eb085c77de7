"""Random stops of robots with closed loops, judged by laws that hold whatever the motion is.

Poses, speeds, payloads, directions of gravity, bands, weak brakes, passive friction and gears with
losses are drawn; masses, rows and friction are those of `loops_by_hand`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from ...screw_tables import Array
from .looped_stops import ROBOTS, Case, drawn, lossless
from .loops_by_hand import Machine, closed, columns, excess_torque, static_excess, stuck
from .stops_by_hand import Stop

# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ROBOTS)
def test_laws_of_a_random_stop(name: str, seed: int) -> None:
    case = drawn(name, seed)
    stop = case.stop(until=1.5)
    machine, run = case.machine, stop.run
    assert stop.ledger.kinetic_before == pytest.approx(machine.kinetic(case.q, case.v), rel=1e-9)
    turned_over = max(stop.ledger.kinetic_before, stop.ledger.heat)
    assert abs(stop.ledger.error) < 1e-6 * turned_over
    assert closed(machine, run) < 1e-10
    _stuck_joints_stay(case.robot, run)
    chain = case.brakes.chain
    after = run.t >= chain.command + chain.drive_off
    _energy_falls(machine, run, np.flatnonzero(after))
    _drives_keep_their_speed(case, run)
    for k in _sampled(run, np.flatnonzero(after), 8):
        still = 1e-7 * (1.0 + np.abs(run.a[k]).max())
        state = run.t[k], run.q[k], run.v[k], run.a[k]
        assert excess_torque(machine, case.friction, *state, still) < 1e-6
    _outcome_is_right(case, stop)


def _stuck_joints_stay(one: pl.Mechanism, run: pl.Trajectory) -> None:
    """Locked joints keep their coordinate to the last bit, and have no speed."""
    assert run.t[-1] > 0.0
    for k in range(len(run.t) - 1):
        held = stuck(run, k)
        assert not run.v[k][columns(one, held)].any()
        if run.mode[k] == run.mode[k + 1]:
            for joint in held:
                at = one.coordinates(joint).q
                np.testing.assert_array_equal(run.q[k][at], run.q[k + 1][at])


def _energy_falls(machine: Machine, run: pl.Trajectory, after: Any) -> None:
    """Nothing gives energy once the power has gone."""
    energies = np.array([machine.energy(run.q[k], run.v[k]) for k in after])
    start = machine.kinetic(run.q[0], run.v[0])
    assert np.diff(energies).max(initial=0.0) < 1e-7 * start


def _drives_keep_their_speed(case: Case, run: pl.Trajectory) -> None:
    """Before that, actuated joints go on as they were."""
    chain, driven = case.brakes.chain, columns(case.robot, set(case.robot.actuated))
    powered = run.t < chain.command + chain.drive_off
    speeds = run.v[powered][:, driven]
    np.testing.assert_allclose(
        speeds, np.broadcast_to(case.v[driven], speeds.shape), rtol=1e-12, atol=1e-12
    )


def _sampled(run: pl.Trajectory, among: Any, count: int) -> list[int]:
    """Some states; of two at one instant the later one, in which torques are what they will be."""
    chosen = among[np.linspace(0, len(among) - 1, min(count, len(among))).astype(int)]
    return [int(np.flatnonzero(run.t == run.t[k])[-1]) for k in chosen]


def _outcome_is_right(case: Case, stop: pl.StopResult) -> None:
    """Whether the robot holds is a linear program; whether it moves is seen."""
    run = stop.run
    speed = np.abs(run.v[-1][columns(case.robot, set(case.robot.actuated))]).max()
    excess = static_excess(case.machine, case.friction, run.t[-1], run.q[-1])
    if stop.outcome == "stopped":
        assert speed < 1e-3 and excess < 1e-8
    elif stop.outcome == "does not hold":
        assert excess > 1e-8
    else:
        assert run.t[-1] == 1.5 and excess < 1e-8 and speed > 1e-3


# -- a second program ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [100, 101])
@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "stewart"])
def test_a_second_program_agrees(name: str, seed: int) -> None:
    case = lossless(drawn(name, seed, weakest=0.3))
    stop = case.stop(until=3.0)
    assert stop.outcome == "stopped"
    second = Stop(case.machine, case.friction, case.robot.actuated)
    _, end = second.run(case.q, case.v, 3.0)
    apart = case.robot.difference(stop.run.q[-1], end)
    driven = columns(case.robot, set(case.robot.actuated))
    np.testing.assert_allclose(apart[driven], 0.0, atol=1e-6)


# -- teeth -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pitch", [0.0, 0.03])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_tooth_catches_as_momentum_says(name: str, pitch: float) -> None:
    """``M (v+ - v-) = J' lam + e p``, ``J v+ = 0``, ``v+_i = 0``: the impulse ``p`` is unique."""
    case = drawn(name, 7)
    one = case.robot
    joint = max(one.actuated, key=lambda name: abs(case.v[one.coordinates(name).v.start]))
    i = one.coordinates(joint).v.start
    pitch *= 0.05 if one.is_translation[i] else 1.0
    tooth = pl.safety.JointBrake(kind="tooth", pitch=pitch, tooth_offset=0.01, impact_time=2e-3)
    ideal: dict[str, Any] = {"efficiency": 1.0} if pitch == 0.0 else {}
    joints = {
        name: replace(brake, delay=0.0, **ideal) for name, brake in case.brakes.joints.items()
    }
    joints[joint] = replace(
        tooth, efficiency=ideal.get("efficiency", 0.9), rotor_inertia=joints[joint].rotor_inertia
    )
    case = replace(case, brakes=pl.Brakes(joints))
    stop = case.stop(until=1.5)
    machine, hit = case.machine, stop.run.transitions[0]
    if pitch == 0.0:
        assert hit.t == 0.0 and len(stop.run.transitions) == 1
        np.testing.assert_allclose(hit.v_minus, case.v, rtol=1e-9, atol=1e-9)
    else:
        place = (hit.q[one.coordinates(joint).q.start] - 0.01) / pitch
        assert place == pytest.approx(round(place), abs=1e-9)
    # Losses of gears have no time to act: all rotors take part.
    M, N = machine.mass(hit.q) + np.diag(machine.lossy), machine.free(hit.q)
    e, momenta = N[i], N.T @ M @ hit.v_minus
    answer = np.linalg.solve(N.T @ M @ N, np.column_stack((momenta, e)))
    push = -(e @ answer[:, 0]) / (e @ answer[:, 1])
    after = N @ (answer[:, 0] + push * answer[:, 1])
    rounding = 1e-9 * np.abs(case.v).max()
    np.testing.assert_allclose(hit.v_plus, after, rtol=0, atol=rounding)
    if not machine.lossy.any():
        locked = pl.Mode(locks=(pl.simulation.Locked(joint),))
        same = pl.transition(stop.robot, hit.q, hit.v_minus, pl.Mode(), locked)
        np.testing.assert_allclose(hit.v_plus, same.v_plus, rtol=0, atol=rounding)
    if len(stop.run.transitions) == 1:
        assert stop.joints[joint].impulse == pytest.approx(abs(push), rel=1e-9)
        assert stop.ledger.impacts == pytest.approx(-0.5 * push * hit.v_minus[i], rel=1e-8)
        # The rotor is stopped by the tooth, not through the gear.
        shock = abs(push + machine.rotors[i] * hit.v_minus[i]) / 2e-3
        assert stop.joints[joint].peak_gear_torque >= shock * (1 - 1e-9)
    assert abs(stop.ledger.error) < 1e-6 * max(stop.ledger.kinetic_before, stop.ledger.heat)


# -- controlled stops ------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "on_path"), [(1, False), (2, True)])
@pytest.mark.parametrize("name", ROBOTS)
def test_drives_bring_the_robot_to_rest(name: str, number: int, on_path: bool) -> None:
    """Actuated joints follow their ramps; torques and work are those of inverse dynamics."""
    case = driven_case(name)
    kind = pl.Category1(on_path=on_path) if number == 1 else pl.Category2(on_path=on_path)
    stop = case.stop(category=kind)
    one, run, begin = case.robot, stop.run, case.brakes.chain.command
    at = [one.coordinates(joint).v.start for joint in one.actuated]
    rates = [case.brakes.joints[joint].deceleration for joint in one.actuated]
    times = np.abs(case.v[at]) / np.array(rates, float)
    times = np.full(len(at), times.max()) if on_path else times
    assert stop.outcome == "stopped"
    assert stop.stopping_time == pytest.approx(begin + times.max(), rel=1e-2)
    past = np.clip(run.t[:, None] - begin, 0.0, times)
    np.testing.assert_allclose(run.v[:, at], case.v[at] * (1 - past / times), atol=1e-9)
    angles = [stop.joints[joint].angle for joint in one.actuated]
    np.testing.assert_allclose(angles, case.v[at] * (begin + 0.5 * times), atol=1e-8)
    torques = np.array([_torques(case, *state) for state in zip(run.q, run.v, run.a, strict=True)])
    peaks = np.array([stop.joints[joint].peak_torque for joint in one.actuated])
    rates = np.divide(case.v[at], times, out=np.zeros(len(at)), where=times > 0.0)
    sampled = sampled_peaks(case, stop, begin, rates, times)
    np.testing.assert_allclose(peaks, sampled, rtol=1e-4)
    assert np.all(peaks > (1 - 1e-6) * sampled)
    if name != "delta":  # its rods may spin, which inverse dynamics asks for
        k = len(run.t) // 2
        same = pl.inverse_dynamics(stop.robot, run.q[k], run.v[k], run.a[k])
        np.testing.assert_allclose(same, torques[k], rtol=1e-6, atol=1e-6 * max(peaks))
    # Brakes come when all stand: heat is friction along known ramps, the rest is drive work.
    work = case.machine.energy(run.q[-1], run.v[-1]) - case.machine.energy(case.q, case.v)
    for joint, rate, time in zip(one.actuated, case.v[at], times, strict=True):
        brake = case.brakes.joints[joint]
        work += brake.coulomb * abs(rate) * (begin + time / 2)
        work += brake.viscous * rate**2 * (begin + time / 3)
    assert stop.ledger.drive_work == pytest.approx(work, rel=1e-6)
    assert stop.ledger.relative_error < 1e-6


def sampled_peaks(
    case: Case, stop: pl.StopResult, begin: float, rates: Array, times: Array
) -> Array:
    """Largest torques of the actuated joints at the states and at many instants between them.

    Accelerations between them are those of the ramps, and what the loops make of them.

    Args:
        case: the case.
        stop: its stop.
        begin: when the ramps begin [s].
        rates: their decelerations, signed, shape (joints,).
        times: how long they take [s], shape (joints,).
    """
    machine, run = case.machine, stop.run
    found = [_torques(case, *state) for state in zip(run.q, run.v, run.a, strict=True)]
    at = [case.robot.coordinates(joint).v.start for joint in case.robot.actuated]
    for t in np.linspace(0.0, begin + times.max(), 301)[1:-1].tolist():
        _, q, v = run(t)
        J, gamma = machine.rows(q, v)
        slowing = np.where((begin < t) & (t < begin + times), -rates, 0.0)
        rows = np.vstack([J, np.eye(len(v))[at]])
        a = np.linalg.lstsq(rows, np.concatenate([-gamma, slowing]), rcond=1e-10)[0]
        found.append(_torques(case, q, v, a))
    return np.asarray(np.abs(found).max(axis=0))


def driven_case(name: str) -> Case:
    """A case with strong drives, gears without losses, and friction at driven joints only."""
    case, rng = drawn(name, 9), np.random.default_rng(ROBOTS.index(name))
    joints = {
        joint: pl.safety.JointBrake(kind="none")
        for joint in case.robot.joints
        if case.robot.coordinates(joint).nv == 1
    }
    for joint in case.robot.actuated:
        brake = case.brakes.joints[joint]
        torque = 2 * float(brake.dynamic_torque)
        joints[joint] = replace(
            brake, efficiency=1.0, delay=0.01, short_circuit=0.0, breakaway=None,
            dynamic_torque=torque, static_torque=10 * torque,
            deceleration=float(rng.uniform(3, 8)),
        )  # fmt: skip
    return replace(case, brakes=pl.Brakes(joints, pl.safety.Chain(0.004, 0.006, 0.002)))


def _torques(case: Case, q: Array, v: Array, a: Array) -> Array:
    """Torques of the actuated joints that this motion takes."""
    machine = case.machine
    N = machine.free(q)
    at = [case.robot.coordinates(joint).v.start for joint in case.robot.actuated]
    need = machine.mass(q) @ a + machine.bias(q, v)
    return np.asarray(np.linalg.lstsq(N[at].T, N.T @ need, rcond=1e-9)[0])


@pytest.mark.parametrize("name", ["fivebar", "sevenbar", "palletizer", "delta", "prrr3"])
def test_drives_that_cannot_follow(name: str) -> None:
    """Too weak for their ramps, and helped by brakes at the time limit: all energy is accounted."""
    case = drawn(name, 11)
    one, joints = case.robot, dict(case.brakes.joints)
    for joint in one.actuated:
        effort = float(one.model.effortLimit[one.coordinates(joint).v.start])
        limit = 0.1 * effort / joints[joint].gear_ratio
        joints[joint] = replace(joints[joint], drive_torque=limit, deceleration=30.0)
    case = replace(case, brakes=replace(case.brakes, joints=joints))
    stop = case.stop(category=pl.Category1(time_limit=0.1), until=1.5)
    driven, command = columns(one, set(one.actuated)), case.brakes.chain.command
    slowed = 30.0 * np.maximum(stop.run.t - command, 0.0)[:, None]
    wanted = np.maximum(np.abs(case.v[driven]) - slowed, 0.0)
    under_power = stop.run.t < command + 0.1
    assert np.abs(np.abs(stop.run.v[:, driven]) - wanted)[under_power].max() > 1e-3
    turned_over = max(stop.ledger.kinetic_before, stop.ledger.heat)
    assert abs(stop.ledger.error) < 1e-6 * turned_over
    assert closed(case.machine, stop.run) < 1e-10
    _stuck_joints_stay(one, stop.run)
    after = np.flatnonzero(stop.run.t >= command + 0.1 + 0.004)
    _energy_falls(case.machine, stop.run, after)
