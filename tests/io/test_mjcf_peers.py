"""What the reader makes of MJCF, against MuJoCo itself (skipped where it is not installed)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import trimesh
from numpy.typing import NDArray

import pinloop as pl
from pinloop.boundary.xml import parse_xml
from pinloop.io.mjcf.reader import read_mjcf
from pinloop.model.description import Body

from .test_mjcf_copies import HAND, MISSING, TIP

mujoco: Any = pytest.importorskip("mujoco")

Array = NDArray[np.float64]

MODES = ("convex", "exact", "legacy", "shell")


def spiky(rng: np.random.Generator) -> trimesh.Trimesh:
    """A ball with random radii, somewhere: often not even star-shaped about its centre of mass."""
    ball = trimesh.creation.icosphere(subdivisions=1)
    ball.vertices = ball.vertices * rng.uniform(0.1, 1, (len(ball.vertices), 1))
    return ball.apply_translation(rng.uniform(-1, 1, 3))


def joined(rng: np.random.Generator) -> trimesh.Trimesh:
    """Two solids in one mesh, apart or through each other."""
    other = trimesh.creation.box(rng.uniform(0.1, 1, 3)).apply_translation(rng.uniform(-1, 1, 3))
    return trimesh.util.concatenate([spiky(rng), other])


def opened(rng: np.random.Generator) -> trimesh.Trimesh:
    """A ball with a hole."""
    ball = spiky(rng)
    return trimesh.Trimesh(ball.vertices, ball.faces[:60], process=False)


def doubled(rng: np.random.Generator) -> trimesh.Trimesh:
    """Corners for each triangle of its own, as STL has them, and triangles without area."""
    corners = np.asarray(spiky(rng).triangles).reshape(-1, 3)
    faces = np.arange(len(corners)).reshape(-1, 3)
    return trimesh.Trimesh(corners, np.vstack([faces, [[0, 0, 4]]]), process=False)


def ring(rng: np.random.Generator) -> trimesh.Trimesh:
    torus = trimesh.creation.torus(0.5, 0.15, major_sections=12, minor_sections=8)
    return torus.apply_translation(rng.uniform(-1, 1, 3))


def ours(text: str) -> Body:
    return read_mjcf(parse_xml(text, "x.xml"), resolve=lambda name: None).bodies[0]


def check_moments(text: str, rtol: float) -> None:
    model = mujoco.MjModel.from_xml_string(text)
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    R = turn.reshape(3, 3)
    inertia = R @ np.diag(model.body_inertia[1]) @ R.T
    body = ours(text)
    np.testing.assert_allclose(body.mass, model.body_mass[1], rtol=rtol)
    np.testing.assert_allclose(body.com, model.body_ipos[1], atol=rtol)
    np.testing.assert_allclose(body.inertia, inertia, rtol=0, atol=rtol * np.abs(inertia).max())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [spiky, joined, opened, doubled, ring])
@pytest.mark.parametrize("seed", range(4))
def test_moments_of_meshes(make: Any, mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mesh = make(rng)
    vertices = " ".join(repr(float(x)) for x in np.asarray(mesh.vertices).ravel())
    faces = " ".join(str(i) for i in np.asarray(mesh.faces).ravel())
    mirror = 'scale="1 -1.5 2"' if seed % 2 else ""
    # MuJoCo keeps vertices in single precision.
    check_moments(
        f"""<mujoco><asset><mesh name="m" vertex="{vertices}" face="{faces}" inertia="{mode}"
        {mirror}/></asset><worldbody><body><freejoint align="false"/>
        <geom type="mesh" mesh="m" pos="1 2 3" euler="10 20 30"/></body></worldbody></mujoco>""",
        3e-6,
    )


@pytest.mark.parametrize("shell", ["false", "true"])
@pytest.mark.parametrize("kind", ["sphere", "box", "ellipsoid", "cylinder", "capsule"])
def test_moments_of_primitives(kind: str, shell: str) -> None:
    # The shell of an ellipsoid is a difference of ellipsoids there, with a layer of 1e-6 m.
    check_moments(
        f"""<mujoco><worldbody><body><freejoint align="false"/><geom type="{kind}"
        size="0.2 0.3 0.4" pos="1 2 3" euler="10 20 30" shellinertia="{shell}"/></body>
        </worldbody></mujoco>""",
        1e-5 if kind == "ellipsoid" else 1e-10,
    )


MASS = '<inertial pos="0.1 0.2 0.3" mass="1" diaginertia="1 1 1"/>'
FINGERS = f"""<mujoco><compiler angle="radian"/><option jacobian="dense"/><worldbody>
<replicate count="3" euler="0 0 2.0944" offset="0.3 0.1 0.2" sep="_">
  <body name="a" pos="1 0 0" euler="0.1 0.2 0.3">{MASS}<joint name="ja" axis="0 1 0" ref="0.2"/>
    <site name="s" pos="0.1 0.4 0.8" euler="0.3 0.2 0.1"/>
    <body name="b" pos="0 0 1">{MASS}<joint name="jb" axis="1 0.1 0" pos="0.1 0 0"/></body>
    <body name="c" pos="0 0.5 1">{MASS}<joint name="jc" axis="1 0 0" ref="-0.3"/>
      <joint name="jd" axis="0 1 0"/><joint name="je" axis="0 0 1" pos="0 0 0.1"/>
      <site name="t" pos="-0.1 0.2 0.1" euler="0.3 0.2 0.1"/></body></body>
