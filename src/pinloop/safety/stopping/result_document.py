"""A stop as a document: what `StopResult.save_json` writes.

It is in SI units, in the names where they do not depend on the joint. JSON has no infinity: null
stands for it where the description of a value says so.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, NotRequired, TypedDict

from ...boundary.marks import Check
from ..brakes.joint_brake import Source
from .safety_functions import CategoryNumber

FORMAT: Literal["pinloop-stop-1"] = "pinloop-stop-1"
"""Version tag of the document."""

PLANNING_AID = (
    "This is a planning aid, not a safety certificate: nothing in it replaces a measurement on "
    "the machine or the risk assessment."
)

Numbers = list[float]


def _hexadecimal(digest: str) -> None:
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError("expected 64 hexadecimal digits")


Digest = Annotated[str, Check(_hexadecimal, {"pattern": "^[0-9a-f]{64}$"})]


class ParameterRecord(TypedDict):
    """A parameter of a brake file, with its provenance."""

    value: Annotated[float | str | None, "null: docs/brakes.md tells what nothing stands for"]
    unit: str
    source: Source
    given: Annotated[bool, "false: the default, which nobody gave"]
    note: NotRequired[str]


class RobotRecord(TypedDict):
    """What was stopped, without its payload."""

    name: str
    file: Annotated[str | None, "null: it did not come from a file"]
    sha256: Annotated[Digest | None, "of the file, when this was written"]
    content_sha256: Annotated[
        Digest | None,
        "of bodies, joints and loops as they were computed with, whatever files "
        "they came from; null: a name of the robot fits into no URDF",
    ]


class BrakesRecord(TypedDict):
    """Brakes, gears, friction and drives; parameters without effect are left out."""

    robot: str
    file: str | None
    sha256: Annotated[Digest | None, "of the file, when this was written"]
    faults: list[str]
    chain: dict[str, ParameterRecord]
    joints: dict[str, dict[str, ParameterRecord]]


class PayloadRecord(TypedDict):
    """What the robot carried."""

    frame: str
    mass_kg: float
    com_m: Annotated[Numbers, "centre of mass in the frame"]
    inertia_kg_m2: Annotated[list[Numbers], "about the centre of mass, axes of the frame"]


class CategoryRecord(TypedDict):
    """Category of the stop."""

    number: CategoryNumber
    safety_function: NotRequired[Annotated[str, "of the drives, by IEC 61800-5-2"]]
    on_path: NotRequired[bool]
    law: NotRequired[Annotated[str, "how drives slow down, if not as the brakes file says"]]
    time_limit_s: NotRequired[float | None]
    defined_in: NotRequired[Annotated[str, "module:class of one that is not pinloop's own"]]


class ChainRecord(TypedDict):
    """From the signal to the command, as it was computed with."""

    sensor_s: float
    controller_s: float
    drive_off_s: float
    command_s: float


class StateRecord(TypedDict):
    """A state, joint by joint [rad, m, rad/s, m/s]; joints in space have several coordinates."""

    q: dict[str, Numbers]
    v: dict[str, Numbers]


class JointRecord(TypedDict):
    """The stop of a joint; its units are ``unit`` and ``torque_unit``."""

    unit: Literal["rad", "m"]
    torque_unit: Literal["N m", "N"]
    reaction_time_s: float
    braking_time_s: float
    time_s: float
    reaction_angle: float
    braking_angle: float
    angle: float
    travel: Annotated[float, "distance covered, in both directions"]
    excursion: Annotated[float, "largest distance from the start"]
    peak_speed: float
    impulse: float
    peak_torque: float
    peak_gear_torque: float
    gear_limit: Annotated[float | None, "null: not known"]
    gear_use: Annotated[float | None, "null: the limit is not known"]
    dissipated_J: float
    slips: int
    load: float
    hold: Annotated[float | None, "null: infinite, a tooth holds it"]
    margin: Annotated[float | None, "null: infinite"]
    state: Literal["held", "free", "moving"]


class ToolRecord(TypedDict):
    """The path of the tool."""

    frame: str
    start_m: Numbers
    end_m: Numbers
    reaction_length_m: float
    braking_length_m: float
    length_m: float
    displacement_m: float
    peak_speed_m_per_s: float


class LedgerRecord(TypedDict):
    """Energies in and out."""

    kinetic_before_J: float
    potential_drop_J: float
    drive_work_J: float
    dissipated_J: Annotated[
        dict[str, dict[str, float]], "per sink and joint, all coordinates of it"
    ]
    impacts_J: float
    kinetic_after_J: float
    error_J: Annotated[float, "energy balance error, in minus out"]
    turned_over_J: Annotated[float, "largest of the energies, also of those on the way"]
    relative_error: Annotated[float, "size of the error over the energy turned over"]


class GuessesRecord(TypedDict):
    """Brake data that are guesses."""

    parameters: list[str]
    missing: Annotated[list[str], "joints without rotor inertia, which makes stops too short"]


class IntervalRecord(TypedDict):
    """Between what 95 % of such stops are, as brake data are uncertain."""

    output: Annotated[str, "such as stopping_time, path, angle:joint_1"]
    unit: str
    value: float
    low: Annotated[float | None, "null: the robot may not be held"]
    high: Annotated[float | None, "null: the robot may not be held"]
    shares: Annotated[dict[str, float], "of the variance, by what makes it"]


class EventRecord(TypedDict):
    """Something that happened."""

    t_s: float
    what: str


class Document(TypedDict):
    """A computed stop of a robot: what went in, what came out. A planning aid, no certificate."""

    format: Literal["pinloop-stop-1"]
    headline: Annotated[str, "outcome and time; where brake data are guesses, says so"]
    disclaimer: str
    created: NotRequired[Annotated[str, "only if asked for; UTC, ISO 8601"]]
    versions: dict[str, str]
    settings: Annotated[dict[str, str], "further facts, as they were given"]
    robot: RobotRecord
    brakes: BrakesRecord
    category: CategoryRecord
    chain: ChainRecord
    payload: PayloadRecord | None
    gravity_m_per_s2: Numbers
    signal: Annotated[StateRecord, "state when the signal came"]
    end: Annotated[StateRecord, "state at the end"]
    outcome: Literal["stopped", "does not hold", "time-out"]
    stopping_time_s: float
    reaction_time_s: float
    power_off_s: Annotated[float | None, "null: the power stays on"]
    brakes_closed_s: Annotated[float | None, "null: no brake comes"]
    guesses: GuessesRecord
    intervals: list[IntervalRecord]
    joints: dict[str, JointRecord]
    tool: ToolRecord
    ledger: LedgerRecord
    events: list[EventRecord]
    warnings: list[str]
