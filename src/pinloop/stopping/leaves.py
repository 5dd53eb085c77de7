"""A motion cut into short leaves, with bounds on what lies between their ends.

No shapes and no distances here: configurations, placements of the joints, and for every leaf
bounds on speeds and accelerations that hold at each of its instants.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb

from ..errors import BadValue
from ..integrate import Step
from ..manifold import RobotManifold
from ..mechanism import Mechanism
from ..trajectory import Trajectory
from ..tree import coordinate_names

__all__ = ["Bounds", "Leaves", "Steps", "bernstein", "checked_run", "steps_of"]

Array = NDArray[np.float64]

SLACK = 1e-7
"""Room for rounding [m], and for steps that end up to 1e-9 beside the next stored state."""
_BESIDE = 1e-9
"""A step that ends farther than this from the next stored state is joined to it by a leaf."""
_MOST = 100_000
"""More leaves than this are not made."""

EVEN = np.linspace(0.0, 1.0, 6)
"""Six even instants of a step."""


def bernstein(u: ArrayLike) -> Array:
    """Values at ``u`` of the six Bernstein polynomials of fifth order, shape (..., 6)."""
    x = np.asarray(u, dtype=float)[..., None]
    k = np.arange(6)
    return np.asarray(comb(5, k) * x**k * (1 - x) ** (5 - k))


CONTROL = np.linalg.inv(bernstein(EVEN))
"""From values at six even instants to control points."""
_LEFT = np.array([[comb(i, j) / 2**i if j <= i else 0.0 for j in range(6)] for i in range(6)])
"""From control points to those of the first half."""
_RIGHT = _LEFT[::-1, ::-1]


# -- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a run that take time, as polynomials.

    Args:
        number: index of the stored state at which each starts, shape (k,).
        steps: the steps, each from 0 to its length [s].
        psi: control points of ``psi``, shape (k, 6, nv).
    """

    number: NDArray[np.int64]
    steps: tuple[Step, ...]
    psi: Array


def checked_run(run: Any) -> Trajectory:
    """Return a run after checking that it is one."""
    if not isinstance(run, Trajectory):
        raise BadValue(f"{run!r} is no trajectory; give the result of pl.simulate or of a stop")
    return run


def steps_of(run: Trajectory) -> Steps:
    """The dense output of a run as polynomials."""
    manifold = RobotManifold(run.robot)
    number = np.flatnonzero(np.diff(run.t) > 0)
    psi = np.zeros((len(number), 6, run.robot.nv))
    steps = []
    for k, here in enumerate(number):
        h = float(run.t[here + 1] - run.t[here])
        (q0, q1), (v0, v1), (a0, a1) = ((x[here], x[here + 1]) for x in (run.q, run.v, run.a))
        steps.append(Step(manifold, 0.0, h, q0, v0, a0, run.psi[here], q1, v1, a1))
        psi[k, 1:-1] = [steps[-1].along(h * at) for at in EVEN[1:-1]]
        psi[k, -1] = run.psi[here]
    return Steps(number, tuple(steps), CONTROL @ psi)


# -- joints ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
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


def _parts(robot: Mechanism) -> list[_Part]:
    """The factors of all joints, in the order of the model."""
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
        pitch = abs(getattr(joint.pair, "pitch", None) or 0.0)
        for group in groups:
            slide = np.where(slides[group], 1.0, pitch)
            lengths = at.q.start + group[slide > 0]
            turn = np.where(slides[group], 0.0, 1.0)
            found.append(_Part(at.index, columns[group], lengths, slide, turn, offset))
            offset = 0.0
    return found


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

    def acceleration(self, radius: ArrayLike) -> Array:
        """Bound on the acceleration of points at most ``radius`` from the origin [m]."""
        return np.asarray(self.kick + (self.bend + self.turn**2) * radius)

    def velocity(self, radius: ArrayLike) -> Array:
        """Bound on the speed of points at most ``radius`` from the origin [m]."""
        return np.asarray(self.speed + self.turn * radius)

    def then(self, link: _LinkBounds) -> Bounds:
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
class _LinkBounds:
    """Bounds on one factor of a joint's motion: w, w', p', p'' and rho of the docstring above."""

    w: Array
    dw: Array
    p: Array
    dp: Array
    rho: Array

    def backwards(self) -> _LinkBounds:
        """The same motion as the child sees it."""
        p = self.p + self.w * self.rho
        dp = self.dp + 2 * self.w * self.p + (self.dw + self.w**2) * self.rho
        return _LinkBounds(self.w, self.dw, p, dp, self.rho)


