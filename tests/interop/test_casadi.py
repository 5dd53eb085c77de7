"""Accelerations as functions of CasADi, against its own differences."""

from __future__ import annotations

from typing import Any

import casadi
import numpy as np
import pytest

import pinloop as pl
from pinloop.interop.casadi import Acceleration

from .. import states

Array = Any


class Undifferentiated(Acceleration):
    """The same, of which CasADi has to take differences."""

    def has_jacobian(self) -> bool:
        return False


def slopes(function: Any, at: list[Array]) -> Array:
    """Jacobian by all arguments."""
    given = [casadi.MX.sym("x", len(part)) for part in at]
    jacobian = casadi.jacobian(function(*given), casadi.vertcat(*given))
    return np.array(casadi.Function("J", given, [jacobian])(*at))


def both(equations: pl.EquationsOfMotion, at: list[Array]) -> tuple[Array, Array]:
    """Our Jacobian, and CasADi's differences."""
    options = {"enable_fd": True, "enable_forward": False, "enable_reverse": False}
    other = Undifferentiated(equations, "other", options | {"enable_jacobian": False})
    return slopes(Acceleration(equations), at), slopes(other, at)


@pytest.mark.parametrize(
    "name, locks",
    [("fourbar", ()), ("fivebar", ()), ("palletizer", ("wrist",)), ("floating-four-bar", ())],
)
def test_casadi_finds_the_same_jacobian(name: str, locks: tuple[str, ...]) -> None:
    robot = states.regularized(name)
    q, v = states.moving(robot, 5)
    equations = pl.EquationsOfMotion(robot, locks=locks).around(0.0, q)
    ours, theirs = both(equations, [q, v, np.random.default_rng(0).normal(size=robot.nv)])
    assert ours.shape == (robot.nv, robot.nq + 2 * robot.nv)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(theirs).max())


def test_quaternions_need_not_be_normalised() -> None:
    robot = states.regularized("floating-four-bar")
    q, v = states.moving(robot, 5)
    size = np.ones(robot.nq)
    (joint,) = (joint for joint in robot.model.joints[1:] if joint.nq == 7)
    size[joint.idx_q + 3 : joint.idx_q + 7] = 1.3
    equations, tau = pl.EquationsOfMotion(robot).around(0.0, q), np.zeros(robot.nv)
    f = Acceleration(equations)
    np.testing.assert_allclose(f(size * q, v, tau), f(q, v, tau), atol=1e-9)
    ours, theirs = both(equations, [size * q, v, tau])
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(theirs).max())
    one, _ = both(equations, [q, v, tau])
    turned = slice(joint.idx_q + 3, joint.idx_q + 7)
    np.testing.assert_allclose(1.3 * ours[:, turned], one[:, turned], atol=1e-8)


def test_a_function_is_that_of_the_equations() -> None:
    robot = states.regularized("palletizer")
    q, v = states.moving(robot, 5)
    equations, tau = pl.EquationsOfMotion(robot), np.arange(robot.nv) * 10.0
    push = pl.TorqueFunction(lambda t, q, v: tau)
    wanted = equations.with_force(push).acceleration(0.0, q, v)
    found = Acceleration(equations)(q=q, v=v, tau=tau)["a"]
    np.testing.assert_allclose(np.array(found).ravel(), wanted, atol=1e-8)
