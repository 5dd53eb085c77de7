"""Whole simulations as work against precision: error of the end state over the time it took.

The reference is a run of ours at a tolerance of 1e-12; how far an independent formulation ends
from it is part of the result. Before any time counts, MuJoCo's mass matrix, bias forces and rows
are compared with ours, and the motions of Exudyn and Drake over a tiny time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

import pinloop as pl

from .comparison import TARGET
from .contestants import Contestant, Problem, all_series
from .measure import Sample, installed, interleaved
from .robots import MOTIONS
from .scene import Poses, apart, poses, scene
from .with_drake import Drake
from .with_exudyn import in_exudyn
from .with_mujoco import MuJoCo

TURN = 5e-3
"""CPU time of a turn, at least that of one run [s]."""
SHORT = 1e-6
"""Part of a run that one step is enough for."""
FINE_ENOUGH = 1e-11
"""A series ends at an error below this: the reference is not better."""


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Args:
        rounds: turns of every contestant.
        longest: a series ends at a run that takes longer [s].
        points: largest number of settings of a series.
    """

    rounds: int = 5
    longest: float = 1.0
    points: int = 99


@dataclass
class _Point:
    """A contestant with its error and times."""

    contestant: Contestant
    error: float
    times: list[float] = field(default_factory=list)
    failed: str = ""


def precision(names: list[str], effort: Effort) -> list[dict[str, Any]]:
    """One entry per motion: the reference, the checks of the models, and every point."""
    return [_one(name, effort) for name in names]


def _one(name: str, effort: Effort) -> dict[str, Any]:
    problem = problem_of(name)
    motion, robot = problem.motion, problem.robot
    end, confirmed, how = _reference(problem)
    points = list(_explored(problem, end, effort))
    for turn in range(effort.rounds - 1):
        for point in points:
            # Long runs need fewer turns: they average over the machine by themselves.
            if not point.failed and (turn < 2 or sum(point.times) < effort.longest):
                _timed(point)
    return {
        "case": name,
        "title": motion.title,
        "until": motion.until,
        "length": robot.length,
        "confirmed": confirmed,
        "confirmed_by": how,
        "models": same_models(problem),
        "points": [_entry(point) for point in points],
        "parts": _parts(problem, points, effort.rounds),
    }


def _parts(problem: Problem, points: list[_Point], rounds: int) -> dict[str, Any]:
    """What a run of ours takes at the coarsest tolerance at the target, and one step of it."""
    settings = [p.contestant.setting for p in points if p.contestant.method == "dop853"
                and p.error <= TARGET]  # fmt: skip
    tolerance = max(settings, default=1e-8)
    call = partial(
        pl.simulate, problem.robot, problem.q, problem.v, losses=False,
        forces=problem.motion.loads.forces,
        method=pl.MuntheKaas("dop853", rtol=tolerance, atol=tolerance),
    )  # fmt: skip
    spans = {"whole": problem.motion.until, "step": SHORT * problem.motion.until}
    calls = {name: partial(call, until=until) for name, until in spans.items()}
    times = interleaved(calls, 5 * rounds, TURN, longest=np.inf)
    whole, step = calls["whole"](), calls["step"]()
    return {
        "tolerance": tolerance,
        "engine": whole.engine,
        "steps": len(whole.psi),
        "evaluations": whole.evaluations - step.evaluations,
        "whole": asdict(times["whole"]),
        "step": asdict(times["step"]),
    }


def problem_of(name: str) -> Problem:
    """A motion and its scene."""
    motion = MOTIONS[name]
    robot, q, v = motion.start()
    path = pl.simulate(
        robot, q, v, until=motion.until, losses=False, forces=motion.loads.forces,
        save_every=motion.until / 30,
    )  # fmt: skip
    return Problem(motion, robot, q, v, scene(robot, q, v, list(path.q), motion.loads))


def _entry(point: _Point) -> dict[str, Any]:
    one = point.contestant
    return {
        "package": one.package,
        "method": one.method,
        "setting": one.setting if np.isfinite(one.setting) else None,
        "error": point.error if np.isfinite(point.error) else None,
        "failed": point.failed,
        "time": asdict(Sample.of(point.times)) if point.times else None,
    }


def _explored(problem: Problem, end: Poses, effort: Effort) -> Iterator[_Point]:
    """All points of all series, each run once."""
    for series in all_series(problem):
        for count, contestant in enumerate(series):
            point, begin = _Point(contestant, np.inf), time.process_time()
            try:
                _timed(point)
                point.error = apart(contestant.poses(), end, problem.robot.length)
            except (pl.PinloopError, RuntimeError, ValueError) as error:
                point.failed = str(error).splitlines()[0] or type(error).__name__
            yield point
            spent = time.process_time() - begin
            if spent > effort.longest or point.error < FINE_ENOUGH or count + 1 >= effort.points:
                break


def _timed(point: _Point) -> None:
    """One more turn, of as many runs as fill it."""
    spent = 0.0
    while spent < TURN:
        point.contestant.prepare()
        begin = time.process_time()
        point.contestant.run()
        point.times.append(time.process_time() - begin)
        spent += point.times[-1]


