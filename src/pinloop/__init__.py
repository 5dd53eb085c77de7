"""Robots with closed loops and changing topology, on top of Pinocchio."""

from __future__ import annotations

from .analysis import EnergyBalance, LockReaction, Momenta, Reaction
from .assembly import assemble, consistent_velocity
from .constraints import Constraints
from .diagnosis import Diagnosis, diagnose
from .dynamics import (
    ODCA,
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
    StopFailed,
    UnknownName,
)
from .events import (
    Event,
    JointLimits,
    close_loop,
    lock,
    open_loop,
    stop_when,
    unlock,
    when,
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
from .modes import Locked, Mode
from .pairs import PAIR_NAMES
from .partition import dependent_coordinates, relative_projections
from .reduction import Regularization
from .regularize import regularize
from .row_kinds import AngularMomentum, NoSlip, Pfaffian, Prescribed, Rolling
from .simulate import simulate
from .stabilization import Projection
from .stopping import (
    Brakes,
    Category0,
    Category1,
    Category2,
    Chain,
    JointBrake,
    JointStop,
    JointTrajectory,
    Payload,
    PointStop,
    Standstill,
    StopResult,
    Trigger,
    single_faults,
    stop,
    worst_fault,
)
from .studies import (
    Corners,
    Grid,
    Random,
    Sobol,
    Space,
    Study,
    WorstCase,
    study,
    worst_case,
)
from .trajectory import Trajectory, load_trajectory
from .transitions import Transition, transition
from .version import __version__
from .view import save_html, view

__all__ = [
    "ODCA",
    "PAIR_NAMES",
    "PD",
    "AngularMomentum",
    "Augmented",
    "BadValue",
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "Chain",
    "Constraints",
    "Corners",
    "Damper",
    "Diagnosis",
    "EnergyBalance",
    "EquationsOfMotion",
    "Event",
    "Grid",
    "Holonomy",
    "InconsistentVelocity",
    "JointBrake",
    "JointDamping",
    "JointFriction",
    "JointLimits",
    "JointSpring",
    "JointStop",
    "JointTrajectory",
    "LoadError",
    "LockReaction",
    "Locked",
    "LoopNotClosed",
    "Mechanism",
    "Mode",
    "Momenta",
    "MuntheKaas",
    "NoSlip",
    "Payload",
    "Pfaffian",
    "PinloopError",
    "PinloopWarning",
    "PointForce",
    "PointStop",
    "Prescribed",
    "Projected",
    "Projection",
    "Random",
    "Reaction",
    "Regularization",
    "Rolling",
    "SimulationFailed",
    "SingularMass",
    "Sobol",
    "Space",
    "Spring",
    "Standstill",
    "StopFailed",
    "StopResult",
    "Study",
    "Torque",
    "TorqueFunction",
    "Trajectory",
    "Transition",
    "Trigger",
    "UnknownName",
    "Voronets",
    "WorstCase",
    "__version__",
    "assemble",
    "christoffel",
    "close_loop",
    "consistent_velocity",
    "coriolis",
    "dependent_coordinates",
    "diagnose",
    "from_screws",
    "holonomic",
    "inverse_dynamics",
    "load",
    "load_trajectory",
    "lock",
    "open_loop",
    "regularize",
    "relative_projections",
    "save_html",
    "simulate",
    "single_faults",
    "stop",
    "stop_when",
    "study",
    "transition",
    "unlock",
    "view",
    "when",
    "worst_case",
    "worst_fault",
]
