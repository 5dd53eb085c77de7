"""Massless links between the joints of a loop: Modelica's Fourbar1 (`MultiBody.Examples.Loops`).

Its coupler hangs on a universal joint and on a spherical one, both made of hinges one after the
other with massless links between them. The oracle knows three bodies and one angle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

import pinloop as pl

Array = NDArray[np.float64]

TIP, SLIDER = np.array((0.0, 0.5, 0.1)), np.array((1.0, 0.2, 0.0))
"""End of the crank and of the slider's arm."""
G, SPEED = 9.81, 5.235987755982989
"""Gravity along -y [m/s^2], and Modelica's initial speed of the crank, 300 deg/s [rad/s]."""
RODS = {
    "crank": (np.zeros(3), TIP),
    "arm": (np.array((1.0, 0.0, 0.0)), SLIDER),
    "coupler": (SLIDER, TIP),
}


def rod(start: Array, end: Array) -> tuple[float, Array, Array]:
    """Mass, centre and inertia of a steel cylinder of 0.1 m."""
    axis, radius = end - start, 0.05
    length = float(np.linalg.norm(axis))
    mass = 7700 * np.pi * radius**2 * length
    along, across = mass * radius**2 / 2, mass * (3 * radius**2 + length**2) / 12
    z = axis / length
    inertia = across * np.eye(3) + (along - across) * np.outer(z, z)
    return mass, (start + end) / 2, inertia


def table(*, light: float = 0.0, cut: str = "") -> dict[str, Any]:
    """The mechanism; ``light`` is the mass and moment of what is massless."""
    bodies: list[dict[str, Any]] = []
    for name, ends in RODS.items():
        mass, com, inertia = rod(*ends)
        bodies.append({"name": name, "mass": mass, "com": com, "inertia": inertia})
    for name, at in (("x", SLIDER), ("y", TIP), ("z", TIP)):
        mass_of = {"mass": light, "com": at, "inertia": light * np.eye(3)} if light else {}
        bodies.append({"name": name, **mass_of})

    def hinge(name: str, parent: str, child: str, axis: list[int], point: Array) -> dict[str, Any]:
        ends = {"parent": parent, "child": child, "axis": axis, "point": point}
        return {"name": name, "pair": "revolute", **ends, "cut": name == cut}

    slide = {
        "name": "j2",
        "pair": "prismatic",
        "parent": "ground",
        "child": "arm",
        "axis": [1, 0, 0],
    }
    joints = [
        hinge("j1", "ground", "crank", [1, 0, 0], np.zeros(3)),
        {**slide, "cut": cut == "j2"},
        hinge("rev", "arm", "x", [0, 1, 0], SLIDER),
        hinge("rev1", "x", "coupler", [0, 0, 1], SLIDER),
        hinge("j3", "crank", "y", [1, 0, 0], TIP),
        hinge("j4", "y", "z", [0, 1, 0], TIP),
        hinge("j5", "z", "coupler", [0, 0, 1], TIP),
    ]
    return {"name": "fourbar1", "bodies": bodies, "joints": joints, "gravity": [0, -G, 0]}


def turned(axis: int, angle: float) -> Array:
    K = np.cross(np.eye(3), np.eye(3)[axis])
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


def rods_at(angle: float) -> list[tuple[Array, Array]]:
    """Rotation and centre of the three rods at an angle of the crank, by trigonometry."""
    R = turned(0, angle)
    tip = R @ TIP
    across = tip[1:] - SLIDER[1:]
    length2 = float((TIP - SLIDER) @ (TIP - SLIDER))
    slide = float(np.sqrt(length2 - across @ across)) - 1.0
    d = tip - SLIDER - (slide, 0.0, 0.0)
    # d = Ry(a) Rz(b) c: b from the component along y, then a in the plane across y.
    c = TIP - SLIDER
    flat = float(np.hypot(c[0], c[1]))
    b = min((np.arctan2(c[0], c[1]) + sign * np.arccos(d[1] / flat) for sign in (1, -1)), key=abs)
    e = turned(2, b) @ c
    a = np.arctan2(d[0], d[2]) - np.arctan2(e[0], e[2])
    coupler = turned(1, a) @ turned(2, b)
    np.testing.assert_allclose(coupler @ c, d, atol=1e-12)
    move = np.array((slide, 0.0, 0.0))
    return [
        (R, R @ TIP / 2),
        (np.eye(3), (RODS["arm"][0] + SLIDER) / 2 + move),
        (coupler, SLIDER + move + coupler @ c / 2),
    ]


