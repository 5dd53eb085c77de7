"""USD stages: written and read back in single precision, and a stage by hand in other units."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.io.usd import free_axes
from pinloop.model.description import Coupling
from pinloop.model.mechanism import build
from pinloop.model.pairs import PAIR_NAMES, make_pair

from ..same_robots import check_same, numbers_of, random_robot
from ..states import robot

pytest.importorskip("pxr")

SINGLE = 1e-5
"""Single precision of numbers about 1, a few of which are multiplied."""


def again(machine: pl.Mechanism, path: Path) -> pl.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.PinloopWarning)
        return pl.load(machine.save(path), kinematics_only=True, tolerance=0.0)


@pytest.mark.parametrize("name", ["palletizer", "delta", "stewart", "spherical_threebar"])
@pytest.mark.parametrize("end", ["usda", "usdc"])
def test_shipped_robots(name: str, end: str, tmp_path: Path) -> None:
    machine = robot(name)
    other = again(machine, tmp_path / f"robot.{end}")
    check_same(machine, other, tol=SINGLE)
    assert {*other.actuated} == {*machine.actuated} and other.warnings == ()
    drawn, same = ({x.name: x for x in each.geometry} for each in (machine, other))
    for geometry, twin in ((drawn[x], same[x]) for x in drawn):
        assert (geometry.body, geometry.shape.kind) == (twin.body, twin.shape.kind)
        np.testing.assert_allclose(geometry.shape.size, twin.shape.size, rtol=1e-6)
        shift = geometry.placement.homogeneous - twin.placement.homogeneous
        assert np.abs(shift).max() < SINGLE


@pytest.mark.parametrize("seed", range(8))
def test_random_robots(seed: int, tmp_path: Path) -> None:
    loops = tuple(name for name in PAIR_NAMES if name in free_axes.FREE_AXES and name != "free")
    machine = random_robot(seed, loops, {"helical": "revolute"})
    other = again(machine, tmp_path / "robot.usda")
    check_same(machine, other, tol=SINGLE)
    here, there = numbers_of(machine), numbers_of(other)
    assert here.keys() == there.keys()
    driven = {name for name in here if name in machine.actuated}
    for name, numbers in here.items():
        kept = {k: v for k, v in numbers.items() if name in driven or k != "effort"}
        same = {k: there[name][k] for k in kept}
        assert same == pytest.approx(kept, rel=1e-6), name
    for loop, twin in zip(machine.loops, other.loops, strict=True):
        assert (loop.name, loop.pair) == (twin.name, twin.pair)


def test_loops_close_though_their_numbers_are_rounded(tmp_path: Path) -> None:
    with pytest.warns(pl.PinloopWarning, match="left out are gear ratios of 'joint_1'"):
        path = robot("bricard").save(tmp_path / "bricard.usda")
    report = pl.diagnose(pl.load(path))
    assert report.assembled and report.mobility == 1


def test_couplings_and_meshes(tmp_path: Path) -> None:
    machine = robot("planar_3r")
    gear = Coupling.linear("gear", "joint_2", "joint_1", -2.0, 0.3)
    coupled = build(replace(machine.description, couplings=(gear,)), kinematics_only=True)
    check_same(coupled, again(coupled, tmp_path / "robot.usda"), tol=SINGLE)
    curved = Coupling("curved", ("joint_1", "joint_2"), ((0.0, 1.0, 1.0), (0.0, 1.0)))
    with pytest.raises(pl.BadValue, match=r"coupling 'curved' is not linear .* USD cannot say"):
        build(replace(machine.description, couplings=(curved,))).save(tmp_path / "a.usda")
    screw = [
        replace(joint, pair=make_pair("helical", pitch=0.1)) if joint.name == "joint_1" else joint
        for joint in machine.description.joints
    ]
    with pytest.raises(pl.BadValue, match="joint 'joint_1' is a helical pair, which USD cannot"):
        build(replace(machine.description, joints=tuple(screw))).save(tmp_path / "a.usda")


BODY = """
    def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
        double3 xformOp:translate = {place}
        uniform token[] xformOpOrder = ["xformOp:translate"]
        float physics:mass = 2000
        point3f physics:centerOfMass = (10, 20, 30)
        float3 physics:diagonalInertia = (1e6, 2e6, 3e6)
        quatf physics:principalAxes = (0.70710678, 0, 0, 0.70710678)
    }}
"""
JOINT = """
    def {kind} "{name}" {schemas} {{
        rel physics:body0 = {parent}
        rel physics:body1 = </arm/{child}>
        {lines}
    }}
