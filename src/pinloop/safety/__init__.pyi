from .brakes.brakes import Brakes
from .brakes.joint_brake import Chain, JointBrake
from .brakes.laws import (
    ConstantDeceleration,
    ConstantTime,
    DriveTorque,
    FirstOrder,
    JerkLimited,
    StopLaw,
)
from .brakes.uncertainty import Correlation, ParameterDistribution
from .space.clearance import Approach, SelfCollisions, clearance, self_collisions
from .space.interval_tree import joint_limits
from .space.solids import Obstacle
from .space.swept import SweptVolume, swept_volume
from .standards.allowed_speed import AllowedSpeed, allowed_speed
from .standards.annexb import AnnexB, annex_b
from .standards.brake_heat import BrakeHeat, brake_heat
from .standards.cell_map import CellMap, Watch, cell_map
from .standards.comparison import Comparison, compare
from .standards.distances import ApproachSpeed, MinimumDistance, minimum_distance
from .standards.fit import Fit, fit_brakes
from .standards.fit_law import LawFits, fit_law
from .standards.interpolation import StopInterpolation, interpolate_stops
from .standards.published import Measured, StoppingTable
from .standards.separation import Separation, separation
from .standards.trace_fit import TraceFit, fit_traces
from .standards.traces import Overlay, StopTrace, align
from .stopping.bands import sample_stop
from .stopping.differentiation import what_it_depends_on
from .stopping.intervals import Guesses, Interval, StopBands
from .stopping.plan import Category0, Category1, Category2, Trigger
from .stopping.prepared_robot import Payload
from .stopping.recorded import JointTrajectory
from .stopping.result import StopResult
from .stopping.safety_functions import SafetyFunction
from .stopping.sensitivity import StopSensitivity
from .stopping.standstill import Standstill
from .stopping.stop import single_faults, stop, worst_fault
from .stopping.travel import JointStop, PointStop
from .studies.headlines import worst_case
from .studies.order_statistics import Sampled
from .studies.space import Corners, Grid, Random, Sobol, Space
from .studies.study import Study, study
from .studies.worst import CriterionResult, Searched, WorstCase
from .studies.worst_search import Search

__all__ = [
    "AllowedSpeed",
    "AnnexB",
    "Approach",
    "ApproachSpeed",
    "BrakeHeat",
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "CellMap",
    "Chain",
    "Comparison",
    "ConstantDeceleration",
    "ConstantTime",
    "Corners",
    "Correlation",
    "CriterionResult",
    "DriveTorque",
    "FirstOrder",
    "Fit",
    "Grid",
    "Guesses",
    "Interval",
    "JerkLimited",
    "JointBrake",
    "JointStop",
    "JointTrajectory",
    "LawFits",
    "Measured",
    "MinimumDistance",
    "Obstacle",
    "Overlay",
    "ParameterDistribution",
    "Payload",
    "PointStop",
    "Random",
    "SafetyFunction",
    "Sampled",
    "Search",
    "Searched",
    "SelfCollisions",
    "Separation",
    "Sobol",
    "Space",
    "Standstill",
    "StopBands",
    "StopInterpolation",
    "StopLaw",
    "StopResult",
    "StopSensitivity",
    "StopTrace",
    "StoppingTable",
    "Study",
    "SweptVolume",
    "TraceFit",
    "Trigger",
    "Watch",
    "WorstCase",
    "align",
    "allowed_speed",
    "annex_b",
    "brake_heat",
    "cell_map",
    "clearance",
    "compare",
    "fit_brakes",
    "fit_law",
    "fit_traces",
    "interpolate_stops",
    "joint_limits",
    "minimum_distance",
    "sample_stop",
    "self_collisions",
    "separation",
    "single_faults",
    "stop",
    "study",
    "swept_volume",
    "what_it_depends_on",
    "worst_case",
    "worst_fault",
]
