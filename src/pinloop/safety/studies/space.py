"""What varies in a study, and which points of that are looked at: grid, Sobol, random, corners.

A point of the space is one case: a table of variables and their values. Samplings know no robot:
their points are in the unit cube and come in blocks, so that a study needs no memory for those to
come; a point depends on its number alone, not on the blocks.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy

from ...assembly.search import is_outside
from ...boundary.arguments import public
from ...boundary.marks import Array, As
from ...errors import BadValue, UnknownName
from ...model.mechanism import Mechanism
from ...tables.number_format import SLIDING, units_of
from ...units import column_name
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import Chain
from ..brakes.template import driven_joints, position_range
from ..stopping import JointTrajectory

Range = float | tuple[float, float]

_ALL_SPEEDS = (-1.0, 1.0)
_BITS = 30
"""Of the numbers of Sobol's sequence; it has two to the power of it points."""


@dataclass(frozen=True)
class Variable:
    """Something that varies.

    ``kind``: "pose", "speed", "payload", "instant", "delay" or "band"; ``joint``: name of the
    joint; empty for what belongs to none; ``low``: smallest value; ``high``: largest value;
    ``unit``: "rad", "rad/s", "m", "m/s", "kg", "s", or "" for a band.
    """

    kind: str
    joint: str
    low: float
    high: float
    unit: str

    @property
    def name(self) -> str:
        """Name for points: "pose.joint_1", "payload"."""
        return f"{self.kind}.{self.joint}" if self.joint else self.kind

    @property
    def column(self) -> str:
        """Name of the column of a table, with the unit: "joint_1_pose_rad"."""
        return column_name(self.joint, self.kind, unit=self.unit)

    @property
    def varies(self) -> bool:
        """Whether it has more than one value."""
        return self.high > self.low

    def at(self, share: float) -> float:
        """The value at a part of the range, 0 to 1; both ends to the last digit."""
        return min(max(self.low * (1.0 - share) + self.high * share, self.low), self.high)


