"""The report of a study: its numbers are those of the rows, names are text, its size is small."""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import jsonschema
import numpy as np
import pytest
from tools.schemas import schema_of

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.model.description import GROUND
from pinloop.safety.space.solids import Obstacle
from pinloop.safety.stopping.result_document import PLANNING_AID
from pinloop.safety.studies.results import results_of
from pinloop.show.plots.svg import color_of
from pinloop.show.stop_report import make_motion
from pinloop.show.study_report.distributions import bin_result, histogram, share_explained
from pinloop.show.study_report.maps import hexagons, map_spans, outline, surface

from ..safety.stopping.robots_to_stop import Z, made, solid
from ..safety.studies import wheels
from ..screw_tables import joint
from ..states import URDF
from .test_stop_report import Page

ROOT = Path(__file__).parents[2]
NASTY = "</script><i>\"&'x"
DEG = 180.0 / np.pi


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> pl.Study:
    return wheels.study(pl.safety.Sobol(64), tmp_path_factory.mktemp("wheel") / "wheel.csv")


@pytest.fixture(scope="module")
def text(study: pl.Study, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = study.save_html(tmp_path_factory.mktemp("page") / "wheel.html")
    return path.read_text(encoding="utf-8")


def cells(study: pl.Study) -> list[dict[str, str]]:
    with study.path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def changed(study: pl.Study, path: Path, rows: list[dict[str, str]]) -> pl.Study:
    """The study with other rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, study.names, lineterminator="\n", extrasaction="ignore")
    writer.writerows({**row, "case": str(k)} for k, row in enumerate(rows))
    lines = [f"{line},{zlib.crc32(line.encode()):08x}\n" for line in text.getvalue().splitlines()]
    path.write_text(",".join([*study.names, "checksum"]) + "\n" + "".join(lines), "utf-8")
    return replace(study, path=path, done=len(rows), size=len(rows))


def four(value: float) -> str:
    """Four digits, as a person would round."""
    return f"{value:.{max(0, min(3, 3 - int(np.floor(np.log10(abs(value))))))}f}"


# -- numbers --------------------------------------------------------------------------------------


def test_headline_and_table_are_those_of_the_rows(study: pl.Study, text: str) -> None:
    rows, page = cells(study), Page(text)
    time = {int(row["case"]): 1e3 * float(row["stopping_time_s"]) for row in rows}
    angle = {int(row["case"]): DEG * float(row["axis_excursion_rad"]) for row in rows}
    table = {row[0]: row[1:] for row in page.tables["Distributions in numbers"][1:]}
    for name, values in (("stopping time [ms]", time), ("angle of axis [deg]", angle)):
        worst = max(values, key=values.__getitem__)
        ordered = sorted(values.values())
        place = 0.95 * (len(ordered) - 1)  # between two cases, by proportion
        low = int(place)
        high = ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])
        shown = [median(ordered), high, values[worst]]
        digits = len(four(max(shown)).partition(".")[2])
        assert table[name] == [*(f"{value:.{digits}f}" for value in shown), str(worst)]
        assert four(values[worst]) in page.text
    worst = max(time, key=time.__getitem__)
    assert f"longest stopping time {four(time[worst])} ms case {worst} ; median" in page.text
    assert "64 of 64 cases stopped and hold" in page.text
    assert PLANNING_AID in page.text and "Sampled, not guaranteed." in page.text


def test_histograms_count_the_rows(study: pl.Study, text: str) -> None:
    time = np.array([1e3 * float(row["stopping_time_s"]) for row in cells(study)])
    bars = re.findall(r"<title>([\d.]+) to ([\d.]+) ms: (\d+) cases?</title>", text)
    assert sum(int(count) for _, _, count in bars) == 64
    edges = np.linspace(time.min(), time.max(), 9)  # Rice: 2 * 64^(1/3) = 8 bins
    by_hand = [sum(1 for t in time if a <= t < b) for a, b in pairwise(edges)]
    by_hand[-1] += int((time == time.max()).sum())
    assert [int(count) for _, _, count in bars] == by_hand
    assert [float(a) for a, _, _ in bars] == pytest.approx(edges[:-1], rel=1e-3)


def test_the_worst_case_is_replayed_as_its_row_says(study: pl.Study, text: str) -> None:
    rows, page = cells(study), Page(text)
    worst = max(rows, key=lambda row: float(row["stopping_time_s"]))
    speed, late = (DEG * float(worst["axis_speed_rad_per_s"]), 1e3 * float(worst["axis_delay_s"]))
    head, row = page.tables["Joint by joint"]
    shown = dict(zip(head, row, strict=True))
    assert float(shown["speed"].split()[0]) == pytest.approx(speed, rel=1e-3)
    assert float(shown["later brake"].split()[0]) == pytest.approx(late, rel=1e-2)
    time, angle = wheels.stopping(speed / DEG, late / 1e3, float(worst["axis_band"]))
    assert shown["moves"] == f"{four(DEG * angle)[:5]} deg"
    assert float(shown["at rest after"].split()[0]) == pytest.approx(1e3 * time, rel=1e-3)
    assert f'id="case-{worst["case"]}"' in text


def test_ranges_are_those_of_the_space(text: str) -> None:
    head, row = Page(text).tables["What varied, joint by joint"]
    assert dict(zip(head, row, strict=True)) == {
        "joint": "axis", "position": "-180 to 180 deg", "speed": "-171.9 to 171.9 deg/s",
        "later brake": "0 to 40 ms", "band": "-1 to 1",
    }  # fmt: skip


def test_failures_are_counted_by_sort(study: pl.Study, tmp_path: Path) -> None:
    rows = cells(study)
    results = study.names[study.names.index("reason") + 1 :]
    for k in range(7):
        empty = dict.fromkeys(results, "")
        reason = f"loop 'bar_2' is open by {k + 0.5} mm and -1e-{k} deg" if k < 5 else "no way"
        rows[3 * k] |= {"outcome": "failed", "reason": reason, **empty}
    rows[1] |= {"outcome": "does not hold"}
    page = Page(changed(study, tmp_path / "f.csv", rows).save_html(tmp_path / "f.html").read_text())
    table = page.tables["Cases that did not stop or are not held"]
    assert table[1] == [
        "5", "failed", "loop 'bar_2' is open by 0.5 mm and -1e-0 deg (and alike, with other "
        "numbers)", "0, 3, 6, 9, 12",
    ]  # fmt: skip
    assert table[2] == ["2", "failed", "no way", "15, 18"]
    assert table[3][:2] == ["1", "does not hold"] and table[3][3] == "1"
    assert "56 of 64 cases stopped and hold" in page.text
    # The one that moves is replayed, although it is no worst case.
    assert "does not hold, as 1 of 64" in page.text


def test_hexagons_hold_the_points_that_are_nearest() -> None:
    rng = np.random.default_rng(3)
    points, values, size = rng.normal(size=(400, 2)), rng.normal(size=400), 0.31
    middles, worst, counts = hexagons(points, values, size)
    a, b = np.sqrt(3.0) * size, 1.5 * size
    lattice = np.array([(a * (k + 0.5 * (j % 2)), b * j) for k in range(-20, 20)
                        for j in range(-20, 20)])  # fmt: skip
    away = np.linalg.norm(points[:, None] - lattice[None], axis=2)
    nearest: dict[int, list[int]] = {}
    for k, cell in enumerate(away.argmin(axis=1)):
        nearest.setdefault(int(cell), []).append(k)
    by_hand = sorted((*lattice[cell].round(9), values[own].max(), len(own))
                     for cell, own in nearest.items())  # fmt: skip
    cells = zip(middles, worst, counts, strict=True)
    found = sorted((*middle.round(9), value, count) for middle, value, count in cells)
    assert len(found) == len(by_hand)
    np.testing.assert_allclose(found, by_hand, atol=1e-9)


def test_shares_of_the_variance() -> None:
    """Of y = x + 2 z with independent x and z of equal variance, x explains 1/5, z 4/5."""
    rng = np.random.default_rng(5)
    x, z, other = rng.uniform(-1, 1, size=(3, 20_000))
    y = x + 2.0 * z
    assert share_explained(x, y) == pytest.approx(0.2, abs=0.01)
    assert share_explained(z, y) == pytest.approx(0.8, abs=0.01)
    assert share_explained(other, y) == 0.0
    assert share_explained(x, np.abs(x)) > 0.97  # no line needed
    few = slice(0, 40)
    assert share_explained(other[few], y[few]) == 0.0
    assert share_explained(np.sign(x), np.sign(x)) == pytest.approx(1.0)
    assert share_explained(x, np.ones_like(x)) == 0.0


def test_bins_of_a_grid_are_its_values() -> None:
    x = np.repeat([1.0, 2.0, 4.0], 5)
    y = np.arange(15.0)
    found = bin_result(x, y)
    assert found.x.tolist() == [1.0, 2.0, 4.0]
    assert found.median.tolist() == [2.0, 7.0, 12.0]
    assert found.most.tolist() == [4.0, 9.0, 14.0] and found.least.tolist() == [0.0, 5.0, 10.0]
    assert found.low == pytest.approx([0.2, 5.2, 10.2])


def test_a_single_value_is_a_single_bar() -> None:
    edges, counts = histogram(np.full(3, 2.0))
    assert counts.tolist() == [3] and edges[0] < 2.0 < edges[1]
    edges, counts = histogram(np.zeros(2))
    assert counts.tolist() == [2] and edges[0] < 0.0 < edges[1]


def test_colours_get_darker() -> None:
    def grey(color: str) -> float:
        red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    shades = [grey(color_of(share)) for share in np.linspace(0, 1, 30)]
    assert all(np.diff(shades) < 0)
    assert color_of(-3.0) == color_of(0.0) and color_of(7.0) == color_of(1.0)


def test_outlines_of_obstacles() -> None:
    box = Obstacle.box("box", [2.0, 4.0, 6.0], (1.0, 0.0, 3.0))
    corners = {tuple(corner) for corner in outline(box, (0, 2)).round(9).tolist()}
    assert corners == {(0.0, 0.0), (2.0, 0.0), (2.0, 6.0), (0.0, 6.0)}
    points, faces = surface(Obstacle.sphere("ball", 0.5, (0.0, 0.0, 2.0)))
    assert np.linalg.norm(points - [0, 0, 2], axis=1) == pytest.approx(np.full(len(points), 0.5))
    a, b, c = (points[faces[:, k]] - [0, 0, 2] for k in range(3))
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a) > 0).all()  # they look outward


def test_a_large_obstacle_leaves_the_cases_in_sight() -> None:
    """An edge nearby is shown, those farther away leave the picture as it is."""
    places = np.array([[0.0, 0.0, 0.2], [1.0, 0.5, 0.6], [-1.0, -0.5, 1.0]])
    table = Obstacle.box("table", [0.4, 0.4, 0.4], (1.3, 0.0, 0.2))
    floor = Obstacle.box("floor", [40.0, 40.0, 0.1], (0.0, 0.0, -0.05))
    wall = Obstacle.box("wall", [9.0, 9.0, 9.0], (6.0, 0.0, 4.5))
    for axes in ((0, 1), (0, 2)):
        (left, right), _ = map_spans(places, (), *axes)
        spans = [
            map_spans(places, [outline(obstacle, axes)], *axes) for obstacle in (table, floor, wall)
        ]
        assert [span[0] for span in spans] == [
            (left, pytest.approx(1.5 + 0.03 * 2.0)), (left, right), (left, pytest.approx(1.56)),
        ]  # fmt: skip


# -- size, order, names ---------------------------------------------------------------------------


def many(study: pl.Study, path: Path, count: int) -> pl.Study:
    """Rows as if there were many cases, with the tool all over the place."""
    rng, rows = np.random.default_rng(7), cells(study)
    found = []
    for k in range(count):
        place = dict(
            zip(("tool_x_m", "tool_y_m", "tool_z_m"), rng.uniform(-1, 1, 3).tolist(), strict=True)
        )
        found.append(
            rows[k % len(rows)] | {"case": str(k)} | {n: repr(x) for n, x in place.items()}
        )
    return replace(changed(study, path, found), sampling=pl.safety.Sobol(count))


def test_the_size_does_not_depend_on_the_number_of_rows(study: pl.Study, tmp_path: Path) -> None:
    sizes = []
    for count in (3000, 12_000):
        one = many(study, tmp_path / f"{count}.csv", count)
        page = one.save_html(tmp_path / f"{count}.html").read_text(encoding="utf-8")
        script = page.index("<!--\nThe script below")
        sizes.append(script)  # what stands before the viewer
        assert 100 < len(re.findall(r"<title>worst of \d+: [\d.]+ ms</title>", page)) < 2000
    assert sizes[0] < 600_000
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]


def test_long_stops_take_no_more_frames(study: pl.Study) -> None:
    stop, data = study.replay(0), 'class="replay-data">'
    usual, few = (
        json.loads(make_motion(stop, frames=frames).player.split(data)[1]
                   .split("</script>")[0])["times"]
        for frames in (None, 6)
    )  # fmt: skip
    assert len(usual) > 20 and len(few) == 6
    assert (few[0], few[-1]) == (usual[0], usual[-1]) and set(few) <= set(usual)


def test_results_are_read_as_they_are(study: pl.Study) -> None:
    results, rows = results_of(study), cells(study)
    assert results.cases.tolist() == list(range(64))
    for name in ("stopping_time_s", "axis_band", "tool_z_m"):
        assert results.columns[name].tolist() == [float(row[name]) for row in rows]


def test_the_place_of_the_tool_is_that_at_the_signal() -> None:
    """A beam of 0.8 m about the axis -y, 0.3 m above the floor."""
    robot = pl.load(URDF / "six_axis_arm.urdf")
    one = pl.study(
        robot,
        URDF / "six_axis_arm.brakes.yaml",
        sampling=pl.safety.Random(2, seed=4),
        jobs=1,
        search=False,
    )
    for row in one.rows():
        stop = one.replay(int(row["case"]))
        place = [float(row[f"tool_{axis}_m"]) for axis in "xyz"]
        assert place == pytest.approx(stop.point().path[0].tolist(), abs=1e-12)
        assert np.linalg.norm(stop.point().path[-1] - place) > 1e-3


def test_the_same_study_gives_the_same_bytes(study: pl.Study, text: str, tmp_path: Path) -> None:
    again = study.save_html(tmp_path / "again.html")
    assert again.read_text(encoding="utf-8") == text


def test_names_are_text(tmp_path: Path) -> None:
    robot = made(
        [solid(NASTY, 1.0, inertia=2.0)], [joint(NASTY, "revolute", GROUND, NASTY, [0, 0, 0], Z)]
    )
    brakes = pl.Brakes({NASTY: wheels.BRAKES.joints["axis"]})
    space = pl.safety.Space(speed={NASTY: (1.0, 3.0)}, band={NASTY: (-1.0, 1.0)})
    one = pl.study(
        robot,
        brakes,
        space,
        pl.safety.Sobol(32),
        results=tmp_path / "<b>.csv",
        jobs=1,
        search=False,
    )
    text = one.save_html(tmp_path / "nasty.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "<i>" not in text and "<b>" not in text
    assert "longest stopping time" in page.text and f"angle of {NASTY}" in page.text
    manifest = re.search(
        r'<script type="application/json" id="manifest">(.*?)</script>', text, re.S
    )
    assert manifest is not None
    assert json.loads(manifest[1])["variables"][0]["name"] == f"pose.{NASTY}"


def test_nothing_to_show_is_no_trouble(study: pl.Study, tmp_path: Path) -> None:
    rows = cells(study)
    results = study.names[study.names.index("reason") + 1 :]
    failed = [row | dict.fromkeys(results, "") | {"outcome": "failed", "reason": "no"}
              for row in rows]  # fmt: skip
    for name, some in (("all failed", failed), ("one", rows[:1]), ("none", [])):
        one = replace(changed(study, tmp_path / f"{name}.csv", some), size=64)
        page = Page(one.save_html(tmp_path / f"{name}.html").read_text(encoding="utf-8"))
        assert ("there are no distributions" in page.text) == (name != "one"), name
        assert "are still to be done" in page.text or name == "all failed"


def test_a_cell_that_is_no_number_is_told(study: pl.Study, tmp_path: Path) -> None:
    rows = cells(study)
    rows[3]["stopping_time_s"] = "soon"
    one = changed(study, tmp_path / "broken.csv", rows)
    with pytest.raises(pl.PinloopError, match=r"broken\.csv' cannot be read .*soon"):
        one.save_html(tmp_path / "broken.html")
    with pytest.raises(pl.BadValue, match="cannot be written"):
        study.save_html(tmp_path / "no" / "folder.html")


def test_criteria_and_found_cases_can_be_named(study: pl.Study, tmp_path: Path) -> None:
    rows = cells(study)
    slowest = max(rows, key=lambda row: float(row["stopping_time_s"]))["case"]
    text = study.save_html(tmp_path / "a.html", worst=["time"]).read_text(encoding="utf-8")
    assert re.findall(r'role="tabpanel"', text) == ['role="tabpanel"']
    assert f'id="case-{slowest}"' in text
    with pytest.raises(pl.UnknownName, match=r"no criterion 'tine'.*did you mean 'time'"):
        study.save_html(tmp_path / "b.html", worst=["tine"])
    found = pl.worst_case(study, ["time"], starts=1, evaluations=30, jobs=1)
    page = Page(study.save_html(tmp_path / "c.html", worst=found).read_text(encoding="utf-8"))
    # Both ends of all ranges: full speed, latest brake, weakest torque.
    time = 1e3 * wheels.stopping(wheels.FASTEST, 0.04, -1.0)[0]
    assert found["time"].value == pytest.approx(time / 1e3)
    assert f"longest stopping time that a search found: {four(time)} ms" in page.text


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (URDF / "six_axis_arm.study.yaml").read_text(encoding="utf-8")
    for name in ("six_axis_arm.urdf", "six_axis_arm.brakes.yaml"):
        text = text.replace(name, str(URDF / name))
    file, path = tmp_path / "arm.study.yaml", tmp_path / "arm.html"
    file.write_text(text.replace("count: 64", "count: 2") + "\njobs: 1\n", encoding="utf-8")
    assert cli.run(["study", str(file), "--html", str(path)]) == 1  # the search meets the pallet
    assert f"written: {path}" in capsys.readouterr().out
    page = Page(path.read_text(encoding="utf-8"))
    assert "2 of 2 cases stopped and hold; the search met others that do worse" in page.text
    assert "found by the search; worst sample" in page.text and "smallest clearance" in page.text
    assert cli.run(["study", str(file), "--html", str(tmp_path)]) == 2
    assert "is a folder; name a file in it" in capsys.readouterr().err


# -- manifest -------------------------------------------------------------------------------------


def test_the_manifest_is_in_the_page_and_beside_it(study: pl.Study, tmp_path: Path) -> None:
    path = study.save_html(tmp_path / "m.html")
    beside = json.loads((tmp_path / "m.html.manifest.json").read_text(encoding="utf-8"))
    inside = re.search(r'id="manifest">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert inside is not None and json.loads(inside[1]) == beside
    jsonschema.Draft202012Validator(schema_of("study-manifest")).validate(beside)
    assert beside["sampling"] == {"method": "sobol", "arguments": {"count": 64, "seed": 0}}
    assert beside["resume"] == json.loads(Path(f"{study.path}.manifest.json").read_text("utf-8"))


def test_the_study_can_be_made_again_from_its_manifest(study: pl.Study, tmp_path: Path) -> None:
    study.save_html(tmp_path / "m.html")
    data = json.loads((tmp_path / "m.html.manifest.json").read_text(encoding="utf-8"))
    chain, brake = data["chain"], data["brakes"]["joints"]["axis"]
    brakes = pl.Brakes(
        {"axis": pl.safety.JointBrake(side="joint", dynamic_torque=brake["dynamic_torque"]["value"],
                               tolerance=brake["tolerance"]["value"],
                               delay=brake["delay"]["value"])},
        pl.safety.Chain(sensor=chain["sensor_s"], controller=chain["controller_s"]),
    )  # fmt: skip
    space: dict[str, dict[str, tuple[float, float]]] = {}
    for one in data["variables"]:
        kind, _, name = one["name"].partition(".")
        space.setdefault(kind, {})[name] = one["low"], one["high"]
    again = pl.study(
        wheels.robot(), brakes, pl.safety.Space(**space),  # type: ignore[arg-type]
        pl.safety.Sobol(**data["sampling"]["arguments"]), until=data["until_s"],
        results=tmp_path / "again.csv", jobs=1, search=False,
    )  # fmt: skip
    assert again.path.read_bytes() == study.path.read_bytes()


def test_the_schema_is_strict() -> None:
    assert schema_of("study-manifest")["additionalProperties"] is False
