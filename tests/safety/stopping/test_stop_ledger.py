"""Tests of `pl.stop`: where the energy goes; hundreds of random stops; loads exactly at a bound."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import simpson, solve_ivp

import pinloop as pl

from ...screw_tables import Array
from ...states import robot as loaded
from .arms_by_hand import StopByHand
from .robots_to_stop import (
    UP,
    G,
    Wild,
    Y,
    brakes,
    carriages,
    chain_table,
    controlled_stop,
    drawn_stop,
    on_axis,
    pendulum,
    slider,
    solid,
    stop,
    train,
    two_links,
    wild_stop,
)

UNTIL = 0.4
FINE = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)


def stop_of(wild: Wild, method: pl.MuntheKaas | None = None) -> pl.StopResult:
    return pl.stop(
        wild.robot, wild.q, wild.v, brakes=wild.by, payload=wild.payload,
        category=wild.category, until=UNTIL, method=method,
    )  # fmt: skip


class Energies:
    """Kinetic and potential energy of a robot with payload and rotors, by Pinocchio.

    Args:
        wild: robot, payload and brakes.
    """

    def __init__(self, wild: Wild) -> None:
        self.model = wild.robot.model.copy()
        joints = [wild.by.joints[name] for name in list(self.model.names)[1:]]
        self.rotors = np.array([b.gear_ratio**2 * (b.rotor_inertia or 0.0) for b in joints])
        if (load := wild.payload) is not None:
            frame = self.model.frames[self.model.getFrameId(load.frame or "")]
            inertia = np.zeros((3, 3)) if load.inertia is None else np.asarray(load.inertia)
            body = pin.Inertia(load.mass, np.asarray(load.com, float), inertia)
            at = frame.parentJoint
            self.model.inertias[at] = self.model.inertias[at] + frame.placement.act(body)
        self.data = self.model.createData()

    def kinetic(self, q: Array, v: Array) -> float:
        return float(
            pin.computeKineticEnergy(self.model, self.data, q, v) + 0.5 * self.rotors @ v**2
        )

    def potential(self, q: Array) -> float:
        return float(pin.computePotentialEnergy(self.model, self.data, q))


# -- random stops ---------------------------------------------------------------------------------


def without_power(stop: pl.StopResult) -> float:
    """When the power has gone; at the end if it never goes."""
    return min([t for t, text in stop.events if text == "power off"] + [float(stop.run.t[-1])])


def never_rises(stop: pl.StopResult, wild: Wild) -> None:
    """Assert that nothing gains energy once the power is off."""
    of, run, off = Energies(wild), stop.run, without_power(stop)
    between = run(np.linspace(off, run.t[-1], 40))
    kept = np.flatnonzero(run.t >= off)
    # The state in which the power is cut may be there twice; both are without power then.
    t = np.concatenate([run.t[kept], between.t])
    q, v = np.vstack([run.q[kept], between.q]), np.vstack([run.v[kept], between.v])
    # Sorted by time; at an impact the state before comes first, as it is kept.
    order = np.argsort(t, kind="stable")
    height = np.array([of.potential(a) for a in q])
    energy = np.array([of.kinetic(a, b) for a, b in zip(q, v, strict=True)]) + height
    size = max(of.kinetic(run.q[0], run.v[0]) + np.ptp(height), 1e-3)
    unique = [k for k in order if k < len(kept) or t[k] not in run.t]
    assert np.diff(energy[unique]).max(initial=0.0) < 1e-7 * size


def sensible(stop: pl.StopResult, wild: Wild) -> None:
    """Assert what every result has to fulfil."""
    run, ledger, of = stop.run, stop.ledger, Energies(wild)
    assert np.all(np.diff(run.t) >= 0) and run.t[-1] <= UNTIL * (1 + 1e-12)
    assert ledger.relative_error < 1e-6
    assert ledger.kinetic_before == pytest.approx(of.kinetic(wild.q, wild.v))
    assert ledger.kinetic_after == pytest.approx(of.kinetic(run.q[-1], run.v[-1]))
    drop = of.potential(wild.q) - of.potential(run.q[-1])
    assert ledger.potential_drop == pytest.approx(drop, rel=1e-9, abs=1e-9)
    assert all(np.all(heat >= -1e-9) for heat in ledger.dissipated.values())
    assert ledger.impacts >= 0
    height = [of.potential(a) for a in run.q]
    way = max(np.ptp(height), *[of.kinetic(a, b) for a, b in zip(run.q, run.v, strict=True)])
    largest = max(way, ledger.heat, abs(ledger.drive_work), ledger.impacts)
    assert ledger.turned_over == pytest.approx(largest)
    joints = stop.joints.values()
    if stop.outcome == "stopped":
        assert np.abs(run.v[-1]).max() <= 1e-3
        assert all(one.state != "moving" and one.margin >= 1 for one in joints)
        assert stop.stopping_time == pytest.approx(max(one.time for one in joints))
    elif stop.outcome == "does not hold":
        assert any(one.margin < 1 for one in joints)
    else:
        assert run.t[-1] == UNTIL  # still moving, or waiting for its brakes
    for k, one in enumerate(joints):
        moved = run.q[-1][k] - run.q[0][k]
        assert one.angle == pytest.approx(moved, abs=1e-12)
        assert one.angle == pytest.approx(one.reaction_angle + one.braking_angle, abs=1e-12)
        assert abs(one.angle) <= one.excursion + 1e-12 <= one.travel + 2e-12
        assert one.peak_speed >= np.abs(run.v[:, k]).max() - 1e-12


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_stops(first: int) -> None:
    """Payloads, teeth, faults, bands, gears with losses, Stribeck, categories 0 and 1."""
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + 20):
        wild = wild_stop(seed)
        stop = stop_of(wild)
        sensible(stop, wild)
        never_rises(stop, wild)
        outcomes[stop.outcome] += 1
        if seed % 5 == 0:
            fine = stop_of(wild, FINE)
            assert fine.outcome == stop.outcome
            assert np.abs(fine.run.q[-1] - stop.run.q[-1]).max() < 1e-4
            again = stop_of(wild)
            for one, two in zip(stop.run.columns().values(), again.run.columns().values(),
                                strict=True):  # fmt: skip
                assert one.tobytes() == two.tobytes()
            assert stop.events == again.events and stop.joints == again.joints
    assert outcomes["stopped"] >= 4 and outcomes["does not hold"] >= 1


@pytest.mark.parametrize("first", [0, 6, 14, 23])
def test_random_controlled_stops(first: int) -> None:
    """All categories, on and off the path, drives that may be too weak, recorded motions."""
    for seed in range(first, first + 5):
        wild, trigger = controlled_stop(seed)
        start = (None, None) if trigger else (wild.q, wild.v)
        stop, fine = (
            pl.stop(
                wild.robot, *start, brakes=wild.by, payload=wild.payload, trigger=trigger,
                category=wild.category, until=0.5, method=method,
            )
            for method in (None, FINE)
        )  # fmt: skip
        assert stop.outcome == fine.outcome
        assert stop.ledger.relative_error < 1e-6 and fine.ledger.relative_error < 1e-7
        assert np.abs(stop.run.q[-1] - fine.run.q[-1]).max() < 1e-4
        never_rises(stop, wild)
        if isinstance(wild.category, pl.Category2):
            assert not stop.ledger.dissipated["brake"].any()
            assert without_power(stop) == stop.run.t[-1]


# -- the ledger, sink by sink ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3, 9])
def test_sinks_of_every_joint(seed: int) -> None:
    """Powers of all losses on a fine grid, from the motion alone; gears without losses."""
    arm, q, v, by, _ = drawn_stop(seed)
    by = replace(by, joints={n: replace(b, efficiency=1.0) for n, b in by.joints.items()})
    stop = pl.stop(arm, q, v, brakes=by, until=UNTIL, method=FINE)
    off = by.chain.command + by.chain.drive_off
    marks = np.unique([*stop.run.t, *(t for t, _ in stop.events)])
    heat = {sink: np.zeros(arm.nv) for sink in stop.ledger.dissipated}
    for start, end in pairwise(marks):
        if end - start < 1e-12:
            continue
        t = np.linspace(start, end, 9)
        speed = np.abs(stop.run(np.clip(t, *stop.run.t[[0, -1]])).v)
        for k, b in enumerate(by.joints.values()):
            s, begin = speed[:, k], by.chain.command + b.delay
            middle = (start + end) / 2
            part = np.clip((t - begin) / b.rise, 0, 1) if b.rise else float(middle > begin)
            rough = (b.breakaway or 0.0) - b.coulomb
            brake = part * b.gear_ratio * b.dynamic_torque * b.factor
            powers = {
                "brake": brake * s,
                "dry friction": (b.coulomb + rough * np.exp(-((s / b.stribeck_speed) ** 2))) * s,
                "viscous friction": b.viscous * s**2,
                "short circuit": (middle > off) * b.gear_ratio**2 * b.short_circuit * s**2,
            }
            for sink, power in powers.items():
                heat[sink][k] += simpson(power * np.ones(9), x=t)
    for sink, expected in heat.items():
        found = stop.ledger.dissipated[sink]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7, err_msg=sink)
    total = np.sum(list(heat.values()), axis=0)
    for one, expected in zip(stop.joints.values(), total, strict=True):
        assert one.dissipated == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert stop.ledger.heat == pytest.approx(total.sum(), rel=1e-6)


def test_work_of_the_drives_is_what_is_missing() -> None:
    """Until the power goes the joints go on evenly: inverse dynamics and friction say the power."""
    arm, q, v, by, _ = drawn_stop(9)
    numbers = {n: replace(b, efficiency=1.0, delay=1.0) for n, b in by.joints.items()}
    by = replace(by, joints=numbers, chain=pl.safety.Chain(controller=0.05, drive_off=0.15))
    stop = pl.stop(arm, q, v, brakes=by, until=0.2, method=FINE)
    model, data = arm.model, arm.model.createData()
    t = np.linspace(0, 0.2, 401)
    joints = by.joints.values()
    dry = np.array([
        b.coulomb + ((b.breakaway or 0.0) - b.coulomb) * np.exp(-((x / b.stribeck_speed) ** 2))
        for b, x in zip(joints, v, strict=True)
    ])  # fmt: skip
    loss = np.sum(dry * np.abs(v) + np.array([b.viscous for b in joints]) * v**2)
    power = [pin.rnea(model, data, q + x * v, v, np.zeros(arm.nv)) @ v + loss for x in t]
    assert stop.ledger.drive_work == pytest.approx(simpson(power, x=t), rel=1e-8)
    assert stop.outcome != "stopped"


# -- loads at the bound, sticking and slipping ----------------------------------------------------


@pytest.mark.parametrize("static", [1.0, 1.3])
def test_load_exactly_as_large_as_the_torque(static: float) -> None:
    """Held, and no chatter; going down at the same torque, the speed just stays."""
    mass = 2.0
    by = on_axis(dynamic_torque=mass * G, static_torque=static * mass * G)
    up = pl.stop(slider(mass, UP), [0.0], [1.0], brakes=by)
    assert up.outcome == "stopped" and up.joints["axis"].slips == 0 and len(up.events) < 6
    assert up.joints["axis"].angle == pytest.approx(1 / (4 * G))
    rest = pl.stop(slider(mass, UP), [0.0], [0.0], brakes=by)
    assert rest.outcome == "stopped" and rest.joints["axis"].angle == 0
    assert rest.joints["axis"].margin == pytest.approx(static)
    down = pl.stop(slider(mass, UP), [0.0], [-1.0], brakes=by, until=2.0)
    assert down.outcome == "time-out" and down.run.q[-1][0] == pytest.approx(-2.0, rel=1e-9)
    # Stretched arm at rest: shoulder and elbow both at their bounds.
    loads = 4 * G * 0.3 + 3 * G * 0.85, 3 * G * 0.25
    numbers = [{"dynamic_torque": x, "static_torque": static * x} for x in loads]
    arm = pl.stop(two_links(), [0, 0], [0, 0], brakes=brakes(j1=numbers[0], j2=numbers[1]))
    assert len(arm.events) < 10 and np.abs(arm.run.q[-1]).max() < 1e-6


@pytest.mark.parametrize("count", [2, 6])
def test_train_in_which_everything_is_at_its_bound(count: int) -> None:
    """All carriages are loaded by the deceleration of the first, each exactly with its torque."""
    masses = np.arange(1.0, count + 1)
    behind = np.cumsum(masses[::-1])[::-1]
    force = 6.0 * behind[0]
    names = "abcdef"[:count]
    held = {n: {"dynamic_torque": 6.0 * m} for n, m in zip(names[1:], behind[1:], strict=True)}
    by = brakes(a={"dynamic_torque": force}, **held)
    stop = pl.stop(train(*masses), np.zeros(count), [3.0] + [0.0] * (count - 1), brakes=by)
    assert stop.outcome == "stopped" and len(stop.events) < 5 * count + 5
    assert stop.joints["a"].angle == pytest.approx(9 / 12, rel=1e-6)
    np.testing.assert_allclose(stop.run.q[-1][1:], 0.0, atol=1e-6)


def test_beam_that_slips_once_in_every_turn() -> None:
    """A beam on a heavy flywheel: held while it hangs, loose where its weight pulls most."""
    flywheel = [solid("flywheel", 1.0, inertia=5e4), solid("beam", 1.0, [0.5, 0, 0], 0.05)]
    robot = pl.from_screws(chain_table([[0, 0, 0], [0, 0.1, 0]], [-Y, -Y], flywheel))
    weight = 0.5 * G
    by = brakes(
        j1={"kind": "none"},
        j2={"dynamic_torque": 0.75 * weight, "static_torque": 0.9 * weight, "rise": 0.1},
    )
    v = np.array([4.0, 0.0])
    stop = pl.stop(robot, [0.3, 0.0], v, brakes=by, until=4.0, method=FINE)
    end = StopByHand(robot.model, by).go([0.3, 0.0], v, 4.0)
    slips = [text for _, joint, text in end.log if joint == 1 and text == "slips"]
    assert not stop.holds and len(slips) >= 4
    assert stop.joints["j2"].slips == len(slips) - 1  # at the very start it had not stood
    np.testing.assert_allclose(stop.run.q[-1], end.q, rtol=0, atol=1e-6)
    assert len(stop.events) < 5 * len(slips)


@pytest.mark.parametrize("way", [1, -1])
def test_beam_with_play_between_two_teeth(way: int) -> None:
    """On the flywheel, the beam falls onto one tooth, lies on it until it has passed the top, falls
    onto the other one, and comes back when it has passed the bottom."""
    speed, length, inertia, play = 4.0, 0.5, 0.05 + 0.25, 0.3
    flywheel = [solid("flywheel", 1.0, inertia=5e6), solid("beam", 1.0, [length, 0, 0], 0.05)]
    robot = pl.from_screws(chain_table([[0, 0, 0], [0, 0.1, 0]], [-Y, -Y], flywheel))
    by = brakes(j1={"kind": "none"}, j2={"kind": "tooth", "pitch": play, "tooth_offset": 0.1})
    teeth, start = (0.1, 0.1 + play), 0.2
    stop = pl.stop(robot, [0.0, start], [way * speed, 0.0], brakes=by, until=2.0, method=FINE)
    hits = [t for t, text in stop.events if text == "j2 hits a tooth"]

    def rate(t: float, y: Array) -> list[float]:
        return [y[1], -G * length / inertia * np.cos(way * speed * t + y[0])]

    def hit(t: float, y: list[float], side: int) -> float:
        """When it comes to the other tooth."""

        def met(_: float, y: Array) -> float:
            return float(y[0] - teeth[side])

        met.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(rate, (t, 9.0), y, "DOP853", events=met, rtol=1e-12, atol=1e-12)
        return float(run.t[-1])

    # The weight pulls at the angle ``way * speed * t + q2``; it turns round at top and bottom.
    expected, side = [hit(0.0, [start, 0.0], 0)], 0
    while expected[-1] < 2.0:
        turn = way * (np.pi / 2 + (len(expected) - 1) * np.pi)
        leaves = (turn - teeth[side]) / (way * speed)
        assert leaves > expected[-1]
        side = 1 - side
        expected.append(hit(leaves, [teeth[1 - side], 0.0], side))
    assert len(expected) >= 4
    # A flywheel is not infinitely heavy.
    np.testing.assert_allclose(hits, expected[:-1], atol=1e-5)
    assert stop.ledger.relative_error < 1e-7 and stop.ledger.impacts > 0


@pytest.mark.parametrize("seed", range(4))
def test_rattling_between_teeth(seed: int) -> None:
    """Both joints of a falling arm on teeth with play: no end of hits, no energy out of nothing."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        pitch, offset = rng.uniform(0.02, 0.3, 2), rng.uniform(0, 0.3, 2)
        numbers = [
            {"kind": "tooth" if both else "none", "pitch": p, "tooth_offset": o, "coulomb": c,
             "efficiency": eta, "rotor_inertia": 0.1, "delay": d}
            for p, o, both, c, eta, d in zip(
                pitch, offset, (rng.random() < 0.5, True), rng.choice([0.0, 0.3], 2),
                rng.choice([1.0, 0.8], 2), rng.choice([0.0, 0.2], 2), strict=True,
            )
        ]  # fmt: skip
        by = brakes(j1=numbers[0], j2=numbers[1])
        wild = Wild(two_links(), rng.uniform(-2, 2, 2), rng.uniform(-4, 4, 2), by, None, 0)
        stop = pl.stop(wild.robot, wild.q, wild.v, brakes=by, until=1.0)
        never_rises(stop, wild)
        assert stop.ledger.relative_error < 1e-6
        for k, brake in enumerate(by.joints.values()):
            if brake.kind == "tooth":
                caught = stop.run.t > brake.delay + 1e-9
                gaps = (stop.run.q[caught, k] - brake.tooth_offset) / brake.pitch
                assert np.ceil(gaps.max() - 1e-5) - np.floor(gaps.min() + 1e-5) <= 1


