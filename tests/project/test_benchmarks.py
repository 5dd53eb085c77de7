"""The benchmark suite measures the same robots, compares right, and writes what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from benchmarks import closure
from benchmarks.check import excesses
from benchmarks.comparison import best_at_target, best_peer, growth, order, time_at_target
from benchmarks.contestants import DEFAULT, Problem
from benchmarks.counts import calls
from benchmarks.measure import Sample, installed, interleaved
from benchmarks.precision import drake_difference, exudyn_difference, mujoco_differences
from benchmarks.report import page, renew, write
from benchmarks.robots import MOTIONS
from benchmarks.scene import apart, poses, scene
from benchmarks.with_exudyn import PlanarExudyn, in_exudyn
from benchmarks.with_mujoco import MuJoCo, mjcf
from benchmarks.with_scipy import Pinocchio

import pinloop as pl

ROOT = Path(__file__).parents[2]


def problem(name: str) -> Problem:
    robot, q, v = MOTIONS[name].start()
    return Problem(MOTIONS[name], robot, q, v, scene(robot, q, v, (), MOTIONS[name].loads))


def lopsided() -> pl.Mechanism:
    """A free body with full inertia and a second one on a ball joint."""
    full = np.array([[0.5, 0.03, -0.05], [0.03, 0.4, 0.08], [-0.05, 0.08, 0.3]])
    bodies = [{"name": name, "mass": 2.0, "com": [0.1, 0.2, 0.3], "inertia": full}
              for name in ("one", "two")]  # fmt: skip
    joints = [
        {"name": "free", "pair": "free", "parent": "ground", "child": "one", "point": [0.3, 0, 1]},
        {"name": "ball", "pair": "spherical", "parent": "one", "child": "two", "point": [1, 0, 1]},
    ]
    return pl.from_screws({"name": "lopsided", "bodies": bodies, "joints": joints})


def turned(robot: pl.Mechanism) -> tuple[pl.Mechanism, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Any coordinates and velocities of the tree."""
    rng = np.random.default_rng(3)
    q = pin.integrate(robot.model, robot.neutral, rng.uniform(-1, 1, robot.nv))
    return robot, q, rng.normal(size=robot.nv)


