from .mechanism import Mechanism
from .pairs import PAIR_NAMES

__all__ = [
    "PAIR_NAMES",
    "Mechanism",
]
