"""What is handed over to Pinocchio is the same robot there, and what cannot be is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair
from pinloop.model.reduction import LoopReduction

from .. import linkages as ll
from .. import mechanisms as m
from .. import screw_tables as tables
from .. import states
from ..screw_tables import Array

EXPRESSED = (
    "four-bar", "spherical-four-bar", "rssr", "sarrus", "hoberman-4", "schoenflies-loop", "cardan",
    "floating-four-bar", "bennett", "every-pair", "delta", "stewart", "palletizer", "prrr3",
    "bricard", "six_axis_arm",
)  # fmt: skip


def pinocchio_acceleration(out: pl.interop.PinocchioModels, q: Array, v: Array) -> Array:
    """Acceleration that Pinocchio's proximal solver finds without forces of drives."""
    data = out.model.createData()
    models = pin.StdVec_RigidConstraintModel()
    datas = pin.StdVec_RigidConstraintData()
    for model in out.constraint_models:
        models.append(model)
        datas.append(model.createData())
    pin.initConstraintDynamics(out.model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-8, 200)
    tau = np.zeros(out.model.nv)
    return np.array(pin.constraintDynamics(out.model, data, q, v, tau, models, datas, settings))


def augmented(robot: pl.Mechanism, q: Array, v: Array) -> Array:
    equations = pl.EquationsOfMotion(robot, formulation=pl.Augmented())
    return np.asarray(equations.acceleration(0.0, q, v))


def welded() -> pl.Mechanism:
    """Eight turns in space whose last bar is welded to the ground."""
    rng = np.random.default_rng(5)
    kinds = [("revolute", rng.uniform(-1, 1, 3), rng.normal(size=3), None) for _ in range(8)]
    return tables.build(ll.chain("welded", *kinds, ("fixed", None, None, None)))


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("name", EXPRESSED)
def test_pinocchio_accelerates_the_same_robot(name: str, regular: bool) -> None:
    robot = states.regularized(name) if regular else states.robot(name)
    q, v = states.moving(robot, 3)
    out = pl.to_pinocchio(robot)
    assert out.cannot == ()
    states.close(pinocchio_acceleration(out, q, v), augmented(robot, q, v), 1e-10)


def test_a_weld_is_a_frame() -> None:
    robot = welded()
    out = pl.to_pinocchio(robot)
    (model,) = out.constraint_models
    assert (model.type, model.name) == (pin.ContactType.CONTACT_6D, robot.loops[0].name)
    assert out.cannot == out.remarks == ()
    q, v = states.moving(robot, 1)
    expected = augmented(robot, q, v)
    assert np.abs(expected).max() > 0.1
    states.close(pinocchio_acceleration(out, q, v), expected, 1e-10)


@pytest.mark.parametrize("name", [name for name in EXPRESSED if name in states.LOOPED])
def test_there_and_back(name: str) -> None:
    """Same coordinates, rows and accelerations, open loops included."""
    robot = states.robot(name)
    out = pl.to_pinocchio(robot)
    back = pl.load(out.model, loops=out.constraint_models)
    assert (back.nq, back.nv) == (robot.nq, robot.nv)
    ours, theirs = pl.Constraints(robot), pl.Constraints(back)
    assert theirs.labels == ours.labels
    rng = np.random.default_rng(7)
    q, v = states.moving(robot, 3)
    states.close(augmented(back, q, v), augmented(robot, q, v), 1e-10)
    opened = robot.integrate(q, 0.2 * rng.normal(size=robot.nv))
    np.testing.assert_allclose(theirs.residual(opened), ours.residual(opened), atol=1e-12)
    np.testing.assert_allclose(theirs.jacobian(opened), ours.jacobian(opened), atol=1e-12)


@pytest.mark.parametrize("space", states.SPACES)
@pytest.mark.parametrize("name", ["four-bar", "rssr"])
def test_absolute_coordinates(name: str, space: states.Space) -> None:
    """Every joint is a loop there."""
    robot = states.robot(name).absolute(space)
    out = pl.to_pinocchio(robot)
    q, v = states.moving(robot, 2)
    expected = augmented(robot, q, v)
    states.close(pinocchio_acceleration(out, q, v), expected, 1e-10)
    back = pl.load(out.model, loops=out.constraint_models)
    assert pl.Constraints(back).labels == pl.Constraints(robot).labels
    states.close(augmented(back, q, v), expected, 1e-10)


def test_a_weld_there_and_back() -> None:
    robot = welded()
    out = pl.to_pinocchio(robot)
    back = pl.load(out.model, loops=list(out.constraint_models))
    q = robot.integrate(robot.neutral, np.full(robot.nv, 0.1))
    ours, theirs = pl.Constraints(robot), pl.Constraints(back)
    assert theirs.labels == ours.labels
    np.testing.assert_allclose(theirs.residual(q), ours.residual(q), atol=1e-12)