def test_free_joints_speed_up_and_are_reported() -> None:
    """A carriage without brake on one that is braked: its speed on it grows."""
    by = brakes(a={"dynamic_torque": 20.0}, b={"kind": "none"})
    stop = pl.stop(train(3.0, 1.0), [0, 0], [2.0, 0.0], brakes=by, until=0.6)
    assert stop.joints["b"].peak_speed == pytest.approx(2.0)
    assert stop.outcome == "time-out"
    assert stop.run.q[-1] == pytest.approx([0.3, 0.9])


@pytest.mark.parametrize("v", [1e-6, 0.0])
def test_energy_balance_error_is_relative_to_what_swings_to_and_fro(v: float) -> None:
    """A pendulum that nothing brakes has all its energy on the way, and hardly any at both ends."""
    mass, length, inertia = 2.0, 0.5, 0.6
    by = brakes(axis={"kind": "none"})
    ledger = stop(pendulum(mass, length, inertia), [v], by, until=10.0).ledger
    most = mass * G * length
    assert ledger.kinetic_before == pytest.approx(0.5 * inertia * v**2)
    assert 0.9 * most < ledger.turned_over <= most * (1 + 1e-6)
    assert ledger.relative_error == pytest.approx(abs(ledger.error) / ledger.turned_over)
    assert ledger.relative_error < 1e-6


