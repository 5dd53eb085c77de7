"""The brakes of a robot: one `JointBrake` per joint, the chain before them, and faults.

A frozen value: changing it means getting another one. The format of its file is in `file`,
guesses from a robot are in `template`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...boundary.arguments import checked, public, require_kind
from ...boundary.values import forward
from ...errors import BadValue, UnknownName, printable
from ...model.mechanism import Mechanism, require_robot
from ...tables.number_format import listed
from .joint_brake import (
    CHAIN_PARAMETERS,
    JOINT_PARAMETERS,
    LAW_PARAMETERS,
    Chain,
    FrozenTable,
    JointBrake,
    Parameter,
    Source,
    Value,
    quantity,
)
from .laws import LAWS, StopLaw
from .template import driven_joints, guess
from .uncertainty import Correlation, correlation_matrix

_BY_CATEGORY = "given with the category of the stop"
_LONG = 0.5
"""Times above it [s] are suspicious: brakes of robots need hundredths of a second."""


@dataclass(frozen=True)
class Assumption:
    """A number that a result rests on.

    Args:
        joint: name of the joint; empty for the chain.
        value: its value; None where the parameter says that there is none.
        given: whether somebody gave it; if not, it is the default.
    """

    joint: str
    parameter: str
    value: Value
    unit: str
    source: Source
    given: bool = True


@public
@checked
@dataclass(frozen=True)
class Brakes:
    """Brakes of a robot.

    Args:
        joints: per joint, by name, its brake. A joint that is not here has neither brake nor drive,
            and the friction of the robot's file.
        chain: from the signal to the command.
        faults: what has been done to them, in words.
        source: file they came from, or "template"; not compared.
        robot: name of the robot that they were made for, if known.
        correlations: between numbers whose spread is given, as of a fit.
    """

    joints: Mapping[str, JointBrake]
    chain: Chain = field(default_factory=Chain)
    faults: tuple[str, ...] = ()
    source: str = field(default="", compare=False)
    robot: str = ""
    correlations: tuple[Correlation, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "joints", FrozenTable(self.joints))
        object.__setattr__(self, "faults", tuple(self.faults))
        object.__setattr__(self, "correlations", tuple(self.correlations))
        if self.correlations:
            correlation_matrix(list(self.spreads), self.correlations)

    @property
    def spreads(self) -> dict[str, float]:
        """Standard deviations that are given, by numbers such as ``delay:joint_1``."""
        tables = {"": self.chain.spreads} | {f":{n}": b.spreads for n, b in self.joints.items()}
        return {name + of: x for of, table in tables.items() for name, x in table.items()}

    @classmethod
    def from_yaml(cls, path: str | Path) -> Brakes:
        """Read a brake file (docs/brakes.md).

        Raises:
            LoadError: names file, line and key.
        """
        way_out = "give a brakes file, or pl.Brakes.template(robot) as a first guess"
        require_kind(path, (str, os.PathLike), "brakes", way_out)
        return forward("safety.brakes.file", "read_brakes", path)

    @classmethod
    def template(cls, robot: Mechanism) -> Brakes:
        """Guess brakes from what a robot's file says: a start for editing, no data.

        Limits, losses and drives of the robot are marked "published", everything else "guess".

        Raises:
            BadValue: the robot has no actuated joint with one degree of freedom.
        """
        require_robot(robot)
        joints, chain = guess(robot)
        return cls(joints, chain, (), "template", robot.name)

    def to_yaml(self, path: str | Path) -> Path:
        """Write a brake file for editing; `from_yaml` reads the same back.

        Raises:
            BadValue: it cannot be written, or there are no brakes.
        """
        return forward("safety.brakes.file", "write_brakes", path, self)

    def missing(self, joint: str) -> Brakes:
        """Return the same with the brake of ``joint`` gone; gear, friction and drive stay."""
        self._braked(joint)
        return self._with_fault(joint, "missing", kind="none")

    def late(self, joint: str, by: float) -> Brakes:
        """Return the same with the brake of ``joint`` coming ``by`` [s] later."""
        if not (math.isfinite(by) and by >= 0):
            raise BadValue(f"the brake of '{joint}' cannot be late by {by} s; give a time >= 0")
        delay = self._braked(joint).delay + by
        return self._with_fault(joint, f"late by {float(by):g} s", delay=delay)

    def weak(self, joint: str, factor: float) -> Brakes:
        """Return the same with both torques of the brake of ``joint`` times ``factor``, 0 to 1."""
        if not 0 <= factor <= 1:
            raise BadValue(
                f"a weak brake of '{joint}' has a fraction of its torque, 0 to 1, not {factor}"
            )
        brake = self._braked(joint)
        if brake.kind == "tooth":
            raise BadValue(f"joint '{joint}' has a tooth brake: it has no torque to be weak in")
        static = None if brake.static_torque is None else brake.static_torque * factor
        torques = {"dynamic_torque": brake.dynamic_torque * factor, "static_torque": static}
        return self._with_fault(joint, f"at {100 * float(factor):g} % of its torque", **torques)

    def at_band(self, band: float | Mapping[str, float]) -> Brakes:
        """Return the same with brakes elsewhere in their bands.

        Args:
            band: -1 (low end) to 1 (high end), for all joints or per joint; the others stay.
        """
        bands = band if isinstance(band, Mapping) else dict.fromkeys(self.joints, band)
        changed = {name: replace(self._joint(name), band=at) for name, at in bands.items()}
        return replace(self, joints={**self.joints, **changed})

    def with_law(self, law: StopLaw, joints: Iterable[str]) -> Brakes:
        """Return the same with drives that stop by a law, and with the numbers that it gives.

        A law that is not in the brakes file leaves its name there as it was.

        Args:
            law: the law.
            joints: whose drives; what has no entry here has no numbers either.
        """
        changes: dict[str, Any] = {k: x for k, x in law.own.items() if k in JOINT_PARAMETERS}
        if law.name in LAWS:
            changes["law"] = law.name
        changed = {
            name: replace(
                self.joints[name],
                **changes,
                sources={**self.joints[name].sources, **dict.fromkeys(changes, "guess")},
                notes={**self.joints[name].notes, **dict.fromkeys(changes, _BY_CATEGORY)},
            )
            for name in joints
            if name in self.joints
        }
        return replace(self, joints={**self.joints, **changed})

    def with_brakes(self, other: Brakes, prefix: str = "") -> Brakes:
        """Return the same with the brakes of another robot that is mounted on this one.

        The chain is that of this robot: there is one signal for both. See `Mechanism.with_robot`.

        Args:
            other: the brakes of the other robot.
            prefix: comes before the names of its joints.
        """
        added = {prefix + name: brake for name, brake in other.joints.items()}
        if taken := sorted({*added} & {*self.joints}):
            raise BadValue(f"both brakes have a joint '{taken[0]}'; give another prefix")
        renamed = (fault.replace("brake of ", f"brake of {prefix}", 1) for fault in other.faults)
        faults = (*self.faults, *renamed)
        return replace(self, joints={**self.joints, **added}, faults=faults, source="", robot="")

    def for_robot(self, robot: Mechanism) -> Brakes:
        """Check that every brake sits on a joint of ``robot`` with one degree of freedom.

        Returns:
            The same object.

        Raises:
            UnknownName: the robot has no such joint.
            BadValue: the joint is fixed, closes a loop or has several degrees of freedom.
            LoadError: the same of brakes from a file: names file and line.
        """
        for name in self.joints:
            try:
                _require_one_dof(robot, name)
            except (BadValue, UnknownName) as error:
                raise forward("safety.brakes.file", "misfit", self, name, error) from None
        return self

    def motorized(self, robot: Mechanism) -> tuple[str, ...]:
        """Joints of ``robot`` that have a motor, in its order.

        Those that its file calls actuated. Where it does not say, those with an entry here that has
        a brake or a number of gear or motor; all others are passive.
        """
        named = robot.description.actuated
        return tuple(
            name
            for name in driven_joints(robot)
            if named is not None or (name in self.joints and self.joints[name].has_motor)
        )

    def uncovered(self, robot: Mechanism) -> tuple[str, ...]:
        """Actuated joints of ``robot`` that have no entry here: nothing would stop them."""
        moving = (name for name in robot.actuated if name in robot.joints)
        return tuple(name for name in moving if name not in self.joints)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Numbers that are possible but suspicious, one sentence each."""
        sentences = [
            f"chain: {name} is {value:g} s, more than half a second; times are in seconds"
            for name in CHAIN_PARAMETERS
            if (value := getattr(self.chain, name)) > _LONG
        ]
        for name, brake in self.joints.items():
            sentences += [f"joint '{name}': {sentence}" for sentence in _suspicions(brake)]
        return tuple(sentences)

    def assumptions(
        self, robot: Mechanism | None = None, chain: Chain | None = None
    ) -> tuple[Assumption, ...]:
        """Every number that a stop rests on, chain first, with its provenance.

        A parameter that follows from another has its value: a static torque that is not given is
        the dynamic one. Parameters that this kind of brake does not have are left out.

        Args:
            robot: gives sliding joints their units, and a rotor inertia that is not given its
                value; without it units are those of turning joints.
            chain: that of the stop, which a trigger may have changed; that of the brakes by
                default.
        """
        times = []
        for name, parameter in CHAIN_PARAMETERS.items():
            source, given = self.chain.sources.get(name, "guess"), name in self.chain.sources
            time = getattr(self.chain if chain is None else chain, name)
            if time != getattr(self.chain, name):
                source, given = "guess", True
            times.append(Assumption("", name, time, parameter.unit, source, given))
        rows = [
            _assumption(name, brake, key, parameter, robot)
            for name, brake in self.joints.items()
            for key, parameter in JOINT_PARAMETERS.items()
            if brake.uses(key)
        ]
        return (*times, *rows)

    def _joint(self, joint: str) -> JointBrake:
        if joint not in self.joints:
            raise UnknownName("brake of joint", joint, self.joints, self.robot)
        return self.joints[joint]

    def _braked(self, joint: str) -> JointBrake:
        """The entry of a joint whose brake can fail."""
        brake = self._joint(joint)
        if brake.kind == "none":
            raise BadValue(f"joint '{joint}' has no brake that could fail (kind: none)")
        return brake

    def _with_fault(self, joint: str, fault: str, **changes: Any) -> Brakes:
        changed = replace(self._joint(joint), **changes)
        return replace(
            self,
            joints={**self.joints, joint: changed},
            faults=(*self.faults, f"brake of {joint} {fault}"),
        )


