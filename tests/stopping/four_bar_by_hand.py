"""The four-bar of `mechanisms` in its crank angle alone, in closed form; no test lives here.

With ``c`` the crank angle, ``I(c) c'' + I'(c) c'^2 / 2 + V'(c) = tau``. A torque at another joint
counts as often as that joint turns when the crank turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from ..mechanisms import (
    COUPLER,
    CRANK,
    GROUND_BAR,
    ROCKER,
    START,
    TURN,
    X,
    four_bar_angles,
    planar,
)
from ..tables import Array, mass_points

JOINTS = ("crank", "elbow", "rocker")


@dataclass(frozen=True)
class Rest:
    """Where the crank has come to rest for good.

    Args:
        t: when [s].
        angle: crank angle [rad].
        travels: how far each joint has turned to and fro [rad].
        legs: how often the crank has moved.
    """

    t: float
    angle: float
    travels: dict[str, float]
    legs: int


class FourBar:
    """The linkage.

    Args:
        gravity: downwards [m/s^2].
    """

    def __init__(self, gravity: float = 9.81) -> None:
        self.gravity = gravity
        self.points = {name: mass_points(name) for name in ("crank", "coupler", "rocker")}

    def ratios(self, crank: float) -> dict[str, float]:
        """How far each joint turns per turn of the crank."""
        coupler, rocker = four_bar_angles(crank)
        sides = [planar(angle + np.pi / 2) for angle in (crank, coupler, rocker)]
        across = np.column_stack((COUPLER * sides[1], -ROCKER * sides[2]))[[0, 2]]
        turn = np.linalg.solve(across, -CRANK * sides[0][[0, 2]])
        return {"crank": 1.0, "elbow": float(turn[0]) - 1.0, "rocker": float(turn[1])}

    def _places(self, crank: float) -> tuple[Array, Array, Array]:
        """Masses, places, and how these change with the crank angle."""
        coupler, rocker = four_bar_angles(crank)
        coupler0, rocker0 = four_bar_angles(START)
        ratios = self.ratios(crank)
        turned = {
            "crank": (crank - START, 1.0, 0 * X, 0 * X, 0 * X),
            "coupler": (
                coupler - coupler0, ratios["elbow"] + 1.0, planar(START, CRANK),
                planar(crank, CRANK), planar(crank + np.pi / 2, CRANK),
            ),
            "rocker": (
                rocker - rocker0, ratios["rocker"], GROUND_BAR * X, GROUND_BAR * X, 0 * X,
            ),
        }  # fmt: skip
        masses, places, changes = [], [], []
        for name, (angle, rate, before, now, drift) in turned.items():
            mass, points = self.points[name]
            arms = (points - before) @ pin.exp3(angle * TURN).T
            masses.append(mass)
            places.append(now + arms)
            changes.append(drift + rate * np.cross(TURN, arms))
        return np.concatenate(masses), np.vstack(places), np.vstack(changes)

    def inertia(self, crank: float) -> float:
        """``I(c)`` [kg m^2]."""
        masses, _, changes = self._places(crank)
        return float(masses @ (changes**2).sum(axis=1))

    def inertia_slope(self, crank: float, h: float = 1e-3) -> float:
        """``I'(c)``, by differences of fourth order."""
        far = self.inertia(crank + 2 * h) - self.inertia(crank - 2 * h)
        return (8 * (self.inertia(crank + h) - self.inertia(crank - h)) - far) / (12 * h)

    def load(self, crank: float) -> float:
        """``V'(c)`` [N m]."""
        masses, _, changes = self._places(crank)
        return float(self.gravity * masses @ changes[:, 2])

    def weighted(self, crank: float, torques: Mapping[str, float]) -> float:
        """``sum |dq_i/dc| tau_i``: what dry friction at all joints comes to at the crank."""
        ratios = self.ratios(crank)
        return sum(abs(ratios[name]) * torque for name, torque in torques.items())

    def stop(
        self,
        rate: float,
        slides: Mapping[str, float],
        holds: Mapping[str, float],
        viscous: float = 0.0,
        crank: float = START,
    ) -> Rest:
        """Let it come to rest.

        Args:
            rate: speed of the crank at first [rad/s].
            slides: dry friction at each joint while it moves [N m].
            holds: at rest.
            viscous: at the crank [N m s/rad].
            crank: its angle at first [rad].
        """
        y, t, legs, way = np.array([crank, rate, 0.0, 0.0, 0.0]), 0.0, 0, np.sign(rate)
        while way:
            made = solve_ivp(
                self._rates(way, slides, viscous), (t, t + 20.0), y, "DOP853", rtol=1e-11,
                atol=1e-12, events=_at_rest(way), max_step=0.01,
            )  # fmt: skip
            assert made.status == 1, "it does not stop"
            t, y, legs = float(made.t[-1]), made.y[:, -1].copy(), legs + 1
            y[1], load = 0.0, self.load(y[0])
            way = 0.0 if abs(load) <= self.weighted(y[0], holds) else -np.sign(load)
        travels = dict(zip(JOINTS, map(float, y[2:]), strict=True))
        return Rest(t, float(y[0]), travels, legs)

    def _rates(
        self, way: float, slides: Mapping[str, float], viscous: float
    ) -> Callable[[float, Array], Array]:
        def rates(t: float, y: Array) -> Array:
            crank, rate = y[:2]
            force = -way * self.weighted(crank, slides) - viscous * rate - self.load(crank)
            acceleration = force - 0.5 * self.inertia_slope(crank) * rate**2
            travels = [abs(ratio * rate) for ratio in self.ratios(crank).values()]
            return np.array([rate, acceleration / self.inertia(crank), *travels])

        return rates


def _at_rest(way: float) -> Callable[[float, Array], float]:
    def speed(t: float, y: Array) -> float:
        return float(way * y[1])

    speed.terminal, speed.direction = True, -1  # type: ignore[attr-defined]
    return speed
