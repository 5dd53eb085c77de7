"""What the reader makes of MJCF, against MuJoCo itself (skipped where it is not installed)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from pinloop.description import Body
from pinloop.load.mjcf import read_mjcf
from pinloop.load.xmltools import parse_xml

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
    return read_mjcf(parse_xml(text, "x.xml"), resolve=lambda name: None, directory=None).bodies[0]


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
        size="0.2 0.3 0.4" pos="1 2 3" euler="10 20 30" shellinertia="{shell}"/></body></worldbody></mujoco>""",
        1e-5 if kind == "ellipsoid" else 1e-10,
    )
