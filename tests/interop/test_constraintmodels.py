"""Constraint models of Pinocchio close the loops of the `pin.Model` that they were made for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from ..io.by_hand import at

POINT, FRAME = pin.ContactType.CONTACT_3D, pin.ContactType.CONTACT_6D


def bars() -> pin.Model:
    """Crank and coupler, and beside them a rocker: bars of 1 m along x that turn about z.

    The crank stands at the origin, the rocker 1 m away from it along y. Closed with the end of the
    coupler in the end of the rocker they make a square, which moves as a rhomb.
    """
    model = pin.Model()
    for name, parent, where in (
        ("crank", 0, at(0, 0, 0)), ("coupler", 1, at(1, 0, 0)), ("rocker", 0, at(0, 1, 0)),
    ):  # fmt: skip
        index = model.addJoint(parent, pin.JointModelRZ(), where, name)
        model.appendBodyToJoint(index, pin.Inertia.FromSphere(1, 0.1), at(0.5, 0, 0))
    return model


def tied(model: pin.Model, kind: Any, height: float = 0.0) -> pin.RigidConstraintModel:
    """The ends of coupler and rocker tied together, so high above the plane."""
    end = at(1, 0, height)
    return pin.RigidConstraintModel(kind, model, 2, end, 3, end, pin.ReferenceFrame.LOCAL)


def rhomb(angle: float) -> dict[str, float]:
    return {"crank": angle, "coupler": np.pi / 2 - angle, "rocker": angle}


def residual(robot: pl.Mechanism, values: dict[str, float]) -> Any:
    return pl.Constraints(robot).residual(robot.configuration(values))


def test_a_point_is_a_spherical_pair() -> None:
    model = bars()
    robot = pl.load(model, loops=tied(model, POINT))
    assert pl.Constraints(robot).labels == tuple(f"constraint_1: v_{axis}" for axis in "xyz")
    for angle in (0.0, 0.4):
        np.testing.assert_allclose(residual(robot, rhomb(angle)), 0, atol=1e-15)
    # The coupler stretched: its end is 2 m along x, that of the rocker 1 m along x and y.
    opened = residual(robot, {"crank": 0.0, "coupler": 0.0, "rocker": 0.0})
    assert np.linalg.norm(opened) == pytest.approx(np.sqrt(2))


def test_a_frame_is_a_fixed_pair() -> None:
    model = bars()
    model.gravity.linear = np.zeros(3)
    end = pin.SE3(pin.utils.rotate("z", np.pi / 2), np.array([1.0, 0, 0]))
    held = pin.RigidConstraintModel(FRAME, model, 2, at(1, 0, 0), 3, end)
    held.name = "weld"
    robot = pl.load(model, loops=[held])
    assert len(pl.Constraints(robot)) == 6
    assert pl.Constraints(robot).labels[0] == "weld: v_x"
    # Frame A stands at crank + coupler, frame B at rocker + 90 degrees.
    np.testing.assert_allclose(residual(robot, rhomb(0.0)), 0, atol=1e-15)
    turned = residual(robot, rhomb(0.3))
    np.testing.assert_allclose(np.abs(turned), [0, 0, 0, 0, 0, 0.3], atol=1e-12)


@pytest.mark.parametrize("swapped", [False, True])
def test_two_points_are_the_hinge_through_both(swapped: bool) -> None:
    model = bars()
    low, high = tied(model, POINT, -0.1), tied(model, POINT, 0.3)
    if swapped:
        ends = (high.joint2_id, high.joint2_placement, high.joint1_id, high.joint1_placement)
        high = pin.RigidConstraintModel(POINT, model, *ends)
    low.name, high.name = "pin", "other end"
    robot = pl.load(model, loops=[low, high])
    (loop,) = robot.loops
    assert (loop.name, loop.pair.name) == ("pin", "revolute")
    assert any("'pin'" in text and "'other end'" in text for text in robot.warnings)
    np.testing.assert_allclose(residual(robot, rhomb(0.4)), 0, atol=1e-15)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.neutral)
    for frame in (loop.frame_a, loop.frame_b):
        np.testing.assert_allclose(data.oMf[frame].rotation[:, 2], [0, 0, 1], atol=1e-15)
        assert data.oMf[frame].translation[2] == pytest.approx(-0.1)
    assert pl.diagnose(robot).mobility == 1


def test_an_oblique_axis_is_found_in_both_bodies() -> None:
    """Points that lie in one direction on the coupler and in another on the rocker."""
    model = bars()
    models = []
    for along in (0.0, 0.5):
        a, b = at(1, 0, 0), at(1, 0, 0)
        a.translation = a.translation + along * np.array([0.6, 0.0, 0.8])
        b.translation = b.translation + along * np.array([0.0, -1.0, 0.0])
        models.append(pin.RigidConstraintModel(POINT, model, 2, a, 3, b))
    (loop,) = pl.load(model, loops=models).loops
    robot = pl.load(model, loops=models)
    a, b = (robot.model.frames[index].placement.rotation for index in (loop.frame_a, loop.frame_b))
    np.testing.assert_allclose(a[:, 2], [0.6, 0, 0.8], atol=1e-15)
    np.testing.assert_allclose(b[:, 2], [0, -1, 0], atol=1e-15)


@pytest.mark.parametrize("heights", [(0.0, 0.0), (0.2, 0.2)])
def test_one_point_given_twice_is_no_hinge(heights: tuple[float, float]) -> None:
    model = bars()
    robot = pl.load(model, loops=[tied(model, POINT, height) for height in heights])
    assert [loop.pair.name for loop in robot.loops] == ["spherical", "spherical"]


def test_points_that_do_not_fit_are_no_hinge() -> None:
    model = bars()
    other = pin.RigidConstraintModel(POINT, model, 2, at(1, 0, 0.3), 3, at(1, 0, 0.4))
    robot = pl.load(model, loops=[tied(model, POINT), other])
    assert [loop.pair.name for loop in robot.loops] == ["spherical", "spherical"]


def test_points_of_different_bodies_are_no_hinge() -> None:
    model = bars()
    other = pin.RigidConstraintModel(POINT, model, 1, at(1, 0, 0.3), 3, at(1, 0, 0.3))
    robot = pl.load(model, loops=[tied(model, POINT), other])
    assert [loop.pair.name for loop in robot.loops] == ["spherical", "spherical"]


def test_a_contact_with_the_world_is_a_point_of_the_ground() -> None:
    model = bars()
    held = pin.RigidConstraintModel(POINT, model, 2, at(1, 0, 0), 0, at(1, 1, 0))
    robot = pl.load(model, loops=[held])
    assert (robot.loops[0].body_a, robot.loops[0].body_b) == ("coupler", "ground")
    np.testing.assert_allclose(residual(robot, rhomb(0.0)), 0, atol=1e-15)


def anchors(model: pin.Model) -> list[Any]:
    """What Pinocchio's readers give for connect and weld."""
    end = at(1, 0, 0)
    point = pin.PointAnchorConstraintModel(model, 2, end, 3, end)
    frame = pin.FrameAnchorConstraintModel(model, 1, at(0.5, 0, 0), 3, at(0.5, 0, 0))
    point.name, frame.name = "point", "frame"
    return [point, frame]


