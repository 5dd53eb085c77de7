"""Tests of who solves the equations of a stop: the native kernel gives what the matrices give.

The matrices are those of `StopEquations` in Python. Skipped where the kernel was not built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.dynamics import kernel_tables
from pinloop.integrate import HybridIntegrator, Segment
from pinloop.model.description import GROUND, Coupling
from pinloop.model.mechanism import build
from pinloop.safety.stopping import native_phases, simulation
from pinloop.safety.stopping.categories import as_category
from pinloop.safety.stopping.native_phases import NativePhases
from pinloop.safety.stopping.phase import Phase
from pinloop.safety.stopping.prepared_robot import prepare_robot
from pinloop.safety.stopping.stick_slip import PhaseStart, decide_phase
from pinloop.safety.stopping.stop import stop_prepared
from pinloop.safety.stopping.stop_equations import StopEquations
from pinloop.simulation.native_steps import create_kernel

from ... import screw_tables as tables
from ...mechanisms import planar_3r
from ...screw_tables import Array, joint, table
from ...states import close, moving, regularized
from .looped_stops import ROBOTS, drawn
from .robots_to_stop import controlled_stop, wild_stop
from .test_stop_loops_random import driven_case

kernel = pytest.importorskip("pinloop._kernel")

SAME = 1e-10
FALL = 20.0
"""Size of what falls, of which even small accelerations are differences."""


class Both:
    """The equations of a stop on both engines, in the same phases."""

    def __init__(self, result: pl.StopResult) -> None:
        self.history = result.history
        self.native = self.history.equations()
        plain = pl.EquationsOfMotion(self.history.robot, formulation=pl.Automatic("python"))
        home = plain.around(0.0, result.run.q[0])
        self.python = StopEquations(home, self.history.train)
        assert self.python.kernel is None

    def compare(self, seed: int) -> int:
        """Compare along the stop, at other speeds, too; how many phases the kernel did.

        The loops allow these: of others points and frames make different accelerations. These
        count by the forces that they take: loops open by rounding turn slender rods.
        """
        rng, run, used = np.random.default_rng(seed), self.history.run, set()
        for k in range(len(run.t)):
            if self.history.branches[k] is not None:
                continue
            for equations in (self.native, self.python):
                self.history.enter(equations, k)
            phase = self.native.phase
            t, q = float(run.t[k]), run.q[k]
            more = 0.1 * rng.normal(size=len(run.v[k])) * ~phase.pinned
            M, _, J, *_ = self.python.system(t, q, run.v[k])
            if (J := J * ~phase.pinned).size:
                more -= np.linalg.lstsq(J, J @ more, rcond=1e-10)[0]
            v = run.v[k] + more
            ours, theirs = (
                (M @ solved.a, *solved[1:])
                for solved in (self.native.solve(t, q, v), self.python.solve(t, q, v))
            )
            for mine, other in zip(ours, theirs, strict=True):
                close(mine, other, SAME, max(FALL, float(np.abs(other).max())))
            if self.native.in_kernel is not None:
                used.add(id(phase))
        return len(used)


@pytest.mark.parametrize("seed", range(30))
def test_arms(seed: int) -> None:
    """Gears with losses, rotors, Stribeck, short circuits, drives that follow or cannot."""
    wild, trigger = controlled_stop(seed)
    state: tuple[Any, ...] = (None, None) if trigger else (wild.q, wild.v)
    result = stopped(wild.robot, *state, brakes=wild.by, category=wild.category, trigger=trigger)
    both = Both(result)
    assert both.compare(seed) == len({*result.run.mode.tolist()})


def test_fingers_with_a_brake_each_that_mimic_each_other() -> None:
    """Their coupling holds by itself where both brakes do; which of them bears what is open."""
    entries = planar_3r()
    arm = tables.build(entries)
    coupling = Coupling.linear("mimic", "j3", "j2", -1.0)
    robot = build(replace(arm.description, couplings=(coupling,)))
    brake = pl.safety.JointBrake(static_torque=1.5, dynamic_torque=1.0, delay=0.02, rise=0.01)
    strong = replace(brake, static_torque=60.0, dynamic_torque=50.0, delay=0.0)
    brakes = pl.Brakes({"j1": brake, "j2": strong, "j3": strong})
    v = pl.consistent_velocity(robot, robot.neutral, {"j1": 2.0, "j2": 0.5})
    result = stopped(robot, robot.neutral, v, brakes=brakes, category=0)
    both = Both(result)
    used = both.compare(0)
    redundant = 0
    for k in range(len(result.run.t)):
        both.history.enter(both.native, k)
        redundant += both.native.phase.redundant and len(both.native.tables.free) > 0
    assert redundant > 5 and used == len({*result.run.mode.tolist()})


@pytest.mark.parametrize("name", ROBOTS)
def test_loops(name: str) -> None:
    used = 0
    for number, case in enumerate((driven_case(name), *(drawn(name, seed) for seed in range(3)))):
        try:
            result = case.stop(until=1.0, category=1 if number == 0 else 0)
        except pl.StopFailed as failure:
            result = failure.result
        used += Both(result).compare(number)
    assert used > 0 or name in ("bricard",)


def test_a_loop_whose_motions_are_no_group() -> None:
    machine = regularized("rod-pendulums")
    brakes = pl.Brakes({"left": pl.safety.JointBrake(static_torque=5.0, dynamic_torque=4.0)})
    assert Both(stopped(machine, *moving(machine, 1), brakes=brakes)).compare(1) > 0


def stopped(*state: Any, **more: Any) -> pl.StopResult:
    try:
        return pl.stop(*state, **more, until=1.0)
    except pl.StopFailed as failure:
        result: pl.StopResult = failure.result
        return result


def test_many_states_are_solved_as_one_by_one() -> None:
    """Of those with rows that are no good the matrices solve, and of all behind the first."""
    wild = wild_stop(3)
    history = stopped(wild.robot, wild.q, wild.v, brakes=wild.by).history
    equations, run = history.equations(), history.run
    history.enter(equations, 0)
    q = run.q.copy()
    for _ in range(2):
        states = zip(run.t.tolist(), q, run.v, strict=True)
        singly = np.array([equations.solve(*state) for state in states])
        np.testing.assert_array_equal(equations.solve_all(run.t, q, run.v), singly)
        q[3] = np.nan


@pytest.mark.parametrize("seed", [1, 3, 5, 8])
def test_whole_stops_are_the_same(seed: int) -> None:
    """But for rounding, which may shift instants."""
    wild, results = wild_stop(seed), []
    machine = prepare_robot(wild.robot, wild.by, wild.payload)
    how = pl.safety.Trigger(), as_category(wild.category), wild.q, wild.v, 1.0, pl.MuntheKaas()
    for engine in (pl.Automatic("native"), pl.Automatic("python")):
        equations = pl.EquationsOfMotion(machine.equations.robot, formulation=engine)
        prepared = replace(machine, equations=equations)
        try:
            results.append(stop_prepared(prepared, *how, pl.safety.Standstill()))
        except pl.StopFailed as failure:
            results.append(failure.result)
    native, python = results
    assert native.outcome == python.outcome
    np.testing.assert_allclose(native.run.q[-1], python.run.q[-1], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(native.stopping_time, python.stopping_time, rtol=1e-9)
    for sink, heat in python.ledger.dissipated.items():
        np.testing.assert_allclose(native.ledger.dissipated[sink], heat, rtol=1e-8, atol=1e-8)


class Steps:
    """Counts the steps that the kernel takes, and lets it take none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.native, self.python = monkeypatch, 0, 0
        take, through = NativePhases.take, HybridIntegrator._through

        def counted(*args: Any) -> Segment | None:
            segment = take(*args)
            self.native += 0 if segment is None else len(segment)
            return segment

        def also_counted(*args: Any) -> Any:
            self.python += 1
            return through(*args)

        monkeypatch.setattr(NativePhases, "take", counted)
        monkeypatch.setattr(HybridIntegrator, "_through", also_counted)

    def compare(self, stop: Callable[[], pl.StopResult]) -> None:
        """A stop whose steps the kernel takes, and one whose steps Python takes."""
        native = _whole(stop)
        with self.monkeypatch.context() as patch:
            patch.setattr(NativePhases, "of", lambda *args: None)
            count, python = self.native, _whole(stop)
        assert self.native == count and "native" not in python.run.engine
        assert native.outcome == python.outcome
        begin, other = (x.run.t[np.diff(x.run.mode, prepend=-1) > 0] for x in (native, python))
        np.testing.assert_allclose(begin, other, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(native.run.t[-1], python.run.t[-1], rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(native.run.q[-1], python.run.q[-1], rtol=0.0, atol=1e-9)
        middle = 0.37 * native.run.t[-1]
        for mine, theirs in zip(native.run(middle), python.run(middle), strict=True):
            close(mine, theirs, 1e-7, max(1.0, float(np.abs(theirs).max())))


def _whole(stop: Callable[[], pl.StopResult]) -> pl.StopResult:
    try:
        return stop()
    except pl.StopFailed as failure:
        result: pl.StopResult = failure.result
        return result


@pytest.mark.parametrize("name", ROBOTS)
def test_steps_are_those_of_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all phases but where Python takes over, of robots with loops and without."""
    steps = Steps(monkeypatch)
    for seed in range(3):
        steps.compare(partial(drawn(name, seed).stop, until=1.0))
    steps.compare(partial(driven_case(name).stop, until=1.0, category=1))
    assert (steps.native > 0) == (name not in ("bricard", "delta", "stewart"))


def folded(rate: float) -> tuple[pl.Mechanism, Array, Array]:
    """A seven-bar whose lower rhombus is folded: two bars turn on a pin, and the others do not."""
    machine = regularized("sevenbar")
    guess = [1.98955849, -1.63875293, 2.93180756, 0.92729522, -3.0061343, 0.92729522]
    q = pl.assemble(machine, np.array(guess))
    return machine, q, pl.consistent_velocity(machine, q, {"joint_1": rate, "joint_5": -2.0 * rate})


@pytest.mark.parametrize("rate", [-8.0, 3.0])
def test_rows_that_what_stands_makes_depend_are_left_out(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folded rhombus with a brake the loop holds whatever that does not, in any motion."""
    machine, q, v = folded(rate)
    brakes = pl.Brakes.template(machine).missing("joint_1")
    steps = Steps(monkeypatch)
    steps.compare(partial(pl.stop, machine, q, v, brakes=brakes, until=1.0))
    assert steps.native > 40
    both = pl.Brakes({**brakes.joints, "joint_6": brakes.joints["joint_4"]})
    for by, count in ((brakes, 1), (both, 2)):
        result = pl.stop(machine, q, v, brakes=by, until=1.0)
        pinned = [phase.pinned.sum() for phase in result.history.phases if phase.redundant]
        assert pinned and {*pinned} == {count}
        assert result.run.engine == "native" and abs(result.ledger.relative_error) < 1e-7


def test_what_two_brakes_share_is_for_python() -> None:
    """Each may bear what the other does not: no bound of one alone ends the phase."""
    machine = regularized("fourbar")
    q, [name] = pl.assemble(machine), machine.actuated
    brake = pl.Brakes.template(machine).joints[name]
    v = pl.consistent_velocity(machine, q, {name: 1.0})
    result = pl.stop(machine, q, v, brakes=pl.Brakes({name: brake, "joint_2": brake}), category=1)
    assert any(phase.redundant for phase in result.history.phases)
    assert result.run.engine == "native and python"


@pytest.mark.parametrize("seed", range(20))
def test_steps_of_arms_are_those_of_python(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gears with losses, drives that cannot follow, teeth, Stribeck's friction."""
    wild, trigger = controlled_stop(seed)
    state: tuple[Any, ...] = (None, None) if trigger else (wild.q, wild.v)
    more: dict[str, Any] = {"brakes": wild.by, "trigger": trigger, "until": 1.0}
    steps = Steps(monkeypatch)
    steps.compare(partial(pl.stop, wild.robot, *state, category=wild.category, **more))


@pytest.mark.parametrize("case", [*ROBOTS, *range(10)])
def test_decisions_are_those_of_python(case: str | int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sticks, where which way, within what rounding; most often the kernel tells at once."""
    decided, at_once, plain = 0, 0, dict[int, StopEquations]()

    def decide_twice(equations: StopEquations, now: PhaseStart) -> Phase:
        nonlocal decided
        phase = decide_phase(equations, now)
        if equations.kernel is None or equations.passage is not None:
            return phase
        robot, train = equations.equations.robot, equations.train
        formulation = pl.Automatic("python")
        home = pl.EquationsOfMotion(robot, formulation=formulation).around(now.t, now.q)
        other = decide_phase(plain.setdefault(id(train), StopEquations(home, train)), now)
        for mine, theirs in (
            (phase.stuck, other.stuck),
            (phase.follow, other.follow),
            (phase.sliding.direction, other.sliding.direction),
            (phase.redundant, other.redundant),
        ):
            assert np.array_equal(mine, theirs)
        close(phase.noise, other.noise, 1e-9, float(other.noise.max(initial=1e-300)))
        decided += 1
        return phase

    monkeypatch.setattr(simulation, "decide_phase", decide_twice)
    settle = StopEquations.settle

    def settle_at_once(*given: Any) -> None:
        nonlocal at_once
        at_once += 1
        settle(*given)

    monkeypatch.setattr(StopEquations, "settle", settle_at_once)
    if isinstance(case, int):
        wild = wild_stop(case)
        _whole(partial(pl.stop, wild.robot, wild.q, wild.v, brakes=wild.by, until=1.0))
    else:
        _whole(partial(drawn(case, 0).stop, until=1.0))
    assert (decided > 0) == (case != "bricard")
    losses = any(equations.train.has_losses for equations in plain.values())
    assert at_once == 0 if losses else at_once >= 0.3 * decided


@pytest.mark.parametrize("part", [0.0, 0.2, -0.2])
@pytest.mark.parametrize("speed, happens", [(1.0, True), (1e12, False)])
def test_steps_end_where_something_happens(speed: float, happens: bool, part: float) -> None:
    """Friction slows a wheel down, ``v = v0 exp(-c t / I)``, to a speed inside the second step.

    That changes with time, too. The fast wheel's is missed by more than 1 rad/s there: then the
    first step is the last one, and nothing has happened.
    """
    machine = tables.build(
        table("wheel", joint("axle", "revolute", GROUND, "wheel", [0, 0, 0], axis=[0, 0, 1]))
    )
    equations, method = (
        pl.EquationsOfMotion(machine),
        pl.MuntheKaas("dopri5", rtol=1e-5, atol=1e-5 * speed),
    )
    dynamics, torques = kernel.StopDynamics(equations.tables), np.zeros((13, 1))
    torques[4] = equations.mass(machine.neutral)[0]  # viscous friction of the joint
    dynamics.enter([], 0.0, 0, [], np.zeros(1), torques, 0.0, np.zeros((0, 4)))
    make = partial(kernel.StopSteps, dynamics, dense=native_phases._dense(False))
    native = create_kernel(make, equations, method, None)
    state = np.zeros(1), np.array([speed]), np.array([-speed])

    def taken(watched: Array) -> tuple[Array, Any, Array]:
        native.watch(watched, [], 1e-7, 0.0)
        notes, counts = np.empty((2, 5)), np.empty((2, 3), np.int64)
        rooms = [np.empty((2, 1)) for _ in range(5)]
        span = 0.0, 0.5, 1.0, 10.0, np.inf
        count = native.take(span, state, [], [], (notes, counts), rooms, np.empty((2, 0, 1)))
        return notes[:count], counts[:count, 0], rooms[1][:count, 0]

    notes, _, v = taken(np.zeros((0, 5)))
    (first, second), rate = notes[:, 0].tolist(), part * speed
    close(v / speed, np.exp(-notes[:, 0]), 1e-4)
    level = v.mean() - 0.5 * rate * (first + second)
    ends, evaluations, v = taken(np.array([[0.0, 1.0, 1.0, level, rate]]))
    assert native.hits == ([0] if happens else []) and len(ends) == 1 + happens
    if happens:
        end = float(ends[1, 0])
        assert first < end < second and abs(v[1] - level - rate * end) < 1e-10
        assert np.isclose(end, -np.log(v[1]), atol=1e-4)
        # Six each, taken again up to twice, and one where it goes on for an instant; size and
        # control of steps go on as without.
        assert evaluations[1] in (12, 13, 18, 19)
        assert ends[1, 1] == max(notes[1, 1], second - end) and ends[1, 2] == notes[1, 2]


def test_phases_begin_where_python_projects_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from states that are off the loops by more than steps leave."""
    native, rng, seen = NativePhases.project, np.random.default_rng(0), list[bool]()

    def project(self: NativePhases, q: Array, v: Array) -> tuple[Array, Array, bool] | None:
        assert self._projector is not None
        off = q + 1e-6 * rng.normal(size=len(q)), v + 1e-6 * rng.normal(size=len(v))
        ours = native(self, *off)
        assert ours is not None
        theirs = self._projector.apply(0.0, *off)
        for mine, other in zip(ours[:2], theirs[:2], strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-12)
        assert np.abs(ours[0] - off[0]).max() > 1e-8 < np.abs(ours[1] - off[1]).max()
        seen.append(ours[2])
        with pytest.raises(ValueError, match="another robot"):
            self._steps.close(q[1:].copy(), v.copy())
        return native(self, q, v)

    monkeypatch.setattr(NativePhases, "project", project)
    robot = regularized("palletizer")
    q = pl.assemble(robot, {"shoulder": 0.2, "elbow": -0.1})
    v = pl.consistent_velocity(robot, q, {"shoulder": 0.5, "elbow": -0.8, "base_yaw": 0.3})
    pl.stop(robot, q, v, brakes=pl.example_file("palletizer.brakes.yaml"))
    assert len(seen) > 3 and all(seen)


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Nothing is read or written beyond their ends."""
    wild = wild_stop(3)
    equations = prepare_robot(wild.robot, wild.by).equations
    n = equations.robot.nv
    dynamics = kernel.StopDynamics(kernel_tables.tables_of(equations.robot.model))
    none, torques, bounds = np.zeros(n), np.zeros((13, n)), np.zeros((1, 4))
    given: tuple[Any, ...]
    for given in (
        ([0], 0.0, 0, [], none, torques, 0.0, bounds),
        ([], 0.0, 0, [n], none, torques, 0.0, bounds),
        ([], 0.0, 0, [], none[1:], torques, 0.0, bounds),
        ([], 0.0, 0, [], none, torques[1:], 0.0, bounds),
        ([], 0.0, 0, [], none, torques, 0.0, bounds[:, 1:]),
        ([], 0.0, 0, [], none, torques, 0.0, bounds + 4.0 * n),
    ):
        with pytest.raises(ValueError, match=r"that the tables do not have|that is none"):
            dynamics.enter(*given)
    solution = np.zeros((4, n))
    wrong: list[tuple[Any, ...]] = [(none[1:], none, none), (none, none[1:], none),
                                    (none, none, none[1:])]  # fmt: skip
    for state in wrong:
        with pytest.raises(ValueError, match="another robot"):
            dynamics.solve_all(np.zeros(1), *(x[None] for x in state), solution[None])
    with pytest.raises(ValueError, match="another robot"):
        dynamics.solve_all(np.zeros(1), none[None], none[None], none[None], solution[None, 1:])
