"""Recorded motions of robots with loops: what is not recorded follows, on its assembly branch."""

from __future__ import annotations

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.stopping.recorded import JointTrajectory

from ... import mechanisms as m
from ... import screw_tables as tables
from ...screw_tables import Array
from ...states import close, robot
from .test_recorded import moving


def residual(of: pl.Mechanism, q: Array) -> float:
    return float(np.abs(pl.Constraints(of, full=True).residual(q)).max(initial=0.0))


def four_bar(*actuated: str, **ranges: tuple[float, float]) -> pl.Mechanism:
    return tables.limited(m.four_bar(actuated=list(actuated)), **ranges)


@pytest.mark.parametrize("branch", [1, -1])
def test_a_four_bar_stays_on_its_branch_through_full_turns(branch: int) -> None:
    bar = four_bar("crank")
    t = np.linspace(0.0, 1.0, 601)
    crank = 2.0 + 9.0 * t**2  # from 2 rad against x on, one and a half turns
    motion = JointTrajectory(("crank",), t, (crank - m.START)[:, None])
    guess = None if branch == 1 else bar.configuration(m.four_bar_q(m.START, -1))
    for time in (0.0, 0.31, 0.62, 0.87, 1.0):
        q, v = motion.state(bar, time, guess=guess)
        angle, rate = 2.0 + 9.0 * time**2, 18.0 * time
        expected = m.four_bar_q(angle, branch)
        ahead, behind = m.four_bar_q(angle + 1e-5, branch), m.four_bar_q(angle - 1e-5, branch)
        assert residual(bar, q) < 1e-9
        for name in bar.joints:
            at = bar.coordinates(name).v.start
            turns = (q[at] - expected[name]) / (2 * np.pi)
            assert abs(turns - round(turns)) < 1e-7, name
            slope = (ahead[name] - behind[name] + np.pi) % (2 * np.pi) - np.pi
            assert v[at] == pytest.approx(slope / 2e-5 * rate, abs=1e-5), name


@pytest.mark.parametrize("first", [-1.5, 1.5, 3.0, 4.0])
def test_the_branch_is_kept_on_the_way_to_the_first_sample(first: float) -> None:
    bar = four_bar("crank")
    q, _ = moving("crank", (first, 0.01)).state(bar, 0.0)
    for name, value in m.four_bar_q(m.START + first).items():
        turns = (q[bar.coordinates(name).q][0] - value) / (2 * np.pi)
        assert abs(turns - round(turns)) < 1e-9, name


def test_the_branch_is_kept_where_the_motion_is_sudden() -> None:
    bar = four_bar("crank")
    t = np.linspace(0.0, 1.0, 801)
    crank = 3.0 * (1 + np.tanh((t - 0.4) / 0.005)) / 2
    q, _ = JointTrajectory(("crank",), t, crank[:, None]).state(bar, 1.0)
    close(q, bar.configuration(m.four_bar_q(m.START + 3.0)), 1e-9)


def test_a_slider_that_starts_at_its_dead_centre() -> None:
    # There crank and rod are in line and the slider cannot move at first order.
    engine = tables.build(m.slider_crank(actuated=["slide"]))
    stretched = m.slider_crank_q(0.0)
    motion = moving("slide", (stretched["slide"] - 0.1, 0.05))
    q, v = motion.state(engine, 0.3, guess=engine.configuration(stretched))
    assert residual(engine, q) < 1e-9
    assert q[engine.coordinates("slide").q] == motion.positions(0.3)
    assert v[engine.coordinates("slide").v] == motion.rates(0.3)


@pytest.mark.parametrize("name", ["palletizer", "fivebar", "stewart", "prrr3"])
def test_shipped_robots_are_closed_and_their_velocity_is_that_of_the_motion(name: str) -> None:
    of = robot(name)
    home = pl.assemble(of)
    joints = [joint for joint in of.actuated if joint in of.joints]
    starts = [float(home[of.coordinates(joint).q][0]) for joint in joints]
    sizes = [0.2 * (of.length if of.is_translation[of.coordinates(n).v][0] else 1) for n in joints]
    motion = moving(" ".join(joints), *zip(starts, sizes, strict=True))
    q, v = motion.state(of, 1.3)
    assert residual(of, q) < 1e-9
    (before, _), (after, _) = motion.state(of, 1.3 - 1e-5), motion.state(of, 1.3 + 1e-5)
    close(v, of.difference(before, after) / 2e-5, 1e-7)
    for k, joint in enumerate(joints):
        at = of.coordinates(joint)
        assert q[at.q] == motion.positions(1.3)[k]
        assert v[at.v] == motion.rates(1.3)[k]
        close(v[at.v], [2 * sizes[k] * np.cos(2.6)], 1e-6)


