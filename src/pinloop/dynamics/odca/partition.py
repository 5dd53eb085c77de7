"""Which bodies form a block: connected parts of the tree with few coordinates each.

Topology only. A block is one leaf of the assembly tree.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["partition"]


def partition(parents: Sequence[int], dofs: Sequence[int], limit: int) -> list[list[int]]:
    """Bodies of each block; blocks come after those they hang on.

    From the tips downwards, branches are cut off, the largest first, wherever they would become too
    large together (that gives the fewest parts; Kundu and Misra 1977). What is left on the ground
    is put together as it fits.

    Args:
        parents: parent of each body, -1 for the ground; parents come before children.
        dofs: coordinates of each body's joint.
        limit: coordinates of a block; a single joint may have more.
    """
    n, total = len(parents), sum(dofs)
    # Equal parts rather than full ones and a rest.
    limit = max(1, -(-total // max(1, -(-total // limit))))
    first, size = _branches(parents, dofs, limit)
    blocks: list[list[int]] = []
    block_of: list[int] = []
    grounded, room = -1, 0
    for k in range(n):
        if not first[k]:
            block_of.append(block_of[parents[k]])
        elif parents[k] < 0 and size[k] <= room:
            block_of.append(grounded)
            room -= size[k]
        else:
            block_of.append(len(blocks))
            blocks.append([])
            if parents[k] < 0:
                grounded, room = block_of[k], limit - size[k]
        blocks[block_of[k]].append(k)
    return blocks


def _branches(
    parents: Sequence[int], dofs: Sequence[int], limit: int
) -> tuple[list[bool], list[int]]:
    """Which bodies are the first of a branch that is cut off, and coordinates of that branch."""
    n, size = len(parents), list(dofs)
    branches: list[list[int]] = [[] for _ in range(n)]
    first = [True] * n
    for k in reversed(range(n)):
        branches[k].sort(key=lambda child: size[child])
        size[k] += sum(size[child] for child in branches[k])
        while size[k] > limit and branches[k]:
            size[k] -= size[branches[k].pop()]
        for child in branches[k]:
            first[child] = False
        if parents[k] >= 0:
            branches[parents[k]].append(k)
    return first, size
