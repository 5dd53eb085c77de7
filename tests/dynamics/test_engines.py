"""Tests of who computes accelerations: the native kernel gives what Python does, in runs too.

What the kernel does is tested in `test_kernel`. Skipped where it was not built.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import Locked
from pinloop.dynamics import kernel_tables, pinocchio_solver
from pinloop.model.description import Coupling
from pinloop.model.mechanism import build

from .. import random_linkages
from .. import screw_tables as tables
from ..screw_tables import Array, Table
from ..states import SHIPPED, SMALL, assembled, close, dense, moving, regularized, robot

kernel = pytest.importorskip("pinloop._kernel")

LOOPED = [name for name in (*SHIPPED, *SMALL) if robot(name).loops]
TREES = [name for name in (*SHIPPED, *SMALL) if not robot(name).loops]
IN_KERNEL = ["planar_3r", "six_axis_arm", "gear-pair", "double-pendulum", "planar-3R",
             "six-axis-arm", "screw-jack",
             "fourbar", "sevenbar", "palletizer", "delta", "stewart", "prrr3", "bricard",
             "slider-crank", "rssr", "bennett", "goldberg"]  # fmt: skip
ENGINES = pl.Automatic("native"), pl.Automatic("python")
SAME = 1e-10
"""Relative difference of the engines."""


def both(machine: pl.Mechanism, tau: Array, **given: Any) -> list[pl.EquationsOfMotion]:
    push = pl.TorqueFunction(lambda t, q, v: tau)
    return [
        pl.EquationsOfMotion(machine, forces=[push], formulation=engine, **given)
        for engine in ENGINES
    ]


def alike(machine: pl.Mechanism, q: Array, v: Array, seed: int, **given: Any) -> bool:
    """Compare the engines on and off the manifold; whether the kernel can do the robot at all."""
    rng = np.random.default_rng(seed)
    native, python = both(machine, rng.normal(size=machine.nv), **given)
    close(native.acceleration(0.0, q, v), python.acceleration(0.0, q, v), SAME)
    assert python.engine == "python"
    # Off the manifold other rows are another motion.
    if native.engine == "native" and native.solver == python.solver:
        q = pin.integrate(machine.model, q, 1e-3 * rng.normal(size=machine.nv))
        v = v + 1e-3 * rng.normal(size=machine.nv)
        close(native.acceleration(0.0, q, v), python.acceleration(0.0, q, v), SAME)
    return native.engine == "native"


@pytest.mark.parametrize("name", [*LOOPED, *TREES])
def test_accelerations_are_those_of_the_other_engine(name: str) -> None:
    for machine in (robot(name), regularized(name)):
        for seed in (1, 2):
            used = alike(machine, *moving(robot(name), seed), seed)
            assert used or name not in IN_KERNEL


@pytest.mark.parametrize("name", LOOPED)
def test_equations_and_loops_are_those_of_the_other_engine(name: str) -> None:
    """Anywhere: the kernel leaves loops to Python that are nearly upside down."""
    for machine in (robot(name), regularized(name)):
        native, python = both(machine, np.zeros(machine.nv))
        rng = np.random.default_rng(3)
        for size in (0.0, 0.3, 3.0, 3.0, 3.0):
            turned = size * rng.normal(size=machine.nv) * np.where(machine.is_translation, 0.1, 1.0)
            q = machine.integrate(machine.neutral, turned)
            for own, other in zip(native.closure(0.0, q), python.closure(0.0, q), strict=True):
                close(own, other, 1e-9)
            close(native.residual_of_whole(q), python.residual_of_whole(q), 1e-9)
            v = rng.normal(size=machine.nv)
            systems = (equations.system(0.0, q, v) for equations in (native, python))
            *parts, (own_rank, other_rank) = zip(*systems, strict=True)
            assert own_rank == other_rank
            for own, other in parts:
                close(own, other, 1e-9)


@pytest.mark.parametrize("locks", [["j1"], ["j2"], [Locked("j2", ("wx",))]])
def test_locked_joints_of_a_tree_stand_still(locks: Any) -> None:
    """Whole or axis by axis, whatever the others do; the oracle are the rows of the locks."""
    machine, rng = arm("spherical"), np.random.default_rng(3)
    native, python = both(machine, rng.normal(size=machine.nv), locks=locks)
    q = pin.randomConfiguration(machine.model, -np.ones(machine.nq), np.ones(machine.nq))
    v = rng.normal(size=machine.nv)
    v[native.rows.locked] = 0.0
    a = native.acceleration(0.0, q, v)
    close(a, python.acceleration(0.0, q, v), SAME)
    close(native.terms(0.0, q, v)[0] @ a, np.zeros(len(native.rows)), SAME)
    assert native.engine == "native" and native.solver == "aba"


def arm(kind: str, joints: int = 4) -> pl.Mechanism:
    """Joints one after another, the second of some kind."""
    rng = np.random.default_rng(1)
    kinds = ["revolute", "revolute", kind, *["revolute"] * (joints - 3)]
    return tables.build(
        tables.table(
            "arm",
            *(
                tables.joint(f"j{k}", one, f"b{k}" if k else "ground", f"b{k + 1}",
                             rng.normal(size=3), rng.normal(size=3))
                for k, one in enumerate(kinds)
            ),
        )
    )  # fmt: skip


def test_long_chains_are_for_articulated_bodies() -> None:
    """Work on the mass matrix grows with the square of the depth."""
    for joints, engine in ((20, "native"), (40, "python")):
        machine = arm("revolute", joints)
        equations = pl.EquationsOfMotion(machine)
        assert equations.engine == engine and equations.solver == "aba"


@pytest.mark.parametrize("seed", range(10))
def test_couplings(seed: int) -> None:
    """Cams, ``sum P(q) = 0``, in a tree and beside a loop; the oracle is one dense solution."""
    rng = np.random.default_rng(seed)
    base = robot("five-bar") if seed % 2 else arm("prismatic", 6)
    names = tuple(str(name) for name in rng.permutation(base.joints)[: 2 + seed % 2])
    cam = Coupling("cam", names, tuple(tuple(rng.normal(size=rng.integers(2, 6))) for _ in names))
    machine = build(replace(base.description, couplings=(cam,)))
    q, v, tau = base.neutral + 0.3 * rng.normal(size=base.nq), *rng.normal(size=(2, base.nv))
    M, f, J, gamma, _ = pl.EquationsOfMotion(machine).system(0.0, q, v)
    chosen = independent(J)
    dynamics, none = kernel.Dynamics(kernel_tables.tables_of_rows(machine)), [0.0] * len(chosen)
    dynamics.hold(chosen, none, none, machine.model.armature)
    a = np.empty(machine.nv)
    assert dynamics.acceleration(q, v, tau, a) == 0
    close(a, dense(M, J[chosen], f + tau, -gamma[chosen], np.ones(len(chosen)))[0], 1e-9)


def independent(J: Array) -> list[int]:
    """The last row, of the coupling, and rows that are independent of it."""
    chosen: list[int] = [len(J) - 1]
    for k in range(len(J) - 1):
        if np.linalg.svd(J[[*chosen, k]], compute_uv=False)[-1] > 1e-3:
            chosen.append(k)
    return chosen


def random_mechanism(kind: str, seed: int) -> Table:
    if kind == "parallel mechanism":
        return random_linkages.parallel_mechanism(seed)
    if kind == "graph":
        return random_linkages.graph(seed)
    return random_linkages.overconstrained(seed, kind)


@pytest.mark.parametrize("kind", ["parallel mechanism", "graph", "bennett", "goldberg", "bricard"])
def test_random_mechanisms(kind: str) -> None:
    used = 0
    for seed in range(60):
        machine = tables.build(random_mechanism(kind, seed))
        if machine.nv:
            used += alike(machine, *moving(machine, seed), seed)
    assert used > 20, f"the kernel computed {used}"


@pytest.mark.parametrize("name", ["palletizer", "stewart", "bricard", "six_axis_arm"])
def test_locked_joints_stand_still(name: str) -> None:
    machine = regularized(name)
    joint = machine.joints[0]
    q, v = moving(machine, 1)
    v[machine.coordinates(joint).v] = 0.0
    held = pl.EquationsOfMotion(machine, locks=[joint])
    v = v + held.jump(0.0, q, v).a
    alike(machine, q, v, 1, locks=[joint])
    assert not held.acceleration(0.0, q, v)[machine.coordinates(joint).v].any()


# -- who decides ----------------------------------------------------------------------------


def test_where_rows_depend_on_each_other_python_decides() -> None:
    machine = robot("parallelogram")
    native, python = both(machine, np.ones(machine.nv))
    turn = 1.1 * np.array([1.0, -1.0, 1.0])  # the cranks start at 1.1 rad against the ground
    for q in (turn, -turn, moving(machine, 1)[0]):
        close(
            native.acceleration(0.0, q, np.zeros(machine.nv)),
            python.acceleration(0.0, q, np.zeros(machine.nv)),
            SAME,
        )
    assert native.engine == "native"


@pytest.mark.parametrize("name", ["goldberg", "bricard", "palletizer"])
def test_rows_are_chosen_again_at_the_same_states(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pivots are the same, so that both engines find a choice bad or stale at the same states."""
    machine, held = regularized(name), []
    for engine in ENGINES:
        equations = pl.EquationsOfMotion(machine, formulation=engine)
        equations.acceleration(0.0, *moving(robot(name), 9))
        monkeypatch.setattr(pinocchio_solver, "_BAD", 0.9)
        solver = equations._constraint_dynamics
        assert solver is not None
        home = solver.choose(assembled(robot(name), 9), machine.model.createData())
        monkeypatch.setattr(solver, "home", home)  # which the robot keeps
        along, seen = equations.right_hand_side(), []
        for seed in range(12):
            q, v = moving(robot(name), seed, speed=3.0)
            before = along.held
            along(0.0, q, v)
            along.advance(q)
            seen.append((along.held is before, along.held and along.held.chosen.tolist()))
        held.append(seen)
        monkeypatch.undo()
    assert held[0] == held[1] and not all(same for same, _ in held[0])


