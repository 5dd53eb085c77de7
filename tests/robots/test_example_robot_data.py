"""Every URDF of the example-robot-data wheel against Pinocchio's own URDF reader.

The trees must be the same in names, order, coordinates, limits and dynamics. One difference is
wanted: the angle of a continuous joint counts turns here, where Pinocchio keeps cosine and sine.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

_FOLDER = "share/example-robot-data/robots"


def _robots() -> Path | None:
    """The installed folder of robots, from the wheel's list of files or beside Pinocchio."""
    try:
        for file in files("example-robot-data") or ():
            place = str(file).replace("\\", "/")
            if _FOLDER in place:
                root = str(file.locate()).replace("\\", "/")
                return Path(root.partition(_FOLDER)[0]) / _FOLDER
    except PackageNotFoundError:
        pass
    folders = (parent / _FOLDER for parent in Path(pin.__file__).parents)
    return next((folder for folder in folders if folder.is_dir()), None)


ROBOTS = _robots()
if ROBOTS is None:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

FILES = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf"))

BROKEN = {
    "ur_description/urdf/ur3.urdf": "<robot> has no <link>",
    "falcon_description/urdf/falcon.urdf": "no link 'Z_propeller'",  # not in all versions
}
REFUSED = {name: reason for name, reason in BROKEN.items() if name in FILES}
"""Files that do not load, and what is said about them."""

ODD = {
    "romeo_description/urdf/romeo.urdf": ("LFinger21Link", "'LFinger21Link' moves but has no mass"),
    "romeo_description/urdf/romeo_laas_small.urdf": (
        "l_gripper",
        "link 'body' has an inertia that is not positive definite: principal moments -0.0213",
    ),
}
"""Files whose mass matrix is not positive definite, what is to blame, and what is said at once."""

OUR_GRAVITY = np.array([0.0, 0.0, -9.81])


def _pinocchio(name: str) -> pin.Model:
    """Pinocchio's own reading; it prints what urdfdom complains of, which is no concern here."""
    assert ROBOTS is not None
    keep = os.dup(2)
    try:
        with open(os.devnull, "wb") as sink:
            os.dup2(sink.fileno(), 2)
            return pin.buildModelFromUrdf(str(ROBOTS / name))
    finally:
        os.dup2(keep, 2)
        os.close(keep)


def _angle_to_circle(ours: pin.Model, theirs: pin.Model, q: Array) -> Array:
    """Our configuration in Pinocchio's coordinates."""
    mapped = np.empty(theirs.nq)
    for index in range(1, theirs.njoints):
        mine, yours = ours.joints[index], theirs.joints[index]
        value = q[mine.idx_q : mine.idx_q + mine.nq]
        if yours.nq == 2 and mine.nq == 1:
            value = np.array([np.cos(value[0]), np.sin(value[0])])
        mapped[yours.idx_q : yours.idx_q + yours.nq] = value
    return mapped


def _unbounded(values: Array) -> Array:
    """Limits with infinity for "none", which Pinocchio writes as the largest float."""
    largest = np.finfo(float).max
    return np.where(np.abs(values) >= largest, np.copysign(np.inf, values), values)


def _same_limits(robot: pl.Mechanism, theirs: pin.Model) -> None:
    """Limits and losses joint by joint."""
    ours = robot.model
    for index in range(1, ours.njoints):
        mine, yours, name = ours.joints[index], theirs.joints[index], ours.names[index]
        v = slice(mine.idx_v, mine.idx_v + mine.nv)
        for label in ("upperEffortLimit", "upperVelocityLimit", "damping", "upperDryFrictionLimit"):
            expected = _unbounded(getattr(theirs, label)[v])
            np.testing.assert_array_equal(getattr(ours, label)[v], expected, f"{name} {label}")
        if yours.nq != 1:
            assert np.isinf(ours.upperPositionLimit[mine.idx_q]), name
            assert np.isinf(ours.lowerPositionLimit[mine.idx_q]), name
            continue
        limits = np.array(
            [ours.lowerPositionLimit[mine.idx_q], ours.upperPositionLimit[mine.idx_q]]
        )
        expected = np.array(
            [theirs.lowerPositionLimit[yours.idx_q], theirs.upperPositionLimit[yours.idx_q]]
        )
        if np.all(np.isinf(limits)) and np.all(np.abs(expected) >= 1e16):
            continue  # what stands for infinity
        if np.all(np.isinf(limits)):
            # Pinocchio reads limits that are not given as zero, a joint that cannot move.
            (said,) = (text for text in robot.warnings if "has no position limits" in text)
            assert f"'{name}'" in said or " more" in said
            np.testing.assert_array_equal(expected, [0.0, 0.0], name)
        else:
            np.testing.assert_array_equal(limits, expected, name)


