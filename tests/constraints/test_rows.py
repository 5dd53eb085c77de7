"""Tests of `pinloop.constraints.rows` and `pinloop.constraints.row_kinds`: meanings,
derivatives, rolling in closed form.

Meanings come from placements and point masses by finite differences on the manifold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import Row, RowSet

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import close, moving, one_body, robot

FRAMES = {
    "SE3": (one_body(), "body"),
    "SO3xR3": (one_body(coordinates="SO3xR3"), "body"),
    "end of every pair": (robot("every-pair"), "after_free"),
    "middle of every pair": (robot("every-pair"), "after_planar"),
    "coupler": (robot("rssr"), "coupler"),
    "loop frame": (robot("rssr"), "close/A"),
}
"""Robots and a frame of each that moves in all directions."""
every_frame = pytest.mark.parametrize("case", FRAMES)
TILT, AXLE = (0.3, -0.2, 1.0), (0.2, 1.0, -0.1)


def terms(machine: pl.Mechanism, row: Row, q: Array, v: Array, t: float = 0.0) -> tuple[Array, ...]:
    """``J``, ``b`` and ``gamma`` of one row alone (behind those of the loops)."""
    first = len(pl.Constraints(machine))
    return tuple(part[first:] for part in pl.EquationsOfMotion(machine, rows=[row]).terms(t, q, v))


def some_state(machine: pl.Mechanism, seed: int) -> tuple[Array, Array, Array]:
    """Any configuration, closed or not, with velocity and acceleration."""
    rng = np.random.default_rng(seed)
    v, a = rng.normal(size=(2, machine.nv))
    return hand.random_q(machine, rng, 0.8), v, a


def place(machine: pl.Mechanism, q: Array, frame: str) -> tuple[Array, Array]:
    T = machine.placement(q, frame)
    return np.array(T.rotation), np.array(T.translation)


def velocity_of(machine: pl.Mechanism, q: Array, v: Array, frame: str, point: Array) -> Array:
    """Velocity in the world of the material point that is at ``point`` (world) now."""
    R, p = place(machine, q, frame)
    local = R.T @ (point - p)

    def where(q: Array) -> Array:
        R, p = place(machine, q, frame)
        return np.asarray(p + R @ local)

    return np.asarray(hand.rate(machine, q, v, where))


def gamma_error(machine: pl.Mechanism, row: Row, seed: int) -> float:
    """``J a + gamma`` against the rate of ``J v - b`` along a motion, relative."""
    q, v, a = some_state(machine, seed)
    t = 0.4

    def violation(s: float) -> Array:
        moved = machine.integrate(q, s * v)
        J, b, _ = terms(machine, row, moved, v + s * a, t + s)
        return J @ (v + s * a) - b

    J, _, gamma = terms(machine, row, q, v, t)
    expected = hand.slope(violation)
    return float(np.abs(J @ a + gamma - expected).max() / max(1.0, np.abs(expected).max()))


# -- what the rows say ----------------------------------------------------------------------


@every_frame
def test_no_slip_is_the_velocity_of_the_origin_along_the_axis(case: str) -> None:
    machine, frame = FRAMES[case]
    q, v, _ = some_state(machine, 1)
    R, p = place(machine, q, frame)
    J, b, _ = terms(machine, pl.constraints.NoSlip(frame, (3.0, -4.0, 12.0)), q, v)
    axis = R @ np.array([3, -4, 12]) / 13
    assert J.shape == (1, machine.nv) and b == 0
    close(J @ v, [axis @ velocity_of(machine, q, v, frame, p)], 1e-9)


def lowest(R: Array, centre: Array, row: pl.constraints.Rolling) -> Array:
    """Lowest point of the ball or of the wheel's rim over the plane."""
    normal = np.array(row.normal) / np.linalg.norm(row.normal)
    if row.axle is None:
        return np.asarray(centre - row.radius * normal)
    axle = R @ (np.array(row.axle) / np.linalg.norm(row.axle))
    one = np.cross(axle, [0.3, 0.5, 0.1])
    one /= np.linalg.norm(one)
    two = np.cross(axle, one)
    angle = np.arctan2(-normal @ two, -normal @ one)
    return np.asarray(centre + row.radius * (np.cos(angle) * one + np.sin(angle) * two))


@every_frame
@pytest.mark.parametrize("axle", [None, AXLE], ids=["ball", "wheel"])
def test_rolling_is_the_velocity_of_the_lowest_point(
    case: str, axle: tuple[float, float, float] | None
) -> None:
    machine, frame = FRAMES[case]
    q, v, _ = some_state(machine, 2)
    row = pl.constraints.Rolling(frame, 0.4, TILT, axle)
    J, b, _ = terms(machine, row, q, v)
    point = lowest(*place(machine, q, frame), row)
    close(J @ v - b, velocity_of(machine, q, v, frame, point), 1e-9)


