"""`SerialMap`: motors and joints of a serial twin as polynomials, for NumPy, JAX and JSON.

Functions use what the array standard has, and so the library of the arrays that they are given:
those of JAX can be traced, differentiated and mapped. What the polynomials are is in `motor_fit`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from ..boundary.arguments import public
from ..boundary.files import json_text, read_bytes, write_text
from ..boundary.marks import Array
from ..boundary.values import stored_fields
from ..errors import LoadError
from ..tolerances import AT_LIMIT

FORMAT = "pinloop-serial/1"
_NEWTON = 7
"""Steps from the middle of the ranges to any place in them; the last one is exact."""


@public
@dataclass(frozen=True, eq=False)
class SerialMap:
    """Motors and joints of a serial twin as functions of arrays, of NumPy, JAX or alike.

    Of positions, rates and torques the last axis has one per joint or motor, in the order of their
    names; axes before it are batches. Beyond the ranges everything is NaN.

    Args:
        joints: names of the k joints.
        motors: names of the k motors.
        followers: names of the f joints that follow.
        ranges: lowest and highest position of each joint [rad, m], shape (k, 2).
        coefficients: of products of Chebyshev polynomials of the joints, each moved to -1 to 1,
            shape (n, ..., n, k + k (k + 1) / 2 + f): positions of the motors, upper triangle of the
            inertia row by row, positions of followers.
        position_error: bound on the error of positions of motors and followers [rad, m].
        inertia_error: bound on that of inertia, over the largest entry.
        torque_limits: lowest and highest torque of each motor [N m, N], shape (k, 2).
        speed_limits: lowest and highest rate of each motor [rad/s, m/s], shape (k, 2).
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    followers: tuple[str, ...]
    ranges: Array
    coefficients: Array
    position_error: float
    inertia_error: float
    torque_limits: Array
    speed_limits: Array

    __getstate__ = stored_fields

    def motor_positions(self, joints: Any) -> Any:
        """Positions of the motors [rad, m], shape (..., k), at those of the joints."""
        return self._values(joints)[..., : len(self.motors)]

    def follower_positions(self, joints: Any) -> Any:
        """Positions of the joints that follow [rad, m], shape (..., f)."""
        return self._values(joints)[..., self.coefficients.shape[-1] - len(self.followers) :]

    def joint_positions(self, motors: Any) -> Any:
        """Positions of the joints [rad, m], shape (..., k), at those of the motors, by Newton."""
        motors, xp = _arrays(motors)
        low, high = self._ends(motors)
        joints = 0.5 * (low + high) + 0.0 * motors
        for _ in range(_NEWTON):
            values = self._evaluated(joints)[..., : len(self.motors), :]
            step = _solved(xp, values[..., 1:], values[..., 0] - motors)
            joints = xp.clip(joints - step, low, high)
        gap = xp.max(xp.abs(self.motor_positions(joints) - motors), axis=-1, keepdims=True)
        reached = gap < float(np.sqrt(np.finfo(str(joints.dtype)).eps))
        return xp.where(reached, joints, xp.nan)

    def jacobian(self, joints: Any) -> Any:
        """Rates of motors per rate of joints, shape (..., k, k)."""
        return self._slopes(joints)[..., : len(self.motors), :]

    def motor_rates(self, joints: Any, joint_rates: Any) -> Any:
        """Rates of the motors [rad/s, m/s], shape (..., k)."""
        return _applied(self.jacobian(joints), _arrays(joint_rates)[0])

    def joint_rates(self, joints: Any, motor_rates: Any) -> Any:
        """Rates of the joints [rad/s, m/s], shape (..., k)."""
        rates, xp = _arrays(motor_rates)
        return _solved(xp, self.jacobian(joints), rates)

    def joint_torques(self, joints: Any, motor_torques: Any) -> Any:
        """Torques at the joints [N m, N] that torques of the motors are worth, shape (..., k)."""
        torques, xp = _arrays(motor_torques)
        return _applied(xp.matrix_transpose(self.jacobian(joints)), torques)

    def motor_torques(self, joints: Any, joint_torques: Any) -> Any:
        """Torques of the motors [N m, N] that are worth these at the joints, shape (..., k)."""
        torques, xp = _arrays(joint_torques)
        return _solved(xp, xp.matrix_transpose(self.jacobian(joints)), torques)

    def inertia(self, joints: Any) -> Any:
        """What linkage and rotors add to the inertia at the joints, shape (..., k, k)."""
        return self._values(joints)[..., self._triangle]

    def inertia_rate(self, joints: Any, joint_rates: Any) -> Any:
        """Rate of `inertia` at rates of the joints, shape (..., k, k)."""
        rates = _arrays(joint_rates)[0]
        return _applied(self._slopes(joints)[..., self._triangle, :], rates[..., None, :])

    def coriolis(self, joints: Any, joint_rates: Any) -> Any:
        """Torque at the joints that the change of `inertia` takes [N m, N], shape (..., k)."""
        rates, xp = _arrays(joint_rates)
        slopes = self._slopes(joints)[..., self._triangle, :]
        along = _applied(slopes, rates[..., None, :])
        across = _applied(xp.moveaxis(slopes, -1, -3), rates[..., None, :])
        return _applied(along, rates) - 0.5 * _applied(across, rates)

    def save(self, path: str | Path) -> Path:
        """Write all of it as JSON; `load` reads it back."""
        document: dict[str, Any] = {"format": FORMAT}
        for key, value in stored_fields(self).items():
            # JSON has no infinity: what is not limited is null.
            is_array = isinstance(value, np.ndarray)
            if is_array and np.isinf(value).any():
                value = np.where(np.isinf(value), None, value.astype(object))
            document[key] = value.tolist() if is_array else value
        return write_text(path, json_text(document, indent=None) + "\n")

    @staticmethod
    def load(path: str | Path) -> SerialMap:
        """Read what `save` has written."""
        try:
            document = json.loads(read_bytes(path))
            if document.pop("format") != FORMAT:
                raise KeyError("format")
            names = {key: tuple(document.pop(key)) for key in ("joints", "motors", "followers")}
            arrays = {key: np.array(x, float) for key, x in document.items() if type(x) is list}
            for key in ("torque_limits", "speed_limits"):
                arrays[key] = np.where(np.isnan(arrays[key]), [-np.inf, np.inf], arrays[key])
            return SerialMap(**(document | names | arrays))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LoadError(f"is no map of a serial twin ({FORMAT})", source=str(path)) from None

    # -- polynomials ------------------------------------------------------------------------------

    @property
    def _triangle(self) -> Array:
        """Where each entry of the inertia is among the values, shape (k, k)."""
        k = len(self.joints)
        places, rows = np.zeros((k, k), dtype=int), np.triu_indices(k)
        places[rows] = k + np.arange(len(rows[0]))
        return np.maximum(places, places.T)

    def _ends(self, like: Any) -> tuple[Any, Any]:
        """Both ends of the ranges as arrays of the library and the kind of another one."""
        _, xp = _arrays(like)
        low, high = self.ranges.T
        return xp.asarray(low, dtype=like.dtype), xp.asarray(high, dtype=like.dtype)

    def _values(self, joints: Any) -> Any:
        """All values, shape (..., m)."""
        return self._evaluated(joints)[..., 0]

    def _slopes(self, joints: Any) -> Any:
        """Derivatives of all values by the joints, shape (..., m, k)."""
        return self._evaluated(joints)[..., 1:]

    def _evaluated(self, joints: Any) -> Any:
        """All values and, along the last axis, their derivatives, shape (..., m, 1 + k)."""
        joints, xp = _arrays(joints)
        low, high = self._ends(joints)
        x = (2.0 * joints - low - high) / (high - low)
        sums = xp.asarray(self._terms, dtype=joints.dtype)
        for axis in range(len(self.joints)):
            basis = _polynomials(xp, x[..., axis], sums.shape[max(axis and joints.ndim - 1, 0)])
            if axis == 0:
                sums = xp.tensordot(basis, sums, axes=1)
            else:
                basis = xp.reshape(basis, (*basis.shape, *([1] * (sums.ndim - basis.ndim))))
                sums = xp.sum(basis * sums, axis=joints.ndim - 1)
        inside = xp.all(xp.abs(x) <= 1.0 + _slack(joints.dtype), axis=-1)
        return xp.where(inside[..., None, None], sums, xp.nan)

    @cached_property
    def _terms(self) -> Array:
        """Coefficients of the values and, along the last axis, of their derivatives."""
        terms = [self.coefficients]
        for axis, (low, high) in enumerate(self.ranges):
            slopes = chebyshev.chebder(self.coefficients, scl=2.0 / (high - low), axis=axis)
            gap = [(0, int(axis == other)) for other in range(self.coefficients.ndim)]
            terms.append(np.pad(slopes, gap))
        return np.stack(terms, axis=-1)


