"""Optima of looped robots: Crocoddyl's converge, IPOPT finds the same, and runs move so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi
import crocoddyl
import numpy as np
import pytest

import pinloop as pl
from pinloop.interop import crocoddyl as looped
from pinloop.interop.casadi import Acceleration

from .. import states

Array = Any


@dataclass
class Problem:
    """Move a robot within a time at small torques: what is counted, and how much.

    Args:
        equations: equations of motion.
        q: configuration at the start.
        steps: number of steps, in each of which the controls are constant.
        time: of all of them [s].
        weight: of each control.
    """

    equations: pl.EquationsOfMotion
    q: Array
    steps: int
    time: float
    weight: Array

    def __post_init__(self) -> None:
        self.robot, self.h = self.equations.robot, self.time / self.steps
        self.state = crocoddyl.StateMultibody(self.robot.model)
        self.x, self.nu = np.append(self.q, np.zeros(self.robot.nv)), len(self.weight)

    def costs(self, **residuals: tuple[Any, Any]) -> Any:
        """Weighted sum of squares of residuals, each with its weights."""
        costs = crocoddyl.CostModelSum(self.state, self.nu)
        for name, (residual, weights) in residuals.items():
            activation = crocoddyl.ActivationModelWeightedQuad(np.asarray(weights))
            cost = crocoddyl.CostModelResidual(self.state, activation, residual)
            costs.addCost(name, cost, 1.0)
        return costs

    def still(self, weight: float) -> tuple[Any, Any]:
        """Velocities as a residual."""
        return crocoddyl.ResidualModelState(self.state, self.nu), np.repeat(
            [0.0, weight], self.robot.nv
        )

    def node(self, costs: Any, most: Array) -> Any:
        dynamics = looped.DifferentialActionModelLooped(self.equations, costs)
        step = crocoddyl.IntegratedActionModelRK(dynamics, crocoddyl.RKType.four, self.h)
        step.u_lb, step.u_ub = -most, most
        return looped.ActionModelClosed(step)

    def solve(self, end: Any, guess: Array, most: Array, middle: float) -> Any:
        """Crocoddyl's optimum, with velocities that count ``middle`` on the way."""
        controls = crocoddyl.ResidualModelControl(self.state, guess)
        run = self.costs(controls=(controls, self.weight), still=self.still(middle))
        nodes = [self.node(run, most)] * self.steps, self.node(end, most)
        problem = crocoddyl.ShootingProblem(self.x, *nodes)
        bounded = np.isfinite(most).all()
        solver = (crocoddyl.SolverBoxFDDP if bounded else crocoddyl.SolverFDDP)(problem)
        solver.th_stop, us = 1e-6, [guess] * self.steps
        assert solver.solve(problem.rollout(us), us, 100, False, 1e-6), "not converged"
        return solver

    def run(self, controls: Array, x: Array) -> tuple[Array, float]:
        """Where the controls lead by `pl.simulate`, and how far the loops were open at most."""
        (q, v), worst = np.split(x, [self.robot.nq]), 0.0
        mode = pl.Mode(locks=self.equations.rows.locks)
        for u in controls:
            torques = zip(self.robot.actuated, u, strict=True)
            push = [pl.Torque(joint, float(value)) for joint, value in torques]
            run = pl.simulate(self.robot, q, v, until=self.h, forces=push, losses=False, mode=mode)
            q, v, worst = run.q[-1], run.v[-1], max(worst, run.closure().max())
        return np.append(q, v), worst


def led(robot: pl.Mechanism, q: Array, **turns: float) -> Array:
    """The assembly at the end of a continuous motion of some joints."""
    begin = {joint: q[robot.coordinates(joint).q][0] for joint in turns}
    for part in np.linspace(0.0, 1.0, 11)[1:]:
        fixed = {joint: begin[joint] + part * (turns[joint] - begin[joint]) for joint in turns}
        q = pl.assemble(robot, q, fixed=fixed, limits=False)
    return q


