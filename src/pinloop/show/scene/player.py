"""The page's side of a replay: picture, controls, and the script that plays it.

Everything is in the page; nothing is fetched. The look and the script are files in ``assets``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from ...tolerances import SLIDER_STEP
from .html import NOTICE, viewer_script
from .replay import Replay

__all__ = ["Player", "SharedCommands", "asset", "make_player", "text_of"]

_SPEEDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
_FAST_SPEEDS = (100.0, 20.0, 5.0)
"""Offered where a replay in real time would be too long to wait for."""
_LOOK = 4.0
"""How long a replay lasts at the speed that is chosen first, about [s]."""

_MARKUP = """<div class="replay{kind}" data-opens="{opens}" data-stands="{stands}" \
data-moves="{moves}">
<div class="replay-stage">
<div class="replay-pane" role="img" aria-label="{picture}"></div>
<img class="replay-still" alt="{picture}">
<p class="replay-hint">drag: rotate · right button: pan · click, then scroll: zoom</p>
</div>
<p class="replay-trouble">This browser shows no 3D graphics (WebGL): there is no replay here.</p>
<div class="replay-controls">
<button type="button" class="replay-play" aria-label="Play">
<svg viewBox="0 0 16 16" aria-hidden="true"><path class="icon-play" d="M3 1l11 7-11 7z"/>\
<path class="icon-pause" d="M2 1h4v14H2zM10 1h4v14h-4z"/></svg></button>
<div class="replay-track"><input type="range" class="replay-slider" min="{start}" max="{end}" \
step="{step}" value="{end}" aria-label="Time"><div class="replay-events"></div></div>
<output class="replay-clock"></output>
<label>Speed <select class="replay-speed">{speeds}</select></label>
<label><input type="checkbox" class="replay-loop" checked> repeat</label>
{switches}
<button type="button" class="replay-home">reset view</button>
</div>
<p class="replay-mode" aria-live="polite"></p>
<ul class="replay-joints" aria-label="Joints">{joints}</ul>
<script type="application/json" class="replay-data">{data}</script>
</div>"""

_COMMANDS = '<script type="application/json" class="replay-commands">{data}</script>'


@dataclass(frozen=True)
class Player:
    """Parts of a page that plays a replay.

    Args:
        style: rules for the head of the page, without the element ``style``.
        markup: what is seen, with the data.
        scripts: elements ``script`` for the end of the body; once in a page with several players.
    """

    style: str
    markup: str
    scripts: str


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
    def markup(self) -> str:
        """The commands themselves, to stand in the page ahead of the scripts."""
        return _COMMANDS.format(data=_json(list(self._numbers)))


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
    switches = []
    if replay.ghost:
        switches.append(_switch("ghost", ghost_label))
    if replay.traces:
        switches.append(_switch("traces", trace_label))
    if replay.standing:
        switches.append(_switch("marks", "joints"))
    if replay.arrows:
        switches.append(_switch("arrows", "forces"))
    switches += [_switch(f"layer-{k}", label) for k, (_, label, _) in enumerate(replay.layers)]
    markup = _MARKUP.format(
        kind=" replay-eventful" if replay.events else "",
        opens=repr(end if opens is None else float(opens)),
        stands=escape(words[0]),
        moves=escape(words[1]),
        picture=escape(f"{replay.name} in motion, three-dimensional"),
        start=repr(start),
        end=repr(end),
        step=repr(max((end - start) / 1000, SLIDER_STEP)),
        speeds="".join(_speed(value, end - start) for value in _speeds(end - start)),
        switches="\n".join(switches),
        joints="".join(
            f'<li><span>{escape(name)}</span> <span class="state"></span></li>'
            for name in replay.standing
        ),
        data=_json(data),
    )
    scripts = (
        f"{NOTICE}<script>\n{viewer_script()}\n</script>\n<script>\n{asset('player.js')}</script>"
    )
    return Player(asset("player.css"), markup, scripts)


def text_of(content: bytes) -> str:
    """Bytes as text for a page (base64)."""
    return base64.b64encode(content).decode()


def asset(name: str) -> str:
    """Return the text of a file in ``assets``."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _json(data: object) -> str:
    """Data for an element ``script``, which nothing in it can end."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _speeds(duration: float) -> tuple[float, ...]:
    return (*_FAST_SPEEDS, *_SPEEDS) if duration > 5 * _LOOK else _SPEEDS


def _speed(value: float, duration: float) -> str:
    """An entry of the list of speeds; that at which the motion can be followed is chosen."""
    wanted = min(1.0, duration / _LOOK)
    best = min(_SPEEDS, key=lambda speed: abs(speed - wanted))
    if value == 1.0:
        name = "real time"
    elif value > 1.0:
        name = f"{value:g} times real time"
    else:
        name = f"1/{round(1 / value)} of real time"
    chosen = " selected" if value == best else ""
    return f'<option value="{value:g}"{chosen}>{name}</option>'


def _switch(name: str, label: str) -> str:
    return (
        f'<label><input type="checkbox" class="replay-show-{name}" checked> {escape(label)}</label>'
    )
