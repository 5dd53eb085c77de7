"""What steps are taken of: a smooth motion, and what one leaves to the next; or that it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..boundary.marks import Array
from ..tolerances import Regularity
from .implicit import Iterated, Slopes
from .munthe_kaas import ConfigurationGroup, RightHandSide, Step, StepControl
from .rank_loss import Regular
from .recording import Segment

State = tuple[Array, Array, Array]
"""Configuration, velocity, acceleration."""
Projection = Callable[[float, Array, Array], tuple[Array, Array, bool]]

MANY = 64
"""Steps that are taken at once, before anybody looks what happens in them."""


class ManySteps(NamedTuple):
    """Who takes many steps at once, and who takes notice of them.

    Args:
        take: at most `MANY` steps from a state, of which the first ones are good: a function of
            start, first size, error of the step before, end, and so many steps to come that a
            motion crawls; of configuration, velocity and acceleration; of the times at which fixed
            steps end; and of the numbers of the steps
            before which it is asked whether the motion is stiff. None if there are none.
        record: takes notice of some of these steps.
        watches: whether it looks what happens in them, and ends where something does.
    """

    take: Callable[
        [tuple[float, float, float, float, float], State, list[float], list[int]], Segment | None
    ]
    record: Callable[[Segment], None]
    watches: bool = False


class StepFailed(Exception):  # noqa: N818 - says what happened
    """A step cannot be taken; whoever steps turns it into an error with the motion so far.

    Args:
        message: what is wrong and what to do.
        reason: the same in a few words.
        q: configuration in which branches meet, if that is why, shape (nq,).
    """

    def __init__(self, message: str, reason: str, q: Array | None = None) -> None:
        super().__init__(message)
        self.reason, self.q = reason, q


@dataclass(frozen=True, eq=False)
class Flow:
    """A smooth motion on a manifold.

    Args:
        acceleration: right-hand side, a function of t, q, v.
        manifold: group of the configurations.
        project: puts a state back on the constraint manifold, and says whether it moved.
        constraints: who knows how independent they are, from 0 where branches of the manifold meet
            to 1; None: not looked at.
        branch: the motion on the branch of a state, a function of t, q, v, for steps near where
            branches meet; an error of its says why there is none.
        loss: why a projection at the end of a step takes more than its error, a function of the
            step, the velocity before, and the error per coordinate (None of fixed steps); its
            answer is None if it does not. Not looked at by default.
        fine: whether dense output is to be as accurate as the method, see `Step`; that takes
            further evaluations, in any order.
        many: what takes many steps at once where it can, if there is anything.
    """

    acceleration: RightHandSide
    manifold: ConfigurationGroup
    project: Projection
    constraints: Regular | None = None
    branch: Callable[[float, Array, Array], Flow] | None = None
    loss: Callable[[Step, Array, Array | None], object | None] | None = None
    fine: bool = False
    many: ManySteps | None = None


class StepMemory(NamedTuple):
    """What the next step takes over from those before.

    Args:
        error: error of the last step over its tolerance.
        regularity: of the constraints at its end, see `Flow`.
        branch: the motion on its branch, near where branches meet; None elsewhere.
        refused: regularity at which none was found that leads through, or the largest since, before
            the next pose; it is looked for again where that has fallen on. Infinite elsewhere.
        iterated: of implicit steps.
        taken: number of the steps taken since they are explicit, or implicit; of fixed ones since
            the last event.
        stiff: slopes of the accelerations where the motion was found to be stiff; None while it
            is not.
    """

    error: float = StepControl.FIRST_ERROR
    regularity: float = 1.0
    branch: Flow | None = None
    refused: float = np.inf
    iterated: Iterated = Iterated()
    taken: int = 0
    stiff: Slopes | None = None

    @property
    def in_new_mode(self) -> StepMemory:
        """What is left of it after an event: another mode has other branches."""
        return StepMemory(self.error, taken=self.taken, stiff=self.stiff)

    @property
    def without_branch(self) -> StepMemory:
        """What is left of it where its branch cannot be followed."""
        refused = min(self.regularity, Regularity.AGAIN * self.refused)
        return self._replace(branch=None, refused=refused)

    def flow(self, flow: Flow) -> Flow:
        """What the next step follows where it is not near other branches any more, or still is."""
        return flow if self.branch is None or self.regularity > Regularity.AWAY else self.branch

    def at(self, regularity: float, *, looked: bool) -> StepMemory:
        """What is known where a step ends; ``looked``: whether a branch was looked for in vain."""
        refused, is_known = np.inf, self.refused < np.inf
        if regularity < (Regularity.AWAY if is_known else Regularity.NEAR) and (is_known or looked):
            again = Regularity.AGAIN * self.refused
            refused = regularity if regularity < again else max(regularity, self.refused)
        return self._replace(regularity=regularity, refused=refused)

    def after(self, error: float, plain: Flow, flow: Flow, iterated: Iterated) -> StepMemory:
        """What is taken over from a step that has followed one of two."""
        branch, refused = (None, self.refused) if flow is plain else (flow, np.inf)
        taken = self.taken + 1
        return StepMemory(error, self.regularity, branch, refused, iterated, taken, self.stiff)
