"""Guessed brake data: which they are, and what is said of them first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.mechanism import build
from pinloop.safety.brakes.estimates import DELAY, ROTOR, STOP_TIME, spreads
from pinloop.safety.stopping.uncertain_brakes import stop_again

from .robots_to_stop import on_axis, pendulum, wheel
from .robots_to_stop import stop as stopped

NUMBERS = {"dynamic_torque": 40.0, "delay": 0.03, "rise": 0.02, "rotor_inertia": 0.5}


def test_a_stop_again_is_the_same_stop() -> None:
    by = on_axis(pl.safety.Chain(0.02, 0.03, 0.01), dynamic_torque=30.0, delay=0.01)
    trigger = pl.safety.Trigger(sensor=0.05)
    for category in (0, 1):
        own = replace(by, joints={"axis": replace(by.joints["axis"], deceleration=4.0)})
        result = stopped(
            pendulum(), -2.0, own, category=category, trigger=trigger, payload=0.5,
            gravity=(0.0, 0.5, -9.0),
        )  # fmt: skip
        again = stop_again(result, result.brakes)
        assert again.stopping_time == pytest.approx(result.stopping_time, rel=1e-12)
        assert again.point().length == pytest.approx(result.point().length, rel=1e-9)


def test_what_is_measured_or_published_is_no_guess() -> None:
    sources = dict.fromkeys(NUMBERS, "measured")
    result = stopped(wheel(), 3.0, on_axis(**NUMBERS, sources=sources))
    assert not result.guesses and result.guesses.headline == result.guesses.details == ""
    assert not result.intervals
    assert result.table().title.mark == "good" and "are guesses" not in str(result.table())
    partly = {**sources, "delay": "guess", "rotor_inertia": "fitted"}
    result = stopped(wheel(), 3.0, on_axis(**NUMBERS, sources=partly))
    title = result.table().title
    assert result.guesses.parameters == ("delay",) and title.mark == "caution"
    assert title.text.endswith("; brake data are partly guesses")
    band = result.intervals["stopping_time"]
    # The ends of nine of ten are 1.645 standard deviations from the middle, those of 95 % 1.96.
    low, high = (0.03 * factor ** (1.95996 / 1.644854) for factor in DELAY.factors())
    assert band.high - result.stopping_time == pytest.approx(high - 0.03, rel=0.02)
    assert result.stopping_time - band.low == pytest.approx(0.03 - low, rel=0.02)
    assert f" ({band.text}), and holds" in title.text
    assert band.shares == (("delay of axis (guess)", 1.0),)


def test_a_rotor_that_nobody_gives_is_said_to_be_missing() -> None:
    numbers = {name: x for name, x in NUMBERS.items() if name != "rotor_inertia"}
    sources = dict.fromkeys(numbers, "published")
    result = stopped(wheel(), 3.0, on_axis(**numbers, sources=sources))
    assert (result.guesses.parameters, result.guesses.missing) == ((), ("axis",))
    table = result.table()
    assert table.title.mark == "caution" and "brake data are partly guesses" in table.title.text
    assert "rotor_inertia of axis is missing, which makes stops too short" in result.guesses.details
    assert result.as_dict()["guesses"]["missing"] == ["axis"]


def test_where_weak_brakes_do_not_hold_there_is_no_longest_stop() -> None:
    """12 N m hold 9.81 N m of gravity, but slide with less torque than that."""
    by = on_axis(**{**NUMBERS, "dynamic_torque": 10.5, "static_torque": 12.0})
    result = stopped(pendulum(), -1.0, by)
    assert result.holds
    # Brakes are chosen to hold 1.5 times gravity: weaker ones than these are not considered.
    assert np.isfinite(result.intervals["stopping_time"].high)
    fallen = stopped(pendulum(), -1.0, on_axis(**{**NUMBERS, "dynamic_torque": 5.0}), until=0.5)
    assert not fallen.intervals and fallen.table().title.mark == "bad"
    assert fallen.table().title.text.endswith("; brake data are guesses")


def test_the_deceleration_of_a_controlled_stop_is_a_guess() -> None:
    by = on_axis(**NUMBERS, deceleration=6.0)
    result = stopped(wheel(), 3.0, by, category=2)
    band = result.intervals["stopping_time"]
    assert "deceleration" in result.guesses.parameters
    # Nothing else counts while drives slow the wheel down: 3 / 6 s, times the spread.
    ends = [x ** (1.95996 / 1.644854) for x in STOP_TIME.factors()]
    assert (band.low, band.high) == pytest.approx([0.5 * x for x in ends], rel=0.02)
    assert "deceleration" not in stopped(wheel(), 3.0, by).guesses.parameters
    # By another law it is another number that counts.
    own = {**NUMBERS, "deceleration": 6.0, "law": "constant-time", "ramp_time": 0.4}
    timed = stopped(wheel(), 3.0, on_axis(**own), category=2)
    assert "ramp_time" in timed.guesses.parameters
    assert "deceleration" not in timed.guesses.parameters
    band = timed.intervals["stopping_time"]
    assert (band.low, band.high) == pytest.approx([0.4 * x for x in ends], rel=0.02)


def test_a_joint_that_speeds_up_before_its_brake_acts_says_what_may_be_missing() -> None:
    robot = pendulum()
    plain = robot.description
    limited = tuple(replace(joint, velocity=(2.0,)) for joint in plain.joints)
    robot = build(replace(plain, joints=limited))
    for rotor, words in ((None, "its rotor_inertia is missing"), (0.4, "check its delay and")):
        by = on_axis(dynamic_torque=60.0, delay=0.08, rotor_inertia=rotor)
        (sentence,) = [x for x in stopped(robot, -2.0, by).warnings if "velocity limit" in x]
        assert "speed it up before its brake acts in full" in sentence and words in sentence
    # Faster than allowed from the signal on, and fastest there: that is no fault of the brakes.
    (sentence,) = [x for x in stopped(robot, 2.5, by).warnings if "velocity limit" in x]
    assert "speed it up" not in sentence


def test_document_and_table_say_it_first() -> None:
    result = stopped(wheel(), 3.0, on_axis(**NUMBERS))
    document = result.as_dict()
    assert list(document)[:2] == ["format", "headline"]
    assert document["headline"] == str(result.table()).splitlines()[0]
    assert "brake data are guesses" in document["headline"]
    first, *_ = document["intervals"]
    band = result.intervals["stopping_time"]
    assert (first["output"], first["low"], first["high"]) == ("stopping_time", band.low, band.high)
    assert first["shares"] == dict(band.shares)
    assert ROTOR["strain wave"].factors() == spreads("strain wave")["rotor_inertia"]


def test_what_was_asked_for_is_no_guess() -> None:
    """A time that the category gives has no spread, and nothing else decides when it is over."""
    arm, brakes = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    law = pl.safety.ConstantTime(0.3)
    stop = pl.stop(arm, np.zeros(6), np.full(6, 0.5), brakes=brakes, category=pl.Category1(law=law))
    text = str(stop.table())
    assert "ramp_time, " not in text and "ramp_time (guess)" not in text
    assert "320 to 320 ms" not in text and "brake data are guesses" in text
