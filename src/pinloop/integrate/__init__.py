"""Motion over time on configuration groups: methods, steps, recording; no robot is known here."""

from __future__ import annotations

from .event_location import TURN, Coordinate, Crossing, Guard, GuardMemory, Guards, unit_roots
from .hybrid import Ahead, Change, Chatter, HybridIntegrator, HybridState, HybridSystem
from .implicit import ImplicitSteps, Iterated, Slopes, difference_slopes
from .munthe_kaas import (
    Attempt,
    ConfigurationGroup,
    Manifold,
    MuntheKaas,
    Stages,
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
from .recording import EveryStep, Recorded, Recording, Samples, States
from .stepping import WHEN_STIFF, Flow, NoBranch, State, StepFailed, StepMemory, Stepper
from .tableaux import METHODS, Tableau, get_tableau

__all__ = [
    "COARSE",
    "FINE",
    "INNER",
    "METHODS",
    "NODES",
    "TURN",
    "WEIGHTS",
    "WHEN_STIFF",
    "Ahead",
    "Attempt",
    "Bernstein",
    "Change",
    "Chatter",
    "ConfigurationGroup",
    "Coordinate",
    "Crossing",
    "EveryStep",
    "Flow",
    "Guard",
    "GuardMemory",
    "Guards",
    "HybridIntegrator",
    "HybridState",
    "HybridSystem",
    "ImplicitSteps",
    "Interpolation",
    "Iterated",
    "Manifold",
    "MuntheKaas",
    "NoBranch",
    "Recorded",
    "Recording",
    "Samples",
    "Slopes",
    "Stages",
    "State",
    "States",
    "Step",
    "StepControl",
    "StepFailed",
    "StepMemory",
    "Stepper",
    "Tableau",
    "difference_slopes",
    "get_tableau",
    "hermite",
    "refined",
    "slope_powers",
    "unit_roots",
    "value_powers",
]