def test_a_row_of_the_user_is_for_python() -> None:
    machine = robot("four-bar")
    row = pl.constraints.Pfaffian("none", lambda q: np.zeros((1, machine.nv)))
    assert pl.EquationsOfMotion(machine, rows=[row]).engine == "python"
    assert pl.EquationsOfMotion(machine, formulation=pl.Voronets()).engine == "python"
    assert pl.EquationsOfMotion(machine).engine == "native"


def test_without_the_kernel_python_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = pl.EquationsOfMotion(robot("four-bar"))
    assert with_it.engine == "native"
    monkeypatch.setattr(kernel_tables, "HAS_KERNEL", False)
    machine = tables.build(SMALL["four-bar"]())
    q, v = moving(machine, 1)
    without = pl.EquationsOfMotion(machine)
    assert without.engine == "python" and without.solver == "constraintDynamics"
    close(without.acceleration(0.0, q, v), with_it.acceleration(0.0, q, v), SAME)


def test_a_kernel_of_other_sources_is_refused(tmp_path: Path) -> None:
    """One letter is enough; the sources are those of this checkout, wherever the package is."""
    kernel = pytest.importorskip("pinloop._kernel")
    kernel_tables.require_built_from(tmp_path, "nothing is there that could be another")
    for file in (Path(__file__).parents[2] / "src" / "native").glob("*.[ch]pp"):
        shutil.copy(file, tmp_path)
    kernel_tables.require_built_from(tmp_path, kernel.SOURCES_DIGEST)
    with (tmp_path / "tables.hpp").open("a") as changed:
        changed.write("//")
    with pytest.raises(pl.PinloopError, match=r"built from other sources .* build it again"):
        kernel_tables.require_built_from(tmp_path, kernel.SOURCES_DIGEST)


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(pl.BadValue, match="engine is 'numba'; give 'native' or 'python'"):
        pl.Automatic("numba")  # type: ignore[arg-type]


