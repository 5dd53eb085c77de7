"""What must hold in every phase of a stop: laws of brakes, gears and drives, recomputed by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.dynamics.stick_slip import RELEASE, share_evenly
from pinloop.model.description import GROUND
from pinloop.safety.stopping.phase import Phase, pinned_bounds
from pinloop.safety.stopping.prepared_robot import prepare_robot
from pinloop.safety.stopping.reference import EvenPiece, Piece
from pinloop.safety.stopping.stick_slip import PhaseStart, decide_phase
from pinloop.safety.stopping.stop_equations import StopEquations, _separate, _shared

from ...screw_tables import Array, joint
from .robots_to_stop import G, arm_table, brakes, made, on_axis, pendulum, slider, solid

# -- an instant at which everything is decided -----------------------------------------------------


class Drawn(NamedTuple):
    """An arm at an instant, with drives that follow, pull or have no power, and rising brakes."""

    equations: StopEquations
    now: PhaseStart
    by: list[pl.safety.JointBrake]


@dataclass(frozen=True)
class _Bent:
    """A piece whose rate changes."""

    reference: Array
    rate: Array
    start: float = 0.0

    @property
    def may_reverse(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.rate), dtype=bool)

    def v(self, t: float) -> Array:
        return self.reference + self.rate * (t + t * t)

    def a(self, t: float) -> Array:
        return self.rate * (1 + 2 * t)

    def slowed(self, start: float, duration: float) -> Piece:
        raise NotImplementedError


def _drawn(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    arm = pl.from_screws(arm_table(rng, n))
    entries = {}
    for name in arm.joints:
        torque = rng.uniform(1, 60)
        entries[name] = pl.safety.JointBrake(
            side=("motor", "joint")[rng.integers(2)],
            efficiency=float(rng.choice([1.0, 0.8, 0.6])),
            rotor_inertia=float(rng.choice([0.0, rng.uniform(0, 4)])),
            dynamic_torque=torque,
            static_torque=torque * rng.uniform(1, 1.6),
            coulomb=float(rng.choice([0.0, rng.uniform(0, 40)])),
            drive_torque=rng.uniform(1, 80),
            short_circuit=rng.uniform(0, 2),
        )
    machine = prepare_robot(arm, pl.Brakes(entries, pl.safety.Chain()))
    reference = rng.choice([0.0, 1.0, -1.0], n)
    rate = rng.uniform(-3, 3, n) * (rng.random(n) < 0.5) * (reference != 0.0)
    elsewhere = np.where(rng.random(n) < 0.5, reference, rng.uniform(-2, 2, n))
    now = PhaseStart(
        t=0.0,
        q=rng.uniform(-3, 3, n),
        v=np.where(rng.random(n) < 0.6, 0.0, elsewhere),
        ramp=rng.uniform(0, 0.5, n),
        slope=np.where(rng.random(n) < 0.5, 0.0, 4.0),
        piece=_Bent(reference, rate),  # type: ignore[arg-type]
        drives=rng.random(n) < 0.7,
        limited=True,
        shorted=bool(rng.random() < 0.3),
        blocked=np.zeros(n, dtype=np.int64),
        reversing_gears={},
        slipped=np.zeros(n),
    )
    return Drawn(StopEquations(machine.equations, machine.train), now, list(entries.values()))


def _through(S: float, way: float, efficiency: float) -> float:
    return S * efficiency if S * way > 0 else S / efficiency


def _check_joint(drawn: Drawn, phase: Phase, k: int, a: Array, torque: float) -> None:
    """Compare the torque on a joint with the law of its brake, gear, friction and drive."""
    now, one = drawn.now, drawn.by[k]
    v, pull = float(now.v[k]), float(phase.sliding.saturated_drive_sign[k])
    part, rate = float(now.ramp[k]), float(now.piece.a(0.0)[k])
    # A rotor behind a gear without losses turns with the mass matrix.
    assert one.rotor_inertia is not None and one.drive_torque is not None
    rotor = one.rotor_inertia if one.efficiency < 1.0 else 0.0
    motor = part if one.side == "motor" else 0.0
    beside = one.coulomb + (part - motor) * one.dynamic_torque
    shorted = one.short_circuit * v * now.shorted
    if phase.stuck[k]:
        assert a[k] == 0.0 == v
        helps = one.drive_torque if now.drives[k] and pull == 0.0 else 0.0
        hold = motor * one.static + helps
        beside = one.coulomb + (part - motor) * one.static
        least = _through(pull * one.drive_torque - hold, 1.0, one.efficiency) - beside
        most = _through(pull * one.drive_torque + hold, -1.0, one.efficiency) + beside
        assert least - 1e-6 <= torque <= most + 1e-6
    elif phase.follow[k]:
        way = float(np.sign(now.piece.v(0.0)[k]))
        assert a[k] == rate and v == now.piece.v(0.0)[k]
        behind = torque + way * beside
        S = behind / one.efficiency if behind * way > 0 else behind * one.efficiency
        drive = S + way * motor * one.dynamic_torque + shorted + rotor * rate
        assert abs(drive) <= one.drive_torque + 1e-6
    else:
        way = float(np.sign(v)) or float(np.sign(a[k]))
        assert phase.sliding.direction[k] == way
        if now.drives[k]:
            assert pull == np.sign(now.piece.v(0.0)[k] - v) or pull * (rate - a[k]) > 0.0
        S = pull * one.drive_torque - way * motor * one.dynamic_torque - shorted - rotor * a[k]
        assert torque == pytest.approx(_through(S, way, one.efficiency) - way * beside, abs=1e-6)


@pytest.mark.parametrize("first", range(1340, 1560, 20))
def test_decided_joints_obey_their_laws(first: int) -> None:
    """Torques by inverse dynamics of what was decided, against the laws, at once and later."""
    for seed in range(first, first + 20):
        drawn = _drawn(seed)
        equations, now = drawn.equations, drawn.now
        phase = decide_phase(equations, now)
        equations.enter(phase)
        a = equations.solve(0.0, now.q, now.v).a
        model = equations.equations.robot.model
        torques = pin.rnea(model, model.createData(), now.q, now.v, a)
        for k, torque in enumerate(torques):
            _check_joint(drawn, phase, k, a, float(torque))
        assert equations.passed(0.0, now.q, now.v).max(initial=-np.inf) <= 1e-6


@pytest.mark.parametrize("first", range(1340, 1400, 20))
def test_bounds_that_are_kept_for_a_phase(first: int) -> None:
    """They are those of every single instant, and of the phase that was entered last."""
    for seed in range(first, first + 20):
        equations, now, _ = _drawn(seed)
        phases = [decide_phase(equations, now)]
        phases.append(decide_phase(equations, now_with_more_brake(now)))
        for phase in (*phases, phases[0]):
            equations.enter(phase)
            for t, v in ((0.0, now.v), (0.05, 1.5 * now.v), (0.12, -now.v)):
                kept = np.array(equations.tables.bounds(t, v))[:, phase.pinned]
                fresh = np.array(pinned_bounds(equations.train, phase, t, v))[:, phase.pinned]
                np.testing.assert_allclose(kept, fresh, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("first", range(1340, 1440, 20))
def test_the_states_of_a_step_are_compared_with_the_bounds_all_at_once(first: int) -> None:
    """The largest excess of all states since the last `forget`, bounds taken one by one."""
    found = []
    for seed in range(first, first + 20):
        equations, now, _ = _drawn(seed)
        phase = decide_phase(equations, now)
        equations.enter(phase)
        power, worst = phase.gear_power_sign != 0.0, -np.inf
        equations.acceleration(0.0, now.q, 30.0 * now.v)  # is not to count
        equations.forget()
        assert equations.bound_violation() == -np.inf
        for t, faster in ((0.0, 1.0), (0.05, 1.5), (0.12, -1.0)):
            equations.acceleration(t, now.q + 10 * t, faster * now.v)
            solved = equations.solve(t, now.q + 10 * t, faster * now.v)
            low, high = pinned_bounds(equations.train, phase, t, faster * now.v)
            over = (
                np.maximum(low - solved.holding_torque, solved.holding_torque - high)
                - RELEASE * phase.noise
            )
            over = over[phase.pinned]
            turned = -(phase.gear_power_sign * solved.gear_output) - RELEASE * phase.noise
            turned = turned[power]
            worst = max([worst, *over, *turned])
            assert equations.bound_violation() == pytest.approx(worst, rel=1e-12, abs=1e-12)
            single = equations.passed(t, now.q + 10 * t, faster * now.v).max(initial=-np.inf)
            assert single == pytest.approx(max([-np.inf, *over, *turned]), rel=1e-12, abs=1e-12)
        found.append(worst)
    assert max(found) > 0.1 and sum(np.isfinite(found)) > 10


def now_with_more_brake(now: PhaseStart) -> PhaseStart:
    """The same instant with brakes that are further on."""
    return PhaseStart(**{**vars(now), "ramp": now.ramp + 0.4})


@pytest.mark.parametrize("excess", [-3.0, 0.0, 2.0])
@pytest.mark.parametrize("up", [1.0, -1.0])
def test_torques_of_tied_joints_are_shared_as_evenly_as_their_brakes_allow(
    excess: float, up: float
) -> None:
    """Two hoists tied to each other: they slip when both brakes together are too weak."""
    masses, first = np.array([5.0, 1.0]), 12.0
    load = masses.sum() * G
    torques = np.array([first, load - excess - first])
    rail = [0.0, 0.0, up]
    robot = made(
        [solid("body_a", masses[0]), solid("body_b", masses[1])],
        [joint("a", "prismatic", GROUND, "body_a", [0, 0, 0], rail),
         joint("b", "prismatic", GROUND, "body_b", [0, 1, 0], rail)],
        couplings=[{"name": "tie", "joint": "b", "source": "a", "ratio": 1.0}],
    )  # fmt: skip
    by = brakes(a={"dynamic_torque": torques[0]}, b={"dynamic_torque": torques[1]})
    machine = prepare_robot(robot, by)
    equations = StopEquations(machine.equations, machine.train)
    none, no = np.zeros(2), np.zeros(2, dtype=bool)
    still = EvenPiece(0.0, none)
    now = PhaseStart(
        0.0, robot.neutral, none, none + 1, none, still, no, False, False,
        none.astype(np.int64), {}, none,
    )  # fmt: skip
    decided = decide_phase(equations, now)
    assert decided.stuck.all() == decided.redundant == (excess <= 0.0)
    at_rest = replace(decided.sliding, direction=none)
    stuck = replace(decided, sliding=at_rest, stuck=~no, redundant=True)
    equations.enter(stuck)
    # Both are equally far from their bounds: of what is missing each has half.
    assert equations.passed(0.0, now.q, none).max() == pytest.approx(excess / 2, abs=1e-9)
    way = -int(up)
    expected = way * max(excess, 0.0) / 2
    assert equations.breaking_away(0.0, now.q, none) == pytest.approx([expected] * 2, abs=1e-9)


def test_torques_that_are_not_unique_are_shared_evenly() -> None:
    """With one unknown by the crossings of lines, as many unknowns by linear programming."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        count = int(rng.integers(1, 6))
        slopes = np.concatenate([rng.uniform(0.1, 2, count), -rng.uniform(0.1, 2, count)])
        room = rng.normal(size=2 * count)
        alone = share_evenly(slopes[:, None], room)
        twice = share_evenly(np.column_stack([slopes, slopes]), room)
        excess = float((slopes * alone[0] - room).max())
        assert excess == pytest.approx((slopes * twice.sum() - room).max(), abs=1e-9)
        grid = alone[0] + np.linspace(-5, 5, 2001)
        assert excess <= (np.outer(grid, slopes) - room).max(axis=1).min() + 1e-12


