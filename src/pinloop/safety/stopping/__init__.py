"""One stop: plan, drive train, stick and slip, loads, result; pages and plots are above."""

from __future__ import annotations

from ..brakes.brakes import Brakes, Chain, JointBrake
from .brake_times import Category0, Category1, Category2
from .joint_stop import JointStop
from .plan import Trigger
from .point_stop import PointStop
from .prepared_robot import Payload
from .recorded import JointTrajectory
from .result import StopResult
from .simulation import Standstill
from .stop import single_faults, stop, worst_fault

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
