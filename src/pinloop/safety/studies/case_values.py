"""Values of the variables of each case: a point of the sampling, at a pose that can be assembled.

Loops do not allow all poses within the limits of their drives. Where poses are drawn, what cannot
be assembled is drawn again, evenly, so that poses are as likely everywhere where the robot can be.
What is drawn depends on the seed and on the number of the case alone. Points of grids and corners
stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .cases import Setup, Values
from .space import Sampling

_DRAWS = 64
"""How often a pose is drawn again; where 5 in 100 can be assembled, 4 cases in 100 are not."""


def varying(setup: Setup) -> tuple[str, ...]:
    """Names of the variables that vary."""
    return tuple(variable.name for variable in setup.variables if variable.varies)


def case_values(setup: Setup, sampling: Sampling, first: int, last: int) -> list[dict[str, float]]:
    """Values of all variables for consecutive cases."""
    return list(each_case(setup, sampling, first, last))


def each_case(
    setup: Setup, sampling: Sampling, first: int, last: int
) -> Iterator[dict[str, float]]:
    """Values of all variables for one of consecutive cases after the other."""
    names, again = varying(setup), setup.draws_again(sampling)
    for k, point in enumerate(sampling.block(names, first, last).tolist(), start=first):
        share = dict(zip(names, point, strict=True))
        case = {
            item.name: item.at(share[item.name]) if item.varies else item.low
            for item in setup.variables
        }
        yield _reachable(setup, sampling, k, case) if again else case


def _reachable(setup: Setup, sampling: Sampling, number: int, case: Values) -> dict[str, float]:
    """The case with a pose that can be assembled; the last one drawn if none is found."""
    poses = [v for v in setup.variables if v.kind == "pose" and v.varies]
    generator = np.random.default_rng([vars(sampling)["seed"], number])
    drawn_case = dict(case)
    for _ in range(_DRAWS):
        if setup.can_be_assembled(drawn_case):
            break
        shares = generator.random(len(poses)).tolist()
        drawn_case |= {v.name: v.at(share) for v, share in zip(poses, shares, strict=True)}
    return drawn_case
