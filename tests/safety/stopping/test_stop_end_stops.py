"""Tests of `pl.stop` with end stops: impacts in closed form, joints that rest on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.mechanism import build

from ... import motion_by_hand as hand
from ...states import allowed, close, moving, robot
from .robots_to_stop import UP, G, brakes, on_axis, slider, stop, two_links, wheel


def between(machine: pl.Mechanism, **ranges: tuple[float, float]) -> pl.Mechanism:
    """The robot with other position limits at the named joints and none elsewhere."""
    joints = tuple(
        replace(one, lower=(ranges[one.name][0],), upper=(ranges[one.name][1],))
        if one.name in ranges
        else replace(one, lower=(), upper=())
        for one in machine.description.joints
    )
    return build(replace(machine.description, joints=joints))


def test_a_wheel_runs_into_its_end_stop() -> None:
    inertia, v = 2.0, 3.0
    machine = between(wheel(inertia), axis=(-1.0, 0.6))
    late = on_axis(pl.safety.Chain(), dynamic_torque=1.0, static_torque=2.0, delay=5.0)
    result = stop(machine, v, late, limits="end stop")
    one = result.joints["axis"]
    assert result.run.q[-1, 0] == pytest.approx(0.6, abs=1e-10)
    assert one.impulse == pytest.approx(inertia * v, rel=1e-9)
    assert result.ledger.impacts == pytest.approx(0.5 * inertia * v**2, rel=1e-9)
    (hit,) = [t for t, name in result.events if name == "axis hits its upper end stop"]
    assert hit == pytest.approx(0.6 / v, rel=1e-9)
    assert result.outcome == "stopped" and result.joint_limits() == ()
    passed = stop(machine, v, late, until=1.0)
    assert passed.joint_limits()[0].by == pytest.approx(v - 0.6, rel=1e-6)


def test_a_hoist_that_its_brake_does_not_hold_rests_on_its_end_stop() -> None:
    mass = 2.0
    numbers = on_axis(dynamic_torque=0.5 * mass * G, static_torque=0.6 * mass * G)
    machine = between(slider(mass, UP), axis=(-0.3, 9.0))
    result = stop(machine, -1.0, numbers, limits="end stop")
    speed = np.sqrt(1.0 + 2 * 0.5 * G * 0.3)
    assert result.outcome == "stopped" and result.run.q[-1, 0] == pytest.approx(-0.3, abs=1e-10)
    assert result.joints["axis"].impulse == pytest.approx(mass * speed, rel=1e-8)
    assert result.stopping_time == pytest.approx((speed - 1.0) / (0.5 * G), rel=1e-8)
    assert result.ledger.relative_error < 1e-8
    # Upwards it turns round, falls, and ends there too.
    up = stop(machine, 1.0, numbers, limits="end stop")
    assert up.run.q[-1, 0] == pytest.approx(-0.3, abs=1e-10) and up.outcome == "stopped"
    # On its end stop from the start, and into it.
    for v in (0.0, -1.0):
        low = between(slider(mass, UP), axis=(0.0, 9.0))
        on = stop(low, v, numbers, limits="end stop")
        assert on.outcome == "stopped" and not on.run.q[-1].any()
        assert on.joints["axis"].impulse == pytest.approx(mass * -v, abs=1e-12)
    away = stop(low, 1.0, numbers, limits="end stop")
    assert away.run.q.max() == pytest.approx(1.0 / (3 * G), rel=1e-8)


@pytest.mark.parametrize("part", [1e-2, 1e-4])
@pytest.mark.parametrize("end", ["upper", "lower"])
def test_an_end_stop_that_is_passed_for_a_hundredth_of_a_step_is_hit(part: float, end: str) -> None:
    """Thrown to just beyond its end stop: it is hit on the way up, although steps end below it."""
    step, top, way = 0.4, 1.0, 1.0 if end == "upper" else -1.0
    half = 0.5 * part * step
    height = 0.5 * G * (top**2 - half**2)
    free = on_axis(kind="none")
    reach = (-99.0, height) if end == "upper" else (-height, 99.0)
    result = stop(
        between(slider(2.0, way * UP), axis=reach), way * G * top, free, limits="end stop",
        until=1.5, method=pl.MuntheKaas(largest=step),
    )  # fmt: skip
    (hit,) = result.run.transitions
    assert hit.t == pytest.approx(top - half, abs=1e-9)
    # Rounding of the height, by the speed there and the time to the top, is rounding of the speed.
    # Two of ten are that of the speed at the start; one comes from each step, of which there are
    # five, and where they end hangs on the kernel: the error of steps along a parabola is rounding.
    rounding = 10 * np.spacing(height) / (G * half**2)
    assert result.joints["axis"].impulse == pytest.approx(2.0 * G * half, rel=rounding)
    # From there it falls from rest.
    fallen = 0.5 * G * (1.5 - hit.t) ** 2
    assert result.run.q[-1, 0] == pytest.approx(way * (height - fallen), abs=1e-9)


def test_a_drive_holds_a_load_that_hangs_from_below_its_upper_end_stop() -> None:
    """An end stop only pushes down: until its power goes the drive carries the load."""
    machine = between(slider(2.0, UP), axis=(-9.0, 0.0))
    by = on_axis(pl.safety.Chain(drive_off=0.03), dynamic_torque=100.0, delay=0.05)
    result = stop(machine, 0.0, by, limits="end stop")
    fall, braking = 0.02, 100.0 / 2.0 - G
    assert result.run.q[-1, 0] == pytest.approx(-0.5 * G * fall**2 * (1 + G / braking), rel=1e-7)
    assert result.run.t[np.argmax(result.run.v[:, 0] < 0.0)] > 0.03


def lifted(limit: float) -> tuple[pl.Mechanism, pl.Brakes]:
    """A lift of 2 kg below an end stop, and a drive with a limit that presses it up [N]."""
    chain = pl.safety.Chain(sensor=0.1)
    numbers = on_axis(chain, dynamic_torque=100.0, delay=0.01, drive_torque=limit, deceleration=2.0)
    return between(slider(2.0, UP), axis=(-9.0, 0.05)), numbers


@pytest.mark.parametrize("category", [0, 1, 2])
def test_a_drive_presses_its_joint_against_the_end_stop_that_it_ran_into(category: int) -> None:
    """From 0.05 s on the lift rests at its stop, until its power goes or its reference stands."""
    machine, numbers = lifted(30.0)
    result = stop(machine, 1.0, numbers, limits="end stop", category=category)
    hits = [name for _, name in result.events if "hits" in name]
    assert len(hits) == 1 and result.outcome == "stopped"
    assert result.ledger.impacts == pytest.approx(1.0, rel=1e-9)
    fall = 0.5 * G * 0.01**2 * (1 + G / (50.0 - G)) if category == 0 else 0.0
    assert result.run.q[-1, 0] == pytest.approx(0.05 - fall, abs=1e-9)


def test_a_drive_that_is_too_weak_lets_the_load_leave_its_end_stop() -> None:
    """From the command on 15 N carry 2 kg no longer."""
    machine, numbers = lifted(15.0)
    result = stop(machine, 1.0, numbers, limits="end stop", category=1, until=0.3)
    sunk = 0.5 * (G - 7.5) * (result.run.t[-1] - 0.1) ** 2
    assert result.run.t[-1] == 0.3
    assert result.run.q[-1, 0] == pytest.approx(0.05 - sunk, abs=1e-9)


def test_a_joint_without_any_room_stays_where_it_is() -> None:
    """Both limits are zero: its drive presses it against one, its neighbour throws it off."""
    first, second = two_links().joints
    late = brakes(
        **{name: {"dynamic_torque": 90.0, "deceleration": 5.0} for name in (first, second)}
    )
    machine = between(two_links(), **{first: (0.0, 0.0), second: (0.0, 0.0)})
    for speeds in ([1.0, -2.0], [-1e-9, 2e-9], [0.0, 1.2]):
        for category in (0, 1):
            result = stop(machine, speeds, late, limits="end stop", category=category)
            assert result.outcome == "stopped" and not result.run.q[-1].any()
            assert np.isfinite(result.run.a).all()


def test_a_link_that_hits_throws_the_other_as_momentum_says() -> None:
    name = two_links().joints[1]
    machine = between(two_links(), **{name: (-3.0, 0.2)})
    late = brakes(**{one: {"dynamic_torque": 9.0, "delay": 0.5} for one in machine.joints})
    result = stop(machine, [1.0, 2.0], late, limits="end stop")
    made = result.run.transitions[0]
    M = hand.mass_matrix(machine, made.q)
    first = (M @ made.v_minus)[0] / M[0, 0]
    close(made.v_plus, np.array([first, 0.0]), 1e-9)
    assert made.v_minus[1] > 0.1
    assert result.ledger.relative_error < 1e-7
    assert result.joint_limits() == ()


@pytest.mark.parametrize("name", ["palletizer", "planar_3r", "fourbar", "six_axis_arm"])
@pytest.mark.parametrize("seed", range(3))
def test_no_robot_passes_its_end_stops_and_the_ledger_closes(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, v = moving(robot(name), seed, speed=3.0)
    ranges = {}
    for one in robot(name).joints:
        x = float(q[robot(name).coordinates(one).q][0])
        ranges[one] = (x - rng.uniform(0.02, 0.4), x + rng.uniform(0.02, 0.4))
    machine = between(robot(name), **ranges)
    by = replace(pl.Brakes.template(machine), chain=pl.safety.Chain())
    result = pl.stop(machine, q, v, brakes=by, limits="end stop")
    assert [p for p in result.joint_limits() if p.kind == "position"] == []
    assert result.ledger.relative_error < 1e-5
    hits = [label for _, label in result.events if "end stop" in label]
    assert len(result.run.transitions) <= len(hits)
    for made in result.run.transitions:
        assert made.energy_loss >= 0.0
        # The nearest velocity that loops and what lies on end stops allow.
        J = pl.Constraints(machine, full=True).jacobian(made.q)
        F = allowed(np.vstack([J, np.eye(machine.nv)[np.abs(made.v_plus) < 1e-9]]))
        root = np.linalg.cholesky(hand.mass_matrix(machine, made.q) + reflected(result)).T
        want = F @ np.linalg.lstsq(root @ F, root @ made.v_minus, rcond=None)[0]
        close(made.v_plus, want, 1e-6)


def reflected(result: pl.StopResult) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Inertia of the rotors at the joints."""
    return np.diag(np.asarray(result.robot.model.armature))