# -- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["four-bar", "delta", "bricard", "prrr3", "six_axis_arm", "gear-pair", "screw-jack"]
)
def test_runs_take_the_same_steps(name: str) -> None:
    machine = regularized(name)
    q, v = moving(machine, 1)
    native, python = (
        pl.simulate(machine, q, v, until=0.2, formulation=engine) for engine in ENGINES
    )
    # Where an event is, the last bit may decide whether its root is looked for once more.
    assert len(native.t) == len(python.t)
    assert abs(native.evaluations - python.evaluations) <= len(native.transitions) + 1
    close(native.q[-1], python.q[-1], SAME)
    close(native.v[-1], python.v[-1], SAME)
    assert (native.engine, python.engine) == ("native", "python")
    assert "engine native" in repr(native)


def test_threads_do_not_disturb_each_other() -> None:
    """The interpreter is let go while the kernel works, in a work space of its own."""
    machine = robot("stewart")
    equations = pl.EquationsOfMotion(machine)
    states = [moving(machine, seed) for seed in range(4)]
    alone = [equations.acceleration(0.0, q, v) for q, v in states]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(200):
            if not np.array_equal(equations.acceleration(0.0, *states[k]), alone[k]):
                wrong.append(k)

    threads = [Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_same_state_gives_the_same_bits() -> None:
    machine = robot("delta")
    equations = pl.EquationsOfMotion(machine)
    first, other = moving(machine, 1), moving(machine, 2)
    a = equations.acceleration(0.0, *first)
    equations.acceleration(0.0, *other)
    np.testing.assert_array_equal(equations.acceleration(0.0, *first), a)


def test_of_rows_that_are_as_good_the_first_is_held_whatever_rounding_says() -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, -0.8]])
    for seed in range(20):
        noise = 1e-15 * np.random.default_rng(seed).normal(size=(3, 2))
        chosen = pinocchio_solver.choose_rows((rows + noise) @ (rows + noise).T, 2)
        assert chosen is not None and chosen.tolist() == [0, 1]


def test_no_row_is_held_that_is_about_to_vanish() -> None:
    """Where others do as well. A part of a robot all of whose rows are small has them held."""
    rows = np.array([[1e-3, 0.0], [0.6, 0.8], [0.6, -0.8]])
    chosen = pinocchio_solver.choose_rows(rows @ rows.T, 2)
    assert chosen is not None and chosen.tolist() == [1, 2]
    rows = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1e-3], [0.8, -0.6, 0.0]])
    chosen = pinocchio_solver.choose_rows(rows @ rows.T, 3)
    assert chosen is not None and 2 in chosen
