"""Planar 3R pendulum: two joints lock one after another, naively and with momentum kept.

Paper 4, section 6, figures 2 to 4: three bars released from rest, fixed-step RK4. The naive switch
sets the velocity of the locking joint to zero and leaves the others alone; the consistent one
solves eq. 22. Our copy of the paper lacks configuration, cross-section, times and step: here the
bars start stretched and horizontal, `planar_3r.urdf` has an estimate of the section, the locks come
after 0.6 s and 1.2 s, the step is 1 ms.

Asserted: the momenta of unlocked joints jump in the naive run and not in the consistent one; the
consistent energy drops by 0.5 dv' M dv and never rises, while the naive one rises at the second
lock, out of nothing; locked angles stay equal to the last bit; eqs. 22, 32 and 37 agree.
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

ROBOT = Path(__file__).parents[1] / "urdf" / "planar_3r.urdf"
LOCKS = (("joint_2", 0.6), ("joint_3", 1.2))


class History(NamedTuple):
    """One run, all its parts in a row."""

    t: Array
    q: Array
    v: Array
    momentum: Array  # generalized, NaN where the joint is locked [N m s]
    energy: Array  # total; zero is the height of joint 1, at rest [J]


def consistent(robot: pl.Mechanism, until: float, method: pl.MuntheKaas) -> History:
    """Locks as events: momentum is kept."""
    return history([locked_run(robot, until, method)])


def locked_run(robot: pl.Mechanism, until: float, method: pl.MuntheKaas) -> pl.Trajectory:
    """The run with both locks as events."""
    events = [pl.lock(name, at=time) for name, time in LOCKS]
    return pl.simulate(robot, np.zeros(3), until=until, method=method, events=events)


def naive(robot: pl.Mechanism, until: float, method: pl.MuntheKaas) -> History:
    """Run to each lock, zero the velocity of its joint, start again with the joint locked."""
    q, v, t = np.zeros(3), np.zeros(3), 0.0
    parts: list[pl.Trajectory] = []
    for k, end in enumerate([*(time for _, time in LOCKS), until]):
        mode = pl.Mode(locks=tuple(pl.simulation.Locked(name) for name, _ in LOCKS[:k]))
        for lock in mode.locks:
            v[robot.coordinates(lock.joint).v] = 0.0
        parts.append(pl.simulate(robot, q, v, start=t, until=end, method=method, mode=mode))
        q, v, t = parts[-1].q[-1], parts[-1].v[-1].copy(), end
    return history(parts)


def history(parts: list[pl.Trajectory]) -> History:
    """Angles, velocities, momenta and energy of a run in one or more parts."""
    pieces = []
    for run in parts:
        momentum = run.momentum().generalized.copy()
        for p, k in zip(momentum, run.mode, strict=True):
            p[run.system.equations(pl.Mode(run.modes[k].locks)).rows.locked] = np.nan
        pieces.append((run.t, run.q, run.v, momentum, run.energy().total))
    return History(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def jumps(story: History, time: float) -> tuple[float, float]:
    """Largest relative jump of a momentum that is not locked, and energy step [J], at a lock."""
    before, after = np.flatnonzero(story.t == time)
    p = story.momentum
    free = ~np.isnan(p[after])
    jump = np.abs((p[after] - p[before])[free]).max() / np.abs(p[before][free]).max()
    return float(jump), float(story.energy[after] - story.energy[before])


def check(robot: pl.Mechanism, story: History, name: str, time: float) -> float:
    """Eqs. 22, 32 and 37 agree at a lock; returns the energy step 0.5 dv' M dv [J]."""
    before, after = np.flatnonzero(story.t == time)
    held = story.q[after:, robot.coordinates(name).q]
    assert np.all(held == held[0]), f"{name} moves although it is locked"
    locks = [pl.simulation.Locked(lock) for lock, when in LOCKS if when <= time]
    old, new = pl.Mode(tuple(locks[:-1])), pl.Mode(tuple(locks))
    q, v = story.q[before], story.v[before]
    forms = (pl.Augmented(), pl.Projected(), pl.Voronets())
    made = [pl.transition(robot, q, v, old, new, form) for form in forms]
    for one in made:
        np.testing.assert_allclose(one.v_plus, story.v[after], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one.impulse, made[0].impulse, rtol=1e-12, atol=1e-12)
    print(f"    {name}: impulse of the lock {made[0].impulse_of(f'lock:{name}')[0]:.3f} N m s")
    return float(0.5 * (dv := story.v[after] - v) @ pl.EquationsOfMotion(robot).mass(q) @ dv)


