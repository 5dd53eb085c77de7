"""Tests of runs with changing modes: grids of time, chatter, failures, what is kept and saved."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from .. import switching as s
from ..screw_tables import Array
from ..states import close, moving, one_body, regularized, robot

EVENTS = (
    pl.lock("j2", at=0.2), pl.unlock("j2", at=0.3), pl.lock("j2", at=0.35),
    pl.unlock("j2", at=0.41), pl.lock("j3", at=0.41), pl.lock("j1", at=0.5),
)  # fmt: skip
CHANGES = [0.2, 0.3, 0.35, 0.41, 0.5]
RK4 = pl.MuntheKaas("rk4", step=0.1)


def arm(events: Sequence[Any] = EVENTS, **more: Any) -> pl.Trajectory:
    settings: dict[str, Any] = {"until": 0.6} | more
    machine = robot("planar-3R")
    return pl.simulate(machine, machine.neutral, [1.0, 2.0, 0.3], events=events, **settings)


# -- steps around events ----------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, -0.7, 3.0, 1e3])
@pytest.mark.parametrize("at", [0.25, 0.3, 0.1 + 0.2, 1e-12, 0.6 - 1e-12])
@pytest.mark.parametrize("kind", ["time", "guard"])
def test_the_grid_of_fixed_steps_goes_on_after_an_event(start: float, at: float, kind: str) -> None:
    when = start + at
    event = (
        pl.lock("j2", at=when) if kind == "time"
        else pl.when(lambda t, q, v: t - when, pl.lock("j2"))
    )  # fmt: skip
    run = arm([event], start=start, until=start + 0.6, method=RK4)
    assert len(run.events) == len(run.transitions) == 1
    assert run.events[0][0] == pytest.approx(when, abs=1e-12 * max(1.0, abs(start)))
    grid = [start + k * 0.1 for k in range(7)]
    found = [min(abs(run.t - time)) for time in grid]
    close(np.array(found), np.zeros(7), 1e-12 * max(1.0, abs(start)))
    if at == 0.25:  # to the last bit, where the event is not beside the grid
        assert max(found[:6]) == 0.0 and run.t[-1] == start + 0.6
    # The event's time comes twice, and no step is taken that leads nowhere.
    steps = np.diff(run.t)
    assert np.sum(steps == 0.0) == 1
    beside = 1e-11 if at in (1e-12, 0.6 - 1e-12) else 1e-3
    assert np.all((steps == 0) | (steps > 0.01) | (np.abs(run.t[1:] - when) < beside))
    assert len(run.t) <= len(grid) + 2


def test_controlled_steps_stay_long_after_events() -> None:
    # Forty events in a moment are no chatter, and cost two states each.
    crowd = [(pl.lock, pl.unlock)[k % 2]("j2", at=0.3 + k * 1e-8) for k in range(40)]
    guard = pl.when(lambda t, q, v: t - 0.35, pl.lock("j2"))
    run, plain = arm([*crowd, guard]), arm([])
    assert len(run.events) == 41 and len(run.t) < len(plain.t) + 2 * 41 + 5
    usual = np.median(np.diff(plain.t))
    for time in (0.3 + 39 * 1e-8, 0.35):
        last = np.flatnonzero(run.t == run.t[np.argmin(abs(run.t - time))])[-1]
        assert run.t[last + 1] - run.t[last] > 0.1 * usual


def test_modes_and_transitions_tell_one_story() -> None:
    for method in (RK4, pl.MuntheKaas()):
        run = arm(method=method)
        assert [made.t for made in run.transitions] == CHANGES
        assert [str(mode) for mode in run.modes] == [
            "free", "lock:j2", "lock:j3", "lock:j1, lock:j3"
        ]  # fmt: skip
        assert [run.mode[k + 1] for k in np.flatnonzero(np.diff(run.mode))] == [1, 0, 1, 2, 3]
        changes = np.flatnonzero(np.diff(run.mode))
        for k, made in zip(changes, run.transitions, strict=True):
            assert run.t[k] == run.t[k + 1] == made.t
            assert made.before == run.modes[run.mode[k]]
            assert made.after == run.modes[run.mode[k + 1]]
            for kept, told in (
                (run.q[k], made.q), (run.q[k + 1], made.q),
                (run.v[k], made.v_minus), (run.v[k + 1], made.v_plus),
            ):  # fmt: skip
                assert kept.tobytes() == told.tobytes()
            assert not run.psi[k].any()
        assert set(run.transitions[3].events) == {"unlock j2", "lock j3"}
        assert sorted(t for t, _ in run.events) == sorted([*CHANGES, 0.41])
        # Asked at the time of a change, the run answers with the state after it.
        assert run(0.2).v[1] == 0.0 and run(0.2 - 1e-9).v[1] != 0.0


def test_the_order_of_a_list_of_events_does_not_matter() -> None:
    one, two = arm(EVENTS), arm(EVENTS[::-1])
    for name in ("t", "q", "v", "a", "psi", "mode"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.modes == two.modes
    assert arm().q.tobytes() == arm().q.tobytes()


def test_nothing_that_is_given_is_changed() -> None:
    machine = robot("planar-3R")
    q, v, events = machine.neutral, np.array([1.0, 2.0, 3.0]), list(EVENTS)
    pl.simulate(machine, q, v, until=0.3, events=events[:1])
    assert q.tolist() == machine.neutral.tolist() and v.tolist() == [1.0, 2.0, 3.0]
    assert events == list(EVENTS)


# -- what fails -------------------------------------------------------------------------------


def failing(message: str, events: Sequence[Any], **more: Any) -> pl.SimulationFailed:
    machine = robot("planar-3R")
    v = [1.0, 0.0, 0.3] if "mode" in more else [1.0, 2.0, 0.3]
    with pytest.raises(pl.SimulationFailed, match=message) as caught:
        pl.simulate(machine, machine.neutral, v, events=events, until=0.6, **more)
    return caught.value


def test_what_the_mode_does_not_allow_ends_the_run_with_what_there_is() -> None:
    plain = arm([], method=RK4)
    error = failing(
        "'planar 3R' at t = 0.3 s: joint 'j2' is not locked", [pl.unlock("j2", at=0.3)], method=RK4
    )
    close(error.trajectory.q[-1], plain.q[3], 1e-12)
    assert error.trajectory.t[-1] == 0.3
    twice = [pl.lock("j2", at=0.1), pl.lock("j2", at=0.3, axes=["wz"])]
    error = failing("at t = 0.3 s: joint 'j2' is locked already; unlock it first", twice)
    assert str(error.trajectory.modes[error.trajectory.mode[-1]]) == "lock:j2"
    assert error.trajectory.transitions[0].t == 0.1 and not error.trajectory(0.25).v[1]
    # A lock and a release of one joint at one instant contradict each other in any order.
    for both in ([pl.lock("j2", at=0.2), pl.unlock("j2", at=0.2)],
                 [pl.unlock("j2", at=0.2), pl.lock("j2", at=0.2)]):  # fmt: skip
        failing("joint 'j2' is locked already", both, mode=pl.Mode("j2"))
    bar = robot("four-bar")
    for event, message in (
        (pl.close_loop("close", at=0.05), "at t = 0.05 s: loop 'close' is closed already"),
        (pl.open_loop("close", at=0.05), "'close' is open already"),
    ):
        mode = pl.Mode(opened="close") if "open already" in message else None
        with pytest.raises(pl.SimulationFailed, match=message):
            pl.simulate(bar, bar.neutral, until=0.1, events=[event], mode=mode)


def test_chatter_ends_the_run_and_tells_its_history() -> None:
    # The wind drives the carriage on while the shutter moves, and back while it stands. The shutter
    # is locked when the carriage goes forward and released when it goes back: both at once, always.
    pair = s.couple("prismatic", "fixed")

    def wind(t: float, q: Array, v: Array) -> list[float]:
        return [2.0 if v[1] != 0.0 else -2.0, 1.0]

    events = [
        pl.when(lambda t, q, v: v[0], pl.lock("b"), 1, name="shut"),
        pl.when(lambda t, q, v: v[0], pl.unlock("b"), -1, name="open"),
    ]
    with pytest.raises(pl.SimulationFailed, match=r"events within .*they chatter") as caught:
        pl.simulate(
            pair, [0.0, 0.0], [-0.5, 1.0], until=2.0, tau=wind, events=events,
            mode=pl.Mode(opened="coupling"), method=pl.MuntheKaas("rk4", step=0.01),
        )  # fmt: skip
    error = caught.value
    assert error.reason == "chatter" and "shut" in str(error) and "open" in str(error)
    assert error.trajectory.t[-1] == pytest.approx(0.5, abs=0.011)  # -0.5 + 1 t = 0
    names = [name for _, name in error.trajectory.events]
    assert len(names) > 50 and names[:4] == ["shut", "open", "shut", "open"]


def test_many_events_are_no_chatter_if_time_goes_on() -> None:
    def guard(t: float, q: Array, v: Array) -> float:
        return float(np.sin(400 * t - 0.1))

    flips = [pl.when(guard, pl.lock("b"), 1), pl.when(guard, pl.unlock("b"), -1)]
    pair = s.couple("prismatic", "fixed")
    run = pl.simulate(
        pair, [0.0, 0.0], [1.0, 0.0], until=1.2, events=flips, mode=pl.Mode(opened="coupling"),
        method=pl.MuntheKaas("rk4", step=0.02),
    )  # fmt: skip
    assert len(run.events) == len(run.transitions) == np.floor((480 - 0.1) / np.pi) + 1 > 150


# -- what is kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("every", [0.1, 0.07, 0.2, 0.41])
def test_states_at_intervals_and_at_both_sides_of_every_change(every: float) -> None:
    full, run = arm(), arm(save_every=every)
    grid = [k * every for k in range(int(0.6 / every + 1e-9) + 1)]
    times = sorted({*np.round(grid, 12), *CHANGES, 0.6})
    doubled = sorted([*times, *CHANGES])
    close(run.t, np.array(doubled), 1e-12)
    assert run.modes == full.modes and run.events == full.events
    for k, time in enumerate(run.t):
        after = k > 0 and run.t[k - 1] == time
        before = k + 1 < len(run.t) and run.t[k + 1] == time
        if before or after:
            there = np.flatnonzero(full.t == time)[0 if before else -1]
            state = full.q[there], full.v[there], full.mode[there]
        else:
            state = (
                full(time).q,
                full(time).v,
                full.mode[np.searchsorted(full.t, time) - (time > 0)],
            )
        close(run.q[k], state[0], 1e-12)
        close(run.v[k], state[1], 1e-11)
        assert run.mode[k] == state[2]
    lost = [made.energy_loss for made in run.transitions]
    steps = np.diff(run.energy().work["impulses"])
    close(steps[np.diff(run.mode) != 0], -np.array(lost), 1e-13)
    assert np.abs(run.energy().error).max() < 1e-6


def test_a_saved_run_remembers_its_modes(tmp_path: Path) -> None:
    machine = regularized("delta")
    q, v = moving(machine, 3)
    loop = machine.loops[0].name
    events = [
        pl.lock("arm_1", at=0.02), pl.lock("elbow_1a", at=0.04, axes=["wx"]),
        pl.open_loop(loop, at=0.05),
    ]  # fmt: skip
    run = pl.simulate(machine, q, v, until=0.07, events=events, losses=False)
    back = pl.load_trajectory(run.save(tmp_path / "stop"))
    assert back.modes == run.modes and len(back.modes) == 4
    assert back.events == run.events and back.message == "done"
    for name in ("t", "q", "v", "a", "psi", "mode"):
        assert getattr(back, name).tobytes() == getattr(run, name).tobytes()
        assert getattr(back, name).dtype == getattr(run, name).dtype
    times = np.linspace(0, 0.07, 23)
    assert back(times).q.tobytes() == run(times).q.tobytes()
    one, two = back.reactions("lock:arm_1"), run.reactions("lock:arm_1")
    assert isinstance(one, pl.simulation.LockReaction) and isinstance(
        two, pl.simulation.LockReaction
    )
    close(one.effort, two.effort, 1e-9)
    assert np.abs(two.effort).max() > 1e-3
    close(back.closure(), run.closure(), 1e-12)
    assert back.transitions == ()


def test_a_saved_stop_against_a_limit_remembers_it(tmp_path: Path) -> None:
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    run = pl.simulate(pendulum, [0.0], until=0.5, limits="end stop")
    back = pl.load_trajectory(run.save(tmp_path / "limit"))
    assert back.modes == run.modes and back.modes[1] != pl.Mode("joint")
    assert back.events == run.events and back.mode.tolist() == run.mode.tolist()


def test_tables_have_a_column_with_the_mode(tmp_path: Path) -> None:
    run = arm()
    with run.to_csv(tmp_path / "run.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0][-1] == "mode" and rows[0][0] == "t_s"
    assert [int(float(row[-1])) for row in rows[1:]] == run.mode.tolist()
    assert [float(row[0]) for row in rows[1:]] == run.t.tolist()
    column = rows[0].index("j2_velocity_rad_per_s")
    assert [float(row[column]) for row in rows[1:]] == run.v[:, 1].tolist()


def test_a_run_with_every_joint_locked_stands_still(capfd: pytest.CaptureFixture[str]) -> None:
    machine = robot("planar-3R")
    run = pl.simulate(machine, [0.1, 0.2, 0.3], until=0.5, mode=pl.Mode(machine.joints))
    assert np.all(run.q == [0.1, 0.2, 0.3]) and not run.v.any() and run.t[-1] == 0.5
    with pytest.raises(pl.InconsistentVelocity, match="lock:j1"):
        pl.simulate(machine, [0.1, 0.2, 0.3], [1, 0, 0], until=0.5, mode=pl.Mode(machine.joints))
    wheel = one_body("free")
    free = pl.simulate(wheel, wheel.neutral, until=0.2, mode=pl.Mode("joint"))
    assert np.all(free.q == wheel.neutral)
    assert capfd.readouterr() == ("", "")  # LAPACK complains there


# -- loops whose rows were removed ------------------------------------------------------------


def without_a_needed_row() -> pl.Mechanism:
    """The four-bar with one row less than it needs: as it were, regularized wrongly."""
    machine = regularized("four-bar")
    report = machine.regularization
    assert report is not None
    (loop,) = report.loops
    short = replace(loop, selection=loop.selection[:1])
    return replace(machine, regularization=replace(report, loops=(short,), rows=report.rows - 1))


@pytest.mark.parametrize("events", [[], [pl.lock("crank", at=0.2)]])
@pytest.mark.parametrize("until", [0.25, 1.0])
def test_a_loop_that_its_kept_rows_do_not_close_is_told(until: float, events: list[Any]) -> None:
    """Also by a run that ends, or changes its mode, before its loops are looked at."""
    machine = without_a_needed_row()
    with pytest.raises(pl.SimulationFailed, match="'close' is torn apart") as caught:
        pl.simulate(machine, machine.neutral, until=until, method=pl.MuntheKaas("rk4", step=0.05),
                    events=events)  # fmt: skip
    assert caught.value.trajectory.t[-1] <= 0.4


def test_a_run_without_end_says_when_it_is_too_long_to_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pinloop.integrate.recording._MOST", 100)
    with pytest.raises(pl.SimulationFailed, match=r"more than 100 states; keep fewer") as failure:
        arm((), until=1e300)
    assert 50 < len(failure.value.trajectory.t) <= 100
