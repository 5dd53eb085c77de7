"""Tests of the native kernel: accelerations by other formulas. Skipped where it was not built.

Oracles: `pin.aba` for trees; Pinocchio's solver for loops, with the same rows, also where loops are
open; one dense solution with the rows of all pairs.
"""

from __future__ import annotations

from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import kernel_tables
from pinloop.dynamics.pinocchio_solver import ConstraintDynamics, HeldRows
from pinloop.model.workspace import WorkSpace
from pinloop.simulation import native_steps

from .. import random_linkages
from .. import screw_tables as tables
from ..screw_tables import Array, Table
from ..states import SHIPPED, SMALL, close, dense, moving, regularized, robot

kernel = pytest.importorskip("pinloop._kernel")

LOOPED = [name for name in (*SHIPPED, *SMALL) if robot(name).loops]
EXPRESSED = ["fourbar", "sevenbar", "palletizer", "delta", "stewart", "prrr3", "bricard",
             "slider-crank", "rssr", "bennett", "goldberg"]  # fmt: skip
SAME = 1e-10
"""Relative difference; 7e-12 was the largest on shipped robots, on the delta."""


def composite(*joints: Any) -> Any:
    joint = pin.JointModelComposite()
    for part in joints:
        joint.addJoint(part, pin.SE3.Random())
    return joint


JOINTS = {
    "hinge": pin.JointModelRX,
    "slide": pin.JointModelPY,
    "skew hinge": lambda: pin.JointModelRevoluteUnaligned(np.array([0.6, 0.8, 0.0])),
    "skew slide": lambda: pin.JointModelPrismaticUnaligned(np.array([0.6, 0.0, 0.8])),
    "screw": lambda: pin.JointModelHelicalUnaligned(np.array([0.6, 0.0, 0.8]), 0.3),
    "circle": pin.JointModelRUBY,
    "planar": pin.JointModelPlanar,
    "three angles": pin.JointModelSphericalZYX,
    "cardan": lambda: pin.JointModelUniversal(np.eye(3)[0], np.array([0.0, 0.6, 0.8])),
    "translation": pin.JointModelTranslation,
    "ball": pin.JointModelSpherical,
    "free": pin.JointModelFreeFlyer,
    "SO(3) x R3": lambda: composite(pin.JointModelTranslation(), pin.JointModelSpherical()),
    "chain": lambda: composite(
        pin.JointModelRX(), pin.JointModelSphericalZYX(), composite(pin.JointModelPZ())
    ),
}


def tree(names: list[str], seed: int) -> pin.Model:
    """A tree of these joints with random bodies, rotors and gravity."""
    rng = np.random.default_rng(seed)
    pin.seed(seed)
    model = pin.Model()
    for number, name in enumerate(names):
        parent = int(rng.integers(model.njoints))
        joint = model.addJoint(parent, JOINTS[name](), pin.SE3.Random(), f"j{number}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Random())
    model.armature = rng.uniform(0.0, 0.3, model.nv)
    model.gravity.linear = rng.normal(size=3)
    return model


def same_as_aba(model: pin.Model, seed: int) -> None:
    rng, data = np.random.default_rng(seed), model.createData()
    known = kernel_tables.tables_of(model)
    assert known is not None
    dynamics = kernel.Dynamics(known)
    dynamics.hold([], [], [], model.armature)
    for _ in range(3):
        q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
        v, tau = rng.normal(size=(2, model.nv))
        a = np.full(model.nv, np.nan)
        assert dynamics.acceleration(q, v, tau, a) == 0
        close(a, pin.aba(model, data, q, v, tau), 1e-11)


@pytest.mark.parametrize("name", JOINTS)
def test_every_joint_moves_as_in_pinocchio(name: str) -> None:
    """Alone and beside others, carrying and carried."""
    same_as_aba(tree([name], 1), 1)
    same_as_aba(tree([name, "hinge", name, "ball", name], 2), 2)


@pytest.mark.parametrize("seed", range(25))
def test_random_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(list(JOINTS), int(rng.integers(2, 9)))]
    same_as_aba(tree(names, seed), seed)


