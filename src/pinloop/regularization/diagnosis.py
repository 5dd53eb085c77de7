"""What is this mechanism? Rows, rank, mobility, idle joints, and what looks wrong.

A report for people: `diagnose` measures, `Diagnosis` prints. Nothing here changes a robot.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from ..assembly.assemble import assemble
from ..assembly.continuation import moved_away, walk_branch
from ..assembly.rounding.exact import describe_remedy, describe_rigid
from ..assembly.rounding.fitting import rigid_loops
from ..assembly.search import (
    Problem,
    jacobian_rank,
    null_space,
    numerical_rank,
    singular_values,
    velocity_mask,
)
from ..boundary.arguments import public, require_whole
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..errors import LoopNotClosed
from ..model.description import Rounding
from ..model.mechanism import Mechanism, require_robot
from ..tables.report import Cell, KeyValues, Notes, Report, Reported, Table
from ..tolerances import MOTION_SHARE, PLACEHOLDER_MASS, Regularity
from .regularize import count_rows


@dataclass(frozen=True)
class LoopSummary:
    """One loop joint in a diagnosis.

    Args:
        bodies: the two bodies that it joins.
        root: root body of the loop.
        joints: tree joints on the loop that move.
        rows: constraint rows of the pair.
        neutral_error: closure residual at neutral, m and rad mixed.
    """

    name: str
    pair: str
    bodies: tuple[str, str]
    root: str
    joints: tuple[str, ...]
    rows: int
    neutral_error: float


@public
@dataclass(frozen=True)
class Diagnosis(Reported):
    """Result of `diagnose`; prints as a table.

    Args:
        name: name of the robot.
        bodies: number of bodies, fixed ones included.
        joints: number of tree joints that move.
        nq: length of a configuration.
        nv: length of a velocity.
        mass: total mass of what moves [kg].
        loops: the loop joints.
        couplings: number of couplings.
        actuated: names of the actuated joints.
        assembled: whether a closed configuration was found.
        rows: number of constraint rows.
        reduced_rows: rows that regularization leaves; None if the robot cannot be assembled.
        rank: rank of the Jacobian in general: the largest one over the sampled configurations.
        ranks: rank at each sampled configuration; the first is the one nearest to neutral.
        mobility: degrees of freedom, nv - rank; more in singular poses, where ``ranks`` are lower.
        redundancy: rows - rank.
        idle: tree joints that still move when every actuated joint is locked.
        idle_dof: number of degrees of freedom in them.
        closure_error: residual of the assembled configuration, m and rad mixed.
        rounding: how the joint frames differ from those of the file, or None if they do not.
        paradoxical: whether rows are redundant that motion groups do not explain (Bennett,
            Bricard); only sampling drops them. None if the robot cannot be assembled.
        warnings: what looks wrong, here and in loading.
        sampled_rows: rows that sampling has dropped, which are none of ``reduced_rows``.
        motors_named: whether motors are named; if not, joints with one axis count as actuated.
    """

    name: str
    bodies: int
    joints: int
    nq: int
    nv: int
    mass: float
    loops: tuple[LoopSummary, ...]
    couplings: int
    actuated: tuple[str, ...]
    assembled: bool
    rows: int
    reduced_rows: int | None
    rank: int
    ranks: tuple[int, ...]
    mobility: int
    redundancy: int
    idle: tuple[str, ...]
    idle_dof: int
    closure_error: float
    paradoxical: bool | None
    rounding: Rounding | None = None
    warnings: tuple[str, ...] = field(default=())
    sampled_rows: int = 0
    motors_named: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return asdict(self)

    def __rich__(self) -> Report:
        return self.report()

    def report(self) -> Report:
        """The diagnosis for reading: print it, give it to rich, or let a notebook show it."""
        blocks = (
            KeyValues.of("Mechanism", self._entries()),
            Table.of("Loop joints", _LOOP_HEADINGS, map(_loop_row, self.loops)),
            Notes.of("Warnings", self.warnings, "caution"),
        )
        return Report.of(f"robot '{self.name}'", blocks)

    def _entries(self) -> list[tuple[str, str | Cell]]:
        """The robot as a whole, line by line."""
        ranks = sorted(set(self.ranks))
        spread = f" (from {ranks[0]} to {ranks[-1]} over samples)" if len(ranks) > 1 else ""
        residual = f"residual {self.closure_error:.1e} m, rad"
        guessed = "" if self.motors_named else "; no motor is named"
        closure = Cell(f"closed, {residual}", "good")
        if not self.assembled:
            closure = Cell(f"NOT CLOSED, {residual}", "bad")
        entries: list[tuple[str, str | Cell]] = [
            ("bodies", f"{self.bodies}, {self.mass:.4g} kg moving"),
            ("tree joints", f"{self.joints} moving, nq = {self.nq}, nv = {self.nv}"),
            ("actuated", f"{len(self.actuated)}  {_listed(self.actuated)}{guessed}"),
            ("loops", f"{len(self.loops)}, couplings {self.couplings}"),
            ("constraint equations", str(self.rows)),
            ("rank", f"{self.rank}{spread}"),
            ("redundant equations", self.redundancy_in_words()),
            ("mobility", self._mobility()),
            ("closure", closure),
        ]
        return entries + ([("rounded", str(self.rounding))] if self.rounding is not None else [])

    def _mobility(self) -> str:
        """Degrees of freedom in general, and where they are others."""
        text = f"{self.mobility} degree{'s' * (self.mobility != 1)} of freedom"
        if self.idle_dof:
            text += f", of which {self.idle_dof} internal ({_listed(self.idle)})"
        others = sorted({self.nv - rank for rank in self.ranks[1:]} - {self.mobility})
        if self.ranks[0] < self.rank:
            text += f"; {self.nv - self.ranks[0]} in the assembled pose, which is singular"
        if others:
            text += f"; {', '.join(map(str, others))} on other branches or in poses beside it"
        return text

    def redundancy_in_words(self) -> str:
        """Redundant equations: how many the geometry explains, and how many it does not."""
        if self.reduced_rows is None or not self.redundancy:
            return str(self.redundancy)
        explained = self.rows - self.reduced_rows - self.sampled_rows
        left = self.reduced_rows - self.rank
        text = (
            f"{self.redundancy}: {explained} redundant by geometry (removed by regularize), "
            f"{left + self.sampled_rows} overconstrained"
        )
        if left > 0:
            return f"{text} (removed with sampled=True)"
        return f"{text} (removed by sampling)" if self.sampled_rows else text


_LOOP_HEADINGS = (
    *("<loop joint", "<pair", "equations", "open at neutral [m, rad]"),
    *("<between", "<through"),
)


def _loop_row(loop: LoopSummary) -> tuple[str, ...]:
    error, bodies = f"{loop.neutral_error:.1e}", " - ".join(loop.bodies)
    return loop.name, loop.pair, str(loop.rows), error, bodies, _listed(loop.joints)


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_MOST_SAMPLES = 10_000
"""Configurations at which ranks are taken."""


@public
def diagnose(robot: Mechanism, *, samples: int = 6, seed: int = 0) -> Diagnosis:
    """Measure what a mechanism is.

    Ranks are taken at the assembled configuration nearest to neutral and at others reached from it
    by random motions on the same assembly branch.

    Args:
        robot: the mechanism.
        samples: number of further configurations.
        seed: seed of the random motions.
    """
    require_robot(robot)
    require_whole(samples, "samples", _MOST_SAMPLES)
    require_whole(seed, "seed")
    closure, problem = Problem.closure(robot), ""
    constraints = closure.constraints
    try:
        configurations = [assemble(robot, seed=seed)]
    except LoopNotClosed as error:
        configurations, problem = [error.q], str(error)
    if not problem and len(constraints):
        configurations += _branch(closure, configurations[0], samples, seed)
    q, assembled = configurations[0], not problem
    jacobians = [closure.jacobian(q) for q in configurations]
    ranks = tuple(map(jacobian_rank, jacobians))
    warnings = [*robot.warnings, *_odd_masses(robot), *([problem] if problem else ())]
    if assembled and len(constraints):
        warnings += _held_at_first_order(robot, configurations, ranks[0])
        warnings += _held_by_rounding(closure, q, jacobians[0])
    locks = [_locks(robot, constraints, q) for q in configurations]
    idle, idle_dof = _idle(robot, [np.vstack(pair) for pair in zip(jacobians, locks, strict=True)])
    report = robot.regularization
    sampled = 0 if report is None else report.sampled_rows or 0
    reduced = None
    if assembled:
        reduced = count_rows(robot, q) if report is None else report.rows
    rows, rank = len(constraints), max(ranks)
    return Diagnosis(
        name=robot.name,
        bodies=len(robot.bodies),
        joints=len(robot.joints),
        nq=robot.nq,
        nv=robot.nv,
        mass=float(sum(inertia.mass for inertia in list(robot.model.inertias)[1:])),
        loops=_summaries(robot, constraints),
        couplings=len(robot.couplings),
        actuated=robot.actuated,
        motors_named=robot.description.actuated is not None,
        assembled=assembled,
        rows=rows,
        reduced_rows=reduced,
        rank=rank,
        ranks=ranks,
        mobility=robot.nv - rank,
        redundancy=rows - rank,
        idle=idle,
        idle_dof=idle_dof,
        closure_error=float(np.linalg.norm(constraints.residual(q))),
        paradoxical=None if reduced is None else reduced + sampled > rank,
        rounding=robot.description.rounding,
        warnings=tuple(dict.fromkeys(warnings)),
        sampled_rows=sampled,
    )


def _held_at_first_order(robot: Mechanism, configurations: list[Array], rank: int) -> list[str]:
    """Says that a pose seems not to be left although its rank, that of the first, lets it move."""
    first, *others = configurations
    away = max((np.abs(robot.difference(first, q)).max() for q in others), default=0.0)
    if rank == robot.nv or away >= Regularity.ELSEWHERE:
        return []
    return [
        f"the loops leave {robot.nv - rank} degrees of freedom at first order, but no closed "
        "configuration was found beside the assembled one: it may be a singular pose that the "
        "mechanism cannot leave"
    ]


def _held_by_rounding(closure: Problem, q: Array, jacobian: Array) -> list[str]:
    """Which closed loops cannot move, and if they would with joint frames a little elsewhere."""
    values, robot = singular_values(jacobian), closure.robot
    held = values[: numerical_rank(values)]
    rigid = rigid_loops(closure, q)
    sentences = [describe_rigid(robot, rigid)] if rigid else []
    # A gap: of a long ladder the values fall far, but one by one.
    if rigid or np.any(held[1:] <= Regularity.BARELY_HELD * held[:-1]):
        remedy = describe_remedy(robot)
        if remedy is not None:
            sentences.append(
                f"robot '{robot.name}' is held by {held[-1]:.1e} rad per rad only, as if meant to "
                f"move there with joint frames that miss each other by a little; {remedy}"
            )
    return sentences


def _summaries(robot: Mechanism, constraints: Constraints) -> tuple[LoopSummary, ...]:
    neutral = constraints.by_name(constraints.residual(robot.neutral))
    return tuple(
        LoopSummary(
            loop.name,
            loop.pair.name,
            (loop.body_a, loop.body_b),
            loop.loop.root,
            tuple(filter(robot.model.existJointName, (*loop.loop.chain_a, *loop.loop.chain_b))),
            loop.pair.rows,
            neutral[loop.name],
        )
        for loop in robot.loops
    )


def _branch(closure: Problem, q: Array, samples: int, seed: int) -> list[Array]:
    """Configurations on the branch of ``q``, each a random motion away from the one before.

    Branches cross in a singular pose: so as many again start from ``q`` itself if it is one.
    """
    rng = np.random.default_rng(seed)
    places = walk_branch(closure.robot, q, rng, samples)
    ranks = [jacobian_rank(closure.jacobian(place)) for place in places]
    if ranks[0] < max(ranks):
        beside = (moved_away(closure.robot, q, rng) for _ in range(samples))
        places += [place for place in beside if place is not None]
    return places[1:]


def _locks(robot: Mechanism, constraints: Constraints, q: Array) -> Array:
    """Rows that hold the actuated joints that close loops."""
    driven = frozenset(robot.actuated)
    actuated = [loop for loop in robot.loops if loop.name in driven]
    rows = [constraints.twist_jacobian(q, loop) for loop in actuated]
    return np.vstack([np.zeros((0, robot.nv)), *rows])


def _idle(robot: Mechanism, rows: list[Array]) -> tuple[tuple[str, ...], int]:
    """Joints that neither the loops nor the held actuated joints determine, where they are least.

    ``rows``: per configuration the constraint rows and those that hold actuated loop joints.
    """
    held = velocity_mask(robot, tuple(frozenset(robot.actuated).intersection(robot.joints)))
    best = max(rows, key=lambda stacked: jacobian_rank(stacked[:, ~held]))
    bound = ~held & best.any(axis=0)
    null = null_space(best[:, bound]).T
    moving = ~held & ~bound
    dof = len(null) + int(np.sum(moving))
    moving[bound] = np.linalg.norm(null, axis=0) > MOTION_SHARE
    return tuple(n for n in robot.joints if moving[robot.coordinates(n).v].any()), dof


def _odd_masses(robot: Mechanism) -> list[str]:
    """Bodies so light against the others that their mass is a placeholder."""
    masses = [inertia.mass for inertia in robot.model.inertias]
    heaviest = max(masses[1:], default=0.0)
    warnings = []
    for frame in robot.model.frames:
        mass = masses[frame.parentJoint]
        if frame.type == pin.FrameType.JOINT and 0 < mass < PLACEHOLDER_MASS * heaviest:
            warnings.append(
                f"what joint '{frame.name}' carries weighs {mass:.2g} kg, a millionth of the "
                "heaviest link or less: a placeholder?"
            )
    return warnings
