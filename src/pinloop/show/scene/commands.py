"""The viewer's command language: put an object at a path, place it, set a property, as bytes.

Commands are what meshcat sends to its page (message pack of a small dictionary). Made here rather
than by meshcat's own classes, because those draw a new random ``uuid`` every time: here the same
scene gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import umsgpack
from numpy.typing import ArrayLike, NDArray

from .solids import Color, Solid

__all__ = ["Command", "packed", "phong", "set_light", "set_object", "set_property", "set_transform"]

Command = dict[str, Any]
"""A command for the viewer: ``type``, ``path`` and what belongs to them."""

_FORMAT = {"version": 4.5, "type": "Object"}
_EXTENSIONS = {"f": 0x17, "u": 0x16}
"""Message pack extensions by which meshcat's page knows float and unsigned 32 bit arrays."""


def set_object(path: str, solid: Solid, material: dict[str, Any], matrix: ArrayLike) -> Command:
    """Put a solid at ``path``.

    Args:
        path: node of the scene, names separated by ``/``.
        solid: what to draw.
        material: three.js material without ``uuid``.
        matrix: placement in the node, stretch included, shape (4, 4).
    """
    shape, surface = f"{path}#geometry", f"{path}#material"
    return {
        "type": "set_object",
        "path": path,
        "object": {
            "metadata": _FORMAT,
            "geometries": [{"uuid": shape, **solid.geometry}],
            "materials": [{"uuid": surface, **material}],
            "object": {
                "uuid": f"{path}#object",
                "type": solid.kind,
                "geometry": shape,
                "material": surface,
                "matrix": _by_columns(matrix),
            },
        },
    }


def set_light(path: str, light: dict[str, Any]) -> Command:
    """Put a light (three.js object without ``uuid``) at ``path``."""
    content = {"metadata": _FORMAT, "object": {"uuid": f"{path}#object", **light}}
    return {"type": "set_object", "path": path, "object": content}


def set_transform(path: str, matrix: ArrayLike) -> Command:
    """Place the node at ``path`` in its parent, shape (4, 4)."""
    return {"type": "set_transform", "path": path, "matrix": _by_columns(matrix)}


def set_property(path: str, name: str, value: Any) -> Command:
    """Set a property of the node at ``path``."""
    return {"type": "set_property", "path": path, "property": name, "value": value}


def packed(command: Command) -> bytes:
    """Return a command as the page reads it."""
    return bytes(umsgpack.packb(_plain(command)))


def phong(color: Color, *, in_front: bool = False) -> dict[str, Any]:
    """Slightly glossy three.js material of a colour; ``in_front`` of whatever else is there."""
    red, green, blue, alpha = (min(max(float(value), 0.0), 1.0) for value in color)
    channels = [round(255 * value) for value in (red, green, blue)]
    return {
        "type": "MeshPhongMaterial",
        "color": channels[0] << 16 | channels[1] << 8 | channels[2],
        "specular": 0x1C1C1C,
        "shininess": 35,
        "side": 2,
        # three.js draws transparent objects after the others.
        "transparent": alpha < 1 or in_front,
        "depthTest": not in_front,
        "opacity": alpha,
    }


def _by_columns(matrix: ArrayLike) -> list[float]:
    """The 16 numbers of a matrix in the order of three.js."""
    return [float(value) for value in np.asarray(matrix, dtype=float).T.ravel()]


def _plain(value: Any) -> Any:
    """Replace arrays in nested containers by their message pack extensions."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return umsgpack.Ext(_EXTENSIONS[value.dtype.kind], _bytes(value))
    return value


def _bytes(values: NDArray[Any]) -> bytes:
    return values.tobytes()
