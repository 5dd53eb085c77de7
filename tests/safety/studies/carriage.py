"""A carriage and brakes whose stops a hand can compute, for distances; no test lives here."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pinocchio as pin
import pytest

import pinloop as pl

from ..space.moving_bodies import at, chain, shape

COMMAND, OFF, DELAY = 0.05, 0.03, 0.04
"""Signal to command, to power off, to the brake: until COMMAND + DELAY it goes on as it was."""
CHAIN = pl.safety.Chain(sensor=0.02, controller=0.03, drive_off=OFF)


def brakes(**torques: float) -> pl.Brakes:
    joints = {
        name: pl.safety.JointBrake(side="joint", dynamic_torque=torque, delay=DELAY)
        for name, torque in torques.items()
    }
    return pl.Brakes(joints, CHAIN)


# -- a carriage: v0 until the brake comes, then a constant deceleration -------------------------

SPEED, BRAKING = 2.0, 4.0
"""Speed [m/s] and deceleration [m/s^2] of the carriage, whose mass is 1 kg."""
T_R, T_S = COMMAND, DELAY + SPEED / BRAKING
S_R, S_S = SPEED * COMMAND, SPEED * DELAY + SPEED**2 / (2 * BRAKING)


@cache
def carriage(kind: str = "box", speed: float = SPEED) -> pl.StopResult:
    """A carriage that slides along +x; its front face is at x = 0.25 m when the signal comes."""
    sizes: dict[str, Any] = {"box": (0.5, 0.3, 0.2), "sphere": (0.25,)}
    body = shape("a", kind, sizes[kind], at(0, 0, 0))
    slider = chain("prismatic", axis=(1, 0, 0), geometry=(replace(body, placement=pin.SE3(1)),))
    stop = pl.stop(slider, [0.0], [speed], brakes=brakes(j1=BRAKING))
    if speed:
        assert stop.stopping_time == pytest.approx(COMMAND + DELAY + speed / BRAKING, rel=1e-9)
    return stop
