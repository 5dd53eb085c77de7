"""Tests of `pinloop.constraints.closure`: every pair as a loop joint, against finite differences.

`measured_errors()` returns the errors found, pair by pair, for whoever wants to see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Coordinates, Coupling, Description, Joint
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..pairs_by_hand import CASES, Case, assembled, every_case
from ..screw_tables import Array

UNIT = pin.SE3.Identity()
STEP = 1e-5
"""Step of the differences: short enough for a rod of 5 cm and a thread of 0.6 mm."""
SPACES: tuple[Coordinates, ...] = ("", "SO3xR3")


# -- a bench that moves both ends of the joint in every way ---------------------------------


def bench(case: Case, space: Coordinates) -> pl.Mechanism:
    """Two arms that carry bodies a and b with six degrees of freedom, and the pair between them."""
    rng = np.random.default_rng(21)
    place = [hand.random_se3(rng, 0.5) for _ in range(10)]
    joints = (
        Joint("left", make_pair("spherical"), GROUND, "left", place[0], place[1]),
        Joint("a", make_pair("free"), "left", "a", place[2], place[3]),
        Joint("right", make_pair("helical", pitch=0.3), GROUND, "right", place[4], place[5]),
        Joint("b", make_pair("free"), "right", "b", place[6], place[7], coordinates=space),
        Joint("close", case.pair, "a", "b", place[8], place[9], cut=True),
    )
    bodies = tuple(tables.described(name) for name in ("left", "a", "right", "b"))
    return build(Description("bench", bodies, joints))


def closed(robot: pl.Mechanism, case: Case, rng: np.random.Generator) -> Array:
    """A random configuration in which b sits where the pair of `pairs_by_hand` wants it."""
    q = hand.random_q(robot, rng)
    close = next(joint for joint in robot.description.joints if joint.name == "close")
    carrier = next(joint for joint in robot.description.joints if joint.name == "b")
    T = assembled(case, np.r_[rng.uniform(-0.5, 0.5, 3), rng.uniform(-3, 3, 3)])
    body_b = robot.placement(q, "a") * close.frame_parent * T * close.frame_child.inverse()
    seat = robot.placement(q, "right") * carrier.frame_parent
    cells = pin.SE3ToXYZQUAT(seat.actInv(body_b * carrier.frame_child))
    return robot.configuration({"b": cells}, q)


def relative_error(actual: Array, expected: Array) -> float:
    return float(np.linalg.norm(actual - expected)) / max(1.0, float(np.linalg.norm(expected)))


def jacobian_error(robot: pl.Mechanism, q: Array, v: Array) -> float:
    """``J v`` against the rate of the residual."""
    rows = pl.Constraints(robot)
    expected = hand.slope(lambda t: rows.residual(robot.integrate(q, t * v)), STEP)
    return relative_error(rows.jacobian(q) @ v, expected)


def gamma_error(robot: pl.Mechanism, q: Array, v: Array, a: Array) -> float:
    """``J a + gamma`` against the rate of ``J v`` while v changes by a."""
    rows = pl.Constraints(robot)

    expected = hand.slope(lambda t: rows.jacobian(robot.integrate(q, t * v)) @ (v + t * a), STEP)
    return relative_error(rows.jacobian(q) @ a + rows.gamma(q, v), expected)


def bench_errors(case: Case, space: Coordinates) -> tuple[float, float]:
    """Largest errors of J (assembled) and gamma (anywhere) over a few states."""
    robot, rng = bench(case, space), np.random.default_rng(22)
    worst_jacobian = worst_gamma = 0.0
    for _ in range(3):
        v, a = rng.normal(size=(2, robot.nv))
        on, off = closed(robot, case, rng), hand.random_q(robot, rng)
        worst_jacobian = max(worst_jacobian, jacobian_error(robot, on, v))
        worst_gamma = max(worst_gamma, *(gamma_error(robot, q, v, a) for q in (on, off)))
    return worst_jacobian, worst_gamma


def measured_errors() -> dict[str, tuple[float, float]]:
    """Per pair the relative errors of ``J v`` and of ``J a + gamma`` against finite differences."""
    return {
        str(case): tuple(np.max([bench_errors(case, space) for space in SPACES], axis=0))
        for case in CASES
    }


@every_case
@pytest.mark.parametrize("space", SPACES, ids=["SE3", "SO3xR3"])
def test_jacobian_and_gamma_of_each_pair_are_derivatives(case: Case, space: Coordinates) -> None:
    error_jacobian, error_gamma = bench_errors(case, space)
    assert error_jacobian < 1e-8
    assert error_gamma < 1e-8


@every_case
def test_residual_is_zero_where_the_pair_is_closed_and_only_there(case: Case) -> None:
    robot, rng = bench(case, ""), np.random.default_rng(23)
    rows = pl.Constraints(robot)
    assert len(rows) == case.pair.rows
    for _ in range(5):
        q = closed(robot, case, rng)
        assert np.abs(rows.residual(q)).max(initial=0.0) < 1e-12
        moved = robot.integrate(q, 0.05 * rng.normal(size=robot.nv))
        assert rows.residual(moved).shape == (len(rows),)
        assert len(rows) == 0 or np.abs(rows.residual(moved)).max() > 1e-6


@every_case
def test_rank_is_full_on_the_bench(case: Case) -> None:
    """Six degrees of freedom of relative motion: no row may be void or double."""
    robot, rng = bench(case, ""), np.random.default_rng(24)
    jacobian = pl.Constraints(robot).jacobian(closed(robot, case, rng))
    # Of no rows at all NumPy knows the rank from 2.1 on.
    values = np.linalg.svd(jacobian, compute_uv=False)
    assert np.sum(values > 1e-9 * values.max(initial=0.0)) == case.pair.rows


def test_twist_jacobian_is_the_motion_of_b_seen_from_a() -> None:
    """Also with A on the ground and with both bodies on one chain."""
    rng = np.random.default_rng(25)
    for entries in (m.rssr(), m.double_cardan(), m.tip_on_plane(), m.bennett()):
        robot = tables.build(entries)
        rows, (loop,) = pl.Constraints(robot), robot.loops
        q, v = hand.random_q(robot, rng), rng.normal(size=robot.nv)

        def relative(q: Array, robot: pl.Mechanism = robot, name: str = loop.name) -> Any:
            return robot.placement(q, f"{name}/A").actInv(robot.placement(q, f"{name}/B"))

        def step(q: Array, here: Any = relative(q), relative: Any = relative) -> Any:  # noqa: B008
            return pin.log6(here.actInv(relative(q))).vector

        twist = hand.rate(robot, q, v, step)
        assert relative_error(rows.twist_jacobian(q, loop) @ v, twist) < 1e-7


# -- couplings ------------------------------------------------------------------------------


def coupled(*polynomials: tuple[float, ...]) -> pl.Mechanism:
    """Four-bar whose crank and rocker, and a pinion of their own, are tied by polynomials."""
    entries = m.four_bar()
    pinion = tables.joint("pinion", "prismatic", GROUND, "pinion", [0, 0, 2], [0, 1, 0])
    plain = tables.build(tables.table("coupled", *entries["joints"], pinion))
    row = Coupling("cam", ("rocker", "pinion", "crank")[: len(polynomials)], polynomials)
    return build(replace(plain.description, couplings=(row,)))


CAMS = {
    "linear": ((-0.3, 1.0), (0.0, -2.5)),
    "cubic": ((0.1, 1.0, -0.4, 0.7), (0.0, -2.0, 0.3, -0.9), (0.2, 0.5, 0.6)),
    "fourth order": ((0.0, 0.0, 1.0, 0.0, -0.2), (1.0, -1.0)),
    "one joint": ((-0.25, 0.0, 1.0),),
}


@pytest.mark.parametrize("cam", CAMS)
def test_coupling_is_the_sum_of_its_polynomials_and_its_rows_are_derivatives(cam: str) -> None:
    robot, rng = coupled(*CAMS[cam]), np.random.default_rng(26)
    rows = pl.Constraints(robot)
    joints = ("rocker", "pinion", "crank")
    for _ in range(5):
        q, v, a = hand.random_q(robot, rng), *rng.normal(size=(2, robot.nv))
        x = [q[robot.coordinates(joint).q][0] for joint in joints]
        expected = sum(
            c * x[i] ** power for i, row in enumerate(CAMS[cam]) for power, c in enumerate(row)
        )
        assert rows.residual(q)[-1] == pytest.approx(expected, abs=1e-12)
        slope = hand.rate(robot, q, v, rows.residual)[-1]
        assert (rows.jacobian(q) @ v)[-1] == pytest.approx(slope, abs=1e-7)
        assert gamma_error(robot, q, v, a) < 1e-7


def test_gear_couples_with_ratio_and_offset() -> None:
    robot = tables.build(m.gear_pair())
    rows = pl.Constraints(robot)
    q = robot.configuration({"pinion": 2.0, "wheel": -0.25 * 2.0 + 0.3})
    assert abs(rows.residual(q)[0]) < 1e-15
    v = robot.velocity({"pinion": 4.0, "wheel": -1.0})
    assert abs((rows.jacobian(q) @ v)[0]) < 1e-15


def test_coupling_follows_a_joint_walked_backwards() -> None:
    """A coupling speaks of the joint's own coordinate, not of where the tree comes from."""
    entries = m.gear_pair()
    entries["joints"][1]["parent"], entries["joints"][1]["child"] = "wheel", GROUND
    robot = tables.build(entries)
    q = robot.configuration({"pinion": 2.0, "wheel": -0.2})
    assert abs(pl.Constraints(robot).residual(q)[0]) < 1e-15
    # The wheel is the parent of its joint: seen from the ground it turns by -q.
    turn = pin.log3(robot.placement(q, "wheel").rotation)
    np.testing.assert_allclose(turn, [0, 0, 0.2], atol=1e-12)


