"""Six-axis arm: joints 1, 2 and 3 lock one after another, and the tool ends somewhere else.

Paper 4, section 7, figures 6 to 8. All joints move at half their rated speed; the drives are
switched off, gravity and the friction of the file act, joints 1, 2 and 3 lock after 0.1, 0.2 and
0.3 s. The naive switch sets the velocity of the joint to zero and nothing else. Start, times and
robot are ours, as the paper prints none of them: `six_axis_arm.urdf` is an estimate in the size of
its robot, and so are the rotors here, which weigh 100^2 times as much at the joints.

Asserted, with rotors and without: momenta of unlocked joints jump naively and do not jump
consistently; the energy drops by 0.5 dv' M dv; locked angles stay equal to the last bit; eqs. 22,
32 and 37 agree; two locks at one instant give the same in both orders and together. The tool ends
centimetres away from where the naive run puts it, and further on in its motion.
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
JOINTS = tuple(f"joint_{k}" for k in range(1, 7))
GEAR = 100.0
ROTORS = (4e-4, 4e-4, 2.5e-4, 3e-5, 3e-5, 3e-5)
"""Estimates of rotor inertias with brake, motor side [kg m^2]."""
START = np.radians([-40.0, -10.0, -20.0, 0.0, -60.0, 0.0])
LOCKS = (("joint_1", 0.1), ("joint_2", 0.2), ("joint_3", 0.3))
UNTIL = 0.5


class Story(NamedTuple):
    """One run, all its parts in a row."""

    t: Array
    q: Array
    v: Array
    momentum: Array
    """Generalized momenta, NaN where the joint is locked [N m s]."""
    tool: Array
    """Path of the tool [m]."""


def arm(rotors: bool) -> pl.Mechanism:
    """The arm, with the inertia of its rotors or without."""
    drives = {
        name: {"reduction": GEAR, "rotor_inertia": inertia if rotors else 0.0}
        for name, inertia in zip(JOINTS, ROTORS, strict=True)
    }
    return pl.load(ROBOT, loops={"drives": drives})


def mode(count: int) -> pl.Mode:
    """The first joints locked."""
    return pl.Mode(locks=tuple(pl.Locked(name) for name, _ in LOCKS[:count]))


def simulate(robot: pl.Mechanism, v: Array) -> dict[str, list[pl.Trajectory]]:
    """Naively, from lock to lock, and consistently, in one go."""
    events = [pl.lock(name, at=time) for name, time in LOCKS]
    whole = pl.simulate(robot, START, v, until=UNTIL, events=events)
    parts: list[pl.Trajectory] = []
    q, t = START, 0.0
    for count, end in enumerate([*(time for _, time in LOCKS), UNTIL]):
        v = np.where(whole.system.locked(mode(count)), 0.0, v)
        parts.append(pl.simulate(robot, q, v, start=t, until=end, mode=mode(count)))
        q, v, t = parts[-1].q[-1], parts[-1].v[-1], end
    return {"naive": parts, "consistent": [whole]}


def story(parts: list[pl.Trajectory]) -> Story:
    """States, momenta and path of a run."""
    pieces = []
    for run in parts:
        locked = np.array([run.system.locked(run.modes[number]) for number in run.mode])
        momentum = np.where(locked, np.nan, run.momentum().generalized)
        tool = np.array([placement.translation for placement in run.placement("tool0")])
        pieces.append((run.t, run.q, run.v, momentum, tool))
    return Story(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def check(robot: pl.Mechanism, told: dict[str, Story], run: pl.Trajectory) -> None:
    """The physics of every lock."""
    kinetic = run.energy().kinetic
    for count, (change, (name, time)) in enumerate(zip(run.transitions, LOCKS, strict=True)):
        jump = {}
        for kind, one in told.items():
            before, after = np.flatnonzero(one.t == time)
            p = one.momentum
            jump[kind] = np.nanmax(np.abs(p[after] - p[before])) / np.nanmax(np.abs(p[before]))
        before, after = np.flatnonzero(run.t == time)
        dv = change.v_plus - change.v_minus
        lost = 0.5 * dv @ pl.EquationsOfMotion(robot).mass(change.q) @ dv
        print(f"  {name} at {time:.1f} s: momenta jump by {100 * jump['naive']:.2g} % and ", end="")
        print(f"{100 * jump['consistent']:.1g} %, {lost:.2f} J lost")
        assert jump["consistent"] < 1e-12 and jump["naive"] > 1e-2 and lost > 0
        assert abs(kinetic[before] - kinetic[after] - lost) < 1e-12 * kinetic[before]
        held = run.q[after:, count]
        assert np.all(held == held[0])
        for form in (pl.Augmented(), pl.Projected(), pl.Voronets()):
            state = change.q, change.v_minus
            same = pl.transition(robot, *state, mode(count), mode(count + 1), form)
            np.testing.assert_allclose(same.v_plus, change.v_plus, rtol=0, atol=1e-12)


def check_orders(robot: pl.Mechanism, q: Array, v: Array) -> None:
    """Joints 2 and 3 lock at one instant: in both orders, and together."""
    two, three = pl.Mode((pl.Locked("joint_2"),)), pl.Mode((pl.Locked("joint_3"),))
    both = pl.Mode(two.locks + three.locks)
    once = pl.transition(robot, q, v, pl.Mode(), both)
    for between in (two, three):
        first = pl.transition(robot, q, v, pl.Mode(), between)
        second = pl.transition(robot, q, first.v_plus, between, both)
        np.testing.assert_allclose(second.v_plus, once.v_plus, rtol=0, atol=1e-12)
        loss = first.energy_loss + second.energy_loss
        assert abs(loss - once.energy_loss) < 1e-12 * loss


def main(plot: str | None = None) -> dict[bool, float]:
    """Both robots, both switches; returns how far apart the tools end, with rotors and without."""
    apart, found = {}, {}
    for rotors in (True, False):
        robot = arm(rotors)
        v = 0.5 * robot.model.upperVelocityLimit
        runs = simulate(robot, v)
        told = found[rotors] = {kind: story(parts) for kind, parts in runs.items()}
        print(f"{'with' if rotors else 'without'} rotor inertia")
        check(robot, told, runs["consistent"][0])
        check_orders(robot, START, v)
        ends = [one.tool[-1] for one in told.values()]
        apart[rotors] = float(np.linalg.norm(ends[1] - ends[0]))
        more = GEAR * (told["consistent"].q[-1] - told["naive"].q[-1])
        print(f"  motors 1, 2, 3 end {np.array2string(more[:3], precision=2)} rad further")
        print(f"  the tool ends {1e3 * apart[rotors]:.0f} mm from where the naive run puts it")
        assert apart[rotors] > 0.05
    if plot:
        _plot(found, apart, plot)
    return apart


def _plot(found: dict[bool, dict[str, Story]], apart: dict[bool, float], path: str) -> None:
    """Motors with rotor inertia, and where the arm ends with and without."""
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(15, 9), layout="constrained")
    panels = figure.subplots(3, 2, sharex=True, sharey="row")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="PNG", help="draw both runs (needs matplotlib)")
    main(plot=parser.parse_args().plot)