def _same_tree(robot: pl.Mechanism, theirs: pin.Model) -> None:
    """Names, placements, mass matrix and inverse dynamics at random states."""
    ours = robot.model
    assert list(ours.names)[1:] == list(theirs.names)[1:]
    assert list(ours.parents) == list(theirs.parents)
    assert (robot.nv, ours.njoints) == (theirs.nv, theirs.njoints)
    assert robot.loops == ()
    np.testing.assert_array_equal(robot.gravity, OUR_GRAVITY)
    links = [frame.name for frame in theirs.frames if frame.type == pin.FrameType.BODY]
    # The ground is the world here: a link of that name gets another one, with a warning.
    names = {link: "ground_link" if link == "ground" else link for link in links}
    assert set(robot.bodies) == set(names.values())
    assert ("ground" in links) == any("'ground_link'" in warning for warning in robot.warnings)
    rng = np.random.default_rng(5)
    our_data, their_data = ours.createData(), theirs.createData()
    for _ in range(2):
        q, v, a = rng.uniform(-3, 3, robot.nq), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        p = _angle_to_circle(ours, theirs, q)
        torque, expected = pin.rnea(ours, our_data, q, v, a), pin.rnea(theirs, their_data, p, v, a)
        scale = 1 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-10 * scale)
        for mine, yours in zip(our_data.oMi, their_data.oMi, strict=True):
            np.testing.assert_allclose(mine.homogeneous, yours.homogeneous, rtol=0, atol=1e-12)
        M, expected = pin.crba(ours, our_data, q), pin.crba(theirs, their_data, p)
        scale = 1 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(M, expected, rtol=0, atol=1e-10 * scale)
        pin.framesForwardKinematics(ours, our_data, q)
        pin.framesForwardKinematics(theirs, their_data, p)
        for link in links:
            mine = our_data.oMf[ours.getFrameId(names[link], pin.FrameType.BODY)]
            yours = their_data.oMf[theirs.getFrameId(link, pin.FrameType.BODY)]
            np.testing.assert_allclose(
                mine.homogeneous, yours.homogeneous, rtol=0, atol=1e-12, err_msg=link
            )


def test_all_robots_of_the_wheel_are_here() -> None:
    assert len(FILES) >= 60
    assert REFUSED


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED])
def test_the_tree_is_that_of_pinocchio(name: str) -> None:
    assert ROBOTS is not None
    robot, theirs = pl.load(ROBOTS / name), _pinocchio(name)
    _same_tree(robot, theirs)
    _same_limits(robot, theirs)
    constraints = pl.Constraints(robot)
    assert len(constraints) == len(robot.couplings)
    assert np.all(np.isfinite(constraints.residual(robot.neutral)))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_a_machine_is_refused_with_its_reason(name: str) -> None:
    assert ROBOTS is not None
    with pytest.raises(pl.LoadError) as caught:
        pl.load(ROBOTS / name)
    message = str(caught.value)
    assert REFUSED[name] in message
    assert str(ROBOTS / name) in message


@pytest.mark.parametrize("name", sorted(ODD))
def test_odd_masses_are_said_at_once_and_blamed_when_they_matter(name: str) -> None:
    assert ROBOTS is not None
    robot = pl.load(ROBOTS / name)
    link, said = ODD[name]
    assert any(said in warning for warning in robot.warnings)
    assert not any(said in text for text in pl.load(ROBOTS / name, kinematics_only=True).warnings)
    with pytest.raises(pl.PinloopError, match=f"not positive definite.*'{link}'.* lack mass"):
        pl.simulate(robot, robot.neutral, until=0.1)


def _count(name: str, what: Any) -> int:
    assert ROBOTS is not None
    text = (ROBOTS / name).read_text()
    return int(text.count(what))


def test_meshes_of_the_wheel_are_found() -> None:
    """package://example-robot-data/... lies among the ancestors of the file itself."""
    assert ROBOTS is not None
    name = "panda_description/urdf/panda.urdf"
    robot = pl.load(ROBOTS / name)
    meshes = [shape.shape.path for shape in robot.geometry if shape.shape.kind == "mesh"]
    assert len(meshes) == _count(name, "<mesh ") > 10
    for path in meshes:
        assert path is not None and path.is_file() and ROBOTS in path.parents


def test_mimic_joints_become_couplings() -> None:
    assert ROBOTS is not None
    robot = pl.load(ROBOTS / "panda_description/urdf/panda.urdf")
    (coupling,) = robot.couplings
    assert coupling.joints == ("panda_finger_joint2", "panda_finger_joint1")
    assert coupling.polynomials == ((0.0, 1.0), (0.0, -1.0))
    assert "panda_finger_joint2" not in robot.actuated
    assert "panda_finger_joint1" in robot.actuated
