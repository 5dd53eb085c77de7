"""Many runs at once: each is what `simulate` computes alone, to the last bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pinloop as pl
import pinloop.simulation.batch
from pinloop.dynamics.derivatives import derivatives_at
from pinloop.dynamics.parameters import (
    Armature,
    BodyInertia,
    ForceParameter,
    Parameter,
    Placement,
    PointMass,
    with_parameters,
)
from pinloop.simulation.plain_runs import PlainRuns

from ..screw_tables import Array
from ..states import moving, regularized, robot

UNTIL = 0.3
SPRING = pl.forces.JointSpring("shoulder", 3.0, rest=0.2)
FORCES = (SPRING, pl.PD("wrist", target=0.3, stiffness=2.0, damping=0.1))


def starts(name: str, count: int = 5) -> tuple[Array, Array]:
    """States in motion, one per row."""
    states = [moving(robot(name), seed) for seed in range(count)]
    return np.array([q for q, _ in states]), np.array([v for _, v in states])


def same(batch: pl.Batch, runs: list[pl.Trajectory]) -> None:
    """The last states, to the last bit."""
    assert not batch.failed.any()
    np.testing.assert_array_equal(batch.t, [run.t[-1] for run in runs])
    np.testing.assert_array_equal(batch.q, [run.q[-1] for run in runs])
    np.testing.assert_array_equal(batch.v, [run.v[-1] for run in runs])
    np.testing.assert_array_equal(batch.evaluations, [run.evaluations for run in runs])
    assert batch.messages == tuple(run.message for run in runs)


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "python": {"formulation": pl.Automatic(engine="python")},
    "voronets": {"formulation": pl.Voronets()},
    "odca": {"formulation": pl.ODCA()},
    "forces": {"forces": FORCES, "losses": False},
    "events": {"events": [pl.lock("elbow", at=0.1)], "save_every": 0.05},
    "fixed": {"method": pl.MuntheKaas("rk4", step=5e-3)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_runs_are_those_of_simulate(name: str) -> None:
    machine, (q, v), settings = robot("palletizer"), starts("palletizer", 4), SETTINGS[name]
    runs = [pl.simulate(machine, *x, until=UNTIL, **settings) for x in zip(q, v, strict=True)]
    same(pl.simulate_many(machine, q, v, until=UNTIL, jobs=1, **settings), runs)
    order = np.array([2, 0, 3, 1, 1, 2])
    batch = pl.simulate_many(machine, q[order], v[order], until=UNTIL, jobs=3, **settings)
    same(batch, [runs[k] for k in order])


PLAIN: dict[str, dict[str, Any]] = {
    "six_axis_arm": {"until": 3.0, "start": -0.5, "losses": False},  # several calls of the kernel
    "fourbar": {},
    "sevenbar": {"method": pl.MuntheKaas("dopri5", rtol=1e-10)},
    "stewart": {"mode": pl.Mode(locks=("leg_1",)), "losses": False},
    "bricard": {"stabilization": None},
    "palletizer": {"forces": FORCES, "losses": False},
    "universal-delta": {"regularization": False},
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_runs_are_those_of_simulate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pinloop._kernel")
    machine, (q, v), settings = robot(name), starts(name, 4), {"until": UNTIL} | PLAIN[name]
    v = 0.0 * v if "mode" in settings else v
    q[1, 0] += 1e-9  # what is nearly allowed is projected
    runs = [pl.simulate(machine, *x, **settings) for x in zip(q, v, strict=True)]
    mode = settings.pop("mode", None)
    monkeypatch.setattr(pinloop.simulation.batch, "simulate", None)  # for what is not plain
    times = np.array([UNTIL, 0.2, 0.21, -1.0, 0.1, runs[1].t[2], runs[2].t[-2]])
    batch = pl.simulate_many(machine, q, v, jobs=2, modes=mode, times=times, **settings)
    same(batch, runs)
    inside = times > -0.5
    assert np.isnan(batch.samples.q[:, ~inside]).all()
    for k, run in enumerate(runs):
        np.testing.assert_array_equal(batch.samples.q[k, inside], run(times[inside]).q)
        np.testing.assert_array_equal(batch.samples.v[k, inside], run(times[inside]).v)


def test_runs_that_turn_out_not_to_be_plain_are_those_of_simulate() -> None:
    """Through flat poses, where branches of the motion meet."""
    machine = robot("parallelogram")
    crank = machine.joints[0]
    q = pl.assemble(machine, {crank: 0.3})
    v = np.array([pl.consistent_velocity(machine, q, {crank: rate}) for rate in (6.0, 0.0)])
    runs = [pl.simulate(machine, q, x, until=1.0) for x in v]
    plain = PlainRuns.of(machine, 1.0, {})
    assert plain is not None and plain.run(None, q, v[0]) is None
    same(pl.simulate_many(machine, q, v, until=1.0), runs)


def test_rows_that_are_chosen_anew_make_no_plain_run() -> None:
    machine = pl.regularize(robot("bricard"), sampled=True)
    assert PlainRuns.of(machine, UNTIL, {}) is None


def test_modes_are_those_of_their_rows() -> None:
    machine, q = robot("palletizer"), starts("palletizer", 1)[0][0]
    modes = [None, pl.Mode(locks=("elbow",)), pl.Mode(locks=("shoulder",)), pl.Mode()]
    batch = pl.simulate_many(machine, q, until=UNTIL, modes=modes)
    same(batch, [pl.simulate(machine, q, until=UNTIL, mode=mode) for mode in modes])
    assert len(batch) == 4 and np.array_equal(batch.q[0], batch.q[3])
    assert not np.array_equal(batch.q[0], batch.q[1])
    alike = pl.simulate_many(machine, q, until=UNTIL, modes=modes[1])
    assert len(alike) == 1 and np.array_equal(alike.q[0], batch.q[1])


def test_parameters_are_those_of_their_rows() -> None:
    machine, q = robot("palletizer"), starts("palletizer", 1)[0][0]
    masses, stiffness = np.array([0.0, 1.0, 2.5]), np.array([3.0, 0.0, 20.0])
    given: list[tuple[Parameter, Array]] = [
        (PointMass("tool0"), masses),
        (ForceParameter(SPRING, "stiffness"), stiffness),
    ]
    batch = pl.simulate_many(machine, q, until=UNTIL, parameters=given, forces=FORCES)
    runs = []
    for mass, k in zip(masses, stiffness, strict=True):
        spring = pl.forces.JointSpring("shoulder", k, rest=0.2)
        carrying = machine.with_payload("tool0", mass)
        runs.append(pl.simulate(carrying, q, until=UNTIL, forces=(spring, FORCES[1])))
    np.testing.assert_allclose(batch.q, [run.q[-1] for run in runs], rtol=0, atol=1e-12)
    assert np.ptp(batch.q, axis=0).max() > 1e-3
    plain = pl.simulate_many(machine, q, until=UNTIL, parameters=given[:1], losses=False)
    assert np.ptp(plain.q, axis=0).max() > 1e-3


def start_of(machine: pl.Mechanism, parameter: Parameter) -> Array:
    """The numbers that the robot has."""
    if isinstance(parameter, BodyInertia):
        body = next(b for b in machine.description.bodies if b.name == parameter.body)
        moments = np.array(body.inertia)[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        return np.array([body.mass, *body.com, *moments])
    if isinstance(parameter, Armature):
        return np.array([machine.model.armature[machine.coordinates(parameter.joint).v.start]])
    if isinstance(parameter, ForceParameter):
        return np.array([getattr(SPRING, parameter.name)])
    return np.zeros(len(parameter.labels(machine)))


PARAMETERS: dict[str, tuple[Parameter, float]] = {
    "body": (BodyInertia("forearm"), 1e-4),
    "point mass": (PointMass("flange", (0.1, 0.2, 0.3)), 1e-3),
    "armature": (Armature("wrist"), 1e-5),
    "stiffness": (ForceParameter(SPRING, "stiffness"), 1e-3),
    "rest": (ForceParameter(SPRING, "rest"), 1e-3),
    "joint of the tree": (Placement("wrist"), 1e-4),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_other_values_have_the_derivatives_of_the_parameter(name: str) -> None:
    """The equations are differentiated by formulas that know nothing of other robots."""
    machine, (parameter, h) = regularized("palletizer"), PARAMETERS[name]
    q, v = moving(machine, 3)
    values = start_of(machine, parameter)

    def acceleration(change: Array) -> Array:
        changed, forces = with_parameters(machine, [(parameter, values + change)], FORCES)
        return pl.EquationsOfMotion(changed, forces=forces).acceleration(0.0, q, v)

    equations = pl.EquationsOfMotion(machine, forces=FORCES)
    wanted = derivatives_at(equations, 0.0, q, v, None, [parameter]).ddq_dp
    for k, column in enumerate(np.eye(len(values))):
        if not values.any():  # there is nothing below zero
            slope = (
                4.0 * acceleration(h * column) - acceleration(2.0 * h * column)
                - 3.0 * acceleration(0.0 * column)
            ) / (2.0 * h)  # fmt: skip
        else:
            slope = (acceleration(h * column) - acceleration(-h * column)) / (2.0 * h)
        np.testing.assert_allclose(
            slope, wanted[:, k], rtol=0, atol=2e-5 * np.abs(wanted).max(initial=1.0)
        )


@pytest.mark.parametrize("end", ["A", "B"])
def test_moved_frames_open_their_loop(end: str) -> None:
    machine, name = robot("palletizer"), robot("palletizer").loops[0].name
    parameter, q = Placement(f"{name}/{end}"), moving(machine, 1)[0]

    def residual(change: Array) -> Array:
        changed, _ = with_parameters(machine, [(parameter, change)])
        return pl.Constraints(changed, full=True).residual(q)

    equations = pl.EquationsOfMotion(machine)
    wanted = derivatives_at(equations, 0.0, q, np.zeros(machine.nv), None, [parameter]).closure_dp
    h = 1e-4
    found = [(residual(h * x) - residual(-h * x)) / (2.0 * h) for x in np.eye(6)]
    np.testing.assert_allclose(np.transpose(found), wanted, rtol=0, atol=1e-6)
    assert np.abs(wanted).max() > 0.5


def test_what_is_wrong_with_a_run_is_its_own_matter() -> None:
    machine, (q, v) = robot("palletizer"), starts("palletizer", 4)
    q[1, 2], v[2, :] = np.nan, 1.0  # no number; a velocity that the loops do not allow
    batch = pl.simulate_many(machine, q, v, until=UNTIL, times=[0.0, 0.2])
    np.testing.assert_array_equal(batch.failed, [False, True, True, False])
    assert "not finite" in batch.messages[1] and "velocit" in batch.messages[2]
    assert np.isnan(batch.t[[1, 2]]).all() and np.isnan(batch.samples.q[[1, 2]]).all()
    for k in (0, 3):
        run = pl.simulate(machine, q[k], v[k], until=UNTIL)
        np.testing.assert_array_equal(batch.q[k], run.q[-1])
        np.testing.assert_array_equal(batch.samples.q[k], run(np.array([0.0, 0.2])).q)
        np.testing.assert_array_equal(batch.samples.v[k], run(np.array([0.0, 0.2])).v)
    assert "2 done, 2 failed" in repr(batch) and "run 1: " in str(batch)


def test_a_run_that_breaks_off_leaves_what_there_is() -> None:
    arm = robot("six_axis_arm")
    q = np.zeros((3, arm.nq))
    q[1, 0] = 0.5

    def push(t: float, q: Array, v: Array) -> Array:
        if q[0] > 0.25 and t > 0.1:
            raise ArithmeticError("the drive is gone")
        return np.zeros(6)

    batch = pl.simulate_many(arm, q, until=UNTIL, tau=push, times=[0.05, 0.25], keep=True)
    np.testing.assert_array_equal(batch.failed, [False, True, False])
    assert "the drive is gone" in batch.messages[1] and 0.05 <= batch.t[1] < 0.15
    assert np.isfinite(batch.samples.q[1, 0]).all() and np.isnan(batch.samples.q[1, 1]).all()
    runs = batch.trajectories
    assert all(run is not None for run in runs) and len(runs) == 3
    np.testing.assert_array_equal(batch.q, [run.q[-1] for run in runs if run is not None])


@pytest.mark.parametrize("name", ["palletizer", "fourbar"])
def test_trajectories_are_kept_only_if_asked_for(name: str) -> None:
    machine, (q, v) = robot(name), starts(name, 2)
    assert pl.simulate_many(machine, q, v, until=UNTIL).trajectories == ()
    batch = pl.simulate_many(machine, q, v, until=UNTIL, keep=True)
    for run, *start in zip(batch.trajectories, q, v, strict=True):
        alone = pl.simulate(machine, *start, until=UNTIL)
        assert run is not None and str(run) == str(alone) and run.accuracy == alone.accuracy
        np.testing.assert_array_equal(run.q, alone.q)


def test_a_batch_can_be_pickled() -> None:
    batch = pl.simulate_many(robot("fourbar"), *starts("fourbar", 3), until=UNTIL, times=[0.1])
    before = pickle.dumps(batch)
    copied = pickle.loads(before)
    assert str(batch) and pickle.dumps(batch) == before
    np.testing.assert_array_equal(copied.samples.q, batch.samples.q)
    assert repr(copied) == repr(batch) and len(copied) == 3


WRONG: dict[str, tuple[Callable[[Array], dict[str, Any]], str]] = {
    "shape": (lambda q: {"q": q[:, :2]}, "shape"),
    "letters": (lambda q: {"q": "abc"}, "not made of numbers"),
    "counts": (lambda q: {"q": q, "v": np.zeros((2, q.shape[1]))}, "3 of q, 2 of v"),
    "modes": (lambda q: {"q": q, "modes": [pl.Mode()]}, "1 of modes"),
    "none": (lambda q: {"q": q[:0]}, "no run"),
    "jobs": (lambda q: {"q": q, "jobs": 0}, "jobs"),
    "setting": (lambda q: {"q": q, "untill": 3.0}, "until"),
    "end": (lambda q: {"q": q, "until": -1.0}, "end must come after"),
    "event": (lambda q: {"q": q, "events": [pl.lock("elbw", at=0.1)]}, "elbow"),
    "force": (lambda q: {"q": q, "forces": [pl.Torque("elbw", 1.0)]}, "elbow"),
    "limits": (lambda q: {"q": q, "limits": "bounce"}, "limits is 'bounce'"),
    "body": (lambda q: {"q": q, "parameters": [(BodyInertia("arms"), np.ones(10))]}, "arms"),
    "other force": (
        lambda q: {"q": q, "parameters": [(ForceParameter(SPRING, "rest"), 1.0)]},
        "no force",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_for_all_runs_is_said_at_once(name: str) -> None:
    arguments, message = WRONG[name]
    machine = robot("palletizer")
    given = {"until": UNTIL} | arguments(np.tile(machine.neutral, (3, 1)))
    with pytest.raises(pl.PinloopError, match=message):
        pl.simulate_many(machine, **given)
