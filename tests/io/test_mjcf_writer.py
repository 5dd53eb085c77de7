"""Trees as MJCF: read back by pinloop, and by MuJoCo, which computes the same."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.io.writers.mjcf import write_mjcf
from pinloop.io.writers.outline import Outline
from pinloop.model.description import Coupling
from pinloop.model.mechanism import build as build_robot

from ..screw_tables import build
from ..states import close, moving, robot

EVERY: dict[str, Any] = {
    "name": "every",
    "gravity": [0.5, 0, -9.81],
    "bodies": [
        {"name": name, "mass": 0.5 + k, "com": [0.1 * k, 0.2, 0.1],
         "inertia": [[0.03, 0.002, 0], [0.002, 0.04, 0.003], [0, 0.003, 0.05]]}
        for k, name in enumerate(("float", "turn", "slide", "ball", "weld"))
    ],
    "joints": [
        {"name": "f", "pair": "free", "parent": "ground", "child": "float"},
        {"name": "t", "pair": "revolute", "parent": "float", "child": "turn", "point": [0.2, 0, 0],
         "axis": [1, 2, 0], "limits": {"lower": -1, "upper": 2, "effort": 5}},
        {"name": "s", "pair": "prismatic", "parent": "turn", "child": "slide", "axis": [0, 1, 3]},
        {"name": "b", "pair": "spherical", "parent": "slide", "child": "ball", "point": [0, 1, 0]},
        {"name": "w", "pair": "fixed", "parent": "slide", "child": "weld"},
    ],
    "actuated": ["t"],
}  # fmt: skip


def mjcf(machine: pl.Mechanism) -> str:
    return write_mjcf(Outline(machine, "MJCF"))


def test_mujoco_has_the_same_mass_and_forces(tmp_path: Path) -> None:
    mujoco: Any = pytest.importorskip("mujoco")
    for machine in (robot("six_axis_arm"), robot("planar_3r"), build(EVERY)):
        path = tmp_path / f"{machine.name}.xml"
        path.write_text(mjcf(machine))
        model = mujoco.MjModel.from_xml_path(str(path))
        for joint in machine.description.joints:
            if joint.damping:
                at = model.joint(joint.name)
                assert (at.damping, at.frictionloss) == (joint.damping, joint.friction)
        model.dof_damping[:] = model.dof_frictionloss[:] = model.jnt_limited[:] = 0
        data = mujoco.MjData(model)
        again = pl.load(path)
        q, v = moving(again, 3)
        equations = pl.EquationsOfMotion(again)
        assert again.joints == machine.joints and again.actuated == machine.actuated
        assert model.ngeom == len(machine.geometry)
        for name in machine.joints:
            at, number = machine.coordinates(name), model.joint(name).id
            if at.nq == 1:
                data.qpos[model.jnt_qposadr[number]] = q[at.q.start]
                data.qvel[model.jnt_dofadr[number]] = v[at.v.start]
        if all(machine.coordinates(name).nq == 1 for name in machine.joints):
            mujoco.mj_forward(model, data)
            close(equations.acceleration(0.0, q, v), data.qacc, 1e-7)
        ours = pl.EquationsOfMotion(machine)
        close(ours.mass(q), equations.mass(q), 1e-12)
        close(ours.acceleration(0.0, q, v), equations.acceleration(0.0, q, v), 1e-9)


def test_joints_that_follow_with_an_offset(tmp_path: Path) -> None:
    """As a mimic of URDF, which Pinocchio reads, and as a polynomial of MJCF."""
    arm = robot("planar_3r")
    mimic = Coupling.linear("joint_2:mimic", "joint_2", "joint_1", -2.0, 0.3)
    following = build_robot(replace(arm.description, couplings=(mimic,)), kinematics_only=True)
    (tmp_path / "arm.xml").write_text(mjcf(following))
    urdf = following.save(tmp_path / "mimic.urdf")
    assert "\ncouplings:" not in (tmp_path / "mimic.loops.yaml").read_text()
    for machine in (following, pl.load(tmp_path / "arm.xml"), pl.load(urdf)):
        q = machine.named(pl.assemble(machine, {"joint_1": 0.2}))
        close(q["joint_2"], -0.1, 1e-9)
    element = ElementTree.parse(urdf).find("joint[@name='joint_2']/mimic")
    assert element is not None
    words = {"joint": "joint_1", "multiplier": "-2.0", "offset": "0.3"}
    assert element.attrib == words


def test_drawings_are_turned_as_they_are(tmp_path: Path) -> None:
    """`EVERY` draws nothing, and poses of joints and bodies are left out where they are zero."""
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.5, 0.7), np.array([0.1, 0.2, 0.3]))
    description = robot("planar_3r").description
    geometry = tuple(replace(each, placement=turned) for each in description.geometry)
    (tmp_path / "arm.xml").write_text(mjcf(build_robot(replace(description, geometry=geometry))))
    again = pl.load(tmp_path / "arm.xml").description.geometry
    assert len(again) == len(geometry) > 0
    for each in again:
        close(each.placement.homogeneous, turned.homogeneous, 1e-12)


def test_what_mjcf_does_not_have() -> None:
    helix = build(
        {"bodies": [{"name": "nut", "mass": 1, "com": [0, 0, 0]}],
         "joints": [{"name": "thread", "pair": "helical", "pitch": 0.1, "parent": "ground",
                     "child": "nut", "point": [0, 0, 0], "axis": [0, 0, 1]}]}
    )  # fmt: skip
    with pytest.raises(pl.BadValue, match="joint 'thread' is a helical pair, which MJCF cannot"):
        mjcf(helix)