# -- rows and what they are good for --------------------------------------------------------


def test_rows_have_labels_and_names_in_the_order_of_loops_and_couplings() -> None:
    entries = m.spinning_rods()
    entries["joints"].append(
        tables.joint(
            "slot", "universal", "rod1", "rod2", [0, 0, 0], [1, 0, 0], axis2=[0, 1, 0], cut=True
        )
    )
    entries["couplings"] = [{"name": "belt", "joint": "rocker1", "source": "crank", "ratio": 2.0}]
    rows = pl.Constraints(tables.build(entries))
    ball = ("v_x", "v_y", "v_z")
    assert rows.labels == (
        *(f"close1: {label}" for label in ball),
        *(f"close2: {label}" for label in ball),
        *(f"slot: {label}" for label in (*ball, "w_xz")),
        "belt",
    )
    assert rows.rows_of == {
        "close1": slice(0, 3), "close2": slice(3, 6), "slot": slice(6, 10), "belt": slice(10, 11),
    }  # fmt: skip
    residual = np.arange(11.0)
    norms = rows.by_name(residual)
    assert norms == pytest.approx(
        {"close1": 5**0.5, "close2": 50**0.5, "slot": 230**0.5, "belt": 10}
    )


def test_rows_are_known_as_angles_or_lengths() -> None:
    robot = tables.build(m.double_cardan())
    assert pl.Constraints(robot).angular == (False, False, False, True)
    assert pl.Constraints(tables.build(m.bennett())).angular == (False,) * 3 + (True,) * 2
    assert pl.Constraints(tables.build(m.rod_pendulums())).angular == (False,)
    # A coupling is in the unit of its first joint: a rack in metres, a gear in radians.
    assert pl.Constraints(tables.build(m.gear_pair())).angular == (True,)
    assert pl.Constraints(coupled((0.0, 1.0), (0.0, 1.0))).angular[-1]
    rack = tables.build(m.screw_jack() | {"couplings": [{"name": "feed", "joint": "nut",
                                                    "source": "shaft", "ratio": 1}]})  # fmt: skip
    assert not pl.Constraints(rack).angular[-1]


