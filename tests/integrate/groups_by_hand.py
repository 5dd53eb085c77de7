"""A configuration group that is no robot's."""

from __future__ import annotations

from pinloop.integrate import ConfigurationGroup

from ..screw_tables import Array


class Space(ConfigurationGroup):
    """The vector space."""

    flat = True

    def integrate(self, q: Array, step: Array) -> Array:
        return q + step

    def difference(self, q0: Array, q1: Array) -> Array:
        return q1 - q0

    def normalize(self, q: Array) -> Array:
        return q

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        return rate

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        return v
