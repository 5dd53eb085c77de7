"""Placements, twists and joint maps of all bodies of a robot: the first two sweeps (paper 3).

Bodies are the moving bodies of the `pin.Model`, numbered from 0 in its order; the last entry of
every array is the ground. Joints with one axis are worked on all together; the others are taken
from Pinocchio one by one. Without `pin.Data`, whose memory grows with the cube of the joints.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .scan import TreeScan
from .spatial import apply, apply_transposed, cross, motion_cross

__all__ = ["Kinematics"]

Array = NDArray[np.float64]

_STEADY = ("FreeFlyer", "Spherical", "Planar", "Translation")
"""Joints with several axes whose motion map is constant in the joint frame."""


class Kinematics:
    """Kinematics of the tree.

    Args:
        model: the tree.

    Attributes:
        parent: parent of each body, shape (n,); -1, the last entry of arrays, is the ground.
        R: rotation of each body in its parent, shape (n, 3, 3).
        p: position of each body in its parent, shape (n, 3) [m].
        world_R: rotation in the world, shape (n + 1, 3, 3).
        world_p: position in the world, shape (n + 1, 3) [m].
        V: twist of each body, at and in it, shape (n + 1, 6).
        bias: ``dH/dt u``, the relative acceleration of body and parent without joint acceleration,
            at and in the body, shape (n, 6).
        several: bodies whose joint has not exactly one axis.
        H: motion map of these joints, shape (6, dof) each.
        unsteady: those of them whose motion map changes with the configuration.
    """

    def __init__(self, model: pin.Model) -> None:
        self.n = n = int(model.njoints) - 1
        joints = [model.joints[k + 1] for k in range(n)]
        self._models = joints
        self._datas = [joint.createData() for joint in joints]
        names = [joint.shortname().removeprefix("JointModel") for joint in joints]
        self.parent = np.array([int(model.parents[k + 1]) - 1 for k in range(n)], dtype=np.intp)
        self.columns = [slice(joint.idx_v, joint.idx_v + joint.nv) for joint in joints]
        single = [joint.nv == 1 and "Composite" not in name
                  for joint, name in zip(joints, names, strict=True)]  # fmt: skip
        self.single = np.flatnonzero(single)
        self.several = [k for k in range(n) if not single[k]]
        self.unsteady = [k for k in self.several if names[k] not in _STEADY]
        self.single_v = np.array([joints[k].idx_v for k in self.single], dtype=np.intp)
        self._single_q = np.array([joints[k].idx_q for k in self.single], dtype=np.intp)
        self._circle = np.array([joints[k].nq == 2 for k in self.single], dtype=bool)
        self._seat = np.array([model.jointPlacements[k + 1].homogeneous for k in range(n)])
        self._seat = self._seat.reshape(n, 4, 4)
        self._scan = TreeScan(self.parent.tolist())
        self.R, self.p = np.zeros((n, 3, 3)), np.zeros((n, 3))
        self.world_R, self.world_p = np.zeros((n + 1, 3, 3)), np.zeros((n + 1, 3))
        self.world_R[-1] = np.eye(3)
        self.V, self.bias = np.zeros((n + 1, 6)), np.zeros((n, 6))
        self._maps(pin.neutral(model))

    def _maps(self, q: Array) -> None:
        """Motion maps at the neutral configuration, and what turning about an axis needs."""
        for joint, data in zip(self._models, self._datas, strict=True):
            joint.calc(data, q, np.zeros(len(q)))
        self.H = {k: self._map(k) for k in self.several}
        self.axes = np.array([self._map(k)[:, 0] for k in self.single.tolist()]).reshape(-1, 6)
        a = self.axes[:, 3:]
        self._skew = np.zeros((len(a), 3, 3))
        self._skew[:, [2, 0, 1], [1, 2, 0]] = a
        self._skew[:, [1, 2, 0], [2, 0, 1]] = -a
        seats = self._seat[self.single, :3, :3]
        # Seat times (1 + sin K + (1 - cos) K^2), the rotation about the axis.
        self._turn = np.stack([seats, seats @ self._skew, seats @ self._skew @ self._skew])
        self._slide = apply(seats, self.axes[:, :3])

    def _map(self, body: int) -> Array:
        return np.array(self._datas[body].S).reshape(6, -1)

    def update(self, q: Array, v: Array) -> None:
        """Placements, twists and biases at a state."""
        for k in self.several:
            self._models[k].calc(self._datas[k], q, v)
        self._place(q)
        self._move(v)

    def _place(self, q: Array) -> None:
        """First sweep: placements."""
        angle = q[self._single_q]
        sine, cosine = np.sin(angle), np.cos(angle)
        if self._circle.any():
            at = self._single_q[self._circle]
            cosine[self._circle], sine[self._circle] = q[at], q[at + 1]
        one, first, second = self._turn
        single = self.single
        turned = one + sine[:, None, None] * first + (1.0 - cosine)[:, None, None] * second
        steps = np.zeros((self.n, 4, 4))
        steps[:, 3, 3] = 1.0
        steps[single, :3, :3] = turned
        steps[single, :3, 3] = self._seat[single, :3, 3] + angle[:, None] * self._slide
        for k in self.several:
            steps[k] = self._seat[k] @ self._datas[k].M.homogeneous
        self.R, self.p = steps[:, :3, :3], steps[:, :3, 3]
        world = self._scan.product(steps)
        self.world_R[:-1], self.world_p[:-1] = world[:, :3, :3], world[:, :3, 3]

    def _move(self, v: Array) -> None:
        """Second sweep: twists, and the relative accelerations that they cause."""
        across, parent = np.zeros((self.n, 6)), self.parent
        across[self.single] = self.axes * v[self.single_v, None]
        for k in self.unsteady:
            self.H[k] = self._map(k)
        for k in self.several:
            across[k] = self.H[k] @ v[self.columns[k]]
        world_R, world_p = self.world_R[:-1], self.world_p
        turning = np.zeros((self.n + 1, 3))
        turning[:-1] = self._scan.sum(apply(world_R, across[:, 3:]))
        arms = world_p[:-1] - world_p[parent]
        moving = self._scan.sum(apply(world_R, across[:, :3]) + cross(turning[parent], arms))
        self.V[:-1, :3] = apply_transposed(world_R, moving)
        self.V[:-1, 3:] = apply_transposed(world_R, turning[:-1])
        self.bias = motion_cross(self.V[:-1], across)
        for k in self.unsteady:
            self.bias[k] += np.ravel(self._datas[k].c.vector)
