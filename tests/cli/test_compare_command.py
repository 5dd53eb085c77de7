"""`pinloop compare` and `pinloop fit`: words arrive, files are written, mistakes are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.cli import main as cli

from ..beam_files import beam
from .commands import Captured, printed_json

TABLE = """# the slide of the beam
joint,speed_mm_per_s,time_ms,distance_mm
rail,1000,150,150
rail,-2000,200,400
"""
"""For 1 kg, 100 ms of delays, 20 N: 1 m/s takes 50 ms and 25 mm more, 2 m/s 100 ms and 100 mm."""
HEAD = "".join(TABLE.splitlines(keepends=True)[:2])
FITS = TABLE.replace("150,150", "150,125").replace("200,400", "200,300")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The beam, its brakes beside it, and a table."""
    table = tmp_path / "table.csv"
    table.write_text(TABLE)
    return str(beam(tmp_path)), str(table)


# -- compare --------------------------------------------------------------------------------------


def test_compare(files: tuple[str, str], capsys: Captured) -> None:
    """40 N: 100 ms and 25 ms, 100 mm and 12.5 mm."""
    assert cli.run(["compare", *files]) == 0
    out, err = capsys.readouterr()
    text = re.sub(r"[ \n]+", " ", out)
    assert err == "" and "\x1b" not in out
    assert out.startswith("beam: computed and published stops; brake data are guesses\n")
    assert f"published {files[1]}" in text and "found beside the robot" in text
    assert "rail 1000 0 125.0 150.0 -16.7 112.5 150.0 -25.0 0.900 1.000 stopped" in text
    assert "rail -2000 0 150.0 200.0 -25.0 250.0 400.0 -37.5 0.833 1.000 stopped" in text
    assert "safety certificate" in text


def test_compare_as_json(files: tuple[str, str], capsys: Captured) -> None:
    data = printed_json(capsys, "compare", *files, quiet=True)
    first, second = data["rows"]
    assert (data["robot"], data["source"]) == ("beam", files[1])
    assert (first["joint"], first["unit"], first["outcome"]) == ("rail", "m", "stopped")
    assert first["time_s"] == pytest.approx(0.125) and first["published_time_s"] == 0.15
    assert second["angle"] == pytest.approx(0.25) and second["published_angle"] == 0.4
    assert data["brakes"]["remark"] == "found beside the robot"
    assert data["brakes"]["source"] == files[0].replace(".urdf", ".brakes.yaml")


