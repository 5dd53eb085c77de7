"""Time of one right-hand side: accelerations at a state, beside Pinocchio's own C++ solvers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

from .measure import interleaved
from .robots import RIGHT_HAND_SIDES
from .scene import scene
from .with_scipy import Pinocchio

Array = NDArray[np.float64]

FALL = 0.2
"""So long the robot has fallen when it is measured [s]."""


def moving_state(robot: pl.Mechanism) -> tuple[Array, Array]:
    """A state that the loops allow, in motion: after a fall from an assembled configuration."""
    q = pl.assemble(robot, {})
    run = pl.simulate(robot, q, until=FALL, losses=False, regularization=False)
    return run.q[-1], run.v[-1]


def right_hand_sides(names: list[str], rounds: int) -> list[dict[str, Any]]:
    """One entry per robot: times [s], ratio, and how far both accelerations differ."""
    return [_one(name, rounds) for name in names]


def _one(name: str, rounds: int) -> dict[str, Any]:
    title, load = RIGHT_HAND_SIDES[name]
    robot = pl.regularize(load())
    q, v = moving_state(robot)
    equations = pl.EquationsOfMotion(robot)
    peer = Pinocchio(robot.model, scene(robot, q, v), robot.length)
    side = equations.right_hand_side()  # as a run calls it
    wanted = equations.acceleration(0.0, q, v)
    states = [(q, v), (pl.assemble(robot, {}), np.zeros(robot.nv))]
    error = peer.tune(states, [equations.acceleration(0.0, *state) for state in states])
    contestants = {"pinloop": lambda: side(0.0, q, v), "pinocchio": lambda: peer.acceleration(q, v)}
    if not robot.loops:
        error = float(np.abs(peer.acceleration(q, v) - wanted).max() / np.abs(wanted).max())
    times = interleaved(contestants, rounds, 2e-3, longest=np.inf)
    return {
        "robot": name,
        "title": title,
        "nv": robot.nv,
        "rows": len(pl.Constraints(robot)),
        "peer": "aba" if not robot.loops else peer.setting[0],
        "peer_rows": sum(one.residualSize() for one in peer.points),
        "mu": peer.setting[1],
        "iterations": peer.setting[2],
        "difference": error,
        "pinloop": asdict(times["pinloop"]),
        "pinocchio": asdict(times["pinocchio"]),
        "ratio": times["pinloop"].least / times["pinocchio"].least,
    }
