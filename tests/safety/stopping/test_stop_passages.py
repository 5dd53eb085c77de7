"""Stops that go through singular poses at speed, on their branch.

The oracles are the closed form of windows of parallelograms (`test_passages`) with the torque of a
brake beside gravity, runs with the same torque, and laws: energy, and tolerances that agree.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import pinloop as pl
from pinloop.integrate import NoBranch
from pinloop.safety.stopping.export import series_of
from pinloop.safety.stopping.stop_equations import StopEquations
from pinloop.simulation.passages import Passage

from ... import mechanisms as m
from ... import screw_tables as tables
from ...linkages import together, triple_parallelogram, windows
from ...screw_tables import Array
from ...simulation.test_passages import GRAVITY, angle_of, parallel, size
from ...simulation.test_tangents import flat, random_bars, rates, tangents
from ...states import URDF, robot

Brake = pl.safety.JointBrake


def precise(rtol: float) -> pl.MuntheKaas:
    return pl.MuntheKaas("dopri5", rtol=rtol, atol=rtol)


def braked(count: int, angle: float, rate: float, torque: float) -> Any:
    """``I th'' = -g S cos th - torque sign(th')`` until the bars come to rest."""
    _, S, I = size(count)

    def slope(t: float, y: Array) -> list[float]:
        return [y[1], (-GRAVITY * S * np.cos(y[0]) - np.sign(rate) * torque) / I]

    def rests(t: float, y: Array) -> float:
        return float(y[1])

    rests.terminal = True  # type: ignore[attr-defined]
    return solve_ivp(
        slope, (0, 9), [angle, rate], method="DOP853", rtol=1e-12, atol=1e-13, events=rests,
        dense_output=True,
    )  # fmt: skip


def holding(joints: dict[str, float], **more: Any) -> pl.Brakes:
    """Brakes that hold three times what they brake with."""
    return pl.Brakes(
        {name: Brake(dynamic_torque=x, static_torque=3 * x, **more) for name, x in joints.items()}
    )


# -- windows of parallelograms ---------------------------------------------------------------------


def test_torques_are_known_where_the_branch_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inside a step, where the rows of the loops say the same."""
    machine, looks = tables.build(windows(2)), list[bool]()
    q, v = parallel(machine, 0.3, -4.0)
    given: dict[str, Any] = {"brakes": holding({"low0": 120.0}), "method": precise(1e-8)}
    want = pl.stop(machine, q, v, **given)
    solve_all, locate = StopEquations.solve_all, Passage.locate

    def looking(self: StopEquations, t: Array, q: Array, v: Array) -> Array:
        before = self.passage
        looks.append(before is not None)
        solutions = solve_all(self, t, q, v)
        self.passed(float(t[0]), q[0], v[0])
        assert self.passage is before
        looks.append(False)
        return solutions

    def lost(self: Passage, *state: Any) -> Any:
        if looks and looks[-1]:
            raise NoBranch("it is not told there")
        return locate(self, *state)

    monkeypatch.setattr(StopEquations, "solve_all", looking)
    monkeypatch.setattr(Passage, "locate", lost)
    stop = pl.stop(machine, q, v, **given)
    assert stop.ledger.relative_error == pytest.approx(want.ledger.relative_error, abs=1e-7)
    assert any(looks) and np.array_equal(stop.run.q, want.run.q)


def test_a_branch_that_does_not_tell_what_happens_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars come to rest beside their flat pose: what holds them is decided by the rows there."""
    machine, gone, (_, S, I) = tables.build(windows(2)), list[Passage](), size(2)
    rest, torque = 0.02, 120.0
    taken = torque * (0.3 - rest) - GRAVITY * S * (np.sin(0.3) - np.sin(rest))
    q, v = parallel(machine, 0.3, -np.sqrt(2.0 * taken / I))
    given: dict[str, Any] = {"brakes": holding({"low0": torque}), "method": precise(1e-8)}
    want = pl.stop(machine, q, v, **given)
    leave_untold, locate = StopEquations.leave_untold, Passage.locate

    def leaving(self: StopEquations, *state: Any) -> None:
        gone.extend([] if self.passage is None else [self.passage])
        leave_untold(self, *state)

    def lost(self: Passage, *state: Any) -> Any:
        if self in gone:
            raise NoBranch("it is not told there")
        return locate(self, *state)

    monkeypatch.setattr(StopEquations, "leave_untold", leaving)
    monkeypatch.setattr(Passage, "locate", lost)
    stop = pl.stop(machine, q, v, **given)
    assert gone and stop.outcome == want.outcome == "stopped"
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(rest, abs=1e-7)


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("rate", "torque"), [(-4.0, 60.0), (-3.0, 20.0)])
def test_brakes_stop_windows_behind_their_flat_pose(
    count: int, rate: float, torque: float, rtol: float
) -> None:
    """A torque on the hinge of any bar does the same as long as all bars are parallel."""
    machine, torque = tables.build(windows(count)), count * torque
    q, v = parallel(machine, 0.3, rate)
    want = braked(count, 0.3, rate, torque)
    shares: list[dict[str, float]] = [
        {"low0": torque}, {f"low{count}": torque}, {"left0": torque},
        {"low0": 0.25 * torque, "left0": 0.75 * torque},
    ]  # fmt: skip
    assert want.y[0, -1] < 0.25
    for joints in shares:
        stop = pl.stop(machine, q, v, brakes=holding(joints), method=precise(rtol), until=5.0)
        assert stop.outcome == "stopped"
        rounding = 3e-9  # speeds of a billionth count as rest
        end = angle_of(machine, stop.run.q[-1])
        assert end == pytest.approx(want.y[0, -1], abs=0.1 * rtol + rounding)
        assert stop.stopping_time == pytest.approx(want.t[-1], abs=0.1 * rtol + rounding)
        assert abs(stop.ledger.error) < 2 * rtol * stop.ledger.turned_over
        heat = torque * (0.3 - want.y[0, -1])
        assert stop.ledger.heat == pytest.approx(heat, rel=1e-8 + rtol)


