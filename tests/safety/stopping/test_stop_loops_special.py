"""Stops in singular configurations, of coupled joints, and of robots that float."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics.kernel_tables import HAS_KERNEL

from ... import linkages as ll
from ...screw_tables import Array
from ...states import URDF, robot
from .loops_by_hand import Machine, brake, closed, moving

WEIGHTLESS = np.zeros(3)

# -- singular configurations -------------------------------------------------------------------


@pytest.mark.parametrize("rate", [-2.0, -4.0, 8.0])
def test_a_parallelogram_runs_through_its_flat_poses(rate: float) -> None:
    """Without gravity its inertia is constant: the stopping angle is that of one disk."""
    one = robot("parallelogram")
    q, v = moving(one, {"left": rate})
    angle = 2 * Machine(one).kinetic(q, v) / (2 * 5.0)
    stop = pl.stop(one, q, v, brakes=pl.Brakes({"left": brake(5.0)}), gravity=WEIGHTLESS)
    assert stop.outcome == "stopped"
    turned = np.sign(rate) * angle * np.array([1.0, -1.0, 1.0])
    np.testing.assert_allclose(one.difference(q, stop.run.q[-1]), turned, atol=1e-6)
    assert closed(Machine(one), stop.run) < 1e-10


def test_a_stop_may_end_flat() -> None:
    one = robot("parallelogram")
    q, v = moving(one, {"left": -1.0})
    energy = Machine(one).kinetic(q, v)
    brakes = pl.Brakes({"left": brake(energy / ll.LEAN)})
    stop = pl.stop(one, q, v, brakes=brakes, gravity=WEIGHTLESS)
    assert stop.outcome == "stopped"
    flat = -ll.LEAN * np.array([1.0, -1.0, 1.0])
    np.testing.assert_allclose(one.difference(q, stop.run.q[-1]), flat, atol=1e-4)
    assert stop.ledger.relative_error < 1e-6


@pytest.mark.parametrize("rate", [-2.0, 3.0])
def test_a_parallelogram_that_gravity_pulls_through_its_flat_poses(rate: float) -> None:
    """Which way it goes there rounding decides, or it is said that nothing tells.

    But no energy comes from it, and the loop stays.
    """
    one = robot("parallelogram")
    q, v = moving(one, {"left": rate})
    try:
        stop = pl.stop(one, q, v, brakes=pl.Brakes({"left": brake(5.0)}))
        assert stop.outcome == "stopped"
    except pl.StopFailed as failure:
        assert "the loops come into a singular configuration" in str(failure)
        assert failure.result is not None
        stop = failure.result
    machine = Machine(one)
    assert closed(machine, stop.run) < 1e-10
    energies = np.array(
        [machine.energy(*state) for state in zip(stop.run.q, stop.run.v, strict=True)]
    )
    assert np.diff(energies).max() < 1e-5 * machine.kinetic(q, v)
    assert stop.ledger.relative_error < 1e-4


# -- couplings and floating bases --------------------------------------------------------------


@pytest.mark.parametrize("joints", [("pinion",), ("wheel",), ("pinion", "wheel")])
def test_coupled_wheels_stop_together(joints: tuple[str, ...]) -> None:
    """``(J_p + r^2 J_w) w^2 / 2 = (tau_p + |r| tau_w) angle`` with ``wheel = r pinion + c``."""
    one, ratio = robot("gear-pair"), -0.25
    torques = {"pinion": 3.0, "wheel": 5.0}
    q, v = moving(one, {"pinion": 4.0})
    M = np.diag(Machine(one).mass(q))
    inertia = M[0] + ratio**2 * M[1]
    grip = sum({"pinion": 1.0, "wheel": 0.25}[name] * torques[name] for name in joints)
    brakes = pl.Brakes({name: brake(torques[name]) for name in joints})
    stop = pl.stop(one, q, v, brakes=brakes)
    assert stop.outcome == "stopped"
    angle = inertia * 4.0**2 / (2 * grip)
    np.testing.assert_allclose(one.difference(q, stop.run.q[-1]), [angle, ratio * angle])
    times = [stop.joints[name].time for name in joints]
    np.testing.assert_allclose(times, 4.0 * inertia / grip)
    np.testing.assert_allclose(stop.run.v[-1], 0.0, atol=1e-12)


GRIPPER = """<robot name="gripper">
  <link name="palm"/>
  <link name="f1"><inertial><mass value="0.3"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="f2"><inertial><mass value="0.2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="finger1" type="prismatic"><parent link="palm"/><child link="f1"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="1" effort="9" velocity="1"/></joint>
  <joint name="finger2" type="prismatic"><parent link="palm"/><child link="f2"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="1" effort="9" velocity="1"/><mimic joint="finger1"/></joint>
