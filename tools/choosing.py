"""Cost and error of formulations, integrators and stabilizations, per robot: ``docs/choosing.md``.

Run with ``python -m tools.choosing --write`` from the root of the repository; without ``--write``
the tables are printed. Times are medians of CPU time on one core; ratios say more than they do.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.dynamics import Formulation

from .pages import DOCS, ROOT, print_or_write, table

__all__ = ["FORMULATIONS", "METHODS", "RELEASED", "ROBOTS", "WAYS", "accuracy", "blocks",
           "closure", "cost", "moving", "released", "system"]  # fmt: skip

Array = NDArray[np.float64]

PAGE = DOCS / "choosing.md"
ROBOTS = ("six_axis_arm", "fourbar", "fivebar", "sevenbar", "palletizer", "prrr3", "delta",
          "stewart")  # fmt: skip
FORMULATIONS: dict[str, Callable[[], Formulation | None]] = {
    "default": lambda: None,
    "Augmented": pl.Augmented,
    "Projected": pl.Projected,
    "Voronets": pl.Voronets,
    "ODCA": pl.ODCA,
}
METHODS = (
    pl.MuntheKaas("euler", step=1e-3),
    pl.MuntheKaas("heun", step=1e-3),
    pl.MuntheKaas("rk4", step=1e-3),
    pl.MuntheKaas("bs32", rtol=1e-6, atol=1e-6),
    pl.MuntheKaas("dopri5", rtol=1e-6, atol=1e-6),
    pl.MuntheKaas("dopri5"),
    pl.MuntheKaas(),
    pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-10),
)
EXACT = pl.MuntheKaas("dop853", rtol=1e-13, atol=1e-13)
RELEASED = ("six_axis_arm", "fourbar", "palletizer", "delta")
"""Released from rest in the field of gravity, without drives and friction."""
WAYS: dict[str, pl.Projection | None] = {
    "none": None,
    "optimal": pl.Projection(),
    "mass": pl.Projection(coordinates="mass"),
}
UNTIL = 0.5


@dataclass(frozen=True)
class Accuracy:
    """A run beside the exact one: error of the angles [rad, m], evaluations, time [s]."""

    error: float
    evaluations: int
    seconds: float


def load(name: str) -> pl.Mechanism:
    """A shipped robot without its redundant rows."""
    return pl.regularize(pl.load(ROOT / "urdf" / f"{name}.urdf"))


def moving(robot: pl.Mechanism) -> tuple[Array, Array]:
    """An assembled configuration beside the reference, and a velocity that the loops allow."""
    rng = np.random.default_rng(1)
    q = nearby_assembly(robot, pl.assemble(robot), rng)
    assert q is not None
    J = pl.Constraints(robot).jacobian(q)
    v = rng.normal(size=robot.nv)
    return q, v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)


def released(robot: pl.Mechanism) -> Array:
    """Where a robot is let go: beside its reference, so that it falls."""
    return moving(robot)[0]


def cost(robot: pl.Mechanism, calls: int = 200) -> tuple[list[float], float]:
    """Time of one acceleration per formulation [s], and how far they are apart, relative."""
    q, v = moving(robot)
    times, found = [], []
    for make in FORMULATIONS.values():
        equations = pl.EquationsOfMotion(robot, formulation=make())
        equations.acceleration(0.0, q, v)  # which decides how the next ones are made
        found.append(equations.acceleration(0.0, q, v))
        times.append(_time(lambda e=equations: e.acceleration(0.0, q, v), calls))  # type: ignore[misc]
    size = float(np.abs(found[0]).max())
    return times, max(float(np.abs(a - found[0]).max()) for a in found) / size


def accuracy(robot: pl.Mechanism, method: pl.MuntheKaas, exact: Array) -> Accuracy:
    """Run a method; the second run is timed."""
    q = released(robot)
    pl.simulate(robot, q, until=UNTIL / 50, method=method, losses=False)
    begin = time.process_time()
    run = pl.simulate(robot, q, until=UNTIL, method=method, losses=False)
    seconds = time.process_time() - begin
    error = float(np.abs(robot.difference(exact, run.q[-1])).max())
    return Accuracy(error, run.evaluations, seconds)


def closure(robot: pl.Mechanism, way: pl.Projection | None, until: float) -> tuple[float, ...]:
    """Largest closure residual, error of the energy over the largest kinetic one, time [s], end.

    Without a projection a run may fail where bars come to lie in line: it is taken as far as it
    gets.
    """
    method = pl.MuntheKaas("rk4", step=2e-3)
    begin = time.process_time()
    try:
        run = pl.simulate(
            robot, released(robot), until=until, method=method, stabilization=way, losses=False
        )
    except pl.SimulationFailed as failure:
        if way is not None or failure.trajectory is None:
            raise
        run = failure.trajectory
    seconds = time.process_time() - begin
    energy = run.energy()
    lost = np.abs(energy.error).max() / energy.kinetic.max()
    return float(run.closure().max()), float(lost), seconds, float(run.t[-1])


def system() -> str:
    """What was measured on, in words."""
    name = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    versions = f"pinloop {pl.__version__}, pin {pin.__version__}, NumPy {np.__version__}"
    return f"{name}, one core; Python {platform.python_version()}, {versions}."


def _cpuinfo() -> list[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _time(function: Callable[[], object], calls: int, repeats: int = 7) -> float:
    """Median over repeats of the mean CPU time of a call [s]."""
    means = []
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(calls):
            function()
        means.append((time.process_time() - begin) / calls)
    return statistics.median(means)


def formulations() -> str:
    """The first table."""
    rows = []
    for name in ROBOTS:
        robot = load(name)
        times, apart = cost(robot)
        best = min(times)
        cells = [f"{1e6 * t:.0f} ({t / best:.1f})" for t in times]
        rows.append([f"`{name}`", str(robot.nv), str(len(pl.Constraints(robot))), *cells,
                     f"{apart:.0e}"])  # fmt: skip
    head = ["robot", "velocities", "equations", *(f"{name} [µs]" for name in FORMULATIONS), "apart"]
    return table(head, rows, "lrrrrrrrr")


def integrators() -> str:
    """The second table."""
    rows = []
    for name in RELEASED:
        robot = load(name)
        q = released(robot)
        exact = pl.simulate(robot, q, until=UNTIL, method=EXACT, losses=False).q[-1]
        for method in METHODS:
            made = accuracy(robot, method, exact)
            how = f"step {method.step:g} s" if method.step else f"tolerance {method.rtol:g}"
            rows.append([f"`{name}`", f"`{method.name}`, {how}", f"{made.error:.0e}",
                         str(made.evaluations), f"{1e3 * made.seconds:.0f}"])  # fmt: skip
    head = ["robot", "method", "error [rad, m]", "evaluations", "time [ms]"]
    return table(head, rows, "llrrr")


def stabilizations() -> str:
    """The third table."""
    rows = []
    for name in ("fourbar", "palletizer", "delta"):
        robot = load(name)
        for way, value in WAYS.items():
            gap, lost, seconds, end = closure(robot, value, 2.0)
            rows.append([f"`{name}`", way, f"{gap:.0e}", f"{lost:.0e}", f"{end:.1f}",
                         f"{seconds:.2f}"])  # fmt: skip
    head = ["robot", "stabilization", "closure [m, rad]", "error of the energy", "gets to [s]",
            "time [s]"]  # fmt: skip
    return table(head, rows, "llrrrr")


def blocks() -> Iterator[tuple[str, str]]:
    """What stands between the marks of the page; measures everything."""
    yield "system", f"{system()}\n"
    yield "formulations", formulations()
    yield "integrators", integrators()
    yield "stabilizations", stabilizations()


if __name__ == "__main__":
    print_or_write(PAGE, blocks(), __doc__)
