"""Tests of whole steps in the kernel: the same steps as Python takes, from event to event.

The oracle is the loop in Python, with Pinocchio's own solver for accelerations; what psi is follows
from `pin.integrate`. Skipped where the kernel was not built.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import kernel_tables
from pinloop.dynamics.forces import Force
from pinloop.integrate import MANY
from pinloop.simulation.native_steps import NativeSteps

from .. import random_linkages
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import close, moving, regularized, robot

kernel = pytest.importorskip("pinloop._kernel")

IN_KERNEL = ["fourbar", "sevenbar", "palletizer", "delta", "stewart", "prrr3", "bricard",
             "slider-crank", "rssr", "bennett", "goldberg", "double-cardan", "universal-delta",
             "rod-pendulums", "tip-on-plane", "ball-loop"]  # fmt: skip
METHODS = {
    "dop853": pl.MuntheKaas(),
    "coarse dop853": pl.MuntheKaas("dop853", rtol=1e-4, atol=1e-4),
    "dopri5": pl.MuntheKaas("dopri5", rtol=1e-6, atol=1e-7),
    "bs32": pl.MuntheKaas("bs32", rtol=1e-4, atol=1e-4),
    "long dopri5": pl.MuntheKaas("dopri5", rtol=1e-3, atol=1e-3, largest=0.02),
    "rk4": pl.MuntheKaas("rk4", step=2e-3),
    "fixed dop853": pl.MuntheKaas("dop853", step=7e-3),
    "euler": pl.MuntheKaas("euler", step=2e-4),
}
FINE = pl.MuntheKaas("dopri5", rtol=1e-9, atol=1e-9)
"""A method whose errors are far above rounding, so that this does not decide on sizes of steps."""
SAME = 1e-10
"""Difference of states, over the largest, that the engines may have."""


@dataclass
class Taken:
    """How many steps the kernel has taken, call by call."""

    counts: list[int] = field(default_factory=list)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Taken]:
    """Count the steps of the kernel."""
    noted, take = Taken(), NativeSteps.take

    def counted(self: NativeSteps, *args: Any) -> Any:
        segment = take(self, *args)
        noted.counts.append(0 if segment is None else len(segment))
        return segment

    monkeypatch.setattr(NativeSteps, "take", counted)
    yield noted


def both(
    machine: pl.Mechanism, q: Array, v: Array, **given: Any
) -> tuple[pl.Trajectory, pl.Trajectory]:
    """A run by each engine, by default without losses of the file."""
    given.setdefault("losses", False)
    native, python = pl.Automatic("native"), pl.Automatic("python")
    return (
        pl.simulate(machine, q, v, formulation=native, **given),
        pl.simulate(machine, q, v, formulation=python, **given),
    )


def same(native: pl.Trajectory, python: pl.Trajectory, within: float = SAME) -> None:
    """The same steps, states, modes, events and diagnostics."""
    assert len(native.t) == len(python.t)
    # Where an event is, the last bit may decide whether its root is looked for once more.
    changes = int(np.count_nonzero(np.diff(native.mode)))  # of what dry friction holds, too
    assert abs(native.evaluations - python.evaluations) <= changes
    assert native.rejected == python.rejected
    assert native.accuracy == python.accuracy and native.message == python.message
    assert native.modes == python.modes and native.mode.tolist() == python.mode.tolist()
    assert [name for _, name in native.events] == [name for _, name in python.events]
    # Sizes of steps follow estimates of errors, which are differences near rounding.
    np.testing.assert_allclose(native.t, python.t, atol=0.05 * float(np.ptp(native.t)))
    for at in np.linspace(native.t[0], native.t[-1], 5):
        here, there = native(float(at)), python(float(at))
        close(here.q, there.q, within)
        close(here.v, there.v, within)
    close(native.a[-1], python.a[-1], 1e3 * within)


@pytest.mark.parametrize("name", IN_KERNEL)
def test_runs_take_the_same_steps(name: str, taken: Taken) -> None:
    machine = regularized(name)
    native, python = both(machine, *moving(machine, 1), until=0.3)
    same(native, python)
    assert sum(taken.counts) > 0.8 * (len(native.t) - 1)
    assert np.abs(native.energy().error).max() < 1e-6
    assert native.closure().max() < 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["fourbar", "stewart", "rssr"])
def test_methods_take_the_same_steps(name: str, method: str, taken: Taken) -> None:
    machine = regularized(name)
    same(*both(machine, *moving(machine, 2), until=0.25, method=METHODS[method]), 1e-9)
    assert sum(taken.counts) > 2


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
@pytest.mark.parametrize("name", ["fourbar", "rssr", "slider-crank"])
def test_curved_coordinates(name: str, space: Any, taken: Taken) -> None:
    """Bodies in absolute coordinates, all joints of which close loops."""
    machine = pl.regularize(robot(name)).absolute(space)
    q, v = moving(machine, 1, speed=2.0)
    native, python = both(machine, q, v, until=0.4, method=pl.MuntheKaas("dopri5"))
    same(native, python, 1e-9)
    if native.engine == "native":
        assert sum(taken.counts) > 10
        ends = [
            pin.integrate(machine.model, *pair) for pair in zip(native.q, native.psi, strict=False)
        ]
        close(np.array(ends), native.q[1:], 1e-12)


def test_joints_of_all_kinds(taken: Taken) -> None:
    """Random loops with hinges, slides, screws, balls, planes and cosines."""
    used = 0
    for seed in range(40):
        make = random_linkages.parallel_mechanism if seed % 2 else random_linkages.graph
        machine = tables.build(make(seed))
        if machine.nv == 0:
            continue
        before = sum(taken.counts)
        same(*both(machine, *moving(machine, seed), until=0.05, method=FINE), 1e-8)
        used += sum(taken.counts) > before
    assert used > 12, f"the kernel was used for {used}"


@pytest.mark.parametrize("kind", ["bennett", "goldberg", "bricard"])
def test_paradoxical_linkages(kind: Any, taken: Taken) -> None:
    """Rows that depend on each other on the manifold, of which some are held, in turns."""
    for seed in range(5):
        machine = tables.build(random_linkages.overconstrained(seed, kind))
        same(*both(machine, *moving(machine, seed), until=0.1, method=FINE), 1e-7)
    assert sum(taken.counts) > 12


def test_rows_that_contradict_each_other_are_met_best_in_the_kernel(taken: Taken) -> None:
    """By least squares, as in Python, where what is left of the position makes them contradict."""
    machine = robot("bricard")
    native, python = both(machine, machine.neutral, 0 * machine.neutral, until=5.0)
    same(native, python, 1e-7)
    assert sum(taken.counts) > 0.98 * (len(native.t) - 1)
    rows = pl.Constraints(machine)
    rates = [
        max(float(np.abs(rows.jacobian(q) @ v).max()) for q, v in zip(run.q, run.v, strict=True))
        for run in (native, python)
    ]
    assert rates[0] < 2 * rates[1]


@pytest.mark.parametrize("name", ["gear-pair", "screw-jack", "schoenflies-loop", "hoberman-4"])
def test_couplings_and_screws(name: str, taken: Taken) -> None:
    """Sums of polynomials have a residual of their own, and screws make turns."""
    machine = regularized(name)
    native, python = both(machine, *moving(machine, 1), until=0.5, method=FINE)
    same(native, python, 1e-8)
    assert native.engine == "python" or taken.counts


# -- trees and forces -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "planar_3r", "double-pendulum", "spinning-rods"])
@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk4"])
def test_robots_without_loops(name: str, method: str, taken: Taken) -> None:
    """Their accelerations are those of `pin.aba` in Python."""
    machine = robot(name)
    native, python = both(machine, *moving(machine, 1), until=0.3, method=METHODS[method])
    same(native, python, 1e-8)
    assert taken.counts and (native.engine, python.engine) == ("native", "python")


def forces_on(machine: pl.Mechanism, kind: str) -> list[Force]:
    """Forces of a kind on the joints and bodies of a palletizer or an arm."""
    first, second, *_ = machine.joints
    ends = ((machine.bodies[1], (0.1, 0.2, -0.1)), (machine.bodies[-1], (0.05, 0.0, 0.3)))
    forces = pl.dynamics.forces
    made: dict[str, list[Force]] = {
        "torque": [pl.Torque(first, 30.0), pl.Torque(second, -20.0)],
        "drive": [pl.PD(first, 200.0, 15.0, 0.4, 0.1), pl.PD(second, 300.0, 5.0)],
        "joint spring": [forces.JointSpring(second, 250.0, 0.3)],
        "damping": [forces.JointDamping({first: 20.0, second: 9.0}), forces.JointDamping()],
        "spring": [forces.Spring(*ends, 60.0, 0.2)],
        "to the ground": [forces.Spring("world", ends[1], 60.0, 0.2)],
        "damper": [forces.Damper(*ends, 20.0), forces.Damper(ends[1], "world", 8.0)],
        "point": [
            forces.PointForce(ends[0], (20.0, 5.0, -9.0)),
            forces.PointForce(ends[1], (3.0, -40.0, 5.0), local=True),
        ],
    }
    return [*made[kind], pl.Torque(second, 1.0)]


FORCES = ["torque", "drive", "joint spring", "damping", "spring", "to the ground", "damper",
          "point"]  # fmt: skip


@pytest.mark.parametrize("kind", FORCES)
@pytest.mark.parametrize("name", ["palletizer", "six_axis_arm"])
def test_forces_are_those_of_python(name: str, kind: str, taken: Taken) -> None:
    """Also their work: the energy balance is computed from the forces in Python."""
    machine = regularized(name)
    q, v = moving(machine, 2, speed=1.0)
    forces = forces_on(machine, kind)
    native, python = both(machine, q, v, until=0.2, forces=forces)
    same(native, python, 1e-9)
    assert taken.counts
    balance = native.energy()
    assert np.abs(balance.error).max() < 1e-5 * np.ptp(balance.kinetic)
    without = pl.simulate(machine, q, v, until=0.2, forces=forces[-1:], losses=False)
    assert np.abs(native.q[-1] - without.q[-1]).max() > 1e-6


def test_losses_of_the_file_are_in_the_kernel(taken: Taken) -> None:
    """Damping, and dry friction of what slides; what sticks is decided between the steps."""
    machine = regularized("palletizer")
    native, python = both(machine, *moving(machine, 3), until=0.5, losses=True)
    same(native, python, 1e-7)
    assert len(native.slips) == len(python.slips) and taken.counts and native.slips


AT_LOOPS = [
    (name, kind)
    for name in ("palletizer", "slider-crank", "scotch-yoke", "five-bar")
    for kind in ("torque", "spring", "drive", "damping", "friction")
]


@pytest.mark.parametrize(("name", "kind"), [*AT_LOOPS, ("rssr", "friction")])
def test_forces_at_joints_that_close_loops(name: str, kind: str, taken: Taken) -> None:
    """On hinges and slides; a spring beyond half a turn measures from where it rests."""
    machine, forces = regularized(name), pl.dynamics.forces
    joint = machine.loops[-1].name
    force: Force = {
        "torque": pl.Torque(joint, 3.0),
        "spring": forces.JointSpring(joint, 20.0, 4.0 if name == "five-bar" else 0.3),
        "drive": pl.PD(joint, 20.0, 1.0, 0.2),
        "damping": forces.JointDamping({joint: 2.0}),
        "friction": forces.JointFriction(coefficients={joint: 0.5}),
    }[kind]
    q, v = moving(machine, 2)
    native, python = both(machine, q, v, until=0.1, forces=[force])
    same(native, python, 1e-9)
    assert taken.counts
    without = pl.simulate(machine, q, v, until=0.1, losses=False)
    assert np.abs(native.q[-1] - without.q[-1]).max() > 1e-6


@pytest.mark.parametrize("kind", ["function", "target", "loop joint", "point"])
def test_other_forces_are_for_python(kind: str, taken: Taken) -> None:
    machine = regularized("palletizer")
    first, forces = machine.joints[0], pl.dynamics.forces
    force: Force = {
        "function": pl.Torque(first, lambda t: 3.0 * t),
        "target": pl.PD(first, 10.0, 1.0, lambda t: 0.1 * t),
        "loop joint": pl.Torque(machine.loops[0].name, lambda t: 3.0),
        "point": forces.PointForce(machine.bodies[-1], lambda t: (1.0, 0.0, 0.0)),
    }[kind]
    pl.simulate(machine, *moving(machine, 1), until=0.05, forces=[force], losses=False)
    assert not taken.counts


# -- events ---------------------------------------------------------------------------------------


def fall(name: str = "fourbar") -> tuple[pl.Mechanism, Array, Array]:
    machine = regularized(name)
    return machine, *moving(machine, 3)


def test_a_guard_of_the_user_stops_the_run_where_python_does(taken: Taken) -> None:
    machine, q, v = fall()
    joint = machine.coordinates(machine.joints[0])
    path = pl.simulate(machine, q, v, until=1.0)
    level = float(path(0.61).q[joint.q.start])
    stop = pl.stop_when(lambda t, q, v: float(q[joint.q.start]) - level, name="there")
    native, python = both(machine, q, v, until=1.0, events=[stop])
    same(native, python)
    assert native.t[-1] == pytest.approx(python.t[-1], abs=1e-10) and native.t[-1] < 1.0
    assert any(taken.counts)


@pytest.mark.parametrize("limits", ["warn", "stop", "end stop"])
def test_limits(limits: Any, taken: Taken) -> None:
    """The same joints at the same instants, also where nothing is done about it."""
    machine, q, v = fall("palletizer")
    native, python = both(machine, q, v, until=1.0, limits=limits)
    # In flat poses, through which it falls, rounding decides on the size of steps.
    end = min(native.t[-1], python.t[-1])
    assert max(native.t[-1], python.t[-1]) == pytest.approx(end, abs=1e-7)
    for at in np.linspace(0.0, end, 11).tolist():
        close(native(at).q, python(at).q, 1e-7)
    # Joints that move alike pass theirs at one instant, in any order.
    passed = (
        sorted(run.limits_passed, key=lambda x: (x.joint, x.side)) for run in (native, python)
    )
    for one, other in zip(*passed, strict=True):
        assert one.joint == other.joint and one.t == pytest.approx(other.t, abs=1e-7)
        assert one.by == pytest.approx(other.by, abs=1e-7)
    assert native.limits_passed if limits == "warn" else not native.limits_passed
    assert any(taken.counts)


def test_locks_at_a_time_and_loops_that_open(taken: Taken) -> None:
    machine, q, v = fall("prrr3")
    name = machine.joints[1]
    events = [pl.lock(name, at=0.21), pl.unlock(name, at=0.37)]
    native, python = both(machine, q, v, until=0.6, events=events)
    same(native, python)
    assert len(native.transitions) == 2 and sum(taken.counts) > 10
    held = native.q[native.mode == 1][:, machine.coordinates(name).q]
    assert (held == held[0]).all()
    opened = pl.Mode(opened=machine.loops[0].name)
    same(*both(machine, q, v, until=0.1, mode=opened))


def test_samples_are_those_of_single_steps(taken: Taken) -> None:
    machine, q, v = fall()
    native, python = both(machine, q, v, until=1.0, save_every=0.03)
    same(native, python)
    np.testing.assert_array_equal(native.t, python.t)
    assert any(taken.counts)
    every = pl.simulate(machine, q, v, until=1.0)
    close(native.q[7], every(0.21).q, 1e-8)


# -- who takes which steps --------------------------------------------------------------------


def test_long_runs_come_in_pieces(taken: Taken) -> None:
    machine, q, v = fall()
    tight = pl.MuntheKaas("dopri5", rtol=1e-11, atol=1e-11)
    native, python = both(machine, q, v, until=1.0, method=tight)
    same(native, python)
    assert max(taken.counts) == MANY and len(taken.counts) > 1


def test_a_motion_that_crawls_is_looked_at_by_python(taken: Taken) -> None:
    """Before the 20th step and others it is asked whether it is stiff, if many are to come."""
    machine, q, v = fall()
    fine = pl.MuntheKaas("dopri5", rtol=1e-13, atol=1e-13)
    native, python = both(machine, q, v, until=6.0, method=fine)
    same(native, python)
    assert len(native.t) > 1000 and taken.counts[0] == 20 and sum(taken.counts) < len(native.t) - 1


def test_past_a_bifurcation_python_goes_on(taken: Taken) -> None:
    machine = robot("parallelogram")
    q, v = moving(machine, 1, speed=2.0)
    native, python = both(machine, q, v, until=3.0)
    close(native.q[-1], python.q[-1], 1e-5)  # there rounding decides about the sizes of steps
    assert np.abs(native.energy().error).max() < 1e-6
    assert native.closure().max() < 1e-8 and any(taken.counts)


@pytest.mark.parametrize("option", ["python", "mass", "named", "radau5", "force", "row"])
def test_what_it_cannot_do_is_done_in_python(option: str, taken: Taken) -> None:
    machine, q, v = fall()
    options: dict[str, dict[str, Any]] = {
        "python": {"formulation": pl.Augmented()},
        "mass": {"stabilization": pl.Projection(coordinates="mass")},
        "named": {"stabilization": pl.Projection(coordinates=machine.joints[1:])},
        "radau5": {"method": pl.MuntheKaas("radau5")},
        "force": {"tau": lambda t, q, v: np.zeros(machine.nv)},
        "row": {"rows": [pl.constraints.Pfaffian("no", lambda q: np.zeros((1, machine.nv)))]},
    }
    plain = pl.simulate(machine, q, v, until=0.2, losses=False)
    assert any(taken.counts)
    taken.counts.clear()
    run = pl.simulate(machine, q, v, until=0.2, **options[option])
    assert not taken.counts
    close(run.q[-1], plain.q[-1], 1e-6)


def test_without_stabilization_loops_drift_alike(taken: Taken) -> None:
    machine, q, v = fall("stewart")
    coarse = pl.MuntheKaas("dopri5", rtol=1e-4, atol=1e-4)
    native, python = both(machine, q, v, until=0.3, stabilization=None, method=coarse)
    same(native, python, 1e-9)
    drift = native.closure().max()
    assert drift > 1e-9 and drift == pytest.approx(python.closure().max(), rel=1e-3)


def test_without_the_kernel_python_takes_all_steps(
    taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, q, v = fall()
    with_it = pl.simulate(machine, q, v, until=0.3)
    taken.counts.clear()
    monkeypatch.setattr(NativeSteps, "of", lambda *args: None)
    without = pl.simulate(machine, q, v, until=0.3)
    same(with_it, without, 1e-12)
    assert not taken.counts and kernel_tables.HAS_KERNEL


# -- what is left of a run --------------------------------------------------------------------


def test_a_run_can_be_pickled_and_saved(tmp_path: Any) -> None:
    machine, q, v = fall()
    run = pl.simulate(machine, q, v, until=0.3)
    stored = pickle.dumps(run)
    assert run.limits_passed is not None and run.warnings is not None
    assert pickle.dumps(run) == stored
    back = pickle.loads(stored)
    np.testing.assert_array_equal(back.q, run.q)
    loaded = pl.load_trajectory(run.save(tmp_path / "run.npz"))
    assert loaded.limits_passed == run.limits_passed
    close(loaded(0.1).v, run(0.1).v, 1e-12)


def test_the_same_call_gives_the_same_bits() -> None:
    machine, q, v = fall("stewart")
    first, again = (pl.simulate(machine, q, v, until=0.2) for _ in range(2))
    for name in ("t", "q", "v", "a", "psi"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_what_does_not_fit_is_refused() -> None:
    machine = regularized("fourbar")
    equations = pl.EquationsOfMotion(machine)
    along = equations.right_hand_side()
    assert along.solver is not None
    one, none = np.ones(3), np.zeros((0, 3))
    with pytest.raises(ValueError, match="one unit per velocity"):
        kernel.Steps(along.solver.tables, (np.zeros((2, 2)), np.ones(2), none), {}, one[:2], [])
    with pytest.raises(ValueError, match="a tableau of these sizes is none"):
        kernel.Steps(along.solver.tables, (np.zeros((2, 3)), np.ones(2), none), {}, one, [])