@pytest.mark.parametrize("name", ["rssr", "every-pair", "floating-four-bar", "bennett"])
def test_angular_momentum_is_that_of_the_point_masses(name: str) -> None:
    machine = robot(name)
    q, v, _ = some_state(machine, 3)
    points = hand.points_in_world(machine, q)
    rates = hand.rate(machine, q, v, lambda q: hand.points_in_world(machine, q))
    # Bodies welded to the ground are ground.
    welded = [machine.model.frames[machine.frame_id(b)].parentJoint == 0 for b in machine.bodies]
    masses = hand.point_masses(machine) * ~np.repeat(welded, 8)
    centre = masses @ points / masses.sum()
    L = (masses[:, None] * np.cross(points - centre, rates)).sum(axis=0)
    axis = np.array(TILT) / np.linalg.norm(TILT)
    J, b, _ = terms(machine, pl.constraints.AngularMomentum(TILT, value=1.5), q, v)
    close(J @ v, [axis @ L], 1e-8)
    assert b == 1.5


def test_angular_momentum_without_a_value_takes_that_of_the_start() -> None:
    machine = robot("floating-four-bar")
    q, v = moving(machine, 4)
    rows = RowSet(machine, [pl.constraints.AngularMomentum()])
    rows.begin(q, v)
    equations = pl.EquationsOfMotion(machine, rows=[pl.constraints.AngularMomentum()])
    equations.rows.begin(q, v)
    start = equations.terms(0.0, q, v)
    later = equations.terms(1.0, q, 3 * v)
    assert start[1][-1] == later[1][-1] == pytest.approx((start[0] @ v)[-1])
    assert abs(start[1][-1]) > 1e-3


def test_prescribed_motion() -> None:
    machine = robot("four-bar")
    q, v, _ = some_state(machine, 5)
    row = pl.constraints.Prescribed(
        "rocker", lambda t: (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t))
    )
    equations = pl.EquationsOfMotion(machine, rows=[row])
    J, b, gamma = equations.terms(0.2, q, v)
    assert J[-1] @ v == v[machine.coordinates("rocker").v][0]
    assert [b[-1], gamma[-1]] == pytest.approx([3 * np.cos(0.6), 9 * np.sin(0.6)], rel=1e-14)
    at = hand.at(machine, q, "rocker")
    assert equations.residual(0.2, q)[-1] == pytest.approx(at - np.sin(0.6), abs=1e-15)
    assert list(equations.rows.holonomic) == [True] * 6


# -- derivatives ----------------------------------------------------------------------------


def rows_for(frame: str) -> dict[str, Row]:
    return {
        "no slip": pl.constraints.NoSlip(frame, (0.3, 1.0, -0.5)),
        "ball": pl.constraints.Rolling(frame, 0.3, TILT),
        "wheel": pl.constraints.Rolling(frame, 0.3, TILT, AXLE),
        "angular momentum": pl.constraints.AngularMomentum(TILT),
    }


@every_frame
@pytest.mark.parametrize("kind", rows_for(""))
def test_gamma_is_the_rate_of_the_violation(case: str, kind: str) -> None:
    machine, frame = FRAMES[case]
    if kind == "angular momentum":
        row: Row = pl.constraints.AngularMomentum(TILT, value=0.7)
    else:
        row = rows_for(frame)[kind]
    assert max(gamma_error(machine, row, seed) for seed in (6, 7, 8)) < 1e-8


def knife(
    machine: pl.Mechanism,
) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    """Rows and their rate for a planar body: ``v_y - x w = 0`` and ``cos(x) v_x = 0``."""

    def matrix(q: Array) -> Array:
        return np.array([[0.0, 1.0, -q[0]], [np.cos(q[0]), 0.0, 0.0]])

    def rate(q: Array, v: Array) -> Array:
        velocity = q[2] * v[0] - q[3] * v[1]  # of x: the planar joint's velocity is the body's
        return np.array([-velocity * v[2], -np.sin(q[0]) * velocity * v[0]])

    assert machine.nq == 4
    return matrix, rate


def test_rows_of_the_users_own_with_and_without_their_rate() -> None:
    machine = one_body("planar")
    matrix, rate = knife(machine)
    numeric, exact = (
        pl.constraints.Pfaffian("knife", matrix),
        pl.constraints.Pfaffian("knife", matrix, rate),
    )
    for seed in (9, 10, 11):
        q, v, _ = some_state(machine, seed)
        for speed in (1.0, 30.0, 0.0):
            close(
                terms(machine, numeric, q, speed * v)[2],
                terms(machine, exact, q, speed * v)[2],
                1e-8,
                max(1.0, speed**2),
            )
        assert gamma_error(machine, exact, seed) < 1e-9
        assert gamma_error(machine, numeric, seed) < 1e-7


