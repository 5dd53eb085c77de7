"""Robots as pinloop writes them, read by other programs: masses, weights and loops agree."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint
from pinloop.model.mechanism import build
from pinloop.model.pairs import align_z, make_pair

from ..same_robots import check_same, random_robot
from ..screw_tables import Array
from ..states import SHIPPED, robot


def machines() -> list[pl.Mechanism]:
    pairs = ("revolute", "spherical", "fixed")
    return [
        *map(robot, SHIPPED),
        *(random_robot(seed, pairs, {"helical": "revolute"}) for seed in range(6)),
    ]


def write(machine: pl.Mechanism, path: Path) -> pl.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.PinloopWarning)
        return pl.load(machine.save(path), kinematics_only=True)


def span(J: Array) -> Array:
    """Projector on the row space."""
    _, values, rows = np.linalg.svd(J, full_matrices=False)
    rows = rows[values > 1e-8 * values[0]]
    return np.asarray(rows.T @ rows)


def take_pose(machine: pl.Mechanism, q: Array, model: Any, data: Any) -> Array:
    """Give MuJoCo the pose; returns what takes our velocities to MuJoCo's."""
    turn = np.zeros((model.nv, machine.nv))
    for name in machine.joints:
        at, theirs = machine.coordinates(name), model.joint(name)
        place, dof = int(theirs.qposadr[0]), int(theirs.dofadr[0])
        values, block = q[at.q], np.eye(at.nv)
        if at.nq == 7:
            body = model.body(int(theirs.bodyid[0]))
            start = pin.SE3(pin.Quaternion(*body.quat).matrix(), np.array(body.pos))
            T = start * pin.XYZQUATToSE3(values)
            values = pin.SE3ToXYZQUAT(T)
            block[:3, :3] = T.rotation  # linear velocities of free bodies are the world's
        if at.nq in (4, 7):
            values = np.concatenate([values[:-4], values[-1:], values[-4:-1]])
        data.qpos[place : place + at.nq] = values
        turn[dof : dof + at.nv, at.v] = block
    return turn


def test_mujoco_computes_the_same(tmp_path: Path) -> None:
    mujoco: Any = pytest.importorskip("mujoco")
    for machine in machines():
        other = write(machine, tmp_path / "robot.xml")
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
        model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
        model.jnt_limited[:] = 0
        model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        data = mujoco.MjData(model)
        step = np.random.default_rng(3).uniform(-0.5, 0.5, other.nv)
        q = other.integrate(other.neutral, step)
        X = take_pose(other, q, model, data)
        mujoco.mj_forward(model, data)
        mass = np.zeros((model.nv, model.nv))
        for row, unit in zip(mass, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, row, unit)
        ours = pl.EquationsOfMotion(other).mass(q)
        np.testing.assert_allclose(X.T @ mass @ X, ours, rtol=0, atol=1e-10 * np.abs(ours).max())
        weight = pin.computeGeneralizedGravity(other.model, other.model.createData(), q)
        np.testing.assert_allclose(X.T @ data.qfrc_bias, weight, rtol=0, atol=1e-8)
        for loop in machine.loops:
            ends = [other.placement(q, f"{loop.name}/{end}") for end in "AB"]
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_EQUALITY, loop.name)
            gap = data.efc_pos[: data.ne][data.efc_id[: data.ne] == number][:3]
            apart = np.linalg.norm(ends[0].translation - ends[1].translation)
            np.testing.assert_allclose(np.linalg.norm(gap), apart, rtol=0, atol=1e-10)
        if not machine.loops:
            continue
        q = pl.assemble(other)
        X = take_pose(other, q, model, data)
        mujoco.mj_forward(model, data)
        assert np.abs(data.efc_pos[: data.ne]).max() < 1e-8
        theirs = data.efc_J.reshape(-1, model.nv)[: data.ne] @ X
        rows = pl.Constraints(other).jacobian(q)
        np.testing.assert_allclose(span(theirs), span(rows), rtol=0, atol=1e-6)


def test_newton_reads_the_same_robots(tmp_path: Path) -> None:
    """A robot made again of what Newton's importer holds: bodies, tree joints and loops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        newton: Any = pytest.importorskip("newton")
        pytest.importorskip("newton_usd_schemas")
        for name in ("palletizer", "delta", "fivebar", "spherical_threebar"):
            machine = robot(name)
            builder = newton.ModelBuilder()
            builder.add_usd(str(machine.save(tmp_path / f"{name}.usda")))
            other = built_of(builder, machine)
            assert {loop.name for loop in other.loops} == {loop.name for loop in machine.loops}
            check_same(machine, other, tol=1e-5)


def built_of(builder: Any, machine: pl.Mechanism) -> pl.Mechanism:
    """The robot that a builder of Newton holds, but for limits."""
    kinds = {"FIXED": "fixed", "REVOLUTE": "revolute", "BALL": "spherical"}
    names = [label.rpartition("/")[2] for label in builder.body_label]
    bodies = []
    for name, mass, com, moments in zip(
        names, builder.body_mass, builder.body_com, builder.body_inertia, strict=True
    ):
        inertia = np.array(moments, dtype=float).reshape(3, 3)
        np.testing.assert_allclose(inertia, inertia.T, rtol=0, atol=1e-6)
        bodies.append(Body(name, float(mass), np.array(com), 0.5 * (inertia + inertia.T)))
    joints = []
    for k, label in enumerate(builder.joint_label):
        pair, axis = make_pair(kinds[builder.joint_type[k].name]), np.eye(3)[2]
        if pair.dof == 1:
            axis = np.array(builder.joint_axis[builder.joint_qd_start[k]])
        turn = pin.SE3(align_z(axis), np.zeros(3))
        given = builder.joint_X_p[k], builder.joint_X_c[k]
        at_parent, at_child = (pin.XYZQUATToSE3(np.array(x, dtype=float)) * turn for x in given)
        numbers = builder.joint_parent[k], builder.joint_child[k]
        parent, child = (GROUND if number < 0 else names[number] for number in numbers)
        cut = builder.joint_articulation[k] < 0
        joints.append(
            Joint(label.rpartition("/")[2], pair, parent, child, at_parent, at_child, cut)
        )
    gravity = machine.gravity
    return build(Description("newton", tuple(bodies), tuple(joints), gravity=gravity))
