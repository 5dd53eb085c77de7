"""Stops of robots with closed loops against closed forms, against a second program, against words.

What holds for every stop is asked of random ones in `test_stop_loops_random`; singular poses,
couplings and floating bases are in `test_stop_loops_special`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.errors import BadValue

from ... import linkages as ll
from ... import mechanisms as m
from ...screw_tables import Table, build
from ...states import URDF, regularized, robot
from .four_bar_by_hand import JOINTS, FourBar
from .loops_by_hand import Friction, Machine, at, brake, moving, rubbing
from .stops_by_hand import Stop

PALLETIZER = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
DELTA = pl.Brakes.from_yaml(URDF / "delta.brakes.yaml")


# -- one degree of freedom: closed form --------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "slides", "holds", "viscous", "legs"),
    [
        (3.0, {"crank": 4.0}, {"crank": 4.0}, 0.3, 1),
        (-5.0, {"crank": 6.0}, {"crank": 7.0}, 0.0, 2),
        (3.0, {"crank": 2.2, "elbow": 0.3, "rocker": 0.4}, {}, 0.1, 3),
        (-7.0, {"crank": 0.6, "elbow": 0.7, "rocker": 0.9}, {"elbow": 0.75}, 0.05, 1),
    ],
)
def test_the_four_bar_stops_as_its_reduced_equation_says(
    rate: float, slides: dict[str, float], holds: dict[str, float], viscous: float, legs: int
) -> None:
    """Dry friction at all joints does work at all joints, and holds where the sum of all holds."""
    holds = slides | holds
    joints = {
        name: rubbing(slides[name], breakaway=holds[name], stribeck_speed=1e-9) for name in slides
    }
    static = holds["crank"]
    joints["crank"] = brake(slides["crank"], static_torque=static, viscous=viscous)
    one = robot("four-bar")
    q, v = moving(one, {"crank": rate})
    stop = pl.stop(one, q, v, brakes=pl.Brakes(joints))
    rest = FourBar().stop(rate, slides, holds, viscous)
    assert (stop.outcome, rest.legs) == ("stopped", legs)
    assert stop.joints["crank"].angle == pytest.approx(rest.angle - m.START, abs=1e-6)
    assert stop.stopping_time == pytest.approx(rest.t, abs=2e-6)
    assert all(stop.joints[name].slips == 0 for name in slides)
    heat = stop.ledger.dissipated
    for name in slides:
        column = at(one, name)
        dry = sum(heat[sink][column].sum() for sink in ("brake", "dry friction"))
        assert dry == pytest.approx(slides[name] * rest.travels[name], rel=1e-6)
        assert stop.joints[name].travel == pytest.approx(rest.travels[name], abs=1e-6)


def test_it_goes_on_as_it_was_until_the_power_goes() -> None:
    """The crank keeps its speed for the time of the chain, whatever that takes; then as above."""
    one, slides = robot("four-bar"), {"crank": 4.0, "rocker": 0.3}
    q, v = moving(one, {"crank": 3.0})
    brakes = pl.Brakes(
        {"crank": brake(4.0), "rocker": rubbing(0.3)},
        pl.safety.Chain(sensor=0.012, controller=0.008),
    )
    stop = pl.stop(one, q, v, brakes=brakes)
    rest = FourBar().stop(3.0, slides, slides, crank=m.START + 3.0 * 0.02)
    assert stop.joints["crank"].reaction_angle == pytest.approx(0.06, abs=1e-9)
    assert stop.joints["crank"].angle == pytest.approx(rest.angle - m.START, abs=1e-6)
    assert stop.stopping_time == pytest.approx(0.02 + rest.t, abs=2e-6)
    assert stop.ledger.relative_error < 1e-6


@pytest.mark.parametrize("crank", [0.3, 1.4, 2.5, 4.0, 5.5])
@pytest.mark.parametrize("spread", [(1.0, 0.0, 0.0), (0.2, 0.5, 0.3), (0.0, 1.0, 1.0)])
def test_at_rest_it_holds_up_to_the_weighted_sum(
    crank: float, spread: tuple[float, float, float]
) -> None:
    """Torques at rest are not unique; what they can hold together is ``sum |dq_i/dq| tau_i``."""
    bar, one = FourBar(), robot("four-bar")
    most = bar.weighted(crank, dict(zip(JOINTS, spread, strict=True)))
    q = one.configuration(m.four_bar_q(crank))
    for part in (1 + 1e-5, 1 - 1e-5):
        size = part * abs(bar.load(crank)) / most
        shares = zip(JOINTS, spread, strict=True)
        brakes = pl.Brakes({name: rubbing(size * share) for name, share in shares})
        stop = pl.stop(one, q, np.zeros(3), brakes=brakes, until=0.5)
        turned = one.difference(q, stop.run.q[-1])[0]
        if part > 1:
            assert stop.outcome == "stopped" and turned == 0.0
            assert stop.stopping_time == 0.0
        else:
            assert stop.outcome == "does not hold"
            assert turned * bar.load(crank) < 0.0


# -- several degrees of freedom: a second program ----------------------------------------------

FIVEBAR = {
    "base_left": brake(5.0, static_torque=6.0, coulomb=0.3, viscous=0.2, rotor_inertia=0.02),
    "base_right": brake(4.0, delay=0.01, rise=0.02, coulomb=0.5),
}
STICKY = rubbing(0.6, breakaway=1.1, stribeck_speed=0.3)
SECOND: dict[str, tuple[str, dict[str, float], pl.Brakes, dict[str, float], Any]] = {
    "fivebar": ("fivebar", {"base_left": 3, "base_right": -2}, pl.Brakes(FIVEBAR), {}, None),
    "fivebar, sticky elbows": (
        "fivebar", {"base_left": -4, "base_right": -3},
        pl.Brakes({**FIVEBAR, "elbow_left": STICKY, "elbow_right": STICKY}, pl.safety.Chain(0.01)),
        {}, None,
    ),
    "fivebar, one weak brake": (
        "fivebar", {"base_left": 2, "base_right": 3},
        pl.Brakes({**FIVEBAR, "base_left": brake(1.0, static_torque=1.2, coulomb=0.4)}),
        {"base_left": 0.5}, ("tool0", 0.4, np.zeros(3), np.zeros((3, 3))),
    ),
    "palletizer": (
        "palletizer", {"base_yaw": 1, "shoulder": 0.7, "elbow": -1, "wrist": 1}, PALLETIZER,
        {"shoulder": 0.2, "elbow": 0.1},
        ("tool0", 40.0, np.array([0.1, 0.2, 0.05]), np.diag([1.0, 2.0, 1.5])),
    ),
    "delta": ("delta", {"arm_1": 3, "arm_2": -2, "arm_3": 4}, DELTA, {}, None),
    "bricard": ("bricard", {"joint_1": 2}, pl.Brakes({"joint_1": brake(10.0)}), {}, None),
    "sevenbar": (
        "sevenbar", {"joint_1": 2, "joint_4": -2},
        pl.Brakes({"joint_1": brake(60.0), "joint_4": brake(20.0), "joint_6": rubbing(3.0)}),
        {}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SECOND)
def test_a_second_program_stops_at_the_same_place(case: str) -> None:
    name, rates, brakes, pose, load = SECOND[case]
    one = robot(name)
    q, v = moving(one, rates, pose)
    payload = None if load is None else pl.Payload(load[1], load[2], load[3], load[0])
    stop = pl.stop(one, q, v, brakes=brakes, payload=payload)
    friction = Friction(one, brakes, brakes.chain)
    second = Stop(Machine(one, brakes, payload=load), friction, one.actuated)
    t, end = second.run(q, v, 5.0)
    assert stop.outcome == "stopped"
    assert max(joint.time for joint in stop.joints.values()) == pytest.approx(t, abs=1e-6)
    np.testing.assert_allclose(
        one.difference(stop.run.q[-1], end)[at(one, *one.actuated)], 0.0, atol=1e-7
    )


def test_joints_without_entry_have_the_friction_of_the_file() -> None:
    """The right crank of the five-bar has 0.3 N m and 0.2 N m s in its URDF."""
    one, none = robot("fivebar"), np.zeros(3)
    q, v = moving(one, {"base_left": 2.0, "base_right": -3.0})
    brakes = pl.Brakes({"base_left": brake(3.0)})
    stop = pl.stop(one, q, v, brakes=brakes, gravity=none)
    second = Stop(Machine(one, brakes, none), Friction(one, brakes, brakes.chain))
    t, end = second.run(q, v, 5.0)
    assert stop.outcome == "stopped" and stop.stopping_time == pytest.approx(t, abs=1e-3)
    np.testing.assert_allclose(stop.run.q[-1], end, atol=1e-6)


# -- the same robot, described otherwise -------------------------------------------------------

BRAKED = pl.Brakes({"crank": brake(4.0, coulomb=0.1, viscous=0.3), "rocker": rubbing(0.3)})


def elsewhere(table: Table) -> Table:
    """The robot turned about the vertical and shifted, with its masses."""
    placement = pin.SE3(pin.exp3(0.7 * m.Z), np.array([1.0, -2.0, 0.3]))
    table = ll.moved(table, placement)
    for entry in table["bodies"]:
        entry["com"] = placement.act(entry["com"])
        entry["inertia"] = placement.rotation @ entry["inertia"] @ placement.rotation.T
    return table


@pytest.mark.parametrize(
    "table",
    [
        m.four_bar(),
        ll.marked(m.four_bar(), "elbow"),
        ll.turned_over(m.four_bar(), "elbow", "close"),
        elsewhere(m.four_bar()),
    ],
    ids=["same", "other cut", "turned over", "elsewhere"],
)
@pytest.mark.parametrize("reduced", [False, True])
def test_the_description_makes_no_difference(table: Table, reduced: bool) -> None:
    """Cut joints, redundant rows, directions and places of joints are ways to say the same."""
    slides = {"crank": 4.1, "rocker": 0.3}
    one = pl.regularize(build(table)) if reduced else build(table)
    q, v = moving(one, {"crank": 3.0})
    stop = pl.stop(one, q, v, brakes=BRAKED)
    rest = FourBar().stop(3.0, slides, slides, 0.3)
    assert stop.joints["crank"].angle == pytest.approx(rest.angle - m.START, abs=1e-6)
    assert stop.joints["rocker"].travel == pytest.approx(rest.travels["rocker"], abs=1e-6)


@pytest.mark.parametrize("name", ["palletizer", "delta"])
def test_redundant_rows_make_no_difference(name: str) -> None:
    _, rates, brakes, pose, _ = SECOND[name]
    ends = []
    for one in (robot(name), regularized(name)):
        q, v = moving(one, rates, pose)
        ends.append(pl.stop(one, q, v, brakes=brakes).run.q[-1])
    apart = robot(name).difference(*ends)[at(robot(name), *robot(name).actuated)]
    assert np.abs(apart).max() < 1e-8


def test_absolute_coordinates_have_no_joint_to_brake() -> None:
    one = robot("four-bar").absolute()
    with pytest.raises(BadValue, match="'crank' closes a loop"):
        pl.stop(one, one.neutral, np.zeros(one.nv), brakes=BRAKED)


# -- idle motions ------------------------------------------------------------------------------


def test_rods_may_spin_on_while_the_delta_stands() -> None:
    """Its rods turn about their own axes for ever; platform and arms do not feel it."""
    one = robot("delta")
    _, rates, brakes, _, _ = SECOND["delta"]
    q, v = moving(one, rates)
    quiet = pl.stop(one, q, v, brakes=brakes)
    free, arms = Machine(one).free(q), at(one, *one.actuated)
    _, _, rest = np.linalg.svd(free[arms])
    spin = free @ rest[len(arms) :].T @ np.linspace(-4.0, 6.0, free.shape[1] - len(arms))
    stop = pl.stop(one, q, v + spin, brakes=brakes)
    assert stop.outcome == "stopped"
    assert np.abs(stop.run.v[-1]).max() > 1.0
    assert stop.stopping_time == pytest.approx(quiet.stopping_time, abs=1e-6)
    assert all(stop.joints[name].state == "held" for name in one.actuated)
    after = stop.run.t > stop.stopping_time
    assert np.all(stop.run.v[after][:, arms] == 0.0)
    point = stop.point("platform")
    assert point.speed[point.t > stop.stopping_time].max() < 1e-9
    np.testing.assert_allclose(point.path[-1], quiet.point("platform").path[-1], atol=1e-6)
    assert stop.ledger.kinetic_after == pytest.approx(
        Machine(one, DELTA).kinetic(stop.run.q[-1], stop.run.v[-1])
    )
    assert stop.ledger.relative_error < 1e-6


# -- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "joint", "outcome"),
    [
        ("delta", "arm_2", "does not hold"),
        ("palletizer", "shoulder", "does not hold"),
        ("palletizer", "base_yaw", "time-out"),
    ],
)
def test_a_missing_brake_is_named(name: str, joint: str, outcome: str) -> None:
    """What turns about the vertical is not pulled by gravity, but nothing stops it."""
    one = robot(name)
    _, rates, brakes, pose, _ = SECOND[name]
    brakes = brakes.missing(joint)
    loose = replace(brakes.joints[joint], coulomb=0.0, viscous=0.0)
    brakes = replace(brakes, joints={**brakes.joints, joint: loose})
    q, v = moving(one, rates, pose)
    stop = pl.stop(one, q, v, brakes=brakes, until=0.6)
    assert stop.outcome == outcome
    assert [n for n in one.actuated if stop.joints[n].state != "held"] == [joint]
    held = stop.holding.held[at(one, *one.actuated)]
    assert [n for n, ok in zip(one.actuated, held, strict=True) if not ok] == [joint]
    # What holding takes, by the balance of all motions that the loops leave.
    machine, last = Machine(one, brakes), stop.run.q[-1]
    N = machine.free(last)
    driven = at(one, *one.actuated)
    weights = N.T @ machine.bias(last, np.zeros(one.nv))
    load = np.linalg.lstsq(N[driven].T, weights, rcond=None)[0]
    scale = np.abs(load).max()
    np.testing.assert_allclose(stop.holding.load[driven], load, rtol=0, atol=1e-6 * scale)


def test_a_joint_without_entry_is_not_braked() -> None:
    one = robot("fivebar")
    q, v = moving(one, {"base_left": 2.0, "base_right": -1.0})
    stop = pl.stop(one, q, v, brakes=pl.Brakes({"base_left": brake(8.0)}), until=0.5)
    assert stop.outcome == "does not hold"
    assert stop.joints["base_left"].state == "held"
    assert stop.holding.held[at(one, "base_left", "base_right")].tolist() == [True, False]