@public
@dataclass(frozen=True, eq=False)
class Space:
    """Ranges of what varies. A number keeps something fixed; what is left out is as said below.

    Args:
        pose: per driven joint its coordinate [rad, m]; by default its position limits, a whole turn
            where there are none. Loops are assembled.
        speed: per driven joint its speed [rad/s, m/s], or one range for all in parts of their
            velocity limits; by default -1 to 1 times the limits.
        payload: mass of the payload at the tool [kg]; none by default.
        motion: a recorded motion, whose instants take the place of poses and speeds; in a file the
            name of its CSV file.
        instant: when the signal comes, in the time of the motion [s]; by default any time from
            which the motion is known for long enough.
        delay: per joint, by how much its brake comes later [s].
        band: per joint, where its brake is in its tolerance band, -1 to 1; a range for all joints
            with a brake if it is not a table.
    """

    pose: Mapping[str, Range] | None = None
    speed: Mapping[str, Range] | Range = _ALL_SPEEDS
    payload: Range | None = None
    motion: Annotated[JointTrajectory, As(Path, JointTrajectory.from_csv)] | None = None
    instant: Range | None = None
    delay: Mapping[str, Range] = field(default_factory=dict)
    band: Mapping[str, Range] | Range = field(default_factory=dict)

    def variables(
        self, robot: Mechanism, brakes: Brakes, chain: Chain | None = None
    ) -> tuple[Variable, ...]:
        """All variables for a robot, fixed ones with equal ends.

        Args:
            robot: the robot.
            brakes: its brakes.
            chain: from the signal to the command; that of the brakes by default.

        Raises:
            UnknownName: a joint that the robot does not have.
            BadValue: a range that makes no sense.
        """
        variables: list[Variable] = []
        if self.motion is None:
            if self.instant is not None:
                raise BadValue(
                    "instant is given without a motion; give motion=pl.safety.JointTrajectory"
                )
            variables += self._poses(robot) + self._speeds(robot)
        else:
            variables.append(self._instant(brakes.chain if chain is None else chain))
        if self.payload is not None:
            variables.append(_variable("payload", "", self.payload, "kg"))
        variables += [
            _variable("delay", _braked(brakes, name), extent, "s")
            for name, extent in self.delay.items()
        ]
        bands = self.band
        if not isinstance(bands, Mapping):
            bands = {name: bands for name, brake in brakes.joints.items() if brake.kind != "none"}
        for name, extent in bands.items():
            variable = _variable("band", _braked(brakes, name), extent, "")
            if not -1.0 <= variable.low <= variable.high <= 1.0:
                raise BadValue(f"the band of '{name}' is {extent!r}; it must be within -1 and 1")
            variables.append(variable)
        return tuple(variables)

    def _poses(self, robot: Mechanism) -> list[Variable]:
        given = _of_driven(robot, self.pose or {}, "pose")
        variables = []
        for name in driven_joints(robot):
            unit, sliding = units_of(robot, name).si, units_of(robot, name) is SLIDING
            low, high = position_range(robot, name)
            extent = given.get(name)
            if extent is None:
                limited = np.isfinite(low) and np.isfinite(high)
                if sliding and not limited:
                    raise BadValue(
                        f"joint '{name}' of robot '{robot.name}' slides without position limits; "
                        f"give pose={{'{name}': (0.0, 1.0)}} in m"
                    )
                extent = (low, high) if limited else (-np.pi, np.pi)
            variable = _variable("pose", name, extent, unit)
            ends = (variable.low, variable.high)
            if any(is_outside(end, low, high) for end in ends):
                raise BadValue(
                    f"pose of '{name}' goes from {variable.low:g} to {variable.high:g} {unit}, "
                    f"beyond its limits of {low:g} to {high:g}; stay within them"
                )
            variables.append(variable)
        return variables

    def _speeds(self, robot: Mechanism) -> list[Variable]:
        top = robot.model.upperVelocityLimit
        given = _of_driven(robot, self.speed, "speed") if isinstance(self.speed, Mapping) else {}
        shares = _ALL_SPEEDS if isinstance(self.speed, Mapping) else self.speed
        variables = []
        for name in driven_joints(robot):
            column = robot.coordinates(name).v.start
            limit = float(top[column])
            share = _variable("speed", name, shares, "")
            if name in given:
                extent: Range = given[name]
            elif np.isfinite(limit) and limit > 0:
                extent = (share.low * limit, share.high * limit)
            else:
                raise BadValue(
                    f"joint '{name}' of robot '{robot.name}' has no velocity limit; give "
                    f"speed={{'{name}': (-1.0, 1.0)}} in rad/s or m/s"
                )
            unit = "m/s" if robot.is_translation[column] else "rad/s"
            variables.append(_variable("speed", name, extent, unit))
        return variables

    def _instant(self, chain: Chain) -> Variable:
        motion = self.motion
        assert motion is not None
        if self.pose or self.speed != _ALL_SPEEDS:
            raise BadValue("give either poses and speeds or a motion, not both")
        needed = chain.command + chain.drive_off
        if needed > motion.duration:
            raise BadValue(
                f"a motion of {motion.duration:g} s is too short: the robot follows it for "
                f"{needed:g} s after the signal; record for longer"
            )
        extent = self.instant
        if extent is None:
            extent = (motion.start, motion.end - needed)
        variable = _variable("instant", "", extent, "s")
        if variable.low < motion.start or variable.high + needed > motion.end:
            raise BadValue(
                f"instants from {variable.low:g} to {variable.high:g} s need the motion from there "
                f"until {needed:g} s later; it goes from {motion.start:g} to {motion.end:g} s"
            )
        return variable


def _of_driven(robot: Mechanism, given: Mapping[str, Range], what: str) -> Mapping[str, Range]:
    driven = driven_joints(robot)
    for name in given:
        if name not in driven:
            robot.coordinates(name)  # says so if there is no such joint
            raise BadValue(f"{what} names joint '{name}', which is not driven; driven: {driven}")
    return given


def _braked(brakes: Brakes, name: str) -> str:
    if name not in brakes.joints:
        raise UnknownName("brake of joint", name, brakes.joints, brakes.robot)
    if brakes.joints[name].kind == "none":
        raise BadValue(f"joint '{name}' has no brake whose delay or band could vary (kind: none)")
    return name


