"""Looped robots in Crocoddyl, against its own differences and against runs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.interop import crocoddyl as looped

from .. import states

Array = Any
ROBOTS = {
    "fourbar": (),  # one control, for which Crocoddyl's matrices become vectors
    "fivebar": (),
    "palletizer": ("wrist",),
    "floating-four-bar": (),  # a free-flyer
    "gear-pair": (),
    "delta": (),  # ball joints
    "spherical_threebar": (),
    "bennett": (),
}
"""Robots and what is locked."""
RIGHT = {"delta": 1e-3}
"""Crocoddyl's differences are one-sided, of second derivatives of 1e7 on the delta; else 1e-5."""


class Node:
    """A state of a robot, and costs on it."""

    u: Array

    def __init__(self, name: str, regular: bool = True, **options: Any) -> None:
        self.robot = robot = states.regularized(name) if regular else states.robot(name)
        self.q, self.v = states.moving(robot, 5)
        options = {"locks": ROBOTS[name]} | options
        self.equations = pl.EquationsOfMotion(robot, **options).around(0.0, self.q)
        J = self.equations.terms(0.0, self.q, self.v)[0]
        self.v = self.v - np.linalg.pinv(J) @ (J @ self.v)
        self.state = crocoddyl.StateMultibody(robot.model)
        self.nu = looped.ActuationModelDrives(self.state, robot).nu
        self.rng = np.random.default_rng(7)
        self.x, self.u = np.append(self.q, self.v), self.rng.normal(size=self.nu)
        self.costs = crocoddyl.CostModelSum(self.state, self.nu)
        frame = robot.model.frames[robot.model.nframes - 1].name
        target = pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.4, 0.2]))
        residuals = {
            "state": crocoddyl.ResidualModelState(self.state, self.nu),
            "pose": looped.ResidualModelFrame(self.state, robot, frame, target, self.nu),
            "place": looped.ResidualModelFrame(self.state, robot, frame, np.ones(3), self.nu),
        }
        if self.nu:
            residuals["controls"] = crocoddyl.ResidualModelControl(self.state, self.nu)
        for weight, (label, residual) in enumerate(residuals.items(), 1):
            cost = crocoddyl.CostModelResidual(self.state, residual)
            self.costs.addCost(label, cost, 0.1 * weight)
        self.dynamics = looped.DifferentialActionModelLooped(self.equations, self.costs)

    def agree(self, model: Any, numeric: Any, right: float, u: Array) -> Any:
        """Compare a model's derivatives with Crocoddyl's differences of it."""
        data, differences = model.createData(), numeric.createData()
        for one, node in ((model, data), (numeric, differences)):
            one.calc(node, self.x, u)
            one.calcDiff(node, self.x, u)
        for part in ("Fx", "Fu", "Lx", "Lu"):
            wanted = np.array(getattr(differences, part))
            error = np.abs(getattr(data, part) - wanted).max(initial=0.0)
            assert error <= right * max(1.0, np.abs(wanted).max(initial=0.0)), part
        return data


@pytest.mark.parametrize("name", ROBOTS)
def test_crocoddyl_finds_the_same_derivatives(name: str) -> None:
    node = Node(name)
    numeric = crocoddyl.DifferentialActionModelNumDiff(node.dynamics, True)
    node.agree(node.dynamics, numeric, RIGHT.get(name, 1e-5), node.u)


def closed(node: Node, inner: Any, right: float = 1e-5) -> Any:
    """Data of a step whose derivatives are right, and which ends closed."""
    model = looped.ActionModelClosed(inner)
    data = node.agree(model, crocoddyl.ActionModelNumDiff(model, True), right, node.u)
    q, v = np.split(np.array(data.xnext), [node.robot.nq])
    J, b, residual = node.equations.closure(0.0, q)
    assert np.abs(residual).max(initial=0.0) < 1e-12 and np.abs(J @ v - b).max(initial=0.0) < 1e-11
    return data


