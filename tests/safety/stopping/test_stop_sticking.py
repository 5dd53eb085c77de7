"""No instant is decided twice: what is decided at an instant agrees with the motion after it.

The hardest cases are the simple ones: loads that cancel by symmetry, brakes whose bounds they just
meet, joints that nothing holds. The loads, the laws of friction and the directions are computed
again here, by Pinocchio's inverse dynamics.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.safety.stopping.phase import Phase
from pinloop.safety.stopping.prepared_robot import prepare_robot
from pinloop.safety.stopping.reference import EvenPiece, Piece
from pinloop.safety.stopping.stick_slip import PhaseStart, decide_phase
from pinloop.safety.stopping.stop_equations import StopEquations

from ...screw_tables import Array
from ...states import URDF, moving
from ...states import robot as loaded
from .robots_to_stop import G, X, Y, Z, arm_table, brakes, chain_table, moved, pendulum, solid


def symmetric_arm(wrist: tuple[Array, Array, Array] = (X, Y, X)) -> pl.Mechanism:
    """Six axes, all centres of mass on them; the fourth and the sixth are parallel if q5 = 0."""
    places = [(0, 0, 0.15), (0, 0, 0.35), (0.1, 0, 0.55), (0.35, 0, 0.55), (0.5, 0, 0.55)]
    bodies = [
        solid(f"link_{k + 1}", mass, com, 0.01 * mass)
        for k, (mass, com) in enumerate(
            zip([4, 8, 3, 2.5, 1.5, 0.4], [*places, (0.65, 0, 0.55)], strict=True)
        )
    ]
    points = [(0, 0, 0.15), (0, 0, 0.15), (0, 0, 0.55), (0.2, 0, 0.55), (0.5, 0, 0.55)]
    table = chain_table([*points, (0.6, 0, 0.55)], [Z, Y, Y, *wrist], bodies)
    return pl.from_screws(table | {"gravity": -G * Z})


def pose(seed: int) -> Array:
    """Some pose with the wrist stretched; every other one with all joints at right angles."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2, 2, 6) if seed % 2 else np.pi / 2 * rng.integers(-2, 3, 6)
    q[4] = 0.0
    return np.asarray(q, dtype=float)


# -- stops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", [0, 1, 2])
@pytest.mark.parametrize("moving", [0, 1, 3, 6])
def test_symmetric_arm_stops_from_every_pose(moving: int, category: int) -> None:
    """The loads of its wrist cancel: nothing but rounding is left of them."""
    arm = symmetric_arm()
    by = pl.Brakes.template(arm)
    for seed in range(8):
        v = np.where(np.arange(6) < moving, np.random.default_rng(seed).choice([-1.0, 0.7, 1.0]), 0)
        stop = pl.stop(arm, pose(seed), v, brakes=by, category=category)
        assert stop.holds and stop.ledger.relative_error < 1e-6
        instants = Counter(event for event in stop.events if "comes" in event[1])
        assert max(instants.values(), default=0) <= 1


