"""Physics of dry friction where rows hold, move or multiply what sticks: closed forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Coupling
from pinloop.model.mechanism import build
from pinloop.simulation.friction import NO_GRIP, DryFriction, _Holding
from pinloop.simulation.modes import AxisFriction, ModalSystem

from ..safety.stopping.robots_to_stop import carriages, made, solid, train
from ..screw_tables import Array, joint
from ..states import moving, robot

INERTIA = 0.1
TIGHT = pl.MuntheKaas(rtol=1e-11, atol=1e-11)


def dry(**coefficients: float) -> pl.forces.JointFriction:
    return pl.forces.JointFriction(coefficients=coefficients)


def by_brute_force(M: Array, f: Array, limit: Array) -> tuple[tuple[int, ...], Array]:
    """Of all combinations of stick and slip from rest the one that fits, and its accelerations."""
    fits = []
    for signs in product((-1, 0, 1), repeat=len(f)):
        s, a = np.array(signs), np.zeros(len(f))
        free = np.flatnonzero(s)
        a[free] = np.linalg.solve(M[np.ix_(free, free)], (f - s * limit)[free])
        holds = (s != 0) | (np.abs(M @ a - f) <= limit)
        if (holds & ((s == 0) | (s * a > 0.0))).all():
            fits.append((signs, a))
    (fit,) = fits
    return fit


def geared_train(*masses: float) -> pl.Mechanism:
    """Carriage b on carriage a, each driven by a pinion on the ground: 1 m per rad."""
    names = "ab"
    spins = [joint(f"p{n}", "revolute", GROUND, f"pinion_{n}", [0, 0, 0], [0, 0, 1]) for n in names]
    meshes = [
        {"name": f"mesh {n}", "joint": n, "source": f"p{n}", "ratio": 1.0, "offset": 0.0}
        for n in names
    ]
    rails = train(*masses).description.joints
    before = [GROUND, "body_a"]
    return made(
        [solid(f"body_{n}", mass) for n, mass in zip(names, masses, strict=True)]
        + [solid(f"pinion_{n}", 1.0, inertia=INERTIA) for n in names],
        [
            joint(x.name, "prismatic", parent, f"body_{x.name}", [0, 0, 0], [1, 0, 0])
            for x, parent in zip(rails, before, strict=True)
        ]
        + spins,
        couplings=meshes,
    )


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("heavy", [1.0, 1e8])
@pytest.mark.parametrize("over", [0.5, 0.95, 1.5])
def test_what_lets_go_takes_the_load_off_the_other(heavy: float, over: float, way: int) -> None:
    """Both drives push more than friction holds; who slides makes it easier for the other.

    Heavy carriages hide what their pinions do behind rounding: accelerations are 1e9 times as
    small as those of a pinion alone. Of all combinations one fits.
    """
    a, b = 0.1 * heavy, 0.9 * heavy
    M = np.array([[a + b, b], [b, b]]) + INERTIA * np.eye(2)
    limit, load = np.array([10.0, 10.0]), way * (10.0 + 1e-3 * np.array([1.0, over]))
    expected, rates = by_brute_force(M, load, limit)
    pushes = [pl.forces.Torque(name, x) for name, x in zip(("pa", "pb"), load, strict=True)]
    machine = geared_train(a, b)
    run = pl.simulate(
        machine, np.zeros(4), until=1e-3, forces=[*pushes, dry(pa=10.0, pb=10.0)], method=TIGHT
    )
    assert run.modes[0].friction == (
        AxisFriction("pa", "", expected[0]), AxisFriction("pb", "", expected[1])
    )  # fmt: skip
    assert not run.slips
    if heavy == 1.0:
        columns = [machine.coordinates(name).v.start for name in ("pa", "pb")]
        assert run.q[-1, columns] == pytest.approx(0.5e-6 * rates, rel=1e-6, abs=1e-18)


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("absolute", [False, True])
def test_what_rows_do_not_move_sticks_beside_what_they_move(mass: float, absolute: bool) -> None:
    """A carriage of any mass is held by its friction while another one is driven."""
    machine = carriages(2.0, mass)
    machine = machine.absolute() if absolute else machine
    rows = [pl.constraints.Prescribed("a", lambda t: (t**2, 2 * t, 2.0))]
    forces = [dry(a=3.0, b=3.0), pl.forces.Torque("b", 2.0)]
    run = pl.simulate(machine, machine.neutral, until=0.5, rows=rows, forces=forces)
    assert run.modes[-1].sticking == ("b",)
    q = run.q[-1]
    if absolute:
        q = carriages(2.0, mass).from_absolute(q, run.v[-1])[0]
    assert q == pytest.approx([0.25, 0.0], abs=1e-8)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("absolute", [False, True])
def test_friction_acts_on_what_rows_begin_to_move(way: int, absolute: bool) -> None:
    """A carriage at rest that is driven along a path from some time on, either way."""

    def path(t: float) -> tuple[float, float, float]:
        s = max(0.0, t - 0.5)
        return way * s**3, way * 3 * s**2, way * 6 * s

    whole = carriages(2.0)
    machine = whole.absolute() if absolute else whole
    run = pl.simulate(
        machine,
        machine.neutral,
        until=1.0,
        rows=[pl.constraints.Prescribed("a", path)],
        forces=[dry(a=3.0)],
        method=TIGHT,
    )
    q = whole.from_absolute(run.q[-1], run.v[-1])[0] if absolute else run.q[-1]
    assert q[0] == pytest.approx(way * 0.125, abs=1e-9)
    assert run.energy().work["joint friction"][-1] == pytest.approx(-3.0 * 0.125, rel=1e-6)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("push", [1.0, 3.5])
def test_an_end_stop_feels_friction_of_a_joint_that_is_free_to_move(push: float, way: int) -> None:
    """Carriage b stays at its end on carriage a, which sticks somewhere, or slides."""
    description = train(1.0, 1.0).description
    ends = {"a": (-9.0, 9.0), "b": sorted((-1.0 * way, 0.0))}
    joints = tuple(
        replace(x, lower=(ends[x.name][0],), upper=(ends[x.name][1],)) for x in description.joints
    )
    machine = build(replace(description, joints=joints))
    pushes = [pl.forces.Torque("a", way * push), pl.forces.Torque("b", way * 0.5)]
    friction = 3.0
    run = pl.simulate(
        machine, [0.0, 0.0], until=0.1, forces=[*pushes, dry(a=friction)], limits="end stop",
        method=TIGHT,
    )  # fmt: skip
    a = max(0.0, push - friction) / 2.0
    assert not run.q[:, 1].any()
    assert run.q[-1, 0] == pytest.approx(way * 0.5 * a * 0.01, abs=1e-12)
    reaction = run.reactions("lock:b")
    assert isinstance(reaction, pl.simulation.LockReaction)
    assert reaction.effort[-1, 0] == pytest.approx(way * (a - 0.5), abs=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_what_others_move_together_may_rest_between_them(way: int) -> None:
    """Carriage c goes where a and b go together, which pass each other: it rests, and is held.

    A fourth one is driven. What slides holds nothing, so that c is not moved by rows alone.
    """
    description = carriages(1.0, 1.0, 1.0, 1.0).description
    sums = Coupling("sum", ("c", "a", "b"), ((0.0, 1.0), (0.0, -1.0), (0.0, -1.0)))
    machine = build(replace(description, couplings=(sums,)))
    rows = [pl.constraints.Prescribed("d", lambda t: (t**2, 2 * t, 2.0))]
    forces = [dry(a=0.1, b=0.1, c=10.0), pl.forces.Torque("c", way * 5.0)]
    run = pl.simulate(
        machine, np.zeros(4), [way, -way, 0.0, 0.0], until=0.5, rows=rows, forces=forces,
        method=TIGHT,
    )  # fmt: skip
    assert run.modes[0].sticking == ("c",)
    travel = way * (0.5 - 0.5 * 0.1 * 0.25)
    assert run.q[-1] == pytest.approx([travel, -travel, 0.0, 0.25], abs=1e-9)


# -- decisions ----------------------------------------------------------------------------------


def test_what_comes_back_at_the_instant_at_which_it_left_sticks() -> None:
    """It had left by rounding: what it takes to hold it is noise then, but not later."""
    over = 1e-6
    forces = [dry(a=1.0, b=1.0), *(pl.forces.Torque(name, 1.0 + over) for name in "ab")]
    friction = DryFriction(ModalSystem(carriages(2.0, 3.0), forces=forces), np.zeros(2))
    here, free = (0.5, np.zeros(2), np.zeros(2)), pl.Mode()
    left, grip, _ = friction.decide(here, free, (free, NO_GRIP))
    assert [axis.slides for axis in left.friction] == [1, 1]
    back, again, _ = friction.decide(here, free, (left, grip), frozenset({0}))
    assert [axis.slides for axis in back.friction] == [0, 1]
    assert again.noise[0] == pytest.approx(over, rel=1e-6)
    both, last, _ = friction.decide(here, free, (back, again), frozenset({1}))
    assert [axis.slides for axis in both.friction] == [0, 0]
    assert last.refuted == {0, 1}
    later = friction.decide((0.6, *here[1:]), free, (left, grip), frozenset({0}))[0]
    assert [axis.slides for axis in later.friction] == [1, 1]


@pytest.mark.parametrize("drift", [1e-7, -1e-7])
@pytest.mark.parametrize("way", [1, -1])
def test_what_holds_redundantly_lets_go_along_its_load(way: int, drift: float) -> None:
    """Not along what the stages of a step have moved the joint that closes the loop."""
    machine = robot("four-bar")
    (loop,) = machine.loops
    push = pl.forces.Torque("crank", lambda t: way * 100.0 * t)
    system = ModalSystem(machine, forces=[push, dry(**{"crank": 5.0, loop.name: 5.0})])
    friction, free = DryFriction(system, np.zeros(machine.nv)), pl.Mode()
    q, still = moving(machine, 1)[0], np.zeros(machine.nv)
    held, grip, _ = friction.decide((0.0, q, still), free, (free, NO_GRIP))
    assert held.sticking == ("crank", loop.name)
    assert grip.redundant
    moved = drift * np.arange(1.0, machine.nv + 1.0)
    moved[machine.coordinates("crank").v] = 0.0
    loose = friction.decide((1.0, q, moved), free, (held, grip), released=True)[0]
    motion = np.linalg.svd(pl.EquationsOfMotion(machine).closure(0.0, q)[0])[2][-1]
    motion *= way * np.sign(motion[machine.coordinates("crank").v.start])
    closing = pl.Constraints(machine, full=True).twist_jacobian(q, loop)[5] @ motion
    assert {axis.joint: axis.slides for axis in loose.friction} == {
        "crank": way, loop.name: int(np.sign(closing))
    }  # fmt: skip


def test_the_row_of_a_release_is_that_of_what_is_nearest_to_it() -> None:
    loads = {"a": 0.9, "b": -5.0}
    forces = [dry(a=1.0, b=10.0), *(pl.forces.Torque(name, f) for name, f in loads.items())]
    friction = DryFriction(ModalSystem(carriages(2.0, 3.0), forces=forces), np.zeros(2))
    state, free = (0.0, np.zeros(2), np.zeros(2)), pl.Mode()
    held, grip, _ = friction.decide(state, free, (free, NO_GRIP))
    assert held.sticking == ("a", "b")
    holding = friction.guards(held, grip)[-1].value
    assert isinstance(holding, _Holding)
    row = holding.bound_row(*state)
    assert (row.axis, row.sign) == ("a", -1.0)
    assert row.equations.rows.labels[row.number] == "friction:a"
