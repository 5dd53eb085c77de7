"""Spatial vectors by the thousand: twists and wrenches as rows of arrays, linear part first.

No robot here. Products are matrix products of stacks: a call of NumPy costs more than what it does
to a few vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["adjoint", "apply", "apply_transposed", "motion_cross"]

Array = NDArray[np.float64]

_SKEW = np.zeros((3, 3, 3))
"""Matrix of ``a x`` per entry of ``a``."""
_SKEW[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = 1.0
_SKEW[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = -1.0

_CROSS = np.zeros((6, 6, 6))
"""Matrix of ``V x`` per entry of ``V``: ``w x`` on both parts, ``v x`` from angular to linear."""
_CROSS[3:, :3, :3] = _CROSS[3:, 3:, 3:] = _CROSS[:3, :3, 3:] = _SKEW
_FLAT_SKEW, _FLAT_CROSS = _SKEW.reshape(3, 9), _CROSS.reshape(6, 36)


def _skew(a: Array) -> Array:
    """Matrices of ``a x``, shape (n, 3, 3)."""
    return np.asarray((a @ _FLAT_SKEW).reshape(-1, 3, 3))


def motion_cross(V: Array, W: Array) -> Array:
    """``V x W`` for twists, shape (n, 6)."""
    return apply((V @ _FLAT_CROSS).reshape(-1, 6, 6), W)


def apply(A: Array, x: Array) -> Array:
    """Matrix times vector, row by row."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def apply_transposed(A: Array, x: Array) -> Array:
    """Transposed matrix times vector, row by row."""
    return np.asarray((x[:, None, :] @ A)[:, 0, :])


def adjoint(T: Array) -> Array:
    """Matrices that take twists of carriers to twists at and in the frames they carry, (n, 6, 6).

    Their transposes take wrenches at and in the frames to wrenches on the carriers.

    Args:
        T: placements of the frames in their carriers, shape (n, 4, 4).
    """
    X = np.zeros((len(T), 6, 6))
    back = T[:, :3, :3].transpose(0, 2, 1)
    X[:, :3, :3] = X[:, 3:, 3:] = back
    np.matmul(back, _skew(-T[:, :3, 3]), out=X[:, :3, 3:])
    return X
