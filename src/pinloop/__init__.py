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
    NotFinite,
    PinloopError,
    PinloopWarning,
    SimulationFailed,
    SingularMass,
    StopFailed,
    UnknownName,
)
from .events import (
    EndStops,
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
from .geometry import Obstacle, clearance, joint_limits, self_collisions, swept_volume
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
from .runfile import load_trajectory
from .sampling import renew_rows
from .scenarios import Scenario, load_scenario
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
    AnnexB,
    Comparison,
    Corners,
    Fit,
    Grid,
    Measured,
    MinimumDistance,
    Random,
    Separation,
    Sobol,
    Space,
    StoppingTable,
    Study,
    WorstCase,
    annex_b,
    compare,
    fit_brakes,
    minimum_distance,
    separation,
    study,
    worst_case,
)
from .topinocchio import PinocchioModels, to_pinocchio
from .trajectory import Trajectory
from .transitions import Transition, transition
from .version import __version__
from .view import save_html, view

__all__ = [
    "ODCA",
    "PAIR_NAMES",
    "PD",
    "AngularMomentum",
    "AnnexB",
    "Augmented",
    "BadValue",
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "Chain",
    "Comparison",
    "Constraints",
    "Corners",
    "Damper",
    "Diagnosis",
    "EndStops",
    "EnergyBalance",
    "EquationsOfMotion",
    "Event",
    "Fit",
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
    "Measured",
    "Mechanism",
    "MinimumDistance",
    "Mode",
    "Momenta",
    "MuntheKaas",
    "NoSlip",
    "NotFinite",
    "Obstacle",
    "Payload",
    "Pfaffian",
    "PinloopError",
    "PinloopWarning",
    "PinocchioModels",
    "PointForce",
    "PointStop",
    "Prescribed",
    "Projected",
    "Projection",
    "Random",
    "Reaction",
    "Regularization",
    "Rolling",
    "Scenario",
    "Separation",
    "SimulationFailed",
    "SingularMass",
    "Sobol",
    "Space",
    "Spring",
    "Standstill",
    "StopFailed",
    "StopResult",
    "StoppingTable",
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
    "annex_b",
    "assemble",
    "christoffel",
    "clearance",
    "close_loop",
    "compare",
    "consistent_velocity",
    "coriolis",
    "dependent_coordinates",
    "diagnose",
    "fit_brakes",
    "from_screws",
    "holonomic",
    "inverse_dynamics",
    "joint_limits",
    "load",
    "load_scenario",
    "load_trajectory",
    "lock",
    "minimum_distance",
    "open_loop",
    "regularize",
    "relative_projections",
    "renew_rows",
    "save_html",
    "self_collisions",
    "separation",
    "simulate",
    "single_faults",
    "stop",
    "stop_when",
    "study",
    "swept_volume",
    "to_pinocchio",
    "transition",
    "unlock",
    "view",
    "when",
    "worst_case",
    "worst_fault",
]


def __dir__() -> list[str]:
    """Names that TAB offers: the public ones, not the modules that they come from."""
    return __all__
