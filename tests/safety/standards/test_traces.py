"""Measured motions of stops: alignment, fits and pictures, on recordings that are made here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.units import column_name

from ...states import URDF
from ..stopping.robots_to_stop import brakes, on_axis, two_links, wheel

SIGNAL, NOISE, EVERY = 0.2345, 2e-4, 2e-3


def recorded(
    stop: pl.safety.StopResult, seed: int, noise: float = NOISE, signal: float = SIGNAL
) -> pl.safety.JointTrajectory:
    """What encoders see of a stop: even motion, the stop, rest, and noise."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, signal + stop.run.t[-1] + 0.1, EVERY)
    q, v = stop.run.q[0], stop.run.v[0]
    rows = [
        q + v * (x - signal) if x < signal else stop.run(min(x - signal, stop.run.t[-1])).q
        for x in t.tolist()
    ]
    values = np.array(rows) + rng.normal(0.0, noise, (len(t), len(q)))
    return pl.safety.JointTrajectory(tuple(stop.robot.joints), t, values)


def wheel_brakes(torque: float, delay: float = 0.03) -> pl.Brakes:
    return on_axis(dynamic_torque=torque, delay=delay, rotor_inertia=0.5)


def wheel_stop() -> pl.safety.StopResult:
    return pl.stop(wheel(), [0.3], [3.0], brakes=wheel_brakes(40.0))


def test_the_time_of_the_signal_is_found() -> None:
    """Without noise, with the brakes that made the recording."""
    trace = pl.safety.StopTrace(recorded(wheel_stop(), 0, noise=0.0))
    laid = pl.safety.align(wheel(), trace, wheel_brakes(40.0))
    assert laid.signal == pytest.approx(SIGNAL, abs=1e-6)
    assert np.abs(laid.residuals).max() < 1e-6
    # A brake that comes later is taken for an earlier signal.
    late = pl.safety.align(wheel(), trace, wheel_brakes(40.0, delay=0.05))
    assert late.signal == pytest.approx(SIGNAL - 0.02, abs=1e-6)
    known = pl.safety.StopTrace(trace.motion, signal=SIGNAL)
    assert pl.safety.align(wheel(), known, wheel_brakes(30.0)).signal == SIGNAL


def test_intervals_hold_the_torque_and_the_signal() -> None:
    """Thirty recordings with noise: as many as 95 % allow."""
    stop, hits, signals = wheel_stop(), 0, 0
    for seed in range(30):
        trace = pl.safety.StopTrace(recorded(stop, seed))
        made = pl.safety.fit_traces(wheel(), trace, wheel_brakes(25.0))
        (parameter,) = made.parameters
        low, high = parameter.interval
        hits += low <= 40.0 <= high
        signals += abs(made.overlays[0].signal - SIGNAL) < 1.96 * made.signal_errors[0]
        assert made.noise == pytest.approx(NOISE, rel=0.2)
        assert parameter.half_width < 4.0
    least = binom.ppf(1e-3, 30, 0.95)
    assert min(hits, signals) >= least, (hits, signals)


def test_a_known_signal_tells_the_delay_too() -> None:
    stop, start = wheel_stop(), wheel_brakes(25.0, delay=0.06)
    names = ("dynamic_torque", "delay")
    trace = pl.safety.StopTrace(recorded(stop, 1), signal=SIGNAL)
    made = pl.safety.fit_traces(wheel(), trace, start, names)
    for parameter, true in zip(made.parameters, (40.0, 0.03), strict=True):
        low, high = parameter.interval
        assert low < true < high and parameter.half_width < 0.1 * true
    assert made.warnings == () and made.signal_errors == (0.0,)
    (pair,) = made.brakes.correlations
    assert pair.between == ("dynamic_torque:axis", "delay:axis")
    # Where nobody knows when the signal came, an earlier one is as good as a longer delay.
    free = pl.safety.StopTrace(trace.motion)
    made = pl.safety.fit_traces(wheel(), free, start, names)
    assert [x.identified for x in made.parameters] == [True, False]
    assert "do not identify delay" in made.warnings[0] and "not identified" in str(made)


def test_two_joints_and_two_recordings() -> None:
    robot, noise = two_links(), 1e-5
    true = brakes(j1={"dynamic_torque": 120.0}, j2={"dynamic_torque": 60.0})
    traces = [
        pl.safety.StopTrace(recorded(pl.stop(robot, q, v, brakes=true), k, noise, 0.2 + 0.1 * k))
        for k, (q, v) in enumerate([([0.3, -0.2], [1.5, -1.0]), ([0.8, 0.4], [2.0, 1.5])])
    ]
    start = brakes(j1={"dynamic_torque": 90.0}, j2={"dynamic_torque": 90.0})
    made = pl.safety.fit_traces(robot, traces, start)
    assert [x.value for x in made.parameters] == pytest.approx([120.0, 60.0], rel=0.02)
    assert [x.signal for x in made.overlays] == pytest.approx([0.2, 0.3], abs=1e-4)
    assert len(made.as_dict()["signals_s"]) == 2


