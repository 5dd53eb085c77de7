r"""se(3) as an algebra: twists by the thousand, subspaces of them, their closures and names.

Twists and wrenches are ``(v, w)``, linear first, rows of arrays or columns of a basis. This room
knows no robot; lengths should be divided by a characteristic length before subspaces are made of
them (which is an automorphism of the algebra), so that ranks do not depend on the unit. Products
are matrix products of stacks: a call of NumPy costs more than what it does to a few vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..boundary.marks import Array
from ..tolerances import EQUAL_SPACES, PITCH, RANK, SAME, TINY

_SKEW = np.zeros((3, 3, 3))
"""Matrix of ``a x`` per entry of ``a``."""
_SKEW[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = 1.0
_SKEW[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = -1.0

_CROSS = np.zeros((6, 6, 6))
"""Matrix of ``V x`` per entry of ``V``: ``w x`` on both parts, ``v x`` from angular to linear."""
_CROSS[3:, :3, :3] = _CROSS[3:, 3:, 3:] = _CROSS[:3, :3, 3:] = _SKEW
_FLAT_SKEW, _FLAT_CROSS = _SKEW.reshape(3, 9), _CROSS.reshape(6, 36)


def _skew(a: Array) -> Array:
    """Matrices of ``a x``, shape (n, 3, 3)."""
    return np.asarray((a @ _FLAT_SKEW).reshape(-1, 3, 3))


def cross_matrices(V: Array) -> Array:
    """Matrices of ``V x`` for twists, shape (n, 6, 6)."""
    return np.asarray((V @ _FLAT_CROSS).reshape(-1, 6, 6))


def motion_cross(V: Array, W: Array) -> Array:
    """``V x W`` for twists, shape (n, 6)."""
    return apply(cross_matrices(V), W)


def apply(A: Array, x: Array) -> Array:
    """Matrix times vector, row by row."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def apply_transposed(A: Array, x: Array) -> Array:
    """Transposed matrix times vector, row by row."""
    return np.asarray((x[:, None, :] @ A)[:, 0, :])


def adjoint(T: Array) -> Array:
    """Matrices that take twists of carriers to twists at and in the frames they carry, (n, 6, 6).

    Their transposes take wrenches at and in the frames to wrenches on the carriers.

    Args:
        T: placements of the frames in their carriers, shape (n, 4, 4).
    """
    X = np.zeros((len(T), 6, 6))
    back = T[:, :3, :3].transpose(0, 2, 1)
    X[:, :3, :3] = X[:, 3:, 3:] = back
    np.matmul(back, _skew(-T[:, :3, 3]), out=X[:, :3, 3:])
    return X


_APART = 1e-3
"""Entries of projectors on subspaces that are not the same, whatever is taken for equal."""

