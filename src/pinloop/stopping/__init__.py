"""Stopping robots: brakes, stick and slip, how far, how long, what it takes; whether it holds."""

from __future__ import annotations

from .brakes import Brakes, Chain, JointBrake
from .clearance import clearance, self_collisions
from .course import Standstill
from .faults import single_faults, worst_fault
from .joint_stop import JointStop
from .limits import joint_limits
from .machine import Payload
from .obstacles import Obstacle
from .plan import Trigger
from .point_stop import PointStop
from .recorded import JointTrajectory
from .result import StopResult
from .schedule import Category0, Category1, Category2
from .stop import stop
from .swept import swept_volume

__all__ = [
    "Brakes",
    "Category0",
    "Category1",
    "Category2",
    "Chain",
    "JointBrake",
    "JointStop",
    "JointTrajectory",
    "Obstacle",
    "Payload",
    "PointStop",
    "Standstill",
    "StopResult",
    "Trigger",
    "clearance",
    "joint_limits",
    "self_collisions",
    "single_faults",
    "stop",
    "swept_volume",
    "worst_fault",
]
