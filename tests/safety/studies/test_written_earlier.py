"""Files that an earlier state of the package wrote are still read, to the last digit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

import pinloop as pl
from pinloop.safety.studies.cases import manifest_of
from pinloop.safety.studies.study import study
from pinloop.safety.studies.studyfile import read_study

ROOT = Path(__file__).parents[3]
WRITTEN = ROOT / "tests" / "written"

ENVIRONMENT = ("pinloop", "pinocchio", "numpy", "scipy", "robot_sha256", "method")
"""What a manifest says of the program that wrote it."""


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


def test_a_study_goes_on_with_its_results(tmp_path: Path) -> None:
    """The manifest is what a study knows its results by: digests stay, but for words of sources."""
    plan = read_study(WRITTEN / "earlier.study.yaml")
    results, beside = (tmp_path / f"r.csv{end}" for end in ("", ".manifest.json"))
    shutil.copy(WRITTEN / "earlier.study.csv", results)
    before = json.loads((WRITTEN / "earlier.study.csv.manifest.json").read_text())
    arguments = {
        **plan.arguments,
        "results": tmp_path / "new.csv",
        "sampling": pl.safety.Sobol(3, 1),
    }
    setup = study(plan.robot, **{**arguments, "until": 1e-3}).setup
    now = json.loads(json.dumps(manifest_of(setup, pl.safety.Sobol(3, 1)))) | {"until": 10.0}
    known = {key: value for key, value in now.items() if key in ENVIRONMENT}
    names = {name: now[name] for name in ("variables", "brakes_sha256")}  # called otherwise since
    assert before | known | names == now
    beside.write_text(json.dumps(before | known | {"brakes_sha256": now["brakes_sha256"]}))
    done = study(plan.robot, **{**plan.arguments, "results": results})
    assert done.complete and len(list(done.rows())) == 3
    assert np.isfinite(done.column("stopping_time_s")).all()


def test_a_run() -> None:
    run = pl.load_trajectory(WRITTEN / "earlier.npz")
    assert run.events[0][0] == 0.01 and run.t[-1] == 0.02
    assert [len(mode.locks) for mode in run.modes] == [0, 1]