def moving(name: str) -> tuple[pl.Mechanism, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    robot, q, v = MOTIONS[name].start()
    motion = MOTIONS[name]
    until, forces = min(0.1, 0.5 * motion.until), motion.loads.forces
    run = pl.simulate(robot, q, v, until=until, losses=False, forces=forces)
    return robot, run.q[-1], run.v[-1]


# -- the same robots ------------------------------------------------------------------------


def test_a_loop_keeps_as_many_rows_as_are_independent() -> None:
    kept = {name: [sum(tie.independent) for tie in problem(name).scene.ties] for name in MOTIONS}
    # Planar loops need two of five, Bricard's linkage moves although it has six axes: four of five.
    assert kept == {"fourbar": [2], "sevenbar": [2, 2], "stewart": [3] * 6, "bricard": [4],
                    "heavy_top": [], "closed_chain": [2], "squeezer": [2] * 3}  # fmt: skip


def test_rows_are_chosen_that_stay_independent_along_the_way() -> None:
    robot, q, v = MOTIONS["bricard"].start()
    run = pl.simulate(robot, q, v, until=2.0, losses=False, save_every=0.05)
    (tie,) = scene(robot, q, v, list(run.q)).ties
    closed = pl.Constraints(robot, full=True)
    loop, least = robot.loops[0], []
    for at in run.q:
        turn = robot.placement(at, "joint_6/A").actInv(robot.placement(at, "joint_6/B")).rotation
        J = np.kron(np.eye(2), turn) @ closed.twist_jacobian(at, loop)
        least.append(np.linalg.svd(J[list(tie.independent)], compute_uv=False)[-1])
    assert sum(tie.independent) == 4 and not tie.independent[5]
    assert min(least) > 0.05  # other choices fall below 0.02


def test_planar_and_ball_loops_are_held_by_one_point_and_others_by_two() -> None:
    points = {name: [tie.points(0.4) for tie in problem(name).scene.ties] for name in MOTIONS}
    assert points["sevenbar"] == [(0.0,), (0.0,)] and points["stewart"] == [(0.0,)] * 6
    assert points["bricard"] == [(-0.2, 0.2)]


def test_the_mjcf_text_has_the_masses_places_and_loops_of_the_robot() -> None:
    one = problem("stewart")
    tree = ET.fromstring(mjcf(one.scene, one.robot.length))
    masses = [float(part.attrib["mass"]) for part in tree.iter("inertial")]
    assert sum(masses) == pytest.approx(pin.computeTotalMass(one.robot.model), rel=1e-12)
    assert len(list(tree.iter("connect"))) == 6 and len(list(tree.iter("freejoint"))) == 1
    assert sum(joint.attrib["type"] == "hinge" for joint in tree.iter("joint")) == 12
    sites = {site.attrib["name"]: site.attrib["pos"].split() for site in tree.iter("site")}
    tie = one.scene.ties[2]
    assert np.allclose(np.array(sites["b2_0"], dtype=float), tie.frame_b.translation)


@pytest.mark.parametrize("name", MOTIONS)
def test_the_baseline_has_the_accelerations_of_the_robot(name: str) -> None:
    robot, q, v = moving(name)
    loads = MOTIONS[name].loads
    equations = pl.EquationsOfMotion(robot, formulation=pl.Projected(), forces=loads.forces)
    wanted = equations.acceleration(0.0, q, v)
    peer = Pinocchio(robot.model, scene(robot, q, v, (), loads), robot.length)
    assert peer.tune([(q, v)], [wanted]) < 1e-6
    found = peer.acceleration(q, v)
    assert np.abs(found - wanted).max() < 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("solver", ["constraintDynamics", "lcaba"])
def test_solvers_of_the_baseline_do_not_spoil_each_other(solver: str) -> None:
    robot, q, v = moving("stewart")
    wanted = pl.EquationsOfMotion(robot).acceleration(0.0, q, v)
    peer = Pinocchio(robot.model, scene(robot, q, v), robot.length)
    for other in ("lcaba", "constraintDynamics", solver):
        peer.use(other, 1e-8, 5)
        assert np.abs(peer.acceleration(q, v) - wanted).max() < 1e-6 * np.abs(wanted).max()


def test_the_squeezer_ends_where_the_test_set_says() -> None:
    """Angles at 0.03 s of the Test Set for Initial Value Problem Solvers; ten digits agree."""
    robot, q, v = MOTIONS["squeezer"].start()
    forces = MOTIONS["squeezer"].loads.forces
    tight = pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12)
    end = pl.simulate(robot, q, v, until=0.03, forces=forces, losses=False, method=tight)
    turned = dict(zip(list(robot.model.names)[1:], end.q[-1], strict=True))
    assert turned["O"] == pytest.approx(15.81077119629904 + 0.0617138900142765, abs=2e-9)
    assert turned["F"] == pytest.approx(-15.75637105984298, abs=2e-9)
    assert turned["B"] == pytest.approx(0.04082224013073101 - 0.4552798191630704, abs=2e-9)
    assert turned["A7"] == pytest.approx(1.048080741042263 - 1.230547444549821, abs=2e-9)


def test_the_closed_chain_has_bars_of_equal_length_between_its_ends() -> None:
    robot, q, _ = MOTIONS["closed_chain"].start()
    loops = [loop.name for loop in robot.loops]
    frames = [
        f"{name}/A" if name in loops else name for name in (*(f"j{k}" for k in range(20)), "end")
    ]
    places = [robot.placement(q, frame).translation for frame in frames]
    assert np.allclose(np.linalg.norm(np.diff(places, axis=0), axis=1), 0.1, atol=1e-12)
    assert np.linalg.norm(places[-1] - places[0]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["stewart", "heavy_top"])
def test_the_baseline_integrates_quaternions_as_pinocchio_does(name: str) -> None:
    robot, q, v = turned(MOTIONS[name].robot())
    peer = Pinocchio(robot.model, scene(robot, q, v), robot.length)
    eps = 1e-6
    ahead, behind = (pin.integrate(robot.model, q, side * eps * v) for side in (1, -1))
    slope = (ahead - behind) / (2 * eps)
    assert np.allclose(peer.rates(q, v), slope, atol=1e-7 * np.abs(v).max())


@pytest.mark.skipif(not installed("mujoco"), reason="MuJoCo is not installed")
@pytest.mark.parametrize("name", MOTIONS)
def test_mujoco_has_the_same_matrices(name: str) -> None:
    assert max(mujoco_differences(problem(name))) < 1e-9


@pytest.mark.skipif(not installed("mujoco"), reason="MuJoCo is not installed")
def test_mujoco_has_the_same_matrices_of_turned_bodies() -> None:
    robot, q, v = turned(lopsided())
    one = Problem(MOTIONS["stewart"], robot, q, v, scene(robot, q, v))
    assert max(mujoco_differences(one)) < 1e-9
    peer = MuJoCo(one.scene, 1.0)
    peer.prepare("EULER", 1e-6, 2.0, 1e-10)
    before = peer.poses()[0]
    peer.run(1e-6)
    speeds = [part.pose.rotation @ part.twist.linear for part in one.scene.parts]
    assert np.allclose((peer.poses()[0] - before) / 1e-6, speeds, atol=1e-4)