</robot>"""


def test_a_mimic_finger_stops_with_its_leader() -> None:
    """Both fingers slide against one brake: ``(m_1 + m_2) v^2 / 2 = F d``."""
    one = pl.load(GRIPPER)
    q, v = moving(one, {"finger1": 0.5})
    stop = pl.stop(one, q, v, brakes=pl.Brakes({"finger1": brake(2.0)}))
    assert stop.outcome == "stopped"
    np.testing.assert_allclose(stop.run.q[-1] - q, 0.5 * 0.5**2 / (2 * 2.0), rtol=1e-9)
    assert stop.joints["finger1"].load == pytest.approx(0.0, abs=1e-9)


def _momentum(one: pl.Mechanism, q: Array, v: Array) -> Array:
    data = one.model.createData()
    return np.array(pin.computeCentroidalMomentum(one.model, data, q, v).vector)


@pytest.mark.filterwarnings("ignore:.*float")
@pytest.mark.parametrize("table", [None, "floating-four-bar"])
def test_a_floating_base_goes_on(table: str | None) -> None:
    """Brakes within the robot keep its momentum; with none it stands, with some it never does."""
    one = pl.load(URDF / "fivebar.urdf", floating_base=True) if table is None else robot(table)
    braked = ("base_left", "base_right") if table is None else ("crank",)
    brakes = pl.Brakes({name: brake(3.0) for name in braked})
    q = pl.assemble(one)
    v = pl.consistent_velocity(one, q, {one.joints[0]: np.zeros(6), braked[0]: 2.0})
    base = slice(0, 6)
    M = Machine(one).mass(q)
    with pytest.warns(pl.PinloopWarning, match=f"'{one.joints[0]}'.*float: nothing stops it"):
        drifting = pl.stop(one, q, v, brakes=brakes, gravity=WEIGHTLESS, until=1.0)
    assert drifting.outcome == "time-out"
    assert all(drifting.joints[name].state == "held" for name in braked)
    before, after = (_momentum(one, *state) for state in ((q, v), drifting.run(1.0)[1:]))
    np.testing.assert_allclose(after, before, atol=1e-7)
    v[base] = -np.linalg.solve(M[base, base], M[base, 6:] @ v[6:])
    still = pl.stop(one, q, v, brakes=brakes, gravity=WEIGHTLESS)
    assert still.outcome == "stopped"
    np.testing.assert_allclose(_momentum(one, q, v), 0.0, atol=1e-12)
    falling = pl.stop(one, q, v, brakes=brakes, until=0.5)
    assert falling.outcome == "does not hold"
    assert not falling.holding.held[base].any()


@pytest.mark.parametrize(
    ("joint", "pose", "rates"),
    [
        ("shoulder", (-2.7374, -0.0178, 0.2829, 1.2047), (0.0, 0.5019, -0.2612, -0.35)),
        ("elbow", (-0.5274, 0.5449, 0.4486, -2.1566), (0.9401, 0.0506, 0.4118, 4.8889)),
    ],
)
def test_an_arm_without_a_brake_swings_through_poses_where_loops_are_singular(
    joint: str, pose: tuple[float, ...], rates: tuple[float, ...]
) -> None:
    """Several times; what ends a phase there is decided where the branch is told, or by rows."""
    robot = pl.example("palletizer")
    drives = "base_yaw", "elbow", "shoulder", "wrist"
    q = pl.assemble(robot, dict(zip(drives, pose, strict=True)))
    v = pl.consistent_velocity(robot, q, dict(zip(drives, rates, strict=True)))
    brakes = pl.Brakes.template(robot).missing(joint)
    ends = []
    for tolerance in (1e-8, 1e-10):
        method = pl.MuntheKaas(rtol=tolerance, atol=tolerance)
        with warnings.catch_warnings(action="ignore", category=pl.PinloopWarning):
            stop = pl.stop(robot, q, v, brakes=brakes, category=0, until=4.0, method=method)
        assert stop.ledger.relative_error < 10 * tolerance
        ends.append(stop.run.q[-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)


@pytest.mark.parametrize(
    ("pose", "rates", "gravity"),
    [
        ((-0.5, -0.3, -0.1), (1.9, -1.4, 1.4), (-2.0, -6.0, 2.0)),
        ((0.5, -0.2, -0.3), (-1.1, 1.1, -1.1), (-5.0, 11.0, -2.0)),
    ],
)
def test_an_arm_of_a_delta_robot_falls_through_one_singular_pose_after_another(
    pose: tuple[float, ...], rates: tuple[float, ...], gravity: tuple[float, ...]
) -> None:
    """Where a branch is told no further another one goes on, through the pose that comes next.

    Loops that a step has opened do not turn slender rods: steps are as long as the motion allows.
    """
    robot = pl.example("delta")
    arms = "arm_1", "arm_2", "arm_3"
    q = pl.assemble(robot, dict(zip(arms, pose, strict=True)))
    v = pl.consistent_velocity(robot, q, dict(zip(arms, rates, strict=True)))
    brakes = pl.Brakes.template(robot).missing("arm_1")
    ends = []
    for tolerance in (1e-8, 1e-10):
        method = pl.MuntheKaas(rtol=tolerance, atol=tolerance)
        with warnings.catch_warnings(action="ignore", category=pl.PinloopWarning):
            stop = pl.stop(robot, q, v, brakes=brakes, gravity=gravity, until=2.5, method=method)
        assert stop.ledger.relative_error < 10 * tolerance
        assert len(stop.run.t) < 160 or not HAS_KERNEL
        ends.append(stop.run.q[-1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)
