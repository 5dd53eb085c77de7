"""Peaks and energies of stops between their states, against closed forms and dense sampling."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import simpson
from scipy.optimize import brentq

import pinloop as pl
from pinloop.linalg.saddle import mass_error, solve_mass
from pinloop.model.mechanism import build
from pinloop.safety.stopping.categories import Category

from ...screw_tables import Array
from .robots_to_stop import G, arm_table, brakes, on_axis, pendulum, stop, train, two_links, wheel
from .test_stop_end_stops import between
from .test_stop_loops_random import driven_case, sampled_peaks

MASS, ARM, INERTIA = 11.0, 0.3, 0.2 + 11.0 * 0.3**2
"""Pendulum of 11 kg at 0.3 m, with 0.2 kg m^2 about its centre of mass."""


class EvenStop:
    """The pendulum on an even ramp, in closed form; its angle counts from the horizontal.

    Args:
        angle: at the signal, from where it hangs [rad].
        speed: there [rad/s].
        rate: deceleration [rad/s^2].
    """

    def __init__(self, angle: float, speed: float, rate: float) -> None:
        self.angle, self.speed, self.rate = angle - np.pi / 2, speed, rate
        self.time = abs(speed) / rate
        self.a = -np.sign(speed) * rate

    def torque(self, t: Any) -> Any:
        """``I th'' + m g l cos th``."""
        angle = self.angle + self.speed * t + 0.5 * self.a * t**2
        return INERTIA * self.a + MASS * G * ARM * np.cos(angle)

    def over(self, t: float, limit: float) -> float:
        """By how much the torque is above a limit."""
        return float(abs(self.torque(t))) - limit

    @property
    def peak(self) -> float:
        return float(np.abs(self.torque(np.linspace(0.0, self.time, 400_001))).max())

    @property
    def work(self) -> float:
        """What gravity gives and the speed was."""
        end = self.angle + 0.5 * self.speed * self.time
        lifted = MASS * G * ARM * (np.sin(end) - np.sin(self.angle))
        return float(lifted - 0.5 * INERTIA * self.speed**2)

    def stop(self, category: int | Category, **numbers: Any) -> pl.StopResult:
        by = on_axis(dynamic_torque=100.0, deceleration=self.rate, **numbers)
        robot = pendulum(MASS, ARM, INERTIA)
        return stop(robot, self.speed, by, q=[self.angle], category=category, until=60.0)


CASES = [(-2.0, 2.0, 0.5), (1.0, -3.0, 0.2), (0.3, 8.0, 1.0), (2.9, 0.7, 0.1)]


@pytest.mark.parametrize("category", [1, 2, pl.Category1(on_path=True)])
@pytest.mark.parametrize("case", CASES)
def test_pendulum_that_is_brought_to_rest_evenly(
    case: tuple[float, float, float], category: int | Category
) -> None:
    even = EvenStop(*case)
    result = even.stop(category)
    one = result.joints["axis"]
    assert one.peak_torque == pytest.approx(even.peak, rel=1e-6)
    assert one.peak_gear_torque == pytest.approx(even.peak, rel=1e-6)
    assert result.ledger.drive_work == pytest.approx(even.work, rel=1e-8)
    assert result.ledger.relative_error < 1e-8


def test_the_peak_of_one_pendulum_in_numbers() -> None:
    """11 kg at 0.3 m from -2 rad at 2 rad/s with 0.5 rad/s^2: past the horizontal, 32.968 N m."""
    assert EvenStop(-2.0, 2.0, 0.5).stop(1).joints["axis"].peak_torque == pytest.approx(
        MASS * G * ARM + INERTIA * 0.5, rel=1e-6
    )


@pytest.mark.parametrize("category", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_drive_that_is_just_too_weak_between_two_steps(
    case: tuple[float, float, float], category: int
) -> None:
    """The overload is an event at its instant; a drive that has the torque of the peak follows."""
    even = EvenStop(*case)
    strong = even.stop(category, drive_torque=even.peak * (1 + 1e-6))
    assert not any("loose" in text for _, text in strong.events)
    for part in (1 - 1e-5, 0.95):
        limit = part * even.peak
        weak = even.stop(category, drive_torque=limit)
        assert weak.joints["axis"].peak_torque <= limit * (1 + 1e-9)
        times = np.linspace(0.0, even.time, 400_001)
        first = int(np.argmax(np.abs(even.torque(times)) > limit))
        at = 0.0
        if first:
            at = brentq(even.over, times[first - 1], times[first], args=(limit,))
        t, name = next(event for event in weak.events if "loose" in event[1])
        # At the top of a parabola the instant is as exact as the root of the torque.
        assert name == "axis comes loose" and t == pytest.approx(at, abs=1e-6)
        assert weak.ledger.relative_error < 1e-7


# -- inverse dynamics ------------------------------------------------------------------------------


def controlled(seed: int) -> tuple[pl.Mechanism, pin.Model, pl.Brakes, Array, Array]:
    """A random arm on slow ramps, gears with and without losses, friction, rotors."""
    rng = np.random.default_rng([seed, 4])
    n = int(rng.integers(1, 7))
    arm = pl.from_screws(arm_table(rng, n))
    entries = {
        name: pl.safety.JointBrake(
            dynamic_torque=1e4,
            gear_ratio=float(rng.choice([1.0, 50.0])),
            efficiency=float(rng.choice([1.0, 0.7])),
            rotor_inertia=float(rng.choice([0.0, 1e-4])),
            coulomb=float(rng.choice([0.0, 3.0])),
            viscous=float(rng.choice([0.0, 2.0])),
            deceleration=float(rng.uniform(0.2, 2.0)),
        )
        for name in arm.joints
    }
    q, v = rng.uniform(-np.pi, np.pi, n), rng.uniform(1.0, 5.0, n) * rng.choice([-1, 1], n)
    return arm, arm.model, pl.Brakes(entries), q, v


@pytest.mark.parametrize("on_path", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_arms_on_ramps_against_dense_inverse_dynamics(seed: int, on_path: bool) -> None:
    """Ramps are known; Pinocchio's inverse dynamics at thousands of instants gives the torques."""
    arm, model, by, q, v = controlled(seed)
    entries = [by.joints[name] for name in arm.joints]
    times = np.abs(v) / [entry.deceleration for entry in entries]
    times = np.full(len(v), times.max()) if on_path else times
    category = pl.Category2(on_path=True) if on_path else 1
    result = pl.stop(arm, q, v, brakes=by, category=category, until=60.0)
    assert result.outcome == "stopped"
    ratio, eta, rotor, coulomb, viscous = (
        np.array([getattr(entry, name) for entry in entries])
        for name in ("gear_ratio", "efficiency", "rotor_inertia", "coulomb", "viscous")
    )
    reflected, data = ratio**2 * rotor, model.createData()
    work = friction = 0.0
    torque_peaks, gear_peaks = np.zeros((2, len(v)))
    for start, end in pairwise(np.unique([0.0, *times, times.max() + 0.1])):
        t = np.linspace(start, end, 20_001)[:, None]
        moving, past = times > 0.5 * (start + end), np.minimum(t, times)
        a = np.where(moving, -v / times, 0.0)
        place, rate = q + v * past - 0.5 * v / times * past**2, moving * v * (1.0 - past / times)
        link = np.array([pin.rnea(model, data, *s, a) for s in zip(place, rate, strict=True)])
        # The gear gives what the link takes, and what friction beside it takes. What holds a joint
        # at rest is friction first, which the gear does not carry.
        taken = moving * coulomb * np.sign(v) + viscous * rate
        gear = link + taken
        motor = gear * np.where(gear * v > 0.0, 1.0 / eta, eta) + reflected * a
        work += simpson((motor * rate).sum(axis=1), x=t[:, 0])
        friction += simpson((taken * rate).sum(axis=1), x=t[:, 0])
        total = link + np.where(eta == 1.0, reflected, 0.0) * a
        torque_peaks = np.maximum(torque_peaks, np.abs(total).max(axis=0))
        gear_peaks = np.maximum(gear_peaks, np.abs(moving * gear).max(axis=0))
    one = [result.joints[name] for name in arm.joints]
    torques = np.array([joint.peak_torque for joint in one])
    np.testing.assert_allclose(torques, torque_peaks, rtol=1e-4)
    assert np.all(torques > (1 - 1e-5) * torque_peaks)
    gears = np.array([joint.peak_gear_torque for joint in one])
    assert np.all(gears > (1 - 1e-5) * gear_peaks)
    ledger = result.ledger
    turned_over = max(ledger.kinetic_before, abs(ledger.potential_drop), ledger.heat)
    assert abs(ledger.drive_work - work) < 1e-6 * turned_over
    heat = ledger.dissipated["dry friction"].sum() + ledger.dissipated["viscous friction"].sum()
    assert heat == pytest.approx(friction, rel=1e-6, abs=1e-6)
    assert abs(ledger.error) < 1e-7 * turned_over