def main(until: float = 2.0, step: float = 1e-3, plot: str | None = None) -> dict[str, History]:
    """Compare the two switches; returns both histories."""
    robot, method = pl.load(ROBOT), pl.MuntheKaas("rk4", step=step)
    stories = {kind.__name__: kind(robot, until, method) for kind in (naive, consistent)}
    print("lock              switch        jump of free momenta   energy step [J]")
    for name, time in LOCKS:
        found = {kind: jumps(story, time) for kind, story in stories.items()}
        for kind, (jump, energy) in found.items():
            print(f"{name} at {time:.1f} s  {kind:12s}{100 * jump:19.2g} %{energy:18.6f}")
        lost = check(robot, stories["consistent"], name, time)
        assert found["consistent"][0] < 1e-12 and found["naive"][0] > 1e-2
        assert abs(found["consistent"][1] + lost) < 1e-9 and lost > 0
    assert jumps(stories["naive"], LOCKS[1][1])[1] > 10
    rise = float(np.diff(stories["consistent"].energy).max())
    assert rise < 1e-8 * (step / 1e-3) ** 4
    tips = [robot.placement(story.q[-1], "tool0").translation for story in stories.values()]
    print(f"\nconsistent run: no step of RK4 gains more than {rise:.1e} J")
    print(f"at {until:g} s the tips are {np.linalg.norm(tips[0] - tips[1]):.2f} m apart")
    if plot:
        _plot(stories, plot)
    return stories


def _plot(stories: dict[str, History], path: str) -> None:
    """Angles, velocities, momenta and energy of both runs side by side."""
    with drawing(path, 11, 10) as figure:
        rows = figure.subplots(4, 2, sharex=True, sharey="row")
        titles = ("velocity set to zero", "momentum kept (paper 4, eq. 22)")
        names = ("angles [deg]", "velocities [rad/s]", "momenta, free joints [N m s]", "energy [J]")
        for column, title, story in zip(rows.T, titles, stories.values(), strict=True):
            values = np.degrees(story.q), story.v, story.momentum, story.energy[:, None]
            for axes, label, lines in zip(column, names, values, strict=True):
                colors = ("#c44e00", "#1f5fb4", "#2a8a4a") if len(lines.T) > 1 else ("0.15",)
                for k, (line, color) in enumerate(zip(lines.T, colors, strict=True)):
                    axes.plot(story.t, line, label=f"joint {k + 1}", color=color)
                axes.set_ylabel(label if title is titles[0] else "")
                for _, time in LOCKS:
                    axes.axvline(time, color="0.5", ls="--", lw=1)
            top = column[0].get_xaxis_transform()
            column[0].set_title(title, pad=22, weight="bold")
            column[-1].set(xlabel="time [s]", ylim=(-430, 50))
            for name, time in LOCKS:
                column[0].text(time, 1.03, f"{name} locks", ha="center", transform=top)
                level = story.energy[np.flatnonzero(story.t == time)[1]]
                column[-1].text(time, level - 10, f"  {jumps(story, time)[1]:+.1f} J", va="top")
        rows[0, 1].legend(loc="upper left")


if __name__ == "__main__":
    start_program(main, __doc__, motion=lambda: locked_run(pl.load(ROBOT), 2.0, pl.MuntheKaas()))
