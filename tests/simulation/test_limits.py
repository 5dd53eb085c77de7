"""Tests of `pinloop.simulation.limits`: runs whose extremes are known in closed form."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pinloop as pl
from pinloop.assembly.search import is_outside, limit_slack
from pinloop.cli.main import app
from pinloop.model.mechanism import build
from pinloop.simulation.limits import JointEnd, LimitWatch, ends_seen_from, joint_ends

from .. import mechanisms as m
from .. import screw_tables as tables
from .. import switching as s
from ..states import one_body

COARSE = pl.MuntheKaas("rk4", step=0.8)
"""Exact for a constant force, whose motion is a parabola; two steps hold all of it."""


def thrown(rate: float, upper: float, **options: object) -> pl.Trajectory:
    """A mass on a vertical slide, thrown upwards; 1.6 s."""
    slide = s.between(s.falling(), -50.0, upper)
    return pl.simulate(slide, [0.0], [rate], until=1.6, method=COARSE, **options)  # type: ignore[arg-type]


def test_the_height_of_a_throw_between_two_states_counts() -> None:
    height = 4.0**2 / (2 * s.G)
    limit = height - 0.1
    run = thrown(4.0, limit)
    assert run.q.max() < limit  # no stored state is beyond
    (passed,) = run.limits_passed
    assert (passed.joint, passed.side, passed.kind) == ("joint", "upper", "position")
    assert passed.limit == limit and passed.coordinate == 0
    assert passed.by == pytest.approx(0.1, abs=1e-12)
    assert passed.worst_t == pytest.approx(4.0 / s.G, abs=1e-9)
    early = (4.0 - np.sqrt(2 * s.G * (0.1 - 1e-6))) / s.G
    assert passed.t == pytest.approx(early, abs=1e-9)


def test_a_throw_that_ends_below_the_limit_says_nothing() -> None:
    run = thrown(4.0, 4.0**2 / (2 * s.G) + 1e-9)
    assert run.limits_passed == () and run.warnings == () and "\n" not in str(run)


def test_both_ends_are_told_in_order_with_units() -> None:
    pendulum = s.between(s.hanging(), -0.6, 0.4)
    run = pl.simulate(pendulum, [0.0], [4.0], until=1.0)
    upper, lower = run.warnings
    assert upper.startswith("joint 'joint' passes its upper limit, 0.4 rad (22.92 deg), at t = ")
    assert lower.startswith("joint 'joint' passes its lower limit, -0.6 rad (-34.38 deg), at t = ")
    text = str(run)
    assert f"warning: {upper}" in text and f"warning: {lower}" in text
    first, second = run.limits_passed
    for one, level in ((first, 0.4), (second, -0.6)):
        assert run(one.t).q[0] == pytest.approx(level, abs=2e-6)
    # Energy: how high a swing comes that starts at 4 rad/s.
    top = np.arcsin(0.5 * 0.6 * 16.0 / (2.0 * s.G * 0.5))
    assert first.by == pytest.approx(top - 0.4, abs=1e-6)
    assert s.hanging().model.nq == 1 and "m (" not in text


@pytest.mark.parametrize("every", [None, 0.5])
def test_what_lies_between_samples_is_not_lost(every: float | None) -> None:
    pendulum = s.between(s.hanging(), -5.0, 0.4)
    run = pl.simulate(pendulum, [0.0], [4.0], until=1.0, save_every=every)
    (passed,) = run.limits_passed
    top = np.arcsin(0.5 * 0.6 * 16.0 / (2.0 * s.G * 0.5))
    assert passed.by == pytest.approx(top - 0.4, abs=1e-6)


def test_a_joint_with_several_coordinates_has_limits_for_each() -> None:
    body = one_body("planar translation", gravity=(0, -2.0, 0))
    (only,) = body.description.joints
    robot = build(replace(
        body.description, joints=(replace(only, lower=(-5.0, -1.0), upper=(0.25, 5.0)),)
    ))  # fmt: skip
    assert [(end.axes, end.sign, end.limit) for end in joint_ends(robot)] == [
        (("vx",), -1, -5.0), (("vx",), 1, 0.25), (("vy",), -1, -1.0), (("vy",), 1, 5.0)
    ]  # fmt: skip
    run = pl.simulate(robot, [0.0, 0.0], [0.5, 0.0], until=1.5)
    x, y = run.limits_passed
    assert (x.coordinate, x.side, y.coordinate, y.side) == (0, "upper", 1, "lower")
    assert x.by == pytest.approx(0.5, abs=1e-8) and y.by == pytest.approx(1.25, abs=1e-8)
    assert "joint 'joint' (vy) passes its lower limit, -1 m, at t = 1 s" in run.warnings[1]


def test_a_start_beyond_a_limit_is_told_as_such() -> None:
    pendulum = s.between(s.hanging(), -3.0, 0.4)
    run = pl.simulate(pendulum, [0.5], until=0.1)
    (passed,) = run.limits_passed
    assert passed.t == 0.0 and passed.by == pytest.approx(0.1, abs=1e-12)
    (end,) = (end for end in joint_ends(pendulum) if end.sign > 0)
    assert LimitWatch([end], 2.0, np.array([0.5])).passed[0].t == 2.0  # before any step
    assert "is beyond its upper limit, 0.4 rad (22.92 deg), from the start" in run.warnings[0]


@pytest.mark.parametrize(
    ("limit", "q", "beyond"),
    [
        (1.57, np.pi / 2, False),
        (1.396, np.radians(80.0), False),
        (3.14, np.pi, False),
        (1.57, 1.58, True),
        (1.0, 1.01, True),  # one digit is no excuse for a hundredth
        (0.0, 1e-6, True),
        (1e-7, 2e-7, True),
        (float(np.radians(80.0)), np.radians(80.0) + 1e-8, True),
    ],
)
def test_a_start_compares_in_the_digits_of_the_file(limit: float, q: float, beyond: bool) -> None:
    end = JointEnd("joint", 0, (), 0, 0, 1, limit, limit)
    (seen,) = ends_seen_from([end], np.array([q]))
    assert (seen.beyond(np.array([q])) > 0) is beyond
    (below,) = ends_seen_from([end], np.array([limit - 0.2]))
    assert below.level == limit


class TestTypedNumbers:
    """18 deg are 0.314159265 rad: 7e-7 beyond a limit of 0.31416 that means the same."""

    LOW, HIGH = 0.31416, 1.5708

    def arm(self) -> pl.Mechanism:
        return s.between(s.hanging(), self.LOW, self.HIGH)

    @pytest.mark.parametrize("degrees", [18, 90])
    def test_assembly_and_runs_take_them(self, degrees: float) -> None:
        arm, value = self.arm(), float(np.radians(degrees))
        name = arm.joints[0]
        assert pl.assemble(arm, fixed={name: value})[0] == value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert pl.assemble(arm, {name: value})[0] == value
        # The range ends where the run starts: what leads inwards is no violation.
        v = [1.0 if degrees == 18 else -1.0]
        run = pl.simulate(arm, [value], v, until=0.01, limits="stop")
        assert run.t[-1] == 0.01 and run.limits_passed == () and pl.safety.joint_limits(run) == ()

    @pytest.mark.parametrize("value", [0.3141, 1.571, 0.31416 - 6e-6])
    def test_what_is_beyond_the_digits_is_refused(self, value: float) -> None:
        arm = self.arm()
        with pytest.raises(pl.BadValue, match=r"outside its limits \[0\.31416, 1\.5708\]"):
            pl.assemble(arm, fixed={arm.joints[0]: value})

    def test_the_slack_is_half_of_the_last_digit(self) -> None:
        assert limit_slack(0.31416) == pytest.approx(5e-6)
        assert limit_slack(-1.5708) == pytest.approx(5e-5)
        # With all digits only the last bits are left, and one digit is no excuse for much.
        assert limit_slack(float(np.pi)) == 1e-9 and limit_slack(2.0) == pytest.approx(2e-3)
        assert not is_outside(5.0, -float("inf"), float("inf"))
        assert is_outside(-1.1, -1.0, 1.0) and is_outside(1.1, -1.0, 1.0)


def test_a_run_is_saved_with_its_warnings(tmp_path: Path) -> None:
    run = thrown(4.0, 0.3)
    back = pl.load_trajectory(run.save(tmp_path / "run"))
    assert back.limits_passed == run.limits_passed and back.warnings == run.warnings


def test_plots_mark_what_is_beyond() -> None:
    bar = tables.limited(m.four_bar(), rocker=(-0.1, 0.1))
    v = pl.consistent_velocity(bar, bar.neutral, {"crank": 3.0})
    run = pl.simulate(bar, bar.neutral, v, until=0.4)
    (passed,) = run.limits_passed
    axes = run.plot().axes[0]
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    wide = [line for line in axes.lines if line.get_linewidth() == 6.0]
    assert [np.asarray(line.get_ydata())[0] for line in dashed] == [passed.limit]
    (mark,) = wide
    t, y = np.asarray(mark.get_xdata()), np.asarray(mark.get_ydata())
    assert abs(float(t[np.isfinite(y)][0]) - passed.t) < 2e-3
    assert np.nanmax(np.abs(y)) == pytest.approx(0.1 + passed.by, abs=1e-4)
    inside = pl.simulate(bar, bar.neutral, until=0.01, losses=False)
    assert not [x for x in inside.plot().axes[0].lines if x.get_linewidth() == 6.0]


def test_the_player_marks_the_instant_and_says_why(tmp_path: Path) -> None:
    run = thrown(4.0, 0.3)
    page = run.save_html(tmp_path / "run.html").read_text(encoding="utf-8")
    assert "joint passes its upper limit" in page
    assert "Warning: joint 'joint' passes its upper limit, 0.3 m" in unescape(page)


def test_the_command_tells_people_and_programs(tmp_path: Path) -> None:
    robot = Path(__file__).parents[2] / "urdf" / "palletizer.urdf"
    scenario = tmp_path / "fall.yaml"
    scenario.write_text(
        f"format: pinloop-scenario-1\nrobot: {robot}\nuntil: 0.7\nstart: {{q: {{shoulder: 0.4}}}}\n"
    )
    sheet = CliRunner().invoke(app, ["simulate", str(scenario)])
    assert sheet.exit_code == 0 and "joint 'shoulder' passes its upper limit" in sheet.output
    found = CliRunner().invoke(app, ["simulate", str(scenario), "--json"])
    document = json.loads(found.stdout)
    assert any(text.startswith("joint 'shoulder' passes") for text in document["warnings"])


def test_the_command_line_decides_what_limits_do(tmp_path: Path) -> None:
    robot = Path(__file__).parents[2] / "urdf" / "palletizer.urdf"
    scenario = tmp_path / "fall.yaml"
    scenario.write_text(
        f"format: pinloop-scenario-1\nrobot: {robot}\nuntil: 0.7\nstart: {{q: {{shoulder: 0.4}}}}\n"
        "limits: {restitution: 0.0}\n"
    )

    def ended(*options: str) -> dict[str, object]:
        found = CliRunner().invoke(app, ["simulate", str(scenario), "--json", *options])
        assert found.exit_code == 0, found.output
        return dict(json.loads(found.stdout))

    stopped, hit, by_file = ended("--limits", "stop"), ended("--limits", "end-stop"), ended()
    assert stopped["end_s"] == pytest.approx(0.6496, abs=1e-4) and stopped["warnings"] == []
    assert stopped["ended"] == "stopped by an event"
    assert hit["end_s"] == 0.7 and hit["modes"] == ["free", "lock:shoulder"]
    assert by_file == hit and ended("--limits", "warn")["warnings"]
    wrong = CliRunner().invoke(app, ["simulate", str(scenario), "--limits", "bounce"])
    assert "none of warn, stop, 'end stop'" in str(wrong.exception)