def test_anchors_are_points_and_frames() -> None:
    model = bars()
    robot = pl.load(model, loops=anchors(model))
    assert [(loop.name, loop.pair.name) for loop in robot.loops] == [
        ("point", "spherical"), ("frame", "fixed"),
    ]  # fmt: skip
    assert (robot.loops[1].body_a, robot.loops[1].body_b) == ("crank", "rocker")


def test_pinocchios_lists_and_variants_are_taken_too() -> None:
    model = bars()
    point, frame = anchors(model)
    points = pin.StdVec_PointAnchorConstraintModel()
    points.append(point)
    several = pin.StdVec_ConstraintModel()
    several.append(pin.ConstraintModel(frame))
    rigid = pin.StdVec_RigidConstraintModel()
    rigid.append(tied(model, POINT))
    for loops, kinds in (
        (points, ["spherical"]),
        (several, ["fixed"]),
        (rigid, ["spherical"]),
        ([points, several], ["spherical", "fixed"]),
    ):
        assert [loop.pair.name for loop in pl.load(model, loops=loops).loops] == kinds


def test_constraint_models_and_a_loops_file_go_together() -> None:
    model = bars()
    gear = {"couplings": [{"name": "gear", "joint": "rocker", "source": "crank", "ratio": 2}]}
    robot = pl.load(model, loops=[tied(model, POINT), gear])
    assert pl.Constraints(robot).labels[-1] == "gear" and len(robot.loops) == 1