def _variable(kind: str, joint: str, extent: Range, unit: str) -> Variable:
    """A variable from a range or a number."""
    what = f"{kind} of '{joint}'" if joint else kind
    given: Any = (extent, extent) if isinstance(extent, Real) else extent
    try:
        low, high = (_number(end) for end in given)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {extent!r}; give a number or (low, high)") from None
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise BadValue(f"{what} goes from {low:g} to {high:g}; give finite ends in order")
    if kind in ("payload", "delay") and low < 0:
        raise BadValue(f"{what} is {low:g}; it cannot be negative")
    return Variable(kind, joint, low, high, unit)


def _number(end: object) -> float:
    """One end of a range; words and truth values are none."""
    if isinstance(end, bool) or not isinstance(end, Real):
        raise TypeError
    return float(end)


# -- which points ---------------------------------------------------------------------------------


class Sampling(ABC):
    """A way to choose points."""

    @abstractmethod
    def size(self, names: tuple[str, ...]) -> int:
        """Number of points, given the names of the variables that vary."""

    @abstractmethod
    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points number ``first`` to ``last - 1`` in the unit cube, shape (last - first, d)."""


@public
@dataclass(frozen=True)
class Grid(Sampling):
    """All combinations of equally spaced values, ends included.

    Args:
        counts: number of values per variable, or one number for all; 1 is the middle.
    """

    counts: int | Mapping[str, int] = 3

    def _per_variable(self, names: tuple[str, ...]) -> tuple[int, ...]:
        if isinstance(self.counts, Mapping):
            for name in self.counts:
                if name not in names:
                    raise BadValue(
                        f"the grid counts '{name}', which does not vary; {list(names)} do"
                    )
            counts = tuple(self.counts.get(name, 1) for name in names)
        else:
            counts = (self.counts,) * len(names)
        for count in counts:
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise BadValue(f"a grid has 1, 2, ... values per variable, not {count!r}")
        return counts

    def size(self, names: tuple[str, ...]) -> int:
        """Product of the counts."""
        return prod(self._per_variable(names))

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the grid; the last variable changes fastest."""
        counts = self._per_variable(names)
        steps = np.unravel_index(np.arange(first, last), counts) if counts else ()
        columns = [
            step / (count - 1) if count > 1 else np.full(len(step), 0.5)
            for step, count in zip(steps, counts, strict=True)
        ]
        return np.array(columns).reshape(len(counts), last - first).T


@public
@dataclass(frozen=True)
class Corners(Sampling):
    """Both ends of every variable in all combinations: 2 to the power of their number."""

    def size(self, names: tuple[str, ...]) -> int:
        """Number of corners."""
        return int(2 ** len(names))

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Corners as bits of their number."""
        return Grid(2).block(names, first, last)


@public
@dataclass(frozen=True)
class _Seeded(Sampling):
    """Points of a generator."""

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        count, seed = self.count, self.seed
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadValue(f"a study of {count!r} cases is empty; give a number of at least 1")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise BadValue(f"the seed is {seed!r}; give a whole number of at least 0")

    def size(self, names: tuple[str, ...]) -> int:
        """Number of points."""
        return self.count


@public
@dataclass(frozen=True)
class Random(_Seeded):
    """Independent uniform points.

    Args:
        count: number of points.
        seed: seed of the generator.
    """

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the stream, wherever the block begins."""
        generator = np.random.PCG64(self.seed)
        generator.advance(first * len(names))  # one draw per double
        return np.random.Generator(generator).random((last - first, len(names)))


@public
@dataclass(frozen=True)
class Sobol(_Seeded):
    """Scrambled Sobol points, which fill a space evenly.

    Args:
        count: number of points; powers of two are balanced.
        seed: seed of the scrambling.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count > 2**_BITS:
            raise BadValue(f"Sobol's sequence has {2**_BITS} points, not {self.count}")

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the sequence, wherever the block begins."""
        if not names:
            return np.zeros((last - first, 0))
        generator = np.random.default_rng(self.seed)
        engine = scipy.stats.qmc.Sobol(len(names), scramble=True, bits=_BITS, rng=generator)
        if first:
            engine.fast_forward(first)
        with warnings.catch_warnings():
            # Blocks need not be powers of two, of which SciPy would warn at the first one.
            warnings.filterwarnings(
                "ignore", message="The balance properties", category=UserWarning
            )
            return np.asarray(engine.random(last - first))


def drawn(sampling: Sampling) -> bool:
    """Whether points are drawn from all of the space, so that they say something about others."""
    return isinstance(sampling, _Seeded)
