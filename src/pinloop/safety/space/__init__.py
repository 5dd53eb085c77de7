"""Where a run goes: swept volume, clearance, self-collisions, limits that are passed.

Knows robots and runs, of a simulation or of a stop; nothing of brakes, and never steps.
"""

from __future__ import annotations

from ...simulation.limits import LimitPassed
from .clearance import Approach, SelfCollisions, clearance, self_collisions
from .interval_tree import joint_limits
from .solids import Obstacle
from .swept import SweptVolume, swept_volume

__all__ = [
    "Approach",
    "LimitPassed",
    "Obstacle",
    "SelfCollisions",
    "SweptVolume",
    "clearance",
    "joint_limits",
    "self_collisions",
    "swept_volume",
]
