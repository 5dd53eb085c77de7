"""Masses that MJCF computes from shapes, against integrals over slices and sums of boxes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import trimesh
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad

from pinloop.errors import LoadError
from pinloop.model.description import Body, Description

from .mjcf_by_hand import read

Array = NDArray[np.float64]
Solid = tuple[float, Array, Array]
"""Mass, centre, inertia about the centre."""


def first(bodies: str, before: str = "", directory: Path | None = None) -> Body:
    text = f"<mujoco>{before}<worldbody>{bodies}</worldbody></mujoco>"
    return read(text, directory).bodies[0]


def check(body: Body, solid: Solid, rtol: float = 1e-9) -> None:
    mass, com, inertia = solid
    np.testing.assert_allclose(body.mass, mass, rtol=rtol)
    np.testing.assert_allclose(body.com, com, atol=rtol)
    np.testing.assert_allclose(body.inertia, inertia, rtol=rtol, atol=rtol * np.max(inertia))


def box(sizes: ArrayLike, centre: ArrayLike = (0, 0, 0), density: float = 1000.0) -> Solid:
    """A box with full side lengths."""
    x, y, z = np.asarray(sizes, dtype=float)
    mass = density * x * y * z
    inertia = mass / 12 * np.diag((y * y + z * z, x * x + z * z, x * x + y * y))
    return mass, np.asarray(centre, dtype=float), inertia


def together(*solids: Solid) -> Solid:
    """Several solids as one, by the parallel axis theorem with explicit sums."""
    mass = sum(m for m, _, _ in solids)
    com = np.asarray(sum(m * c for m, c, _ in solids)) / mass
    inertia = np.zeros((3, 3))
    for m, c, own in solids:
        x, y, z = c - com
        steiner = np.array(
            [[y * y + z * z, -x * y, -x * z], [0, x * x + z * z, -y * z], [0, 0, x * x + y * y]]
        )
        inertia += own + m * (steiner + np.triu(steiner, 1).T)
    return mass, com, inertia


def slices(a: Callable[[float], float], b: Callable[[float], float], end: float) -> Solid:
    """Integral over elliptic slices with half axes a(z), b(z), from -end to end, density 1000."""

    def over(f: Callable[[float], float]) -> float:
        return float(2 * quad(f, 0, end, epsabs=1e-14, epsrel=1e-12, limit=200)[0])

    mass = over(lambda z: np.pi * a(z) * b(z))
    xx = over(lambda z: np.pi * a(z) ** 3 * b(z) / 4)
    yy = over(lambda z: np.pi * a(z) * b(z) ** 3 / 4)
    zz = over(lambda z: np.pi * a(z) * b(z) * z * z)
    inertia = np.diag((yy + zz, xx + zz, xx + yy))
    return 1000 * mass, np.zeros(3), 1000 * inertia


def cap(z: float) -> float:
    """Radius of a capsule with radius 0.3 and half length 0.5 of its cylinder."""
    return 0.3 if z < 0.5 else float(np.sqrt(max(0.0, 0.09 - (z - 0.5) ** 2)))


def rounded(z: float) -> float:
    return float(np.sqrt(max(0.0, 1 - (z / 0.4) ** 2)))


@pytest.mark.parametrize(
    ("geom", "solid"),
    [
        ('type="box" size="0.1 0.2 0.3"', box((0.2, 0.4, 0.6))),
        ('type="cylinder" size="0.3 0.4"', slices(lambda z: 0.3, lambda z: 0.3, 0.4)),
        ('type="capsule" size="0.3 0.5"', slices(cap, cap, 0.8)),
        (
            'type="ellipsoid" size="0.2 0.3 0.4"',
            slices(lambda z: 0.2 * rounded(z), lambda z: 0.3 * rounded(z), 0.4),
        ),
        ('size="0.4"', slices(lambda z: 0.4 * rounded(z), lambda z: 0.4 * rounded(z), 0.4)),
    ],
)
def test_primitives(geom: str, solid: Solid) -> None:
    check(first(f"<body><geom {geom}/></body>"), solid, 1e-8)
    mass, com, inertia = solid
    light = first(f'<body><geom {geom} mass="0.3" density="7"/></body>')
    check(light, (0.3, com, inertia * 0.3 / mass), 1e-8)


def test_a_body_without_anything_weighs_nothing() -> None:
    body = first("<body/>")
    assert body.mass == 0 and not np.any(body.com)
    np.testing.assert_array_equal(body.inertia, np.zeros((3, 3)))


def test_geoms_of_a_body_add_up_where_they_are() -> None:
    body = first(
        """<body pos="9 9 9"><geom type="box" size="0.1 0.2 0.3" pos="1 0 0"/>
        <frame pos="0 0 1"><geom type="box" size="0.1 0.2 0.3" pos="0 2 0" euler="0 0 90"
        density="500"/></frame>
        <geom type="capsule" fromto="1 0 0 3 0 0" size="0.5" mass="0"/></body>"""
    )
    turned = box((0.4, 0.2, 0.6), (0, 2, 1), 500.0)
    check(body, together(box((0.2, 0.4, 0.6), (1, 0, 0)), turned))


def test_an_inertial_wins_unless_told_otherwise() -> None:
    bodies = """<body><inertial pos="1 2 3" mass="2" diaginertia="1 2 3" euler="0 0 90"/>
        <geom type="box" size="0.1 0.2 0.3"/></body>"""
    own = (2.0, np.array((1.0, 2.0, 3.0)), np.diag((2.0, 1.0, 3.0)))
    for word in ("auto", "false"):
        check(first(bodies, f'<compiler inertiafromgeom="{word}"/>'), own)
    solid = box((0.2, 0.4, 0.6))
    check(first(bodies, '<compiler inertiafromgeom="true"/>'), solid)
    with pytest.raises(LoadError, match="needs an <inertial>"):
        first('<body><geom size="1"/></body>', '<compiler inertiafromgeom="false"/>')


def test_fullinertia() -> None:
    inertial = '<inertial pos="0 0 0" mass="2" fullinertia="4 5 6 0.1 0.2 0.3" {}/>'
    body = first(f"<body>{inertial.format('')}</body>")
    np.testing.assert_array_equal(body.inertia, [[4, 0.1, 0.2], [0.1, 5, 0.3], [0.2, 0.3, 6]])
    for extra in ('euler="0 0 1"', 'diaginertia="1 1 1"'):
        with pytest.raises(LoadError, match="must not be given"):
            first(f"<body>{inertial.format(extra)}</body>")
    bare = read(
        '<mujoco><worldbody><body><inertial pos="0 0 0" mass="2"/></body></worldbody></mujoco>'
    )
    assert bare.bodies[0].mass == 2 and not np.any(bare.bodies[0].inertia)
    assert "the inertia is taken as zero" in bare.warnings[0]


def test_compiler_settings_of_mass() -> None:
    light = (
        '<body><inertial pos="0 0 0" mass="0.1" diaginertia="0.1 0.2 0.3" euler="0 0 30"/></body>'
    )
    R = np.array([[np.sqrt(3) / 2, -0.5, 0], [0.5, np.sqrt(3) / 2, 0], [0, 0, 1]])
    bounded = first(light, '<compiler boundmass="0.4" boundinertia="0.15"/>')
    check(bounded, (0.4, np.zeros(3), R @ np.diag((0.15, 0.2, 0.3)) @ R.T))
    odd = '<body><inertial pos="0 0 0" mass="1" diaginertia="1 2 6"/></body>'
    check(first(odd, '<compiler balanceinertia="true"/>'), (1.0, np.zeros(3), 3 * np.eye(3)))
    check(first(odd), (1.0, np.zeros(3), np.diag((1.0, 2.0, 6.0))))
    flat = odd.replace("1 2 6", "1 1.5 2.5")
    check(
        first(flat, '<compiler balanceinertia="true"/>'), (1.0, np.zeros(3), np.diag((1, 1.5, 2.5)))
    )
    text = '<mujoco><compiler settotalmass="4"/><worldbody>{}{}</worldbody></mujoco>'
    heavy = '<body><inertial pos="0 0 0" mass="1.5" diaginertia="1 1 1"/></body>'
    one, other = read(text.format(light, heavy)).bodies
    np.testing.assert_allclose((one.mass, other.mass), (0.25, 3.75))
    np.testing.assert_allclose(other.inertia, 2.5 * np.eye(3))


def test_only_some_groups_have_mass() -> None:
    body = '<body><geom type="box" size="1 1 1"/><geom size="1" group="4"/></body>'
    check(first(body, '<compiler inertiagrouprange="0 2"/>'), box((2, 2, 2)))
    ball = 4 / 3 * np.pi * 1000
    check(
        first(body, '<compiler inertiagrouprange="1 4"/>'),
        (ball, np.zeros(3), 0.4 * ball * np.eye(3)),
    )


def prism(rectangles: Sequence[tuple[float, ...]], outline: list[tuple[float, float]]) -> str:
    """Attributes of a mesh of height 2 over (x0, y0, x1, y1) with a counter-clockwise outline."""
    vertices: list[tuple[float, float, float]] = []
    faces: list[tuple[int, int, int]] = []

    def quad_of(*corners: tuple[float, float, float]) -> None:
        start = len(vertices)
        vertices.extend(corners)
        faces.extend([(start, start + 1, start + 2), (start, start + 2, start + 3)])

    for x0, y0, x1, y1 in rectangles:
        quad_of((x0, y0, 2), (x1, y0, 2), (x1, y1, 2), (x0, y1, 2))
        quad_of((x0, y1, 0), (x1, y1, 0), (x1, y0, 0), (x0, y0, 0))
    for (x0, y0), (x1, y1) in zip(outline, outline[1:] + outline[:1], strict=True):
        quad_of((x0, y0, 0), (x1, y1, 0), (x1, y1, 2), (x0, y0, 2))
    numbers = " ".join(str(x) for corner in vertices for x in corner)
    indices = " ".join(str(i) for face in faces for i in face)
    return f'vertex="{numbers}" face="{indices}"'


U_BOXES = [(0.0, 0.0, 3.0, 1.0), (0.0, 1.0, 1.0, 2.0), (2.0, 1.0, 3.0, 2.0)]
U_OUTLINE = [
    *((0.0, 0.0), (3.0, 0.0), (3.0, 2.0), (2.0, 2.0)),
    *((2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0)),
]
U_SHAPE = prism(U_BOXES, U_OUTLINE)
U_SOLID = together(
    box((3, 1, 2), (1.5, 0.5, 1)), box((1, 1, 2), (0.5, 1.5, 1)), box((1, 1, 2), (2.5, 1.5, 1))
)
BRICK = prism([(1.0, 2.0, 2.0, 5.0)], [(1.0, 2.0), (2.0, 2.0), (2.0, 5.0), (1.0, 5.0)])


def of_mesh(attributes: str, geom: str = "") -> Body:
    return of_model(attributes, geom).bodies[0]


def of_model(attributes: str, geom: str = "") -> Description:
    assets = f'<asset><mesh name="m" {attributes}/></asset>'
    body = f'<body><geom type="mesh" mesh="m" {geom}/></body>'
    return read(f"<mujoco>{assets}<worldbody>{body}</worldbody></mujoco>")


def test_exact_and_convex_meshes() -> None:
    check(of_mesh(f'{U_SHAPE} inertia="exact"'), U_SOLID)
    check(of_mesh(f'{U_SHAPE} inertia="convex"'), box((3, 2, 2), (1.5, 1, 1)))
    small = of_mesh(f'{U_SHAPE} inertia="convex" scale="0.1 0.1 0.1"')
    check(small, box((0.3, 0.2, 0.2), (0.15, 0.1, 0.1)))
    mirrored = of_mesh(f'{U_SHAPE} inertia="exact" scale="1 1 -2"')
    stretched = [
        ((3, 1, 4), (1.5, 0.5, -2)),
        ((1, 1, 4), (0.5, 1.5, -2)),
        ((1, 1, 4), (2.5, 1.5, -2)),
    ]
    check(mirrored, together(*(box(size, centre) for size, centre in stretched)))
    pyramid = of_mesh('vertex="0 0 0 3 0 0 3 2 0 0 2 0 1 1 4 1 1 1"', 'pos="0 0 5"')
    np.testing.assert_allclose(pyramid.mass, 1000 * 3 * 2 * 4 / 3)
    np.testing.assert_allclose(pyramid.com, 0.75 * np.array((1.5, 1, 0)) + (0.25, 0.25, 6))


HOOK = prism(
    [(0.0, 0.0, 4.0, 1.0), (0.0, 1.0, 1.0, 2.0), (3.0, 1.0, 4.0, 5.0)],
    [
        *((0.0, 0.0), (4.0, 0.0), (4.0, 5.0), (3.0, 5.0)),
        *((3.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0)),
    ],
)


@pytest.mark.parametrize(
    ("mode", "mass", "com", "inertia"),
    [
        (
            "legacy",
            25.06136089413856,
            (2.4199014098, 1.7778624500),
            (50.2622456645, 40.5768872709, 76.0145885778, -18.090508086),
        ),
        ("exact", 18.0, (2.5, 1.7222222222), (42.6111111111, 35.5, 66.1111111111, -16.0)),
        (
            "convex",
            31.0,
            (2.2903225806, 2.0645161290),
            (63.0376344086, 47.5537634409, 89.9247311828, -15.1693548387),
        ),
        (
            "shell",
            58.0,
            (2.4655172414, 1.8103448276),
            (169.2471264368, 140.0977011494, 246.6781609195, -54.6206896552),
        ),
    ],
)
def test_a_mesh_has_the_moments_that_mujoco_gives_it(
    mode: str, mass: float, com: tuple[float, float], inertia: tuple[float, ...]
) -> None:
    """The numbers are body_mass, body_ipos and body_inertia of MuJoCo 4.0.0."""
    xx, yy, zz, xy = inertia
    solid = (mass, np.array((*com, 1.0)), np.array([[xx, xy, 0], [xy, yy, 0], [0, 0, zz]]))
    check(of_mesh(f'{HOOK} inertia="{mode}"', 'density="1"'), solid)


def test_convex_solids_are_not_overcounted() -> None:
    check(of_mesh(BRICK), box((1, 3, 2), (1.5, 3.5, 1)))
    check(of_mesh(f'{BRICK} inertia="legacy"'), box((1, 3, 2), (1.5, 3.5, 1)))


def test_an_exact_volume_needs_triangles_that_face_one_side() -> None:
    vertices, faces = HOOK.split(" face=")
    inside_out = f'{vertices} face="{" ".join(faces.strip(chr(34)).split()[::-1])}" inertia="exact"'
    check(of_mesh(inside_out), of_mesh_solid(f'{HOOK} inertia="exact"'))
    for mirror in ("", ' scale="1 -1 1"'):
        for shape, warnings in ((inside_out, 1), (f'{HOOK} inertia="exact"', 0)):
            said = [text for text in of_model(shape + mirror).warnings if "inside out" in text]
            assert len(said) == warnings
    turned = faces.strip('"').split()
    turned[:3] = turned[2::-1]
    mixed = f'{vertices} face="{" ".join(turned)}" inertia="exact"'
    with pytest.raises(LoadError, match=r"has 1 edges with triangles that face opposite sides"):
        of_mesh(mixed)
    of_mesh(mixed.replace("exact", "legacy"))


def of_mesh_solid(attributes: str) -> Solid:
    body = of_mesh(attributes)
    return body.mass, body.com, body.inertia


def test_only_the_whole_hull_is_known() -> None:
    few = f'<asset><mesh name="m" {HOOK} inertia="convex" maxhullvert="5"/></asset>'
    text = f'<mujoco>{few}<worldbody><body><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    (warning,) = (text for text in read(text).warnings if "maxhullvert" in text)
    assert "its mass is that of the whole hull" in warning


def test_a_hollow_cube() -> None:
    cube = prism([(0.0, 0.0, 2.0, 2.0)], [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)])
    body = of_mesh(f'{cube} inertia="shell"', 'mass="9"')
    # A hollow cube with side s has 5/18 m s^2 about each axis through its centre.
    check(body, (9.0, np.ones(3), 5 / 18 * 9 * 4 * np.eye(3)))


def test_a_mesh_is_shifted_then_turned_then_scaled() -> None:
    body = of_mesh(f'{BRICK} refpos="1 2 0" refquat="1 0 0 1" scale="2 3 4"', 'pos="0 0 7"')
    # (x, y, z) in [0,1] x [0,3] x [0,2] after the shift; turned back by 90 deg about z to
    # (y, -x, z); scaled to [0,6] x [-3,0] x [0,8].
    check(body, box((6, 3, 8), (3, -1.5, 11)))


def test_mesh_files(tmp_path: Path) -> None:
    mesh = trimesh.creation.box((0.2, 0.4, 0.6))
    mesh.apply_translation((1, 0, 0))
    (tmp_path / "parts").mkdir()
    mesh.export(tmp_path / "parts" / "brick.stl")
    before = '<compiler meshdir="parts"/><asset><mesh file="brick.stl" scale="2 1 1"/></asset>'
    body = first('<body><geom type="mesh" mesh="brick"/></body>', before, tmp_path)
    check(body, box((0.4, 0.4, 0.6), (2, 0, 0)), 1e-6)
    (tmp_path / "parts" / "brick.stl").write_bytes(b"no mesh at all")
    with pytest.raises(LoadError, match=r"<mesh> has a mesh file that cannot be read"):
        first('<body><geom type="mesh" mesh="brick"/></body>', before, tmp_path)


@pytest.mark.parametrize(
    ("attributes", "geom", "message"),
    [
        (BRICK, 'mass="-1"', "mass -1.0 kg"),
        ('vertex="0 0 0 1"', "", "4 numbers as vertex"),
        ('vertex="0 0 0 1 0 0 0 1 0" face="0 1 3"', "", "faces that use other than its 3"),
        ('vertex="0 0 0 1 0 0 0 1 0 1 1 0"', "", "convex hull is flat"),
        ('vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"', "", "encloses no volume"),
        (f'{BRICK} inertia="solid"', "", "inertia 'solid'; it must be one of: convex"),
    ],
)
def test_mistakes(attributes: str, geom: str, message: str) -> None:
    with pytest.raises(LoadError, match=re.escape(message)):
        of_mesh(attributes, geom)


def plates(x: float, y: float, z: float) -> Solid:
    """The surface of a box with full side lengths: six plates."""
    flat = [(0.0, y, z), (x, 0.0, z), (x, y, 0.0)]
    parts = []
    for axis, sides in enumerate(flat):
        area = np.prod([side for side in sides if side])
        squares = np.square(sides)
        own = float(area) / 12 * np.diag(squares.sum() - squares)
        at = np.eye(3)[axis] * (x, y, z) / 2
        parts += [(float(area), at, own), (float(area), -at, own)]
    return together(*parts)


def drum(r: float, h: float) -> Solid:
    """The surface of a cylinder: a tube and two disks."""
    tube, disk = 2 * np.pi * r * h, np.pi * r * r
    ring = np.diag((r * r / 2 + h * h / 12, r * r / 2 + h * h / 12, r * r))
    lid = np.diag((r * r / 4, r * r / 4, r * r / 2))
    return together(
        (tube, np.zeros(3), tube * ring),
        *((disk, np.array((0, 0, side * h / 2)), disk * lid) for side in (-1, 1)),
    )


def pill(r: float, h: float) -> Solid:
    """The surface of a capsule: a tube and two half spheres, whose centres of mass are at r/2."""
    tube, half = 2 * np.pi * r * h, 2 * np.pi * r * r
    ring = np.diag((r * r / 2 + h * h / 12, r * r / 2 + h * h / 12, r * r))
    dome = r * r * np.diag((5 / 12, 5 / 12, 2 / 3))
    return together(
        (tube, np.zeros(3), tube * ring),
        *((half, np.array((0, 0, side * (h + r) / 2)), half * dome) for side in (-1, 1)),
    )


EGG = 1.1160403107978032
"""Area and moments that MuJoCo 4.0.0 gives to an ellipsoid of half axes 0.2, 0.3, 0.4 m."""
EGG_MOMENTS = np.diag((0.07584638, 0.06215405, 0.04446171))


@pytest.mark.parametrize(
    ("geom", "solid", "rtol"),
    [
        ('size="0.4"', (0.64 * np.pi, np.zeros(3), 0.64 * np.pi * 0.32 / 3 * np.eye(3)), 1e-12),
        ('type="box" size="0.1 0.2 0.3"', plates(0.2, 0.4, 0.6), 1e-12),
        ('type="cylinder" size="0.3 0.4"', drum(0.3, 0.8), 1e-12),
        ('type="capsule" size="0.3 0.5"', pill(0.3, 1.0), 1e-12),
        ('type="ellipsoid" size="0.2 0.3 0.4"', (EGG, np.zeros(3), EGG * EGG_MOMENTS), 1e-5),
    ],
)
def test_shells_of_primitives(geom: str, solid: Solid, rtol: float) -> None:
    check(first(f'<body><geom {geom} density="1" shellinertia="true"/></body>'), solid, rtol)
    mass, com, inertia = solid
    heavy = first(f'<body><geom {geom} mass="3" shellinertia="true"/></body>')
    check(heavy, (3.0, com, inertia * 3 / mass), rtol)