def test_a_run_with_the_torque_of_the_brake_moves_as_the_stop() -> None:
    machine = tables.build(windows(2))
    q, v = parallel(machine, 0.3, -3.0)
    stop = pl.stop(machine, q, v, brakes=holding({"left1": 40.0}), method=precise(1e-10))
    # Its joint turns against the bars.
    force = pl.Torque("left1", lambda t: -40.0)
    time = 0.9 * stop.stopping_time
    run = pl.simulate(machine, q, v, until=time, forces=[force], method=precise(1e-10))
    assert angle_of(machine, run.q[-1]) < -0.1
    _, q_there, v_there = stop.run(time)
    np.testing.assert_allclose(q_there, run.q[-1], atol=1e-8)
    np.testing.assert_allclose(v_there, run.v[-1], atol=1e-7)


@pytest.mark.parametrize("rate", [-3.0, 3.0])
def test_drives_take_windows_through_their_flat_pose(rate: float) -> None:
    """The torque that this takes is ``I th'' + g S cos th``, in the flat pose too."""
    machine, (_, S, I) = tables.build(windows(2)), size(2)
    q, v = parallel(machine, -0.2 * np.sign(rate), rate)
    motor = Brake(dynamic_torque=200.0, deceleration=6.0)
    stop = pl.stop(machine, q, v, brakes=pl.Brakes({"low1": motor}), category=1)
    assert stop.outcome == "stopped"
    end = -0.2 * np.sign(rate) + 0.5 * rate * abs(rate) / 6.0
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(end, abs=1e-8)
    angles = np.linspace(-0.2 * np.sign(rate), end, 1001)
    load = -6.0 * np.sign(rate) * I + GRAVITY * S * np.cos(angles)
    hold = GRAVITY * S * np.cos(end)
    peak = max(np.abs(load).max(), abs(hold))
    assert stop.joints["low1"].peak_torque == pytest.approx(peak, rel=1e-6)
    assert abs(stop.ledger.error) < 1e-7 * stop.ledger.turned_over
    series = series_of(stop, 2e-3)
    moving = series.t < 0.99 * stop.stopping_time
    want = -6.0 * np.sign(rate) * I + GRAVITY * S * np.cos(series.q[:, 0] + np.pi / 2)
    found = series.torque[:, machine.coordinates("low1").v.start]
    # One step leads from before the pose to behind it; rows of the loops lose digits beside it.
    np.testing.assert_allclose(found[moving], want[moving], rtol=2e-9)


