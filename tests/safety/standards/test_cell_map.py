"""Maps of cells: zones of a carriage by hand, walkers who are not touched, distances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial import ConvexHull

import pinloop as pl
from pinloop.errors import BadValue
from pinloop.safety import Watch, cell_map
from pinloop.safety.space.solids import collect_pieces
from pinloop.safety.standards.cell_map import polygon_distance

from ..space.moving_bodies import at, chain, shape
from ..studies.carriage import BRAKING, COMMAND, DELAY, SPEED, brakes

FRONT, SPACING = 0.25, 0.05


def carriage_map(**options: Any) -> pl.safety.CellMap:
    """A carriage that slides along +x at up to 2 m/s; its front face is at 0.25 m."""
    body = replace(shape("a", "box", (0.5, 0.3, 0.2), at(0, 0, 0)), placement=pin.SE3(1))
    slider = chain("prismatic", axis=(1, 0, 0), geometry=(body,))
    space = pl.safety.Space(pose={"j1": 0.0}, speed={"j1": SPEED})
    sampling = pl.safety.Sobol(1)
    settings: dict[str, Any] = {"spacing": SPACING, "jobs": 1, "shares": (0.5, 1.0)} | options
    return cell_map(slider, brakes(j1=BRAKING), space, sampling, **settings)


@pytest.mark.parametrize("detection", [0.0, 0.08])
def test_zones_of_a_carriage_by_hand(detection: float) -> None:
    watch = Watch(detection=detection, intrusion=0.1, z_d=0.03, z_r=0.02)
    found = carriage_map(watch=watch)
    for k, share in enumerate(found.shares):
        v = share * SPEED
        advance = v * (COMMAND + DELAY) + v**2 / (2 * BRAKING)
        time = COMMAND + DELAY + v / BRAKING
        needs = 1.6 * (time + detection) + v * detection + 0.15
        assert found.needs[k] == pytest.approx(needs, rel=1e-6)
        row = found.margins[k, int(np.argmin(np.abs(found.y)))]
        ahead = found.x > FRONT + advance
        exact = found.x[ahead] - FRONT - advance - needs
        assert np.all(row[ahead] <= exact + 1e-9) and np.all(row[ahead] >= exact - SPACING / 5)
        behind = found.x < -FRONT
        exact = -FRONT - found.x[behind] - needs
        assert np.all(row[behind] <= exact + 1e-9) and np.all(row[behind] >= exact - SPACING / 5)
        assert found.reach(share, "+x") == pytest.approx(FRONT + advance + needs, abs=2 * SPACING)


def test_walkers_who_keep_away_are_not_touched() -> None:
    """From places at the edge of a zone, straight ahead, at any time of any stop of an arm."""
    robot, file = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    space, sampling = pl.safety.Space(pose={"joint_1": (-0.5, 0.5)}), pl.safety.Random(2, seed=4)
    found = cell_map(robot, file, space, sampling, shares=(1.0,), jobs=1)
    study = pl.study(robot, file, space, sampling, jobs=1)
    edge = np.argwhere((found.margins[0] >= 0.0) & (found.margins[0] < 0.15))
    places = np.column_stack([found.x[edge[:, 1]], found.y[edge[:, 0]]])
    angles = np.linspace(0.0, 2 * np.pi, 48, endpoint=False)
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    nearest = np.inf
    for case in range(2):
        stop = study.replay(case)
        pieces = [p for p in collect_pieces(robot, 1e-3, None, {}).pieces if p.joint]
        data = robot.model.createData()
        for t in np.linspace(0.0, stop.stopping_time, 12):
            pin.forwardKinematics(robot.model, data, stop.run(float(t)).q)
            people = (places[:, None] + 1.6 * t * ways).reshape(-1, 2)
            for piece in pieces:
                corners = np.array([data.oMi[piece.joint].act(x) for x in piece.points])[:, :2]
                corners = corners[ConvexHull(corners).vertices]
                nearest = min(nearest, float(polygon_distance(corners, people).min()))
    assert 0.0 < nearest < 0.2


def test_distances_from_polygons() -> None:
    """Against the nearest of many points of the polygon."""
    rng = np.random.default_rng(2)
    corners = rng.normal(size=(12, 2))
    corners = corners[ConvexHull(corners).vertices]
    weights = rng.dirichlet(np.full(len(corners), 0.3), size=60_000)
    places = 3 * rng.normal(size=(40, 2))
    brute = np.linalg.norm(places[:, None] - weights @ corners, axis=-1).min(axis=1)
    distance = polygon_distance(corners, places)
    assert np.all(distance <= brute + 1e-12) and np.all(distance >= brute - 0.1)
    inside = weights[:50] @ corners
    assert np.all(polygon_distance(corners, inside) == 0.0)


def test_what_a_map_says(tmp_path: Any) -> None:
    found = carriage_map()
    assert set(np.unique(found.allowed)) == {0.0, 0.5, 1.0}
    assert found.areas[0] < found.areas[1]
    rows = found.to_csv(tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "x_m,y_m,allowed_share,margin_50_percent_m,margin_100_percent_m"
    assert len(rows) == 1 + found.allowed.size
    assert "Zones that must be free of people" in str(found) and "sampled" in str(found)
    assert found.as_dict()["zones"][1]["share"] == 1.0
    pytest.importorskip("matplotlib")
    found.plot().savefig(tmp_path / "map.png")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"shares": (0.5, 1.2)}, "above 0 and up to 1"),
        ({"spacing": 1e-4}, "places, more than"),
        ({"spacing": 0.0}, "spacing"),
    ],
)
def test_mistakes(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        carriage_map(**options)
    with pytest.raises(BadValue, match="human_speed"):
        Watch(human_speed=-1.0)
