"""Work spaces of Pinocchio: one per run and thread, and a message where memory will not do."""

from __future__ import annotations

import gc
import pickle
import weakref

import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model import workspace
from pinloop.model.description import Description, Joint
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import screw_tables as tables
from ..states import moving


def chain(count: int) -> pl.Mechanism:
    bodies = [tables.described(f"b{k}") for k in range(count)]
    unit = pin.SE3.Identity()
    names = ["ground", *(body.name for body in bodies)]
    joints = [
        Joint(f"j{k}", make_pair("revolute"), names[k], names[k + 1], unit, unit)
        for k in range(count)
    ]
    return build(Description("chain", tuple(bodies), tuple(joints)))


def test_a_run_and_what_is_asked_of_it_need_one_work_space() -> None:
    machine = tables.build(m.bennett())
    q, v = moving(machine, 1)
    assert len(machine.spaces.free) == 1
    run = pl.simulate(machine, q, v, until=0.1)
    run.energy()
    run.closure()
    run.momentum()
    run.placement(machine.bodies[-1])
    run.reactions(machine.loops[0].name)
    assert run.limits_passed == ()
    assert len(machine.spaces.free) == 1


def test_what_is_asked_in_the_middle_of_an_evaluation_takes_another_one() -> None:
    machine = tables.build(m.four_bar())
    with machine.workspace() as one, machine.workspace() as other:
        assert one is not other
    assert len(machine.spaces.free) == 2
    with machine.workspace() as again:
        assert again is one
    assert len(pickle.loads(pickle.dumps(machine)).spaces.free) == 0


def test_work_spaces_are_given_back_when_something_fails() -> None:
    machine = tables.build(m.four_bar())

    def fail(t: float, q: object, v: object) -> float:
        raise ZeroDivisionError

    equations = pl.EquationsOfMotion(machine, forces=[pl.TorqueFunction(fail)])
    for _ in range(3):
        with pytest.raises(pl.PinloopError, match="ZeroDivisionError"):
            equations.acceleration(0.0, *moving(machine, 1))
    assert len(machine.spaces.free) == 1


def test_robots_that_are_too_large_for_the_memory_are_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = chain(320)
    monkeypatch.setattr(workspace, "_available", lambda: 2**29)
    with pytest.raises(pl.PinloopError) as caught:
        pl.simulate(machine, machine.neutral, until=1e-3)
    message = str(caught.value)
    assert "'chain'" in message and "320 velocities" in message
    assert "takes 1.0 GB, and 0.5 GB are free" in message


def test_what_is_computed_from_a_robot_is_kept_with_it() -> None:
    calls: list[tuple[str, int]] = []

    @workspace.remembered
    def count(machine: pl.Mechanism, number: int) -> int:
        calls.append((machine.name, number))
        return number

    first, second = chain(2), chain(2)
    assert [count(first, 1), count(first, 1), count(second, 1), count(first, 2)] == [1, 1, 1, 2]
    assert len(calls) == 3
    # A copy computes it again, and old results make room.
    count(pickle.loads(pickle.dumps(first)), 1)
    assert len(calls) == 4
    for number in range(100):
        count(first, number)
    assert sum(map(len, first.memory.values())) < 20


def test_no_module_keeps_robots() -> None:
    """Robots that nobody needs any more go away, and what was computed from them does."""
    machine = tables.build(m.bennett())
    pl.simulate(machine, *moving(machine, 1), until=0.01)
    pl.EquationsOfMotion(machine).acceleration(0.0, *moving(machine, 1))
    gone = weakref.ref(machine)
    del machine
    gc.collect()
    assert gone() is None
