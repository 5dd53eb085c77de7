"""The page of a run: a player, what happened, and a legend of what is seen.

One self-contained text, for a file or for the live viewer. Its size is bounded: a long run gets
fewer frames per second, and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...boundary.files import write_text
from ...boundary.marks import Array
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...simulation.trajectory import Trajectory
from ...tables.report import render
from .commands import viewer_script
from .live import Message, Viewer
from .motion import arrows_of, checked_times, force_names, frame_times, standing_spans
from .replay import FORCE, MOMENT, Additions, Replay, Trace, make_replay
from .scene import LOOP
from .solids import Color, css_color

_MESH_BYTES = 3_000_000
_FRAME_CHARACTERS = 2_600_000
"""What the meshes and the frames of a page may take."""
_MOST_WITH_FORCES = 3000
"""Frames at which reactions are computed at most: each one solves for them."""
_MOST_EVENTS = 100
LINES: tuple[Color, ...] = (
    (0.80, 0.12, 0.45, 1.0),
    (0.12, 0.40, 0.75, 1.0),
    (0.85, 0.55, 0.05, 1.0),
    (0.10, 0.55, 0.45, 1.0),
    (0.36, 0.30, 0.74, 1.0),
)
"""Colours of traces, one after the other."""
LOCKED: Color = (0.12, 0.44, 0.71, 1.0)
"""Colour of locked joints, as the page has it."""


@dataclass(frozen=True)
class ReplayOptions:
    """What is shown of a run; what each field means is told by `simulation.trajectory.Replay`."""

    rate: float = 30.0
    ghosts: Sequence[float] = ()
    traces: Sequence[str] | None = None
    forces: Sequence[str] | bool = ()
    moments: bool = False
    title: str | None = None

    def __post_init__(self) -> None:
        if not (np.isreal(self.rate) and np.isfinite(self.rate) and self.rate > 0):
            raise BadValue(f"the rate is {self.rate!r}; give frames per second, for example 30")


def write_run(run: Trajectory, path: str | Path, **options: Any) -> Path:
    """Write the page of a run; ``options`` are the fields of `ReplayOptions`."""
    return write_text(path, run_page(run, ReplayOptions(**options)))


def play_run(run: Trajectory, open_browser: bool, announce: bool, **options: Any) -> Viewer:
    """Play a run in the browser; ``options`` are the fields of `ReplayOptions`."""
    viewer = Viewer(RunExhibit(run, ReplayOptions(**options)))
    if announce:
        print(viewer.url)
    if open_browser:
        viewer.open()
    return viewer


def run_page(run: Trajectory, options: ReplayOptions, *, live: bool = False) -> str:
    """The page of a run; a ``live`` one can ask the server behind it for a time."""
    replay = run_replay(run, options)
    arrows, duration = replay.additions.arrows, float(replay.t[-1] - replay.t[0])
    start, end = float(run.t[0]), float(run.t[-1])
    return render(
        "show/scene/templates/run.html",
        title=options.title or run.robot.name,
        facts=f"{start:g} to {end:.6g} s · {run.message}",
        player=replay.player(
            trace_label="path" if len(replay.additions.traces) == 1 else "paths",
            ghost_label="ghost" if len(replay.ghosts) == 1 else "ghosts",
            words=("locked", "free"),
            opens=float(replay.t[0]),
        ),
        run=run,
        replay=replay,
        asked=options,
        rate=(len(replay.t) - 1) / duration if duration > 0 else np.inf,
        locked=LOCKED if any(replay.standing.values()) else None,
        loops=LOOP if any("loops/" in path for path in replay.paths) else None,
        arrows=((FORCE, False, "N", "force"), (MOMENT, True, "N m", "moment (two tips)")),
        at_loops={arrow.name for arrow in arrows} & {loop.name for loop in run.robot.loops},
        unclear=dict.fromkeys(arrow.name for arrow in arrows if not arrow.unique),
        most_events=_MOST_EVENTS,
        css_color=css_color,
        viewer=viewer_script(),
        live=live,
    )


class RunExhibit:
    """A run that a viewer plays, with what `ReplayOptions` say."""

    def __init__(self, run: Trajectory, options: ReplayOptions) -> None:
        self._run, self._time = run, float(run.t[0])
        self._text = run_page(run, options, live=True)
        self._asked = False
        self.name = run.robot.name

    @property
    def q(self) -> Array:
        """Configuration at the time that was shown last, shape (nq,)."""
        return np.asarray(self._run([self._time]).q[0])

    def page(self) -> str:
        """The page."""
        return self._text

    def state(self) -> Message:
        """The time to be shown [s], if one was asked for."""
        return {"time": self._time} if self._asked else {}

    def show(self, value: Any) -> None:
        """Show a time [s]."""
        (self._time,) = checked_times(self._run, (value,), "a time")
        self._asked = True

    def ask(self, message: Message) -> None:
        """Nothing: the page plays by itself."""


def run_replay(run: Trajectory, options: ReplayOptions) -> Replay:
    """The replay of a run within the bounds of a page."""
    ghosts = checked_times(run, options.ghosts, "a ghost")
    frames = traced_frames(run.robot, options)
    forces = force_names(run, options.forces)
    t = np.union1d(frame_times(run, rate=options.rate, most=_most(run, 2 * len(forces))), ghosts)
    additions = Additions(
        traces=[Trace(name, LINES[k % len(LINES)]) for k, name in enumerate(frames)],
        ghosts=ghosts,
        arrows=arrows_of(run, t, forces, moments=options.moments),
        events=_events(run),
    )
    return make_replay(run, times=t, additions=additions, mesh_bytes=_MESH_BYTES)


def _most(run: Trajectory, arrows: int) -> int:
    """How many frames a page may have."""
    robot, marks = run.robot, standing_spans(run)
    nodes = len(robot.bodies) + 3 * len(robot.loops) + 2 * len(marks)
    # Base64 makes 4 characters of 3 bytes; a node takes 14 bytes, an arrow 12, a time about 20.
    most = int(_FRAME_CHARACTERS / (20 + 4 / 3 * (14 * nodes + 12 * arrows)))
    return max(min(most, _MOST_WITH_FORCES) if arrows else most, 1)


def traced_frames(robot: Mechanism, options: ReplayOptions) -> Sequence[str]:
    """Frames whose path is drawn: that of the tool unless the user says otherwise."""
    if options.traces is not None:
        names = (options.traces,) if isinstance(options.traces, str) else tuple(options.traces)
        for name in names:
            robot.frame_id(name)
        return names
    tool = robot.description.tool
    return () if tool is None else (tool,)


def _events(run: Trajectory) -> list[tuple[float, str]]:
    """What is marked on the bar of time: what happens at one instant as one."""
    events: dict[float, list[str]] = {}
    passed = [
        (limit.t, f"{limit.joint} passes its {limit.side} limit") for limit in run.limits_passed
    ]
    for time, name in sorted([*run.events, *passed], key=lambda event: event[0]):
        events.setdefault(float(time), []).append(name)
    return [(time, ", ".join(names)) for time, names in events.items()][:_MOST_EVENTS]
