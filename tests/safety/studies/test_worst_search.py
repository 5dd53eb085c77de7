"""A study with its search: worst cases known in closed form, corners, what is kept on the disk."""

from __future__ import annotations

import json
import pickle
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.stopping.prepared_robot import tool_of
from pinloop.safety.studies.case_values import case_values
from pinloop.safety.studies.cases import Row, joint_columns
from pinloop.safety.studies.corners import _extended_poses, corner_cases
from pinloop.safety.studies.criteria import known_criteria
from pinloop.safety.studies.results import results_of
from pinloop.safety.studies.summary import as_document
from pinloop.safety.studies.worst_search import Search, _starts, _Tally
from pinloop.tolerances import LIMIT_PASSED

from ...states import URDF
from . import wheels

study_module = import_module("pinloop.safety.studies.study")


def carriages(search: Search | bool = True, count: int = 4) -> pl.Study:
    return pl.study(wheels.carriages(), wheels.CARRIAGES_BRAKES, wheels.CARRIAGES_SPACE,
                    pl.safety.Sobol(count, seed=1), jobs=1, search=search)  # fmt: skip


# -- what a study says ----------------------------------------------------------------------------


def test_a_person_says_what_else_is_searched_by() -> None:
    """Separation, and the displacement towards them where they are in a direction."""
    setup = carriages(search=False).setup
    plain, at, towards = (
        set(pl.safety.Search(person=person).chosen(setup))
        for person in (None, {"point": (9.0, 0.0, 0.0)}, {"direction": (1, 0, 0)})
    )
    assert at == plain | {"separation"} and towards == at | {"displacement:1,0,0"}


def test_a_headline_has_its_interval(tmp_path: Path) -> None:
    """That of its own stop, by sampling, with what makes it; kept on the disk."""
    study = wheels.study(pl.safety.Random(6, 1), tmp_path / "w.csv", search=True)
    assert study.searched is not None
    for name, output in (("time", "stopping_time"), ("angle:axis", "angle:axis")):
        case = study.searched.cases[name]
        interval = case.interval
        assert interval is not None and interval.value == pytest.approx(case.value)
        samples = pl.safety.sample_stop(case.stop, [output], 200)[:, 0]
        assert 0.92 < np.mean([x in interval for x in samples]) < 0.98
        assert interval.shares[0][0] == "dynamic_torque of axis (guess)"
        document = as_document(study, results_of(study))["criteria"][name]["interval"]
        assert document["low"] == interval.low
    assert "95 % intervals of the worst" in " ".join(str(study.table()).split())
    again = wheels.study(pl.safety.Random(6, 1), tmp_path / "w.csv", search=True)
    assert again.searched is not None
    for name, case in again.searched.cases.items():
        assert case.interval == study.searched.cases[name].interval


def test_a_study_finds_the_worst_case_of_a_wheel(tmp_path: Path) -> None:
    study = wheels.study(pl.safety.Random(6, 1), tmp_path / "w.csv", search=True)
    time, angle = wheels.stopping(wheels.FASTEST, 0.04, -1.0)
    for name, value in (("time", time), ("angle:axis", angle)):
        result = study.result()[name]
        assert result.headline.origin == "search" and result.headline.case is None
        assert result.headline.value == pytest.approx(value, rel=1e-6)
        assert result.searched is not None and result.headline.value == result.searched.value
        assert abs(result.headline.values["speed.axis"]) == wheels.FASTEST
        samples = result.samples
        assert samples.worst == study.column(result.column).max() < result.headline.value
        assert study.column(result.column)[samples.case] == samples.worst
        assert samples.proven == pytest.approx(0.05 ** (1 / 6)) and samples.bound is None
    assert study.searched is not None
    assert study.searched.stops == sum(study.searched.outcomes.values())
    assert pickle.loads(pickle.dumps(study)).result()["time"].headline.value == (
        study.result()["time"].headline.value
    )


def test_where_samples_are_worst_they_are_the_headline() -> None:
    """Of samples at all corners the worst one is the worst case."""
    study = wheels.study(pl.safety.Corners(), search=True)
    result = study.result()["time"]
    assert (result.headline.origin, result.headline.case) == ("samples", result.samples.case)
    assert result.headline.values == study.values(result.samples.case)
    assert result.searched is not None and result.searched.value == result.samples.worst
    assert result.samples.proven is None
    found = pl.worst_case(study, "time", jobs=1)["time"]
    assert found.value == result.samples.worst


def test_samples_only() -> None:
    study = wheels.study(pl.safety.Random(3))
    result = study.result()["time"]
    assert study.searched is None and result.searched is None
    assert result.headline.value == result.samples.worst
    assert "samples only: no search went on from them" in str(study.table())


def test_the_search_is_never_below_the_samples() -> None:
    for evaluations in (1, 20):
        study = carriages(Search(evaluations=evaluations, corners=0), count=8)
        for result in study.result().values():
            if result.searched is not None:
                assert result.searched.value >= result.samples.worst