@pytest.mark.parametrize(
    "name, method",
    [
        *((name, "four") for name in ("fourbar", "fivebar", "palletizer", "floating-four-bar")),
        *((name, "euler") for name in ("fivebar", "floating-four-bar", "gear-pair", "delta")),
    ],
)
def test_crocoddyl_finds_the_same_derivatives_of_closed_steps(name: str, method: str) -> None:
    node, h = Node(name), 2e-2
    if name == "delta":
        h = 1e-3  # its rods spin freely, with little inertia
    if method == "four":
        inner = crocoddyl.IntegratedActionModelRK(node.dynamics, crocoddyl.RKType.four, h)
    else:
        inner = crocoddyl.IntegratedActionModelEuler(node.dynamics, h)
    data = closed(node, inner, RIGHT.get(name, 1e-5))
    before = node.equations.closure(0.0, np.array(data.integrated.xnext[: node.robot.nq]))[2]
    if name in ("fourbar", "fivebar", "floating-four-bar", "delta"):
        assert np.abs(before).max() > 1e-11  # what Crocoddyl's step leaves open


def test_states_that_are_open_are_closed_by_the_next_step() -> None:
    """Iterates of Crocoddyl may have gaps; ball joints turn by what closes them."""
    node = Node("spherical_threebar")
    gap = 3e-2 * node.rng.normal(size=node.robot.nv)
    q = pin.integrate(node.robot.model, node.q, gap)
    node.x = np.append(q, node.v)
    assert np.abs(node.equations.residual(0.0, q)).max() > 5e-3
    closed(node, crocoddyl.IntegratedActionModelEuler(node.dynamics, 1e-2))


def test_locked_joints_of_a_loop_stay_while_it_is_closed() -> None:
    node = Node("fivebar", locks=("elbow_left",))
    data = closed(node, crocoddyl.IntegratedActionModelEuler(node.dynamics, 2e-2))
    at = node.robot.coordinates("elbow_left")
    assert data.xnext[at.q] == pytest.approx(node.q[at.q], abs=1e-12)


def test_rows_on_velocities_leave_positions_alone() -> None:
    """Cranks whose rates have a ratio, whatever their angles, close the loop like others."""
    ratio = pl.constraints.Pfaffian(
        "ratio",
        lambda q: [[1.0, 0.0, -0.5 * np.cos(q[2]), 0.0]],
        lambda q, v: [0.5 * np.sin(q[2]) * v[2] ** 2],
    )
    node = Node("fivebar", rows=[ratio])
    data = closed(node, crocoddyl.IntegratedActionModelEuler(node.dynamics, 2e-2))
    assert (len(data.closed.columns.positions), len(data.closed.columns.rates)) == (2, 3)


def test_a_paradoxical_linkage_keeps_its_freedom_off_its_manifold() -> None:
    node = Node("bennett")
    model = looped.ActionModelClosed(crocoddyl.IntegratedActionModelEuler(node.dynamics, 1e-3))
    data = model.createData()
    off = 1e-3 * node.rng.normal(size=node.robot.nq)
    model.calc(data, node.x + np.append(off, np.zeros(node.robot.nv)), node.u)
    assert len(data.closed.columns.positions) == node.robot.nv - 1


class Cranks(crocoddyl.ActuationModelAbstract):  # type: ignore[misc]
    """Torques that depend on the state."""

    def calc(self, data: Any, x: Array, u: Array) -> None:
        data.tau[:] = u[0] * np.sin(x[: self.state.nv]) + u[1] * x[self.state.nq :]

    def calcDiff(self, data: Any, x: Array, u: Array) -> None:
        n = self.state.nv
        data.dtau_dx[:] = np.hstack([u[0] * np.diag(np.cos(x[:n])), u[1] * np.eye(n)])
        data.dtau_du[:] = np.column_stack([np.sin(x[:n]), x[n:]])


def test_torques_may_depend_on_the_state() -> None:
    node = Node("fivebar")
    cranks = Cranks(node.state, 2)
    dynamics = looped.DifferentialActionModelLooped(node.equations, node.costs, cranks)
    numeric = crocoddyl.DifferentialActionModelNumDiff(dynamics, True)
    node.agree(dynamics, numeric, 1e-5, 10.0 * node.u)


def test_redundant_rows_do_no_harm() -> None:
    one, other = Node("fivebar", regular=False), Node("fivebar")
    assert len(one.equations.rows) > len(other.equations.rows)
    steps = []
    for node in (one, other):
        inner = crocoddyl.IntegratedActionModelRK(node.dynamics, crocoddyl.RKType.four, 2e-2)
        model = looped.ActionModelClosed(inner)
        data = model.createData()
        model.calc(data, other.x, other.u)
        model.calcDiff(data, other.x, other.u)
        steps.append(np.append(data.xnext, data.Fx))
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9, atol=1e-9)


