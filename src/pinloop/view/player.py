"""The page's side of a replay: picture, controls, and the script that plays it.

Everything is in the page; nothing is fetched. The look and the script are files in ``assets``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from .html import viewer_script
from .replay import Replay

__all__ = ["Player", "make_player"]

_SPEEDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
_LOOK = 4.0
"""How long a replay lasts at the speed that is chosen first, about [s]."""

_MARKUP = """<div class="replay">
<div class="replay-stage">
<div class="replay-pane" role="img" aria-label="{picture}"></div>
<img class="replay-still" alt="{picture}">
<p class="replay-hint">drag: turn · right button: shift · click, then scroll: zoom</p>
</div>
<p class="replay-trouble">This browser shows no 3D graphics (WebGL): there is no replay here.</p>
<div class="replay-controls">
<button type="button" class="replay-play" aria-label="Play">
<svg viewBox="0 0 16 16" aria-hidden="true"><path class="icon-play" d="M3 1l11 7-11 7z"/>\
<path class="icon-pause" d="M2 1h4v14H2zM10 1h4v14h-4z"/></svg></button>
<input type="range" class="replay-slider" min="{start}" max="{end}" step="{step}" value="{end}" \
aria-label="Time">
<output class="replay-clock"></output>
<label>Speed <select class="replay-speed">{speeds}</select></label>
<label><input type="checkbox" class="replay-loop" checked> repeat</label>
{switches}
<button type="button" class="replay-home">reset view</button>
</div>
<ul class="replay-joints" aria-label="Joints">{joints}</ul>
<script type="application/json" class="replay-data">{data}</script>
</div>"""

_NOTICE = """<!--
The script below is the viewer of MeshCat, (c) 2018 Robin Deits, MIT License, with three.js,
(c) 2010-2021 Three.js Authors, MIT License, and others listed in MeshCat's distribution.
-->
"""


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


def make_player(replay: Replay, *, trace_label: str = "path", ghost_label: str = "start") -> Player:
    """Return the parts of a page that plays a replay.

    Args:
        replay: what is played.
        trace_label: what the traces show, for the switch.
        ghost_label: what the ghost shows, for the switch.
    """
    start, end = float(replay.t[0]), float(replay.t[-1])
    switches = []
    if replay.ghost:
        switches.append(_switch("ghost", ghost_label))
    if replay.traces:
        switches.append(_switch("traces", trace_label))
    if replay.standing:
        switches.append(_switch("marks", "joints"))
    switches += [_switch(f"layer-{k}", label) for k, (_, label, _) in enumerate(replay.layers)]
    markup = _MARKUP.format(
        picture=escape(f"{replay.name} in motion, three-dimensional"),
        start=repr(start),
        end=repr(end),
        step=repr(max((end - start) / 1000, 1e-9)),
        speeds="".join(_speed(value, end - start) for value in _SPEEDS),
        switches="\n".join(switches),
        joints="".join(
            f'<li><span>{escape(name)}</span> <span class="state"></span></li>'
            for name in replay.standing
        ),
        data=json.dumps(replay.data(), allow_nan=False).replace("<", "\\u003c"),
    )
    scripts = (
        f"{_NOTICE}<script>\n{viewer_script()}\n</script>\n<script>\n{asset('player.js')}</script>"
    )
    return Player(asset("player.css"), markup, scripts)


def asset(name: str) -> str:
    """Return the text of a file in ``assets``."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _speed(value: float, duration: float) -> str:
    """An entry of the list of speeds; that at which the motion can be followed is chosen."""
    wanted = min(1.0, duration / _LOOK)
    best = min(_SPEEDS, key=lambda speed: abs(speed - wanted))
    name = "real time" if value == 1.0 else f"1/{round(1 / value)} of real time"
    chosen = " selected" if value == best else ""
    return f'<option value="{value:g}"{chosen}>{name}</option>'


def _switch(name: str, label: str) -> str:
    return (
        f'<label><input type="checkbox" class="replay-show-{name}" checked> {escape(label)}</label>'
    )