def _suspicions(brake: JointBrake) -> list[str]:
    """What is suspicious about the numbers of one joint."""
    sentences = []
    ratio = brake.gear_ratio
    if ratio < 1:
        sentences.append(
            f"gear_ratio is {ratio:g}; it is motor turns per joint turn, mostly above 1"
        )
    if brake.efficiency < 0.3:
        sentences.append(f"efficiency is {brake.efficiency:g}; it is a fraction, mostly above 0.3")
    if brake.kind == "none":
        return sentences
    if brake.kind == "friction" and brake.static == 0:
        sentences.append("has a friction brake without torque; write kind: none if it has no brake")
    if brake.kind == "friction" and brake.static > 2 * brake.dynamic_torque:
        sentences.append(
            f"static_torque is {brake.static:g}, more than twice dynamic_torque "
            f"({brake.dynamic_torque:g}); 1.0 to 1.3 times is usual"
        )
    for name, value in (("delay", brake.delay), ("rise", brake.rise)):
        if value > _LONG:
            sentences.append(
                f"{name} is {value:g} s, more than half a second; times are in seconds"
            )
    return sentences


def _assumption(
    joint: str, brake: JointBrake, key: str, parameter: Parameter, robot: Mechanism | None
) -> Assumption:
    """One parameter of one joint, with the value that stands for it where it is not given."""
    sliding = False
    value, source = getattr(brake, key), brake.sources.get(key, "guess")
    if key == "static_torque":
        value = brake.static
    if robot is not None:
        row = robot.coordinates(joint).v.start
        sliding = bool(robot.is_translation[row])
        if key == "rotor_inertia" and value is None:
            value = float(robot.model.armature[row]) / brake.gear_ratio**2
            # No robot has rotors of nothing: a file without armature does not know them.
            source = "published" if value > 0.0 else "guess"
    unit = parameter.unit_at(sliding=sliding, side=brake.side)
    # The place in the band is chosen, not found out: it cannot be missing.
    return Assumption(joint, key, value, unit, source, key == "band" or key in brake.sources)