# -- fewer rows -----------------------------------------------------------------------------


def test_a_planar_hinge_is_one_point_after_regularization() -> None:
    full = pl.to_pinocchio(states.robot("four-bar"))
    assert [model.name for model in full.constraint_models] == ["close", "close/2"]
    assert "6 rows, one of them redundant" in full.remarks[0]
    less = pl.to_pinocchio(states.regularized("four-bar"))
    (model,) = less.constraint_models
    assert (model.name, model.type) == ("close", pin.ContactType.CONTACT_3D)
    assert "2 rows" in less.remarks[0]


def test_a_hinge_through_the_centre_is_held_away_from_it() -> None:
    """All axes of a spherical four-bar meet at the origin, which stays where it is anyway."""
    robot = states.regularized("spherical-four-bar")
    (model,) = pl.to_pinocchio(robot).constraint_models
    q = states.assembled(robot, 3)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    held = [
        data.oMi[joint].act(placement.translation)
        for joint, placement in (
            (model.joint1_id, model.joint1_placement), (model.joint2_id, model.joint2_placement),
        )
    ]  # fmt: skip
    np.testing.assert_allclose(held[0], held[1], atol=1e-9)
    axis = robot.placement(q, f"{model.name}/B")
    assert np.linalg.norm(np.cross(held[0], axis.rotation[:, 2])) < 1e-9
    assert np.linalg.norm(held[0]) > 0.1


def test_a_loop_without_rows_needs_nothing() -> None:
    out = pl.to_pinocchio(states.regularized("door"))
    assert (out.constraint_models, out.cannot) == ((), ())
    assert "no rows are left" in out.remarks[0]


def test_rows_decide_whether_a_point_is_enough() -> None:
    """Rows chosen by hand on a body that is free otherwise."""
    hinge, cross = floating_with("revolute"), floating_with("universal")
    # v_z + 0.5 w_x is the motion along z of a point beside the axis, which the hinge does not hold.
    beside = np.array([[0, 0, 1, 0.5, 0]]) / np.hypot(1, 0.5)
    # v_x + 0.5 w_y and v_y - 0.5 w_x: a point on the axis, 0.5 m above B.
    above = np.array([[1, 0, 0, 0, 0.5], [0, 1, 0, -0.5, 0]]) / np.hypot(1, 0.5)
    assert len(pl.to_pinocchio(keeping(hinge, beside)).constraint_models) == 2
    (model,) = pl.to_pinocchio(keeping(hinge, above)).constraint_models
    frame = hinge.model.frames[hinge.loops[0].frame_b].placement
    np.testing.assert_allclose(
        frame.actInv(model.joint2_placement.translation), [0, 0, 0.5], atol=1e-12
    )
    (model,) = pl.to_pinocchio(keeping(cross, np.eye(4)[:3])).constraint_models
    assert model.joint2_placement.isApprox(cross.model.frames[cross.loops[0].frame_b].placement)


def keeping(robot: pl.Mechanism, selection: Array) -> pl.Mechanism:
    """The robot as if regularization had kept these combinations of its loop's rows."""
    pair = robot.loops[0].pair
    kept = LoopReduction("held", pair.name, GROUND, "", "", "", "", pair.rows, selection)
    report = pl.Regularization((kept,), (), pair.rows, len(selection), robot.nv - len(selection))
    return replace(robot, regularization=report)


# -- what cannot be expressed ---------------------------------------------------------------


def floating_with(pair: str) -> pl.Mechanism:
    """A free body that one loop joint of a kind holds to the ground, in general position."""
    values: dict[str, Any] = {"pitch": 0.1} if pair == "helical" else {}
    kind = make_pair(pair, **values, **({"length": 1.0} if pair == "rod" else {}))
    rng = np.random.default_rng(2)
    a, b = (pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(2))
    unit = pin.SE3.Identity()
    body = Body("body", 1.0, constant(np.zeros(3)), constant(np.eye(3)))
    joints = (
        Joint("root", make_pair("free"), GROUND, "body", unit, unit.copy(), cut=False),
        Joint("held", kind, GROUND, "body", a, b, cut=True),
    )
    return build(Description("held", (body,), joints))


