"""Stops with changes in microseconds: a hand of grams in thick oil, an arm between end stops.

In oil joints die away faster than explicit steps can be long; the oracle is the same stop in
explicit steps.
"""

from __future__ import annotations

import numpy as np
import pytest

import pinloop as pl

from ...robots.test_example_robot_data import ROBOTS


def stop(method: pl.MuntheKaas, viscous: float) -> pl.StopResult:
    """The right Allegro hand falls, with a part of its file's damping, until the brakes come."""
    assert ROBOTS is not None
    hand = pl.load(ROBOTS / "allegro_hand_description/urdf/allegro_right_hand.urdf")
    numbers = {"side": "joint", "dynamic_torque": 0.5, "delay": 0.2}
    joints = {
        joint: pl.safety.JointBrake(viscous=viscous * float(damping), **numbers)  # type: ignore[arg-type]
        for joint, damping in zip(hand.joints, hand.model.damping, strict=True)
    }
    brakes = pl.Brakes(joints, pl.safety.Chain())
    return pl.stop(hand, hand.neutral, np.ones(hand.nv), brakes=brakes, method=method)


@pytest.mark.parametrize("name", ["dopri5", "radau9"])
def test_a_hand_in_thick_oil(name: str) -> None:
    with pytest.warns(pl.PinloopWarning, match="steps of 'dopri5' are still to come"):
        explicit = stop(pl.MuntheKaas("dopri5", when_stiff="warn"), 0.01)
    found = stop(pl.MuntheKaas(name), 0.01)
    assert explicit.outcome == found.outcome == "stopped"
    assert len(explicit.run.t) > 1000 and len(found.run.t) < 250
    told = [what for _, what in found.run.events if what.startswith("implicit steps")]
    assert len(told) == (name == "dopri5")
    assert all("'viscous friction' of joint 'joint_" in what for what in told)
    np.testing.assert_allclose(found.run.q[-1], explicit.run.q[-1], rtol=0, atol=1e-9)
    assert found.run.t[-1] == pytest.approx(explicit.run.t[-1], abs=1e-9)
    assert np.abs(found.ledger.error).max() < 1e-9
    # Also between the states: of the steps, what lies inside is kept.
    times = explicit.run.t[(explicit.run.t > 0.003) & (explicit.run.t < 0.2)][::7]
    wanted = explicit.run(times)
    np.testing.assert_allclose(found.run(times).q, wanted.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.run(times).v, wanted.v, rtol=0, atol=1e-6)
    assert found.run.inner is not None


@pytest.mark.filterwarnings("error")
def test_a_hand_in_the_oil_of_its_file() -> None:
    """Time constants of a microsecond and less, for which explicit steps take minutes."""
    found = stop(pl.MuntheKaas(), 1.0)
    assert found.outcome == "stopped" and len(found.run.t) < 400
    assert np.abs(found.ledger.error).max() < 1e-9


def test_joints_that_end_stops_throw_to_and_fro_come_to_rest() -> None:
    """Elbow and shoulder are thrown from one end stop to the other, ever more softly.

    The intervals shrink by a factor: in the last millisecond there are over two hundred changes.
    """
    assert ROBOTS is not None
    arm = pl.load(ROBOTS / "so_arm_description/urdf/so101.urdf")
    q = [1.3445, 0.2163, -1.5601, 0.7372, -0.1898, 1.607]
    v = [0.0, 8.575, -7.917, 4.482, 6.42, 0.0]
    brake = pl.safety.JointBrake(
        dynamic_torque=8.7, static_torque=10.0, delay=0.03, rise=0.02, drive_torque=10.0,
        deceleration=25.0,
    )  # fmt: skip
    brakes = pl.Brakes(dict.fromkeys(arm.joints, brake), pl.safety.Chain(sensor=0.015))
    found = pl.stop(arm, q, v, brakes=brakes, category=2, limits="end stop")
    assert found.outcome == "stopped" and not found.run.v[-1].any()
    assert found.ledger.relative_error < 1e-9
    hits = np.array([t for t, text in found.events if text.startswith("elbow_flex hits")])
    assert np.sum(hits > hits[-1] - 1e-3) > 10, "it is not thrown to and fro"
