"""Serial twins: an ankle, a knee, a wrist and a gripper as controllers see them, without loops.

Motors of humanoids sit where they weigh least and move joints through cranks, rods and gears.
Controllers and learned policies want the joints; the firmware has the motors. `pl.serial` is the
way between both. Asserted: closed forms of ankle and knee to 1e-9, the constant matrix of the
wrist's differential, how well fingers follow as mimic joints, and that the ankle without loops
moves like the one with loops: exactly with all of the inertia that its linkage adds, to a few
percent with the armature that a URDF or MJCF can hold.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

import pinloop as pl
from common.pictures import drawing
from common.program import start_program
from common.serial_robots import Array, ankle, ankle_motors, gripper, knee, knee_motor, wrist
from pinloop.dynamics import SerialMap, SerialTwin

RANGES = {"pitch": (-0.4, 0.3), "roll": (-0.2, 0.2)}
FINGERS = ("left_knuckle", "left_tip", "right_knuckle", "right_tip")
START, UNTIL, STEP = np.array([0.05, -0.02]), 0.4, 1e-3


def torques(t: float) -> Array:
    """What the motors of the ankle give in the comparison [N m]."""
    return np.array([0.08 * np.cos(20 * t), 0.06 * np.cos(17 * t)])


def with_loops(twin: SerialTwin) -> Array:
    """Where the joints of the ankle end, moved by its motors through the loops."""
    robot = twin.looped
    at = [robot.coordinates(name).v.start for name in twin.motors]

    def pull(t: float, q: Array, v: Array) -> Array:
        force = np.zeros(robot.nv)
        force[at] = torques(t)
        return force

    run = pl.simulate(robot, twin.at_joints(START).q, until=UNTIL, forces=[pl.TorqueFunction(pull)])
    return joints_of(run, twin)


def with_armature(twin: SerialTwin, maps: SerialMap) -> Array:
    """The same of the robot without loops, which has its armature and torques at its joints."""

    def pull(t: float, q: Array, v: Array) -> Array:
        return np.asarray(maps.joint_torques(q, torques(t)))

    run = pl.simulate(twin.robot, START, until=UNTIL, forces=[pl.TorqueFunction(pull)])
    return joints_of(run, twin)


def with_all_inertia(twin: SerialTwin, maps: SerialMap) -> Array:
    """The same with what the linkage adds at every pose instead of armature, by Runge and Kutta."""
    model = twin.robot.model
    data = model.createData()

    def rate(t: float, x: Array) -> Array:
        y, v = x[:2], x[2:]
        M = np.triu(pin.crba(model, data, y))
        M = M + np.triu(M, 1).T - np.diag(model.armature) + maps.inertia(y)
        load = pin.rnea(model, data, y, v, np.zeros(2)) + maps.coriolis(y, v)
        return np.concatenate([v, np.linalg.solve(M, maps.joint_torques(y, torques(t)) - load)])

    x, h = np.append(START, [0.0, 0.0]), STEP
    for t in h * np.arange(round(UNTIL / h)):
        k1 = rate(t, x)
        k2 = rate(t + h / 2, x + h / 2 * k1)
        k3 = rate(t + h / 2, x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(t + h, x + h * k3))
    return np.asarray(x[:2])


def joints_of(run: pl.Trajectory, twin: SerialTwin) -> Array:
    """Where the joints are at the end of a run."""
    named = run.robot.named(run.q[-1])
    return np.array([named[name] for name in twin.joints], dtype=float)


def main(plot: str | None = None) -> None:
    """Make four twins and hold them to what is known."""
    twin = pl.serial(ankle(gravity=0.0), ["pitch", "roll"], ranges=RANGES)
    print(twin, end="\n\n")
    off = max(np.abs(x.motors - ankle_motors(*x.joints)).max() for x in twin.poses(7))
    print(f"ankle: motors, against their closed form     {off:.0e} rad")
    assert off < 1e-9

    maps = twin.fit()
    truth = with_loops(twin)
    way = np.abs(truth - START).max()
    exact, nearly = (
        float(np.abs(x - truth).max() / way)
        for x in (with_all_inertia(twin, maps), with_armature(twin, maps))
    )
    print(
        f"ankle: without loops, with all inertia       {exact:.0e} of the way off after {UNTIL} s"
    )
    print(f"ankle: without loops, with armature alone    {nearly:.2f} of the way off")
    assert exact < 1e-4 < nearly < 0.05

    bent = pl.serial(knee(), ["bend"])
    off = max(abs(x.motors[0] - knee_motor(x.joints[0])) for x in bent.poses(9))
    ratios = [float(x.jacobian[0, 0]) for x in bent.poses(9)]
    print(f"knee: motor, against its closed form         {off:.0e} rad")
    print(f"knee: motor turns {max(ratios):.2f} to {min(ratios):.2f} times as far as the joint")
    assert off < 1e-9 and max(ratios) > 2 * min(ratios)

    mixed = pl.serial(wrist(), ["bend", "turn"])
    box = ", ".join(f"({x:+.0f}, {y:+.0f})" for x, y in mixed.home_pose.torque_polygon)
    print(f"wrist: motors give torques within            {box} N m")
    assert np.allclose(mixed.home_pose.jacobian, [[2, 2], [2, -2]])

    for parallel in (True, False):
        fingers = pl.serial(gripper(parallel=parallel), FINGERS)
        with tempfile.TemporaryDirectory() as folder:
            again = pl.load(fingers.save(Path(folder) / "gripper.xml"))
        off = 0.0
        for pose in fingers.poses(5):
            q = pl.assemble(again, {"left_knuckle": float(pose.joints[0])})
            off = max(off, abs(float(again.named(q)["left_tip"]) - pose.followers[0]))
        what = "parallel bars" if parallel else "other bars   "
        print(f"gripper: {what} as polynomials in MJCF {off:.0e} rad")
        assert off < (1e-9 if parallel else 5e-3)
    if plot is not None:
        draw(plot, twin)


def draw(path: str, twin: SerialTwin) -> None:
    """Torques that the ankle's motors can give, over its poses."""
    with drawing(path, 9.0, 4.0) as figure:
        left, right = figure.subplots(1, 2)
        for axes, name, unit in ((left, "torque", "N m"), (right, "speed", "rad/s")):
            for pitch in np.linspace(*RANGES["pitch"], 4):
                polygon = getattr(twin.at_joints([pitch, 0.1]), f"{name}_polygon")
                closed = np.vstack([polygon, polygon[:1]])
                axes.plot(closed[:, 0], closed[:, 1], label=f"pitch {pitch:+.2f} rad")
            axes.set_xlabel(f"{name} in pitch [{unit}]")
            axes.set_ylabel(f"{name} in roll [{unit}]")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)


if __name__ == "__main__":
    start_program(main, "Robots without the linkages of their motors.")
