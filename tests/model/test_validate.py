"""Tests of `pinloop.model.validate`: descriptions that are no machine, and what is only odd
about one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import (
    GROUND,
    Body,
    Coupling,
    Description,
    Drive,
    Joint,
    NamedFrame,
    constant,
)
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import screw_tables as tables

UNIT = pin.SE3.Identity()


@cache
def good() -> Description:
    return tables.build(m.four_bar()).description


def with_joint(**changes: Any) -> Description:
    first, *rest = good().joints
    return replace(good(), joints=(replace(first, **changes), *rest))


def with_body(**changes: Any) -> Description:
    first, *rest = good().bodies
    return replace(good(), bodies=(replace(first, **changes), *rest))


SKEWED = pin.SE3(np.diag([1.0, 1.0, 1.1]), np.zeros(3))
MIRROR = pin.SE3(np.diag([1.0, 1.0, -1.0]), np.zeros(3))
NOWHERE = pin.SE3(np.eye(3), np.array([0, np.nan, 0]))
LOP = constant([[1, 2, 3], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        (replace(good(), bodies=()), "no bodies|unknown"),
        (with_body(name="rocker"), "'rocker'; names must be unique"),
        (with_body(name="ground"), "must not be called 'ground'"),
        (with_body(name=" "), "has no name"),
        (with_body(mass=-0.1), "body 'crank' has negative mass -0.1"),
        (with_body(mass=np.inf), "body 'crank' .* not finite"),
        (with_body(com=constant([0, 0, np.nan])), "body 'crank' .* not finite"),
        (with_body(inertia=LOP), "not symmetric"),
        (with_body(mass=0.0, inertia=constant(np.zeros((3, 3)))), None),
        (with_joint(name="rocker"), "'rocker'; names must be unique"),
        (with_joint(name="universe"), "universe"),
        (with_joint(parent="sky"), "joint 'crank' joins unknown link 'sky'; known: .*rocker"),
        (with_joint(parent="crank"), "joint 'crank' joins link 'crank' to itself"),
        (with_joint(frame_parent=SKEWED), "joint 'crank' .* not a rotation"),
        (with_joint(frame_child=MIRROR), "joint 'crank' .* not a rotation"),
        (with_joint(frame_child=NOWHERE), "joint 'crank' .* not finite"),
        (with_joint(damping=(-1.0,)), "joint 'crank' has damping -1; it must be >= 0"),
        (with_joint(friction=(np.nan,)), "joint 'crank' has friction"),
        (with_joint(armature=(1.0, 1.0)), "2 values of armature where its revolute pair has 1"),
        (with_joint(lower=(0.0,)), "joint 'crank'"),
        (with_joint(lower=(0.0,) * 3, upper=(1.0,) * 3), "joint 'crank' has 3 lower"),
        (with_joint(lower=(1.0,), upper=(0.5,)), "lower limit 1.0 above upper limit 0.5"),
        (with_joint(lower=(np.nan,), upper=(0.5,)), "joint 'crank' has lower limit nan"),
        (replace(good(), actuated=("motor",)), "'motor' is called actuated"),
        (replace(good(), drives=(Drive("gear"),)), "'gear'"),
        (replace(good(), drives=(Drive("crank", 0.0),)), "'crank' has reduction 0"),
        (replace(good(), drives=(Drive("crank", 1.0, -1.0),)), "'crank' has rotor inertia -1"),
        (replace(good(), base="table"), "'table' does not exist"),
        (replace(good(), gravity=constant([0, 0])), "gravity"),
        (replace(good(), gravity=constant([0, 0, np.nan])), "gravity"),
        (replace(good(), frames=(NamedFrame("f", "moon", UNIT),)), "'f' sits on .*'moon'"),
        (replace(good(), frames=(NamedFrame("f", "crank", SKEWED),)), "'f' .* not a rotation"),
        (replace(good(), frames=(NamedFrame("f", "crank", UNIT),) * 2), "'f'; names must be"),
        (replace(good(), couplings=(Coupling("crank", ("elbow",), ((0, 1),)),)), "unique"),
        (replace(good(), couplings=(Coupling("c", ("arm",), ((0, 1),)),)), "unknown joint 'arm'"),
        (replace(good(), couplings=(Coupling("c", ("crank",) * 2, ((0, 1),) * 2),)), "different"),
        (replace(good(), couplings=(Coupling("c", ("crank",), ((1,),)),)), r"coefficients \(1,\)"),
        (replace(good(), couplings=(Coupling("c", ("crank",), ((0, np.inf),)),)), "coefficients"),
        (replace(good(), couplings=(Coupling("c", ("close",), ((0, 1, 1),)),)), "'close'"),
    ],
)  # fmt: skip
def test_a_description_that_is_no_machine_says_what_is_wrong(
    description: Description, problem: str | None
) -> None:
    if problem is None:  # a crank without mass moves the masses behind it: a warning is enough
        assert any("'crank'" in warning for warning in build(description).warnings)
        return
    with pytest.raises(pl.LoadError, match=problem) as caught:
        build(description)
    assert caught.value.source == description.source == "screw table"


def test_coupling_needs_joints_with_one_coordinate() -> None:
    for pair, coordinates in (("spherical", ""), ("revolute", "circle")):
        joint = Joint("j", make_pair(pair), GROUND, "b", UNIT, UNIT, coordinates=coordinates)  # type: ignore[arg-type]
        row = Coupling("c", ("j",), ((0.0, 1.0),))
        with pytest.raises(pl.LoadError, match="coupling 'c' needs joint 'j'"):
            build(Description("r", (tables.described("b"),), (joint,), couplings=(row,)))


def test_what_moves_without_mass_is_warned_of_unless_only_kinematics_is_wanted() -> None:
    joints = (
        Joint("j", make_pair("revolute"), GROUND, "a", UNIT, UNIT),
        Joint("k", make_pair("revolute"), "a", "tip", UNIT, UNIT),
    )
    description = Description(
        "light", (tables.described("a"), Body("tip")), joints, source="light.urdf"
    )
    assert build(description).warnings == ("link 'tip' moves but has no mass",)
    assert build(description, kinematics_only=True).warnings == ()
    between = replace(description, bodies=(*description.bodies[:1], Body("tip", is_between=True)))
    assert build(between).warnings == ()
    (warning,) = build(with_body(inertia=constant(-np.eye(3)))).warnings
    assert "link 'crank' has an inertia that is not positive definite" in warning
    # A rotor gives the joint inertia of its own.
    drive = (Drive("k", 10.0, 1e-3),)
    assert build(replace(description, drives=drive)).warnings == ()


def test_what_a_cut_joint_cannot_have_is_not_lost_silently() -> None:
    *tree, cut = good().joints
    for change, word in (
        ({"lower": (0.0,), "upper": (1.0,)}, "; not used: position limits"),
        ({"damping": (1.0,)}, "; not used in stops: damping"),
        ({"friction": (1.0,)}, "; not used in stops: friction"),
        ({"armature": (1.0,)}, "; not used: armature"),
    ):
        joint = replace(cut, **change)  # type: ignore[arg-type]
        (warning,) = build(replace(good(), joints=(*tree, joint))).warnings
        assert "'close'" in warning
        assert word in warning
    driven = build(replace(good(), drives=(Drive("close", 10.0, 1e-3),)))
    assert any("'close'" in warning and "rotor" in warning for warning in driven.warnings)
