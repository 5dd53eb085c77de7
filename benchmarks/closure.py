"""How exact closed loops are, in pinloop and in its peers: gaps, energy and time of long runs.

Run with ``python -m benchmarks.closure`` from the root of the repository; packages that are not
installed are skipped. ``--write`` puts the tables into ``docs/closed_loops.md``, which says what is
measured and what the peers do; it needs all of them.

Nothing acts but gravity, and nothing takes energy. Every peer runs with its own settings, and with
all methods and steps of `SWEPT`, of which the one counts that keeps the energy best among those
that take no longer than the motion itself: that is the harder test, and gaps go along with it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl

from .contestants import Problem
from .measure import installed
from .robots import MOTIONS, Motion, hinge
from .scene import Poses, Scene, poses, scene
from .with_drake import Drake
from .with_exudyn import in_exudyn
from .with_mujoco import MuJoCo

Array = NDArray[np.float64]

SAMPLES = 100
"""Instants at which a run is looked at."""
SWEPT = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5)
"""Steps [s]."""
LONG = 600.0
"""The longest run [s]."""
PAGE = Path(__file__).parents[1] / "docs" / "closed_loops.md"


def leg() -> pl.Mechanism:
    """A leg of Theo Jansen's Strandbeest: seven bars of 1 kg/m, three loops, one crank.

    Lengths are the eleven numbers that he published, in cm. The bars lie on parallel planes.
    """
    a, b, c, d, e, f, g, h, i, j, k, above, m = 0.01 * np.array(
        [38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0]
    )
    O, P, M = np.zeros(2), np.array([-a, -above]), np.array([m, 0.0])  # noqa: E741
    U, W = _corner(P, b, M, j), _corner(M, k, P, c)
    V = _corner(P, d, U, e)
    X = _corner(W, g, V, f)
    foot = _corner(W, i, X, h)
    bars = {"crank": (O, M), "j": (M, U), "upper": (P, U, V), "c": (P, W), "k": (M, W)}
    bars |= {"f": (V, X), "lower": (W, X, foot)}
    joints = [
        hinge("O", "ground", "crank", O), hinge("M", "crank", "j", M), hinge("U", "j", "upper", U),
        hinge("P", "ground", "upper", P), hinge("N", "crank", "k", M), hinge("W", "k", "c", W),
        hinge("Q", "ground", "c", P), hinge("V", "upper", "f", V), hinge("X", "f", "lower", X),
        hinge("Y", "c", "lower", W),
    ]  # fmt: skip
    bodies = [_bar(name, *points) for name, points in bars.items()]
    table = {"name": "leg", "gravity": [0, -9.81, 0], "bodies": bodies, "joints": joints}
    return pl.from_screws(table)


def _corner(one: Array, from_one: float, other: Array, from_other: float) -> Array:
    """The point left of the way from one point to another, at given distances from them."""
    way = other - one
    length = float(np.linalg.norm(way))
    along = (length**2 + from_one**2 - from_other**2) / (2 * length)
    across = np.sqrt(from_one**2 - along**2)
    return np.asarray(one + (along * way + across * np.array([-way[1], way[0]])) / length)


def _bar(name: str, *points: Array) -> dict[str, Any]:
    """Slender bars between points, each to the next, and of three the last to the first."""
    ends = [(points[k], points[k - 1]) for k in range(0 if len(points) > 2 else 1, len(points))]
    masses = np.array([float(np.linalg.norm(p - q)) for p, q in ends])
    middles = np.array([(p + q) / 2 for p, q in ends])
    centre = masses @ middles / masses.sum()
    about = masses**3 / 12 + masses * np.sum((middles - centre) ** 2, axis=1)
    inertia = float(about.sum()) * np.eye(3)
    return {"name": name, "mass": masses.sum(), "com": [*centre, 0.0], "inertia": inertia}


CASES = {
    "four-bar": replace(MOTIONS["fourbar"], until=5.0),
    "leg of a Strandbeest": Motion("leg of a Strandbeest", leg, (("O", (6.0,)),), 5.0),
    "Bricard": replace(MOTIONS["bricard"], until=5.0),
    "Stewart platform": replace(MOTIONS["stewart"], until=2.0),
}


@dataclass(frozen=True)
class Setting:
    """How a simulator runs: a method with a step [s] or tolerance, or without one as it comes."""

    package: str
    method: str
    step: float | None = None

    @property
    def words(self) -> str:
        """The setting for a table."""
        if self.step is None:
            return self.method
        size = f"{self.step:g}" if self.package == "pinloop" else f"{1e3 * self.step:g} ms"
        return f"{self.method.replace(' 1', ', hardest')}, {size}"


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Args:
        setting: how it ran.
        gap: largest gap of a loop joint [m].
        energy: largest error of the energy, relative to the largest kinetic energy.
        cost: CPU time per second of motion.
        failed: why it did not come to its end.
    """

    setting: Setting
    gap: float = np.inf
    energy: float = np.inf
    cost: float = np.inf
    failed: str = ""