@pytest.mark.parametrize("wrist", [(X, Y, X), (Y, Z, Y), (X, X, X)])
def test_joints_without_load_stay_though_nothing_holds_them(
    wrist: tuple[Array, Array, Array],
) -> None:
    """Upright, nothing loads any joint. Between the end of the drives and the brakes all are free,
    and yet nothing happens."""
    arm = symmetric_arm(wrist)
    q = np.array([0.3, -np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    stop = pl.stop(arm, q, np.zeros(6), brakes=pl.Brakes.template(arm), gravity=[0, 0, 0])
    assert stop.holds and stop.stopping_time == 0.0
    assert not any("comes" in name for _, name in stop.events)
    assert all(joint.slips == 0 and joint.time == 0.0 for joint in stop.joints.values())


def test_what_gravity_pulls_at_falls_until_its_brake_comes() -> None:
    """Closed form: from rest to rest under a constant load, free at first, then braked."""
    chain = pl.safety.Chain(drive_off=0.01)
    by = brakes(chain, axis={"dynamic_torque": 60.0, "delay": 0.04})
    stop = pl.stop(pendulum(), [0.0], [0.0], brakes=by)
    # Over so small an angle the torque of gravity is constant to five digits.
    fall, load, inertia = 0.03, 2.0 * G * 0.5, 0.6
    speed = load / inertia * fall
    braking = speed * inertia / (60.0 - load)
    one = stop.joints["axis"]
    assert one.slips == 1 and one.state == "held"
    assert one.time == pytest.approx(0.04 + braking, rel=1e-4)
    assert one.angle == pytest.approx(-0.5 * speed * (fall + braking), rel=1e-3)


@pytest.mark.parametrize("excess", [-1e-3, -1e-9, -1e-11, 0.0, 1e-11, 1e-9, 1e-3])
def test_a_load_that_its_brake_just_holds(excess: float) -> None:
    """It stands, or slides off; where rounding decides, it does one of them once."""
    load = 2.0 * G * 0.5
    by = brakes(axis={"dynamic_torque": load * (1.0 - excess)})
    stop = pl.stop(pendulum(), [0.0], [0.0], brakes=by, until=0.2)
    assert len(stop.history.phases) <= 4
    if abs(excess) >= 1e-9:  # nearer to the bound, either will do
        slides = any(phase.sliding.direction.any() for phase in stop.history.phases)
        assert slides == (excess > 0)


@pytest.mark.parametrize("seed", [1, 7, 16, 20])
def test_brakes_that_engage_hold_what_hardly_loads_them(seed: int) -> None:
    """Without gravity the loads of an arm that creeps are 1e-19 N m: its joints would leave rest
    and be back in less time than the clock tells apart."""
    arm, rng = symmetric_arm(), np.random.default_rng(seed)
    q, v = rng.uniform(-2, 2, 6), 1e-9 * rng.uniform(-2, 2, 6)
    stop = pl.stop(arm, q, v, brakes=pl.Brakes.template(arm), gravity=[0, 0, 0])
    assert stop.holds and len(stop.history.phases) < 60


def test_what_nothing_grips_keeps_the_rounding_of_its_speed() -> None:
    """A coupler spins about coincident pins at 17 rad/s, and shakes a crank that its drive holds.

    The speed of joint_4, which nothing holds, is rounding; to leave that out where it is decided
    what sticks changes loads by more than is rounding in them.
    """
    machine = pl.load(URDF / "sevenbar.urdf")
    arm, pins = [-3.256, -3.443, 4.791], 0.9272952180016123
    q = pl.assemble(machine, np.array([*arm, pins, -0.548, pins]))
    v = pl.consistent_velocity(machine, q, {"joint_1": -0.6438, "joint_4": 0.0, "joint_5": -17.48})
    by = pl.Brakes.template(machine).at_band(0.462)
    stop = pl.stop(machine, q, v, brakes=by, category=2)
    assert stop.outcome == "does not hold" and stop.run.t[-1] == 10.0
    assert sum("joint_1 comes loose" in what for _, what in stop.events) > 10


@pytest.mark.parametrize("seed", [9, 13])
def test_loads_that_change_faster_than_instants_are_located(seed: int) -> None:
    """Viscous friction on links so light that loads change by 1e7 N m in a second."""
    links = [solid(f"l{k}", 0.02, (0.05 * k + 0.025, 0, 0), 1e-5) for k in range(3)]
    finger = pl.from_screws(
        chain_table([(0, 0, 0), (0.05, 0, 0), (0.1, 0, 0)], [-Y] * 3, links) | {"gravity": -G * Z}
    )
    rng, chain = np.random.default_rng(seed), pl.safety.Chain(sensor=0.005, controller=0.01)
    drive = {"drive_torque": 15.0, "deceleration": 20.0, "coulomb": 10.0, "dynamic_torque": 15.0}
    by = brakes(chain, **{n: drive | {"viscous": rng.choice([3, 8, 10])} for n in finger.joints})
    q, v = rng.uniform(-1, 1, 3), rng.uniform(-7, 7, 3)
    stop = pl.stop(finger, q, v, brakes=by, category=1, until=0.0153)
    assert stop.run.t[-1] == 0.0153


@pytest.mark.parametrize("ratio", [1.0, 1.0 + 1e-13, 1.0 - 1e-13])
def test_two_parallel_joints_come_loose_at_the_same_instant(ratio: float) -> None:
    """Both brakes of a stretched wrist are overcome together; only one of them has to give way."""
    arm = symmetric_arm()
    wrist = {"dynamic_torque": 1.0}
    by = brakes(
        j1={"dynamic_torque": 40.0, "delay": 0.02}, j2={"dynamic_torque": 400.0},
        j3={"dynamic_torque": 100.0}, j4=wrist, j5={"dynamic_torque": 10.0},
        j6={"dynamic_torque": ratio},
    )  # fmt: skip
    q = np.array([0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    stop = pl.stop(arm, q, [2.0, 0.0, 0.0, -3.0, 0.0, 3.0], brakes=by, gravity=[0, 0, 0])
    assert stop.holds
    assert max(Counter(stop.events).values()) <= 1


@pytest.mark.parametrize("robot", ["six_axis_arm", "palletizer"])
@pytest.mark.parametrize("speed", [1e-6, 1e-9])
def test_the_path_of_a_robot_that_hardly_moves_is_looked_at_in_few_steps(
    robot: str, speed: float
) -> None:
    """It stops on its path within microseconds, of a time that begins much earlier."""
    mechanism = loaded(robot)
    q = pl.assemble(mechanism)
    v = pl.consistent_velocity(mechanism, q, {mechanism.actuated[0]: speed})
    by = URDF / f"{robot}.brakes.yaml"
    stop = pl.stop(mechanism, q, v, brakes=by, category=pl.Category1(on_path=True))
    assert stop.holds and len(stop.run.t) < 200


def test_a_weak_drive_that_is_to_crawl_lets_its_load_go_once() -> None:
    """Rest, and a reference that hardly moves, are not taken for each other in turn."""
    by = brakes(axis={"dynamic_torque": 30.0, "drive_torque": 5.0, "deceleration": 1e-10})
    stop = pl.stop(pendulum(), [0.0], [1e-11], brakes=by, category=pl.Category1(time_limit=0.05))
    falls = (2.0 * G * 0.5 - 5.0) / 0.6
    assert stop.holds and len(stop.history.phases) < 12
    assert np.abs(stop.run.v).max() == pytest.approx(falls * 0.05, rel=1e-4)


def test_rods_that_spin_when_the_robot_stands_are_named() -> None:
    """Nothing brakes the rods of a delta robot about their own axes, which moves no frame."""
    robot = loaded("delta")
    q = pl.assemble(robot)
    v = pl.consistent_velocity(robot, q, {"arm_1": 1.0, "arm_2": -2.0, "arm_3": 0.5})
    spin = np.zeros(robot.nv)
    spin[robot.coordinates("elbow_3a").v] = rod_axis(robot, q, "elbow_3a")
    by = pl.Brakes.template(robot)
    for extra in (0.0, 0.3):
        stop = pl.stop(robot, q, v + extra * spin, brakes=by)
        speed = np.linalg.norm(stop.run.v[-1][robot.coordinates("elbow_3a").v])
        told = [line for line in stop.warnings if "spin about their own axes" in line]
        assert stop.holds and (speed > 1e-3) == any("elbow_3a" in line for line in told)
        if extra:
            assert speed > 0.1


def rod_axis(robot: pl.Mechanism, q: Array, name: str) -> Array:
    """Direction in which a rod between two ball joints can turn alone, in its own joint."""
    columns = robot.coordinates(name).v
    J = pl.EquationsOfMotion(robot).terms(0.0, q, np.zeros(robot.nv))[0][:, columns]
    return np.asarray(np.linalg.svd(J)[2][-1])


# -- decisions ------------------------------------------------------------------------------------


def at_rest(n: int) -> Piece:
    """What drives follow that stand still."""
    return EvenPiece(0.0, np.zeros(n))


def drawn_moment(seed: int) -> tuple[StopEquations, PhaseStart]:
    """An arm at rest or with some joints at rest, and brakes that often just hold, or not at all.

    Half of the arms are symmetric. Bounds are zero, rise from zero, equal the load to the last
    bit, miss it by rounding, or are far off.
    """
    rng = np.random.default_rng(seed)
    symmetric = rng.random() < 0.5
    arm = symmetric_arm() if symmetric else pl.from_screws(arm_table(rng, int(rng.integers(1, 6))))
    n = arm.nv
    q = pose(seed) if symmetric else rng.uniform(-3, 3, n)
    v = np.where(rng.random(n) < 0.7, 0.0, rng.uniform(-1, 1, n)) * (rng.random() < 0.7)
    load = np.abs(pin.nonLinearEffects(arm.model, arm.model.createData(), q, v))
    kind = rng.integers(0, 6, n)
    beside = np.array([1.0, 1.0 + 1e-15, 1.0 - 1e-13, 0.5, 2.0, 1.0 + 1e-9])
    torque = np.maximum(load * beside[kind], 1e-14)
    by = {
        name: pl.safety.JointBrake(
            side="joint", dynamic_torque=torque[k], static_torque=torque[k] * rng.choice([1, 1.3]),
            efficiency=float(rng.choice([1.0, 1.0, 0.8])), rotor_inertia=float(rng.choice([0, 1])),
        )
        for k, name in enumerate(arm.joints)
    }  # fmt: skip
    machine = prepare_robot(arm, pl.Brakes(by))
    stage = rng.integers(0, 3, n)  # not yet, just now, long since
    none = np.zeros(n)
    now = PhaseStart(
        0.0, q, v, np.where(stage == 2, 1.0, 0.0), np.where(stage == 1, 50.0, 0.0),
        at_rest(n), none > 0, False, False,
        np.zeros(n, dtype=np.int64), {}, np.zeros(n),
    )  # fmt: skip
    return StopEquations(machine.equations, machine.train), now


def leaving(equations: StopEquations, phase: Phase, now: PhaseStart) -> tuple[Array, Array]:
    """What leaves rest: the acceleration in the direction declared, and how much of it is noise."""
    from_rest = (now.v == 0.0) & (phase.sliding.direction != 0.0)
    a = equations.solve(now.t, now.q, now.v).a
    inverse = np.linalg.inv(equations.equations.mass(now.q))
    noise = np.abs(inverse) @ phase.noise
    return (phase.sliding.direction * a)[from_rest], noise[from_rest]


@pytest.mark.parametrize("first", range(0, 1200, 200))
def test_what_is_decided_agrees_with_the_motion_after_it(first: int) -> None:
    """What sticks is not beyond its bounds, and what leaves rest goes where it was said to go."""
    stuck = left = 0
    for seed in range(first, first + 200):
        equations, now = drawn_moment(seed)
        phase = decide_phase(equations, now)
        equations.enter(phase)
        assert equations.passed(now.t, now.q, now.v).max(initial=-np.inf) < 0.0
        assert not equations.breaking_away(now.t, now.q, now.v).any()
        ahead, noise = leaving(equations, phase, now)
        assert np.all(ahead >= -2 * noise)
        stuck, left = stuck + int(phase.stuck.sum()), left + int((ahead > noise).sum())
    assert stuck > 100 and left > 50


@pytest.mark.parametrize("name", ["four-bar", "rssr", "slider-crank", "five-bar"])
def test_what_is_decided_in_a_loop_agrees_with_the_motion_after_it(name: str) -> None:
    """One joint holds the load of the loop, but for a little, also next to a dead point.

    Seen by the joint, the loop is up to ten thousand times as heavy there as the joint by itself.
    """
    robot, stuck, left = loaded(name), 0, 0
    n = robot.nv
    none = np.zeros(n)
    for seed in range(1, 9):
        q, _ = moving(robot, seed)
        for joint in [name for name in robot.joints if robot.coordinates(name).nv == 1]:
            locked = pl.EquationsOfMotion(robot, locks=[joint])
            load = abs(float(locked.motion(0.0, q, none).multipliers[-1]))
            for beyond in (1.0, 0.3, 0.01, 0.0, -0.01):
                torque = load - beyond * 1e-9 * (1.0 + load)
                machine = prepare_robot(robot, brakes(**{joint: {"dynamic_torque": torque}}))
                equations = StopEquations(machine.equations, machine.train)
                now = PhaseStart(
                    0.0, q, none, none + 1.0, none, at_rest(n), none > 0, False, False,
                    none.astype(np.int64), {}, none,
                )  # fmt: skip
                phase = decide_phase(equations, now)
                equations.enter(phase)
                assert equations.passed(0.0, q, none).max(initial=-np.inf) < 0.0
                ahead, noise = leaving(equations, phase, now)
                assert np.all(ahead >= -2 * noise)
                stuck, left = stuck + int(phase.stuck.sum()), left + len(ahead)
    assert stuck > 20 and left > 20


@pytest.mark.parametrize("first", range(0, 400, 200))
def test_what_nothing_grips_is_not_stuck(first: int) -> None:
    for seed in range(first, first + 200):
        equations, now = drawn_moment(seed)
        phase = decide_phase(equations, now)
        grips = equations.train.grips(now.ramp, now.slope)
        assert not phase.stuck[~grips].any()
        resists = grips | (equations.train.efficiency < 1.0)
        assert not phase.sliding.direction[~resists].any()


def test_noise_is_more_than_rounding_and_less_than_any_load() -> None:
    """The same arm seen from other frames: equal loads but for the last bits."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(1, 7))
        table = arm_table(rng, n)
        q, loads, noise = rng.uniform(-3, 3, n), [], np.zeros(n)
        for _ in range(6):
            R = pin.Quaternion(*rng.normal(size=4)).normalized().matrix()
            arm = pl.from_screws(moved(table, R))
            by = brakes(**{name: {"dynamic_torque": 1e6} for name in arm.joints})
            machine = prepare_robot(arm, by)
            equations, none = StopEquations(machine.equations, machine.train), np.zeros(n)
            now = PhaseStart(
                0.0, q, none, none + 1e-6, none, at_rest(n),
                none > 0, False, False, np.zeros(n, dtype=np.int64), {}, np.zeros(n),
            )  # fmt: skip
            phase = decide_phase(equations, now)
            equations.enter(replace(phase, stuck=none == 0))
            loads.append(equations.solve(0.0, q, none).holding_torque)
            noise = phase.noise
        spread = np.ptp(loads, axis=0)
        assert np.all(spread < 0.3 * noise)
        assert np.all(noise < 1e-10 * (np.abs(loads).max() + 10.0))


def test_a_joint_that_comes_back_at_once_is_held_for_that_instant() -> None:
    """Refuted, it sticks though its acceleration is more than nothing; others are as they were."""
    equations, now = drawn_moment(3)
    phase = decide_phase(equations, now)
    free = np.flatnonzero((now.v == 0.0) & (phase.sliding.direction != 0.0))
    for column in free.tolist():
        held = decide_phase(equations, replace(now, refuted=frozenset({column})))
        grips = bool(equations.train.grips(now.ramp, now.slope)[column])
        assert held.stuck[column] == grips
        if not grips:  # a gear with losses that nothing holds: the other way, then
            assert held.sliding.direction[column] in (-1.0, 1.0)
