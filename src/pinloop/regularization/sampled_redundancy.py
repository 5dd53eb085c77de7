"""Rows that suffice on one assembly branch, though no motion group explains why.

Where the loops of a cluster have ``m`` rows of rank ``r < m`` at every configuration of a branch
(Bennett, Bricard, one leg too many), any ``r`` independent ones have the same kernel, and close the
loops along the branch. Which of them are independent may change: a constant choice can degenerate
somewhere, and then another one is made. A choice is a value, the places of the held rows; what
simulates carries it (`modes`).

What is found here is not proven: it holds where it was sampled, is checked at fresh
configurations, and is watched by the closure residual of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..assembly.continuation import moved_away, walk_branch
from ..assembly.search import Problem, numerical_rank, singular_values, velocity_mask
from ..boundary.arguments import public
from ..boundary.marks import Array, Indices
from ..constraints.closure import Constraints
from ..errors import BadValue
from ..model.mechanism import Mechanism, require_robot
from ..tolerances import ASSEMBLED, PIVOT_TIE, Regularity

Places = tuple[int, ...]
"""Places of held rows among those that motion groups leave, ascending."""

_STALE = 0.3
"""Least singular value of held rows, over that of all rows, below which others are looked for."""
_BETTER = 2.0
"""By how much others must be better to be held instead: a choice is not given up for nothing."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of a cluster of loops and couplings, and the velocity coordinates of its joints."""

    names: tuple[str, ...]
    rows: Places
    columns: Indices


class RowChooser:
    """Chooses among the rows of a regularized robot, before sampling, those that contain all."""

    def __init__(self, robot: Mechanism) -> None:
        self.robot = with_all_rows(robot)
        constraints = Constraints(self.robot)
        self._problem = Problem(self.robot, constraints)
        places = np.arange(len(constraints))
        self.blocks = tuple(
            _Block(
                cluster.names,
                tuple(int(k) for name in cluster.names for k in places[constraints.rows_of[name]]),
                np.flatnonzero(velocity_mask(self.robot, tuple(cluster.joints))),
            )
            for cluster in self.robot.clusters
        )

    def __len__(self) -> int:
        return len(self._problem.constraints)

    def jacobian(self, q: Array) -> Array:
        """Jacobian of all rows without unit, shape (rows, nv)."""
        return self._problem.jacobian(q)

    def renewed(self, held: Places, q: Array) -> Places:
        """The held rows, of each cluster as many as its rank, or others where these degenerated."""
        J = self.jacobian(q)
        known = set(held)
        return tuple(
            sorted(
                k
                for block in self.blocks
                for k in _renewed(block, J, tuple(k for k in block.rows if k in known))
            )
        )


@public
def renew_rows(robot: Mechanism, q: Array) -> Mechanism:
    """Return the robot with sampled rows that are independent at a configuration.

    A robot whose rows are still good, or that holds all that motion groups leave, is returned as
    it is. `simulate` does this by itself after every step.

    Args:
        robot: a mechanism from ``regularize(robot, sampled=True)``.
        q: an assembled configuration, shape (nq,).
    """
    require_robot(robot)
    report = robot.regularization
    if report is None or report.held is None:
        return robot
    held = RowChooser(robot).renewed(report.held, robot.checked_configuration(q))
    return robot if held == report.held else with_rows(robot, held)


def with_rows(robot: Mechanism, places: Iterable[int]) -> Mechanism:
    """The regularized robot with certain ones of the rows that motion groups leave.

    Their places are counted over all of them: loops in the order of the robot, then couplings.
    """
    report, held = robot.regularization, frozenset(places)
    if report is None:
        raise BadValue(f"robot '{robot.name}' is not regularized; rows are chosen after that")
    geometric = report.by_geometry or report
    if not held <= frozenset(range(geometric.rows)):
        raise BadValue(
            f"rows {sorted(held)} of robot '{robot.name}' are to be held, which has "
            f"{geometric.rows}; give numbers from 0 to {geometric.rows - 1}"
        )
    selections, start = {}, 0
    for loop in robot.loops:
        rows = geometric.selection(loop.name)
        selections[loop.name] = rows[[k for k in range(len(rows)) if start + k in held]]
        start += len(rows)
    return replace(
        robot,
        regularization=replace(
            report,
            loops=tuple(replace(x, selection=selections[x.loop]) for x in geometric.loops),
            couplings=tuple(n for k, n in enumerate(geometric.couplings, start) if k in held),
            rows=len(held),
            mobility=robot.nv - len(held),
            sampled_rows=geometric.rows - len(held),
            by_geometry=geometric,
            held=tuple(sorted(held)),
        ),
    )


def with_all_rows(robot: Mechanism) -> Mechanism:
    """The robot with all rows that motion groups leave: as regularized, but not sampled."""
    report = robot.regularization
    if report is None or report.by_geometry is None:
        return robot
    return replace(robot, regularization=report.by_geometry)


