"""Screw tables as cases: by chance, as JSON has them, and simpler ones.

The linkages are those of the generators of the tests. A table describes a closed mechanism whatever
its numbers are, and whichever joint is taken out: so simpler ones are easily had.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from tests import random_linkages
from tests.screw_tables import Table

from pinloop.model.description import GROUND

from .campaign import Data

MOVABLE = ("parallel mechanism", "graph", "bennett", "goldberg", "bricard")
"""Linkages of which most move."""


def draw_table(kind: str, seed: int) -> Table:
    """A random linkage of a kind."""
    if kind == "graph":
        return random_linkages.graph(seed)
    if kind == "parallel mechanism":
        return random_linkages.parallel_mechanism(seed)
    return random_linkages.overconstrained(seed, kind)


def draw_linkage(rng: np.random.Generator) -> Data:
    """A random linkage, and a seed for what is done with it."""
    seed, kind = int(rng.integers(2**31)), str(rng.choice(MOVABLE))
    return {"kind": kind, "seed": seed, "table": plain(draw_table(kind, seed))}


def plain(table: Table) -> Data:
    """A table as JSON has it, to the last bit."""
    data: Data = json.loads(json.dumps(table, default=lambda array: np.asarray(array).tolist()))
    return data


def simplify_linkage(data: Data) -> Iterator[Data]:
    """With simpler tables."""
    for table in simplify_table(data["table"]):
        yield data | {"table": table}


def simplify_table(table: Data) -> Iterator[Data]:
    """With fewer joints and bodies, even bodies, and numbers of few digits."""
    joints = table["joints"]
    for k, joint in enumerate(joints):
        yield _joined(table, k)
        if joint.get("cut"):
            yield table | {"joints": joints[:k] + joints[k + 1 :]}
    for k, body in enumerate(table["bodies"]):
        even = body | {"mass": 1.0, "com": [0.0] * 3, "inertia": np.eye(3).tolist()}
        if even != body:
            yield table | {"bodies": [*table["bodies"][:k], even, *table["bodies"][k + 1 :]]}
    for digits in (0, 1, 2, 3):
        rounded = table | {"joints": with_numbers(joints, partial(round, ndigits=digits))}
        if rounded != table:
            yield rounded


def _joined(table: Data, k: int) -> Data:
    """With both bodies of a joint as one."""
    ends = [table["joints"][k][end] for end in ("parent", "child")]
    left, lost = ends if ends[1] != GROUND else ends[::-1]
    joints = []
    for joint in table["joints"]:
        joint = joint | {e: left for e in ("parent", "child") if joint[e] == lost}
        if joint["parent"] != joint["child"]:
            joints.append(joint)
    bodies = [body for body in table["bodies"] if body["name"] != lost]
    return table | {"joints": joints, "bodies": bodies}


def with_numbers(value: Any, change: Callable[[float], float]) -> Any:
    """Data with all its numbers that are not counts changed."""
    if isinstance(value, dict):
        return {key: with_numbers(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [with_numbers(item, change) for item in value]
    return change(value) if isinstance(value, float) else value
