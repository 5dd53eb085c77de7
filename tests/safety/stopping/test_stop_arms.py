"""Tests of `pl.stop`: whole stops of arms, against a second program and against reduced models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import pinloop as pl

from ...screw_tables import Array
from ...states import URDF, robot
from .arms_by_hand import StopByHand
from .robots_to_stop import G, brakes, drawn_stop, train, two_links

CLOSE = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
ARM = "six_axis_arm"
FULL_SPEED = np.array([2.0, 1.5, -1.5, 2.5, 1.5, 3.0])


@cache
def file_of_the_arm() -> pl.Brakes:
    return pl.Brakes.from_yaml(URDF / f"{ARM}.brakes.yaml")


# -- the second program ---------------------------------------------------------------------------


def same_stop(
    stop: pl.StopResult, by_hand: StopByHand, q: Array, v: Array, until: float, tolerance: float
) -> list[str]:
    """Assert that both programs tell the same; return what happened in the second one."""
    end = by_hand.go(q, v, until)
    np.testing.assert_allclose(stop.run.t[-1], end.t, rtol=0, atol=tolerance)
    np.testing.assert_allclose(stop.run.q[-1], end.q, rtol=0, atol=tolerance)
    np.testing.assert_allclose(stop.run.v[-1], end.v, rtol=0, atol=100 * tolerance)
    if stop.outcome == "stopped":
        times = [one.time for one in stop.joints.values()]
        np.testing.assert_allclose(times, end.rest, rtol=0, atol=100 * tolerance)
        assert stop.stopping_time == pytest.approx(np.max(end.rest), abs=100 * tolerance)
    return [text for _, _, text in end.log]


@pytest.mark.parametrize(
    ("seed", "outcome", "slips"),
    [
        (3, "stopped", 6), (5, "does not hold", 1), (7, "stopped", 2), (9, "stopped", 1),
        (11, "stopped", 0), (17, "time-out", 3), (18, "stopped", 4), (19, "stopped", 3),
        (20, "stopped", 2), (22, "stopped", 2),
    ],
)  # fmt: skip
def test_arms_and_brakes_out_of_the_hat(seed: int, outcome: str, slips: int) -> None:
    """2 to 6 joints; gears with losses, delays, Stribeck, shorted motors; strong to weak brakes."""
    robot, q, v, by, _ = drawn_stop(seed)
    stop = pl.stop(robot, q, v, brakes=by, until=0.4, method=CLOSE)
    happened = same_stop(stop, StopByHand(robot.model, by), q, v, 0.4, 1e-8)
    assert stop.outcome == outcome and happened.count("slips") == slips
    assert stop.ledger.relative_error < 1e-7


@pytest.mark.parametrize("seed", [3, 20])
def test_default_method_is_close_enough(seed: int) -> None:
    """With the tolerances that everybody gets."""
    robot, q, v, by, _ = drawn_stop(seed)
    stop = pl.stop(robot, q, v, brakes=by, until=0.4)
    same_stop(stop, StopByHand(robot.model, by), q, v, 0.4, 1e-6)


def with_load(model: pin.Model, mass: float, com: Any, gravity: Any) -> pin.Model:
    """The arm with a point mass at its flange, hung up anywhere."""
    loaded = model.copy()
    flange = model.frames[model.getFrameId("tool0")]
    point = flange.placement.act(np.asarray(com, float))
    joint = flange.parentJoint
    loaded.inertias[joint] = model.inertias[joint] + pin.Inertia(mass, point, np.zeros((3, 3)))
    loaded.gravity.linear = np.asarray(gravity, float)
    return loaded


@pytest.mark.parametrize(
    ("fault", "gravity"),
    [
        ("none", [0, 0, -G]),
        ("missing", [0, 0, -G]),
        ("late", [-G, 0, 0]),
        ("weak", [0, 0, G]),
        ("low end", [0, 0, -G]),
        ("high end", [0, G, 0]),
        ("teeth", [0, 0, -G]),
    ],
)
def test_six_axis_arm_with_payload_and_faults(fault: str, gravity: list[float]) -> None:
    """Upright, at the wall, from the ceiling."""
    arm, by = robot(ARM), file_of_the_arm()
    if fault == "teeth":
        teeth: dict[str, Any] = {"kind": "tooth", "delay": 0.05}
        some: dict[str, Any] = {"joint_2": teeth, "joint_4": teeth | {"delay": 0.06}}
        by = replace(
            by, joints={n: replace(b, **some.get(n, {})) for n, b in by.joints.items()}
        )  # fmt: skip
    by = {
        "none": lambda: by,
        "teeth": lambda: by,
        "missing": lambda: by.missing("joint_3"),
        "late": lambda: by.late("joint_1", 0.08).late("joint_5", 0.2),
        "weak": lambda: by.weak("joint_2", 0.4),
        "low end": lambda: by.at_band(-1),
        "high end": lambda: by.at_band({"joint_2": 1, "joint_3": -1}),
    }[fault]()
    q = np.array([0.3, 0.4, 0.2, -0.5, 0.6, 0.1])
    stop = pl.stop(
        arm, q, FULL_SPEED, brakes=by, payload=pl.Payload(8.0, com=(0.05, 0.0, 0.1)),
        gravity=gravity, until=0.8, method=CLOSE,
    )  # fmt: skip
    model = with_load(arm.model, 8.0, (0.05, 0.0, 0.1), gravity)
    same_stop(stop, StopByHand(model, by), q, FULL_SPEED, 0.8, 1e-7)
    assert stop.holds == (fault != "missing")
    assert (stop.ledger.impacts > 0) == (fault == "teeth")


def test_teeth_kick_what_was_stuck() -> None:
    """The elbow rests when the shoulder is caught, is thrown off, and comes to rest again."""
    by = brakes(
        j1={"kind": "tooth", "delay": 0.15, "viscous": 1.0},
        j2={"dynamic_torque": 9.0, "static_torque": 11.0, "coulomb": 1.0},
    )
    q, v = np.array([0.4, 0.9]), np.array([3.0, 0.3])
    arm = two_links()
    stop = pl.stop(arm, q, v, brakes=by, method=CLOSE)
    log = same_stop(stop, StopByHand(arm.model, by), q, v, 10.0, 1e-8)
    assert log.index("rests") < log.index("thrown") < log.index("caught")
    assert stop.joints["j2"].slips == 1
    assert stop.joints["j1"].impulse > 1 and stop.joints["j2"].impulse == 0


# -- reduced models -------------------------------------------------------------------------------


class _Welded:
    """Rates of what still moves, at constant dry torques."""

    def __init__(self, model: pin.Model, torque: Array, damping: Array) -> None:
        self.model, self.data, self.torque, self.damping = (
            model, model.createData(), torque, damping,
        )  # fmt: skip

    def rate(self, _: float, y: Array) -> Array:
        q, v = np.split(y, 2)
        torque = -self.torque - self.damping * v
        return np.concatenate([v, pin.aba(self.model, self.data, q, v, torque)])

    def stopped(self, i: int) -> Callable[[float, Array], float]:
        def speed(_: float, y: Array) -> float:
            return float(y[self.model.nv + i])

        speed.terminal = True  # type: ignore[attr-defined]
        return speed


def after_first_lock(
    stop: pl.StopResult, model: pin.Model, by: pl.Brakes
) -> list[tuple[float, Array]]:
    """Times and configurations at which further joints stop, each with a smaller model.

    Joints that stand are welded by `pin.buildReducedModel`; the others have their friction, their
    brakes fully engaged, and their rotors.
    """
    names = list(model.names)[1:]
    rest = {name: stop.joints[name].time for name in names}
    t = min(rest.values())
    q, v = stop.run(t).q.copy(), stop.run(t).v.copy()
    standing = [name for name in names if rest[name] == t]
    found: list[tuple[float, Array]] = []
    while len(standing) < len(names):
        free = np.array([name not in standing for name in names])
        small = pin.buildReducedModel(model, [model.getJointId(n) for n in standing], q)
        own = [by.joints[name] for name in names if name not in standing]
        small.armature = np.array([b.gear_ratio**2 * (b.rotor_inertia or 0.0) for b in own])
        torque = np.array([b.gear_ratio * b.dynamic_torque * b.factor + b.coulomb for b in own])
        damping = np.array([b.viscous for b in own])
        moves = _Welded(small, np.sign(v[free]) * torque, damping)
        n = small.nv
        run = solve_ivp(
            moves.rate, (t, t + 5.0), np.concatenate([q[free], v[free]]), "DOP853",
            events=[moves.stopped(i) for i in range(n)], rtol=1e-11, atol=1e-12,
        )  # fmt: skip
        t = float(run.t[-1])
        q[free], v[free] = run.y[:n, -1], run.y[n:, -1]
        stopped = next(i for i, times in enumerate(run.t_events or []) if len(times))
        standing.append([name for name in names if name not in standing][stopped])
        v[names.index(standing[-1])] = 0.0
        found.append((t, q.copy()))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_six_axis_arm_after_a_lock_is_a_smaller_robot(seed: int) -> None:
    """From the first joint that stands on: five, four, ... moving joints."""
    rng = np.random.default_rng(seed)
    arm, by = robot(ARM), file_of_the_arm()
    joints = {n: replace(b, delay=0.0, rise=0.0) for n, b in by.joints.items()}
    by = replace(by, joints=joints).at_band(float(rng.uniform(-1, 1)))
    q, v = rng.uniform(-1.2, 1.2, 6), FULL_SPEED * rng.uniform(0.5, 1, 6) * rng.choice([-1, 1], 6)
    stop = pl.stop(arm, q, v, brakes=by, method=CLOSE)
    assert stop.outcome == "stopped" and not any(one.slips for one in stop.joints.values())
    ends = after_first_lock(stop, arm.model, by)
    assert len(ends) == 5
    for t, configuration in ends:
        np.testing.assert_allclose(stop.run(min(t, stop.run.t[-1])).q, configuration, atol=1e-8)
    assert ends[-1][0] == pytest.approx(stop.stopping_time, abs=1e-8)


def test_two_carriages_on_one_train_after_the_first_stands() -> None:
    """The same in closed form: the carriage on top brakes as if the other one were the ground."""
    by = brakes(a={"dynamic_torque": 40.0}, b={"dynamic_torque": 3.0})
    stop = pl.stop(train(3.0, 1.0), [0, 0], [1.0, 2.0], brakes=by)
    # b pushes a forward with 3 N while it slides on it.
    slower = (40.0 - 3.0) / 3.0
    assert stop.joints["a"].time == pytest.approx(1 / slower)
    assert stop.joints["a"].angle == pytest.approx(0.5 / slower)
    # Over ground b loses 3 m/s^2 from 3 m/s.
    assert stop.joints["b"].time == pytest.approx(1.0)
    assert stop.joints["b"].angle == pytest.approx(1.5 - 0.5 / slower)
