"""Tests of `pl.stop`: what must not change the answer, or only in a way that is known before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import pinloop as pl

from ...screw_tables import Array, Table
from ...states import URDF, robot
from .robots_to_stop import (
    Drawn,
    Z,
    brakes,
    carriages,
    chain_table,
    drawn_stop,
    moved,
    on_axis,
    solid,
    two_links,
    wheel,
)

SEEDS = pytest.mark.parametrize("seed", [3, 9, 19])
"""Stops in which joints slip again, through gears with losses."""
UNTIL = 0.4


def run(case: Drawn, robot: pl.Mechanism | None = None, **changes: object) -> pl.StopResult:
    """The stop of a case, with something about it changed."""
    q, v = changes.pop("q", case.q), changes.pop("v", case.v)
    by, until = changes.pop("brakes", case.by), changes.pop("until", UNTIL)
    return pl.stop(robot or case.robot, q, v, brakes=by, until=until, **changes)  # type: ignore


def same(one: pl.StopResult, other: pl.StopResult, tolerance: float = 1e-9) -> None:
    """Assert that two stops tell the same."""
    assert one.outcome == other.outcome
    assert [text for _, text in one.events] == [text for _, text in other.events]
    np.testing.assert_allclose(
        [t for t, _ in one.events], [t for t, _ in other.events], rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(one.run.q[-1], other.run.q[-1], rtol=0, atol=tolerance)
    assert one.stopping_time == pytest.approx(other.stopping_time, abs=tolerance)
    for a, b in zip(one.joints.values(), other.joints.values(), strict=True):
        assert (a.name, a.state, a.slips) == (b.name, b.state, b.slips)
        for number in ("angle", "travel", "excursion", "reaction_angle", "time", "reaction_time"):
            assert getattr(a, number) == pytest.approx(getattr(b, number), abs=tolerance), number
        # Torques in proportion: they may be thousands. Peaks are those of finitely many instants.
        for number in ("dissipated", "load", "hold"):
            assert getattr(a, number) == pytest.approx(
                getattr(b, number), rel=1e3 * tolerance, abs=10 * tolerance
            ), number
        for number in ("peak_speed", "peak_torque", "peak_gear_torque"):
            assert getattr(a, number) == pytest.approx(getattr(b, number), rel=1e-2), number


def scaled(by: pl.Brakes, inertia: float, speed: float = 1.0) -> pl.Brakes:
    """Brakes for a robot whose inertias are so much larger, and that moves so much quicker."""
    torque, rate = inertia * speed**2, inertia * speed

    def brake(b: pl.safety.JointBrake) -> pl.safety.JointBrake:
        return replace(
            b, dynamic_torque=torque * b.dynamic_torque, static_torque=torque * b.static,
            coulomb=torque * b.coulomb, breakaway=torque * (b.breakaway or 0.0),
            viscous=rate * b.viscous, short_circuit=rate * b.short_circuit,
            stribeck_speed=speed * b.stribeck_speed,
            rotor_inertia=inertia * (b.rotor_inertia or 0.0),
            delay=b.delay / speed, rise=b.rise / speed,
        )  # fmt: skip

    c = by.chain
    chain = pl.safety.Chain(c.sensor / speed, c.controller / speed, c.drive_off / speed)
    return replace(by, joints={n: brake(b) for n, b in by.joints.items()}, chain=chain)


# -- numerics -------------------------------------------------------------------------------------


@SEEDS
def test_tolerance_and_method(seed: int) -> None:
    case = drawn_stop(seed)
    fine = run(case, method=pl.MuntheKaas("dopri5", rtol=1e-11, atol=1e-11))
    same(run(case, method=pl.MuntheKaas("dopri5", rtol=1e-6, atol=1e-6)), fine, 2e-5)
    same(run(case), fine, 1e-6)
    same(run(case, method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10)), fine, 1e-8)


@pytest.mark.parametrize("h", [1e-3, 7e-4])
def test_steps_of_one_length(h: float) -> None:
    """Fourth order without step control meets the same events."""
    case = drawn_stop(9)
    fine = run(case, method=pl.MuntheKaas("dopri5", rtol=1e-11, atol=1e-11))
    same(run(case, method=pl.MuntheKaas("rk4", step=h)), fine, 1e-5)


def test_energy_that_is_missing_goes_down_with_the_tolerance() -> None:
    case = drawn_stop(3)
    errors = [
        run(case, method=pl.MuntheKaas("dopri5", rtol=tol, atol=tol)).ledger.relative_error
        for tol in (1e-5, 1e-8, 1e-11)
    ]
    assert errors[0] < 1e-3 and errors[1] < 1e-6 and errors[2] < 1e-8


# -- the same asked in another way ------------------------------------------------------------


@SEEDS
def test_order_of_the_joints_in_the_brakes(seed: int) -> None:
    """To the last bit."""
    case = drawn_stop(seed)
    names = list(case.by.joints)
    other = replace(case.by, joints={n: case.by.joints[n] for n in reversed(names)})
    one, two = run(case), run(case, brakes=other)
    assert one.run.q.tobytes() == two.run.q.tobytes() and one.events == two.events
    assert one.joints == {n: two.joints[n] for n in names}


@SEEDS
def test_numbers_on_the_other_side_of_a_gear_without_losses(seed: int) -> None:
    case = drawn_stop(seed)
    lossless = {n: replace(b, efficiency=1.0) for n, b in case.by.joints.items()}
    direct = {
        n: replace(
            b, side="joint", gear_ratio=1.0,
            rotor_inertia=b.gear_ratio**2 * (b.rotor_inertia or 0.0),
            dynamic_torque=b.gear_ratio * b.dynamic_torque, static_torque=b.gear_ratio * b.static,
            short_circuit=b.gear_ratio**2 * b.short_circuit,
        )
        for n, b in lossless.items()
    }  # fmt: skip
    one = run(case, brakes=replace(case.by, joints=lossless))
    two = run(case, brakes=replace(case.by, joints=direct))
    assert one.outcome == two.outcome
    np.testing.assert_allclose(one.run.q[-1], two.run.q[-1], rtol=0, atol=1e-10)
    assert one.stopping_time == pytest.approx(two.stopping_time, abs=1e-10)


@SEEDS
def test_faults_are_other_numbers(seed: int) -> None:
    case = drawn_stop(seed)
    b = case.by.joints["j1"]
    for faulty, changes in (
        (case.by.missing("j1"), {"kind": "none"}),
        (case.by.late("j1", 0.03), {"delay": b.delay + 0.03}),
        (
            case.by.weak("j1", 0.5),
            {"dynamic_torque": 0.5 * b.dynamic_torque, "static_torque": 0.5 * b.static},
        ),
        (case.by.at_band({"j1": -1}), {"band": -1.0}),
    ):
        told = {**case.by.joints, "j1": replace(b, **changes)}
        one = run(case, brakes=faulty)
        two = run(case, brakes=replace(case.by, joints=told))
        assert one.run.q.tobytes() == two.run.q.tobytes() and one.joints == two.joints


@SEEDS
def test_payload_of_nothing_and_payload_welded_on(seed: int) -> None:
    case = drawn_stop(seed)
    last = case.robot.bodies[-1]
    bare = run(case)
    for nothing in (0.0, pl.Payload(0.0, com=(3.0, 2.0, 1.0), frame=last)):
        same(run(case, payload=nothing), bare)
    inertia = np.diag([0.02, 0.03, 0.04])
    carried = run(case, payload=pl.Payload(1.5, (0.1, 0.0, 0.2), inertia, last))
    welded = case.robot.with_payload(last, 1.5, (0.1, 0.0, 0.2), inertia)
    same(carried, run(case, welded))
    assert np.abs(carried.run.q[-1] - bare.run.q[-1]).max() > 1e-5
    # As two halves.
    half = case.robot.with_payload(last, 0.75, (0.1, 0.0, 0.2), inertia / 2)
    same(run(case, half, payload=pl.Payload(0.75, (0.1, 0.0, 0.2), inertia / 2, last)), carried)


@SEEDS
def test_later_command_from_where_the_robot_is_then(seed: int) -> None:
    """The sensor's time only shifts: until then the robot goes on evenly."""
    case, late = drawn_stop(seed), 0.11
    chain = replace(case.by.chain, sensor=late)
    shifted = run(case, brakes=replace(case.by, chain=chain), until=UNTIL + late)
    there = run(case, q=case.q + late * case.v)
    np.testing.assert_allclose(shifted.run.q[-1], there.run.q[-1], rtol=0, atol=1e-9)
    assert shifted.stopping_time == pytest.approx(there.stopping_time + late, abs=1e-9)
    for a, b, v in zip(shifted.joints.values(), there.joints.values(), case.v, strict=True):
        assert a.reaction_time == pytest.approx(b.reaction_time + late)
        assert a.reaction_angle == pytest.approx(b.reaction_angle + late * v, abs=1e-9)
        assert a.braking_angle == pytest.approx(b.braking_angle, abs=1e-9)
    # The drive overcomes friction meanwhile, at constant speed.
    heat = shifted.ledger.dissipated["dry friction"] - there.ledger.dissipated["dry friction"]
    for brake, v, more in zip(case.by.joints.values(), case.v, heat, strict=True):
        rough = (brake.breakaway or 0.0) - brake.coulomb
        dry = brake.coulomb + rough * np.exp(-((v / brake.stribeck_speed) ** 2))
        assert more == pytest.approx(late * dry * abs(v), rel=1e-6, abs=1e-9)


