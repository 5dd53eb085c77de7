"""Linear systems of looped robots: against differences on their charts, and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from benchmarks import robots as benchmark_robots
from scipy.linalg import expm

import pinloop as pl
from pinloop import constraints, forces
from pinloop.linalg.dense import slopes

from .. import linkages as ll
from .. import screw_tables as tables
from .. import states
from ..dynamics.test_derivatives import difference

Array = Any
GRAVITY = 9.81


def flow(system: pl.simulation.LinearSystem, x: Array) -> Array:
    """Rates of the coordinates of a chart, from accelerations and the exponential map."""
    chart = system.chart
    equations, model = chart.equations, chart.equations.robot.model
    q, v = chart.state(x)
    step = pin.difference(model, chart.q0, q)
    rate = np.linalg.solve(pin.dIntegrate(model, chart.q0, step, pin.ARG1), v)
    a = equations.acceleration(chart.t, q, v)
    return np.append(rate[chart.positions], a[chart.rates])


def compare(system: pl.simulation.LinearSystem, relative: float = 1e-7) -> None:
    n = len(system.A)
    np.testing.assert_allclose(system.f0, flow(system, np.zeros(n)), atol=1e-8)
    wanted = difference(lambda x: flow(system, x), n, first=1e-2).T
    size = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(system.A, wanted, atol=relative * size)


@pytest.mark.parametrize("name", [*states.SHIPPED, *states.SMALL])
def test_states_change_as_on_the_chart(name: str) -> None:
    robot = states.regularized(name) if name in states.LOOPED else states.robot(name)
    compare(pl.linearize(robot, *states.moving(robot, 3)))


def test_poses_in_which_the_rank_is_not_constant_are_said() -> None:
    """A parallelogram that lies flat, where it may also go on folded."""
    robot, flat = states.robot("parallelogram"), np.array([-1.1, 1.1, -1.1])
    with pytest.warns(pl.PinloopWarning, match="singular pose: .* rank 1 here and 2 around"):
        pl.derivatives(robot, flat, np.zeros(3))
    pl.derivatives(robot, 0.99 * flat, np.zeros(3))  # a warning would be an error
    pl.derivatives(robot, flat, np.zeros(3), mode=pl.Mode(("left", "top", "right")))


FURTHER: dict[str, dict[str, Any]] = {
    "lock": {"mode": pl.Mode(("elbow",))},
    "lock of a loop joint": {"mode": pl.Mode(("drive_loop",))},
    "springs": {"forces": [forces.PD("elbow", 30.0, 2.0), forces.JointSpring("drive_loop", 5.0)]},
    "no slip": {"rows": [constraints.NoSlip("forearm", (0.0, 1.0, 0.0))]},
}


@pytest.mark.parametrize("name", FURTHER)
def test_locks_rows_and_forces_count(name: str) -> None:
    robot, options = states.regularized("palletizer"), FURTHER[name]
    q = states.assembled(robot, 3)
    system = pl.linearize(robot, q, **options)
    compare(system, 1e-6)
    lost = {"lock": 2, "lock of a loop joint": 2, "springs": 0, "no slip": 1}[name]
    assert len(system.A) == 8 - lost


def test_charts_lead_to_states_and_back() -> None:
    robot = states.regularized("stewart")
    q, v = states.moving(robot, 4)
    chart = pl.linearize(robot, q, v).chart
    x = 0.05 * np.random.default_rng(0).normal(size=len(chart.names))
    near, speed = chart.state(x)
    equations = chart.equations
    J, b, residual = equations.closure(0.0, near)
    assert np.abs(residual).max() < 1e-9 and np.abs(J @ speed - b).max() < 1e-9
    np.testing.assert_allclose(chart.coordinates(near, speed), x, atol=1e-12)
    with pytest.raises(pl.LoopNotClosed, match="no closed configuration at these coordinates"):
        chart.state(1e3 * x)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("upright", [False, True])
def test_windows_swing_as_their_closed_form(count: int, *, upright: bool) -> None:
    """``(4N + 1)/3 th'' = -g (3N + 1)/2 cos th`` for parallelograms of bars of 1 m and 1 kg."""
    robot = pl.regularize(tables.build(ll.windows(count)))
    angle = 0.0 if upright else np.pi
    q = pl.assemble(robot, {f"low{k}": angle for k in range(count + 1)})
    square = GRAVITY * (3 * count + 1) / 2 * 3 / (4 * count + 1)
    rate = np.sqrt(square)
    wanted = [-rate, rate] if upright else [-1j * rate, 1j * rate]
    found = sorted(pl.linearize(robot, q).eigenvalues, key=lambda x: (x.real, x.imag))
    np.testing.assert_allclose(found, wanted, atol=1e-9 * rate)


def test_equilibria_are_found_and_stay() -> None:
    robot = pl.regularize(tables.build(ll.windows(1)))
    q = pl.equilibrium(robot, pl.assemble(robot, {"low0": np.pi - 0.4}))
    assert q[robot.coordinates("low0").q] == pytest.approx(np.pi, abs=1e-9)
    # Held by a torque: (3 N + 1) / 2 g cos th of the closed form, th from the horizontal.
    tau, lean = np.zeros(robot.nv), 0.3
    tau[robot.coordinates("low0").v] = -2.0 * GRAVITY * np.sin(lean)
    q = pl.equilibrium(robot, pl.assemble(robot, {"low0": 0.2}), tau)
    assert q[robot.coordinates("low0").q] == pytest.approx(lean, abs=1e-9)
    with pytest.raises(pl.BadValue, match="finds no equilibrium near"):
        pl.equilibrium(robot, pl.assemble(robot, {"low0": 0.2}), 20.0 * tau)


def test_stewart_platform_under_drives_moves_as_its_linear_system() -> None:
    robot = states.regularized("stewart")
    legs = [name for name in robot.joints if robot.is_translation[robot.coordinates(name).v].all()]
    start = states.assembled(robot, 1, walk=0)
    hold = [
        forces.PD(leg, 2e4, 200.0, target=float(start[robot.coordinates(leg).q][0]))
        for leg in legs
        if robot.coordinates(leg).nv == 1
    ]
    q = pl.equilibrium(robot, start, forces=hold)
    system = pl.linearize(robot, q, forces=hold)
    assert system.eigenvalues.real.max() < 0
    x = 1e-5 * np.random.default_rng(2).normal(size=len(system.A))
    x[len(system.chart.positions) :] = 0.0
    run = pl.simulate(robot, *system.chart.state(x), until=0.02, forces=hold, losses=False)
    reached = system.chart.coordinates(run.q[-1], run.v[-1])
    wanted = expm(0.02 * system.A) @ x
    np.testing.assert_allclose(reached, wanted, atol=1e-4 * np.abs(wanted).max())


def test_squeezer_with_its_spring_changes_as_on_its_chart() -> None:
    robot = pl.regularize(benchmark_robots.squeezer())
    spring = forces.Spring("K3", ("ground", (0.014, 0.072, 0.0)), 4530.0, 0.07785)
    system = pl.linearize(robot, pl.assemble(robot), forces=[spring])
    assert len(system.A) == 2
    compare(system)


def test_outputs_are_joints_their_rates_and_frames() -> None:
    robot = states.regularized("palletizer")
    q, v = states.moving(robot, 3)
    outputs = ("elbow", "d elbow", "drive_loop", "d drive_loop", "flange")
    system = pl.linearize(robot, q, v, outputs=outputs)
    assert system.outputs[:5] == (*outputs[:4], "flange: x")
    frame, equations = robot.frame_id("flange"), system.chart.equations
    loop = robot.loop("drive_loop")

    def seen(x: Array) -> Array:
        q, v = system.chart.state(x)
        data = robot.model.createData()
        pin.forwardKinematics(robot.model, data, q, v)
        pin.updateFramePlacements(robot.model, data)
        at = robot.coordinates("elbow")
        a, b = loop.frame_a, loop.frame_b
        turn = data.oMf[a].rotation.T @ data.oMf[b].rotation
        rate = (
            data.oMf[b]
            .actInv(
                pin.getFrameVelocity(robot.model, data, b, pin.WORLD)
                - pin.getFrameVelocity(robot.model, data, a, pin.WORLD)
            )
            .angular[2]
        )
        place = data.oMf[frame].translation
        angle = np.arctan2(turn[1, 0], turn[0, 0])
        return np.array([*q[at.q], *v[at.v], angle, rate, *place])

    wanted = slopes(seen, len(system.A)).T
    np.testing.assert_allclose(system.C[: len(wanted)], wanted, atol=1e-8)
    assert equations.robot.name in repr(equations)


def test_inputs_are_torques_and_the_whole_is_a_state_space() -> None:
    robot = states.regularized("palletizer")
    q, v = states.moving(robot, 3)
    system = pl.linearize(robot, q, v, inputs=["shoulder", "wrist"])
    assert system.inputs == ("shoulder", "wrist")
    tau = np.zeros(robot.nv)
    tau[robot.coordinates("wrist").v] = 0.7
    moved = pl.linearize(robot, q, v, tau, inputs=["shoulder", "wrist"])
    np.testing.assert_allclose(moved.f0 - system.f0, 0.7 * system.B[:, 1], atol=1e-9)
    whole = system.state_space()
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(whole, name), getattr(system, name))


def test_strange_wishes_are_refused() -> None:
    robot = states.regularized("palletizer")
    q = states.assembled(robot, 3)
    with pytest.raises(pl.UnknownName, match="no body or frame 'elbo'"):
        pl.linearize(robot, q, outputs=["elbo"])
    with pytest.raises(pl.UnknownName):
        pl.linearize(robot, q, inputs=["elbo"])
    with pytest.raises(pl.BadValue, match="'elbow' is no mode"):
        pl.linearize(robot, q, mode="elbow")  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue):
        pl.derivatives(robot, q, np.zeros(2))
    with pytest.raises(pl.BadValue):
        pl.derivatives(robot, q, np.zeros(robot.nv), np.zeros(2))


@pytest.mark.parametrize("form", [pl.Augmented(), pl.Projected(), pl.Voronets()])
@pytest.mark.parametrize("name", ["palletizer", "sevenbar", "delta"])
def test_transitions_have_the_slopes_of_all_three_forms(name: str, form: Any) -> None:
    """Along velocities and positions that the mode before allows, by differences on its chart."""
    robot = states.regularized(name)
    q, v = states.moving(robot, 3)
    before, after = pl.Mode(), pl.Mode(("elbow" if name == "palletizer" else robot.joints[0],))
    found = pl.simulation.transition_derivatives(robot, q, v, after)
    chart = pl.linearize(robot, q, v).chart

    def values(x: Array) -> Array:
        change = pl.transition(robot, *chart.state(x), before, after, form)
        return np.append(change.v_plus, change.impulse)

    def moved(x: Array) -> Array:
        """What a step on the chart is in tangent coordinates."""
        q_x, v_x = chart.state(x)
        return np.append(pin.difference(robot.model, q, q_x), v_x)

    wanted, steps = (slopes(of, len(chart.names)).T for of in (values, moved))
    n = robot.nv
    for by_q, by_v, part in (
        (found.v_plus_dq, found.v_plus_dv, wanted[:n]),
        (found.impulse_dq, found.impulse_dv, wanted[n:]),
    ):
        sure = ~np.isnan(by_q).any(axis=1)
        slope = by_q[sure] @ steps[:n] + by_v[sure] @ steps[n:]
        size = max(1.0, np.abs(part).max(initial=0.0))
        np.testing.assert_allclose(slope, part[sure], atol=1e-6 * size)
