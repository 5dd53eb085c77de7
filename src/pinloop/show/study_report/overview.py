"""What was studied, and how it went: badge, cards, warnings, ranges, and the cases replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import PinloopError, printable
from ...integrate import MuntheKaas
from ...safety.stopping import StopResult
from ...safety.stopping.loads import CLOSURE
from ...safety.stopping.prepared_robot import tool_of
from ...safety.stopping.travel import JointStop
from ...safety.studies.cases import Setup
from ...safety.studies.criteria import DISPLACEMENT, SEPARATION, known_criteria
from ...safety.studies.results import (
    QuantityDistribution,
    Results,
    quantities,
    quantity_of,
)
from ...safety.studies.space import Variable
from ...safety.studies.study import Study
from ...safety.studies.summary import beyond_text, search_problems
from ...safety.studies.worst import WorstCase
from ...tables.number_format import Units, decimals, listed, milliseconds, number, units_of
from ...tables.report import Block, KeyValues, Table
from ...units import shown_unit
from ..stop_report import Badge, Card, make_motion
from .distributions import VARIED, Measures
from .maps import obstacle_layers

_MOST = 5
"""So many cases are replayed, if nobody names them."""
_MESHES, _FRAMES, _FEWEST = 4_000_000, 2000, 60
"""Bytes of meshes, frames of all cases together, and of each at least: 10 MB hold them."""
MOST_LIVE = 8
"""So many replays run at a time: browsers allow some 16 pictures of this kind in all."""
_ORDER = ("time", "travel", "clearance", "angle", "gear", "impulse")
"""Which criteria come first: that of the whole robot, then the worst joint of each kind."""


def badge(study: Study, results: Results) -> Badge:
    """How many cases ended well."""
    good = study.complete and results.stopped == study.done > 0
    more = f" of {study.done} cases stopped and hold"
    if study.done == 1:
        more = " of 1 case stopped and holds"
    if not study.complete:
        more += f"; {study.size - study.done} of {study.size} are still to be done"
    result = Badge("good" if good else "bad", str(results.stopped), more)
    result = result.beyond((limit.joint for limit in results.beyond), "some ")
    if search_problems(study):
        mark = "warn" if result.mark == "good" else result.mark
        result = Badge(mark, result.word, f"{result.more}; the search met others that do worse")
    return result.guessed(study.setup.guesses)


def cards(study: Study, results: Results, measures: Measures) -> Iterator[Card]:
    """The numbers that count."""
    lost = {name: count for name, count in results.outcomes.items() if name != "stopped"}
    endings = ", ".join(f"{count} {name}" for name, count in lost.items())
    yield Card(
        "not stopped or not held",
        str(sum(lost.values())),
        f"of {study.done} case{'s' if study.done != 1 else ''}",
        endings or "every case stopped and holds",
        "bad" if lost else "",
    )
    for name in ("time", "travel", "clearance"):
        if name in measures:
            yield _worst(study, measures[name])
    for kind, units in (("angle", ("deg", "mm")), ("impulse", ("N m s", "N s"))):
        for unit in units:
            quantities = ((measure, measure.quantity) for measure in measures.values())
            alike = [measure for measure, q in quantities if (q.kind, q.unit) == (kind, unit)]
            if alike:
                yield _worst(study, max(alike, key=lambda measure: known_worst(study, measure)))
    known = list(_gear_uses(study, measures))
    if known:
        use, limit, measure = max(known, key=lambda item: item[0])
        quantity, spread = measure.quantity, measure.spread
        load = f"{quantity.bare(spread.worst)} of {quantity.text(limit)}"
        yield Card(
            "highest gear utilisation",
            number(100 * use, 0),
            "%",
            f", {printable(quantity.joint)}: {load}",
            "bad" if use > 1 else "",
            spread.case,
        )


def known_worst(study: Study, measure: QuantityDistribution) -> float:
    """The worst value of a quantity that samples or the search know [SI]."""
    case = found_case(study, measure)
    return measure.spread.worst if case is None else case.value


def searched_case(study: Study, measure: QuantityDistribution) -> WorstCase | None:
    """The worst case by a quantity that the search knows."""
    known = {} if study.searched is None else study.searched.cases
    return known.get(measure.quantity.criterion)


def found_case(study: Study, measure: QuantityDistribution) -> WorstCase | None:
    """The case of the search that is worse by a quantity than all samples."""
    case = searched_case(study, measure)
    return None if case is None or case.value == measure.spread.worst else case


def _worst(study: Study, measure: QuantityDistribution) -> Card:
    quantity, spread, found = measure.quantity, measure.spread, found_case(study, measure)
    over = "above" if quantity.kind == "clearance" else "below"
    value = known_worst(study, measure)
    touches = quantity.kind == "clearance" and value <= 0.0
    before = "touches an obstacle; " if touches else ""
    more = f"median {quantity.text(spread.median)}, 95 % {over} {quantity.text(spread.most)}"
    if (case := searched_case(study, measure)) is not None and case.interval is not None:
        more += f"; as brake data vary, {case.interval.text}"
    if found is not None:
        before += "found by the search; "
        more = f"worst sample {quantity.text(spread.worst)}, {more}"
    return Card(
        quantity.superlative,
        quantity.bare(value),
        quantity.unit,
        more if found is not None else f"; {more}",
        "bad" if touches else "",
        spread.case if found is None else None,
        before,
    )


def _gear_uses(
    study: Study, measures: Measures
) -> Iterator[tuple[float, float, QuantityDistribution]]:
    """Gears that have a limit: the highest utilisation, the limit, and the torque."""
    for measure in measures.values():
        if measure.quantity.kind == "gear":
            limit = study.setup.brakes.joints[measure.quantity.joint].peak_gear_torque
            if limit:
                yield measure.spread.worst / limit, limit, measure


# -- warnings -------------------------------------------------------------------------------------


def warnings(
    study: Study, results: Results, measures: Measures, stops: Sequence[StopResult]
) -> list[str]:
    """What is odd: counted over all cases where the results tell it, else over those replayed."""
    setup = study.setup
    beyond = (beyond_text(setup, limit) for limit in results.beyond)
    known = list(dict.fromkeys([*setup.brakes.warnings, *setup.robot.warnings]))
    sentences = [*beyond, *search_problems(study), *_counted(study, results, measures), *known]
    counts = Counter(text for stop in stops for text in set(stop.warnings) - set(known))
    # What is said of a gear in one case is counted over all of them above.
    shared = {text for text, count in counts.items() if count == len(stops) > 1}
    sentences += [f"in all {len(stops)} cases that are replayed: {text}" for text in sorted(shared)]
    own = len(counts) - len(shared)
    if sentences and own:
        sentences.append(f"{own} more about single cases stand below their replays")
    return sentences


def _counted(study: Study, results: Results, measures: Measures) -> Iterator[str]:
    """Cases that touch an obstacle, overload a gear, or whose energy does not add up."""
    near = measures.get("clearance")
    if near is not None and (count := int(np.sum(near.values <= 0.0))):
        yield f"{count} of {len(near.values)} cases: the robot touches an obstacle"
    for _, limit, measure in _gear_uses(study, measures):
        joint, spread = measure.quantity.joint, measure.spread
        if over := int(np.sum(measure.values > limit)):
            yield (
                f"{over} of {len(measure.values)} cases: the gear of joint '{joint}' carries more "
                f"than the {limit:.4g} {units_of(study.setup.robot, joint).torque} that it may, at "
                f"worst {measure.quantity.text(spread.worst)} in case {spread.case}"
            )
    errors = results.columns["ledger_error"]
    if count := int(np.sum(errors > CLOSURE)):
        worst = int(np.argmax(errors))
        yield (
            f"{count} of {len(errors)} cases: the energy balance is off by more than "
            f"{100 * CLOSURE:g} % of the energy turned over, at worst {100 * errors[worst]:.2g} % "
            f"in case {results.cases[worst]}: their results are doubtful; tighten the tolerances"
        )


# -- what was studied -----------------------------------------------------------------------------


class Ranges(NamedTuple):
    """Ranges of what varied under their titles, and whether something had a single value."""

    blocks: list[tuple[str, Block]]
    fixed: bool


def ranges(setup: Setup) -> Ranges:
    """Ranges of all variables, joint by joint."""
    variables, (of, kinds, joints) = setup.variables, _by_joint(setup)
    blocks: list[tuple[str, Block]] = []
    if joints:
        headings = ["<joint", *(VARIED[kind] for kind in kinds)]
        rows = [[name, *(_range(of.get((kind, name))) for kind in kinds)] for name in joints]
        table = Table.of("What varied, joint by joint", headings, rows)
        blocks.append(("Joint by joint", table))
    if others := [(VARIED[v.kind], _range(v)) for v in variables if not v.joint]:
        blocks.append(("Other quantities", KeyValues.of("Other quantities", others)))
    return Ranges(blocks, any(not variable.varies for variable in variables))


def _by_joint(setup: Setup) -> tuple[dict[tuple[str, str], Variable], list[str], list[str]]:
    """Variables of joints by kind and joint, their kinds, and the joints."""
    of = {(v.kind, v.joint): v for v in setup.variables if v.joint}
    kinds = [kind for kind in VARIED if any(kind == own for own, _ in of)]
    return of, kinds, list(dict.fromkeys(joint for _, joint in of))


def _range(variable: Variable | None) -> str:
    if variable is None:
        return ""
    unit, factor = shown_unit(variable.unit)
    low, high = factor * variable.low, factor * variable.high
    text = f"{low:.4g} to {high:.4g}" if variable.varies else f"{low:.4g}"
    return f"{text} {unit}".rstrip()


def facts(study: Study) -> KeyValues:
    """What was the same in all cases."""
    setup = study.setup
    category = setup.category
    words = str(category.number) + (f" ({category.function})" if category.function else "")
    if category.controlled:
        words += ", on the path" if category.on_path else ", each joint by its own ramp"
    if category.time_limit is not None:
        words += f", brakes after {1e3 * category.time_limit:g} ms in any case"
    gravity = setup.robot.gravity if setup.gravity is None else setup.gravity
    command = setup.trigger.chain(setup.brakes.chain).command
    entries = {
        "robot": printable(setup.robot.description.source or "made in Python"),
        "tool": printable(tool_of(setup.robot)),
        "brakes": printable(setup.brakes.source or "given in Python"),
        "category": words,
        "from the signal to the command": f"{1e3 * command:g} ms",
        "payload": _payload(setup),
        "gravity": f"({', '.join(f'{g:g}' for g in gravity)}) m/s\N{SUPERSCRIPT TWO}",
        "cases": f"{study.done} of {study.size}, {study.sampling!r}",
        "limit of the time of a stop": f"{setup.until:g} s",
        "integrator": _method(setup.method),
    }
    if setup.obstacles:
        entries["obstacles"] = listed(printable(obstacle.name) for obstacle in setup.obstacles)
    motion = setup.space.motion
    if motion is not None:
        entries["motion"] = f"recorded, {len(motion.t)} samples over {motion.duration:g} s"
    entries["results"] = printable(str(study.path))
    return KeyValues.of("The same in all cases", entries.items())


def _method(method: MuntheKaas) -> str:
    name = method.name if isinstance(method.name, str) else "a tableau of your own"
    if method.step is not None:
        return f"{name}, steps of {1e3 * method.step:g} ms"
    return f"{name}, tolerances {method.rtol:g} relative, {method.atol:g} absolute"


def _payload(setup: Setup) -> str:
    if any(variable.kind == "payload" for variable in setup.variables):
        return "varied; see above"
    load = setup.payload
    if load is None:
        return "none"
    return f"{load.mass:g} kg at {printable(load.frame or tool_of(setup.robot))}"


# -- cases that are replayed ----------------------------------------------------------------------


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
    names = list(_criteria(study, measures))
    if worst is not None:
        wanted = [worst] if isinstance(worst, str) else list(worst)
        names = list(known_criteria(study.setup, wanted))
    chosen: list[str | int] = []
    for name in names:
        if name in measures:
            found = found_case(study, measures[name])
            chosen.append(measures[name].spread.case if found is None else name)
    chosen = list(dict.fromkeys(chosen))
    if worst is None:
        # One that moves but does not stop or is not held can be looked at, too.
        lost = [sort.cases[0] for sort in results.failures if sort.outcome != "failed"]
        chosen = [*chosen[:_MOST], *lost[:1]]
    known = {} if study.searched is None else study.searched.cases
    return [
        _sampled(study, results, measures, each)
        if isinstance(each, int)
        else _searched(study, each, known[each])
        for each in chosen
    ]


def _criteria(study: Study, measures: Measures) -> Iterator[str]:
    """Criteria in the order in which they matter: the worst of each kind, then the others."""
    rest: list[QuantityDistribution] = []
    for kind in _ORDER:
        alike = [measure for measure in measures.values() if measure.quantity.kind == kind]
        # Turning joints first: degrees and millimetres cannot be compared.
        alike.sort(
            key=lambda measure: (
                measure.quantity.unit in ("mm", "N", "N s"),
                -measure.quantity.factor * known_worst(study, measure),
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
    known = {quantity.criterion for quantity in quantities(study.setup)}
    if name not in known and name.partition(":")[0] not in (DISPLACEMENT, SEPARATION):
        raise PinloopError(
            f"worst case '{name}' belongs to another study: this one has no such criterion"
        )
    quantity = quantity_of(name, case.column)
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
    joints, (of, kinds, varied) = case.stop.joints, _by_joint(study.setup)
    struck = any(joint.impulse for joint in joints.values())
    ends = ("moves", "at rest after", *(("impulse",) if struck else ()), "gear, at most")
    rows = []
    for name in dict.fromkeys([*varied, *joints]):
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
