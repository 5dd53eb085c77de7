"""Robots on robots: an arm on a linear axis and on a mobile base, two arms, a load that hangs.

`with_robot` mounts one robot on another, `with_brakes` joins their brakes; what comes out is a
robot like any other. Axis, base and load are estimates; arm and palletizer come with pinloop.

Asserted, of each: energy of a motion without drives, and of a stop from full speed; O-DCA body by
body, which forms no mass matrix, ends where the default formulation does; each case of a study
stops and is held. And what Newton says of each: nothing pushes the axis along its rail, so that
momentum stays; that of the base stays in the plane, with the spin about the vertical; two arms on
one floor move and stop as each does alone; the load swings with the period of its pendulum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl
from common.pictures import drawing
from common.program import start_program

Array = NDArray[np.float64]

UNTIL = 0.3
"""End of the motion without drives [s]."""
START = {"joint_1": 0.4, "joint_2": 0.5, "joint_3": -0.3, "joint_5": -0.7}
"""Pose of an arm at the signal [rad]."""
RAIL, CRATE, ROPE = 260.0, 40.0, 0.8
"""Mass of the carriage and of the crate [kg], length of the rope [m]."""
TIGHT = pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10)


class Cell(NamedTuple):
    """Robots in one place, and a state at full speed."""

    robot: pl.Mechanism
    brakes: pl.Brakes
    q: Array
    v: Array


def slide(name: str, axis: list[float], parent: str, child: str) -> dict[str, Any]:
    """A slide with 3 m of travel."""
    limits = {"lower": -1.5, "upper": 1.5, "velocity": 1.2, "effort": 3000.0}
    ends: dict[str, Any] = {"parent": parent, "child": child, "point": [0, 0, 0]}
    return {"name": name, "pair": "prismatic", "axis": axis, "limits": limits} | ends


def linear_axis() -> pl.Mechanism:
    """A carriage on a rail along y."""
    frame = {"name": "top", "body": "carriage", "point": [0, 0, 0.5]}
    body = {"name": "carriage", "mass": RAIL, "com": [0, 0, 0.3], "inertia": 20 * np.eye(3)}
    rail = slide("rail", [0, 1, 0], "ground", "carriage")
    return pl.from_screws({"name": "axis", "bodies": [body], "joints": [rail], "frames": [frame]})


def mobile_base() -> pl.Mechanism:
    """A base on wheels for all directions: two slides and a turn."""
    body = {"name": "base", "mass": 180, "com": [0, 0, 0.25], "inertia": np.diag([10, 10, 16])}
    bodies = [{"name": "sledge_x"}, {"name": "sledge_y"}, body]
    limits = {"lower": -3.0, "upper": 3.0, "velocity": 1.5, "effort": 800.0}
    turn: dict[str, Any] = {
        "name": "heading",
        "pair": "revolute",
        "axis": [0, 0, 1],
        "point": [0, 0, 0],
    }
    turn |= {"parent": "sledge_y", "child": "base", "limits": limits}
    joints = [
        slide("drive_x", [1, 0, 0], "ground", "sledge_x"),
        slide("drive_y", [0, 1, 0], "sledge_x", "sledge_y"),
        turn,
    ]
    frame = {"name": "top", "body": "base", "point": [0.1, 0, 0.5]}
    return pl.from_screws({"name": "base", "bodies": bodies, "joints": joints, "frames": [frame]})


def hanging_load() -> pl.Mechanism:
    """A crate on a rope that stays taut: it swings about x and y; nothing drives it."""
    inertia = CRATE / 6 * 0.3**2 * np.eye(3)
    crate = {"name": "crate", "mass": CRATE, "com": [0, 0, -ROPE], "inertia": inertia}
    swing = {"pair": "revolute", "point": [0, 0, 0]}
    joints = [
        swing | {"name": "swing_x", "axis": [1, 0, 0], "parent": "ground", "child": "hook"},
        swing | {"name": "swing_y", "axis": [0, 1, 0], "parent": "hook", "child": "crate"},
    ]
    bodies = [{"name": "hook"}, crate]
    return pl.from_screws({"name": "load", "bodies": bodies, "joints": joints, "actuated": []})


def wheels(*names: str, force: float) -> pl.Brakes:
    """Brakes that act at the joints, with so much force or torque."""
    brake = pl.safety.JointBrake(
        side="joint",
        dynamic_torque=force,
        delay=0.03,
        rise=0.02,
        coulomb=0.02 * force,
        deceleration=2.0,
    )
    return pl.Brakes(dict.fromkeys(names, brake))


def cells() -> dict[str, Cell]:
    """All places, at full speed of the slides and half that of the arms."""
    arm, palletizer = pl.example("six_axis_arm"), pl.example("palletizer")
    own = pl.Brakes.from_yaml(pl.example_file("six_axis_arm.brakes.yaml"))
    top, across = pin.SE3.Identity(), pin.SE3(pin.utils.rotate("z", np.pi), np.array([2.4, 0, 0]))
    down = pin.SE3(pin.utils.rotate("x", np.pi), np.zeros(3))
    rope = pl.safety.JointBrake(kind="none", coulomb=8.0, viscous=15.0)  # bends, and has air around
    axis, base = linear_axis(), mobile_base()
    robots = {
        "an arm on a linear axis": (
            axis.with_robot(arm, "arm_", "top", top),
            wheels("rail", force=2500).with_brakes(own, "arm_"),
        ),
        "an arm on a mobile base": (
            base.with_robot(arm, "arm_", "top", top),
            wheels("drive_x", "drive_y", "heading", force=900).with_brakes(own, "arm_"),
        ),
        "two arms": (
            arm.with_robot(arm, "right_", placement=across),
            own.with_brakes(own, "right_"),
        ),
        "a palletizer with a load that hangs": (
            palletizer.with_robot(hanging_load(), "load_", "tool0", down),
            pl.Brakes.from_yaml(pl.example_file("palletizer.brakes.yaml")).with_brakes(
                pl.Brakes(dict.fromkeys(("swing_x", "swing_y"), rope)), "load_"
            ),
        ),
    }
    return {name: Cell(*both, *full_speed(both[0])) for name, both in robots.items()}


def full_speed(robot: pl.Mechanism) -> tuple[Array, Array]:
    """A pose of the arms, and the slides at full speed, arms at half."""
    names = {name: name.removeprefix("arm_").removeprefix("right_") for name in robot.joints}
    pose = {name: START[known] for name, known in names.items() if known in START}
    q = pl.assemble(robot, pose or {"shoulder": 0.3, "elbow": 0.2})
    limit = robot.model.upperVelocityLimit
    rates = {
        name: (0.5 if pose and "joint" in name else 1.0 if pose else 0.3)
        * float(limit[robot.coordinates(name).v.start])
        for name in robot.actuated
    }
    return q, pl.consistent_velocity(robot, q, rates)


# -- what Newton says of each --------------------------------------------------------------------


def check_axis(cell: Cell, run: pl.Trajectory) -> str:
    """Nothing pushes along the rail."""
    momentum = run.momentum().linear[:, 1]
    drift = np.ptp(momentum) / np.abs(momentum[0])
    assert drift < 1e-8
    return f"momentum along the rail {momentum[0]:.0f} kg m/s, changes by {drift:.0e} of it"


def check_base(cell: Cell, run: pl.Trajectory) -> str:
    """Nothing pushes in the plane, and nothing turns about the vertical."""
    momentum = run.momentum()
    kept = np.column_stack([momentum.linear[:, :2], momentum.angular[:, 2]])
    drift = np.ptp(kept, axis=0).max() / np.abs(kept[0]).max()
    assert drift < 1e-8
    return f"momenta in the plane change by {drift:.0e} of the largest"


def check_arms(cell: Cell, run: pl.Trajectory) -> str:
    """Each arm moves as it does alone."""
    arm, n = pl.example("six_axis_arm"), cell.robot.nv // 2
    alone = pl.simulate(arm, cell.q[:n], cell.v[:n], until=UNTIL, method=TIGHT)
    apart = np.abs(run.q[-1].reshape(2, n) - alone.q[-1]).max()
    own = pl.Brakes.from_yaml(pl.example_file("six_axis_arm.brakes.yaml"))
    one, both = pl.stop(arm, cell.q[:n], cell.v[:n], brakes=own), stop_of(cell)
    late = abs(one.stopping_time - both.stopping_time)
    assert apart < 1e-7 and late < 1e-9
    return f"each arm as alone to {apart:.0e} rad; its stop to {late:.0e} s"


def check_load(cell: Cell, run: pl.Trajectory) -> str:
    """With the palletizer locked, the crate is a pendulum."""
    robot, small = cell.robot, 0.01
    q = pl.assemble(robot, {"shoulder": 0.3, "elbow": 0.2, "load_swing_x": small})
    holding = pl.Mode(tuple(pl.simulation.Locked(name) for name in robot.actuated))
    about = CRATE * ROPE**2 + CRATE / 6 * 0.3**2
    period = 2 * np.pi * np.sqrt(about / (CRATE * 9.81 * ROPE)) * (1 + small**2 / 16)
    swings = pl.simulate(robot, q, until=period, mode=holding, method=TIGHT)
    back = float(swings["load_swing_x"].position[-1]) / small - 1.0
    assert abs(back) < 1e-6
    return f"period of the load {period:.4f} s; back after it to {abs(back):.0e} of its swing"


CHECKS = (check_axis, check_base, check_arms, check_load)


# -- of all --------------------------------------------------------------------------------------


def stop_of(cell: Cell) -> pl.StopResult:
    """The stop of category 0 from full speed."""
    return pl.stop(cell.robot, cell.q, cell.v, brakes=cell.brakes)


def study_of(cell: Cell, cases: int) -> pl.Study:
    """Stops from random poses and speeds; with loops and a load from a part of them."""
    space = pl.safety.Space(speed=(-0.5, 0.5))
    if cell.robot.loops:
        pose = {"shoulder": (-0.1, 0.6), "elbow": (-0.1, 0.4)}
        space = pl.safety.Space(pose=pose, speed=(-0.3, 0.3))
    chosen = pl.safety.Sobol(cases)
    return pl.study(cell.robot, cell.brakes, space, chosen, until=30.0, jobs=1, search=False)


def main(cases: int = 8, plot: str | None = None) -> dict[str, float]:
    """Move, stop and study every cell; returns the longest time of its study [s]."""
    places, longest, stops = cells(), {}, {}
    for (name, cell), check in zip(places.items(), CHECKS, strict=True):
        ends = [
            pl.simulate(cell.robot, cell.q, cell.v, until=UNTIL, method=TIGHT, formulation=form)
            for form in (None, pl.ODCA(block=1))
        ]
        energy, stop = ends[0].energy(), stop_of(cell)
        lost = float(np.abs(energy.error).max() / energy.kinetic[0])
        apart = float(np.abs(cell.robot.difference(ends[0].q[-1], ends[1].q[-1])).max())
        assert lost < 1e-8 and apart < 1e-8 and stop.holds and stop.ledger.relative_error < 1e-7
        study = study_of(cell, cases)
        assert study.outcomes() == {"stopped": cases}
        stops[name], longest[name] = stop, float(study.column("stopping_time_s").max())
        driven = max(stop.joints[joint].time for joint in cell.robot.actuated)
        print(f"{name}: {cell.robot.nv} coordinates, {len(cell.robot.loops)} loops")
        print(f"  falls for {UNTIL} s: energy to {lost:.0e}, O-DCA the same to {apart:.0e}")
        print(f"  {check(cell, ends[0])}")
        print(f"  stops in {1e3 * stop.stopping_time:.0f} ms, drives in {1e3 * driven:.0f} ms")
        print(f"  longest of {cases} stops of its study: {1e3 * longest[name]:.0f} ms")
    if plot:
        _plot(stops, plot)
    return longest


def _plot(stops: dict[str, pl.StopResult], path: str) -> None:
    """Speeds of all joints that are driven or swing, as shares of the largest of each kind."""
    with drawing(path, 12, 7) as figure:
        for axes, (name, stop) in zip(figure.subplots(2, 2).flat, stops.items(), strict=True):
            t = np.linspace(0.0, stop.stopping_time, 1500)
            run = stop.run(t)
            for joint in stop.joints:
                at = stop.robot.coordinates(joint).v.start
                top = np.abs(run.v[:, at]).max()
                if top < 1e-3:
                    continue
                axes.plot(1e3 * t, run.v[:, at] / top, lw=1.2, label=joint.replace("_", " "))
            axes.set(title=name, ylabel="speed, share of its largest", xlim=(0, None))
            axes.legend(fontsize=7, ncols=2, loc="upper right")
        for axes in figure.axes[2:]:
            axes.set_xlabel("time from the signal [ms]")


if __name__ == "__main__":
    start_program(main, "Robots on robots.", motion=lambda: stop_of(cells()["two arms"]).run)
