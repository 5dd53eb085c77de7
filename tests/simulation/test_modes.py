"""Tests of modes: what is locked and what is open, by which names, and what is refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import locked_columns
from pinloop.model.tree import coordinate_names
from pinloop.simulation import modes
from pinloop.simulation.modes import ModalSystem

from .. import mechanisms as m
from .. import screw_tables as tables
from .. import switching as s
from ..states import LOOPED, SMALL, allowed, assembled, close, one_body, rank, regularized, robot
from ..switching import FREE

NAMES = {
    "revolute": ("wz",), "prismatic": ("vz",), "helical": ("wz",), "cylindrical": ("vz", "wz"),
    "universal": ("wz", "wx"), "spherical": ("wx", "wy", "wz"), "planar": ("vx", "vy", "wz"),
    "planar_translation": ("vx", "vy"), "spatial_translation": ("vx", "vy", "vz"),
    "schoenflies": ("vx", "vy", "vz", "wz"), "free": ("vx", "vy", "vz", "wx", "wy", "wz"),
}  # fmt: skip


# -- values -------------------------------------------------------------------------------------


def test_a_mode_is_a_value() -> None:
    one = pl.Mode(("a", "b"), opened=["x", "y"])
    two = pl.Mode(("b", pl.simulation.Locked("a")), opened=["y", "x"])
    assert one == two and hash(one) == hash(two)
    assert one != pl.Mode(("a", "b")) and one != pl.Mode(
        (pl.simulation.Locked("a", ("wx",)), "b"), ["x", "y"]
    )
    assert pl.Mode("ab", opened="xy") == pl.Mode(("ab",), frozenset({"xy"}))
    assert pl.Mode(pl.simulation.Locked("a")) == pl.Mode("a")
    assert pl.simulation.Locked("a", "wx") == pl.simulation.Locked("a", ("wx",))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        one.locks = ()  # type: ignore[misc]


def test_modes_read_well() -> None:
    assert str(FREE) == "free"
    assert str(pl.Mode(("b", "a"), opened={"z", "y"})) == "lock:a, lock:b, open:y, open:z"
    assert pl.Mode(("b", "a")).lock_of("b") == pl.simulation.Locked("b")
    assert FREE.lock_of("b") is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.Mode(("a", "a")),
        lambda: pl.Mode(("a", pl.simulation.Locked("a", ("wx",)))),
        lambda: pl.Mode(3),  # type: ignore[arg-type]
        lambda: pl.Mode(None),  # type: ignore[arg-type]
        lambda: pl.Mode((), opened=3),  # type: ignore[arg-type]
        lambda: pl.simulation.Locked(3),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_mode_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(pl.BadValue):
        make()


# -- names of degrees of freedom ------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_degrees_of_freedom_are_called_by_the_motion_they_are(reverse: bool) -> None:
    # At zero, a unit rate moves frame B against frame A along the axis of its name.
    chain = tables.build(m.every_pair(reverse))
    data = chain.model.createData()
    edges = {edge.joint.name: edge for edge in chain.tree.edges}
    for name in chain.joints:
        joint, at = edges[name].joint, chain.coordinates(name)
        names = coordinate_names(chain.tree, name)
        own = name in ("spherical", "free")
        assert names == (NAMES[name] if own or not reverse else NAMES[name][::-1])
        for k, label in enumerate(names):
            rates = np.zeros(chain.nv)
            rates[at.v.start + k] = 1.0
            pin.forwardKinematics(chain.model, data, chain.neutral, rates)
            pin.updateFramePlacements(chain.model, data)
            twists = []
            for end, seat in ((joint.parent, joint.frame_parent), (joint.child, joint.frame_child)):
                if end == "ground":
                    twists.append(pin.Motion.Zero())
                    continue
                frame = chain.model.getFrameId(end, pin.FrameType.BODY)
                twist = pin.getFrameVelocity(chain.model, data, frame, pin.LOCAL)
                twists.append(seat.actInv(twist))
            relative = (twists[1] - twists[0]).vector
            if own and reverse:  # described by the motion of the body that it carries
                relative = -relative
            wanted = np.zeros(6)
            wanted[["vx", "vy", "vz", "wx", "wy", "wz"].index(label)] = 1.0
            if name == "helical":
                wanted[2] = 0.07
            close(relative, wanted, 1e-12)


def test_euler_angles_and_circles_have_their_own_names() -> None:
    assert coordinate_names(one_body("spherical", coordinates="zyx").tree, "joint") == (
        "wz", "wy", "wx",
    )  # fmt: skip
    assert coordinate_names(one_body("revolute", coordinates="circle").tree, "joint") == ("wz",)
    assert len(coordinate_names(one_body("free", coordinates="SO3xR3").tree, "joint")) == 6


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_holds_exactly_what_it_names(name: str) -> None:
    chain = robot("every-pair")
    q, v = assembled(chain, 2), np.random.default_rng(3).normal(size=chain.nv)
    start = chain.coordinates(name).v.start
    for k, axis in enumerate(NAMES[name]):
        made = pl.transition(chain, q, v, FREE, pl.Mode(pl.simulation.Locked(name, (axis,))))
        assert np.flatnonzero(made.v_plus == 0.0).tolist() == [start + k]
        assert made.labels == (f"lock:{name}.{axis}",)
        assert locked_columns(chain, pl.simulation.Locked(name, (axis,))) == [start + k]
    whole = pl.transition(chain, q, v, FREE, pl.Mode(name))
    count = len(NAMES[name])
    assert np.flatnonzero(whole.v_plus == 0.0).tolist() == list(range(start, start + count))
    labels = [f"lock:{name}.{axis}" for axis in NAMES[name]] if count > 1 else [f"lock:{name}"]
    assert list(whole.labels) == labels
    both = pl.simulation.Locked(name, NAMES[name][::-1])
    close(pl.transition(chain, q, v, FREE, pl.Mode(both)).v_plus, whole.v_plus, 1e-13)


def bad_mode(robot_name: str, mode: pl.Mode, message: str, kind: type[Exception]) -> None:
    machine = robot(robot_name)
    for act in (
        lambda: pl.transition(machine, machine.neutral, np.zeros(machine.nv), FREE, mode),
        lambda: pl.transition(machine, machine.neutral, np.zeros(machine.nv), mode, FREE),
        lambda: pl.simulate(machine, machine.neutral, until=0.1, mode=mode),
    ):
        with pytest.raises(kind, match=message):
            act()


def test_names_that_a_robot_does_not_have_are_refused() -> None:
    bad_mode("four-bar", pl.Mode("cranc"), "'cranc' .* did you mean 'crank'", pl.UnknownName)
    axes = pl.Mode(pl.simulation.Locked("close", ("vz",)))
    bad_mode("four-bar", axes, "'close' has no degree of freedom 'vz'; it has wz", pl.BadValue)
    bad_mode("every-pair", pl.Mode("fixed"), "'fixed' .* is fixed", pl.BadValue)
    bad_mode("four-bar", pl.Mode(opened="clos"), "no loop joint 'clos' .*'close'", pl.UnknownName)
    bad_mode("four-bar", pl.Mode(opened="crank"), "no loop joint 'crank'", pl.UnknownName)
    bad_mode("planar-3R", pl.Mode(opened="x"), "there is no loop joint at all", pl.UnknownName)
    axis = pl.Mode(pl.simulation.Locked("ball", ("vx",)))
    bad_mode("rssr", axis, "'ball' has no degree of freedom 'vx'; it has wx, wy, wz", pl.BadValue)


EVENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "no time": (lambda: pl.lock("crank"), "'lock crank' has neither a time .* nor a guard"),
    "unlock no time": (lambda: pl.unlock("crank"), "neither a time"),
    "open no time": (lambda: pl.open_loop("close"), "neither a time"),
    "unknown joint": (lambda: pl.lock("cranc", at=0.1), "did you mean 'crank'"),
    "unknown unlock": (lambda: pl.unlock("cranc", at=0.1), "did you mean 'crank'"),
    "unknown in guard": (lambda: pl.when(lambda t, q, v: t, pl.lock("cranc")), "'crank'"),
    "unknown open": (lambda: pl.open_loop("shut", at=0.1), "no loop joint 'shut'"),
    "unknown close": (lambda: pl.close_loop("shut"), "no loop joint 'shut'"),
    "cut joint": (lambda: pl.lock("close", at=0.1, axes="wx"), "no .* 'wx'; it has wz"),
    "axis": (lambda: pl.lock("crank", at=0.1, axes=["wx"]), "no .* 'wx'; it has wz"),
    "axes of one name": (lambda: pl.lock("crank", at=0.1, axes="wx"), "no .* 'wx'; it has wz"),
    "no event": (lambda: "lock crank", "'lock crank' is no event"),
    "number as joint": (lambda: pl.lock(3, at=0.1), "3"),  # type: ignore[arg-type]
    "time of another kind": (lambda: pl.lock("crank", at="0.1 kg"), "at is .0.1 kg.: no number"),
    "guard": (lambda: pl.when(1.0, pl.lock("crank")), "must be a function"),  # type: ignore[arg-type]
    "direction": (lambda: pl.when(len, pl.lock("crank"), 2), "-1, 0 or 1"),  # type: ignore[arg-type]
    "direction as text": (lambda: pl.when(len, pl.lock("crank"), "up"), "-1, 0 or 1"),  # type: ignore[arg-type]
    "stop direction": (lambda: pl.stop_when(len, 2), "-1, 0 or 1"),  # type: ignore[arg-type]
    "action": (lambda: pl.when(len, "lock"), "give e.g. pl.lock"),  # type: ignore[arg-type]
    "limits as action": (lambda: pl.when(len, pl.simulation.JointLimits()), "give e.g."),  # type: ignore[arg-type]
    "two times": (lambda: pl.when(len, pl.lock("crank", at=0.1)), "crank"),  # type: ignore[arg-type]
    "two guards": (lambda: pl.when(len, pl.when(len, pl.lock("crank"))), "crank"),  # type: ignore[arg-type]
    "tolerance": (lambda: pl.close_loop("close", tolerance=-1.0), "tolerance"),
    "tolerance nan": (lambda: pl.close_loop("close", tolerance=float("nan")), "tolerance"),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_events_that_make_no_sense_are_refused_before_the_run(kind: str) -> None:
    make, message = EVENTS[kind]
    bar = robot("four-bar")
    with pytest.raises((pl.BadValue, pl.UnknownName), match=message):
        pl.simulate(bar, bar.neutral, until=0.2, events=[make()])


@pytest.mark.parametrize("mode", ["crank", 3, ("crank",)])
def test_a_mode_must_be_a_mode(mode: Any) -> None:
    bar = robot("four-bar")
    rest = np.zeros(3)
    for act in (
        lambda: pl.simulate(bar, bar.neutral, until=0.2, mode=mode),
        lambda: pl.transition(bar, bar.neutral, rest, mode, FREE),
        lambda: pl.transition(bar, bar.neutral, rest, FREE, mode),
    ):
        with pytest.raises(pl.BadValue, match=r"pl\.Mode"):
            act()


# -- equations by mode ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOOPED)
def test_opening_loops_keeps_every_coordinate(name: str) -> None:
    machine = robot(name)
    model = machine.model
    for loop in machine.loops:
        other = machine.without_loops([loop.name]).model
        assert list(other.names) == list(model.names)
        for one, two in zip(other.joints, model.joints, strict=True):
            assert one.shortname() == two.shortname()
            assert (one.idx_q, one.idx_v) == (two.idx_q, two.idx_v)
        q = assembled(machine, 1)
        close(pin.crba(other, other.createData(), q), pin.crba(model, model.createData(), q), 1e-14)


@pytest.mark.parametrize("name", ["delta", "palletizer", "planar-3-RRR", "spinning-rods"])
def test_the_rows_of_a_mode_span_what_it_forbids(name: str) -> None:
    for reduce in (False, True):
        machine = robot(name)
        system = ModalSystem(machine, regularization=reduce)
        q = assembled(machine, 2)
        first, loop = machine.joints[0], machine.loops[-1].name
        for mode in (FREE, pl.Mode(first), pl.Mode(opened=loop), pl.Mode(first, opened=loop)):
            equations = system.equations(mode)
            J = equations.terms(0.0, q, np.zeros(machine.nv))[0]
            full, _ = s.mode_rows(machine, mode, q)
            assert rank(J) == rank(full) == rank(np.vstack([J, full]))
            close(full @ allowed(J), np.zeros((len(full), machine.nv - rank(J))), 1e-9)
            locks = [label for label in equations.rows.labels if label.startswith("lock:")]
            assert list(equations.rows.labels[len(equations.rows.loops) :]) == locks
            assert len(locks) == len(equations.rows.locked)
            assert equations is system.equations(mode)
            reduced = equations.robot.regularization is not None
            assert reduced == (reduce and bool(equations.robot.loops))


def test_regularization_is_done_again_for_the_loops_that_are_left() -> None:
    # Planar legs: two rows for every loop that is closed, whichever it is.
    machine = regularized("planar-3-RRR")
    loops = [loop.name for loop in machine.loops]
    system = ModalSystem(machine)
    assert len(system.equations(FREE).rows) == 4
    for name in loops:
        assert len(system.equations(pl.Mode(opened=name)).rows) == 2
    assert len(system.equations(pl.Mode(opened=loops)).rows) == 0


# -- what is found out once ---------------------------------------------------------------------


def test_a_robot_is_regularized_once_and_not_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for every set of open loops; another robot of the same file is another robot."""
    count = 0

    def counted(robot: pl.Mechanism) -> pl.Mechanism:
        nonlocal count
        count += 1
        return pl.regularize(robot)

    monkeypatch.setattr(modes, "regularize", counted)
    first, second = (tables.build(SMALL["planar-3-RRR"]()) for _ in range(2))
    names = frozenset(loop.name for loop in first.loops[:1])
    for machine, expected in ((first, 2), (first, 2), (second, 4)):
        system = modes.ModalSystem(machine)
        whole, opened = system.mechanism(frozenset()), system.mechanism(names)
        assert count == expected
        assert whole.regularization is not None
        assert len(opened.loops) == len(machine.loops) - 1
    plain = modes.ModalSystem(first, regularization=False).mechanism(frozenset())
    assert plain is first
    gone = weakref.ref(first)
    del first, machine, system, plain, whole, opened
    gc.collect()
    assert gone() is None
