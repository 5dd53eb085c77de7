"""What `pinloop simulate --json` prints: the form of the document, and its JSON schema.

SI units, in the names where they do not depend on the joint.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # pydantic needs it below Python 3.12

from ..io.documents import closed, schema_of

__all__ = ["RunDocument", "json_schema"]

Coordinates = dict[str, list[float]]


@closed
class EventRecord(TypedDict):
    """Something that happened."""

    t_s: float
    name: str


@closed
class ImpulseRecord(TypedDict):
    """Impulse of a constraint row; its unit is empty if the row mixes forces and moments."""

    row: str
    impulse: float
    unit: Literal["N s", "N m s", ""]
    determined: bool


@closed
class TransitionRecord(TypedDict):
    """A change of what is locked or open."""

    t_s: float
    events: list[str]
    before: str
    after: str
    energy_loss_J: float
    drive_work_J: float
    regular: bool
    impulses: list[ImpulseRecord]


@closed
class EnergyRecord(TypedDict):
    """Energies, and work done on the robot by each force."""

    largest_kinetic_J: float
    total_start_J: float
    total_end_J: float
    work_J: dict[str, float]
    largest_error_J: float


@closed
class StateRecord(TypedDict):
    """Coordinates [rad, m] and rates [rad/s, m/s] by joint."""

    q: Coordinates
    v: Coordinates


@closed
class RunDocument(TypedDict):
    """A run in a few numbers. ``failure`` says why it could not go on; null if it could.

    ``warnings`` say what is odd about it, such as energy that is missing.
    """

    format: Literal["pinloop-run-1"]
    robot: str
    ended: str
    failure: str | None
    warnings: list[str]
    start_s: float
    end_s: float
    states: int
    evaluations: int
    rejected_steps: int
    closure_residual: float
    energy: EnergyRecord | None
    events: list[EventRecord]
    transitions: list[TransitionRecord]
    modes: list[str]
    first: StateRecord
    last: StateRecord
    files: list[str]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the document."""
    return schema_of(RunDocument)
