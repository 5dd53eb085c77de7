"""`pinloop allowed-speed`, `separation`, `minimum-distance`, `annex-b`: what Python computes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.cli import standards
from pinloop.safety.studies.cases import Setup

from .commands import Captured, printed_json

STUDY = """
format: pinloop-study-1
robot: six_axis_arm.urdf
brakes: six_axis_arm.brakes.yaml
space:
  pose: {joint_4: 0, joint_5: 0, joint_6: 0}
sampling: {method: random, count: 3, seed: 1}
jobs: 1
"""


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("six_axis_arm.urdf", "six_axis_arm.brakes.yaml"):
        Path(name).write_bytes(pl.example_file(name).read_bytes())
    Path("arm.study.yaml").write_text(STUDY)


def test_allowed_speed(capsys: Captured) -> None:
    words = ("allowed-speed", "arm.study.yaml", "--within", "travel=0.2", "--within", "time=250ms")
    document = printed_json(capsys, *words)
    arm = pl.example("six_axis_arm")
    space = pl.safety.Space(pose={"joint_4": 0.0, "joint_5": 0.0, "joint_6": 0.0})
    by_python = pl.allowed_speed(
        arm,
        pl.Brakes.from_yaml("six_axis_arm.brakes.yaml"),
        {"travel": 0.2, "time": 0.25},
        space,
        pl.safety.Random(3, seed=1),
        jobs=1,
    )
    assert document["share"] == by_python.share and 0.0 < by_python.share < 1.0
    assert [case["share"] for case in document["cases"]] == [c.share for c in by_python.cases]
    assert cli.run([*words]) == 0
    assert f"{100 * by_python.share:.1f} % of the speeds allowed" in capsys.readouterr().out


def test_distances_are_those_of_the_study(capsys: Captured) -> None:
    words = ("--detection", "50ms", "--intrusion", "850mm", "--results", "rows.csv")
    document = printed_json(
        capsys, "separation", "arm.study.yaml", *words, "--direction", "1,0,0", "--z-r", "10mm"
    )
    space = pl.safety.Space(pose={"joint_4": 0.0, "joint_5": 0.0, "joint_6": 0.0})
    arm, brakes = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    study = pl.study(arm, brakes, space, pl.safety.Random(3, seed=1), jobs=1)
    by_python = pl.separation(
        study, direction=(1, 0, 0), detection=0.05, intrusion=0.85, z_r=0.01, jobs=1
    )
    assert document["distance_m"] == by_python.distance and document["case"] == by_python.case
    least = printed_json(capsys, "minimum-distance", "arm.study.yaml", *words)
    assert least["distance_m"] == (
        pl.safety.minimum_distance(study, detection=0.05, intrusion=0.85).distance
    )
    newer = [*words, "--edition", "2024", "--supplement", "100mm"]
    apart = printed_json(capsys, "minimum-distance", "arm.study.yaml", *newer)
    assert apart["distance_m"] == pytest.approx(least["distance_m"] + 0.1)
    assert apart["edition"] == "ISO 13855:2024"


def test_tables_of_vendors(capsys: Captured) -> None:
    words = ["annex-b", "six_axis_arm.urdf", "--payload", "10kg", "--category", "0"]
    assert cli.run([*words, "--csv", "arm.csv", "--html", "arm.html", "--pdf", "arm.pdf"]) == 0
    out = capsys.readouterr().out
    assert "Category 0" in out and "written: arm.csv" in out and "written: arm.html" in out
    with Path("arm.csv").open() as file:
        assert [row["axis"] for row in csv.DictReader(file)] == ["joint_1", "joint_2", "joint_3"]
    assert "stopping distance" in Path("arm.html").read_text()
    assert Path("arm.pdf").read_bytes().startswith(b"%PDF")
    document = printed_json(capsys, *words, quiet=True)
    assert document["edition"] == "ISO 10218-1:2011" and document["payload_kg"] == 10.0
    with Path("arm.csv").open() as file:
        times = [float(row["stopping_time_s"]) for row in csv.DictReader(file)]
    assert [stop["stopping_time_s"] for stop in document["stops"]] == times


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["allowed-speed", "arm.study.yaml"], "there is no limit"),
        (["allowed-speed", "arm.study.yaml", "--within", "travel"], "is not a limit and its value"),
        (["allowed-speed", "arm.study.yaml", "--within", "travl=1"], "did you mean 'travel'"),
        (["separation", "arm.study.yaml", "--direction", "1,0"], "is not three numbers"),
        (["separation", "arm.study.yaml", "--z-d", "5s"], "with or without a unit (m, mm)"),
        *(
            (
                [command, "arm.study.yaml", "--detection", "50"],
                "is 50 s, not 0 to 10; give milli",
            )
            for command in ("cell-map", "separation", "minimum-distance")
        ),
        (["annex-b", "six_axis_arm.urdf", "--category", "7"], "category"),
        *(
            (
                [*command.split(), "850"],
                f"{command.split()[-1]} 850 is 850 m, not 0 to 10",
            )
            for command in (
                "cell-map arm.study.yaml --intrusion",
                "separation arm.study.yaml --z-r",
                "minimum-distance arm.study.yaml --supplement",
            )
        ),
        (["separation", "arm.study.yaml", "--z-d=-1mm"], "--z-d -1mm is -0.001 m, not 0 to 10"),
        (
            ["separation", "arm.study.yaml", "--human-speed", "1600"],
            "1600 is 1600 m/s, not 0 to 10",
        ),
        (["separation", "arm.study.yaml", "--direction", "0,0,0"], "direction of the person"),
        (["separation", "arm.study.yaml", "--edition", "2020"], "no edition '2020'"),
        (["minimum-distance", "arm.study.yaml", "--edition", "2020"], "no edition '2020'"),
        (
            ["allowed-speed", "arm.study.yaml", "--within", "time=1", "--within", "time=2"],
            "gives a limit twice",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence_before_anything_is_computed(
    words: list[str], match: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Setup, "evaluate", None)
    monkeypatch.setattr(standards, "compute_study", None)
    assert cli.run(words) == 2
    error = capsys.readouterr().err
    assert match in error and error.count("\n") == 1 and "Traceback" not in error


def test_a_map_of_the_cell(capsys: Captured) -> None:
    words = ["--spacing", "200mm", "--detection", "50ms", "--csv", "cell.csv", "--plot", "cell.png"]
    document = printed_json(capsys, "cell-map", "arm.study.yaml", *words)
    space = pl.safety.Space(pose={"joint_4": 0.0, "joint_5": 0.0, "joint_6": 0.0})
    arm, brakes = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    by_python = pl.safety.cell_map(
        arm,
        brakes,
        space,
        pl.safety.Random(3, seed=1),
        watch=pl.safety.Watch(detection=0.05),
        spacing=0.2,
        jobs=1,
    )
    assert document == by_python.as_dict()
    rows = Path("cell.csv").read_text().splitlines()
    assert len(rows) == 1 + by_python.allowed.size
    assert Path("cell.png").read_bytes().startswith(b"\x89PNG")


def test_the_swept_volume_as_a_file(capsys: Captured) -> None:
    words = ["swept", "six_axis_arm.urdf", "--speed", "50%", "--accuracy", "30mm"]
    document = printed_json(capsys, *words, "-o", "swept.stl")
    assert document["outcome"] == "stopped" and document["excess_m"] <= 0.03
    size = Path("swept.stl").stat().st_size
    assert size == 84 + 50 * document["triangles"]  # binary STL
    assert cli.run(words) == 0
    assert "Swept volume" in capsys.readouterr().out