def test_a_joint_is_held_while_the_others_pass() -> None:
    """The brake of the cart takes ``-S (sin th th'' + cos th th'^2)``, in the flat pose too."""
    machine, (_, S, _) = tables.build(windows(2, on_cart=True)), size(2)
    q, v = parallel(machine, 0.3, -4.0)
    brakes = holding({"slide": 1e4, "low0": 60.0})
    want = braked(2, 0.3, -4.0, 60.0)
    stop = pl.stop(machine, q, v, brakes=brakes, until=5.0)
    assert stop.outcome == "stopped"
    assert not np.ptp(stop.run.q[:, machine.coordinates("slide").q]).any()
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(want.y[0, -1], abs=1e-8)
    t = np.linspace(0, want.t[-1], 2001)
    angle, rate = want.sol(t)
    _, S, I = size(2)
    slowing = (-GRAVITY * S * np.cos(angle) + 60.0) / I
    load = -S * (np.sin(angle) * slowing + np.cos(angle) * rate**2)
    assert stop.joints["slide"].peak_torque == pytest.approx(np.abs(load).max(), rel=1e-6)
    series = series_of(stop, 2e-3)
    found = series.torque[:, machine.coordinates("slide").v.start]
    there = series.t < 0.99 * want.t[-1]
    np.testing.assert_allclose(found[there], np.interp(series.t[there], t, load), atol=2e-3)


@pytest.mark.parametrize("share", [0.98, 1.02])
def test_a_start_in_the_flat_pose_decides_on_its_branch(share: float) -> None:
    """With ``cos th = 1`` the cart is pulled by ``S th'^2``, which grows as the bars fall."""
    machine, (_, S, _) = tables.build(windows(2, on_cart=True)), size(2)
    q, v = parallel(machine, 0.0, -4.0)
    rest = Brake(dynamic_torque=1.0, static_torque=share * S * 16.0)
    brakes = pl.Brakes({"slide": rest, "low0": Brake(dynamic_torque=90.0)})
    want = braked(2, 0.0, -4.0, 90.0)
    stop = pl.stop(machine, q, v, brakes=brakes, until=5.0, method=precise(1e-9))
    slide = machine.coordinates("slide")
    assert stop.history.phases[0].stuck[slide.v].all() == (share > 1.0)
    assert abs(stop.ledger.error) < 1e-7 * stop.ledger.turned_over
    if share > 1.0:  # brakes slow the bars down faster than their load grows
        assert stop.run.q[-1][slide.q] == 0.0
        assert angle_of(machine, stop.run.q[-1]) == pytest.approx(want.y[0, -1], abs=1e-8)


def test_the_history_of_a_stop_knows_its_branches() -> None:
    """In the flat pose itself ``I th'' = -g S cos th - torque sign(th')``, pickled or not."""
    machine, (_, S, I) = tables.build(windows(2)), size(2)
    q, v = parallel(machine, 0.0, -4.0)
    stop = pl.stop(machine, q, v, brakes=holding({"low0": 90.0}), until=5.0)
    for history in (stop.history, pickle.loads(pickle.dumps(stop.history))):
        equations, run = history.equations(), history.run
        history.enter(equations, 0)
        a = equations.solve(0.0, run.q[0], run.v[0]).a
        assert a[0] == pytest.approx((-GRAVITY * S + 90.0) / I, rel=1e-9)
        t = 0.3 * float(run.t[1])
        history.enter(equations, 0, inside=True)
        _, q_there, v_there = run(t)
        angle = angle_of(machine, q_there)
        a = equations.solve(t, q_there, v_there).a
        assert a[0] == pytest.approx((-GRAVITY * S * np.cos(angle) + 90.0) / I, rel=1e-8)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_at_its_own_node_a_branch_moves_as_by_its_rows(engine: str) -> None:
    """Also where a stage is beside the branch: of that the rows of the loops know nothing."""
    machine = robot("sevenbar")
    q = pl.assemble(machine, {"joint_1": 0.3, "joint_4": 0.927295 - np.pi - 0.05})
    v = pl.consistent_velocity(machine, q, {"joint_1": -2.0, "joint_4": 3.0})
    free = pl.Brakes(dict.fromkeys(("joint_1", "joint_4"), Brake(kind="none")))
    stop = pl.stop(machine, q, v, brakes=free, until=0.1)
    history, rng, regular = stop.history, np.random.default_rng(5), set[bool]()
    equations = history.equations()
    if engine == "python":
        equations.kernel = None
    for k in [k for k, start in enumerate(history.branches) if start is not None]:
        history.enter(equations, k)
        passage = equations.passage
        assert passage is not None
        for off in 0.0, 1e-4:
            t, beside = float(stop.run.t[k]), off * rng.normal(size=(2, machine.nv))
            state = t, stop.run.q[k] + beside[0], stop.run.v[k] + beside[1]
            want = passage.acceleration(*state)
            np.testing.assert_allclose(equations.solve(*state).a, want, rtol=1e-8, atol=1e-8)
            regular.add(passage.locate(*state).is_regular)
    assert regular == {False, True}


