"""Tests of `pinloop.safety.standards.separation`: distances that a hand can compute.

Carriages and beams of simple shapes, constant braking forces: where their points are at every
instant has a closed form.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.safety.standards.advance import bound_advance
from pinloop.safety.standards.guard_distance import minimum_distance
from pinloop.safety.standards.separation import separation

from ...screw_tables import Array
from ...states import URDF, robot
from ..space.moving_bodies import at, chain, points_of, shape
from ..stopping.robots_to_stop import pendulum
from ..studies.carriage import BRAKING, COMMAND, DELAY, S_R, S_S, SPEED, T_R, T_S, brakes, carriage

TOLERANCE = 1e-3


def values(found: Any) -> list[float]:
    return [term.value for term in found.terms]


def above(value: float, hand: float, room: float = TOLERANCE) -> None:
    """Assert that a value is what a hand computes, or more, but not by much."""
    assert hand - 1e-12 <= value <= hand + room


@pytest.mark.parametrize(
    ("direction", "part"),
    [((1, 0, 0), 1.0), ((3, 0, 0), 1.0), ((1, 1, 0), np.sqrt(0.5)), ((-1, 2, 2), 0.0),
     ((-1, 0, 0), 0.0), (None, 1.0)],
)  # fmt: skip
def test_a_carriage_comes_straight_on(direction: Any, part: float) -> None:
    found = separation(carriage(), direction=direction, intrusion=0.2, z_d=0.1, z_r=0.02)
    hand = [1.6 * (T_R + T_S), S_R * part, S_S * part, 0.2, 0.1, 0.02]
    room = [0, *(TOLERANCE if 0 < part < 1 else 0 for _ in range(2)), 0, 0, 0]
    for value, expected, more in zip(values(found), hand, room, strict=True):
        above(value, expected, more + 1e-9)
    assert (found.reaction_time, found.stopping_time) == pytest.approx((T_R, T_S), rel=1e-9)
    assert found.robot_speed == pytest.approx(SPEED * part, abs=1e-12)
    assert found.distance == sum(values(found))
    # v_h (T_r + T_s) + v_r T_r + S_s + C + Z_d + Z_r; the speed is constant until the command.
    assert found.simple == pytest.approx(found.distance - found["S_r"].value + S_R * part, rel=1e-9)


def test_nothing_comes_nearer_to_somebody_behind() -> None:
    found = separation(carriage(), direction=(-1, 0, 0))
    assert values(found)[1:3] == [0.0, 0.0]
    assert found.robot_speed == 0.0
    assert "nothing comes nearer" in str(found)


def test_a_carriage_that_returns_counts_where_it_was_nearest() -> None:
    # Uphill without a brake: it slides back down until a brake that comes late stops it.
    slope, speed, late = 0.5, 2.0, 0.7
    rail = (np.cos(slope), 0, np.sin(slope))
    body = replace(shape("a", "sphere", (0.1,), at(0, 0, 0)), placement=pin.SE3(1))
    hill = chain("prismatic", axis=rail, geometry=(body,))
    late_brake = pl.safety.JointBrake(side="joint", dynamic_torque=40.0, delay=late)
    stop = pl.stop(
        hill, [0.0], [speed], gravity=(0, 0, -9.81),
        brakes=pl.Brakes({"j1": late_brake}, pl.safety.Chain()),
    )  # fmt: skip
    pull = 9.81 * np.sin(slope)
    top = speed**2 / (2 * pull)
    assert stop.joints["j1"].angle < 0.8 * top  # it has come back
    found = separation(stop, direction=rail)
    above(found["S_s"].value, top)
    level = separation(stop)
    above(level["S_s"].value, top * rail[0])


# -- where the person is ----------------------------------------------------------------------


def test_a_person_at_a_point_ahead() -> None:
    found = separation(carriage(), point=(3, 0, 0))
    above(found["S_r"].value, S_R)
    above(found["S_s"].value, S_S)
    assert found.robot_speed == pytest.approx(SPEED)


def test_a_person_beside_the_way_counts_by_the_nearest_place() -> None:
    # A ball of 0.25 m passes at x = 0.3 m, one metre from its way.
    far = np.hypot(0.3, 1.0) - 0.25
    at_command = np.hypot(0.3 - S_R, 1.0) - 0.25
    found = separation(carriage("sphere"), point=(0.3, 1.0, 0))
    above(found["S_r"].value, far - at_command)
    above(found["S_s"].value, at_command - 0.75)
    assert found.robot_speed == pytest.approx(SPEED * 0.3 / np.hypot(0.3, 1.0), rel=1e-4)
    behind = separation(carriage("sphere"), point=(-2, 0, 0))
    assert min(values(behind)) >= 0 and max(values(behind)[1:3]) <= TOLERANCE


def test_a_beam_turns_towards_a_person() -> None:
    """Of the ball the nearest point comes nearer as fast as the centre does."""
    found = separation(beam(ball(0.5)), point=(0.3, 2.0, 0.0), detection=0.2)
    angles = np.linspace(-REACTION, 0.0, 1001)
    centres = 0.5 * np.stack((np.cos(angles), np.sin(angles)), axis=-1)
    rates = RATE * np.stack((-centres[:, 1], centres[:, 0]), axis=-1)
    apart = np.array([0.3, 2.0]) - centres
    speed = float(np.max(np.sum(rates * apart, axis=1) / np.linalg.norm(apart, axis=1)))
    assert found.robot_speed == pytest.approx(speed, rel=1e-5)
    assert any("before the signal" in note for note in found.notes)
    assert not any("before the signal" in note for note in separation(beam(ball(0.5))).notes)


@pytest.mark.parametrize("point", [(0.6, 0, 0), (0.1, 0, 0), (0.9, 0.14, 0.09)])
def test_a_person_who_is_reached_has_no_distance(point: Any) -> None:
    with pytest.raises(pl.BadValue, match="reaches the person"):
        separation(carriage(), point=point)


# -- a beam: every point of every body ----------------------------------------------------------

RATE, TORQUE = 3.0, 2.0
INERTIA = 0.04 + 0.25**2
"""About the axis: that of body "a" of `chain` and its mass of 1 kg at 0.25 m [kg m^2]."""
REACTION = RATE * COMMAND
TURN = RATE * DELAY + INERTIA * RATE**2 / (2 * TORQUE)
"""Angles until the command, and from then on [rad]."""


def beam(*geometry: Any, rate: float = RATE, torque: float = TORQUE) -> pl.StopResult:
    """A beam about z, with shapes on its body; at the command it lies along x."""
    turning = chain("revolute", geometry=geometry)
    return pl.stop(turning, [-rate * COMMAND], [rate], brakes=brakes(j1=torque))


def ball(x: float, radius: float = 0.1) -> Any:
    return replace(shape("a", "sphere", (radius,), at(0, 0, 0)), placement=pin.SE3(np.eye(3),
                   np.array([x, 0, 0])))  # fmt: skip


def test_a_ball_on_a_beam_horizontally() -> None:
    found = separation(beam(ball(0.5)))
    # The point farthest from the axis goes along the chord of its arc.
    first, second = (1.2 * np.sin(angle / 2) for angle in (REACTION, TURN))
    above(found["S_r"].value, first)
    above(found["S_s"].value, second)
    assert found.robot_speed == pytest.approx(RATE * 0.6, rel=2e-3)
    assert found.robot_speed >= RATE * 0.6


@pytest.mark.parametrize("torque", [TORQUE, 0.25])
def test_a_ball_on_a_beam_in_a_direction(torque: float) -> None:
    """Of c + r u, R c - c + r (R - 1) u is farthest along y by 0.5 sin(a) + 0.2 sin(a / 2)."""
    stop = beam(ball(0.5), torque=torque)
    turned = np.linspace(0, RATE * DELAY + INERTIA * RATE**2 / (2 * torque), 100_001)
    hand = float(np.max(0.5 * np.sin(turned) + 0.2 * np.sin(turned / 2)))
    found = separation(stop, direction=(0, 1, 0))
    # No polyhedron of 600 corners fits this ball better: it stands out by 0.7 mm, and goes twice
    # as far.
    above(found["S_s"].value, hand, TOLERANCE / 2 + 1.4e-3)
    away = separation(stop, direction=(0, -1, 0))
    # Backwards only what lies beyond the axis moves; there is nothing but the ball's turning.
    back = float(np.max(0.2 * np.sin(turned / 2) - 0.5 * np.sin(turned)))
    above(away["S_s"].value, max(back, 0.0))


def test_between_samples_a_corner_may_be_farther() -> None:
    """A corner that passes the direction of the person counts at its farthest, found or not."""
    box = shape("a", "box", (1.2, 0.2, 0.1), at(0, 0, 0))
    stop = beam(replace(box, placement=pin.SE3(1)), torque=0.25)
    found = separation(stop, direction=(0, 1, 0), tolerance=0.02)
    above(found["S_s"].value, np.hypot(0.6, 0.1) + 0.1, 0.02)


def test_the_bound_within_a_leaf_is_reached_by_a_parabola() -> None:
    """What bends by no more than A between two values is at most f0 + c u + A u (1 - u) / 2."""
    rng, u = np.random.default_rng(4), np.linspace(0, 1, 10_001)
    for f0, f1, A in zip(*rng.uniform(-1, 1, (2, 200)), rng.exponential(2, 200), strict=True):
        hand = max(0.0, np.max(f0 + (f1 - f0) * u + A * u * (1 - u) / 2))
        found = bound_advance(np.array([[f0], [f1]]), np.array([[A]]))
        assert hand - 1e-12 <= found <= hand + 1e-7 * A
    # What goes back from the start is nowhere farther than there.
    assert bound_advance(np.array([[0.0], [-0.6]]), np.array([[1.0]])) == 0.0


def test_it_is_the_robot_that_counts_not_its_tool() -> None:
    tail = ball(-1.0)
    stop = beam(ball(0.5), tail)
    found = separation(stop)
    hand = 2 * 1.1 * np.sin(TURN / 2)
    above(found["S_s"].value, hand)
    assert found["S_s"].value > 1.5 * stop.point("a").displacement


def test_a_finer_tolerance_is_kept() -> None:
    box = shape("a", "box", (1.2, 0.2, 0.1), at(0, 0, 0))
    stop = beam(replace(box, placement=pin.SE3(1)))
    hand = 2 * np.hypot(0.6, 0.1) * np.sin(TURN / 2)
    for tolerance in (1e-2, 1e-3, 2e-5):
        found = separation(stop, tolerance=tolerance)
        above(found["S_s"].value, hand, tolerance)
        assert not any("round" in note for note in found.notes)


def test_round_shapes_are_never_too_small() -> None:
    found = separation(beam(ball(0.5)), tolerance=1e-6)
    hand = 1.2 * np.sin(TURN / 2)
    (note,) = (text for text in found.notes if "round shapes" in text)
    said = 1e-3 * float(note.split()[-2])
    assert 1e-6 < said < 2e-3
    above(found["S_s"].value, hand, said)


def test_frames_count_as_well() -> None:
    stop = beam(ball(0.5))
    found = separation(stop, frames={"j1": 0.9}, tolerance=0.01)
    hand = 1.8 * np.sin(TURN / 2)
    above(found["S_s"].value, hand, 0.01)
    assert "'j1' comes farthest" in str(found)
    near = separation(stop, point=(0, 3, 0), frames={"j1": 0.9})
    assert near["S_s"].value <= TOLERANCE


@pytest.mark.parametrize("direction", [None, (1, 2, 0.5), (0, -1, 0)])
def test_no_point_of_an_arm_goes_farther(direction: Any) -> None:
    arm = robot("six_axis_arm")
    v = 0.5 * arm.model.upperVelocityLimit * (1, 1, -1, 1, -1, 1)
    q = np.radians([10, 40, -20, 0, 30, 0])
    stop = pl.stop(arm, q, v, brakes=URDF / "six_axis_arm.brakes.yaml")
    found = separation(stop, direction=direction)
    run, command = stop.run, stop.chain.command
    for symbol, start, end in (("S_r", 0.0, command), ("S_s", command, run.t[-1])):
        gone = advances(arm, run, np.linspace(start, end, 40), direction)
        assert gone <= found[symbol].value <= 1.05 * gone + TOLERANCE
    rates = [
        advances(arm, run, np.array([t, t + 1e-6]), direction) / 1e-6
        for t in np.linspace(0.0, command - 1e-6, 5)
    ]
    assert max(rates) * (1 - 1e-4) <= found.robot_speed <= 1.05 * max(rates)


def advances(arm: pl.Mechanism, run: pl.Trajectory, times: Array, direction: Any) -> float:
    """Largest advance of random points of the shapes since the first of some times."""
    rng, data, most = np.random.default_rng(7), arm.model.createData(), 0.0
    inner = [(g, points_of(g.shape, rng, 400)) for g in arm.geometry if g.body != "ground"]
    places = []
    for t in times:
        pin.forwardKinematics(arm.model, data, run(t).q)
        pin.updateFramePlacements(arm.model, data)
        seats = [data.oMf[arm.frame_id(g.body)] * g.placement for g, _ in inner]
        places.append(
            np.vstack([p @ seat.rotation.T + seat.translation
                       for seat, (_, p) in zip(seats, inner, strict=True)])
        )  # fmt: skip
    for place in places:
        moved = place - places[0]
        if direction is None:
            most = max(most, float(np.linalg.norm(moved[:, :2], axis=1).max()))
        else:
            d = np.array(direction) / np.linalg.norm(direction)
            most = max(most, float((moved @ d).max()))
    return most


def test_a_vertical_way_is_no_horizontal_advance() -> None:
    # A beam that swings from 30 degrees below to above the horizontal moves mostly upwards.
    swing = pendulum()
    brake = pl.safety.JointBrake(side="joint", dynamic_torque=12.0)
    stop = pl.stop(swing, [-0.3], [5.0], brakes=pl.Brakes({"axis": brake}, pl.safety.Chain()))
    assert stop.joints["axis"].angle > 0.1
    found = separation(stop, thickness=1e-4)
    # The stand-in of a robot without shapes reaches from the axis to the centre of mass.
    angles = np.linspace(-0.3, -0.3 + stop.joints["axis"].angle, 1000)
    across = 0.5 * np.max(np.abs(np.cos(angles) - np.cos(0.3)))
    upwards = 0.5 * np.max(np.sin(angles) + np.sin(0.3))
    assert upwards > across + 0.1
    above(found["S_s"].value, across, 1.3e-3)
    up = separation(stop, direction=(0, 0, 1), thickness=1e-4)["S_s"].value
    above(up, upwards, 1.3e-3)
    assert any("no shapes" in note for note in found.notes)


# -- the person -------------------------------------------------------------------------------


def test_a_person_whose_speed_varies() -> None:
    T = T_R + T_S
    found = separation(carriage(), human_speed=lambda t: 1.6 * max(0, 1 - abs(2 * t / T - 1)))
    assert found["S_h"].value == pytest.approx(0.5 * 1.6 * T, rel=1e-4)
    assert found["S_h"].simple == pytest.approx(1.6 * T, rel=5e-3)
    assert found.human_speed == pytest.approx(1.6, rel=5e-3)
    times = f"({found.reaction_time:.4g} s + {found.stopping_time:.4g} s)"
    assert found["S_h"].formula.endswith(f"v_h (T_r + T_s) = {found.human_speed:g} m/s × {times}")
    rising = separation(carriage(), human_speed=lambda t: 3.0 * t)
    assert rising["S_h"].value == pytest.approx(1.5 * T**2, rel=1e-9)


def test_detection_is_time_in_which_both_go_on() -> None:
    plain, later = separation(carriage()), separation(carriage(), detection=0.1)
    assert later.reaction_time == pytest.approx(T_R + 0.1)
    more = [b - a for a, b in zip(values(plain), values(later), strict=True)]
    assert more == pytest.approx([1.6 * 0.1, SPEED * 0.1, 0, 0, 0, 0], abs=1e-12)
    assert later["S_r"].simple == pytest.approx(SPEED * (T_R + 0.1))


def test_the_worst_of_several_stops() -> None:
    stops = [carriage(speed=1.0), carriage(), carriage(speed=0.5)]
    found = separation(stops, intrusion=0.1)
    assert found.stop is stops[1]
    alone = [separation(stop, intrusion=0.1).distance for stop in stops]
    assert found.distances == pytest.approx(alone)
    assert found.distance == max(alone)


def test_a_robot_at_rest_needs_the_way_of_the_person() -> None:
    found = separation(carriage(speed=0.0))
    assert values(found) == pytest.approx([1.6 * COMMAND, 0, 0, 0, 0, 0], abs=1e-12)


# -- what comes out -----------------------------------------------------------------------------


def test_every_term_is_printed(tmp_path: Path) -> None:
    found = separation(carriage(), direction=(1, 0, 0), intrusion=0.2)
    lines = str(found).split("\n")
    for term in found.terms:
        (line,) = [row for row in lines if row.split()[:1] == [term.symbol] and "." in row][:1]
        assert [float(x) for x in line.split()[1:3]] == pytest.approx(
            [1e3 * term.value, 1e3 * term.simple], abs=0.05
        )
    assert "[mm]" in str(found) and "ISO/TS 15066" in str(found)
    assert "Z_d, Z_r not given and taken as 0" in str(found)
    with found.to_csv(tmp_path / "terms.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["term"] for row in rows] == ["S_h", "S_r", "S_s", "C", "Z_d", "Z_r", "S_p"]
    assert sum(float(row["value_m"]) for row in rows[:-1]) == float(rows[-1]["value_m"])
    assert float(rows[3]["value_m"]) == 0.2
    document = json.loads(json.dumps(found.as_dict()))
    assert document["distance_m"] == found.distance
    assert [term["term"] for term in document["terms"]] == [term.symbol for term in found.terms]


# -- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"direction": (1, 0, 0), "point": (3, 0, 0)}, "either the direction"),
        ({"direction": (0, 0, 0)}, "direction of the person"),
        ({"point": (1, 2)}, "has 3 numbers"),
        ({"human_speed": -1.0}, "human_speed is -1.0"),
        ({"human_speed": lambda t: np.nan}, "human_speed is not finite"),
        ({"detection": -0.1}, "detection is -0.1"),
        ({"intrusion": -0.1}, "intrusion is -0.1"),
        ({"z_d": "far"}, "z_d is 'far'"),
        ({"z_r": np.inf}, "z_r is not finite"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"frames": {"tool": 0.1}}, "no body or frame 'tool'"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(pl.PinloopError, match=sentence):
        separation(carriage(), **arguments)


def test_only_robots_that_stand_have_a_distance() -> None:
    swing = pendulum()
    weak = pl.Brakes(
        {"axis": pl.safety.JointBrake(side="joint", dynamic_torque=1.0)}, pl.safety.Chain()
    )
    falling = pl.stop(swing, [0.0], [-1.0], brakes=weak, until=0.2)
    assert falling.outcome == "does not hold"
    for function in (separation, minimum_distance):
        with pytest.raises(pl.BadValue, match="does not hold"):
            function([carriage(), falling])
    with pytest.raises(pl.BadValue, match=r"give the result of pl\.stop"):
        separation([])
    with pytest.raises(pl.BadValue, match=r"give the result of pl\.stop"):
        separation(0.3)  # type: ignore[arg-type]


def test_no_term_of_that_name() -> None:
    with pytest.raises(pl.BadValue, match="there are: S_h, S_r"):
        separation(carriage())["S_x"]


def test_the_interval_of_a_distance() -> None:
    """Person and robot go on for the longer, the weaker the brake, which is anywhere within 20 %.

    So the ends of the interval are the distances at both ends; of the standard deviation
    ``0.2 / sqrt(3)`` 1.96 are more than that.
    """
    stop, by = carriage(), brakes(j1=BRAKING)
    sources: Any = dict.fromkeys(("dynamic_torque", "delay"), "measured")
    known = replace(by.joints["j1"], tolerance=0.2, sources=sources)
    again = pl.stop(
        stop.robot, [0.0], [SPEED], brakes=pl.Brakes({"j1": known}, by.chain)
    )  # fmt: skip
    found = separation(again, direction=(1, 0, 0), human_speed=1.2)
    ends = [
        1.2 * (T_R + DELAY + SPEED / (BRAKING * part))
        + S_R + SPEED * DELAY + SPEED**2 / (2 * BRAKING * part)
        for part in (1.2, 0.8)
    ]  # fmt: skip
    interval = found.interval
    assert interval is not None and interval.value == found.distance
    assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=1e-6)
    assert interval.shares == (("brake_torque of j1 (tolerance)", 1.0),)
    assert "95 % interval" in str(found) and found.as_dict()["interval"]["high"] == interval.high
    assert separation(again, direction=(1, 0, 0)).interval != interval