def inertia_and_height(angle: float) -> tuple[float, float]:
    """Generalised inertia of the crank's angle [kg m^2] and potential energy [J]."""
    h = 1e-5
    before, now, after = (rods_at(angle + step) for step in (-h, 0.0, h))
    inertia = height = 0.0
    for (R0, p0), (R, p), (R1, p1), ends in zip(before, now, after, RODS.values(), strict=True):
        mass, _, own = rod(*ends)
        v = (p1 - p0) / (2 * h)
        W = R.T @ (R1 - R0) / (2 * h)
        w = np.array((W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1])) / 2
        inertia += mass * float(v @ v) + float(w @ own @ w)
        height += mass * G * float(p[1])
    return inertia, height


def start(robot: pl.Mechanism) -> tuple[Array, Array]:
    q = pl.assemble(robot)
    return q, pl.consistent_velocity(robot, q, {"j1": SPEED})


FORMULATIONS: list[Any] = [pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()]


def test_the_tree_is_cut_where_bodies_with_mass_are() -> None:
    robot = pl.from_screws(table())
    (cut,) = robot.tree.cuts
    assert {cut.parent, cut.child} <= {"ground", *RODS}
    driven = pl.from_screws({**table(), "actuated": ["j1"]})
    assert driven.tree.cuts[0].name == "j2"


def test_a_joint_that_needs_its_coordinate_stays_in_the_tree() -> None:
    data = table()
    assert pl.from_screws(data).tree.cuts[0].name == "j2"
    data["joints"][1]["limits"] = {"lower": -0.5, "upper": 0.5}
    limited = pl.from_screws(data)
    assert limited.tree.cuts[0].name == "j1" and limited.joints[-1] != "j1"
    del data["joints"][1]["limits"]
    data["couplings"] = [{"name": "gear", "joint": "j2", "source": "rev", "ratio": 0.1}]
    assert pl.from_screws(data).tree.cuts[0].name == "j1"


def test_the_chosen_cut_is_part_of_the_description(tmp_path: Path) -> None:
    robot = pl.from_screws(table())
    again = pl.load(robot.save(tmp_path / "fourbar1.urdf"))
    assert again.joints == robot.joints
    loaded = robot.with_payload("z", 1.0, inertia=np.eye(3))
    assert loaded.joints == robot.joints


