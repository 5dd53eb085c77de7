"""Robots written and read back are the same mechanisms; what a format lacks is said by name."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml

import pinloop as pl
from pinloop.model.description import Coupling, Drive, Geometry, Joint, Shape
from pinloop.model.mechanism import build
from pinloop.model.pairs import PAIR_NAMES, make_pair

from ..same_robots import check_same, numbers_of, random_robot
from ..states import SHIPPED, robot

LOOP_PAIRS = tuple(name for name in PAIR_NAMES if name not in ("rod", "helical", "free"))


def again(machine: pl.Mechanism, path: Path) -> pl.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.PinloopWarning)
        return pl.load(machine.save(path), kinematics_only=True)


@pytest.mark.parametrize("end", ["urdf", "xml", "sdf"])
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots(name: str, end: str, tmp_path: Path) -> None:
    machine = robot(name)
    other = again(machine, tmp_path / f"{name}.{end}")
    check_same(machine, other)
    check_same(machine, other, q=pl.assemble(machine))
    if end != "sdf":  # which has no motors
        assert other.actuated == machine.actuated
    assert len(other.geometry) == len(machine.geometry)


@pytest.mark.parametrize("seed", range(8))
def test_random_robots_as_urdf(seed: int, tmp_path: Path) -> None:
    machine = random_robot(seed, LOOP_PAIRS, {})
    other = again(machine, tmp_path / "robot.urdf")
    check_same(machine, other)
    assert numbers_of(other) == numbers_of(machine)
    assert [loop.pair for loop in other.loops] == [loop.pair for loop in machine.loops]
    document = yaml.safe_load((tmp_path / "robot.loops.yaml").read_text())
    assert "loops" not in document
    root = ElementTree.parse(tmp_path / "robot.urdf").getroot()
    written = [(e.get("name"), e.get("type")) for e in root.findall("loop_joint")]
    assert written == [(loop.name, loop.pair.name) for loop in machine.loops]


@pytest.mark.parametrize("seed", range(8))
def test_random_robots_as_mjcf(seed: int, tmp_path: Path) -> None:
    machine = random_robot(seed, ("revolute", "spherical", "fixed"), {"helical": "revolute"})
    other = again(machine, tmp_path / "robot.xml")
    check_same(machine, other)
    without = ("velocity",)
    assert numbers_of(other, without) == numbers_of(machine, without)


SDF_PAIRS = ("revolute", "prismatic", "helical", "spherical", "universal", "fixed")


@pytest.mark.parametrize("seed", range(8))
def test_random_robots_as_sdf(seed: int, tmp_path: Path) -> None:
    others = {name: "revolute" for name in PAIR_NAMES if name not in (*SDF_PAIRS, "free")}
    machine = random_robot(seed, SDF_PAIRS, others, without=("armature",))
    other = again(machine, tmp_path / "robot.sdf")
    check_same(machine, other, q=machine.neutral)
    if all(loop.body_b != "ground" for loop in machine.loops):
        check_same(machine, other)
    assert numbers_of(other) == numbers_of(machine)
    for loop, same in zip(other.loops, machine.loops, strict=True):
        assert (loop.name, loop.pair.name) == (same.name, same.pair.name)
        assert loop.pair.advance == pytest.approx(same.pair.advance, rel=1e-14)


def test_what_sdf_leaves_out_and_refuses(tmp_path: Path) -> None:
    machine = robot("fourbar")
    with pytest.warns(pl.PinloopWarning, match="left out are motors of 'joint_1'"):
        machine.save(tmp_path / "robot.sdf")
    *rest, close = machine.description.joints
    shifted = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1])) * close.frame_parent
    changed = {
        "is open at zero coordinates, which SDF cannot": replace(close, frame_parent=shifted),
        "is closed by a planar pair, which SDF": replace(close, pair=make_pair("planar")),
    }
    for problem, joint in changed.items():
        other = build(replace(machine.description, joints=(*rest, joint)))
        with pytest.raises(pl.BadValue, match=f"loop 'joint_4' {problem}"):
            other.save(tmp_path / "robot.sdf")
    gear = Coupling.linear("gear", "joint_2", "joint_1", -2.0, 0.3)
    coupled = build(replace(machine.description, couplings=(gear,)))
    check_same(coupled, again(coupled, tmp_path / "robot.sdf"))


def test_couplings_as_mjcf(tmp_path: Path) -> None:
    """Gears with offsets, cams, joints that are held, and sums over several joints."""
    arm = robot("planar_3r")
    a, b, c = arm.joints
    couplings = (
        Coupling("gear", (a, b), ((0.3, -2.0), (0.1, 0.5))),
        Coupling("cam", (b, c), ((0.3, 0.4, 0.0, 0.7, -0.2), (0.1, 2.0))),
        Coupling("held", (c,), ((0.4, -2.0),)),
        Coupling("sum", (a, b, c), ((0.3, -2.0), (0.1, 0.5), (0.0, 1.5))),
    )
    for coupling in couplings:
        machine = build(replace(arm.description, couplings=(coupling,)), kinematics_only=True)
        check_same(machine, again(machine, tmp_path / "robot.xml"))
    curved = Coupling("curved", (a, b), ((0.0, 1.0, 1.0), (0.0, 1.0, 1.0)))
    machine = build(replace(arm.description, couplings=(curved,)), kinematics_only=True)
    with pytest.raises(pl.BadValue, match=r"coupling 'curved' is no polynomial .* MJCF cannot say"):
        machine.save(tmp_path / "robot.xml")


def test_what_mjcf_leaves_out(tmp_path: Path) -> None:
    machine = robot("planar_3r")
    one_sided: dict[str, Any] = {"lower": (-np.inf,), "upper": (1.0,)}
    joints = tuple(
        replace(joint, **one_sided) if joint.name == "joint_1" else joint
        for joint in machine.description.joints
    )
    shape = Shape("mesh", (1.0, 1.0, 1.0), tmp_path / "part.dae")
    geometry = (Geometry("part", "bar_1", "visual", shape, pin.SE3.Identity()),)
    drives = (Drive(machine.joints[0], 3.0, 0.5),)
    changed = replace(machine.description, joints=joints, geometry=geometry, drives=drives)
    with pytest.warns(pl.PinloopWarning) as caught:
        build(changed).save(tmp_path / "robot.xml")
    (sentence,) = [str(warning.message) for warning in caught]
    for part in (
        "limits of speed of 'joint_1', 'joint_2', 'joint_3'", "on one side only of 'joint_1'",
        "meshes other than STL and OBJ of 'part'", "rotors other than by the inertia",
    ):  # fmt: skip
        assert part in sentence
    assert caught[0].filename == __file__
    with pytest.raises(pl.BadValue, match="loop 'l' is closed by a planar pair, which MJCF"):
        ends = ("bar_1", "bar_3", pin.SE3.Identity(), pin.SE3.Identity())
        loop = Joint("l", make_pair("planar"), *ends, cut=True)
        build(replace(changed, joints=(*joints, loop))).save(tmp_path / "robot.xml")


def test_files_of_one_name_beside_each_other(tmp_path: Path) -> None:
    """The loops file belongs to the URDF: beside the MJCF it would say everything twice."""
    machine = robot("fourbar")
    for end in ("urdf", "xml"):
        again(machine, tmp_path / f"robot.{end}")
    for end in ("urdf", "xml"):
        assert len(pl.load(tmp_path / f"robot.{end}").loops) == 1
    other = tmp_path / "robot.loops.yaml"
    assert other.read_text().splitlines()[2] == "beside: .urdf"


def test_meshes_are_named_as_seen_from_the_file(tmp_path: Path) -> None:
    mesh = tmp_path / "meshes" / "part.stl"
    mesh.parent.mkdir()
    mesh.write_bytes(b"\0" * 84)
    shape = Shape("mesh", (1.0, 1.0, 2.0), mesh.resolve())
    drawn = Geometry("part", "bar_1", "visual", shape, pin.SE3.Identity())
    machine = build(replace(robot("planar_3r").description, geometry=(drawn,)))
    for end in ("urdf", "xml"):
        (tmp_path / end).mkdir()
        other = again(machine, tmp_path / end / f"robot.{end}")
        assert "../meshes/part.stl" in (tmp_path / end / f"robot.{end}").read_text()
        assert [x.shape for x in other.geometry] == [shape]