@pytest.mark.parametrize("entries", [m.four_bar, m.spherical_four_bar, m.sarrus, m.double_cardan])
def test_regularized_rows_are_derivatives_too_and_forbid_the_same_motions(
    entries: Callable[[], tables.Table],
) -> None:
    robot, rng = tables.build(entries()), np.random.default_rng(29)
    reduced = pl.regularize(robot)
    rows, all_rows = pl.Constraints(reduced), pl.Constraints(reduced, full=True)
    assert len(all_rows) == len(pl.Constraints(robot)) >= len(rows)
    assert len(rows.labels) == len(rows.angular) == len(rows)
    q, (v, a) = robot.neutral, rng.normal(size=(2, robot.nv))
    assert jacobian_error(reduced, q, v) < 1e-8
    assert gamma_error(reduced, hand.random_q(robot, rng), v, a) < 1e-8
    J, full = rows.jacobian(q), all_rows.jacobian(q)
    np.testing.assert_array_equal(full, pl.Constraints(robot).jacobian(q))
    rank = np.linalg.matrix_rank(full, tol=1e-9)
    assert np.linalg.matrix_rank(J, tol=1e-9) == rank
    assert np.linalg.matrix_rank(np.vstack([J, full]), tol=1e-9) == rank


def test_each_row_measures_its_own_loop() -> None:
    """Opening one loop leaves the rows of the other at zero."""
    robot = tables.build(m.spinning_rods())
    rows = pl.Constraints(robot)
    residual = rows.residual(robot.configuration({"rocker2": 0.1}))
    assert np.linalg.norm(residual[rows.rows_of["close1"]]) < 1e-15
    lever = np.cross(np.array([1.2, -0.5, 0.6]) - [1, -0.3, 0], [1, -0.4, 0]) / np.hypot(1, 0.4)
    gap = 2 * np.sin(0.05) * np.linalg.norm(lever)
    assert np.linalg.norm(residual[rows.rows_of["close2"]]) == pytest.approx(gap, rel=1e-12)


