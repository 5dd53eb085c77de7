"""Random mechanisms: derivatives of the acceleration against extrapolated differences.

Differences have an error, too, which is estimated: by two tableaux of other widths, each with the
change of its last entry, and narrower ones if that is too much. Beside a singular pose both lose
digits, as the square of the condition. So each case says which it is, and what is wrong is what
neither explains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pinocchio as pin
from tests import screw_tables
from tests.screw_tables import Array
from tests.states import moving

import pinloop as pl
from pinloop.dynamics.derivatives import Derivatives, derivatives_at
from pinloop.linalg.saddle import Saddle

from .campaign import Case, Finding
from .kernel import KINDS, draw_table

SAME = 1e-8
"""Relative difference that must not be exceeded, over the largest entry of a derivative."""
UNSURE = 0.1
"""Part of a difference that the estimated error of differences must have to explain it."""
NEAR = 1e-3
"""Smallest singular value of the rows in the metric of the mass matrix, over the largest: below it
poses are near a singular one."""
OFF = 1e-2
"""How far from the manifold the other state of a mechanism is [rad, m]."""
WIDTHS = ((2e-2, 1.4e-2), (2e-3, 1.4e-3), (2e-4, 1.4e-4))
"""Largest widths of both tableaux; the next ones where these are too wide."""
SURE = 1e-10
"""Relative error that is estimated of differences which are narrow enough."""
LEVELS = 7

Function = Callable[[Array], Array]


def compare_derivatives(rng: np.random.Generator) -> Case:
    """Draw a mechanism and a state, on the manifold or beside it, and compare derivatives there."""
    seed, kind = int(rng.integers(2**31)), str(rng.choice(KINDS))
    machine = screw_tables.build(draw_table(kind, seed))
    if machine.nv == 0:
        return Case("immovable")
    q, v = moving(machine, seed % 1000)
    home, place = (0.0, q), "on it"
    equations = pl.EquationsOfMotion(machine).around(*home)
    if equations.rank == machine.nv:
        return Case("immovable")  # derivatives are rounding
    if rng.random() < 0.5:
        place = "off it"
        q = pin.integrate(machine.model, q, OFF * rng.normal(size=machine.nv))
        v = v + OFF * rng.normal(size=machine.nv)
    state = _State(equations, home, q, v, rng.normal(size=machine.nv))
    computed = derivatives_at(equations, 0.0, q, v, state.tau)
    verdicts, findings = list[str](), _between_engines(state, computed)
    for name, X, difference in (
        ("q", computed.ddq_dq, partial(_extrapolated, state.moved)),
        # Of second degree in velocities, of first in torques: exact with any width.
        ("v", computed.ddq_dv, partial(_central, state.faster)),
        ("tau", computed.ddq_dtau, partial(_central, state.pushed)),
    ):
        wanted, unsure = difference(machine.nv)
        size = max(1e-3, np.abs(wanted).max())
        error, unsure = float(np.abs(X - wanted).max() / size), unsure / size
        if error <= SAME:
            continue
        near = state.regularity < NEAR
        wrong = not near and unsure < UNSURE * error
        verdicts.append(
            "near a singular pose" if near else "wrong" if wrong else "beyond differences"
        )
        if wrong:
            text = f"{error:.1e}, differences to {unsure:.1e}, regularity {state.regularity:.1e}"
            text += f" (linkage {seed})"
            findings.append(Finding(f"by {name}", text))
    return Case(f"{verdicts[0]}, {place}" if verdicts else f"same, {place}", tuple(findings))


def _between_engines(state: _State, computed: Derivatives) -> list[Finding]:
    """How far derivatives by the native kernel are from those of Python."""
    machine, findings = state.equations.robot, list[Finding]()
    python = pl.EquationsOfMotion(machine, formulation=pl.Augmented()).around(*state.home)
    reference = derivatives_at(python, 0.0, state.q, state.v, state.tau)
    for name in ("ddq_dq", "ddq_dv", "ddq_dtau", "reactions_dq", "reactions_dv", "reactions_dtau"):
        ours, theirs = (np.nan_to_num(getattr(part, name)) for part in (computed, reference))
        error = np.abs(ours - theirs).max(initial=0.0) / max(1e-3, np.abs(theirs).max(initial=0.0))
        if error > SAME and state.regularity >= NEAR:
            text = f"{name}: {error:.1e}, regularity {state.regularity:.1e}"
            findings.append(Finding("engines", f"{text} (robot {machine.name})"))
    return findings


@dataclass(frozen=True, eq=False)
class _State:
    """Equations of motion at a state that can be displaced, solved as one system.

    Args:
        equations: the equations.
        home: time and configuration that they are around.
        q: configuration.
        v: velocity.
        tau: generalised forces.
    """

    equations: pl.EquationsOfMotion
    home: tuple[float, Array]
    q: Array
    v: Array
    tau: Array

    def moved(self, step: Array) -> Array:
        """Acceleration beside it."""
        return self._acceleration(self._beside(step), self.v, self.tau)

    def faster(self, change: Array) -> Array:
        """Acceleration at another velocity."""
        return self._acceleration(self.q, self.v + change, self.tau)

    def pushed(self, change: Array) -> Array:
        """Acceleration by other forces."""
        return self._acceleration(self.q, self.v, self.tau + change)

    @property
    def regularity(self) -> float:
        """Smallest singular value of the independent rows over the largest, in the metric of M."""
        M, _, J, _, max_rank = self.equations.system(0.0, self.q, self.v)
        if not len(J):
            return 1.0
        rows = np.linalg.solve(np.linalg.cholesky(M), (self.equations.rows.scale[:, None] * J).T)
        values = np.linalg.svd(rows, compute_uv=False)
        return float(values[(len(J) if max_rank is None else max_rank) - 1] / values[0])

    def _beside(self, step: Array) -> Array:
        return np.asarray(pin.integrate(self.equations.robot.model, self.q, step))

    def _acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        M, f, J, gamma, max_rank = self.equations.system(0.0, q, v)
        if max_rank is not None:
            saddle = Saddle(M, J, self.equations.rows.scale, max_rank=max_rank)
            return saddle.solve(f + tau, -gamma)[0]
        rows, m = self.equations.rows.scale[:, None] * J, len(J)
        whole = np.block([[M, rows.T], [rows, np.zeros((m, m))]])
        right = np.concatenate([f + tau, -self.equations.rows.scale * gamma])
        return np.linalg.solve(whole, right)[: len(v)]


def _extrapolated(function: Function, size: int) -> tuple[Array, float]:
    """Derivatives at 0, one column each, by Richardson's extrapolation, and their likely error."""
    best, least = np.zeros((size, size)), np.inf
    for widths in WIDTHS:
        both = [[_tableau(function, unit, width) for unit in np.eye(size)] for width in widths]
        wide, narrow = (np.array([column for column, _ in part]).T for part in both)
        changes = [change for part in both for _, change in part]
        unsure = max(*changes, float(np.abs(wide - narrow).max()))
        if unsure < least:
            best, least = narrow, unsure
        if least < SURE * np.abs(best).max():
            break
    return best, least


def _tableau(function: Function, unit: Array, width: float) -> tuple[Array, float]:
    """The entry of a tableau that differs least from its neighbours, and by how much."""
    rows: list[list[Array]] = []
    best, least = np.zeros(0), np.inf
    for level in range(LEVELS):
        h = width / 2**level
        row = [(function(h * unit) - function(-h * unit)) / (2.0 * h)]
        for order in range(level):
            row.append(row[-1] + (row[-1] - rows[-1][order]) / (4.0 ** (order + 1) - 1.0))
            neighbours = row[-2], rows[-1][order]
            change = max(np.abs(row[-1] - near).max(initial=0.0) for near in neighbours)
            if change < least:
                best, least = row[-1], float(change)
        rows.append(row)
    return best, least


def _central(function: Function, size: int) -> tuple[Array, float]:
    """The same of a polynomial of second degree, with two widths."""
    steps = np.eye(size)
    wide = np.array([function(step) - function(-step) for step in steps]).T / 2.0
    narrow = np.array([function(step) - function(-step) for step in 0.7 * steps]).T / 1.4
    return wide, float(np.abs(wide - narrow).max())