def test_closed_steps_are_those_of_a_run() -> None:
    node, h, steps = Node("fivebar"), 1e-2, 20
    inner = crocoddyl.IntegratedActionModelRK(node.dynamics, crocoddyl.RKType.four, h)
    problem = crocoddyl.ShootingProblem(node.x, [looped.ActionModelClosed(inner)] * steps, inner)
    path = problem.rollout([node.u] * steps)  # whose states live as long as it
    push = [pl.Torque(joint, u) for joint, u in zip(node.robot.actuated, node.u, strict=True)]
    run = pl.simulate(node.robot, node.q, node.v, until=h * steps, forces=push, losses=False)
    np.testing.assert_allclose(path[-1], np.append(run.q[-1], run.v[-1]), atol=1e-5)


@pytest.mark.parametrize("name", ["fourbar", "palletizer", "floating-four-bar"])
def test_crocoddyl_finds_the_same_derivatives_of_jumps(name: str) -> None:
    node = Node(name)
    lock = node.robot.actuated[0] if node.robot.actuated else node.robot.joints[-1]
    after = pl.EquationsOfMotion(node.robot, locks=(lock,))
    model = looped.ActionModelJump(after, node.state)
    data = node.agree(model, crocoddyl.ActionModelNumDiff(model, True), 1e-5, np.zeros(0))
    jump = pl.transition(node.robot, node.q, node.v, pl.Mode(), pl.Mode(locks=(lock,)))
    np.testing.assert_allclose(data.xnext[node.robot.nq :], jump.v_plus, atol=1e-9)


def test_locked_joints_stay() -> None:
    node = Node("palletizer")
    (wrist,) = (node.robot.coordinates(joint).v.start for joint in ROBOTS["palletizer"])
    data = node.dynamics.createData()
    node.dynamics.calc(data, node.x, 1e3 * node.u)
    assert data.xout[wrist] == 0.0 and np.abs(data.xout).max() > 0.1


def test_what_does_not_fit_is_refused() -> None:
    node = Node("fivebar")
    other = crocoddyl.StateMultibody(states.robot("fourbar").model)
    with pytest.raises(pl.BadValue, match=r"nq = 3, nv = 3, and robot 'fivebar' 4, 4"):
        looped.DifferentialActionModelLooped(node.equations, crocoddyl.CostModelSum(other, 2))
    with pytest.raises(pl.BadValue, match=r"costs have 4 controls, .* 'fivebar' 2"):
        looped.DifferentialActionModelLooped(node.equations, crocoddyl.CostModelSum(node.state))
    robot: Any = node.robot
    with pytest.raises(pl.BadValue, match="EquationsOfMotion"):
        looped.DifferentialActionModelLooped(robot, node.costs)
    with pytest.raises(pl.BadValue, match="EquationsOfMotion"):
        looped.ActionModelJump(robot, node.state)
    with pytest.raises(pl.BadValue, match="takes a step of DifferentialActionModelLooped"):
        looped.ActionModelClosed(node.dynamics)
    residual = crocoddyl.ResidualModelCoMPosition(node.state, np.zeros(3), node.nu)
    node.costs.addCost("com", crocoddyl.CostModelResidual(node.state, residual), 1.0)
    with pytest.raises(pl.BadValue, match="take ResidualModelFrame"):
        node.dynamics.createData()


@pytest.mark.parametrize("faster", [10.0, 50.0])
def test_steps_that_leave_the_loops_wide_open_are_not_numbers(faster: float) -> None:
    """Crocoddyl's solvers try a shorter step for these."""
    node = Node("fivebar")
    inner = crocoddyl.IntegratedActionModelEuler(node.dynamics, 1.0)
    model = looped.ActionModelClosed(inner)
    data = model.createData()
    model.calc(data, np.append(node.q, faster * node.v), node.u)
    assert np.isnan(data.xnext).all()


@pytest.mark.parametrize("name", ["crocoddyl", "casadi", "pink"])
def test_packages_that_are_missing_are_named(name: str) -> None:
    program = (
        f"import sys; sys.modules['{name}'] = None\nimport pinloop as pl\n"
        f"try:\n    from pinloop.interop import {name}\nexcept pl.PinloopError as e:\n    print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{name} is not installed: pip install 'pinloop[{name}]'\n"
