"""One case of a study: the stop it stands for, and the row that is kept of it."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from threading import Barrier, Thread

import numpy as np
import pytest
import trimesh

import pinloop as pl
from pinloop.safety.space.clearance import clearance
from pinloop.safety.space.solids import Obstacle
from pinloop.safety.studies.cases import Setup, columns
from pinloop.safety.studies.study import Study

from ...states import URDF
from . import wheels

ARM_SPACE = pl.safety.Space(
    payload=(0.0, 10.0), delay={"joint_2": (0.0, 0.05)}, band={"joint_1": (-1, 1), "joint_3": -1.0}
)


@pytest.fixture(scope="module")
def arm() -> pl.Mechanism:
    return pl.load(URDF / "six_axis_arm.urdf")


def setup_of(
    robot: pl.Mechanism, brakes: pl.Brakes, space: pl.safety.Space, **more: object
) -> Setup:
    one: Study = pl.study(robot, brakes, space, pl.safety.Random(1), jobs=1, search=False)
    return replace(one.setup, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def setup(arm: pl.Mechanism) -> Setup:
    payload = pl.Payload(3.0, com=(0.0, 0.1, 0.05), inertia=0.02 * np.eye(3), frame="tool0")
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    return setup_of(arm, brakes, ARM_SPACE, payload=payload)


def drawn(setup: Setup, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {one.name: one.at(float(rng.random())) for one in setup.variables}


def test_a_case_is_the_stop_that_its_values_say(arm: pl.Mechanism, setup: Setup) -> None:
    values = drawn(setup, 1)
    names = [f"joint_{k}" for k in range(1, 7)]
    q = arm.configuration({name: values[f"pose.{name}"] for name in names})
    v = arm.velocity({name: values[f"speed.{name}"] for name in names})
    brakes = (
        setup.brakes.late("joint_2", values["delay.joint_2"])
        .at_band({"joint_1": values["band.joint_1"]})
        .at_band({"joint_3": -1.0})
    )  # fmt: skip
    assert setup.payload is not None
    payload = replace(setup.payload, mass=values["payload"])
    by_hand = pl.stop(arm, q, v, brakes=brakes, payload=payload)
    row = setup.evaluate(7, values)[0]
    assert list(row) == columns(setup)
    assert row["case"] == 7.0 and row["outcome"] == by_hand.outcome and row["reason"] == ""
    assert row["stopping_time_s"] == by_hand.stopping_time
    assert row["reaction_time_s"] == by_hand.reaction_time
    assert row["kinetic_energy_J"] == by_hand.ledger.kinetic_before
    for name, joint in by_hand.joints.items():
        assert row[f"{name}_time_s"] == joint.time
        assert row[f"{name}_reaction_rad"] == joint.reaction_angle
        assert row[f"{name}_braking_rad"] == joint.braking_angle
        assert row[f"{name}_excursion_rad"] == joint.excursion
        assert row[f"{name}_peak_speed_rad_per_s"] == joint.peak_speed
        assert row[f"{name}_peak_torque_N_m"] == joint.peak_torque
        assert row[f"{name}_peak_gear_torque_N_m"] == joint.peak_gear_torque
        assert row[f"{name}_margin"] == joint.margin
        assert row[f"{name}_slips"] == joint.slips
    for name, column in (("pose.joint_4", "joint_4_pose_rad"), ("payload", "payload_kg")):
        assert row[column] == values[name]
    # The way of the tool by chords, a tenth of a millisecond each.
    point = by_hand.point(every=1e-4)
    assert row["tool_travel_m"] == pytest.approx(point.length, rel=1e-6)
    assert row["tool_peak_speed_m_per_s"] == pytest.approx(point.peak_speed, rel=1e-4)


def test_each_variable_matters(setup: Setup) -> None:
    values = drawn(setup, 2)
    usual = setup.evaluate(0, values)[0]["tool_travel_m"]
    for name in ("payload", "delay.joint_2", "band.joint_1", "pose.joint_2", "speed.joint_1"):
        (one,) = (one for one in setup.variables if one.name == name)
        other = values | {name: one.low if values[name] > 0.5 * (one.low + one.high) else one.high}
        assert setup.evaluate(0, other)[0]["tool_travel_m"] != usual, name
        assert setup.evaluate(0, values)[0]["tool_travel_m"] == usual, f"after {name}"


def test_no_payload_where_its_mass_is_zero(setup: Setup) -> None:
    """Neither has it the inertia that loads elsewhere in the space have."""
    values = drawn(setup, 1) | {"payload": 0.0}
    bare = replace(setup, payload=None)
    assert setup.evaluate(0, values)[0] == bare.evaluate(0, values)[0]
    inertia, own = (one.stop(values).robot.model.inertias[6] for one in (setup, bare))
    assert inertia.isApprox(own, 1e-15)


def test_a_case_of_a_motion(arm: pl.Mechanism) -> None:
    t = np.linspace(0.0, 2.0, 21)
    motion = pl.safety.JointTrajectory(arm.actuated, t, 0.3 * np.sin(2 * t)[:, None] * np.ones(6))
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    setup = setup_of(arm, brakes, pl.safety.Space(motion=motion))
    row = setup.evaluate(0, {"instant": 0.7})[0]
    by_hand = pl.stop(arm, brakes=brakes, trigger=pl.safety.Trigger(motion, 0.7))
    assert row["instant_s"] == 0.7
    assert row["stopping_time_s"] == by_hand.stopping_time
    assert row["joint_2_excursion_rad"] == by_hand.joints["joint_2"].excursion


def test_a_robot_with_loops_is_assembled() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
    pose = {"base_yaw": 0.3, "shoulder": 0.2, "elbow": -0.1, "wrist": 1.0}
    setup = setup_of(robot, brakes, pl.safety.Space(speed={}))
    speed = {"base_yaw": 0.4, "shoulder": -0.3, "elbow": 0.5, "wrist": 0.2}
    values = {f"pose.{n}": x for n, x in pose.items()}
    values |= {f"speed.{n}": x for n, x in speed.items()}
    run = setup.stop(values).run
    assert run.closure().max() < 1e-9
    for name in robot.actuated:
        assert run.q[0, robot.coordinates(name).q.start] == pytest.approx(pose[name], abs=1e-12)
        assert run.v[0, robot.coordinates(name).v.start] == pytest.approx(speed[name], abs=1e-12)
    assert setup.evaluate(0, values)[0]["outcome"] == "stopped"
    out_of_reach = setup.evaluate(3, values | {"pose.shoulder": 1.5, "pose.elbow": -1.5})[0]
    assert out_of_reach["outcome"] == "failed"
    assert "joint 'elbow' is set to -1.5, outside its limits" in str(out_of_reach["reason"])
    assert "stopping_time_s" not in out_of_reach and out_of_reach["case"] == 3.0


def test_redundant_rows_of_loops_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases with other payloads are the stops of the robot as it was loaded."""
    robot = pl.load(URDF / "palletizer.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
    setup = setup_of(robot, brakes, pl.safety.Space(speed={}, payload=(1.0, 40.0)))
    searched = []

    def counted(robot: pl.Mechanism) -> pl.Mechanism:
        searched.append(robot.name)
        return pl.regularize(robot)

    monkeypatch.setattr("pinloop.safety.studies.cases.regularize", counted)
    monkeypatch.setattr("pinloop.simulation.modes.regularize", counted)
    state = {"base_yaw": (0.3, 0.4), "shoulder": (0.2, -0.3), "elbow": (-0.1, 0.5), "wrist": (1, 0)}
    values = {f"pose.{name}": pose for name, (pose, _) in state.items()}
    values |= {f"speed.{name}": speed for name, (_, speed) in state.items()}
    cases = [values | {"payload": mass} for mass in (1.0, 15.0, 40.0)]
    stops = [setup.stop(values) for values in cases]
    assert searched == ["palletizer"]
    q = pl.assemble(robot, fixed={name: pose for name, (pose, _) in state.items()})
    v = pl.consistent_velocity(robot, q, {name: speed for name, (_, speed) in state.items()})
    for values, one in zip(cases, stops, strict=True):
        alone = pl.stop(robot, q, v, brakes=brakes, payload=values["payload"])
        np.testing.assert_array_equal(one.run.q, alone.run.q)
        np.testing.assert_array_equal(one.run.v, alone.run.v)
        assert one.stopping_time == alone.stopping_time
        assert one.ledger.kinetic_before == alone.ledger.kinetic_before
    assert len({one.ledger.kinetic_before for one in stops}) == 3


def test_what_numerics_raise_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(setup: Setup, values: object) -> pl.StopResult:
        raise np.linalg.LinAlgError("Singular\n matrix")

    setup = setup_of(wheels.robot(), wheels.BRAKES, wheels.SPACE)
    monkeypatch.setattr(Setup, "stop", broken)
    row = setup.evaluate(0, drawn(setup, 1))[0]
    assert (row["outcome"], row["reason"]) == ("failed", "LinAlgError: Singular matrix")


def test_a_brake_that_is_too_weak_is_no_failure() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml").missing("joint_2")
    setup = setup_of(robot, brakes, pl.safety.Space(), until=1.0)
    row = setup.evaluate(0, drawn(setup, 1))[0]
    assert row["outcome"] == "does not hold" and row["reason"] == ""


# -- obstacles ------------------------------------------------------------------------------------

ALL_OBSTACLES = (
    Obstacle.box("table", [0.5, 0.5, 0.1], (1.5, 1.0, 0.5)),
    Obstacle.sphere("ball", 0.2, (0.5, 1.5, 1.5)),
    Obstacle.mesh("ring", trimesh.creation.torus(1.0, 0.1), (2.5, 0.0, 1.0)),
)


def test_the_nearest_obstacle_counts(arm: pl.Mechanism, setup: Setup) -> None:
    around = replace(setup, obstacles=ALL_OBSTACLES)
    values = drawn(setup, 3)
    row = around.evaluate(0, values)[0]
    assert set(row) == set(columns(around))
    run = around.stop(values).run
    each = [clearance(run, one)[one.name].distance for one in ALL_OBSTACLES]
    assert row["clearance_m"] == min(each)
    assert min(each) < sorted(each)[1]
    again = pickle.loads(pickle.dumps(around))
    assert again.evaluate(0, values)[0] == row
    assert "clearance_m" not in columns(setup)


# -- sharing --------------------------------------------------------------------------------------


def test_threads_do_not_share_a_machine(setup: Setup) -> None:
    """Neither one that all of them could use, nor one that another thread needs otherwise."""
    cases = [drawn(setup, seed) for seed in (4, 5, 6)]
    same = {name: x for name, x in cases[0].items() if not name.startswith(("pose", "speed"))}
    cases[1] |= same
    alone = [setup.evaluate(k, case)[0] for k, case in enumerate(cases)]
    found: list[dict[str, float | str]] = [{}, {}, {}]
    start = Barrier(3)

    def work(k: int) -> None:
        start.wait()
        for _ in range(3):
            found[k] = setup.evaluate(k, cases[k])[0]

    threads = [Thread(target=work, args=(k,)) for k in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == alone


def test_each_thread_has_a_machine_of_its_own(setup: Setup) -> None:
    """Every stop writes to the data of Pinocchio in it."""
    one, other = drawn(setup, 4), drawn(setup, 5)
    mine = setup._machine(one)
    found: list[object] = []

    def work() -> None:
        found.extend([setup._machine(one), setup._machine(other), setup._machine(other)])

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] is not mine and found[1] is found[2]
    assert setup._machine(one) is mine