def test_a_composite_joint_carries_its_whole_body() -> None:
    model = pin.Model()
    cross = pin.JointModelComposite(pin.JointModelRZ(), pin.SE3.Identity())
    cross.addJoint(pin.JointModelPX(), pin.SE3.Identity())
    arm = model.addJoint(0, cross, pin.SE3.Identity(), "arm")
    bar = model.addJoint(0, pin.JointModelRZ(), at(0, 1, 0), "bar")
    for index in (arm, bar):
        model.appendBodyToJoint(index, pin.Inertia.FromSphere(1, 0.1), pin.SE3.Identity())
    held = pin.RigidConstraintModel(POINT, model, arm, at(0, 0, 0), bar, at(1, 0, 0))
    robot = pl.load(model, loops=held)
    # The end of the bar is at (1, 1): at 45 degrees, sqrt(2) away.
    q = np.array([np.pi / 4, np.sqrt(2), 0.0])
    np.testing.assert_allclose(pl.Constraints(robot).residual(q), 0, atol=1e-15)


def test_a_compliance_is_left_out_and_said() -> None:
    model = bars()
    soft, _ = anchors(model)
    soft.setCompliance(np.full(3, 1e-4))
    robot = pl.load(model, loops=soft)
    assert any("'point' has a compliance" in text for text in robot.warnings)
    assert not any("compliance" in text for text in pl.load(model, loops=anchors(model)).warnings)


def test_a_frame_called_like_a_loop_is_left_out_and_said() -> None:
    model = bars()
    for name in ("tip", "other"):
        model.addFrame(pin.Frame(name, 2, at(1, 0, 0), pin.FrameType.OP_FRAME))
    held = tied(model, POINT)
    held.name = "tip"
    robot = pl.load(model, loops=held)
    assert "other" in robot.frames and "tip" not in robot.frames
    assert any("frame 'tip'" in text and "left out" in text for text in robot.warnings)


# -- mistakes -------------------------------------------------------------------------------


def _elsewhere(model: pin.Model) -> Any:
    """Made for a larger model: Pinocchio reads past the end of its arrays with it."""
    larger = bars()
    for number in range(4):
        larger.addJoint(2 + number, pin.JointModelRZ(), at(1, 0, 0), f"more {number}")
    return pin.RigidConstraintModel(POINT, larger, 7, at(1, 0, 0), 3, at(1, 0, 0))


def _itself(model: pin.Model) -> Any:
    return pin.RigidConstraintModel(POINT, model, 2, at(1, 0, 0), 2, at(1, 0, 0))


def _limits(model: pin.Model) -> Any:
    return pin.JointLimitConstraintModel(model, [1, 2])


def _placed(model: pin.Model) -> Any:
    wanted = tied(model, FRAME)
    wanted.desired_contact_placement = at(0, 0, 1)
    return wanted


def _driven(model: pin.Model) -> Any:
    wanted = tied(model, POINT)
    wanted.desired_contact_velocity = pin.Motion(np.ones(3), np.zeros(3))
    return wanted


def _offset(model: pin.Model) -> Any:
    point, _ = anchors(model)
    point.desired_constraint_offset = np.array([0.0, 0.0, 1.0])
    return point


def _named_like_a_joint(model: pin.Model) -> Any:
    named = tied(model, POINT)
    named.name = "crank"
    return named


def _twice(model: pin.Model) -> Any:
    first, second = tied(model, FRAME), tied(model, FRAME)
    first.name = second.name = "same"
    return [first, second]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_elsewhere, "'constraint_1' is on joint 7, but the model has the joints 0 to 3"),
        (_itself, "joins joint 2 ('coupler') with itself"),
        (_limits, "is a JointLimitConstraintModel, which closes no loop"),
        (_placed, "desired placement"),
        (_driven, "desired placement, velocity or acceleration"),
        (_offset, "'point' has a desired placement"),
        (_named_like_a_joint, "'crank' is called like another joint"),
        (_twice, "'same' is called like another joint or constraint model"),
    ],
)
def test_what_is_no_loop_of_the_model_is_refused(
    make: Callable[[pin.Model], Any], said: str
) -> None:
    model = bars()
    with pytest.raises(pl.LoadError) as caught:
        pl.load(model, loops=make(model))
    assert said in str(caught.value)


TREE = """<robot name="r"><link name="base"/><link name="bar"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="bar"/></joint></robot>"""


def test_numbers_of_joints_need_a_pin_model() -> None:
    model = bars()
    with pytest.raises(pl.BadValue, match="load that model with them, not a str"):
        pl.load(TREE, loops=tied(model, POINT))


def test_a_list_that_holds_something_else_is_refused() -> None:
    model = bars()
    with pytest.raises(pl.LoadError, match="loops are a mapping"):
        pl.load(model, loops=[tied(model, POINT), 3])
