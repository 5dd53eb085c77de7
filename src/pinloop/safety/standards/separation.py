"""Protective separation distance of stops or of a study: the worst of them (ISO/TS 15066).

The terms of one stop are in `separation_terms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import UnknownName
from ..stopping import StopResult
from ..studies.criteria import Criterion
from ..studies.study import Study
from ..studies.worst_search import Search, search_worst
from .distances import checked_stops, measure_cases, standing_cases
from .editions import MONITORING_EDITIONS, edition_by_name
from .separation_terms import ASKED, WALKING, Question, Separation, Speed, ask


@public
def separation(
    stop: StopResult | Iterable[StopResult] | Study,
    *,
    direction: ArrayLike | None = None,
    point: ArrayLike | None = None,
    human_speed: Speed = WALKING,
    detection: float = 0.0,
    intrusion: float | None = None,
    z_d: float | None = None,
    z_r: float | None = None,
    tolerance: float = 0.001,
    frames: Mapping[str, float] | None = None,
    thickness: float | None = None,
    edition: str = "ISO/TS 15066:2016",
    search: Search | bool = True,
    jobs: int = -1,
) -> Separation:
    """Protective separation distance that a stop, or the worst of many, asks for, term by term.

    The robot is all of its bodies, not its tool: S_r and S_s are the largest advances of any point
    of any body, from the start of the reaction and from the command on. Bodies are made of their
    collision shapes, or of the visual ones where there are no others; meshes count as their
    convex hulls. A point that comes nearer first and goes back later counts where it was nearest.

    Where the person is decides what counts as advance: along ``direction``; how much nearer any
    body comes to ``point``, where the person stands; or, if neither is given, horizontally in
    whichever direction is worst (in any direction where there is no gravity).

    The distance is that of one stop. Of several stops, or of the cases of a study, it is the
    largest one, computed for each by itself, and all terms are those of that stop: the longest
    time and the longest path of different stops are not added. Of a study it is that of its samples
    or, where that is larger, that of a case to which a search went on from them.

    Args:
        stop: a stop, several, or a `Study`: the largest distance counts. Robots must stand and be
            held in all of them; cases of a study that could not be computed are left out, and a
            note says so.
        direction: direction from the robot to the person in the world, shape (3,).
        point: where the person is in the world [m], shape (3,).
        human_speed: speed of the person towards the robot [m/s], or a function of the time from
            the start of the reaction on [s]; 1.6 m/s where it is not measured (ISO/TS 15066).
        detection: from when the person is where they are measured until the signal of the stop
            [s]; together with the chain of the stop up to its command it is T_r. The robot
            is taken to be as fast in it as it is at most between signal and command.
        intrusion: C, how far a part of the body can reach before it is detected [m] (ISO 13855).
        z_d: uncertainty of the place of the person [m].
        z_r: uncertainty of the place of the robot [m].
        tolerance: how far S_r and S_s may lie above the true values [m].
        frames: further points of the robot (of its tool, corners of a payload): radius about it
            [m] by name of the frame.
        thickness: of a robot without shapes: how thick its bodies are about their frames [m].
        edition: "ISO/TS 15066:2016" or "ISO 10218-2:2025", or the year alone: the formula is the
            same, see the notes of the result.
        search: how the search goes on from the samples of a study; False: samples only.
        jobs: number of processes for the cases of a study; all cores by default.

    Raises:
        BadValue: an argument is impossible, a robot does not stand at the end, or it reaches the
            point where the person is.
    """
    chosen = edition_by_name(edition, MONITORING_EDITIONS)
    question = ask(
        direction=direction,
        point=point,
        human_speed=human_speed,
        detection=detection,
        intrusion=intrusion,
        z_d=z_d,
        z_r=z_r,
        tolerance=tolerance,
        frames=frames,
        thickness=thickness,
    )
    if isinstance(stop, Study):
        standing = standing_cases(stop)
        cases = tuple(standing.times)
        pairs, worst = measure_cases(stop, cases, question.answer, jobs)
        number, more = _largest(pairs, "case", cases)
        notes = (*standing.notes, *more)
        worst = replace(worst, case=cases[number], cases=cases, results=str(stop.path))
        if search:
            sizes = np.full(stop.done, np.nan)
            sizes[list(cases)] = [distance for distance, _ in pairs]
            worst = _search_on(
                stop, question, Search() if search is True else search, sizes, worst, jobs
            )
    else:
        separations = [question.answer(each) for each in checked_stops(stop)]
        pairs = [(each.distance, each.simple) for each in separations]
        number, notes = _largest(pairs, "stop", range(len(pairs)))
        worst = separations[number]
    distances = tuple(distance for distance, _ in pairs)
    notes = (*notes, *worst.notes, *chosen.notes)
    return replace(worst, distances=distances, notes=notes, edition=chosen)


def _search_on(
    study: Study, question: Question, search: Search, sizes: Array, worst: Separation, jobs: int
) -> Separation:
    """The distance of the worst case that a search knows.

    ``sizes``: distances of the samples [m], NaN where there are none, shape (n,); ``worst``: that
    of the worst of them.
    """
    criterion = question.criterion()
    chosen = {criterion.name: criterion}
    searched = search_worst(study, chosen, search, jobs, known={criterion.name: sizes})
    found = replace(worst, sampled=worst.distance, searched=searched.stops)
    case = searched.cases[criterion.name]
    if case.value <= worst.distance:
        return found
    larger = question.answer(case.stop)
    return replace(
        found, **{name: getattr(larger, name) for name in _OF_STOP}, case=None, values=case.values
    )


_OF_STOP = ("terms", "reaction_time", "stopping_time", "robot_speed", "stop")
"""Fields of `Separation` that belong to one stop."""


def separation_criterion(person: Mapping[str, Any]) -> Criterion:
    """The separation distance as something that can be worst about a stop.

    ``person``: arguments of `separation`.
    """
    for name in person:
        if name not in ASKED:
            raise UnknownName("argument of the separation distance", name, ASKED)
    return ask(**person).criterion()


def _largest(
    pairs: Sequence[tuple[float, float]], what: str, numbers: Sequence[int]
) -> tuple[int, tuple[str, ...]]:
    """Where the largest distance is, and a sentence if the simple form is larger elsewhere.

    ``pairs``: distances and their simple forms [m]; ``what``: what they belong to, for messages.
    """
    first = max(range(len(pairs)), key=lambda k: pairs[k][0])
    other = max(range(len(pairs)), key=lambda k: pairs[k][1])
    if pairs[other][1] <= pairs[first][1]:
        return first, ()
    return first, (
        f"the simple form is largest for {what} {numbers[other]}: {1e3 * pairs[other][1]:.1f} mm",
    )
