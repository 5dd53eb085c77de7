"""Robots with closed loops and changing topology, on top of Pinocchio."""

from __future__ import annotations

from .assembly import assemble, consistent_velocity
from .constraints import Constraints
from .diagnosis import Diagnosis, diagnose
from .errors import (
    BadValue,
    InconsistentVelocity,
    LoadError,
    LoopNotClosed,
    PinloopError,
    PinloopWarning,
    UnknownName,
)
from .loading import from_screws, load
from .mechanism import Mechanism
from .pairs import PAIR_NAMES
from .reduction import Regularization
from .regularize import regularize

__all__ = [
    "PAIR_NAMES",
    "BadValue",
    "Constraints",
    "Diagnosis",
    "InconsistentVelocity",
    "LoadError",
    "LoopNotClosed",
    "Mechanism",
    "PinloopError",
    "PinloopWarning",
    "Regularization",
    "UnknownName",
    "__version__",
    "assemble",
    "consistent_velocity",
    "diagnose",
    "from_screws",
    "load",
    "regularize",
]

__version__ = "0.1.0"