def stepped(
    model: pin.Model, weights: list[float], q: Array, v: Array, a: Array
) -> tuple[Array, Array]:
    """``psi`` and ``q`` after a step of one second, each stage one second behind the one before."""
    s, n = len(weights), model.nv
    tableau = np.tri(s, k=-1), np.array(weights), np.zeros((0, s + 1))
    settings = native_steps._NUMBERS | dict.fromkeys(("alpha", "beta", "rtol", "atol"), 1.0)
    settings |= {"smallest": 0.0, "largest": np.inf}
    known = kernel_tables.tables_of(model)
    steps = kernel.Steps(known, tableau, settings, np.ones(n), [0] * n)
    rooms = [np.empty((1, k)) for k in (model.nq, n, n, n, n)]
    notes = np.empty((1, 5)), np.empty((1, 3), dtype=np.int64)
    start = 0.0, 1.0, 1.0, 1.0, 0.0
    assert steps.take(start, (q, v, a), [1.0], [], notes, tuple(rooms), np.empty((1, 0, n))) == 1
    return rooms[3][0], rooms[0][0]


@pytest.mark.parametrize("size", [1e-6, 0.3, 0.9, 1.7])
@pytest.mark.parametrize("name", JOINTS)
def test_configurations_are_the_group_of_pinocchio(name: str, size: float) -> None:
    """Also where series take over from closed forms; ``dexp`` of a rate is the velocity."""
    model, rng = tree([name, "hinge", name], 3), np.random.default_rng(1)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    psi, v = rng.uniform(-1.0, 1.0, (2, model.nv))
    psi *= size / np.abs(psi).max()
    same, moved = stepped(model, [1.0], q, psi, v)
    close(same, psi, 1e-15)
    close(moved, pin.integrate(model, q, psi), 1e-12)
    rate, _ = stepped(model, [0.0, 1.0], q, psi, v - psi)
    close(pin.dIntegrate(model, q, psi, pin.ARG1) @ rate, v, 1e-11)


def test_a_joint_that_it_does_not_know() -> None:
    model = pin.transformJointIntoMimic(tree(["hinge", "hinge"], 1), 1, 2, 2.0, 0.0)
    assert kernel_tables.tables_of(model) is None


# -- loops ----------------------------------------------------------------------------------


class Held:
    """A robot in the kernel, with the rows that were chosen for Pinocchio's solver."""

    def __init__(self, solver: ConstraintDynamics, machine: pl.Mechanism) -> None:
        self.solver, self.machine = solver, machine
        self.dynamics = kernel.Dynamics(kernel_tables.tables_of_rows(machine))

    def hold(self, held: HeldRows) -> list[int]:
        """Hold these rows, in Pinocchio's order of elimination: the last one first."""
        chosen = held.chosen.tolist()
        limits = held.stale.tolist(), held.bad.tolist()
        self.dynamics.hold(chosen, *limits, self.solver._model.armature)
        return list(chosen)

    def acceleration(self, q: Array, v: Array, tau: Array) -> tuple[Array, int]:
        a = np.full(self.machine.nv, np.nan)
        return a, self.dynamics.acceleration(q, v, tau, a)


def held(machine: pl.Mechanism, **given: Any) -> tuple[Held, HeldRows] | None:
    """None if Pinocchio's solver cannot do a robot."""
    python = pl.Automatic(engine="python")
    solver = pl.EquationsOfMotion(machine, formulation=python, **given)._constraint_dynamics
    if solver is None or solver.home is None:
        return None
    ours = Held(solver, machine)
    ours.hold(solver.home)
    return ours, solver.home


def alike(machine: pl.Mechanism, q: Array, v: Array, seed: int, **given: Any) -> bool:
    """Compare with Pinocchio's solver on and off the manifold; whether that can do the robot."""
    known = held(machine, **given)
    if known is None:
        return False
    ours, home = known
    rng, space = np.random.default_rng(seed), WorkSpace(machine.model)
    tau = rng.normal(size=machine.nv)
    for size in (0.0, 1e-3):
        q = pin.integrate(machine.model, q, size * rng.normal(size=machine.nv))
        v = v + size * rng.normal(size=machine.nv)
        a, verdict = ours.acceleration(q, v, tau)
        theirs, _ = ours.solver.acceleration(space, home, q, v, tau)
        assert (verdict == 2) == (theirs is None)
        if theirs is not None:
            assert np.abs(a[ours.solver._locked]).max(initial=0.0) < 1e-50
            close(a, theirs, SAME)
    return True