def test_what_has_nothing_in_common_is_shared_apart() -> None:
    """The largest excess of all is the largest of any group: by linear programming for both."""
    rng = np.random.default_rng(5)
    pattern = np.zeros((5, 7), dtype=bool)
    pattern[:2, :3] = pattern[[2, 4], 3:5] = pattern[3, 5] = pattern[2, 5] = True
    groups = _separate(pattern.tobytes(), 5)
    assert [group.tolist() for group in groups] == [[0, 1], [2, 3, 4]]
    for _ in range(30):
        blocks, ends = rng.normal(size=(2, 3, 2)), rng.uniform(-1.0, 0.3, size=(2, 2, 3))
        excess = -np.inf
        for moves, (above, below) in zip(blocks, ends, strict=True):
            change = _shared(moves, above, below, np.full(3, 1e-12))
            excess = max(excess, (change - above).max(), (-change - below).max())
        A = np.block([[blocks[0], np.zeros((3, 2))], [np.zeros((3, 2)), blocks[1]]])
        room = np.concatenate([*ends[:, 0], *ends[:, 1]])
        together = A @ share_evenly(np.vstack([A, -A]), room)
        least = max((together - room[:6]).max(), (-together - room[6:]).max())
        assert excess == pytest.approx(least, abs=1e-9) or excess < least <= 1e-9