def _polynomials(xp: Any, x: Any, count: int) -> Any:
    """Chebyshev polynomials ``T_0`` to ``T_(count - 1)``, shape (..., count).

    By ``T_(m + j) = 2 T_m T_j - T_(m - j)``, which doubles what is there.
    """
    values = xp.stack([xp.ones_like(x), x], axis=-1)
    while values.shape[-1] < count:
        m = values.shape[-1] - 1
        more = 2.0 * values[..., m:] * values[..., 1:] - xp.flip(values[..., :m], axis=-1)
        values = xp.concat([values, more], axis=-1)
    return values[..., :count]


def _arrays(values: Any) -> tuple[Any, Any]:
    """Values as an array, and the library that it is of."""
    space = getattr(values, "__array_namespace__", None)
    if space is None:
        return np.asarray(values, dtype=float), np
    return values, space()


def _slack(dtype: Any) -> float:
    return max(AT_LIMIT, 4.0 * float(np.finfo(str(dtype)).eps))


def _applied(matrix: Any, vector: Any) -> Any:
    return (matrix @ vector[..., None])[..., 0]


def _solved(xp: Any, matrix: Any, vector: Any) -> Any:
    """Solutions of small systems; written out where that is a line, as JAX compiles it faster."""
    if matrix.shape[-1] == 1:
        return vector / matrix[..., 0]
    if matrix.shape[-1] > 2:
        return xp.linalg.solve(matrix, vector[..., None])[..., 0]
    (a, b), (c, d) = (([matrix[..., i, j] for j in (0, 1)]) for i in (0, 1))
    x, y, area = vector[..., 0], vector[..., 1], a * d - b * c
    return xp.stack([(d * x - b * y) / area, (a * y - c * x) / area], axis=-1)
