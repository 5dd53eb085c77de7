"""How the torques of friction brakes fall with speed and heat: the laws.

Of the torque ``T`` of a brake there is left, at the speed ``w`` and after it has slipped by ``s``,

    (1 - share |w| / (|w| + speed)) / (1 + (start_heat + T s) / fade_heat).

The first part is of what slides alone; it has no corner, is never negative, and two rows of a
catalogue's table of torques over speed give both numbers. The second is of both torques. Where
torque falls with heat alone it is ``exp(-E / fade_heat)`` of the energy ``E`` that the brake really
takes, because ``dE = T ds / (1 + T s / fade_heat)``. As a function of the angle it makes no state
of its own; where torque also falls with speed, ``T s`` is more than the brake takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array


class Fading(NamedTuple):
    """The numbers of all brakes of a robot, per velocity coordinate, shape (nv,).

    Args:
        share: of the torque that is lost at very high speed.
        speed: of the joint, at which half of that is lost [rad/s, m/s].
        rate: ``T / fade_heat`` per travel of the joint [1/rad, 1/m].
        begun: ``start_heat / fade_heat``.
        places: where the travel of the joint is in q.
    """

    share: Array
    speed: Array
    rate: Array
    begun: Array
    places: NDArray[np.intp]

    @property
    def some(self) -> NDArray[np.bool_]:
        """Mask of the coordinates whose brakes fade."""
        return np.asarray((self.share.real > 0.0) | (self.rate.real > 0.0))

    def at_rest(self, slipped: Array) -> Array:
        """What is left of torques at rest, after so much slip."""
        return np.asarray(1.0 / (1.0 + self.begun + self.rate * slipped))


class PhaseFade(NamedTuple):
    """What is left of the torques of brakes in a phase, as a function of its states.

    Args:
        fading: the laws.
        slipped: by how much brakes have slipped when the phase begins [rad, m], shape (nv,).
        place: travel of the joints there [rad, m].
        heating: part of their travel by which brakes slip, with the sign of the motion.
    """

    fading: Fading
    slipped: Array
    place: Array
    heating: Array

    def left(self, q: Array | None, v: Array) -> Array:
        """What is left of torques; without a configuration, with the heat at the begin."""
        return np.asarray((1.0 - self.fading.share * self._part(v)) / self._heat(q))

    def _part(self, v: Array) -> Array:
        speed = np.where(v.real < 0.0, -v, v)  # which may be complex
        return np.asarray(speed / (speed + self.fading.speed))

    def _slip(self, q: Array | None) -> Array:
        """By how much brakes have slipped."""
        if q is None:
            return self.slipped
        way = q[..., self.fading.places] - self.place
        return np.asarray(self.slipped + self.heating * way)

    def _heat(self, q: Array | None) -> Array:
        return 1.0 + self.fading.begun + self.fading.rate * self._slip(q)
