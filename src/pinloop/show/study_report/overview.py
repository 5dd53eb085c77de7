"""What was studied, and how it went: cards, ranges, what all cases share, failures, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...errors import printable
from ...integrate import MuntheKaas
from ...safety.stopping.loads import CLOSURE
from ...safety.stopping.prepared_robot import tool_of
from ...safety.studies.cases import Setup
from ...safety.studies.space import Variable
from ...safety.studies.study import Study
from ...safety.studies.summary import beyond_text
from ...tables.markup import Markup, element, joined
from ...tables.number_format import listed, number, units_of
from ...tables.report import Cell, Column, KeyValues, Table
from ...tables.report_html import key_values_html, table_html
from ...units import shown_unit
from ..stop_report.sections import card, section
from .distributions import case_link
from .replayed import Replayed
from .results import VARIED, Failure, Measures, QuantityDistribution, Results, joints_beyond

__all__ = ["badge", "cards", "failures_section", "setting_section", "warnings_section"]


def badge(study: Study, results: Results) -> Markup:
    """How many cases ended well, for all to see."""
    good = study.complete and results.stopped == study.done > 0
    more = f" of {study.done} cases stopped and hold"
    if study.done == 1:
        more = " of 1 case stopped and holds"
    if not study.complete:
        more += f"; {study.size - study.done} of {study.size} are still to be done"
    mark = "good" if good else "bad"
    beyond = [beyond_limit.joint for beyond_limit in joints_beyond(study, results)]
    if good and beyond:
        mark, more = "warn", f"{more}, but some beyond the limits of {listed(beyond)}"
    icon = "\N{CHECK MARK}" if mark == "good" else "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"
    return element(
        "p",
        element("span", icon, aria_hidden="true"),
        " ",
        element("strong", str(results.stopped)),
        more,
        class_=f"badge {mark}",
    )


def cards(
    study: Study,
    results: Results,
    measures: Measures,
    links: Mapping[int, str],
) -> Markup:
    """The numbers that count.

    Args:
        study: the study.
        results: what came out.
        measures: quantities by criterion.
        links: by number of the case, where in the page it is replayed.
    """
    entries = list(_cards(study, results, measures, links))
    across = 4 if len(entries) % 3 == 1 or len(entries) == 8 else 3
    return element("div", *entries, class_="cards", style=f"--across:{across}")


def _cards(
    study: Study,
    results: Results,
    measures: Measures,
    links: Mapping[int, str],
) -> Iterator[Markup]:
    lost = {name: count for name, count in results.outcomes.items() if name != "stopped"}
    endings = ", ".join(f"{count} {name}" for name, count in lost.items())
    yield card(
        "not stopped or not held",
        str(sum(lost.values())),
        f"of {study.done} case{'s' if study.done != 1 else ''}",
        endings or "every case stopped and holds",
        "bad" if lost else "",
    )
    for name in ("time", "travel", "clearance"):
        if name in measures:
            yield _worst(measures[name], links)
    for kind in ("angle", "impulse"):
        for unit in ("deg", "mm") if kind == "angle" else ("N m s", "N s"):
            alike = [
                measure
                for measure in measures.values()
                if measure.quantity.kind == kind and measure.quantity.unit == unit
            ]
            if alike:
                yield _worst(max(alike, key=lambda measure: measure.spread.worst), links)
    yield from _gear(study, measures, links)


def _worst(measure: QuantityDistribution, links: Mapping[int, str]) -> Markup:
    quantity, spread = measure.quantity, measure.spread
    over = "above" if quantity.kind == "clearance" else "below"
    bad = quantity.kind == "clearance" and spread.worst <= 0.0
    more = joined(
        "touches an obstacle; " if bad else "",
        "case ",
        case_link(spread.case, links),
        f"; median {quantity.text(spread.median)}, 95 % {over} {quantity.text(spread.most)}",
    )
    return card(
        quantity.superlative,
        quantity.bare(spread.worst),
        quantity.unit,
        more,
        "bad" if bad else "",
    )


def _gear(study: Study, measures: Measures, links: Mapping[int, str]) -> Iterator[Markup]:
    """The highest gear utilisation, over what it may carry."""
    known = []
    for measure in measures.values():
        if measure.quantity.kind == "gear":
            limit = study.setup.brakes.joints[measure.quantity.joint].peak_gear_torque
            if limit:
                known.append((measure.spread.worst / limit, limit, measure))
    if known:
        use, limit, measure = max(known, key=lambda item: item[0])
        more = joined(
            "case ",
            case_link(measure.spread.case, links),
            f", {printable(measure.quantity.joint)}: "
            f"{measure.quantity.bare(measure.spread.worst)} of {measure.quantity.text(limit)}",
        )
        mark = "bad" if use > 1 else ""
        yield card("highest gear utilisation", number(100 * use, 0), "%", more, mark)


_TO = " to "


def setting_section(study: Study) -> Markup:
    """What varied, and what did not."""
    same = element("h3", "The same in all cases")
    facts = key_values_html(_facts(study))
    return section("What was studied", "setting", _ranges(study.setup), same, facts)


def _ranges(setup: Setup) -> Markup:
    """Ranges of all variables, joint by joint."""
    variables = setup.variables
    of = {(variable.kind, variable.joint): variable for variable in variables}
    kinds = [
        kind
        for kind in VARIED
        if any(variable.kind == kind and variable.joint for variable in variables)
    ]
    joints = list(dict.fromkeys(variable.joint for variable in variables if variable.joint))
    parts = []
    if joints:
        columns = (Column("joint", right=False), *(Column(VARIED[kind]) for kind in kinds))
        rows = tuple(
            (Cell(printable(name)), *(_range(of.get((kind, name))) for kind in kinds))
            for name in joints
        )
        table = table_html(Table("What varied, joint by joint", columns, rows), titled=False)
        parts += [element("h3", "Joint by joint"), table]
    others = tuple(
        (VARIED[variable.kind], _range(variable)) for variable in variables if not variable.joint
    )
    if others:
        parts += [element("h3", "Beside that"), key_values_html(KeyValues("Beside that", others))]
    fixed = any(not variable.varies for variable in variables)
    text = "What varied together: every case has its own value of each range."
    text += " A single number was the same in all cases." if fixed else ""
    return joined(element("p", text, class_="remark"), *parts)


def _range(variable: Variable | None) -> Cell:
    if variable is None:
        return Cell("")
    unit, factor = shown_unit(variable.unit)
    low, high = factor * variable.low, factor * variable.high
    text = f"{low:.4g}{_TO}{high:.4g}" if variable.varies else f"{low:.4g}"
    return Cell(f"{text} {unit}".rstrip())


def _facts(study: Study) -> KeyValues:
    setup = study.setup
    chain = setup.trigger.chain(setup.brakes.chain)
    category = setup.category
    words = str(category.number)
    if category.controlled:
        words += ", on the path" if category.on_path else ", each joint by its own ramp"
    if category.time_limit is not None:
        words += f", brakes after {1e3 * category.time_limit:g} ms in any case"
    gravity = setup.robot.gravity if setup.gravity is None else setup.gravity
    entries = [
        ("robot", printable(setup.robot.description.source or "made in Python")),
        ("tool", printable(tool_of(setup.robot))),
        ("brakes", printable(setup.brakes.source or "given in Python")),
        ("category", words),
        ("from the signal to the command", f"{1e3 * chain.command:g} ms"),
        ("payload", _payload(setup)),
        ("gravity", f"({', '.join(f'{g:g}' for g in gravity)}) m/s\N{SUPERSCRIPT TWO}"),
        ("cases", f"{study.done} of {study.size}, {study.sampling!r}"),
        ("limit of the time of a stop", f"{setup.until:g} s"),
        ("integrator", _method(setup.method)),
    ]
    if setup.obstacles:
        entries.append(
            ("obstacles", listed(printable(obstacle.name) for obstacle in setup.obstacles))
        )
    motion = setup.space.motion
    if motion is not None:
        entries.append(("motion", f"recorded, {len(motion.t)} samples over {motion.duration:g} s"))
    entries.append(("results", printable(str(study.path))))
    return KeyValues("The same in all cases", tuple((name, Cell(text)) for name, text in entries))


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


# -- failures and warnings ------------------------------------------------------------------------


def failures_section(results: Results, links: Mapping[int, str]) -> Markup:
    """Cases that did not end with the robot at rest and held, alike ones together.

    Args:
        results: what came out.
        links: by number of the case, where in the page it is replayed.
    """
    if not results.failures:
        return Markup("")
    head = element(
        "tr",
        element("th", "cases", scope="col", class_="right"),
        *(element("th", text, scope="col") for text in ("ended as", "why", "which")),
    )
    rows = [
        element(
            "tr",
            element("td", str(failure.count), class_="right"),
            element("td", failure.outcome, class_="bad"),
            element("td", _why(failure)),
            element("td", *_which(failure, links)),
        )
        for failure in results.failures
    ]
    title = "Cases that did not stop or are not held"
    caption = element("caption", title, class_="unseen")
    table = element("table", caption, element("thead", head), element("tbody", *rows))
    region = element("div", table, class_="wide", tabindex="0", role="region", aria_label=title)
    return section(title, "failures", region)


def _why(failure: Failure) -> str:
    if failure.reason:
        return (
            failure.reason if failure.alike else f"{failure.reason} (and alike, with other numbers)"
        )
    return {
        "does not hold": "it comes to rest, but brakes and friction do not hold it against gravity",
        "time-out": "it did not come to rest within the time computed",
    }.get(failure.outcome, "no reason was given")


def _which(failure: Failure, links: Mapping[int, str]) -> Iterator[Markup]:
    yield joined(*(case_link(case, links) for case in failure.cases), between=", ")
    if failure.count > len(failure.cases):
        yield joined(" ...")


def warnings_section(
    study: Study,
    results: Results,
    measures: Measures,
    cases: Sequence[Replayed],
) -> Markup:
    """What is odd: counted over all cases where the results tell it, else over those replayed."""
    beyond = [
        beyond_text(study.setup, beyond_limit) for beyond_limit in joints_beyond(study, results)
    ]
    warnings = [*beyond, *_touches(measures), *_overloads(study, measures), *_balances(results)]
    setup = study.setup
    known = list(dict.fromkeys([*setup.brakes.warnings, *setup.robot.warnings]))
    warnings += known
    counted: Counter[str] = Counter()
    for case in cases:
        counted.update(text for text in set(case.stop.warnings) if text not in known)
    # What is said of a gear in one case is counted over all of them above.
    shared = [text for text, count in counted.items() if count == len(cases) > 1]
    warnings += [f"in all {len(cases)} cases that are replayed: {text}" for text in sorted(shared)]
    if not warnings:
        return Markup("")
    own = sum(1 for text in counted if text not in shared)
    if own:
        warnings.append(f"{own} more about single cases stand below their replays")
    items = (element("li", text) for text in warnings)
    return section("Warnings", "warnings", element("ul", *items))


def _touches(measures: Measures) -> Iterator[str]:
    """Cases in which the robot touches an obstacle."""
    near = measures.get("clearance")
    if near is not None and (count := int(np.sum(near.values <= 0.0))):
        yield f"{count} of {len(near.values)} cases: the robot touches an obstacle"


def _overloads(study: Study, measures: Measures) -> Iterator[str]:
    """Gears that carry more than they may."""
    for measure in measures.values():
        if measure.quantity.kind != "gear":
            continue
        limit = study.setup.brakes.joints[measure.quantity.joint].peak_gear_torque
        over = int(np.sum(measure.values > limit)) if limit is not None else 0
        if over:
            unit = units_of(study.setup.robot, measure.quantity.joint).torque
            yield (
                f"{over} of {len(measure.values)} cases: the gear of joint "
                f"'{measure.quantity.joint}' carries more than the {limit:.4g} {unit} that it may, "
                f"at worst {measure.quantity.text(measure.spread.worst)} in case "
                f"{measure.spread.case}"
            )


def _balances(results: Results) -> Iterator[str]:
    """Cases whose energy does not add up."""
    errors = results.columns["ledger_error"]
    doubtful = errors > CLOSURE
    if doubtful.any():
        worst = int(np.argmax(errors))
        yield (
            f"{int(doubtful.sum())} of {len(errors)} cases: the energy balance is off by more than "
            f"{100 * CLOSURE:g} % of the energy, at worst {100 * errors[worst]:.2g} % in case "
            f"{results.cases[worst]}: their results are doubtful; tighten the tolerances"
        )
