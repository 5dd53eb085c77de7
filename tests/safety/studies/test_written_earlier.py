"""Files that an earlier state of the package wrote are still read, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pinloop as pl

ROOT = Path(__file__).parents[3]
WRITTEN = ROOT / "tests" / "written"


def test_brakes() -> None:
    shoulder = pl.safety.JointBrake(
        gear_ratio=100.0, rotor_inertia=2e-5, dynamic_torque=1e-5, static_torque=1.2, delay=0.04,
        rise=0.02, tolerance=0.2, deceleration=5.0,
        sources={"gear_ratio": "published", "delay": "published"},
        notes={"delay": "sheet 12", "dynamic_torque": "a guess"},
    )  # fmt: skip
    elbow = pl.safety.JointBrake(
        kind="tooth", pitch=0.1, impact_time=2e-3, coulomb=0.5, breakaway=0.7, stribeck_speed=0.1
    )
    chain = pl.safety.Chain(0.005, 0.01, 0.005, {"sensor": "measured"}, {"sensor": "two cycles"})
    faults = ("brake of shoulder late by 0.01 s",)
    earlier = pl.Brakes.from_yaml(WRITTEN / "earlier.brakes.yaml")
    assert earlier == pl.Brakes(
        {"shoulder": shoulder, "elbow": elbow}, chain, faults, robot="palletizer"
    )


def test_a_run() -> None:
    run = pl.load_trajectory(WRITTEN / "earlier.npz")
    assert run.events[0][0] == 0.01 and run.t[-1] == 0.02
    assert [len(mode.locks) for mode in run.modes] == [0, 1]