@pytest.mark.skipif(not installed("exudyn"), reason="Exudyn is not installed")
def test_exudyn_has_the_same_accelerations_of_turned_bodies() -> None:
    robot, q, v = turned(lopsided())
    assert exudyn_difference(Problem(MOTIONS["stewart"], robot, q, v, scene(robot, q, v))) < 1e-7


@pytest.mark.skipif(not installed("exudyn"), reason="Exudyn is not installed")
@pytest.mark.parametrize("name", MOTIONS)
def test_exudyn_has_the_same_accelerations(name: str) -> None:
    assert exudyn_difference(problem(name)) < 1e-8


@pytest.mark.skipif(not installed("exudyn"), reason="Exudyn is not installed")
def test_planar_robots_are_planar_in_exudyn() -> None:
    flat = {name: type(in_exudyn(problem(name).scene)) is PlanarExudyn for name in MOTIONS}
    planar = {"fourbar", "sevenbar", "closed_chain", "squeezer"}
    assert flat == {name: name in planar for name in MOTIONS}


@pytest.mark.skipif(not installed("drake"), reason="Drake is not installed")
@pytest.mark.parametrize("name", MOTIONS)
def test_drake_has_about_the_same_accelerations(name: str) -> None:
    assert drake_difference(problem(name)) < 0.1  # its constraints are soft


# -- errors and times -----------------------------------------------------------------------


def test_poses_are_apart_by_the_larger_of_shift_and_angle() -> None:
    robot, q, _ = MOTIONS["fourbar"].start()
    here = poses(robot, q)
    shifted = here[0] + [0.0, 3e-3, 4e-3], here[1]
    assert apart(shifted, here, 0.5) == pytest.approx(1e-2)
    for angle in (1e-9, 0.3, 3.1):
        turn = pin.exp3(angle * np.array([0.6, 0.0, 0.8]))
        turned = here[0], np.array([here[1][0], here[1][1] @ turn, here[1][2]])
        assert apart(turned, here, 0.5) == pytest.approx(angle, rel=1e-6)
    assert apart((here[0] * np.nan, here[1]), here, 1.0) == np.inf
    assert apart((here[0], here[1] * np.nan), here, 1.0) == np.inf