def drop_sampled(robot: Mechanism, q: Array, samples: int, seed: int) -> Mechanism:
    """Hold as few rows of a regularized robot as their rank on the branch of ``q``.

    Of each cluster of loops the rows are taken that are best over all samples. Where a cluster does
    not move, or the check at as many fresh configurations fails, it keeps all its rows, and the
    report says so.
    """
    report = robot.regularization
    assert report is not None
    rng, chooser = np.random.default_rng(seed), RowChooser(robot)
    places = walk_branch(robot, q, rng, samples)
    jacobians = [chooser.jacobian(place) for place in places]
    travel = np.max([np.abs(robot.difference(q, place)) for place in places], axis=0)
    chosen = [_best_rows(block, jacobians) for block in chooser.blocks]
    reasons: dict[int, str] = {}
    for number, block in enumerate(chooser.blocks):
        stays = travel[block.columns].max(initial=0.0) < Regularity.ELSEWHERE
        if stays and len(chosen[number]) < len(block.rows):
            reasons[number] = "its joints do not move, so that there is nothing to sample"
    residual = 0.0
    while True:
        rows = _together(chooser, chosen, reasons)
        if len(rows) == len(chooser):
            break
        failed, residual = _failures(chooser, rows, (places[-1], samples), rng)
        if not failed:
            break
        reasons |= failed
    undecided = tuple(
        f"all rows of {', '.join(map(repr, chooser.blocks[number].names))} are kept: {reason}"
        for number, reason in reasons.items()
    )
    report = replace(report, sampled_rows=0, residual=residual, undecided=undecided)
    robot = replace(robot, regularization=report)
    return robot if len(rows) == len(chooser) else with_rows(robot, rows)


def _together(chooser: RowChooser, chosen: Sequence[Places], whole: Iterable[int]) -> Places:
    """The chosen rows of all clusters, and all rows of those that keep them."""
    parts = [
        block.rows if number in whole else chosen[number]
        for number, block in enumerate(chooser.blocks)
    ]
    return tuple(sorted(k for part in parts for k in part))


def _best_rows(block: _Block, jacobians: Sequence[Array]) -> Places:
    """As many rows of a cluster as their rank in general, the best ones where they are worst."""
    parts = [_part(J, block.rows, block) for J in jacobians]
    values = [singular_values(part) for part in parts]
    rank = max(map(numerical_rank, values))
    if rank == len(block.rows):
        return block.rows
    # Where the mechanism is singular no rows are good.
    regular = [k for k, singular in enumerate(values) if numerical_rank(singular) == rank]
    candidates = dict.fromkeys(_pivots(parts[k], rank) for k in regular)

    def worst(rows: Places) -> float:
        shares = (singular_values(parts[k][list(rows)])[-1] / values[k][rank - 1] for k in regular)
        return float(min(shares)) if rank else 1.0

    best = max(candidates, key=lambda rows: round(worst(rows), 6))
    return tuple(block.rows[k] for k in best)


def _renewed(block: _Block, J: Array, held: Places) -> Places:
    """Held rows of a cluster, or better ones."""
    rank = len(held)
    if rank in (0, len(block.rows)):
        return held
    part = _part(J, block.rows, block)
    whole = singular_values(part)
    if numerical_rank(whole) < rank:
        return held  # the mechanism is singular: nothing to choose
    now = singular_values(_part(J, held, block))[-1]
    if now >= _STALE * whole[rank - 1]:
        return held
    others = _pivots(part, rank)
    if singular_values(part[list(others)])[-1] <= _BETTER * now:
        return held
    return tuple(block.rows[k] for k in others)


def _pivots(J: Array, rank: int) -> Places:
    """Independent rows, each time the one that the rows before contain least."""
    left, chosen = J.copy(), list[int]()
    for _ in range(rank):
        sizes = np.einsum("ij,ij->i", left, left)
        best = int(np.argmax(sizes >= (1 - PIVOT_TIE) * sizes.max()))
        chosen.append(best)
        direction = left[best] / np.sqrt(sizes[best])
        left -= np.outer(left @ direction, direction)
        left[best] = 0.0
    return tuple(sorted(chosen))


def _part(J: Array, rows: Places, block: _Block) -> Array:
    """Certain rows of a Jacobian, in the coordinates of a cluster."""
    return J[np.ix_(np.array(rows, dtype=np.intp), block.columns)]


def _failures(
    chooser: RowChooser, held: Places, start: tuple[Array, int], rng: np.random.Generator
) -> tuple[dict[int, str], float]:
    """Clusters whose held rows do not do, and why, at fresh configurations; the largest residual.

    The robot moves on at random from ``start``, a configuration on the branch and the number of
    fresh ones, its loops closed by the held rows alone, which are chosen again where they have
    degenerated, as along a run.
    """
    robot, (place, samples), worst = chooser.robot, start, 0.0
    whole = Problem.closure(robot)

    def gap(q: Array) -> float:
        return float(np.linalg.norm(whole.residual(q)))

    for _ in range(samples):
        held = chooser.renewed(held, place)
        moved = moved_away(
            with_rows(robot, held), place, rng, full=False, accept=lambda q: gap(q) <= ASSEMBLED
        )
        if moved is None:
            reduced = (k for k, b in enumerate(chooser.blocks) if not set(b.rows) <= set(held))
            return dict.fromkeys(reduced, "no fresh configuration could be closed"), worst
        failed = _failures_at(chooser, held, whole, moved)
        if failed:
            return failed, worst
        place, worst = moved, max(worst, gap(moved))
    return {}, worst


def _failures_at(chooser: RowChooser, held: Places, whole: Problem, q: Array) -> dict[int, str]:
    """Clusters that are not closed at a configuration, or whose held rows have another kernel."""
    gaps, J = whole.constraints.by_name(whole.residual(q)), chooser.jacobian(q)
    failed: dict[int, str] = {}
    for number, block in enumerate(chooser.blocks):
        mine = tuple(k for k in block.rows if k in held)
        if len(mine) == len(block.rows):
            continue
        gap = max(gaps[name] for name in block.names)
        rank, held_rank = (
            numerical_rank(singular_values(_part(J, rows, block))) for rows in (block.rows, mine)
        )
        if gap > ASSEMBLED:
            failed[number] = f"without some of them the loops open by {gap:.1e}"
        elif rank != len(mine) or held_rank != rank:
            failed[number] = (
                f"their rank is {rank} at some configurations and {len(mine)} at others"
            )
    return failed
