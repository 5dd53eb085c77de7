"""Motions with springs, dampers and friction that explicit steps cannot follow.

Oracles: explicit steps of high accuracy, closed forms, and what symmetry and balance demand. The
governor is the benchmark A05 of IFToMM's library of multibody problems.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics.forces import Damper, Force, JointDamping, Spring

from ..screw_tables import Array
from ..states import moving, one_body, robot

RADAU = [pl.MuntheKaas("radau5", rtol=1e-9, atol=1e-9), pl.MuntheKaas("radau9")]
implicit = pytest.mark.parametrize("method", RADAU, ids=lambda method: method.name)


# -- the stiff fly-ball governor ----------------------------------------------------------------


def cuboid(mass: float, *sides: float) -> Array:
    a, b, c = np.square(sides)
    return mass / 12.0 * np.diag([b + c, a + c, a + b])


def governor() -> tuple[pl.Mechanism, Array, list[Force]]:
    """The robot, its velocity at the start, and the springs and dampers in place of two rods.

    Shaft and rods of 1 m and 0.3 kg, a slider of 3 kg at half the height, balls of 5 kg; the rods
    hang at 30 degrees below the horizontal from 5 cm beside the axis, which turns at 2 pi rad/s.
    """
    slope = np.pi / 6
    bodies = [
        {"name": "shaft", "mass": 0.3, "com": [0, 0, 0.5], "inertia": cuboid(0.3, 0.01, 0.01, 1.0)},
        {"name": "slider", "mass": 3.0, "com": [0, 0, 0.5], "inertia": cuboid(3.0, 0.1, 0.1, 0.1)},
    ]
    joints: list[dict[str, Any]] = [
        {"name": "spin", "pair": "revolute", "parent": "ground", "child": "shaft",
         "point": [0, 0, 0], "axis": [0, 0, 1]},
        {"name": "slide", "pair": "prismatic", "parent": "shaft", "child": "slider",
         "axis": [0, 0, 1]},
    ]  # fmt: skip
    forces: list[Force] = []
    for name, side in (("right", 1.0), ("left", -1.0)):
        hinge = np.array([0.05 * side, 0.0, 1.0])
        along = np.array([side * np.cos(slope), 0.0, -np.sin(slope)])
        middle, ball = hinge + 0.5 * along, hinge + along
        com = (0.3 * middle + 5.0 * ball) / 5.3
        axes = np.column_stack([along, [0, 1, 0], np.cross(along, [0, 1, 0])])
        inertia = axes @ cuboid(0.3, 1.0, 0.01, 0.01) @ axes.T
        for mass, point in ((0.3, middle), (5.0, ball)):
            r = point - com
            inertia = inertia + mass * (r @ r * np.eye(3) - np.outer(r, r))
        bodies.append({"name": name, "mass": 5.3, "com": com, "inertia": inertia})
        joints.append({"name": f"{name} hinge", "pair": "revolute", "parent": "shaft",
                       "child": name, "point": hinge, "axis": [0, 1, 0]})  # fmt: skip
        ends = ("slider", (0.05 * side, 0.0, 0.5)), (name, tuple(middle.tolist()))
        forces += [Spring(*ends, 8e5, 0.5), Damper(*ends, 4e4)]
    machine = pl.from_screws({"name": "governor", "bodies": bodies, "joints": joints})
    v = np.zeros(machine.nv)
    v[machine.coordinates("spin").v] = 2.0 * np.pi
    return machine, v, forces


@pytest.mark.parametrize(
    ("method", "steps", "evaluations"),
    [
        (pl.MuntheKaas(), 400, 13_000),
        (pl.MuntheKaas("dop853"), 400, 13_000),
        (pl.MuntheKaas("radau9"), 360, 13_000),
        (pl.MuntheKaas("radau5"), 2000, 25_000),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_stiff_governor(method: pl.MuntheKaas, steps: int, evaluations: int) -> None:
    """Ten seconds, for which "dopri5" takes 24,200 steps; both balls do the same.

    Where stages are foreseen with wrong positions, evaluations are twice as many.
    """
    machine, v, forces = governor()
    run = pl.simulate(machine, machine.neutral, v, until=10.0, forces=forces, method=method)
    assert len(run.t) < steps and run.evaluations < evaluations and not run.warnings
    spin, _, right, left = (machine.coordinates(name) for name in machine.joints)
    np.testing.assert_allclose(run.q[:, right.q], -run.q[:, left.q], rtol=0, atol=1e-7)
    # Nothing turns it: its momentum about the shaft stays.
    momenta = run.momentum().generalized[:, spin.v.start]
    np.testing.assert_allclose(momenta, momenta[0], rtol=1e-7)
    assert np.abs(run.energy().error).max() < 1e-7 * run.energy().kinetic.max()
    fine = replace(pl.MuntheKaas("radau9"), rtol=1e-11, atol=1e-11)
    end = pl.simulate(machine, machine.neutral, v, until=10.0, forces=forces, method=fine)
    np.testing.assert_allclose(run.q[-1], end.q[-1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(run.v[-1], end.v[-1], rtol=0, atol=1e-6)
    switched = run.accuracy.switched if run.accuracy else ""
    assert bool(switched) == str(method.name).startswith("dop")
    assert not switched or re.search(
        r"'damper slider .* has a time constant of 0\.00012 s", switched
    )


def test_the_governor_moves_as_with_explicit_steps() -> None:
    machine, v, forces = governor()
    tight = pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11, when_stiff="warn")
    wanted = pl.simulate(machine, machine.neutral, v, until=0.5, forces=forces, method=tight)
    assert len(wanted.t) > 500
    run = pl.simulate(machine, machine.neutral, v, until=0.5, forces=forces)
    # Also between the states, where quintics of implicit steps would be far off.
    for times in (wanted.t[::20], run.t):
        np.testing.assert_allclose(run(times).q, wanted(times).q, rtol=0, atol=2e-9)
        np.testing.assert_allclose(run(times).v, wanted(times).v, rtol=0, atol=2e-7)


# -- events ---------------------------------------------------------------------------------------


@implicit
@pytest.mark.parametrize("rate", [1e2, 1e5])
def test_events_are_found_in_stiff_steps(rate: float, method: pl.MuntheKaas) -> None:
    """``v = sin t`` by a stiff servo: ``q = 1 - cos t`` is 0.5 at ``pi / 3``, where it locks."""
    body = one_body("revolute", gravity=(0.0, 0.0, 0.0))
    servo = pl.TorqueFunction(lambda t, q, v: np.cos(t) - rate * (v - np.sin(t)))
    events = [
        pl.stop_when(lambda t, q, v: q[0] - 2.5),
        pl.when(lambda t, q, v: q[0] - 0.5, pl.lock("joint")),
        pl.unlock("joint", at=2.0),
    ]
    run = pl.simulate(body, np.zeros(1), until=3.0, forces=[servo], events=events, method=method)
    locked, unlocked = (t for t, _ in run.events)
    assert locked == pytest.approx(np.pi / 3, abs=1e-8) and unlocked == 2.0
    held = run(1.5)
    assert held.q[0] == pytest.approx(0.5, abs=1e-8) and held.v[0] == 0.0
    # Let go at rest it comes to the speed of the servo: rate tau = 1.
    t = 3.0 - 2.0
    speed, lag = np.sin(3.0), np.exp(-rate * t) * np.sin(2.0)
    assert run.v[-1, 0] == pytest.approx(speed - lag, abs=1e-7)
    far = 0.5 + np.cos(2.0) - np.cos(3.0) - np.sin(2.0) * (1.0 - np.exp(-rate * t)) / rate
    assert run.q[-1, 0] == pytest.approx(far, abs=1e-7)


@implicit
def test_a_guard_that_dips_within_a_stiff_step(method: pl.MuntheKaas) -> None:
    """A speed that exceeds a limit between two instants that one long step contains."""
    body = one_body("revolute", gravity=(0.0, 0.0, 0.0))
    servo = pl.TorqueFunction(lambda t, q, v: np.cos(t) - 1e4 * (v - np.sin(t)))
    for direction, time in ((1, np.arcsin(0.9999)), (-1, np.pi - np.arcsin(0.9999))):
        guard = pl.stop_when(lambda t, q, v: v[0] - 0.9999, direction)
        run = pl.simulate(
            body, np.zeros(1), until=3.0, forces=[servo], events=[guard], method=method
        )
        assert run.message == "stopped by an event" and run.t[-1] == pytest.approx(time, abs=2e-6)


@pytest.mark.parametrize("name", ["six_axis_arm", "palletizer"])
@implicit
def test_locks_dry_friction_and_end_stops(name: str, method: pl.MuntheKaas) -> None:
    """What happens, and when, is the same as with explicit steps of another order."""
    machine = robot(name)
    v = (
        moving(machine, 1)[1]
        if not machine.loops
        else pl.consistent_velocity(machine, machine.neutral, dict.fromkeys(machine.actuated, 0.7))
    )
    joint = machine.actuated[0]
    friction = pl.forces.JointFriction(None, dict.fromkeys(machine.actuated, 3.0))
    options: dict[str, Any] = {
        "until": 0.4,
        "forces": [friction, JointDamping(dict.fromkeys(machine.actuated, 20.0))],
        "losses": False,
        "limits": "end stop",
        "events": [pl.lock(joint, at=0.1), pl.unlock(joint, at=0.2)],
    }
    found = pl.simulate(machine, machine.neutral, v, method=method, **options)
    wanted = pl.simulate(
        machine,
        machine.neutral,
        v,
        method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10),
        **options,
    )
    assert [what for _, what in found.events] == [what for _, what in wanted.events]
    assert [what for _, what in found.slips] == [what for _, what in wanted.slips]
    times, others = ([t for t, _ in (*run.events, *run.slips)] for run in (found, wanted))
    np.testing.assert_allclose(times, others, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.q[-1], wanted.q[-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["radau5", "radau9"])
def test_what_dies_away_after_an_event_is_no_error_of_a_step(name: str) -> None:
    """Wrists in oil, of which each lock of the base begins a motion that is over in 0.1 us.

    Filtered once, the error of a step that begins with it is so large that 600 steps are rejected.
    """
    arm = robot("six_axis_arm")
    events = []
    for k in range(20):
        events += [
            pl.lock(arm.joints[0], at=0.01 + 0.03 * k),
            pl.unlock(arm.joints[0], at=0.025 + 0.03 * k),
        ]
    oil = JointDamping(dict.fromkeys(arm.joints[3:], 1e6))
    run = pl.simulate(
        arm, arm.neutral, until=0.6, forces=[oil], events=events, losses=False,
        method=pl.MuntheKaas(name),
    )  # fmt: skip
    assert len(run.transitions) == 40 and run.rejected < 400


@implicit
def test_a_bouncing_end_stop(method: pl.MuntheKaas) -> None:
    """A carriage against its stop under a constant force: ``t1`` and ``2 e^k t1`` after that."""
    body = one_body("prismatic", gravity=(0.0, 0.0, 0.0))
    body.model.lowerPositionLimit[:] = 0.0
    body.model.upperPositionLimit[:] = 10.0
    run = pl.simulate(
        body, np.ones(1), until=1.2, forces=[pl.Torque("joint", -8.0)], method=method,
        limits=pl.simulation.EndStops(restitution=0.5),
    )  # fmt: skip
    hits = 0.5 * np.cumsum([1.0, 1.0, 0.5])
    times = [change.t for change in run.transitions[:3]]
    np.testing.assert_allclose(times, hits[: len(times)], rtol=0, atol=1e-9)
    assert len(times) >= 2


# -- dense output -----------------------------------------------------------------------------


def between(run: pl.Trajectory, forces: list[Force], tolerance: float) -> tuple[float, float]:
    """Largest and median error of velocities between states, over the tolerance of a step.

    After the start: an implicit step does not resolve what dies away within it.
    """
    machine, errors = run.robot, []
    unit = np.where(machine.is_translation, machine.length, 1.0)
    steps = np.flatnonzero((np.diff(run.t) > 0.0) & (run.t[:-1] > 0.05))
    for k in steps[:: max(1, len(steps) // 25)].tolist():
        for part in (0.25, 0.6):
            t = float(run.t[k] + part * (run.t[k + 1] - run.t[k]))
            true = pl.simulate(
                machine, run.q[k], run.v[k], start=float(run.t[k]), until=t, forces=forces,
                losses=False, method=pl.MuntheKaas("radau9", rtol=1e-12, atol=1e-12),
            )  # fmt: skip
            allowed = tolerance * (np.abs(true.v[-1]) + unit)
            errors.append(float(np.abs((run(t).v - true.v[-1]) / allowed).max()))
    return max(errors), float(np.median(errors))


@pytest.mark.parametrize("name", ["dopri5", "dop853", "bs32", "radau5", "radau9"])
def test_between_its_states_a_stiff_run_is_as_accurate_as_its_steps(name: str) -> None:
    machine = robot("six_axis_arm")
    forces: list[Force] = [JointDamping(dict.fromkeys(machine.joints[3:], 3e3))]
    run = pl.simulate(
        machine, machine.neutral, until=0.6, forces=forces, losses=False,
        method=pl.MuntheKaas(name, rtol=1e-7, atol=1e-7),
    )  # fmt: skip
    switched = run.accuracy.switched if run.accuracy else ""
    assert bool(switched) == (not name.startswith("radau"))
    worst, usual = between(run, forces, 1e-7)
    assert worst < 5.0 and usual < 0.5
    if name != "radau5":
        assert run.inner is not None
        quintic, _ = between(replace(run, inner=None), forces, 1e-7)
        assert quintic > 3.0 * worst


@pytest.mark.parametrize(("name", "dies"), [("dopri5", 1e-3), ("dop853", 1e-3), ("radau9", 0.1)])
def test_what_dies_away_at_once_leaves_no_waves_behind(name: str, dies: float) -> None:
    """Axes that creep in oil, at 1e-7 rad/s ten nanoseconds after the start, never come to rest.

    Accelerations at the starts of steps are rounding times the rate of what has died away. In the
    step in which it dies away, of 26 ms with radau9 from the start, what is left of it is an error
    of that step: as large as its tolerance.
    """
    arm = robot("six_axis_arm")
    oil = pl.forces.JointDamping(dict.fromkeys(arm.joints, 1e9))
    asked = [0]

    def nothing(t: float, q: Array, v: Array) -> Array:
        asked[0] += 1
        assert asked[0] < 5000, "it never ends"
        return np.zeros(arm.nv)

    run = pl.simulate(
        arm, arm.neutral, until=1.0, forces=[oil], tau=nothing, method=pl.MuntheKaas(name)
    )
    assert not [what for _, what in run.slips if what.endswith("sticks")]
    for t in np.linspace(2e-3, 1.0, 300):
        _, q, v = run(t)
        load = pin.computeGeneralizedGravity(arm.model, arm.model.createData(), q)
        excess = np.maximum(np.abs(load) - arm.model.upperDryFrictionLimit, 0.0)
        creep = -np.sign(load) * excess / 1e9
        np.testing.assert_allclose(v, creep, rtol=0, atol=3e-8 if t < dies else 1e-12)
