"""Laws fitted to tables: found again from closed forms, chosen by what they predict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.cli.main import run
from pinloop.safety.brakes.laws import LAWS
from pinloop.safety.standards.measured import Measured
from pinloop.safety.standards.published import StoppingTable

from ...states import URDF
from ...states import robot as loaded
from ..stopping.robots_to_stop import on_axis, wheel

CHAIN = pl.safety.Chain(controller=0.02)
TRUE = {
    "constant-deceleration": {"deceleration": 4.0},
    "constant-time": {"ramp_time": 0.3},
    "jerk-limited": {"deceleration": 4.0, "jerk": 30.0},
    "first-order": {"time_constant": 0.1, "ramp_time": 0.35},
    "drive-torque": {"drive_torque": 9.0},
}
COBOT = """\
# Omron, TM safety manual 3.3, table 16: TM5-700, first joint, 33 % of payload and extension
joint,speed_deg_per_s,time_ms,angle_deg,category
joint_1,59.4,364,9.00,SS1-r
joint_1,118.8,377,17.96,SS1-r
joint_1,180,381,26.55,SS1-r
"""


def table_of(name: str) -> StoppingTable:
    """Stops by a law at three speeds, of a wheel of 2 kg m^2, 20 ms after the signal."""
    rows = []
    for v in (0.8, -1.6, 2.4):
        if name == "drive-torque":
            time, way = 2.0 * abs(v) / 9.0, v * abs(v) / 9.0
        else:
            ramp = LAWS[name].ramp(v, 0.0, TRUE[name])
            time, way = ramp.end, ramp.whole
        rows.append(Measured("axis", v, 0.02 + time, abs(0.02 * v + way), category=1))
    return StoppingTable(tuple(rows))


@pytest.mark.parametrize("name", TRUE)
def test_the_law_behind_a_table_is_found_again(name: str) -> None:
    """With its numbers; it predicts rows that it has not seen, the others do not."""
    by = on_axis(CHAIN, dynamic_torque=60.0, drive_torque=100.0)
    others = ["constant-time", "constant-deceleration", "drive-torque"]
    fits = pl.safety.fit_law(wheel(2.0), table_of(name), by, [*others, name])
    best = fits.best
    # A wheel at its torque has one deceleration, too.
    alike = {"drive-torque", "constant-deceleration"}
    assert best.law.name == name or {best.law.name, name} == alike
    assert best.error < 1e-4 and best.misfit < 1e-4
    (own,) = (each for each in fits.candidates if each.law.name == name)
    assert own.fit is not None
    values = {x.parameter: x.value for x in own.fit.parameters}
    assert values == pytest.approx(TRUE[name], rel=2e-3)
    worse = [each for each in fits.candidates if each.law.name not in {best.law.name, name, *alike}]
    assert all(each.error > 0.02 for each in worse)
    joint = own.fit.brakes.joints["axis"]
    assert joint.law == name and joint.sources[next(iter(TRUE[name]))] == "fitted"
    assert fits.brakes == best.fit.brakes  # type: ignore[union-attr]
    assert json.loads(json.dumps(fits.as_dict()))["best"] == best.law.name
    assert f"the law {best.law.name} explains the stops best" in str(fits)


def test_the_table_of_a_cobot_wants_constant_time(tmp_path: Path) -> None:
    """Times hardly grow with the speed, angles do in proportion; even ramps go a tenth too far."""
    path = tmp_path / "cobot.csv"
    path.write_text(COBOT, encoding="utf-8")
    by = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    laws = ["constant-deceleration", "constant-time", "first-order"]
    fits = pl.safety.fit_law(loaded("six_axis_arm"), StoppingTable.from_csv(path), by, laws)
    assert [each.law.name for each in fits.candidates] == [*reversed(laws)]
    first, even, steady = fits.candidates
    assert first.misfit < 0.02 and first.error < 0.03
    assert 0.1 < even.misfit < 0.2 and steady.misfit > 0.3
    assert first.fit is not None
    for row in first.fit.comparison.rows:
        assert row.time_ratio == pytest.approx(1.0, abs=0.03)
        assert row.angle_ratio == pytest.approx(1.0, abs=0.02)


def test_tables_and_drives_without_a_law() -> None:
    by = on_axis(dynamic_torque=60.0)
    rows = table_of("constant-time").rows
    with pytest.raises(pl.BadValue, match="stops of category 0, in which no law"):
        pl.safety.fit_law(wheel(), StoppingTable((replace(rows[0], category=0),)), by)
    with pytest.raises(pl.BadValue, match=r"no law can be fitted: .*has no drive_torque from"):
        pl.safety.fit_law(wheel(), StoppingTable(rows), by, ["drive-torque"])
    fits = pl.safety.fit_law(wheel(), StoppingTable(rows[:1]), by, ["constant-time"])
    assert fits.best.problem == "no row can be held out" and fits.best.misfit < 0.1
    with pytest.raises(pl.BadValue, match="'slow' is no law"):
        pl.safety.fit_law(wheel(), StoppingTable(rows), by, ["slow"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "cobot.csv", tmp_path / "arm.brakes.yaml"
    path.write_text(COBOT, encoding="utf-8")
    arm = str(URDF / "six_axis_arm.urdf")
    words = ["fit", arm, str(path), "--law", "first-order", "-o", str(target)]
    assert run(words) == 0
    assert "first-order explains the stops best" in capsys.readouterr().out
    joint = pl.Brakes.from_yaml(target).joints["joint_1"]
    assert joint.law == "first-order" and joint.ramp_time == pytest.approx(0.359, abs=0.002)
    assert run([*words[:5], "--parameter", "delay"]) != 0
    assert "leave out --parameter" in capsys.readouterr().err
    assert run(["compare", arm, str(path), "--brakes", str(target)]) == 0
    assert np.isfinite(joint.time_constant or np.nan)