@cache
def swing_up() -> tuple[Problem, Array, Any]:
    """The five-bar, where it is upright, and Crocoddyl's optimum."""
    robot = states.regularized("fivebar")
    hanging, rest = pl.equilibrium(robot, pl.assemble(robot)), np.zeros(robot.nv)
    level = led(robot, pl.assemble(robot), base_left=1.48, base_right=1.03)
    assert np.abs(pl.inverse_dynamics(robot, level, rest, rest)).max() > 4.5
    up = led(robot, level, base_left=3.709, base_right=2.574)
    upright = np.append(pl.equilibrium(robot, up), rest)
    problem = Problem(pl.EquationsOfMotion(robot), hanging, 40, 1.2, np.full(2, 1e-2))
    goal = crocoddyl.ResidualModelState(problem.state, upright, problem.nu)
    end = problem.costs(upright=(goal, UPRIGHT))
    return problem, upright, problem.solve(end, np.zeros(2), np.full(2, 3.0), 1e-4)


UPRIGHT = np.repeat([1e2, 1e1], 4)


@pytest.mark.filterwarnings("ignore:.*limit:pinloop.PinloopWarning")
def test_a_five_bar_swings_up() -> None:
    """With 3 N m it cannot lift its cranks slowly, which takes 4.6 N m."""
    problem, upright, solver = swing_up()
    robot, hanging = problem.robot, problem.q
    controls = np.array(solver.us)
    assert np.abs(controls).max() <= 3.0
    reached = np.array(solver.xs[-1])
    np.testing.assert_allclose(reached, upright, atol=1e-3)
    moved, worst = problem.run(controls, problem.x)
    # Steps of 30 ms are worth that much in an unstable motion, and a quarter of them much less.
    np.testing.assert_allclose(moved, reached, atol=0.2)
    finer = Problem(problem.equations, hanging, 160, 1.2, problem.weight)
    nodes = [finer.node(finer.costs(), np.full(2, 3.0))] * finer.steps
    path = crocoddyl.ShootingProblem(finer.x, nodes, nodes[0]).rollout(
        list(np.repeat(controls, 4, 0))
    )
    np.testing.assert_allclose(moved, path[-1], atol=2e-3)
    np.testing.assert_allclose(
        robot.placement(moved[:4], "tool0").translation,
        robot.placement(upright[:4], "tool0").translation,
        atol=2e-3,
    )
    assert worst < 1e-9


def test_a_palletizer_picks_with_its_wrist_locked() -> None:
    robot = states.regularized("palletizer")
    q, rest = pl.assemble(robot, {"shoulder": 0.1, "elbow": 0.1}), np.zeros(robot.nv)
    at = [robot.coordinates(joint).v.start for joint in robot.actuated]
    effort = robot.model.effortLimit[at]
    equations = pl.EquationsOfMotion(robot, locks=("wrist",))
    problem = Problem(equations, q, 20, 0.8, 1.0 / effort**2)
    place = robot.placement(q, "tool0").translation + np.array([0.3, 0.5, -0.4])
    tool = looped.ResidualModelFrame(problem.state, robot, "tool0", place, problem.nu)
    end = problem.costs(tool=(tool, np.full(3, 1e4)), still=problem.still(1e2))
    holding = pl.inverse_dynamics(robot, q, rest, rest)
    solver = problem.solve(end, holding, effort, 1e-3)
    moved, worst = problem.run(np.array(solver.us), problem.x)
    np.testing.assert_allclose(moved, solver.xs[-1], atol=1e-4)
    np.testing.assert_allclose(robot.placement(moved[:10], "tool0").translation, place, atol=1e-4)
    assert np.abs(moved[10:]).max() < 1e-3 and worst < 1e-9
    wrist = robot.coordinates("wrist").q
    assert all(x[wrist] == q[wrist] for x in solver.xs)