</replicate>
<body name="d" pos="0 0 2" euler="1 0 0"><freejoint name="f" align="false"/>{MASS}
  <site name="u" pos="0 0 0.4"/></body></worldbody>
<tendon><fixed name="t1"><joint joint="ja" coef="2"/><joint joint="jb" coef="-1"/></fixed>
<fixed name="t2"><joint joint="jc" coef="1.5"/></fixed></tendon>
<equality>{{}}</equality></mujoco>"""

EQUALITIES = (
    '<tendon tendon1="t1" tendon2="t2" polycoef="0.1 2 0.3"/>',
    '<tendon tendon1="t1" polycoef="0.1"/>',
    '<joint joint1="ja" joint2="jc" polycoef="0.1 0.5 0.2 0 -0.1"/>',
    '<connect body1="b" body2="c" anchor="0.1 0.2 0.3"/>',
    '<connect body1="c" anchor="0.1 0.2 0.3"/>',
    '<connect site1="s" site2="t"/>',
    '<connect site1="u" site2="t_1"/>',
    '<weld body1="d" body2="c_1" anchor="0.1 0.2 0.3"/>',
    '<weld body1="d" body2="c_0" anchor="0.1 0.2 0.3" relpose="0.3 0.2 0.1 0.5 0.5 0.5 0.5"/>',
    '<weld site1="u" site2="t_2"/>',
    '<weld body1="d"/>',
)


def set_pose(robot: pl.Mechanism, q: Array, model: Any, data: Any) -> Array:
    """Give MuJoCo the pose; returns where our velocity coordinates are among MuJoCo's."""
    order = np.zeros(robot.nv, dtype=int)
    for name in robot.joints:
        ours, theirs = robot.model.joints[robot.model.getJointId(name)], model.joint(name)
        at, dof = int(theirs.qposadr[0]), int(theirs.dofadr[0])
        values = q[ours.idx_q : ours.idx_q + ours.nq]
        order[ours.idx_v : ours.idx_v + ours.nv] = np.arange(dof, dof + ours.nv)
        if ours.nq == 7:
            body = model.body(int(theirs.bodyid[0]))
            T = pin.SE3(pin.Quaternion(*body.quat).matrix(), np.array(body.pos)) * pin.XYZQUATToSE3(
                values
            )
            turn = np.zeros(4)
            mujoco.mju_mat2Quat(turn, T.rotation.ravel())
            data.qpos[at : at + 7] = (*T.translation, *turn)
        else:
            data.qpos[at] = values[0]
    mujoco.mj_forward(model, data)
    return order