@SEEDS
def test_going_on_from_the_middle(seed: int) -> None:
    """With all brakes engaged, a stop from a state on the way ends where the whole one ends."""
    case = drawn_stop(seed)
    now = {n: replace(b, delay=0.0, rise=0.0) for n, b in case.by.joints.items()}
    by = pl.Brakes(now)
    fine = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    whole = run(case, brakes=by, method=fine)
    t = 0.3 * whole.stopping_time
    there = whole.run(t)
    rest = run(case, q=there.q, v=there.v, brakes=by, method=fine, until=UNTIL - t)
    np.testing.assert_allclose(rest.run.q[-1], whole.run.q[-1], rtol=0, atol=2e-8)
    assert rest.run.t[-1] + t == pytest.approx(whole.run.t[-1], abs=1e-7)
    assert rest.outcome == whole.outcome


# -- the same physics elsewhere, larger, heavier, quicker -----------------------------------------


def turned(table: Table) -> Table:
    """Rotated and shifted with its gravity."""
    wild = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    return moved(table, wild * np.linalg.det(wild), (0.3, -2.0, 1.0))


def mirrored(table: Table) -> Table:
    return moved(table, np.diag([1.0, -1.0, 1.0]))


@SEEDS
@pytest.mark.parametrize("change", [turned, mirrored])
def test_placed_elsewhere_or_seen_in_a_mirror(seed: int, change: Callable[[Table], Table]) -> None:
    case = drawn_stop(seed)
    same(run(case, pl.from_screws(change(case.table))), run(case))


