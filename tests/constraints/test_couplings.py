"""Tests of couplings between joints that close loops, and so in absolute coordinates.

Oracle: the same robot in relative coordinates, in which every joint has a coordinate of its own;
rates and drifts by differences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics.derivatives import derivatives_at
from pinloop.model.description import GROUND, Coupling
from pinloop.model.mechanism import build
from pinloop.model.moving_tree import JointChain, MovingTree
from pinloop.model.transformations import carried_state

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..dynamics.test_derivatives import difference
from ..states import SPACES, Space, body_motion, carried, close, moving

X, Z = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
TURN, SLIDE = "revolute", "prismatic"


def machine(first: tuple[str, Any], second: tuple[str, Any], *rows: Coupling) -> pl.Mechanism:
    """Two joints and an arm that swings on the first, whose motion feels gravity; a third turns."""
    plain = tables.build(tables.table(
        "geared",
        tables.joint("a", first[0], GROUND, "one", [0, 0, 0.3], first[1], **PITCH[first[0]]),
        tables.joint("b", second[0], GROUND, "two", [0.5, 0, 0], second[1], **PITCH[second[0]]),
        tables.joint("arm", TURN, "one", "arm", [0.2, 0.1, 0.3], [1.0, 0.4, 0.0]),
        tables.joint("hand", TURN, "arm", "hand", [0.2, 0.1, 0.6], [0.0, 1.0, 0.2]),
    ))  # fmt: skip
    limits = {"arm": (-1.0, 2.5)} if any(len(row.polynomials[0]) > 2 for row in rows) else {}
    joints = [
        replace(joint, lower=(limits[joint.name][0],), upper=(limits[joint.name][1],))
        if joint.name in limits
        else joint
        for joint in plain.description.joints
    ]
    return build(replace(plain.description, joints=tuple(joints), couplings=rows))


PITCH: dict[str, dict[str, float]] = {"helical": {"pitch": 0.07}, TURN: {}, SLIDE: {}}
BETWEEN = "arm", "hand", "a"
MACHINES = {
    "gears": machine((TURN, X), (TURN, Z), Coupling.linear("mesh", "b", "a", -0.375, 0.4)),
    "rack": machine((TURN, X), (SLIDE, Z), Coupling.linear("rack", "b", "a", 0.13, 0.1)),
    "screw": machine(("helical", X), (TURN, Z), Coupling.linear("worm", "b", "a", 0.618, -0.2)),
    "cam": machine((TURN, X), (SLIDE, Z),
                   Coupling("cam", ("arm", "b"), ((0.1, 0.2, -0.3, 0.05), (0.0, -1.0)))),
    "epicyclic": machine((TURN, X), (TURN, Z), Coupling.linear("mesh", "b", "a", 2.0),
                         Coupling("sum", BETWEEN, ((0.3, 1.0), (0.0, 2.0), (0.0, -1.5)))),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("space", SPACES)
def test_bodies_accelerate_alike_in_absolute_coordinates(name: str, space: Space) -> None:
    """And their tooth forces are the same, with every formulation; several turns away, too."""
    ours = MACHINES[name]
    there = ours.absolute(space)
    for seed in (1, 2):
        q, v = moving(ours, seed, speed=6.0)
        other, rates = carried(ours, q, v, there)
        close(pl.Constraints(there).residual(other), np.zeros(len(pl.Constraints(there))), 1e-10)
        here = pl.EquationsOfMotion(ours).motion(0.0, q, v)
        expected = body_motion(ours, q, v, here.a)
        for formulation in (None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()):
            equations = pl.EquationsOfMotion(there, formulation=formulation)
            assert equations.engine == "python"
            motion = equations.motion(0.0, other, rates)
            actual = body_motion(there, other, rates, motion.a)
            for body, parts in expected.items():
                close(actual[body][2].vector, parts[2].vector, 1e-9, 100.0)
            rows = [equations.rows.loops.rows_of[c.name].start for c in ours.couplings]
            close(motion.multipliers[rows], here.multipliers, 1e-8)
        assert np.abs(here.multipliers).max() > 1e-2


@pytest.mark.parametrize("name", MACHINES)
def test_rows_of_couplings_in_space_are_derivatives(name: str) -> None:
    there, rng = MACHINES[name].absolute(), np.random.default_rng(5)
    q, _ = carried(MACHINES[name], *moving(MACHINES[name], 3), there)
    v, a = rng.normal(size=(2, there.nv))
    rows = pl.Constraints(there)
    places = [rows.rows_of[coupling.name].start for coupling in there.couplings]
    slope = hand.rate(there, q, v, rows.residual)[places]
    close((rows.jacobian(q) @ v)[places], slope, 1e-7)
    h = 1e-4
    ahead, behind = (
        (rows.jacobian(there.integrate(q, s * h * v + 0.5 * h**2 * a)) @ (v + s * h * a))[places]
        for s in (1, -1)
    )
    expected = (rows.jacobian(q) @ a + rows.gamma(q, v))[places]
    close((ahead - behind) / (2 * h), expected, 1e-6)


@pytest.mark.parametrize("name", ["gears", "cam", "epicyclic"])
def test_accelerations_have_slopes_with_couplings_in_space(name: str) -> None:
    ours = MACHINES[name]
    there = ours.absolute("SE3")
    q, v = carried(ours, *moving(ours, 3), there)
    equations = pl.EquationsOfMotion(there).around(0.0, q)
    found = derivatives_at(equations, 0.0, q, v, np.zeros(there.nv))
    for name, moved in (
        ("ddq_dq", lambda s: equations.acceleration(0.0, pin.integrate(there.model, q, s), v)),
        ("ddq_dv", lambda s: equations.acceleration(0.0, q, v + s)),
    ):
        close(getattr(found, name), difference(moved, there.nv, 2e-3).T, 1e-6)


def test_rates_of_rows_have_slopes() -> None:
    """``J v`` of couplings in space by positions, which rows that contradict each other need."""
    there = MACHINES["cam"].absolute()
    q, _ = MACHINES["cam"].to_absolute(*moving(MACHINES["cam"], 3))
    v, a = np.random.default_rng(6).normal(size=(2, there.nv))
    rows = pl.Constraints(there)
    tree = MovingTree(JointChain(there.model), q, v, a)
    slopes = rows.slopes(tree, q, v, a, np.zeros(len(rows)))
    wanted = difference(lambda s: rows.jacobian(there.integrate(q, s)) @ v, there.nv, 2e-3).T
    close(slopes.rate_q[:, tree.chain.columns][-1], wanted[-1], 1e-7)
    assert np.abs(wanted[-1]).max() > 0.1


@pytest.mark.parametrize("name", MACHINES)
def test_runs_of_several_turns_agree(name: str) -> None:
    """Of bodies at their end; states go back with all turns, or as many as bodies can tell."""
    ours = MACHINES[name]
    q, v = moving(ours, 2, speed=15.0 if name != "cam" else 1.0)
    there = ours.absolute()
    method = pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11)
    runs = [
        pl.simulate(robot, *state, until=1.0 if name != "cam" else 0.3, method=method)
        for robot, state in ((ours, (q, v)), (there, ours.to_absolute(q, v)))
    ]
    ends = [body_motion(run.robot, run.q[-1], run.v[-1]) for run in runs]
    for body, (placement, twist, _) in ends[0].items():
        close(ends[1][body][0].homogeneous, placement.homogeneous, 1e-8)
        close(ends[1][body][1].vector, twist.vector, 1e-7)
    if name != "cam":
        assert np.abs(runs[0].q[-1] - q).max() > 2.0 * np.pi
    assert np.abs(runs[1].energy().error).max() < 1e-6
    back, rates = ours.from_absolute(runs[1].q[-1], runs[1].v[-1])
    close(rates, runs[0].v[-1], 1e-7)
    residual = pl.Constraints(ours).residual(back)
    close(residual, np.zeros(len(residual)), 1e-6)
    for body, (placement, _, _) in body_motion(ours, back, rates).items():
        close(placement.homogeneous, ends[0][body][0].homogeneous, 1e-8)


@pytest.mark.parametrize("cut", ["rocker", "crank"])
def test_a_geared_joint_may_close_a_loop(cut: str) -> None:
    """A gear on the pin at which a four-bar is cut, instead of one in its tree."""
    pinion = tables.joint("pinion", TURN, GROUND, "pinion", [0, 0, 2], [0, 1, 0.3])
    belt = {"name": "belt", "joint": "pinion", "source": cut, "ratio": 2.0, "offset": 5.0}
    robots = []
    for place in ("close", cut):
        joints = [
            joint | {"cut": joint["name"] == place, "axis": np.array([0.0, 1.0, 0.0])}
            for joint in m.four_bar()["joints"]
        ]
        robots.append(tables.build(tables.table("geared", *joints, pinion, couplings=[belt])))
    assert robots[1].loops[0].name == cut
    starts = [moving(robots[0], 4)]
    q, v = carried_state(robots[0].model, *starts[0], robots[1].model)
    pinions = [robot.coordinates("pinion").q for robot in robots]
    q[pinions[1]] = starts[0][0][pinions[0]]  # with its whole turns
    starts.append((q, v))
    ends = []
    for robot, (q, v) in zip(robots, starts, strict=True):
        run = pl.simulate(robot, q, v, until=0.5)
        ends.append(body_motion(robot, run.q[-1], run.v[-1]))
    for body, (placement, twist, _) in ends[0].items():
        close(ends[1][body][0].homogeneous, placement.homogeneous, 1e-6)
        close(ends[1][body][1].vector, twist.vector, 1e-5)


@pytest.mark.parametrize(
    ("row", "limited", "works"),
    [
        (Coupling.linear("c", "a", "b", 0.618034), False, False),
        (Coupling.linear("c", "a", "b", 0.618034), True, True),
        (Coupling.linear("c", "a", "b", 355 / 113), False, True),
        (Coupling("c", ("a", "b"), ((0.0, 1.0, 0.5), (0.0, 1.0))), False, False),
        (Coupling("c", ("a", "b"), ((0.0, 1.0, 0.5), (0.0, 1.0))), True, True),
    ],
)
def test_turns_that_bodies_do_not_tell_are_refused_by_name(
    row: Coupling, limited: bool, works: bool
) -> None:
    base = tables.build(tables.table(
        "pair", tables.joint("a", TURN, GROUND, "one", [0, 0, 0], X),
        tables.joint("b", TURN, GROUND, "two", [1, 0, 0], X),
    )).description  # fmt: skip
    ends = (3.0,) if limited else ()
    joints = tuple(replace(x, lower=tuple(-end for end in ends), upper=ends) for x in base.joints)
    robot = build(replace(base, joints=joints, couplings=(row,)))
    if works:
        assert len(robot.absolute().couplings) == 1
    else:
        with pytest.raises(pl.LoadError, match="how often 'a', 'b' turned"):
            robot.absolute()


def test_an_opened_joint_is_coupled_to_nothing() -> None:
    there = MACHINES["epicyclic"].absolute()
    opened = there.without_loops(["hand"])
    assert [coupling.name for coupling in opened.couplings] == ["mesh"]
    q, v = MACHINES["epicyclic"].to_absolute(*moving(MACHINES["epicyclic"], 1))
    run = pl.simulate(there, q, v, until=0.2, events=[pl.open_loop("hand", at=0.1)])
    assert run.transitions[0].energy_loss == pytest.approx(0.0, abs=1e-10)
    assert np.abs(run.energy().error).max() < 1e-6


def test_limits_within_a_turn_tell_which_turn_is_meant() -> None:
    ours = machine((TURN, X), (SLIDE, Z), Coupling("c", ("arm", "b"), ((0, 0.1, 0.1), (0, 1.0))))
    joints = tuple(
        replace(joint, lower=(1.0,), upper=(6.0,)) if joint.name == "arm" else joint
        for joint in ours.description.joints
    )
    ours = build(replace(ours.description, joints=joints))
    q = ours.configuration({"arm": 5.0, "b": -0.5 - 2.5})
    other, _ = ours.to_absolute(q, np.zeros(ours.nv))
    close(pl.Constraints(ours.absolute()).residual(other), np.zeros(21), 1e-10)
    close(ours.from_absolute(other, np.zeros(24))[0], q, 1e-9)


def test_rows_look_at_all_that_moves_their_joints() -> None:
    there = MACHINES["cam"].absolute()
    q, _ = MACHINES["cam"].to_absolute(*moving(MACHINES["cam"], 3))
    rows = pl.Constraints(there)
    assert np.array_equal(rows.coordinates[-1].nonzero()[0], np.arange(24)[REACH])
    assert not rows.jacobian(q)[-1][~rows.coordinates[-1]].any()


REACH = np.r_[0:18]
"""Velocities of the ground's bodies and the arm, but not of the hand."""
