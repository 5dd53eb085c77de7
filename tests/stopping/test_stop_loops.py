"""Stops of robots with closed loops against closed forms, against a second program, against words.

What holds for every stop is asked of random ones in `test_stop_loops_random`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.errors import BadValue

from .. import linkages as ll
from .. import mechanisms as m
from ..states import regularized, robot
from ..tables import Array, Table, build
from .four_bar_by_hand import JOINTS, FourBar
from .loops_by_hand import Friction, Machine, closed, stuck
from .stops_by_hand import Stop

WEIGHTLESS = np.zeros(3)
PALLETIZER = "urdf/palletizer.brakes.yaml"
DELTA = "urdf/delta.brakes.yaml"


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.chdir(request.config.rootpath)


def brake(torque: float, **more: Any) -> pl.JointBrake:
    return pl.JointBrake(side="joint", dynamic_torque=torque, **more)


def rubbing(torque: float, **more: Any) -> pl.JointBrake:
    """A joint without brake, with dry friction."""
    return pl.JointBrake(kind="none", coulomb=torque, **more)


def moving(
    one: pl.Mechanism, rates: dict[str, float], pose: dict[str, float] | None = None
) -> tuple[Array, Array]:
    """An assembled configuration and a velocity."""
    q = pl.assemble(one, pose)
    return q, pl.consistent_velocity(one, q, rates)


def at(one: pl.Mechanism, *joints: str) -> list[int]:
    """Velocity coordinates of joints with one degree of freedom."""
    return [one.coordinates(joint).v.start for joint in joints]


# -- one degree of freedom: closed form --------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "slides", "holds", "viscous", "legs"),
    [
        (3.0, {"crank": 4.0}, {"crank": 4.0}, 0.3, 1),
        (-5.0, {"crank": 6.0}, {"crank": 7.0}, 0.0, 1),
        (3.0, {"crank": 2.0}, {"crank": 2.1}, 0.0, 3),
        (3.0, {"crank": 2.0, "elbow": 0.3, "rocker": 0.2}, {}, 0.1, 2),
        (-7.0, {"crank": 0.6, "elbow": 0.7, "rocker": 0.9}, {"elbow": 0.75}, 0.05, 1),
    ],
)
def test_the_four_bar_stops_as_its_reduced_equation_says(
    rate: float,
    slides: dict[str, float],
    holds: dict[str, float],
    viscous: float,
    legs: int,
) -> None:
    """Dry friction at all joints does work at all joints, and holds where the sum of all holds."""
    holds = slides | holds
    joints = {
        name: rubbing(slides[name], breakaway=holds[name], stribeck_speed=1e-9)
        for name in slides
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
SECOND: dict[str, tuple[str, dict[str, float], pl.Brakes | str, dict[str, float], Any]] = {
    "fivebar": ("fivebar", {"base_left": 3, "base_right": -2}, pl.Brakes(FIVEBAR), {}, None),
    "fivebar, sticky elbows": (
        "fivebar", {"base_left": -4, "base_right": -3},
        pl.Brakes({**FIVEBAR, "elbow_left": STICKY, "elbow_right": STICKY}, pl.Chain(0.01)),
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
    brakes = pl.Brakes.from_yaml(brakes) if isinstance(brakes, str) else brakes
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


# -- the same robot, described otherwise -------------------------------------------------------

BRAKED = pl.Brakes({"crank": brake(4.0, coulomb=0.1, viscous=0.3), "rocker": rubbing(0.3)})


@pytest.mark.parametrize(
    "table",
    [
        ll.marked(m.four_bar(), "close"),
        ll.marked(m.four_bar(), "elbow"),
        ll.turned_over(m.four_bar(), "elbow", "close"),
        ll.moved(m.four_bar(), pin.SE3(pin.exp3(0.7 * m.Z), np.array([1.0, -2.0, 0.0]))),
    ],
    ids=["same", "other cut", "turned over", "elsewhere"],
)
@pytest.mark.parametrize("reduced", [False, True])
def test_the_description_makes_no_difference(table: Table, reduced: bool) -> None:
    """Cut joints, redundant rows, directions and places of joints are ways to say the same."""
    slides = {"crank": 4.1, "rocker": 0.3}
    one = build(table)
    # Bodies are points in the world: where the table is moved, their masses are not.
    if "elsewhere" in one.name or not _same_masses(one):
        pytest.skip("masses have moved")
    one = pl.regularize(one) if reduced else one
    q, v = moving(one, {"crank": 3.0})
    stop = pl.stop(one, q, v, brakes=BRAKED)
    rest = FourBar().stop(3.0, slides, slides, 0.3)
    assert stop.joints["crank"].angle == pytest.approx(rest.angle - m.START, abs=1e-6)
    assert stop.joints["rocker"].travel == pytest.approx(rest.travels["rocker"], abs=1e-6)
