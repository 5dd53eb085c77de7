"""Distances over the cases of a study: the largest of one case, by hand for every case.

A cross table on a quarter of an ellipse: first it is fast towards the person and stops soon, at
the end it is slow towards the person and goes on sideways for long. So the longest time and the
longest way belong to different cases.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.safety.standards.distances import standing_cases
from pinloop.safety.standards.guard_distance import minimum_distance
from pinloop.safety.standards.separation import separation

from ...screw_tables import Array, joint
from ..space.moving_bodies import at, chain, dressed, shape
from ..stopping.robots_to_stop import X, Y, made, pendulum, solid
from ..studies.carriage import CHAIN, COMMAND, DELAY, OFF, SPEED, carriage
from ..studies.carriage import brakes as carriage_brakes

WIDE = 3.0
"""The table goes along x = 3 sin t, y = -cos t."""
BRAKING_X, BRAKING_Y = 4.0, 1.0
"""Decelerations [m/s^2]; a is under b, with 2 and 1 kg."""
COUNT, LAST, ROOM = 8, 1.4, 1e-4


def cross_table() -> pl.Mechanism:
    bodies = [solid("body_a", 2.0), solid("body_b", 1.0)]
    joints = [
        joint("a", "prismatic", GROUND, "body_a", [0, 0, 0], X),
        joint("b", "prismatic", "body_a", "body_b", [0, 0, 0], Y),
    ]
    box = shape("body_b", "box", (0.4, 0.4, 0.1), at(0, 0, 0))
    return dressed(made(bodies, joints), (replace(box, placement=pin.SE3(1)),))


def ellipse(end: float = 1.6) -> pl.safety.JointTrajectory:
    t = np.linspace(0.0, end, 161)
    return pl.safety.JointTrajectory(
        ("a", "b"), t, np.stack((WIDE * np.sin(t), -np.cos(t)), axis=-1)
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> pl.Study:
    return pl.study(
        cross_table(),
        carriage_brakes(a=3.0 * BRAKING_X, b=1.0 * BRAKING_Y),
        pl.safety.Space(motion=ellipse(), instant=(0.0, LAST)),
        pl.safety.Grid(COUNT),
        results=tmp_path_factory.mktemp("table") / "table.csv",
        jobs=1,
        search=False,
    )


def by_hand(detection: float = 0.0) -> tuple[Array, Array, Array]:
    """Stopping times, S_r and S_s along x of all cases."""
    t = np.linspace(0.0, LAST, COUNT)
    off = t + COMMAND + OFF
    v_x, v_y = WIDE * np.cos(off), np.sin(off)
    times = COMMAND + DELAY + np.maximum(v_x / BRAKING_X, v_y / BRAKING_Y)
    first = WIDE * (np.sin(t + COMMAND) - np.sin(t)) + detection * WIDE * np.cos(t)
    second = WIDE * (np.sin(off) - np.sin(t + COMMAND))
    second += v_x * (DELAY - OFF) + v_x**2 / (2 * BRAKING_X)
    return times, first, second


@pytest.mark.parametrize("detection", [0.0, 0.1])
def test_the_largest_distance_of_one_case(study: pl.Study, detection: float) -> None:
    times, first, second = by_hand(detection)
    hand = 1.6 * (times + detection) + first + second + 0.2
    worst = int(np.argmax(hand))
    assert worst != int(np.argmax(times))
    found = separation(
        study, direction=(1, 0, 0), detection=detection, intrusion=0.2, z_d=0.0, z_r=0.0,
        tolerance=2 * ROOM, jobs=1,
    )  # fmt: skip
    assert found.cases == tuple(range(COUNT))
    above = np.array(found.distances) - hand
    assert above.min() > -1e-6 and above.max() < 4 * ROOM
    assert found.case == worst
    # Every term is that of this case: the longest time of another one is not added to it.
    parts = [1.6 * (times[worst] + detection), first[worst], second[worst], 0.2, 0.0, 0.0]
    assert [term.value for term in found.terms] == pytest.approx(parts, abs=2 * ROOM)
    assert found.distance == max(found.distances)
    assert found.distance + 0.1 < 1.6 * (times.max() + detection) + first.max() + second.max() + 0.2
    assert found.stopping_time == pytest.approx(times[worst] - COMMAND, rel=1e-6)


def test_it_is_that_of_the_stop_and_says_which(study: pl.Study, tmp_path: Path) -> None:
    found = separation(study, direction=(1, 0, 0), jobs=1)
    alone = separation(study.replay(found.case or 0), direction=(1, 0, 0))
    assert [term.value for term in found.terms] == [term.value for term in alone.terms]
    text = " ".join(str(found).split())
    assert f"case {found.case}, the largest distance of {COUNT} cases in {study.path}" in text
    assert f"sampled, not guaranteed: the largest of {COUNT} cases" in text
    data = json.loads(json.dumps(found.as_dict()))
    assert (data["case"], data["cases"]) == (found.case, list(range(COUNT)))
    assert data["results"] == str(study.path) and len(data["distances_m"]) == COUNT
    assert found.to_csv(tmp_path / "terms.csv").read_text().count("\n") == 8
    assert alone.as_dict()["case"] is None and alone.as_dict()["results"] is None


def test_processes_find_the_same(study: pl.Study) -> None:
    one, two = (separation(study, human_speed=lambda t: 1.6 - t, jobs=jobs) for jobs in (1, 2))
    assert one.distances == two.distances and one.case == two.case


def test_minimum_distance_of_a_study(study: pl.Study) -> None:
    times, _, _ = by_hand()
    found = minimum_distance(study, detection=0.03)
    assert found.case == int(np.argmax(times)) == COUNT - 1
    assert found.distance == pytest.approx(1.6 * (times.max() + 0.03), rel=1e-6)
    text = " ".join(str(found).split())
    assert f"case {found.case}, the longest stopping time" in text
    assert f"largest of {COUNT} cases" in text and "C not given and taken as 0" in text
    assert found.as_dict()["case"] == found.case


# -- what counts, and what does not -----------------------------------------------------------


def test_cases_that_could_not_be_computed_are_told() -> None:
    """On the path half the duration more of the motion is needed; the last cases do not have it."""
    drives = {
        name: pl.safety.JointBrake(side="joint", dynamic_torque=30.0, deceleration=5.0)
        for name in "ab"
    }
    made = pl.study(
        cross_table(),
        pl.Brakes(drives, CHAIN),
        pl.safety.Space(motion=ellipse(), instant=(0.0, 1.5)),
        pl.safety.Grid(4),
        category=pl.Category1(on_path=True),
        jobs=1,
        search=False,
    )
    assert made.outcomes() == {"stopped": 3, "failed": 1}
    found = separation(made, jobs=1)
    assert found.cases == (0, 1, 2) and len(found.distances) == 3
    (note,) = (text for text in found.notes if "could not" in text)
    assert note.startswith("1 of 4 cases could not be computed and are left out, first case 3: ")
    assert "the motion ends at 1.6 s" in note
    part = replace(made, done=2)
    notes = standing_cases(part).notes
    assert "the study is not finished: 2 of 4 cases are done" in notes
    with pytest.raises(pl.BadValue, match=r"no case of the study of robot .* could be computed"):
        separation(replace(made, done=0))


def test_a_robot_that_does_not_hold_has_no_distance() -> None:
    """The brake holds the beam of 9.8 N m, not the payloads at its centre."""
    brake = pl.safety.JointBrake(side="joint", dynamic_torque=12.0)
    made = pl.study(
        pendulum(),
        pl.Brakes({"axis": brake}),
        pl.safety.Space(pose={"axis": 0.0}, speed={"axis": 0.5}, payload=(0.0, 8.0)),
        pl.safety.Grid(3),
        jobs=1,
        until=1.0,
        payload=pl.Payload(0.0, com=np.array([0.5, 0.0, 0.0]), frame="axis"),
        search=False,
    )
    assert made.outcomes()["stopped"] == 1
    for function in (separation, minimum_distance):
        with pytest.raises(
            pl.BadValue, match=r"case 1 of the study of robot .* ends as .* \(and 1"
        ):
            function(made)


def test_a_mistake_is_told_with_its_case(study: pl.Study) -> None:
    with pytest.raises(pl.BadValue, match="case 0 of the study: the robot reaches the person"):
        separation(study, point=(0.5, -1.0, 0.0), jobs=1)
    for jobs in (0, True, 1.5):
        with pytest.raises(pl.BadValue, match="jobs is "):
            separation(study, jobs=jobs)  # type: ignore[arg-type]


# -- the simple form, and people at a point ---------------------------------------------------


def test_where_the_simple_form_is_larger_elsewhere() -> None:
    """A person who runs for a moment only after the fast carriage has come to rest."""

    def running(t: float) -> float:
        return 0.2 + 60.0 * max(0.0, 0.05 - abs(t - 0.9))

    fast = carriage()
    slow = pl.stop(fast.robot, [0.0], [0.5], brakes=carriage_brakes(j1=0.5))
    found = separation([slow, fast], human_speed=running)
    assert found.stop is fast
    top = 0.5 * COMMAND + 0.5 * DELAY + 0.25
    simple = 3.2 * (COMMAND + DELAY + 1.0) + top
    assert simple > found.simple
    assert f"the simple form is largest for stop 0: {1e3 * simple:.1f} mm" in found.notes
    assert not any("simple form" in note for note in separation([slow, fast]).notes)


def test_what_comes_nearer_is_not_what_is_nearest() -> None:
    """A wall of the robot stands nearest to the person; a carriage comes from the side.

    From (0, -2) it goes along y with 2 m/s, the person is at (0.3, 0): its face is at y = -1.9, so
    that it comes nearer at nearly its whole speed, though at none in the direction in which the
    wall stands.
    """
    body = replace(shape("a", "box", (0.2, 0.2, 0.2), at(0, -2.0, 0)), placement=pin.SE3(
        np.eye(3), np.array([0.0, -2.0, 0.0])))  # fmt: skip
    wall = replace(shape("b", "box", (0.2, 4.0, 0.2), at(0, 0, 0)), placement=pin.SE3(
        np.eye(3), np.array([-0.6, 0.0, 0.0])))  # fmt: skip
    slider = chain("prismatic", "prismatic", length=0.0, axis=(0, 1, 0), geometry=(body, wall))
    # The second carriage goes back as fast as it is carried: the wall stands.
    numbers = carriage_brakes(j1=20.0, j2=20.0)
    stop = pl.stop(slider, [0.0, 0.0], [SPEED, -SPEED], brakes=numbers)
    found = separation(stop, point=(0.3, 0.0, 0.0), detection=0.1)
    # Nearest place of the box: its corner (0.1, -1.9), later on its way to -1.8.
    speed = SPEED * max(y / np.hypot(0.2, y) for y in (1.9, 1.8))
    assert found.robot_speed == pytest.approx(speed, rel=1e-6)
    assert found["S_r"].value >= 0.1 * speed


def test_the_payload_has_no_shape_and_that_is_said() -> None:
    """Unless the robot says otherwise, a payload is a point: its corners are for the user."""
    fast = carriage()
    by = carriage_brakes(j1=4.0)
    loaded = pl.stop(fast.robot, [0.0], [1.0], brakes=by, payload=pl.Payload(2.0))
    (note,) = (text for text in separation(loaded).notes if "left out" in text)
    assert "payload" in note and "frames=" in note
    assert not any("left out" in text for text in separation(fast).notes)