_AD = np.moveaxis(motion_cross(np.repeat(np.eye(6), 6, 0), np.tile(np.eye(6), (6, 1))), -1, 0)
"""Structure constants: ``[X, Y]_k = sum_ij _AD[k, 6 i + j] X_i Y_j`` (paper 5, eq. 26)."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """A linear subspace of se(3).

    Args:
        basis: orthonormal columns, shape (6, dim).
    """

    basis: Array

    @property
    def dim(self) -> int:
        """Dimension."""
        return int(self.basis.shape[1])

    @property
    def projector(self) -> Array:
        """Orthogonal projector on the subspace, the same for every basis of it, shape (6, 6)."""
        return self.basis @ self.basis.T

    def __add__(self, other: Subspace) -> Subspace:
        return span(np.hstack([self.basis, other.basis]))

    def __and__(self, other: Subspace) -> Subspace:
        # What both complements annihilate.
        outside = np.vstack([np.eye(6) - self.projector, np.eye(6) - other.projector])
        _, values, directions = np.linalg.svd(outside)
        return Subspace(directions[values < RANK * 10].T.copy())

    def contains(self, vectors: ArrayLike) -> bool:
        """Whether every column of ``vectors``, shape (6,) or (6, n), lies in the subspace."""
        columns = np.asarray(vectors, dtype=float).reshape(6, -1)
        rest = columns - self.projector @ columns
        scale = max(float(np.abs(columns).max(initial=0.0)), TINY)
        return bool(np.abs(rest).max(initial=0.0) <= 100 * RANK * scale)

    def same(self, other: Subspace) -> bool:
        """Whether two subspaces are equal."""
        return self.dim == other.dim and self.contains(other.basis)

    def moved(self, placement: pin.SE3) -> Subspace:
        """The subspace in another frame: ``Ad(placement)`` of it."""
        return span(placement.toActionMatrix() @ self.basis)

    def closure(self) -> Subspace:
        """The smallest subalgebra that contains the subspace (paper 5, eq. 25).

        Brackets are added until the dimension stays, which it does after at most five rounds.
        """
        space = self
        while 1 < space.dim < 6:
            larger = span(np.hstack([space.basis, _brackets(space, space)]), scale=1.0)
            if larger.dim == space.dim:
                break
            space = larger
        return EVERYTHING if space.dim == 6 else space

    def swept(self, motions: Subspace) -> Subspace:
        """The smallest subspace that contains this one and all that ``motions`` turn it into.

        Closed under ``ad(motions)``, hence under ``Ad(exp(motions))``.
        """
        space = self
        while 0 < space.dim < 6 and motions.dim:
            larger = span(np.hstack([space.basis, _brackets(motions, space)]), scale=1.0)
            if larger.dim == space.dim:
                break
            space = larger
        return space

    def is_algebra(self) -> bool:
        """Whether the subspace is closed under brackets."""
        return self.closure().dim == self.dim

    def is_maximal(self, whole: Subspace) -> bool:
        """Whether no algebra lies between this one and ``whole``, where that is easily seen.

        So it is if one direction is missing, or two that some twist here turns into each other:
        then none stays that an algebra in between could have. Such is a hinge in a plane, or about
        a point.
        """
        rest = span((whole.projector - self.projector) @ whole.basis)
        if rest.dim != 2 or not whole.contains(self.basis):
            return rest.dim == 1 and whole.contains(self.basis)
        actions = rest.basis.T @ _brackets(self, rest).reshape(6, self.dim, 2).transpose(1, 0, 2)
        traces, determinants = np.trace(actions, axis1=1, axis2=2), np.linalg.det(actions)
        return bool(np.any(traces**2 < 4 * determinants - RANK))


def _brackets(first: Subspace, second: Subspace) -> Array:
    """All brackets between two bases, the screw products of paper 5, eq. 26, as columns."""
    pairs = first.basis[:, None, :, None] * second.basis[None, :, None, :]
    return np.asarray(_AD @ pairs.reshape(36, -1))


def span(vectors: ArrayLike, scale: float | None = None) -> Subspace:
    """Span of the columns of ``vectors``, shape (6,) or (6, n).

    Args:
        vectors: twists as columns.
        scale: size against which a direction counts as zero; by default the largest one found.
    """
    columns = np.asarray(vectors, dtype=float).reshape(6, -1)
    if columns.shape[1] == 0:
        return NOTHING
    directions, values, _ = np.linalg.svd(columns, full_matrices=False)
    largest = max(float(values[0]) if scale is None else max(scale, float(values[0])), TINY)
    return Subspace(directions[:, values > RANK * largest])


NOTHING = Subspace(np.zeros((6, 0)))
"""The algebra of no motion at all."""

EVERYTHING = Subspace(np.eye(6))
"""se(3) itself."""


@dataclass(frozen=True)
class MotionGroupName:
    """A subalgebra of se(3) as a mechanism engineer calls it.

    Args:
        kind: one of the ten proper classes ("revolute", "prismatic", "helical", "cylindrical",
            "planar translation", "spatial translation", "planar", "helical planar", "spherical",
            "Schoenflies"), "fixed", "free", or "no group".
        dim: dimension.
        axis: direction of rotation or translation, or normal of the plane; None if there is none.
        point: a point on the axis or the centre; None if there is none.
        pitch: advance per radian of a helical class, else None.
    """

    kind: str
    dim: int
    axis: tuple[float, float, float] | None = None
    point: tuple[float, float, float] | None = None
    pitch: float | None = None

    def __str__(self) -> str:
        parts = (
            [self.kind] if self.kind != "no group" else [f"{self.dim} degrees of freedom, no group"]
        )
        if self.axis is not None:
            role = "normal" if self.kind in ("planar", "planar translation") else "axis"
            parts.append(f"{role} {_direction(self.axis)}")
        if self.point is not None:
            parts.append(f"about {_point(self.point)}")
        if self.pitch is not None:
            parts.append(f"pitch {self.pitch:.4g}")
        return ", ".join(parts)


def _direction(axis: tuple[float, float, float]) -> str:
    for name, unit in zip("xyz", np.eye(3), strict=True):
        if np.abs(axis - unit).max() <= SAME:
            return name
    return _point(axis)


def _point(values: tuple[float, float, float]) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in np.round(values, 9)) + ")"


def identify(space: Subspace, length: float = 1.0) -> MotionGroupName:
    """Name a subalgebra: which conjugacy class it is in, and where its axis or centre lies.

    A subalgebra is told by the rank of its angular part (0, 1 or 3), the dimension of its pure
    translations, and the pitch of what turns.

    Args:
        space: the subspace, with lengths in units of ``length``.
        length: characteristic length, so that points and pitches come out in metres.
    """
    if space.dim in (0, 6):
        return MotionGroupName("fixed" if space.dim == 0 else "free", space.dim)
    if not space.is_algebra():
        return MotionGroupName("no group", space.dim)
    translations = space & _TRANSLATIONS
    rank = span(_angular(space), scale=1.0).dim
    if rank == 0:
        return _of_translations(space)
    if rank == 3:
        centre = _centre(space) * length
        return MotionGroupName("spherical", 3, None, _triple(centre))
    return _about_one_axis(space, translations, length)


_TRANSLATIONS = Subspace(np.eye(6)[:, :3])


def _angular(space: Subspace) -> Array:
    """Angular parts of the basis, as twists without translation."""
    return np.vstack([np.zeros((3, space.dim)), space.basis[3:]])


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def _oriented(axis: Array) -> Array:
    """The unit vector of the pair +-axis whose largest component is positive."""
    largest = int(np.argmax(np.round(np.abs(axis), 9)))
    return axis if axis[largest] > 0 else -axis


def _of_translations(space: Subspace) -> MotionGroupName:
    """Name a space of pure translations."""
    if space.dim == 1:
        return MotionGroupName("prismatic", 1, _triple(_oriented(space.basis[:3, 0])))
    if space.dim == 2:
        normal = np.cross(space.basis[:3, 0], space.basis[:3, 1])
        return MotionGroupName("planar translation", 2, _triple(_oriented(normal)))
    return MotionGroupName("spatial translation", 3)


def _centre(space: Subspace) -> Array:
    """Point that a spherical algebra leaves at rest: ``v + w x p = 0`` for all twists."""
    rows = np.vstack([pin.skew(w) for w in space.basis[3:].T])
    centre, *_ = np.linalg.lstsq(rows, -space.basis[:3].T.ravel(), rcond=None)
    return np.asarray(centre)


def _about_one_axis(space: Subspace, translations: Subspace, length: float) -> MotionGroupName:
    """Name an algebra whose rotations all have one direction."""
    # The twist that turns, without the translations that come anyway.
    rest = space.basis - translations.projector @ space.basis
    twist = rest[:, int(np.argmax(np.linalg.norm(rest[3:], axis=0)))]
    twist = twist / np.linalg.norm(twist[3:])
    axis = _oriented(twist[3:])
    twist = twist * float(np.sign(twist[3:] @ axis))
    pitch = float(twist[:3] @ axis) * length
    point = pin.skew(axis) @ twist[:3] * length
    is_helical = abs(pitch) > PITCH * length
    screw = pitch if is_helical else None
    direction = _triple(axis)
    if translations.dim == 0:
        kind = "helical" if is_helical else "revolute"
        return MotionGroupName(kind, 1, direction, _triple(point), screw)
    if translations.dim == 1:
        return MotionGroupName("cylindrical", 2, direction, _triple(point))
    if translations.dim == 2:
        return MotionGroupName(
            "helical planar" if is_helical else "planar", 3, direction, None, screw
        )
    return MotionGroupName("Schoenflies", 4, direction)


# -- many subspaces at once ------------------------------------------------------------------------


class Algebras:
    """Interned subspaces of se(3): equal ones share a number, each operation is done once."""

    def __init__(self) -> None:
        self._spaces: list[Subspace] = []
        self._projectors: list[Array] = []
        self._numbers: dict[bytes, list[int]] = {}
        self._results: dict[tuple[str, int, int], int] = {}
        self.nothing = self.number(NOTHING)
        self.everything = self.number(EVERYTHING)

    def number(self, space: Subspace) -> int:
        """Number of a subspace; a new one if no equal subspace is known."""
        # Rounding finds the candidates only; adding zero removes the sign of -0.0.
        projector = space.projector
        bucket = self._numbers.setdefault((np.round(projector, 6) + 0.0).tobytes(), [])
        for number in bucket:
            if np.abs(self._projectors[number] - projector).max() < EQUAL_SPACES:
                return number
        bucket.append(len(self._spaces))
        self._spaces.append(space)
        self._projectors.append(projector)
        return bucket[-1]

    def __getitem__(self, number: int) -> Subspace:
        return self._spaces[number]

    def dim(self, number: int) -> int:
        """Dimension of a subspace."""
        return self._spaces[number].dim

    def join(self, a: int, b: int) -> int:
        """The smallest algebra that contains both."""
        if a == b or b == self.nothing or a == self.everything:
            return a
        if a == self.nothing or b == self.everything:
            return b
        return self._once("join", a, b, lambda x, y: (x + y).closure(), symmetric=True)

    def meet(self, a: int, b: int) -> int:
        """A bound on what lies in both: their intersection, or more where screws meet.

        The groups of two algebras may meet in more than the group of their intersection: a screw
        and a translation along its axis share the steps of whole turns, which are other assemblies.
        A helical algebra is therefore taken with the translation along its axis, unless one of the
        two contains the other.
        """
        if a == b or a == self.nothing or b == self.everything:
            return a
        if b == self.nothing or a == self.everything:
            return b
        return self._once("meet", a, b, _common, symmetric=True)

    def intersection(self, a: int, b: int) -> int:
        """The intersection of both as vector spaces."""
        return self._once("intersection", a, b, lambda x, y: x & y, symmetric=True)

    def plus(self, a: int, b: int) -> int:
        """The sum of both as vector spaces."""
        return self._once("plus", a, b, lambda x, y: x + y, symmetric=True)

    def sweep(self, a: int, motions: int) -> int:
        """What the motions turn ``a`` into, all together."""
        return self._once("sweep", a, motions, lambda x, y: x.swept(y), symmetric=False)

    def generating(self, a: int, others: Collection[int], whole: int) -> NDArray[np.bool_]:
        """Which others are seen at once to generate a whole together with an algebra."""
        key = "maximal", a, whole
        if key not in self._results:
            self._results[key] = self[a].is_maximal(self[whole])
        if not self._results[key] or not others:
            return np.zeros(len(others), dtype=bool)
        projectors = np.array([self._projectors[number] for number in others])
        apart = np.abs(projectors - self._projectors[a]).max(axis=(1, 2)) > _APART
        return np.asarray(apart & (np.trace(projectors, axis1=1, axis2=2) > self.dim(a) - 0.5))

    def _once(
        self,
        operation: str,
        a: int,
        b: int,
        compute: Callable[[Subspace, Subspace], Subspace],
        *,
        symmetric: bool,
    ) -> int:
        key = (operation, b, a) if symmetric and b < a else (operation, a, b)
        number = self._results.get(key)
        if number is None:
            number = self.number(compute(self._spaces[a], self._spaces[b]))
            self._results[key] = number
        return number


def _common(x: Subspace, y: Subspace) -> Subspace:
    """Bound on the intersection of two groups, as an algebra."""
    if y.contains(x.basis):
        return x
    if x.contains(y.basis):
        return y
    return _without_pitch(x) & _without_pitch(y)


def _without_pitch(space: Subspace) -> Subspace:
    """A helical algebra together with the translation along its axis; others as they are."""
    name = identify(space)
    if not name.kind.startswith("helical") or name.axis is None:
        return space
    return space + span(np.array([*name.axis, 0.0, 0.0, 0.0]))