@SEEDS
def test_gravity_given_for_the_stop(seed: int) -> None:
    """A robot on the wall: gravity of its file, or as an argument."""
    case = drawn_stop(seed)
    sideways = case.table | {"gravity": [0, 9.81, 0]}
    one = run(case, gravity=[0, 9.81, 0])
    same(one, run(case, pl.from_screws(sideways)))
    assert np.abs(one.run.q[-1] - run(case).run.q[-1]).max() > 1e-6


@SEEDS
def test_axes_pointing_the_other_way(seed: int) -> None:
    """All angles change their signs."""
    case = drawn_stop(seed)
    joints = [one | {"axis": -one["axis"]} for one in case.table["joints"]]
    one, other = run(case), run(case, pl.from_screws(case.table | {"joints": joints}),
                                q=-case.q, v=-case.v)  # fmt: skip
    np.testing.assert_allclose(one.run.q[-1], -other.run.q[-1], rtol=0, atol=1e-9)
    for a, b in zip(one.joints.values(), other.joints.values(), strict=True):
        assert a.angle == pytest.approx(-b.angle, abs=1e-9)
        assert a.load == pytest.approx(-b.load, rel=1e-6, abs=1e-9)
        assert a.travel == pytest.approx(b.travel, abs=1e-9) and a.slips == b.slips


