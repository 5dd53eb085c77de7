from .analysis import EnergyBalance, LockReaction, Momenta, Reaction
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
from .modes import Locked, Mode
from .run_file import load_trajectory
from .stabilization import Projection
from .trajectory import Trajectory
from .transitions import Transition, transition

__all__ = [
    "EndStops",
    "EnergyBalance",
    "Event",
    "JointLimits",
    "LockReaction",
    "Locked",
    "Mode",
    "Momenta",
    "Projection",
    "Reaction",
    "Trajectory",
    "Transition",
    "close_loop",
    "load_trajectory",
    "lock",
    "open_loop",
    "stop_when",
    "transition",
    "unlock",
    "when",
]
