"""Stops computed again with one of their inputs changed, and differences of these; no test here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import pinloop as pl
from pinloop.safety.studies.cases import tool_travel

from ...screw_tables import Array

FINE = pl.MuntheKaas(rtol=1e-11, atol=1e-12)


@dataclass(frozen=True)
class Situation:
    """What `stop` takes: by joint names where it can, so that one of them can be changed."""

    robot: pl.Mechanism
    pose: dict[str, float]
    speed: dict[str, float]
    brakes: pl.Brakes
    payload: pl.safety.Payload | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def stop(self) -> pl.StopResult:
        """The stop."""
        robot, more = self.robot, {"method": FINE} | self.more
        if "trigger" in more:
            return pl.stop(robot, brakes=self.brakes, payload=self.payload, **more)
        if robot.loops or robot.couplings:
            q = pl.assemble(robot, fixed=self.pose)
            v = pl.consistent_velocity(robot, q, self.speed)
        else:
            q, v = robot.configuration(self.pose), robot.velocity(self.speed)
        return pl.stop(robot, q, v, brakes=self.brakes, payload=self.payload, **more)

    def changed(self, name: str, step: float) -> Situation:
        """The same with an input that is larger, or larger by a part for all joints."""
        quantity, _, joint = name.partition(":")
        if quantity == "speed":
            part = {k: x * (1.0 + step) if not joint else x for k, x in self.speed.items()}
            return replace(self, speed=part | ({joint: part[joint] + step} if joint else {}))
        if quantity == "pose":
            return replace(self, pose=self.pose | {joint: self.pose[joint] + step})
        if quantity == "payload":
            load = self.payload or pl.safety.Payload(0.0)
            return replace(self, payload=replace(load, mass=load.mass + step))
        if quantity == "instant":
            trigger = self.more["trigger"]
            return replace(
                self, more=self.more | {"trigger": replace(trigger, at=trigger.at + step)}
            )
        brakes = self.brakes
        if hasattr(brakes.chain, quantity):
            chain = replace(brakes.chain, **{quantity: getattr(brakes.chain, quantity) + step})
            return replace(self, brakes=replace(brakes, chain=chain))
        joints = dict(brakes.joints)
        for key in [joint] if joint else joints:
            brake = joints[key]
            if quantity == "brake_torque":
                torques = {
                    one: getattr(brake, one) * (1.0 + step)
                    for one in ("dynamic_torque", "static_torque")
                    if getattr(brake, one)
                }
                joints[key] = replace(brake, **torques)
            else:
                value = getattr(brake, quantity)
                value = value + step if joint else value * (1.0 + step)
                joints[key] = replace(brake, **{quantity: value})
        return replace(self, brakes=replace(brakes, joints=joints))

    def difference(self, name: str, h: float, of: Callable[[pl.StopResult], Array]) -> Array:
        """Derivatives by differences of fourth order."""
        a, b, c, d = (of(self.changed(name, k * h).stop()) for k in (-2, -1, 1, 2))
        return np.asarray((8.0 * (c - b) - (d - a)) / (12.0 * h))


def measured(outputs: Iterable[str]) -> Callable[[pl.StopResult], Array]:
    """What makes of a stop its outputs, by their names."""

    def value(stop: pl.StopResult, name: str) -> float:
        kind, _, of = name.partition(":")
        if kind == "path":
            return tool_travel(stop, of or stop.tool)[0]
        if kind == "displacement":
            return stop.point(of or None).displacement
        if kind == "stopping_time":
            return stop.stopping_time
        if kind == "energy":
            ledger = stop.ledger
            return ledger.drive_work if of == "drives" else float(ledger.dissipated[of].sum())
        joint = stop.joints[of]
        return {"angle": joint.angle, "time": joint.time, "heat": joint.dissipated}[kind]

    names = list(outputs)
    return lambda stop: np.array([value(stop, name) for name in names])
