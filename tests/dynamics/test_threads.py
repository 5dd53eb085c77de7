"""Constraints and equations that threads share give the numbers that they give alone."""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.dynamics import Formulation

from ..screw_tables import Array
from ..states import allowed, assembled, moving, robot

FORMULATIONS: list[Formulation | None] = [
    None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA(), pl.ODCA(2),
]  # fmt: skip
STATES = 24
Call = Callable[[Array, Array], Any]


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def states(name: str) -> list[tuple[Array, Array]]:
    """States all over the branch of a robot, in motion."""
    machine = robot(name)
    found = []
    for seed in range(4):
        q = assembled(machine, seed, walk=3)
        free = allowed(pl.Constraints(machine).jacobian(q))
        rng = np.random.default_rng(seed)
        found += [(q, free @ rng.normal(size=free.shape[1])) for _ in range(STATES // 4)]
    return found


def assert_same_in_threads(call: Call, alone: Call, all_states: list[tuple[Array, Array]]) -> None:
    """Compare, to the last bit, with the same calls one after the other in another order."""
    order = np.random.default_rng(0).permutation(8 * len(all_states)) % len(all_states)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: call(*all_states[k]), order))
    expected = [alone(q, v) for q, v in all_states]
    for k, values in zip(order, found, strict=True):
        np.testing.assert_array_equal(values, expected[k])


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
@pytest.mark.parametrize("name", ["palletizer", "bennett", "six_axis_arm"])
def test_equations_of_motion(name: str, formulation: Formulation | None) -> None:
    machine = robot(name)

    def push(t: float, q: Array, v: Array) -> Array:
        rows = pl.Constraints(machine)  # another state in the middle of an evaluation
        return np.full(machine.nv, float(np.sum(rows.jacobian(machine.neutral))))

    forces = [pl.forces.JointDamping(), pl.forces.PointForce(machine.bodies[-1], (1.0, 2.0, 3.0))]
    shared, alone = (
        pl.EquationsOfMotion(
            machine, formulation=formulation, forces=[pl.TorqueFunction(push), *forces]
        )
        for _ in range(2)
    )
    every = states(name)
    assert_same_in_threads(
        lambda q, v: shared.acceleration(0.0, q, v),
        lambda q, v: alone.acceleration(0.0, q, v),
        every,
    )

    def more(equations: pl.EquationsOfMotion) -> Call:
        def call(q: Array, v: Array) -> Array:
            kinetic, potential, _ = equations.energies(0.0, q, v)
            parts = [*equations.system(0.0, q, v)[:4], equations.residual(0.0, q)]
            return np.concatenate([[kinetic, potential], *(part.ravel() for part in parts)])

        return call

    assert_same_in_threads(more(shared), more(alone), every)


@pytest.mark.parametrize("name", ["palletizer", "delta", "gear-pair"])
@pytest.mark.parametrize("full", [False, True])
def test_constraints(name: str, full: bool) -> None:
    machine = pl.regularize(robot(name))
    shared, alone = (pl.Constraints(machine, full=full) for _ in range(2))

    def all_of(rows: pl.Constraints) -> Call:
        return lambda q, v: np.concatenate(
            [rows.residual(q), rows.jacobian(q).ravel(), rows.gamma(q, v)]
        )

    assert_same_in_threads(all_of(shared), all_of(alone), states(name))


def test_mechanism_and_momentum_row() -> None:
    machine = robot("palletizer")
    frame = machine.bodies[-1]
    row = pl.constraints.AngularMomentum(value=0.0)
    shared, alone = (pl.EquationsOfMotion(machine, rows=[row]) for _ in range(2))

    def all_of(equations: pl.EquationsOfMotion) -> Call:
        def call(q: Array, v: Array) -> Array:
            place = machine.placement(q, frame).homogeneous
            return np.concatenate([place.ravel(), *map(np.ravel, equations.terms(0.0, q, v))])

        return call

    assert_same_in_threads(all_of(shared), all_of(alone), states("palletizer"))


def mechanism_at(machine: pl.Mechanism, q: Array) -> list[Array]:
    """What a mechanism says by itself, and what is made of it."""
    body = machine.bodies[-1]
    loaded = machine.with_payload(body, float(1.0 + abs(q[0])))
    return [
        machine.neutral,
        machine.placement(q, body).homogeneous,
        machine.difference(machine.neutral, q),
        machine.configuration({machine.actuated[0]: 0.1}),
        pl.EquationsOfMotion(loaded).mass(q),
        pl.Constraints(pl.regularize(machine)).jacobian(q),
        machine.fitted().neutral,
    ]


def assembly_at(machine: pl.Mechanism, q: Array) -> list[Array]:
    """Configurations found from one, and from values of its first motor."""
    motor = machine.actuated[0]
    angle = float(q[machine.coordinates(motor).q][0])
    return [pl.assemble(machine, q), pl.assemble(machine, {motor: angle}, limits=False)]


def run_from(machine: pl.Mechanism, q: Array) -> list[Array]:
    """A short run."""
    run = pl.simulate(machine, q, until=0.03, forces=[pl.forces.JointDamping()])
    return [run.t, run.q, run.v]


