"""Tests of `pinloop.simulation.passages`: motions that go through singular poses on their branch.

The oracle is a row of parallelograms (`windows`, the benchmark A02 of IFToMM's library for one
cart-less row): as long as all bars stay parallel it has one freedom, the angle of its bars, and its
equation in closed form. In its flat poses ``count + 1`` freedoms meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import newton

import pinloop as pl
from pinloop.constraints.rows import BoundRow, Row, Terms
from pinloop.integrate import NoBranch
from pinloop.simulation.initial_state import obstacle
from pinloop.simulation.passages import Passage, open_passage

from .. import screw_tables as tables
from ..linkages import windows
from ..mechanisms import X, Z
from ..screw_tables import Array
from ..states import URDF, carried
from .test_tangents import FLAT, FORMULATIONS, flat, random_bars, rates, tangents

GRAVITY = 9.81


def size(count: int) -> tuple[float, float, float]:
    """Mass [kg], first and second moment of the bars' rotation [kg m, kg m^2]."""
    thin = 1e-9 * (count + 1)  # what `rod` is turned about its own line
    return 2.0 * count + 1, (3 * count + 1) / 2, (4 * count + 1) / 3 + thin


def angle_after(count: int, time: float, angle: float = np.pi / 2, rate: float = -1.0) -> float:
    """``I th'' = -g S cos th``, from bars upright with their tops at 1 m/s."""
    _, S, I = size(count)
    motion = solve_ivp(
        lambda t, y: [y[1], -GRAVITY * S * np.cos(y[0]) / I],
        (0, time), [angle, rate], method="DOP853", rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    return float(motion.y[0, -1])


def parallel(robot: pl.Mechanism, angle: float, rate: float) -> tuple[Array, Array]:
    """All bars at an angle against x [rad], turning at a rate [rad/s]."""
    q, v = robot.neutral, np.zeros(robot.nv)
    for name in robot.joints:
        at = robot.coordinates(name)
        if name != "slide":
            sign = 1.0 if name.startswith("low") else -1.0
            q[at.q], v[at.v] = sign * (angle - np.pi / 2), sign * rate
    return q, v


def angle_of(robot: pl.Mechanism, q: Array) -> float:
    return float(q[robot.coordinates("low0").q][0] + np.pi / 2)


def swing(count: int, time: float, method: pl.MuntheKaas) -> tuple[float, float]:
    """Error of the angle after a swing through flat poses [rad], part of the energy missed."""
    robot = tables.build(windows(count))
    run = pl.simulate(robot, *parallel(robot, np.pi / 2, -1.0), until=time, method=method)
    energy = run.energy()
    missed = np.abs(energy.error).max() / np.ptp(energy.potential)
    return abs(angle_of(robot, run.q[-1]) - angle_after(count, time)), float(missed)


def precise(name: str, rtol: float) -> pl.MuntheKaas:
    return pl.MuntheKaas(name, rtol=rtol, atol=rtol)


METHODS = [
    (precise("dopri5", 1e-6), 2e-5),
    (precise("dopri5", 1e-8), 1e-7),
    (precise("dopri5", 1e-10), 2e-9),
    (precise("dopri5", 1e-12), 4e-10),
    (precise("dop853", 1e-6), 5e-5),
    (precise("dop853", 1e-8), 1e-7),
    (precise("dop853", 1e-10), 2e-9),
    (precise("dop853", 1e-12), 4e-10),
    (precise("radau5", 1e-6), 1e-6),
    (precise("radau5", 1e-8), 5e-9),
    (precise("radau9", 1e-9), 4e-10),
    (pl.MuntheKaas("rk4", step=1e-2), 2e-7),
    (pl.MuntheKaas("rk4", step=5e-3), 1e-8),
    (pl.MuntheKaas("rk4", step=2e-3), 4e-10),
    (pl.MuntheKaas("rk4", step=1e-3), 4e-10),
    (pl.MuntheKaas("radau5", step=1e-2), 4e-8),
    (pl.MuntheKaas("radau9", step=2.5e-2), 4e-10),
]


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize(("method", "error"), METHODS)
def test_windows_swing_through_flat_poses(count: int, method: pl.MuntheKaas, error: float) -> None:
    """The smaller the tolerance or the step, the smaller the error; four poses are passed.

    Down to what rounding leaves: smaller tolerances and steps gain nothing, and lose nothing.
    """
    off, missed = swing(count, 4.0, method)
    assert off < error and missed < 0.1 * error + 1e-11


@pytest.mark.parametrize("formulation", [None, pl.Augmented()], ids=["kernel", "Python"])
@pytest.mark.parametrize("seed", range(12))
def test_no_step_leads_across_a_flat_pose_but_on_its_branch(
    seed: int, formulation: pl.Augmented | None
) -> None:
    """Long ones begin and end far from it; their energy was off by up to fifteen tolerances."""
    rng = np.random.default_rng(seed)
    robot, rtol = tables.build(windows(1 + seed % 3)), 10 ** rng.uniform(-9.0, -5.0)
    state = parallel(robot, rng.uniform(0.1, 3.0), rng.choice([-1.0, 1.0]) * rng.uniform(2.0, 8.0))
    options: dict[str, Any] = {} if formulation is None else {"formulation": formulation}
    run = pl.simulate(robot, *state, until=2.0, method=precise("dop853", rtol), **options)
    assert run.inner is not None
    on_branch = np.asarray(np.isfinite(run.inner).all(axis=(1, 2)))
    above = np.sin(np.array([angle_of(robot, q) for q in run.q])) > 0.0
    across = above[1:] ^ above[:-1]
    assert across.any() and on_branch[across].all()
    assert np.abs(run.energy().error).max() < 2 * rtol * run.energy().kinetic.max()


def test_between_its_states_a_passage_is_as_accurate(tmp_path: Path) -> None:
    """Also once the run is over, and the branch that it was on is not known any more."""
    robot = tables.build(windows(2))
    method = pl.MuntheKaas("dop853", rtol=1e-11, atol=1e-11)
    run = pl.simulate(robot, *parallel(robot, np.pi / 2, -1.0), until=2.0, method=method)
    assert run.inner is not None
    on_branch = np.flatnonzero(np.isfinite(run.inner).all(axis=(1, 2)))
    assert 0 < len(on_branch) < len(run.t) - 1
    middle = 0.5 * (run.t[:-1] + run.t[1:])
    loaded = pl.load_trajectory(run.save(tmp_path / "passage"))
    for k in (*on_branch[:6], *range(0, len(middle), 9)):
        angle = angle_of(robot, run(middle[k]).q)
        assert abs(angle - angle_after(2, float(middle[k]))) < 4e-9
        assert angle == angle_of(robot, loaded(middle[k]).q)


@pytest.mark.parametrize(
    ("name", "order", "steps"),
    [("rk4", 4, (0.02, 0.01, 0.005)), ("radau5", 5, (0.025, 0.0125))],
)
def test_fixed_steps_keep_their_order(name: str, order: int, steps: tuple[float, ...]) -> None:
    """Of the largest error at some times: at a single one its terms may cancel, as at 2 s."""
    robot, errors = tables.build(windows(2)), []
    times = 0.8 + 0.2 * np.arange(7)
    want = np.array([angle_after(2, t) for t in times])
    for h in steps:
        method = pl.MuntheKaas(name, step=h)
        run = pl.simulate(robot, *parallel(robot, np.pi / 2, -1.0), until=2.0, method=method)
        at = np.rint(times / h).astype(int)
        np.testing.assert_allclose(run.t[at], times, rtol=1e-12)
        errors.append(np.abs([angle_of(robot, q) for q in run.q[at]] - want).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, order, atol=0.1)


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("space", [None, "SE3", "SO3xR3"])
def test_every_formulation_passes_in_all_coordinates(space: Any, formulation: Any) -> None:
    robot = tables.build(windows(2))
    q, v = parallel(robot, np.pi / 2, -1.0)
    there = robot.absolute(space) if space else robot
    state = carried(robot, q, v, there) if space else (q, v)
    method = pl.MuntheKaas("dopri5", rtol=1e-9, atol=1e-9)
    run = pl.simulate(there, *state, until=1.5, method=method, formulation=formulation)
    want, _ = carried(robot, *parallel(robot, angle_after(2, 1.5), 0.0), robot.absolute("SE3"))
    got = run.q[-1]
    if space is None:
        got, _ = carried(robot, got, 0 * v, robot.absolute("SE3"))
    if space != "SO3xR3":  # signs of quaternions are free
        signs = np.sign(np.sum((got * want).reshape(-1, 7)[:, 3:], axis=1))
        got = got.reshape(-1, 7).copy()
        got[:, 3:] *= signs[:, None]
        np.testing.assert_allclose(got.ravel(), want, atol=1e-6)
    assert np.abs(run.energy().error).max() < 1e-5


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_absolute_coordinates_converge(space: Any) -> None:
    robot = tables.build(windows(2))
    there = robot.absolute(space)
    state = carried(robot, *parallel(robot, np.pi / 2, -1.0), there)
    upright = parallel(robot, angle_after(2, 2.0), 0.0)[0]

    def turned(machine: pl.Mechanism, q: Array) -> Array:
        data = machine.model.createData()
        pin.framesForwardKinematics(machine.model, data, q)
        return np.asarray(data.oMf[machine.model.getFrameId("bar0")].rotation)

    def off(method: pl.MuntheKaas) -> float:
        run = pl.simulate(there, *state, until=2.0, method=method)
        assert np.abs(run.energy().error).max() < 1e-3 * run.energy().kinetic.max()
        return float(np.linalg.norm(pin.log3(turned(robot, upright).T @ turned(there, run.q[-1]))))

    for rtol, error in ((1e-6, 5e-4), (1e-8, 2e-6), (1e-10, 1e-8)):
        assert off(precise("dopri5", rtol)) < error
    errors = [off(pl.MuntheKaas("rk4", step=h)) for h in (2e-2, 1e-2, 5e-3)]
    assert errors[2] < 2e-6 and np.log2(errors[0] / errors[2]) / 2 > 3.5


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_absolute_coordinates_converge_down_to_rounding(space: Any) -> None:
    """Where branches bend more nodes are closer, if that tells them better: or 1e-7 J stay."""
    robot = tables.build(windows(1))
    there = robot.absolute(space)
    start = carried(robot, *parallel(robot, np.pi / 2, -1.0), there)
    for rtol, error in ((1e-10, 3e-8), (1e-12, 1e-9)):
        run = pl.simulate(there, *start, until=2.0, method=precise("dop853", rtol))
        assert np.abs(run.energy().error).max() < error


# -- more freedoms ----------------------------------------------------------------------------


def cart_after(count: int, time: float) -> tuple[float, float]:
    """Place of the cart and angle of the bars, by Lagrange's equations of the two."""
    m, S, I = size(count)
    m += 2.0

    def slope(t: float, y: Array) -> Array:
        _, th, dx, dth = y
        A = np.array([[m, -S * np.sin(th)], [-S * np.sin(th), I]])
        b = np.array([S * np.cos(th) * dth**2, -GRAVITY * S * np.cos(th)])
        return np.array([dx, dth, *np.linalg.solve(A, b)])

    start = [0, np.pi / 2, 0, -1.0]
    motion = solve_ivp(slope, (0, time), start, method="DOP853", rtol=1e-12, atol=1e-13)
    return float(motion.y[0, -1]), float(motion.y[1, -1])


@pytest.mark.parametrize("rtol", [1e-8, 1e-10])
@pytest.mark.parametrize("count", [1, 2])
def test_windows_on_a_cart(count: int, rtol: float) -> None:
    robot = tables.build(windows(count, on_cart=True))
    method = pl.MuntheKaas("dopri5", rtol=rtol, atol=rtol)
    run = pl.simulate(robot, *parallel(robot, np.pi / 2, -1.0), until=4.0, method=method)
    x, angle = cart_after(count, 4.0)
    # Beside the tolerance, what rounding leaves of accelerations in passages (1e-10) grows to 1e-8.
    rounding = 5e-8
    slide = run.q[-1][robot.coordinates("slide").q][0]
    assert slide == pytest.approx(x, abs=25 * rtol + rounding)
    assert angle_of(robot, run.q[-1]) == pytest.approx(angle, abs=100 * rtol + rounding)


RADIUS = 0.3
"""How far the cart goes per angle of the bars [m/rad]."""


@dataclass(frozen=True)
class Geared(Row):
    """The cart goes with a bar, as a row on velocities alone.

    Args:
        bar: the bar.
        wave: part by which the radius changes, with the sine of the bar's angle from upright.
    """

    bar: str = "low0"
    wave: float = 0.0

    def radius(self, angle: float) -> float:
        return RADIUS * (1.0 + self.wave * float(np.sin(angle)))

    def bind(self, robot: pl.Mechanism) -> BoundRow:
        return _BoundGear(robot, self)


class _BoundGear(BoundRow):
    labels, holonomic, angular = ("gear",), False, (False,)

    def __init__(self, robot: pl.Mechanism, gear: Geared) -> None:
        self._gear, self._bar = gear, robot.coordinates(gear.bar)
        self._J = np.zeros((1, robot.nv))
        self._J[0, robot.coordinates("slide").v] = 1.0

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        J, angle, rate = self._J.copy(), q[self._bar.q][0], v[self._bar.v][0]
        J[0, self._bar.v] = -self._gear.radius(angle)
        bend = RADIUS * self._gear.wave * np.cos(angle)
        return J, np.zeros(1), np.array([-bend * rate**2])


@pytest.mark.parametrize("wave", [0.0, 0.6])
def test_rows_on_velocities_hold_in_a_passage(wave: float) -> None:
    """``dx = r dth``: ``(m r^2 - 2 r S sin th + I) th'' = S cos th (r th'^2 - g) + ...``.

    A radius that changes with the angle adds ``(S sin th - m r) r' th'^2``.
    """
    gear = Geared(wave=wave)
    robot = tables.build(windows(2, on_cart=True))
    m, S, I = size(2)
    q, v = parallel(robot, np.pi / 2, -1.0)
    v[robot.coordinates("slide").v] = -gear.radius(0.0)
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    run = pl.simulate(robot, q, v, until=3.0, rows=[gear], method=method)

    def slope(t: float, y: Array) -> list[float]:
        th, dth, _ = y
        r, bend = gear.radius(th - np.pi / 2), RADIUS * wave * np.cos(th - np.pi / 2)
        inertia = (m + 2) * r**2 - 2 * r * S * np.sin(th) + I
        force = S * np.cos(th) * (r * dth**2 - GRAVITY)
        force += (S * np.sin(th) - (m + 2) * r) * bend * dth**2
        return [dth, force / inertia, r * dth]

    start = [np.pi / 2, -1.0, 0.0]
    want = solve_ivp(slope, (0, 3), start, method="DOP853", rtol=1e-12, atol=1e-13)
    assert angle_of(robot, run.q[-1]) == pytest.approx(want.y[0, -1], abs=1e-7)
    x = run.q[-1][robot.coordinates("slide").q][0]
    assert x == pytest.approx(want.y[2, -1], abs=1e-7)


def test_a_locked_axis_of_a_ball_joint_does_not_turn_in_a_passage() -> None:
    """That lock is a row on velocities; what hangs on the joint moves as it does by itself."""
    top = tables.table("top", tables.joint("ball", "spherical", "ground", "top", np.zeros(3)))
    both = windows(2)
    robot = tables.build(both | {part: both[part] + top[part] for part in ("bodies", "joints")})
    alone = tables.build(top)
    turning = np.array([2.0, -1.5, 0.0])
    q, v = parallel(robot, np.pi / 2, -1.0)
    at = robot.coordinates("ball")
    q[at.q], v[at.v] = pin.Quaternion.Identity().coeffs(), turning
    locks = pl.Mode(pl.simulation.Locked("ball", ("wz",)))
    method = pl.MuntheKaas(rtol=1e-10, atol=1e-10)
    run = pl.simulate(robot, q, v, until=2.0, mode=locks, method=method)
    other = pl.simulate(alone, alone.neutral, turning, until=2.0, mode=locks, method=method)
    assert not run.v[:, at.v][:, 2].any()
    assert run.v[-1, at.v] == pytest.approx(other.v[-1], abs=1e-7)
    assert abs(angle_of(robot, run.q[-1]) - angle_after(2, 2.0)) < 4e-8


def test_rows_on_velocities_hold_where_the_branch_is_curved() -> None:
    """A four-bar on a cart that is geared to its rocker passes its flat pose, and comes back."""
    bars = (0.6, 0.5, 0.4)
    robot = flat(bars, on_cart=True)
    rocker = float(tangents(bars)[0])
    v = np.concatenate([[RADIUS * 15.0 * rocker], 15.0 * rates(bars, 1.0, rocker)])
    q = pl.assemble(robot, robot.integrate(robot.neutral, -0.01 * v), limits=False)
    v = pl.consistent_velocity(robot, q, {"left": 15.0, "slide": 0.0})
    v[robot.coordinates("slide").v] = RADIUS * v[robot.coordinates("right").v]
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    options = {"rows": [Geared("right")], "method": method, "until": 0.04}
    run = pl.simulate(robot, q, v, **options)  # type: ignore[arg-type]
    left = run.q[:, robot.coordinates("left").q]
    assert left[0] * left[-1] < 0.0, "it has not passed"
    assert np.abs(run.energy().error).max() < 1e-8 * run.energy().kinetic.max()
    travel = np.ptp(run.q[[0, -1]][:, robot.coordinates("slide").q])
    turn = np.ptp(run.q[[0, -1]][:, robot.coordinates("right").q])
    assert travel == pytest.approx(RADIUS * turn, rel=1e-8)


@pytest.mark.parametrize("speed", [0.0, 3.0])
def test_a_driven_crank_takes_the_others_along(speed: float) -> None:
    """A prescribed motion leaves no freedom; on a cart there is one more."""
    for cart in (False, True):
        robot = tables.build(windows(2, on_cart=cart))
        q, v = parallel(robot, 0.8, -speed - 1.0)
        drive = pl.constraints.Prescribed(
            "low0",
            lambda t: (0.8 - np.pi / 2 - t - speed * np.sin(t), -1 - speed * np.cos(t),
                       speed * np.sin(t)),
        )  # fmt: skip
        run = pl.simulate(robot, q, v, until=1.5, rows=[drive])
        for k in range(3):
            angle = run.q[-1][robot.coordinates(f"low{k}").q][0] + np.pi / 2
            assert angle == pytest.approx(0.8 - 1.5 - speed * np.sin(1.5), abs=1e-6)
        if cart:  # nothing from outside acts along x
            mass, S = size(2)[0] + 2.0, size(2)[1]
            x, low = (robot.coordinates(name) for name in ("slide", "low0"))
            cosine = np.cos(run.q[:, low.q.start])  # of the angle from upright
            momentum = mass * run.v[:, x.v.start] - S * cosine * run.v[:, low.v.start]
            np.testing.assert_allclose(momentum, momentum[0], atol=1e-5)


@pytest.mark.parametrize("geared", [False, True])
def test_a_passage_moves_on_with_a_drive(geared: bool) -> None:
    """States of the driven row are on the branch already, before, in and behind the flat pose.

    With a cart that is geared to a bar nothing is free any more.
    """
    robot = pl.regularize(tables.build(windows(2, on_cart=True)))
    drive = pl.constraints.Prescribed("low0", lambda t: (0.2 - np.pi / 2 - t, -1.0, 0.0))
    equations = pl.EquationsOfMotion(robot, rows=[drive, Geared()] if geared else [drive])
    speed = -RADIUS if geared else 0.4

    def state(t: float) -> tuple[Array, Array]:
        q, v = parallel(robot, 0.2 - t, -1.0)
        q[robot.coordinates("slide").q], v[robot.coordinates("slide").v] = speed * t, speed
        return q, v

    passage = open_passage(equations, 0.0, *state(0.0))
    for t in (0.0, 0.1, 0.19, 0.2, 0.3):
        q, v = state(t)
        # What the rows ask for does not hang on the velocity that is projected.
        q, v = passage.project(t, q, 1.1 * v if geared else v)
        np.testing.assert_allclose(q, state(t)[0], atol=1e-9)
        np.testing.assert_allclose(v, state(t)[1], atol=1e-8)


# -- other mechanisms ---------------------------------------------------------------------------


def there_and_back(robot: pl.Mechanism, q: Array, v: Array, time: float) -> tuple[Any, float]:
    """A run, and how far it is off its start when it is run back."""
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    run = pl.simulate(robot, q, v, until=time, method=method)
    back = pl.simulate(robot, run.q[-1], -run.v[-1], until=time, method=method)
    return run, float(np.abs(pin.difference(robot.model, q, back.q[-1])).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("which", [0, 1])
def test_flat_four_bars_go_on_along_their_tangent(seed: int, which: int) -> None:
    """Two branches cross; the run starts on one, passes, and turns at that one's ratio."""
    bars = random_bars(seed)
    robot = flat(bars)
    rocker = float(tangents(bars)[which])
    speed = 20.0 / max(1.0, abs(rocker))
    ahead = -0.01 * rates(bars, speed, speed * rocker)
    robot_at = pl.assemble(robot, robot.integrate(robot.neutral, ahead), limits=False)
    v = pl.consistent_velocity(robot, robot_at, {"left": speed})
    run, off = there_and_back(robot, robot_at, v, 0.02)
    assert off < 1e-7 and np.abs(run.energy().error).max() < 1e-8 * run.energy().kinetic.max()
    passed = np.abs(run.q[:, 0]).argmin()
    assert run.q[0, 0] * run.q[-1, 0] < 0.0, "it has not passed"
    near = run.v[passed]
    assert near[2] / near[0] == pytest.approx(rocker, abs=0.2 * np.ptp(tangents(bars)))


@pytest.mark.parametrize("name", FLAT)
def test_other_mechanisms_pass_both_ways(name: str) -> None:
    robot, q = FLAT[name]()
    equations = pl.EquationsOfMotion(pl.regularize(robot))
    free = np.linalg.svd(equations.terms(0.0, q, np.zeros(robot.nv))[0])[2][-2:].T
    v = free @ (free.T @ np.ones(robot.nv))
    trouble = obstacle(equations, 0.0, q, v)
    v = v if trouble is None else trouble.v
    run, off = there_and_back(robot, q, 20.0 * v / np.abs(v).max(), 0.03)
    assert off < 1e-7
    assert np.abs(run.energy().error).max() < 1e-7 * run.energy().kinetic.max()


ON_BRANCH = {
    "parallelogram": [1.0, -1.0, 1.0],
    "three cranks": [1.0, 1.0, 1.0, 1.0],
    "spherical four-bar": [-0.521376, 1.0, -0.628435],
}
"""Rates with which linkages go on from their flat pose."""


@pytest.mark.parametrize("name", FLAT)
def test_other_mechanisms_converge(name: str) -> None:
    """To a run with tolerances of 1e-12, and so does their energy; steps of rk4 keep its order."""
    robot, q = FLAT[name]()
    along = np.array(ON_BRANCH[name])
    q = pl.assemble(robot, robot.integrate(q, -0.15 * along), limits=False)
    fastest = robot.joints[int(np.abs(along).argmax())]
    v = pl.consistent_velocity(robot, q, {fastest: 8.0})

    def run(method: pl.MuntheKaas) -> pl.Trajectory:
        return pl.simulate(robot, q, v, until=0.3, method=method)

    def off(run: pl.Trajectory) -> float:
        return float(np.abs(robot.difference(run.q[-1], want)).max())

    want = run(precise("dop853", 1e-12)).q[-1]
    for method in ("dopri5", "dop853"):
        for rtol in (1e-6, 1e-8, 1e-10):
            moved = run(precise(method, rtol))
            assert off(moved) < 5.0 * rtol
            assert np.abs(moved.energy().error).max() < 5.0 * rtol * moved.energy().kinetic.max()
    errors = [off(run(pl.MuntheKaas("rk4", step=0.3 / n))) for n in (20, 80, 960)]
    # Rows that are less regular in one step than in another give it another constant.
    assert errors[-1] < 2e-9 and errors[1] < errors[0] / 4.0**2.5


def folding_delta() -> tuple[pl.Mechanism, Array, Array]:
    """A delta robot whose first two rods come into the line of their balls, with its first arm.

    There they fold flat, and their arm is at the end of its reach. The first arm stands still, its
    rods swing from upright into the line, and the other arms follow as far as rods are long.
    """
    robot = pl.load(URDF / "delta.urdf")
    length, down = 0.8, np.array([-0.6, 0.0, -0.8])

    def elbow(leg: int, angle: float) -> Array:
        foot = np.array([0.2, 0.0, 1.2]) + pin.utils.rotate("y", angle) @ [0.336, 0.0, -0.098]
        return np.asarray(pin.utils.rotate("z", 2 * np.pi / 3 * leg) @ foot)

    def stretch(angle: float, leg: int, ball: Array) -> float:
        return float(np.sum((elbow(leg, angle) - ball) ** 2)) - length**2

    def arms(part: float, first: float, others: Array) -> Array:
        lean = 0.5 * np.pi * part
        rod = length * (np.cos(lean) * down + np.sin(lean) * np.array([0.0, 1.0, 0.0]))
        centre = elbow(0, first) + rod - np.array([0.056, 0.0, 0.0])
        found = []
        for leg, angle in zip((1, 2), others, strict=True):
            ball = centre + pin.utils.rotate("z", 2 * np.pi / 3 * leg) @ [0.056, 0.0, 0.0]
            found.append(newton(stretch, angle, args=(leg, ball), tol=1e-14))
        return np.array([first, *found])

    q, angles = pl.assemble(robot), np.zeros(3)
    for part in np.linspace(0.0, 0.97, 40)[1:]:
        angles = arms(part, min(1.0, 1.1 * part), angles[1:])
        q = pl.assemble(robot, q, dict(zip(robot.actuated, angles, strict=True)), limits=False)
    ahead, behind = (arms(0.97 + step, angles[0], angles[1:]) for step in (1e-6, -1e-6))
    rates = dict(zip(robot.actuated, 4.0 * (ahead - behind) / 2e-6, strict=True))
    return robot, q, pl.consistent_velocity(robot, q, rates)


def test_a_delta_robot_folds_its_rods_flat() -> None:
    """Tolerances and steps agree, down to the spins of rods that no load moves."""
    robot, q, v = folding_delta()
    data = robot.model.createData()

    def bend(q: Array) -> float:
        """Sine of the angle between rods and the line of their balls, with its sign."""
        pin.framesForwardKinematics(robot.model, data, q)
        arm, rod = (
            data.oMf[robot.model.getFrameId(name)].rotation for name in ("upper_1", "rod_1a")
        )
        return float((arm.T @ rod)[:, 2] @ [0.6, 0.0, 0.8])

    ends = []
    for method in (precise("dopri5", 1e-6), precise("dop853", 1e-8), pl.MuntheKaas(step=6e-4)):
        run = pl.simulate(robot, q, v, until=0.025, method=method)
        assert np.abs(run.energy().error).max() < 1e-8 * run.energy().kinetic.max()
        ends.append(run.q[-1])
    assert bend(q) > 0.02 and bend(ends[0]) < -0.02, "it has not passed"
    for end in ends[1:]:
        assert np.abs(robot.difference(ends[0], end)).max() < 1e-7


def test_only_around_a_singular_pose_nodes_stand_in_for_a_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Elsewhere a state tells its branch itself, at a tenth of the cost."""
    robot, q, v = folding_delta()
    counts, states, rows = list[int](), list[int](), Passage._rows

    def counted(self: Passage, t: Array, psi: Array) -> tuple[Array, Array, Array]:
        states.append(len(psi))
        return rows(self, t, psi)

    passage = open_passage(pl.EquationsOfMotion(robot), 0.0, q, v)
    monkeypatch.setattr(Passage, "_rows", counted)
    for time in (0.0, 0.0075, 0.02):
        states.clear()
        passage.acceleration(time, robot.integrate(q, time * v), v)
        counts.append(sum(states))
    assert counts[0] < 6 and counts[2] < 6 and counts[1] >= 24


@pytest.mark.parametrize("time", [0.0, 0.0075])
@pytest.mark.parametrize("count", [1, 2])
def test_what_is_held_stays_where_it_is_on_a_branch(count: int, time: float) -> None:
    """Then a state that is projected stays where it is: else motions creep back at every step."""
    robot, q, v = folding_delta()
    equations = pl.EquationsOfMotion(robot)
    passage = open_passage(equations, 0.0, q, v)
    held = np.array([robot.coordinates(name).v.start for name in robot.actuated[1 : count + 1]])
    off = 1e-5 * np.random.default_rng(4).normal(size=robot.nv)
    rough = robot.integrate(robot.integrate(q, time * v), off)
    there, speeds = passage.project(time, rough, v, held)
    kept = robot.difference(rough, there)[held], (speeds - v)[held]
    assert np.abs(kept).max() < 1e-13
    J, _, residual = equations.closure(time, there)
    assert np.abs(residual).max() < 1e-10 and np.abs(J @ speeds).max() < 1e-8
    again, slower = passage.project(time, there, speeds, held)
    assert np.abs(robot.difference(there, again)).max() < 1e-11
    assert slower == pytest.approx(speeds, abs=1e-10)


def test_what_is_held_off_its_branch_is_told() -> None:
    """No state of the branch has all coordinates of one beside it: none is handed out instead."""
    robot, q, v = folding_delta()
    passage = open_passage(pl.EquationsOfMotion(robot), 0.0, q, v)
    off = 1e-5 * np.random.default_rng(4).normal(size=robot.nv)
    with pytest.raises(NoBranch, match="does not lead to where what is held is"):
        passage.project(0.0, robot.integrate(q, off), v, np.arange(robot.nv))


@pytest.fixture(scope="module")
def fallen() -> Array:
    """A delta robot that has fallen from rest for 0.8 s: its rods, in threes, have folded flat."""
    robot = pl.load(URDF / "delta.urdf")
    run = pl.simulate(robot, pl.assemble(robot), until=0.8, method=precise("dop853", 1e-11))
    return np.asarray(run.q[-1])


@pytest.mark.parametrize(
    ("name", "rtol", "most"),
    [
        ("dopri5", 1e-6, 400), ("dopri5", 1e-7, 500), ("dopri5", 1e-10, 1500),
        ("dop853", 1e-8, 500), ("dop853", 1e-10, 900), ("dop853", 1e-12, 12_000),
    ],
)  # fmt: skip
def test_a_falling_delta_robot_takes_as_many_steps_as_its_tolerance_asks_for(
    name: str, rtol: float, most: int, fallen: Array
) -> None:
    """Not as many as rounding would, beside a pose along which it moves for 0.2 s.

    There it hardly moves for a while, and where its velocity points no pose is more regular.
    """
    robot = pl.load(URDF / "delta.urdf")
    run = pl.simulate(robot, pl.assemble(robot), until=0.8, method=precise(name, rtol))
    # Its arms: no load moves the spins of its rods, which have almost no inertia.
    arms = [robot.coordinates(name).q.start for name in robot.actuated]
    assert np.abs(run.q[-1] - fallen)[arms].max() < 10 * rtol + 1e-10
    assert np.abs(run.energy().error).max() < 10 * rtol * run.energy().kinetic.max()
    assert run.evaluations < most


@pytest.mark.parametrize("name", ["dopri5", "dop853"])
@pytest.mark.parametrize("gap", [1e-2, -1e-2, 1e-3, 1e-5, -1e-5, 1e-7, -1e-7, 1e-8])
def test_where_branches_nearly_meet_the_motion_turns(gap: float, name: str) -> None:
    """One bar is longer by a gap: there is no singular pose, and no way across.

    Bars that come from above turn past each other instead: the angle between them grows from zero
    to that of the antiparallelogram. All tolerances agree, and so does the energy.
    """
    entries = windows(1)
    for entry in entries["joints"]:
        if entry["name"] == "low1":
            entry["point"] = X - gap * Z
    robot = pl.from_screws(entries, tolerance=0.0)
    v = pl.consistent_velocity(robot, robot.neutral, {"low0": -1.0})
    ends = []
    for rtol in (1e-8, 1e-10, 1e-12):
        method = pl.MuntheKaas(name, rtol=rtol, atol=rtol)
        run = pl.simulate(robot, robot.neutral, v, until=1.2, method=method)
        # Rows are left open by 1e-14: one over the gap makes of that an error of 20 J.
        most = max(1e3 * rtol, 1e-7, 20 * 1e-14 / abs(gap))
        assert np.abs(run.energy().error).max() < most
        residuals = [pl.Constraints(robot).residual(q) for q in run.q]
        assert np.abs(residuals).max() < 1e-10
        ends.append(run.q[-1])
    assert abs(ends[0][0] - ends[0][2]) > 2.0, "it has jumped to the other branch"
    for end in ends[:-1]:
        assert end == pytest.approx(ends[-1], abs=1e-5)


# -- starts, rest, events -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rate", [2.0, -3.0, 1e-3])
def test_a_start_in_the_flat_pose_follows_its_velocity(count: int, rate: float) -> None:
    robot = tables.build(windows(count))
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    run = pl.simulate(robot, *parallel(robot, 0.0, rate), until=1.0, method=method)
    assert angle_of(robot, run.q[-1]) == pytest.approx(angle_after(count, 1.0, 0.0, rate), abs=1e-8)


@pytest.mark.parametrize("space", ["relative", "SE3", "SO3xR3"])
@pytest.mark.parametrize(("count", "rate"), [(1, 1e-3), (2, 2.0), (3, -3.0)])
def test_a_start_beside_the_flat_pose_is_like_one_in_it(
    count: int, rate: float, space: Any
) -> None:
    """Bars that turn by 1e-9 to 1e-5 less; rows lose rank there, but velocities tell the branch."""
    robot = tables.build(windows(count))
    machine = robot if space == "relative" else robot.absolute(space)
    for distance in (0.0, 1e-9, 1e-8, 1e-7, -1e-7, 1e-6, 1e-5):
        start = parallel(robot, distance, rate)
        run = pl.simulate(
            machine, *(start if machine is robot else carried(robot, *start, machine)), until=0.5,
            method=precise("dop853", 1e-9),
        )  # fmt: skip
        end = run.q[-1] if machine is robot else robot.from_absolute(run.q[-1], run.v[-1])[0]
        off = angle_of(robot, end) - angle_after(count, 0.5, distance, rate)
        assert abs(np.remainder(off + np.pi, 2 * np.pi) - np.pi) < 2e-9  # but for whole turns


@pytest.mark.parametrize("distance", [1e-7, 1e-6, 1e-5, 1e-4])
def test_a_start_beside_the_flat_pose_keeps_its_energy(distance: float) -> None:
    """So close to it the rows tell velocities with few digits; the branch tells the others."""
    bars = (0.6, 0.5, 0.4)
    robot = flat(bars)
    rocker = float(tangents(bars)[0])
    ahead = robot.integrate(robot.neutral, -distance * rates(bars, 1.0, rocker))
    q = pl.assemble(robot, ahead, limits=False)
    v = 3.0 * rates(bars, 1.0, rocker)
    v += 1e-5 * np.array([0.3, -0.2, 0.1])
    try:
        run = pl.simulate(robot, q, v, until=0.2)
    except pl.InconsistentVelocity as refused:
        run = pl.simulate(robot, q, refused.v, until=0.2)
    assert np.abs(run.energy().error).max() < 1e-6 * run.energy().kinetic.max()
    first = run.v[0]
    assert first[2] / first[0] == pytest.approx(rocker, abs=2.0 * distance + 1e-9)


def test_loads_along_a_branch_move_what_rests_in_a_singular_pose() -> None:
    """Both cranks of one window weigh the same."""
    robot = tables.build(windows(1))
    run = pl.simulate(robot, *parallel(robot, 0.0, 0.0), until=1.0)
    assert angle_of(robot, run.q[-1]) == pytest.approx(angle_after(1, 1.0, 0.0, 0.0), abs=1e-6)


def test_neither_velocity_nor_loads_tell_which_branch_it_is() -> None:
    """The crank in the middle carries more than the others: no branch turns them so."""
    robot = tables.build(windows(2))
    with pytest.raises(pl.InconsistentVelocity) as refused:
        pl.simulate(robot, *parallel(robot, 0.0, 0.0), until=1.0)
    text = str(refused.value)
    assert "'windows 2' rests in a singular pose, where branches of its motion meet" in text
    # Each window goes on as a parallelogram, or its bar on the left stays.
    for branch in (
        "('low0' 1, 'left0' -1, 'low1' 1, 'left1' -1, 'low2' 1)",
        "('left0' 1, 'low1' 1, 'left1' -1, 'low2' 1)",
        "('left1' 1, 'low2' 1)",
    ):
        assert text.count(branch) == 1
    pose = "('low0' -1.57, 'left0' 1.57, 'low1' -1.57, 'left1' 1.57, 'low2' -1.57)"
    assert text.count("('") == 4 and text.endswith(f" in the pose {pose}")
    level = tables.build(windows(2) | {"gravity": [0.0, 0.0, 0.0]})
    run = pl.simulate(level, *parallel(level, 0.0, 0.0), until=1.0)
    assert np.ptp(run.q, axis=0).max() == 0.0, "what is in equilibrium rests"


@pytest.mark.parametrize("angle", [0.0, np.pi])
@pytest.mark.parametrize("count", [2, 4, 6])
def test_a_flat_pose_knows_how_many_rows_are_independent(count: int, angle: float) -> None:
    """On the branch along which all bars are parallel one motion is left, of ``count + 1``."""
    robot = pl.regularize(tables.build(windows(count)))
    q, _ = parallel(robot, angle, 0.0)
    assert pl.EquationsOfMotion(robot).around(0.0, q).rank == robot.nv - 1


def test_branches_that_touch_are_named_too() -> None:
    """Three cranks in line: another motion is allowed to first order, and a second time so."""
    robot, q = FLAT["three cranks"]()
    with pytest.raises(pl.InconsistentVelocity, match=r"such as \('low0' 1, 'top0' 1, 'low1' 1, "):
        pl.simulate(robot, q, until=1.0)


@pytest.mark.parametrize("count", [1, 2])
def test_what_comes_free_in_a_singular_pose_needs_a_load_along_a_branch(count: int) -> None:
    """As at a start: cranks of one window weigh the same, of two the middle one weighs more."""
    robot = tables.build(windows(count))
    cranks = [name for name in robot.joints if name.startswith("low")]
    options: dict[str, Any] = {
        "until": 0.5, "mode": pl.Mode(cranks),
        "events": [pl.unlock(name, at=0.1) for name in cranks],
    }  # fmt: skip
    with pytest.warns(pl.PinloopWarning, match="is singular"):
        if count == 2:
            here = "branches of the motion meet there"
            with pytest.raises(pl.SimulationFailed, match=here) as failed:
                pl.simulate(robot, *parallel(robot, 0.0, 0.0), **options)
            assert "or faster (branches such as (" in str(failed.value)
            assert "('left1' 1, 'low2' 1)" in str(failed.value)
            assert " in the pose ('low0' -1.57, " in str(failed.value)
            return
        run = pl.simulate(robot, *parallel(robot, 0.0, 0.0), **options)
    want = angle_after(1, 0.4, 0.0, 0.0)
    assert angle_of(robot, run.q[-1]) == pytest.approx(want, abs=1e-6)


def test_an_event_in_the_singular_pose_comes_in_time() -> None:
    robot = tables.build(windows(2))
    seen = pl.stop_when(lambda t, q, v: angle_of(robot, q), name="flat")
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    start = parallel(robot, np.pi / 2, -1.0)
    run = pl.simulate(robot, *start, until=5.0, method=method, events=[seen])
    assert angle_after(2, float(run.t[-1])) == pytest.approx(0.0, abs=1e-8)


def test_accelerations_in_the_passage_are_those_of_the_branch() -> None:
    robot = tables.build(windows(2))
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    start = parallel(robot, 0.4, -3.0)
    run = pl.simulate(robot, *start, until=0.3, method=method, save_every=1e-3)
    _, S, I = size(2)
    angles = run.q[:, 0] + np.pi / 2
    np.testing.assert_allclose(run.a[:, 0], -GRAVITY * S * np.cos(angles) / I, atol=1e-6)
    assert angles[0] > 0.3 and angles[-1] < -0.3
