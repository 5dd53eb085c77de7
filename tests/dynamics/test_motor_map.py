"""Maps of serial twins as functions: against poses, in NumPy and JAX, in a simulation, as JSON."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import scipy

import pinloop as pl
from pinloop.dynamics import SerialMap, SerialTwin

from ..papers.programs import program
from ..screw_tables import Array
from ..states import close

robots: Any = program("common.serial_robots")
solve_ivp: Any = scipy.integrate.solve_ivp
RANGES = {"pitch": (-0.4, 0.3), "roll": (-0.2, 0.2)}


@pytest.fixture(scope="module")
def twin() -> SerialTwin:
    return pl.serial(robots.ankle(gravity=0.0), ["pitch", "roll"], ranges=RANGES)


@pytest.fixture(scope="module")
def fitted(twin: SerialTwin) -> SerialMap:
    return twin.fit(1e-8)


@pytest.fixture
def jax() -> Iterator[Any]:
    """JAX with double precision."""
    module: Any = pytest.importorskip("jax")
    before = module.config.jax_enable_x64
    module.config.update("jax_enable_x64", True)
    yield module
    module.config.update("jax_enable_x64", before)


def places(twin: SerialTwin, count: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.uniform(twin.ranges[:, 0], twin.ranges[:, 1], (count, len(twin.joints))))


def test_functions_are_within_their_bounds(twin: SerialTwin, fitted: SerialMap) -> None:
    points, rng = places(twin, 60), np.random.default_rng(1)
    poses = twin.along(points)
    assert fitted.position_error <= 1e-8 and fitted.inertia_error <= 1e-6
    for y, motors in zip(points, fitted.motor_positions(points), strict=True):
        close(motors, robots.ankle_motors(*y), fitted.position_error)
    inertia = np.array([pose.inertia for pose in poses])
    close(fitted.inertia(points), inertia, fitted.inertia_error * np.abs(inertia).max())
    rates, torques = rng.normal(size=(2, 60, 2))
    for name, values in (
        ("motor_rates", rates), ("joint_rates", rates), ("motor_torques", torques),
        ("joint_torques", torques), ("inertia_rate", rates), ("coriolis", rates),
    ):  # fmt: skip
        expected = [getattr(x, name)(y) for x, y in zip(poses, values, strict=True)]
        size = float(np.abs(expected).max())
        close(getattr(fitted, name)(points, values) / size, np.array(expected) / size, 1e-5)
    close(fitted.joint_positions(fitted.motor_positions(points)), points, 1e-12)
    assert fitted.motor_positions(points.reshape(3, 20, 2)).shape == (3, 20, 2)


def test_what_is_beyond_is_no_number(fitted: SerialMap) -> None:
    inside, outside = [0.3, 0.2], [0.31, 0.2]
    assert np.isfinite(fitted.motor_positions(inside)).all()
    for function in (fitted.motor_positions, fitted.jacobian, fitted.inertia):
        assert np.isnan(function(outside)).all()
    beyond = robots.ankle_motors(0.32, 0.2)
    assert np.isnan(fitted.joint_positions(beyond)).all()
    both = fitted.joint_positions([beyond, robots.ankle_motors(0.1, 0.1)])
    close(both[1], [0.1, 0.1], 1e-8)


@pytest.mark.parametrize("parallel", [True, False])
def test_followers(parallel: bool) -> None:
    fingers = ["left_knuckle", "left_tip", "right_knuckle", "right_tip"]
    twin = pl.serial(robots.gripper(parallel=parallel), fingers)
    fitted, points = twin.fit(), places(twin, 10, 2)
    expected = [pose.followers for pose in twin.along(points)]
    close(fitted.follower_positions(points), expected, fitted.position_error)


def test_tolerance_that_cannot_be_kept(twin: SerialTwin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinloop.dynamics.motor_fit._DEGREES", (4, 8))
    with pytest.raises(pl.BadValue, match=r"degree 8 are off by .* times the tolerance of 1e-09"):
        twin.fit(1e-9)
    with pytest.raises(pl.BadValue, match="tolerance is 0; it is above 0"):
        twin.fit(0.0)


def test_functions_of_jax(twin: SerialTwin, fitted: SerialMap, jax: Any) -> None:
    points, rng = places(twin, 7, 3), np.random.default_rng(3)
    y, rates = jax.numpy.asarray(points), rng.normal(size=(7, 2))

    def everything(y: Any, v: Any) -> tuple[Any, ...]:
        slopes = jax.jacrev(fitted.motor_positions)(y)
        change = jax.jvp(fitted.inertia, (y,), (v,))[1]
        return fitted.motor_positions(y), fitted.jacobian(y), slopes, fitted.inertia(y), change

    motors, jacobian, slopes, inertia, change = jax.jit(jax.vmap(everything))(y, rates)
    assert isinstance(motors, jax.Array)
    for there, here in (
        (motors, fitted.motor_positions(points)), (jacobian, fitted.jacobian(points)),
        (slopes, fitted.jacobian(points)), (inertia, fitted.inertia(points)),
        (change, fitted.inertia_rate(points, rates)),
    ):  # fmt: skip
        close(np.asarray(there), here, 1e-12)

    def back(motors: Any, v: Any) -> Any:
        return jax.jvp(fitted.joint_positions, (motors,), (v,))

    joints, turned = jax.jit(jax.vmap(back))(motors, fitted.motor_rates(points, rates))
    close(np.asarray(joints), points, 1e-12)
    close(np.asarray(turned), rates, 1e-9)


def test_page_says_how_jax_is_used(fitted: SerialMap, jax: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "serial_twin.md"
    code = page.read_text(encoding="utf-8").partition("<!-- run with jax -->\n```py\n")[2]
    names: dict[str, Any] = {"maps": fitted}
    exec(code.partition("```")[0], names)
    y, torques = np.array([0.1, 0.0]), np.array([10.0, 2.0])
    close(np.asarray(names["torques"]), fitted.motor_torques(y, torques), 1e-12)
    close(np.asarray(names["slopes"]), fitted.jacobian(y), 1e-12)


def test_single_precision(fitted: SerialMap) -> None:
    jnp: Any = pytest.importorskip("jax.numpy")
    y = np.array([0.1, -0.1])
    jax: Any = pytest.importorskip("jax")
    motors = jax.jit(fitted.motor_positions)(jnp.asarray(y, dtype=jnp.float32))
    assert motors.dtype == jnp.float32
    close(np.asarray(motors), fitted.motor_positions(y), 1e-5)
    close(np.asarray(jax.jit(fitted.joint_positions)(motors)), y, 1e-5)


def serial_motion(
    model: pin.Model, torque: Any, extra: Any, y: Array, until: float
) -> tuple[Array, Array]:
    """Motion of a tree with more inertia, from rest: its own equations, its own integrator."""
    data, k = model.createData(), len(y)

    def rate(t: float, x: Array) -> Array:
        y, v = x[:k], x[k:]
        inertia, force = extra(y, v)
        M = np.triu(pin.crba(model, data, y))
        M = M + np.triu(M, 1).T + inertia
        rest = torque(t, y) - force - pin.rnea(model, data, y, v, np.zeros(k))
        return np.concatenate([v, np.linalg.solve(M, rest)])

    run = solve_ivp(rate, (0, until), np.append(y, np.zeros(k)), "DOP853", rtol=1e-10, atol=1e-11)
    return run.y[:k, -1], run.y[k:, -1]


def test_simulation_is_that_of_the_robot_with_loops(twin: SerialTwin, fitted: SerialMap) -> None:
    """Driven by the same motors: with all of the inertia exactly, with armature alone nearly."""
    start, until = np.array([0.05, -0.02]), 0.4

    def pull(t: float) -> Array:
        return np.array([0.08 * np.cos(20 * t), 0.06 * np.cos(17 * t)])

    q = twin.at_joints(start).q
    looped = twin.looped
    at = [looped.coordinates(name).v.start for name in twin.motors]

    def torque(t: float, q: Array, v: Array) -> Array:
        force = np.zeros(looped.nv)
        force[at] = pull(t)
        return force

    run = pl.simulate(
        looped, q, until=until, forces=[pl.TorqueFunction(torque)],
        method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10),
    )  # fmt: skip
    places = [looped.coordinates(name).q.start for name in twin.joints]
    moved = run.q[-1][places] - start
    assert np.abs(moved).min() > 0.01
    assert np.isfinite(fitted.motor_positions(run.q[:, places])).all()
    model = twin.robot.model.copy()

    def drive(t: float, y: Array) -> Array:
        return np.asarray(fitted.joint_torques(y, pull(t)))

    def nothing(y: Array, v: Array) -> tuple[Array, Array]:
        return np.zeros((2, 2)), np.zeros(2)

    nearly, _ = serial_motion(model, drive, nothing, start, until)
    model.armature[:] = 0.0
    exact, _ = serial_motion(
        model, drive, lambda y, v: (fitted.inertia(y), fitted.coriolis(y, v)), start, until
    )
    close(exact, run.q[-1][places], 1e-6)
    # What armature at home leaves out is a hundredth of the way; all of it is a tenth.
    without, _ = serial_motion(model, drive, nothing, start, until)
    off, far = (np.abs(x - exact).max() / np.abs(moved).max() for x in (nearly, without))
    assert off < 0.02 < 0.1 < far


# -- files ----------------------------------------------------------------------------------------


def read_alone(path: Path) -> Any:
    """Positions of the motors from the file, with NumPy alone."""
    data = json.loads(path.read_text())
    low, high = np.array(data["ranges"]).T
    terms = np.array(data["coefficients"])

    def motors(joints: Any) -> Array:
        x = (2 * np.asarray(joints) - low - high) / (high - low)
        values = np.polynomial.chebyshev.chebval2d(x[0], x[1], terms)
        return np.asarray(values[: len(data["motors"])])

    return motors


def test_json_holds_all(fitted: SerialMap, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "ankle.serial.json")
    again = SerialMap.load(path)
    y = np.array([0.12, -0.07])
    for name in ("motor_positions", "jacobian", "inertia"):
        np.testing.assert_array_equal(getattr(again, name)(y), getattr(fitted, name)(y))
    close(read_alone(path)(y), fitted.motor_positions(y), 1e-14)
    np.testing.assert_array_equal(again.torque_limits, [[-40, 40], [-30, 30]])
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.jacobian(y), fitted.jacobian(y))
    free = pl.serial(robots.knee(), ["bend"], speeds={"motor": np.inf}).fit()
    path = free.save(tmp_path / "knee.json")
    assert "Infinity" not in path.read_text()
    np.testing.assert_array_equal(SerialMap.load(path).speed_limits, [[-np.inf, np.inf]])
    for text in ("{}", "[1]", "no", '{"format": "pinloop-serial/1", "joints": []}'):
        path.write_text(text)
        with pytest.raises(pl.LoadError, match=r"knee.json: is no map of a serial twin"):
            SerialMap.load(path)
