from .analysis import EnergyBalance, LockReaction, Momenta, Reaction
from .batch import Batch, simulate_many
from .events import (
    EndStops,
    Event,
    JointLimits,
    close_loop,
    lock,
    open_loop,
    stop_when,
    unlock,
    when,
)
from .linearization import (
    Chart,
    LinearSystem,
    derivatives,
    equilibrium,
    linearize,
    transition_derivatives,
)
from .modes import Locked, Mode
from .outcomes import EnergyAt, EventTime, Outcome, PointAt, StateAt
from .run_file import load_trajectory
from .sensitivity import InitialState, Replay, Sensitivity
from .sequence_range import InputRange
from .stabilization import Projection
from .trajectory import Trajectory
from .transitions import Transition, transition

__all__ = [
    "Batch",
    "Chart",
    "EndStops",
    "EnergyAt",
    "EnergyBalance",
    "Event",
    "EventTime",
    "InitialState",
    "InputRange",
    "JointLimits",
    "LinearSystem",
    "LockReaction",
    "Locked",
    "Mode",
    "Momenta",
    "Outcome",
    "PointAt",
    "Projection",
    "Reaction",
    "Replay",
    "Sensitivity",
    "StateAt",
    "Trajectory",
    "Transition",
    "close_loop",
    "derivatives",
    "equilibrium",
    "linearize",
    "load_trajectory",
    "lock",
    "open_loop",
    "simulate_many",
    "stop_when",
    "transition",
    "transition_derivatives",
    "unlock",
    "when",
]