def test_work_between_the_states_of_a_long_swing_is_as_accurate_as_its_steps() -> None:
    """What friction takes along 270 steps of "dop853"; quintics miss a ten-millionth of it."""
    loose = {"kind": "none", "viscous": 0.3}
    by = brakes(j1=loose, j2=loose)
    result = stop(two_links(), [1.0, 2.0], by, until=10.0)
    assert result.ledger.heat > 10.0 and result.ledger.relative_error < 1e-10


def test_six_carriages_side_by_side() -> None:
    """One after the other, some together."""
    names = "abcdef"
    robot = carriages(*[1.0] * 6)
    v = np.array([1.0, 1.0, 2.0, 2.0, 3.0, 0.0])
    stop = pl.stop(
        robot, np.zeros(6), v, brakes=brakes(**{n: {"dynamic_torque": 4.0} for n in names})
    )
    np.testing.assert_allclose(stop.run.q[-1], v**2 / 8, rtol=1e-9)
    assert [one.time for one in stop.joints.values()] == pytest.approx((v / 4).tolist())
    assert stop.ledger.heat == pytest.approx(0.5 * np.sum(v**2))


def test_energy_that_a_robot_misses_that_hardly_moves_is_that_of_its_absolute_tolerance() -> None:
    """The middle joint of three, without brake, creeps by 0.02 rad/s at most for ten seconds."""
    robot = loaded("planar_3r")
    by = pl.Brakes.template(robot).missing("joint_2")
    q = np.array([0.9814818, -5.72513464, 0.0893386])
    errors = []
    for atol in (1e-8, 1e-10):
        method = pl.MuntheKaas("dopri5", atol=atol)
        stop = pl.stop(robot, q, np.zeros(3), brakes=by, category=1, method=method)
        assert stop.outcome == "does not hold" and np.abs(stop.run.v).max() < 0.05
        assert not any("energy" in warning for warning in stop.warnings)
        errors.append(abs(stop.ledger.error) / stop.ledger.turned_over)
    assert errors[0] < 1e-5 and errors[1] < 1e-6
