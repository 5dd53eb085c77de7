"""Guessed brake data: which they are, what is said of them first, and the band against sampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.mechanism import build
from pinloop.safety.brakes.estimates import DELAY, ROTOR, STOP_TIME, spreads
from pinloop.safety.stopping.guess_band import stop_again

from ...screw_tables import Array
from .robots_to_stop import brakes, on_axis, pendulum, two_links, wheel
from .robots_to_stop import stop as stopped

NUMBERS = {"dynamic_torque": 40.0, "delay": 0.03, "rise": 0.02, "rotor_inertia": 0.5}
TENTHS = (0.05, 0.95)


def drawn(count: int, names: tuple[str, ...] = tuple(NUMBERS)) -> dict[str, Array]:
    """Factors of guesses: nine of ten within their spread, logarithms normal."""
    rng, known = np.random.default_rng(1), spreads("strain wave")
    return {n: np.exp(rng.normal(0.0, np.log(known[n][1]) / 1.6448536, count)) for n in names}


def test_the_band_of_a_wheel_is_that_of_samples() -> None:
    """Closed form: at speed v until the brake acts, a ramp of torque, then I v / T."""
    inertia, speed = 2.0, 3.0
    result = stopped(wheel(inertia), speed, on_axis(**NUMBERS))
    guesses = result.guesses
    assert set(guesses.parameters) == set(NUMBERS) and not guesses.missing
    torque, delay, rise, rotor = (NUMBERS[name] * factor for name, factor in drawn(20_000).items())
    # Half of the ramp counts, as long as the wheel still turns at its end.
    times = delay + 0.5 * rise + (inertia + rotor) * speed / torque
    long = (inertia + rotor) * speed > 0.5 * torque * rise
    assert long.mean() > 0.97
    assert guesses.stopping_time is not None
    # Logarithms of sums are not quite sums of logarithms: a sixth is what that makes.
    ends = np.quantile(times[long], TENTHS)
    assert guesses.stopping_time == pytest.approx(tuple(ends), rel=0.17)
    low, high = guesses.stopping_time
    assert 0.86 < np.mean((low < times[long]) & (times[long] < high)) < 0.94


def test_the_band_of_an_arm_is_that_of_stops_made_again() -> None:
    """Two links that fall, brakes with gravity against them: forty stops with other guesses."""
    joints = {"j1": {**NUMBERS, "dynamic_torque": 120.0}, "j2": {**NUMBERS, "dynamic_torque": 60.0}}
    result = stopped(two_links(), [1.5, -1.0], brakes(**joints))
    band = result.guesses.stopping_time
    assert band is not None and band[0] < result.stopping_time < band[1]
    factors, inside = drawn(40), []
    for k in range(40):
        by = result.brakes
        changed = {}
        for joint, brake in by.joints.items():
            others: Any = {name: factors[name][k] * getattr(brake, name) for name in NUMBERS}
            changed[joint] = replace(brake, **others)
        other = stop_again(result, replace(by, joints=changed))
        inside.append(band[0] <= other.stopping_time <= band[1])
    assert 0.78 < np.mean(inside) < 0.99


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
    assert result.table().title.mark == "good" and "are guesses" not in str(result.table())
    partly = {**sources, "delay": "guess", "rotor_inertia": "fitted"}
    result = stopped(wheel(), 3.0, on_axis(**NUMBERS, sources=partly))
    title = result.table().title
    assert result.guesses.parameters == ("delay",) and title.mark == "caution"
    low, high = (NUMBERS["delay"] * end for end in (DELAY.factors()))
    band = result.guesses.stopping_time
    assert band is not None
    assert band[1] - result.stopping_time == pytest.approx(high - 0.03, rel=0.02)
    assert result.stopping_time - band[0] == pytest.approx(0.03 - low, rel=0.02)
    shown = [float(f"{1e3 * end:.2g}") for end in band]
    assert f"; brake data are partly guesses: {shown[0]:g} to {shown[1]:g} ms" in title.text


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
    assert result.holds and result.guesses.stopping_time is not None
    # Brakes are chosen to hold 1.5 times gravity: weaker ones than these are not considered.
    assert np.isfinite(result.guesses.stopping_time[1])
    fallen = stopped(pendulum(), -1.0, on_axis(**{**NUMBERS, "dynamic_torque": 5.0}), until=0.5)
    assert fallen.guesses.stopping_time is None and fallen.table().title.mark == "bad"
    assert fallen.table().title.text.endswith("; brake data are guesses")


def test_the_deceleration_of_a_controlled_stop_is_a_guess() -> None:
    by = on_axis(**NUMBERS, deceleration=6.0)
    result = stopped(wheel(), 3.0, by, category=2)
    band = result.guesses.stopping_time
    assert "deceleration" in result.guesses.parameters and band is not None
    # Nothing else counts while drives slow the wheel down: 3 / 6 s, times the spread.
    assert band == pytest.approx(tuple(0.5 * x for x in STOP_TIME.factors()), rel=0.02)
    assert "deceleration" not in stopped(wheel(), 3.0, by).guesses.parameters
    # By another law it is another number that counts.
    own = {**NUMBERS, "deceleration": 6.0, "law": "constant-time", "ramp_time": 0.4}
    guesses = stopped(wheel(), 3.0, on_axis(**own), category=2).guesses
    assert "ramp_time" in guesses.parameters and "deceleration" not in guesses.parameters
    assert guesses.stopping_time == pytest.approx(
        tuple(0.4 * x for x in STOP_TIME.factors()), rel=0.02
    )


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
    assert document["guesses"]["stopping_time_s"] == list(result.guesses.stopping_time or ())
    assert ROTOR["strain wave"].factors() == spreads("strain wave")["rotor_inertia"]


def test_what_was_asked_for_is_no_guess() -> None:
    """A time that the category gives has no spread, and nothing else decides when it is over."""
    arm, brakes = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    law = pl.safety.ConstantTime(0.3)
    stop = pl.stop(arm, np.zeros(6), np.full(6, 0.5), brakes=brakes, category=pl.Category1(law=law))
    text = str(stop.table())
    assert "ramp_time, " not in text and "ramp_time: by" not in text
    assert "320 to 320 ms" not in text and "brake data are guesses" in text