# -- assumptions in words -----------------------------------------------------------------------

_CONTROLLED = ("drive_torque", "law", *LAW_PARAMETERS)
"""Parameters without any effect in a stop of category 0."""
_JOINED = "\N{NO-BREAK SPACE}"
_MOST_VALUES = 6
"""So many different values of a parameter are listed; of more, the range is said."""


def assumption_lines(rows: Iterable[Assumption], category: int) -> tuple[str, ...]:
    """Assumptions in few lines: by provenance, equal numbers together.

    ``category``: number of the category; what has no effect in it is left out.
    """
    shown = [
        row
        for row in rows
        if row.parameter != "band" and not (category == 0 and row.parameter in _CONTROLLED)
    ]
    joints = list(dict.fromkeys(row.joint for row in shown if row.joint))
    lines = []
    for heading, chosen in (
        ("guessed", [row for row in shown if row.source == "guess" and row.given]),
        ("not given, default taken", [r for r in shown if r.source == "guess" and not r.given]),
        ("published", [row for row in shown if row.source == "published"]),
        ("fitted", [row for row in shown if row.source == "fitted"]),
        ("measured", [row for row in shown if row.source == "measured"]),
    ):
        lines += [f"{heading}, {line}" for line in _grouped(chosen, joints)]
    return tuple(lines)