@pytest.mark.parametrize(("angle", "regular"), [(1e-3, False), (0.3, True)])
def test_rows_tell_what_a_branch_does_where_they_are_regular(angle: float, regular: bool) -> None:
    machine = tables.build(windows(2))
    q, v = parallel(machine, angle, 0.0)
    passage = Passage(pl.EquationsOfMotion(machine), 0.0, q, v)
    assert passage.locate(0.0, q, v).is_regular == regular


def test_a_cart_that_comes_loose_in_the_flat_pose() -> None:
    """Its brake gives way where the load is largest: the same instant for all tolerances."""
    machine, (_, S, I) = tables.build(windows(1, on_cart=True)), size(1)
    q, v = parallel(machine, 0.3, -4.0)
    want = braked(1, 0.3, -4.0, 0.0)
    flat_at = float(np.interp(0.0, -want.y[0][want.y[0] > -0.5], want.t[want.y[0] > -0.5]))
    t = np.linspace(0.0, flat_at, 2001)
    angle, rate = want.sol(t)
    load = -S * (np.sin(angle) * -GRAVITY * S * np.cos(angle) / I + np.cos(angle) * rate**2)
    rest = Brake(dynamic_torque=1.0, static_torque=float(np.abs(load).max()) * 0.999)
    ends = []
    for rtol in (1e-7, 1e-10):
        stop = pl.stop(
            machine, q, v, brakes=pl.Brakes({"slide": rest}), until=0.4, method=precise(rtol)
        )
        loose = [t for t, text in stop.events if text == "slide comes loose"]
        assert len(loose) == 1 and loose[0] < flat_at
        ends.append(np.r_[loose[0], stop.run.q[-1]])
        assert abs(stop.ledger.error) < 1e-6 * stop.ledger.turned_over
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)