@pytest.mark.parametrize("name", LOOPED)
def test_accelerations_are_those_of_pinocchio_with_the_same_rows(name: str) -> None:
    for machine in (robot(name), regularized(name)):
        for seed in (1, 2):
            compared = alike(machine, *moving(robot(name), seed), seed)
            assert compared or name not in EXPRESSED


@pytest.mark.parametrize("name", EXPRESSED)
def test_accelerations_are_those_of_all_rows(name: str) -> None:
    """The oracle is one dense least-squares solution with the rows of all pairs."""
    machine = robot(name)
    q, v = moving(machine, 3)
    known = held(machine)
    assert known is not None
    M, f, J, gamma, _ = pl.EquationsOfMotion(machine).system(0.0, q, v)
    scale = pl.EquationsOfMotion(machine).rows.scale
    close(known[0].acceleration(q, v, 0 * v)[0], dense(M, J, f, -gamma, scale)[0], 1e-8)


@pytest.mark.parametrize("seed", [635826879, 1592881472, 2037649781])
def test_rows_that_nearly_depend_on_each_other_lose_no_more_than_they_must(seed: int) -> None:
    """Goldberg's linkages held by rows that no good choice has, on the manifold and beside it.

    The oracle is the dense system in fractions, without rounding. By the factor of the square alone
    5e-10 would be lost.
    """
    machine = tables.build(random_linkages.overconstrained(seed, "goldberg"))
    known = held(machine)
    assert known is not None
    (ours, _), rng, space = known, np.random.default_rng(seed), WorkSpace(machine.model)
    solver, chosen, (q, v) = ours.solver, np.array([4, 1, 0]), moving(machine, seed % 1000)
    loops = solver._loops
    assert loops is not None
    bad = 1e-5 * np.diagonal(solver._gram(q, space.data))[chosen]
    choice = loops.hold(HeldRows(chosen, chosen, bad, bad), 1.0)
    ours.hold(choice)
    tau, equations = rng.normal(size=machine.nv), pl.EquationsOfMotion(machine)
    for size in (0.0, 1e-3):
        q = pin.integrate(machine.model, q, size * rng.normal(size=machine.nv))
        v = v + size * rng.normal(size=machine.nv)
        M, f, J, gamma, _ = equations.system(0.0, q, v)
        J, gamma = J[chosen], gamma[chosen]
        whole = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
        assert np.linalg.cond(whole) > 1e6
        expected = exact_solution(whole, np.concatenate([f + tau, -gamma]))[: machine.nv]
        native, verdict = ours.acceleration(q, v, tau)
        python, _ = solver.acceleration(space, choice, q, v, tau)
        assert verdict == 0 and python is not None
        for a in (native, python):
            close(a, expected, 1e-11, float(np.abs(expected).max()))


@pytest.mark.parametrize("name", ["universal-delta", "double-cardan", "rod-pendulums",
                                  "tip-on-plane", "ball-loop"])  # fmt: skip
def test_rows_that_are_no_twists_are_second_derivatives_of_residuals(name: str) -> None:
    """Wherever loops are open. The residuals, by Python, have second differences of zero."""
    machine, rng = robot(name), np.random.default_rng(1)
    closure, known = pl.constraints.Constraints(machine), kernel_tables.tables_of_rows(machine)
    rows = [
        list(range(len(closure)))[closure.rows_of[loop.name]][k]
        for loop in machine.loops
        for k, (kind, _) in enumerate(loop.pair.components)
        if kind != "twist"
    ]
    dynamics, none = kernel.Dynamics(known), [0.0] * len(rows)
    dynamics.hold(rows, none, none, machine.model.armature)
    for _ in range(3):
        q = pin.integrate(machine.model, machine.neutral, 0.5 * rng.normal(size=machine.nv))
        v, tau, a = *rng.normal(size=(2, machine.nv)), np.empty(machine.nv)
        assert dynamics.acceleration(q, v, tau, a) == 0

        def second(a: Array, h: float = 1e-4, q: Array = q, v: Array = v) -> Array:
            steps = (s * v + 0.5 * s**2 * a for s in (h, 0.0, -h))
            ahead, here, behind = (
                closure.residual(pin.integrate(machine.model, q, step))[rows] for step in steps
            )
            return np.asarray((ahead - 2 * here + behind) / h**2)

        assert np.abs(second(0 * a)).max() > 1e-2
        close(second(a), np.zeros(len(rows)), 1e-6, float(np.abs(a).max()))


