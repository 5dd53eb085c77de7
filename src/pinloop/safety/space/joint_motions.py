"""Bounds on the motion of the joints of a robot within leaves, short parts of the steps of a run.

**What is bounded.** Between two stored states a `Trajectory` moves along ``q0 (+) psi(s)`` with a
polynomial ``psi`` of fifth order in the algebra. A leaf is a part of such a step, with a parameter
``u`` from 0 to 1 that grows evenly with time; all rates are taken by ``u``, not by time, so that
nothing is ever divided by a short step. In Bernstein form a polynomial, and each of its
derivatives, lies in the hull of its control points, and norms are convex: the largest norm of
the control points bounds ``|psi|``, ``|psi'|`` and ``|psi''|`` on the leaf.

**One joint.** A joint that moves by ``exp(psi)``, ``psi = (r, f)`` in se(3), turns at
``w = dexp(f) f'`` and carries its origin along ``p = V(f) r``, ``V(f) = int_0^1 exp(x f) dx``.
From ``|dexp(f)| <= 1`` and ``|d/du dexp(f)| <= |f'| / 2``::

    |w| <= |f'|      |w'| <= |f''| + |f'|^2 / 2
    |p| <= |r|       |p'| <= |r'| + |f'| |r| / 2
    |p''| <= |r''| + |f'| |r'| + (|f''| + |f'|^2) |r| / 2

About a fixed axis ``w = f'``, and the square is left out. A joint that is a product of motions
(cylindrical, universal, ...) is taken as a chain of them.

**A chain.** A frame that moves at ``p', w`` in a frame that moves itself (speed ``v`` of its
origin, acceleration ``a``, angular velocity ``W`` and acceleration ``A``), and whose origin stays
within ``rho`` of that frame's origin, has at most::

    W + |w|,   A + |w'| + W |w|,   v + W rho + |p'|,   a + (A + W^2) rho + 2 W |p'| + |p''|

Seen the other way round, from the child, a joint has ``|p'| + |w| rho`` and
``|p''| + 2 |w| |p'| + (|w'| + |w|^2) rho`` instead of ``|p'|`` and ``|p''|``; so two bodies can be
bounded relative to each other, and what carries both does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from ...model.tree import coordinate_names
from ...model.workspace import remembered

__all__ = ["Bounds", "LinkBounds", "Part", "Parts", "joint_parts", "link_bounds"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """A factor of a joint's motion: all of it, or one motion of a product.

    Args:
        joint: index of the joint in the model.
        columns: its velocity coordinates.
        lengths: its configuration coordinates that are translations.
        slide: metres per unit of each velocity coordinate, shape (m,).
        turn: radians per unit of each velocity coordinate, shape (m,).
        offset: distance of the joint from the origin of its parent [m]; 0 but for the first part.
    """

    joint: int
    columns: NDArray[np.int64]
    lengths: NDArray[np.int64]
    slide: Array
    turn: Array
    offset: float


@dataclass(frozen=True, eq=False)
class Parts:
    """Factors of joints, with what their bounds on all leaves are made of at once.

    Args:
        parts: the factors, m of them.
        nq: number of configuration coordinates.
        nv: number of velocity coordinates.
    """

    parts: tuple[Part, ...]
    nq: int
    nv: int

    @cached_property
    def gains(self) -> tuple[Array, Array, Array]:
        """Squares of metres, and of radians, per unit of velocity coordinates, shape (nv, m).

        And of metres per unit of configuration coordinates, shape (nq, m).
        """
        count = len(self.parts)
        slides, turns, starts = (np.zeros((n, count)) for n in (self.nv, self.nv, self.nq))
        for k, part in enumerate(self.parts):
            slides[part.columns, k], turns[part.columns, k] = part.slide**2, part.turn**2
            starts[part.lengths, k] = part.slide[part.slide > 0] ** 2
        return slides, turns, starts

    @cached_property
    def offset(self) -> Array:
        """Distance of each from the origin of its parent [m], shape (m,)."""
        return np.array([part.offset for part in self.parts])


@remembered
def joint_parts(robot: Mechanism) -> Parts:
    """The factors of all joints, in the order of the model; kept for the next run of the robot."""
    edges = {edge.joint.name: edge.joint for edge in robot.tree.edges}
    found = []
    for name in robot.joints:
        at, joint = robot.coordinates(name), edges[name]
        slides = np.array([label[0] == "v" for label in coordinate_names(robot.tree, name)])
        columns = np.arange(at.v.start, at.v.stop)
        whole = at.nq != at.nv and joint.coordinates != "SO3xR3"
        if whole:
            groups = [np.arange(at.nv)]
        elif joint.coordinates == "SO3xR3":
            groups = [np.arange(3), np.arange(3, 6)]
        else:  # translations side by side commute, turns about two axes do not
            cuts = [k for k in range(1, at.nv) if not (slides[k] and slides[k - 1])]
            groups = np.split(np.arange(at.nv), cuts)
        offset = float(np.linalg.norm(robot.model.jointPlacements[at.index].translation))
        pitch = abs(joint.pair.advance)
        for group in groups:
            slide = np.where(slides[group], 1.0, pitch)
            lengths = at.q.start + group[slide > 0]
            turn = np.where(slides[group], 0.0, 1.0)
            found.append(Part(at.index, columns[group], lengths, slide, turn, offset))
            offset = 0.0
    return Parts(tuple(found), robot.nq, robot.nv)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on the motion of a frame, per leaf and by its parameter.

    Args:
        turn: angular velocity [rad].
        bend: angular acceleration [rad].
        speed: speed of the origin [m].
        kick: acceleration of the origin [m].
    """

    turn: Array
    bend: Array
    speed: Array
    kick: Array

    def acceleration(self, radius: float) -> Array:
        """Bound on the acceleration of points at most ``radius`` from the origin [m]."""
        return np.asarray(self.kick + (self.bend + self.turn**2) * radius)

    def velocity(self, radius: float) -> Array:
        """Bound on the speed of points at most ``radius`` from the origin [m]."""
        return np.asarray(self.speed + self.turn * radius)

    def then(self, link: LinkBounds) -> Bounds:
        """Bounds on the next frame of a chain."""
        return Bounds(
            self.turn + link.w,
            self.bend + link.dw + self.turn * link.w,
            self.speed + self.turn * link.rho + link.p,
            self.kick
            + (self.bend + self.turn**2) * link.rho
            + 2 * self.turn * link.p
            + link.dp,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LinkBounds:
    """Bounds on one factor of a joint's motion: w, w', p', p'' and rho of the docstring above."""

    w: Array
    dw: Array
    p: Array
    dp: Array
    rho: Array

    def backwards(self) -> LinkBounds:
        """The same motion as the child sees it."""
        p = self.p + self.w * self.rho
        dp = self.dp + 2 * self.w * self.p + (self.dw + self.w**2) * self.rho
        return LinkBounds(self.w, self.dw, p, dp, self.rho)


def link_bounds(parts: Parts, base: Array, control: Array) -> list[LinkBounds]:
    """Bounds on every factor on every leaf (module docstring, "One joint").

    Args:
        parts: the factors, m of them.
        base: configuration that each leaf starts from, shape (n, nq).
        control: control points of its ``psi``, shape (n, 6, nv).
    """
    slides, turns, starts = parts.gains

    def largest(points: Array, gain: Array) -> Array:
        squares = (points * points).reshape(-1, parts.nv) @ gain
        return np.asarray(np.sqrt(squares.reshape(*points.shape[:2], -1).max(axis=1)))

    first = 5 * np.diff(control, axis=1)
    second = 4 * np.diff(first, axis=1)
    r, dr, ddr = (largest(points, slides) for points in (control, first, second))
    w, dw = largest(first, turns), largest(second, turns)
    rho = parts.offset + np.sqrt((base * base) @ starts) + r
    both = slides.any(axis=0) & turns.any(axis=0)
    dr, ddr = dr + both * (w * r / 2), ddr + both * (w * dr + (dw + w**2) * r / 2)
    dw = dw + (np.count_nonzero(turns, axis=0) > 1) * (w**2 / 2)
    rows = (np.ascontiguousarray(values.T) for values in (w, dw, dr, ddr, rho))
    return [LinkBounds(*one) for one in zip(*rows, strict=True)]
