"""Six-axis arm: joints 1, 2 and 3 lock one after another, and the tool ends somewhere else.

Paper 4, section 7, figures 6 to 8. All joints move at half their rated speed; the drives go off,
gravity and friction act, joints 1, 2, 3 lock after 0.1, 0.2, 0.3 s. The naive switch sets the
velocity of the joint to zero and nothing else. The paper prints neither start nor times nor
parameters: those here are ours, `six_axis_arm.urdf` and the rotors are estimates.

Asserted: the momenta of unlocked joints jump in the naive run and not in the consistent one; the
energy drops by 0.5 dv' M dv; locked angles stay equal to the last bit; eqs. 22, 32 and 37 agree;
two locks at one instant give the same in either order and together.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl
from common.pictures import drawing
from common.program import start_program

Array = NDArray[np.float64]

ROBOT = Path(__file__).parents[1] / "urdf" / "six_axis_arm.urdf"
GEAR, ROTORS = 100.0, (4e-4, 4e-4, 2.5e-4, 3e-5, 3e-5, 3e-5)  # motor side [kg m^2]
START = np.radians([-40.0, -10.0, -20.0, 0.0, -60.0, 0.0])
TIMES, UNTIL, FRAME = (0.1, 0.2, 0.3), 0.5, 5e-3
LOCKS = [pl.simulation.Locked(f"joint_{k + 1}") for k in range(3)]
MODES = [pl.Mode(tuple(LOCKS[:k])) for k in range(4)]


class Story(NamedTuple):
    """One run, all its parts in a row; momenta are NaN where the joint is locked [N m s]."""

    t: Array
    q: Array
    v: Array
    momentum: Array
    arm: Array  # shoulder, elbow, wrist and tool [m], shape (k, 4, 3)


def naive(robot: pl.Mechanism, v: Array) -> list[pl.Trajectory]:
    """Run to each lock, zero the velocity of its joint, start again with the joint locked."""
    parts, q, t = list[pl.Trajectory](), START, 0.0
    for k, (mode, end) in enumerate(zip(MODES, (*TIMES, UNTIL), strict=True)):
        v = np.where(np.arange(robot.nv) < k, 0.0, v)
        parts.append(pl.simulate(robot, q, v, start=t, until=end, mode=mode, save_every=FRAME))
        q, v, t = parts[-1].q[-1], parts[-1].v[-1], end
    return parts


def story(parts: list[pl.Trajectory]) -> Story:
    """States, momenta and places of a run in one or more parts."""
    pieces = []
    for run in parts:  # what friction lets stick is not locked: it takes part in a jump
        momentum = run.momentum().generalized.copy()
        for p, k in zip(momentum, run.mode, strict=True):
            p[run.system.equations(pl.Mode(run.modes[k].locks)).rows.locked] = np.nan
        frames = [run.placement(name) for name in ("joint_2", "joint_3", "joint_5", "tool0")]
        arm = np.array([[place.translation for place in places] for places in frames])
        pieces.append((run.t, run.q, run.v, momentum, arm.swapaxes(0, 1)))
    return Story(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def jump(one: Story, time: float) -> float:
    """Largest jump of the momenta of joints that stay free, relative to the largest of them."""
    before, after = one.momentum[one.t == time]
    return float(np.nanmax(np.abs(after - before)) / np.abs(before[~np.isnan(after)]).max())


def check(robot: pl.Mechanism, run: pl.Trajectory, told: tuple[Story, Story]) -> None:
    """Momenta, energy, held angles and forms at every lock; two locks in both orders."""
    kinetic, mass = run.energy().kinetic, pl.EquationsOfMotion(robot).mass
    for k, (change, old, new) in enumerate(zip(run.transitions, MODES[:3], MODES[1:], strict=True)):
        wrong, right = (jump(one, change.t) for one in told)
        assert wrong > 1e-2 and right < 1e-12
        print(f"  {change.events[0]}: {change.energy_loss:.2f} J, {wrong:.0%} against {right:.0e}")
        before, after = np.flatnonzero(run.t == TIMES[k])
        lost = 0.5 * (dv := change.v_plus - change.v_minus) @ mass(change.q) @ dv
        assert lost > 0 and abs(kinetic[before] - kinetic[after] - lost) < 1e-12 * kinetic[before]
        assert np.all(run.q[after:, k] == run.q[after, k])
        for form in (pl.Augmented(), pl.Projected(), pl.Voronets()):
            same = pl.transition(robot, change.q, change.v_minus, old, new, form)
            np.testing.assert_allclose(same.v_plus, change.v_plus, rtol=0, atol=1e-12)
    once = pl.transition(robot, START, run.v[0], MODES[0], MODES[2])
    for lock in LOCKS[:2]:
        first = pl.transition(robot, START, run.v[0], MODES[0], pl.Mode((lock,)))
        second = pl.transition(robot, START, first.v_plus, first.after, MODES[2])
        np.testing.assert_allclose(second.v_plus, once.v_plus, rtol=0, atol=1e-12)
        assert abs(first.energy_loss + second.energy_loss - once.energy_loss) < 1e-9


def locked_run(share: float = 1.0) -> pl.Trajectory:
    """The run with locks as events, and with so much of the rotors' inertia."""
    gears = [{"reduction": GEAR, "rotor_inertia": share * inertia} for inertia in ROTORS]
    drives = {f"joint_{k + 1}": gear for k, gear in enumerate(gears)}
    robot = pl.load(ROBOT, loops={"drives": drives})
    events = [pl.lock(f"joint_{k + 1}", at=time) for k, time in enumerate(TIMES)]
    v = 0.5 * robot.model.upperVelocityLimit
    return pl.simulate(robot, START, v, until=UNTIL, events=events, save_every=FRAME)