@pytest.mark.parametrize("pair", sorted(set(pl.model.PAIR_NAMES) - {"free"}))
def test_every_pair_is_the_same_or_named(pair: str) -> None:
    """The rows of the constraint models and those of the pair allow the same velocities."""
    robot = floating_with(pair)
    out = pl.to_pinocchio(robot)
    if pair not in ("spherical", "revolute", "fixed"):
        (said,) = out.cannot
        assert "'held'" in said and pair in said and out.constraint_models == ()
        return
    assert out.cannot == ()
    loop = robot.loops[0]
    a, b = (robot.model.frames[index].placement for index in (loop.frame_a, loop.frame_b))
    turn = pin.SE3(pin.exp3(np.array([0.0, 0.0, 0.7])), np.zeros(3))
    q = pin.SE3ToXYZQUAT(a * turn * b.inverse()) if pair == "revolute" else (
        pin.SE3ToXYZQUAT(a * b.inverse())
    )  # fmt: skip
    assert np.abs(pl.Constraints(robot).residual(q)).max() < 1e-12
    data = out.model.createData()
    pin.computeJointJacobians(out.model, data, q)
    blocks = []
    for model in out.constraint_models:
        known = model.createData()
        model.calc(out.model, data, known)  # the Jacobian is wrong without it
        blocks.append(model.jacobian(out.model, data, known))
    rows = np.vstack(blocks)
    ours = pl.Constraints(robot).jacobian(q)
    assert states.rank(rows) == states.rank(ours) == len(ours)
    assert states.rank(np.vstack([rows, ours])) == len(ours)


def test_couplings_are_named() -> None:
    out = pl.to_pinocchio(states.robot("gear-pair"))
    (said,) = out.cannot
    assert all(word in said for word in ("'mesh'", "'wheel'", "coordinates"))


def test_what_is_taken_is_a_robot_and_stays_as_it_is() -> None:
    with pytest.raises(pl.BadValue, match="not a Model"):
        pl.to_pinocchio(pin.Model())
    robot = tables.build(m.four_bar())
    before = robot.model.inertias[1].mass
    out = pl.to_pinocchio(robot)
    out.model.inertias[1].mass = 100.0
    out.constraint_models[0].joint1_placement = pin.SE3.Random()
    assert robot.model.inertias[1].mass == before
    again = pl.to_pinocchio(robot).constraint_models[0].joint1_placement
    frame = robot.model.frames[robot.loops[0].frame_a]
    assert again.isApprox(frame.placement)


# -- shapes ---------------------------------------------------------------------------------


def test_shapes_stand_where_pinocchio_puts_them() -> None:
    file = states.URDF / "six_axis_arm.urdf"
    robot = states.robot("six_axis_arm")
    out = pl.to_pinocchio(robot)
    model = pin.buildModelFromUrdf(str(file))
    expected = pin.buildGeomFromUrdf(model, str(file), pin.VISUAL)
    assert out.collision_model is None and out.visual_model is not None
    q = states.assembled(robot, 1)
    placed = (placements(out.model, out.visual_model, q), placements(model, expected, q))
    assert len(placed[0]) == len(expected.geometryObjects)
    np.testing.assert_allclose(placed[0], placed[1], atol=1e-12)
    for ours, theirs in zip(
        out.visual_model.geometryObjects, expected.geometryObjects, strict=True
    ):
        assert type(ours.geometry) is type(theirs.geometry)
        assert ours.geometry == theirs.geometry
        np.testing.assert_allclose(ours.meshColor, theirs.meshColor, atol=1e-7)


def placements(model: pin.Model, geometry: pin.GeometryModel, q: Array) -> Sequence[Array]:
    data, found = model.createData(), pin.GeometryData(geometry)
    pin.updateGeometryPlacements(model, data, geometry, found, q)
    return [placement.homogeneous for placement in found.oMg]


MESHES = """<robot name="r"><link name="base"/><link name="bar">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><link name="tool"><collision name="good"><origin xyz="1 2 3"/>
<geometry><mesh filename="good.obj" scale="2 3 4"/></geometry></collision>
<collision name="bad"><geometry><mesh filename="bad.stl"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="base"/><child link="bar"/></joint>
<joint name="mount" type="fixed"><origin xyz="10 0 0"/><parent link="bar"/><child link="tool"/>
</joint></robot>"""


def test_a_mesh_is_read_and_one_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(MESHES)
    (tmp_path / "bad.stl").write_text("no mesh")
    (tmp_path / "good.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n")
    out = pl.to_pinocchio(pl.load(tmp_path / "r.urdf"))
    assert out.collision_model is not None and out.visual_model is None
    (mesh,) = out.collision_model.geometryObjects
    assert (mesh.name, mesh.meshPath) == ("tool_0", str(tmp_path / "good.obj"))
    assert isinstance(mesh.geometry, coal.BVHModelBase)
    corners = np.array(mesh.geometry.vertices())
    np.testing.assert_allclose(corners.max(axis=0), [2, 3, 4])
    np.testing.assert_array_equal(mesh.placement.translation, [11, 2, 3])
    (said,) = out.cannot
    assert "'tool_1'" in said and str(tmp_path / "bad.stl") in said and "\n" not in said
