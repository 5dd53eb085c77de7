"""Tests of `pinloop.dynamics.inverse`: which velocity rows restrict positions.

Brackets and tensors are compared with flows: go along one motion, another, back along the first,
back along the second, and see where one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import Row
from pinloop.dynamics.inverse import group_bracket
from pinloop.model.description import GROUND

from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import SPACES, Space, allowed, assembled, close, one_body, rank, robot

PLANE = one_body("planar")
BODIES = {
    "SE3": one_body(),
    "SO3xR3": one_body(coordinates="SO3xR3"),
    "ball joint": one_body("spherical"),
    "plane": PLANE,
    "cylinder": one_body("cylindrical"),
    "cardan": one_body("universal"),
    "angles": one_body("spherical", coordinates="zyx"),
    "screw": one_body("schoenflies"),
}


def jacobian(machine: pl.Mechanism, rows: Sequence[Row], q: Array) -> Array:
    """All rows at rest, in their unit-free scale."""
    equations = pl.EquationsOfMotion(machine, rows=rows)
    J = equations.terms(0.0, q, np.zeros(machine.nv))[0]
    return np.asarray(equations.rows.scale[:, None] * J)


# -- the bracket of the group ---------------------------------------------------------------


def commutator(
    step: Callable[[Array, int, float], Array], machine: pl.Mechanism, q: Array
) -> Array:
    """``[x, y]`` from the flows: forward along x and y, back along x and y, divided by size^2.

    Args:
        step: moves a configuration along motion 0 or 1 for a signed time.
        machine: the robot.
        q: where to start.
    """

    def around(size: float) -> Array:
        p = q
        for which, time in ((0, size), (1, size), (0, -size), (1, -size)):
            p = step(p, which, time)
        return machine.difference(q, p) / size**2

    # Errors of first order change their sign with the size; Richardson removes the second order.
    def even(size: float) -> Array:
        return 0.5 * (around(size) + around(-size))

    return np.asarray((4 * even(0.01) - even(0.02)) / 3)


@pytest.mark.parametrize("case", BODIES)
def test_group_bracket_is_where_four_flows_lead(case: str) -> None:
    machine = BODIES[case]
    rng = np.random.default_rng(1)
    q = hand.random_q(machine, rng, 1.0)
    for _ in range(3):
        motions = rng.normal(size=(2, machine.nv))
        expected = commutator(
            lambda p, k, t, motions=motions: machine.integrate(p, t * motions[k]),  # type: ignore[misc]
            machine, q,
        )  # fmt: skip
        close(group_bracket(machine, *motions), expected, 1e-6)


def test_brackets_by_hand() -> None:
    """SO(3): cross product; SE(3): the bracket of twists; SO(3) x R^3: part by part."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 6))
    turn = np.cross(x[3:], y[3:])
    shift = np.cross(x[3:], y[:3]) + np.cross(x[:3], y[3:])
    close(group_bracket(BODIES["ball joint"], x[3:], y[3:]), turn, 1e-9)
    close(group_bracket(BODIES["SE3"], x, y), np.r_[shift, turn], 1e-9)
    close(group_bracket(BODIES["SO3xR3"], x, y), np.r_[0, 0, 0, turn], 1e-9)
    close(group_bracket(robot("six_axis_arm"), x, y), np.zeros(6), 1e-12)
    close(group_bracket(PLANE, np.array([0.0, 0, 1]), np.array([1.0, 0, 0])), [0, 1, 0], 1e-9)


# -- the tensor -----------------------------------------------------------------------------


def tensor_from_flows(
    machine: pl.Mechanism, rows: Sequence[Row], q: Array, at: pl.dynamics.Holonomy
) -> Array:
    """``A_ij = -J [X_i, X_j]`` for fields X of allowed motions: a cyclic way opens the rows."""

    def rates(p: Array, motion: Array) -> Array:
        free = allowed(jacobian(machine, rows, p))
        return np.asarray(free @ (free.T @ motion))

    def flow(p: Array, motion: Array, time: float) -> Array:
        """Three stages of Heun's third-order rule on the manifold, in two steps."""
        for _ in range(2):
            h = time / 2
            k1 = rates(p, motion)
            k2 = rates(machine.integrate(p, h / 2 * k1), motion)
            k2 = k2 + h / 4 * group_bracket(machine, k1, k2)  # pulled back to p: dexpinv
            k3 = rates(machine.integrate(p, h * (2 * k2 - k1)), motion)
            psi = h * (2 * k2 - k1)
            k3 = k3 + 0.5 * group_bracket(machine, psi, k3)
            p = machine.integrate(p, h * (k1 + 4 * k2 + k3) / 6)
        return p

    J, dof = jacobian(machine, rows, q), at.motions.shape[1]
    found = np.zeros((len(J), dof, dof))
    for i in range(dof):
        for j in range(i):
            pair = (at.motions[:, i], at.motions[:, j])
            bracket = commutator(
                lambda p, k, t, pair=pair: flow(p, pair[k], t),  # type: ignore[misc]
                machine, q,
            )  # fmt: skip
            found[:, i, j], found[:, j, i] = -J @ bracket, J @ bracket
    return found


