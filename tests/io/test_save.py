"""Writing a robot and reading it back: the same bodies, joints, coordinates and loops."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pinloop.boundary.schema import read_data
from pinloop.boundary.xml import parse_xml
from pinloop.boundary.yaml import read_yaml
from pinloop.errors import BadValue, LoadError
from pinloop.io.formats import make_resolver
from pinloop.io.loading import load
from pinloop.io.loopsfile import LoopsFile, apply_loops
from pinloop.io.quantities import reversed_joint
from pinloop.io.urdf.reader import read_urdf
from pinloop.io.writers.urdf import loops_document, save_urdf, urdf_poses, write_urdf
from pinloop.model.description import (
    GROUND,
    Body,
    Coupling,
    Description,
    Drive,
    Geometry,
    Joint,
    NamedFrame,
    Shape,
    constant,
)
from pinloop.model.graph import spanning_tree
from pinloop.model.pairs import PAIR_NAMES, Pair, make_pair
from pinloop.model.tree import build_model
from pinloop.model.validate import check_description

from .by_hand import about, at, bar, free_twists, joint_named, open_chain, placed, revolute

TREE_PAIRS = [name for name in PAIR_NAMES if name not in ("point_on_line", "point_on_plane", "rod")]


def pair_named(name: str) -> Pair:
    parameters = {"helical": {"pitch": 0.07}, "rod": {"length": 0.9}}
    return make_pair(name, **parameters.get(name, {}))


def reread(path: Path) -> Description:
    """What the saved files say, read with the readers of the two formats."""
    folder, stem = path.parent, path.stem
    root = parse_xml(path.read_bytes(), path.name)
    tree = read_urdf(root, resolve=make_resolver(folder))
    loops = read_yaml((folder / f"{stem}.loops.yaml").read_bytes(), f"{stem}.loops.yaml")
    robot = apply_loops(tree, read_data(LoopsFile, loops, "loops"), "loops")
    check_description(robot)
    return robot


def cycle(description: Description, folder: Path) -> Description:
    return reread(save_urdf(description, folder / "robot"))


def assert_same_placement(one: pin.SE3, other: pin.SE3) -> None:
    np.testing.assert_allclose(one.homogeneous, other.homogeneous, atol=4e-15, rtol=4e-15)


def assert_same_values(one: Joint, other: Joint) -> None:
    for key in ("parent", "child"):
        ends = {getattr(joint, key) for joint in (one, other)}
        assert len(ends) == 1 or ends == {GROUND, "base"}  # which are one
    for key in ("name", "pair", "cut", "coordinates", "lower", "upper",
                "velocity", "effort", "damping", "friction", "armature"):  # fmt: skip
        assert getattr(one, key) == getattr(other, key), key


def model_of(description: Description) -> pin.Model:
    bodies = [body.name for body in description.bodies]
    return build_model(description, spanning_tree(bodies, description.joints, description.base))


def assert_same_model(one: pin.Model, other: pin.Model, seed: int = 0) -> None:
    """Same joints in the same order, and the same frames, masses and limits wherever they are."""
    assert list(one.names) == list(other.names)
    assert [joint.shortname() for joint in one.joints] == [j.shortname() for j in other.joints]
    frames = {frame.name for frame in one.frames}
    assert frames == {frame.name for frame in other.frames}
    rng = np.random.default_rng(seed)
    q = pin.integrate(one, pin.neutral(one), rng.uniform(-1.5, 1.5, one.nv))
    data, other_data = one.createData(), other.createData()
    pin.framesForwardKinematics(one, data, q)
    pin.framesForwardKinematics(other, other_data, q)
    for name in frames - {"universe"}:
        here, there = data.oMf[one.getFrameId(name)], other_data.oMf[other.getFrameId(name)]
        assert here.isApprox(there, 1e-12), name
    masses = [pin.crba(model, model.createData(), q) for model in (one, other)]
    np.testing.assert_allclose(masses[0], masses[1], atol=1e-12)
    for key in ("lowerPositionLimit", "upperPositionLimit", "upperVelocityLimit",
                "upperEffortLimit", "upperDryFrictionLimit", "damping", "armature",
                "rotorInertia", "rotorGearRatio"):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))
    np.testing.assert_array_equal(one.gravity.linear, other.gravity.linear)


def placement(rng: np.random.Generator) -> pin.SE3:
    """A random placement; one in three turns by quarters, as robot files do."""
    angles = rng.uniform(-np.pi, np.pi, 3)
    if rng.random() < 1 / 3:
        angles = rng.integers(-2, 3, 3) * np.pi / 2
    return pin.SE3(pin.rpy.rpyToMatrix(*angles), rng.normal(size=3))


def tree_of_all_pairs(seed: int) -> Description:
    """Per pair one body, hung at random on an earlier one, with frames and values at random."""
    rng = np.random.default_rng(seed)
    bodies: list[Body] = [Body("base")]
    joints: list[Joint] = []
    for index, name in enumerate(rng.permutation(TREE_PAIRS)):
        pair = pair_named(str(name))
        body = replace(bar(f"b{index}"), mass=float(rng.uniform(0.1, 2)))
        parent = bodies[rng.integers(len(bodies))].name
        values: dict[str, Any] = {
            key: tuple(rng.uniform(0, 3, pair.dof).tolist())
            for key in ("velocity", "effort", "damping", "friction", "armature")
            if rng.random() < 0.5
        }
        if pair.dof == 1:
            values |= {"lower": (-0.5,), "upper": (np.inf,)} if rng.random() < 0.7 else {}
        # Names whose alphabetical order is not the order of the joints.
        joint = Joint(
            f"{'zyxwvutsrqponm'[index]}_{name}", pair, parent, body.name, placement(rng),
            placement(rng), cut=[None, False][rng.integers(2)], **values,
        )  # fmt: skip
        bodies.append(body)
        joints.append(joint)
    return Description("all pairs", tuple(bodies), tuple(joints), base="base")


def full_robot(folder: Path) -> Description:
    """A closed chain with everything a description can hold."""
    mesh = folder / "meshes" / "part 1.stl"
    mesh.parent.mkdir()
    mesh.write_text("solid")
    outside = folder.parent / f"{folder.name}_elsewhere.stl"
    outside.write_text("solid")
    chain = open_chain()
    tilted = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 0.3), np.array([0.1, 1 / 3, -0.5]))
    tensor = np.array([[0.3, 0.01, -0.02], [0.01, 0.4, 1 / 30], [-0.02, 1 / 30, 0.5]])
    base = Body("base", 3.7, constant((0.1, -1 / 7, 0)), constant(tensor))
    loop = Joint("loop", make_pair("universal"), GROUND, "rocker", tilted, tilted.inverse(), True)
    rod = Joint(
        "rod", make_pair("rod", length=1 / 3), "crank", "rocker", at(0.1, 0, 0), tilted, True
    )
    elbow = replace(
        chain.joints[1], lower=(-1.0,), upper=(0.1 + 0.2,), velocity=(3.0,), effort=(50.0,),
        damping=(0.7,), friction=(1e-3,), armature=(0.02,),
    )  # fmt: skip
    shapes = [
        ("visual", Shape("box", (0.1, 0.2, 1 / 3)), (0.1, 0.2, 0.3, 1.0)),
        ("visual", Shape("cylinder", (0.1, 0.2)), (1.0, 0.0, 0.0, 0.5)),
        ("visual", Shape("mesh", (1.0, 1.0, 1.0), mesh.resolve()), None),
        ("collision", Shape("mesh", (0.001, 0.001, 0.001), outside.resolve()), None),
        ("collision", Shape("sphere", (0.2,)), None),
        ("collision", Shape("capsule", (0.1, 0.4)), None),
        ("collision", Shape("ellipsoid", (0.1, 0.2, 0.3)), None),
    ]
    counts = {"visual": 0, "collision": 0}
    geometry = []
    for role, shape, color in shapes:
        geometry.append(Geometry(f"rocker_{counts[role]}", "rocker", role, shape, tilted, color))  # type: ignore[arg-type]
        counts[role] += 1
    return replace(
        chain,
        bodies=(base, *chain.bodies[1:]),
        joints=(loop, chain.joints[0], elbow, chain.joints[2], rod),
        couplings=(
            Coupling.linear("belt", "elbow", "shoulder", -1 / 3, 0.1),
            Coupling("cam", ("wrist", "shoulder"), ((0.1, 1.0), (0.0, 0.0, 2.0))),
        ),
        actuated=("elbow", "shoulder"),
        drives=(Drive("elbow", 100.0, 1e-5), Drive("wrist", -3.0)),
        frames=(*chain.frames, NamedFrame("lamp", GROUND, tilted)),
        geometry=tuple(geometry),
        gravity=constant((0.0, 0.1, -9.7)),
    )


def test_everything_comes_back(tmp_path: Path) -> None:
    before = full_robot(tmp_path)
    after = cycle(before, tmp_path)
    assert (after.name, after.base, after.actuated) == ("chain", "base", ("elbow", "shoulder"))
    assert after.couplings == before.couplings
    assert after.drives == before.drives
    np.testing.assert_array_equal(after.gravity, before.gravity)
    assert after.warnings == ()
    for body, same in zip(after.bodies, before.bodies, strict=True):
        assert (body.name, body.mass) == (same.name, same.mass)
        np.testing.assert_array_equal(body.com, same.com)
        np.testing.assert_array_equal(body.inertia, same.inertia)
    for joint, twin in zip(after.joints, before.joints, strict=True):
        assert_same_values(joint, twin)
        if joint.cut:
            assert_same_placement(joint.frame_parent, twin.frame_parent)
            assert_same_placement(joint.frame_child, twin.frame_child)
        else:
            motion = about("z", 0.3)
            assert_same_placement(placed(joint, motion), placed(twin, motion))
    for frame, other in zip(after.frames, before.frames, strict=True):
        assert (frame.name, frame.body) == (other.name, other.body)
        assert_same_placement(frame.placement, other.placement)


def test_shapes_come_back(tmp_path: Path) -> None:
    before = full_robot(tmp_path)
    after = cycle(before, tmp_path)
    assert len(after.geometry) == len(before.geometry)
    for geometry, same in zip(after.geometry, before.geometry, strict=True):
        assert (geometry.name, geometry.body, geometry.role) == (same.name, same.body, same.role)
        assert geometry.shape == same.shape
        assert geometry.color == same.color
        assert_same_placement(geometry.placement, same.placement)
    text = (tmp_path / "robot.urdf").read_text(encoding="utf-8")
    materials = ElementTree.fromstring(text).findall("link/visual/material")
    # One name per color: other readers take two colors of one name for a mistake.
    assert len({material.get("name") for material in materials}) == len(materials) == 2
    assert 'filename="meshes/part 1.stl"' in text
    assert f'filename="../{tmp_path.name}_elsewhere.stl"' in text


def test_load_finds_both_files(tmp_path: Path) -> None:
    robot = load(save_urdf(full_robot(tmp_path), tmp_path / "robot"))
    assert [loop.name for loop in robot.loops] == ["loop", "rod"]
    assert robot.actuated == ("elbow", "shoulder")
    assert [coupling.name for coupling in robot.couplings] == ["belt", "cam"]


def test_more_cycles_change_nothing(tmp_path: Path) -> None:
    """What was read from a saved robot has the very frames that are written again."""
    for robot in (full_robot(tmp_path), tree_of_all_pairs(5)):
        first = cycle(robot, tmp_path)
        second = cycle(first, tmp_path)
        assert loops_document(second).keys() == loops_document(first).keys()
        for joint, same in zip(second.joints, first.joints, strict=True):
            assert_same_values(joint, same)
            assert_same_placement(joint.frame_parent, same.frame_parent)
            assert_same_placement(joint.frame_child, same.frame_child)


@pytest.mark.parametrize("seed", range(12))
def test_all_pairs_move_alike(seed: int, tmp_path: Path) -> None:
    before = tree_of_all_pairs(seed)
    after = cycle(before, tmp_path)
    assert [joint.name for joint in after.joints] == [joint.name for joint in before.joints]
    for joint, same in zip(after.joints, before.joints, strict=True):
        assert (joint.cut, joint.velocity) == (same.cut, same.velocity)
        for motion in (pin.SE3.Identity(), _free_motion(joint.pair, seed)):
            assert placed(joint, motion).isApprox(placed(same, motion), 1e-13)
        assert_same_placement(
            pin.SE3(np.eye(3), joint.frame_child.translation),
            pin.SE3(np.eye(3), same.frame_child.translation),
        )
    assert_same_model(model_of(before), model_of(after), seed)


def _free_motion(pair: Pair, seed: int) -> pin.SE3:
    motion = pin.SE3.Identity()
    for column in free_twists(pair).T:
        motion = motion * pin.exp6(column * np.random.default_rng(seed).uniform(-1, 1))
    return motion


@pytest.mark.parametrize("seed", range(12))
def test_joints_that_point_to_the_ground(seed: int, tmp_path: Path) -> None:
    """Swapped ends: the tree runs against some joints, yet all coordinates are the same."""
    rng = np.random.default_rng(seed)
    before = tree_of_all_pairs(seed)
    swapped = [
        replace(joint, parent=joint.child, child=joint.parent)
        if rng.random() < 0.6 and joint.name != before.joints[0].name
        else joint
        for joint in before.joints
    ]
    first = before.joints[0]
    swapped[0] = replace(first, parent=first.child, child=GROUND)
    before = replace(before, joints=tuple(swapped))
    after = cycle(before, tmp_path)
    for joint, same in zip(after.joints, before.joints, strict=True):
        ends = [GROUND if end == "base" else end for end in (joint.parent, joint.child)]
        assert ends == [GROUND if end == "base" else end for end in (same.parent, same.child)]
        assert_same_values(replace(joint, parent=same.parent, child=same.child), same)
        motion = _free_motion(joint.pair, seed)
        assert placed(joint, motion).isApprox(placed(same, motion), 1e-13)
    assert_same_model(model_of(before), model_of(after), seed)


@pytest.mark.parametrize("pair", ["revolute", "prismatic", "helical", "universal"])
def test_reversed_joints_of_a_urdf_keep_their_coordinates(pair: str) -> None:
    """Also for a reader that does not know which joints were turned round."""
    rng = np.random.default_rng(2)
    joint = Joint("j", pair_named(pair), "a", "b", placement(rng), placement(rng))
    joint = replace(joint, damping=tuple(range(1, 1 + joint.pair.dof)))
    other = reversed_joint(joint)
    assert (other.parent, other.child, other.damping) == ("b", "a", joint.damping[::-1])
    values = rng.uniform(-2, 2, joint.pair.dof)
    there, back = pin.SE3.Identity(), pin.SE3.Identity()
    for column, value in zip(free_twists(joint.pair).T, values, strict=True):
        there = there * pin.exp6(column * value)
    for column, value in zip(free_twists(other.pair).T, values[::-1], strict=True):
        back = back * pin.exp6(column * value)
    assert placed(joint, there).isApprox(placed(other, back).inverse(), 1e-13)
    twice = reversed_joint(other)
    assert_same_placement(twice.frame_parent, joint.frame_parent)
    assert_same_values(twice, joint)


@pytest.mark.parametrize("pair", PAIR_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_loop_joints_keep_their_frames(pair: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    chain = open_chain()
    dof = pair_named(pair).dof
    values: dict[str, Any] = {"velocity": (1.0,) * dof, "armature": (0.1,) * dof}
    loop = Joint(
        "a loop", pair_named(pair), "rocker", GROUND, placement(rng), placement(rng),
        cut=[True, None, True][seed], **(values if seed else {}),
    )  # fmt: skip
    chain = replace(chain, joints=(*chain.joints, loop))
    after = joint_named(cycle(chain, tmp_path), "a loop")
    assert_same_values(after, loop)
    assert_same_placement(after.frame_parent, loop.frame_parent)
    assert_same_placement(after.frame_child, loop.frame_child)


def test_robot_on_the_ground_itself(tmp_path: Path) -> None:
    """Joints on the ground need a root link of that name; a floating body needs nothing else."""
    chain = open_chain()
    free = Joint(
        "z", make_pair("free"), GROUND, "base", at(0, 0, 1), at(0, 0, 0), coordinates="SO3xR3"
    )
    second = revolute("arm", GROUND, "lever", 3.0, coordinates="circle")
    floor = Geometry("ground_0", GROUND, "visual", Shape("box", (9.0, 9.0, 0.1)), at(0, 0, -1))
    base = bar("base")
    robot = replace(
        chain, base=None, bodies=(base, *chain.bodies[1:], bar("lever")), geometry=(floor,),
        joints=(free, *chain.joints, second),
    )  # fmt: skip
    path = save_urdf(robot, tmp_path / "robot.urdf")
    root = ElementTree.parse(path).getroot()
    assert next(root.iter("link")).get("name") == GROUND
    after = reread(path)
    assert after.base is None
    assert [body.name for body in after.bodies] == [body.name for body in robot.bodies]
    assert after.geometry[0].body == GROUND
    assert [joint.coordinates for joint in after.joints] == ["SO3xR3", "", "", "", "circle"]
    assert_same_model(model_of(robot), model_of(after))


def test_ground_and_base_are_one_in_the_tree(tmp_path: Path) -> None:
    chain = open_chain()
    arm = revolute("arm", GROUND, "lever", 3.0)
    robot = replace(
        chain, bodies=(*chain.bodies, bar("lever")), joints=(*chain.joints, arm),
        geometry=(Geometry("g", GROUND, "visual", Shape("sphere", (1.0,)), at(0, 0, 0)),),
    )  # fmt: skip
    after = cycle(robot, tmp_path)
    assert after.base == "base"
    assert joint_named(after, "arm").parent == "base"
    assert after.geometry[0].body == "base"
    assert_same_model(model_of(robot), model_of(after))


def test_screw_table_keeps_its_freedom_to_cut(tmp_path: Path) -> None:
    """A four-bar whose last joint points to the ground: no joint is marked, and none is after."""
    names = ("crank", "coupler", "rocker")
    points = [(0, 0), (0, 1), (2, 1), (2, 0)]
    ends = [(GROUND, "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("rocker", GROUND)]
    joints = tuple(
        Joint(f"j{4 - i}", make_pair("revolute"), *end, at(*point, 0), at(*point, 0), cut=None)
        for i, (end, point) in enumerate(zip(ends, points, strict=True))
    )
    robot = Description("four-bar", tuple(bar(name) for name in names), joints)
    after = cycle(robot, tmp_path)
    assert [(joint.name, joint.cut) for joint in after.joints] == [
        ("j4", None), ("j3", None), ("j2", None), ("j1", None),
    ]  # fmt: skip
    for joint, same in zip(after.joints, robot.joints, strict=True):
        assert (joint.parent, joint.child) == (same.parent, same.child)
        motion = about("z", 0.3)
        assert placed(joint, motion).isApprox(placed(same, motion), 1e-14)
    assert_same_model(model_of(robot), model_of(after))


def test_plain_urdf_for_others(tmp_path: Path) -> None:
    """What URDF can say is said in its words: Pinocchio's own reader gives the same robot."""
    chain = open_chain()
    limits: dict[str, Any] = {"lower": (-1.0,), "upper": (2.0,), "velocity": (3.0,)}
    limits["effort"] = (4.0,)
    axis = pin.SE3(pin.rpy.rpyToMatrix(0.4, 0.5, 0.0), np.zeros(3))
    wrist = replace(chain.joints[2], frame_parent=at(2, 0, 0) * axis, frame_child=axis, **limits)
    slide = replace(revolute("slide", "rocker", "ram"), pair=make_pair("prismatic"), **limits)
    weld = replace(revolute("weld", "ram", "plate"), pair=make_pair("fixed"),
                   frame_parent=placement(np.random.default_rng(4)))  # fmt: skip
    robot = replace(
        chain,
        bodies=(*chain.bodies, bar("ram"), bar("plate")),
        joints=(chain.joints[0], chain.joints[1], wrist, slide, weld),
        frames=(),
    )
    text = write_urdf(robot)
    assert "<!--" not in text
    model = pin.buildModelFromXML(text)
    ours = model_of(robot)
    assert list(model.names)[1:] == ["shoulder", "elbow", "wrist", "slide"]
    rng = np.random.default_rng(3)
    v = rng.uniform(-1, 1, model.nv)
    q, mine = pin.integrate(model, pin.neutral(model), v), pin.integrate(ours, pin.neutral(ours), v)
    data, own = model.createData(), ours.createData()
    pin.framesForwardKinematics(model, data, q)
    pin.framesForwardKinematics(ours, own, mine)
    for body in robot.bodies:
        there = data.oMf[model.getFrameId(body.name, pin.BODY)]
        assert there.isApprox(own.oMf[ours.getFrameId(body.name, pin.BODY)], 1e-12)
    np.testing.assert_allclose(pin.crba(model, data, q), pin.crba(ours, own, mine), atol=1e-12)
    assert model.upperPositionLimit[-1] == 2.0 and model.lowerPositionLimit[-1] == -1.0


