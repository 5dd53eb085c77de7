"""Scenario files: what they say arrives, mistakes are told with line and key, examples run."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml
from tools.schemas import TABLES, schema_of

import pinloop as pl
from pinloop.boundary.schema import keys_of
from pinloop.cli import main as cli
from pinloop.scenarios.reading import PlannedRun
from pinloop.scenarios.results import Output, tried_outputs

from ..beam_files import beam
from ..fourbar_files import apart, fourbar, rocker_angle

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")

PLAIN: dict[str, Any] = {"format": "pinloop-scenario-1", "robot": "beam.urdf", "until": 0.2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    beam(tmp_path)
    fourbar(tmp_path)
    return tmp_path


def written(folder: Path, text: str | None = None, **changes: Any) -> Path:
    path = folder / "x.scenario.yaml"
    path.write_text(yaml.safe_dump(PLAIN | changes, sort_keys=False) if text is None else text)
    return path


def planned(folder: Path, **changes: Any) -> PlannedRun:
    return pl.load_scenario(written(folder, **changes))


# -- what arrives ---------------------------------------------------------------------------------


def test_only_a_robot_is_needed(folder: Path) -> None:
    plan = pl.load_scenario(written(folder, "format: pinloop-scenario-1\nrobot: beam.urdf\n"))
    assert np.array_equal(plan.q, [0, 0]) and np.array_equal(plan.v, [0, 0])
    assert plan.outputs == () and plan.every is None
    assert plan.arguments == {
        "until": 1.0, "forces": (), "events": (), "mode": pl.Mode(), "losses": True,
        "formulation": None, "method": pl.MuntheKaas(), "stabilization": pl.Projection(),
        "regularization": True, "limits": "warn",
    }  # fmt: skip


def test_a_torque_turns_the_beam_as_it_must(folder: Path) -> None:
    # The slide is locked at x: I = 0.1 + 2 * 0.5^2 + 0.1 + 1 * x^2; 0.5 N m against 0.2 N m of it.
    plan = planned(
        folder,
        start={"q": {"axis": "30deg", "rail": "500mm"}, "v": {"axis": "90deg/s"}, "locked": "rail"},
        forces={"torque": {"axis": 0.5}},
        until="400ms",
    )
    run = plan.simulate()
    inertia = 0.1 + 2 * 0.25 + 0.1 + 0.25
    angle = math.pi / 6 + math.pi / 2 * 0.4 + 0.5 * 0.5 / inertia * 0.4**2
    assert run.t[-1] == 0.4
    assert run.q[-1] == pytest.approx([angle, 0.5], abs=1e-9)
    assert run.modes == (pl.Mode("rail"),)


def test_the_same_run_as_in_python() -> None:
    run = pl.load_scenario(ROOT / "urdf" / "palletizer.scenario.yaml").simulate()
    robot = pl.load(ROOT / "urdf" / "palletizer.urdf")
    deg = math.pi / 180
    q = pl.assemble(robot, fixed={"shoulder": 20 * deg, "elbow": 10 * deg})
    elbow = robot.coordinates("elbow").q.start
    same = pl.simulate(
        robot,
        q,
        until=0.8,
        forces=[pl.PD("shoulder", 2e4, 4e3, target=20 * deg)],
        events=[
            pl.lock("shoulder", at=0.3),
            pl.when(lambda t, q, v: q[elbow] - 45 * deg, pl.lock("elbow")),
            pl.unlock("shoulder", at=0.6),
        ],
    )
    for name in ("t", "q", "v", "a", "mode"):
        assert np.array_equal(getattr(run, name), getattr(same, name)), name
    assert run.events == same.events and run.modes == same.modes
    assert [name for _, name in run.events] == ["lock shoulder", "lock elbow", "unlock shoulder"]


def test_everything_in_the_file_arrives(folder: Path) -> None:
    plan = planned(
        folder,
        robot={"file": "bars.urdf", "regularize": False, "losses": False},
        gravity=[0, 0, -1.6],
        start={"q": {"drive": -0.5}, "near": {"swing": -2.9, "knee": 2.0}, "v": {"drive": 0.5}},
        forces={
            "pd": {"drive": {"stiffness": 10, "damping": 2, "target": "90deg", "rate": "180deg/s"}},
            "torque": {"knee": -1},
            "joint_spring": {"swing": {"stiffness": 3, "rest": "-90deg"}},
            "joint_damping": {"drive": 0.1},
            "joint_friction": {"coefficients": {"knee": 0.2}, "speed": 0.05},
            "spring": [{"a": "crank", "b": "rocker", "stiffness": 5, "length": 0.1}],
            "damper": [{"a": "crank", "b": "base", "damping": 4}],
            "point_force": [{"frame": "coupler", "force": [1, 0, 2], "local": True}],
        },
        events=[
            {"lock": "drive", "at": "50ms"},
            {"unlock": "drive", "at": 0.06},
            {"open_loop": "closer", "at": 0.1},
            {"close_loop": "closer", "tolerance": 0.01},
            {"report": "fast", "when": {"joint": "knee", "v": "10deg/s", "direction": "falling"}},
            {"limits": "all"},
            {"limits": ["swing"]},
        ],
        limits={"restitution": 0.3, "joints": "swing"},
        formulation="voronets",
        method={"name": "rk4", "step": "1ms"},
        stabilization={"tolerance": 1e-9, "coordinates": "mass"},
        outputs={"every": "5ms", "csv": "a.csv", "plot": "a.svg"},
    )
    given = dict(plan.arguments)
    drive, torque, spring, damping, friction, straight, damper, push = given["forces"]
    assert drive == pl.PD("drive", 10, 2, math.pi / 2, math.pi)
    assert torque == pl.Torque("knee", -1)
    assert spring == pl.forces.JointSpring("swing", 3, -math.pi / 2)
    assert damping == pl.forces.JointDamping({"drive": 0.1})
    assert friction == pl.forces.JointFriction(0.05, {"knee": 0.2})
    assert straight == pl.forces.Spring("crank", "rocker", 5, 0.1)
    assert damper == pl.forces.Damper("crank", "base", 4)
    assert push == pl.forces.PointForce("coupler", (1, 0, 2), local=True)
    *timed, reported, all_limits, one_limit = given["events"]
    assert timed == [
        pl.lock("drive", at=0.05), pl.unlock("drive", at=0.06), pl.open_loop("closer", at=0.1),
        pl.close_loop("closer", tolerance=0.01),
    ]  # fmt: skip
    assert (reported.name, reported.direction) == ("", -1) and reported.label == "fast"
    knee = plan.robot.coordinates("knee").v.start
    assert reported.guard(0.0, np.zeros(3), np.eye(3)[knee]) == pytest.approx(1 - math.pi / 18)
    assert all_limits == pl.simulation.JointLimits(None)
    assert given["limits"] == pl.simulation.EndStops(0.3, ("swing",))
    assert one_limit == pl.simulation.JointLimits(("swing",))
    assert isinstance(given["formulation"], pl.Voronets)
    assert given["method"] == pl.MuntheKaas("rk4", step=1e-3)
    assert given["stabilization"] == pl.Projection(1e-9, "mass")
    assert (given["regularization"], given["losses"]) == (False, False)
    assert np.array_equal(plan.robot.gravity, [0, 0, -1.6])
    assert plan.every == 0.005
    assert plan.outputs == (Output("csv", folder / "a.csv"), Output("plot", folder / "a.svg"))
    at = {name: plan.q[plan.robot.coordinates(name).q][0] for name in plan.robot.joints}
    assert at["drive"] == -0.5
    assert at["swing"] == pytest.approx(rocker_angle(-0.5, -1), abs=1e-9)
    assert np.linalg.norm(pl.Constraints(plan.robot, full=True).residual(plan.q)) < 1e-10
    assert plan.v[plan.robot.coordinates("drive").v] == 0.5
    assert np.abs(pl.Constraints(plan.robot).jacobian(plan.q) @ plan.v).max() < 1e-12


def test_an_open_loop_leaves_the_start_free(folder: Path) -> None:
    start = {"q": {"drive": 0.1, "knee": 0.2, "swing": 0.3}, "opened": "closer"}
    plan = planned(folder, robot="bars.urdf", start=start)
    assert sorted(plan.q) == [0.1, 0.2, 0.3]
    assert plan.arguments["mode"] == pl.Mode((), "closer")


def test_what_is_locked_stands_at_the_start(folder: Path) -> None:
    robot = pl.load(ROOT / "urdf" / "fivebar.urdf")
    moving, still = robot.actuated
    free = pl.consistent_velocity(robot, pl.assemble(robot), {moving: 1.0})
    assert abs(free[robot.coordinates(still).v][0]) > 1e-3  # it would move along
    start = {"v": {moving: 1.0}, "locked": [still]}
    plan = planned(folder, robot=str(ROOT / "urdf" / "fivebar.urdf"), start=start)
    assert plan.v[robot.coordinates(moving).v] == 1.0
    assert plan.v[robot.coordinates(still).v] == 0.0


def test_a_stop_ends_the_run_at_the_value(folder: Path) -> None:
    stop = {"stop": "far enough", "when": {"joint": "rail", "q": "100mm", "direction": "rising"}}
    plan = planned(folder, start={"v": {"rail": 1.0}}, events=[stop], until=2)
    run = plan.simulate()
    assert run.q[-1][1] == pytest.approx(0.1, abs=1e-9)
    assert run.t[-1] == pytest.approx(0.1, abs=1e-9)
    assert run.events[-1][1] == "far enough"


# -- files ----------------------------------------------------------------------------------------


def test_files_are_written_where_the_scenario_is(folder: Path) -> None:
    outputs = {"npz": "r.npz", "csv": "r.csv", "plot": ["r.png", "r.pdf"], "summary": "r.json"}
    plan = planned(folder, start={"v": {"axis": 1}}, outputs=outputs | {"every": 0.05})
    run = plan.simulate()
    paths = plan.write(run)
    assert [path.name for path in paths] == ["r.npz", "r.csv", "r.png", "r.pdf", "r.json"]
    saved = pl.load_trajectory(folder / "r.npz")
    assert saved.t == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert saved.q[-1] == pytest.approx(run.q[-1], abs=1e-12)
    lines = (folder / "r.csv").read_text().splitlines()
    assert len(lines) == 6 and lines[0].startswith(
        "t_s,axis_position_rad,axis_velocity_rad_per_s,rail_position_m"
    )
    assert (folder / "r.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "r.pdf").read_bytes().startswith(b"%PDF")
    summary = json.loads((folder / "r.json").read_text())
    assert summary["files"] == [str(path) for path in paths]
    assert summary["last"]["v"]["axis"] == [run.v[-1][0]]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_run_may_be_repeated(folder: Path) -> None:
    outputs = {
        "npz": "r.npz", "csv": "r.csv", "parquet": "r.parquet", "html": "r.html",
        "plot": ["r.png", "r.svg", "r.pdf"], "summary": "r.json",
    }  # fmt: skip
    for until in (0.1, 0.2):
        plan = planned(folder, outputs=outputs, until=until)
        assert len(plan.write(plan.simulate())) == 8
        # Earlier versions called the first column of a table otherwise.
        table = folder / "r.csv"
        table.write_bytes(table.read_bytes().replace(b"t_s,", b"t [s],", 1))
    assert pl.load_trajectory(folder / "r.npz").t[-1] == 0.2


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet", "html", "plot", "summary"])
def test_a_scenario_replaces_no_file_of_others(kind: str, folder: Path) -> None:
    name = {"npz": "x.npz", "plot": "x.png"}.get(kind, ".bashrc")
    other = "start_s,t_s,t [s],\nalias t='s'\n"
    (folder / name).write_text(other)
    with pytest.raises(pl.LoadError, match=rf"{name}' exists, and pinloop did not write it; add"):
        planned(folder, outputs={kind: name})
    path = written(folder, outputs={kind: name})
    assert cli.run(["simulate", str(path)]) == 2
    assert (folder / name).read_text() == other
    assert cli.run(["simulate", str(path), "--force"]) == 0
    assert (folder / name).read_bytes() != other.encode()


def test_a_scenario_writes_in_its_folder(folder: Path) -> None:
    (folder / "in" / "deep").mkdir(parents=True)
    beam(folder / "in")
    (folder / "in" / "out").symlink_to(folder)
    for name in ("../x.csv", str(folder / "x.csv"), "deep/../../x.csv", "out/x.csv"):
        with pytest.raises(
            pl.LoadError, match=r"is outside the folder of the scenario; add --force"
        ):
            planned(folder / "in", outputs={"csv": name})
        path = written(folder / "in", outputs={"csv": name})
        assert pl.load_scenario(path, force=True).outputs[0].kind == "csv"
    assert planned(folder / "in", outputs={"csv": "deep/x.csv"}).outputs


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
@pytest.mark.parametrize(
    "name", ["x.csv", "x.npz", "x.json", "x.html", "x.svg", "x.parquet", "x.glb", "x.mcap", "x.rrd"]
)
def test_a_pipe_is_written_to(name: str, folder: Path) -> None:
    if name == "x.rrd":
        pytest.importorskip("rerun")
    pipe = folder / name
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert cli.run(["simulate", str(written(folder)), "-o", str(pipe)]) == 0
    reader.join()
    assert pipe.is_fifo() and len(read[0]) > 100


def test_one_file_that_fails_does_not_take_the_others_along(folder: Path) -> None:
    plan = planned(folder)
    run = plan.simulate()
    outputs = (Output("csv", folder / "gone" / "r.csv"), Output("npz", folder / "r.npz"))
    done, problems = tried_outputs(run, outputs, None)
    assert done == [folder / "r.npz"]
    (problem,) = problems
    target = folder / "gone" / "r.csv"
    assert problem == (
        f"{target} cannot be written: there is no folder '{target.parent}'; make it first"
    )
    with pytest.raises(pl.BadValue, match="cannot be written: there is no folder"):
        replace(plan, outputs=outputs).write(run)


# -- mistakes -------------------------------------------------------------------------------------


def lines(path: Path, text: str) -> list[int]:
    return [k for k, line in enumerate(path.read_text().splitlines(), 1) if text in line]


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"robots": 1}, "robots", "robots is not a known key; did you mean 'robot'?"),
    ({"format": "pinloop-scenario-2"}, "format", "expected 'pinloop-scenario-1'"),
    ({"robot": {"file": "beam.urdf", "loop": "x"}}, "loop", "did you mean 'loops'?"),
    ({"robot": {"loops": "x"}}, "robot", "robot.file is missing"),
    ({"until": 0}, "until", "until is 0: expected a number greater than 0"),
    ({"until": -1}, "until", "until is -1"),
    ({"until": "soon"}, "until", "until is 'soon': expected a time, such as 0.8 (s) or 800ms"),
    ({"until": "5deg"}, "until", "until is '5deg': expected a time"),
    ({"until": True}, "until", "until is True: expected a time"),
    ({"until": [1]}, "until", "expected a time"),
    ({"until": float("nan")}, "until", "expected a finite time"),
    ({"gravity": [0, 0]}, "gravity", "gravity is [0, 0]: it has too few items"),
    ({"start": {"q": {"axle": 0}}}, "axle", "start.q.axle: no joint 'axle' in robot 'beam'"),
    ({"start": {"q": {"axis": "30 grad"}}}, "axis", "start.q.axis is '30 grad': no number, with or "
     "without a unit (rad, deg); write for example 30deg"),
    ({"start": {"q": {"rail": "30deg"}}}, "rail", "(m, mm); write for example 30mm"),
    ({"start": {"v": {"axis": "30deg"}}}, "axis", "(rad/s, deg/s); write for example 30deg/s"),
    ({"start": {"q": {"axis": [0, 1]}}}, "axis", "joint 'axis' has 1 coordinates, not 2"),
    ({"start": {"v": {"axis": [0, 1]}}}, "axis", "joint 'axis' has 1 rates, not 2"),
    ({"start": {"q": {"axis": True}}}, "axis", "expected a number, or a text with a unit"),
    ({"start": {"q": {"axis": 9}}}, "axis", "joint 'axis' is set to 9, outside its limits, -2 to "
     "3; 9 degrees are within them: write '9deg'; write 'limits: false' under start to ignore "
     "them"),
    ({"start": {"locked": ["axle"]}}, "axle", "no joint 'axle'"),
    ({"start": {"opened": ["closer"]}}, "closer", "no loop joint 'closer'"),
    ({"start": {"locked": "axis", "v": {"axis": 1}}}, "axis: 1", "'axis' is locked at the start"),
    ({"forces": {"pd": {"axis": {"stifness": 1}}}}, "stifness", "did you mean 'stiffness'?"),
    ({"forces": {"pd": {"axis": {"damping": 1}}}}, "axis", "pd.axis.stiffness is missing"),
    ({"forces": {"pd": {"axle": {"stiffness": 1}}}}, "axle", "forces.pd.axle: no joint 'axle'"),
    ({"forces": {"pd": {"axis": {"stiffness": 1, "target": "1m"}}}}, "target", "(rad, deg)"),
    ({"forces": {"torque": {"axle": 1}}}, "axle", "forces.torque.axle: no joint 'axle'"),
    ({"forces": {"torque": {"axis": "big"}}}, "big", "expected a number"),
    ({"forces": {"joint_damping": {"axle": 1}}}, "axle", "no joint 'axle'"),
    ({"forces": {"joint_friction": {"coefficients": {"axle": 1}}}}, "axle", "no joint 'axle'"),
    ({"forces": {"spring": [{"a": "beam", "b": "tipp", "stiffness": 1}]}}, "a: beam",
     "forces.spring[0]: no body or frame 'tipp'"),
    ({"forces": {"point_force": [{"frame": "tipp", "force": [0, 0, 1]}]}}, "frame: tipp",
     "no body or frame 'tipp'"),
    ({"events": [{"lock": "axle", "at": 0.1}]}, "axle", "events[0]: no joint 'axle'"),
    ({"events": [{"lock": "axis", "at": 3}]}, "lock", "outside the run from 0.0 to 0.2 s"),
    ({"events": [{"lock": "axis"}]}, "lock", "events[0]: needs one of 'at' and 'when'"),
    ({"events": [{"at": 0.1}]}, "at: 0.1", "needs one of lock, unlock,"),
    ({"events": [{"lock": "axis", "unlock": "axis", "at": 0.1}]}, "lock", "needs one of lock"),
    ({"events": [{"unlock": "axis", "at": 0.1, "axes": ["wz"]}]}, "unlock",
     "'axes' belongs to lock, not to unlock"),
    ({"events": [{"limits": "all", "at": 1}]}, "limits", "leave 'at' and 'when' out"),
    ({"events": [{"lock": "axis", "when": {"joint": "rail"}}]}, "when", "needs one of 'q' and 'v'"),
    ({"events": [{"lock": "axis", "when": {"joint": "rial", "q": 0}}]}, "lock",
     "did you mean 'rail'?"),
    ({"events": [{"lock": "axis", "when": {"joint": "rail", "q": "1deg"}}]}, "q: 1deg", "(m, mm)"),
    ({"limits": "bounce"}, "bounce", "expected 'warn', 'stop' or 'end stop'"),
    ({"limits": {"restitution": 2}}, "restitution", "limits.restitution is 2"),
    ({"limits": {"bounce": 0.2}}, "bounce", "bounce is not a known key"),
    ({"limits": {"joints": ["axle"]}}, "axle", "no joint 'axle'"),
    ({"limits": {"kind": "stop", "joints": ["axis"]}}, "limits", "'joints' belongs to end stops"),
    ({"formulation": "best"}, "best", "expected 'augmented', 'projected', 'voronets' or 'odca'"),
    ({"method": {"name": "rk4"}}, "method", "method 'rk4' has no error estimate; give"),
    ({"method": {"name": "rk5"}}, "rk5", "method.name is 'rk5'"),
    ({"stabilization": {"tolerance": 0}}, "tolerance", "a number greater than 0"),
    ({"stabilization": {"coordinates": "best"}}, "coordinates", "no joint 'best'"),
    ({"outputs": {"npz": "no/r.npz"}}, "npz", "there is no folder"),
    ({"outputs": {"npz": "r.zip"}}, "npz", "must end in .npz"),
    ({"outputs": {"plot": "r.gif"}}, "plot", "must end in .png or .svg or .pdf"),
    ({"outputs": {"csv": "."}}, "csv", "is a folder; name a file in it"),
    ({"outputs": {"csv": "beam.urdf"}}, "csv", "is a file that is used already"),
    ({"outputs": {"csv": "r.csv", "summary": "r.csv"}}, "summary", "is used already"),
    ({"outputs": {"every": 0}}, "every", "a number greater than 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "where", "said"), MISTAKES)
def test_mistakes_are_told_with_line_and_key(
    folder: Path, changes: dict[str, Any], where: str, said: str
) -> None:
    path = written(folder, **changes)
    with pytest.raises(pl.LoadError) as caught:
        pl.load_scenario(path)
    text = str(caught.value)
    assert said in text
    assert caught.value.line in lines(path, where), text
    assert text.startswith(f"{path}:{caught.value.line}: ") and "\n" not in text


def test_loops_that_cannot_close_are_told_with_the_line(folder: Path) -> None:
    apart(folder)
    path = written(folder, robot="apart.urdf")
    with pytest.raises(pl.LoadError, match=r"x\.scenario\.yaml: start: .*loop 'closer'"):
        pl.load_scenario(path)
    path = written(folder, robot="bars.urdf", start={"v": {"drive": 1, "swing": 5}})
    with pytest.raises(pl.LoadError, match="the loops do not allow") as caught:
        pl.load_scenario(path)
    assert caught.value.line in lines(path, "v:")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        ("", "the document is None: expected a table of keys and values"),
        ("robot: [", "malformed YAML"),
        ("robot: a\nrobot: b\n", ":2: key 'robot' is given twice, first in line 1"),
        ("format: pinloop-scenario-1\n", "robot is missing: the robot, or just its file"),
        ("format: pinloop-scenario-1\nrobot: no.urdf\n", "x.scenario.yaml:2: "),
        ("format: pinloop-scenario-1\nrobot: no.urdf\n", "no.urdf: no such file"),
        (
            "format: pinloop-scenario-1\nrobot:\n  file: baem.urdf\n",
            "baem.urdf: no such file; did you mean 'beam.urdf'?",
        ),
        (
            "format: pinloop-scenario-1\nrobot:\n  file: beam.urdf\n  loops:\n  - no.yaml\n",
            "x.scenario.yaml:5: ",
        ),
        (
            "format: pinloop-scenario-1\nrobot: x.scenario.yaml\n",
            "its format is 'pinloop-scenario-1'",
        ),
    ],
)
def test_files_that_are_no_scenario(folder: Path, content: str | None, said: str) -> None:
    path = folder / "x.scenario.yaml" if content is None else written(folder, content)
    with pytest.raises(pl.LoadError) as caught:
        pl.load_scenario(path)
    assert said in str(caught.value)


# -- documentation --------------------------------------------------------------------------------


def test_the_schema_fits_the_files_that_are_shipped() -> None:
    schema = jsonschema.Draft202012Validator(schema_of("scenario"))
    for path in (ROOT / "urdf").glob("*.scenario.yaml"):
        # YAML 1.1 takes 2e4 for a word, editors do not.
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\b\d+e-?\d+\b", lambda word: f"{float(word[0]):.12f}", text)
        data = yaml.safe_load(text)
        assert schema.is_valid(data), path
        for misfit in ({"until": True}, {"robot": 3}, {"events": [{"lock": 1}]}, {"method": "rk4"}):
            assert not schema.is_valid(data | misfit), misfit


def test_the_schema_is_strict() -> None:
    assert set(schema_of("scenario")["required"]) == {"format", "robot"}
    assert schema_of("scenario")["additionalProperties"] is False


def pieces(note: str) -> list[str]:
    return re.findall(rf"<!-- {note} -->\n```yaml\n(.*?)```", DOCS, re.DOTALL)


def test_the_scenario_of_the_documentation_is_the_one_that_is_shipped() -> None:
    (text,) = pieces("scenario of urdf")
    shipped = (ROOT / "urdf" / "palletizer.scenario.yaml").read_text(encoding="utf-8")
    assert text in shipped


@pytest.mark.parametrize("number", range(len(pieces("piece"))))
def test_every_piece_of_the_documentation_is_read(number: int, tmp_path: Path) -> None:
    for name in ("palletizer.urdf", "fourbar.urdf"):
        (tmp_path / name).write_bytes((ROOT / "urdf" / name).read_bytes())
    text = pieces("piece")[number]
    head = "" if "robot:" in text else "robot: palletizer.urdf\n"
    path = written(tmp_path, f"format: pinloop-scenario-1\n{head}{text}")
    pl.load_scenario(path)


def test_every_key_has_an_example() -> None:
    """Each key of each table stands in some piece that is read."""
    seen = "\n".join([*pieces("piece"), *pieces("scenario of urdf")])
    for name, entry in TABLES["scenario"].items():
        for key in keys_of(entry):
            if key != "format":
                assert re.search(rf"(^|[\s{{-]){key}:", seen), f"{name}: {key}"