@pytest.mark.parametrize("cut", ["", "rev", "rev1", "j3", "j4", "j5"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_it_moves_as_three_rods_do(cut: str, formulation: Any) -> None:
    """Whatever joint is cut, though the mass matrix of most of these trees is singular."""
    robot = pl.load(table(cut=cut), kinematics_only=True)
    q, v = start(robot)
    run = pl.simulate(robot, q, v, until=0.2, formulation=formulation)
    crank = robot.coordinates("j1")
    at, rate = float(run.q[-1][crank.q][0]), float(run.v[-1][crank.v][0])
    inertia, height = inertia_and_height(0.0)
    total = 0.5 * inertia * SPEED**2 + height
    inertia, height = inertia_and_height(at)
    np.testing.assert_allclose(0.5 * inertia * rate**2 + height, total, rtol=1e-7)

    def seconds_per_radian(angle: float) -> float:
        inertia, height = inertia_and_height(angle)
        return float(np.sqrt(inertia / (2 * (total - height))))

    np.testing.assert_allclose(quad(seconds_per_radian, 0.0, at, epsrel=1e-9)[0], 0.2, rtol=1e-7)


@pytest.mark.parametrize("cut", ["", "rev1", "j4", "j5"])
def test_all_formulations_agree_with_one_dense_system(cut: str) -> None:
    robot = pl.load(table(cut=cut), kinematics_only=True)
    q, v = start(robot)
    q = pl.simulate(robot, q, v, until=0.1).q[-1]
    v = pl.consistent_velocity(robot, q, {"j1": 3.0})
    motions = [
        pl.EquationsOfMotion(robot, formulation=f, forces=[pl.Torque("j1", 40.0)])
        for f in FORMULATIONS
    ]
    M, f, J, gamma, _ = motions[0].system(0.0, q, v)
    zero = np.zeros((len(J), len(J)))
    dense = np.linalg.lstsq(
        np.block([[M, -J.T], [J, zero]]), np.concatenate([f, -gamma]), rcond=1e-13
    )[0]
    for motion in (one.motion(0.0, q, v) for one in motions):
        size = np.abs(dense).max()
        np.testing.assert_allclose(motion.a, dense[: robot.nv], atol=1e-9 * size)
        np.testing.assert_allclose(motion.multipliers, dense[robot.nv :], atol=1e-9 * size)


@pytest.mark.parametrize("cut", ["", "j4"])
def test_small_masses_change_little(cut: str) -> None:
    ends = []
    for light in (0.0, 1e-6):
        robot = pl.load(table(cut=cut, light=light), kinematics_only=True)
        run = pl.simulate(robot, *start(robot), until=0.2)
        ends.append(float(run.q[-1][robot.coordinates("j1").q][0]))
    assert 0 < abs(ends[1] - ends[0]) < 1e-5


@pytest.mark.parametrize("cut", ["", "rev", "j4"])
def test_locks_and_stops(cut: str) -> None:
    """The crank alone stops the rest: what it loses is all the energy of motion."""
    robot = pl.load({**table(cut=cut), "actuated": ["j1"]}, kinematics_only=True)
    q, v = start(robot)
    run = pl.simulate(robot, q, v, until=0.1, events=[pl.lock("j1", at=0.05)])
    angle = float(run.q[-1][robot.coordinates("j1").q][0])
    inertia, height = inertia_and_height(0.0)
    total = 0.5 * inertia * SPEED**2 + height
    np.testing.assert_allclose(
        run.transitions[0].energy_loss, total - inertia_and_height(angle)[1], rtol=1e-6
    )
    reference = pl.load({**table(light=1e-9), "actuated": ["j1"]})
    brakes = pl.Brakes.template(reference)
    stop = pl.stop(robot, q, v, brakes=brakes)
    assert stop.outcome == "stopped"
    expected = pl.stop(reference, *start(reference), brakes=brakes)
    np.testing.assert_allclose(stop.stopping_time, expected.stopping_time, rtol=1e-4)


def ring(rng: np.random.Generator) -> dict[str, Any]:
    """A ring of hinges, in a plane or in space, with bodies that are massless, points, or whole."""
    flat = bool(rng.random() < 0.5)
    count = int(rng.integers(4, 6) if flat else rng.integers(7, 10))
    points = rng.uniform(-1, 1, (count, 3)) * (1, 1, 0 if flat else 1)
    light = set(rng.choice(count - 1, int(rng.integers(1, count - 1)), replace=False).tolist())
    bodies: list[dict[str, Any]] = []
    for k in range(count - 1):
        A = rng.normal(size=(3, 3))
        solid = {"mass": rng.uniform(0.5, 2), "com": rng.uniform(-1, 1, 3)}
        if rng.random() < 0.7:
            moment = np.diag((0, 0, 0.3)) if flat else np.trace(A @ A.T) * np.eye(3) - A @ A.T
            solid["inertia"] = moment
        bodies.append({"name": f"b{k}", **({} if k in light else solid)})
    cut = int(rng.integers(0, count))
    names = ["ground", *(body["name"] for body in bodies)]
    joints = [
        {
            "name": f"j{k}",
            "pair": "revolute",
            "parent": names[k] if k < count - 1 else "ground",
            "child": names[(k + 1) % count] if k < count - 1 else names[k],
            "axis": (0, 0, 1) if flat else rng.normal(size=3),
            "point": points[k],
            "cut": k == cut,
        }
        for k in range(count)
    ]
    return {"bodies": bodies, "joints": joints}


def test_random_rings_move_if_what_the_loop_allows_moves_mass() -> None:
    refused = moved = singular = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        robot = pl.load(ring(rng), kinematics_only=True)
        q = robot.neutral
        equations = pl.EquationsOfMotion(robot)
        M = equations.mass(q)
        _, values, V = np.linalg.svd(equations.terms(0.0, q, np.zeros(robot.nv))[0])
        free = V[int(np.sum(values > 1e-9 * values[0])) :].T
        v = free @ rng.normal(size=free.shape[1])
        J, _, gamma = equations.terms(0.0, q, v)
        f = -np.array(pin.nonLinearEffects(robot.model, robot.model.createData(), q, v))
        least, *_, most = np.linalg.eigvalsh(free.T @ M @ free)[[0, -1]]
        for formulation in FORMULATIONS:
            other = pl.EquationsOfMotion(robot, formulation=formulation)
            if most == 0 or least < 1e-12 * most:
                with pytest.raises(pl.SingularMass):
                    other.acceleration(0.0, q, v)
                refused += 1
                continue
            zero = np.zeros((len(J), len(J)))
            dense = np.linalg.lstsq(
                np.block([[M, -J.T], [J, zero]]), np.concatenate([f, -gamma]), rcond=1e-13
            )[0][: robot.nv]
            a = other.acceleration(0.0, q, v)
            np.testing.assert_allclose(a, dense, atol=1e-8 * max(1.0, np.abs(dense).max()))
            moved += 1
            singular += bool(np.linalg.eigvalsh(M)[0] < 1e-13 * np.trace(M))
    assert min(refused, moved - singular, singular) > 8


def test_what_nothing_holds_is_still_refused() -> None:
    """A massless link on a hinge of its own, beside the loop."""
    data = table()
    data["bodies"].append({"name": "loose"})
    data["joints"].append(
        {"name": "free", "pair": "revolute", "parent": "crank", "child": "loose", "axis": [0, 0, 1],
         "point": [0, 0, 0]}
    )  # fmt: skip
    robot = pl.load(data, kinematics_only=True)
    with pytest.raises(pl.PinloopError, match="mass"):
        pl.simulate(robot, *start(robot), until=0.1)