def test_note_on_shifted_joints() -> None:
    chain = open_chain()
    shifted = replace(chain.joints[2], frame_child=at(0, 0, 0.1))
    text = write_urdf(replace(chain, joints=(*chain.joints[:2], shifted)))
    assert "put these child links in the wrong place" in text.split("<robot")[0]
    child = ElementTree.fromstring(text).findall("joint/child")[2]
    assert child.attrib == {"link": "rocker", "xyz": "0.0 0.0 0.1"}


def test_one_axis_joint_leaves_only_a_shift() -> None:
    rng = np.random.default_rng(8)
    for pair in ("revolute", "prismatic", "helical", "universal", "fixed"):
        joint = Joint("j", pair_named(pair), "a", "b", placement(rng), placement(rng))
        poses = urdf_poses(joint)
        np.testing.assert_array_equal(poses.mount.rotation, np.eye(3))
        np.testing.assert_array_equal(poses.mount.translation, joint.frame_child.translation)


def test_document_is_a_loops_file(tmp_path: Path) -> None:
    robot = full_robot(tmp_path)
    document = loops_document(robot)
    assert yaml.safe_load(yaml.safe_dump(document)) == document
    assert read_data(LoopsFile, document, "d").actuated == ("elbow", "shoulder")
    assert document["couplings"][0] == {
        "name": "belt", "joint": "elbow", "source": "shoulder", "ratio": -1 / 3, "offset": 0.1,
    }  # fmt: skip
    assert document["couplings"][1]["polynomials"] == {"wrist": [0.1, 1.0], "shoulder": [0, 0, 2]}
    assert "loops" not in document  # the URDF has them
    assert "free" not in document
    none = loops_document(open_chain())
    assert none == {
        "format": "pinloop-loops-1",
        "order": ["shoulder", "elbow", "wrist"],
        "gravity": [0.0, 0.0, -9.81],
    }
    assert loops_document(replace(open_chain(), actuated=()))["actuated"] == []


