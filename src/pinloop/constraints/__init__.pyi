from .closure import Constraints as Constraints
from .row_kinds import AngularMomentum as AngularMomentum
from .row_kinds import NoSlip as NoSlip
from .row_kinds import Pfaffian as Pfaffian
from .row_kinds import Prescribed as Prescribed
from .row_kinds import Rolling as Rolling