def test_contestants_take_turns_and_are_timed_by_the_least() -> None:
    seen: list[str] = []
    found = interleaved(
        {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 3, 0.0, longest=np.inf
    )
    assert "".join(seen).endswith("ababab")
    assert found["a"].count == found["b"].count == 3
    sample = Sample.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (sample.least, sample.median, sample.count) == (1.0, 3.0, 5)
    assert sample.spread == pytest.approx(2.0 / 3.0)


def point(
    error: float | None, spent: float, who: str = "pinloop", how: str = "m"
) -> dict[str, Any]:
    time = {"least": spent, "median": spent, "spread": 0.0, "count": 1}
    return {"package": who, "method": how, "setting": 0.0, "error": error, "failed": "",
            "time": time}  # fmt: skip


def test_the_time_at_an_error_lies_between_the_settings_around_it() -> None:
    # Order four: the error falls by 10^4 where the time grows tenfold.
    series = [point(1e-3, 0.01), point(1e-7, 0.1), point(1e-11, 1.0)]
    assert time_at_target(series, 1e-4) == pytest.approx(0.01 * 10**0.25)
    assert time_at_target(series, 1e-2) == pytest.approx(0.01)
    assert time_at_target(series, 1e-12) is None
    assert time_at_target([point(None, 0.01), point(1e-7, 0.1)], 1e-6) == pytest.approx(0.1)


def test_the_order_is_the_slope_of_the_error_over_the_step() -> None:
    steps = (1e-1, 1e-2, 1e-3, 1e-4)
    series = [point(3 * step**2, 1.0) | {"setting": step} for step in steps]
    # The first is far off, one is no better than its reference.
    assert order([*series, point(1e-13, 1.0) | {"setting": 1e-5}]) == pytest.approx(2.0)
    assert np.isnan(order(series[:2]))


def results(own: float, ratio: float) -> dict[str, Any]:
    sample = {"least": 1e-5, "median": 2e-5, "spread": 0.1, "count": 3}
    rhs = {"robot": "r", "title": "Robot", "nv": 3, "rows": 2, "peer": "constraintDynamics",
           "peer_rows": 3, "mu": 0.0, "iterations": 1, "difference": 1e-9, "pinloop": sample,
           "pinocchio": sample, "ratio": ratio}  # fmt: skip
    points = [point(1e-7, own), point(1e-7, own / 10, how="n"), point(1e-8, 0.5, "MuJoCo"),
              point(1e-3, 0.1, "Exudyn"), point(1e-3, 0.02, how=DEFAULT),
              point(None, 0.02, "Exudyn", DEFAULT)]  # fmt: skip
    case = {"case": "r", "title": "Robot", "until": 1.0, "length": 1.0, "confirmed": 1e-12,
            "confirmed_by": "other equations", "models": {}, "points": points, "parts": {
                "tolerance": 1e-5, "engine": "native", "steps": 9, "evaluations": 100,
                "whole": sample | {"least": 3e-4}, "step": sample | {"least": 1e-4}}}  # fmt: skip
    return {"machine": {"cores": "2"}, "versions": {"python": "3"}, "missing": ["exudyn"],
            "quick": False, "right_hand_sides": [rhs], "precision": [case]}  # fmt: skip


def test_the_best_peer_is_the_fastest_that_reaches_the_target() -> None:
    case = results(0.3, 1.0)["precision"][0]
    assert best_at_target(case) == {
        "pinloop": ("n", pytest.approx(0.03)), "MuJoCo": ("m", 0.5), "Exudyn": None
    }  # fmt: skip
    assert best_peer(case) == ("MuJoCo", 0.5)
    assert best_peer({"points": [point(1e-7, 0.1), point(1e-3, 0.1, "Exudyn")]}) is None


def test_memory_grows_by_its_slope() -> None:
    steps = [[1.0, 300.0, 200.0], [2.0, 500.0, 300.0], [3.0, 700.0, 400.0]]
    assert np.allclose(growth(steps), (200, 100))


# -- what is written ------------------------------------------------------------------------


def test_the_page_says_who_is_faster_and_what_is_missing() -> None:
    ours, theirs = page(results(0.3, 2.0)), page(results(9.0, 7.5))
    row = "| Robot | 30 ms | - | 500 ms | - | - | 17 (MuJoCo) |"
    assert row in ours and "| Robot | 900 ms | - | 500 ms | - | - | 0.56 (MuJoCo) |" in theirs
    assert "| Robot | 20 ms, 1e-03 | - | - | fails | - |" in ours
    assert "exudyn was not installed" in ours and "not reached" in ours
    # Of 300 us are 200 for 100 evaluations; the peer takes 0.5 s.
    assert "| Robot | 1e-05 | native | 300 us | 100 us | 9 | 100 | 2 us | 2.5e+03 |" in ours
    assert "best peer: none." in ours and "best peer: Robot (0.56, 33% set-up)." in theirs


def test_page_pictures_and_numbers_are_the_same_each_time(tmp_path: Path) -> None:
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write(results(0.3, 2.0), folder)
        texts.append({path.name: path.read_text() for path in folder.iterdir()})
    assert texts[0] == texts[1]
    assert sorted(texts[0]) == ["performance.json", "performance.md", "performance_r.svg"]
    assert json.loads(texts[0]["performance.json"]) == results(0.3, 2.0)
    drawn = ET.fromstring(texts[0]["performance_r.svg"])
    lines = [one for one in drawn if one.tag.endswith("polyline")]
    assert len(lines) == 2 * 5  # a default call and four methods, in the diagram and in the legend


def test_sections_are_renewed_one_by_one(tmp_path: Path) -> None:
    before = "# Performance\n\nold\n\n## Stops\n\nslow\n\n## Import\n\nas it was\n"
    (tmp_path / "performance.md").write_text(before)
    (tmp_path / "performance.json").write_text(json.dumps({"stops": 1, "memory": {"x": 2}}))
    parts = {"accelerations": 5e-4, "decisions": 1e-3}
    single = {"robot": "r", "time": 2e-3, "parts": parts, "phases": 3.0, "evaluations": 70.0,
              "load": 0.5}  # fmt: skip
    time = {"median": 3e-3, "least": 3e-3, "spread": 0.1, "count": 3}
    stops = {"count": 4, "time": time, "per_second": 333.0, "single": [single, single]}
    renew({"stops": stops, "machine": {}}, tmp_path)
    text = (tmp_path / "performance.md").read_text()
    assert text.startswith("# Performance\n\nold\n\n## Stops\n\nA study of 4")
    assert text.endswith("\n\n## Import\n\nas it was\n") and "slow" not in text
    assert "500 of the r" in text and "| decisions | 1000 | 1000 |" in text
    assert "alone would be 2000 and 2000 stops" in text
    numbers = json.loads((tmp_path / "performance.json").read_text())
    assert numbers == {"stops": stops, "memory": {"x": 2}}


def test_a_quick_run_measures_and_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "benchmarks", "--quick", "--case", "fourbar",
               "--part", "rhs", "--part", "precision", "--output", str(tmp_path)]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
    found = json.loads((tmp_path / "performance.json").read_text())
    case = found["precision"][0]
    assert case["confirmed"] < 1e-9
    fine = [one["error"] for one in case["points"] if one["method"] in ("dopri5", "DOP853")]
    assert min(fine) < 1e-6
    assert found["right_hand_sides"][0]["difference"] < 1e-6
    assert "four-bar" in (tmp_path / "performance.md").read_text()