def test_a_palletizer_locks_its_base_on_the_way() -> None:
    """The optimum uses the jump: the lock takes what is left of the base's speed."""
    robot = states.regularized("palletizer")
    q, rest = pl.assemble(robot, {"shoulder": 0.1, "elbow": 0.1}), np.zeros(robot.nv)
    holding, lock = pl.inverse_dynamics(robot, q, rest, rest), ("base_yaw",)
    weights = np.full(4, 1e-7)
    before = Problem(pl.EquationsOfMotion(robot), q, 10, 0.4, weights)
    after = Problem(pl.EquationsOfMotion(robot, locks=lock), q, 10, 0.4, weights)
    place = robot.placement(q, "tool0").translation + np.array([0.1, 0.3, -0.3])
    tool = looped.ResidualModelFrame(after.state, robot, "tool0", place, 4)
    end = after.costs(tool=(tool, np.full(3, 1e4)), still=after.still(1e2))
    free, torque = np.full(4, np.inf), crocoddyl.ResidualModelControl(after.state, holding)
    nodes = [part.node(part.costs(u=(torque, weights)), free) for part in (before, after)]
    jump = looped.ActionModelJump(after.equations, after.state)
    problem = crocoddyl.ShootingProblem(
        before.x, [*[nodes[0]] * 10, jump, *[nodes[1]] * 10], after.node(end, free)
    )
    solver, us = crocoddyl.SolverFDDP(problem), [*[holding] * 10, np.zeros(0), *[holding] * 10]
    solver.th_stop = 1e-6
    assert solver.solve(problem.rollout(us), us, 100, False, 1e-6)
    here, _ = before.run(np.array(solver.us[:10]), before.x)
    base = robot.nq + robot.coordinates("base_yaw").v.start
    assert abs(here[base]) > 0.1  # rad/s at the lock
    q, v = np.split(here, [robot.nq])
    change = pl.transition(robot, q, v, pl.Mode(), pl.Mode(locks=lock))
    moved, worst = after.run(np.array(solver.us[11:]), np.append(q, change.v_plus))
    np.testing.assert_allclose(moved, solver.xs[-1], atol=1e-4)
    np.testing.assert_allclose(robot.placement(moved[:10], "tool0").translation, place, atol=1e-3)
    assert worst < 1e-9


def collocated(
    problem: Problem, wanted: Array, weights: Array, near: Any = None, most: float = np.inf
) -> tuple[float, Array, Array]:
    """Optimum by IPOPT, on Gauss points: its cost, states, and controls.

    With limited memory; near another one with the Hessian of the cost alone (Gauss, Newton), and
    velocities count on the way as they do there.
    """
    robot, degree, nv = problem.robot, 3, problem.robot.nv
    f, points = Acceleration(problem.equations), casadi.collocation_points(degree, "legendre")
    rate, last, _ = casadi.collocation_coeff(points)
    drives = np.eye(nv)[:, [robot.coordinates(joint).v.start for joint in robot.actuated]]
    opti = casadi.Opti()
    x, u = opti.variable(2 * nv, problem.steps + 1), opti.variable(problem.nu, problem.steps)
    opti.subject_to(x[:, 0] == problem.x)
    guess = np.repeat(problem.x[:, None], problem.steps + 1, 1)
    if near is not None:
        guess = np.array(near.xs).T
        opti.set_initial(u, np.array(near.us).T)
        opti.subject_to(opti.bounded(-most, casadi.vec(u), most))
    opti.set_initial(x, guess)
    for k in range(problem.steps):
        inside = opti.variable(2 * nv, degree)
        between = np.outer(np.diff(guess[:, k : k + 2])[:, 0], points)
        opti.set_initial(inside, guess[:, k, None] + between)
        path = casadi.horzcat(x[:, k], inside)
        for j in range(degree):
            q, v = inside[:nv, j], inside[nv:, j]
            slope = problem.h * casadi.vertcat(v, f(q, v, drives @ u[:, k]))
            opti.subject_to((path @ rate)[:, j] == slope)
        opti.subject_to(x[:, k + 1] == path @ last)
    torques = problem.h * casadi.sumsqr(np.sqrt(problem.weight)[:, None] * u)
    cost = (torques + casadi.dot(weights, (x[:, -1] - wanted) ** 2)) / 2.0
    quiet: dict[str, Any] = {"print_level": 0, "sb": "yes", "tol": 1e-7}
    options: dict[str, Any] = {"print_time": 0}
    if near is None:
        quiet["hessian_approximation"] = "limited-memory"
    else:
        cost += problem.h * 1e-4 * casadi.sumsqr(x[nv:, :-1]) / 2.0
        quiet |= {"mu_init": 1e-6, "bound_push": 1e-6, "bound_frac": 1e-6}
        scale, multipliers = casadi.MX.sym("scale"), casadi.MX.sym("multipliers", opti.ng)
        bend = casadi.triu(scale * casadi.hessian(cost, opti.x)[0])
        given = [opti.x, opti.p, scale, multipliers]
        options["hess_lag"] = casadi.Function("nlp_hess_l", given, [bend])
    opti.minimize(cost)
    opti.solver("ipopt", options, quiet)
    found = opti.solve()
    states = np.array(found.value(x)).T
    return float(found.value(cost)), states, np.array(found.value(u)).reshape(problem.nu, -1).T