Look = Callable[[Poses, float], None]
"""Takes places of all parts, and the energy [J]."""


class Watch:
    """Largest gap, and energies, of a run of a scene."""

    def __init__(self, of: Scene, length: float) -> None:
        self._scene, self._length = of, length
        self.gap = 0.0
        self.energies: list[float] = []

    def __call__(self, places: Poses, energy: float) -> None:
        """Look at one instant."""
        self.energies.append(energy)
        at, turns = places

        def point(part: int, frame: pin.SE3, offset: float) -> Array:
            local = frame.act(np.array([0.0, 0.0, offset]))
            return local if part < 0 else np.asarray(at[part] + turns[part] @ local)

        for tie in self._scene.ties:
            for offset in tie.points(self._length):
                ends = point(tie.a, tie.frame_a, offset), point(tie.b, tie.frame_b, offset)
                gap = float(np.linalg.norm(ends[0] - ends[1]))
                self.gap = max(self.gap, gap) if np.isfinite(gap) else np.inf


def run_pinloop(problem: Problem, setting: Setting, look: Look) -> float:
    """As it is called by default, or by a method with a tolerance as its step."""
    robot, until = problem.robot, problem.motion.until
    options: dict[str, Any] = {"losses": False, "until": until, "save_every": until / SAMPLES}
    if setting.step is not None:
        options["method"] = pl.MuntheKaas("dop853", rtol=setting.step, atol=setting.step)
    begin = time.process_time()
    run = pl.simulate(robot, problem.q, problem.v, **options)
    spent = time.process_time() - begin
    model, data = robot.model, robot.model.createData()
    for q, v in zip(run.q, run.v, strict=True):
        look(poses(robot, q), pin.computeMechanicalEnergy(model, data, q, v))
    return spent


def run_mujoco(problem: Problem, setting: Setting, look: Look) -> float:
    """With its own softness, or as hard as it goes."""
    module = import_module("mujoco")
    peer = MuJoCo(problem.scene, problem.robot.length)
    peer.reset()
    if setting.step is not None:
        integrator, _, constant = setting.method.partition(" ")
        peer.prepare(integrator.upper(), setting.step, float(constant or 2.0), 1e-12)
    peer.model.opt.enableflags |= module.mjtEnableBit.mjENBL_ENERGY
    other, spent = module.MjData(peer.model), 0.0
    for k in range(SAMPLES + 1):
        other.qpos[:], other.qvel[:] = peer.data.qpos, peer.data.qvel
        module.mj_forward(peer.model, other)
        look((np.array(other.xpos[1:]), np.array(other.xmat[1:]).reshape(-1, 3, 3)),
             float(sum(other.energy)))  # fmt: skip
        if k < SAMPLES:
            begin = time.process_time()
            peer.run(problem.motion.until / SAMPLES)
            spent += time.process_time() - begin
    return spent


def run_drake(problem: Problem, setting: Setting, look: Look) -> float:
    """Its discrete solver."""
    peer = Drake(problem.scene, problem.robot.length)
    peer.prepare(setting.step)
    spent = 0.0
    for k in range(SAMPLES + 1):
        look(peer.poses(), peer.energy())
        if k < SAMPLES:
            begin = time.process_time()
            peer.run((k + 1) * problem.motion.until / SAMPLES)
            spent += time.process_time() - begin
    return spent


def run_exudyn(problem: Problem, setting: Setting, look: Look) -> float:
    """Its implicit integrators; it is looked at between steps."""
    peer, until = in_exudyn(problem.scene), problem.motion.until
    peer.prepare(setting.method.split()[0], setting.step, until)
    instants, looking = list(np.linspace(0.0, until, SAMPLES, endpoint=False)), 0.0

    def watch(_: Any, t: float) -> bool:
        nonlocal looking
        if instants and t >= instants[0] - 1e-9:
            begin = time.process_time()
            instants.pop(0)
            look(peer.poses(), peer.energy())
            looking += time.process_time() - begin
        return True

    peer.system.SetPreStepUserFunction(watch)
    begin = time.process_time()
    peer.run()
    spent = time.process_time() - begin - looking
    look(peer.poses(), peer.energy())
    return spent


