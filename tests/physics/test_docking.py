"""Physics of loops that open and close in a run: falling apart, docking, missing each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import pinloop as pl

from .. import mechanisms as m
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array, joint, table
from ..states import assembled, close, regularized, robot
from ..switching import FREE

TIGHT = pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11)
OPEN = pl.Mode(opened="coupling")


def falling_tree(model: pin.Model, q: Array, v: Array, span: tuple[float, float]) -> Array:
    """State of a tree of one-axis joints at the end of a time, by SciPy."""
    data, n = model.createData(), model.nq

    def slope(t: float, y: Array) -> Array:
        return np.asarray(np.r_[y[n:], pin.aba(model, data, y[:n], y[n:], np.zeros(n))])

    result = solve_ivp(slope, span, np.r_[q, v], method="DOP853", rtol=1e-12, atol=1e-12)
    return np.asarray(result.y[:, -1])


# -- opening --------------------------------------------------------------------------------------


def test_a_four_bar_falls_apart_as_two_pendulums() -> None:
    bar = robot("four-bar")
    v = pl.consistent_velocity(bar, bar.neutral, {"crank": 3.0})
    run = pl.simulate(
        bar, bar.neutral, v, until=0.6, events=[pl.open_loop("close", at=0.2)], method=TIGHT
    )
    k = int(np.flatnonzero(run.mode)[0])
    assert run.t[k] == run.t[k - 1] == 0.2
    assert run.q[k].tobytes() == run.q[k - 1].tobytes()
    close(run.v[k], run.v[k - 1], 1e-14, 10.0)

    entries = m.four_bar()["joints"]
    left = tables.build(table("left", *entries[:2])).model
    right = tables.build(table("right", entries[2])).model
    ends = [
        falling_tree(left, run.q[k, :2], run.v[k, :2], (0.2, 0.6)),
        falling_tree(right, run.q[k, 2:], run.v[k, 2:], (0.2, 0.6)),
    ]
    close(run.q[-1], np.r_[ends[0][:2], ends[1][:1]], 1e-8)
    close(run.v[-1], np.r_[ends[0][2:], ends[1][1:]], 1e-7)

    energy = run.energy()
    assert np.abs(energy.error).max() < 1e-8 and not energy.work["impulses"][k - 1].any()
    assert run.closure().max() < 1e-10  # of loops that are closed; none is left
    pulled = run.reactions("close")
    assert isinstance(pulled, pl.simulation.Reaction)
    assert not pulled.force[k:].any() and np.abs(pulled.force[:k]).max(axis=1).min() > 1e-3


def test_a_run_may_start_with_a_loop_open_that_does_not_meet() -> None:
    bar = robot("four-bar")
    start = bar.neutral + np.array([0.3, -0.2, 0.5])
    run = pl.simulate(bar, start, until=0.2, mode=pl.Mode(opened="close"), method=TIGHT)
    free = bar.without_loops(["close"])
    other = pl.simulate(free, start, until=0.2, method=TIGHT)
    assert run.q.tobytes() == other.q.tobytes() and run.modes == (pl.Mode(opened="close"),)
    with pytest.raises(pl.LoopNotClosed):
        pl.simulate(bar, start, until=0.2)


# -- docking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["fixed", "revolute", "spherical"])
def test_two_pendulums_on_one_axis_dock_where_they_meet(cut: str) -> None:
    pair = s.couple("revolute", cut)  # 0.1 and 0.2 kg m^2 about the axis
    run = pl.simulate(
        pair, [-1.0, 0.5], [2.0, -1.0], until=1.0, mode=OPEN, events=[pl.close_loop("coupling")]
    )
    (made,) = run.transitions
    assert made.t == pytest.approx(0.5, abs=1e-9)  # -1 + 2 t = 0.5 - t
    assert made.events == ("close coupling",) and run.events[0][0] == made.t
    close(made.v_plus, np.zeros(2), 1e-9)  # 0.1 * 2 - 0.2 * 1
    assert made.energy_loss == pytest.approx(0.5 * 0.1 * 4 + 0.5 * 0.2, rel=1e-9)
    close(run.q[-1], np.zeros(2), 1e-8)
    assert [str(mode) for mode in run.modes] == ["open:coupling", "free"]


def test_docked_pendulums_swing_on_as_one() -> None:
    pair = s.couple("revolute", "revolute", gravity=s.G, offset=0.3)
    start, rates = np.array([-0.5, 0.4]), np.array([3.0, -1.0])
    run = pl.simulate(
        pair, start, rates, until=0.8, mode=OPEN, events=[pl.close_loop("coupling")], method=TIGHT
    )
    (made,) = run.transitions
    # By hand: inertia about the axis, moment of the weights, meeting by SciPy.
    inertia = np.array([0.1 + 2 * 0.3**2, 0.2 + 3 * 0.3**2])
    weight = np.array([2.0, 3.0]) * 0.3 * s.G

    def slope(t: float, y: Array) -> Array:
        return np.asarray(np.r_[y[2:], -weight * np.cos(y[:2]) / inertia])

    met = solve_ivp(slope, (0, 0.8), np.r_[start, rates], method="DOP853", rtol=1e-12, atol=1e-12,
                    events=lambda t, y: y[1] - y[0])  # fmt: skip
    assert met.t_events and met.y_events
    time, state = met.t_events[0][0], met.y_events[0][0]
    assert made.t == pytest.approx(time, abs=1e-8)
    together = inertia @ state[2:] / inertia.sum()
    close(made.v_plus, np.full(2, together), 1e-7)

    def one(t: float, y: Array) -> Array:
        return np.array([y[1], -weight.sum() * np.cos(y[0]) / inertia.sum()])

    end = solve_ivp(one, (time, 0.8), [state[0], together], method="DOP853", rtol=1e-12, atol=1e-12)
    close(run.q[-1], np.full(2, end.y[0, -1]), 1e-7)
    assert np.abs(run.energy().error).max() < 1e-7
    assert run.closure().max() < 1e-10


def test_frames_that_touch_without_impact_close_without_impulse() -> None:
    # Opened at rest, pushed away and back: the gap is 1 - cos(w t), which touches zero at 2 pi / w.
    pair, w = s.couple("revolute", "revolute"), 6.0
    run = pl.simulate(
        pair, [0.0, 0.0], until=1.5, tau=lambda t, q, v: [0.1 * w**2 * 0.2 * np.cos(w * t), 0.0],
        events=[pl.open_loop("coupling", at=0.0), pl.close_loop("coupling")],
    )  # fmt: skip
    assert [name for _, name in run.events] == ["open coupling", "close coupling"]
    closed = run.transitions[1]
    assert closed.t == pytest.approx(2 * np.pi / w, abs=1e-3)
    assert closed.energy_loss < 1e-6 and np.abs(closed.v_plus).max() < 1e-3
    gap = np.diff(run(np.pi / w).q)[0]
    assert gap == pytest.approx(-0.4, abs=1e-6)


@pytest.mark.parametrize(("tolerance", "docks"), [(0.009, False), (0.02, True)])
def test_bodies_that_pass_each_other_dock_only_within_the_tolerance(
    tolerance: float, docks: bool
) -> None:
    space = tables.build(
        {
            "name": "passing",
            "gravity": [0, 0, 0],
            "bodies": [s.round_body("one", 2.0, 0.1, [0, 0, 0]),
                       s.round_body("two", 3.0, 0.1, [0, 0, 0])],
            "joints": [joint("a", "spatial_translation", "ground", "one"),
                       joint("b", "spatial_translation", "ground", "two"),
                       joint("grip", "spherical", "one", "two", [0, 0, 0], cut=True)],
        }
    )  # fmt: skip
    start = [-1.0, 0.0, 0.0, 1.0, 0.01, 0.0]  # they pass at a distance of 0.01 at t = 0.5
    run = pl.simulate(
        space, start, [2.5, 0, 0, -1.5, 0, 0], until=0.8, mode=pl.Mode(opened="grip"),
        events=[pl.close_loop("grip", tolerance=tolerance)],
    )  # fmt: skip
    if not docks:
        assert run.events == () and len(run.modes) == 1
        close(run.q[-1], np.array([1.0, 0, 0, -0.2, 0.01, 0]), 1e-9)
        return
    (made,) = run.transitions
    assert made.t == pytest.approx(0.5, abs=1e-9)
    close(made.v_plus, np.tile([0.1, 0, 0], 2), 1e-10)  # (2 * 2.5 - 3 * 1.5) / 5
    close(made.v_plus[:3], made.v_plus[3:], 1e-14)
    # The frames are brought together at once: now both bodies are at one place.
    assert run.closure()[run.mode == 1].max() < 1e-10
    close(run.q[-1][:3], run.q[-1][3:], 1e-10)
    assert run.q[-1][0] == pytest.approx(run.q[run.mode == 1][0, 0] + 0.03, abs=1e-9)


def test_closing_at_a_time_needs_frames_that_have_met() -> None:
    pair = s.couple("revolute", "revolute")

    def docked(at: float) -> pl.Trajectory:
        return pl.simulate(
            pair, [-1.0, 0.5], [2.0, -1.0], until=1.0, mode=OPEN,
            events=[pl.close_loop("coupling", at=at)],
        )  # fmt: skip

    run = docked(0.5)
    assert run.transitions[0].t == 0.5 and run.closure().max() < 1e-10
    gap = 2 * np.sin(0.15 / 2)  # of the tips, 1 m from the axis
    with pytest.raises(pl.SimulationFailed, match=f"'coupling' .* open by {gap:.3g} ") as caught:
        docked(0.45)
    assert caught.value.reason == "loop not met"
    assert "t = 0.45 s" in str(caught.value)
    assert caught.value.trajectory.t[-1] == 0.45
    close(caught.value.trajectory.q[-1], np.array([-0.1, 0.05]), 1e-9)


def test_a_guard_may_close_a_loop_that_has_met() -> None:
    pair = s.couple("prismatic", "fixed")
    event = pl.when(lambda t, q, v: q[1] - q[0], pl.close_loop("coupling"), name="bump")
    run = pl.simulate(pair, [-1.0, 0.0], [1.0, 0.0], until=2.0, mode=OPEN, events=[event])
    assert run.events[0][0] == pytest.approx(1.0, abs=1e-12) and run.events[0][1] == "bump"
    close(run.v[-1], np.full(2, 0.4), 1e-12)
    close(run.q[-1], np.full(2, 0.4), 1e-10)


def test_a_loop_closes_while_another_one_opens_and_a_joint_locks() -> None:
    rods = regularized("spinning-rods")
    q = assembled(rods, 4)
    before = pl.Mode(opened="close2")
    v = s.moving_in(rods, q, before, 2)
    events = [
        pl.close_loop("close2", at=0.0), pl.open_loop("close1", at=0.0),
        pl.lock("rocker1", at=0.0),
    ]  # fmt: skip
    run = pl.simulate(rods, q, v, until=0.1, mode=before, events=events)
    (made,) = run.transitions
    after = pl.Mode("rocker1", opened="close1")
    assert run.modes == (before, after) and made.before == before and made.after == after
    s.assert_same_velocity(rods, q, made.v_plus, s.jump(rods, q, v, after)[0], v)
    rows = pl.Constraints(rods, full=True)
    gaps = rows.by_name(rows.residual(run.q[-1]))
    assert gaps["close2"] < 1e-10 and gaps["close1"] > 1e-3
    assert FREE not in run.modes
