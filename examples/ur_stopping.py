"""UR5 and UR3: stops of single axes against the times and angles that their manuals give.

Universal Robots, user manuals UR5/CB3 (version 3.4.5) and UR3/CB3 (version 3.10), appendix A.1:
stops of category 0 at 183 deg/s, arm fully extended horizontally, largest payload at the tool;
joint 0 moves horizontally, joints 1 and 2 downwards. Masses and lengths are those of the package
example-robot-data (its ur3.urdf is empty, ur3_robot.urdf is complete), without rotors.

One axis moves, strong brakes hold the others. The payload is a point at the flange. The arm is
level half the published angle after the signal; a table shows the effect of that choice. The drives
are off from the signal on; brakes have their full torque after a delay of 0, 15 or 30 ms. One
number, the torque of the brake at the joint, is fitted to the published time: the angle is then a
prediction. A second one, a viscous torque as of a motor whose terminals are shorted, is fitted to
the angle.

The mean torque over time is the change of momentum divided by the time, the mean over the angle is
the change of energy divided by the angle. For a constant torque both are equal, and a delay makes
the second the smaller one. In the manuals it is the larger one, except for joint 2 of the UR3: the
torque must increase with the speed.

Asserted: both means to the digit; momentum and energy of every fit; the closed form of joint 0;
that a constant torque goes 19 to 42 % too far, but not on joint 2 of the UR3; that two numbers meet
time and angle. And of ideal locks at full speed: setting the velocity of joint 1 to zero raises the
kinetic energy in every fifth state of a UR5 with 5 kg, `pl.transition` in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl
from common.pictures import drawing
from common.program import start_program
from common.single_axis import Axis, Fit, example_urdf

Array = NDArray[np.float64]

ROBOTS = {"UR5": ("ur5_robot.urdf", 5.0), "UR3": ("ur3_robot.urdf", 3.0)}
"""File and payload [kg]."""
PUBLISHED = {
    "UR5": ((0.31, 0.244), (0.70, 0.530), (0.22, 0.164)),
    "UR3": ((0.18, 0.159), (0.20, 0.154), (0.15, 0.092)),
}
"""Stopping angle [rad] and time [s] of joints 0, 1, 2."""
MEANS = {"UR5": ((103, 130), (144, 153), (67, 73)), "UR3": ((29, 41), (57, 64), (21, 21))}
"""Mean torques over time and over angle that this implies, with gravity as on a level arm."""
SPEED = float(np.radians(183.0))
DELAYS = (0.0, 0.015, 0.03)
"""None, and of brakes switched on the direct-current side, as in docs/brakes.md [s]."""
PAGE = Path(__file__).parents[1] / "docs" / "stopping.md"


def axes(names: Iterable[str] = ROBOTS) -> list[Axis]:
    """All axes of which something is published."""
    found = []
    for name in names:
        file, mass = ROBOTS[name]
        robot = pl.load(example_urdf(file), kinematics_only=True)
        load = pl.Payload(mass, frame="tool0")
        for k, (angle, time) in enumerate(PUBLISHED[name]):
            found.append(Axis(f"{name} J{k}", robot, load, k, SPEED, angle, time))
    return found


# -- tables ---------------------------------------------------------------------------------


def means_row(one: Axis) -> list[str]:
    """What is published, what it implies, and the constant torque that meets half of it."""
    over_time, over_angle = one.means
    expected = MEANS[one.name[:3]][one.column]
    assert (round(over_time), round(over_angle)) == expected, f"{one.name}: {one.means}"
    # Gravity pulls less on an arm that is not level: on joint 1 of the UR5, up to 0.57 rad from it.
    slack = 0.06 if one.name == "UR5 J1" else 1e-5 if one.column == 0 else 0.02
    for fit, mean in ((one.by_time, over_time), (one.by_angle, over_angle)):
        fit.check()
        assert abs(fit.torque / mean - 1.0) < slack, f"{one.name}: {fit.torque} against {mean}"
    return [
        one.name, f"{one.angle:.2f}", f"{1e3 * one.time:.0f}", f"{one.shape:.3f}",
        f"{one.inertia:.2f}", f"{abs(one.level):.1f}", f"{over_time:.1f}", f"{over_angle:.1f}",
        f"{one.by_time.torque:.1f}", f"{one.by_time.joint.angle:.3f}",
        f"{one.by_angle.torque:.1f}", f"{1e3 * one.by_angle.joint.time:.0f}",
    ]  # fmt: skip


def model_rows(one: Axis) -> tuple[list[list[str]], list[Fit]]:
    """Constant torque after each delay, and the same beside a shorted motor."""
    rows, fits = list[list[str]](), list[Fit]()
    for delay in DELAYS:
        flat = one.for_time(delay) if delay else one.by_time
        flat.check()
        # Delay and constant deceleration: the angle is at least half of speed times time.
        assert flat.shape > 0.5 - 1e-6 and abs(flat.joint.time / one.time - 1.0) < 1e-3
        fits.append(flat)
        cells = [
            one.name, f"{1e3 * delay:.0f}", f"{flat.torque:.1f}", f"{flat.joint.angle:.3f}",
            f"{100 * (flat.joint.angle / one.angle - 1):+.0f} %", f"{flat.shape:.3f}",
        ]  # fmt: skip
        if flat.joint.angle > one.angle:
            both = one.for_both(delay)
            both.check()
            assert abs(both.joint.time / one.time - 1.0) < 0.01
            assert abs(both.joint.angle / one.angle - 1.0) < 0.01
            fits.append(both)
            rows.append([
                *cells, f"{both.torque:.1f}", f"{both.short:.1f}",
                f"{both.torque + both.short * SPEED:.0f}", f"{1e3 * both.joint.time:.0f}",
                f"{both.joint.angle:.3f}", f"{100 * both.share:.0f} %",
            ])  # fmt: skip
        else:  # viscous losses would only shorten it further
            rows.append([*cells, *["-"] * 6])
    _check_models(one, fits)
    return rows, fits


def _check_models(one: Axis, fits: list[Fit]) -> None:
    """What constant torques cannot do, and the closed form of joint 0."""
    flat = [fit for fit in fits if fit.short == 0.0]
    assert np.all(np.diff([fit.joint.angle for fit in flat]) > 0.0), "a delay makes it larger"
    excess = flat[0].joint.angle / one.angle - 1.0
    if one.name == "UR3 J2":
        assert abs(excess) < 0.02 and 0.5 < one.shape < 0.52
        return
    assert 0.19 < excess < 0.42 and 0.35 < one.shape < 0.43
    both = fits[1]
    assert both.short > 0.0 and both.delay == 0.0
    if one.column == 0:  # I dv/dt = -T - c v
        rate = both.short / one.inertia
        time = np.log1p(both.short * SPEED / both.torque) / rate
        angle = (SPEED - both.torque / one.inertia * time) / rate
        assert abs(both.joint.time / time - 1.0) < 1e-6
        assert abs(both.joint.angle / angle - 1.0) < 1e-6


def level_rows(one: Axis) -> list[list[str]]:
    """Constant torques without delay for three instants at which the arm is level."""
    fits = [
        ("at the signal", one.for_time(passed=0.0), one.for_angle(passed=0.0)),
        ("in the middle", one.by_time, one.by_angle),
        ("at the end", one.for_time(passed=1.0), one.for_angle(passed=1.0)),
    ]
    return [
        [
            one.name, when, f"{by_time.torque:.1f}", f"{by_time.joint.angle:.3f}",
            f"{by_time.shape:.3f}", f"{by_angle.torque:.1f}", f"{1e3 * by_angle.joint.time:.0f}",
        ]
        for when, by_time, by_angle in fits
    ]  # fmt: skip


def markdown(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A table with columns of even width."""
    cells = [[cell.strip() for cell in head.split("|")], *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.rjust, row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)