RUNS = {"pinloop": run_pinloop, "mujoco": run_mujoco, "drake": run_drake, "exudyn": run_exudyn}
METHODS = {
    "mujoco": ("Euler", "RK4", "RK4 1", "implicitfast"),
    "drake": ("SAP",),
    "exudyn": ("GeneralizedAlpha", "TrapezoidalIndex2"),
}
DEFAULT = "as it comes"


def measure(problem: Problem, setting: Setting) -> Outcome:
    """One run of a simulator."""
    watch = Watch(problem.scene, problem.robot.length)
    try:
        spent = RUNS[setting.package](problem, setting, watch)
    except (pl.PinloopError, RuntimeError, ValueError) as error:
        return Outcome(setting, failed=str(error).strip().splitlines()[0][:60] or "failed")
    energies = np.array(watch.energies)
    off = float(np.abs(energies - energies[0]).max()) / _moving(problem)
    if not np.isfinite(energies).all():
        return Outcome(setting, failed="not finite")
    return Outcome(setting, watch.gap, off, spent / problem.motion.until)


@cache
def _moving(problem: Problem) -> float:
    """The largest kinetic energy of the motion, or of its first seconds [J]."""
    robot, until = problem.robot, min(problem.motion.until, 5.0)
    run = pl.simulate(
        robot, problem.q, problem.v, until=until, losses=False, save_every=until / SAMPLES
    )
    model, data = robot.model, robot.model.createData()
    states = zip(run.q, run.v, strict=True)
    return float(max(pin.computeKineticEnergy(model, data, *state) for state in states))


def outcomes(problem: Problem, package: str) -> Iterator[Outcome]:
    """As it comes, and the best of all settings that keep up with time."""
    if package == "pinloop":
        yield measure(problem, Setting(package, DEFAULT))
        yield measure(problem, Setting(package, "dop853", 1e-10))
        return
    default = {"exudyn": "GeneralizedAlpha"}.get(package, DEFAULT)
    as_it_comes = measure(problem, Setting(package, default))
    yield replace(as_it_comes, setting=Setting(package, DEFAULT))
    tried = [Outcome(Setting(package, DEFAULT), failed="no setting keeps up with time")]
    for method in METHODS[package]:
        for step in SWEPT:
            outcome = measure(problem, Setting(package, method, step))
            if not outcome.failed:
                tried.append(outcome)
            if not outcome.failed and outcome.cost > 1.0:
                break  # shorter steps cost more
    yield min(tried, key=lambda one: (one.cost > 1.0, one.energy))


@cache
def problem_of(motion: Motion) -> Problem:
    """A motion and its scene."""
    robot, q, v = motion.start()
    until = min(motion.until, 5.0)
    path = pl.simulate(robot, q, v, until=until, losses=False, save_every=until / 30)
    return Problem(motion, robot, q, v, scene(robot, q, v, list(path.q)))


def table() -> str:
    """All cases and packages."""
    head = "| mechanism | simulator | setting | largest gap | energy error | CPU time per second |"
    lines = [head, "|---|---|---|---:|---:|---:|"]
    for (title, motion), package in product(CASES.items(), RUNS):
        if package != "pinloop" and not installed(package):
            continue
        for outcome in outcomes(problem_of(motion), package):
            setting, release = (
                outcome.setting,
                pl.__version__ if package == "pinloop" else version(package),
            )
            numbers = outcome.failed + " | | "
            if not outcome.failed:
                numbers = f"{outcome.gap:.1e} m | {outcome.energy:.1e} | {outcome.cost:.2g} s"
            row = f"| {title} | {package} {release} | {setting.words} | {numbers} |"
            lines.append(row)
            print(row, flush=True)
    return "\n".join(lines)


def long_table() -> str:
    """Ten minutes of each mechanism in pinloop."""
    lines = [
        "| mechanism | time | largest gap | energy error | CPU time |",
        "|---|---:|---:|---:|---:|",
    ]
    for title in ("four-bar", "leg of a Strandbeest", "Bricard"):
        motion = replace(CASES[title], until=LONG)
        outcome = measure(problem_of(motion), Setting("pinloop", DEFAULT))
        numbers = f"{outcome.gap:.1e} m | {outcome.energy:.1e} | {LONG * outcome.cost:.1f} s"
        lines.append(f"| {title} | {LONG:g} s | {outcome.failed or numbers} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print the tables; write them into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put them into docs/{PAGE.name}")
    write = parser.parse_args().write
    missing = [name for name in METHODS if not installed(name)]
    tables = {"all": table(), "long": long_table()}
    if missing:
        print(f"not installed: {', '.join(missing)}")
    if write and not missing:
        text = PAGE.read_text(encoding="utf-8")
        for name, content in tables.items():
            begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
