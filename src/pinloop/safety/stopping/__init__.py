"""One stop: plan, drive train, stick and slip, loads, result; pages and plots are above."""

from __future__ import annotations

from ..brakes.brakes import Brakes as Brakes
from ..brakes.joint_brake import Chain as Chain
from ..brakes.joint_brake import JointBrake as JointBrake
from .categories import Category0 as Category0
from .categories import Category1 as Category1
from .categories import Category2 as Category2
from .plan import Trigger as Trigger
from .prepared_robot import Payload as Payload
from .recorded import JointTrajectory as JointTrajectory
from .result import StopResult as StopResult
from .standstill import Standstill as Standstill
from .stop import single_faults as single_faults
from .stop import stop as stop
from .stop import worst_fault as worst_fault
from .travel import JointStop as JointStop
from .travel import PointStop as PointStop
