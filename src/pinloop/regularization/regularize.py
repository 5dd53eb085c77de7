"""The smallest sufficient set of loop rows, found once, before any simulation (paper 5).

Which relative twists can the bodies of a cut joint have at all? The motion algebras of the chains
bound them, loop after loop (`loop_bounds`); rows that only forbid what cannot happen are dropped.
The method is conservative: it never drops a row that is needed at any configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..assembly.assemble import assemble
from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..errors import BadValue, UnknownName
from ..model.graph import Cluster, with_cuts
from ..model.mechanism import Mechanism, build, require_robot
from ..model.reduction import CutAlternative, LoopReduction, Regularization
from ..model.tree import LoopJoint
from ..tolerances import Regularity
from .loop_bounds import Bound, Reference, process, process_cluster, selection
from .sampled_redundancy import drop_sampled

_COMPARED = 8
"""Loops of the largest cluster whose other cuts are compared."""


@public
def regularize(
    robot: Mechanism,
    *,
    cut: str | Iterable[str] | None = None,
    recut: bool = False,
    compare_cuts: bool = False,
    sampled: bool = False,
    samples: int = 12,
    seed: int = 0,
) -> Mechanism:
    """Return the robot with its redundant loop rows removed.

    Args:
        robot: the mechanism; it must be possible to assemble it.
        cut: name or names of joints to be cut. Changes the coordinates of the robot.
        recut: try every joint of every loop as the cut joint (but universal ones and those of
            couplings) and keep the best choice; what ``cut`` names stays. Changes the coordinates
            of the robot if that gains something.
        compare_cuts: let the report say what other cuts of each loop would give; left out where
            more than eight loops share joints, as each cut takes as long as the loops themselves.
        sampled: keep only as many rows as their rank on this assembly branch, where no motion
            group explains why the others are redundant. Not proven, but checked at fresh
            configurations; loops that fail the check keep all rows. Where the kept rows degenerate
            in a run, others replace them (`renew_rows`).
        samples: number of random configurations of ``sampled``.
        seed: seed of the random configurations.

    Returns:
        The mechanism with fewer rows; its ``regularization`` is the report.

    Raises:
        LoopNotClosed: the robot cannot be assembled.
        UnknownName: ``cut`` names a joint that the robot does not have.
    """
    require_robot(robot)
    if samples < 1:
        raise BadValue(f"samples is {samples}; it must be at least 1")
    chosen = _names(cut)
    if chosen:
        robot = _cut_at(robot, chosen)
    if recut:
        robot = _best_cuts(robot, chosen)
    q = assemble(robot)
    reference = Reference.of(robot, q)
    bounds = process(reference)
    over = {bound.edge.name for bound in bounds if bound.over}
    turned = (_turned_over(loop) if loop.name in over else loop for loop in robot.loops)
    robot = replace(robot, loops=tuple(turned))
    selections = {bound.edge.name: selection(reference, bound) for bound in bounds}
    alternatives = _alternatives(reference, bounds, _COMPARED) if compare_cuts else {}
    joints = {loop.name: loop for loop in robot.loops}
    loops = tuple(
        _summary(joints[name], reference, bound, selections[name], alternatives.get(name, ()))
        for name, bound in zip(selections, bounds, strict=True)
    )
    couplings = len(robot.couplings)
    full = sum(loop.pair.rows for loop in robot.loops) + couplings
    rows = sum(len(u) for u in selections.values()) + couplings
    coupling_names = tuple(coupling.name for coupling in robot.couplings)
    report = Regularization(loops, coupling_names, full, rows, robot.nv - rows)
    reduced = replace(robot, regularization=report)
    return drop_sampled(reduced, q, samples, seed) if sampled else reduced


def count_rows(robot: Mechanism, q: Array) -> int:
    """Rows that regularization leaves, couplings included, without the report."""
    reference = Reference.of(robot, q)
    return sum(bound.rows for bound in process(reference)) + len(robot.couplings)


def _alternatives(
    reference: Reference, bounds: list[Bound], largest: int
) -> dict[str, tuple[CutAlternative, ...]]:
    """For each loop what cutting another of its joints instead would leave."""
    rows = {bound.edge.name: bound.rows for bound in bounds}
    total = sum(rows.values())
    dofs = sum(edge.dof for name, edge in reference.edges.items() if name not in rows)
    alternatives = {}
    for cluster in reference.clusters:
        if len(cluster.names) > largest:
            continue
        others = total - sum(rows[name] for name in cluster.names)
        for name in cluster.names:
            alternatives[name] = tuple(
                _exchanged(reference, cluster, (name, other), others, dofs)
                for other in _cuttable(reference, name)
            )
    return alternatives


def _cuttable(reference: Reference, loop: str) -> list[str]:
    """Joints of a loop that could be cut instead of its cut joint, if that can be in the tree."""
    if reference.edges[loop].algebra == reference.algebras.everything:
        return []
    return [
        name
        for name in reference.loops[loop]
        # A joint with several axes that make no group (universal) stays in the tree.
        if reference.algebras.dim(reference.edges[name].algebra) == reference.edges[name].dof
        and name not in reference.coupled
    ]


def _exchanged(
    reference: Reference, cluster: Cluster, cut: tuple[str, str], others: int, dofs: int
) -> CutAlternative:
    """Rows and mobility with another joint of a loop cut."""
    old, new = cut
    cuts = [new if name == old else name for name in cluster.names]
    bounds = process_cluster(reference, cluster, sorted(cuts, key=reference.order.__getitem__))
    rows = {bound.edge.name: bound.rows for bound in bounds}
    total = others + sum(rows.values())
    dofs += reference.edges[old].dof - reference.edges[new].dof
    return CutAlternative(new, rows[new], total, dofs - total - reference.couplings)


def _best_cuts(robot: Mechanism, fixed: list[str]) -> Mechanism:
    """Exchange cut joints, but fixed ones, as long as that gains mobility or saves rows.

    Clusters do not know of each other: in each of them the best exchange is made.
    """
    for _ in range(len(robot.description.joints)):
        reference = Reference.of(robot, assemble(robot))
        bounds = process(reference)
        total = sum(bound.rows for bound in bounds)
        alternatives = _alternatives(reference, bounds, len(reference.cuts))
        now = (robot.nv - total - reference.couplings, -total)
        exchanges: dict[str, str] = {}
        for cluster in reference.clusters:
            gains = [
                ((other.mobility, -other.total_rows), loop, other.joint)
                for loop in cluster.names
                for other in alternatives[loop]
                if loop not in fixed
            ]
            gain, loop, joint = max(gains, key=lambda exchange: exchange[0], default=(now, "", ""))
            if gain > now:
                exchanges[loop] = joint
        if not exchanges:
            break
        robot = _cut_at(robot, [exchanges.get(name, name) for name in reference.cuts])
    return robot


def _names(cut: str | Iterable[str] | None) -> list[str]:
    """Names of joints from what the user gave."""
    if cut is None or isinstance(cut, str):
        return [] if cut is None else [cut]
    names = list(cut) if isinstance(cut, Iterable) else [cut]
    if not all(isinstance(name, str) for name in names):
        raise BadValue(f"cut is {cut!r}; it must be the name of a joint, or several")
    return names


def _cut_at(robot: Mechanism, names: list[str]) -> Mechanism:
    """The robot with the named joints cut."""
    known = [joint.name for joint in robot.description.joints]
    for name in names:
        if name not in known:
            raise UnknownName("joint", name, known, robot.name)
    joints = with_cuts(robot.description.joints, names)
    return build(replace(robot.description, joints=joints), kinematics_only=True)


def _turned_over(loop: LoopJoint) -> LoopJoint:
    """A loop joint with A and B exchanged; a pair whose motions form a group is the same so."""
    chains = replace(loop.loop, chain_a=loop.loop.chain_b, chain_b=loop.loop.chain_a)
    return LoopJoint(
        loop.name, loop.pair, loop.body_b, loop.body_a, loop.frame_b, loop.frame_a, chains
    )


def _summary(
    loop: LoopJoint,
    reference: Reference,
    bound: Bound,
    selection: Array,
    alternatives: tuple[CutAlternative, ...],
) -> LoopReduction:
    """The report on one loop."""
    algebras = reference.algebras

    def chain(names: tuple[str, ...]) -> str:
        screws = algebras.nothing
        for name in names:
            if name in reference.edges:
                screws = algebras.join(screws, reference.edges[name].algebra)
        return reference.name(algebras[screws])

    return LoopReduction(
        loop=loop.name,
        pair=loop.pair.name,
        root=loop.loop.root,
        algebra_a=chain(loop.loop.chain_a),
        algebra_b=chain(loop.loop.chain_b),
        tied=reference.name(bound.tied),
        twists=reference.name(bound.twists),
        full_rows=loop.pair.rows,
        selection=selection,
        alternatives=alternatives,
    )


def branch_signs(robot: Mechanism, q: ArrayLike) -> dict[str, int] | None:
    """Signs of an assembled configuration: 1, -1, or 0 at a singularity.

    The joints without drives follow from those with drives through the loops. Where that system is
    square, the sign of its determinant is the same all along a branch: only a singularity leads
    from a configuration to one with another sign.

    One sign per group of loops that can only be closed together, so that one group that flips is
    seen whatever the others do.

    Returns:
        Per group, named by its loops and couplings, its sign; empty without loops; None where the
        rows are not as many as the coordinates without drives, so that there is no determinant.
    """
    q = robot.checked_configuration(q)
    reduced = robot if robot.regularization is not None else regularize(robot)
    rows = Constraints(reduced)
    driven = np.zeros(robot.nv, dtype=bool)
    for joint in robot.actuated:
        if joint in robot.joints:
            driven[robot.coordinates(joint).v] = True
    passive = np.flatnonzero(~driven)
    if len(rows) == 0:
        return {}
    if len(rows) != len(passive):
        return None
    weights = np.where(rows.robot.is_translation, 1.0, robot.length)
    J = (rows.jacobian(q) * weights)[:, passive]
    pattern = rows.coordinates[:, passive]
    matched = scipy.sparse.csgraph.maximum_bipartite_matching(
        scipy.sparse.csr_array(pattern), perm_type="column"
    )
    if np.any(matched < 0):
        return None
    owner = np.empty(len(rows), dtype=object)
    for name, part in rows.rows_of.items():
        owner[part] = name
    # Rows whose unknowns need each other belong together (Dulmage, Mendelsohn).
    _, group = scipy.sparse.csgraph.connected_components(
        pattern[:, matched].astype(np.int8), connection="strong"
    )
    signs: dict[str, int] = {}
    for number in dict.fromkeys(group):
        here = np.flatnonzero(group == number)
        names = "+".join(dict.fromkeys(owner[here]))
        block = J[np.ix_(here, np.sort(matched[here]))]
        signs[names] = signs.get(names, 1) * _sign(block)
    return signs


def _sign(block: Array) -> int:
    values = np.linalg.svd(block, compute_uv=False)
    if values[-1] <= Regularity.SINGULAR * values[0]:
        return 0
    return int(np.linalg.slogdet(block)[0])
