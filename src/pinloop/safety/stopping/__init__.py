"""One stop: plan, drive train, stick and slip, loads, result; pages and plots are above."""

from __future__ import annotations

from ..brakes.brakes import Brakes
from ..brakes.joint_brake import Chain, JointBrake
from .plan import Category0, Category1, Category2, Trigger
from .prepared_robot import Payload
from .recorded import JointTrajectory
from .result import StopResult
from .standstill import Standstill
from .stop import single_faults, stop, worst_fault
from .travel import JointStop, PointStop

__all__ = [
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "Chain",
    "JointBrake",
    "JointStop",
    "JointTrajectory",
    "Payload",
    "PointStop",
    "Standstill",
    "StopResult",
    "Trigger",
    "single_faults",
    "stop",
    "worst_fault",
]