def test_bounds_of_a_drive_that_pulls_against_a_rising_brake() -> None:
    """Once the brake is stronger than the drive, the loss of the gear is on the other side."""
    drive, brake, dry, efficiency, ramp, slope = 10.0, 20.0, 20.0, 0.8, 0.3, 4.0
    numbers = {"side": "motor", "efficiency": efficiency, "dynamic_torque": brake,
               "coulomb": dry, "drive_torque": drive}  # fmt: skip
    machine = prepare_robot(slider(), on_axis(**numbers))
    equations = StopEquations(machine.equations, machine.train)
    none, one = np.zeros(1), np.ones(1)
    ahead = EvenPiece(0.0, one)
    now = PhaseStart(
        0.0, machine.robot.neutral, none, ramp * one, slope * one, ahead, np.ones(1, dtype=bool),
        True, False, none.astype(np.int64), {}, none,
    )  # fmt: skip
    phase = decide_phase(equations, now)
    assert phase.stuck.tolist() == [True] and phase.sliding.saturated_drive_sign.tolist() == [1.0]
    equations.enter(phase)
    for t in (0.0, 0.04, 0.06, 0.12):
        hold = brake * (ramp + slope * t)
        least = _through(drive - hold, 1.0, efficiency) - dry
        most = _through(drive + hold, -1.0, efficiency) + dry
        np.testing.assert_allclose(equations.tables.bounds(t, none), [[least], [most]], rtol=1e-12)


