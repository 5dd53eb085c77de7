"""Robots with closed loops and changing topology, on top of Pinocchio."""

from .assembly.assemble import assemble, consistent_velocity
from .constraints.closure import Constraints
from .constraints.row_kinds import AngularMomentum, NoSlip, Pfaffian, Prescribed, Rolling
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
from .dynamics.forces import (
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
from .dynamics.holonomy import Holonomy, holonomic
from .dynamics.partition import dependent_coordinates, relative_projections
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
from .integrate import MuntheKaas
from .interop.to_pinocchio import PinocchioModels, to_pinocchio
from .io.loading import from_screws, load
from .model.mechanism import Mechanism
from .model.pairs import PAIR_NAMES
from .model.reduction import Regularization
from .regularization.diagnosis import Diagnosis, diagnose
from .regularization.regularize import regularize
from .regularization.sampled_redundancy import renew_rows
from .safety.brakes.brakes import Brakes, Chain, JointBrake
from .safety.space import Obstacle, clearance, joint_limits, self_collisions, swept_volume
from .safety.standards.annexb import AnnexB, annex_b
from .safety.standards.comparison import Comparison, compare
from .safety.standards.fit import Fit, fit_brakes
from .safety.standards.minimum import MinimumDistance, minimum_distance
from .safety.standards.published import Measured, StoppingTable
from .safety.standards.separation import Separation, separation
from .safety.stopping import (
    Category0,
    Category1,
    Category2,
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
from .safety.studies import Corners, Grid, Random, Sobol, Space, Study, WorstCase, study, worst_case
from .scenarios import Scenario, load_scenario
from .show.scene import save_html, view
from .simulation.analysis import EnergyBalance, LockReaction, Momenta, Reaction
from .simulation.events import (
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
from .simulation.modes import Locked, Mode
from .simulation.run_file import load_trajectory
from .simulation.simulate import simulate
from .simulation.stabilization import Projection
from .simulation.trajectory import Trajectory
from .simulation.transitions import Transition, transition
from .version import __version__

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