MEANS_HEAD = (
    "axis | angle [rad] | time [ms] | d/(v0 t) | inertia [kg m²] | gravity [N m] | over time [N m] "
    "| over angle [N m] | torque for time [N m] | its angle [rad] | torque for angle [N m] "
    "| its time [ms]"
)
MODELS_HEAD = (
    "axis | delay [ms] | constant [N m] | angle [rad] | too far | d/(v0 t) | brake [N m] "
    "| shorted [N m s/rad] | at full speed [N m] | time [ms] | angle [rad] | heat in motor"
)
LEVEL_HEAD = (
    "axis | arm level | torque for time [N m] | its angle [rad] | d/(v0 t) "
    "| torque for angle [N m] | its time [ms]"
)


# -- locking at full speed ------------------------------------------------------------------


class Locks(NamedTuple):
    """Joint 1 locked in random states: energies after over before, tool speed apart [m/s]."""

    zeroed: Array
    kept: Array
    apart: Array

    def __str__(self) -> str:
        return (
            f"Velocity set to zero: kinetic energy rises in {np.sum(self.zeroed > 1)} of "
            f"{len(self.zeroed)} states ({100 * np.mean(self.zeroed > 1):.2f} %), up to "
            f"{self.zeroed.max():.1f} times;\nthe speed of the tool is off by "
            f"{np.median(self.apart):.2f} m/s in the median.\nMomentum kept: kinetic energy rises "
            f"in {np.sum(self.kept > 1 + 1e-12)} states."
        )


