"""Robots with closed loops and changing topology, on top of Pinocchio."""

from . import (
    constraints as constraints,
)
from . import (
    dynamics as dynamics,
)
from . import (
    interop as interop,
)
from . import (
    model as model,
)
from . import (
    safety as safety,
)
from . import (
    simulation as simulation,
)
from .assembly.assemble import assemble, consistent_acceleration, consistent_velocity
from .assembly.pose_grid import reachable_poses
from .constraints.closure import Constraints
from .dynamics import (
    ODCA,
    Augmented,
    Automatic,
    DriveTorques,
    EquationsOfMotion,
    Projected,
    Voronets,
    inverse_dynamics,
    reflected_inertia,
    serial,
    tool_capability,
)
from .dynamics import forces as forces
from .dynamics import formulations as formulations
from .dynamics import parameters as parameters
from .dynamics.forces import (
    PD,
    Torque,
    TorqueFunction,
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
from .integrate import MuntheKaas
from .interop.closure_code import export_closure
from .interop.to_pinocchio import to_pinocchio
from .io.examples import example, example_file
from .io.loading import from_screws, load
from .model.mechanism import Mechanism
from .model.reduction import Regularization
from .regularization.diagnosis import Diagnosis, diagnose
from .regularization.regularize import regularize
from .regularization.sampled_redundancy import renew_rows
from .safety.brakes.brakes import Brakes
from .safety.space.clearance import clearance
from .safety.space.solids import Obstacle
from .safety.standards.allowed_speed import allowed_speed
from .safety.standards.separation import separation
from .safety.stopping import (
    Category0,
    Category1,
    Category2,
    Payload,
    StopResult,
    stop,
)
from .safety.studies.headlines import worst_case
from .safety.studies.study import Study, study
from .scenarios.fmu import export_fmu
from .scenarios.reading import load_scenario
from .scenarios.scenario_entries import Scenario
from .show.scene import save_html, view
from .show.scene.meshcat_robot import MeshcatRobot
from .simulation.batch import Batch, simulate_many
from .simulation.events import (
    close_loop,
    lock,
    open_loop,
    stop_when,
    unlock,
    when,
)
from .simulation.linearization import derivatives, equilibrium, linearize
from .simulation.modes import Mode
from .simulation.run_file import load_trajectory
from .simulation.simulate import simulate
from .simulation.stabilization import Projection
from .simulation.trajectory import Trajectory
from .simulation.transitions import transition
from .version import __version__

__all__ = [
    "ODCA",
    "PD",
    "Augmented",
    "Automatic",
    "BadValue",
    "Batch",
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "Constraints",
    "Diagnosis",
    "DriveTorques",
    "EquationsOfMotion",
    "InconsistentVelocity",
    "LoadError",
    "LoopNotClosed",
    "Mechanism",
    "MeshcatRobot",
    "Mode",
    "MuntheKaas",
    "NotFinite",
    "Obstacle",
    "Payload",
    "PinloopError",
    "PinloopWarning",
    "Projected",
    "Projection",
    "Regularization",
    "Scenario",
    "SimulationFailed",
    "SingularMass",
    "StopFailed",
    "StopResult",
    "Study",
    "Torque",
    "TorqueFunction",
    "Trajectory",
    "UnknownName",
    "Voronets",
    "__version__",
    "allowed_speed",
    "assemble",
    "clearance",
    "close_loop",
    "consistent_acceleration",
    "consistent_velocity",
    "constraints",
    "derivatives",
    "diagnose",
    "dynamics",
    "equilibrium",
    "example",
    "example_file",
    "export_closure",
    "export_fmu",
    "forces",
    "formulations",
    "from_screws",
    "interop",
    "inverse_dynamics",
    "linearize",
    "load",
    "load_scenario",
    "load_trajectory",
    "lock",
    "model",
    "open_loop",
    "parameters",
    "reachable_poses",
    "reflected_inertia",
    "regularize",
    "renew_rows",
    "safety",
    "save_html",
    "separation",
    "serial",
    "simulate",
    "simulate_many",
    "simulation",
    "stop",
    "stop_when",
    "study",
    "to_pinocchio",
    "tool_capability",
    "transition",
    "unlock",
    "view",
    "when",
    "worst_case",
]

def __dir__() -> list[str]:
    """Names that TAB offers: the public ones, not the modules that they come from."""
    return __all__
