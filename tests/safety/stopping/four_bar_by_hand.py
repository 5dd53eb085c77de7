"""The four-bar of `mechanisms` in its crank angle alone, in closed form; no test lives here.

With ``c`` the crank angle, ``I(c) c'' + I'(c) c'^2 / 2 + V'(c) = tau``. A torque at another joint
counts as often as that joint turns when the crank turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from ...mechanisms import COUPLER, CRANK, GROUND_BAR, ROCKER, START, X, four_bar_angles, planar
from ...screw_tables import Array, mass_points

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
    """The linkage, in the plane of x and z.

    Args:
        gravity: downwards [m/s^2].
    """

    def __init__(self, gravity: float = 9.81) -> None:
        self.gravity = gravity
        self.start = (START, *four_bar_angles(START))
        tip = planar(START, CRANK)
        at = {"crank": 0 * X, "coupler": tip, "rocker": GROUND_BAR * X}
        self.bodies = [_flat(name, pivot) for name, pivot in at.items()]

    def ratios(self, crank: float) -> dict[str, float]:
        """How far each joint turns per turn of the crank."""
        coupler, rocker = self._rates_of_bars(crank)
        return {"crank": 1.0, "elbow": coupler - 1.0, "rocker": rocker}

    def _rates_of_bars(self, crank: float) -> tuple[float, float]:
        """How far coupler and rocker turn against the ground per turn of the crank.

        From ``CRANK n(c) + COUPLER n(k) k' = ROCKER n(r) r'`` with normals ``n``, times the
        directions of the other bar.
        """
        coupler, rocker = four_bar_angles(crank)
        across = np.sin(rocker - coupler)
        return (
            float(-CRANK * np.sin(rocker - crank) / (COUPLER * across)),
            float(CRANK * np.sin(crank - coupler) / (ROCKER * across)),
        )

    def inertia(self, crank: float) -> float:
        """``I(c)`` [kg m^2]."""
        return sum(
            mass * float(change @ change) + moment * rate**2
            for mass, moment, change, rate in self._changes(crank)
        )

    def inertia_slope(self, crank: float, h: float = 1e-3) -> float:
        """``I'(c)``, by differences of fourth order."""
        far = self.inertia(crank + 2 * h) - self.inertia(crank - 2 * h)
        return (8 * (self.inertia(crank + h) - self.inertia(crank - h)) - far) / (12 * h)

    def load(self, crank: float) -> float:
        """``V'(c)`` [N m]."""
        return self.gravity * sum(
            mass * float(change[1]) for mass, _, change, _ in self._changes(crank)
        )

    def _changes(self, crank: float) -> list[tuple[float, float, Array, float]]:
        """Per bar its mass, its moment, and how centre and angle change with the crank angle."""
        coupler, rocker = four_bar_angles(crank)
        rates = (1.0, *self._rates_of_bars(crank))
        drift = CRANK * np.array([-np.sin(crank), np.cos(crank)])
        found = []
        for k, (mass, moment, arm) in enumerate(self.bodies):
            turned = (crank, coupler, rocker)[k] - self.start[k]
            s, c = np.sin(turned), np.cos(turned)
            across = np.array([-s * arm[0] - c * arm[1], c * arm[0] - s * arm[1]])
            found.append((mass, moment, rates[k] * across + (drift if k == 1 else 0.0), rates[k]))
        return found

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
                self._rates(way, slides, viscous), (t, t + 20.0), y, "DOP853", rtol=1e-10,
                atol=1e-11, events=_at_rest(way), max_step=0.02,
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


def _flat(name: str, pivot: Array) -> tuple[float, float, Array]:
    """Mass of a bar, moment about its centre, and the arm from its pivot to the centre."""
    masses, points = mass_points(name)
    flat = (points - pivot)[:, [0, 2]]
    centre = masses @ flat / masses.sum()
    return float(masses.sum()), float(masses @ ((flat - centre) ** 2).sum(axis=1)), centre