@pytest.mark.parametrize("seed", range(8))
def test_peaks_while_joints_brake_against_dense_sampling(seed: int) -> None:
    """Two links: the first is held, the second swings and brakes; the first one's torque follows.

    ``a2 = (tau - h2) / M22`` by Pinocchio at thousands of instants of the run.
    """
    rng = np.random.default_rng([seed, 8])
    robot = two_links()
    model, data = robot.model, robot.model.createData()
    slow = float(rng.uniform(0.1, 1.0))
    by = brakes(
        j1={"dynamic_torque": 5e3, "side": "motor"},
        j2={"kind": "none", "coulomb": slow, "viscous": float(rng.uniform(0.0, 0.1))},
    )
    q, speed = rng.uniform(-np.pi, np.pi, 2), float(rng.uniform(3.0, 9.0))
    result = stop(robot, [0.0, speed], by, q=q, until=0.8)
    torque, fastest = 0.0, 0.0
    for t in np.linspace(0.0, float(result.run.t[-1]), 4001):
        _, place, v = result.run(float(t))
        M = pin.crba(model, data, place)
        h = pin.nonLinearEffects(model, data, place, v)
        friction = -slow * np.sign(v[1]) - by.joints["j2"].viscous * v[1]
        a = np.array([0.0, (friction - h[1]) / M[1, 1]])
        torque = max(torque, abs(pin.rnea(model, data, place, v, a)[0]))
        fastest = max(fastest, abs(v[1]))
    one, two = result.joints["j1"], result.joints["j2"]
    assert one.peak_torque == pytest.approx(torque, rel=1e-4)
    assert one.peak_torque > (1 - 1e-6) * torque
    assert one.peak_gear_torque == pytest.approx(one.peak_torque, rel=1e-12)
    assert two.peak_speed == pytest.approx(fastest, rel=1e-5)
    assert two.peak_speed > (1 - 1e-7) * fastest
    assert result.ledger.relative_error < 1e-6


