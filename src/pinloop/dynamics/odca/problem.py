"""The linear problem of one configuration: any loads in, accelerations and joint forces out.

Accelerations, velocities and positions put back on the constraints ask for the same four things:
wrenches on bodies, torques, what each joint's two sides must differ by, and values of further rows
in coordinates (couplings, rolling, momenta), which are bordered (their responses are found by
further sweeps, and a small dense system for their multipliers is left).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import SingularMass
from .bodies import Bodies
from .joints import TreeJoints
from .spatial import apply_transposed

__all__ = ["Answer", "Load", "Problem"]

Array = NDArray[np.float64]

_REFINE = 1e-13
"""Residual over load from which on an answer is refined."""
_REFINEMENTS = 3
_WITHOUT_MASS = 1e-10
"""Inertia of a motion, over that on loan, below which it has none of its own."""
_NO_MOTION = np.zeros(6)
_DEPENDENT = 1e-11
"""Response of a bordered row, over that of its bodies alone, below which it is redundant."""


@dataclass(frozen=True, eq=False)
class Load:
    """What acts, and what is asked for.

    Args:
        wrenches: on each body, shape (n, 6).
        torques: on each coordinate, shape (nv,).
        apart: part of each body's motion relative to its parent that does not come from the joint
            coordinates, shape (n, 6).
        loops: ``D'`` of the relative motion at loop joints plus this vanishes, (loops, width).
        ground: motion of the ground, shape (6,).
        held: value of each held coordinate.
        values: of the bordered rows, shape (k,).
    """

    wrenches: Array
    torques: Array
    apart: Array
    loops: Array
    ground: Array
    held: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Answer:
    """Solution of a problem.

    Args:
        a: joint accelerations, shape (nv,).
        A: of bodies and ground, shape (n + 1, 6).
        x: measure numbers of the joint forces, shape (joints, width).
        torques: on each coordinate, those of bordered rows included, shape (nv,).
        multipliers: of the bordered rows, shape (k,).
    """

    a: Array
    A: Array
    x: Array
    torques: Array
    multipliers: Array


class Problem:
    """Assembled handle equations at one configuration.

    Args:
        bodies: the bodies, assembled.
        joints: their tree joints.
        rows: bordered rows in coordinates, shape (k, nv).
    """

    def __init__(self, bodies: Bodies, joints: TreeJoints, rows: Array) -> None:
        self._bodies, self._joints, self._rows = bodies, joints, rows
        held = list(joints.held)
        self._held = np.array([joints.body[c] for c in held], dtype=np.intp)
        self._places = np.array([joints.place[c] for c in held], dtype=np.intp)
        self._border = _Border(self) if len(rows) or bodies.loans else None

    def solve(self, load: Load) -> Answer:
        """Solve for one load."""
        first = self._respond(load)
        return first if self._border is None else self._border.add(first, load)

    def held_torques(self, answer: Answer, armature: Array) -> Array:
        """What holds each held coordinate [N m, N]."""
        scale = self._joints.scale[self._held, self._places]
        moved = list(self._joints.held)
        return scale * answer.x[self._held, self._places] + armature[moved] * answer.a[moved]

    def zero(self) -> Load:
        """No load."""
        n, nv = self._bodies.n, len(self._joints.body)
        width = self._joints.D.shape[2]
        loops = np.zeros((len(self._bodies.compliance) - n, width))
        return Load(
            np.zeros((n, 6)), np.zeros(nv), np.zeros((n, 6)), loops, np.zeros(6),
            np.zeros(len(self._held)), np.zeros(len(self._rows)),
        )  # fmt: skip

    def free_response(self, load: Load) -> Array:
        """Joint accelerations of the bodies, as if no joint held them."""
        A = self._bodies.accelerations(self._wrenches(load), None, load.ground)
        return self._joints.rates(self._bodies.across_tree(A) - load.apart)

    def _wrenches(self, load: Load) -> Array:
        if not load.torques.any():
            return load.wrenches
        in_joints = self._joints.wrenches(load.torques)
        return load.wrenches + self._bodies.joint_wrenches_on_bodies(in_joints)

    def _respond(self, load: Load) -> Answer:
        """Solution without bordered rows, refined while that helps."""
        bodies = self._bodies
        wrenches = self._wrenches(load)
        A = bodies.accelerations(wrenches, None, load.ground)
        y, across = self._missing(A, load)
        x = bodies.sweeps.solve(y)
        size = float(np.abs(y).max(initial=0.0))
        # Close to a singularity small residuals mean large errors.
        enough = _REFINE * size * np.sqrt(bodies.sweeps.margin)
        A = bodies.accelerations(wrenches, x, load.ground)
        rest, across = self._missing(A, load)
        rest -= bodies.compliance * x
        error = float(np.abs(rest).max(initial=0.0))
        for _ in range(_REFINEMENTS):
            if error <= enough:
                break
            # Forces may be large here. What is added to accelerations comes from the correction
            # alone: from all forces together their rounding would come along.
            more = bodies.sweeps.solve(rest)
            new_x, new_A = x + more, A + bodies.accelerations(0.0 * wrenches, more, _NO_MOTION)
            new_rest, new_across = self._missing(new_A, load)
            new_rest -= bodies.compliance * new_x
            left = float(np.abs(new_rest).max(initial=0.0))
            if not left < 0.5 * error:
                break
            x, A, rest, across, error = new_x, new_A, new_rest, new_across, left
        if not np.isfinite(error):
            raise SingularMass("the joint forces are not finite; some body moves without mass")
        return Answer(self._joints.rates(across), A, x, load.torques, np.zeros(0))

    def _missing(self, A: Array, load: Load) -> tuple[Array, Array]:
        """What joint forces must still do at each joint, and the motion across tree joints."""
        across = self._bodies.across_tree(A) - load.apart
        D = self._joints.D
        y = np.concatenate(
            [-apply_transposed(D, across), -(self._bodies.across_loops(A) + load.loops)]
        )
        if len(self._held):
            scale = self._joints.scale[self._held, self._places]
            y[self._held, self._places] += scale * load.held
        return y, across


class _Border:
    """Responses to bordered rows and to inertia on loan, and what makes both right.

    Unknown are the multipliers ``s`` of the rows, which exert ``J' s`` and ask ``J a = value``, and
    per loan the wrench ``s n`` that its inertia would need, ``s = amount n' A``.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rows, self._loans = problem._rows, problem._bodies.loans
        nothing = problem.zero()
        self._parts: list[Answer] = []
        for body, direction, _ in self._loans:
            wrenches = nothing.wrenches.copy()
            wrenches[body] = direction
            self._parts.append(problem._respond(replace(nothing, wrenches=wrenches)))
        sizes = []
        for row in self._rows:
            load = replace(nothing, torques=row)
            self._parts.append(problem._respond(load))
            sizes.append(float(row @ problem.free_response(load)))
        k = len(self._loans)
        matrix = np.array([self._measure(part) for part in self._parts]).T
        matrix[:k, :k] -= np.diag([1 / amount for _, _, amount in self._loans])
        self._matrix = matrix
        roots = np.sqrt([amount for _, _, amount in self._loans])
        own = -matrix[:k, :k] * roots[:, None] * roots
        if k and not np.linalg.eigvalsh(0.5 * (own + own.T))[0] > _WITHOUT_MASS:
            raise SingularMass(
                "the mass matrix is not positive definite; some body moves without mass or inertia"
            )
        unit = np.sqrt(np.maximum(sizes, np.finfo(float).tiny))
        self._split = k
        # Loans first, then rows, which may be redundant: smallest multipliers.
        self._from_loans = np.linalg.solve(matrix[:k, :k], matrix[:k])
        schur = matrix[k:, k:] - matrix[k:, :k] @ self._from_loans[:, k:]
        self._inverse = (
            np.linalg.pinv(schur / np.outer(unit, unit), rcond=_DEPENDENT, hermitian=True)
            / np.outer(unit, unit)
            if len(self._rows)
            else np.zeros((0, 0))
        )

    def _measure(self, answer: Answer) -> Array:
        along = [float(direction @ answer.A[body]) for body, direction, _ in self._loans]
        return np.concatenate([along, self._rows @ answer.a])

    def add(self, first: Answer, load: Load) -> Answer:
        """The solution with the rows met and the loans taken back."""
        k = self._split
        wanted = np.concatenate([np.zeros(k), load.values]) - self._measure(first)
        on_loan = np.linalg.solve(self._matrix[:k, :k], wanted[:k])
        rows = self._inverse @ (wanted[k:] - self._matrix[k:, :k] @ on_loan)
        strengths = np.concatenate([on_loan - self._from_loans[:, k:] @ rows, rows])
        a, A, x = first.a.copy(), first.A.copy(), first.x.copy()
        for strength, part in zip(strengths, self._parts, strict=True):
            a += strength * part.a
            A += strength * part.A
            x += strength * part.x
        return Answer(a, A, x, load.torques + self._rows.T @ rows, rows)
