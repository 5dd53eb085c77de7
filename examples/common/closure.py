"""How planar linkages stay closed: methods of paper 3 without stabilization, side by side.

All use one integrator, Dormand-Prince 5(4) with tolerances of 1e-8, as the paper's did. What runs
and what must come out is told by the programs that use this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK45

import pinloop as pl

from .pictures import drawing
from .program import start_program

__all__ = [
    "Lagrange", "Method", "Reduction", "Run", "Sweeps", "draw", "go", "linkage",
    "print_runs", "start_program",
]  # fmt: skip

Array = NDArray[np.float64]

TOLERANCE = 1e-8
APART = 1e-2
"""Violation at which a linkage has come apart [m]."""
SPENT = 0.02
"""Error of the energy, over the energy that is in motion at most, with which a run is no longer one
of this linkage."""
STALLED = 60_000
"""Evaluations after which a run is given up."""


# -- methods --------------------------------------------------------------------------------


class Method(ABC):
    """What is integrated; the state of the integrator is a method's own."""

    name: str

    @abstractmethod
    def start(self, q: Array, v: Array) -> Array:
        """State of the integrator at a configuration and velocity."""

    @abstractmethod
    def rates(self, t: float, y: Array) -> Array:
        """Its time derivative."""

    @abstractmethod
    def after_step(self, t: float, y: Array) -> Array:
        """State with which the next step starts."""

    @abstractmethod
    def state(self, y: Array) -> tuple[Array, Array]:
        """Configuration and velocity."""


class _Accelerations(Method):
    """Positions and velocities of all tree joints are integrated."""

    def start(self, q: Array, v: Array) -> Array:
        return np.concatenate([q, v])

    def rates(self, t: float, y: Array) -> Array:
        q, v = self.state(y)
        return np.concatenate([v, self.acceleration(t, q, v)])

    def after_step(self, t: float, y: Array) -> Array:
        return y

    def state(self, y: Array) -> tuple[Array, Array]:
        half = len(y) // 2
        return y[:half], y[half:]

    @abstractmethod
    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration of all tree joints."""


class Sweeps(_Accelerations):
    """O-DCA.

    Args:
        robot: the linkage.
        all_four: let the first two sweeps place the bodies and set their velocities anew after
            every step; else they only follow the tree, and the accelerations do all the work.
    """

    def __init__(self, robot: pl.Mechanism, *, all_four: bool = True) -> None:
        self.name = "O-DCA, all four sweeps" if all_four else "O-DCA, accelerations only"
        self._equations = pl.EquationsOfMotion(robot, formulation=pl.ODCA())
        self._all = all_four

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Of the last two sweeps."""
        return self._equations.acceleration(t, q, v)

    def after_step(self, t: float, y: Array) -> Array:
        """The first two sweeps, if asked for."""
        return np.concatenate(self._equations.closed(t, *self.state(y))) if self._all else y


