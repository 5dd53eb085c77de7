"""What `pinloop assemble --json` and `pinloop regularize --json` print: forms and JSON schemas.

SI units, but in the keys that begin with ``shown``: these are as the table has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic needs it below Python 3.12

from ..io.documents import closed, schema_of

__all__ = ["DOCUMENTS", "AssemblyDocument", "RegularizationDocument", "json_schema"]


@closed
class JointRecord(TypedDict):
    """A joint of an assembled robot; the value and its units only if it has one axis."""

    q: list[float]
    value: NotRequired[float]
    unit: NotRequired[Literal["rad", "m"]]
    shown: NotRequired[float]
    shown_unit: NotRequired[Literal["deg", "mm"]]
    held: bool
    moved: float


@closed
class AssemblyDocument(TypedDict):
    """An assembled configuration, or the nearest one and why it is not closed."""

    format: Literal["pinloop-assembly-1"]
    robot: str
    closed: bool
    residual: float
    error: str | None
    blocked_by: list[str]
    branch: dict[str, int] | None
    q: list[float]
    joints: dict[str, JointRecord]


@closed
class CutRecord(TypedDict):
    """What another joint of the loop would give as the cut."""

    joint: str
    rows: int
    total_rows: int
    mobility: int


@closed
class LoopRecord(TypedDict):
    """The reduction of one loop; rows kept = selection times the rows of the pair."""

    loop: str
    pair: str
    root: str
    algebra_a: str
    algebra_b: str
    tied: str
    twists: str
    full_rows: int
    rows: int
    selection: list[list[float]]
    alternatives: list[CutRecord]


@closed
class RegularizationDocument(TypedDict):
    """The rows that are sufficient everywhere."""

    format: Literal["pinloop-regularization-1"]
    robot: str
    joints: list[str]
    nv: int
    loops: list[LoopRecord]
    couplings: list[str]
    full_rows: int
    rows: int
    mobility: int
    sampled_rows: int | None
    residual: float | None
    undecided: list[str]
    held: list[int] | None


DOCUMENTS: Mapping[str, Any] = {
    "assembly": AssemblyDocument, "regularization": RegularizationDocument,
}  # fmt: skip
"""The documents, by the names of their schema files."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a document of `DOCUMENTS`."""
    return schema_of(DOCUMENTS[name])