NO_SLIP: dict[str, tuple[pl.Mechanism, tuple[Row, ...]]] = {
    "sled": (PLANE, (pl.constraints.NoSlip("body", (0, 1, 0)),)),
    "ball": (BODIES["SE3"], (pl.constraints.Rolling("body", 0.3),)),
    "wheel": (BODIES["SE3"], (pl.constraints.Rolling("body", 0.3, axle=(0.1, 1, 0.2)),)),
    "wheel in space": (
        BODIES["SO3xR3"],
        (pl.constraints.Rolling("body", 0.3, axle=(0.1, 1, 0.2)),),
    ),
    "blade": (BODIES["SO3xR3"], (pl.constraints.NoSlip("body", (1, 2, 3)),)),
    "blade on a ball joint": (
        robot("double-pendulum"),
        (pl.constraints.NoSlip("lower", (1, 2, 3)),),
    ),
}


@pytest.mark.parametrize("case", NO_SLIP)
def test_tensor_is_what_four_flows_open(case: str) -> None:
    machine, rows = NO_SLIP[case]
    q = hand.random_q(machine, np.random.default_rng(3), 0.4)
    found = pl.dynamics.holonomic(machine, rows, q)
    assert not found and not found.integrable
    np.testing.assert_array_equal(found.tensor, -np.swapaxes(found.tensor, 1, 2))
    assert np.abs(jacobian(machine, rows, q) @ found.motions).max() < 1e-10
    close(found.tensor, tensor_from_flows(machine, rows, q, found), 2e-4)


def test_sled_by_hand() -> None:
    """Drive x and turn w: with ``v_y = 0`` the tensor is the bracket ``[x, w] = -v_y``."""
    q = np.array([0.3, -0.2, np.cos(1.0), np.sin(1.0)])
    found = pl.dynamics.holonomic(PLANE, [pl.constraints.NoSlip("body", (0, 1, 0))], q)
    assert found.tensor.shape == (1, 2, 2) and found.labels == ("no slip of body",)
    (x, w) = (np.array([1.0, 0, 0]), np.array([0.0, 0, 1]))
    on = found.motions.T @ np.column_stack([x, w])
    expected = 1 / PLANE.length  # - A [x, w] = + 1, in characteristic lengths
    assert on[:, 0] @ found.tensor[0] @ on[:, 1] == pytest.approx(expected, rel=1e-6)


def test_ball_may_not_change_its_height_but_may_reach_everywhere() -> None:
    machine, rows = NO_SLIP["ball"]
    found = pl.dynamics.holonomic(machine, rows, hand.random_q(machine, np.random.default_rng(4)))
    opened = np.abs(found.tensor).max(axis=(1, 2))
    assert opened[2] < 1e-8  # normal to the plane: a height
    assert opened[:2].min() > 0.1


def test_two_blades_side_by_side_are_one_and_one_behind_the_other_a_rail() -> None:
    def sled(*points: tuple[float, float, float]) -> tuple[pl.Mechanism, list[Row]]:
        plane = tables.joint("plane", "planar", GROUND, "sled", axis=[0, 0, 1])
        blades = [
            tables.joint(f"mount{k}", "revolute", "sled", f"blade{k}", point, [0, 0, 1])
            for k, point in enumerate(points)
        ]
        machine = tables.build(tables.table("sled", plane, *blades))
        rows: list[Row] = [
            pl.constraints.Pfaffian(
                f"blade {k}",
                # v_y at the point, in the sled's axes
                lambda q, x=point[0]: [0.0, 1.0, x] + [0.0] * len(points),  # type: ignore[misc]
            )
            for k, point in enumerate(points)
        ]
        return machine, rows

    machine, rows = sled((0.0, 0.2, 0.0), (0.0, -0.2, 0.0))
    beside = pl.dynamics.holonomic(machine, rows, machine.neutral)
    assert not beside and beside.motions.shape[1] == 4
    machine, rows = sled((0.3, 0.0, 0.0), (-0.3, 0.0, 0.0))
    behind = pl.dynamics.holonomic(machine, rows, machine.neutral)
    assert behind and behind.motions.shape[1] == 3


def test_no_slip_that_restricts_positions_after_all() -> None:
    """Along link 2 its points move at ``l1 sin(q2) q1'``: the row only says ``q1' = 0``."""
    machine = robot("planar-3R")
    q = np.array([0.4, 0.9, -0.3])
    # In the reference configuration all frames are the world's, and the links lie along x.
    row = pl.constraints.NoSlip("b", (1.0, 0.0, 0.0))
    expected = np.array([0.5 * np.sin(0.9), 0.0, 0.0]) / machine.length
    np.testing.assert_allclose(jacobian(machine, [row], q)[0], expected, atol=1e-12)
    found = pl.dynamics.holonomic(machine, [row], q)
    assert found and found.motions.shape[1] == 2
    # The same blade on the next link mixes three rates.
    assert not pl.dynamics.holonomic(machine, [pl.constraints.NoSlip("c", (1.0, 0.0, 0.0))], q)


