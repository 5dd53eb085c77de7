"""Accelerations and reactions by O-DCA, beyond its agreement with the other formulations.

Oracles: Pinocchio's articulated-body algorithm, dense systems, closed forms of pendulums, the same
robot described otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import align_z, make_pair
from pinloop.simulation.modes import ModalSystem

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..states import SMALL, assembled, close, dense, moving, one_body, robot
from .odca_equations import every_block, odca, push

every_small_robot = pytest.mark.parametrize("name", [*SMALL])


@every_small_robot
@pytest.mark.parametrize("block", [1, 3])
def test_blocks_of_any_size_give_the_same(name: str, block: int) -> None:
    """Against the dense system; reactions where they are unique."""
    machine = robot(name)
    q, v = moving(machine, 13)
    equations = odca(machine, block=block, forces=[push(machine)])
    J, _, gamma = equations.terms(0.1, q, v)
    bias = pin.rnea(machine.model, machine.model.createData(), q, v, np.zeros(machine.nv))
    f = equations.force(0.1, q, v) - bias
    a, lam = dense(hand.mass_matrix(machine, q), J, f, -gamma, equations.rows.scale)
    motion = equations.motion(0.1, q, v)
    close(motion.a, a, 1e-8)
    close(motion.multipliers, lam, 1e-7)


@pytest.mark.parametrize("block", [0, -3, 2.5])
def test_blocks_have_at_least_one_coordinate(block: Any) -> None:
    with pytest.raises(pl.BadValue, match="block="):
        pl.ODCA(block)


# -- locks, rotors, bodies without mass -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "locks"),
    [
        ("five-bar", ["m1"]),
        ("delta", None),
        ("stewart", None),
        ("every-pair", ["universal", "cylindrical", "free"]),
        (
            "every-pair",
            [
                pl.simulation.Locked("spherical", ("wx", "wz")),
                pl.simulation.Locked("planar", ("vy",)),
            ],
        ),
        ("ball-loop", None),
    ],
)
@every_block
def test_locks_take_coordinates_from_blocks_and_joints(name: str, locks: Any, block: int) -> None:
    """Accelerations and reactions of locks against the dense system."""
    machine = robot(name)
    mode = pl.Mode([machine.joints[0]] if locks is None else locks)
    q, v = assembled(machine, 6), np.zeros(machine.nv)
    system = ModalSystem(machine, forces=[push(machine)], formulation=pl.ODCA(block))
    equations = system.equations(mode)
    rng = np.random.default_rng(7)
    J = equations.terms(0.0, q, v)[0]
    v = rng.normal(size=machine.nv)
    v -= np.linalg.pinv(J, rcond=1e-9) @ (J @ v)
    J, _, gamma = equations.terms(0.0, q, v)
    bias = pin.rnea(machine.model, machine.model.createData(), q, v, np.zeros(machine.nv))
    f = equations.force(0.0, q, v) - bias
    a, lam = dense(hand.mass_matrix(machine, q), J, f, -gamma, equations.rows.scale)
    motion = equations.motion(0.0, q, v)
    close(motion.a, a, 1e-8)
    close(motion.multipliers, lam, 1e-8)
    assert not motion.a[equations.rows.locked].any()


def pendulum(armature: float) -> pl.Mechanism:
    """Rod of 2 kg, its centre at 0.5 m, 0.3 kg m^2 about it; angle from the horizontal."""
    body = Body("rod", 2.0, constant([0.5, 0, 0]), constant(np.diag([0.1, 0.3, 0.3])))
    turn = pin.SE3(pin.utils.rotate("x", np.pi / 2), np.zeros(3))
    hinge = Joint("hinge", make_pair("revolute"), GROUND, "rod", turn, turn, armature=(armature,))
    return build(Description("pendulum", (body,), (hinge,)))


@pytest.mark.parametrize("armature", [0.0, 1e-6, 0.7, 1e4])
def test_rotor_of_a_pendulum(armature: float) -> None:
    machine = pendulum(armature)
    inertia = 0.3 + 2.0 * 0.25 + armature
    a = odca(machine).acceleration(0.0, machine.neutral, np.zeros(1))
    np.testing.assert_allclose(np.abs(a), 2.0 * 9.81 * 0.5 / inertia, rtol=1e-10)


@pytest.mark.parametrize("armature", [0.0, 0.7])
def test_drive_of_a_pendulum_turns_its_rotor_too(armature: float) -> None:
    machine = pendulum(armature)
    inertia = 0.3 + 2.0 * 0.25 + armature
    weight = inertia * odca(machine).acceleration(0.0, machine.neutral, np.zeros(1))[0]
    row = pl.constraints.Prescribed("hinge", lambda t: (0.0, 0.0, 3.0))
    motion = odca(machine, rows=[row]).motion(0.0, machine.neutral, np.zeros(1))
    np.testing.assert_allclose(motion.a, [3.0], rtol=1e-12)
    np.testing.assert_allclose(motion.multipliers, [3.0 * inertia - weight], rtol=1e-11)


@pytest.mark.parametrize("name", ["delta", "six-axis-arm", "planar-3R", "every-pair"])
@every_block
def test_prescribed_accelerations_act_on_all_bodies(name: str, block: int) -> None:
    """Accelerations and drives against the dense system."""
    machine = robot(name)
    single = [one for one in machine.joints if machine.coordinates(one).nv == 1][:2]
    rows = [pl.constraints.Prescribed(one, lambda t: (0.0, 0.0, 4.0 - t)) for one in single]
    q, v = assembled(machine, 14), np.zeros(machine.nv)
    equations = odca(machine, block=block, rows=rows, forces=[push(machine)])
    J, _, gamma = equations.terms(0.5, q, v)
    bias = pin.rnea(machine.model, machine.model.createData(), q, v, v)
    f = equations.force(0.5, q, v) - bias
    a, lam = dense(hand.mass_matrix(machine, q), J, f, -gamma, equations.rows.scale)
    motion = equations.motion(0.5, q, v)
    np.testing.assert_allclose(motion.a[machine.coordinates(single[0]).v], 3.5, rtol=1e-9)
    close(motion.a, a, 1e-8)
    close(motion.multipliers, lam, 1e-7)


@every_block
def test_rotors_in_loops_and_under_locks(block: int) -> None:
    """Against the dense system."""
    plain = robot("five-bar").description
    rng = np.random.default_rng(8)
    joints = tuple(
        Joint(**(vars(joint) | {"armature": () if joint.cut else (float(rng.uniform(0.1, 2)),)}))
        for joint in plain.joints
    )
    machine = build(Description(**(vars(plain) | {"joints": joints})))
    assert np.all(machine.model.armature > 0)
    q, v = moving(machine, 9)
    for mode in (pl.Mode(), pl.Mode(["m1"])):
        system = ModalSystem(machine, forces=[push(machine)], formulation=pl.ODCA(block))
        equations = system.equations(mode)
        speed = np.zeros(machine.nv) if mode.locks else v
        J, _, gamma = equations.terms(0.0, q, speed)
        bias = pin.rnea(machine.model, machine.model.createData(), q, speed, 0 * speed)
        M = hand.mass_matrix(machine, q)  # armature included
        f = equations.force(0.0, q, speed) - bias
        a, lam = dense(M, J, f, -gamma, equations.rows.scale)
        motion = equations.motion(0.0, q, speed)
        close(motion.a, a, 1e-9)
        close(motion.multipliers, lam, 1e-9)


def shafts(cross: bool) -> pl.Mechanism:
    """Two bodies joined by a universal joint, or by two hinges on a cross without mass."""
    inertia, com = constant(np.diag([0.2, 0.3, 0.1])), constant([0.1, 0.2, 0.4])
    bodies = [Body("near", 1.5, com, inertia), Body("far", 1.5, com, inertia)]
    unit, up = pin.SE3.Identity(), pin.SE3(np.eye(3), np.array([0.0, 0.0, 1.0]))
    # The axis of a pair is z of its frames: a cyclic permutation of the axes makes it x.
    to_x = pin.SE3(np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), np.zeros(3))
    hinge = make_pair("revolute")
    joints = [Joint("base", hinge, GROUND, "near", to_x, to_x)]
    if cross:
        bodies.append(Body("cross"))
        joints += [
            Joint("one", hinge, "near", "cross", up, unit),
            Joint("two", hinge, "cross", "far", to_x, to_x),
        ]
    else:
        joints.append(Joint("uni", make_pair("universal"), "near", "far", up, unit))
    return build(Description("shafts", tuple(bodies), tuple(joints)))


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@every_block
def test_a_cross_without_mass_is_a_universal_joint(block: int) -> None:
    crossed, universal = shafts(True), shafts(False)
    rng = np.random.default_rng(10)
    for _ in range(3):
        q, v = rng.uniform(-1, 1, 3), rng.normal(size=3)
        forces = [pl.TorqueFunction(lambda t, q, v: np.array([1.0, -2.0, 0.5]))]
        a = [
            odca(one, block=block, forces=forces).acceleration(0.0, q, v)
            for one in (crossed, universal)
        ]
        close(a[0], a[1], 1e-10)
        M = pl.EquationsOfMotion(universal, forces=forces).acceleration(0.0, q, v)
        close(a[1], M, 1e-11)


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@every_block
def test_rows_between_coordinates_of_a_robot_with_a_cross_without_mass(block: int) -> None:
    crossed, universal = shafts(True), shafts(False)
    q, v = np.array([0.3, -0.5, 0.4]), np.array([1.0, 2.0, -1.0])
    rows = [pl.constraints.Pfaffian("tied", lambda q: [[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])]
    v = v - np.linalg.pinv(J := np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])) @ (J @ v)
    motions = [odca(one, block=block, rows=rows).motion(0.0, q, v) for one in (crossed, universal)]
    expected = pl.EquationsOfMotion(universal, rows=rows).motion(0.0, q, v)
    assert np.abs(expected.a).max() > 0.1
    for motion in motions:
        close(motion.a, expected.a, 1e-10)
        close(motion.multipliers, expected.multipliers, 1e-10)


@every_block
def test_what_moves_without_inertia_is_refused(block: int) -> None:
    unit = pin.SE3.Identity()
    solid = Body("cart", 1.0, constant(np.zeros(3)), constant(np.eye(3)))
    slide = make_pair("prismatic")
    slides = (
        Joint("x", slide, GROUND, "cart", unit, unit),
        Joint("y", slide, "cart", "ghost", unit, unit),
    )
    ghost = build(Description("ghost", (solid, Body("ghost")), slides), kinematics_only=True)
    with pytest.raises(pl.SingularMass, match="without mass"):
        odca(ghost, block=block).acceleration(0.0, np.zeros(2), np.zeros(2))
    ball = one_body("spherical", coordinates="zyx")
    level, upright = np.array([0.1, 0.3, 0.2]), np.array([0.1, np.pi / 2, 0.2])
    np.testing.assert_allclose(
        odca(ball, block=block).acceleration(0.0, level, np.zeros(3)), 0.0, atol=1e-12
    )
    with pytest.raises(pl.SingularMass, match="same axis"):
        odca(ball, block=block).acceleration(0.0, upright, np.zeros(3))


def test_angles_are_good_up_to_where_they_fail() -> None:
    """Near the upright position the mass matrix of Euler angles is almost singular."""
    ball = one_body("spherical", coordinates="zyx")
    v = np.array([0.3, -0.2, 0.5])
    for distance in (1e-2, 1e-4):
        q = np.array([0.1, np.pi / 2 - distance, 0.2])
        expected = np.array(pin.aba(ball.model, ball.model.createData(), q, v, np.zeros(3)))
        close(odca(ball).acceleration(0.0, q, v), expected, 1e-5)
    with pytest.raises(pl.SingularMass, match="same axis"):
        odca(ball).acceleration(0.0, np.array([0.1, np.pi / 2 - 1e-7, 0.2]), v)


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
@every_block
def test_rows_still_count_right_beside_a_fold(distance: float, block: int) -> None:
    """A parallelogram moves as one, ``a = (x, -x, x)``, however close its bars are to one line."""
    machine = tables.build(m.parallelogram())
    v = np.array([3.0, -3.0, 3.0])
    folded = machine.configuration({"left": -1.1, "top": 1.1, "right": -1.1})
    q = machine.integrate(folded, distance / 3.0 * v)
    a = odca(machine, block=block).acceleration(0.0, q, v)
    close(a, a[0] * np.array([1.0, -1.0, 1.0]), 1e-6)


# -- long chains ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 16, 50])
@every_block
def test_open_chains_agree_with_the_articulated_body_algorithm(count: int, block: int) -> None:
    rng = np.random.default_rng(count)
    names = [GROUND] + [f"link {k}" for k in range(count)]
    joints = [
        tables.joint(f"j{k}", ("revolute", "spherical", "cylindrical")[k % 3], names[k],
                     names[k + 1], [0.3 * k, 0, 0], *([rng.normal(size=3)] if k % 3 != 1 else []))
        for k in range(count)
    ]  # fmt: skip
    machine = tables.build(tables.table("chain", *joints))
    q, v = hand.random_q(machine, rng, 0.7), rng.normal(size=machine.nv)
    tau = rng.normal(size=machine.nv)
    equations = odca(machine, block=block, forces=[pl.TorqueFunction(lambda t, q, v: tau)])
    expected = pin.aba(machine.model, machine.model.createData(), q, v, tau)
    close(equations.acceleration(0.0, q, v), np.array(expected), 1e-9)


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, -1]], ids=str)
@every_block
def test_variants_of_coordinates_agree_with_the_articulated_body_algorithm(
    axis: Any, block: int
) -> None:
    """Free in SO(3)xR3, then a hinge as cosine and sine, Euler angles, and a hinge again."""
    rng = np.random.default_rng(11)
    names = [GROUND, "a", "b", "c", "d"]
    kinds: tuple[tuple[str, Any], ...] = (
        ("free", "SO3xR3"), ("revolute", "circle"), ("spherical", "zyx"), ("revolute", "circle"),
    )  # fmt: skip
    along = pin.SE3(align_z(np.array(axis, float)), np.zeros(3))
    joints = tuple(
        Joint(f"j{k}", make_pair(pair), names[k], names[k + 1], hand.random_se3(rng), along,
              coordinates=variant)
        for k, (pair, variant) in enumerate(kinds)
    )  # fmt: skip
    bodies = tuple(tables.described(name) for name in names[1:])
    machine = build(Description("variants", bodies, joints))
    for _ in range(3):
        q, v = hand.random_q(machine, rng, 0.7), rng.normal(size=machine.nv)
        expected = pin.aba(machine.model, machine.model.createData(), q, v, np.zeros(machine.nv))
        close(odca(machine, block=block).acceleration(0.0, q, v), np.array(expected), 1e-9)


@every_block
def test_long_closed_chain_moves_as_its_loop_allows(block: int) -> None:
    """Rows hold, and no other acceleration that they allow has less constraint (Gauss)."""
    machine = tables.build(ring(40))
    q, v = machine.neutral, np.zeros(machine.nv)
    equations = odca(machine, block=block)
    a = equations.acceleration(0.0, q, v)
    M, f, J, gamma, _ = equations.system(0.0, q, v)
    size = float(np.abs(a).max())
    close(J @ a + gamma, np.zeros(len(J)), 1e-11, size)
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :]
    close(free @ (M @ a - f), np.zeros(len(free)), 1e-9, float(np.abs(f).max()))


def ring(count: int) -> tables.Table:
    """Bars in an arc from the ground to the ground."""
    corners = [m.planar(np.pi + np.pi * k / count, 1.0) for k in range(count + 1)]
    names = [GROUND, *[f"bar {k}" for k in range(count)], GROUND]
    return tables.table(
        "arc",
        *[tables.joint(f"h{k}", "revolute", names[k], names[k + 1], corner, m.TURN)
          for k, corner in enumerate(corners[:-1])],
        tables.joint("end", "revolute", GROUND, names[count], corners[-1], m.TURN, cut=True),
    )  # fmt: skip
