"""Numbers with units, as people write them."""

from __future__ import annotations

import math

import pytest

from pinloop.units import ANGLES, LENGTHS, MASSES, TIMES, in_units, listed, rates


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