def exact_solution(A: Array, b: Array) -> Array:
    """By Gauss' elimination of fractions."""
    rows = [[Fraction(x) for x in row] for row in np.column_stack([A, b]).tolist()]
    n = len(rows)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.array([float(rows[k][n] / rows[k][k]) for k in range(n)])


def random_mechanism(kind: str, seed: int) -> Table:
    if kind == "parallel mechanism":
        return random_linkages.parallel_mechanism(seed)
    if kind == "graph":
        return random_linkages.graph(seed)
    return random_linkages.overconstrained(seed, kind)


@pytest.mark.parametrize("kind", ["parallel mechanism", "graph", "bennett", "goldberg", "bricard"])
def test_random_mechanisms(kind: str) -> None:
    compared = 0
    for seed in range(60):
        machine = tables.build(random_mechanism(kind, seed))
        if machine.nv:
            compared += alike(machine, *moving(machine, seed), seed)
    assert compared > 20, f"{compared} were compared"


@pytest.mark.parametrize("name", ["palletizer", "stewart", "bricard"])
def test_locked_joints_stand_still(name: str) -> None:
    """A rotor without end locks a joint, as in Pinocchio's recursions."""
    machine = regularized(name)
    joint = machine.joints[-1] if name == "stewart" else machine.joints[0]
    q, v = moving(machine, 1)
    alike(machine, q, v + pl.EquationsOfMotion(machine, locks=[joint]).jump(0.0, q, v).a, 1,
          locks=[joint])  # fmt: skip


@pytest.mark.parametrize("name", LOOPED)
def test_rows_are_those_of_python_on_loops_that_are_open(name: str) -> None:
    machine, rng = robot(name), np.random.default_rng(2)
    equations = pl.EquationsOfMotion(machine, formulation=pl.Automatic("python"))
    known = kernel_tables.loop_tables(equations.rows)
    if known is None:
        assert name not in EXPRESSED
        return
    q, v = [], rng.normal(size=(3, machine.nv))
    for _ in v:
        off = 0.3 * rng.normal(size=machine.nv) * np.where(machine.is_translation, 0.1, 1.0)
        q.append(machine.integrate(machine.neutral, off))
    parts = kernel_tables.evaluate_rows(known, len(equations.rows.loops), np.array(q), v)
    for J, gamma, residual, *state in zip(*parts, q, v, strict=True):
        close(J, equations.terms(0.0, *state)[0], 1e-13)
        close(gamma, equations.terms(0.0, *state)[2], 1e-12)
        close(residual, equations.closure(0.0, state[0])[2], 1e-12)
    with pytest.raises(ValueError, match="another robot"):
        kernel_tables.evaluate_rows(known, len(equations.rows.loops), np.array(q), v[:, 1:])


@pytest.mark.parametrize("name", ["palletizer", "delta", "bricard"])
def test_multipliers_are_what_holds_the_rows(name: str) -> None:
    """``M a = f + J' lam`` with the rows of the pairs that are held."""
    machine = robot(name)
    q, v = moving(machine, 1)
    known = held(machine)
    assert known is not None
    chosen = known[0].hold(known[1])
    a, _ = known[0].acceleration(q, v, 0 * v)
    lam = np.array(known[0].dynamics.multipliers)
    J = pl.Constraints(machine, full=True).jacobian(q)[chosen]
    f = -pin.nonLinearEffects(machine.model, machine.model.createData(), q, v)
    close(pl.EquationsOfMotion(machine).mass(q) @ a, f + J.T @ lam, 1e-10)
    assert np.abs(lam).max() > 1e-3


