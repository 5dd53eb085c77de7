"""Random locks, unlocks, open and closed loops: every jump against one dense system by NumPy.

``M dv = J' L``, ``J (v + dv) = 0`` with all rows of the loops and unit rows of the locks. Robots
are the shipped ones, the small ones of the tests, and random linkages; half of them regularized.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from tests import motion_by_hand as hand
from tests import screw_tables, switching
from tests.screw_tables import Array
from tests.states import SHIPPED, SMALL, assembled, dense, regularized, robot

import pinloop as pl
from pinloop.dynamics import Formulation

from .campaign import Campaign, Case, Data, Finding
from .tables import draw_linkage, simplify_linkage

SAME = 1e-9
"""Difference of velocities in the kinetic metric over the velocity before."""
STILL = 1e-9
"""Rate of rows after the jump, without unit, over the largest velocity before."""
BALANCE = 1e-10
"""Part of the kinetic energy that may be missing from, or added by, a jump."""
SURE = 1e-5, 1e-11
"""Singular values of the rows over the largest: between these nobody can say what their rank is."""
FORMS: tuple[Formulation, ...] = (pl.Augmented(), pl.Projected(), pl.Voronets())
MOST = 4
"""Changes of the mode in a case."""


def draw_locks(rng: np.random.Generator) -> Data:
    """A robot, and modes one after another."""
    if rng.random() < 0.5:
        names = (*SHIPPED, *SMALL)
        data: Data = {"robot": names[rng.integers(len(names))], "seed": int(rng.integers(2**31))}
    else:
        data = draw_linkage(rng)
    data["regularized"] = bool(rng.random() < 0.5)
    machine = _robot(data)
    count = int(rng.integers(2, MOST + 2))
    return data | {"modes": [_any_mode(machine, rng) for _ in range(count)]}


def _robot(data: Data) -> pl.Mechanism:
    if "robot" in data:
        return regularized(data["robot"]) if data["regularized"] else robot(data["robot"])
    machine = screw_tables.build(data["table"])
    return pl.regularize(machine) if data["regularized"] and machine.nv else machine


def _any_mode(machine: pl.Mechanism, rng: np.random.Generator) -> dict[str, Any]:
    """Locks and open loops, of either often none."""
    locks: list[tuple[str, list[str]]] = []
    if machine.joints and rng.random() < 0.7:
        mode = switching.any_mode(machine, rng)
        locks = [(lock.joint, list(lock.axes)) for lock in mode.locks]
    opened = [loop.name for loop in machine.loops if rng.random() < 0.2]
    return {"locks": locks, "opened": opened}


def _mode(given: dict[str, Any]) -> pl.Mode:
    locks = [pl.simulation.Locked(name, tuple(axes)) for name, axes in given["locks"]]
    return pl.Mode(locks, opened=given["opened"])


def try_locks(data: Data) -> Case:
    """Go from mode to mode at one configuration, with the velocity that comes out."""
    machine, name = _robot(data), data.get("robot", data.get("kind"))
    if machine.nv == 0:
        return Case("immovable")
    modes = [_mode(given) for given in data["modes"]]
    q = assembled(machine, data["seed"] % 1000, walk=data["seed"] % 3)  # none: often singular
    v = switching.moving_in(machine, q, modes[0], data["seed"] % 1000)
    kinds, findings = list[str](), list[Finding]()
    for before, after in pairwise(modes):
        exact, sure = _jump_by_hand(machine, q, v, after)
        kinds.append("sure" if sure else "near a singular pose")
        for form in FORMS:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", pl.PinloopWarning)
                jump = pl.transition(machine, q, v, before, after, form)
            found = _judge(machine, q, v, jump, after, exact if sure else None)
            findings += [Finding(f.kind, f"{form}: {f.text} ({before} to {after})") for f in found]
        if not sure:
            break  # which velocity goes on hangs on rounding
        v = exact
    return Case(str(name), tuple(findings), tuple(kinds))


def _jump_by_hand(machine: pl.Mechanism, q: Array, v: Array, after: pl.Mode) -> tuple[Array, bool]:
    """Velocity after the jump, and whether the rank of the rows is beyond doubt."""
    J, scale = switching.mode_rows(machine, after, q)
    if not len(J):
        return v, True
    values = np.linalg.svd(scale[:, None] * J, compute_uv=False)
    part = values / max(values[0], 1e-300)
    sure = not np.any((part < SURE[0]) & (part > SURE[1]))
    M = hand.mass_matrix(machine, q)
    change, _ = dense(M, J, np.zeros(len(v)), -J @ v, scale)
    return v + change, sure


def _judge(
    machine: pl.Mechanism,
    q: Array,
    v: Array,
    jump: pl.simulation.Transition,
    after: pl.Mode,
    exact: Array | None,
) -> Iterator[Finding]:
    M = hand.mass_matrix(machine, q)
    energy, dv = max(1e-9, 0.5 * float(v @ M @ v)), jump.v_plus - v
    J, scale = switching.mode_rows(machine, after, q)
    columns = switching.locked_columns(machine, after)
    lost = energy_of(M, v) - energy_of(M, jump.v_plus)
    if np.any(jump.v_plus[columns] != 0.0):
        yield Finding("locked joint moves", f"{np.abs(jump.v_plus[columns]).max():.1e}")
    if jump.energy_loss < 0.0 or lost < -BALANCE * energy:
        yield Finding("energy rises", f"by {-min(jump.energy_loss, lost) / energy:.1e} of itself")
    if abs(jump.energy_loss - lost) > BALANCE * energy:
        yield Finding("energy", f"{abs(jump.energy_loss - lost) / energy:.1e} of itself")
    if abs(jump.energy_loss - energy_of(M, dv)) > BALANCE * energy:
        yield Finding("energy of the jump", f"{abs(lost - energy_of(M, dv)) / energy:.1e}")
    if exact is None:
        return
    error = np.sqrt(energy_of(M, jump.v_plus - exact) / energy)
    if error > SAME:
        yield Finding("velocity", f"{error:.1e}")
    rate = np.abs(scale * (J @ jump.v_plus)).max(initial=0.0) / max(1.0, np.abs(v).max(initial=0.0))
    if rate > STILL:
        yield Finding("rows", f"violated by {rate:.1e}")


def energy_of(M: Array, v: Array) -> float:
    """Kinetic energy [J]."""
    return 0.5 * float(v @ M @ v)


def simplify_locks(data: Data) -> Iterator[Data]:
    """With fewer changes, locks and open loops, and simpler tables."""
    modes = data["modes"]
    if len(modes) > 2:
        yield data | {"modes": modes[:-1]}
        yield data | {"modes": modes[1:]}
    if data["regularized"]:
        yield data | {"regularized": False}
    for k, mode in enumerate(modes):
        for key in ("locks", "opened"):
            for j in range(len(mode[key])):
                fewer = mode | {key: mode[key][:j] + mode[key][j + 1 :]}
                yield data | {"modes": [*modes[:k], fewer, *modes[k + 1 :]]}
    if "table" in data:
        yield from simplify_linkage(data)


LOCKS = Campaign(draw_locks, try_locks, simplify_locks)
