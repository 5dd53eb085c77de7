"""What regularization found: which rows of which loop are left, and why. Pure data that prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..boundary.values import construct_again
from ..errors import UnknownName
from .description import constant


@dataclass(frozen=True)
class CutAlternative:
    """What another choice of the cut joint of a loop would give.

    Args:
        joint: the joint that would be cut.
        rows: rows of its loop after reduction.
        total_rows: rows of all loops after reduction.
        mobility: estimated mobility of the whole mechanism, nv - rows; more means that fewer
            superfluous rows are left.
    """

    joint: str
    rows: int
    total_rows: int
    mobility: int


@dataclass(frozen=True, eq=False)
class LoopReduction:
    """The reduction of one loop.

    Args:
        loop: name of the cut joint.
        pair: name of its pair.
        root: root body of the loop.
        algebra_a: motion algebra of the chain from the root to the cut joint's frame A, by name.
        algebra_b: motion algebra of the chain to frame B, by name.
        tied: motion algebra that the chains and earlier loops leave the two bodies, by name.
        twists: twists that they leave them, which are what the rows are about, by name: part of
            ``tied``, and often no algebra.
        full_rows: rows of the pair.
        selection: ``U``, shape (rows, full_rows), orthonormal: reduced rows = U times full rows.
        alternatives: other joints of the loop as cut joint, if they were compared.
    """

    loop: str
    pair: str
    root: str
    algebra_a: str
    algebra_b: str
    tied: str
    twists: str
    full_rows: int
    selection: Array
    alternatives: tuple[CutAlternative, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "selection", constant(self.selection))

    __reduce__ = construct_again

    @property
    def rows(self) -> int:
        """Rows that are left."""
        return int(self.selection.shape[0])


@public
@dataclass(frozen=True, eq=False)
class Regularization:
    """Report of `regularize`; prints as a table.

    Args:
        loops: per loop what was found, in the order in which the loops were processed.
        couplings: names of the couplings that are kept.
        full_rows: rows before.
        rows: rows that are left.
        mobility: estimated mobility, nv - rows; a lower bound of the true one.
        sampled_rows: rows dropped because they are redundant on the sampled branch, though no
            motion group explains it; None if that was not asked for.
        residual: largest closure residual of the full rows at fresh configurations that were
            closed without the sampled rows, rad and characteristic lengths; None if not sampled.
        undecided: loops that keep rows although these are redundant where they were sampled, and
            why, a sentence each.
        by_geometry: the report before sampling, with all rows that motion groups leave; None if
            no rows were dropped by sampling.
        held: indices of the kept rows among those of ``by_geometry``: loops in the order of the
            robot, then couplings; None if no rows were dropped by sampling.
    """

    loops: tuple[LoopReduction, ...]
    couplings: tuple[str, ...]
    full_rows: int
    rows: int
    mobility: int
    sampled_rows: int | None = None
    residual: float | None = None
    undecided: tuple[str, ...] = ()
    by_geometry: Regularization | None = None
    held: tuple[int, ...] | None = None

    def selection(self, loop: str) -> Array:
        """``U`` of a loop, shape (rows, rows of its pair)."""
        selections = {entry.loop: entry.selection for entry in self.loops}
        if loop not in selections:
            raise UnknownName("loop", loop, selections)
        return selections[loop]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        values = asdict(replace(self, by_geometry=None))
        del values["by_geometry"]
        for loop in values["loops"]:
            loop["rows"] = len(loop["selection"])
            loop["selection"] = loop["selection"].tolist()
        return values

    def __str__(self) -> str:
        lines = [
            f"{self.full_rows} constraint equations -> {self.rows}, estimated mobility "
            f"{self.mobility}, a lower bound"
        ]
        for loop in self.loops:
            lines += [
                f"  {loop.loop}: {loop.pair}, {loop.full_rows} equations -> {loop.rows}",
                f"    chain to A: {loop.algebra_a}",
                f"    chain to B: {loop.algebra_b}",
                f"    together, and with the loops before: {loop.twists}",
            ]
            if loop.alternatives:
                cuts = loop.alternatives
                tried = (f"{c.joint} ({c.rows} equations, mobility {c.mobility})" for c in cuts)
                lines.append(f"    other cuts: {', '.join(tried)}")
        if self.sampled_rows == 0:
            lines.append("  on the sampled branch no more equations were dropped")
        elif self.sampled_rows is not None:
            lines.append(
                f"  on the sampled branch {self.sampled_rows} more redundant equations; closure "
                f"without them at fresh configurations: {self.residual:.1e}"
            )
        lines += [f"  {sentence}" for sentence in self.undecided]
        return "\n".join(lines)
