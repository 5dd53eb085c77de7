"""Cases with known ends for measuring the order of the integrators; no test lives here.

``python -m tests.integrate.orders`` prints the measured orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pinloop as pl

from ..screw_tables import Array
from ..states import carried, one_body, robot

ORDERS = {
    "euler": 1,
    "heun": 2,
    "bs32": 3,
    "rk4": 4,
    "dopri5": 5,
    "dop853": 8,
    "radau5": 5,
    "radau9": 9,
}
SPACES = {
    "SE3": one_body(),
    "SO3xR3": one_body(coordinates="SO3xR3"),
    "ball joint": one_body("spherical"),
    "plane": one_body("planar"),
    "wheel": one_body("revolute", coordinates="circle"),
    "all pairs": robot("every-pair"),
    "delta": robot("delta"),
    "arm": robot("six-axis-arm"),
}
"""Robots with all kinds of configuration groups."""
GRAVITY = np.array([0.0, 0.0, -9.81])
PRINCIPAL = (0.36, 0.306, 0.09)
SPIN = np.array([1.0, 4.0, 2.0])


@dataclass
class Case:
    """A motion whose end is known.

    Args:
        robot: the mechanism.
        q: configuration at the start.
        v: velocity at the start.
        until: end [s].
        error: what a state at the end misses.
        steps: numbers of steps by method, rather coarse; twice as many are taken, too.
        options: further arguments of `simulate`.
    """

    robot: pl.Mechanism
    q: Array
    v: Array
    until: float
    error: Callable[[Array, Array], float]
    steps: dict[str, int]
    options: dict[str, Any] = field(default_factory=dict)


def rigid_body(
    inertia: Array, torque: Callable[[Array], Array], w: Array, until: float
) -> tuple[Array, Array]:
    """Rotation and body rates of a rigid body, from Euler's equations with Euler parameters."""

    def rate(t: float, y: Array) -> Array:
        e, e0, w = y[:3], y[3], y[4:]
        R = Rotation.from_quat(y[:4]).as_matrix()
        spin = np.linalg.solve(inertia, torque(R) - np.cross(w, inertia @ w))
        return np.concatenate([0.5 * (e0 * w + np.cross(e, w)), [-0.5 * e @ w], spin])

    start = np.concatenate([[0.0, 0.0, 0.0, 1.0], w])
    y = solve_ivp(rate, (0, until), start, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return Rotation.from_quat(y[:4]).as_matrix(), y[4:]


def free_body(space: Any) -> Case:
    """A body of three different moments in free fall."""
    until, velocity = 1.0, np.array([1.0, 2.0, 3.0])
    R, w = rigid_body(np.diag(PRINCIPAL), lambda R: np.zeros(3), SPIN, until)
    where = velocity * until + 0.5 * GRAVITY * until**2
    body = one_body(mass=2.0, inertia=PRINCIPAL, coordinates=space)

    def error(q: Array, v: Array) -> float:
        T = body.placement(q, "body")
        return float(
            np.abs(T.rotation - R).max()
            + np.abs(T.translation - where).max()
            + np.abs(v[3:] - w).max()
        )

    steps = {
        "euler": 200,
        "heun": 50,
        "bs32": 60,
        "rk4": 40,
        "dopri5": 40,
        "dop853": 5,
        "radau5": 20,
        "radau9": 5,
    }
    return Case(body, body.neutral, np.r_[velocity, SPIN], until, error, steps)


def heavy_top(space: Any = None, **options: Any) -> Case:
    """The heavy top of paper 2: on a ball joint, or as a free body with the joint closed."""
    mass, arm, until = 21.6, np.array([0.5, 0.0, 0.0]), 0.4
    inertia = np.diag(PRINCIPAL) + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    R, w = rigid_body(inertia, lambda R: np.cross(arm, mass * R.T @ GRAVITY), SPIN, until)
    machine = one_body("spherical", mass=mass, com=arm.tolist(), inertia=PRINCIPAL)
    q, v = machine.neutral, SPIN
    if space is not None:
        absolute = machine.absolute(space)
        q, v = carried(machine, q, v, absolute)
        machine = absolute

    def error(q: Array, v: Array) -> float:
        T = machine.placement(q, "body")
        return float(np.abs(T.rotation - R).max() + np.abs(v[-3:] - w).max())

    steps = {
        "euler": 100,
        "heun": 80,
        "bs32": 30,
        "rk4": 40,
        "dopri5": 32,
        "dop853": 6,
        "radau5": 16,
        "radau9": 4,
    }
    return Case(machine, q, v, until, error, steps, options)


@cache
def _four_bar_end() -> tuple[Array, Array]:
    case = four_bar()
    fine = pl.MuntheKaas("dop853", step=case.until / 120)
    run = pl.simulate(case.robot, case.q, case.v, until=case.until, method=fine)
    return run.q[-1], run.v[-1]


def four_bar(**options: Any) -> Case:
    """A four-bar under gravity, against many steps of the method of highest order."""
    machine = robot("four-bar")
    v = pl.consistent_velocity(machine, machine.neutral, {"crank": 3.0})

    def error(q: Array, v: Array) -> float:
        q_end, v_end = _four_bar_end()
        return float(np.abs(q - q_end).max() + np.abs(v - v_end).max())

    steps = {
        "euler": 100,
        "heun": 40,
        "bs32": 30,
        "rk4": 30,
        "dopri5": 24,
        "dop853": 4,
        "radau5": 12,
        "radau9": 4,
    }
    return Case(machine, machine.neutral, v, 0.2, error, steps, options)


CASES: dict[str, Callable[[], Case]] = {
    "free body, SE3": lambda: free_body(""),
    "free body, SO3xR3": lambda: free_body("SO3xR3"),
    "top, ball joint": heavy_top,
    "top, SE3": lambda: heavy_top("SE3"),
    "top, SO3xR3": lambda: heavy_top("SO3xR3"),
    "top, SO3xR3, not stabilized": lambda: heavy_top("SO3xR3", stabilization=None),
    "four-bar": four_bar,
    # Tight, so that all steps are projected: a threshold would bend the slope.
    "four-bar, M-orthogonal": lambda: four_bar(stabilization=pl.Projection(1e-14, "mass")),
    "four-bar, not stabilized": lambda: four_bar(stabilization=None),
}


def errors(case: Case, method: str, doublings: int = 1) -> list[float]:
    """Errors at the end with the coarse step and after halving it."""
    found = []
    for k in range(doublings + 1):
        step = case.until / (case.steps[method] * 2**k)
        run = pl.simulate(
            case.robot, case.q, case.v, until=case.until,
            method=pl.MuntheKaas(method, step=step), **case.options,
        )  # fmt: skip
        found.append(case.error(run.q[-1], run.v[-1]))
    return found


def measured_orders() -> dict[str, dict[str, float]]:
    """Per case and method the observed order."""
    table = {}
    for name, make in CASES.items():
        case = make()
        ends = {method: errors(case, method) for method in case.steps}
        table[name] = {method: float(np.log2(e[0] / e[1])) for method, e in ends.items()}
    return table


if __name__ == "__main__":
    print(" " * 30, *(f"{method:>8}" for method in ORDERS))
    for name, row in measured_orders().items():
        print(f"{name:30}", *(f"{order:8.2f}" for order in row.values()))
