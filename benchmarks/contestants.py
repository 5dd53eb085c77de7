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
from .with_drake import Drake
from .with_exudyn import in_exudyn
from .with_mujoco import MuJoCo
from .with_scipy import Pinocchio, poses_of

Array = NDArray[np.float64]

PACKAGES = ("pinloop", "SciPy + Pinocchio", "MuJoCo", "Exudyn", "Drake")
DEFAULT = "default call"
"""Method of a contestant that is run as it comes."""
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
FINER = (*TOLERANCES, 1e-11, 1e-12)
STEPS = (5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6)
FEWEST = 10
"""Fixed steps of a run, at least."""
BAUMGARTE = (0.0, 5.0, 20.0)
"""Rates of the gains in the SciPy baseline [1/s]."""
RIGHT = 1e-8
"""Relative error of the baseline's accelerations that is good enough for whole runs."""
MUJOCO_TOLERANCE = 1e-10
"""Of MuJoCo's solver: 1e-6 to 1e-12 give the same, 0 costs ten times the iterations."""


@dataclass(frozen=True, eq=False)
class Contestant:
    """A simulator with a method, at one setting.

    Args:
        package: one of `PACKAGES`.
        method: the method; `DEFAULT` for the settings that it has by itself.
        setting: tolerance, or step [s]; NaN of a default call.
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
    return [name for name in ("mujoco", "exudyn", "drake") if not installed(name)]


def all_series(problem: Problem) -> Iterator[Iterator[Contestant]]:
    """Series of contestants, each from coarse to fine; default calls are series of one."""
    until = problem.motion.until
    steps = [step for step in STEPS if step * FEWEST <= until]
    yield iter([_pinloop(problem, None)])
    for method in ("dopri5", "dop853"):
        yield (_pinloop(problem, method, tolerance=one) for one in TOLERANCES)
    yield (_pinloop(problem, "rk4", step=one) for one in steps)
    baseline = _tuned(problem)
    yield iter([_scipy(problem, baseline, "RK45", None, 0.0)])
    rates = BAUMGARTE if problem.scene.ties else BAUMGARTE[:1]
    yield (_scipy(problem, baseline, "RK45", one, rates[-1]) for one in FINER)
    for rate in rates:
        yield (_scipy(problem, baseline, "DOP853", one, rate) for one in FINER)
    if installed("mujoco"):
        yield iter([_mujoco(problem, None)])
        # One step as time constant is the stiffest that RK4 bears, two for the Euler method.
        for integrator, constant in (("EULER", 2.0), ("RK4", 2.0), ("RK4", 1.0)):
            if constant < 2.0 and not problem.scene.ties:
                continue  # nothing is stiff
            yield (_mujoco(problem, integrator, constant, one) for one in steps)
    if installed("exudyn"):
        yield iter([_exudyn(problem, "GeneralizedAlpha", None)])
        for solver in ("GeneralizedAlpha", "TrapezoidalIndex2"):
            yield (_exudyn(problem, solver, one) for one in steps)
    if installed("drake"):
        yield iter([_drake(problem, None)])
        yield (_drake(problem, one) for one in steps)
        if not problem.scene.ties:
            yield (_drake(problem, 0.0, one) for one in TOLERANCES)


def _nothing() -> None:
    return


def _pinloop(
    problem: Problem, name: str | None, *, tolerance: float = 0.0, step: float | None = None
) -> Contestant:
    done: list[Array] = []
    call = partial(
        pl.simulate, problem.robot, problem.q, problem.v, until=problem.motion.until,
        losses=False, forces=problem.motion.loads.forces,
    )  # fmt: skip
    if name is not None:
        method = pl.MuntheKaas(name, step=step, rtol=tolerance, atol=tolerance or 1e-8)
        call = partial(call, method=method)

    def run() -> None:
        done[:] = [call().q[-1]]

    return Contestant(
        "pinloop",
        name or DEFAULT,
        (step or tolerance) if name else np.nan,
        _nothing,
        run,
        lambda: poses(problem.robot, done[0]),
    )


def _tuned(problem: Problem) -> Pinocchio:
    """The baseline with the fastest solver whose accelerations are right along the motion."""
    peer = Pinocchio(problem.robot.model, problem.scene, problem.robot.length)
    until = problem.motion.until
    forces = problem.motion.loads.forces
    equations = pl.EquationsOfMotion(problem.robot, forces=forces)
    path = pl.simulate(
        problem.robot, problem.q, problem.v, until=until, losses=False, forces=forces,
        save_every=until / 4,
    )  # fmt: skip
    states = list(zip(path.q[1:], path.v[1:], strict=True))
    peer.tune(states, [equations.acceleration(0.0, *state) for state in states], RIGHT)
    return peer


def _scipy(
    problem: Problem,
    peer: Pinocchio,
    method: Literal["RK45", "DOP853"],
    tolerance: float | None,
    rate: float,
) -> Contestant:
    done: list[Array] = []
    rtol, atol = (1e-3, 1e-6) if tolerance is None else (tolerance, tolerance)
    solver = f"{peer.setting[0]}, gains of {rate:g}/s" if problem.scene.ties else "aba"

    def run() -> None:
        done[:] = [peer.run(problem.motion.until, method, rtol, atol)]

    return Contestant(
        "SciPy + Pinocchio",
        DEFAULT if tolerance is None else f"{method}, {solver}",
        tolerance or np.nan,
        lambda: peer.pull_back(rate),
        run,
        lambda: poses_of(peer.model, done[0]),
    )


def _mujoco(
    problem: Problem, integrator: str | None, constant: float = 2.0, step: float = np.nan
) -> Contestant:
    peer = MuJoCo(problem.scene, problem.robot.length)
    name, prepare = DEFAULT, peer.reset
    if integrator is not None:
        name = "RK4" if integrator == "RK4" else "Euler"
        name += f", {constant:g} step{'s' if constant > 1 else ''}" if problem.scene.ties else ""
        prepare = partial(peer.prepare, integrator, step, constant, MUJOCO_TOLERANCE)
    return Contestant(
        "MuJoCo", name, step, prepare, partial(peer.run, problem.motion.until), peer.poses
    )


def _exudyn(problem: Problem, solver: str, step: float | None) -> Contestant:
    peer = in_exudyn(problem.scene)
    names = {"GeneralizedAlpha": "generalized-alpha", "TrapezoidalIndex2": "trapezoidal, index 2"}
    return Contestant(
        "Exudyn",
        DEFAULT if step is None else names[solver],
        step or np.nan,
        partial(peer.prepare, solver, step, problem.motion.until),
        peer.run,
        peer.poses,
    )


def _drake(problem: Problem, step: float | None, accuracy: float | None = None) -> Contestant:
    peer, name = Drake(problem.scene, problem.robot.length), "SAP"
    if step is None:
        name = DEFAULT
    elif accuracy is not None:
        name = "CENIC"
    return Contestant(
        "Drake",
        name,
        accuracy or step or np.nan,
        partial(peer.prepare, step, accuracy),
        partial(peer.run, problem.motion.until),
        peer.poses,
    )