# -- passive joints --------------------------------------------------------------------------------


@pytest.mark.parametrize("category", [0, 1, 2])
def test_joint_without_motor_and_brake_is_passive_from_the_start(category: int) -> None:
    """Train of two: nothing pushes b, which keeps its speed over ground whatever a does."""
    chain = pl.safety.Chain(controller=0.1, drive_off=0.2)
    by = brakes(chain, a={"dynamic_torque": 8.0, "deceleration": 2.0, "delay": 0.05})
    result = stop(train(3.0, 1.0), [1.2, -0.5], by, category=category, until=1.5)
    assert result.run.v[:, 0].min() >= -1e-9 and result.run.v[-1, 0] == 0.0
    np.testing.assert_allclose(result.run.v.sum(axis=1), 0.7, atol=1e-9)
    assert result.ledger.relative_error < 1e-9
    (sentence,) = (text for text in result.warnings if "passive" in text)
    assert "no brake, gear or drive is given for b: taken as passive" in sentence


@pytest.mark.parametrize("category", [0, 1])
def test_passive_joint_with_friction_of_its_own(category: int) -> None:
    """An entry with numbers of bearings only is no motor: b slows down by them from the start."""
    by = brakes(
        pl.safety.Chain(drive_off=0.2),
        a={"dynamic_torque": 8.0, "deceleration": 2.0},
        b={"kind": "none", "coulomb": 0.5},
    )
    result = stop(train(3.0, 1.0), [0.0, 0.3], by, category=category, until=3.0)
    assert result.joints["b"].time == pytest.approx(0.6, rel=1e-7)