def main(both: bool = True, plot: str | None = None) -> dict[str, float]:
    """Returns how far apart the two switches end the tool [m], with rotors and without."""
    told, apart = {}, {}
    for name, share in (("with rotors", 1.0), ("without rotors", 0.0))[: 1 + both]:
        print(f"{name}: energy lost, relative jump of free momenta if naive, and if consistent")
        run = locked_run(share)
        robot = run.robot
        one, other = told[name] = story(naive(robot, run.v[0])), story([run])
        check(robot, run, told[name])
        apart[name] = float(np.linalg.norm(other.arm[-1, -1] - one.arm[-1, -1]))
        print(f"  the tool ends {1e3 * apart[name]:.0f} mm from where the naive run puts it")
        assert apart[name] > 0.05
    if plot:
        _plot(told, apart, plot)
    return apart


def _plot(told: dict[str, tuple[Story, Story]], apart: dict[str, float], path: str) -> None:
    """Motors of the arm with rotors, and the arm from the side, with and without."""
    with drawing(path, 12.5, 7) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(2, 1))
        rows, sides = left.subplots(3, 2, sharex=True, sharey="row"), right.subplots(2, 1)
        labels = ("rates [rad/s]", "angles from the start [rad]", "momenta, free [mN m s]")
        titles = ("velocity set to zero", "momentum kept")
        for column, one, title in zip(rows.T, told["with rotors"], titles, strict=True):
            values = GEAR * one.v, GEAR * (one.q - START), 1e3 * one.momentum / GEAR
            for axes, lines, label in zip(column, values, labels, strict=True):
                axes.plot(one.t, lines, label=[f"motor {k + 1}" for k in range(6)])
                axes.set_ylabel(label if title is titles[0] else "")
                axes.vlines(TIMES, 0, 1, "0.5", "--", lw=1, transform=axes.get_xaxis_transform())
            column[0].set_title(f"motors, {title}", weight="bold")
            column[2].set_xlabel("time [s]")
        rows[2, 1].legend(loc="center right")
        for axes, (name, stories) in zip(sides, told.items(), strict=False):
            heading = stories[0].q[-1, 0]
            flat = np.array([[np.cos(heading), 0], [np.sin(heading), 0], [0, 1]])
            axes.plot(*(stories[0].arm[0] @ flat).T, "o-", color="0.85", lw=6, label="start")
            for one, color, title in zip(stories, ("0.45", "#c44e00"), titles, strict=True):
                axes.plot(*(one.arm[:, -1] @ flat).T, color=color, ls=":")
                axes.plot(*(one.arm[-1] @ flat).T, "o-", color=color, lw=4, label=f"end, {title}")
            axes.set_title(f"{name}: tools end {1e3 * apart[name]:.0f} mm apart", weight="bold")
            axes.set(xlabel="reach [m]", ylabel="height [m]", xlim=(-0.4, 1.8), ylim=(0.3, 2.2))
            axes.set_aspect("equal")
        sides[0].legend(loc="upper right")


if __name__ == "__main__":
    start_program(main, __doc__, motion=locked_run)
