"""The linear problem of one configuration: any loads in, accelerations and joint forces out.

Accelerations, velocities and positions put back on the constraints ask for the same four things:
wrenches on bodies, torques, what each joint's two sides must differ by, and values of further rows
in coordinates (couplings, rolling, momenta), which are bordered (their responses are found by
further sweeps, and a small dense system for their multipliers is left). A coordinate is in a block
or in a joint between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import SingularMass
from ...tolerances import RESPONSE_RANK, WITHOUT_MASS
from .blocks import Blocks
from .handles import Handles
from .joints import CutJoints

__all__ = ["Answer", "Coordinates", "Load", "Problem"]

Array = NDArray[np.float64]


class Coordinates:
    """Coordinates of the robot in terms of those of its blocks.

    Args:
        blocks: the blocks.
        cuts: the joints between them.
        nv: number of coordinates of the robot.
    """

    def __init__(self, blocks: Blocks, cuts: CutJoints, nv: int) -> None:
        self._blocks, self._cuts, self.nv = blocks, cuts, nv
        parts = [*zip(blocks.blocks, blocks.at, strict=True)]
        none = np.zeros(0, dtype=np.intp)
        self._at = np.concatenate([none, *(at.start + block.own for block, at in parts)])
        self._v = np.concatenate([none, *(block.own_v for block, _ in parts)])

    def forces(self, torques: Array) -> Array:
        """Torques on the robot's coordinates as forces on those of the blocks, shape (size,)."""
        forces = np.zeros(self._blocks.size)
        if not torques.any():
            return forces
        if self._blocks.cuts:
            forces = self._blocks.press(self._cuts.wrenches(torques))
        forces[self._at] += torques[self._v]
        return forces

    def rates(self, alpha: Array, apart: Array) -> Array:
        """The robot's coordinates from those of the blocks, shape (nv,).

        Args:
            alpha: shape (size,).
            apart: what does not come from coordinates of joints between blocks, (cuts, 6).
        """
        rates = np.empty(self.nv)
        rates[self._v] = alpha[self._at]
        if self._blocks.cuts:
            self._cuts.rates(self._blocks.between(alpha) - apart, rates)
        return rates

    def respond(self, forces: Array) -> Array:
        """Accelerations of all blocks to forces on them, without joint forces, shape (size,)."""
        alpha = np.empty(len(forces))
        for block, at in zip(self._blocks.blocks, self._blocks.at, strict=True):
            alpha[at] = block.respond(forces[at])
        return alpha


@dataclass(frozen=True, eq=False)
class Load:
    """What acts, and what is asked for.

    Args:
        forces: on the coordinates of blocks, shape (size,).
        torques: on the coordinates of the robot, shape (nv,).
        apart: part of the motion between blocks that does not come from coordinates, (cuts, 6).
        target: what the coordinates must make all handles measure, shape (columns,).
        values: of the bordered rows, shape (k,).
    """

    forces: Array
    torques: Array
    apart: Array
    target: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Answer:
    """Solution of a problem.

    Args:
        a: accelerations of the robot's coordinates, shape (nv,).
        alpha: of the coordinates of all blocks, shape (size,).
        x: measure numbers of the joint forces, shape (columns,).
        torques: on each coordinate, those of bordered rows included, shape (nv,).
        multipliers: of the bordered rows, shape (k,).
    """

    a: Array
    alpha: Array
    x: Array
    torques: Array
    multipliers: Array


