"""Values of all public kinds go through a pickle, and reading them does not change theirs."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from ..states import URDF
from .test_arguments import things

PUBLIC = {thing: name for name, thing in things() if dataclasses.is_dataclass(thing)}
"""Public values by their class."""


class Made:
    """What values are made of: a robot, its states, brakes, a run and a stop."""

    run: pl.Trajectory
    stop: pl.StopResult
    brakes: pl.Brakes
    study: pl.Study
    arm: pl.Mechanism

    def __init__(self) -> None:
        self.robot = robot = pl.load(URDF / "fourbar.urdf")
        self.motor = motor = robot.actuated[0]
        self.q = pl.assemble(robot)
        self.v = pl.consistent_velocity(robot, self.q, {motor: 1.0})
        self.state = self.q, self.v
        self.acting: list[pl.forces.Force] = [
            pl.forces.JointSpring(motor, 1.0, 0.1), pl.PD(motor, 1.0, 0.1), pl.Torque(motor, 0.5),
            pl.forces.JointDamping(), pl.forces.JointFriction(1.5, {motor: 0.1}),
            pl.forces.PointForce((robot.bodies[-1], (0, 0, 0)), (0, 0, 1)),
            pl.forces.Spring((robot.bodies[1], X), (robot.bodies[-1], X), 1.0, 0.1),
            pl.forces.Damper((robot.bodies[1], X), (robot.bodies[-1], X), 1.0),
        ]  # fmt: skip
        events = [pl.lock(motor, at=0.1), pl.unlock(motor, at=0.15)]
        more: dict[str, Any] = {"forces": self.acting, "events": events}
        self.run = pl.simulate(robot, *self.state, until=0.2, **more)
        self.brakes = pl.Brakes.template(robot)
        self.stop = pl.stop(robot, *self.state, brakes=self.brakes, category=1)
        self.arm = pl.load(URDF / "six_axis_arm.urdf")
        space = pl.safety.Space(speed=(0.1, 0.5))
        self.study = pl.study(robot, self.brakes, space, pl.safety.Random(3), jobs=1, search=False)

    @cached_property
    def table(self) -> pl.safety.AnnexB:
        """Stops of the motor."""
        brakes = URDF / "six_axis_arm.brakes.yaml"
        return pl.safety.annex_b(self.arm, brakes, payload=0, axes=["joint_1"], categories=(0,))


X = (0.1, 0.2, 0.3)

MAKERS: dict[str, Callable[[Made], Any]] = {
    "robot": lambda m: (m.robot, pl.regularize(m.robot), pl.diagnose(m.robot)),
    "forces": lambda m: m.acting,
    "run": lambda m: (m.run, m.run.energy(), m.run.momentum(), m.run.transitions),
    "reactions": lambda m: m.run.reactions(m.robot.loops[0].name),
    "batch": lambda m: pl.simulate_many(m.robot, [m.q, m.q], [m.v, 0 * m.v], until=0.01),
    "events": lambda m: (
        pl.lock(m.motor, at=1.0),
        pl.simulation.EndStops(),
        pl.simulation.JointLimits(),
        pl.open_loop(m.robot.loops[0].name, at=1.0),
    ),
    "settings": lambda m: (
        pl.MuntheKaas(),
        pl.Projection(),
        pl.ODCA(),
        pl.Augmented(),
        pl.Mode(m.motor),
        pl.Projected(),
        pl.Voronets(),
        pl.Automatic(),
        pl.simulation.Locked(m.motor),
    ),
    "rows": lambda m: (
        pl.constraints.NoSlip("a", X),
        pl.constraints.AngularMomentum(X, 0.1),
        pl.constraints.Rolling("a", 0.1, X),
    ),
    "equations": lambda m: pl.EquationsOfMotion(m.robot, forces=m.acting),
    "constraints": lambda m: pl.Constraints(m.robot),
    "derivatives": lambda m: pl.derivatives(m.robot, *m.state, 0 * m.v),
    "linear system": lambda m: pl.linearize(m.robot, *m.state),
    "sensitivity": lambda m: m.run.sensitivity(
        [pl.simulation.EnergyAt()], [pl.simulation.InitialState()]
    ),
    "parameters": lambda m: (
        pl.parameters.Armature(m.motor),
        pl.parameters.BodyInertia("a"),
        pl.parameters.PointMass("a", X),
        pl.parameters.Placement("a"),
        pl.parameters.ForceParameter(m.acting[0], "stiffness"),
    ),
    "outcomes": lambda m: (
        pl.simulation.EnergyAt(),
        pl.simulation.StateAt(),
        pl.simulation.PointAt(m.robot.bodies[-1]),
        pl.simulation.EventTime("a"),
    ),
    "drives": lambda m: pl.DriveTorques(m.robot),
    "load of drives": lambda m: pl.DriveTorques(m.robot)(m.q, 0 * m.v, 0 * m.v),
    "inertia": lambda m: pl.reflected_inertia(m.robot, m.q),
    "capability": lambda m: pl.tool_capability(m.robot, m.robot.bodies[-1], [m.q]),
    "twin": lambda m: pl.serial(m.robot, [m.robot.joints[-1]]),
    "holonomy": lambda m: pl.dynamics.holonomic(
        m.arm, [pl.constraints.NoSlip(m.arm.bodies[-1], X)], m.arm.neutral
    ),
    "scenario": lambda m: pl.load_scenario(URDF / "fourbar.scenario.yaml").scenario,
    "stop": lambda m: (m.stop, m.stop.bands, m.stop.joints, m.stop.guesses),
    "what a stop depends on": lambda m: m.stop.sensitivity(),
    "brakes": lambda m: (
        m.brakes,
        pl.safety.Correlation(("a", "b"), 0.5),
        pl.safety.ConstantDeceleration(1.0),
        pl.safety.JerkLimited(1.0, 2.0),
    ),
    "categories": lambda m: (
        pl.Category0(),
        pl.Category1(),
        pl.Category2(),
        pl.Payload(1.0),
        pl.safety.Trigger(),
        pl.safety.Chain(),
        pl.safety.Standstill(),
    ),
    "obstacle": lambda m: pl.Obstacle.box("box", (1, 1, 1)),
    "study": lambda m: (m.study, m.study.result()),
    "sampling": lambda m: (
        pl.safety.Grid(2),
        pl.safety.Sobol(4),
        pl.safety.Corners(),
        pl.safety.Random(2),
        pl.safety.Search(),
    ),
    "annex B": lambda m: m.table,
    "separation": lambda m: pl.separation(m.study, direction=(1, 0, 0), jobs=1, search=False),
    "minimum distance": lambda m: pl.safety.minimum_distance(m.study),
    "allowed speed": lambda m: pl.allowed_speed(
        m.robot, m.brakes, {"time": 0.5}, sampling=pl.safety.Random(2), jobs=1
    ),
    "clearance": lambda m: pl.clearance(m.stop.run, [pl.Obstacle.box("far", (1, 1, 1), (9, 9, 9))]),
    "self collisions": lambda m: pl.safety.self_collisions(m.stop.run),
    "swept volume": lambda m: pl.safety.swept_volume(m.stop.run),
    "heat": lambda m: pl.safety.brake_heat(m.stop),
    "recording": lambda m: pl.safety.JointTrajectory(
        ("a",), np.linspace(0, 1, 9), np.zeros((9, 1))
    ),
}
"""Values that hold others of most kinds."""


def parts(value: Any, seen: dict[int, Any], depth: int = 0) -> Iterator[Any]:
    """A value and all values in it that are public."""
    if id(value) in seen or depth > 8:
        return
    seen[id(value)] = value
    if isinstance(value, dict):
        items = list(value.values())[:50]
    elif isinstance(value, (list, tuple)):
        items = list(value)[:50]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        items = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        return
    for item in items:
        yield from parts(item, seen, depth + 1)


def read_all(value: Any) -> None:
    """Look at what a value has, and print it."""
    for name, member in inspect.getmembers_static(type(value)):
        if isinstance(member, property) and not name.startswith("_"):
            try:
                getattr(value, name)
            except pl.PinloopError:
                continue
    repr(value)


NOT_MADE = """
TorqueFunction constraints.Pfaffian constraints.Prescribed dynamics.JumpDerivatives
dynamics.SerialMap dynamics.TwinPose formulations.FurtherRows interop.PinocchioModels
safety.CellMap safety.Comparison safety.ConstantTime
safety.DriveTorque safety.FirstOrder safety.Fit safety.Interval safety.JointBrake
safety.LawFits safety.Measured safety.Overlay safety.ParameterDistribution
safety.PointStop safety.Searched safety.StopBands safety.StopInterpolation
safety.StopLaw safety.StopTrace safety.StoppingTable safety.TraceFit
safety.Watch safety.WorstCase simulation.InitialState simulation.LockReaction
simulation.Replay
"""
ELSEWHERE = frozenset(NOT_MADE.split())
"""Kinds that are not made here: functions of users, objects of Pinocchio, fits and measurements."""


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
def test_values_go_through_pickles() -> None:
    material, seen = Made(), set()
    for make in MAKERS.values():
        value = make(material)
        assert type(pickle.loads(pickle.dumps(value))) is type(value)
        for part in {type(part): part for part in parts(value, {})}.values():
            if type(part) in PUBLIC and PUBLIC[type(part)] not in seen:
                seen.add(PUBLIC[type(part)])
                assert_goes_through_a_pickle(part)
    assert set(PUBLIC.values()) - seen == ELSEWHERE


def assert_goes_through_a_pickle(value: Any) -> None:
    """The same comes out, and reading it changes nothing."""
    before = pickle.dumps(value)
    read_all(value)
    assert pickle.dumps(value) == before, type(value)
    again = pickle.loads(before)
    assert type(again) is type(value)
    assert repr(again) == repr(value) or " at 0x" in repr(value)
