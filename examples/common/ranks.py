"""Which rows are redundant, as a picture: singular values of Jacobians of constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .pictures import drawing

__all__ = ["draw_singular_values"]

Array = NDArray[np.float64]

_NONE = 1e-17
"""Where singular values of zero stand."""


def draw_singular_values(path: str, title: str, jacobians: Mapping[str, Sequence[Array]]) -> None:
    """Draw singular values, largest first, of every configuration.

    Args:
        path: picture to write.
        title: of the picture.
        jacobians: by name of the set of rows, a Jacobian per configuration.
    """
    with drawing(path, 8, 4.5) as figure:
        axes = figure.subplots()
        marks = (("o", 9), ("s", 6), ("x", 7))
        most = 0
        for (name, ones), (marker, size) in zip(jacobians.items(), marks, strict=False):
            values = np.array([np.linalg.svd(J, compute_uv=False) for J in ones])
            most = max(most, values.shape[1])
            place = np.tile(np.arange(1, values.shape[1] + 1), len(values))
            found = np.maximum(values.ravel(), _NONE)
            axes.semilogy(place, found, marker, ms=size, mfc="none", mew=1.6, label=name)
        axes.axhspan(_NONE / 10, 1e-9, color="0.93", zorder=0)
        axes.text(0.6, 2e-10, "zero up to rounding: redundant equations", va="top", color="0.35")
        axes.set(title=title, xlabel="singular value, largest first", ylabel="of the Jacobian")
        axes.set(xticks=np.arange(1, most + 1), ylim=(_NONE / 10, 30), xlim=(0.5, most + 0.5))
        axes.legend(loc="upper right")