def test_one_coordinate_is_a_column_like_any_other() -> None:
    robot = tables.build(m.door())
    rows, q, v = pl.Constraints(robot), np.array([0.4]), np.array([1.5])
    np.testing.assert_allclose(rows.jacobian(q), np.zeros((5, 1)), atol=1e-14)
    np.testing.assert_allclose(rows.gamma(q, v), np.zeros(5), atol=1e-14)
    np.testing.assert_allclose(rows.residual(q), np.zeros(5), atol=1e-14)
    twist = rows.twist_jacobian(q, robot.loops[0])
    np.testing.assert_allclose(twist, np.array([[0, 0, 0, 0, 0, 1.0]]).T, atol=1e-14)


def test_a_tree_has_no_rows() -> None:
    robot = tables.build(m.double_pendulum())
    rows = pl.Constraints(robot)
    assert (len(rows), rows.labels) == (0, ())
    q, v = robot.neutral, np.ones(robot.nv)
    assert rows.residual(q).shape == rows.gamma(q, v).shape == (0,)
    assert rows.jacobian(q).shape == (0, robot.nv)


def test_one_object_serves_many_states_in_any_order() -> None:
    """What was computed for one state must not linger in the next."""
    robot, rng = tables.build(m.rssr()), np.random.default_rng(27)
    states = [(hand.random_q(robot, rng), rng.normal(size=robot.nv)) for _ in range(3)]
    used = pl.Constraints(robot)
    for q, v in states:
        used.gamma(states[0][0], v)
        np.testing.assert_array_equal(used.jacobian(q), pl.Constraints(robot).jacobian(q))
        used.jacobian(states[1][0])
        np.testing.assert_array_equal(used.residual(q), pl.Constraints(robot).residual(q))
        used.residual(states[2][0])
        np.testing.assert_array_equal(used.gamma(q, v), pl.Constraints(robot).gamma(q, v))