def test_compare_with_other_brakes(
    files: tuple[str, str], tmp_path: Path, capsys: Captured
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("format: pinloop-brakes-1\njoints:\n  rail: {side: joint, dynamic_torque: 5}\n")
    data = printed_json(capsys, "compare", *files, "--brakes", str(mine), quiet=True)
    assert data["rows"][0]["time_s"] == pytest.approx(0.2)
    assert data["brakes"] == {"source": str(mine), "remark": ""}


def test_guessed_brakes_are_said_to_be_so(files: tuple[str, str], capsys: Captured) -> None:
    Path(files[0]).with_suffix(".brakes.yaml").unlink()
    for command in ("compare", "fit"):
        assert cli.run([command, *files]) == 0
        text = re.sub(r"\s+", " ", capsys.readouterr().out)
        assert "brakes guessed no brakes file was given" in text
        assert f"pinloop brakes init {files[0]}" in text


# -- fit ------------------------------------------------------------------------------------------


def test_fit(files: tuple[str, str], tmp_path: Path, capsys: Captured) -> None:
    """20 N, and of the 100 ms 50 ms are those of the chain."""
    Path(files[1]).write_text(FITS)
    target = tmp_path / "fitted.brakes.yaml"
    words = ["--parameter", "dynamic_torque", "--parameter", "delay", "-o", str(target)]
    assert cli.run(["fit", *files, *words]) == 0
    out, err = capsys.readouterr()
    text = re.sub(r"[ \n]+", " ", out)
    assert err == "" and out.startswith("beam: brakes fitted to stops\n")
    assert out.endswith(f"written: {target}\n") and f"fitted to {files[1]}" in text
    assert "rail dynamic_torque 20 " in text and "rail delay 0.05 " in text
    assert "rail 1000 0 150.0 150.0 +0.0 125.0 125.0 +0.0" in text and "Warnings" not in text
    brakes = pl.Brakes.from_yaml(target)
    rail = brakes.joints["rail"]
    assert (rail.dynamic_torque, rail.delay) == pytest.approx((20.0, 0.05), rel=1e-4)
    assert rail.sources["delay"] == "fitted" and rail.notes["delay"] == f"fitted to {files[1]}"
    assert brakes.joints["axis"].dynamic_torque == 6.0 and brakes.chain.sensor == 0.02
    # What is written is what was fitted.
    data = printed_json(capsys, "compare", *files, "--brakes", str(target), quiet=True)
    assert [row["time_ratio"] for row in data["rows"]] == pytest.approx([1.0, 1.0], rel=1e-4)


def test_fit_warns_in_its_sheet_and_in_its_json(files: tuple[str, str], capsys: Captured) -> None:
    """No law of a brake takes the way of full speed and stops."""
    assert cli.run(["fit", *files]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "cannot explain it" in re.sub(r"\s+", " ", out)
    data = printed_json(
        capsys, "fit", *files, "--parameter", "coulomb", "--parameter", "coulomb", quiet=True
    )
    (one,) = data["parameters"]
    assert (one["joint"], one["parameter"], one["unit"]) == ("rail", "coulomb", "N")
    assert one["identified"] is True or one["error"] is None
    assert "cannot explain it" in data["warnings"][-1]
    assert data["comparison"]["rows"][0]["joint"] == "rail"


def test_fit_does_not_write_over_anything(
    files: tuple[str, str], tmp_path: Path, capsys: Captured
) -> None:
    Path(files[1]).write_text(FITS)
    target = Path(files[0]).with_suffix(".brakes.yaml")
    before = target.read_text()
    assert cli.run(["fit", *files, "-o", str(target)]) == 2
    assert "exists; add --force" in capsys.readouterr().err and target.read_text() == before
    for name in files:
        assert cli.run(["fit", *files, "-o", name, "--force"]) == 2
        assert "is used already" in re.sub(r"\s+", " ", capsys.readouterr().err)
    assert Path(files[1]).read_text() == FITS
    assert cli.run(["fit", *files, "-o", str(target), "--force"]) == 0
    assert pl.Brakes.from_yaml(target).joints["rail"].dynamic_torque == pytest.approx(20, rel=1e-4)
    assert cli.run(["fit", *files]) == 0
    assert "written" not in capsys.readouterr().out.splitlines()[-1]


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "table", "words", "part"),
    [
        ("compare", TABLE, ["--brakes", "nowhere.yaml"], "nowhere.yaml: no such file"),
        ("compare", None, [], "table.csv: no such file"),
        ("compare", HEAD + "rail,1,x,3\n", [], "table.csv:3: column 'time_ms': 'x' is not a"),
        ("fit", HEAD + "rail,0,2,3\n", [], "table.csv:3: the speed of a stop of 'rail' is 0"),
        ("fit", HEAD + "rail,900,0.2,90\n", [], "table.csv:3: joint 'rail' goes 500 times as far"),
        ("fit", TABLE, ["--parameter", "torque"], "'torque' cannot be fitted; dynamic_torque"),
        ("fit", TABLE, ["-o", "{nowhere}/x.yaml"], "cannot be written: there is no folder"),
        ("fit", TABLE, ["-o", "{here}", "--force"], "is a folder; name a file in it"),
    ],
)
def test_mistakes(
    tmp_path: Path, capsys: Captured, command: str, table: str | None, words: list[str], part: str
) -> None:
    path = tmp_path / "table.csv"
    if table is not None:
        path.write_text(table)
    given = [word.format(here=tmp_path, nowhere=tmp_path / "nowhere") for word in words]
    assert cli.run([command, str(beam(tmp_path)), str(path), *given]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert part in err


@pytest.mark.parametrize("command", ["compare", "fit"])
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("wrist,1,2,3", "no joint 'wrist'"),
        ("axis,1,2,3", "joint 'axis' turns"),
        ("rail,fast,150,125", "column 'speed_mm_per_s': 'fast' is not a number"),
        ("rail,1000,0.150,125", "joint 'rail' goes 833 times as far as it would at the speed"),
        ("rail,1,150,125", "goes 833 times"),
        ("rail,1000,150000,125", "joint 'rail' goes 0.000833 times as far"),
        ("rail,1000,150,125,9", "'9' stands in column 5, which has no name"),
    ],
)
def test_rows_that_cannot_be_read_or_computed_are_left_out(
    tmp_path: Path, capsys: Captured, command: str, row: str, reason: str
) -> None:
    """Both commands go on with the others, as if it were not there, and the exit code tells."""
    path, robot = tmp_path / "table.csv", str(beam(tmp_path))
    path.write_text(FITS)
    without = printed_json(capsys, command, robot, str(path), quiet=True)
    path.write_text(f"{FITS}{row}\n")
    assert cli.run([command, robot, str(path)]) == 1
    out, _ = capsys.readouterr()
    assert "Left out" in out and "table.csv:5" in out and reason in out
    data = printed_json(capsys, command, robot, str(path), code=1, quiet=True)
    (failed,) = data.get("comparison", data)["failed"]
    assert (failed["joint"], failed["place"]) == (row.split(",")[0], f"{path}:5")
    assert reason in failed["reason"]
    data.get("comparison", data)["failed"] = []
    assert data == without


