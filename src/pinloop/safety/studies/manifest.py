"""What makes a study the same study: everything that its numbers depend on, as plain data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import scipy

from ...boundary.json import json_text, json_values
from ...model.mechanism import Mechanism
from ...version import __version__
from ..space.solids import Obstacle
from .cases import Setup
from .sampling import Sampling

__all__ = ["digest_of", "manifest_of"]


def manifest_of(setup: Setup, sampling: Sampling) -> dict[str, Any]:
    """The manifest of a study: versions, digests, ranges, seed.

    Args:
        setup: what all cases have in common.
        sampling: which cases there are.
    """
    return {
        "pinloop": __version__,
        "pinocchio": pin.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "robot": setup.robot.name,
        "robot_sha256": _robot(setup.robot),
        "brakes_sha256": _digest(setup.brakes.joints, setup.brakes.chain),
        "variables": [[item.column, item.low, item.high] for item in setup.variables],
        "sampling": repr(sampling),
        "category": repr(setup.category),
        "payload": _payload(setup),
        "gravity": setup.gravity,
        "trigger": repr(setup.trigger),
        "motion_sha256": _motion(setup),
        "until": setup.until,
        "method": repr(setup.method),
        "standstill": repr(setup.standstill),
        "obstacles": {item.name: _obstacle(item) for item in setup.obstacles},
    }


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The digest by which files beside the results know their study."""
    return _digest(json_text(json_values(manifest)))


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def _robot(robot: Mechanism) -> str:
    """Kinematics, masses, limits, and what closes loops."""
    return _digest(
        robot.model.saveToString(),
        [(loop.name, loop.pair, loop.body_a, loop.body_b) for loop in robot.loops],
        robot.couplings,
        robot.actuated,
        [(frame.name, np.array(frame.placement).tolist()) for frame in robot.model.frames],
    )


def _payload(setup: Setup) -> list[Any] | None:
    load = setup.payload
    if load is None:
        return None
    inertia = None if load.inertia is None else np.asarray(load.inertia, dtype=float).tolist()
    return [float(load.mass), np.asarray(load.com, dtype=float).tolist(), inertia, load.frame]


def _motion(setup: Setup) -> str | None:
    motion = setup.space.motion
    if motion is None:
        return None
    return _digest(motion.joints, motion.t.tolist(), motion.values.tolist())


def _obstacle(obstacle: Obstacle) -> str:
    """Shape and place."""
    solid = obstacle.solid
    if isinstance(solid, coal.Box):
        shape = solid.halfSide.tolist()
    elif isinstance(solid, coal.Sphere):
        shape = solid.radius
    elif isinstance(solid, coal.BVHModelBase):
        triangles = (solid.tri_indices(k) for k in range(solid.num_tris))
        # A triangle of coal can be indexed, but its iteration does not end properly.
        corners = [[triangle[k] for k in range(3)] for triangle in triangles]
        shape = [np.asarray(solid.vertices()).tolist(), corners]
    else:
        shape = np.asarray(solid.points()).tolist()
    return _digest(type(solid).__name__, shape, np.array(obstacle.placement).tolist())