def _link_bounds(part: _Part, base: Array, control: Array) -> _LinkBounds:
    """Bounds on a factor on every leaf (module docstring, "One joint")."""

    def largest(gain: Array, points: Array) -> Array:
        return np.asarray(np.linalg.norm(gain * points, axis=2).max(axis=1))

    psi = control[:, :, part.columns]
    first = 5 * np.diff(psi, axis=1)
    second = 4 * np.diff(first, axis=1)
    r, dr, ddr = (largest(part.slide, points) for points in (psi, first, second))
    w, dw = largest(part.turn, first), largest(part.turn, second)
    start = np.linalg.norm(part.slide[part.slide > 0] * base[:, part.lengths], axis=1)
    rho = part.offset + start + r
    if np.any(part.slide) and np.any(part.turn):
        dr, ddr = dr + w * r / 2, ddr + w * dr + (dw + w**2) * r / 2
    if np.count_nonzero(part.turn) > 1:
        dw = dw + w**2 / 2
    return _LinkBounds(w, dw, dr, ddr, rho)


# -- leaves ---------------------------------------------------------------------------------


class Leaves:
    """A run cut into leaves; node ``i`` is where leaf ``i`` starts, the last one the end.

    Args:
        run: the run.
        fine: tells of each leaf whether it is short enough, given the bounds on the frames of all
            joints, seen from the ground.

    Attributes:
        count: number of leaves n.
        times: start and end of each leaf [s], shape (n, 2).
        rotations: of the joints at the nodes, shape (n + 1, njoints, 3, 3).
        origins: of the joints at the nodes [m], shape (n + 1, njoints, 3).
    """

    def __init__(self, run: Trajectory, fine: Callable[[list[Bounds]], NDArray[np.bool_]]) -> None:
        self.robot = run.robot
        self._model = run.robot.model
        self._parts = _parts(run.robot)
        self._of_joint: dict[int, list[int]] = {}
        for number, part in enumerate(self._parts):
            self._of_joint.setdefault(part.joint, []).append(number)
        base, control, times = _whole_steps(run)
        while True:
            self._base, self._control, self.times = base, control, times
            self._links = [_link_bounds(part, base, control) for part in self._parts]
            coarse = ~fine(self.from_ground())
            if not np.any(coarse):
                break
            if len(base) + np.count_nonzero(coarse) > _MOST:
                raise BadValue(
                    f"the tolerance is too small for this motion: it would take more than {_MOST} "
                    "pieces of time; give a larger one"
                )
            base, control, times = _halved(base, control, times, coarse)
        self.count = len(self._base)
        self._last = run.q[-1]
        self.rotations, self.origins = self._placements()

    def from_ground(self) -> list[Bounds]:
        """Bounds on the frame of every joint, the universe first."""
        zero = np.zeros(len(self._base))
        found = [Bounds(zero, zero, zero, zero)]
        for joint in range(1, self._model.njoints):
            bounds = found[self._model.parents[joint]]
            for number in self._of_joint[joint]:
                bounds = bounds.then(self._links[number])
            found.append(bounds)
        return found

    def relative(self, joint: int, seen_from: int) -> Bounds:
        """Bounds on the frame of a joint as seen from the frame of another."""
        up, down = self._ancestors(seen_from), self._ancestors(joint)
        shared = set(up) & set(down)
        zero = np.zeros(self.count)
        bounds = Bounds(zero, zero, zero, zero)
        for here in up:
            if here not in shared:
                for number in reversed(self._of_joint[here]):
                    bounds = bounds.then(self._links[number].backwards())
        for here in reversed(down):
            if here not in shared:
                for number in self._of_joint[here]:
                    bounds = bounds.then(self._links[number])
        return bounds

    def points(self, joint: int, points: Array, seen_from: int = 0) -> Array:
        """Where points on a joint are at the nodes.

        Args:
            joint: the joint that carries them.
            points: the points in its frame [m], shape (m, 3).
            seen_from: joint in whose frame they are wanted; 0 for the world.

        Returns:
            Points [m], shape (n + 1, m, 3).
        """
        R, p = self.rotations[:, joint], self.origins[:, joint]
        if seen_from:
            R0 = np.swapaxes(self.rotations[:, seen_from], 1, 2)
            R, p = R0 @ R, np.einsum("nij,nj->ni", R0, p - self.origins[:, seen_from])
        return np.asarray(points @ np.swapaxes(R, 1, 2) + p[:, None])

    def configuration(self, leaf: int, u: float) -> Array:
        """Configuration inside a leaf, ``u`` from 0 to 1."""
        psi = bernstein(u) @ self._control[leaf]
        q = pin.integrate(self._model, self._base[leaf], psi)
        return np.asarray(pin.normalize(self._model, q))

    def time(self, leaf: int, u: float) -> float:
        """Instant inside a leaf [s]."""
        start, end = self.times[leaf]
        return float(end if u == 1.0 else start + u * (end - start))

    def _ancestors(self, joint: int) -> list[int]:
        """A joint and those that carry it, up to the ground, which is left out."""
        found = []
        while joint:
            found.append(joint)
            joint = self._model.parents[joint]
        return found

    def _placements(self) -> tuple[Array, Array]:
        data = self._model.createData()
        joints = range(self._model.njoints)
        rotations = np.zeros((self.count + 1, len(joints), 3, 3))
        origins = np.zeros((self.count + 1, len(joints), 3))
        for node in range(self.count + 1):
            q = self.configuration(node, 0.0) if node < self.count else self._last
            pin.forwardKinematics(self._model, data, q)
            for joint in joints:
                placement = data.oMi[joint]
                rotations[node, joint] = placement.rotation
                origins[node, joint] = placement.translation
        return rotations, origins