class Lagrange(_Accelerations):
    """Multipliers at acceleration level.

    Args:
        robot: the linkage.
        plain: solve the index-1 system as it stands in textbooks, which needs independent rows;
            else by `pl.Augmented`, which finds out the rank.
    """

    def __init__(self, robot: pl.Mechanism, *, plain: bool) -> None:
        self.name = "Lagrange, plain" if plain else "Lagrange, pl.Augmented"
        self._equations, self._plain = pl.EquationsOfMotion(robot), plain

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Of the index-1 system."""
        if not self._plain:
            return self._equations.acceleration(t, q, v)
        M, f, J, gamma, _ = self._equations.system(t, q, v)
        whole = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
        return np.linalg.solve(whole, np.concatenate([f, -gamma]))[: len(M)]


class Reduction(Method):
    """Minimal velocities ``v = F u``: rows are met at velocity level, positions are integrated.

    Args:
        robot: the linkage.
        independent: columns of the independent velocities, fixed for the whole run.
    """

    def __init__(self, robot: pl.Mechanism, independent: Sequence[int]) -> None:
        self.name = "reduction, velocity level"
        self._equations = pl.EquationsOfMotion(robot)
        self._own = np.array(independent, dtype=np.intp)
        self._others = np.setdiff1d(np.arange(robot.nv), self._own)

    def start(self, q: Array, v: Array) -> Array:
        """Configuration and independent velocities."""
        self._nq = len(q)
        return np.concatenate([q, v[self._own]])

    def rates(self, t: float, y: Array) -> Array:
        """Velocities, and accelerations of the independent ones."""
        q, v = self.state(y)
        M, f, J, gamma, _ = self._equations.system(t, q, v)
        F = self._velocities(J)
        drift = np.zeros(len(M))
        drift[self._others] = -np.linalg.solve(J[:, self._others], gamma)
        return np.concatenate([v, np.linalg.solve(F.T @ M @ F, F.T @ (f - M @ drift))])

    def after_step(self, t: float, y: Array) -> Array:
        """The same."""
        return y

    def state(self, y: Array) -> tuple[Array, Array]:
        """Configuration, and all velocities."""
        q, u = y[: self._nq], y[self._nq :]
        J = self._equations.terms(0.0, q, np.zeros(self._equations.robot.nv))[0]
        return q, self._velocities(J) @ u

    def _velocities(self, J: Array) -> Array:
        F = np.zeros((J.shape[1], len(self._own)))
        F[self._own, np.arange(len(self._own))] = 1.0
        F[self._others] = -np.linalg.solve(J[:, self._others], J[:, self._own])
        return F


# -- runs -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """A run.

    Args:
        method: its name.
        t: times of all steps [s].
        q: configurations, shape (steps, nq).
        violation: norm of the closure residual in the plane [m].
        energy: error of the energy, over the largest kinetic energy.
        failure: why it ended early or is worthless; empty if it did not.
    """

    method: str
    t: Array
    q: Array
    violation: Array
    energy: Array
    failure: str

    @property
    def exponent(self) -> float:
        """Growth of the violation: slope of its largest value so far over time, after 2 s."""
        late = (self.t > 2.0) & (self.violation > 0)
        if np.count_nonzero(late) < 10:
            return float("nan")
        largest = np.maximum.accumulate(self.violation)[late]
        return float(np.polyfit(np.log(self.t[late]), np.log(largest), 1)[0])


def go(robot: pl.Mechanism, method: Method, q: Array, v: Array, until: float) -> Run:
    """Integrate a linkage.

    Args:
        robot: the linkage, its loops regularized.
        method: the method.
        q: configuration at the start.
        v: velocity at the start.
        until: end [s].
    """
    judge = pl.EquationsOfMotion(robot)
    t, states, failure = [0.0], [(q, v)], ""
    try:
        solver = _solver(method, 0.0, method.start(q, v), until)
        while solver.status == "running" and not failure:
            message = solver.step()
            y = method.after_step(solver.t, solver.y)
            if y is not solver.y:
                solver.y, solver.f = y, method.rates(solver.t, y)
            t.append(solver.t)
            states.append(method.state(y))
            failure = message or _broken(judge, solver, states)
    except (np.linalg.LinAlgError, ValueError, pl.PinloopError) as error:
        failure = str(error).split(";")[0].split("\n")[0][:44] or type(error).__name__
    totals = np.array([judge.energies(0.0, *state)[:2] for state in states])
    energy = totals.sum(axis=1)
    moving = max(float(totals[:, 0].max()), 1e-9)
    violation = np.array([np.linalg.norm(judge.residual(0.0, state[0])) for state in states])
    off = np.abs(energy - energy[0]) / moving
    if not failure and off.max() > SPENT:
        failure = "energy lost"
    return Run(method.name, np.array(t), np.array([s[0] for s in states]), violation, off, failure)


def _solver(method: Method, t: float, y: Array, until: float) -> Any:
    rates: Any = method.rates
    return RK45(rates, t, y, until, rtol=TOLERANCE, atol=TOLERANCE, max_step=0.05)


def _broken(judge: pl.EquationsOfMotion, solver: Any, states: Sequence[tuple[Array, Array]]) -> str:
    q, v = states[-1]
    if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
        return "not finite"
    if float(np.linalg.norm(judge.residual(0.0, q))) > APART:
        return "came apart"
    return "stalled" if solver.nfev > STALLED else ""


def print_runs(title: str, runs: Sequence[Run]) -> None:
    """The table: method, violation at the end, growth exponent, failed or not."""
    print(title)
    print(f"  {'method':28s}{'violation [m]':>14s}{'exponent':>10s}{'energy':>10s}   failed")
    for run in runs:
        failed = f"at {run.t[-1]:.2f} s: {run.failure}" if run.failure else "no"
        print(
            f"  {run.method:28s}{run.violation[-1]:14.1e}{run.exponent:10.2f}"
            f"{run.energy.max():10.0e}   {failed}"
        )


def draw(path: str, groups: Mapping[str, Sequence[Run]]) -> None:
    """Joint angles of the first run of each group, and the largest violations of all.

    Args:
        path: picture to write.
        groups: runs by title.
    """
    with drawing(path, 13.0, 2.5 * len(groups)) as figure:
        panels = figure.subplots(len(groups), 2, squeeze=False)
        for (left, right), (title, runs) in zip(panels, groups.items(), strict=True):
            left.plot(runs[0].t, runs[0].q)
            left.set(title=f"{title}: joint angles, {runs[0].method}", xlabel="t [s]", ylabel="rad")
            for run in runs:
                label = f"{run.method}{': failed' * bool(run.failure)}"
                right.semilogy(*_largest(run), label=label)
            right.set(title=f"{title}: violation of the loop", xlabel="t [s]", ylabel="m")
            right.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _largest(run: Run, parts: int = 100) -> tuple[Array, Array]:
    """Times of even parts of a run, and the largest violation in each; zero is out of sight."""
    strips = np.array_split(np.arange(1, len(run.t)), parts) if len(run.t) > parts else []
    t = np.array([run.t[strip[-1]] for strip in strips])
    return t, np.array([max(run.violation[strip].max(), 1e-17) for strip in strips])


# -- linkages -------------------------------------------------------------------------------


def _bar(
    name: str, start: Sequence[float] | Array, end: Sequence[float] | Array
) -> dict[str, object]:
    """Bar of 1 m, 1 kg and 1 kg m^2 normal to the plane about its centre (paper 3)."""
    centre = [(start[0] + end[0]) / 2, 0.0, (start[1] + end[1]) / 2]
    return {"name": name, "mass": 1.0, "com": centre, "inertia": np.eye(3)}


def linkage(
    name: str, points: Sequence[Sequence[float] | Array], bars: Sequence[str], cut: int
) -> pl.Mechanism:
    """Single loop of bars between points of the xz plane; the first and last are on the ground.

    Args:
        name: of the linkage.
        points: of its hinges, in order.
        bars: names of the bars between them.
        cut: which hinge is the loop joint.
    """
    bodies = ["ground", *bars, "ground"]
    joints = [
        {"name": f"hinge_{k + 1}", "pair": "revolute", "axis": [0.0, -1.0, 0.0],
         "point": [point[0], 0.0, point[1]], "parent": bodies[k], "child": bodies[k + 1]}
        | ({"cut": True} if k == cut else {})
        for k, point in enumerate(points)
    ]  # fmt: skip
    for joint in joints:  # ground is always the parent
        if joint["child"] == "ground":
            joint["parent"], joint["child"] = joint["child"], joint["parent"]
    entries = [_bar(bar, *ends) for bar, ends in zip(bars, pairwise(points), strict=True)]
    return pl.regularize(pl.from_screws({"name": name, "bodies": entries, "joints": joints}))