def test_a_regularized_robot_is_at_the_same_place() -> None:
    motion = moving("crank", (0.0, 0.4))
    full = four_bar("crank")
    for one, other in zip(motion.state(full, 1.0), motion.state(pl.regularize(full), 1.0),
                          strict=True):  # fmt: skip
        close(one, other, 1e-12)


def test_a_coupled_joint_follows_its_gear() -> None:
    gears = robot("gear-pair")
    q, v = moving("pinion", (0.2, 3.0)).state(gears, 0.4)
    pinion, rate = 0.2 + 3.0 * np.sin(0.8), 6.0 * np.cos(0.8)
    close(q, gears.configuration({"pinion": pinion, "wheel": -0.25 * pinion + 0.3}), 1e-7)
    close(v, gears.velocity({"pinion": rate, "wheel": -0.25 * rate}), 1e-5)


def test_a_recorded_passive_joint_picks_the_branch() -> None:
    bar = four_bar("crank")
    t = np.linspace(0.0, 1.0, 101)
    angles = [m.four_bar_q(0.9 + 0.3 * time, -1) for time in t]
    values = [[q["elbow"], q["crank"], q["rocker"]] for q in angles]
    motion = JointTrajectory(("elbow", "crank", "rocker"), t, np.array(values))
    q, _ = motion.state(bar, 0.5)
    close(q, bar.configuration(m.four_bar_q(1.05, -1)), 1e-8)


def both_recorded(off: Array | float = 0.0, digits: int = 4) -> JointTrajectory:
    """Crank and rocker of the four-bar, as a file with few digits has them."""
    t = np.linspace(0.0, 1.0, 51)
    angles = [m.four_bar_q(1.0 + time) for time in t]
    values = np.array([[q["crank"], q["rocker"]] for q in angles])
    values[:, 1] += off
    return JointTrajectory(("crank", "rocker"), t, values.round(digits))


def test_more_joints_than_degrees_of_freedom_are_followed_within_rounding() -> None:
    bar, motion = four_bar("crank", "rocker"), both_recorded(digits=3)
    for time in (0.0, 0.333, 1.0):
        q, v = motion.state(bar, time)
        assert residual(bar, q) < 1e-9
        close(q, bar.configuration(m.four_bar_q(1.0 + time)), 3e-3)
        ahead, behind = m.four_bar_q(1.0 + time + 1e-5), m.four_bar_q(1.0 + time - 1e-5)
        rates = bar.velocity({n: (ahead[n] - behind[n]) / 2e-5 for n in ahead})
        close(v, rates, 0.15)
        J = pl.Constraints(bar, full=True).jacobian(q)
        close(J @ v, np.zeros(len(J)), 1e-9)


@pytest.mark.parametrize("off", [-2e-4, 0.0, 2e-4])
def test_a_driven_slider_whose_crank_is_recorded_too_passes_its_dead_centre(off: float) -> None:
    # Where the slider, 0.2 mm off, is within its reach, it puts the crank up to 0.03 rad away.
    engine = tables.build(m.slider_crank(actuated=["slide"]))
    t = np.linspace(0.0, 1.0, 101)
    angles = [m.slider_crank_q(0.6 - 1.2 * time) for time in t]
    values = np.array([[q["slide"], q["crank"]] for q in angles]).round(4)
    values[:, 0] += off
    motion = JointTrajectory(("slide", "crank"), t, values)
    for time in (0.2, 0.47, 0.48, 0.49, 0.5, 0.505, 0.52, 0.8, 1.0):
        q, v = motion.state(engine, time)
        assert residual(engine, q) < 1e-9
        close(q, engine.configuration(m.slider_crank_q(0.6 - 1.2 * time)), 1e-2)
        assert v[engine.coordinates("crank").v][0] == pytest.approx(-1.2, abs=0.12)


def test_a_slider_at_its_dead_centre_cannot_have_a_speed() -> None:
    engine = tables.build(m.slider_crank(actuated=["slide"]))
    stretched = m.slider_crank_q(0.0)
    motion = moving("slide", (stretched["slide"], -0.05))
    with pytest.raises(pl.InconsistentVelocity, match=r"cannot be had at t = 0 s: .*'slide' at"):
        motion.state(engine, 0.0, guess=engine.configuration(stretched))


