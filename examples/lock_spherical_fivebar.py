"""Spherical five-bar palm of a metamorphic hand: driven joints lock, the loop stays closed.

Paper 4 names this application in its conclusion, without numbers: all dimensions and masses here
are estimates. Five hinges whose axes meet in one point; the first lock of a driven one leaves a
spherical four-bar, the second a rigid body.

The loop hinge has five constraint equations, three of them redundant. Asserted, with all and with
the reduced ones: the loop stays closed; F' M dv = 0 where J F = 0; velocities and impulses of the
locks are the same; impulses of redundant equations are flagged as not determined; locked angles
stay equal to the last bit; at the end the locks hold what gravity asks, by virtual work.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl
from common.pictures import drawing
from common.program import start_program

Array = NDArray[np.float64]

RADIUS, FINGER = 0.045, 0.08  # of the arcs; length of the finger on each [m]
TURN = np.radians(234.0 - 72.0 * np.arange(5))
TILT = np.radians([44.0, 38.0, 46.0, 40.0, 42.0])
PARTS = np.array([np.sin(TILT) * np.cos(TURN), np.sin(TILT) * np.sin(TURN), np.cos(TILT)])
AXES = dict(zip("abcde", PARTS.T, strict=True))
LOCKS, UNTIL = (("a", 0.06), ("e", 0.12)), 0.16


def shape(name: str) -> tuple[Array, Array]:
    """Points on the arc between two axes, and on the finger in its middle [m]."""
    share = np.linspace(0, 1, 25)[:, None]
    arc = (1 - share) * AXES[name[0]] + share * AXES[name[1]]
    arc *= RADIUS / np.linalg.norm(arc, axis=1, keepdims=True)
    return arc, arc[12] + share * np.array([0, 0, FINGER])


def link(name: str) -> dict[str, Any]:
    """Screw table entry of an arc of 25 g with a finger of 40 g."""
    points, masses = np.vstack(shape(name)), np.repeat([0.025 / 25, 0.04 / 25], 25)
    com = masses @ points / masses.sum()
    r = points - com
    inertia = np.eye(3) * (masses @ (r**2).sum(axis=1)) - (r.T * masses) @ r
    return {"name": name, "mass": masses.sum(), "com": com, "inertia": inertia}


def palm() -> pl.Mechanism:
    """The palm as a screw table; hinge c closes the loop."""
    bodies = {"a": ("ground", "ab"), "b": ("ab", "bc"), "e": ("ground", "de"), "d": ("de", "cd")}
    joints: list[dict[str, Any]] = [
        {"name": name, "pair": "revolute", "parent": one, "child": two, "cut": name == "c"}
        | {"axis": AXES[name], "point": RADIUS * AXES[name]}
        for name, (one, two) in (bodies | {"c": ("bc", "cd")}).items()
    ]
    links = [link(name) for name in ("ab", "bc", "cd", "de")]
    return pl.from_screws({"name": "palm", "bodies": links, "joints": joints})


def check(robot: pl.Mechanism, run: pl.Trajectory) -> None:
    """Check every lock, with any constraint equations of the loop."""
    full = pl.Constraints(robot, full=True)
    for k, change in enumerate(run.transitions):
        columns = [robot.coordinates(name).v.start for name, _ in LOCKS[: k + 1]]
        rows = np.vstack([full.jacobian(change.q), np.eye(robot.nv)[columns]])
        _, values, directions = np.linalg.svd(rows)
        F = directions[int((values > 1e-9).sum()) :].T
        jump = change.momentum_after - change.momentum_before
        assert F.shape[1] == 1 - k and np.all(np.abs(F.T @ jump) < 1e-12 * np.abs(jump).max())
        assert np.abs(rows @ change.v_plus).max() < 1e-12 and change.energy_loss > 0
        held = run.q[run.t > LOCKS[k][1], columns[-1]]
        assert np.all(held == change.q[columns[-1]])
    assert run.closure().max() < 1e-10


def main(plot: str | None = None) -> pl.Trajectory:
    """Run with reduced equations and with all of them; returns the second run."""
    robot = palm()
    q, smaller = robot.neutral, pl.regularize(robot)
    v = pl.consistent_velocity(robot, q, {"a": 4.0, "e": -2.0})
    events = [pl.lock(name, at=time) for name, time in LOCKS]
    for rows in (smaller, robot):
        run = pl.simulate(
            rows, q, v, until=UNTIL, events=events, regularization=False, save_every=2e-3
        )
        check(robot, run)
        for change in run.transitions:
            loop = np.array([label.startswith("c") for label in change.labels])
            assert np.all(change.determined == (~loop | (rows is smaller)))
            same = pl.transition(smaller, change.q, change.v_minus, change.before, change.after)
            push = change.impulse_of("lock")
            np.testing.assert_allclose(same.v_plus, change.v_plus, rtol=0, atol=1e-10)
            np.testing.assert_allclose(same.impulse_of("lock"), push, rtol=0, atol=1e-12)
            print(f"{change.events[0]}: {1e3 * change.energy_loss:.3f} mJ lost, ", end="")
            print(f"impulses of locks {np.array2string(1e3 * push, precision=3)} mN m s, ", end="")
            print(
                f"{loop.sum()} equations of the loop, {np.sum(~change.determined)} not determined"
            )
    weight = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), run.q[-1])
    for name, _ in LOCKS:
        others = {other: float(other == name) for other, _ in LOCKS}
        torque = weight @ pl.consistent_velocity(robot, run.q[-1], others)
        held: Any = run.reactions(f"lock:{name}")
        print(f"lock {name} holds {1e3 * torque:.3f} mN m against gravity")
        np.testing.assert_allclose(held.effort[-1], torque, rtol=0, atol=1e-9)
    if plot:
        _plot(robot, run, plot)
    return run


def _plot(robot: pl.Mechanism, run: pl.Trajectory, path: str) -> None:
    """The palm at the start and locked; rates, energy and torques of the locks over time."""
    solid = import_module("mpl_toolkits.mplot3d.art3d").Poly3DCollection
    with drawing(path, 12, 6.2) as figure:
        left, right = figure.subfigures(1, 2)
        ball, panels = left.add_subplot(projection="3d"), right.subplots(3, 1, sharex=True)
        for index, color, title in ((0, "0.6", "at the start"), (-1, "#c44e00", "locked")):
            for name in ("ab", "bc", "cd", "de"):
                turn = robot.placement(run.q[index], name).rotation
                arc, finger = (line @ turn.T for line in shape(name))
                ball.add_collection3d(
                    solid([np.vstack([arc, np.zeros(3)])], color=color, alpha=0.2)
                )
                ball.plot(*arc.T, color=color, lw=5, label=title if name == "ab" else None)
                ball.plot(*finger.T, color=color, lw=2)
        ball.plot(*shape("ea")[0].T, color="0.1", lw=5, label="ground, hinges a and e")
        ball.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
        ball.view_init(25, -60)
        ball.legend()
        energy = run.energy()
        panels[0].plot(run.t, run.v, label=[f"hinge {name}" for name in robot.joints])
        panels[1].plot(run.t, 1e3 * (energy.total - energy.total[0]), label="total")
        panels[1].plot(run.t, 1e3 * energy.kinetic, label="kinetic")
        for name, time in LOCKS:
            held: Any = run.reactions(f"lock:{name}")
            torque = np.where(run.t < time, np.nan, 1e3 * held.effort[:, 0])
            panels[2].plot(run.t, torque, label=f"lock {name}")
        for axes, label in zip(
            panels, ("rates [rad/s]", "energy [mJ]", "torques [mN m]"), strict=True
        ):
            axes.set_ylabel(label)
            for _, time in LOCKS:
                axes.axvline(time, color="0.5", ls="--", lw=1)
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        panels[2].set_xlabel("time [s]")


if __name__ == "__main__":
    start_program(main, __doc__, motion=main)