"""


def locked(*axes: str) -> tuple[str, str]:
    """Schemas and lines of a joint that locks some axes."""
    schemas = ", ".join(f'"PhysicsLimitAPI:{axis}"' for axis in axes)
    lines = [f"float limit:{x}:physics:low = 1\nfloat limit:{x}:physics:high = -1" for x in axes]
    return schemas, "\n".join(lines)


def stage() -> str:
    """An arm in cm and g, y up, with joints about and along all axes."""
    names = ("turn", "slide", "tube", "plane", "cross")
    bodies = [BODY.format(name=f"b_{x}", place=(10 * k, 0, 0)) for k, x in enumerate(names, 1)]
    drive = '"PhysicsDriveAPI:angular", "PhysxMimicJointAPI:rotX"'
    turn = """uniform token physics:axis = "Y"
        float physics:lowerLimit = -90
        float physics:upperLimit = 45
        float drive:angular:physics:maxForce = 5e7
        float physxJoint:armature = 4e7
        float newton:damping = 1e7
        float physxJoint:maxJointVelocity = 180
        rel physxMimicJoint:rotX:referenceJoint = </arm/slide>
        float physxMimicJoint:rotX:gearing = 2
        float physxMimicJoint:rotX:offset = 90"""
    slide = """uniform token physics:axis = "X"
        point3f physics:localPos0 = (100, 0, 0)
        float physics:lowerLimit = -20
        float newton:friction = 3e5"""
    joints = [
        ("PhysicsRevoluteJoint", "turn", drive, "None", turn),
        ("PhysicsPrismaticJoint", "slide", "", "</arm/b_turn>", slide),
        *(
            ("PhysicsJoint", name, schemas, f"</arm/b_{names[names.index(name) - 1]}>", lines)
            for name, (schemas, lines) in {
                "tube": locked("transY", "transZ", "rotY", "rotZ"),
                "plane": locked("transY", "rotX", "rotZ"),
                "cross": locked("transX", "transY", "transZ", "rotZ"),
            }.items()
        ),
        ("PhysicsSphericalJoint", "loop", "", "None", "bool physics:excludeFromArticulation = 1"),
        ("PhysicsFixedJoint", "off", "", "None", "bool physics:jointEnabled = 0"),
    ]
    written = [
        JOINT.format(kind=k, name=n, schemas=f"(prepend apiSchemas = [{s}])" if s else "",
                     parent=p, lines=x,
                     child={"loop": "b_cross", "off": "b_turn"}.get(n, f"b_{n}"))
        for k, n, s, p, x in joints
    ]  # fmt: skip
    scene = """def PhysicsScene "scene" {
        vector3f physics:gravityDirection = (0, -1, 0)
        float physics:gravityMagnitude = 981
    }"""
    head = '#usda 1.0\n(\n metersPerUnit = 0.01\n kilogramsPerUnit = 0.001\n upAxis = "Y"\n)\n'
    return f'{head}def Xform "arm" {{\n{scene}\n{"".join(bodies)}\n{"".join(written)}\n}}\n'


def test_a_stage_in_centimetres_and_grams() -> None:
    machine = pl.load(stage())
    np.testing.assert_allclose(machine.gravity, [0.0, -9.81, 0.0], rtol=1e-6)
    body = machine.description.bodies[0]
    assert body.mass == pytest.approx(2.0)
    np.testing.assert_allclose(body.com, [0.1, 0.2, 0.3], rtol=1e-6)
    # A quarter turn about z exchanges the principal axes x and y.
    np.testing.assert_allclose(body.inertia, np.diag([0.2, 0.1, 0.3]), atol=1e-7)
    joints = {joint.name: joint for joint in machine.description.joints}
    assert [j.pair.name for j in joints.values()] == [
        "revolute", "prismatic", "cylindrical", "planar", "universal", "spherical",
    ]  # fmt: skip
    axes = {name: np.round(j.frame_parent.rotation, 6) for name, j in joints.items()}
    for name, axis in (("turn", 1), ("slide", 0), ("tube", 0), ("plane", 1), ("cross", 0)):
        np.testing.assert_array_equal(axes[name][:, 2], np.eye(3)[axis])
    np.testing.assert_array_equal(axes["cross"][:, 0], np.eye(3)[1])
    turn, slide = joints["turn"], joints["slide"]
    np.testing.assert_allclose([*turn.lower, *turn.upper], [-np.pi / 2, np.pi / 4], rtol=1e-6)
    numbers = [turn.effort, turn.armature, turn.damping, turn.velocity]
    degree = np.pi / 180
    expected = [[5.0], [4.0], [1.0 / degree], [np.pi]]
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)
    np.testing.assert_allclose(slide.frame_parent.translation, [1.0, 0.0, 0.0])
    np.testing.assert_allclose([slide.lower, slide.friction], [[-0.2], [3.0]], rtol=1e-6)
    (mimic,) = machine.couplings
    assert mimic.joints == ("turn", "slide")
    np.testing.assert_allclose(mimic.polynomials, [[np.pi / 2, 1.0], [0.0, 2.0]], rtol=1e-6)
    assert machine.actuated == ("turn",) and [loop.name for loop in machine.loops] == ["loop"]
    assert any("is not enabled and is left out: '/arm/off'" in x for x in machine.warnings)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(free_axes, "import_module", missing)
    with pytest.raises(pl.LoadError, match=r"is a USD stage; USD needs usd-core: pip install"):
        pl.load(stage())
    with pytest.raises(pl.BadValue, match=r"USD needs usd-core: pip install 'pinloop\[usd\]'"):
        robot("fourbar").save(tmp_path / "robot.usda")


def test_stages_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match="has no rigid body"):
        pl.load("#usda 1.0\n\n")
    (tmp_path / "a.usda").write_text("#usda 1.0\n(")
    with pytest.raises(pl.LoadError, match="cannot be read by usd-core"):
        pl.load(tmp_path / "a.usda")
