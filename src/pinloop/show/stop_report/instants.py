"""What happened in a stop, as labelled instants: alike and simultaneous things together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...safety.stopping.result import StopResult
from ...tables.number_format import listed
from ...tolerances import SAME_INSTANT
from ..plots.charts import Instant
from ..plots.svg import shortened

_LONGEST = 230.0
"""Width of the longest label."""
_MOST = 24
"""So many lines make a plot unreadable if there are more."""

_PLAIN = {
    "signal": "signal",
    "a ramp ends": "a ramp of the drives ends",
    "command": "command",
    "power off": "drives off",
    "drives stand": "drives have brought the robot to rest",
    "time limit": "time limit of the drives",
    "teeth engage": "teeth engage",
}
_OF_JOINT = {
    "brake of {} engages": "brake acts",
    "brake of {} has its full torque": "full brake torque",
    "{} comes to rest": "comes to rest",
    "{} comes loose": "comes loose",
    "{} meets its drive": "meets its drive",
    "{} hits a tooth": "hits a tooth",
    "power turns round in the gear of {}": "power turns round in its gear",
}
_QUIET = frozenset(
    {
        "signal",
        "a ramp of the drives ends",
        "comes to rest",
        "power turns round in its gear",
        "meets its drive",
    }
)
"""Listed, but not marked in plots; of joints that come to rest, the last time is."""


@dataclass(frozen=True)
class Clock:
    """How times are shown: "ms" or "s", the factor from seconds to that, and decimals."""

    unit: str
    factor: float
    places: int

    def number(self, seconds: float) -> str:
        """A time without its unit."""
        return f"{self.factor * seconds:.{self.places}f}"


@dataclass(frozen=True)
class Happening:
    """What happened when [s], and to which joints; to none if it concerns the whole robot."""

    t: float
    what: str
    joints: tuple[str, ...] = ()


def clock_of(result: StopResult) -> Clock:
    """How times of a stop are shown."""
    long = float(result.run.t[-1]) >= 10.0
    return Clock("s", 1.0, 3) if long else Clock("ms", 1e3, 1)


def shown_until(result: StopResult) -> float:
    """Until when a stop is shown [s]: a little beyond the last thing that happens."""
    last = max([result.stopping_time, *(t for t, _ in result.events)])
    return min(float(result.run.t[-1]), 1.04 * last) or float(result.run.t[-1])


def happenings(result: StopResult) -> list[Happening]:
    """The events of a stop, those of several joints at one instant together."""
    known = {text: (words, "") for text, words in _PLAIN.items()}
    for name in result.robot.joints:
        known |= {form.format(name): (words, name) for form, words in _OF_JOINT.items()}
    return _together((t, *known.get(text, (text, ""))) for t, text in result.events)


def _together(events: Iterable[tuple[float, str, str]]) -> list[Happening]:
    """Things with their joints, in order; the same thing at the same instant once."""
    groups: list[Happening] = []
    for t, what, joint in events:
        at = len(groups) - 1
        while at >= 0 and abs(t - groups[at].t) <= SAME_INSTANT and groups[at].what != what:
            at -= 1
        joints = (joint,) if joint else ()
        if at < 0 or abs(t - groups[at].t) > SAME_INSTANT:
            groups.append(Happening(t, what, joints))
        else:
            joints = tuple(dict.fromkeys((*groups[at].joints, *joints)))
            groups[at] = Happening(groups[at].t, what, joints)
    return groups


def instants(result: StopResult, clock: Clock) -> list[Instant]:
    """Lines for charts of the whole robot, in the unit of the clock."""
    ends = _ends(result)
    events = [event for event in happenings(result) if event.what not in _QUIET]
    if len(events) + len(ends) > _MOST:
        events = [event for event in events if event.what != "comes loose"][: _MOST - len(ends)]
    every = {name for name, brake in result.brakes.joints.items() if brake.kind != "none"}
    return [
        Instant(clock.factor * event.t, shortened(_label(event, every), _LONGEST))
        for event in [*events, *ends]
    ]


def instants_of_joint(result: StopResult, name: str, clock: Clock) -> list[Instant]:
    """Lines for charts of one joint, in the unit of the clock."""
    events = [event for event in happenings(result) if event.what not in _QUIET]
    own = [event for event in events if name in event.joints][:_MOST]
    own += [event for event in _ends(result) if name in event.joints]
    return [Instant(clock.factor * event.t, event.what) for event in own]


def _ends(result: StopResult) -> list[Happening]:
    """When the joints that moved come to rest for good."""
    joints = [j for j in result.joints.values() if j.state != "moving" and j.time != 0.0]
    ends = ((j.time, "at rest", j.name) for j in sorted(joints, key=lambda joint: joint.time))
    return _together(ends)


def _label(event: Happening, every: set[str]) -> str:
    """The text of a line; what happens to all brakes at once names none of them."""
    if not event.joints:
        return event.what
    names, several = listed(event.joints, 2), len(event.joints) > 1
    whole = several and set(event.joints) >= every
    if event.what == "brake acts":
        single = f"brake of {names} acts"
        return "brakes act" if whole else f"brakes of {names} act" if several else single
    if event.what == "full brake torque":
        return event.what if whole else f"full torque: {names}"
    return f"{names} at rest" if event.what == "at rest" else f"{names}: {event.what}"
