"""What was studied: what varied, what was the same in all cases, what is odd about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...errors import printable
from ...integrate import MuntheKaas
from ...safety.stopping.ledger import CLOSURE
from ...safety.stopping.prepared_robot import tool_of
from ...safety.studies.cases import Setup
from ...safety.studies.space import Variable
from ...safety.studies.study import Study
from ...safety.studies.summary import beyond_text
from ...tables.html import key_values_html, table_html
from ...tables.markup import Markup, element, joined
from ...tables.number_format import listed, units_of
from ...tables.report import Cell, Column, KeyValues, Table
from ...units import shown_unit
from ..stop_report.parts import section
from .distributions import case_link
from .quantities import VARIED, Told
from .replayed import Replayed
from .results import Failure, Results, joints_beyond

__all__ = ["failures_section", "setting_section", "warnings_section"]

_TO = " to "


def setting_section(study: Study) -> Markup:
    """What varied, and what did not."""
    same = element("h3", "The same in all cases")
    facts = key_values_html(_facts(study))
    return section("What was studied", "setting", _ranges(study.setup), same, facts)


def _ranges(setup: Setup) -> Markup:
    """Ranges of all variables, joint by joint."""
    variables = setup.variables
    of = {(one.kind, one.joint): one for one in variables}
    kinds = [kind for kind in VARIED if any(one.kind == kind and one.joint for one in variables)]
    joints = list(dict.fromkeys(one.joint for one in variables if one.joint))
    found = []
    if joints:
        columns = (Column("joint", right=False), *(Column(VARIED[kind]) for kind in kinds))
        rows = tuple(
            (Cell(printable(name)), *(_range(of.get((kind, name))) for kind in kinds))
            for name in joints
        )
        table = table_html(Table("What varied, joint by joint", columns, rows), titled=False)
        found += [element("h3", "Joint by joint"), table]
    others = tuple((VARIED[one.kind], _range(one)) for one in variables if not one.joint)
    if others:
        found += [element("h3", "Beside that"), key_values_html(KeyValues("Beside that", others))]
    fixed = any(not one.varies for one in variables)
    text = "What varied together: every case has its own value of each range."
    text += " A single number was the same in all cases." if fixed else ""
    return joined(element("p", text, class_="remark"), *found)


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
    said = str(category.number)
    if category.controlled:
        said += ", on the path" if category.on_path else ", each joint by its own ramp"
    if category.time_limit is not None:
        said += f", brakes after {1e3 * category.time_limit:g} ms in any case"
    gravity = setup.robot.gravity if setup.gravity is None else setup.gravity
    entries = [
        ("robot", printable(setup.robot.description.source or "made in Python")),
        ("tool", printable(tool_of(setup.robot))),
        ("brakes", printable(setup.brakes.source or "given in Python")),
        ("category", said),
        ("from the signal to the command", f"{1e3 * chain.command:g} ms"),
        ("payload", _payload(setup)),
        ("gravity", f"({', '.join(f'{g:g}' for g in gravity)}) m/s\N{SUPERSCRIPT TWO}"),
        ("cases", f"{study.done} of {study.size}, {study.sampling!r}"),
        ("limit of the time of a stop", f"{setup.until:g} s"),
        ("integrator", _method(setup.method)),
    ]
    if setup.obstacles:
        entries.append(("obstacles", listed(printable(one.name) for one in setup.obstacles)))
    motion = setup.space.motion
    if motion is not None:
        entries.append(
            ("motion", f"recorded, {len(motion.t)} samples over {motion.duration:g} s")
        )  # fmt: skip
    entries.append(("results", printable(str(study.path))))
    return KeyValues("The same in all cases", tuple((name, Cell(text)) for name, text in entries))


def _method(method: MuntheKaas) -> str:
    name = method.name if isinstance(method.name, str) else "a tableau of your own"
    if method.step is not None:
        return f"{name}, steps of {1e3 * method.step:g} ms"
    return f"{name}, tolerances {method.rtol:g} relative, {method.atol:g} absolute"


def _payload(setup: Setup) -> str:
    if any(one.kind == "payload" for one in setup.variables):
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
        "tr", element("th", "cases", scope="col", class_="right"),
        *(element("th", text, scope="col") for text in ("ended as", "why", "which")),
    )  # fmt: skip
    rows = [
        element(
            "tr",
            element("td", str(one.count), class_="right"),
            element("td", one.outcome, class_="bad"),
            element("td", _why(one)),
            element("td", *_which(one, links)),
        )
        for one in results.failures
    ]
    title = "Cases that did not stop or are not held"
    caption = element("caption", title, class_="unseen")
    table = element("table", caption, element("thead", head), element("tbody", *rows))
    region = element("div", table, class_="wide", tabindex="0", role="region", aria_label=title)
    return section(title, "failures", region)


def _why(one: Failure) -> str:
    if one.reason:
        return one.reason if one.alike else f"{one.reason} (and alike, with other numbers)"
    return {
        "does not hold": "it comes to rest, but brakes and friction do not hold it against gravity",
        "time-out": "it did not come to rest within the time computed",
    }.get(one.outcome, "no reason was given")


def _which(one: Failure, links: Mapping[int, str]) -> Iterator[Markup]:
    yield joined(*(case_link(case, links) for case in one.cases), between=", ")
    if one.count > len(one.cases):
        yield joined(" ...")


def warnings_section(
    study: Study, results: Results, told: Mapping[str, Told], cases: Sequence[Replayed]
) -> Markup:
    """What is odd: counted over all cases where the results tell it, else over those replayed."""
    beyond = [beyond_text(study.setup, one) for one in joints_beyond(study, results)]
    found = [*beyond, *_touches(told), *_overloads(study, told), *_balances(results)]
    setup = study.setup
    known = list(dict.fromkeys([*setup.brakes.warnings, *setup.robot.warnings]))
    found += known
    counted: Counter[str] = Counter()
    for case in cases:
        counted.update(text for text in set(case.stop.warnings) if text not in known)
    # What is said of a gear in one case is counted over all of them above.
    shared = [text for text, count in counted.items() if count == len(cases) > 1]
    found += [f"in all {len(cases)} cases that are replayed: {text}" for text in sorted(shared)]
    if not found:
        return Markup("")
    own = sum(1 for text in counted if text not in shared)
    if own:
        found.append(f"{own} more about single cases stand below their replays")
    items = (element("li", text) for text in found)
    return section("Warnings", "warnings", element("ul", *items))


def _touches(told: Mapping[str, Told]) -> Iterator[str]:
    """Cases in which the robot touches an obstacle."""
    near = told.get("clearance")
    if near is not None and (count := int(np.sum(near.values <= 0.0))):
        yield f"{count} of {len(near.values)} cases: the robot touches an obstacle"


def _overloads(study: Study, told: Mapping[str, Told]) -> Iterator[str]:
    """Gears that carry more than they may."""
    for one in told.values():
        if one.quantity.kind != "gear":
            continue
        limit = study.setup.brakes.joints[one.quantity.joint].peak_gear_torque
        over = int(np.sum(one.values > limit)) if limit is not None else 0
        if over:
            unit = units_of(study.setup.robot, one.quantity.joint).torque
            yield (
                f"{over} of {len(one.values)} cases: the gear of joint '{one.quantity.joint}' "
                f"carries more than the {limit:.4g} {unit} that it may, at worst "
                f"{one.quantity.text(one.spread.worst)} in case {one.spread.case}"
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
