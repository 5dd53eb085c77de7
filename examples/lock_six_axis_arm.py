"""Six-axis arm: joints 1, 2 and 3 lock one after another, and the tool ends somewhere else.

Paper 4, section 7, figures 6 to 8. All joints move at half their rated speed; then the drives are
off, gravity and the friction of the file act, joints 1, 2 and 3 lock after 0.1, 0.2 and 0.3 s. The
naive switch sets the velocity of the joint to zero and nothing else. The paper prints neither start
nor times nor parameters: `six_axis_arm.urdf` is an estimate in the size of its robot, and so are
the rotors here, whose inertia counts 100^2 times at the joints.

Asserted, with rotors and without: momenta of unlocked joints jump naively and do not jump
consistently; the energy drops by 0.5 dv' M dv; locked angles stay equal to the last bit; eqs. 22,
32 and 37 agree; two locks at one instant give the same in both orders and together. The tool ends
centimetres away from where the naive run puts it.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

ROBOT = Path(__file__).parents[1] / "urdf" / "six_axis_arm.urdf"
GEAR = 100.0
ROTORS = (4e-4, 4e-4, 2.5e-4, 3e-5, 3e-5, 3e-5)
"""Estimates of the rotors with their brakes, motor side [kg m^2]."""
START = np.radians([-40.0, -10.0, -20.0, 0.0, -60.0, 0.0])
LOCKS = (("joint_1", 0.1), ("joint_2", 0.2), ("joint_3", 0.3))
UNTIL = 0.5
MODES = [pl.Mode(tuple(pl.Locked(name) for name, _ in LOCKS[:k])) for k in range(4)]
TITLES = ("velocity set to zero", "momentum kept")


class Story(NamedTuple):
    """One run, all its parts in a row; momenta are NaN where the joint is locked [N m s]."""

    t: Array
    q: Array
    v: Array
    momentum: Array
    arm: Array
    """Shoulder, elbow, wrist and tool [m], shape (k, 4, 3)."""


def arm(rotors: bool) -> pl.Mechanism:
    """The arm, with the inertia of its rotors or without."""
    drives = {
        f"joint_{k + 1}": {"reduction": GEAR, "rotor_inertia": rotors * inertia}
        for k, inertia in enumerate(ROTORS)
    }
    return pl.load(ROBOT, loops={"drives": drives})


def naive(robot: pl.Mechanism, v: Array) -> list[pl.Trajectory]:
    """Run to each lock, zero the velocity of its joint, start again with the joint locked."""
    parts: list[pl.Trajectory] = []
    q, t = START, 0.0
    for mode, end in zip(MODES, [*(time for _, time in LOCKS), UNTIL], strict=True):
        v = np.where(np.arange(robot.nv) < len(mode.locks), 0.0, v)
        parts.append(pl.simulate(robot, q, v, start=t, until=end, mode=mode))
        q, v, t = parts[-1].q[-1], parts[-1].v[-1], end
    return parts


def story(parts: list[pl.Trajectory]) -> Story:
    """States and momenta of a run in one or more parts."""
    pieces = []
    for run in parts:
        locked = np.array([run.system.locked(run.modes[number]) for number in run.mode])
        momentum = np.where(locked, np.nan, run.momentum().generalized)
        frames = [run.placement(name) for name in ("joint_2", "joint_3", "joint_5", "tool0")]
        arm = np.array([[place.translation for place in places] for places in zip(*frames)])
        pieces.append((run.t, run.q, run.v, momentum, arm))
    return Story(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def jump(one: Story, time: float) -> float:
    """Largest jump of the momenta of joints that stay free, relative to the largest of them."""
    before, after = one.momentum[one.t == time]
    return float(np.nanmax(np.abs(after - before)) / np.abs(before[~np.isnan(after)]).max())


def check(robot: pl.Mechanism, v: Array, run: pl.Trajectory) -> None:
    """Energy, held angles and forms at every lock; two locks in both orders and together."""
    kinetic, mass = run.energy().kinetic, pl.EquationsOfMotion(robot).mass
    for k, change in enumerate(run.transitions):
        before, after = np.flatnonzero(run.t == change.t)
        dv = change.v_plus - change.v_minus
        lost = 0.5 * dv @ mass(change.q) @ dv
        assert lost > 0 and abs(kinetic[before] - kinetic[after] - lost) < 1e-12 * kinetic[before]
        assert np.all(run.q[after:, k] == run.q[after, k])
        for form in (pl.Augmented(), pl.Projected(), pl.Voronets()):
            same = pl.transition(robot, change.q, change.v_minus, *MODES[k : k + 2], form=form)
            np.testing.assert_allclose(same.v_plus, change.v_plus, rtol=0, atol=1e-12)
    once = pl.transition(robot, START, v, MODES[0], MODES[2])
    for name in ("joint_1", "joint_2"):
        first = pl.transition(robot, START, v, MODES[0], pl.Mode((pl.Locked(name),)))
        second = pl.transition(robot, START, first.v_plus, first.after, MODES[2])
        np.testing.assert_allclose(second.v_plus, once.v_plus, rtol=0, atol=1e-12)
        assert abs(first.energy_loss + second.energy_loss - once.energy_loss) < 1e-9


def main(plot: str | None = None) -> dict[bool, float]:
    """Returns how far apart the two switches end the tool [m], with rotors and without."""
    apart, told = {}, {}
    for rotors in (False, True):
        robot = arm(rotors)
        v = 0.5 * robot.model.upperVelocityLimit
        events = [pl.lock(name, at=time) for name, time in LOCKS]
        run = pl.simulate(robot, START, v, until=UNTIL, events=events)
        check(robot, v, run)
        told[rotors] = one, other = story(naive(robot, v)), story([run])
        print("with rotor inertia" if rotors else "without rotor inertia")
        for (name, time), change in zip(LOCKS, run.transitions, strict=True):
            assert jump(one, time) > 1e-2 and jump(other, time) < 1e-12
            jumps = f"{100 * jump(one, time):3.0f} % ({100 * jump(other, time):.0e} %)"
            print(f"  {name} locks: {change.energy_loss:6.2f} J lost, free momenta jump by {jumps}")
        apart[rotors] = float(np.linalg.norm(other.arm[-1, -1] - one.arm[-1, -1]))
        more = np.array2string(GEAR * (other.q[-1] - one.q[-1])[:3], precision=2)
        print(f"  motors 1, 2, 3 end {more} rad further than in the naive run,")
        print(f"  the tool {1e3 * apart[rotors]:.0f} mm from where that puts it")
        assert apart[rotors] > 0.05
    if plot:
        _plot(told, plot)
    return apart


def _plot(told: dict[bool, tuple[Story, Story]], path: str) -> None:
    """Motors, with rotor inertia, and the arm from the side, with and without."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(15, 9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2, 1))
    rows = left.subplots(3, 2, sharex=True, sharey="row")
    labels = ("rates [rad/s]", "angles from the start [rad]", "momenta, free motors [mN m s]")
    for column, one, title in zip(rows.T, told[True], TITLES, strict=True):
        values = GEAR * one.v, GEAR * (one.q - START), 1e3 * one.momentum / GEAR
        for axes, lines, label in zip(column, values, labels, strict=True):
            for k, line in enumerate(lines.T):
                axes.plot(one.t, line, label=f"{k + 1}", lw=2 if k < 3 else 1)
            axes.set_ylabel(label if one is told[True][0] else "")
            axes.grid(alpha=0.3)
            for _, time in LOCKS:
                axes.axvline(time, color="0.5", ls="--", lw=1)
        column[0].set_title(f"motors, {title}", weight="bold")
        column[2].set_xlabel("time [s]")
    rows[0, 1].legend(title="motor", ncols=2)
    for axes, rotors in zip(right.subplots(2, 1), (True, False), strict=True):
        heading = told[rotors][0].q[-1, 0]
        flat = np.array([[np.cos(heading), 0], [np.sin(heading), 0], [0, 1]])
        sides = [one.arm @ flat for one in told[rotors]]
        axes.plot(*sides[0][0].T, "o-", color="0.85", lw=6, label="start")
        for side, color, title in zip(sides, ("0.45", "#c44e00"), TITLES, strict=True):
            axes.plot(*side[:, -1].T, color=color, lw=1, ls=":")
            axes.plot(*side[-1].T, "o-", color=color, lw=4, label=f"end, {title}")
        gap = np.linalg.norm(told[rotors][1].arm[-1, -1] - told[rotors][0].arm[-1, -1])
        where = f"{'with' if rotors else 'without'} rotor inertia"
        axes.set_title(f"side view, {where}: tools {1e3 * gap:.0f} mm apart", weight="bold")
        axes.set(xlabel="reach [m]", ylabel="height [m]", aspect="equal", xlim=(-0.3, 1.5))
        axes.legend(loc="lower left")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="PNG", help="draw both runs (needs matplotlib)")
    main(plot=parser.parse_args().plot)