# -- the check ------------------------------------------------------------------------------


def test_calls_are_counted() -> None:
    def inner(x: int) -> int:
        return abs(x)

    # Once itself, twice the inner one, and what that calls.
    assert calls(lambda: inner(inner(1))) == 5


def test_the_check_names_what_is_over_its_bound() -> None:
    bounds = {"counts": {"a": 100.0, "b": 10.0}, "ratios": {"r": 3.0}}
    assert excesses({"counts": {"a": 109.0, "b": 10.0}, "ratios": {"r": 5.9}}, bounds) == []
    wrong = excesses({"counts": {"a": 111.0, "c": 1.0}, "ratios": {"r": 6.1}}, bounds)
    assert [line.split()[0].rstrip(":") for line in wrong] == ["a", "b", "c", "r"]


# -- how exact loops are ----------------------------------------------------------------------


def test_the_foot_of_the_leg_goes_straight() -> None:
    """What Jansen chose its lengths for: it stays within 1 cm of the ground over half a metre."""
    motion = closure.CASES["leg of a Strandbeest"]
    robot, q, v = motion.start()
    assert pl.diagnose(robot).mobility == 1
    run = pl.simulate(robot, q, v, until=2.5, losses=False)
    assert run.closure().max() < 1e-10
    start = robot.placement(q, "lower")
    # Corners of the lower triangle at the start, and that its sides are those that he published.
    W, X, foot = np.array(
        [[-0.26952107, -0.4551517, 0], [-0.59231515, -0.2805293, 0], [-0.43160111, -0.91756933, 0]]
    )
    sides = [float(np.linalg.norm(one - other)) for one, other in ((W, X), (X, foot), (W, foot))]
    assert sides == pytest.approx([0.367, 0.657, 0.49], abs=1e-7)
    path = np.array([p.act(start.actInv(foot)) for p in run.placement("lower")])
    low = path[path[:, 1] < path[:, 1].min() + 0.01]
    assert np.ptp(low[:, 0]) > 0.5 and np.ptp(path[:, 1]) > 0.2


@pytest.mark.parametrize("title", closure.CASES)
@pytest.mark.parametrize(
    ("package", "method", "step", "gap", "energy"),
    [
        ("pinloop", closure.DEFAULT, None, 1e-10, 1e-7),
        ("mujoco", "RK4 1", 2e-4, 1e-6, 1e-5),
        ("drake", "SAP", 1e-3, 1e-3, 0.1),
        ("exudyn", "GeneralizedAlpha", 1e-3, 1e-9, 1e-3),
    ],
)
def test_loops_are_as_exact_as_the_page_says(
    title: str, package: str, method: str, step: float | None, gap: float, energy: float
) -> None:
    """Energies are computed in four ways, which would not stay where they are if one were wrong."""
    if package != "pinloop" and not installed(package):
        pytest.skip(f"{package} is not installed")
    problem = closure.problem_of(replace(closure.CASES[title], until=0.3))
    outcome = closure.measure(problem, closure.Setting(package, method, step))
    assert not outcome.failed and outcome.gap < gap and outcome.energy < energy
    if package == "drake":  # it is not exact, and that is seen
        assert outcome.gap > 1e-8


def test_a_gap_is_seen() -> None:
    problem = closure.problem_of(replace(closure.CASES["four-bar"], until=0.01))
    watch = closure.Watch(problem.scene, problem.robot.length)
    places, turns = poses(problem.robot, problem.q)
    watch((places, turns), 0.0)
    assert watch.gap < 1e-10
    k = problem.scene.ties[0].b if problem.scene.ties[0].b >= 0 else problem.scene.ties[0].a
    places[k] += [0.003, 0.0, 0.004]
    watch((places, turns), 0.0)
    assert watch.gap == pytest.approx(0.005, abs=1e-9)