def test_a_blade_on_a_body_that_cannot_turn_is_a_rail() -> None:
    machine = one_body("spatial_translation")
    found = pl.dynamics.holonomic(
        machine, [pl.constraints.NoSlip("body", (1, 2, 3))], machine.neutral
    )
    assert found and found.motions.shape[1] == 2


def snakeboard() -> tuple[pl.Mechanism, list[Row]]:
    """Board in the plane, a rotor on it, and two axles that steer (paper 1, figure 4)."""
    machine = tables.build(
        tables.table(
            "snakeboard",
            tables.joint("board", "planar", GROUND, "board", axis=[0, 0, 1]),
            tables.joint("rotor", "revolute", "board", "rotor", [0, 0, 0], [0, 0, 1]),
            tables.joint("front", "revolute", "board", "front", [0.3, 0, 0], [0, 0, 1]),
            tables.joint("rear", "revolute", "board", "rear", [-0.3, 0, 0], [0, 0, 1]),
        )
    )

    def axle(joint: str, x: float) -> Callable[[Array], list[float]]:
        at = machine.coordinates(joint).q.start

        def row(q: Array) -> list[float]:
            s, c = np.sin(q[at]), np.cos(q[at])
            return [-s, c, x * c, 0.0, 0.0, 0.0]

        return row

    return machine, [
        pl.constraints.Pfaffian("front", axle("front", 0.3)),
        pl.constraints.Pfaffian("rear", axle("rear", -0.3)),
    ]


def test_snakeboard() -> None:
    machine, rows = snakeboard()
    q = machine.configuration({"front": 0.4, "rear": -0.5})
    found = pl.dynamics.holonomic(machine, rows, q)
    assert not found and found.motions.shape[1] == 4
    close(found.tensor, tensor_from_flows(machine, rows, q, found), 2e-4)
    # With its axles locked it can only drive round its one circle.
    locks = [
        pl.constraints.Prescribed(joint, lambda t: (0.0, 0.0, 0.0)) for joint in ("front", "rear")
    ]
    assert pl.dynamics.holonomic(machine, [*rows, *locks], q)


LOOPS = ["four-bar", "five-bar", "rssr", "spinning-rods", "double-cardan", "tip-on-plane",
         "rod-pendulums", "ball-loop", "planar-3-RRR", "prrr3", "universal-delta"]  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_restrict_positions(name: str) -> None:
    machine = robot(name)
    found = pl.dynamics.holonomic(machine, (), assembled(machine, 5))
    assert found and found.integrable
    J = pl.Constraints(machine).jacobian(assembled(machine, 5))
    assert found.motions.shape[1] == machine.nv - rank(J)


@pytest.mark.parametrize("name", ["rssr", "tip-on-plane", "rod-pendulums", "ball-loop"])
@pytest.mark.parametrize("space", SPACES)
def test_loops_restrict_positions_also_of_free_bodies(name: str, space: Space) -> None:
    """Needs the right bracket: the rows of absolute coordinates are not constant on the group."""
    machine = robot(name).absolute(space)
    q = assembled(machine, 6, walk=1)
    found = pl.dynamics.holonomic(machine, (), q)
    assert found and found.motions.shape[1] > 1
    J = jacobian(machine, (), q)
    x, y = found.motions[:, 0], found.motions[:, 1]
    assert np.abs(J @ group_bracket(machine, x, y)).max() > 1e-3  # not zero by accident


def test_a_loop_with_a_blade_on_it() -> None:
    machine = robot("floating-four-bar")
    q = assembled(machine, 7)
    assert pl.dynamics.holonomic(machine, (), q)
    assert not pl.dynamics.holonomic(machine, [pl.constraints.NoSlip("coupler", (0, 1, 0))], q)


def test_prescribed_joints_are_positions_and_no_rows_are_no_question() -> None:
    machine = robot("planar-3R")
    assert pl.dynamics.holonomic(
        machine, [pl.constraints.Prescribed("j2", lambda t: (t, 1.0, 0.0))], machine.neutral
    )
    with pytest.raises(pl.BadValue, match="has no rows"):
        pl.dynamics.holonomic(machine, (), machine.neutral)


def test_the_tolerance_decides() -> None:
    row = [pl.constraints.NoSlip("body", (0, 1, 0))]
    assert pl.dynamics.holonomic(PLANE, row, PLANE.neutral, tolerance=10.0)
    assert not pl.dynamics.holonomic(PLANE, row, PLANE.neutral, tolerance=1e-2)
    assert isinstance(
        pl.dynamics.holonomic(PLANE, row, pin.neutral(PLANE.model)), pl.dynamics.Holonomy
    )