def test_a_drive_that_would_push_through_an_end_stop_is_told_so() -> None:
    machine = robot("palletizer")
    q = pl.assemble(machine, {"shoulder": 1.2})
    v = pl.consistent_velocity(machine, q, {"shoulder": 1.9})
    x = float(q[machine.coordinates("rear_rod_hinge").q][0])
    machine = between(machine, rear_rod_hinge=(x - 1.0, x + 0.01))
    by = pl.Brakes.template(machine)
    endless = {name: replace(joint, drive_torque=None) for name, joint in by.joints.items()}
    with pytest.raises(pl.StopFailed, match=r"its upper end stop while drives .* give it, or let"):
        pl.stop(machine, q, v, brakes=replace(by, joints=endless), limits="end stop")
    # Those whose torque is known yield.
    result = pl.stop(machine, q, v, brakes=by, limits="end stop")
    hit = next(t for t, text in result.events if "rear_rod_hinge hits its upper" in text)
    assert result.outcome == "stopped" and hit < result.reaction_time
    assert result.ledger.impacts > 0.0 and result.ledger.relative_error < 1e-8
    behind = result.run(np.linspace(hit, result.run.t[-1], 200)).q
    assert behind[:, machine.coordinates("rear_rod_hinge").q].max() < x + 0.01 + 1e-9


