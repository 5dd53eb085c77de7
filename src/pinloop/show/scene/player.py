"""The page's side of a replay: picture, controls, and the script that plays it.

Everything is in the page; nothing is fetched. The look and the script are files in ``assets``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...tables.markup import Markup, element
from ...tables.page import asset, render
from ...tolerances import SLIDER_STEP
from .html import ROOM, script_data, scripts
from .replay import Replay

__all__ = ["Player", "SharedCommands", "make_player"]

_SPEEDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
_FAST_SPEEDS = (100.0, 20.0, 5.0)
"""Offered where a replay in real time would be too long to wait for."""
_LOOK = 4.0
"""How long a replay lasts at the speed that is chosen first, about [s]."""


@dataclass(frozen=True)
class Player:
    """Parts of a page that plays a replay.

    Args:
        style: rules for the head of the page, without the element ``style``.
        markup: what is seen, with the data.
        scripts: elements ``script`` for the end of the body; once in a page with several players.
    """

    style: str
    markup: Markup
    scripts: Markup


class SharedCommands:
    """Commands of several replays on one page, each of them once: they share meshes and stage."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, commands: Iterable[str]) -> list[int]:
        """Numbers that stand for commands.

        Args:
            commands: the commands of a replay, as text.
        """
        return [self._numbers.setdefault(text, len(self._numbers)) for text in commands]

    @property
    def markup(self) -> Markup:
        """The commands themselves, to stand in the page ahead of the scripts."""
        data = script_data(list(self._numbers))
        return element("script", data, type="application/json", class_="replay-commands")


def make_player(
    replay: Replay,
    *,
    trace_label: str = "path",
    ghost_label: str = "start",
    words: tuple[str, str] = ("at rest", "moving"),
    opens: float | None = None,
    shared: SharedCommands | None = None,
) -> Player:
    """Return the parts of a page that plays a replay.

    Args:
        replay: what is played.
        trace_label: what the traces show, for the switch.
        ghost_label: what the ghosts show, for the switch.
        words: what is said of a marked joint that is locked, and of one that is not.
        opens: time at which the page opens [s]; the end by default.
        shared: what the replays of a page have in common; it gathers what draws this one.
    """
    data = replay.data()
    if shared is not None:
        data["commands"] = shared.numbers(data["commands"])
    start, end = float(replay.t[0]), float(replay.t[-1])
    layers = [(f"layer-{k}", label) for k, (_, label, _) in enumerate(replay.layers)]
    switches = [
        *[("ghost", ghost_label)] * bool(replay.ghost),
        *[("traces", trace_label)] * bool(replay.traces),
        *[("marks", "joints")] * bool(replay.standing),
        *[("arrows", "forces")] * bool(replay.arrows),
        *layers,
    ]
    markup = render(
        "player.html",
        ROOM,
        events=replay.events,
        opens=repr(end if opens is None else float(opens)),
        stands=words[0],
        moves=words[1],
        picture=f"{replay.name} in motion, three-dimensional",
        start=repr(start),
        end=repr(end),
        step=repr(max((end - start) / 1000, SLIDER_STEP)),
        speeds=[_speed(value, end - start) for value in _speeds(end - start)],
        switches=switches,
        joints=list(replay.standing),
        data=script_data(data),
    )
    return Player(asset(ROOM, "player.css"), Markup(markup), scripts("pane.js", "player.js"))


def _speeds(duration: float) -> tuple[float, ...]:
    return (*_FAST_SPEEDS, *_SPEEDS) if duration > 5 * _LOOK else _SPEEDS


def _speed(value: float, duration: float) -> tuple[str, str, bool]:
    """An entry of the list of speeds; that at which the motion can be followed is chosen."""
    wanted = min(1.0, duration / _LOOK)
    best = min(_SPEEDS, key=lambda speed: abs(speed - wanted))
    if value == 1.0:
        name = "real time"
    elif value > 1.0:
        name = f"{value:g} times real time"
    else:
        name = f"1/{round(1 / value)} of real time"
    return f"{value:g}", name, value == best