def test_a_single_row_of_the_users_own_may_be_flat() -> None:
    machine = robot("planar-3R")
    row = pl.constraints.Pfaffian("tie", lambda q: [1.0, -2.0, 0.0], lambda q, v: 0.0)
    J, b, gamma = terms(machine, row, machine.neutral, np.ones(3))
    assert J.tolist() == [[1.0, -2.0, 0.0]] and b == 0 and gamma == 0


# -- all rows together ----------------------------------------------------------------------


def test_rows_stand_in_order_with_labels_masks_and_scales() -> None:
    machine = robot("four-bar")
    still = pl.constraints.Prescribed("crank", lambda t: (0.0, 0.0, 0.0))
    rows = RowSet(
        machine,
        [
            still,
            pl.constraints.NoSlip("coupler", (0, 0, 1)),
            pl.constraints.AngularMomentum(),
            pl.constraints.Pfaffian("mine", lambda q: np.eye(3)[:2]),
            pl.constraints.Rolling("coupler", 1.0),
        ],
    )
    assert len(rows) == len(rows.labels) == 5 + 1 + 1 + 1 + 2 + 3
    assert rows.labels[5:] == (
        "prescribed crank", "no slip of coupler", "angular momentum", "mine: 1", "mine: 2",
        "rolling of coupler: x", "rolling of coupler: y", "rolling of coupler: z",
    )  # fmt: skip
    assert list(rows.holonomic) == [True] * 6 + [False] * 7
    angular = rows.scale == 1.0
    assert list(angular[5:]) == [True, False, True, True, True, False, False, False]
    np.testing.assert_allclose(rows.scale[~angular], 1 / machine.length)
    slide = RowSet(
        robot("slider-crank"), [pl.constraints.Prescribed("slide", lambda t: (0.0, 0.0, 0.0))]
    )
    assert slide.scale[-1] == 1 / robot("slider-crank").length


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (pl.constraints.NoSlip("couple", (0, 0, 1)), "did you mean 'coupler'"),
        (pl.constraints.NoSlip("coupler", (0, 0, 0)), "direction of 3 numbers"),
        (pl.constraints.Rolling("nothing", 1.0), "no body or frame 'nothing'"),
        (pl.constraints.Rolling("coupler", 0.0), "radius 0"),
        (pl.constraints.Rolling("coupler", -1.0), "radius -1"),
        (pl.constraints.Rolling("coupler", 1.0, (0, 0, 0)), "normal of Rolling"),
        (pl.constraints.Rolling("coupler", 1.0, axle=(0, 0, 0)), "axle of Rolling"),
        (pl.constraints.AngularMomentum((0, 0, 0)), "axis of AngularMomentum"),
        (pl.constraints.Prescribed("cranck", lambda t: (0, 0, 0)), "did you mean 'crank'"),
        (
            pl.constraints.Prescribed("ball", lambda t: (0, 0, 0)),
            "coordinate of joint 'ball', which has none",
        ),
        (pl.constraints.Pfaffian("mine", lambda q: np.ones((2, 3))), "need 5 columns"),
    ],
)
def test_rows_that_cannot_be(row: Row, message: str) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        pl.EquationsOfMotion(robot("rssr"), rows=[row])


def after(t: float, early: Any, late: Any) -> Any:
    """A value that goes wrong after some time."""
    return early if t < 0.2 else late


def raising(*_: object) -> Any:
    raise ZeroDivisionError("mine")


ROW_FUNCTIONS: dict[str, Any] = {
    "two values": pl.constraints.Prescribed("crank", lambda t: after(t, (0.0, 0.0), ())),
    "text": pl.constraints.Prescribed("crank", lambda t: after(t, "abc", "abc")),
    "no number": pl.constraints.Prescribed("crank", lambda t: (0.0, 0.0, np.nan)),
    "no number later": pl.constraints.Prescribed(
        "crank", lambda t: (0.0, after(t, 0.0, np.nan), 0.0)
    ),
    "no place later": pl.constraints.Prescribed(
        "crank", lambda t: (after(t, 0.0, np.nan), 0.0, 0.0)
    ),
    "raising": pl.constraints.Prescribed("crank", raising),
    "own text": pl.constraints.Pfaffian("crank", lambda q: "abc"),
    "own raising": pl.constraints.Pfaffian("crank", raising),
    "own without numbers": pl.constraints.Pfaffian("crank", lambda q: [np.nan, 0.0, 0.0]),
    "own of two shapes": pl.constraints.Pfaffian(
        "crank", lambda q: np.zeros((1 if q[0] == 0 else 2, 3))
    ),
    "own rate": pl.constraints.Pfaffian(
        "crank", lambda q: np.zeros((1, 3)), lambda q, v: [1.0, 2.0]
    ),
    "own rate raising": pl.constraints.Pfaffian("crank", lambda q: np.zeros((1, 3)), raising),
}