@pytest.mark.parametrize("where", ["one", "all"])
def test_windows_that_come_to_rest_in_their_flat_pose(where: str) -> None:
    """Held by one brake this hangs on the last bit; held everywhere it does not."""
    machine, torque = tables.build(windows(1)), 60.0
    _, S, I = size(1)

    def slope(t: float, y: Array) -> list[float]:
        return [y[1], (-GRAVITY * S * np.cos(y[0]) + torque) / I]

    # From rest in the flat pose back in time: even in velocity, so it is the motion forward.
    back = solve_ivp(slope, (0, 0.3), [0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    q, v = parallel(machine, float(back.y[0, -1]), -float(back.y[1, -1]))
    share = {"low0": torque} if where == "one" else dict.fromkeys(machine.joints, torque / 3)
    stop = pl.stop(machine, q, v, brakes=holding(share), method=precise(1e-10), until=2.0)
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(0.0, abs=1e-8)
    assert stop.outcome in (("stopped",) if where == "all" else ("stopped", "does not hold"))
    assert abs(stop.ledger.error) < 1e-8 * stop.ledger.turned_over


@pytest.mark.parametrize("category", [0, 1])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_start_in_the_flat_pose_has_as_many_drives_as_its_branch(
    category: int, share: float
) -> None:
    """To first order two cranks move independently there; on the branch one leads the other.

    Drives go on until power goes, or slow the leading crank down; the brake of the other one helps.
    """
    machine = tables.build(windows(1))
    q, v = parallel(machine, 0.0, -4.0)
    lead = Brake(dynamic_torque=60.0 * share, static_torque=400.0, deceleration=20.0)
    other = Brake(dynamic_torque=60.0 * (1.0 - share) + 1e-9, static_torque=400.0, deceleration=7.0)
    brakes = pl.Brakes({"low0": lead, "low1": other}, pl.safety.Chain(sensor=0.02))
    stop = pl.stop(machine, q, v, brakes=brakes, category=category, method=precise(1e-9))
    assert stop.outcome == "stopped"
    angle, time = -4.0 * 0.02, 0.02
    if category == 1:
        end, time = angle - 0.5 * 4.0**2 / 20.0, time + 4.0 / 20.0
    else:
        want = braked(1, angle, -4.0, 60.0)
        end, time = want.y[0, -1], time + want.t[-1]
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(end, abs=1e-7)
    assert stop.stopping_time == pytest.approx(time, abs=1e-6)


@pytest.mark.parametrize("rounding", [0.0, 1e-13, -1e-13])
def test_what_comes_loose_in_the_flat_pose_follows_its_loads(rounding: float) -> None:
    """Held by drives at two joints the pose is not singular, and then it is."""
    machine, (_, S, I) = tables.build(windows(1)), size(1)
    weak = dict.fromkeys(("low0", "low1"), Brake(dynamic_torque=2.5))
    brakes = pl.Brakes(weak, pl.safety.Chain(drive_off=0.05))
    q, v = parallel(machine, 0.0, 0.0)
    v[machine.coordinates("left0").v] = rounding
    stop = pl.stop(machine, q, v, brakes=brakes, until=0.35, method=precise(1e-9))
    assert stop.outcome == "does not hold"
    fall = solve_ivp(
        lambda t, y: [y[1], (-GRAVITY * S * np.cos(y[0]) + 5.0) / I],
        (0.0, 0.3), [0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(fall.y[0, -1], abs=1e-7)


def test_loads_along_no_branch_end_a_stop_that_names_the_branches() -> None:
    """One crank is held back more than the other: neither branch turns them so."""
    machine = tables.build(windows(1))
    weak = {"low0": Brake(dynamic_torque=3.0), "left0": Brake(dynamic_torque=2.0)}
    brakes = pl.Brakes(weak, pl.safety.Chain(drive_off=0.05))
    with pytest.raises(pl.StopFailed, match="branches of the motion meet there") as failed:
        pl.stop(machine, *parallel(machine, 0.0, 0.0), brakes=brakes, until=0.35)
    text = str(failed.value)
    for part in ("('low0' 1, 'left0' -1, 'low1' 1)", "('left0' 1, 'low1' 1)"):
        assert text.count(part) == 1
    assert "in the pose ('low0' -1.57, 'left0' 1.57, 'low1' -1.57)" in text
    assert failed.value.result.run.t[-1] == pytest.approx(0.05)


@pytest.mark.parametrize("held", [["left", "top"], ["left"]])
def test_what_is_held_does_not_hide_that_the_others_pass(held: list[str]) -> None:
    """Beside the window a parallelogram stands still: held, its rows depend on each other."""
    both = windows(1), m.parallelogram()
    bodies = [body for entries in both for body in entries["bodies"]]
    machine = tables.build(together("both", *both) | {"bodies": bodies})
    q, v = parallel(tables.build(windows(1)), 0.3, -3.0)
    q, v = np.append(q, [0.0, 0.0, 0.0]), np.append(v, [0.0, 0.0, 0.0])
    assert machine.joints[:3] == ("low0", "left0", "low1")
    want = braked(1, 0.3, -3.0, 20.0)
    assert want.y[0, -1] < -0.1
    brakes = holding({"low0": 20.0} | dict.fromkeys(held, 1e3))
    stop = pl.stop(machine, q, v, brakes=brakes, method=precise(1e-9))
    assert stop.outcome == "stopped"
    assert any(start is not None for start in stop.history.branches)
    assert angle_of(machine, stop.run.q[-1]) == pytest.approx(want.y[0, -1], abs=1e-8)


# -- other linkages --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("which", [0, 1])
def test_flat_four_bars_are_braked_on_their_branch(seed: int, which: int) -> None:
    """Two branches cross; a run with the same torque and another tolerance go the same way."""
    bars = random_bars(seed)
    machine = flat(bars)
    rocker = float(tangents(bars)[which])
    speed = 20.0 / max(1.0, abs(rocker))
    ahead = -0.01 * rates(bars, speed, speed * rocker)
    q = pl.assemble(machine, machine.integrate(machine.neutral, ahead), limits=False)
    v = pl.consistent_velocity(machine, q, {"left": speed})
    energy = 0.5 * float(v @ pl.EquationsOfMotion(machine).mass(q) @ v)
    torque = 0.2 * energy / abs(0.02 * speed)
    brakes, force = holding({"left": torque}), pl.Torque("left", lambda t: -torque)
    options: dict[str, Any] = {"until": 0.02, "method": precise(1e-10)}
    try:
        stop = pl.stop(machine, q, v, brakes=brakes, **options)
    except pl.StopFailed as failed:
        raise AssertionError(failed) from failed
    run = pl.simulate(machine, q, v, forces=[force], **options)
    assert stop.run.q[0, 0] * stop.run.q[-1, 0] < 0.0, "it has not passed"
    np.testing.assert_allclose(stop.run.q[-1], run.q[-1], atol=1e-8)
    assert abs(stop.ledger.error) < 1e-8 * energy
    assert stop.ledger.heat == pytest.approx(torque * float(np.ptp(stop.run.q[:, 0])), rel=1e-6)


def by_angle(machine: pl.Mechanism, joint: str, angle: float, rate: float) -> tuple[Array, Array]:
    q = pl.assemble(machine, {joint: angle})
    return q, pl.consistent_velocity(machine, q, {joint: rate})


@dataclass(frozen=True)
class Swing:
    """A linkage that swings through flat poses, and is braked at a joint."""

    machine: pl.Mechanism
    joint: str
    angle: float
    rate: float


SWINGS = {
    "spherical four-bar": lambda: Swing(robot("spherical_fourbar"), "joint_1", 0.4, -3.0),
    "fast spherical four-bar": lambda: Swing(robot("spherical_fourbar"), "joint_1", 2.8, 8.0),
    "parallelogram": lambda: Swing(tables.build(m.parallelogram()), "left", -0.9, -3.0),
    "three cranks": lambda: Swing(tables.build(triple_parallelogram()), "low0", -0.9, -3.0),
}


@pytest.mark.parametrize("category", [0, 1])
@pytest.mark.parametrize("name", SWINGS)
def test_tolerances_and_energies_of_swings_agree(name: str, category: int) -> None:
    """Brakes that come late, or drives that take the linkage through at a falling speed."""
    swing = SWINGS[name]()
    machine, at = swing.machine, swing.machine.coordinates(swing.joint)
    q, v = by_angle(machine, swing.joint, swing.angle, swing.rate)
    energy = 0.5 * float(v @ pl.EquationsOfMotion(machine).mass(q) @ v)
    brake = Brake(dynamic_torque=0.1 * energy, delay=0.3, deceleration=swing.rate**2 / 1.6)
    joints = dict.fromkeys(machine.joints, Brake(kind="none")) | {swing.joint: brake}
    ends = []
    for rtol in (1e-7, 1e-9):
        stop = pl.stop(
            machine, q, v, brakes=pl.Brakes(joints), category=category, until=2.0,
            method=precise(rtol),
        )  # fmt: skip
        assert abs(stop.ledger.error) < 1e2 * rtol * stop.ledger.turned_over
        ends.append(stop.run.q[-1])
        passed = any(start is not None for start in stop.history.branches)
        assert passed or category == 1  # steps may be so long that none ends near the pose
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
    if category == 1:
        travel = float(stop.run.q[-1][at.q][0] - q[at.q][0])
        assert travel == pytest.approx(0.8 * np.sign(swing.rate), abs=1e-7)


@pytest.mark.parametrize("flat", [0.01, 0.006])
def test_what_is_held_beside_its_flat_pose_swings_without_branches(flat: float) -> None:
    """A rhombus on a four-bar is held, so that it stays as flat as it is: a rigid body.

    What is left swings for seconds, and keeps its energy, by its rows: no pose where branches meet
    is near on its way. Branches are followed at fifty times the cost.
    """
    machine = robot("sevenbar")
    q = pl.assemble(machine, {"joint_1": 0.3, "joint_4": 0.927295 - np.pi - flat})
    v = pl.consistent_velocity(machine, q, {"joint_1": -2.0, "joint_4": 0.0})
    stop = pl.stop(machine, q, v, brakes=holding({"joint_4": 1e4}), until=3.0)
    rhombus = [machine.coordinates(f"joint_{k}").q.start for k in (4, 5, 6)]
    assert abs(stop.run.q[-1][0] - q[0]) > 0.3 and stop.run.t[-1] == 3.0
    assert np.abs(stop.run.q[:, rhombus] - q[rhombus]).max() < 1e-7
    assert stop.ledger.relative_error < 1e-7
    assert all(start is None for start in stop.history.branches)


def test_steps_that_look_at_a_branch_from_far_off_it_are_tried_again() -> None:
    """A brake engages while the linkage, nearly flat, hardly moves: the first step is too long.

    Its stages were a turn away, two thousand nodes of the branch, more than Python calls itself.
    """
    machine = robot("spherical_fourbar")
    q = pl.assemble(machine, np.array([6.73e-5, -6.2832, -1.47e-5]))
    v = pl.consistent_velocity(machine, q, {"joint_1": -0.0207})
    brakes = pl.Brakes.template(machine)
    late = replace(brakes.joints["joint_1"], delay=0.010675320236141584)
    stop = pl.stop(machine, q, v, brakes=replace(brakes, joints={"joint_1": late}))
    assert stop.outcome == "stopped" and stop.ledger.relative_error < 1e-6
    assert (
        stop.ledger.kinetic_before < 1e-2
        and np.abs(machine.difference(q, stop.run.q[-1])).max() < 0.1
    )


def test_a_delta_robot_passes_a_pose_right_behind_a_sharp_turn() -> None:
    """Without the brake of an arm it folds: regular poses are near on both sides of the pose only.

    Fifty ms before, platform and rods are thrown round at 60 rad/s.
    """
    machine = robot("delta")
    guess = [
        -0.558, 0.767, 0.352, 0.51, 0.169, 0.539, 0.118, 0.782, 0.29, -0.1, 0.801, 0.054, 0.587,
        0.449, 0.572, 0.346, 0.468, 0.577, 0.613, 0.36, 0.524, 0.469, 0.286, -0.163, 0.742, -0.033,
        0.65, -0.419, 0.656, -0.238, 0.582,
    ]  # fmt: skip
    q = pl.assemble(machine, pin.normalize(machine.model, np.array(guess)))
    brakes = pl.Brakes.from_yaml(URDF / "delta.brakes.yaml").missing("arm_1").late("arm_3", 0.05)
    coarse, fine = (
        pl.stop(machine, q, np.zeros(machine.nv), brakes=brakes, until=2.0, method=method)
        for method in (pl.MuntheKaas(), precise(1e-9))
    )
    assert any(start is not None for start in coarse.history.branches)
    arms = [machine.coordinates(name).q.start for name in machine.actuated]
    times = np.linspace(1.9, 2.0, 20)
    np.testing.assert_allclose(coarse.run(times).q[:, arms], fine.run(times).q[:, arms], atol=1e-8)
    assert coarse.ledger.relative_error < 1e-7


def test_a_delta_robot_falls_through_the_pose_in_which_its_rods_are_parallel() -> None:
    """There its platform could turn; three freedoms and six spins of rods meet another one."""
    machine = robot("delta")
    reach = 1.711023101347454  # elbows are as far apart as the balls of the platform
    arms = dict(zip(machine.actuated, reach - np.array([0.05, 0.055, 0.045]), strict=True))
    speeds = dict(zip(machine.actuated, [2.0, 2.2, 1.8], strict=True))
    q = pl.assemble(machine, arms, limits=False)
    v = pl.consistent_velocity(machine, q, speeds)
    brakes, ends = holding(dict.fromkeys(arms, 2.0)), []
    for rtol in (1e-6, 1e-8):
        stop = pl.stop(machine, q, v, brakes=brakes, method=precise(rtol), until=0.08)
        assert any(start is not None for start in stop.history.branches)
        assert abs(stop.ledger.error) < 10 * rtol * stop.ledger.turned_over
        ends.append(stop.run.q[-1])
    places = stop.run.q[:, [machine.coordinates(name).q.start for name in arms]]
    assert (places.max(axis=0) > reach).all()
    assert np.abs(machine.difference(*ends)).max() < 1e-3
