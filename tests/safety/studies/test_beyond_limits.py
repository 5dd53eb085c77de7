"""Tests of joints that get beyond their limits: in a stop, a study, and its report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.studies.results import results_of
from pinloop.safety.studies.summary import summary_table

from ...states import URDF
from ...states import robot as loaded
from ..stopping.robots_to_stop import at_joint

ARM = URDF / "six_axis_arm.brakes.yaml"


def overruns(stop: pl.StopResult) -> dict[str, float]:
    """How far joints get beyond their limits, by the polynomials of the steps."""
    found: dict[str, float] = {}
    for one in stop.joint_limits(tolerance=0.0):
        if one.kind == "position":
            found[one.joint] = max(one.by, found.get(one.joint, 0.0))
    return found


def test_stops_that_begin_beside_limits() -> None:
    """Half of the joints start a hand's breadth from a limit, on either side, at any speed."""
    arm, rng = loaded("six_axis_arm"), np.random.default_rng(3)
    low, high = arm.model.lowerPositionLimit, arm.model.upperPositionLimit
    sides = []
    for _ in range(8):
        near, way = rng.uniform(0, 0.1, 6), rng.choice([-1.0, 1.0], 6)
        q = np.where(way < 0, low + near, high - near)
        q = np.where(rng.random(6) < 0.5, q, 0.5 * (low + high))
        stop = pl.stop(arm, q, rng.uniform(0, 2, 6) * way, brakes=ARM)
        wanted = overruns(stop)
        sides += [way[arm.coordinates(name).v.start] for name in wanted]
        for name, joint in stop.joints.items():
            assert joint.beyond_limit == pytest.approx(wanted.get(name, 0.0), abs=1e-9), name
    assert sides.count(-1.0) > 2 and sides.count(1.0) > 2


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_joint_that_swings_back(side: float) -> None:
    """Beyond its limit in between only: hung upside down and without brake it falls back."""
    robot = loaded("six_axis_arm")
    # Without friction it turns round within a step, not at a state that is stored.
    by = at_joint(pl.Brakes.from_yaml(ARM), coulomb=0.0, breakaway=None).missing("joint_2")
    limit = float(robot.model.upperPositionLimit[1])
    q = robot.configuration({"joint_2": side * (limit - 0.02)})
    v = robot.velocity({"joint_2": 0.5 * side})
    stop = pl.stop(robot, q, v, brakes=by, until=0.3, gravity=(0, 0, 9.81))
    far = stop.joints["joint_2"].beyond_limit
    assert far == pytest.approx(overruns(stop)["joint_2"], rel=1e-7) and far > 1e-3
    places = side * stop.run.q[:, 1]
    assert places[-1] < limit and limit + far > places.max() + 1e-7


def test_a_study_counts_them(tmp_path: Path) -> None:
    space = pl.safety.Space(
        pose={"joint_1": (2.65, 2.79), "joint_2": 0.0, "joint_3": 0.0, "joint_4": 0.0,
              "joint_5": 0.0, "joint_6": 0.0},
        speed={"joint_1": (-2.0, 2.0), "joint_2": 0.0, "joint_3": 0.0, "joint_4": 0.0,
               "joint_5": 0.0, "joint_6": 0.0},
    )  # fmt: skip
    study = pl.study(
        loaded("six_axis_arm"), ARM, space, sampling=pl.safety.Random(24),
        results=tmp_path / "arm.csv", jobs=1, search=False,
    )  # fmt: skip
    far = [max(overruns(study.replay(k)).get("joint_1", 0.0), 0.0) for k in range(24)]
    count = sum(one > 1e-6 for one in far)
    assert 3 < count < 21
    rows = [float(row["joint_1_beyond_limit_rad"]) for row in study.rows()]
    np.testing.assert_allclose(rows, far, atol=1e-9)
    (one,) = results_of(study).beyond
    assert (one.joint, one.count, one.case) == ("joint_1", count, int(np.argmax(far)))
    assert one.worst == pytest.approx(max(far), abs=1e-9)
    table = str(summary_table(study, results_of(study)))
    assert "24 of 24 cases stopped and hold, but some beyond limits of joints" in table
    assert f"joint 'joint_1' gets beyond its limits in {count} of the cases" in table
    page = study.save_html(tmp_path / "arm.html", worst=("time",)).read_text(encoding="utf-8")
    assert 'class="badge warn"' in page
    assert f"joint 'joint_1' gets beyond its limits in {count} of the cases" in page.replace(
        "&#x27;", "'"
    ).replace("&#39;", "'")
