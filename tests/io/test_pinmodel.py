"""A `pin.Model` becomes a mechanism with the same coordinates, frames and dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from .urdf_by_hand import Array, random_placement, rotation, turn

Make = Callable[[np.random.Generator], Any]


def _unit(rng: np.random.Generator) -> Array:
    vector = rng.normal(size=3)
    return np.asarray(vector / np.linalg.norm(vector))


def _universal(rng: np.random.Generator) -> Any:
    first, helper = _unit(rng), _unit(rng)
    second = np.cross(first, helper)
    return pin.JointModelUniversal(first, second / np.linalg.norm(second))


def _composite(rng: np.random.Generator) -> Any:
    joint = pin.JointModelComposite()
    joint.addJoint(pin.JointModelPrismaticUnaligned(_unit(rng)), random_placement(rng))
    joint.addJoint(pin.JointModelSpherical(), random_placement(rng))
    joint.addJoint(pin.JointModelRX(), random_placement(rng))
    return joint


def _composite_of_one(rng: np.random.Generator) -> Any:
    joint = pin.JointModelComposite()
    joint.addJoint(pin.JointModelRY(), random_placement(rng))
    return joint


def _aligned(kind: str) -> Make:
    """A joint about or along a coordinate axis; a screw has a pitch."""

    def make(rng: np.random.Generator) -> Any:
        joint = getattr(pin, f"JointModel{kind}")
        return joint(rng.normal()) if kind.startswith("H") else joint()

    return make


JOINTS: dict[str, Make] = {
    **{
        f"{kind}{axis}": _aligned(f"{kind}{axis}")
        for kind in ("R", "RUB", "P", "H")
        for axis in "XYZ"
    },
    "RevoluteUnaligned": lambda rng: pin.JointModelRevoluteUnaligned(_unit(rng)),
    "PrismaticUnaligned": lambda rng: pin.JointModelPrismaticUnaligned(_unit(rng)),
    "HelicalUnaligned": lambda rng: pin.JointModelHelicalUnaligned(_unit(rng), rng.normal()),
    "Universal": _universal,
    "Spherical": lambda rng: pin.JointModelSpherical(),
    "SphericalZYX": lambda rng: pin.JointModelSphericalZYX(),
    "Planar": lambda rng: pin.JointModelPlanar(),
    "Translation": lambda rng: pin.JointModelTranslation(),
    "FreeFlyer": lambda rng: pin.JointModelFreeFlyer(),
    "Composite": _composite,
    "CompositeOfOne": _composite_of_one,
}


def _inertia(rng: np.random.Generator) -> pin.Inertia:
    """A body of six points, which is always possible."""
    points = rng.normal(size=(6, 3))
    second = points.T @ points / 6
    tensor = np.trace(second) * np.eye(3) - second
    return pin.Inertia(rng.uniform(0.5, 2), rng.normal(size=3), tensor)


def chain(kinds: list[str], seed: int = 0) -> pin.Model:
    """A tree, depth first: every joint hangs on one of the chain that ends at the last."""
    rng = np.random.default_rng(seed)
    model = pin.Model()
    model.name = "tree"
    path = [0]
    for number, kind in enumerate(kinds):
        path = path[: rng.integers(1, len(path) + 1)]
        joint = model.addJoint(path[-1], JOINTS[kind](rng), random_placement(rng), f"j{number}")
        model.appendBodyToJoint(joint, _inertia(rng), random_placement(rng))
        model.addFrame(pin.Frame(f"b{number}", joint, random_placement(rng), pin.FrameType.BODY))
        path.append(joint)
    return model


def random_configuration(model: pin.Model, seed: int) -> Array:
    pin.seed(seed)
    return np.asarray(pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)))


def assert_same(model: pin.Model, loaded: pl.Mechanism, seed: int = 1) -> None:
    """Same coordinates, placements, mass matrix and inverse dynamics."""
    ours = loaded.model
    assert (ours.nq, ours.nv) == (model.nq, model.nv)
    np.testing.assert_array_equal(loaded.gravity, model.gravity.linear)
    assert loaded.loops == ()
    np.testing.assert_allclose(pin.neutral(ours), pin.neutral(model))
    rng = np.random.default_rng(seed)
    our_data, data = ours.createData(), model.createData()
    for _ in range(3):
        q = random_configuration(model, seed + 1)
        v, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
        np.testing.assert_allclose(
            pin.rnea(ours, our_data, q, v, a), pin.rnea(model, data, q, v, a), atol=1e-10
        )
        np.testing.assert_allclose(
            pin.crba(ours, our_data, q), pin.crba(model, data, q), atol=1e-11
        )
        pin.framesForwardKinematics(model, data, q)
        pin.framesForwardKinematics(ours, our_data, q)
        for index in range(1, model.njoints):
            name = model.names[index]
            # The wheel cannot make an unbounded joint about any axis; its frame may be turned.
            skew = model.joints[index].shortname() == "JointModelRevoluteUnboundedUnaligned"
            if ours.existJointName(name) and not skew:
                mine = our_data.oMi[ours.getJointId(name)]
                np.testing.assert_allclose(
                    mine.homogeneous, data.oMi[index].homogeneous, atol=1e-12, err_msg=name
                )
        # The coordinates mean the same along a motion, too.
        end, expected = pin.integrate(ours, q, v), pin.integrate(model, q, v)
        np.testing.assert_allclose(end, expected, atol=1e-12)


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_type_is_kept(kind: str) -> None:
    for seed in (3, 4):
        model = chain([kind, kind], seed)
        loaded = pl.load(model)
        assert_same(model, loaded)
        assert loaded.name == "tree"
        if kind != "Composite":
            assert loaded.joints == ("j0", "j1") and loaded.warnings == ()
            shorts = [joint.shortname() for joint in loaded.model.joints][1:]
            if kind[-1] in "XYZ" and kind != "SphericalZYX":
                assert shorts == [joint.shortname() for joint in model.joints][1:]


def test_a_revolute_joint_that_pinocchio_keeps_as_cosine_and_sine_about_any_axis() -> None:
    text = """<robot name="r"><link name="base"/><link name="tip"><inertial><mass value="2"/>
    <origin xyz="0.1 0.2 0.3"/><inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/>
    </inertial></link><joint name="j" type="continuous"><axis xyz="1 2 -2"/>
    <parent link="base"/><child link="tip"/></joint></robot>"""
    model = pin.buildModelFromXML(text)
    assert model.joints[1].shortname() == "JointModelRevoluteUnboundedUnaligned"
    loaded = pl.load(model)
    assert_same(model, loaded)
    q = loaded.configuration({"j": 0.7})
    expected = rotation((1, 2, -2), 0.7)
    np.testing.assert_allclose(loaded.placement(q, "tip").rotation, expected, atol=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_of_all_joints_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = chain([str(kind) for kind in rng.permutation(list(JOINTS))[:7]], seed)
    loaded = pl.load(model)
    assert_same(model, loaded)
    q = random_configuration(model, seed)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            expected = data.oMf[model.getFrameId(frame.name)].homogeneous
            np.testing.assert_allclose(
                loaded.placement(q, frame.name).homogeneous, expected, atol=1e-12
            )


def test_a_composite_is_split_and_says_so() -> None:
    model = chain(["RX", "Composite"])
    loaded = pl.load(model)
    assert loaded.joints == ("j0", "j1_1", "j1_2", "j1_3")
    assert any("'j1' is split into 3 joints" in warning for warning in loaded.warnings)


def arm() -> pin.Model:
    """Joints of one, three (composite: two) and six degrees of freedom, everything given."""
    model = pin.Model()
    composite = pin.JointModelComposite()
    composite.addJoint(pin.JointModelPX())
    composite.addJoint(pin.JointModelRZ())
    rng = np.random.default_rng(1)
    for name, joint in (
        ("r", pin.JointModelRX()), ("c", composite), ("f", pin.JointModelFreeFlyer()),
    ):  # fmt: skip
        index = model.addJoint(model.njoints - 1, joint, pin.SE3.Identity(), name)
        model.appendBodyToJoint(index, _inertia(rng), pin.SE3.Identity())
    model.lowerPositionLimit = -np.arange(1.0, 11)
    model.upperPositionLimit = np.arange(2.0, 12)
    for label, start in (
        ("upperVelocityLimit", 1), ("upperEffortLimit", 20), ("damping", 40),
        ("upperDryFrictionLimit", 60), ("armature", 80),
    ):  # fmt: skip
        setattr(model, label, start + np.arange(model.nv, dtype=float))
    return model


def test_limits_losses_and_armature_are_kept_for_every_coordinate() -> None:
    model = arm()
    ours = pl.load(model).model
    for label in (
        "lowerPositionLimit", "upperPositionLimit", "upperVelocityLimit", "upperEffortLimit",
        "damping", "upperDryFrictionLimit", "armature",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(ours, label), getattr(model, label), label)
    assert_same(model, pl.load(model))


def test_the_largest_float_is_pinocchios_word_for_unlimited() -> None:
    model = chain(["RX"])
    largest = np.finfo(float).max
    model.upperPositionLimit[:], model.lowerPositionLimit[:] = largest, -largest
    model.upperEffortLimit[:] = largest
    ours = pl.load(model).model
    assert (ours.lowerPositionLimit[0], ours.upperPositionLimit[0]) == (-np.inf, np.inf)
    assert ours.upperEffortLimit[0] == np.inf


def test_rotors_are_kept() -> None:
    model = chain(["RX", "RY"])
    model.rotorInertia[:] = [1e-4, 0]
    model.rotorGearRatio[:] = [50, 7]
    model.armature[:] = [0.25, 0.5]
    loaded = pl.load(model)
    np.testing.assert_array_equal(loaded.model.rotorInertia, [1e-4, 0])
    np.testing.assert_array_equal(loaded.model.rotorGearRatio, [50, 7])
    np.testing.assert_array_equal(loaded.model.armature, [0.25, 0.5])
    assert loaded.drives["j0"].reduction == 50


def test_rotors_do_not_add_to_the_mass_matrix_that_pinocchio_has() -> None:
    model = chain(["RX"])
    model.rotorInertia[:], model.rotorGearRatio[:] = 1e-3, 100
    assert_same(model, pl.load(model))


def test_bodies_are_called_by_their_first_frame_and_frames_are_kept() -> None:
    rng = np.random.default_rng(0)
    model = pin.Model()
    index = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "j")
    where = [random_placement(rng) for _ in range(3)]
    model.addFrame(pin.Frame("arm", index, pin.SE3.Identity(), pin.FrameType.BODY))
    model.addFrame(pin.Frame("hand", index, where[0], pin.FrameType.BODY))
    model.addFrame(pin.Frame("tool", index, where[1], pin.FrameType.OP_FRAME))
    model.addFrame(pin.Frame("table", 0, where[2], pin.FrameType.OP_FRAME))
    model.appendBodyToJoint(index, _inertia(rng), pin.SE3.Identity())
    loaded = pl.load(model)
    assert loaded.bodies == ("arm",)
    joint = turn((1, 0, 0), 0.4)
    expected = {"arm": joint, "hand": joint * where[0], "tool": joint * where[1], "table": where[2]}
    for name, placement in expected.items():
        np.testing.assert_allclose(
            loaded.placement([0.4], name).homogeneous, placement.homogeneous, atol=1e-14
        )


def test_gravity_of_the_model_counts() -> None:
    model = chain(["RX"])
    model.gravity.linear = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pl.load(model).gravity, [1, 2, 3])
    moon = pl.load(model, gravity=(0, 0, -1.6))
    np.testing.assert_array_equal(moon.model.gravity.linear, [0, 0, -1.6])


def test_a_loop_can_be_closed_on_a_model() -> None:
    """Three bars of a square with a side of 1 m; the fourth is the ground."""
    model = pin.Model()
    names, parent = ("a", "b", "c"), 0
    for name in names:
        side = pin.SE3.Identity() if name == "a" else pin.SE3(np.eye(3), np.array([1.0, 0, 0]))
        parent = model.addJoint(parent, pin.JointModelRZ(), side, name)
        model.appendBodyToJoint(parent, pin.Inertia.FromSphere(1, 0.1), pin.SE3.Identity())
    loops = {
        "loops": [
            {
                "name": "close",
                "pair": "revolute",
                "a": {"body": "c", "xyz": [1, 0, 0]},
                "b": {"body": "ground", "xyz": [0, 1, 0]},
            }
        ]
    }
    loaded = pl.load(model, loops=loops)
    constraints = pl.Constraints(loaded)
    quarter = np.pi / 2
    np.testing.assert_allclose(constraints.residual([0, quarter, quarter]), 0, atol=1e-15)
    np.testing.assert_allclose(
        constraints.residual([0.3, quarter - 0.3, quarter + 0.3]), 0, atol=1e-15
    )
    assert np.abs(constraints.residual([0.3, quarter, quarter])).max() > 0.1


def _mimic() -> pin.Model:
    text = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="c">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    </link><joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint><joint name="k" type="revolute">
    <parent link="b"/><child link="c"/><axis xyz="0 1 0"/><mimic joint="j" multiplier="2"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    model = pin.buildModelFromXML(text, mimic=True)
    assert model.joints[2].shortname() == "JointModelMimic"
    return model


def _ellipsoid() -> pin.Model:
    model = pin.Model()
    joint = pin.JointModelEllipsoid(0.1, 0.2, 0.3)
    index = model.addJoint(0, joint, pin.SE3.Identity(), "ell")
    model.appendBodyToJoint(index, pin.Inertia.FromSphere(1, 0.1), pin.SE3.Identity())
    return model


def _oblique_universal() -> pin.Model:
    model = pin.Model()
    joint = pin.JointModelUniversal(np.array([0.0, 0, 1]), np.array([0.6, 0, 0.8]))
    index = model.addJoint(0, joint, pin.SE3.Identity(), "cross")
    model.appendBodyToJoint(index, pin.Inertia.FromSphere(1, 0.1), pin.SE3.Identity())
    return model


def _breadth_first() -> pin.Model:
    model = pin.Model()
    first = 0
    for parent, name in ((0, "a"), (0, "b"), (1, "c")):
        index = model.addJoint(parent, pin.JointModelRX(), pin.SE3.Identity(), name)
        model.appendBodyToJoint(index, pin.Inertia.FromSphere(1, 0.1), pin.SE3.Identity())
        first = first or index
    return model


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_mimic, ("joint 'k'", "mimic")),
        (_ellipsoid, ("joint 'ell'", "JointModelEllipsoid")),
        (_oblique_universal, ("'cross'", "must be perpendicular")),
        (_breadth_first, ("joint 'c'", "depth first")),
        (pin.Model, ("no bodies",)),
    ],
)
def test_a_model_that_cannot_be_described_is_refused(
    make: Callable[[], pin.Model], said: tuple[str, ...]
) -> None:
    with pytest.raises(pl.LoadError) as caught:
        pl.load(make())
    for words in ("pin.Model", *said):
        assert words in str(caught.value)
