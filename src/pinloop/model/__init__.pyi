from .mechanism import Mechanism as Mechanism
from .pairs import PAIR_NAMES as PAIR_NAMES
