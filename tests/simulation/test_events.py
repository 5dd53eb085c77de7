"""Tests of events: where guards are zero, in which order, in which direction, and never twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipk

import pinloop as pl
from pinloop.integrate import Bernstein, guards
from pinloop.simulation.events import Report

from .. import switching as s
from ..screw_tables import Array
from ..states import close, one_body, regularized, robot

METHODS = {
    "default": pl.MuntheKaas(),
    "tight": pl.MuntheKaas(rtol=1e-12, atol=1e-12),
    "dop853": pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12),
    "rk4": pl.MuntheKaas("rk4", step=0.01),
    "long steps": pl.MuntheKaas("rk4", step=0.5),
}
every_method = pytest.mark.parametrize("name", METHODS)
OPEN = pl.Mode(opened="coupling")


def two_carriages(**more: Any) -> pl.Trajectory:
    """Carriage a (2 kg) rests, carriage b (3 kg) moves at 1 m/s from -1; nothing couples them."""
    settings: dict[str, Any] = {"until": 2.0, "mode": OPEN} | more
    return pl.simulate(s.couple("prismatic", "fixed"), [0.0, -1.0], [0.0, 1.0], **settings)


# -- roots against closed forms -----------------------------------------------------------------


@every_method
@pytest.mark.parametrize("height", [0.3, 2.0])
def test_a_falling_body_reaches_the_floor_at_the_root_of_twice_height_over_g(
    name: str, height: float
) -> None:
    run = pl.simulate(
        s.falling(), [height], until=1.5, events=[pl.stop_when(lambda t, q, v: q[0])],
        method=METHODS[name],
    )  # fmt: skip
    assert run.t[-1] == pytest.approx(np.sqrt(2 * height / s.G), abs=1e-12)
    assert run.q[-1, 0] == pytest.approx(0.0, abs=1e-12)
    assert run.v[-1, 0] == pytest.approx(-np.sqrt(2 * height * s.G), abs=1e-10)
    assert run.message == "stopped by an event"
    assert run.events == ((run.t[-1], "stop"),) and run.transitions == ()


@pytest.mark.parametrize("name", ["tight", "dop853"])
def test_a_pendulum_crosses_its_bottom_after_a_quarter_period(name: str) -> None:
    run = pl.simulate(
        s.hanging(), [0.0], until=3.0, method=METHODS[name],
        events=[pl.stop_when(lambda t, q, v: q[0] + np.pi / 2, -1)],
    )  # fmt: skip
    # Released 90 degrees off: T/4 = K(sin^2 45) / w with w^2 = m g c / (I + m c^2).
    w = np.sqrt(2.0 * s.G * 0.5 / (0.1 + 2.0 * 0.25))
    assert run.t[-1] == pytest.approx(ellipk(0.5) / w, abs=1e-10)


@pytest.mark.parametrize("name", ["tight", "dop853"])
def test_an_oscillator_is_caught_at_every_zero(name: str) -> None:
    spring, w = one_body("prismatic", gravity=(0, 0, 0)), 7.0
    ends = s.between(spring, 0.0, 5.0)
    run = pl.simulate(
        ends, [1.0], until=3.0, forces=[pl.forces.JointSpring("joint", w**2)], method=METHODS[name],
        events=[pl.simulation.JointLimits()],
    )  # fmt: skip
    falling = np.arange(1, 8, 4) * np.pi / (2 * w)
    times = [t for t, label in run.events if label == "lower limit of joint"]
    assert len(run.events) == len(times)
    close(np.array(times), np.r_[falling, falling + 4 * np.pi / w][: len(times)], 1e-10)
    assert len(times) == np.floor((3.0 * w / np.pi - 0.5) / 2) + 1
    assert run.modes == (pl.Mode(),)
    # Events that change nothing cost nothing.
    close(run.q[-1], np.array([np.cos(3 * w)]), 1e-9)


def test_an_event_is_as_exact_as_the_steps_around_it() -> None:
    pendulum = s.between(s.hanging(), -2.0, 2.0)
    for name in ("tight", "dop853"):
        plain, watched = (
            pl.simulate(pendulum, [0.0], [1.0], until=1.5, method=METHODS[name], events=events)
            for events in ([], [pl.simulation.JointLimits()])
        )
        assert len(watched.events) == 1
        close(watched.q[-1], plain.q[-1], 1e-10)
        assert np.abs(watched.energy().error).max() < 1e-10


@every_method
@pytest.mark.parametrize(
    "shape",
    [
        lambda x: x,
        lambda x: 1.0 if x > 0 else -1.0,
        lambda x: 1.0 if x > 0 else -1e-3,
        lambda x: x**3,
        lambda x: np.sign(x) * np.sqrt(abs(x)),
        lambda x: max(x, 1e3 * x),
    ],
    ids=["line", "flag", "lopsided flag", "flat", "steep", "kink"],
)
def test_zeros_of_any_shape_are_found(name: str, shape: Callable[[float], float]) -> None:
    event = pl.stop_when(lambda t, q, v: float(shape(float(q[1]) + 0.4)))
    run = two_carriages(events=[event], method=METHODS[name])
    assert run.t[-1] == pytest.approx(0.6, abs=1e-6 if shape(0.1) == pytest.approx(1e-3) else 1e-12)
    assert run.q[-1, 1] == pytest.approx(run.t[-1] - 1.0, abs=1e-13)


# -- several roots ------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("rate", [7.0, 20.0])
@pytest.mark.parametrize("unit", [1.0, 1e-13, 1e10])
def test_all_zeros_in_a_step_are_found_in_order(name: str, rate: float, unit: float) -> None:
    # Zeros further apart than an eighth of a step; half a second here.
    def guard(t: float, q: Array, v: Array) -> float:
        return float(unit * np.sin(rate * t - 1.0))

    events = [pl.when(guard, pl.lock("a"), 1), pl.when(guard, pl.unlock("a"), -1)]
    run = two_carriages(events=events, method=replace(METHODS[name], largest=0.5))
    count = int(np.floor((2 * rate - 1.0) / np.pi)) + 1
    zeros = (1.0 + np.pi * np.arange(count)) / rate
    assert [label for _, label in run.events] == (["lock a", "unlock a"] * count)[:count]
    close(np.array([t for t, _ in run.events]), zeros, 1e-12)
    close(run.q[-1], np.array([0.0, 1.0]), 1e-12)


@pytest.mark.parametrize("part", [1e-2, 1e-4])
@pytest.mark.parametrize("kind", ["height", "potential"])
@every_method
def test_a_guard_that_dips_for_a_hundredth_of_a_step_is_found(
    name: str, kind: str, part: float
) -> None:
    """A body thrown upwards passes a height just below its top, twice within a part of a step."""
    method = replace(METHODS[name], largest=0.5)
    half, top = 0.5 * part * (method.step or 0.3), 1.03
    height = s.G * top**2 / 2 - s.G * half**2 / 2

    def guard(t: float, q: Array, v: Array) -> float:
        return float(height - q[0] if kind == "height" else np.exp(-q[0]) - np.exp(-height))

    run = pl.simulate(
        s.falling(), [0.0], [s.G * top], until=1.9, method=method,
        events=[pl.when(guard, pl.simulation.Event(Report("up")), -1, name="up"),
                pl.when(guard, pl.simulation.Event(Report("down")), 1, name="down")],
    )  # fmt: skip
    assert [label for _, label in run.events] == ["up", "down"]
    close(np.array([t for t, _ in run.events]), top + half * np.array([-1.0, 1.0]), 1e-8)


@pytest.mark.parametrize(
    ("direction", "start", "zero"),
    [(1, 0.0, 0.5), (1, 0.6, 2.5), (-1, 0.0, 1.5), (-1, 1.6, 3.5), (0, 0.0, 0.5), (0, 0.6, 1.5)],
)
@every_method
def test_zeros_count_in_the_wanted_direction_only(
    name: str, direction: int, start: float, zero: float
) -> None:
    event = pl.stop_when(lambda t, q, v: -np.cos(np.pi * t), direction, name="enough")
    run = two_carriages(events=[event], start=start, until=4.0, method=METHODS[name])
    assert run.t[-1] == pytest.approx(zero, abs=1e-12)
    assert run.events == ((run.t[-1], "enough"),)


def test_zeros_at_one_instant_are_one_change_whatever_their_order() -> None:
    machine = regularized("delta")
    v = s.moving_in(machine, machine.neutral, pl.Mode(), 3)
    events = [
        pl.when(lambda t, q, v: t - 0.05, pl.lock("arm_1"), name="one"),
        pl.when(lambda t, q, v: np.exp(t) - np.exp(0.05), pl.lock("arm_2"), name="two"),
        pl.lock("arm_3", at=0.05),
    ]
    runs = [
        pl.simulate(machine, machine.neutral, v, until=0.08, events=[events[k] for k in order])
        for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2])
    ]
    for run in runs:
        (made,) = run.transitions
        assert made.after == pl.Mode(("arm_1", "arm_2", "arm_3"))
        assert set(made.events) == {"one", "two", "lock arm_3"} and len(run.events) == 3
        arms = [machine.coordinates(f"arm_{k}").v.start for k in (1, 2, 3)]
        late = np.array([bool(run.modes[number].locks) for number in run.mode])
        assert run.v[~late][:, arms].any(axis=1).all() and not run.v[late][:, arms].any()
        for array in ("t", "q", "v", "a", "psi", "mode"):
            assert getattr(run, array).tobytes() == getattr(runs[0], array).tobytes()


@pytest.mark.parametrize(("apart", "changes"), [(1e-12, 1), (1e-6, 2)])
def test_zeros_as_near_as_rounding_are_one_instant(apart: float, changes: int) -> None:
    events = [
        pl.when(lambda t, q, v: t - 0.7 - apart, pl.lock("a")),
        pl.when(lambda t, q, v: q[1] + 0.3, pl.lock("b")),
    ]
    for order in (events, events[::-1]):
        run = two_carriages(events=order)
        assert len(run.transitions) == changes and len(run.events) == 2
        assert run.events[0][0] == pytest.approx(0.7, abs=1e-11)


# -- never twice --------------------------------------------------------------------------------


@every_method
def test_a_joint_locked_where_it_stands_still_is_not_locked_again(name: str) -> None:
    # Thrown upwards; at the top it is locked, and the guard is exactly zero from then on. Released,
    # it swings through the bottom and up to the same height, where it is locked again.
    held = pl.when(lambda t, q, v: v[0], pl.lock("joint"), name="brake")
    run = pl.simulate(
        s.hanging(), [-0.5], [2.0], until=2.5, events=[held, pl.unlock("joint", at=0.8)],
        method=METHODS[name],
    )  # fmt: skip
    assert [label for _, label in run.events] == ["brake", "unlock joint", "brake"]
    top, end = (made.q[0] for made in run.transitions[::2])
    # Energy: 1/2 I v^2 = m g c (sin q_top - sin q_0), then the same height on the other side.
    height = np.sin(-0.5) + 0.5 * 0.6 * 4 / (2 * s.G * 0.5)
    loose = name == "long steps"
    if not loose:
        assert np.sin(top) == pytest.approx(height, abs=1e-6)
        assert end == pytest.approx(-np.pi - top, abs=1e-5)
    assert run.t[-1] == 2.5 and not run.v[-1].any()


def passing(k: int, angle: float, unit: float = 1.0) -> Callable[[float, Array, Array], float]:
    """Guard that is zero where a coordinate has a value."""
    return lambda t, q, v: float(unit * (q[k] - angle))


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e9])
def test_an_event_happens_once_in_any_unit_of_its_guard(unit: float) -> None:
    arm, rng = robot("planar-3R"), np.random.default_rng(1)
    for angle in rng.uniform(0.01, 0.03, 12):
        event = pl.when(passing(0, angle, unit), pl.lock("j2"))
        run = pl.simulate(arm, arm.neutral, [10.0, 5.0, 2.0], until=0.1, events=[event])
        assert len(run.events) == len(run.transitions) == 1
        assert run.transitions[0].q[0] == pytest.approx(angle, abs=1e-12)


def test_projection_does_not_bring_an_event_back() -> None:
    bar, rng = regularized("four-bar"), np.random.default_rng(2)
    v = pl.consistent_velocity(bar, bar.neutral, {"crank": 3.0})
    loose = pl.MuntheKaas(rtol=1e-4, atol=1e-4)
    for angle in rng.uniform(0.05, 0.8, 15):
        event = pl.when(passing(1, -angle), pl.open_loop("close"))
        run = pl.simulate(bar, bar.neutral, v, until=0.3, events=[event], method=loose)
        assert len(run.events) == 1 and run.transitions[0].q[1] == pytest.approx(-angle, abs=1e-6)


@every_method
def test_a_guard_that_only_touches_zero_is_no_event(name: str) -> None:
    # At 1 s, where a step of half a second ends to the last bit.
    event = pl.stop_when(lambda t, q, v: (t - 1.0) ** 2)
    run = two_carriages(events=[event], method=METHODS[name])
    assert run.t[-1] == 2.0 and run.events == ()


def test_a_guard_that_jumps_with_the_mode_is_looked_at_anew() -> None:
    # When b is locked its speed falls below 0.5; that is no zero of the guard, it never was there.
    events = [pl.lock("b", at=0.5), pl.stop_when(lambda t, q, v: v[1] - 0.5)]
    run = two_carriages(events=events)
    assert run.message == "done" and len(run.events) == 1


# -- at a time ----------------------------------------------------------------------------------


@every_method
def test_events_at_a_time_happen_exactly_then(name: str) -> None:
    for start, until, times in (
        (0.0, 1.0, (0.0, 0.1 + 0.2, 1 / 3, 1.0)),
        (-2.0, 0.5, (-2.0, -1.3, -1e-3, 0.5)),
        (1e4, 1e4 + 1, (1e4, 1e4 + 0.3, 1e4 + 2 / 3, 1e4 + 1)),
    ):
        actions = [pl.lock, pl.unlock, pl.lock, pl.unlock]
        events = [act("b", at=t) for act, t in zip(actions, times, strict=True)]
        run = two_carriages(events=events[::-1], start=start, until=until, method=METHODS[name])
        assert [t for t, _ in run.events] == [made.t for made in run.transitions] == list(times)
        states = [run.t[np.flatnonzero(np.diff(run.mode)) + k].tolist() for k in (0, 1)]
        assert states == [list(times)] * 2
        # Before the first lock nothing has moved; b never moves again.
        assert run.v[0].tolist() == [0, 1] and run.q[-1].tolist() == [0, -1]
        assert run.t[-1] == until


@pytest.mark.parametrize("at", [-0.1, 2.1])
def test_events_outside_the_run_are_refused(at: float) -> None:
    with pytest.raises(pl.BadValue, match=r"event 'lock a' is at t = .* outside the run from 0"):
        two_carriages(events=[pl.lock("a", at=at)])


def test_a_stop_and_a_lock_at_one_instant_both_happen() -> None:
    events = [pl.stop_when(lambda t, q, v: t - 0.5), pl.lock("b", at=0.5)]
    run = two_carriages(events=events)
    assert run.t[-1] == 0.5 and run.modes[run.mode[-1]] == pl.Mode("b", opened="coupling")
    assert {label for _, label in run.events} == {"stop", "lock b"}
    assert run.v[-1].tolist() == [0.0, 0.0]


# -- guards of users ----------------------------------------------------------------------------


def bad_guard(kind: str) -> Callable[[float, Array, Array], Any]:
    return {
        "nan": lambda t, q, v: np.nan if t > 0.5 else 1.0,
        "inf": lambda t, q, v: np.inf if t > 0.5 else 1.0,
        "none": lambda t, q, v: None if t > 0.5 else 1.0,
        "array": lambda t, q, v: q if t > 0.5 else 1.0,
        "word": lambda t, q, v: "late" if t > 0.5 else 1.0,
    }[kind]


@pytest.mark.parametrize("kind", ["nan", "inf", "none", "array", "word"])
def test_a_guard_without_a_number_ends_the_run_with_what_there_is(kind: str) -> None:
    event = pl.stop_when(bad_guard(kind), name="odd")
    with pytest.raises(pl.SimulationFailed, match="guard of event 'odd'") as caught:
        two_carriages(events=[event], method=pl.MuntheKaas("rk4", step=0.05))
    assert "t = 0.5" in str(caught.value)
    assert caught.value.trajectory.t[-1] == pytest.approx(0.5, abs=0.051)
    close(caught.value.trajectory.q[-1, 1], caught.value.trajectory.t[-1] - 1.0, 1e-12)


def test_a_guard_that_raises_tells_what_it_raised() -> None:
    def guard(t: float, q: Array, v: Array) -> float:
        return float([1.0][int(t > 0.5)])

    with pytest.raises(pl.SimulationFailed, match=r"'odd' .* IndexError: list index") as caught:
        two_carriages(events=[pl.stop_when(guard, name="odd")])
    causes: list[BaseException | None] = [caught.value]
    while causes[-1] is not None:
        causes.append(causes[-1].__cause__)
    assert any(isinstance(cause, IndexError) for cause in causes)
    assert caught.value.trajectory.t[-1] >= 0.2


def test_one_event_need_not_stand_in_a_list() -> None:
    assert two_carriages(events=pl.lock("b", at=1.0)).events == ((1.0, "lock b"),)


def test_guards_see_the_state_and_may_not_change_it() -> None:
    seen = []

    def guard(t: float, q: Array, v: Array) -> float:
        seen.append((t, q.copy(), v.copy()))
        q += 100.0
        v[:] = -5.0
        return 1.0

    spoiled = two_carriages(events=[pl.stop_when(guard)])
    plain = two_carriages()
    for t, q, v in seen:
        close(q, np.array([0.0, t - 1.0]), 1e-12)
        close(v, np.array([0.0, 1.0]), 1e-12)
    assert spoiled.q.tobytes() == plain.q.tobytes() and spoiled.v.tobytes() == plain.v.tobytes()


# -- limits that are out of reach -------------------------------------------------------------


@pytest.mark.parametrize("impact", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_limits_out_of_reach_are_left_out_and_no_hit_is_missed(
    seed: int, impact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same hits as if every limit were looked at in every step, with far fewer looks."""
    machine = robot("six_axis_arm")
    v = np.random.default_rng(seed).uniform(-6.0, 6.0, machine.nv)
    looks, nodes = 0, guards.PolynomialCurve.nodes

    def counted(self: Any, end: float) -> Any:
        nonlocal looks
        looks += 1
        return nodes(self, end)

    monkeypatch.setattr(guards.PolynomialCurve, "nodes", counted)

    def hits() -> tuple[pl.Trajectory, int]:
        nonlocal looks
        looks = 0
        run = pl.simulate(machine, machine.neutral, v, until=0.6, losses=False,
                          limits="end stop" if impact else "warn",
                          events=[pl.simulation.JointLimits()])  # fmt: skip
        return run, looks

    run, few = hits()
    given = Bernstein.of

    def mixed(degree: int) -> Bernstein:
        """Of coefficients whose signs alternate no polynomial seems to be off zero."""
        basis, signs = given(degree), (-1.0) ** np.arange(degree + 1)[:, None]
        return replace(basis, of_powers=signs * basis.of_powers)

    monkeypatch.setattr(Bernstein, "of", mixed)
    whole, many = hits()
    assert run.events == whole.events and run.q.tobytes() == whole.q.tobytes()
    assert run.events and few < many / 4