class Problem:
    """Assembled handle equations at one configuration.

    Args:
        handles: the handle equations, assembled.
        coordinates: coordinates of the robot and of its blocks.
        rows: bordered rows in coordinates, shape (k, nv).
    """

    def __init__(self, handles: Handles, coordinates: Coordinates, rows: Array) -> None:
        self._handles, self._coordinates, self._rows = handles, coordinates, rows
        loans = handles.loans
        self._border = _Border(self, rows, loans) if len(rows) or loans else None

    def solve(self, load: Load) -> Answer:
        """Solve for one load."""
        first = self.respond(load)
        return first if self._border is None else self._border.add(first, load)

    def zero(self) -> Load:
        """No load."""
        handles, coordinates = self._handles, self._coordinates
        return Load(
            np.zeros(handles.blocks.size),
            np.zeros(coordinates.nv),
            np.zeros_like(handles.blocks.bias),
            np.zeros(handles.sweeps.columns),
            np.zeros(len(self._rows)),
        )

    def free_response(self, load: Load) -> Array:
        """Accelerations of the blocks, as if no joint held them, in the robot's coordinates."""
        forces = load.forces + self._coordinates.forces(load.torques)
        return self._coordinates.rates(self._coordinates.respond(forces), load.apart)

    def respond(self, load: Load) -> Answer:
        """Solution without bordered rows."""
        handles, coordinates = self._handles, self._coordinates
        forces = load.forces + coordinates.forces(load.torques)
        alpha = coordinates.respond(forces)
        x, moved = handles.solve(load.target - handles.measure(alpha))
        alpha += moved
        if not np.isfinite(alpha).all():
            raise SingularMass("the joint forces are not finite; some body moves without mass")
        return Answer(coordinates.rates(alpha, load.apart), alpha, x, load.torques, np.zeros(0))


class _Border:
    """Responses to bordered rows and to inertia on loan, and what makes both right.

    Unknown are the multipliers ``s`` of the rows, which exert ``J' s`` and ask ``J a = value``, and
    per loan the force ``s g`` that its inertia would need, ``s = amount g' alpha``.
    """

    def __init__(
        self, problem: Problem, rows: Array, loans: list[tuple[slice, Array, float]]
    ) -> None:
        self._rows, self._loans = rows, loans
        nothing = problem.zero()
        self._parts: list[Answer] = []
        for at, direction, _ in loans:
            forces = nothing.forces.copy()
            forces[at] = direction
            self._parts.append(problem.respond(replace(nothing, forces=forces)))
        sizes = []
        for row in self._rows:
            load = replace(nothing, torques=row)
            self._parts.append(problem.respond(load))
            sizes.append(float(row @ problem.free_response(load)))
        k = len(self._loans)
        matrix = np.array([self._measure(part) for part in self._parts]).T
        matrix[:k, :k] -= np.diag([1 / amount for _, _, amount in self._loans])
        self._matrix = matrix
        roots = np.sqrt([amount for _, _, amount in self._loans])
        own = -matrix[:k, :k] * roots[:, None] * roots
        if k and not np.linalg.eigvalsh(0.5 * (own + own.T))[0] > WITHOUT_MASS:
            raise SingularMass(
                "the mass matrix is not positive definite: some body moves without mass or "
                "inertia, or coordinates of a joint turn about the same axis"
            )
        unit = np.sqrt(np.maximum(sizes, np.finfo(float).tiny))
        self._split = k
        # Loans first, then rows, which may be redundant: smallest multipliers.
        self._from_loans = np.linalg.solve(matrix[:k, :k], matrix[:k])
        schur = matrix[k:, k:] - matrix[k:, :k] @ self._from_loans[:, k:]
        self._inverse = (
            np.linalg.pinv(schur / np.outer(unit, unit), rcond=RESPONSE_RANK, hermitian=True)
            / np.outer(unit, unit)
            if len(self._rows)
            else np.zeros((0, 0))
        )

    def _measure(self, answer: Answer) -> Array:
        along = [float(direction @ answer.alpha[at]) for at, direction, _ in self._loans]
        return np.concatenate([along, self._rows @ answer.a])

    def add(self, first: Answer, load: Load) -> Answer:
        """The solution with the rows met and the loans taken back."""
        k = self._split
        wanted = np.concatenate([np.zeros(k), load.values]) - self._measure(first)
        on_loan = np.linalg.solve(self._matrix[:k, :k], wanted[:k])
        rows = self._inverse @ (wanted[k:] - self._matrix[k:, :k] @ on_loan)
        strengths = np.concatenate([on_loan - self._from_loans[:, k:] @ rows, rows])
        a, alpha, x = first.a.copy(), first.alpha.copy(), first.x.copy()
        for strength, part in zip(strengths, self._parts, strict=True):
            a += strength * part.a
            alpha += strength * part.alpha
            x += strength * part.x
        return Answer(a, alpha, x, load.torques + self._rows.T @ rows, rows)
