"""Robots with closed loops and changing topology, on top of Pinocchio."""

from __future__ import annotations

from .assembly import assemble, consistent_velocity
from .constraints import Constraints
from .diagnosis import Diagnosis, diagnose
from .dynamics import (
    Augmented,
    EquationsOfMotion,
    Projected,
    Voronets,
    christoffel,
    coriolis,
    inverse_dynamics,
)
from .errors import (
    BadValue,
    InconsistentVelocity,
    LoadError,
    LoopNotClosed,
    PinloopError,
    PinloopWarning,
    SimulationFailed,
    SingularMass,
    UnknownName,
)
from .forces import (
    PD,
    Damper,
    JointDamping,
    JointFriction,
    JointSpring,
    PointForce,
    Spring,
    Torque,
    TorqueFunction,
)
from .holonomy import Holonomy, holonomic
from .integrate import MuntheKaas
from .loading import from_screws, load
from .mechanism import Mechanism
from .pairs import PAIR_NAMES
from .partition import dependent_coordinates, relative_projections
from .reduction import Regularization
from .regularize import regularize
from .rows import AngularMomentum, NoSlip, Pfaffian, Prescribed, Rolling
from .simulate import simulate
from .stabilization import Projection
from .trajectory import Trajectory, load_trajectory
from .view import save_html, view

__all__ = [
    "PAIR_NAMES",
    "PD",
    "AngularMomentum",
    "Augmented",
    "BadValue",
    "Constraints",
    "Damper",
    "Diagnosis",
    "EquationsOfMotion",
    "Holonomy",
    "InconsistentVelocity",
    "JointDamping",
    "JointFriction",
    "JointSpring",
    "LoadError",
    "LoopNotClosed",
    "Mechanism",
    "MuntheKaas",
    "NoSlip",
    "Pfaffian",
    "PinloopError",
    "PinloopWarning",
    "PointForce",
    "Prescribed",
    "Projected",
    "Projection",
    "Regularization",
    "Rolling",
    "SimulationFailed",
    "SingularMass",
    "Spring",
    "Torque",
    "TorqueFunction",
    "Trajectory",
    "UnknownName",
    "Voronets",
    "__version__",
    "assemble",
    "christoffel",
    "consistent_velocity",
    "coriolis",
    "dependent_coordinates",
    "diagnose",
    "from_screws",
    "holonomic",
    "inverse_dynamics",
    "load",
    "load_trajectory",
    "regularize",
    "relative_projections",
    "save_html",
    "simulate",
    "view",
]

__version__ = "0.1.0"