@pytest.mark.parametrize("case", ROW_FUNCTIONS)
def test_values_of_row_functions_are_checked(case: str) -> None:
    """At the start or later, by name."""
    machine = robot("four-bar")
    with pytest.raises(pl.PinloopError, match="crank"):
        pl.simulate(machine, machine.neutral, until=0.5, rows=[ROW_FUNCTIONS[case]])


def test_a_wheel_that_lies_flat_has_no_contact_point() -> None:
    machine = one_body()
    row = pl.constraints.Rolling("body", 0.3, axle=(0, 0, 1))
    with pytest.raises(pl.BadValue, match="lies flat"):
        terms(machine, row, machine.neutral, np.zeros(6))


# -- rolling in closed form -----------------------------------------------------------------


def test_ball_rolls_down_a_plane_with_five_sevenths_of_gravity() -> None:
    slope, radius, mass = 0.4, 0.2, 3.0
    moment = 2 / 5 * mass * radius**2
    ball = one_body(mass=mass, inertia=(moment,) * 3)
    down = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    row = pl.constraints.Rolling("body", radius, (np.sin(slope), 0.0, np.cos(slope)))
    run = pl.simulate(ball, ball.neutral, until=1.5, rows=[row], save_every=0.5)
    for t, q in zip(run.t, run.q, strict=True):
        expected = 0.5 * 5 / 7 * 9.81 * np.sin(slope) * t**2 * down
        np.testing.assert_allclose(q[:3], expected, atol=1e-8)
    # Friction and normal force of the plane, from Newton's law in the world.
    motion = run.equations[0].motion(0.0, run.q[0], run.v[0])
    push = mass * (5 / 7 * 9.81 * np.sin(slope) * down + [0, 0, 9.81])
    np.testing.assert_allclose(motion.multipliers, push, rtol=1e-10, atol=1e-10)


def steady_disc(
    lean: float, turn: float
) -> tuple[pl.Mechanism, pl.constraints.Rolling, Array, Array, float]:
    """A thin disc that rolls in a circle: robot, row, state and radius of the centre's circle.

    Its axle e makes the angle ``lean`` with the vertical z and turns about it at ``turn``. With
    ``u = (z - cos(lean) e) / sin(lean)`` and the spin w along e, the contact is at ``-r u``,
    ``w_body = w e + turn sin(lean) u``, the centre moves with ``r w e x u``, and the balance of
    angular momentum about the centre gives

        w = turn cos(lean) A / (C + m r^2) - ... : see the code.
    """
    m, r, g = 2.0, 0.3, 9.81
    A, C = m * r**2 / 4, m * r**2 / 2
    s, c = np.sin(lean), np.cos(lean)
    spin = (A * turn**2 * s * c - m * g * r * c) / (turn * s * (C + m * r**2))
    disc = one_body(mass=m, inertia=(A, A, C))
    z, e = np.array([0.0, 0.0, 1.0]), np.array([s, 0.0, c])
    u = (z - c * e) / s
    R = np.column_stack([u, np.cross(e, u), e])
    q = pin.SE3ToXYZQUAT(pin.SE3(R, np.array([0.0, 0.0, r * s])))
    omega, velocity = spin * e + turn * s * u, r * spin * np.cross(e, u)
    v = np.r_[R.T @ velocity, R.T @ omega]
    return disc, pl.constraints.Rolling("body", r, axle=(0, 0, 1)), q, v, abs(r * spin / turn)


@pytest.mark.parametrize(("lean", "turn"), [(1.2, 2.0), (0.8, -4.0), (0.3, 9.0)])
def test_disc_rolls_in_a_circle(lean: float, turn: float) -> None:
    disc, row, q, v, radius = steady_disc(lean, turn)
    until = 2 * np.pi / abs(turn)
    run = pl.simulate(disc, q, v, until=until, rows=[row], save_every=until / 4)
    heights = [disc.placement(q, "body").rotation[2, 2] for q in run.q]
    np.testing.assert_allclose(heights, np.cos(lean), atol=1e-6)
    np.testing.assert_allclose(run.q[:, 2], 0.3 * np.sin(lean), atol=1e-6)
    assert np.linalg.norm(run.q[2, :3] - run.q[0, :3]) == pytest.approx(2 * radius, rel=1e-5)
    np.testing.assert_allclose(run.q[4, :3], run.q[0, :3], atol=1e-5 * max(1.0, radius))
    assert np.abs(run.energy().error).max() < 1e-6 * run.energy().total[0]
