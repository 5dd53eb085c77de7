"""Planar 3R pendulum: two joints lock one after another, naively and with momentum kept.

Paper 4, section 6, figures 2 to 4. Three aluminium bars are released from rest, fixed-step RK4;
joint 2 locks, then joint 3. The naive switch sets the velocity of the joint to zero and leaves the
others alone; the consistent one solves eq. 22. The configuration, the cross-section and the times
of the paper are lost: here the bars start stretched and horizontal, the cross-section is the
estimate of `planar_3r.urdf`, the locks come after 0.6 s and 1.2 s, the step is 1 ms.

Asserted: momenta of unlocked joints jump naively and do not jump consistently; the consistent
energy drops by 0.5 dv' M dv and never rises, while the naive one falls 50 times as much at the
first lock and rises at the second, out of nothing; locked angles stay equal to the last bit; the
three forms of the transition agree.
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

ROBOT = Path(__file__).parents[1] / "urdf" / "planar_3r.urdf"
START = np.zeros(3)
LOCKS = (("joint_2", 0.6), ("joint_3", 1.2))
FORMS = (pl.Augmented(), pl.Projected(), pl.Voronets())


class History(NamedTuple):
    """One run, all its parts in a row."""

    t: Array
    q: Array
    v: Array
    momentum: Array
    """Generalized momenta, NaN where the joint is locked [N m s]."""
    energy: Array
    """Total energy, zero at the start [J]."""


def consistent(robot: pl.Mechanism, until: float, method: pl.MuntheKaas) -> pl.Trajectory:
    """Locks as events: momentum is kept."""
    events = [pl.lock(name, at=time) for name, time in LOCKS]
    return pl.simulate(robot, START, until=until, method=method, events=events)


def naive(robot: pl.Mechanism, until: float, method: pl.MuntheKaas) -> list[pl.Trajectory]:
    """Run to each lock, zero the velocity of its joint, start again with the joint locked."""
    q, v, t = START, np.zeros(robot.nv), 0.0
    parts: list[pl.Trajectory] = []
    ends = [*(time for _, time in LOCKS), until]
    for k, end in enumerate(ends):
        locked = tuple(name for name, _ in LOCKS[:k])
        for name in locked:
            v[robot.coordinates(name).v] = 0.0
        mode = pl.Mode(locks=locked)
        parts.append(pl.simulate(robot, q, v, start=t, until=end, method=method, mode=mode))
        q, v, t = parts[-1].q[-1], parts[-1].v[-1].copy(), end
    return parts


def history(parts: list[pl.Trajectory]) -> History:
    """Angles, momenta and energy of a run in one or more parts."""
    momenta, energies = [], []
    for run in parts:
        locked = np.array([run.system.locked(run.modes[number]) for number in run.mode])
        momenta.append(np.where(locked, np.nan, run.momentum().generalized))
        energies.append(run.energy().total)
    energy = np.concatenate(energies)
    t = np.concatenate([run.t for run in parts])
    q, v = np.vstack([run.q for run in parts]), np.vstack([run.v for run in parts])
    return History(t, q, v, np.vstack(momenta), energy - energy[0])


def jumps(story: History, name: str, time: float, robot: pl.Mechanism) -> tuple[float, float]:
    """Largest relative jump of an unlocked momentum, and jump of the energy [J], at a lock."""
    before, after = np.flatnonzero(story.t == time)
    p = story.momentum
    jump = float(np.nanmax(np.abs(p[after] - p[before])) / np.nanmax(np.abs(p[before])))
    at = robot.coordinates(name)
    assert np.all(story.q[after:, at.q] == story.q[after, at.q]), f"{name} moves although locked"
    return jump, float(story.energy[after] - story.energy[before])


def check_forms(robot: pl.Mechanism, change: pl.Transition) -> float:
    """Largest relative difference between eqs. 22, 32 and 37."""
    q, v = change.q, change.v_minus
    made = [pl.transition(robot, q, v, change.before, change.after, form) for form in FORMS]
    speed, size = np.abs(change.v_plus).max(), np.abs(change.impulse).max()
    return max(
        max(np.abs(m.v_plus - change.v_plus).max() / speed for m in made),
        max(np.abs(m.impulse - change.impulse).max() / size for m in made),
    )


def main(until: float = 2.0, step: float = 1e-3, plot: str | None = None) -> dict[str, History]:
    """Compare the two switches; returns both histories."""
    robot, method = pl.load(ROBOT), pl.MuntheKaas("rk4", step=step)
    run = consistent(robot, until, method)
    stories = {"naive": history(naive(robot, until, method)), "consistent": history([run])}
    steps: dict[str, list[float]] = {"naive": [], "consistent": []}
    print("lock                switch         jump of free momenta     jump of energy [J]")
    for (name, time), change in zip(LOCKS, run.transitions, strict=True):
        found = {kind: jumps(story, name, time, robot) for kind, story in stories.items()}
        for kind, (jump, energy) in found.items():
            steps[kind].append(energy)
            print(f"{name} at {time:.1f} s    {kind:12s}{100 * jump:20.2g} %{energy:22.6f}")
        dv = change.v_plus - change.v_minus
        expected = -0.5 * dv @ run.system.equations(pl.Mode()).mass(change.q) @ dv
        forms = check_forms(robot, change)
        impulse = change.impulse_of(f"lock:{name}")[0]
        print(f"    -0.5 dv'M dv = {expected:.6f} J, impulse of the lock {impulse:.3f} N m s, ", end="")
        print(f"largest difference of eqs. 22, 32, 37: {forms:.1e}")
        assert found["consistent"][0] < 1e-12 and found["naive"][0] > 1e-2
        assert abs(found["consistent"][1] - expected) < 1e-9 and expected < 0
        assert forms < 1e-12
    drift = float(np.diff(stories["consistent"].energy).max())
    tips = [robot.placement(story.q[-1], "tool0").translation for story in stories.values()]
    apart = float(np.linalg.norm(tips[0] - tips[1]))
    print(f"\nenergy rises at most by {drift:.1e} J in a consistent step (RK4)")
    print(f"after {until:g} s the tip is {apart:.2f} m from where the naive run puts it")
    assert drift < 1e-8 * (step / 1e-3) ** 4
    assert steps["naive"][0] < 50 * steps["consistent"][0] and steps["naive"][1] > 10
    if plot:
        _plot(stories, steps, plot)
    return stories


def _plot(stories: dict[str, History], steps: dict[str, list[float]], path: str) -> None:
    """Angles, velocities, momenta and energy of both runs side by side."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(11, 10), layout="constrained")
    rows = figure.subplots(4, 2, sharex=True, sharey="row")
    for column, (kind, story) in enumerate(stories.items()):
        values = np.degrees(story.q), story.v, story.momentum, story.energy[:, None]
        for axes, lines in zip(rows[:, column], values, strict=True):
            for k, line in enumerate(lines.T):
                color = ("#c44e00", "#1f5fb4", "#2a8a4a")[k] if len(lines.T) > 1 else "0.15"
                axes.plot(story.t, line, color=color, label=f"joint {k + 1}")
            axes.grid(alpha=0.3)
        title = {"naive": "velocity set to zero", "consistent": "momentum kept (paper 4, eq. 22)"}
        rows[0, column].set_title(title[kind], pad=22, weight="bold")
        rows[-1, column].set_xlabel("time [s]")
        for (name, time), step in zip(LOCKS, steps[kind], strict=True):
            for axes in rows[:, column]:
                axes.axvline(time, color="0.5", ls="--", lw=1)
            where = {"xycoords": ("data", "axes fraction"), "ha": "center"}
            rows[0, column].annotate(f"{name} locks", (time, 1.03), **where)
            level = {"xytext": (6, 6), "textcoords": "offset points"}
            end = story.energy[np.flatnonzero(story.t == time)[1]]
            rows[3, column].annotate(f"{step:+.1f} J", (time, end), **level)
    names = ("angles [deg]", "velocities [rad/s]", "momenta, free joints [N m s]", "energy [J]")
    for axes, label in zip(rows[:, 0], names, strict=True):
        axes.set_ylabel(label)
    rows[0, 1].legend(loc="upper left")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="PNG", help="draw both runs (needs matplotlib)")
    main(plot=parser.parse_args().plot)
