"""Bodies with their handles: handle equations of every body, and its motion when forces are known.

``I A = w + sum of U x`` with ``U`` the wrenches on the body that the padded complement of each of
its joints exerts (paper 3, eqs. 1-2 and 13). Gravity is an acceleration of the ground.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .joints import TreeJoints
from .kinematics import Kinematics
from .loops import LoopJoints
from .spatial import adjoint, apply, apply_transposed, cross_matrix
from .sweeps import Sweeps
from .tree import assembly_tree

__all__ = ["Bodies"]

Array = NDArray[np.float64]

_THIN = 1e-9
"""Principal inertia, over the largest, below which a body gets an inertia on loan."""


class Bodies:
    """Bodies, handles and the sweeps over them.

    Args:
        model: the tree.
        kinematics: its kinematics.
        joints: its joints.
        loops: the loop joints.
        length: characteristic length [m].

    Attributes:
        n: number of bodies.
        sweeps: assembly and disassembly; joints are numbered tree joints first, then loops.
        loans: body, direction and amount of inertia that was added so that each body has one in
            every direction; whoever solves must take its effect out again.
    """

    def __init__(
        self,
        model: pin.Model,
        kinematics: Kinematics,
        joints: TreeJoints,
        loops: LoopJoints,
        length: float,
    ) -> None:
        self._kin, self._joints, self._loops = kinematics, joints, loops
        self.n = n = kinematics.n
        self._inertia = np.array([model.inertias[k + 1].matrix() for k in range(n)])
        self._inertia = self._inertia.reshape(n, 6, 6)
        whole, self.loans = _with_loans(self._inertia, length)
        self._inverse = np.asarray(np.linalg.inv(whole), dtype=float)
        self._width = joints.D.shape[2]
        self._arms = np.flatnonzero(kinematics.parent >= 0)
        handles, ends, sources = self._graph()
        tree = assembly_tree(handles, ends)
        self.sweeps = Sweeps(tree, len(ends), self._width)
        # Per number of handles: bodies, joints of their handles, rows of U.
        self._alike = [
            (
                count,
                bodies,
                np.array([handles[k] for k in bodies], dtype=np.intp).reshape(-1, count),
                np.array([sources[k] for k in bodies], dtype=np.intp).reshape(-1, count),
            )
            for count, bodies in tree.leaves.items()
        ]
        self._sides: list[Array] = []
        self._across = np.zeros((n, 6, 6))
        self.compliance = np.zeros((len(ends), self._width))

    def _graph(self) -> tuple[list[list[int]], list[tuple[int, int]], list[list[int]]]:
        """Joints of each body, bodies of each joint, and the row of ``U`` of each handle.

        ``U`` has the child's side of all tree joints, then the parent's side where the parent is a
        body, then sides B and A of all loop joints.
        """
        n, parent = self.n, self._kin.parent.tolist()
        ends = [(above, k) for k, above in enumerate(parent)]
        handles = [[k] for k in range(n)]
        sources = [[k] for k in range(n)]
        for row, k in enumerate(self._arms.tolist()):
            handles[parent[k]].append(k)
            sources[parent[k]].append(n + row)
        first = n + len(self._arms)
        pairs = zip(self._loops.body_a.tolist(), self._loops.body_b.tolist(), strict=True)
        for number, (a, b) in enumerate(pairs):
            ends.append((a, b))
            for body, row in ((b, first), (a, first + len(self._loops.rows))):
                if body >= 0:
                    handles[body].append(n + number)
                    sources[body].append(row + number)
        return handles, ends, sources

    def update(self) -> None:
        """Assemble the handle equations of the whole robot at the state of the kinematics."""
        kin, arms = self._kin, self._arms
        D = self._joints.D
        self._across = adjoint(kin.R, kin.p)
        reverse = self._across[arms].transpose(0, 2, 1) @ D[arms]
        U = np.concatenate([D, -reverse, self._loops.on_b, self._loops.on_a])
        self._sides = []
        for count, bodies, _, rows in self._alike:
            side = U[rows].transpose(0, 2, 1, 3).reshape(len(bodies), 6, count * self._width)
            self._sides.append(side)
            leaves = self.sweeps.leaves[count]
            np.matmul(side.transpose(0, 2, 1), self._inverse[bodies] @ side, out=leaves)
        self.compliance[: self.n] = self._joints.compliance
        self.compliance[self.n :] = self._loops.compliance
        self.sweeps.assemble(self.compliance)

    def own_response(self) -> Array:
        """Per joint and column of ``D`` what the two bodies alone answer, (joints, width)."""
        total = self.compliance * 0.0
        for count, _, joints, _ in self._alike:
            diagonal = np.diagonal(self.sweeps.leaves[count], axis1=1, axis2=2)
            np.add.at(total, joints, diagonal.reshape(-1, count, self._width))
        return total

    # -- forces and motion ------------------------------------------------------------------

    def inertial_wrenches(self) -> Array:
        """``-V x* I V`` of each body, shape (n, 6)."""
        V = self._kin.V[:-1]
        return apply_transposed(cross_matrix(V), apply(self._inertia, V))

    def joint_wrenches_on_bodies(self, F: Array) -> Array:
        """Wrenches in the tree joints as wrenches on the bodies at both sides, shape (n, 6)."""
        total = np.vstack([F, np.zeros(6)])
        arms = self._arms
        back = apply_transposed(self._across[arms], F[arms])
        np.subtract.at(total, self._kin.parent[arms], back)
        return total[:-1]

    def accelerations(self, wrenches: Array, x: Array | None, ground: Array) -> Array:
        """Accelerations of bodies and ground, at and in each, shape (n + 1, 6).

        Args:
            wrenches: known wrench on each body, shape (n, 6).
            x: measure numbers of the joint forces, shape (joints, width).
            ground: acceleration of the ground, shape (6,).
        """
        A = np.empty((self.n + 1, 6))
        A[-1] = ground
        if x is not None:
            wrenches = wrenches.copy()
            for (_, bodies, joints, _), side in zip(self._alike, self._sides, strict=True):
                wrenches[bodies] += apply(side, x[joints].reshape(len(bodies), -1))
        A[:-1] = apply(self._inverse, wrenches)
        return A

    def across_tree(self, A: Array) -> Array:
        """Acceleration of each body relative to its parent, at and in the body, shape (n, 6)."""
        return A[:-1] - apply(self._across, A[self._kin.parent])

    def across_loops(self, A: Array) -> Array:
        """``D'`` times the relative acceleration at each loop joint, shape (loops, width)."""
        loops = self._loops
        on_b, on_a = A[loops.body_b], A[loops.body_a]
        return apply_transposed(loops.on_b, on_b) + apply_transposed(loops.on_a, on_a)


def _with_loans(inertia: Array, length: float) -> tuple[Array, list[tuple[int, Array, float]]]:
    """Inertias made positive definite, and what was added: body, direction, amount.

    A body without mass, or a point mass, cannot answer a force by itself.
    """
    if len(inertia) == 0:
        return inertia, []
    unit = np.repeat([length, 1.0], 3)
    values, vectors = np.linalg.eigh(unit[:, None] * inertia * unit)
    typical = float(np.mean(values[:, -1]))
    whole, loans = inertia.copy(), []
    size = np.maximum(values[:, -1], 1e-3 * typical)
    for k, column in np.argwhere(values < _THIN * size[:, None]):
        direction = vectors[k, :, column] / unit
        amount = float(size[k])
        whole[k] += amount * np.outer(direction, direction)
        loans.append((int(k), direction, amount))
    return whole, loans
