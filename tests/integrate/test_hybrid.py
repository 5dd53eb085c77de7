"""Tests of the hybrid integrator on particles: closed forms, order, chatter, resuming."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.integrate import (
    Ahead,
    Change,
    Chatter,
    Coordinate,
    Flow,
    Guard,
    Guards,
    HybridIntegrator,
    HybridState,
    Step,
    StepFailed,
    Stepper,
)

from .groups_by_hand import Space

Array = NDArray[np.float64]
G = 9.81

METHODS = {
    "default": pl.MuntheKaas(),
    "dopri5": pl.MuntheKaas("dopri5"),
    "dop853": pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11),
    "rk4": pl.MuntheKaas("rk4", step=0.01),
    "long steps": pl.MuntheKaas("rk4", step=0.5),
    "radau5": pl.MuntheKaas("radau5", rtol=1e-10, atol=1e-10),
    "radau9": pl.MuntheKaas("radau9", rtol=1e-11, atol=1e-11),
    "fixed radau9": pl.MuntheKaas("radau9", step=0.05),
}
every_method = pytest.mark.parametrize("name", METHODS)


Handler = Callable[[HybridState[str], Sequence[str]], Change[str]]


@dataclass
class Particles:
    """Particles on lines; ``accelerations`` by mode, what is looked for, and what then."""

    accelerations: dict[str, Callable[[float, Array, Array], Array]]
    watched: dict[str, list[Guard[str]]]
    handler: Handler
    times: tuple[float, ...] = ()
    states: list[HybridState[str]] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._guards = {mode: Guards(guards) for mode, guards in self.watched.items()}

    def flow(self, mode: str) -> Flow:
        return Flow(self.accelerations[mode], Space(), lambda t, q, v: (q, v, False))

    def guards(self, mode: str) -> Guards[str]:
        return self._guards[mode]

    def ahead(self, state: HybridState[str]) -> Ahead | None:
        return Ahead(min((t for t in self.times if t > state.passed), default=np.inf))

    def due(self, state: HybridState[str], *, begun: bool) -> list[str]:
        return [f"at {t}" for t in self.times if state.passed < t <= state.t]

    def handle(self, state: HybridState[str], events: Sequence[str]) -> Change[str]:
        self.log += [(state.t, event) for event in events]
        return self.handler(state, events)._replace(names=tuple(events))

    def record(self, state: HybridState[str], step: Step | None) -> None:
        self.states.append(state)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit, through tuples of tuples."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.array_equal(one, other))


def going_on(state: HybridState[str], events: Sequence[str]) -> Change[str]:
    return Change(state.mode, state.q, state.v, begins=False)


def integrator(
    system: Particles, name: str, until: float, count: int = 1, chatter: Any = None
) -> HybridIntegrator[str, str]:
    stepper = Stepper(METHODS[name], np.ones(count))
    few = Chatter(1e-6, 100, lambda recent: f"{len(recent)} in no time")
    return HybridIntegrator(system, stepper, (0.0, until), chatter or few)


def run(system: Particles, q: Any, v: Any, until: float, name: str = "default") -> HybridState[str]:
    steps = integrator(system, name, until, len(q))
    return steps.run(steps.begin(np.array(q, float), np.array(v, float), "free"))


def free(t: float, q: Array, v: Array) -> Array:
    return np.zeros(len(q))


def falling(t: float, q: Array, v: Array) -> Array:
    return np.full(len(q), -G)


# -- closed forms -----------------------------------------------------------------------------


def ball(restitution: float, guard: Any) -> Particles:
    """A ball that bounces off the ground."""

    def bounce(state: HybridState[str], events: Sequence[str]) -> Change[str]:
        return Change("free", 0.0 * state.q, -restitution * state.v, begins=True)

    watched = [Guard("hit", guard, -1, one_sided=True)]
    return Particles({"free": falling}, {"free": watched}, bounce)


@every_method
@pytest.mark.parametrize("guard", [Coordinate(0, 0, 1.0, 0.0), lambda t, q, v: float(q[0])])
def test_a_bouncing_ball(name: str, guard: Any) -> None:
    """From height h it hits first after sqrt(2 h / g), then after 2 e^k of that, each time."""
    h, e = 0.8, 0.7
    system = ball(e, guard)
    end = run(system, [h], [0.0], 2.0, name)
    first = np.sqrt(2 * h / G)
    hits = first * np.cumsum([1.0, *(2 * e**k for k in range(1, 30))])
    times = [t for t, _ in system.log]
    assert len(times) == np.sum(hits < 2.0) == 6
    np.testing.assert_allclose(times, hits[: len(times)], rtol=0, atol=1e-12)
    since, speed = 2.0 - times[-1], e ** len(times) * G * first
    np.testing.assert_allclose(end.v, speed - G * since, atol=1e-11)
    np.testing.assert_allclose(end.q, speed * since - G * since**2 / 2, atol=1e-11)


@every_method
@pytest.mark.parametrize("kind", ["coordinate", "function"])
@pytest.mark.parametrize("part", [1e-2, 1e-5])
def test_a_guard_that_dips_below_zero_for_a_moment_of_a_step(
    name: str, kind: str, part: float
) -> None:
    """A ball thrown to a little above a wire: it passes twice, within a small part of a step."""
    method = replace(METHODS[name], largest=0.5) if METHODS[name].step is None else METHODS[name]
    span = part * (method.step or 0.4)  # between the two passages
    wire = 0.5 * 1.0**2 * G - G * span**2 / 8  # the top is at 1 s, in the middle of a fixed step
    value: Any = Coordinate(0, 0, -1.0, wire)
    if kind == "function":
        value = lambda t, q, v: float(wire - q[0])  # noqa: E731
    guard = Guard("pass", value)
    system = Particles({"free": falling}, {"free": [guard]}, going_on)
    steps = HybridIntegrator(system, Stepper(method, np.ones(1)), (0.0, 1.9), Chatter(1e-6, 9, str))
    start = steps.begin(np.array([-1e-4 * G]), np.array([G * (1.0 + 1e-4)]), "free")
    steps.run(start._replace(h=0.37))
    top = 1.0 + 1e-4
    height = -1e-4 * G + G * top**2 / 2
    half = np.sqrt(2 * (height - wire) / G)
    times = [t for t, _ in system.log]
    np.testing.assert_allclose(times, [top - half, top + half], atol=1e-9)


@pytest.mark.parametrize("name", ["dopri5", "dop853", "long steps"])
def test_what_starts_at_zero_and_comes_back_in_the_same_step_is_caught(name: str) -> None:
    """Thrown up from the ground it hits it after 2 v / g, and not where it started."""
    system = ball(0.0, Coordinate(0, 0, 1.0, 0.0))
    steps = integrator(system, name, 0.5)
    state = steps.begin(np.zeros(1), np.array([0.3]), "free")
    steps.advance(state._replace(h=0.4))
    assert [label for _, label in system.log[:1]] == ["hit"]
    assert system.log[0][0] == pytest.approx(0.6 / G, abs=1e-12)


def test_what_starts_at_zero_and_goes_on_beyond_happens_at_once() -> None:
    system = ball(0.0, Coordinate(0, 0, 1.0, 0.0))
    steps = integrator(system, "dopri5", 0.5)
    steps.advance(steps.begin(np.zeros(1), np.array([-1e-3]), "free"))
    assert system.log == [(0.0, "hit")]


@pytest.mark.parametrize(("direction", "zeros"), [(1, (1.5, 3.5)), (-1, (0.5, 2.5)), (0, None)])
@every_method
def test_zeros_count_in_their_direction(
    name: str, direction: int, zeros: tuple[float, ...] | None
) -> None:
    guard = Guard("zero", lambda t, q, v: float(np.cos(np.pi * t)), direction)
    system = Particles({"free": free}, {"free": [guard]}, going_on)
    run(system, [0.0], [1.0], 4.0, name)
    times = [t for t, _ in system.log]
    np.testing.assert_allclose(times, zeros or (0.5, 1.5, 2.5, 3.5), atol=1e-11)


@every_method
def test_of_several_numbers_the_first_that_rises_counts(name: str) -> None:
    def rising(t: float, q: Array, v: Array) -> Array:
        return np.array([t - 0.9, -np.inf, np.sin(t) - np.sin(0.4), -1.0])

    guard = Guard("up", rising, 1, one_sided=True, slack=0.0)

    def end(state: HybridState[str], events: Sequence[str]) -> Change[str]:
        return Change(state.mode, state.q, state.v, begins=False, ended=True)

    system = Particles({"free": free}, {"free": [guard]}, end)
    assert run(system, [0.0], [1.0], 2.0, name).t == pytest.approx(0.4, abs=1e-12)


# -- instants ---------------------------------------------------------------------------------


def locking(state: HybridState[str], events: Sequence[str]) -> Change[str]:
    """Stand still from now on."""
    return Change("still", state.q, 0.0 * state.v, begins=True)


@every_method
@pytest.mark.parametrize("timed", [False, True])
def test_times_and_guards_at_one_instant_are_one_change(name: str, timed: bool) -> None:
    """Guards of time alone are at zero to the last bit where a step ends at their instant."""
    at = 0.25 if timed else 0.253  # where no step ends by itself
    guards = [
        Guard("one", lambda t, q, v: t - at),
        Guard("two", lambda t, q, v: float(np.exp(t) - np.exp(at))),
        Guard("later", lambda t, q, v: t - 0.3),
    ]
    if not timed:
        guards += [
            Guard("three", Coordinate(1, 1, 1.0, 2 * at)),
            Guard("four", lambda t, q, v: float(q[0] - at)),
        ]
    together = {"one", "two"} | ({"at 0.25"} if timed else {"three", "four"})
    for order in (guards, guards[::-1]):
        watched = {"free": order, "still": guards[:1]}
        system = Particles({"free": free, "still": free}, watched, locking, (0.25,) * timed)
        state = run(system, [0.0, 0.0], [1.0, 2.0], 1.0, name)
        assert {label for _, label in system.log} == together
        assert len(system.log) == len(together) and len({t for t, _ in system.log}) == 1
        assert system.log[0][0] == pytest.approx(at, abs=1e-13)
        assert state.mode == "still" and state.t == 1.0 and not state.v.any()
        np.testing.assert_allclose(state.q, [at, 2 * at], atol=1e-12)


@every_method
def test_steps_end_at_instants_and_the_grid_of_fixed_steps_goes_on(name: str) -> None:
    system = Particles({"free": free}, {"free": []}, going_on, (0.0, 1 / 3, 1.0))
    run(system, [0.0], [1.0], 1.2, name)
    assert [t for t, _ in system.log] == [0.0, 1 / 3, 1.0]
    times = np.array([state.t for state in system.states])
    assert 1 / 3 in times and 1.0 in times and times[-1] == 1.2
    if (step := METHODS[name].step) is not None:
        grid = step * np.arange(int(1.2 / step) + 1)
        assert max(np.abs(times - t).min() for t in grid) < 1e-15


@pytest.mark.parametrize("name", ["rk4", "long steps"])
def test_the_order_of_a_method_is_kept_through_events(name: str) -> None:
    """An oscillator whose spring changes where it passes its middle: halved steps, 1/16 the error.

    Quarter of a period with one spring, then with the other: amplitudes follow from the energy.
    """
    soft, hard = 1.0, 9.0

    def change(state: HybridState[str], events: Sequence[str]) -> Change[str]:
        return Change("hard" if state.mode == "free" else "free", state.q, state.v, begins=True)

    springs = {"free": lambda t, q, v: -soft * q, "hard": lambda t, q, v: -hard * q}
    errors = []
    for step in (0.1, 0.05):
        guard = Guard("middle", Coordinate(0, 0, 1.0, 0.0))
        system = Particles(springs, {"free": [guard], "hard": [guard]}, change)
        method = pl.MuntheKaas("rk4", step=step)
        steps = HybridIntegrator(
            system, Stepper(method, np.ones(1)), (0.0, 6.0), Chatter(0, 9, str)
        )
        end = steps.run(steps.begin(np.ones(1), np.zeros(1), "free"))
        # Half a turn with the hard spring takes pi / 3, with the soft one pi.
        first, second = np.pi / 2, np.pi / 2 + np.pi / 3
        assert [t for t, _ in system.log] == pytest.approx(
            [first, second, second + np.pi], abs=1e-3
        )
        since = 6.0 - (second + np.pi)
        errors.append(abs(float(end.q[0]) + np.sin(3.0 * since) / 3.0))
    assert 10 < errors[0] / errors[1] < 24 and errors[1] < 1e-5


@every_method
def test_a_step_to_an_event_is_as_good_as_any_and_ends_at_the_root(name: str) -> None:
    """The root of the dense output of a long step is corrected until the state is at zero."""
    guard = Guard("there", lambda t, q, v: float(q[0] ** 3 + q[0] - 1.0))
    swing = {"free": lambda t, q, v: -9.0 * np.sin(q)}
    system = Particles(swing, {"free": [guard]}, going_on)
    steps = integrator(system, name, 0.7)
    state = steps.begin(np.array([1.2]), np.zeros(1), "free")
    steps.run(state._replace(h=0.4))
    assert len(system.log) == 1
    there = next(state for state in system.states if state.t == system.log[0][0])
    # Three corrections, of which each leaves a small part of the error.
    assert abs(guard.at(*there[:3])) < (1e-6 if name == "long steps" else 1e-14)


def test_a_step_to_an_event_that_has_to_be_shorter_ends_before_it() -> None:
    """Where steps to the root are too inaccurate the motion goes on from where they end."""

    class Wary(Stepper):
        ends: tuple[float, ...] = ()

        def controlled(self, *arguments: Any) -> Any:
            flow, memory, t, h, end, state = arguments
            self.ends += (end,)
            if len(self.ends) in (2, 3):  # steps to the root
                end = h = 0.25 * h if len(self.ends) == 2 else 0.5 * h
            return super().controlled(flow, memory, t, min(h, end - t), end, state)

    guard = Guard("there", Coordinate(0, 0, 1.0, 0.6))
    system = Particles({"free": free}, {"free": [guard]}, going_on)
    stepper = Wary(METHODS["dopri5"], np.ones(1))
    steps = HybridIntegrator(system, stepper, (0.0, 1.0), Chatter(0, 9, str))
    state = steps.begin(np.zeros(1), np.ones(1), "free")
    state = steps.advance(state._replace(h=1.0))
    assert state.t == pytest.approx(0.15) and system.log == []
    steps.run(state)
    ((at, label),) = system.log
    assert label == "there" and at == pytest.approx(0.6, abs=1e-12)


# -- what does not get on ---------------------------------------------------------------------


@every_method
def test_chatter_ends_the_motion_and_says_what_happened(name: str) -> None:
    """A relay that drives the particle back to where it switches, and switches a little late."""

    def switch(state: HybridState[str], events: Sequence[str]) -> Change[str]:
        mode, late = ("back", -1e-9) if state.mode == "free" else ("free", 1e-9)
        return Change(mode, state.q, state.v + late, begins=True)

    guards = [
        Guard("on", lambda t, q, v: float(v[0]), -1),
        Guard("off", Coordinate(0, None, 1.0, 0.0), 1),
    ]
    forces = {"free": lambda t, q, v: -np.ones(1), "back": lambda t, q, v: np.ones(1)}
    system = Particles(forces, {"free": guards, "back": guards}, switch)

    def says(recent: Sequence[tuple[float, str]]) -> str:
        assert {label for _, label in recent} == {"on", "off"}
        return f"{len(recent)} events"

    steps = integrator(system, name, 2.0, chatter=Chatter(1e-6, 20, says))
    with pytest.raises(StepFailed, match="21 events") as caught:
        steps.run(steps.begin(np.zeros(1), np.array([0.25]), "free"))
    assert caught.value.reason == "chatter" and system.states[-1].t == pytest.approx(0.25, abs=1e-5)


def test_many_events_are_no_chatter_as_long_as_time_goes_on() -> None:
    guard = Guard("zero", lambda t, q, v: float(np.sin(400 * t - 0.1)))
    system = Particles({"free": free}, {"free": [guard]}, going_on)
    run(system, [0.0], [1.0], 1.2, "long steps")
    times = [t for t, _ in system.log]
    zeros = (0.1 + np.pi * np.arange(1000)) / 400
    np.testing.assert_allclose(times, zeros[zeros < 1.2], atol=1e-12)


# -- resuming ---------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_state_is_all_that_a_motion_needs_to_go_on(name: str, stop: int) -> None:
    """The same bits, from a state that was put away, as if it had never been interrupted."""

    def pendulum() -> Particles:
        def kick(state: HybridState[str], events: Sequence[str]) -> Change[str]:
            return Change(state.mode, state.q, 0.9 * state.v, begins=True)

        guards = [
            Guard("low", lambda t, q, v: float(np.sin(q[0])), 1),
            Guard("high", Coordinate(0, None, 1.0, 0.0)),
        ]
        swing = {"free": lambda t, q, v: -4.0 * np.sin(q)}
        return Particles(swing, {"free": guards}, kick, (0.5, 1.7))

    whole, parts = pendulum(), pendulum()
    steps = integrator(whole, name, 8.0)
    end = steps.run(steps.begin(np.array([1.0]), np.zeros(1), "free"))
    before = integrator(parts, name, 8.0)
    state = before.begin(np.array([1.0]), np.zeros(1), "free")
    for _ in range(stop):
        state = before.advance(state)
    put_away = pickle.dumps(state)
    before.advance(before.advance(state))  # what else is done does not matter
    later = pendulum()
    again = integrator(later, name, 8.0)
    resumed = again.run(pickle.loads(put_away))
    assert end.t == resumed.t and end.h == resumed.h and same(end.memory, resumed.memory)
    assert np.array_equal(end.q, resumed.q) and np.array_equal(end.v, resumed.v)
    assert end.watched is not None and resumed.watched is not None
    assert all(np.array_equal(*pair) for pair in zip(end.watched, resumed.watched, strict=True))
    assert later.log == whole.log[len(whole.log) - len(later.log) :] and len(whole.log) > 6


@pytest.mark.parametrize("stop", [18, 25, 60, 200])
@pytest.mark.parametrize("name", ["dopri5", "dop853"])
def test_a_stiff_motion_goes_on_from_any_state_to_the_last_bit(name: str, stop: int) -> None:
    """Before implicit steps take over, after that, and where explicit ones do again."""

    def damped() -> Particles:
        def f(t: float, q: Array, v: Array) -> Array:
            return np.asarray(-4.0 * np.sin(q) - 3e5 * np.sin(t) ** 20 * v)

        def kick(state: HybridState[str], events: Sequence[str]) -> Change[str]:
            return Change(state.mode, state.q, state.v + 0.5, begins=True)

        return Particles({"free": f}, {"free": []}, kick, (0.3, 2.0))

    whole = damped()
    steps = integrator(whole, name, 6.5)
    end = steps.run(steps.begin(np.array([1.0]), np.zeros(1), "free"))
    kinds = [state.memory.stiff is not None for state in whole.states]
    assert kinds.index(True) < len(kinds) - 1 - kinds[::-1].index(True) < len(kinds) - 1
    again = integrator(damped(), name, 6.5)
    resumed = again.run(pickle.loads(pickle.dumps(whole.states[min(stop, len(kinds) - 2)])))
    assert same(end[:4], resumed[:4]) and end.h == resumed.h and same(end.memory, resumed.memory)


def test_a_motion_at_rest_jumps_to_what_comes_next() -> None:
    class Resting(Particles):
        def ahead(self, state: HybridState[str]) -> Ahead | None:
            later = super().ahead(state)
            assert later is not None
            return None if state.passed >= 0.9 else later._replace(rests=True)

    def never(t: float, q: Array, v: Array) -> Array:
        assert t in (0.0,)
        return np.zeros(1)

    system = Resting({"free": never}, {"free": []}, going_on, (0.3, 0.9))
    end = run(system, [0.2], [0.0], 5.0)
    assert [t for t, _ in system.log] == [0.3, 0.9] == [state.t for state in system.states[1:]]
    assert end.ended and end.t == 0.9


@pytest.mark.parametrize("name", ["rk4", "long steps", "fixed radau9"])
def test_a_step_much_longer_than_its_motion_does_not_mislead(name: str) -> None:
    """Dry and viscous friction stop a particle within a small part of the step."""
    m, dry, viscous, v = 0.0118, 37.0, 37.0, 0.163

    def rest(state: HybridState[str], events: Sequence[str]) -> Change[str]:
        return Change("at rest", state.q, 0.0 * state.v, begins=True)

    def rubbing(t: float, q: Array, v: Array) -> Array:
        return -(dry + viscous * v) / m

    stops = Guard("stops", Coordinate(0, None, 1.0, 0.0), -1, one_sided=True)
    system = Particles(
        {"free": rubbing, "at rest": free}, {"free": [stops], "at rest": list[Guard[str]]()}, rest
    )
    end = run(system, [0.0], [v], 1.0, name)
    (instant, event), *_ = system.log
    assert event == "stops"
    assert instant == pytest.approx(m / viscous * np.log1p(v * viscous / dry), rel=1e-4)
    assert float(end.q[0]) == pytest.approx((m * v - dry * instant) / viscous, rel=1e-3)
