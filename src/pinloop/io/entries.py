"""What tables of joints have in common: entries for pairs and couplings, and names that must exist.

Loops files, screw tables and Gepetto's YAML are read with it. Knows no file format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pinocchio as pin

from ..boundary.marks import As, Direction, Misfit, Name, Short
from ..errors import BadValue, LoadError, UnknownName
from ..model.description import GROUND, Coupling, Description, Joint
from ..model.pairs import Pair, make_pair, pair_class

__all__ = [
    "CouplingEntry",
    "LimitsEntry",
    "PairEntry",
    "known_joints",
    "locate",
    "make_couplings",
    "need_unique",
]

_WORLD = (GROUND, "world", "universe")
"""Names of the ground, unless a body is called so."""


@dataclass(frozen=True, kw_only=True)
class PairEntry:
    """A pair with its axes and parameters, as loops file and screw table write it."""

    defined_in: Annotated[
        Name | None, "Python class of a pair that is not pinloop's own, as module:class"
    ] = None
    pair: Annotated[Name, "name of the pair"]
    axis: Annotated[Direction | None, "axis of the pair"] = None
    axis2: Annotated[Direction | None, "second axis (universal only)"] = None
    pitch: Annotated[float | None, "advance per radian [m/rad] (helical only)"] = None
    length: Annotated[float | None, "length [m] (rod only)"] = None
    parameters: Annotated[
        Mapping[Name, float | tuple[float, ...]], "parameters of a pair that is not pinloop's own"
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            two_axes = self.pair_class.axis_count() == 2
        except BadValue as error:
            raise Misfit("pair", str(error)) from None
        if self.axis2 is not None and not two_axes:
            raise BadValue(f"a {self.pair_class.name} pair has no axis2; leave it out")
        if self.axis2 is None and two_axes:
            raise BadValue(f"a {self.pair_class.name} pair needs its second axis: axis2")

    @property
    def pair_class(self) -> type[Pair]:
        """The class that the name means."""
        return pair_class(self.pair, self.defined_in)

    def make_pair(self, measured: Mapping[str, float] | None = None) -> Pair:
        """Build the pair; what is ``measured`` is used where the entry gives no parameter."""
        given = {"pitch": self.pitch, "length": self.length, **self.parameters}
        given = {key: value for key, value in given.items() if value is not None}
        return make_pair(self.pair, **{**(measured or {}), **given})


def _limit(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number, not yes or no")
    try:
        limit = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("expected a number") from None
    if math.isnan(limit):
        raise ValueError("expected a number")
    return limit


_Limit = Annotated[float, As(Any, _limit, {"type": "number"})]
_Limits = Annotated[tuple[_Limit, ...], Short(_Limit, lambda limit: (limit,))]
"""A number or one per degree of freedom; infinite ones are welcome."""


@dataclass(frozen=True, kw_only=True)
class LimitsEntry:
    """Limits of a joint, a number or one per degree of freedom."""

    lower: Annotated[_Limits, "lower position limit [rad, m]"] = ()
    upper: Annotated[_Limits, "upper position limit [rad, m]"] = ()
    velocity: Annotated[_Limits, "largest speed [rad/s, m/s]"] = ()
    effort: Annotated[_Limits, "largest torque or force [N m, N]"] = ()

    def __post_init__(self) -> None:
        if self.lower and self.upper and len(self.lower) != len(self.upper):
            raise ValueError("needs as many lower limits as upper ones")
        if any(low > high for low, high in zip(self.lower, self.upper, strict=False)):
            raise ValueError(f"lower limit {self.lower} is above upper limit {self.upper}")
        if any(value < 0 for value in (*self.effort, *self.velocity)):
            raise ValueError("effort and velocity limits must not be negative")

    def values(self, dof: int) -> dict[str, Any]:
        """Limits as a joint with ``dof`` degrees of freedom keeps them.

        Position limits have a value per coordinate, of which some pairs have more.

        Raises:
            BadValue: another number of values.
        """
        for key, values in (("velocity", self.velocity), ("effort", self.effort)):
            if len(values) not in (0, dof):
                raise BadValue(f"{key} has {len(values)} values for {dof} degrees of freedom")
        return {
            "lower": self.lower or (-np.inf,) * len(self.upper),
            "upper": self.upper or (np.inf,) * len(self.lower),
            "velocity": self.velocity,
            "effort": self.effort,
        }


@dataclass(frozen=True, kw_only=True)
class CouplingEntry:
    """A gear, rack or cam: ``joint = ratio * source + offset``, or a sum of polynomials = 0."""

    name: Annotated[Name, "name of the coupling, unique among couplings and joints"]
    joint: Annotated[Name | None, "joint that follows"] = None
    source: Annotated[Name | None, "joint that is followed"] = None
    ratio: Annotated[float | None, "joint motion per source motion"] = None
    offset: Annotated[float | None, "joint position at source zero, 0 by default"] = None
    polynomials: Annotated[
        Mapping[Name, tuple[float, ...]] | None,
        "per joint the coefficients, constant first; their sum vanishes",
    ] = None

    def __post_init__(self) -> None:
        linear = (self.joint, self.source, self.ratio)
        if self.polynomials is None:
            if any(value is None for value in linear):
                raise ValueError("needs 'joint', 'source' and 'ratio', or else 'polynomials'")
            if self.joint == self.source:
                raise ValueError(f"couples joint '{self.joint}' with itself")
        elif any(value is not None for value in (*linear, self.offset)):
            raise ValueError("has 'polynomials' beside 'joint', 'source', 'ratio' or 'offset'")
        elif not any(c for row in self.polynomials.values() for c in row[1:]):
            raise ValueError("needs a joint with a coefficient beyond the constant one")

    def make(self) -> Coupling:
        """Build the coupling row."""
        if self.polynomials is not None:
            rows = {
                joint: (*row, 0.0, 0.0)[: max(2, len(row))]
                for joint, row in self.polynomials.items()
            }
            return Coupling(self.name, tuple(rows), tuple(rows.values()))
        return Coupling.linear(
            self.name, self.joint or "", self.source or "", self.ratio or 0.0, self.offset or 0.0
        )


def locate(description: Description, name: str) -> tuple[str, pin.SE3]:
    """Body and placement on it of what is called ``name``.

    Bodies come first, then the ground (also as world or universe), named frames, and joints: a
    joint's name means the frame of its child body.

    Raises:
        UnknownName: nothing is called so; names the closest.
    """
    bodies = [body.name for body in description.bodies]
    if name in bodies:
        return name, pin.SE3.Identity()
    if name in _WORLD:
        return GROUND, pin.SE3.Identity()
    for frame in description.frames:
        if frame.name == name:
            return frame.body, frame.placement
    for joint in description.joints:
        if joint.name == name:
            return joint.child, pin.SE3.Identity()
    frames = [frame.name for frame in description.frames]
    joints = [joint.name for joint in description.joints]
    raise UnknownName("body, frame or joint", name, [*bodies, *frames, *joints])


def known_joints(names: Iterable[str], joints: Sequence[Joint], key: str, source: str) -> None:
    """Check that ``key`` names joints that exist, each once."""
    known = [joint.name for joint in joints]
    listed = list(names)
    for name in listed:
        if name not in known:
            raise LoadError(f"{key}: {UnknownName('joint', name, known)}", source=source)
    need_unique(listed, f"{key}: joint", source)


def make_couplings(
    entries: Iterable[CouplingEntry], joints: Sequence[Joint], source: str
) -> tuple[Coupling, ...]:
    """Build coupling rows between joints with one degree of freedom."""
    couplings = tuple(entry.make() for entry in entries)
    dofs = {joint.name: joint.pair.dof for joint in joints}
    for coupling in couplings:
        where = f"coupling '{coupling.name}'"
        known_joints(coupling.joints, joints, where, source)
        for name in coupling.joints:
            if dofs[name] != 1:
                problem = f"joint '{name}' has {dofs[name]} degrees of freedom; only one can be"
                raise LoadError(f"{where}: {problem} coupled", source=source)
    return couplings


def need_unique(names: Iterable[str], kind: str, source: str) -> None:
    """Check that no name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            problem = f"{kind} '{name}' is there twice; names must be unique"
            raise LoadError(problem, source=source)
        seen.add(name)