def locks(states: int = 2000, seed: int = 0) -> Locks:
    """A UR5 with 5 kg; angles uniform over a turn, speeds over the limits of the URDF."""
    file, mass = ROBOTS["UR5"]
    robot = pl.load(example_urdf(file), kinematics_only=True).with_payload("tool0", mass)
    model, data = robot.model, robot.model.createData()
    lock, frame = pl.Mode((pl.simulation.Locked("shoulder_lift_joint"),)), robot.frame_id("tool0")
    mass_matrix, limit = pl.EquationsOfMotion(robot).mass, model.upperVelocityLimit
    rng = np.random.default_rng(seed)
    rows = np.zeros((states, 3))
    for row in rows:
        q, v = rng.uniform(-np.pi, np.pi, robot.nq), rng.uniform(-limit, limit)
        zeroed, kept = v * (np.arange(6) != 1), pl.transition(robot, q, v, pl.Mode(), lock).v_plus
        M = mass_matrix(q)
        J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)[:3]
        row[:2] = [after @ M @ after / (v @ M @ v) for after in (zeroed, kept)]
        row[2] = np.linalg.norm(J @ (zeroed - kept))
    return Locks(*rows.T)


def check_locks(found: Locks) -> None:
    """Loosely, as the sample is one of many; that energy never rises, strictly."""
    assert 0.16 < np.mean(found.zeroed > 1.0) < 0.23 and found.zeroed.max() > 3.0
    assert 0.40 < np.median(found.apart) < 0.50
    assert found.kept.max() < 1.0 + 1e-12


# -- the program ----------------------------------------------------------------------------


def main(write: bool = False, plot: str | None = None) -> list[Fit]:
    """Print and check everything; returns the fits of all models."""
    every = axes()
    modelled = [model_rows(one) for one in every]
    rows = [row for some, _ in modelled for row in some]
    level = [row for one in every if one.column for row in level_rows(one)]
    found = locks()
    check_locks(found)
    told = {
        "means": markdown(MEANS_HEAD, [means_row(one) for one in every]),
        "models": markdown(MODELS_HEAD, rows),
        "level": markdown(LEVEL_HEAD, level),
        "locks": str(found),
    }
    titles = (
        "Published, the mean torques it implies, and constant torques that meet time or angle",
        "Fitted to the time: constant torque; to time and angle: with a shorted motor beside it",
        "Constant torques without delay, by where the arm is level",
        "Joint 1 of a UR5 with 5 kg locks at full speed",
    )
    for title, text in zip(titles, told.values(), strict=True):
        print(f"{title}\n\n{text}\n")
    fits = [fit for _, some in modelled for fit in some]
    if write:
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), told), encoding="utf-8")
    if plot:
        _plot(every, fits, found, plot)
    return fits


def put(page: str, told: dict[str, str]) -> str:
    """The page with each text between the markers of its name."""
    for name, text in told.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"
    return page


def _plot(every: list[Axis], fits: list[Fit], found: Locks, path: str) -> None:
    """Speeds over time of all axes, and energies of the locks."""
    with drawing(path, 15, 8) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(3, 1))
        lines = {}
        for one, axes in zip(every, left.subplots(2, 3).flat, strict=True):
            for fit in fits:
                if fit.axis is not one or fit.delay not in DELAYS[::2]:
                    continue
                t = np.linspace(0.0, fit.result.run.t[-1], 400)
                how = "shorted motor beside it" if fit.short else "constant torque"
                style = {
                    "color": "#c44e00" if fit.short else "0.45",
                    "ls": "--" if fit.delay else "-",
                }
                (line,) = axes.plot(1e3 * t, fit.result.run(t)[2][:, one.column], **style)
                line.set_label(f"{fit.joint.angle:.2f} rad")
                lines[f"{how}, delay {1e3 * fit.delay:.0f} ms"] = line
            axes.axvline(1e3 * one.time, color="C0", lw=1)
            axes.set_title(f"{one.name}: published {one.angle:.2f} rad, {1e3 * one.time:.0f} ms")
            axes.legend(loc="upper right", frameon=False, bbox_to_anchor=(0.94, 1.0))
            axes.set_xlabel("time from the signal [ms]" if one.name.startswith("UR3") else "")
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
        left.supylabel("speed [rad/s]: the area is the angle")
        axes, bins = right.subplots(), np.linspace(0.0, 2.0, 41)
        for ratio, label in ((found.zeroed, "velocity set to zero"), (found.kept, "momentum kept")):
            axes.hist(np.minimum(ratio, 2.0), bins, histtype="step", lw=2, label=label)
        axes.set_title("Joint 1 of a UR5 locks: kinetic energy")
        axes.set(xlabel="after over before (2 and more at 2)", ylabel="states")
        axes.margins(y=0.18)
        axes.legend(loc="upper right")


if __name__ == "__main__":
    start_program(
        main,
        "UR5 and UR3 against their manuals.",
        motion=lambda: axes(["UR5"])[1].by_time.result.run,
        flags={"write": "put the tables into docs/stopping.md"},
    )
