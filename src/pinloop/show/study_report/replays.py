"""The cases that are replayed in the page of a study: which ones, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import PinloopError
from ...safety.stopping import StopResult
from ...safety.stopping.travel import JointStop
from ...safety.studies.cases import WorstCase
from ...safety.studies.space import Variable
from ...safety.studies.study import Study
from ...safety.studies.worst import known_criteria
from ...tables.number_format import Units, decimals, milliseconds, number, units_of
from ...tables.report import Table
from ...units import shown_unit
from ..stop_report.sections import make_motion
from .maps import obstacle_layers
from .results import VARIED, Measures, QuantityDistribution, Results, quantities

__all__ = ["MOST_LIVE", "ReplayedCase", "choose_cases", "shown_cases"]

_MOST = 5
"""So many cases are replayed, if nobody names them."""
_MESHES, _FRAMES, _FEWEST = 4_000_000, 2000, 60
"""Bytes of meshes, frames of all cases together, and of each at least: 10 MB hold them."""
MOST_LIVE = 8
"""So many replays run at a time: browsers allow some 16 pictures of this kind in all."""
_ORDER = ("time", "travel", "clearance", "angle", "gear", "impulse")
"""Which criteria come first: that of the whole robot, then the worst joint of each kind."""


@dataclass(frozen=True, eq=False)
class ReplayedCase:
    """A case that is replayed: its key in the page, its name, why it is shown, and the stop.

    Values are those of all variables by name; the number is None if it is no sample.
    """

    key: str
    name: str
    reasons: tuple[str, ...]
    values: Mapping[str, float]
    stop: StopResult
    number: int | None = None


def choose_cases(
    study: Study,
    results: Results,
    measures: Measures,
    worst: Iterable[str] | Mapping[str, WorstCase] | None,
) -> list[ReplayedCase]:
    """The cases to be replayed: the worst by criteria, or those that a search gave."""
    if isinstance(worst, Mapping):
        return [_searched(study, name, case) for name, case in worst.items()]
    names = list(_criteria(measures))
    if worst is not None:
        wanted = [worst] if isinstance(worst, str) else list(worst)
        names = list(known_criteria(study.setup, wanted))
    cases = list(dict.fromkeys(measures[name].spread.case for name in names if name in measures))
    if worst is None:
        # One that moves but does not stop or is not held can be looked at, too.
        lost = [sort.cases[0] for sort in results.failures if sort.outcome != "failed"]
        cases = cases[:_MOST] + lost[:1]
    return [_sampled(study, results, measures, case) for case in cases]


def _criteria(measures: Measures) -> Iterator[str]:
    """Criteria in the order in which they matter: the worst of each kind, then the others."""
    rest: list[QuantityDistribution] = []
    for kind in _ORDER:
        alike = [measure for measure in measures.values() if measure.quantity.kind == kind]
        # Turning joints first: degrees and millimetres cannot be compared.
        alike.sort(
            key=lambda measure: (
                measure.quantity.unit in ("mm", "N", "N s"),
                -measure.quantity.factor * measure.spread.worst,
            )
        )
        yield from (measure.quantity.criterion for measure in alike[:1])
        rest += alike[1:]
    yield from (measure.quantity.criterion for measure in rest)


def _sampled(study: Study, results: Results, measures: Measures, case: int) -> ReplayedCase:
    reasons = [
        f"{measure.quantity.superlative}: {measure.quantity.text(measure.spread.worst)}"
        for measure in measures.values()
        if measure.spread.case == case
    ]
    reasons += [
        f"{sort.outcome}, as {sort.count} of {study.done}"
        for sort in results.failures
        if case in sort.cases
    ]
    stop, key, name = study.replay(case), f"case-{case}", f"case {case}"
    return ReplayedCase(key, name, tuple(reasons), study.values(case), stop, case)


def _searched(study: Study, name: str, case: WorstCase) -> ReplayedCase:
    """A worst case that a search gave, which is no sample."""
    known = {quantity.criterion: quantity for quantity in quantities(study.setup)}
    if name not in known:
        raise PinloopError(
            f"worst case '{name}' belongs to another study: this one has no such criterion"
        )
    quantity = known[name]
    reason = (
        f"{quantity.superlative} that a search found: {quantity.text(case.value)}; worst sample "
        f"{quantity.text(case.sampled)}"
    )
    key = "found-" + "".join(c if c.isalnum() and c.isascii() else f"-{ord(c):x}-" for c in name)
    return ReplayedCase(key, f"worst {quantity.name}", (reason,), case.values, case.stop)


# -- in the page ----------------------------------------------------------------------------------


def shown_cases(
    study: Study, cases: Sequence[ReplayedCase], shared: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """What the page shows of each case; ``shared`` gathers the commands that draw them."""
    layers = obstacle_layers(study.setup.obstacles)
    for case in cases:
        stop = case.stop
        known = {*stop.brakes.warnings, *stop.robot.warnings}
        first = case.reasons[0] if case.reasons and case.number is not None else ""
        yield {
            **vars(case),
            "short": first.split(":")[0].split(",")[0],
            "motion": make_motion(
                stop,
                shared=shared,
                layers=layers,
                frames=max(_FEWEST, _FRAMES // len(cases)),
                mesh_bytes=_MESHES,
            ),
            "joints": _joint_table(case, study),
            "others": [
                f"{VARIED[variable.kind]} {_value(variable, case.values)}"
                for variable in study.setup.variables
                if not variable.joint
            ],
            "warnings": [text for text in stop.warnings if text not in known],
        }


def _joint_table(case: ReplayedCase, study: Study) -> Table:
    variables, joints = study.setup.variables, case.stop.joints
    of = {(variable.kind, variable.joint): variable for variable in variables}
    kinds = [k for k in VARIED if any(kind == k and name for kind, name in of)]
    struck = any(joint.impulse for joint in joints.values())
    ends = ("moves", "at rest after", *(("impulse",) if struck else ()), "gear, at most")
    rows = []
    for name in dict.fromkeys([*(v.joint for v in variables if v.joint), *joints]):
        units = units_of(case.stop.robot, name)
        results = _joint_results(joints[name], units) if name in joints else {}
        values = [_value(of.get((kind, name)), case.values) for kind in kinds]
        rows.append([name, *values, *(results.get(end, "") for end in ends)])
    return Table.of("Joint by joint", ["<joint", *(VARIED[kind] for kind in kinds), *ends], rows)


def _joint_results(joint: JointStop, units: Units) -> dict[str, str]:
    travel, use = units.factor * joint.excursion, joint.gear_use
    gear = f"{joint.peak_gear_torque:.4g} {units.torque}"
    return {
        "moves": f"{number(travel, decimals([travel], most=2))} {units.shown}",
        "at rest after": milliseconds(joint.time),
        "impulse": f"{joint.impulse:.4g} {units.torque} s" if joint.impulse else "",
        "gear, at most": gear if use is None else f"{gear} ({100 * use:.0f} %)",
    }


def _value(variable: Variable | None, values: Mapping[str, float]) -> str:
    if variable is None or variable.name not in values:
        return ""
    unit, factor = shown_unit(variable.unit)
    value = factor * values[variable.name]
    return f"{number(value, decimals([value], most=2, digits=4))} {unit}".rstrip()
