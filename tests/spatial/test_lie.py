"""Tests of `pinloop.spatial.lie` against 4x4 matrices, null spaces and brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm, null_space, orth

from pinloop.spatial.lie import (
    EVERYTHING,
    NOTHING,
    MotionGroupName,
    Subspace,
    identify,
    motion_cross,
    span,
)

Array = NDArray[np.float64]

bounded = settings(max_examples=40, deadline=None, derandomize=True)
numbers = st.floats(-2, 2, allow_nan=False)
twists = st.lists(numbers, min_size=6, max_size=6).map(np.array)
seeds = st.integers(0, 10**6)


def frame(seed: int, reach: float = 2.0) -> pin.SE3:
    """A random placement."""
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    turn = pin.Quaternion(quaternion / np.linalg.norm(quaternion)).toRotationMatrix()
    return pin.SE3(turn, rng.uniform(-reach, reach, 3))


def matrix(twist: Array) -> Array:
    """The 4x4 matrix of a twist, linear part first."""
    v, (x, y, z) = twist[:3], twist[3:]
    found = np.zeros((4, 4))
    found[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    found[:3, 3] = v
    return found


def vector(found: Array) -> Array:
    """The twist of a 4x4 matrix."""
    return np.array([*found[:3, 3], found[2, 1], found[0, 2], found[1, 0]])


def commutator(X: Array, Y: Array) -> Array:
    return vector(matrix(X) @ matrix(Y) - matrix(Y) @ matrix(X))


def bracket(X: Array, Y: Array) -> Array:
    return np.asarray(motion_cross(X[None], Y[None])[0])


# -- bracket --------------------------------------------------------------------------------


@bounded
@given(twists, twists)
def test_bracket_is_the_commutator_of_matrices(X: Array, Y: Array) -> None:
    np.testing.assert_allclose(bracket(X, Y), commutator(X, Y), atol=1e-14)
    np.testing.assert_allclose(bracket(X, Y), -bracket(Y, X), atol=1e-14)


@bounded
@given(twists, twists, twists)
def test_jacobi_identity(X: Array, Y: Array, Z: Array) -> None:
    total = bracket(X, bracket(Y, Z)) + bracket(Y, bracket(Z, X)) + bracket(Z, bracket(X, Y))
    np.testing.assert_allclose(total, 0, atol=1e-12)


def test_bracket_of_two_turns_by_hand() -> None:
    # Turning about x through (0, 0, 1) moves the origin along -(x cross z) = y.
    about_x, about_y = np.array([0, 1, 0, 1, 0, 0.0]), np.array([0, 0, 0, 0, 1, 0.0])
    # w_x cross w_y = z; w_x cross v_y + v_x cross w_y = 0 + y cross y = 0.
    np.testing.assert_array_equal(bracket(about_x, about_y), [0, 0, 0, 0, 0, 1])
    # A turn about z carries a shift along x into one along y.
    np.testing.assert_array_equal(bracket(np.eye(6)[5], np.eye(6)[0]), [0, 1, 0, 0, 0, 0])


def test_brackets_are_taken_row_by_row() -> None:
    X, Y = np.random.default_rng(1).normal(size=(2, 4, 6))
    np.testing.assert_allclose(motion_cross(X, Y)[2], commutator(X[2], Y[2]), atol=1e-14)


# -- span, sum, intersection ----------------------------------------------------------------


def assert_same(space: Subspace, columns: Array) -> None:
    """Whether a subspace is the span of ``columns``, by projectors."""
    basis = orth(columns, rcond=1e-9) if columns.size else np.zeros((6, 0))
    assert space.dim == basis.shape[1]
    np.testing.assert_allclose(space.projector, basis @ basis.T, atol=1e-7)
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(space.dim), atol=1e-12)


@bounded
@given(seeds, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_sum_and_intersection_of_subspaces_with_a_known_part_in_common(
    seed: int, common: int, first: int, second: int
) -> None:
    rng = np.random.default_rng(seed)
    assume(common + first + second <= 6)
    pool = rng.normal(size=(6, common + first + second))
    shared, own, other = np.split(pool, [common, common + first], axis=1)
    # Other vectors of the same spans, some of them more than once.
    A = np.hstack([shared, own]) @ rng.normal(size=(common + first, 5))
    B = np.hstack([shared, other]) @ rng.normal(size=(common + second, 5))
    assume(min(np.linalg.svd(pool)[1], default=1.0) > 1e-2)
    assume(np.linalg.matrix_rank(A, tol=1e-3) == common + first)
    assume(np.linalg.matrix_rank(B, tol=1e-3) == common + second)
    a, b = span(A), span(B)
    assert (a.dim, b.dim) == (common + first, common + second)
    assert_same(a + b, np.hstack([A, B]))
    # Brute force: what combinations of both bases agree.
    kernel = null_space(np.hstack([a.basis, -b.basis]), rcond=1e-9)
    assert_same(a & b, a.basis @ kernel[: a.dim])
    assert_same(a & b, shared)
    assert (a + b).dim + (a & b).dim == a.dim + b.dim
    assert (a + b).contains(A) and (a + b).contains(b.basis)
    assert a.contains((a & b).basis) and b.contains((b & a).basis)


@bounded
@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_grassmann_for_any_subspaces(seed: int, first: int, second: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = span(rng.normal(size=(6, first))), span(rng.normal(size=(6, second)))
    assert (a + b).dim == min(6, first + second)
    assert (a & b).dim == max(0, first + second - 6)


def test_span_knows_nothing_and_everything() -> None:
    assert span(np.zeros((6, 0))).dim == NOTHING.dim == span(np.zeros((6, 3))).dim == 0
    assert span(np.eye(6)).same(EVERYTHING)
    assert span(np.array([0, 0, 3.0, 0, 0, 0])).dim == 1
    assert (NOTHING & EVERYTHING).dim == (NOTHING + NOTHING).dim == 0


def test_span_measures_against_the_given_scale() -> None:
    tiny = np.array([[1e-12, 0, 0, 0, 0, 0], [0, 1e-12, 0, 0, 0, 0]]).T
    assert span(tiny).dim == 2
    assert span(tiny, scale=1.0).dim == 0
    assert span(np.column_stack([tiny[:, 0], 1e12 * tiny[:, 1]])).dim == 1


def test_contains_and_same() -> None:
    plane = span(np.eye(6)[:, [0, 1, 5]])
    assert plane.contains([1, 2, 0, 0, 0, 3.0]) and plane.contains(np.zeros(6))
    assert not plane.contains([1, 2, 1e-5, 0, 0, 3.0])
    assert not plane.contains(np.eye(6)[:, [0, 2]])
    assert plane.same(
        span(np.array([[1, 1, 0], [1, -1, 0], [0, 0, 0], *[[0] * 3] * 2, [1, 0, 2.0]]))
    )
    assert not plane.same(span(np.eye(6)[:, [0, 1]])) and not plane.same(span(np.eye(6)[:, :3]))


# -- algebras -------------------------------------------------------------------------------

HELIX = 0.3
"""Pitch of the helical classes below."""
x, y, z, rx, ry, rz = np.eye(6)
CLASSES: dict[str, list[Array]] = {
    "fixed": [],
    "revolute": [rz],
    "prismatic": [z],
    "helical": [rz + HELIX * z],
    "cylindrical": [z, rz],
    "planar translation": [x, y],
    "spatial translation": [x, y, z],
    "planar": [x, y, rz],
    "helical planar": [x, y, rz + HELIX * z],
    "spherical": [rx, ry, rz],
    "Schoenflies": [x, y, z, rz],
    "free": [x, y, z, rx, ry, rz],
}
"""Every class of subalgebras of se(3), in the frame where it looks simplest."""
NAMES = list(CLASSES)


def columns(kind: str) -> Array:
    return np.array(CLASSES[kind]).reshape(-1, 6).T


def anywhere(kind: str, seed: int) -> tuple[Subspace, pin.SE3]:
    """A class in a random frame, spanned by random combinations."""
    T, rng = frame(seed), np.random.default_rng(seed + 1)
    basis = columns(kind)
    return span(T.toActionMatrix() @ basis @ rng.normal(size=(basis.shape[1], 8))), T


def closed_by_force(vectors: Array) -> Array:
    """Span of all nested commutators of the columns, to the fourth level."""
    level = list(vectors.T)
    found = list(level)
    for _ in range(4):
        level = [commutator(X, Y) for X, Y in product(vectors.T, level)]
        level = [X / np.linalg.norm(X) for X in level if np.linalg.norm(X) > 1e-9]
        found += level
        # Nested brackets of generators span the algebra, so duplicates may go.
        level = list(orth(np.array(level).T, rcond=1e-9).T) if level else []
    return np.array(found).reshape(-1, 6).T


@bounded
@given(st.sampled_from(NAMES), st.integers(1, 3), seeds)
def test_closure_is_what_nested_commutators_span(kind: str, count: int, seed: int) -> None:
    space, _ = anywhere(kind, seed)
    some = space.basis @ np.random.default_rng(seed).normal(size=(space.dim, count))
    assume(space.dim == 0 or np.linalg.norm(some, axis=0).min() > 0.1)
    closed = span(some).closure()
    assert_same(closed, closed_by_force(some))
    assert closed.contains(some) and closed.is_algebra()
    assert closed.closure().same(closed)
    assert space.contains(closed.basis)


@pytest.mark.parametrize("kind", NAMES)
def test_every_class_is_closed(kind: str) -> None:
    space, _ = anywhere(kind, 5)
    assert space.is_algebra() and space.closure().same(space)


@pytest.mark.parametrize(
    ("generators", "kind"),
    [
        ([rz, rz + 2 * y], "planar"),
        ([rz, x], "planar"),
        ([rz, rx], "spherical"),
        ([rz, rz + 0.2 * z], "cylindrical"),
        ([rz, x + z], "Schoenflies"),
        ([rz + HELIX * z, rz + HELIX * z - y], "helical planar"),
        ([rz + HELIX * z, rz - 0.5 * y], "Schoenflies"),
        ([rz, rx + y], "spherical"),
        ([rz, rx + z], "free"),
        ([rx, x + z], "Schoenflies"),
        ([x, y + z], "planar translation"),
    ],
    ids=str,
)
def test_closures_that_engineers_know(generators: list[Array], kind: str) -> None:
    space = span(np.array(generators).T)
    assert not space.is_algebra() or kind in ("cylindrical", "planar translation")
    assert identify(space.closure()).kind == kind


@bounded
@given(seeds, st.integers(1, 3), seeds, st.sampled_from([1e-3, 0.1, 7.0, 1e3]))
def test_closure_commutes_with_frames_and_units(
    seed: int, count: int, place: int, unit: float
) -> None:
    rng = np.random.default_rng(seed)
    kind = NAMES[seed % len(NAMES)]
    some = columns(kind) @ rng.normal(size=(columns(kind).shape[1], count))
    T = frame(place)
    closed = span(some).closure()
    assert_same(span(T.toActionMatrix() @ some).closure(), T.toActionMatrix() @ closed.basis)
    assert closed.moved(T).same(span(T.toActionMatrix() @ some).closure())
    scale = np.diag([unit] * 3 + [1.0] * 3)
    assert span(scale @ some).closure().same(span(scale @ closed.basis))


@pytest.mark.parametrize(("off", "dim"), [(1e-3, 3), (1e-5, 3), (1e-13, 1)])
def test_nearly_coaxial_hinges(off: float, dim: int) -> None:
    tilted = np.cos(off) * rz + np.sin(off) * rx
    assert span(np.column_stack([rz, tilted])).closure().dim == dim
    beside = rz + off * y
    assert span(np.column_stack([rz, beside])).closure().dim == dim


def test_axes_that_nearly_meet() -> None:
    # The axis along z passes the one along x at the distance y = 1e-3.
    assert span(np.column_stack([rx, rz + 1e-3 * x])).closure().dim == 6
    assert span(np.column_stack([rx, rz + 1e-13 * x])).closure().dim == 3


def test_planes_that_are_nearly_parallel() -> None:
    for off, dim in ((1e-3, 1), (1e-6, 1), (1e-13, 3)):
        tilt = pin.SE3(pin.exp3(np.array([off, 0, 0])), np.zeros(3))
        plane = span(columns("planar"))
        common = plane & plane.moved(tilt)
        assert common.dim == dim
        assert common.contains(x)


# -- swept ----------------------------------------------------------------------------------


def ad(X: Array) -> Array:
    """Matrix of ``Y -> [X, Y]``."""
    return np.column_stack([commutator(X, Y) for Y in np.eye(6)])


@bounded
@given(seeds, st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_swept_is_what_the_motions_reach(seed: int, count: int, moves: int, axes: bool) -> None:
    rng = np.random.default_rng(seed)
    # Coordinate screws give invariant subspaces more often than random ones.
    pick = np.eye(6)[:, rng.permutation(6)] if axes else rng.normal(size=(6, 6))
    space, motions = span(pick[:, :count]), span(pick[:, count : count + moves])
    swept = space.swept(motions)
    assert swept.contains(space.basis)
    turned = expm(ad(motions.basis @ rng.normal(size=motions.dim))) @ swept.basis
    assert swept.contains(turned)
    reached = [space.basis]
    for _ in range(12):
        path = pin.SE3.Identity()
        for step in motions.basis @ rng.normal(size=(motions.dim, 6)).T.reshape(6, -1, 1):
            path = path * pin.exp6(step[:, 0])
        reached.append(path.toActionMatrix() @ space.basis)
    assert_same(swept, np.hstack([vectors / np.linalg.norm(vectors) for vectors in reached]))


def test_swept_by_hand() -> None:
    turn, shift = span(rz), span(x)
    assert shift.swept(turn).same(span(np.column_stack([x, y])))
    assert turn.swept(shift).same(span(np.column_stack([rz, y])))
    assert span(z).swept(turn).same(span(z))
    # Motions need not form an algebra of their own: turns about x and z reach every direction.
    assert span(z).swept(span(np.column_stack([rx, rz]))).same(span(columns("spatial translation")))
    assert shift.swept(NOTHING).same(shift) and NOTHING.swept(turn).dim == 0


# -- names ----------------------------------------------------------------------------------


def line_distance(point: Array, T: pin.SE3) -> float:
    """Distance of a point from the z axis of a frame."""
    return float(np.linalg.norm(T.actInv(point)[:2]))


@pytest.mark.parametrize("length", [1.0, 0.01, 40.0])
@pytest.mark.parametrize("kind", NAMES)
def test_names_in_any_frame_and_unit(kind: str, length: float) -> None:
    with_axis = set(NAMES) - {"fixed", "free", "spherical", "spatial translation"}
    with_pitch, with_point = {"helical", "helical planar"}, {"revolute", "helical", "cylindrical"}
    for seed in range(8):
        T, basis = frame(seed, 5.0), columns(kind)
        there = T.toActionMatrix() @ basis
        there[:3] /= length
        name = identify(span(there), length)
        assert (name.kind, name.dim) == (kind, basis.shape[1])
        assert (name.axis is not None) == (kind in with_axis)
        assert (name.pitch is not None) == (kind in with_pitch)
        assert (name.point is not None) == (kind in with_point | {"spherical"})
        if name.axis is not None:
            np.testing.assert_allclose(np.cross(name.axis, T.rotation[:, 2]), 0, atol=1e-9)
            assert np.linalg.norm(name.axis) == pytest.approx(1, abs=1e-12)
            assert max(name.axis) == pytest.approx(max(map(abs, name.axis)))
        if name.pitch is not None:
            assert name.pitch == pytest.approx(HELIX, rel=1e-9)
        if kind == "spherical":
            np.testing.assert_allclose(np.array(name.point), T.translation, atol=1e-9)
        elif name.point is not None:
            assert line_distance(np.array(name.point), T) < 1e-9


def test_a_left_hand_screw_keeps_its_hand() -> None:
    for flip in (rz - 0.2 * z, -rz + 0.2 * z):
        name = identify(span(frame(3).toActionMatrix() @ flip))
        assert name.pitch == pytest.approx(-0.2, rel=1e-9)


@pytest.mark.parametrize(
    "generators",
    [[rz, rx], [rz, x], [rz, rz + y, rx], [rx, x + z], [x, y, rz, rx], [*np.eye(6)[:5]]],
    ids=str,
)
def test_what_is_no_algebra_has_no_name(generators: list[Array]) -> None:
    space = span(frame(2).toActionMatrix() @ np.array(generators).T)
    assert identify(space) == MotionGroupName("no group", space.dim)


def test_names_as_text() -> None:
    def text(*generators: Array) -> str:
        return str(identify(span(np.array(generators).T)))

    assert text(x, z, ry) == "planar, normal y"
    assert text(x, y) == "planar translation, normal z"
    assert text(rx - 2 * z) == "revolute, axis x, about (0, 2, 0)"
    assert text(rz + 0.25 * z) == "helical, axis z, about (0, 0, 0), pitch 0.25"
    assert text(rx - z, ry, rz + x) == "spherical, about (0, 1, 0)"
    assert text(3 * x + 4 * y) == "prismatic, axis (0.6, 0.8, 0)"
    assert text(x, y, z) == "spatial translation"
