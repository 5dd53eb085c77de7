from . import forces, formulations, parameters
from .capability import ReflectedInertia, ToolCapability, reflected_inertia, tool_capability
from .derivatives import Derivatives, JumpDerivatives
from .drives import DriveLoad, DriveTorques
from .equations import EquationsOfMotion
from .formulations import Augmented, Automatic, Formulation, MatrixFormulation, Projected, Voronets
from .independence import dependent_coordinates, relative_projections
from .inverse import Holonomy, christoffel, coriolis, holonomic, inverse_dynamics
from .motor_map import SerialMap
from .odca import ODCA
from .serial_twin import SerialTwin, serial
from .twin_pose import TwinPose

__all__ = [
    "ODCA",
    "Augmented",
    "Automatic",
    "Derivatives",
    "DriveLoad",
    "DriveTorques",
    "EquationsOfMotion",
    "Formulation",
    "Holonomy",
    "JumpDerivatives",
    "MatrixFormulation",
    "Projected",
    "ReflectedInertia",
    "SerialMap",
    "SerialTwin",
    "ToolCapability",
    "TwinPose",
    "Voronets",
    "christoffel",
    "coriolis",
    "dependent_coordinates",
    "forces",
    "formulations",
    "holonomic",
    "inverse_dynamics",
    "parameters",
    "reflected_inertia",
    "relative_projections",
    "serial",
    "tool_capability",
]
