"""Tests of `pinloop.safety.standards.guard_distance`: S = K T + C by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.errors import UnknownName
from pinloop.safety.standards.guard_distance import ApproachSpeed, minimum_distance

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
    assert minimum_distance(0.4, approach=ApproachSpeed(least=0.9)).distance == pytest.approx(0.9)
    other = minimum_distance(carriage(), approach=ApproachSpeed(2.5, 1.0, 0.3))
    assert (other.distance, other.speed) == pytest.approx((1.0 * (T_R + T_S), 1.0))


def test_the_interval_is_that_of_the_time() -> None:
    """And the first line says that it comes from guesses, in JSON too."""
    arm = pl.example("six_axis_arm")
    brakes = pl.example_file("six_axis_arm.brakes.yaml")
    stop = pl.stop(arm, arm.neutral, arm.velocity({"joint_1": 2.0}), brakes=brakes)
    options: dict[str, Any] = {"detection": 0.1, "intrusion": 0.05}
    found, time = minimum_distance(stop, **options), stop.intervals["stopping_time"]
    assert found.interval is not None and found.interval.shares == time.shares
    ends = [minimum_distance(end, **options).distance for end in (time.low, time.high)]
    assert [found.interval.low, found.interval.high] == pytest.approx(ends, rel=1e-12)
    first = str(found).splitlines()[0]
    assert first.endswith(f"({found.interval.text}); brake data are guesses")
    assert found.as_dict()["headline"] == first and found.table().title.mark == "caution"
    assert minimum_distance(stop.stopping_time).interval is None


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
        ({"stop": 0.3, "supplement": -0.1}, "supplement is -0.1"),
        ({"stop": 0.3, "supplement": 0.1}, "a term of ISO 13855:2024; ISO 13855:2010 has none"),
        ({"stop": 0.3, "edition": 2024}, "edition"),
        ({"stop": 0.3, "intrusion": np.nan}, "intrusion is nan"),
    ],
)
def test_bad_minimum_distances(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(pl.BadValue, match=sentence):
        minimum_distance(**arguments)


def test_an_unknown_edition() -> None:
    with pytest.raises(UnknownName, match="no edition '1999'; known: ISO 13855:2010"):
        minimum_distance(0.3, edition="1999")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"slow": 3.0}, "slow is 3.0 m/s, more than fast"),
        ({"threshold": -1}, "threshold is -1"),
        ({"least": -0.1}, "least is -0.1"),
    ],
)
def test_bad_approach_speeds(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(pl.BadValue, match=sentence):
        ApproachSpeed(**arguments)


def test_the_edition_of_2024_has_other_terms() -> None:
    """S = K T + D_DS + Z, and what public sources do not say is to be looked up."""
    old = minimum_distance(0.5, intrusion=0.35)
    new = minimum_distance(0.5, intrusion=0.3, supplement=0.05, edition="2024")
    assert [term.symbol for term in new.terms] == ["K T", "D_DS", "Z"]
    assert new.distance == pytest.approx(1.6 * 0.5 + 0.35) == old.distance
    # Z counts where it is decided with which K people come, and in the least distance.
    both = minimum_distance(0.2, intrusion=0.05, supplement=0.1, edition="ISO 13855:2024")
    assert both.distance == pytest.approx(0.5) and both.speed == 1.6
    text = str(new)
    assert "Separation distance: 1150 mm" in text and "Minimum distance: 1150 mm" in str(old)
    assert "GT Engineering" in text and "look up in your copy of ISO 13855:2024" in text
    assert "look up" not in str(old)
    assert (old.as_dict()["edition"], new.as_dict()["edition"]) == (
        "ISO 13855:2010",
        "ISO 13855:2024",
    )


def test_editions_of_separation_and_of_tables() -> None:
    old, new = (pl.separation(carriage(), edition=year) for year in ("2016", "2025"))
    assert old.distance == new.distance and "ISO 10218-2:2025" in str(new)
    assert "Revision Guide" in str(new) and "Revision Guide" not in str(old)
    arm, file = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    tables = pl.safety.annex_b(
        arm, file, payload=0, axes="joint_1", categories=(0,), edition="2025"
    )
    text = str(tables)
    assert "look up in your copy of ISO 10218-1:2025" in " ".join(text.split())
    assert tables.edition.name == "ISO 10218-1:2025"
