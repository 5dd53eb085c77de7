"""Motion over time on configuration groups: methods, steps, recording; no robot is known here."""

from __future__ import annotations

from .decay import Decay, attempt_with_decay
from .event_location import TURN, Coordinate, Crossing, Guard, GuardMemory, Guards, unit_roots
from .hybrid import Ahead, Change, Chatter, HybridIntegrator, HybridState, HybridSystem
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
    slope_powers,
    value_powers,
)
from .recording import EveryStep, Recording, Samples, States
from .stepping import Flow, NoBranch, State, StepFailed, StepMemory, Stepper
from .tableaux import METHODS, Tableau, get_tableau

__all__ = [
    "COARSE",
    "FINE",
    "INNER",
    "METHODS",
    "NODES",
    "TURN",
    "WEIGHTS",
    "Ahead",
    "Attempt",
    "Bernstein",
    "Change",
    "Chatter",
    "ConfigurationGroup",
    "Coordinate",
    "Crossing",
    "Decay",
    "EveryStep",
    "Flow",
    "Guard",
    "GuardMemory",
    "Guards",
    "HybridIntegrator",
    "HybridState",
    "HybridSystem",
    "Interpolation",
    "Manifold",
    "MuntheKaas",
    "NoBranch",
    "Recording",
    "Samples",
    "Stages",
    "State",
    "States",
    "Step",
    "StepControl",
    "StepFailed",
    "StepMemory",
    "Stepper",
    "Tableau",
    "attempt_with_decay",
    "get_tableau",
    "hermite",
    "slope_powers",
    "unit_roots",
    "value_powers",
]
