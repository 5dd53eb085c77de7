"""A step of a fit of brakes: least squares of a model of stops, which takes none of them.

Times and angles are linear in all parameters but the torque, and in its reciprocal, as those of a
wheel with a delay are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from ...boundary.marks import Array
from ...tolerances import FIT_COST, FIT_DIGITS, FIT_STEP, LEAST_TORQUE
from .fitted_values import six_digits

OF_LAW = ("deceleration", "ramp_time", "jerk", "time_constant", "drive_torque", "torque_share")
"""Parameters of controlled stops: all of them above zero."""
TORQUES = ("dynamic_torque", "coulomb", "deceleration", "drive_torque", "torque_share")
_WIDEST = 9.0
"""How many times larger or smaller a torque becomes in a step, besides once, at most."""
_LEAST = 1e-4
"""Part of a parameter that its bounds are apart, at least."""


def model_step(
    unknowns: tuple[Sequence[str], Array],
    place: tuple[Array, Array, Array],
    weights: Array,
    width: float = 1.0,
) -> Array:
    """Where the model of the stops is best; where they were made if that is hardly better.

    Args:
        unknowns: names of the parameters of an axis; natural sizes of those of one or several axes.
        place: where stops were made, in natural units, logarithms of computed over measured numbers
            there, and their derivatives.
        weights: of these numbers.
        width: part of the widest step that is allowed.
    """
    (names, scale), (x, errors, slopes) = unknowns, place
    torque = next((k for k, name in enumerate(names) if name in TORQUES), None)
    axes = len(x) // len(names)
    by_torque = np.tile(np.arange(len(names)) == torque, axes) & (x > 0.0)
    factor = 1.0 + width * _WIDEST
    by_part = by_torque | np.tile(np.isin(names, OF_LAW), axes)
    low = np.where(by_part, x / factor, np.maximum(x - width, 0.0))
    high = np.where(by_part, x * factor, x + width)
    whole = np.tile([1.0 if name == "torque_share" else np.inf for name in names], axes)
    high = np.maximum(np.minimum(high, whole / scale), low * (1.0 + _LEAST))

    def misses(there: Array) -> Array:
        linear = there - x
        shift = np.where(by_torque, x * linear / np.where(by_torque, there, 1.0), linear)
        return weights * (errors + np.log(np.maximum(1.0 + slopes @ shift, LEAST_TORQUE)))

    # "dogbox" puts what is at its bound exactly there.
    done = scipy.optimize.least_squares(
        misses, x, bounds=(low, high), method="dogbox", ftol=FIT_STEP, xtol=FIT_STEP, gtol=FIT_STEP
    )
    cost = float(np.sum((weights * errors) ** 2))
    if cost - 2.0 * done.cost <= FIT_COST * cost or cost <= len(errors) * FIT_DIGITS**2:
        return x
    # With six digits: more would pretend to be known, and be other stops than the last.
    return np.array([six_digits(value) for value in done.x * scale]) / scale