def test_a_passive_joint_that_nothing_moves_is_where_it_was_recorded() -> None:
    bar = tables.build(m.five_bar() | {"actuated": ["m1"]})
    motion = moving("m2 m1", (0.1, 0.3), (0.0, 0.2))
    q, v = motion.state(bar, 0.6)
    assert residual(bar, q) < 1e-9
    for k, name in enumerate(motion.joints):
        assert q[bar.coordinates(name).q] == motion.positions(0.6)[k]
        assert v[bar.coordinates(name).v] == motion.rates(0.6)[k]


def test_all_joints_recorded_of_a_robot_that_does_not_say_what_is_driven() -> None:
    bar = robot("four-bar")
    assert bar.actuated == ("crank", "elbow", "rocker")
    with pytest.raises(pl.BadValue, match=r"'elbow' .*which joints are actuated"):
        both_recorded().state(bar, 0.5)


def test_a_joint_with_a_wrong_zero_is_named() -> None:
    start = m.four_bar_q(1.0)["rocker"]
    said = rf"joint 'rocker' is recorded at {start + 0.05:.4f}\d* at t = 0 s, .* it at {start:.4f}"
    with pytest.raises(pl.LoopNotClosed, match=said):
        both_recorded(0.05, digits=9).state(four_bar("crank"), 0.5)
    with pytest.raises(pl.LoopNotClosed, match=r"joint '(crank|rocker)' is recorded at"):
        both_recorded(0.05).state(four_bar("crank", "rocker"), 0.5)


@pytest.mark.parametrize("actuated", [("crank",), ("crank", "rocker")])
def test_rates_that_contradict_each_other(actuated: tuple[str, ...]) -> None:
    # 5 mrad to and fro every 20 ms: positions agree within rounding, rates do not.
    noise = np.array([0.005, -0.005] * 25 + [0.005])
    with pytest.raises(
        pl.InconsistentVelocity, match=r"t = 0\.49 s: joint '(crank|rocker)'"
    ) as info:
        both_recorded(noise, digits=9).state(four_bar(*actuated), 0.49)
    bar = four_bar(*actuated)
    J = pl.Constraints(bar, full=True).jacobian(both_recorded().state(bar, 0.49)[0])
    assert np.abs(J @ info.value.v).max() < 0.02 * np.abs(info.value.v).max()


def test_out_of_reach_names_the_time() -> None:
    # The rocker turns until crank and coupler are in line.
    bar = four_bar("rocker")
    motion = moving("rocker", (0.0, 1.5))
    motion.state(bar, 0.05)
    with pytest.raises(pl.LoopNotClosed, match=r"t = 0\.\d+ s: .*released"):
        motion.state(bar, 0.7)


def test_a_jump_to_another_assembly_is_no_motion() -> None:
    # The limit of the rocker ends the way of the branch at hand, not that of the other one.
    plus, minus = (m.four_bar_q(m.START + 1.08, branch)["rocker"] for branch in (1, -1))
    assert -5.0 < minus < 0.2 < plus
    bar = four_bar("crank", rocker=(-5.0, 0.2))
    t = np.linspace(0.0, 1.0, 201)
    motion = JointTrajectory(("crank",), t, 1.2 * t[:, None])
    motion.state(bar, 0.4)
    with pytest.raises(pl.LoopNotClosed, match=r"to t = 0\.\d+ s without a jump") as info:
        motion.state(bar, 0.9)
    assert residual(bar, info.value.q) < 1e-9


def test_a_first_sample_beyond_a_gap_is_reached() -> None:
    # Both cranks turn downwards on the outside: halfway their tips are 2 m apart, the links reach
    # 0.957 m + 1.027 m.
    bar = tables.build(m.five_bar() | {"actuated": ["m1", "m2"]})
    motion = moving("m1 m2", (2 * np.pi - 4.0, 0.1), (-2.0, 0.1))
    q, _ = motion.state(bar, 0.4)
    assert residual(bar, q) < 1e-9
    assert q[bar.coordinates("m2").q][0] == motion.positions(0.4)[1]


def test_limits_of_recorded_joints_are_not_in_the_way() -> None:
    bar = four_bar("crank", crank=(-0.1, 0.1))
    q, _ = moving("crank", (0.0, 0.4)).state(bar, 0.8)
    close(q, bar.configuration(m.four_bar_q(m.START + 0.4 * np.sin(1.6))), 1e-8)
    with pytest.raises(pl.LoopNotClosed, match="released"):
        moving("rocker", (0.0, 1.5)).state(four_bar("rocker", rocker=(-0.1, 0.1)), 0.7)