def stop_from(machine: pl.Mechanism, q: Array) -> list[Array]:
    """A stop with the brakes of the template."""
    stop = pl.stop(machine, q, np.zeros(machine.nv), brakes=pl.Brakes.template(machine))
    return [stop.run.t, stop.run.q, stop.run.v]


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("work", [mechanism_at, assembly_at, run_from, stop_from])
@pytest.mark.parametrize("name", ["palletizer", "fourbar"])
def test_one_robot_in_eight_threads(
    name: str, work: Callable[[pl.Mechanism, Array], list[Array]]
) -> None:
    # Two fresh copies: what is computed once and remembered is computed in the threads, too.
    shared, alone = (pickle.loads(pickle.dumps(robot(name))) for _ in range(2))
    places = [assembled(robot(name), seed, walk=3) for seed in range(4)]

    def call(machine: pl.Mechanism) -> Call:
        return lambda q, _: np.concatenate([part.ravel() for part in work(machine, q)])

    order = np.arange(16) % len(places)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: call(shared)(places[k], places[k]), order))
    expected = [call(alone)(q, q) for q in places]
    for k, values in zip(order, found, strict=True):
        np.testing.assert_array_equal(values, expected[k])


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
@pytest.mark.parametrize("name", ["palletizer", "bennett", "parallelogram", "six_axis_arm"])
def test_an_acceleration_is_a_function_of_its_arguments(
    name: str, formulation: Formulation | None
) -> None:
    """Equations that are new at every state give the bits that others give, whatever they did."""
    machine = robot(name)
    # Where loops are open, too: as inside a step, or far off.
    shifts = 8 * [0.0, 1e-6, 0.03]
    every = [(q + shift, v) for shift, (q, v) in zip(shifts, states(name), strict=True)]

    def fresh() -> pl.EquationsOfMotion:
        return pl.EquationsOfMotion(machine, formulation=formulation)

    expected = [fresh().acceleration(0.0, q, v) for q, v in every]
    forwards, backwards, troubled = fresh(), fresh(), fresh()
    for (q, v), a in zip(every, expected, strict=True):
        np.testing.assert_array_equal(forwards.acceleration(0.0, q, v), a)
    for (q, v), a in zip(reversed(every), reversed(expected), strict=True):
        np.testing.assert_array_equal(backwards.acceleration(0.0, q, v), a)
    again = pickle.loads(pickle.dumps(forwards))
    assert again.solver == forwards.solver and again.rank == forwards.rank
    for (q, v), a in zip(every, expected, strict=True):
        with contextlib.suppress(pl.PinloopError):
            troubled.acceleration(0.0, q, 1e90 * v)
        np.testing.assert_array_equal(troubled.acceleration(0.0, q, v), a)
        np.testing.assert_array_equal(again.acceleration(0.0, q, v), a)


@pytest.mark.parametrize("formulation", [None, pl.ODCA()], ids=str)
def test_a_home_of_its_own_survives_pickling(formulation: Formulation | None) -> None:
    machine = robot("bennett")
    q, v = states("bennett")[5]
    equations = pl.EquationsOfMotion(machine, formulation=formulation).around(0.0, q)
    again = pickle.loads(pickle.dumps(equations))
    stray = q + 1e-5
    np.testing.assert_array_equal(
        again.acceleration(0.0, stray, v), equations.acceleration(0.0, stray, v)
    )
    assert again.rank == equations.rank == 2


@pytest.mark.parametrize("name", ["bennett", "bricard", "palletizer"])
def test_what_is_stored_of_a_run_does_not_change_it(name: str) -> None:
    """Accelerations between the steps are asked for where states are stored at intervals."""
    machine = robot(name)
    q, v = states(name)[0]
    v = 3.0 * v / np.abs(v).max()
    every = pl.simulate(machine, q, v, until=1.0, regularization=False)
    some = pl.simulate(machine, q, v, until=1.0, regularization=False, save_every=3e-3)
    np.testing.assert_array_equal(some.q[-1], every.q[-1])
    np.testing.assert_array_equal(some.v[-1], every.v[-1])


@pytest.mark.parametrize("rows", [(), (pl.constraints.AngularMomentum(),)])
def test_equations_of_a_run_survive_pickling(rows: tuple[Any, ...]) -> None:
    """They keep the home, and what rows took from the start, where they are built again."""
    machine = robot("bennett" if not rows else "double-pendulum")
    q, v = moving(machine, 1)
    run = pl.simulate(machine, q, v, until=0.05, rows=rows, regularization=False)
    (mode,) = run.modes
    again = pickle.loads(pickle.dumps(run)).system.equations(mode)
    ours, stray = run.system.equations(mode), machine.integrate(q, np.full(machine.nv, 1e-6))
    for place, rate in ((q, v), (stray, v), (run.q[-1], 2 * v)):
        np.testing.assert_array_equal(
            again.acceleration(0.0, place, rate), ours.acceleration(0.0, place, rate)
        )
        np.testing.assert_array_equal(
            again.terms(0.0, place, rate)[1], ours.terms(0.0, place, rate)[1]
        )