def test_tables_and_documents_say_which() -> None:
    study = carriages()
    text = " ".join(str(study.table()).split())
    assert study.searched is not None
    assert f"the search from the worst samples and from corners made {study.searched.stops}" in text
    assert "of all cases are better than the worst of 4 samples" in text
    assert re.search(r"stopping time \[ms\] 666\.7 search", text)


def test_settings_have_one_place() -> None:
    with pytest.raises(pl.UnknownName, match=r"no argument 'untill'.*did you mean 'until'"):
        pl.study(wheels.robot(), wheels.BRAKES, wheels.SPACE, untill=3.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("words", [{"evaluations": 0}, {"starts": 0}, {"corners": -1}])
def test_mistakes(words: dict[str, int]) -> None:
    with pytest.raises(pl.BadValue, match=f"{next(iter(words))} is "):
        Search(**words)  # type: ignore[arg-type]


def test_unknown_criteria_are_refused_first() -> None:
    with pytest.raises(pl.UnknownName, match="no criterion 'tiem'"):
        wheels.study(pl.safety.Random(10**6), search=Search(("tiem",)))


# -- criteria that rows do not have ---------------------------------------------------------------


@pytest.mark.parametrize(("direction", "part"), [("", 1.0), (":x", 1.0), (":-x", 0.0),
                                                 (":0.6,0.8,0", 0.6), (":z", 0.0)])  # fmt: skip
def test_how_far_the_tool_gets_in_a_direction(direction: str, part: float) -> None:
    """Both carriages slide along x; the tool is on b, which goes as far as both together."""
    study = carriages(search=False)
    found = pl.worst_case(study, f"displacement{direction}", jobs=1, evaluations=60)
    worst = found[f"displacement{direction}"]
    ways = [sum(wheels.sliding(2.0, a, b)[1:]) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    assert worst.value == pytest.approx(part * max(ways), rel=1e-6, abs=1e-12)
    assert worst.sampled <= worst.value


@pytest.mark.parametrize("words", ["displacement:up", "displacement:0,0,0", "displacement:1,2"])
def test_directions_that_are_none(words: str) -> None:
    with pytest.raises(pl.BadValue, match="direction"):
        known_criteria(carriages(search=False).setup, words)


# -- corners --------------------------------------------------------------------------------------


def test_searches_start_from_the_worst_samples_and_corners_by_turns() -> None:
    study = carriages(search=False, count=8)
    sizes = study.column("stopping_time_s").copy()
    worst = np.argsort(-sizes)
    sizes[worst[1]] = np.nan  # did not stop
    pool = [({"corner": float(k)}, {"time": size}) for k, size in enumerate((0.1, 9.0, 8.0, 0.2))]
    starts = _starts(study, "time", sizes, [*pool, ({"corner": 5.0}, {"path": 99.0})], 4)
    assert [start.values for start in starts] == [
        {"corner": 1.0}, study.values(int(worst[0])), {"corner": 2.0}, study.values(int(worst[2])),
    ]  # fmt: skip
    assert starts[1].size == sizes[worst[0]]
    first = _starts(study, "time", sizes, pool[:1], 2)
    assert [start.values for start in first] == [study.values(int(worst[0])), {"corner": 0.0}]


def test_poses_that_reach_far_come_first() -> None:
    """The farthest of all, then those of the samples."""
    brake = pl.safety.JointBrake(dynamic_torque=200.0)
    study = pl.study(
        pl.example("planar_3r"), pl.Brakes({f"joint_{k}": brake for k in (1, 2, 3)}),
        pl.safety.Space(pose={"joint_2": (-2.0, 2.0)}), pl.safety.Sobol(8, seed=2), jobs=1,
        search=False,
    )  # fmt: skip
    robot = study.setup.robot
    tool = tool_of(robot)
    far = [
        float(np.linalg.norm(robot.placement(robot.configuration(pose), tool).translation))
        for pose in (
            {name.partition(".")[2]: at for name, at in values.items()}
            for values in _extended_poses(study)
        )
    ]
    assert len(far) == 9 and far[0] > far[1]
    assert far[1:] == sorted(far[1:], reverse=True) and far[1] > 1.1 * far[-1]


def test_corners_are_at_ends_and_half_of_them_extended() -> None:
    """The tool of the stretched arm is as far from its base as of no other pose looked at."""
    arm = pl.load(URDF / "six_axis_arm.urdf")
    space = pl.safety.Space(payload=(0.0, 10.0), band=(-1.0, 1.0))
    study = pl.study(
        arm, URDF / "six_axis_arm.brakes.yaml", space, pl.safety.Sobol(4), jobs=1, search=False
    )
    cases = list(corner_cases(study, 8))
    assert len(cases) == 8
    reach = []
    for case in cases:
        for variable in study.setup.variables:
            if variable.kind != "pose":
                assert case[variable.name] in (variable.low, variable.high)
        q = study.setup.configuration(case)
        reach.append(float(np.linalg.norm(arm.placement(q, "tool0").translation)))
    generator = np.random.default_rng(1)
    limits = [v for v in study.setup.variables if v.kind == "pose"]
    others = [
        study.setup.configuration(
            cases[0] | {v.name: v.at(share) for v, share in zip(limits, row, strict=True)}
        )
        for row in generator.random((3000, len(limits))).tolist()
    ]
    far = max(float(np.linalg.norm(arm.placement(q, "tool0").translation)) for q in others)
    assert reach[1] > far - 1e-9


# -- on the disk ----------------------------------------------------------------------------------


def test_a_search_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "w.csv"
    first = wheels.study(pl.safety.Random(4, 1), results, search=True)
    assert json.loads((tmp_path / "w.csv.search.json").read_text())["stops"] > 0
    with monkeypatch.context() as patch:
        patch.setattr(study_module, "search_worst", lambda *_: pytest.fail("searched again"))
        again = wheels.study(pl.safety.Random(4, 1), results, search=True)
    assert first.searched is not None and again.searched is not None
    for name, case in first.searched.cases.items():
        other = again.searched.cases[name]
        assert (other.value, dict(other.values)) == (case.value, dict(case.values))
        assert other.stop.stopping_time == case.stop.stopping_time
    assert again.searched.samples == first.searched.samples
    # Another search, and a file that cannot be read, are searched anew.
    more = wheels.study(pl.safety.Random(4, 1), results, search=Search(evaluations=5))
    assert more.searched is not None and more.searched.stops < first.searched.stops
    (tmp_path / "w.csv.search.json").write_text('{"format": "pinloop-study-search-1", ')
    assert wheels.study(pl.safety.Random(4, 1), results, search=True).searched is not None


def test_a_file_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "w.csv.search.json").write_text("mine")
    with pytest.raises(pl.BadValue, match=r"w\.csv\.search\.json' exists"):
        wheels.study(pl.safety.Random(4, 1), tmp_path / "w.csv", search=True)
    assert (tmp_path / "w.csv.search.json").read_text() == "mine"


def test_a_search_counts_joints_that_pass_a_limit_by_more_than_rounding() -> None:
    setup = carriages(search=False).setup
    name, *_ = setup.brakes.joints
    column = joint_columns(setup.robot, name)["beyond_limit"]
    zeros: Row = {joint_columns(setup.robot, x)["beyond_limit"]: 0.0 for x in setup.brakes.joints}
    tally = _Tally(setup, {})
    for far, known in ((0.5 * LIMIT_PASSED, {}), (0.2, {name: 0.2}), (0.1, {name: 0.2})):
        tally.count(zeros | {"outcome": "stopped", column: far}, None, {})
        assert tally.beyond == known


# -- poses that loops allow -----------------------------------------------------------------------


def test_drawn_poses_of_looped_robots_can_be_assembled() -> None:
    """Of 48 points of Sobol's sequence six cannot; of the study all can, where they can as well."""
    robot, sampling = pl.load(URDF / "palletizer.urdf"), pl.safety.Sobol(48)
    study = pl.study(
        robot, URDF / "palletizer.brakes.yaml", sampling=pl.safety.Sobol(12), jobs=1, search=False
    )
    assert study.outcomes() == {"stopped": 12}
    assert [study.values(7)[f"pose.{name}"] for name in ("shoulder", "elbow")] == [
        row[f"{name}_pose_rad"] for row in list(study.rows())[7:8] for name in ("shoulder", "elbow")
    ]
    setup = study.setup
    names = tuple(v.name for v in setup.variables if v.varies)
    plain = [
        [v.at(share) for v, share in zip(setup.variables, point, strict=True)]
        for point in sampling.block(names, 0, 48).tolist()
    ]
    cases = [list(case.values()) for case in case_values(setup, sampling, 0, 48)]
    changed = [k for k in range(48) if cases[k] != plain[k]]
    assert 4 <= len(changed) <= 8 and 7 in changed
    for k in changed:
        assert (
            case_values(setup, sampling, k, k + 1) == case_values(setup, sampling, 0, 48)[k : k + 1]
        )
        with pytest.raises(pl.PinloopError):
            setup.configuration(dict(zip(names, plain[k], strict=True)))
        break
    assert not setup.can_be_assembled(dict(zip(names, plain[changed[0]], strict=True)))
    beyond = cases[0].copy()
    beyond[names.index("pose.wrist")] = 9.0  # rad; its limit is nearer
    assert setup.can_be_assembled(dict(zip(names, cases[0], strict=True)))
    assert not setup.can_be_assembled(dict(zip(names, beyond, strict=True)))
    grid = pl.safety.Grid({"pose.shoulder": 2, "pose.elbow": 2})
    values = case_values(setup, grid, 0, 4)
    (elbow,) = (v for v in setup.variables if v.name == "pose.elbow")
    assert {case["pose.elbow"] for case in values} == {elbow.low, elbow.high}
