"""What stands behind loading sees one exact robot: all rows, absolute coordinates, ODCA, stops.

A palletizer written in other frames with 6 digits is compared with the one of the repository.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly

from .. import rounded
from ..known_linkages import KNOWN, URDF, robot_called

OFF = 2e-4
"""How far states of a rounded robot may be off, whose lengths are by some 1e-6."""


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.Mechanism, pl.Mechanism]:
    """The palletizer, and the one with 6 digits in other frames."""
    exact = pl.load(URDF / "palletizer.urdf")
    path = tmp_path_factory.mktemp("robot") / "robot.urdf"
    turned = rounded.in_other_frames(exact, np.random.default_rng(7))
    robot = pl.load(rounded.saved_with_digits(turned, path, 6))
    assert robot.description.rounding is not None
    return exact, robot


def test_all_rows_hold_and_not_only_the_sufficient_ones(
    robots: tuple[pl.Mechanism, pl.Mechanism],
) -> None:
    exact, robot = robots
    q = pl.assemble(robot, {"shoulder": 0.3})
    np.testing.assert_allclose(q, pl.assemble(exact, {"shoulder": 0.3}), atol=OFF)
    run = pl.simulate(robot, q, until=0.5, regularization=False)
    sufficient = pl.simulate(robot, q, until=0.5)
    np.testing.assert_allclose(run.q[-1], sufficient.q[-1], atol=1e-6)
    full = pl.Constraints(robot, full=True)
    # The rows that regularization drops hold along the run as if they were there.
    assert max(np.linalg.norm(full.residual(q)) for q in sufficient.q) < 1e-9


@pytest.mark.parametrize("formulation", [pl.ODCA(), pl.Voronets(), pl.Projected()])
def test_formulations_agree_with_the_exact_robot(
    robots: tuple[pl.Mechanism, pl.Mechanism], formulation: pl.ODCA | pl.Voronets | pl.Projected
) -> None:
    ends = [
        pl.simulate(
            robot, pl.assemble(robot, {"shoulder": 0.3}), until=0.3, formulation=formulation
        )
        for robot in robots
    ]
    np.testing.assert_allclose(ends[0].q[-1], ends[1].q[-1], atol=OFF)


def test_absolute_coordinates_agree(robots: tuple[pl.Mechanism, pl.Mechanism]) -> None:
    _, robot = robots
    absolute = robot.absolute()
    assert pl.diagnose(absolute).mobility == pl.diagnose(robot).mobility
    # Absolute coordinates have no tree joints that damping could act in.
    ends = [pl.simulate(r, r.neutral, until=0.2, losses=False) for r in (robot, absolute)]
    forearm = [run.robot.placement(run.q[-1], "forearm") for run in ends]
    assert forearm[0].isApprox(forearm[1], 1e-6)


def test_stops_agree(robots: tuple[pl.Mechanism, pl.Mechanism]) -> None:
    results = []
    for robot in robots:
        q = pl.assemble(robot, {"shoulder": 0.2})
        v = pl.consistent_velocity(robot, q, {"shoulder": 0.8})
        results.append(pl.stop(robot, q, v, brakes=URDF / "palletizer.brakes.yaml"))
    times = [result.run.t[-1] for result in results]
    assert times[0] == pytest.approx(times[1], rel=1e-3)
    np.testing.assert_allclose(results[0].run.q[-1], results[1].run.q[-1], atol=OFF)


@pytest.mark.parametrize("name", ["bennett", "goldberg"])
def test_sampled_ranks_of_paradoxical_linkages(name: str) -> None:
    entries = rounded.table_with_digits(KNOWN[name][0](), np.random.default_rng(2), 6)
    robot, exact = pl.from_screws(entries), robot_called(name)
    assert robot.description.rounding is not None
    reports = [pl.diagnose(r) for r in (robot, exact)]
    assert reports[0].paradoxical and reports[0].ranks == reports[1].ranks
    run = pl.simulate(robot, robot.neutral, until=0.3)
    assert run.closure().max() < 1e-10


@pytest.mark.parametrize("count", [5, 6, 9])
@pytest.mark.parametrize(("name", "rank"), [("bennett", 2), ("goldberg", 3), ("bricard", 4)])
def test_sampled_rows_of_paradoxical_linkages(
    name: str, rank: int, count: int, tmp_path: Path
) -> None:
    exact = rounded.in_other_frames(robot_called(name), np.random.default_rng(2))
    robot = pl.load(
        rounded.saved_with_digits(exact, tmp_path / "robot.urdf", count), kinematics_only=True
    )
    assert robot.description.rounding is not None
    reduced = pl.regularize(robot, sampled=True)
    assert len(pl.Constraints(reduced)) == rank == pl.diagnose(robot).rank
    # What the held rows close, all rows find closed; the motion is that of the exact linkage.
    rows, q = pl.Constraints(robot, full=True), pl.assemble(reduced)
    for seed in range(5):
        moved = nearby_assembly(reduced, q, np.random.default_rng(seed), full=False)
        assert moved is not None and np.abs(moved - q).max() > 1e-3
        assert np.abs(rows.residual(moved)).max() < 1e-9


def test_the_tolerance_reaches_scenarios_and_studies(tmp_path: Path) -> None:
    exact = pl.load(URDF / "palletizer.urdf")
    turned = rounded.in_other_frames(exact, np.random.default_rng(7))
    rounded.saved_with_digits(turned, tmp_path / "robot.urdf", 6)
    scenario = tmp_path / "run.yaml"
    scenario.write_text(
        "format: pinloop-scenario-1\nrobot: {file: robot.urdf, tolerance: 2e-4}\nuntil: 0.01\n"
    )
    rounding = pl.load_scenario(scenario).robot.description.rounding
    assert rounding is not None and rounding.tolerance == 2e-4
    scenario.write_text(
        "format: pinloop-scenario-1\nrobot: {file: robot.urdf, tolerance: 0}\nuntil: 0.01\n"
    )
    with pytest.raises(pl.LoadError, match="joint frames miss each other"):
        pl.load_scenario(scenario)


def test_the_command_line_has_the_tolerance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pinloop.cli import main as cli

    turned = rounded.in_other_frames(robot_called("fourbar"), np.random.default_rng(7))
    path = str(rounded.saved_with_digits(turned, tmp_path / "robot.urdf", 6))
    assert cli.run(["check", path]) == 0
    out = capsys.readouterr().out
    assert "tolerance 0.0001 rad and lengths of the robot" in " ".join(out.split())
    assert cli.run(["check", path, "--tolerance", "0"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "NOT CLOSED" in out and "robot.fitted() moves them by up to" in out
    assert cli.run(["assemble", path, "--tolerance", "0"]) == 1
    assert cli.run(["assemble", path]) == 0
    assert cli.run(["check", path, "--tolerance", "2"]) == 2
    assert "tolerance is 2.0; it must be a number from 0 to below 1" in capsys.readouterr().err
