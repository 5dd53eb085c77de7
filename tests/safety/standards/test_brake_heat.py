"""Heat of brakes: what a flywheel has is what its brake takes; how many stops that allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.errors import BadValue
from pinloop.safety import JointBrake, brake_heat

INERTIA, SPEED, TORQUE = 4.0, 7.0, 30.0


def wheel() -> pl.Mechanism:
    body = {"name": "wheel", "mass": 10, "com": [0, 0, 0], "inertia": np.diag([2, 2, INERTIA])}
    axle = {"name": "axle", "pair": "revolute", "axis": [0, 0, 1], "point": [0, 0, 0]}
    axle |= {"parent": "ground", "child": "wheel"}
    return pl.from_screws({"name": "wheel", "bodies": [body], "joints": [axle]})


def stopped(speed: float = SPEED, **numbers: Any) -> pl.StopResult:
    brake = JointBrake(side="joint", dynamic_torque=TORQUE, **numbers)
    brakes = pl.Brakes({"axle": brake})
    robot = wheel()
    return pl.stop(robot, robot.neutral, [speed], brakes=brakes)


def test_the_brake_takes_what_the_wheel_has() -> None:
    """Also with friction, which takes its share; with a delay the drive holds the speed."""
    whole = INERTIA * SPEED**2 / 2
    assert brake_heat(stopped()).brakes[0].energy == pytest.approx(whole, rel=1e-9)
    share = TORQUE / (TORQUE + 6.0)
    assert stopped(coulomb=6.0).brake_energy["axle"] == pytest.approx(share * whole, rel=1e-9)
    # Until the brake has its torque, friction alone slows the wheel.
    late = stopped(coulomb=6.0, delay=0.1).brake_energy["axle"]
    slower = SPEED - 6.0 / INERTIA * 0.1
    assert late == pytest.approx(share * INERTIA * slower**2 / 2, rel=1e-9)


def test_stops_an_hour_and_in_life() -> None:
    """640 J an hour with 64 J a stop are ten stops (the catalogue of a servo motor's brake)."""
    speed = float(np.sqrt(2 * 64.0 / INERTIA))
    limits = {"energy_per_stop": 64.5, "energy_per_hour": 640.1, "energy_in_life": 6.4e5}
    heat = brake_heat(stopped(speed, **limits))
    (work,) = heat.brakes
    assert work.energy == pytest.approx(64.0, rel=1e-9)
    assert heat.stops_per_hour == pytest.approx(640.1 / 64.0, rel=1e-9)
    assert work.stops_in_life == pytest.approx(1e4, rel=1e-9)
    assert heat.within and "10 at most" in str(heat)
    hot = stopped(2 * speed, **limits)
    assert not brake_heat(hot).within
    assert brake_heat(hot).stops_per_hour == pytest.approx(640.1 / 256.0, rel=1e-9)
    assert "too hot in one stop: axle" in str(brake_heat(hot))
    assert any("energy_per_stop" in text and "256" in text for text in hot.warnings)
    assert not any("energy_per_stop" in text for text in stopped(speed, **limits).warnings)


def test_of_several_stops_each_brake_counts_by_its_own() -> None:
    robot = pl.example("six_axis_arm")
    file = pl.example_file("six_axis_arm.brakes.yaml")
    speeds = ({"joint_1": 1.5}, {"joint_2": 1.2}, {"joint_1": 0.2})
    stops = [pl.stop(robot, robot.neutral, robot.velocity(v), brakes=file) for v in speeds]
    heat = brake_heat(stops)
    by_joint = {work.joint: work for work in heat.brakes}
    assert by_joint["joint_1"].case == 0 and by_joint["joint_2"].case == 1
    mean = np.mean([stop.brake_energy["joint_1"] for stop in stops])
    assert by_joint["joint_1"].mean == pytest.approx(mean)
    assert heat.stops_per_hour is None and "energy_per_hour is not given for joint_1" in str(heat)
    total = sum(stops[0].brake_energy.values())
    assert total == pytest.approx(float(stops[0].ledger.dissipated["brake"].sum()))


def test_a_study_names_the_case_with_most(tmp_path: Any) -> None:
    robot, file = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    sampling = pl.safety.Sobol(4)
    study = pl.study(robot, file, sampling=sampling, results=tmp_path / "s.csv", jobs=1)
    heat = brake_heat(study)
    energies = [study.replay(case).brake_energy["joint_2"] for case in range(4)]
    work = next(work for work in heat.brakes if work.joint == "joint_2")
    assert work.case == int(np.argmax(energies)) and work.energy == max(energies)
    assert heat.as_dict()["stops"] == 4


def test_no_stop_is_no_heat() -> None:
    with pytest.raises(BadValue, match="no stop"):
        brake_heat([])
    with pytest.raises(BadValue, match="energy_per_stop"):
        JointBrake(energy_per_stop=-1.0)
