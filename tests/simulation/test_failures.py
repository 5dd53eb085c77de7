"""Tests of interrupted and failed runs, and of what is left of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import MatrixFormulation
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from ..screw_tables import Array
from ..states import one_body, robot

BAR = robot("four-bar")
RATE = pl.consistent_velocity(BAR, BAR.neutral, {"crank": 3.0})


def stopping(at: float, reason: Callable[[], Any]) -> Callable[[float, Array, Array], Array]:
    """Torques that do something else after a time."""

    def tau(t: float, q: Array, v: Array) -> Array:
        value = reason() if t > at else 0.0
        return np.full(len(v), value)

    return tau


def interrupt() -> float:
    raise KeyboardInterrupt


def assert_usable(run: pl.Trajectory, least: float, most: float) -> None:
    """A part of the run that can be looked at like a whole one."""
    assert least < run.t[-1] <= most
    assert len(run.t) == len(run.q) == len(run.v) == len(run.a) == len(run.psi) + 1
    assert np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))
    whole = pl.simulate(BAR, BAR.neutral, RATE, until=0.5)
    np.testing.assert_allclose(run.q[-1], whole(run.t[-1]).q, atol=1e-7)
    assert run.closure().max() < 1e-10 and run(run.t[-1] / 2).q.shape == (3,)


METHODS = [pl.MuntheKaas(), *map(pl.MuntheKaas, ("dop853", "radau5", "radau9"))]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@every_method
def test_ctrl_c_returns_what_there_is(method: pl.MuntheKaas) -> None:
    with pytest.warns(pl.PinloopWarning, match="interrupted at t = 0.[23]"):
        run = pl.simulate(
            BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, interrupt), method=method
        )
    assert_usable(run, 0.2, 0.3)
    assert run.message.startswith("interrupted at t = 0.")


@every_method
def test_ctrl_c_with_saved_states(method: pl.MuntheKaas) -> None:
    with pytest.warns(pl.PinloopWarning):
        run = pl.simulate(
            BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, interrupt), save_every=0.05,
            method=method,
        )  # fmt: skip
    np.testing.assert_allclose(run.t[:5], 0.05 * np.arange(5))
    assert 0.2 < run.t[-1] <= 0.3
    whole = pl.simulate(BAR, BAR.neutral, RATE, until=0.5)
    np.testing.assert_allclose(run.q, whole(run.t).q, atol=1e-7)
    np.testing.assert_allclose(run.v, whole(run.t).v, atol=1e-6)


def test_ctrl_c_before_the_first_state_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(-1.0, interrupt))


@pytest.mark.parametrize(
    "method",
    [*METHODS, *(pl.MuntheKaas(name, step=0.01) for name in ("rk4", "dop853", "radau9"))],
    ids=lambda method: f"{method.name}-{method.step}",
)
@pytest.mark.parametrize("save_every", [None, 0.05])
def test_a_force_that_is_not_a_number_fails_with_what_there_is(
    method: pl.MuntheKaas, save_every: float | None
) -> None:
    with pytest.raises(
        pl.SimulationFailed, match=r"at t = 0\.(3|2[5-9]\d+) s: .*'tau' is not finite"
    ) as caught:
        pl.simulate(
            BAR, BAR.neutral, RATE, until=1.0, method=method,
            tau=stopping(0.3, lambda: np.nan), save_every=save_every,
        )  # fmt: skip
    assert_usable(caught.value.trajectory, 0.25, 0.3001)
    assert caught.value.reason == "BadValue"


def test_a_force_that_is_wrong_from_the_start_has_no_trajectory() -> None:
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(-1.0, lambda: np.nan))
    assert caught.value.trajectory is None


def test_errors_of_the_users_own_code_do_not_lose_the_run() -> None:
    def broken() -> float:
        raise ZeroDivisionError("mine")

    with pytest.raises(
        pl.SimulationFailed, match=r"'tau' raised ZeroDivisionError.*: mine"
    ) as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=1.0, tau=stopping(0.3, broken))
    assert_usable(caught.value.trajectory, 0.2, 0.3)
    cause: BaseException | None = caught.value
    while cause is not None and not isinstance(cause, ZeroDivisionError):
        cause = cause.__cause__
    assert cause is not None  # the user finds the line


def test_a_fixed_step_that_is_too_long_says_so() -> None:
    stiff = pl.PD("crank", 1e8, 1e5, target=1.0)
    with pytest.raises(pl.SimulationFailed, match="take a smaller step") as caught:
        pl.simulate(
            BAR, BAR.neutral, until=10.0, forces=[stiff], stabilization=None,
            regularization=False, method=pl.MuntheKaas("rk4", step=0.1),
        )  # fmt: skip
    run = caught.value.trajectory
    assert run is not None and np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))


def massless() -> pl.Mechanism:
    """A body without mass on a slide: good for kinematics only."""
    unit = pin.SE3.Identity()
    bodies = (
        Body("cart", 1.0, constant(np.zeros(3)), constant(np.eye(3))),
        Body("ghost", 0.0, constant(np.zeros(3)), constant(np.zeros((3, 3)))),
    )
    joints = (
        Joint("x", make_pair("prismatic"), GROUND, "cart", unit, unit),
        Joint("y", make_pair("prismatic"), "cart", "ghost", unit, unit),
    )
    return build(Description("massless", bodies, joints), kinematics_only=True)


@pytest.mark.parametrize("formulation", [pl.Augmented(), pl.Projected(), pl.Voronets()], ids=str)
def test_a_singular_mass_matrix_fails(formulation: Any) -> None:
    with pytest.raises(pl.SimulationFailed, match="not positive definite") as caught:
        pl.simulate(massless(), [0.0, 0.0], until=1.0, formulation=formulation)
    assert caught.value.reason == "SingularMass" and caught.value.trajectory is None


class Careful(MatrixFormulation):
    """Refuses a mass matrix that is close to singular."""

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, scale: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        if np.linalg.eigvalsh(M)[0] < 1e-3:
            raise pl.SingularMass("the mass matrix is close to singular")
        return pl.Augmented().solve(M, J, f, gamma, scale, max_rank)


def test_running_into_a_singular_mass_matrix_keeps_what_there_is() -> None:
    """A body on three angles, of which two become one at 90 degrees of pitch."""
    body = one_body("spherical", inertia=(0.1, 0.2, 0.3), coordinates="zyx", gravity=(0, 0, 0))
    with pytest.raises(pl.SimulationFailed, match="close to singular") as caught:
        pl.simulate(
            body, body.neutral, [0.0, 1.0, 0.0], until=4.0, formulation=Careful(),
            method=pl.MuntheKaas(largest=0.05),
        )  # fmt: skip
    run = caught.value.trajectory
    assert caught.value.reason == "SingularMass"
    assert 1.2 < run.t[-1] < np.pi / 2 and run.q[-1][1] == pytest.approx(run.t[-1], abs=1e-7)