def test_passive_rod_hangs_where_the_brake_has_brought_its_joint() -> None:
    """The second link falls from the signal on, though the power goes later only."""
    by = brakes(pl.safety.Chain(drive_off=0.3), j1={"dynamic_torque": 500.0})
    result = stop(two_links(), [0.0, 0.0], by, until=0.1)
    (_, _), (m2, l2) = (4.0, 0.6), (3.0, 0.5)
    falls = (m2 * G * l2 / 2) / (m2 * l2**2 / 3)
    assert result.run.a[0][1] == pytest.approx(-falls) and result.run.a[0][0] == 0.0


# -- gears of teeth --------------------------------------------------------------------------------


@pytest.mark.parametrize("efficiency", [1.0, 0.8])
def test_a_tooth_stops_the_rotor_before_the_gear(efficiency: float) -> None:
    """Link 4 kg m^2, rotor 2: of 6 N m s the gear carries 4, 4000 N m over a millisecond."""
    by = on_axis(kind="tooth", gear_ratio=10.0, rotor_inertia=0.02, efficiency=efficiency)
    one = stop(wheel(4.0), 1.0, by).joints["axis"]
    assert one.impulse == pytest.approx(6.0)
    assert one.peak_gear_torque == pytest.approx(4000.0)


def test_an_end_stop_stops_the_rotor_through_the_gear() -> None:
    """The link hits: of 6 N m s the gear carries the rotor's 2."""
    robot = between(wheel(4.0), axis=(-1.0, 0.3))
    by = on_axis(dynamic_torque=1e-3, rotor_inertia=2.0)
    one = stop(robot, 1.0, by, limits="end stop").joints["axis"]
    assert one.impulse == pytest.approx(6.0, rel=1e-3)
    assert one.peak_gear_torque == pytest.approx(2000.0, rel=1e-3)


def test_a_tooth_throws_the_rotor_of_a_joint_beside_it() -> None:
    """Train of two, no friction: b is thrown by ``v_a``, its gear takes its rotor along."""
    by = brakes(
        a={"kind": "tooth"}, b={"dynamic_torque": 1e-6, "rotor_inertia": 0.5, "side": "motor"}
    )
    result = stop(train(3.0, 1.0), [2.0, 0.0], by, until=0.01)
    # Momentum of b: (1 + 0.5) dv_b + 1 dv_a = 0 with dv_a = -2.
    kick = 2.0 / 1.5
    assert result.run.v[-1, 1] == pytest.approx(kick, rel=1e-4)
    assert result.joints["b"].peak_gear_torque == pytest.approx(0.5 * kick / 1e-3, rel=1e-6)


# -- the mass matrix -------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [("tooth", "friction"), ("friction", "tooth"), ("tooth", "none")])
@pytest.mark.parametrize("efficiency", [1.0, 0.8])
def test_rotors_are_the_only_inertia_of_a_joint(
    kinds: tuple[Any, Any], efficiency: float, tmp_path: Path
) -> None:
    """A point on its own axis: with 10 kg m^2 of its rotor the arm has a positive definite mass."""
    rotor: Any = {"gear_ratio": 100.0, "rotor_inertia": 1e-3, "efficiency": efficiency}
    by = pl.Brakes(
        {
            name: pl.safety.JointBrake(kind=kind, dynamic_torque=0.5, delay=0.02, **rotor)
            for name, kind in zip(("j1", "j2"), kinds, strict=True)
        }
    )
    results = []
    for inertia in (0.0, 1e-9):
        robot = point_at_the_end(inertia, tmp_path)
        results.append(pl.stop(robot, [0.3, 0.4], [1.0, -1.0], brakes=by, until=3.0))
    none, little = results
    assert none.outcome == little.outcome
    assert none.ledger.relative_error < 1e-6
    np.testing.assert_allclose(none.run.q[-1], little.run.q[-1], atol=1e-6)


