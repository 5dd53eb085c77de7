"""Recorded motions: the spline against closed forms, states of robots without loops, speeds."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.safety.stopping.recorded import JointTrajectory

from ... import mechanisms as m
from ... import screw_tables as tables
from ...states import close, robot


def sines(count: int, until: float = 2.0) -> JointTrajectory:
    t = np.linspace(0.0, until, count)
    return JointTrajectory(("a", "b"), t, np.transpose([np.sin(3 * t), 2 + np.cos(2 * t)]))


def moving(joints: str, *waves: tuple[float, float], samples: int = 401) -> JointTrajectory:
    """Two seconds in which joint k stands at start + size sin(2 t)."""
    t = np.linspace(0.0, 2.0, samples)
    values = [start + size * np.sin(2 * t) for start, size in waves]
    return JointTrajectory(tuple(joints.split()), t, np.transpose(values))


# -- the spline -----------------------------------------------------------------------------


def test_derivatives_of_sines_converge_as_those_of_a_cubic_spline() -> None:
    # Errors fall with h^4, h^3 and h^2 (or faster); 0.8 leaves room for the ends.
    def errors(motion: JointTrajectory) -> list[float]:
        worst = [0.0, 0.0, 0.0]
        for t in np.linspace(0.0, 2.0, 97):
            s3, c3, s2, c2 = np.sin(3 * t), np.cos(3 * t), np.sin(2 * t), np.cos(2 * t)
            exact = ([s3, 2 + c2], [3 * c3, -2 * s2], [-9 * s3, -4 * c2])
            got = (motion.positions(t), motion.rates(t), motion.accelerations(t))
            for k in range(3):
                assert got[k].shape == (2,)
                worst[k] = max(worst[k], float(np.abs(got[k] - exact[k]).max()))
        return worst

    coarse, fine = errors(sines(41)), errors(sines(161))
    for before, after, order in zip(coarse, fine, (4, 3, 2), strict=True):
        assert np.log(before / after) / np.log(4) > order - 0.2
    assert fine[0] < 1e-7 and fine[1] < 1e-5 and fine[2] < 1e-2


@pytest.mark.parametrize(("count", "degree"), [(2, 1), (3, 2), (4, 3), (9, 3)])
def test_polynomials_up_to_the_full_order_are_exact(count: int, degree: int) -> None:
    t = np.sort(np.random.default_rng(count).uniform(-1, 3, count))
    p = np.polynomial.Polynomial([0.3, -1.0, 0.7, 0.4][: degree + 1])
    motion = JointTrajectory(("a",), t, p(t)[:, None])
    for time in np.linspace(t[0], t[-1], 11):
        close(motion.positions(time), [p(time)], 1e-12)
        close(motion.rates(time), [p.deriv()(time)], 1e-11)
        close(motion.accelerations(time), [p.deriv(2)(time)], 1e-10)


def test_the_acceleration_has_no_steps_and_samples_are_kept() -> None:
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(0.05, 0.2, 12))
    motion = JointTrajectory(("a",), t, rng.normal(size=(12, 1)))
    for k in range(1, 11):
        close(motion.positions(t[k]), motion.values[k], 1e-13)
        before, after = motion.accelerations(t[k] - 1e-9), motion.accelerations(t[k] + 1e-9)
        size = float(np.abs(before).max())
        close(before, after, 1e-5 * size)


def test_beyond_the_recording_is_an_error_that_says_the_range_and_the_way_out() -> None:
    motion = replace(sines(41), t=np.linspace(0.5, 2.5, 41))
    assert (motion.start, motion.end, motion.duration) == (0.5, 2.5, 2.0)
    for ask in (motion.positions, motion.rates, motion.accelerations):
        with pytest.raises(pl.BadValue, match=r"2\.51 s .* from 0\.5 s to 2\.5 s.*earlier"):
            ask(2.51)
        with pytest.raises(pl.BadValue, match=r"0\.4 s .* from 0\.5 s to 2\.5 s.*later"):
            ask(0.4)
        with pytest.raises(pl.BadValue, match="nan"):
            ask(np.nan)
    with pytest.raises(pl.BadValue, match="must be a time"):
        motion.positions("soon")  # type: ignore[arg-type]


def test_rounding_of_times_is_no_error() -> None:
    t = np.array([0.0, 0.1, 0.2, 0.3])
    motion = JointTrajectory(("a",), t, t[:, None])
    assert 0.1 + 0.2 > 0.3
    assert motion.positions(0.1 + 0.2)[0] == 0.3
    assert motion.positions(-1e-16)[0] == 0.0


def test_what_was_given_may_change_afterwards_and_pickles() -> None:
    t, values = np.array([0.0, 1.0]), np.array([[0.0], [2.0]])
    motion = JointTrajectory(("a",), t, values)
    assert motion.rates(0.5)[0] == 2.0
    t[1], values[1] = 7.0, 9.0
    again = pickle.loads(pickle.dumps(motion))
    assert motion.positions(0.5)[0] == again.positions(0.5)[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        motion.values[0, 0] = 3.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"t": [0, 1, 1, 2]}, r"t\[2\] = 1\.0 is not after t\[1\] = 1\.0"),
        ({"t": [0, 2, 1, 3]}, r"t\[2\]"),
        ({"t": [0, 1, np.nan, 2]}, r"times .* not finite at index \(2,\)"),
        ({"values": [[0], [1], [np.inf], [0]]}, r"values .* not finite at index \(2, 0\)"),
        ({"t": [0, 1, 2]}, r"\(k, 1\), not \(3,\) and \(4, 1\)"),
        ({"values": [0, 1, 2, 3]}, r"not \(4,\) and \(4,\)"),
        ({"values": [["x"]] * 4}, "not made of numbers"),
        ({"t": [0], "values": [[0]]}, "at least 2"),
        ({"t": [], "values": np.zeros((0, 1))}, "at least 2"),
        ({"joints": ("a", "a"), "values": np.zeros((4, 2))}, "'a' occurs twice"),
        ({"joints": (), "values": np.zeros((4, 0))}, "0 joints"),
        ({"joints": "a"}, "tuple of names"),
        ({"joints": (3,)}, "tuple of names"),
        ({"units": ("deg",)}, "units"),
        ({"units": ("rad", "m")}, "units"),
    ],
)
def test_what_is_no_motion(changes: dict[str, Any], said: str) -> None:
    usual: dict[str, Any] = {"joints": ("a",), "t": [0, 1, 2, 3], "values": np.zeros((4, 1))}
    with pytest.raises(pl.BadValue, match=said):
        JointTrajectory(**(usual | changes))


# -- robots without loops -------------------------------------------------------------------


def test_joints_are_found_by_name_in_any_order() -> None:
    arm = robot("six_axis_arm")
    names = " ".join(reversed(arm.joints))
    motion = moving(names, *[(0.1 * k, 0.2 + 0.1 * k) for k in range(6)])
    q, v = motion.state(arm, 0.7)
    for k, name in enumerate(motion.joints):
        at = arm.coordinates(name)
        close(q[at.q], [0.1 * k + (0.2 + 0.1 * k) * np.sin(1.4)], 1e-9)
        close(v[at.v], [2 * (0.2 + 0.1 * k) * np.cos(1.4)], 1e-6)


def continuous() -> pl.Mechanism:
    """A joint stored as cosine and sine, then a sliding one."""
    entries = tables.table(
        "circle",
        tables.joint("turn", "revolute", GROUND, "one", [0, 0, 0], m.Z),
        tables.joint("slide", "prismatic", "one", "two", [0, 0, 0], m.X),
    )
    description = tables.build(entries).description
    turn, slide = description.joints
    return build(replace(description, joints=(replace(turn, coordinates="circle"), slide)))


def test_a_joint_stored_as_cosine_and_sine_takes_its_angle_over_many_turns() -> None:
    circle = continuous()
    assert (circle.nq, circle.nv) == (3, 2)
    q, v = moving("slide turn", (0.0, 0.5), (1.0, 20.0)).state(circle, 0.3)
    angle = 1.0 + 20.0 * np.sin(0.6)
    close(q, [np.cos(angle), np.sin(angle), 0.5 * np.sin(0.6)], 1e-7)
    close(v, [40.0 * np.cos(0.6), np.cos(0.6)], 1e-5)


def test_what_is_not_recorded_and_has_no_drive_stays_as_guessed() -> None:
    arm = tables.build(m.planar_3r() | {"actuated": ["j1", "j3"]})
    motion = moving("j3 j1", (0.0, 1.0), (0.5, 0.3))
    q, v = motion.state(arm, 0.5)
    close(q, [0.5 + 0.3 * np.sin(1), 0.0, np.sin(1)], 1e-9)
    close(v, [0.6 * np.cos(1), 0.0, 2 * np.cos(1)], 1e-6)
    guessed, _ = motion.state(arm, 0.5, guess=[0.0, 0.7, 0.0])
    assert guessed[1] == 0.7


@pytest.mark.parametrize(
    ("name", "joints", "error", "said"),
    [
        ("planar-3R", "j1 j2", pl.BadValue, "actuated joints 'j3' .*record them, or say in"),
        ("palletizer", "elbow wrist", pl.BadValue, "'base_yaw', 'shoulder' .*'palletizer'; rec"),
        ("planar-3R", "j1 j2 j4", pl.UnknownName, "no joint 'j4' .*known: j1"),
        ("four-bar", "crank close", pl.BadValue, "'close' closes a loop"),
        ("double-pendulum", "upper lower", pl.BadValue, "'upper' .* has 3 degrees of freedom"),
    ],
)
def test_recordings_of_other_robots(
    name: str, joints: str, error: type[pl.PinloopError], said: str
) -> None:
    motion = moving(joints, *[(0.0, 0.1)] * len(joints.split()))
    with pytest.raises(error, match=said):
        motion.state(robot(name), 0.5)


def test_a_length_is_no_angle() -> None:
    motion = replace(moving("turn slide", (0.0, 0.1), (0.0, 0.1)), units=("rad", "rad"))
    with pytest.raises(pl.BadValue, match=r"'slide' .* recorded in rad, but .* in m"):
        motion.state(continuous(), 0.5)
    replace(motion, units=("rad", "m")).state(continuous(), 0.5)
    replace(motion, units=("", "m")).state(continuous(), 0.5)


# -- speeds ---------------------------------------------------------------------------------


def fast(limit: float | None, values: list[float], pair: str = "revolute") -> tuple[str, ...]:
    """What is said of one joint with samples at whole seconds."""
    entry = tables.joint("j", pair, GROUND, "b", [0, 0, 0], m.Z)
    if limit is not None:
        entry["limits"] = {"velocity": limit}
    of = tables.build(tables.table("one", entry))
    t = np.arange(len(values), dtype=float)
    return JointTrajectory(("j",), t, np.array(values)[:, None]).speeds_above_limits(of)


def test_the_largest_speed_is_found_between_samples() -> None:
    # Samples of 2 t - 0.3 (t - 1.5)^3 at 0..3: its speed 2 - 0.9 (t - 1.5)^2 is largest at 1.5.
    values = [2 * t - 0.3 * (t - 1.5) ** 3 for t in range(4)]
    (said,) = fast(1.99, values)
    assert said == (
        "joint 'j' reaches 2 rad/s at t = 1.5 s, above its velocity limit of 1.99 rad/s"
    )
    assert "2 m/s" in fast(1.99, values, "prismatic")[0]
    assert fast(2.0, values) == fast(None, values) == fast(0.0, values) == ()
    assert "-" not in fast(1.99, [-value for value in values])[0]


def test_only_fast_joints_are_named_each_against_its_own_limit() -> None:
    arm = robot("six_axis_arm")
    limits = [float(x) for x in arm.model.upperVelocityLimit]
    # Speed size * 2 at t = 0: joints 2 and 5 a little above, the others below their limits.
    sizes = [(0.505 if k in (1, 4) else 0.495) * limits[k] for k in range(6)]
    order = (4, 0, 2, 1, 5, 3)
    names = " ".join(arm.joints[k] for k in order)
    motion = moving(names, *[(0.0, sizes[k]) for k in order])
    said = motion.speeds_above_limits(arm)
    assert [text.split("'")[1] for text in said] == ["joint_5", "joint_2"]
    assert f"{1.01 * limits[4]:.4g} rad/s at t = 0 s" in said[0]
    with pytest.raises(pl.UnknownName, match="'a'"):
        sines(9).speeds_above_limits(arm)


def test_an_angle_that_was_wrapped_is_pointed_out() -> None:
    angle = np.linspace(2.0, 5.0, 7)
    wrapped = ((angle + np.pi) % (2 * np.pi) - np.pi).tolist()
    (said,) = fast(None, wrapped)
    assert "turns by 5.783 rad from t = 2 s" in said and "unwrap" in said
    assert fast(None, angle.tolist()) == ()
    assert fast(None, [10 * value for value in wrapped], "prismatic") == ()


def test_the_recording_of_a_run_is_that_run(tmp_path: Any) -> None:
    arm = tables.build(m.planar_3r())
    run = pl.simulate(arm, [0.3, -0.2, 0.5], [1.0, 0.5, -1.0], until=0.3,
                      method=pl.MuntheKaas(largest=0.01))  # fmt: skip
    motion = JointTrajectory.from_csv(run.to_csv(tmp_path / "run.csv"), joints=arm.joints)
    k = len(run.t) // 2
    q, v = motion.state(arm, float(run.t[k]))
    close(q, run.q[k], 1e-12)
    close(v, run.v[k], 1e-2)
