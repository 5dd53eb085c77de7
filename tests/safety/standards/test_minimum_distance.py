"""Tests of `pinloop.safety.standards.distances`: S = K T + C by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.standards.distances import minimum_distance

from ..studies.carriage import T_R, T_S, carriage


@pytest.mark.parametrize(
    ("time", "intrusion", "distance", "speed"),
    [
        (0.165, 0.0, 0.330, 2.0),
        (0.32, 0.0, 0.512, 1.6),
        (0.30, 0.0, 0.500, 1.6),
        (0.25, 0.0, 0.500, 2.0),
        (0.2, 0.128, 0.5, 1.6),
        (0.2, 0.100, 0.5, 2.0),
        (1.0, 0.85, 2.45, 1.6),
        (0.02, 0.0, 0.1, 2.0),
        (0.02, 0.05, 0.1, 2.0),
        (0.02, 0.07, 0.11, 2.0),
    ],
)
def test_minimum_distances_by_hand(
    time: float, intrusion: float, distance: float, speed: float
) -> None:
    found = minimum_distance(time, intrusion=intrusion)
    assert (found.distance, found.speed) == pytest.approx((distance, speed), rel=1e-12)
    assert sum(term.value for term in found.terms) == pytest.approx(distance, rel=1e-12)


def test_minimum_distance_of_stops() -> None:
    found = minimum_distance([carriage(speed=0.2), carriage()], detection=0.08)
    assert found.time == pytest.approx(T_R + T_S + 0.08)
    assert found.distance == pytest.approx(1.6 * (T_R + T_S + 0.08))
    assert minimum_distance(0.4, least=0.9).distance == pytest.approx(0.9)
    other = minimum_distance(carriage(), fast=2.5, slow=1.0, threshold=0.3)
    assert (other.distance, other.speed) == pytest.approx((1.0 * (T_R + T_S), 1.0))


def test_minimum_distance_is_printed(tmp_path: Path) -> None:
    found = minimum_distance(0.3)
    assert [term.symbol for term in found.terms] == ["K T", "C", "rest"]
    assert "K T + C + rest" in str(found)
    assert "500.0" in str(found) and "1600 mm/s" in str(found) and "ISO 13855" in str(found)
    text = found.to_csv(tmp_path / "terms.csv").read_text(encoding="utf-8")
    assert text.split("\n")[0] == "term,meaning,value_m,formula,source"
    assert json.loads(json.dumps(found.as_dict()))["distance_m"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"stop": -0.1}, "stopping time"),
        ({"stop": "soon"}, "give the result of pl.stop"),
        ({"stop": 0.3, "slow": 3.0}, "slow is 3.0 m/s, more than fast"),
        ({"stop": 0.3, "threshold": -1}, "threshold is -1"),
        ({"stop": 0.3, "least": -0.1}, "least is -0.1"),
        ({"stop": 0.3, "intrusion": np.nan}, "intrusion is nan"),
    ],
)
def test_bad_minimum_distances(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(pl.BadValue, match=sentence):
        minimum_distance(**arguments)
