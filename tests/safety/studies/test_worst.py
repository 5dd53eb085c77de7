"""The search for worst cases, against stops whose worst case is known in closed form."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.space.solids import Obstacle
from pinloop.safety.studies.cases import Setup
from pinloop.safety.studies.criteria import criteria, known_criteria
from pinloop.safety.studies.summary import worst_table
from pinloop.safety.studies.worst_search import size_slopes

from ...states import URDF
from . import wheels


def few_evaluations(study: pl.Study, *wanted: str, **more: Any) -> dict[str, pl.safety.WorstCase]:
    return pl.worst_case(study, wanted or None, **({"starts": 1, "corners": 0, "jobs": 1} | more))


# -- one joint ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_the_worst_case_of_a_wheel(seed: int) -> None:
    """Angle v^2 / 2 d + v * delay: weakest band, highest speed, latest delay."""
    study = wheels.study(pl.safety.Random(6, seed))
    found = few_evaluations(study, "time", "angle:axis", evaluations=60)
    time, angle = wheels.stopping(wheels.FASTEST, 0.04, -1.0)
    for name, value in (("time", time), ("angle:axis", angle)):
        worst = found[name]
        assert worst.value == pytest.approx(value, rel=1e-6)
        assert abs(worst.values["speed.axis"]) == wheels.FASTEST
        assert worst.values["delay.axis"] == 0.04 and worst.values["band.axis"] == -1.0
        assert 0 < worst.sampled < worst.value
        assert worst.evaluations <= 60
        assert repr(worst).startswith(f"<WorstCase of {name}: ")
    assert found["time"].sampled == study.column("stopping_time_s").max()
    assert found["angle:axis"].sampled == study.column("axis_excursion_rad").max()


def test_a_worst_case_between_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Setup.evaluate
    peak = {"speed.axis": 0.7, "delay.axis": 0.013, "band.axis": 0.2, "pose.axis": -1.1}

    def evaluate(setup: Setup, number: int, values: dict[str, float]) -> Any:
        spans = {one.name: one.high - one.low for one in setup.variables}
        away = sum(((values[name] - at) / spans[name]) ** 2 for name, at in peak.items())
        row, stop = usual(setup, number, values)
        return row | {"stopping_time_s": 1.0 - away}, stop

    monkeypatch.setattr(Setup, "evaluate", evaluate)
    study = wheels.study(pl.safety.Random(4, seed=1))
    (worst,) = few_evaluations(study, "time", evaluations=400).values()
    assert worst.value == pytest.approx(1.0, abs=1e-5)
    for name, at in peak.items():
        assert worst.values[name] == pytest.approx(at, abs=2e-3 * 2 * np.pi)


def test_derivatives_lead_to_the_worst_case_of_a_wheel() -> None:
    """All that counts goes to its end with the second stop: 12 are enough where others take 60."""
    study = wheels.study(pl.safety.Random(6, 1))
    found = few_evaluations(study, "time", "angle:axis", evaluations=12)
    time, angle = wheels.stopping(wheels.FASTEST, 0.04, -1.0)
    assert found["time"].value == pytest.approx(time, rel=1e-6)
    assert found["angle:axis"].value == pytest.approx(angle, rel=1e-6)


@pytest.mark.parametrize("criterion", ["time", "travel", "displacement", "angle:a", "angle:b"])
def test_slopes_in_parts_of_the_ranges(criterion: str) -> None:
    """Those by differences of the rows of a study."""
    study = pl.study(wheels.carriages(), wheels.CARRIAGES_BRAKES, wheels.CARRIAGES_SPACE,
                     pl.safety.Sobol(2, seed=3), jobs=1, search=False)  # fmt: skip
    setup = study.setup
    (chosen,) = known_criteria(setup, criterion).values()
    variables = [variable for variable in setup.variables if variable.varies]
    values = study.values(0)
    slopes = size_slopes(setup, chosen, setup.stop(values), variables)
    assert slopes is not None
    for slope, variable in zip(slopes, variables, strict=True):
        h = 1e-4 * (variable.high - variable.low)
        ends = [
            float(
                chosen.size(
                    *setup.evaluate(0, {**values, variable.name: values[variable.name] + x})
                )
            )
            for x in (h, -h)
        ]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-4, abs=1e-6)


# -- two joints: a weaker brake may be better -----------------------------------------------------


def test_a_weaker_brake_is_not_always_worse() -> None:
    """The harder carriage a brakes, the farther carriage b shoots forward on it."""
    study = pl.study(wheels.carriages(), wheels.CARRIAGES_BRAKES, wheels.CARRIAGES_SPACE,
                     pl.safety.Sobol(4, seed=1), jobs=1, search=False)  # fmt: skip
    found = few_evaluations(study, "time", "angle:a", "angle:b", evaluations=40)
    ends = {
        corner: wheels.sliding(2.0, *corner) for corner in product((-1.0, 1.0), repeat=2)
    }  # fmt: skip
    for k, (name, corner) in enumerate(
        [("time", None), ("angle:a", (-1.0, 1.0)), ("angle:b", (1.0, -1.0))]
    ):
        worst = found[name]
        assert worst.value == pytest.approx(max(way[k] for way in ends.values()), rel=1e-6)
        assert worst.values["speed.a"] == 2.0
        at = (worst.values["band.a"], worst.values["band.b"])
        if corner is not None:
            assert at == corner
            assert ends[corner][k] == max(way[k] for way in ends.values())
        else:
            assert at[1] == -1.0
    # A weaker brake on a is worse for a and better for b.
    assert ends[-1.0, -1.0][2] < ends[1.0, -1.0][2] and ends[-1.0, -1.0][1] > ends[1.0, -1.0][1]


def test_each_worst_case_can_be_replayed_to_the_last_digit() -> None:
    study = pl.study(wheels.carriages(), wheels.CARRIAGES_BRAKES, wheels.CARRIAGES_SPACE,
                     pl.safety.Sobol(4, seed=1), jobs=1, search=False)  # fmt: skip
    found = few_evaluations(study, evaluations=20)
    assert set(found) == {"time", "travel", "angle:a", "angle:b"}
    for worst in found.values():
        row, _ = study.setup.evaluate(0, worst.values)
        assert row[worst.column] == worst.value
        again = study.setup.stop(worst.values)
        for stop in (again, worst.stop):
            measured = {
                "time": stop.stopping_time,
                "angle:a": stop.joints["a"].excursion,
                "angle:b": stop.joints["b"].excursion,
            }.get(worst.criterion, worst.value)
            assert measured == worst.value
    # Time, travel and the angle of a are worst where the brake of a is weak.
    assert len({tuple(worst.values.values()) for worst in found.values()}) == 2


def test_impulses_of_teeth() -> None:
    """A tooth that falls in at speed v takes the momentum I v: the fastest is the worst."""
    brakes = pl.Brakes({"axis": pl.safety.JointBrake(kind="tooth", side="joint", coulomb=0.5)})
    space = pl.safety.Space(pose={"axis": 0.0}, speed={"axis": (0.5, 2.0)})
    study = pl.study(wheels.robot(), brakes, space, pl.safety.Random(3), jobs=1, search=False)
    (worst,) = few_evaluations(study, "impulse:axis", evaluations=10).values()
    assert worst.value == pytest.approx(wheels.INERTIA * 2.0, rel=1e-6)


# -- robots ---------------------------------------------------------------------------------------


def test_the_same_whatever_the_number_of_processes() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    study = pl.study(
        robot, URDF / "palletizer.brakes.yaml", sampling=pl.safety.Sobol(4, 1), jobs=1, search=False
    )
    one, two = (
        pl.worst_case(study, ["time", "travel"], starts=2, evaluations=3, jobs=jobs)
        for jobs in (1, 2)
    )
    for name, worst in one.items():
        assert (two[name].value, two[name].values) == (worst.value, worst.values)
        assert worst.value >= worst.sampled and worst.evaluations <= 6
        assert worst.stop.run.closure().max() < 1e-9
    assert one["time"].value == one["time"].stop.stopping_time


def test_the_smallest_clearance_is_the_worst() -> None:
    """The arm turns towards a post: the faster and the weaker its brake, the nearer it comes."""
    arm = pl.load(URDF / "six_axis_arm.urdf")
    space = pl.safety.Space(
        pose={f"joint_{k}": 0.0 for k in range(1, 7)},
        speed={"joint_1": (0.2, 2.0)} | {f"joint_{k}": 0.0 for k in range(2, 7)},
        band={"joint_1": (-1.0, 1.0)},
    )
    post = Obstacle.box("post", [0.1, 0.1, 4.0], (1.0, 1.5, 1.0))
    study = pl.study(
        arm,
        URDF / "six_axis_arm.brakes.yaml",
        space,
        pl.safety.Sobol(4),
        obstacles=post,
        jobs=1,
        search=False,
    )
    found = few_evaluations(study, "clearance", "travel", evaluations=15)
    nearest = found["clearance"]
    assert (nearest.values["speed.joint_1"], nearest.values["band.joint_1"]) == (2.0, -1.0)
    assert nearest.value == study.setup.clearance(nearest.stop)
    assert nearest.value < nearest.sampled == study.column("clearance_m").min()
    assert found["travel"].value > found["travel"].sampled


def test_a_search_that_finds_nothing_better_returns_the_sample() -> None:
    arm = pl.load(URDF / "six_axis_arm.urdf")
    study = pl.study(
        arm,
        URDF / "six_axis_arm.brakes.yaml",
        sampling=pl.safety.Random(6, 1),
        jobs=1,
        search=False,
    )
    for worst in few_evaluations(study, "time", "travel", evaluations=1).values():
        case = study.worst(worst.column)
        assert worst.values == study.values(case)
        assert worst.value == worst.sampled == study.column(worst.column)[case]


# -- what is no worst case ------------------------------------------------------------------------


def test_cases_that_do_not_hold_are_no_worst_case(monkeypatch: pytest.MonkeyPatch) -> None:
    study = wheels.study(pl.safety.Random(8, seed=1))
    usual = Setup.evaluate

    def evaluate(setup: Setup, number: int, values: dict[str, float]) -> Any:
        row, stop = usual(setup, number, values)
        if values["band.axis"] < -0.5:
            row |= {"outcome": "does not hold", "stopping_time_s": 100.0}
        return row, stop

    monkeypatch.setattr(Setup, "evaluate", evaluate)
    again = wheels.study(pl.safety.Random(8, seed=1))
    assert "does not hold" in again.outcomes() and study.complete
    (worst,) = few_evaluations(again, "time", evaluations=150).values()
    assert worst.values["band.axis"] >= -0.5
    assert worst.value == pytest.approx(wheels.stopping(3.0, 0.04, -0.5)[0], rel=1e-3)
    assert worst.sampled < 10.0


def test_nothing_to_start_from() -> None:
    # Gravity turns the arm for ever.
    robot = pl.load(URDF / "six_axis_arm.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml").missing("joint_2")
    study = pl.study(robot, brakes, sampling=pl.safety.Random(2), until=0.3, jobs=1, search=False)
    for wanted in (None, ["time"]):
        with pytest.raises(pl.BadValue, match="no case of the study stopped"):
            pl.worst_case(study, wanted)
    # On what a study rests is known before anything stops.
    for report in (study.table(), worst_table(study.setup, {})):
        assert report.title.text.endswith("; brake data are guesses")


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        (
            {"criterion": ["angle"]},
            pl.UnknownName,
            r"no criterion 'angle'.*did you mean 'angle:axis'",
        ),
        ({"criterion": ["clearance"]}, pl.BadValue, "'clearance' needs obstacles"),
        ({"criterion": []}, pl.BadValue, "no criterion is wanted; known: time, travel, angle:axis"),
        ({"starts": 0}, pl.BadValue, "starts is 0"),
        ({"evaluations": 0}, pl.BadValue, "evaluations is 0"),
        ({"evaluations": True}, pl.BadValue, "evaluations is True"),
    ],
)
def test_mistakes(words: dict[str, Any], error: type[pl.PinloopError], match: str) -> None:
    with pytest.raises(error, match=match):
        pl.worst_case(wheels.study(pl.safety.Random(2)), **words)


def test_a_space_without_freedom() -> None:
    space = replace(
        wheels.SPACE, pose={"axis": 0.0}, speed={"axis": 1.0}, delay={}, band={"axis": 0.5}
    )
    study = wheels.study(pl.safety.Grid(), space=space)
    (worst,) = few_evaluations(study, "time").values()
    assert worst.value == worst.sampled and worst.evaluations == 0


def test_criteria_of_sliding_joints() -> None:
    study = pl.study(wheels.carriages(), wheels.CARRIAGES_BRAKES, wheels.CARRIAGES_SPACE,
                     pl.safety.Random(1), jobs=1, search=False)  # fmt: skip
    assert criteria(study.setup)["angle:b"] == "b_excursion_m"
    assert criteria(study.setup)["impulse:a"] == "a_impulse_N_s"
    assert set(criteria(study.setup).values()) <= set(study.names)