def _grouped(rows: Sequence[Assumption], joints: Sequence[str]) -> Iterator[str]:
    """Rows of one provenance: the chain, what all joints share, what differs."""
    chain = [_said(row) for row in rows if not row.joint]
    if chain:
        yield f"chain: {', '.join(chain)}"
    tables: dict[tuple[str, str], dict[str, list[Assumption]]] = {}
    for row in rows:
        if row.joint:
            value, unit = _value(row)
            tables.setdefault((row.parameter, unit), {}).setdefault(value, []).append(row)
    common = [
        _said(next(iter(values.values()))[0])
        for values in tables.values()
        if len(values) == 1 and len(next(iter(values.values()))) == len(joints)
    ]
    if common:
        yield f"{'all joints' if len(joints) > 1 else printable(joints[0])}: {', '.join(common)}"
    for (parameter, unit), values in tables.items():
        if len(values) > 1 or len(next(iter(values.values()))) < len(joints):
            in_unit = f"{_JOINED}[{unit.replace(' ', _JOINED)}]" if unit else ""
            yield f"{parameter}{in_unit}: {_spread(values)}"


def _value(row: Assumption) -> tuple[str, str]:
    parameters = JOINT_PARAMETERS if row.joint else CHAIN_PARAMETERS
    return quantity(row.value, row.unit, parameters[row.parameter])


def _said(row: Assumption) -> str:
    """Parameter, value and unit, not to be torn apart at the end of a line."""
    return _JOINED.join((row.parameter, *" ".join(_value(row)).split()))


def _spread(values: dict[str, list[Assumption]]) -> str:
    """Different values of a parameter with their joints, or their range if there are many."""
    first = {value: alike[0].value for value, alike in values.items()}
    numbers = {value: number for value, number in first.items() if isinstance(number, float)}
    if len(values) > _MOST_VALUES and len(numbers) == len(values):
        low, high = min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)
        return f"{low} to {high} ({sum(map(len, values.values()))} joints)"
    return ", ".join(
        f"{value}{_JOINED}({listed(printable(row.joint) for row in alike)})"
        for value, alike in values.items()
    )


def _require_one_dof(robot: Mechanism, joint: str) -> None:
    dof = robot.coordinates(joint).nv
    if dof != 1:
        raise BadValue(
            f"joint '{joint}' of robot '{robot.name}' has {dof} degrees of freedom; only joints "
            "with one can have a brake"
        )