def test_file_names(tmp_path: Path) -> None:
    chain = open_chain()
    assert save_urdf(chain, tmp_path / "a.urdf") == tmp_path / "a.urdf"
    assert save_urdf(chain, str(tmp_path / "b")) == tmp_path / "b.urdf"
    assert save_urdf(chain, tmp_path / "robot.v2") == tmp_path / "robot.v2.urdf"
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.urdf", "a.loops.yaml", "b.urdf", "b.loops.yaml", "robot.v2.urdf", "robot.v2.loops.yaml",
    }  # fmt: skip


def test_joints_without_limits(tmp_path: Path) -> None:
    """Other readers demand finite limits; ours hears from the loops file that there are none."""
    chain = open_chain()
    slide = replace(revolute("slide", "rocker", "ram"), pair=make_pair("prismatic"))
    joints = (
        replace(chain.joints[0], effort=(5.0,)),
        replace(chain.joints[1], lower=(-np.inf,), upper=(1.0,)),
        chain.joints[2],
        slide,
    )
    robot = replace(chain, bodies=(*chain.bodies, bar("ram")), joints=joints)
    path = save_urdf(robot, tmp_path / "robot")
    theirs = pin.buildModelFromUrdf(str(path))
    assert theirs.nv == 4 and theirs.upperEffortLimit[0] == 5.0
    assert theirs.lowerPositionLimit[-1] == -1e30 and theirs.upperVelocityLimit[-1] == 1e30
    after = reread(path)
    assert after.warnings == ()
    for joint, same in zip(after.joints, joints, strict=True):
        assert_same_values(joint, same)


