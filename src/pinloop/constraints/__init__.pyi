from .closure import Constraints
from .row_kinds import AngularMomentum, NoSlip, Pfaffian, Prescribed, Rolling

__all__ = ["AngularMomentum", "Constraints", "NoSlip", "Pfaffian", "Prescribed", "Rolling"]
