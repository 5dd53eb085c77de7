"""Motion over time on configuration groups: methods, steps, recording; no robot is known here."""

from __future__ import annotations

from .event_location import Crossing, GuardMemory, Guards
from .flow import MANY, Flow, ManySteps, State, StepFailed
from .guards import TURN, Coordinate, Guard, unit_roots
from .hybrid import Ahead, Change, Chatter, HybridIntegrator, HybridState, HybridSystem
from .implicit import ImplicitSteps, Iterated, Slopes, difference_slopes
from .munthe_kaas import (
    Attempt,
    ConfigurationGroup,
    Manifold,
    MuntheKaas,
    NoBranch,
    Step,
    StepControl,
)
from .polynomials import (
    COARSE,
    FINE,
    INNER,
    NODES,
    WEIGHTS,
    Bernstein,
    Interpolation,
    hermite,
    refined,
    slope_powers,
    value_powers,
)
from .recording import EveryStep, Recorded, Recording, Samples, Segment, States
from .stepping import WHEN_STIFF, StepMemory, Stepper
from .tableaux import METHODS, Tableau, collocation, get_tableau
from .tangents import (
    AccelerationSlopes,
    Carry,
    FollowedStep,
    GuardSlopes,
    TangentGroup,
    follow_step,
    guard_slopes,
)

__all__ = [
    "COARSE",
    "FINE",
    "INNER",
    "MANY",
    "METHODS",
    "NODES",
    "TURN",
    "WEIGHTS",
    "WHEN_STIFF",
    "AccelerationSlopes",
    "Ahead",
    "Attempt",
    "Bernstein",
    "Carry",
    "Change",
    "Chatter",
    "ConfigurationGroup",
    "Coordinate",
    "Crossing",
    "EveryStep",
    "Flow",
    "FollowedStep",
    "Guard",
    "GuardMemory",
    "GuardSlopes",
    "Guards",
    "HybridIntegrator",
    "HybridState",
    "HybridSystem",
    "ImplicitSteps",
    "Interpolation",
    "Iterated",
    "Manifold",
    "ManySteps",
    "MuntheKaas",
    "NoBranch",
    "Recorded",
    "Recording",
    "Samples",
    "Segment",
    "Slopes",
    "State",
    "States",
    "Step",
    "StepControl",
    "StepFailed",
    "StepMemory",
    "Stepper",
    "Tableau",
    "TangentGroup",
    "collocation",
    "difference_slopes",
    "follow_step",
    "get_tableau",
    "guard_slopes",
    "hermite",
    "refined",
    "slope_powers",
    "unit_roots",
    "value_powers",
]
