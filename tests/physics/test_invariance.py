"""Answers that may not depend on how one asks: coordinates, rows, methods, units, frames, order."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.simulation.analysis import Reaction

from .. import linkages as ll
from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array, Table
from ..states import SMALL, carried, moving, robot

SPATIAL = [
    "four-bar",
    "rssr",
    "double-cardan",
    "spherical-four-bar",
    "tip-on-plane",
    "rod-pendulums",
]
FORMULATIONS: tuple[Any, ...] = (pl.Augmented(), pl.Projected(), pl.Voronets())
every_machine = pytest.mark.parametrize("name", SPATIAL)


def poses(run: pl.Trajectory, bodies: tuple[str, ...]) -> Array:
    """Homogeneous matrices of bodies at the end of a run."""
    return np.array([run.robot.placement(run.q[-1], body).homogeneous for body in bodies])


def reference(name: str, until: float = 0.25) -> pl.Trajectory:
    machine = robot(name)
    q, v = moving(machine, 1)
    return pl.simulate(
        machine, q, v, until=until, method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10)
    )


# -- how the motion is computed ---------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
def test_absolute_coordinates_give_the_same_motion(name: str, space: Any) -> None:
    here = reference(name)
    machine = here.robot.absolute(space)
    run = pl.simulate(machine, *carried(here.robot, here.q[0], here.v[0], machine), until=0.25)
    bodies = here.robot.bodies
    np.testing.assert_allclose(poses(run, bodies), poses(here, bodies), atol=1e-6)
    np.testing.assert_allclose(run.energy().kinetic[-1], here.energy().kinetic[-1], rtol=1e-5)
    assert run.closure().max() < 1e-10


OPTIONS: dict[str, dict[str, Any]] = {
    "all rows": {"regularization": False},
    "projected": {"formulation": pl.Projected()},
    "voronets": {"formulation": pl.Voronets()},
    "voronets, all rows": {"formulation": pl.Voronets(), "regularization": False},
    "mass": {"stabilization": pl.Projection(coordinates="mass")},
    "drifting": {"stabilization": None},
    "bs32": {"method": pl.MuntheKaas("bs32", rtol=1e-8)},
    "dopri5": {"method": pl.MuntheKaas("dopri5")},
    "rk4": {"method": pl.MuntheKaas("rk4", step=2.5e-3)},
    "heun": {"method": pl.MuntheKaas("heun", step=5e-4)},
    "idle row": {"rows": [pl.constraints.Pfaffian("none", lambda q: np.zeros((2, 3)))]},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", ["four-bar", "rssr", "spherical-four-bar"])
def test_all_ways_lead_to_the_same_motion(name: str, option: str) -> None:
    here = reference(name)
    options = dict(OPTIONS[option])
    if option == "idle row":
        nv = here.robot.nv
        options["rows"] = [pl.constraints.Pfaffian("none", lambda q: np.zeros((2, nv)))]
    run = pl.simulate(here.robot, here.q[0], here.v[0], until=0.25, **options)
    gap = here.robot.difference(run.q[-1], here.q[-1])
    np.testing.assert_allclose(gap, 0, atol=2e-5 if option == "heun" else 1e-6)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "goldberg", "palletizer", "double-pendulum"])
def test_time_may_run_backwards(name: str) -> None:
    """Turn all velocities round and the robot goes back to where it came from."""
    machine = robot(name)
    q, v = moving(machine, 2)
    there = pl.simulate(machine, q, v, until=0.3, losses=False)
    back = pl.simulate(machine, there.q[-1], -there.v[-1], until=0.3, losses=False)
    np.testing.assert_allclose(machine.difference(back.q[-1], q), 0, atol=1e-6)
    np.testing.assert_allclose(back.v[-1], -v, atol=1e-5)


def test_a_run_may_be_continued() -> None:
    machine = robot("rssr")
    q, v = moving(machine, 3)
    whole = pl.simulate(machine, q, v, until=0.4)
    first = pl.simulate(machine, q, v, until=0.2)
    second = pl.simulate(machine, first.q[-1], first.v[-1], start=0.2, until=0.4)
    np.testing.assert_allclose(machine.difference(second.q[-1], whole.q[-1]), 0, atol=1e-7)


# -- how the machine is described -------------------------------------------------------------


def placed(entries: Table, T: Any, size: float = 1.0) -> Table:
    """The table grown by ``size`` about the origin, then moved, masses and gravity with it."""
    found = ll.moved(entries, T, size)
    for body in found["bodies"]:
        body["com"] = T.act(size * np.asarray(body["com"]))
        body["inertia"] = size**2 * T.rotation @ np.asarray(body["inertia"]) @ T.rotation.T
    found["gravity"] = list(size * T.rotation @ np.asarray(entries.get("gravity", (0, 0, -9.81))))
    return found


EVERYWHERE = [
    "four-bar",
    "slider-crank",
    "rssr",
    "screw-jack",
    "tip-on-plane",
    "bennett",
    "rod-pendulums",
]


def motion(machine: pl.Mechanism, v: Array, **options: Any) -> pl.Trajectory:
    """From the reference configuration."""
    return pl.simulate(machine, machine.neutral, v, until=0.3, **options)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_machine_may_stand_anywhere(name: str) -> None:
    """Moved and turned with its gravity; joints keep their coordinates, ball joints their axes."""
    here = robot(name)
    T = hand.random_se3(np.random.default_rng(4), 3.0)
    there = tables.build(placed(SMALL[name](), T))
    v = np.zeros(here.nv) if name == "tip-on-plane" else moving(here, 5)[1] * 0
    one, other = motion(here, v), motion(there, v)
    assert np.abs(one.v[-1]).max() > 1e-2
    for body in here.bodies:
        expected = T * here.placement(one.q[-1], body) * T.inverse()
        found = there.placement(other.q[-1], body)
        np.testing.assert_allclose(found.homogeneous, expected.homogeneous, atol=1e-6)


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("method", [pl.MuntheKaas(), pl.MuntheKaas("dopri5")])
def test_the_unit_of_length_does_not_matter(name: str, method: pl.MuntheKaas) -> None:
    """In millimetres: lengths and linear rates times 1000, the same angles, steps and torques."""
    here = robot(name)
    there = tables.build(placed(SMALL[name](), pin.SE3.Identity(), 1e3))
    assert there.length == pytest.approx(1e3 * here.length)
    unit = np.where(here.is_translation, 1e3, 1.0)
    J = pl.Constraints(here).jacobian(here.neutral)
    v = np.linalg.svd(J)[2][-1]
    one, other = motion(here, v, method=method), motion(there, v * unit, method=method)
    # The same sizes of everything that counts: so the control takes the same steps. But a screw
    # jack accelerates evenly, and the error of a method of eighth order is nothing but rounding.
    assert len(one.t) == len(other.t)
    if (name, method.name) != ("screw-jack", "dop853"):
        np.testing.assert_allclose(other.t, one.t, atol=1e-7)
    np.testing.assert_allclose(
        there.difference(there.neutral, other.q[-1]) / unit,
        here.difference(here.neutral, one.q[-1]),
        atol=1e-7,
    )
    loop = here.loops[0].name
    forces = [run.reactions(loop) for run in (one, other)]
    assert all(isinstance(found, Reaction) for found in forces)
    metres, millimetres = forces
    assert isinstance(metres, Reaction) and isinstance(millimetres, Reaction)
    np.testing.assert_array_equal(metres.determined, millimetres.determined)
    size = np.abs(metres.force).max()
    np.testing.assert_allclose(millimetres.force / 1e3, metres.force, atol=1e-5 * size)
    np.testing.assert_allclose(millimetres.torque / 1e6, metres.torque, atol=1e-5 * size)
    np.testing.assert_allclose(other.energy().total / 1e6, one.energy().total, rtol=1e-6, atol=1e-7)


CUTS = {
    "four-bar": ("crank", "elbow", "rocker", "close"),
    "rssr": ("ball", "close", "rocker"),
    "bennett": ("j1", "j2", "j4"),
}


@pytest.mark.parametrize(("name", "cut"), [(n, cut) for n, cuts in CUTS.items() for cut in cuts])
def test_any_joint_may_be_cut(name: str, cut: str) -> None:
    """The same bodies move alike; ends of the cut joint may be exchanged, too."""
    here = robot(name)
    entries = SMALL[name]()
    one = pl.simulate(here, here.neutral, until=0.3)
    for table in (ll.marked(entries, cut), ll.turned_over(ll.marked(entries, cut), cut)):
        there = tables.build(table)
        other = pl.simulate(there, there.neutral, until=0.3)
        for body in here.bodies:
            np.testing.assert_allclose(
                there.placement(other.q[-1], body).homogeneous,
                here.placement(one.q[-1], body).homogeneous,
                atol=1e-6,
            )


def test_the_order_of_bodies_and_joints_does_not_matter() -> None:
    entries = m.rssr()
    shuffled = deepcopy(entries)
    shuffled["bodies"] = shuffled["bodies"][::-1]
    shuffled["joints"] = shuffled["joints"][::-1]
    here, there = tables.build(entries), tables.build(shuffled)
    one, other = (pl.simulate(machine, machine.neutral, until=0.3) for machine in (here, there))
    for joint in here.joints:
        mine, its = here.coordinates(joint).q, there.coordinates(joint).q
        np.testing.assert_allclose(other.q[-1][its], one.q[-1][mine], atol=1e-7)


# -- who looks at it --------------------------------------------------------------------------


def floating(gravity: bool) -> pl.Mechanism:
    return tables.build(ll.floating_four_bar() | ({} if gravity else {"gravity": [0, 0, 0]}))


@pytest.mark.parametrize("gravity", [False, True])
def test_steady_motion_of_the_observer_does_not_matter(gravity: bool) -> None:
    """Galilei: a push of the whole changes nothing inside."""
    machine = floating(gravity)
    q, v = moving(machine, 6)
    push = np.array([1.0, -2.0, 0.5])
    boosted = v.copy()
    boosted[:3] += machine.placement(q, "base").rotation.T @ push
    one, other = (pl.simulate(machine, q, rate, until=0.4) for rate in (v, boosted))
    for body in machine.bodies:
        a, b = one.placement(body)[-1], other.placement(body)[-1]
        np.testing.assert_allclose(b.rotation, a.rotation, atol=1e-6)
        np.testing.assert_allclose(b.translation, a.translation + 0.4 * push, atol=1e-6)


def test_in_free_fall_there_is_no_gravity_inside() -> None:
    """Einstein: the joints of a falling robot move as they do in space."""
    q, v = moving(floating(False), 7)
    weightless, falling = (
        pl.simulate(floating(gravity), q, v, until=0.4) for gravity in (False, True)
    )
    np.testing.assert_allclose(falling.q[-1][7:], weightless.q[-1][7:], atol=1e-6)
    drop = falling.q[-1][:3] - weightless.q[-1][:3]
    np.testing.assert_allclose(drop, [0, 0, -0.5 * 9.81 * 0.4**2], atol=1e-6)


# -- linkages that move against all counting ----------------------------------------------------

PARADOXICAL = ["bennett", "bricard", "goldberg"]
"""Off their manifold, as inside a step, their rows have more rank than on it."""


@pytest.mark.parametrize("name", PARADOXICAL)
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_paradoxical_linkages_with_any_formulation_and_step(name: str, formulation: Any) -> None:
    machine = robot(name)
    ends = []
    for method in (
        pl.MuntheKaas("rk4", step=0.01),
        pl.MuntheKaas(rtol=1e-5, atol=1e-5),
        pl.MuntheKaas(),
    ):
        run = pl.simulate(
            machine,
            machine.neutral,
            until=0.3,
            method=method,
            formulation=formulation,
            losses=False,
        )
        assert run.rejected <= 2
        assert np.abs(run.energy().error).max() < 2e-5 * run.energy().kinetic.max()
        ends.append(run.q[-1])
    assert np.abs(ends[-1]).max() > 0.1
    np.testing.assert_allclose(ends[0], ends[-1], atol=1e-6)
    np.testing.assert_allclose(ends[1], ends[-1], atol=1e-5)


@pytest.mark.parametrize("name", PARADOXICAL)
def test_paradoxical_linkages_move_as_their_geometry_says(name: str) -> None:
    """From rest, what has been lost in height is kinetic; the path is that of assembling alone."""
    machine = robot(name)
    run = pl.simulate(machine, machine.neutral, until=0.3, losses=False)
    drop = hand_potential(machine, run.q[0]) - hand_potential(machine, run.q[-1])
    assert run.energy().kinetic[-1] == pytest.approx(drop, rel=1e-6)
    lead = machine.joints[0]
    at = machine.coordinates(lead).q.start
    there = pl.assemble(machine, run.q[-1] + 1e-3, fixed={lead: run.q[-1][at]}, limits=False)
    np.testing.assert_allclose(there, run.q[-1], atol=1e-6)


def hand_potential(machine: pl.Mechanism, q: Array) -> float:
    data = machine.model.createData()
    return float(pin.computePotentialEnergy(machine.model, data, q))


# -- through configurations in which rows lose rank ---------------------------------------------


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("way", ["optimal", "mass"])
def test_a_flattening_parallelogram_passes_on_its_branch(formulation: Any, way: Any) -> None:
    """All bars come to lie in line five times; at speed the linkage goes on as it came.

    Where rows are redundant besides (a triple parallelogram), branches meet that no formulation of
    the index-1 system tells apart: a run may change the branch or stop there.
    """
    machine = robot("parallelogram")
    q, v = moving(machine, 1, speed=8.0)
    for method in (pl.MuntheKaas(), pl.MuntheKaas("rk4", step=0.01)):
        run = pl.simulate(
            machine,
            q,
            v,
            until=2.0,
            method=method,
            formulation=formulation,
            stabilization=pl.Projection(coordinates=way),
        )
        signs = np.sign(v)  # all cranks stay parallel
        turned = signs * (run.q - q)
        np.testing.assert_allclose(turned, np.tile(turned[:, :1], machine.nv), atol=1e-6)
        assert turned[-1, 0] > 4 * np.pi
        assert np.abs(run.energy().error).max() < 1e-5 * run.energy().kinetic.max()


@pytest.mark.parametrize("formulation", [None, *FORMULATIONS], ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("way", ["optimal", "mass"])
def test_no_luck_is_needed_to_pass_where_all_bars_are_in_line(formulation: Any, way: Any) -> None:
    """Where a step ends beside the flat pose is a matter of luck; that the run passes is none."""
    machine = robot("parallelogram")
    q, v = moving(machine, 1, speed=8.0)
    rng = np.random.default_rng(8)
    for tolerance in 1e-8 * rng.uniform(0.95, 1.05, 4):
        run = pl.simulate(
            machine,
            q,
            v * rng.uniform(0.99, 1.01),
            until=2.0,
            method=pl.MuntheKaas(rtol=tolerance),
            formulation=formulation,
            stabilization=pl.Projection(coordinates=way),
        )
        turned = np.sign(v) * (run.q - q)
        np.testing.assert_allclose(turned, np.tile(turned[:, :1], machine.nv), atol=1e-6)
        assert turned[-1, 0] > 4 * np.pi
        # It hops over the flat pose and does not feel its way there.
        assert run.rejected < 60


@pytest.mark.parametrize("seed", range(6))
def test_where_rounding_decides_the_run_stops(seed: int) -> None:
    """With the finest tolerances not every run passes; none leaves its branch unseen."""
    machine = robot("parallelogram")
    q, v = moving(machine, 1, speed=8.0)
    speed = 1 + 0.01 * np.random.default_rng(seed).uniform(-1, 1)
    method = pl.MuntheKaas(rtol=1e-10, atol=1e-10)
    try:
        run = pl.simulate(machine, q, v * speed, until=2.0, method=method)
    except pl.SimulationFailed as failure:
        assert "rounding decides which way it goes" in str(failure)
        run = failure.trajectory
    turned = np.sign(v) * (run.q - q)
    np.testing.assert_allclose(turned, np.tile(turned[:, :1], machine.nv), atol=1e-6)
