"""One brake missing, late or weak, each by itself: what a stop becomes then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...boundary.arguments import public
from ...errors import BadValue, StopFailed
from ...model.mechanism import Mechanism
from ..brakes.brakes import Brakes
from .result import StopResult
from .stop import stop

__all__ = ["single_faults", "worst_fault"]

Measure = Callable[[StopResult], float]


@public
def single_faults(
    robot: Mechanism,
    *state: Any,
    brakes: Brakes | str | Path,
    late: float = 0.1,
    weak: float = 0.5,
    **arguments: Any,
) -> dict[str, StopResult]:
    """The stops with every single fault of every brake, by what the fault is.

    Args:
        robot: the mechanism.
        state: configuration and velocity at the signal, as for `stop`.
        brakes: the brakes without fault, or their file.
        late: by how much a late brake comes later [s]; 0 leaves that fault out.
        weak: part of its torque that a weak brake has; 1 leaves that fault out.
        arguments: all else that `stop` takes.
    """
    sound = (brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)).for_robot(robot)
    found: dict[str, StopResult] = {}
    for faulty in _faults(sound, late, weak):
        name = faulty.faults[-1]
        try:
            found[name] = stop(robot, *state, brakes=faulty, **arguments)
        except StopFailed as error:
            found[name] = error.result
    return found


@public
def worst_fault(results: Mapping[str, StopResult], measure: Measure | None = None) -> str:
    """The fault with the worst stop: one that does not end in a held robot, or the largest measure.

    Args:
        results: stops by fault, of `single_faults`.
        measure: what is bad about a stop; its stopping time by default.
    """
    if not results:
        raise BadValue("there are no faults: no joint has a brake")
    size = measure or (lambda result: result.stopping_time)
    return max(results, key=lambda name: (not results[name].holds, size(results[name])))


def _faults(sound: Brakes, late: float, weak: float) -> list[Brakes]:
    """Every single fault."""
    found = []
    for joint, brake in sound.joints.items():
        if brake.kind == "none":
            continue
        found.append(sound.missing(joint))
        if late > 0:
            found.append(sound.late(joint, late))
        if weak < 1 and brake.kind == "friction":
            found.append(sound.weak(joint, weak))
    return found
