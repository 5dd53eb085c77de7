"""Physics of joint limits: hits are reported, or the joint rests on a stop that only pushes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pinloop as pl

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array
from ..states import close, one_body

WEIGHT = 2.0 * s.G * 0.5
"""Torque of the weight of `switching.hanging` when it lies along x [N m]."""
INERTIA = 0.1 + 2.0 * 0.5**2
TIGHT = pl.MuntheKaas(rtol=1e-11, atol=1e-11)


def labels(run: pl.Trajectory) -> list[str]:
    return [label for _, label in run.events]


def fall(angle: float, rate: float, until: float, meet: float) -> tuple[float, float]:
    """Time and rate at which the free pendulum passes an angle, by SciPy."""
    found = solve_ivp(
        lambda t, y: [y[1], -WEIGHT / INERTIA * np.cos(y[0])], (0, until), [angle, rate],
        method="DOP853", rtol=1e-12, atol=1e-12, events=lambda t, y: y[0] - meet,
    )  # fmt: skip
    assert found.t_events and found.y_events
    return float(found.t_events[0][0]), float(found.y_events[0][0][1])


# -- only reported ------------------------------------------------------------------------------


def test_hits_are_reported_and_change_nothing() -> None:
    limited = s.between(s.hanging(), -0.6, 0.4)
    run = pl.simulate(
        limited, [0.0], [4.0], until=1.0, events=[pl.simulation.JointLimits()], method=TIGHT
    )
    plain = pl.simulate(limited, [0.0], [4.0], until=1.0, method=TIGHT)
    # Out at the top, back in (no event), out at the bottom.
    assert labels(run) == ["upper limit of joint", "lower limit of joint"]
    assert run.transitions == () and run.modes == (pl.Mode(),)
    for (t, _), angle in zip(run.events, (0.4, -0.6), strict=True):
        assert run(t).q[0] == pytest.approx(angle, abs=1e-10)
    close(run.q[-1], plain.q[-1], 1e-9)


def test_only_the_named_joints_are_watched() -> None:
    def events(limits: pl.simulation.JointLimits) -> list[str]:
        arm = tables.limited(m.planar_3r(), j1=(-0.05, 0.05), j2=(-0.05, 0.05))
        return labels(pl.simulate(arm, arm.neutral, [1, 1, 1], until=0.15, events=[limits]))

    assert set(events(pl.simulation.JointLimits())) == {"upper limit of j1", "upper limit of j2"}
    assert events(pl.simulation.JointLimits(("j2",))) == ["upper limit of j2"]
    assert events(pl.simulation.JointLimits("j2")) == ["upper limit of j2"]  # type: ignore[arg-type]
    with pytest.raises(pl.UnknownName, match="no joint 'j4'"):
        events(pl.simulation.JointLimits(("j4",)))
    with pytest.raises(pl.BadValue, match="'j3' has no position limits"):
        events(pl.simulation.JointLimits(("j3",)))


# -- plastic impact -----------------------------------------------------------------------------


def test_a_pendulum_falls_on_a_stop_rests_and_is_pulled_away() -> None:
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    run = pl.simulate(
        pendulum, [0.0], until=1.5, tau=lambda t, q, v: [10.0 * t], limits="end stop", method=TIGHT
    )
    hit, release = run.events[:2]
    assert hit[1] == "lower limit of joint" and release[1] == "release from lower limit of joint"
    # The stop carries the rest of the weight until the torque lifts it.
    assert release[0] == pytest.approx(WEIGHT * np.cos(0.3) / 10.0, abs=1e-9)
    resting = run.mode == 1
    assert np.all(run.q[resting] == run.q[resting][0]) and not run.v[resting].any()
    assert run.q[resting][0] == pytest.approx(-0.3, abs=1e-12)
    push = run.reactions("lock:joint")
    assert isinstance(push, pl.simulation.LockReaction)
    want = WEIGHT * np.cos(0.3) - 10.0 * run.t[resting]
    close(push.effort[resting, 0], want, 1e-9)
    assert run.q[-1, 0] > -0.2 and run.modes[run.mode[-1]] == pl.Mode()
    made = run.transitions[0]
    assert made.energy_loss == pytest.approx(0.5 * INERTIA * made.v_minus[0] ** 2, rel=1e-12)
    assert made.impulse_of("lock:joint") == pytest.approx([-INERTIA * made.v_minus[0]], rel=1e-12)
    assert np.abs(run.energy().error).max() < 1e-8


def test_a_spring_pulls_a_resting_pendulum_away() -> None:
    # A motor turns the far end of a spring at 2 rad/s.
    limited = tables.limited(
        {
            "name": "wound",
            "gravity": [0, -s.G, 0],
            "bodies": [s.round_body("arm", 2.0, 0.1, [0.3, 0, 0])],
            "joints": [tables.joint("arm", "revolute", "ground", "arm", [0, 0, 0], s.Z)],
        },
        arm=(-0.2, 3.0),
    )
    spring = pl.TorqueFunction(lambda t, q, v: [4.0 * (2.0 * t - q[0])])
    run = pl.simulate(limited, [-0.2], until=1.5, forces=[spring], limits="end stop", method=TIGHT)
    assert labels(run)[:2] == ["lower limit of arm", "release from lower limit of arm"]
    assert run.events[0][0] == 0.0
    lift = (2.0 * 0.3 * s.G * np.cos(0.2) / 4.0 - 0.2) / 2.0
    assert run.events[1][0] == pytest.approx(lift, abs=1e-9)
    assert run.q[-1, 0] > 0.0


@pytest.mark.parametrize("method", [TIGHT, pl.MuntheKaas("rk4", step=0.01)])
def test_a_stop_that_would_have_to_pull_lets_go_at_once(method: pl.MuntheKaas) -> None:
    # Thrown up against the upper stop: it stops dead and falls back.
    pendulum = s.between(s.hanging(), -5.0, 0.3)
    run = pl.simulate(pendulum, [0.0], [3.5], until=0.5, limits="end stop", method=method)
    time, rate = fall(0.0, 3.5, 1.0, 0.3)
    assert labels(run)[0] == "upper limit of joint"  # where it does not rest for an instant
    assert run.events[0][0] == pytest.approx(time, abs=1e-6)
    assert run.modes == (pl.Mode(),) or run.events[1][0] > time + 0.1
    assert run.transitions[0].v_minus[0] == pytest.approx(rate, abs=1e-5)
    dropped = solve_ivp(
        lambda t, y: [y[1], -WEIGHT / INERTIA * np.cos(y[0])], (time, 0.5), [0.3, 0.0],
        method="DOP853", rtol=1e-12, atol=1e-12,
    ).y[:, -1]  # fmt: skip
    close(np.r_[run.q[-1], run.v[-1]], dropped, 1e-5)
    assert run.modes[run.mode[-1]] == pl.Mode()


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_joint_that_starts_on_its_stop_stays_there(rate: float) -> None:
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    run = pl.simulate(pendulum, [-0.3], [rate], until=0.5, limits="end stop")
    assert run.events == ((0.0, "lower limit of joint"),)
    assert np.all(run.q == -0.3) and not run.v[1:].any()


def test_a_joint_that_starts_on_its_stop_may_leave_it() -> None:
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    run = pl.simulate(pendulum, [-0.3], [1.0], until=0.2, limits="end stop", method=TIGHT)
    free = pl.simulate(pendulum, [-0.3], [1.0], until=0.2, method=TIGHT)
    back = [k for k, label in enumerate(labels(run)) if label == "lower limit of joint"]
    assert back == list(range(len(back)))
    assert run.events == () or run.events[0][0] > 0.1
    close(run(0.05).q, free(0.05).q, 1e-9)


def test_a_joint_between_two_stops_hits_both() -> None:
    cart = s.between(one_body("prismatic", gravity=(0, 0, 0)), -1.0, 1.0)
    run = pl.simulate(
        cart, [0.0], until=5.0, limits="end stop", tau=lambda t, q, v: [2.0 - t], method=TIGHT
    )
    assert labels(run) == [
        "upper limit of joint", "release from upper limit of joint", "lower limit of joint"
    ]  # fmt: skip
    # q = t^2 - t^3/6 up to 1; from t = 2 on it is pulled: q = 1 - (t - 2)^3/6 down to -1.
    up = min(root.real for root in np.roots([-1 / 6, 1, 0, -1]) if root.real > 0)
    times = np.array([t for t, _ in run.events])
    close(times, np.array([up, 2.0, 2.0 + 12 ** (1 / 3)]), 1e-7)
    assert run.q[-1, 0] == pytest.approx(-1.0, abs=1e-12)


# -- stops, locks and loops -----------------------------------------------------------------------


def test_locks_of_the_user_are_not_released_by_a_stop() -> None:
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    for axes in ((), ("wz",)):
        run = pl.simulate(
            pendulum, [-0.3], until=0.6, tau=lambda t, q, v: [20.0 * np.sin(20 * t)],
            mode=pl.Mode(pl.simulation.Locked("joint", axes)), limits="end stop",
        )  # fmt: skip
        assert run.events == () and not run.v.any()


def test_a_joint_that_rests_on_its_stop_can_be_locked() -> None:
    # Braked while it lies on the stop, it stays when it is pulled, until the brake opens.
    pendulum = s.between(s.hanging(), -0.3, 3.0)
    run = pl.simulate(
        pendulum, [0.0], until=1.5, tau=lambda t, q, v: [10.0 * t],
        events=[pl.lock("joint", at=0.5), pl.unlock("joint", at=1.2)], limits="end stop",
        method=TIGHT,
    )  # fmt: skip
    assert labels(run)[:3] == ["lower limit of joint", "lock joint", "unlock joint"]
    assert np.all(run.q[(run.t >= 0.5) & (run.t <= 1.2)] == run(0.5).q)
    assert run.q[-1, 0] > -0.25


def test_a_stop_in_a_tree_keeps_the_momenta_of_the_other_joints() -> None:
    arm = tables.limited(m.planar_3r(), j2=(-1.0, 0.05))
    run = pl.simulate(
        arm, arm.neutral, [1.0, 2.0, -1.0], until=0.1, limits="end stop", method=TIGHT
    )
    made = run.transitions[0]
    assert made.q[1] == pytest.approx(0.05, abs=1e-11)
    M = hand.mass_matrix(arm, made.q)
    change = M @ (made.v_plus - made.v_minus)
    close(change[[0, 2]], np.zeros(2), 1e-13)
    assert change[1] < -0.01 and made.v_plus[1] == 0.0


def test_a_stop_in_a_loop_stops_the_loop() -> None:
    bar = tables.limited(m.four_bar(), rocker=(-0.1, 0.1))
    v = pl.consistent_velocity(bar, bar.neutral, {"crank": 3.0})
    run = pl.simulate(
        bar, bar.neutral, v, until=0.4, forces=[pl.Torque("crank", 6.0)], limits="end stop"
    )
    assert len(run.transitions) == 1 and str(run.modes[-1]) == "lock:rocker"
    assert abs(run.q[-1][bar.coordinates("rocker").q][0]) == pytest.approx(0.1, abs=1e-9)
    assert not np.abs(run.v[-1]).max() > 1e-10
    assert run.closure().max() < 1e-10


def test_bouncing_on_a_stop_without_end_is_not_possible() -> None:
    # A force that presses at rest and lifts as soon as it moves: at rest it presses. It rests.
    cart = s.between(one_body("prismatic", gravity=(0, 0, 0)), 0.0, 1.0)

    def push(t: float, q: Array, v: Array) -> list[float]:
        return [-1.0 if v[0] <= 0 else 1.0]

    run = pl.simulate(cart, [0.2], until=2.0, tau=push, limits="end stop")
    assert labels(run) == ["lower limit of joint"]
    assert run.q[-1, 0] == pytest.approx(0.0, abs=1e-9)
