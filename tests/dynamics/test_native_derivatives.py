"""Derivatives by the native kernel are those of Python, which `test_derivatives` holds to laws."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop import forces, parameters
from pinloop.dynamics import native_derivatives
from pinloop.dynamics.derivatives import Derivatives, derivatives_at
from pinloop.dynamics.kernel_tables import tables_of_rows
from pinloop.model.description import Coupling
from pinloop.model.mechanism import build

from .. import random_linkages, screw_tables, states

kernel = pytest.importorskip("pinloop._kernel")

SAME = 1e-10
"""Relative difference; 5e-12 was the largest, on the delta."""
AGREEING = (
    "delta", "fivebar", "fourbar", "palletizer", "planar_3r", "sevenbar", "six_axis_arm",
    "spherical_fourbar", "spherical_threebar", "stewart", "gear-pair", "every-pair", "rssr",
)  # fmt: skip
"""Robots whose rows agree off the manifold, too."""


class Case:
    """A robot at a state, and both engines."""

    def __init__(self, robot: pl.Mechanism, seed: int, off: float = 0.0, **given: Any) -> None:
        rng = np.random.default_rng(seed)
        self.q, self.v = states.moving(robot, seed)
        self.both = [
            pl.EquationsOfMotion(robot, formulation=formulation, **given).around(0.0, self.q)
            for formulation in (pl.Automatic(), pl.Augmented())
        ]
        self.q = pin.integrate(robot.model, self.q, off * rng.normal(size=robot.nv))
        self.v = self.v + off * rng.normal(size=robot.nv)
        self.tau = rng.normal(size=robot.nv)

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel says anything here."""
        by_kernel = native_derivatives.native_slopes
        return by_kernel(self.both[0], 0.0, self.q, self.v, self.tau) is not None

    def compare(self, more: Any = ()) -> None:
        """Compare everything; twice, as nothing may be left of the first time."""
        native, python = (
            derivatives_at(equations, 0.0, self.q, self.v, self.tau, more)
            for equations in self.both
        )
        same(native, python)
        same(derivatives_at(self.both[0], 0.0, self.q, self.v, self.tau, more), native)


def same(ours: Derivatives, theirs: Derivatives) -> None:
    for field in fields(ours):
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        if isinstance(one, tuple):
            assert one == other, field.name
            continue
        size = max(1e-3, np.abs(np.nan_to_num(other)).max(initial=0.0))
        np.testing.assert_allclose(one, other, rtol=0.0, atol=SAME * size, err_msg=field.name)


@pytest.mark.parametrize("name", [*states.SHIPPED, *states.SMALL])
@pytest.mark.parametrize("off", [0.0, 1e-2])
def test_derivatives_are_those_of_python(name: str, off: float) -> None:
    """All rows of the pairs, and those that regularization leaves."""
    looped = name in states.LOOPED
    for robot in (states.robot(name), states.regularized(name))[: 1 + looped]:
        case = Case(robot, 3, off)
        assert case.in_kernel or (off and name not in AGREEING) or not knows(robot)
        case.compare()


@pytest.mark.parametrize("name", [*states.SHIPPED, *states.SMALL])
def test_reactions_of_locks_are_those_of_python(name: str) -> None:
    for robot in (states.robot(name), states.regularized(name))[: 1 + (name in states.LOOPED)]:
        for locks in (robot.joints[:1], (robot.joints[-1], robot.joints[0])):
            Case(robot, 4, locks=locks).compare()
    assert Case(states.robot("palletizer"), 4, locks=["wrist"]).in_kernel


def knows(robot: pl.Mechanism) -> bool:
    return all(loop.pair.is_group for loop in robot.loops)


@pytest.mark.parametrize("seed", range(30))
def test_random_mechanisms(seed: int) -> None:
    """With loops of all pairs, redundant or not, and at states at which nothing fits."""
    draw = random_linkages.graph if seed % 2 else random_linkages.parallel_mechanism
    robot = screw_tables.build(draw(seed))
    for off in (0.0, 1e-2):
        if robot.nv:
            Case(robot, seed, off).compare()


@pytest.mark.parametrize("name", ["palletizer", "stewart", "six_axis_arm"])
def test_forces_and_parameters_are_torques_to_the_kernel(name: str) -> None:
    robot = states.robot(name)
    [joint, *_] = [name for name in robot.joints[1:] if robot.coordinates(name).nv == 1]
    last = robot.description.bodies[-1].name
    spring = forces.JointSpring(joint, 30.0, 0.2)
    acting = [spring, forces.JointDamping({joint: 2.0}), forces.PointForce(last, (1.0, 2.0, 3.0))]
    more = [
        parameters.PointMass(last, (0.1, 0.2, 0.3)),
        parameters.Armature(joint),
        parameters.ForceParameter(spring, "stiffness"),
    ]
    case = Case(robot, 5, forces=acting)
    assert case.in_kernel
    case.compare(more)
    case.compare([*more, parameters.Placement(joint)])  # which the kernel does not know


@pytest.mark.parametrize("part", [0.0, 1e-3])
@pytest.mark.parametrize("off", [0.0, 1e-2])
def test_couplings_that_bend(off: float, part: float) -> None:
    """Angles tied by cubics, of which also a part is asked for, which depends on the whole."""
    robot, joints = states.robot("planar-3R"), ("j1", "j3")
    cubics = np.array([(0.0, 1.0, 0.3, 0.2), (0.0, -0.7, 0.4, -0.3)])
    cams = [
        Coupling(f"cam {x}", joints, tuple(map(tuple, (x * cubics).tolist()))) for x in (1.0, part)
    ]
    case = Case(build(replace(robot.description, couplings=tuple(cams[: 1 + bool(part)]))), 3, off)
    assert case.in_kernel and np.abs(case.v).max() > 0.5
    case.compare()


def test_other_rows_are_held_where_those_that_were_are_no_choice() -> None:
    """Of the five rows of a hinge two matter in a plane."""
    case = Case(states.robot("fourbar"), 1)
    equations, robot = case.both[0], case.both[0].robot
    assert case.in_kernel
    idle = native_derivatives._idle_kernels(robot, (), 2)
    [good] = idle
    bad = good.order[::-1].copy()
    tables = tables_of_rows(robot, whole=False, comparable=False)
    armature, units = robot.model.armature, equations.rows.scale[bad]
    idle[:] = [good._replace(kernel=kernel.Derivatives(tables, bad, 2, units, armature), order=bad)]
    case.compare()
    assert idle[0].order.tolist() == good.order.tolist()


def test_what_is_not_finite_is_said() -> None:
    case = Case(states.robot("fourbar"), 1)
    with pytest.raises(pl.NotFinite):
        derivatives_at(case.both[0], 0.0, case.q, np.full(3, np.inf))
