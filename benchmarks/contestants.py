"""Who takes part in whole simulations: every contestant at every setting, as something to call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

from .measure import installed
from .robots import Motion
from .scene import Poses, Scene, poses
from .with_exudyn import Exudyn
from .with_mujoco import MuJoCo
from .with_scipy import Pinocchio, poses_of

Array = NDArray[np.float64]

TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
STEPS = (5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
BAUMGARTE = 20.0
"""Rate of the gains in the SciPy baseline [1/s]."""


@dataclass(frozen=True, eq=False)
class Contestant:
    """A simulator with a method, at one setting.

    Args:
        package: "pinloop", "MuJoCo", "Exudyn" or "SciPy + Pinocchio".
        method: the method.
        setting: tolerance, or step [s].
        prepare: what is done before the time counts.
        run: from the start to the end; this is timed.
        poses: where all parts are after a run.
    """

    package: str
    method: str
    setting: float
    prepare: Callable[[], None]
    run: Callable[[], None]
    poses: Callable[[], Poses]

    @property
    def series(self) -> str:
        """Package and method."""
        return f"{self.package}, {self.method}"


@dataclass(frozen=True, eq=False)
class Problem:
    """A motion, its start and its scene."""

    motion: Motion
    robot: pl.Mechanism
    q: Array
    v: Array
    scene: Scene


def missing() -> list[str]:
    """Peers that are not installed."""
    return [name for name in ("mujoco", "exudyn") if not installed(name)]


def all_series(problem: Problem) -> Iterator[Iterator[Contestant]]:
    """Series of contestants, each from coarse to fine."""
    for method in ("dopri5", "dop853"):
        yield (_pinloop(problem, method, tolerance=one) for one in TOLERANCES)
    yield (_pinloop(problem, "rk4", step=one) for one in STEPS)
    baseline = _tuned(problem)
    finer = (*TOLERANCES, 1e-11, 1e-12)
    yield (_scipy(problem, baseline, "RK45", one) for one in finer)
    yield (_scipy(problem, baseline, "DOP853", one) for one in finer)
    if installed("mujoco"):
        # One step as time constant is the stiffest that RK4 bears, two for the Euler method.
        for integrator, constant in (("EULER", 2.0), ("RK4", 2.0), ("RK4", 1.0)):
            if constant < 2.0 and not problem.scene.ties:
                continue  # nothing is stiff
            yield (_mujoco(problem, integrator, constant, one) for one in STEPS)
    if installed("exudyn"):
        for solver in ("GeneralizedAlpha", "TrapezoidalIndex2"):
            yield (_exudyn(problem, solver, one) for one in STEPS)


def _nothing() -> None:
    return


def _pinloop(
    problem: Problem, method: str, *, tolerance: float = 0.0, step: float | None = None
) -> Contestant:
    chosen = pl.MuntheKaas(method, step=step, rtol=tolerance, atol=tolerance or 1e-8)
    done: list[Array] = []

    def run() -> None:
        found = pl.simulate(
            problem.robot, problem.q, problem.v, until=problem.motion.until, method=chosen,
            losses=False,
        )  # fmt: skip
        done[:] = [found.q[-1]]

    return Contestant(
        "pinloop", method, step or tolerance, _nothing, run, lambda: poses(problem.robot, done[0])
    )


def _tuned(problem: Problem) -> Pinocchio:
    """The baseline with the proximal settings that give the right accelerations."""
    peer = Pinocchio(problem.robot.model, problem.scene, problem.robot.length, BAUMGARTE)
    equations = pl.EquationsOfMotion(problem.robot)
    halfway = pl.simulate(
        problem.robot, problem.q, problem.v, until=0.5 * problem.motion.until, losses=False
    )
    states = [(problem.q, problem.v), (halfway.q[-1], halfway.v[-1])]
    wanted = [equations.acceleration(0.0, *state) for state in states]
    peer.tune(states, wanted, accurate=True)
    return peer


def _scipy(
    problem: Problem, peer: Pinocchio, method: Literal["RK45", "DOP853"], tolerance: float
) -> Contestant:
    done: list[Array] = []

    def run() -> None:
        done[:] = [peer.run(problem.motion.until, method, tolerance)]

    return Contestant(
        "SciPy + Pinocchio", method, tolerance, _nothing, run, lambda: poses_of(peer.model, done[0])
    )


def _mujoco(problem: Problem, integrator: str, constant: float, step: float) -> Contestant:
    peer = MuJoCo(problem.scene, problem.robot.length)
    names = {"EULER": "Euler", "RK4": "RK4"}
    method = f"{names[integrator]}, {constant:g} step{'s' if constant > 1 else ''}"
    return Contestant(
        "MuJoCo",
        method,
        step,
        partial(peer.prepare, integrator, step, constant),
        partial(peer.run, round(problem.motion.until / step)),
        peer.poses,
    )


def _exudyn(problem: Problem, solver: str, step: float) -> Contestant:
    peer = Exudyn(problem.scene)
    names = {"GeneralizedAlpha": "generalized-alpha", "TrapezoidalIndex2": "trapezoidal, index 2"}
    return Contestant(
        "Exudyn",
        names[solver],
        step,
        partial(peer.prepare, solver, step, problem.motion.until),
        peer.run,
        peer.poses,
    )