def point_at_the_end(inertia: float, folder: Path) -> pl.Mechanism:
    """Two links; the second is a mass on its axis, with little inertia or none but its rotor's."""
    text = """<robot name="wrist"><link name="base"/>"""
    for name, x, moment in (("a", 0.3, 0.01), ("b", 0.0, inertia)):
        text += (
            f'<link name="{name}"><inertial><origin xyz="{x} 0 0"/><mass value="2"/><inertia '
            f'ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
            "</link>"
        )
    for name, parent, child, x in (("j1", "base", "a", 0.0), ("j2", "a", "b", 0.6)):
        text += (
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/><axis xyz="0 -1 0"/><dynamics armature="1e-3"/>'
            '<limit lower="-9" upper="9" effort="9" velocity="9"/></joint>'
        )
    path = folder / "wrist.urdf"
    path.write_text(text + "</robot>")
    return pl.load(path)


def test_a_state_that_is_no_number_is_not_taken_for_a_singular_mass() -> None:
    for wrong in (-np.inf, np.nan):
        assert isinstance(mass_error(np.diag([1.0, wrong])), pl.NotFinite)
    with pytest.raises(pl.NotFinite, match="not finite"):
        solve_mass(np.diag([1.0, -np.inf]), np.ones(2))
    with pytest.raises(pl.SingularMass, match=r"not positive definite \(coordinate 1\)"):
        solve_mass(np.diag([1.0, -1.0]), np.ones(2))


# -- loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", [0, 1])
@pytest.mark.parametrize("name", ["delta", "palletizer", "fivebar"])
def test_file_that_does_not_say_which_joints_have_motors(name: str, category: int) -> None:
    """Those with brakes have: hinges and rods that may spin are passive either way."""
    case = driven_case(name)
    joints = {joint: case.brakes.joints[joint] for joint in case.robot.actuated}
    by = pl.Brakes(joints, case.brakes.chain)
    silent = build(replace(case.robot.description, actuated=None))
    assert set(silent.actuated) >= set(case.robot.actuated)
    assert set(by.motorized(silent)) == set(case.robot.actuated)
    said, not_said = (
        pl.stop(robot, case.q, case.v, brakes=by, category=category, until=3.0)
        for robot in (case.robot, silent)
    )
    assert said.stopping_time == pytest.approx(not_said.stopping_time, rel=1e-6)
    for joint in joints:
        assert said.joints[joint].angle == pytest.approx(not_said.joints[joint].angle, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["palletizer", "fivebar", "fourbar"])
def test_loops_on_slow_ramps_against_dense_inverse_dynamics(name: str, seed: int) -> None:
    """Long steps: peaks of the torques, and the work from energies and known friction."""
    case, rng = driven_case(name), np.random.default_rng([seed, 12])
    slower = {
        joint: replace(brake, deceleration=float(rng.uniform(0.5, 1.5)))
        if joint in case.robot.actuated
        else brake
        for joint, brake in case.brakes.joints.items()
    }
    case = replace(case, brakes=replace(case.brakes, joints=slower), v=0.3 * case.v)
    on_path = bool(rng.integers(2))
    stop = case.stop(category=pl.Category2(on_path=on_path))
    at = [case.robot.coordinates(joint).v.start for joint in case.robot.actuated]
    slowed = [float(slower[joint].deceleration or 0.0) for joint in case.robot.actuated]
    times = np.abs(case.v[at]) / slowed
    times = np.full(len(at), times.max()) if on_path else times
    begin = case.brakes.chain.command
    sampled = sampled_peaks(case, stop, begin, case.v[at] / times, times)
    peaks = np.array([stop.joints[joint].peak_torque for joint in case.robot.actuated])
    assert np.all(peaks > (1 - 1e-6) * sampled)
    np.testing.assert_allclose(peaks, sampled, rtol=1e-4)
    assert stop.ledger.relative_error < 1e-6
