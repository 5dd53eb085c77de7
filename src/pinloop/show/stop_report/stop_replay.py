"""The replay of a stop: start pose, way of the tool, who stands, and the volume swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...safety.space.swept import SweptVolume, swept_volume
from ...safety.stopping.result import StopResult
from ...tables.markup import Markup, element, joined
from ...tables.number_format import number
from ..scene.motion import frame_times
from ..scene.player import Player, SharedCommands, make_player
from ..scene.replay import MESH_BYTES, Layer, Trace, make_replay
from .instants import shown_until

__all__ = ["Motion", "motion_of"]

Array = NDArray[np.float64]

_REACTION, _BRAKING = (0.45, 0.49, 0.55, 1.0), (0.80, 0.12, 0.45, 1.0)
_VOLUME = (0.10, 0.55, 0.45, 0.20)
_TRIANGLES = 40_000
"""What a picture of a volume needs; more are not worth the bytes."""


@dataclass(frozen=True)
class Motion:
    """The replay of a stop, and what is to be said about it.

    Args:
        player: parts of the page.
        remarks: sentences below it.
    """

    player: Player
    remarks: Markup


def motion_of(
    result: StopResult,
    *,
    swept: bool,
    shared: SharedCommands | None = None,
    layers: Sequence[Layer] = (),
    frames: int | None = None,
    mesh_bytes: int = MESH_BYTES,
) -> Motion:
    """Make the replay of a stop.

    Args:
        result: the stop.
        swept: whether the volume swept is shown.
        shared: what several replays of one page have in common.
        layers: further surfaces that stand still.
        frames: so many frames there are at most, if it is given.
        mesh_bytes: what the meshes of the robot may take.
    """
    volume = swept_volume(result.run, max_triangles=_TRIANGLES) if swept else None
    layers = list(layers)
    if volume is not None:
        mesh = volume.mesh()
        layers.append(Layer("volume swept", mesh.vertices, mesh.faces, _VOLUME))
    reaction = min(result.reaction_time, float(result.run.t[-1]))
    replay = make_replay(
        result.run,
        until=shown_until(result),
        times=None if frames is None else _frames(result, frames),
        mesh_bytes=mesh_bytes,
        marked=tuple(result.joints),
        traces=(
            Trace(result.tool, _REACTION, end=reaction),
            Trace(result.tool, _BRAKING, start=reaction),
        ),
        layers=layers,
    )
    player = make_player(
        replay, trace_label="tool path", ghost_label="pose at the signal", shared=shared
    )
    remarks = [
        joined(
            "Symbols of joints are ",
            element("span", "orange", class_="moves"),
            " while they move and ",
            element("span", "blue", class_="stands"),
            " at rest; the pose at the signal is translucent. The path of ",
            result.tool,
            " is grey in the reaction time, then red.",
        )
    ]
    if replay.cell > 0:
        text = f"Meshes are simplified to {1e3 * replay.cell:.2g} mm to keep this file small."
        remarks.append(joined(text))
    if volume is not None:
        remarks.append(joined(_said(volume)))
    return Motion(player, joined(*(element("p", remark, class_="remark") for remark in remarks)))


def _frames(result: StopResult, most: int) -> Array:
    """Times of the frames [s], evenly fewer of them if there are too many."""
    t = frame_times(result.run, shown_until(result))
    if len(t) <= most:
        return t
    return np.asarray(t[np.linspace(0, len(t) - 1, most).round().astype(int)])


def _said(volume: SweptVolume) -> str:
    """What the volume is."""
    low, high = volume.bounds
    ends = (
        f"{axis} = {number(a, 3)} to {number(b, 3)} m"
        for axis, a, b in zip("xyz", low, high, strict=True)
    )
    text = (
        f"The volume swept holds the robot at every instant and is nowhere more than "
        f"{1e3 * volume.excess:.1f} mm too large, meshes counting as their convex hulls. "
        f"It reaches from {', '.join(ends)} in the world."
    )
    if volume.bare:
        text += f" Bodies without shapes are not in it: {', '.join(volume.bare)}."
    return text