@SEEDS
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_heavier_robot_with_stronger_brakes(seed: int, factor: float) -> None:
    case = drawn_stop(seed)
    bodies = [
        b | {"mass": factor * b["mass"], "inertia": factor * b["inertia"]}
        for b in case.table["bodies"]
    ]
    heavy = run(case, pl.from_screws(case.table | {"bodies": bodies}),
                brakes=scaled(case.by, factor))  # fmt: skip
    light = run(case)
    _same_motion(heavy, light)
    for a, b in zip(heavy.joints.values(), light.joints.values(), strict=True):
        assert a.dissipated == pytest.approx(factor * b.dissipated, rel=1e-6)
        assert a.peak_torque == pytest.approx(factor * b.peak_torque, rel=1e-6)
        assert a.load == pytest.approx(factor * b.load, rel=1e-6, abs=1e-9 * factor)


@SEEDS
@pytest.mark.parametrize("factor", [20.0, 0.05])
def test_larger_robot(seed: int, factor: float) -> None:
    """Lengths and gravity times a factor, torques and inertias its square: the same angles."""
    case = drawn_stop(seed)
    large = run(case, pl.from_screws(moved(case.table, np.eye(3), scale=factor)),
                brakes=scaled(case.by, factor**2))  # fmt: skip
    _same_motion(large, run(case))


@SEEDS
@pytest.mark.parametrize("factor", [3.0, 0.4])
def test_quicker_robot(seed: int, factor: float) -> None:
    """Speeds times a factor, forces times its square: the same way in less time."""
    case = drawn_stop(seed)
    quick = run(case, v=factor * case.v, brakes=scaled(case.by, 1.0, factor),
                gravity=[0, 0, -9.81 * factor**2], until=UNTIL / factor)  # fmt: skip
    _same_motion(quick, run(case), factor)


def _same_motion(one: pl.StopResult, other: pl.StopResult, speed: float = 1.0) -> None:
    """Where it ends, and when, seen by a clock that goes so much quicker."""
    assert one.outcome == other.outcome
    np.testing.assert_allclose(one.run.q[-1], other.run.q[-1], rtol=0, atol=2e-7)
    assert speed * one.stopping_time == pytest.approx(other.stopping_time, abs=1e-6)
    for a, b in zip(one.joints.values(), other.joints.values(), strict=True):
        assert (a.state, a.slips) == (b.state, b.slips)
        assert speed * a.time == pytest.approx(b.time, abs=1e-6)
        assert a.peak_speed == pytest.approx(speed * b.peak_speed, rel=1e-3)


# -- at the same instant --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["friction", "tooth"])
def test_twins_stop_together(kind: str) -> None:
    """Uncoupled carriages do what each does alone; which of two alike comes first is the same."""
    numbers = {"kind": kind, "dynamic_torque": 6.0, "static_torque": 7.0, "delay": 0.1, "rise": 0.1}
    by = brakes(a=numbers, b=numbers, c={"dynamic_torque": 4.0})
    three = pl.stop(carriages(2.0, 2.0, 5.0), np.zeros(3), [1.5, 1.5, -0.4], brakes=by)
    alone = pl.stop(carriages(2.0), [0.0], [1.5], brakes=brakes(a=numbers))
    permuted = pl.stop(
        carriages(5.0, 2.0, 2.0), np.zeros(3), [-0.4, 1.5, 1.5],
        brakes=brakes(c=numbers, a={"dynamic_torque": 4.0}, b=numbers),
    )  # fmt: skip
    end = three.run.q[-1]
    # Products of matrices may round what is alike by its place in them.
    assert end[0] == pytest.approx(end[1], rel=1e-12)
    assert three.joints["a"].time == pytest.approx(three.joints["b"].time, rel=1e-12)
    assert end[0] == pytest.approx(alone.run.q[-1][0], rel=1e-9)
    assert three.joints["a"].time == pytest.approx(alone.joints["a"].time, rel=1e-9)
    np.testing.assert_allclose(permuted.run.q[-1], end[[2, 0, 1]], rtol=1e-9)
    assert three.stopping_time == pytest.approx(permuted.stopping_time, rel=1e-9)


