"""Spatial vectors by the thousand: twists and wrenches as rows of arrays, linear part first.

No robot here. A frame is given by its rotation ``R``, shape (n, 3, 3), and position ``p``, shape
(n, 3), in the frame that carries it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "carry",
    "cross",
    "force_cross",
    "motion_cross",
    "resolve",
    "rotate",
    "rotate_back",
    "wrench_to_carrier",
]

Array = NDArray[np.float64]


def cross(a: Array, b: Array) -> Array:
    """Cross products of rows, shape (n, 3); `numpy.cross` takes ten times as long on few rows."""
    found = np.empty(np.broadcast(a, b).shape)
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    found[..., 0] = y * w - z * v
    found[..., 1] = z * u - x * w
    found[..., 2] = x * v - y * u
    return found


def rotate(R: Array, a: Array) -> Array:
    """``R a`` row by row."""
    return np.asarray((R @ a[..., None])[..., 0])


def rotate_back(R: Array, a: Array) -> Array:
    """``R' a`` row by row."""
    return np.asarray((a[..., None, :] @ R)[..., 0, :])


def resolve(R: Array, p: Array, V: Array) -> Array:
    """Twists of carriers as twists at and in the frames: ``Ad(T^-1) V``."""
    moved = np.empty(V.shape)
    moved[..., :3] = rotate_back(R, V[..., :3] - cross(p, V[..., 3:]))
    moved[..., 3:] = rotate_back(R, V[..., 3:])
    return moved


def wrench_to_carrier(R: Array, p: Array, F: Array) -> Array:
    """Wrenches at and in the frames as wrenches at and in their carriers: ``Ad(T^-1)' F``."""
    moved = np.empty(F.shape)
    moved[..., :3] = rotate(R, F[..., :3])
    moved[..., 3:] = rotate(R, F[..., 3:]) + cross(p, moved[..., :3])
    return moved


def carry(R: Array, p: Array, B: Array) -> Array:
    """`wrench_to_carrier` for columns of wrenches, shape (n, 6, k)."""
    moved = np.empty(B.shape)
    np.matmul(R, B[:, :3], out=moved[:, :3])
    np.matmul(R, B[:, 3:], out=moved[:, 3:])
    moved[:, 3:] += cross(p[:, None], moved[:, :3].transpose(0, 2, 1)).transpose(0, 2, 1)
    return moved


def motion_cross(V: Array, W: Array) -> Array:
    """``V x W`` for twists."""
    v, w = V[..., :3], V[..., 3:]
    found = np.empty(np.broadcast(V, W).shape)
    found[..., :3] = cross(w, W[..., :3]) + cross(v, W[..., 3:])
    found[..., 3:] = cross(w, W[..., 3:])
    return found


def force_cross(V: Array, F: Array) -> Array:
    """``V x* F`` for a twist and a momentum or wrench."""
    v, w = V[..., :3], V[..., 3:]
    found = np.empty(F.shape)
    found[..., :3] = cross(w, F[..., :3])
    found[..., 3:] = cross(w, F[..., 3:]) + cross(v, F[..., :3])
    return found
