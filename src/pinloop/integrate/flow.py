"""What steps are taken of: a smooth motion, as whoever steps sees it; and that a step fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..boundary.marks import Array
from .munthe_kaas import ConfigurationGroup, RightHandSide, Step
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
        [tuple[float, float, float, float, float], State, list[float], list[int]],
        Segment | None,
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