def test_ipopt_finds_the_same_optimum() -> None:
    robot, turns = states.regularized("fourbar"), {"joint_1": 1.0}
    start = pl.equilibrium(robot, pl.assemble(robot))
    weights = np.zeros(2 * robot.nv)
    at = [robot.coordinates(joint).v.start for joint in turns]
    weights[at], weights[[robot.nv + k for k in at]] = 1e3, 1e1
    wanted = np.append(start, np.zeros(robot.nv))
    wanted[at] += list(turns.values())
    nu = len(robot.actuated)
    problem = Problem(pl.EquationsOfMotion(robot), start, 20, 0.6, np.full(nu, 1e-2))
    goal = crocoddyl.ResidualModelState(problem.state, wanted, nu)
    end = problem.costs(goal=(goal, weights))
    solver = problem.solve(end, np.zeros(nu), np.full(nu, np.inf), 0.0)
    cost, x, u = collocated(problem, wanted, weights)
    assert solver.cost == pytest.approx(cost, rel=1e-4)
    np.testing.assert_allclose(np.array(solver.xs), x, atol=1e-3)
    np.testing.assert_allclose(np.array(solver.us), u, atol=1e-2 * np.abs(u).max())
    # Nothing closes the loops between IPOPT's points but the accelerations.
    closure = [problem.equations.residual(0.0, state[: robot.nq]) for state in x]
    assert np.abs(closure).max() < 1e-6
    moved, _ = problem.run(u, problem.x)
    np.testing.assert_allclose(moved, x[-1], atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*limit:pinloop.PinloopWarning")
def test_ipopt_swings_the_five_bar_up_as_crocoddyl_does() -> None:
    """Steps of 30 ms are worth 0.3 % of the cost; Gauss' points are closer to the motion."""
    problem, upright, solver = swing_up()
    cost, x, u = collocated(problem, upright, UPRIGHT, solver, 3.0)
    assert cost == pytest.approx(solver.cost, rel=5e-3)
    turned = np.array(solver.xs)[:, :4] - x[:, :4]
    assert np.abs(turned).max() < 0.3 and np.ptp(x[:, :4]) > 7.0
    assert np.abs(u).max() <= 3.0 + 1e-6
    moved, _ = problem.run(u, problem.x)
    np.testing.assert_allclose(moved, x[-1], atol=5e-2)
    np.testing.assert_allclose(x[-1], upright, atol=1e-3)
