"""Numbers with units, as people write them."""

from __future__ import annotations

import math

import pytest

from pinloop.units import (
    ANGLES,
    LENGTHS,
    MASSES,
    TIMES,
    column_name,
    column_unit,
    in_units,
    listed,
    rates,
    shown_unit,
    split_column,
)


@pytest.mark.parametrize(
    ("word", "units", "value"),
    [
        ("180deg", ANGLES, math.pi),
        ("-90 deg", ANGLES, -math.pi / 2),
        ("0.5", ANGLES, 0.5),
        ("1e-3rad", ANGLES, 1e-3),
        ("200mm", LENGTHS, 0.2),
        (".5m", LENGTHS, 0.5),
        ("800ms", TIMES, 0.8),
        ("2t", MASSES, 2000.0),
        ("90deg/s", rates(ANGLES), math.pi / 2),
        ("30mm/s", rates(LENGTHS), 0.03),
        ("2", rates(LENGTHS), 2.0),
    ],
)
def test_numbers_in_si(word: str, units: dict[str, float], value: float) -> None:
    assert in_units(word, units) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("word", ["", "deg", "30grad", "30 deg deg", "1,5", "30mm", "nan", "inf"])
def test_what_is_no_angle(word: str) -> None:
    assert in_units(word, ANGLES) is None


def test_names_of_units() -> None:
    assert listed(rates(ANGLES)) == "rad/s, deg/s"


@pytest.mark.parametrize(
    ("words", "unit", "name"),
    [
        (("joint_1", "peak_torque"), "N m", "joint_1_peak_torque_N_m"),
        (("a", "impulse"), "N m s", "a_impulse_N_m_s"),
        (("a", "impulse"), "N s", "a_impulse_N_s"),
        (("a", "speed"), "rad/s", "a_speed_rad_per_s"),
        (("rail_m", "position"), "m", "rail_m_position_m"),
        (("", "payload"), "kg", "payload_kg"),
        (("t",), "s", "t_s"),
        (("lift_N", "position"), "mm", "lift_N_position_mm"),
    ],
)
def test_names_of_columns(words: tuple[str, ...], unit: str, name: str) -> None:
    assert column_name(*words, unit=unit) == name
    assert split_column(name) == ("_".join(filter(None, words)), unit)
    assert column_unit(name) == unit


def test_columns_without_a_unit() -> None:
    assert column_name("joint_1", "band") == "joint_1_band"
    assert split_column("joint_1_slips") == ("joint_1_slips", "")


@pytest.mark.parametrize(
    ("unit", "shown", "factor"),
    [
        ("rad/s", "deg/s", 180 / math.pi),
        ("m", "mm", 1e3),
        ("s", "ms", 1e3),
        ("N m s", "N m s", 1.0),
        ("kg", "kg", 1.0),
        ("", "", 1.0),
    ],
)
def test_units_that_tables_show(unit: str, shown: str, factor: float) -> None:
    assert shown_unit(unit) == (shown, factor)
