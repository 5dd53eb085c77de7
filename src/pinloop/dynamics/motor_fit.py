"""Fitting the map of a serial twin: polynomials through poses, with a bound on their error.

Maps of linkages are analytic away from singular poses, so that interpolation in Chebyshev's points
gains digits with every degree. Between the points the error is largest; there it is measured, and
twice that is the bound.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.polynomial import chebyshev

from ..boundary.marks import Array
from ..errors import BadValue
from .motor_map import SerialMap
from .serial_twin import SerialTwin
from .twin_pose import TwinPose

_DEGREES = (4, 8, 16, 32)


def fit_serial(twin: SerialTwin, tolerance: float) -> SerialMap:
    """The map of a twin, of the least degree that keeps a tolerance.

    Raises:
        BadValue: none does.
    """
    if not tolerance > 0.0:
        raise BadValue(f"tolerance is {tolerance:g}; it is above 0")
    k, known = len(twin.joints), dict[tuple[float, ...], Array]()

    def values(points: Array) -> Array:
        """Values on a grid of points between -1 and 1, shape (n, ..., n, m)."""
        grid = [*product(np.round(points, 14).tolist(), repeat=k)]
        missing = [place for place in grid if place not in known]
        low, high = twin.ranges.T
        joints = 0.5 * (low + high) + 0.5 * (high - low) * np.array(missing).reshape(-1, k)
        known.update(zip(missing, map(_of_pose, twin.along(joints)), strict=True))
        return np.array([known[place] for place in grid]).reshape(*(k * (len(points),)), -1)

    inertia, allowed = np.zeros(0, dtype=bool), np.zeros(0)
    for degree in _DEGREES:
        nodes = np.cos(np.pi * np.arange(degree + 1) / degree)
        sums = values(nodes)
        if not len(inertia):
            inertia = np.arange(sums.shape[-1]) - k
            inertia = (inertia >= 0) & (inertia < k * (k + 1) // 2)
        allowed = np.where(inertia, 100.0 * np.abs(sums[..., inertia]).max(), 1.0) * tolerance
        coefficients = _along_all(
            np.asarray(np.linalg.inv(chebyshev.chebvander(nodes, degree))), sums
        )
        tail = np.abs(coefficients[-1]).max(axis=tuple(range(k - 1)))
        if degree < _DEGREES[-1] and (tail > allowed).any():
            continue  # not worth a look between the nodes
        between = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
        computed = _along_all(np.asarray(chebyshev.chebvander(between, degree)), coefficients)
        errors = 2.0 * np.abs(computed - values(between)).max(axis=tuple(range(k)))
        if (errors <= allowed).all():
            limits = [np.array(bounds).T for bounds in (twin.torques, twin.speeds)]
            of_inertia = float((errors / allowed)[inertia].max(initial=0.0)) * 100.0 * tolerance
            return SerialMap(
                twin.joints,
                twin.motors,
                twin.followers,
                twin.ranges,
                coefficients,
                float(errors[~inertia].max()),
                of_inertia,
                *limits,
            )
    worst = float((errors / allowed).max())
    raise BadValue(
        f"polynomials of degree {_DEGREES[-1]} are off by {worst:.2g} times the tolerance of "
        f"{tolerance:g}; give a greater one, or less ranges= or a greater margin= to pl.serial, "
        "away from singular poses"
    )


def _along_all(matrix: Array, values: Array) -> Array:
    """A matrix applied along every axis of a grid of values but the last."""
    for axis in range(values.ndim - 1):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return values


def _of_pose(pose: TwinPose) -> Array:
    """The values that are fitted."""
    upper = np.triu_indices(len(pose.joints))
    return np.concatenate([pose.motors, pose.inertia[upper], pose.followers])
