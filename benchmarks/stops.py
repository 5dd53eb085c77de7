"""How long one stop takes, beside what one would otherwise write, and how accurate both are.

Run with ``python -m benchmarks.stops`` from the root of the repository; MuJoCo is compared if it
is installed. Stops of category 0 of the six-axis arm from random states; errors are those of the
final angles against runs of pinloop at a tolerance of 1e-10.

The first table is the real thing: chain, delay, rise, static torques, everything that `pl.stop`
computes, with its default accuracy. The second compares simulators on what all of them can do:
constant friction of brakes and gears from the start, without delay. SciPy integrates Pinocchio's
``aba`` with the friction smoothed by a tanh, MuJoCo steps with ``frictionloss``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import pinloop as pl

Array = NDArray[np.float64]
State = tuple[Array, Array]

ROBOT = "urdf/six_axis_arm.urdf"
STATES = 40
EXACT = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)


def main() -> None:
    """Print both tables."""
    robot = pl.load(ROBOT)
    brakes = pl.Brakes.from_yaml("urdf/six_axis_arm.brakes.yaml")
    states = _states(robot, np.random.default_rng(0))
    exact = [_angles(pl.stop(robot, *state, brakes=brakes, method=EXACT)) for state in states]
    errors, times, counts = [], [], []
    for state, wanted in zip(states, exact, strict=True):
        result = pl.stop(robot, *state, brakes=brakes)
        times.append(_time(lambda state=state: pl.stop(robot, *state, brakes=brakes)))  # type: ignore[misc]
        errors.append(float(np.abs(_angles(result) - wanted).max()))
        counts.append(result.run.evaluations)
    print(f"stops of category 0, {len(states)} random states, defaults")
    print(f"  time      median {1e3 * statistics.median(times):.1f} ms, ", end="")
    print(f"largest {1e3 * max(times):.1f} ms")
    print(f"  error     median {statistics.median(errors):.0e} rad, largest {max(errors):.0e} rad")
    print(f"  accelerations evaluated: median {statistics.median(counts):.0f}")
    _compare(robot, brakes, states)


def _compare(robot: pl.Mechanism, brakes: pl.Brakes, states: list[State]) -> None:
    """The second table."""
    plain = _plain(brakes)
    exact = [_angles(pl.stop(robot, *state, brakes=plain, method=EXACT)) for state in states]
    ours = _row(states, exact, lambda state: _angles(pl.stop(robot, *state, brakes=plain)))
    print(f"\nconstant friction from the start{'':20s}ms per stop   ratio   error [rad]")
    _print("pinloop, default", ours, ours)
    for width in (1e-1, 1e-2):
        stop = _scipy(robot, plain, width)
        _print(f"SciPy DOP853 + aba, tanh(v/{width:g})", _row(states, exact, stop), ours)
    for step in (1e-3, 1e-4):
        simulate = _mujoco(robot, plain, step)
        if simulate is None:
            print("MuJoCo is not installed (pip install mujoco)")
            break
        _print(f"MuJoCo, implicitfast, {step:g} s", _row(states, exact, simulate), ours)


def _print(name: str, row: tuple[float, float], ours: tuple[float, float]) -> None:
    print(f"  {name:50s}{1e3 * row[0]:11.1f}{row[0] / ours[0]:7.1f}x{row[1]:13.0e}")


def _row(
    states: list[State], exact: list[Array], stop: Callable[[State], Array]
) -> tuple[float, float]:
    """Median time [s] and median error [rad]."""
    errors = [
        float(np.abs(stop(s) - wanted).max()) for s, wanted in zip(states, exact, strict=True)
    ]
    times = [_time(lambda s=s: stop(s), repeat=1) for s in states]  # type: ignore[misc]
    return statistics.median(times), statistics.median(errors)


def _states(robot: pl.Mechanism, rng: np.random.Generator) -> list[State]:
    """Random poses within the limits at random speeds up to the largest."""
    lower, upper = robot.model.lowerPositionLimit, robot.model.upperPositionLimit
    top = robot.model.upperVelocityLimit
    return [
        (rng.uniform(0.8 * lower, 0.8 * upper), top * rng.uniform(-1.0, 1.0, robot.nv))
        for _ in range(STATES)
    ]


def _plain(brakes: pl.Brakes) -> pl.Brakes:
    """Brakes that act at once, hold as much as they slide with, behind gears without loss."""
    joints = {
        name: replace(
            brake, delay=0.0, rise=0.0, static_torque=None, breakaway=None, efficiency=1.0
        )
        for name, brake in brakes.joints.items()
    }
    return replace(brakes, joints=joints, chain=pl.safety.Chain())


def _angles(result: pl.StopResult) -> Array:
    return np.array(result.run.q[-1])


def _friction(robot: pl.Mechanism, brakes: pl.Brakes) -> tuple[Array, Array]:
    """Constant and viscous friction at the joints."""
    dry, viscous = np.zeros(robot.nv), np.zeros(robot.nv)
    for name, brake in brakes.joints.items():
        i = robot.coordinates(name).v.start
        side = brake.gear_ratio if brake.side == "motor" else 1.0
        dry[i] = side * brake.dynamic_torque + brake.coulomb
        viscous[i] = brake.viscous
    return dry, viscous


def _scipy(robot: pl.Mechanism, brakes: pl.Brakes, width: float) -> Callable[[State], Array]:
    """SciPy on Pinocchio with smoothed friction, until half a second is over."""
    model = pin.Model(robot.model)
    data, n = model.createData(), robot.nv
    dry, viscous = _friction(robot, brakes)
    _with_rotors(robot, brakes, model)

    def rate(t: float, y: Array) -> Array:
        v = y[n:]
        tau = -dry * np.tanh(v / width) - viscous * v
        return np.concatenate([v, pin.aba(model, data, y[:n], v, tau)])

    def stop(state: State) -> Array:
        y = np.concatenate(state)
        done = solve_ivp(rate, (0.0, 0.5), y, method="DOP853", rtol=1e-6, atol=1e-6)
        return np.asarray(done.y[:n, -1])

    return stop


def _with_rotors(robot: pl.Mechanism, brakes: pl.Brakes, model: Any) -> None:
    armature = np.array(model.armature)
    for name, brake in brakes.joints.items():
        if brake.rotor_inertia is not None:
            armature[robot.coordinates(name).v.start] = brake.gear_ratio**2 * brake.rotor_inertia
    model.armature = armature


def _mujoco(robot: pl.Mechanism, brakes: pl.Brakes, step: float) -> Callable[[State], Array] | None:
    """MuJoCo on the same URDF with friction at the joints, until half a second is over."""
    try:
        mujoco = import_module("mujoco")
    except ImportError:
        return None
    model = mujoco.MjModel.from_xml_path(ROBOT)
    model.opt.timestep, model.opt.integrator = step, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.dof_frictionloss[:], model.dof_damping[:] = _friction(robot, brakes)
    rotors = pin.Model(robot.model)
    _with_rotors(robot, brakes, rotors)
    model.dof_armature[:] = rotors.armature
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)  # the softness of its constraints follows the inertia

    def stop(state: State) -> Array:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = state
        mujoco.mj_step(model, data, nstep=round(0.5 / step))
        return np.array(data.qpos)

    return stop


def _time(call: Callable[[], object], repeat: int = 3) -> float:
    """Shortest time of a call [s]."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