def _whole_steps(run: Trajectory) -> tuple[Array, Array, Array]:
    """Per leaf its base configuration, control points and times: every step, and every gap."""
    model, steps = run.robot.model, steps_of(run)
    control_of = {int(number): psi for number, psi in zip(steps.number, steps.psi, strict=True)}
    base, control, times = [], [], []
    for k in range(len(run.t) - 1):
        end = run.q[k]
        if k in control_of:
            base.append(run.q[k])
            control.append(control_of[k])
            times.append((run.t[k], run.t[k + 1]))
            end = pin.integrate(model, run.q[k], run.psi[k])
        gap = pin.difference(model, end, run.q[k + 1])
        if np.any(np.abs(gap) > _BESIDE):
            base.append(end)
            control.append(EVEN[:, None] * gap)
            times.append((run.t[k + 1], run.t[k + 1]))
    if not base:  # a run that ended where it started
        base, control = [run.q[0]], [np.zeros((6, run.robot.nv))]
        times = [(run.t[0], run.t[-1])]
    return np.array(base), np.array(control), np.array(times)


def _halved(
    base: Array, control: Array, times: Array, which: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """The leaves with some of them cut into halves."""
    twice = np.repeat(np.arange(len(base)), np.where(which, 2, 1))
    second = np.zeros(len(twice), dtype=bool)
    second[1:] = twice[1:] == twice[:-1]
    first = which[twice] & ~second
    base, control, times = base[twice], control[twice].copy(), times[twice].copy()
    control[first], control[second] = _LEFT @ control[first], _RIGHT @ control[second]
    middle = times.mean(axis=1)
    times[first, 1], times[second, 0] = middle[first], middle[second]
    return base, control, times