def in_our_axes(J: Array, data: Any, model: Any) -> Array:
    """Rows with the linear velocity of a free body in its own axes, as Pinocchio has it."""
    J = J.copy()
    joint = model.joint("f")
    dof, body = int(joint.dofadr[0]), int(joint.bodyid[0])
    J[:, dof : dof + 3] = J[:, dof : dof + 3] @ data.xmat[body].reshape(3, 3)
    return J


def check_placement(T: pin.SE3, body: Any) -> None:
    np.testing.assert_allclose(T.translation, body.xpos, atol=1e-12)
    np.testing.assert_allclose(T.rotation.ravel(), body.xmat, atol=1e-12)


def span(J: Array) -> Array:
    """Projector on the row space."""
    _, values, rows = np.linalg.svd(J, full_matrices=False)
    rows = rows[values > 1e-9 * values[0]]
    return np.asarray(rows.T @ rows)


@pytest.mark.parametrize("equality", EQUALITIES)
def test_equalities(equality: str) -> None:
    """Placements and violations at random poses; the same motions where the loops are closed."""
    text = FINGERS.format(equality)
    robot = pl.load(text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rows = pl.Constraints(robot)
    assert len(rows.rows_of) == model.neq
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = robot.integrate(robot.neutral, rng.uniform(-1, 1, robot.nv))
        set_pose(robot, q, model, data)
        for body in robot.bodies:
            if "@" in body:
                continue
            check_placement(robot.placement(q, body), data.body(body))
        residual = rows.residual(q)
        for number, part in enumerate(rows.rows_of.values()):
            ours = residual[part]
            theirs = data.efc_pos[: data.ne][data.efc_id[: data.ne] == number]
            if len(ours) < 6:  # a weld's position and angle differ in their weights
                np.testing.assert_allclose(
                    np.linalg.norm(ours), np.linalg.norm(theirs), rtol=1e-9, atol=1e-12
                )
    q = pl.assemble(robot)
    order = set_pose(robot, q, model, data)
    np.testing.assert_allclose(data.efc_pos[: data.ne], 0, atol=1e-8)
    theirs = in_our_axes(data.efc_J.reshape(-1, model.nv)[: data.ne], data, model)[:, order]
    np.testing.assert_allclose(span(rows.jacobian(q)), span(theirs), atol=1e-7)


@pytest.mark.parametrize("attach", ['prefix="r_"', 'body="finger" prefix="r_"'])
def test_attached_models(attach: str, tmp_path: Path) -> None:
    for name, text in (("hand", HAND), ("tip", TIP)):
        (tmp_path / f"{name}.xml").write_text(text.replace(MISSING, ""))
    (tmp_path / "arm.xml").write_text(
        f"""<mujoco><asset><model name="hand" file="hand.xml"/></asset><worldbody>
        <body name="base" pos="3 0 0"><geom size="0.1" mass="5"/><joint name="jb" axis="0 1 0"/>
        <frame pos="0 1 0" euler="0 0 90"><attach model="hand" {attach}/></frame></body></worldbody>
        </mujoco>"""
    )
    robot = pl.load(tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    q = np.random.default_rng(2).uniform(-1, 1, robot.nq)
    set_pose(robot, q, model, data)
    rows = pl.Constraints(robot)
    assert model.neq == len(rows.rows_of) and model.nbody == len(robot.bodies) + 1
    for body in robot.description.bodies:
        check_placement(robot.placement(q, body.name), data.body(body.name))
        theirs = model.body(body.name)
        np.testing.assert_allclose(body.mass, theirs.mass[0], rtol=1e-12)
        np.testing.assert_allclose(body.com, theirs.ipos, atol=1e-12)
    for number, part in enumerate(rows.rows_of.values()):
        ours, theirs = rows.residual(q)[part], data.efc_pos[data.efc_id[: data.ne] == number]
        if len(ours) < 6:
            np.testing.assert_allclose(
                np.linalg.norm(ours), np.linalg.norm(theirs), rtol=1e-9, atol=1e-12
            )
