"""One pose of a serial twin: rates, torques, inertia and limits from motors to joints and back.

With ``J`` the rates of the motors per rate of the joints, virtual work makes the torques at the
joints ``J'`` times those of the motors. What limits allow is a box in the space of the motors and,
in that of the joints, a polygon: its image.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array
from ..errors import BadValue
from ..linalg.box import Bounds


@public
@dataclass(frozen=True, eq=False)
class TwinPose:
    """What motors and joints are to each other at a pose of a `SerialTwin`.

    Of torques, rates and positions there is one per joint or per motor, in the order of the twin.

    Args:
        motor_names: the motors.
        joints: positions of the joints [rad, m], shape (k,).
        motors: positions of the motors [rad, m], shape (k,).
        followers: positions of joints that follow [rad, m], shape (f,).
        q: configuration of the robot with its loops, shape (nq,).
        jacobian: rates of motors per rate of joints, shape (k, k).
        hessian: its derivative by the joints, shape (k, k, k): entry i, j, l is how the rate of
            motor i per rate of joint j changes with joint l.
        regularity: 1 at home, 0 where motors and joints no longer move each other: the smallest
            singular value of ``jacobian`` over that at home, or the inverse of the largest.
        inertia: what rotors and linkage add to the inertia at the joints [kg m^2, kg m, kg], shape
            (k, k); bodies that stay in the serial robot do not count.
        inertia_slopes: derivative of ``inertia`` by the joints, shape (k, k, k).
        weight: torque of gravity on the linkage at the joints, its carrier as at home, shape (k,).
        torque_bounds: of the motors, shape (k,) each.
        speed_bounds: of the motors, shape (k,) each.
    """

    motor_names: tuple[str, ...]
    joints: Array
    motors: Array
    followers: Array
    q: Array
    jacobian: Array
    hessian: Array
    regularity: float
    inertia: Array
    inertia_slopes: Array
    weight: Array
    torque_bounds: Bounds
    speed_bounds: Bounds

    def motor_rates(self, joint_rates: ArrayLike) -> Array:
        """Rates of the motors [rad/s, m/s]."""
        return np.asarray(self.jacobian @ self._checked(joint_rates, "joint_rates"))

    def joint_rates(self, motor_rates: ArrayLike) -> Array:
        """Rates of the joints [rad/s, m/s]."""
        rates = self._checked(motor_rates, "motor_rates")
        return np.asarray(np.linalg.solve(self.jacobian, rates))

    def motor_accelerations(self, joint_rates: ArrayLike, joint_accelerations: ArrayLike) -> Array:
        """Accelerations of the motors [rad/s^2, m/s^2]."""
        rates = self._checked(joint_rates, "joint_rates")
        change = self.hessian @ rates @ rates
        return np.asarray(self.motor_rates(joint_accelerations) + change)

    def joint_torques(self, motor_torques: ArrayLike) -> Array:
        """Torques at the joints [N m, N] that torques of the motors are worth."""
        return np.asarray(self.jacobian.T @ self._checked(motor_torques, "motor_torques"))

    def motor_torques(self, joint_torques: ArrayLike) -> Array:
        """Torques of the motors [N m, N] that are worth these at the joints."""
        torques = self._checked(joint_torques, "joint_torques")
        return np.asarray(np.linalg.solve(self.jacobian.T, torques))

    def inertia_rate(self, joint_rates: ArrayLike) -> Array:
        """Rate of ``inertia`` at rates of the joints, shape (k, k)."""
        return np.asarray(self.inertia_slopes @ self._checked(joint_rates, "joint_rates"))

    def coriolis(self, joint_rates: ArrayLike) -> Array:
        """Torque at the joints that the change of ``inertia`` takes [N m, N], shape (k,).

        The linkage and the rotors take ``inertia @ accelerations + coriolis(rates) - weight`` from
        the torques of the motors.
        """
        rates = self._checked(joint_rates, "joint_rates")
        slopes = self.inertia_slopes
        half = 0.5 * np.einsum("ijl,i,j->l", slopes, rates, rates)
        return np.asarray(slopes @ rates @ rates - half)

    @property
    def torque_polygon(self) -> Array:
        """Corners of the torques at the joints that the motors can give, shape (2^k, k).

        Of two motors counterclockwise around the polygon.
        """
        return self._counterclockwise(self._corners(self.torque_bounds, "torque") @ self.jacobian)

    @property
    def speed_polygon(self) -> Array:
        """Corners of the rates of the joints that the motors can follow, shape (2^k, k)."""
        corners = self._corners(self.speed_bounds, "speed")
        return self._counterclockwise(np.asarray(np.linalg.solve(self.jacobian, corners.T).T))

    def _corners(self, bounds: Bounds, what: str) -> Array:
        """Corners of a box, of two motors counterclockwise."""
        ends = np.array(bounds).T
        if not np.isfinite(ends).all():
            name = self.motor_names[int((~np.isfinite(ends)).any(axis=1).argmax())]
            raise BadValue(
                f"motor '{name}' has no {what} limit; give it: "
                f"pl.serial(..., {what}s={{{name!r}: 40.0}})"
            )
        corners = np.array(list(product(*ends)))
        return corners[[0, 2, 3, 1]] if len(ends) == 2 else corners

    def _counterclockwise(self, corners: Array) -> Array:
        turned = corners.shape[1] == 2 and np.linalg.det(self.jacobian) < 0.0
        return np.asarray(corners[::-1] if turned else corners)

    def _checked(self, values: ArrayLike, what: str) -> Array:
        return flat_numbers(values, what, len(self.motors))
