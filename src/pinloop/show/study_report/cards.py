"""The head of the report of a study: how many cases stopped, and the worst numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import printable
from ...safety.studies.study import Study
from ...tables.markup import Markup, element, joined
from ...tables.number_format import listed, number
from ..stop_report.headline import card
from .distributions import case_link
from .quantities import Told
from .results import Results, joints_beyond

__all__ = ["badge", "cards"]


def badge(study: Study, results: Results) -> Markup:
    """How many cases ended well, for all to see."""
    good = study.complete and results.stopped == study.done > 0
    more = f" of {study.done} cases stopped and hold"
    if study.done == 1:
        more = " of 1 case stopped and holds"
    if not study.complete:
        more += f"; {study.size - study.done} of {study.size} are still to be done"
    mark = "good" if good else "bad"
    beyond = [one.joint for one in joints_beyond(study, results)]
    if good and beyond:
        mark, more = "warn", f"{more}, but some beyond the limits of {listed(beyond)}"
    icon = "\N{CHECK MARK}" if mark == "good" else "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"
    return element(
        "p",
        element("span", icon, aria_hidden="true"), " ", element("strong", str(results.stopped)),
        more,
        class_=f"badge {mark}",
    )  # fmt: skip


def cards(
    study: Study, results: Results, told: Mapping[str, Told], links: Mapping[int, str]
) -> Markup:
    """The numbers that count.

    Args:
        study: the study.
        results: what came out.
        told: quantities by criterion.
        links: by number of the case, where in the page it is replayed.
    """
    found = list(_cards(study, results, told, links))
    across = 4 if len(found) % 3 == 1 or len(found) == 8 else 3
    return element("div", *found, class_="cards", style=f"--across:{across}")


def _cards(
    study: Study, results: Results, told: Mapping[str, Told], links: Mapping[int, str]
) -> Iterator[Markup]:
    lost = {name: count for name, count in results.outcomes.items() if name != "stopped"}
    said = ", ".join(f"{count} {name}" for name, count in lost.items())
    yield card(
        "not stopped or not held", str(sum(lost.values())),
        f"of {study.done} case{'s' if study.done != 1 else ''}",
        said or "every case stopped and holds", "bad" if lost else "",
    )  # fmt: skip
    for name in ("time", "travel", "clearance"):
        if name in told:
            yield _worst(told[name], links)
    for kind in ("angle", "impulse"):
        for unit in ("deg", "mm") if kind == "angle" else ("N m s", "N s"):
            alike = [
                one for one in told.values()
                if one.quantity.kind == kind and one.quantity.unit == unit
            ]  # fmt: skip
            if alike:
                yield _worst(max(alike, key=lambda one: one.spread.worst), links)
    yield from _gear(study, told, links)


def _worst(one: Told, links: Mapping[int, str]) -> Markup:
    quantity, spread = one.quantity, one.spread
    over = "above" if quantity.kind == "clearance" else "below"
    bad = quantity.kind == "clearance" and spread.worst <= 0.0
    more = joined(
        "touches an obstacle; " if bad else "", "case ", case_link(spread.case, links),
        f"; median {quantity.text(spread.median)}, 95 % "
        f"{over} {quantity.text(spread.most)}",
    )  # fmt: skip
    return card(
        quantity.superlative, quantity.bare(spread.worst), quantity.unit, more,
        "bad" if bad else "",
    )  # fmt: skip


def _gear(study: Study, told: Mapping[str, Told], links: Mapping[int, str]) -> Iterator[Markup]:
    """The highest gear utilisation, over what it may carry."""
    known = []
    for one in told.values():
        if one.quantity.kind == "gear":
            limit = study.setup.brakes.joints[one.quantity.joint].peak_gear_torque
            if limit:
                known.append((one.spread.worst / limit, limit, one))
    if known:
        use, limit, one = max(known, key=lambda item: item[0])
        more = joined(
            "case ", case_link(one.spread.case, links),
            f", {printable(one.quantity.joint)}: {one.quantity.bare(one.spread.worst)} of "
            f"{one.quantity.text(limit)}",
        )  # fmt: skip
        mark = "bad" if use > 1 else ""
        yield card("highest gear utilisation", number(100 * use, 0), "%", more, mark)
