"""Random mechanisms: derivatives of accelerations and reactions against extrapolated differences.

Half of them have more than loops: locks, couplings, rows and forces of all kinds, and parameters.

Differences have an error, too, which is estimated: by two tableaux of other widths, each with the
change of its last entry, and narrower ones if that is too much. Beside a singular pose both lose
digits, as the square of the condition. So each case says which it is, and what is wrong is what
neither explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pinocchio as pin
from tests import screw_tables
from tests.screw_tables import Array
from tests.states import moving

import pinloop as pl
from pinloop.dynamics.derivatives import Derivatives, derivatives_at
from pinloop.dynamics.formulations import Formulation
from pinloop.dynamics.parameters import Parameter
from pinloop.linalg.saddle import Saddle

from .campaign import Campaign, Case, Data, Finding
from .equipment import OFTEN, Equipment, couple, draw_equipment, fit_rotors, tie_points, with_change
from .tables import draw_linkage, plain, simplify_linkage

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
ENGINES = tuple(
    f"{what}_{by}" for what in ("ddq", "reactions") for by in ("dq", "dv", "dtau", "dp")
)
"""What the kernel and Python are compared by."""

Function = Callable[[Array], Array]


def draw_mechanism(rng: np.random.Generator) -> Data:
    """A linkage, half of the time with more."""
    data, rich = draw_linkage(rng), rng.random() < OFTEN
    if rich and rng.random() < OFTEN:
        data["table"] = plain(tie_points(rng, data["table"]))
    return data | {"rich": rich}


def simplify_mechanism(data: Data) -> Iterator[Data]:
    """Without what is more, and with simpler tables."""
    if data["rich"]:
        yield data | {"rich": False}
    yield from simplify_linkage(data)


def compare_derivatives(data: Data) -> Case:
    """Compare derivatives at a state, on the manifold or beside it."""
    drawn = _draw(data)
    if drawn is None:
        return Case("immovable")
    state, place, equipment = drawn
    equations, q, v = state.equations, state.q, state.v
    computed = derivatives_at(equations, 0.0, q, v, state.tau, equipment.parameters)
    verdicts, findings = list[str](), _between_engines(state, computed, equipment)
    for name, X, (wanted, unsure) in _compared(state, computed, equipment):
        # The numbers of rows that share their load are none.
        sure = np.isfinite(X).all(axis=1)
        X, wanted, unsure = X[sure], wanted[sure], unsure[sure]
        size = max(1e-3, np.abs(wanted).max(initial=0.0))
        errors = np.abs(X - wanted).max(axis=1, initial=0.0) / size
        if not len(errors) or errors.max() <= SAME:
            continue
        worst = int(errors.argmax())
        error, doubt = float(errors[worst]), float(unsure.max()) / size
        near = state.regularity < NEAR
        wrong = not near and doubt < UNSURE * error
        verdicts.append(
            "near a singular pose" if near else "wrong" if wrong else "beyond differences"
        )
        if wrong:
            text = f"{error:.1e}, differences to {doubt:.1e}, regularity {state.regularity:.1e}"
            text += f" ({', '.join(equipment.kinds)})"
            findings.append(Finding(name, text))
    verdict = f"{verdicts[0] if verdicts else 'same'}, {place}"
    return Case(verdict, tuple(findings), equipment.kinds)


def _draw(data: Data) -> tuple[_State, str, Equipment] | None:
    """A mechanism that can move, whether its state is on the manifold, and what it has besides."""
    seed, rich, kinds = data["seed"], data["rich"], list[str]()
    machine, rng = screw_tables.build(data["table"]), np.random.default_rng(seed)
    if rich and rng.random() < OFTEN:
        coupled = couple(rng, machine)
        kinds += ["coupling"] * (coupled is not machine)
        machine = coupled
    if machine.nv == 0:
        return None
    kinds += {f"cut {loop.pair.name}" for loop in machine.loops}
    kinds += {f"tree {joint.pair.name}" for joint in machine.description.joints}
    q, v = moving(machine, seed % 1000)
    mobility = machine.nv - (pl.EquationsOfMotion(machine).around(0.0, q).rank or 0)
    if mobility == 0:
        return None  # derivatives are rounding
    equipment = draw_equipment(rng, machine, mobility) if rich else Equipment()
    equipment = replace(equipment, kinds=(*sorted(kinds), *equipment.kinds))
    machine = fit_rotors(machine, equipment)
    state = _State(machine, equipment, q, q, v, rng.normal(size=machine.nv))
    if rng.random() < 0.5:
        q = pin.integrate(machine.model, q, OFF * rng.normal(size=machine.nv))
        return replace(state, q=q, v=v + OFF * rng.normal(size=machine.nv)), "off it", equipment
    J, b, _ = state.equations.terms(0.0, q, v)
    if len(b):
        v = v - np.linalg.lstsq(J, J @ v - b, rcond=1e-9)[0]
    return replace(state, v=v), "on it", equipment


Compared = Iterator[tuple[str, Array, tuple[Array, Array]]]


def _compared(state: _State, computed: Derivatives, equipment: Equipment) -> Compared:
    """What is compared by name: what was computed, what it should be, and how sure that is."""
    n = len(state.v)
    # Of second degree in velocities but for some forces, of first in torques: exact by any width.
    by_v = _extrapolated if equipment.forces else _central
    for name, of, difference in (
        ("dq", state.moved, _extrapolated),
        ("dv", state.faster, by_v),
        ("dtau", state.pushed, _central),
    ):
        wanted, unsure = difference(of, n)
        for part, rows in (("ddq", slice(0, n)), ("reactions", slice(n, None))):
            if len(wanted) > n or part == "ddq":
                yield f"{part}_{name}", getattr(computed, f"{part}_{name}"), (
                    wanted[rows], unsure[rows],
                )  # fmt: skip
    yield "violation_dq", computed.violation_dq, _extrapolated(state.violated, n)
    at = 0
    for parameter in equipment.parameters:
        count = len(parameter.labels(state.robot))
        own, at = slice(at, at + count), at + count
        if parameter.places and state.equations.max_rank is not None:
            continue  # elsewhere rows may contradict each other
        direction = np.random.default_rng(count).normal(size=count)
        of = partial(state.changed, parameter, direction)
        wanted, unsure = _extrapolated(of, 1)
        m, by = len(wanted) - len(state.equations.rows), direction[:, None]
        label = type(parameter).__name__
        yield f"ddq by {label}", computed.ddq_dp[:, own] @ by, (wanted[:n], unsure[:n])
        if m > n:
            yield f"reactions by {label}", computed.reactions_dp[:, own] @ by, (
                wanted[n:m], unsure[n:m],
            )  # fmt: skip
        yield f"rates by {label}", computed.violation_dp[:, own] @ by, (wanted[m:], unsure[m:])


def _between_engines(state: _State, computed: Derivatives, equipment: Equipment) -> list[Finding]:
    """How far derivatives by the native kernel are from those of Python."""
    findings = list[Finding]()
    python = state.with_formulation(pl.Augmented())
    reference = derivatives_at(python, 0.0, state.q, state.v, state.tau, equipment.parameters)
    for name in ENGINES:
        ours, theirs = (np.nan_to_num(getattr(part, name)) for part in (computed, reference))
        error = np.abs(ours - theirs).max(initial=0.0) / max(1e-3, np.abs(theirs).max(initial=0.0))
        if error > SAME and state.regularity >= NEAR:
            text = f"{name}: {error:.1e}, regularity {state.regularity:.1e}"
            findings.append(Finding("engines", f"{text} ({', '.join(equipment.kinds)})"))
    return findings


@dataclass(frozen=True, eq=False)
class _State:
    """A robot at a state that can be displaced, whose equations are solved as one system.

    Args:
        robot: the robot.
        equipment: what acts on it and holds it.
        home: configuration that decides how many rows are independent.
        q: configuration.
        v: velocity.
        tau: generalised forces.
    """

    robot: pl.Mechanism
    equipment: Equipment
    home: Array
    q: Array
    v: Array
    tau: Array

    @cached_property
    def equations(self) -> pl.EquationsOfMotion:
        """Equations of motion with the kernel, where it knows all rows."""
        return self.with_formulation(None)

    def with_formulation(self, formulation: Formulation | None) -> pl.EquationsOfMotion:
        """Equations of motion by a formulation."""
        return self._equations(self.robot, self.equipment.forces, formulation).around(
            0.0, self.home
        )

    def _equations(
        self,
        robot: pl.Mechanism,
        forces: tuple[pl.forces.Force, ...],
        formulation: Formulation | None = None,
    ) -> pl.EquationsOfMotion:
        own = self.equipment
        return pl.EquationsOfMotion(
            robot, rows=own.rows, locks=own.locks, forces=forces, formulation=formulation
        )

    def moved(self, step: Array) -> Array:
        """Acceleration, and reactions if they are unique, beside it."""
        return self._solved(self.equations, self._beside(step), self.v, self.tau)

    def faster(self, change: Array) -> Array:
        """The same at another velocity."""
        return self._solved(self.equations, self.q, self.v + change, self.tau)

    def pushed(self, change: Array) -> Array:
        """The same by other forces."""
        return self._solved(self.equations, self.q, self.v, self.tau + change)

    def violated(self, step: Array) -> Array:
        """How fast rows are violated beside it."""
        J, b, _ = self.equations.terms(0.0, self._beside(step), self.v)
        return np.asarray(J @ self.v - b)

    def changed(self, parameter: Parameter, direction: Array, change: Array) -> Array:
        """All three with other values of a parameter."""
        forces = self.equipment.forces
        other = self._equations(*with_change(self.robot, forces, parameter, direction * change))
        J, b, _ = other.terms(0.0, self.q, self.v)
        return np.append(self._solved(other, self.q, self.v, self.tau), J @ self.v - b)

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
        return np.asarray(pin.integrate(self.robot.model, self.q, step))

    def _solved(self, equations: pl.EquationsOfMotion, q: Array, v: Array, tau: Array) -> Array:
        M, f, J, gamma, _ = equations.system(0.0, q, v)
        rows, scale, max_rank = equations.rows, equations.rows.scale, self.equations.max_rank
        if max_rank is not None:
            u, still = rows.unlocked, len(rows.locked)
            free = np.setdiff1d(np.arange(len(v)), rows.locked)
            a = np.zeros(len(v))
            saddle = Saddle(
                M[np.ix_(free, free)], J[:u, free], scale[:u], max_rank=max_rank - still
            )
            a[free] = saddle.solve((f + tau)[free], -gamma[:u])[0]
            return a
        own, m = scale[:, None] * J, len(J)
        whole = np.block([[M, own.T], [own, np.zeros((m, m))]])
        solution = np.linalg.solve(whole, np.concatenate([f + tau, -scale * gamma]))
        return np.append(solution[: len(v)], -scale * solution[len(v) :])


def _extrapolated(function: Function, size: int) -> tuple[Array, Array]:
    """Derivatives at 0, one column each, by Richardson's extrapolation, and their likely error.

    That of each row.
    """
    best, least = np.zeros((0, size)), np.full(1, np.inf)
    for widths in WIDTHS:
        both = [[_tableau(function, unit, width) for unit in np.eye(size)] for width in widths]
        wide, narrow = (np.array([column for column, _ in part]).T for part in both)
        changes = [change for part in both for _, change in part]
        unsure = np.maximum(np.max(changes, axis=0), np.abs(wide - narrow).max(axis=1))
        if unsure.max() < least.max():
            best, least = narrow, unsure
        if least.max(initial=0.0) < SURE * np.abs(best).max(initial=0.0):
            break
    return best, least


def _tableau(function: Function, unit: Array, width: float) -> tuple[Array, Array]:
    """The entry of a tableau that differs least from its neighbours, and by how much."""
    rows: list[list[Array]] = []
    best, least = np.zeros(0), np.full(1, np.inf)
    for level in range(LEVELS):
        h = width / 2**level
        row = [(function(h * unit) - function(-h * unit)) / (2.0 * h)]
        for order in range(level):
            row.append(row[-1] + (row[-1] - rows[-1][order]) / (4.0 ** (order + 1) - 1.0))
            neighbours = row[-2], rows[-1][order]
            change = np.max([np.abs(row[-1] - near) for near in neighbours], axis=0)
            if change.max(initial=0.0) < least.max(initial=0.0):
                best, least = row[-1], change
        rows.append(row)
    return best, least


def _central(function: Function, size: int) -> tuple[Array, Array]:
    """The same of a polynomial of second degree, with two widths."""
    steps = np.eye(size)
    wide = np.array([function(step) - function(-step) for step in steps]).T / 2.0
    narrow = np.array([function(step) - function(-step) for step in 0.7 * steps]).T / 1.4
    return wide, np.abs(wide - narrow).max(axis=1)


DERIVATIVES = Campaign(draw_mechanism, compare_derivatives, simplify_mechanism)