def test_power_at_its_turning_point_goes_on_as_it_was_found_to() -> None:
    """A wheel that coasts: nothing goes through its gear, so the sign of the power is not known."""
    numbers = {"side": "motor", "efficiency": 0.8, "rotor_inertia": 0.1}
    machine = prepare_robot(slider(), on_axis(**numbers))
    equations = StopEquations(machine.equations, machine.train)
    none, one = np.zeros(1), np.ones(1)
    still = EvenPiece(0.0, none)
    no, q = np.zeros(1, dtype=bool), machine.robot.neutral
    for turned in (-1, 1):
        now = PhaseStart(
            0.0, q, one, none, none, still, no, False, False, none.astype(np.int64),
            {0: turned}, none,
        )  # fmt: skip
        phase = decide_phase(equations, now)
        assert phase.gear_power_sign == turned
        equations.enter(phase)
        assert equations.reversing_gears(0.0, q, one) == {}


# -- other units ----------------------------------------------------------------------------------


def _swings(size: float) -> pl.StopResult:
    """A pendulum whose gear with losses is driven by it, then drives it; masses times a size."""
    brake = {
        "side": "motor", "efficiency": 0.7, "rotor_inertia": 0.3 * size,
        "dynamic_torque": 1.1 * size, "rise": 0.4, "viscous": 0.02 * size, "coulomb": 0.02 * size,
    }  # fmt: skip
    robot = pendulum(2.0 * size, 0.5, 0.6 * size)
    return pl.stop(robot, [0.9], [-1.0], brakes=on_axis(**brake))


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e3, 1e8])
def test_gears_turn_round_alike_in_robots_of_any_mass(size: float) -> None:
    """Masses, inertias and torques times a number: the same motion, at the same times."""
    small, usual = _swings(size), _swings(1.0)
    turns = [name for _, name in usual.events if "turns round" in name]
    assert len(turns) >= 1
    assert [name for _, name in small.events] == [name for _, name in usual.events]
    np.testing.assert_allclose(
        [t for t, _ in small.events], [t for t, _ in usual.events], rtol=0, atol=1e-8
    )
    assert small.ledger.heat == pytest.approx(size * usual.ledger.heat, rel=1e-7)