def test_symmetric_arms_stay_symmetric() -> None:
    """Two arms on one turntable, stretched to both sides: events in pairs, all the way."""

    def side(sign: float, name: str) -> Table:
        links = [solid(f"{name}{i}", 3.0 - i, [sign * (0.5 + 0.4 * i), 0, 0], 0.1) for i in (0, 1)]
        return chain_table(
            [[sign * 0.3, 0, 0], [sign * 0.7, 0, 0]], [[0, -sign, 0], [0, -sign, 0]], links
        )

    left, right = side(-1, "left"), side(1, "right")
    table = solid("table", 4.0, inertia=0.5)
    spin = {"name": "spin", "pair": "revolute", "parent": "ground", "child": "table",
            "point": [0, 0, 0], "axis": Z}  # fmt: skip
    joints = [spin]
    for arm, name in ((left, "l"), (right, "r")):
        for one in arm["joints"]:
            parent = "table" if one["parent"] == "ground" else one["parent"]
            joints.append(one | {"name": name + one["name"], "parent": parent})
    bodies = [table, *left["bodies"], *right["bodies"]]
    robot = pl.from_screws({"bodies": bodies, "joints": joints})
    upper = {"dynamic_torque": 40.0, "static_torque": 45.0, "delay": 0.01, "coulomb": 1.0}
    lower = {"dynamic_torque": 8.0, "static_torque": 11.0}
    by = brakes(spin={"dynamic_torque": 30.0}, lj1=upper, lj2=lower, rj1=upper, rj2=lower)
    stop = pl.stop(robot, np.zeros(5), [2.0, 1.0, -2.0, 1.0, -2.0], brakes=by)
    assert stop.outcome == "stopped"
    np.testing.assert_allclose(stop.run.q[:, 1:3], stop.run.q[:, 3:5], rtol=0, atol=1e-12)
    for n in ("j1", "j2"):
        assert stop.joints["l" + n].time == pytest.approx(stop.joints["r" + n].time, abs=1e-12)
        assert stop.joints["l" + n].slips == stop.joints["r" + n].slips


def test_event_at_the_instant_at_which_another_brake_comes() -> None:
    """a rests at 0.5 s sharp; b's brake comes a hair before, then, or a hair after."""
    ends = []
    for delay in (0.5 - 1e-12, 0.5, 0.5 + 1e-12):
        by = brakes(a={"dynamic_torque": 6.0}, b={"dynamic_torque": 6.0, "delay": delay})
        stop = pl.stop(carriages(2.0, 3.0), [0, 0], [1.5, 1.0], brakes=by)
        assert stop.joints["a"].time == pytest.approx(0.5)
        assert stop.joints["b"].angle == pytest.approx(0.5 + 0.25)
        ends.append(stop.run.q[-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-10)
    np.testing.assert_allclose(ends[2], ends[1], atol=1e-10)


# -- a large robot with a file --------------------------------------------------------------------


def test_same_bytes_from_the_file_and_from_its_brakes() -> None:
    arm, file = robot("six_axis_arm"), URDF / "six_axis_arm.brakes.yaml"
    v: Array = np.array([2.0, 1.5, -1.5, 2.5, 1.5, 3.0])
    one = pl.stop(arm, arm.neutral, v, brakes=file)
    two = pl.stop(arm, arm.neutral, v, brakes=pl.Brakes.from_yaml(file), category=pl.Category0())
    assert one.run.q.tobytes() == two.run.q.tobytes() and one.joints == two.joints
    assert one.run.t.tobytes() == two.run.t.tobytes() and one.ledger.heat == two.ledger.heat


def test_what_is_given_is_not_changed() -> None:
    q, v = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    by = brakes(j1={"dynamic_torque": 50.0}, j2={"dynamic_torque": 20.0})
    arm = two_links()
    armature, gravity = arm.model.armature.copy(), arm.model.gravity.linear.copy()
    pl.stop(arm, q, v, brakes=by, payload=3.0, gravity=[0, 1, 2])
    assert q.tolist() == [0.3, 0.4] and v.tolist() == [1.0, -2.0]
    np.testing.assert_array_equal(arm.model.armature, armature)
    np.testing.assert_array_equal(arm.model.gravity.linear, gravity)
    turn = pl.stop(wheel(), [0.0], [1.0], brakes=on_axis(rotor_inertia=0.5, dynamic_torque=1.0))
    assert turn.robot.model.armature[0] == 0.5
