"""The cases that are replayed in the page: which ones, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...errors import PinloopError, printable
from ...safety.stopping import StopResult
from ...safety.studies.cases import WorstCase
from ...safety.studies.space import Variable
from ...safety.studies.study import Study
from ...safety.studies.worst import known_criteria
from ...tables.markup import Markup, element, joined
from ...tables.number_format import decimals, milliseconds, number, units_of
from ...tables.report import Cell, Column, Table
from ...tables.report_html import table_html
from ...units import shown_unit
from ..scene.player import Player, SharedCommands
from ..stop_report.sections import section
from ..stop_report.stop_replay import motion_of
from .maps import obstacle_layers
from .results import VARIED, Measures, QuantityDistribution, Results, quantities

__all__ = ["Replayed", "Replays", "chosen", "replays_section"]

_MOST = 5
"""So many cases are replayed, if nobody names them."""
_MESHES, _FRAMES, _FEWEST = 4_000_000, 2000, 60
"""Bytes of meshes, frames of all cases together, and of each at least: 10 MB hold them."""
_LIVE = 8
"""So many replays run at a time: browsers allow some 16 pictures of this kind in all."""
_ORDER = ("time", "travel", "clearance", "angle", "gear", "impulse")
"""Which criteria come first: that of the whole robot, then the worst joint of each kind."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """A case that is replayed.

    Args:
        key: its name in the page.
        name: what it is called: "case 12".
        reasons: why it is shown.
        values: values of all variables, by name.
        stop: the stop, with everything.
    """

    key: str
    name: str
    reasons: tuple[str, ...]
    values: Mapping[str, float]
    stop: StopResult


@dataclass(frozen=True, eq=False)
class Replays:
    """The part of the page with the replays.

    Args:
        markup: what is seen.
        player: parts of the page that all of them need; None if there are none.
    """

    markup: Markup
    player: Player | None


def chosen(
    study: Study,
    results: Results,
    measures: Measures,
    worst: Iterable[str] | Mapping[str, WorstCase] | None,
) -> list[Replayed]:
    """The cases to be replayed.

    Args:
        study: the study.
        results: what came out.
        measures: quantities by criterion.
        worst: criteria, or worst cases that were found, or None.
    """
    if isinstance(worst, Mapping):
        return [_found(study, name, case) for name, case in worst.items()]
    if worst is None:
        cases = list(dict.fromkeys(measures[name].spread.case for name in _criteria(measures)))[
            :_MOST
        ]
        cases += _lost(results)
    else:
        wanted = known_criteria(study.setup, [worst] if isinstance(worst, str) else list(worst))
        cases = list(
            dict.fromkeys(measures[name].spread.case for name in wanted if name in measures)
        )
    return [_sampled(study, results, measures, case) for case in cases]


def _criteria(measures: Measures) -> Iterator[str]:
    """Criteria in the order in which they matter: the worst of each kind, then the others."""
    rest: list[QuantityDistribution] = []
    for kind in _ORDER:
        alike = [measure for measure in measures.values() if measure.quantity.kind == kind]
        # Turning joints first: degrees and millimetres cannot be compared.
        alike.sort(
            key=lambda measure: (measure.quantity.unit in ("mm", "N", "N s"), -_size(measure))
        )
        yield from (measure.quantity.criterion for measure in alike[:1])
        rest += alike[1:]
    yield from (measure.quantity.criterion for measure in rest)


def _size(measure: QuantityDistribution) -> float:
    return measure.quantity.factor * measure.spread.worst


def _lost(results: Results) -> list[int]:
    """A case that moves but does not stop or is not held, if there is one: it can be looked at."""
    return [sort.cases[0] for sort in results.failures if sort.outcome != "failed"][:1]


def _sampled(study: Study, results: Results, measures: Measures, case: int) -> Replayed:
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
    stop = study.replay(case)
    return Replayed(f"case-{case}", f"case {case}", tuple(reasons), study.values(case), stop)


def _found(study: Study, name: str, case: WorstCase) -> Replayed:
    """A worst case that a search found, which is no sample."""
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
    return Replayed(key, f"worst {quantity.name}", (reason,), case.values, case.stop)


# -- in the page ----------------------------------------------------------------------------------


def replays_section(cases: list[Replayed], study: Study) -> Replays:
    """The part of the page with the replays: one at a time is seen, chosen by buttons.

    Args:
        cases: what is replayed.
        study: the study.
    """
    if not cases:
        return Replays(Markup(""), None)
    shared, panels, player = SharedCommands(), [], None
    layers = obstacle_layers(study.setup.obstacles)
    frames = max(_FEWEST, _FRAMES // len(cases))
    for k, case in enumerate(cases):
        motion = motion_of(
            case.stop, swept=False, shared=shared, layers=layers, frames=frames,
            mesh_bytes=_MESHES,
        )  # fmt: skip
        player = motion.player
        panels.append(element(
            "div",
            element("h3", case.name[:1].upper() + case.name[1:]),
            element("ul", *(element("li", reason) for reason in case.reasons), class_="reasons"),
            Markup(motion.player.markup), motion.remarks,
            _table(case, study), _others(case, study), _warnings(case.stop),
            id=case.key, class_="case", role="tabpanel", aria_labelledby=f"tab-{case.key}",
            hidden=k > 0,
        ))  # fmt: skip
    tabs = (
        element(
            "button", case.name, *_short(case), id=f"tab-{case.key}", type="button", role="tab",
            aria_controls=case.key, aria_selected="false" if k else "true",
            tabindex="-1" if k else "0", title="; ".join(case.reasons),
        )
        for k, case in enumerate(cases)
    )  # fmt: skip
    bar = element("div", *tabs, class_="tabs", role="tablist", aria_label="Cases",
                  data_most=_LIVE)  # fmt: skip
    remark = element(
        "p", "In Python: ",
        element("code", "study.replay(case)"), " is the stop with everything.", class_="remark",
    )  # fmt: skip
    assert player is not None
    markup = section("Worst cases", "cases", bar, *panels, remark, Markup(shared.markup))
    return Replays(markup, player)


def _short(case: Replayed) -> Iterator[Markup]:
    """Why a case is shown, in few words."""
    if case.reasons and case.key.startswith("case-"):
        yield element("small", case.reasons[0].split(":")[0].split(",")[0])


def _table(case: Replayed, study: Study) -> Markup:
    """Joint by joint what the case was, and what became of it."""
    robot, setup = case.stop.robot, study.setup
    of = {(variable.kind, variable.joint): variable for variable in setup.variables}
    names = list(dict.fromkeys([*(variable.joint for variable in setup.variables if variable.joint),
                                *case.stop.joints]))  # fmt: skip
    kinds = [k for k in VARIED if any(kind == k and name for kind, name in of)]
    rows = []
    for name in names:
        units = units_of(robot, name)
        cells = [_value(of.get((kind, name)), case.values) for kind in kinds]
        joint = case.stop.joints.get(name)
        if joint is None:
            cells += ["", "", "", ""]
        else:
            way = units.factor * joint.excursion
            use = joint.gear_use
            cells += [
                f"{number(way, decimals([way], most=2))} {units.shown}",
                milliseconds(joint.time),
                f"{joint.impulse:.4g} {units.torque} s" if joint.impulse else "",
                f"{joint.peak_gear_torque:.4g} {units.torque}"
                + ("" if use is None else f" ({100 * use:.0f} %)"),
            ]
        rows.append((Cell(printable(name)), *map(Cell, cells)))
    struck = any(joint.impulse for joint in case.stop.joints.values())
    if not struck:
        rows = [(*row[:-2], row[-1]) for row in rows]
    columns = [Column("joint", right=False), *(Column(VARIED[kind]) for kind in kinds)]
    ends = ("moves", "at rest after", *(("impulse",) if struck else ()), "gear, at most")
    columns += [Column(text) for text in ends]
    return table_html(Table("Joint by joint", tuple(columns), tuple(rows)), titled=False)


def _value(variable: Variable | None, values: Mapping[str, float]) -> str:
    if variable is None or variable.name not in values:
        return ""
    unit, factor = shown_unit(variable.unit)
    value = factor * values[variable.name]
    return f"{number(value, decimals([value], most=2, digits=4))} {unit}".rstrip()


def _others(case: Replayed, study: Study) -> Markup:
    """Variables that belong to no joint."""
    values = [
        f"{VARIED[variable.kind]} {_value(variable, case.values)}"
        for variable in study.setup.variables
        if not variable.joint
    ]
    return element("p", "With ", ", ".join(values), ".") if values else Markup("")


def _warnings(stop: StopResult) -> Markup:
    """What is odd about this stop."""
    known = {*stop.brakes.warnings, *stop.robot.warnings}
    own = [text for text in stop.warnings if text not in known]
    if not own:
        return Markup("")
    items = (element("li", text) for text in own)
    return joined(element("p", "Warnings of this stop:", class_="title"), element("ul", *items))