@pytest.mark.parametrize(
    "entries",
    [m.four_bar, m.rssr, m.sarrus, m.double_cardan, m.screw_jack, m.rod_pendulums, m.tip_on_plane],
)
def test_constraint_forces_do_no_work_on_motions_that_keep_the_loops_closed(
    entries: Callable[[], tables.Table],
) -> None:
    """The motion is real: after it the loops are open at second order only."""
    robot, rng = tables.build(entries()), np.random.default_rng(28)
    rows, q = pl.Constraints(robot), robot.neutral
    jacobian = rows.jacobian(q)
    values, directions = np.linalg.svd(jacobian)[1:]
    rank = int(np.sum(values > 1e-9 * values[0]))
    motion = rng.normal(size=robot.nv - rank) @ directions[rank:]
    motion /= np.linalg.norm(motion)
    force = jacobian.T @ rng.normal(size=len(rows))
    assert abs(force @ motion) < 1e-12 * max(1.0, float(np.linalg.norm(force)))
    gap = [np.linalg.norm(rows.residual(robot.integrate(q, t * motion))) for t in (1e-3, 1e-4)]
    assert gap[0] < 1e-5
    assert gap[1] < 0.02 * gap[0] + 1e-14


@every_case
def test_wrench_at_b_does_the_work_of_the_multipliers(case: Case) -> None:
    """Power of the wrench on B along any relative twist, against ``lam' J v``."""
    robot, rng = bench(case, "SO3xR3"), np.random.default_rng(30)
    rows, (loop,) = pl.Constraints(robot), robot.loops
    q, v, lam = hand.random_q(robot, rng), rng.normal(size=robot.nv), rng.normal(size=len(rows))
    power = lam @ rows.jacobian(q) @ v
    twist = rows.twist_jacobian(q, loop) @ v
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    assert rows.wrench(data, "close", lam) @ twist == pytest.approx(power, rel=1e-9, abs=1e-12)


def test_bad_states_are_refused() -> None:
    robot = tables.build(m.four_bar())
    rows = pl.Constraints(robot)
    for bad in ([0.0, 0.0], [0.0, np.nan, 0.0], "abc"):
        for function in (rows.residual, rows.jacobian, lambda q: rows.gamma(q, np.zeros(3)),
                         lambda v: rows.gamma(np.zeros(3), v)):  # fmt: skip
            with pytest.raises(pl.BadValue):
                function(bad)


def test_loop_of_constant_angular_rate_needs_the_acceleration_that_gamma_says() -> None:
    """Slider-crank at constant crank speed: the piston's acceleration is the second derivative."""
    robot = tables.build(m.slider_crank())
    rows, speed = pl.Constraints(robot), 3.0

    def state(t: float) -> Array:
        return hand.angles(robot, m.slider_crank_q(m.START + speed * t))

    h = 1e-4
    q, v = state(0.2), (state(0.2 + h) - state(0.2 - h)) / (2 * h)
    a = (state(0.2 + h) - 2 * state(0.2) + state(0.2 - h)) / h**2
    np.testing.assert_allclose(rows.jacobian(q) @ v, 0, atol=1e-6)
    assert np.abs(rows.gamma(q, v)).max() > 1.0
    np.testing.assert_allclose(rows.jacobian(q) @ a + rows.gamma(q, v), 0, atol=1e-5)