def test_what_cannot_be_a_trace() -> None:
    stop = wheel_stop()
    short = recorded(stop, 0, signal=0.004)
    with pytest.raises(pl.BadValue, match="4 at least are needed: record for longer"):
        pl.safety.align(wheel(), pl.safety.StopTrace(short, signal=0.004), wheel_brakes(40.0))
    still = pl.safety.StopTrace(
        recorded(pl.stop(wheel(), [0.0], [0.0], brakes=wheel_brakes(1.0)), 0)
    )
    with pytest.raises(pl.BadValue, match="no joint with a brake moves"):
        pl.safety.fit_traces(
            wheel(), pl.safety.StopTrace(still.motion, signal=0.2), wheel_brakes(1.0)
        )


def test_the_commands_take_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = pl.load(URDF / "planar_3r.urdf")
    by = pl.Brakes.template(arm)
    q, v = [0.1, 0.2, 0.3], [1.0, -0.5, 0.5]
    motion = recorded(pl.stop(arm, q, v, brakes=by), 0, 1e-5)
    monkeypatch.chdir(tmp_path)
    names = ["time_s", *(column_name(name, unit="rad") for name in motion.joints)]
    table = np.column_stack([motion.t, motion.values])
    np.savetxt("trace.csv", table, delimiter=",", header=",".join(names), comments="")
    by.to_yaml("arm.brakes.yaml")
    words = [str(URDF / "planar_3r.urdf"), "trace.csv", "--brakes", "arm.brakes.yaml"]
    assert cli.run(["compare", *words, "--plot", "o.png"]) == 0
    assert "Measured beside computed" in capsys.readouterr().out
    assert Path("o.png").read_bytes()[:4] == b"\x89PNG"
    assert cli.run(["fit", *words, "--signal", "234.5ms", "-o", "fitted.brakes.yaml"]) == 0
    assert "brakes fitted to traces" in capsys.readouterr().out
    assert "spread" in Path("fitted.brakes.yaml").read_text(encoding="utf-8")
    Path("t.csv").write_text("joint,speed_rad_per_s,time_s\njoint_1,1,0.1\n")
    assert cli.run(["compare", words[0], "t.csv", "--signal", "1"]) == 2
    assert "is of a recorded motion" in capsys.readouterr().err
    others = recorded(pl.stop(arm, q, [-0.5, 1.0, 0.0], brakes=by), 1, 1e-5, signal=0.3)
    table = np.column_stack([others.t, others.values])
    np.savetxt("more.csv", table, delimiter=",", header=",".join(names), comments="")
    both = [*words[:2], "more.csv", *words[2:]]
    at = ["--signal", "234.5ms", "--signal", "300ms"]
    assert cli.run(["compare", *both, *at, "--plot", "two.png", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["recordings"]
    assert (first["signal_s"], second["signal_s"]) == pytest.approx((0.2345, 0.3))
    assert max(*first["rms"].values(), *second["rms"].values()) < 2e-5
    assert Path("two-1.png").exists() and Path("two-2.png").exists()
    assert cli.run(["fit", *both, *at, "-o", "both.brakes.yaml"]) == 0
    assert "0.30000" in capsys.readouterr().out
    # In mrad, which nobody says; and no recording at all.
    table[:, 1:] *= 1e3
    np.savetxt("mrad.csv", table, delimiter=",", header=",".join(names), comments="")
    Path("empty.csv").write_text("time_s,joint_1_rad\n0,x\n")
    four, at = [words[0], "empty.csv", "trace.csv", "mrad.csv", *words[2:]], ["--signal", "234.5ms"]
    times = ["--signal", "0", *at, "--signal", "300ms"]
    for command in ("compare", "fit"):
        assert cli.run([command, *four, *times, "--json"]) == 1
        data = json.loads(capsys.readouterr().out)
        assert [Path(x["place"]).name for x in data["failed"]] == ["empty.csv:2", "mrad.csv"]
        assert "'x', which is no finite number" in data["failed"][0]["reason"]
        assert "times its velocity limit" in data["failed"][1]["reason"]
        assert cli.run([command, *words, *at, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        kept = (data["recordings"][0], alone) if command == "compare" else (data, alone)
        assert kept[0] | {"failed": []} == kept[1] | {"failed": []}
        assert cli.run([command, *four, *times]) == 1
        assert "Left out" in capsys.readouterr().out
    for wrong, why in (
        (["--signal", "1"], "once for each"),
        (["--payload", "1kg", "--payload", "1kg", "--payload", "1kg"], "3 times for 2"),
    ):
        assert cli.run(["compare", *both, *wrong]) == 2
        assert why in capsys.readouterr().err
    assert cli.run(["compare", words[0], "t.csv", "more.csv"]) == 2
    assert "give it alone" in capsys.readouterr().err