def test_rows_that_depend_on_each_other_are_no_good() -> None:
    machine = robot("parallelogram")
    known = held(machine)
    assert known is not None
    turn = 1.1 * np.array([1.0, -1.0, 1.0])  # the cranks start at 1.1 rad against the ground
    rest = np.zeros(machine.nv)
    verdicts = [known[0].acceleration(q, rest, rest)[1] for q in (turn, -turn, 0 * turn)]
    assert sorted(verdicts)[-1] == 2 and 2 not in verdicts[2:]


def test_a_choice_gets_stale_before_it_gets_bad() -> None:
    machine = robot("four-bar")
    known = held(machine)
    assert known is not None
    home, (q, v) = known[1], moving(machine, 1)
    for stale, bad, verdict in ((1.0, 1.0, 0), (1e9, 1.0, 1), (1e9, 1e9, 2)):
        known[0].hold(home._replace(stale=stale * home.bad, bad=bad * home.bad))
        a, found = known[0].acceleration(q, v, 0 * v)
        assert found == verdict and (verdict == 2 or np.isfinite(a).all())


def test_threads_do_not_disturb_each_other() -> None:
    """The interpreter is let go while the kernel works; each thread has work space of its own."""
    machine = robot("stewart")
    known = [held(machine) for _ in range(4)]
    ours = [one[0] for one in known if one is not None]
    states = [moving(machine, seed) for seed in range(4)]
    alone = [
        one.acceleration(*state, 0 * state[1])[0] for one, state in zip(ours, states, strict=True)
    ]
    wrong: list[int] = []

    def work(k: int) -> None:
        q, v = states[k]
        for _ in range(500):
            if not np.array_equal(ours[k].acceleration(q, v, 0 * v)[0], alone[k]):
                wrong.append(k)

    threads = [Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- arguments ------------------------------------------------------------------------------


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Nothing is read or written beyond their ends."""
    model = tree(["hinge", "ball"], 1)
    dynamics = kernel.Dynamics(kernel_tables.tables_of(model))
    link, loop, row, way = (np.zeros(s) for s in ((2, 31), (1, 31), (1, 8), (2, 6)))
    link[1, 2], term = 1.0, (0, 1, 1, [1.0, 1.0])
    right: dict[str, Any] = {
        "sizes": (2, 2), "gravity": np.zeros(3),
        "arrays": (link - np.eye(31)[:1], way, loop, row), "terms": [term],
    }  # fmt: skip
    kernel.Tables(**right)
    for name, given in (
        ("sizes", (1, 2)), ("sizes", (2, 1)), ("gravity", np.zeros(2)),
        ("arrays", (link + np.eye(31)[:1], way, loop, row)),
        ("arrays", (link + 6.0, way, loop, row)), ("arrays", (link, way, loop + 2.0, row)),
        ("arrays", (link, way, loop, row + 1.0)), ("arrays", (link[:, 1:], way, loop, row)),
        ("arrays", (link, way[1:], loop, row)), ("terms", [(0, 2, 1, [1.0])]),
        ("terms", [(0, 1, -1, [1.0])]), ("terms", [(1, 1, 1, [1.0])]),
    ):  # fmt: skip
        with pytest.raises((ValueError, IndexError)):
            kernel.Tables(**right | {name: given})
    q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for wrong in ((q[:-1], v, v, a), (q, v[1:], v, a), (q, v, v[1:], a), (q, v, v, a[1:])):
        with pytest.raises(ValueError, match="another robot"):
            dynamics.acceleration(*wrong)
    with pytest.raises(TypeError):
        dynamics.acceleration(q, v, v, np.zeros(model.nv, dtype=int))
    wrong_rows: list[tuple[Any, ...]] = [([0], [0.0], [0.0], v), ([], [0.0], [], v)]
    for given in (*wrong_rows, ([], [], [], v[1:])):
        with pytest.raises(ValueError, match=r"tables do not have|that is none"):
            dynamics.hold(*given)


def test_states_that_are_not_finite_are_no_good() -> None:
    model = tree(["hinge", "ball"], 1)
    dynamics = kernel.Dynamics(kernel_tables.tables_of(model))
    v = np.zeros(model.nv)
    assert dynamics.acceleration(np.full(model.nq, np.nan), v, v, v.copy()) == 2