def test_a_start_beyond_an_end_stop_is_refused() -> None:
    machine = between(wheel(), axis=(-1.0, 0.6))
    by = on_axis(dynamic_torque=1.0)
    with pytest.raises(pl.BadValue, match=r"joint 'axis' starts at 0\.7 rad, beyond its upper"):
        pl.stop(machine, [0.7], [1.0], brakes=by, limits="end stop")
    with pytest.raises(pl.BadValue, match="give 'warn' or 'end stop'"):
        pl.stop(machine, [0.0], [1.0], brakes=by, limits="stop")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [16, 30, 34])
def test_joints_that_throw_each_other_against_their_end_stops_come_to_rest(seed: int) -> None:
    """Two end stops that are hit in turn, ever faster: an end after finite time."""
    rng = np.random.default_rng([seed, len("six_axis_arm")])
    arm = robot("six_axis_arm")
    q, v = moving(arm, seed, speed=3.0)
    ranges = {}
    for one in arm.joints:
        x = float(q[arm.coordinates(one).q][0])
        ranges[one] = (x - rng.uniform(0, 0.3), x + rng.uniform(0, 0.3))
    machine = between(arm, **ranges)
    by = pl.Brakes.template(machine)
    by = replace(by, chain=pl.safety.Chain()) if seed % 2 else by
    result = pl.stop(machine, q, v, brakes=by, limits="end stop", category=int(rng.integers(0, 2)))
    assert result.outcome == "stopped" and result.ledger.relative_error < 1e-6
    assert [p for p in result.joint_limits() if p.kind == "position"] == []
    assert all(made.energy_loss >= 0.0 for made in result.run.transitions)