def test_an_axis_of_which_no_row_is_left_ends_no_fit(tmp_path: Path, capsys: Captured) -> None:
    """Its only row asks for a stop that its brake does not make; the other axis is fitted."""
    path, robot = tmp_path / "table.csv", str(beam(tmp_path))
    lines = "axis,,90,0.0001,\nrail,1000,,150,125\nrail,-2000,,200,300\n"
    path.write_text(f"joint,speed_mm_per_s,speed_deg_per_s,time_ms,distance_mm\n{lines}")
    data = printed_json(capsys, "fit", robot, str(path), "--parameter", "delay", code=1, quiet=True)
    assert [x["joint"] for x in data["parameters"]] == ["rail"]
    (failed,) = data["comparison"]["failed"]
    assert (
        failed["place"] == f"{path}:2" and "do not bring joint 'axis' to rest" in failed["reason"]
    )


def test_a_mistake_is_json_where_json_is_asked_for(
    files: tuple[str, str], capsys: Captured
) -> None:
    assert cli.run(["fit", *files, "--parameter", "torque", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == f"error: {json.loads(out)['error']}\n"


def test_robot_and_table_are_needed(files: tuple[str, str], capsys: Captured) -> None:
    for command in ("compare", "fit"):
        assert cli.run([command, files[0]]) == 2
        assert "Missing argument" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_the_model_of_an_sdf_is_chosen(
    files: tuple[str, str], tmp_path: Path, capsys: Captured, command: str
) -> None:
    models = "".join(
        f'<model name="{name}"><link name="base"/><link name="slide"/>'
        '<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>'
        '<joint name="rail" type="prismatic"><parent>base</parent><child>slide</child><axis>'
        "<xyz>1 0 0</xyz></axis></joint></model>"
        for name in ("left", "right")
    )
    world = tmp_path / "world.sdf"
    world.write_text(f'<sdf version="1.9"><world name="w">{models}</world></sdf>')
    brakes = tmp_path / "rail.yaml"
    brakes.write_text(
        "format: pinloop-brakes-1\njoints:\n  rail: {side: joint, dynamic_torque: 20}\n"
    )
    words = [command, str(world), files[1], "--brakes", str(brakes)]
    assert cli.run(words) == 2
    assert "2 models ('left', 'right'); name the one" in capsys.readouterr().err
    assert cli.run([*words, "--model", "middle"]) == 2
    assert "no model 'middle'" in capsys.readouterr().err
    assert cli.run([*words, "--model", "right"]) == 0
    assert "right" in capsys.readouterr().out
