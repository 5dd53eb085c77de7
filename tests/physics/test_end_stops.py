"""Physics of end stops: bounces and billiards in closed form, impacts against all combinations.

The oracle of an impact knows neither of the solver nor of the run: for every subset of the end
stops that are touched it takes the nearest velocity, in the kinetic metric, with which these stand
still, by least squares; the one subset counts whose end stops push and whose others let go.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import linprog

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.simulation.endstops import EndStopContacts, _independent
from pinloop.simulation.limits import joint_ends
from pinloop.simulation.modes import ModalSystem

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array, joint
from ..states import allowed, close, moving, one_body, robot

TIGHT = pl.MuntheKaas(rtol=1e-11, atol=1e-11)
FORMULATIONS = [None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()]
MACHINES = [
    "four-bar",
    "five-bar",
    "planar_3r",
    "parallelogram",
    "six_axis_arm",
    "palletizer",
    "delta",
]


def with_ends(machine: pl.Mechanism, **ranges: tuple[float, float]) -> pl.Mechanism:
    """A robot with position limits at the named joints and at no others."""
    joints = []
    for one in machine.description.joints:
        low, high = ranges.get(one.name, (-np.inf, np.inf))
        joints.append(replace(one, lower=(low,) if one.name in ranges else (),
                              upper=(high,) if one.name in ranges else ()))  # fmt: skip
    return build(replace(machine.description, joints=tuple(joints)))


def cornered(machine: pl.Mechanism, q: Array, seed: int, most: int) -> tuple[pl.Mechanism, Array]:
    """The robot with some of its joints exactly at an end of their ranges, and these ends.

    Returns the robot and per velocity 1 where it stands at an upper end, -1 at a lower one, 0 else.
    """
    rng = np.random.default_rng(seed)
    single = [name for name in machine.joints if machine.coordinates(name).nv == 1]
    chosen = rng.choice(single, min(most, len(single)), replace=False)
    ends, ranges = np.zeros(machine.nv), {}
    for name in chosen:
        at = machine.coordinates(name)
        x, sign = float(q[at.q.start]), int(rng.choice([-1, 1]))
        ends[at.v.start] = sign
        ranges[str(name)] = (x, x + 9.0) if sign < 0 else (x - 9.0, x)
    return with_ends(machine, **ranges), ends


def struck(machine: pl.Mechanism, q: Array, v: Array, ends: Array) -> Array:
    """Velocity after a plastic impact: all combinations of end stops that push."""
    M, J = hand.mass_matrix(machine, q), pl.Constraints(machine, full=True).jacobian(q)
    root, at = np.linalg.cholesky(M).T, np.flatnonzero(ends)
    found = []
    for chosen in chain.from_iterable(combinations(at, k) for k in range(len(at) + 1)):
        F = allowed(np.vstack([J, np.eye(machine.nv)[list(chosen)]]))
        after = F @ np.linalg.lstsq(root @ F, root @ v, rcond=None)[0]
        if (ends * after > 1e-10).any():
            continue
        # M dv is what rows and pushes give.
        if unpushed(J, -np.diag(ends)[:, list(chosen)], M @ (after - v)) < 1e-8:
            found.append(after)
    assert found
    for other in found:
        close(other, found[0], 1e-7)
    return np.asarray(found[0])


def unpushed(J: Array, pushes: Array, impulse: Array) -> float:
    """What rows and pushes of the right sign leave of an impulse: a linear program."""
    n, rows = len(impulse), len(J)
    size = max(1.0, float(np.abs(impulse).max()))
    found = linprog(
        np.r_[np.zeros(rows + pushes.shape[1]), np.ones(2 * n)],
        A_eq=np.hstack([J.T, pushes, np.eye(n), -np.eye(n)]), b_eq=impulse / size,
        bounds=[(None, None)] * rows + [(0, None)] * (pushes.shape[1] + 2 * n),
    )  # fmt: skip
    assert found.fun is not None
    return float(found.fun)


def first(machine: pl.Mechanism, q: Array, v: Array, e: float) -> pl.Trajectory:
    return pl.simulate(machine, q, v, until=1e-3, limits=pl.simulation.EndStops(e), losses=False)


# -- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [TIGHT, pl.MuntheKaas(), pl.MuntheKaas("rk4", step=0.01)])
@pytest.mark.parametrize("e", [0.0, 0.3, 0.7])
def test_a_ball_bounces_as_in_the_book(e: float, method: pl.MuntheKaas) -> None:
    ball, height = s.between(s.falling(), 0.0, 9.0), 0.5
    rate = np.sqrt(2 * s.G * height)
    end = rate / s.G + 2 * rate / s.G * e / (1 - e)
    run = pl.simulate(
        ball, [height], until=end + 0.1, limits=pl.simulation.EndStops(e), method=method
    )
    *bounces, last = run.transitions
    hits = rate / s.G + 2 * rate / s.G * np.r_[0.0, np.cumsum(e ** np.arange(1, len(bounces) + 1))]
    close(np.array([made.t for made in run.transitions]), hits[: len(run.transitions)], 1e-9)
    for k, made in enumerate(bounces):
        assert made.v_plus[0] == pytest.approx(rate * e ** (k + 1), rel=1e-7)
        assert made.before == made.after == pl.Mode()
        middle = made.t + rate * e ** (k + 1) / s.G
        assert run(middle).q[0] == pytest.approx(height * e ** (2 * k + 2), abs=1e-9)
        assert made.energy_loss == pytest.approx(0.5 * made.v_minus[0] ** 2 * (1 - e**2), rel=1e-9)
        assert made.impulse_of("lock:joint") == pytest.approx(-(1 + e) * made.v_minus, rel=1e-9)
    # All bounces take a finite time. Those below 1e-10 m are left out: 2 sqrt(2 h / g) / (1 - e).
    assert last.t == pytest.approx(end, abs=2 * np.sqrt(2e-10 / s.G) / (1 - e))
    rises = [(rate * e ** (k + 1)) ** 2 / (2 * s.G) for k in range(len(run.transitions))]
    assert min(rises[:-1], default=1.0) > 1e-10 * ball.length >= rises[-1]
    assert str(last.after) == "lock:joint"
    resting = run.t > last.t
    assert resting.any() and not run.v[resting].any() and np.ptp(run.q[resting]) == 0.0
    assert np.abs(run.energy().error).max() < 1e-8
    assert run.q.min() > -1e-9 and run.limits_passed == ()
    assert [name for _, name in run.events] == ["lower limit of joint"] * len(run.transitions)


def test_what_bounces_without_loss_comes_back_for_ever() -> None:
    ball = s.between(s.falling(), 0.0, 9.0)
    period = 2 * np.sqrt(2 * 0.3 / s.G)
    run = pl.simulate(
        ball, [0.3], until=4 * period, limits=pl.simulation.EndStops(1.0), method=TIGHT
    )
    assert len(run.transitions) == 4
    for k in range(5):
        assert run(k * period).q[0] == pytest.approx(0.3, abs=1e-8)


def test_a_billiard_unfolds() -> None:
    table = one_body("planar translation", gravity=(0, 0, 0))
    (only,) = table.description.joints
    table = build(replace(
        table.description, joints=(replace(only, lower=(-1.0, -2.0), upper=(1.5, 0.7)),)
    ))  # fmt: skip
    run = pl.simulate(table, [0.2, 0.1], [3.0, -1.7], until=7.0, limits=pl.simulation.EndStops(1.0))

    def folded(x: float, low: float, high: float) -> float:
        span = high - low
        place = (x - low) % (2 * span)
        return low + min(place, 2 * span - place)

    for t in np.linspace(0.0, 7.0, 41):
        want = [folded(0.2 + 3.0 * t, -1.0, 1.5), folded(0.1 - 1.7 * t, -2.0, 0.7)]
        close(run(t).q, np.array(want), 1e-7)
    assert {name for _, name in run.events} == {
        "lower limit of joint.vx", "upper limit of joint.vx",
        "lower limit of joint.vy", "upper limit of joint.vy",
    }  # fmt: skip


def test_a_body_slides_along_one_wall_and_comes_to_rest_in_the_corner() -> None:
    table = one_body("planar translation", gravity=(1.0, -4.0, 0))
    (only,) = table.description.joints
    table = build(replace(
        table.description, joints=(replace(only, lower=(-9.0, 0.0), upper=(0.5, 9.0)),)
    ))  # fmt: skip
    run = pl.simulate(table, [0.0, 0.5], until=2.0, limits="end stop", method=TIGHT)
    assert [name for _, name in run.events] == [
        "lower limit of joint.vy", "upper limit of joint.vx"
    ]  # fmt: skip
    # Down after sqrt(2 h / g) = 0.5 s, across after 1 s: vx = t until then.
    close(np.array([t for t, _ in run.events]), np.array([0.5, 1.0]), 1e-9)
    assert str(run.modes[run.mode[-1]]) == "lock:joint, lock:joint"
    push = run.reactions("lock:joint")
    assert isinstance(push, pl.simulation.LockReaction)
    assert push.labels == ("lock:joint.vx", "lock:joint.vy")
    close(push.effort[-1], np.array([-1.0, 4.0]), 1e-9)


# -- impacts of several at once, against all combinations -----------------------------------------


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(4))
def test_an_impact_is_that_of_the_one_combination_that_pushes(name: str, seed: int) -> None:
    q, v = moving(robot(name), seed)
    machine, ends = cornered(robot(name), q, seed, 4)
    want = struck(machine, q, v, ends)
    run = first(machine, q, v, 0.0)
    after = run.transitions[0].v_plus if run.transitions else run.v[0]
    close(after, want, 1e-8)
    if run.transitions:
        made = run.transitions[0]
        M = hand.mass_matrix(machine, q)
        assert made.energy_loss == pytest.approx(0.5 * (v @ M @ v - want @ M @ want), abs=1e-9)
        for label, impulse in zip(made.labels, made.impulse, strict=True):
            if label.startswith("lock:"):
                sign = ends[machine.coordinates(label[5:]).v.start]
                assert -sign * impulse > 0.0


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("e", [0.4, 1.0])
def test_a_rebound_mirrors_what_a_plastic_impact_takes(name: str, e: float) -> None:
    for seed in range(3):
        q, v = moving(robot(name), seed)
        machine, ends = cornered(robot(name), q, seed, 3)
        plastic = struck(machine, q, v, ends)
        want = plastic + e * (plastic - v)
        if np.abs(plastic - v).max() < 1e-6:
            continue  # nothing is hit
        made = first(machine, q, v, e).transitions[0]
        M = hand.mass_matrix(machine, q)
        if (ends * want > 1e-9).any():  # thrown at each other once more
            assert (ends * made.v_plus < 1e-9).all()
            assert made.v_plus @ M @ made.v_plus < want @ M @ want + 1e-9
            continue
        close(made.v_plus, want, 1e-8)
        dv = plastic - v
        assert made.energy_loss == pytest.approx(0.5 * (1 - e**2) * dv @ M @ dv, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_energy_never_rises_however_many_hit_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = ["five-bar", "six_axis_arm", "planar_3r"][seed % 3]
    start, v = moving(robot(name), seed, speed=4.0)
    ranges = {}
    for one in robot(name).joints:
        x = float(start[robot(name).coordinates(one).q][0])
        ranges[one] = (x - rng.uniform(0.02, 0.3), x + rng.uniform(0.02, 0.3))
    machine = with_ends(robot(name), **ranges)
    run = pl.simulate(
        machine, start, v, until=0.3, limits=pl.simulation.EndStops(0.8), losses=False
    )
    assert len(run.transitions) > 5
    for made in run.transitions:
        M = hand.mass_matrix(machine, made.q)
        before, after = (float(0.5 * x @ M @ x) for x in (made.v_minus, made.v_plus))
        assert after <= before * (1 + 1e-12)
        assert made.energy_loss == pytest.approx(before - after, abs=1e-10 * max(1.0, before))
    error = np.abs(run.energy().error).max()
    assert error < 1e-5 * max(1.0, float(run.energy().kinetic.max()))
    for one, (low, high) in ranges.items():
        way = run.q[:, machine.coordinates(one).q.start]
        assert low - 1e-8 < way.min() and way.max() < high + 1e-8
    assert run.limits_passed == ()


def test_joints_that_throw_each_other_against_their_stops_come_to_rest() -> None:
    """Plastic hits of two end stops in turn, ever faster: an end after finite time."""
    arm = robot("six_axis_arm")
    v = np.random.default_rng(4).uniform(-6.0, 6.0, arm.nv)
    run = pl.simulate(arm, arm.neutral, v, until=0.6, losses=False, limits="end stop")
    assert any(len(mode.locks) == 2 for mode in run.modes)
    assert len(run.transitions) < 20
    assert np.abs(run.energy().error).max() < 1e-5
    assert run.limits_passed == ()


def test_what_is_all_but_at_rest_does_not_stop_what_bounces() -> None:
    table = one_body("planar translation", gravity=(-s.G, -s.G, 0))
    (only,) = table.description.joints
    table = build(
        replace(table.description, joints=(replace(only, lower=(0.0, 0.0), upper=(9.0, 9.0)),))
    )
    run = pl.simulate(
        table, [0.0, 0.0], [-1.0, -1e-6], until=0.05, limits=pl.simulation.EndStops(0.5)
    )
    close(run.transitions[0].v_plus, np.array([0.5, 0.0]), 1e-12)
    assert str(run.transitions[0].after) == "lock:joint"


def test_a_joint_that_is_moved_by_force_hits_through_what_it_moves() -> None:
    """A prescribed motion goes on through the impact, and does work in it."""
    machine = with_ends(robot("planar_3r"), joint_2=(-1.0, 0.05))
    row = pl.constraints.Prescribed("joint_1", lambda t: (0.7 * t, 0.7, 0.0))
    for e in (0.0, 0.6):
        run = pl.simulate(machine, machine.neutral, [0.7, 2.0, -1.0], until=0.2, rows=[row],
                          limits=pl.simulation.EndStops(e), losses=False, method=TIGHT)  # fmt: skip
        made = run.transitions[0]
        M = hand.mass_matrix(machine, made.q)
        # Joint 3 is free: its momentum stays; joint 1 keeps its rate, joint 2 goes back.
        back = -e * made.v_minus[1]
        third = made.v_minus[2] - M[2, 1] / M[2, 2] * (back - made.v_minus[1])
        close(made.v_plus, np.array([0.7, back, third]), 1e-9)
        drive = float((M @ (made.v_plus - made.v_minus))[0])
        assert made.drive_work == pytest.approx(0.7 * drive, rel=1e-9)
        gained = 0.5 * (made.v_plus @ M @ made.v_plus - made.v_minus @ M @ made.v_minus)
        assert made.energy_loss == pytest.approx(made.drive_work - gained, rel=1e-9)
        assert made.energy_loss > 0 and np.abs(run.energy().error).max() < 1e-7


# -- loops, redundant end stops, locks ------------------------------------------------------------


def gripper(coupled: bool, swapped: bool = False) -> pl.Mechanism:
    """Two fingers that slide along x against each other; a coupling may hold them together."""
    fingers = [
        joint(name, "prismatic", GROUND, f"{name} pad", [0, 0, 0], [1, 0, 0],
              limits={"lower": -0.05, "upper": 0.04})
        for name in (("right", "left") if swapped else ("left", "right"))
    ]  # fmt: skip
    more = {"couplings": [{"name": "rack", "joint": "right", "source": "left", "ratio": 1.0}]}
    return tables.build(
        tables.table("gripper", *fingers, gravity=[0, 0, 0], **(more if coupled else {}))
    )


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
def test_both_fingers_hit_at_once(coupled: bool, swapped: bool, e: float) -> None:
    hand_ = gripper(coupled, swapped)
    at = [hand_.coordinates(name).v.start for name in ("left", "right")]

    def squeeze(t: float, q: Array, v: Array) -> Array:
        # Pulled apart from t = 1 on.
        force = np.zeros(2)
        force[at] = (2.0, 3.0) if t < 1.0 else (-2.0, -3.0)
        return force * np.diag(M)

    M = hand.mass_matrix(hand_, hand_.neutral)
    speed = np.zeros(2)
    speed[at] = 0.3
    plan = {"method": TIGHT, "limits": pl.simulation.EndStops(e), "losses": False}
    run = pl.simulate(hand_, [0.0, 0.0], speed, until=1.15, tau=squeeze, **plan)  # type: ignore[arg-type]
    if coupled:
        hits = [made for made in run.transitions if made.v_minus[at[0]] > 1e-9]
        a = (2.0 * M[at[0], at[0]] + 3.0 * M[at[1], at[1]]) / np.trace(M)
        meet = (-0.3 + np.sqrt(0.09 + 2 * a * 0.04)) / a
        assert hits[0].t == pytest.approx(meet, abs=1e-9)
        assert np.ptp(hits[0].v_plus) < 1e-12
        loss = 0.5 * np.trace(M) * hits[0].v_minus[0] ** 2 * (1 - e**2)
        assert hits[0].energy_loss == pytest.approx(loss, rel=1e-8)
        both = hits[0].impulse_of("lock:left") if "lock:left" in hits[0].labels else np.zeros(1)
        other = hits[0].impulse_of("lock:right") if "lock:right" in hits[0].labels else np.zeros(1)
        push = -float((both + other)[0])
        assert push == pytest.approx((1 + e) * np.trace(M) * hits[0].v_minus[0], rel=1e-8)
    resting = run(np.linspace(0.9, 0.99, 5))
    assert not np.abs(resting.v).max() > 1e-12
    close(resting.q, np.full((5, 2), 0.04), 1e-9)
    assert run.q[-1].max() < 0.04 - 0.5 * 2.0 * 0.15**2 * 0.99
    assert np.abs(run.energy().error).max() < 1e-7
    # No end stop needs a row of its own where the coupling does its work.
    assert max(len(mode.locks) for mode in run.modes) == (1 if coupled else 2)


def test_the_order_of_joints_does_not_matter() -> None:
    v = {"left": 0.31, "right": 0.3}
    ends = []
    for swapped in (False, True):
        machine = gripper(False, swapped)
        at = [machine.coordinates(name).v.start for name in ("left", "right")]
        speed = np.zeros(2)
        speed[at] = [v["left"], v["right"]]
        run = pl.simulate(machine, [0.0, 0.0], speed, until=1.0, limits=pl.simulation.EndStops(0.6))
        ends.append(run.q[-1][at])
    close(ends[0], ends[1], 1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_an_end_stop_in_a_loop_with_every_formulation(
    formulation: pl.dynamics.Formulation | None, e: float
) -> None:
    free = robot("four-bar")
    q = free.neutral
    machine = with_ends(free, rocker=(-0.1, 0.1), elbow=(-0.6, 3.0))
    v = pl.consistent_velocity(machine, q, {"crank": 3.0})
    run = pl.simulate(
        machine,
        q,
        v,
        until=0.5,
        forces=[pl.Torque("crank", 6.0)],
        limits=pl.simulation.EndStops(e),
        formulation=formulation,
        method=TIGHT,
        losses=False,
    )
    assert run.transitions
    for made in run.transitions:
        ends = np.zeros(machine.nv)
        for end, sign in (("lower", -1), ("upper", 1)):
            for name in ("rocker", "elbow"):
                if any(f"{end} limit of {name}" == label for label in made.events):
                    ends[machine.coordinates(name).v.start] = sign
        plastic = struck(machine, made.q, made.v_minus, ends)
        if (made.v_plus == 0.0).all() or not ends.any():
            continue  # at rest, or let go
        close(made.v_plus, plastic + e * (plastic - made.v_minus), 1e-8)
    assert np.abs(run.energy().error).max() < 1e-7
    assert run.closure().max() < 1e-10 and run.limits_passed == ()
    want = pl.simulate(
        machine,
        q,
        v,
        until=0.5,
        forces=[pl.Torque("crank", 6.0)],
        limits=pl.simulation.EndStops(e),
        formulation=pl.Augmented(),
        method=TIGHT,
        losses=False,
    )
    assert [name for _, name in run.events] == [name for _, name in want.events]
    close(run.q[-1], want.q[-1], 1e-7)


def test_end_stops_that_say_the_same_share_one_row() -> None:
    """Both cranks of a parallelogram reach their ends together; each alone would do."""
    machine = with_ends(robot("parallelogram"), left=(-9.0, 0.3), right=(-9.0, 0.3))
    q = machine.neutral
    v = pl.consistent_velocity(machine, q, {"left": 1.5})
    push = [pl.Torque("left", 8.0)]
    run = pl.simulate(machine, q, v, until=1.0, forces=push, limits="end stop", losses=False)
    assert [len(mode.locks) for mode in run.modes] == [0, 1]
    assert {name for _, name in run.events} == {"upper limit of left", "upper limit of right"}
    assert not np.abs(run.v[-1]).max() > 1e-12 and run.limits_passed == ()


def test_an_end_stop_that_others_make_idle_is_not_watched() -> None:
    machine = with_ends(robot("parallelogram"), left=(-9.0, 0.0), right=(-9.0, 0.0))
    system, q = ModalSystem(machine), machine.neutral
    v = pl.consistent_velocity(machine, q, {"left": 1.5})
    contacts = EndStopContacts(system, joint_ends(machine), 0.0)
    made, resting, _ = contacts.settle(0.0, q, v, pl.Mode(), pl.Mode(), ())
    assert made is not None and len(made.after.locks) == 1
    watched = [guard.event.label for guard in contacts.guards(made.after, resting)]
    (held,) = made.after.locks
    idle = "left" if held.joint == "right" else "right"
    assert watched == [f"lower limit of {idle}", f"release from upper limit of {held.joint}"]


@pytest.mark.parametrize("seed", range(40))
def test_as_many_end_stops_are_left_as_are_independent_and_all_push(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, rows = 7, int(rng.integers(3, 6))
    root = rng.normal(size=(n, n))
    M, J = root @ root.T + 0.1 * np.eye(n), rng.normal(size=(rows, n))
    columns, way = np.arange(n), rng.choice([-1.0, 1.0], n)
    push = way * rng.uniform(0.0, 1.0, n) * (rng.random(n) < 0.8)
    left = _independent(M, J, np.ones(rows), columns, push, way)
    assert len(left) == n - rows
    kept = np.vstack([J, np.eye(n)[left]])
    assert np.linalg.matrix_rank(kept) == n
    # Rows and the end stops that are left give the same force, and these only push.
    again = np.linalg.solve(kept.T, push)[rows:]
    assert (way[left] * again > -1e-9).all()


def test_a_lock_at_the_instant_of_a_hit_is_one_change() -> None:
    machine = with_ends(robot("planar_3r"), joint_2=(-1.0, 0.05))
    v = [1.0, 2.0, -1.0]
    free = pl.simulate(machine, machine.neutral, v, until=0.1, limits="end stop", method=TIGHT)
    hit = free.transitions[0]
    run = pl.simulate(machine, machine.neutral, v, until=0.1, limits="end stop", method=TIGHT,
                      events=[pl.lock("joint_3", at=hit.t)])  # fmt: skip
    made = run.transitions[0]
    ends = np.zeros(3)
    ends[machine.coordinates("joint_2").v.start] = 1.0
    # With j3 locked the nearest velocity has both at rest; j2 only if it is still pressed.
    M, k = hand.mass_matrix(machine, made.q), machine.coordinates("joint_3").v.start
    rest = [i for i in range(3) if i != k]
    locked = np.zeros(3)
    locked[rest] = np.linalg.solve(M[np.ix_(rest, rest)], (M @ made.v_minus)[rest])
    if ends @ locked > 0:
        only = next(i for i in rest if not ends[i])
        locked = np.zeros(3)
        locked[only] = (M @ made.v_minus)[only] / M[only, only]
    close(made.v_plus, locked, 1e-9)
    loss = 0.5 * (made.v_minus @ M @ made.v_minus - locked @ M @ locked)
    assert made.energy_loss == pytest.approx(loss, rel=1e-9)
    assert "lock joint_3" in made.events
    assert np.abs(run.energy().error).max() < 1e-8


def test_a_range_without_width_holds_both_ways() -> None:
    machine = with_ends(robot("planar_3r"), joint_2=(0.0, 0.0))
    run = pl.simulate(machine, machine.neutral, until=1.0, limits="end stop",
                      forces=[pl.TorqueFunction(lambda t, q, v: [0.0, 3 * np.sin(9 * t), 0.0])],
                      losses=False, method=TIGHT)  # fmt: skip
    locked = pl.simulate(machine, machine.neutral, until=1.0, mode=pl.Mode("joint_2"), losses=False,
                         method=TIGHT)  # fmt: skip
    assert not run.q[:, machine.coordinates("joint_2").q].any()
    close(run.q[-1], locked.q[-1], 1e-8)


# -- grazing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [TIGHT, pl.MuntheKaas(), pl.MuntheKaas("rk4", step=0.4)])
@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("over", [-1e-6, -1e-12, 0.0, 1e-13, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
def test_a_graze_is_neither_missed_nor_repeated(
    over: float, e: float, method: pl.MuntheKaas
) -> None:
    rate = 4.0
    top = rate**2 / (2 * s.G)
    slide = s.between(s.falling(), -50.0, top - over)
    run = pl.simulate(
        slide, [0.0], [rate], until=1.2, limits=pl.simulation.EndStops(e), method=method
    )
    assert run.q.max() < top - over + 1e-9 and run.limits_passed == ()
    assert len(run.events) <= 1
    if over >= 1e-7:
        assert len(run.events) == 1
    speed = np.sqrt(max(2 * s.G * over, 0.0))
    meet = (rate - speed) / s.G
    left = 1.2 - meet
    want = top - over - e * speed * left - 0.5 * s.G * left**2
    # A graze that is too small to be seen is one that changes nothing.
    assert run.q[-1, 0] == pytest.approx(want, abs=1e-9 + 4 * np.sqrt(2e-9 * s.G) * (over < 1e-7))
    assert np.abs(run.energy().error).max() < 1e-7


# -- a run that ends at a limit -------------------------------------------------------------------


def test_a_run_ends_where_a_limit_is_reached() -> None:
    slide = s.between(s.falling(), -3.0, 0.5)
    run = pl.simulate(slide, [0.0], [4.0], until=5.0, limits="stop")
    assert run.events == ((run.t[-1], "upper limit of joint"),)
    assert run.message == "stopped by an event"
    assert run.q[-1, 0] == pytest.approx(0.5, abs=1e-10)
    assert run.t[-1] == pytest.approx((4.0 - np.sqrt(16.0 - s.G)) / s.G, abs=1e-9)
    assert run.warnings == ()
    on = pl.simulate(slide, [0.5], [-1.0], until=0.4, limits="stop")
    assert on.events == () and on.t[-1] == 0.4
    out = pl.simulate(slide, [0.5], [1.0], until=0.4, limits="stop")
    assert out.t[-1] == 0.0 and out.events == ((0.0, "upper limit of joint"),)


def test_a_locked_joint_does_not_end_a_run_at_its_limit() -> None:
    slide = s.between(s.falling(), -3.0, 0.5)
    run = pl.simulate(slide, [0.5], until=0.4, limits="stop", mode=pl.Mode("joint"))
    assert run.t[-1] == 0.4


@pytest.mark.parametrize("limits", ["stop", "end stop", pl.simulation.EndStops(0.5)])
def test_a_start_beyond_a_limit_is_refused(limits: object) -> None:
    pendulum = s.between(s.hanging(), -3.0, 1.57)
    with pytest.raises(
        pl.BadValue, match=r"'joint' starts at 1\.58 rad, beyond its upper limit of"
    ):
        pl.simulate(pendulum, [1.58], until=0.1, limits=limits)  # type: ignore[arg-type]
    # The file has two digits for a quarter turn.
    run = pl.simulate(pendulum, [np.pi / 2], [-1.0], until=0.1, limits=limits)  # type: ignore[arg-type]
    assert run.t[-1] == 0.1 and run.warnings == ()


def test_end_stops_of_some_joints_only() -> None:
    arm = tables.limited(m.planar_3r(), j1=(-0.05, 0.05), j2=(-0.05, 0.05))
    stops = pl.simulation.EndStops(joints="j2")  # type: ignore[arg-type]
    run = pl.simulate(arm, arm.neutral, [1, 1, 1], until=0.15, limits=stops)
    assert {name for _, name in run.events} == {"upper limit of j2"}
    assert [one.joint for one in run.limits_passed] == ["j1"]
    with pytest.raises(pl.BadValue, match="'j3' has no position limits"):
        pl.simulate(arm, arm.neutral, until=0.1, limits=pl.simulation.EndStops(joints=("j3",)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: pl.simulation.EndStops(1.2), "restitution is .* EndStops needs a"),
        (lambda: pl.simulation.EndStops(True), "restitution is .* EndStops needs a"),
        (lambda: pl.simulate(s.falling(), [0.0], until=1.0, limits="bounce"), "'end stop' or pl"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_limit_is_refused(bad: object, message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        bad()  # type: ignore[operator]


# -- what is kept -----------------------------------------------------------------------------


def test_both_sides_of_a_bounce_are_kept_whatever_is_saved(tmp_path: object) -> None:
    ball = s.between(s.falling(), 0.0, 9.0)
    runs = [
        pl.simulate(ball, [0.5], until=1.0, limits=pl.simulation.EndStops(0.7), save_every=every)
        for every in (None, 0.6)
    ]
    whole, few = runs
    assert len(few.t) < len(whole.t)
    for made in whole.transitions:
        for run in runs:
            k = int(np.searchsorted(run.t, made.t))
            assert run.t[k] == run.t[k + 1] == made.t
            close(run.v[k], made.v_minus, 1e-9)
            close(run.v[k + 1], made.v_plus, 1e-9)
    close(few.energy().work["impulses"][-1:], whole.energy().work["impulses"][-1:], 1e-9)
    assert np.abs(few.energy().error).max() < 1e-8
    from pinloop.simulation.run_file import sampled

    close(sampled(whole, 0.6).t, few.t, 1e-12)


def test_a_free_flying_base_may_have_arms_with_end_stops() -> None:
    """A curved joint elsewhere does not hide where a coordinate turns round."""
    arm = tables.build(
        {
            "name": "floating",
            "gravity": [0, 0, 0],
            "bodies": [s.round_body("hull", 3.0, 0.4, [0, 0, 0]),
                       s.round_body("arm", 1.0, 0.05, [0.3, 0, 0])],
            "joints": [joint("base", "free", GROUND, "hull"),
                       joint("arm", "revolute", "hull", "arm", [0.1, 0, 0], s.Z,
                             limits={"lower": -0.4, "upper": 0.3})],
        }
    )  # fmt: skip
    k = arm.coordinates("arm").v.start
    v = np.zeros(arm.nv)
    v[k], v[3:6] = 2.0, (0.3, -0.2, 0.5)
    run = pl.simulate(
        arm, arm.neutral, v, until=2.0, limits=pl.simulation.EndStops(0.9), method=TIGHT
    )
    assert len(run.transitions) > 2
    momenta = run.momentum()
    close(momenta.angular, np.tile(momenta.angular[0], (len(run.t), 1)), 1e-8)
    close(momenta.linear, np.tile(momenta.linear[0], (len(run.t), 1)), 1e-8)
    assert np.abs(run.energy().error).max() < 1e-8 and run.limits_passed == ()
    assert pin.neutral(arm.model).shape == (arm.nq,)