def test_odd_names_survive(tmp_path: Path) -> None:
    chain = open_chain()
    odd = "a<b & \"c\" ü\n'd'"
    joints = (*chain.joints[:2], replace(chain.joints[2], name="on", child=odd))
    bodies = (*chain.bodies[:3], replace(chain.bodies[3], name=odd))
    frames = (replace(chain.frames[0], body=odd, name="1"),)
    robot = replace(chain, name="--> x", bodies=bodies, joints=joints, frames=frames)
    after = cycle(replace(robot, actuated=("on",)), tmp_path)
    assert after.bodies[3].name == odd and after.name == "--> x"
    assert after.joints[2].name == "on" and after.frames[0].name == "1"
    assert after.actuated == ("on",)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    chain = open_chain()
    with pytest.raises(BadValue, match="has a name with characters that XML does not allow"):
        write_urdf(replace(chain, name="a\x01b"))
    with pytest.raises(BadValue, match="begins or ends with blanks"):
        write_urdf(replace(chain, frames=(NamedFrame(" a", "base", at(0, 0, 0)),)))
    with pytest.raises(BadValue, match="cannot be written: there is no folder"):
        save_urdf(chain, tmp_path / "nowhere" / "robot")
    with pytest.raises(LoadError, match="nothing carries 'rocker'"):
        write_urdf(replace(chain, joints=(*chain.joints[:2], replace(chain.joints[2], cut=True))))
    shape = Geometry("g", "base", "visual", Shape("mesh", (1.0, 1.0, 1.0)), at(0, 0, 0))
    with pytest.raises(BadValue, match="a mesh without a file"):
        write_urdf(replace(chain, geometry=(shape,)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=10), st.sampled_from(TREE_PAIRS))
def test_numbers_come_back_bitwise(numbers: list[float], pair: str) -> None:
    """All but angles: masses, centres, inertias, shifts, limits and gravity."""
    body = Body("b", abs(numbers[0]), constant(numbers[1:4]), constant(np.diag(numbers[4:7])))
    seat = at(*numbers[7:10])
    joint = Joint("j", pair_named(pair), "base", "b", seat, seat.inverse())
    robot = Description("r", (Body("base"), body), (joint,), base="base")
    root = parse_xml(write_urdf(robot), "r")
    after = read_urdf(root, resolve=make_resolver(None))
    assert after.bodies[1].mass == body.mass
    if body.mass or body.inertia.any():
        np.testing.assert_array_equal(after.bodies[1].com, body.com)
        np.testing.assert_array_equal(after.bodies[1].inertia, body.inertia)
    np.testing.assert_array_equal(after.joints[0].frame_parent.translation, seat.translation)
    np.testing.assert_array_equal(after.joints[0].frame_child.translation, -seat.translation)
