"""Random stops of the shipped robots with closed loops, and second programs; no test lives here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pinloop as pl

from ...screw_tables import Array
from .loops_by_hand import Friction, Machine

FOLDER = Path(__file__).parents[3] / "urdf"
POSES: dict[str, dict[str, float]] = {
    "fourbar": {}, "fivebar": {}, "sevenbar": {}, "palletizer": {}, "delta": {}, "stewart": {},
    "prrr3": {}, "bricard": {}, "spherical_fourbar": {"joint_1": 0.9}, "planar_3r": {},
}  # fmt: skip
"""Where the random poses are; the spherical four-bar is flat at zero."""
ROBOTS = list(POSES)


@cache
def robot(name: str) -> pl.Mechanism:
    return pl.load(FOLDER / f"{name}.urdf")


@dataclass(frozen=True, eq=False)
class Case:
    """A robot that moves, and what is to stop it."""

    robot: pl.Mechanism
    q: Array
    v: Array
    brakes: pl.Brakes
    gravity: Array
    payload: tuple[str, float, Array, Array] | None

    def stop(self, **more: Any) -> pl.StopResult:
        load = self.payload
        if load is not None:
            more["payload"] = pl.Payload(load[1], load[2], load[3], load[0])
        return pl.stop(self.robot, self.q, self.v, brakes=self.brakes, gravity=self.gravity, **more)

    @property
    def machine(self) -> Machine:
        return Machine(self.robot, self.brakes, self.gravity, self.payload)

    @property
    def friction(self) -> Friction:
        return Friction(self.robot, self.brakes, self.brakes.chain)


# -- drawing ---------------------------------------------------------------------------------------


def drawn(name: str, seed: int, weakest: float = 0.05) -> Case:
    """A random case.

    Args:
        name: the robot.
        seed: seed.
        weakest: least torque of a brake, as a fraction of the effort of its joint.
    """
    one, rng = robot(name), np.random.default_rng([seed, ROBOTS.index(name)])
    q = _pose(one, POSES[name], rng)
    sliding = one.is_translation
    rates = {
        joint: 2.0 * rng.normal() * (0.2 if sliding[one.coordinates(joint).v.start] else 1.0)
        for joint in one.actuated
    }
    v = pl.consistent_velocity(one, q, rates)
    gravity = rng.normal(size=3) if rng.random() < 0.5 else np.array([0.0, 0.0, -1.0])
    moments = rng.uniform(0, 0.05, 3)
    load = one.bodies[-1], rng.uniform(0.2, 3), rng.uniform(-0.1, 0.1, 3), moments
    payload = (*load[:3], np.diag(moments.sum() + moments)) if rng.random() < 0.5 else None
    single = [joint for joint in one.joints if one.coordinates(joint).nv == 1]
    joints = {
        joint: _brake(one, joint, rng, weakest)
        for joint in single
        if joint in one.actuated or rng.random() < 0.5
    }
    chain = pl.safety.Chain(*(rng.choice([0.0, longest]) for longest in (0.005, 0.01, 0.004)))
    gravity = 9.81 * gravity / np.linalg.norm(gravity)
    return Case(one, q, v, pl.Brakes(joints, chain), gravity, payload)


def _pose(one: pl.Mechanism, near: dict[str, float], rng: np.random.Generator) -> Array:
    q, size = pl.assemble(one, near), np.where(one.is_translation, 0.1, 1.0)
    for _ in range(50):
        try:
            return pl.assemble(one, one.integrate(q, 0.2 * size * rng.normal(size=one.nv)))
        except pl.LoopNotClosed:
            continue
    raise AssertionError("no pose found")


def _brake(
    one: pl.Mechanism, joint: str, rng: np.random.Generator, weakest: float
) -> pl.safety.JointBrake:
    efforts = one.model.effortLimit
    effort = float(efforts[one.coordinates(joint).v.start])
    if joint not in one.actuated:
        effort = float(min(efforts[one.coordinates(name).v.start] for name in one.actuated))
        coulomb = effort * rng.uniform(0, 0.03)
        return pl.safety.JointBrake(kind="none", coulomb=coulomb, viscous=rng.choice([0.0, 0.003]))
    ratio = rng.choice([1.0, rng.uniform(5, 50)])
    at_motor = rng.random() < 0.5
    torque = effort * rng.uniform(weakest, 1.0) / (ratio if at_motor else 1.0)
    sticky = rng.random() < 0.3
    return pl.safety.JointBrake(
        side="motor" if at_motor else "joint",
        gear_ratio=ratio,
        efficiency=rng.choice([1.0, rng.uniform(0.6, 0.95)]),
        rotor_inertia=effort * rng.choice([0.0, rng.uniform(2e-4, 6e-3)]) / ratio**2,
        dynamic_torque=torque,
        static_torque=torque * rng.uniform(1.0, 1.4),
        tolerance=0.3,
        band=rng.uniform(-1, 1),
        delay=rng.choice([0.0, rng.uniform(0, 0.05)]),
        rise=rng.choice([0.0, rng.uniform(0, 0.05)]),
        coulomb=rng.choice([0.0, 0.02]) * effort,
        viscous=rng.choice([0.0, 0.01]) * effort,
        short_circuit=rng.choice([0.0, 0.02]) * effort / ratio**2,
        breakaway=0.04 * effort if sticky else None,
        stribeck_speed=0.2 if sticky else 0.0,
    )


def lossless(case: Case) -> Case:
    """The case with gears that lose nothing and no more friction than combinations allow for."""
    joints = {name: replace(one, efficiency=1.0) for name, one in case.brakes.joints.items()}
    passive = [name for name, one in joints.items() if one.kind == "none"]
    for name in passive[6 - len(case.robot.actuated) :]:
        del joints[name]
    return replace(case, brakes=replace(case.brakes, joints=joints))
