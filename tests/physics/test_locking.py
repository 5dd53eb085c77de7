"""Physics of locked joints in runs: they stand to the last bit, and nothing else changes.

Oracles: reduced models of Pinocchio, the same robot with the joint welded, inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import pinloop as pl
from pinloop.dynamics import Formulation
from pinloop.model.tree import coordinate_names

from .. import linkages as ll
from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array, Table
from ..states import allowed, assembled, body_motion, close, moving, regularized, robot
from ..switching import FREE

FORMULATIONS: tuple[Formulation, ...] = (pl.Augmented(), pl.Projected(), pl.Voronets())
STEPS = {"euler": 0.002, "heun": 0.005, "rk4": 0.01, "bs32": 0.01, "dopri5": 0.02, "dop853": 0.03}
TIGHT = pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11)


def stands(run: pl.Trajectory, joint: str, axes: tuple[str, ...] = ()) -> None:
    """A joint stands still to the last bit while it is locked, at stored times and between."""
    at = run.robot.coordinates(joint)
    numbers = [k for k, mode in enumerate(run.modes) if mode.lock_of(joint) is not None]
    held = np.isin(run.mode, numbers)
    assert held.any() and not held.all()
    names = coordinate_names(run.robot.tree, joint)
    rates = np.r_[at.v] if not axes else at.v.start + np.array([names.index(a) for a in axes])
    places = np.r_[at.q] if not axes else rates - at.v.start + at.q.start
    assert not run.v[held][:, rates].any() and not run.a[held][:, rates].any()
    if axes and at.nq != at.nv:
        return  # one axis of a ball or plane has no coordinate of its own
    first, last = run.t[held][0], run.t[held][-1]
    dense = run(np.linspace(first, last, 41)[1:])
    assert not dense.v[:, rates].any()
    for q in (run.q[held], dense.q):
        assert np.all(q[:, places] == run.q[held][0, places])


# -- the last bit -----------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [name for name in m.TREE_PAIRS if name != "fixed"])
def test_a_locked_joint_of_every_pair_stands_to_the_last_bit(joint: str) -> None:
    chain = robot("every-pair")
    q, v = moving(chain, 3)
    events = [pl.lock(joint, at=0.02), pl.unlock(joint, at=0.05)]
    run = pl.simulate(chain, q, v, until=0.06, events=events, method=pl.MuntheKaas(rtol=1e-6))
    stands(run, joint)
    before, after = np.flatnonzero(np.diff(run.mode))
    assert run.q[before].tobytes() == run.q[before + 1].tobytes()
    assert run.v[after].tobytes() == run.v[after + 1].tobytes()
    columns = chain.coordinates(joint).v
    assert run.v[before, columns].any() and run.v[-1, columns].any()
    names = coordinate_names(chain.tree, joint)
    if len(names) > 1:
        axes = (names[0], names[-1])
        run = pl.simulate(
            chain, q, v, until=0.05, events=[pl.lock(joint, at=0.02, axes=axes)],
            method=pl.MuntheKaas("rk4", step=0.01),
        )  # fmt: skip
        stands(run, joint, axes)


def test_a_quaternion_that_rounding_would_turn_stands_to_the_last_bit() -> None:
    # Quaternions whose length is one only to the last digits: whoever normalises them, turns them.
    pendulum, found = robot("double-pendulum"), 0
    for seed in range(200):
        q = assembled(pendulum, seed, walk=1)
        if pin.normalize(pendulum.model, q).tobytes() == q.tobytes():
            continue
        found += 1
        for stabilization in (pl.Projection(), None):
            run = pl.simulate(
                pendulum, q, until=0.02, mode=pl.Mode("lower"), stabilization=stabilization,
                events=[pl.unlock("lower", at=0.018)], method=pl.MuntheKaas("rk4", step=0.005),
            )  # fmt: skip
            stands(run, "lower")
        if found == 4:
            return
    raise AssertionError("no such quaternion")


@pytest.mark.parametrize("name", ["ball-loop", "rssr", "double-pendulum", "floating-four-bar"])
def test_quaternions_of_a_locked_joint_stand_to_the_last_bit(name: str) -> None:
    machine = regularized(name)
    balls = [j for j in machine.joints if machine.coordinates(j).nq > 3]
    for seed in range(4):
        q, v = moving(machine, seed)
        run = pl.simulate(
            machine, q, v, until=0.06, events=[pl.lock(balls[seed % len(balls)], at=0.02)],
            method=pl.MuntheKaas("rk4", step=0.01),
        )  # fmt: skip
        stands(run, balls[seed % len(balls)])


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_every_integrator_and_formulation_holds_a_joint_in_a_loop(
    name: str, formulation: Formulation
) -> None:
    machine = regularized("five-bar")
    q, v = moving(machine, 1)
    run = pl.simulate(
        machine, q, v, until=0.15, events=[pl.lock("m1", at=0.03)], formulation=formulation,
        method=pl.MuntheKaas(name, step=STEPS[name]),
    )  # fmt: skip
    stands(run, "m1")
    assert run.closure().max() < 1e-10
    assert np.ptp(run.q[:, 1]) > 0.01


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize(
    "stabilization",
    [None, pl.Projection(coordinates="mass"), pl.Projection(), pl.Projection(tol=1e-14)],
    ids=["none", "mass", "optimal", "always"],
)
def test_every_stabilization_leaves_locked_joints_alone(
    stabilization: pl.Projection | None, formulation: Formulation
) -> None:
    for name, joint, axes in (
        ("ball-loop", "middle", ()), ("tip-on-plane", "elbow", ("wx",)), ("delta", "arm_1", ()),
    ):  # fmt: skip
        machine = regularized(name)
        q, v = moving(machine, 2)
        run = pl.simulate(
            machine, q, v, until=0.06, events=[pl.lock(joint, at=0.015, axes=axes)],
            formulation=formulation, stabilization=stabilization,
            method=pl.MuntheKaas("rk4", step=0.01),
        )  # fmt: skip
        stands(run, joint, axes)
        assert run.closure().max() < (1e-3 if stabilization is None else 1e-10)


@pytest.mark.parametrize("axis", ["wx", "wy", "wz"])
def test_dense_output_fits_the_states_while_one_axis_of_a_ball_is_locked(axis: str) -> None:
    machine = regularized("ball-loop")
    q, v = moving(machine, 3)
    run = pl.simulate(machine, q, v, until=0.15, events=[pl.lock("middle", at=0.03, axes=[axis])])
    column = machine.coordinates("middle").v.start + "xyz".index(axis[1])
    for k, psi in enumerate(run.psi):
        close(machine.integrate(run.q[k], psi), run.q[k + 1], 1e-12)
    dense = run(np.linspace(0.0301, 0.1499, 50))
    assert np.abs(dense.v[:, column]).max() < 1e-7
    assert max(np.linalg.norm(pl.Constraints(machine).residual(q)) for q in dense.q) < 1e-8


# -- the same motion as without the joint -----------------------------------------------------


def reduced_motion(
    machine: pl.Mechanism, q: Array, v: Array, joints: list[str], span: tuple[float, float]
) -> tuple[Array, Array]:
    """End of the motion of Pinocchio's reduced model, with one-axis joints."""
    model = machine.model
    small = pin.buildReducedModel(model, [model.getJointId(name) for name in joints], q)
    data = small.createData()
    kept = [k for k in range(machine.nv) if not any(
        machine.coordinates(name).v.start == k for name in joints)]  # fmt: skip

    def slope(t: float, y: Array) -> Array:
        a = pin.aba(small, data, y[: small.nq], y[small.nq :], np.zeros(small.nv))
        return np.concatenate([y[small.nq :], a])

    start = np.r_[q[kept], v[kept]]
    end = solve_ivp(slope, span, start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return end[: small.nq], end[small.nq :]


@pytest.mark.parametrize("name", ["planar-3R", "six_axis_arm"])
def test_a_tree_with_locks_moves_like_its_reduced_model(name: str) -> None:
    arm, rng = robot(name), np.random.default_rng(4)
    q, v = 0.5 * rng.normal(size=arm.nv), rng.normal(size=arm.nv)
    joint, later = arm.joints[1], arm.joints[-1]
    events = [pl.lock(joint, at=0.1), pl.lock(later, at=0.2), pl.unlock(joint, at=0.3)]
    run = pl.simulate(arm, q, v, until=0.4, events=events, losses=False, method=TIGHT)
    ends = [*np.flatnonzero(np.diff(run.mode)), len(run.t) - 1]
    stretches = zip([[joint], [joint, later], [later]], ends[:-1], ends[1:], strict=True)
    for locked, begin, stop in stretches:
        start = begin + 1
        place, rate = reduced_motion(
            arm, run.q[start], run.v[start], locked, (run.t[start], run.t[stop])
        )
        kept = [k for k, other in enumerate(arm.joints) if other not in locked]
        close(run.q[stop][kept], place, 1e-8)
        close(run.v[stop][kept], rate, 1e-8)


@pytest.mark.parametrize(
    ("make", "held"), [(m.five_bar, "m2"), (m.spinning_rods, "ball1"), (ll.planar_3rrr, "b0")]
)
def test_a_loop_with_a_lock_moves_like_the_same_robot_with_a_weld(
    make: Callable[[], Table], held: str
) -> None:
    entries = make()
    (entry,) = [one for one in entries["joints"] if one["name"] == held]
    locked, entry["pair"] = tables.build(make()), "fixed"
    entry.pop("axis", None)
    welded = tables.build(entries)
    q = locked.neutral
    v = s.moving_in(locked, q, FREE, 3)
    one = pl.simulate(locked, q, v, until=0.3, events=[pl.lock(held, at=0.0)], method=TIGHT)
    rest = [name for name in locked.joints if name != held]
    start = {name: one.v[1][locked.coordinates(name).v] for name in rest}
    two = pl.simulate(welded, welded.neutral, welded.velocity(start), until=0.3, method=TIGHT)
    ends = (body_motion(locked, one.q[-1], one.v[-1]), body_motion(welded, two.q[-1], two.v[-1]))
    moved = 0.0
    for name, (placement, twist, _) in ends[1].items():
        close(ends[0][name][0].homogeneous, placement.homogeneous, 1e-8)
        close(ends[0][name][1].vector, twist.vector, 1e-7)
        moved = max(moved, float(np.abs(twist.vector).max()))
    assert moved > 0.1


# -- what a lock holds ------------------------------------------------------------------------


def held_by(run: pl.Trajectory, joint: str, tau: Any) -> Array:
    """Torque in a lock at every state, by d'Alembert along what the lock alone forbids."""
    machine, efforts = run.robot, np.zeros(len(run.t))
    column = machine.coordinates(joint).v.start
    for k, (t, q, v, a) in enumerate(zip(run.t, run.q, run.v, run.a, strict=True)):
        mode = run.modes[run.mode[k]]
        if mode.lock_of(joint) is None:
            continue
        others = tuple(lock for lock in mode.locks if lock.joint != joint)
        F = allowed(s.mode_rows(machine, pl.Mode(others, mode.opened), q)[0])
        along = F @ F[column]  # the allowed motion that turns the joint most
        needed = pin.rnea(machine.model, machine.model.createData(), q, v, a) - tau(t, q, v)
        efforts[k] = along @ needed / along[column]
    return efforts


@pytest.mark.parametrize("name", ["six_axis_arm", "five-bar", "delta", "floating-four-bar"])
def test_reactions_of_locks_are_what_inverse_dynamics_needs(name: str) -> None:
    machine = regularized(name)
    singles = [j for j in machine.joints if machine.coordinates(j).nv == 1]
    one, two = (singles[0], singles[1]) if name == "six_axis_arm" else (singles[0], "")
    q, v = moving(machine, 2)
    push = np.diag(hand.mass_matrix(machine, q)) * np.random.default_rng(3).normal(size=machine.nv)
    events = [pl.lock(one, at=0.03), pl.unlock(one, at=0.09)]
    events += [pl.lock(two, at=0.06)] if two else []
    run = pl.simulate(
        machine, q, v, until=0.12, events=events, losses=False, tau=lambda t, q, v: push * (1 + t),
        method=pl.MuntheKaas("rk4", step=0.01),
    )  # fmt: skip
    for joint in filter(None, (one, two)):
        found = run.reactions(f"lock:{joint}")
        assert isinstance(found, pl.simulation.LockReaction)
        assert found.labels == (f"lock:{joint}",) and found.determined.all()
        want = held_by(run, joint, lambda t, q, v: push * (1 + t))
        close(found.effort[:, 0], want, 1e-9)
        free = np.array([mode.lock_of(joint) is None for mode in run.modes])[run.mode]
        assert not found.effort[free].any() and np.abs(found.effort[~free]).min() > 1e-6
    with pytest.raises(pl.BadValue, match="nothing was locked as 'lock:nothing'"):
        run.reactions("lock:nothing")


def test_a_lock_of_a_resting_pendulum_holds_its_weight() -> None:
    run = pl.simulate(s.hanging(), [0.0], until=0.5, mode=pl.Mode("joint"))
    found = run.reactions("lock:joint")
    assert isinstance(found, pl.simulation.LockReaction)
    close(found.effort[:, 0], np.full(len(run.t), 2.0 * s.G * 0.5), 1e-14)  # mass, gravity, arm
    assert not run.v.any() and not run.q.any()


def test_reactions_of_an_axis_bear_its_name() -> None:
    pendulum = robot("double-pendulum")
    q, v = moving(pendulum, 1)
    run = pl.simulate(pendulum, q, v, until=0.05, events=[pl.lock("lower", at=0.02, axes=["wy"])])
    found = run.reactions("lock:lower")
    assert isinstance(found, pl.simulation.LockReaction)
    assert found.labels == ("lock:lower.wy",)
    data, column = pendulum.model.createData(), pendulum.coordinates("lower").v.start + 1
    needed = [pin.rnea(pendulum.model, data, *state)[column] for state in
              zip(run.q, run.v, run.a, strict=True)]  # fmt: skip
    close(found.effort[run.mode == 1, 0], np.array(needed)[run.mode == 1], 1e-11)


# -- energy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["planar_3r", "delta", "ball-loop", "stewart"])
def test_the_energy_balance_closes_with_impulses_as_a_line(name: str) -> None:
    machine = regularized(name)
    q, v = moving(machine, 4)
    first, last = machine.joints[0], machine.joints[-1]
    events = [pl.lock(first, at=0.03), pl.unlock(first, at=0.05), pl.lock(last, at=0.06)]
    run = pl.simulate(machine, q, v, until=0.09, events=events, losses=False)
    energy = run.energy()
    line = energy.work["impulses"]
    lost = [change.energy_loss for change in run.transitions]
    assert lost[0] > 1e-4 and lost[1] < 1e-15 and lost[2] > 1e-4
    assert set(np.round(line, 12)) == set(np.round([0.0, -lost[0], -lost[0] - lost[2]], 12))
    assert np.abs(energy.error).max() < 2e-7 * max(1.0, energy.kinetic.max())
    jumps = [k for k in range(1, len(run.t)) if run.mode[k] != run.mode[k - 1]]
    close(np.diff(energy.kinetic)[np.array(jumps) - 1], -np.array(lost), 1e-10)


def test_a_driven_joint_keeps_its_motion_when_another_one_locks() -> None:
    machine = regularized("five-bar")
    drive = pl.constraints.Prescribed(
        "m1", lambda t: (0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t))
    )
    v = pl.consistent_velocity(machine, machine.neutral, {"m1": 0.6, "m2": 1.0})
    run = pl.simulate(
        machine, machine.neutral, v, until=0.2, rows=[drive], events=[pl.lock("m2", at=0.1)]
    )
    (made,) = run.transitions
    assert made.v_plus[0] == pytest.approx(0.6 * np.cos(0.3), rel=1e-10)
    assert made.v_plus[2] == 0.0 and abs(made.v_minus[2]) > 0.3
    # The drive feels the jump and does work in it: what is dissipated is not what the robot loses.
    spent = made.impulse_of("prescribed m1")[0] * made.v_plus[0]
    lost = s.kinetic(machine, made.q, made.v_minus) - s.kinetic(machine, made.q, made.v_plus)
    assert made.energy_loss == pytest.approx(lost + spent, rel=1e-9) and abs(spent) > 0.1
    assert made.drive_work == pytest.approx(spent, rel=1e-12)
    assert np.abs(run.energy().error).max() < 1e-7
    stands(run, "m2")


def test_a_joint_that_is_released_goes_on_from_where_it_stood() -> None:
    machine = regularized("delta")
    q = assembled(machine, 5)
    held = pl.Mode("arm_1")
    v = s.moving_in(machine, q, held, 5)
    method = pl.MuntheKaas("rk4", step=0.005)
    run = pl.simulate(
        machine, q, v, until=0.1, mode=held, events=[pl.unlock("arm_1", at=0.05)], method=method
    )
    free = np.array([not run.modes[number].locks for number in run.mode])
    k = int(np.argmax(free))
    fresh = pl.simulate(machine, run.q[k], run.v[k], start=0.05, until=0.1, method=method)
    close(fresh.q[-1], run.q[-1], 1e-9)
    close(fresh.v[-1], run.v[-1], 1e-8)
    assert run.modes[0].without_friction == held and run.t[k] == 0.05 and free[k:].all()