def _reference(problem: Problem) -> tuple[Poses, float, str]:
    """End of our run at 1e-12, and how far other equations of motion end from it."""
    tight = pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12)
    robot, until, forces = problem.robot, problem.motion.until, problem.motion.loads.forces
    run = pl.simulate(
        robot, problem.q, problem.v, until=until, method=tight, losses=False, forces=forces
    )
    end = poses(robot, run.q[-1])
    if robot.loops:
        how = "the equations of Voronets, with all rows and another projection"
        other = pl.simulate(
            problem.motion.robot(), problem.q, problem.v, until=until, method=tight, losses=False,
            forces=forces, formulation=pl.Voronets(), regularization=False,
            stabilization=pl.Projection(coordinates="mass"),
        )  # fmt: skip
        return end, apart(poses(robot, other.q[-1]), end, robot.length), how
    how = "absolute coordinates, the pivot as a loop joint"
    free = robot.absolute("SE3")
    # A free body has the velocity of its centre of mass.
    levers = [np.cross(part.twist.angular, part.inertia.lever) for part in problem.scene.parts]
    twists = [
        np.concatenate([part.twist.linear + lever, part.twist.angular])
        for part, lever in zip(problem.scene.parts, levers, strict=True)
    ]
    start = np.concatenate(twists)
    other = pl.simulate(free, free.neutral, start, until=until, method=tight, losses=False)
    off = apart(_bodies(free, other.q[-1]), _bodies(robot, run.q[-1]), robot.length)
    return end, off, how


def _bodies(robot: pl.Mechanism, q: Any) -> Poses:
    """Where all bodies are, whatever the coordinates."""
    placed = [robot.placement(q, name) for name in robot.bodies]
    return np.array([one.translation for one in placed]), np.array([one.rotation for one in placed])


# -- are these the same robots? -------------------------------------------------------------


def same_models(problem: Problem) -> dict[str, float]:
    """How far the peers' models are from ours at the start; relative."""
    found: dict[str, float] = {}
    if installed("mujoco"):
        mass, bias, rows = mujoco_differences(problem)
        found |= {"MuJoCo mass": mass, "MuJoCo bias": bias, "MuJoCo rows": rows}
    if installed("exudyn"):
        found["Exudyn acceleration"] = exudyn_difference(problem)
    if installed("drake"):
        found["Drake acceleration"] = drake_difference(problem)
    return found


def mujoco_differences(problem: Problem) -> tuple[float, float, float]:
    """Relative differences of mass matrix and bias forces, and of the space of the rows."""
    M, bias, rows = MuJoCo(problem.scene, problem.robot.length).start_terms()
    equations = pl.EquationsOfMotion(problem.robot)
    own_M, f, J, _, _ = equations.system(0.0, problem.q, problem.v)
    turn, drift = _into_mujoco(problem)
    own_M, J, f = turn @ own_M @ turn.T, J @ turn.T, turn @ (f + own_M @ drift)
    apart_rows = 0.0
    if len(J):
        apart_rows = float(np.abs(_projector(rows) - _projector(J)).max())
    return (
        float(np.abs(M - own_M).max() / np.abs(own_M).max()),
        float(np.abs(bias + f).max() / max(float(np.abs(f).max()), 1e-9)),
        apart_rows,
    )


def _into_mujoco(problem: Problem) -> tuple[Any, Any]:
    """Velocities of MuJoCo from ours: free bodies have their linear ones in the world.

    ``v' = R v`` and ``a' = R (a + w x v)``; returns ``R`` and ``w x v`` of all coordinates.
    """
    nv, at = problem.robot.nv, 0
    turn, drift = np.eye(nv), np.zeros(nv)
    for part in problem.scene.parts:
        kind = part.motions[0][0]
        if kind == "free":
            turn[at : at + 3, at : at + 3] = part.pose.rotation
            drift[at : at + 3] = np.cross(part.twist.angular, part.twist.linear)
        at += {"free": 6, "ball": 3}.get(kind, len(part.motions))
    return turn, drift


def _projector(J: Any) -> Any:
    """Projector on the row space."""
    _, sizes, V = np.linalg.svd(J)
    rank = int(np.sum(sizes > 1e-9 * sizes[0]))
    return V[:rank].T @ V[:rank]


def exudyn_difference(problem: Problem) -> float:
    """Relative difference of the accelerations of all centres of mass at the start."""
    peer, found = in_exudyn(problem.scene), []
    short = 1e-6 * min(1.0, problem.motion.until)
    for tiny in (2 * short, short):
        peer.prepare("TrapezoidalIndex2", tiny, tiny)
        peer.run()
        found.append(peer.accelerations())
    start = 2 * found[1] - found[0]  # back to the start along a straight line
    own = _centres(problem)
    return float(np.abs(start - own).max() / np.abs(own).max())


def drake_difference(problem: Problem) -> float:
    """Relative difference of the accelerations of all centres of mass over a tiny step.

    Constraints of Drake's discrete solver are softer the shorter its steps are.
    """
    peer, tiny = Drake(problem.scene, problem.robot.length), 1e-6
    peer.prepare(tiny)
    before = peer.velocities()
    peer.run(tiny)
    own = _centres(problem)
    return float(np.abs((peer.velocities() - before) / tiny - own).max() / np.abs(own).max())


def _centres(problem: Problem) -> Any:
    """Accelerations of the centres of mass in the world at the start, shape (n, 3)."""
    equations = pl.EquationsOfMotion(problem.robot, forces=problem.motion.loads.forces)
    a = equations.acceleration(0.0, problem.q, problem.v)
    model = problem.robot.model
    data = model.createData()
    pin.forwardKinematics(model, data, problem.q, problem.v, a)
    found = []
    for k in range(1, model.njoints):
        spin, lever = data.v[k].angular, model.inertias[k].lever
        own = data.a[k].linear + np.cross(spin, data.v[k].linear)
        own = own + np.cross(data.a[k].angular, lever) + np.cross(spin, np.cross(spin, lever))
        found.append(data.oMi[k].rotation @ own)
    return np.array(found)
